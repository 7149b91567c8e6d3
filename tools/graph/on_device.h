/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A graph algorithm on one device: its kernels, its buffers, and a recording of
 * all its steps, so that a run is one submission. An algorithm with a queue drains
 * it behind these steps.
 *
 * Functions fail quietly: the first failure is kept in `wrong`, and all later
 * calls do nothing. graph_run returns false then. */
#ifndef VYRE_TOOLS_GRAPH_ON_DEVICE_H
#define VYRE_TOOLS_GRAPH_ON_DEVICE_H

#include "vyre/module.h"
#include "vyre/recording.h"
#include "vyre/work_queue.h"

#include "graph/graph.h"

enum { GRAPH_MAX_KERNELS = 12, GRAPH_MAX_SLOTS = 48, GRAPH_MAX_BINDINGS = 16 };

typedef struct graph_device {
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *kernels[GRAPH_MAX_KERNELS]; /* in the order of the file */
  vyre_recording *recording;
  vyre_queue *queue;                       /* NULL: the algorithm has none */
  vyre_input bindings[GRAPH_MAX_BINDINGS]; /* of the queue kernel */
  size_t binding_count;
  uint32_t first_item;
  vyre_queue_stats stats;               /* of the last run */
  vyre_buffer buffers[GRAPH_MAX_SLOTS]; /* by slot; zeroed for a value */
  uint32_t values[GRAPH_MAX_SLOTS];
  uint32_t slot_count;
  uint64_t bytes;  /* of all buffers and the queue */
  uint64_t budget; /* of bytes; 0: none */
  bool is_over;    /* the budget does not suffice: bytes are counted only */
  bool has_failed;
  problem *wrong;
} graph_device;

/* A text of kernels that the command contains (examples/graph). */
typedef struct graph_kernels {
  const char *name, *text;
  const size_t *length;
} graph_kernels;

/* Compiles the kernels for @p device, which is retained. graph_device_deinit
 * releases @p d, after a failure too. */
void graph_device_init(graph_device *d, vyre_device *device,
                       const graph_kernels *kernels, problem *wrong);
void graph_device_deinit(graph_device *d);

/* Return the number of a slot: a buffer of @p count words that are zero at the
 * beginning of a run if they are `cleared`; words of the host, which must live
 * as long as @p d; a u32 or an f32 for a uniform. */
uint32_t graph_words(graph_device *d, uint64_t count);
uint32_t graph_import(graph_device *d, const uint32_t *words, uint64_t count);
uint32_t graph_value(graph_device *d, uint32_t value);
uint32_t graph_real(graph_device *d, float value);

/* Adds a step: kernel number @p kernel of the file with @p groups workgroups.
 * Slots in the order of the bindings end with GRAPH_END. */
#define GRAPH_END UINT32_MAX
void graph_step(graph_device *d, uint32_t kernel, uint32_t groups,
                const uint32_t *slots);
#define GRAPH_STEP(d, kernel, groups, ...) \
  graph_step(d, kernel, groups, (const uint32_t[]){__VA_ARGS__, GRAPH_END})

/* Drains a queue behind the recorded steps: the queue kernel number @p kernel of
 * the file, whose first window has @p item. @p capacity is the largest number of
 * items or keys. Slots as for graph_step. */
void graph_queue(graph_device *d, uint32_t kernel, uint64_t capacity,
                 uint32_t item, const uint32_t *slots);
#define GRAPH_QUEUE(d, kernel, capacity, item, ...) \
  graph_queue(d, kernel, capacity, item,            \
              (const uint32_t[]){__VA_ARGS__, GRAPH_END})

/* Repeats the steps between them while the first word of slot @p flag is not
 * zero, at most @p iterations times. */
void graph_begin_while(graph_device *d, uint32_t flag, uint64_t iterations);
void graph_end_while(graph_device *d);

/* Number of workgroups of @p size that cover @p count invocations; at least 1. */
static inline uint32_t graph_groups(uint64_t count, uint32_t size) {
  uint64_t groups = (count + size - 1) / size;
  return groups ? (uint32_t)groups : 1;
}

/* Seals the recording. Fails if the budget does not suffice. */
void graph_seal(graph_device *d);

/* Runs all steps and stores the time in *ns. */
bool graph_run(graph_device *d, uint64_t *ns);

/* Sets words of a slot to zero, and copies words of a slot to the host. */
bool graph_clear(graph_device *d, uint32_t slot);
bool graph_read(graph_device *d, uint32_t slot, void *words, uint64_t count);

/* Keeps the first failure. */
bool graph_check(graph_device *d, vyre_code code, const vyre_status *st);

#endif
