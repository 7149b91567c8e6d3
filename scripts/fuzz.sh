#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs every fuzz target of a build folder for FUZZ_SECONDS each, starting from
# tests/corpus/<target>. What it finds is kept in <folder>/found/<target>.
set -euo pipefail
cd "$(dirname "$0")/.."
directory=$1
seconds=${FUZZ_SECONDS:-60}
status=0 running=()

fuzz() { # a program
  local name seeds found log runs
  name=$(basename "$1" _fuzz)
  seeds=tests/corpus/$name found=$directory/found/$name log=$directory/$name.log
  mkdir -p "$found" "$directory/corpus/$name"
  local corpora=("$directory/corpus/$name")
  if [ -d "$seeds" ]; then corpora+=("$seeds"); fi
  if "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$found/" -print_final_stats=1 "${corpora[@]}" >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz: $name: $runs runs in $seconds s, nothing found"
  else
    tail -n 60 "$log"
    echo "fuzz: $name: FAILED, input kept in $found"
    return 1
  fi
}

# As many at once as there are processors.
drain() {
  local one
  for one in "${running[@]}"; do wait "$one" || status=1; done
  running=()
}

echo "fuzzing each target for $seconds s, $(nproc) at once ..."
count=0
for program in "$directory"/fuzzers/*_fuzz; do
  [ -x "$program" ] || continue
  count=$((count + 1))
  fuzz "$program" &
  running+=("$!")
  [ "${#running[@]}" -lt "$(nproc)" ] || drain
done
drain
if [ "$count" -eq 0 ]; then
  echo "fuzz: no target was built"
  exit 1
fi
exit "$status"
