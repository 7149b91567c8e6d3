/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a LIR kernel as text for debugging.
 *
 *   %12 = fadd f32 %3, 0x1.8p+3
 *   13: store out[%4] = %12 if %9
 *   14: if %9 {
 *
 * Every line begins with the index of its instruction. Constants are printed
 * where they are used. The printer also serves messages about invalid kernels,
 * so it checks every index. */
#include "lir/print.h"

#include <string.h>

#include "base/print.h"

typedef struct printing {
  vyre__printer out;
  const vyre__lir_kernel *kernel;
  unsigned depth;
  uint32_t line; /* source line printed last */
} printing;

static const char *type_name(unsigned type) {
  return type < VYRE_TYPE_COUNT ? vyre_type_name((vyre_type)type) : "?";
}

/* --- values --------------------------------------------------------------- */

/* Prints a float as hexadecimal digits and a power of two. This shows all bits
 * and does not depend on the C library. */
static void print_float(vyre__printer *out, uint64_t bits, unsigned digits,
                        int bias) {
  unsigned width = digits == 23 ? 32 : 64;
  uint64_t fraction = bits & ((UINT64_C(1) << digits) - 1);
  int exponent = (int)(bits >> digits) & (2 * bias + 1);
  const char *sign = bits >> (width - 1) & 1 ? "-" : "";
  if (exponent == 2 * bias + 1) {
    if (fraction == 0) {
      vyre__print(out, "%sinf", sign);
    } else {
      vyre__print(out, "nan(0x%llx)", (unsigned long long)bits);
    }
    return;
  }
  if (exponent == 0 && fraction == 0) {
    vyre__print(out, "%s0x0p+0", sign);
    return;
  }
  char text[16];
  unsigned count = 0;
  uint64_t rest = fraction << (64 - digits);
  for (; rest != 0; rest <<= 4) text[count++] = "0123456789abcdef"[rest >> 60];
  text[count] = '\0';
  vyre__print(out, "%s0x%d%s%sp%+d", sign, exponent != 0, count ? "." : "",
              text, (exponent ? exponent : 1) - bias);
}

static void print_const(vyre__printer *out, unsigned type, uint64_t bits) {
  const char *suffix = type == VYRE_TYPE_U64 ? "ul" : "u";
  switch (type) {
    case VYRE_TYPE_BOOL:
      if (bits < 2) {
        vyre__print(out, bits ? "true" : "false");
      } else {
        vyre__print(out, "bool(0x%llx)", (unsigned long long)bits);
      }
      return;
    case VYRE_TYPE_F32:
      print_float(out, bits & UINT32_MAX, 23, 127);
      return;
    case VYRE_TYPE_F64:
      print_float(out, bits, 52, 1023);
      vyre__print(out, "d");
      return;
    default:
      vyre__print(out, bits < 65536 ? "%llu%s" : "0x%llx%s",
                  (unsigned long long)bits, suffix);
  }
}

static void print_value(printing *p, vyre__val v) {
  const vyre__lir_kernel *k = p->kernel;
  if (v == 0) {
    vyre__print(&p->out, "none");
  } else if (v < k->count && k->code[v].op == VYRE__LIR_CONST) {
    print_const(&p->out, k->code[v].type, vyre__lir_const(&k->code[v]));
  } else {
    vyre__print(&p->out, "%%%u", v);
  }
}

static void print_var(printing *p, uint32_t var) {
  const vyre__lir_kernel *k = p->kernel;
  const char *name = var < k->var_count ? k->vars[var].name : NULL;
  vyre__print(&p->out, "%s.%u", name ? name : "?", var);
}

static void print_buffer(printing *p, uint32_t buffer) {
  const vyre__lir_kernel *k = p->kernel;
  if (buffer < k->buffer_count && k->buffers[buffer].name) {
    vyre__print(&p->out, "%s", k->buffers[buffer].name);
  } else {
    vyre__print(&p->out, "buffer(%u)", buffer);
  }
}

/* --- instructions --------------------------------------------------------- */

static void print_operands(printing *p, const vyre__lir_inst *inst,
                           unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++) {
    vyre__print(&p->out, i > from ? ", " : " ");
    print_value(p, inst->v[i]);
  }
}

/* Prints " f32", or " u32->f32" if the operands have another type. */
static void print_types(printing *p, const vyre__lir_inst *inst) {
  const vyre__lir_kernel *k = p->kernel;
  unsigned count = vyre__lir_ops[inst->op].operands;
  vyre__val first = inst->op == VYRE__LIR_SELECT ? inst->b : inst->a;
  if (count > 0 && first != 0 && first < k->count &&
      k->code[first].type != inst->type) {
    vyre__print(&p->out, " %s->%s", type_name(k->code[first].type),
                type_name(inst->type));
  } else {
    vyre__print(&p->out, " %s", type_name(inst->type));
  }
}

/* Prints buffer[index], then the values, then the condition. */
static void print_access(printing *p, const vyre__lir_inst *inst) {
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  unsigned last = info->operands - 1u;
  vyre__print(&p->out, "%s", info->text);
  if (inst->op != VYRE__LIR_STORE) {
    vyre__print(&p->out, " %s", type_name(inst->type));
  }
  vyre__print(&p->out, " ");
  print_buffer(p, inst->aux);
  vyre__print(&p->out, "[");
  print_value(p, inst->a);
  vyre__print(&p->out, "]");
  if (inst->op == VYRE__LIR_STORE) {
    vyre__print(&p->out, " = ");
    print_value(p, inst->b);
  } else if (last > 1) {
    vyre__print(&p->out, ",");
    print_operands(p, inst, 1, last);
  }
  if (inst->v[last]) {
    vyre__print(&p->out, " if ");
    print_value(p, inst->v[last]);
  }
  if (inst->hints & VYRE__HINT_PROVEN) vyre__print(&p->out, " (proven)");
}

static const char *loop_text(unsigned kind) {
  static const char *const texts[] = {"<", "<=", ">", ">="};
  return kind < 4 ? texts[kind] : "?";
}

/* Prints ":upper half" for a loop over a split 64-bit variable. */
static void print_half(printing *p, uint32_t high_var, uint32_t half,
                       void (*print)(printing *, uint32_t)) {
  if (!high_var) return;
  vyre__print(&p->out, ":");
  print(p, half);
}

static void print_loop(printing *p, uint32_t number) {
  const vyre__lir_kernel *k = p->kernel;
  vyre__print(&p->out, "loop %u", number);
  if (number >= k->loop_count) {
    vyre__print(&p->out, " (no such loop) {");
    return;
  }
  const vyre__lir_loop *loop = &k->loops[number];
  if (loop->is_counted) {
    bool down = loop->kind == VYRE__LOOP_GT || loop->kind == VYRE__LOOP_GE;
    vyre__print(&p->out, " ");
    print_var(p, loop->var);
    print_half(p, loop->high_var, loop->high_var, print_var);
    vyre__print(&p->out, " from ");
    print_value(p, loop->first);
    print_half(p, loop->high_var, loop->first_high, print_value);
    vyre__print(&p->out, " while %s ", loop_text(loop->kind));
    print_value(p, loop->bound);
    print_half(p, loop->high_var, loop->bound_high, print_value);
    vyre__print(&p->out, " by %s%llu%s", down ? "-" : "",
                (unsigned long long)loop->step,
                loop->is_signed ? ", signed" : "");
  }
  if (loop->max_trips != UINT64_MAX) {
    vyre__print(&p->out, ", at most %llu iterations",
                (unsigned long long)loop->max_trips);
  }
  vyre__print(&p->out, " {");
}

/* Prints everything but plain operations on values; returns false for those. */
static bool print_special(printing *p, const vyre__lir_inst *inst) {
  static const char axes[] = "xyz";
  vyre__printer *out = &p->out;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_CONST:
      vyre__print(out, "const %s ", type_name(inst->type));
      print_const(out, inst->type, vyre__lir_const(inst));
      return true;
    case VYRE__LIR_LOCAL_ID:
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_GRID_SIZE:
      vyre__print(out, "%s %s %c", vyre__lir_ops[inst->op].text,
                  type_name(inst->type), inst->aux < 3 ? axes[inst->aux] : '?');
      return true;
    case VYRE__LIR_LEN:
      vyre__print(out, "len %s ", type_name(inst->type));
      print_buffer(p, inst->aux);
      return true;
    case VYRE__LIR_LOOP_VALUE:
      vyre__print(out, "loop_value %s %u%s", type_name(inst->type), inst->aux,
                  inst->c ? " upper half" : "");
      return true;
    case VYRE__LIR_GET:
      vyre__print(out, "get %s ", type_name(inst->type));
      print_var(p, inst->aux);
      return true;
    case VYRE__LIR_SET:
      vyre__print(out, "set ");
      print_var(p, inst->aux);
      vyre__print(out, " = ");
      print_value(p, inst->a);
      return true;
    case VYRE__LIR_IF:
      vyre__print(out, "if ");
      print_value(p, inst->a);
      vyre__print(out, "%s {", inst->hints & VYRE__HINT_RARE ? " (rare)" : "");
      return true;
    case VYRE__LIR_ELSE:
      vyre__print(out, "} else {");
      return true;
    case VYRE__LIR_LOOP:
      print_loop(p, inst->aux);
      return true;
    case VYRE__LIR_STEP:
      vyre__print(out, "} step {");
      return true;
    case VYRE__LIR_END:
      vyre__print(out, "}");
      return true;
    case VYRE__LIR_TICK:
      vyre__print(out, "tick%s", inst->a ? " 1 + " : "");
      if (inst->a) print_value(p, inst->a);
      vyre__print(out, "%s", inst->b ? " if " : "");
      if (inst->b) print_value(p, inst->b);
      return true;
    case VYRE__LIR_MATH:
      vyre__print(out, "%s",
                  inst->aux < VYRE__OP_COUNT ? vyre__ops[inst->aux].text : "?");
      print_types(p, inst);
      print_operands(p, inst, 0, inst->b ? 2 : 1);
      return true;
    default:
      return false;
  }
}

static void print_inst(printing *p, uint32_t number) {
  const vyre__lir_inst *inst = &p->kernel->code[number];
  if (inst->type != VYRE_TYPE_VOID) {
    vyre__print(&p->out, "%%%u = ", number);
  } else {
    vyre__print(&p->out, "%u: ", number);
  }
  if (inst->op >= VYRE__LIR_COUNT) {
    vyre__print(&p->out, "operation(%u)", inst->op);
    return;
  }
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  if (print_special(p, inst)) return;
  if (info->operands > 1 &&
      (info->flags &
       (VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS))) {
    print_access(p, inst);
    return;
  }
  vyre__print(&p->out, "%s", info->text);
  if (inst->type != VYRE_TYPE_VOID || info->operands) print_types(p, inst);
  print_operands(p, inst, 0, info->operands);
}

/* --- the kernel ----------------------------------------------------------- */

static void indent(printing *p) {
  vyre__print_repeat(&p->out, "  ", p->depth);
}

/* Replaces control characters: a file name must not break the comment line. */
static void print_file(printing *p, const char *file) {
  while (*file) {
    size_t plain = 0;
    while ((unsigned char)file[plain] >= ' ' && file[plain] != 0x7f) plain++;
    vyre__print(&p->out, "%.*s%s", (int)plain, file, file[plain] ? "?" : "");
    file += plain + (file[plain] != '\0');
  }
}

static void print_source_line(printing *p, uint32_t number) {
  const vyre__lir_kernel *k = p->kernel;
  if (!k->source_locs || k->source_locs[number].line == 0 ||
      k->source_locs[number].line == p->line) {
    return;
  }
  p->line = k->source_locs[number].line;
  indent(p);
  const char *file = k->program && k->program->file ? k->program->file : "";
  vyre__print(&p->out, "// ");
  print_file(p, file);
  vyre__print(&p->out, "%s%u\n", file[0] ? ":" : "line ", p->line);
}

static void print_range(printing *p, vyre__lir_phase range) {
  const vyre__lir_kernel *k = p->kernel;
  unsigned outside = p->depth;
  p->line = 0;
  for (uint32_t i = range.begin; i < range.end && i < k->count && p->out.ok;
       i++) {
    unsigned op = k->code[i].op;
    bool closes =
        op == VYRE__LIR_ELSE || op == VYRE__LIR_STEP || op == VYRE__LIR_END;
    bool opens = op == VYRE__LIR_IF || op == VYRE__LIR_LOOP ||
                 op == VYRE__LIR_ELSE || op == VYRE__LIR_STEP;
    if (op == VYRE__LIR_NONE && i == 0) continue;
    if (op == VYRE__LIR_CONST) continue; /* printed where it is used */
    if (closes && p->depth > outside) {
      p->depth--;
    } else {
      print_source_line(p, i);
    }
    indent(p);
    print_inst(p, i);
    vyre__print(&p->out, "\n");
    if (opens) p->depth++;
  }
  p->depth = outside;
}

static void print_buffers(printing *p) {
  const vyre__lir_kernel *k = p->kernel;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const vyre__lir_buffer *b = &k->buffers[i];
    vyre__print(&p->out, "buffer %u ", i);
    print_buffer(p, i);
    vyre__print(&p->out, ": %s, width %u",
                b->kind < VYRE_MEMORY_COUNT
                    ? vyre_memory_name((vyre_memory)b->kind)
                    : "?",
                b->width);
    if (b->unit != b->width) vyre__print(&p->out, ", unit %u", b->unit);
    if (b->count) vyre__print(&p->out, ", count %u", b->count);
    if (b->source == VYRE_NO_INDEX) vyre__print(&p->out, ", spill");
    if (b->is_written) vyre__print(&p->out, ", written");
    if (b->is_atomic) vyre__print(&p->out, ", atomic");
    if (b->needs_zero) vyre__print(&p->out, ", needs zero");
    vyre__print(&p->out, "\n");
  }
}

static void print_header(printing *p) {
  const vyre__lir_kernel *k = p->kernel;
  vyre__print(&p->out, "kernel %s, workgroup %u %u %u%s%s\n",
              k->name ? k->name : "", k->workgroup[0], k->workgroup[1],
              k->workgroup[2], k->has_barrier ? ", barriers" : "",
              k->has_fuel ? ", fuel" : "");
  vyre__print(&p->out, "accesses %u, proven %u\n", k->access_count,
              k->proven_count);
  print_buffers(p);
  if (k->spill_buffer != VYRE_NO_INDEX && k->spill_buffer < k->buffer_count) {
    vyre__print(&p->out, "kept across grid barriers: ");
    print_buffer(p, k->spill_buffer);
    vyre__print(&p->out, ", %u words an invocation, at most %llu of them\n",
                k->spill_words,
                (unsigned long long)vyre__lir_max_invocations(k));
  }
  for (uint32_t i = 0; i < k->var_count; i++) {
    vyre__print(&p->out, "var ");
    print_var(p, i);
    vyre__print(&p->out, ": %s\n", type_name(k->vars[i].type));
  }
}

static void print_steps(printing *p) {
  const vyre__lir_kernel *k = p->kernel;
  vyre__print(&p->out, "steps {\n");
  p->depth = 1;
  for (uint32_t i = 0; i < k->step_count; i++) {
    const vyre__lir_step *s = &k->steps[i];
    if (s->kind == VYRE__STEP_END_FOR && p->depth > 1) p->depth--;
    indent(p);
    if (s->kind == VYRE__STEP_RUN) {
      vyre__print(&p->out, "run phase %u\n", s->phase);
    } else if (s->kind == VYRE__STEP_END_FOR) {
      vyre__print(&p->out, "} // for %u\n", s->loop);
    } else {
      bool down =
          s->loop_kind == VYRE__LOOP_GT || s->loop_kind == VYRE__LOOP_GE;
      vyre__print(&p->out, "for %u: %s from ", s->loop, type_name(s->type));
      print_value(p, s->first);
      vyre__print(&p->out, " while %s ", loop_text(s->loop_kind));
      print_value(p, s->bound);
      vyre__print(&p->out, " by %s%llu {\n", down ? "-" : "",
                  (unsigned long long)s->step);
      p->depth++;
    }
  }
  p->depth = 0;
  vyre__print(&p->out, "}\n");
}

static void print_block(printing *p, vyre__lir_phase range) {
  vyre__print(&p->out, " {\n");
  p->depth = 1;
  print_range(p, range);
  p->depth = 0;
  vyre__print(&p->out, "}\n");
}

bool vyre__lir_print(const vyre__lir_kernel *kernel, vyre_writer writer) {
  printing p = {vyre__printer_make(writer), kernel, 0, 0};
  print_header(&p);
  if (kernel->phase_count == 0) {
    vyre__print(&p.out, "body");
    print_block(&p, (vyre__lir_phase){1, kernel->count});
    return p.out.ok;
  }
  if (kernel->step_count > 1) print_steps(&p);
  if (kernel->host.begin < kernel->host.end) {
    vyre__print(&p.out, "host");
    print_block(&p, kernel->host);
  }
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    vyre__print(&p.out, "phase %u", i);
    print_block(&p, kernel->phases[i]);
  }
  return p.out.ok;
}

/* --- one line ------------------------------------------------------------- */

typedef struct line {
  char *text;
  size_t length;
} line;

static bool write_line(void *self, const char *text, size_t length) {
  line *to = self;
  size_t space = VYRE__LIR_TEXT - 1 - to->length;
  size_t take = length < space ? length : space;
  memcpy(to->text + to->length, text, take);
  to->length += take;
  to->text[to->length] = '\0';
  return take == length;
}

const char *vyre__lir_text(const vyre__lir_kernel *kernel, uint32_t number,
                           char buffer[VYRE__LIR_TEXT]) {
  line to = {buffer, 0};
  buffer[0] = '\0';
  printing p = {vyre__printer_make((vyre_writer){write_line, &to}), kernel, 0,
                0};
  if (number < kernel->count) print_inst(&p, number);
  return buffer;
}
