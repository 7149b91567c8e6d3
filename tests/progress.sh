#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The bar that `vyre run` and `vyre conform` show on a terminal.
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

# Ctrl-C while a bar is drawn ends the line, and the process ends by the signal. Reads all
# output after the bar. Prints the exit code and the rest of the line.
cat >"$work/interrupt.py" <<'P'
import os, pty, re, signal, sys
signal.alarm(100)
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen, at = b'', None
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if at is None and re.search(rb'of \d+ (workgroups|cases), \d+ s', seen):
        at = len(seen)
        os.write(terminal, b'\x03')
status = os.waitpid(pid, 0)[1]
print('signal', os.WTERMSIG(status) if os.WIFSIGNALED(status) else 'none', 'bar', at is not None)
print('last', 'newline' if seen.endswith(b'\n') else repr(seen[-40:]))
P
interrupt() { # name, command...
  local name=$1
  shift
  python3 "$work/interrupt.py" "$@" >"$work/out" 2>&1
  if grep -qx 'signal 2 bar True' "$work/out" && grep -qx 'last newline' "$work/out"; then ok "$name"; else fail "$name" "$(cat "$work/out")"; fi
}
# The process ends slowly after the signal, which gives the drawing thread time to go on.
cat >"$work/slow_raise.c" <<'C'
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
int raise(int number) {
  (void)usleep(500000);
  return pthread_kill(pthread_self(), number);
}
C
if command -v python3 >/dev/null; then
  if grep -q '^VYRE_SANITIZE:STRING=$' "$build_dir/CMakeCache.txt" &&
    cc -shared -fPIC -o "$work/slow_raise.so" "$work/slow_raise.c"; then
    interrupt "no bar is drawn after the line of the last one has ended" env LD_PRELOAD="$work/slow_raise.so" \
      "$build_dir/vyre" run "$work/slow.vyre" --backend cpu --threads 1 --set y=zeros:2000 --set rounds=50000000
  fi
  interrupt "Ctrl-C ends the line of the bar of run" "$build_dir/vyre" run "$work/slow.vyre" --backend cpu --threads 1 \
    --set y=zeros:2000 --set rounds=50000000
  interrupt "Ctrl-C ends the line of the bar of conform" "$build_dir/vyre" conform --backend ref --jobs 1 --programs 20000 --filter programs.
fi

# Ctrl-C while a file is written must not leave a temporary file. The moment of the
# signal varies, so that some of them hit the write.
cat >"$work/big.vyre" <<'KERNEL'
kernel big workgroup(64) over(y)
buffer y : write u32[] @0;
{
    if (global_id.x < len(y)) y[global_id.x] = global_id.x;
}
KERNEL
mkdir "$work/big"
for delay in 0.2 0.3 0.4 0.5 0.6 0.8; do
  timeout -s INT "$delay" "$build_dir/vyre" run "$work/big.vyre" --backend cpu --set y=zeros:60000000 \
    --out "y=raw:$work/big/y.bin" >/dev/null 2>&1
  rm -f "$work/big/y.bin"
done
expect_nothing "Ctrl-C removes the file that is being written" "$(ls "$work/big")"

# A busy machine may be late with the line, which is due after 15 s.
"$build_dir/vyre" conform --backend ref --jobs 1 --programs 1000000 --filter programs. >"$work/out" 2>&1 &
line='conform: [0-9]+ of 1000000 cases, [0-9]+ s'
# Stopped for most of that time, it uses no processor.
sleep 1
kill -STOP $!
sleep 14
kill -CONT $!
for _ in {1..240}; do
  if grep -qxE "$line" "$work/out"; then break; fi
  sleep 0.5
done
kill $!
wait $!
name="conform says without a terminal from time to time how far it is"
if grep -qxE "$line" "$work/out" && ! grep -q $'[\r\033]' "$work/out"; then ok "$name"; else
  fail "$name" "$(cat -v "$work/out")"
fi
finish
