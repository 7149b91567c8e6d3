#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Every command that an example names runs with all checks on, and they find
# nothing.  examples.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
if grep -qs '^VYRE_SANITIZE:[A-Z]*=thread' "$build_dir/CMakeCache.txt"; then
  echo "takes long and shares nothing between threads that other tests do not: not under TSan"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ln -s "$source_dir/examples" "$work/examples"
cd "$work" || exit 1

# The lines "//   vyre run ..." with what their backslashes continue.
commands() {
  sed -n 's:^// *::p' "$1" | awk '
    /^vyre run/ { going = 1 }
    going { line = line $0; going = sub(/\\$/, "", line); if (!going) { print line; line = "" } }'
}

silent="checked: no race, no out-of-bounds access, the same in 8 other orders"
for example in examples/*.vyre; do
  while read -r command; do
    output=$(eval "\"$build_dir/vyre\" ${command#vyre } --check --schedules 8" 2>&1 </dev/null)
    status=$?
    if [ "$status" -eq 0 ] && grep -q "^$silent" <<<"$output"; then
      ok "$command"
    else
      fail "$command" "exit status $status" "$output"
    fi
  done < <(commands "$example")
done
finish
