#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Limits that the system sets on a process: the size of files, and address space.
#   limits.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vyre=$build_dir/vyre
export XDG_CACHE_HOME=$work/cache VYRE_VULKAN=none
unset VYRE_OPTIONS VYRE_LLVM VYRE_CACHE_DIR
cd "$work" || exit 1

# with KIND VALUE COMMAND...: in a shell with that ulimit; its exit code in $code
with() {
  local kind=$1 value=$2
  shift 2
  (ulimit "$kind" "$value" && exec "$@") >out 2>err </dev/null
  code=$?
}
report() { echo "exit $code"; cat err; ls; }
saxpy() { echo run "$source_dir/examples/saxpy.vyre" --backend "$1" --threads 1 --set a=2 --set "x=iota:$2" --set "y=zeros:$2"; }

# --- files -----------------------------------------------------------------------------
for backend in ref cpu; do
  # shellcheck disable=SC2046 # words
  with -f 4 "$vyre" $(saxpy $backend 100000) --out y=y.bin
  name="$backend: a file beyond RLIMIT_FSIZE is an error"
  if [ $code -eq 1 ] && grep -q '^error: write_failed: y.bin: cannot write 400000 bytes: the file size limit is 4096 bytes' err &&
    grep -q '^Fix: ' err; then ok "$name"; else fail "$name" "$(report)"; fi
  if [ -z "$(find . -name 'y.bin*')" ]; then ok "$backend: nothing of it is left"; else fail "$backend: nothing of it is left" "$(ls)"; fi
done
echo before >y.bin
# shellcheck disable=SC2046
with -f 4 "$vyre" $(saxpy ref 100000) --out y=y.bin
expect_same "a file that was there stays as it was" "$(cat y.bin)" before
# shellcheck disable=SC2046
with -f 4 "$vyre" $(saxpy ref 100000) --out y=-
name="standard output beyond it is an error too"
if [ $code -eq 1 ] && grep -q '^error: write_failed: <stdout>: cannot write 400000 bytes' err; then ok "$name"; else fail "$name" "$(report)"; fi
with -f 4 "$vyre" generate --seed 1 --size 1000 -o programs
name="generate ends by an exit code as well"
if [ $code -le 1 ]; then ok "$name"; else fail "$name" "$(report)"; fi
# shellcheck disable=SC2046
with -f 4 "$vyre" $(saxpy ref 1000) --out y=small.bin
name="what is below the limit is written"
if [ $code -eq 0 ] && [ "$(wc -c <small.bin)" -eq 4000 ]; then ok "$name"; else fail "$name" "$(report)"; fi

# --- address space ---------------------------------------------------------------------
# shellcheck disable=SC2046
if ! "$vyre" $(saxpy cpu 4) >out 2>&1; then
  echo "cpu does not run here: $(cat out)"
  finish
fi
mv cache kept
wrong='' refused=0 ran=0
for kib in 20000 40000 80000 120000 150000 170000 190000 195000 200000 220000 260000 300000 340000 500000 1000000; do
  rm -rf cache
  # shellcheck disable=SC2046
  with -v $kib "$vyre" $(saxpy cpu 4)
  if [ $code -eq 0 ]; then
    ran=$((ran + 1))
  elif [ $code -eq 1 ] && grep -qE "does not fit in the address space: it takes about [0-9]+ bytes, the limit of the process is $((kib * 1024)), and [0-9]+ are in use" err &&
    grep -q '^Fix: .*ulimit -v' err; then
    refused=$((refused + 1))
  else
    wrong+="$kib KiB: $(report)"$'\n'
  fi
done
expect_nothing "short address space is said to be short, whatever there is of it" "$wrong"
if [ $refused -ge 3 ] && [ $ran -ge 1 ]; then ok "both outcomes were seen"; else fail "both outcomes were seen" "$refused refused, $ran ran"; fi
rm -rf cache
# shellcheck disable=SC2046
with -v 100000 "$vyre" $(saxpy auto 4)
name="auto takes ref then, and says why"
if [ $code -eq 0 ] && grep -q '^note: this runs on ref: .*does not fit in the address space' err; then ok "$name"; else fail "$name" "$(report)"; fi
mv kept cache
# shellcheck disable=SC2046
with -v 100000 "$vyre" $(saxpy cpu 4)
name="a kernel that is cached needs no LLVM"
if [ $code -eq 0 ]; then ok "$name"; else fail "$name" "$(report)"; fi
unset VYRE_VULKAN
if "$vyre" devices 2>&1 | grep -q '^vulkan: not available'; then
  echo "there is no device of Vulkan here"
  finish
fi
with -v 100000 "$vyre" devices
name="a driver of Vulkan that does not fit is not just said to be missing"
if grep -q 'this process is limited to 102400000' out; then ok "$name"; else fail "$name" "$(cat out)"; fi
finish
