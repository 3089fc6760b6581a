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
    check_booster(text, "x", settings=True)
    with pytest.raises(BundleError, match=r"after its trees it says|trained for"):
        check_booster(text, "x")


WHOLE = booster().model_to_string()
TEXT = WHOLE[: WHOLE.index("end of trees\n") + len("end of trees\n")]
TEXT = TEXT.replace("objective=binary sigmoid:1\n", "")
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
    "letters in a list nobody reads": line("internal_value", nth(1, "0.09c8")),
    "list nobody reads too long": line("leaf_weight", nth(1, "5 2")),
    "unknown line": SLIM.replace("shrinkage=", "os=1\nshrinkage=", 1),
    "line without a name": SLIM.replace("shrinkage=", "os\nshrinkage=", 1),
    "objective": SLIM.replace("num_class=1", "num_class=1\nobjective=binary"),
    "sizes that lead astray": line("tree_sizes", nth(0, 5), TEXT),
    "sizes too few": line("tree_sizes", "10", TEXT),
    "negative sizes": line("tree_sizes", nth(0, -5), TEXT),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_models_are_refused_before_lightgbm_sees_them(name):
    assert FORGED[name] not in (SLIM, TEXT)
    with pytest.raises(BundleError, match="x is not a sound LightGBM model"):
        check_booster(FORGED[name], "x")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *(
            ("[header: 0]", "[header:\n0]"),
            ("[header: 0]", "[header: [0]"),
            ("end of par", "[ par"),
        ),
        *(("end of trees", "end of trees\nend of trees"), ("Column_0=", "Column_0=x")),
    ],
)
def test_settings_that_lightgbm_would_fall_over_are_refused(old, new):
    assert old in WHOLE
    with pytest.raises(BundleError, match="x is not a sound LightGBM model"):
        check_booster(WHOLE.replace(old, new), "x", settings=True)


def test_what_is_forged_here_was_sound():
    check_booster(SLIM, "x")
    check_booster(TEXT, "x")
    rows = np.zeros((1, 3))
    np.testing.assert_array_equal(
        lightgbm.Booster(model_str=SLIM).predict(rows), booster().predict(rows, raw_score=True)
    )


def test_trees_of_a_single_leaf_pass():
    how = {"objective": "binary", "min_data_in_leaf": 90, "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(np.arange(100.0)[:, None], np.arange(100) % 2)
    text = lightgbm.train(how, data, 2).model_to_string()
    assert "num_leaves=1\n" in text
    check_booster(text, "x", settings=True)
