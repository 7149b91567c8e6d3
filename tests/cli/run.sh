#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Golden tests of the `vyre` command.
#   tests/cli/run.sh [--bless] [--only NAME] [SOURCE [BUILD]]
# A file *.cases holds cases such as
#
#     == queue_full
#     $ vyre plan queue --initial 9 --capacity 8 ...
#     ? 1
#     > a line of standard output
#     ! a line of standard error
#
# Commands run with bash in an empty folder, where `plans` is examples/plans,
# `examples` is examples and `kernels` is tests/cli/kernels.
# Several $ lines are one script. --bless writes what was seen into the files.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bless='' only=''
while [ $# -gt 0 ]; do
  case $1 in
    --bless) bless=yes ;;
    --only) only=$2 && shift ;;
    *) break ;;
  esac
  shift
done
source_dir=$(cd "${1:-$here/../..}" && pwd)
build_dir=$(cd "${2:-$source_dir/build}" && pwd)
# shellcheck source=/dev/null
. "$source_dir/tests/support/cases.sh"
if grep -qs '^VYRE_SANITIZE:[A-Z]*=thread' "$build_dir/CMakeCache.txt"; then
  echo "takes long and shares nothing between threads that other tests do not: not under TSan"
  exit 77
fi

# Under another sanitizer, where a process takes seven times as long, every third case.
stride=1 number=0
if grep -qs '^VYRE_SANITIZE:[A-Z]*=.' "$build_dir/CMakeCache.txt"; then stride=3; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$build_dir:$PATH
export PATH LC_ALL=C
# The default environment of a user: auto selects cpu, and LLVM is found. A private cache
# compiles a kernel of many cases once. No output contains the name of the machine.
unset VYRE_LLVM VYRE_OPTIONS VYRE_CACHE_DIR VYRE_TRACE VYRE_FAULTS
export XDG_CACHE_HOME=$work/cache
# GPUs and the Vulkan loader differ between machines. Cases about Vulkan unset this.
unset VK_DRIVER_FILES VK_ICD_FILENAMES VK_INSTANCE_LAYERS
export VYRE_VULKAN=none
unset POSIXLY_CORRECT
json_answers=$work/answers.jsonl
: >"$json_answers"

# Adds a text to $got, each line with a prefix. A missing newline at its end
# shows as one more line.
quote() { # prefix, text
  local text=$2 last=''
  if [ -z "$text" ]; then return; fi
  if [[ $text != *$'\n' ]]; then last="$1| no newline at the end"$'\n'; fi
  text=${text%$'\n'}
  got+="$1 ${text//$'\n'/$'\n'$1 }"$'\n'$last
}

# Runs $script of case $name in a folder of its own; its record is $got. Few
# processes: there are hundreds of cases.
run_case() {
  local place=$work/$name code out err
  mkdir "$place" &&
    ln -s "$source_dir/examples/plans" "$source_dir/examples" "$here/kernels" "$place/"
  (cd "$place" && exec bash -c "$script" >"$work/out" 2>"$work/err" </dev/null)
  code=$?
  IFS= read -r -d '' out <"$work/out"
  IFS= read -r -d '' err <"$work/err"
  got="== $name"$'\n'
  quote '$' "$script"$'\n'
  got+="? $code"$'\n'
  quote '>' "$out"
  quote '!' "$err"
  if [[ $script == *--json* ]]; then
    grep '^{' <<<"$out" >>"$json_answers"
  fi
}

# Ends the case that was being read: runs it and compares.
end_case() {
  if [ -z "$name" ]; then return; fi
  if [ -n "$only" ] && [ "$only" != "$name" ]; then
    blessed+=$want$'\n'
    return
  fi
  number=$((number + 1))
  if [ -z "$only$bless" ] && [ $((number % stride)) -ne 0 ]; then return; fi
  run_case
  blessed+=$got$'\n'
  if [ -n "$bless" ] || [ "$want" = "$got" ]; then
    ok "$name"
  else
    fail "$name" "$(diff -u --label wanted --label got <(echo "$want") <(echo "$got"))"
  fi
}

run_file() { # file
  local line
  name='' script='' want='' blessed=''
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      '== '*)
        end_case
        name=${line#== } script='' want=$line$'\n'
        ;;
      '' | '#'*) if [ -z "$name" ]; then blessed+=$line$'\n'; fi ;;
      *)
        if [[ $line == '$ '* ]]; then script+=${script:+$'\n'}${line#'$ '}; fi
        want+=$line$'\n'
        ;;
    esac
  done <"$1"
  end_case
  if [ -n "$bless" ] && ! cmp -s <(printf '%s' "$blessed") "$1"; then
    printf '%s' "$blessed" >"$1"
    echo "    blessed $(basename "$1")"
  fi
}

for file in "$here"/*.cases; do run_file "$file"; done

# Every answer in JSON is one line of it.
all_json() { python3 -m json.tool --json-lines "$json_answers" >/dev/null; }
if command -v python3 >/dev/null 2>&1 && [ -s "$json_answers" ]; then
  expect "json_answers_are_json" all_json
fi
if grep -nE '/(root|home|tmp|work|usr)/' "$here"/*.cases >"$work/paths"; then
  fail "golden_files_name_no_machine_paths" "$(cat "$work/paths")"
else
  ok "golden_files_name_no_machine_paths"
fi
finish
