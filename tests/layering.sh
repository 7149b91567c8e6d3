#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Who may include whom.  layering.sh SOURCE [BUILD]
# Public headers ("vyre/...") are open to all. Tests, fuzzers and benchmarks beside
# the code may look anywhere inside.
set -uo pipefail
source_dir=$1
. "$source_dir/tests/support/cases.sh"

layers='
src/base     =
src/ir       = src/base
src/analyze  = src/base src/ir
src/validate = src/base src/ir src/analyze
src/plan     = src/base src/ir
src/lower    = src/base src/ir src/analyze
src/emit     = src/base src/lower
src/driver   = src/base src/ir src/validate src/plan src/lower
src/backend  = src/base src/ir src/plan src/driver src/lower src/emit
src/flow     = src/base src/ir src/plan src/driver
src/generate = src/base src/ir
include/vyre =
tools        = cts
cts          =
tests        =
bench        =
examples     =
python       ='

# Prints one line for each include that is not allowed below the folder $1.
# shellcheck disable=SC2016 # awk's dollars
violations() {
  ( cd "$1" && find . -path ./build -prune -o -path ./.git -prune -o \
      -name '*.[ch]' -print | sed 's,^\./,,' | LC_ALL=C sort | xargs -r awk -v layers="$layers" '
    # src/plan/x.c -> src/plan; src/backend/ref/x.c -> src/backend/ref; tools/x/y.c -> tools
    function folder(path,  part, n) {
      n = split(path, part, "/")
      if (part[1] == "src" && part[2] == "backend" && n > 3) return part[1] "/" part[2] "/" part[3]
      if (part[1] == "src" || part[1] == "include") return n > 2 ? part[1] "/" part[2] : part[1]
      return part[1]
    }
    function layer(f) { return f ~ /^src\/backend\// ? "src/backend" : f }
    function there(path,  line, got) {
      got = (getline line < path); close(path); return got >= 0
    }
    BEGIN {
      n = split(layers, row, "\n")
      for (i = 1; i <= n; i++) {
        if (split(row[i], side, "=") < 2) continue
        gsub(/ /, "", side[1]); known[side[1]] = 1
        m = split(side[2], word, " ")
        for (j = 1; j <= m; j++) may[side[1], word[j]] = 1
      }
    }
    FNR == 1 {
      own = folder(FILENAME)
      free = FILENAME ~ /_(test|fuzz|bench)\.c$|_testing\.h$/
      if (!(layer(own) in known)) print FILENAME ": folder " own " is in no layer"
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
      name = $0; quoted = name ~ /include[ \t]*"/
      sub(/^[^"<]*["<]/, "", name); sub(/[">].*$/, "", name)
      if (name ~ /^vyre\//) next
      here = FILENAME; sub(/[^\/]*$/, "", here)
      if (there("src/" name)) target = "src/" name
      else if (there(here name)) target = here name
      else if (there(own "/" name)) target = own "/" name
      else if (name ~ /^cts\// && there(name)) target = name
      else if (free && (there("tests/" name) || there("bench/" name))) next
      else if (own == "examples" && name == "kernels.h") next # made by vyre embed
      else if (name == "driver/backends.def") next # made of vyre_backend() in CMakeLists.txt
      else { if (quoted) print FILENAME ":" FNR ": \"" name "\" is not found"; next }
      while (target ~ /[^\/]+\/\.\.\//) sub(/[^\/]+\/\.\.\//, "", target)
      other = folder(target)
      if (free || other == own) next
      if (!((layer(own), layer(other)) in may) || layer(own) == layer(other))
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
