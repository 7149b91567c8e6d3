/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One call of a kernel. */
#ifndef VYRE_PYTHON_JOB_H
#define VYRE_PYTHON_JOB_H

#include "internal.h"

/* One call. Lives on the stack, or on the heap while submitted work uses it. */
typedef struct vyp_job {
  vyp_kernel *kernel;
  vyp_device *device;
  vyp_compiled *compiled;
  PyObject *values[VYP_MAX_PARAMS]; /* borrowed; by parameter */
  vyp_call_options options;
  vyp_memory memory[2 * VYP_MAX_PARAMS]; /* to release */
  uint32_t memory_count;
  vyre_input inputs[VYP_MAX_PARAMS], resources[VYP_MAX_PARAMS];
  vyre_output outputs[VYP_MAX_PARAMS];
  uint8_t scalars[VYP_MAX_PARAMS][VYP_UNIFORM_BYTES];
  PyObject *results[VYP_MAX_PARAMS];       /* new references, by output */
  vyre_buffer temporaries[VYP_MAX_PARAMS]; /* device buffers to destroy */
  uint64_t bytes, number;                  /* see vyp_compiled.fast_bytes */
  PyObject *kept; /* arguments of submitted work, or NULL */
  vyre_timing timing;
  vyre_copy_report copies;
  vyre_dispatch_desc desc;
} vyp_job;

/* shapes.c */
/* Stores the shape of a new output. */
bool vyp_output_shape(vyp_job *job, uint32_t at, int *ndim,
                      Py_ssize_t shape[8]);
/* Stores the value of a uniform that is an extent of an array. Returns false,
 * without an exception, if no argument tells it. */
bool vyp_infer_uniform(const vyp_job *job, uint32_t at, uint32_t *value);
/* Checks that the shape of an array is the one that the kernel declares. */
bool vyp_check_shape(const vyp_job *job, const vyp_param *p, PyObject *value,
                     uint64_t bytes);

#endif
