#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Verifies the numbers of printed C:  scripts/verify.sh math|ops [OPTION...]
#   math: exp .. cbrt over all 2^32 arguments, pow, atan2, hypot over 2^30 pairs,
#         printed as f64, f64-nofma and u32, against the true values (MPFR)
#   ops:  operations and casts, printed as native, corrected and soft, against the host
# Both also against the device ref. What is done is a line in tests/verify/log.txt
# (tests/verify/log.h says what stands there), and is not done again until the C
# that is printed for it changes. It may be stopped and started at any time.
#   --function NAME  only this one           --jobs N    processes (as many as cores)
#   --range A:B      only inputs A to B-1    --stride N  every Nth input: a sample
#   --list           the names               --summary   what is done so far
#   --log FILE       the log; without it, ranges and samples go to BUILD/verify/log.txt
# BUILD is the build folder (build), CC the compiler (clang-19, else cc).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  sed -n '3,15s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

family=${1-}
case $family in math | ops) shift ;; *) usage ;; esac
name=- range=- stride=1 jobs=$(nproc) action=run log=${VERIFY_LOG:-}
while [ $# -gt 0 ]; do
  case $1 in
    --function | --range | --stride | --jobs | --log) [ $# -gt 1 ] || usage ;;
  esac
  case $1 in
    --function) name=$2 && shift ;;
    --range) range=$2 && shift ;;
    --stride) stride=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --log) log=$2 && shift ;;
    --list) action=list ;;
    --summary) action=summary ;;
    *) usage ;;
  esac
  shift
done
case $stride$jobs in *[!0-9]*) usage ;; esac

build=$(cd "${BUILD:-build}" && pwd)
if [ -z "${CC:-}" ]; then CC=$(command -v clang-19 || echo cc); fi
export CC VERIFY_TESTS=tests/verify VERIFY_BUILD=$build/verify
# Only what is done as a whole goes to the log in the repository unasked.
if [ -z "$log" ]; then
  log=tests/verify/log.txt
  if [ "$range$stride" != "-1" ]; then log=$build/verify/log.txt; fi
fi
export VERIFY_LOG=$log

# The commit, if what decides the numbers is as committed.
commit() {
  local sources=(src/ir src/lang src/lir src/lower src/spmd src/codegen tests/verify/"$family".vyre) changes
  changes=$(git status --porcelain -- "${sources[@]}" 2>/dev/null) || changes=unknown
  if [ -z "$changes" ]; then git rev-parse --short=12 HEAD; else echo uncommitted; fi
}

# "clang-19.1.7"
compiler() {
  local version kind=cc
  version=$($CC --version | head -n 1)
  case $version in *clang*) kind=clang ;; *GCC* | gcc* | *gcc* | *Debian*) kind=gcc ;; esac
  echo "$kind-$($CC -dumpversion)"
}

mkdir -p "$VERIFY_BUILD"
sweep=$VERIFY_BUILD/sweep
"$CC" -std=c11 -O3 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math \
  -D_POSIX_C_SOURCE=200809L -Iinclude -Itests tests/verify/{sweep,reference,log}.c \
  -L"$build" -Wl,-rpath,"$build" -lvyre -lmpfr -lgmp -lm -ldl -o "$sweep.new"
mv "$sweep.new" "$sweep"

case $action in
  list | summary) exec "$sweep" "$family" "$action" ;;
esac

VERIFY_COMMIT=${VERIFY_COMMIT:-$(commit)}
VERIFY_COMPILER=$(compiler)
export VERIFY_COMMIT VERIFY_COMPILER
if [ "$family" = math ]; then
  echo "the host's functions, largest error in 2^-53 (at most 32):"
  if ! "$sweep" measure >"$VERIFY_BUILD/measure"; then
    cat "$VERIFY_BUILD/measure"
    echo "verify: the double functions of this machine are no reference" >&2
    echo "Fix: run it where libm is better" >&2
    exit 1
  fi
  paste -sd' ' "$VERIFY_BUILD/measure" | tr -s ' '
fi
"$sweep" "$family" work "$name" "$range" "$stride" >"$VERIFY_BUILD/work.$family"
echo "log: $VERIFY_LOG"
echo "pieces of work: $(wc -l <"$VERIFY_BUILD/work.$family")"
status=0
xargs -r -L 1 -P "$jobs" "$sweep" "$family" run <"$VERIFY_BUILD/work.$family" || status=1
if [ "$name$range$stride" = "--1" ]; then
  "$sweep" "$family" summary || status=1
fi
exit "$status"
