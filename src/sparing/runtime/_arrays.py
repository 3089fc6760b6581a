"""Arrays of numbers as ``.npz``, written without time stamps and read without trusting a header.

``numpy.load(allow_pickle=False)`` unpickles nothing, but believes the shape it is told and allocates it. Here the
header must be about exactly the bytes that are there.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from sparing.runtime._archive import BundleError, stored_entries, zipped

_ENDING = ".npy"


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays of numbers or booleans as the bytes of an npz.

    Examples
    --------
    >>> unpack_arrays(pack_arrays({"columns": np.array([0, 3])}), "arrays.npz")
    {'columns': array([0, 3])}
    """
    files = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"The array {name!r} holds {array.dtype}, a bundle stores numbers.")
        buffer = io.BytesIO()
        # In the byte order of most machines, so that every machine writes the same.
        npy.write_array(buffer, array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
        files[name + _ENDING] = buffer.getvalue()
    # The bundle compresses the whole: a zip inside a zip must be plain.
    return zipped(files, compress=False)


def unpack_arrays(data: bytes, what: str) -> dict[str, NDArray[Any]]:
    """Inverse of :func:`pack_arrays`; objects, and headers that do not fit their bytes, are refused."""
    arrays = {}
    for name, raw in stored_entries(data, what).items():
        if not name.endswith(_ENDING):
            raise BundleError(f"{what} holds {name}, which is no array.")
        array = read_array(raw, f"{what}, {name}")
        if array.dtype.kind not in "biuf":
            raise BundleError(f"{what}, {name} holds {array.dtype}: only numbers belong there.")
        arrays[name.removesuffix(_ENDING)] = array.astype(array.dtype.newbyteorder("="))
    return arrays


def read_array(raw: bytes, what: str) -> NDArray[Any]:
    """An array from the bytes of an npy file that hold no objects."""
    buffer = io.BytesIO(raw)
    try:
        version = npy.read_magic(buffer)
        if version == (1, 0):
            shape, fortran, dtype = npy.read_array_header_1_0(buffer)
        elif version == (2, 0):
            shape, fortran, dtype = npy.read_array_header_2_0(buffer)
        else:
            raise ValueError(f"version {version} of the format is not known.")
    except Exception as error:  # whatever a forged header makes numpy's parser stumble over
        raise BundleError(f"{what} is not an array: {error}") from error
    if dtype.hasobject:
        raise BundleError(f"{what} holds pickled objects: nothing executable belongs in a bundle.")
    body = len(raw) - buffer.tell()
    if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != body:
        raise BundleError(
            f"{what} says it has shape {shape} of {dtype}, which is not the {body} bytes it has."
        )
    # Copied: the array is then aligned, and no other part holds the same memory.
    flat = np.frombuffer(raw, dtype, offset=buffer.tell()) if body else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy(order="K")
