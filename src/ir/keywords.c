/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of the words of the language, and the test for reserved names. */
#include "ir/keywords.h"

#include <string.h>

#include "ir/ir.h"

#define ROW(text, word, value) {text, sizeof(text) - 1, word, value}

#define NO_PUNCTUATION(name, text)

#define VECTOR(text, type, length) \
  ROW(text, VYRE__WORD_TYPE,       \
      VYRE_TYPE_##type + ((length) - 1) * VYRE__VECTOR_STEP)

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
    VECTOR("boolx2", BOOL, 2),
    VECTOR("u32x2", U32, 2),
    VECTOR("i32x2", I32, 2),
    VECTOR("u64x2", U64, 2),
    VECTOR("i64x2", I64, 2),
    VECTOR("f32x2", F32, 2),
    VECTOR("f64x2", F64, 2),
    VECTOR("boolx3", BOOL, 3),
    VECTOR("u32x3", U32, 3),
    VECTOR("i32x3", I32, 3),
    VECTOR("u64x3", U64, 3),
    VECTOR("i64x3", I64, 3),
    VECTOR("f32x3", F32, 3),
    VECTOR("f64x3", F64, 3),
    VECTOR("boolx4", BOOL, 4),
    VECTOR("u32x4", U32, 4),
    VECTOR("i32x4", I32, 4),
    VECTOR("u64x4", U64, 4),
    VECTOR("i64x4", I64, 4),
    VECTOR("f32x4", F32, 4),
    VECTOR("f64x4", F64, 4),
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
    ROW("atomic_load", VYRE__WORD_ATOMIC, VYRE__ATOMIC_LOAD),
    ROW("atomic_store", VYRE__WORD_ATOMIC, VYRE__ATOMIC_STORE),
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
    case VYRE__OP_PUSH_FIELDS: /* spelled like PUSH */
    case VYRE__OP_WINDOW:      /* a word in queue kernels only */
    case VYRE__OP_ITEM_INDEX:
    case VYRE__OP_IN_WINDOW:
      return false;
    default:
      break;
  }
  if (row->value >= VYRE__OP_BLOCK && row->value <= VYRE__OP_TEXT) return false;
  if (row->value == VYRE__OP_BIT_RANGE || vyre__op_is_soft(row->value)) {
    return false;
  }
  if (row->value >= VYRE__OP_MAKE && row->value <= VYRE__OP_AT) return false;
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

bool vyre__is_queue_word(const char *name) {
  return strcmp(name, "window") == 0 || strcmp(name, "item_index") == 0 ||
         strcmp(name, "in_window") == 0;
}
