# SPDX-License-Identifier: MIT OR Apache-2.0
"""Planners of the library as functions of arrays: memory of queues, barriers
between waves, groups within a budget, placement of memory. They need no device.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import _vyre
from ._plan_svg import frontier_svg, placement_svg

__all__ = [
    "Backpressure", "Barriers", "Binding", "Expansion", "Frontier", "Placement", "Queue",
    "backpressure", "barriers", "bindings", "expansion", "frontier", "place", "queue",
]  # fmt: skip

Array = np.ndarray[Any, np.dtype[Any]]


def _table(plan: Any) -> str:
    rows = "".join(
        f"<tr><td>{f.name}</td><td>{getattr(plan, f.name)!r}</td></tr>"
        for f in dataclasses.fields(plan)
        if not isinstance(getattr(plan, f.name), np.ndarray)
    )
    return f"<table>{rows}</table>"


class _Html:
    def _repr_html_(self) -> str:
        return _table(self)


@dataclasses.dataclass(frozen=True)
class Binding(_Html):
    """Role and place of one buffer of a kernel."""

    name: str
    binding: int
    role: str
    element_size: int
    element_count: int
    preferred_alignment: int
    is_input: bool
    is_output: bool
    locality: str


@dataclasses.dataclass(frozen=True)
class Queue(_Html):
    """Memory of a device work queue."""

    queue_bytes: int
    control_bytes: int
    resident_bytes: int
    initial_occupancy_bps: int
    final_only_host_sync: bool


@dataclasses.dataclass(frozen=True)
class Backpressure(_Html):
    """Queue whose launches drain a limited number of items each."""

    queue: Queue
    strategy: str
    items_per_chunk: int
    chunks: int


@dataclasses.dataclass(frozen=True)
class Expansion(_Html):
    """Queue with as much space for new items as the budget allows."""

    queue: Queue
    desired_capacity: int
    queue_capacity: int


@dataclasses.dataclass(frozen=True, eq=False)
class Barriers(_Html):
    """Groups of waves: group g has waves[group_offsets[g]:group_offsets[g + 1]]."""

    group_offsets: Array
    waves: Array
    global_barriers: int

    def __iter__(self) -> Any:
        for a, b in zip(self.group_offsets[:-1], self.group_offsets[1:]):
            yield self.waves[a:b]


@dataclasses.dataclass(frozen=True, eq=False)
class Frontier:
    """Groups of waves that fit a memory budget."""

    barriers: Barriers
    peak_frontier_bytes: int
    peak_scratch_bytes: int
    peak_output_bytes: int
    peak_group_bytes: int
    amortized_readback_bytes: int
    max_group_width: int
    minimum_groups: int

    def _repr_html_(self) -> str:
        return frontier_svg(self) + _table(self)


@dataclasses.dataclass(frozen=True, eq=False)
class Placement:
    """Offsets of intervals of memory in one allocation."""

    offsets: Array
    placed_bytes: int
    lower_bound_bytes: int
    gap_bytes: int
    is_optimal: bool
    method: str
    intervals: Array = dataclasses.field(repr=False)

    def _repr_html_(self) -> str:
        return placement_svg(self) + _table(self)


def _rows(value: Any, columns: int, what: str) -> Array:
    array = np.asarray(value)
    if array.size == 0:
        array = array.astype("u8").reshape(-1, columns)
    if array.dtype.kind not in "ui" or array.ndim != 2 or array.shape[1] != columns:
        raise TypeError(
            f"{what} is an array of integers with {columns} columns, not "
            f"{array.dtype}{list(array.shape)}\nFix: pass a list of {columns}-tuples"
        )
    if array.dtype.kind == "i" and (array < 0).any():
        raise ValueError(f"{what} has a negative number\nFix: pass numbers of 0 or more")
    return np.ascontiguousarray(array, "u8")


def bindings(kernel: Any) -> tuple[Binding, ...]:
    """Returns the binding plan of a kernel."""
    return tuple(Binding(**row) for row in _vyre.plan_bindings(kernel))


def queue(
    initial_items: int, capacity: int, entry_bytes: int, control_bytes: int, budget_bytes: int
) -> Queue:
    """Plans the memory of a queue."""
    return Queue(
        **_vyre.plan_queue(initial_items, capacity, entry_bytes, control_bytes, budget_bytes, 0)
    )


def backpressure(
    initial_items: int,
    capacity: int,
    entry_bytes: int,
    control_bytes: int,
    budget_bytes: int,
    max_items_per_drain: int,
) -> Backpressure:
    """Plans a queue whose launches drain at most max_items_per_drain items."""
    if max_items_per_drain <= 0:
        raise ValueError("a drain takes at least 1 item\nFix: pass max_items_per_drain of 1 or more")
    d = _vyre.plan_queue(
        initial_items, capacity, entry_bytes, control_bytes, budget_bytes, max_items_per_drain
    )
    fields: dict[str, Any] = {**d, "queue": Queue(**d["queue"])}
    return Backpressure(**fields)


def expansion(
    initial_items: int,
    expansion_items: int,
    entry_bytes: int,
    control_bytes: int,
    budget_bytes: int,
) -> Expansion:
    """Plans a queue with space for items that the kernel adds."""
    d = _vyre.plan_expansion(
        initial_items, expansion_items, entry_bytes, control_bytes, budget_bytes
    )
    fields: dict[str, Any] = {**d, "queue": Queue(**d["queue"])}
    return Expansion(**fields)


def _barriers(d: dict[str, Any]) -> Barriers:
    return Barriers(
        np.array(d["group_offsets"], "u4"), np.array(d["waves"], "u4"), d["global_barriers"]
    )


def barriers(wave_count: int, dependencies: Any) -> Barriers:
    """Groups waves; dependencies are rows (before, after)."""
    return _barriers(_vyre.plan_barriers(wave_count, _rows(dependencies, 2, "dependencies")))


def frontier(
    waves: Any,
    dependencies: Any,
    budget_bytes: int,
    resident_graph_bytes: int = 0,
    readback_bytes: int = 0,
) -> Frontier:
    """Groups waves within a budget; waves are rows (frontier, scratch, output) of
    bytes."""
    d = _vyre.plan_frontier(
        _rows(waves, 3, "waves"),
        _rows(dependencies, 2, "dependencies"),
        resident_graph_bytes,
        budget_bytes,
        readback_bytes,
    )
    fields: dict[str, Any] = {**d, "barriers": _barriers(d["barriers"])}
    return Frontier(**fields)


def place(intervals: Any) -> Placement:
    """Places memory; intervals are rows (size, alignment, first group, last
    group)."""
    rows = _rows(intervals, 4, "intervals")
    d = _vyre.plan_place(rows)
    fields: dict[str, Any] = {**d, "offsets": np.array(d["offsets"], "u8"), "intervals": rows}
    return Placement(**fields)
