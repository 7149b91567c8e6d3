#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Configures and builds a preset, or targets of it and what they need:
#   scripts/build.sh release|asan|tsan|fuzz [TARGET...]
# (DIRECTORY/all: the targets of a folder.)
# Quiet if all goes well; the whole log if not.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
directory=build
[ "$preset" = release ] || directory=build/$preset
mkdir -p "$directory"
log=$directory/build.log

# Where the result is judged, a warning is an error.
strict=OFF
[ -z "${CI:-}" ] && [ "$preset" = release ] || strict=ON

if ! { cmake --preset "$preset" -DCMAKE_COMPILE_WARNING_AS_ERROR=$strict && cmake --build --preset "$preset" ${1:+--target "$@"} -- --quiet; } >"$log" 2>&1; then
  cat "$log"
  exit 1
fi
grep -A6 -E '(warning|error):' "$log" || true
