#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that every public header compiles alone, as C and as C++.  run.sh SOURCE BUILD
set -uo pipefail
source_dir=$1
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for header in "$source_dir"/include/vyre/*.h; do
  name=$(basename "$header")
  printf '#include "vyre/%s"\ntypedef int not_empty;\n' "$name" >"$work/alone.c"
  for language in c11 c17 c++17; do
    compilers=(gcc)
    if [ "$language" = c++17 ]; then compilers=(g++); fi
    if command -v clang-19 >/dev/null; then compilers+=(clang-19); fi
    for compiler in "${compilers[@]}"; do
      expect "$name $language $compiler" "$compiler" -x "${language%%[0-9]*}" \
        -std="$language" -Wall -Wextra -Werror -pedantic -fsyntax-only \
        -I "$source_dir/include" "$work/alone.c"
    done
  done
  if grep -q "\"vyre/$name\"" "$source_dir/include/vyre/vyre.h" || [ "$name" = vyre.h ]; then
    ok "$name is in vyre.h"
  else
    fail "$name is in vyre.h" "add the header to vyre.h, which includes all others"
  fi
done
finish
