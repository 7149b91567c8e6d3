#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every fuzz target of a build folder for FUZZ_SECONDS each, starting from
# tests/corpus/<target>. What it finds is kept in <folder>/found/<target>.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1
seconds=${FUZZ_SECONDS:-60}
status=0 count=0

for program in "$directory"/fuzzers/*_fuzz; do
  [ -x "$program" ] || continue
  name=$(basename "$program" _fuzz)
  seeds=tests/corpus/$name
  found=$directory/found/$name
  mkdir -p "$found" "$directory/corpus/$name"
  corpora=("$directory/corpus/$name")
  if [ -d "$seeds" ]; then corpora+=("$seeds"); fi
  log=$directory/$name.log
  count=$((count + 1))
  if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$found/" -print_final_stats=1 "${corpora[@]}" >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz: $name: $runs runs in $seconds s, nothing found"
  else
    tail -n 60 "$log"
    echo "fuzz: $name: FAILED, input kept in $found"
    status=1
  fi
done
if [ "$count" -eq 0 ]; then
  echo "fuzz: no target was built"
  exit 1
fi
exit "$status"
