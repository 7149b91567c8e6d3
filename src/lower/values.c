/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lists what analysis proves about the values of names. */
#include <stdio.h>

#include "vyre/emit.h"
#include "vyre/validate.h"

#include "analyze/effects.h"
#include "analyze/inline/inline.h"
#include "analyze/ranges.h"
#include "analyze/uniformity.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "ir/ir.h"

/* Facts about one node. */
typedef struct fact {
  vyre__source_loc place;
  vyre__interval range;
  bool has_range;
  uint8_t level;
} fact;

typedef struct listing {
  const vyre_program *program; /* inlined */
  vyre__ranges ranges;
  vyre__effects effects;
  vyre__uniformity uniformity;
  vyre_arena *scratch;
  fact *facts;
  size_t count;
} listing;

/* Returns true for a node that begins with a name. Other expressions may begin
 * at the same place. */
static bool is_name(const vyre__node *node) {
  return node->op == VYRE__OP_LOCAL || node->op == VYRE__OP_LOAD ||
         node->op == VYRE__OP_LEN ||
         vyre__ops[node->op].form == VYRE__FORM_AXIS;
}

static void collect(listing *l) {
  const vyre_program *program = l->program;
  const uint32_t end =
      program->files ? program->files->items[1].first_line : UINT32_MAX;
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__source_loc place = vyre__source_loc_of(program, id);
    if (!is_name(&program->nodes[id]) || place.line == 0 || place.line >= end) {
      continue;
    }
    const unsigned type = program->nodes[id].type;
    fact *f = &l->facts[l->count++];
    *f = (fact){.place = place,
                .has_range = type >= VYRE_TYPE_U32 && type <= VYRE_TYPE_I64,
                .level = l->uniformity.value[id]};
    if (f->has_range) f->range = vyre__range_of(&l->ranges, id);
  }
}

static uint64_t key_of(const fact *f) {
  return (uint64_t)f->place.line << 32 | f->place.column;
}

static void format_bound(char *out, size_t size, vyre__wide bound) {
  if (bound < 0) {
    snprintf(out, size, "%lld", (long long)bound);
  } else {
    snprintf(out, size, "%llu", (unsigned long long)bound);
  }
}

static vyre_value_info make_info(vyre_arena *arena, const fact *f,
                                 bool *no_memory) {
  vyre_value_info info = {.line = f->place.line,
                          .column = f->place.column,
                          .level = (vyre_value_level)f->level};
  if (!f->has_range) return info;
  char low[24], high[24], text[64];
  format_bound(low, sizeof low, f->range.lo);
  format_bound(high, sizeof high, f->range.hi);
  snprintf(text, sizeof text, "[%s, %s]", low, high);
  info.range = vyre__arena_text(arena, text);
  *no_memory |= !info.range;
  return info;
}

/* Joins the facts of one place, and adds one entry for each. */
static vyre_value_info *join(listing *l, vyre_arena *arena, size_t *count) {
  vyre__sort_item *order =
      vyre__arena_array(l->scratch, l->count, sizeof *order);
  vyre_value_info *items =
      vyre__arena_array(arena, l->count ? l->count : 1, sizeof *items);
  bool no_memory = !order || !items;
  if (no_memory) return NULL;
  for (size_t i = 0; i < l->count; i++) {
    order[i] = (vyre__sort_item){key_of(&l->facts[i]), i};
  }
  vyre__sort(order, l->count);
  *count = 0;
  for (size_t i = 0; i < l->count;) {
    fact all = l->facts[order[i].tie];
    size_t end = i + 1;
    for (; end < l->count && order[end].key == order[i].key; end++) {
      const fact *more = &l->facts[order[end].tie];
      if (more->level > all.level) all.level = more->level;
      all.has_range = all.has_range && more->has_range;
      if (all.has_range)
        all.range = vyre__interval_join(all.range, more->range);
    }
    items[(*count)++] = make_info(arena, &all, &no_memory);
    i = end;
  }
  return no_memory ? NULL : items;
}

static vyre_code analyse(listing *l, vyre_status *st) {
  VYRE_TRY(vyre__ranges_build(l->program, NULL, l->scratch, &l->ranges, st));
  VYRE_TRY(vyre__effects_build(l->program, l->scratch, &l->effects, st));
  VYRE_TRY(vyre__uniformity_build(l->program, &l->effects, l->scratch,
                                  &l->uniformity, st));
  l->facts =
      vyre__arena_array(l->scratch, l->program->node_count, sizeof *l->facts);
  if (!l->facts) {
    return vyre__no_memory(st, "vyre_program_values", "values",
                           l->program->node_count);
  }
  collect(l);
  return VYRE_OK;
}

vyre_code vyre_program_values(const vyre_program *program, vyre_arena *arena,
                              const vyre_value_info **out, size_t *count,
                              vyre_status *st) {
  vyre__status_begin(st);
  if (out) *out = NULL;
  if (count) *count = 0;
  VYRE_REQUIRE_BOTH(st, program, arena);
  VYRE_REQUIRE_BOTH(st, out, count);
  VYRE_TRY(vyre_program_validate(program, NULL, vyre__status_open(st)));
  if (!vyre_program_has_body(program)) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "parse a kernel, or give the builder a body",
                     "vyre_program_values: the program has no body");
  }
  vyre_program *inlined = NULL;
  VYRE_TRY(vyre__inline(program, arena->allocator, &inlined, st));
  vyre_arena scratch;
  vyre_arena_init(&scratch, arena->allocator);
  vyre__arena_mark start = vyre__arena_here(arena);
  listing l = {.program = inlined, .scratch = &scratch};
  vyre_code code = analyse(&l, st);
  if (code == VYRE_OK) {
    *out = join(&l, arena, count);
    if (!*out) {
      code = vyre__no_memory(st, "vyre_program_values", "values", l.count);
    }
  }
  if (code != VYRE_OK) {
    *count = 0;
    vyre__arena_rewind(arena, start);
  }
  vyre_arena_deinit(&scratch);
  vyre_program_release(inlined);
  return code;
}

const char *vyre_value_level_name(vyre_value_level level) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_VALUE_LEVEL_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)level < VYRE_VALUE_LEVEL_COUNT ? names[level] : "?";
}
