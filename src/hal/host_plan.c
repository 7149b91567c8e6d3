/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds and checks host plans, and runs their schedules. */
#include "hal/host_plan.h"

#include <string.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "hal/artifact.h"
#include "ir/ir.h"
#include "ir/scalar.h"

/* --- from a LIR kernel ---------------------------------------------------- */

static vyre_code too_long(const vyre__lir_kernel *k, const vyre__lir_buffer *b,
                          uint32_t max, const char *backend, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, b->name,
      VYRE_NUMBERS({"elements", b->count}, {"max_elements", max}),
      "split the data into several buffers",
      "buffer '%.60s' of kernel '%.60s' has %u elements; '%s' allows at most "
      "%u",
      b->name, k->name, b->count, backend, max);
}

static vyre_code copy_buffers(const vyre__lir_kernel *k, uint32_t limit,
                              const char *backend, vyre__plan_buffer *to,
                              vyre_status *st) {
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__lir_buffer *b = &k->buffers[i];
    uint32_t max_elements = vyre__lir_max_elements(b);
    to[i] = (vyre__plan_buffer){
        .min = b->count,
        .max = max_elements < limit ? max_elements : limit,
        .kind = b->kind,
        .unit = b->unit,
        .width = b->width,
        .is_bound = b->source != VYRE_NO_INDEX && b->kind != VYRE_MEMORY_SHARED,
        .aligned = b->is_atomic ? b->width : 1};
    if (to[i].min > to[i].max) {
      return too_long(k, b, to[i].max, backend, st);
    }
  }
  return VYRE_OK;
}

/* Returns the step at the other end of the loop that step @p at starts or
 * ends. */
static uint32_t mate_of(const vyre__lir_kernel *k, uint32_t at) {
  for (uint32_t i = 0; i < k->step_count; i++) {
    const vyre__lir_step *s = &k->steps[i];
    if (i != at && s->kind != VYRE__STEP_RUN && s->loop == k->steps[at].loop) {
      return i;
    }
  }
  return at;
}

static void copy_steps(const vyre__lir_kernel *k, vyre__plan_step *to) {
  for (uint32_t i = 0; i < k->step_count; i++) {
    const vyre__lir_step *s = &k->steps[i];
    to[i] = (vyre__plan_step){.kind = s->kind, .mate = i};
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
    to[i].left_flag = s->left_flag;
    to[i].by = s->step;
  }
}

static void copy_host(const vyre__lir_kernel *k, vyre__lir_inst *to) {
  for (uint32_t i = k->host.begin; i < k->host.end; i++, to++) {
    *to = k->code[i];
    to->hints = 0;
    for (unsigned n = 0; n < vyre__lir_ops[to->op].operands; n++) {
      if (to->v[n]) to->v[n] -= k->host.begin - 1;
    }
  }
}

static bool has_floats(const vyre__host_plan *plan) {
  bool found = false;
  for (uint32_t i = 0; i < plan->host_count; i++) {
    unsigned type = plan->host[i].type;
    found |= type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64;
  }
  return found;
}

vyre_code vyre__host_plan_build(const vyre__lir_kernel *k,
                                uint32_t max_elements, const char *backend,
                                vyre_arena *arena, vyre__host_plan *out,
                                vyre_status *st) {
  uint32_t host_count = k->host.end - k->host.begin;
  vyre__plan_buffer *buffers =
      vyre__arena_array(arena, k->buffer_count, sizeof *buffers);
  vyre__plan_step *steps =
      vyre__arena_array(arena, k->step_count, sizeof *steps);
  vyre__lir_inst *host = vyre__arena_array(arena, host_count, sizeof *host);
  if (!buffers || !steps || !host) {
    return vyre__no_memory(st, backend, "steps", k->step_count);
  }
  VYRE_TRY(copy_buffers(k, max_elements, backend, buffers, st));
  copy_steps(k, steps);
  copy_host(k, host);
  *out = (vyre__host_plan){.has_fuel = k->has_fuel,
                           .phase_count = k->phase_count,
                           .buffer_count = k->buffer_count,
                           .step_count = k->step_count,
                           .host_count = host_count,
                           .loop_count = k->grid_loop_count,
                           .spill_buffer = k->spill_buffer,
                           .spill_words = k->spill_words,
                           .alive_flag = k->alive_flag,
                           .buffers = buffers,
                           .steps = steps,
                           .host = host};
  for (unsigned axis = 0; axis < 3; axis++) {
    out->workgroup[axis] = k->workgroup[axis];
  }
  out->has_floats = has_floats(out);
  return VYRE_OK;
}

/* --- from an artifact ----------------------------------------------------- */

static bool is_power(unsigned bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

/* Checks the number of a spill word + 1, or 0. */
static bool is_flag(const vyre__host_plan *p, uint32_t flag) {
  return flag == 0 ||
         (p->spill_buffer != VYRE_NO_INDEX && flag <= p->spill_words);
}

static vyre_code check_buffers(const vyre__host_plan *p, vyre_status *st) {
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    const vyre__plan_buffer *b = &p->buffers[i];
    if (!is_power(b->width) || b->unit == 0 ||
        (b->unit % b->width != 0 && b->width % b->unit != 0) ||
        b->is_bound > 1 || (b->aligned != 1 && b->aligned != b->width) ||
        (b->is_bound && p->spill_buffer == i) || b->min > b->max) {
      return vyre__artifact_bad(st, "buffer", i);
    }
  }
  if (p->spill_buffer != VYRE_NO_INDEX && p->spill_buffer >= p->buffer_count) {
    return vyre__artifact_bad(st, "index of the spill buffer", p->spill_buffer);
  }
  if (!is_flag(p, p->alive_flag))
    return vyre__artifact_bad(st, "flag of live invocations", p->alive_flag);
  return VYRE_OK;
}

static bool is_loop_type(unsigned type) {
  return type == VYRE_TYPE_U32 || type == VYRE_TYPE_I32 ||
         type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64;
}

/* Checks one step by itself: its fields are those that copy_steps can write. */
static bool is_valid_step(const vyre__host_plan *p, uint32_t at) {
  const vyre__plan_step *s = &p->steps[at];
  bool is_for = s->kind == VYRE__STEP_FOR;
  if (s->reserved != 0) return false;
  if (!is_for && (s->loop_kind | s->type | s->first | s->bound) != 0) {
    return false;
  }
  if (!is_for && s->by != 0) return false;
  if (s->kind == VYRE__STEP_RUN) {
    return s->phase < p->phase_count && s->loop == 0 && s->mate == at;
  }
  if (s->kind > VYRE__STEP_END_FOR || !is_flag(p, s->left_flag) ||
      (!is_for && s->left_flag != 0) || s->loop >= p->loop_count ||
      s->mate >= p->step_count) {
    return false;
  }
  return !is_for ||
         (s->loop_kind <= VYRE__LOOP_GE && is_loop_type(s->type) &&
          s->first < p->host_count && s->bound < p->host_count && s->by > 0);
}

/* Checks that each loop starts once, and that loops are properly nested. */
static vyre_code check_steps(const vyre__host_plan *p, vyre_arena *arena,
                             vyre_status *st) {
  uint32_t *open = vyre__arena_array(arena, p->loop_count, sizeof *open);
  bool *is_used = vyre__arena_array(arena, p->loop_count, sizeof *is_used);
  uint32_t depth = 0;
  if (!open || !is_used) {
    return vyre__no_memory(st, "a compiled kernel", "loops", p->loop_count);
  }
  if (p->loop_count > 0) memset(is_used, 0, p->loop_count * sizeof *is_used);
  for (uint32_t i = 0; i < p->step_count; i++) {
    const vyre__plan_step *s = &p->steps[i];
    if (!is_valid_step(p, i)) return vyre__artifact_bad(st, "step", i);
    if (s->kind == VYRE__STEP_FOR) {
      if (is_used[s->loop] || s->mate <= i) {
        return vyre__artifact_bad(st, "start of a loop at step", i);
      }
      is_used[s->loop] = true;
      open[depth++] = i;
    } else if (s->kind == VYRE__STEP_END_FOR) {
      if (depth == 0 || open[depth - 1] != s->mate ||
          p->steps[s->mate].mate != i || p->steps[s->mate].loop != s->loop) {
        return vyre__artifact_bad(st, "end of a loop at step", i);
      }
      depth--;
    }
  }
  return depth == 0 ? VYRE_OK
                    : vyre__artifact_bad(st, "number of open loops", depth);
}

/* Checks one host operation. Only bound buffers have a length: a launch has
 * views for the buffers of the program alone. */
static bool is_valid_host_op(const vyre__host_plan *p, uint32_t at) {
  const vyre__lir_inst *inst = &p->host[at];
  if (inst->op >= VYRE__LIR_COUNT) return false;
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  for (unsigned n = 0; n < info->operands; n++) {
    if (inst->v[n] > at) return false;
  }
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_LOAD:
      return inst->aux < p->buffer_count && inst->a != 0 &&
             p->buffers[inst->aux].is_bound &&
             p->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
    case VYRE__LIR_LEN:
      return inst->aux < p->buffer_count && p->buffers[inst->aux].is_bound;
    case VYRE__LIR_LOOP_VALUE:
      return inst->aux < p->loop_count && inst->c <= 1;
    case VYRE__LIR_GRID_SIZE:
      return inst->aux < 3;
    default:
      return (info->flags & VYRE__LIRF_PURE) != 0;
  }
}

vyre_code vyre__host_plan_check(vyre__host_plan *p, vyre_arena *arena,
                                vyre_status *st) {
  VYRE_TRY(check_buffers(p, st));
  for (uint32_t i = 0; i < p->host_count; i++) {
    if (!is_valid_host_op(p, i)) {
      return vyre__artifact_bad(st, "host operation", i);
    }
  }
  p->has_floats = has_floats(p);
  return check_steps(p, arena, st);
}

/* Compares everything that decides which bytes of the caller are accessed. */
static bool matches_decl(const vyre__plan_buffer *b,
                         const vyre_buffer_decl *decl) {
  vyre__lir_buffer lir = {.unit = b->unit, .width = b->width};
  return b->is_bound == !vyre__is_shared(decl) && b->kind == decl->kind &&
         b->unit == vyre_buffer_stride(decl) && b->min == decl->count &&
         b->max <= vyre__lir_max_elements(&lir);
}

vyre_code vyre__host_plan_fits(const vyre__host_plan *plan,
                               const vyre_pipeline *pipeline, vyre_status *st) {
  const vyre_program *program = pipeline->program;
  bool is_good =
      plan->buffer_count >= program->buffer_count &&
      memcmp(plan->workgroup, pipeline->workgroup, sizeof plan->workgroup) == 0;
  for (uint32_t i = 0; is_good && i < plan->buffer_count; i++) {
    is_good = i < program->buffer_count
                  ? matches_decl(&plan->buffers[i], &program->buffers[i])
                  : !plan->buffers[i].is_bound;
  }
  if (is_good) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                   "run `vyre cache prune --all`, then compile again",
                   "the compiled kernel does not belong to program '%.60s'",
                   program->name);
}

/* --- the host schedule ---------------------------------------------------- */

static uint64_t load(const vyre__host_schedule *w, const vyre__lir_inst *inst) {
  const vyre__view *view = &w->launch->views[inst->aux];
  const vyre__plan_buffer *b = &w->plan->buffers[inst->aux];
  uint64_t index = w->host[inst->a - 1], value = 0;
  uint64_t bytes = (uint64_t)view->length * b->unit;
  if (inst->b && !w->host[inst->b - 1]) return 0;
  if (index >= bytes / b->width || !view->data) return 0;
  memcpy(&value, view->data + index * b->width, b->width);
  return value;
}

static uint64_t evaluate(const vyre__host_schedule *w,
                         const vyre__lir_inst *inst) {
  uint64_t args[3] = {0}, value = 0;
  uint32_t from = inst->op == VYRE__LIR_SELECT ? inst->b : inst->a;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_CONST:
      return vyre__lir_const(inst);
    case VYRE__LIR_LEN:
      return w->launch->views[inst->aux].length;
    case VYRE__LIR_GRID_SIZE:
      return w->launch->grid[inst->aux];
    case VYRE__LIR_LOOP_VALUE:
      return vyre__lir_loop_value(inst, w->values[inst->aux]);
    case VYRE__LIR_LOAD:
      return load(w, inst);
    default:
      for (unsigned n = 0; n < 3 && n < vyre__lir_ops[inst->op].operands; n++) {
        if (inst->v[n]) args[n] = w->host[inst->v[n] - 1];
      }
      (void)vyre__lir_eval(inst->op,
                           from ? w->plan->host[from - 1].type : VYRE_TYPE_VOID,
                           inst->type, args, &value);
      return value;
  }
}

static void compute(vyre__host_schedule *w) {
  fenv_t saved;
  if (w->plan->has_floats) vyre__float_begin(&saved);
  for (uint32_t i = 0; i < w->plan->host_count; i++) {
    w->host[i] = evaluate(w, &w->plan->host[i]);
  }
  if (w->plan->has_floats) vyre__float_end(&saved);
}

/* Converts the bits of a value to a number, by the loop's type. */
static __int128 to_number(const vyre__plan_step *s, uint64_t bits) {
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

static bool continues(const vyre__plan_step *s, uint64_t value,
                      uint64_t bound) {
  __int128 v = to_number(s, value), b = to_number(s, bound);
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

/* Returns false if the type cannot hold the next value: the loop ends. */
static bool advance(const vyre__plan_step *s, uint64_t *value) {
  bool down = s->loop_kind == VYRE__LOOP_GT || s->loop_kind == VYRE__LOOP_GE;
  __int128 next = to_number(s, *value) + (down ? -(__int128)s->by : s->by);
  bool is_narrow = s->type == VYRE_TYPE_U32 || s->type == VYRE_TYPE_I32;
  uint64_t bits = (uint64_t)next;
  if (is_narrow) bits = (uint32_t)bits;
  *value = bits;
  return to_number(s, bits) == next;
}

vyre__host_schedule vyre__host_schedule_begin(const vyre__host_plan *plan,
                                              const vyre__launch *launch,
                                              uint64_t *values) {
  memset(values, 0, 2 * (size_t)plan->loop_count * sizeof *values);
  return (vyre__host_schedule){.plan = plan,
                               .launch = launch,
                               .values = values,
                               .bounds = values + plan->loop_count,
                               .host = values + 2 * (size_t)plan->loop_count};
}

/* --- loops without invocations ------------------------------------------- */

/* Returns the FOR step of the innermost loop around step @p at, or
 * VYRE_NO_INDEX. */
static uint32_t loop_around(const vyre__host_plan *p, uint32_t at) {
  while (at-- > 0) {
    if (p->steps[at].kind == VYRE__STEP_FOR) return at;
    if (p->steps[at].kind == VYRE__STEP_END_FOR) at = p->steps[at].mate;
  }
  return VYRE_NO_INDEX;
}

/* Flags that say whether an invocation is in a loop. */
typedef struct loop_flags {
  const uint32_t *alive, *left; /* NULL: none */
  const uint32_t *outer[8];     /* left_flag of enclosing loops */
  uint32_t outer_count;
} loop_flags;

static const uint32_t *words_of(const vyre__host_schedule *w, uint32_t flag) {
  return flag == 0 ? NULL : w->spill + (flag - 1) * w->invocations;
}

/* Flags of loops further out do not matter: without them, more invocations seem
 * to be in the loop. */
static loop_flags flags_of(const vyre__host_schedule *w, uint32_t loop) {
  const vyre__host_plan *p = w->plan;
  loop_flags f = {.alive = words_of(w, p->alive_flag),
                  .left = words_of(w, p->steps[loop].left_flag)};
  for (loop = loop_around(p, loop); loop != VYRE_NO_INDEX && f.outer_count < 8;
       loop = loop_around(p, loop)) {
    const uint32_t *left = words_of(w, p->steps[loop].left_flag);
    if (left) f.outer[f.outer_count++] = left;
  }
  return f;
}

static bool is_inside(const loop_flags *f, uint64_t invocation) {
  if (f->alive && f->alive[invocation] == 0) return false;
  if (f->left && f->left[invocation] == VYRE__LOOP_LEFT) return false;
  for (uint32_t i = 0; i < f->outer_count; i++) {
    if (f->outer[i][invocation] != VYRE__LOOP_RUNS) return false;
  }
  return true;
}

/* Returns true if an invocation has another iteration of a loop to run. Looks
 * first at the invocation that it found the last time. */
static bool has_invocation(vyre__host_schedule *w, uint32_t loop) {
  loop_flags f = flags_of(w, loop);
  if (!f.alive && !f.left && f.outer_count == 0) return true;
  for (uint64_t n = 0; n < w->invocations; n++) {
    if (is_inside(&f, w->inside)) return true;
    if (++w->inside == w->invocations) w->inside = 0;
  }
  return false;
}

bool vyre__host_schedule_leave(vyre__host_schedule *w) {
  bool has_left = false;
  uint32_t loop = loop_around(w->plan, w->at);
  for (; loop != VYRE_NO_INDEX; loop = loop_around(w->plan, loop)) {
    if (has_invocation(w, loop)) break;
    w->at = w->plan->steps[loop].mate + 1;
    has_left = true;
  }
  return has_left;
}

bool vyre__host_plan_is_flag(const vyre__host_plan *p, uint32_t word) {
  bool found = p->alive_flag == word + 1;
  for (uint32_t i = 0; i < p->step_count; i++) {
    const vyre__plan_step *s = &p->steps[i];
    found |= s->kind == VYRE__STEP_FOR && s->left_flag == word + 1;
  }
  return found;
}

vyre__host_step vyre__host_schedule_step(vyre__host_schedule *w,
                                         uint32_t *phase) {
  const vyre__host_plan *plan = w->plan;
  if (w->at >= plan->step_count) return VYRE__HOST_STEP_END;
  const vyre__plan_step *s = &plan->steps[w->at];
  if (s->kind == VYRE__STEP_RUN) {
    *phase = s->phase;
    w->at++;
    return VYRE__HOST_STEP_LAUNCH;
  }
  bool begins = s->kind == VYRE__STEP_FOR;
  const vyre__plan_step *head = begins ? s : &plan->steps[s->mate];
  if (begins) {
    compute(w);
    w->values[s->loop] = w->host[head->first];
    w->bounds[s->loop] = w->host[head->bound];
  }
  bool more = (begins || advance(head, &w->values[s->loop])) &&
              continues(head, w->values[s->loop], w->bounds[s->loop]) &&
              (begins || !w->spill || has_invocation(w, s->mate));
  /* Continue after this end of the loop, or after the other end. */
  w->at = begins == more ? w->at + 1 : s->mate + 1;
  return VYRE__HOST_STEP_LOOP;
}

bool vyre__host_schedule_next(vyre__host_schedule *w, uint32_t *phase) {
  vyre__host_step step;
  do {
    step = vyre__host_schedule_step(w, phase);
  } while (step == VYRE__HOST_STEP_LOOP);
  return step == VYRE__HOST_STEP_LAUNCH;
}

/* --- failures of a launch ------------------------------------------------- */

VYRE__RARE
vyre_code vyre__out_of_fuel(const vyre_pipeline *p, const vyre__launch *launch,
                            vyre_status *st) {
  unsigned long long limit = launch->max_loop_iterations;
  if (limit >= UINT32_MAX) { /* compiled code has a 32-bit counter */
    return VYRE_FAIL_WITH(
        st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL, NULL,
        VYRE_NUMBERS({"max_iterations", limit},
                     {"device_max_iterations", UINT32_MAX}),
        "let the loop end, split it over several dispatches, or run it on "
        "'ref', which counts further",
        "kernel '%.60s': a loop went past %u iterations of one invocation, the "
        "most that compiled code counts",
        p->program->name, UINT32_MAX);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL, NULL,
      VYRE_NUMBERS({"max_iterations", limit}),
      "let the loop end, or raise max_loop_iterations of the dispatch",
      "kernel '%.60s': a loop went past %llu iterations of one invocation",
      p->program->name, limit);
}

VYRE__RARE
vyre_code vyre__timed_out(const vyre_pipeline *p, const vyre__launch *launch,
                          vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  uint64_t ns = launch->timeout_ns;
  return VYRE_FAIL_WITH(st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
                        VYRE_NUMBERS({"timeout_ns", ns}),
                        "raise the timeout, or give the kernel less to do",
                        "kernel '%.60s' ran longer than %s", p->program->name,
                        vyre__duration(ns, limit));
}
