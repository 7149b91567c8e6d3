/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flags of `vyre generate` for features that a device lacks. */
#ifndef VYRE_TOOLS_COMMANDS_GENERATE_FLAGS_H
#define VYRE_TOOLS_COMMANDS_GENERATE_FLAGS_H

#include "vyre/random_program.h"

#include "cli/sink.h"

/* Writes " --no-f64 --only-add64" for the restrictions in @p options that
 * vyre_random_program_options_fit sets. */
static inline void put_generate_flags(
    const vyre_random_program_options *options, sink *out) {
  if (options->no_f64) sink_text(out, " --no-f64");
  if (options->no_int64) sink_text(out, " --no-int64");
  if (options->no_atomics64) sink_text(out, " --no-atomics64");
  if (options->only_add64) sink_text(out, " --only-add64");
}

#endif
