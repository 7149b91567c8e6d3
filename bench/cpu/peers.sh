#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles the peers of the suites cpu.*:  bench/cpu/peers.sh BUILD
# Makes BUILD/peers/NAME.so for every installed compiler, for the machine at hand, and
# public_NAME.so, held_NAME.so and held2_NAME.so of the suites public.*.
# Missing compilers are skipped, and the suites report them.
set -euo pipefail
script=$(realpath "$0")
source_dir=$(cd "$(dirname "$0")" && pwd)
out=$1/peers
mkdir -p "$out"

compile() { # NAME COMPILER SOURCES FLAGS...
  local name=$1 compiler=$2 sources=$3
  shift 3
  if ! command -v "$compiler" >/dev/null; then
    rm -f "$out/$name.so"
    return
  fi
  local newest source objects=()
  # shellcheck disable=SC2086 # a list of names without spaces
  newest=$(cd "$source_dir" && stat -Lc %Y $sources peer.h ../public/*.h ../flow/*.h "$script" \
    "$(command -v "$compiler")" | sort -n | tail -n 1)
  if [ -f "$out/$name.so" ] && [ "$(stat -c %Y "$out/$name.so")" -gt "$newest" ]; then
    return
  fi
  rm -f "$out/$name.so" "$out/$name.log"
  for source in $sources; do
    objects+=("$out/$name-$(basename "$source" .c).o")
    "$compiler" -std=c11 -O3 -march=native -fopenmp -fPIC -I "$source_dir/.." "$@" \
      -c -o "${objects[-1]}" "$source_dir/$source" 2>>"$out/$name.log" || break
  done
  # Linked without the flags: with -ffast-math, a shared object would switch
  # subnormals off for the process that loads it.
  if ! "$compiler" -shared -fopenmp -o "$out/$name.so" "${objects[@]}" -lm \
    2>>"$out/$name.log"; then
    echo "bench: $compiler could not compile the peer $name: $out/$name.log" >&2
  fi
}

cpu=peer_openmp.c
public='../public/twins.c ../public/twins_grid.c ../public/twins_linear.c ../public/twins_words.c'
held='../public/held/twins.c'
flow='../flow/twins.c ../flow/twins_bfs.c'
held2='../public/held2/twins.c ../public/held2/twins_grids.c ../public/held2/twins_physics.c
  ../public/held2/twins_series.c ../public/held2/twins_words.c'

compile gcc gcc "$cpu"
compile gcc_fast gcc "$cpu" -ffast-math
compile clang clang-19 "$cpu"
compile clang_fast clang-19 "$cpu" -ffast-math
compile public_gcc gcc "$public"
compile public_clang clang-19 "$public"
compile held_gcc gcc "$held"
compile held_clang clang-19 "$held"
compile held2_gcc gcc "$held2"
compile held2_clang clang-19 "$held2"
compile flow_gcc gcc "$flow"
compile flow_clang clang-19 "$flow"
