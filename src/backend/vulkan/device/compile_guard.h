/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BACKEND_VULKAN_DEVICE_COMPILE_GUARD_H
#define VYRE_BACKEND_VULKAN_DEVICE_COMPILE_GUARD_H

#include <pthread.h>

#include "vyre/status.h"

/* Begin and end a compile of a driver; exit() waits for its end.
 * Errors: VYRE_KERNEL_COMPILE_FAILED if the process is ending. */
vyre_code vk_compile_enter(vyre_status *st);
void vk_compile_leave(void);
/* Forgets the threads of the parent in a child process. */
void vk_compile_after_fork(void);

#endif
