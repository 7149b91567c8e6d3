/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encoded dispatches: launches recorded as Vulkan commands, with their memory
 * and descriptors. A launch with the same key as an earlier one reuses all of
 * it. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_ENCODED_DISPATCH_H
#define VYRE_BACKEND_VULKAN_COMMAND_ENCODED_DISPATCH_H

#include "backend/vulkan/command/grid_tiles.h"
#include "backend/vulkan/pipeline.h"

/* A host view, copied to the memory of the dispatch at `at`; or the readback of
 * a device buffer, which the commands copy there. */
typedef struct vk_staged_view {
  uint32_t buffer;
  uint64_t at, size;
  uint32_t readback; /* index in the launch, or VYRE_NO_INDEX */
  bool is_written;
  bool is_large; /* transferred through the staging ring */
} vk_staged_view;

/* A range of a device buffer that cannot be bound directly, for example because
 * of its alignment. The commands copy it to the memory of the dispatch and
 * back. */
typedef struct vk_copied_view {
  VkBuffer buffer;
  uint64_t offset, at, size;
  bool is_written, begins_zero;
} vk_copied_view;

/* A range of a device buffer that the commands copy to the memory of the
 * dispatch after the kernel, for a readback. */
typedef struct vk_readback {
  VkBuffer buffer; /* NULL: the memory of the dispatch */
  uint64_t offset, at, size;
} vk_readback;

/* A range that the commands fill with zeros. */
typedef struct vk_clear {
  VkBuffer buffer;
  uint64_t offset, size; /* multiple of 4 */
} vk_clear;

/* A uniform buffer in the launch block. Each tile has a launch block. Device
 * memory may change while the launch runs, so the commands copy such a uniform
 * once, and copy that copy to every block. */
typedef struct vk_block_uniform {
  uint32_t buffer;
  uint64_t at, size;      /* in the block */
  VkBuffer device_buffer; /* source in device memory; NULL: host bytes */
  uint64_t offset;        /* in device_buffer */
  uint64_t copy_at;       /* of the copy in the memory of the dispatch */
} vk_block_uniform;

/* Flags of an encoded dispatch; part of its key. */
enum {
  VK_DISPATCH_END_BARRIER = 1, /* the commands end with a barrier */
  VK_DISPATCH_TIMED = 2,       /* the commands write timestamps */
  VK_DISPATCH_WINDOWED = 4,    /* commands are recorded again for each window */
  /* The dispatch has no commands: they are recorded into the command buffer of
   * a command list. It is never idle. */
  VK_DISPATCH_INLINE = 8,
};

struct vk_dispatch {
  vk_dispatch *next_in_bucket, *newer, *older;
  vk_pipeline *pipeline;
  size_t size; /* bytes of this allocation; the arrays follow the struct */
  uint64_t hash;
  const uint64_t *key;
  size_t key_count;
  unsigned flags;
  vk_range memory;  /* that the kernel works on */
  vk_range staging; /* host-visible mirror; unallocated if memory is mapped */
  unsigned char *host;  /* mapped address of `staging` or `memory` */
  uint64_t shared_size; /* bytes copied between the two, from 0 on */
  uint64_t readback_at; /* bytes from here to shared_size are copied back */
  uint64_t block_stride, status_at, spill_at, spill_size;
  bool has_status;           /* the kernel can report that a loop was ended */
  bool has_unwritten_output; /* the kernel does not write some output */
  vk_staged_view *staged;
  vk_copied_view *copied;
  vk_clear *clears;
  vk_readback *readbacks;
  vk_block_uniform *uniforms;
  /* Per buffer: index of the key word where its bytes begin, or 0. */
  uint32_t *key_bytes_at;
  uint32_t staged_count, copied_count, clear_count, uniform_count,
      readback_count;
  bool has_device_uniforms;
  uint32_t tile_count;      /* recorded last; one launch block each */
  const VkPipeline *phases; /* owned by the pipeline */
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkDescriptorPool set_pool;
  VkDescriptorSet set;
  VkQueryPool queries;
  vk_submission submission;
};

/* Returns an encoded dispatch for the launch, owned by the caller: an idle one
 * with the same key, or a new one. A new one is recorded unless it is WINDOWED
 * or INLINE. Errors: VYRE_OUT_OF_MEMORY, VYRE_INVALID_ARGUMENT for a grid that
 * needs too much spill memory; those of vk_range_alloc and vk_failed. */
vyre_code vk_dispatch_acquire(vk_pipeline *pipeline, const vyre__launch *launch,
                              unsigned flags, vk_dispatch **out,
                              vyre_status *st);
/* Makes a dispatch idle, and frees the oldest idle ones above the limits. It
 * must not be in flight. */
void vk_dispatch_release(vk_dispatch *dispatch);
void vk_dispatch_free(vk_dispatch *dispatch);
/* Frees the idle dispatches of all pipelines of a device, to regain their
 * memory. Returns false if there were none. Call without locks. */
bool vk_dispatches_free_idle(vk_device *device);

/* Returns true if the dispatch was encoded for an equal launch. */
bool vk_dispatch_matches(const vk_dispatch *dispatch,
                         const vyre__launch *launch);

/* Transfers a large view through the staging ring. An upload from NULL writes
 * zeros. */
vyre_code vk_dispatch_upload(const vk_dispatch *dispatch, uint64_t at,
                             const void *from, uint64_t size, vyre_status *st);
vyre_code vk_dispatch_download(const vk_dispatch *dispatch, uint64_t at,
                               void *to, uint64_t size, vyre_status *st);
/* Copies the host inputs of the launch to the dispatch, and its results back.
 * Errors: those of vk_upload and vk_download. */
vyre_code vk_dispatch_write_inputs(const vk_dispatch *dispatch,
                                   const vyre__launch *launch, vyre_status *st);
vyre_code vk_dispatch_read_outputs(const vk_dispatch *dispatch,
                                   const vyre__launch *launch, vyre_status *st);
/* Returns true if the host copies a readback from the mapped device buffer when
 * the launch has ended. In a command list, a later launch may change it
 * before. */
static inline bool vk_reads_directly(const vk_dispatch *dispatch,
                                     const vyre__view *view) {
  return view->data && !(dispatch->flags & VK_DISPATCH_INLINE);
}
/* Returns the host memory that receives a staged view after the kernel. */
static inline unsigned char *vk_staged_target(const vk_staged_view *staged,
                                              const vyre__launch *launch) {
  return staged->readback == VYRE_NO_INDEX
             ? launch->views[staged->buffer].data
             : launch->readbacks[staged->readback].to;
}
/* Returns the status word of the kernel; everything but ENDED is a failure. */
vyre__spirv_end vk_dispatch_end_status(const vk_dispatch *dispatch);
/* Returns the measured nanoseconds of a TIMED dispatch. */
uint64_t vk_dispatch_device_ns(const vk_dispatch *dispatch);

/* Records tiles of @p walk until they have @p groups workgroups: at least one
 * tile and at most VK_WINDOW_TILES. Records the prologue before the first tile
 * of the launch and the epilogue after the last. Sets *recorded to the number
 * of workgroups. *bound is the VkPipeline bound in @p commands, before and
 * after. */
void vk_dispatch_record_window(vk_dispatch *dispatch,
                               const vyre__launch *launch, vk_tile_walk *walk,
                               uint64_t groups, VkCommandBuffer commands,
                               VkPipeline *bound, uint64_t *recorded);
/* Records the commands before the first tile: copies of host bytes, fills, and
 * copies of views that cannot be bound. Returns true if a barrier must
 * follow. */
bool vk_dispatch_record_prologue(const vk_dispatch *dispatch,
                                 VkCommandBuffer commands);
/* Returns true if there are commands after the last tile: readbacks, and copies
 * back. A barrier comes before them. */
bool vk_dispatch_has_epilogue(const vk_dispatch *dispatch);
void vk_dispatch_record_epilogue(const vk_dispatch *dispatch,
                                 VkCommandBuffer commands);
/* Records all tiles of the launch, without prologue and epilogue. */
vyre_code vk_dispatch_record_tiles(vk_dispatch *dispatch,
                                   const vyre__launch *launch,
                                   VkCommandBuffer commands, VkPipeline *bound,
                                   vyre_status *st);
/* Records one dispatch whose grid is in @p buffer when the device executes it,
 * below the grid of the launch. The kernel has one phase. */
void vk_dispatch_record_indirect(const vk_dispatch *dispatch,
                                 const vyre__launch *launch, VkBuffer buffer,
                                 uint64_t offset, VkCommandBuffer commands,
                                 VkPipeline *bound);
/* Records the prologue, all tiles and the epilogue of the launch. */
vyre_code vk_dispatch_record_all(vk_dispatch *dispatch,
                                 const vyre__launch *launch,
                                 VkCommandBuffer commands, VkPipeline *bound,
                                 vyre_status *st);

#endif
