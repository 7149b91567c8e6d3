# SPDX-License-Identifier: MIT OR Apache-2.0
import inspect
import os
import sys
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future as _BaseFuture
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt

from . import cache as cache
from . import errors as errors
from . import plan as plan
from . import sums as sums
from ._graph import Memory as Memory
from ._graph import WaveGraph as WaveGraph
from ._graph import WavePlan as WavePlan
from ._queue import Queue as Queue
from ._queue import QueuePlan as QueuePlan
from .errors import CheckFailed as CheckFailed
from .errors import CompileFailed as CompileFailed
from .errors import DeviceLost as DeviceLost
from .errors import DispatchFailed as DispatchFailed
from .errors import InvalidArgument as InvalidArgument
from .errors import InvalidProgram as InvalidProgram
from .errors import OutOfMemory as OutOfMemory
from .errors import PlanRejected as PlanRejected
from .errors import TimedOut as TimedOut
from .errors import Unsupported as Unsupported
from .errors import VyreError as VyreError

__version__: str

class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> object: ...

_Array: TypeAlias = npt.NDArray[Any]
_Arg: TypeAlias = _Array | Buffer | bytes | bytearray | memoryview | _SupportsDLPack | int | float | bool
_Out: TypeAlias = _Array | Buffer | tuple[_Array | Buffer | None, ...]
_Result: TypeAlias = Any  # None, an array, a Buffer, or a tuple of them
_Grid: TypeAlias = int | tuple[int, ...]

class Param(NamedTuple):
    name: str
    role: str
    dtype: str
    access: str
    length: int
    is_input: bool
    is_output: bool
    lanes: int = 1

@final
class Device:
    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def is_lost(self) -> bool: ...
    @property
    def caps(self) -> dict[str, Any]: ...
    def reopen(self) -> None: ...

@final
class Kernel:
    @property
    def __name__(self) -> str: ...
    @property
    def __signature__(self) -> inspect.Signature: ...
    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def params(self) -> tuple[Param, ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def workgroup(self) -> tuple[int, int, int]: ...
    def __call__(
        self,
        *args: _Arg,
        out: _Out | None = None,
        device: str | Device | None = None,
        grid: _Grid | None = None,
        timeout: float | None = None,
        stats: dict[str, int | None] | None = None,
        **buffers: _Arg,
    ) -> _Result: ...
    def submit(
        self,
        *args: _Arg,
        out: _Out | None = None,
        device: str | Device | None = None,
        grid: _Grid | None = None,
        timeout: float | None = None,
        **buffers: _Arg,
    ) -> Future: ...
    def on(
        self,
        device: str | Device | None = None,
        *,
        workgroup: _Grid | None = None,
        ulp_budget: int = 0,
        baseline: bool = False,
        optimised: bool = False,
    ) -> Launch: ...
    @overload
    def emit(self, form: Literal["spirv"], *, float_mode: str = "native") -> bytes: ...
    @overload
    def emit(
        self,
        form: Literal[
            "lowered", "c", "llvm", "spirv-text", "schedule", "asm", "llvm-optimised", "why"
        ] = "c",
        after: str | None = None,
        width: int = 0,
        float_mode: Literal["native", "corrected", "soft"] = "native",
    ) -> str: ...
    def dtype(self, name: str, /) -> np.dtype[Any]: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes, /) -> Kernel: ...
    def __dask_tokenize__(self) -> str: ...

@final
class Launch:
    @property
    def kernel(self) -> Kernel: ...
    @property
    def device(self) -> Device: ...
    def __call__(
        self,
        *args: _Arg,
        out: _Out | None = None,
        grid: _Grid | None = None,
        timeout: float | None = None,
        stats: dict[str, int | None] | None = None,
        **buffers: _Arg,
    ) -> _Result: ...
    def submit(
        self,
        *args: _Arg,
        out: _Out | None = None,
        grid: _Grid | None = None,
        timeout: float | None = None,
        **buffers: _Arg,
    ) -> Future: ...

@final
class Buffer:
    def __new__(
        cls,
        shape: int | tuple[int, ...],
        dtype: npt.DTypeLike = "f4",
        *,
        device: str | Device | None = None,
    ) -> Buffer: ...
    @classmethod
    def of(cls, array: npt.ArrayLike, device: str | Device | None = None) -> Buffer: ...
    @classmethod
    def from_dlpack(cls, tensor: _SupportsDLPack, device: str | Device | None = None) -> Buffer: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def device(self) -> Device: ...
    def numpy(self, out: _Array | None = None) -> _Array: ...
    def upload(self, array: _Array, /) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> Buffer: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> _Array: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...

class Future(_BaseFuture[Any]):
    def __init__(self, pending: Any) -> None: ...
    def __await__(self) -> Generator[Any, None, _Result]: ...

class Slot:
    name: str
    number: int
    offset: int
    nbytes: int
    def __init__(self, recording: Recording, name: str, number: int, offset: int, nbytes: int) -> None: ...
    def part(self, offset: int, nbytes: int) -> Slot: ...

class Recording(AbstractContextManager["Recording"]):
    def __init__(self, device: str | Device | None = None) -> None: ...
    def __exit__(self, kind: Any, value: Any, trace: Any, /) -> None: ...
    def slot(self, name: str, nbytes: int = 0) -> Slot: ...
    def dispatch(
        self,
        k: Kernel,
        *slots: Slot,
        out: Slot | tuple[Slot, ...] | None = None,
        grid: _Grid | None = None,
    ) -> None: ...
    def copy(self, a: Slot, b: Slot) -> None: ...
    def loop(
        self, flag: Slot, max_iterations: int, check_interval: int = 0
    ) -> AbstractContextManager[None]: ...
    def bind(self, **slots: _Array | Buffer | bytearray) -> None: ...
    @overload
    def replay(self, *, wait: Literal[True] = True, **slots: _Array | Buffer) -> None: ...
    @overload
    def replay(self, *, wait: Literal[False], **slots: _Array | Buffer) -> Future: ...
    def replay_stats(self, *, skip_uploads: bool = False, timeout: float = 0) -> dict[str, Any]: ...

class Kernels(Mapping[str, Kernel]):
    def __init__(self, kernels: list[Kernel]) -> None: ...
    def __getitem__(self, name: str) -> Kernel: ...
    def __getattr__(self, name: str) -> Kernel: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

def kernel(text: str, file: str = "<vyre>") -> Kernels: ...
def from_bytes(data: bytes) -> Kernel: ...
def load(path: str | os.PathLike[str]) -> Kernels: ...
def device(name: str | Device = "auto") -> Device: ...
def devices() -> list[dict[str, Any]]: ...
def choose_device(name: str = "auto") -> str: ...
def set_device(name: str | Device) -> None: ...
def check(
    k: Kernel, *args: _Arg, out: _Out | None = None, schedules: int = 0, seed: int = 0, **buffers: _Arg
) -> _Result: ...
def counters() -> dict[str, float]: ...
def load_ipython_extension(shell: Any) -> None: ...

__all__ = [
    "Buffer",
    "CheckFailed",
    "CompileFailed",
    "Device",
    "DeviceLost",
    "DispatchFailed",
    "Future",
    "InvalidArgument",
    "InvalidProgram",
    "Kernel",
    "Kernels",
    "Launch",
    "Memory",
    "OutOfMemory",
    "Param",
    "PlanRejected",
    "Queue",
    "QueuePlan",
    "Recording",
    "Slot",
    "TimedOut",
    "Unsupported",
    "VyreError",
    "WaveGraph",
    "WavePlan",
    "cache",
    "check",
    "choose_device",
    "counters",
    "device",
    "devices",
    "errors",
    "from_bytes",
    "kernel",
    "load",
    "plan",
    "set_device",
    "sums",
]
