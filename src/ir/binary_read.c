/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the header and the tables of the binary form. All input is untrusted.
 */
#include <string.h>

#include "vyre/binary.h"

#include "base/memory.h"
#include "base/utf8.h"
#include "ir/binary_reader.h"

/* Returns a terminated copy. Names appear in messages, so they must be
 * printable. */
static const char *get_text(vyre__reader *r) {
  uint32_t length = vyre__get_count(&r->c, 1);
  const uint8_t *from = vyre__get_bytes(&r->c, length);
  if (!from) return "";
  if (!vyre__utf8_printable((const char *)from, length)) {
    r->is_corrupt = true;
    return "";
  }
  char *copy = vyre_arena_alloc(&r->arena, (size_t)length + 1, 1);
  if (!copy) {
    r->out_of_memory = true;
    return "";
  }
  memcpy(copy, from, length);
  copy[length] = '\0';
  return copy;
}

static bool get_bool(vyre__reader *r) {
  uint8_t value = vyre__get_u8(&r->c);
  if (value > 1) r->is_corrupt = true;
  return value == 1;
}

static void read_buffers(vyre__reader *r) {
  enum { MIN_BYTES = 24 }; /* smallest size of a buffer in bytes */
  uint32_t count = vyre__get_count(&r->c, MIN_BYTES);
  r->buffers = vyre__arena_array(&r->arena, count, sizeof *r->buffers);
  if (!r->buffers) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < count; i++) {
    vyre_buffer_decl *b = &r->buffers[i];
    *b = (vyre_buffer_decl){.name = get_text(r)};
    b->binding = vyre__get_u32(&r->c);
    b->kind = (vyre_memory)vyre__get_u8(&r->c);
    b->access = (vyre_access)vyre__get_u8(&r->c);
    b->element = (vyre_element)vyre__get_u8(&r->c);
    b->count = vyre__get_u32(&r->c);
    b->is_output = get_bool(r);
    b->pipeline_live_out = get_bool(r);
    b->hints.preferred_alignment = vyre__get_u32(&r->c);
    b->hints.has_coalesce_axis = get_bool(r);
    b->hints.coalesce_axis = vyre__get_u8(&r->c);
    b->hints.cache_locality = (vyre_locality)vyre__get_u8(&r->c);
    if (!b->hints.has_coalesce_axis && b->hints.coalesce_axis) {
      r->is_corrupt = true;
    }
  }
  r->kernel.buffers = r->buffers;
  r->kernel.buffer_count = count;
}

/* Skips the locals; they are read again with the body. */
static void read_function(vyre__reader *r, vyre__file_function *f) {
  f->name = get_text(r);
  f->name_length = (uint32_t)strlen(f->name);
  f->result = vyre__get_u8(&r->c);
  f->parameter_count = vyre__get_u32(&r->c);
  f->local_count = vyre__get_count(&r->c, 6);
  f->locals = r->c.at;
  size_t before = r->c.left;
  for (uint32_t i = 0; i < f->local_count && !r->c.short_of; i++) {
    (void)vyre__get_bytes(&r->c, vyre__get_count(&r->c, 1));
    (void)vyre__get_bytes(&r->c, 2);
  }
  f->local_bytes = before - r->c.left;
  f->body = vyre__get_u32(&r->c);
  if (f->parameter_count > f->local_count) r->is_corrupt = true;
}

static void read_functions(vyre__reader *r) {
  enum { MIN_BYTES = 17 }; /* smallest size of a function in bytes */
  r->function_count = vyre__get_count(&r->c, MIN_BYTES);
  r->functions =
      vyre__arena_array(&r->arena, r->function_count, sizeof *r->functions);
  if (!r->functions) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < r->function_count; i++) {
    read_function(r, &r->functions[i]);
  }
}

static void read_tables(vyre__reader *r) {
  vyre__byte_reader *c = &r->c;
  r->kernel.name = get_text(r);
  r->kernel.file = get_text(r);
  for (int i = 0; i < 3; i++) r->kernel.workgroup[i] = vyre__get_u32(c);
  r->kernel.over = vyre__get_u32(c);
  r->kernel.item_type = (vyre_type)vyre__get_u8(c);
  read_buffers(r);
  if (r->out_of_memory) return;
  read_functions(r);
  r->node_count =
      vyre__get_count(c, VYRE__BINARY_NODE + VYRE__BINARY_SOURCE_LOC);
  r->nodes = vyre__get_bytes(c, (size_t)r->node_count * VYRE__BINARY_NODE);
  r->places =
      vyre__get_bytes(c, (size_t)r->node_count * VYRE__BINARY_SOURCE_LOC);
  r->list_count = vyre__get_count(c, 4);
  r->lists = vyre__get_bytes(c, (size_t)r->list_count * 4);
  r->text_count = vyre__get_count(c, 1);
  r->texts = vyre__get_bytes(c, r->text_count);
}

/* Builds a list of buffers without a body. */
static vyre_code make_bare(vyre__reader *r, vyre_allocator allocator,
                           vyre_program **out) {
  if (r->kernel.name[0] || r->kernel.file[0] ||
      r->kernel.over != VYRE_NO_INDEX ||
      r->kernel.item_type != VYRE_TYPE_VOID || r->node_count != 0 ||
      r->list_count != 0 || r->text_count != 0) {
    return VYRE__CORRUPT(
        r->st, "a program without a body has functions, nodes, lists or texts");
  }
  vyre_program_desc desc = {
      .buffers = r->buffers,
      .buffer_count = r->kernel.buffer_count,
      .workgroup = {r->kernel.workgroup[0], r->kernel.workgroup[1],
                    r->kernel.workgroup[2]}};
  return vyre_program_create(&desc, allocator, out, vyre__status_open(r->st));
}

static vyre_code read_program(vyre__reader *r, vyre_allocator allocator,
                              vyre_program **out) {
  read_tables(r);
  if (r->out_of_memory) {
    return vyre__no_memory(r->st, VYRE__READ_BINARY, "tables", r->c.left);
  }
  if (r->c.short_of)
    return VYRE__CORRUPT(r->st,
                         "a section extends past the end of the program");
  if (r->c.left > 0) {
    return VYRE__CORRUPT(r->st, "%zu bytes follow the program", r->c.left);
  }
  if (r->is_corrupt) return VYRE__CORRUPT(r->st, "invalid name or flag");
  if (r->function_count == 0) return make_bare(r, allocator, out);
  if (r->node_count == 0)
    return VYRE__CORRUPT(r->st, "the program has no nodes");
  return vyre__binary_make(r, allocator, out);
}

bool vyre_program_is_binary(const void *bytes, size_t length) {
  /* Compares only the bytes before the first line end: the reader reports a
   * file that a transfer in text mode changed. */
  const size_t sure = 4;
  return bytes && length >= sure &&
         memcmp(bytes, VYRE__BINARY_MAGIC_BYTES, sure) == 0;
}

static vyre_code check_head(const uint8_t *bytes, size_t length,
                            vyre_status *st) {
  if (length < VYRE__BINARY_HEAD ||
      memcmp(bytes, VYRE__BINARY_MAGIC_BYTES, VYRE__BINARY_MAGIC) != 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "pass bytes that `vyre emit --to bin` wrote",
                     "these %zu bytes are not a vyre program", length);
  }
  uint32_t version = vyre__load_u32(bytes + 8);
  if (version != VYRE__BINARY_VERSION || vyre__load_u32(bytes + 12) != 0) {
    return VYRE_FAIL(
        st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
        "create the file again with this version of vyre",
        "the program has binary version %u; this library reads version %d",
        version, VYRE__BINARY_VERSION);
  }
  uint64_t stated_length = vyre__load_u64(bytes + VYRE__BINARY_LENGTH_AT);
  if (stated_length != length) {
    return VYRE__CORRUPT(st,
                         "the program should have %llu bytes; %zu were passed",
                         (unsigned long long)stated_length, length);
  }
  vyre_hash128 checksum = vyre__binary_checksum(bytes + VYRE__BINARY_HEAD,
                                                length - VYRE__BINARY_HEAD);
  if (vyre__load_u64(bytes + VYRE__BINARY_CHECKSUM_AT) != checksum.low ||
      vyre__load_u64(bytes + VYRE__BINARY_CHECKSUM_AT + 8) != checksum.high) {
    return VYRE__CORRUPT(st,
                         "the checksum does not match: the bytes were changed");
  }
  return VYRE_OK;
}

vyre_code vyre_program_read_binary(const uint8_t *bytes, size_t length,
                                   vyre_allocator allocator, vyre_program **out,
                                   vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, bytes);
  VYRE_TRY(check_head(bytes, length, st));
  vyre__reader r = {
      .c = {bytes + VYRE__BINARY_HEAD, length - VYRE__BINARY_HEAD, false},
      .st = st,
      .kernel = {.name = "", .file = ""}};
  vyre_arena_init(&r.arena, allocator);
  vyre_code code = read_program(&r, allocator, out);
  vyre_arena_deinit(&r.arena);
  return code;
}
