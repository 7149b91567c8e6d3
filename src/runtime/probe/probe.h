/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a device really does with floats: edges and random numbers through each
 * operation, held against exact arithmetic.
 *
 * An operation that is right as it is has the form native. If not, it is tried
 * again in the next form, which the backend compiles if a pipeline's numbers
 * ask for it, and so on to soft, which is right on anything that can count. f64
 * has no other forms: what is wrong there is called soft and is not to be used.
 *
 * What was found is remembered in the process, and in the cache directory, if
 * it is there: a device is probed once for each version of its driver. */
#ifndef VYRE_RUNTIME_PROBE_PROBE_H
#define VYRE_RUNTIME_PROBE_PROBE_H

#include "hal/device.h"
#include "hal/float_ops.h"
#include "runtime/cache/cache.h"

typedef struct vyre__probe_result {
  vyre_float_op_info classes[VYRE__FLOAT_OP_COUNT];
  bool is_remembered; /* by the process or a file: nothing was run */
} vyre__probe_result;

/* A second for all on an interpreter, of which more than half is the oracle. */
enum { VYRE__PROBE_VECTORS = 1 << 20 };

/* Runs it, @p vectors for each operation (0: VYRE__PROBE_VECTORS). What the
 * device does not have (f64, u64) is not tested. Nothing is remembered.
 * Errors: VYRE_UNSUPPORTED_FEATURE for an operation that is wrong in all forms;
 * those of compiling and dispatching. */
vyre_code vyre__probe_run(vyre_device *device, uint32_t vectors,
                          vyre__probe_result *out, vyre_status *st);

/* The same, or what is remembered of an earlier one; is remembered then. */
vyre_code vyre__probe_find(vyre_device *device, vyre__probe_result *out,
                           vyre_status *st);

/* --- results_file.c
 * ------------------------------------------------------------ */

/* What a result belongs to: backend, device, driver, features (with the options
 * that change code), and what the library tests. Returns its length, 0 if it
 * has no room in @p key. */
enum { VYRE__PROBE_KEY = 4096 };
size_t vyre__probe_key(vyre_device *device, char key[VYRE__PROBE_KEY]);

/* A file "probe-<hash>" in the directory of the cache, where that is used. True
 * if there is one for this key and all of it is right. */
bool vyre__probe_load(const vyre__cache *cache, const char *key,
                      size_t key_length, vyre_float_op_info *classes);
/* Writes it whole or not at all. False: it is not there; nobody needs to
 * know. */
bool vyre__probe_save(const vyre__cache *cache, const char *key,
                      size_t key_length, const vyre_float_op_info *classes);

#endif
