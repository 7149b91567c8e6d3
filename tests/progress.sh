#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The bar that `vyre run` shows on a terminal.
#   progress.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v script >/dev/null || { echo "script(1) is not there"; exit 77; }

# Rounds that wait for each other, in many workgroups.
cat >"$work/slow.vyre" <<'K'
kernel slow workgroup(1)
buffer y : read_write u32[] @0;
uniform rounds : u32 @1;
{
    var s = global_id.x + 1;
    for (let i = 0u; i < rounds; i++) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
    }
    y[global_id.x] = s;
}
K

# run OUT BACKEND GROUPS ROUNDS: on a terminal
run() {
  script -qec "$build_dir/vyre run $work/slow.vyre --backend $2 --threads 1 --set y=zeros:$3 --set rounds=$4" \
    /dev/null </dev/null >"$work/$1" 2>&1
}

# A bar is a line that ends in how long it took; erased, it is \r and ESC [ K.
bars() { tr '\r' '\n' <"$work/$1" | grep -c 'of [0-9]* workgroups, [0-9]* s'; }
erased() { grep -c $'\r\033\[K' "$work/$1"; }
answer() { sed 's/.*\x1b\[K//' "$work/$1" | tr -d '\r' | sed 's/ in [0-9.]* [a-zµ]*//'; }

run quick cpu 500 1000
[ "$(bars quick)" -eq 0 ] && ok "what is quick shows no bar" || fail "what is quick shows no bar" "$(cat -v "$work/quick")"

for at in cpu:250:5000000 ref:2000:40000; do
  IFS=: read -r backend groups rounds <<<"$at"
  # A fast machine gets more to do: only what takes longer than a second counts.
  for _ in 1 2 3 4 5; do
    run slow "$backend" "$groups" "$rounds"
    [ "$(bars slow)" -lt 2 ] || break
    rounds=$((rounds * 2))
  done
  name="$backend: what takes longer than a second shows how far it is"
  if [ "$(bars slow)" -ge 2 ] && grep -q "of $groups workgroups" "$work/slow"; then ok "$name"; else fail "$name" "$(cat -v "$work/slow")"; fi
  name="$backend: it is gone when the work is over"
  if [ "$(erased slow)" -ge 1 ] && ! answer slow | grep -q 'of [0-9]* workgroups'; then ok "$name"; else fail "$name" "$(cat -v "$work/slow")"; fi
  "$build_dir/vyre" run "$work/slow.vyre" --backend "$backend" --threads 1 --set "y=zeros:$groups" --set "rounds=$rounds" \
    >"$work/piped" 2>&1 </dev/null
  name="$backend: without a terminal there is none, and the answer is the same"
  if [ "$(bars piped)" -eq 0 ] && [ "$(answer piped)" = "$(answer slow)" ]; then ok "$name"; else
    fail "$name" "$(diff <(answer piped) <(answer slow))"
  fi
done
finish
