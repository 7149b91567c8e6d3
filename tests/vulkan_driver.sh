#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs a program of the tests on a certain Vulkan driver:
#   vulkan_driver.sh SOURCE BUILD DRIVER [VARIABLE=VALUE...] PROGRAM [ARGUMENT...]
# PROGRAM is in the folder tests of the build.
set -uo pipefail
source_dir=$1 build_dir=$2
. "$source_dir/tests/support/vulkan_driver.sh"
use_vulkan_driver "$3"
shift 3
while [[ $1 == *=* ]]; do
  export "${1?}"
  shift
done
program=$build_dir/tests/$1
shift
if [ ! -x "$program" ]; then
  echo "skipped: built without Vulkan, there is no $program"
  exit 77
fi
exec "$program" "$@"
