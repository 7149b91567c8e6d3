/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The way between the host and memory that only the device sees: a ring of pieces of
 * memory that both see. A transfer goes piece by piece. Those to the device are
 * submitted and not waited for: all that follows on the queue sees what they wrote,
 * and a piece is waited for when its turn comes again. Those from the device are sent
 * ahead, as many as there are pieces for, and copied out in their order.
 *
 * A piece is of one thread from `take` to `give`. Who has some takes more only if they
 * are free, so that nobody waits for what another waits for. */
#include <string.h>

#include "backend/vulkan/vulkan.h"
#include "base/status.h"

static vk_staging_piece *find_free(vk_ring *ring) {
  for (uint32_t i = 0; i < VK_PIECES; i++) {
    vk_staging_piece *piece = &ring->pieces[(ring->next + i) % VK_PIECES];
    if (piece->is_held) continue;
    ring->next = (ring->next + i + 1) % VK_PIECES;
    return piece;
  }
  return NULL;
}

static void give(vk_device *device, vk_staging_piece *piece) {
  vk_ring *ring = &device->ring;
  pthread_mutex_lock(&ring->lock);
  piece->is_held = false;
  pthread_cond_broadcast(&ring->given);
  pthread_mutex_unlock(&ring->lock);
}

/* Waits for what the piece was sent with. */
static vyre_code settle(vk_device *device, vk_staging_piece *piece,
                        vyre_status *st) {
  if (!piece->is_flying) return VYRE_OK;
  VYRE_TRY(vk_wait(device, &piece->ticket, st));
  piece->is_flying = false;
  return VYRE_OK;
}

static vyre_code begin(vk_device *device, vk_staging_piece *piece,
                       vyre_status *st) {
  const vk_api *api = &device->api;
  const VkCommandBufferBeginInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  VYRE_TRY(settle(device, piece, st));
  VkResult result =
      piece->pool
          ? api->ResetCommandPool(device->handle, piece->pool, 0)
          : vk_commands_make(device, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                             VK_COMMAND_BUFFER_LEVEL_PRIMARY, &piece->pool,
                             &piece->commands);
  if (result == VK_SUCCESS) {
    result = api->BeginCommandBuffer(piece->commands, &info);
  }
  VK_TRY(device, result, "a copy", st);
  return VYRE_OK;
}

/* The first who needs it; not under the lock, since what makes room for it waits for
 * copies. */
static vyre_code make_memory(vk_device *device, vyre_status *st) {
  vk_ring *ring = &device->ring;
  vk_range made;
  pthread_mutex_lock(&ring->lock);
  bool is_there = ring->memory.block != NULL;
  pthread_mutex_unlock(&ring->lock);
  if (is_there) return VYRE_OK;
  VYRE_TRY(vk_range_take(device, VK_WHERE_HOST,
                         (uint64_t)VK_PIECES * VK_PIECE_BYTES, &made, st));
  pthread_mutex_lock(&ring->lock);
  if (!ring->memory.block) {
    ring->memory = made;
    made = (vk_range){0};
  }
  pthread_mutex_unlock(&ring->lock);
  vk_range_give(device, &made);
  return VYRE_OK;
}

/* A piece whose commands are being recorded. *out is NULL if all are held and
 * @p is_patient is not set. */
static vyre_code take(vk_device *device, bool is_patient,
                      vk_staging_piece **out, vyre_status *st) {
  vk_ring *ring = &device->ring;
  *out = NULL;
  VYRE_TRY(make_memory(device, st));
  pthread_mutex_lock(&ring->lock);
  vk_staging_piece *found = find_free(ring);
  while (!found && is_patient) {
    pthread_cond_wait(&ring->given, &ring->lock);
    found = find_free(ring);
  }
  if (found) found->is_held = true;
  pthread_mutex_unlock(&ring->lock);
  *out = found;
  if (!found) return VYRE_OK;
  vyre_code code = begin(device, found, st);
  if (code == VYRE_OK) return VYRE_OK;
  give(device, found);
  *out = NULL;
  return code;
}

/* Ends what was recorded, and submits it. */
static vyre_code send(vk_device *device, vk_staging_piece *piece,
                      vyre_status *st) {
  vk_cmd_barrier(device, piece->commands);
  VK_TRY(device, device->api.EndCommandBuffer(piece->commands),
         "vkEndCommandBuffer", st);
  VYRE_TRY(vk_submit(device, &piece->commands, 1, &piece->ticket, st));
  piece->is_flying = true;
  return VYRE_OK;
}

/* --- transfers ---------------------------------------------------------------------*/

static uint64_t place_of(const vk_device *device,
                         const vk_staging_piece *piece) {
  return (uint64_t)(piece - device->ring.pieces) * VK_PIECE_BYTES;
}

static uint64_t part_of(uint64_t size, uint64_t at) {
  return size - at < VK_PIECE_BYTES ? size - at : VK_PIECE_BYTES;
}

static void count(vk_device *device, uint64_t bytes) {
  atomic_fetch_add_explicit(&device->counts.staged_pieces, 1,
                            memory_order_relaxed);
  atomic_fetch_add_explicit(&device->counts.staged_bytes, bytes,
                            memory_order_relaxed);
}

vyre_code vk_upload(vk_device *device, const vk_range *to, uint64_t offset,
                    const unsigned char *from, uint64_t size, vyre_status *st) {
  const vk_range *memory = &device->ring.memory;
  for (uint64_t at = 0; at < size; at += VK_PIECE_BYTES) {
    uint64_t part = part_of(size, at);
    vk_staging_piece *piece;
    VYRE_TRY(take(device, true, &piece, st));
    uint64_t place = place_of(device, piece);
    const VkBufferCopy region = {memory->offset + place,
                                 to->offset + offset + at, part};
    memcpy(memory->host + place, from + at, (size_t)part);
    device->api.CmdCopyBuffer(piece->commands, memory->buffer, to->buffer, 1,
                              &region);
    vyre_code code = send(device, piece, st);
    give(device, piece);
    if (code != VYRE_OK) return code;
    count(device, part);
  }
  return VYRE_OK;
}

vyre_code vk_fill(vk_device *device, const vk_range *to, uint64_t offset,
                  uint64_t size, vyre_status *st) {
  vk_staging_piece *piece;
  VYRE_TRY(take(device, true, &piece, st));
  device->api.CmdFillBuffer(piece->commands, to->buffer, to->offset + offset,
                            size, 0);
  vyre_code code = send(device, piece, st);
  give(device, piece);
  return code;
}

/* Parts of one transfer from the device that are on their way, oldest first. */
typedef struct download {
  vk_device *device;
  const vk_range *from;
  uint64_t offset, size;
  uint64_t sent, came; /* bytes */
  vk_staging_piece *ahead[VK_PIECES];
  uint32_t first, count;
} download;

/* Sends one more; *is_sent: unless all pieces are others'. */
static vyre_code send_ahead(download *d, bool *is_sent, vyre_status *st) {
  vk_device *device = d->device;
  const vk_range *memory = &device->ring.memory;
  vk_staging_piece *piece;
  VYRE_TRY(take(device, d->count == 0, &piece, st));
  *is_sent = piece != NULL;
  if (!piece) return VYRE_OK;
  uint64_t part = part_of(d->size, d->sent);
  const VkBufferCopy region = {d->from->offset + d->offset + d->sent,
                               memory->offset + place_of(device, piece), part};
  device->api.CmdCopyBuffer(piece->commands, d->from->buffer, memory->buffer, 1,
                            &region);
  vyre_code code = send(device, piece, st);
  if (code != VYRE_OK) {
    give(device, piece);
    return code;
  }
  d->ahead[(d->first + d->count++) % VK_PIECES] = piece;
  d->sent += part;
  count(device, part);
  return VYRE_OK;
}

/* Takes the oldest out; into @p to, if that is still of use. */
static vyre_code receive(download *d, unsigned char *to, vyre_status *st) {
  vk_staging_piece *piece = d->ahead[d->first];
  uint64_t part = part_of(d->size, d->came);
  vyre_code code = settle(d->device, piece, st);
  if (code == VYRE_OK && to) {
    memcpy(to + d->came,
           d->device->ring.memory.host + place_of(d->device, piece),
           (size_t)part);
  }
  d->first = (d->first + 1) % VK_PIECES;
  d->count--;
  d->came += part;
  give(d->device, piece);
  return code;
}

vyre_code vk_download(vk_device *device, const vk_range *from, uint64_t offset,
                      unsigned char *to, uint64_t size, vyre_status *st) {
  download d = {.device = device, .from = from, .offset = offset, .size = size};
  vyre_code code = VYRE_OK;
  while (d.came < size && code == VYRE_OK) {
    bool is_sent = true;
    while (code == VYRE_OK && is_sent && d.sent < size && d.count < VK_PIECES) {
      code = send_ahead(&d, &is_sent, st);
    }
    if (code == VYRE_OK && d.count > 0) code = receive(&d, to, st);
  }
  while (d.count > 0) (void)receive(&d, NULL, NULL);
  return code;
}

/* --- the ring ------------------------------------------------------------------------*/

void vk_ring_init(vk_device *device) {
  pthread_mutex_init(&device->ring.lock, NULL);
  pthread_cond_init(&device->ring.given, NULL);
}

void vk_ring_settle(vk_device *device) {
  vk_ring *ring = &device->ring;
  for (uint32_t i = 0; i < VK_PIECES; i++) {
    vk_staging_piece *piece = &ring->pieces[i];
    pthread_mutex_lock(&ring->lock);
    while (piece->is_held) pthread_cond_wait(&ring->given, &ring->lock);
    piece->is_held = true;
    pthread_mutex_unlock(&ring->lock);
    (void)settle(device, piece, NULL);
    give(device, piece);
  }
}

void vk_ring_finish(vk_device *device) {
  vk_ring *ring = &device->ring;
  vk_ring_settle(device);
  for (uint32_t i = 0; i < VK_PIECES; i++) {
    vk_staging_piece *piece = &ring->pieces[i];
    vk_ticket_finish(device, &piece->ticket);
    device->api.DestroyCommandPool(device->handle, piece->pool, NULL);
    *piece = (vk_staging_piece){0};
  }
  vk_range_give(device, &ring->memory);
  pthread_cond_destroy(&ring->given);
  pthread_mutex_destroy(&ring->lock);
}
