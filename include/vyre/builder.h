/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/builder.h
 *  Builder: creates programs by function calls instead of from text.
 *
 *      vyre_builder *b;
 *      vyre_builder_create("twice", (vyre_allocator){0}, &b, &st);
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
 *  A builder keeps its first error. Every later call does nothing and returns
 *  an empty handle, so only vyre_builder_build needs a check. A handle of
 *  another builder, or a handle in a scope where it is not valid, is an error
 *  like any other.
 *
 *  A value is an expression. It is evaluated in the statement that uses it,
 *  and can be used once. To evaluate a value now, or to use it several times,
 *  name it with vyre_build_let and read the variable with vyre_build_get.
 *  Literals, ids, len(), the queue item and results of vyre_build_get can be
 *  used any number of times.
 *
 *  Common to all vyre_build_* functions:
 *  Ownership: nothing changes hands; strings and arrays are copied.
 *  Threads:   a builder is compatible (one thread at a time).
 *  Blocks:    on the allocator only.
 *  Errors:    reported by vyre_builder_build. */
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

/** Program under construction. Threads: compatible. */
typedef struct vyre_builder vyre_builder;

/** Handle of an expression. A zeroed handle is empty. */
typedef struct vyre_value {
  uint32_t id, builder; /* index, and number of the builder */
} vyre_value;

/** Handle of a variable or parameter. A zeroed handle is empty. */
typedef struct vyre_variable {
  uint32_t id, builder; /* index, and number of the builder */
} vyre_variable;

/** Handle of a declared buffer. A zeroed handle is empty. */
typedef struct vyre_build_buffer_ref {
  uint32_t id, builder; /* index, and number of the builder */
} vyre_build_buffer_ref;

/** Handle of a function. A zeroed handle is empty. */
typedef struct vyre_build_function_ref {
  uint32_t id, builder; /* index, and number of the builder */
} vyre_build_function_ref;

/** Parameter of vyre_build_function. */
typedef struct vyre_parameter {
  const char *name; /* shown when the program is printed; may be NULL */
  vyre_type type;   /* type of the argument */
} vyre_parameter;

/** Argument of vyre_build_print. */
typedef struct vyre_print_part {
  const char *text; /* text to print, or NULL to print `value` */
  vyre_value value; /* value to print if `text` is NULL */
} vyre_print_part;

VYRE_BEGIN

/** Creates a builder for a kernel called @p name with a workgroup of 1 x 1 x 1
 *  and no buffers.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_builder_release). On
 *             failure *out is NULL.
 *  Lifetime:  @p name is copied.
 *  Threads:   safe.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code vyre_builder_create(const char *name,
                                                      vyre_allocator allocator,
                                                      vyre_builder **out,
                                                      vyre_status *st);

/** Frees a builder. Programs that it built stay valid. Accepts NULL.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_builder_release(vyre_builder *builder);

/** Returns the first error, or a zeroed status. Owned by the builder.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API const vyre_status *vyre_builder_status(const vyre_builder *builder);

/** Completes the kernel and returns the program. Afterwards the builder can
 *  only be released.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_program_release). On
 *             failure *out is NULL.
 *  Threads:   compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    the first error of the builder; VYRE_INVALID_PROGRAM for a block
 *             that is still open or an atomic operation that was never used;
 *             VYRE_INVALID_ARGUMENT for a NULL argument or a second call;
 *             VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_builder_build(vyre_builder *builder,
                                                     vyre_program **out,
                                                     vyre_status *st);

/** Sets the number of invocations of a workgroup in x, y and z. */
VYRE_API void vyre_builder_workgroup(vyre_builder *builder, uint32_t x,
                                     uint32_t y, uint32_t z);

/** Makes the grid cover @p buffer by default, like over(...) in the language.
 */
VYRE_API void vyre_builder_over(vyre_builder *builder,
                                vyre_build_buffer_ref buffer);

/** Declares a queue kernel with items of type @p item. */
VYRE_API void vyre_builder_queue(vyre_builder *builder, vyre_type item);
/** Declares a queue kernel with all clauses. Call it before the first
 *  statement, and after the buffer that bounds the keys was declared. */
VYRE_API void vyre_builder_queue_clauses(vyre_builder *builder,
                                         const vyre_queue_clauses *clauses);

/** Declares a buffer with all its properties. */
VYRE_API vyre_build_buffer_ref vyre_build_declare(vyre_builder *builder,
                                                  const vyre_buffer_decl *decl);

/** Declares a global buffer. A @p count of 0 means: sized by the memory bound
 *  to it. */
VYRE_API vyre_build_buffer_ref
vyre_build_buffer(vyre_builder *builder, const char *name, vyre_access access,
                  vyre_element element, uint32_t count, uint32_t binding);

/** Declares a uniform buffer. */
VYRE_API vyre_build_buffer_ref vyre_build_uniform(vyre_builder *builder,
                                                  const char *name,
                                                  vyre_element element,
                                                  uint32_t count,
                                                  uint32_t binding);

/** Declares a shared buffer: memory of one workgroup. */
VYRE_API vyre_build_buffer_ref vyre_build_shared(vyre_builder *builder,
                                                 const char *name,
                                                 vyre_element element,
                                                 uint32_t count);

/** Begins a function; vyre_build_end ends it. Functions must come before the
 *  first value or statement of the kernel. @p variables receives one handle
 *  for each of the @p count @p parameters. */
VYRE_API vyre_build_function_ref vyre_build_function(
    vyre_builder *builder, const char *name, vyre_type result,
    const vyre_parameter *parameters, size_t count, vyre_variable *variables);

/** Return literals. */
VYRE_API vyre_value vyre_build_bool(vyre_builder *builder, bool value);
VYRE_API vyre_value vyre_build_u32(vyre_builder *builder, uint32_t value);
VYRE_API vyre_value vyre_build_i32(vyre_builder *builder, int32_t value);
VYRE_API vyre_value vyre_build_u64(vyre_builder *builder, uint64_t value);
VYRE_API vyre_value vyre_build_i64(vyre_builder *builder, int64_t value);
VYRE_API vyre_value vyre_build_f32(vyre_builder *builder, float value);
VYRE_API vyre_value vyre_build_f64(vyre_builder *builder, double value);

/** Returns the current value of a variable. */
VYRE_API vyre_value vyre_build_get(vyre_builder *builder,
                                   vyre_variable variable);

/** Returns element @p index of a buffer. */
VYRE_API vyre_value vyre_build_load(vyre_builder *builder,
                                    vyre_build_buffer_ref buffer,
                                    vyre_value index);

/** Returns element 0 of a buffer: the value of a scalar uniform. */
VYRE_API vyre_value vyre_build_scalar(vyre_builder *builder,
                                      vyre_build_buffer_ref buffer);

/** Returns the number of elements of a buffer as u32. */
VYRE_API vyre_value vyre_build_len(vyre_builder *builder,
                                   vyre_build_buffer_ref buffer);

/** Returns an id: @p op is from VYRE_OP_ID_MAP, and @p axis is 0, 1 or 2 for
 *  x, y or z. */
VYRE_API vyre_value vyre_build_id(vyre_builder *builder, vyre_op op,
                                  unsigned axis);

/** Returns the item that an invocation of a queue kernel processes. */
VYRE_API vyre_value vyre_build_item(vyre_builder *builder);
/** Returns a field of the item; 0 is the first. */
VYRE_API vyre_value vyre_build_item_field(vyre_builder *builder,
                                          uint32_t field);
/** Return the number of the window, and the position of the item in it, as
 *  u32. Queues of kind `any` have neither. */
VYRE_API vyre_value vyre_build_window(vyre_builder *builder);
VYRE_API vyre_value vyre_build_item_index(vyre_builder *builder);

/** Return the index of the invocation in its subgroup of 32, and the index of
 *  the subgroup in the workgroup, as u32. */
VYRE_API vyre_value vyre_build_lane(vyre_builder *builder);
VYRE_API vyre_value vyre_build_subgroup_id(vyre_builder *builder);

/** Return the result of an operation from VYRE_OP_UNARY_MAP,
 *  VYRE_OP_BINARY_MAP or VYRE_OP_TERNARY_MAP. */
VYRE_API vyre_value vyre_build_unary(vyre_builder *builder, vyre_op op,
                                     vyre_value a);
VYRE_API vyre_value vyre_build_binary(vyre_builder *builder, vyre_op op,
                                      vyre_value a, vyre_value b);
VYRE_API vyre_value vyre_build_ternary(vyre_builder *builder, vyre_op op,
                                       vyre_value a, vyre_value b,
                                       vyre_value c);

/** Returns @p to with @p count bits from bit @p from on replaced by the low
 *  bits of @p bits: insert(to, bits, from, count). */
VYRE_API vyre_value vyre_build_insert(vyre_builder *builder, vyre_value to,
                                      vyre_value bits, vyre_value from,
                                      vyre_value count);

/** Converts a value to another type. */
VYRE_API vyre_value vyre_build_cast(vyre_builder *builder, vyre_type type,
                                    vyre_value a);

/** Reinterprets the bits of a value as another type of the same width. */
VYRE_API vyre_value vyre_build_bitcast(vyre_builder *builder, vyre_type type,
                                       vyre_value a);

/** Calls a function with @p count arguments. */
VYRE_API vyre_value vyre_build_call(vyre_builder *builder,
                                    vyre_build_function_ref function,
                                    const vyre_value *values, size_t count);

/** Applies an operation from VYRE_OP_ATOMIC_MAP to an element and returns its
 *  old value. VYRE_OP_ATOMIC_OR with a literal 0 is an atomic load;
 *  VYRE_OP_ATOMIC_EXCHANGE whose value is only evaluated (vyre_build_eval) is
 *  an atomic store. */
VYRE_API vyre_value vyre_build_atomic(vyre_builder *builder, vyre_op op,
                                      vyre_build_buffer_ref buffer,
                                      vyre_value index, vyre_value value);

/** Stores @p desired in an element if it equals @p expected. Returns the old
 *  value. Atomic. */
VYRE_API vyre_value vyre_build_compare_exchange(vyre_builder *builder,
                                                vyre_build_buffer_ref buffer,
                                                vyre_value index,
                                                vyre_value expected,
                                                vyre_value desired);

/** Appends an item to the queue of a queue kernel. Returns a bool: true when
 *  the queue had space for it. */
VYRE_API vyre_value vyre_build_push(vyre_builder *builder, vyre_value value);
/** Like vyre_build_push, for an item with several fields. */
VYRE_API vyre_value vyre_build_push_fields(vyre_builder *builder,
                                           const vyre_value *values,
                                           size_t count);

/** Returns the type of a value; VYRE_TYPE_VOID for an empty handle. */
VYRE_API vyre_type vyre_build_type(const vyre_builder *builder,
                                   vyre_value value);

/** Declares a constant (let) or a variable (var) and initialises it. @p name
 *  is shown when the program is printed and may be NULL. */
VYRE_API vyre_variable vyre_build_let(vyre_builder *builder, const char *name,
                                      vyre_value value);
VYRE_API vyre_variable vyre_build_var(vyre_builder *builder, const char *name,
                                      vyre_value value);

/** Assigns a value to a variable. */
VYRE_API void vyre_build_assign(vyre_builder *builder, vyre_variable variable,
                                vyre_value value);

/** Stores a value in element @p index of a buffer. */
VYRE_API void vyre_build_store(vyre_builder *builder,
                               vyre_build_buffer_ref buffer, vyre_value index,
                               vyre_value value);

/** Evaluates an atomic operation or a push and drops its result. */
VYRE_API void vyre_build_eval(vyre_builder *builder, vyre_value value);

/** Prints @p count texts and values, like print(...) in the language. */
VYRE_API void vyre_build_print(vyre_builder *builder,
                               const vyre_print_part *parts, size_t count);

/** Add a workgroup barrier or a grid barrier. */
VYRE_API void vyre_build_barrier(vyre_builder *builder);
VYRE_API void vyre_build_grid_barrier(vyre_builder *builder);

/** Leave the innermost loop or switch, or start the next iteration of the
 *  innermost loop. */
VYRE_API void vyre_build_break(vyre_builder *builder);
VYRE_API void vyre_build_continue(vyre_builder *builder);

/** Ends the invocation. */
VYRE_API void vyre_build_return(vyre_builder *builder);

/** Returns a value from a function. */
VYRE_API void vyre_build_return_value(vyre_builder *builder, vyre_value value);

/** Begin the branches of a conditional. Statements go into the branch until
 *  vyre_build_else or vyre_build_end. */
VYRE_API void vyre_build_if(vyre_builder *builder, vyre_value condition);
VYRE_API void vyre_build_else(vyre_builder *builder);

/** Begins a loop that runs while @p condition is true; vyre_build_end ends it.
 */
VYRE_API void vyre_build_while(vyre_builder *builder, vyre_value condition);

/** Begins a counted loop and returns its variable; vyre_build_end ends it. The
 *  variable starts at @p first and moves by @p step while "variable @p op @p
 *  bound" is true. VYRE_OP_LT and VYRE_OP_LE count up, VYRE_OP_GT and
 *  VYRE_OP_GE count down. The step is a constant above 0. */
VYRE_API vyre_variable vyre_build_for(vyre_builder *builder, const char *name,
                                      vyre_value first, vyre_op op,
                                      vyre_value bound, vyre_value step);

/** Begins a loop whose variable is multiplied, divided or shifted by the
 *  constant @p step while "variable @p compare @p bound" is true; vyre_build_end
 *  ends it. VYRE_OP_MUL and VYRE_OP_SHL count up, VYRE_OP_DIV and VYRE_OP_SHR
 *  down. The loop also ends if the variable is below 1, or if its next value
 *  does not fit the type. */
VYRE_API vyre_variable vyre_build_geometric_for(
    vyre_builder *builder, const char *name, vyre_value first, vyre_op compare,
    vyre_value bound, vyre_op op, vyre_value step);

/** Begins a loop whose condition is evaluated after its body. It ends with
 *  vyre_build_do_while, not vyre_build_end. */
VYRE_API void vyre_build_do(vyre_builder *builder);
VYRE_API void vyre_build_do_while(vyre_builder *builder, vyre_value condition);

/** Begins a switch over an integer; vyre_build_end ends it. Statements go into
 *  an arm: vyre_build_case begins the one for @p count constant labels,
 *  vyre_build_default the one for all other values. An arm ends where the next
 *  one begins; control does not fall through. */
VYRE_API void vyre_build_switch(vyre_builder *builder, vyre_value value);
VYRE_API void vyre_build_case(vyre_builder *builder, const vyre_value *labels,
                              size_t count);
VYRE_API void vyre_build_default(vyre_builder *builder);

/** Begins a block with its own scope; vyre_build_end ends it. */
VYRE_API void vyre_build_block(vyre_builder *builder);

/** Ends the innermost function, conditional, loop, switch or block. */
VYRE_API void vyre_build_end(vyre_builder *builder);

VYRE_END

#endif
