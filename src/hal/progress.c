/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Progress of a launch that other threads can read. */
#include "hal/launch.h"

/* Stores `completed` before `total`: a reader in between sees too little
 * progress, never too much. */
void vyre__progress_begin(const vyre__launch *launch, uint64_t groups) {
  vyre_progress *progress = launch->progress;
  uint64_t total;
  if (!progress) return;
  if (__builtin_mul_overflow(groups, (uint64_t)launch->launch_count, &total))
    total = 0;
  __atomic_store_n(&progress->completed,
                   total ? groups * launch->launch_index : 0, __ATOMIC_RELEASE);
  __atomic_store_n(&progress->total, total, __ATOMIC_RELEASE);
}

void vyre_progress_read(const vyre_progress *progress, uint64_t *done,
                        uint64_t *all) {
  uint64_t max =
      progress ? __atomic_load_n(&progress->total, __ATOMIC_ACQUIRE) : 0;
  uint64_t now =
      progress ? __atomic_load_n(&progress->completed, __ATOMIC_RELAXED) : 0;
  if (all) *all = max;
  if (done) *done = now < max ? now : max;
}
