/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "emit/width.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

enum {
  MOST_WIDTH = 32,
  FEW_OPERATIONS = 8, /* for each access of a loop that lanes do by themselves:
                         below that, vectors do not pay for it */
  FEW_ACCESSES = 4,   /* streams at a time that a long vector is good for */
};

/* Values and variables as stretches of instructions, in which they live. */
typedef struct meter {
  const vyre__regions *r;
  const vyre__shapes *s;
  vyre__width_facts *out;
  uint32_t *last;   /* value: last use */
  uint32_t *begins; /* variable: first and last access */
  uint32_t *ends;
  int32_t
      *bytes_change; /* what begins and ends to live before an instruction */
  int32_t *narrow_change, *wide_change;
  uint32_t *loop; /* the innermost loop of an instruction; 0: none */
  bool *is_rare;  /* in an IF that is hardly ever taken */
} meter;

static const vyre__low_inst *inst_at(const meter *m, uint32_t at) {
  return &m->r->kernel->code[at];
}

static uint32_t slot(const meter *m, uint32_t at) {
  return at - m->r->begin;
}

static bool varies(const meter *m, vyre__val v) {
  return vyre__shape_of(m->s, v).kind == VYRE__SHAPE_VARYING;
}

static bool counts(const meter *m, uint32_t at) {
  const vyre__role *role = vyre__role_of(m->r, at);
  return role->is_needed && role->is_reached && !m->is_rare[slot(m, at)];
}

/* --- what lives -------------------------------------------------------------*/

static void add_life(meter *m, uint32_t begin, uint32_t end, unsigned type) {
  bool is_wide = type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64;
  int32_t bytes = is_wide ? 8 : 4;
  int32_t *change = is_wide ? m->wide_change : m->narrow_change;
  m->bytes_change[slot(m, begin)] += bytes;
  m->bytes_change[slot(m, end)] -= bytes;
  change[slot(m, begin)]++;
  change[slot(m, end)]--;
}

static uint32_t loop_end(const meter *m, uint32_t loop) {
  return vyre__end_of(m->r, loop);
}

/* What begins to live outside of a loop and is used in it lives until its end. */
static uint32_t end_of_life(const meter *m, uint32_t begin, uint32_t use) {
  uint32_t end = use;
  for (uint32_t loop = m->loop[slot(m, use)]; loop && loop > begin;
       loop = m->loop[slot(m, loop)]) {
    end = loop_end(m, loop);
  }
  return end;
}

static void use_operands(meter *m, uint32_t at) {
  vyre__val operands[4];
  uint32_t count = vyre__low_operands(inst_at(m, at), operands);
  for (uint32_t i = 0; i < count; i++) m->last[slot(m, operands[i])] = at;
}

static void see_variable(meter *m, uint32_t at) {
  uint32_t var = inst_at(m, at)->aux;
  if (!m->begins[var]) m->begins[var] = at;
  m->ends[var] = at;
}

static void live_values(meter *m) {
  const vyre__regions *r = m->r;
  for (uint32_t at = r->begin; at < r->end; at++) {
    uint8_t op = inst_at(m, at)->op;
    if (!counts(m, at)) continue;
    use_operands(m, at);
    if (op == VYRE__LOW_GET || op == VYRE__LOW_SET) see_variable(m, at);
  }
  for (uint32_t at = r->begin; at < r->end; at++) {
    const vyre__low_inst *inst = inst_at(m, at);
    /* What GET gives is where the variable is. */
    if (!counts(m, at) || inst->op == VYRE__LOW_GET) continue;
    if (inst->type == VYRE_TYPE_VOID || !varies(m, at)) continue;
    uint32_t last = m->last[slot(m, at)];
    if (last) add_life(m, at, end_of_life(m, at, last), inst->type);
  }
  for (uint32_t i = 0; i < r->kernel->var_count; i++) {
    if (!m->begins[i]) continue;
    if (m->s->vars[i].shape.kind != VYRE__SHAPE_VARYING) continue;
    uint32_t begin = m->begins[i];
    add_life(m, begin, end_of_life(m, begin, m->ends[i]),
             r->kernel->vars[i].type);
  }
}

/* Who is active where lanes part. */
static void live_masks(meter *m) {
  for (uint32_t at = m->r->begin; at < m->r->end; at++) {
    uint8_t op = inst_at(m, at)->op;
    if (op != VYRE__LOW_IF && op != VYRE__LOW_LOOP) continue;
    if (!counts(m, at) || !m->s->parts_lanes[slot(m, at)]) continue;
    add_life(m, at, vyre__end_of(m->r, at), VYRE_TYPE_BOOL);
  }
}

static void find_most(meter *m) {
  int32_t bytes = 0, narrow = 0, wide = 0;
  for (uint32_t at = m->r->begin; at < m->r->end; at++) {
    bytes += m->bytes_change[slot(m, at)];
    narrow += m->narrow_change[slot(m, at)];
    wide += m->wide_change[slot(m, at)];
    if ((uint32_t)bytes > m->out->live_bytes) {
      m->out->live_bytes = (uint32_t)bytes;
    }
    if ((uint32_t)narrow > m->out->live_32) m->out->live_32 = (uint32_t)narrow;
    if ((uint32_t)wide > m->out->live_64) m->out->live_64 = (uint32_t)wide;
  }
}

/* --- what is done -----------------------------------------------------------*/

/* An instruction that touches memory, into the facts. */
static void count_access(const meter *m, uint32_t at, vyre__width_facts *to) {
  const vyre__low_inst *inst = inst_at(m, at);
  vyre__shape index = vyre__shape_of(m->s, inst->a);
  uint16_t flags = vyre__low_ops[inst->op].flags;
  if (flags & VYRE__LOWF_ATOMICS) {
    to->atomics++;
  } else if (index.kind == VYRE__SHAPE_LINEAR && index.stride == 1) {
    bool is_aligned = vyre__shape_stays(index, 32, m->s->width);
    *(is_aligned ? &to->aligned : &to->contiguous) += 1;
  } else if (!vyre__shape_is_uniform(index)) {
    *(flags & VYRE__LOWF_WRITES ? &to->scatters : &to->gathers) += 1;
  }
}

static void count_inst(const meter *m, uint32_t at, vyre__width_facts *to) {
  const vyre__low_inst *inst = inst_at(m, at);
  uint16_t flags = vyre__low_ops[inst->op].flags;
  uint16_t memory = VYRE__LOWF_READS | VYRE__LOWF_WRITES | VYRE__LOWF_ATOMICS;
  if (!counts(m, at) || inst->op == VYRE__LOW_OUT_OF_FUEL) return;
  if (flags & memory) count_access(m, at, to);
  if ((flags & VYRE__LOWF_PURE) && varies(m, at)) to->arithmetic++;
  if (inst->op == VYRE__LOW_BARRIER) to->has_barrier = true;
  bool is_loop = inst->op == VYRE__LOW_LOOP;
  to->loops += is_loop && vyre__role_of(m->r, at)->piece != 0;
}

/* Whether the loop at @p at is better done one invocation at a time. */
static bool is_irregular(const meter *m, uint32_t at) {
  vyre__width_facts in = {0};
  if (!m->s->parts_lanes[slot(m, at)] || !counts(m, at)) return false;
  for (uint32_t i = at; i < loop_end(m, at); i++) count_inst(m, i, &in);
  uint32_t own = in.atomics + in.scatters + in.gathers;
  return in.atomics + in.scatters > 0 && in.arithmetic <= FEW_OPERATIONS * own;
}

/* Loops around, and rare IFs. */
static void find_blocks(meter *m) {
  uint32_t loop = 0, rare_end = 0;
  for (uint32_t at = m->r->begin; at < m->r->end; at++) {
    const vyre__low_inst *inst = inst_at(m, at);
    m->is_rare[slot(m, at)] = at < rare_end;
    if (inst->op == VYRE__LOW_END && loop && at == loop_end(m, loop)) {
      loop = m->loop[slot(m, loop)];
    }
    m->loop[slot(m, at)] = loop;
    if (inst->op == VYRE__LOW_LOOP) loop = at;
    bool is_rare = inst->op == VYRE__LOW_IF && (inst->hints & VYRE__HINT_RARE);
    if (is_rare && at >= rare_end) rare_end = vyre__end_of(m->r, at);
  }
}

static bool take_arrays(meter *m, vyre_arena *arena) {
  size_t count = (size_t)(m->r->end - m->r->begin) + 1;
  size_t vars = m->r->kernel->var_count;
  uint32_t **lists[] = {&m->last, &m->loop};
  int32_t **changes[] = {&m->bytes_change, &m->narrow_change, &m->wide_change};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    *lists[i] = vyre__arena_array(arena, count, sizeof **lists[i]);
    if (!*lists[i]) return false;
    memset(*lists[i], 0, count * sizeof **lists[i]);
  }
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    *changes[i] = vyre__arena_array(arena, count, sizeof **changes[i]);
    if (!*changes[i]) return false;
    memset(*changes[i], 0, count * sizeof **changes[i]);
  }
  m->is_rare = vyre__arena_array(arena, count, sizeof *m->is_rare);
  m->begins = vyre__arena_array(arena, vars, sizeof *m->begins);
  m->ends = vyre__arena_array(arena, vars, sizeof *m->ends);
  if (!m->is_rare || !m->begins || !m->ends) return false;
  memset(m->begins, 0, vars * sizeof *m->begins);
  memset(m->ends, 0, vars * sizeof *m->ends);
  return true;
}

vyre_code vyre__width_measure(const vyre__regions *regions,
                              const vyre__shapes *shapes, vyre_arena *arena,
                              vyre__width_facts *out, vyre_status *st) {
  meter m = {.r = regions, .s = shapes, .out = out};
  *out = (vyre__width_facts){0};
  if (!take_arrays(&m, arena)) {
    return vyre__no_memory(st, "the width of vectors", "instructions",
                           regions->end - regions->begin);
  }
  find_blocks(&m);
  live_values(&m);
  live_masks(&m);
  find_most(&m);
  for (uint32_t at = regions->begin; at < regions->end; at++) {
    count_inst(&m, at, out);
    if (inst_at(&m, at)->op == VYRE__LOW_LOOP) {
      out->irregular_loops += is_irregular(&m, at);
    }
  }
  return VYRE_OK;
}

/* --- the choice -------------------------------------------------------------*/

static uint32_t registers_of(uint32_t lanes) {
  return lanes >= 16 ? 32 : 16;
}

/* Whether what lives fits the registers. */
static bool fits(const vyre__width_facts *f, uint32_t width, uint32_t lanes) {
  uint64_t room = (uint64_t)registers_of(lanes) * lanes * 4;
  return (uint64_t)f->live_bytes * width <= room;
}

/* One element after the other, and nothing else: memory is all that matters. */
static bool is_stream(const vyre__width_facts *f) {
  return f->loops == 0 && !f->has_barrier && f->contiguous == 0 &&
         f->gathers == 0 && f->scatters == 0 && f->atomics == 0 &&
         f->aligned > 0 && f->aligned <= FEW_ACCESSES;
}

/* The largest that ids stay linear with: rows of several dimensions that a vector
 * does not fill are worse than a shorter vector. */
static uint32_t for_size(const uint32_t workgroup[3], uint32_t lanes) {
  uint32_t x = workgroup[0], size = x * workgroup[1] * workgroup[2];
  uint32_t width = MOST_WIDTH;
  if (size == 1) return 1;
  while (width > 4 && width / 2 >= size) width /= 2;
  if (workgroup[1] == 1 && workgroup[2] == 1) return width;
  while (width > lanes && x % width != 0) width /= 2;
  return width;
}

static uint32_t for_facts(const vyre__width_facts *f, uint32_t lanes) {
  if (f->irregular_loops > 0) return 1;
  if (is_stream(f) && fits(f, 4 * lanes, lanes)) return 4 * lanes;
  return fits(f, 2 * lanes, lanes) ? 2 * lanes : lanes;
}

/* One phase; less than what is in *out, if it wants that. */
static vyre_code choose_phase(const vyre__low_kernel *kernel,
                              vyre__low_phase phase, uint32_t lanes,
                              vyre_arena *arena, uint32_t *out,
                              vyre_status *st) {
  vyre__regions regions;
  vyre__shapes shapes;
  vyre__width_facts facts;
  VYRE_TRY(vyre__regions_build(kernel, phase, false, arena, &regions, st));
  VYRE_TRY(vyre__shapes_find(&regions, *out, arena, &shapes, st));
  VYRE_TRY(vyre__width_measure(&regions, &shapes, arena, &facts, st));
  uint32_t width = for_facts(&facts, lanes);
  if (width < *out) *out = width;
  return VYRE_OK;
}

vyre_code vyre__width_choose(const vyre__low_kernel *kernel, uint32_t lanes,
                             vyre_arena *arena, uint32_t *out,
                             vyre_status *st) {
  vyre__arena_mark mark = vyre__arena_here(arena);
  vyre_code code = VYRE_OK;
  *out = for_size(kernel->workgroup, lanes);
  for (uint32_t i = 0; i < kernel->phase_count && *out > 1; i++) {
    code = choose_phase(kernel, kernel->phases[i], lanes, arena, out, st);
    if (code != VYRE_OK) break;
  }
  vyre__arena_rewind(arena, mark);
  return code;
}
