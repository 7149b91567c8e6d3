/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Decides when optimised code is compiled in the background. The compile takes
 * a processor from launches, so it must not delay those that baseline code
 * finishes sooner. It begins
 *   - when the device is idle: then it costs nothing;
 *   - when the rest of a running launch takes longer than the compile;
 *   - when finished launches have taken so long together that more are likely;
 *   - at last when launches run on without one of these reasons. */
#include "backend/cpu/cpu.h"

enum {
  IDLE_NS = 1000000, /* without a launch: one may follow the compile at once */
  /* Of the compile of baseline code, which is what an estimate is made of. */
  OPTIMISED_TIMES = 4, /* compile of optimised code */
  WORTH_TIMES = 5,     /* rest of a launch that gains by it */
  FINISHED_TIMES = 2,  /* finished launches after which more are likely */
};

bool cpu_optimise_is_due(vyre_pipeline *pipeline, vyre__optimise_wait *wait) {
  cpu_pipeline *own = (cpu_pipeline *)pipeline;
  cpu_device *device = (cpu_device *)pipeline->device;
  uint64_t launches = atomic_load(&device->baseline_launches);
  bool is_running = atomic_load(&device->baseline_running) > 0;
  if (is_running || launches != wait->launches || wait->last_ns == 0) {
    if (is_running && wait->last_ns > 0) {
      wait->busy_ns += wait->now_ns - wait->last_ns;
    }
    wait->begin_ns = wait->now_ns; /* of the time without a launch */
  }
  wait->launches = launches;
  wait->last_ns = wait->now_ns;
  if (wait->now_ns - wait->begin_ns >= IDLE_NS) return true;
  if (atomic_load(&own->baseline_rest_ns) > WORTH_TIMES * wait->compile_ns ||
      atomic_load(&own->baseline_ns) > FINISHED_TIMES * wait->compile_ns) {
    return true;
  }
  return wait->busy_ns > (WORTH_TIMES + OPTIMISED_TIMES) * wait->compile_ns;
}

void cpu_optimise_begins(vyre_device *device) {
  vyre__pool_reserve(((cpu_device *)device)->pool);
}

void cpu_optimise_ends(vyre_device *device) {
  vyre__pool_unreserve(((cpu_device *)device)->pool);
}
