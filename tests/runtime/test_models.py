"""Stored scikit-learn models: exact, repeatable, and looked at before they are used."""

import io
import json
import sys

import numpy as np
import pytest
from forged import Bomb
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from sparing.runtime import BundleError
from sparing.runtime import _models as models
from sparing.runtime._archive import stored_entries, zipped
from sparing.runtime._models import check_model, pack_model, unpack_model

lightgbm = pytest.importorskip("lightgbm")
pytest.importorskip("skops")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
X[:, 2] = RNG.integers(0, 5, 120)
Y = (X[:, 0] + (X[:, 2] % 2) + 0.2 * RNG.normal(size=120) > 0.4).astype(int)

MODELS = [
    LogisticRegression(),
    SVC(),
    make_pipeline(StandardScaler(), GaussianNB()),
    RandomForestClassifier(3, random_state=0),
    ExtraTreesClassifier(3, random_state=0),
    DecisionTreeClassifier(max_depth=3),
    GradientBoostingClassifier(n_estimators=3),
    HistGradientBoostingClassifier(max_iter=3, categorical_features=[2], min_samples_leaf=5),
    BaggingClassifier(n_estimators=2, max_features=2, random_state=0),
    VotingClassifier(
        [("a", RandomForestClassifier(2, random_state=0)), ("b", GaussianNB())], voting="soft"
    ),
    CalibratedClassifierCV(LinearSVC(), cv=2),
    MLPClassifier((3,), max_iter=2000, tol=1e-2, random_state=0),
    TunedThresholdClassifierCV(LogisticRegression(), cv=2),
    lightgbm.LGBMClassifier(n_estimators=3, verbose=-1, n_jobs=1),
]


def name_of(model):
    return type(model).__name__


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_models_come_back_exactly_and_with_the_same_bytes(model):
    model.fit(X, Y)
    data = pack_model(model, "full")
    assert data == pack_model(model, "full")
    check_model(data, "m", ())
    again = unpack_model(data, "m", ())
    assert pack_model(again, "full") == data
    for output in ("predict_proba", "decision_function", "predict"):
        if hasattr(model, output):
            np.testing.assert_array_equal(getattr(again, output)(X), getattr(model, output)(X))


# -- forged models ------------------------------------------------------------------------------------


def changed(data, change):
    """A stored model with its schema, or the arrays in it, changed."""
    files = stored_entries(data, "m")
    schema = json.loads(files.pop("schema.json"))
    change(schema, files)
    return zipped(files | {"schema.json": json.dumps(schema).encode()}, compress=False)


def attribute(node, name):
    return node["content"]["content"][name]


def array_changed(node, files, change):
    """Exchange the array of a node for a changed copy under another name."""
    array = np.load(io.BytesIO(files[node["file"]]))
    array = change(array)
    buffer = io.BytesIO()
    np.save(buffer, array)
    node["file"] = f"forged{len(files)}.npy"
    files[node["file"]] = buffer.getvalue()


def first_tree(schema):
    return next(n for n in models._nodes(schema) if n.get("__loader__") == "TreeNode")


def field(name, place, value):
    def change(nodes):
        nodes[name][place] = value
        return nodes

    return change


def forest():
    return pack_model(RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, Y), "full")


TREES = {
    "child outside": (field("left_child", 0, 9999), "point outside"),
    "child far below": (field("right_child", 0, -9), "point outside"),
    "circle": (field("left_child", 0, 0), "point outside"),
    "column outside": (field("feature", 0, 4), "column outside its 4"),
    "negative column": (field("feature", 0, -7), "column outside its 4"),
    "nodes missing": (lambda nodes: nodes[:-1], "node_count"),
    "no nodes": (lambda nodes: nodes[:0], "node_count"),
}


@pytest.mark.parametrize("name", TREES)
def test_forged_trees_are_refused(name):
    change, message = TREES[name]

    def forge(schema, files):
        array_changed(first_tree(schema)["content"]["content"]["nodes"], files, change)

    with pytest.raises(BundleError, match=message):
        check_model(changed(forest(), forge), "m", ())


def test_trees_of_another_width_than_their_forest_are_refused():
    other = pack_model(RandomForestClassifier(2, random_state=0).fit(np.c_[X, X], Y), "full")

    def wider(schema, files):
        foreign = stored_entries(other, "m")
        tree = first_tree(json.loads(foreign["schema.json"]))
        files.update({n: d for n, d in foreign.items() if n != "schema.json"})
        mine = first_tree(schema)
        mine.clear()
        mine.update(tree)

    with pytest.raises(BundleError, match="not about the 4 columns"):
        check_model(changed(forest(), wider), "m", ())

    def narrower(schema, files):
        attribute(schema, "n_features_in_")["content"] = "2"

    with pytest.raises(BundleError, match="not about the 2 columns"):
        check_model(changed(forest(), narrower), "m", ())


HISTOGRAM = {
    "child outside": (field("left", 0, 9999), "point outside"),
    "column outside": (field("feature_idx", 0, 4), "column outside its 4"),
    "set outside": (lambda nodes: _categorical(nodes, 99), "set of categories"),
    "not a category": (lambda nodes: _categorical(nodes, 0, feature=3), "set of categories"),
}


# The model puts its categorical columns first, here the only one.
def _categorical(nodes, bitset, feature=0):
    nodes["is_categorical"][0], nodes["bitset_idx"][0] = 1, bitset
    nodes["feature_idx"][0] = feature
    return nodes


@pytest.mark.parametrize("name", HISTOGRAM)
def test_forged_histogram_trees_are_refused(name):
    change, message = HISTOGRAM[name]
    data = pack_model(MODELS[7].fit(X, Y), "full")

    def forge(schema, files):
        tree = next(n for n in models._nodes(schema) if models._type(n) == models._HIST_TREE)
        array_changed(attribute(tree, "nodes"), files, change)

    with pytest.raises(BundleError, match=message):
        check_model(changed(data, forge), "m", ())


def test_a_histogram_tree_on_its_own_is_refused():
    data = pack_model(MODELS[7].fit(X, Y), "full")

    def alone(schema, files):
        tree = next(n for n in models._nodes(schema) if models._type(n) == models._HIST_TREE)
        copy = json.loads(json.dumps(tree))
        schema["content"]["content"] = {"first": copy}
        schema["__class__"], schema["__module__"] = "GaussianNB", "sklearn.naive_bayes"
        schema["content"]["key_types"]["content"] = schema["content"]["key_types"]["content"][:1]

    with pytest.raises(BundleError, match="outside of one"):
        check_model(changed(data, alone), "m", ())


def test_a_forged_booster_inside_a_model_is_refused_before_lightgbm_sees_it(monkeypatch):
    data = pack_model(MODELS[-1].fit(X, Y), "full")

    def forge(schema, files):
        booster = next(n for n in models._nodes(schema) if models._type(n) == models._BOOSTER)
        node = attribute(booster, "_handle")
        text = json.loads(node["content"])
        place = text.index("left_child=") + len("left_child=")
        node["content"] = json.dumps(text[:place] + "7" + text[place + 1 :])

    with pytest.raises(BundleError, match="not a sound LightGBM model"):
        check_model(changed(data, forge), "m", ())


def stored_otherwise(kind, loader):
    def forge(schema, files):
        node = next(n for n in models._nodes(schema) if models._type(n) == kind)
        node["__loader__"] = loader
        # What would be built: the constructor called with these arguments, whatever the content says.
        node["__reduce__"] = {"args": first_tuple(schema)}

    return forge


def first_tuple(schema):
    return next(
        (n for n in models._nodes(schema) if n.get("__loader__") == "TupleNode"),
        {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": []},
    )


@pytest.mark.parametrize(
    ("kind", "place"), [(models._TREE, 3), (models._HIST_TREE, 7), (models._BOOSTER, -1)]
)
def test_what_is_looked_at_may_not_be_stored_in_another_way(kind, place):
    data = pack_model(MODELS[place].fit(X, Y), "full")
    with pytest.raises(BundleError, match=r"that is stored as LossNode|not about the 4 columns"):
        check_model(changed(data, stored_otherwise(kind, "LossNode")), "m", ())


def test_attributes_are_where_they_are_looked_for():
    def forge(schema, files):
        tree = next(
            n for n in models._nodes(schema) if n.get("__class__") == "DecisionTreeClassifier"
        )
        tree["content"]["__loader__"] = "DefaultDictNode"

    with pytest.raises(BundleError, match=r"not a plain dict|cannot be read by skops"):
        check_model(changed(forest(), forge), "m", ())


def test_a_schema_that_refers_back_to_itself_is_refused():
    def identify(schema, files):
        first_tree(schema)["__id__"] = 7

    with pytest.raises(BundleError, match="refers back"):
        check_model(changed(forest(), identify), "m", ())


def function_of_my_own(values):
    return values


def test_functions_and_types_that_are_not_trusted_are_refused(tmp_path, monkeypatch):
    data = pack_model(
        make_pipeline(FunctionTransformer(function_of_my_own), GaussianNB()).fit(X, Y), "full"
    )
    name = f"{__name__}.function_of_my_own"
    with pytest.raises(BundleError, match=f"not trusted: {name}"):
        check_model(data, "m", ())
    check_model(data, "m", [name])
    check_model(data, "m", None)

    def evil(schema, files):
        schema["__module__"], schema["__class__"] = "forged_module", "Evil"

    # Not even imported: a module may do harm by that alone.
    (tmp_path / "forged_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BundleError, match=r"not trusted: forged_module\.Evil"):
        check_model(changed(data, evil), "m", [name])
    assert "forged_module" not in sys.modules


def test_pickles_inside_are_refused_and_never_run(tmp_path):
    cells = np.empty(1, dtype=object)
    cells[0] = Bomb(tmp_path / "trap")
    buffer = io.BytesIO()
    np.save(buffer, cells, allow_pickle=True)

    def forge(schema, files):
        name = next(iter(files))
        files[name] = buffer.getvalue()

    with pytest.raises(BundleError, match="pickled objects"):
        check_model(changed(forest(), forge), "m", ())
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    "schema",
    [
        *(b"{}", b"[]", b'{"__loader__": "OsNode"}', b'{"protocol": 2}', b'{"protocol": 99}'),
        b'{"__class__": 1, "__module__": 2, "__loader__": "ObjectNode", "protocol": 2}',
        json.dumps({"protocol": 2, "a": 1}).replace("1", "[" * 300 + "]" * 300).encode(),
    ],
)
def test_schemas_that_are_none_are_refused(schema):
    with pytest.raises(BundleError, match="m"):
        check_model(zipped({"schema.json": schema}, compress=False), "m", ())
    with pytest.raises(BundleError, match=r"no schema\.json"):
        check_model(zipped({"other.json": schema}, compress=False), "m", ())


def test_what_skops_cannot_store_is_named_with_a_way_out():
    class Local(GaussianNB):
        def __getstate__(self):
            raise TypeError("no")

    with pytest.raises(BundleError, match=r"Local of stage 'full' cannot be stored.*outside="):
        pack_model(Local().fit(X, Y), "stage 'full'")


def test_what_could_not_be_read_again_is_not_written():
    model = lightgbm.LGBMClassifier(n_estimators=2, linear_tree=True, verbose=-1, n_jobs=1)
    with pytest.raises(BundleError, match=r"LGBMClassifier of stage 'full' is not a sound.*linear"):
        pack_model(model.fit(X, Y), "stage 'full'")


def test_without_skops_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"sparing\[store\].*outside="):
        pack_model(GaussianNB().fit(X, Y), "full")


def test_no_memory_of_the_process_is_in_the_file():
    data = pack_model(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, Y), "full")
    files = stored_entries(data, "m")
    nodes = next(
        array
        for array in (np.load(io.BytesIO(d)) for n, d in files.items() if n.endswith(".npy"))
        if array.dtype.names
    )
    clean = np.zeros(nodes.shape, nodes.dtype)
    for name in nodes.dtype.names:
        clean[name] = nodes[name]
    assert clean.tobytes() == nodes.tobytes()
    assert b"__id__" not in files["schema.json"]
