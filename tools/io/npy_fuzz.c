/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzz target for .npy files. Accepted data lies inside the file and
 * survives writing and reading; errors name the buffer and have a fix. */
#include <stdlib.h>
#include <string.h>

#include "io/element_text.h"
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)        \
  do {                         \
    if (!(condition)) abort(); \
  } while (0)

static void write_again(const vyre_buffer_decl *buffer,
                        const unsigned char *elements, uint64_t count) {
  sink out = {0};
  problem wrong = {0};
  const unsigned char *again;
  uint64_t again_count;
  size_t length = (size_t)count * element_bytes(buffer->element);
  npy_put_header(buffer->element, count, &out);
  sink_bytes(&out, (const char *)elements, length);
  input in = {.label = "again.npy", .text = out.data, .length = out.length};
  MUST(npy_read(&in, buffer, &again, &again_count, &wrong));
  MUST(again_count == count && memcmp(again, elements, length) == 0);
  sink_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {.label = "fuzz.npy",
              .text = size ? (const char *)data : "",
              .length = size};
  for (int e = 0; e < VYRE_ELEMENT_COUNT; e++) {
    vyre_buffer_decl buffer = {.name = "x", .element = (vyre_element)e};
    problem wrong = {0};
    const unsigned char *elements = NULL;
    uint64_t count = 0;
    if (npy_read(&in, &buffer, &elements, &count, &wrong)) {
      MUST((const uint8_t *)elements >= (const uint8_t *)in.text);
      MUST(elements + count * element_bytes(buffer.element) ==
           (const unsigned char *)in.text + size);
      write_again(&buffer, elements, count);
    } else {
      MUST(wrong.kind && wrong.fix[0] && strstr(wrong.message, "buffer 'x'"));
    }
  }
  return 0;
}
