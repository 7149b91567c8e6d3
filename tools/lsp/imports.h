/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Imports of documents. */
#ifndef VYRE_TOOLS_LSP_IMPORTS_H
#define VYRE_TOOLS_LSP_IMPORTS_H

#include "vyre/module.h"

#include "io/json_out.h"
#include "lsp/document.h"

/* Sources of imports. */
struct document_imports {
  document **documents; /* open ones */
  const size_t *document_count;
  const vyre_module_options *options; /* for files; NULL: none */
};

/* Returns the path of a document, or "". Valid until the text changes. */
const char *document_path(document *doc);
/* Returns options that read open documents and files. */
vyre_module_options document_options(const document *doc);
/* Returns true if the text has the word import. */
bool document_has_imports(const document *doc);
/* Returns the line that imports a file, or 1. */
uint32_t document_import_line(const document *doc, const char *path);
/* Writes a path as a file URI. */
void put_file_uri(json_out *json, const char *key, const char *path);

#endif
