# SPDX-License-Identifier: MIT OR Apache-2.0
"""Program of the MPI tests: prints a hash of every result on each rank."""

import hashlib
import os
import sys

import numpy as np
from mpi4py import MPI

import vyre
import vyre.mpi
from vyre import sums

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
if os.environ.get("VYRE_TEST_MIXED"):  # ranks with different devices
    vyre.set_device(["cpu", "ref"][rank % 2])

KERNELS = vyre.kernel("""
// Heat on rows of this rank; x has a halo of one row on both sides.
kernel heat workgroup(8, 8)
buffer x : read f32[] @0;
buffer y : write f32[] @1;
uniform w : u32 @2;
uniform rows : u32 @3;
uniform first : u32 @4;
uniform total : u32 @5;
{
    let c = global_id.x;
    let r = global_id.y;
    if (c < w && r < rows) {
        let at = (r + 1) * w + c;
        let g = first + r;
        var v = x[at];
        if (c > 0 && c + 1 < w && g > 0 && g + 1 < total)
            v = v + 0.2 * (x[at - w] + x[at + w] + x[at - 1] + x[at + 1] - 4.0 * x[at]);
        y[r * w + c] = v;
    }
}
kernel copy workgroup(64) over(b)
buffer a : read f32[] @0;
buffer b : write f32[] @1;
{ let i = global_id.x; if (i < len(b)) b[i] = a[i]; }
kernel energy workgroup(64) over(x)
buffer x : read f32[] @0;
buffer s : read_write sum_f32[1] @1;
{ let i = global_id.x; if (i < len(x)) atomic_add(s[0], x[i] * x[i]); }
kernel scale workgroup(64) over(x)
buffer s : read sum_f32[1] @0;
buffer x : read_write f32[] @1;
{ let i = global_id.x; if (i < len(x)) x[i] = x[i] / sqrt(s[0]); }
kernel note workgroup(1)
buffer s : read sum_f32[1] @0;
buffer o : write f32[1] @1;
{ o[0] = s[0]; }
""")


def show(name, value):
    digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]
    print(f"result {name} {digest}", flush=True)


def sums_of_parts():
    rng = np.random.default_rng(5)
    x = (rng.normal(size=10007) * 10.0 ** rng.integers(-18, 18, 10007)).astype("f4")
    mine = x[rank::size] if size % 2 else np.array_split(x, size)[rank]
    show("sum", vyre.mpi.sum(comm, mine))
    show("bytes", vyre.mpi.allreduce(comm, sums.accumulate(mine)))
    show("columns", vyre.mpi.sum(comm, np.array_split(x[:10000].reshape(500, 20), size)[rank].astype("f8"), 0))


def heat(n=23, w=17, steps=9):
    field = np.random.default_rng(6).random((n, w), dtype="f4")
    k = KERNELS
    with vyre.mpi.ShardedGraph(comm) as g:
        x = g.sharded("x", (n, w), halo=1, input=True, output=True)
        y = g.sharded("y", (n, w))
        s = g.sums("s", output=True)
        norm = g.replicated("norm", 1, output=True)
        grid = lambda rows: ((w + 7) // 8, (rows + 7) // 8)  # noqa: E731
        for turn in range(2):
            g.wave(k.heat, x, y, w, vyre.mpi.ROWS, vyre.mpi.FIRST, vyre.mpi.TOTAL, grid=grid)
            g.wave(k.energy, y, s)
            g.wave(k.scale, s, y)
            g.wave(k.note, s, norm)
            g.wave(k.copy, y, x.inner)
    field_after, total, norm_after = g.run(x=field, repeat=steps, gather=True)
    show("field", field_after)
    show("total", total)
    show("norm", norm_after)
    start, rows = g.first(x), g.rows(x)
    again, _, _ = g.run(x=np.ascontiguousarray(field[start : start + rows]), repeat=steps)
    assert np.array_equal(again, field_after[start : start + rows])


def few_rows():
    """More ranks than rows: some ranks have none."""
    with vyre.mpi.ShardedGraph(comm) as g:
        x = g.sharded("x", (3, 4), input=True)
        s = g.sums("s", output=True)
        g.wave(KERNELS.energy, x, s)
    show("few", g.run(x=np.arange(12, dtype="f4").reshape(3, 4)))


def failures():
    with vyre.mpi.ShardedGraph(comm) as g:
        x = g.sharded("x", (64, 4), input=True, output=True)
        g.wave(KERNELS.copy, np.zeros(1, "f4"), x)
        p = g.replicated("p", 4)
        for bad in (lambda: g.wave(KERNELS.copy, x, p), lambda: g.sharded("z", (size, 2), halo=2)):
            try:
                bad()
            except vyre.InvalidArgument as error:
                assert "Fix: " in str(error)
            else:
                raise AssertionError("accepted")
    wrong = np.zeros((64, 4), "f8" if rank == size - 1 else "f4")
    try:
        g.run(x=wrong)
    except vyre.mpi.RankFailed as error:
        assert rank != size - 1 and error.numbers["rank"] == size - 1 and "float64" in str(error)
    except TypeError:
        assert rank == size - 1
    g.run(x=np.zeros((64, 4), "f4"))  # and the next run works
    try:
        with vyre.mpi.ShardedGraph(comm) as h:
            h.sharded("x", (64, 4 + rank), input=True)
    except vyre.InvalidArgument as error:
        assert size > 1 and "different graphs" in str(error)
    else:
        assert size == 1


for part in (sums_of_parts, heat, few_rows, failures):
    if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
        part()
comm.Barrier()
if rank == 0:
    print("done", flush=True)
