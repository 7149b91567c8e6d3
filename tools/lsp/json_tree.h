/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A JSON text as a tree in an arena. */
#ifndef VYRE_TOOLS_LSP_JSON_TREE_H
#define VYRE_TOOLS_LSP_JSON_TREE_H

#include "io/read_json.h"

enum { JSON_MAX_DEPTH = 100 };

typedef struct json_node json_node;
struct json_node {
  token_type type;
  const char *key;  /* in an object; else NULL */
  const char *text; /* string without escapes, or number as written */
  size_t length;
  bool truth;
  json_node *first, *next; /* first member; next in the same object or array */
};

/* Parses @p text. Returns NULL with a problem if it is not JSON, or nested more
 * than JSON_MAX_DEPTH levels deep. */
json_node *json_tree_read(const char *text, size_t length, vyre_arena *arena,
                          problem *wrong);

/* Returns a member of an object, or NULL. Accepts NULL and other types. */
const json_node *json_member(const json_node *object, const char *key);

/* Returns true and the value if a member is a string; false otherwise. */
bool json_member_text(const json_node *object, const char *key,
                      const char **text, size_t *length);

/* Returns a member that is an integer from 0 to 2^31-1; otherwise @p other. */
uint32_t json_member_number(const json_node *object, const char *key,
                            uint32_t other);

#endif
