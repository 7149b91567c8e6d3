/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of the words of the language, and the test for reserved names. */
#include "ir/keywords.h"

#include <string.h>

#include "ir/ir.h"

#define ROW(text, word, value) {text, sizeof(text) - 1, word, value}

#define NO_PUNCTUATION(name, text)

const vyre__reserved_word vyre__reserved_words[] = {
#define PUNCTUATION         NO_PUNCTUATION
#define KEYWORD(name, text) ROW(text, VYRE__WORD_KEYWORD, VYRE__KEYWORD_##name),
#include "ir/keywords.def"
#undef PUNCTUATION
#undef KEYWORD
    ROW("bool", VYRE__WORD_TYPE, VYRE_TYPE_BOOL),
    ROW("u32", VYRE__WORD_TYPE, VYRE_TYPE_U32),
    ROW("i32", VYRE__WORD_TYPE, VYRE_TYPE_I32),
    ROW("u64", VYRE__WORD_TYPE, VYRE_TYPE_U64),
    ROW("i64", VYRE__WORD_TYPE, VYRE_TYPE_I64),
    ROW("f32", VYRE__WORD_TYPE, VYRE_TYPE_F32),
    ROW("f64", VYRE__WORD_TYPE, VYRE_TYPE_F64),
    ROW("u8", VYRE__WORD_ELEMENT, VYRE_ELEMENT_U8),
    ROW("i8", VYRE__WORD_ELEMENT, VYRE_ELEMENT_I8),
    ROW("u16", VYRE__WORD_ELEMENT, VYRE_ELEMENT_U16),
    ROW("i16", VYRE__WORD_ELEMENT, VYRE_ELEMENT_I16),
    ROW("f16", VYRE__WORD_ELEMENT, VYRE_ELEMENT_F16),
    ROW("bf16", VYRE__WORD_ELEMENT, VYRE_ELEMENT_BF16),
    ROW("bytes", VYRE__WORD_ELEMENT, VYRE_ELEMENT_BYTES),
    ROW("as_u32", VYRE__WORD_BITCAST, VYRE_TYPE_U32),
    ROW("as_i32", VYRE__WORD_BITCAST, VYRE_TYPE_I32),
    ROW("as_u64", VYRE__WORD_BITCAST, VYRE_TYPE_U64),
    ROW("as_i64", VYRE__WORD_BITCAST, VYRE_TYPE_I64),
    ROW("as_f32", VYRE__WORD_BITCAST, VYRE_TYPE_F32),
    ROW("as_f64", VYRE__WORD_BITCAST, VYRE_TYPE_F64),
    ROW("inf", VYRE__WORD_FLOAT, VYRE__INF),
    ROW("nan", VYRE__WORD_FLOAT, VYRE__NAN),
    ROW("inf_f64", VYRE__WORD_FLOAT, VYRE__INF_F64),
    ROW("nan_f64", VYRE__WORD_FLOAT, VYRE__NAN_F64),
/* All operations; vyre__is_word drops those without a name in the text form. */
#define OP(name, text, form, rule, flags) \
  ROW(text, VYRE__WORD_OP, VYRE__OP_##name),
#include "ir/ops.def"
#undef OP
};

const size_t vyre__reserved_word_count =
    sizeof vyre__reserved_words / sizeof vyre__reserved_words[0];

bool vyre__is_word(const vyre__reserved_word *row) {
  if (row->word != VYRE__WORD_OP) return true;
  switch (row->value) {
    case VYRE__OP_LITERAL:
    case VYRE__OP_LOCAL:
    case VYRE__OP_CALL:
    case VYRE__OP_LOAD:
    case VYRE__OP_CAST:
    case VYRE__OP_BITCAST:
    case VYRE__OP_UNIFORM: /* a keyword, because it also begins a declaration */
      return false;
    default:
      break;
  }
  if (row->value >= VYRE__OP_BLOCK && row->value <= VYRE__OP_TEXT) return false;
  return row->text[0] >= 'a' && row->text[0] <= 'z';
}

bool vyre__is_reserved(const char *name, size_t length) {
  for (size_t i = 0; i < vyre__reserved_word_count; i++) {
    const vyre__reserved_word *row = &vyre__reserved_words[i];
    if (row->length == length && row->text[0] == name[0] &&
        memcmp(row->text, name, length) == 0 && vyre__is_word(row)) {
      return true;
    }
  }
  return false;
}
