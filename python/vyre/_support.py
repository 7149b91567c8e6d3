# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of the extension that are easier in Python. Not public."""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

import numpy as np

from . import errors

_NAMES = {
    "bool": "?",
    "u8": "u1",
    "i8": "i1",
    "u16": "u2",
    "i16": "i2",
    "u32": "u4",
    "i32": "i4",
    "u64": "u8",
    "i64": "i8",
    "f16": "f2",
    "f32": "f4",
    "f64": "f8",
    "bytes": "u1",
}
_ELEMENTS = {np.dtype(v): k for k, v in _NAMES.items() if k != "bytes"}

# Exact sums, as vyre/sum.h describes them.
SUM_F32 = np.dtype([("bins", "<i8", (11,)), ("flags", "<u4"), ("zero", "<u4")])
SUM_F64 = np.dtype([("bins", "<i8", (71,)), ("flags", "<u4"), ("zero", "<u4")])
_SUMS = {"sum_f32": SUM_F32, "sum_f64": SUM_F64}
_ELEMENTS.update({v: k for k, v in _SUMS.items()})


class Param(NamedTuple):
    """Buffer or uniform of a kernel."""

    name: str
    role: str
    dtype: str
    access: str
    length: int  # declared elements; 0: any number
    is_input: bool
    is_output: bool
    lanes: int = 1  # components of an element, as in f32x3


def param(fields: dict[str, Any]) -> Param:
    return Param(**fields)


def bfloat16() -> np.dtype[Any] | None:
    """Returns the dtype of ml_dtypes, if the program uses that module."""
    module = sys.modules.get("ml_dtypes")
    return np.dtype(module.bfloat16) if module else None


def dtype_of(element: str) -> np.dtype[Any]:
    if element == "bf16":
        found = bfloat16()
        return np.dtype("u2") if found is None else found
    return _SUMS.get(element) or np.dtype(_NAMES[element])


def dtype(value: Any) -> Any:
    if isinstance(value, str) and (value in _NAMES or value in _SUMS or value == "bf16"):
        if value not in ("u8", "i8"):  # bytes in NumPy, 64 bits here: NumPy's
            return dtype_of(value)
    return np.dtype(value)


def element_of(value: np.dtype[Any]) -> str:
    """Returns the element type of a dtype."""
    if value.name == "bfloat16":
        return "bf16"
    element = _ELEMENTS.get(value) if value.isnative else None
    if element is None:
        raise TypeError(
            f"no element type has the dtype {value}\n"
            "Fix: use bool, an integer of 8 to 64 bits, float16, float32 or float64"
        )
    return element


def empty(shape: tuple[int, ...], element: str) -> np.ndarray[Any, Any]:
    make = np.zeros if element in _SUMS else np.empty
    return make(shape, dtype_of(element))


def half_bits(value: float, is_bf16: bool) -> int:
    """Returns the bits of a number as f16 or bf16, -1 if it is too large."""
    if is_bf16:
        word = int(np.float32(value).view(np.uint32))
        if value != value:
            return 0x7FC0
        rounded = (word + 0x7FFF + ((word >> 16) & 1)) >> 16
        if rounded & 0x7FFF == 0x7F80 and abs(value) != float("inf"):
            return -1
        return rounded & 0xFFFF
    with np.errstate(over="ignore"):
        half = np.float16(value)
    if np.isinf(half) and abs(value) != float("inf"):
        return -1
    return int(half.view(np.uint16))


def array_api() -> Any:
    """Returns the function table of NumPy, or None."""
    for name in ("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"):
        module = sys.modules.get(name)
        if module is not None:
            return getattr(module, "_ARRAY_API", None)
    return None


def find_llvm() -> None:
    """Names the LLVM of `pip install vyre[llvm]`, unless $VYRE_LLVM is set."""
    path = os.path.join(sys.prefix, "lib", "libLLVM.so.19.1")
    if "VYRE_LLVM" not in os.environ and os.path.exists(path):
        os.environ["VYRE_LLVM"] = path


def view_of(buffer: Any) -> np.ndarray[Any, Any]:
    """Returns an array over the memory of a buffer."""
    if buffer.nbytes == 0:
        return np.empty(buffer.shape, buffer.dtype)
    return np.frombuffer(buffer, buffer.dtype).reshape(buffer.shape)


def as_dtype(array: np.ndarray[Any, Any], wanted: Any, copy: Any) -> np.ndarray[Any, Any]:
    if copy is False and array.dtype != wanted:
        raise ValueError(
            f"a view as {wanted} needs a copy\nFix: call buffer.numpy().astype(...)"
        )
    return array.astype(wanted, copy=False)


def check_failed(text: str, findings: list[dict[str, Any]]) -> errors.CheckFailed:
    first = findings[0]
    return errors.CheckFailed(
        first["message"],
        code="check_failed",
        kind=first["kind"],
        fix=first["fix"],
        text=text,
        findings=findings,
    )


_kernels: dict[str, Any] = {}


def load_kernel(fingerprint: str, data: bytes) -> Any:
    """Rebuilds a pickled kernel. A worker keeps the kernels that it has seen,
    so that each is compiled once."""
    kernel = _kernels.get(fingerprint)
    if kernel is None:
        from . import _vyre

        kernel = _kernels.setdefault(fingerprint, _vyre.from_bytes(data))
    return kernel


def buffer_of(value: Any, device: Any) -> Any:
    """Makes a device buffer with a copy of an array."""
    from . import _vyre

    array = np.ascontiguousarray(value).reshape(np.shape(value))
    buffer = _vyre.Buffer(array.shape, array.dtype, device=device)
    buffer.upload(array)
    return buffer


def load_buffer(array: np.ndarray[Any, Any], device: str) -> Any:
    """Rebuilds a pickled buffer on a device of the same name."""
    return buffer_of(array, device)


def future(pending: Any) -> Any:
    from ._future import Future

    return Future(pending)
