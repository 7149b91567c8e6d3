#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck disable=SC2016 # backticks meant as such
# The conformance suite on every backend there is, but for vulkan (conform_vulkan.sh);
# what it says is counted here.
#   conform.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
. "$source_dir/tests/support/suite.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Threads go with the widths, so that both are spread. The test of random
# programs has a test of its own; here they go through all forms of dispatch.
areas=() pairs=(1:2 4:1 8:7 16:2)
cpu() { # name, width:threads, more arguments
  local name=$1 width=${2%:*} threads=${2#*:}
  shift 2
  suite "$name at width $width on $threads threads" \
    "$build_dir/vyre" conform --backend cpu --option "cpu.width=$width,cpu.threads=$threads" "$@"
}
if sanitized; then
  # Every case once a backend: a sanitizer takes too long for more. Each area has
  # another width.
  mapfile -t areas < <("$build_dir/vyre" conform --backend cpu --list | sed -n 's/^\([a-z0-9]*\)\..*/\1/p' | uniq)
  [ "${#areas[@]}" -ge 15 ] || fail "there are areas" "${areas[*]}"
  if sanitized thread; then
    # Single operations use no threads, so TSan has nothing to find in them.
    areas=(forms buffers atomics barriers options fences threads faults recordings cache)
    for area in "${areas[@]}"; do
      suite "ref conforms in $area" "$build_dir/vyre" conform --backend ref --filter "$area."
    done
  else
    suite "ref conforms" "$build_dir/vyre" conform --backend ref --programs 20
    # Random programs and the tests of code generators cover single operations.
    mapfile -t areas < <(printf '%s\n' "${areas[@]}" | grep -vxE 'ops|bits|casts|elements')
  fi
  for i in "${!areas[@]}"; do
    cpu "cpu conforms in ${areas[i]}" "${pairs[i % 4]}" --filter "${areas[i]}."
  done
  for i in 0 1 2 3; do
    cpu "random programs conform" "${pairs[i]}" --filter programs. --programs 3 --seed "$i"
  done
else
  suite "ref conforms" "$build_dir/vyre" conform --backend ref --programs 200
  # All of it once, and at each width what has a width (make check-long: all of it).
  cpu "cpu conforms" 8:7 --programs 15 --seed 8
  # Width 4 has the vector code of width 8, so that single operations are left out there.
  for at in 1:2 4:1 16:2; do
    areas=(atomics control barriers memory shapes)
    [ "$at" = 4:1 ] || areas+=(ops casts elements)
    for area in "${areas[@]}"; do
      cpu "cpu conforms in $area" "$at" --filter "$area."
    done
    cpu "random programs conform" "$at" --filter programs. --programs 15 --seed "${at%:*}"
  done
fi
suite "null does what its list says" "$build_dir/vyre" conform --backend null --programs 3
# It shares its driver with the others: its own code is what a sanitizer has to see.
part=(--programs 50)
! sanitized || part=(--filter forms.)
suite "the backend of the guide conforms" "$build_dir/vyre_example" conform --backend example \
  "${part[@]}" --expectations "$source_dir/tests/example_backend/expectations.txt"

# A backend in a shared object, which takes programs in their binary form.
VYRE_BACKEND_PATH=$build_dir/tests/plugins/proxy.so suite "a backend of a shared object conforms" \
  "$build_dir/vyre" conform --backend proxy "${part[@]}" --expectations "$source_dir/tests/plugins/proxy.txt"

# A line too few and a line too many turn it red.
list() { "$build_dir/vyre" conform --backend null --list | sed -n 's/  fails: /  fails  /p'; }
list >"$work/all"
red() { # name, filter, list, what it must say
  local output
  output=$("$build_dir/vyre" conform --backend null --filter "$2" --expectations "$3" 2>&1)
  local code=$?
  if [ $code -eq 1 ] && grep -qF "$4" <<<"$output"; then
    ok "$1"
  else
    fail "$1" "exit status $code" "$output"
  fi
}
suite "null, by a list with a line for each case" "$build_dir/vyre" conform --backend null \
  --filter buffers. --expectations "$work/all"
grep -v '^memory.large ' "$work/all" >"$work/fewer"
red "an entry that is missing is a failure" memory. "$work/fewer" "FAILED memory.large"
{ cat "$work/all" && echo 'errors.handles  fails  by mistake'; } >"$work/more"
red "an entry that is too many is a failure" errors.handles "$work/more" "and it passed: take it off"
{ cat "$work/all" && echo 'errors.unknown  fails  by mistake'; } >"$work/unknown"
red "an entry for an unknown case is a failure" errors.handles "$work/unknown" "does not exist"

# The code in the guide is code that is built and runs here.
guide=$(awk '/^```c$/ { inside = 1; n++; next } /^```$/ { inside = 0; next }
  inside { gsub(/[ \t]+/, " "); print n "\t" $0 }' "$source_dir/docs/how-to/write-a-backend.md")
files=$(cat "$source_dir"/examples/backend/cc_backend.c "$source_dir"/src/{backend/null/null,testing/example_backend}.c "$source_dir"/src/hal/{backend,launch,command_list,device}.h | tr -s ' \t\n' ' ')
missing=
for block in $(cut -f1 <<<"$guide" | sort -un); do
  code=$(awk -F'\t' -v n="$block" '$1 == n { print $2 }' <<<"$guide" | tr -s ' \t\n' ' ' | sed 's/^ //; s/ $//')
  case $files in *"$code"*) ;; *) missing+="block $block: $code"$'\n' ;; esac
done
expect_nothing "the code of the guide is that of the examples" "$missing"
[ -n "$guide" ] || fail "the guide has code"
finish
