# SPDX-License-Identifier: MIT OR Apache-2.0
"""Plugin of Dask's workers. A module of its own, because it needs distributed."""

from __future__ import annotations

from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin

from .dask import _Assign


class Assign(_Assign, WorkerPlugin):  # type: ignore[misc]
    """vyre.dask.assign."""

    def setup(self, worker: Any) -> None:
        _Assign.setup(self, worker)

    def teardown(self, worker: Any) -> None:
        _Assign.teardown(self, worker)
