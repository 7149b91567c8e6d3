#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# scripts/fmt.sh fmt | fmt-check
set -euo pipefail
cd "$(dirname "$0")/.."
case $1 in
  fmt) mode=(-i) ;;
  fmt-check) mode=(--dry-run --Werror) ;;
  *) exit 2 ;;
esac
find include src tools cts tests bench examples python \( -name '*.c' -o -name '*.h' \) -print0 |
  sort -z | xargs -0 -r clang-format-19 "${mode[@]}"
