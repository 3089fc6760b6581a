"""FrontierDisplay: score against average cost, the systems worth having as a step curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from sparing.displays._curve import Curve, Pair, curve_of_arrays, curve_of_frontier
from sparing.displays._style import COLOURS, GREY, MARKERS, pyplot, quiet, tint
from sparing.frontier import Frontier, threshold_systems
from sparing.metrics.scoring import scoring_name


class FrontierDisplay:
    """Score against average cost.

    Better made by :meth:`from_frontier`, :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    curves : sequence of Curve
    full : (cost, score), optional
        The full model alone.
    tolerance : float, optional
        The tolerance at which the curves' savings were found.
    budget : float, optional
        Drawn as a vertical line.
    score_name : str, default="score"

    Attributes
    ----------
    ax_, figure_ : the axes and figure drawn on, after :meth:`plot`.

    Examples
    --------
    >>> from sparing.displays import FrontierDisplay
    >>> display = FrontierDisplay.from_predictions(
    ...     [1, 2, 4, 3], [0.8, 0.9, 0.95, 0.85], full=(5, 0.96), tolerance=0.02
    ... )
    >>> display.curves[0].costs
    array([1., 2., 4.])
    >>> display.ax_.get_xlabel()
    'average cost per row'
    """

    def __init__(
        self,
        curves: Sequence[Curve],
        *,
        full: Pair | None = None,
        tolerance: float | None = None,
        budget: float | None = None,
        score_name: str = "score",
    ) -> None:
        self.curves = tuple(curves)
        self.full = full
        self.tolerance = tolerance
        self.budget = budget
        self.score_name = score_name

    # -- from what people have ------------------------------------------------------------------------

    @classmethod
    def from_frontier(
        cls,
        frontier: Frontier | Mapping[str, Frontier],
        *,
        name: str | None = None,
        tolerance: float | None = None,
        budget: float | None = None,
        level: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw one frontier, or several by name.

        Parameters
        ----------
        frontier : Frontier, or mapping of name to Frontier
            Of one scoring and accounting; methods are compared fairly on the same rows and at the same prices. The
            full model shown is the one of the first that has one.
        name : str, optional
            Name of the only curve.
        tolerance : float, optional
            Mark what the cheapest system within this of the full model's score saves.
        budget : float, optional
            Draw a line there.
        level : float, optional
            Draw bootstrap intervals of the scores at this level, 0.95 for example, as bands.
        ax : matplotlib axes, optional
        """
        named = frontier if isinstance(frontier, Mapping) else {name: frontier}
        if not named:
            raise ValueError("There is no frontier to draw.")
        if strange := [one for one in named.values() if not isinstance(one, Frontier)]:
            raise TypeError(
                f"from_frontier draws a Frontier, or several by name ({{'a': frontier, ...}}), not "
                f"{type(strange[0]).__name__}."
            )
        for what, kinds in (
            ("scorings", {scoring_name(f.scoring) for f in named.values()}),
            ("accountings", {f.accounting for f in named.values()}),
        ):
            if len(kinds) > 1:
                raise ValueError(
                    f"Curves with different {what} have no axis in common: {', '.join(sorted(kinds))}."
                )
        fulls = [f.full for f in named.values() if f.full is not None]
        curves = [curve_of_frontier(f, n, tolerance, level) for n, f in named.items()]
        return cls(
            curves,
            full=(fulls[0].cost, fulls[0].score) if fulls else None,
            tolerance=tolerance,
            budget=budget,
            score_name=scoring_name(next(iter(named.values())).scoring).replace("_", " "),
        ).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        scoring: Any = "accuracy",
        n_thresholds: int = 100,
        name: str | None = None,
        tolerance: float | None = None,
        budget: float | None = None,
        level: float | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted classifier: its whole frontier if it keeps one, else its gate's threshold moved.

        Parameters
        ----------
        estimator : fitted routed classifier
        X, y : rows it was not learnt from
        scoring : see :meth:`~sparing.frontier.Frontier.evaluate`; a kept frontier has its own.
        n_thresholds : int, default=100
        name, tolerance, budget, level, ax
            As in :meth:`from_frontier`.
        """
        if hasattr(estimator, "fit"):
            check_is_fitted(estimator)
        kept = getattr(estimator, "frontier_", None)
        if isinstance(kept, Frontier):
            frontier = kept.on(X, y)
        else:
            # A cascade has thresholds of its own for every point, one gate alone is moved here.
            several = hasattr(estimator, "staged_systems") and len(estimator.stages_) > 2
            systems = estimator if several else threshold_systems(estimator, X, n=n_thresholds)
            frontier = Frontier.evaluate(systems, X, y, scoring=scoring)
        name = type(estimator).__name__ if name is None else name
        return cls.from_frontier(
            frontier, name=name, tolerance=tolerance, budget=budget, level=level, ax=ax
        )

    @classmethod
    def from_predictions(
        cls,
        costs: ArrayLike,
        scores: ArrayLike,
        *,
        full: Pair | None = None,
        cheap: Pair | None = None,
        name: str | None = None,
        tolerance: float | None = None,
        budget: float | None = None,
        score_name: str = "score",
        ax: Any = None,
    ) -> Self:
        """Draw costs and scores of systems made elsewhere.

        Parameters
        ----------
        costs, scores : arrays of shape (n_systems,)
        full, cheap : (cost, score), optional
            The full model and the cheap model alone.
        name, tolerance, budget, ax
            As in :meth:`from_frontier`.
        score_name : str, default="score"
        """
        curve = curve_of_arrays(costs, scores, name, full, cheap, tolerance)
        return cls(
            [curve], full=full, tolerance=tolerance, budget=budget, score_name=score_name
        ).plot(ax=ax)

    # -- drawing --------------------------------------------------------------------------------------

    def plot(self, ax: Any = None) -> Self:
        """Draw on the axes given, or on new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional

        Returns
        -------
        self
        """
        if ax is None:
            _, ax = pyplot("FrontierDisplay").subplots(figsize=(6.4, 4.2), layout="constrained")
        quiet(ax)
        right = max(
            [curve.costs[-1] for curve in self.curves] + ([self.full[0]] if self.full else [])
        )
        for number, curve in enumerate(self.curves):
            self._draw_curve(ax, curve, number, right)
        if self.full is not None:
            self._draw_full(ax, *self.full)
        if self.budget is not None:
            ax.axvline(self.budget, color=GREY, linestyle=(0, (4, 3)), linewidth=1.2)
            bottom = ax.get_xaxis_transform()
            _note(ax, f"budget {self.budget:g}", (self.budget, 0), (5, 5), coordinates=bottom)
        self._limits(ax, right)
        ax.set_xlabel("average cost per row")
        ax.set_ylabel(self.score_name)
        if any(curve.name for curve in self.curves):
            # Above the axes, where it covers nothing; long names side by side would squeeze the axes instead.
            longest = max(len(label) for label in ax.get_legend_handles_labels()[1])
            ax.legend(
                loc="lower left",
                bbox_to_anchor=(-0.02, 1.0),
                ncols=3 if longest < 20 else 2,
                fontsize="medium" if longest < 30 else "small",
                frameon=False,
                borderaxespad=0.2,
            )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_curve(self, ax: Any, curve: Curve, number: int, right: float) -> None:
        colour = COLOURS[number % len(COLOURS)]
        ax.plot(
            curve.other_costs,
            curve.other_scores,
            linestyle="none",
            marker=".",
            markersize=4,
            color=tint(colour, 0.35),
            zorder=1,
        )
        if curve.band is not None:
            low, high = np.vstack([curve.band, curve.band[-1:]]).T
            ax.fill_between(
                np.append(curve.costs, right),
                low,
                high,
                step="post",
                color=tint(colour, 0.25),
                alpha=0.6,
                linewidth=0,
                zorder=0.5,
            )
        label = curve.name
        if label and curve.saving is not None and len(self.curves) > 1:
            label = f"{label}: {curve.saving:.0%} saved"
        few = len(curve.costs) <= 40
        # A budget between two systems buys the cheaper of them: the curve is a step, held to the right.
        ax.step(
            np.append(curve.costs, right),
            np.append(curve.scores, curve.scores[-1]),
            where="post",
            color=colour,
            linewidth=1.8,
            label=label or "_nolegend_",
            marker=MARKERS[number % len(MARKERS)] if few else None,
            markersize=4.5,
            markevery=slice(0, len(curve.costs)),
            zorder=3,
        )
        if curve.cheap is not None:
            ax.plot(
                *curve.cheap, marker="D", markersize=7, color="white", markeredgecolor=colour,
                markeredgewidth=1.6, linestyle="none", zorder=4,
            )  # fmt: skip
            if number == 0:
                place = _below(curve.cheap[0], right)
                if curve.marked is not None:
                    # One line further down: the text of the marked system may stand on the same height.
                    place = (0, -28), "center"
                _note(ax, "best cheap model alone", curve.cheap, *place)
        if curve.marked is not None:
            ax.plot(
                *curve.marked, marker="o", markersize=11, color="none", markeredgecolor=colour,
                markeredgewidth=1.8, linestyle="none", zorder=5,
            )  # fmt: skip
            if len(self.curves) == 1 and curve.saving is not None:
                text = f"{curve.saving:.0%} saved, score within {self.tolerance:g}"
                # Above and left of a frontier there is nothing, unless it is the edge of the picture.
                room = curve.marked[0] > 0.45 * right
                place = ((-9, 7), "right") if room else _below(curve.marked[0], right)
                _note(ax, text, curve.marked, *place)

    def _draw_full(self, ax: Any, cost: float, score: float) -> None:
        ax.plot(
            cost, score, marker="*", markersize=15, color="black", linestyle="none",
            markeredgecolor="white", zorder=6,
        )  # fmt: skip
        # Above the star, unless a curve runs there.
        above = max(curve.scores.max() for curve in self.curves) <= score
        where = (4, 10) if above else (4, -19)
        _note(ax, f"full model: {score:.4g} at {cost:.4g}", (cost, score), where, "right")
        if self.tolerance is not None:
            level = score - self.tolerance
            ax.axhline(level, color=GREY, linestyle=(0, (1, 2)), linewidth=1.2, zorder=2)
        if self.tolerance is not None and len(self.curves) > 1:
            _note(
                ax,
                f"within {self.tolerance:g} of the full model",
                (0, level),
                (4, -11),
                coordinates=ax.get_yaxis_transform(),
            )

    def _limits(self, ax: Any, right: float) -> None:
        """Limits that show the curves and the full model; faint points far below may fall outside."""
        shown = [curve.scores for curve in self.curves]
        shown += [curve.band.ravel() for curve in self.curves if curve.band is not None]
        shown += [
            np.array([pair[1]]) for pair in [self.full, *(c.cheap for c in self.curves)] if pair
        ]
        low, high = np.min(np.concatenate(shown)), np.max(np.concatenate(shown))
        margin = 0.08 * (high - low) or 0.01
        ax.set_ylim(low - 1.5 * margin, high + 1.6 * margin)
        left = min(curve.costs[0] for curve in self.curves)
        ax.set_xlim(min(0.0, left), right * 1.03 if right > 0 else 1.0)


def _below(x: float, right: float) -> tuple[Pair, str]:
    """Offset and alignment of a text below a place, kept inside the picture."""
    return ((10, -14), "left") if x < 0.6 * right else ((-10, -14), "right")


def _note(
    ax: Any,
    text: str,
    where: Pair,
    offset: Pair,
    align: str = "left",
    coordinates: Any = "data",
) -> None:
    """Small grey text, some points away from a place."""
    ax.annotate(
        text,
        where,
        xycoords=coordinates,
        xytext=offset,
        textcoords="offset points",
        ha=align,
        fontsize="small",
        color="#333333",
        zorder=7,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1.0},
    )
