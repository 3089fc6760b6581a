"""Large tables for benchmarks, from a folder or from their public home.

``data_home``, or else the environment variable ``SPARING_DATA``, names a folder with the files that
each docstring lists; without either, the data comes from its public home and is kept in
scikit-learn's data home. Checksums and class counts are verified. Medical tables, rankings and
images have files of their own: ``medical.py``, ``ranking.py``, ``images.py``.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_covtype
from sklearn.utils import Bunch

from sparing.costs import FeatureCosts
from sparing.datasets._bunch import (
    RandomState,
    check_counts,
    draw_split,
    make_bunch,
    make_split,
)
from sparing.datasets._files import (
    DataHome,
    data_folder,
    online,
    read_arrays,
    read_file,
    uci_file,
)

__all__ = ["fetch_forest", "fetch_miniboone"]

# fmt: off
_FOREST_NUMBERS = (
    "Elevation", "Aspect", "Slope", "Horizontal_Distance_To_Hydrology",
    "Vertical_Distance_To_Hydrology", "Horizontal_Distance_To_Roadways", "Hillshade_9am",
    "Hillshade_Noon", "Hillshade_3pm", "Horizontal_Distance_To_Fire_Points",
)
_FOREST_NAMES = (
    "Spruce/Fir", "Lodgepole Pine", "Ponderosa Pine", "Cottonwood/Willow", "Aspen", "Douglas-fir",
    "Krummholz",
)
_FOREST_COUNTS = {1: 211840, 2: 283301, 3: 35754, 4: 2747, 5: 9493, 6: 17367, 7: 20510}
# fmt: on


def fetch_forest(
    *,
    items: Literal["columns", "attributes"] = "columns",
    data_home: DataHome = None,
    as_frame: bool = False,
    random_state: RandomState = 0,
) -> Bunch:
    """Forest cover types from maps: 581012 patches of land, 54 columns, 7 classes.

    Parameters
    ----------
    items : {"columns", "attributes"}, default="columns"
        What is bought. "columns": each of the 54 columns for 1, as in the paper. "attributes": each
        of the 12 attributes for 1, where the 4 one-hot columns of the wilderness area are one
        item, and so are the 40 of the soil type.
    data_home : path, optional
        Folder with ``covtype.npz`` (``X`` int16, ``y`` 1 to 7, in the order of the UCI file). Without
        it and without ``SPARING_DATA``, the data comes through scikit-learn's ``fetch_covtype``.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.
    random_state : int, RandomState instance or None, default=0
        Draws the split. The paper gives the sizes and not the rows.

    Returns
    -------
    Bunch
        ``data`` of shape (581012, 54), float32 (the values are small whole numbers); ``target`` 1 to
        7; ``costs``; ``split`` with ``train`` (36603), ``validation`` (15688) and ``test`` (58101);
        the other rows are in none of them.

    Notes
    -----
    J. Blackard, Covertype, UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50K5N,
    CC BY 4.0. Copyright Jock A. Blackard and Colorado State University.

    Examples
    --------
    >>> from sparing.datasets import fetch_forest
    >>> forest = fetch_forest(items="attributes")  # doctest: +SKIP
    >>> forest.data.shape, forest.costs.total  # doctest: +SKIP
    ((581012, 54), 12.0)
    """
    folder = data_folder(data_home)
    if folder is not None:
        arrays = read_arrays(folder, "covtype.npz")
        X, y = arrays["X"], arrays["y"]
    else:
        X, y = online(lambda: fetch_covtype(return_X_y=True), "fetch_covtype of scikit-learn")
    check_counts("Forest", y, _FOREST_COUNTS)
    return make_bunch(
        X.astype(np.float32),
        y.astype(np.int64),
        costs=forest_costs(items),
        target_names=_FOREST_NAMES,
        descr="Forest CoverType: cartographic variables of 30 m x 30 m patches in Colorado, 7 cover "
        "types. UCI 31, CC BY 4.0, copyright Jock A. Blackard and Colorado State University.",
        as_frame=as_frame,
        split=draw_split(len(y), (36603, 15688, 58101), random_state),
    )


def forest_costs(items: str) -> FeatureCosts:
    """Prices of the 54 columns of Forest, by column or by attribute (see `fetch_forest`).

    Examples
    --------
    >>> forest_costs("columns").total, forest_costs("attributes").total
    (54.0, 12.0)
    >>> forest_costs("attributes").of(["Soil_Type_0", "Soil_Type_39", "Slope"])
    2.0
    """
    areas = [f"Wilderness_Area_{i}" for i in range(4)]
    soils = [f"Soil_Type_{i}" for i in range(40)]
    if items == "columns":
        return FeatureCosts(dict.fromkeys([*_FOREST_NUMBERS, *areas, *soils], 1.0))
    if items == "attributes":
        return FeatureCosts(
            dict.fromkeys(_FOREST_NUMBERS, 1.0) | dict.fromkeys([*areas, *soils], 0.0),
            shared={"Wilderness_Area": (1.0, areas), "Soil_Type": (1.0, soils)},
        )
    raise ValueError(f'items is "columns" or "attributes", not {items!r}.')


def fetch_miniboone(
    *,
    variant: Literal["auto", "full", "subset"] = "auto",
    data_home: DataHome = None,
    as_frame: bool = False,
    random_state: RandomState = 0,
) -> Bunch:
    """Electron or muon neutrinos, by 50 numbers from the MiniBooNE detector.

    Parameters
    ----------
    variant : {"auto", "full", "subset"}, default="auto"
        "full": all 130064 events. "subset": 5000 events, as many of each class, with a split of
        their own. "auto": the subset where a folder is named, the full data otherwise. Say in
        every result which one was used: ``variant`` of the bunch tells.
    data_home : path, optional
        Folder with ``miniboone_tiny.npz`` (subset) or UCI's ``MiniBooNE_PID.txt`` (full). Without it
        and without ``SPARING_DATA``, the full data comes from UCI.
    as_frame : bool, default=False
        Give ``data`` and ``target`` as pandas objects.
    random_state : int, RandomState instance or None, default=0
        Draws the split of the full data. The paper gives the sizes and not the rows.

    Returns
    -------
    Bunch
        ``data`` of shape (130064, 50) or (5000, 50); ``target``, 1 = signal (electron neutrino), 0 =
        background; ``costs``, 1 per column; ``variant``, "full" or "subset"; ``split`` of 45523 /
        19510 / 65031 rows, or 2000 / 1000 / 2000. Events without a measurement have -999 in all
        columns, as in the source: 12 in the subset.

    Notes
    -----
    B. Roe, MiniBooNE particle identification, UCI Machine Learning Repository, 2005,
    https://doi.org/10.24432/C5QC87, CC BY 4.0.

    Examples
    --------
    >>> from sparing.datasets import fetch_miniboone
    >>> events = fetch_miniboone()  # doctest: +SKIP
    >>> events.data.shape, events.variant  # doctest: +SKIP
    ((130064, 50), 'full')
    """
    if variant not in ("auto", "full", "subset"):
        raise ValueError(f'variant is "auto", "full" or "subset", not {variant!r}.')
    folder = data_folder(data_home)
    if variant == "auto":
        variant = "full" if folder is None else "subset"
    if variant == "subset":
        if folder is None:
            raise ValueError(
                "The subset has no public home: name the folder of miniboone_tiny.npz with "
                'data_home or SPARING_DATA, or ask for variant="full".'
            )
        arrays = read_arrays(folder, "miniboone_tiny.npz")
        parts = ("train", "val", "test")
        X = np.concatenate([arrays[f"X_{part}"] for part in parts])
        y = np.concatenate([arrays[f"y_{part}"] for part in parts])
        check_counts("MiniBooNE subset", y, {0: 2500, 1: 2500})
        rows = np.arange(len(y))
        ends = np.cumsum([len(arrays[f"y_{part}"]) for part in parts])[:2]
        split = make_split(*np.split(rows, ends))
    else:
        X, y = _miniboone_events(folder)
        check_counts("MiniBooNE", y, {0: 93565, 1: 36499})
        split = draw_split(len(y), (45523, 19510, 65031), random_state)
    return make_bunch(
        X.astype(np.float64),
        y.astype(np.int64),
        costs=FeatureCosts({f"ParticleID_{i}": 1.0 for i in range(50)}),
        target_names=["background", "signal"],
        descr="MiniBooNE: electron neutrinos (signal) among muon neutrinos. UCI 199, CC BY 4.0. "
        f"Variant: {variant}.",
        as_frame=as_frame,
        split=split,
        variant=variant,
    )


def _miniboone_events(folder: Path | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """All events in the order of UCI's file: its first line counts signal, then background."""
    if folder is not None:
        text = read_file(folder, "MiniBooNE_PID.txt")
    else:
        text = uci_file("199/miniboone+particle+identification", "MiniBooNE_PID.txt")
    first, _, rest = text.partition(b"\n")
    n_signal, n_background = map(int, first.split())
    X = np.loadtxt(BytesIO(rest), ndmin=2)
    return X, np.repeat([1, 0], [n_signal, n_background])
