#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the tests of docs/reference/contract.md can fail: plants the faults of
# contract_faults.txt, one at a time, in a copy of one source file, links the test with it,
# and expects a test of each item that the fault breaks to fail.
#   contract_faults.sh SOURCE BUILD [NAME...]
set -uo pipefail
source_dir=$(cd "$1" && pwd) build_dir=$(cd "$2" && pwd)
shift 2
. "$source_dir/tests/support/cases.sh"
. "$source_dir/tests/support/plant.sh"
list=$source_dir/tests/contract_faults.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$build_dir" || exit 1

# Prints the command of a build target.
command_of() { ninja -t commands "$1" | tail -n 1; }

# Compiles a source for an object of the build: object, source, options that come first.
compile() {
  local command
  command=$(command_of "$1") || return 1
  command=${command/ -o $1 / -o $work/new.o }
  command=${command/ -I/ $3 -I}
  bash -c "${command% -c *} -O1 -w -c '$2'"
}

# Links the test with the object $work/new.o, which comes before all others.
link() {
  local command
  command=$(command_of "tests/$1") || return 1
  command=${command/ -o tests\/$1 / "$work/new.o" -o "$work/$1" }
  case $file in include/*) command=${command/ $object / } ;; esac
  bash -c "$command"
}

# Builds the test with the fault in $work/tree/FILE.
build() { # file, test
  local folder
  folder=$(dirname "$1")
  case $1 in
    include/*)
      local source
      source=$(cd "$source_dir" && find src -name "$2.c")
      object=tests/CMakeFiles/$2.dir/__/$source.o
      compile "$object" "$source_dir/$source" "-I$work/tree/include" ;;
    *)
      object=CMakeFiles/vyre_objects.dir/$1.o
      compile "$object" "$work/tree/$1" "-iquote$source_dir/$folder" ;;
  esac && link "$2"
}

# Prints the tests of an item: queue_test.c:case.
tests_of() {
  ITEM=$1 awk -F ' *[|] *' '$2 == "`" ENVIRON["ITEM"] "`" { print $5 }' "$source_dir/docs/reference/contract.md" |
    grep -oE '[a-z_]+\.c:[a-z_0-9]+'
}

# Expects a failure of a test of each item.
check_items() { # name, test
  local item case found
  while read -r item; do
    found=
    while read -r case; do
      if [ "${case%%.c:*}" = "$2" ] && grep -qx "FAIL ${case#*:}" "$work/log"; then found=yes; fi
    done < <(tests_of "$item")
    if [ -n "$found" ]; then
      ok "$1: a test of '$item' finds it"
    else
      fail "$1: a test of '$item' finds it" "$(tests_of "$item")" "$(tail -n 3 "$work/log")"
    fi
  done < <(items_of_fault "$list" "$1")
}

while read -r _ name file test; do
  if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
  mkdir -p "$work/tree/$(dirname "$file")"
  if ! plant "$list" "$name" "$source_dir/$file" >"$work/tree/$file" 2>"$work/why" ||
    ! build "$file" "$test" >"$work/why" 2>&1; then
    fail "plants $name" "$(tail -n 5 "$work/why")"
  else
    # A fault may end the test with a signal, which the shell would print.
    { VYRE_VULKAN=none timeout 120 "$work/$test" >"$work/log" 2>&1; } 2>/dev/null
    check_items "$name" "$test"
  fi
  rm -rf "$work/tree"
done < <(grep '^@ ' "$list")
finish
