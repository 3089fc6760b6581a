"""A fitted system as a file, and back: data only, verified before anything is built.

A bundle (``.sparing``) is a zip: ``manifest.json`` says what the system is (columns, items, prices, classes, stages,
thresholds, frontier, certificate) and gives the size and sha256 of every other member; the members are ``.npz`` arrays
without objects, LightGBM text models and scikit-learn models as written by skops. Nothing in it is executable and
nothing in it can name code. The same system gives the same bytes.

**What is checked.** Names, sizes and ratios of the zip; the hash of every member; the form of the manifest; every array
header; the trees of every LightGBM and scikit-learn model; the types of every scikit-learn model against an explicit
list (:data:`sparing.runtime.TRUSTED_TYPES` and what skops trusts by itself). All of that before the first object is
built.

**What remains to be trusted.** The hashes show damage and exchange of members, not who wrote the file: compare
``digest`` with the one that :func:`save` gave. A file made by an enemy runs no code of his by being loaded, but it may
hold a model that gives wrong answers, and its numbers reach compiled code of LightGBM and scikit-learn.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from typing import Any, BinaryIO

from sparing._stored import plain_label
from sparing.runtime._archive import (
    MANIFEST,
    BundleError,
    read_verified,
    sha256,
    write_whole,
    zipped,
)
from sparing.runtime._manifest import SystemWriter
from sparing.runtime._outside import given_models
from sparing.runtime._parts import Checked, PartWriter, build_parts, check_records
from sparing.runtime._plain import plain, read_plain
from sparing.runtime._restored import Bundle, SystemReader
from sparing.runtime._types import check_types, plain_types
from sparing.system import System

FORMAT = 1
"""Format number written; this and all smaller ones can be read."""

_ENTRIES = {
    *("format", "made_by", "columns", "items", "types", "prices", "classes", "accounting"),
    *(
        "has_full",
        "thresholds",
        "stages",
        "outside",
        "systems",
        "frontier",
        "certificate",
        "metadata",
    ),
    *("parts", "members"),
}
_PACKAGES = ("sparing", "numpy", "scikit-learn", "lightgbm", "skops")


# -- writing ------------------------------------------------------------------------------------------


def save(
    system: Any,
    path: str | PathLike[str],
    *,
    frontier: Any = None,
    certificate: Any = None,
    metadata: Mapping[str, Any] | None = None,
    outside: Collection[str] = (),
    like: Any = None,
) -> str:
    """Store a fitted system in a file.

    The file appears whole or not at all; whatever was at the path stays there until then.

    Parameters
    ----------
    system : System, fitted routed classifier, or a point of a frontier
    path : str or path
        Usually ends in ``.sparing``.
    frontier : Frontier, optional
        Other systems of the same fit. Parts they share are stored once. None stores the non-dominated systems of a
        classifier that has a frontier (``frontier_``), and that of a bundle that was loaded; ``False`` stores none.
    certificate : Certificate or plain data, optional
        None stores the one a classifier has (``certificate_``). It comes back as plain data:
        ``Certificate.from_json(json.dumps(bundle.certificate))``.
    metadata : mapping of plain data, optional
        Anything worth keeping: who, when, which data.
    outside : names of stages, default=()
        Stages, usually ``["full"]``, whose model is not written: too large, not scikit-learn's, or behind an API. Give
        it to :func:`load`. Gates, thresholds, columns and prices are stored as ever.
    like : pandas or polars frame, optional
        Rows as the system was fitted on; the types of their columns are stored, not the rows. Needed where a model
        looks at types, such as pandas categories: ``load(path).like`` is an empty frame to make served rows after.

    Returns
    -------
    str
        The digest of the file, sha256 of its manifest. Keep it elsewhere and pass it to :func:`load`, and nobody can
        exchange the file unnoticed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing import AdaptLinClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.runtime import load, save
    >>> X, y = make_synthetic1()
    >>> clf = AdaptLinClassifier(full_rate=0.5, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "clf.sparing")
    ...     digest = save(clf, path, metadata={"trained": "2026-05-01"})
    ...     system = load(path, digest=digest)
    >>> bool((system.predict(X) == clf.predict(X)).all()), system.metadata
    (True, {'trained': '2026-05-01'})
    """
    chosen, frontier, certificate, metadata = _what(system, frontier, certificate, metadata)
    if like is None and isinstance(system, Bundle):
        like = system.like
    if isinstance(outside, str):
        raise TypeError(f"outside is a list of stages: [{outside!r}].")
    parts = PartWriter(outside)
    try:
        writer = SystemWriter(chosen, parts)
        others = None if frontier is None else writer.frontier(frontier)
        parts.check_outside()
        manifest = {
            "format": FORMAT,
            "made_by": _versions(),
            "columns": [plain_label(name, "column") for name in chosen.costs.columns],
            "items": [plain_label(name, "item") for name in chosen.costs.items],
            "types": None if like is None else plain_types(like, len(chosen.costs.columns)),
            "prices": writer.prices,
            "classes": writer.classes,
            "accounting": chosen.accounting,
            "has_full": chosen.has_full,
            "thresholds": [plain_label(float(t), "threshold") for t in chosen.thresholds],
            "stages": writer.stages,
            "outside": sorted(_outside(parts.records)),
            "systems": writer.systems,
            "frontier": others,
            "certificate": plain(certificate, "certificate"),
            "metadata": plain(metadata, "metadata"),
            "parts": parts.records,
            "members": {
                name: {"bytes": len(data), "sha256": sha256(data)}
                for name, data in sorted(parts.members.items())
            },
        }
        raw = json.dumps(manifest, indent=1, allow_nan=False, ensure_ascii=False).encode()
    except BundleError:
        raise
    except (ValueError, TypeError) as error:
        raise BundleError(f"This system cannot be stored: {error}") from error
    write_whole(path, zipped({MANIFEST: raw, **parts.members}))
    return sha256(raw)


def _what(
    system: Any, frontier: Any, certificate: Any, metadata: Mapping[str, Any] | None
) -> tuple[System, Any, Any, Mapping[str, Any]]:
    """The system, frontier, certificate and metadata to store, from whatever holds them."""
    if isinstance(system, Bundle):
        frontier = system.frontier if frontier is None else frontier
        certificate = system.certificate if certificate is None else certificate
        metadata = system.metadata if metadata is None else metadata
    else:
        if frontier is None and hasattr(system, "frontier_"):
            frontier = system.frontier_.pareto()
        if certificate is None:
            certificate = getattr(system, "certificate_", None)
    chosen = system
    for name in ("system_", "system"):
        if not isinstance(chosen, System):
            chosen = getattr(chosen, name, chosen)
    if not isinstance(chosen, System):
        raise TypeError(
            f"{type(system).__name__} holds no system: fit it first, or pass a System or a fitted routed classifier."
        )
    frontier = None if frontier is None or frontier is False else frontier
    if frontier is not None and not hasattr(frontier, "points"):
        raise TypeError(f"frontier is a Frontier, not {type(frontier).__name__}.")
    if hasattr(certificate, "to_json"):
        certificate = json.loads(certificate.to_json())
    return chosen, frontier, certificate, {} if metadata is None else metadata


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _outside(records: Sequence[Mapping[str, Any]]) -> set[str]:
    return {stage for record in records for stage in record.get("outside", {}).values()}


# -- reading ------------------------------------------------------------------------------------------


def load(
    path: str | PathLike[str],
    *,
    full_model: Any = None,
    trusted: Sequence[str | type] | None = None,
    kinds: Mapping[str, type] | None = None,
    digest: str | None = None,
) -> Bundle:
    """Read a system from a file that :func:`save` wrote.

    Everything is verified first, everything is built after; a file that fails a check leaves nothing behind.

    Parameters
    ----------
    path : str or path
    full_model : model, callable, or mapping of stage to one of these, optional
        The model that was left outside. A callable takes the rows and gives probabilities of shape
        (n_rows, n_classes): an endpoint is one. Without it routes and costs are known, and asking for the answers of
        rows that are routed there raises.
    trusted : list of types or of names ``"module.Class"``, optional
        Types inside scikit-learn models to trust beside the default ones. An error lists those a file needs.
    kinds : mapping of kind to class, optional
        Classes of parts that are not the library's own.
    digest : str, optional
        What :func:`save` returned for the file; another file is refused.

    Returns
    -------
    Bundle
        A system, with the frontier, certificate and metadata of the file.

    Raises
    ------
    BundleError
        When the file is not whole, not safe, or not the one expected; the message says what is wrong.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing import GreedyMiserClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.runtime import load, save
    >>> X, y = make_synthetic1()
    >>> clf = GreedyMiserClassifier(n_estimators=5, random_state=0).fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     digest = save(clf, Path(folder, "model.sparing"))
    ...     bundle = load(Path(folder, "model.sparing"), digest=digest)
    >>> bool((bundle.predict(X) == clf.predict(X)).all())
    True
    """
    names = [_type_name(t) for t in _as_list(trusted)]
    own = {} if kinds is None else dict(kinds)
    with _errors_naming(path), open(path, "rb") as file:
        manifest, found, members = _read(file, digest)
        reader, checked = _verified(manifest, members, names, own)
        parts = build_parts(checked, given_models(full_model, manifest["outside"]), names, own)
        system = reader.main(parts)
        return Bundle(
            system.stages,
            system.costs,
            system.classes,
            system.accounting,
            system.has_full,
            reader.frontier(manifest["frontier"], parts),
            read_plain(manifest["certificate"]),
            read_plain(manifest["metadata"]),
            manifest,
            found,
        )


def inspect(path: str | PathLike[str], *, digest: str | None = None) -> dict[str, Any]:
    """The manifest of a file as plain data, everything verified and nothing built.

    Models are looked at as in :func:`load`, except that their types may be any: what would have to be trusted can be
    found out by looking.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sparing import GreedyMiserClassifier
    >>> from sparing.datasets import make_synthetic1
    >>> from sparing.runtime import inspect, save
    >>> clf = GreedyMiserClassifier(n_estimators=5, random_state=0).fit(*make_synthetic1())
    >>> with TemporaryDirectory() as folder:
    ...     _ = save(clf, Path(folder, "clf.sparing"))
    ...     manifest = inspect(Path(folder, "clf.sparing"))
    >>> manifest["format"], manifest["columns"], [stage["name"] for stage in manifest["stages"]]
    (1, [0, 1], ['cheap'])
    """
    with _errors_naming(path), open(path, "rb") as file:
        manifest, _, members = _read(file, digest)
        _verified(manifest, members, None, None)
    return manifest


@contextmanager
def _errors_naming(path: str | PathLike[str]) -> Iterator[None]:
    try:
        yield
    except BundleError as error:
        raise BundleError(f"{path}: {error}") from error


def _read(file: BinaryIO, digest: str | None) -> tuple[dict[str, Any], str, dict[str, bytes]]:
    """Manifest, digest and members; the form of the manifest is known and nothing of its content."""
    manifest, raw, members = read_verified(file)
    found = sha256(raw)
    if digest is not None and found != digest:
        raise BundleError(f"Its digest is {found}, expected was {digest}.")
    return _checked_form(manifest), found, members


def _checked_form(manifest: dict[str, Any]) -> dict[str, Any]:
    number = manifest.get("format")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise BundleError(f"{MANIFEST}: the format number is {number!r}: this is not a bundle.")
    if number > FORMAT:
        raise BundleError(
            f"It has format {number}, this version of sparing reads up to {FORMAT}: update sparing."
        )
    missing, unknown = sorted(_ENTRIES - manifest.keys()), sorted(manifest.keys() - _ENTRIES)
    if missing or unknown:
        raise BundleError(
            f"{MANIFEST} "
            + (f"lacks {missing[0]!r}." if missing else f"has an unknown entry {unknown[0]!r}.")
        )
    return manifest


def _verified(
    manifest: dict[str, Any],
    members: Mapping[str, bytes],
    trusted: Sequence[str] | None,
    kinds: Mapping[str, type] | None,
) -> tuple[SystemReader, list[Checked]]:
    """Check everything that can be checked without building a part."""
    checked = check_records(manifest["parts"], members, trusted, kinds)
    reader = SystemReader(manifest)
    check_types(manifest["types"], len(reader.costs.columns))
    if manifest["outside"] != sorted(_outside(manifest["parts"])):
        raise BundleError(f"{MANIFEST}: the models left outside are not those the parts lack.")
    if manifest["thresholds"] != [s["threshold"] for s in manifest["stages"][:-1]]:
        raise BundleError(f"{MANIFEST}: the thresholds are not those of the stages.")
    if not isinstance(manifest["metadata"], dict):
        raise BundleError(f"{MANIFEST}: metadata is a mapping.")
    return reader, checked


def _as_list(trusted: Sequence[str | type] | None) -> Sequence[str | type]:
    if trusted is None:
        return ()
    if isinstance(trusted, str | type | bool):
        raise TypeError(f"trusted is a list of types or of their names, not {trusted!r}.")
    return trusted


def _type_name(trusted: str | type) -> str:
    return trusted if isinstance(trusted, str) else f"{trusted.__module__}.{trusted.__name__}"
