/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads as C loops, from the shared objects that peers.sh compiled. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "rival.h"

int setenv(const char *name, const char *value, int overwrite);

/* Each object is loaded with its own OpenMP library and must not see the other:
 * both libraries define the same symbols. */
const cpu_peer *cpu_peer_load(const char *name) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s.so", VYRE_BENCH_PEERS, name);
  /* By default, threads of libomp spin for 200 ms after their work, which would
   * disturb the next rival. */
  (void)setenv("KMP_BLOCKTIME", "4", 0);
  void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  return object ? dlsym(object, CPU_PEER_SYMBOL) : NULL;
}

typedef struct peer_job {
  const cpu_peer *peer;
  cpu_workload *w;
} peer_job;

static void bind(void *self, cpu_workload *w) {
  ((peer_job *)self)->w = w;
}

static void launch(void *self) {
  const peer_job *job = self;
  job->peer->run[job->w->kernel](&job->w->args);
}

static void unbind(void *self) {
  ((peer_job *)self)->w = NULL;
}

cpu_rival cpu_peer_rival(const cpu_peer *peer, const char *name) {
  peer_job *job = peer ? calloc(1, sizeof *job) : NULL;
  if (peer && !job) bench_fail(name, "out of memory");
  if (job) job->peer = peer;
  return (cpu_rival){name, job, bind, launch, unbind};
}
