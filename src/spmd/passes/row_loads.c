/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pass `row-loads`: an element that all invocations of a row load,
 *
 *   dist[i * n + j] = min(dist[i * n + j], dist[i * n + k] + dist[k * n + j]);
 *
 * is loaded once, at the start of the row, even if the row writes to the
 * buffer. If an invocation wrote to an element that others load, the kernel
 * would have a race, and its own store comes after its load. */
#include "spmd/schedule_internal.h"

/* Returns true if something in [begin, end) writes to @p buffer. */
static bool is_written(const vyre__schedule *s, uint32_t buffer, uint32_t begin,
                       uint32_t end) {
  uint16_t effects = VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
  for (uint32_t at = begin; at < end; at++) {
    if (is_access(s, at) && flags_at(s, at) & effects &&
        inst_at(s, at)->aux == buffer) {
      return true;
    }
  }
  return false;
}

static bool is_common(const vyre__schedule *s, const vyre__sched_node *range,
                      vyre__row_split *row, uint32_t at) {
  const vyre__lir_inst *inst = inst_at(s, at);
  const vyre__inst_info *info = info_at(s, at);
  if (inst->op != VYRE__LIR_LOAD || !info->is_needed) return false;
  if (info->storage == VYRE__STORAGE_UNIFORM) return false;
  if (s->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED) return false;
  bool is_checked =
      inst->b && range->known[inst->b - s->r.begin] == VYRE__KNOWN_TRUE;
  return is_checked && vyre__row_is_uniform(s, row, inst->a) &&
         !is_written(s, inst->aux, range->begin, at) &&
         is_written(s, inst->aux, at, range->end);
}

static void find_in(vyre__schedule *s, const vyre__sched_node *rows) {
  const vyre__sched_node *range = rows->body;
  if (!range || range->kind != VYRE__SCHED_RANGE || !range->known) return;
  if (range->range != VYRE__RANGE_FULL || !rows->split) return;
  for (const vyre__sched_node *node = range->body; node; node = node->next) {
    if (node->kind != VYRE__SCHED_CODE) continue;
    for (uint32_t at = node->begin; at < node->end; at++) {
      if (!is_common(s, range, rows->split, at)) continue;
      note_at(s, at)->is_row_load = true;
      rows->split->has_loads = true;
    }
  }
}

vyre_code vyre__schedule_row_loads(vyre__schedule *s) {
  if (!s->is_fused) return VYRE_OK;
  const vyre__sched_node *node = vyre__sched_groups(s)->body;
  for (; node; node = node->next) {
    if (node->kind == VYRE__SCHED_ROWS) find_in(s, node);
  }
  return VYRE_OK;
}
