"""What a stage is made of: a predictor that answers, a gate that says who goes on, a threshold.

Predictors and gates see X at full width and may read only their own ``columns``: a served row holds nothing but
placeholders in the columns that were not bought. The names here are public in ``system``, which runs the stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparing._rows import n_rows
from sparing._stored import Stored

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
Columns = NDArray[np.intp]


class Predictor(Protocol):
    """What answers at a stage. May also be one that :class:`ReadsByRow` or :class:`Decides`.

    Examples
    --------
    A rule of thumb on one column:

    >>> import numpy as np
    >>> class Feverish:
    ...     columns = np.array([0])
    ...     def predict_proba(self, X):
    ...         sick = np.where(np.asarray(X)[:, 0] > 38.0, 0.9, 0.2)
    ...         return np.column_stack([1 - sick, sick])
    >>> Feverish().predict_proba([[39.5]])
    array([[0.1, 0.9]])
    """

    @property
    def columns(self) -> Columns:
        """Positions of all columns of X it may read."""

    def predict_proba(self, X: Any) -> Floats:
        """Class probabilities, one column per class of the system."""


class Gate(Protocol):
    """What decides whether a row goes on. May also be one that :class:`ReadsByRow`.

    Examples
    --------
    Children go on, whatever the predictor says:

    >>> import numpy as np
    >>> class Children:
    ...     columns = np.array([1])
    ...     reads_predictor = False
    ...     def score(self, X, proba):
    ...         return 16.0 - np.asarray(X)[:, 1]
    >>> Children().score([[39.5, 4.0], [39.5, 40.0]], None) > 0
    array([ True, False])
    """

    @property
    def columns(self) -> Columns:
        """Positions of all columns of X it may read itself."""

    @property
    def reads_predictor(self) -> bool:
        """Whether the score needs the probabilities of the stage's own predictor."""

    def score(self, X: Any, proba: Floats | None) -> Floats:
        """Score per row; above the stage's threshold the row goes on."""


@runtime_checkable
class ReadsByRow(Protocol):
    """A predictor or gate, usually of trees, that reads fewer columns on some rows than on others.

    Examples
    --------
    >>> import numpy as np
    >>> class Lazy:
    ...     columns = np.array([0, 1])
    ...     def columns_read(self, X):
    ...         return np.column_stack([np.ones(len(X), bool), np.asarray(X)[:, 0] > 38.0])
    >>> isinstance(Lazy(), ReadsByRow)
    True
    """

    def columns_read(self, X: Any) -> Booleans:
        """Columns tested for each row: bool of shape (n_rows, n_columns of X)."""


@runtime_checkable
class Decides(Protocol):
    """A predictor whose label is not always the most probable class, such as one with a tuned threshold.

    Examples
    --------
    >>> import numpy as np
    >>> class Careful:
    ...     columns = np.array([0])
    ...     def predict_proba(self, X):
    ...         return np.tile([0.7, 0.3], (len(X), 1))
    ...     def decide(self, X):
    ...         return (self.predict_proba(X)[:, 1] > 0.2).astype(int)
    >>> isinstance(Careful(), Decides), Careful().decide([[1.0]])
    (True, array([1]))
    """

    def decide(self, X: Any) -> NDArray[np.intp]:
        """Class per row, as a position in the system's classes."""


@dataclass(frozen=True, eq=False)
class Stage:
    """One round trip: columns bought together, a predictor, and a gate that says who goes on.

    Parameters
    ----------
    predictor : Predictor
    gate : Gate or None
        None at the last stage.
    threshold : float, default=0.0
        A row goes on when the gate's score is above it.
    name : str, default="stage"
        For people: "cheap", "full".

    Examples
    --------
    >>> import numpy as np
    >>> class Feverish:
    ...     columns = np.array([0])
    ...     def predict_proba(self, X):
    ...         sick = np.where(np.asarray(X)[:, 0] > 38.0, 0.9, 0.2)
    ...         return np.column_stack([1 - sick, sick])
    >>> Stage(Feverish(), ConfidenceGate(), 0.15, name="thermometer").columns
    array([0])
    """

    predictor: Predictor
    gate: Gate | None = None
    threshold: float = 0.0
    name: str = "stage"

    @property
    def columns(self) -> Columns:
        """Columns the gate and the predictor may read, sorted."""
        own: ArrayLike = [] if self.gate is None else self.gate.columns
        # An empty list of columns is one of floats unless told otherwise.
        return np.union1d(self.predictor.columns, own).astype(np.intp)


@dataclass(frozen=True)
class ConfidenceGate:
    """Go on when the stage's own predictor is not sure: score = 1 − its largest probability.

    Examples
    --------
    >>> import numpy as np
    >>> ConfidenceGate().score(None, np.array([[0.9, 0.1], [0.4, 0.6]])).round(2)
    array([0.1, 0.4])
    """

    columns = np.empty(0, dtype=np.intp)
    reads_predictor = True

    def score(self, X: Any, proba: Floats | None) -> Floats:  # noqa: ARG002
        """One minus the largest class probability."""
        assert proba is not None
        return 1.0 - proba.max(axis=1)

    def stored(self) -> Stored:
        """Nothing to keep."""
        return Stored("confidence gate")

    @classmethod
    def restored(cls, stored: Stored) -> Self:  # noqa: ARG003
        """The gate again."""
        return cls()


def columns_read(part: Predictor | Gate, X: Any, n_columns: int) -> Booleans:
    """Columns a predictor or gate reads on each row; all of its own unless it knows better.

    Examples
    --------
    >>> import numpy as np
    >>> columns_read(ConfidenceGate(), np.zeros((1, 3)), 3)
    array([[False, False, False]])
    """
    if isinstance(part, ReadsByRow):
        return part.columns_read(X)
    mask = np.zeros(n_columns, dtype=bool)
    mask[part.columns] = True
    return np.broadcast_to(mask, (n_rows(X), n_columns))
