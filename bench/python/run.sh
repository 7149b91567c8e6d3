#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the suite python:  bench/python/run.sh BUILD [FILE]
# Makes an environment with all peers that install from PyPI in BUILD/bench-python, and
# measures the package of the build tree there. Rows are added to FILE.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
file=${2:+$(realpath -m "$2")}
python=$(sed -n 's/^VYRE_PYTHON_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
if [ ! -d "$build/python/vyre" ] || [ -z "$python" ]; then
  echo "bench: suite python is left out: the package is not built"
  exit 0
fi
environment=$build/bench-python
if [ ! -x "$environment/bin/python" ]; then
  "$python" -m venv "$environment" || { echo "bench: suite python is left out: $python has no venv"; rm -rf "$environment"; exit 0; }
fi
if [ ! -f "$environment/done" ]; then
  echo "bench: installing the peers of suite python from PyPI"
  for package in numpy numba 'pyopencl[pocl]' taichi warp-lang 'jax[cpu]' numexpr wgpu; do
    "$environment/bin/pip" -q install --disable-pip-version-check "$package" || echo "bench: $package does not install"
  done
  touch "$environment/done"
fi
PYTHONPATH=$build/python:$here exec "$environment/bin/python" "$here/bench.py" ${file:+"$file"}
