/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CTS_CASES_RANDOM_PROGRAMS_H
#define VYRE_CTS_CASES_RANDOM_PROGRAMS_H

#include "cts/harness/cts.h"

/* Runs a random program and compares its outputs with the reference device
 * (cts_suite.program). */
void cts_run_program(cts *c, const char *words);

#endif
