import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sparing.runtime import BundleError
from sparing.runtime._archive import zipped
from sparing.runtime._arrays import pack_arrays, read_array, unpack_arrays

NUMBERS = st.one_of(arrays.boolean_dtypes(), arrays.integer_dtypes(), arrays.floating_dtypes())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_arrays_come_back_exactly(data):
    dtype = data.draw(NUMBERS)
    array = data.draw(arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0)))
    found = unpack_arrays(pack_arrays({"a": array}), "x")["a"]
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


def test_the_layout_in_memory_stays():
    array = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    found = unpack_arrays(pack_arrays({"a": array}), "x")["a"]
    assert found.flags.f_contiguous
    assert found.flags.aligned
    assert found.flags.writeable


def npy(array=None, header=None):
    buffer = io.BytesIO()
    np.save(buffer, np.arange(4.0) if array is None else array, allow_pickle=True)
    raw = buffer.getvalue()
    return raw if header is None else raw.replace(*header)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (npy(header=(b"(4,)", b"(9,)")), "not the 32 bytes"),
        (npy(header=(b"(4,), ", b"(-4,),")), "not the 32 bytes"),
        (npy(header=(b"(4,), }        ", b"(999999999,), }")), "not the 32 bytes"),
        (npy()[:-8], "not the 24 bytes"),
        (npy() + b"tail", "not the 36 bytes"),
        (npy()[:20], "not an array"),
        (b"", "not an array"),
        (npy(header=(b"<f8", b"|O8")), "pickled objects"),
        (npy(np.array([None, 1], dtype=object)), "pickled"),
        (npy(header=(b"NUMPY\x01", b"NUMPY\x09")), "not an array"),
        (npy(header=(b"'descr'", b"'other'")), "not an array"),
        (npy(header=(b"{'descr'", b"\xbb'descr'")), "not an array"),
    ],
)
def test_headers_that_lie_are_refused(raw, message):
    with pytest.raises(BundleError, match=message):
        read_array(raw, "x")


def test_only_numbers_belong_there():
    with pytest.raises(TypeError, match="stores numbers"):
        pack_arrays({"a": np.array(["text"])})
    with pytest.raises(BundleError, match="only numbers"):
        unpack_arrays(zipped({"a.npy": npy(np.array(["text"]))}, compress=False), "x")
    with pytest.raises(BundleError, match="no array"):
        unpack_arrays(zipped({"a.txt": b"x"}, compress=False), "x")
