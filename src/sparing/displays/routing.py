"""RoutingDisplay: the plane of two features, who answers where, and what the cheap model says."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparing.displays._style import BEIGE, COLOURS, GREY, MARKERS, pyplot, tint
from sparing.system import System

Floats = NDArray[np.float64]
_BOUNDARY = "#222222"


class RoutingDisplay:
    """Decision regions of a system on two features.

    Beige goes on to the full model; elsewhere the colour is the class that the cheap model says. The dashed line is the
    gate's boundary, the solid one the cheap model's.

    Parameters
    ----------
    first, second : arrays of shape (n,) and (m,)
        Values of the two features at the points of the grid.
    goes_on : float array of shape (m, n)
        Gate score minus threshold; above 0 the point goes on.
    proba : float array of shape (m, n, n_classes)
        Class probabilities of the cheap model.
    classes : array of class labels
    X : array of shape (n_rows, 2), optional
        Data points to show.
    y : int array of shape (n_rows,), optional
        Their classes, as positions in ``classes``.
    feature_names : pair of str

    Attributes
    ----------
    ax_, figure_ : the axes and figure drawn on, after :meth:`plot`.

    Examples
    --------
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.displays import RoutingDisplay
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(cv=2, random_state=0).fit(X, y)
    >>> display = RoutingDisplay.from_estimator(clf, X, y, resolution=50)
    >>> display.goes_on.shape
    (50, 50)
    """

    def __init__(
        self,
        first: Floats,
        second: Floats,
        goes_on: Floats,
        proba: Floats,
        *,
        classes: Any,
        X: Floats | None = None,
        y: NDArray[np.intp] | None = None,
        feature_names: tuple[str, str] = ("feature 1", "feature 2"),
    ) -> None:
        self.first = first
        self.second = second
        self.goes_on = goes_on
        self.proba = proba
        self.classes = np.asarray(classes)
        self.X = X
        self.y = y
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, resolution: int = 300, ax: Any = None
    ) -> Self:
        """Draw a fitted classifier, or a system, of two columns.

        Parameters
        ----------
        estimator : fitted routed classifier or System
            Of a cascade the first gate and the first model are shown.
        X : array or data frame of shape (n_rows, 2)
            Rows to show; they also say which part of the plane.
        y : array of shape (n_rows,), optional
            Their labels.
        resolution : int, default=300
            Points of the grid along each side.
        ax : matplotlib axes, optional
        """
        system = getattr(estimator, "system_", estimator)
        if not isinstance(system, System):
            raise TypeError(
                f"A system or a fitted routed classifier is needed, not {type(estimator).__name__}."
            )
        if len(X.shape) != 2 or X.shape[1] != 2:
            raise ValueError(f"RoutingDisplay shows two columns, X has shape {tuple(X.shape)}.")
        if len(system.stages) < 2:
            raise ValueError("RoutingDisplay shows a gate, this system has none.")
        values = np.asarray(X, dtype=float)
        low, high = values.min(axis=0), values.max(axis=0)
        margin = 0.06 * (high - low) + 1e-9
        first, second = (
            np.linspace(low[i] - margin[i], high[i] + margin[i], resolution) for i in (0, 1)
        )
        grid = _like(X, np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2))
        stage = system.stages[0]
        goes_on = system.exit_scores(grid)[:, 0] - stage.threshold
        proba = stage.predictor.predict_proba(grid)
        names = [str(name) for name in getattr(X, "columns", ("feature 1", "feature 2"))]
        shape = (resolution, resolution)
        return cls(
            first,
            second,
            goes_on.reshape(shape),
            proba.reshape(*shape, -1),
            classes=system.classes,
            X=values,
            y=None if y is None else _codes(y, system.classes),
            feature_names=(names[0], names[1]),
        ).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        self
        """
        plt = pyplot("RoutingDisplay")
        from matplotlib.colors import ListedColormap
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        if ax is None:
            _, ax = plt.subplots(figsize=(5.6, 5.0), layout="constrained")
        colours = [COLOURS[i % len(COLOURS)] for i in range(len(self.classes))]
        fills = [tint(colour, 0.36) for colour in colours]
        region = np.where(self.goes_on > 0, len(fills), self.proba.argmax(axis=-1))
        ax.pcolormesh(
            self.first,
            self.second,
            region,
            cmap=ListedColormap([*fills, BEIGE]),
            vmin=-0.5,
            vmax=len(fills) + 0.5,
            shading="nearest",
            rasterized=True,
        )
        handles: list[Any] = [
            Patch(color=fill, label=f"cheap model says {label}")
            for fill, label in zip(fills, self.classes.tolist(), strict=True)
        ]
        handles.append(Patch(color=BEIGE, label="goes to the full model"))
        lines = {
            "gate": ("dashed", [self.goes_on]),
            "cheap model's boundary": ("solid", self._margins()),
        }
        for name, (style, surfaces) in lines.items():
            crossed = [surface for surface in surfaces if surface.min() < 0 < surface.max()]
            for surface in crossed:
                ax.contour(
                    self.first, self.second, surface, levels=[0.0], colors=_BOUNDARY, linestyles=style,
                    linewidths=1.4,
                )  # fmt: skip
            if crossed:
                handles.append(Line2D([], [], color=_BOUNDARY, linestyle=style, label=name))
        self._draw_points(ax, colours)
        ax.set_xlabel(self.feature_names[0])
        ax.set_ylabel(self.feature_names[1])
        ax.legend(
            handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2, frameon=False
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _margins(self) -> list[Floats]:
        """Lead of each class over the best of the others; 0 on the boundary. Two classes share theirs."""
        n_classes = self.proba.shape[-1]
        return [
            self.proba[..., code] - np.delete(self.proba, code, axis=-1).max(axis=-1)
            for code in range(0 if n_classes > 2 else 1, n_classes)
        ]

    def _draw_points(self, ax: Any, colours: list[str]) -> None:
        if self.X is None:
            return
        if self.y is None:
            ax.scatter(*self.X.T, s=12, color=GREY, linewidths=0)
            return
        for code, colour in enumerate(colours):
            ax.scatter(
                *self.X[self.y == code].T,
                s=16,
                marker=MARKERS[code % len(MARKERS)],
                color=colour,
                edgecolors="white",
                linewidths=0.4,
                zorder=2,
            )


def _like(X: Any, values: Floats) -> Any:
    """Values as a frame with the columns of X when X is a frame."""
    if not hasattr(X, "columns"):
        return values
    return type(X)({name: values[:, i] for i, name in enumerate(X.columns)})


def _codes(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the labels in the classes; −1 for a label that is not among them."""
    same = np.asarray(y)[:, None] == classes[None, :]
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)
