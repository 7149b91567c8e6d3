/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures placement of many intervals: its time, and the bytes it needs above
 * the lower bound. */
#include <stdio.h>
#include <stdlib.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "peer_placement.h"

typedef struct placement_job {
  vyre_interval *intervals;
  size_t count;
  vyre_placement_scratch scratch;
  vyre_arena arena;
  vyre_placement_plan plan;
  uint64_t *peer_offsets, peer_bytes;
} placement_job;

static bool run_ours(void *self) {
  placement_job *job = self;
  vyre_arena_reset(&job->arena);
  return vyre_placement_plan_build(job->intervals, job->count, NULL,
                                   &job->scratch, &job->arena, &job->plan,
                                   NULL) == VYRE_OK;
}

static bool run_peer(void *self) {
  placement_job *job = self;
  job->peer_bytes =
      peer_placement(job->intervals, job->count, job->peer_offsets);
  return job->peer_bytes > 0;
}

static void job_make(placement_job *job, size_t count, uint64_t groups,
                     uint64_t longest) {
  *job = (placement_job){.intervals = malloc(count * sizeof *job->intervals),
                         .peer_offsets = malloc(count * sizeof(uint64_t)),
                         .count = count};
  if (!job->intervals || !job->peer_offsets)
    bench_fail("placement", "no memory");
  uint64_t state = 20260727;
  for (size_t i = 0; i < count; i++) {
    uint64_t first = bench_random(&state) % groups;
    uint64_t last = first + bench_random(&state) % longest;
    uint64_t size = 256 * (1 + bench_random(&state) % 4096);
    job->intervals[i] =
        (vyre_interval){size, 256, first, last < groups ? last : groups - 1};
  }
}

static void job_free(placement_job *job) {
  vyre_placement_scratch_deinit(&job->scratch);
  vyre_arena_deinit(&job->arena);
  free(job->intervals);
  free(job->peer_offsets);
}

void bench_plan_placement(void) {
  static const struct {
    const char *time, *gap;
    size_t count;
    uint64_t groups, longest;
    int rounds;
  } cases[] = {{"placement of 300, 100 groups", "placement of 300, bytes", 300,
                100, 20, 9},
               {"placement of 10000, short lives",
                "placement of 10000, short lives, bytes", 10000, 1000, 10, 7},
               {"placement of 10000, medium lives",
                "placement of 10000, medium lives, bytes", 10000, 1000, 100, 7},
               {"placement of 10000, long lives",
                "placement of 10000, long lives, bytes", 10000, 1000, 1000, 7}};
  static const char peer_name[] = "greedy by size, best fit";
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    placement_job job;
    job_make(&job, cases[i].count, cases[i].groups, cases[i].longest);
    bench_times ours, peer;
    bench_pair((bench_job){run_ours, &job}, (bench_job){run_peer, &job},
               cases[i].rounds, 1, &ours, &peer);
    bench_row_times("plan", cases[i].time, "ms", 1e-6, ours, peer_name, peer);
    double bound = (double)job.plan.lower_bound_bytes / 100;
    /* Percent of the bound plus 100, so that a ratio is meaningful. */
    bench_row_figure("plan", cases[i].gap, "% bound",
                     (double)job.plan.placed_bytes / bound, peer_name,
                     (double)job.peer_bytes / bound);
    job_free(&job);
  }
}
