#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The scripts behind `make`: what they print while they work, and that tests are ended
# by their limit.
#   scripts.sh SOURCE BUILD
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/cases.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
limit=$build_dir/vyre_limit

# check NAME COMMAND...: whether it succeeds
check() {
  local name=$1
  shift
  if "$@"; then ok "$name"; else fail "$name" "$(cat "$work/out" 2>/dev/null)"; fi
}
has() { grep -qE "$1" "$work/out"; }
has_not() { ! grep -qE "$1" "$work/out"; }
# Runs a command on a terminal made by script(1).
on_terminal() { script -qec "$1" /dev/null </dev/null >"$work/out" 2>&1; }

# --- the limit of a test ---------------------------------------------------------------
"$limit" 300 bash -c 'exit 7' >"$work/out" 2>&1
check "the limit passes an exit code on" [ $? -eq 7 ]
"$limit" 300 bash -c 'kill -ABRT $$' >"$work/out" 2>&1
check "the limit passes a signal on" [ $? -eq 134 ]
# A shell cannot tell a signal from an exit code above 128.
if command -v python3 >/dev/null; then
  for number in 2 6 15; do
    python3 -c 'import subprocess, sys; print(subprocess.call(sys.argv[1:]))' \
      "$limit" 300 bash -c "kill -$number \$\$" >"$work/out" 2>&1
    check "the limit ends by signal $number as the test did" has "^-$number\$"
  done
fi
(trap '' CHLD && VYRE_LIMIT_IDLE_S=2 exec "$limit" 300 bash -c 'exit 7') >"$work/out" 2>&1
check "the limit works where SIGCHLD is ignored" [ $? -eq 7 ]
"$limit" 0.3 bash -c 'while :; do :; done' >"$work/out" 2>&1
check "what uses its processor time is ended" [ $? -eq 124 ]
check "and is said to be a timeout" has '^timeout: [0-9.]* s of processor time used in [0-9]* s, and the limit is [0-9]+\.[0-9] s$'
case $(sed -n 's/^VYRE_SANITIZE:STRING=//p' "$build_dir/CMakeCache.txt") in
  '') factor=1 ;;
  *thread*) factor=10 ;;
  *) factor=4 ;;
esac
check "the limit of a build with sanitizers is longer" awk -v least="$factor" \
  '/^timeout: / { is_long = $(NF - 1) >= 0.3 * least - 0.05 } END { exit !is_long }' "$work/out"
# Orphans become children of the limit, which gets a signal when one ends.
timeout 60 "$limit" 0.3 bash -c '(while :; do (sleep 0.1 &); sleep 0.1; done) & while :; do :; done' >"$work/out" 2>&1
check "the limit holds while orphans end" has '^timeout: [0-9.]* s of processor time used'

# is_gone FILE: the process whose number the file holds has ended
is_gone() {
  local pid
  pid=$(cat "$work/$1") || return 1
  [ -n "$pid" ] && { [ ! -e "/proc/$pid" ] || grep -q ') Z ' "/proc/$pid/stat"; }
}
# wait_until COMMAND...: for at most a minute
wait_until() {
  for _ in {1..600}; do
    if "$@"; then return 0; fi
    sleep 0.1
  done
  return 1
}
is_stopped() { [ -s "$work/$1" ] && grep -q ') T ' "/proc/$(cat "$work/$1")/stat"; }

VYRE_LIMIT_IDLE_S=1 "$limit" 300 bash -c 'sleep 1000 & echo $! >"$0"; wait' "$work/idle" >"$work/out" 2>&1
check "what waits for nothing is ended" [ $? -eq 124 ]
check "and is said to make no progress" has '^timeout: no progress for [0-9]+ s'
check "nothing of it is left" is_gone idle
"$limit" 300 bash -c 'sleep 1000 & echo $! >"$0"; exit 3' "$work/left" >"$work/out" 2>&1
check "a test that leaves a process behind ends as usual" [ $? -eq 3 ]
check "and the process is ended" is_gone left
# Wall time does not count while others have the processor: here, while it is stopped.
"$limit" 1.5 bash -c 'echo $$ >"$0"; kill -STOP $$; exit 5' "$work/stopped" >"$work/out" 2>&1 &
wait_until is_stopped stopped
sleep 3
kill -CONT "$(cat "$work/stopped")"
wait $!
check "time that others have does not count" [ $? -eq 5 ]

"$limit" 300 bash -c 'sleep 1000 & echo $! >"$0"; wait' "$work/ended" >"$work/out" 2>&1 &
wait_until [ -s "$work/ended" ]
kill $!
wait $!
check "a signal to the limit ends the test" [ $? -eq 143 ]
check "nothing of that is left either" is_gone ended

# --- scripts/test.sh -------------------------------------------------------------------
mkdir "$work/tests"
cat >"$work/tests/CTestTestfile.cmake" <<T
add_test(good bash -c "echo 'cases: 3 passed, 0 failed'")
add_test(spins "$limit" 0.3 bash -c "while :; do :; done")
add_test(sleeps sleep 100)
set_tests_properties(sleeps PROPERTIES TIMEOUT 1)
T
"$source_dir/scripts/test.sh" "$work/tests" >"$work/out" 2>&1
check "scripts/test.sh fails when a test runs out of time" [ $? -eq 1 ]
check "it names a test that its limit ended a timeout" has '^timeout: spins: .* processor time'
check "it names a test that CTest ended a timeout" has '^timeout: sleeps: after +[0-9.]+ sec'
check "it counts both as failed" has '^3 passed, 2 failed$'
check "it says what it does first" has '^running 3 tests of '
check "without a terminal it prints no control characters" bash -c "! grep -q $'[\r\033]' '$work/out'"
cat >"$work/tests/CTestTestfile.cmake" <<'T'
add_test(slow bash -c "sleep 5; echo 'cases: 1 passed, 0 failed'")
T
PROGRESS_SECONDS=1 "$source_dir/scripts/test.sh" "$work/tests" >"$work/out" 2>&1
check "it says from time to time what runs" has '^  0 of 1 tests, now slow, [0-9]+ s$'
if command -v script >/dev/null; then
  on_terminal "$source_dir/scripts/test.sh $work/tests"
  check "on a terminal it shows a bar" has $'\r\033\[K\[ *\] 0 of 1 tests, now slow, [0-9]+ s'
  check "and erases it" has $'\r\033\[K *1/1 Test #1: slow'
fi

# A ctest that writes a line in two parts, with a pause that is longer than the script waits.
mkdir "$work/parts"
cat >"$work/parts/ctest" <<'T'
#!/bin/sh
case " $* " in *" -N "*) echo "Total Tests: 1"; exit ;; esac
printf '    Start 1: in_p'
sleep 3
echo arts
echo '1: cases: 1 passed, 0 failed'
printf '1/1 Test #1: in_p'
sleep 3
echo 'arts ...   Passed    6.00 sec'
T
chmod +x "$work/parts/ctest"
PATH=$work/parts:$PATH PROGRESS_SECONDS=1 "$source_dir/scripts/test.sh" "$work/tests" >"$work/out" 2>&1
check "a line that comes in two parts is shown whole" has '^1/1 Test #1: in_parts \.\.\.'
check "and a test that starts in two parts is named" has 'now in_parts,'

# --- tests of Vulkan drivers -------------------------------------------------------------
# One that takes whatever driver the loader finds first may test another one twice.
grep 'conform_vulkan\.sh' "$build_dir/tests/CTestTestfile.cmake" >"$work/out"
for driver in lavapipe swiftshader; do
  check "the conformance suite has a test on $driver" has "\"$driver\""
done
check "and none on a driver without a name" bash -c "! grep -vE '\"(lavapipe|swiftshader)\"' '$work/out'"

# --- scripts/build.sh ------------------------------------------------------------------
# A project of its own, with a compiler that takes its time.
mkdir -p "$work/project/scripts"
cp "$source_dir"/scripts/{build,progress}.sh "$work/project/scripts/"
cat >"$work/project/CMakeLists.txt" <<'T'
cmake_minimum_required(VERSION 3.25)
project(slow LANGUAGES NONE)
foreach(i 1 2 3)
  add_custom_command(OUTPUT f${i} COMMAND sleep 1.2 COMMAND ${CMAKE_COMMAND} -E touch f${i})
  list(APPEND all f${i})
endforeach()
add_custom_target(most ALL DEPENDS ${all})
add_custom_command(OUTPUT none COMMAND echo wrong: this fails COMMAND false)
add_custom_target(broken DEPENDS none)
T
cat >"$work/project/CMakePresets.json" <<'T'
{"version": 3, "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build"}],
 "buildPresets": [{"name": "release", "configurePreset": "release", "jobs": 1}]}
T
(cd "$work/project" && PROGRESS_SECONDS=1 scripts/build.sh release) >"$work/out" 2>&1
check "scripts/build.sh builds" [ -f "$work/project/build/f3" ]
check "it says each step" has '^\[1/2\] configuring build \.\.\.$'
check "it says how much there is to build" has '^\[2/2\] building [0-9]+ files or more into build \(log: build/build.log\) \.\.\.$'
check "it says how far it is" has '^  [0-9]+ of [0-9]+ files, [0-9]+ s$'
check "without a terminal it prints no control characters either" bash -c "! grep -q $'[\r\033]' '$work/out'"
(cd "$work/project" && scripts/build.sh release) >"$work/out" 2>&1
check "it says when there is nothing to build" has '^\[2/2\] build is up to date$'
(cd "$work/project" && scripts/build.sh release broken) >"$work/out" 2>&1
check "it fails when the build does" [ $? -eq 1 ]
check "and shows the log" has 'wrong: this fails'
if command -v script >/dev/null; then
  rm -rf "$work/project/build"
  on_terminal "cd $work/project && scripts/build.sh release"
  check "on a terminal it shows a bar too" has $'\r\033\[K\[#* *\] [0-9]+ of [0-9]+ files, [0-9]+ s'
fi

# --- scripts/deps.sh -------------------------------------------------------------------
# A user that is not root, without packages, and a sudo that wants a password.
mkdir "$work/bin"
for name in dpkg-query cc pkg-config; do printf '#!/bin/sh\nexit 1\n' >"$work/bin/$name"; done
printf '#!/bin/sh\necho 1000\n' >"$work/bin/id"
printf '#!/bin/sh\necho "apt-get $*"\n' >"$work/bin/apt-get"
cat >"$work/bin/sudo" <<'T'
#!/bin/sh
case $1 in -n) exit 1 ;; esac
if [ ! -f "$0.known" ]; then # it asks once
  printf '[sudo] password: '
  read -r answer </dev/tty
  [ "$answer" = secret ] || exit 1
  touch "$0.known"
fi
shift 2 # env and its variable
exec "$@"
T
chmod +x "$work"/bin/*
deps="env PATH=$work/bin:$PATH $source_dir/scripts/deps.sh verify"
$deps >"$work/out" 2>&1 </dev/null
check "without a terminal deps.sh fails" [ $? -eq 1 ]
check "and prints the command" has "^Fix: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends .*libmpfr-dev"
check "and does not ask" has_not 'password'
if command -v python3 >/dev/null; then
  python3 - "$deps" >"$work/out" 2>&1 <<'T'
import os, pty, signal, sys
signal.alarm(60)
pid, terminal = pty.fork()
if pid == 0:
    os.execvp('sh', ['sh', '-c', sys.argv[1]])
seen, asked = b'', False
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    seen += data
    if b'password: ' in seen and not asked:
        asked = True
        os.write(terminal, b'secret\n')
print(seen.decode())
print('exit', os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
T
  check "on a terminal sudo asks" has 'password: '
  check "and the packages are installed" has '^apt-get -q .*install -y --no-install-recommends .*libmpfr-dev'
  check "and that is a success" has '^exit 0'
fi
finish
