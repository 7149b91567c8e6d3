/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/symbols.h"

#include <string.h>

#include "base/memory.h"
#include "ir/ir.h"
#include "lang/lex.h"

typedef struct word_row {
  const char *text;
  uint8_t length;
  uint8_t word;
  uint16_t value;
} word_row;

#define ROW(text, word, value) {text, sizeof(text) - 1, word, value}

#define NO_PUNCTUATION(name, text)

static const word_row words[] = {
#define PUNCTUATION         NO_PUNCTUATION
#define KEYWORD(name, text) ROW(text, VYRE__WORD_KEYWORD, VYRE__T_##name),
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
/* Of the operations those that are called by their names. */
#define OP(name, text, form, rule, flags) \
  ROW(text, VYRE__WORD_OP, VYRE__OP_##name),
#include "ir/ops.def"
#undef OP
};

enum { WORD_COUNT = sizeof words / sizeof words[0], FIRST_SLOTS = 1024 };

/* Whether a row is a word of the text form; some operations have a text that is
 * an operator or only the name of a node. */
static bool is_word(const word_row *row) {
  if (row->word != VYRE__WORD_OP) return true;
  switch (row->value) {
    case VYRE__OP_LITERAL:
    case VYRE__OP_LOCAL:
    case VYRE__OP_CALL:
    case VYRE__OP_LOAD:
    case VYRE__OP_CAST:
    case VYRE__OP_BITCAST:
    case VYRE__OP_UNIFORM: /* a keyword, since it also begins a declaration */
      return false;
    default:
      break;
  }
  if (row->value >= VYRE__OP_BLOCK && row->value <= VYRE__OP_TEXT) return false;
  return row->text[0] >= 'a' && row->text[0] <= 'z';
}

static bool grow_slots(vyre__symbols *symbols) {
  size_t count = symbols->slot_count ? symbols->slot_count * 2 : FIRST_SLOTS;
  uint32_t *slots =
      vyre__resize(symbols->allocator, NULL, 0, count * sizeof *slots);
  if (!slots) return false;
  memset(slots, 0, count * sizeof *slots);
  for (size_t i = 1; i < symbols->count; i++) {
    size_t slot = symbols->items[i].hash & (count - 1);
    while (slots[slot]) slot = (slot + 1) & (count - 1);
    slots[slot] = (uint32_t)i;
  }
  if (symbols->slots) {
    vyre__resize(symbols->allocator, symbols->slots,
                 symbols->slot_count * sizeof *slots, 0);
  }
  symbols->slots = slots;
  symbols->slot_count = count;
  return true;
}

uint32_t vyre__symbol_add(vyre__symbols *symbols, const char *text,
                          vyre__name_key key) {
  if (symbols->count * 2 >= symbols->slot_count && !grow_slots(symbols)) {
    symbols->failed = true;
    return 0;
  }
  void *items = symbols->items;
  if (!vyre__reserve(symbols->allocator, &items, &symbols->capacity,
                     symbols->count + 1, sizeof *symbols->items, false)) {
    symbols->failed = true;
    return 0;
  }
  symbols->items = items;
  uint32_t number = (uint32_t)symbols->count++;
  symbols->items[number] = (vyre__symbol){.text = text,
                                          .length = key.length,
                                          .hash = key.hash,
                                          .tail = key.tail,
                                          .kind = VYRE__T_NAME};
  size_t slot = key.hash & (symbols->slot_count - 1);
  while (symbols->slots[slot]) slot = (slot + 1) & (symbols->slot_count - 1);
  symbols->slots[slot] = number;
  return number;
}

bool vyre__symbols_init(vyre__symbols *symbols, vyre_allocator allocator) {
  *symbols = (vyre__symbols){.allocator = allocator, .count = 1};
  void *items = NULL;
  if (!grow_slots(symbols) ||
      !vyre__reserve(allocator, &items, &symbols->capacity, FIRST_SLOTS / 2,
                     sizeof *symbols->items, true)) {
    vyre__symbols_deinit(symbols);
    return false;
  }
  symbols->items = items;
  symbols->items[0] = (vyre__symbol){.text = "", .kind = VYRE__T_NAME};
  for (size_t i = 0; i < WORD_COUNT; i++) {
    const word_row *row = &words[i];
    if (!is_word(row)) continue;
    uint32_t length = row->length;
    uint32_t number = vyre__intern(
        symbols, row->text, vyre__name_key_of(row->text, length, length));
    vyre__symbol *symbol = &symbols->items[number];
    symbol->word = row->word;
    symbol->value = row->value;
    if (row->word == VYRE__WORD_KEYWORD) symbol->kind = (uint8_t)row->value;
  }
  return true;
}

void vyre__symbols_deinit(vyre__symbols *symbols) {
  void *items = symbols->items;
  vyre__reserve_free(symbols->allocator, &items, &symbols->capacity,
                     sizeof *symbols->items);
  if (symbols->slots) {
    vyre__resize(symbols->allocator, symbols->slots,
                 symbols->slot_count * sizeof *symbols->slots, 0);
  }
  *symbols = (vyre__symbols){.allocator = symbols->allocator};
}

bool vyre__is_reserved(const char *name, size_t length) {
  for (size_t i = 0; i < WORD_COUNT; i++) {
    const word_row *row = &words[i];
    if (row->length == length && row->text[0] == name[0] &&
        memcmp(row->text, name, length) == 0 && is_word(row)) {
      return true;
    }
  }
  return false;
}
