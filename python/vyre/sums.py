# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exact sums of floats: unrounded, so that their bytes do not depend on the order,
the device, the blocks or the number of processes.

    vyre.sums.sum(x)                         # rounded once
    partial = vyre.sums.accumulate(x)        # an array of sums, which can travel
    vyre.sums.round(vyre.sums.merge(a, b))
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _support, _vyre
from ._support import SUM_F32 as sum_f32
from ._support import SUM_F64 as sum_f64

__all__ = ["accumulate", "merge", "round", "sum", "sum_f32", "sum_f64", "zeros"]

Array = np.ndarray[Any, np.dtype[Any]]

_TEXT = """
kernel accumulate workgroup(256) over(x)
buffer x : read {number}[] @0;
buffer sums : read_write sum_{number}[] @1;
uniform row : u64 @2;
{{
    let i = global_id.x;
    if (i < len(x)) atomic_add(sums[u32(u64(i) / row)], x[i]);
}}
kernel accumulate_all workgroup(256) over(x)
buffer x : read {number}[] @0;
buffer sum : read_write sum_{number}[1] @1;
{{ if (global_id.x < len(x)) atomic_add(sum[0], x[global_id.x]); }}
"""
_kernels: dict[str, Any] = {}


def _kernel(number: str, name: str) -> Any:
    if number not in _kernels:
        from . import kernel

        _kernels[number] = kernel(_TEXT.format(number=number), "<vyre.sums>")
    return _kernels[number][name]


def _is_f64(dtype: np.dtype[Any]) -> bool:
    if dtype == sum_f32 or dtype == sum_f64:
        return bool(dtype == sum_f64)
    raise TypeError(f"exact sums have the dtype vyre.sums.sum_f32 or sum_f64, not {dtype}\nFix: use accumulate(array)")


def _number(dtype: np.dtype[Any]) -> str:
    if dtype in (np.dtype("f4"), np.dtype("f8")) and dtype.isnative:
        return "f32" if dtype.itemsize == 4 else "f64"
    raise TypeError(f"exact sums take float32 or float64, not {dtype}\nFix: convert the array with .astype('f8')")


def zeros(shape: int | tuple[int, ...], dtype: Any = sum_f32) -> Array:
    """Returns empty sums."""
    _is_f64(np.dtype(dtype))
    return np.zeros(shape, dtype)


def accumulate(
    array: Any, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False, device: Any = None
) -> Array:
    """Returns the exact sums along the axes, unrounded. Runs on a device."""
    a = np.asarray(array)
    number = _number(a.dtype)
    kind = sum_f32 if number == "f32" else sum_f64
    axes = range(a.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    summed = {n + a.ndim if n < 0 else n for n in axes}
    if any(not 0 <= n < a.ndim for n in summed):
        raise ValueError(f"axis {axis} is outside of an array of {a.ndim} dimensions\nFix: use an axis from 0 to {a.ndim - 1}")
    kept = [n for n in range(a.ndim) if n not in summed]
    ordered = np.ascontiguousarray(a.transpose([*kept, *sorted(summed)]))
    sums = np.zeros([a.shape[n] for n in kept], kind)
    row = math.prod(a.shape[n] for n in summed)
    flat, out = ordered.reshape(-1), sums.reshape(-1)
    step = max(1 << 30, row)  # elements of a dispatch
    step -= step % max(row, 1)
    for start in range(0, a.size, step) if row <= 1 << 30 else ():
        rows = slice(start // row, min(start + step, a.size) // row)
        part = flat[start : start + step]
        if rows.stop - rows.start == 1:
            _kernel(number, "accumulate_all")(part, out[rows], out=out[rows], device=device)
        else:
            _kernel(number, "accumulate")(part, out[rows], row, out=out[rows], device=device)
    if row > 1 << 30:
        for at in range(out.size):
            for start in range(at * row, (at + 1) * row, 1 << 30):
                part = flat[start : min(start + (1 << 30), (at + 1) * row)]
                _kernel(number, "accumulate_all")(part, out[at : at + 1], out=out[at : at + 1], device=device)
    if keepdims:
        return sums.reshape([1 if n in summed else a.shape[n] for n in range(a.ndim)])
    return sums


def merge(*parts: Any) -> Array:
    """Adds arrays of sums, element by element."""
    arrays = [np.ascontiguousarray(p) for p in parts]
    if not arrays:
        raise TypeError("merge takes at least one array of sums\nFix: pass the results of accumulate")
    is_f64 = _is_f64(arrays[0].dtype)
    result = arrays[0].copy()
    for other in arrays[1:]:
        if other.dtype != result.dtype or other.shape != result.shape:
            raise ValueError(
                f"sums of {other.dtype.itemsize} bytes and shape {other.shape} do not fit those of "
                f"{result.dtype.itemsize} bytes and shape {result.shape}\nFix: merge arrays of one dtype and shape"
            )
        _vyre.sum_merge(is_f64, result.view("u1"), other.view("u1"))
    return result


def round(sums: Any) -> Any:
    """Rounds sums to the nearest numbers, once."""
    array = np.asarray(sums)
    is_f64 = _is_f64(array.dtype)
    result = np.empty(array.shape, "f8" if is_f64 else "f4")
    if array.size:
        flat = np.ascontiguousarray(array).reshape(-1)
        _vyre.sum_round(is_f64, result.reshape(-1), flat.view("u1"))
    return result[()]


def sum(
    array: Any, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False, device: Any = None
) -> Any:
    """Returns the sums along the axes, each rounded once."""
    return round(accumulate(array, axis, keepdims=keepdims, device=device))
