/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Command lists: launches and copies of a recording or a batch, encoded once
 * per set of bindings. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_COMMAND_LIST_H
#define VYRE_BACKEND_VULKAN_COMMAND_COMMAND_LIST_H

#include "backend/vulkan/command/device_loop.h"
#include "backend/vulkan/command/encoding.h"

enum { VK_ENCODINGS = 3 };

typedef struct vk_command_list {
  vyre__command_list base;
  vk_encoding encodings[VK_ENCODINGS]; /* the last few sets of bindings */
  uint32_t current;
  uint64_t clock; /* of vk_encoding.last_used */
  vk_device_loop loop;
} vk_command_list;

/* Command-list entries of the backend table. */
vyre_code vk_command_list_run(vyre__command_list *list, size_t *done,
                              vyre_status *st);
void vk_command_list_deinit(vyre__command_list *list);

#endif
