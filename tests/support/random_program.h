/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random programs through the builder: every operation, type and statement, well
 * typed, and the same for the same seed. */
#ifndef VYRE_TESTS_RANDOM_PROGRAM_H
#define VYRE_TESTS_RANDOM_PROGRAM_H

#include "vyre/builder.h"

#include "support/check.h"

enum { RANDOM_LOCALS = 64, RANDOM_BUFFERS = 9 };

typedef struct random_program {
  vyre_builder *b;
  uint64_t state;
  vyre_build_buffer_ref buffers[RANDOM_BUFFERS];
  vyre_build_function_ref function; /* (f32, u32) -> f32 */
  bool has_function, in_function;
  struct {
    vyre_variable variable;
    vyre_type type;
    bool is_mutable;
  } locals[RANDOM_LOCALS];
  int local_count;
  int loops;
  bool is_queue;
  vyre_queue_kind queue_kind;
  vyre_queue_field fields[3];
  uint32_t field_count;
} random_program;

/* Elements of the buffers; the first seven give each type once. */
static const vyre_element random_elements[RANDOM_BUFFERS] = {
    VYRE_ELEMENT_BOOL, VYRE_ELEMENT_U32, VYRE_ELEMENT_I32,
    VYRE_ELEMENT_U64,  VYRE_ELEMENT_I64, VYRE_ELEMENT_F32,
    VYRE_ELEMENT_F64,  VYRE_ELEMENT_F16, VYRE_ELEMENT_BYTES};

static inline unsigned random_pick(random_program *r, unsigned bound) {
  return (unsigned)random_below(&r->state, bound);
}

static inline vyre_type random_type(random_program *r) {
  return (vyre_type)(VYRE_TYPE_BOOL + random_pick(r, 7));
}

static inline vyre_value random_literal(random_program *r, vyre_type type) {
  static const uint32_t narrow[] = {
      0,          1,          2,          0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
      0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00001, 0x00000001, 0x80000000};
  uint64_t bits = random_next(&r->state);
  uint32_t low = (uint32_t)bits;
  if (random_pick(r, 2)) {
    low = narrow[random_pick(r, sizeof narrow / sizeof narrow[0])];
    bits = (uint64_t)low << 32 | (random_pick(r, 2) ? 0 : low);
  }
  float f;
  double d;
  memcpy(&f, &low, sizeof f);
  memcpy(&d, &bits, sizeof d);
  switch (type) {
    case VYRE_TYPE_BOOL:
      return vyre_build_bool(r->b, low & 1);
    case VYRE_TYPE_U32:
      return vyre_build_u32(r->b, low);
    case VYRE_TYPE_I32:
      return vyre_build_i32(r->b, (int32_t)low);
    case VYRE_TYPE_U64:
      return vyre_build_u64(r->b, bits);
    case VYRE_TYPE_I64:
      return vyre_build_i64(r->b, (int64_t)bits);
    case VYRE_TYPE_F32:
      return vyre_build_f32(r->b, f);
    default:
      return vyre_build_f64(r->b, d);
  }
}

static inline vyre_value random_value(random_program *r, vyre_type type,
                                      int depth);

/* Returns a u32 of the item or of the window. */
static inline vyre_value random_queue_value(random_program *r) {
  if (r->queue_kind != VYRE_QUEUE_KIND_ANY && random_pick(r, 3) == 0) {
    return random_pick(r, 2) ? vyre_build_window(r->b)
                             : vyre_build_item_index(r->b);
  }
  const uint32_t field = random_pick(r, r->field_count);
  vyre_value value = vyre_build_item_field(r->b, field);
  return r->fields[field].type == VYRE_TYPE_U32
             ? value
             : vyre_build_cast(r->b, VYRE_TYPE_U32, value);
}

static inline void random_queue(random_program *r) {
  static const char *const names[] = {"first", "second", "third"};
  static const vyre_type types[] = {VYRE_TYPE_U32, VYRE_TYPE_I32,
                                    VYRE_TYPE_U64, VYRE_TYPE_I64,
                                    VYRE_TYPE_F32, VYRE_TYPE_F64};
  vyre_queue_clauses clauses = {
      .kind = (vyre_queue_kind)random_pick(r, VYRE_QUEUE_KIND_COUNT),
      .fields = r->fields};
  const bool is_set = clauses.kind == VYRE_QUEUE_KIND_SET ||
                      clauses.kind == VYRE_QUEUE_KIND_ONCE;
  r->queue_kind = clauses.kind;
  r->field_count = is_set ? 1 : 1 + random_pick(r, 3);
  for (uint32_t i = 0; i < r->field_count; i++) {
    r->fields[i].name =
        r->field_count == 1 && random_pick(r, 2) ? "" : names[i];
    r->fields[i].type = is_set ? VYRE_TYPE_U32 : types[random_pick(r, 6)];
  }
  clauses.field_count = r->field_count;
  if (is_set) {
    clauses.key_bound =
        random_pick(r, 2) ? VYRE_KEY_BOUND_CONSTANT : VYRE_KEY_BOUND_LEN;
    clauses.keys = clauses.key_bound == VYRE_KEY_BOUND_LEN ? 0 : 100;
  } else if (random_pick(r, 2)) {
    clauses.pushes = 1 + random_pick(r, 9);
  }
  vyre_builder_queue_clauses(r->b, &clauses);
}

static inline vyre_value random_leaf(random_program *r, vyre_type type) {
  if (random_pick(r, 2)) {
    for (int tries = 0; tries < 4 && r->local_count > 0; tries++) {
      int i = (int)random_pick(r, (unsigned)r->local_count);
      if (r->locals[i].type == type) {
        return vyre_build_get(r->b, r->locals[i].variable);
      }
    }
  }
  if (type == VYRE_TYPE_U32 && random_pick(r, 2)) {
    return vyre_build_id(r->b, (vyre_op)(VYRE_OP_GLOBAL_ID + random_pick(r, 5)),
                         random_pick(r, 3));
  }
  if (type == VYRE_TYPE_U32 && !r->in_function && random_pick(r, 4) == 0) {
    if (r->is_queue && random_pick(r, 2)) return random_queue_value(r);
    return vyre_build_len(r->b, r->buffers[random_pick(r, RANDOM_BUFFERS)]);
  }
  return random_literal(r, type);
}

static inline vyre_value random_unary(random_program *r, vyre_type type,
                                      int depth) {
  static const vyre_op any[] = {VYRE_OP_NEG, VYRE_OP_ABS, VYRE_OP_SIGN};
  bool is_float = type >= VYRE_TYPE_F32;
  bool is_signed = is_float || type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  vyre_op op;
  if (type == VYRE_TYPE_BOOL) {
    op = VYRE_OP_NOT;
  } else if (is_signed && random_pick(r, 2)) {
    op = any[random_pick(r, 3)];
  } else if (is_float) {
    op = (vyre_op)(VYRE_OP_FLOOR + random_pick(r, 6));
  } else {
    unsigned pick = random_pick(r, 4);
    op = pick == 3 ? VYRE_OP_BIT_NOT : (vyre_op)(VYRE_OP_CLZ + pick);
  }
  return vyre_build_unary(r->b, op, random_value(r, type, depth));
}

static inline vyre_value random_binary(random_program *r, vyre_type type,
                                       int depth) {
  static const vyre_op bools[] = {VYRE_OP_AND, VYRE_OP_OR, VYRE_OP_XOR,
                                  VYRE_OP_LAND, VYRE_OP_LOR};
  static const vyre_op numbers[] = {VYRE_OP_ADD, VYRE_OP_SUB, VYRE_OP_MUL,
                                    VYRE_OP_DIV, VYRE_OP_MIN, VYRE_OP_MAX};
  vyre_type operands = type;
  vyre_op op;
  if (type == VYRE_TYPE_BOOL && random_pick(r, 2)) {
    op = (vyre_op)(VYRE_OP_EQ + random_pick(r, 6));
    operands = random_type(r);
    if (operands == VYRE_TYPE_BOOL && op > VYRE_OP_NE) op = VYRE_OP_EQ;
  } else if (type == VYRE_TYPE_BOOL) {
    op = bools[random_pick(r, 5)];
  } else if (type >= VYRE_TYPE_F32 || random_pick(r, 2)) {
    op = numbers[random_pick(r, 6)];
  } else {
    op = (vyre_op)(VYRE_OP_REM + random_pick(r, 6));
  }
  vyre_value a = random_value(r, operands, depth);
  if (op == VYRE_OP_SHL || op == VYRE_OP_SHR) operands = VYRE_TYPE_U32;
  return vyre_build_binary(r->b, op, a, random_value(r, operands, depth));
}

static inline vyre_value random_memory(random_program *r, vyre_type type,
                                       int depth) {
  vyre_type index = (vyre_type)(VYRE_TYPE_U32 + random_pick(r, 4));
  vyre_build_buffer_ref buffer = r->buffers[type - VYRE_TYPE_BOOL];
  if (type == VYRE_TYPE_F32 && random_pick(r, 3) == 0) buffer = r->buffers[7];
  if (type == VYRE_TYPE_U32 && random_pick(r, 3) == 0) buffer = r->buffers[8];
  bool is_atomic =
      type >= VYRE_TYPE_U32 && type <= VYRE_TYPE_I64 && random_pick(r, 3) == 0;
  vyre_value at = random_value(r, index, depth);
  if (!is_atomic) return vyre_build_load(r->b, buffer, at);
  buffer = r->buffers[type - VYRE_TYPE_BOOL];
  vyre_value a = random_value(r, type, depth);
  unsigned pick = random_pick(r, 8);
  if (pick == 7) {
    return vyre_build_compare_exchange(r->b, buffer, at, a,
                                       random_value(r, type, depth));
  }
  return vyre_build_atomic(r->b, (vyre_op)(VYRE_OP_ATOMIC_ADD + pick), buffer,
                           at, a);
}

static inline vyre_value random_cast(random_program *r, vyre_type type,
                                     int depth) {
  static const vyre_type same_bits[] = {
      [VYRE_TYPE_U32] = VYRE_TYPE_F32, [VYRE_TYPE_I32] = VYRE_TYPE_U32,
      [VYRE_TYPE_F32] = VYRE_TYPE_I32, [VYRE_TYPE_U64] = VYRE_TYPE_I64,
      [VYRE_TYPE_I64] = VYRE_TYPE_F64, [VYRE_TYPE_F64] = VYRE_TYPE_U64};
  if (type != VYRE_TYPE_BOOL && random_pick(r, 2)) {
    return vyre_build_bitcast(r->b, type,
                              random_value(r, same_bits[type], depth));
  }
  return vyre_build_cast(r->b, type, random_value(r, random_type(r), depth));
}

static inline vyre_value random_value(random_program *r, vyre_type type,
                                      int depth) {
  if (depth <= 0) return random_leaf(r, type);
  depth--;
  vyre_value a, b, c;
  switch (random_pick(r, 8)) {
    case 0:
      return random_leaf(r, type);
    case 1:
      return random_unary(r, type, depth);
    case 2:
      return random_cast(r, type, depth);
    case 3:
      if (r->in_function) return random_leaf(r, type);
      return random_memory(r, type, depth);
    case 4:
      a = random_value(r, VYRE_TYPE_BOOL, depth);
      b = random_value(r, type, depth);
      c = random_value(r, type, depth);
      return vyre_build_ternary(r->b, VYRE_OP_SELECT, a, b, c);
    case 5:
      if (type == VYRE_TYPE_F32 && r->has_function && !r->in_function) {
        vyre_value values[2];
        values[0] = random_value(r, VYRE_TYPE_F32, depth);
        values[1] = random_value(r, VYRE_TYPE_U32, depth);
        return vyre_build_call(r->b, r->function, values, 2);
      }
      if (type < VYRE_TYPE_F32) return random_binary(r, type, depth);
      a = random_value(r, type, depth);
      b = random_value(r, type, depth);
      c = random_value(r, type, depth);
      return vyre_build_ternary(r->b, VYRE_OP_FMA, a, b, c);
    default:
      return random_binary(r, type, depth);
  }
}

static inline void random_body(random_program *r, int count, int depth);

static inline void random_declare(random_program *r, int depth) {
  static const char *const names[] = {"a",  "b",   "sum", NULL, "if",
                                      "b2", "v_1", "u32", "b1", "f"};
  if (r->local_count == RANDOM_LOCALS) return;
  vyre_type type = random_type(r);
  const char *name = names[random_pick(r, 10)];
  bool is_mutable = random_pick(r, 2);
  vyre_value value = random_value(r, type, depth);
  r->locals[r->local_count].type = type;
  r->locals[r->local_count].is_mutable = is_mutable;
  r->locals[r->local_count++].variable =
      is_mutable ? vyre_build_var(r->b, name, value)
                 : vyre_build_let(r->b, name, value);
}

static inline void random_assign(random_program *r, int depth) {
  for (int i = 0; i < r->local_count; i++) {
    if (!r->locals[i].is_mutable || random_pick(r, 2)) continue;
    vyre_build_assign(r->b, r->locals[i].variable,
                      random_value(r, r->locals[i].type, depth));
    return;
  }
}

static inline void random_store(random_program *r, int depth) {
  static const vyre_type types[] = {
      VYRE_TYPE_BOOL, VYRE_TYPE_U32, VYRE_TYPE_I32,
      VYRE_TYPE_U64,  VYRE_TYPE_I64, VYRE_TYPE_F32,
      VYRE_TYPE_F64,  VYRE_TYPE_F32, VYRE_TYPE_U32};
  unsigned which = random_pick(r, RANDOM_BUFFERS);
  vyre_value at = random_value(r, VYRE_TYPE_U32, depth);
  vyre_build_store(r->b, r->buffers[which], at,
                   random_value(r, types[which], depth));
}

static inline void random_loop(random_program *r, int depth) {
  vyre_type type = (vyre_type)(VYRE_TYPE_U32 + random_pick(r, 4));
  r->loops++;
  if (random_pick(r, 3) == 0 || r->local_count == RANDOM_LOCALS) {
    vyre_build_while(r->b, random_value(r, VYRE_TYPE_BOOL, depth));
  } else {
    vyre_value first = random_value(r, type, depth);
    vyre_value bound = random_value(r, type, depth);
    vyre_value step = vyre_build_cast(
        r->b, type, vyre_build_u32(r->b, 1 + random_pick(r, 3)));
    r->locals[r->local_count].type = type;
    r->locals[r->local_count].is_mutable = false;
    r->locals[r->local_count++].variable =
        vyre_build_for(r->b, random_pick(r, 2) ? "i" : NULL, first,
                       (vyre_op)(VYRE_OP_LT + random_pick(r, 4)), bound, step);
  }
  random_body(r, 2, depth - 1);
  if (random_pick(r, 2)) vyre_build_break(r->b);
  vyre_build_end(r->b);
  r->loops--;
}

static inline void random_if(random_program *r, int depth) {
  int locals = r->local_count;
  vyre_build_if(r->b, random_value(r, VYRE_TYPE_BOOL, depth));
  random_body(r, 2, depth - 1);
  if (r->loops > 0 && random_pick(r, 4) == 0) vyre_build_continue(r->b);
  if (random_pick(r, 2)) {
    r->local_count = locals;
    vyre_build_else(r->b);
    if (random_pick(r, 3) == 0) {
      random_if(r, depth - 1);
    } else {
      random_body(r, 1, depth - 1);
    }
  }
  vyre_build_end(r->b);
  r->local_count = locals;
}

static inline void random_effect(random_program *r, int depth) {
  static const char *const texts[] = {"", "a \"quoted\" \\ text\n",
                                      "\t\xC3\xA9"};
  vyre_print_part parts[2];
  size_t count;
  switch (random_pick(r, 4)) {
    case 0:
      vyre_build_barrier(r->b);
      break;
    case 1:
      vyre_build_grid_barrier(r->b);
      break;
    case 2:
      count = random_pick(r, 3);
      parts[0] = (vyre_print_part){.text = texts[random_pick(r, 3)]};
      if (count == 2) {
        parts[1] =
            (vyre_print_part){.value = random_value(r, random_type(r), depth)};
      }
      vyre_build_print(r->b, parts, count);
      break;
    default:
      if (r->is_queue) {
        vyre_value values[3];
        for (uint32_t i = 0; i < r->field_count; i++) {
          values[i] = random_value(r, r->fields[i].type, depth);
        }
        vyre_build_eval(r->b,
                        vyre_build_push_fields(r->b, values, r->field_count));
      } else {
        vyre_build_eval(
            r->b, vyre_build_atomic(r->b, VYRE_OP_ATOMIC_ADD, r->buffers[1],
                                    random_value(r, VYRE_TYPE_U32, depth),
                                    random_value(r, VYRE_TYPE_U32, depth)));
      }
  }
}

static inline void random_statement(random_program *r, int depth) {
  int locals = r->local_count;
  switch (random_pick(r, depth > 0 ? 9 : 4)) {
    case 0:
    case 1:
      random_declare(r, depth);
      break;
    case 2:
      random_assign(r, depth);
      break;
    case 3:
      if (!r->in_function) random_store(r, depth);
      break;
    case 4:
      random_if(r, depth);
      break;
    case 5:
      random_loop(r, depth);
      r->local_count = locals;
      break;
    case 6:
      vyre_build_block(r->b);
      random_body(r, 2, depth - 1);
      vyre_build_end(r->b);
      r->local_count = locals;
      break;
    case 7:
      if (!r->in_function) vyre_build_return(r->b);
      break;
    default:
      if (!r->in_function) random_effect(r, depth);
  }
}

static inline void random_body(random_program *r, int count, int depth) {
  int locals = r->local_count;
  for (int i = 0; i < count; i++) random_statement(r, depth);
  r->local_count = locals;
}

static inline void random_function(random_program *r) {
  static const vyre_parameter types[] = {{"t", VYRE_TYPE_F32},
                                         {NULL, VYRE_TYPE_U32}};
  vyre_variable parameters[2];
  r->function = vyre_build_function(r->b, random_pick(r, 2) ? "b1" : "blend",
                                    VYRE_TYPE_F32, types, 2, parameters);
  for (int i = 0; i < 2; i++) {
    r->locals[i].variable = parameters[i];
    r->locals[i].type = types[i].type;
    r->locals[i].is_mutable = false;
  }
  r->local_count = 2;
  r->in_function = true;
  random_body(r, 2, 2);
  vyre_build_return_value(r->b, random_value(r, VYRE_TYPE_F32, 2));
  vyre_build_end(r->b);
  r->has_function = true;
  r->in_function = false;
  r->local_count = 0;
}

/* The program of a seed; a scenario for sweeps of allocations too. */
static inline vyre_code random_program_make(uint64_t seed,
                                            vyre_allocator allocator,
                                            vyre_program **out,
                                            vyre_status *st) {
  static const char *const names[RANDOM_BUFFERS] = {
      "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8"};
  random_program r = {.state = seed * 2654435761u + 88172645463325252u};
  *out = NULL;
  vyre_code made = vyre_builder_create("k", allocator, &r.b, st);
  if (made != VYRE_OK) return made;
  vyre_builder_workgroup(r.b, 1 + random_pick(&r, 4), 1 + random_pick(&r, 2),
                         1 + random_pick(&r, 2));
  for (int i = 0; i < RANDOM_BUFFERS; i++) {
    vyre_buffer_decl decl = {.name = names[i],
                             .binding = (uint32_t)i,
                             .access = VYRE_ACCESS_READ_WRITE,
                             .element = random_elements[i]};
    if (random_pick(&r, 3) == 0) decl.is_output = true;
    if (random_pick(&r, 4) == 0) decl.kind = VYRE_MEMORY_PERSISTENT;
    if (random_pick(&r, 4) == 0) decl.hints.preferred_alignment = 64;
    if (random_pick(&r, 4) == 0) {
      decl.hints.has_coalesce_axis = true;
      decl.hints.coalesce_axis = (uint8_t)random_pick(&r, 3);
    }
    decl.hints.cache_locality = (vyre_locality)random_pick(&r, 3);
    if (i == 2 && random_pick(&r, 2)) {
      decl = (vyre_buffer_decl){.name = names[i],
                                .kind = VYRE_MEMORY_SHARED,
                                .access = VYRE_ACCESS_WORKGROUP,
                                .element = random_elements[i],
                                .count = 7};
    }
    r.buffers[i] = vyre_build_declare(r.b, &decl);
  }
  if (random_pick(&r, 2)) vyre_builder_over(r.b, r.buffers[1]);
  r.is_queue = random_pick(&r, 3) == 0;
  if (r.is_queue) random_queue(&r);
  if (random_pick(&r, 2)) random_function(&r);
  random_body(&r, 1 + (int)random_pick(&r, 6), 3);
  vyre_code code = vyre_builder_build(r.b, out, st);
  vyre_builder_release(r.b);
  return code;
}

#endif
