import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparing.datasets import KMeansPatches, fetch_cifar10, patches


def pictures(n=20, height=11, width=9, channels=3, seed=0):
    """Noise over soft stripes, as bytes."""
    rng = np.random.default_rng(seed)
    stripes = np.cumsum(rng.normal(size=(n, height, width, channels)), axis=1)
    noise = rng.normal(size=stripes.shape)
    return np.clip(128 + 25 * stripes + 10 * noise, 0, 255).astype(np.uint8)


def small(**settings):
    given = {"n_centroids": 7, "patch_size": 4, "n_patches": 500, "random_state": 0} | settings
    return KMeansPatches(**given)


def slowly(model, image):
    """Features of one image, patch by patch, as the paper of Coates et al. says."""
    size, step = model.patch_size, model.stride
    image = np.asarray(image, dtype=float)
    corners = [range(0, side - size + 1, step) for side in image.shape[:2]]
    features = np.zeros((model.pooling, model.pooling, model.n_centroids))
    for i, top in enumerate(corners[0]):
        for j, left in enumerate(corners[1]):
            patch = image[top : top + size, left : left + size].ravel()
            floor = model.contrast_floor * model.pixel_range_**2
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + floor)
            patch = (patch - model.patch_mean_) @ model.whitening_
            distance = np.sqrt(((patch - model.centroids_) ** 2).sum(axis=1))
            region = [k * model.pooling // len(c) for k, c in zip((i, j), corners, strict=True)]
            features[tuple(region)] += np.maximum(0, distance.mean() - distance)
    return features.ravel()


@pytest.mark.parametrize("settings", [{}, {"stride": 2}, {"pooling": 3}, {"patch_size": 1}])
def test_features_are_those_of_the_definition(settings):
    X = pictures()
    model = small(**settings).fit(X)
    found = model.transform(X[:3])
    assert found.dtype == np.float32
    assert found.shape == (3, len(model.get_feature_names_out()))
    np.testing.assert_allclose(
        found, [slowly(model, image) for image in X[:3]], rtol=2e-3, atol=2e-3
    )


def test_whitened_patches_have_about_unit_covariance():
    model = small(n_patches=5000, whitening_floor=1e-3).fit(pictures(60, 16, 16))
    drawn = model._normalised(model._drawn(pictures(60, 16, 16), np.random.RandomState(1)))
    white = (drawn - model.patch_mean_) @ model.whitening_
    values = np.linalg.eigvalsh(np.cov(white.T))
    assert 0.8 < np.median(values) < 1.2
    np.testing.assert_allclose(model.whitening_, model.whitening_.T, atol=1e-5)


def test_regions_add_up():
    X = pictures()
    whole, quarters = (small(pooling=n).fit_transform(X) for n in (1, 2))
    np.testing.assert_allclose(whole, quarters.reshape(len(X), 4, 7).sum(axis=1), rtol=1e-4)


def test_a_change_in_one_corner_changes_one_quadrant():
    X = pictures(5, 12, 12)
    model = small(patch_size=3).fit(X)
    other = X.copy()
    other[:, 0, 0] = 255 - other[:, 0, 0]
    changed = (model.transform(X) != model.transform(other)).reshape(5, 4, 7).any(axis=(0, 2))
    assert changed.tolist() == [True, False, False, False]


def test_brightness_and_units_do_not_matter():
    X = pictures().astype(float)
    found = small().fit_transform(X)
    np.testing.assert_allclose(small().fit_transform(X / 255 - 3), found, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(small().fit_transform(X.astype(np.uint8)), found, rtol=1e-4)


def test_tables_frames_and_images_are_the_same():
    X = pictures()
    flat = X.reshape(len(X), -1)
    found = small().fit_transform(X)
    table = small(image_shape=(11, 9, 3)).fit(flat)
    np.testing.assert_array_equal(table.transform(flat), found)
    np.testing.assert_array_equal(table.transform(X), found)
    frame = pd.DataFrame(flat, columns=[f"p{i}" for i in range(flat.shape[1])])
    np.testing.assert_array_equal(small(image_shape=[11, 9, 3]).fit_transform(frame), found)
    assert table.n_features_in_ == flat.shape[1]
    grey = X[..., 0]
    np.testing.assert_array_equal(
        small().fit_transform(grey), small().fit_transform(grey[..., None])
    )


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_batches_do_not_matter(monkeypatch, n_jobs):
    X = pictures(23)
    model = small(n_jobs=n_jobs).fit(X)
    found = model.transform(X)
    monkeypatch.setattr(patches, "_BATCH_BYTES", 200_000)
    assert 1 < len(list(model._batches(len(X)))) < len(X)
    np.testing.assert_allclose(model.transform(X), found, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(model.transform(X[::-1])[::-1], found, rtol=1e-5, atol=1e-5)


def test_memory_is_bounded():
    model = KMeansPatches(n_patches=200, random_state=0).fit(pictures(2, 32, 32))
    sizes = [rows.stop - rows.start for rows in model._batches(38_229)]
    per_image = 27 * 27 * 4 * (108 + 108 + 100)
    assert max(sizes) * per_image < patches._BATCH_BYTES < 2**26
    assert max(sizes) > 10


def test_four_hundred_features_by_default():
    X = pictures(3, 32, 32)
    model = KMeansPatches(n_patches=300, random_state=0)
    assert model.fit_transform(X).shape == (3, 400)
    names = model.get_feature_names_out()
    assert len(set(names)) == 400
    assert names[[0, 99, 100, 399]].tolist() == [
        "centroid0_region0_0", "centroid99_region0_0", "centroid0_region0_1", "centroid99_region1_1",
    ]  # fmt: skip


def test_the_seed_decides():
    X = pictures()
    np.testing.assert_array_equal(small().fit_transform(X), small().fit_transform(X))
    other = small(random_state=1).fit_transform(X)
    assert not np.allclose(small().fit_transform(X), other)


def test_images_without_contrast():
    found = small(n_centroids=2).fit_transform(np.full((4, 8, 8), 3, dtype=np.uint8))
    np.testing.assert_allclose(found, 0, atol=1e-6)


def test_inside_scikit_learn():
    X = pictures()
    before = X.copy()
    model = small()
    pipe = make_pipeline(model, StandardScaler()).fit(X)
    assert len(pipe.get_feature_names_out()) == 28
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    assert clone(model).get_params() == small().get_params()
    out = model.set_output(transform="pandas").transform(X)
    assert out.columns[0] == "centroid0_region0_0"
    np.testing.assert_array_equal(X, before)


class Pixels(KMeansPatches):
    """Takes any table for images of one pixel with many channels: scikit-learn's checks bring tables of any width."""

    def _images(self, X, *, reset):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        self.image_shape = (1, 1, shape[1]) if len(shape) == 2 else None
        try:
            return super()._images(X, reset=reset)
        finally:
            self.image_shape = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


@parametrize_with_checks([Pixels(2, patch_size=1, pooling=1, n_patches=50)])
def test_common_checks(estimator, check):
    check(estimator)


def test_what_is_wrong_is_said():
    X = pictures()
    flat = X.reshape(len(X), -1)
    with pytest.raises(ValueError, match=r"X has shape \(20, 297\): give image_shape"):
        small().fit(flat)
    with pytest.raises(ValueError, match=r"297 numbers each, are not of shape \(8, 8, 3\)"):
        small(image_shape=(8, 8, 3)).fit(flat)
    with pytest.raises(ValueError, match=r"not of shape \(11, 9, 3\) but \(9, 11, 3\)"):
        small().fit(X).transform(X.transpose(0, 2, 1, 3))
    with pytest.raises(ValueError, match="297 features"):
        small().fit(X).transform(X[:, :8])
    with pytest.raises(ValueError, match="patch_size is 10, the images have 11 x 9 pixels"):
        small(patch_size=10).fit(X)
    with pytest.raises(ValueError, match=r"pooling is 7, there are only \(8, 6\) positions"):
        small(pooling=7).fit(X)
    with pytest.raises(ValueError, match="n_patches is 3: 7 centroids need"):
        small(n_patches=3).fit(X)
    with pytest.raises(ValueError, match=r"not \(297,\)"):
        small(image_shape=(297,)).fit(flat)
    with pytest.raises(ValueError, match="NaN"):
        small().fit(np.full((2, 8, 8), np.nan))
    with pytest.raises(ValueError, match="0 sample"):
        small().fit(X[:0])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        small(image_shape=(11, 9, 3)).fit(scipy.sparse.csr_array(flat))
    with pytest.raises(ValueError, match="'stride' parameter"):
        small(stride=0).fit(X)


@pytest.mark.slow
def test_features_tell_the_classes_of_cifar10(real_data):
    images = fetch_cifar10(binary=True, data_home=real_data)
    rows = images.split.train[:3000]
    X = KMeansPatches(random_state=0).fit_transform(images.data[rows])
    # Chance is 0.5; the same model on the pixels' first hundred principal components reaches 0.62.
    model = make_pipeline(StandardScaler(), SVC(C=3))
    assert cross_val_score(model, X, images.target[rows], cv=3).mean() > 0.69
