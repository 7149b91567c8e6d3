/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodings: the commands of a command list for one set of bindings. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_ENCODING_H
#define VYRE_BACKEND_VULKAN_COMMAND_ENCODING_H

#include "backend/vulkan/command/encoded_dispatch.h"

/* Bytes copied to a dispatch before it runs, or from it afterwards. Small
 * inputs that kernels only read are compared with the last copy first: most
 * replays do not change them. */
typedef struct vk_transfer {
  unsigned char *to;
  const unsigned char *from; /* NULL: zeros */
  uint64_t size;
  /* If not NULL, one end is in the unmapped memory of this dispatch, at
   * `at`. */
  const vk_dispatch *dispatch;
  uint64_t at;
  bool is_cached; /* `last` equals the bytes at `to` */
  unsigned char last[16];
} vk_transfer;

/* Commands [first, last) in one submission. Without commands, a single launch that
 * vk_launch_run executes. The other ranges index the arrays of the encoding. */
typedef struct vk_segment {
  uint32_t first, last;
  VkCommandBuffer commands;
  uint32_t in_first, in_last, out_first, out_last, checked_first, checked_last;
  vk_pipeline *pipeline; /* of all launches, or NULL if there are several */
  uint64_t groups;       /* of all launches */
} vk_segment;

typedef struct vk_encoding {
  vyre_arena arena;
  /* The commands of the list that it was used for last. */
  uint64_t version;
  size_t first;
  uint32_t command_count;
  vk_dispatch **dispatches; /* per command; NULL: a copy, or run separately */
  uint64_t (*copies)[5];    /* per command: key of a copy */
  vk_segment *segments;
  vk_transfer *in, *out;
  vk_dispatch **checked; /* may have failed, or need outputs cleared */
  uint32_t in_count, out_count, checked_count;
  uint32_t segment_count;
  uint32_t barriers; /* between groups of a wave graph */
  VkCommandPool pool;
  vk_submission submission;
  uint64_t bytes;      /* memory of the dispatches, in device->list_bytes */
  uint64_t last_used;  /* time by the clock of the list; 0: empty */
  bool is_provisional; /* encoded with unmeasured kernels; replace it soon */
  bool is_partial;     /* memory ran out before the last command */
} vk_encoding;

/* Allocates the transfer arrays for the dispatches of an encoding. Returns
 * false if memory ran out. */
bool vk_encoding_alloc_transfers(vk_encoding *encoding);
/* Builds the transfers for the host memory that @p commands bind now. */
void vk_encoding_build_transfers(vk_encoding *encoding,
                                 const vyre__command *commands);
/* Executes the transfers of a segment before and after its submission. */
vyre_code vk_encoding_write_inputs(const vk_encoding *encoding,
                                   const vk_segment *segment, vyre_status *st);
vyre_code vk_encoding_read_outputs(const vk_encoding *encoding,
                                   const vk_segment *segment, vyre_status *st);
/* Frees everything in an encoding; it is empty then. */
void vk_encoding_clear(vk_device *device, vk_encoding *encoding);

#endif
