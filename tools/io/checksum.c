/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/checksum.h"

uint32_t adler32(const unsigned char *data, size_t size) {
  uint32_t a = 1, b = 0;
  while (size > 0) {
    /* Number of bytes after which b still fits 32 bits. */
    size_t part = size < 5552 ? size : 5552;
    for (size_t i = 0; i < part; i++) {
      a += data[i];
      b += a;
    }
    a %= 65521;
    b %= 65521;
    data += part;
    size -= part;
  }
  return b << 16 | a;
}

/* Processes four bits per step. */
static const uint32_t steps[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
    0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
    0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

uint32_t crc32_png(const unsigned char *data, size_t size) {
  uint32_t sum = 0xFFFFFFFF;
  for (size_t i = 0; i < size; i++) {
    sum ^= data[i];
    sum = steps[sum & 15] ^ sum >> 4;
    sum = steps[sum & 15] ^ sum >> 4;
  }
  return ~sum;
}
