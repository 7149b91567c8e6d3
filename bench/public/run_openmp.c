/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the twins in C, from the shared objects that cpu/peers.sh compiled. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "rival.h"

int setenv(const char *name, const char *value, int overwrite);

typedef struct twin_job {
  const public_peer *peer;
  const char *suffix;
  int threads;
  void (*run)(const public_args *args);
  public_args args;
} twin_job;

static void (*find(const twin_job *job,
                   const char *name))(const public_args *) {
  char full[64];
  (void)snprintf(full, sizeof full, "%s%s", name, job->suffix);
  for (size_t i = 0; i < job->peer->twin_count; i++) {
    if (strcmp(job->peer->twins[i].name, full) == 0) {
      return job->peer->twins[i].run;
    }
  }
  return NULL;
}

bool public_peer_has(const public_rival *rival, const public_workload *w) {
  return rival->self && find(rival->self, w->twin);
}

static void bind(void *self, public_workload *w) {
  twin_job *job = self;
  job->run = find(job, w->twin);
  if (!job->run) bench_fail(w->name, "has no twin");
  for (int i = 0; i < w->buffer_count; i++) {
    job->args.buffers[i] = w->buffers[i].data;
  }
  memcpy(job->args.numbers, w->numbers, sizeof job->args.numbers);
}

static void launch(void *self) {
  const twin_job *job = self;
  job->peer->threads(job->threads);
  job->run(&job->args);
}

static void unbind(void *self) {
  ((twin_job *)self)->run = NULL;
}

public_rival public_peer_open(const char *name, const char *object,
                              const char *suffix, bool is_alone) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/%s.so", VYRE_BENCH_PEERS, object);
  /* By default, threads of libomp spin for 200 ms after their work, which would
   * disturb the next rival. */
  (void)setenv("KMP_BLOCKTIME", "4", 0);
  /* Each object has its own OpenMP library and must not see the other. */
  void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const public_peer *peer = loaded ? dlsym(loaded, PUBLIC_PEER_SYMBOL) : NULL;
  twin_job *job = peer ? calloc(1, sizeof *job) : NULL;
  if (peer && !job) bench_fail(name, "out of memory");
  if (job) {
    job->peer = peer;
    job->suffix = suffix;
    job->threads = is_alone ? 1 : (int)sysconf(_SC_NPROCESSORS_ONLN);
  }
  return (public_rival){name, job, bind, launch, unbind};
}
