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
    {"queue_windows", 0, 256,
     "chunks of a queue in each submission; 0: 16, then 64, then 256"},
    {"loop_check", 0, 2,
     "flags of recorded loops are read by the host or the device",
     VYRE_OPTION_ENUM, "any host device"},
    {"float_mode", VYRE_FLOAT_MODE_NATIVE, VYRE_FLOAT_MODE_SOFT,
     "minimum float mode; native: as the probe found", VYRE_OPTION_ENUM,
     "native corrected soft"},
    {0}};

#endif
