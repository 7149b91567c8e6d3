/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Keys: all inputs of a compile as bytes, and the names of files made from
 * them. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "vyre/binary.h"
#include "vyre/version.h"

#include "base/hash.h"
#include "base/memory.h"
#include "hal/backend.h"
#include "ir/ir.h"
#include "lir/lir.h"
#include "runtime/probe/probe.h"

/* --- building ------------------------------------------------------------- */

static vyre__cache_key_field part_of(const char *name, const void *value,
                                     size_t size) {
  return (vyre__cache_key_field){name, strlen(name), value, size};
}

static vyre__cache_key_field text_part(const char *name, const char *text) {
  return part_of(name, text, strlen(text));
}

static size_t key_size(const vyre__cache_key_field *parts, size_t count) {
  size_t size = 8;
  for (size_t i = 0; i < count; i++) {
    size += 16 + parts[i].name_size + parts[i].size;
  }
  return size;
}

static unsigned char *put_sized(unsigned char *to, const void *bytes,
                                size_t size) {
  vyre__cache_store_u64(to, size);
  if (size > 0) memcpy(to + 8, bytes, size);
  return to + 8 + size;
}

static bool write_key(const vyre__cache_key_field *parts, size_t count,
                      vyre_arena *arena, vyre__cache_key *out) {
  out->size = key_size(parts, count);
  unsigned char *to = vyre_arena_alloc(arena, out->size, 0);
  if (!to) return false;
  out->bytes = to;
  vyre__cache_store_u64(to, count);
  to += 8;
  for (size_t i = 0; i < count; i++) {
    to = put_sized(to, parts[i].name, parts[i].name_size);
    to = put_sized(to, parts[i].value, parts[i].size);
  }
  return vyre__cache_key_name(out->bytes, out->size, out->name);
}

/* Removes the names of functions and locals and all source locations, which do
 * not affect code: an edited comment then costs no compile. */
static bool strip_functions(const vyre_program *program, vyre_arena *arena,
                            vyre_program *out) {
  uint32_t count = program->function_count;
  vyre__function *functions =
      vyre__arena_array(arena, count, sizeof *functions);
  uint32_t *places =
      vyre__arena_filled(arena, program->node_count, sizeof *places, 0);
  if (!functions || !places) return false;
  for (uint32_t i = 0; i < count; i++) {
    functions[i] = program->functions[i];
    functions[i].name = "";
    vyre__local *locals =
        vyre__arena_array(arena, functions[i].local_count, sizeof *locals);
    if (!locals) return false;
    for (uint32_t k = 0; k < functions[i].local_count; k++) {
      locals[k] = program->functions[i].locals[k];
      locals[k].name = "";
    }
    functions[i].locals = locals;
  }
  out->functions = functions;
  out->places = places;
  return true;
}

/* Serialises the content of a program: equal programs give equal bytes. */
static bool program_part(const vyre_program *program, vyre_arena *arena,
                         vyre__cache_key_field *out) {
  vyre_program bare = {.name = "",
                       .file = "",
                       .buffers = program->buffers,
                       .buffer_count = program->buffer_count,
                       .over = program->over,
                       .item_type = program->item_type,
                       .queue = program->queue,
                       .function_count = program->function_count,
                       .nodes = program->nodes,
                       .node_count = program->node_count,
                       .lists = program->lists,
                       .list_count = program->list_count,
                       .texts = program->texts,
                       .text_count = program->text_count};
  memcpy(bare.workgroup, program->workgroup, sizeof bare.workgroup);
  const uint8_t *bytes;
  size_t size;
  if (!strip_functions(program, arena, &bare) ||
      vyre_program_write_binary(&bare, arena, &bytes, &size, NULL) != VYRE_OK) {
    return false;
  }
  *out = part_of("program", bytes, size);
  return true;
}

/* Writes the float modes of the device, one letter per operation: they decide
 * how the program is compiled. */
static void print_float_modes(const vyre_device *device, char *out,
                              size_t capacity) {
  size_t length = 0;
  for (size_t i = 0; i < device->caps.float_op_count && length + 1 < capacity;
       i++) {
    out[length++] = "nfs?"[device->caps.float_ops[i].mode & 3];
  }
  out[length] = '\0';
}

/* Lists the tuned settings that code depends on: "width=8 ". */
static void print_tuned(const vyre_pipeline *wanted, char *out,
                        size_t capacity) {
  const vyre__backend *backend = wanted->device->backend;
  vyre__tunable t;
  size_t length = 0;
  out[0] = '\0';
  for (uint32_t i = 0; i < VYRE__TUNABLES && backend->tunable_at &&
                       backend->tunable_at(wanted->device, i, &t);
       i++) {
    if (!wanted->tuned[i] || !t.changes_code) continue;
    int put = snprintf(out + length, capacity - length, "%s=%u ", t.name,
                       (unsigned)wanted->tuned[i] - 1);
    if (put < 0 || (size_t)put >= capacity - length) return;
    length += (size_t)put;
  }
}

bool vyre__cache_key_build(const vyre_pipeline *wanted, vyre_arena *arena,
                           vyre__cache_key *out) {
  vyre_device *device = wanted->device;
  const vyre__backend *backend = device->backend;
  const vyre_program *program = wanted->program;
  const uint32_t *size = wanted->workgroup;
  *out = (vyre__cache_key){0};
  vyre_device_info info = {.description = "", .driver = ""};
  (void)backend->describe(backend, device->index, &info);
  char artifact[16], workgroup[40], ulp[8], float_modes[128], tuned[96];
  static_assert(VYRE__FLOAT_OP_COUNT < sizeof float_modes, "one letter each");
  print_float_modes(device, float_modes, sizeof float_modes);
  char fingerprint[VYRE_HASH128_TEXT];
  (void)snprintf(artifact, sizeof artifact, "%u",
                 (unsigned)backend->artifact_version);
  (void)snprintf(workgroup, sizeof workgroup, "%ux%ux%u", (unsigned)size[0],
                 (unsigned)size[1], (unsigned)size[2]);
  (void)snprintf(ulp, sizeof ulp, "%u", (unsigned)wanted->ulp_budget);
  vyre_hash128_text(program->fingerprint, fingerprint);
  print_tuned(wanted, tuned, sizeof tuned);
  vyre__cache_key_field parts[] = {
      text_part("vyre", VYRE_VERSION_STRING),
      text_part("backend", backend->name),
      text_part("device", info.description),
      text_part("driver", info.driver),
      {0}, /* features */
      text_part("float_mode", float_modes),
      text_part("lowering", vyre__lowering_hash),
      text_part("artifact", artifact),
      text_part("workgroup", workgroup),
      text_part("ulp_budget", ulp),
      text_part("counted",
                wanted->counts_iterations ? "all loops" : "unbounded loops"),
      text_part("kernel", program->name),
      text_part("fingerprint", fingerprint),
      {0},                       /* program */
      text_part("tuned", tuned), /* left out if empty */
  };
  enum { COUNT = sizeof parts / sizeof parts[0] };
  static_assert((int)COUNT <= (int)VYRE__CACHE_FIELDS,
                "readers accept all fields");
  vyre__bytes features = {.allocator = device->allocator};
  if (backend->features) backend->features(device, &features);
  parts[4] = part_of("features", features.data, features.size);
  bool is_written = !features.failed &&
                    program_part(program, arena, &parts[COUNT - 2]) &&
                    write_key(parts, COUNT - (tuned[0] == '\0'), arena, out);
  vyre__bytes_deinit(&features);
  return is_written;
}

/* --- parsing -------------------------------------------------------------- */

typedef struct cursor {
  const unsigned char *at;
  size_t left;
} cursor;

static bool read_u64(cursor *from, uint64_t *out) {
  if (from->left < 8) return false;
  *out = vyre__cache_load_u64(from->at);
  from->at += 8;
  from->left -= 8;
  return true;
}

static bool read_sized(cursor *from, const unsigned char **bytes,
                       size_t *size) {
  uint64_t wanted;
  if (!read_u64(from, &wanted) || wanted > from->left) return false;
  *bytes = from->at;
  *size = (size_t)wanted;
  from->at += wanted;
  from->left -= (size_t)wanted;
  return true;
}

/* Field names have lower-case letters and underscores only. */
static bool is_field_name(const char *name, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (name[i] != '_' && (name[i] < 'a' || name[i] > 'z')) return false;
  }
  return size > 0 && size <= 32;
}

bool vyre__cache_key_read(const unsigned char *bytes, size_t size,
                          vyre__cache_key_field parts[VYRE__CACHE_FIELDS],
                          size_t *count) {
  cursor from = {bytes, size};
  uint64_t fields;
  *count = 0;
  if (!read_u64(&from, &fields) || fields > VYRE__CACHE_FIELDS) return false;
  for (uint64_t i = 0; i < fields; i++) {
    const unsigned char *name;
    if (!read_sized(&from, &name, &parts[i].name_size) ||
        !read_sized(&from, &parts[i].value, &parts[i].size)) {
      return false;
    }
    parts[i].name = (const char *)name;
    if (!is_field_name(parts[i].name, parts[i].name_size)) return false;
  }
  *count = (size_t)fields;
  return from.left == 0;
}

static const vyre__cache_key_field *find_part(
    const vyre__cache_key_field *parts, size_t count, const char *name,
    size_t name_size) {
  for (size_t i = 0; i < count; i++) {
    if (parts[i].name_size == name_size &&
        memcmp(parts[i].name, name, name_size) == 0) {
      return &parts[i];
    }
  }
  return NULL;
}

static bool same_value(const vyre__cache_key_field *a,
                       const vyre__cache_key_field *b) {
  return a->size == b->size &&
         (a->size == 0 || memcmp(a->value, b->value, a->size) == 0);
}

size_t vyre__cache_key_compare(const vyre__cache_key_field *a, size_t a_count,
                               const vyre__cache_key_field *b, size_t b_count,
                               vyre__cache_key_field *a_first,
                               vyre__cache_key_field *b_first) {
  size_t different = 0;
  for (size_t i = 0; i < a_count + b_count; i++) {
    bool is_ours = i < a_count;
    const vyre__cache_key_field *part = is_ours ? &a[i] : &b[i - a_count];
    const vyre__cache_key_field *other =
        is_ours ? find_part(b, b_count, part->name, part->name_size)
                : find_part(a, a_count, part->name, part->name_size);
    /* The fields of `a` are compared first. A field of `b` then counts only if
     * `a` lacks it. */
    if (other && (!is_ours || same_value(part, other))) continue;
    if (different++ > 0) continue;
    vyre__cache_key_field none = {part->name, part->name_size, NULL, 0};
    *a_first = is_ours ? *part : none;
    *b_first = !is_ours ? *part : other ? *other : none;
  }
  return different;
}

/* --- file names ----------------------------------------------------------- */

static const char suffix[] = ".vyrecache";

enum { HEX = VYRE_HASH128_TEXT - 1, SUFFIX_AT = 2 * HEX + 1 };

/* Builds "<fingerprint of the program>-<hash of the key>.vyrecache", so that
 * entries of one program are found by name. */
bool vyre__cache_key_name(const unsigned char *bytes, size_t size,
                          char out[VYRE__CACHE_NAME]) {
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
  size_t count;
  if (!vyre__cache_key_read(bytes, size, parts, &count)) return false;
  const vyre__cache_key_field *fingerprint =
      find_part(parts, count, "fingerprint", strlen("fingerprint"));
  if (!fingerprint || fingerprint->size != HEX) return false;
  char hash[VYRE_HASH128_TEXT];
  vyre_hash128_text(vyre__hash_of("vyre.cache.key", bytes, size), hash);
  (void)snprintf(out, VYRE__CACHE_NAME, "%.*s-%s%s", HEX,
                 (const char *)fingerprint->value, hash, suffix);
  return vyre__cache_is_entry(out);
}

static bool is_hex(const char *text, size_t count) {
  for (size_t i = 0; i < count; i++) {
    bool digit = text[i] >= '0' && text[i] <= '9';
    if (!digit && (text[i] < 'a' || text[i] > 'f')) return false;
  }
  return true;
}

bool vyre__cache_is_entry(const char *name) {
  return strlen(name) == SUFFIX_AT + sizeof suffix - 1 && is_hex(name, HEX) &&
         name[HEX] == '-' && is_hex(name + HEX + 1, HEX) &&
         strcmp(name + SUFFIX_AT, suffix) == 0;
}

/* --- readable text -------------------------------------------------------- */

static const char *copy_text(vyre_arena *arena, const void *text, size_t size) {
  char *copy = vyre_arena_alloc(arena, size + 1, 1);
  if (!copy) return NULL;
  if (size > 0) memcpy(copy, text, size);
  copy[size] = '\0';
  return copy;
}

const char *vyre__cache_field_name(vyre_arena *arena,
                                   const vyre__cache_key_field *part) {
  return copy_text(arena, part->name, part->name_size);
}

const char *vyre__cache_field_text(vyre_arena *arena,
                                   const vyre__cache_key_field *part) {
  if (!part->value) return copy_text(arena, "(no such field)", 15);
  bool is_text = true;
  for (size_t i = 0; i < part->size && is_text; i++) {
    is_text = part->value[i] >= ' ' && part->value[i] != 0x7f;
  }
  if (is_text) return copy_text(arena, part->value, part->size);
  char hash[VYRE_HASH128_TEXT], text[80];
  vyre_hash128_text(vyre__hash_of("vyre.cache.value", part->value, part->size),
                    hash);
  int length = snprintf(text, sizeof text, "%llu bytes, %s",
                        (unsigned long long)part->size, hash);
  return copy_text(arena, text, (size_t)length);
}

bool vyre__cache_fields(const vyre__cache_key_field *parts, size_t count,
                        vyre_arena *arena, const vyre_cache_field **out) {
  vyre_cache_field *fields = vyre__arena_array(arena, count, sizeof *fields);
  if (!fields) return false;
  for (size_t i = 0; i < count; i++) {
    fields[i] = (vyre_cache_field){
        .name = vyre__cache_field_name(arena, &parts[i]),
        .text = vyre__cache_field_text(arena, &parts[i]),
        .value = copy_text(arena, parts[i].value, parts[i].size),
        .size = parts[i].size};
    if (!fields[i].name || !fields[i].text || !fields[i].value) return false;
  }
  *out = fields;
  return true;
}
