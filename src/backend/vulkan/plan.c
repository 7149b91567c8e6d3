/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/vulkan/plan.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"

/* --- from a kernel ---------------------------------------------------------------*/

static void take_buffers(const vyre__low_kernel *k, vk_plan_buffer *to) {
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__low_buffer *b = &k->buffers[i];
    bool is_bound = b->source != VYRE_NO_INDEX && b->kind != VYRE_MEMORY_SHARED;
    to[i] = (vk_plan_buffer){.least = b->count,
                             .most = vyre__low_most_elements(b),
                             .kind = b->kind,
                             .unit = b->unit,
                             .width = b->width,
                             .is_bound = is_bound};
  }
}

static uint32_t mate_of(const vyre__low_kernel *k, uint32_t at) {
  uint32_t i = 0;
  while (i == at || k->steps[i].kind == VYRE__STEP_RUN ||
         k->steps[i].loop != k->steps[at].loop) {
    i++;
  }
  return i;
}

static void take_steps(const vyre__low_kernel *k, vk_step *to) {
  for (uint32_t i = 0; i < k->step_count; i++) {
    const vyre__low_step *s = &k->steps[i];
    to[i] = (vk_step){.kind = s->kind, .mate = i};
    if (s->kind == VYRE__STEP_RUN) {
      to[i].phase = s->phase;
      continue;
    }
    to[i].loop = s->loop;
    to[i].mate = mate_of(k, i);
    if (s->kind != VYRE__STEP_FOR) continue;
    to[i].loop_kind = s->loop_kind;
    to[i].type = s->type;
    to[i].first = s->first - k->host.begin;
    to[i].bound = s->bound - k->host.begin;
    to[i].by = s->step;
  }
}

static void take_host(const vyre__low_kernel *k, vyre__low_inst *to) {
  for (uint32_t i = k->host.begin; i < k->host.end; i++, to++) {
    *to = k->code[i];
    to->hints = 0;
    for (unsigned n = 0; n < vyre__low_ops[to->op].operands; n++) {
      if (to->v[n]) to->v[n] -= k->host.begin - 1;
    }
  }
}

static void *keep(vyre_arena *arena, const void *from, size_t count,
                  size_t element) {
  void *to = vyre__arena_array(arena, count, element);
  if (to && count > 0) memcpy(to, from, count * element);
  return to;
}

vyre_code vk_plan_build(const vyre__low_kernel *k,
                        const vyre__spirv_module *module, vyre_arena *arena,
                        vk_plan *out, vyre_status *st) {
  uint32_t host_count = k->host.end - k->host.begin;
  vk_plan_buffer *buffers =
      vyre__arena_array(arena, k->buffer_count, sizeof *buffers);
  vk_step *steps = vyre__arena_array(arena, k->step_count, sizeof *steps);
  vyre__low_inst *host = vyre__arena_array(arena, host_count, sizeof *host);
  *out = (vk_plan){.phase_count = module->entry_points,
                   .buffer_count = k->buffer_count,
                   .step_count = k->step_count,
                   .host_count = host_count,
                   .loop_count = k->grid_loop_count,
                   .descriptor_count = (uint32_t)module->descriptor_count,
                   .field_count = (uint32_t)module->field_count,
                   .word_count = (uint32_t)module->word_count,
                   .hidden = k->hidden,
                   .hidden_words = k->hidden_words,
                   .push_bytes = module->push_bytes,
                   .block_bytes = module->block_bytes,
                   .shared_bytes = module->shared_bytes,
                   .may_skip_fuel = module->may_skip_fuel,
                   .buffers = buffers,
                   .steps = steps,
                   .host = host};
  out->descriptors = keep(arena, module->descriptors, module->descriptor_count,
                          sizeof *module->descriptors);
  out->fields =
      keep(arena, module->fields, module->field_count, sizeof *module->fields);
  out->words = keep(arena, module->words, module->word_count, 4);
  if (!buffers || !steps || !host || !out->descriptors || !out->fields ||
      !out->words) {
    return vyre__no_memory(st, "vulkan", "words of code", module->word_count);
  }
  take_buffers(k, buffers);
  take_steps(k, steps);
  take_host(k, host);
  for (unsigned axis = 0; axis < 3; axis++) {
    out->workgroup[axis] = k->workgroup[axis];
    out->most_groups[axis] = vyre__low_most_groups(k, axis);
  }
  return VYRE_OK;
}

/* --- as bytes ----------------------------------------------------------------------*/

typedef struct artifact_head {
  char magic[8];
  uint32_t version, may_skip_fuel;
  uint32_t workgroup[3], most_groups[3];
  uint32_t phase_count, buffer_count, step_count, host_count, loop_count;
  uint32_t descriptor_count, field_count, word_count;
  uint32_t hidden, hidden_words;
  uint32_t push_bytes, block_bytes, shared_bytes, cache_size;
} artifact_head;

static const char magic[8] = "vyrespv";

enum { MOST = 1 << 20, MOST_WORDS = 1 << 26 };

bool vk_artifact_write(const vk_plan *p, const void *cache, size_t size,
                       vyre_writer writer) {
  artifact_head head = {.version = VK_ARTIFACT,
                        .may_skip_fuel = p->may_skip_fuel,
                        .phase_count = p->phase_count,
                        .buffer_count = p->buffer_count,
                        .step_count = p->step_count,
                        .host_count = p->host_count,
                        .loop_count = p->loop_count,
                        .descriptor_count = p->descriptor_count,
                        .field_count = p->field_count,
                        .word_count = p->word_count,
                        .hidden = p->hidden,
                        .hidden_words = p->hidden_words,
                        .push_bytes = p->push_bytes,
                        .block_bytes = p->block_bytes,
                        .shared_bytes = p->shared_bytes,
                        .cache_size = (uint32_t)size};
  memcpy(head.magic, magic, sizeof magic);
  memcpy(head.workgroup, p->workgroup, sizeof head.workgroup);
  memcpy(head.most_groups, p->most_groups, sizeof head.most_groups);
  const struct {
    const void *bytes;
    size_t size;
  } parts[] = {{&head, sizeof head},
               {p->buffers, p->buffer_count * sizeof *p->buffers},
               {p->steps, p->step_count * sizeof *p->steps},
               {p->host, p->host_count * sizeof *p->host},
               {p->descriptors, p->descriptor_count * sizeof *p->descriptors},
               {p->fields, p->field_count * sizeof *p->fields},
               {p->words, p->word_count * sizeof *p->words},
               {cache, size}};
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
  if (h->version != VK_ARTIFACT) return bad(st, "its version", h->version);
  const uint32_t counts[] = {
      h->phase_count,      h->buffer_count, h->step_count,
      h->host_count,       h->loop_count,   h->field_count,
      h->descriptor_count, h->push_bytes,   h->block_bytes};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    if (counts[i] > MOST) return bad(st, "its counts", counts[i]);
  }
  if (h->push_bytes > VK_MOST_PUSHED || h->may_skip_fuel > 1) {
    return bad(st, "its launch block", h->push_bytes);
  }
  if (h->phase_count == 0 || h->word_count < 5 || h->word_count > MOST_WORDS) {
    return bad(st, "its module", h->word_count);
  }
  if (h->hidden != VYRE_NO_INDEX && h->hidden >= h->buffer_count) {
    return bad(st, "its hidden buffer", h->hidden);
  }
  return VYRE_OK;
}

static bool is_bool(const bool *value) {
  uint8_t byte;
  memcpy(&byte, value, 1);
  return byte <= 1;
}

static vyre_code check_bindings(const vk_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    const vk_plan_buffer *b = &p->buffers[i];
    bool is_power =
        b->unit > 0 && b->unit <= 8 && (b->unit & (b->unit - 1)) == 0;
    if (!is_power || b->is_bound > 1 || (b->is_bound && p->hidden == i)) {
      return bad(st, "a buffer", i);
    }
  }
  for (uint32_t i = 0; i < p->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &p->descriptors[i];
    bool is_good = d->what <= VYRE__SPIRV_BLOCK && is_bool(&d->is_uniform) &&
                   is_bool(&d->is_written) && d->binding <= MOST;
    if (is_good && d->what == VYRE__SPIRV_BUFFER) {
      is_good = d->buffer < p->buffer_count && p->buffers[d->buffer].is_bound;
    }
    if (is_good && d->what == VYRE__SPIRV_KEPT) {
      is_good = d->buffer == p->hidden && p->hidden != VYRE_NO_INDEX;
    }
    if (!is_good || (i > 0 && d->binding <= d[-1].binding)) {
      return bad(st, "a descriptor", i);
    }
  }
  for (uint32_t i = 0; i < p->field_count; i++) {
    const vyre__spirv_field *f = &p->fields[i];
    bool is_good = f->value <= VYRE__SPIRV_UNIFORM && is_bool(&f->is_pushed);
    uint32_t room = is_good && f->is_pushed ? p->push_bytes : p->block_bytes;
    if (is_good && f->value >= VYRE__SPIRV_LENGTH) {
      is_good = f->index < p->buffer_count && p->buffers[f->index].is_bound;
    }
    if (is_good && f->value == VYRE__SPIRV_UNIFORM) {
      const vk_plan_buffer *b = &p->buffers[f->index];
      is_good = b->kind == VYRE_MEMORY_UNIFORM &&
                (uint64_t)b->least * b->unit <= f->size;
    }
    if (is_good && f->value == VYRE__SPIRV_LOOP_VALUE) {
      is_good = f->index < p->loop_count;
    }
    if (!is_good || f->offset > room || f->size > room - f->offset) {
      return bad(st, "a field of the launch block", i);
    }
  }
  return VYRE_OK;
}

static vyre_code check_steps(const vk_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->step_count; i++) {
    const vk_step *s = &p->steps[i];
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

static vyre_code check_host(const vk_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->host_count; i++) {
    const vyre__low_inst *inst = &p->host[i];
    if (inst->op >= VYRE__LOW_COUNT) return bad(st, "an operation", inst->op);
    const vyre__low_info *info = &vyre__low_ops[inst->op];
    bool is_load = inst->op == VYRE__LOW_LOAD, is_good = true;
    for (unsigned n = 0; n < info->operands; n++) is_good &= inst->v[n] <= i;
    if (is_load || inst->op == VYRE__LOW_LEN) {
      is_good &= inst->aux < p->buffer_count;
    }
    if (is_load) {
      is_good = is_good && inst->a != 0 && p->buffers[inst->aux].is_bound &&
                p->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
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
  size_t size = count * element; /* below 2^32, by check_head */
  if (size > *left) return NULL;
  void *copy = keep(arena, *at, count, element);
  *at += size;
  *left -= size;
  return copy;
}

vyre_code vk_artifact_read(const void *bytes, size_t size, vyre_arena *arena,
                           vk_plan *out, const void **cache, size_t *cache_size,
                           vyre_status *st) {
  artifact_head h;
  if (size < sizeof h) return bad(st, "it ends too soon", size);
  memcpy(&h, bytes, sizeof h);
  VYRE_TRY(check_head(&h, st));
  const unsigned char *at = (const unsigned char *)bytes + sizeof h;
  size_t left = size - sizeof h;
  *out = (vk_plan){.phase_count = h.phase_count,
                   .buffer_count = h.buffer_count,
                   .step_count = h.step_count,
                   .host_count = h.host_count,
                   .loop_count = h.loop_count,
                   .descriptor_count = h.descriptor_count,
                   .field_count = h.field_count,
                   .word_count = h.word_count,
                   .hidden = h.hidden,
                   .hidden_words = h.hidden_words,
                   .push_bytes = h.push_bytes,
                   .block_bytes = h.block_bytes,
                   .shared_bytes = h.shared_bytes,
                   .may_skip_fuel = h.may_skip_fuel};
  memcpy(out->workgroup, h.workgroup, sizeof h.workgroup);
  memcpy(out->most_groups, h.most_groups, sizeof h.most_groups);
#define TAKE(field, count) \
  out->field = take(&at, &left, (count), sizeof *out->field, arena)
  TAKE(buffers, h.buffer_count);
  TAKE(steps, h.step_count);
  TAKE(host, h.host_count);
  TAKE(descriptors, h.descriptor_count);
  TAKE(fields, h.field_count);
  TAKE(words, h.word_count);
#undef TAKE
  if (!out->buffers || !out->steps || !out->host || !out->descriptors ||
      !out->fields || !out->words || left != h.cache_size) {
    return bad(st, "it ends too soon, or too late", size);
  }
  VYRE_TRY(check_bindings(out, st));
  VYRE_TRY(check_steps(out, st));
  VYRE_TRY(check_host(out, st));
  *cache = at;
  *cache_size = left;
  return VYRE_OK;
}

/* --- what the host does between phases ---------------------------------------------*/

static uint64_t load(const vk_walk *w, const vyre__low_inst *inst) {
  const vyre__view *view = &w->launch->views[inst->aux];
  const vk_plan_buffer *b = &w->plan->buffers[inst->aux];
  uint64_t index = w->host[inst->a - 1], value = 0;
  uint64_t bytes = (uint64_t)view->length * b->unit;
  if (inst->b && !w->host[inst->b - 1]) return 0;
  if (index >= bytes / b->width || !view->data) return 0;
  memcpy(&value, view->data + index * b->width, b->width);
  return value;
}

static void compute(vk_walk *w) {
  const vk_plan *plan = w->plan;
  fenv_t saved;
  vyre__float_begin(&saved);
  for (uint32_t i = 0; i < plan->host_count; i++) {
    const vyre__low_inst *inst = &plan->host[i];
    uint64_t args[3] = {0};
    uint32_t from = inst->op == VYRE__LOW_SELECT ? inst->b : inst->a;
    switch ((vyre__low_op)inst->op) {
      case VYRE__LOW_CONST:
        w->host[i] = vyre__low_const(inst);
        break;
      case VYRE__LOW_LEN:
        w->host[i] = w->launch->views[inst->aux].length;
        break;
      case VYRE__LOW_GRID_SIZE:
        w->host[i] = w->launch->grid[inst->aux];
        break;
      case VYRE__LOW_LOOP_VALUE:
        w->host[i] = w->values[inst->aux];
        break;
      case VYRE__LOW_LOAD:
        w->host[i] = load(w, inst);
        break;
      default:
        for (unsigned n = 0; n < 3 && n < vyre__low_ops[inst->op].operands;
             n++) {
          if (inst->v[n]) args[n] = w->host[inst->v[n] - 1];
        }
        (void)vyre__low_eval(inst->op,
                             from ? plan->host[from - 1].type : VYRE_TYPE_VOID,
                             inst->type, args, &w->host[i]);
    }
  }
  vyre__float_end(&saved);
}

/* The value as a number of the loop's type. */
static __int128 number(const vk_step *s, uint64_t bits) {
  switch ((vyre_type)s->type) {
    case VYRE_TYPE_I32:
      return (int32_t)(uint32_t)bits;
    case VYRE_TYPE_I64:
      return (int64_t)bits;
    case VYRE_TYPE_U32:
      return (uint32_t)bits;
    default:
      return bits;
  }
}

static bool goes_on(const vk_step *s, uint64_t value, uint64_t bound) {
  __int128 v = number(s, value), b = number(s, bound);
  switch ((vyre__loop)s->loop_kind) {
    case VYRE__LOOP_LT:
      return v < b;
    case VYRE__LOOP_LE:
      return v <= b;
    case VYRE__LOOP_GT:
      return v > b;
    default:
      return v >= b;
  }
}

/* False if the next value is none of the type: the loop is over. */
static bool advance(const vk_step *s, uint64_t *value) {
  bool down = s->loop_kind == VYRE__LOOP_GT || s->loop_kind == VYRE__LOOP_GE;
  __int128 next = number(s, *value) + (down ? -(__int128)s->by : s->by);
  bool is_narrow = s->type == VYRE_TYPE_U32 || s->type == VYRE_TYPE_I32;
  uint64_t bits = (uint64_t)next;
  if (is_narrow) bits = (uint32_t)bits;
  *value = bits;
  return number(s, bits) == next;
}

vk_walk vk_walk_begin(const vk_plan *plan, const vyre__launch *launch,
                      uint64_t *values) {
  memset(values, 0, 2 * (size_t)plan->loop_count * sizeof *values);
  return (vk_walk){.plan = plan,
                   .launch = launch,
                   .values = values,
                   .bounds = values + plan->loop_count,
                   .host = values + 2 * (size_t)plan->loop_count};
}

bool vk_walk_next(vk_walk *w, uint32_t *phase) {
  const vk_plan *plan = w->plan;
  while (w->at < plan->step_count) {
    const vk_step *s = &plan->steps[w->at];
    if (s->kind == VYRE__STEP_RUN) {
      *phase = s->phase;
      w->at++;
      return true;
    }
    bool begins = s->kind == VYRE__STEP_FOR;
    const vk_step *head = begins ? s : &plan->steps[s->mate];
    if (begins) {
      compute(w);
      w->values[s->loop] = w->host[head->first];
      w->bounds[s->loop] = w->host[head->bound];
    }
    bool more = (begins || advance(head, &w->values[s->loop])) &&
                goes_on(head, w->values[s->loop], w->bounds[s->loop]);
    /* Into the body, back to its start, or behind the other end. */
    if (begins) {
      w->at = more ? w->at + 1 : s->mate + 1;
    } else {
      w->at = more ? s->mate + 1 : w->at + 1;
    }
  }
  return false;
}
