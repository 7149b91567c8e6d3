/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Packages: kernels compiled ahead of time.
 *
 *   targets.c  the targets of all backends
 *   write.c    compiles programs and writes a package
 *   read.c     opens a package and checks its index
 *   load.c     makes a pipeline from the code in a package
 *
 * Format, in little endian:
 *   head       magic, version, counts, size of the texts, size of the file,
 *              offset of the data, 8 zero bytes, checksum of head and index
 *   index      a record for each kernel, a record for each code
 *   texts      names, each with a NUL, and needs
 *   data       programs and artifacts, each at a multiple of 16
 * Gaps are zero. Records have the checksum of their data, so that opening a
 * package does not read all of it. */
#ifndef VYRE_RUNTIME_PACKAGE_PACKAGE_H
#define VYRE_RUNTIME_PACKAGE_PACKAGE_H

#include <stdatomic.h>

#include "vyre/package.h"

#include "base/bytes.h"
#include "hal/backend.h"
#include "hal/portable.h"

enum {
  VYRE__PACKAGE_VERSION = 1,
  VYRE__PACKAGE_HEAD = 64,
  VYRE__PACKAGE_CHECKSUM_AT = 48,
  VYRE__PACKAGE_KERNEL = 64, /* bytes of a record */
  VYRE__PACKAGE_CODE = 80,
  VYRE__PACKAGE_ALIGNMENT = 16, /* of data */
  VYRE__PACKAGE_MAX_KERNELS = 1 << 16,
  VYRE__PACKAGE_MAX_CODES = 1 << 20,
  VYRE__PACKAGE_MAX_TEXT = 1 << 26
};

/* Fields of the head, and of the two kinds of records, as offsets. */
enum {
  VYRE__HEAD_VERSION = 8,
  VYRE__HEAD_KERNELS = 12,
  VYRE__HEAD_CODES = 16,
  VYRE__HEAD_TEXT = 20,
  VYRE__HEAD_SIZE = 24,
  VYRE__HEAD_DATA = 32,
  VYRE__HEAD_ZERO = 40,

  VYRE__KERNEL_NAME = 0, /* offset in the texts */
  VYRE__KERNEL_FIRST = 4,
  VYRE__KERNEL_COUNT = 8,
  VYRE__KERNEL_ZERO = 12,
  VYRE__KERNEL_AT = 16, /* offset of the program in the file */
  VYRE__KERNEL_SIZE = 24,
  VYRE__KERNEL_CHECKSUM = 32,
  VYRE__KERNEL_FINGERPRINT = 48,

  VYRE__CODE_BACKEND = 0, /* offset in the texts */
  VYRE__CODE_TARGET = 4,
  VYRE__CODE_VERSION = 8,
  VYRE__CODE_WORKGROUP = 12,
  VYRE__CODE_ULP = 24,
  VYRE__CODE_COUNTS = 28,
  VYRE__CODE_NEEDS = 32, /* offset in the texts */
  VYRE__CODE_NEEDS_SIZE = 36,
  VYRE__CODE_AT = 40,
  VYRE__CODE_SIZE = 48,
  VYRE__CODE_CHECKSUM = 56,
  VYRE__CODE_ZERO = 72
};

extern const unsigned char vyre__package_magic[8];

static inline void vyre__put_u32(unsigned char *to, uint32_t value) {
  for (int i = 0; i < 4; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static inline void vyre__put_u64(unsigned char *to, uint64_t value) {
  for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static inline uint32_t vyre__get_u32(const unsigned char *from) {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) value |= (uint32_t)from[i] << (8 * i);
  return value;
}

static inline uint64_t vyre__get_u64(const unsigned char *from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << (8 * i);
  return value;
}

struct vyre_package {
  vyre_allocator allocator;
  atomic_uint references;
  const unsigned char *bytes;
  size_t size;
  unsigned char *owned; /* the bytes, if the package owns them; else NULL */
  uint32_t kernel_count, code_count, text_size;
  const unsigned char *kernels, *codes; /* records, in the bytes */
  const char *texts;
};

/* Computes the checksum of the head and the index, up to offset @p end, or of
 * data. */
void vyre__package_sum_index(const unsigned char *bytes, size_t end,
                             unsigned char out[16]);
void vyre__package_sum_data(const unsigned char *data, size_t size,
                            unsigned char out[16]);

/* Finds the kernel @p name, or the only one if it is NULL.
 * Errors: VYRE_INVALID_ARGUMENT. */
vyre_code vyre__package_find(const vyre_package *package, const char *name,
                             uint32_t *out, vyre_status *st);
/* Returns the records of a kernel and of its code @p index. */
const unsigned char *vyre__package_kernel_at(const vyre_package *package,
                                             uint32_t kernel);
const unsigned char *vyre__package_code_at(const vyre_package *package,
                                           uint32_t kernel, uint32_t index);
/* Decodes the program of a kernel. Errors: as vyre_package_read_program. */
vyre_code vyre__package_program(const vyre_package *package, uint32_t kernel,
                                vyre_program **out, vyre_status *st);
/* Sets *data to the artifact of a code record, after checking it.
 * Errors: VYRE_INVALID_ARGUMENT. */
vyre_code vyre__package_artifact(const vyre_package *package,
                                 const unsigned char *code,
                                 const unsigned char **data, size_t *size,
                                 vyre_status *st);

/* --- targets --------------------------------------------------------------- */

typedef struct vyre__package_target {
  const vyre__backend *backend;
  uint32_t index; /* among the targets of the backend */
} vyre__package_target;

/* Returns target @p index of all backends. False after the last. */
bool vyre__package_target_at(size_t index, vyre__package_target *out);
typedef enum vyre__package_choice {
  VYRE__TARGET_UNUSED,
  VYRE__TARGET_OPTIONAL, /* left out for a kernel that it does not support */
  VYRE__TARGET_NAMED
} vyre__package_choice;
/* Returns how @p list selects @p target: NAMED if the list has the target's own
 * name, OPTIONAL if it has the name of its backend or is NULL, else UNUSED. The
 * list has names separated by commas. */
vyre__package_choice vyre__package_selects(const char *list,
                                           const vyre__package_target *target);
/* Checks that every name of @p list is a target or a backend.
 * Errors: VYRE_INVALID_ARGUMENT. */
vyre_code vyre__package_check_targets(const char *list, vyre_status *st);

/* --- loading --------------------------------------------------------------- */

/* Makes the pipeline that @p wanted describes from kernel @p kernel of @p
 * package, or compiles it if @p may_compile.
 * Errors: as vyre_pipeline_load. */
vyre_code vyre__package_load(vyre_package *package, uint32_t kernel,
                             const vyre_pipeline *wanted, bool may_compile,
                             vyre_pipeline **out, vyre_status *st);

#endif
