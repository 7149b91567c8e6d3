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
# header called internal.h or *_internal.h is private to its folder and the folders in it.
layers='
src/base            =
src/diag            = src/base
src/ir              = src/base
src/lang            = src/base src/diag src/ir
src/analyze         = src/base src/ir src/lang/builtins.h
src/validate        = src/base src/diag src/ir src/analyze
src/plan            = src/base src/ir
src/lir             = src/base src/ir
src/lower           = src/base src/ir src/analyze src/lir src/lang/builtins.h
src/spmd            = src/base src/lir
src/codegen/c       = src/base src/lir src/spmd
src/codegen/llvm    = src/base src/lir src/spmd
src/codegen/spirv   = src/base src/lir src/spmd
src/hal             = src/base src/ir src/plan src/lir
src/runtime         = src/base src/diag src/ir src/validate src/plan src/lir src/hal
src/runtime/compile = src/base src/diag src/ir src/validate src/plan src/lir src/hal src/runtime src/lower src/spmd src/codegen
src/runtime/tune    = src/base src/diag src/ir src/validate src/plan src/lir src/hal src/runtime src/analyze/workgroup_size.h
src/backend/cpu     = src/base src/ir src/plan src/lir src/hal src/spmd src/codegen src/lang/builtins.h
src/backend/null    = src/base src/ir src/plan src/lir src/hal
src/backend/plugin  = src/base src/ir src/plan src/lir src/hal src/spmd src/codegen
src/backend/ref     = src/base src/ir src/plan src/lir src/hal src/lang/builtins.h src/analyze/inline/inline.h
src/backend/vulkan  = src/base src/ir src/plan src/lir src/hal src/spmd src/codegen src/lang/builtins.h
src/flow            = src/base src/ir src/plan src/hal src/runtime src/analyze/queue/queue.h src/analyze/queue/queue_kernel.h
src/generate        = src/base src/ir
src/testing         = src tests
include/vyre        =
tools               = cts/harness
cts                 =
tests               =
bench               = tools/graph
examples            =
python              ='

# Prints one line for each include that is not allowed below the folder $1.
# shellcheck disable=SC2016 # awk's dollars
violations() {
  ( cd "$1" && find . -path ./build -prune -o -path ./.git -prune -o \
      -name '*.[ch]' -print | sed 's,^\./,,' | LC_ALL=C sort |
    xargs -r awk -v layers="$layers" '
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
      else if (root == "bench" && exists("tools/" name)) target = "tools/" name
      else if (is_test && (exists("tests/" name) || exists("bench/" name))) next
      else if (root == "examples" && name == "kernels.h") next # made by vyre embed
      else if (name == "runtime/backends.def") next # made of vyre_backend() in CMakeLists.txt
      else { if (is_quoted) print FILENAME ":" FNR ": \"" name "\" is not found"; next }
      while (target ~ /[^\/]+\/\.\.\//) sub(/[^\/]+\/\.\.\//, "", target)
      if (is_test) next
      if (target ~ /(^|[\/_])internal\.h$/ && !below(dir(FILENAME), dir(target))) {
        print FILENAME ":" FNR ": " target " is private to its folder"; next
      }
      if (!below(target, own) && !may(own, target))
        print FILENAME ":" FNR ": " own " must not include " target
    }' )
}

expect_nothing "every include is allowed" "$(violations "$source_dir")"

# The check itself: a planted fault must be found.
planted=$(mktemp -d)
trap 'rm -rf "$planted"' EXIT
plant() { # name, file, its text, the complaint wanted
  rm -rf "${planted:?}"/*
  mkdir -p "$planted"/{src/base,src/ir,src/plan,src/backend/ref,src/backend/cpu,tools,include/vyre}
  touch "$planted"/src/{base/a.h,ir/a.h,plan/a.h,backend/ref/r.h}
  mkdir -p "$(dirname "$planted/$2")"
  printf '%s\n' "$3" >"$planted/$2"
  expect_same "$1" "$(violations "$planted")" "$4"
}
plant "finds an upward include" src/ir/x.c '#include "plan/a.h"' \
  "src/ir/x.c:1: src/ir must not include src/plan/a.h"
plant "finds a header from below in tools" tools/x.c '  #  include "base/a.h"' \
  "tools/x.c:1: tools must not include src/base/a.h"
plant "finds a way round by .." tools/x.c '#include "../src/base/a.h"' \
  "tools/x.c:1: tools must not include src/base/a.h"
plant "finds a backend in a backend" src/backend/cpu/x.c '#include "backend/ref/r.h"' \
  "src/backend/cpu/x.c:1: src/backend/cpu must not include src/backend/ref/r.h"
plant "finds an unknown folder" src/misc/x.c '' \
  "src/misc/x.c: folder src/misc is in no layer"
plant "finds a private header in a public one" include/vyre/x.h '#include "base/a.h"' \
  "include/vyre/x.h:1: include/vyre must not include src/base/a.h"
plant "lets a planner see the base" src/plan/x.c '#include "base/a.h"' ""
plant "lets a unit test look inside" src/ir/x_test.c '#include "plan/a.h"' ""
finish
