/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the validator share. */
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
  const vyre__id *definitions; /* per local: its value if set once, else 0; with
                                  grid barriers only */
  vyre__id *suspects;          /* accesses that could be outside in any case */
  size_t suspect_count;
  vyre_diagnostics found;
  bool no_memory;
} vyre__validation;

/* Where a finding is, and what a second place says. Node 0 is the kernel. */
typedef struct vyre__validation_site {
  vyre__id node;
  vyre__id other;         /* 0: no second place */
  const char *other_text; /* "declared here" */
} vyre__validation_site;

/* Adds a finding. @p rule has static storage; texts up to 511 bytes. */
void vyre__find(vyre__validation *v, const char *rule,
                vyre__validation_site spot, const char *fix, const char *format,
                ...) VYRE__PRINTF(5, 6);

static inline uint32_t vyre__line_of(const vyre__validation *v, vyre__id id) {
  return vyre__source_loc_of(v->program, id).line;
}

/* V100 to V104: barriers, uniform(), grid barriers. */
void vyre__check_barriers(vyre__validation *v);

#endif
