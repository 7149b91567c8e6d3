# SPDX-License-Identifier: MIT OR Apache-2.0
"""Wave graphs: many dispatches that are planned once and run as one submission."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from . import _support, _vyre
from ._plan_svg import graph_svg
from .plan import Barriers, _barriers, _table

__all__ = ["Memory", "Wave", "WaveGraph", "WavePlan"]


RESERVED = ("out", "timeout", "stats")  # options of run()


class Memory:
    """Memory of a wave graph, or a part of one: `memory[a:b]`."""

    __slots__ = ("graph", "name", "shape", "dtype", "number", "offset", "role")

    def __init__(
        self, graph: WaveGraph, name: str, shape: tuple[int, ...], dtype: Any, number: int,
        offset: int, role: frozenset[str],
    ):  # fmt: skip
        self.graph = graph
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.number = number
        self.offset = offset
        self.role = role

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    def __getitem__(self, key: slice) -> Memory:
        if not isinstance(key, slice) or not self.shape:
            raise TypeError("memory is sliced along its first axis\nFix: use memory[a:b]")
        start, stop, step = key.indices(self.shape[0])
        if step != 1 or stop <= start:
            raise ValueError(
                f"the slice {start}:{stop}:{step} is no range of elements\nFix: use memory[a:b] with a < b"
            )
        row = math.prod(self.shape[1:]) * int(self.dtype.itemsize)
        shape = (stop - start, *self.shape[1:])
        return Memory(
            self.graph, self.name, shape, self.dtype, self.number, self.offset + start * row, self.role
        )

    def __repr__(self) -> str:
        return f"<vyre.Memory {self.name} {self.dtype}{list(self.shape)}>"


class Wave(int):
    """Number of a wave in its graph."""


@dataclasses.dataclass(frozen=True, eq=False)
class WavePlan:
    """Plan of a wave graph. Every run allocates, orders and submits exactly this."""

    barriers: Barriers  # groups of waves
    names: tuple[str, ...]  # of the memories
    labels: tuple[str, ...]  # of the waves
    intervals: np.ndarray[Any, Any] = dataclasses.field(repr=False)
    offsets: np.ndarray[Any, Any] = dataclasses.field(repr=False)
    placed_bytes: int
    lower_bound_bytes: int
    separate_bytes: int  # without sharing
    resident_bytes: int
    upload_bytes: int
    readback_bytes: int
    submissions: int
    threads: int

    def _repr_html_(self) -> str:
        return graph_svg(self) + _table(self)


class WaveGraph:
    """Dispatches and their memory, planned once.

        with vyre.WaveGraph() as g:
            x = g.memory("x", 1000, "f4", input=True)
            t = g.memory("t", 1000, "f4")
            y = g.memory("y", 1000, "f4", output=True)
            g.wave(twice, x, t)
            g.wave(twice, t, y)
        y = g.run(x=array)

    The end of the block plans the graph and allocates its memory. A run is one
    submission with one readback. Waves update memory in place.
    """

    def __init__(
        self, device: Any = None, *, budget_bytes: int = 0, declared_only: bool = False,
        separate: bool = False,
    ) -> None:  # fmt: skip
        self._graph = _vyre.Graph(device, budget_bytes, declared_only, separate)
        self._memory: dict[str, Memory] = {}
        self._labels: list[str] = []
        self._sealed = False

    def __enter__(self) -> WaveGraph:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self._graph.seal()
            self._sealed = True

    def memory(
        self, name: str, shape: int | tuple[int, ...], dtype: Any = "f4", *, input: bool = False,
        output: bool = False, external: bool = False, kept: bool = False,
    ) -> Memory:  # fmt: skip
        """Adds memory. With `input`, each run takes an array by this name; with
        `output`, it returns one; with `external`, it takes a Buffer. `kept` memory
        has the contents of the last run. Other memory shares its bytes with
        memory that lives at other times."""
        if name in RESERVED:
            raise ValueError(f"run() has an option '{name}'\nFix: use another name")
        full = np.dtype(_support.dtype(dtype))
        extents = tuple(int(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,)))
        if any(n < 0 for n in extents):
            raise ValueError(f"invalid shape {shape!r}\nFix: pass extents of 1 or more")
        size = math.prod(extents) * full.itemsize
        number = self._graph.resource(name, full, size, input, output, external, kept)
        flags = {"input": input, "output": output, "external": external}
        role = frozenset(word for word, is_set in flags.items() if is_set)
        made = Memory(self, name, extents, full, number, 0, role)
        self._memory[name] = made
        return made

    def wave(
        self, kernel: Any, *args: Any, grid: int | tuple[int, ...] | None = None,
        label: str | None = None, **buffers: Any,
    ) -> Wave:  # fmt: skip
        """Adds a dispatch. The arguments are all buffers and uniforms of the
        kernel in the order of the text, or by name: memory of the graph, or a
        number or an array, whose bytes the graph copies."""
        given = dict(zip((p.name for p in kernel.params), args))
        if len(args) > len(kernel.params):
            raise TypeError(
                f"kernel '{kernel.name}' has {len(kernel.params)} buffers, not {len(args)}\n"
                "Fix: pass one argument per buffer or uniform"
            )
        for name, value in buffers.items():
            if name in given or name not in {p.name for p in kernel.params}:
                raise TypeError(
                    f"'{name}' is given twice, or kernel '{kernel.name}' has no such buffer\n"
                    f"Fix: use each of {tuple(p.name for p in kernel.params)} once"
                )
            given[name] = value
        bindings: list[tuple[Any, Any]] = []
        for p in kernel.params:
            if p.name not in given:
                raise TypeError(f"kernel '{kernel.name}' misses '{p.name}'\nFix: pass it by position or by name")
            value = given[p.name]
            if isinstance(value, Memory):
                if value.graph is not self:
                    raise TypeError(f"{value!r} belongs to another graph\nFix: use memory of this graph")
                bindings.append(((value.number, value.offset, value.nbytes), None))
            else:
                bindings.append((None, value))
        sizes = (grid,) if isinstance(grid, int) else tuple(grid or ())
        sizes = (*sizes, *([1] * 3))[:3] if sizes else (0, 0, 0)
        number = Wave(self._graph.wave(kernel, tuple(bindings), sizes, label))
        self._labels.append(label or kernel.name)
        return number

    def order(self, before: int, after: int) -> None:
        """Declares that one wave runs in a later group than another."""
        self._graph.order(before, after)

    def repeat(
        self, flag: Memory, max_iterations: int, *, index: int = 0, check_interval: int = 0
    ) -> None:
        """Repeats all waves while flag[index], a u32, is not 0."""
        if flag.dtype != np.dtype("u4"):
            raise TypeError(f"a flag is u32, and {flag!r} is not\nFix: declare it with dtype 'u4'")
        self._graph.repeat(flag.number, flag.offset + 4 * index, max_iterations, check_interval)

    @property
    def plan(self) -> WavePlan:
        """Groups, places in memory, and bytes."""
        d = self._graph.plan()
        intervals = np.array(d["intervals"], "u8").reshape(-1, 4)
        rest = {k: v for k, v in d.items() if k not in ("barriers", "intervals", "offsets")}
        return WavePlan(
            barriers=_barriers(d["barriers"]), names=tuple(self._memory), labels=tuple(self._labels),
            intervals=intervals, offsets=np.array(d["offsets"], "u8"), **rest,
        )  # fmt: skip

    def _arguments(self, out: Any, arrays: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
        if not self._sealed:
            raise ValueError("the graph is not complete\nFix: run it after the end of its with block")
        inputs: list[Any] = []
        externals: list[Any] = []
        outputs: list[Any] = []
        results: list[Any] = []
        given = dict(out or {})
        for name, memory in self._memory.items():
            if memory.role & {"input", "external"}:
                if name not in arrays:
                    raise TypeError(f"the graph misses '{name}'\nFix: pass it by name: run({name}=...)")
                pair = (memory.number, arrays.pop(name))
                (externals if "external" in memory.role else inputs).append(pair)
            if "output" in memory.role:
                array = given.pop(name, None)
                if array is None:
                    array = np.empty(memory.shape, memory.dtype)
                outputs.append((memory.number, array))
                results.append(array)
        for name in (*arrays, *given):
            raise TypeError(
                f"the graph has no input or output '{name}'\nFix: use the names of its memory"
            )
        value = results[0] if len(results) == 1 else tuple(results) or None
        return tuple(inputs), tuple(outputs), tuple(externals), value

    def run(
        self, *, out: dict[str, Any] | None = None, timeout: float = 0,
        stats: dict[str, Any] | None = None, **arrays: Any,
    ) -> Any:  # fmt: skip
        """Runs the graph. Returns its outputs in the order of their declaration:
        new arrays, or those of `out` by name."""
        inputs, outputs, externals, value = self._arguments(out, arrays)
        figures = self._graph.run(inputs, outputs, externals, int(timeout * 1e9), None)
        if stats is not None:
            stats.update(figures)
        return value

    def submit(self, *, out: dict[str, Any] | None = None, timeout: float = 0, **arrays: Any) -> Any:
        """Runs the graph without waiting. Returns a Future of the outputs."""
        inputs, outputs, externals, value = self._arguments(out, arrays)
        return self._graph.submit(inputs, outputs, externals, int(timeout * 1e9), value)

    def __str__(self) -> str:
        return str(self._graph.text())
