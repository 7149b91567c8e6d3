/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which values must not change between two looks at them.
 *
 * To a C compiler memory is what nobody else writes: it may load what it loaded
 * before again. A kernel that races then checks one value and goes on with another,
 * out of its buffer. So where a load of memory that the kernel writes decides
 * about an index, or a divisor, it is spelled so that it happens once. All others
 * stay plain, so that `y[i] = a * x[i] + y[i]` becomes vectors.
 *
 * A value decides about an index if the index comes from it: by operations,
 * variables and memory; by the conditions that choose what a variable is set to;
 * or because it is compared with one that does, since guards such as
 * `i < n && n <= len(x)` prove accesses. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "emit/c_internal.h"

typedef struct finder {
  const vyre__low_kernel *kernel;
  bool *decides;   /* one an instruction, markers of blocks too */
  uint32_t *stack; /* those whose own reasons were not looked at */
  size_t stack_count;
  uint32_t *parent; /* IF or LOOP around an instruction; 0: none */
  /* Lists: SETs of a variable, what writes a buffer, jumps of a LOOP,
   * comparisons of a value. A comparison is in two: its link is twice its
   * number, plus 1 for the second operand. */
  uint32_t *sets, *writes, *first, *link;
} finder;

static void add(finder *f, uint32_t at) {
  if (at == 0 || f->decides[at]) return;
  f->decides[at] = true;
  f->stack[f->stack_count++] = at;
}

static void chain(finder *f, uint32_t *list, uint32_t link) {
  f->link[link] = *list;
  *list = link;
}

static bool touches_memory(const vyre__low_inst *inst) {
  return inst->op >= VYRE__LOW_LOAD && inst->op <= VYRE__LOW_ATOMIC_CAS;
}

static bool compares(const vyre__low_inst *inst) {
  return inst->op >= VYRE__LOW_EQ && inst->op <= VYRE__LOW_LE_S;
}

static bool divides(const vyre__low_inst *inst) {
  return inst->op >= VYRE__LOW_DIV_U && inst->op <= VYRE__LOW_REM_S;
}

static uint32_t loop_around(const finder *f, uint32_t at) {
  do {
    at = f->parent[at];
  } while (at && f->kernel->code[at].op != VYRE__LOW_LOOP);
  return at;
}

/* Blocks and lists, and what asks: indices and divisors. A division by zero ends
 * the process. */
static void read_code(finder *f) {
  const vyre__low_kernel *kernel = f->kernel;
  uint32_t open = 0;
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__low_inst *inst = &kernel->code[at];
    f->parent[at] = open;
    if (inst->op == VYRE__LOW_IF || inst->op == VYRE__LOW_LOOP) {
      open = at;
    } else if (inst->op == VYRE__LOW_END) {
      open = f->parent[open];
    } else if (inst->op == VYRE__LOW_SET) {
      chain(f, &f->sets[inst->aux], 2 * at);
    } else if (inst->op == VYRE__LOW_BREAK || inst->op == VYRE__LOW_CONTINUE) {
      chain(f, &f->first[loop_around(f, at)], 2 * at);
    } else if (touches_memory(inst)) {
      add(f, inst->a);
      if (inst->op != VYRE__LOW_LOAD) chain(f, &f->writes[inst->aux], 2 * at);
    } else if (compares(inst)) {
      chain(f, &f->first[inst->a], 2 * at);
      chain(f, &f->first[inst->b], 2 * at + 1);
    } else if (divides(inst)) {
      add(f, inst->b);
    }
  }
}

/* What has gone into a variable or a buffer, and what decided that it did. Each
 * is followed once. */
static void add_list(finder *f, uint32_t *list, bool is_memory) {
  for (uint32_t link = *list; link; link = f->link[link]) {
    const vyre__low_inst *inst = &f->kernel->code[link / 2];
    add(f, f->parent[link / 2]);
    unsigned operands = vyre__low_ops[inst->op].operands;
    for (unsigned i = is_memory; i < operands; i++) add(f, inst->v[i]);
  }
  *list = 0;
}

static void add_reasons(finder *f, uint32_t at) {
  const vyre__low_inst *inst = &f->kernel->code[at];
  vyre__val operands[4];
  uint32_t count = vyre__low_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) add(f, operands[i]);
  if (inst->op == VYRE__LOW_IF || inst->op == VYRE__LOW_LOOP) {
    add(f, f->parent[at]);
  } else if (inst->op == VYRE__LOW_GET) {
    add_list(f, &f->sets[inst->aux], false);
  } else if (touches_memory(inst)) {
    add_list(f, &f->writes[inst->aux], true);
  }
  if (inst->op == VYRE__LOW_CONST) return; /* what is compared with 0 is not */
  for (uint32_t link = f->first[at]; link; link = f->link[link]) {
    const vyre__low_inst *other = &f->kernel->code[link / 2];
    if (inst->op == VYRE__LOW_LOOP) { /* a jump */
      add(f, f->parent[link / 2]);
    } else {
      add(f, link & 1 ? other->a : other->b);
    }
  }
}

vyre_code c_find_once(c_emitter *e) {
  const vyre__low_kernel *kernel = e->kernel;
  size_t count = kernel->count;
  e->decides = vyre__arena_array(e->arena, count, sizeof *e->decides);
  if (!e->decides) {
    return vyre__no_memory(e->st, "emit/c", "instructions", count);
  }
  memset(e->decides, 0, count * sizeof *e->decides);
  vyre__arena_mark mark = vyre__arena_here(e->arena);
  size_t vars = kernel->var_count, buffers = kernel->buffer_count;
  uint32_t *all =
      vyre__arena_array(e->arena, 5 * count + vars + buffers, sizeof *all);
  if (!all) return vyre__no_memory(e->st, "emit/c", "instructions", count);
  memset(all, 0, (5 * count + vars + buffers) * sizeof *all);
  finder f = {.kernel = kernel,
              .decides = e->decides,
              .stack = all,
              .parent = all + count,
              .first = all + 2 * count,
              .link = all + 3 * count,
              .sets = all + 5 * count,
              .writes = all + 5 * count + vars};
  read_code(&f);
  while (f.stack_count) add_reasons(&f, f.stack[--f.stack_count]);
  vyre__arena_rewind(e->arena, mark);
  return VYRE_OK;
}

bool c_reads_once(const c_emitter *e, vyre__val v) {
  const vyre__low_inst *inst = c_inst(e, v);
  if (inst->op != VYRE__LOW_LOAD || !e->decides[v]) return false;
  const vyre__low_buffer *buffer = &e->kernel->buffers[inst->aux];
  /* An invocation has its part of the hidden buffer for itself, and a workgroup
   * its shared memory. */
  return buffer->is_written && buffer->kind != VYRE_MEMORY_SHARED &&
         inst->aux != e->kernel->hidden;
}
