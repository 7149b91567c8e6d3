/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/compile_kernel.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/stopwatch.h"

/* Prints a note if auto falls back to ref, for example because the device
 * lacks print(...) or a library. A device is never changed silently. */
static void tell_ref(const char *what, const char *why) {
  sink out = {0};
  if (strncmp(why, "auto: ", 6) == 0) why += 6;
  sink_format(&out, "note: %s ref: %s\n", what, why);
  write_all(STDERR_FILENO, out.data, out.length);
  sink_deinit(&out);
}

static bool is_on_ref(const compiled_on *on) {
  return on->device && strcmp(vyre_device_name(on->device), "ref") == 0;
}

static vyre_code try_on(vyre_context *context, const char *backend,
                        vyre_package *package, vyre_program *program,
                        const vyre_compile_options *options,
                        vyre_diagnostics *findings, compiled_on *out,
                        vyre_status *st) {
  vyre_code code = vyre_device_open(context, backend, &out->device, st);
  if (code != VYRE_OK) return code;
  uint64_t start = stopwatch_ns();
  const vyre_load_options load = {.compile = *options};
  code = package ? vyre_pipeline_load(out->device, package,
                                      vyre_program_name(program), &load,
                                      &out->pipeline, st)
                 : vyre_pipeline_compile(out->device, program, options,
                                         &out->pipeline, findings, st);
  out->compile_ns = stopwatch_ns() - start;
  return code;
}

vyre_code compile_on(vyre_context *context, const char *backend,
                     const char *what, vyre_package *package,
                     vyre_program *program, const vyre_compile_options *options,
                     vyre_diagnostics *findings, compiled_on *out,
                     vyre_status *st) {
  bool is_auto = strcmp(backend, "auto") == 0;
  vyre_code code =
      try_on(context, backend, package, program, options, findings, out, st);
  /* A device without memory for its compiler counts as missing. */
  bool is_refused = code == VYRE_UNSUPPORTED_FEATURE ||
                    (code == VYRE_OUT_OF_MEMORY && st->field &&
                     strcmp(st->field, "llvm") == 0) ||
                    (code != VYRE_OK && st->kind == VYRE_KIND_NOT_SUPPORTED);
  bool may_fall_back = vyre_context_option(context, "ref", "fallback", 1) != 0;
  if (is_auto && is_refused && out->device && !is_on_ref(out) &&
      may_fall_back) {
    tell_ref(what, st->message);
    (void)snprintf(out->why_ref, sizeof out->why_ref, "auto: %s", st->message);
    vyre_device_release(out->device);
    code = try_on(context, "ref", package, program, options, findings, out, st);
  } else if (is_auto && is_on_ref(out)) {
    tell_ref(what, vyre_device_selection_reason(out->device));
  }
  return code;
}

void compiled_on_deinit(compiled_on *on) {
  vyre_pipeline_release(on->pipeline);
  vyre_device_release(on->device);
  *on = (compiled_on){.device = NULL};
}
