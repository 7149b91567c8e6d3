/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Includes the same header in a second file; has a kernel that is too long for
 * a string literal. */
#include <long.h>
#include <saxpy.h>

int other_file(vyre_device *device, vyre_status *st);

int other_file(vyre_device *device, vyre_status *st) {
  float x = 3, y = 4;
  vyre_pipeline *pipeline;
  if (saxpy_run(device, &x, 1, &y, 1, 5.0f, st) != VYRE_OK || y != 19) return 0;
  if (generated_pipeline(device, &pipeline, st) != VYRE_OK) return 0;
  vyre_pipeline_release(pipeline);
  return 1;
}
