/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/symbols.h"

#include <string.h>

#include "base/memory.h"
#include "ir/ir.h"
#include "ir/keywords.h"
#include "lang/lex.h"

enum { FIRST_SLOTS = 1024 };

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
  for (size_t i = 0; i < vyre__reserved_word_count; i++) {
    const vyre__reserved_word *row = &vyre__reserved_words[i];
    bool is_soft = row->word == VYRE__WORD_OP && vyre__op_is_soft(row->value);
    if (!is_soft && !vyre__is_word(row)) continue;
    uint32_t length = row->length;
    uint32_t number = vyre__intern(
        symbols, row->text, vyre__name_key_of(row->text, length, length));
    vyre__symbol *symbol = &symbols->items[number];
    if (is_soft) {
      symbol->value = row->value;
      continue;
    }
    symbol->word = row->word;
    symbol->value = row->value;
    if (row->word == VYRE__WORD_KEYWORD) {
      symbol->value = VYRE__T_CONST + row->value;
      symbol->kind = (uint8_t)symbol->value;
    }
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
