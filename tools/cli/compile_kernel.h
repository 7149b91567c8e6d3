/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens a device and compiles a kernel for it, or loads it from a package. "auto" falls back to ref,
 * with a note, if the device that it selects cannot compile the kernel. */
#ifndef VYRE_TOOLS_CLI_COMPILE_KERNEL_H
#define VYRE_TOOLS_CLI_COMPILE_KERNEL_H

#include "vyre/package.h"
#include "vyre/pipeline.h"

typedef struct compiled_on {
  vyre_device
      *device; /* set even if compiling failed; NULL: no device opened */
  vyre_pipeline *pipeline;
  char why_ref[400]; /* why ref is used; "" if it is not a fallback */
  uint64_t compile_ns;
} compiled_on;

/* Opens and compiles. With @p package, which has @p program, loads its code
 * instead. @p what starts the note on standard error: "this runs
 * on". *out must be zeroed; compiled_on_finish releases it, after a failure
 * too. */
vyre_code compile_on(vyre_context *context, const char *backend,
                     const char *what, vyre_package *package,
                     vyre_program *program, const vyre_compile_options *options,
                     vyre_diagnostics *findings, compiled_on *out,
                     vyre_status *st);
void compiled_on_deinit(compiled_on *on);

#endif
