/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Options of the device `vulkan`. A library built without Vulkan checks them
 * too, so an option is valid or invalid everywhere. */
#ifndef VYRE_BACKEND_VULKAN_OPTIONS_H
#define VYRE_BACKEND_VULKAN_OPTIONS_H

#include "hal/backend.h"

static const vyre__option vk_options[] = {
    {"staging", 0, 1,
     "1: copy through staging memory, as GPUs need; 0: map in place"},
    {"force_fences", 0, 1,
     "1: wait by fences even if the driver has timeline semaphores"},
    {"push_constants", 0, 1,
     "1: pass launch parameters as push constants; 0: in memory"},
    {"max_submit_ms", 1, 60000,
     "longest submission; longer dispatches are split"},
    {"loop_check", 0, 2,
     "flags of recorded loops: 1: read by the host, 2: by the device"},
    {"float_mode", VYRE_FLOAT_MODE_NATIVE, VYRE_FLOAT_MODE_SOFT,
     "minimum float mode: 1: corrected, 2: soft; 0: as the probe found"},
    {0}};

#endif
