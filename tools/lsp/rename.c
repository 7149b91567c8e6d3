/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rename. The new text is parsed: a rename that makes another program is
 * refused. */
#include <string.h>

#include "vyre/module.h"
#include "vyre/program.h"

#include "lsp/answers.h"
#include "lsp/imports.h"

/* Returns the use to rename, or NULL with a reason. */
static const vyre_symbol_use *find_use(document *doc, lsp_position position,
                                       const char **reason) {
  document_analyse(doc);
  const vyre_symbol_use *use =
      document_use_at(doc, document_offset(doc, position));
  *reason = NULL;
  if (!use) {
    *reason = "no name of this file is at this position";
  } else if (doc->index.symbols[use->symbol].file) {
    *reason = "the name is declared in an imported file: rename it there";
  } else if (!doc->is_valid) {
    *reason = "the file has errors: correct them first";
  }
  return *reason ? NULL : use;
}

const char *answer_prepare_rename(json_out *json, document *doc,
                                  lsp_position position) {
  const char *reason;
  const vyre_symbol_use *use = find_use(doc, position, &reason);
  if (!use) return reason;
  json_open(json, "result", '{');
  put_range(json, "range",
            range_of_use(doc, use->line, use->column, use->length));
  json_text(json, "placeholder", doc->index.symbols[use->symbol].name);
  json_close(json, '}');
  return NULL;
}

static bool is_name(const char *name, size_t length) {
  if (length == 0 || length > 255 || (name[0] >= '0' && name[0] <= '9')) {
    return false;
  }
  for (size_t i = 0; i < length; i++) {
    const char c = name[i];
    if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
        !(c >= 'A' && c <= 'Z')) {
      return false;
    }
  }
  return true;
}

/* Writes the text with the new name. */
static void rename_in(const document *doc, uint32_t symbol, const char *name,
                      size_t length, sink *out) {
  size_t copied = 0;
  for (size_t i = 0; i < doc->index.use_count; i++) {
    const vyre_symbol_use *use = &doc->index.uses[i];
    if (use->symbol != symbol) continue;
    const size_t start = document_offset_at(doc, use->line, use->column);
    sink_bytes(out, doc->text.data + copied, start - copied);
    sink_bytes(out, name, length);
    copied = start + use->length;
  }
  sink_bytes(out, doc->text.data + copied, doc->text.length - copied);
}

/* Returns true if both files have the same kernels. Names of buffers and
 * kernels are part of a program, so these only need to parse. */
static bool is_same(const document *doc, const vyre_module *module,
                    const vyre_symbol *symbol) {
  const size_t count = vyre_module_kernel_count(doc->module);
  const bool is_named = symbol->kind == VYRE_SYMBOL_KERNEL ||
                        symbol->kind == VYRE_SYMBOL_BUFFER ||
                        symbol->kind == VYRE_SYMBOL_UNIFORM ||
                        symbol->kind == VYRE_SYMBOL_SHARED ||
                        symbol->kind == VYRE_SYMBOL_FIELD ||
                        symbol->kind == VYRE_SYMBOL_STRUCT;
  if (vyre_module_kernel_count(module) != count) return false;
  for (size_t i = 0; i < count && !is_named; i++) {
    if (!vyre_program_equal(vyre_module_kernel(doc->module, i),
                            vyre_module_kernel(module, i))) {
      return false;
    }
  }
  return true;
}

const char *answer_rename(json_out *json, document *doc, lsp_position position,
                          const char *name, size_t length) {
  const char *reason;
  const vyre_symbol_use *at = find_use(doc, position, &reason);
  if (!at) return reason;
  if (!is_name(name, length)) {
    return "a name has letters, digits and _, and does not begin with a digit";
  }
  const vyre_symbol *symbol = &doc->index.symbols[at->symbol];
  sink text = {0};
  vyre_module *module = NULL;
  vyre_status st = {0};
  const vyre_module_options options = document_options(doc);
  rename_in(doc, at->symbol, name, length, &text);
  bool good =
      !text.failed &&
      vyre_module_parse_with(text.data ? text.data : "", text.length,
                             document_path(doc), &options, (vyre_allocator){0},
                             &module, NULL, &st) == VYRE_OK &&
      is_same(doc, module, symbol);
  vyre_module_release(module);
  sink_deinit(&text);
  if (!good) return "the new name has another meaning there";
  json_open(json, "result", '{');
  json_open(json, "changes", '{');
  json_text(json, NULL, doc->uri);
  sink_text(json->out, ":[");
  json->comma = false;
  for (size_t i = 0; i < doc->index.use_count; i++) {
    const vyre_symbol_use *use = &doc->index.uses[i];
    if (use->symbol != at->symbol) continue;
    json_open(json, NULL, '{');
    put_range(json, "range",
              range_of_use(doc, use->line, use->column, use->length));
    json_string(json, "newText", name, length);
    json_close(json, '}');
  }
  json_close(json, ']');
  json_close(json, '}');
  json_close(json, '}');
  return NULL;
}
