/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hal/backend.h"

/* Done before all: who reads in between sees less than there is, never more. */
void vyre__progress_begin(const vyre__launch *launch, uint64_t groups) {
  vyre_progress *progress = launch->progress;
  uint64_t all;
  if (!progress) return;
  if (__builtin_mul_overflow(groups, (uint64_t)launch->launch_count, &all))
    all = 0;
  __atomic_store_n(&progress->completed,
                   all ? groups * launch->launch_index : 0, __ATOMIC_RELEASE);
  __atomic_store_n(&progress->total, all, __ATOMIC_RELEASE);
}

void vyre_progress_read(const vyre_progress *progress, uint64_t *done,
                        uint64_t *all) {
  uint64_t most =
      progress ? __atomic_load_n(&progress->total, __ATOMIC_ACQUIRE) : 0;
  uint64_t now =
      progress ? __atomic_load_n(&progress->completed, __ATOMIC_RELAXED) : 0;
  if (all) *all = most;
  if (done) *done = now < most ? now : most;
}
