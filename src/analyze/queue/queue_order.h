/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Proof that the order in which the items of a window run decides nothing. */
#ifndef VYRE_ANALYZE_QUEUE_ORDER_H
#define VYRE_ANALYZE_QUEUE_ORDER_H

#include "vyre/status.h"

#include "ir/ir.h"

/* Reason why the order of the items may matter. */
typedef enum vyre__order_doubt {
  VYRE__ORDER_PROVEN,
  VYRE__ORDER_STORE,       /* items of a window may store to one element */
  VYRE__ORDER_READ,        /* a load of what other items of the window write */
  VYRE__ORDER_RESULT,      /* the result of an atomic is used */
  VYRE__ORDER_EXCHANGE,    /* an exchange of values that may differ */
  VYRE__ORDER_MIXED,       /* atomics of several kinds on one buffer */
  VYRE__ORDER_STORE_ATOMIC /* stores and atomics on one buffer */
} vyre__order_doubt;

typedef struct vyre__queue_order {
  vyre__order_doubt doubt;
  uint32_t buffer;        /* that the doubt is about */
  vyre__source_loc place; /* of the access */
  vyre__source_loc other; /* of a second access; line 0: none */
} vyre__queue_order;

/* Proves that all outputs and all windows of a queue kernel are the same in any
 * order of the items of a window, or finds the first access against it. Stores
 * must go to elements that belong to the item, atomics on a buffer must be of
 * one commutative kind with unused results, and nothing may read what other
 * items of the window write.
 * Errors: those of vyre__inline. */
VYRE_NODISCARD vyre_code vyre__queue_order_prove(const vyre_program *program,
                                                 vyre_allocator allocator,
                                                 vyre__queue_order *out,
                                                 vyre_status *st);

#endif
