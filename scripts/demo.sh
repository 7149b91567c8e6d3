#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The demonstration of `make run`:  scripts/demo.sh BUILD
# Prints the result of a kernel as text. Runs another on every device, prints the hash of
# its result, which must be the same everywhere, and the time; and writes its picture.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 vyre=$1/vyre work=$1/demo
mkdir -p "$work"
ms() { awk -v ns="$1" 'BEGIN { printf "%.3f ms", ns / 1e6 }'; }

"$vyre" run examples/mandelbrot_text.vyre --set 'shades=text: .:-=+*#%@' --out page=-

echo
echo "examples/mandelbrot.vyre, 480 x 320, on every device there is:"
wanted='' same=yes count=0
while read -r name; do
  # Only JSON is read: the wording of messages may change.
  if ! result=$("$vyre" run examples/mandelbrot.vyre --grid 30,20 --backend "$name" --time --json \
    --out image="$work/$name.bytes"); then
    printf '  %-10s does not run it: %s\n' "$name" "$(sed -n 's/.*"message":"\([^"]*\)".*/\1/p' <<<"$result")"
    continue
  fi
  if [[ $result != *'"ran":true'* ]]; then continue; fi # a stub
  read -r hash _ < <(sha256sum "$work/$name.bytes")
  read -r ready ran < <(sed 's/.*"compile_ns":\([0-9]*\),"run_ns":\([0-9]*\).*/\1 \2/' <<<"$result")
  printf '  %-10s %s  ran %s, ready in %s\n' "$name" "${hash:0:32}" "$(ms "$ran")" "$(ms "$ready")"
  count=$((count + 1))
  if [ "${wanted:=$hash}" != "$hash" ]; then same=no; fi
done < <("$vyre" devices --json |
  grep -oE '"name":"[^"]*","backend":"[^"]*","index":[0-9]*,"available":true' | cut -d'"' -f4)
if [ "$same" = no ] || [ "$count" -eq 0 ]; then
  echo "error: the results differ between devices, or no device ran the kernel"
  exit 1
fi
echo "  the same bits on all of them ($count)"

echo
"$vyre" run examples/mandelbrot.vyre --grid 30,20 --out image="$build/mandelbrot.png"
echo "open $build/mandelbrot.png to see it in colour"
