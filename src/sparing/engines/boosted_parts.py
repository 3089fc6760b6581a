"""What serves a grown booster: a predictor and a gate over one slim pair of models.

A booster grows f1 and g together, but they are asked apart: the gate for every row, f1 only for the rows that stay.
LightGBM predicts all outputs or none, so the trees are dealt out into two text models. The gate of a 7-class model
then takes a twelfth of the time, and asking both parts takes no longer than asking the whole (measured).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparing._booster_turns import PrefixTurns
from sparing._lightgbm import lightgbm
from sparing._losses import cheap_proba
from sparing._one_row import OneRowScores
from sparing._stored import Stored
from sparing._tree_paths import BoosterPaths
from sparing._tree_tables import tree_tables
from sparing.engines.binning import ColumnEncoder
from sparing.engines.boosting import Grown

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]

_KEPT = (
    *("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child"),
    *("right_child", "leaf_value", "cat_boundaries", "cat_threshold", "is_linear", "shrinkage"),
)
_FEW_ROWS = 1024
"""Up to here one thread is faster than waking others."""
_MANY_ROWS = 4096
"""From here on tables of bits are worth making; their scores are LightGBM's to the last bit."""


class BoostedTrees:
    """Trees of some outputs of a booster and their start scores; each prefix can be asked.

    Parameters
    ----------
    model : str
        LightGBM's text format; empty when there are no trees.
    base : start scores, one per output.
    n_columns : number of columns of X.
    n_jobs : int, optional
        Threads for large tables.
    """

    def __init__(self, model: str, base: Floats, n_columns: int, n_jobs: int = 1) -> None:
        self.model = model
        self.base = np.asarray(base, dtype=float)
        self.n_columns = n_columns
        self.n_jobs = n_jobs
        self._turns = PrefixTurns()

    @cached_property
    def booster(self) -> lightgbm.Booster | None:
        """The trees without any training data."""
        return lightgbm.Booster(model_str=self.model) if self.model else None

    @cached_property
    def paths(self) -> BoosterPaths | None:
        """Columns on the trees' paths."""
        return None if self.booster is None else BoosterPaths(self.booster, self._turns)

    @cached_property
    def n_iterations(self) -> int:
        """Number of trees per output."""
        return 0 if self.booster is None else int(self.booster.current_iteration())

    @cached_property
    def _one_row(self) -> dict[int, OneRowScores]:
        """What answers single rows, by number of iterations."""
        return {}

    def scores(self, rows: NDArray[np.floating], n_iteration: int | None) -> Floats:
        """Scores of shape (n_rows, n_outputs) after the first iterations."""
        n = self.n_iterations if n_iteration is None else min(n_iteration, self.n_iterations)
        out = np.tile(self.base, (len(rows), 1))
        if n > 0 and len(rows) == 1:
            if n not in self._one_row:
                assert self.booster is not None
                text = self.booster.model_to_string(num_iteration=n)
                self._one_row[n] = OneRowScores(text, self.n_columns)
            out += self._one_row[n](rows)
        elif n > 0 and len(rows):
            tables = tree_tables(self.model) if len(rows) >= _MANY_ROWS else None
            out += self._walked(rows, n) if tables is None else tables.scores(rows, n)
        return out

    def _walked(self, rows: NDArray[np.floating], n_iteration: int) -> Floats:
        assert self.booster is not None
        with self._turns.of(n_iteration):
            raw = self.booster.predict(
                rows, raw_score=True, num_iteration=n_iteration, num_threads=self._threads(rows)
            )
        return np.asarray(raw).reshape(len(rows), -1)

    def _threads(self, rows: NDArray[np.floating]) -> int:
        return 1 if len(rows) <= _FEW_ROWS else self.n_jobs

    def columns(self, n_iteration: int | None) -> NDArray[np.intp]:
        """Columns tested anywhere in the first iterations."""
        if self.paths is None:
            return np.empty(0, dtype=np.intp)
        return self.paths.columns(n_iteration=n_iteration)

    def columns_read(self, rows: NDArray[np.floating], n_iteration: int | None) -> Booleans:
        """Columns tested for each row in the first iterations."""
        if self.paths is None:
            return np.zeros((len(rows), self.n_columns), dtype=bool)
        return self.paths.columns_read(rows, n_iteration=n_iteration, n_jobs=self._threads(rows))

    def __getstate__(self) -> dict[str, Any]:
        # Digits compress well, and what is cached comes back by itself.
        cached = ("booster", "paths", "n_iterations", "_one_row", "_turns", "model")
        state = {name: value for name, value in self.__dict__.items() if name not in cached}
        return state | {"packed": zlib.compress(self.model.encode())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.model = zlib.decompress(self.__dict__.pop("packed")).decode()
        self._turns = PrefixTurns()

    def stored(self) -> Stored:
        """The text model and the start scores."""
        return Stored(
            "boosted trees",
            settings={"n_columns": self.n_columns, "n_jobs": self.n_jobs},
            arrays={"base": self.base},
            boosters={"trees": self.model} if self.model else {},
        )

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The trees again."""
        n_columns, base = stored.count("n_columns"), stored.array("base", kind="f")
        n_jobs = stored.settings.get("n_jobs")
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, int):
            raise ValueError(f"n_jobs of boosted trees is a whole number, not {n_jobs!r}.")
        model = stored.boosters.get("trees", "")
        if model:
            head = dict(line.split("=", 1) for line in model[:4096].split("\n") if "=" in line)
            found = (int(head["max_feature_idx"]) + 1, int(head["num_tree_per_iteration"]))
            if found != (n_columns, len(base)):
                raise ValueError(
                    f"The text model has {found[0]} columns and {found[1]} outputs, the part says {n_columns} and "
                    f"{len(base)}."
                )
        return cls(model, base, n_columns, n_jobs)


@dataclass(frozen=True, eq=False)
class BoostedPair:
    """f1's trees and g's, with the encoder of the rows: everything prediction needs, and no training data.

    Examples
    --------
    >>> import numpy as np
    >>> from sparing.costs import FeatureCosts
    >>> from sparing.engines.binning import BinnedData
    >>> from sparing.engines.boosting import BoostingEngine
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> engine = BoostingEngine(BinnedData(X), X[:, 0] > 0, 2, FeatureCosts([1, 1, 1]), n_estimators=5)
    >>> pair = BoostedPair.of(engine.grow_one_pass(np.full(500, 0.1), full_rate=0.3))
    >>> BoostedPredictor(pair).predict_proba(X[:1]).round(2), BoostedPredictor(pair, 0).columns
    (array([[0.21, 0.79]]), array([], dtype=int64))
    """

    cheap: BoostedTrees
    gate: BoostedTrees
    encoder: ColumnEncoder

    @classmethod
    def of(cls, grown: Grown, n_jobs: int = 1) -> BoostedPair:
        """Deal out the trees of a grown booster."""
        n_columns = grown.encoder.n_columns
        n_cheap = len(grown.base) - 1
        text = "" if grown.booster is None else grown.booster.model_to_string(num_iteration=-1)
        outputs = n_cheap + grown.has_gate
        cheap = _model_of(text, range(n_cheap), outputs, n_columns)
        gate = _model_of(text, [n_cheap], outputs, n_columns) if grown.has_gate else ""
        return cls(
            BoostedTrees(cheap, grown.base[:-1], n_columns, n_jobs),
            BoostedTrees(gate, grown.base[-1:], n_columns, n_jobs),
            grown.encoder,
        )

    def stored(self) -> Stored:
        """Both sides and the encoder."""
        parts = {"cheap": self.cheap, "gate": self.gate, "encoder": self.encoder}
        return Stored("boosted pair", parts=parts)

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The pair again."""
        cheap, gate = (stored.part(name, BoostedTrees) for name in ("cheap", "gate"))
        encoder = stored.part("encoder", ColumnEncoder)
        if not cheap.n_columns == gate.n_columns == encoder.n_columns:
            raise ValueError("The two sides of a boosted pair and its encoder differ in columns.")
        return cls(cheap, gate, encoder)


@dataclass(frozen=True, eq=False)
class _Part:
    """One side of a pair after its first ``n_iteration`` rounds; None for all."""

    pair: BoostedPair
    n_iteration: int | None = None
    _kind: ClassVar[str]

    @property
    def _trees(self) -> BoostedTrees:
        raise NotImplementedError

    @cached_property
    def columns(self) -> NDArray[np.intp]:
        """Columns tested anywhere in this prefix."""
        return self._trees.columns(self.n_iteration)

    def columns_read(self, X: Any) -> Booleans:
        """Columns tested on the paths of each row."""
        return self._trees.columns_read(self._encoded(X), self.n_iteration)

    def _encoded(self, X: Any) -> NDArray[np.floating]:
        return self.pair.encoder.encode(X, self.columns)

    def stored(self) -> Stored:
        """The pair and how much of it is used."""
        return Stored(
            self._kind, settings={"n_iteration": self.n_iteration}, parts={"pair": self.pair}
        )

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The part again."""
        n = stored.settings.get("n_iteration")
        return cls(
            stored.part("pair", BoostedPair), None if n is None else stored.count("n_iteration")
        )


class BoostedPredictor(_Part):
    """The cheap model f1: class probabilities."""

    _kind = "boosted predictor"

    @property
    def _trees(self) -> BoostedTrees:
        return self.pair.cheap

    def decision_scores(self, X: Any) -> Floats:
        """f1's logits: of shape (n,) for two classes, (n, n_classes) otherwise."""
        scores = self._trees.scores(self._encoded(X), self.n_iteration)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, one column per class."""
        return cheap_proba(self.decision_scores(X))


class BoostedGate(_Part):
    """The gate g: above 0 a row had better go to f0."""

    reads_predictor = False
    _kind = "boosted gate"

    @property
    def _trees(self) -> BoostedTrees:
        return self.pair.gate

    def score(self, X: Any, proba: Floats | None = None) -> Floats:  # noqa: ARG002
        """Score g of each row."""
        return self._trees.scores(self._encoded(X), self.n_iteration)[:, 0]


def _model_of(text: str, outputs: Sequence[int], n_outputs: int, n_columns: int) -> str:
    """LightGBM text model with the trees of some outputs, and of each tree only what prediction needs."""
    trees = [tree for i, tree in enumerate(text.split("\nTree=")[1:]) if i % n_outputs in outputs]
    if not trees:
        return ""
    lines = [
        *("tree", "version=v4", f"num_class={len(outputs)}"),
        *(f"num_tree_per_iteration={len(outputs)}", "label_index=0"),
        f"max_feature_idx={n_columns - 1}",
        "feature_names=" + " ".join(f"Column_{j}" for j in range(n_columns)),
        "feature_infos=" + " ".join(["none"] * n_columns),
        "",
    ]
    for i, tree in enumerate(trees):
        fields = tree.split("\n\n")[0].split("\n")[1:]
        kept = [line for line in fields if line.split("=", 1)[0] in _KEPT]
        lines += [f"Tree={i}", *kept, "", ""]
    return "\n".join([*lines, "end of trees", ""])
