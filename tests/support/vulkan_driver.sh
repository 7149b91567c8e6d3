# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash disable=SC2154 # source_dir is of the script that sources it
# For scripts that test on a certain Vulkan driver.

# Makes the Vulkan loader use one driver, or ends the script as skipped if it is not here.
use_vulkan_driver() { # name, as scripts/vulkan_drivers.sh has it
  local file
  if ! file=$("$source_dir/scripts/vulkan_drivers.sh" "$1"); then
    echo "skipped: the Vulkan driver $1 is not here; scripts/deps.sh check gets it"
    exit 77
  fi
  export VK_DRIVER_FILES=$file VK_ICD_FILENAMES=$file
}
