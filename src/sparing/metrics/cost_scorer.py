"""A scorer for searches over settings: the score of a routed classifier minus what its answers cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparing.metrics.saving import mean_acquisition_cost
from sparing.metrics.scoring import SystemClassifier, resolve_scoring
from sparing.system import Accounting, System


@dataclass(frozen=True)
class CostScorer:
    """Scorer of routed classifiers, called as ``scorer(estimator, X, y)``; made by :func:`make_cost_scorer`.

    Examples
    --------
    >>> from sparing import GreedyMiserClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.metrics import CostScorer
    >>> X, y = make_synthetic1()
    >>> clf = GreedyMiserClassifier(n_estimators=5, cost_penalty=0, random_state=0).fit(X, y)
    >>> scorer = CostScorer("accuracy", price=0.01)
    >>> bool(abs(scorer(clf, X, y) - (clf.score(X, y) - 0.01 * clf.acquisition_cost(X).mean())) < 1e-12)
    True
    """

    scoring: Any
    price: float
    accounting: Accounting | None = None

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> float:
        """Score − price × average cost."""
        if isinstance(estimator, System):
            estimator = SystemClassifier(estimator)
        cost = mean_acquisition_cost(
            estimator, X, accounting=self.accounting, sample_weight=sample_weight
        )
        score = resolve_scoring(self.scoring)(estimator, X, y, sample_weight=sample_weight)
        return score - self.price * cost


def make_cost_scorer(
    scoring: Any = "accuracy", *, price: float, accounting: Accounting | None = None
) -> CostScorer:
    """Scorer for ``GridSearchCV`` and friends: score − price × average cost, larger is better.

    Parameters
    ----------
    scoring : str, callable or matrix, default="accuracy"
        Name of a scikit-learn scorer, a scorer, a metric ``(y_true, y_pred)`` or a misclassification cost matrix.
    price : float
        What one unit of cost is worth in units of the score: 0.01 gives up one point of accuracy to save 1.
        With a misclassification cost matrix in money it is 1, and the scorer is minus the whole bill.
    accounting : {"stage", "path"} or None
        None is the classifier's own.

    Returns
    -------
    CostScorer

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic2
    >>> from sparing.metrics import make_cost_scorer
    >>> X, y = make_synthetic2()
    >>> search = GridSearchCV(
    ...     AdaptLinClassifier(SVC(), cv=2, max_iter=5, random_state=0),
    ...     {"full_rate": [0.0, 0.6]},
    ...     scoring=make_cost_scorer(price=10),
    ...     cv=2,
    ... )
    >>> search.fit(X, y).best_params_  # at this price the full model is not worth asking
    {'full_rate': 0.0}
    """
    if not np.isfinite(price) or price < 0:
        raise ValueError(f"price is a finite number, not negative; got {price!r}.")
    resolve_scoring(scoring)  # raises on what cannot be scored
    return CostScorer(scoring, float(price), accounting)
