/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Collection of diagnostics. Printing them is public API. */
#ifndef VYRE_DIAG_DIAGNOSTICS_H
#define VYRE_DIAG_DIAGNOSTICS_H

#include "vyre/diagnostic.h"
#include "vyre/status.h"

#include "base/source_files.h"

enum { VYRE__MAX_FINDINGS = 20 };

/* Keeps a copy of @p finding, sorted by location. Counts it as dropped if 20
 * others precede it. Ignores a second one of the same rule at the same
 * location. Returns false if memory is exhausted. */
bool vyre__diagnostics_add(vyre_diagnostics *diagnostics,
                           const vyre_diagnostic *finding);

/* Changes line numbers of a program with imports to those of its files. Returns
 * false if memory is exhausted. */
bool vyre__diagnostics_locate(vyre_diagnostics *diagnostics,
                              const vyre__source_files *files);

/* Returns true if a diagnostic at that location would be kept, so that
 * callers can skip building its text. */
bool vyre__diagnostics_wants(const vyre_diagnostics *diagnostics, uint32_t line,
                             uint32_t column);

/* Turns the first diagnostic into a status. Returns VYRE_INVALID_PROGRAM. */
vyre_code vyre__diagnostics_fail(const vyre_diagnostics *diagnostics,
                                 const char *file, vyre_status *st);

#endif
