/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `full-workgroups`: code for full workgroups, in which all guards and bounds checks hold.
 *
 * In all workgroups but the last few, every invocation is inside the
 * buffers. The start of a workgroup decides that once. Full workgroups run
 * separate code without these conditions. Its rows are unrolled with
 * constant positions, so that shared arrays, of which this code has its own,
 * can become registers. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/schedule_internal.h"

enum {
  MAX_INSTRUCTIONS = 400,
  MAX_SHARED = 8 * 1024, /* bytes */
};

static bool is_used(const vyre__schedule *s, uint32_t buffer) {
  for (uint32_t at = s->r.begin; at < s->r.end; at++) {
    if (is_access(s, at) && info_at(s, at)->is_needed &&
        inst_at(s, at)->aux == buffer) {
      return true;
    }
  }
  return false;
}

/* Barriers split a body into regions. Without barriers, rows are long and
 * range splitting suffices. */
static bool pays(vyre__schedule *s) {
  const uint32_t *size = s->kernel->workgroup;
  uint64_t shared = 0;
  bool any = false;
  if (s->is_compact) return false;
  if (s->is_fused || !s->has_rows || !s->r.regions[s->r.first].next)
    return false;
  if (size[1] != 1 || size[2] != 1 || size[0] % s->width || s->width == 1) {
    return false;
  }
  if (s->r.end - s->r.begin > MAX_INSTRUCTIONS ||
      s->r.done_storage != VYRE__STORAGE_LOCAL) {
    return false;
  }
  for (uint32_t i = 0; i < s->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &s->kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_SHARED || !is_used(s, i)) continue;
    shared += (uint64_t)buffer->count * buffer->unit;
  }
  if (shared > MAX_SHARED) return false;
  for (uint32_t i = 1; i < s->r.subregion_count; i++) {
    any |= s->splits[i] && vyre__row_by_group(s, s->splits[i]);
  }
  return any;
}

/* --- the copy -------------------------------------------------------------*/

/* Copies the split of a row; conditions that the start of the workgroup
 * evaluates are proven in the copy. */
static vyre__row_split *copy_split(vyre__schedule *s,
                                   const vyre__row_split *from) {
  vyre__row_split *to = vyre__arena_array(s->arena, 1, sizeof *to);
  if (!to) return NULL;
  *to = *from;
  for (uint32_t i = 0; i < to->count; i++) {
    to->conditions[i].is_proven = to->conditions[i].by_group;
  }
  return to;
}

/* Copies the nodes of a workgroup. Ranges are shared with the original. */
static vyre_code copy_list(vyre__schedule *s, const vyre__sched_node *from,
                           vyre__sched_node **out) {
  vyre__sched_node **to = out;
  for (; from; from = from->next) {
    vyre__sched_node *node = vyre__arena_array(s->arena, 1, sizeof *node);
    if (!node) return vyre__schedule_no_memory(s, 1);
    *node = *from;
    if (node->kind == VYRE__SCHED_ROWS) {
      node->split = copy_split(s, from->split);
      if (!node->split) return vyre__schedule_no_memory(s, 1);
    } else {
      VYRE_TRY(copy_list(s, from->body, &node->body));
      VYRE_TRY(copy_list(s, from->other, &node->other));
    }
    *to = node;
    to = &node->next;
  }
  *to = NULL;
  return VYRE_OK;
}

vyre_code vyre__schedule_full_workgroups(vyre__schedule *s) {
  if (!pays(s)) return VYRE_OK;
  vyre__sched_node *groups = vyre__sched_groups(s);
  vyre__sched_node *node = vyre__arena_array(s->arena, 1, sizeof *node);
  if (!node) return vyre__schedule_no_memory(s, 1);
  *node = (vyre__sched_node){.kind = VYRE__SCHED_FULL_GROUPS,
                             .begin = groups->begin,
                             .end = groups->end,
                             .other = groups->body};
  VYRE_TRY(copy_list(s, groups->body, &node->body));
  groups->body = node;
  return VYRE_OK;
}
