/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the values that decide about an index.
 *
 * A value decides about an index if the index comes from it: by operations,
 * variables and memory; by the conditions that choose what a variable is set to;
 * or because it is compared with one that does, since guards such as
 * `i < n && n <= len(x)` prove accesses. A value that is computed from one that
 * decides and is then compared counts as well, and so do lengths of buffers that
 * are accessed without a check: `i + 3 < n`, and `n + 64 <= len(x)` for
 * x[local_id.x].
 *
 * Constants do not: a value that is compared with nothing else bounds only itself.
 * (A proof can go through it where guards contradict each other, in code that is
 * never run, however often a value is read.) */
#include "spmd/single_read.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions.h"

/* Links of lists: four an instruction, one for each operand that it uses and one
 * for the list that it is in itself. */
enum { LINKS = 4, OWN = 3 };

typedef struct finder {
  const vyre__lir_kernel *kernel;
  bool *decides;   /* one an instruction, markers of blocks too */
  bool *leads;     /* what is computed from it is compared, as integers */
  uint32_t *stack; /* those whose own reasons were not looked at */
  size_t stack_count;
  uint32_t *parent; /* IF or LOOP around an instruction; 0: none */
  /* Lists: SETs and GETs of a variable, what writes and what loads a buffer,
   * jumps of a LOOP, users of a value. */
  uint32_t *sets, *gets, *writes, *loads, *first, *link;
  bool *is_led; /* variables and then buffers whose lists lead() followed */
  bool *is_unguarded; /* buffers that are accessed without a check */
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

static bool touches_memory(const vyre__lir_inst *inst) {
  return inst->op >= VYRE__LIR_LOAD && inst->op <= VYRE__LIR_ATOMIC_CAS;
}

static bool compares(const vyre__lir_inst *inst) {
  return inst->op >= VYRE__LIR_EQ && inst->op <= VYRE__LIR_LE_S;
}

static bool divides(const vyre__lir_inst *inst) {
  return inst->op >= VYRE__LIR_DIV_U && inst->op <= VYRE__LIR_REM_S;
}

static bool is_integer(const finder *f, vyre__val v) {
  uint8_t type = f->kernel->code[v].type;
  return type == VYRE_TYPE_U32 || type == VYRE_TYPE_U64;
}

/* Whether what is known of a value tells something of operand @p k of it: by
 * operations on integers. A condition is one where it is a carry. */
static bool rises(const finder *f, uint32_t at, unsigned k) {
  const vyre__lir_inst *inst = &f->kernel->code[at];
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  if (!(info->flags & VYRE__LIRF_PURE) || k >= info->operands) return false;
  if (inst->op == VYRE__LIR_ZEXT) return true;
  if (inst->type == VYRE_TYPE_F32 || inst->type == VYRE_TYPE_F64) return false;
  return is_integer(f, inst->v[k]); /* not what a SELECT asks */
}

static bool is_hidden(const finder *f, const vyre__lir_inst *inst) {
  return touches_memory(inst) && inst->aux == f->kernel->spill_buffer;
}

static uint32_t loop_around(const finder *f, uint32_t at) {
  do {
    at = f->parent[at];
  } while (at && f->kernel->code[at].op != VYRE__LIR_LOOP);
  return at;
}

/* --- lists ------------------------------------------------------------------*/

static void read_access(finder *f, uint32_t at) {
  const vyre__lir_inst *inst = &f->kernel->code[at];
  unsigned check = vyre__lir_ops[inst->op].operands - 1u;
  if (inst->v[check] == 0) f->is_unguarded[inst->aux] = true;
  if (inst->op == VYRE__LIR_LOAD) {
    chain(f, &f->loads[inst->aux], LINKS * at + OWN);
    return;
  }
  chain(f, &f->writes[inst->aux], LINKS * at + OWN);
  if (is_hidden(f, inst)) chain(f, &f->first[inst->b], LINKS * at + 1);
}

static void read_code(finder *f) {
  const vyre__lir_kernel *kernel = f->kernel;
  uint32_t open = 0;
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    f->parent[at] = open;
    if (inst->op == VYRE__LIR_IF || inst->op == VYRE__LIR_LOOP) {
      open = at;
    } else if (inst->op == VYRE__LIR_END) {
      open = f->parent[open];
    } else if (inst->op == VYRE__LIR_GET) {
      chain(f, &f->gets[inst->aux], LINKS * at + OWN);
    } else if (inst->op == VYRE__LIR_SET) {
      chain(f, &f->sets[inst->aux], LINKS * at + OWN);
      chain(f, &f->first[inst->a], LINKS * at);
    } else if (inst->op == VYRE__LIR_BREAK || inst->op == VYRE__LIR_CONTINUE) {
      chain(f, &f->first[loop_around(f, at)], LINKS * at + OWN);
    } else if (touches_memory(inst)) {
      read_access(f, at);
    } else {
      for (unsigned k = 0; k < OWN; k++) {
        if (!rises(f, at, k) && !(compares(inst) && k < 2)) continue;
        chain(f, &f->first[inst->v[k]], LINKS * at + k);
      }
    }
  }
}

/* --- what leads to a comparison ---------------------------------------------*/

static void lead(finder *f, uint32_t at) {
  if (at == 0 || f->leads[at]) return;
  f->leads[at] = true;
  f->stack[f->stack_count++] = at;
}

/* What has gone into a variable, or into the hidden buffer. */
static void lead_list(finder *f, bool *is_led, uint32_t list, unsigned value) {
  if (*is_led) return;
  *is_led = true;
  for (uint32_t link = list; link; link = f->link[link]) {
    lead(f, f->kernel->code[link / LINKS].v[value]);
  }
}

static void find_leads(finder *f) {
  const vyre__lir_kernel *kernel = f->kernel;
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    if (!compares(inst) || !is_integer(f, inst->a)) continue;
    lead(f, inst->a);
    lead(f, inst->b);
  }
  while (f->stack_count) {
    uint32_t at = f->stack[--f->stack_count];
    const vyre__lir_inst *inst = &kernel->code[at];
    for (unsigned k = 0; k < OWN; k++) {
      if (rises(f, at, k)) lead(f, inst->v[k]);
    }
    if (inst->op == VYRE__LIR_GET) {
      lead_list(f, &f->is_led[inst->aux], f->sets[inst->aux], 0);
    } else if (is_hidden(f, inst)) {
      lead_list(f, &f->is_led[kernel->var_count + inst->aux],
                f->writes[inst->aux], 1);
    }
  }
}

/* --- what decides -----------------------------------------------------------*/

/* Adds where the search begins: indices, lengths that they were proven against, and
 * divisors, since a division by zero ends the process. With @p branches, conditions
 * too: LLVM leaves it undefined where a branch on a value goes that races. */
static void add_questions(finder *f, bool branches) {
  const vyre__lir_kernel *kernel = f->kernel;
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    bool is_branch = inst->op == VYRE__LIR_IF && branches;
    if (touches_memory(inst) || is_branch) {
      add(f, inst->a);
    } else if (divides(inst)) {
      add(f, inst->b);
    } else if (inst->op == VYRE__LIR_LEN && f->is_unguarded[inst->aux]) {
      add(f, at);
    }
  }
}

/* What has gone into a variable or a buffer, and what decided that it did. Each
 * is followed once. */
static void add_list(finder *f, uint32_t *list, bool is_memory) {
  for (uint32_t link = *list; link; link = f->link[link]) {
    const vyre__lir_inst *inst = &f->kernel->code[link / LINKS];
    add(f, f->parent[link / LINKS]);
    unsigned operands = vyre__lir_ops[inst->op].operands;
    for (unsigned i = is_memory; i < operands; i++) add(f, inst->v[i]);
  }
  *list = 0;
}

/* What comes out of a variable, or of the hidden buffer, and is compared. */
static void add_outcome(finder *f, uint32_t *list) {
  for (uint32_t link = *list; link; link = f->link[link]) {
    if (f->leads[link / LINKS]) add(f, link / LINKS);
  }
  *list = 0;
}

static void add_users(finder *f, uint32_t at) {
  for (uint32_t link = f->first[at]; link; link = f->link[link]) {
    uint32_t user = link / LINKS;
    const vyre__lir_inst *inst = &f->kernel->code[user];
    if (inst->op == VYRE__LIR_SET) {
      add_outcome(f, &f->gets[inst->aux]);
    } else if (touches_memory(inst)) {
      add_outcome(f, &f->loads[inst->aux]);
    } else if (link % LINKS == OWN) { /* a jump */
      add(f, f->parent[user]);
    } else {
      if (compares(inst)) add(f, inst->v[1 - link % LINKS]);
      if (f->leads[user] && rises(f, user, link % LINKS)) add(f, user);
    }
  }
}

static void add_reasons(finder *f, uint32_t at) {
  const vyre__lir_inst *inst = &f->kernel->code[at];
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  for (uint32_t i = 0; i < count; i++) add(f, operands[i]);
  if (inst->op == VYRE__LIR_IF || inst->op == VYRE__LIR_LOOP) {
    add(f, f->parent[at]);
  } else if (inst->op == VYRE__LIR_GET) {
    add_list(f, &f->sets[inst->aux], false);
    add_outcome(f, &f->gets[inst->aux]);
  } else if (touches_memory(inst)) {
    add_list(f, &f->writes[inst->aux], true);
    if (is_hidden(f, inst)) add_outcome(f, &f->loads[inst->aux]);
  }
  if (inst->op == VYRE__LIR_CONST) return; /* what is compared with 0 is not */
  add_users(f, at);
}

vyre_code vyre__find_deciding_loads(const vyre__lir_kernel *kernel,
                                    bool branches, vyre_arena *arena,
                                    bool **decides, vyre_status *st) {
  size_t count = kernel->count;
  size_t vars = kernel->var_count, buffers = kernel->buffer_count;
  *decides = vyre__arena_array(arena, count, sizeof **decides);
  if (!*decides) return vyre__no_memory(st, "emit", "instructions", count);
  memset(*decides, 0, count * sizeof **decides);
  vyre__arena_mark mark = vyre__arena_here(arena);
  size_t words = (3 + LINKS) * count + 2 * (vars + buffers);
  size_t flags = count + vars + 2 * buffers;
  uint32_t *all = vyre__arena_array(arena, words, sizeof *all);
  bool *bits = vyre__arena_array(arena, flags, sizeof *bits);
  if (!all || !bits) return vyre__no_memory(st, "emit", "instructions", count);
  memset(all, 0, words * sizeof *all);
  memset(bits, 0, flags * sizeof *bits);
  finder f = {.kernel = kernel,
              .decides = *decides,
              .leads = bits,
              .is_led = bits + count,
              .is_unguarded = bits + count + vars + buffers,
              .stack = all,
              .parent = all + count,
              .first = all + 2 * count,
              .link = all + 3 * count};
  f.sets = f.link + LINKS * count;
  f.gets = f.sets + vars;
  f.writes = f.gets + vars;
  f.loads = f.writes + buffers;
  read_code(&f);
  find_leads(&f);
  add_questions(&f, branches);
  while (f.stack_count) add_reasons(&f, f.stack[--f.stack_count]);
  vyre__arena_rewind(arena, mark);
  return VYRE_OK;
}
