/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CTS_CASES_RANDOM_PROGRAMS_H
#define VYRE_CTS_CASES_RANDOM_PROGRAMS_H

#include "cts/harness/cts.h"

/* cts_suite.program: the program gives the same bytes as on ref. */
void cts_run_program(cts *c, const char *words);

#endif
