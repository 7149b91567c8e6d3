/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits accesses to the fields of structures (spmd/passes/interleave.c): one load of all
 * elements from the first lane's to the last lane's, and stores of interleaved
 * vectors. With other fields in between, stores have a constant mask. */
#include "codegen/llvm/internal.h"

enum { MAX_FIELDS = 8 };

/* The accesses of a group. */
typedef struct fields {
  uint32_t
      at[MAX_FIELDS]; /* access of each field from the lowest on; 0: none */
  uint32_t count;     /* from the lowest field to the highest */
  uint32_t first, last, stride;
  uint32_t lowest; /* the lowest field */
} fields;

static const vyre__lir_buffer *buffer_of(const ll *e, uint32_t at) {
  return &e->kernel->buffers[ll_inst(e, at)->aux];
}

static bool is_certain(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  vyre__val check = inst->op == VYRE__LIR_STORE ? inst->c : inst->b;
  return !check || ll_known_of(e, check) == LL_TRUE;
}

/* Finds the group of access @p at. Returns false if it has none, or if its
 * accesses do not happen in all lanes. */
static bool find_fields(ll *e, uint32_t at, fields *out) {
  uint32_t first = ll_note_of(e, at)->together;
  if (!first || !e->range || e->range->range != VYRE__RANGE_FULL || e->jam ||
      e->is_speculated || !ll_is_all_on(e)) {
    return false;
  }
  *out = (fields){.first = first, .lowest = vyre__field_of(e->s, first)};
  out->last = ll_note_of(e, first)->together_last;
  out->stride = (uint32_t)ll_shape(e, ll_inst(e, first)->a).stride;
  for (uint32_t i = first; i <= out->last; i++) {
    if (ll_note_of(e, i)->together != first) continue;
    if (!is_certain(e, i)) return false;
    uint32_t field = vyre__field_of(e->s, i);
    if ((int32_t)(field - out->lowest) < 0) out->lowest = field;
  }
  for (uint32_t i = first; i <= out->last; i++) {
    if (ll_note_of(e, i)->together != first) continue;
    uint32_t field = vyre__field_of(e->s, i) - out->lowest;
    out->at[field] = i;
    if (field >= out->count) out->count = field + 1;
  }
  return true;
}

/* Returns the address of the lowest field in lane 0, computed from the index of
 * access @p at. */
static ll_op address_of(ll *e, const fields *f, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  uint32_t by = vyre__field_of(e->s, at) - f->lowest;
  ll_op index = ll_scalar(e, inst->a);
  if (by) index = ll_def(e, "sub i32 %v, %u", LL_I32, index, by);
  return ll_address(e, inst->aux, index);
}

bool ll_load_together(ll *e, vyre__val v, ll_op *out) {
  fields f;
  if (!find_fields(e, v, &f)) return false;
  unsigned type = ll_memory_type(buffer_of(e, v)->width);
  uint32_t span = (e->width - 1) * f.stride + f.count;
  ll_op *all = &e->spans[f.first - e->s->r.begin];
  if (v == f.first) {
    *all = ll_def(e, "load <%u x %t>, ptr %v, align 1", span, type, LL_PTR,
                  address_of(e, &f, v));
  }
  uint32_t field = vyre__field_of(e->s, v) - f.lowest;
  *out = (ll_op){.kind = LL_TEMP, .id = e->temps++};
  ll_print(e,
           " %v = shufflevector <%u x %t> %v, <%u x %t> poison, <%u x i32> <",
           type, *out, span, type, type, *all, span, type, e->width);
  for (uint32_t i = 0; i < e->width; i++) {
    ll_print(e, "%si32 %u", i ? ", " : "", i * f.stride + field);
  }
  ll_print(e, ">\n");
  return true;
}

/* Emits elements @p from to from + width - 1 of the interleaved fields: field
 * after field is put into the vector. *complete: all elements have a field. */
static ll_op interleave(ll *e, const fields *f, unsigned type, uint32_t from,
                        bool *complete) {
  ll_op sum = {0};
  *complete = true;
  for (uint32_t field = 0; field < f->stride; field++) {
    if (field >= f->count || !f->at[field]) {
      *complete = false;
      continue;
    }
    ll_op value = e->spans[f->at[field] - e->s->r.begin];
    ll_op next = {.kind = LL_TEMP, .id = e->temps++};
    bool starts = sum.kind == LL_NONE;
    ll_print(e, " %v = shufflevector %o, %o, <%u x i32> <", type, next, type,
             starts ? value : sum, type, value, e->width);
    for (uint32_t i = 0; i < e->width; i++) {
      uint32_t element = from + i, lane = element / f->stride;
      bool is_own = element % f->stride == field;
      uint32_t pick = is_own ? (starts ? 0 : e->width) + lane : starts ? 0 : i;
      ll_print(e, "%si32 %u", i ? ", " : "", pick);
    }
    ll_print(e, ">\n");
    sum = next;
  }
  return sum;
}

static void store_masked(ll *e, const fields *f, unsigned type, uint32_t from,
                         ll_op value, ll_op at) {
  ll_print(e, " call void @llvm.masked.store.v%ui%u.p0(%o, ptr %v, i32 1, ",
           e->width, 8 * ll_bytes(type), type | LL_VEC, value, LL_PTR, at);
  ll_print(e, "<%u x i1> <", e->width);
  for (uint32_t i = 0; i < e->width; i++) {
    uint32_t field = (from + i) % f->stride;
    bool is_on = field < f->count && f->at[field];
    ll_print(e, "%si1 %s", i ? ", " : "", is_on ? "true" : "false");
  }
  ll_print(e, ">)\n");
}

bool ll_store_together(ll *e, uint32_t at, ll_op value) {
  fields f;
  if (!find_fields(e, at, &f)) return false;
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  e->spans[at - e->s->r.begin] = value;
  if (at != f.last) return true;
  ll_op base = address_of(e, &f, at);
  for (uint32_t from = 0; from < f.stride * e->width; from += e->width) {
    bool complete;
    ll_op part = interleave(e, &f, type | LL_VEC, from, &complete);
    ll_op to = ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %u", type,
                      LL_PTR, base, from);
    if (complete) {
      ll_do(e, "store %o, ptr %v, align 1", type | LL_VEC, part, LL_PTR, to);
    } else {
      store_masked(e, &f, type, from, part, to);
    }
  }
  return true;
}
