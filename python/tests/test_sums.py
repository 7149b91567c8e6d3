# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exact sums, against exact fractions."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import vyre
from vyre import sums


def numbers(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 10.0 ** rng.integers(-20, 20, n)
    return x.astype(dtype)


def exact(x):
    """The sum of the numbers, rounded once. Shares no code with the library."""
    total = sum((Fraction(float(v)) for v in x.ravel()), Fraction(0))
    if x.dtype == np.float64:
        return np.float64(math.fsum(x.ravel()))
    near = np.float32(float(total))
    around = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
    return min(around, key=lambda v: abs(Fraction(float(v)) - total))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_are_exact_in_any_order(dtype, device):
    x = numbers(5000, dtype)
    want = exact(x)
    assert sums.sum(x, device=device) == want
    rng = np.random.default_rng(1)
    bytes_of = {sums.accumulate(rng.permutation(x), device=device).tobytes() for _ in range(3)}
    parts = np.split(x, [1, 700, 4000])
    bytes_of.add(sums.merge(*(sums.accumulate(p, device=device) for p in parts)).tobytes())
    bytes_of.add(sums.accumulate(x, device="ref").tobytes())
    assert len(bytes_of) == 1


def test_axes_and_shapes():
    x = numbers(4 * 5 * 6, "f4").reshape(4, 5, 6)
    for axis, shape in [(0, (5, 6)), (1, (4, 6)), (-1, (4, 5)), ((0, 2), (5,)), (None, ()), ((0, 1, 2), ())]:
        got = sums.sum(x, axis)
        assert got.shape == shape
        kept = sums.sum(x, axis, keepdims=True)
        assert kept.ndim == 3 and np.array_equal(kept.reshape(shape), got)
    assert sums.sum(x, 1)[2, 3] == exact(x[2, :, 3])
    assert sums.sum(x[:, ::2, ::-1], (0, 2))[1] == exact(x[:, 2])
    assert sums.sum(np.zeros(0, "f4")) == 0 and sums.sum(np.zeros((0, 3)), 0).shape == (3,)


def test_special_values():
    inf, nan = np.float32(np.inf), np.float32(np.nan)
    for values, want in [([inf, 1], inf), ([-inf, 1], -inf), ([inf, -inf], nan), ([nan, 1], nan), ([3e38, 3e38, -3e38], 3e38)]:
        got = sums.sum(np.array(values, "f4"))
        assert got == np.float32(want) or (np.isnan(want) and np.isnan(got))
    assert math.copysign(1, sums.sum(np.array([-0.0, -0.0], "f4"))) == 1


def test_sums_are_arrays_and_buffers(device):
    total = sums.zeros(3)
    assert total.dtype.itemsize == 96 and sums.round(total).tolist() == [0, 0, 0]
    assert pickle.loads(pickle.dumps(total)).tobytes() == total.tobytes()
    b = vyre.Buffer.of(sums.accumulate(np.ones(10, "f4"))[None], device)
    assert sums.round(b.numpy()) == 10 and b.dtype == sums.sum_f32
    k = vyre.kernel("kernel k workgroup(8)\nbuffer s : read_write sum_f32[] @0;\n{ atomic_add(s[0], 0.5); }")["k"]
    k(b, out=b, device=device)
    assert sums.round(b.numpy()) == 14
    fresh = k(sums.zeros(1), device=device)
    assert sums.round(fresh) == [4]


def test_what_is_no_sum_is_refused():
    k = vyre.kernel("kernel k workgroup(8)\nbuffer s : read_write sum_f32[] @0;\n{ atomic_add(s[0], 0.5); }")["k"]
    wrong = [np.zeros(96, "?"), np.zeros(24, "f4"), np.zeros(1, "V96"), sums.zeros(1, sums.sum_f64), bytearray(96)]
    for value in wrong:
        with pytest.raises(TypeError, match="Fix: "):
            k(value)
    for call in (
        lambda: sums.accumulate(np.arange(3)),
        lambda: sums.accumulate(np.zeros(3, ">f4")),
        lambda: sums.round(np.zeros(3)),
        lambda: sums.merge(),
        lambda: sums.zeros(3, "f4"),
    ):
        with pytest.raises(TypeError, match="Fix: "):
            call()
    with pytest.raises(ValueError, match="Fix: "):
        sums.merge(sums.zeros(3), sums.zeros(4))
    with pytest.raises(ValueError, match="Fix: "):
        sums.sum(np.zeros(3, "f4"), 1)
