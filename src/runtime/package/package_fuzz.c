/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzzes the reader of packages, with raw bytes and with bytes whose head and
 * checksums are made valid, so that the checks behind them run. Everything that
 * an open package shows lies within its bytes; all its programs are decoded, and
 * all its code is offered to the reader of each backend's needs. */
#include <stdlib.h>
#include <string.h>

#include "runtime/package/package.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_code(const vyre_package *package, uint32_t kernel,
                       uint32_t index) {
  vyre_package_code code;
  const unsigned char *data;
  size_t size;
  vyre_status st = {0};
  if (!vyre_package_get_code(package, kernel, index, &code)) abort();
  if (strlen(code.backend) + strlen(code.target) > 2 * package->size) abort();
  if (vyre__package_artifact(package,
                             vyre__package_code_at(package, kernel, index),
                             &data, &size, &st) == VYRE_OK &&
      (data < package->bytes || size != code.bytes ||
       size > (size_t)(package->bytes + package->size - data))) {
    abort();
  }
}

static void check_package(const vyre_package *package) {
  size_t codes = 0;
  for (uint32_t i = 0; i < vyre_package_kernel_count(package); i++) {
    vyre_package_kernel kernel;
    vyre_program *program;
    vyre_status st = {0};
    if (!vyre_package_get_kernel(package, i, &kernel)) abort();
    for (uint32_t k = 0; k < kernel.code_count; k++) check_code(package, i, k);
    codes += kernel.code_count;
    if (vyre_package_read_program(package, kernel.name, &program, &st) !=
            VYRE_OK &&
        (!st.message[0] || !st.fix[0])) {
      abort();
    }
    vyre_program_release(program);
  }
  if (codes != package->code_count) abort();
}

static void check(const unsigned char *bytes, size_t size) {
  vyre_package *package;
  vyre_status st = {0};
  if (vyre_package_open(bytes, size, vyre_allocator_heap(), &package, &st) !=
      VYRE_OK) {
    if (package || !st.message[0] || !st.fix[0]) abort();
    return;
  }
  check_package(package);
  vyre_package_release(package);
}

/* Makes the head and the checksums of all records valid, where their fields
 * allow it. */
static void sign(unsigned char *bytes, size_t size) {
  memcpy(bytes, vyre__package_magic, sizeof vyre__package_magic);
  vyre__put_u32(bytes + VYRE__HEAD_VERSION, VYRE__PACKAGE_VERSION);
  vyre__put_u64(bytes + VYRE__HEAD_SIZE, size);
  vyre__put_u64(bytes + VYRE__HEAD_ZERO, 0);
  uint64_t kernels = vyre__get_u32(bytes + VYRE__HEAD_KERNELS) % 8;
  uint64_t codes = vyre__get_u32(bytes + VYRE__HEAD_CODES) % 32;
  vyre__put_u32(bytes + VYRE__HEAD_KERNELS, (uint32_t)kernels);
  vyre__put_u32(bytes + VYRE__HEAD_CODES, (uint32_t)codes);
  uint64_t codes_at = VYRE__PACKAGE_HEAD + kernels * VYRE__PACKAGE_KERNEL;
  uint64_t texts_at = codes_at + codes * VYRE__PACKAGE_CODE;
  for (uint64_t i = 0; i < kernels + codes && texts_at <= size; i++) {
    unsigned char *at =
        bytes +
        (i < kernels
             ? VYRE__PACKAGE_HEAD + i * VYRE__PACKAGE_KERNEL + VYRE__KERNEL_AT
             : codes_at + (i - kernels) * VYRE__PACKAGE_CODE + VYRE__CODE_AT);
    uint64_t from = vyre__get_u64(at), count = vyre__get_u64(at + 8);
    if (from > size || count > size - from || from < texts_at) continue;
    vyre__package_sum_data(bytes + from, (size_t)count, at + 16);
  }
  uint64_t data_at = vyre__get_u64(bytes + VYRE__HEAD_DATA);
  if (data_at < VYRE__PACKAGE_HEAD || data_at > size) return;
  vyre__package_sum_index(bytes, (size_t)data_at,
                          bytes + VYRE__PACKAGE_CHECKSUM_AT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  check(data, size);
  if (size < VYRE__PACKAGE_HEAD) return 0;
  unsigned char *copy = malloc(size);
  if (!copy) return 0;
  memcpy(copy, data, size);
  sign(copy, size);
  check(copy, size);
  free(copy);
  return 0;
}
