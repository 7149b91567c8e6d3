/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Faults planted in generated programs, so that tests can check that a
 * checker finds them. */
#ifndef VYRE_GENERATE_GENERATE_H
#define VYRE_GENERATE_GENERATE_H

#include "vyre/random_program.h"

typedef enum vyre__generate_fault {
  VYRE__FAULT_NONE,
  VYRE__FAULT_OWNERSHIP, /* two invocations write one element */
  VYRE__FAULT_BARRIER,   /* a barrier between two owners is missing */
  VYRE__FAULT_ORDER,     /* atomics on one element that do not commute */
} vyre__generate_fault;

/* Like vyre_random_program_create, with a fault. */
vyre_code vyre__generate(const vyre_random_program_options *options,
                         vyre__generate_fault fault, vyre_allocator allocator,
                         vyre_random_program **out, vyre_status *st);

#endif
