# SPDX-License-Identifier: MIT OR Apache-2.0
"""The package passes mypy --strict, and its stubs agree with the modules."""

import importlib.metadata
import os
import pathlib
import subprocess
import sys

import pytest

import vyre

pytest.importorskip("mypy", reason="mypy is not installed")
ROOT = pathlib.Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="the sources are not here")]
PACKAGE = pathlib.Path(vyre.__file__).parent


def run(*words, **extra):
    return subprocess.run(
        [sys.executable, "-m", *words], capture_output=True, text=True, cwd=ROOT, env={**os.environ, **extra}
    )


def test_mypy_strict(tmp_path):
    result = run("mypy", "--strict", "--cache-dir", str(tmp_path), "python/vyre")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.skipif(
    tuple(map(int, importlib.metadata.version("mypy").split(".")[:2])) < (1, 8),
    reason="stubtest of mypy before 1.8 reports names that a module imports",
)
def test_stubs_agree_with_the_modules(tmp_path):
    words = ["mypy.stubtest", "vyre", "--concise", "--mypy-config-file", str(ROOT / "pyproject.toml")]
    if "--ignore-disjoint-bases" in run("mypy.stubtest", "--help").stdout:
        words.append("--ignore-disjoint-bases")
    result = run(*words, MYPYPATH=str(PACKAGE.parent), MYPY_CACHE_DIR=str(tmp_path))
    assert result.returncode == 0, result.stdout + result.stderr
