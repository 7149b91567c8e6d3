/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inlining: dimensions of buffers. The kernel begins with locals for the sizes
 * that are uniforms. If the product of the dimensions of a buffer exceeds its
 * memory, one size of each buffer is 0, so that every access is outside. The
 * runtime refuses such a dispatch; the test keeps accesses inside their memory
 * even if a uniform changes while the kernel runs. Other loads of these
 * uniforms read the locals, too: then tests such as x < width prove accesses.
 * Strides are the loaded values, which passes of code generators recognise. */
#include "analyze/inline/inliner.h"
#include "base/memory.h"

static vyre__id number(inliner *in, uint32_t value) {
  return vyre__ir_build_literal(&in->builder, VYRE_TYPE_U32, value);
}

static vyre__id local(inliner *in, uint32_t index) {
  return vyre__ir_build_local(&in->builder, index);
}

static uint32_t let(inliner *in, const char *name, vyre__id value) {
  return inline_local(in, name, false, value);
}

static bool has_uniform(const vyre_buffer_decl *b) {
  return b->dimension_uniforms != 0;
}

static bool has_product(const vyre_buffer_decl *b) {
  return has_uniform(b) &&
         (b->dimensions[0] != 0 || (b->dimension_uniforms & 1));
}

/* Builds the size of a dimension that is given, from the loaded uniforms. */
static vyre__id given(inliner *in, const uint32_t *loaded,
                      const vyre_buffer_decl *b, unsigned at) {
  const uint32_t size = b->dimensions[at];
  return b->dimension_uniforms >> at & 1 ? local(in, loaded[size])
                                         : number(in, size);
}

static vyre__id both(inliner *in, vyre__id a, vyre__id b) {
  return a ? vyre__ir_build_binary(&in->builder, VYRE__OP_AND, a, b) : b;
}

/* Builds the test that the product of all dimensions is at most the length. */
static vyre__id fits(inliner *in, const uint32_t *loaded, uint32_t buffer) {
  vyre__ir_builder *m = &in->builder;
  const vyre_buffer_decl *b = &in->program->buffers[buffer];
  vyre__id test = 0;
  uint32_t product = let(in, "n", given(in, loaded, b, 0));
  for (unsigned i = 1; i < b->dimension_count; i++) {
    const vyre__id high = vyre__ir_build_binary(
        m, VYRE__OP_MUL_HIGH, local(in, product), given(in, loaded, b, i));
    test = both(in, test,
                vyre__ir_build_binary(m, VYRE__OP_EQ, high, number(in, 0)));
    product = let(in, "n",
                  vyre__ir_build_binary(m, VYRE__OP_MUL, local(in, product),
                                        given(in, loaded, b, i)));
  }
  return both(in, test,
              vyre__ir_build_binary(m, VYRE__OP_LE, local(in, product),
                                    vyre__ir_build_len(m, buffer)));
}

/* Returns true if a uniform is the first of the dimensions of a buffer that are
 * uniforms. */
static bool is_first(const vyre_program *p, uint32_t uniform) {
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    const vyre_buffer_decl *b = &p->buffers[i];
    if (!has_product(b)) continue;
    const unsigned at = (unsigned)__builtin_ctz(b->dimension_uniforms);
    if (b->dimensions[at] == uniform) return true;
  }
  return false;
}

/* Adds a local for each uniform that is a dimension. */
static void make_sizes(inliner *in, uint32_t *loaded) {
  vyre__ir_builder *m = &in->builder;
  const vyre_program *p = in->program;
  vyre__id all = 0;
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    const vyre_buffer_decl *b = &p->buffers[i];
    for (unsigned k = 0; k < b->dimension_count; k++) {
      const uint32_t uniform = b->dimensions[k];
      if (!(b->dimension_uniforms >> k & 1) ||
          loaded[uniform] != VYRE_NO_INDEX) {
        continue;
      }
      loaded[uniform] = let(in, p->buffers[uniform].name,
                            vyre__ir_build_load(m, uniform, number(in, 0)));
      in->sizes[uniform] = loaded[uniform];
    }
  }
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    if (!has_product(&p->buffers[i])) continue;
    all = both(in, all, fits(in, loaded, i));
  }
  if (!all) return;
  const uint32_t good = let(in, "fits", all);
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    if (!is_first(p, i)) continue;
    in->sizes[i] =
        let(in, p->buffers[i].name,
            vyre__ir_build_ternary(m, VYRE__OP_SELECT, local(in, good),
                                   local(in, loaded[i]), number(in, 0)));
  }
}

static vyre__id size_of(inliner *in, const vyre_buffer_decl *b, unsigned at) {
  return given(in, in->sizes, b, at);
}

/* Adds locals for the strides and for a first dimension that is absent. */
static void make_strides(inliner *in, const uint32_t *loaded, uint32_t buffer) {
  vyre__ir_builder *m = &in->builder;
  const vyre_buffer_decl *b = &in->program->buffers[buffer];
  vyre__inline_dimensions *own = &in->dimensions[buffer];
  bool varies = false;
  uint32_t product = 1, known = VYRE_NO_INDEX;
  for (unsigned i = b->dimension_count; i-- > 0;) {
    own->stride[i] = varies ? known : VYRE_NO_INDEX;
    own->factor[i] = varies ? 1 : product;
    if (i == 0) break;
    if (!varies && !(b->dimension_uniforms >> i & 1)) {
      product *= b->dimensions[i];
      continue;
    }
    vyre__id value = given(in, loaded, b, i);
    if (varies) {
      value = vyre__ir_build_binary(m, VYRE__OP_MUL, local(in, known), value);
    } else if (product != 1) {
      value =
          vyre__ir_build_binary(m, VYRE__OP_MUL, value, number(in, product));
    }
    known = let(in, "stride", value);
    varies = true;
  }
  own->rows = VYRE_NO_INDEX;
  if (b->dimension_count == 0 || b->dimensions[0] != 0 ||
      (b->dimension_uniforms & 1)) {
    return;
  }
  vyre__id rows = vyre__ir_build_len(m, buffer);
  for (unsigned i = b->dimension_count; i-- > 1;) {
    rows = vyre__ir_build_binary(m, VYRE__OP_DIV, rows, size_of(in, b, i));
  }
  own->rows = let(in, "rows", rows);
}

bool inline_begin_dimensions(inliner *in) {
  const uint32_t count = (uint32_t)in->program->buffer_count;
  uint32_t *loaded =
      vyre__arena_filled(&in->scratch, count, sizeof *loaded, 0xFF);
  in->sizes = vyre__arena_filled(&in->scratch, count, sizeof *in->sizes, 0xFF);
  in->dimensions =
      vyre__arena_filled(&in->scratch, count, sizeof *in->dimensions, 0xFF);
  if (!loaded || !in->sizes || !in->dimensions) {
    in->no_memory = true;
    return false;
  }
  make_sizes(in, loaded);
  for (uint32_t i = 0; i < count; i++) {
    if (in->program->buffers[i].dimension_count) make_strides(in, loaded, i);
  }
  return true;
}

vyre__id inline_extent(inliner *in, uint32_t buffer, unsigned dimension) {
  const vyre_buffer_decl *b = &in->program->buffers[buffer];
  if (b->dimension_count == 0) return vyre__ir_build_len(&in->builder, buffer);
  const uint32_t rows = in->dimensions[buffer].rows;
  if (dimension == 0 && rows != VYRE_NO_INDEX) return local(in, rows);
  return size_of(in, b, dimension);
}

vyre__id inline_stride(inliner *in, uint32_t buffer, unsigned dimension,
                       uint32_t scalars) {
  const vyre_buffer_decl *b = &in->program->buffers[buffer];
  if (b->dimension_count == 0) return number(in, scalars);
  const vyre__inline_dimensions *own = &in->dimensions[buffer];
  if (own->stride[dimension] == VYRE_NO_INDEX) {
    return number(in, own->factor[dimension] * scalars);
  }
  const vyre__id stride = local(in, own->stride[dimension]);
  if (scalars == 1) return stride;
  return vyre__ir_build_binary(&in->builder, VYRE__OP_MUL, stride,
                               number(in, scalars));
}
