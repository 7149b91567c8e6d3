/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Encodes the commands of a list: the state that command_list.c and
 * wave_groups.c share. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_ENCODER_H
#define VYRE_BACKEND_VULKAN_COMMAND_ENCODER_H

#include "backend/vulkan/command/command_list.h"

typedef struct vk_encoder {
  vk_device *device;
  const vk_command_list *own;
  vk_encoding *encoding;
  vk_hazards hazards;
  VkCommandBuffer commands; /* of the open segment, or NULL */
  VkPipeline bound;         /* bound in `commands` */
} vk_encoder;

/* Begins a segment at command @p item. */
vyre_code vk_encoder_begin_segment(vk_encoder *r, uint32_t item,
                                   vyre_status *st);
/* Ends the open segment, if there is one. */
vyre_code vk_encoder_end_segment(vk_encoder *r, vyre_status *st);
/* Encodes a launch. Returns false if it must run separately: it needs windows,
 * depends on bytes that an earlier command writes, or binds much host memory.
 * It also returns false when the encoding has reached its maximum of bytes; the
 * encoding then ends before this launch. */
bool vk_encoder_try(vk_encoder *r, uint32_t i);
/* Adds a launch as a segment of its own. */
vyre_code vk_encoder_add_separate(vk_encoder *r, uint32_t i, vyre_status *st);
/* Adds the workgroups of a launch to its segment, to measure their time
 * later. */
void vk_encoder_count(vk_segment *s, const vyre__launch *launch);

/* Encodes the groups of a wave graph, with a barrier between groups only. */
vyre_code vk_encoder_add_groups(vk_encoder *r, vyre_status *st);

#endif
