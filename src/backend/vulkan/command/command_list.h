/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Command lists, encoded once per set of bindings. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_COMMAND_LIST_H
#define VYRE_BACKEND_VULKAN_COMMAND_COMMAND_LIST_H

#include <pthread.h>

#include "backend/vulkan/command/device_loop.h"
#include "backend/vulkan/command/encoding.h"
#include "backend/vulkan/command/hazards.h"

enum { VK_ENCODINGS = 3 };

/* The encoded form of a list, in vyre__command_list.encoded. */
typedef struct vk_command_list {
  vk_device *device;
  struct vk_command_list *older, *newer; /* in the list of the device */
  /* Held while the list executes. Without it, another thread may free the
   * encodings to regain their memory. */
  pthread_mutex_t lock;
  /* The range that is executed now. */
  const vyre__command *commands;
  size_t count;
  size_t first;                        /* its place in the list */
  bool is_independent;                 /* of the list */
  vyre__wave_groups *groups;           /* of the list, or NULL */
  vk_encoding encodings[VK_ENCODINGS]; /* the last few sets of bindings */
  uint32_t current;
  uint64_t clock;        /* of vk_encoding.last_used */
  uint64_t loop_version; /* version of the list that `loop` is for */
  vk_device_loop loop;
} vk_command_list;

/* Allocates the arrays and the pool of an empty encoding for the commands of
 * @p list, and @p hazards in @p scratch. The caller clears it in any case. */
vyre_code vk_encoding_init(const vk_command_list *list, vk_encoding *encoding,
                           vk_hazards *hazards, vyre_arena *scratch,
                           vyre_status *st);
/* Returns true if the encoding was made for commands with the same keys. With
 * @p uniforms_only, compares only launches whose commands depend on the bytes
 * of uniforms: these can change without a new binding. */
bool vk_encoding_matches(const vk_encoding *encoding,
                         const vk_command_list *list, bool uniforms_only);

/* Frees the encodings of lists that do not execute now, from the one that was
 * encoded first, until the encodings of the device have at most @p max_bytes
 * of memory. Returns false if nothing was freed. */
bool vk_command_lists_trim(vk_device *device, uint64_t max_bytes);

/* Entries of the backend table. */
vyre_code vk_execute(vyre__command_list *list, size_t first, size_t end,
                     size_t *done, vyre_status *st);
void vk_list_release(vyre__command_list *list);

#endif
