#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs into a temporary prefix, moves it, and builds a small program against
# it with pkg-config and with CMake.  run.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset LD_LIBRARY_PATH DESTDIR
prefix=$work/moved

expect "cmake --install" cmake --install "$build_dir" --prefix "$work/first"
mv "$work/first" "$prefix" # the tree must not know where it was
libdir=$(dirname "$(find "$prefix" -name 'libvyre.so' | head -n 1)")
version=$(sed -n 's/^#define VYRE_VERSION_STRING "\(.*\)"/\1/p' "$source_dir/include/vyre/version.h")

cat >"$work/main.c" <<'END'
#include <stdio.h>
#include <vyre/vyre.h>
int main(void) {
  vyre_queue_profile profile = {.initial_items = 4, .queue_capacity = 16,
                                .entry_bytes = 8, .control_bytes = 64,
                                .budget_bytes = 256};
  vyre_queue_plan plan;
  vyre_status st = {0};
  if (vyre_queue_plan_build(&profile, &plan, &st) != VYRE_OK) return 1;
  printf("%s %llu\n", vyre_version_string(), (unsigned long long)plan.resident_bytes);
}
END

# By pkg-config.
export PKG_CONFIG_PATH=$libdir/pkgconfig
expect_same "vyre.pc: version" "$(pkg-config --modversion vyre 2>&1)" "$version"
# shellcheck disable=SC2046 # the flags are words
expect "vyre.pc: builds" cc -std=c11 -Wall -Wextra -Werror "$work/main.c" -o "$work/by_pc" \
  $(pkg-config --cflags --libs vyre) "-Wl,-rpath,$libdir"
expect_same "vyre.pc: runs" "$("$work/by_pc" 2>&1)" "$version 192"

# By find_package.
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(vyre ${version%.*} REQUIRED)
add_executable(by_cmake ../main.c)
target_link_libraries(by_cmake PRIVATE vyre::vyre)
END
expect "find_package: configures" cmake -G Ninja -S "$work/user" -B "$work/user/build" \
  "-DCMAKE_PREFIX_PATH=$prefix"
expect "find_package: builds" cmake --build "$work/user/build"
expect_same "find_package: runs" "$("$work/user/build/by_cmake" 2>&1)" "$version 192"
# vyre_embed() with the installed command.
mkdir "$work/embed"
cat >"$work/embed/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(embed LANGUAGES C)
find_package(vyre ${version%.*} REQUIRED)
add_executable(heat $source_dir/examples/embed/main.c)
vyre_embed(heat $source_dir/examples/embed/kernels.vyre PREFIX heat)
add_executable(waves $source_dir/examples/aot/main.c)
vyre_embed(waves $source_dir/examples/aot/kernels.vyre PREFIX waves AOT TARGETS cpu)
END
sed 's/ PREFIX heat/ HEADER heat/' "$work/embed/CMakeLists.txt" >"$work/wrong.txt"
mkdir "$work/wrong" && mv "$work/wrong.txt" "$work/wrong/CMakeLists.txt"
expect "vyre_embed: refuses unknown arguments" grep -q "unknown argument 'HEADER'" \
  <(cmake -G Ninja -S "$work/wrong" -B "$work/wrong/build" "-DCMAKE_PREFIX_PATH=$prefix" 2>&1)
expect "vyre_embed: configures" cmake -G Ninja -S "$work/embed" -B "$work/embed/build" "-DCMAKE_PREFIX_PATH=$prefix"
expect "vyre_embed: builds" cmake --build "$work/embed/build"
expect_same "vyre_embed: runs" "$("$work/embed/build/heat" 2>&1)" "$(cat "$source_dir/tests/embed/heat.txt")"
expect_same "vyre_embed AOT: runs without LLVM" "$(VYRE_LLVM=none VYRE_CACHE='' "$work/embed/build/waves" cpu 2>&1)" \
  "$("$work/embed/build/waves" ref 2>&1)"
sed -i 's/find_package(vyre [0-9.]*/find_package(vyre 99.0/' "$work/user/CMakeLists.txt"
if cmake -G Ninja -S "$work/user" -B "$work/user/later" "-DCMAKE_PREFIX_PATH=$prefix" \
  >/dev/null 2>&1; then
  fail "find_package: refuses a later version"
else
  ok "find_package: refuses a later version"
fi

# The example that has its kernels in a header, by what is installed alone.
mkdir "$work/heat"
expect "examples/embed: builds" make -s -C "$source_dir/examples/embed" "OUT=$work/heat" \
  "VYRE=$prefix/bin/vyre"
expect_same "examples/embed: runs" "$("$work/heat/heat" 2>&1)" "$(cat "$source_dir/tests/embed/heat.txt")"

# The backend in examples/, by the installed headers alone, and through the plugin path.
mkdir "$work/backend"
expect "examples/backend: builds" make -s -C "$source_dir/examples/backend" "OUT=$work/backend"
expect_nothing "examples/backend: needs no library of vyre" \
  "$(readelf -d "$work/backend/cc_backend.so" | grep NEEDED | grep vyre || true)"
export VYRE_BACKEND_PATH=$work/backend/cc_backend.so
expect_same "examples/backend: is listed" \
  "$("$prefix/bin/vyre" devices | grep -A2 '^cc: ' | grep -c "from: $work/backend/cc_backend.so")" 1
for area in forms resident barriers memory shapes options fences threads recordings; do
  expect "examples/backend: conforms in $area" "$prefix/bin/vyre" conform --backend cc \
    --option cc.level=0 --filter "$area."
done
expect "examples/backend: runs random programs" "$prefix/bin/vyre" conform --backend cc \
  --option cc.level=0 --filter programs. --programs 10
expect "examples/backend: reports a compiler that fails" grep -q "'false' failed with status 1" \
  <("$prefix/bin/vyre" run "$source_dir/examples/saxpy.vyre" --backend cc --option cc.command=false \
    --set a=2 --set x=iota:4 --set y=zeros:4 2>&1)

# A backend in C++ that throws: the exception becomes a status.
cat >"$work/throws.cpp" <<'END'
#include <stdexcept>
#include <vyre/backend.h>
static bool describe(const vyre_backend *, uint32_t index, vyre_device_info *) { return index == 0; }
static vyre_code open_device(const vyre_backend *, uint32_t, const vyre_backend_option_value *,
                             vyre_backend_device *out, vyre_status *) {
  for (uint32_t &n : out->caps.max_workgroup) n = 1024;
  out->caps.max_workgroup_invocations = 1024;
  out->caps.max_buffer_bytes = 1 << 20;
  out->caps.borrows_host_memory = out->caps.has_f64 = out->caps.has_u64 = out->caps.has_atomics64 = true;
  return VYRE_OK;
}
static vyre_code load(void *, const vyre_backend_kernel *, void **, vyre_status *st) {
  return vyre_backend_guard(st, VYRE_KERNEL_COMPILE_FAILED,
                            []() -> vyre_code { throw std::runtime_error("no registers left"); });
}
static vyre_code launch(void *, void *, vyre_backend_launch *, vyre_status *) { return VYRE_OK; }
static vyre_backend make() {
  vyre_backend t = {};
  t.abi = VYRE_BACKEND_ABI;
  t.struct_size = sizeof t;
  t.name = "throws";
  t.form = VYRE_BACKEND_FORM_C;
  t.is_exact = true;
  t.describe = describe;
  t.device_open = open_device;
  t.kernel_load = load;
  t.launch = launch;
  return t;
}
static const vyre_backend table = make();
VYRE_BACKEND_PLUGIN(table)
END
if command -v g++ >/dev/null 2>&1; then
  # shellcheck disable=SC2046 # the flags are words
  expect "a backend in C++: builds" g++ -std=c++17 -Wall -Wextra -Werror -fPIC -shared "$work/throws.cpp" \
    -o "$work/backend/throws.so" $(pkg-config --cflags vyre)
  chmod go-w "$work/backend/throws.so"
  VYRE_BACKEND_PATH=$work/backend
  expect "a backend in C++: an exception is a status" \
    grep -q "backend 'throws': the backend threw an exception: no registers left" \
    <("$prefix/bin/vyre" run "$source_dir/examples/saxpy.vyre" --backend throws \
      --set a=2 --set x=iota:4 --set y=zeros:4 2>&1)
  expect "a backend in C++: the others work" "$prefix/bin/vyre" run "$source_dir/examples/saxpy.vyre" \
    --backend cc --set a=2 --set x=iota:4 --set y=zeros:4
fi
unset VYRE_BACKEND_PATH

# The installed files.
library=$libdir/libvyre.so
expect_same "soname" "$(readelf -d "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" \
  "libvyre.so.${version%.*}"
expect_same "the library needs only the C library" \
  "$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort)" $'libc.so.6\nlibm.so.6'
expect_same "the command runs" "$("$prefix/bin/vyre" --version 2>&1 | head -n 1)" "vyre $version"
expect_same "all headers are there" "$(ls "$prefix/include/vyre")" \
  "$(cd "$source_dir/include/vyre" && printf '%s\n' *.h)"
# The man page and the completions.
man_page=$(find "$prefix" -name vyre.1)
rows() { "$prefix/bin/vyre" "$@" | sed -n '/^[a-z]*s:$/,/^$/p' | grep -cE '^  [a-z]+  '; }
# The groups and help are not commands.
expect_same "the man page has every command" "$(grep -c '^\.SS vyre ' "$man_page")" \
  "$(($(rows --help) + $(rows help plan) + $(rows help cache) + $(rows help route) + $(rows help graph) + $(rows help flow) - 6))"
if command -v groff >/dev/null 2>&1; then
  expect_nothing "the man page is sound" "$(groff -man -Tutf8 -ww -z "$man_page" 2>&1)"
fi
expect_same "every header has a manual page" "$(cd "$prefix/share/man/man3" && grep -L '^\.so ' *.3)" \
  "$(cd "$source_dir/include/vyre" && printf '%s\n' *.h | sed 's/\(.*\)\.h/vyre_\1.3/' | LC_ALL=C sort)"
missing=$(sed -n 's/^VYRE_API.* \**\(vyre_[a-z0-9_]*\)(.*/\1/p' "$source_dir"/include/vyre/*.h | sort -u |
  while read -r name; do grep -qs "$name(" "$prefix"/share/man/man3/*.3 || echo "$name"; done)
expect_nothing "the manual pages have every function" "$missing"
if command -v groff >/dev/null 2>&1; then
  expect_nothing "the pages of the headers are sound" \
    "$(grep -L '^\.so ' "$prefix"/share/man/man3/*.3 |
      while read -r page; do groff -man -Tutf8 -ww -z "$page" 2>&1; done)"
fi
missing=$(sed -n 's/^VYRE_API.* \**\(vyre_[a-z0-9_]*\)(.*/\1/p' "$source_dir"/include/vyre/*.h | sort -u |
  while read -r name; do
    page=$prefix/share/man/man3/$name.3
    target=$(sed -n 's/^\.so man3\///p' "$page" 2>/dev/null)
    grep -qs "$name(" "${target:+$prefix/share/man/man3/}${target:-$page}" || echo "$name"
  done)
expect_nothing "every function has a manual page" "$missing"
page=$prefix/share/man/man3/vyre_status.3
expect_same "the title of a page is in upper case" "$(grep -c '^\.TH VYRE_STATUS 3 ' "$page")" 1
expect_same "examples keep their lines" \
  "$(grep -A1 '^\.nf' "$page" | grep -c '^ *vyre_status st = {0};')" 1
completion=$prefix/share/bash-completion/completions/vyre
complete_words() { # words of the command line so far; prints what would complete
  bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vyre; printf "%s\n" "${COMPREPLY[@]}"' \
    "$completion" "$@" | sort | tr '\n' ' '
}
expect_same "bash completes commands" "$(complete_words vyre e)" "embed emit explain "
expect_same "bash completes subjects" "$(complete_words vyre plan f)" "frontier "
expect_same "bash completes actions" "$(complete_words vyre cache explain --b)" "--backend "
expect_same "bash completes flags" "$(complete_words vyre run --s)" "--schedules --seed --set --svg "
expect_same "bash completes values" "$(complete_words vyre run --backend '')" "auto cpu null ref vulkan "
expect_same "bash completes kernel names" \
  "$(complete_words vyre run "$source_dir/examples/embed/kernels.vyre" -k '')" \
  "$(sed -nE 's/^kernel +([a-z_0-9]+).*/\1/p' "$source_dir/examples/embed/kernels.vyre" | sort | tr '\n' ' ')"
expect_same "bash completes buffer names" \
  "$(complete_words vyre run "$source_dir/examples/saxpy.vyre" --set '')" "a= x= y= "
expect_same "bash completes outputs" \
  "$(complete_words vyre run "$source_dir/examples/saxpy.vyre" --out '')" "y= "
expect_same "bash completes data" "$(complete_words vyre run k.vyre --set x = iot)" "iota: "
expect_same "bash completes data after the equals sign" \
  "$(complete_words vyre run k.vyre --set x = | tr ' ' '\n' | grep -c ':$')" 7
expect_same "bash completes options" "$(complete_words vyre run --option cpu.w)" "cpu.width= "
expect_same "bash completes values of options" \
  "$(complete_words vyre run --option cpu.isa_level = s)" "sse2 sse4.2 "
expect_same "bash completes passes" "$(complete_words vyre emit --dump-after in)" "inline "
expect_same "bash completes rules" "$(complete_words vyre explain V071)" "V071 "
for shell in zsh fish; do
  if ! command -v $shell >/dev/null 2>&1; then continue; fi
  expect "the completion for $shell is sound" $shell -n \
    "$(find "$prefix" -name _vyre -o -name vyre.fish | grep -F $shell)"
done

paths=$(grep -rlaF -e "$work/first" -e "$source_dir/include" -e "$source_dir/src" \
  -e "$build_dir/" "$prefix" || true)
expect_nothing "nothing names the place it was built or installed" "$paths"
paths=$(grep -rnE '"/|</|(^|[ ("])/(usr|home|opt|etc|var|tmp)/' "$prefix/include" || true)
expect_nothing "headers contain no paths" "$paths"
finish
