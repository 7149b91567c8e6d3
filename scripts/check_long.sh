#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Random programs, more than `make check` has time for:  scripts/check_long.sh BUILD
# Each is run by ref, by the interpreter of lowered kernels in all numeric forms,
# and as printed C, and must give the same bytes. Pieces of 250 programs run on all
# cores; what a piece said is in BUILD/long. A failure names its seed.
#   PROGRAMS=10000   how many         FIRST=0   the first seed
set -euo pipefail
cd "$(dirname "$0")/.."
tests=$(cd "$1/tests" && pwd) logs=$1/long
programs=${PROGRAMS:-10000} first=${FIRST:-0} piece=250
usage() { sed -n '3,8s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
case $programs$first in *[!0-9]*) usage ;; esac
programs=$((10#$programs)) first=$((10#$first)) # 08 is eight
[ "$programs" -gt 0 ] || usage
rm -rf "$logs"
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)

one() { # test, first seed, count
  local log=$logs/$1.$2
  VYRE_LOWER_FIRST=$2 VYRE_LOWER_SEEDS=$3 VYRE_C_FIRST=$2 VYRE_C_SEEDS=$3 \
    "$tests/$1" random_programs_do_the_same >"$log" 2>&1 &&
    grep -q '^cases: 1 passed, 0 failed$' "$log" && echo "$3" >"$log.good" ||
    { echo "$1: seeds from $2: see $log" && cat "$log"; }
}
export -f one
export tests logs

for test in lower_test c_test; do
  for ((seed = first; seed < first + programs; seed += piece)); do
    left=$((first + programs - seed))
    echo "$test $seed $((left < piece ? left : piece))"
  done
done | xargs -r -L 1 -P "$(nproc)" bash -c 'one "$@"' one

sum() { find "$logs" -name "$1.*.good" -exec cat {} + | awk '{ n += $1 } END { print n + 0 }'; }
lowered=$(sum lower_test) printed=$(sum c_test)
echo "programs $first to $((first + programs - 1)):" \
  "$lowered the same as lowered kernels, $printed as printed C"
awk '/ runs, / { runs += $1; refused += $3 } END {
  print runs + 0 " runs of the interpreter, " refused + 0 " refused by their target" }' \
  /dev/null "$logs"/lower_test.*
echo "$((lowered + printed)) passed, $((2 * programs - lowered - printed)) failed"
[ $((lowered + printed)) -eq $((2 * programs)) ]
