#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that headers made by `vyre embed` compile as C11 and C++11 and give correct results.
#   run.sh SOURCE BUILD
set -uo pipefail
source_dir=$(cd "$1" && pwd) build_dir=$(cd "$2" && pwd)
. "$source_dir/tests/support/cases.sh"
sanitize=$(sed -n 's/^VYRE_SANITIZE:STRING=\(..*\)/-fsanitize=\1/p' "$build_dir/CMakeCache.txt")
if [ "$sanitize" = -fsanitize=thread ]; then
  echo "shares nothing between threads that other tests do not: not under TSan"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vyre=$build_dir/vyre
cc=${CC:-cc}
flags=(-Wall -Wextra -pedantic -Werror -I "$source_dir/include" -I "$work")
link=(-L "$build_dir" -lvyre "-Wl,-rpath,$build_dir" ${sanitize:+"$sanitize"})

# Compiles every example, and a file of clashing names, with each compiler. Sanitizers do
# not matter here.
compilers=("$cc -std=c11") seen=" $(readlink -f "$(command -v "$cc")") "
for compiler in "gcc -std=c11" "clang-19 -std=c11" "g++ -x c++ -std=c++11" "clang++-19 -x c++ -std=c++17"; do
  path=$(command -v "${compiler%% *}") || continue
  case $compiler in *c++*) ;; *) case $seen in *" $(readlink -f "$path") "*) continue ;; esac ;; esac
  [ -n "$sanitize" ] || compilers+=("$compiler")
done
for file in "$source_dir"/examples/*.vyre "$source_dir/examples/embed/kernels.vyre" "$source_dir/tests/embed/names.vyre"; do
  name=$(basename "$file" .vyre)
  if ! "$vyre" embed "$file" -o "$work/one.h" 2>"$work/log"; then
    fail "embed: $name" "$(cat "$work/log")"
    continue
  fi
  printf '#include <%s.h>\n' complex errno math signal stdio stdlib string time unistd sys/stat >"$work/one.c"
  echo '#include "one.h"' >>"$work/one.c"
  for compiler in "${compilers[@]}"; do
    # shellcheck disable=SC2086 # the flags are words
    expect "$name: $compiler" $compiler "${flags[@]}" -fsyntax-only "$work/one.c"
  done
done
# Headers with a package, which are not for committing: one compiler of each language.
for file in "$source_dir/examples/saxpy.vyre" "$source_dir/examples/aot/kernels.vyre" "$source_dir/tests/embed/names.vyre"; do
  name=$(basename "$file" .vyre)
  "$vyre" embed "$file" --aot --target x86-64-v2 -o "$work/one.h"
  for compiler in "${compilers[0]}" "${compilers[-1]}"; do
    # shellcheck disable=SC2086 # the flags are words
    expect "$name, ahead of time: $compiler" $compiler "${flags[@]}" -fsyntax-only "$work/one.c"
  done
done
expect_same "the same file gives the same header" \
  "$("$vyre" embed "$source_dir/tests/embed/names.vyre" | sha256sum)" \
  "$("$vyre" embed "$source_dir/tests/embed/names.vyre" | sha256sum)"

# Runs the kernels and compares the results with plain C.
"$vyre" embed "$source_dir/tests/embed/names.vyre" -o "$work/names.h"
"$vyre" embed "$source_dir/examples/saxpy.vyre" -o "$work/saxpy.h"
"$vyre" generate --seed 3 --size 200 | "$vyre" embed - -o "$work/long.h" --json >"$work/long.json"
expect "a long kernel is embedded in the binary form" grep -q '"form":"binary"' "$work/long.json"
expect "the functions: build" "$cc" -std=c11 "${flags[@]}" "$source_dir"/tests/embed/{check,other}.c \
  -o "$work/check" "${link[@]}"
expect "the functions: run" "$work/check"

# Structs, device buffers and recordings, in C and in C++.
"$vyre" embed "$source_dir/tests/embed/structs.vyre" -o "$work/structs.h"
expect "each field has an assertion" test "$(grep -c 'static_assert(offsetof' "$work/structs.h")" -eq 8
# A library with a sanitizer needs the compiler that built it.
case $cc in *clang*) cxx=${cc/clang/clang++} ;; *) cxx=c++ ;; esac
for compiler in "$cc -std=c11" "$cxx -x c++ -std=c++11"; do
  # shellcheck disable=SC2086 # the flags are words
  expect "structs: build with $compiler" $compiler "${flags[@]}" "$source_dir/tests/embed/structs.c" \
    -o "$work/structs" "${link[@]}"
  expect "structs: run" "$work/structs"
done

# The same with packages.
mkdir "$work/aot"
"$vyre" embed "$source_dir/tests/embed/names.vyre" --aot --target cpu -o "$work/aot/names.h"
"$vyre" embed "$source_dir/examples/saxpy.vyre" --aot --target cpu -o "$work/aot/saxpy.h"
"$vyre" generate --seed 3 --size 200 | "$vyre" embed - --aot --target cpu --may-compile -o "$work/aot/long.h"
expect "the functions, ahead of time: build" "$cc" -std=c11 -I "$work/aot" "${flags[@]}" \
  "$source_dir"/tests/embed/{check,other}.c -o "$work/check_aot" "${link[@]}"
expect "the functions, ahead of time: run" "$work/check_aot"

# Builds the example from the build tree; tests/install builds it from an installation.
mkdir "$work/heat"
heat() {
  make -s -C "$source_dir/examples/embed" OUT="$work/heat" VYRE="$vyre" CC="$cc" \
    CFLAGS="-std=c11 -O2 -Wall -Wextra -pedantic -Werror" CPPFLAGS="-I$source_dir/include" LDLIBS="${link[*]}"
}
expect "examples/embed: builds" heat
expect_same "examples/embed: runs" "$("$work/heat/heat" 2>&1)" "$(cat "$source_dir/tests/embed/heat.txt")"
finish
