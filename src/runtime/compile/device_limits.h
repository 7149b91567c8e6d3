/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of programs and buffers against the limits of a device. */
#ifndef VYRE_RUNTIME_COMPILE_DEVICE_LIMITS_H
#define VYRE_RUNTIME_COMPILE_DEVICE_LIMITS_H

#include "vyre/program.h"

#include "hal/device.h"

/* Checks that the device has every feature that the program uses.
 * Errors: VYRE_UNSUPPORTED_FEATURE. */
vyre_code vyre__program_check_caps(const vyre_device *device,
                                   const vyre_program *program,
                                   vyre_status *st);
/* Reports that the memory bound to buffer @p name is larger than the device
 * allows. */
vyre_code vyre__buffer_too_large(const vyre_device *device, const char *name,
                                 uint64_t size, vyre_status *st);

#endif
