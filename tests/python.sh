#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the tests of the Python package:  python.sh SOURCE BUILD PYTHON SANITIZER
# Under a sanitizer, its runtime is loaded before Python.
set -uo pipefail
source_dir=$1 build_dir=$2 python=$3 sanitizer=${4:-}

if ! "$python" -c 'import numpy, pytest, hypothesis' 2>/dev/null; then
  echo "skipped: $python has no numpy, pytest or hypothesis"
  exit 77
fi
export PYTHONPATH=$build_dir/python PYTHONDONTWRITEBYTECODE=1
options=()
case $sanitizer in
  *address*)
    runtime=$(clang-19 -print-file-name=libclang_rt.asan-x86_64.so)
    # Python itself does not free everything at exit, and calls C++ nowhere.
    export LD_PRELOAD=$runtime ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0:verify_asan_link_order=0"
    options=(-m "not slow") ;;
  *thread*) echo "skipped: Python is not built for ThreadSanitizer"; exit 77 ;;
esac
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$python" -m pytest -p no:cacheprovider "$source_dir/python/tests" ${options[@]+"${options[@]}"} 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
passed=$(grep -oE '[0-9]+ passed' "$log" | tail -n 1 | cut -d' ' -f1)
failed=$(grep -oE '[0-9]+ (failed|error)' "$log" | awk '{ n += $1 } END { print n + 0 }')
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1
echo "cases: ${passed:-0} passed, $failed failed"
exit "$status"
