"""The two small made-up data sets of the paper, to look at with the naked eye.

Synthetic-1 has no prices: it shows a curved boundary that a cheap model can follow in some
places and not in others. Synthetic-2 has two features of price 1 and shows why choosing the
cheap features before the gate, as an L1 penalty does, buys the wrong one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.utils import check_random_state

__all__ = ["make_synthetic1", "make_synthetic2"]

# Centre and label of clusters 1 to 4, in the paper's order.
_CENTRES = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [-1.0, -3.0]])
_LABELS = np.array([1, 0, 1, 0])
_NOISE = 0.01


def make_synthetic1(
    random_state: int | np.random.RandomState | None = 17,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two classes of two clusters each in the plane (Synthetic-1 of the paper).

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=17
        17 gives the points of the paper's figure.

    Returns
    -------
    X : ndarray of shape (1000, 2)
        The points.
    y : ndarray of shape (1000,)
        Class 0 or 1; one label in a hundred is drawn at random.

    Examples
    --------
    >>> from sparing.datasets import make_synthetic1
    >>> X, y = make_synthetic1()
    >>> X.shape
    (1000, 2)
    """
    X, y = make_classification(
        n_samples=1000,
        flip_y=0.01,
        n_features=2,
        n_redundant=0,
        n_informative=2,
        random_state=random_state,
        n_clusters_per_class=2,
    )
    return X, y.astype(np.int64)


def make_synthetic2(
    *, equal: bool = False, random_state: int | np.random.RandomState | None = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Four tight clusters where the best single feature is the wrong one to buy first.

    ======= ======== ===== ===================================================
    cluster centre   label who can tell
    ======= ======== ===== ===================================================
    1       (1, 1)   1     feature 1, or both features
    2       (-1, 1)  0     both features only
    3       (-1, -1) 1     feature 2: above -2 and below 0
    4       (-1, -3) 0     feature 2: below -2
    ======= ======== ===== ===================================================

    The paper gives the centres, the noise and the sizes, and leaves the labels open. These
    labels make feature 1 the best single feature (it is right on 55 of the 70 points, feature 2
    on 50, and an L1-penalised logistic regression picks it first), and no straight line
    separates the classes, so a full model that bends is worth having.

    With each feature at price 1, a system that reads feature 1 can settle cluster 1 alone and
    must send the rest on: 120/70 = 1.714 per point. A system that reads feature 2 sends clusters
    1 and 2 on and settles 3 and 4 itself: 110/70 = 1.571. Both make no error. With clusters of
    equal size the same two cost 1.75 and 1.5, the numbers in the text of the paper. To reach
    them, at least 4/7 of the points (1/2 when equal) must be allowed through to the full model.

    Parameters
    ----------
    equal : bool, default=False
        False: 20, 20, 15 and 15 points, as in the paper's appendix. True: 20 points each. The
        features as they stand are then equally good for the first step of an L1 path (feature 1
        still wins once both are scaled to unit variance).
    random_state : int, RandomState instance or None, default=0
        Draws the noise (standard deviation 0.01) and the order of the rows.

    Returns
    -------
    X : ndarray of shape (70, 2) or (80, 2)
        The points. Rounded to integers, a row is the centre of its cluster.
    y : ndarray of shape (70,) or (80,)
        The labels of the table above.

    Examples
    --------
    >>> from sparing.datasets import make_synthetic2
    >>> X, y = make_synthetic2()
    >>> X.shape, float(y.mean())
    ((70, 2), 0.5)
    """
    random = check_random_state(random_state)
    cluster = np.repeat(np.arange(4), [20, 20, 20, 20] if equal else [20, 20, 15, 15])
    # Shuffled: folds taken in order from rows sorted by cluster would leave whole clusters out.
    cluster = random.permutation(cluster)
    X = _CENTRES[cluster] + _NOISE * random.standard_normal((len(cluster), 2))
    return X, _LABELS[cluster]
