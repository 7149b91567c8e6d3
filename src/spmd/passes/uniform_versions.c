/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Uniform versions: code whose indices depend on a number of the workgroup,
 * such as t & (stride - 1) in a sorting network, is emitted once for each small
 * power of two, where the index of each lane is known relative to that of lane
 * 0, once for multiples of the width, where lanes are contiguous, and once for
 * all others:
 *
 *     if (stride == 1) { .. } else if (stride == 2) { .. } ..
 *     else if (stride % width == 0) { .. } else { .. }
 *
 * The workgroup branches, not each vector: a barrier at the end of each version
 * achieves it. In loops that are unrolled, one version remains.
 *
 * A row-major index taken apart by a uniform, x = i % width and y = i / width,
 * has two versions: for multiples of the vector width, where no vector crosses
 * the end of a row, and for others. */
#include "base/memory.h"
#include "base/status.h"
#include "spmd/lir_edit.h"
#include "spmd/schedule.h"

enum {
  MAX_LENGTH = 120, /* instructions of a version */
  MAX_GROWTH = 1200,
  MAX_REGIONS = 8,
  MAX_STRIDE = 4, /* factors of an index that are worth a version */
  MAX_DEPTH = 8,
  NESTED = 8, /* versions of a region, at most */
};

typedef struct versions {
  const vyre__lir_kernel *kernel;
  const vyre__regions *r;
  const vyre__region *region;
  uint32_t width;
  vyre__val key;    /* the number that decides */
  bool is_factor;   /* it only multiplies */
  bool divides;     /* an id is divided by it */
  bool is_straight; /* the region is in no loop, and runs once */
  bool *is_indexed; /* per instruction of the kernel: part of an index */
  vyre__lir_edit e;
  bool is_multiple; /* this version: the key is a multiple of the width */
} versions;

static const vyre__lir_inst *at_of(const versions *p, uint32_t at) {
  return &p->kernel->code[at];
}

static bool is_const(const versions *p, vyre__val v, uint32_t number) {
  const vyre__lir_inst *inst = at_of(p, v);
  return inst->op == VYRE__LIR_CONST && inst->type == VYRE_TYPE_U32 &&
         inst->c == number;
}

static bool is_pure(const versions *p, uint32_t at) {
  return vyre__lir_ops[at_of(p, at)->op].flags & VYRE__LIRF_PURE;
}

/* --- the number that decides ---------------------------------------------*/

/* Marks what indices of accesses in the region are computed from. */
static void mark_indices(versions *p) {
  for (uint32_t at = p->region->end; at-- > p->region->begin;) {
    const vyre__lir_inst *inst = at_of(p, at);
    if (!vyre__inst_info_of(p->r, at)->is_needed) continue;
    if (inst->op == VYRE__LIR_LOAD || inst->op == VYRE__LIR_STORE) {
      p->is_indexed[inst->a] = true;
    }
    if (!p->is_indexed[at] || !is_pure(p, at)) continue;
    for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands; i++) {
      p->is_indexed[inst->v[i]] = true;
    }
  }
}

/* Returns v of v - 1, otherwise @p v itself. */
static vyre__val without_one(const versions *p, vyre__val v) {
  const vyre__lir_inst *inst = at_of(p, v);
  bool is_less =
      (inst->op == VYRE__LIR_SUB && is_const(p, inst->b, 1)) ||
      (inst->op == VYRE__LIR_ADD && is_const(p, inst->b, UINT32_MAX));
  return is_less ? inst->a : v;
}

/* Returns the uniform operand of an operation on an id; 0: none. */
static vyre__val uniform_operand(const versions *p, uint32_t at) {
  const vyre__lir_inst *inst = at_of(p, at);
  bool is_left = vyre__inst_info_of(p->r, inst->a)->is_uniform;
  bool is_right = vyre__inst_info_of(p->r, inst->b)->is_uniform;
  bool divides = inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_REM_U;
  if (is_left == is_right || (divides && is_left)) return 0;
  return is_left ? inst->a : inst->b;
}

/* Returns true if adjacent lanes have adjacent numbers that begin at a multiple
 * of the width: a local or global id. */
static bool is_plain_id(const versions *p, vyre__val v) {
  const vyre__lir_inst *inst = at_of(p, v);
  if (inst->op == VYRE__LIR_ADD) {
    const vyre__lir_inst *a = at_of(p, inst->a), *b = at_of(p, inst->b);
    if (b->op != VYRE__LIR_LOCAL_ID) return false;
    if (a->op == VYRE__LIR_MUL) a = at_of(p, a->a);
    if (a->op == VYRE__LIR_SHL) a = at_of(p, a->a);
    return a->op == VYRE__LIR_GROUP_ID && b->aux == 0;
  }
  return inst->op == VYRE__LIR_LOCAL_ID && inst->aux == 0;
}

/* Finds the key: what a bit operation, or else a product, in an index has as
 * its uniform operand. */
static void find_key(versions *p) {
  p->key = 0;
  for (uint32_t at = p->region->begin; at < p->region->end; at++) {
    const vyre__lir_inst *inst = at_of(p, at);
    bool multiplies = inst->op == VYRE__LIR_MUL;
    bool is_bits = inst->op == VYRE__LIR_AND || inst->op == VYRE__LIR_XOR ||
                   inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_REM_U;
    if (!(multiplies || is_bits) || inst->type != VYRE_TYPE_U32) continue;
    bool divides = inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_REM_U;
    if (!p->is_indexed[at] || (multiplies && p->key)) continue;
    if (p->is_straight && divides && !is_plain_id(p, inst->a)) continue;
    vyre__val v = uniform_operand(p, at);
    if (v) v = without_one(p, v);
    if (!v || at_of(p, v)->op == VYRE__LIR_CONST) continue;
    p->key = v;
    p->is_factor = multiplies;
    p->divides = inst->op == VYRE__LIR_DIV_U || inst->op == VYRE__LIR_REM_U;
    if (is_bits) return;
  }
}

/* Returns true if @p v is an element of a uniform, which nothing changes. */
static bool is_uniform_load(const versions *p, vyre__val v) {
  const vyre__lir_inst *inst = at_of(p, v);
  return inst->op == VYRE__LIR_LOAD && inst->b == 0 &&
         p->kernel->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM;
}

/* Returns true if the key can be computed before the region. */
static bool is_before(const versions *p, vyre__val v, unsigned depth) {
  if (v < p->region->begin) return true;
  if (depth == MAX_DEPTH || !(is_pure(p, v) || is_uniform_load(p, v))) {
    return false;
  }
  for (unsigned i = 0; i < vyre__lir_ops[at_of(p, v)->op].operands; i++) {
    if (!is_before(p, at_of(p, v)->v[i], depth + 1)) return false;
  }
  return true;
}

/* Returns true if no instruction outside the region uses a value of it. */
static bool is_closed(const versions *p) {
  uint32_t begin = p->region->begin, end = p->region->end;
  for (uint32_t at = p->r->begin; at < p->r->end; at++) {
    vyre__val used[4];
    if (at >= begin && at < end) continue;
    uint32_t count = vyre__lir_operands(at_of(p, at), used);
    for (uint32_t i = 0; i < count; i++) {
      if (used[i] >= begin && used[i] < end) return false;
    }
  }
  return true;
}

static bool is_in_loop(const versions *p) {
  uint32_t open = vyre__inst_info_of(p->r, p->region->begin)->parent;
  while (open && at_of(p, open)->op != VYRE__LIR_LOOP) {
    open = vyre__inst_info_of(p->r, open)->parent;
  }
  return open != 0;
}

static bool is_candidate(versions *p) {
  const vyre__region *region = p->region;
  if (region->kind != VYRE__REGION_PARALLEL || region->is_empty) return false;
  if (region->end - region->begin > MAX_LENGTH) return false;
  p->is_straight = !is_in_loop(p);
  mark_indices(p);
  find_key(p);
  if (p->is_straight && p->is_factor) return false;
  return p->key && is_before(p, p->key, 0) && is_closed(p);
}

/* --- versions ------------------------------------------------------------*/

static vyre__val push(versions *p, uint32_t like, vyre__lir_op op,
                      vyre_type type, vyre__val a, vyre__val b) {
  return vyre__edit_push(
      &p->e, like,
      (vyre__lir_inst){
          .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, 0, 0}});
}

static vyre__val number(versions *p, uint32_t like, uint32_t value) {
  return vyre__edit_const(&p->e, like, VYRE_TYPE_U32, value);
}

/* Folds an operation on constants of the copy. Returns 0 if it has others. */
static vyre__val fold(versions *p, uint32_t at) {
  const vyre__lir_inst *inst = at_of(p, at);
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  uint64_t args[3] = {0}, bits;
  vyre_type from = VYRE_TYPE_VOID;
  if (!(info->flags & VYRE__LIRF_PURE) || !info->operands ||
      info->operands > 3 || p->e.no_memory) {
    return 0;
  }
  for (unsigned i = 0; i < info->operands; i++) {
    const vyre__lir_inst *arg = &p->e.to.code[p->e.map[inst->v[i]]];
    bool is_second = i == (inst->op == VYRE__LIR_SELECT);
    if (arg->op != VYRE__LIR_CONST || vyre__is_float(arg->type)) return 0;
    if (is_second) from = (vyre_type)arg->type;
    args[i] = vyre__lir_const(arg);
  }
  if (vyre__is_float(inst->type) ||
      !vyre__lir_eval((vyre__lir_op)inst->op, from, (vyre_type)inst->type, args,
                      &bits)) {
    return 0;
  }
  return vyre__edit_const(&p->e, at, (vyre_type)inst->type, bits);
}

/* Rewrites an operation with a multiple of the width so that its lane shape is
 * found: low bits of the id apart from high ones. Returns 0 for others. */
static vyre__val split_at_width(versions *p, uint32_t at) {
  const vyre__lir_inst *inst = at_of(p, at);
  bool is_and = inst->op == VYRE__LIR_AND;
  bool is_rem = inst->op == VYRE__LIR_REM_U;
  if (!is_and && !is_rem && inst->op != VYRE__LIR_DIV_U) return 0;
  vyre__val other = uniform_operand(p, at);
  if (!other || inst->type != VYRE_TYPE_U32) return 0;
  if (is_and ? other == p->key || without_one(p, other) != p->key
             : other != p->key) {
    return 0;
  }
  vyre__val id = p->e.map[other == inst->a ? inst->b : inst->a];
  vyre__val by = p->e.map[other];
  vyre__val low = number(p, at, p->width - 1);
  vyre__val high = number(p, at, ~(p->width - 1));
  if (is_and) {
    /* The lowest bits of by are ones. */
    by = push(p, at, VYRE__LIR_AND, VYRE_TYPE_U32, by, high);
    high = push(p, at, VYRE__LIR_AND, VYRE_TYPE_U32, id, by);
  } else {
    high = push(p, at, VYRE__LIR_AND, VYRE_TYPE_U32, id, high);
    high = push(p, at, (vyre__lir_op)inst->op, VYRE_TYPE_U32, high, by);
    if (!is_rem) return high;
  }
  low = push(p, at, VYRE__LIR_AND, VYRE_TYPE_U32, id, low);
  return push(p, at, VYRE__LIR_ADD, VYRE_TYPE_U32, high, low);
}

/* Opens a version. */
static void open_version(versions *p, vyre__val condition) {
  vyre__edit_push(
      &p->e, p->region->begin,
      (vyre__lir_inst){
          .op = VYRE__LIR_IF, .hints = VYRE__HINT_VERSION, .a = condition});
}

/* Copies the region with @p key in place of the key. */
static void copy_version(versions *p, vyre__val key, bool again) {
  const vyre__region *region = p->region;
  p->e.map[p->key] = key;
  for (uint32_t at = region->begin; at < region->end; at++) {
    vyre__val made = at == p->key ? key : fold(p, at);
    if (!made && p->is_multiple) made = split_at_width(p, at);
    if (made) {
      p->e.map[at] = made;
    } else {
      vyre__edit_copy(&p->e, at, at + 1, again);
    }
  }
  push(p, region->begin, VYRE__LIR_BARRIER, VYRE_TYPE_VOID, 0, 0);
}

/* Computes the key before the region. */
static vyre__val make_key(versions *p, vyre__val v) {
  if (v < p->region->begin) return p->e.map[v];
  for (unsigned i = 0; i < vyre__lir_ops[at_of(p, v)->op].operands; i++) {
    make_key(p, at_of(p, v)->v[i]);
  }
  vyre__edit_copy(&p->e, v, v + 1, true);
  return p->e.map[v];
}

static void write_versions(versions *p) {
  uint32_t begin = p->region->begin, opened = 0;
  uint32_t most = p->is_factor ? MAX_STRIDE : p->width / 2;
  if (p->is_straight && p->divides) most = 0;
  vyre__edit_copy(&p->e, 1, begin, false);
  vyre__val key = make_key(p, p->key);
  for (uint32_t n = 1; n <= most; n *= 2, opened++) {
    vyre__val own = number(p, begin, n);
    vyre__val is = push(p, begin, VYRE__LIR_EQ, VYRE_TYPE_BOOL, key, own);
    open_version(p, is);
    copy_version(p, own, true);
    push(p, begin, VYRE__LIR_ELSE, VYRE_TYPE_VOID, 0, 0);
  }
  if (!p->is_factor) {
    vyre__val low = number(p, begin, p->width - 1);
    vyre__val zero = number(p, begin, 0);
    low = push(p, begin, VYRE__LIR_AND, VYRE_TYPE_U32, key, low);
    low = push(p, begin, VYRE__LIR_EQ, VYRE_TYPE_BOOL, low, zero);
    open_version(p, low);
    vyre__val high = number(p, begin, ~(p->width - 1));
    p->is_multiple = true;
    copy_version(p, push(p, begin, VYRE__LIR_AND, VYRE_TYPE_U32, key, high),
                 true);
    p->is_multiple = false;
    push(p, begin, VYRE__LIR_ELSE, VYRE_TYPE_VOID, 0, 0);
    opened++;
  }
  copy_version(p, key, false);
  while (opened--) push(p, begin, VYRE__LIR_END, VYRE_TYPE_VOID, 0, 0);
  vyre__edit_reach(&p->e, p->region->end);
  vyre__edit_copy(&p->e, p->region->end, p->kernel->count, false);
}

/* --- barriers --------------------------------------------------------------*/

/* Code before a barrier often computes what only the code after it uses: the
 * indices of its accesses. It moves behind the barrier, so that the region there
 * is complete. */
typedef struct sinking {
  const vyre__lir_kernel *kernel;
  const vyre__regions *r;
  uint32_t *first_use; /* per instruction: the first one that uses it */
  bool *sinks;         /* per instruction: moves behind the next barrier */
} sinking;

static void note_use(sinking *s, vyre__val v, uint32_t at) {
  if (at < s->first_use[v]) s->first_use[v] = at;
}

static void find_uses(sinking *s) {
  for (uint32_t at = 1; at < s->kernel->count; at++) {
    const vyre__lir_inst *inst = &s->kernel->code[at];
    vyre__val used[4];
    uint32_t count = vyre__lir_operands(inst, used);
    for (uint32_t i = 0; i < count; i++) note_use(s, used[i], at);
    if (inst->op != VYRE__LIR_LOOP) continue;
    const vyre__lir_loop *loop = &s->kernel->loops[inst->aux];
    note_use(s, loop->first, at);
    note_use(s, loop->bound, at);
    note_use(s, loop->first_high, at);
    note_use(s, loop->bound_high, at);
  }
  for (uint32_t i = 0; i < s->kernel->step_count; i++) {
    note_use(s, s->kernel->steps[i].first, 0);
    note_use(s, s->kernel->steps[i].bound, 0);
  }
}

/* Finds what moves behind the barrier at @p barrier. Returns true if anything
 * does. */
static bool find_sinking(sinking *s, uint32_t barrier) {
  bool any = false;
  for (uint32_t at = barrier - 1; at >= s->r->begin; at--) {
    const vyre__lir_inst *inst = &s->kernel->code[at];
    const vyre__inst_info *info = vyre__inst_info_of(s->r, at);
    uint16_t flags = vyre__lir_ops[inst->op].flags;
    if (inst->op == VYRE__LIR_BARRIER || flags & VYRE__LIRF_CONTROL) break;
    uint32_t use = s->first_use[at];
    bool is_later = use != UINT32_MAX && (use > barrier || s->sinks[use]);
    if (!(flags & VYRE__LIRF_PURE) || info->is_uniform || !is_later) continue;
    bool all_later = true; /* the first use may sink while others stay */
    for (uint32_t i = use; i < barrier && all_later; i++) {
      vyre__val used[4];
      uint32_t count = vyre__lir_operands(&s->kernel->code[i], used);
      for (uint32_t k = 0; k < count; k++) {
        all_later &= used[k] != at || s->sinks[i];
      }
    }
    s->sinks[at] = all_later;
    any |= all_later;
  }
  return any;
}

static void write_sunk(const sinking *s, vyre__lir_edit *e) {
  uint32_t from = s->r->begin; /* after the last barrier */
  for (uint32_t at = 1; at < s->kernel->count; at++) {
    if (s->sinks[at]) continue;
    vyre__edit_copy(e, at, at + 1, false);
    if (s->kernel->code[at].op != VYRE__LIR_BARRIER) continue;
    for (uint32_t i = from; i < at; i++) {
      if (s->sinks[i]) vyre__edit_copy(e, i, i + 1, false);
    }
    from = at + 1;
  }
}

/* Moves computations of indices behind barriers in a phase. */
static vyre_code sink_indices(const vyre__lir_kernel **kernel, uint32_t phase,
                              vyre_arena *arena, vyre_status *st) {
  vyre__regions r;
  const vyre__lir_kernel *k = *kernel;
  bool any = false;
  VYRE_TRY(vyre__regions_build(k, k->phases[phase], false, arena, &r, st));
  sinking s = {
      .kernel = k,
      .r = &r,
      .first_use = vyre__arena_filled(arena, k->count, sizeof(uint32_t), 0xff),
      .sinks = vyre__arena_filled(arena, k->count, sizeof(bool), 0)};
  if (!s.first_use || !s.sinks) {
    return vyre__no_memory(st, "spmd/uniform_versions", "values", k->count);
  }
  find_uses(&s);
  for (uint32_t at = r.end; at-- > r.begin;) {
    if (k->code[at].op == VYRE__LIR_BARRIER) any |= find_sinking(&s, at);
  }
  if (!any) return VYRE_OK;
  vyre__lir_edit e;
  vyre__edit_begin(&e, k, 0, arena);
  write_sunk(&s, &e);
  *kernel = vyre__edit_end(&e);
  if (*kernel) return VYRE_OK;
  return vyre__no_memory(st, "spmd/uniform_versions", "instructions", k->count);
}

/* --- all regions ---------------------------------------------------------*/

static bool has_exit(const vyre__regions *r) {
  for (uint32_t at = r->begin; at < r->end; at++) {
    if (r->kernel->code[at].op == VYRE__LIR_EXIT &&
        vyre__inst_info_of(r, at)->is_reached) {
      return true;
    }
  }
  return false;
}

/* Writes versions of the last region that deserves them before @p *before. */
static vyre_code version_one(const vyre__lir_kernel **kernel, uint32_t phase,
                             uint32_t width, uint32_t *before,
                             vyre_arena *arena, vyre_status *st) {
  vyre__regions r;
  const vyre__lir_kernel *k = *kernel;
  VYRE_TRY(vyre__regions_build(k, k->phases[phase], false, arena, &r, st));
  uint32_t limit = *before;
  *before = 0;
  if (has_exit(&r)) return VYRE_OK;
  for (uint32_t i = r.region_count; i-- > 1;) {
    versions p = {
        .kernel = k, .r = &r, .region = &r.regions[i], .width = width};
    if (p.region->begin >= limit) continue;
    p.is_indexed = vyre__arena_filled(arena, k->count, sizeof *p.is_indexed, 0);
    if (!p.is_indexed) {
      return vyre__no_memory(st, "spmd/uniform_versions", "values", k->count);
    }
    if (!is_candidate(&p)) continue;
    vyre__edit_begin(&p.e, k, NESTED * (k->loop_count + 1), arena);
    write_versions(&p);
    *kernel = vyre__edit_end(&p.e);
    if (!*kernel) {
      return vyre__no_memory(st, "spmd/uniform_versions", "instructions",
                             k->count);
    }
    *before = p.region->begin;
    return VYRE_OK;
  }
  return VYRE_OK;
}

vyre_code vyre__version_uniforms(const vyre__lir_kernel *kernel, uint32_t width,
                                 vyre_arena *arena,
                                 const vyre__lir_kernel **out,
                                 vyre_status *st) {
  const vyre__lir_kernel *versioned = kernel;
  bool any = false;
  for (uint32_t i = 0; i < kernel->phase_count && width > 1; i++) {
    uint32_t before = UINT32_MAX;
    VYRE_TRY(sink_indices(&versioned, i, arena, st));
    for (unsigned n = 0; n < MAX_REGIONS && before; n++) {
      if (versioned->count > kernel->count + MAX_GROWTH) break;
      VYRE_TRY(version_one(&versioned, i, width, &before, arena, st));
      any |= before != 0;
    }
  }
  *out = any ? versioned : kernel;
  return VYRE_OK;
}
