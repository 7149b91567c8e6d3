/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* {"intervals":[{"id":..., "size":N, "alignment":N, "first_group":N,
 *                "last_group":N}, ...],
 *  "alignment":N} */
#include <stdio.h>
#include <string.h>

#include "io/read_json.h"
#include "plan/read_plan.h"

enum { TOP_INTERVALS, TOP_ALIGNMENT };
static const char *const top_names[] = {"intervals", "alignment"};
static const key_set top_keys = {"the placement object", top_names, 2, 1};

enum { KEY_SIZE, KEY_FIRST, KEY_LAST, KEY_ALIGNMENT, KEY_ID };
static const char *const names[] = {"size", "first_group", "last_group",
                                    "alignment", "id"};

typedef enum place_state {
  AT_START,
  IN_OBJECT,
  AT_DEFAULT,
  AT_LIST,
  IN_LIST,
  IN_INTERVAL,
  AT_VALUE,
  AT_END,
} place_state;

typedef struct place_reader {
  json_reader json; /* first: handlers get a pointer to it */
  place_state state;
  uint32_t top_seen, seen;
  size_t key;
  uint64_t alignment; /* alignment of intervals without one */
  arena_list intervals, ids, alignments;
  uint64_t numbers[4]; /* values of the current interval, by key */
  interval_id id;
} place_reader;

static bool end_interval(place_reader *p) {
  char where[48];
  snprintf(where, sizeof where, "intervals[%zu]", p->intervals.count);
  key_set keys = {where, names, 5,
                  1u << KEY_SIZE | 1u << KEY_FIRST | 1u << KEY_LAST};
  if (!json_keys_complete(&p->json, &keys, p->seen)) return false;
  vyre_interval *interval =
      list_add(&p->intervals, sizeof *interval, p->json.arena);
  interval_id *id = list_add(&p->ids, sizeof *id, p->json.arena);
  bool *own = list_add(&p->alignments, sizeof *own, p->json.arena);
  if (!interval || !id || !own) {
    return problem_no_memory(p->json.wrong, "the intervals");
  }
  *interval = (vyre_interval){.size = p->numbers[KEY_SIZE],
                              .alignment = p->numbers[KEY_ALIGNMENT],
                              .first_group = p->numbers[KEY_FIRST],
                              .last_group = p->numbers[KEY_LAST]};
  *id = p->id;
  *own = (p->seen & 1u << KEY_ALIGNMENT) != 0;
  p->state = IN_LIST;
  return true;
}

static bool in_interval(place_reader *p, const token *t) {
  if (t->type == TOKEN_OBJECT_END) return end_interval(p);
  char where[48];
  snprintf(where, sizeof where, "intervals[%zu]", p->intervals.count);
  key_set keys = {where, names, 5, 0};
  p->state = AT_VALUE;
  return json_key(&p->json, t, &keys, &p->seen, &p->key);
}

/* Numbers keep their text, so that they are written unchanged. */
static bool read_id(place_reader *p, const token *t, const char *name) {
  if (t->type == TOKEN_STRING) {
    p->id.number = false;
    return json_name(&p->json, t, name, &p->id.text, &p->id.length);
  }
  if (t->type != TOKEN_NUMBER) {
    return json_unexpected(&p->json, t, name, "a string or a number");
  }
  char *copy = vyre_arena_alloc(p->json.arena, t->length, 1);
  if (!copy) return problem_no_memory(p->json.wrong, "an id");
  memcpy(copy, t->text, t->length);
  p->id = (interval_id){copy, t->length, true};
  return true;
}

static bool at_value(place_reader *p, const token *t) {
  char name[64];
  snprintf(name, sizeof name, "intervals[%zu].%s", p->intervals.count,
           names[p->key]);
  p->state = IN_INTERVAL;
  if (p->key == KEY_ID) return read_id(p, t, name);
  return json_number(&p->json, t, name, UINT64_MAX, &p->numbers[p->key]);
}

static bool in_list(place_reader *p, const token *t) {
  p->state = IN_OBJECT;
  if (t->type == TOKEN_ARRAY_END) return true;
  p->state = IN_INTERVAL;
  p->seen = 0;
  p->id = (interval_id){0};
  memset(p->numbers, 0, sizeof p->numbers);
  if (t->type == TOKEN_OBJECT) return true;
  char name[64];
  snprintf(name, sizeof name, "intervals[%zu]", p->intervals.count);
  return json_unexpected(&p->json, t, name, "an object");
}

static bool in_object(place_reader *p, const token *t) {
  p->state = AT_END;
  if (t->type == TOKEN_OBJECT_END) {
    return json_keys_complete(&p->json, &top_keys, p->top_seen);
  }
  size_t key;
  if (!json_key(&p->json, t, &top_keys, &p->top_seen, &key)) return false;
  p->state = key == TOP_INTERVALS ? AT_LIST : AT_DEFAULT;
  return true;
}

static bool place_token(json_reader *reader, const token *t) {
  place_reader *p = (place_reader *)reader;
  switch (p->state) {
    case AT_VALUE:
      return at_value(p, t);
    case IN_INTERVAL:
      return in_interval(p, t);
    case IN_LIST:
      return in_list(p, t);
    case IN_OBJECT:
      return in_object(p, t);
    case AT_DEFAULT:
      p->state = IN_OBJECT;
      return json_number(reader, t, "alignment", UINT64_MAX, &p->alignment);
    case AT_LIST:
      p->state = IN_LIST;
      return t->type == TOKEN_ARRAY ||
             json_unexpected(reader, t, "intervals", "a list");
    case AT_START:
    case AT_END:
      break;
  }
  p->state = IN_OBJECT;
  return t->type == TOKEN_OBJECT ||
         json_unexpected(reader, t, "the input", "a JSON object");
}

bool read_place_json(const input *in, vyre_arena *arena, place_input *out,
                     problem *wrong) {
  place_reader p = {
      .json = {.in = in, .arena = arena, .wrong = wrong, .handle = place_token},
      .alignment = 1};
  *out = (place_input){0};
  if (!json_read(&p.json)) return false;
  vyre_interval *intervals = p.intervals.items;
  const bool *own = p.alignments.items;
  for (size_t i = 0; i < p.intervals.count; i++) {
    if (!own[i]) intervals[i].alignment = p.alignment;
  }
  *out = (place_input){intervals, p.ids.items, p.intervals.count};
  return true;
}

bool read_place(const input *in, vyre_arena *arena, place_input *out,
                problem *wrong) {
  size_t at = 0;
  while (at < in->length && json_is_space(in->text[at])) at++;
  if (at < in->length && (in->text[at] == '{' || in->text[at] == '[')) {
    return read_place_json(in, arena, out, wrong);
  }
  return read_place_csv(in, arena, out, wrong);
}
