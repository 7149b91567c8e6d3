/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Imports of documents: open documents come before files. */
#include "lsp/imports.h"

#include <stdlib.h>
#include <string.h>

static int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes the path of a file URI into @p out, which has the size of the URI.
 * Any other URI has no path. */
static void decode_path(const char *uri, char *out) {
  static const char scheme[] = "file://";
  const char *at = uri + strlen(scheme);
  *out = '\0';
  if (strncmp(uri, scheme, strlen(scheme)) != 0) return;
  while (*at) {
    const bool is_code = at[0] == '%' && hex(at[1]) >= 0 && hex(at[2]) >= 0;
    *out++ = (char)(is_code ? hex(at[1]) * 16 + hex(at[2]) : at[0]);
    at += is_code ? 3 : 1;
  }
  *out = '\0';
}

const char *document_path(document *doc) {
  const size_t size = strlen(doc->uri) + 1;
  if (doc->path) return doc->path;
  char *path = vyre_arena_alloc(&doc->arena, size, 1);
  if (!path) return "";
  decode_path(doc->uri, path);
  doc->path = path;
  return path;
}

void put_file_uri(json_out *json, const char *key, const char *path) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  sink uri = {0};
  sink_text(&uri, "file://");
  for (; *path; path++) {
    if (strchr(plain, *path)) {
      sink_bytes(&uri, path, 1);
    } else {
      sink_format(&uri, "%%%02X", (unsigned)(unsigned char)*path);
    }
  }
  json_string(json, key, uri.data, uri.length);
  sink_deinit(&uri);
}

bool document_has_imports(const document *doc) {
  static const char word[] = "import";
  const char *text = doc->text.data;
  for (size_t i = 0; i + strlen(word) <= doc->text.length; i++) {
    if (memcmp(text + i, word, strlen(word)) == 0) return true;
  }
  return false;
}

/* Reads an open document, or a file. */
static bool read_document(void *context, const char *path, vyre_arena *arena,
                          const char **text, size_t *length) {
  const document_imports *imports = context;
  for (size_t i = 0; i < *imports->document_count; i++) {
    document *doc = imports->documents[i];
    if (strcmp(document_path(doc), path) != 0) continue;
    *text = doc->text.data ? doc->text.data : "";
    *length = doc->text.length;
    return true;
  }
  const vyre_module_options *options = imports->options;
  return options && options->import_read &&
         options->import_read(options->import_context, path, arena, text,
                              length);
}

vyre_module_options document_options(const document *doc) {
  vyre_module_options out = {.import_read = read_document};
  if (!doc->imports) return (vyre_module_options){0};
  union { /* the context of a read function is not const */
    const document_imports *from;
    void *to;
  } context = {.from = doc->imports};
  out.import_context = context.to;
  if (doc->imports->options) {
    out.import_folders = doc->imports->options->import_folders;
    out.import_folder_count = doc->imports->options->import_folder_count;
  }
  return out;
}

uint32_t document_import_line(const document *doc, const char *path) {
  const char *slash = strrchr(path, '/');
  const char *name = slash ? slash + 1 : path;
  const size_t length = strlen(name);
  uint32_t line = 1;
  for (size_t i = 0; i + length < doc->text.length; i++) {
    if (doc->text.data[i] == '\n') line++;
    if (memcmp(doc->text.data + i, name, length) == 0) return line;
  }
  return 1;
}
