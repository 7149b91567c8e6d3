# SPDX-License-Identifier: MIT OR Apache-2.0
"""Dask: the answer does not depend on the worker that computed a block."""

import os

import numpy as np
import pytest

import vyre

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

import vyre.dask  # noqa: E402

WAVE = """
kernel wave workgroup(64) over(o)
buffer x : read f32[] @0;
buffer o : write f32[] @1;
uniform k : f32 @2;
{ let i = global_id.x; if (i < len(o)) o[i] = exp(-x[i] * x[i]) * sin(k * x[i]); }
"""
BLUR = """
kernel blur workgroup(8, 8)
buffer x : read f32[] @0;
buffer o : write f32[] @1;
uniform h : u32 @2;
uniform w : u32 @3;
{
    let c = global_id.x;
    let r = global_id.y;
    if (c < w && r < h) {
        var sum = 0.0;
        for (let dy = 0u; dy < 3; dy++)
            for (let dx = 0u; dx < 3; dx++)
                if (r + dy >= 1 && r + dy <= h && c + dx >= 1 && c + dx <= w)
                    sum += x[(r + dy - 1) * w + c + dx - 1];
        o[r * w + c] = sum / 9.0;
    }
}
"""


@pytest.fixture(scope="module")
def wave():
    return vyre.kernel(WAVE)["wave"]


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as c, distributed.Client(c) as client:
        has_vulkan = any(d["backend"] == "vulkan" and d["is_available"] for d in vyre.devices())
        names = ["cpu", "vulkan" if has_vulkan else "ref"]
        for name, worker in zip(names, client.scheduler_info()["workers"]):
            client.run(os.environ.__setitem__, "VYRE_DEVICE", name, workers=[worker])
        yield client


def data(n=40000, chunks=5000):
    x = np.linspace(-3, 3, n, dtype="f4")
    return x, da.from_array(x, chunks=chunks)


def test_map_blocks_gives_the_bytes_of_one_call(wave, cluster):
    x, d = data()
    want = wave(x, k=7.0, device="ref").tobytes()
    for chunks in (40000, 5000, 777):
        got = vyre.dask.map_blocks(wave, d.rechunk(chunks), k=7.0).compute()
        assert got.tobytes() == want


def test_every_worker_agrees(wave, cluster):
    x, _ = data(1000)
    hashes = vyre.dask.verify(cluster, wave, x, k=3.0)
    assert len(hashes) == 2 and len(set(hashes.values())) == 1


def test_duplicated_and_retried_tasks_are_safe(wave, cluster):
    x, d = data()
    lazy = vyre.dask.map_blocks(wave, d, k=2.0)
    futures = [cluster.compute(lazy, retries=3) for _ in range(3)]
    assert len({f.result().tobytes() for f in futures}) == 1


def test_verify_finds_a_wrong_worker(wave, monkeypatch):
    x, d = data(4000, 1000)
    assert vyre.dask.map_blocks(wave, d, k=1.0, verify=1.0, verify_devices=["ref"]).compute(
        scheduler="sync"
    ).tobytes() == wave(x, k=1.0).tobytes()
    honest = vyre.dask.run_block

    def broken(kernel, *blocks, options=None, device=None):
        result = honest(kernel, *blocks, options=options, device=device)
        if device is None and blocks[0][0] == x[1000]:
            result.view("u4")[3] ^= 1
        return result

    monkeypatch.setattr(vyre.dask, "run_block", broken)
    with pytest.raises(vyre.dask.Mismatch, match="element 3 is .* 1 of 1000 differ"):
        vyre.dask.map_blocks(wave, d, k=1.0, verify=1.0, verify_devices=["ref"]).compute(scheduler="sync")


def test_map_overlap_gives_the_bytes_of_one_call():
    blur = vyre.kernel(BLUR)["blur"]
    x = np.random.default_rng(1).random((60, 50), dtype="f4")
    whole = blur(x, 60, 50, grid=(7, 8))
    d = da.from_array(x, chunks=(20, 25))
    got = vyre.dask.map_overlap(
        blur, d, depth=1, boundary="none", size=("h", "w"), grid=(4, 4)
    ).compute(scheduler="sync")
    assert got.tobytes() == whole.tobytes()


def test_kernels_are_stable_keys(wave):
    from dask.base import tokenize

    again = vyre.kernel(WAVE)["wave"]
    assert tokenize(wave) == tokenize(again) != tokenize(vyre.kernel(BLUR)["blur"])
