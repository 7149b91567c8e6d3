/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Interprets LIR kernels. Each invocation has its own position, values and
 * variables, and runs up to a barrier or its end; then the next invocation
 * does. After that all of them must be at the same barrier, or at the end. */
#include "testing/lir_interp.h"

#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"
#include "lir/print.h"
#include "testing/lir_interp_internal.h"

typedef vyre__interp interpreter;
typedef interp_memory memory;

static stop fail(interpreter *m, uint32_t at, const char *problem) {
  char text[VYRE__LIR_TEXT];
  m->code =
      VYRE_FAIL_WITH(m->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
                     VYRE_NUMBERS({"instruction", at}), VYRE__LIR_DEFECT,
                     "the LIR breaks a guarantee: instruction %u, '%s': %s", at,
                     vyre__lir_text(m->k, at, text), problem);
  return STOP_FAILED;
}

static stop out_of_fuel(interpreter *m) {
  m->code = VYRE_FAIL(m->st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL,
                      "raise the fuel of the dispatch, or correct the loop",
                      "an invocation ran out of fuel");
  return STOP_FAILED;
}

/* --- operands ----------------------------------------------------------- */

static bool fits(double value, vyre_type type, bool is_signed) {
  double top = type == VYRE_TYPE_U64 ? 18446744073709551616.0 : 4294967296.0;
  if (!is_signed) return value > -1 && value < top;
  double half = top / 2;
  /* -half - 1 has no exact double for 64 bits, so -half is the limit. */
  if (type == VYRE_TYPE_U64) return value >= -half && value < half;
  return value > -half - 1 && value < half;
}

/* Returns the guarantee that the operands of an operation break, or NULL. */
static const char *check_operands(const vyre__lir_inst *inst, vyre_type from,
                                  const uint64_t args[3]) {
  bool wide = from == VYRE_TYPE_U64;
  uint64_t ones = wide ? UINT64_MAX : UINT32_MAX, min = ones / 2 + 1;
  double value;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
      if (args[0] == min && args[1] == ones) return "MIN / -1";
      return args[1] ? NULL : "division by 0";
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_REM_U:
      return args[1] ? NULL : "division by 0";
    case VYRE__LIR_SHL:
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      return args[1] < (wide ? 64 : 32) ? NULL : "a shift by the width or more";
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      value = from == VYRE_TYPE_F32 ? (double)vyre__f32(args[0])
                                    : vyre__f64(args[0]);
      if (value != value) return "a NaN to an integer";
      return fits(value, (vyre_type)inst->type, inst->op == VYRE__LIR_F_TO_S)
                 ? NULL
                 : "a float that does not fit the integer";
    default:
      return NULL;
  }
}

/* Evaluates a pure operation. Returns a problem, or NULL. */
static const char *evaluate(const vyre__lir_kernel *k,
                            const vyre__lir_inst *inst, const uint64_t *values,
                            uint32_t begin, uint64_t *out) {
  unsigned count = vyre__lir_ops[inst->op].operands;
  uint64_t args[3] = {0, 0, 0};
  for (unsigned i = 0; i < count && i < 3; i++) {
    args[i] = values[inst->v[i] - begin];
  }
  vyre__val first = inst->op == VYRE__LIR_SELECT ? inst->b : inst->a;
  vyre_type from = (vyre_type)k->code[first].type;
  const char *problem = check_operands(inst, from, args);
  if (problem) return problem;
  if ((vyre__lir_ops[inst->op].flags & VYRE__LIRF_HIGH) ||
      !vyre__lir_eval((vyre__lir_op)inst->op, from, (vyre_type)inst->type, args,
                      out)) {
    return "the operation cannot be interpreted";
  }
  return NULL;
}

/* --- memory ------------------------------------------------------------- */

static uint64_t load(const uint8_t *bytes, unsigned width) {
  uint64_t value = 0;
  for (unsigned i = 0; i < width; i++) value |= (uint64_t)bytes[i] << (8 * i);
  return value;
}

static void store(uint8_t *bytes, unsigned width, uint64_t value) {
  for (unsigned i = 0; i < width; i++) bytes[i] = (uint8_t)(value >> (8 * i));
}

static int64_t as_signed(uint64_t value, unsigned width) {
  return width == 8 ? vyre__i64(value) : vyre__i32(value);
}

static uint64_t atomic(unsigned op, unsigned width, uint64_t old, uint64_t a,
                       uint64_t b) {
  int64_t s = as_signed(old, width), t = as_signed(a, width);
  switch (op) {
    case VYRE__LIR_ATOMIC_ADD:
      return old + a; /* store() truncates the sum */
    case VYRE__LIR_ATOMIC_MIN_U:
      return a < old ? a : old;
    case VYRE__LIR_ATOMIC_MAX_U:
      return a > old ? a : old;
    case VYRE__LIR_ATOMIC_MIN_S:
      return t < s ? a : old;
    case VYRE__LIR_ATOMIC_MAX_S:
      return t > s ? a : old;
    case VYRE__LIR_ATOMIC_AND:
      return old & a;
    case VYRE__LIR_ATOMIC_OR:
      return old | a;
    case VYRE__LIR_ATOMIC_XOR:
      return old ^ a;
    case VYRE__LIR_ATOMIC_EXCHANGE:
      return a;
    default: /* compare and swap */
      return old == a ? b : old;
  }
}

/* Runs a load, a store or an atomic operation. Returns a problem, or NULL. */
static const char *access(interpreter *m, const vyre__lir_inst *inst,
                          const uint64_t *values, uint32_t begin,
                          uint64_t *out) {
  unsigned last = vyre__lir_ops[inst->op].operands - 1u;
  *out = 0;
  if (inst->v[last] && !values[inst->v[last] - begin]) return NULL;
  unsigned width = m->k->buffers[inst->aux].width;
  const memory *to = &m->memories[inst->aux];
  uint64_t offset = values[inst->a - begin] * width;
  if (offset >= to->size) return "the access is outside the buffer";
  uint8_t *bytes = to->bytes + offset;
  if (inst->op == VYRE__LIR_LOAD) {
    *out = load(bytes, width);
    if (m->launch->loaded && vyre__lir_may_change(m->k, inst->aux)) {
      m->launch->loaded(m->launch->changer, inst->aux, to->bytes, to->size);
    }
    return NULL;
  }
  uint64_t b = values[inst->b - begin];
  if (inst->op == VYRE__LIR_STORE) {
    store(bytes, width, b);
    return NULL;
  }
  uint64_t c = inst->op == VYRE__LIR_ATOMIC_CAS ? values[inst->c - begin] : 0;
  *out = load(bytes, width);
  store(bytes, width, atomic(inst->op, width, *out, b, c));
  return NULL;
}

/* Runs the AGREE at @p at for an invocation with the value @p own. */
static const char *agree(interpreter *m, const invocation *i, uint32_t at,
                         uint64_t own, uint64_t *out) {
  *out = own;
  if (i != m->invocations) {
    if (m->agreed_next >= m->agreed_count) return NULL;
    const agreement *next = &m->agreed[m->agreed_next];
    if (next->at != at) return NULL;
    *out = next->value;
    m->agreed_next++;
    return NULL;
  }
  if (!vyre__reserve(m->allocator, &m->agreed, &m->agreed_capacity,
                     m->agreed_count + 1, sizeof *m->agreed, false)) {
    return "out of memory";
  }
  m->agreed[m->agreed_count++] = (agreement){at, own};
  return NULL;
}

/* --- invocations -------------------------------------------------------- */

/* Runs @p inst if it reads a constant, an id or a variable, or sets a
 * variable. Returns false for other instructions. */
static bool run_simple(interpreter *m, const invocation *i,
                       const vyre__lir_inst *inst, const uint64_t *values,
                       uint64_t *vars, uint32_t begin, uint64_t *out) {
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_CONST:
      *out = vyre__lir_const(inst);
      return true;
    case VYRE__LIR_LOCAL_ID:
      *out = i->id[inst->aux];
      return true;
    case VYRE__LIR_GROUP_ID:
      *out = m->group[inst->aux];
      return true;
    case VYRE__LIR_GRID_SIZE:
      *out = m->launch->grid[inst->aux];
      return true;
    case VYRE__LIR_LEN:
      *out = m->memories[inst->aux].length;
      return true;
    case VYRE__LIR_LOOP_VALUE:
      *out = vyre__lir_loop_value(inst, m->loop_values[inst->aux]);
      return true;
    case VYRE__LIR_FUEL:
      *out = m->launch->fuel;
      return true;
    case VYRE__LIR_GET:
      *out = vars[inst->aux];
      return true;
    case VYRE__LIR_SET:
      vars[inst->aux] = values[inst->a - begin];
      return true;
    default:
      return false;
  }
}

/* Returns the instruction after the control instruction at @p at. */
static uint32_t next_instruction(const interpreter *m, uint32_t at,
                                 bool condition, uint32_t end) {
  const match *to = &m->matches[at];
  switch ((vyre__lir_op)m->k->code[at].op) {
    case VYRE__LIR_IF: /* the ELSE itself would jump over its branch */
      return condition ? at + 1 : to->end + 1;
    case VYRE__LIR_ELSE:
      return to->end;
    case VYRE__LIR_END:
      return to->end ? to->end : at + 1;
    case VYRE__LIR_BREAK:
      return m->matches[to->end].end + 1;
    case VYRE__LIR_CONTINUE:
      return m->matches[to->end].step;
    case VYRE__LIR_EXIT:
      return end;
    default:
      return at + 1;
  }
}

static void observe(const interpreter *m, const invocation *i, uint32_t at,
                    uint64_t value) {
  const uint32_t *size = m->k->workgroup;
  if (!m->launch->observe || i == &m->on_host) return;
  m->launch->observe(m->launch->observer,
                     i->id[0] + size[0] * (i->id[1] + size[1] * i->id[2]), at,
                     value);
}

static stop run_invocation(interpreter *m, invocation *i, uint64_t *values,
                           uint64_t *vars, vyre__lir_phase range) {
  const vyre__lir_kernel *k = m->k;
  uint32_t at = i->at;
  while (at < range.end) {
    const vyre__lir_inst *inst = &k->code[at];
    const vyre__lir_info *info = &vyre__lir_ops[inst->op];
    uint64_t *out = &values[at - range.begin];
    const char *problem = NULL;
    if (m->instructions_left-- == 0)
      return fail(m, at, "the limit of instructions is reached");
    if (info->flags & (VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS)) {
      bool condition =
          inst->op == VYRE__LIR_IF && values[inst->a - range.begin];
      observe(m, i, at, condition);
      at = next_instruction(m, at, condition, range.end);
      continue;
    }
    if (inst->op == VYRE__LIR_BARRIER) {
      i->at = at + 1;
      return STOP_BARRIER;
    }
    if (inst->op == VYRE__LIR_OUT_OF_FUEL) return out_of_fuel(m);
    if (run_simple(m, i, inst, values, vars, range.begin, out)) {
      observe(m, i, at, inst->op == VYRE__LIR_SET ? vars[inst->aux] : *out);
      at++;
      continue;
    }
    if (inst->op == VYRE__LIR_AGREE) {
      problem = agree(m, i, at, values[inst->a - range.begin], out);
    } else if (info->flags & VYRE__LIRF_PURE) {
      problem = evaluate(k, inst, values, range.begin, out);
    } else if (info->operands > 1) {
      problem = access(m, inst, values, range.begin, out);
    } else {
      problem = "the operation cannot be interpreted";
    }
    if (problem) return fail(m, at, problem);
    observe(m, i, at, *out);
    at++;
  }
  i->at = range.end;
  return STOP_END;
}

/* --- phases ------------------------------------------------------------- */

static uint64_t poison_of(const interpreter *m, unsigned type) {
  if (type == VYRE_TYPE_BOOL) return m->launch->poison & 1;
  uint64_t all = UINT64_C(0x0101010101010101) * m->launch->poison;
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64 ? all : all >> 32;
}

static bool has_barrier(const vyre__lir_kernel *k, vyre__lir_phase range) {
  for (uint32_t i = range.begin; i < range.end; i++) {
    if (k->code[i].op == VYRE__LIR_BARRIER) return true;
  }
  return false;
}

static void begin_group(interpreter *m) {
  const vyre__lir_kernel *k = m->k;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    if (k->buffers[i].kind != VYRE_MEMORY_SHARED) continue;
    if (k->buffers[i].table) {
      memcpy(m->memories[i].bytes, k->buffers[i].table,
             (size_t)k->buffers[i].count * k->buffers[i].unit);
      continue;
    }
    memset(m->memories[i].bytes,
           k->buffers[i].needs_zero ? 0 : m->launch->poison,
           m->memories[i].capacity);
  }
}

static void begin_invocation(const interpreter *m, uint32_t number,
                             uint64_t *vars, uint32_t begin) {
  const uint32_t *size = m->k->workgroup;
  invocation *i = &m->invocations[number];
  i->at = begin;
  i->id[0] = number % size[0];
  i->id[1] = number / size[0] % size[1];
  i->id[2] = number / size[0] / size[1];
  for (uint32_t v = 0; v < m->k->var_count; v++) {
    vars[v] = poison_of(m, m->k->vars[v].type);
  }
}

/* Runs all invocations up to the next barrier or the end. *at is their common
 * position. */
static stop run_to_barrier(interpreter *m, vyre__lir_phase range,
                           bool has_own_values, bool first, uint32_t *at) {
  uint32_t count = vyre__lir_group_size(m->k);
  size_t values = has_own_values ? range.end - range.begin : 0;
  size_t vars = has_own_values ? m->k->var_count : 0;
  stop all = STOP_END;
  m->agreed_count = 0;
  for (uint32_t n = 0; n < count; n++) {
    invocation *i = &m->invocations[n];
    m->agreed_next = 0;
    if (first) begin_invocation(m, n, m->vars + n * vars, range.begin);
    stop one =
        run_invocation(m, i, m->values + n * values, m->vars + n * vars, range);
    if (one == STOP_FAILED) return one;
    if (n > 0 && (one != all || i->at != *at)) {
      uint32_t barrier = one == STOP_BARRIER ? i->at : *at;
      return fail(m, barrier - 1, "not all invocations reach the barrier");
    }
    all = one;
    *at = i->at;
  }
  return all;
}

vyre_code vyre__interp_fail(vyre__interp *m, uint32_t at, const char *problem) {
  (void)fail(m, at, problem);
  return m->code;
}

vyre_code vyre__interp_out_of_fuel(vyre__interp *m) {
  (void)out_of_fuel(m);
  return m->code;
}

const char *vyre__interp_step(vyre__interp *m, const invocation *i, uint32_t at,
                              uint64_t *values, uint64_t *vars,
                              uint32_t begin) {
  const vyre__lir_inst *inst = &m->k->code[at];
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  uint64_t *out = &values[at - begin];
  if (m->instructions_left-- == 0)
    return "the limit of instructions is reached";
  if (run_simple(m, i, inst, values, vars, begin, out)) return NULL;
  if (inst->op == VYRE__LIR_AGREE) {
    *out = values[inst->a - begin];
    return NULL;
  }
  if (info->flags & VYRE__LIRF_PURE) {
    return evaluate(m->k, inst, values, begin, out);
  }
  if (info->operands > 1) return access(m, inst, values, begin, out);
  return "the operation cannot be interpreted";
}

uint64_t vyre__interp_atomic(unsigned op, unsigned width, uint64_t old,
                             uint64_t a, uint64_t b) {
  return atomic(op, width, old, a, b);
}

void vyre__interp_begin_group(vyre__interp *m) {
  begin_group(m);
}

uint64_t vyre__interp_poison(const vyre__interp *m, unsigned type) {
  return poison_of(m, type);
}

static vyre_code run_phase(interpreter *m, vyre__lir_phase range) {
  const uint32_t *grid = m->launch->grid;
  /* Without barriers an invocation ends before the next one starts, so all of
   * them can use the same memory. */
  bool has_own_values = has_barrier(m->k, range);
  for (uint32_t z = 0; z < grid[2]; z++) {
    for (uint32_t y = 0; y < grid[1]; y++) {
      for (uint32_t x = 0; x < grid[0]; x++) {
        m->group[0] = x, m->group[1] = y, m->group[2] = z;
        begin_group(m);
        uint32_t at = 0;
        stop s = run_to_barrier(m, range, has_own_values, true, &at);
        while (s == STOP_BARRIER)
          s = run_to_barrier(m, range, has_own_values, false, &at);
        if (s == STOP_FAILED) return m->code;
      }
    }
  }
  return VYRE_OK;
}

/* --- host steps --------------------------------------------------------- */

static vyre_code run_host(interpreter *m) {
  vyre__lir_phase range = m->k->host;
  m->on_host = (invocation){.at = range.begin};
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &m->k->code[at];
    unsigned flags = vyre__lir_ops[inst->op].flags;
    if (!(flags & VYRE__LIRF_PURE) && inst->op != VYRE__LIR_LOAD) {
      (void)fail(m, at, "the host cannot run it");
      return m->code;
    }
  }
  if (run_invocation(m, &m->on_host, m->host, m->vars, range) == STOP_FAILED) {
    return m->code;
  }
  return VYRE_OK;
}

static bool loop_continues(const vyre__lir_step *s, uint64_t value,
                           uint64_t bound) {
  bool is_signed = s->type == VYRE_TYPE_I32 || s->type == VYRE_TYPE_I64;
  unsigned width = s->type == VYRE_TYPE_I32 ? 4 : 8;
  int64_t a = as_signed(value, width), b = as_signed(bound, width);
  bool below = is_signed ? a < b : value < bound;
  bool above = is_signed ? a > b : value > bound;
  switch ((vyre__loop)s->loop_kind) {
    case VYRE__LOOP_LT:
      return below;
    case VYRE__LOOP_LE:
      return !above;
    case VYRE__LOOP_GT:
      return above;
    default:
      return !below;
  }
}

/* Advances the loop value. Returns false if it leaves the range of its type. */
static bool advance(const vyre__lir_step *s, uint64_t *value) {
  bool down = s->loop_kind == VYRE__LOOP_GT || s->loop_kind == VYRE__LOOP_GE;
  switch (s->type) {
#define NEXT(TYPE, T, of)                                \
  case TYPE: {                                           \
    T old = (T) * value, by = (T)s->step, next;          \
    if (down ? __builtin_sub_overflow(old, by, &next)    \
             : __builtin_add_overflow(old, by, &next)) { \
      return false;                                      \
    }                                                    \
    *value = of(next);                                   \
    return true;                                         \
  }
    NEXT(VYRE_TYPE_U32, uint32_t, (uint64_t))
    NEXT(VYRE_TYPE_I32, int32_t, vyre__of_i32)
    NEXT(VYRE_TYPE_U64, uint64_t, (uint64_t))
    NEXT(VYRE_TYPE_I64, int64_t, vyre__of_i64)
#undef NEXT
    default:
      return false;
  }
}

/* Returns the other end of the grid loop that begins or ends at @p at. */
static uint32_t other_end_of(const vyre__lir_kernel *k, uint32_t at) {
  uint32_t loop = k->steps[at].loop;
  unsigned want =
      k->steps[at].kind == VYRE__STEP_FOR ? VYRE__STEP_END_FOR : VYRE__STEP_FOR;
  for (uint32_t i = 0; i < k->step_count; i++) {
    if (k->steps[i].kind == want && k->steps[i].loop == loop) return i;
  }
  return at;
}

static vyre_code run_steps(interpreter *m) {
  const vyre__lir_kernel *k = m->k;
  uint64_t *bounds =
      m->loop_values + k->grid_loop_count; /* evaluated once per loop */
  uint32_t at = 0;
  while (at < k->step_count) {
    const vyre__lir_step *s = &k->steps[at];
    if (s->kind == VYRE__STEP_RUN) {
      VYRE_TRY(m->launch->run_phase ? m->launch->run_phase(m, s->phase)
                                    : run_phase(m, k->phases[s->phase]));
      at++;
      continue;
    }
    uint32_t other_end = other_end_of(k, at);
    bool begins = s->kind == VYRE__STEP_FOR;
    const vyre__lir_step *head = &k->steps[begins ? at : other_end];
    uint64_t *value = &m->loop_values[s->loop];
    if (begins) {
      VYRE_TRY(run_host(m));
      *value = m->host[head->first - k->host.begin];
      bounds[s->loop] = m->host[head->bound - k->host.begin];
    }
    bool more = (begins || advance(head, value)) &&
                loop_continues(head, *value, bounds[s->loop]);
    at = (begins ? more : !more) ? at + 1 : other_end + 1;
  }
  return VYRE_OK;
}

/* --- launch ------------------------------------------------------------- */

/* Computes the targets of all control instructions of a phase with valid
 * structure. */
static void find_matches(interpreter *m, vyre__lir_phase range) {
  uint32_t block = 0; /* the innermost open IF, ELSE, LOOP or STEP */
  uint32_t loop = 0;  /* the innermost open LOOP */
  for (uint32_t at = range.begin; at < range.end; at++) {
    match *current = &m->matches[at];
    switch ((vyre__lir_op)m->k->code[at].op) {
      case VYRE__LIR_IF:
        current->step = block;
        block = at;
        break;
      case VYRE__LIR_ELSE:
        current->step = m->matches[block].step;
        m->matches[block].end = at;
        block = at;
        break;
      case VYRE__LIR_LOOP:
        current->end = loop; /* outer loop, until the END is found */
        current->step = block;
        block = loop = at;
        break;
      case VYRE__LIR_STEP:
        current->step = m->matches[loop].step;
        m->matches[loop].step = at;
        block = at;
        break;
      case VYRE__LIR_END:
        if (m->k->code[block].op == VYRE__LIR_STEP) {
          uint32_t outer = m->matches[loop].end;
          current->end = loop + 1;
          m->matches[loop].end = at;
          block = m->matches[block].step;
          loop = outer;
        } else {
          m->matches[block].end = at;
          block = m->matches[block].step;
        }
        break;
      case VYRE__LIR_BREAK:
      case VYRE__LIR_CONTINUE:
        current->end = loop;
        break;
      default:
        break;
    }
  }
}

static uint64_t buffer_bytes(const interpreter *m, uint32_t buffer,
                             uint32_t *length) {
  const vyre__lir_kernel *k = m->k;
  const vyre__lir_buffer *b = &k->buffers[buffer];
  *length = b->count;
  if (buffer == k->spill_buffer) {
    *length = m->total_spill_words;
  } else if (b->kind != VYRE_MEMORY_SHARED && b->source != VYRE_NO_INDEX) {
    *length = m->launch->buffers[buffer].length;
  }
  return (uint64_t)*length * b->unit;
}

static bool is_bound(const vyre__lir_buffer *b) {
  return b->kind != VYRE_MEMORY_SHARED && b->source != VYRE_NO_INDEX;
}

static vyre_code check_grid(interpreter *m) {
  const vyre__lir_kernel *k = m->k;
  uint64_t invocations = vyre__lir_group_size(k), words = 0;
  for (unsigned axis = 0; axis < 3; axis++) {
    uint64_t groups = m->launch->grid[axis];
    uint32_t max_groups = vyre__lir_max_groups(k, axis);
    bool fits = groups == 0 || invocations <= UINT64_MAX / groups;
    invocations = fits ? invocations * groups : UINT64_MAX;
    if (groups <= max_groups) continue;
    return VYRE_FAIL_WITH(
        m->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"workgroups", groups}, {"max_workgroups", max_groups}),
        "use a smaller grid",
        "%llu workgroups of %u invocations on axis %c need ids of more than 32 "
        "bits",
        (unsigned long long)groups, k->workgroup[axis], "xyz"[axis]);
  }
  if (!vyre__lir_spill_words(k, invocations, &words)) {
    return VYRE_FAIL_WITH(
        m->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"invocations", invocations},
                     {"max_invocations", vyre__lir_max_invocations(k)}),
        "use a smaller grid, or fewer values across grid_barrier()",
        "%llu invocations with %u spilled words each need indices of more than "
        "32 bits",
        (unsigned long long)invocations, k->spill_words);
  }
  m->total_spill_words = (uint32_t)words;
  return VYRE_OK;
}

/* Makes the checks that the runtime makes before a launch. */
static vyre_code check_launch(interpreter *m) {
  const vyre__lir_kernel *k = m->k;
  VYRE_TRY(check_grid(m));
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__lir_buffer *b = &k->buffers[i];
    uint32_t length = is_bound(b) ? m->launch->buffers[i].length : b->count;
    if (vyre__lir_buffer_fits(b, length)) continue;
    if (length < b->count) {
      return VYRE_FAIL_WITH(
          m->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
          VYRE_NUMBERS({"elements", length}, {"required", b->count}),
          "bind at least as many elements as the kernel declares",
          "buffer '%.60s' has %u elements, but the kernel declares %u", b->name,
          length, b->count);
    }
    return VYRE_FAIL_WITH(
        m->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"elements", length},
                     {"max_elements", vyre__lir_max_elements(b)}),
        "bind a smaller buffer",
        "buffer '%.60s' has %u elements, which are accessed as halves and need "
        "indices of more than 32 bits",
        b->name, length);
  }
  return VYRE_OK;
}

static bool allocate_memories(interpreter *m) {
  const vyre__lir_kernel *k = m->k;
  if (!vyre__reserve(m->allocator, &m->memories, &m->memory_capacity,
                     (size_t)k->buffer_count + 1, sizeof *m->memories, true)) {
    return false;
  }
  memset(m->memories, 0, m->memory_capacity * sizeof *m->memories);
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    memory *to = &m->memories[i];
    to->size = buffer_bytes(m, i, &to->length);
    if (!vyre__reserve(m->allocator, &to->bytes, &to->capacity, to->size + 8, 1,
                       true)) {
      return false;
    }
    memset(to->bytes, m->launch->poison, to->capacity);
    if (is_bound(&k->buffers[i]) && to->size) {
      memcpy(to->bytes, m->launch->buffers[i].data, to->size);
    }
  }
  return true;
}

static bool allocate_all(interpreter *m) {
  const vyre__lir_kernel *k = m->k;
  size_t invocations = vyre__lir_group_size(k), values = 0, copies = 1, need;
  for (uint32_t i = 0; i < k->phase_count; i++) {
    size_t count = k->phases[i].end - k->phases[i].begin;
    if (has_barrier(k, k->phases[i])) copies = invocations;
    if (count > values) values = count;
  }
  if (!vyre__mul(values + 1, copies, &need) ||
      !vyre__reserve(m->allocator, &m->values, &m->value_capacity, need,
                     sizeof *m->values, true) ||
      !vyre__mul((size_t)k->var_count + 1, copies, &need) ||
      !vyre__reserve(m->allocator, &m->vars, &m->var_capacity, need,
                     sizeof *m->vars, true) ||
      !vyre__reserve(m->allocator, &m->invocations, &m->invocation_capacity,
                     invocations, sizeof *m->invocations, true) ||
      !vyre__reserve(m->allocator, &m->matches, &m->match_capacity,
                     (size_t)k->count + 1, sizeof *m->matches, true) ||
      !vyre__reserve(m->allocator, &m->host, &m->host_capacity,
                     (size_t)(k->host.end - k->host.begin) + 1, sizeof *m->host,
                     true) ||
      !vyre__reserve(m->allocator, &m->loop_values, &m->loop_capacity,
                     (size_t)k->grid_loop_count * 2 + 1, sizeof *m->loop_values,
                     true)) {
    return false;
  }
  memset(m->matches, 0, m->match_capacity * sizeof *m->matches);
  memset(m->loop_values, 0, m->loop_capacity * sizeof *m->loop_values);
  for (uint32_t i = 0; i < k->phase_count; i++) {
    find_matches(m, k->phases[i]);
  }
  return allocate_memories(m);
}

/* Copies written buffers back to the caller. Checks that the padding after
 * each buffer is unchanged. */
static vyre_code copy_back(interpreter *m, vyre_code code) {
  const vyre__lir_kernel *k = m->k;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const memory *from = &m->memories[i];
    if (!is_bound(&k->buffers[i])) continue;
    for (uint64_t n = from->size; n < from->capacity; n++) {
      if (from->bytes[n] == m->launch->poison || code != VYRE_OK) continue;
      code = VYRE_FAIL(m->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                       VYRE__LIR_DEFECT,
                       "the LIR breaks a guarantee: bytes after the end of "
                       "'%s' were changed",
                       k->buffers[i].name);
    }
    /* Other threads may read buffers that the kernel does not write. */
    if (!k->buffers[i].is_written || !from->size) continue;
    memcpy(m->launch->buffers[i].data, from->bytes, from->size);
  }
  return code;
}

static void free_all(interpreter *m) {
  vyre_allocator a = m->allocator;
  for (size_t i = 0; m->memories && i < m->k->buffer_count; i++) {
    vyre__reserve_free(a, &m->memories[i].bytes, &m->memories[i].capacity, 1);
  }
  vyre__reserve_free(a, &m->memories, &m->memory_capacity, sizeof *m->memories);
  vyre__reserve_free(a, &m->matches, &m->match_capacity, sizeof *m->matches);
  vyre__reserve_free(a, &m->invocations, &m->invocation_capacity,
                     sizeof *m->invocations);
  vyre__reserve_free(a, &m->values, &m->value_capacity, sizeof *m->values);
  vyre__reserve_free(a, &m->vars, &m->var_capacity, sizeof *m->vars);
  vyre__reserve_free(a, &m->agreed, &m->agreed_capacity, sizeof *m->agreed);
  vyre__reserve_free(a, &m->host, &m->host_capacity, sizeof *m->host);
  vyre__reserve_free(a, &m->loop_values, &m->loop_capacity,
                     sizeof *m->loop_values);
}

vyre_code vyre__lir_interpret(const vyre__lir_kernel *kernel,
                              const vyre__lir_launch *launch,
                              vyre_allocator allocator, vyre_status *st) {
  interpreter m = {.k = kernel,
                   .launch = launch,
                   .allocator = allocator,
                   .st = st,
                   .instructions_left = launch->max_instructions
                                            ? launch->max_instructions
                                            : UINT64_MAX};
  VYRE_TRY(check_launch(&m));
  vyre_code code;
  if (!allocate_all(&m)) {
    code = vyre__no_memory(st, "the LIR interpreter", "values", kernel->count);
  } else {
    fenv_t saved;
    vyre__float_begin(&saved);
    code = run_steps(&m);
    vyre__float_end(&saved);
    code = copy_back(&m, code);
  }
  free_all(&m);
  return code;
}
