#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that every include follows the layers.  layering.sh SOURCE [BUILD]
# Every folder may include public headers ("vyre/..."). Tests, fuzzers and benchmarks may
# include any header.
set -uo pipefail
source_dir=$1
. "$source_dir/tests/support/cases.sh"

# A row names a folder and what it may include besides itself and "vyre/...": folders
# with all their sub-folders, or single headers. The longest matching row counts. A
# header called internal.h or *_internal.h is private to its folder.
layers='
src/emit            = src
src/driver          = src
src/backend         = src
src/lower           = src
src/ir              = src
src/analyze         = src
src/runtime         = src
src/codegen         = src
src/lir             = src
src/spmd            = src
src/lang            = src
src/diag            = src
src/hal             = src
src/base            =
src/validate        = src/base src/diag src/ir src/analyze
src/plan            = src/base src/ir
src/flow            = src/base src/ir src/plan src/hal src/runtime
src/generate        = src/base src/ir
src/testing         = src tests
include/vyre        =
tools               = cts
cts                 =
tests               =
bench               =
examples            =
python              ='

# Includes that break the table and are still to be removed: "file target" per line.
exceptions='
'

# Prints one line for each include that is not allowed below the folder $1.
# shellcheck disable=SC2016 # awk's dollars
violations() {
  ( cd "$1" && find . -path ./build -prune -o -path ./.git -prune -o \
      -name '*.[ch]' -print | sed 's,^\./,,' | LC_ALL=C sort |
    xargs -r awk -v layers="$layers" -v exceptions="$exceptions" '
    function dir(path) { sub(/\/[^\/]*$/, "", path); return path }
    function below(path, folder) { return path == folder || index(path, folder "/") == 1 }
    # The row that a file belongs to, or "".
    function row_of(path,  f) {
      for (f = dir(path); f != ""; f = f ~ /\// ? dir(f) : "") if (f in known) return f
      return ""
    }
    function exists(path,  line, got) {
      got = (getline line < path); close(path); return got >= 0
    }
    function may(row, target,  m, word, j) {
      m = split(known[row], word, " ")
      for (j = 1; j <= m; j++) if (below(target, word[j])) return 1
      return 0
    }
    BEGIN {
      n = split(layers, row, "\n")
      for (i = 1; i <= n; i++)
        if (split(row[i], side, "=") == 2) { gsub(/ /, "", side[1]); known[side[1]] = side[2] }
      n = split(exceptions, row, "\n")
      for (i = 1; i <= n; i++) if (row[i] != "") excepted[row[i]] = 1
    }
    FNR == 1 {
      own = row_of(FILENAME)
      is_test = FILENAME ~ /_(test|fuzz|bench)\.c$|_testing\.h$|^src\/testing\//
      if (own == "") print FILENAME ": folder " dir(FILENAME) " is in no layer"
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
      name = $0; is_quoted = name ~ /include[ \t]*"/
      sub(/^[^"<]*["<]/, "", name); sub(/[">].*$/, "", name)
      if (name ~ /^vyre\//) next
      here = FILENAME; sub(/[^\/]*$/, "", here); root = FILENAME; sub(/\/.*/, "", root)
      if (exists("src/" name)) target = "src/" name
      else if (exists(here name)) target = here name
      else if (exists(root "/" name)) target = root "/" name
      else if (name ~ /^cts\// && exists(name)) target = name
      else if (is_test && (exists("tests/" name) || exists("bench/" name))) next
      else if (root == "examples" && name == "kernels.h") next # made by vyre embed
      else if (name == "runtime/backends.def") next # made of vyre_backend() in CMakeLists.txt
      else { if (is_quoted) print FILENAME ":" FNR ": \"" name "\" is not found"; next }
      while (target ~ /[^\/]+\/\.\.\//) sub(/[^\/]+\/\.\.\//, "", target)
      if (is_test || (FILENAME " " target) in excepted) next
      if (!below(target, own) && !may(own, target))
        print FILENAME ":" FNR ": " own " must not include " target
    }' )
}

expect_nothing "every include is allowed" "$(violations "$source_dir")"

finish
