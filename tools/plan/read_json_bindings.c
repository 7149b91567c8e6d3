/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* {"workgroup":[x, y, z], "buffers":[{"name":"a", "binding":0,
 * "access":"read", "element":"f32"}, ...], "input_lengths":[bytes, {"bytes":N,
 * "resident":true}, ...]} */
#include <stdio.h>

#include "io/read_json.h"
#include "plan/read_plan.h"

enum { TOP_BUFFERS, TOP_WORKGROUP, TOP_LENGTHS };
static const char *const top_names[] = {"buffers", "workgroup",
                                        "input_lengths"};
static const key_set top_keys = {"the bindings object", top_names, 3, 1};

enum {
  KEY_NAME,
  KEY_BINDING,
  KEY_ACCESS,
  KEY_ELEMENT,
  KEY_KIND,
  KEY_COUNT,
  KEY_IS_OUTPUT,
  KEY_LIVE_OUT,
  KEY_ALIGNMENT,
  KEY_AXIS,
  KEY_LOCALITY,
  BUFFER_KEYS
};
static const char *const buffer_names[BUFFER_KEYS] = {"name",
                                                      "binding",
                                                      "access",
                                                      "element",
                                                      "kind",
                                                      "count",
                                                      "is_output",
                                                      "pipeline_live_out",
                                                      "preferred_alignment",
                                                      "coalesce_axis",
                                                      "cache_locality"};

enum { KEY_BYTES, KEY_RESIDENT };
static const char *const length_names[] = {"bytes", "resident"};

typedef enum bindings_state {
  AT_START,
  IN_OBJECT,
  AT_LIST, /* value of a key of the top object; all are lists */
  IN_LIST,
  IN_ITEM, /* an object in a list */
  AT_VALUE,
  AT_END,
} bindings_state;

typedef struct bindings_reader {
  json_reader json; /* first: handlers get a pointer to it */
  bindings_state state;
  uint32_t top_seen, seen;
  size_t list; /* TOP_... key being read */
  size_t key;  /* keys of the current item */
  uint32_t workgroup[3];
  size_t workgroup_filled;
  vyre_buffer_decl buffer;
  vyre_input_extent length;
  arena_list buffers, lengths;
} bindings_reader;

enum { PLACE_NAME = 80 };

/* "buffers[2].access" */
static const char *place_name(const bindings_reader *b, const char *key,
                              char buffer[PLACE_NAME]) {
  size_t index = b->list == TOP_BUFFERS   ? b->buffers.count
                 : b->list == TOP_LENGTHS ? b->lengths.count
                                          : b->workgroup_filled;
  snprintf(buffer, PLACE_NAME, "%s[%zu]%s%s", top_names[b->list], index,
           key ? "." : "", key ? key : "");
  return buffer;
}

static key_set item_keys(const bindings_reader *b, const char *where) {
  if (b->list == TOP_BUFFERS) {
    return (key_set){where, buffer_names, BUFFER_KEYS,
                     1u << KEY_NAME | 1u << KEY_BINDING | 1u << KEY_ACCESS |
                         1u << KEY_ELEMENT};
  }
  return (key_set){where, length_names, 2, 1u << KEY_BYTES};
}

static bool read_u32(bindings_reader *b, const token *t, const char *name,
                     uint64_t max, uint32_t *out) {
  uint64_t value = 0;
  if (!json_number(&b->json, t, name, max, &value)) return false;
  *out = (uint32_t)value;
  return true;
}

static bool read_axis(bindings_reader *b, const token *t, const char *name) {
  if (t->type == TOKEN_NULL) return true;
  uint32_t axis = 0;
  if (!read_u32(b, t, name, 2, &axis)) return false;
  b->buffer.hints.has_coalesce_axis = true;
  b->buffer.hints.coalesce_axis = (uint8_t)axis;
  return true;
}

#define TEXT2(name, text)        text,
#define TEXT3(name, text, bytes) text,
static const char *const kinds[] = {VYRE_MEMORY_MAP(TEXT2)};
static const char *const accesses[] = {VYRE_ACCESS_MAP(TEXT2)};
static const char *const elements[] = {VYRE_ELEMENT_MAP(TEXT3)};
static const char *const localities[] = {VYRE_LOCALITY_MAP(TEXT2)};

static bool read_word(bindings_reader *b, const token *t, const char *name) {
  vyre_buffer_decl *buffer = &b->buffer;
  size_t choice = 0, length = 0;
  bool fine;
  switch (b->key) {
    case KEY_NAME:
      return json_name(&b->json, t, name, &buffer->name, &length);
    case KEY_KIND:
      fine = json_choice(&b->json, t, name, kinds, VYRE_MEMORY_COUNT, &choice);
      buffer->kind = (vyre_memory)choice;
      return fine;
    case KEY_ACCESS:
      fine =
          json_choice(&b->json, t, name, accesses, VYRE_ACCESS_COUNT, &choice);
      buffer->access = (vyre_access)choice;
      return fine;
    case KEY_ELEMENT:
      fine =
          json_choice(&b->json, t, name, elements, VYRE_ELEMENT_COUNT, &choice);
      buffer->element = (vyre_element)choice;
      return fine;
    default:
      fine = json_choice(&b->json, t, name, localities, VYRE_LOCALITY_COUNT,
                         &choice);
      buffer->hints.cache_locality = (vyre_locality)choice;
      return fine;
  }
}

static bool read_buffer_value(bindings_reader *b, const token *t,
                              const char *name) {
  vyre_buffer_decl *buffer = &b->buffer;
  switch (b->key) {
    case KEY_BINDING:
      return read_u32(b, t, name, UINT32_MAX, &buffer->binding);
    case KEY_COUNT:
      return read_u32(b, t, name, UINT32_MAX, &buffer->count);
    case KEY_ALIGNMENT:
      return read_u32(b, t, name, UINT32_MAX,
                      &buffer->hints.preferred_alignment);
    case KEY_AXIS:
      return read_axis(b, t, name);
    case KEY_IS_OUTPUT:
      return json_truth(&b->json, t, name, &buffer->is_output);
    case KEY_LIVE_OUT:
      return json_truth(&b->json, t, name, &buffer->pipeline_live_out);
    default:
      return read_word(b, t, name);
  }
}

static bool at_value(bindings_reader *b, const token *t) {
  char name[PLACE_NAME];
  b->state = IN_ITEM;
  if (b->list == TOP_BUFFERS) {
    return read_buffer_value(b, t, place_name(b, buffer_names[b->key], name));
  }
  place_name(b, length_names[b->key], name);
  if (b->key == KEY_RESIDENT) {
    return json_truth(&b->json, t, name, &b->length.is_device_buffer);
  }
  return json_number(&b->json, t, name, UINT64_MAX, &b->length.byte_len);
}

static bool add_item(bindings_reader *b) {
  if (b->list == TOP_BUFFERS) {
    vyre_buffer_decl *buffer =
        list_add(&b->buffers, sizeof *buffer, b->json.arena);
    if (!buffer) return problem_no_memory(b->json.wrong, "the buffers");
    *buffer = b->buffer;
    return true;
  }
  vyre_input_extent *length =
      list_add(&b->lengths, sizeof *length, b->json.arena);
  if (!length) return problem_no_memory(b->json.wrong, "the input lengths");
  *length = b->length;
  return true;
}

static bool in_item(bindings_reader *b, const token *t) {
  char where[PLACE_NAME];
  key_set keys = item_keys(b, place_name(b, NULL, where));
  if (t->type == TOKEN_OBJECT_END) {
    b->state = IN_LIST;
    return json_keys_complete(&b->json, &keys, b->seen) && add_item(b);
  }
  b->state = AT_VALUE;
  return json_key(&b->json, t, &keys, &b->seen, &b->key);
}

static bool workgroup_axis(bindings_reader *b, const token *t,
                           const char *name) {
  if (b->workgroup_filled == 3) {
    return json_fail(&b->json, "write a list [x, y, z]",
                     "workgroup has more than 3 numbers");
  }
  return read_u32(b, t, name, UINT32_MAX, &b->workgroup[b->workgroup_filled++]);
}

static bool in_list(bindings_reader *b, const token *t) {
  char name[PLACE_NAME];
  place_name(b, NULL, name);
  if (t->type == TOKEN_ARRAY_END) {
    b->state = IN_OBJECT;
    if (b->list != TOP_WORKGROUP || b->workgroup_filled == 3) return true;
    return json_fail(&b->json, "write a list [x, y, z]",
                     "workgroup has fewer than 3 numbers");
  }
  if (b->list == TOP_WORKGROUP) return workgroup_axis(b, t, name);
  b->seen = 0;
  b->buffer = (vyre_buffer_decl){0};
  b->length = (vyre_input_extent){0};
  if (t->type == TOKEN_OBJECT) {
    b->state = IN_ITEM;
    return true;
  }
  if (b->list == TOP_BUFFERS) {
    return json_unexpected(&b->json, t, name, "an object");
  }
  return json_number(&b->json, t, name, UINT64_MAX, &b->length.byte_len) &&
         add_item(b);
}

static bool in_object(bindings_reader *b, const token *t) {
  b->state = AT_END;
  if (t->type == TOKEN_OBJECT_END) {
    return json_keys_complete(&b->json, &top_keys, b->top_seen);
  }
  b->state = AT_LIST;
  return json_key(&b->json, t, &top_keys, &b->top_seen, &b->list);
}

static bool bindings_token(json_reader *reader, const token *t) {
  bindings_reader *b = (bindings_reader *)reader;
  switch (b->state) {
    case AT_VALUE:
      return at_value(b, t);
    case IN_ITEM:
      return in_item(b, t);
    case IN_LIST:
      return in_list(b, t);
    case IN_OBJECT:
      return in_object(b, t);
    case AT_LIST:
      b->state = IN_LIST;
      return t->type == TOKEN_ARRAY ||
             json_unexpected(reader, t, top_names[b->list], "a list");
    case AT_START:
    case AT_END:
      break;
  }
  b->state = IN_OBJECT;
  return t->type == TOKEN_OBJECT ||
         json_unexpected(reader, t, "the input", "a JSON object");
}

bool read_bindings_json(const input *in, vyre_arena *arena, bindings_input *out,
                        problem *wrong) {
  bindings_reader b = {.json = {.in = in,
                                .arena = arena,
                                .wrong = wrong,
                                .handle = bindings_token},
                       .workgroup = {1, 1, 1}};
  *out = (bindings_input){0};
  if (!json_read(&b.json)) return false;
  *out = (bindings_input){
      .program = {.buffers = b.buffers.items,
                  .buffer_count = b.buffers.count,
                  .workgroup = {b.workgroup[0], b.workgroup[1],
                                b.workgroup[2]}},
      .has_lengths = (b.top_seen & 1u << TOP_LENGTHS) != 0,
      .lengths = b.lengths.items,
      .length_count = b.lengths.count,
  };
  return true;
}
