/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzzes the reader of the binary form with arbitrary bytes. An accepted
 * program must be written back as the same bytes and read back equal. A
 * rejection must come with a fix. Length and checksum are corrected first;
 * otherwise every input would fail there. */
#include <stdlib.h>
#include <string.h>

#include "vyre/binary.h"

#include "ir/binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_u64(uint8_t *to, uint64_t value) {
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> (8 * i));
}

/* Inputs of version 1 stay in version 1, which has no sections. */
static void mend_head(uint8_t *bytes, size_t size) {
  const uint8_t version =
      bytes[VYRE__BINARY_MAGIC] == 1 ? 1 : VYRE__BINARY_VERSION;
  memset(bytes, 0, VYRE__BINARY_LENGTH_AT);
  memcpy(bytes, VYRE__BINARY_MAGIC_BYTES, VYRE__BINARY_MAGIC);
  bytes[VYRE__BINARY_MAGIC] = version;
  put_u64(bytes + VYRE__BINARY_LENGTH_AT, size);
  vyre_hash128 sum = vyre__binary_checksum(bytes + VYRE__BINARY_HEAD,
                                           size - VYRE__BINARY_HEAD);
  put_u64(bytes + VYRE__BINARY_CHECKSUM_AT, sum.low);
  put_u64(bytes + VYRE__BINARY_CHECKSUM_AT + 8, sum.high);
}

static uint64_t load(const uint8_t *from, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++) value |= (uint64_t)from[i] << (8 * i);
  return value;
}

/* Returns true if the writer must give the same bytes: the current version,
 * without optional sections, which the reader drops. The program was
 * accepted, so its sections are inside the bytes. */
static bool is_canonical(const uint8_t *data, size_t size) {
  if (data[VYRE__BINARY_MAGIC] != VYRE__BINARY_VERSION) return false;
  for (size_t at = VYRE__BINARY_HEAD; at < size;) {
    if (load(data + at + 4, 4) != 0) return false;
    at += VYRE__BINARY_SECTION_HEAD + load(data + at + 8, 8);
  }
  return true;
}

static void check_again(const vyre_program *program, const uint8_t *data,
                        size_t size) {
  vyre_arena arena = {0};
  vyre_status st = {0};
  const uint8_t *bytes;
  size_t length;
  if (vyre_program_write_binary(program, &arena, &bytes, &length, &st)) abort();
  if (is_canonical(data, size) &&
      (length != size || memcmp(bytes, data, size) != 0)) {
    abort();
  }
  vyre_program *again;
  if (vyre_program_read_binary(bytes, length, (vyre_allocator){0}, &again,
                               &st) ||
      !vyre_program_equal(program, again)) {
    abort();
  }
  vyre_program_release(again);
  vyre_arena_deinit(&arena);
}

static void check(const uint8_t *data, size_t size) {
  vyre_status st = {0};
  vyre_program *program;
  vyre_code code =
      vyre_program_read_binary(data, size, (vyre_allocator){0}, &program, &st);
  if (code == VYRE_OK) {
    check_again(program, data, size);
    vyre_program_release(program);
  } else if (program || st.code != code || !st.fix[0]) {
    abort();
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size > 0) check(data, size);
  if (size < VYRE__BINARY_HEAD) return 0;
  uint8_t *copy = malloc(size);
  if (!copy) return 0;
  memcpy(copy, data, size);
  mend_head(copy, size);
  check(copy, size);
  free(copy);
  return 0;
}
