#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# `vyre emit --to llvm` prints code of the width that device cpu runs: as `vyre inspect`
# has it from the compiled pipeline, and as it can be read off the text.
#   emit_width.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vyre=$build_dir/vyre
export XDG_CACHE_HOME=$work/cache
unset VYRE_OPTIONS VYRE_LLVM
"$vyre" emit "$source_dir/examples/saxpy.vyre" --to asm >/dev/null 2>&1 || { echo "cpu cannot compile here"; exit 77; }

# Many values at once, and much code: compiled in narrower vectors than kernels of
# their kind are otherwise.
large() { # name, values, element type
  local k
  echo "kernel $1 workgroup(128) over(y)"
  echo "buffer y : read_write $3[] @0;"
  echo "shared t : $3[128];"
  echo '{ let i = global_id.x; let x = y[i];'
  for ((k = 0; k < $2; k++)); do echo "let v$k = x * $((k + 3)) + $3(i ^ $k);"; done
  echo 't[local_id.x] = v0; barrier(); var s = t[127 - local_id.x];'
  for ((k = 0; k < $2; k++)); do echo "s = s * 31 + v$k * (s | v$(((k * 7 + 3) % $2)));"; done
  echo 'y[i] = s; }'
}
large narrow 110 u64 >"$work/narrow.vyre"
large narrower 900 u32 >"$work/narrower.vyre"
large scalar 5000 u32 >"$work/scalar.vyre"

width_of() { # file, kernel: as it is compiled
  "$vyre" inspect "$1" -k "$2" --backend cpu --json 2>/dev/null | grep -o '"width":[0-9]*' | cut -d: -f2
}
# The numbers of invocations side by side are a vector of that many, if there is one.
width_in_text() {
  local width
  width=$(sed -n 's/^ *%iota = add <\([0-9]*\) x i32>.*/\1/p' | sort -u)
  echo "${width:-1}"
}

seen=0 widths=' '
for file in "$source_dir"/examples/*.vyre "$source_dir"/tests/cli/kernels/*.vyre "$work"/*.vyre; do
  for kernel in $(sed -n 's/^kernel \([A-Za-z0-9_]*\).*/\1/p' "$file"); do
    width=$(width_of "$file" "$kernel")
    [ -n "$width" ] || continue # it does not compile, or not for cpu
    text=$("$vyre" emit "$file" -k "$kernel" --to llvm 2>"$work/err") || text="failed: $(cat "$work/err")"
    told=$("$vyre" emit "$file" -k "$kernel" --to llvm --json | grep -o '"width":[0-9]*' | cut -d: -f2)
    expect_same "$(basename "$file") $kernel" "$(width_in_text <<<"$text") $told" "$width $width"
    seen=$((seen + 1))
    [[ $widths == *" $width "* ]] || widths+="$width "
  done
done
if [ "$seen" -ge 30 ]; then ok "there are many kernels"; else fail "there are many kernels" "$seen"; fi
for width in 1 32; do
  if [[ $widths == *" $width "* ]]; then ok "one has width $width"; else fail "one has width $width" "$widths"; fi
done
name="without LLVM it says that nothing was compiled"
VYRE_CACHE_DIR='' VYRE_LLVM=none "$vyre" emit "$source_dir/examples/saxpy.vyre" --to llvm >"$work/out" 2>"$work/err"
if grep -q '^note: not compiled' "$work/err" && grep -q '@phase0' "$work/out"; then ok "$name"; else fail "$name" "$(cat "$work/err")"; fi
finish
