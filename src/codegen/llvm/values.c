/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values: a scalar if lanes agree, the scalar of lane 0 if they differ by a
 * stride, otherwise a vector. */
#include "codegen/llvm/internal.h"

unsigned ll_type_of(const ll *e, vyre__val v) {
  return ll_type(ll_inst(e, v)->type);
}

void ll_leave(ll *e, uint32_t mark) {
  while (e->undo_count > mark) {
    vyre__val v = e->undo[--e->undo_count];
    if (e->jam) {
      ll_forget_rows(e, v);
      continue;
    }
    ll_rep *rep = &e->reps[v - e->s->r.begin];
    rep->v = (ll_op){0};
    if (rep->is_derived) rep->form = LL_ABSENT;
  }
}

static void note_undo(ll *e, vyre__val v) {
  e->undo[e->undo_count++] = v;
}

void ll_give(ll *e, vyre__val v, uint8_t form, ll_op op) {
  ll_rep *rep = &e->reps[v - e->s->r.begin];
  *rep = (ll_rep){.form = form, .stamp = e->stamp};
  if (form == LL_VECTOR) {
    rep->v = op;
  } else {
    rep->s = op;
    if (form == LL_LINEAR) rep->stride = ll_shape(e, v).stride;
  }
}

/* --- where values come from --------------------------------------------------------*/

static bool is_leaf(uint8_t op) {
  return op == VYRE__LIR_CONST ||
         (op >= VYRE__LIR_LOCAL_ID && op <= VYRE__LIR_FUEL);
}

static void give_leaf(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned type = ll_type_of(e, v);
  ll_op op;
  switch (inst->op) {
    case VYRE__LIR_CONST:
      ll_give(e, v, LL_SCALAR, ll_const(vyre__lir_const(inst)));
      return;
    case VYRE__LIR_LOCAL_ID:
      if (e->kernel->workgroup[inst->aux] == 1) {
        ll_give(e, v, LL_SCALAR, ll_const(0));
        return;
      }
      ll_give(e, v, e->local_form[inst->aux], e->local[inst->aux]);
      e->reps[v - e->s->r.begin].stride = 1;
      return;
    case VYRE__LIR_GROUP_ID:
      op = e->group[inst->aux];
      break;
    case VYRE__LIR_GRID_SIZE:
      op = ll_name("g", inst->aux);
      break;
    case VYRE__LIR_LEN:
      if (e->kernel->buffers[inst->aux].kind == VYRE_MEMORY_SHARED) {
        op = ll_const(e->kernel->buffers[inst->aux].count);
      } else {
        op = ll_name("n", inst->aux);
      }
      break;
    case VYRE__LIR_LOOP_VALUE:
      op = ll_def(e, "getelementptr i64, ptr %%lv, i64 %u", inst->aux);
      op = ll_def(e, "load i64, ptr %v", LL_PTR, op);
      if (inst->c) op = ll_def(e, "lshr i64 %v, 32", LL_I64, op);
      if (type == LL_I32) op = ll_def(e, "trunc i64 %v to i32", LL_I64, op);
      break;
    default: /* FUEL */
      op = ll_name("fuel", UINT32_MAX);
      if (type == LL_I64) op = ll_def(e, "zext i32 %v to i64", LL_I32, op);
  }
  ll_give(e, v, LL_SCALAR, op);
}

ll_op ll_element(ll *e, ll_op array, unsigned type) {
  return ll_def(e, "getelementptr inbounds %t, ptr %v, i32 %v", type, LL_PTR,
                array, LL_I32, e->vector_index);
}

static uint8_t form_of(const ll *e, vyre__val v) {
  if (e->width == 1 || e->subregion == 0) return LL_SCALAR;
  switch (ll_shape(e, v).kind) {
    case VYRE__LANE_SHAPE_LINEAR:
      return LL_LINEAR;
    case VYRE__LANE_SHAPE_VARYING:
      return LL_VECTOR;
    default:
      return LL_SCALAR;
  }
}

/* Returns the storage of a value: one per workgroup, or one element per
 * vector. */
static ll_op storage_of(ll *e, vyre__val v, unsigned type, uint64_t count) {
  ll_op *at = &e->kept[v - e->s->r.begin];
  if (at->kind == LL_NONE) *at = ll_array(e, type, count, NULL, 0);
  return *at;
}

static void load_live(ll *e, vyre__val v) {
  unsigned type = ll_type_of(e, v), kept = ll_storage_type(type);
  uint8_t form = form_of(e, v);
  ll_op at;
  if (ll_role(e, v)->storage == VYRE__STORAGE_BROADCAST) {
    form = LL_SCALAR;
    at = storage_of(e, v, kept, 1);
  } else {
    if (form == LL_VECTOR) kept |= LL_VEC, type |= LL_VEC;
    at = ll_element(e, storage_of(e, v, kept, ll_vector_count(e)), kept);
  }
  ll_op op = ll_def(e, "load %t, ptr %v", kept, LL_PTR, at);
  if (kept != type) op = ll_def(e, "trunc %o to %t", kept, op, type);
  ll_give(e, v, form, op);
}

void ll_store_live(ll *e, vyre__val v) {
  uint8_t keep = ll_role(e, v)->storage;
  if (keep != VYRE__STORAGE_BROADCAST && keep < VYRE__STORAGE_ARRAY) return;
  unsigned type = ll_type_of(e, v), kept = ll_storage_type(type);
  ll_op op, at;
  if (keep == VYRE__STORAGE_BROADCAST) {
    op = ll_scalar(e, v);
    at = storage_of(e, v, kept, 1);
  } else {
    /* Stores the representation that load_live reads, which follows the lane
     * shape alone. The value may be a vector here nevertheless: an index of
     * a flattened workgroup is linear, its ids are not. */
    bool is_vector = form_of(e, v) == LL_VECTOR;
    op = is_vector ? ll_vector(e, v) : ll_scalar(e, v);
    if (is_vector) kept |= LL_VEC, type |= LL_VEC;
    at = ll_element(e, storage_of(e, v, kept, ll_vector_count(e)), kept);
  }
  if (kept != type) op = ll_def(e, "zext %o to %t", type, op, kept);
  ll_do(e, "store %o, ptr %v", kept, op, LL_PTR, at);
}

ll_rep *ll_value(ll *e, vyre__val v) {
  ll_rep *rep = &e->reps[v - e->s->r.begin];
  if (rep->form && (rep->stamp == 0 || rep->stamp == e->stamp)) return rep;
  if (is_leaf(ll_inst(e, v)->op)) {
    give_leaf(e, v);
  } else {
    load_live(e, v);
  }
  rep->is_derived = true;
  note_undo(e, v);
  return rep;
}

bool ll_is_scalar(ll *e, vyre__val v) {
  return ll_value(e, v)->form == LL_SCALAR;
}

/* --- forms ---------------------------------------------------------------------------*/

ll_op ll_splat(ll *e, unsigned type, ll_op scalar) {
  if (e->width == 1 || scalar.kind == LL_CONST) return scalar;
  unsigned vector = type | LL_VEC;
  ll_op one =
      ll_def(e, "insertelement %t poison, %o, i64 0", vector, type, scalar);
  return ll_def(e, "shufflevector %o, %t poison, <%u x i32> zeroinitializer",
                vector, one, vector, e->width);
}

/* Returns the value of an active lane. */
static ll_op any_lane(ll *e, unsigned type, ll_op vector, uint64_t stride) {
  if (e->width == 1 || vector.kind == LL_CONST) return vector;
  ll_op lane = ll_const(0);
  if (!ll_is_all_on(e)) {
    lane = ll_def(e, "call i32 @llvm.cttz.i32(i32 %v, i1 false)", LL_I32,
                  ll_lanes(e, e->mask.lanes));
    lane = ll_def(e, "and i32 %v, %u", LL_I32, lane, e->width - 1);
  }
  ll_op op = ll_def(e, "extractelement %o, i32 %v", type | LL_VEC, vector,
                    LL_I32, lane);
  if (!stride || lane.kind == LL_CONST) return op;
  if (type == LL_I64) lane = ll_def(e, "zext i32 %v to i64", LL_I32, lane);
  lane = ll_def(e, "mul %o, %v", type, lane, type, ll_const(stride));
  return ll_def(e, "sub %o, %v", type, op, type, lane);
}

ll_op ll_scalar(ll *e, vyre__val v) {
  ll_rep *rep = ll_value(e, v);
  if (rep->form != LL_VECTOR) return rep->s;
  (void)ll_vector(e, v);
  vyre__lane_shape shape = ll_shape(e, v);
  return any_lane(e, ll_type_of(e, v), rep->v,
                  shape.kind == VYRE__LANE_SHAPE_LINEAR ? shape.stride : 0);
}

/* --- narrow integers ---------------------------------------------------------------------*/

void ll_give_narrow(ll *e, vyre__val v, unsigned bytes, ll_op op) {
  ll_give(e, v, LL_VECTOR, (ll_op){0});
  e->reps[v - e->s->r.begin].n = op;
  e->reps[v - e->s->r.begin].n_bytes = (uint8_t)bytes;
}

static ll_op widen_narrow(ll *e, vyre__val v, ll_rep *rep) {
  rep->v =
      ll_def(e, "%s %o to %t", ll_narrow_of(e, v)->is_signed ? "sext" : "zext",
             ll_memory_type(rep->n_bytes) | LL_VEC, rep->n, LL_I32 | LL_VEC);
  note_undo(e, v);
  return rep->v;
}

ll_op ll_narrow_vector(ll *e, vyre__val v, unsigned bytes) {
  const ll_rep *rep = ll_value(e, v);
  unsigned scalar = ll_memory_type(bytes), type = scalar | LL_VEC;
  if (rep->form == LL_SCALAR) {
    ll_op s = rep->s;
    if (s.kind == LL_CONST) {
      return ll_const(s.bits & ((UINT64_C(1) << (8 * bytes)) - 1));
    }
    return ll_splat(e, scalar, ll_def(e, "trunc %o to %t", LL_I32, s, scalar));
  }
  if (rep->form == LL_LINEAR || rep->n.kind == LL_NONE) {
    return ll_def(e, "trunc %o to %t", LL_I32 | LL_VEC, ll_vector(e, v), type);
  }
  unsigned from = ll_memory_type(rep->n_bytes) | LL_VEC;
  if (from == type) return rep->n;
  return ll_def(e, "%s %o to %t",
                rep->n_bytes > bytes            ? "trunc"
                : ll_narrow_of(e, v)->is_signed ? "sext"
                                                : "zext",
                from, rep->n, type);
}

ll_op ll_vector(ll *e, vyre__val v) {
  ll_rep *rep = ll_value(e, v);
  if (e->width == 1 && rep->form != LL_VECTOR) return rep->s;
  if (rep->v.kind != LL_NONE) return rep->v;
  unsigned type = ll_type_of(e, v);
  if (rep->form == LL_VECTOR) return widen_narrow(e, v, rep);
  ll_op all = ll_splat(e, type, rep->s);
  if (rep->form == LL_LINEAR) {
    unsigned vector = type | LL_VEC;
    ll_op lanes = ll_name("iota", UINT32_MAX);
    if (type == LL_I64) lanes = ll_name("iotaw", UINT32_MAX);
    if (rep->stride != 1) {
      lanes =
          ll_def(e, "mul %o, %v", vector, lanes, vector, ll_const(rep->stride));
    }
    all = ll_def(e, "add %o, %v", vector, all, vector, lanes);
  }
  if (all.kind != LL_CONST) note_undo(e, v);
  rep = &e->reps[v - e->s->r.begin];
  rep->v = all;
  return all;
}

/* --- variables --------------------------------------------------------------------------*/

static unsigned var_type(const ll *e, uint32_t var, bool is_vector) {
  unsigned type = ll_type(e->kernel->vars[var].type);
  bool is_array = e->s->vars[var].is_array;
  if (is_vector) return ll_storage_type(type) | LL_VEC;
  return is_array ? ll_storage_type(type) : type;
}

/* Returns the alloca of the variable, or of its scalar shadow. */
static ll_op var_place(ll *e, uint32_t var, bool is_vector, bool is_shadow) {
  ll_var *own = &e->vars[var];
  bool is_array = e->s->vars[var].is_array;
  unsigned type = var_type(e, var, is_vector);
  ll_op *at = is_shadow ? &own->shadow : &own->at;
  uint64_t count = is_array ? ll_vector_count(e) : 1;
  if (at->kind == LL_NONE) {
    *at = is_array ? ll_array(e, type, count, NULL, 0)
                   : ll_alloca(e, type, 1, 64);
  }
  return is_array ? ll_element(e, *at, type) : *at;
}

void ll_place_var(ll *e, uint32_t var) {
  ll_var *own = &e->vars[var];
  if (own->at.kind != LL_NONE) return;
  unsigned type = var_type(e, var, e->s->vars[var].form == LL_VECTOR);
  own->at = ll_array(e, type, ll_vector_count(e), NULL, 0);
}

static bool is_uniform_var(const ll *e, uint32_t var) {
  return e->s->r.var_storage[var] == VYRE__STORAGE_UNIFORM;
}

ll_op ll_scalar_var(ll *e, uint32_t var) {
  return ll_def(e, "load %t, ptr %v", var_type(e, var, false), LL_PTR,
                var_place(e, var, false, false));
}

void ll_get(ll *e, vyre__val v) {
  uint32_t var = ll_inst(e, v)->aux;
  const vyre__sched_var *own = &e->s->vars[var];
  if (e->vars[var].is_const && !e->subregion) {
    ll_give(e, v, LL_SCALAR, ll_const(e->vars[var].bits));
    return;
  }
  uint8_t form = is_uniform_var(e, var) ? LL_SCALAR : own->form;
  bool from_shadow = own->has_shadow && form_of(e, v) != LL_VECTOR;
  if (from_shadow) form = form_of(e, v);
  unsigned type = ll_type_of(e, v);
  bool is_vector = form == LL_VECTOR;
  unsigned stored = var_type(e, var, is_vector);
  ll_op at = var_place(e, var, is_vector, from_shadow);
  ll_op op = ll_def(e, "load %t, ptr %v", stored, LL_PTR, at);
  if ((stored & LL_NARROW_MASK) != type) {
    op = ll_def(e, "icmp slt %o, %v", stored, op, stored, ll_const(0));
  }
  if (!e->subregion && type == LL_I32) op = ll_opaque(e, op);
  ll_give(e, v, form, op);
  if (form == LL_LINEAR && !from_shadow) {
    e->reps[v - e->s->r.begin].stride = own->stride;
  }
}

static void set_vector(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_type_of(e, inst->a) | LL_VEC;
  unsigned stored = var_type(e, inst->aux, true);
  ll_op op = ll_vector(e, inst->a);
  ll_op place = var_place(e, inst->aux, true, false);
  bool widens = stored != type;
  if (widens) op = ll_def(e, "sext %o to %t", type, op, stored);
  if (!ll_is_all_on(e) && !ll_note_of(e, at)->no_blend) {
    ll_op old = ll_def(e, "load %t, ptr %v", stored, LL_PTR, place);
    if (widens) { /* not as i1: see mask.c */
      op = ll_def(e, "and %o, %v", stored, op, stored, e->mask.lanes);
      old = ll_and_not(e, old, e->mask.lanes);
      op = ll_def(e, "or %o, %v", stored, op, stored, old);
    } else {
      ll_op bits = ll_mask_bits(e);
      op = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, bits, stored, op,
                  stored, old);
    }
  }
  ll_do(e, "store %o, ptr %v", stored, op, LL_PTR, place);
}

static void set_scalar(ll *e, uint32_t at, bool is_shadow) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  unsigned type = ll_type_of(e, inst->a);
  unsigned stored = var_type(e, inst->aux, false);
  ll_op op = ll_scalar(e, inst->a);
  if (is_uniform_var(e, inst->aux)) {
    e->vars[inst->aux].is_const = op.kind == LL_CONST;
    e->vars[inst->aux].bits = op.bits;
  }
  if (stored != type) op = ll_def(e, "sext %o to %t", type, op, stored);
  ll_do(e, "store %o, ptr %v", stored, op, LL_PTR,
        var_place(e, inst->aux, false, is_shadow));
}

void ll_set(ll *e, uint32_t at) {
  const vyre__lir_inst *inst = ll_inst(e, at);
  const vyre__sched_var *own = &e->s->vars[inst->aux];
  if (is_uniform_var(e, inst->aux) || own->form != LL_VECTOR) {
    set_scalar(e, at, false);
    return;
  }
  if (own->has_shadow &&
      ll_shape(e, inst->a).kind != VYRE__LANE_SHAPE_VARYING) {
    set_scalar(e, at, true);
  }
  set_vector(e, at);
}
