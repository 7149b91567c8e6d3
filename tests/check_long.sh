#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests scripts/check_long.sh and tests/control_flow/planted_faults.sh with programs that
# print prepared output.
#   check_long.sh SOURCE BUILD
set -uo pipefail
source_dir=$(cd "$1" && pwd)
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset RESUME FLOW_DRIVERS PROGRAMS FIRST VYRE_SWIFTSHADER

check() { # name, command...
  local name=$1
  shift
  if "$@"; then ok "$name"; else fail "$name" "$(cat "$work/out")"; fi
}
has() { grep -qE "$1" "$work/out"; }
has_not() { ! grep -qE "$1" "$work/out"; }

# --- scripts/check_long.sh -------------------------------------------------------------
tree=$work/tree
mkdir -p "$tree"/{scripts,tests/control_flow,build/tests} "$work"/{one,two,none}
cp "$source_dir/scripts/check_long.sh" "$tree/scripts/"
printf '#!/bin/sh\necho "cases: 1 passed, 0 failed"\n' >"$tree/tests/control_flow/planted_faults.sh"
cat >"$tree/scripts/vulkan_drivers.sh" <<T
#!/bin/sh
case \${1:-all} in
  swiftshader) echo $work/one/icd.json ;;
  all) echo swiftshader $work/one/icd.json ;;
  *) exit 1 ;;
esac
T
cat >"$tree/build/tests/control_flow" <<'T'
#!/bin/sh
case " $* " in *" --total "*) echo 10; exit ;; esac
case " $* ${VK_DRIVER_FILES:-} " in *vulkan*/none/*) exit 77 ;; esac
echo "$* ${VK_DRIVER_FILES:-}" >>"${0%/*}/calls"
echo 'cases: 1 passed, 0 failed'
T
chmod +x "$tree"/scripts/* "$tree/tests/control_flow/planted_faults.sh" "$tree/build/tests/control_flow"
touch "$work"/{one,two,none}/icd.json
run_long() { # variables
  rm -f "$tree/build/tests/calls"
  env WAYS=flow FLOW_PROGRAMS=5 "$@" "$tree/scripts/check_long.sh" "$tree/build" >"$work/out" 2>&1
}
calls() { cat "$tree/build/tests/calls" 2>/dev/null | wc -l; }

run_long
check "control flow runs" [ $? -eq 0 ]
check "it runs on a driver that scripts/vulkan_drivers.sh finds" has '^control flow, programs, vulkan with swiftshader: 5 of 5 the same$'
check "a driver that is not there is left out, and named" has '^control flow, vulkan with lavapipe: left out, '
check "and is counted" has ' 0 failed, 15 left out$'
run_long FLOW_DRIVERS="$work/one/icd.json:$work/two/icd.json:$work/none/icd.json"
check "ICD files of the same name are run each" [ "$(grep -c 'vulkan --first.*/one/\|vulkan --first.*/two/' "$tree/build/tests/calls")" -eq 4 ]
check "and are listed each" [ "$(grep -c '^control flow, programs, vulkan with icd-[0-9a-f]*: 5 of 5 the same$' "$work/out")" -eq 2 ]
check "one without a device is left out, and named" has "^control flow, vulkan with icd-[0-9a-f]*: left out, $work/none/icd.json has no device$"

run_long
run_long RESUME=1
check "RESUME runs nothing again" [ "$(calls)" -eq 1 ] # whether the driver has a device
check "and says nothing of another code" has_not 'starting over'
echo '# changed' >>"$tree/build/tests/control_flow"
run_long RESUME=1
check "RESUME starts over after a change" [ "$(calls)" -eq 13 ]
check "and says so" has '^the built code is not that of the last run: starting over$'
echo 1 >"$tree/build/libvyre.so.0"
run_long RESUME=1
check "also after a change of the library" has 'starting over$'
rm "$tree/build/long/code"
run_long RESUME=1
check "also if the code of the last run is not known" has 'starting over$'

# --- tests/control_flow/planted_faults.sh ----------------------------------------------
faults=$work/faults
mkdir -p "$faults"/{bin,source/tests/control_flow,source/tests/support}
cp "$source_dir/tests/control_flow/planted_faults.sh" "$faults/source/tests/control_flow/"
cp "$source_dir"/tests/support/{cases,plant}.sh "$faults/source/tests/support/"
cat >"$faults/bin/cmake" <<T
#!/bin/sh
mkdir -p $work/faults/copy/build/tests
[ $work/faults/copy/source/program -ot $work/faults/copy/build/tests/control_flow ] ||
  cp $work/faults/copy/source/program $work/faults/copy/build/tests/control_flow
T
cat >"$faults/source/program" <<'T'
#!/bin/bash
tell() { echo "shape 1 (program 0 of this set): cpu, width 8, baseline: $*"; exit 1; }
on() { [ "$check" = "$1" ]; }
check=$2
true # here
echo 'cases: 1 passed, 0 failed'
T
cat >"$faults/source/tests/control_flow/planted_faults.txt" <<'T'
@ wrong program
-true # here
+tell "out[3] (invocation 3, store 0) is 1, expected 2"
@ wrong_shape program
-true # here
+if on shapes; then tell "out[3] (invocation 3, store 0) is 1, expected 2"; fi
@ none program
-true # here
+true
@ crash program
-true # here
+kill -SEGV $$
@ refused program
-true # here
+tell "LLVM refuses the code"
@ slow program
-true # here
+tell "the dispatch failed: kernel 'k' ran longer than 20 s: 0 of 1 launches were complete"
@ failing program
-true # here
+tell "the dispatch failed: no memory"
@ known_crash program crash
-true # here
+kill -SEGV $$
@ known_slow program timeout
-true # here
+kill -ALRM $$
T
chmod +x "$faults/bin/cmake" "$faults/source/program"
git -C "$faults/source" init -q && git -C "$faults/source" add -A
plant() { # names of faults
  PATH=$faults/bin:$PATH "$faults/source/tests/control_flow/planted_faults.sh" "$faults/source" "$faults/copy" "$@" >"$work/out" 2>&1
}
plant
check "a fault that is not found is a failure" [ $? -eq 1 ]
check "a fault is found by a result that differs" has '^ok finds wrong \(programs: differs\)$'
check "the check that found it is named" has '^ok finds wrong_shape \(shapes: differs\)$'
for name in none crash refused slow failing; do
  check "no result differs: $name" has "^FAIL finds $name\$"
done
for outcome in same crash refused timeout failed; do
  check "what happened instead is said: $outcome" has "^    programs: $outcome\$"
done
check "a crash counts where the list says so" has '^ok finds known_crash \(programs: crash\)$'
check "and a timeout" has '^ok finds known_slow \(programs: timeout\)$'
check "all are counted" has '^cases: 6 passed, 5 failed$'
printf '#!/bin/sh\nexit 1\n' >"$faults/copy/build/tests/control_flow" # of a run that was stopped
plant wrong
check "what a stopped run built is built again" has '^cases: 3 passed, 0 failed$'
finish
