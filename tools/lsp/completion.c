/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Completion: names in scope and words of the language. */
#include <string.h>

#include "lsp/answers.h"

/* Kinds of the protocol. */
enum {
  KIND_FUNCTION = 3,
  KIND_FIELD = 5,
  KIND_VARIABLE = 6,
  KIND_KEYWORD = 14,
  KIND_CONSTANT = 21,
  KIND_STRUCT = 22,
  KIND_TYPE = 25
};

static void put_item(json_out *json, const char *label, unsigned kind,
                     const char *detail) {
  json_open(json, NULL, '{');
  json_text(json, "label", label);
  json_u64(json, "kind", kind);
  if (detail[0]) json_text(json, "detail", detail);
  json_close(json, '}');
}

static unsigned kind_of_symbol(vyre_symbol_kind kind) {
  switch (kind) {
    case VYRE_SYMBOL_FN:
      return KIND_FUNCTION;
    case VYRE_SYMBOL_CONST:
    case VYRE_SYMBOL_OVERRIDE:
      return KIND_CONSTANT;
    case VYRE_SYMBOL_STRUCT:
      return KIND_STRUCT;
    case VYRE_SYMBOL_FIELD:
      return KIND_FIELD;
    default:
      return KIND_VARIABLE;
  }
}

static unsigned kind_of_word(vyre_word_kind kind) {
  switch (kind) {
    case VYRE_WORD_FUNCTION:
      return KIND_FUNCTION;
    case VYRE_WORD_TYPE:
    case VYRE_WORD_ELEMENT:
      return KIND_TYPE;
    case VYRE_WORD_CONSTANT:
      return KIND_CONSTANT;
    case VYRE_WORD_ID:
      return KIND_VARIABLE;
    default:
      return KIND_KEYWORD;
  }
}

/* Returns true if a name is visible at an offset. Declarations of the file are
 * visible everywhere. */
static bool is_visible(const document *doc, const vyre_symbol *symbol,
                       size_t offset) {
  if (symbol->kind == VYRE_SYMBOL_KERNEL) return false;
  if (symbol->parent == VYRE_NO_INDEX) return true;
  return document_offset_at(doc, symbol->first_line, symbol->first_column) <=
             offset &&
         offset <=
             document_offset_at(doc, symbol->end_line, symbol->end_column);
}

static void put_components(json_out *json) {
  static const char *const names[] = {"x", "y", "z", "w"};
  for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
    put_item(json, names[i], KIND_FIELD, "");
  }
}

static void put_words(json_out *json) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  size_t count;
  const vyre_word *words = vyre_words(&arena, &count);
  for (size_t i = 0; words && i < count; i++) {
    const bool has_form = strcmp(words[i].form, words[i].name) != 0;
    put_item(json, words[i].name, kind_of_word(words[i].kind),
             has_form ? words[i].form : "");
  }
  vyre_arena_deinit(&arena);
}

void answer_completion(json_out *json, document *doc, lsp_position position) {
  size_t start, length;
  document_analyse(doc);
  const size_t offset = document_offset(doc, position);
  if (!document_word_at(doc, offset, &start, &length)) start = offset;
  json_open(json, "result", '[');
  if (start > 0 && doc->text.data[start - 1] == '.') {
    put_components(json);
  } else {
    for (size_t i = 0; i < doc->index.symbol_count; i++) {
      const vyre_symbol *it = &doc->index.symbols[i];
      if (!is_visible(doc, it, offset)) continue;
      put_item(json, it->name, kind_of_symbol(it->kind), it->type);
    }
    put_words(json);
  }
  json_close(json, ']');
}
