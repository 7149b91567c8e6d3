/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All there is, in the order in which it is told. */
#include "cts.h"

static const cts_area *const areas[] = {&area_forms};

const cts_suite cts_all = {areas, sizeof areas / sizeof *areas, NULL};
