/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a LIR kernel as plain C11.
 *
 * The output is one file that does not depend on vyre: a launch block, a
 * function for each phase that runs a range of workgroups, and a function that
 * runs the full dispatch. It is meant to be readable, and compilers can
 * vectorise its loop over the invocations in x. */
#ifndef VYRE_CODEGEN_C_C_H
#define VYRE_CODEGEN_C_C_H

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"

/* Zeroed: names of the kernel, with source lines. */
typedef struct vyre__emit_c_options {
  const char *name;         /* name of the functions; NULL: the kernel's */
  bool no_lines;            /* no comments with source lines */
  bool no_strips;           /* rare paths are not separated */
  bool no_full;             /* no second copy for full rows */
  vyre_allocator allocator; /* used during the call; zeroed: the heap */
} vyre__emit_c_options;

/* Writes @p kernel, which must be fully lowered, to @p writer. For kernel
 * `saxpy`:
 *
 *   typedef struct { void *data[3]; uint32_t len[3]; uint32_t grid[3];
 *                    uint64_t fuel; uint64_t loop_value[1]; } saxpy_launch;
 *   int saxpy_phase0(const saxpy_launch *launch, uint64_t first_group,
 *                    uint64_t group_count, void *scratch);
 *   extern const uint64_t saxpy_scratch[1];
 *   int saxpy(const saxpy_launch *launch);
 *
 * data and len hold the buffers in the kernel's order, with the spill buffer,
 * without shared ones; at least one entry. Workgroups are numbered with x
 * fastest. Both functions return 0, or 1 if the fuel runs out. saxpy() returns
 * 2 and does nothing if the launch breaks a limit of lir.h ("limits of a
 * launch"): ids above 32 bits, more than 2^64 workgroups, a buffer with fewer
 * elements than the program declares or more than can be indexed, or a spill
 * buffer that is too small. A program that calls the phase functions itself
 * must check these limits.
 *
 * scratch must have saxpy_scratch[phase] bytes, aligned to 64, for the duration
 * of the call; NULL if that is 0.
 *
 * A load from memory that may change is executed exactly once if its value
 * influences an index, and saxpy() copies uniforms. The kernel therefore stays
 * within its buffers even if other threads write to them. A program that calls
 * the phase functions itself must copy uniforms too.
 *
 * Equal kernels and options give equal bytes.
 *
 * Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT if an operation is not
 * fully lowered; VYRE_UNSUPPORTED_FEATURE if narrow elements are accessed as
 * words; VYRE_KIND_WRITER_REFUSED if the writer failed. */
VYRE_NODISCARD vyre_code vyre__emit_c(const vyre__lir_kernel *kernel,
                                      const vyre__emit_c_options *options,
                                      vyre_writer writer, vyre_status *st);

#endif
