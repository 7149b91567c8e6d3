# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Functions for test scripts: ok and fail report one case each; finish ends the script with
# the line that `make check` adds up.
#
#     . "$source_dir/tests/support/cases.sh"
#     if cmp -s a b; then ok same; else fail same "a and b differ"; fi
#     finish

cases_passed=0
cases_failed=0

ok() { # name
  cases_passed=$((cases_passed + 1))
  echo "ok $1"
}

fail() { # name, lines that say why
  cases_failed=$((cases_failed + 1))
  local name=$1
  shift
  if [ $# -gt 0 ]; then printf '%s\n' "$@" | sed 's/^/    /'; fi
  echo "FAIL $name"
}

# The case is good if the text is empty; else the text says why not.
expect_nothing() { # name, text
  if [ -z "$2" ]; then ok "$1"; else fail "$1" "$2"; fi
}

# The case is good if the command succeeds; else its output is shown.
expect() { # name, command...
  local name=$1 output
  shift
  if output=$("$@" 2>&1 </dev/null); then ok "$name"; else fail "$name" "$*" "$output"; fi
}

expect_same() { # name, got, wanted
  if [ "$2" = "$3" ]; then
    ok "$1"
  else
    fail "$1" "$(diff -u --label got --label wanted <(echo "$2") <(echo "$3"))"
  fi
}

finish() {
  echo "cases: $cases_passed passed, $cases_failed failed"
  [ "$cases_failed" -eq 0 ] && [ "$cases_passed" -gt 0 ]
  exit
}
