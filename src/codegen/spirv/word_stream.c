/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the words of a module: instructions into sections, types and constants
 * once each. Ids are numbered in order of request, so that equal kernels give
 * equal words. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/spirv/internal.h"

static uint32_t *append_space(spv_emitter *e, spv_section to, size_t count) {
  spv_words *w = &e->sections[to];
  if (!vyre__reserve(e->allocator, &w->words, &w->capacity, w->count + count,
                     sizeof *w->words, false)) {
    e->no_memory = true;
    return NULL;
  }
  uint32_t *at = w->words + w->count;
  w->count += count;
  return at;
}

static void copy(uint32_t *to, const uint32_t *from, size_t count) {
  if (count) memcpy(to, from, count * sizeof *to);
}

void spv_put_all(spv_emitter *e, spv_section to, uint32_t op,
                 const uint32_t *operands, size_t count) {
  if (e->no_memory) return;
  uint32_t *at = append_space(e, to, count + 1);
  if (!at) return;
  at[0] = (uint32_t)(count + 1) << 16 | op;
  copy(at + 1, operands, count);
}

void spv_put_alone(spv_emitter *e, spv_section to, uint32_t op) {
  spv_put_all(e, to, op, NULL, 0);
}

/* Texts end with a zero byte and fill full words, low byte first. A text that
 * does not fit an instruction of 65,535 words is truncated. */
void spv_put_text(spv_emitter *e, spv_section to, uint32_t op,
                  const uint32_t *before, size_t before_count, const char *text,
                  const uint32_t *after, size_t after_count) {
  size_t length = strlen(text);
  if (length > 1000) length = 1000;
  size_t words = length / 4 + 1, all = 1 + before_count + words + after_count;
  if (e->no_memory) return;
  uint32_t *at = append_space(e, to, all);
  if (!at) return;
  *at++ = (uint32_t)all << 16 | op;
  copy(at, before, before_count);
  at += before_count;
  memset(at, 0, words * sizeof *at);
  for (size_t i = 0; i < length; i++) {
    at[i / 4] |= (uint32_t)(uint8_t)text[i] << (8 * (i % 4));
  }
  copy(at + words, after, after_count);
}

uint32_t spv_do_all(spv_emitter *e, uint32_t op, uint32_t type,
                    const uint32_t *operands, size_t count) {
  uint32_t id = spv_id(e);
  if (e->no_memory) return id;
  uint32_t *at = append_space(e, SPV_CODE, count + 3);
  if (!at) return id;
  at[0] = (uint32_t)(count + 3) << 16 | op;
  at[1] = type;
  at[2] = id;
  copy(at + 3, operands, count);
  return id;
}

/* --- types ---------------------------------------------------------------- */

uint32_t spv_type_all(spv_emitter *e, uint32_t op, const uint32_t *operands,
                      size_t count) {
  for (size_t i = 0; i < e->type_count; i++) {
    const spv_type *t = &e->types[i];
    if (t->op == op && t->count == count &&
        memcmp(t->operands, operands, count * sizeof *operands) == 0) {
      return t->id;
    }
  }
  if (!vyre__reserve(e->allocator, &e->types, &e->type_capacity,
                     e->type_count + 1, sizeof *e->types, false)) {
    e->no_memory = true;
    return 0;
  }
  spv_type *t = &e->types[e->type_count++];
  uint32_t words[4] = {spv_id(e)};
  *t = (spv_type){.op = op, .count = (uint32_t)count, .id = words[0]};
  copy(t->operands, operands, count);
  copy(words + 1, operands, count);
  spv_put_all(e, SPV_GLOBALS, op, words, count + 1);
  return words[0];
}

static uint32_t plain_type(spv_emitter *e, uint32_t op) {
  return spv_type_all(e, op, (const uint32_t[]){0}, 0);
}

uint32_t spv_void(spv_emitter *e) {
  return plain_type(e, SPV_OpTypeVoid);
}

uint32_t spv_bool(spv_emitter *e) {
  return plain_type(e, SPV_OpTypeBool);
}

uint32_t spv_uint(spv_emitter *e, unsigned bits) {
  if (bits == 64) e->uses_int64 = true;
  return SPV_TYPE(e, SPV_OpTypeInt, bits, 0);
}

uint32_t spv_type_of(spv_emitter *e, unsigned type) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      return spv_bool(e);
    case VYRE_TYPE_F32:
      return SPV_TYPE(e, SPV_OpTypeFloat, 32);
    case VYRE_TYPE_F64:
      e->uses_float64 = true;
      return SPV_TYPE(e, SPV_OpTypeFloat, 64);
    default:
      return spv_uint(e, type == VYRE_TYPE_U64 ? 64 : 32);
  }
}

uint32_t spv_pointer(spv_emitter *e, uint32_t storage, uint32_t type) {
  return SPV_TYPE(e, SPV_OpTypePointer, storage, type);
}

/* --- constants ------------------------------------------------------------ */

static size_t hash_of(uint32_t type, uint64_t bits) {
  uint64_t h = (bits ^ (uint64_t)type << 56) * UINT64_C(0x9E3779B97F4A7C15);
  return (size_t)(h >> 32);
}

static spv_constant *find_constant(spv_constant *all, size_t capacity,
                                   uint32_t type, uint64_t bits) {
  size_t at = hash_of(type, bits) & (capacity - 1);
  uint32_t low = (uint32_t)bits, high = (uint32_t)(bits >> 32);
  while (all[at].id &&
         (all[at].type != type || all[at].low != low || all[at].high != high)) {
    at = (at + 1) & (capacity - 1);
  }
  return &all[at];
}

/* Keeps at least half of the table empty. */
static bool grow_constants(spv_emitter *e) {
  if (2 * e->constant_count < e->constant_capacity) return true;
  size_t capacity = e->constant_capacity ? 2 * e->constant_capacity : 64;
  spv_constant *all = NULL;
  size_t made = 0;
  if (!vyre__reserve(e->allocator, &all, &made, capacity, sizeof *all, true) ||
      !all) {
    e->no_memory = true;
    return false;
  }
  memset(all, 0, capacity * sizeof *all);
  for (size_t i = 0; i < e->constant_capacity; i++) {
    const spv_constant *c = &e->constants[i];
    if (!c->id) continue;
    *find_constant(all, capacity, c->type, (uint64_t)c->high << 32 | c->low) =
        *c;
  }
  vyre__reserve_free(e->allocator, &e->constants, &e->constant_capacity,
                     sizeof *e->constants);
  e->constants = all;
  e->constant_capacity = capacity;
  return true;
}

uint32_t spv_const(spv_emitter *e, unsigned type, uint64_t bits) {
  uint32_t of = spv_type_of(e, type);
  if (e->no_memory || !grow_constants(e)) return 0;
  spv_constant *c = find_constant(e->constants, e->constant_capacity, of, bits);
  if (c->id) return c->id;
  *c = (spv_constant){of, (uint32_t)bits, (uint32_t)(bits >> 32), spv_id(e)};
  e->constant_count++;
  bool is_wide = type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64;
  uint32_t words[4] = {of, c->id, c->low, c->high};
  if (type == VYRE_TYPE_BOOL) {
    spv_put_all(e, SPV_GLOBALS, bits ? SPV_OpConstantTrue : SPV_OpConstantFalse,
                words, 2);
  } else {
    spv_put_all(e, SPV_GLOBALS, SPV_OpConstant, words, is_wide ? 4 : 3);
  }
  return words[1];
}

/* --- names, decorations, blocks ------------------------------------------- */

void spv_name(spv_emitter *e, uint32_t id, const char *name) {
  if (!e->target->names) return;
  spv_put_text(e, SPV_DEBUG, SPV_OpName, &id, 1, name, NULL, 0);
}

void spv_decorate(spv_emitter *e, uint32_t id, uint32_t decoration) {
  SPV_PUT(e, SPV_NOTES, SPV_OpDecorate, id, decoration);
}

uint32_t spv_glsl(spv_emitter *e, uint32_t type, uint32_t function,
                  const uint32_t *operands, size_t count) {
  uint32_t words[5] = {e->glsl, function};
  copy(words + 2, operands, count);
  return spv_do_all(e, SPV_OpExtInst, type, words, count + 2);
}

void spv_begin_block(spv_emitter *e, uint32_t label) {
  SPV_PUT(e, SPV_CODE, SPV_OpLabel, label);
  e->label = label;
  e->is_dead = false;
  e->line = 0; /* OpLine is valid until the end of its block */
}

void spv_branch(spv_emitter *e, uint32_t label) {
  SPV_PUT(e, SPV_CODE, SPV_OpBranch, label);
  e->is_dead = true;
}

void spv_reject(spv_emitter *e, uint32_t at, const char *what) {
  if (e->failed != VYRE_OK || e->no_memory) return;
  e->failed = VYRE_FAIL_WITH(
      e->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS(
          {"line", e->k->source_locs ? e->k->source_locs[at].line : 0}),
      "avoid the feature, or use a device that has it: `vyre devices` lists "
      "the features of each device",
      "kernel '%.60s', line %u: the target has no %s", e->k->name,
      e->k->source_locs ? (unsigned)e->k->source_locs[at].line : 0, what);
}
