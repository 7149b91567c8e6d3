/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds the plan of a kernel, and writes and reads it as an artifact.
 * Every number of an artifact is checked, because the file may be corrupt. */
#include "backend/vulkan/plan.h"

#include <string.h>

#include "base/status.h"
#include "hal/artifact.h"

/* --- building a plan ------------------------------------------------------ */

vyre_code vk_plan_build(const vyre__lir_kernel *k,
                        const vyre__spirv_module *module, vyre_arena *arena,
                        vk_plan *out, vyre_status *st) {
  *out = (vk_plan){.descriptor_count = (uint32_t)module->descriptor_count,
                   .field_count = (uint32_t)module->field_count,
                   .word_count = (uint32_t)module->word_count,
                   .descriptors = module->descriptors,
                   .fields = module->fields,
                   .words = module->words,
                   .push_bytes = module->push_bytes,
                   .block_bytes = module->block_bytes,
                   .shared_bytes = module->shared_bytes,
                   .may_skip_fuel = module->may_skip_fuel};
  /* OpAccessChain reads an index as a signed number. */
  VYRE_TRY(
      vyre__host_plan_build(k, INT32_MAX, "vulkan", arena, &out->base, st));
  out->phase_count = module->entry_points;
  return VYRE_OK;
}

/* --- artifacts ------------------------------------------------------------ */

enum { MAX_WORDS = 1 << 26 };

static vyre__artifact describe_artifact(vk_plan *p) {
  return (vyre__artifact){
      .magic = "vyrespv",
      .version = VK_ARTIFACT,
      .plan = &p->base,
      .own = p->numbers,
      .own_size = sizeof p->numbers,
      .arrays = {{&p->descriptors, &p->descriptor_count, sizeof *p->descriptors,
                  VYRE__ARTIFACT_MAX},
                 {&p->fields, &p->field_count, sizeof *p->fields,
                  VYRE__ARTIFACT_MAX},
                 {&p->words, &p->word_count, sizeof *p->words, MAX_WORDS}},
      .array_count = 3,
      .has_extra = true};
}

void vk_artifact_write(vk_plan *plan, vyre__bytes *to) {
  vyre__artifact artifact = describe_artifact(plan);
  vyre__artifact_write(&artifact, to);
}

static vyre_code check_numbers(const vk_plan *p, vyre_status *st) {
  if (p->push_bytes > VK_MAX_PUSH_BYTES || p->may_skip_fuel > 1) {
    return vyre__artifact_bad(st, "its push constants", p->push_bytes);
  }
  if (p->block_bytes > VYRE__ARTIFACT_MAX) {
    return vyre__artifact_bad(st, "its launch block", p->block_bytes);
  }
  return p->word_count >= 5
             ? VYRE_OK
             : vyre__artifact_bad(st, "its module", p->word_count);
}

static bool is_bool(const bool *value) {
  uint8_t byte;
  memcpy(&byte, value, 1);
  return byte <= 1;
}

static bool is_valid_descriptor(const vk_plan *p, uint32_t at) {
  const vyre__spirv_descriptor *d = &p->descriptors[at];
  if (d->what > VYRE__SPIRV_BLOCK || !is_bool(&d->is_uniform) ||
      !is_bool(&d->is_written) || d->binding > VYRE__ARTIFACT_MAX ||
      (at > 0 && d->binding <= d[-1].binding)) {
    return false;
  }
  if (d->what == VYRE__SPIRV_BUFFER) {
    return d->buffer < p->buffer_count && p->buffers[d->buffer].is_bound;
  }
  return d->what != VYRE__SPIRV_KEPT ||
         (d->buffer == p->spill_buffer && p->spill_buffer != VYRE_NO_INDEX);
}

static bool is_valid_field(const vk_plan *p, const vyre__spirv_field *f) {
  if (f->value > VYRE__SPIRV_UNIFORM || !is_bool(&f->is_pushed)) return false;
  uint32_t available = f->is_pushed ? p->push_bytes : p->block_bytes;
  if (f->offset % 4 != 0 || f->size % 4 != 0 || f->size == 0 ||
      f->offset > available || f->size > available - f->offset) {
    return false;
  }
  if (f->value >= VYRE__SPIRV_LENGTH &&
      (f->index >= p->buffer_count || !p->buffers[f->index].is_bound)) {
    return false;
  }
  if (f->value == VYRE__SPIRV_UNIFORM) {
    const vyre__plan_buffer *b = &p->buffers[f->index];
    return b->kind == VYRE_MEMORY_UNIFORM &&
           (uint64_t)b->min * b->unit <= f->size;
  }
  return f->value != VYRE__SPIRV_LOOP_VALUE || f->index < p->loop_count;
}

/* Checks all descriptors and fields. Descriptors other than buffers occur once;
 * a launch block exists exactly if it has bytes. */
static vyre_code check_bindings(const vk_plan *p, vyre_status *st) {
  uint32_t header[VYRE__SPIRV_BLOCK + 1] = {0};
  for (uint32_t i = 0; i < p->descriptor_count; i++) {
    if (!is_valid_descriptor(p, i)) {
      return vyre__artifact_bad(st, "a descriptor", i);
    }
    uint32_t what = p->descriptors[i].what;
    if (++header[what] > 1 && what != VYRE__SPIRV_BUFFER) {
      return vyre__artifact_bad(st, "a duplicate descriptor", i);
    }
  }
  if (header[VYRE__SPIRV_BLOCK] != (p->block_bytes > 0)) {
    return vyre__artifact_bad(st, "its launch block", p->block_bytes);
  }
  for (uint32_t i = 0; i < p->field_count; i++) {
    if (!is_valid_field(p, &p->fields[i])) {
      return vyre__artifact_bad(st, "a field of the launch block", i);
    }
  }
  return VYRE_OK;
}

vyre_code vk_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                           vk_plan *out, const void **cache, size_t *cache_size,
                           vyre_status *st) {
  *out = (vk_plan){0};
  vyre__artifact artifact = describe_artifact(out);
  VYRE_TRY(vyre__artifact_read(bytes, size, &artifact, arena, st));
  VYRE_TRY(check_numbers(out, st));
  VYRE_TRY(check_bindings(out, st));
  *cache = artifact.extra;
  *cache_size = artifact.extra_size;
  return VYRE_OK;
}
