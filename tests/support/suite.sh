# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154 # work and build_dir are of who sources it
# For scripts that run the conformance suite: its cases are those of the test. After
# support/cases.sh; `work` is a folder for what is left behind.

suite() { # name, command...
  local name=$1 passed failed
  shift
  "$@" >"$work/out" 2>&1 </dev/null
  local code=$?
  read -r passed failed < <(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, [0-9]* not applicable, [0-9]* skipped$/\1 \2/p' "$work/out")
  cases_passed=$((cases_passed + ${passed:-0}))
  cases_failed=$((cases_failed + ${failed:-0}))
  if [ $code -ne 0 ] || [ "${failed:-1}" -ne 0 ]; then
    fail "$name" "$(cat "$work/out")"
  else
    ok "$name"
  fi
}

# Whether the build has that sanitizer; without a word, whether it has any.
sanitized() { # [thread]
  grep -q "^VYRE_SANITIZE:[A-Z]*=${1:-.}" "$build_dir/CMakeCache.txt"
}
