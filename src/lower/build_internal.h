/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_LOWER_BUILD_INTERNAL_H
#define VYRE_LOWER_BUILD_INTERNAL_H

#include "lower/build.h"
#include "lower/trip_count.h"

/* One function that is being written. */
typedef struct build {
  vyre__lir_writer *low;
  const vyre_program *program; /* the user's, or a library */
  const vyre__function *function;
  const vyre__ranges *ranges;     /* NULL in libraries */
  const vyre__trip_count *rounds; /* of nodes; NULL: there are no loops */
  bool counts_rounds;
  uint32_t counted;  /* loops around that count the rounds of those inside */
  vyre__val *values; /* per local: its value; for a `var`, variable + 1 */
  vyre__val result;  /* what RETURN gave, in a library */
  bool is_library;
  bool has_left; /* the rest of this block is not reached */
} build;

vyre__val build_value(build *b, vyre__id id);
void build_statement(build *b, vyre__id id);

/* Returns what the IF for guard @p id tests: its condition, or what the workgroup
 * agrees on if that is unsteady. */
vyre__val build_guard(build *b, vyre__id id, vyre__val condition);

/* Memory: build_memory.c. */
vyre__val build_load(build *b, vyre__id id);
void build_store(build *b, vyre__id id);
vyre__val build_atomic(build *b, vyre__id id);
vyre__val build_uniform(build *b, vyre__id id);
void build_buffers(vyre__lir_writer *low);

/* What cannot be lowered: the first one counts. */
void build_refuse(build *b, vyre__id id, const char *what);

#endif
