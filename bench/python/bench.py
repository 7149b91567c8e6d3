# SPDX-License-Identifier: MIT OR Apache-2.0
"""Suite python: calls from Python against other packages, in one environment.

    python bench.py [FILE]      # appends its rows to the JSON file

Contestants take turns in short blocks, so that noise hits all of them. A ratio is
the median over the rounds of the time of the peer divided by the time of vyre; a
time is that of the fastest block. Results are compared before timing.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

import peers
import vyre

TEXT = """
kernel saxpy workgroup(256) over(y)
buffer x : read f32[] @0;
buffer y : read_write f32[] @1;
uniform a : f32 @2;
{ let i = global_id.x; if (i < len(y)) y[i] = fma(a, x[i], y[i]); }
kernel wave workgroup(256) over(o)
buffer x : read f32[] @0;
buffer o : write f32[] @1;
{ let i = global_id.x; if (i < len(o)) o[i] = exp(-x[i] * x[i]) * sin(x[i]); }
"""
KERNELS = vyre.kernel(TEXT)
rows = []


def block(run, seconds):
    """Repeats run() for about that time; returns the seconds of one run."""
    count, start = 0, time.perf_counter()
    batch = 1
    while True:
        for _ in range(batch):
            run()
        count += batch
        spent = time.perf_counter() - start
        if spent >= seconds:
            return spent / count
        batch = max(1, min(1000, int(count * (seconds - spent) / max(spent, 1e-9))))


def report(name, unit, ours, best, peer="", theirs=None, ratio=None, note=""):
    scale = {"us": 1e6, "ms": 1e3}[unit]
    row = {"suite": "python", "name": name, "unit": unit, "value": ours * scale, "best": best * scale,
           "peer": peer or None, "peer_value": theirs and theirs * scale, "ratio": ratio, "note": note}  # fmt: skip
    rows.append(row)
    text = f"{name:34} {best * scale:10.3f} {unit}"
    if peer:
        text += f"   {peer:18}" + (f"{theirs * scale:11.3f} {unit}   {ratio:6.2f}x" if theirs else f"  {note}")
    print(text, flush=True)


def compare(name, unit, runs, rounds, seconds):
    """Times all runs in turn. The first is vyre's."""
    times = {key: [] for key in runs}
    for run in runs.values():
        block(run, seconds / 4)
    for _ in range(rounds):
        for key, run in runs.items():
            times[key].append(block(run, seconds))
    ours = times["vyre"]
    for key, values in times.items():
        if key != "vyre":
            ratio = statistics.median(b / a for a, b in zip(ours, values))
            report(name, unit, statistics.median(ours), min(ours), key, min(values), ratio)
    if len(times) == 1:
        report(name, unit, statistics.median(ours), min(ours))


def contestants(kind, size, found):
    """Returns callables of vyre and of all peers, whose results were compared."""
    x = np.linspace(-3, 3, size, dtype="f4")
    start = np.full(size, 0.5, "f4")
    k = KERNELS[kind]
    if kind == "saxpy":
        want = np.float32(2) * x + start
        y = start.copy()
        runs = {"vyre": lambda: k(x, y, a=2.0, out=y)}
    else:
        want = np.exp(-x.astype("f8") ** 2) * np.sin(x.astype("f8"))
        y = np.empty_like(x)
        runs = {"vyre": lambda: k(x, out=y)}
    runs["vyre"]()
    assert np.allclose(y, want, rtol=1e-5, atol=1e-6), "vyre"
    for name, peer in found.items():
        memory = start.copy()
        try:
            run = getattr(peer, kind)(x, memory)
            run()
            result = getattr(run, "result", lambda m=memory: m)()
        except Exception as error:  # a peer that fails here is reported below
            report(f"{kind}, {size} elements", "us", 0, 0, name, None, None, f"failed: {error!r:.60}")
            continue
        assert np.allclose(result, want, rtol=1e-4, atol=1e-5), f"{name} computes something else"
        runs[name] = run
    return runs


def small(found):
    compare("call, 256 elements, out=", "us", contestants("saxpy", 256, found), 40, 0.002)
    x, y = np.arange(256, dtype="f4"), np.ones(256, "f4")
    k = KERNELS.saxpy
    compare("call, 256 elements, new output", "us", {"vyre": lambda: k(x, y, a=2.0)}, 40, 0.002)
    with vyre.Recording() as recording:
        slots = [recording.slot(name) for name in "xya"]
        recording.dispatch(k, *slots, out=slots[1])
    recording.bind(x=x, y=y, a=np.float32([2]))
    compare("replay, 256 elements", "us", {"vyre": recording.replay}, 40, 0.002)


def large(found):
    for kind, name in (("saxpy", "saxpy, 1e7 elements"), ("wave", "exp(-x*x)*sin(x), 1e7 elements")):
        compare(name, "ms", contestants(kind, 10_000_000, found), 9, 0.03)


COLD = {
    "NumPy alone": "import numpy",
    "import vyre": "import numpy, vyre",
    "vyre": f"import numpy as np, vyre; k = vyre.kernel('''{TEXT}''')['saxpy']; k(np.ones(256, 'f4'), np.ones(256, 'f4'), a=2.0)",
    "numba": "import numpy as np, numba\n@numba.njit\ndef f(x, y, a):\n    for i in range(x.size): y[i] = a * x[i] + y[i]\n"
    "f(np.ones(256, 'f4'), np.ones(256, 'f4'), np.float32(2))",
    "jax": "import os; os.environ['JAX_PLATFORMS'] = 'cpu'; import numpy as np, jax\n"
    "jax.jit(lambda x, y: 2 * x + y)(np.ones(256, 'f4'), np.ones(256, 'f4')).block_until_ready()",
    "numexpr": "import numpy as np, numexpr; x = np.ones(256, 'f4'); numexpr.evaluate('2 * x + x')",
}


def process(code, **extra):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **extra},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return time.perf_counter() - start


def cold(found, rounds=7):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        on, off = {"VYRE_CACHE_DIR": folder}, {"VYRE_CACHE_DIR": ""}
        process(COLD["vyre"], **on)
        jobs = {
            "NumPy alone": lambda: process(COLD["NumPy alone"]),
            "import": lambda: process(COLD["import vyre"]),
            "compiled": lambda: process(COLD["vyre"], **off),
            "cached": lambda: process(COLD["vyre"], **on),
        }
        for name in ("numba", "jax", "numexpr"):
            if name in found:
                jobs[name] = lambda name=name: process(COLD[name])
        times = {name: [] for name in jobs}
        for turn in range(rounds):
            for name, job in jobs.items():
                if turn < 2 or name not in ("numba", "jax"):
                    times[name].append(job())
    base = times["NumPy alone"]
    for name, label in (("import", "import, over NumPy"), ("compiled", "cold process, compiled"), ("cached", "cold process, cached")):
        over = [a - b for a, b in zip(times[name], base)]
        report(label, "ms", statistics.median(over), min(times[name]) - min(base))
    for name in ("numba", "jax", "numexpr"):
        if name in times:
            over = min(times[name]) - min(base)
            report("cold process, compiled", "ms", statistics.median(times["compiled"]) - statistics.median(base),
                   min(times["compiled"]) - min(base), name, over, over / (min(times["compiled"]) - min(base)))  # fmt: skip


def main():
    found = {}
    wanted = os.environ.get("VYRE_BENCH_PEERS")
    for name, make in peers.PEERS.items():
        if wanted is not None and name not in wanted.split(","):
            continue
        try:
            found[name] = make()
        except Exception as error:
            print(f"{name}: not here ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})")
            rows.append({"suite": "python", "name": "peer", "peer": name, "note": "not installed"})
    versions = ", ".join(f"{name} {peer.version}" for name, peer in found.items())
    print(f"python {sys.version.split()[0]}, vyre {vyre.__version__} on {vyre.device().name}; {versions}")
    only = os.environ.get("VYRE_BENCH_CASE", "")
    for part in (small, large, cold):
        if only in part.__name__:
            part(found)
    if len(sys.argv) > 1:
        old = json.load(open(sys.argv[1])) if os.path.exists(sys.argv[1]) else []
        old = [row for row in old if row.get("suite") != "python"]
        with open(sys.argv[1], "w") as file:
            json.dump(old + rows, file, indent=1)


if __name__ == "__main__":
    main()
