/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Recorded loops whose flag the device tests before each iteration. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_DEVICE_LOOP_H
#define VYRE_BACKEND_VULKAN_COMMAND_DEVICE_LOOP_H

#include "backend/vulkan/command/encoding.h"

enum { VK_LOOP_ENCODINGS = 4 };

/* The body of a loop, and command buffers with different numbers of
 * iterations. */
typedef struct vk_device_loop {
  vk_encoding encoding; /* dispatches and transfers; one segment, no commands */
  vk_range words;       /* value of the flag before each iteration */
  uint64_t flag_id, flag_offset;
  VkBuffer flag_buffer;
  uint32_t max_iterations; /* of one submission */
  struct {
    uint32_t iterations;
    VkCommandBuffer commands;
  } variants[VK_LOOP_ENCODINGS];
  uint32_t variant_count;
  bool is_decided;    /* is_supported is valid */
  bool is_supported;  /* the device can run this loop */
  bool has_transfers; /* the transfers of the encoding were built */
} vk_device_loop;

struct vk_command_list;

/* Executes the commands of @p list as the body of @p loop. *is_taken is false,
 * and nothing was executed, if the device cannot test the flag. @p version: of
 * the list. */
vyre_code vk_loop_execute(struct vk_command_list *list, uint64_t version,
                          vyre__command_loop *loop, bool *is_taken,
                          vyre_status *st);
void vk_device_loop_clear(vk_device *device, vk_device_loop *loop);

#endif
