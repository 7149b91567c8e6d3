#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests scripts/dist.sh: the tarball has every file of HEAD, and no file that the build or
# the tests need is left out of the repository.
#   dist.sh SOURCE BUILD
set -uo pipefail
shopt -s lastpipe # needed() counts in this shell
source_dir=$(cd "$1" && pwd) build_dir=$(cd "$2" && pwd)
. "$source_dir/tests/support/cases.sh"
cd "$source_dir" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! git rev-parse --git-dir >/dev/null 2>&1; then
  echo "skipped: this is not a git checkout"
  exit 77
fi

# --- the tarball -------------------------------------------------------------------------
scripts/dist.sh "$work/one" >"$work/out" 2>&1 && scripts/dist.sh "$work/two" >>"$work/out" 2>&1
expect_same "it is written" "$?" 0
file=$(basename "$work"/one/*.tar.gz)
version=$(sed -n 's/^project(.*VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
expect_same "its name has the version" "$file" "vyre-$version.tar.gz"
expect "the same commit gives the same bytes" cmp "$work/one/$file" "$work/two/$file"
tar tzf "$work/one/$file" | grep -v '/$' | LC_ALL=C sort >"$work/packed"
git ls-tree -r --name-only HEAD | sed "s,^,vyre-$version/," | LC_ALL=C sort >"$work/committed"
expect_nothing "it has every file of the commit" "$(diff "$work/committed" "$work/packed")"

# --- files that are needed ---------------------------------------------------------------
# Files of the next commit, less those that git archive leaves out.
git ls-files -co --exclude-standard | git check-attr --stdin export-ignore |
  sed -n 's/: export-ignore: unspecified$//p' | LC_ALL=C sort >"$work/known"
# needed NAME: reads names of files; those in the source folder must be known
needed() {
  (cd "$build_dir" && xargs -r -d '\n' realpath -ms --) | grep -v "^$build_dir/" |
    sed -n "s,^$source_dir/,,p" | LC_ALL=C sort -u >"$work/needed"
  expect "$1: there are some" test -s "$work/needed"
  expect_nothing "$1: all are in the repository" "$(LC_ALL=C comm -23 "$work/needed" "$work/known")"
}
if [ -f "$build_dir/build.ninja" ] && command -v ninja >/dev/null; then
  ninja -C "$build_dir" -t inputs all 2>/dev/null | grep -E '\.[a-z]+$' | needed "sources"
  ninja -C "$build_dir" -t inputs build.ninja 2>/dev/null | grep -E '\.[a-z]+$' | needed "files of CMake"
  ninja -C "$build_dir" -t deps 2>/dev/null | sed -n 's/^    //p' | needed "headers"
fi
grep -o "$source_dir/[^\"; ]*" "$build_dir/tests/CTestTestfile.cmake" | while read -r path; do
  if [ -f "$path" ]; then echo "$path"; fi
done | needed "scripts of tests"
finish
