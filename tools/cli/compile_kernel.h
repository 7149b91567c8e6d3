/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens a device and compiles a kernel for it: "auto" goes over to ref where the
 * device that it takes cannot compile the kernel, and says so. */
#ifndef VYRE_TOOLS_CLI_COMPILE_KERNEL_H
#define VYRE_TOOLS_CLI_COMPILE_KERNEL_H

#include "vyre/pipeline.h"

typedef struct compiled_on {
  vyre_device *device; /* also where compiling failed; NULL: none opens */
  vyre_pipeline *pipeline;
  char why_ref[400]; /* instead of what auto takes; "": it is not */
  uint64_t compile_ns;
} compiled_on;

/* @p what: "this runs on", of the note on standard error. *out is to be zero, and
 * is released by compiled_on_finish, whatever came of it. */
vyre_code compile_on(vyre_context *context, const char *backend,
                     const char *what, vyre_program *program,
                     const vyre_compile_options *options,
                     vyre_diagnostics *findings, compiled_on *out,
                     vyre_status *st);
void compiled_on_finish(compiled_on *on);

#endif
