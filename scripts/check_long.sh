#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Random programs, more than `make check` has time for:  scripts/check_long.sh BUILD
# Runs each program on ref, by the LIR interpreter in all float modes, as emitted C, on cpu
# at widths 1, 4, 8, 16 and 32 with 1, 2 and 7 threads, and on vulkan in three float modes
# under the validation layer. All must give the same bytes. Batches of 100 programs run on
# all cores; their logs are in BUILD/long. A failure or crash names its seed. Without a
# Vulkan device, that way is left out and counts neither as passed nor as failed.
# cpu makes five passes: after the first, every program has run at one width.
# vulkan makes three: after the first, every program has run in one float mode.
#   PROGRAMS=10000   how many         FIRST=0   the first seed
#   RESUME=1         leave out pieces that were good in the last run; starts over if the
#                    built code is not that of the last run
#   WAYS="cpu"       only some of: lowered c cpu vulkan conform flow python
# python is the package: 10,000 cases of arguments, and a Dask cluster of 8 workers with 1,000
# graphs and 20 kills; also with a free-threaded interpreter, where there is one.
# conform is the whole conformance suite on cpu, at each of these widths, and on vulkan
# under the validation layer, also as on a GPU, and with floats corrected and soft.
# flow is control flow (docs/how-to/build-and-test.md): all small shapes and FLOW_PROGRAMS random
# programs, on cpu at each of these widths and on each Vulkan driver, in pieces of 1000.
#   FLOW_PROGRAMS=100000   FLOW_SHAPES=N   only the first N shapes
#   FLOW_DRIVERS="a.json:b.json"   ICD files of Vulkan drivers; default: lavapipe and
#                    swiftshader, where scripts/vulkan_drivers.sh finds them
set -euo pipefail
cd "$(dirname "$0")/.."
tests=$(cd "$1/tests" && pwd) logs=$1/long
programs=${PROGRAMS:-10000} first=${FIRST:-0} piece=100
ways=${WAYS:-lowered c cpu vulkan conform flow python}
flow=$tests/control_flow flow_programs=${FLOW_PROGRAMS:-100000} flow_piece=1000
usage() { sed -n '3,24s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
case $programs$first$flow_programs${FLOW_SHAPES:-0} in *[!0-9]*) usage ;; esac
programs=$((10#$programs)) first=$((10#$first)) # 08 is eight
[ "$programs" -gt 0 ] || usage
for way in $ways; do case $way in lowered | c | cpu | vulkan | conform | flow | python) ;; *) usage ;; esac done
declare -A test_of=([lowered]=lower_test [c]=c_test [cpu]=cpu_random_programs_test [vulkan]=vulkan_random_programs_test)

# Prints a hash of the library, the command and the tests of all ways, those that are built.
hash_code() { # build folder
  local file
  for file in "$1"/libvyre.so* "$1/vyre" "${test_of[@]/#/$tests/}" "$flow"; do
    if [ -f "$file" ]; then sha256sum <"$file"; fi
  done | sha256sum | cut -c 1-16
}
code=$(hash_code "$1")
if [ -n "${RESUME:-}" ] && [ -d "$logs" ] && [ "$(cat "$logs/code" 2>/dev/null)" != "$code" ]; then
  echo "the built code is not that of the last run: starting over"
  RESUME=
fi
[ -n "${RESUME:-}" ] || rm -rf "$logs"
mkdir -p "$logs"
logs=$(cd "$logs" && pwd)
echo "$code" >"$logs/code"

one() { # way, test, turn, first seed, count
  local log=$logs/$1.$3.$4.$5 status=0
  [ ! -f "$log.good" ] || return 0
  rm -f "$log.left"
  VYRE_TEST_FIRST=$4 VYRE_TEST_COUNT=$5 VYRE_TEST_TURN=$3 \
    "$tests/$2" random_programs_do_the_same >"$log" 2>&1 || status=$?
  if [ "$status" -eq 77 ]; then # there is nothing to run them on
    echo "$5" >"$log.left"
  elif [ "$status" -eq 0 ] && grep -q '^cases: 1 passed, 0 failed$' "$log"; then
    echo "$5" >"$log.good"
  else
    echo "$1: seeds from $4: see $log" && cat "$log"
  fi
}
export -f one
export tests logs

declare -A turns_of=([cpu]=5 [vulkan]=3)
pieces() { # of a way: turn, seed and count
  for ((turn = 0; turn < ${turns_of[$1]:-1}; turn++)); do
    for ((seed = first; seed < first + programs; seed += piece)); do
      left=$((first + programs - seed))
      echo "$turn $seed $((left < piece ? left : piece))"
    done
  done
}
random=" $ways " random=${random/ conform / } random=${random/ flow / } random=${random/ python / }
for way in $random; do
  pieces "$way" | sed "s/^/$way ${test_of[$way]} /"
done | xargs -r -L 1 -P "$(nproc)" bash -c 'one "$@"' one

good=0 all=0 left_out=0
said=(/dev/null)
for way in $random; do
  count=0 without=0
  while read -r turn seed number; do
    log=$logs/$way.$turn.$seed.$number
    if [ -f "$log.good" ]; then count=$((count + number)); fi
    if [ -f "$log.left" ]; then without=$((without + number)); fi
    if [ -f "$log" ]; then said+=("$log"); fi
  done < <(pieces "$way")
  turns=${turns_of[$way]:-1}
  here=$((programs * turns - without))
  echo "programs $first to $((first + programs - 1)), $way: $count of $here runs the same, $without left out"
  good=$((good + count)) all=$((all + here)) left_out=$((left_out + without))
done
if [[ $ways == *conform* ]]; then
  for at in 1:2 4:1 8:7 16:2 vulkan; do
    log=$logs/conform.${at%:*} name="at width ${at%:*} on ${at#*:} threads" status=0
    if [ "$at" = vulkan ]; then
      name="on vulkan, in every way"
      tests/conform_vulkan.sh "$PWD" "$(cd "$1" && pwd)" all >"$log" 2>&1 || status=$?
      if [ "$status" -eq 77 ]; then
        echo "conformance $name: $(tail -n 1 "$log")" && continue
      fi
    else
      "$1/vyre" conform --backend cpu --option "cpu.width=${at%:*},cpu.threads=${at#*:}" --programs 60 >"$log" 2>&1 || true
    fi
    read -r passed failed < <(sed -n 's/^\(cases: \)\{0,1\}\([0-9]*\) passed, \([0-9]*\) failed.*/\2 \3/p' "$log") || { passed=0 failed=1; }
    echo "conformance $name: $(tail -n 1 "$log")"
    good=$((good + passed)) all=$((all + passed + failed))
  done
fi
if [[ " $ways " == *" python "* ]]; then
  python=$(sed -n 's/^VYRE_PYTHON_EXECUTABLE:[A-Z]*=//p' "$1/CMakeCache.txt")
  log=$logs/python status=0
  VYRE_TEST_CASES=10000 VYRE_TEST_LONG=1 tests/python.sh "$PWD" "$(cd "$1" && pwd)" "${python:-python3}" "" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 77 ]; then
    echo "python: $(tail -n 1 "$log")"
  else
    read -r passed failed < <(sed -n 's/^cases: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$log") || { passed=0 failed=1; }
    echo "python: $passed passed, $failed failed"
    if [ "$failed" -gt 0 ]; then tail -n 60 "$log"; fi
    good=$((good + passed)) all=$((all + passed + failed))
  fi
  log=$logs/python_free_threaded status=0
  tests/python_free_threaded.sh "$PWD" "$logs/free-threaded" >"$log" 2>&1 || status=$?
  echo "python, free-threaded: $(tail -n 1 "$log")"
  if [ "$status" -ne 77 ]; then
    all=$((all + 1))
    if [ "$status" -eq 0 ]; then good=$((good + 1)); else tail -n 60 "$log"; fi
  fi
fi
# --- control flow -------------------------------------------------------------------
# A target is a name and a file: a width of cpu and "-", or a Vulkan driver and its ICD file.
flow_one() { # shapes or programs, name and file of a target, first, count
  local log=$logs/flow.$1.$2.$4.$5 status=0 with=()
  [ ! -f "$log.good" ] || return 0
  if [ "$1" = shapes ]; then with+=(--shapes); fi
  case $3 in
    -) with+=(--backend cpu --width "$2") ;;
    *) export VK_DRIVER_FILES=$3 VK_ICD_FILENAMES=$3 && with+=(--backend vulkan) ;;
  esac
  "$flow" "${with[@]}" --first "$4" --count "$5" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ] && grep -q '^cases: [12] passed, 0 failed$' "$log"; then
    echo "$5" >"$log.good"
  else
    echo "flow: $1 from $4 on $2: see $log" && cat "$log"
  fi
}
flow_pieces() { # shapes or programs, name and file of a target
  local all=$flow_programs
  if [ "$1" = shapes ]; then all=$flow_shapes; fi
  for ((at = 0; at < all; at += flow_piece)); do
    echo "$1 $2 $3 $at $((all - at < flow_piece ? all - at : flow_piece))"
  done
}
flow_drivers() { # prints name and file of each; a file of "-": it is not here
  local name file
  if [ -n "${FLOW_DRIVERS:-}" ]; then
    for file in ${FLOW_DRIVERS//:/ }; do # files of the same name are told apart by their folder
      name=${file##*/}
      echo "${name%.json}-$(realpath -m "$file" | sha256sum | cut -c 1-8) $file"
    done
    return
  fi
  for name in lavapipe swiftshader; do
    file=$(scripts/vulkan_drivers.sh "$name") || file=-
    echo "$name $file"
  done
}
if [[ " $ways " == *" flow "* ]]; then
  flow_shapes=$("$flow" --total)
  if [ -n "${FLOW_SHAPES:-}" ] && [ "$FLOW_SHAPES" -lt "$flow_shapes" ]; then flow_shapes=$FLOW_SHAPES; fi
  export -f flow_one
  export flow
  targets=("4 -" "8 -" "16 -" "32 -" "1 -") flow_left_out=()
  while read -r name file; do
    status=0
    if [ "$file" = - ]; then
      flow_left_out+=("vulkan with $name: left out, the driver is not here; scripts/deps.sh check gets it")
      continue
    fi
    VK_DRIVER_FILES=$file VK_ICD_FILENAMES=$file "$flow" --backend vulkan --count 1 >/dev/null 2>&1 || status=$?
    if [ "$status" -eq 77 ]; then
      flow_left_out+=("vulkan with $name: left out, $file has no device")
    else
      targets+=("$name $file")
    fi
  done < <(flow_drivers)
  for target in "${targets[@]}"; do
    read -r name file <<<"$target"
    flow_pieces shapes "$name" "$file"
    flow_pieces programs "$name" "$file"
  done | xargs -r -L 1 -P "$(nproc)" bash -c 'flow_one "$@"' flow_one
  for target in "${targets[@]}"; do
    read -r name file <<<"$target"
    for kind in shapes programs; do
      count=0 here=0
      while read -r _ _ _ at number; do
        here=$((here + number))
        if [ -f "$logs/flow.$kind.$name.$at.$number.good" ]; then count=$((count + number)); fi
      done < <(flow_pieces "$kind" "$name" "$file")
      on="vulkan with $name"
      if [ "$file" = - ]; then on="cpu at width $name"; fi
      echo "control flow, $kind, $on: $count of $here the same"
      good=$((good + count)) all=$((all + here))
    done
  done
  for line in "${flow_left_out[@]}"; do
    echo "control flow, $line"
    left_out=$((left_out + flow_shapes + flow_programs))
  done
  tests/control_flow/planted_faults.sh . "$logs/planted" | tee "$logs/planted.log" || true
  read -r passed failed < <(sed -n 's/^cases: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$logs/planted.log" |
    tail -n 1) || { passed=0 failed=1; }
  good=$((good + passed)) all=$((all + passed + failed))
fi
awk '/ runs, .* refused/ { runs += $1; refused += $3 }
  / runs on vulkan/ { vulkan += $3; messages += $7 }
  / kernels compiled for cpu/ { compiled += $3; cpu += $(NF - 1) } END {
  print runs + 0 " runs of the interpreter, " refused + 0 " refused by their target"
  print compiled + 0 " kernels compiled for cpu, " cpu + 0 " runs of them"
  print vulkan + 0 " runs on vulkan, " messages + 0 " messages of validation layers" }' "${said[@]}"
echo "$good passed, $((all - good)) failed, $left_out left out"
[ "$good" -eq "$all" ]
