/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds out-of-bounds accesses and races while a program runs.
 *
 * Every element of a written buffer has a shadow cell with its last writer, two
 * readers and two atomic accesses. This is enough to find at least one race for
 * each element that has one. One writer is enough because a second unordered
 * writer is a race already. Two readers are enough: if they are in different
 * workgroups, any writer races with one of them; otherwise they are the newest
 * two of their workgroup, and a writer can be at most one of them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backend/ref/ref.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"

enum { MAX_FINDINGS = 100, PAGE = 1024 };

typedef struct entry {
  uint32_t group, lane; /* ref_check_grid makes sure that they fit */
  uint32_t epoch;       /* of its workgroup; 0: empty entry */
  vyre__id node;
} entry;

typedef struct cell {
  entry writer, readers[2], atomics[2];
} cell;

/* A part of the cells of a buffer, allocated on first use. */
typedef struct page {
  cell *cells; /* NULL: not used yet */
} page;

typedef struct shadow {
  page *pages;
  uint64_t page_count;
} shadow;

typedef struct ref_check {
  bool bounds, races;
  bool own_shared;     /* each workgroup has its own shadow of shared buffers */
  uint32_t grid_epoch; /* earlier accesses are ordered before all later ones */
  uint32_t window;     /* number of windows of a queue before this one */
  shadow *shadows;     /* for each buffer */
  ref_key keys[MAX_FINDINGS];
} ref_check;

/* Returns the workgroup that runs; for queues the position of the item. */
static uint64_t group_of(const ref_machine *m) {
  return m->group_index + (m->chunk ? m->chunk->position : 0);
}

/* --- findings --------------------------------------------------------------*/

static void global_id(const ref_machine *m, uint64_t group, uint32_t lane,
                      uint32_t out[3]) {
  if (m->chunk) { /* an item has its position */
    out[0] = (uint32_t)group;
    out[1] = out[2] = 0;
    return;
  }
  const uint32_t *grid = m->launch->grid;
  const uint32_t *size = m->pipeline->base.workgroup;
  uint64_t ids[3] = {group % grid[0], group / grid[0] % grid[1],
                     group / grid[0] / grid[1]};
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = (uint32_t)(ids[axis] * size[axis] + m->local_ids[axis][lane]);
  }
}

enum { NAME_BYTES = 96 };

/* Names an invocation: by its ids, or as an item of a queue. */
static const char *invocation_name(const ref_machine *m, const uint32_t ids[3],
                                   char out[NAME_BYTES]) {
  if (m->chunk) {
    (void)snprintf(out, NAME_BYTES, "item %u of window %llu", ids[0],
                   (unsigned long long)m->chunk->window);
  } else {
    (void)snprintf(out, NAME_BYTES, "invocation (%u, %u, %u)", ids[0], ids[1],
                   ids[2]);
  }
  return out;
}

const char *ref_finding_text(ref_machine *m, const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  int needed = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t length = needed < 0 ? 0 : (size_t)needed;
  if (length >= sizeof text) length = sizeof text - 1;
  char *copy = vyre_arena_alloc(&m->launch->report->arena, length + 1, 1);
  if (!copy) {
    ref_fail(m, vyre__no_memory(m->st, "ref", "findings", 1));
    return "";
  }
  memcpy(copy, text, length);
  copy[length] = '\0';
  return copy;
}

static bool grow(vyre_check_report *report) {
  if (report->count < report->capacity) return true;
  size_t capacity = report->capacity ? report->capacity * 2 : 8;
  vyre_finding *larger =
      vyre__arena_array(&report->arena, capacity, sizeof *larger);
  if (!larger) return false;
  if (report->count > 0) {
    memcpy(larger, report->findings, report->count * sizeof *larger);
  }
  report->findings = larger;
  report->capacity = capacity;
  return true;
}

static bool is_same_pair(const ref_key *key, vyre__id node, vyre__id other) {
  return (key->node == node && key->other == other) ||
         (key->node == other && key->other == node);
}

/* Returns a copy of the name of the imported file of a line, or NULL; makes the
 * line that of the file. */
static const char *file_name(ref_machine *m, uint32_t *line) {
  const vyre__source_file *file = vyre__source_file_of(m->program->files, line);
  if (!file) return NULL;
  return ref_finding_text(m, "%s", file->name);
}

vyre_finding *ref_finding(ref_machine *m, vyre_finding_kind kind, vyre__id node,
                          vyre__id other) {
  vyre_check_report *report = m->launch->report;
  ref_check *check = m->check;
  for (size_t i = 0; i < report->count; i++) {
    if (report->findings[i].kind != kind) continue;
    if (!is_same_pair(&check->keys[i], node, other)) continue;
    report->findings[i].count++;
    return NULL;
  }
  if (report->count == MAX_FINDINGS) {
    report->dropped++;
    return NULL;
  }
  if (!grow(report)) {
    ref_fail(m, vyre__no_memory(m->st, "ref", "findings", report->count + 1));
    return NULL;
  }
  check->keys[report->count] = (ref_key){node, other};
  vyre_finding *finding = &report->findings[report->count++];
  vyre__source_loc loc = vyre__source_loc_of(m->program, node);
  vyre__source_loc other_loc =
      other ? vyre__source_loc_of(m->program, other) : (vyre__source_loc){0};
  const char *file = file_name(m, &loc.line);
  const char *other_file = file_name(m, &other_loc.line);
  *finding = (vyre_finding){.kind = kind,
                            .file = file,
                            .other_file = other_file,
                            .line = loc.line,
                            .column = loc.column,
                            .other_line = other_loc.line,
                            .other_column = other_loc.column,
                            .count = 1,
                            .buffer = "",
                            .message = "",
                            .fix = ""};
  return finding;
}

void ref_check_bounds(ref_machine *m, vyre__id id, uint32_t lane,
                      uint64_t index, bool negative) {
  if (!m->check->bounds) return;
  vyre_finding *finding = ref_finding(m, VYRE_FINDING_OUT_OF_BOUNDS, id, 0);
  if (!finding) return;
  const vyre__node *node = &m->nodes[id];
  static const char *const results[] = {
      "the load gives 0", "the store is dropped",
      "the atomic gives 0 and writes nothing"};
  int what = node->op == VYRE__OP_LOAD ? 0 : node->op == VYRE__OP_STORE ? 1 : 2;
  finding->buffer = m->program->buffers[node->a].name;
  finding->index = index;
  finding->index_is_negative = negative;
  finding->length = (uint32_t)m->views[node->a].length;
  global_id(m, group_of(m), m->first_lane + lane, finding->invocation);
  char name[NAME_BYTES];
  (void)invocation_name(m, finding->invocation, name);
  const unsigned dimensions = m->program->buffers[node->a].dimension_count;
  if (dimensions > 1 && index >= REF_OUTSIDE) {
    finding->message = ref_finding_text(
        m, "%s uses an index of '%.100s' that is not below its dimension: %s",
        name, finding->buffer, results[what]);
    finding->fix =
        m->chunk
            ? "test each index against its dimension first"
            : "test each index against its dimension first, or change the grid";
    return;
  }
  finding->message = ref_finding_text(
      m, "%s uses index %s%llu of '%.100s', which has %u elements: %s", name,
      negative ? "-" : "", (unsigned long long)index, finding->buffer,
      finding->length, results[what]);
  finding->fix = m->chunk
                     ? "test the index against len() first"
                     : "test the index against len() first, or change the grid";
}

/* --- races -----------------------------------------------------------------*/

static bool is_shared(const ref_machine *m, vyre__id id) {
  return m->views[m->nodes[id].a].is_shared;
}

static const char *verb(ref_access access) {
  static const char *const verbs[] = {"reads", "writes", "atomically changes"};
  return verbs[access];
}

static ref_access access_of(vyre__op op) {
  if (op == VYRE__OP_LOAD) return REF_READ;
  return op == VYRE__OP_STORE ? REF_WRITE : REF_ATOMIC;
}

static const char *race_fix(ref_access one, ref_access other, bool same_node,
                            bool in_workgroup) {
  if ((one == REF_ATOMIC) != (other == REF_ATOMIC)) {
    return in_workgroup ? "use an atomic in both places, or put barrier(); "
                          "between them"
                        : "use an atomic in both places, or put "
                          "grid_barrier(); between them";
  }
  if (same_node)
    return "let one invocation write the element, or use an atomic";
  if (in_workgroup) return "put barrier(); between the two";
  return "let one workgroup do both, put grid_barrier(); between the two, or "
         "split the kernel";
}

static void report_race(ref_machine *m, vyre__id id, const entry *me,
                        const entry *them, uint64_t index) {
  vyre_finding *f = ref_finding(m, VYRE_FINDING_RACE, id, them->node);
  if (!f) return;
  ref_access mine = access_of(m->nodes[id].op);
  ref_access theirs = access_of(m->nodes[them->node].op);
  f->buffer = m->program->buffers[m->nodes[id].a].name;
  f->index = index;
  f->length = (uint32_t)m->views[m->nodes[id].a].length;
  f->in_workgroup = me->group == them->group;
  global_id(m, me->group, me->lane, f->invocation);
  global_id(m, them->group, them->lane, f->other_invocation);
  char name[NAME_BYTES], other[NAME_BYTES];
  f->message = ref_finding_text(
      m,
      "%s %s '%.100s'[%llu], which %s %s at line %u, and nothing orders the "
      "two",
      invocation_name(m, f->invocation, name), verb(mine), f->buffer,
      (unsigned long long)index, invocation_name(m, f->other_invocation, other),
      verb(theirs), f->other_line);
  f->fix = m->chunk ? "let one item of a window write the element, use "
                      "atomics in both places, or read it in the next window"
                    : race_fix(mine, theirs, id == them->node, f->in_workgroup);
}

/* Returns true if two accesses by different invocations are unordered. */
static bool unordered(const ref_machine *m, bool shared, const entry *me,
                      const entry *them) {
  if (them->epoch == 0) return false;
  if (them->group == me->group) {
    return them->lane != me->lane && them->epoch == me->epoch;
  }
  return !shared && them->epoch >= m->check->grid_epoch;
}

static void check_against(ref_machine *m, vyre__id id, const entry *me,
                          const entry *them, int count, uint64_t index) {
  bool shared = is_shared(m, id);
  for (int i = 0; i < count; i++) {
    if (!unordered(m, shared, me, &them[i])) continue;
    report_race(m, id, me, &them[i], index);
    return;
  }
}

/* Returns true if an entry cannot race with any later access. */
static bool is_stale(const ref_machine *m, bool shared, const entry *me,
                     const entry *them) {
  if (them->epoch < m->check->grid_epoch || them->epoch == 0) return true;
  return shared && (them->group != me->group || them->epoch < me->epoch);
}

static bool same_invocation(const entry *a, const entry *b) {
  return a->group == b->group && a->lane == b->lane;
}

/* Stores @p me in one of two entries, according to the rules at the top of the
 * file. */
static void record_access(const ref_machine *m, bool shared, const entry *me,
                          entry two[2]) {
  for (int i = 0; i < 2; i++) {
    if (!is_stale(m, shared, me, &two[i]) && !same_invocation(me, &two[i])) {
      continue;
    }
    two[i] = *me;
    return;
  }
  if (two[0].group != two[1].group) return;
  if (me->group != two[0].group || two[1].epoch < me->epoch) {
    two[1] = *me;
  } else if (two[0].epoch < me->epoch) {
    two[0] = *me;
  }
}

/* Aggregate elements have a cell for each byte, so that different fields do not
 * race. */
static uint64_t cells_of(const ref_view *view) {
  return view->length * (view->stride == view->size ? 1 : view->stride);
}

/* Returns the cell of an element, or NULL without memory. */
static cell *find_cell(ref_machine *m, uint32_t buffer, uint64_t index) {
  const ref_check *check = m->check;
  const ref_view *view = &m->views[buffer];
  if (view->is_shared && check->own_shared) {
    index += m->group_index * cells_of(view);
  }
  page *p = &check->shadows[buffer].pages[index / PAGE];
  if (!p->cells) {
    p->cells = vyre__arena_filled(m->arena, PAGE, sizeof(cell), 0);
    if (!p->cells) {
      ref_fail(m, vyre__no_memory(m->st, "ref", "race shadows", PAGE));
      return NULL;
    }
  }
  return p->cells + index % PAGE;
}

void ref_check_access(ref_machine *m, vyre__id id, uint32_t lane,
                      uint64_t index, ref_access access) {
  uint32_t buffer = m->nodes[id].a;
  if (!m->check->races || !m->views[buffer].is_written ||
      m->views[buffer].lane_bytes > 0) {
    return; /* an array belongs to one invocation */
  }
  cell *c = find_cell(m, buffer, index);
  if (!c) return;
  entry me = {.group = (uint32_t)group_of(m),
              .lane = m->first_lane + lane,
              .epoch = m->frame->epoch + m->check->window,
              .node = id};
  check_against(m, id, &me, &c->writer, 1, index);
  if (access != REF_READ) check_against(m, id, &me, c->readers, 2, index);
  if (access != REF_ATOMIC) check_against(m, id, &me, c->atomics, 2, index);
  if (access == REF_WRITE) {
    c->writer = me;
  } else {
    record_access(m, is_shared(m, id), &me,
                  access == REF_READ ? c->readers : c->atomics);
  }
}

void ref_check_window(ref_machine *m) {
  m->check->grid_epoch = ++m->check->window + 1;
}

void ref_check_grid_barrier(ref_machine *m, uint32_t epoch) {
  m->check->grid_epoch = epoch;
}

/* --- setup -----------------------------------------------------------------*/

static uint64_t count_groups(const ref_machine *m) {
  const uint32_t *grid = m->launch->grid;
  /* The runtime has checked that this does not overflow. */
  return (uint64_t)grid[0] * grid[1] * grid[2];
}

vyre_code ref_check_grid(const ref_machine *m) {
  uint64_t groups = count_groups(m);
  if (!m->launch->check.races || groups <= UINT32_MAX) return VYRE_OK;
  return VYRE_FAIL_WITH(
      m->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"max_workgroups", UINT32_MAX}),
      "check a smaller grid, or turn the race check off",
      "the race check supports up to 4294967295 workgroups; this grid has %llu",
      (unsigned long long)groups);
}

static bool make_shadow(const ref_machine *m, const ref_check *check,
                        size_t buffer) {
  const ref_view *view = &m->views[buffer];
  uint64_t cells = cells_of(view);
  if (view->is_shared && check->own_shared &&
      !vyre__mul_u64(cells, count_groups(m), &cells)) {
    return false;
  }
  shadow *s = &check->shadows[buffer];
  s->page_count = view->is_written ? cells / PAGE + 1 : 0;
  s->pages = vyre__arena_filled(m->arena, s->page_count, sizeof *s->pages, 0);
  return s->pages != NULL;
}

struct ref_check *ref_check_make(const ref_machine *m, vyre_status *st) {
  size_t count = m->program->buffer_count;
  ref_check *check = vyre_arena_alloc(m->arena, sizeof *check, 0);
  bool is_ok = check != NULL;
  if (is_ok) {
    *check = (ref_check){
        .bounds = m->launch->check.out_of_bounds,
        .races = m->launch->check.races,
        .own_shared = m->pipeline->info.has_grid_barrier,
        .shadows = vyre__arena_array(m->arena, count, sizeof(shadow))};
    is_ok = check->shadows != NULL;
  }
  for (size_t i = 0; is_ok && check->races && i < count; i++) {
    is_ok = make_shadow(m, check, i);
  }
  if (is_ok) return check;
  (void)vyre__no_memory(st, "ref", "race shadows", count);
  return NULL;
}
