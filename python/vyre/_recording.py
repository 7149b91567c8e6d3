# SPDX-License-Identifier: MIT OR Apache-2.0
"""Recordings: commands that are checked once and replayed many times."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from . import _vyre


class Slot:
    """Named place for memory in a recording, or a part of one."""

    __slots__ = ("name", "number", "offset", "nbytes", "_recording")

    def __init__(self, recording: Recording, name: str, number: int, offset: int, nbytes: int):
        self._recording = recording
        self.name = name
        self.number = number
        self.offset = offset
        self.nbytes = nbytes

    def part(self, offset: int, nbytes: int) -> Slot:
        """Returns a part of the slot, in bytes."""
        return Slot(self._recording, self.name, self.number, self.offset + offset, nbytes)

    def _range(self) -> tuple[int, int, int]:
        return self.number, self.offset, self.nbytes

    def __repr__(self) -> str:
        return f"<vyre.Slot {self.name}>"


class Recording:
    """Sequence of commands over slots.

        with vyre.Recording() as r:
            x, y = r.slot("x"), r.slot("y")
            r.dispatch(saxpy, x, y, a, out=y)
        r.bind(x=..., y=..., a=...)
        r.replay()

    The end of the block checks and plans the recording. Memory bound to a slot
    stays in use until the slot is bound again.
    """

    def __init__(self, device: Any = None) -> None:
        self._recorder = _vyre.Recorder(device)
        self._slots: dict[str, Slot] = {}
        # The method below without its frame of Python.
        self.__dict__["replay"] = self._recorder.replay

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self._recorder.seal()

    def slot(self, name: str, nbytes: int = 0) -> Slot:
        """Adds a slot. With nbytes, it takes exactly that many bytes."""
        self._slots[name] = Slot(self, name, self._recorder.slot(name, nbytes), 0, 0)
        return self._slots[name]

    def dispatch(
        self,
        k: Any,
        *slots: Slot,
        out: Slot | tuple[Slot, ...] | None = None,
        grid: int | tuple[int, ...] | None = None,
    ) -> None:
        """Adds a dispatch: slots in the order of the kernel's inputs."""
        outputs = () if out is None else out if isinstance(out, tuple) else (out,)
        self._own((*slots, *outputs))
        sizes = (grid,) if isinstance(grid, int) else tuple(grid or ())
        sizes = (*sizes, *([0] * 3))[:3] if not sizes else (*sizes, 1, 1)[:3]
        self._recorder.dispatch(
            k, tuple(s._range() for s in slots), tuple(s._range() for s in outputs), sizes
        )

    def copy(self, a: Slot, b: Slot) -> None:
        """Adds a copy of the bytes of a to b."""
        self._own((a, b))
        self._recorder.copy(a._range(), b._range())

    @contextlib.contextmanager
    def loop(self, flag: Slot, max_iterations: int, check_interval: int = 0) -> Iterator[None]:
        """Repeats the commands of the block while the u32 in `flag` is not 0."""
        self._own((flag,))
        self._recorder.begin_while(flag._range(), max_iterations, check_interval)
        yield
        self._recorder.end_while()

    def bind(self, **slots: Any) -> None:
        """Binds arrays or buffers to slots."""
        self._recorder.bind(**slots)

    def replay(self, *, wait: bool = True, **slots: Any) -> Any:
        """Runs the recording. With wait=False, returns a Future."""
        return self._recorder.replay(wait=wait, **slots)

    def replay_stats(self, *, skip_uploads: bool = False, timeout: float = 0) -> dict[str, Any]:
        """Runs the recording and returns its statistics."""
        result: dict[str, Any] = self._recorder.replay_stats(skip_uploads, int(timeout * 1e9))
        return result

    def _own(self, slots: tuple[Slot, ...]) -> None:
        for s in slots:
            if not isinstance(s, Slot) or s._recording is not self:
                raise TypeError(
                    f"{s!r} is not a slot of this recording\nFix: use recording.slot(name)"
                )

    def __str__(self) -> str:
        return str(self._recorder.text())
