#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles the peers of the suites cpu.*:  bench/cpu/peers.sh BUILD
# Makes BUILD/peers/NAME.so for every installed compiler, for the machine at hand.
# Missing compilers are skipped, and the suites report them.
set -euo pipefail
source_dir=$(cd "$(dirname "$0")" && pwd)
out=$1/peers
mkdir -p "$out"

compile() { # NAME COMPILER FLAGS...
  local name=$1 compiler=$2
  shift 2
  if ! command -v "$compiler" >/dev/null; then
    rm -f "$out/$name.so"
    return
  fi
  local newest
  newest=$(stat -Lc %Y "$source_dir"/peer_openmp.c "$source_dir"/peer.h "$0" \
    "$(command -v "$compiler")" | sort -n | tail -n 1)
  if [ -f "$out/$name.so" ] && [ "$(stat -c %Y "$out/$name.so")" -gt "$newest" ]; then
    return
  fi
  rm -f "$out/$name.so"
  # Linked without the flags: with -ffast-math, a shared object would switch
  # subnormals off for the process that loads it.
  if ! { "$compiler" -std=c11 -O3 -march=native -fopenmp -fPIC "$@" -c \
      -o "$out/$name.o" "$source_dir/peer_openmp.c" &&
      "$compiler" -shared -fopenmp -o "$out/$name.so" "$out/$name.o" -lm; } \
    2>"$out/$name.log"; then
    echo "bench: $compiler could not compile the peer $name: $out/$name.log" >&2
  fi
}

compile gcc gcc
compile gcc_fast gcc -ffast-math
compile clang clang-19
compile clang_fast clang-19 -ffast-math
