/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Definition, references and symbols of a document. */
#include "lsp/answers.h"
#include "lsp/imports.h"

static void put_location(json_out *json, const char *key, const document *doc,
                         lsp_range range) {
  json_open(json, key, '{');
  json_text(json, "uri", doc->uri);
  put_range(json, "range", range);
  json_close(json, '}');
}

/* Returns the symbol at a position, or VYRE_NO_INDEX. */
static uint32_t symbol_at(document *doc, lsp_position position) {
  document_analyse(doc);
  const vyre_symbol_use *use =
      document_use_at(doc, document_offset(doc, position));
  return use ? use->symbol : VYRE_NO_INDEX;
}

static lsp_range name_range(const document *doc, const vyre_symbol *symbol) {
  return range_of_use(doc, symbol->line, symbol->column, symbol->length);
}

void answer_definition(json_out *json, document *doc, lsp_position position) {
  const uint32_t symbol = symbol_at(doc, position);
  if (symbol == VYRE_NO_INDEX) {
    json_null(json, "result");
    return;
  }
  const vyre_symbol *own = &doc->index.symbols[symbol];
  if (own->file) {
    const lsp_range range = {{own->line - 1, own->column - 1},
                             {own->line - 1, own->column - 1 + own->length}};
    json_open(json, "result", '{');
    put_file_uri(json, "uri", own->file);
    put_range(json, "range", range);
    json_close(json, '}');
    return;
  }
  put_location(json, "result", doc, name_range(doc, own));
}

/* Returns true if a use is the declaration of its symbol. */
static bool is_declaration(const document *doc, const vyre_symbol_use *use) {
  const vyre_symbol *symbol = &doc->index.symbols[use->symbol];
  return !symbol->file && symbol->line == use->line &&
         symbol->column == use->column;
}

void answer_references(json_out *json, document *doc, lsp_position position,
                       bool with_declaration) {
  const uint32_t symbol = symbol_at(doc, position);
  json_open(json, "result", '[');
  for (size_t i = 0; i < doc->index.use_count; i++) {
    const vyre_symbol_use *use = &doc->index.uses[i];
    if (use->symbol != symbol ||
        (!with_declaration && is_declaration(doc, use))) {
      continue;
    }
    put_location(json, NULL, doc,
                 range_of_use(doc, use->line, use->column, use->length));
  }
  json_close(json, ']');
}

void answer_highlights(json_out *json, document *doc, lsp_position position) {
  const uint32_t symbol = symbol_at(doc, position);
  json_open(json, "result", '[');
  for (size_t i = 0; i < doc->index.use_count; i++) {
    const vyre_symbol_use *use = &doc->index.uses[i];
    if (use->symbol != symbol) continue;
    json_open(json, NULL, '{');
    put_range(json, "range",
              range_of_use(doc, use->line, use->column, use->length));
    json_close(json, '}');
  }
  json_close(json, ']');
}

/* Numbers of the protocol. */
static unsigned protocol_kind(vyre_symbol_kind kind) {
  enum {
    FUNCTION = 12,
    VARIABLE = 13,
    CONSTANT = 14,
    ARRAY = 18,
    STRUCT = 23,
    FIELD = 8,
    EVENT = 24
  };
  switch (kind) {
    case VYRE_SYMBOL_KERNEL:
    case VYRE_SYMBOL_FN:
      return FUNCTION;
    case VYRE_SYMBOL_CONST:
    case VYRE_SYMBOL_OVERRIDE:
      return CONSTANT;
    case VYRE_SYMBOL_STRUCT:
      return STRUCT;
    case VYRE_SYMBOL_BUFFER:
    case VYRE_SYMBOL_UNIFORM:
    case VYRE_SYMBOL_SHARED:
      return ARRAY;
    case VYRE_SYMBOL_FIELD:
      return FIELD;
    default:
      return VARIABLE;
  }
}

static void open_symbol(json_out *json, const document *doc,
                        const vyre_symbol *symbol) {
  lsp_range range = name_range(doc, symbol);
  json_open(json, NULL, '{');
  json_text(json, "name", symbol->name);
  json_text(json, "detail", symbol->type);
  json_u64(json, "kind", protocol_kind(symbol->kind));
  put_range(json, "selectionRange", range);
  if (symbol->parent == VYRE_NO_INDEX) {
    range.from =
        document_position(doc, symbol->first_line, symbol->first_column);
    range.to = document_position(doc, symbol->end_line, symbol->end_column);
  }
  put_range(json, "range", range);
}

void answer_symbols(json_out *json, document *doc) {
  document_analyse(doc);
  const vyre_source_index *index = &doc->index;
  json_open(json, "result", '[');
  for (size_t i = 0; i < index->symbol_count; i++) {
    const vyre_symbol *symbol = &index->symbols[i];
    if (symbol->parent != VYRE_NO_INDEX || symbol->file) continue;
    open_symbol(json, doc, &index->symbols[i]);
    json_open(json, "children", '[');
    /* The symbols of a declaration follow it. */
    for (size_t j = i + 1; j < index->symbol_count; j++) {
      if (index->symbols[j].parent != i) break;
      open_symbol(json, doc, &index->symbols[j]);
      json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
  }
  json_close(json, ']');
}
