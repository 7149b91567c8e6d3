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
  *f = (vyre__file_function){.name = get_text(r)};
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

static void read_kernel(vyre__reader *r) {
  r->kernel.name = get_text(r);
  r->kernel.file = get_text(r);
  for (int i = 0; i < 3; i++) r->kernel.workgroup[i] = vyre__get_u32(&r->c);
  r->kernel.over = vyre__get_u32(&r->c);
  r->item_type = vyre__get_u8(&r->c);
}

static void read_nodes(vyre__reader *r) {
  r->node_count = vyre__get_count(&r->c, VYRE__BINARY_NODE);
  r->nodes = vyre__get_bytes(&r->c, (size_t)r->node_count * VYRE__BINARY_NODE);
}

static void read_places(vyre__reader *r) {
  r->places =
      vyre__get_bytes(&r->c, (size_t)r->node_count * VYRE__BINARY_SOURCE_LOC);
}

static void read_lists(vyre__reader *r) {
  r->list_count = vyre__get_count(&r->c, 4);
  r->lists = vyre__get_bytes(&r->c, (size_t)r->list_count * 4);
}

static void read_texts(vyre__reader *r) {
  r->text_count = vyre__get_count(&r->c, 1);
  r->texts = vyre__get_bytes(&r->c, r->text_count);
}

static void read_queue(vyre__reader *r) {
  enum { MIN_BYTES = 5 }; /* smallest size of a field in bytes */
  vyre__byte_reader *c = &r->c;
  vyre__queue_clauses *queue = &r->queue;
  r->has_queue = true;
  queue->kind = vyre__get_u8(c);
  queue->bound_kind = vyre__get_u8(c);
  queue->bound = vyre__get_u32(c);
  queue->pushes = vyre__get_u32(c);
  queue->by = vyre__get_u32(c);
  queue->pull = vyre__get_u32(c);
  queue->field_count = vyre__get_count(c, MIN_BYTES);
  r->fields =
      vyre__arena_array(&r->arena, queue->field_count, sizeof *r->fields);
  if (!r->fields) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < queue->field_count; i++) {
    r->fields[i].name = get_text(r);
    r->fields[i].type = vyre__get_u8(c);
  }
  queue->fields = r->fields;
}

/* Completes the clauses of a queue kernel. A program without the section has
 * no more than queue(T). */
static void finish_queue(vyre__reader *r) {
  static const vyre__queue_field plain[VYRE_TYPE_COUNT] = {
      {"", VYRE_TYPE_VOID}, {"", VYRE_TYPE_BOOL}, {"", VYRE_TYPE_U32},
      {"", VYRE_TYPE_I32},  {"", VYRE_TYPE_U64},  {"", VYRE_TYPE_I64},
      {"", VYRE_TYPE_F32},  {"", VYRE_TYPE_F64}};
  vyre__queue_clauses *queue = &r->queue;
  if (!r->has_queue && r->item_type == VYRE_TYPE_VOID) return;
  if (r->item_type >= VYRE_TYPE_COUNT) {
    r->is_corrupt = true;
    return;
  }
  if (!r->has_queue) {
    *queue =
        (vyre__queue_clauses){.field_count = 1, .fields = &plain[r->item_type]};
  } else if (vyre__queue_is_plain(queue) || queue->field_count == 0 ||
             queue->fields[0].type != r->item_type ||
             queue->by >= r->function_count ||
             queue->pull >= r->function_count) {
    r->is_corrupt = true; /* the writer does not produce this */
    return;
  }
  r->kernel.queue = queue;
}

static void read_types(vyre__reader *r) {
  uint32_t any = 0;
  for (uint32_t i = 0; i < r->kernel.buffer_count; i++) {
    const uint32_t type = vyre__get_u32(&r->c);
    if (type > UINT8_MAX) r->is_corrupt = true;
    r->buffers[i].type = (uint16_t)type;
    any |= type;
  }
  if (any == 0) r->is_corrupt = true; /* the writer omits such a section */
}

static void read_dimensions(vyre__reader *r) {
  bool any = false;
  for (uint32_t i = 0; i < r->kernel.buffer_count; i++) {
    vyre_buffer_decl *b = &r->buffers[i];
    b->dimension_count = vyre__get_u8(&r->c);
    b->dimension_uniforms = vyre__get_u8(&r->c);
    if (b->dimension_count > VYRE_MAX_DIMENSIONS) {
      r->is_corrupt = true;
      return;
    }
    for (unsigned k = 0; k < b->dimension_count; k++) {
      b->dimensions[k] = vyre__get_u32(&r->c);
    }
    any = any || b->dimension_count > 0;
  }
  if (!any) r->is_corrupt = true; /* the writer omits such a section */
}

static void read_table(vyre__reader *r, vyre__table *table) {
  table->name = get_text(r);
  table->shape = 0;
  table->type = vyre__get_u8(&r->c);
  table->length = vyre__get_count(&r->c, 8);
  if (table->type == VYRE_TYPE_VOID || table->type >= VYRE_TYPE_COUNT ||
      table->length == 0 || table->length > VYRE__MAX_TABLE) {
    r->is_corrupt = true;
    return;
  }
  uint64_t *values =
      vyre__arena_array(&r->arena, table->length, sizeof *values);
  if (!values) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < table->length; i++) {
    values[i] = vyre__get_u32(&r->c);
    values[i] |= (uint64_t)vyre__get_u32(&r->c) << 32;
  }
  table->values = values;
}

static void read_memory(vyre__reader *r) {
  enum { MIN_BYTES = 9 }; /* smallest size of a table in bytes */
  r->has_memory = true;
  for (uint32_t i = 0; i < r->function_count; i++) {
    vyre__file_function *f = &r->functions[i];
    f->result_count = vyre__get_u8(&r->c);
    if (f->result_count > VYRE__MAX_RESULTS || f->result_count == 1) {
      r->is_corrupt = true;
      return;
    }
    const uint8_t *types = vyre__get_bytes(&r->c, f->result_count);
    if (types) memcpy(f->results, types, f->result_count);
    f->memory = vyre__get_bytes(
        &r->c, (size_t)f->local_count * VYRE__BINARY_LOCAL_MEMORY);
    if (!f->memory) return;
  }
  r->table_count = vyre__get_count(&r->c, MIN_BYTES);
  r->tables = vyre__arena_array(&r->arena, r->table_count, sizeof *r->tables);
  if (!r->tables) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < r->table_count && !r->is_corrupt; i++) {
    read_table(r, &r->tables[i]);
    if (r->out_of_memory) return;
  }
}

static void read_struct(vyre__reader *r, vyre__file_struct *to) {
  enum { MIN_BYTES = 6 }; /* smallest size of a field in bytes */
  to->name = get_text(r);
  to->count = vyre__get_count(&r->c, MIN_BYTES);
  to->fields = vyre__arena_array(&r->arena, to->count, sizeof *to->fields);
  if (!to->fields) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < to->count; i++) {
    to->fields[i] = (vyre_struct_field){.name = get_text(r)};
    to->fields[i].element = (vyre_element)vyre__get_u8(&r->c);
    to->fields[i].type = vyre__get_u8(&r->c);
  }
}

static void read_structs(vyre__reader *r) {
  enum { MIN_BYTES = 8 };
  r->struct_count = vyre__get_count(&r->c, MIN_BYTES);
  r->structs =
      vyre__arena_array(&r->arena, r->struct_count, sizeof *r->structs);
  if (r->struct_count == 0) r->is_corrupt = true; /* the writer omits it */
  if (!r->structs) {
    r->out_of_memory = true;
    return;
  }
  for (uint32_t i = 0; i < r->struct_count && !r->out_of_memory; i++) {
    read_struct(r, &r->structs[i]);
  }
}

static void read_shapes(vyre__reader *r) {
  r->has_shapes = true;
  for (uint32_t i = 0; i < r->function_count; i++) {
    vyre__file_function *f = &r->functions[i];
    f->shapes =
        vyre__get_bytes(&r->c, (size_t)f->local_count * VYRE__BINARY_SHAPE);
    if (!f->shapes) return;
  }
  for (uint32_t i = 0; i < r->table_count; i++) {
    vyre__shape shape = vyre__get_u32(&r->c);
    shape |= (vyre__shape)vyre__get_u32(&r->c) << 32;
    r->tables[i].shape = shape;
    if (!vyre__shape_fits(shape, r->tables[i].length)) r->is_corrupt = true;
  }
}

typedef struct section {
  const char *name;
  void (*read)(vyre__reader *r);
} section;

/* Sections by tag. */
static const section sections[] = {
    [VYRE__SECTION_KERNEL] = {"KERNEL", read_kernel},
    [VYRE__SECTION_BUFFERS] = {"BUFFERS", read_buffers},
    [VYRE__SECTION_FUNCTIONS] = {"FUNCTIONS", read_functions},
    [VYRE__SECTION_NODES] = {"NODES", read_nodes},
    [VYRE__SECTION_PLACES] = {"PLACES", read_places},
    [VYRE__SECTION_LISTS] = {"LISTS", read_lists},
    [VYRE__SECTION_TEXTS] = {"TEXTS", read_texts},
    [VYRE__SECTION_QUEUE] = {"QUEUE", read_queue},
    [VYRE__SECTION_TYPES] = {"TYPES", read_types},
    [VYRE__SECTION_DIMENSIONS] = {"DIMENSIONS", read_dimensions},
    [VYRE__SECTION_MEMORY] = {"MEMORY", read_memory},
    [VYRE__SECTION_STRUCTS] = {"STRUCTS", read_structs},
    [VYRE__SECTION_SHAPES] = {"SHAPES", read_shapes},
};

enum {
  SECTION_COUNT = sizeof sections / sizeof sections[0],
  /* sections that every program has: KERNEL to TEXTS */
  LAST_REQUIRED = VYRE__SECTION_TEXTS,
};

/* Version 1: the parts follow each other without sections. */
static void read_parts(vyre__reader *r) {
  for (uint32_t tag = 1; tag <= LAST_REQUIRED && !r->out_of_memory; tag++) {
    sections[tag].read(r);
  }
}

/* Reads one section. *last is the tag of the section before it. */
static vyre_code read_section(vyre__reader *r, uint32_t *last) {
  vyre__byte_reader *c = &r->c;
  const uint32_t tag = vyre__get_u32(c), flags = vyre__get_u32(c);
  const uint64_t low = vyre__get_u32(c), high = vyre__get_u32(c);
  const uint64_t length = high << 32 | low;
  if (c->short_of || length > c->left) {
    return VYRE__CORRUPT(r->st,
                         "section %u extends past the end of the program", tag);
  }
  if (tag <= *last) {
    return VYRE__CORRUPT(r->st, "section %u follows section %u", tag, *last);
  }
  const uint8_t *bytes = vyre__get_bytes(c, (size_t)length);
  const bool is_known = tag < SECTION_COUNT && sections[tag].read;
  if (!is_known && !(flags & VYRE__SECTION_OPTIONAL)) {
    return VYRE_FAIL(r->st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "read it with a newer version of vyre",
                     "the program has section %u, which this version of vyre "
                     "does not know",
                     tag);
  }
  *last = tag;
  if (!is_known) return VYRE_OK;
  if (flags != 0) {
    return VYRE__CORRUPT(r->st, "section %s has flags %u", sections[tag].name,
                         flags);
  }
  const vyre__byte_reader rest = *c;
  *c = (vyre__byte_reader){bytes, (size_t)length, false};
  sections[tag].read(r);
  if (!r->out_of_memory && (c->short_of || c->left > 0)) {
    return VYRE__CORRUPT(r->st, "section %s is %s than its contents",
                         sections[tag].name,
                         c->short_of ? "shorter" : "longer");
  }
  *c = rest;
  return VYRE_OK;
}

static vyre_code read_sections(vyre__reader *r) {
  uint32_t last = 0;
  uint32_t found = 0;
  while (r->c.left > 0 && !r->out_of_memory) {
    VYRE_TRY(read_section(r, &last));
    if (last <= LAST_REQUIRED) found++;
  }
  if (!r->out_of_memory && found < LAST_REQUIRED) {
    return VYRE__CORRUPT(r->st, "%u of %d sections are missing",
                         LAST_REQUIRED - found, LAST_REQUIRED);
  }
  return VYRE_OK;
}

/* Builds a list of buffers without a body. */
static vyre_code make_bare(vyre__reader *r, vyre_allocator allocator,
                           vyre_program **out) {
  if (r->kernel.name[0] || r->kernel.file[0] ||
      r->kernel.over != VYRE_NO_INDEX || r->item_type != VYRE_TYPE_VOID ||
      r->has_queue || r->has_memory || r->node_count != 0 ||
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
  if (r->version == 1) {
    read_parts(r);
  } else {
    VYRE_TRY(read_sections(r));
  }
  if (r->out_of_memory) {
    return vyre__no_memory(r->st, VYRE__READ_BINARY, "tables", r->c.left);
  }
  if (r->c.short_of)
    return VYRE__CORRUPT(r->st,
                         "a section extends past the end of the program");
  if (r->c.left > 0) {
    return VYRE__CORRUPT(r->st, "%zu bytes follow the program", r->c.left);
  }
  finish_queue(r);
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
  if (version < 1 || version > VYRE__BINARY_VERSION ||
      vyre__load_u32(bytes + 12) != 0) {
    return VYRE_FAIL(
        st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
        "create the file again with this version of vyre",
        "the program has binary version %u; this library reads versions 1 to "
        "%d",
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
      .version = vyre__load_u32(bytes + 8),
      .kernel = {.name = "", .file = ""}};
  vyre_arena_init(&r.arena, allocator);
  vyre_code code = read_program(&r, allocator, out);
  vyre_arena_deinit(&r.arena);
  return code;
}

const char *vyre_program_binary_source(const uint8_t *bytes, size_t length,
                                       size_t *source_length) {
  if (source_length) *source_length = 0;
  if (!bytes || !source_length || length < VYRE__BINARY_HEAD ||
      memcmp(bytes, VYRE__BINARY_MAGIC_BYTES, VYRE__BINARY_MAGIC) != 0 ||
      vyre__load_u32(bytes + 8) < 2) {
    return NULL;
  }
  vyre__byte_reader c = {bytes + VYRE__BINARY_HEAD, length - VYRE__BINARY_HEAD,
                         false};
  while (c.left >= VYRE__BINARY_SECTION_HEAD) {
    const uint32_t tag = vyre__get_u32(&c);
    (void)vyre__get_u32(&c); /* flags */
    const uint32_t low = vyre__get_u32(&c), high = vyre__get_u32(&c);
    const uint64_t size = (uint64_t)high << 32 | low;
    if (size > c.left) return NULL;
    const uint8_t *from = vyre__get_bytes(&c, (size_t)size);
    if (tag != VYRE__SECTION_SOURCE) continue;
    *source_length = (size_t)size;
    return (const char *)from;
  }
  return NULL;
}
