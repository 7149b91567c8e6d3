/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Statements with a condition: if, for, while, and the jumps in them. */
#include "generate/internal.h"

/* State around a statement, restored after its body. */
typedef struct place {
  gen_level control;
  bool is_certain;
  uint32_t local_count, cost;
  const gen_loop *loop;
} place;

static place enter(gen *g, gen_level level) {
  place here = {g->control, g->is_certain, g->local_count, g->cost, g->loop};
  if (level > g->control) g->control = level;
  g->is_certain = false;
  g->nesting++;
  return here;
}

static void leave(gen *g, const place *to) {
  g->control = to->control;
  g->is_certain = to->is_certain;
  g->local_count = to->local_count;
  g->cost = to->cost;
  g->loop = to->loop;
  g->nesting--;
}

/* Returns true if barriers are allowed here. */
static bool can_wait(const gen *g) {
  return g->may_wait && g->control <= GEN_GROUP && !g->function &&
         !g->options.no_barriers;
}

/* --- if --------------------------------------------------------------------*/

/* Modes of all buffers, restored at the start of another arm. */
typedef struct modes {
  gen_mode mode[GEN_BUFFERS];
  vyre_op atomic[GEN_BUFFERS];
} modes;

static modes save_modes(const gen *g) {
  modes saved;
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    saved.mode[i] = g->buffers[i].mode;
    saved.atomic[i] = g->buffers[i].atomic;
  }
  return saved;
}

static void restore_modes(gen *g, const modes *saved) {
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    g->buffers[i].mode = saved->mode[i];
    g->buffers[i].atomic = saved->atomic[i];
  }
}

/* Ends an arm, sometimes with a jump. */
static void jump(gen *g) {
  if (g->loop && g->control <= g->loop->level && gen_chance(g, 30)) {
    if (gen_chance(g, 50)) {
      vyre_build_break(g->b);
    } else {
      vyre_build_continue(g->b);
    }
  } else if ((g->function || g->may_return) && gen_chance(g, 12)) {
    gen_return(g);
  }
}

static void arm(gen *g, bool may_jump) {
  uint32_t first = g->local_count;
  gen_statements(g, 1 + gen_below(g, 3));
  gen_mix_locals(g, first);
  if (may_jump) jump(g);
  g->local_count = first;
}

void gen_if(gen *g) {
  bool waits = can_wait(g) && gen_chance(g, 35);
  gen_level level = GEN_VARYING;
  if (waits) {
    level = gen_chance(g, 60) ? GEN_GROUP : GEN_GRID;
  } else if (gen_can_exchange(g) && gen_chance(g, 60)) {
    level = GEN_SUBGROUP;
  }
  modes before = save_modes(g);
  uint32_t barriers = g->barriers;
  vyre_build_if(g->b, gen_value(g, VYRE_TYPE_BOOL, 3, level));
  place here = enter(g, level);
  bool has_else = gen_chance(g, 50);
  bool then_jumps = gen_chance(g, 60); /* otherwise the other arm may */
  if (waits && gen_chance(g, 60)) gen_barrier(g, false);
  arm(g, then_jumps);
  if (has_else) {
    restore_modes(g, &before);
    vyre_build_else(g->b);
    arm(g, !then_jumps);
  }
  vyre_build_end(g->b);
  leave(g, &here);
  restore_modes(g, &before);
  if (g->barriers != barriers) gen_barrier(g, false);
}

/* --- for -------------------------------------------------------------------*/

static bool is_up(vyre_op op) {
  return op == VYRE_OP_LT || op == VYRE_OP_LE;
}

/* Returns the largest or the smallest number of a type. */
static uint64_t last_of(vyre_type type, bool up) {
  static const uint64_t largest[VYRE_TYPE_COUNT] = {
      [VYRE_TYPE_U32] = UINT32_MAX,
      [VYRE_TYPE_I32] = INT32_MAX,
      [VYRE_TYPE_U64] = UINT64_MAX,
      [VYRE_TYPE_I64] = INT64_MAX};
  bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  if (up) return largest[type];
  return is_signed ? largest[type] + 1 : 0;
}

/* Rarely 0. */
static uint32_t pick_trip_count(gen *g) {
  return gen_chance(g, 10) ? 0 : 1 + gen_below(g, GEN_MAX_ITERATIONS - 1);
}

/* Builds the header of a `for` with at most GEN_MAX_ITERATIONS iterations. */
static vyre_variable for_head(gen *g, gen_level level, vyre_type *type) {
  char name[16];
  vyre_op op = (vyre_op)(VYRE_OP_LT + gen_below(g, 4));
  bool up = is_up(op);
  *type = gen_integer(g);
  uint64_t iterations = pick_trip_count(g);
  uint64_t first = gen_below(g, 4), step = 1 + gen_below(g, 3);
  vyre_value bound;
  if (gen_chance(g, 20)) { /* up to the last number of the type */
    first = last_of(*type, up) - (up ? iterations : 0 - iterations);
    bound = gen_literal(g, *type, last_of(*type, up));
  } else if (gen_chance(g, 50)) {
    bound = gen_literal(g, *type, up ? first + iterations : first - iterations);
  } else {
    vyre_value distance = gen_value(g, VYRE_TYPE_U32, 2, level);
    distance = vyre_build_binary(g->b, VYRE_OP_REM, distance,
                                 vyre_build_u32(g->b, 2 + gen_below(g, 4)));
    if (*type != VYRE_TYPE_U32) {
      distance = vyre_build_cast(g->b, *type, distance);
    }
    bound = vyre_build_binary(g->b, up ? VYRE_OP_ADD : VYRE_OP_SUB,
                              gen_literal(g, *type, first), distance);
  }
  return vyre_build_for(g->b, gen_name(g, 'k', name),
                        gen_literal(g, *type, first), op, bound,
                        gen_literal(g, *type, step));
}

/* Builds the body of a loop after its header, and the barrier after it if the
 * body contains barriers. */
static void body(gen *g, const place *here, bool waits, bool is_grid) {
  gen_loop loop = {g->control <= GEN_SUBGROUP ? GEN_SUBGROUP : GEN_VARYING};
  if (waits) loop.level = is_grid ? GEN_GRID : GEN_GROUP;
  uint32_t first = g->local_count;
  g->loop = &loop;
  g->cost *= GEN_MAX_ITERATIONS;
  gen_statements(g, 1 + gen_below(g, 4));
  if (waits && gen_chance(g, 50)) {
    gen_barrier(g, is_grid && gen_chance(g, 50));
    gen_statements(g, 1 + gen_below(g, 2));
  }
  gen_mix_locals(g, first);
  vyre_build_end(g->b);
  leave(g, here);
  if (waits) gen_barrier(g, is_grid);
}

static bool can_loop(const gen *g) {
  return !g->options.no_loops && g->cost * GEN_MAX_ITERATIONS <= GEN_COST;
}

void gen_for(gen *g) {
  if (!can_loop(g)) {
    gen_statements(g, 1);
    return;
  }
  bool waits = can_wait(g) && gen_chance(g, 40);
  bool is_grid = waits && g->control == GEN_HOST &&
                 !g->options.no_grid_barriers && gen_chance(g, 40);
  gen_level level = is_grid ? GEN_HOST : waits ? GEN_GROUP : GEN_VARYING;
  if (!waits && gen_can_exchange(g) && gen_chance(g, 50)) level = GEN_SUBGROUP;
  vyre_type type;
  vyre_variable counter = for_head(g, level, &type);
  place here = enter(g, level);
  gen_register(g, counter, type, level, false);
  if (waits) gen_barrier(g, is_grid);
  body(g, &here, waits, is_grid);
}

/* --- while -----------------------------------------------------------------*/

/* Counts, so that the loop ends; the counter is incremented first because of
 * `continue`. */
void gen_while(gen *g) {
  if (!can_loop(g)) {
    gen_statements(g, 1);
    return;
  }
  char name[16];
  bool waits = can_wait(g) && gen_chance(g, 30);
  vyre_variable counter =
      vyre_build_var(g->b, gen_name(g, 'n', name), vyre_build_u32(g->b, 0));
  gen_level level = waits ? GEN_GROUP : GEN_VARYING;
  if (!waits && gen_can_exchange(g) && gen_chance(g, 50)) level = GEN_SUBGROUP;
  place here = enter(g, level);
  vyre_value more =
      vyre_build_binary(g->b, VYRE_OP_LT, vyre_build_get(g->b, counter),
                        vyre_build_u32(g->b, pick_trip_count(g)));
  if (!waits) {
    vyre_value condition = gen_value(g, VYRE_TYPE_BOOL, 2, level);
    more = vyre_build_binary(g->b, VYRE_OP_LAND, more, condition);
  }
  vyre_build_while(g->b, more);
  vyre_build_assign(
      g->b, counter,
      vyre_build_binary(g->b, VYRE_OP_ADD, vyre_build_get(g->b, counter),
                        vyre_build_u32(g->b, 1)));
  gen_register(g, counter, VYRE_TYPE_U32, GEN_VARYING, false);
  if (waits) gen_barrier(g, false);
  body(g, &here, waits, false);
}
