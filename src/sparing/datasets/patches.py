"""Features of images from small patches, after Coates, Ng and Lee (2011): many numbers that each can have a price.

Patches of the training images are normalised, whitened and clustered by k-means. A patch activates a centroid by how
much closer than the average centroid it is; activations are summed over the regions of a grid. With the defaults and
colour images: 100 centroids x 4 quadrants = 400 features, those of CIFAR-10 in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import MiniBatchKMeans
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["KMeansPatches"]

Singles = NDArray[np.float32]

_BATCH_BYTES = 32 * 2**20
"""Memory of the patches of the images that one job transforms at a time."""


class KMeansPatches(TransformerMixin, BaseEstimator):
    """Triangle activations of k-means centroids of image patches, summed over a grid of regions.

    Parameters
    ----------
    n_centroids : int, default=100
    image_shape : tuple (height, width) or (height, width, channels), optional
        Shape of the images when X is a table with one image per row. None takes the shape of X.
    patch_size : int, default=6
        Side of the patches in pixels.
    stride : int, default=1
        Step from one patch to the next, when images are transformed.
    pooling : int, default=2
        Regions along each side; 2 means quadrants.
    n_patches : int, default=100000
        Patches drawn from the training images to learn from.
    contrast_floor : float, default=1.5e-4
        Added to the variance of a patch, in units of the squared range of the pixels, before it is brought to
        variance 1: flat patches stay flat. Coates et al. add 10 to pixels from 0 to 255.
    whitening_floor : float, default=0.1
        Added to the eigenvalues of the patches' covariance: directions in which patches hardly differ stay small.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Batches of images transformed at the same time, in threads.

    Attributes
    ----------
    image_shape_ : tuple (height, width, channels)
    pixel_range_ : float
        Largest minus smallest pixel of the training images.
    patch_mean_ : ndarray of shape (n_pixels,)
        Mean of the normalised patches; their pixels in the order (row, column, channel).
    whitening_ : ndarray of shape (n_pixels, n_pixels)
        ZCA: symmetric, takes normalised patches without their mean to whitened ones.
    centroids_ : ndarray of shape (n_centroids, n_pixels)
        Of the whitened patches.
    n_features_in_ : int
        Height x width x channels.

    Notes
    -----
    A. Coates, H. Lee, A. Y. Ng, An analysis of single-layer networks in unsupervised feature learning, AISTATS 2011.
    Their k-means runs on all patches, this one on mini-batches of them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sparing.datasets import KMeansPatches
    >>> digits = load_digits()
    >>> patches = KMeansPatches(10, patch_size=3, random_state=0).fit(digits.images)
    >>> patches.transform(digits.images).shape
    (1797, 40)
    >>> table = KMeansPatches(10, image_shape=(8, 8), patch_size=3, random_state=0)
    >>> bool(np.allclose(table.fit_transform(digits.data), patches.transform(digits.images)))
    True
    >>> patches.get_feature_names_out()[[0, -1]].tolist()
    ['centroid0_region0_0', 'centroid9_region1_1']
    """

    image_shape_: tuple[int, int, int]
    centroids_: Singles
    patch_mean_: Singles
    whitening_: Singles

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_centroids": [Interval(Integral, 1, None, closed="left")],
        "image_shape": [tuple, list, None],
        "patch_size": [Interval(Integral, 1, None, closed="left")],
        "stride": [Interval(Integral, 1, None, closed="left")],
        "pooling": [Interval(Integral, 1, None, closed="left")],
        "n_patches": [Interval(Integral, 1, None, closed="left")],
        "contrast_floor": [Interval(Real, 0, None, closed="neither")],
        "whitening_floor": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_centroids: int = 100,
        *,
        image_shape: tuple[int, ...] | None = None,
        patch_size: int = 6,
        stride: int = 1,
        pooling: int = 2,
        n_patches: int = 100_000,
        contrast_floor: float = 1.5e-4,
        whitening_floor: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_centroids = n_centroids
        self.image_shape = image_shape
        self.patch_size = patch_size
        self.stride = stride
        self.pooling = pooling
        self.n_patches = n_patches
        self.contrast_floor = contrast_floor
        self.whitening_floor = whitening_floor
        self.random_state = random_state
        self.n_jobs = n_jobs

    # -- learning -------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn the whitening and the centroids.

        Parameters
        ----------
        X : array of shape (n, height, width, channels) or (n, height, width), or (n, height x width x channels)
            Images; tables need ``image_shape``. Integers and floats of any range.
        y : ignored

        Returns
        -------
        self
        """
        self._validate_params()
        images = self._images(X, reset=True)
        self._check_sizes()
        if self.n_patches < self.n_centroids:
            raise ValueError(
                f"n_patches is {self.n_patches}: {self.n_centroids} centroids need at least as many patches."
            )
        self.pixel_range_ = float(images.max()) - float(images.min())
        random = check_random_state(self.random_state)
        patches = self._normalised(self._drawn(images, random))
        self.patch_mean_ = patches.mean(axis=0)
        patches -= self.patch_mean_
        self.whitening_ = _whitening(patches, self.whitening_floor)
        clusters = MiniBatchKMeans(
            self.n_centroids,
            batch_size=max(4096, 10 * self.n_centroids),
            n_init=1,
            random_state=random.randint(np.iinfo(np.int32).max),
        ).fit(patches @ self.whitening_)
        self.centroids_ = clusters.cluster_centers_.astype(np.float32)
        return self

    def _drawn(self, images: NDArray[Any], random: np.random.RandomState) -> Singles:
        """Patches at random places of random images, one per row."""
        windows = _windows(images, self.patch_size, 1)
        places = [random.randint(length, size=self.n_patches) for length in windows.shape[:3]]
        return windows[tuple(places)].reshape(self.n_patches, -1).astype(np.float32)

    # -- features -------------------------------------------------------------------------------

    def transform(self, X: Any) -> Singles:
        """Features of images.

        Parameters
        ----------
        X : images, as in :meth:`fit`

        Returns
        -------
        float32 array of shape (n, pooling² x n_centroids)
            Region by region, in each the sums of the activations of all centroids.
        """
        check_is_fitted(self)
        images = self._images(X, reset=False)
        project, offset = self._projection()
        pool = self._pool()
        batches = list(self._batches(len(images)))
        done = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._features)(images[rows], project, offset, pool) for rows in batches
        )
        return np.concatenate(done)

    def _projection(self) -> tuple[Singles, Singles]:
        """Matrix and offset that take normalised patches to whitened ones and to products with the centroids."""
        project = np.hstack([self.whitening_, self.whitening_ @ self.centroids_.T])
        return project, self.patch_mean_ @ project

    def _pool(self) -> Singles:
        """Regions by positions of patches, 1 where a position is in a region."""
        height, width = self._positions()
        rows, columns = (
            np.arange(n) * self.pooling // n == np.arange(self.pooling)[:, None]
            for n in (height, width)
        )
        return np.kron(rows, columns).astype(np.float32)

    def _features(
        self, images: NDArray[Any], project: Singles, offset: Singles, pool: Singles
    ) -> Singles:
        windows = _windows(images, self.patch_size, self.stride)
        patches = windows.reshape(-1, len(project)).astype(np.float32)
        product = self._normalised(patches) @ project
        product -= offset
        n_pixels = len(project)
        whitened, similar = product[:, :n_pixels], product[:, n_pixels:]
        # Squared distances to all centroids, in place: |x|² − 2 x·c + |c|².
        distance = similar
        distance *= -2
        distance += np.einsum("ij,ij->i", whitened, whitened)[:, None]
        distance += np.einsum("ij,ij->i", self.centroids_, self.centroids_)
        np.maximum(distance, 0, out=distance)
        np.sqrt(distance, out=distance)
        active = distance.mean(axis=1, keepdims=True) - distance
        np.maximum(active, 0, out=active)
        by_image = active.reshape(len(images), -1, len(self.centroids_))
        return np.matmul(pool, by_image).reshape(len(images), -1)

    def _normalised(self, patches: Singles) -> Singles:
        """Patches brought to mean 0 and about variance 1, in place."""
        patches -= patches.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", patches, patches) / patches.shape[1]
        floor = self.contrast_floor * (self.pixel_range_ or 1.0) ** 2
        patches /= np.sqrt(variance + np.float32(floor))[:, None]
        return patches

    def _batches(self, n_images: int) -> Iterator[slice]:
        height, width = self._positions()
        n_pixels = self.centroids_.shape[1]
        per_image = 4 * height * width * (2 * n_pixels + 2 * len(self.centroids_))
        size = max(1, _BATCH_BYTES // per_image)
        for start in range(0, n_images, size):
            yield slice(start, start + size)

    def _positions(self) -> tuple[int, int]:
        """Positions of patches along the two sides of an image."""
        height, width, _ = self.image_shape_
        rows, columns = ((side - self.patch_size) // self.stride + 1 for side in (height, width))
        return rows, columns

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Names of the features: centroid, then row and column of the region."""
        check_is_fitted(self)
        return np.array(
            [
                f"centroid{centroid}_region{row}_{column}"
                for row in range(self.pooling)
                for column in range(self.pooling)
                for centroid in range(self.n_centroids)
            ],
            dtype=object,
        )

    # -- checks ---------------------------------------------------------------------------------

    def _images(self, X: Any, *, reset: bool) -> NDArray[Any]:
        """Checked images of shape (n, height, width, channels), not copied."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        shape = None
        if len(X.shape) in (3, 4):
            shape = tuple(X.shape[1:])
            X = np.reshape(X, (X.shape[0], math.prod(shape)))
        X = validate_data(self, X, reset=reset)
        if shape is None:
            shape = self.image_shape
        if shape is None:
            raise ValueError(
                f"X has shape {X.shape}: give image_shape=(height, width, channels) for a table of images, or images "
                "as an array of shape (n, height, width, channels)."
            )
        found = wanted = _with_channels(shape)
        if not reset:
            wanted = self.image_shape_
        elif self.image_shape is not None:
            wanted = _with_channels(self.image_shape)
        if found != wanted or math.prod(found) != X.shape[1]:
            raise ValueError(
                f"The images of X, {X.shape[1]} numbers each, are not of shape {wanted}"
                + (f" but {found}." if found != wanted else ".")
            )
        if reset:
            self.image_shape_ = found
        return X.reshape(-1, *found)

    def _check_sizes(self) -> None:
        sides = self.image_shape_[:2]
        if self.patch_size > min(sides):
            raise ValueError(
                f"patch_size is {self.patch_size}, the images have {sides[0]} x {sides[1]} pixels."
            )
        if self.pooling > min(self._positions()):
            raise ValueError(
                f"pooling is {self.pooling}, there are only {self._positions()} positions of patches: take a smaller "
                "stride or fewer regions."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = self.image_shape is not None
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _with_channels(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Height, width and channels; images without channels have one."""
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"The shape of an image is (height, width) or (height, width, channels), not {shape}."
        )
    height, width, channels = (*shape, 1)[:3]
    return int(height), int(width), int(channels)


def _windows(images: NDArray[Any], side: int, stride: int) -> NDArray[Any]:
    """All patches, a view of shape (n, rows, columns, side, side, channels)."""
    windows = sliding_window_view(images, (side, side), axis=(1, 2))
    return np.moveaxis(windows[:, ::stride, ::stride], 3, -1)


def _whitening(patches: Singles, floor: float) -> Singles:
    """ZCA of patches without their mean: the symmetric matrix that makes their covariance close to one."""
    covariance = (patches.T @ patches).astype(np.float64) / len(patches)
    values, vectors = np.linalg.eigh(covariance)
    scale = 1.0 / np.sqrt(np.maximum(values, 0.0) + floor)
    return ((vectors * scale) @ vectors.T).astype(np.float32)
