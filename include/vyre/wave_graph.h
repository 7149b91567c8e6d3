/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/wave_graph.h
 *  Wave graphs: many small dispatches that depend on each other, planned once
 *  and run as one submission.
 *
 *      vyre_wave_graph *graph;
 *      uint32_t x, y, wave;
 *      vyre_wave_graph_create(device, NULL, &graph, &st);
 *      vyre_wave_resource in = {.name = "x", .size = 4096, .is_input = true};
 *      vyre_wave_resource out = {.name = "y", .size = 4096, .is_output = true};
 *      vyre_wave_graph_add_resource(graph, &in, &x, &st);
 *      vyre_wave_graph_add_resource(graph, &out, &y, &st);
 *      vyre_wave_binding bindings[] = {{.resource = x}, {.resource = y}};
 *      vyre_wave_desc desc = {.bindings = bindings, .binding_count = 2};
 *      vyre_wave_graph_add_wave(graph, pipeline, &desc, &wave, &st);
 *      vyre_wave_graph_seal(graph, &st);
 *      vyre_wave_input inputs[] = {{x, host_x, 4096}};
 *      vyre_wave_output outputs[] = {{y, host_y, 4096}};
 *      vyre_wave_run run = {.inputs = inputs, .input_count = 1,
 *                           .outputs = outputs, .output_count = 1};
 *      vyre_wave_graph_run(graph, &run, NULL, &st);
 *
 *  A wave is one dispatch. The planner sorts the waves into groups, and gives
 *  every resource a place in one allocation, which resources share whose
 *  lifetimes do not overlap. A run submits all waves at once, with one barrier
 *  between groups; the waves of a group run at the same time. Results are read
 *  back once, at the end. */
#ifndef VYRE_WAVE_GRAPH_H
#define VYRE_WAVE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/barrier.h"
#include "vyre/buffer.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/fence.h"
#include "vyre/frontier.h"
#include "vyre/pipeline.h"
#include "vyre/placement.h"
#include "vyre/status.h"
#include "vyre/writer.h"

/** Waves with their resources and dependencies. Reference counted.
 *
 *  Threads:   compatible before vyre_wave_graph_seal, safe afterwards. Runs of
 *             one graph take place one after the other. */
typedef struct vyre_wave_graph vyre_wave_graph;

/** Options of a graph. Zeroed: the defaults. */
typedef struct vyre_wave_graph_options {
  /* Limit on the bytes of a group (vyre_frontier_desc) and on the allocation;
   * 0: none. */
  uint64_t budget_bytes;
  /* Dependencies come from vyre_wave_graph_add_dependency only. Two waves that
   * use the same bytes, of which one writes them, must then be ordered by
   * declared dependencies. */
  bool declared_only;
  bool is_separate;     /* give every resource its own bytes, for comparisons */
  uint64_t reserved[4]; /* must be zero */
} vyre_wave_graph_options;

/** Memory that waves use. A resource with none of the four roles lives from
 *  the first group that uses it to the last one, and other resources can have
 *  the same bytes before and after.
 *
 *  Its first contents are those of a dispatch: what a wave only writes begins
 *  as zeros. A resource that is read first begins every run as zeros, unless
 *  it is an input, kept or external. */
typedef struct vyre_wave_resource {
  const char *name;     /* for messages and plans; at most 63 bytes */
  uint64_t size;        /* bytes */
  bool is_input;        /* every run begins with bytes of the host */
  bool is_output;       /* every run ends with a copy to the host */
  bool is_external;     /* memory is a device buffer that each run names */
  bool is_kept;         /* keeps its contents from one run to the next */
  uint64_t reserved[4]; /* must be zero */
} vyre_wave_resource;

/** Memory of one buffer of a wave: a range of a resource, or constant bytes. */
typedef struct vyre_wave_binding {
  uint32_t resource; /* number of a resource; ignored with `data` */
  uint64_t offset;   /* bytes; a multiple of the element size */
  uint64_t size;     /* bytes; 0: up to the end of the resource */
  const void *data;  /* constant bytes instead, which the graph copies; only
                        for buffers that the kernel does not write */
} vyre_wave_binding;

/** Description of a wave. */
typedef struct vyre_wave_desc {
  /* One per buffer that is not shared, in order of the binding numbers. */
  const vyre_wave_binding *bindings;
  size_t binding_count; /* entries of `bindings` */
  uint32_t grid[3];     /* as in vyre_dispatch_desc */
  const char *label;    /* for messages and plans; NULL: name of the kernel */
  uint64_t reserved[4]; /* must be zero */
} vyre_wave_desc;

/** Part of a wave that one thread of a CPU device runs. */
typedef struct vyre_wave_share {
  uint32_t wave;        /* index of the wave */
  uint32_t thread;      /* index of the thread, from 0 */
  uint64_t first_group; /* first workgroup */
  uint64_t group_count; /* number of workgroups */
} vyre_wave_share;

/** Plan of a graph. A run allocates, orders and submits exactly this. */
typedef struct vyre_wave_plan {
  vyre_frontier_plan frontier;    /* groups and their peaks */
  vyre_placement_plan placement;  /* of the resources that are not external */
  const vyre_interval *intervals; /* one per resource; size 0: external */
  const uint64_t *offsets; /* offset of each resource in the allocation */
  size_t resource_count;   /* entries of `intervals` and `offsets` */
  uint64_t resident_bytes; /* of external resources and constants */
  uint64_t separate_bytes; /* allocation without sharing */
  uint64_t upload_bytes;   /* sum of all inputs */
  uint64_t readback_bytes; /* sum of all outputs: one readback */
  uint64_t submissions;    /* per run, or per batch of a loop: 1 */
  uint64_t barriers;       /* between groups: frontier.barriers */
  uint32_t threads;        /* threads that the parts are for; 0: no parts */
  /* Parts of group g: parts[part_offsets[g]] to parts[part_offsets[g + 1] - 1];
   * both NULL without parts. */
  const vyre_wave_share *parts;
  const uint32_t *part_offsets;
  uint64_t reserved[8]; /* zero; for future fields */
} vyre_wave_plan;

/** Bytes of the host for an input. */
typedef struct vyre_wave_input {
  uint32_t resource; /* number of the resource */
  const void *data;  /* bytes */
  size_t size;       /* exactly the size of the resource */
} vyre_wave_input;

/** Memory of the host for an output. */
typedef struct vyre_wave_output {
  uint32_t resource; /* number of the resource */
  void *data;        /* receives the bytes */
  size_t size;       /* exactly the size of the resource */
} vyre_wave_output;

/** Device buffer of an external resource. */
typedef struct vyre_wave_external {
  uint32_t resource;  /* number of the resource */
  vyre_buffer buffer; /* at least as many bytes as the resource from `offset` */
  uint64_t offset;    /* start in the buffer */
} vyre_wave_external;

/** Figures of a run. The first five equal those of the plan. */
typedef struct vyre_wave_result {
  uint64_t submissions;     /* to the device */
  uint64_t barriers;        /* between groups, of all iterations */
  uint64_t allocated_bytes; /* size of the allocation */
  uint64_t readback_bytes;  /* copied to outputs */
  uint64_t readbacks;       /* 1, or 0 without outputs */
  uint64_t waits;           /* of the host for the device */
  uint64_t waves;           /* waves that ran, of all iterations */
  uint64_t groups;          /* groups that ran, of all iterations */
  uint64_t inline_groups;   /* of these, run by one thread of a CPU device */
  uint64_t steals;      /* parts that another thread than the planned one ran */
  uint64_t iterations;  /* of a graph that repeats; otherwise 1 */
  uint64_t flag_reads;  /* by the host */
  bool reached_max;     /* max_iterations ended the run */
  uint64_t wall_ns;     /* time of the run */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_wave_result;

/** Description of one run. */
typedef struct vyre_wave_run {
  const vyre_wave_input *inputs;       /* one per input, in any order */
  size_t input_count;                  /* entries of `inputs` */
  const vyre_wave_output *outputs;     /* one per output, in any order */
  size_t output_count;                 /* entries of `outputs` */
  const vyre_wave_external *externals; /* one per external resource */
  size_t external_count;               /* entries of `externals` */
  uint64_t timeout_ns;                 /* maximum time of the run; 0: none */
  vyre_wave_result *result;            /* receives figures; may be NULL */
  uint64_t reserved[4];                /* must be zero */
} vyre_wave_run;

VYRE_BEGIN

/** Creates an empty graph.
 *  Ownership: the caller owns *out (vyre_wave_graph_release); NULL on failure.
 *             Retains the device.
 *  Threads:   safe.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_create(
    vyre_device *device, const vyre_wave_graph_options *options,
    vyre_wave_graph **out, vyre_status *st);

/** Adds a reference, which needs one more vyre_wave_graph_release. Returns @p
 *  graph.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_wave_graph *vyre_wave_graph_retain(vyre_wave_graph *graph);

/** Drops a reference. The last release frees the graph and its memory; an
 *  active run holds a reference. Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    as vyre_device_release, if the graph holds the last reference to
 *             the device.
 *  Errors:    none. */
VYRE_API void vyre_wave_graph_release(vyre_wave_graph *graph);

/** Adds a resource.
 *  Ownership: the name is copied. *out receives its number, from 0.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a name that is empty, longer than 63
 *             bytes or in use, a size of 0, roles that exclude each other, or
 *             a sealed graph; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_add_resource(
    vyre_wave_graph *graph, const vyre_wave_resource *desc, uint32_t *out,
    vyre_status *st);

/** Adds a wave. Without declared_only, it depends on every wave added before
 *  that writes bytes which it uses, or uses bytes which it writes.
 *  Ownership: retains the pipeline; copies @p desc with its constant bytes.
 *             *out receives the number of the wave, from 0.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for a number of bindings that differs from
 *             the buffers of the kernel, an unknown resource, a range outside
 *             its resource or unlike the declared size of the buffer, constant
 *             bytes for a buffer that the kernel writes, a pipeline of another
 *             device, or a sealed graph; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_add_wave(
    vyre_wave_graph *graph, vyre_pipeline *pipeline, const vyre_wave_desc *desc,
    uint32_t *out, vyre_status *st);

/** Declares that wave @p after runs in a later group than wave @p before.
 *  Threads:   compatible.
 *  Blocks:    on the allocator.
 *  Errors:    VYRE_INVALID_ARGUMENT for an unknown wave or a sealed graph;
 *             VYRE_OUT_OF_MEMORY. A cycle is found by vyre_wave_graph_plan. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_add_dependency(
    vyre_wave_graph *graph, uint32_t before, uint32_t after, vyre_status *st);

/** Repeats all groups while the u32 at @p offset of resource @p flag is not 0,
 *  at most @p max_iterations times. The flag is tested before every iteration.
 *  The host reads it once in @p check_interval iterations (0: the library
 *  chooses), or less often where the device tests it. A resource keeps its
 *  contents from one iteration to the next, except where a wave only writes
 *  it.
 *  Threads:   compatible.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT for an unknown resource, an offset that is
 *             no multiple of 4 or outside the resource, a maximum of 0, a
 *             second call, or a sealed graph. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_repeat(
    vyre_wave_graph *graph, uint32_t flag, uint64_t offset,
    uint64_t max_iterations, uint32_t check_interval, vyre_status *st);

/** Plans the graph with what was added so far. Allocates no device memory.
 *  Ownership: *out belongs to the graph and lives until the next change or the
 *             last release.
 *  Threads:   compatible before the seal, safe afterwards.
 *  Blocks:    on the allocator.
 *  Errors:    those of vyre_frontier_plan_build and vyre_placement_plan_build;
 *             VYRE_PLAN_REJECTED: over_budget if the allocation exceeds the
 *             budget, with required_bytes and budget_bytes;
 *             VYRE_INVALID_ARGUMENT for a graph without waves, waves that use
 *             the same bytes without a dependency, or a transient resource
 *             that no wave writes; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_plan(
    vyre_wave_graph *graph, const vyre_wave_plan **out, vyre_status *st);

/** Plans the graph, makes it immutable and allocates its memory. A failed seal
 *  can be repeated.
 *  Threads:   compatible.
 *  Blocks:    on the allocator and the device.
 *  Errors:    those of vyre_wave_graph_plan; VYRE_OUT_OF_MEMORY with the bytes
 *             of the allocation. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_seal(vyre_wave_graph *graph,
                                                       vyre_status *st);

/** Runs the graph. After a failure the outputs are unspecified, and the next
 *  run works; the status number `wave` names the wave, where one is known.
 *
 *  With @p fence, the call returns when the run is queued. The memory of inputs
 *  and outputs, and run->result, must then live until the fence signals.
 *  Ownership: on VYRE_OK the caller owns *fence (vyre_fence_release). On
 *             failure *fence is NULL.
 *  Threads:   safe.
 *  Blocks:    without a fence, until the run has finished, and before it on
 *             queued work of the device; with one, never on queued work.
 *  Errors:    VYRE_INVALID_ARGUMENT for a graph that is not sealed; with the
 *             name of the resource: an input, output or external resource that
 *             is missing, is named twice, has another size, or lacks this role;
 *             stale_handle. Those of vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code vyre_wave_graph_run(vyre_wave_graph *graph,
                                                      const vyre_wave_run *run,
                                                      vyre_fence **fence,
                                                      vyre_status *st);

/** Returns the number of the resource called @p name, or UINT32_MAX.
 *  Threads: as the graph.  Blocks: never.  Errors: none. */
VYRE_API uint32_t vyre_wave_graph_find_resource(const vyre_wave_graph *graph,
                                                const char *name);

/** Prints the plan: groups with their waves, the place of every resource, the
 *  map of waves to threads, and the bytes. Returns false if @p writer fails,
 *  or the graph has no plan.
 *  Threads:   as the graph.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_wave_graph_print(const vyre_wave_graph *graph,
                                    vyre_writer writer);

VYRE_END

#endif
