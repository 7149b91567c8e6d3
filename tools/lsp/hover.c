/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hover: types and proven facts. */
#include <string.h>

#include "lsp/answers.h"

/* Appends "let i : u32". */
static void put_declaration(sink *out, const vyre_symbol *symbol) {
  const bool is_function = symbol->kind == VYRE_SYMBOL_FN;
  sink_text(out, "```vyre\n");
  if (symbol->kind == VYRE_SYMBOL_PARAMETER ||
      symbol->kind == VYRE_SYMBOL_FIELD) {
    sink_text(out, "(");
    sink_text(out, vyre_symbol_kind_name(symbol->kind));
    sink_text(out, ") ");
  } else {
    sink_text(out, vyre_symbol_kind_name(symbol->kind));
    sink_text(out, " ");
  }
  sink_text(out, symbol->name);
  if (symbol->type[0] && !is_function) sink_text(out, " : ");
  sink_text(out, symbol->type);
  sink_text(out, "\n```\n");
}

/* Appends what is proven about the value at a position of the source. Returns
 * false without facts. */
static bool put_values(sink *out, const document *doc, uint32_t line,
                       uint32_t column) {
  bool found = false;
  for (size_t i = 0; i < doc->kernel_count; i++) {
    const kernel_facts *k = &doc->kernels[i];
    for (size_t j = 0; j < k->value_count; j++) {
      const vyre_value_info *it = &k->values[j];
      if (it->line != line || it->column != column) continue;
      found = true;
      sink_text(out, "\n");
      if (it->range) {
        sink_text(out, "value in `");
        sink_text(out, it->range);
        sink_text(out, "`, ");
      }
      sink_text(out, vyre_value_level_name(it->level));
      if (doc->kernel_count > 1) {
        sink_text(out, ", in kernel ");
        sink_text(out, k->name);
      }
      sink_text(out, "\n");
    }
  }
  return found;
}

/* Appends the facts of a name: at a declaration those of its first use. */
static void put_facts(sink *out, const document *doc,
                      const vyre_symbol_use *use) {
  if (put_values(out, doc, use->line, use->column)) return;
  const vyre_symbol *symbol = &doc->index.symbols[use->symbol];
  if (symbol->kind != VYRE_SYMBOL_LET || symbol->line != use->line ||
      symbol->column != use->column) {
    return;
  }
  const vyre_symbol_use *end = doc->index.uses + doc->index.use_count;
  for (const vyre_symbol_use *it = use + 1; it < end; it++) {
    if (it->symbol != use->symbol) continue;
    if (put_values(out, doc, it->line, it->column)) return;
  }
}

static void put_access(sink *out, const kernel_facts *k,
                       const vyre_access_info *it) {
  sink_text(out, "\n");
  sink_text(out, it->is_store ? "store" : it->is_atomic ? "atomic" : "load");
  sink_text(out, ": index in `");
  sink_text(out, it->index);
  sink_text(out, "`, length `");
  sink_text(out, it->length);
  sink_text(out, it->is_proven ? "`: proven inside " : "`: checked in ");
  if (it->buffer < k->buffer_count) {
    sink_text(out, "`");
    sink_text(out, k->buffers[it->buffer].name);
    sink_text(out, "`");
  } else { /* hidden memory of the compiler, for a private array */
    sink_text(out, "the array");
  }
  if (it->reason) {
    sink_text(out, " (");
    sink_text(out, it->reason);
    sink_text(out, ")");
  }
  sink_text(out, "\n");
}

static void put_accesses(sink *out, const document *doc, uint32_t line,
                         uint32_t column) {
  for (size_t i = 0; i < doc->kernel_count; i++) {
    const kernel_facts *k = &doc->kernels[i];
    const vyre_access_info *before = NULL;
    for (size_t j = 0; j < k->access_count; j++) {
      const vyre_access_info *it = &k->accesses[j];
      if (it->line != line || it->column != column) continue;
      const bool is_same = before && before->is_store == it->is_store &&
                           before->is_proven == it->is_proven &&
                           strcmp(before->index, it->index) == 0;
      if (!is_same) put_access(out, k, it);
      before = it;
    }
  }
}

/* Appends the type of the shortest value that contains an offset. */
static void put_type(sink *out, const document *doc, size_t offset) {
  const vyre_typed_text *best = NULL;
  for (size_t i = 0; i < doc->index.value_count; i++) {
    const vyre_typed_text *it = &doc->index.values[i];
    const size_t start = document_offset_at(doc, it->line, it->column);
    if (start > offset || start + it->length <= offset) continue;
    if (!best || it->length <= best->length) best = it;
  }
  if (!best) return;
  sink_text(out, "\ntype `");
  sink_text(out, best->type);
  sink_text(out, "`\n");
}

/* Appends the form of a word of the language. Returns false for others. */
static bool put_word(sink *out, const char *word, size_t length) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  size_t count;
  const vyre_word *words = vyre_words(&arena, &count);
  bool found = false;
  for (size_t i = 0; words && i < count && !found; i++) {
    found = strlen(words[i].name) == length &&
            memcmp(words[i].name, word, length) == 0;
    if (!found) continue;
    sink_text(out, "```vyre\n");
    sink_text(out, words[i].form);
    sink_text(out, "\n```\n");
    sink_text(out, vyre_word_kind_name(words[i].kind));
    if (words[i].operands[0]) {
      sink_text(out, ", takes ");
      sink_text(out, words[i].operands);
    }
    sink_text(out, "\n");
  }
  vyre_arena_deinit(&arena);
  return found;
}

void answer_hover(json_out *json, document *doc, lsp_position position) {
  sink text = {0};
  size_t start, length;
  document_analyse(doc);
  const size_t offset = document_offset(doc, position);
  const vyre_symbol_use *use = document_use_at(doc, offset);
  if (use) {
    put_declaration(&text, &doc->index.symbols[use->symbol]);
    put_facts(&text, doc, use);
    put_accesses(&text, doc, use->line, use->column);
    start = document_offset_at(doc, use->line, use->column);
    length = use->length;
  } else {
    if (!document_word_at(doc, offset, &start, &length)) {
      start = offset;
      length = 0;
    } else if (put_word(&text, doc->text.data + start, length)) {
      const lsp_position at = document_position_at(doc, start);
      (void)put_values(&text, doc, at.line + 1,
                       (uint32_t)(start - doc->lines[at.line]) + 1);
    }
    put_type(&text, doc, offset);
  }
  if (text.length == 0) {
    json_null(json, "result");
  } else {
    json_open(json, "result", '{');
    json_open(json, "contents", '{');
    json_text(json, "kind", "markdown");
    json_string(json, "value", text.data, text.length);
    json_close(json, '}');
    put_range(json, "range",
              (lsp_range){document_position_at(doc, start),
                          document_position_at(doc, start + length)});
    json_close(json, '}');
  }
  sink_deinit(&text);
}
