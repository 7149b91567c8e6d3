#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the benchmarks of a build:  scripts/bench.sh BUILD
# Rows go to BUILD/bench.json. VYRE_BENCH_SUITE names one suite; "cpu" means all of
# cpu.*, "vulkan" all of vulkan.*. Peers are installed and compiled first; one that is
# missing is a row that says so.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
case ${VYRE_BENCH_SUITE:-cpu} in
  cpu* | flow* | public*)
    scripts/deps.sh bench || echo 'bench: continues without missing peers'
    bench/cpu/peers.sh "$build" ;;
esac
case ${VYRE_BENCH_SUITE:-vulkan} in
  vulkan* | runtime*)
    scripts/deps.sh bench-vulkan || echo 'bench: continues without missing peers'
    bench/vulkan/peers.sh "$build" ;;
esac
case ${VYRE_BENCH_SUITE:-} in python) exec bench/python/run.sh "$build" "$build/bench.json" ;; esac
"$build/vyre-bench" "$build/bench.json"
if [ -z "${VYRE_BENCH_SUITE:-}" ]; then bench/python/run.sh "$build" "$build/bench.json"; fi
