/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/source.h
 *  Facts about the text of a kernel file, for editors: names with their uses,
 *  types of values, and the words of the language. */
#ifndef VYRE_SOURCE_H
#define VYRE_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/diagnostic.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/module.h"
#include "vyre/status.h"

/** Kinds of names: X(enumerator, name). */
#define VYRE_SYMBOL_KIND_MAP(X)         \
  X(VYRE_SYMBOL_KERNEL, "kernel")       \
  X(VYRE_SYMBOL_FN, "fn")               \
  X(VYRE_SYMBOL_CONST, "const")         \
  X(VYRE_SYMBOL_STRUCT, "struct")       \
  X(VYRE_SYMBOL_OVERRIDE, "override")   \
  X(VYRE_SYMBOL_BUFFER, "buffer")       \
  X(VYRE_SYMBOL_UNIFORM, "uniform")     \
  X(VYRE_SYMBOL_SHARED, "shared")       \
  X(VYRE_SYMBOL_PARAMETER, "parameter") \
  X(VYRE_SYMBOL_LET, "let")             \
  X(VYRE_SYMBOL_VAR, "var")             \
  X(VYRE_SYMBOL_FIELD, "field")

/** Kinds of words: X(enumerator, name). CONTEXT words have a meaning in one
 *  place only, such as `read`, and may be names. */
#define VYRE_WORD_KIND_MAP(X)       \
  X(VYRE_WORD_KEYWORD, "keyword")   \
  X(VYRE_WORD_TYPE, "type")         \
  X(VYRE_WORD_ELEMENT, "element")   \
  X(VYRE_WORD_FUNCTION, "function") \
  X(VYRE_WORD_ID, "id")             \
  X(VYRE_WORD_CONSTANT, "constant") \
  X(VYRE_WORD_CONTEXT, "context")

#define VYRE_X2(name, text) name,
/** Kind of a name. */
typedef enum vyre_symbol_kind {
  VYRE_SYMBOL_KIND_MAP(VYRE_X2) VYRE_SYMBOL_KIND_COUNT
} vyre_symbol_kind;

/** Kind of a word. */
typedef enum vyre_word_kind {
  VYRE_WORD_KIND_MAP(VYRE_X2) VYRE_WORD_KIND_COUNT
} vyre_word_kind;
#undef VYRE_X2

/** Declared name. Lines and columns start at 1; columns count bytes. */
typedef struct vyre_symbol {
  vyre_symbol_kind kind;
  uint32_t line, column, length; /* the name in its declaration */
  const char *name;              /* the name */
  const char *type; /* "u32", "read f32[]", "(a: f32) -> f32"; "" if unknown */
  uint32_t parent;  /* symbol of the kernel or fn around it; VYRE_NO_INDEX */
  /* Start and end of the text in which the name has this meaning. Of kernel,
   * fn, const and struct: start and end of the declaration. */
  uint32_t first_line, first_column, end_line, end_column;
  const char *file;     /* imported file of the lines; NULL: the file itself */
  uint64_t reserved[3]; /* zero; for future fields */
} vyre_symbol;

/** Occurrence of a name, including its declaration. */
typedef struct vyre_symbol_use {
  uint32_t line, column, length; /* the name in the text */
  uint32_t symbol;               /* index of the symbol */
  uint64_t reserved[1];          /* zero; for future fields */
} vyre_symbol_use;

/** Value in the text. */
typedef struct vyre_typed_text {
  uint32_t line, column, length; /* the expression; may span lines */
  const char *type;              /* "f32x3" */
  uint64_t reserved[1];          /* zero; for future fields */
} vyre_typed_text;

/** Names and values of a file. Lives in an arena. */
typedef struct vyre_source_index {
  const vyre_symbol *symbols; /* in order of their declarations */
  size_t symbol_count;
  const vyre_symbol_use *uses; /* in order of the text */
  size_t use_count;
  const vyre_typed_text *values; /* in order of their start */
  size_t value_count;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_source_index;

/** Word of the language. Static storage. */
typedef struct vyre_word {
  const char *name;     /* "clamp" */
  vyre_word_kind kind;  /* kind */
  const char *form;     /* "clamp(x, low, high)"; the name for other words */
  const char *operands; /* what a function takes; "" for other words */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_word;

VYRE_BEGIN

/** Lists the names, their uses and the types of values in a file, which may
 *  have errors: parts that do not parse have no values, and their names may be
 *  absent. The lists live in @p arena.
 *  Ownership: fills *out, which is zeroed on failure.
 *  Lifetime:  @p text is borrowed for the call.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator only.
 *  Errors:    VYRE_INVALID_PROGRAM for a text that is larger than 16 MiB, is
 *             not UTF-8 or contains NUL bytes; VYRE_INVALID_ARGUMENT for a
 *             NULL argument; VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_source_index_build(const char *text, size_t length, vyre_arena *arena,
                        vyre_source_index *out, vyre_status *st);

/** Lists the same of a file with imports. The symbols contain the
 *  declarations of imported files. @p file is its name, from whose folder
 *  imports are read; @p options may be NULL.
 *  Ownership: fills *out, which is zeroed on failure.
 *  Lifetime:  @p text, @p file and @p options are borrowed for the call.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on the allocator and `import_read`.
 *  Errors:    as vyre_source_index_build. */
VYRE_API VYRE_NODISCARD vyre_code vyre_source_index_build_with(
    const char *text, size_t length, const char *file,
    const vyre_module_options *options, vyre_arena *arena,
    vyre_source_index *out, vyre_status *st);

/** Returns all words of the language, sorted by kind and name, and stores
 *  their number in *count. The array lives in @p arena; NULL if memory is
 *  exhausted.
 *  Threads: safe; the arena is compatible.  Blocks: on the allocator only.
 *  Errors:  none. */
VYRE_API const vyre_word *vyre_words(vyre_arena *arena, size_t *count);

/** Return the name of a kind ("kernel", "function"), or "?" for an unknown
 *  value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_symbol_kind_name(vyre_symbol_kind kind);
VYRE_API const char *vyre_word_kind_name(vyre_word_kind kind);

VYRE_END

#endif
