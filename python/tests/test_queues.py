# SPDX-License-Identifier: MIT OR Apache-2.0
"""Device work queues."""

import numpy as np
import pytest

import vyre

TEXT = """
kernel bfs queue(u32) once(depth)
buffer off : read u32[] @0;
buffer adj : read u32[] @1;
buffer depth : write u32[] @2;
{
    depth[item] = window;
    for (let e = off[item]; e < off[item + 1]; e++) push(adj[e]);
}
"""


def graph(n=300, edges=900, seed=3):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, n, edges), rng.integers(0, n, edges)
    source, target = np.concatenate([a, b]), np.concatenate([b, a])
    order = np.lexsort((target, source))
    off = np.zeros(n + 1, "u4")
    np.add.at(off, source + 1, 1)
    return np.cumsum(off, dtype="u4"), target[order].astype("u4")


def plain_bfs(off, adj, root):
    """Breadth-first search over Python lists."""
    depth, front, level = {root: 0}, [root], 0
    while front:
        level += 1
        front = sorted({int(w) for v in front for w in adj[off[v] : off[v + 1]]} - set(depth))
        depth.update({v: level for v in front})
    return depth


@pytest.fixture(scope="module")
def bfs():
    return vyre.kernel(TEXT)["bfs"]


@pytest.fixture(params=["ref", "cpu", "vulkan"])
def queues(request, bfs):
    """Name of a device that runs queues."""
    try:
        vyre.Queue(bfs, request.param, capacity=8)
    except vyre.Unsupported as error:
        pytest.skip(str(error).splitlines()[0])
    return request.param


def test_a_queue_runs_until_it_is_empty(bfs, queues):
    off, adj = graph()
    q = vyre.Queue(bfs, queues, capacity=300, order_hash=True)
    q.fill([0])
    depth = q.run(off, adj, depth=300)
    want = plain_bfs(off, adj, 0)
    assert {v: int(depth[v]) for v in want} == want
    assert not any(depth[v] for v in range(300) if v not in want)
    assert q.stats["items"] == len(want) and q.stats["stop"] == "empty"
    assert q.stats["windows"] == max(want.values()) + 1 and q.stats["order_hash"]
    assert q.plan.kind == "once" and q.plan.memory_bytes == q.stats["plan_bytes"] and "once" in str(q)
    first = q.stats["order_hash"]
    q.fill(np.array([0], "u4"))
    assert np.array_equal(q.run(off, adj, depth=300), depth) and q.stats["order_hash"] == first


def test_a_stopped_queue_continues(bfs, queues):
    off, adj = graph()
    want = plain_bfs(off, adj, 0)
    q = vyre.Queue(bfs, queues, capacity=300, max_windows=2)
    q.fill([0])
    depth = np.zeros(300, "u4")
    for _ in range(50):
        q.run(off, adj, out=depth)
        if q.stats["stop"] == "empty":
            break
        assert q.stats["stop"] == "max_windows" and q.state["current"] + q.state["next"] > 0
    assert q.state == {**q.state, "current": 0, "next": 0, "is_lost": False}
    # Each run begins with new outputs, so only the last windows are in this one.
    assert depth.max() == max(want.values())


def test_items_can_be_taken(bfs, queues):
    q = vyre.Queue(bfs, queues, capacity=300)
    q.fill([5, 3, 9, 3])
    assert sorted(q.take()) == [3, 5, 9] and q.take().size == 0
    q.resize(400)
    q.fill([399])
    assert q.plan.capacity == 400 and list(q.take()) == [399]


def test_mistakes_are_refused(bfs, saxpy):
    with pytest.raises(TypeError, match="no queue kernel"):
        vyre.Queue(saxpy)
    with pytest.raises(ValueError, match="unknown queue mode"):
        vyre.Queue(bfs, "ref", mode="fast")
    with pytest.raises(ValueError, match="(?s)Fix: "):
        vyre.Queue(bfs, "ref", mode="newest")
    q = vyre.Queue(bfs, "ref", capacity=300)
    for wrong, kind in [(np.zeros(1), TypeError), ([-1], (TypeError, OverflowError)), ([2**40], (TypeError, OverflowError)), (7, TypeError), ([1.5], OverflowError)]:
        with pytest.raises(kind, match="Fix: "):
            q.fill(wrong)
    with pytest.raises(ValueError, match="(?s)Fix: "):
        q.fill([300])
    off, adj = graph()
    q.fill([0])
    with pytest.raises(TypeError, match="misses 'adj'"):
        q.run(off, depth=300)
    with pytest.raises(ValueError, match="(?s)Fix: "):
        q.run(off, adj, depth=300, grid=4)
    with pytest.raises(TypeError, match="device"):
        q.run(off, adj, depth=300, device="cpu")
