"""The one shape in which every loader hands over its data.

A scikit-learn ``Bunch`` with ``data``, ``target``, ``frame`` (None without ``as_frame``),
``feature_names``, ``target_names`` (in the order of the sorted classes), ``costs`` (a
:class:`~sparing.FeatureCosts` in the order of the columns of ``data``), ``split`` (None, or a bunch of
the row numbers ``train``, ``validation`` and ``test``) and ``DESCR``; some loaders have more to say:
``variant``, ``query``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from sparing.costs import FeatureCosts

RandomState = int | np.random.RandomState | None


def packaged(name: str) -> bytes:
    """Bytes of a file that ships with the package, from its ``data`` folder."""
    return resources.files("sparing.datasets").joinpath("data", name).read_bytes()


def make_bunch(
    data: NDArray[Any],
    target: NDArray[Any],
    *,
    costs: FeatureCosts,
    target_names: Sequence[Hashable],
    descr: str,
    as_frame: bool = False,
    split: Bunch | None = None,
    **more: Any,
) -> Bunch:
    """Bunch of a table and its prices; the names of the columns are those of the prices."""
    feature_names = [str(column) for column in costs.columns]
    if data.shape != (len(target), len(feature_names)):
        raise ValueError(
            f"A table of {len(target)} rows and {len(feature_names)} columns was expected, "
            f"this one has shape {data.shape}."
        )
    frame = None
    out_data, out_target = data, target
    if as_frame:
        pandas = _pandas()
        out_data = pandas.DataFrame(data, columns=feature_names)
        out_target = pandas.Series(target, name="target")
        frame = out_data.assign(target=out_target)
    return Bunch(
        data=out_data,
        target=out_target,
        frame=frame,
        feature_names=feature_names,
        target_names=list(target_names),
        costs=costs,
        split=split,
        DESCR=descr,
        **more,
    )


def make_split(
    train: NDArray[np.intp], validation: NDArray[np.intp], test: NDArray[np.intp]
) -> Bunch:
    """Row numbers of the three parts, sorted so that a part keeps the order of the table."""
    return Bunch(train=np.sort(train), validation=np.sort(validation), test=np.sort(test))


def draw_split(n_rows: int, sizes: tuple[int, int, int], random_state: RandomState) -> Bunch:
    """Three parts of the given sizes, drawn without overlap; what is left over is in none."""
    drawn = check_random_state(random_state).permutation(n_rows)
    first, second, third = np.cumsum(sizes)
    return make_split(drawn[:first], drawn[first:second], drawn[second:third])


def check_counts(name: str, target: NDArray[Any], expected: dict[int, int]) -> None:
    """Refuse data whose classes are not as many as they are known to be."""
    classes, counts = np.unique(target, return_counts=True)
    found = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    if found != expected:
        raise ValueError(f"{name}: rows per class are {found}, they should be {expected}.")


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas: pip install 'sparing[bench]', or pandas itself."
        ) from error
    return pandas
