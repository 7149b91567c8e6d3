# SPDX-License-Identifier: MIT OR Apache-2.0
"""Buffers and uniforms whose elements are vectors."""

import numpy as np
import pytest

import vyre

TEXT = """
kernel shift workgroup(64) over(o)
buffer x : read f32x3[] @0;
buffer o : write f32x3[] @1;
uniform c : f32x3 @2;
{ let i = global_id.x; if (i < len(o)) o[i] = x[i] + c; }
kernel norm workgroup(64) over(o)
buffer x : read f32x3[] @0;
buffer o : write f32[] @1;
{ let i = global_id.x; if (i < len(o)) o[i] = dot(x[i], x[i]); }
kernel widen workgroup(64) over(o)
buffer x : read u8x4[] @0;
buffer o : write u32x4[] @1;
{ let i = global_id.x; if (i < len(o)) o[i] = u32x4(x[i]) + u32x4(1); }
"""


@pytest.fixture(scope="module")
def kernels():
    return vyre.kernel(TEXT)


def test_the_last_axis_has_the_components(kernels, device):
    x = np.arange(24, dtype="f4").reshape(2, 4, 3)
    c = np.array([1, 10, 100], "f4")
    for given in (c, (1, 10, 100), [1.0, 10, 100]):
        r = kernels.shift(x, given, device=device)
        assert r.shape == (2, 4, 3) and np.array_equal(r, x + c)
    n = kernels.norm(x, device=device)
    assert n.shape == (2, 4) and np.array_equal(n, (x * x).sum(-1))
    flat = kernels.shift(x.ravel(), c, device=device)
    assert flat.shape == (8, 3) and np.array_equal(flat, (x + c).reshape(8, 3))


def test_lengths_count_elements(kernels, device):
    x = np.arange(20, dtype="u1").reshape(5, 4)
    assert np.array_equal(kernels.widen(x, device=device), x.astype("u4") + 1)
    assert kernels.widen(x, o=7, device=device).shape == (7, 4)
    b = vyre.Buffer.of(x, device)
    assert kernels.widen(b, device=device).shape == (5, 4)


def test_parts_of_elements_are_refused(kernels):
    with pytest.raises(ValueError, match="(?s)Fix:"):
        kernels.shift(np.zeros(10, "f4"), (1, 2, 3))
    for wrong in (1.0, (1, 2), (1, 2, 3, 4), "abc", np.zeros(3), np.zeros(4, "f4")):
        with pytest.raises((TypeError, ValueError), match="(?s)Fix:"):
            kernels.shift(np.zeros(9, "f4"), wrong)
    assert kernels.shift.params[2].lanes == 3


def test_numbers_of_numpy_are_numbers():
    k = vyre.kernel("kernel k workgroup(1)\nbuffer o : write u32[1] @0;\nuniform n : u32 @1;\n{ o[0] = n; }")["k"]
    for n in (7, np.int64(7), np.uint8(7), np.array(7), np.array(7, "u4"), np.array([7], "u4"), np.True_ * 7):
        assert k(n)[0] == 7
    for n in (np.int64(-1), np.uint64(2**32)):
        with pytest.raises(OverflowError, match="Fix:"):
            k(n)
    for n in (np.float32(7), "7", b"7", None):
        with pytest.raises(TypeError, match="Fix:"):
            k(n)


def test_new_outputs_have_the_declared_dimensions(device):
    k = vyre.kernel("""
kernel table workgroup(8, 8)
buffer o : write u32[h, w] @0;
uniform h : u32 @1;
uniform w : u32 @2;
{ if (global_id.y < h && global_id.x < w) o[global_id.y, global_id.x] = 10 * global_id.y + global_id.x; }
kernel fixed workgroup(6)
buffer o : write f32x2[2, 3] @0;
{ if (global_id.x < 6) o[global_id.x / 3, global_id.x % 3] = f32x2(1.0); }
""")
    r = k.table(3, 5, grid=(1, 1), device=device)
    assert r.shape == (3, 5) and np.array_equal(r, 10 * np.arange(3)[:, None] + np.arange(5))
    assert k.table(3, 5, o=15, grid=1, device=device).shape == (15,)
    assert k.fixed(grid=1, device=device).shape == (2, 3, 2)
