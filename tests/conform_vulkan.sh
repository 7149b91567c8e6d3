#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The conformance suite on a Vulkan device, under the validation layer: what that says
# is a break, which ends the case that it is about.
#   conform_vulkan.sh SOURCE BUILD [DRIVER] [all]
# DRIVER is a name that scripts/vulkan_drivers.sh knows; without, the device is the one that
# the Vulkan loader finds first.
set -uo pipefail
source_dir=$1 build_dir=$2
shift 2
. "$source_dir/tests/support/cases.sh"
. "$source_dir/tests/support/suite.sh"
driver='' all=
for word in "$@"; do if [ "$word" = all ]; then all=1; else driver=$word; fi; done
if [ -n "$driver" ]; then
  . "$source_dir/tests/support/vulkan_driver.sh"
  use_vulkan_driver "$driver"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Drivers, loaders and layers keep memory until the process ends; that is not our leak.
printf 'leak:%s\n' libvulkan libvk_swiftshader libLLVM libdrm libVkLayer libstdc++ _dlerror_run '<unknown module>' >"$work/leaks"
export LSAN_OPTIONS=${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$work/leaks:print_suppressions=0
export VK_LAYER_SETTINGS_PATH=$work/vk_layer_settings.txt MESA_SHADER_CACHE_DISABLE=true
layer=VK_LAYER_KHRONOS_validation

vulkan() { # what is a break, more arguments
  local kinds=$1
  shift
  printf 'khronos_validation.%s\n' "report_flags = $kinds" 'log_filename = stdout' \
    'enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT' \
    'debug_action = VK_DBG_LAYER_ACTION_LOG_MSG,VK_DBG_LAYER_ACTION_BREAK' >"$VK_LAYER_SETTINGS_PATH"
  VK_INSTANCE_LAYERS=$layer "$build_dir/vyre" conform --backend vulkan "$@"
}

devices=$(VK_INSTANCE_LAYERS=$layer "$build_dir/vyre" devices)
if grep -q '^vulkan: not available' <<<"$devices"; then
  echo "skipped: there is no Vulkan device"
  exit 77
fi
if grep -qF "of VK_INSTANCE_LAYERS is not installed" <<<"$devices"; then
  echo "note: without $layer (vulkan-validationlayers)"
  layer=
else
  # With `info` the layer prints a message when it is active.
  said=$(vulkan error,warn,info --filter forms.dispatch 2>&1)
  code=$?
  if [ $code -ne 0 ] && grep -qF 'Khronos Validation Layer Active' <<<"$said"; then
    ok "a message of the layer is a failure"
  else
    fail "a message of the layer is a failure" "exit status $code" "$said"
  fi
fi

on() { # what for, options, more arguments
  local what=$1 options=(--option "$2")
  [ -n "$2" ] || options=()
  shift 2
  suite "vulkan conforms$what" vulkan error,warn "${options[@]}" "$@"
}

if [ -n "$all" ]; then # all of it, in every way (make check-long)
  on "" "" --programs 60
  on ", as on a GPU" vulkan.staging=1
  on ", as on a GPU without timelines" vulkan.staging=1,vulkan.force_fences=1
  on ", floats corrected" vulkan.float_mode=1
  on ", floats soft" vulkan.float_mode=2
elif [ "$driver" = swiftshader ]; then
  # This driver needs other lowerings than lavapipe. The interplay of memory and threads is
  # tested on lavapipe, so that little is left to test under a sanitizer.
  if sanitized; then
    for area in forms atomics; do on " in $area" "" --filter "$area."; done
  else
    on "" "" --programs 10 # unit.vulkan_random_programs_swiftshader has 100
  fi
elif sanitized; then
  # Areas in which memory and threads of driver, library and test interact.
  for area in forms buffers recordings threads; do on " in $area" "" --filter "$area."; done
else
  on "" ""
  for area in forms buffers recordings; do on ", as on a GPU, in $area" vulkan.staging=1 --filter "$area."; done
  # Every operation on floats by integers alone. (Random programs have the form between.)
  on ", f32 soft" vulkan.float_mode=2 --filter f32
fi
finish
