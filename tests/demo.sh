#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests scripts/demo.sh, which `make run` runs: with the command of the build, and with
# commands whose messages or results differ.
#   demo.sh SOURCE BUILD
# shellcheck disable=SC2016 # the commands expand where they run
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# demo NAME COMMAND: runs the demonstration in a folder where `vyre` is that shell command
demo() {
  mkdir -p "$work/$1"
  printf '#!/usr/bin/env bash\nvyre=%q\n%s\n' "$build_dir/vyre" "$2" >"$work/$1/vyre"
  chmod +x "$work/$1/vyre"
  "$source_dir/scripts/demo.sh" "$work/$1" >"$work/$1/out" 2>&1 </dev/null
}
devices() { sed -n 's/^  \([a-z][a-z0-9:]*\) .*[0-9a-f]\{32\}  ran [0-9.]* ms, ready in [0-9.]* ms$/\1/p' "$work/$1/out"; }
# usable STUBS: names of the devices that can be opened, from their list in JSON
usable() {
  "$build_dir/vyre" devices --json | sed 's/{"name":/\n&/g' | grep '"available":true.*"is_stub":'"$1" | cut -d'"' -f4
}

demo plain 'exec "$vyre" "$@"'
code=$?
if [ $code -eq 0 ]; then ok "the demonstration succeeds"; else fail "the demonstration succeeds" "$(cat "$work/plain/out")"; fi
expect_same "it shows the hash and the time of every device" "$(devices plain)" "$(usable false)"
expect "there is a stub to leave out" test -n "$(usable true)"
expect "it counts the devices" grep -q "on all of them ($(usable false | wc -l))\$" "$work/plain/out"
expect "it prints the picture as text" grep -q '@@@@' "$work/plain/out"
expect "it writes the picture" cmp -s -n 4 "$work/plain/mandelbrot.png" <(printf '\x89PNG')

demo reworded '"$vyre" "$@" 2> >(tr a-z n-za-m >&2)'
code=$?
if [ $code -eq 0 ]; then ok "messages may be reworded"; else fail "messages may be reworded" "$(cat "$work/reworded/out")"; fi
expect_same "and stubs are still left out" "$(devices reworded)" "$(usable false)"

# A device that fails is named, with the reason; the others still run.
demo failing 'case " $* " in *" --backend cpu "*) echo '"'"'{"ok":false,"error":{"message":"no memory"}}'"'"'; exit 1 ;; esac
exec "$vyre" "$@"'
expect "a device that fails is named" grep -qE '^  cpu +does not run it: no memory$' "$work/failing/out"
expect_same "and the others run" "$(devices failing)" "$(usable false | grep -vx cpu)"

demo different '"$vyre" "$@" || exit
last=${*: -1}
case "$*" in *"--backend cpu "*) echo x >>"${last#image=}" ;; esac'
code=$?
expect_same "results that differ are an error" "$code" 1
expect "and it says so" grep -q '^error: the results differ' "$work/different/out"
finish
