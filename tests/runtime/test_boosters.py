import lightgbm
import numpy as np
import pytest

from sparing.runtime import BundleError
from sparing.runtime._boosters import check_booster


def booster(**params):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 2] = rng.integers(0, 6, 300)
    y = (X[:, 0] + 2 * (X[:, 2] % 2) > 1).astype(float)
    if params.get("num_class") == 3:
        y += X[:, 1] > 1
    settings = {"objective": "binary", "num_leaves": 6, "verbose": -1, "num_threads": 1, **params}
    how = {"min_data_per_group": 1, "cat_smooth": 1.0, "max_cat_to_onehot": 1}
    data = lightgbm.Dataset(X, y, categorical_feature=[2], params=how)
    return lightgbm.train(settings, data, 3)


@pytest.mark.parametrize(
    "params", [{}, {"objective": "multiclass", "num_class": 3}, {"boosting": "dart"}]
)
def test_models_that_lightgbm_wrote_pass(params):
    text = booster(**params).model_to_string()
    assert "num_cat=1" in text or "num_cat=2" in text
    check_booster(text, "x")


TEXT = booster().model_to_string()
SLIM = TEXT[: TEXT.index("tree_sizes=")] + TEXT[TEXT.index("\n\nTree=0") :]
"""Without the sizes, which would notice most changes by themselves."""


def line(name, change, text=SLIM, count=1):
    """The text with one line changed, the first that has the name."""
    lines = text.split("\n")
    place = next(i for i, entry in enumerate(lines) if entry.startswith(name + "="))
    value = lines[place].split("=", 1)[1]
    new = change(value) if callable(change) else change
    return "\n".join(
        [*lines[:place], *([] if new is None else [f"{name}={new}"]), *lines[place + 1 :]]
    )


def nth(place, value):
    return lambda text: " ".join(
        str(value) if i == place else entry for i, entry in enumerate(text.split(" "))
    )


FORGED = {
    "no tree": "",
    "other text": "import os\n",
    "other version": SLIM.replace("version=v4", "version=v9"),
    "NUL": SLIM + "\0",
    "no columns": line("max_feature_idx", "-1"),
    "fewer columns than used": line("max_feature_idx", "0"),
    "huge number": line("max_feature_idx", "99999999999"),
    "outputs that do not fit": line("num_tree_per_iteration", "2"),
    "no outputs": line("num_tree_per_iteration", "0"),
    "no class": line("num_class", "0"),
    "classes of text": line("num_class", "x"),
    "names missing": line("feature_names", "a b"),
    "head twice": SLIM.replace("num_class=1", "num_class=1\nnum_class=1"),
    "column outside": line("split_feature", nth(0, 77)),
    "negative column": line("split_feature", nth(0, -1)),
    "child outside": line("left_child", nth(0, 500)),
    "leaf outside": line("left_child", nth(0, -500)),
    "circle": line("left_child", nth(0, 0)),
    "leaf twice": line("right_child", nth(1, -1)),
    "list too short": line("threshold", "0.5"),
    "threshold nan": line("threshold", nth(0, "nan")),
    "threshold of text": line("threshold", nth(0, "x")),
    "unknown decision": line("decision_type", nth(0, 99)),
    "leaf missing": line("leaf_value", None),
    "leaf nan": line("leaf_value", nth(0, "nan")),
    "leaf infinite": line("leaf_value", nth(0, "inf")),
    "no leaves": line("num_leaves", "0"),
    "many leaves": line("num_leaves", "4000000"),
    "linear leaves": line("is_linear", "1"),
    "categories uncounted": SLIM.replace("num_cat=1", "num_cat=0").replace(
        "num_cat=2", "num_cat=1"
    ),
    "set too large": line("cat_threshold", "99999999999"),
    "set of categories outside": line("cat_boundaries", nth(1, 900)),
    "sets longer": line("cat_threshold", "1 1 1"),
    "tree renamed": SLIM.replace("Tree=1\n", "Tree=7\n"),
    "truncated": SLIM[: SLIM.index("end of trees")],
    "no trees": SLIM[: SLIM.index("\n\nTree=0")] + "\nend of trees\n",
    "sizes that lead astray": line("tree_sizes", nth(0, 5), TEXT),
    "sizes too few": line("tree_sizes", "10", TEXT),
    "negative sizes": line("tree_sizes", nth(0, -5), TEXT),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_models_are_refused_before_lightgbm_sees_them(name):
    assert FORGED[name] not in (SLIM, TEXT)
    with pytest.raises(BundleError, match="x is not a sound LightGBM model"):
        check_booster(FORGED[name], "x")


def test_what_is_forged_here_was_sound():
    check_booster(SLIM, "x")
    check_booster(TEXT, "x")
    np.testing.assert_array_equal(
        lightgbm.Booster(model_str=SLIM).predict(np.zeros((1, 3))),
        booster().predict(np.zeros((1, 3))),
    )
