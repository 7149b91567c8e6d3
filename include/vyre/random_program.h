/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/random_program.h
 *  Random programs with data and a grid, for tests of devices. They cover
 *  every operation on every type.
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
 *  A random program is valid (vyre_program_validate) and deterministic: it has
 *  no races, and no output depends on the order of atomics. If two devices
 *  give different results, one of them is wrong. Every computed value
 *  contributes to an output. The same options give the same program and data
 *  on every machine, but not in every version of vyre. */
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

/** Options of a random program. Zeroed: seed 0, and all features except
 *  mathematical functions. */
typedef struct vyre_random_program_options {
  uint64_t seed; /* seed of the program and its data */
  /* Approximate number of statements, at most 1000; 0: 24. */
  uint32_t statements;
  uint32_t max_invocations; /* maximum invocations of the dispatch; 0: 256 */
  bool no_f64;              /* no f64 */
  bool no_int64;            /* no u64 and i64 */
  bool no_narrow;           /* no elements below 32 bits, except bool */
  bool no_shared;           /* no shared buffers */
  bool no_barriers;         /* no barrier() and uniform() */
  bool no_grid_barriers;    /* no grid_barrier() */
  bool no_atomics;          /* no atomics */
  bool no_atomics64;        /* no atomics on u64 and i64 */
  bool no_out_of_range;     /* no accesses outside buffers */
  bool no_loops;            /* no loops */
  bool no_functions;        /* no functions */
  bool has_math; /* mathematical functions: exp, sin, pow and so on */
  /* Atomics on u64 and i64 are limited to atomic_add with an unused result,
   * which devices without 64-bit atomics support. */
  bool only_add64;
  uint64_t reserved[4]; /* must be zero */
} vyre_random_program_options;

/** Random program with its data. Immutable. Threads: safe. */
typedef struct vyre_random_program vyre_random_program;

VYRE_BEGIN

/** Creates the random program of @p options (NULL: zeroed).
 *  Ownership: on VYRE_OK the caller owns *out (vyre_random_program_release).
 *             On failure *out is NULL.
 *  Lifetime:  @p options is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_ARGUMENT for more than 1000 statements or 65536
 *             invocations; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_random_program_create(
    const vyre_random_program_options *options, vyre_allocator allocator,
    vyre_random_program **out, vyre_status *st);

/** Disables features in @p options that a device with @p caps does not
 *  support: f64, u64 and i64, 64-bit atomics other than atomic_add with an
 *  unused result, and large workgroups. A device that supports everything gets
 *  the same programs as "ref". Does nothing for a NULL argument.
 *  Ownership: borrows all arguments.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_random_program_options_fit(
    vyre_random_program_options *options, const vyre_device_caps *caps);

/** Frees a random program. Its vyre_program stays valid if it was retained.
 *  Accepts NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API void vyre_random_program_release(vyre_random_program *generated);

/** Returns the program. Owned by @p generated; retain it to keep it longer.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_program *vyre_random_program_program(
    const vyre_random_program *generated);

/** Returns the grid to dispatch, in workgroups in x, y and z. Owned by @p
 *  generated.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const uint32_t *vyre_random_program_grid(
    const vyre_random_program *generated);

/** Returns the inputs, in input order of the binding plan, and stores their
 *  number in *count. Owned by @p generated.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_input *vyre_random_program_inputs(
    const vyre_random_program *generated, size_t *count);

/** Returns the sizes of the outputs, in output order of the binding plan, and
 *  stores their number in *count. Their data is NULL: copy the array and set
 *  the data pointers. Owned by @p generated.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_output *vyre_random_program_outputs(
    const vyre_random_program *generated, size_t *count);

VYRE_END

#endif
