#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Configures and builds a preset, or targets of it and what they need:
#   scripts/build.sh release|asan|tsan|fuzz [TARGET...]
# (DIRECTORY/all: the targets of a folder.)
# A line for each step; if one fails, the log, less the steps that went well.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/progress.sh
preset=$1
shift
directory=build
[ "$preset" = release ] || directory=build/$preset
mkdir -p "$directory"
log=$directory/build.log

# In CI, warnings are errors.
strict=OFF
[ -z "${CI:-}" ] && [ "$preset" = release ] || strict=ON

fail() {
  grep -vE '^\[[0-9]+/[0-9]+\] ' "$log"
  exit 1
}

build() { cmake --build --preset "$preset" ${targets[@]+--target "${targets[@]}"} -- "$@"; }

targets=("$@")
echo "[1/2] configuring $directory ..."
cmake --preset "$preset" -DCMAKE_COMPILE_WARNING_AS_ERROR=$strict >"$log" 2>&1 || fail

# Ninja prints its progress as [3/412] Building ...
steps=$(build -n 2>/dev/null | grep -c '^\[') || steps=0
if [ "$steps" -eq 0 ]; then
  echo "[2/2] $directory is up to date"
else
  # Generated files may add steps.
  echo "[2/2] building $steps files or more into $directory (log: $log) ..."
fi
follow() {
  local line
  progress_begin
  while IFS= read -r line; do
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then progress_show "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" files; fi
  done
  progress_clear
}
build 2>&1 | tee -a "$log" | follow || fail
grep -A6 -E '(warning|error):' "$log" || true
