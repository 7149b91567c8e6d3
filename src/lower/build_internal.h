/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LOWER_BUILD_INTERNAL_H
#define VYRE_LOWER_BUILD_INTERNAL_H

#include "lower/build.h"
#include "lower/trip_count.h"

/* State of one function while it is written. */
typedef struct build {
  vyre__lir_writer *lir;
  const vyre_program *program; /* the user's program, or a library */
  const vyre__function *function;
  const vyre__ranges *ranges;          /* NULL in libraries */
  const vyre__trip_count *trip_counts; /* per node; NULL without loops */
  bool counts_iterations;
  uint32_t counted;  /* enclosing loops that charge the iterations of this
                      * one */
  vyre__val *values; /* per local: its value; for a `var`: variable index + 1 */
  vyre__val result;  /* library: value of the RETURN */
  bool is_library;
  bool has_left; /* the rest of this block is unreachable */
} build;

static inline const vyre__node *node_of(const build *b, vyre__id id) {
  return &b->program->nodes[id];
}

/* Returns the LIR operation for @p op on values of @p type; NONE if it takes
 * more than one. */
vyre__lir_op build_operation(vyre__op op, unsigned type);

vyre__val build_value(build *b, vyre__id id);
void build_statement(build *b, vyre__id id);

/* Returns the condition for the IF of guard @p id: @p condition itself, or, if
 * it reads racy memory, a value that the workgroup agrees on. */
vyre__val build_guard(build *b, vyre__id id, vyre__val condition);

/* Functions of several operations (build_function.c), by number of operands.
 * @p from is the type of the operands. */
vyre__val build_function1(vyre__lir_writer *lir, const vyre__node *node,
                          vyre__val a);
vyre__val build_function2(vyre__lir_writer *lir, const vyre__node *node,
                          vyre_type from, vyre__val a, vyre__val b);
vyre__val build_function3(vyre__lir_writer *lir, const vyre__node *node,
                          vyre__val a, vyre__val b, vyre__val c);
vyre__val build_insert(vyre__lir_writer *lir, vyre_type type, vyre__val x,
                       vyre__val y, vyre__val from, vyre__val count);

/* Memory accesses (build_memory.c). */
vyre__val build_load(build *b, vyre__id id);
void build_store(build *b, vyre__id id);
vyre__val build_atomic(build *b, vyre__id id);
vyre__val build_uniform(build *b, vyre__id id);
void build_buffers(vyre__lir_writer *lir);

/* Fails because a statement cannot be compiled. Only the first failure is
 * reported. */
void build_reject(build *b, vyre__id id, const char *feature);

#endif
