#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Declared in the headers = listed in the map = exported by the library.
#   check_symbols.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"

# Names between VYRE_API and the next opening parenthesis.
declared=$(cat "$source_dir"/include/vyre/*.h | tr '\n' ' ' |
  grep -oE 'VYRE_API [^;{]*;' | sed -E 's/VYRE_NODISCARD//; s/^([^(]*)\(.*/\1/' |
  grep -oE 'vyre_[a-z0-9_]+ *$' | tr -d ' ' | LC_ALL=C sort)
listed=$(sed -n 's/^ *\(vyre_[a-z0-9_]*\);.*/\1/p' "$source_dir/cmake/vyre.map")
exported=$(nm -D --defined-only "$build_dir/libvyre.so" |
  awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | LC_ALL=C sort)
nodes=$(nm -D --defined-only "$build_dir/libvyre.so" | awk '$2 == "A" { print $3 }')
node=$(sed -n 's/^\(VYRE_[0-9.]*\) {/\1/p' "$source_dir/cmake/vyre.map")

expect_same "headers = map" "$listed" "$declared"
expect_same "library = map" "$exported" "$listed"
expect_same "the map is in order" "$listed" "$(LC_ALL=C sort -u <<<"$listed")"
expect_same "one version node" "$nodes" "$node"
# Detached threads may still run library code after dlclose().
expect_same "it is never unloaded" \
  "$(readelf -d "$build_dir/libvyre.so" | grep -c NODELETE)" 1
finish
