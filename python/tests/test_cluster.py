# SPDX-License-Identifier: MIT OR Apache-2.0
"""A cluster of mixed workers gives one hash, whatever happens to it.

VYRE_TEST_LONG=1: 8 workers, 1,000 graphs and 20 kills instead of 3, 12 and 2.
"""

import hashlib
import math
import os
import random
import re
import signal
import time

import numpy as np
import pytest

import vyre
from conftest import available

da = pytest.importorskip("dask.array", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
import dask  # noqa: E402

import vyre.dask  # noqa: E402
from vyre import sums  # noqa: E402

LONG = bool(os.environ.get("VYRE_TEST_LONG"))
WORKERS, GRAPHS, KILLS = (8, 1000, 20) if LONG else (3, 12, 2)
WAVE = """
kernel wave workgroup(64) over(o)
buffer x : read f32[] @0;
buffer o : write f32[] @1;
uniform k : f32 @2;
{ let i = global_id.x; if (i < len(o)) o[i] = exp(-x[i] * x[i]) * sin(k * x[i]); }
"""
pytestmark = pytest.mark.slow


def mixed():
    return ["cpu", "vulkan" if available("vulkan") else "ref"]


@pytest.fixture(scope="module")
def client():
    os.environ["VYRE_OPTIONS"] = "cpu.threads=1"
    settings = {
        "distributed.scheduler.allowed-failures": 1000,
        "distributed.worker.memory.terminate": False,
        "distributed.comm.timeouts.connect": "20s",
    }
    try:
        with dask.config.set(settings), distributed.LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster, distributed.Client(cluster) as made:
            devices = vyre.dask.assign(made, mixed())
            assert set(devices.values()) == set(mixed())
            yield made
    finally:
        del os.environ["VYRE_OPTIONS"]


def block_task(kernel, block):
    """Result of a block and its exact sum, as one task."""
    result = vyre.dask.run_block(kernel, block, options={"k": 7.0})
    return result.tobytes(), sums.accumulate(result, device=vyre.dask._device()).tobytes()


def kill_one(client, seed):
    """Kills a worker; its nanny starts it again. A nanny would give up a worker that
    dies before it has reported that it runs."""
    processes = [nanny.process for nanny in client.cluster.workers.values()]
    ready = sorted(p.pid for p in processes if p and p.pid and p.status.name == "running")
    if ready:
        os.kill(random.Random(seed).choice(ready), signal.SIGKILL)
    return bool(ready)


def test_one_hash_from_a_thousand_graphs(client):
    kernel = vyre.kernel(WAVE)["wave"]
    x = np.linspace(-3, 3, 4000, dtype="f4")
    want = kernel(x, k=7.0, device="ref")
    want_sum = sums.accumulate(want, device="ref").tobytes()
    rng = random.Random(1)
    hashes, killed = set(), 0
    when = {GRAPHS * (n + 1) // (KILLS + 1) for n in range(KILLS)}
    pending = []

    def finish(blocks):
        parts, partial = [], []
        for twins in blocks:
            first, *rest = client.gather(twins)
            assert all(other == first for other in rest), "a duplicated task has another result"
            parts.append(first[0])
            partial.append(np.frombuffer(first[1], sums.sum_f32))
        total = sums.merge(*partial).tobytes()
        hashes.add(hashlib.sha256(b"".join(parts) + total).hexdigest())

    for graph in range(GRAPHS):
        cuts = sorted(rng.sample(range(1, 4000), 2))
        workers = list(client.scheduler_info()["workers"])
        blocks = []
        for block in np.split(x, cuts):
            place = [rng.choice(workers)] if workers else None
            twins = [
                client.submit(
                    block_task, kernel, block, pure=False, retries=50,
                    workers=place if n == 0 else None, allow_other_workers=True if place and n == 0 else False,
                )
                for n in range(2)
            ]  # fmt: skip
            blocks.append(twins)
        pending.append(blocks)
        if graph in when:
            killed += kill_one(client, graph)
        if len(pending) >= 8:
            finish(pending.pop(0))
    while pending:
        finish(pending.pop(0))
    while killed < KILLS:  # a kill was left out because a worker was starting
        time.sleep(1)
        killed += kill_one(client, killed)
    assert hashes == {hashlib.sha256(want.tobytes() + want_sum).hexdigest()}
    # A nanny gives up a worker that was killed while it started.
    client.wait_for_workers(WORKERS - KILLS // 4, timeout=120)
    # The workers that were started again have their devices.
    assert set(client.run(vyre.dask._assigned_device).values()) == set(mixed())


def test_reductions_do_not_depend_on_chunks(client):
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(60, 50)) * 10.0 ** rng.integers(-12, 12, (60, 50))).astype("f8")
    for axis in (None, 0, 1, (0, 1)):
        found = set()
        for chunks in ((60, 50), (7, 50), (13, 11)):
            d = da.from_array(x, chunks=chunks)
            found.add(np.asarray(vyre.dask.sum(d, axis, verify=0.3).compute()).tobytes())
        assert len(found) == 1, axis
    assert vyre.dask.sum(da.from_array(x, chunks=9)).compute() == math.fsum(x.ravel())
    kept = vyre.dask.sum(da.from_array(x, chunks=9), 0, keepdims=True)
    assert kept.shape == (1, 50) and kept.compute()[0, 3] == math.fsum(x[:, 3])
    assert vyre.dask.mean(da.from_array(x, chunks=9)).compute() == math.fsum(x.ravel()) / 3000
    with pytest.raises(TypeError, match="Fix: "):
        vyre.dask.sum(da.arange(10))


def break_worker():
    """Makes this worker return a wrong bit, on every device."""
    honest, honest_sum = vyre.dask.run_block, vyre.dask.sum_block

    def broken(kernel, *blocks, options=None, device=None):
        result = honest(kernel, *blocks, options=options, device=device).copy()
        result.view("u4")[result.size // 2] ^= 1
        return result

    def broken_sum(block, axis, device=None):
        result = honest_sum(block, axis, device).copy()
        result["bins"][..., 5] += 1
        return result

    vyre.dask.run_block, vyre.dask.sum_block = broken, broken_sum
    vyre.dask._honest = honest, honest_sum


def mend_worker():
    vyre.dask.run_block, vyre.dask.sum_block = vyre.dask._honest


def test_a_planted_wrong_worker_is_found(client):
    kernel = vyre.kernel(WAVE)["wave"]
    x = da.from_array(np.linspace(-3, 3, 6000, dtype="f4"), chunks=100)
    planted = sorted(client.scheduler_info()["workers"])[0]
    client.run(break_worker, workers=[planted])
    try:
        with pytest.raises(vyre.dask.Mismatch, match="element 50 is .* 1 of 100 differ") as caught:
            # The share is of the blocks, and the worker has a part of them.
            vyre.dask.map_blocks(kernel, x, k=7.0, verify=0.7).compute()
        kinds = re.findall(r"'(\w+)' of worker (\S+)", caught.value.message)
        assert planted in caught.value.message and {kind for kind, _ in kinds} == set(mixed())
        with pytest.raises(vyre.dask.Mismatch, match="sum of a block differs .* of worker"):
            vyre.dask.sum(x, verify=0.7).compute()
        with pytest.raises(vyre.dask.Mismatch, match="workers disagree") as caught:
            vyre.dask.verify(client, kernel, np.linspace(0, 1, 500, dtype="f4"), k=1.0)
        assert planted in str(caught.value)
    finally:
        client.run(mend_worker, workers=[planted])
    assert len(vyre.dask.verify(client, kernel, np.ones(9, "f4"), k=1.0)) >= WORKERS - KILLS // 4
    want = kernel(np.linspace(-3, 3, 6000, dtype="f4"), k=7.0)
    assert vyre.dask.map_blocks(kernel, x, k=7.0, verify=1.0).compute().tobytes() == want.tobytes()
    assert vyre.dask.sum(x, verify=1.0).compute() == sums.sum(np.linspace(-3, 3, 6000, dtype="f4"))


def test_a_block_is_verified_although_workers_die(client):
    kernel = vyre.kernel(WAVE)["wave"]
    x = np.linspace(-3, 3, 4000, dtype="f4")
    lazy = vyre.dask.map_blocks(kernel, da.from_array(x, chunks=50), k=7.0, verify=1.0)
    future = client.compute(lazy, retries=50)
    time.sleep(1)
    kill_one(client, 3)
    assert future.result(timeout=200).tobytes() == kernel(x, k=7.0).tobytes()
