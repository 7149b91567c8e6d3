/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds the values that influence an index.
 *
 * A value influences an index in three ways. The index is computed from it,
 * through operations, variables and memory. It is part of a condition that
 * selects the value of a variable. Or it is compared with a value that
 * influences an index, because guards such as `i < n && n <= len(x)` prove
 * accesses. Values computed from such a value and then compared count as well,
 * and so do lengths of buffers that are accessed without a check: `i + 3 < n`,
 * and `n + 64 <= len(x)` for x[local_id.x].
 *
 * Comparison with a constant does not count: it bounds only the value itself.
 * (A proof can use it where guards contradict each other, but such code never
 * runs, no matter how often a value is read.) */
#include "spmd/passes/single_read.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "spmd/regions.h"

/* Links of lists. Each instruction has four: one for each operand that it uses,
 * and one for the list that it belongs to. */
enum { LINKS = 4, OWN = 3 };

typedef struct finder {
  const vyre__lir_kernel *kernel;
  bool *decides; /* per instruction, including block markers */
  bool
      *reaches_compare; /* a value computed from it is compared as an integer */
  uint32_t *stack;      /* work list */
  size_t stack_count;
  uint32_t *parent; /* enclosing IF or LOOP of an instruction; 0: none */
  /* Lists: SETs and GETs of a variable, writes and loads of a buffer, jumps of
   * a LOOP, users of a value. */
  uint32_t *sets, *gets, *writes, *loads, *first, *link;
  bool *is_marked;    /* variables, then buffers, whose lists were marked */
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

/* Returns true if a bound of a value also bounds its operand @p k, through
 * integer operations. A bool operand counts in ZEXT, where it is a carry. */
static bool passes_bound(const finder *f, uint32_t at, unsigned k) {
  const vyre__lir_inst *inst = &f->kernel->code[at];
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  if (!(info->flags & VYRE__LIRF_PURE) || k >= info->operands) return false;
  if (inst->op == VYRE__LIR_ZEXT) return true;
  if (inst->type == VYRE_TYPE_F32 || inst->type == VYRE_TYPE_F64) return false;
  return is_integer(f, inst->v[k]); /* excludes the condition of a SELECT */
}

static bool is_spill(const finder *f, const vyre__lir_inst *inst) {
  return touches_memory(inst) && inst->aux == f->kernel->spill_buffer;
}

static uint32_t loop_around(const finder *f, uint32_t at) {
  do {
    at = f->parent[at];
  } while (at && f->kernel->code[at].op != VYRE__LIR_LOOP);
  return at;
}

/* --- lists ---------------------------------------------------------------- */

static void read_access(finder *f, uint32_t at) {
  const vyre__lir_inst *inst = &f->kernel->code[at];
  unsigned check = vyre__lir_ops[inst->op].operands - 1u;
  if (inst->v[check] == 0) f->is_unguarded[inst->aux] = true;
  if (inst->op == VYRE__LIR_LOAD) {
    chain(f, &f->loads[inst->aux], LINKS * at + OWN);
    return;
  }
  chain(f, &f->writes[inst->aux], LINKS * at + OWN);
  if (is_spill(f, inst)) chain(f, &f->first[inst->b], LINKS * at + 1);
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
        if (!passes_bound(f, at, k) && !(compares(inst) && k < 2)) continue;
        chain(f, &f->first[inst->v[k]], LINKS * at + k);
      }
    }
  }
}

/* --- values that reach a comparison --------------------------------------- */

static void mark_reaches(finder *f, uint32_t at) {
  if (at == 0 || f->reaches_compare[at]) return;
  f->reaches_compare[at] = true;
  f->stack[f->stack_count++] = at;
}

/* Marks all values written to a variable or to the spill buffer. */
static void mark_list(finder *f, bool *is_marked, uint32_t list,
                      unsigned value) {
  if (*is_marked) return;
  *is_marked = true;
  for (uint32_t link = list; link; link = f->link[link]) {
    mark_reaches(f, f->kernel->code[link / LINKS].v[value]);
  }
}

static void find_compared(finder *f) {
  const vyre__lir_kernel *kernel = f->kernel;
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    if (!compares(inst) || !is_integer(f, inst->a)) continue;
    mark_reaches(f, inst->a);
    mark_reaches(f, inst->b);
  }
  while (f->stack_count) {
    uint32_t at = f->stack[--f->stack_count];
    const vyre__lir_inst *inst = &kernel->code[at];
    for (unsigned k = 0; k < OWN; k++) {
      if (passes_bound(f, at, k)) mark_reaches(f, inst->v[k]);
    }
    if (inst->op == VYRE__LIR_GET) {
      mark_list(f, &f->is_marked[inst->aux], f->sets[inst->aux], 0);
    } else if (is_spill(f, inst)) {
      mark_list(f, &f->is_marked[kernel->var_count + inst->aux],
                f->writes[inst->aux], 1);
    }
  }
}

/* --- values that decide --------------------------------------------------- */

/* Adds the roots of the search: indices, lengths in bounds proofs, and
 * divisors, since a division by zero ends the process. With @p branches also
 * conditions, because in LLVM a branch on a racing value is undefined
 * behaviour. */
static void add_roots(finder *f, bool branches) {
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

/* Adds the values written to a variable or a buffer, and the conditions of the
 * writes. Each list is followed once. */
static void add_list(finder *f, uint32_t *list, bool is_memory) {
  for (uint32_t link = *list; link; link = f->link[link]) {
    const vyre__lir_inst *inst = &f->kernel->code[link / LINKS];
    add(f, f->parent[link / LINKS]);
    unsigned operands = vyre__lir_ops[inst->op].operands;
    for (unsigned i = is_memory; i < operands; i++) add(f, inst->v[i]);
  }
  *list = 0;
}

/* Adds values that are read from a variable or from the spill buffer and then
 * compared. */
static void add_outcome(finder *f, uint32_t *list) {
  for (uint32_t link = *list; link; link = f->link[link]) {
    if (f->reaches_compare[link / LINKS]) add(f, link / LINKS);
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
      if (f->reaches_compare[user] && passes_bound(f, user, link % LINKS))
        add(f, user);
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
    if (is_spill(f, inst)) add_outcome(f, &f->loads[inst->aux]);
  }
  if (inst->op == VYRE__LIR_CONST)
    return; /* values compared with a constant do not count */
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
              .reaches_compare = bits,
              .is_marked = bits + count,
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
  find_compared(&f);
  add_roots(&f, branches);
  while (f.stack_count) add_reasons(&f, f.stack[--f.stack_count]);
  vyre__arena_rewind(arena, mark);
  return VYRE_OK;
}
