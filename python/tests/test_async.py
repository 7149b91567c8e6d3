# SPDX-License-Identifier: MIT OR Apache-2.0
"""Futures, recordings, threads, processes."""

import asyncio
import concurrent.futures
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import vyre
from conftest import SAXPY


def test_futures_in_every_form(saxpy, xy, device):
    x, y = xy
    want = saxpy(x, y, a=2)
    future = saxpy.submit(x, y, a=2, device=device)
    assert np.array_equal(future.result(30), want) and future.done()
    assert future.exception() is None

    async def gather():
        return await asyncio.gather(*(wait(saxpy.submit(x, y, a=2, device=device)) for _ in range(8)))

    async def wait(future):
        return await future

    assert all(np.array_equal(r, want) for r in asyncio.run(gather()))
    futures = [saxpy.submit(x, y, a=i, device=device) for i in range(6)]
    done = concurrent.futures.wait(futures, timeout=60).done
    assert len(done) == 6
    seen = []
    extra = saxpy.submit(x, y, a=1, device=device)
    extra.add_done_callback(lambda f: seen.append(f.result()))
    extra.result()
    for _ in range(200):
        if seen:
            break
        time.sleep(0.02)
    assert seen and np.array_equal(seen[0], extra.result())


def test_dropped_futures_keep_their_memory(saxpy):
    for i in range(50):
        saxpy.submit(np.full(10000, i, "f4"), np.ones(10000, "f4"), a=1)
    r = saxpy.submit(np.ones(4, "f4"), np.ones(4, "f4"), a=1).result()
    assert (r == 2).all()


def test_a_failed_future_raises(saxpy, xy):
    x, y = xy
    vyre._vyre.inject_faults("submit:1")
    try:
        with pytest.raises(vyre.VyreError):
            saxpy.submit(x, y, a=1).result()
    finally:
        vyre._vyre.inject_faults("")


def test_recordings_replay_with_other_memory(saxpy, xy, device):
    x, y = xy
    with vyre.Recording(device) as r:
        sx, sy, sa = r.slot("x"), r.slot("y"), r.slot("a")
        r.dispatch(saxpy, sx, sy, sa, out=sy)
        r.dispatch(saxpy, sx, sy, sa, out=sy)
    a = np.float32([2])
    target = y.copy()
    r.bind(x=x, y=target, a=a)
    r.replay()
    assert np.array_equal(target, saxpy(x, saxpy(x, y, a=2), a=2))
    other = np.zeros_like(y)
    r.replay(wait=False, y=other).result(60)
    assert np.array_equal(other, saxpy(x, saxpy(x, np.zeros_like(y), a=2), a=2))
    assert r.replay_stats()["dispatches"] == 2
    with pytest.raises(TypeError, match="no slot 'z'"):
        r.bind(z=x)
    with pytest.raises(TypeError, match="not a slot"):
        with vyre.Recording(device) as q:
            q.dispatch(saxpy, sx, sy, sa, out=sy)


LOOP = """
kernel halve workgroup(1)
buffer n : read_write u32[1] @0;
{ n[0] = n[0] / 2; }
"""


def test_loops_end_when_the_flag_falls(device):
    halve = vyre.kernel(LOOP)["halve"]
    with vyre.Recording(device) as r:
        n = r.slot("n")
        with r.loop(n, max_iterations=100):
            r.dispatch(halve, n, out=n)
    n = np.array([1000], "u4")
    r.bind(n=n)
    stats = r.replay_stats()
    assert n[0] == 0 and stats["iterations"] == 10


def test_threads_share_a_kernel(saxpy, xy):
    x, y = xy
    want = saxpy(x, y, a=2)
    wrong = []

    def work():
        for _ in range(200):
            if not np.array_equal(saxpy(x, y, a=2), want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def child(queue):
    k = vyre.kernel(SAXPY)["saxpy"]
    queue.put(k(np.ones(4, "f4"), np.ones(4, "f4"), a=1).tolist())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(saxpy, method):
    saxpy(np.ones(4, "f4"), np.ones(4, "f4"), a=1)  # devices are open before the fork
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == [2, 2, 2, 2]
    process.join(60)
    assert process.exitcode == 0


def test_a_buffer_of_the_parent_is_refused_in_the_child(saxpy):
    b = vyre.Buffer.of(np.ones(4, "f4"))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            b.numpy()
        except ValueError as error:
            code = 0 if "parent" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0


SLOW = """
import sys, time, os, signal, threading
import vyre
k = vyre.kernel('''kernel slow workgroup(1)
buffer o : write u32[1] @0;
uniform n : u32 @1;
{ var x = 1u; for (let i = 0u; i < n; i++) { for (let j = 0u; j < n; j++) { x = (x ^ (x >> 7u)) * 1664525u + j; } } o[0] = x; }''')["slow"]
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
for _ in range(50): k(n=2)  # the kernel is known as fast
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
start = time.time()
try:
    k(n=60000, timeout=20, device="cpu")
except KeyboardInterrupt:
    print("interrupted", time.time() - start < 10)
    os._exit(0)
os._exit(3)
"""


def test_ctrl_c_ends_a_call():
    run = subprocess.run([sys.executable, "-c", SLOW], capture_output=True, text=True, timeout=120)
    assert run.stdout.strip() in ("interrupted True",), (run.stdout, run.stderr)
