/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Wave graphs: data shared by the files that build, plan, prepare, run and
 * print them. */
#ifndef VYRE_FLOW_WAVE_INTERNAL_H
#define VYRE_FLOW_WAVE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "vyre/wave_graph.h"

#include "hal/command_list.h"
#include "runtime/dispatch/command_list.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"

enum { VYRE__WAVE_NAME = 64 };

typedef struct vyre__wave_resource {
  char name[VYRE__WAVE_NAME];
  uint64_t size;
  bool is_input, is_output, is_external, is_kept;
  uint64_t alignment; /* preferred by the bindings that use it; 0: none */
  /* Set by the plan. */
  bool begins_zero; /* cleared before the first group of a run */
  /* External: of the last run. */
  vyre_buffer buffer;
  uint64_t offset;
} vyre__wave_resource;

/* Use of a resource by a wave. */
typedef struct vyre__wave_use {
  uint32_t resource; /* UINT32_MAX: constant bytes */
  uint64_t offset, size;
  const void *data; /* constant bytes; in the arena of the graph */
  bool reads, writes;
} vyre__wave_use;

typedef struct vyre__wave {
  char label[VYRE__WAVE_NAME];
  vyre_pipeline *pipeline; /* retained */
  vyre__wave_use *uses;    /* one per resource of the pipeline */
  size_t use_count;
  uint32_t given_grid[3], grid[3];
  uint64_t workgroups;
  uint64_t weight;          /* estimate of its work */
  uint32_t group;           /* set by the plan */
  bool is_ready;            /* prepared for the buffers that are bound now */
  vyre__prepared *prepared; /* NULL before the seal */
  vyre_dispatch_desc desc;  /* of `prepared` */
} vyre__wave;

/* Repetition of all groups. */
typedef struct vyre__wave_loop {
  bool is_set;
  uint32_t flag; /* resource */
  uint64_t offset, max_iterations;
  uint32_t check_interval;
} vyre__wave_loop;

/* Memory that a run gives to a resource. */
typedef struct vyre__wave_io {
  const void *in;
  void *out;
  vyre__device_buffer *held; /* external */
} vyre__wave_io;

struct vyre_wave_graph {
  atomic_uint references;
  vyre_device *device; /* retained */
  vyre_wave_graph_options options;
  vyre_arena arena; /* uses and constants */
  vyre__wave_resource *resources;
  size_t resource_count, resource_capacity;
  vyre__wave *waves;
  size_t wave_count, wave_capacity;
  vyre_wave_dependency *declared;
  size_t declared_count, declared_capacity;
  vyre__wave_loop loop;

  bool has_plan; /* `plan` is up to date */
  vyre_wave_plan plan;
  vyre_arena plan_arena;
  bool is_sealed;

  pthread_mutex_t lock; /* held by a run */
  vyre_buffer memory;   /* the allocation; zeroed without bytes */
  vyre__device_buffer *held_memory;
  vyre_input *inputs; /* of all prepared dispatches */
  /* Commands in order of groups; with a loop, command 0 is the loop. */
  vyre__command *commands;
  vyre__command_list list; /* all commands, or those of one iteration */
  vyre__command_list loop_list;
  vyre__launch_totals totals;
  vyre__wave_groups groups; /* of the list */
  vyre__wave_io *io;        /* one per resource: memory of the active run */
  /* Resources that a run uploads, clears, reads back or takes from its
   * caller. */
  uint32_t *touched;
  size_t touched_count;
  bool is_bound; /* all waves are ready */
};

/* Function names and failures. */
vyre_code vyre__wave_is_sealed(vyre_status *st);
/* Returns the name of a wave, or of a resource, for messages. */
const char *vyre__wave_resource_name(const vyre_wave_graph *graph,
                                     uint32_t resource);

/* Returns true if a wave writes the resource. */
bool vyre__wave_writes(const vyre_wave_graph *graph, uint32_t resource);

/* Refuses a graph that is not sealed. */
VYRE_NODISCARD vyre_code vyre__wave_check_sealed(const vyre_wave_graph *graph,
                                                 vyre_status *st);

/* Runs the graph on this thread, without waiting for queued work. */
VYRE_NODISCARD vyre_code vyre__wave_run(vyre_wave_graph *graph,
                                        const vyre_wave_run *run,
                                        vyre_status *st);

/* Derives the dependencies of all waves from their uses, and adds the declared
 * ones. *out lives in @p arena. */
vyre_code vyre__wave_dependencies(const vyre_wave_graph *graph,
                                  vyre_arena *arena,
                                  const vyre_wave_dependency **out,
                                  size_t *count, vyre_status *st);
/* Checks that waves which use the same bytes are ordered by dependencies. */
vyre_code vyre__wave_check_order(const vyre_wave_graph *graph,
                                 const vyre_wave_dependency *dependencies,
                                 size_t count, vyre_arena *arena,
                                 vyre_status *st);

/* Computes the grid, the workgroups and the weight of a wave. */
vyre_code vyre__wave_measure(vyre__wave *wave, vyre_status *st);

/* Maps the waves of every group to threads. Fills plan->parts; the arrays live
 * in the plan's arena. Returns false if memory is exhausted. */
bool vyre__wave_map_build(vyre_wave_graph *graph, uint32_t threads);

/* Plans the graph unless it has a plan. */
vyre_code vyre__wave_plan(vyre_wave_graph *graph, vyre_status *st);

/* Returns the alignment of resources in the allocation. */
uint64_t vyre__wave_alignment(const vyre_wave_graph *graph);

/* Allocates the memory and the prepared dispatches. On failure nothing is
 * allocated. */
vyre_code vyre__wave_prepare(vyre_wave_graph *graph, vyre_status *st);
/* Frees what vyre__wave_prepare has allocated. */
void vyre__wave_unprepare(vyre_wave_graph *graph);
/* Prepares the waves that are not ready, for the external buffers of now. */
vyre_code vyre__wave_bind(vyre_wave_graph *graph, vyre_status *st);

#endif
