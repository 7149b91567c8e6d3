#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the peers of the suites vulkan.*:  bench/vulkan/peers.sh BUILD
# Writes BUILD/peers/vulkan/NAME.spv for every GLSL kernel, NAME_plain.spv with a product
# and a sum in place of fma, and a Python environment with wgpu.
# Skips peers whose tools are missing; the suites report that.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")" && pwd)
out=$1/peers/vulkan
mkdir -p "$out"

compile() { # FILE MODULE FLAGS...
  local file=$1 module=$2
  shift 2
  [ "$module" -nt "$file" ] && [ "$module" -nt "$source_dir/common.glsl" ] &&
    [ "$module" -nt "$0" ] && return
  rm -f "$module"
  if ! glslangValidator -V --quiet --target-env vulkan1.1 "$@" -o "$module" "$file" \
    >"$module.log" 2>&1; then
    rm -f "$module"
    echo "bench: glslangValidator could not compile ${file##*/}: $module.log" >&2
  fi
}

if command -v glslangValidator >/dev/null; then
  for file in "$source_dir"/*.comp; do
    name=$(basename "$file" .comp)
    compile "$file" "$out/$name.spv"
    if grep -q 'FMA(' "$file"; then compile "$file" "$out/${name}_plain.spv" -DPLAIN; fi
  done
else
  rm -f "$out"/*.spv
  echo 'bench: no GLSL kernels: glslangValidator is missing (Debian: glslang-tools)' >&2
fi

# wgpu-native comes with a Python package. After a failed installation it is not tried
# again until the folder is removed.
venv=$out/wgpu
if [ ! -d "$venv" ]; then
  if ! { python3 -m venv "$venv" &&
      "$venv/bin/pip" install --quiet --disable-pip-version-check 'wgpu>=0.19'; } \
    >"$out/wgpu.log" 2>&1; then
    echo "bench: wgpu cannot be installed: $out/wgpu.log" >&2
  fi
fi
