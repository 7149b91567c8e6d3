/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Side effects and size of the functions of a program. */
#ifndef VYRE_ANALYZE_EFFECTS_H
#define VYRE_ANALYZE_EFFECTS_H

#include "vyre/status.h"

#include "ir/ir.h"

typedef struct vyre__function_effects {
  uint8_t flags;          /* VYRE__OPF_*, of its own nodes and of its callees */
  uint8_t own_flags;      /* the same for its own nodes only */
  bool has_uniform;       /* this function or a callee uses uniform(expr) */
  bool has_exchange;      /* the same for operations of a subgroup */
  bool has_id;            /* ... an id of the invocation */
  bool has_workgroup_id;  /* ... workgroup_id */
  uint32_t depth;         /* nesting of its own nodes */
  uint32_t loops;         /* its own */
  uint32_t loop_depth;    /* nesting of its own loops */
  uint64_t nodes;         /* its own */
  uint32_t around;        /* nesting that inlining adds around it */
  uint64_t inlined_nodes; /* including its calls; saturates */
  uint64_t inlined_depth; /* depth including its calls; an upper limit */
} vyre__function_effects;

typedef struct vyre__effects {
  const vyre__function_effects *functions; /* same order as in the program */
  const uint32_t *order;  /* all functions, callees before their callers */
  const uint8_t *buffers; /* per buffer: READS, WRITES, ATOMICS of the kernel */
} vyre__effects;

/* Computes the effects. *out lives in @p arena. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__effects_build(const vyre_program *program, vyre_arena *arena,
                              vyre__effects *out, vyre_status *st);

#endif
