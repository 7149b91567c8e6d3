/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The grid of a dispatch: inferred from buffer lengths, or checked if it is
 * given. */
#ifndef VYRE_RUNTIME_DISPATCH_GRID_H
#define VYRE_RUNTIME_DISPATCH_GRID_H

#include "hal/launch.h"

/* Refuses a dispatch without a grid if inference would skip data: an inferred
 * grid has one workgroup on y and z. */
vyre_code vyre__grid_check_given(const vyre_pipeline *pipeline,
                                 const uint32_t grid[3], vyre_status *st);

/* Computes the grid of a dispatch from @p override and from the lengths in @p
 * views, one per buffer of the program. */
vyre_code vyre__grid_infer(const vyre_pipeline *pipeline,
                           const uint32_t override[3], const vyre__view *views,
                           uint32_t out[3], vyre_status *st);

#endif
