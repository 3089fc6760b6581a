"""AcquisitionDisplay: who pays for what, stage by stage."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._rows import ScoredRows, n_rows
from sparing.displays._lines import Line, number_beside, percent, plain, short_name
from sparing.displays._style import COLOURS, GREY, pyplot, quiet, tint
from sparing.system import Accounting, System

Floats = NDArray[np.float64]

_LINE_HEIGHT = 0.24
_COLUMNS = {"price": 44, "per row": 92}
"""Where the two columns of numbers end, in points from the right end of the axes."""


class AcquisitionDisplay:
    """Who pays for what, stage by stage: one bar per item, as long as the share of the rows that buy it.

    A bar is divided by the stage that answered those rows in the end. Better made by :meth:`from_estimator` or
    :meth:`from_system`.

    Parameters
    ----------
    stages : sequence of str
        Names of the stages, cheapest first.
    answered : array of shape (n_stages,)
        Share of the rows that each stage answers.
    stage_costs : array of shape (n_stages,)
        Mean cost of the rows answered there, items and calls; NaN where there are none.
    items : sequence
        Names of the items.
    prices : array of shape (n_items,)
    item_stages : int array of shape (n_items,)
        The first stage that may buy an item; −1 if none does.
    paid : array of shape (n_stages, n_items)
        Share of all rows that are answered at a stage and have bought an item, there or before.
    call_prices : array of shape (n_stages,), optional
        Price of asking each stage.
    scores : array of shape (n_stages,), optional
        Share of right answers of each stage; NaN where it answers nothing.
    has_full : bool, default=True
        Whether the last stage is the full model, drawn in a colour of its own.
    max_items : int, default=15
        Items with a bar of their own, those that most is spent on at each stage; the others are put together.

    Attributes
    ----------
    ax_, figure_ : the axes and figure drawn on, after :meth:`plot`.

    Examples
    --------
    >>> from sparing.displays import AcquisitionDisplay
    >>> display = AcquisitionDisplay(
    ...     ["questions", "blood"],
    ...     answered=[0.8, 0.2],
    ...     stage_costs=[1, 21],
    ...     items=["age", "TSH"],
    ...     prices=[1, 20],
    ...     item_stages=[0, 1],
    ...     paid=[[0.8, 0], [0.2, 0.2]],
    ... ).plot()
    >>> display.mean_cost
    5.0
    >>> [label.get_text() for label in display.ax_.get_yticklabels()]
    ['0  questions', 'age', '1  blood', 'TSH', 'all together']
    """

    def __init__(
        self,
        stages: Sequence[str],
        answered: ArrayLike,
        stage_costs: ArrayLike,
        items: Sequence[Hashable],
        prices: ArrayLike,
        item_stages: ArrayLike,
        paid: ArrayLike,
        *,
        call_prices: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        has_full: bool = True,
        max_items: int = 15,
    ) -> None:
        self.stages = tuple(stages)
        self.answered = np.asarray(answered, dtype=float)
        self.stage_costs = np.asarray(stage_costs, dtype=float)
        self.items = tuple(items)
        self.prices = np.asarray(prices, dtype=float)
        self.item_stages = np.asarray(item_stages, dtype=np.intp)
        self.paid = np.asarray(paid, dtype=float)
        calls = np.zeros(len(self.stages)) if call_prices is None else call_prices
        self.call_prices = np.asarray(calls, dtype=float)
        self.scores = None if scores is None else np.asarray(scores, dtype=float)
        self.has_full = has_full
        self.max_items = max_items

    # -- from what people have ------------------------------------------------------------------------

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        accounting: Accounting | None = None,
        max_items: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw a fitted classifier.

        Parameters
        ----------
        estimator : fitted routed classifier or System
        X : array or data frame
            Rows it was not learnt from.
        y : array of shape (n_rows,), optional
            Their labels; each stage then says how often it is right.
        accounting : {"stage", "path"} or None
            None is the classifier's own.
        max_items : int, default=15
        ax : matplotlib axes, optional

        Examples
        --------
        >>> from sparing import AdaptLinClassifier
        >>> from sparing.datasets import make_synthetic1
        >>> from sparing.displays import AcquisitionDisplay
        >>> X, y = make_synthetic1()
        >>> clf = AdaptLinClassifier(cv=2, random_state=0).fit(X, y)
        >>> display = AcquisitionDisplay.from_estimator(clf, X, y)
        >>> bool(np.isclose(display.mean_cost, clf.acquisition_cost(X).mean()))
        True
        """
        system = getattr(estimator, "system_", estimator)
        if not isinstance(system, System):
            raise TypeError(
                f"A system or a fitted routed classifier is needed, not {type(estimator).__name__}."
            )
        return cls.from_system(system, X, y, accounting=accounting, max_items=max_items, ax=ax)

    @classmethod
    def from_system(
        cls,
        system: System,
        X: Any,
        y: Any = None,
        *,
        accounting: Accounting | None = None,
        max_items: int = 15,
        ax: Any = None,
    ) -> Self:
        """Draw a system.

        Parameters
        ----------
        system : System
        X, y, accounting, max_items, ax
            As in :meth:`from_estimator`.
        """
        if n_rows(X) == 0:
            raise ValueError("X has no rows: nobody pays for anything.")
        rows = X if isinstance(X, ScoredRows) else ScoredRows(X)
        costs, n_stages = system.costs, len(system.stages)
        answering = system.route(rows)
        cost = system.acquisition_cost(rows, accounting=accounting)
        mask = system.acquisition_mask(rows, accounting=accounting)
        buys = costs.items_of(system.stage_columns())
        paid = [costs.items_of(mask[answering == s]).sum(axis=0) for s in range(n_stages)]
        counts = np.bincount(answering, minlength=n_stages)

        def mean(values: Floats) -> Floats:
            total = np.bincount(answering, weights=values, minlength=n_stages)
            return np.divide(total, counts, out=np.full(n_stages, np.nan), where=counts > 0)

        scores = None
        if y is not None:
            if len(y) != len(answering):
                raise ValueError(f"y has {len(y)} labels, X has {len(answering)} rows.")
            right = system.predict(rows) == np.asarray(y)
            scores = mean(right.astype(float))
        return cls(
            [stage.name for stage in system.stages],
            counts / len(answering),
            mean(cost),
            costs.items,
            costs.item_prices,
            np.where(buys.any(axis=0), buys.argmax(axis=0), -1),
            np.array(paid) / len(answering),
            call_prices=np.diff(system.call_prices(), prepend=0.0),
            scores=scores,
            has_full=system.has_full,
            max_items=max_items,
        ).plot(ax=ax)

    # -- numbers --------------------------------------------------------------------------------------

    @property
    def mean_cost(self) -> float:
        """Mean cost of a row."""
        return float(np.nansum(self.answered * self.stage_costs))

    @property
    def entered(self) -> Floats:
        """Share of the rows that come to each stage."""
        return np.cumsum(self.answered[::-1])[::-1]

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
        plt = pyplot("AcquisitionDisplay")
        lines = list(self._lines())
        if ax is None:
            height = 1.1 + _LINE_HEIGHT * len(lines)
            _, ax = plt.subplots(figsize=(7.2, height), layout="constrained")
        quiet(ax)
        ax.grid(False, axis="y")
        for place, line in enumerate(lines):
            self._draw_line(ax, place, line)
        for name, x in _COLUMNS.items():
            number_beside(ax, x, -0.9, name, GREY)
        ax.set_yticks(range(len(lines)), [line.name for line in lines], parse_math=False)
        for tick, line in zip(ax.get_yticklabels(), lines, strict=True):
            tick.set_fontweight("normal" if line.is_bar else "bold")
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_ylim(len(lines) - 0.4, -0.6)
        ax.set_xlim(0, 1)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
        ax.set_xlabel("share of the rows that pay, coloured by the stage that answers them")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _lines(self) -> Iterator[Line]:
        """Lines of the picture, from the top: each stage, its items, and what all of it comes to."""
        spent = self.paid.sum(axis=0) * self.prices
        largest = self._largest(spent)
        for number, stage in enumerate(self.stages):
            yield Line(self._stage_name(number, stage), stage=number, note=self._stage_note(number))
            here = np.flatnonzero(self.item_stages == number)
            shown = here[np.isin(here, largest)]
            rest = np.setdiff1d(here, shown)
            if len(rest) == 1:  # "one other" would need as much room as its name
                shown, rest = here, rest[:0]
            for item in shown[np.argsort(-spent[shown], kind="stable")]:
                yield Line(
                    short_name(self.items[item]), self.paid[:, item], float(self.prices[item])
                )
            if len(rest):
                others = "others" if len(shown) else "items"
                yield Line(
                    f"{len(rest)} {others}", self._shares(rest), float(self.prices[rest].sum())
                )
            if self.call_prices[number] > 0:
                comes = np.where(np.arange(len(self.stages)) >= number, self.answered, 0.0)
                yield Line("its call", comes, float(self.call_prices[number]))
        never = self.prices[self.item_stages < 0]
        if len(never):
            zero = np.zeros(len(self.stages))
            yield Line(f"never bought: {len(never)} items", zero, float(never.sum()))
        yield Line("all together", note="", cost=self.mean_cost)

    def _largest(self, spent: Floats) -> NDArray[np.intp]:
        """Items that get a bar of their own: first the one that most is spent on at each stage, then the second."""
        rank = np.zeros(len(spent), dtype=np.intp)
        for number in range(len(self.stages)):
            here = np.flatnonzero(self.item_stages == number)
            rank[here[np.argsort(-spent[here], kind="stable")]] = np.arange(len(here))
        bought = np.flatnonzero(self.item_stages >= 0)
        return bought[np.lexsort((-spent[bought], rank[bought]))][: max(0, self.max_items)]

    def _shares(self, items: NDArray[np.intp]) -> Floats:
        """Share of the rows that pay for some items, averaged by price, by the stage that answers them."""
        weight = self.prices[items]
        return np.average(self.paid[:, items], axis=1, weights=weight if weight.any() else None)

    def _stage_name(self, number: int, stage: str) -> str:
        return short_name(stage if len(self.stages) == 1 else f"{number}  {stage}")

    def _stage_note(self, number: int) -> str:
        share, cost = self.answered[number], self.stage_costs[number]
        if share == 0:
            return "answers no row"
        note = f"answers {percent(share)} of the rows, {cost:.4g} each"
        return note if self.scores is None else f"{note}, {self.scores[number]:.1%} right"

    def _colours(self) -> list[Any]:
        """One blue, darker from stage to stage; the full model's own colour for the last."""
        n = len(self.stages)
        accent = self.has_full and n > 1
        blues = [tint(COLOURS[0], share) for share in np.linspace(0.3, 1.0, max(1, n - accent))]
        return [*blues, COLOURS[1]] if accent else blues

    def _draw_line(self, ax: Any, place: int, line: Line) -> None:
        colours = self._colours()
        if line.shares is None:
            if line.stage is not None:
                ax.plot(
                    0.012, place, marker="s", markersize=7, color=colours[line.stage], clip_on=False
                )
                ax.text(0.032, place, line.note, va="center", color="black", fontsize="small")
            else:
                ax.axhline(place - 0.5, color=GREY, linewidth=0.8)
                number_beside(
                    ax, _COLUMNS["per row"], place, plain(line.cost, self.mean_cost), "black"
                )
            return
        starts = np.cumsum(line.shares) - line.shares
        ax.barh(
            np.full(len(starts), place), line.shares, left=starts, height=0.68, color=colours,
            linewidth=0,
        )  # fmt: skip
        spent = line.price * line.shares.sum()
        number_beside(ax, _COLUMNS["price"], place, self._price(line.price), GREY)
        number_beside(ax, _COLUMNS["per row"], place, plain(spent, self.mean_cost), "black")

    def _price(self, price: float) -> str:
        """A price with the decimals that all of them need."""
        every = np.append(self.prices, self.call_prices)
        exact = (d for d in range(6) if np.allclose(every.round(d), every, atol=1e-9))
        return f"{price:.{next(exact, 6)}f}"
