/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/builder.h
 *  Programs from functions: the same programs as the text form's.
 *
 *      vyre_builder *b;
 *      vyre_builder_create((vyre_allocator){0}, "twice", &b, &st);
 *      vyre_build_buffer_ref y = vyre_build_buffer(
 *          b, "y", VYRE_ACCESS_READ_WRITE, VYRE_ELEMENT_F32, 0, 0);
 *      vyre_value i = vyre_build_id(b, VYRE_OP_GLOBAL_ID, 0);
 *      vyre_value twice =
 *          vyre_build_binary(b, VYRE_OP_MUL, vyre_build_load(b, y, i),
 *                            vyre_build_f32(b, 2));
 *      vyre_build_store(b, y, i, twice);
 *      vyre_program *program;
 *      if (vyre_builder_build(b, &program, &st) != VYRE_OK) ... st.fix ...
 *      vyre_builder_release(b);
 *
 *  The first mistake is kept, with a Fix; every later call does nothing and
 *  gives an empty handle, so that only vyre_builder_build needs a check. Handles
 *  know their builder: one of another builder, or one that is used where it has
 *  no meaning, is a mistake like any other and never a crash.
 *
 *  A value is an expression, as in the text: it is computed where it is used,
 *  in the statement that takes it. So a value is used once; to use one several
 *  times, or to compute it now, give it a name with vyre_build_let, and get it
 *  with vyre_build_get as often as you like. Literals, ids, len(), item and
 *  what vyre_build_get gives may be used any number of times.
 *
 *  Threads: a builder is compatible (one thread at a time). */
#ifndef VYRE_BUILDER_H
#define VYRE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/ops.h"
#include "vyre/program.h"
#include "vyre/status.h"

typedef struct vyre_builder vyre_builder;

/** Handles. Plain values; a zeroed one is empty. */
typedef struct vyre_value {
  uint32_t id, builder;
} vyre_value;
typedef struct vyre_variable {
  uint32_t id, builder;
} vyre_variable;
typedef struct vyre_build_buffer_ref {
  uint32_t id, builder;
} vyre_build_buffer_ref;
typedef struct vyre_build_function_ref {
  uint32_t id, builder;
} vyre_build_function_ref;

/** One parameter of vyre_build_function. The name is for people and may be
 *  NULL. */
typedef struct vyre_parameter {
  const char *name;
  vyre_type type;
} vyre_parameter;

/** One argument of vyre_build_print: the text, or if that is NULL the value. */
typedef struct vyre_print_part {
  const char *text;
  vyre_value value;
} vyre_print_part;

VYRE_BEGIN

/** Begins a kernel called @p name: workgroup 1 x 1 x 1, no buffers.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_builder_release). On
 *             failure *out is NULL.
 *  Lifetime:  all strings given to a builder are copied.
 *  Threads:   safe.          Blocks: on the allocator only.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code vyre_builder_create(vyre_allocator allocator,
                                                      const char *name,
                                                      vyre_builder **out,
                                                      vyre_status *st);

/** Frees a builder; programs it gave live on. NULL is fine.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_builder_release(vyre_builder *builder);

/** The first mistake, or a zeroed status. The builder's, until it is released.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API const vyre_status *vyre_builder_status(const vyre_builder *builder);

/** Ends the kernel and gives the program. The builder can only be released then.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Threads:   compatible.    Blocks: on the allocator only.
 *  Errors:    the first mistake: VYRE_INVALID_PROGRAM, also for a block that is
 *             still open, or an atomic that was never used;
 *             VYRE_INVALID_ARGUMENT if it was finished before or for a NULL;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_builder_build(vyre_builder *builder,
                                                     vyre_program **out,
                                                     vyre_status *st);

/** The kernel's head. In all functions below: Ownership: nothing changes hands.
 *  Threads: compatible.  Blocks: on the allocator only.  Errors: as the first
 *  mistake, at vyre_builder_build. */
VYRE_API void vyre_builder_workgroup(vyre_builder *builder, uint32_t x,
                                     uint32_t y, uint32_t z);
VYRE_API void vyre_builder_over(vyre_builder *builder,
                                vyre_build_buffer_ref buffer);
/** Makes it a queue kernel whose items have that type. */
VYRE_API void vyre_builder_queue(vyre_builder *builder, vyre_type item);

/** Declares a buffer. _declare takes everything, the others the usual. */
VYRE_API vyre_build_buffer_ref vyre_build_declare(vyre_builder *builder,
                                                  const vyre_buffer_decl *decl);
VYRE_API vyre_build_buffer_ref
vyre_build_buffer(vyre_builder *builder, const char *name, vyre_access access,
                  vyre_element element, uint32_t count, uint32_t binding);
VYRE_API vyre_build_buffer_ref vyre_build_uniform(vyre_builder *builder,
                                                  const char *name,
                                                  vyre_element element,
                                                  uint32_t count,
                                                  uint32_t binding);
VYRE_API vyre_build_buffer_ref vyre_build_shared(vyre_builder *builder,
                                                 const char *name,
                                                 vyre_element element,
                                                 uint32_t count);

/** Begins a function; vyre_build_end ends it. All functions come before the
 *  first value or statement of the kernel. @p variables gets one for each of
 *  @p count @p parameters. */
VYRE_API vyre_build_function_ref vyre_build_function(
    vyre_builder *builder, const char *name, vyre_type result,
    const vyre_parameter *parameters, size_t count, vyre_variable *variables);

/** Values. */
VYRE_API vyre_value vyre_build_bool(vyre_builder *builder, bool value);
VYRE_API vyre_value vyre_build_u32(vyre_builder *builder, uint32_t value);
VYRE_API vyre_value vyre_build_i32(vyre_builder *builder, int32_t value);
VYRE_API vyre_value vyre_build_u64(vyre_builder *builder, uint64_t value);
VYRE_API vyre_value vyre_build_i64(vyre_builder *builder, int64_t value);
VYRE_API vyre_value vyre_build_f32(vyre_builder *builder, float value);
VYRE_API vyre_value vyre_build_f64(vyre_builder *builder, double value);
VYRE_API vyre_value vyre_build_get(vyre_builder *builder,
                                   vyre_variable variable);
VYRE_API vyre_value vyre_build_load(vyre_builder *builder,
                                    vyre_build_buffer_ref buffer,
                                    vyre_value index);
/** Element 0: the value of a uniform that is one. */
VYRE_API vyre_value vyre_build_scalar(vyre_builder *builder,
                                      vyre_build_buffer_ref buffer);
VYRE_API vyre_value vyre_build_len(vyre_builder *builder,
                                   vyre_build_buffer_ref buffer);
/** An operation of VYRE_OP_ID_MAP; axis 0, 1, 2 is x, y, z. */
VYRE_API vyre_value vyre_build_id(vyre_builder *builder, vyre_op op,
                                  unsigned axis);
VYRE_API vyre_value vyre_build_item(vyre_builder *builder);
VYRE_API vyre_value vyre_build_unary(vyre_builder *builder, vyre_op op,
                                     vyre_value a);
VYRE_API vyre_value vyre_build_binary(vyre_builder *builder, vyre_op op,
                                      vyre_value a, vyre_value b);
VYRE_API vyre_value vyre_build_ternary(vyre_builder *builder, vyre_op op,
                                       vyre_value a, vyre_value b,
                                       vyre_value c);
VYRE_API vyre_value vyre_build_cast(vyre_builder *builder, vyre_type type,
                                    vyre_value a);
VYRE_API vyre_value vyre_build_bitcast(vyre_builder *builder, vyre_type type,
                                       vyre_value a);
VYRE_API vyre_value vyre_build_call(vyre_builder *builder,
                                    vyre_build_function_ref function,
                                    const vyre_value *values, size_t count);
VYRE_API vyre_value vyre_build_atomic(vyre_builder *builder, vyre_op op,
                                      vyre_build_buffer_ref buffer,
                                      vyre_value index, vyre_value value);
VYRE_API vyre_value vyre_build_compare_exchange(vyre_builder *builder,
                                                vyre_build_buffer_ref buffer,
                                                vyre_value index,
                                                vyre_value expected,
                                                vyre_value desired);
VYRE_API vyre_value vyre_build_push(vyre_builder *builder, vyre_value value);

/** The type of a value; VYRE_TYPE_VOID for an empty handle. */
VYRE_API vyre_type vyre_build_type(const vyre_builder *builder,
                                   vyre_value value);

/** Statements. @p name is for people and may be NULL. */
VYRE_API vyre_variable vyre_build_let(vyre_builder *builder, const char *name,
                                      vyre_value value);
VYRE_API vyre_variable vyre_build_var(vyre_builder *builder, const char *name,
                                      vyre_value value);
VYRE_API void vyre_build_assign(vyre_builder *builder, vyre_variable variable,
                                vyre_value value);
VYRE_API void vyre_build_store(vyre_builder *builder,
                               vyre_build_buffer_ref buffer, vyre_value index,
                               vyre_value value);
/** An atomic or push whose value nobody wants. */
VYRE_API void vyre_build_eval(vyre_builder *builder, vyre_value value);
VYRE_API void vyre_build_print(vyre_builder *builder,
                               const vyre_print_part *parts, size_t count);
VYRE_API void vyre_build_barrier(vyre_builder *builder);
VYRE_API void vyre_build_grid_barrier(vyre_builder *builder);
VYRE_API void vyre_build_break(vyre_builder *builder);
VYRE_API void vyre_build_continue(vyre_builder *builder);
/** Leaves the kernel; _return_value leaves a function. */
VYRE_API void vyre_build_return(vyre_builder *builder);
VYRE_API void vyre_build_return_value(vyre_builder *builder, vyre_value value);

/** Statements with a body: what follows is in it, until vyre_build_end. */
VYRE_API void vyre_build_if(vyre_builder *builder, vyre_value condition);
VYRE_API void vyre_build_else(vyre_builder *builder);
VYRE_API void vyre_build_while(vyre_builder *builder, vyre_value condition);
/** Counts from @p first while the variable is @p op (VYRE_OP_LT, _LE: up; _GT,
 *  _GE: down) @p bound, by @p step, a constant above 0. */
VYRE_API vyre_variable vyre_build_for(vyre_builder *builder, const char *name,
                                      vyre_value first, vyre_op op,
                                      vyre_value bound, vyre_value step);
VYRE_API void vyre_build_block(vyre_builder *builder);
VYRE_API void vyre_build_end(vyre_builder *builder);

VYRE_END

#endif
