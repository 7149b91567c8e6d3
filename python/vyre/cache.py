# SPDX-License-Identifier: MIT OR Apache-2.0
"""The cache of compiled kernels."""

from __future__ import annotations

from typing import Any

from . import _vyre


def location() -> dict[str, Any]:
    """Returns the directory of the cache and its state."""
    result: dict[str, Any] = _vyre.cache_location()
    return result


def entries() -> list[dict[str, Any]]:
    """Returns the files of the cache."""
    result: list[dict[str, Any]] = _vyre.cache_list()
    return result


def prune(*, all: bool = False, max_bytes: int = 0) -> dict[str, int]:
    """Removes entries, least recently used first, or all."""
    result: dict[str, int] = _vyre.cache_prune(all, max_bytes)
    return result


def explain(kernel: Any, device: Any = "auto") -> dict[str, Any]:
    """Predicts the next compile of a kernel: hit or miss, and why."""
    result: dict[str, Any] = _vyre.cache_explain(kernel, device)
    return result
