/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What can be chosen of the device `vulkan`, also where the library is built without
 * it: an option is right or wrong wherever it is written. */
#ifndef VYRE_BACKEND_VULKAN_OPTIONS_H
#define VYRE_BACKEND_VULKAN_OPTIONS_H

#include "hal/backend.h"

static const vyre__option vk_options[] = {
    {"staging", 0, 1,
     "1: copies through memory of the host, as GPUs need it; 0: in place"},
    {"fences", 0, 1, "1: waits by fences, also where there are timelines"},
    {"push", 0, 1, "1: launch blocks as push constants; 0: in memory"},
    {"most_ms", 1, 60000, "of one submission; longer dispatches go in parts"},
    {"loop", 0, 2, "flags of loops: 1: the host's, 2: the device's to look at"},
    {"numbers", VYRE_NUMBERS_NATIVE, VYRE_NUMBERS_SOFT,
     "least form of floats: 1: fixed, 2: soft; 0: what the probe found"},
    {0}};

#endif
