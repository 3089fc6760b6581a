"""What was computed before: one file per result, named by what it is of and a digest of its setting."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import joblib


def cache_folder() -> Path:
    """Where fits are kept: the folder in ``SPARING_CACHE``, or ``cache/`` beside the scripts."""
    return Path(os.environ.get("SPARING_CACHE") or Path(__file__).parent.parent / "cache")


class Store:
    """Results on disk.

    A result is found again as long as its setting is the same; it does not know when the code has changed, so ask for
    fresh ones then.

    Parameters
    ----------
    folder : where the files are.
    fresh : forget what there is.
    """

    def __init__(self, folder: Path, fresh: bool = False) -> None:
        self.folder = folder
        self.fresh = fresh

    def path(self, name: tuple[str, ...], setting: Mapping[str, Any]) -> Path:
        """File of a result."""
        text = json.dumps(setting, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.folder.joinpath(*name[:-1]) / f"{name[-1]}-{digest}.joblib"

    def has(self, name: tuple[str, ...], setting: Mapping[str, Any]) -> bool:
        """Whether a result is there."""
        return self.path(name, setting).is_file()

    def load(self, name: tuple[str, ...], setting: Mapping[str, Any]) -> Any:
        """A result that is there."""
        return joblib.load(self.path(name, setting))

    def put(self, name: tuple[str, ...], setting: Mapping[str, Any], result: Any) -> None:
        """Keep a result."""
        path = self.path(name, setting)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written aside and moved: a broken-off run leaves no half file behind.
        aside = path.with_suffix(f".{os.getpid()}.part")
        joblib.dump(result, aside, compress=3)
        aside.replace(path)

    def get(
        self, name: tuple[str, ...], setting: Mapping[str, Any], compute: Callable[[], Any]
    ) -> Any:
        """A result, computed the first time only."""
        if self.has(name, setting) and not self.fresh:
            return self.load(name, setting)
        result = compute()
        self.put(name, setting, result)
        return result
