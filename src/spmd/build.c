/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `build`: decides how invocations form rows and vectors, and builds the
 * tree of loops around the code. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

/* --- fused rows -----------------------------------------------------------*/

static bool is_axis(const vyre__schedule *s, vyre__val v, vyre__lir_op op) {
  return v && inst_at(s, v)->op == op && inst_at(s, v)->aux == 0;
}

/* group_id.x * size */
static bool is_first_x(const vyre__schedule *s, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->op != VYRE__LIR_MUL) return false;
  bool is_left = is_axis(s, inst->a, VYRE__LIR_GROUP_ID);
  vyre__val size = is_left ? inst->b : inst->a;
  if (!is_left && !is_axis(s, inst->b, VYRE__LIR_GROUP_ID)) return false;
  return is_op(s, size, VYRE__LIR_CONST) &&
         vyre__lir_const(inst_at(s, size)) == s->kernel->workgroup[0];
}

static bool is_global_x(const vyre__schedule *s, vyre__val v) {
  const vyre__lir_inst *inst = inst_at(s, v);
  if (inst->op != VYRE__LIR_ADD) return false;
  return (is_axis(s, inst->a, VYRE__LIR_LOCAL_ID) && is_first_x(s, inst->b)) ||
         (is_axis(s, inst->b, VYRE__LIR_LOCAL_ID) && is_first_x(s, inst->a));
}

/* Returns true if instruction @p at, which is not global_id.x, uses a part of
 * global_id.x. */
static bool uses_part_of_x(const vyre__schedule *s, uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst_at(s, at), operands);
  for (uint32_t i = 0; i < count; i++) {
    if (is_axis(s, operands[i], VYRE__LIR_LOCAL_ID)) return true;
    if (is_axis(s, operands[i], VYRE__LIR_GROUP_ID) && !is_first_x(s, at)) {
      return true;
    }
    if (is_first_x(s, operands[i])) return true;
  }
  return false;
}

/* Adjacent workgroups form one long row if the kernel cannot distinguish
 * them: it has no barrier and no shared memory, and uses x as global_id.x
 * only. Sets fused_x. */
static bool find_fusion(vyre__schedule *s) {
  const vyre__region *run = &s->r.regions[s->r.first];
  if (run->kind != VYRE__REGION_PARALLEL || run->next || run->is_empty) {
    return false;
  }
  if (run->subregion_count != 1 || s->kernel->workgroup[0] == 1) return false;
  s->fused_x = 0;
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    if (!info_at(s, at)->is_needed) continue;
    if (is_access(s, at) &&
        s->kernel->buffers[inst_at(s, at)->aux].kind == VYRE_MEMORY_SHARED) {
      return false;
    }
    if (is_global_x(s, at)) {
      if (s->fused_x) return false;
      s->fused_x = at;
    } else if (uses_part_of_x(s, at)) {
      return false;
    }
  }
  return s->fused_x != 0;
}

/* --- lane shapes ----------------------------------------------------------*/

static bool is_stored_to(const vyre__schedule *s, uint32_t buffer) {
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    if (is_op(s, at, VYRE__LIR_STORE) && inst_at(s, at)->aux == buffer) {
      return true;
    }
  }
  return false;
}

/* Returns true if executing an invocation twice equals executing it once:
 * the phase reads nothing that it writes. */
static bool is_repeatable(const vyre__schedule *s) {
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    if (!info_at(s, at)->is_needed || !(flags_at(s, at) & VYRE__ACCESSES)) {
      continue;
    }
    if (is_op(s, at, VYRE__LIR_STORE)) continue;
    if (!is_op(s, at, VYRE__LIR_LOAD)) return false;
    if (is_stored_to(s, inst_at(s, at)->aux)) return false;
  }
  return true;
}

/* Returns true if @p anywhere gives lane shapes as good as the known ones. */
static bool is_as_good(const vyre__schedule *s,
                       const vyre__lane_shapes *anywhere) {
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    vyre__lane_shape was = shape_at(s, at),
                     is = vyre__lane_shape_of(anywhere, at);
    if (!info_at(s, at)->is_needed) continue;
    if (is.kind != was.kind || is.stride != was.stride) return false;
    if (s->shapes.parts_lanes[at - s->r.begin] !=
        anywhere->parts_lanes[at - s->r.begin]) {
      return false;
    }
  }
  return true;
}

/* Finds whether vectors may start anywhere and overlap, so that the ends of a
 * row are full vectors too. */
static vyre_code find_overlap(vyre__schedule *s, const vyre__regions *regions) {
  vyre__lane_shapes anywhere;
  if (!s->is_fused || s->width < 4 || !is_repeatable(s)) return VYRE_OK;
  VYRE_TRY(vyre__lane_shapes_find_anywhere(regions, s->width, s->arena,
                                           &anywhere, s->st));
  s->overlaps = is_as_good(s, &anywhere);
  if (s->overlaps) s->shapes = anywhere;
  return VYRE_OK;
}

/* Fused rows may be as wide as needed. */
static vyre_code find_shapes(vyre__schedule *s) {
  const uint32_t *size = s->kernel->workgroup;
  vyre__lir_kernel wide = *s->kernel;
  vyre__regions regions = s->r;
  s->is_fused = find_fusion(s);
  s->has_rows =
      s->is_fused || size[0] % s->width == 0 || (size[1] == 1 && size[2] == 1);
  if (s->is_fused) {
    wide.workgroup[0] = 64 * s->width;
    regions.kernel = &wide;
    regions.invocations = vyre__lir_group_size(&wide);
  }
  VYRE_TRY(
      vyre__lane_shapes_find(&regions, s->width, s->arena, &s->shapes, s->st));
  return find_overlap(s, &regions);
}

/* --- nodes ----------------------------------------------------------------*/

/* A list that grows at its end. */
typedef struct list {
  vyre__sched_node *first, **end;
} list;

/* Returns the new node; NULL: out of memory. */
static vyre__sched_node *append(vyre__schedule *s, list *to,
                                vyre__sched_node node) {
  vyre__sched_node *own = vyre__arena_array(s->arena, 1, sizeof *own);
  if (!own) return NULL;
  *own = node;
  *to->end = own;
  to->end = &own->next;
  return own;
}

static vyre_code no_node(const vyre__schedule *s) {
  return vyre__schedule_no_memory(s, s->r.end - s->r.begin);
}

/* Returns the end of the straight-line code that begins at @p at. */
static uint32_t end_of_leaf(const vyre__schedule *s, uint32_t at,
                            uint32_t end) {
  uint16_t breaks = VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS;
  while (at < end && !(flags_at(s, at) & breaks)) at++;
  return at;
}

static vyre__sched_mode mode_of(const vyre__schedule *s, uint32_t at) {
  const vyre__sched_note *note = note_at(s, at);
  if (is_op(s, at, VYRE__LIR_LOOP)) {
    return note->parts || note->continues ? VYRE__MODE_MASKED
                                          : VYRE__MODE_UNIFORM;
  }
  if (note->is_straight) return VYRE__MODE_SPECULATE;
  if (!vyre__sched_is_divergent(s, inst_at(s, at)->a)) {
    return VYRE__MODE_UNIFORM;
  }
  if (note->is_leap) return VYRE__MODE_JUMP;
  return note->is_small ? VYRE__MODE_SELECT : VYRE__MODE_MASKED;
}

vyre__known vyre__known_if(const vyre__schedule *s, const uint8_t *known,
                           uint32_t at) {
  const vyre__sched_note *note = note_at(s, at);
  if (note->is_straight) return VYRE__UNKNOWN;
  if (note->is_hoisted) return VYRE__KNOWN_FALSE;
  return known ? (vyre__known)known[inst_at(s, at)->a - s->r.begin]
               : VYRE__UNKNOWN;
}

/* Code of one range. */
typedef struct range_code {
  uint32_t subregion;
  const uint8_t *known;
} range_code;

static vyre_code add_code(vyre__schedule *s, const range_code *of, list *to,
                          uint32_t begin, uint32_t end);

static vyre_code build_list(vyre__schedule *s, const range_code *of,
                            uint32_t begin, uint32_t end,
                            vyre__sched_node **out) {
  list to = {.end = out};
  *out = NULL;
  return add_code(s, of, &to, begin, end);
}

/* Adds the IF or LOOP at @p at, or the arm of it that is taken. */
static vyre_code add_block(vyre__schedule *s, const range_code *of, list *to,
                           uint32_t at) {
  uint32_t close = vyre__end_of(&s->r, at), middle = info_at(s, at)->mate;
  bool is_if = is_op(s, at, VYRE__LIR_IF);
  vyre__known known = is_if ? vyre__known_if(s, of->known, at) : VYRE__UNKNOWN;
  if (known == VYRE__KNOWN_TRUE) return add_code(s, of, to, at + 1, middle);
  if (known == VYRE__KNOWN_FALSE) {
    return middle == close ? VYRE_OK : add_code(s, of, to, middle + 1, close);
  }
  vyre__sched_node *own = append(
      s, to,
      (vyre__sched_node){.kind = is_if ? VYRE__SCHED_IF : VYRE__SCHED_LOOP,
                         .mode = (uint8_t)mode_of(s, at),
                         .begin = at,
                         .end = close + 1,
                         .subregion = of->subregion});
  if (!own) return no_node(s);
  VYRE_TRY(build_list(s, of, at + 1, middle, &own->body));
  if (middle == close) return VYRE_OK;
  return build_list(s, of, middle + 1, close, &own->other);
}

static vyre_code add_code(vyre__schedule *s, const range_code *of, list *to,
                          uint32_t begin, uint32_t end) {
  for (uint32_t at = begin; at < end;) {
    if (is_op(s, at, VYRE__LIR_IF) || is_op(s, at, VYRE__LIR_LOOP)) {
      VYRE_TRY(add_block(s, of, to, at));
      at = vyre__end_of(&s->r, at) + 1;
      continue;
    }
    uint32_t stop = end_of_leaf(s, at, end);
    bool is_jump = stop == at;
    if (is_jump) stop++;
    vyre__sched_node node = {
        .kind = is_jump ? VYRE__SCHED_JUMP : VYRE__SCHED_CODE,
        .begin = at,
        .end = stop,
        .subregion = of->subregion};
    if (!append(s, to, node)) return no_node(s);
    at = stop;
  }
  return VYRE_OK;
}

vyre_code vyre__build_range(vyre__schedule *s, uint32_t subregion,
                            vyre__range_kind kind, const uint8_t *known,
                            vyre__sched_node **out) {
  const vyre__subregion *at = &s->r.subregions[subregion];
  const range_code of = {.subregion = subregion, .known = known};
  list to = {.end = out};
  vyre__sched_node *range = append(s, &to,
                                   (vyre__sched_node){.kind = VYRE__SCHED_RANGE,
                                                      .range = (uint8_t)kind,
                                                      .begin = at->begin,
                                                      .end = at->end,
                                                      .subregion = subregion,
                                                      .known = known});
  if (!range) return no_node(s);
  return build_list(s, &of, at->begin, at->end, &range->body);
}

bool vyre__rows_have_edge(const vyre__schedule *s) {
  uint32_t length = s->has_rows ? s->kernel->workgroup[0] : s->r.invocations;
  return s->is_fused || length % s->width != 0;
}

static vyre_code build_parallel(vyre__schedule *s, list *to, uint32_t index) {
  const vyre__region *region = &s->r.regions[index];
  vyre__sched_node node = {.kind = VYRE__SCHED_UNIFORM,
                           .begin = region->begin,
                           .end = region->end,
                           .region = index};
  vyre__sched_node *own = append(s, to, node);
  if (!own) return no_node(s);
  if (region->is_empty) return VYRE_OK;
  node.kind = s->has_rows ? VYRE__SCHED_ROWS : VYRE__SCHED_VECTORS;
  node.subregion = region->first_subregion;
  own = append(s, to, node);
  if (!own) return no_node(s);
  vyre__sched_node **to_range = &own->body;
  if (s->has_rows || s->r.invocations >= s->width) {
    VYRE_TRY(
        vyre__build_range(s, node.subregion, VYRE__RANGE_FULL, NULL, to_range));
    if (own->body) to_range = &own->body->next;
  }
  if (!vyre__rows_have_edge(s)) return VYRE_OK;
  return vyre__build_range(s, node.subregion, VYRE__RANGE_EDGE, NULL, to_range);
}

static vyre_code build_regions(vyre__schedule *s, uint32_t first,
                               vyre__sched_node **out) {
  static const uint8_t kinds[] = {[VYRE__REGION_IF] = VYRE__SCHED_GROUP_IF,
                                  [VYRE__REGION_LOOP] = VYRE__SCHED_GROUP_LOOP,
                                  [VYRE__REGION_BARRIER] = VYRE__SCHED_BARRIER,
                                  [VYRE__REGION_JUMP] = VYRE__SCHED_GROUP_JUMP};
  list to = {.end = &to.first};
  for (uint32_t i = first; i; i = s->r.regions[i].next) {
    const vyre__region *region = &s->r.regions[i];
    if (region->kind == VYRE__REGION_PARALLEL) {
      VYRE_TRY(build_parallel(s, &to, i));
      continue;
    }
    vyre__sched_node *own =
        append(s, &to,
               (vyre__sched_node){.kind = kinds[region->kind],
                                  .begin = region->begin,
                                  .end = region->end,
                                  .region = i});
    if (!own) return no_node(s);
    VYRE_TRY(build_regions(s, region->inner, &own->body));
    VYRE_TRY(build_regions(s, region->other, &own->other));
  }
  *to.end = NULL;
  *out = to.first;
  return VYRE_OK;
}

vyre_code vyre__schedule_build(vyre__schedule *s) {
  VYRE_TRY(find_shapes(s));
  VYRE_TRY(vyre__schedule_divergence(s));
  list root = {.end = &s->root};
  vyre__sched_node *groups = append(
      s, &root,
      (vyre__sched_node){
          .kind = VYRE__SCHED_GROUPS, .begin = s->r.begin, .end = s->r.end});
  if (!groups) return no_node(s);
  return build_regions(s, s->r.first, &groups->body);
}
