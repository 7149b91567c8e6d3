/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Collecting findings; printing them is public. */
#ifndef VYRE_DIAG_DIAGNOSTICS_H
#define VYRE_DIAG_DIAGNOSTICS_H

#include "vyre/diagnostic.h"
#include "vyre/status.h"

enum { VYRE__MAX_FINDINGS = 20 };

/* Keeps a copy of @p finding in the order of places, or counts it as dropped if
 * there are 20 before it; a second one of the same rule at the same place is
 * ignored. False without memory. */
bool vyre__diagnostics_add(vyre_diagnostics *diagnostics,
                           const vyre_diagnostic *finding);

/* Whether a finding at that place would be kept: else nobody needs its text. */
bool vyre__diagnostics_wants(const vyre_diagnostics *diagnostics, uint32_t line,
                             uint32_t column);

/* The first finding as a status; VYRE_INVALID_PROGRAM. */
vyre_code vyre__diagnostics_fail(const vyre_diagnostics *diagnostics,
                                 const char *file, vyre_status *st);

#endif
