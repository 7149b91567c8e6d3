/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Statements without a body, and the choice of the next statement. */
#include <stdio.h>

#include "generate/internal.h"

void gen_register(gen *g, vyre_variable variable, vyre_type type,
                  gen_level level, bool is_assignable) {
  /* not registered, so never used again */
  if (g->local_count == GEN_LOCALS) return;
  g->locals[g->local_count++] = (gen_local){.variable = variable,
                                            .type = type,
                                            .level = level,
                                            .is_assignable = is_assignable};
}

const char *gen_name(gen *g, char letter, char out[16]) {
  snprintf(out, 16, "%c%u", letter, (unsigned)g->name_count++);
  return out;
}

void gen_mix(gen *g, vyre_value bits) {
  vyre_value product =
      vyre_build_binary(g->b, VYRE_OP_MUL, vyre_build_get(g->b, g->sink),
                        vyre_build_u32(g->b, 0x01000193u));
  vyre_build_assign(g->b, g->sink,
                    vyre_build_binary(g->b, VYRE_OP_XOR, product, bits));
}

void gen_mix_locals(gen *g, uint32_t first) {
  for (uint32_t i = first; i < g->local_count; i++) {
    if (!g->locals[i].is_counter) gen_mix(g, gen_digest(g, &g->locals[i]));
  }
}

static int pick_depth(gen *g) {
  return 2 + (int)gen_below(g, 3);
}

/* Picks the level of a named value: under divergent control, no value is
 * uniform. */
static gen_level pick_level(gen *g) {
  if (gen_can_exchange(g) && gen_chance(g, 30)) return GEN_SUBGROUP;
  if (g->function || g->control > GEN_GROUP || gen_chance(g, 70)) {
    return GEN_VARYING;
  }
  return gen_chance(g, 50) ? GEN_GROUP : g->control;
}

static void declare(gen *g) {
  char name[16];
  vyre_type type = gen_type(g);
  bool is_mutable = gen_chance(g, 40);
  gen_level level = is_mutable ? GEN_VARYING : pick_level(g);
  vyre_value value = gen_value(g, type, pick_depth(g), level);
  vyre_variable variable =
      is_mutable ? vyre_build_var(g->b, gen_name(g, 'v', name), value)
                 : vyre_build_let(g->b, gen_name(g, 'a', name), value);
  gen_register(g, variable, type, level, is_mutable);
}

static void assign(gen *g) {
  const gen_local *found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->local_count; i++) {
    if (!g->locals[i].is_assignable) continue;
    if (gen_below(g, ++seen) == 0) found = &g->locals[i];
  }
  if (!found) {
    declare(g);
    return;
  }
  if (gen_chance(g, 40)) gen_mix(g, gen_digest(g, found));
  vyre_build_assign(g->b, found->variable,
                    gen_value(g, found->type, pick_depth(g), GEN_VARYING));
}

/* Builds a store or an atomic. */
static void access(gen *g) {
  const gen_buffer *found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->buffer_count && !g->function; i++) {
    const gen_buffer *b = &g->buffers[i];
    if (!gen_can_store(b) && (b->kind < GEN_RW || b->mode != GEN_ATOMIC)) {
      continue;
    }
    if (gen_below(g, ++seen) == 0) found = b;
  }
  if (!found) {
    assign(g);
  } else if (found->mode == GEN_ATOMIC) {
    gen_atomic(g, found, pick_depth(g));
  } else {
    gen_store(g, found, pick_depth(g));
  }
}

static void block(gen *g) {
  uint32_t first = g->local_count;
  g->nesting++;
  vyre_build_block(g->b);
  gen_statements(g, 1 + gen_below(g, 3));
  gen_mix_locals(g, first);
  vyre_build_end(g->b);
  g->local_count = first;
  g->nesting--;
}

void gen_barrier(gen *g, bool is_grid) {
  if (g->fault != VYRE__FAULT_BARRIER) {
    if (is_grid) {
      vyre_build_grid_barrier(g->b);
    } else {
      vyre_build_barrier(g->b);
    }
  }
  g->barriers++;
  gen_change_modes(g, is_grid);
}

static void statement(gen *g) {
  uint32_t pick = gen_below(g, 100);
  bool nests = g->nesting < GEN_NESTING && g->budget > 0;
  bool waits = g->may_wait && g->control <= GEN_GROUP &&
               !g->options.no_barriers && !g->function;
  g->budget--;
  if (pick < 20 || (pick >= 97 && nests && !waits)) {
    declare(g);
  } else if (pick < 38) {
    assign(g);
  } else if (pick < 60 || !nests) {
    access(g);
  } else if (pick < 78) {
    gen_if(g);
  } else if (pick < 88) {
    gen_for(g);
  } else if (pick < 94) {
    gen_while(g);
  } else if (pick < 97) {
    block(g);
  } else {
    gen_barrier(g, false);
  }
}

void gen_statements(gen *g, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) statement(g);
}
