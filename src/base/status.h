/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Error reporting: one call fills the caller's status and returns the code:
 *
 *     return VYRE_FAIL(st, VYRE_PLAN_REJECTED, VYRE_KIND_ZERO_CAPACITY,
 *                      "set queue_capacity to 1 or more",
 *                      "queue_capacity is 0");
 *
 * A failure with a field name or with numbers for programs to read:
 *
 *     return VYRE_FAIL_WITH(
 *         st, VYRE_PLAN_REJECTED, VYRE_KIND_OVER_BUDGET, NULL,
 *         VYRE_NUMBERS({"required_bytes", need}, {"budget_bytes", have}),
 *         "raise the budget", "the queue needs %llu bytes ...", ...);
 */
#ifndef VYRE_BASE_STATUS_H
#define VYRE_BASE_STATUS_H

#include <string.h>

#include "vyre/status.h"

#include "base/attributes.h"

/* Contents of a failure except its message. */
typedef struct vyre__failure {
  vyre_code code;
  vyre_kind kind;
  const char *field;                 /* static storage, or NULL */
  const vyre_status_number *numbers; /* ends with a NULL name; or NULL */
  const char *fix;                   /* static storage */
  const char *file;
  int line;
} vyre__failure;

/* Up to VYRE_STATUS_MAX_NUMBERS numbers. The remaining entries are zero, which
 * ends the list. */
enum { VYRE__CAUSE_NUMBERS = VYRE_STATUS_MAX_NUMBERS };
#define VYRE_NUMBERS(...) \
  ((const vyre_status_number[VYRE__CAUSE_NUMBERS + 1]){__VA_ARGS__})

/* `"" fix` is a compile-time check: the fix must be a string literal. */
#define VYRE_FAIL_WITH(st, code, kind, field, numbers, fix, ...)         \
  (vyre__fail((st),                                                      \
              &(const vyre__failure){(code), (kind), (field), (numbers), \
                                     "" fix, __FILE__, __LINE__},        \
              __VA_ARGS__),                                              \
   (code))

#define VYRE_FAIL(st, code, kind, fix, ...) \
  VYRE_FAIL_WITH(st, code, kind, NULL, NULL, fix, __VA_ARGS__)

/* Returns the code of @p expression if it is a failure. This macro and those
 * that check arguments (VYRE_BEGIN_OUT, VYRE_REQUIRE, VYRE_REQUIRE_BOTH,
 * VYRE_REQUIRE_ARRAY, VYRE_CHECK_RESERVED) hide a return: use them where
 * nothing has to be freed. */
#define VYRE_TRY(expression)                    \
  do {                                          \
    vyre_code try_code_ = (expression);         \
    if (try_code_ != VYRE_OK) return try_code_; \
  } while (0)

/* Fills @p st unless it already holds a failure. */
void vyre__fail(vyre_status *st, const vyre__failure *failure,
                const char *format, ...) VYRE__PRINTF(3, 4);

/* Resets @p st, so that it shows nothing of an earlier call. Every public
 * function that takes a status calls this first (tests/status_rule.sh). It
 * clears only the fields that make the others unused, because every dispatch
 * pays for it. */
static inline void vyre__status_begin(vyre_status *st) {
  if (!st) return;
  st->code = VYRE_OK;
  st->kind = VYRE_KIND_NONE;
  st->native_code = 0;
  st->number_count = 0;
  st->field = NULL;
  st->file = NULL;
  st->line = 0;
  st->message[0] = '\0';
  st->fix[0] = '\0';
  st->reserved[0] = st->reserved[1] = 0;
}

/* Returns @p st if it holds no failure yet, otherwise NULL. The library
 * passes the result to public functions that it calls, so that the first
 * failure wins. */
static inline vyre_status *vyre__status_open(vyre_status *st) {
  return st && st->code == VYRE_OK ? st : NULL;
}
/* Adds a number, unless one of that name exists, and prepends the text to the
 * message. Does nothing if @p st holds no failure. */
void vyre__status_where(vyre_status *st, const char *name, uint64_t value,
                        const char *format, ...) VYRE__PRINTF(4, 5);

void vyre__fail_null(vyre_status *st, const char *function,
                     const char *argument);
void vyre__fail_reserved(vyre_status *st, const char *function, size_t index,
                         uint64_t value);
void vyre__fail_memory(vyre_status *st, const char *function, const char *field,
                       uint64_t requested);

/* Records that the last allocation of the calling thread failed by fault
 * injection, so that an out-of-memory status can say so. */
void vyre__memory_inject(bool is_hit);
bool vyre__memory_is_injected(void);

/* Fails because pointer argument @p argument is NULL. */
static inline vyre_code vyre__null_argument(vyre_status *st,
                                            const char *function,
                                            const char *argument) {
  vyre__fail_null(st, function, argument);
  return VYRE_INVALID_ARGUMENT;
}

/* Returns from a public function if pointer argument @p argument is NULL. */
#define VYRE_REQUIRE(st, argument) \
  VYRE_TRY((argument) ? VYRE_OK    \
                      : vyre__null_argument((st), __func__, #argument))

#define VYRE_REQUIRE_BOTH(st, first, second) \
  do {                                       \
    VYRE_REQUIRE(st, first);                 \
    VYRE_REQUIRE(st, second);                \
  } while (0)

/* Begins a public function with a result: resets @p st, then returns if @p out
 * is NULL, otherwise clears *out. */
#define VYRE_BEGIN_OUT(st, out)      \
  do {                               \
    vyre__status_begin(st);          \
    VYRE_REQUIRE(st, out);           \
    memset((out), 0, sizeof *(out)); \
  } while (0)

/* Returns from a public function if @p array is NULL, but has elements. */
#define VYRE_REQUIRE_ARRAY(st, array, count) \
  VYRE_TRY((array) || (count) == 0           \
               ? VYRE_OK                     \
               : vyre__null_argument((st), __func__, #array))

/* Fails if one of the @p count reserved words of a descriptor is not zero: the
 * caller then sets a field that this version of the library does not have. */
static inline vyre_code vyre__check_reserved(vyre_status *st,
                                             const char *function,
                                             const uint64_t *words,
                                             size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (words[i]) {
      vyre__fail_reserved(st, function, i, words[i]);
      return VYRE_INVALID_ARGUMENT;
    }
  }
  return VYRE_OK;
}

/* Returns from the calling function if a reserved word of @p object is set. */
#define VYRE_CHECK_RESERVED(st, function, object)                     \
  VYRE_TRY(vyre__check_reserved((st), (function), (object)->reserved, \
                                sizeof(object)->reserved / sizeof(uint64_t)))

/* @p requested entries of @p field could not be had. */
static inline vyre_code vyre__no_memory(vyre_status *st, const char *function,
                                        const char *field, uint64_t requested) {
  vyre__fail_memory(st, function, field, requested);
  return VYRE_OUT_OF_MEMORY;
}

#endif
