#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# An application with a package runs where LLVM is not installed.  without_llvm.sh SOURCE BUILD
# The root folder of the process has the program and the libraries that it is linked with,
# and nothing else.
set -uo pipefail
source_dir=$(cd "$1" && pwd) build_dir=$(cd "$2" && pwd)
. "$source_dir/tests/support/cases.sh"
if grep -qs '^VYRE_SANITIZE:[A-Z]*=.' "$build_dir/CMakeCache.txt"; then
  echo "skipped: sanitizers need more than a root of the program's own"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vyre=$build_dir/vyre
cc=${CC:-cc}

build() {
  make -s -C "$source_dir/examples/aot" OUT="$work" VYRE="$vyre" CC="$cc" \
    CFLAGS="-std=c11 -O2 -Wall -Wextra -pedantic -Werror" CPPFLAGS="-I$source_dir/include" \
    LDLIBS="-L $build_dir -lvyre -Wl,-rpath,$build_dir"
}
expect "examples/aot: builds" build
wanted=$(VYRE_VULKAN=none "$work/waves" ref)
expect "examples/aot: prints a wave" test "$(wc -l <<<"$wanted")" -eq 17
expect_same "examples/aot: the processor gives the bits of ref" "$("$work/waves" 2>&1)" "$wanted"
for level in avx2 sse4.2; do
  expect_same "examples/aot: so does the code for $level" \
    "$(VYRE_OPTIONS=cpu.isa_level=$level "$work/waves" 2>&1)" "$wanted"
done
expect_same "examples/aot: LLVM is not used" "$(VYRE_LLVM=none VYRE_CACHE='' "$work/waves" 2>&1)" "$wanted"

# The same kernels without a package need LLVM: the test above can fail.
mkdir "$work/plain"
"$vyre" embed "$source_dir/examples/aot/kernels.vyre" --prefix waves -o "$work/plain/kernels.h"
expect "without a package: builds" "$cc" -std=c11 -I "$work/plain" -I "$source_dir/include" \
  "$source_dir/examples/aot/main.c" -o "$work/plain/waves" -L "$build_dir" -lvyre "-Wl,-rpath,$build_dir"
expect "without a package: needs LLVM" bash -c "! VYRE_LLVM=none VYRE_CACHE= '$work/plain/waves'"

# A root without LLVM.
root=$work/root
mkdir -p "$root"
for file in "$work/waves" $(ldd "$work/waves" | grep -oE '/[^ ]+'); do
  mkdir -p "$root/$(dirname "$file")"
  cp -L "$file" "$root/$file"
done
expect "the root has the library" test -n "$(find "$root" -name 'libvyre.so*')"
expect_nothing "the root has no LLVM" "$(find "$root" -name '*LLVM*')"
enter=(chroot "$root")
if [ "$(id -u)" != 0 ]; then enter=(unshare -Ur chroot "$root"); fi
if ! "${enter[@]}" "$work/waves" ref >/dev/null 2>&1; then
  echo "skipped: this user cannot change the root folder"
  [ "$cases_failed" -gt 0 ] || exit 77
else
  expect_same "in a root without LLVM" "$("${enter[@]}" "$work/waves" 2>&1)" "$wanted"
fi
finish
