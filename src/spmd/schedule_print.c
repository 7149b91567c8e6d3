/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a schedule: one line per node, indented by depth. Numbers are LIR
 * instructions, as in `vyre emit --to lowered`; 4..9 is [4, 9). */
#include "base/print.h"
#include "spmd/schedule_internal.h"

static const char *const names[] = {
#define VYRE__X2(name, text) (text),
    VYRE__SCHED_MAP(VYRE__X2)
#undef VYRE__X2
};

static const char *const modes[] = {
    [VYRE__MODE_UNIFORM] = "uniform", [VYRE__MODE_SPECULATE] = "speculated",
    [VYRE__MODE_SELECT] = "select",   [VYRE__MODE_JUMP] = "masked jump",
    [VYRE__MODE_MASKED] = "masked",
};

static const char *const ranges[] = {
    [VYRE__RANGE_FULL] = "full",
    [VYRE__RANGE_EDGE] = "edge",
    [VYRE__RANGE_OUTSIDE] = "outside",
};

typedef struct printing {
  vyre__printer out;
  const vyre__schedule *s;
} printing;

/* Prints the accesses of a leaf by kind. */
static void print_accesses(printing *p, const vyre__sched_node *node) {
  static const char *const kinds[] = {
      [VYRE__ACCESS_UNIFORM] = "uniform",
      [VYRE__ACCESS_CONTIGUOUS] = "contiguous",
      [VYRE__ACCESS_STRIDED] = "strided",
      [VYRE__ACCESS_INTERLEAVED] = "interleaved",
      [VYRE__ACCESS_SHUFFLED] = "shuffled",
      [VYRE__ACCESS_GATHER] = "gather",
      [VYRE__ACCESS_ATOMIC] = "atomic",
  };
  uint32_t counts[2][VYRE__ACCESS_ATOMIC + 1] = {{0}};
  for (uint32_t at = node->begin; at < node->end; at++) {
    const vyre__inst_info *info = info_at(p->s, at);
    bool is_uniform = info->storage == VYRE__STORAGE_UNIFORM;
    if (!info->is_needed || is_uniform != (node->kind == VYRE__SCHED_UNIFORM)) {
      continue;
    }
    bool writes = (flags_at(p->s, at) & VYRE__LIRF_WRITES) != 0;
    counts[writes][vyre__access_kind_of(p->s, at)]++;
  }
  const char *before = "  ";
  for (unsigned writes = 0; writes < 2; writes++) {
    for (unsigned i = VYRE__ACCESS_UNIFORM; i <= VYRE__ACCESS_ATOMIC; i++) {
      if (!counts[writes][i]) continue;
      const char *what = writes ? " store" : " load";
      vyre__print(&p->out, "%s%u %s%s", before, counts[writes][i], kinds[i],
                  i == VYRE__ACCESS_ATOMIC ? "" : what);
      before = ", ";
    }
  }
}

/* Prints the conditions that hold in the full range. */
static void print_split(printing *p, const vyre__row_split *row) {
  for (uint32_t i = 0; i < row->count; i++) {
    const vyre__row_condition *c = &row->conditions[i];
    const char *when = c->is_proven  ? " (proven)"
                       : c->in_loops ? " in all iterations"
                       : c->is_clamp ? " is not clamped"
                       : c->clips    ? " (else nothing to do)"
                                     : "";
    vyre__print(&p->out, "%s%s%%%u%s", i ? " and " : " full where ",
                c->want ? "" : "not ", c->v, when);
  }
  if (row->limit) {
    vyre__print(&p->out, ", rows %s %%%u only",
                row->limit_is_point ? "with" : "below", row->limit);
  }
  if (!row->has_loads) return;
  const char *before = ", once: ";
  const vyre__subregion *of = &p->s->r.subregions[row->subregion];
  for (uint32_t at = of->begin; at < of->end; at++) {
    if (!note_at(p->s, at)->is_row_load) continue;
    vyre__print(&p->out, "%s%%%u", before, at);
    before = ", ";
  }
}

/* Prints the accumulators that a copy of a loop computes. */
static void print_group(printing *p, const vyre__sched_node *loop) {
  const vyre__schedule *s = p->s;
  uint32_t step = info_at(s, loop->begin)->mate;
  vyre__print(&p->out, " for");
  for (uint32_t at = loop->begin + 1; at < step; at++) {
    if (!is_op(s, at, VYRE__LIR_SET) || !info_at(s, at)->is_needed) continue;
    if (!(note_at(s, at)->groups & loop->group)) continue;
    uint32_t var = inst_at(s, at)->aux;
    const char *name = s->kernel->vars[var].name;
    vyre__print(&p->out, " %.40s.%u", name ? name : "?", var);
  }
}

/* Prints the loads of a loop that take blocks of rows. */
static void print_walks(printing *p, const vyre__sched_node *loop) {
  const char *before = ", blocks of rows for ";
  for (uint32_t at = loop->begin; at < loop->end; at++) {
    if (note_at(p->s, at)->walk != loop->begin) continue;
    vyre__print(&p->out, "%s%%%u", before, at);
    before = ", ";
  }
}

static void print_node(printing *p, const vyre__sched_node *node) {
  const vyre__schedule *s = p->s;
  switch (node->kind) {
    case VYRE__SCHED_GROUPS:
      if (s->is_fused) vyre__print(&p->out, " fused along x");
      if (s->overlaps) vyre__print(&p->out, ", vectors may overlap");
      break;
    case VYRE__SCHED_BARRIER:
      break;
    case VYRE__SCHED_ROWS:
    case VYRE__SCHED_VECTORS:
      vyre__print(&p->out, " %u..%u", node->begin, node->end);
      if (node->split) print_split(p, node->split);
      break;
    case VYRE__SCHED_RANGE:
      vyre__print(&p->out, " %s", ranges[node->range]);
      break;
    case VYRE__SCHED_IF:
      vyre__print(&p->out, " %u on %%%u %s", node->begin,
                  inst_at(s, node->begin)->a, modes[node->mode]);
      break;
    case VYRE__SCHED_GROUP_IF:
      vyre__print(&p->out, " %u on %%%u", node->begin,
                  inst_at(s, node->begin)->a);
      break;
    case VYRE__SCHED_PRIVATE:
    case VYRE__SCHED_MERGE:
      vyre__print(&p->out, " %.100s", s->kernel->buffers[node->buffer].name);
      break;
    case VYRE__SCHED_FULL_GROUPS:
      break;
    case VYRE__SCHED_PREFETCH:
      vyre__print(&p->out, " %u, %u invocations ahead", node->begin,
                  node->prefetch->distance);
      break;
    case VYRE__SCHED_JAM:
      vyre__print(&p->out, " %u rows", node->jam->rows);
      break;
    case VYRE__SCHED_ACCUMULATORS:
      vyre__print(&p->out, " %u", node->begin);
      break;
    case VYRE__SCHED_LOOP:
      vyre__print(&p->out, " %u %s", node->begin, modes[node->mode]);
      if (node->peel) vyre__print(&p->out, ", peeled while all lanes stay");
      if (node->walks) print_walks(p, node);
      if (node->streams) {
        vyre__print(&p->out, ", %u loads ahead", node->streams);
      }
      if (node->group) print_group(p, node);
      break;
    case VYRE__SCHED_GROUP_LOOP:
      vyre__print(&p->out, " %u", node->begin);
      break;
    case VYRE__SCHED_JUMP:
    case VYRE__SCHED_GROUP_JUMP:
      vyre__print(&p->out, " %u %s", node->begin,
                  vyre__lir_ops[inst_at(s, node->begin)->op].text);
      break;
    default:
      vyre__print(&p->out, " %u..%u", node->begin, node->end);
      print_accesses(p, node);
  }
}

static void print_list(printing *p, const vyre__sched_node *first,
                       unsigned depth) {
  for (const vyre__sched_node *node = first; node; node = node->next) {
    bool is_loop =
        node->kind == VYRE__SCHED_LOOP || node->kind == VYRE__SCHED_GROUP_LOOP;
    vyre__print_repeat(&p->out, "  ", depth);
    vyre__print(&p->out, "%s", names[node->kind]);
    print_node(p, node);
    vyre__print(&p->out, "\n");
    print_list(p, node->body, depth + 1);
    if (!node->other) continue;
    vyre__print_repeat(&p->out, "  ", depth);
    vyre__print(&p->out, is_loop ? "step\n" : "else\n");
    print_list(p, node->other, depth + 1);
  }
}

bool vyre__schedule_print(const vyre__schedule *s, vyre_writer writer) {
  printing p = {.out = vyre__printer_make(writer), .s = s};
  vyre__print(&p.out, "schedule of %.100s, phase %u: width %u, lanes %u\n",
              s->kernel->name, s->phase, s->width, s->lanes);
  print_list(&p, s->root, 0);
  return p.out.ok;
}
