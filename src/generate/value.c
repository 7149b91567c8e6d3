/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random expressions. */
#include <string.h>

#include "generate/internal.h"

vyre_type gen_integer(gen *g) {
  return (vyre_type)(VYRE_TYPE_U32 + gen_below(g, g->options.no_int64 ? 2 : 4));
}

vyre_value gen_literal(gen *g, vyre_type type, uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float narrow;
  double wide;
  memcpy(&narrow, &low, sizeof narrow);
  memcpy(&wide, &bits, sizeof wide);
  switch (type) {
    case VYRE_TYPE_BOOL:
      return vyre_build_bool(g->b, low & 1);
    case VYRE_TYPE_U32:
      return vyre_build_u32(g->b, low);
    case VYRE_TYPE_I32:
      return vyre_build_i32(g->b, (int32_t)low);
    case VYRE_TYPE_U64:
      return vyre_build_u64(g->b, bits);
    case VYRE_TYPE_I64:
      return vyre_build_i64(g->b, (int64_t)bits);
    case VYRE_TYPE_F32:
      return vyre_build_f32(g->b, narrow);
    default:
      return vyre_build_f64(g->b, wide);
  }
}

vyre_value gen_number(gen *g, vyre_type type, uint32_t value) {
  return gen_literal(g, type, value);
}

static vyre_type unsigned_of(vyre_type type) {
  return gen_is_wide(type) ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
}

static vyre_value bits_of(gen *g, const gen_local *local) {
  vyre_value value = vyre_build_get(g->b, local->variable);
  vyre_type same = unsigned_of(local->type);
  return local->type == same ? value : vyre_build_bitcast(g->b, same, value);
}

vyre_value gen_digest(gen *g, const gen_local *local) {
  vyre_value value = vyre_build_get(g->b, local->variable);
  if (local->type == VYRE_TYPE_BOOL) {
    return vyre_build_cast(g->b, VYRE_TYPE_U32, value);
  }
  if (!gen_is_wide(local->type)) return bits_of(g, local);
  if (local->type == VYRE_TYPE_F64 && g->options.no_int64) {
    return vyre_build_bitcast(g->b, VYRE_TYPE_U32,
                              vyre_build_cast(g->b, VYRE_TYPE_F32, value));
  }
  vyre_value high = vyre_build_binary(g->b, VYRE_OP_SHR, bits_of(g, local),
                                      vyre_build_u32(g->b, 32));
  return vyre_build_cast(
      g->b, VYRE_TYPE_U32,
      vyre_build_binary(g->b, VYRE_OP_XOR, bits_of(g, local), high));
}

/* --- leaves ----------------------------------------------------------------*/

/* Returns a random local of that type, or NULL. */
static const gen_local *find_local(gen *g, vyre_type type, gen_level level) {
  const gen_local *found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->local_count; i++) {
    const gen_local *local = &g->locals[i];
    if (local->type != type || local->level > level) continue;
    if (gen_below(g, ++seen) == 0) found = local;
  }
  return found;
}

static vyre_value id_leaf(gen *g, gen_level level) {
  static const struct {
    vyre_op op;
    gen_level level;
  } ids[] = {{VYRE_OP_WORKGROUP_SIZE, GEN_GRID},
             {VYRE_OP_GRID_SIZE, GEN_GRID},
             {VYRE_OP_WORKGROUP_ID, GEN_GROUP},
             {VYRE_OP_LOCAL_ID, GEN_VARYING},
             {VYRE_OP_GLOBAL_ID, GEN_VARYING}};
  uint32_t count = 0;
  while (count < sizeof ids / sizeof ids[0] && ids[count].level <= level) {
    count++;
  }
  if (g->has_subgroups && level >= GEN_SUBGROUP && gen_chance(g, 30)) {
    const bool is_lane = level == GEN_VARYING && gen_chance(g, 50);
    return is_lane ? vyre_build_lane(g->b) : vyre_build_subgroup_id(g->b);
  }
  vyre_op op = ids[gen_below(g, count)].op;
  return vyre_build_id(g->b, op, gen_below(g, 3));
}

static vyre_value leaf(gen *g, vyre_type type, gen_level level) {
  if (gen_chance(g, 65)) {
    const gen_local *local = find_local(g, type, level);
    if (local) return vyre_build_get(g->b, local->variable);
  }
  if (type == VYRE_TYPE_U32 && level > GEN_HOST && gen_chance(g, 40)) {
    return id_leaf(g, level);
  }
  if (type == VYRE_TYPE_U32 && !g->function && gen_chance(g, 15)) {
    const gen_buffer *buffer = &g->buffers[gen_below(g, g->buffer_count)];
    return vyre_build_len(g->b, buffer->handle);
  }
  return gen_literal(g, type, gen_bits(g, type));
}

/* --- operations ------------------------------------------------------------*/

static bool is_lazy(vyre_op op) {
  return op == VYRE_OP_LAND || op == VYRE_OP_LOR || op == VYRE_OP_COND;
}

/* Returns true if uniform() is allowed here. */
static bool may_wait(const gen *g) {
  return g->may_wait && g->control <= GEN_GROUP && !g->function;
}

static bool is_shuffle(vyre_op op) {
  return op >= VYRE_OP_SHUFFLE && op <= VYRE_OP_SHUFFLE_DOWN;
}

static bool is_exchange(vyre_op op) {
  return is_shuffle(op) ||
         (op >= VYRE_OP_BALLOT && op <= VYRE_OP_SUBGROUP_SCAN_ADD_BEFORE);
}

/* Returns the level of the result of an operation of a subgroup. */
static gen_level exchange_level(vyre_op op) {
  const bool is_scan =
      op == VYRE_OP_SUBGROUP_SCAN_ADD || op == VYRE_OP_SUBGROUP_SCAN_ADD_BEFORE;
  return is_shuffle(op) || is_scan ? GEN_VARYING : GEN_SUBGROUP;
}

/* Builds the lane, distance or mask of a shuffle. */
static vyre_value shuffle_operand(gen *g, int depth) {
  if (gen_chance(g, 50)) return vyre_build_u32(g->b, gen_below(g, 40));
  return gen_value(g, VYRE_TYPE_U32, depth, GEN_VARYING);
}

static bool choose(gen *g, vyre_type type, gen_level level, gen_choice *out) {
  for (int tries = 0; tries < 4; tries++) {
    *out = g->choices[type][gen_below(g, g->choice_count[type])];
    if (is_exchange(out->op)) {
      if (gen_can_exchange(g) && level >= exchange_level(out->op)) return true;
      continue;
    }
    if (out->op != VYRE_OP_UNIFORM) return true;
    if (may_wait(g) && level >= GEN_GROUP) return true;
  }
  return false;
}

/* Builds a side of &&, || or ?:, which is not always evaluated. */
static vyre_value lazy_side(gen *g, vyre_type type, int depth,
                            gen_level level) {
  gen_level control = g->control;
  bool is_certain = g->is_certain;
  g->control = GEN_VARYING;
  g->is_certain = false;
  vyre_value value = gen_value(g, type, depth, level);
  g->control = control;
  g->is_certain = is_certain;
  return value;
}

/* Builds extract, or as often insert: it also takes a range of bits. */
static vyre_value bits(gen *g, vyre_type type, vyre_value a, vyre_value from,
                       int depth, gen_level level) {
  vyre_value count = gen_value(g, VYRE_TYPE_U32, depth, level);
  if (gen_chance(g, 50)) { /* mostly ranges inside the type */
    from = vyre_build_binary(g->b, VYRE_OP_REM, from, vyre_build_u32(g->b, 34));
    count =
        vyre_build_binary(g->b, VYRE_OP_REM, count, vyre_build_u32(g->b, 34));
  }
  if (gen_chance(g, 50)) {
    return vyre_build_ternary(g->b, VYRE_OP_EXTRACT, a, from, count);
  }
  vyre_value with = gen_value(g, type, depth, level);
  return vyre_build_insert(g->b, a, with, from, count);
}

static vyre_value operation(gen *g, vyre_type type, int depth,
                            gen_level level) {
  gen_choice c;
  if (!choose(g, type, level, &c)) return leaf(g, type, level);
  if (c.op == VYRE_OP_UNIFORM || is_exchange(c.op)) level = GEN_VARYING;
  bool chooses = c.op == VYRE_OP_SELECT || c.op == VYRE_OP_COND;
  vyre_type first = chooses ? VYRE_TYPE_BOOL : c.operand;
  vyre_value a = gen_value(g, first, depth, level), b, d;
  if (c.arity == 1) return vyre_build_unary(g->b, c.op, a);
  if (is_shuffle(c.op)) {
    b = shuffle_operand(g, depth);
    return vyre_build_binary(g->b, c.op, a, b);
  }
  if (is_lazy(c.op)) {
    b = lazy_side(g, c.operand, depth, level);
    if (c.arity == 2) return vyre_build_binary(g->b, c.op, a, b);
    d = lazy_side(g, c.operand, depth, level);
    return vyre_build_ternary(g->b, c.op, a, b, d);
  }
  bool is_bits = c.op == VYRE_OP_EXTRACT;
  bool is_shift =
      c.op == VYRE_OP_SHL || c.op == VYRE_OP_SHR || c.op == VYRE_OP_ROTATE;
  b = gen_value(g, is_shift || is_bits ? VYRE_TYPE_U32 : c.operand, depth,
                level);
  if (c.arity == 2) return vyre_build_binary(g->b, c.op, a, b);
  if (is_bits) return bits(g, type, a, b, depth, level);
  d = gen_value(g, c.operand, depth, level);
  return vyre_build_ternary(g->b, c.op, a, b, d);
}

static vyre_value conversion(gen *g, vyre_type type, int depth,
                             gen_level level) {
  vyre_type from = gen_type(g);
  if (type != VYRE_TYPE_BOOL && gen_chance(g, 50)) {
    for (int tries = 0; tries < 8; tries++) {
      bool fits = from != VYRE_TYPE_BOOL &&
                  gen_is_wide(from) == gen_is_wide(type) && from != type;
      if (fits) {
        return vyre_build_bitcast(g->b, type, gen_value(g, from, depth, level));
      }
      from = gen_type(g);
    }
  }
  return vyre_build_cast(g->b, type, gen_value(g, from, depth, level));
}

static vyre_value memory(gen *g, vyre_type type, int depth, gen_level level) {
  const gen_buffer *found = NULL;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    const gen_buffer *buffer = &g->buffers[i];
    if (buffer->type != type || !gen_can_load(buffer, level)) continue;
    if (gen_below(g, ++seen) == 0) found = buffer;
  }
  if (!found || g->function) return leaf(g, type, level);
  return gen_load(g, found, depth, level);
}

static vyre_value call(gen *g, vyre_type type, int depth, gen_level level) {
  for (uint32_t i = 0; i < g->function_count; i++) {
    const gen_function *f = &g->functions[i];
    bool fits = f->result == type && level == GEN_VARYING &&
                g->cost * f->cost <= GEN_COST;
    if (!fits || gen_chance(g, 30)) continue;
    vyre_value values[GEN_PARAMETERS];
    for (size_t k = 0; k < f->count; k++) {
      values[k] = gen_value(g, f->types[k], depth, level);
    }
    return vyre_build_call(g->b, f->handle, values, f->count);
  }
  return operation(g, type, depth, level);
}

vyre_value gen_value(gen *g, vyre_type type, int depth, gen_level level) {
  if (depth <= 0) {
    /* loads reveal more than literals */
    return gen_chance(g, 35) ? memory(g, type, 0, level) : leaf(g, type, level);
  }
  uint32_t pick = gen_below(g, 100);
  if (pick < 8 && depth < 2) return leaf(g, type, level);
  if (pick < 24) return memory(g, type, depth - 1, level);
  if (pick < 42) return conversion(g, type, depth - 1, level);
  if (pick < 48) return call(g, type, depth - 1, level);
  return operation(g, type, depth - 1, level);
}
