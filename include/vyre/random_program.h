/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/generate.h
 *  Random programs, for tests of devices: every operation on every type, with
 *  data and a grid, ready to run.
 *
 *      vyre_random_program_options options = {.seed = 42};
 *      vyre_random_program *g;
 *      vyre_random_program_create(&options, (vyre_allocator){0}, &g, &st);
 *      vyre_pipeline_compile(device, vyre_random_program_program(g), ...);
 *      vyre_dispatch_desc desc = {0};
 *      desc.inputs = vyre_random_program_inputs(g, &desc.input_count);
 *      memcpy(desc.grid, vyre_random_program_grid(g), sizeof desc.grid);
 *      ... memory for vyre_random_program_outputs(g, &desc.output_count) ...
 *
 *  A program is valid (vyre_program_validate) and deterministic: no races, and
 *  no output depends on the order of atomics. So it has one result, and two
 *  devices that differ are a fault of one of them. What is computed ends up in an
 *  output. The same options give the same program and data on every machine;
 *  another version of vyre may give others. */
#ifndef VYRE_RANDOM_PROGRAM_H
#define VYRE_RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** What to generate. Zeroed: seed 0, everything but math. */
typedef struct vyre_random_program_options {
  uint64_t seed;
  uint32_t statements;      /* about how many; 0: 24. Most: 1000 */
  uint32_t max_invocations; /* of the dispatch; 0: 256 */
  bool no_f64;
  bool no_int64;         /* u64 and i64 */
  bool no_narrow;        /* elements below 32 bits, but for bool */
  bool no_shared;        /* shared buffers */
  bool no_barriers;      /* barrier() and uniform() */
  bool no_grid_barriers; /* grid_barrier() */
  bool no_atomics;
  bool no_atomics64;    /* atomics on u64 and i64 */
  bool no_out_of_range; /* no access leaves its buffer */
  bool no_loops;
  bool no_functions;
  bool has_math; /* exp, sin, pow and so on, as far as the language has them */
  bool only_add64; /* of atomics on u64 and i64, only atomic_add whose result is
                      not used: what a device without 64-bit atomics runs */
} vyre_random_program_options;

/** A program with its data. Immutable. Threads: safe. */
typedef struct vyre_random_program vyre_random_program;

VYRE_BEGIN

/** Makes the program of @p options (NULL: zeroed).
 *  Ownership: on VYRE_OK the caller owns *out (vyre_random_program_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p options is borrowed for the call.
 *  Threads:   safe.          Blocks: on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT for more than 1000 statements or 65536
 *             invocations; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_random_program_create(
    const vyre_random_program_options *options, vyre_allocator allocator,
    vyre_random_program **out, vyre_status *st);

/** Takes out of @p options what a device with @p caps lacks, so that it runs every
 *  program they give: f64, u64 and i64, 64-bit atomics but for atomic_add whose
 *  result is not used, and workgroups that are too large. Other options stay as
 *  they are. A device that lacks nothing gets the programs that ref gets.
 *  Ownership: borrows all.  Threads: safe.  Blocks: never.
 *  Errors:    none; a NULL changes nothing. */
VYRE_API void vyre_random_program_options_fit(
    vyre_random_program_options *options, const vyre_device_caps *caps);

/** Frees it; a program that was retained lives on. NULL is fine.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_random_program_release(vyre_random_program *generated);

/** The program. The generated's: retain it to keep it longer.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_random_program_program(
    const vyre_random_program *generated);

/** The workgroups to dispatch in x, y, z: three numbers, the generated's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_random_program_grid(
    const vyre_random_program *generated);

/** The inputs, in the order in which a dispatch takes them; *count is their
 *  number. The generated's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_input *vyre_random_program_inputs(
    const vyre_random_program *generated, size_t *count);

/** The sizes of the outputs, in the order in which a dispatch takes them; *count
 *  is their number. Their data is NULL: copy the array and put memory in. The
 *  generated's.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_output *vyre_random_program_outputs(
    const vyre_random_program *generated, size_t *count);

VYRE_END

#endif
