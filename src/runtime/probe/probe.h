/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The float probe: tests each float operation of a device with edge cases and
 * random operands, and compares the results with exact arithmetic.
 *
 * An operation with correct results gets the mode native. Otherwise the probe
 * tries the next mode: corrected, then soft, which needs integer arithmetic
 * only. f64 has no other modes: soft then means that the operation must not be
 * used.
 *
 * The process remembers the results, and so does the cache directory if it is
 * enabled. A device is probed again if its driver,
 * features or options change. */
#ifndef VYRE_RUNTIME_PROBE_PROBE_H
#define VYRE_RUNTIME_PROBE_PROBE_H

#include "hal/device.h"
#include "hal/float_ops.h"
#include "runtime/cache/cache.h"

typedef struct vyre__probe_result {
  vyre_float_op_info float_ops[VYRE__FLOAT_OP_COUNT];
  bool is_cached; /* from memory or a file: the probe did not run */
} vyre__probe_result;

/* Vectors per operation. On an interpreter, the full probe takes a second, of
 * which more than half goes to the exact arithmetic. */
enum { VYRE__PROBE_VECTORS = 1 << 20 };

/* Runs the probe with @p vectors for each operation (0: VYRE__PROBE_VECTORS).
 * Skips operations that need a missing feature (f64, u64). Does not use earlier
 * results.
 * Errors: VYRE_UNSUPPORTED_FEATURE for an operation that is wrong in all modes;
 * those of compiling and dispatching. */
vyre_code vyre__probe_run(vyre_device *device, uint32_t vectors,
                          vyre__probe_result *out, vyre_status *st);

/* Returns the results of an earlier probe, or runs one and stores its
 * results. */
vyre_code vyre__probe_find(vyre_device *device, vyre__probe_result *out,
                           vyre_status *st);

/* --- results_file.c ------------------------------------------------------- */

/* Writes the key of a result: backend, device, driver, features (with the
 * options that change code), and the version of the probe. Returns its length,
 * or 0 if it is longer than @p key. */
enum { VYRE__PROBE_KEY = 4096 };
size_t vyre__probe_key(vyre_device *device, char key[VYRE__PROBE_KEY]);

/* Reads the file "probe-<hash>" in the cache directory. Returns true if it
 * exists for this key and is valid. */
bool vyre__probe_load(const vyre__cache *cache, const char *key,
                      size_t key_length, vyre_float_op_info *float_ops);
/* Writes the file atomically. Returns false if that failed; callers ignore
 * it. */
bool vyre__probe_save(const vyre__cache *cache, const char *key,
                      size_t key_length, const vyre_float_op_info *float_ops);

#endif
