/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lowered kernel as plain C11.
 *
 * One file that needs nothing of vyre: a launch block, a function for each phase
 * that runs a range of workgroups, and one that runs the whole dispatch. It is
 * made to be read, and so that compilers turn the loop over the invocations in x
 * into vectors. */
#ifndef VYRE_CODEGEN_C_C_H
#define VYRE_CODEGEN_C_C_H

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"

/* Zeroed: the names of the kernel, with source lines. */
typedef struct vyre__emit_c_options {
  const char *name;         /* of the functions; NULL: the kernel's */
  bool no_lines;            /* no comments with source lines */
  bool no_strips;           /* rare paths stay where they are */
  bool no_full;             /* no second copy for rows that are all inside */
  vyre_allocator allocator; /* for the time of the call; zeroed: the heap */
} vyre__emit_c_options;

/* Writes @p kernel, which all passes have seen, to @p writer. For kernel `saxpy`:
 *
 *   typedef struct { void *data[3]; uint32_t len[3]; uint32_t grid[3];
 *                    uint64_t fuel; uint64_t loop_value[1]; } saxpy_launch;
 *   int saxpy_phase0(const saxpy_launch *launch, uint64_t first_group,
 *                    uint64_t group_count, void *scratch);
 *   extern const uint64_t saxpy_scratch[1];
 *   int saxpy(const saxpy_launch *launch);
 *
 * data and len have the buffers in the kernel's order, hidden ones too, shared
 * ones left out; at least one entry. Workgroups are counted with x fastest. Both
 * functions return 0, or 1 when out of fuel. saxpy() returns 2, and does nothing,
 * if ids would not fit in 32 bits or workgroups not in 64, if a buffer has fewer
 * elements than the program fixes, or more than can be indexed where it is accessed
 * by halves, or if the hidden buffer has no room for all invocations; whoever runs phases has to ask
 * that before (lir.h, "for who launches a kernel"). scratch: saxpy_scratch[phase]
 * bytes for the time of the call, aligned to 64; NULL if that is 0.
 * A load of memory that may change, whose value decides about an index, happens
 * once, and saxpy() copies uniforms: whatever other threads write, the kernel stays
 * inside of its buffers. A program that runs phases by itself copies uniforms, too.
 * Same kernel and options, same bytes.
 * Errors: VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT if an operation is left that
 * has no spelling; VYRE_UNSUPPORTED_FEATURE if narrow elements are accessed as
 * words; VYRE_KIND_WRITER_REFUSED if the writer refused. */
VYRE_NODISCARD vyre_code vyre__emit_c(const vyre__lir_kernel *kernel,
                                      const vyre__emit_c_options *options,
                                      vyre_writer writer, vyre_status *st);

#endif
