/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Buffers: their declarations, modes and indices. */
#include <stdio.h>

#include "generate/internal.h"
#include "ir/ir.h"

/* --- declarations ----------------------------------------------------------*/

static bool may_hold(const gen *g, vyre_element element) {
  vyre_type type = vyre__element_type(element);
  uint32_t size = vyre_element_size(element);
  if (type == VYRE_TYPE_F64) return !g->options.no_f64;
  if (gen_is_wide(type)) return !g->options.no_int64;
  return size >= 4 || element == VYRE_ELEMENT_BOOL || !g->options.no_narrow;
}

static vyre_element pick_element(gen *g, bool may_be_bytes) {
  for (;;) {
    vyre_element element = (vyre_element)gen_below(g, VYRE_ELEMENT_SUM_F32);
    if (element == VYRE_ELEMENT_BYTES && !may_be_bytes) continue;
    if (may_hold(g, element)) return element;
  }
}

static bool is_atomic_element(const gen *g, vyre_element element) {
  bool wide = element == VYRE_ELEMENT_U64 || element == VYRE_ELEMENT_I64;
  if (g->options.no_atomics || (wide && g->options.no_atomics64)) return false;
  return wide || element == VYRE_ELEMENT_U32 || element == VYRE_ELEMENT_I32;
}

/* Returns true if all atomics on the buffer are adds with unused results. */
static bool only_adds(const gen *g, const gen_buffer *b) {
  return gen_is_wide(b->type) && g->options.only_add64;
}

static vyre_memory_hints pick_hints(gen *g) {
  vyre_memory_hints hints = {0};
  if (gen_chance(g, 75)) return hints;
  hints.preferred_alignment = gen_chance(g, 50) ? 0 : 64u << gen_below(g, 3);
  hints.has_coalesce_axis = gen_chance(g, 50);
  if (hints.has_coalesce_axis) hints.coalesce_axis = (uint8_t)gen_below(g, 3);
  hints.cache_locality = (vyre_locality)gen_below(g, VYRE_LOCALITY_COUNT);
  return hints;
}

/* Returns the number of elements that invocations own: all, or slightly fewer
 * or more. */
static uint32_t owned_length(gen *g, uint32_t owners, uint32_t per) {
  uint32_t all = owners * per;
  if (g->options.no_out_of_range || gen_chance(g, 60)) return all;
  if (gen_chance(g, 50)) return all + 1 + gen_below(g, 9);
  return all - gen_below(g, owners < 6 ? owners : 6);
}

/* Chooses the number of elements. */
static void pick_length(gen *g, gen_buffer *b) {
  bool strict = g->options.no_out_of_range;
  switch (b->kind) {
    case GEN_INPUT:
      b->length = 1 + gen_below(g, 2 * g->invocations + 5);
      if (gen_chance(g, 30)) b->length = 1 + gen_below(g, 7);
      if (gen_chance(g, 30)) b->count = b->length;
      if (!strict && gen_chance(g, 6)) b->length = b->count = 0;
      break;
    case GEN_UNIFORM:
      b->length = b->count = gen_chance(g, 60) ? 1 : 2 + gen_below(g, 6);
      break;
    case GEN_SHARED:
      b->length = b->count = owned_length(g, g->group_size, b->per);
      break;
    default:
      b->length = owned_length(g, g->invocations, b->per);
      if (gen_chance(g, 25)) b->count = b->length;
      if (b->kind == GEN_RW && !strict && gen_chance(g, 3)) {
        b->length = b->count = 0;
      }
  }
}

static void declare(gen *g, gen_kind kind, vyre_element element) {
  static const char *const stems[] = {"in", "uni", "out", "rw", "sh"};
  static const vyre_memory kinds[] = {VYRE_MEMORY_GLOBAL, VYRE_MEMORY_UNIFORM,
                                      VYRE_MEMORY_GLOBAL, VYRE_MEMORY_GLOBAL,
                                      VYRE_MEMORY_SHARED};
  static const vyre_access accesses[] = {
      VYRE_ACCESS_READ, VYRE_ACCESS_UNIFORM, VYRE_ACCESS_WRITE,
      VYRE_ACCESS_READ_WRITE, VYRE_ACCESS_WORKGROUP};
  char name[16];
  uint32_t index = g->buffer_count++;
  gen_buffer *b = &g->buffers[index];
  *b = (gen_buffer){.kind = kind,
                    .element = element,
                    .type = vyre__element_type(element),
                    .per = 1,
                    .binding = (index * 7 + 3) % 31};
  if (kind >= GEN_OUT && gen_chance(g, 40)) b->per = 2 + gen_below(g, 2);
  b->is_strided = gen_chance(g, 40);
  b->is_readable = kind != GEN_OUT;
  pick_length(g, b);
  if (element == VYRE_ELEMENT_BYTES) b->count = 0;
  snprintf(name, sizeof name, "%s%u", stems[kind], (unsigned)index);
  vyre_buffer_decl decl = {.name = name,
                           .binding = kind == GEN_SHARED ? 0 : b->binding,
                           .kind = kinds[kind],
                           .access = accesses[kind],
                           .element = element,
                           .count = b->count,
                           .hints = pick_hints(g)};
  if (kind == GEN_OUT && gen_chance(g, 40)) {
    decl.is_output = true;
    if (gen_chance(g, 70)) decl.access = VYRE_ACCESS_READ_WRITE;
    b->is_readable = decl.access == VYRE_ACCESS_READ_WRITE;
  }
  b->handle = vyre_build_declare(g->b, &decl);
}

/* Half of the time an element type that atomics support. */
static vyre_element shared_element(gen *g) {
  vyre_element element = pick_element(g, false);
  for (int tries = 0; tries < 8 && gen_chance(g, 50); tries++) {
    if (is_atomic_element(g, element)) break;
    element = pick_element(g, false);
  }
  return element;
}

void gen_declare_buffers(gen *g) {
  uint32_t inputs = 2 + gen_below(g, 4), uniforms = 1 + gen_below(g, 3);
  uint32_t outs = 1 + gen_below(g, 3), rws = gen_below(g, 4);
  uint32_t shared = g->options.no_shared ? 0 : gen_below(g, 3);
  for (uint32_t i = 0; i < inputs; i++) {
    declare(g, GEN_INPUT, pick_element(g, true));
  }
  for (uint32_t i = 0; i < uniforms; i++) {
    declare(g, GEN_UNIFORM, pick_element(g, false));
  }
  declare(g, GEN_OUT, VYRE_ELEMENT_U32); /* the buffer of the sink */
  for (uint32_t i = 0; i < outs; i++)
    declare(g, GEN_OUT, pick_element(g, true));
  for (uint32_t i = 0; i < rws; i++) declare(g, GEN_RW, shared_element(g));
  for (uint32_t i = 0; i < shared; i++) {
    declare(g, GEN_SHARED, shared_element(g));
  }
  if (gen_chance(g, 30)) {
    vyre_builder_over(g->b, g->buffers[gen_below(g, inputs)].handle);
  }
}

/* --- modes -----------------------------------------------------------------*/

void gen_change_modes(gen *g, bool is_grid) {
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    gen_buffer *b = &g->buffers[i];
    if (b->kind != GEN_RW && b->kind != GEN_SHARED) continue;
    bool is_private = b->mode == GEN_OWN || b->mode == GEN_OWN_ATOMIC ||
                      b->mode == GEN_READ_GROUP;
    /* all owners have reached a barrier */
    bool all = is_grid || b->kind == GEN_SHARED;
    if (!all && !is_private) continue;
    bool has_atomics = is_atomic_element(g, b->element);
    uint32_t pick = gen_below(g, 100);
    b->mode = GEN_OWN;
    if (pick < 25 && has_atomics) {
      b->mode = all ? GEN_ATOMIC : GEN_OWN_ATOMIC;
    } else if (pick < 35 && has_atomics) {
      b->mode = GEN_OWN_ATOMIC;
    } else if (pick < 70) {
      b->mode = all ? GEN_READ : GEN_READ_GROUP;
    }
    b->atomic = (vyre_op)(VYRE_OP_ATOMIC_ADD + gen_below(g, 6));
    if (only_adds(g, b)) {
      b->atomic = VYRE_OP_ATOMIC_ADD;
      if (b->mode == GEN_OWN_ATOMIC) b->mode = GEN_OWN;
    }
  }
}

bool gen_can_load(const gen_buffer *b, gen_level level) {
  if (b->kind == GEN_UNIFORM) return true;
  if (b->kind == GEN_INPUT) return level >= GEN_GROUP;
  return level == GEN_VARYING && b->is_readable && b->mode != GEN_ATOMIC;
}

bool gen_can_store(const gen_buffer *b) {
  return b->kind >= GEN_OUT && b->mode == GEN_OWN;
}

/* --- indices ---------------------------------------------------------------*/

static vyre_value add(gen *g, vyre_value a, vyre_value b) {
  return vyre_build_binary(g->b, VYRE_OP_ADD, a, b);
}

static vyre_value times(gen *g, vyre_value a, uint32_t by) {
  if (by == 1) return a;
  return vyre_build_binary(g->b, VYRE_OP_MUL, a, vyre_build_u32(g->b, by));
}

/* Builds the index of element @p which of an owner. */
static vyre_value place_of(gen *g, const gen_buffer *b, vyre_value owner,
                           uint32_t which) {
  uint32_t owners = b->kind == GEN_SHARED ? g->group_size : g->invocations;
  uint32_t offset = b->is_strided ? which * owners : which;
  vyre_value at = b->is_strided ? owner : times(g, owner, b->per);
  return offset ? add(g, at, vyre_build_u32(g->b, offset)) : at;
}

/* Sometimes converts to another integer type; the number stays the same. */
static vyre_value retype(gen *g, vyre_value at) {
  if (gen_chance(g, 60)) return at;
  return vyre_build_cast(g->b, gen_integer(g), at);
}

vyre_value gen_own_index(gen *g, const gen_buffer *b, uint32_t which) {
  vyre_variable owner = b->kind == GEN_SHARED ? g->lane : g->own;
  vyre_value me = vyre_build_get(g->b, owner);
  if (g->fault == VYRE__FAULT_OWNERSHIP) {
    me = vyre_build_binary(g->b, VYRE_OP_SHR, me, vyre_build_u32(g->b, 1));
  }
  return retype(g, place_of(g, b, me, which));
}

/* Builds the index of any element of the workgroup. */
static vyre_value group_index(gen *g, const gen_buffer *b, int depth) {
  vyre_value lane = vyre_build_binary(
      g->b, VYRE_OP_REM, gen_value(g, VYRE_TYPE_U32, depth, GEN_VARYING),
      vyre_build_u32(g->b, g->group_size));
  vyre_value first = times(g, vyre_build_get(g->b, g->group), g->group_size);
  return retype(g, place_of(g, b, add(g, first, lane), gen_below(g, b->per)));
}

/* Builds a number that may be out of bounds, but near enough to hit
 * sometimes. */
static vyre_value modulo_index(gen *g, vyre_type type, uint32_t bound,
                               int depth, gen_level level) {
  return vyre_build_binary(g->b, VYRE_OP_REM, gen_value(g, type, depth, level),
                           gen_number(g, type, bound ? bound : 1));
}

/* Builds the index of any element, and if allowed also an index out of
 * bounds. An unconditional access must not always be out of bounds (V105). */
static vyre_value any_index(gen *g, const gen_buffer *b, int depth,
                            gen_level level) {
  bool strict = g->options.no_out_of_range;
  uint32_t pick = strict ? 9 : gen_below(g, 10);
  if (pick < 2 && level == GEN_VARYING) {
    vyre_value me = vyre_build_get(g->b, g->own);
    uint32_t offset = g->is_certain ? 0 : gen_below(g, 4);
    return offset ? add(g, me, vyre_build_u32(g->b, offset)) : me;
  }
  if (pick < 3 && level == GEN_VARYING) {
    vyre_value last =
        vyre_build_binary(g->b, VYRE_OP_SUB, vyre_build_len(g->b, b->handle),
                          vyre_build_u32(g->b, 1));
    return vyre_build_binary(g->b, VYRE_OP_SUB, last,
                             vyre_build_get(g->b, g->own));
  }
  if (strict || g->is_certain) {
    return retype(g, modulo_index(g, VYRE_TYPE_U32, b->length, depth, level));
  }
  if (pick < 5) return gen_value(g, gen_integer(g), depth, level);
  vyre_type type = pick < 7 ? gen_integer(g) : VYRE_TYPE_U32;
  return modulo_index(g, type, b->length + gen_below(g, 3), depth, level);
}

/* Builds an index that is always out of bounds. */
static vyre_value outside_index(gen *g, const gen_buffer *b, int depth) {
  vyre_type type = gen_integer(g);
  vyre_value any = gen_value(g, type, depth, GEN_VARYING);
  switch (type) {
    case VYRE_TYPE_U32:
      any =
          vyre_build_binary(g->b, VYRE_OP_REM, any, vyre_build_u32(g->b, 1000));
      return add(g, vyre_build_len(g->b, b->handle), any);
    case VYRE_TYPE_U64:
      return vyre_build_binary(g->b, VYRE_OP_OR, any,
                               vyre_build_u64(g->b, (uint64_t)1 << 32));
    case VYRE_TYPE_I32:
      return vyre_build_binary(g->b, VYRE_OP_OR, any,
                               vyre_build_i32(g->b, INT32_MIN));
    default:
      return vyre_build_binary(g->b, VYRE_OP_OR, any,
                               vyre_build_i64(g->b, INT64_MIN));
  }
}

/* --- accesses --------------------------------------------------------------*/

static vyre_value own_atomic(gen *g, const gen_buffer *b, int depth) {
  vyre_value at = gen_own_index(g, b, gen_below(g, b->per));
  vyre_value a = gen_value(g, b->type, depth, GEN_VARYING);
  uint32_t pick = gen_below(g, 9);
  if (pick >= 7) {
    return vyre_build_compare_exchange(
        g->b, b->handle, at, a, gen_value(g, b->type, depth, GEN_VARYING));
  }
  return vyre_build_atomic(g->b, (vyre_op)(VYRE_OP_ATOMIC_ADD + pick),
                           b->handle, at, a);
}

vyre_value gen_load(gen *g, const gen_buffer *b, int depth, gen_level level) {
  if (depth > 2) depth = 2;
  if (b->kind == GEN_UNIFORM && b->count == 1 && gen_chance(g, 80)) {
    return vyre_build_scalar(g->b, b->handle);
  }
  if (b->kind == GEN_INPUT || b->kind == GEN_UNIFORM || b->mode == GEN_READ) {
    return vyre_build_load(g->b, b->handle, any_index(g, b, depth, level));
  }
  if (b->mode == GEN_OWN_ATOMIC) return own_atomic(g, b, depth);
  if (b->mode == GEN_READ_GROUP) {
    return vyre_build_load(g->b, b->handle, group_index(g, b, depth));
  }
  return vyre_build_load(g->b, b->handle,
                         gen_own_index(g, b, gen_below(g, b->per)));
}

void gen_store(gen *g, const gen_buffer *b, int depth) {
  bool outside =
      !g->options.no_out_of_range && !g->is_certain && gen_chance(g, 12);
  vyre_value at = outside ? outside_index(g, b, 1)
                          : gen_own_index(g, b, gen_below(g, b->per));
  vyre_build_store(g->b, b->handle, at,
                   gen_value(g, b->type, depth, GEN_VARYING));
}

void gen_atomic(gen *g, const gen_buffer *b, int depth) {
  char name[16];
  vyre_op op = b->atomic;
  if (g->fault == VYRE__FAULT_ORDER) {
    op = (vyre_op)(VYRE_OP_ATOMIC_ADD + gen_below(g, 7));
  }
  vyre_value at = any_index(g, b, depth > 1 ? 1 : depth, GEN_VARYING);
  vyre_value with = gen_value(g, b->type, depth, GEN_VARYING);
  vyre_value old = vyre_build_atomic(g->b, op, b->handle, at, with);
  if (only_adds(g, b) || gen_chance(g, 70)) {
    vyre_build_eval(g->b, old);
    return;
  }
  /* The old value is used, but does not affect outputs. */
  vyre_variable saved = vyre_build_let(g->b, gen_name(g, 'o', name), old);
  vyre_value zero =
      vyre_build_binary(g->b, VYRE_OP_SUB, vyre_build_get(g->b, saved),
                        vyre_build_get(g->b, saved));
  gen_mix(g, vyre_build_cast(g->b, VYRE_TYPE_U32, zero));
}
