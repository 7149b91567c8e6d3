# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154 # the sourcing script sets work and build_dir
# Functions for scripts that run the conformance suite; its cases count as cases of the
# test. Source support/cases.sh first. `work` is a folder for temporary files.

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

# Succeeds if the build has that sanitizer; without an argument, if it has any.
sanitized() { # [thread]
  grep -q "^VYRE_SANITIZE:[A-Z]*=${1:-.}" "$build_dir/CMakeCache.txt"
}
