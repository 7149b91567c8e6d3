/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers to requests about one document. Each appends the value of "result",
 * or of another key, to an object that is open. */
#ifndef VYRE_TOOLS_LSP_ANSWERS_H
#define VYRE_TOOLS_LSP_ANSWERS_H

#include "io/json_out.h"
#include "lsp/document.h"
#include "lsp/json_tree.h"

/* Range between two positions. */
typedef struct lsp_range {
  lsp_position from, to;
} lsp_range;

void put_range(json_out *json, const char *key, lsp_range range);
lsp_range range_of_use(const document *doc, uint32_t line, uint32_t column,
                       uint32_t length);

/* diagnostics.c */
void answer_diagnostics(json_out *json, document *doc);
void answer_code_actions(json_out *json, document *doc, lsp_range range);

/* hover.c */
void answer_hover(json_out *json, document *doc, lsp_position position);

/* navigation.c */
void answer_definition(json_out *json, document *doc, lsp_position position);
void answer_references(json_out *json, document *doc, lsp_position position,
                       bool with_declaration);
void answer_highlights(json_out *json, document *doc, lsp_position position);
void answer_symbols(json_out *json, document *doc);

/* rename.c; each returns NULL, or the reason for a refusal. */
const char *answer_prepare_rename(json_out *json, document *doc,
                                  lsp_position position);
const char *answer_rename(json_out *json, document *doc, lsp_position position,
                          const char *name, size_t length);

/* completion.c */
void answer_completion(json_out *json, document *doc, lsp_position position);

/* format.c */
void answer_formatting(json_out *json, document *doc);

#endif
