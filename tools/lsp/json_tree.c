/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lsp/json_tree.h"

#include <string.h>

#include "cli/text.h"

typedef struct builder {
  vyre_arena *arena;
  json_node *root;
  json_node *open[JSON_MAX_DEPTH];
  json_node *last[JSON_MAX_DEPTH]; /* last member of each */
  unsigned depth;
  const char *key;
} builder;

static const char *copy_text(vyre_arena *arena, const char *text,
                             size_t length) {
  char *copy = vyre_arena_alloc(arena, length + 1, 1);
  if (!copy) return NULL;
  if (length > 0) memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

static bool no_memory(json_reader *reader) {
  return problem_no_memory(reader->wrong, "the message");
}

/* Adds a node to the object or array that is open. */
static json_node *add_node(builder *b, const token *t) {
  json_node *node = vyre_arena_alloc(b->arena, sizeof *node, 0);
  if (!node) return NULL;
  *node = (json_node){.type = t->type, .key = b->key, .truth = t->truth};
  b->key = NULL;
  if (t->type == TOKEN_STRING || t->type == TOKEN_NUMBER) {
    node->text = copy_text(b->arena, t->text, t->length);
    node->length = t->length;
    if (!node->text) return NULL;
  }
  if (b->depth == 0) {
    b->root = node;
    return node;
  }
  json_node *parent = b->open[b->depth - 1], *before = b->last[b->depth - 1];
  if (before) {
    before->next = node;
  } else {
    parent->first = node;
  }
  b->last[b->depth - 1] = node;
  return node;
}

/* A reader with its builder; the handler gets the reader. */
typedef struct tree_reader {
  json_reader reader;
  builder builder;
} tree_reader;

static bool handle(json_reader *reader, const token *t) {
  builder *b = &((tree_reader *)reader)->builder;
  switch (t->type) {
    case TOKEN_KEY:
      b->key = copy_text(b->arena, t->text, t->length);
      return b->key || no_memory(reader);
    case TOKEN_OBJECT_END:
    case TOKEN_ARRAY_END:
      b->depth--;
      return true;
    default:
      break;
  }
  json_node *node = add_node(b, t);
  if (!node) return no_memory(reader);
  if (t->type != TOKEN_OBJECT && t->type != TOKEN_ARRAY) return true;
  if (b->depth == JSON_MAX_DEPTH) {
    return json_fail(reader, "send a message that is less deep",
                     "the message is nested more than %d levels deep",
                     JSON_MAX_DEPTH);
  }
  b->open[b->depth] = node;
  b->last[b->depth++] = NULL;
  return true;
}

json_node *json_tree_read(const char *text, size_t length, vyre_arena *arena,
                          problem *wrong) {
  input in = {.label = "message", .text = text, .length = length};
  tree_reader tree = {
      .reader = {.in = &in, .arena = arena, .wrong = wrong, .handle = handle},
      .builder = {.arena = arena}};
  return json_read(&tree.reader) ? tree.builder.root : NULL;
}

const json_node *json_member(const json_node *object, const char *key) {
  if (!object || object->type != TOKEN_OBJECT) return NULL;
  for (const json_node *it = object->first; it; it = it->next) {
    if (it->key && strcmp(it->key, key) == 0) return it;
  }
  return NULL;
}

bool json_member_text(const json_node *object, const char *key,
                      const char **text, size_t *length) {
  const json_node *it = json_member(object, key);
  if (!it || it->type != TOKEN_STRING) return false;
  *text = it->text;
  *length = it->length;
  return true;
}

uint32_t json_member_number(const json_node *object, const char *key,
                            uint32_t other) {
  const json_node *it = json_member(object, key);
  uint64_t value;
  if (!it || it->type != TOKEN_NUMBER ||
      !parse_u64(it->text, it->length, &value) || value > INT32_MAX) {
    return other;
  }
  return (uint32_t)value;
}
