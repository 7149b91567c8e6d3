#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints the software drivers of Vulkan that tests run on, those that are here, a line each:
#   NAME ICD-FILE
# NAME is lavapipe or swiftshader. With a name, prints the file of that one, and fails if it is
# not here:  VK_DRIVER_FILES=$(scripts/vulkan_drivers.sh swiftshader)
# Older loaders know VK_ICD_FILENAMES instead: set both. scripts/deps.sh check gets the drivers.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

first_file() { # files or patterns that matched nothing
  local file
  for file in "$@"; do
    if [ -f "$file" ]; then
      printf '%s\n' "$file"
      return 0
    fi
  done
  return 1
}

find_driver() { # name
  case $1 in
    lavapipe)
      first_file /usr/share/vulkan/icd.d/lvp_icd*.json /usr/local/share/vulkan/icd.d/lvp_icd*.json \
        /etc/vulkan/icd.d/lvp_icd*.json
      ;;
    swiftshader)
      case ${VYRE_SWIFTSHADER:-} in
        none) return 1 ;;
        ?*) first_file "$VYRE_SWIFTSHADER" ;;
        *) first_file "$root/build/drivers/swiftshader/vk_swiftshader_icd.json" \
          /usr/lib/chromium/vk_swiftshader_icd.json ;;
      esac
      ;;
    *)
      echo "there is no driver '$1'" >&2
      echo "Fix: name lavapipe or swiftshader" >&2
      return 2
      ;;
  esac
}

if [ $# -gt 0 ]; then
  find_driver "$1"
  exit
fi
for name in lavapipe swiftshader; do
  if file=$(find_driver "$name"); then echo "$name $file"; fi
done
