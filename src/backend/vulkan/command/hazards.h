/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hazards between the commands of one submission. */
#ifndef VYRE_BACKEND_VULKAN_COMMAND_HAZARDS_H
#define VYRE_BACKEND_VULKAN_COMMAND_HAZARDS_H

#include "backend/vulkan/pipeline.h"

/* Accesses to a device buffer since barrier number `since`. Each range is the
 * hull of all accesses, so it may cause a needless barrier, but never misses
 * one. */
typedef struct vk_buffer_access {
  const vyre__buffer *buffer;
  uint32_t since;
  uint64_t read_from, read_to, written_from, written_to;
} vk_buffer_access;

typedef struct vk_host_range {
  const unsigned char *begin, *end;
} vk_host_range;

typedef struct vk_hazards {
  vk_buffer_access *table; /* `mask` + 1 entries, hashed by buffer */
  vk_host_range *written;  /* host memory that this submission writes */
  size_t mask;
  uint32_t written_count, barriers;
  bool is_independent;        /* of the command list */
  bool has_status;            /* a command may fail after others have started */
  bool has_unmeasured;        /* the duration of a command is not known */
  uint64_t expected_ns;       /* sum over the commands */
  vk_host_range *all_written; /* host memory that any submission so far wrote */
  uint32_t all_written_count;
} vk_hazards;

/* Allocates tables for @p count commands. Returns false if memory ran out. */
bool vk_hazards_init(vk_hazards *hazards, const vyre__command *commands,
                     size_t count, bool is_independent, vyre_arena *arena);
/* Starts another submission. */
void vk_hazards_reset(vk_hazards *hazards);
/* Returns true if @p command can join the current submission. */
bool vk_hazards_can_join(const vk_hazards *hazards,
                         const vyre__command *command, bool is_first);
/* Returns true if @p command was only kept out because a duration is
 * unmeasured. */
bool vk_hazards_is_estimate(const vk_hazards *hazards,
                            const vyre__command *command);
/* Returns true if @p command needs a barrier before it. Report the barrier with
 * vk_hazards_add_barrier. */
bool vk_hazards_need_barrier(const vk_hazards *hazards,
                             const vyre__command *command);
void vk_hazards_add_barrier(vk_hazards *hazards);
/* Adds a command to the submission. */
void vk_hazards_add(vk_hazards *hazards, const vyre__command *command);
/* Returns true if the launch can be encoded before it runs: its commands depend
 * on no bytes in device memory, and it fits in one submission. */
bool vk_launch_is_encodable(const vyre__launch *launch);
/* Returns true if an added command, of any submission, writes host bytes that the
 * commands of @p launch depend on. It can only be encoded after that
 * command ran. */
bool vk_hazards_change_uniforms(const vk_hazards *hazards,
                                const vyre__launch *launch);
/* Returns true if the launch binds some of these host bytes. */
bool vk_launch_binds(const vyre__launch *launch, const unsigned char *begin,
                     uint64_t size);

#endif
