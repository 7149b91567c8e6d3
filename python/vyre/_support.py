# SPDX-License-Identifier: MIT OR Apache-2.0
"""Parts of the extension that are easier in Python. Not public."""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Mapping
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


def signature(kernel: Any) -> Any:
    """Returns the signature of calls of a kernel, for help() and editors."""
    import inspect

    both = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = inspect.Parameter.KEYWORD_ONLY
    words: list[inspect.Parameter] = []
    for p in kernel.params:
        if p.is_input or p.role == "persistent":
            kind = p.dtype if p.role == "uniform" else f"{p.dtype}[{p.length or ''}]"
            words.append(inspect.Parameter(p.name, both, annotation=kind))
    taken = {p.name for p in words}
    for name in ("out", "device", "grid", "timeout", "stats"):
        if name not in taken:
            words.append(inspect.Parameter(name, named, default=None))
    return inspect.Signature(words)


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
    if element is None and value.fields and value.isnative and not value.hasobject:
        return "bytes"  # records: structs of kernels
    if element is None:
        raise TypeError(
            f"no element type has the dtype {value}\n"
            "Fix: use bool, an integer of 8 to 64 bits, float16, float32, float64 or records of them"
        )
    return element


def empty(shape: tuple[int, ...], element: str) -> np.ndarray[Any, Any]:
    return np.empty(shape, dtype_of(element))


# --- records: structs and sums ------------------------------------------------------


def zeros(shape: tuple[int, ...], record: np.dtype[Any]) -> np.ndarray[Any, Any]:
    return np.zeros(shape, record)


def field_dtype(element: str, lanes: int) -> np.dtype[Any]:
    return dtype_of(element) if lanes == 1 else np.dtype((dtype_of(element), (lanes,)))


def struct_dtype(fields: list[tuple[str, np.dtype[Any], int]], size: int) -> np.dtype[Any]:
    names, formats, offsets = zip(*fields)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": size})


def format_of(record: np.dtype[Any]) -> str:
    """Returns the format of records in the buffer protocol."""
    try:
        return str(np.empty(0, record).data.format)
    except (ValueError, BufferError):  # it has none, for example for bfloat16
        return f"{record.itemsize}B"


def record_bytes(value: Any, wanted: np.dtype[Any], name: str, is_uniform: bool) -> Any:
    """Returns the bytes of records, None if they have gaps, or their dtype if it is
    another one. Only a uniform is copied, from a tuple or a dict of its fields."""
    if is_uniform and isinstance(value, (tuple, Mapping)):
        made = np.zeros(1, wanted)
        _fill(made[0], value, name)
        return made.view("u1")
    if not hasattr(value, "__array_interface__") and not _is_buffer(value):
        return type(value)
    array = np.asarray(value)
    if array.dtype != wanted:
        return array.dtype
    return array.reshape(-1).view("u1") if array.flags.c_contiguous else None


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _fill(record: Any, value: Any, name: str) -> None:
    """Stores the fields of a record, which are never rounded or cut."""
    names = record.dtype.names
    given = tuple(value.get(n) for n in names) if isinstance(value, Mapping) else value
    if not isinstance(given, tuple) or len(given) != len(names) or (
        isinstance(value, Mapping) and set(value) != set(names)
    ):
        raise TypeError(f"'{name}' takes a record of {names}, not {value!r}\nFix: pass one value for each field")
    for field, one in zip(names, given):
        part = record.dtype.fields[field][0]
        if part.fields:
            _fill(record[field], one, f"{name}.{field}")
        elif part.shape:
            if np.shape(one) != part.shape:
                raise TypeError(f"'{name}.{field}' takes {part.shape[0]} numbers\nFix: pass a tuple of that many numbers")
            record[field] = [_number(n, part.base, f"{name}.{field}") for n in one]
        else:
            record[field] = _number(one, part, f"{name}.{field}")


def _number(value: Any, kind: np.dtype[Any], name: str) -> Any:
    """Returns a number that a field can hold."""
    try:
        if kind.kind == "b":
            return bool(value)
        number = float(value) if kind.kind not in "iu" else operator.index(value)
    except (TypeError, ValueError):
        what = "an integer" if kind.kind in "iu" else "a number"
        raise TypeError(f"'{name}' takes {what}, not {value!r}\nFix: pass {what}") from None
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        fits = limits.min <= number <= limits.max
    else:
        with np.errstate(over="ignore"):
            fits = bool(np.isfinite(kind.type(number))) or not np.isfinite(number)
    if not fits:
        raise OverflowError(f"{value} does not fit into '{name}', which is {kind}\nFix: pass a number in the range of the type")
    return number


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
    if "VYRE_LLVM" in os.environ:
        return
    path = os.path.join(sys.prefix, "lib", _LLVM)
    if not os.path.exists(path):
        path = _installed_llvm()
    if path:
        os.environ["VYRE_LLVM"] = path


_LLVM = "libLLVM.so.19.1"


def _installed_llvm() -> str:
    """Returns the LLVM of a package that is installed elsewhere, for example for one
    user. The metadata is searched only if the package is among the modules."""
    for folder in sys.path:
        if not (os.path.isdir(folder) and any(n.startswith("karellen_llvm_core-") for n in os.listdir(folder))):
            continue
        import importlib.metadata

        for file in importlib.metadata.files("karellen-llvm-core") or ():
            if file.name == _LLVM:
                return os.path.realpath(str(file.locate()))
    return ""


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
