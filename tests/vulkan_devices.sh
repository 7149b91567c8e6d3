#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Two Vulkan drivers at once: both devices are listed, named and opened by their names, and
# the name without a number tells which one it stands for.
#   vulkan_devices.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 vyre=$2/vyre
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

files=()
while read -r _ file; do files+=("$file"); done < <("$source_dir/scripts/vulkan_drivers.sh")
if [ "${#files[@]}" -lt 2 ]; then
  echo "skipped: there are not two Vulkan drivers; scripts/deps.sh check gets them"
  exit 77
fi
VK_DRIVER_FILES=$(IFS=: && echo "${files[*]}")
export VK_DRIVER_FILES VK_ICD_FILENAMES=$VK_DRIVER_FILES

# "vulkan llvmpipe" and "vulkan:1 SwiftShader", or the other way round.
"$vyre" devices >"$work/devices"
if grep -q '^vulkan: not available' "$work/devices"; then
  echo "skipped: there is no device vulkan"
  exit 77
fi
listed=$(sed -n 's/^\(vulkan[:0-9]*\): \([A-Za-z]*\).*/\1 \2/p' "$work/devices")
expect_same "both are listed by their names" "$(cut -d' ' -f1 <<<"$listed")" $'vulkan\nvulkan:1'
expect_same "each is one of the drivers" "$(cut -d' ' -f2 <<<"$listed" | LC_ALL=C sort)" $'SwiftShader\nllvmpipe'

has() { # device: the features that it has
  awk -v name="$1:" '$1 == name { inside = 1; next } /^[^ ]/ { inside = 0 }
    inside && $1 == "has" { $1 = ""; print }' "$work/devices"
}
name_of() { sed -n "s/ $1\$//p" <<<"$listed"; }
expect_same "lavapipe has f64 and atomics64" "$(has "$(name_of llvmpipe)")" " f64 u64 atomics64 device-time"
expect_same "SwiftShader has neither" "$(has "$(name_of SwiftShader)")" " u64 device-time"
json=$("$vyre" devices --json)
expect_same "JSON tells of both" "$(grep -o '"name":"vulkan[^"]*"' <<<"${json%%'"backends":'*}")" $'"name":"vulkan"\n"name":"vulkan:1"'
expect_same "JSON tells which has 64-bit atomics" "$(grep -o '"has_atomics64":[a-z]*' <<<"$json" | LC_ALL=C sort | uniq)" \
  $'"has_atomics64":false\n"has_atomics64":true'

doctor=$("$vyre" doctor 2>&1)
for name in vulkan vulkan:1; do
  if grep -q "^  $name: works: " <<<"$doctor"; then ok "$name works"; else fail "$name works" "$doctor"; fi
done

cat >"$work/sum.vyre" <<'EOF'
kernel sum workgroup(64)
buffer total : read_write u64[1] @0;
{ atomic_add(total[0], 4294967295ul + u64(global_id.x)); }
EOF
run() { "$vyre" run "$work/sum.vyre" --set total=values:5 --grid 7 --backend "$1" 2>&1; }
want=$(run ref | grep -v '^ran ')
for name in vulkan vulkan:0 vulkan:1; do
  expect_same "$name gives what ref gives" "$(run "$name" | grep -v '^ran ')" "$want"
done
first=$(sed -n 's/^vulkan: \(.*)\), .*, Vulkan .*/\1/p' "$work/devices")
expect_same "a name without a number tells which device it stands for" "$(run vulkan | grep '^ran ')" \
  "ran sum on vulkan ($first, the first of 2; 'vulkan:1' is the next): grid 7, workgroup 64, 448 invocations"
expect_same "a name with a number needs no telling" "$(run vulkan:1 | grep '^ran ')" \
  "ran sum on vulkan:1: grid 7, workgroup 64, 448 invocations"
missing=$(run vulkan:2)
case $missing in
  *"no device 'vulkan:2'"*"Fix: "*) ok "one more is refused" ;;
  *) fail "one more is refused" "$missing" ;;
esac
finish
