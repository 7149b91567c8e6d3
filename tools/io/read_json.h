/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* JSON input. YAJL finds the tokens; here they get a place in the text, and the
 * readers of the different inputs get what they share: keys, numbers, names and
 * their errors. */
#ifndef VYRE_TOOLS_IO_READ_JSON_H
#define VYRE_TOOLS_IO_READ_JSON_H

#include "io/read_file.h"

typedef enum token_type {
  TOKEN_NULL,
  TOKEN_BOOL,
  TOKEN_NUMBER,
  TOKEN_STRING,
  TOKEN_KEY,
  TOKEN_OBJECT,
  TOKEN_OBJECT_END,
  TOKEN_ARRAY,
  TOKEN_ARRAY_END,
} token_type;

typedef struct token {
  token_type type;
  bool truth;       /* of a bool */
  const char *text; /* number as written; key or string without escapes */
  size_t length;
} token;

typedef struct json_reader json_reader;

/* Takes the next token; false stops, with the problem set. */
typedef bool (*token_handler)(json_reader *reader, const token *t);

struct json_reader {
  const input *in;
  vyre_arena *arena;
  problem *wrong;
  token_handler handle;
  void *parser;  /* YAJL's */
  size_t before; /* where the token before this one ended */
  size_t end;    /* where this one ends */
  void *escape;  /* where to go when YAJL finds no memory */
};

/* What may stand between tokens. */
bool json_is_space(char c);

/* Feeds @p in to reader->handle, token by token. */
bool json_read(json_reader *reader);

/* Fails at the token that is being handled. */
bool json_fail(json_reader *reader, const char *fix, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* "<name> is <token>, not <wanted>" */
bool json_unexpected(json_reader *reader, const token *t, const char *name,
                     const char *wanted);

/* A whole number from 0 to @p most. */
bool json_number(json_reader *reader, const token *t, const char *name,
                 uint64_t most, uint64_t *out);
bool json_truth(json_reader *reader, const token *t, const char *name,
                bool *out);

/* One of @p names; *out is its position. */
bool json_choice(json_reader *reader, const token *t, const char *name,
                 const char *const *names, size_t count, size_t *out);

/* A string without control characters, copied to the arena. */
bool json_name(json_reader *reader, const token *t, const char *name,
               const char **out, size_t *out_length);

/* The keys an object may have. */
typedef struct key_set {
  const char *where; /* how messages call the object */
  const char *const *names;
  size_t count;
  uint32_t required; /* bit i: names[i] must be there */
} key_set;

/* Finds a key that was not seen before; *out is its position in the set. */
bool json_key(json_reader *reader, const token *t, const key_set *keys,
              uint32_t *seen, size_t *out);

/* At the end of an object: whether all required keys were there. */
bool json_keys_complete(json_reader *reader, const key_set *keys,
                        uint32_t seen);

#endif
