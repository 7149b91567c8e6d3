/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files with probe results. A file is valid only if it has the full key, every
 * operation in order, and a correct hash over all of it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vyre/version.h"

#include "base/enum_name.h"
#include "base/hash.h"
#include "hal/backend.h"
#include "runtime/probe/probe.h"

enum { MAX_BYTES = 1 << 14, NAME_BYTES = 64 };

/* Increase it when the tests of the probe change. */
enum { PROBE_VERSION = 3 };

static const char *const mode_names[] = {VYRE_FLOAT_MODE_MAP(VYRE__ENUM_TEXT)};

size_t vyre__probe_key(vyre_device *device, char key[VYRE__PROBE_KEY]) {
  vyre_device_info info = {.description = "", .driver = "", .note = ""};
  if (!device->backend->describe(device->backend, device->index, &info))
    return 0;
  /* Float results depend on the features too. */
  vyre__bytes features = {.allocator = device->allocator};
  if (device->backend->features) device->backend->features(device, &features);
  int length = snprintf(
      key, VYRE__PROBE_KEY,
      "probe %d vyre %s\n%zu %s\n%zu %s\n%zu %s\n%zu %.*s\n", PROBE_VERSION,
      VYRE_VERSION_STRING, strlen(device->backend->name), device->backend->name,
      strlen(info.description), info.description, strlen(info.driver),
      info.driver, features.size, (int)features.size,
      features.data ? (const char *)features.data : "");
  bool is_valid = length > 0 && length < VYRE__PROBE_KEY && !features.failed;
  vyre__bytes_deinit(&features);
  return is_valid ? (size_t)length : 0;
}

static const char domain[] = "vyre probe file";

static void name_file(const char *key, size_t length, char out[NAME_BYTES]) {
  char hash[VYRE_HASH128_TEXT];
  vyre_hash128_text(vyre__hash_of(domain, key, length), hash);
  (void)snprintf(out, NAME_BYTES, VYRE__CACHE_PROBE "%s", hash);
}

/* Writes the contents of the file. Returns their length. */
static size_t put_file(const char *key, size_t key_length,
                       const vyre_float_op_info *float_ops, char *out) {
  char hash[VYRE_HASH128_TEXT];
  size_t used = (size_t)snprintf(out, MAX_BYTES, "key %zu\n", key_length);
  memcpy(out + used, key, key_length);
  used += key_length;
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    used +=
        (size_t)snprintf(out + used, MAX_BYTES - used, "%s: %s %llu %llu\n",
                         float_ops[i].operation, mode_names[float_ops[i].mode],
                         (unsigned long long)float_ops[i].tested,
                         (unsigned long long)float_ops[i].wrong);
  }
  vyre_hash128_text(vyre__hash_of(domain, out, used), hash);
  used += (size_t)snprintf(out + used, MAX_BYTES - used, "sum %s\n", hash);
  return used;
}

/* Parses one line "name: mode tested wrong" at *at. */
static bool parse_line(const char **at, const vyre_float_op_info *expected,
                       vyre_float_op_info *out) {
  size_t name = strlen(expected->operation);
  char mode[16];
  unsigned long long tested, wrong;
  int used = 0;
  if (strncmp(*at, expected->operation, name) != 0) return false;
  if (sscanf(*at + name, ": %15s %llu %llu%n", mode, &tested, &wrong, &used) !=
          3 ||
      (*at)[name + (size_t)used] != '\n') {
    return false;
  }
  *out = (vyre_float_op_info){.operation = expected->operation,
                              .mode = VYRE_FLOAT_MODE_COUNT,
                              .tested = tested,
                              .wrong = wrong};
  for (int i = 0; i < VYRE_FLOAT_MODE_COUNT; i++) {
    if (strcmp(mode, mode_names[i]) == 0) out->mode = (vyre_float_mode)i;
  }
  *at += name + (size_t)used + 1;
  return out->mode != VYRE_FLOAT_MODE_COUNT;
}

bool vyre__probe_load(const vyre__cache *cache, const char *key,
                      size_t key_length, vyre_float_op_info *float_ops) {
  char name[NAME_BYTES], bytes[MAX_BYTES + 1], expected_bytes[MAX_BYTES];
  vyre_float_op_info found[VYRE__FLOAT_OP_COUNT];
  vyre__cache_refusal why;
  int fd = vyre__cache_open(cache, false, &why);
  if (fd < 0) return false;
  name_file(key, key_length, name);
  size_t length = 0;
  if (vyre__cache_file_bytes(fd, name, bytes, MAX_BYTES - 1, &length)) {
    vyre__cache_touch(fd, name);
  }
  close(fd);
  bytes[length] = '\0';
  size_t head = (size_t)snprintf(expected_bytes, sizeof expected_bytes,
                                 "key %zu\n", key_length);
  if (length < head + key_length) return false;
  const char *at = bytes + head + key_length;
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    if (!parse_line(&at, &vyre__float_op_is_exact[i], &found[i])) return false;
  }
  /* The file must equal what would be written now: key, lines and hash. */
  if (put_file(key, key_length, found, expected_bytes) != length ||
      memcmp(expected_bytes, bytes, length) != 0) {
    return false;
  }
  memcpy(float_ops, found, sizeof found);
  return true;
}

bool vyre__probe_save(const vyre__cache *cache, const char *key,
                      size_t key_length, const vyre_float_op_info *float_ops) {
  char name[NAME_BYTES], bytes[MAX_BYTES], reason[VYRE__CACHE_REASON];
  vyre__cache_refusal why;
  int folder = vyre__cache_open(cache, true, &why);
  if (folder < 0) return false;
  name_file(key, key_length, name);
  size_t length = put_file(key, key_length, float_ops, bytes);
  bool is_ok = vyre__cache_file_write(folder, name, (unsigned char *)bytes,
                                      length, reason);
  close(folder);
  return is_ok;
}
