/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/plan.h"

#include <string.h>

#include "vyre/emit.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/artifact.h"

/* --- from a kernel ---------------------------------------------------------------*/

/* An index of the lane before the first is no index of an element. */
enum { MOST_ELEMENTS_LESS = 2 * VYRE__SPMD_MAX_WIDTH };

vyre_code cpu_plan_build(const vyre__lir_kernel *kernel,
                         const vyre__spmd_info *info, vyre_arena *arena,
                         cpu_plan *out, vyre_status *st) {
  *out = (cpu_plan){.width = info->width, .scratch_bytes = info->scratch_bytes};
  VYRE_TRY(vyre__host_plan_build(kernel, UINT32_MAX - MOST_ELEMENTS_LESS, "cpu",
                                 arena, &out->base, st));
  uint32_t count = out->buffer_count;
  cpu_whole *whole = vyre__arena_array(arena, count, sizeof *whole);
  if (!whole) return vyre__no_memory(st, "cpu", "buffers", count);
  if (count > 0) memset(whole, 0, count * sizeof *whole);
  cpu_find_whole(kernel, whole);
  cpu_drop_read(kernel, whole);
  out->whole_count = count;
  out->whole = whole;
  return VYRE_OK;
}

/* --- as bytes ----------------------------------------------------------------------*/

/* What there is beside the host's plan. */
typedef struct own_head {
  uint64_t scratch_bytes;
  uint32_t spmd, width, is_short, reserved;
} own_head;

static vyre__artifact describe(cpu_plan *plan, own_head *own) {
  return (vyre__artifact){.magic = "vyrecpu",
                          .version = CPU_ARTIFACT,
                          .plan = &plan->base,
                          .own = own,
                          .own_size = sizeof *own,
                          .arrays = {{&plan->whole, &plan->whole_count,
                                      sizeof *plan->whole, VYRE__ARTIFACT_MAX}},
                          .array_count = 1};
}

bool cpu_artifact_write(const cpu_plan *plan, const void *object, size_t size,
                        vyre_writer writer) {
  cpu_plan copy = *plan;
  own_head own = {.scratch_bytes = plan->scratch_bytes,
                  .spmd = VYRE__SPMD_ABI,
                  .width = plan->width,
                  .is_short = plan->is_short};
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
  if (own->is_short > 1 || own->reserved != 0) {
    return vyre__artifact_bad(st, "how it was made", own->is_short);
  }
  return VYRE_OK;
}

/* Limits of a buffer are bound buffers, and uniforms of 32 bits. */
static bool is_whole_good(const cpu_plan *p, const cpu_whole *w) {
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

static vyre_code check_whole(const cpu_plan *p, vyre_status *st) {
  if (p->whole_count != p->buffer_count) {
    return vyre__artifact_bad(st, "its counts", p->whole_count);
  }
  for (uint32_t i = 0; i < p->whole_count; i++) {
    if (p->whole[i].is_whole > p->buffers[i].is_bound ||
        !is_whole_good(p, &p->whole[i])) {
      return vyre__artifact_bad(st, "what a buffer is held against", i);
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
  VYRE_TRY(check_whole(out, st));
  out->width = own.width;
  out->is_short = own.is_short;
  out->scratch_bytes = own.scratch_bytes;
  *object = artifact.code;
  *object_size = artifact.code_size;
  return VYRE_OK;
}
