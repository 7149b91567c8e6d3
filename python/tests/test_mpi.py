# SPDX-License-Identifier: MIT OR Apache-2.0
"""MPI: the same bytes on 1, 2, 3 and 4 ranks."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py", reason="mpi4py is not installed")
LAUNCHER = shutil.which("mpiexec")
if LAUNCHER is None:
    pytest.skip("mpiexec is not installed", allow_module_level=True)

PROGRAM = pathlib.Path(__file__).with_name("mpi_program.py")


def results(ranks, **extra):
    environment = {
        **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_plm_rsh_agent": "", "VYRE_OPTIONS": "cpu.threads=1", **extra,
    }  # fmt: skip
    run = subprocess.run(
        [LAUNCHER, "-n", str(ranks), sys.executable, str(PROGRAM)],
        capture_output=True, text=True, timeout=150, env=environment,
    )  # fmt: skip
    assert run.returncode == 0 and "done" in run.stdout, run.stdout + run.stderr
    found = {}
    for name, digest in re.findall(r"result (\w+) ([0-9a-f]{16})", run.stdout):
        found.setdefault(name, []).append(digest)
    assert all(len(values) == ranks and len(set(values)) == 1 for values in found.values()), found
    return {name: values[0] for name, values in found.items()}


@pytest.fixture(scope="module")
def one():
    return results(1)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_bytes_do_not_depend_on_the_ranks(one, ranks):
    assert set(one) == {"sum", "bytes", "columns", "field", "total", "norm", "few"}
    assert results(ranks) == one


@pytest.mark.slow
def test_ranks_may_have_different_devices(one):
    assert results(2, VYRE_TEST_MIXED="1") == one


def test_one_rank_gives_what_numpy_gives():
    """The heat step and the sums against plain NumPy, which shares no code."""
    code = (
        "import numpy as np, sys; sys.argv = ['x', 'none']\n"
        f"exec(open({str(PROGRAM)!r}).read())\n"
        "f = np.random.default_rng(6).random((23, 17), dtype='f4')\n"
        "with vyre.mpi.ShardedGraph(comm) as g:\n"
        "    x = g.sharded('x', (23, 17), halo=1, input=True); y = g.sharded('y', (23, 17), output=True)\n"
        "    g.wave(KERNELS.heat, x, y, 17, vyre.mpi.ROWS, vyre.mpi.FIRST, vyre.mpi.TOTAL, grid=(3, 3))\n"
        "y = g.run(x=f)\n"
        "w = f.copy(); i = f[1:-1, 1:-1]\n"
        "w[1:-1, 1:-1] = i + np.float32(0.2) * (f[:-2, 1:-1] + f[2:, 1:-1] + f[1:-1, :-2] + f[1:-1, 2:] - np.float32(4) * i)\n"
        "assert np.array_equal(y, w), abs(y - w).max()\n"
        "import math; assert vyre.mpi.sum(comm, f.astype('f8')) == math.fsum(f.ravel())\n"
        "print('same')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert "same" in run.stdout, run.stdout + run.stderr
