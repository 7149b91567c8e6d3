#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the package with a free-threaded interpreter, and runs its tests:
#   python_free_threaded.sh SOURCE FOLDER
# Exits with 77 where no such interpreter is installed.
set -euo pipefail
source_dir=$1 folder=$2
for python in python3.15t python3.14t python3.13t; do
  if command -v "$python" >/dev/null; then
    rm -rf "$folder"
    "$python" -m venv "$folder"
    "$folder/bin/pip" -q install --disable-pip-version-check "$source_dir" pytest hypothesis
    cd "$folder" # not the sources
    "$folder/bin/python" -m pytest -q -p no:cacheprovider "$source_dir/python/tests" -m "not slow"
    "$folder/bin/python" -c 'import sys, vyre; sys.exit(sys._is_gil_enabled())' || { echo "vyre enabled the GIL"; exit 1; }
    echo "passed with $python"
    exit 0
  fi
done
echo "not run: no free-threaded interpreter (python3.13t or later) is installed"
exit 77
