# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compute kernels on NumPy arrays, with the same bits on every device.

    import numpy as np, vyre

    saxpy = vyre.kernel('''
    kernel saxpy workgroup(256) over(y)
    buffer x : read f32[] @0;
    buffer y : read_write f32[] @1;
    uniform a : f32 @2;
    { let i = global_id.x; if (i < len(y)) y[i] = fma(a, x[i], y[i]); }
    ''')["saxpy"]

    x, y = np.arange(4, dtype="f4"), np.full(4, 10, "f4")
    saxpy(x, y, a=2.0)          # a new array
    saxpy(x, y, a=2.0, out=y)   # in place
"""

from __future__ import annotations

import os as _os
from collections.abc import Iterator as _Iterator
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from typing import TYPE_CHECKING, Any

from . import _support, _vyre, errors
from ._support import Param
from ._vyre import Buffer, Device, Kernel, Launch
from ._vyre import version as __version__
from .errors import (
    CheckFailed,
    CompileFailed,
    DeviceLost,
    DispatchFailed,
    InvalidArgument,
    InvalidProgram,
    OutOfMemory,
    PlanRejected,
    TimedOut,
    Unsupported,
    VyreError,
)

if TYPE_CHECKING:
    from . import cache, plan, sums
    from ._future import Future
    from ._graph import Memory, WaveGraph, WavePlan
    from ._queue import Queue, QueuePlan
    from ._recording import Recording, Slot

_vyre.setup(_support, errors.make, _os.environ.get("VYRE_DEVICE") or "auto")
_os.register_at_fork(after_in_child=_vyre.after_fork)


class Kernels(_Mapping[str, Kernel]):
    """Kernels of a file by name. Names are attributes too."""

    def __init__(self, kernels: list[Kernel]) -> None:
        self._kernels = {k.name: k for k in kernels}

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._kernels[name]
        except KeyError:
            names = ", ".join(self._kernels) or "none"
            raise KeyError(f"no kernel is called {name!r}; kernels: {names}") from None

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._kernels[name]
        except KeyError:
            names = ", ".join(self._kernels) or "none"
            raise AttributeError(f"no kernel is called {name!r}; kernels: {names}") from None

    def __iter__(self) -> _Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kernels]

    def __repr__(self) -> str:
        return f"<vyre.Kernels {', '.join(self._kernels)}>"

    def __reduce__(self) -> Any:
        return Kernels, (list(self._kernels.values()),)


def kernel(text: str, file: str = "<vyre>") -> Kernels:
    """Parses kernels from text. Mistakes raise InvalidProgram, which shows the
    source lines and a fix."""
    return Kernels(_vyre.parse(text, file))


def from_bytes(data: bytes) -> Kernel:
    """Returns the kernel in the bytes of Kernel.to_bytes()."""
    return _vyre.from_bytes(data)


def load(
    path: str | _os.PathLike[str], folders: _Sequence[str | _os.PathLike[str]] = ()
) -> Kernels:
    """Loads a file of kernel text or a program in the binary form. Imports are
    read from the folder of the file, then from `folders`."""
    name = _os.fspath(path)
    with open(name, "rb") as file:
        data = file.read()
    if data[:4] == b"\x89VYR":
        return Kernels([_vyre.from_bytes(data)])
    return Kernels(_vyre.parse(data.decode(), name, [_os.fspath(f) for f in folders]))


def device(name: str | Device = "auto") -> Device:
    """Opens a device, once per process. "auto" is the best one there is."""
    return _vyre.device(name)


def devices() -> list[dict[str, Any]]:
    """Returns all devices, best first, then backends without a device and what
    they miss."""
    return _vyre.devices()


def choose_device(name: str = "auto") -> str:
    """Returns the name of the device that `name` stands for, without opening it."""
    return _vyre.choose(name)


def set_device(name: str | Device) -> None:
    """Sets the device of calls without `device=`. At first it is $VYRE_DEVICE,
    or "auto"."""
    _vyre.set_device(name)


def check(
    k: Kernel, *args: Any, out: Any = None, schedules: int = 0, seed: int = 0, **buffers: Any
) -> Any:
    """Runs a kernel on `ref` and checks every access. Raises CheckFailed, with
    source lines, for races and accesses out of bounds; with `schedules`, also
    for outputs that depend on the order of invocations."""
    return k._check(schedules, seed, *args, out=out, **buffers)


def counters() -> dict[str, float]:
    """Returns the counters of the library, summed over devices and labels."""
    result: dict[str, float] = {}
    for line in _vyre.counters().splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            name = name.split("{", 1)[0]
            result[name] = result.get(name, 0) + float(value)
    return result


# Names that are imported when they are used: importing vyre takes 7 ms.
_LATER = {
    "Future": "_future",
    "Memory": "_graph",
    "Queue": "_queue",
    "QueuePlan": "_queue",
    "Recording": "_recording",
    "Slot": "_recording",
    "WaveGraph": "_graph",
    "WavePlan": "_graph",
}
_MODULES = ("cache", "dask", "mpi", "notebook", "plan", "sums")


def __getattr__(name: str) -> Any:
    if name not in _LATER and name not in _MODULES:
        raise AttributeError(f"module 'vyre' has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"vyre.{_LATER.get(name, name)}")
    found = getattr(module, name) if name in _LATER else module
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES})


def load_ipython_extension(shell: Any) -> None:
    """Registers the cell magic %%vyre: `%load_ext vyre`."""
    from .notebook import register

    register(shell)


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
