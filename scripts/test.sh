#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the tests of a build folder:  scripts/test.sh build
# All output goes to <folder>/check.log; that of tests that failed is shown, less
# their good cases. A test that was ended by its limit is listed as a timeout.
# The last line is "N passed, N failed", summed over the cases of all tests.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/progress.sh
directory=$1
log=$directory/check.log

# LLVM and the compilers of Vulkan drivers allocate very often. Shorter allocation stacks
# and a smaller quarantine halve their time under ASan.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:malloc_context_size=8:quarantine_size_mb=64}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:suppressions=$PWD/tests/tsan.supp}

# Tests neither read nor change the cache of the user: measured times in it would
# decide how kernels are compiled.
export XDG_CACHE_HOME=$PWD/$directory/test_cache
rm -rf "$XDG_CACHE_HOME"
mkdir -p "$XDG_CACHE_HOME"

# Long tests first, so that no processor waits for the last: ctest knows how long each
# took the last time, and before the first time it knows it from here.
costs=$directory/Testing/Temporary/CTestCostData.txt
if [ ! -f "$costs" ]; then
  mkdir -p "${costs%/*}"
  { printf '%s 1 %s\n' cts.conform 85 cts.vulkan 73 unit.cpu_random_programs 69 unit.changing_memory 58 cli.plan 57 \
    cts.vulkan_swiftshader 56 flow.programs 53 python.tests 50 unit.vulkan_random_programs 48 \
    flow.shapes 45 unit.package_run 38 repo.scripts 34 cli.progress 34 unit.queue_random 30 \
    unit.vulkan_recording 28 unit.work_queue 26 unit.graph 25 unit.subgroups 20 \
    repo.contract_faults 20 cli.ports 20 unit.vulkan 18 unit.runner 17 \
    unit.vulkan_random_programs_swiftshader 15 unit.iteration_limit 15 unit.cpu_large_kernels 15 \
    unit.c_changing 14 unit.llvm 13 unit.c_safety 13 cli.embed 13 unit.printed 12 \
    unit.vulkan_fault 11 unit.placement 11 unit.lower 11 repo.install 11 repo.docs 11 \
    unit.sums 10 repo.contract 10 cli.messages 10 repo.headers 9 cli.width 9 \
    unit.vulkan_grid_split 8 unit.spirv_run 8 unit.schedule_interp 8 unit.rows 8 unit.c 8 \
    unit.vulkan_uniform 7 unit.vulkan_changing 6 unit.tune 6 unit.scalar 6 unit.vulkan_memory 5 \
    unit.lane_shape_run 5 unit.explain 5 unit.probe 4 unit.generate 4 unit.fuel 4 unit.cpu 4 \
    unit.atomic 4
    echo ---; } >"$costs"
fi

# Prints a line for each finished test, and in between the tests that run.
follow() {
  local line part='' over=0 name all=$1
  declare -A running=()
  progress_begin
  while :; do
    if IFS= read -r -t 2 line; then
      line=$part$line part=''
      if [[ $line =~ ^\ *Start\ +([0-9]+):\ (.*)$ ]]; then
        running[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
      elif [[ $line =~ ^\ *([0-9]+)/([0-9]+)\ Test\ +#([0-9]+): ]]; then
        over=$((over + 1))
        unset "running[${BASH_REMATCH[3]}]"
        progress_clear
        echo "$line"
      fi
    elif [ $? -gt 128 ]; then
      part+=$line # no whole line came in time
    else
      break
    fi
    name=${running[*]}
    progress_show "$over" "$all" "tests${name:+, now ${name// /, }}"
  done
  progress_clear
}
tests=$(ctest --test-dir "$directory" -N | sed -n 's/^Total Tests: //p')
# One more than there are processors, because some tests mostly wait.
jobs=$(($(nproc) + 1))
echo "running ${tests:=0} tests of $directory, $jobs at a time (log: $log) ..."
ctest --test-dir "$directory" -j"$jobs" -V --no-tests=error 2>&1 </dev/null | tee "$log" | follow "$tests" || true

# Lines of test 7 start with "7: ". A test that failed as a whole, but not in
# one of its cases (it crashed, hung, leaked or never said), counts as one
# failed case.
awk '
  /^ *[0-9]+: / {
    number = $0; sub(/^ */, "", number); sub(/:.*/, "", number); number += 0
    text = $0; sub(/^ *[0-9]+: /, "", text)
    if (text ~ /^timeout: /) { late[number] = text; sub(/^timeout: /, "", late[number]) }
    if (text !~ /^ok /) output[number] = output[number] text "\n"
    if (text ~ /^cases: [0-9]+ passed, [0-9]+ failed\r?$/) {
      split(text, word, " "); said[number] = 1
      good[number] = word[2]; bad[number] = word[4]
    }
    next
  }
  /^ *[0-9]+\/[0-9]+ Test +#/ {
    number = $0; sub(/^.*Test +#/, "", number); sub(/:.*/, "", number); number += 0
    name = $0; sub(/^[^:]*: */, "", name); sub(/ .*/, "", name)
    tests++
    if ($0 ~ /\*\*\*Timeout/ && !late[number]) {
      late[number] = $0; sub(/^.*\*\*\*Timeout */, "after ", late[number])
    }
    if (late[number]) timeouts = timeouts "timeout: " name ": " late[number] "\n"
    if ($0 ~ /\*\*\*Skipped/) { print "skipped: " name; next }
    whole = ($0 ~ /   Passed  /) && said[number]
    passed += good[number]; failed += bad[number]
    if (!whole && bad[number] == 0) { failed++; lost = lost " " name }
    if (!whole || bad[number] > 0)
      shown = shown "\n--- " name "\n" output[number]
    if (!said[number]) shown = shown "(no line of cases: see the log)\n"
    next
  }
  END {
    if (shown != "") printf "%s\n", shown
    if (lost != "") print "failed as a whole:" lost
    printf "%s", timeouts
    if (tests == 0) { print "no test ran"; failed++ }
    printf "%d passed, %d failed\n", passed, failed
    exit failed > 0
  }' "$log" >"$directory/check.summary" && status=0 || status=1
if ! grep -qE '^ *[0-9]+/[0-9]+ Test +#' "$log"; then cat "$log"; fi
cat "$directory/check.summary"
exit "$status"
