# SPDX-License-Identifier: MIT OR Apache-2.0
"""Memory stays flat, errors travel whole, and unusual ways to run Python work."""

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import vyre
from conftest import SAXPY
from vyre import errors

CALLS = 100_000


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def forms(saxpy):
    x, y = np.ones(256, "f4"), np.ones(256, "f4")
    b, c = vyre.Buffer.of(x, "cpu"), vyre.Buffer.of(y, "cpu")
    with vyre.Recording("cpu") as recording:
        slots = [recording.slot(name) for name in "xya"]
        recording.dispatch(saxpy, *slots, out=slots[1])
    recording.bind(x=x, y=y, a=np.float32([2]))
    with vyre.WaveGraph("cpu") as graph:
        gx, gy = graph.memory("x", 256, input=True), graph.memory("y", 256, output=True, input=True)
        graph.wave(saxpy, gx, gy, 2.0)

    def refused():
        try:
            saxpy(x[::2], y, a=1)
        except TypeError:
            pass

    def failed():
        try:
            saxpy(x, y[:-1], a=1, out=x[:7])
        except (vyre.VyreError, ValueError):
            pass

    return {
        "out": (1, lambda: saxpy(x, y, a=2.0, out=y)),
        "new": (1, lambda: saxpy(x, y, a=2.0)),
        "buffers": (4, lambda: saxpy(b, c, a=2.0, device="cpu")),
        "replay": (1, recording.replay),
        "submit": (20, lambda: saxpy.submit(x, y, a=2.0, device="cpu").result()),
        "graph": (20, lambda: graph.run(x=x, y=y)),
        "refused": (10, refused),
        "failed": (20, failed),
        "parse": (100, lambda: vyre.kernel(SAXPY)),
        "pickle": (100, lambda: pickle.loads(pickle.dumps(saxpy))),
    }


@pytest.mark.slow
def test_memory_is_flat(saxpy):
    """100,000 calls; forms that take longer have a part of that."""
    for name, (divisor, call) in forms(saxpy).items():
        for _ in range(CALLS // divisor // 10):
            call()
        gc.collect()
        before = resident()
        for _ in range(CALLS // divisor):
            call()
        gc.collect()
        grown = resident() - before
        assert grown < 2 << 20, f"{name}: {grown} bytes more after {CALLS // divisor} calls"


def every_class():
    found = [errors.VyreError]
    for cls in found:
        found.extend(cls.__subclasses__())
    return [c for c in found if c.__module__.startswith("vyre")]


@pytest.mark.parametrize("cls", every_class(), ids=lambda c: c.__name__)
def test_every_class_pickles_whole(cls):
    error = cls(
        "the message", code="c", kind="k", fix="do it", field="f", numbers={"a": 1, "b": 2**63},
        native=-7, text="1 | source\n    ^ here\nFix: do it", findings=[{"line": 3}],
    )  # fmt: skip
    error.add_note("a note")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls and again.args == error.args
    assert again.__dict__ == error.__dict__ and str(again) == str(error) == error.text
    error.text = None
    assert str(error) == "the message\nFix: do it"


def test_codes_have_their_classes():
    pairs = {
        "invalid_program": ValueError,
        "invalid_argument": ValueError,
        "plan_rejected": ValueError,
        "out_of_memory": MemoryError,
        "device_out_of_memory": MemoryError,
        "unsupported_feature": NotImplementedError,
    }
    for code, base in pairs.items():
        made = errors.make(code, "none", "m", "f", None, {}, 0, None, None)
        assert isinstance(made, base) and made.code == code and type(made) is not errors.VyreError
    late = errors.make("dispatch_failed", "timed_out", "m", "f", None, {}, 0, None, None)
    assert isinstance(late, TimeoutError) and isinstance(late, errors.DispatchFailed)
    assert type(errors.make("something_new", "none", "m", "", None, {}, 0, None, None)) is errors.VyreError
    assert issubclass(errors.CheckFailed, AssertionError)


REPL = f"""
import numpy as np, vyre
k = vyre.kernel('''{SAXPY.strip()}''')['saxpy']

k(np.ones(3, 'f4'), np.ones(3, 'f4'), 2)
k(1)
print('still here')
"""


def test_the_repl_shows_results_and_goes_on_after_errors():
    run = subprocess.run([sys.executable, "-i", "-q"], input=REPL, capture_output=True, text=True, timeout=60)
    assert "array([3., 3., 3.], dtype=float32)" in run.stdout and "still here" in run.stdout
    assert "misses" in run.stderr and "Fix: " in run.stderr


def test_exec_and_modules_without_files():
    space = {}
    exec(f"import numpy as np, vyre\nk = vyre.kernel({SAXPY!r})['saxpy']\nr = k(np.ones(2, 'f4'), np.ones(2, 'f4'), 4)", space)
    assert list(space["r"]) == [5, 5]
    code = f"import vyre; exec('k = vyre.kernel(t).saxpy', {{'vyre': vyre, 't': {SAXPY!r}}})"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_without_llvm_the_fix_names_the_extra():
    fix = "run `apt-get install libllvm19`; cached kernels need no LLVM"
    made = errors.make("unsupported_feature", "device_unavailable", "m", fix, "llvm", {}, 0, None, None)
    assert made.fix.startswith("run `pip install 'vyre[llvm]'` or `apt-get install libllvm19`;")


def test_llvm_is_found_where_pip_installed_it(tmp_path, monkeypatch):
    from vyre import _support

    for folder in ("site", "lib"):
        (tmp_path / folder).mkdir()
    (tmp_path / "lib" / "libLLVM.so.19.1").touch()
    info = tmp_path / "site" / "karellen_llvm_core-19.1.7.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: karellen-llvm-core\nVersion: 19.1.7\n")
    (info / "RECORD").write_text("../lib/libLLVM.so.19.1,,\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    assert _support._installed_llvm() == str(tmp_path / "lib" / "libLLVM.so.19.1")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert _support._installed_llvm() == ""


ENDINGS = {
    "with work": "f = k.submit(x, x, a=1); import sys; sys.exit(7)",
    "with a thread": "import threading, sys; threading.Thread(target=lambda: [k(x, x, a=1) for _ in range(2000)], daemon=True).start(); sys.exit(7)",
    "with buffers": "b = vyre.Buffer.of(x); keep = [b[1:], b]; keep.append(keep); raise SystemExit(7)",
    "with a graph": "g = vyre.WaveGraph(); m = g.memory('m', 4, output=True); g.wave(k, np.ones(4, 'f4'), m, 1); g.__exit__(None, None, None); g.submit(); raise SystemExit(7)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends(ending):
    code = f"import numpy as np, vyre\nk = vyre.kernel({SAXPY!r}).saxpy\nx = np.ones(100000, 'f4')\nk(x, x, a=1)\n{ENDINGS[ending]}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 7, run.stderr


def test_aligned_arrays_are_used_in_place(saxpy):
    x, y = np.ones(5000, "f4"), np.ones(5000, "f4")
    stats = {}
    saxpy(x, y, a=1, out=y, stats=stats)
    assert stats["copied_bytes"] == 0 == stats["copies"] and stats["borrowed_bytes"] >= x.nbytes + y.nbytes
    odd = np.zeros(4 * 100 + 1, "u1")[1:].view("f4")  # at an odd address
    assert np.array_equal(saxpy(odd, np.ones(100, "f4"), a=1), np.ones(100, "f4"))


def test_torch_tensors_are_used_in_place(saxpy):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y, stats = torch.ones(1000), torch.ones(1000), {}
    saxpy(x, y, a=2, out=y, stats=stats)
    assert y.tolist() == [3.0] * 1000 and stats["copied_bytes"] == 0


def test_the_import_is_small():
    """Modules that take long are imported where they are used."""
    heavy = "asyncio", "concurrent.futures", "importlib.metadata", "inspect", "dask", "IPython", "vyre.plan"
    code = f"import sys, numpy; before = set(sys.modules); import vyre; print([m for m in {heavy} if m in set(sys.modules) - before])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == "[]", run.stderr
