/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* JSON input. YAJL splits the text into tokens. This adds positions and what
 * the readers share: keys, numbers, names and their errors. */
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
  bool truth;       /* value of a bool */
  const char *text; /* number as written; key or string without escapes */
  size_t length;
} token;

typedef struct json_reader json_reader;

/* Handles the next token. Returns false to stop, with a problem. */
typedef bool (*token_handler)(json_reader *reader, const token *t);

struct json_reader {
  const input *in;
  vyre_arena *arena;
  problem *wrong;
  token_handler handle;
  void *parser;  /* YAJL's */
  size_t before; /* end of the previous token */
  size_t end;    /* end of this token */
  void *escape;  /* target of the jump on a failed allocation */
};

/* Characters between tokens. */
bool json_is_space(char c);

/* Parses @p in and calls reader->handle for each token. */
bool json_read(json_reader *reader);

/* Fails at the current token. */
bool json_fail(json_reader *reader, const char *fix, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Fails with "<name> is <token>, not <wanted>". */
bool json_unexpected(json_reader *reader, const token *t, const char *name,
                     const char *wanted);

/* Reads an integer from 0 to @p most. */
bool json_number(json_reader *reader, const token *t, const char *name,
                 uint64_t max, uint64_t *out);
bool json_truth(json_reader *reader, const token *t, const char *name,
                bool *out);

/* Reads one of @p names; *out is its index. */
bool json_choice(json_reader *reader, const token *t, const char *name,
                 const char *const *names, size_t count, size_t *out);

/* Reads a string without control characters and copies it to the arena. */
bool json_name(json_reader *reader, const token *t, const char *name,
               const char **out, size_t *out_length);

/* The keys an object may have. */
typedef struct key_set {
  const char *where; /* name of the object in messages */
  const char *const *names;
  size_t count;
  uint32_t required; /* bit i: names[i] is required */
} key_set;

/* Looks up a key, which must not repeat; *out is its index in the set. */
bool json_key(json_reader *reader, const token *t, const key_set *keys,
              uint32_t *seen, size_t *out);

/* Checks at the end of an object that all required keys were given. */
bool json_keys_complete(json_reader *reader, const key_set *keys,
                        uint32_t seen);

#endif
