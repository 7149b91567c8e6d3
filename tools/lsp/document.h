/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Open documents: text, positions, and what the library knows about them. */
#ifndef VYRE_TOOLS_LSP_DOCUMENT_H
#define VYRE_TOOLS_LSP_DOCUMENT_H

#include "vyre/diagnostic.h"
#include "vyre/emit.h"
#include "vyre/source.h"

#include "cli/sink.h"

/* Position as editors count: from 0, columns in UTF-16 units. */
typedef struct lsp_position {
  uint32_t line, character;
} lsp_position;

/* Facts about one kernel. */
typedef struct kernel_facts {
  const char *name;
  const vyre_buffer_decl *buffers;
  size_t buffer_count;
  const vyre_access_info *accesses;
  size_t access_count;
  const vyre_value_info *values;
  size_t value_count;
} kernel_facts;

typedef struct document_imports document_imports;

typedef struct document {
  char *uri;
  const document_imports *imports; /* NULL: imports are refused */
  sink text;
  int64_t version;
  bool is_dirty; /* its diagnostics were not published */
  /* The following fields are valid if `is_analysed`. */
  bool is_analysed;
  vyre_arena arena;
  const char *path; /* of the URI; NULL: not decoded yet */
  uint32_t *lines;  /* offset of each line; lines[line_count] is the length */
  uint32_t line_count;
  struct last_place *last; /* the place that was converted last */
  bool is_valid;           /* parses and validates */
  vyre_diagnostics found;
  vyre_source_index index;
  struct vyre_module *module;
  kernel_facts *kernels;
  size_t kernel_count;
} document;

/* Frees everything but the struct. */
void document_deinit(document *doc);

/* Forgets what was analysed, because an imported file changed. */
void document_refresh(document *doc);

/* Replaces the text. */
void document_set(document *doc, const char *text, size_t length);

/* Replaces the text between two positions, which are moved into the text. */
void document_change(document *doc, lsp_position from, lsp_position to,
                     const char *text, size_t length);

/* Analyses the text, unless that was done. */
void document_analyse(document *doc);

/* Converts a line and a column of the library, from 1 and in bytes. */
lsp_position document_position(const document *doc, uint32_t line,
                               uint32_t column);
/* Converts an offset. */
lsp_position document_position_at(const document *doc, size_t offset);

/* Returns the offset of a position, which is moved into the text. */
size_t document_offset(document *doc, lsp_position position);

/* Returns the offset of a line and a column of the library. */
size_t document_offset_at(const document *doc, uint32_t line, uint32_t column);

/* Returns the use of a name at an offset or directly before it, or NULL. */
const vyre_symbol_use *document_use_at(const document *doc, size_t offset);

/* Finds the word around an offset. Returns false at other text. */
bool document_word_at(const document *doc, size_t offset, size_t *start,
                      size_t *length);

#endif
