# SPDX-License-Identifier: MIT OR Apache-2.0
"""Arrays of every kind are taken whole or refused, never misread."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import vyre

CASES = int(os.environ.get("VYRE_TEST_CASES", "300"))
TYPES = ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", ">u4", ">f8", "c8", "M8[s]"]
ELEMENTS = {"u8": "u1", "i16": "i2", "u32": "u4", "i64": "i8", "f16": "f2", "f32": "f4", "bool": "?"}
COPY = {
    e: vyre.kernel(
        f"kernel copy workgroup(64)\nbuffer x : read {e}[] @0;\nbuffer o : write {e}[] @1;\n"
        "{ let i = global_id.x; if (i < len(o)) o[i] = x[i]; }"
    )["copy"]
    for e in ELEMENTS
}


@st.composite
def arrays(draw):
    dtype = draw(st.sampled_from(TYPES))
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=0, max_size=3)))
    base = np.arange(int(np.prod(shape)) * 2 + 8, dtype="u1")
    array = np.resize(base, shape).astype(dtype) if dtype != "M8[s]" else np.zeros(shape, dtype)
    form = draw(st.sampled_from(["plain", "step", "reverse", "fortran", "offset", "readonly", "transpose", "broadcast"]))
    if form == "step" and array.ndim:
        array = np.repeat(array, 2, axis=0)[::2]
    elif form == "reverse" and array.ndim:
        array = array[::-1]
    elif form == "fortran":
        array = np.asfortranarray(array)
    elif form == "offset" and array.size:
        raw = np.zeros(array.nbytes + 1, "u1")
        odd = raw[1:].view(array.dtype) if array.dtype.kind != "M" else None
        if odd is not None:
            odd[:] = array.ravel()
            array = odd.reshape(array.shape)
    elif form == "readonly":
        array.setflags(write=False)
    elif form == "transpose":
        array = array.T
    elif form == "broadcast" and array.size:
        array = np.broadcast_to(array, (2, *array.shape))
    return array


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(arrays(), st.sampled_from(sorted(ELEMENTS)), st.sampled_from(["cpu", "ref"]))
def test_inputs_are_whole_or_refused(array, element, device):
    fits = array.dtype == np.dtype(ELEMENTS[element]) and array.dtype.isnative
    whole = array.flags.c_contiguous
    if fits and whole:
        result = COPY[element](array, device=device)
        assert result.shape == array.shape and result.dtype == array.dtype
        same = result == array if array.dtype.kind != "f" else (result == array) | np.isnan(array)
        assert np.all(same)
    else:
        with pytest.raises(TypeError, match="(?s)Fix: "):
            COPY[element](array, device=device)


@settings(max_examples=CASES // 3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(arrays(), arrays())
def test_outputs_are_whole_or_refused(x, out):
    ok = all(a.dtype == np.float32 and a.flags.c_contiguous for a in (x, out))
    before = out.copy()
    if ok and out.flags.writeable and not np.shares_memory(x, out):
        COPY["f32"](x, out=out)
        n = min(x.size, out.size)
        assert np.array_equal(out.ravel()[:n], x.ravel()[:n]) and not out.ravel()[n:].any()
    else:
        with pytest.raises((TypeError, ValueError)):
            COPY["f32"](x, out=out)
        assert np.array_equal(out, before) or out.dtype.kind == "c"
