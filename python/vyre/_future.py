# SPDX-License-Identifier: MIT OR Apache-2.0
"""Futures of submitted work."""

from __future__ import annotations

import concurrent.futures
import os
import select
import threading
from collections.abc import Callable, Generator
from typing import Any


class Future(concurrent.futures.Future):  # type: ignore[type-arg]
    """Result of submitted work.

    A Future can be waited for with result(), awaited in an event loop, and
    passed to concurrent.futures.wait and as_completed. Only the last two start
    a thread; it waits for all futures of the process.
    """

    def __init__(self, pending: Any) -> None:
        # The state of the base class is made when something asks for it.
        self._pending = pending

    def __getattr__(self, name: str) -> Any:
        if name in ("_condition", "_state", "_waiters", "_done_callbacks", "_result", "_exception"):
            self._attach()
            return self.__dict__[name]
        raise AttributeError(name)

    def _attach(self) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        _watch(self)

    def _finish(self) -> None:
        """Sets the state of the base class."""
        try:
            self._pending.wait(None)
        except BaseException as error:
            self.set_exception(error)
        else:
            self.set_result(self._pending.value)

    def done(self) -> bool:
        """Returns True when the work has finished."""
        return bool(self._pending.done())

    def running(self) -> bool:
        """Returns True until the work has finished."""
        return not self._pending.done()

    def cancelled(self) -> bool:
        """Returns False: submitted work runs to its end."""
        return False

    def cancel(self) -> bool:
        """Returns False: submitted work runs to its end."""
        return False

    def result(self, timeout: float | None = None) -> Any:
        """Waits for the work and returns its result, or raises its error."""
        if not self._pending.wait(timeout):
            raise TimeoutError(f"the work is still running after {timeout} s")
        return self._pending.value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Waits for the work and returns its error, or None."""
        try:
            done = self._pending.wait(timeout)
        except Exception as error:
            return error
        if not done:
            raise TimeoutError(f"the work is still running after {timeout} s")
        return None

    def add_done_callback(self, fn: Callable[[Any], Any]) -> None:
        """Calls fn(self) on another thread when the work has finished."""
        if "_condition" not in self.__dict__:
            self._attach()
        super().add_done_callback(fn)

    def __await__(self) -> Generator[Any, None, Any]:
        if not self._pending.done():
            import asyncio  # takes 20 ms, and is loaded where futures are awaited

            loop = asyncio.get_running_loop()
            ready: asyncio.Future[None] = loop.create_future()
            fd = os.dup(self._pending.fileno())

            def wake() -> None:
                loop.remove_reader(fd)
                if not ready.done():
                    ready.set_result(None)

            loop.add_reader(fd, wake)
            try:
                yield from ready
            finally:
                loop.remove_reader(fd)
                os.close(fd)
        return self.result()

    def __repr__(self) -> str:
        return f"<vyre.Future {'done' if self._pending.done() else 'running'}>"

    def __reduce__(self) -> Any:
        raise TypeError("a Future cannot be pickled\nFix: pickle future.result()")


# --- the thread that waits for futures of concurrent.futures ---------------------

_lock = threading.Lock()
_new: list[Future] = []
_wake: tuple[int, int] | None = None


def _watch(future: Future) -> None:
    global _wake
    with _lock:
        _new.append(future)
        if _wake is None:
            _wake = os.pipe()
            threading.Thread(target=_run, args=(_wake[0],), daemon=True, name="vyre-futures").start()
        os.write(_wake[1], b"x")


def _run(wake: int) -> None:
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    waiting: dict[int, Future] = {}
    while True:
        for fd, _ in poll.poll():
            if fd == wake:
                os.read(wake, 4096)
                with _lock:
                    added, _new[:] = _new[:], []
                for future in added:
                    own = os.dup(future._pending.fileno())
                    waiting[own] = future
                    poll.register(own, select.POLLIN)
                continue
            future = waiting.pop(fd)
            poll.unregister(fd)
            os.close(fd)
            future._finish()


def _after_fork() -> None:
    global _lock, _wake
    _lock = threading.Lock()
    _wake = None
    _new.clear()


os.register_at_fork(after_in_child=_after_fork)
