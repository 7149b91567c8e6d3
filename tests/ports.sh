#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the kernels of examples/ports and the kernels of bench/public that they are ports of on the
# same data, and compares the bytes of their outputs.   ports.sh SOURCE BUILD
set -uo pipefail
source_dir=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
python3 - <<'EOF'
import random, struct
random.seed(7)
def floats(name, count, low=-1.0, high=1.0):
    with open(name, "wb") as file:
        file.write(struct.pack(f"<{count}f", *(random.uniform(low, high) for _ in range(count))))
floats("wave.bin", 4 * 1024)
floats("image.bin", 128 * 96)
floats("power.bin", 128 * 96, 0.0, 0.1)
floats("coeff.bin", 17)
floats("bodies.bin", 4 * 512)
floats("heads.bin", 3 * 2 * 128 * 32)
with open("life.bin", "wb") as file:
    file.write(bytes(random.random() < 0.3 for _ in range(128 * 96)))
with open("keys.bin", "wb") as file:
    file.write(random.randbytes(4 * 2048))
with open("spheres.bin", "wb") as file:
    for _ in range(16):
        values = [random.uniform(-2, 2) for _ in range(3)] + [random.uniform(0.2, 0.7)]
        file.write(struct.pack("<8f", *values, *(random.random() for _ in range(4))))
EOF

old=$source_dir/bench/public
# same NAME KERNEL OUTPUT ARGUMENT...: both kernels write the same bytes, on cpu and on ref.
same() {
  local name=$1 kernel=$2 output=$3 device file
  shift 3
  for device in cpu ref; do
    for file in "$old" "$source_dir/examples/ports"; do
      "$build/vyre" run "$file/$name.vyre" -k "$kernel" --backend "$device" "$@" \
        --out "$output=raw:$([ "$file" = "$old" ] && echo old || echo ports).$device" >log 2>&1 || cat log
    done
  done
  expect "$kernel has the bytes of bench/public" cmp old.cpu ports.cpu
  expect "$kernel has the same bytes on ref" cmp ports.cpu ports.ref
}

same fft512 fft512 work --grid 4 --set work=wave.bin
same dct8x8 dct8x8 dst --grid 4,6 --set src=image.bin --set dst=zeros:12288 --set stride=128
same nbody nbody acc --grid 2 --set pos=bodies.bin --set bodies=512 --set eps2=0.01
same life life "then" --grid 4,12 --set now=life.bin --set width=128 --set height=96
same hotspot_direct hotspot_direct dst --grid 2,24 --set power=power.bin --set src=image.bin --set cols=128 --set rows=96 \
  --set step_div_cap=0.01 --set rx=0.1 --set ry=0.1 --set rz=0.05
for kernel in conv_rows_direct conv_cols_direct; do
  same convsep_direct "$kernel" dst --grid 2,24 --set src=image.bin --set coeff=coeff.bin --set width=128 --set height=96
done
same transpose transpose y --grid 8,6 --set x=image.bin --set width=128 --set height=96
same bitonic bitonic_shared vals --grid 4 --set keys=keys.bin --set vals=iota:2048
same attention attention o --grid 2,2 --set q=heads.bin --set k=heads.bin --set v=heads.bin --set n=128 --set scale=0.17677669
# The output of the old kernel has no dimensions.
mkdir old; sed 's/image : write u8\[\]/image : write u8[12288]/' "$source_dir/bench/public/raytrace.vyre" >old/raytrace.vyre
old=$work/old
same raytrace raytrace image --grid 4,4 --set spheres=spheres.bin --set width=64 --set height=64 --set count=16

# Geometric loops become while loops that step at the end, so that device cpu runs them as fast.
lowered() { # FILE, statements: LIR without the comments that name lines
  printf 'kernel tree workgroup(256)\nbuffer y : read_write u32[] @0;\nuniform n : u32 @1;\nshared s : u32[256];\n{\n' >"$1"
  printf 'let t = local_id.x; s[t] = t; %s\nif (global_id.x < len(y)) y[global_id.x] = s[t]; }\n' "$2" >>"$1"
  "$build/vyre" emit "$1" --to lowered | grep -v '^ *//'
}
halved='barrier(); if (t < d) s[t] += d;'
lowered for.vyre "for (let d = n; d > 0; d >>= 1) { $halved } for (let k = 2u; k <= 128; k *= 2) s[t] ^= k;" >for.lir
lowered while.vyre "{ var next = n; while (next > 0) { let d = next; $halved next = next >> 1; } }
  { var next = 2u; while (next < 129) { let k = next; s[t] ^= k; next = next * 2; } }" >while.lir
expect "a lowered loop has a barrier" grep -q barrier for.lir
expect "a geometric loop is lowered as the while loop" cmp for.lir while.lir
finish
