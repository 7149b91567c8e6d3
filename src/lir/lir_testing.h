/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: builds LIR kernels by hand. */
#ifndef VYRE_LIR_LIR_TESTING_H
#define VYRE_LIR_LIR_TESTING_H

#include <string.h>

#include "lir/lir.h"

enum { KIT_INSTS = 8192, KIT_VARS = 64, KIT_BUFFERS = 12 };

typedef struct kit {
  vyre__lir_inst code[KIT_INSTS];
  vyre__source_loc places[KIT_INSTS];
  vyre__lir_var vars[KIT_VARS];
  vyre__lir_buffer buffers[KIT_BUFFERS];
  vyre__lir_loop loops[64];
  vyre__lir_phase phases[8];
  vyre__lir_step steps[16];
  vyre__lir_kernel k;
} kit;

static inline void kit_begin(kit *t, const char *name, uint32_t x, uint32_t y,
                             uint32_t z) {
  memset(t, 0, sizeof *t);
  for (int i = 0; i < 64; i++) t->loops[i].max_trips = UINT64_MAX;
  t->k = (vyre__lir_kernel){.name = name,
                            .workgroup = {x, y, z},
                            .code = t->code,
                            .source_locs = t->places,
                            .count = 1,
                            .vars = t->vars,
                            .buffers = t->buffers,
                            .loops = t->loops,
                            .phases = t->phases,
                            .steps = t->steps,
                            .spill_buffer = VYRE_NO_INDEX};
}

static inline uint32_t kit_buffer(kit *t, const char *name, vyre_memory kind,
                                  uint8_t width, bool is_written,
                                  uint32_t count) {
  t->buffers[t->k.buffer_count] =
      (vyre__lir_buffer){.name = name,
                         .source = t->k.buffer_count,
                         .kind = (uint8_t)kind,
                         .width = width,
                         .unit = width,
                         .is_written = is_written,
                         .needs_zero = kind == VYRE_MEMORY_SHARED,
                         .count = count};
  return t->k.buffer_count++;
}

static inline uint32_t kit_var(kit *t, const char *name, vyre_type type) {
  t->vars[t->k.var_count] = (vyre__lir_var){name, (uint8_t)type};
  return t->k.var_count++;
}

static inline vyre__val kit_op(kit *t, vyre__lir_op op, vyre_type type,
                               uint32_t aux, vyre__val a, vyre__val b,
                               vyre__val c) {
  if (t->k.count >= KIT_INSTS - 1) return 0; /* tests are shorter */
  t->code[t->k.count] = (vyre__lir_inst){
      .op = (uint8_t)op, .type = (uint8_t)type, .aux = aux, .v = {a, b, c, 0}};
  return t->k.count++;
}

static inline vyre__val kit_const(kit *t, vyre_type type, uint64_t bits) {
  vyre__val v = kit_op(t, VYRE__LIR_CONST, type, 0, 0, 0, 0);
  t->code[v].c = (uint32_t)bits;
  t->code[v].d = (uint32_t)(bits >> 32);
  return v;
}

static inline vyre__val kit_u32(kit *t, uint32_t number) {
  return kit_const(t, VYRE_TYPE_U32, number);
}

static inline vyre__val kit_local(kit *t, uint32_t axis) {
  return kit_op(t, VYRE__LIR_LOCAL_ID, VYRE_TYPE_U32, axis, 0, 0, 0);
}

static inline vyre__val kit_global(kit *t, uint32_t axis) {
  vyre__val group = kit_op(t, VYRE__LIR_GROUP_ID, VYRE_TYPE_U32, axis, 0, 0, 0);
  vyre__val size = kit_u32(t, t->k.workgroup[axis]);
  vyre__val base = kit_op(t, VYRE__LIR_MUL, VYRE_TYPE_U32, 0, group, size, 0);
  return kit_op(t, VYRE__LIR_ADD, VYRE_TYPE_U32, 0, base, kit_local(t, axis),
                0);
}

/* Writes an operation on u32 values. */
static inline vyre__val kit_u(kit *t, vyre__lir_op op, vyre__val a,
                              vyre__val b) {
  return kit_op(t, op, VYRE_TYPE_U32, 0, a, b, 0);
}

/* Writes a comparison, or an operation on bool. */
static inline vyre__val kit_b(kit *t, vyre__lir_op op, vyre__val a,
                              vyre__val b) {
  return kit_op(t, op, VYRE_TYPE_BOOL, 0, a, b, 0);
}

static inline vyre__val kit_get(kit *t, uint32_t var) {
  return kit_op(t, VYRE__LIR_GET, (vyre_type)t->vars[var].type, var, 0, 0, 0);
}

static inline void kit_set(kit *t, uint32_t var, vyre__val value) {
  kit_op(t, VYRE__LIR_SET, VYRE_TYPE_VOID, var, value, 0, 0);
}

static inline vyre__val kit_load(kit *t, uint32_t buffer, vyre__val index,
                                 vyre__val condition) {
  vyre_type type =
      t->buffers[buffer].width == 8 ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  return kit_op(t, VYRE__LIR_LOAD, type, buffer, index, condition, 0);
}

static inline void kit_store(kit *t, uint32_t buffer, vyre__val index,
                             vyre__val value, vyre__val condition) {
  kit_op(t, VYRE__LIR_STORE, VYRE_TYPE_VOID, buffer, index, value, condition);
}

static inline uint32_t kit_if(kit *t, vyre__val condition, uint16_t hints) {
  vyre__val v = kit_op(t, VYRE__LIR_IF, VYRE_TYPE_VOID, 0, condition, 0, 0);
  t->code[v].hints = hints;
  return v;
}

static inline uint32_t kit_mark(kit *t, vyre__lir_op op) {
  return kit_op(t, op, VYRE_TYPE_VOID, 0, 0, 0, 0);
}

/* Ends a phase that begins at @p begin. */
static inline void kit_phase(kit *t, uint32_t begin) {
  t->phases[t->k.phase_count++] = (vyre__lir_phase){begin, t->k.count};
}

/* Ends a kernel of one phase. */
static inline void kit_end(kit *t) {
  kit_phase(t, 1);
  t->steps[t->k.step_count++] = (vyre__lir_step){.kind = VYRE__STEP_RUN};
}

#endif
