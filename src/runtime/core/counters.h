/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counters of devices and prepared dispatches, and the list of open devices
 * over which vyre_counters_read sums them up. */
#ifndef VYRE_RUNTIME_CORE_COUNTERS_H
#define VYRE_RUNTIME_CORE_COUNTERS_H

#include <stdatomic.h>

#include "vyre/counters.h"
#include "vyre/device.h"

typedef struct vyre__prepared vyre__prepared;

typedef struct vyre__atomic_counters {
#define VYRE_X4(field, metric, labels, help) _Atomic uint64_t field;
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
} vyre__atomic_counters;

/* Adds @p value to a counter of @p device; needs core/device.h. */
#define VYRE__COUNT(device, field, value)                              \
  atomic_fetch_add_explicit(&(device)->state->counters.field, (value), \
                            memory_order_relaxed)

/* Adds the device to the list of open devices, and removes it. The counters of
 * a removed device stay part of the sums. */
void vyre__counters_enter(vyre_device *device);
void vyre__counters_leave(vyre_device *device);
/* Lock and unlock the list of open devices around a fork. */
void vyre__devices_lock(void);
void vyre__devices_unlock(void);
/* Ends, in a forked child, the replays that were running on open devices: their
 * threads exist in the parent only. */
void vyre__devices_after_fork(void);
/* Zeroes the counters of a device that is not published yet. */
void vyre__counters_clear(vyre_device *device);
/* Adds @p change (modulo 2^64) to the capacity that host buffers retain for the
 * device with id @p device. The device may be closed. */
void vyre__counters_retained(uint64_t device, uint64_t change);
/* Adds a prepared dispatch to the list of its device, and removes it. Its
 * counts move to the device when it leaves. */
void vyre__counters_enter_run(vyre__prepared *prepared);
void vyre__counters_leave_run(vyre__prepared *prepared);

#endif
