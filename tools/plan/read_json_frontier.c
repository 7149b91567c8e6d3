/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* {"resident_graph_bytes":N, "budget_bytes":N, "readback_bytes":N,
 *  "waves":[[frontier, scratch, output], ...],
 *  "dependencies":[[before, after], ...]} */
#include <stdio.h>

#include "cli/text.h"
#include "io/read_json.h"
#include "plan/read_plan.h"

enum { KEY_RESIDENT, KEY_BUDGET, KEY_READBACK, KEY_WAVES, KEY_DEPENDENCIES };

static const char *const key_names[] = {"resident_graph_bytes", "budget_bytes",
                                        "readback_bytes", "waves",
                                        "dependencies"};
static const key_set top_keys = {"the frontier object", key_names, 5, 0x1F};

typedef enum frontier_state {
  AT_START,
  IN_OBJECT,
  AT_NUMBER, /* the value of a key */
  AT_TABLE,
  IN_TABLE,
  IN_ROW,
  AT_END,
} frontier_state;

typedef struct frontier_reader {
  json_reader json; /* first: handlers get a pointer to it */
  frontier_state state;
  uint32_t seen;
  size_t key;
  uint64_t numbers[3]; /* by key */
  arena_list waves, dependencies;
  uint64_t row[3]; /* the current row */
  size_t filled;
} frontier_reader;

static size_t row_width(const frontier_reader *f) {
  return f->key == KEY_WAVES ? 3 : 2;
}

static size_t row_index(const frontier_reader *f) {
  return f->key == KEY_WAVES ? f->waves.count : f->dependencies.count;
}

static const char *row_shape(const frontier_reader *f) {
  return f->key == KEY_WAVES ? "a list [frontier, scratch, output]"
                             : "a list [before, after]";
}

static bool wrong_width(frontier_reader *f) {
  char fix[64];
  snprintf(fix, sizeof fix, "make it %s", row_shape(f));
  return json_fail(&f->json, fix, "%s[%zu] has %s %zu numbers",
                   key_names[f->key], row_index(f),
                   f->filled < row_width(f) ? "fewer than" : "more than",
                   row_width(f));
}

static bool end_row(frontier_reader *f) {
  if (f->filled != row_width(f)) return wrong_width(f);
  f->state = IN_TABLE;
  if (f->key == KEY_WAVES) {
    vyre_frontier_wave *wave = list_add(&f->waves, sizeof *wave, f->json.arena);
    if (!wave) return problem_no_memory(f->json.wrong, "the waves");
    *wave = (vyre_frontier_wave){f->row[0], f->row[1], f->row[2]};
    return true;
  }
  vyre_wave_dependency *edge =
      list_add(&f->dependencies, sizeof *edge, f->json.arena);
  if (!edge) return problem_no_memory(f->json.wrong, "the dependencies");
  *edge = (vyre_wave_dependency){f->row[0], f->row[1]};
  return true;
}

static bool in_row(frontier_reader *f, const token *t) {
  if (t->type == TOKEN_ARRAY_END) return end_row(f);
  if (f->filled == row_width(f)) return wrong_width(f);
  uint64_t *out = &f->row[f->filled];
  /* Names are built for errors only, because there can be millions of
   * numbers. */
  if (t->type != TOKEN_NUMBER || !parse_u64(t->text, t->length, out)) {
    char name[64];
    snprintf(name, sizeof name, "%s[%zu][%zu]", key_names[f->key], row_index(f),
             f->filled);
    return json_number(&f->json, t, name, UINT64_MAX, out);
  }
  f->filled++;
  return true;
}

static bool in_table(frontier_reader *f, const token *t) {
  if (t->type == TOKEN_ARRAY_END) {
    f->state = IN_OBJECT;
    return true;
  }
  if (t->type != TOKEN_ARRAY) {
    char name[64];
    snprintf(name, sizeof name, "%s[%zu]", key_names[f->key], row_index(f));
    return json_unexpected(&f->json, t, name, row_shape(f));
  }
  f->filled = 0;
  f->state = IN_ROW;
  return true;
}

static bool in_object(frontier_reader *f, const token *t) {
  if (t->type == TOKEN_OBJECT_END) {
    f->state = AT_END;
    return json_keys_complete(&f->json, &top_keys, f->seen);
  }
  if (!json_key(&f->json, t, &top_keys, &f->seen, &f->key)) return false;
  f->state = f->key < KEY_WAVES ? AT_NUMBER : AT_TABLE;
  return true;
}

static bool frontier_token(json_reader *reader, const token *t) {
  frontier_reader *f = (frontier_reader *)reader;
  switch (f->state) {
    case IN_ROW:
      return in_row(f, t);
    case IN_TABLE:
      return in_table(f, t);
    case IN_OBJECT:
      return in_object(f, t);
    case AT_NUMBER:
      f->state = IN_OBJECT;
      return json_number(reader, t, key_names[f->key], UINT64_MAX,
                         &f->numbers[f->key]);
    case AT_TABLE:
      f->state = IN_TABLE;
      return t->type == TOKEN_ARRAY ||
             json_unexpected(reader, t, key_names[f->key], "a list of lists");
    case AT_START:
    case AT_END:
      break;
  }
  f->state = IN_OBJECT;
  return t->type == TOKEN_OBJECT ||
         json_unexpected(reader, t, "the input", "a JSON object");
}

bool read_frontier_json(const input *in, vyre_arena *arena,
                        vyre_frontier_desc *out, problem *wrong) {
  frontier_reader f = {
      .json = {
          .in = in, .arena = arena, .wrong = wrong, .handle = frontier_token}};
  *out = (vyre_frontier_desc){0};
  if (!json_read(&f.json)) return false;
  *out = (vyre_frontier_desc){
      .waves = f.waves.items,
      .wave_count = f.waves.count,
      .dependencies = f.dependencies.items,
      .dependency_count = f.dependencies.count,
      .resident_graph_bytes = f.numbers[KEY_RESIDENT],
      .budget_bytes = f.numbers[KEY_BUDGET],
      .readback_bytes = f.numbers[KEY_READBACK],
  };
  return true;
}
