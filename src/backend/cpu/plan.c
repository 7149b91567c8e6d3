/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds the launch data of a kernel, and saves and loads it for the cache. */
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
  *out = (cpu_plan){.width = info->width, .scratch_bytes = info->scratch_bytes};
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

/* Fields of cpu_plan that are not part of the host plan. */
typedef struct own_head {
  uint64_t scratch_bytes;
  uint32_t spmd, width, is_baseline, reserved;
} own_head;

static vyre__artifact describe(cpu_plan *plan, own_head *own) {
  return (vyre__artifact){
      .magic = "vyrecpu",
      .version = CPU_ARTIFACT,
      .plan = &plan->base,
      .own = own,
      .own_size = sizeof *own,
      .arrays = {{&plan->full_writes, &plan->full_write_count,
                  sizeof *plan->full_writes, VYRE__ARTIFACT_MAX}},
      .array_count = 1};
}

bool cpu_artifact_write(const cpu_plan *plan, const void *object, size_t size,
                        vyre_writer writer) {
  cpu_plan copy = *plan;
  own_head own = {.scratch_bytes = plan->scratch_bytes,
                  .spmd = VYRE__SPMD_ABI,
                  .width = plan->width,
                  .is_baseline = plan->is_baseline};
  vyre__artifact artifact = describe(&copy, &own);
  artifact.code = object;
  artifact.code_size = size;
  return vyre__artifact_write(&artifact, writer);
}

static vyre_code check_own(const own_head *own, vyre_status *st) {
  if (own->spmd != VYRE__SPMD_ABI) {
    return vyre__artifact_bad(st, "its calls", own->spmd);
  }
  if (own->width == 0 || !vyre_emit_is_valid_width(own->width)) {
    return vyre__artifact_bad(st, "its width", own->width);
  }
  if (own->is_baseline > 1 || own->reserved != 0) {
    return vyre__artifact_bad(st, "how it was made", own->is_baseline);
  }
  return VYRE_OK;
}

/* Checks that the limits name bound buffers and 32-bit uniforms only. */
static bool is_valid_full_write(const cpu_plan *p, const cpu_full_write *w) {
  for (uint32_t k = 0; k < 32 && w->within >> k != 0; k++) {
    if (!(w->within >> k & 1)) continue;
    if (k >= p->buffer_count) return false;
    const vyre__plan_buffer *b = &p->buffers[k];
    if (!b->is_bound || (b->kind == VYRE_MEMORY_UNIFORM && b->width != 4)) {
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
    if (p->full_writes[i].is_full > p->buffers[i].is_bound ||
        !is_valid_full_write(p, &p->full_writes[i])) {
      return vyre__artifact_bad(st, "the limits of a full write", i);
    }
  }
  return VYRE_OK;
}

vyre_code cpu_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                            cpu_plan *out, const void **object,
                            size_t *object_size, vyre_status *st) {
  own_head own;
  *out = (cpu_plan){0};
  vyre__artifact artifact = describe(out, &own);
  VYRE_TRY(vyre__artifact_read(bytes, size, &artifact, arena, st));
  VYRE_TRY(check_own(&own, st));
  VYRE_TRY(check_full_writes(out, st));
  out->width = own.width;
  out->is_baseline = own.is_baseline;
  out->scratch_bytes = own.scratch_bytes;
  *object = artifact.code;
  *object_size = artifact.code_size;
  return VYRE_OK;
}
