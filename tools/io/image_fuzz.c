/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* PNG, PGM and PPM files: a picture that is accepted comes back the same when it
 * is written and read again; a refusal names the buffer and has a remedy. Chunks
 * get their right checksums first, so that the fuzzer reaches what is behind
 * them. */
#include <stdlib.h>
#include <string.h>

#include "io/checksum.h"
#include "io/element_text.h"
#include "io/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)        \
  do {                         \
    if (!(condition)) abort(); \
  } while (0)

/* As much as the readers are given to decode; more is slow, not new. */
enum { MAX_BYTES = 1 << 16, MAX_SAMPLES = 1 << 20 };

static void repair(unsigned char *bytes, size_t size) {
  for (size_t at = 8; size - at >= 12 && at < size;) {
    size_t length = (size_t)bytes[at] << 24 | (size_t)bytes[at + 1] << 16 |
                    (size_t)bytes[at + 2] << 8 | bytes[at + 3];
    if (length > size - at - 12) return;
    uint32_t sum = crc32_png(bytes + at + 4, length + 4);
    for (int i = 0; i < 4; i++) {
      bytes[at + 8 + length + (size_t)i] = (unsigned char)(sum >> (24 - 8 * i));
    }
    at += length + 12;
  }
}

/* Writes the elements in @p format and reads them back. */
static void write_again(image_format format, const image_shape *shape,
                        const vyre_buffer_decl *buffer,
                        const unsigned char *elements, uint64_t count) {
  sink out = {0};
  problem wrong = {0};
  vyre_arena arena = {0};
  image made;
  const unsigned char *again;
  uint64_t again_count;
  MUST(image_put(format, shape, buffer, elements, &out, &wrong));
  input in = {.label = "again", .text = out.data, .length = out.length};
  bool is_png_file = format == IMAGE_PNG;
  image_target target = {.buffer = buffer, .shape = *shape, .asked_as = ""};
  MUST(
      (is_png_file ? png_read : pnm_read)(&in, &target, &arena, &made, &wrong));
  MUST(memcmp(&made.shape, shape, sizeof *shape) == 0);
  MUST(image_to_elements(&made, buffer, &in, &arena, &again, &again_count,
                         &wrong));
  MUST(again_count == count);
  MUST(memcmp(again, elements,
              (size_t)count * element_bytes(buffer->element)) == 0);
  vyre_arena_deinit(&arena);
  sink_deinit(&out);
}

static void must_be_told(const problem *wrong) {
  MUST(wrong->kind && wrong->fix[0] && wrong->message[0]);
}

static void take(const input *in, const image *made) {
  static const vyre_element elements[] = {VYRE_ELEMENT_U8, VYRE_ELEMENT_U16,
                                          VYRE_ELEMENT_U32, VYRE_ELEMENT_F32,
                                          VYRE_ELEMENT_F64};
  uint64_t samples =
      (uint64_t)made->shape.width * made->shape.height * made->shape.channels;
  if (samples > MAX_SAMPLES) return;
  for (size_t i = 0; i < sizeof elements / sizeof elements[0]; i++) {
    vyre_buffer_decl buffer = {.name = "x", .element = elements[i]};
    vyre_arena arena = {0};
    problem wrong = {0};
    const unsigned char *bytes;
    uint64_t count;
    if (image_to_elements(made, &buffer, in, &arena, &bytes, &count, &wrong)) {
      bool is_same = i < 2 && made->maximum == (made->bits == 8 ? 255 : 65535);
      if (is_same) {
        write_again(IMAGE_PNG, &made->shape, &buffer, bytes, count);
      }
      if (is_same && image_has_channels(IMAGE_PNM, made->shape.channels)) {
        write_again(IMAGE_PNM, &made->shape, &buffer, bytes, count);
      }
    } else {
      must_be_told(&wrong);
    }
    vyre_arena_deinit(&arena);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static unsigned char bytes[MAX_BYTES + 1];
  if (size > MAX_BYTES) return 0;
  if (size) memcpy(bytes, data, size);
  bytes[size] = '\0';
  bool png = is_png((const char *)bytes, size);
  if (png) repair(bytes, size);
  /* Of its own size, so that a sanitizer sees a read behind it. */
  unsigned char *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  memcpy(copy, bytes, size ? size : 1);
  input in = {.label = "fuzz", .text = (const char *)copy, .length = size};
  vyre_arena arena = {0};
  problem wrong = {0};
  image made;
  /* f32 takes samples of any depth. */
  vyre_buffer_decl floats = {.name = "x", .element = VYRE_ELEMENT_F32};
  image_target target = {.buffer = &floats};
  if ((png ? png_read : pnm_read)(&in, &target, &arena, &made, &wrong)) {
    take(&in, &made);
  } else {
    must_be_told(&wrong);
  }
  vyre_arena_deinit(&arena);
  free(copy);
  /* The same bytes as the value of --set or --out. */
  size_t length;
  image_shape shape;
  problem refused = {0};
  if (image_split_shape((const char *)bytes, &length, &shape, &refused)) {
    MUST(length <= strlen((const char *)bytes));
    MUST(!shape.width == !shape.height && shape.channels <= 4);
  } else {
    must_be_told(&refused);
  }
  return 0;
}
