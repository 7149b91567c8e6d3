# SPDX-License-Identifier: MIT OR Apache-2.0
"""Exceptions of the package.

Every error of the library is a VyreError. Its class follows the error code, and
also derives from the Python exception that is raised for such a mistake
elsewhere, so that `except ValueError` works as well.
"""

from __future__ import annotations

from typing import Any


class VyreError(RuntimeError):
    """Error of the library: a cause with numbers, and an instruction to fix it."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "unknown",
        kind: str = "none",
        fix: str = "",
        field: str | None = None,
        numbers: dict[str, int] | None = None,
        native: int = 0,
        text: str | None = None,
        findings: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.kind = kind
        self.fix = fix
        self.field = field
        self.numbers = numbers or {}
        self.native = native
        self.text = text
        self.findings = findings or []

    def __str__(self) -> str:
        if self.text:  # source lines with carets; the fix is part of them
            return self.text.rstrip("\n")
        return f"{self.message}\nFix: {self.fix}" if self.fix else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.__dict__.copy())


def _rebuild(cls: type[VyreError], state: dict[str, Any]) -> VyreError:
    error = cls(state["message"])
    error.__dict__.update(state)
    return error


class InvalidProgram(VyreError, ValueError):
    """The kernel text has mistakes; str() shows them with source lines."""


class InvalidArgument(VyreError, ValueError):
    """An argument does not fit the kernel."""


class PlanRejected(VyreError, ValueError):
    """A planner found no plan within the limits."""


class OutOfMemory(VyreError, MemoryError):
    """Memory of the host or of the device ran out."""


class Unsupported(VyreError, NotImplementedError):
    """The device does not support what the kernel needs."""


class CompileFailed(VyreError):
    """The compiler of the device failed."""


class DispatchFailed(VyreError):
    """The kernel did not finish."""


class TimedOut(DispatchFailed, TimeoutError):
    """The kernel did not finish in time."""


class DeviceLost(VyreError):
    """The device was lost. Device.reopen() opens it again."""


class CheckFailed(VyreError, AssertionError):
    """A checked run found races, accesses out of bounds or order dependences."""


_CLASSES: dict[str, type[VyreError]] = {
    "invalid_program": InvalidProgram,
    "invalid_argument": InvalidArgument,
    "plan_rejected": PlanRejected,
    "out_of_memory": OutOfMemory,
    "device_out_of_memory": OutOfMemory,
    "unsupported_feature": Unsupported,
    "kernel_compile_failed": CompileFailed,
    "dispatch_failed": DispatchFailed,
    "device_lost": DeviceLost,
}


def make(
    code: str,
    kind: str,
    message: str,
    fix: str,
    field: str | None,
    numbers: dict[str, int],
    native: int,
    text: str | None,
    findings: list[dict[str, Any]] | None,
) -> VyreError:
    """Returns the exception for a status of the library."""
    cls = _CLASSES.get(code, VyreError)
    if kind == "timed_out":
        cls = TimedOut
    if field == "llvm":
        fix = fix.replace("`apt-get", "`pip install 'vyre[llvm]'` or `apt-get")
    return cls(
        message,
        code=code,
        kind=kind,
        fix=fix,
        field=field,
        numbers=numbers,
        native=native,
        text=text,
        findings=findings,
    )
