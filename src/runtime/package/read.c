/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opens packages. The bytes may be damaged or hostile, so every offset of the
 * index is checked before it is used. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vyre/binary.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"
#include "ir/keywords.h"
#include "runtime/cache/cache.h"
#include "runtime/package/package.h"

/* Detects text conversions, like the magic number of PNG. */
const unsigned char vyre__package_magic[8] = {0x89, 'V',  'P',  'K',
                                              '\r', '\n', 0x1a, '\n'};

/* --- checksums ------------------------------------------------------------ */

static void put_sum(vyre__hasher *hasher, unsigned char out[16]) {
  vyre_hash128 sum = vyre__hash_end(hasher);
  vyre__put_u64(out, sum.low);
  vyre__put_u64(out + 8, sum.high);
}

void vyre__package_sum_index(const unsigned char *bytes, size_t end,
                             unsigned char out[16]) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.package.index");
  vyre__hash_bytes(&hasher, bytes, VYRE__PACKAGE_CHECKSUM_AT);
  vyre__hash_bytes(&hasher, bytes + VYRE__PACKAGE_HEAD,
                   end - VYRE__PACKAGE_HEAD);
  put_sum(&hasher, out);
}

void vyre__package_sum_data(const unsigned char *data, size_t size,
                            unsigned char out[16]) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.package.data");
  vyre__hash_bytes(&hasher, data, size);
  put_sum(&hasher, out);
}

/* --- checks --------------------------------------------------------------- */

static vyre_code damaged(vyre_status *st, const char *what, uint64_t value) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "package",
      VYRE_NUMBERS({"number", value}),
      "build the package again with `vyre build`, and copy it as binary data",
      "the package is damaged: %s (%llu)", what, (unsigned long long)value);
}

static vyre_code check_head(const unsigned char *bytes, size_t size,
                            vyre_status *st) {
  if (!vyre_package_is_package(bytes, size)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "package",
        VYRE_NUMBERS({"bytes", size}), "pass a file that `vyre build` wrote",
        "these %llu bytes are not a package", (unsigned long long)size);
  }
  if (size < VYRE__PACKAGE_HEAD) {
    return damaged(st, "it is shorter than its head, bytes", size);
  }
  uint32_t version = vyre__get_u32(bytes + VYRE__HEAD_VERSION);
  if (version != VYRE__PACKAGE_VERSION) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "package",
        VYRE_NUMBERS({"version", version},
                     {"supported_version", VYRE__PACKAGE_VERSION}),
        "build the package again with the `vyre` of this library's version",
        "the package has format version %u; this library reads version %d",
        (unsigned)version, VYRE__PACKAGE_VERSION);
  }
  uint64_t stored = vyre__get_u64(bytes + VYRE__HEAD_SIZE);
  if (stored != size) return damaged(st, "size in its head, bytes", stored);
  if (vyre__get_u64(bytes + VYRE__HEAD_ZERO) != 0) {
    return damaged(st, "reserved bytes of the head", VYRE__HEAD_ZERO);
  }
  return VYRE_OK;
}

/* Sets the tables of @p p from its head. */
static vyre_code read_tables(vyre_package *p, vyre_status *st) {
  p->kernel_count = vyre__get_u32(p->bytes + VYRE__HEAD_KERNELS);
  p->code_count = vyre__get_u32(p->bytes + VYRE__HEAD_CODES);
  p->text_size = vyre__get_u32(p->bytes + VYRE__HEAD_TEXT);
  if (p->kernel_count > VYRE__PACKAGE_MAX_KERNELS) {
    return damaged(st, "number of kernels", p->kernel_count);
  }
  if (p->code_count > VYRE__PACKAGE_MAX_CODES) {
    return damaged(st, "number of codes", p->code_count);
  }
  if (p->text_size > VYRE__PACKAGE_MAX_TEXT) {
    return damaged(st, "size of the texts", p->text_size);
  }
  uint64_t codes_at =
      VYRE__PACKAGE_HEAD + (uint64_t)p->kernel_count * VYRE__PACKAGE_KERNEL;
  uint64_t texts_at = codes_at + (uint64_t)p->code_count * VYRE__PACKAGE_CODE;
  uint64_t end = texts_at + p->text_size;
  uint64_t data_at = vyre__get_u64(p->bytes + VYRE__HEAD_DATA);
  if (data_at < end || data_at - end >= VYRE__PACKAGE_ALIGNMENT ||
      data_at > p->size || data_at % VYRE__PACKAGE_ALIGNMENT != 0) {
    return damaged(st, "offset of its data", data_at);
  }
  unsigned char sum[16];
  vyre__package_sum_index(p->bytes, (size_t)data_at, sum);
  if (memcmp(sum, p->bytes + VYRE__PACKAGE_CHECKSUM_AT, sizeof sum) != 0) {
    return damaged(st, "checksum of its index, bytes", data_at);
  }
  p->kernels = p->bytes + VYRE__PACKAGE_HEAD;
  p->codes = p->bytes + codes_at;
  p->texts = (const char *)p->bytes + texts_at;
  return VYRE_OK;
}

/* Returns true for a name with a NUL. The length is limited, or many records
 * with one long text would take hours. */
static bool is_text(const vyre_package *p, uint32_t at) {
  if (at >= p->text_size) return false;
  size_t left = p->text_size - at;
  size_t max = left < VYRE__MAX_NAME + 1 ? left : VYRE__MAX_NAME + 1;
  return memchr(p->texts + at, 0, max) != NULL;
}

/* Returns true for a name without control characters: tools print it. */
static bool is_label(const vyre_package *p, uint32_t at) {
  return is_text(p, at) &&
         vyre__utf8_printable(p->texts + at, strlen(p->texts + at));
}

/* Returns true if data of a record lies behind the index. */
static bool is_data(const vyre_package *p, const unsigned char *record_at,
                    const unsigned char *record_size) {
  uint64_t at = vyre__get_u64(record_at), size = vyre__get_u64(record_size);
  return at % VYRE__PACKAGE_ALIGNMENT == 0 &&
         at >= vyre__get_u64(p->bytes + VYRE__HEAD_DATA) && at <= p->size &&
         size <= p->size - at;
}

static bool is_valid_kernel(const vyre_package *p, const unsigned char *record,
                            uint32_t first) {
  uint32_t count = vyre__get_u32(record + VYRE__KERNEL_COUNT);
  return is_text(p, vyre__get_u32(record + VYRE__KERNEL_NAME)) &&
         vyre__get_u32(record + VYRE__KERNEL_FIRST) == first &&
         count <= p->code_count - first &&
         vyre__get_u32(record + VYRE__KERNEL_ZERO) == 0 &&
         is_data(p, record + VYRE__KERNEL_AT, record + VYRE__KERNEL_SIZE);
}

static bool is_valid_code(const vyre_package *p, const unsigned char *record) {
  uint32_t needs = vyre__get_u32(record + VYRE__CODE_NEEDS);
  return is_label(p, vyre__get_u32(record + VYRE__CODE_BACKEND)) &&
         is_label(p, vyre__get_u32(record + VYRE__CODE_TARGET)) &&
         vyre__get_u32(record + VYRE__CODE_ULP) <= UINT8_MAX &&
         vyre__get_u32(record + VYRE__CODE_COUNTS) <= 1 &&
         needs <= p->text_size &&
         vyre__get_u32(record + VYRE__CODE_NEEDS_SIZE) <=
             p->text_size - needs &&
         vyre__get_u64(record + VYRE__CODE_ZERO) == 0 &&
         is_data(p, record + VYRE__CODE_AT, record + VYRE__CODE_SIZE);
}

static vyre_code check_records(const vyre_package *p, vyre_status *st) {
  uint32_t first = 0;
  for (uint32_t i = 0; i < p->kernel_count; i++) {
    const unsigned char *record = vyre__package_kernel_at(p, i);
    if (!is_valid_kernel(p, record, first)) {
      return damaged(st, "record of a kernel", i);
    }
    first += vyre__get_u32(record + VYRE__KERNEL_COUNT);
  }
  if (first != p->code_count) return damaged(st, "number of codes", first);
  for (uint32_t i = 0; i < p->code_count; i++) {
    if (!is_valid_code(p, p->codes + (size_t)i * VYRE__PACKAGE_CODE)) {
      return damaged(st, "record of a code", i);
    }
  }
  return VYRE_OK;
}

/* --- opening -------------------------------------------------------------- */

bool vyre_package_is_package(const void *bytes, size_t size) {
  return bytes && size >= sizeof vyre__package_magic &&
         memcmp(bytes, vyre__package_magic, sizeof vyre__package_magic) == 0;
}

/* Opens a package; takes over @p owned, also on failure. */
static vyre_code open_package(const unsigned char *bytes, size_t size,
                              unsigned char *owned, vyre_allocator allocator,
                              vyre_package **out, vyre_status *st) {
  vyre_package *p = vyre__alloc_zeroed(allocator, sizeof *p);
  if (!p) {
    if (owned) vyre__resize(allocator, owned, size + 1, 0);
    return vyre__no_memory(st, "vyre_package_open", "packages", 1);
  }
  *p = (vyre_package){
      .allocator = allocator, .bytes = bytes, .size = size, .owned = owned};
  atomic_init(&p->references, 1);
  vyre_code code = check_head(bytes, size, st);
  if (code == VYRE_OK) code = read_tables(p, st);
  if (code == VYRE_OK) code = check_records(p, st);
  if (code != VYRE_OK) {
    vyre_package_release(p);
    return code;
  }
  *out = p;
  return VYRE_OK;
}

vyre_code vyre_package_open(const void *bytes, size_t size,
                            vyre_allocator allocator, vyre_package **out,
                            vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = NULL;
  VYRE_REQUIRE(st, bytes);
  return open_package(bytes, size, NULL, allocator, out, st);
}

static vyre_code cannot_read(const char *path, int error, vyre_status *st) {
  char text[VYRE__ERROR_TEXT];
  return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                        "path", VYRE_NUMBERS({"error", (uint64_t)error}),
                        "pass the path of a file that this process can read",
                        "the package '%.200s' cannot be read: %s", path,
                        vyre__error_text(error, text));
}

/* Reads @p size bytes. Returns an errno value, or 0. */
static int read_all(int file, unsigned char *to, size_t size) {
  size_t done = 0;
  while (done < size) {
    ssize_t count = read(file, to + done, size - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO; /* the file became shorter */
    done += (size_t)count;
  }
  return 0;
}

static vyre_code read_file(const char *path, int file, vyre_allocator allocator,
                           unsigned char **out, size_t *size, vyre_status *st) {
  struct stat info;
  if (fstat(file, &info) != 0) return cannot_read(path, errno, st);
  if (!S_ISREG(info.st_mode)) return cannot_read(path, EINVAL, st);
  *size = (size_t)info.st_size;
  *out = vyre__resize(allocator, NULL, 0, *size + 1);
  if (!*out) {
    return vyre__no_memory(st, "vyre_package_open_file", "bytes", *size);
  }
  int error = read_all(file, *out, *size);
  if (error == 0) return VYRE_OK;
  vyre__resize(allocator, *out, *size + 1, 0);
  return cannot_read(path, error, st);
}

vyre_code vyre_package_open_file(const char *path, vyre_allocator allocator,
                                 vyre_package **out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = NULL;
  VYRE_REQUIRE(st, path);
  unsigned char *bytes;
  size_t size;
  /* Without O_NONBLOCK, opening a FIFO would wait for a writer. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return cannot_read(path, errno, st);
  vyre_code code = read_file(path, file, allocator, &bytes, &size, st);
  close(file);
  VYRE_TRY(code);
  return open_package(bytes, size, bytes, allocator, out, st);
}

vyre_package *vyre_package_retain(vyre_package *package) {
  if (package) atomic_fetch_add(&package->references, 1);
  return package;
}

void vyre_package_release(vyre_package *package) {
  if (!package || atomic_fetch_sub(&package->references, 1) > 1) return;
  if (package->owned) {
    vyre__resize(package->allocator, package->owned, package->size + 1, 0);
  }
  vyre__resize(package->allocator, package, sizeof *package, 0);
}

/* --- contents ------------------------------------------------------------- */

const unsigned char *vyre__package_kernel_at(const vyre_package *p,
                                             uint32_t kernel) {
  return p->kernels + (size_t)kernel * VYRE__PACKAGE_KERNEL;
}

const unsigned char *vyre__package_code_at(const vyre_package *p,
                                           uint32_t kernel, uint32_t index) {
  uint32_t first =
      vyre__get_u32(vyre__package_kernel_at(p, kernel) + VYRE__KERNEL_FIRST);
  return p->codes + (size_t)(first + index) * VYRE__PACKAGE_CODE;
}

static const char *name_of(const vyre_package *p, uint32_t kernel) {
  return p->texts +
         vyre__get_u32(vyre__package_kernel_at(p, kernel) + VYRE__KERNEL_NAME);
}

size_t vyre_package_kernel_count(const vyre_package *package) {
  return package ? package->kernel_count : 0;
}

bool vyre_package_get_kernel(const vyre_package *package, size_t kernel,
                             vyre_package_kernel *out) {
  if (!out) return false;
  *out = (vyre_package_kernel){0};
  if (kernel >= vyre_package_kernel_count(package)) return false;
  const unsigned char *record =
      vyre__package_kernel_at(package, (uint32_t)kernel);
  const unsigned char *hash = record + VYRE__KERNEL_FINGERPRINT;
  out->name = name_of(package, (uint32_t)kernel);
  out->fingerprint.low = vyre__get_u64(hash);
  out->fingerprint.high = vyre__get_u64(hash + 8);
  out->program_bytes = vyre__get_u64(record + VYRE__KERNEL_SIZE);
  out->code_count = vyre__get_u32(record + VYRE__KERNEL_COUNT);
  return true;
}

bool vyre_package_get_code(const vyre_package *package, size_t kernel,
                           size_t index, vyre_package_code *out) {
  vyre_package_kernel owner;
  if (!out) return false;
  *out = (vyre_package_code){0};
  if (!vyre_package_get_kernel(package, kernel, &owner) ||
      index >= owner.code_count) {
    return false;
  }
  const unsigned char *record =
      vyre__package_code_at(package, (uint32_t)kernel, (uint32_t)index);
  out->backend = package->texts + vyre__get_u32(record + VYRE__CODE_BACKEND);
  out->target = package->texts + vyre__get_u32(record + VYRE__CODE_TARGET);
  for (int axis = 0; axis < 3; axis++) {
    out->workgroup[axis] =
        vyre__get_u32(record + VYRE__CODE_WORKGROUP + (ptrdiff_t)4 * axis);
  }
  out->ulp_budget = (uint8_t)vyre__get_u32(record + VYRE__CODE_ULP);
  out->counts_iterations = vyre__get_u32(record + VYRE__CODE_COUNTS) != 0;
  out->version = vyre__get_u32(record + VYRE__CODE_VERSION);
  out->bytes = vyre__get_u64(record + VYRE__CODE_SIZE);
  return true;
}

vyre_code vyre__package_find(const vyre_package *p, const char *name,
                             uint32_t *out, vyre_status *st) {
  *out = 0;
  if (!name && p->kernel_count == 1) return VYRE_OK;
  for (; name && *out < p->kernel_count; ++*out) {
    if (strcmp(name, name_of(p, *out)) == 0) return VYRE_OK;
  }
  if (!name) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "name",
        VYRE_NUMBERS({"kernels", p->kernel_count}),
        "pass the name of a kernel; `vyre inspect` lists them",
        "the package has %u kernels, and none is named",
        (unsigned)p->kernel_count);
  }
  char shown[VYRE__NAME_TEXT], first[VYRE__NAME_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "name",
      VYRE_NUMBERS({"kernels", p->kernel_count}),
      "pass the name of a kernel; `vyre inspect` lists them",
      "the package has no kernel '%s'; the first of %u is '%s'",
      vyre__name(name, shown), (unsigned)p->kernel_count,
      vyre__name(p->kernel_count > 0 ? name_of(p, 0) : "", first));
}

/* Checks the data of a record, and returns it. */
static vyre_code read_data(const vyre_package *p, uint64_t at, uint64_t size,
                           const unsigned char *sum, const char *what,
                           const unsigned char **out, vyre_status *st) {
  unsigned char actual[16];
  *out = p->bytes + at;
  vyre__package_sum_data(*out, (size_t)size, actual);
  if (memcmp(actual, sum, sizeof actual) == 0) return VYRE_OK;
  return damaged(st, what, at);
}

vyre_code vyre__package_program(const vyre_package *p, uint32_t kernel,
                                vyre_program **out, vyre_status *st) {
  const unsigned char *record = vyre__package_kernel_at(p, kernel), *bytes;
  uint64_t size = vyre__get_u64(record + VYRE__KERNEL_SIZE);
  VYRE_TRY(read_data(p, vyre__get_u64(record + VYRE__KERNEL_AT), size,
                     record + VYRE__KERNEL_CHECKSUM,
                     "checksum of the program at byte", &bytes, st));
  return vyre_program_read_binary(bytes, (size_t)size, p->allocator, out,
                                  vyre__status_open(st));
}

vyre_code vyre__package_artifact(const vyre_package *p,
                                 const unsigned char *code,
                                 const unsigned char **data, size_t *size,
                                 vyre_status *st) {
  *size = (size_t)vyre__get_u64(code + VYRE__CODE_SIZE);
  return read_data(p, vyre__get_u64(code + VYRE__CODE_AT), *size,
                   code + VYRE__CODE_CHECKSUM, "checksum of the code at byte",
                   data, st);
}

vyre_code vyre_package_read_program(const vyre_package *package,
                                    const char *name, vyre_program **out,
                                    vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = NULL;
  VYRE_REQUIRE(st, package);
  uint32_t kernel;
  VYRE_TRY(vyre__package_find(package, name, &kernel, st));
  return vyre__package_program(package, kernel, out, st);
}
