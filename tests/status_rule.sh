#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that every public call starts its status afresh.  status_rule.sh SOURCE [BUILD]
#   - A public function that takes a status begins with vyre__status_begin(st) or
#     VYRE_BEGIN_OUT(st, out), which calls it.
#   - One that is inline in a header passes its status on to another public function.
#   - Inside the library, a public function gets NULL or vyre__status_open(...), so
#     that it cannot erase the first cause of the call it is part of.
#   - src/runtime/core/status_test.c calls all of them.
set -uo pipefail
source_dir=$1
. "$source_dir/tests/support/cases.sh"

# Prints one line for each violation below the folder $1.
# shellcheck disable=SC2016 # awk's dollars
violations() {
  ( cd "$1" && find include/vyre src -name '*.[ch]' | LC_ALL=C sort | xargs -r awk -v least="$2" '
    # The text without comments and without what is in quotes, and with spaces for newlines.
    function bare(t,  out, at) {
      out = ""
      while (match(t, /\/\*|\/\/|"/)) {
        out = out substr(t, 1, RSTART - 1) " "
        if (substr(t, RSTART, 1) == "\"") {
          t = substr(t, RSTART + 1)
          while (match(t, /^[^"\\]*\\./)) t = substr(t, RLENGTH + 1)
          at = index(t, "\"")
          out = out "\"\""
        } else if (substr(t, RSTART, 2) == "/*") {
          t = substr(t, RSTART + 2); at = index(t, "*/") + 1
        } else {
          t = substr(t, RSTART + 2); at = index(t, "\n")
        }
        t = at > 0 ? substr(t, at + 1) : ""
      }
      out = out t
      gsub(/[ \t\n]+/, " ", out)
      return out
    }
    # The position of the bracket that closes the one at the start of t.
    function closing(t,  depth, i, c) {
      depth = 0
      for (i = 1; i <= length(t); i++) {
        c = substr(t, i, 1)
        if (c == "(" || c == "{") depth++
        if ((c == ")" || c == "}") && --depth == 0) return i
      }
      return 0
    }
    # The last of the arguments in t, which has no brackets around it.
    function last(t,  depth, i, c, from) {
      depth = 0; from = 1
      for (i = 1; i <= length(t); i++) {
        c = substr(t, i, 1)
        if (c == "(" || c == "{") depth++
        if (c == ")" || c == "}") depth--
        if (c == "," && depth == 0) from = i + 1
      }
      t = substr(t, from); gsub(/^ +| +$/, "", t)
      return t
    }
    function is_free(file) { return file ~ /_(test|fuzz|bench)\.c$|_testing\.h$|^src\/testing\/random_programs\./ }
    # Names of public functions with a status, from declarations and inline ones.
    function declared(t,  head, name, rest) {
      while (match(t, /(VYRE_API|static inline) [^;{(]*vyre_[a-z0-9_]+ ?\(/)) {
        head = substr(t, RSTART, RLENGTH); rest = substr(t, RSTART + RLENGTH - 1)
        name = head; sub(/ ?\($/, "", name); sub(/.*[^a-z0-9_]/, "", name)
        arguments = substr(rest, 2, closing(rest) - 2)
        if (last(arguments) ~ /^vyre_status \*/) {
          public[name] = 1
          if (head ~ /^static/) is_inline[name] = 1
        }
        t = rest
      }
    }
    function examine(file, t,  name, rest, end, before, argument, body, inline_now) {
      while (match(t, /vyre_[a-z0-9_]+ ?\(/)) {
        before = substr(t, 1, RSTART - 1)
        name = substr(t, RSTART, RLENGTH); sub(/ ?\($/, "", name)
        rest = substr(t, RSTART + RLENGTH - 1)
        t = rest
        if (!(name in public) || before ~ /[a-z0-9_]$/) continue
        end = closing(rest)
        argument = last(substr(rest, 2, end - 2))
        rest = substr(rest, end + 1)
        if (argument ~ /^vyre_status \*/) {
          if (rest !~ /^ ?\{/) continue # a declaration
          sub(/^ /, "", rest); body = substr(rest, 2, closing(rest) - 2)
          defined[name] = 1
          if (name in is_inline) {
            if (body ~ /VYRE_FAIL/ || body !~ /vyre_[a-z0-9_]+ ?\([^;]*, st\)/)
              print file ": " name " does not pass its status on"
            inline_now = 1
          } else if (body !~ /^ (vyre__status_begin\(st\)|VYRE_BEGIN_OUT\(st, out\));/) {
            print file ": " name " does not begin with vyre__status_begin(st)"
          }
        } else if (file !~ /^include/ && argument != "NULL" &&
                   argument !~ /^vyre__status_open\(/) {
          print file ": " name " is called inside the library with the status " argument
        }
      }
    }
    FNR == 1 && NR > 1 { files++; path[files] = at; text[files] = all; all = "" }
    { at = FILENAME; all = all $0 "\n" }
    END {
      files++; path[files] = at; text[files] = all
      for (i = 1; i <= files; i++) {
        if (is_free(path[i])) {
          if (path[i] == "src/runtime/core/status_test.c") table = bare(text[i])
          delete text[i]
          continue
        }
        text[i] = bare(text[i])
        if (path[i] ~ /^include/) declared(text[i])
      }
      for (i = 1; i <= files; i++) if (i in text) examine(path[i], text[i])
      for (name in public) {
        count++
        if (!(name in defined)) print name " is declared and nowhere defined"
        if (table !~ ("(CALL|FAIL)\\(" name ",")) print name " is not in status_test.c"
      }
      if (count < least) print "only " count + 0 " public functions take a status, at least " least " are known"
    }' | LC_ALL=C sort )
}

expect_nothing "every public call starts its status afresh" "$(violations "$source_dir" 87)"

# The check itself: a planted fault must be found.
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
mkdir -p "$planted"/{include/vyre,src/runtime/core}
plant() { # name, body of vyre_a, the complaint wanted
  cat >"$planted/include/vyre/a.h" <<'HEADER'
/** VYRE_API vyre_code vyre_comment(vyre_status *st); */
VYRE_API vyre_code vyre_a(int x, vyre_status *st);
VYRE_API vyre_code vyre_b(
    void (*done)(void *self, int code), vyre_status *st);
VYRE_API bool vyre_reads(const vyre_status *st, int x);
static inline vyre_code vyre_c(int x, vyre_status *st) {
  return vyre_a(x, st);
}
HEADER
  printf 'vyre_code vyre_a(int x, vyre_status *st) {\n%s\n}\n' "$2" >"$planted/src/runtime/a.c"
  echo 'vyre_code vyre_b(void (*done)(void *self, int code), vyre_status *st) { vyre__status_begin(st); }' \
    >"$planted/src/runtime/b.c"
  echo 'CALL(vyre_a, 1, st) CALL(vyre_b, NULL, st) CALL(vyre_c, 1, st)' >"$planted/src/runtime/core/status_test.c"
  expect_same "$1" "$(violations "$planted" 3)" "$3"
}
plant "takes what follows the rule" '  vyre__status_begin(st); /* " */
  return vyre_b(NULL, vyre__status_open(st)) + vyre_b(NULL, NULL); /* vyre_b(NULL, st) */' ""
plant "takes a function that also clears its result" '  VYRE_BEGIN_OUT(st, out);' ""
plant "finds a function that keeps the old status" '  if (x) return 1;
  vyre__status_begin(st);' "src/runtime/a.c: vyre_a does not begin with vyre__status_begin(st)"
plant "finds a nested call that may erase the first cause" '  vyre__status_begin(st);
  return vyre_b("a, \"b", st);' "src/runtime/a.c: vyre_b is called inside the library with the status st"
plant "finds one of both faults after the other" '  vyre_b(NULL,
      &own->st);' "src/runtime/a.c: vyre_a does not begin with vyre__status_begin(st)
src/runtime/a.c: vyre_b is called inside the library with the status &own->st"
sed -i 's/return vyre_a(x, st)/return x ? 1 : vyre_a(x, NULL)/' "$planted/include/vyre/a.h"
echo 'vyre_code vyre_a(int x, vyre_status *st) { vyre__status_begin(st); }' >"$planted/src/runtime/a.c"
echo 'CALL(vyre_a, 1, st) CALL(vyre_c, 1, st)' >"$planted/src/runtime/core/status_test.c"
expect_same "finds an inline function without a status, and a function without a test" \
  "$(violations "$planted" 3)" "include/vyre/a.h: vyre_c does not pass its status on
vyre_b is not in status_test.c"
finish
