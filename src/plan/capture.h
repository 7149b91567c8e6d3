/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_PLAN_CAPTURE_H
#define VYRE_PLAN_CAPTURE_H

#include "vyre/capture.h"

/* Increments *capacity for the table @p label. A plan in memory has fewer
 * bindings than size_t can count, so this fails in tests only. It stays
 * checked, because the result is used as an allocation size. */
vyre_code vyre__capture_count(size_t *capacity, const char *label,
                              vyre_status *st);

#endif
