"""Fitted scikit-learn models through skops: types from an explicit list, and trees looked at before they are used.

skops stores a model as data and builds it from types it is told to trust; it looks at types, not at content. The nodes
of trees hold positions that compiled code follows blindly, which is why skops does not trust trees by default. Here
they are trusted **after a look**: children come after their parent, columns exist, counts agree. LightGBM models inside
go through the same checks as the library's own boosters.

What remains to be trusted: the compiled code of other models (support vector machines, for one) on numbers of the right
type and shape, and every type that a user adds.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparing.runtime._archive import BundleError, read_json, sha256, stored_entries, zipped
from sparing.runtime._arrays import read_array
from sparing.runtime._boosters import check_booster

_SCHEMA = "schema.json"
_TREE = "sklearn.tree._tree.Tree"
_HIST_TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
_BOOSTER = "lightgbm.basic.Booster"

TRUSTED = (
    # Looked at before they are used.
    _TREE,
    _HIST_TREE,
    _BOOSTER,
    # Plain Python around trusted models; what a partial calls must be trusted as well.
    "collections.OrderedDict",
    "functools.partial",
    "lightgbm.sklearn.LGBMClassifier",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.metrics._classification.balanced_accuracy_score",
    "sklearn.metrics._scorer._CurveScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.utils._bunch.Bunch",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
    "sklearn.utils.validation.check_array",
    "sparing.cascade.boosted.NumericBooster",
    "sparing.cascade.differences.WithDifferences",
)
"""Types trusted beside those skops trusts by itself (scikit-learn's public estimators, numpy's types and ufuncs)."""

_LOADERS = {_TREE: "TreeNode", _HIST_TREE: "ObjectNode", _BOOSTER: "ObjectNode"}
"""How skops stores what is looked at; stored in another way it would be built from what nobody looked at."""
_FORESTS = ("RandomForest", "ExtraTrees", "GradientBoosting")
_NESTING = 200
"""Depth of nested containers in a model's schema; real ones stay far below it."""


def _skops() -> Any:
    try:
        import skops.io as skops_io
    except ImportError as error:
        raise ImportError(
            "Storing scikit-learn models needs skops: pip install 'sparing[store]'. A model may also stay outside the "
            "file: save(..., outside=['full'])."
        ) from error
    return skops_io


def pack_model(model: Any, what: str) -> bytes:
    """A fitted model as data: what skops writes, without memory addresses and dates, so that bytes repeat.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> model = LogisticRegression().fit([[0], [1]], [0, 1])
    >>> again = unpack_model(pack_model(model, "full"), "model.skops", ())
    >>> bool((again.predict_proba([[0.3]]) == model.predict_proba([[0.3]])).all())
    True
    """
    skops_io = _skops()
    try:
        raw = skops_io.dumps(model)
    except Exception as error:  # skops raises whatever the model's own state methods raise
        raise BundleError(
            f"The {type(model).__name__} of {what} cannot be stored by skops: {error} Leave it outside, "
            "save(..., outside=[name of its stage]), and give it to load(path, full_model=model)."
        ) from error
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files.pop(_SCHEMA))
    files = {
        name: _without_gaps(data) if name.endswith(".npy") else data for name, data in files.items()
    }
    names = {name: f"{sha256(data)[:24]}.{name.rpartition('.')[2]}" for name, data in files.items()}
    for node in _nodes(schema):
        # Memory addresses: they only say which objects are one, which matters to no prediction.
        node.pop("__id__", None)
        for key, value in node.items():
            if isinstance(value, str) and value in names:
                node[key] = names[value]
    out = {names[name]: data for name, data in files.items()}
    out[_SCHEMA] = json.dumps(schema, separators=(",", ":"), sort_keys=False).encode()
    data = zipped(out, compress=False)
    # What could not be read again is better refused now.
    check_model(data, f"The {type(model).__name__} of {what}", None)
    return data


def _without_gaps(data: bytes) -> bytes:
    """An npy file whose gaps between the fields of a record are 0.

    They hold whatever was in memory: other bytes every time, and nobody's business.
    """
    array = np.load(io.BytesIO(data), allow_pickle=False)
    if array.dtype.names is None:
        return data
    clean = np.zeros(array.shape, array.dtype)  # zeros_like leaves the gaps as they are
    for name in array.dtype.names:
        clean[name] = array[name]
    buffer = io.BytesIO()
    np.save(buffer, clean, allow_pickle=False)
    return buffer.getvalue()


def check_model(data: bytes, what: str, trusted: Sequence[str] | None) -> None:
    """Raise unless a stored model is of trusted types and its trees are sound; nothing is built.

    Parameters
    ----------
    data : what :func:`pack_model` gave.
    what : name of the member, for errors.
    trusted : types the user trusts beside :data:`TRUSTED`, as ``module.Class``; None looks at everything but types.
    """
    skops_io = _skops()
    files = stored_entries(data, what)
    if _SCHEMA not in files:
        raise BundleError(f"{what} is not a skops file: it has no {_SCHEMA}.")
    schema = read_json(files[_SCHEMA], f"{what}, {_SCHEMA}")
    for node in _nodes(schema):
        if "__id__" in node or node.get("__loader__") == "CachedNode":
            # Two nodes with one identity could make skops build something else than what is checked here.
            raise BundleError(
                f"{what} was not written by sparing: its schema refers back to itself."
            )
    for name, raw in files.items():
        if name.endswith(".npy"):
            read_array(raw, f"{what}, {name}")
    try:
        found = skops_io.get_untrusted_types(data=data)
    except Exception as error:  # whatever a forged schema makes skops stumble over
        raise BundleError(f"{what} cannot be read by skops: {error}") from error
    unknown = [] if trusted is None else sorted({*found} - {*TRUSTED, *trusted})
    if unknown:
        raise BundleError(
            f"{what} holds types that are not trusted: {', '.join(unknown)}. If you know where the file comes from and "
            f"what they do, load(path, trusted={unknown!r})."
        )
    try:
        _Schema(files, what).check(schema)
    except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError(f"{what} holds a model that is not whole: {error!r}.") from error


def unpack_model(data: bytes, what: str, trusted: Sequence[str]) -> Any:
    """The model, after :func:`check_model` has passed."""
    try:
        return _skops().loads(data, trusted=[*TRUSTED, *trusted])
    except Exception as error:  # whatever scikit-learn's own state methods raise
        raise BundleError(
            f"{what} cannot be built: {error} It may come from another version of scikit-learn: see made_by in the "
            "manifest."
        ) from error


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping inside a schema, itself first."""
    stack = [(value, 0)]
    while stack:
        current, depth = stack.pop()
        if depth > _NESTING:
            raise BundleError(f"The schema of a model is nested more than {_NESTING} deep.")
        if isinstance(current, dict):
            yield current
            stack += [(child, depth + 1) for child in current.values()]
        elif isinstance(current, list):
            stack += [(child, depth + 1) for child in current]


class _Schema:
    """The looks taken at trees and boosters inside the schema of a model."""

    def __init__(self, files: dict[str, bytes], what: str) -> None:
        self.files, self.what = files, what

    def check(self, schema: dict[str, Any]) -> None:
        checked: set[int] = set()
        for node in _nodes(schema):
            loader, name = node.get("__loader__"), str(node.get("__class__"))
            if loader != _LOADERS.get(_type(node), loader):
                raise self._error(f"a {name} that is stored as {loader}")
            if loader == "ObjectNode" and not _has_plain_attributes(node):
                raise self._error(f"a {name} whose attributes are not a plain dict")
            if loader == "TreeNode":
                self._tree(node)
            elif _type(node) == _BOOSTER:
                self._booster(node)
            if (tree := _attribute(node, "tree_")) is not None:
                self._same_width(node, tree)
            if name.startswith(_FORESTS):
                # Compiled code asks all trees of a forest about rows that only the first one has checked.
                for inner in _nodes(_attribute(node, "estimators_")):
                    if inner.get("__loader__") == "TreeNode":
                        self._same_width(node, inner)
            if name.startswith("HistGradientBoosting"):
                checked |= self._histogram_trees(node)
        for node in _nodes(schema):
            if _type(node) == _HIST_TREE and id(node) not in checked:
                raise self._error("a tree of a HistGradientBoosting outside of one")

    def _tree(self, node: dict[str, Any]) -> None:
        width = self._width_of(node)
        state = node["content"]["content"]
        nodes = self._array(state["nodes"])
        count, n = self._number(state["node_count"]), len(nodes)
        if count != n or n < 1 or len(self._array(state["values"])) != n:
            raise self._error(f"a tree whose node_count, {count}, is not its {n} nodes")
        left, right = nodes["left_child"].astype(np.int64), nodes["right_child"].astype(np.int64)
        self._children(left, right, left != -1, nodes["feature"].astype(np.int64), width)

    def _children(
        self,
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        splits: NDArray[np.bool_],
        feature: NDArray[np.int64],
        width: int,
    ) -> None:
        own, n = np.flatnonzero(splits), len(left)
        for child in (left[splits], right[splits]):
            if (child <= own).any() or (child >= n).any():
                raise self._error("a tree whose nodes point outside of it or back")
        if (feature[splits] < 0).any() or (feature[splits] >= width).any():
            raise self._error(f"a tree that splits by a column outside its {width}")

    def _width_of(self, node: dict[str, Any]) -> int:
        return self._number(node["__reduce__"]["args"]["content"][0])

    def _same_width(self, model: dict[str, Any], tree: dict[str, Any]) -> None:
        width = self._number(_attribute(model, "n_features_in_"))
        if tree.get("__loader__") != "TreeNode" or self._width_of(tree) != width:
            raise self._error(f"a tree that is not about the {width} columns of its model")

    def _histogram_trees(self, node: dict[str, Any]) -> set[int]:
        """Check the trees of a model of histograms; the nodes of the schema that were looked at."""
        trees = [inner for inner in _nodes(node) if _type(inner) == _HIST_TREE]
        if not trees:
            return set()
        width = self._number(_attribute(node, "n_features_in_"))
        categorical = np.zeros(width, dtype=bool)
        given = _attribute(_attribute(node, "_bin_mapper"), "is_categorical_")
        if given is not None and given.get("type") == "numpy":
            categorical = self._array(given)
        for tree in trees:
            nodes = self._array(_attribute(tree, "nodes"))
            splits, feature = nodes["is_leaf"] == 0, nodes["feature_idx"].astype(np.int64)
            left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
            self._children(left, right, splits, feature, width)
            chosen = splits & (nodes["is_categorical"] != 0)
            sets = self._array(_attribute(tree, "raw_left_cat_bitsets"))
            if chosen.any() and (
                len(categorical) != width
                or not categorical[feature[chosen]].all()
                or sets.shape[1:] != (8,)
                or (nodes["bitset_idx"][chosen] >= len(sets)).any()
            ):
                raise self._error("a tree that splits by a set of categories that is not there")
        return {id(tree) for tree in trees}

    def _booster(self, node: dict[str, Any]) -> None:
        texts = [_attribute(node, name) for name in ("_handle", "handle") if _has(node, name)]
        if len(texts) != 1 or texts[0].get("__loader__") != "JsonNode":
            raise self._error("a LightGBM model without its text")
        text = json.loads(texts[0]["content"])
        if not isinstance(text, str):
            raise self._error("a LightGBM model without its text")
        check_booster(text, self.what, settings=True)

    def _array(self, node: Any) -> NDArray[Any]:
        if node.get("type") != "numpy" or node["file"] not in self.files:
            raise self._error("an array that is not there")
        return read_array(self.files[node["file"]], self.what)

    def _number(self, node: Any) -> int:
        if node["__loader__"] == "JsonNode":
            value = json.loads(node["content"])
        else:
            value = self._array(node).item()
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._error(f"{value!r} where a whole number belongs")
        return value

    def _error(self, found: str) -> BundleError:
        return BundleError(f"{self.what} holds {found}.")


def _type(node: dict[str, Any]) -> str:
    return f"{node.get('__module__')}.{node.get('__class__')}"


def _has(node: dict[str, Any], name: str) -> bool:
    return _attribute(node, name) is not None


def _has_plain_attributes(node: dict[str, Any]) -> bool:
    """Whether the attributes of an object, if it has any, are where they are looked for."""
    content = node.get("content")
    return content is None or (
        isinstance(content, dict)
        and content.get("__loader__") in ("DictNode", "TupleNode", "JsonNode")
    )


def _attribute(node: Any, name: str) -> Any:
    """State of an attribute of a stored object, None when it has none of that name."""
    content = node.get("content") if isinstance(node, dict) else None
    # Objects keep a dict node of attributes, whose content is by name.
    if isinstance(content, dict) and content.get("__loader__") == "DictNode":
        content = content.get("content")
        return content.get(name) if isinstance(content, dict) else None
    return None
