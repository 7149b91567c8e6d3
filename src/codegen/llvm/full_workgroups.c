/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code for full workgroups, in which all guards and bounds checks hold.
 *
 * In all workgroups but the last few, every invocation is inside the
 * buffers. The start of a workgroup decides that once. Full workgroups run
 * separate code without these conditions. Its rows are unrolled with
 * constant positions, so that shared arrays, of which this code has its own,
 * can become registers. */
#include <string.h>

#include "base/memory.h"
#include "codegen/llvm/internal.h"

enum {
  MAX_INSTRUCTIONS = 400,
  MAX_SHARED = 8 * 1024, /* bytes */
};

/* Barriers split a body into regions. Without barriers, rows are long and
 * range splitting suffices. */
void ll_plan_whole(ll *e) {
  const uint32_t *size = e->kernel->workgroup;
  uint64_t shared = 0;
  e->has_whole = e->is_whole = false;
  if (e->is_fused || !e->has_rows || !e->r.regions[e->r.first].next) return;
  if (size[1] != 1 || size[2] != 1 || size[0] % e->width || e->width == 1) {
    return;
  }
  if (e->r.end - e->r.begin > MAX_INSTRUCTIONS ||
      e->r.done_storage != VYRE__STORAGE_LOCAL) {
    return;
  }
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_SHARED || !e->buffer_used[i]) continue;
    shared += (uint64_t)buffer->count * buffer->unit;
  }
  if (shared > MAX_SHARED) return;
  for (uint32_t i = 1; i < e->r.subregion_count; i++) {
    e->has_whole |= e->rows[i] && ll_row_is_told(e, e->rows[i]);
  }
}

/* Both copies have their own arrays. */
static void run_whole(ll *e) {
  size_t vars = e->kernel->var_count, insts = e->r.end - e->r.begin + 1;
  ll_var *old_vars = vyre__arena_array(e->arena, vars, sizeof *old_vars);
  ll_op *old_kept = vyre__arena_array(e->arena, insts, sizeof *old_kept);
  if (!old_vars || !old_kept) {
    e->no_memory = true;
    return;
  }
  memcpy(old_vars, e->vars, vars * sizeof *old_vars);
  memcpy(old_kept, e->kept, insts * sizeof *old_kept);
  uint32_t mark = ll_enter(e);
  e->is_whole = true;
  ll_clear_arrays(e);
  ll_parts(e, e->r.first);
  ll_br(e, e->next_group);
  e->is_whole = false;
  ll_leave(e, mark);
  memcpy(e->vars, old_vars, vars * sizeof *old_vars);
  memcpy(e->kept, old_kept, insts * sizeof *old_kept);
}

void ll_run_group(ll *e) {
  if (e->has_whole) {
    uint32_t whole = ll_label(e), rest = ll_label(e);
    ll_op test = {0};
    for (uint32_t i = 1; i < e->r.subregion_count; i++) {
      if (!e->rows[i] || !ll_row_is_told(e, e->rows[i])) continue;
      ll_op one = ll_row_is_whole(e, e->rows[i]);
      test = test.kind == LL_NONE
                 ? one
                 : ll_def(e, "and i1 %v, %v", LL_I1, test, LL_I1, one);
    }
    ll_hope(e, test, whole, rest);
    ll_place(e, whole);
    run_whole(e);
    ll_place(e, rest);
  }
  ll_clear_arrays(e);
  ll_parts(e, e->r.first);
}
