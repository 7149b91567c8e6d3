#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Plants control-flow faults in a copy of the vectoriser, one at a time, and checks that
# the control-flow programs of `make check` find each of them.
#   planted_faults.sh SOURCE WORK [NAME...]
# WORK is a folder for the copy and its build. planted_faults.txt has the faults. A fault is
# found if a program gives another result than expected; a crash, a refusal or a timeout
# counts only where planted_faults.txt says so ("@ name file crash"). The last line counts those that were found.
set -uo pipefail
source_dir=$(cd "$1" && pwd) work=$2
shift 2
. "$source_dir/tests/support/cases.sh"
. "$source_dir/tests/support/plant.sh"
list=$source_dir/tests/control_flow/planted_faults.txt
mkdir -p "$work"
work=$(cd "$work" && pwd)
copy=$work/source

mkdir -p "$copy"
(cd "$source_dir" && git ls-files -z | xargs -0 tar cf -) | tar xf - -C "$copy" --overwrite
# A run that was stopped may have left objects that are newer than the sources, with a fault.
grep '^@ ' "$list" | while read -r _ _ file _; do touch "$copy/$file"; done
build() { cmake --build "$work/build" --target control_flow >"$work/build.log" 2>&1; }
echo "building a copy of the sources in $copy"
if ! cmake -S "$copy" -B "$work/build" -G Ninja -DVYRE_BENCH=OFF -DCMAKE_BUILD_TYPE=Release >"$work/build.log" 2>&1 || ! build; then
  cat "$work/build.log"
  exit 1
fi
# Sets outcome: same, differs, or else crash, timeout, failed (a dispatch) or refused (a
# compile, or anything else).
run() { # name of the fault, programs or shapes
  local log=$work/$1.$2.log status=0
  "$work/build/tests/control_flow" --check "$2" --failures 1 --reduce 0 >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    outcome=same
  elif grep -qE '\(program [0-9]+ of this set\): .* is [0-9]+, expected [0-9]+$' "$log"; then
    outcome=differs
  elif [ "$status" -eq $((128 + $(kill -l ALRM))) ] || grep -q 'the dispatch failed: .* ran longer than ' "$log"; then
    outcome=timeout
  elif [ "$status" -gt 128 ]; then
    outcome=crash
  elif grep -q 'the dispatch failed: ' "$log"; then
    outcome=failed
  else
    outcome=refused
  fi
}
# Runs programs, and shapes unless the programs do what is wanted.
find_fault() { # name, wanted outcome
  local check said=
  for check in programs shapes; do
    run "$1" "$check"
    if [ "$outcome" = "$2" ]; then
      ok "finds $1 ($check: $outcome)"
      return
    fi
    said+="$check: $outcome"$'\n'
    if [ "$outcome" != same ]; then said+=$(tail -n 20 "$work/$1.$check.log")$'\n'; fi
  done
  fail "finds $1" "${said}wanted: $2"
}

for check in programs shapes; do
  run none "$check"
  if [ "$outcome" = same ]; then
    ok "without a fault, all $check agree"
  else
    fail "without a fault, all $check agree" "$outcome" "$(tail -n 20 "$work/none.$check.log")"
  fi
done
while read -r _ name file wanted; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  if ! plant "$list" "$name" "$source_dir/$file" >"$work/planted" 2>"$work/why"; then
    fail "finds $name" "$(cat "$work/why")"
    continue
  fi
  cp "$work/planted" "$copy/$file"
  if ! build; then
    fail "finds $name" "$(tail -n 5 "$work/build.log")"
  else
    find_fault "$name" "${wanted:-differs}"
  fi
  cp "$source_dir/$file" "$copy/$file"
done < <(grep '^@ ' "$list")
finish
