# SPDX-License-Identifier: MIT OR Apache-2.0
"""The example scripts run, are short, and write a picture; notebooks work."""

import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

import vyre
from vyre import notebook

ROOT = pathlib.Path(__file__).parents[2] / "examples" / "python"
needs_source = pytest.mark.skipif(not ROOT.exists(), reason="the sources are not here")
SCRIPTS = sorted(ROOT.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=[s.stem for s in SCRIPTS])
def test_an_example_writes_a_picture(script, tmp_path):
    assert len(script.read_text().splitlines()) <= 80
    target = tmp_path / "picture.png"
    run = subprocess.run(
        [sys.executable, str(script), str(target)], capture_output=True, text=True, timeout=200
    )
    assert run.returncode == 0, run.stderr
    data = target.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    assert data[:4] == b"\x89PNG" and width >= 160 and height >= 120
    hashes = [line.split()[1] for line in run.stdout.splitlines() if line.split()[0] in ("cpu", "ref")]
    assert len(set(hashes)) <= 1


def test_pictures_have_the_pixels_of_the_array():
    import zlib

    data = notebook.png(np.array([[0.0, 1.0], [0.5, 2.0]]))
    start = data.index(b"IDAT") + 4
    length = struct.unpack(">I", data[start - 8 : start - 4])[0]
    assert zlib.decompress(data[start : start + length]) == b"\0\x00\xff\0\x80\xff"
    with pytest.raises(ValueError, match="Fix:"):
        notebook.png(np.zeros((2, 2, 5)))


def test_animations_have_all_frames():
    frames = [np.full((4, 6), n / 3) for n in range(4)]
    data = notebook.animation(frames)
    assert data.count(b"fcTL") == 4 and data.count(b"IDAT") == 1 and data.count(b"fdAT") == 3
    at = data.index(b"acTL") + 4
    assert struct.unpack(">II", data[at : at + 8]) == (4, 0)
    with pytest.raises(ValueError, match="Fix:"):
        notebook.animation([])


def test_the_cell_magic_defines_kernels(saxpy):
    ipython = pytest.importorskip("IPython.testing.globalipapp")
    shell = ipython.start_ipython() or ipython.get_ipython()
    vyre.load_ipython_extension(shell)
    shell.run_cell_magic("vyre", "", saxpy.text)
    assert shell.user_ns["saxpy"] == saxpy
    shown = shell.display_formatter.formatters["text/html"](saxpy) or notebook.kernel_html(saxpy)
    assert "input_output" in shown and "<table" in shown
    try:
        vyre.kernel("kernel wrong workgroup(1)\nbuffer o : write f32[] @0;\n{ o[0] = 1u < 2; }")
    except vyre.InvalidProgram as error:
        assert shell.display_formatter.formatters["text/html"].lookup(error) is notebook.error_html
        shown = notebook.error_html(error)
        assert "1u &lt; 2" in shown and '<b style="color:#b00">' in shown and ">  Fix: " in shown


@needs_source
def test_the_guide_works(monkeypatch):
    """All code blocks of the guide run, one after the other."""
    text = (ROOT.parents[1] / "docs" / "how-to" / "use-from-python.md").read_text()
    blocks = [part.split("```", 1)[0] for part in text.split("```python\n")[1:]]
    code = "\n".join(b for b in blocks if "vyre.dask" not in b and "vyre.mpi" not in b)
    monkeypatch.chdir(ROOT.parents[1])
    space = {}
    exec(code, space)
    assert list(space["graph"].run(x=space["x"])) == [0, 6, 12, 18]


@needs_source
def test_readme_example_works():
    text = (ROOT.parents[1] / "python" / "README.md").read_text()
    code = text.split("```python\n", 1)[1].split("```", 1)[0].replace('"vulkan"', '"ref"')
    space = {}
    exec(code, space)
    assert list(space["y"]) == [10, 12, 14, 16]
