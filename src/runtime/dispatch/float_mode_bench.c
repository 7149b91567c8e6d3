/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles kernels with other float modes than those of the device, for
 * benchmarks. */
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "hal/device.h"
#include "runtime/compile/pipeline.h"
#include "runtime/probe/probe.h"

const vyre_float_op_info *bench_number(const vyre_device *device,
                                       const char *operation) {
  const vyre_device_caps *caps = vyre_device_get_caps(device);
  for (size_t i = 0; i < caps->float_op_count; i++) {
    if (strcmp(caps->float_ops[i].operation, operation) == 0)
      return &caps->float_ops[i];
  }
  bench_fail(operation, "unknown operation of the probe");
}

vyre_pipeline *bench_compile_as(vyre_device *device, vyre_program *program,
                                const vyre_float_op_info *number, int form) {
  vyre_float_op_info numbers[VYRE__FLOAT_OP_COUNT];
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  memcpy(numbers, device->caps.float_ops, sizeof numbers);
  numbers[number - device->caps.float_ops].mode = (vyre_float_mode)form;
  if (vyre__pipeline_compile_as(device, program, numbers, &pipeline, &st) !=
      VYRE_OK)
    bench_fail(number->operation, st.message);
  return pipeline;
}
