/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The Vulkan backend: what its parts know of each other.
 *
 *   loader.c    the library, the process's instance, what devices there are
 *   vulkan.c    the table: devices, options, texts
 *   open.c      a device: features, queue, function table
 *   external_device.c   one of the caller's
 *   logical_device.c   a VkDevice and its queue, shared by all devices over one GPU
 *   fork.c    what a child process does with devices of its parent
 *   memory.c    blocks of device memory, ranges of them, resident buffers
 *   staging.c   the ring between the host and memory that it does not see
 *   pools.c   command buffers and descriptor sets
 *   submit.c    one queue: submissions and waits
 *   target.c    what a device can do, for lowering and the emitter
 *   layout.c    descriptor set and pipeline layouts, shared by fingerprint
 *   compile.c   program, lowered kernel, SPIR-V, pipelines
 *   plan.c      what a launch needs to know of a kernel; as bytes, for the cache
 *   encoded_dispatch.c       a launch as it is recorded: memory, descriptors, commands
 *   grid_tiles.c     a grid in parts
 *   run.c       a dispatch: in one piece, or in parts
 *   hazards.c   who needs what another wrote
 *   batch.c     several in one submission
 *   batch_cache.c      batches that come again and again
 *   command_list.c     a part of a recording, recorded once
 *   loop.c      one that is repeated while a flag is set
 *   warm_up.c      the first dispatch, at compile
 *
 * Data. A device has one queue and memory in blocks: a block is one VkDeviceMemory
 * with one VkBuffer over all of it, mapped where the host sees it; everything else
 * is a range of a block (a first fit, holes put together again). A pipeline has its
 * plan, one VkPipeline a phase, layouts that it shares with others of the same
 * fingerprint, and jobs. A job is one launch as it was recorded: a command buffer,
 * a descriptor set, and a range of memory with what the caller's bytes, the launch
 * blocks and the status word need. It is kept under a key: grid, lengths, limits
 * and, for resident memory, which range. Nothing else is in its commands, so that
 * the same key once more is copied in, submitted, copied out, and nothing recorded.
 *
 * The path of bytes. Bytes of the host are copied to the job's memory, which the
 * kernel works on, and back. Where the device's memory is the host's (integrated and
 * software devices) that is all; else the memory is the device's own, a second range
 * is the host's, and the commands copy between. Large views have no part in that
 * second range: they go through the staging ring of the device, as do uploads and
 * downloads of resident buffers, which are bound where they are; only one at an
 * offset that the device cannot bind takes a way round.
 *
 * Threads. Whoever dispatches takes a job for itself, under the pipeline's lock, for
 * the moment of taking it. Submitting is under the queue's lock; nobody waits for
 * the device with a lock, but after a failure, or while a pipeline is made that
 * others wait for, too. Memory has a lock. A batch is several jobs in one
 * submission, with a barrier between two where one needs what another wrote. */
#ifndef VYRE_BACKEND_VULKAN_VULKAN_H
#define VYRE_BACKEND_VULKAN_VULKAN_H

#include <pthread.h>

#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/plan.h"
#include "codegen/spirv/spirv.h"
#include "hal/backend.h"

/* --- what there is ---------------------------------------------------------------*/

enum { VK_MOST_PHYSICAL = 16, VK_TEXT = 256 };

/* An option that nobody gave a number. */
#define VK_AUTO UINT64_MAX

/* A device that could be opened; static storage once it was found. */
typedef struct vk_physical {
  VkPhysicalDevice handle;
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  uint32_t version; /* of what may be used: the instance's, or the device's */
  bool is_software;
  bool ends_loops; /* after so many rounds, without a word; and computes nothing
                       with 0.0: Mesa's llvmpipe */
  bool can_be_in_place; /* it has memory that is the host's, too */
  bool is_in_place;     /* and that is the best it has: nothing is staged */
  char driver[VK_TEXT + 64], note[VK_TEXT];
} vk_physical;

/* The process's instance: made by the first who asks, never destroyed. A child makes
 * its own where the parent's had devices, whose threads it does not have. */
typedef struct vk_instance {
  PFN_vkGetInstanceProcAddr get;
  VkInstance handle; /* NULL: there is none, and `missing` says why */
  uint32_t version;  /* that it was made for: 1.3 at most */
  vk_instance_api api;
  vk_physical found[VK_MOST_PHYSICAL]; /* best first */
  uint32_t count;
  char missing[VK_TEXT]; /* what was looked for, and what is there instead */
  char fix[VK_TEXT];     /* of that, or of a layer that is not there */
  struct vk_instance *parent; /* what this process was forked with; or NULL */
} vk_instance;

const vk_instance *vk_instance_find(void);
/* It gets a VkDevice. */
void vk_instance_uses(void);
/* This process is a child, and has one thread. */
void vk_instance_forked(void);

/* For tests, set before the first look: layers of the instance, and who is told
 * what they say (VK_EXT_debug_utils). */
typedef struct vk_hooks {
  const char *layer;
  PFN_vkDebugUtilsMessengerCallbackEXT told;
  /* Stands for the loader's vkGetInstanceProcAddr, which it gets; or NULL. */
  PFN_vkGetInstanceProcAddr (*wrap)(PFN_vkGetInstanceProcAddr real);
  void (*patch)(vk_api *api); /* of a device that is being opened; or NULL */
} vk_hooks;
extern vk_hooks vyre__vk_hooks;

/* --- memory ----------------------------------------------------------------------*/

typedef struct vk_device vk_device;
typedef struct vk_block vk_block;

typedef enum vk_where {
  VK_WHERE_DEVICE, /* the device's own; the host's too where that is in place */
  VK_WHERE_HOST,   /* that the host sees, for staging */
  VK_WHERE_COUNT
} vk_where;

/* A part of a block. Zeroed: none. */
typedef struct vk_range {
  vk_block *block;
  VkBuffer buffer;
  uint64_t offset, size;
  uint64_t id;         /* of the block: never used again */
  unsigned char *host; /* where the range begins, or NULL */
} vk_range;

typedef struct vk_heap {
  pthread_mutex_t lock;
  vk_block *blocks[VK_WHERE_COUNT];
  uint32_t type[VK_WHERE_COUNT]; /* of memory, as far as it is known before */
  uint64_t last_id;
  uint64_t alignment; /* of ranges: what descriptors need, and 64 */
} vk_heap;

vyre_code vk_heap_init(vk_device *device, vyre_status *st);
void vk_heap_finish(vk_device *device);
/* Not zeroed. Errors: VYRE_DEVICE_OUT_OF_MEMORY, VYRE_OUT_OF_MEMORY. */
vyre_code vk_range_take(vk_device *device, vk_where where, uint64_t size,
                        vk_range *out, vyre_status *st);
void vk_range_give(vk_device *device, vk_range *range);
/* device->nothing, if it is not there yet. */
vyre_code vk_nothing_make(vk_device *device, vyre_status *st);

/* The heap that a kind of memory is in, all of it. */
uint64_t vk_heap_bytes(const vk_device *device, vk_where where);

/* Bytes of that heap, as the driver sees it now. */
typedef struct vk_budget {
  uint64_t most; /* that this process may have */
  uint64_t used; /* that it has */
} vk_budget;

/* False if the driver says nothing of it. */
bool vk_budget_read(const vk_device *device, vk_where where, vk_budget *out);
/* Whether memory of the caller can be that of buffers as they are made here. */
bool vk_can_import(const vk_device *device);

typedef struct vk_buffer {
  vyre__buffer base;
  vk_range range;
} vk_buffer;

vyre_code vk_buffer_init(vyre_device *device, vyre__buffer *buffer,
                         vyre_status *st);
void vk_buffer_finish(vyre_device *device, vyre__buffer *buffer);
vyre_code vk_buffer_write(vyre_device *device, vyre__buffer *buffer,
                          uint64_t offset, const void *data, size_t size,
                          vyre_status *st);
vyre_code vk_buffer_read(vyre_device *device, vyre__buffer *buffer,
                         uint64_t offset, void *data, size_t size,
                         vyre_status *st);

/* What to wait for: a value of the timeline, or a fence of one's own. */
typedef struct vk_ticket {
  uint64_t value;
  VkFence fence;
} vk_ticket;

/* --- staging ---------------------------------------------------------------------*/

enum {
  VK_PIECES = 8, /* of the ring: as many copies are on their way at once */
  VK_PIECE_BYTES = 2 << 20,
  VK_LARGE_VIEW = 256 << 10 /* bytes of the host that go through the ring */
};

/* Room for one copy, and its commands. */
typedef struct vk_staging_piece {
  VkCommandPool pool; /* made when it is used first */
  VkCommandBuffer commands;
  vk_ticket ticket;
  bool is_held;   /* by a thread; under the ring's lock */
  bool is_flying; /* it was submitted and not waited for; the holder's */
} vk_staging_piece;

typedef struct vk_ring {
  pthread_mutex_t lock;
  pthread_cond_t given; /* a piece was */
  vk_range memory;      /* of all pieces; made when it is used first */
  vk_staging_piece pieces[VK_PIECES];
  uint32_t next; /* whose turn it is */
} vk_ring;

void vk_ring_init(vk_device *device);
void vk_ring_finish(vk_device *device);
/* Waits until no copy is on its way. */
void vk_ring_settle(vk_device *device);
/* Between the host and a range that it does not see. What is submitted after an
 * upload or a fill sees what it wrote; a download is over when it returns. Fill:
 * zeros, and whole words. Errors: those of vk_range_take, vk_submit, vk_wait. */
vyre_code vk_upload(vk_device *device, const vk_range *to, uint64_t offset,
                    const unsigned char *from, uint64_t size, vyre_status *st);
vyre_code vk_fill(vk_device *device, const vk_range *to, uint64_t offset,
                  uint64_t size, vyre_status *st);
vyre_code vk_download(vk_device *device, const vk_range *from, uint64_t offset,
                      unsigned char *to, uint64_t size, vyre_status *st);

/* --- layouts ---------------------------------------------------------------------*/

typedef struct vk_layout {
  struct vk_layout *next;
  uint32_t references; /* under the device's layout lock */
  VkDescriptorSetLayout set;
  VkPipelineLayout pipeline;
  uint32_t push_bytes, count;
  vyre__spirv_descriptor descriptors[]; /* what makes it the same */
} vk_layout;

vyre_code vk_layout_take(vk_device *device, const vk_plan *plan,
                         vk_layout **out, vyre_status *st);
void vk_layout_give(vk_device *device, vk_layout *layout);
VkDescriptorType vk_descriptor_type(const vyre__spirv_descriptor *d);

/* --- handles ---------------------------------------------------------------------*/

/* A command buffer in a pool of its own, and a descriptor set likewise (none for a
 * layout without descriptors). After a failure nothing is left of them. */
VkResult vk_commands_make(const vk_device *device,
                          VkCommandPoolCreateFlags flags,
                          VkCommandBufferLevel level, VkCommandPool *pool,
                          VkCommandBuffer *out);
VkResult vk_set_make(const vk_device *device, const vk_layout *layout,
                     VkDescriptorPool *pool, VkDescriptorSet *out);
void vk_set_put(const vk_device *device, VkDescriptorSet set,
                const vyre__spirv_descriptor *d,
                const VkDescriptorBufferInfo *info);

/* --- devices ---------------------------------------------------------------------*/

typedef struct vk_features {
  bool storage8, storage16, int8, int16, int64, float64;
  bool buffer_atomics64, shared_atomics64;
  bool memory_model, device_scope;
  bool zeroes_workgroup;
  uint8_t keeps_signed_zeros, keeps_subnormals, rounds_to_even; /* widths */
  bool timeline, imports, budget, conditional;
  bool is_subset; /* of Vulkan: a layer over another interface */
} vk_features;

/* What a test reads; each only grows. */
typedef struct vk_counts {
  _Atomic uint64_t submissions, recorded, barriers, layouts_made,
      layouts_shared, device_blocks, staged_pieces, staged_bytes;
} vk_counts;

/* What devices over one physical device share. */
typedef struct vk_logical {
  const vk_physical *physical;
  uint32_t references;
  atomic_bool is_lost;
  VkDevice handle;
  VkQueue queue;
  uint32_t family, timestamp_bits;
  vk_features has;
  vk_api api;
  pthread_mutex_t queue_lock; /* one thread at a time submits */
} vk_logical;

struct vk_device {
  vyre_device base;
  vk_device *next_opened; /* of the process */
  vk_logical *logical;
  vk_logical own; /* of one that is not shared */
  vk_api api;
  const vk_instance_api *instance;
  const vk_physical *physical;
  vk_physical given; /* of a device that was brought; its functions */
  vk_instance_api given_calls;
  void (*lock_queue)(void *self); /* or NULL, both */
  void (*unlock_queue)(void *self);
  void *queue_self;
  bool is_brought;  /* handle and queue are the caller's */
  bool tests_flags; /* of loops of recordings */
  bool is_in_place;
  bool pushes; /* launch blocks are push constants; else memory */
  vk_features has;
  char details[3 * VK_TEXT];
  VkDevice handle;
  VkQueue queue;
  uint32_t family;
  uint32_t timestamp_bits;
  VkSemaphore timeline; /* or none: fences */
  uint64_t last_ticket;
  vk_heap heap;
  vk_ring ring;
  vk_range nothing; /* for views without bytes; there with the first pipeline */
  pthread_mutex_t primary_lock;
  struct vk_primary *primaries; /* that nobody has */
  pthread_mutex_t pipeline_lock;
  struct vk_pipeline *pipelines; /* all of them */
  struct vk_memo *memos;         /* VK_MEMOS; or NULL */
  _Atomic uint64_t batches;      /* that were looked up there */
  pthread_mutex_t layout_lock;
  vk_layout *layouts;
  uint64_t most_block;  /* bytes of one allocation */
  uint64_t most_idle;   /* bytes of jobs that a pipeline keeps */
  uint64_t most_ns;     /* of one submission, as far as can be known before */
  uint32_t most_rounds; /* of loops, of a vector of invocations; 0: any */
  vk_counts counts;
};

/* For people, as vyre_device_caps has it. */
void vk_details_put(const vk_device *device, char *out, size_t room);

vyre_code vk_device_init(vyre_device *device, vyre_status *st);
/* Fills device->api. */
vyre_code vk_load_calls(vk_device *device, vyre_status *st);
/* The VkDevice of device->physical, its queue, features and functions: shared with
 * those that are open, or a new one. Errors: those of vk_failed. */
vyre_code vk_logical_take(vk_device *device, vyre_status *st);
void vk_logical_give(vk_device *device);
/* The same for what the device was given. */
void vk_logical_bring(vk_device *device);
void vk_logical_forked(void); /* as vk_instance_forked */

/* Lets a child know that it is one: its devices of now are lost there. */
void vk_forks_watch(void);
void vk_forks_enter(vk_device *device);
void vk_forks_leave(vk_device *device);
struct vyre_vulkan_handles;
vyre_code vk_bring(vk_device *device, const struct vyre_vulkan_handles *from,
                   vyre_status *st);
void vk_device_finish(vyre_device *device);

/* The status of a call that failed; a lost device is told to the driver. */
vyre_code vk_failed(vk_device *device, VkResult result, const char *call,
                    vyre_status *st);
#define VK_TRY(device, result, call, st)                    \
  do {                                                      \
    VkResult vk_result_ = (result);                         \
    if (vk_result_ != VK_SUCCESS) {                         \
      return vk_failed((device), vk_result_, (call), (st)); \
    }                                                       \
  } while (0)

/* --- submissions -----------------------------------------------------------------*/

vyre_code vk_queue_init(vk_device *device, vyre_status *st);
void vk_queue_finish(vk_device *device);
/* Submits @p count command buffers as one. @p ticket is zeroed, or was waited for;
 * vk_ticket_finish at its end. */
vyre_code vk_submit(vk_device *device, const VkCommandBuffer *commands,
                    uint32_t count, vk_ticket *ticket, vyre_status *st);
/* Waits until it is over: a kernel on a device cannot be stopped. */
vyre_code vk_wait(vk_device *device, vk_ticket *ticket, vyre_status *st);
void vk_ticket_finish(vk_device *device, vk_ticket *ticket);

/* The start and the end of recording; ends_all: with a barrier. */
vyre_code vk_commands_begin(vk_device *device, VkCommandBuffer commands,
                            bool is_second, vyre_status *st);
vyre_code vk_commands_end(vk_device *device, VkCommandBuffer commands,
                          bool ends_all, vyre_status *st);

/* A barrier of memory: what was written by kernels and copies is seen by those
 * that follow, and by the host. */
void vk_cmd_barrier(const vk_device *device, VkCommandBuffer commands);

/* --- pipelines -------------------------------------------------------------------*/

typedef struct vk_job vk_job;

enum { VK_BUCKETS = 64, VK_MOST_IDLE = 1100 };

/* Where uniforms are. */
enum vk_value_bits {
  VK_BY_VALUE = 1, /* what is recorded depends on its bytes: they are pushed, or
                      grid loops count by them */
  VK_IN_BLOCK = 2, /* in the launch block, in memory */
};

typedef struct vk_pipeline {
  vyre_pipeline base;
  struct vk_pipeline *next, **back; /* of the device's list */
  vk_plan plan;
  vk_layout *layout;
  const uint8_t *values; /* one a buffer of the plan: vk_value_bits */
  bool has_values;       /* some is BY_VALUE */
  VkPipeline *phases;    /* plan.phase_count, in the arena */
  VkPipeline counting;   /* the one phase of a kernel that may skip fuel,
                                    with it; made when somebody needs it */
  pthread_mutex_t counting_lock; /* of that */
  void *cache;                   /* of VkPipelineCache, in the arena; or NULL */
  size_t cache_size;
  _Atomic uint64_t group_ps; /* measured for a workgroup, in ps; 0: not yet */
  pthread_mutex_t lock;      /* of the jobs that nobody has */
  vk_job *buckets[VK_BUCKETS];
  vk_job *oldest, *newest;
  uint32_t idle;
  uint64_t idle_bytes; /* of device memory that they have */
} vk_pipeline;

/* Looks where the kernel's uniforms are: own->values. */
vyre_code vk_find_values(vk_pipeline *own, vyre_status *st);
vyre_code vk_pipeline_init(vyre_pipeline *pipeline, vyre_status *st);
void vk_pipeline_finish(vyre_pipeline *pipeline);
vyre_code vk_pipeline_load(vyre_pipeline *pipeline, const void *artifact,
                           size_t size, vyre_status *st);
vyre_code vk_pipeline_save(vyre_pipeline *pipeline, vyre_writer writer,
                           vyre_status *st);
/* What to run: where rounds need not be counted, and somebody wants them to be, that
 * is made now. *out lives as long as the pipeline. */
vyre_code vk_pipeline_phases(vk_pipeline *pipeline, bool counts,
                             const VkPipeline **out, vyre_status *st);
vyre_code vk_pipeline_print(vyre_pipeline *pipeline, const char *form,
                            vyre_writer writer, vyre_status *st);

/* Modes of floats that the device says it has, into device->has. */
void vk_read_float_modes(vk_device *device);
/* What the device has, as lowering and the emitter want to know it. */
void vk_target_make(const vk_device *device, const vyre_pipeline *pipeline,
                    vyre__target *low, vyre__spirv_target *spirv);

/* --- batches ---------------------------------------------------------------------*/

/* Commands that call those of jobs; kept by the device when nobody has them. */
typedef struct vk_primary {
  struct vk_primary *next;
  VkCommandPool pool;
  VkCommandBuffer commands;
  vk_ticket ticket;
} vk_primary;

void vk_primaries_finish(vk_device *device);

/* --- jobs ------------------------------------------------------------------------*/

/* Parts of one submission, at most; of a kernel without grid barriers that is not
 * recorded in windows. */
enum { VK_WINDOW = 256, VK_FEW_PARTS = 4 };

/* One vkCmdDispatch. */
typedef struct vk_part {
  uint32_t phase;
  uint32_t base[3], groups[3];
  bool needs_barrier; /* before it */
} vk_part;

/* The dispatches of a launch, one after the other: phases as the host's steps say,
 * each in tiles of at most `most` workgroups. */
typedef struct vk_tiles {
  vyre__host_schedule walk;
  uint32_t grid[3], most[3], at[3], last[3];
  uint32_t phase;
  bool has_begun; /* with the first of all */
  bool is_over;
} vk_tiles;

/* @p values: room as vyre__host_schedule_begin wants it. */
vk_tiles vk_tiles_begin(const vk_pipeline *pipeline, const vyre__launch *launch,
                        uint64_t *values);
/* The next one, of at most @p groups workgroups, if it is not over; loop values are
 * its own until vk_tiles_advance. */
void vk_tiles_next(vk_tiles *tiles, uint64_t groups, vk_part *out);
void vk_tiles_advance(vk_tiles *tiles);
/* How many a phase has. */
uint64_t vk_tiles_count(const uint32_t grid[3], const uint32_t limit[3]);

/* A view of the host's bytes, in the job's memory. */
typedef struct vk_staged {
  uint32_t buffer;
  uint64_t at, size;
  bool is_written;
  bool is_large; /* it goes through the ring */
} vk_staged;

/* A resident range that the device cannot bind as it is. */
typedef struct vk_detour {
  VkBuffer buffer;
  uint64_t offset, at, size;
  bool is_written, begins_zero;
} vk_detour;

typedef struct vk_clear {
  VkBuffer buffer;
  uint64_t offset, size; /* whole words */
} vk_clear;

/* A uniform in the launch block. Resident memory may change while the launch runs,
 * and each part has a block: the device copies it once, and then to every block. */
typedef struct vk_value {
  uint32_t buffer;
  uint64_t at, size; /* in the block */
  VkBuffer from;     /* resident: the device copies it; else NULL */
  uint64_t offset;
  uint64_t copy_at; /* resident: its copy in the job's memory */
} vk_value;

/* What a job is to be beside its launch; part of the key. */
enum {
  VK_JOB_ENDS = 1,    /* its commands end with a barrier */
  VK_JOB_TIMED = 2,   /* and tell how long they took */
  VK_JOB_PARTED = 4,  /* they are recorded for each window anew */
  VK_JOB_SECOND = 16, /* they are called by others: a secondary buffer */
  VK_JOB_JOINED =
      8, /* they are part of others': it has none, and is not kept */
};

struct vk_job {
  vk_job *next_in_bucket, *newer, *older;
  vk_pipeline *pipeline;
  size_t size; /* of all of this; the arrays are behind */
  uint64_t hash;
  const uint64_t *key;
  size_t key_count;
  unsigned flags;
  vk_range memory, staging; /* staging: none where memory is the host's */
  unsigned char *host;      /* of memory or staging */
  uint64_t shared_size;     /* of memory that goes between host and device */
  uint64_t written_from;    /* from there on it comes back */
  uint64_t block_stride, status_at, kept_at, kept_size;
  bool has_status; /* the kernel can say that a loop was ended */
  bool has_unseen; /* an output that the kernel does not write */
  vk_staged *staged;
  vk_detour *detours;
  vk_clear *clears;
  vk_value *values;
  uint32_t
      *bytes_at; /* one a buffer: word of the key that its bytes begin with,
                         or 0 */
  uint32_t staged_count, detour_count, clear_count, value_count;
  bool has_resident_values;
  uint32_t part_count;      /* that were recorded last: a block each */
  const VkPipeline *phases; /* the pipeline's that this launch takes */
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkDescriptorPool sets;
  VkDescriptorSet set;
  VkQueryPool queries;
  vk_ticket ticket;
};

/* A job for that launch, which is then this thread's: one that is kept, or a new
 * one, recorded unless it is PARTED. */
vyre_code vk_job_take(vk_pipeline *pipeline, const vyre__launch *launch,
                      unsigned flags, vk_job **out, vyre_status *st);
/* Gives it back; it must not be on its way. */
void vk_job_give(vk_job *job);
void vk_job_free(vk_job *job);
/* Frees all that are kept, of all pipelines of the device: they have memory that is
 * needed now. False: there were none. No lock is held. */
bool vk_jobs_drop(vk_device *device);
/* A view that is large, one way and the other. */
vyre_code vk_job_upload(const vk_job *job, uint64_t at, const void *from,
                        uint64_t size, vyre_status *st);
vyre_code vk_job_download(const vk_job *job, uint64_t at, void *to,
                          uint64_t size, vyre_status *st);
/* Bytes of the host into the job, and out of it. Errors: those of vk_upload and
 * vk_download. */
vyre_code vk_job_fill(const vk_job *job, const vyre__launch *launch,
                      vyre_status *st);
vyre_code vk_job_collect(const vk_job *job, const vyre__launch *launch,
                         vyre_status *st);
/* What the kernel said at its end; another than ENDED is a failure. */
vyre__spirv_end vk_job_end(const vk_job *job);
/* Nanoseconds of a job that is TIMED. */
uint64_t vk_job_time(const vk_job *job);
/* Records parts of @p tiles up to @p groups workgroups, one at least and VK_WINDOW
 * at most, with what goes before the first and after the last of all. *recorded:
 * the workgroups. *bound: the pipeline that these commands have bound. */
void vk_job_put(vk_job *job, const vyre__launch *launch, vk_tiles *tiles,
                uint64_t groups, VkCommandBuffer commands, VkPipeline *bound,
                uint64_t *recorded);
/* All of it at once. */
vyre_code vk_job_put_all(vk_job *job, const vyre__launch *launch,
                         VkCommandBuffer commands, VkPipeline *bound,
                         vyre_status *st);
/* Whether it was recorded for just that. */
bool vk_job_is_for(const vk_job *job, const vyre__launch *launch);

/* Lets a driver that compiles with the first dispatch do it now. */
vyre_code vk_warm_up(vk_pipeline *pipeline, const VkPipeline *phases,
                     uint32_t count, vyre_status *st);

/* --- runs ------------------------------------------------------------------------*/

/* What lowering relies on, of lengths and grids. */
vyre_code vk_check(const vk_pipeline *pipeline, const vyre__launch *launch,
                   vyre_status *st);
/* Makes @p seen a copy of the launch whose uniforms with one of @p bits
 * (vk_value_bits) are bytes in the scratch memory of the launch, read once: the
 * caller's memory may change at any time. With @p residents, those in resident
 * memory too: all earlier work on them has ended. @p seen may be @p launch.
 * Errors: VYRE_OUT_OF_MEMORY, and those of vk_buffer_read. */
vyre_code vk_see_uniforms(const vk_pipeline *pipeline,
                          const vyre__launch *launch, unsigned bits,
                          bool residents, vyre__launch *seen, vyre_status *st);
/* Whether all of it is one submission: few dispatches, and not too long. */
bool vk_is_whole(const vk_pipeline *pipeline, const vyre__launch *launch);
/* What it is expected to take; where nothing is known yet, what it may. */
uint64_t vk_expected_ns(const vk_pipeline *pipeline,
                        const vyre__launch *launch);
/* Whether that is not known, and it runs something. */
bool vk_is_unknown(const vyre__launch *launch);
/* What a submission took that had so many workgroups of a pipeline, and others. */
void vk_learn(vk_pipeline *pipeline, uint64_t groups, uint64_t ns);
/* The same of a submission with workgroups of others, too, all of which count: it is
 * better than to know nothing, and forgotten else. */
void vk_learn_first(vk_pipeline *pipeline, uint64_t groups, uint64_t ns);
/* Workgroups that a launch runs, those of all rounds of its grid loops. */
uint64_t vk_groups_of(const vk_pipeline *pipeline, const vyre__launch *launch);
/* The end of a job that is over: what it failed with, or its bytes. */
vyre_code vk_job_finish(vk_job *job, vyre__launch *launch, vyre_status *st);

/* --- hazards ---------------------------------------------------------------------*/

/* What was done to a resident buffer since barrier number `since`; ranges are as wide
 * as all that was, which at worst makes a barrier too many. */
typedef struct vk_touched {
  const vyre__buffer *buffer;
  uint32_t since;
  uint64_t read_from, read_to, written_from, written_to;
} vk_touched;

typedef struct vk_span {
  const unsigned char *begin, *end;
} vk_span;

typedef struct vk_hazards {
  vk_touched *table; /* `mask` + 1, by buffer */
  vk_span *written;  /* of the host, by those that may meet */
  size_t mask;
  uint32_t written_count, barriers;
  bool has_status; /* one of them may fail after others have begun */
  bool is_guessed; /* nothing is known of how long one of them takes */
  uint64_t ns;     /* that all of it is expected to take */
  vk_span *ever;   /* all that were written, in whichever submission */
  uint32_t ever_count;
} vk_hazards;

/* Room for what @p views buffers of kernels, or twice as many copies, can be. */
bool vk_hazards_init(vk_hazards *hazards, size_t views, vyre_arena *arena);
/* What follows is another submission. */
void vk_hazards_reset(vk_hazards *hazards);
/* Whether it can be in the same submission, and then whether a barrier goes before
 * it: after one, vk_hazards_pass. */
bool vk_hazards_admit(const vk_hazards *hazards,
                      const vyre__command_list_item *item, bool is_first);
/* Whether it cannot only since nothing is known of how long they take. */
bool vk_hazards_guess(const vk_hazards *hazards,
                      const vyre__command_list_item *item);
bool vk_hazards_meet(const vk_hazards *hazards,
                     const vyre__command_list_item *item);
void vk_hazards_pass(vk_hazards *hazards);
void vk_hazards_note(vk_hazards *hazards, const vyre__command_list_item *item);
/* Whether the launch can be recorded before it is run. */
bool vk_is_simple(const vyre__launch *launch);
/* Whether bytes of the host that are recorded with it are written by one that was
 * noted, whenever: it cannot be recorded before that one has run. */
bool vk_hazards_spoil(const vk_hazards *hazards, const vyre__launch *launch);
/* Whether these bytes of the host are bound to it. */
bool vk_binds(const vyre__launch *launch, const unsigned char *begin,
              uint64_t size);

/* --- pieces ----------------------------------------------------------------------*/

/* Bytes that go to a job before it runs, or come from it afterwards. What a kernel
 * only reads is looked at first: in most replays it is what it was. */
typedef struct vk_move {
  unsigned char *to;
  const unsigned char *from; /* NULL: zero */
  uint64_t size;
  const vk_job
      *far; /* the job's side is in its memory at `at`, which the host does
                        not see; or NULL */
  uint64_t at;
  bool is_known; /* `last` is what is there; size is at most its */
  unsigned char last[16];
} vk_move;

/* Items [first, last) as one submission; without commands, one that is dispatched by
 * itself. Then what is to be done for them: moves, and jobs that may have failed. */
typedef struct vk_segment {
  uint32_t first, last;
  VkCommandBuffer commands;
  uint32_t in_first, in_last, out_first, out_last, watched_first, watched_last;
  vk_pipeline *only; /* all are of that one, or NULL */
  uint64_t groups;   /* of all */
} vk_segment;

/* A piece as it was recorded for one set of bindings. */
typedef struct vk_take {
  vyre_arena arena;
  vk_job **jobs;         /* one an item; NULL: a copy, or by itself */
  uint64_t (*copies)[5]; /* one an item: what a copy was recorded for */
  vk_segment *segments;
  vk_move *in, *out;
  vk_job **watched;
  uint32_t in_count, out_count, watched_count;
  uint32_t segment_count, item_count;
  VkCommandPool pool;
  vk_ticket ticket;
  uint64_t used;       /* when, by the piece's clock; 0: it is empty */
  bool is_provisional; /* of a kernel of which nothing was known */
} vk_take;

enum { VK_TAKES = 3, VK_LOOP_KEPT = 4 };

/* A piece as rounds of a loop: commands of so many, and the words that say which of
 * them are done. */
typedef struct vk_loop {
  vk_take take; /* jobs and bytes; one segment, without commands */
  vk_range words;
  uint64_t flag_id, flag_offset;
  VkBuffer flag_buffer;
  uint32_t most; /* rounds of one submission */
  struct {
    uint32_t rounds;
    VkCommandBuffer commands;
  } kept[VK_LOOP_KEPT];
  uint32_t kept_count;
  bool is_known, is_fit; /* known: whether it can be done on the device */
  bool is_settled;       /* the take's moves are there */
} vk_loop;

typedef struct vk_piece {
  vyre__command_list base;
  vk_take takes[VK_TAKES];
  uint32_t current;
  uint64_t clock;
  vk_loop loop;
} vk_piece;

vyre_code vk_piece_run(vyre__command_list *piece, size_t *done,
                       vyre_status *st);
void vk_piece_finish(vyre__command_list *piece);
vyre_code vk_piece_loop(vyre__command_list *piece,
                        vyre__command_list_loop *loop, vyre_status *st);
void vk_loop_clear(vk_device *device, vk_loop *loop);

/* Of a take whose jobs are there: moves for what is bound, and doing them. */
bool vk_take_make_room(vk_take *take);
void vk_take_settle(vk_take *take, const vyre__command_list *piece);
vyre_code vk_take_fill(const vk_take *take, const vk_segment *segment,
                       vyre_status *st);
vyre_code vk_take_collect(const vk_take *take, const vk_segment *segment,
                          vyre_status *st);
void vk_take_clear(vk_device *device, vk_take *take);

/* --- batches that come again -----------------------------------------------------*/

enum { VK_MEMOS = 4 };

/* A batch as it was the last time, in words; and, if it came again, as a piece. */
typedef struct vk_memo {
  atomic_uint state; /* whether somebody has it */
  uint64_t used;     /* when */
  uint32_t seen;     /* how often; 0: it is empty */
  uint32_t count;    /* launches */
  uint64_t *words;
  size_t word_count, word_capacity;
  vyre__command_list_item *items;
  size_t item_capacity;
  vk_piece piece;
} vk_memo;

/* Runs @p first and what follows it as they were recorded, if the same ones came
 * before. Else *is_taken is false, and nothing is done. */
vyre_code vk_memo_run(vk_device *device, vyre__launch *first, bool *is_taken,
                      size_t *done, vyre_status *st);
/* Nothing of a pipeline that ends is kept. */
void vk_memos_forget(vk_device *device, const vk_pipeline *pipeline);
/* Whoever had some is not there any more. */
void vk_memos_free(vk_device *device);
void vk_memos_finish(vk_device *device);

vyre_code vk_run(vyre_pipeline *pipeline, vyre__launch *launch,
                 vyre_status *st);
vyre_code vk_run_many(vyre_device *device, vyre__launch *first, size_t *done,
                      vyre_status *st);

#endif
