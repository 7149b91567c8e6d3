#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compares the layout of all public structs with tests/abi.txt.
#   abi.sh SOURCE BUILD           checks
#   abi.sh SOURCE BUILD --update  writes tests/abi.txt
# The list holds the size of every struct and the offset of every field on x86-64, as the
# debug information of the compiler has them. docs/reference/compatibility.md explains the growth rule.
set -uo pipefail
source_dir=$1
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Structs that never gain fields: handles, array elements with a frozen stride, interfaces
# that are passed by value, and parts of a struct that has a reserve itself.
frozen="vyre_allocator vyre_backend_memory vyre_backend_option_value vyre_binding_entry vyre_buffer vyre_build_buffer_ref
vyre_build_function_ref vyre_diagnostic vyre_frontier_wave vyre_hash128 vyre_input vyre_input_extent
vyre_interval vyre_layout_entry vyre_memory_hints vyre_output vyre_parameter vyre_print_part
vyre_recorded_wave_io vyre_slot_range vyre_status_number vyre_transfer vyre_value vyre_variable
vyre_wave_binding vyre_wave_dependency vyre_wave_external vyre_wave_input vyre_wave_output vyre_wave_share vyre_writer"
# Not frozen yet: dispatch forms.
open="vyre_buffer_row vyre_check_options vyre_dispatch_desc"

echo '#include "vyre/vyre.h"' >"$work/abi.c"
if ! "${CC:-cc}" -std=c11 -gdwarf-4 -fno-eliminate-unused-debug-types -I "$source_dir/include" \
  -c "$work/abi.c" -o "$work/abi.o"; then
  fail "the headers compile"
  finish
fi

# Prints "struct size" and "struct.field offset" from the debug information.
layouts() {
  readelf --debug-dump=info "$work/abi.o" 2>/dev/null | awk '
    function flush() {
      if (tag == "DW_TAG_structure_type" && size != "") {
        structure = name
        if (structure ~ /^vyre_/) print structure "\t-1\t" structure, size
      }
      if (tag == "DW_TAG_member" && structure ~ /^vyre_/)
        print structure "\t" offset "\t" structure "." name, offset
    }
    /Abbrev Number/ {
      flush()
      tag = $NF; gsub(/[()]/, "", tag)
      name = size = offset = ""
      if (tag == "DW_TAG_structure_type") structure = ""
    }
    /DW_AT_name/ { name = $NF }
    /DW_AT_byte_size/ { size = $NF }
    /DW_AT_data_member_location/ { offset = $NF }
    END { flush() }' | LC_ALL=C sort -u -k1,1 -k2,2n -k3,3 | cut -f 3
}
layouts >"$work/abi.txt"

if [ "${3:-}" = --update ]; then
  cp "$work/abi.txt" "$source_dir/tests/abi.txt"
  exit
fi
expect "all structs are found" test "$(grep -vc '\.' "$work/abi.txt")" -eq \
  "$(cat "$source_dir"/include/vyre/*.h | grep -cE '^(typedef )?struct vyre_[a-z0-9_]+ \{')"
if changes=$(diff "$source_dir/tests/abi.txt" "$work/abi.txt"); then
  ok "layouts are as in tests/abi.txt"
else
  fail "layouts are as in tests/abi.txt" "$changes" \
    "The layout of a public struct has changed (<: before, >: now)." \
    "A new field takes words of 'reserved', so that sizes and other offsets stay." \
    "If the change is intended, run: bash tests/abi.sh . build --update"
fi
without=$(awk '!/\./ { structs[$1] } /\.reserved / { sub(/\..*/, "", $1); delete structs[$1] }
  END { for (s in structs) print s }' "$work/abi.txt" | LC_ALL=C sort)
expect_same "every other struct has a reserve" "$without" \
  "$(tr -s ' ' '\n' <<<"$frozen $open" | LC_ALL=C sort)"
last=$(awk '!/\./ { next } { split($1, at, "."); if ($2 + 0 >= high[at[1]] + 0) { high[at[1]] = $2; field[at[1]] = at[2] }
    if (at[2] == "reserved") has[at[1]] }
  END { for (s in has) if (field[s] != "reserved") print s "." field[s] " comes after reserved" }' "$work/abi.txt")
expect_nothing "the reserve comes last" "$last"
finish
