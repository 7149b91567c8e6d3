/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of probes in files. What is read is believed only if it is all there:
 * the whole key, every operation in its order, and a hash of all before it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vyre/version.h"

#include "base/hash.h"
#include "hal/backend.h"
#include "runtime/probe/probe.h"

enum { MOST_BYTES = 1 << 14, NAME_BYTES = 64 };

/* Changes with what is tested, or how. */
enum { PROBE_VERSION = 3 };

static const char *const forms[] = {
#define VYRE_X2(name, text) [name] = (text),
    VYRE_FLOAT_MODE_MAP(VYRE_X2)
#undef VYRE_X2
};

/* A text of the key that grows up to its room. */
typedef struct key_text {
  char *bytes;
  size_t length, room;
} key_text;

static bool add_text(void *self, const char *bytes, size_t length) {
  key_text *text = self;
  if (length > text->room - text->length) return false;
  if (length > 0) memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
  return true;
}

/* What the backend's code depends on, options that were chosen among it: its
 * floats depend on that too. */
static bool put_features(vyre_device *device, key_text *key) {
  char bytes[VYRE__PROBE_KEY], head[32];
  key_text text = {bytes, 0, sizeof bytes};
  if (device->backend->features &&
      !device->backend->features(device, (vyre_writer){add_text, &text})) {
    return false;
  }
  int length = snprintf(head, sizeof head, "%zu ", text.length);
  return add_text(key, head, (size_t)length) &&
         add_text(key, bytes, text.length) && add_text(key, "\n", 1);
}

size_t vyre__probe_key(vyre_device *device, char key[VYRE__PROBE_KEY]) {
  vyre_device_info info = {.description = "", .driver = "", .note = ""};
  if (!device->backend->describe(device->index, &info)) return 0;
  int length = snprintf(
      key, VYRE__PROBE_KEY, "probe %d vyre %s\n%zu %s\n%zu %s\n%zu %s\n",
      PROBE_VERSION, VYRE_VERSION_STRING, strlen(device->backend->name),
      device->backend->name, strlen(info.description), info.description,
      strlen(info.driver), info.driver);
  if (length <= 0 || length >= VYRE__PROBE_KEY) return 0;
  key_text text = {key, (size_t)length, VYRE__PROBE_KEY};
  return put_features(device, &text) ? text.length : 0;
}

static vyre_hash128 hash_of(const char *bytes, size_t length) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre probe file");
  vyre__hash_bytes(&hasher, bytes, length);
  return vyre__hash_end(&hasher);
}

static void name_file(const char *key, size_t length, char out[NAME_BYTES]) {
  char hash[VYRE_HASH128_TEXT];
  vyre_hash128_text(hash_of(key, length), hash);
  (void)snprintf(out, NAME_BYTES, VYRE__CACHE_PROBE "%s", hash);
}

/* All that a file holds for this key and these classes. Returns its length. */
static size_t put_file(const char *key, size_t key_length,
                       const vyre_float_op_info *classes, char *out) {
  char hash[VYRE_HASH128_TEXT];
  size_t used = (size_t)snprintf(out, MOST_BYTES, "key %zu\n", key_length);
  memcpy(out + used, key, key_length);
  used += key_length;
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    used +=
        (size_t)snprintf(out + used, MOST_BYTES - used, "%s: %s %llu %llu\n",
                         classes[i].operation, forms[classes[i].mode],
                         (unsigned long long)classes[i].tested,
                         (unsigned long long)classes[i].wrong);
  }
  vyre_hash128_text(hash_of(out, used), hash);
  used += (size_t)snprintf(out + used, MOST_BYTES - used, "sum %s\n", hash);
  return used;
}

/* One line "name: form tested wrong" at *at. */
static bool read_class(const char **at, const vyre_float_op_info *expected,
                       vyre_float_op_info *out) {
  size_t name = strlen(expected->operation);
  char form[16];
  unsigned long long tested, wrong;
  int used = 0;
  if (strncmp(*at, expected->operation, name) != 0) return false;
  if (sscanf(*at + name, ": %15s %llu %llu%n", form, &tested, &wrong, &used) !=
          3 ||
      (*at)[name + (size_t)used] != '\n') {
    return false;
  }
  *out = (vyre_float_op_info){.operation = expected->operation,
                              .mode = VYRE_FLOAT_MODE_COUNT,
                              .tested = tested,
                              .wrong = wrong};
  for (int i = 0; i < VYRE_FLOAT_MODE_COUNT; i++) {
    if (strcmp(form, forms[i]) == 0) out->mode = (vyre_float_mode)i;
  }
  *at += name + (size_t)used + 1;
  return out->mode != VYRE_FLOAT_MODE_COUNT;
}

bool vyre__probe_load(const vyre__cache *cache, const char *key,
                      size_t key_length, vyre_float_op_info *classes) {
  char name[NAME_BYTES], bytes[MOST_BYTES + 1], again[MOST_BYTES];
  vyre_float_op_info found[VYRE__FLOAT_OP_COUNT];
  vyre__cache_refusal why;
  int fd = vyre__cache_open(cache, false, &why);
  if (fd < 0) return false;
  name_file(key, key_length, name);
  size_t length = 0;
  if (vyre__cache_file_bytes(fd, name, bytes, MOST_BYTES - 1, &length)) {
    vyre__cache_touch(fd, name);
  }
  close(fd);
  bytes[length] = '\0';
  size_t head = (size_t)snprintf(again, sizeof again, "key %zu\n", key_length);
  if (length < head + key_length) return false;
  const char *at = bytes + head + key_length;
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    if (!read_class(&at, &vyre__float_op_is_exact[i], &found[i])) return false;
  }
  /* What would be written now is what must stand there: key, lines and sum. */
  if (put_file(key, key_length, found, again) != length ||
      memcmp(again, bytes, length) != 0) {
    return false;
  }
  memcpy(classes, found, sizeof found);
  return true;
}

bool vyre__probe_save(const vyre__cache *cache, const char *key,
                      size_t key_length, const vyre_float_op_info *classes) {
  char name[NAME_BYTES], bytes[MOST_BYTES], reason[VYRE__CACHE_WHY];
  vyre__cache_refusal why;
  int folder = vyre__cache_open(cache, true, &why);
  if (folder < 0) return false;
  name_file(key, key_length, name);
  size_t length = put_file(key, key_length, classes, bytes);
  bool good = vyre__cache_file_write(folder, name, (unsigned char *)bytes,
                                     length, reason);
  close(folder);
  return good;
}
