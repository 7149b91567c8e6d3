/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* List of all areas, in the order of the report. */
#include "cts/cases/random_programs.h"

static const cts_area *const areas[] = {&area_forms,    &area_buffers,
                                        &area_resident, &area_ops,
                                        &area_casts,    &area_ids,
                                        &area_atomics,  &area_elements,
                                        &area_control,  &area_geometric_loops,
                                        &area_barriers, &area_memory,
                                        &area_shapes,   &area_options,
                                        &area_errors,   &area_fences,
                                        &area_threads,  &area_faults,
                                        &area_bits,     &area_recordings,
                                        &area_cache};

const cts_suite cts_all = {areas, sizeof areas / sizeof *areas,
                           cts_run_program};
