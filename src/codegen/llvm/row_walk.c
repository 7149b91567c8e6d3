/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits loads of lanes that walk along rows (spmd/passes/row_walk.c).
 *
 * A load has a block on the stack: a vector for each of the next elements of
 * the rows, and the offset of the first one. If the offset of an iteration is
 * in the block, its vector is loaded. If not, the block is filled from here on;
 * near the end of the buffer, the load is a gather. */
#include "codegen/llvm/internal.h"

enum {
  MASK = LL_I32 | LL_VEC,
  CHUNK = 4, /* elements of 32 bits in 128 bits */
};

static uint32_t block_length(const ll *e) {
  uint32_t lanes = e->options->lanes ? e->options->lanes : 8;
  return e->width < lanes ? e->width : lanes;
}

void ll_open_walks(ll *e, const vyre__sched_node *loop, ll_walks *walks) {
  *walks = (ll_walks){.up = e->walks, .loop = loop->begin};
  e->walks = walks;
  for (uint32_t at = loop->begin; at < loop->end; at++) {
    if (ll_note_of(e, at)->walk != loop->begin) continue;
    if (walks->count == LL_MAX_WALKS) break;
    ll_walk *walk = &walks->of[walks->count++];
    walk->at = at;
    walk->first = ll_alloca(e, LL_I64, 1, 8);
    walk->block = ll_array(e, MASK, block_length(e), NULL, 0);
    ll_do(e, "store i64 -1, ptr %v", LL_PTR, walk->first);
  }
}

void ll_close_walks(ll *e) {
  e->walks = e->walks->up;
}

static const ll_walk *walk_of(const ll *e, uint32_t at) {
  for (uint32_t i = 0; e->walks && i < e->walks->count; i++) {
    if (e->walks->of[i].at == at) return &e->walks->of[i];
  }
  return NULL;
}

/* Emits the sum of the terms that lanes share, as i64. */
static ll_op shared_offset(ll *e, const vyre__walk *parts) {
  ll_op sum = ll_const(0);
  for (uint32_t i = 0; i < parts->count; i++) {
    ll_op part = ll_scalar(e, parts->parts[i]);
    sum = ll_def(e, "%s i32 %v, %v", parts->is_negative[i] ? "sub" : "add",
                 LL_I32, sum, LL_I32, part);
  }
  return ll_def(e, "zext i32 %v to i64", LL_I32, sum);
}

static bool has_scalars(ll *e, const vyre__walk *parts) {
  for (uint32_t i = 0; i < parts->count; i++) {
    if (!ll_is_scalar(e, parts->parts[i])) return false;
  }
  return true;
}

/* Returns an i1: a block from here is inside the buffer for every lane, active
 * or not. */
static ll_op fits_block(ll *e, uint32_t buffer, ll_op indices) {
  uint32_t length = block_length(e);
  ll_op count = ll_name("n", buffer);
  ll_op last = ll_def(e, "sub i32 %v, %u", LL_I32, count, length);
  ll_op is_in = ll_def(e, "icmp ule %o, %v", MASK, indices, MASK,
                       ll_splat(e, LL_I32, last));
  ll_op all = ll_all(e, ll_widen(e, is_in));
  ll_op has = ll_def(e, "icmp uge i32 %v, %u", LL_I32, count, length);
  return ll_def(e, "and i1 %v, %v", LL_I1, all, LL_I1, has);
}

bool ll_load_walk(ll *e, vyre__val v, ll_op active,
                  ll_op (*otherwise)(ll *e, vyre__val v, ll_op active),
                  ll_op *out) {
  const ll_walk *walk = walk_of(e, v);
  const vyre__lir_inst *inst = ll_inst(e, v);
  vyre__walk parts;
  if (!walk || e->jam || !vyre__walk_find(e->s, v, e->walks->loop, &parts) ||
      !has_scalars(e, &parts)) {
    return false;
  }
  uint32_t hit = ll_label(e), miss = ll_label(e), fill = ll_label(e),
           some = ll_label(e), end = ll_label(e), from = ll_label(e);
  bool checks = inst->b && ll_known_of(e, inst->b) != LL_TRUE;
  if (checks) (void)ll_vector(e, inst->b);
  ll_op indices = ll_vector(e, inst->a), offset = shared_offset(e, &parts);
  ll_op got = ll_alloca(e, MASK, 1, 64), length = ll_const(block_length(e));
  ll_op first = ll_def(e, "load i64, ptr %v", LL_PTR, walk->first);
  ll_op slot = ll_def(e, "sub i64 %v, %v", LL_I64, offset, LL_I64, first);
  ll_op is_hit = ll_def(e, "icmp ult i64 %v, %v", LL_I64, slot, LL_I64, length);
  ll_op starts = ll_def(e, "icmp sge i64 %v, 0", LL_I64, first);
  is_hit = ll_def(e, "and i1 %v, %v", LL_I1, is_hit, LL_I1, starts);
  ll_place(e, from);
  ll_branch_likely(e, is_hit, hit, miss);
  ll_place(e, miss);
  ll_branch_likely(e, fits_block(e, inst->aux, indices), fill, some);
  ll_place(e, fill);
  e->loads_rows = true;
  ll_do(e, "call void @load_rows(ptr %v, ptr %v, ptr %v)", LL_PTR,
        ll_base(e, inst->aux), LL_PTR, ll_spill(e, LL_I32, indices), LL_PTR,
        walk->block);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, offset, LL_PTR, walk->first);
  ll_place(e, hit);
  slot = ll_def(e, "phi i64 [%v, %b], [0, %b]", LL_I64, slot, from, fill);
  ll_op at = ll_def(e, "getelementptr inbounds %t, ptr %v, i64 %v", MASK,
                    LL_PTR, walk->block, LL_I64, slot);
  ll_op op = ll_def(e, "load %t, ptr %v", MASK, LL_PTR, at);
  if (checks && !ll_is_bounds_check(e, v, inst->b)) {
    op = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_vector(e, inst->b),
                MASK, op, MASK, ll_const(0));
  }
  ll_do(e, "store %o, ptr %v", MASK, op, LL_PTR, got);
  ll_br(e, end);
  ll_place(e, some);
  ll_do(e, "store %o, ptr %v", MASK, otherwise(e, v, active), LL_PTR, got);
  ll_place(e, end);
  *out = ll_def(e, "load %t, ptr %v", MASK, LL_PTR, got);
  return true;
}

/* --- the function -----------------------------------------------------------*/

/* Vectors of the block while it is transposed: %r<stage>_<number>. */
typedef struct block {
  uint32_t length; /* vectors, and elements of each */
  unsigned stage;
} block;

/* Emits vector @p to of the next stage: element i is element @p pick(i) of
 * vectors @p a and @p b of this stage, one after the other. */
static void shuffle(ll *e, const block *of, uint32_t to, uint32_t a, uint32_t b,
                    uint32_t (*pick)(uint32_t i, uint32_t half,
                                     uint32_t length),
                    uint32_t half) {
  uint32_t n = of->length;
  ll_print(e,
           " %%r%u_%u = shufflevector <%u x i32> %%r%u_%u, <%u x i32> "
           "%%r%u_%u, <%u x i32> <",
           of->stage + 1, to, n, of->stage, a, n, of->stage, b, n);
  for (uint32_t i = 0; i < n; i++) {
    ll_print(e, "%si32 %u", i ? ", " : "", pick(i, half, n));
  }
  ll_print(e, ">\n");
}

/* Element by element from both vectors: lower, or upper, half of each chunk. */
static uint32_t single(uint32_t i, uint32_t half, uint32_t length) {
  uint32_t in = i % CHUNK;
  return i - in + 2 * half + in / 2 + in % 2 * length;
}

/* Pairs of elements from both vectors. */
static uint32_t pair(uint32_t i, uint32_t half, uint32_t length) {
  uint32_t in = i % CHUNK;
  return i - in + 2 * half + in % 2 + in / 2 * length;
}

/* Even, or odd, chunks of both vectors. */
static uint32_t chunk(uint32_t i, uint32_t half, uint32_t length) {
  uint32_t source = i / CHUNK * 2 + half, chunks = length / CHUNK;
  return source % chunks * CHUNK + i % CHUNK + source / chunks * length;
}

/* Transposes 4 x 4 elements in every chunk: vector 4 * q + c then has column c
 * of each chunk, rows 4 * q to 4 * q + 3. */
static void transpose_chunks(ll *e, block *of) {
  for (uint32_t q = 0; q < of->length; q += CHUNK) {
    shuffle(e, of, q, q, q + 1, single, 0);
    shuffle(e, of, q + 1, q, q + 1, single, 1);
    shuffle(e, of, q + 2, q + 2, q + 3, single, 0);
    shuffle(e, of, q + 3, q + 2, q + 3, single, 1);
  }
  of->stage++;
  for (uint32_t q = 0; q < of->length; q += CHUNK) {
    shuffle(e, of, q, q, q + 2, pair, 0);
    shuffle(e, of, q + 1, q, q + 2, pair, 1);
    shuffle(e, of, q + 2, q + 1, q + 3, pair, 0);
    shuffle(e, of, q + 3, q + 1, q + 3, pair, 1);
  }
  of->stage++;
}

/* Transposes the chunks of the vectors c, 4 + c, 8 + c .. in log2 steps. Each
 * moves the lowest bit of the number of a chunk to the highest bit of the number
 * of its vector, and the lowest bit of that to the highest of the former. */
static void transpose_vectors(ll *e, block *of) {
  uint32_t count = of->length / CHUNK;
  for (uint32_t step = 1; step < count; step *= 2) {
    for (uint32_t c = 0; c < CHUNK; c++) {
      for (uint32_t q = 0; q < count / 2; q++) {
        shuffle(e, of, CHUNK * q + c, CHUNK * 2 * q + c,
                CHUNK * (2 * q + 1) + c, chunk, 0);
        shuffle(e, of, CHUNK * (q + count / 2) + c, CHUNK * 2 * q + c,
                CHUNK * (2 * q + 1) + c, chunk, 1);
      }
    }
    of->stage++;
  }
}

static void load_block(ll *e, uint32_t length) {
  for (uint32_t r = 0; r < length; r++) {
    ll_print(e,
             " %%g%u = add i32 %%g, %u\n"
             " %%a%u = getelementptr inbounds i32, ptr %%at, i32 %%g%u\n"
             " %%i%u = load i32, ptr %%a%u\n"
             " %%w%u = zext i32 %%i%u to i64\n"
             " %%p%u = getelementptr inbounds i32, ptr %%base, i64 %%w%u\n"
             " %%r0_%u = load <%u x i32>, ptr %%p%u, align 1\n",
             r, r, r, r, r, r, r, r, r, r, r, length, r);
  }
}

static void store_block(ll *e, const block *of) {
  for (uint32_t v = 0; v < of->length; v++) {
    ll_print(e,
             " %%s%u = getelementptr inbounds i32, ptr %%row, i32 %u\n"
             " store <%u x i32> %%r%u_%u, ptr %%s%u, align 16\n",
             v, v * e->width, of->length, of->stage, v, v);
  }
}

void ll_row_function(ll *e) {
  if (!e->loads_rows) return;
  block of = {.length = block_length(e)};
  ll_print(e,
           "define internal void @load_rows(ptr %%base, ptr %%at, ptr %%to) "
           "noinline nounwind {\n"
           "start:\n"
           " br label %%head\n"
           "head:\n"
           " %%g = phi i32 [0, %%start], [%%next, %%head]\n");
  load_block(e, of.length);
  transpose_chunks(e, &of);
  transpose_vectors(e, &of);
  ll_print(e, " %%row = getelementptr inbounds i32, ptr %%to, i32 %%g\n");
  store_block(e, &of);
  ll_print(e,
           " %%next = add i32 %%g, %u\n"
           " %%more = icmp ult i32 %%next, %u\n"
           " br i1 %%more, label %%head, label %%end\n"
           "end:\n ret void\n}\n",
           of.length, e->width);
}
