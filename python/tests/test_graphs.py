# SPDX-License-Identifier: MIT OR Apache-2.0
"""Wave graphs: one submission, the bytes of single calls."""

import os

import numpy as np
import pytest

import vyre

TEXT = """
kernel scale workgroup(64) over(y)
buffer x : read f32[] @0;
buffer y : write f32[] @1;
uniform a : f32 @2;
{ let i = global_id.x; if (i < len(y)) y[i] = a * x[i]; }
kernel add workgroup(64) over(o)
buffer p : read f32[] @0;
buffer q : read f32[] @1;
buffer o : write f32[] @2;
{ let i = global_id.x; if (i < len(o)) o[i] = p[i] + q[i]; }
kernel halve workgroup(1)
buffer n : read_write u32[1] @0;
{ n[0] = n[0] / 2; }
kernel endless workgroup(1)
buffer o : write u32[1] @0;
uniform n : u32 @1;
{ var x = 1u; for (let i = 0u; i < n; i++) { for (let j = 0u; j < n; j++) { x = (x ^ (x >> 7u)) * 1664525u + j; } } o[0] = x; }
"""


@pytest.fixture(scope="module")
def kernels():
    return vyre.kernel(TEXT)


def diamond(kernels, device, n=1000, **options):
    with vyre.WaveGraph(device, **options) as g:
        x = g.memory("x", n, input=True)
        a, b = g.memory("a", n), g.memory("b", n)
        y = g.memory("y", n, output=True)
        g.wave(kernels.scale, x, a, 2.0)
        g.wave(kernels.scale, x=x, y=b, a=np.float32(3))
        g.wave(kernels.add, a, b, y)
    return g


def test_a_run_is_one_submission(kernels, device):
    g = diamond(kernels, device)
    x = np.random.default_rng(0).random(1000, dtype="f4")
    stats = {}
    y = g.run(x=x, stats=stats)
    want = np.float32(2) * x + np.float32(3) * x
    assert np.array_equal(y, want) and y.dtype == np.float32
    assert stats["submissions"] == 1 and stats["waves"] == 3 and stats["readbacks"] == 1
    assert stats["barriers"] == 1 == g.plan.barriers.global_barriers
    assert [list(w) for w in g.plan.barriers] == [[0, 1], [2]]
    into = np.empty(1000, "f4")
    assert g.run(x=2 * x, out={"y": into}) is into and np.array_equal(into, 2 * want)
    assert np.array_equal(g.submit(x=x).result(60), want)


def test_plans_share_memory_and_draw(kernels, device):
    plan = diamond(kernels, device).plan
    assert plan.readback_bytes == 4000 and plan.upload_bytes == 4000
    assert plan.lower_bound_bytes <= plan.placed_bytes <= plan.separate_bytes
    drawn = plan._repr_html_()
    assert "<svg" in drawn and "wave 2: add" in drawn and "a: 4" in drawn
    assert "group" in str(diamond(kernels, device))
    with pytest.raises(vyre.PlanRejected, match="(?s)Fix:"):
        diamond(kernels, device, budget_bytes=100)


def test_parts_and_external_and_kept_memory(kernels, device):
    with vyre.WaveGraph(device) as g:
        x = g.memory("x", (4, 10), external=True)
        total = g.memory("total", 10, kept=True, output=True)
        for row in range(4):
            part = x[row : row + 1]
            step = g.memory(f"t{row}", 10)
            g.wave(kernels.add, part, total, step)
            g.wave(kernels.scale, step, total, 1.0)
    b = vyre.Buffer.of(np.arange(40, dtype="f4").reshape(4, 10), device)
    want = b.numpy().sum(0)
    assert np.array_equal(g.run(x=b), want)
    assert np.array_equal(g.run(x=b), 2 * want)
    with pytest.raises(TypeError, match="takes a Buffer"):
        g.run(x=b.numpy())


def test_graphs_repeat_until_a_flag_falls(kernels, device):
    with vyre.WaveGraph(device) as g:
        n = g.memory("n", 1, "u4", input=True, output=True)
        g.wave(kernels.halve, n)
        g.repeat(n, 100)
    stats = {}
    assert g.run(n=np.array([1000], "u4"), stats=stats)[0] == 0
    assert stats["iterations"] == 10 and not stats["reached_max"]


def test_mistakes_are_refused(kernels):
    with vyre.WaveGraph("ref") as g:
        x = g.memory("x", 8, input=True)
        y = g.memory("y", 8, output=True)
        n = g.memory("n", 8, "u4")
        other = vyre.WaveGraph("ref").memory("z", 8)
        with pytest.raises(ValueError, match="not complete"):
            g.run(x=np.zeros(8, "f4"))
        cases = [
            (TypeError, "misses 'a'", lambda: g.wave(kernels.scale, x, y)),
            (TypeError, "has 3 buffers, not 4", lambda: g.wave(kernels.scale, x, y, 1, 2)),
            (TypeError, "given twice", lambda: g.wave(kernels.scale, x, y, 1, a=2)),
            (TypeError, "another graph", lambda: g.wave(kernels.scale, other, y, 1)),
            (TypeError, "'x' takes float32, and 'n' has uint32", lambda: g.wave(kernels.scale, n, y, 1)),
            (OverflowError, "does not fit", lambda: g.wave(kernels.scale, x, y, 1e300)),
            (ValueError, "constant bytes", lambda: g.wave(kernels.scale, x, np.zeros(8, "f4"), 1)),
            (ValueError, "range of elements", lambda: x[::2]),
            (TypeError, "first axis", lambda: x[1]),
            (TypeError, "a flag is u32", lambda: g.repeat(x, 3)),
            (ValueError, "", lambda: g.memory("x", 8)),
            (ValueError, "", lambda: g.memory("w", 0)),
            (ValueError, "option 'timeout'", lambda: g.memory("timeout", 8)),
        ]
        for kind, message, call in cases:
            with pytest.raises(kind, match=message) as caught:
                call()
            assert "Fix: " in str(caught.value), message
        g.wave(kernels.scale, x, y, 2.0)
    good = np.ones(8, "f4")
    for kind, message, call in [
        (TypeError, "misses 'x'", lambda: g.run()),
        (TypeError, "no input or output 'q'", lambda: g.run(x=good, q=good)),
        (TypeError, "takes float32", lambda: g.run(x=np.ones(8))),
        (ValueError, "", lambda: g.run(x=np.ones(9, "f4"))),
        (ValueError, "read-only", lambda: g.run(x=good, out={"y": np.frombuffer(bytes(32), "f4")})),
    ]:
        with pytest.raises(kind, match=message) as caught:
            call()
        assert "Fix: " in str(caught.value), message
    assert (g.run(x=good) == 2).all()


def test_timeouts_and_forks(kernels):
    with vyre.WaveGraph("cpu") as g:
        o = g.memory("o", 1, "u4", output=True)
        g.wave(kernels.endless, o, 60000)
    with pytest.raises(vyre.TimedOut):
        g.run(timeout=0.05)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            g.run()
        except ValueError as error:
            code = 0 if "parent" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0
