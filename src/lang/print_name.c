/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "base/memory.h"
#include "ir/builder/ir_builder.h"
#include "lang/print_internal.h"

/* Words that are reserved in queue kernels only. */
enum { QUEUE_WORDS = 3 };
static const char *const queue_words[QUEUE_WORDS] = {"window", "item_index",
                                                     "in_window"};

static uint32_t hash_text(const char *text, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ (unsigned char)text[i]) * 16777619u;
  }
  return hash;
}

/* Returns the slot of a name, or the free slot for it. */
static uint32_t find_slot(const vyre__names *names, const char *text,
                          size_t length) {
  uint32_t mask = names->slot_count - 1;
  uint32_t at = hash_text(text, length) & mask;
  for (; names->slots[at] != 0; at = (at + 1) & mask) {
    const char *other = names->symbols[names->slots[at] - 1].text;
    if (strncmp(other, text, length) == 0 && other[length] == '\0') break;
  }
  return at;
}

static uint32_t intern(vyre__names *names, const char *text) {
  uint32_t at = find_slot(names, text, strlen(text));
  if (names->slots[at] == 0) {
    names->symbols[names->symbol_count] = (vyre__symbol_name){text, 0};
    names->slots[at] = ++names->symbol_count;
  }
  return names->slots[at] - 1;
}

enum {
  SOFT_WORDS = VYRE__OP_FRACT - VYRE__OP_CLAMP + 1 +
               VYRE__OP_SUBGROUP_SCAN_ADD_BEFORE - VYRE__OP_ALL + 1
};

/* Builds a table of all names of a program, so that generated names are
 * distinct from them. */
static bool make_table(vyre__names *names, const vyre_program *program) {
  /* functions count twice: a generated name may be added */
  size_t count = program->buffer_count + 2 * (size_t)program->function_count +
                 2 * (size_t)program->table_count + SOFT_WORDS;
  if (program->queue) count += QUEUE_WORDS + program->queue->field_count;
  for (uint32_t i = 0; i < program->function_count; i++) {
    count += program->functions[i].local_count;
  }
  if (count > UINT32_MAX / 4) return false;
  names->slot_count = 8;
  while (names->slot_count < 2 * count) names->slot_count *= 2;
  names->symbols =
      vyre__arena_array(&names->arena, count, sizeof *names->symbols);
  names->slots =
      vyre__arena_array(&names->arena, names->slot_count, sizeof *names->slots);
  names->functions = vyre__arena_array(&names->arena, program->function_count,
                                       sizeof *names->functions);
  names->tables = vyre__arena_array(&names->arena, program->table_count,
                                    sizeof *names->tables);
  if (!names->symbols || !names->slots || !names->functions || !names->tables) {
    return false;
  }
  memset(names->slots, 0, names->slot_count * sizeof *names->slots);
  for (uint32_t i = 0; i < program->table_count; i++) {
    (void)intern(names, program->tables[i].name);
  }
  for (uint32_t i = 0; i < program->function_count; i++) {
    const vyre__function *f = &program->functions[i];
    (void)intern(names, f->name);
    for (uint32_t j = 0; j < f->local_count; j++) {
      (void)intern(names, f->locals[j].name);
    }
  }
  return true;
}

enum { LONGEST_STEM = 200, NAME_SIZE = 256 };

static size_t spell(const vyre__shown *name, char text[NAME_SIZE]) {
  size_t length = strnlen(name->text, LONGEST_STEM);
  memcpy(text, name->text, length);
  for (int i = 0; i < name->marks; i++) text[length++] = '_';
  char digits[12];
  int count = 0;
  uint32_t rest = name->number;
  do {
    digits[count++] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  while (count > 0) text[length++] = digits[--count];
  return length;
}

/* Keeps a name if possible, otherwise appends the index of the thing, which
 * makes generated names distinct. */
static vyre__shown choose(vyre__names *names, const char *text,
                          const char *stem, uint32_t number) {
  uint32_t symbol = intern(names, text);
  if (vyre__name_is_identifier(text, strlen(text))) {
    if (names->symbols[symbol].open == 0) {
      names->symbols[symbol].open = 1;
      return (vyre__shown){.text = text, .symbol = symbol};
    }
    stem = text;
  }
  vyre__shown shown = {
      .text = stem, .symbol = VYRE_NO_INDEX, .number = number, .marks = 1};
  char spelled[NAME_SIZE];
  while (names->slots[find_slot(names, spelled, spell(&shown, spelled))] != 0 &&
         shown.marks < 30) {
    shown.marks++;
  }
  return shown;
}

/* Chooses the name of a function or kernel. It is visible everywhere, so a
 * generated name is added to the table. */
static bool choose_item(vyre__names *names, const char *text, const char *stem,
                        uint32_t number, vyre__shown *shown) {
  *shown = choose(names, text, stem, number);
  if (shown->marks == 0) return true;
  char spelled[NAME_SIZE];
  size_t length = spell(shown, spelled);
  char *copy = vyre_arena_alloc(&names->arena, length + 1, 1);
  if (!copy) return false;
  memcpy(copy, spelled, length);
  copy[length] = '\0';
  *shown = (vyre__shown){.text = copy, .symbol = intern(names, copy)};
  names->symbols[shown->symbol].open = 1;
  return true;
}

void vyre__names_buffers(vyre__names *names, const vyre_program *program,
                         bool open) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    names->symbols[intern(names, program->buffers[i].name)].open = open;
  }
  const vyre__queue_clauses *queue = program->queue;
  for (uint32_t i = 0; queue && i < queue->field_count; i++) {
    const char *name = queue->fields[i].name;
    if (name[0]) names->symbols[intern(names, name)].open = open;
  }
}

/* Marks the names of built-in functions that the program calls, so that no fn
 * gets one of them. */
static void hide_functions(vyre__names *names, const vyre_program *program,
                           bool open) {
  for (uint32_t i = 0; i < program->node_count; i++) {
    const unsigned op = program->nodes[i].op;
    if (!vyre__op_is_soft(op)) continue;
    /* These are names of values, so that no local may have them. */
    if (vyre__op_is_lane(op) && !open) continue;
    names->symbols[intern(names, vyre__ops[op].text)].open = open;
  }
}

bool vyre__names_init(vyre__names *names, const vyre_program *program) {
  *names = (vyre__names){0};
  vyre_arena_init(&names->arena, program->arena.allocator);
  if (!make_table(names, program)) return false;
  vyre__names_buffers(names, program, true);
  hide_functions(names, program, true);
  bool good = choose_item(names, program->name, "kernel", 0, &names->kernel);
  for (unsigned i = 0; program->queue && i < QUEUE_WORDS; i++) {
    names->symbols[intern(names, queue_words[i])].open = 1;
  }
  for (uint32_t i = 1; good && i < program->function_count; i++) {
    good = choose_item(names, program->functions[i].name, "f", i,
                       &names->functions[i]);
  }
  for (uint32_t i = 0; good && i < program->table_count; i++) {
    good = choose_item(names, program->tables[i].name, "table", i,
                       &names->tables[i]);
  }
  vyre__names_buffers(names, program, false);
  hide_functions(names, program, false);
  return good;
}

void vyre__names_deinit(vyre__names *names) {
  vyre_arena_deinit(&names->arena);
}

bool vyre__names_function(vyre__names *names, const vyre__function *function) {
  names->locals = vyre__arena_array(&names->arena, function->local_count,
                                    sizeof *names->locals);
  return names->locals != NULL;
}

void vyre__names_open(vyre__names *names, const vyre__function *function,
                      uint32_t local) {
  names->locals[local] =
      choose(names, function->locals[local].name, "v", local);
}

void vyre__names_close(vyre__names *names, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++) {
    uint32_t symbol = names->locals[i].symbol;
    if (symbol != VYRE_NO_INDEX) names->symbols[symbol].open = 0;
  }
}

void vyre__print_name(vyre__printer *out, const vyre__shown *name) {
  if (name->marks == 0) {
    vyre__print(out, "%s", name->text);
    return;
  }
  char text[NAME_SIZE];
  size_t length = spell(name, text);
  vyre__print(out, "%.*s", (int)length, text);
}
