/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Accesses whose lanes lie at known distances (spmd/shape/lane_offsets.h): all
 * elements that they span are loaded, and a shuffle takes those of the lanes.
 * In shared memory, which one thread owns, stores put lanes into what was
 * loaded, and store it back. */
#include "codegen/llvm/internal.h"
#include "spmd/shape/lane_offsets.h"

enum { MASK = LL_I32 | LL_VEC };

typedef struct pattern {
  vyre__lane_offsets offsets;
  int32_t first;  /* of the span, relative to the base */
  uint32_t count; /* elements of the span */
  unsigned type;  /* of an element */
  unsigned align;
  ll_op at; /* address of the span */
} pattern;

static const vyre__lir_buffer *buffer_of(const ll *e, uint32_t at) {
  return &e->kernel->buffers[ll_inst(e, at)->aux];
}

/* Finds the offsets of an index that is linear here, with a constant distance
 * of lanes. */
static bool find_linear(ll *e, vyre__val index, vyre__lane_offsets *out) {
  const ll_rep *rep = ll_value(e, index);
  if (rep->form != LL_LINEAR || e->width > VYRE__MAX_LANES) return false;
  for (uint32_t i = 0; i < e->width; i++) {
    out->lane[i] = i * (uint32_t)rep->stride;
  }
  out->aligned = 0;
  if (rep->s.kind != LL_CONST) return true;
  while (out->aligned < 31 && !(rep->s.bits >> out->aligned & 1)) {
    out->aligned++;
  }
  return true;
}

/* Finds the span of an access whose index is in range in all active lanes.
 *
 * In shared memory, the span begins and ends at multiples of the width, so that
 * accesses of neighbours share it. Shared arrays are padded by two vectors on
 * each side: with one lane inside, a span of two vectors stays in the
 * padding. */
static bool find_pattern(ll *e, uint32_t at, bool is_masked, bool is_store,
                         pattern *p) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  const vyre__lir_buffer *buffer = buffer_of(e, at);
  bool is_shared = buffer->kind == VYRE_MEMORY_SHARED;
  vyre__val check = is_store ? inst->c : inst->b;
  uint32_t most = (is_masked ? 2 : 4) * e->width;
  vyre__lane_span span;
  if (e->width == 1 || e->jam || buffer->unit != buffer->width) return false;
  if ((check && ll_known_of(e, check) != LL_TRUE) || e->is_speculated) {
    return false;
  }
  if (buffer->width < 4 || (!is_shared && (is_masked || is_store))) {
    return false;
  }
  if ((!vyre__lane_offsets_find(e->kernel, &e->s->shapes, inst->a,
                                &p->offsets) &&
       !find_linear(e, inst->a, &p->offsets)) ||
      !vyre__lane_span_find(&p->offsets, e->width, most, &span) ||
      (is_store && !span.is_single)) {
    return false;
  }
  p->first = span.first;
  p->count = span.count;
  if (is_shared) {
    int32_t grain = (int32_t)e->width;
    while (p->offsets.aligned < 31 && grain > 1 << p->offsets.aligned) {
      grain /= 2;
    }
    int32_t down = ((span.first % grain) + grain) % grain;
    p->first = span.first - down;
    p->count = (span.count + (uint32_t)down + e->width - 1) / e->width;
    p->count *= e->width;
    if (p->count > most) return false;
  }
  p->type = ll_memory_type(buffer->width);
  p->align = is_shared ? buffer->width : 1;
  return true;
}

/* Emits the address of the span. Lane 0 counts even if it is not active. */
static void place_pattern(ll *e, uint32_t at, pattern *p) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  const ll_rep *rep = ll_value(e, inst->a);
  bool is_shared = buffer_of(e, at)->kind == VYRE_MEMORY_SHARED;
  ll_op index = rep->s;
  if (rep->form == LL_VECTOR) {
    ll_op all = ll_vector(e, inst->a);
    index = all.kind == LL_CONST
                ? all
                : ll_def(e, "extractelement %o, i32 0", MASK, all);
  }
  uint32_t by = (uint32_t)p->first - p->offsets.lane[0];
  if (index.kind == LL_CONST) {
    index = ll_const((uint32_t)(index.bits + by));
    if (is_shared) index.bits = (uint64_t)(int64_t)(int32_t)index.bits;
  } else {
    if (by) index = ll_def(e, "add i32 %v, %u", LL_I32, index, by);
    index = ll_def(e, is_shared ? "sext i32 %v to i64" : "zext i32 %v to i64",
                   LL_I32, index);
  }
  p->at = ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v", p->type,
                 LL_PTR, ll_base(e, inst->aux), LL_I64, index);
}

static ll_op load_span(ll *e, const pattern *p) {
  return ll_def(e, "load <%u x %t>, ptr %v, align %u", p->count, p->type,
                LL_PTR, p->at, p->align);
}

static uint32_t element_of(const pattern *p, uint32_t lane) {
  return p->offsets.lane[lane] - (uint32_t)p->first;
}

/* Takes the lanes from the elements of the span. */
static ll_op take_lanes(ll *e, const pattern *p, ll_op all) {
  ll_op op = {.kind = LL_TEMP, .id = e->temps++};
  ll_print(e,
           " %v = shufflevector <%u x %t> %v, <%u x %t> poison, <%u x i32> <",
           p->type, op, p->count, p->type, p->type, all, p->count, p->type,
           e->width);
  for (uint32_t k = 0; k < e->width; k++) {
    ll_print(e, "%si32 %u", k ? ", " : "", element_of(p, k));
  }
  ll_print(e, ">\n");
  return op;
}

/* Prints the numbers of a shuffle that puts lanes into the span: that of the
 * lane at each element plus @p lanes, or that of the element itself. */
static void print_places(ll *e, const pattern *p, bool from_lanes) {
  for (uint32_t i = 0; i < p->count; i++) {
    uint32_t lane = 0;
    while (lane < e->width && element_of(p, lane) != i) lane++;
    ll_print(e, "%si32 ", i ? ", " : "");
    if (from_lanes && lane == e->width) {
      ll_print(e, "poison");
    } else {
      ll_print(e, "%u", from_lanes ? lane : lane < e->width ? p->count + i : i);
    }
  }
  ll_print(e, ">\n");
}

/* Puts the lanes into the elements of the span. */
static ll_op put_lanes(ll *e, const pattern *p, ll_op all, ll_op value) {
  ll_op apart = {.kind = LL_TEMP, .id = e->temps++};
  ll_print(e, " %v = shufflevector %o, %t poison, <%u x i32> <", p->type, apart,
           p->type | LL_VEC, value, p->type | LL_VEC, p->count);
  print_places(e, p, true);
  ll_op op = {.kind = LL_TEMP, .id = e->temps++};
  ll_print(e, " %v = shufflevector <%u x %t> %v, <%u x %t> %v, <%u x i32> <",
           p->type, op, p->count, p->type, p->type, all, p->count, p->type,
           p->type, apart, p->count);
  print_places(e, p, false);
  return op;
}

bool ll_load_pattern(ll *e, vyre__val v, ll_op active, ll_op *out) {
  pattern p;
  if (!find_pattern(e, v, active.kind != LL_NONE, false, &p)) return false;
  place_pattern(e, v, &p);
  *out = take_lanes(e, &p, load_span(e, &p));
  return true;
}

bool ll_store_pattern(ll *e, uint32_t at, ll_op value, ll_op active) {
  pattern p;
  if (!find_pattern(e, at, active.kind != LL_NONE, true, &p)) return false;
  place_pattern(e, at, &p);
  ll_op all = load_span(e, &p);
  if (active.kind != LL_NONE) {
    unsigned type = p.type | LL_VEC;
    ll_op bits = ll_def(e, "icmp slt %o, zeroinitializer", MASK, active);
    value = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, bits, type, value,
                   type, take_lanes(e, &p, all));
  }
  all = put_lanes(e, &p, all, value);
  ll_do(e, "store <%u x %t> %v, ptr %v, align %u", p.count, p.type, p.type, all,
        LL_PTR, p.at, p.align);
  return true;
}
