/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Explains the choices that the CPU device made for a kernel. */
#ifndef VYRE_BACKEND_CPU_EXPLAIN_H
#define VYRE_BACKEND_CPU_EXPLAIN_H

#include "vyre/writer.h"

#include "backend/cpu/cpu.h"
#include "spmd/cost/vector_width.h"

/* The compiled text of a kernel and its limits. */
typedef struct cpu_choice {
  const cpu_device *device;
  vyre__width_choice widths; /* estimates at all widths */
  uint32_t width;            /* width of the code */
  uint32_t fixed_width;      /* set by an option or by tuning; 0: chosen */
  bool is_compact;           /* printed without copies for special cases */
  bool is_baseline;          /* the text is too large for the optimised tier */
  size_t text, max_text;     /* bytes of LLVM IR; limit of the optimised tier */
} cpu_choice;

/* Prints the choice as text, or as one JSON object. Returns false if the writer
 * failed. */
bool cpu_explain(const cpu_choice *choice, bool json, vyre_writer writer);

#endif
