/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Content hashes over a defined byte stream: numbers go in little endian, text
 * goes in with its length first, so that different contents give different
 * streams, the same on every machine. */
#ifndef VYRE_BASE_HASH_H
#define VYRE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/writer.h"

enum { VYRE__HASHER_BYTES = 576, VYRE__HASHER_PENDING = 256 };

/* Room for the library's own state, so that no header of it is needed here. */
typedef struct vyre__hasher {
  _Alignas(64) unsigned char state[VYRE__HASHER_BYTES];
  /* What was not yet handed on: numbers are small, and the library's own way of
   * putting them together takes long for each. */
  size_t pending_count;
  unsigned char pending[VYRE__HASHER_PENDING];
} vyre__hasher;

/* @p domain separates streams of different meaning; part of the content. */
void vyre__hash_begin(vyre__hasher *hasher, const char *domain);
void vyre__hash_bytes(vyre__hasher *hasher, const void *bytes, size_t count);
void vyre__hash_text(vyre__hasher *hasher, const char *text);
vyre_hash128 vyre__hash_end(vyre__hasher *hasher);

void vyre__hash_hand_on(vyre__hasher *hasher); /* what is pending */

/* Room for @p count more bytes, sizeof hasher->pending at most. */
static inline unsigned char *vyre__hash_room(vyre__hasher *hasher,
                                             size_t count) {
  if (count > sizeof hasher->pending - hasher->pending_count) {
    vyre__hash_hand_on(hasher);
  }
  unsigned char *room = hasher->pending + hasher->pending_count;
  hasher->pending_count += count;
  return room;
}

static inline void vyre__hash_u8(vyre__hasher *hasher, uint8_t value) {
  *vyre__hash_room(hasher, 1) = value;
}

static inline void vyre__hash_u32(vyre__hasher *hasher, uint32_t value) {
  unsigned char *bytes = vyre__hash_room(hasher, 4);
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline void vyre__hash_u64(vyre__hasher *hasher, uint64_t value) {
  unsigned char *bytes = vyre__hash_room(hasher, 8);
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

#endif
