#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Writes the source tarball vyre-VERSION.tar.gz from the files of HEAD:
#   scripts/dist.sh [FOLDER]   (default: build)
# The tarball is reproducible: the same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! git rev-parse --git-dir >/dev/null 2>&1; then
  echo "make dist needs a git checkout" >&2
  echo "Fix: clone the repository and run 'make dist' there" >&2
  exit 1
fi
version=$(sed -n 's/^#define VYRE_VERSION_STRING "\(.*\)"/\1/p' include/vyre/version.h)
if [ -n "$(git status --porcelain)" ]; then
  echo "note: uncommitted changes are not part of the tarball"
fi
folder=${1:-build}
mkdir -p "$folder"
name=vyre-$version
git archive --format=tar --prefix="$name/" HEAD | gzip -9n >"$folder/$name.tar.gz"
echo "wrote $folder/$name.tar.gz: $(wc -c <"$folder/$name.tar.gz") bytes"
