# SPDX-License-Identifier: MIT OR Apache-2.0
"""Planners and the cache."""

import numpy as np
import pytest

import vyre


def test_queues():
    q = vyre.plan.queue(4, 8, 16, 64, 1 << 20)
    assert (q.queue_bytes, q.resident_bytes, q.initial_occupancy_bps) == (128, 192, 5000)
    b = vyre.plan.backpressure(4, 8, 16, 64, 1 << 20, 3)
    assert b.chunks == 3 and b.strategy == "chunked_resident_drain"
    e = vyre.plan.expansion(4, 100, 16, 0, 160)
    assert e.desired_capacity == 104 and e.queue_capacity == 10
    with pytest.raises(vyre.PlanRejected, match="(?s)Fix:"):
        vyre.plan.queue(4, 8, 0, 0, 1)


def test_barriers_and_frontier():
    deps = [(0, 2), (1, 2), (2, 3)]
    b = vyre.plan.barriers(4, deps)
    assert [list(g) for g in b] == [[0, 1], [2], [3]] and b.global_barriers == 2
    f = vyre.plan.frontier([(10, 1, 5)] * 4, deps, budget_bytes=1000)
    assert f.peak_output_bytes == 10 and f.max_group_width == 2
    assert "<svg" in f._repr_html_()
    with pytest.raises(vyre.PlanRejected) as caught:
        vyre.plan.barriers(2, [(0, 1), (1, 0)])
    assert caught.value.kind == "cycle"


def test_placement_is_valid():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 10, 60)
    rows = np.stack([rng.integers(1, 500, 60), np.full(60, 16), first, first + rng.integers(0, 4, 60)], 1)
    rows[:, 0] = (rows[:, 0] + 15) // 16 * 16
    p = vyre.plan.place(rows)
    for i in range(60):
        for j in range(i):
            if rows[i, 2] <= rows[j, 3] and rows[j, 2] <= rows[i, 3]:
                a, b = int(p.offsets[i]), int(p.offsets[j])
                assert a + rows[i, 0] <= b or b + rows[j, 0] <= a
    assert p.placed_bytes >= p.lower_bound_bytes and "<svg" in p._repr_html_()
    with pytest.raises(TypeError, match="4 columns"):
        vyre.plan.place([(1, 2)])
    with pytest.raises(ValueError, match="negative"):
        vyre.plan.place([(-1, 1, 0, 0)])


def test_bindings(saxpy):
    rows = vyre.plan.bindings(saxpy)
    assert [(b.name, b.role) for b in rows] == [
        ("x", "input"),
        ("y", "input_output"),
        ("a", "uniform"),
    ]


def test_cache_functions(saxpy):
    assert set(vyre.cache.location()) >= {"directory", "is_enabled"}
    assert vyre.cache.explain(saxpy, "cpu")["result"] in ("memory_hit", "disk_hit", "miss", "off")
    assert isinstance(vyre.cache.entries(), list)
    assert "driver" in vyre.cache.explain(saxpy, "cpu")["key"] or vyre.cache.explain(saxpy, "cpu")["key"]


def test_counters(saxpy, xy):
    saxpy(*xy, a=1)
    assert any("dispatch" in name for name in vyre.counters())
