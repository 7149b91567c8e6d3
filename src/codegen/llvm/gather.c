/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Gathers and scatters: accesses of lanes at any distance.
 *
 * Processors take indices of 32 bits, which are signed, and twice as many in an
 * instruction as of 64 bits. Indices are unsigned. In shared memory, which is
 * small, both are the same; elsewhere, 2^31 is subtracted from the index and
 * added to the base. */
#include "codegen/llvm/internal.h"

enum { MASK = LL_I32 | LL_VEC };

static const vyre__lir_buffer *buffer_of(const ll *e, uint32_t at) {
  return &e->kernel->buffers[ll_inst(e, at)->aux];
}

/* The caller's memory has any alignment; shared memory is aligned. */
static unsigned align_of(const ll *e, uint32_t at) {
  const vyre__lir_buffer *b = buffer_of(e, at);
  return b->kind == VYRE_MEMORY_SHARED ? b->width : 1;
}

/* Returns the addresses of elements of a buffer. */
static ll_op addresses(ll *e, uint32_t buffer, ll_op indices) {
  const vyre__lir_buffer *of = &e->kernel->buffers[buffer];
  unsigned type = ll_memory_type(of->width);
  ll_op base = ll_base(e, buffer);
  if (of->kind != VYRE_MEMORY_SHARED) {
    base = ll_def(e, "getelementptr %t, ptr %v, i64 2147483648", type, LL_PTR,
                  base);
    indices = ll_def(e, "xor %o, %v", MASK, indices, MASK,
                     ll_const(UINT64_C(1) << 31));
  }
  ll_op wide = ll_def(e, "sext %o to %t", MASK, indices, LL_I64 | LL_VEC);
  return ll_def(e, "getelementptr %t, ptr %v, %o", type, LL_PTR, base,
                LL_I64 | LL_VEC, wide);
}

static ll_op gather(ll *e, uint32_t at, ll_op indices, ll_op bits) {
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  return ll_def(
      e, "call %t @llvm.masked.gather.v%ui%u.v%up0(%o, i32 %u, %o, %o)",
      type | LL_VEC, e->width, 8 * ll_bytes(type), e->width, LL_PTR | LL_VEC,
      addresses(e, ll_inst(e, at)->aux, indices), align_of(e, at),
      LL_I1 | LL_VEC, bits, type | LL_VEC, ll_const(0));
}

ll_op ll_gather_all(ll *e, uint32_t at, ll_op indices) {
  return gather(e, at, indices, ll_const(1));
}

bool ll_has_masked_gather(const ll *e, uint32_t at) {
  return e->options->lanes == 16 && buffer_of(e, at)->width >= 4;
}

ll_op ll_gather_some(ll *e, uint32_t at, ll_op indices, ll_op active) {
  return gather(e, at, indices,
                ll_def(e, "icmp slt %o, zeroinitializer", MASK, active));
}

static void scatter(ll *e, uint32_t at, ll_op indices, ll_op value,
                    ll_op bits) {
  unsigned type = ll_memory_type(buffer_of(e, at)->width);
  ll_do(e, "call void @llvm.masked.scatter.v%ui%u.v%up0(%o, %o, i32 %u, %o)",
        e->width, 8 * ll_bytes(type), e->width, type | LL_VEC, value,
        LL_PTR | LL_VEC, addresses(e, ll_inst(e, at)->aux, indices),
        align_of(e, at), LL_I1 | LL_VEC, bits);
}

void ll_scatter_all(ll *e, uint32_t at, ll_op indices, ll_op value) {
  scatter(e, at, indices, value, ll_const(1));
}

void ll_scatter_some(ll *e, uint32_t at, ll_op indices, ll_op value,
                     ll_op active) {
  scatter(e, at, indices, value,
          ll_def(e, "icmp slt %o, zeroinitializer", MASK, active));
}
