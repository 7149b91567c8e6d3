/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chooses and applies layouts of shared arrays (shared_layout.h).
 *
 * The proof: the index i of an access that happens is below the number of
 * elements. i = a * P + b modulo 2^32, and bounds of a and b show that the
 * exact sum is between -2^31 and 2^31: it is i. With 0 <= b < P, a and b are
 * the quotient and the remainder of i, and the new place is a function of i
 * that maps no two elements to one place. */
#include "spmd/passes/shared_layout.h"

#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "spmd/shape/affine.h"

enum {
  MAX_ACCESSES = 128, /* of one array */
  MAX_ROWS = 8,       /* candidates for P */
  MAX_NESTING = 16,
  MAX_VISITS = 64,
  MAX_BYTES = 24 * 1024, /* of an array that grows */
  MAX_GROWTH = 4,
};

/* Costs of an access by all lanes of a vector, relative to a contiguous one. */
enum { STRIDED = 8, STRIDED_STORE = 12, NEAR = 3, ANYWHERE = 20, FEW = 4 };

/* A layout must be better by this factor. */
#define MARGIN 1.15

typedef struct access {
  vyre__affine_place place;
  double times; /* estimated executions per invocation */
  bool writes;
} access;

typedef struct split {
  vyre__affine a, b; /* index = a * P + b */
} split;

typedef struct layouter {
  const vyre__lir_kernel *kernel;
  vyre_arena *arena;
  vyre_status *st;
  vyre__affine_kernel affine;
  vyre__shared_layout *layouts; /* per buffer */
  vyre__affine **places;        /* per instruction: its new index, or NULL */
  access *accesses;             /* of one array */
  uint32_t count;
  bool too_many;
  /* while accesses are collected */
  struct {
    uint32_t at;  /* IF or LOOP */
    double times; /* before it */
    bool in_else;
  } open[MAX_NESTING];
  uint32_t depth;
  double times;
} layouter;

static const vyre__lir_inst *inst_of(const layouter *l, uint32_t at) {
  return &l->kernel->code[at];
}

static bool is_access(const layouter *l, uint32_t at) {
  uint16_t flags = vyre__lir_ops[inst_of(l, at)->op].flags;
  return inst_of(l, at)->op != VYRE__LIR_OUT_OF_FUEL &&
         flags & (VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS);
}

/* --- accesses of an array ------------------------------------------------- */

static double trips_of(const layouter *l, uint32_t loop) {
  uint64_t most = l->kernel->loops[inst_of(l, loop)->aux].max_trips;
  return most > 64 ? 16 : most ? (double)most : 1;
}

/* Follows the nesting. Blocks below MAX_NESTING are counted only. */
static void follow(layouter *l, uint32_t at) {
  uint8_t op = inst_of(l, at)->op;
  if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) {
    if (l->depth < MAX_NESTING) {
      l->open[l->depth].at = at;
      l->open[l->depth].in_else = false;
      l->open[l->depth].times = l->times;
    }
    if (op == VYRE__LIR_LOOP && l->depth < MAX_NESTING) {
      l->times *= trips_of(l, at);
    }
    l->depth++;
  } else if (op == VYRE__LIR_ELSE && l->depth <= MAX_NESTING) {
    l->open[l->depth - 1].in_else = true;
  } else if (op == VYRE__LIR_END) {
    l->depth--;
    if (l->depth < MAX_NESTING) l->times = l->open[l->depth].times;
  }
}

static void note_access(layouter *l, uint32_t at) {
  if (l->count == MAX_ACCESSES) {
    l->too_many = true;
    return;
  }
  access *a = &l->accesses[l->count++];
  *a = (access){.place = {.at = at},
                .times = l->times,
                .writes = inst_of(l, at)->op != VYRE__LIR_LOAD};
  uint32_t depth = l->depth < MAX_NESTING ? l->depth : MAX_NESTING;
  for (uint32_t i = depth; i-- > 0;) {
    if (inst_of(l, l->open[i].at)->op != VYRE__LIR_IF) continue;
    if (a->place.guard_count == VYRE__AFFINE_GUARDS) break;
    a->place.guards[a->place.guard_count++] =
        (vyre__affine_guard){inst_of(l, l->open[i].at)->a, !l->open[i].in_else};
  }
}

static void collect(layouter *l, uint32_t buffer) {
  l->count = 0;
  l->too_many = false;
  for (uint32_t i = 0; i < l->kernel->phase_count; i++) {
    l->depth = 0;
    l->times = 1;
    for (uint32_t at = l->kernel->phases[i].begin;
         at < l->kernel->phases[i].end; at++) {
      follow(l, at);
      if (is_access(l, at) && inst_of(l, at)->aux == buffer) {
        note_access(l, at);
      }
    }
  }
}

/* --- the proof ------------------------------------------------------------ */

/* Writes the index of an access as a * row + b. Returns false if b is not
 * proven to be in [0, row). */
static bool split_index(layouter *l, const access *from, uint32_t row,
                        split *out) {
  const int64_t max = INT64_C(1) << 31;
  *out = (split){0};
  vyre__affine_add(&l->affine, inst_of(l, from->place.at)->a, 1, row, &out->a,
                   &out->b);
  vyre__bounds b = vyre__affine_bounds(&l->affine, &out->b, &from->place);
  vyre__bounds a = vyre__affine_bounds(&l->affine, &out->a, &from->place);
  if (!vyre__bounds_known(a) || !vyre__bounds_known(b)) return false;
  int64_t rows = b.lo / row - (b.lo % row < 0);
  out->b.constant -= rows * row;
  out->a.constant += rows;
  b.lo -= rows * row;
  b.hi -= rows * row;
  a.lo += rows;
  a.hi += rows;
  return b.lo >= 0 && b.hi < row && a.lo > -max / row && a.hi < max / row - 1;
}

/* Returns the place of the element as a form. */
static vyre__affine place_of(const vyre__shared_layout *layout,
                             const split *s) {
  vyre__affine place = {0};
  int64_t pitch = layout->new_row;
  switch (layout->kind) {
    case VYRE__LAYOUT_TRANSPOSED:
      vyre__affine_add_form(&place, &s->b, pitch);
      vyre__affine_add_form(&place, &s->a, 1);
      break;
    case VYRE__LAYOUT_DIAGONAL:
      vyre__affine_add_form(&place, &s->a, pitch);
      vyre__affine_add_form(&place, &s->b, pitch + 1);
      break;
    case VYRE__LAYOUT_OPPOSITE:
      vyre__affine_add_form(&place, &s->a, pitch);
      vyre__affine_add_form(&place, &s->b, 1 - pitch);
      place.constant += pitch * ((int64_t)layout->row - 1);
      break;
    default:
      vyre__affine_add_form(&place, &s->a, layout->row);
      vyre__affine_add_form(&place, &s->b, 1);
  }
  return place;
}

/* --- the choice ----------------------------------------------------------- */

static double cost_of(layouter *l, const access *a, const vyre__affine *place) {
  bool is_known;
  int64_t slope = vyre__affine_slope(&l->affine, place, &is_known);
  double cost = ANYWHERE;
  if (is_known && (slope == 0 || slope == 1)) {
    cost = 1;
  } else if (is_known && !a->writes && slope >= -FEW && slope <= FEW) {
    cost = NEAR;
  } else if (is_known) {
    cost = a->writes ? STRIDED_STORE : STRIDED;
  }
  return cost * a->times;
}

/* Returns the costs of all accesses with @p layout; 0: it is impossible. */
static double cost_of_layout(layouter *l, const vyre__shared_layout *layout) {
  double cost = 0;
  for (uint32_t i = 0; i < l->count; i++) {
    split s = {0};
    vyre__affine place = {0};
    if (layout->kind == VYRE__LAYOUT_AS_WRITTEN) {
      vyre__affine_add(&l->affine, inst_of(l, l->accesses[i].place.at)->a, 1, 0,
                       NULL, &place);
    } else {
      if (!split_index(l, &l->accesses[i], layout->row, &s)) return 0;
      place = place_of(layout, &s);
      if (place.is_incomplete) return 0;
    }
    cost += cost_of(l, &l->accesses[i], &place);
  }
  return cost;
}

/* Sets the sizes of a layout of an array of @p count elements. Returns false
 * if it would be too large. */
static bool set_size(vyre__shared_layout *layout, uint32_t count,
                     uint32_t width) {
  uint64_t rows = (count - 1) / layout->row + 1, all;
  if (layout->kind == VYRE__LAYOUT_TRANSPOSED) {
    layout->new_row = (uint32_t)rows;
    all = rows * layout->row;
  } else {
    layout->new_row = layout->row;
    all = (rows + layout->row - 1) * layout->row;
  }
  layout->elements = (uint32_t)all;
  return all <= count ||
         (all <= (uint64_t)MAX_GROWTH * count && all * width <= MAX_BYTES);
}

typedef struct candidates {
  uint32_t rows[MAX_ROWS];
  uint32_t count, visits;
  int64_t below; /* elements of the array */
} candidates;

/* Collects the factors of a sum, which may be lengths of rows. */
static void find_rows(layouter *l, vyre__val v, int64_t factor, candidates *c) {
  const vyre__lir_inst *inst = inst_of(l, v);
  int64_t by;
  vyre__val scaled;
  if (++c->visits > MAX_VISITS) return;
  if (inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB) {
    find_rows(l, inst->a, factor, c);
    find_rows(l, inst->b, factor, c);
    return;
  }
  if (!vyre__affine_is_scaled(&l->affine, v, &scaled, &by)) return;
  factor *= by < 0 ? -by : by;
  if (factor < 2 || factor >= c->below) return;
  find_rows(l, scaled, factor, c);
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->rows[i] == factor) return;
  }
  if (c->count < MAX_ROWS) c->rows[c->count++] = (uint32_t)factor;
}

/* Keeps the new indices of all accesses. */
static vyre_code keep_places(layouter *l, const vyre__shared_layout *layout) {
  for (uint32_t i = 0; i < l->count; i++) {
    split s;
    vyre__affine *place = vyre__arena_array(l->arena, 1, sizeof *place);
    if (!place) {
      return vyre__no_memory(l->st, "spmd/shared_layout", "accesses", l->count);
    }
    (void)split_index(l, &l->accesses[i], layout->row, &s);
    *place = place_of(layout, &s);
    l->places[l->accesses[i].place.at] = place;
  }
  return VYRE_OK;
}

static vyre_code choose(layouter *l, uint32_t buffer) {
  const vyre__lir_buffer *b = &l->kernel->buffers[buffer];
  vyre__shared_layout *best = &l->layouts[buffer];
  if (b->kind != VYRE_MEMORY_SHARED || b->unit != b->width || b->count < 4) {
    return VYRE_OK;
  }
  collect(l, buffer);
  if (l->too_many || !l->count) return VYRE_OK;
  candidates c = {.below = b->count};
  double least = cost_of_layout(l, best) / MARGIN;
  for (uint32_t i = 0; i < l->count; i++) {
    c.visits = 0;
    find_rows(l, inst_of(l, l->accesses[i].place.at)->a, 1, &c);
  }
  for (uint32_t i = 0; i < c.count; i++) {
    for (unsigned kind = 1; kind < VYRE__LAYOUTS; kind++) {
      vyre__shared_layout layout = {.kind = (uint8_t)kind, .row = c.rows[i]};
      if (!set_size(&layout, b->count, b->width)) continue;
      double cost = cost_of_layout(l, &layout);
      if (cost == 0 || cost >= least) continue;
      least = cost;
      *best = layout;
    }
  }
  return best->kind ? keep_places(l, best) : VYRE_OK;
}

/* --- the new code --------------------------------------------------------- */

typedef struct rewriter {
  layouter *l;
  vyre__lir_kernel *to;
  vyre__val *now; /* per old instruction: its new number */
} rewriter;

static vyre__val append(rewriter *r, vyre__lir_inst inst, uint32_t old) {
  r->to->code[r->to->count] = inst;
  r->to->source_locs[r->to->count] = r->l->kernel->source_locs[old];
  return r->to->count++;
}

static vyre__val constant(rewriter *r, int64_t value, uint32_t old) {
  return append(r,
                (vyre__lir_inst){.op = VYRE__LIR_CONST,
                                 .type = VYRE_TYPE_U32,
                                 .c = (uint32_t)(uint64_t)value},
                old);
}

static vyre__val binary(rewriter *r, vyre__lir_op op, vyre__val a, vyre__val b,
                        uint32_t old) {
  return append(r,
                (vyre__lir_inst){
                    .op = (uint8_t)op, .type = VYRE_TYPE_U32, .a = a, .b = b},
                old);
}

/* Appends the sum of @p form before the access @p old. */
static vyre__val make_index(rewriter *r, const vyre__affine *form,
                            uint32_t old) {
  vyre__val sum = 0;
  for (uint32_t i = 0; i < form->count; i++) {
    const vyre__affine_term *term = &form->terms[i];
    vyre__val one = r->now[term->leaf];
    if (term->factor != 1) {
      vyre__val factor = constant(r, term->factor, old);
      one = binary(r, VYRE__LIR_MUL, one, factor, old);
    }
    sum = sum ? binary(r, VYRE__LIR_ADD, sum, one, old) : one;
  }
  if (sum && !form->constant) return sum;
  vyre__val last = constant(r, form->constant, old);
  return sum ? binary(r, VYRE__LIR_ADD, sum, last, old) : last;
}

static void rewrite_one(rewriter *r, uint32_t at) {
  layouter *l = r->l;
  vyre__lir_inst inst = *inst_of(l, at);
  vyre__val index = 0;
  if (inst.op == VYRE__LIR_LEN && l->layouts[inst.aux].kind) {
    uint32_t count = l->kernel->buffers[inst.aux].count;
    r->now[at] = constant(r, count, at);
    return;
  }
  if (l->places[at]) index = make_index(r, l->places[at], at);
  for (unsigned i = 0; i < vyre__lir_ops[inst.op].operands; i++) {
    inst.v[i] = r->now[inst.v[i]];
  }
  if (index) inst.a = index;
  r->now[at] = append(r, inst, at);
}

/* Allocates a copy of the kernel with room for @p count instructions. */
static vyre_code make_copy(rewriter *r, size_t count) {
  const vyre__lir_kernel *from = r->l->kernel;
  vyre_arena *arena = r->l->arena;
  vyre__lir_kernel *to = vyre__arena_array(arena, 1, sizeof *to);
  r->now =
      vyre__arena_filled(arena, (size_t)from->count + 1, sizeof *r->now, 0);
  if (!to || !r->now) goto no_memory;
  *to = *from;
  r->to = to;
  to->code = vyre__arena_array(arena, count, sizeof *to->code);
  to->source_locs = vyre__arena_array(arena, count, sizeof *to->source_locs);
  to->loops = vyre__arena_array(arena, from->loop_count, sizeof *to->loops);
  to->phases = vyre__arena_array(arena, from->phase_count, sizeof *to->phases);
  to->steps = vyre__arena_array(arena, from->step_count, sizeof *to->steps);
  to->buffers =
      vyre__arena_array(arena, from->buffer_count, sizeof *to->buffers);
  if (to->code && to->source_locs && to->loops && to->phases && to->steps &&
      to->buffers) {
    to->count = 0;
    return VYRE_OK;
  }
no_memory:
  return vyre__no_memory(r->l->st, "spmd/shared_layout", "instructions", count);
}

/* Copies everything but the code, with the new numbers of instructions. */
static void renumber(const rewriter *r) {
  const vyre__lir_kernel *from = r->l->kernel;
  vyre__lir_kernel *to = r->to;
  for (uint32_t i = 0; i < from->loop_count; i++) {
    to->loops[i] = from->loops[i];
    to->loops[i].first = r->now[from->loops[i].first];
    to->loops[i].bound = r->now[from->loops[i].bound];
    to->loops[i].first_high = r->now[from->loops[i].first_high];
    to->loops[i].bound_high = r->now[from->loops[i].bound_high];
  }
  for (uint32_t i = 0; i < from->step_count; i++) {
    to->steps[i] = from->steps[i];
    to->steps[i].first = r->now[from->steps[i].first];
    to->steps[i].bound = r->now[from->steps[i].bound];
  }
  for (uint32_t i = 0; i < from->buffer_count; i++) {
    to->buffers[i] = from->buffers[i];
    if (r->l->layouts[i].kind) to->buffers[i].count = r->l->layouts[i].elements;
  }
}

static vyre_code rewrite(layouter *l, const vyre__lir_kernel **out) {
  rewriter r = {.l = l};
  const vyre__lir_kernel *from = l->kernel;
  size_t added = 0;
  for (uint32_t at = 1; at < from->count; at++) {
    if (l->places[at]) added += (size_t)3 * l->places[at]->count + 2;
  }
  VYRE_TRY(make_copy(&r, from->count + added));
  uint32_t *begins = /* per old instruction: what was added before it */
      vyre__arena_filled(l->arena, (size_t)from->count + 1, sizeof *begins, 0);
  if (!begins) {
    return vyre__no_memory(l->st, "spmd/shared_layout", "instructions",
                           from->count);
  }
  r.to->code[r.to->count++] = from->code[0];
  for (uint32_t at = 1; at < from->count; at++) {
    begins[at] = r.to->count;
    rewrite_one(&r, at);
  }
  begins[from->count] = r.to->count;
  renumber(&r);
  for (uint32_t i = 0; i < from->phase_count; i++) {
    r.to->phases[i].begin = begins[from->phases[i].begin];
    r.to->phases[i].end = begins[from->phases[i].end];
  }
  r.to->host.begin = begins[from->host.begin];
  r.to->host.end = begins[from->host.end];
  *out = r.to;
  return VYRE_OK;
}

static bool has_shared(const vyre__lir_kernel *kernel) {
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    if (kernel->buffers[i].kind == VYRE_MEMORY_SHARED) return true;
  }
  return false;
}

vyre_code vyre__lay_out_shared(const vyre__lir_kernel *kernel,
                               vyre_arena *arena, const vyre__lir_kernel **out,
                               const vyre__shared_layout **layouts,
                               vyre_status *st) {
  layouter l = {.kernel = kernel, .arena = arena, .st = st};
  bool changes = false;
  *out = kernel;
  *layouts = NULL;
  if (!has_shared(kernel) || kernel->workgroup[0] == 1) return VYRE_OK;
  l.layouts =
      vyre__arena_filled(arena, kernel->buffer_count, sizeof *l.layouts, 0);
  l.places =
      vyre__arena_filled(arena, (size_t)kernel->count + 1, sizeof *l.places, 0);
  l.accesses = vyre__arena_array(arena, MAX_ACCESSES, sizeof *l.accesses);
  if (!l.layouts || !l.places || !l.accesses) {
    return vyre__no_memory(st, "spmd/shared_layout", "instructions",
                           kernel->count);
  }
  VYRE_TRY(vyre__affine_init(&l.affine, kernel, arena, st));
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    VYRE_TRY(choose(&l, i));
    changes |= l.layouts[i].kind != VYRE__LAYOUT_AS_WRITTEN;
  }
  if (!changes) return VYRE_OK;
  *layouts = l.layouts;
  return rewrite(&l, out);
}

/* --- the dump ------------------------------------------------------------- */

bool vyre__layouts_print(const vyre__lir_kernel *kernel,
                         const vyre__shared_layout *layouts,
                         vyre_writer writer) {
  vyre__printer out = vyre__printer_make(writer);
  for (uint32_t i = 0; layouts && i < kernel->buffer_count; i++) {
    const vyre__shared_layout *layout = &layouts[i];
    if (!layout->kind) continue;
    vyre__print(&out, "shared %.100s: element a * %u + b at ",
                kernel->buffers[i].name, layout->row);
    if (layout->kind == VYRE__LAYOUT_TRANSPOSED) {
      vyre__print(&out, "b * %u + a\n", layout->new_row);
    } else if (layout->kind == VYRE__LAYOUT_DIAGONAL) {
      vyre__print(&out, "(a + b) * %u + b\n", layout->new_row);
    } else {
      vyre__print(&out, "(a - b + %u) * %u + b\n", layout->row - 1,
                  layout->new_row);
    }
  }
  return out.ok;
}
