/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds the launch data of a kernel, and writes and reads it as an artifact. */
#include "backend/cpu/plan.h"

#include <string.h>

#include "vyre/emit.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/artifact.h"

/* --- build -----------------------------------------------------------------*/

/* Vector code computes the index of a lane before the first element. The
 * largest buffer is this much shorter than 2^32, so that such an index is out
 * of bounds. */
enum { RESERVED_INDICES = 2 * VYRE__SPMD_MAX_WIDTH };

vyre_code cpu_plan_build(const vyre__lir_kernel *kernel,
                         const vyre__spmd_info *info, vyre_arena *arena,
                         cpu_plan *out, vyre_status *st) {
  *out = (cpu_plan){.numbers = {.scratch_bytes = info->scratch_bytes,
                                .spmd = VYRE__SPMD_ABI,
                                .width = info->width}};
  VYRE_TRY(vyre__host_plan_build(kernel, UINT32_MAX - RESERVED_INDICES, "cpu",
                                 arena, &out->base, st));
  uint32_t count = out->buffer_count;
  cpu_full_write *full_writes =
      vyre__arena_array(arena, count, sizeof *full_writes);
  if (!full_writes) return vyre__no_memory(st, "cpu", "buffers", count);
  if (count > 0) memset(full_writes, 0, count * sizeof *full_writes);
  cpu_find_full_writes(kernel, full_writes);
  cpu_unmark_read_buffers(kernel, full_writes);
  out->full_write_count = count;
  out->full_writes = full_writes;
  return VYRE_OK;
}

/* --- save and load ---------------------------------------------------------*/

static vyre__artifact describe(cpu_plan *plan) {
  return (vyre__artifact){
      .magic = "vyrecpu",
      .version = CPU_ARTIFACT,
      .plan = &plan->base,
      .own = &plan->numbers,
      .own_size = sizeof plan->numbers,
      .arrays = {{&plan->full_writes, &plan->full_write_count,
                  sizeof *plan->full_writes, VYRE__ARTIFACT_MAX}},
      .array_count = 1};
}

void cpu_artifact_write(cpu_plan *plan, const void *object, size_t size,
                        vyre__bytes *to) {
  vyre__artifact artifact = describe(plan);
  artifact.code = object;
  artifact.code_size = size;
  vyre__artifact_write(&artifact, to);
}

static vyre_code check_numbers(const cpu_plan_numbers *n, vyre_status *st) {
  if (n->spmd != VYRE__SPMD_ABI) {
    return vyre__artifact_bad(st, "its calls", n->spmd);
  }
  if (n->width == 0 || !vyre_emit_is_valid_width(n->width)) {
    return vyre__artifact_bad(st, "its width", n->width);
  }
  if (n->is_baseline > 1 || n->is_replaced > 1) {
    return vyre__artifact_bad(st, "how it was made", n->is_baseline);
  }
  return VYRE_OK;
}

/* Checks that @p bits name bound buffers, and uniforms only if they have 32
 * bits; with @p by_value, uniforms only. */
static bool are_valid_buffers(const cpu_plan *p, uint32_t bits, bool by_value) {
  for (uint32_t k = 0; k < 32 && bits >> k != 0; k++) {
    if (!(bits >> k & 1)) continue;
    if (k >= p->buffer_count) return false;
    const vyre__plan_buffer *b = &p->buffers[k];
    bool is_uniform = b->kind == VYRE_MEMORY_UNIFORM;
    if (!b->is_bound || (is_uniform ? b->width != 4 : by_value)) return false;
  }
  return true;
}

static bool is_valid_full_write(const cpu_plan *p, const cpu_full_write *w) {
  if (w->digit_count > CPU_DIGITS) return false;
  for (uint32_t i = 0; i < w->digit_count; i++) {
    const cpu_digit *d = &w->digits[i];
    if (d->groups > 3 || !are_valid_buffers(p, d->within, false) ||
        !are_valid_buffers(p, d->less_within, false) ||
        !are_valid_buffers(p, d->by, true)) {
      return false;
    }
  }
  return true;
}

static vyre_code check_full_writes(const cpu_plan *p, vyre_status *st) {
  if (p->full_write_count != p->buffer_count) {
    return vyre__artifact_bad(st, "its counts", p->full_write_count);
  }
  for (uint32_t i = 0; i < p->full_write_count; i++) {
    if (p->full_writes[i].is_partial > p->buffers[i].is_bound ||
        p->full_writes[i].is_full > p->full_writes[i].is_partial ||
        !is_valid_full_write(p, &p->full_writes[i])) {
      return vyre__artifact_bad(st, "the limits of a full write", i);
    }
  }
  return VYRE_OK;
}

vyre_code cpu_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                            cpu_plan *out, const void **object,
                            size_t *object_size, vyre_status *st) {
  *out = (cpu_plan){0};
  vyre__artifact artifact = describe(out);
  VYRE_TRY(vyre__artifact_read(bytes, size, &artifact, arena, st));
  VYRE_TRY(check_numbers(&out->numbers, st));
  VYRE_TRY(check_full_writes(out, st));
  *object = artifact.code;
  *object_size = artifact.code_size;
  return VYRE_OK;
}
