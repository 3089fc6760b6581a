"""The linear f1 and g as they are served: coefficients on the columns they use, nothing of the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparing._losses import cheap_proba
from sparing._stored import Stored
from sparing.engines.design import Design

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearScores:
    """Linear scores of raw rows.

    Attributes
    ----------
    design : the columns used, and how to read them.
    coef : shape (n_design_columns, n_outputs).
    intercept : shape (n_outputs,).
    """

    design: Design
    coef: Floats
    intercept: Floats

    @classmethod
    def of(cls, design: Design, coef: Floats, intercept: Floats) -> LinearScores:
        """Keep only the columns of X with a coefficient that is not zero."""
        owner = np.asarray(design.owner)
        columns = np.unique(owner[coef.any(axis=1)])
        kept = np.isin(owner, columns)
        return cls(design.restricted(columns), coef[kept], intercept)

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns of X that are read."""
        return np.unique(np.asarray(self.design.owner, dtype=np.intp))

    def __call__(self, X: Any) -> Floats:
        """Scores, one column per output."""
        if not len(self.coef):
            return np.broadcast_to(self.intercept, (X.shape[0], len(self.intercept))).copy()
        return self.design.transform(X) @ self.coef + self.intercept

    def stored(self) -> Stored:
        """Coefficients and the design they are for."""
        return Stored(
            "linear scores",
            arrays={"coef": self.coef, "intercept": self.intercept},
            parts={"design": self.design},
        )

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The scores again."""
        design = stored.part("design", Design)
        coef = stored.array("coef", kind="f", ndim=2)
        intercept = stored.array("intercept", kind="f")
        if coef.shape != (len(design.owner), len(intercept)):
            raise ValueError(
                f"coef has shape {coef.shape} for {len(design.owner)} design columns and {len(intercept)} outputs."
            )
        return cls(design, coef, intercept)


@dataclass(frozen=True)
class LinearPredictor:
    """Linear f1: one logit for two classes, a softmax for more."""

    scores: LinearScores

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns f1 uses."""
        return self.scores.columns

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities."""
        scores = self.scores(X)
        return cheap_proba(scores[:, 0] if scores.shape[1] == 1 else scores)

    def stored(self) -> Stored:
        """Its scores."""
        return Stored("linear predictor", parts={"scores": self.scores})

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The predictor again."""
        return cls(stored.part("scores", LinearScores))


@dataclass(frozen=True)
class LinearGate:
    """Linear g; above 0 a row belongs to the full model."""

    scores: LinearScores
    reads_predictor = False

    @property
    def columns(self) -> NDArray[np.intp]:
        """Columns g uses."""
        return self.scores.columns

    def score(self, X: Any, proba: Floats | None) -> Floats:  # noqa: ARG002
        """The value of g per row."""
        return self.scores(X)[:, 0]

    def stored(self) -> Stored:
        """Its scores."""
        return Stored("linear gate", parts={"scores": self.scores})

    @classmethod
    def restored(cls, stored: Stored) -> Self:
        """The gate again."""
        return cls(stored.part("scores", LinearScores))
