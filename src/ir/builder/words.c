/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The words of the language, for editors, from the tables of the lexer. */
#include <stdio.h>
#include <string.h>

#include "vyre/source.h"

#include "base/memory.h"
#include "ir/builder/ir_builder_internal.h"
#include "ir/ir.h"
#include "ir/keywords.h"

static const char *const contexts[] = {
#define PUNCTUATION(name, text)
#define KEYWORD(name, text)
#define CONTEXT(text) text,
#include "ir/keywords.def"
#undef PUNCTUATION
#undef KEYWORD
#undef CONTEXT
};

enum { CONTEXTS = sizeof contexts / sizeof contexts[0], TEXT = 128 };

/* Functions whose operands have names. */
static const char *const forms[] = {
    "select(condition, x, y)",
    "clamp(x, low, high)",
    "mix(a, b, t)",
    "step(edge, x)",
    "smoothstep(low, high, x)",
    "rotate(x, n)",
    "extract(x, from, count)",
    "insert(x, y, from, count)",
    "pow(x, y)",
    "atan2(y, x)",
    "fma(x, y, z)",
    "push(value)",
    "atomic_merge(sum[i], other[j])",
};

/* Returns "min(x, y)". */
static const char *form_of(const vyre__op_info *op, char text[TEXT]) {
  const char *operands;
  const size_t length = strlen(op->text);
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    if (strncmp(forms[i], op->text, length) == 0 && forms[i][length] == '(') {
      return forms[i];
    }
  }
  switch (op->form) {
    case VYRE__FORM_BUFFER:
      operands = "buffer";
      break;
    case VYRE__FORM_ATOMIC:
      operands = "buffer[i], value";
      break;
    case VYRE__FORM_ATOMIC2:
      operands = "buffer[i], expected, value";
      break;
    case VYRE__FORM_UNARY:
      operands = "x";
      break;
    case VYRE__FORM_BINARY:
      operands = "x, y";
      break;
    case VYRE__FORM_TERNARY:
      operands = "x, y, z";
      break;
    default:
      return op->text;
  }
  snprintf(text, TEXT, "%s(%s)", op->text, operands);
  return text;
}

/* Returns true for an operation that the text form names. */
static bool is_named(const vyre__reserved_word *row) {
  if (strchr(row->text, ' ')) return false; /* for messages only */
  if (row->word == VYRE__WORD_OP && row->value == VYRE__OP_RETURN_RESULTS)
    return false; /* the keyword */
  return vyre__is_word(row) ||
         (row->word == VYRE__WORD_OP && vyre__op_is_soft(row->value)) ||
         (row->word == VYRE__WORD_OP && vyre__is_queue_word(row->text));
}

static vyre_word_kind kind_of(const vyre__reserved_word *row) {
  switch (row->word) {
    case VYRE__WORD_KEYWORD:
      return VYRE_WORD_KEYWORD;
    case VYRE__WORD_TYPE:
      return VYRE_WORD_TYPE;
    case VYRE__WORD_ELEMENT:
      return VYRE_WORD_ELEMENT;
    case VYRE__WORD_FLOAT:
      return VYRE_WORD_CONSTANT;
    case VYRE__WORD_OP:
      return vyre__ops[row->value].form == VYRE__FORM_AXIS ||
                     vyre__ops[row->value].form == VYRE__FORM_NULLARY
                 ? VYRE_WORD_ID
                 : VYRE_WORD_FUNCTION;
    default:
      return VYRE_WORD_FUNCTION;
  }
}

static vyre_word make_word(const vyre__reserved_word *row, char text[TEXT]) {
  vyre_word word = {.name = row->text,
                    .kind = kind_of(row),
                    .form = row->text,
                    .operands = ""};
  if (row->word == VYRE__WORD_OP) {
    const vyre__op_info *op = &vyre__ops[row->value];
    word.form = form_of(op, text);
    if (word.kind == VYRE_WORD_FUNCTION && op->rule != VYRE__RULE_NONE &&
        op->rule != VYRE__RULE_VECTOR) {
      word.operands = vyre__rule_wants((vyre__rule)op->rule);
    }
  } else if (row->word == VYRE__WORD_BITCAST) {
    snprintf(text, TEXT, "%s(x)", row->text);
    word.form = text;
  } else if (row->word == VYRE__WORD_ATOMIC) {
    snprintf(text, TEXT, "%s(buffer[i]%s)", row->text,
             row->value == VYRE__ATOMIC_STORE ? ", value" : "");
    word.form = text;
  }
  return word;
}

static bool is_before(const vyre_word *a, const vyre_word *b) {
  if (a->kind != b->kind) return a->kind < b->kind;
  return strcmp(a->name, b->name) < 0;
}

/* Inserts a word in order. Words that are there already are left out. */
static void insert(vyre_word *words, size_t *count, vyre_word word) {
  size_t at = *count;
  for (; at > 0 && !is_before(&words[at - 1], &word); at--) {
    if (!is_before(&word, &words[at - 1])) return;
  }
  memmove(words + at + 1, words + at, (*count - at) * sizeof *words);
  words[at] = word;
  ++*count;
}

const vyre_word *vyre_words(vyre_arena *arena, size_t *count) {
  vyre_word *words = vyre__arena_array(
      arena, vyre__reserved_word_count + CONTEXTS, sizeof *words);
  size_t used = 0;
  *count = 0;
  if (!words) return NULL;
  for (size_t i = 0; i < vyre__reserved_word_count; i++) {
    const vyre__reserved_word *row = &vyre__reserved_words[i];
    char text[TEXT];
    if (!is_named(row)) continue;
    vyre_word word = make_word(row, text);
    if (word.form == text) word.form = vyre__arena_text(arena, text);
    if (!word.form) return NULL;
    insert(words, &used, word);
  }
  for (size_t i = 0; i < CONTEXTS; i++) {
    insert(words, &used,
           (vyre_word){.name = contexts[i],
                       .kind = VYRE_WORD_CONTEXT,
                       .form = contexts[i],
                       .operands = ""});
  }
  *count = used;
  return words;
}

const char *vyre_symbol_kind_name(vyre_symbol_kind kind) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_SYMBOL_KIND_MAP(VYRE_X2)};
  return (unsigned)kind < VYRE_SYMBOL_KIND_COUNT ? names[kind] : "?";
}

const char *vyre_word_kind_name(vyre_word_kind kind) {
  static const char *const names[] = {VYRE_WORD_KIND_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)kind < VYRE_WORD_KIND_COUNT ? names[kind] : "?";
}
