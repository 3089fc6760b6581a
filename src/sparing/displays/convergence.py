"""ConvergenceDisplay: what the alternation did, iteration by iteration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing.displays._style import COLOURS, pyplot, quiet

_PANELS = {
    "objective": "objective",
    "allocation_rate": "allocation to\nthe full model",
    "n_columns": "columns bought",
}


class ConvergenceDisplay:
    """Objective, allocation rate and columns bought against the iteration, one small panel each.

    Parameters
    ----------
    history : mapping of str to array
        ``iteration`` and any of ``objective``, ``allocation_rate``, ``n_columns``; all equally long. Where the
        iteration starts again (another penalty of a path), so does the line.

    Attributes
    ----------
    axes_, figure_ : the axes, one per panel, and the figure drawn on, after :meth:`plot`.

    Examples
    --------
    >>> from sparing.displays import ConvergenceDisplay
    >>> display = ConvergenceDisplay.from_history(
    ...     {"iteration": [0, 1, 2], "objective": [0.9, 0.5, 0.4], "n_columns": [4, 3, 3]}
    ... )
    >>> [ax.get_ylabel() for ax in display.axes_]
    ['objective', 'columns bought']
    """

    def __init__(self, history: Mapping[str, ArrayLike]) -> None:
        self.history = {key: np.asarray(values) for key, values in history.items()}

    @classmethod
    def from_history(cls, history: Mapping[str, ArrayLike], *, ax: Any = None) -> Self:
        """Draw a ``history_``."""
        return cls(history).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the ``history_`` of a fitted classifier.

        Examples
        --------
        >>> from sparing import AdaptLinClassifier
        >>> from sparing.datasets import make_synthetic1
        >>> from sparing.displays import ConvergenceDisplay
        >>> clf = AdaptLinClassifier(cv=2, random_state=0).fit(*make_synthetic1())
        >>> len(ConvergenceDisplay.from_estimator(clf).axes_)
        3
        """
        history = getattr(estimator, "history_", None)
        if history is None:
            raise TypeError(
                f"{type(estimator).__name__} has no history_: it is not fitted, or does not alternate."
            )
        return cls.from_history(history, ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : sequence of matplotlib axes, optional
            One per panel, in the order objective, allocation rate, columns; new ones when there are none.

        Returns
        -------
        self
        """
        panels = [key for key in _PANELS if key in self.history]
        if "iteration" not in self.history or not panels:
            raise ValueError(
                f"A history has `iteration` and one of {', '.join(_PANELS)}; this one has {list(self.history)}. "
                "Cascades do not alternate: FrontierDisplay and AcquisitionDisplay show what they learnt."
            )
        if ax is None:
            _, ax = pyplot("ConvergenceDisplay").subplots(
                len(panels),
                1,
                sharex=True,
                squeeze=False,
                figsize=(5.6, 1.2 + 1.5 * len(panels)),
                layout="constrained",
            )
        axes = list(np.ravel(ax))
        if len(axes) != len(panels):
            raise ValueError(f"{len(panels)} panels need as many axes, not {len(axes)}.")
        iteration = self.history["iteration"]
        starts = np.flatnonzero(np.diff(iteration) <= 0) + 1
        for number, (panel, key) in enumerate(zip(axes, panels, strict=True)):
            quiet(panel)
            for run, rows in enumerate(np.split(np.arange(len(iteration)), starts)):
                panel.plot(
                    iteration[rows],
                    self.history[key][rows],
                    color=COLOURS[number],
                    alpha=1.0 if run == len(starts) else 0.35,
                    marker="o" if np.ptp(iteration) < 25 else None,
                    markersize=3.5,
                    linewidth=1.6,
                )
            panel.set_ylabel(_PANELS[key])
            panel.ticklabel_format(axis="y", useOffset=False)
            _limits(panel, key, self.history[key])
        axes[-1].set_xlabel("iteration")
        axes[-1].locator_params(axis="x", integer=True)
        self.axes_, self.figure_ = axes, axes[0].figure
        self.figure_.align_ylabels(axes)
        return self


def _limits(panel: Any, key: str, values: NDArray[Any]) -> None:
    """Limits within which rounding is not seen as a change."""
    if key == "allocation_rate":
        panel.set_ylim(-0.03, 1.03)
    elif key == "n_columns":
        panel.set_ylim(0, 1.15 * max(1, values.max()))
    else:
        middle, half = (values.max() + values.min()) / 2, np.ptp(values) / 2
        half = 1.15 * max(half, 1e-3 * abs(middle), 1e-12)
        panel.set_ylim(middle - half, middle + half)
    panel.locator_params(axis="y", nbins=4, **({"integer": True} if key == "n_columns" else {}))
