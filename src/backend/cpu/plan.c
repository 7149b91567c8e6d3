/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/plan.h"

#include <string.h>

#include "vyre/emit.h"

#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"

/* --- from a kernel ---------------------------------------------------------------*/

/* An index of the lane before the first is no index of an element. */
enum { MOST_ELEMENTS_LESS = 2 * VYRE__SPMD_MOST_WIDTH };

static uint32_t most_of(const vyre__low_buffer *buffer) {
  uint32_t most = vyre__low_most_elements(buffer);
  uint32_t limit = UINT32_MAX - MOST_ELEMENTS_LESS;
  return most < limit ? most : limit;
}

static void take_buffers(const vyre__low_kernel *k, cpu_buffer *to) {
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *b = &k->buffers[i];
    to[i] = (cpu_buffer){.least = b->count,
                         .most = most_of(b),
                         .kind = b->kind,
                         .width = b->width,
                         .is_bound = b->source != VYRE_NO_INDEX &&
                                     b->kind != VYRE_MEMORY_SHARED};
  }
}

static uint32_t mate_of(const vyre__low_kernel *k, uint32_t at) {
  const vyre__low_step *s = &k->steps[at];
  for (uint32_t i = 0; i < k->step_count; i++) {
    const vyre__low_step *o = &k->steps[i];
    if (i != at && o->kind != VYRE__STEP_RUN && o->loop == s->loop) return i;
  }
  return at;
}

static void take_steps(const vyre__low_kernel *k, cpu_step *to) {
  for (uint32_t i = 0; i < k->step_count; i++) {
    const vyre__low_step *s = &k->steps[i];
    bool is_run = s->kind == VYRE__STEP_RUN, is_for = s->kind == VYRE__STEP_FOR;
    to[i] = (cpu_step){.kind = s->kind,
                       .loop_kind = is_for ? s->loop_kind : 0,
                       .type = is_for ? s->type : 0,
                       .phase = is_run ? s->phase : 0,
                       .loop = is_run ? 0 : s->loop,
                       .first = is_for ? s->first - k->host.begin : 0,
                       .bound = is_for ? s->bound - k->host.begin : 0,
                       .mate = is_run ? i : mate_of(k, i),
                       .by = is_for ? s->step : 0};
  }
}

static void take_host(const vyre__low_kernel *k, cpu_inst *to) {
  for (uint32_t i = k->host.begin; i < k->host.end; i++) {
    cpu_inst *inst = &to[i - k->host.begin];
    *inst = k->code[i];
    inst->hints = 0;
    for (unsigned n = 0; n < vyre__low_ops[inst->op].operands; n++) {
      if (inst->v[n]) inst->v[n] -= k->host.begin - 1;
    }
  }
}

vyre_code cpu_plan_build(const vyre__low_kernel *kernel,
                         const vyre__spmd_info *info, vyre_arena *arena,
                         cpu_plan *out, vyre_status *st) {
  uint32_t host_count = kernel->host.end - kernel->host.begin;
  cpu_buffer *buffers =
      vyre__arena_array(arena, kernel->buffer_count, sizeof *buffers);
  cpu_step *steps = vyre__arena_array(arena, kernel->step_count, sizeof *steps);
  cpu_inst *host = vyre__arena_array(arena, host_count, sizeof *host);
  if (!buffers || !steps || !host) {
    return vyre__no_memory(st, "cpu", "steps", kernel->step_count);
  }
  take_buffers(kernel, buffers);
  cpu_find_whole(kernel, buffers);
  cpu_drop_read(kernel, buffers);
  take_steps(kernel, steps);
  take_host(kernel, host);
  *out = (cpu_plan){.width = info->width,
                    .has_fuel = kernel->has_fuel,
                    .phase_count = kernel->phase_count,
                    .buffer_count = kernel->buffer_count,
                    .step_count = kernel->step_count,
                    .host_count = host_count,
                    .loop_count = kernel->grid_loop_count,
                    .hidden = kernel->hidden,
                    .hidden_words = kernel->hidden_words,
                    .scratch_bytes = info->scratch_bytes,
                    .buffers = buffers,
                    .steps = steps,
                    .host = host};
  for (unsigned axis = 0; axis < 3; axis++) {
    out->workgroup[axis] = kernel->workgroup[axis];
    out->most_groups[axis] = vyre__low_most_groups(kernel, axis);
  }
  return VYRE_OK;
}

/* --- as bytes ----------------------------------------------------------------------*/

typedef struct artifact_head {
  char magic[8];
  uint32_t version, spmd;
  uint64_t object_size;
  uint64_t scratch_bytes;
  uint32_t workgroup[3], most_groups[3];
  uint32_t width, has_fuel;
  uint32_t phase_count, buffer_count, step_count, host_count, loop_count;
  uint32_t hidden, hidden_words, is_short;
} artifact_head;

static const char magic[8] = "vyrecpu";

enum { MOST = 1 << 20 }; /* of anything that is counted */

bool cpu_artifact_write(const cpu_plan *plan, const void *object, size_t size,
                        vyre_writer writer) {
  artifact_head head = {.version = CPU_ARTIFACT,
                        .spmd = VYRE__SPMD_ABI,
                        .object_size = size,
                        .scratch_bytes = plan->scratch_bytes,
                        .width = plan->width,
                        .has_fuel = plan->has_fuel,
                        .phase_count = plan->phase_count,
                        .buffer_count = plan->buffer_count,
                        .step_count = plan->step_count,
                        .host_count = plan->host_count,
                        .loop_count = plan->loop_count,
                        .hidden = plan->hidden,
                        .hidden_words = plan->hidden_words,
                        .is_short = plan->is_short};
  memcpy(head.magic, magic, sizeof magic);
  memcpy(head.workgroup, plan->workgroup, sizeof head.workgroup);
  memcpy(head.most_groups, plan->most_groups, sizeof head.most_groups);
  const struct {
    const void *bytes;
    size_t size;
  } parts[] = {{&head, sizeof head},
               {plan->buffers, plan->buffer_count * sizeof *plan->buffers},
               {plan->steps, plan->step_count * sizeof *plan->steps},
               {plan->host, plan->host_count * sizeof *plan->host},
               {object, size}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (parts[i].size == 0) continue;
    if (!writer.write(writer.self, parts[i].bytes, parts[i].size)) return false;
  }
  return true;
}

static vyre_code bad(vyre_status *st, const char *what, uint64_t number) {
  return VYRE_FAIL_WITH(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
                        VYRE_NUMBERS({"number", number}),
                        "compile the kernel again; `vyre cache prune --all` "
                        "drops what is on disk",
                        "a kept kernel cannot be used: %s (%llu)", what,
                        (unsigned long long)number);
}

static vyre_code check_head(const artifact_head *h, vyre_status *st) {
  if (memcmp(h->magic, magic, sizeof magic) != 0) {
    return bad(st, "it is none", (unsigned char)h->magic[0]);
  }
  if (h->version != CPU_ARTIFACT) return bad(st, "its version", h->version);
  if (h->spmd != VYRE__SPMD_ABI) return bad(st, "its calls", h->spmd);
  if (h->width == 0 || !vyre_emit_has_width(h->width)) {
    return bad(st, "its width", h->width);
  }
  if (h->phase_count == 0 || h->phase_count > MOST || h->step_count > MOST ||
      h->host_count > MOST || h->buffer_count > MOST || h->loop_count > MOST) {
    return bad(st, "its counts", h->phase_count);
  }
  if (h->hidden != VYRE_NO_INDEX && h->hidden >= h->buffer_count) {
    return bad(st, "its hidden buffer", h->hidden);
  }
  if (h->is_short > 1) return bad(st, "how it was made", h->is_short);
  return VYRE_OK;
}

static vyre_code check_buffers(const cpu_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    const cpu_buffer *b = &p->buffers[i];
    bool is_power =
        b->width == 1 || b->width == 2 || b->width == 4 || b->width == 8;
    bool has_within =
        p->buffer_count >= 32 || b->within >> p->buffer_count == 0;
    if (!is_power || b->is_bound > 1 || (b->is_bound && p->hidden == i) ||
        b->is_whole > b->is_bound || !has_within) {
      return bad(st, "a buffer", i);
    }
    for (uint32_t k = 0; k < p->buffer_count && k < 32; k++) {
      const cpu_buffer *o = &p->buffers[k];
      if (!(b->within >> k & 1)) continue;
      if (!o->is_bound || (o->kind == VYRE_MEMORY_UNIFORM && o->width != 4)) {
        return bad(st, "what a buffer is held against", i);
      }
    }
  }
  return VYRE_OK;
}

static vyre_code check_steps(const cpu_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->step_count; i++) {
    const cpu_step *s = &p->steps[i];
    if (s->kind == VYRE__STEP_RUN && s->phase < p->phase_count) continue;
    bool is_for = s->kind == VYRE__STEP_FOR;
    if ((!is_for && s->kind != VYRE__STEP_END_FOR) ||
        s->loop >= p->loop_count || s->mate >= p->step_count ||
        p->steps[s->mate].mate != i || p->steps[s->mate].loop != s->loop ||
        is_for != (s->mate > i) ||
        p->steps[s->mate].kind !=
            (is_for ? VYRE__STEP_END_FOR : VYRE__STEP_FOR) ||
        (is_for && (s->first >= p->host_count || s->bound >= p->host_count))) {
      return bad(st, "a step", i);
    }
  }
  return VYRE_OK;
}

static vyre_code check_host(const cpu_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->host_count; i++) {
    const cpu_inst *inst = &p->host[i];
    if (inst->op >= VYRE__LOW_COUNT) return bad(st, "an operation", inst->op);
    const vyre__low_info *info = &vyre__low_ops[inst->op];
    bool is_load = inst->op == VYRE__LOW_LOAD, is_good = true;
    for (unsigned n = 0; n < info->operands; n++) {
      is_good &= inst->v[n] <= i;
    }
    if (is_load || inst->op == VYRE__LOW_LEN) {
      is_good &= inst->aux < p->buffer_count;
    }
    if (is_load) {
      is_good = is_good && p->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM &&
                inst->a != 0;
    }
    if (inst->op == VYRE__LOW_LOOP_VALUE) is_good &= inst->aux < p->loop_count;
    if (inst->op == VYRE__LOW_GRID_SIZE) is_good &= inst->aux < 3;
    if (!is_good || (!is_load && !(info->flags & VYRE__LOWF_PURE))) {
      return bad(st, "an operation of the host", i);
    }
  }
  return VYRE_OK;
}

/* The next @p count elements, in the arena. */
static const void *take(const unsigned char **at, size_t *left, size_t count,
                        size_t element, vyre_arena *arena) {
  size_t size = count * element; /* at most 2^20 of a few bytes */
  if (size > *left) return NULL;
  void *copy = vyre__arena_array(arena, count, element);
  if (!copy) return NULL;
  if (size > 0) memcpy(copy, *at, size);
  *at += size;
  *left -= size;
  return copy;
}

vyre_code cpu_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                            cpu_plan *out, const void **object,
                            size_t *object_size, vyre_status *st) {
  artifact_head h;
  if (size < sizeof h) return bad(st, "it ends too soon", size);
  memcpy(&h, bytes, sizeof h);
  VYRE_TRY(check_head(&h, st));
  const unsigned char *at = (const unsigned char *)bytes + sizeof h;
  size_t left = size - sizeof h;
  *out = (cpu_plan){.width = h.width,
                    .has_fuel = h.has_fuel,
                    .phase_count = h.phase_count,
                    .buffer_count = h.buffer_count,
                    .step_count = h.step_count,
                    .host_count = h.host_count,
                    .loop_count = h.loop_count,
                    .hidden = h.hidden,
                    .hidden_words = h.hidden_words,
                    .is_short = h.is_short,
                    .scratch_bytes = h.scratch_bytes};
  memcpy(out->workgroup, h.workgroup, sizeof h.workgroup);
  memcpy(out->most_groups, h.most_groups, sizeof h.most_groups);
  out->buffers = take(&at, &left, h.buffer_count, sizeof(cpu_buffer), arena);
  out->steps = take(&at, &left, h.step_count, sizeof(cpu_step), arena);
  out->host = take(&at, &left, h.host_count, sizeof(cpu_inst), arena);
  if (!out->buffers || !out->steps || !out->host || left != h.object_size) {
    return bad(st, "it ends too soon, or too late", size);
  }
  VYRE_TRY(check_buffers(out, st));
  VYRE_TRY(check_steps(out, st));
  VYRE_TRY(check_host(out, st));
  *object = at;
  *object_size = left;
  return VYRE_OK;
}

/* --- what the host does -------------------------------------------------------------*/

static uint64_t load(const cpu_plan *plan, const vyre__spmd_launch *launch,
                     const cpu_inst *inst, const uint64_t *values) {
  const vyre__spmd_view *view = &launch->views[inst->aux];
  size_t width = plan->buffers[inst->aux].width;
  uint64_t index = values[inst->a - 1], value = 0;
  if (inst->b && !values[inst->b - 1]) return 0;
  if (index >= view->length) return 0;
  memcpy(&value, view->data + index * width, width);
  return value;
}

void cpu_host_run(const cpu_plan *plan, const vyre__spmd_launch *launch,
                  uint64_t *values) {
  for (uint32_t i = 0; i < plan->host_count; i++) {
    const cpu_inst *inst = &plan->host[i];
    uint64_t args[3] = {0};
    uint32_t from = inst->op == VYRE__LOW_SELECT ? inst->b : inst->a;
    switch ((vyre__low_op)inst->op) {
      case VYRE__LOW_CONST:
        values[i] = vyre__low_const(inst);
        break;
      case VYRE__LOW_LEN:
        values[i] = launch->views[inst->aux].length;
        break;
      case VYRE__LOW_GRID_SIZE:
        values[i] = launch->grid[inst->aux];
        break;
      case VYRE__LOW_LOOP_VALUE:
        values[i] = launch->loop_values[inst->aux];
        break;
      case VYRE__LOW_LOAD:
        values[i] = load(plan, launch, inst, values);
        break;
      default:
        for (unsigned n = 0; n < 3 && n < vyre__low_ops[inst->op].operands;
             n++) {
          args[n] = inst->v[n] ? values[inst->v[n] - 1] : 0;
        }
        values[i] = 0;
        (void)vyre__low_eval(inst->op, from ? plan->host[from - 1].type : 0,
                             inst->type, args, &values[i]);
    }
  }
}

static int64_t as_signed(unsigned type, uint64_t bits) {
  return type == VYRE_TYPE_I32 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

bool cpu_loop_goes_on(const cpu_step *step, uint64_t value, uint64_t bound) {
  bool is_signed = step->type == VYRE_TYPE_I32 || step->type == VYRE_TYPE_I64;
  int64_t a = as_signed(step->type, value), b = as_signed(step->type, bound);
  int order = is_signed ? (a > b) - (a < b) : (value > bound) - (value < bound);
  switch ((vyre__loop)step->loop_kind) {
    case VYRE__LOOP_LT:
      return order < 0;
    case VYRE__LOOP_LE:
      return order <= 0;
    case VYRE__LOOP_GT:
      return order > 0;
    default:
      return order >= 0;
  }
}

bool cpu_loop_advance(const cpu_step *step, uint64_t *value) {
  bool down =
      step->loop_kind == VYRE__LOOP_GT || step->loop_kind == VYRE__LOOP_GE;
  uint64_t by = step->by;
  int64_t wide, most, least, next;
  switch (step->type) {
    case VYRE_TYPE_U64:
      return down ? !__builtin_sub_overflow(*value, by, value)
                  : !__builtin_add_overflow(*value, by, value);
    case VYRE_TYPE_I64:
      wide = (int64_t)*value, least = INT64_MIN, most = INT64_MAX;
      break;
    case VYRE_TYPE_I32:
      wide = (int32_t)(uint32_t)*value, least = INT32_MIN, most = INT32_MAX;
      break;
    default:
      wide = (uint32_t)*value, least = 0, most = UINT32_MAX;
  }
  if (down ? __builtin_sub_overflow(wide, (int64_t)by, &next)
           : __builtin_add_overflow(wide, (int64_t)by, &next)) {
    return false;
  }
  if (next < least || next > most) return false;
  *value = step->type == VYRE_TYPE_I32 ? (uint32_t)next : (uint64_t)next;
  return true;
}
