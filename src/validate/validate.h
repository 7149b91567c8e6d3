/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the validator. */
#ifndef VYRE_VALIDATE_VALIDATE_H
#define VYRE_VALIDATE_VALIDATE_H

#include "vyre/diagnostic.h"
#include "vyre/validate.h"

#include "analyze/effects.h"
#include "analyze/ranges.h"
#include "analyze/uniformity.h"
#include "base/attributes.h"
#include "ir/ir.h"

typedef struct vyre__validation {
  const vyre_program *program;
  vyre__effects effects;
  vyre__uniformity uniformity;
  vyre__ranges ranges;
  /* per local: its value if it is set once, otherwise 0; computed only for
   * kernels with grid barriers */
  const vyre__id *definitions;
  vyre__id *suspects; /* unconditional accesses that may be out of bounds */
  size_t suspect_count;
  vyre_diagnostics found;
  bool no_memory;
} vyre__validation;

/* Location of a diagnostic, and an optional note. Node 0 stands for the
 * kernel. */
typedef struct vyre__validation_site {
  vyre__id node;
  vyre__id other;         /* 0: no note */
  const char *other_text; /* "declared here" */
} vyre__validation_site;

/* Adds a diagnostic. @p rule has static storage; texts have up to 511 bytes. */
void vyre__find(vyre__validation *v, const char *rule,
                vyre__validation_site spot, const char *fix, const char *format,
                ...) VYRE__PRINTF(5, 6);

static inline uint32_t vyre__line_of(const vyre__validation *v, vyre__id id) {
  return vyre__source_loc_of(v->program, id).line;
}

/* Checks V100 to V104: barriers, uniform(), grid barriers. */
void vyre__check_barriers(vyre__validation *v);

/* Checks V111 to V114: queue kernels. */
void vyre__check_queue(vyre__validation *v);
/* Checks the further bodies of a queue kernel that is_rich, whose inlined
 * program has the first one only. */
VYRE_NODISCARD vyre_code vyre__check_queue_parts(vyre__validation *v,
                                                 const vyre_program *program,
                                                 vyre_status *st);

#endif
