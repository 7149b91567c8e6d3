# SPDX-License-Identifier: MIT OR Apache-2.0
"""Device work queues: a queue kernel runs until its queue is empty."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

from . import _support, _vyre
from .plan import _Html

__all__ = ["Queue", "QueuePlan"]


@dataclasses.dataclass(frozen=True)
class QueuePlan(_Html):
    """Plan of a queue. Every run uses exactly this memory."""

    mode: str
    kind: str
    capacity: int
    item_bytes: int
    pushes: int
    items_per_chunk: int
    max_depth: int
    queue_bytes: int
    control_bytes: int
    memory_bytes: int


class Queue:
    """Queue of a queue kernel on a device.

        q = vyre.Queue(kernels.bfs, capacity=1000)
        q.fill([0])
        depth = q.run(offsets, neighbours, depth=1000)
        q.stats["windows"]

    Windows run one after the other: the items of fill, then those that they
    pushed, and so on. A run that stops keeps its items; the next one continues.
    """

    def __init__(
        self, kernel: Any, device: Any = None, *, capacity: int = 0, mode: str = "auto",
        budget_bytes: int = 0, items_per_chunk: int = 0, max_depth: int = 0, max_windows: int = 0,
        timeout: float = 0, order_hash: bool = False,
    ) -> None:  # fmt: skip
        fields = _vyre.queue_fields(kernel)
        if fields is None:
            raise TypeError(
                f"kernel '{kernel.name}' is no queue kernel\nFix: declare it as kernel {kernel.name} queue(u32) ..."
            )
        types = [(name or "item", _support.dtype_of(kind)) for name, kind in fields]
        self.dtype: np.dtype[Any] = types[0][1] if len(types) == 1 else np.dtype(types)
        """dtype of the items."""
        self.kernel = kernel
        self.stats: dict[str, Any] = {}
        """Figures of the last run."""
        self._queue = _vyre.WorkQueue(
            kernel, device, mode, capacity, budget_bytes, items_per_chunk, max_depth, max_windows,
            int(timeout * 1e9), order_hash,
        )  # fmt: skip

    def fill(self, items: Any) -> None:
        """Adds items to the first window, in order: numbers, tuples of fields, an
        array of `dtype`, or a Buffer. Empties a queue that stopped."""
        if isinstance(items, _vyre.Buffer):
            self._queue.fill_from(items, items.nbytes // self.dtype.itemsize)
            return
        if isinstance(items, np.ndarray):
            if items.dtype != self.dtype:
                raise TypeError(f"items have the dtype {self.dtype}, not {items.dtype}\nFix: convert the array with .astype")
            array = np.ascontiguousarray(items).reshape(-1)
        else:
            try:
                given = list(items)
                with np.errstate(all="ignore"), warnings.catch_warnings():
                    warnings.simplefilter("error")  # NumPy 1 only warns of a number that does not fit
                    array = np.array(given, self.dtype)
                exact = self.dtype.names or self.dtype.kind == "f" or array.tolist() == given
            except (OverflowError, TypeError, ValueError, Warning) as error:
                raise TypeError(f"items are values of {self.dtype}: {error}\nFix: pass a list, or an array of that dtype") from None
            if not exact:
                raise OverflowError(f"an item does not fit into {self.dtype}\nFix: pass numbers in the range of the type")
        self._queue.fill(array.reshape(-1).view("u1"), array.size)

    def run(self, *args: Any, **buffers: Any) -> Any:
        """Runs until the queue is empty. Takes the arguments of a call of the
        kernel and returns its outputs. `stats` has the figures."""
        self.stats = {}
        return self._queue.run(self.stats, *args, **buffers)

    def cancel(self) -> None:
        """Stops a run on another thread behind its current chunk."""
        self._queue.cancel()

    def take(self) -> np.ndarray[Any, Any]:
        """Removes and returns all items."""
        return np.frombuffer(self._queue.take(self.dtype.itemsize), self.dtype).copy()

    def resize(self, capacity: int) -> None:
        """Gives the queue another capacity and keeps its items."""
        self._queue.resize(capacity)

    @property
    def state(self) -> dict[str, Any]:
        """Numbers of items between runs."""
        result: dict[str, Any] = self._queue.state()
        return result

    @property
    def plan(self) -> QueuePlan:
        """Memory and steps of the queue."""
        return QueuePlan(**self._queue.plan())

    def __str__(self) -> str:
        return str(self._queue.text())
