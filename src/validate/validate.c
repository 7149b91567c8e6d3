/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "validate/validate.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "vyre/binding.h"

#include "analyze/inline/inline.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"
#include "diag/diagnostics.h"

/* --- diagnostics -----------------------------------------------------------*/

/* Returns the length for a caret: the word at the start of the node. */
static uint32_t length_of(const vyre_program *program, vyre__id id) {
  const vyre__node *node = &program->nodes[id];
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LOAD:
    case VYRE__FORM_STORE:
      return (uint32_t)strlen(program->buffers[node->a].name);
    case VYRE__FORM_AXIS:
      return (uint32_t)strlen(vyre__ops[node->op].text) + 2;
    case VYRE__FORM_SET:
    case VYRE__FORM_LITERAL: /* its spelling is not known any more */
      return 1;
    case VYRE__FORM_LOCAL: /* of the kernel: no other has diagnostics */
      return (uint32_t)strlen(program->functions[0].locals[node->a].name);
    case VYRE__FORM_CALL:
      return (uint32_t)strlen(program->functions[node->a].name);
    default:
      break;
  }
  if (node->op == VYRE__OP_CAST) {
    return (uint32_t)strlen(vyre_type_name(node->type));
  }
  char first = vyre__ops[node->op].text[0];
  bool is_word = first >= 'a' && first <= 'z' && node->op != VYRE__OP_BLOCK;
  return is_word ? (uint32_t)strlen(vyre__ops[node->op].text) : 1;
}

/* Adds a diagnostic that has everything but its message. */
static void add(vyre__validation *v, vyre_diagnostic *finding,
                const char *format, va_list args) {
  char message[512];
  vsnprintf(message, sizeof message, format, args);
  finding->message = message;
  if (!vyre__diagnostics_add(&v->found, finding)) v->no_memory = true;
  finding->message = NULL; /* the copy stays */
}

void vyre__find(vyre__validation *v, const char *rule,
                vyre__validation_site spot, const char *fix, const char *format,
                ...) {
  const vyre_program *p = v->program;
  vyre__id node = spot.node;
  if (node == 0 && p->function_count) node = p->functions[0].body;
  const vyre__source_loc place = vyre__source_loc_of(p, node);
  vyre_diagnostic finding = {.rule = rule,
                             .line = place.line,
                             .column = place.column,
                             .length = length_of(p, node),
                             .fix = fix};
  if (spot.other) {
    finding.note = spot.other_text;
    const vyre__source_loc other = vyre__source_loc_of(p, spot.other);
    finding.note_line = other.line;
    finding.note_column = other.column;
  }
  va_list args;
  va_start(args, format);
  add(v, &finding, format, args);
  va_end(args);
}

/* Adds a diagnostic about the declaration of a buffer. */
VYRE__PRINTF(5, 6)
static void find_buffer(vyre__validation *v, const char *rule, size_t buffer,
                        const char *fix, const char *format, ...) {
  const vyre_program *p = v->program;
  vyre__source_loc place = vyre__source_loc_of(p, p->functions[0].body);
  vyre_diagnostic finding = {.rule = rule, .length = 1, .fix = fix};
  if (p->buffer_places) {
    place = p->buffer_places[buffer];
    finding.length = (uint32_t)strlen(p->buffers[buffer].name);
  }
  finding.line = place.line;
  finding.column = place.column;
  va_list args;
  va_start(args, format);
  add(v, &finding, format, args);
  va_end(args);
}

/* --- limits ----------------------------------------------------------------*/

static void check_workgroup(vyre__validation *v) {
  const uint32_t *size = v->program->workgroup;
  uint64_t plane = (uint64_t)size[0] * size[1]; /* below 2^64 */
  if (plane <= VYRE_MAX_INVOCATIONS &&
      plane * size[2] <= VYRE_MAX_INVOCATIONS) {
    return;
  }
  vyre__find(v, "V108", (vyre__validation_site){0},
             "use at most 1024 invocations per workgroup, and more workgroups",
             "the workgroup of '%.100s' is %u x %u x %u; the maximum is %d "
             "invocations",
             v->program->name, (unsigned)size[0], (unsigned)size[1],
             (unsigned)size[2], VYRE_MAX_INVOCATIONS);
}

/* Returns the first node that uses subgroups, or 0. */
static vyre__id find_subgroups(const vyre_program *program) {
  for (vyre__id id = 1; id < program->node_count; id++) {
    const unsigned op = program->nodes[id].op;
    if (vyre__op_is_lane(op) || vyre__op_is_exchange(op)) return id;
  }
  return 0;
}

static void check_subgroups(vyre__validation *v) {
  const vyre_program *p = v->program;
  const uint32_t *size = p->workgroup;
  const vyre__id id = p->is_rich ? find_subgroups(p) : 0;
  if (!id) return;
  const uint64_t count = (uint64_t)size[0] * size[1] * size[2];
  const char *text = vyre__ops[p->nodes[id].op].text;
  char fix[120];
  if (p->item_type != VYRE_TYPE_VOID) {
    if (!vyre__op_is_lane(p->nodes[id].op)) return; /* V104 */
    vyre__find(v, "V112", (vyre__validation_site){id, 0, NULL},
               "use item and item_index",
               "'%s' in queue kernel '%.100s', whose items have no subgroups",
               text, p->name);
    return;
  }
  if (count % VYRE__SUBGROUP == 0 || count > VYRE_MAX_INVOCATIONS) return;
  snprintf(fix, sizeof fix, "declare workgroup(%u)",
           (unsigned)(count / VYRE__SUBGROUP + 1) * VYRE__SUBGROUP);
  vyre__find(v, "V117", (vyre__validation_site){id, 0, NULL}, fix,
             "'%s' needs whole subgroups of %d invocations, but the workgroup "
             "of '%.100s' has %u",
             text, VYRE__SUBGROUP, p->name, (unsigned)count);
}

static void check_shared(vyre__validation *v) {
  const vyre_program *p = v->program;
  uint64_t bytes = 0, max = 0;
  size_t largest = 0;
  for (size_t i = 0; i < p->buffer_count; i++) {
    const vyre_buffer_decl *b = &p->buffers[i];
    if (b->kind != VYRE_MEMORY_SHARED || vyre__hidden_of(p, (uint32_t)i)) {
      continue;
    }
    uint64_t own = (uint64_t)b->count * vyre_buffer_stride(b);
    bytes += own; /* at most 1024 buffers: no overflow */
    if (own > max) largest = i;
    if (own > max) max = own;
  }
  if (bytes <= VYRE_MAX_SHARED_BYTES) return;
  find_buffer(v, "V109", largest,
              "use smaller shared buffers, or a global buffer",
              "the shared buffers of '%.60s' have %llu bytes, '%.60s' alone "
              "%llu; the maximum is %d per workgroup",
              p->name, (unsigned long long)bytes, p->buffers[largest].name,
              (unsigned long long)max, VYRE_MAX_SHARED_BYTES);
}

static void check_arrays(vyre__validation *v) {
  const vyre_program *p = v->program;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < p->buffer_count; i++) {
    if (!vyre__is_private(p, i)) continue;
    bytes += (uint64_t)p->buffers[i].count *
             vyre_element_size(p->buffers[i].element);
  }
  if (bytes <= VYRE__MAX_ARRAY_BYTES) return;
  vyre__find(v, "V115", (vyre__validation_site){0},
             "use smaller arrays, or a part of a buffer for each invocation: "
             "scratch[global_id.x * 64 + k]",
             "the arrays of an invocation of '%.60s' have %llu bytes; the "
             "maximum is %d",
             p->name, (unsigned long long)bytes, VYRE__MAX_ARRAY_BYTES);
}

static void check_inlined(vyre__validation *v) {
  const vyre__function_effects *kernel = &v->effects.functions[0];
  if (kernel->inlined_nodes > VYRE_MAX_INLINED_NODES) {
    vyre__find(
        v, "V110", (vyre__validation_site){0},
        "store the result of repeated calls in a variable, or use a loop",
        "with all calls inlined, '%.100s' has %llu operations; the maximum is "
        "%d",
        v->program->name, (unsigned long long)kernel->inlined_nodes,
        VYRE_MAX_INLINED_NODES);
  } else if (kernel->inlined_depth > VYRE_MAX_INLINED_DEPTH) {
    vyre__find(v, "V110", (vyre__validation_site){0},
               "shorten the chain of calls, or nest statements less",
               "with all calls inlined, '%.100s' is nested %llu levels deep; "
               "the maximum is %d",
               v->program->name, (unsigned long long)kernel->inlined_depth,
               VYRE_MAX_INLINED_DEPTH);
  }
}

/* --- buffers ---------------------------------------------------------------*/

static void check_outputs(vyre__validation *v) {
  for (uint32_t i = 0; i < v->program->buffer_count; i++) {
    const vyre_buffer_decl *b = &v->program->buffers[i];
    if (b->access != VYRE_ACCESS_WRITE && !b->is_output) continue;
    uint8_t writes = VYRE__OPF_WRITES | VYRE__OPF_ATOMICS;
    if (v->effects.buffers[i] & writes) continue;
    find_buffer(v, "V107", i,
                b->access == VYRE_ACCESS_READ
                    ? "declare it write or read_write and store to it, or "
                      "remove the attribute 'output'"
                    : "store to it, or declare it read without 'output'",
                "buffer '%.100s' is an output of '%.100s', but nothing writes "
                "it",
                b->name, v->program->name);
  }
}

/* Formats the end of an interval: "-3". */
static const char *number_text(vyre__wide value, char out[24]) {
  unsigned long long magnitude =
      (unsigned long long)(value < 0 ? -value : value);
  snprintf(out, 24, "%s%llu", value < 0 ? "-" : "", magnitude);
  return out;
}

static void report_outside(vyre__validation *v, vyre__id id) {
  const vyre__node *node = &v->program->nodes[id];
  const vyre_buffer_decl *b = &v->program->buffers[node->a];
  vyre__interval index = vyre__range_of(&v->ranges, node->b);
  vyre__validation_site spot = {.node = node->b};
  const vyre__hidden *hidden = vyre__hidden_of(v->program, node->a);
  char number[24], fix[64];
  if (b->count == 0) {
    vyre__find(v, "V105", spot, "use an index of 0 or more",
               "the index of '%.100s' is always negative (at most %s)", b->name,
               number_text(index.hi, number));
    return;
  }
  snprintf(fix, sizeof fix, "use an index from 0 to %u",
           (unsigned)b->count - 1);
  vyre__find(v, "V105", spot, fix,
             "the index of '%.100s' is always out of bounds: it is at %s %s, "
             "but the %s has %u elements",
             b->name, index.hi < 0 ? "most" : "least",
             number_text(index.hi < 0 ? index.hi : index.lo, number),
             !hidden         ? "buffer"
             : hidden->table ? "table"
                             : "array",
             (unsigned)b->count);
}

/* Returns true if an access may always be out of bounds, so that its range is
 * needed. */
static bool is_suspect(const vyre_program *program, const vyre__node *node) {
  const uint8_t touches =
      VYRE__OPF_READS | VYRE__OPF_WRITES | VYRE__OPF_ATOMICS;
  if (!(vyre__ops[node->op].flags & touches)) return false;
  const vyre__node *index = &program->nodes[node->b];
  uint32_t count = program->buffers[node->a].count;
  bool is_signed = index->type == VYRE_TYPE_I32 || index->type == VYRE_TYPE_I64;
  if (index->op == VYRE__OP_LITERAL) {
    vyre__wide at = vyre__interval_value(index->type, vyre__literal(index));
    /* in bounds; mostly scalar uniforms */
    if (at >= 0 && at < count) return false;
  }
  return is_signed || count > 0;
}

/* Collects unconditional accesses. Those under a condition, in a loop or
 * after a jump may be guarded, and an out-of-bounds access is harmless. */
static void note_certain(vyre__validation *v, vyre__id id) {
  const vyre__node *node = &v->program->nodes[id];
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(v->program, node, storage, &ids);
  if (is_suspect(v->program, node)) v->suspects[v->suspect_count++] = id;
  switch ((vyre__op)node->op) {
    case VYRE__OP_FOR:
    case VYRE__OP_WHILE:
      return;
    case VYRE__OP_IF:
    case VYRE__OP_LAND:
    case VYRE__OP_LOR:
    case VYRE__OP_COND:
    case VYRE__OP_SELECT: /* often used as a guard */
      count = 1;
      break;
    default:
      break;
  }
  for (uint32_t i = 0; i < count; i++) note_certain(v, ids[i]);
}

static bool may_jump(const vyre_program *program, vyre__id id) {
  const vyre__node *node = &program->nodes[id];
  if (vyre__ops[node->op].flags & VYRE__OPF_JUMPS) return true;
  if (!vyre__is_statement(node)) return false;
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    if (may_jump(program, ids[i])) return true;
  }
  return false;
}

static vyre_code find_suspects(vyre__validation *v, vyre_arena *arena,
                               vyre_status *st) {
  const vyre_program *p = v->program;
  const vyre__node *body = &p->nodes[p->functions[0].body];
  const vyre__id *ids = p->lists + body->a;
  bool jumps = (v->effects.functions[0].own_flags & VYRE__OPF_JUMPS) != 0;
  v->suspects = vyre__arena_array(arena, p->node_count, sizeof *v->suspects);
  if (!v->suspects) {
    return vyre__no_memory(st, "validation", "accesses", p->node_count);
  }
  for (uint32_t i = 0; i < body->b; i++) {
    note_certain(v, ids[i]);
    if (jumps && may_jump(p, ids[i])) break;
  }
  vyre__arena_trim(arena, v->suspects, p->node_count, v->suspect_count,
                   sizeof *v->suspects);
  return VYRE_OK;
}

static void check_accesses(vyre__validation *v) {
  for (size_t i = 0; i < v->suspect_count; i++) {
    vyre__id id = v->suspects[i];
    if (v->ranges.flags[id] & VYRE__RANGE_OUTSIDE) report_outside(v, id);
  }
}

/* --- unreachable statements ------------------------------------------------*/

static bool walk_ends(vyre__validation *v, vyre__id id);

/* Returns the name of a statement in a message. The program holds a switch, a
 * do loop and a geometric for loop as blocks, so the message calls them
 * "statement". */
static const char *stop_name(const vyre_program *program, vyre__id id) {
  const unsigned op = program->nodes[id].op;
  return op == VYRE__OP_BLOCK ? "statement" : vyre__ops[op].text;
}

/* Returns true if control reaches the end of a block. Reports the first
 * unreachable statement. */
static bool block_ends(vyre__validation *v, vyre__id id) {
  const vyre__node *block = &v->program->nodes[id];
  vyre__id stop = 0;
  for (uint32_t i = 0; i < block->b; i++) {
    vyre__id child = v->program->lists[block->a + i];
    if (stop) {
      const char *quote =
          v->program->nodes[stop].op == VYRE__OP_BLOCK ? "" : "'";
      vyre__find(
          v, "V106",
          (vyre__validation_site){child, stop, "control never passes this"},
          "remove it, or make the jump before it conditional",
          "this statement is unreachable: control never passes the %s%s%s at "
          "line "
          "%u",
          quote, stop_name(v->program, stop), quote,
          (unsigned)vyre__line_of(v, stop));
      return false;
    }
    if (!walk_ends(v, child)) stop = child;
  }
  return stop == 0;
}

/* Returns true if control reaches the end of a statement. `while (true)`
 * counts as reaching it, as in V077. */
static bool walk_ends(vyre__validation *v, vyre__id id) {
  const vyre__node *node = &v->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      return block_ends(v, id);
    case VYRE__OP_BREAK:
    case VYRE__OP_CONTINUE:
    case VYRE__OP_RETURN:
      return false;
    case VYRE__OP_IF: {
      bool yes = walk_ends(v, node->b);
      bool no = node->c == 0 || walk_ends(v, node->c);
      return yes || no;
    }
    case VYRE__OP_FOR:
      walk_ends(v, vyre__for_of(v->program, id).body);
      return true;
    case VYRE__OP_WHILE:
      walk_ends(v, node->b);
      return true;
    default:
      return true;
  }
}

static void check_reachable(vyre__validation *v) {
  for (uint32_t f = 0; f < v->program->function_count; f++) {
    if (!(v->effects.functions[f].own_flags & VYRE__OPF_JUMPS)) continue;
    walk_ends(v, v->program->functions[f].body);
  }
}

/* --- entry point -----------------------------------------------------------*/

/* Walks the statements of the kernel only: functions have other locals. */
static void note_definitions(const vyre_program *program, vyre__id id,
                             vyre__id *definitions) {
  const vyre__node *node = &program->nodes[id];
  if (node->op == VYRE__OP_LET) definitions[node->a] = node->b;
  if (!vyre__is_statement(node)) return;
  vyre__id storage[3];
  const vyre__id *ids;
  uint32_t count = vyre__children(program, node, storage, &ids);
  for (uint32_t i = 0; i < count; i++) {
    note_definitions(program, ids[i], definitions);
  }
}

static vyre_code find_definitions(vyre__validation *v, vyre_arena *arena,
                                  vyre_status *st) {
  const vyre__function *kernel = &v->program->functions[0];
  size_t count = kernel->local_count;
  vyre__id *definitions =
      vyre__arena_filled(arena, count, sizeof *definitions, 0);
  if (!definitions) return vyre__no_memory(st, "validation", "locals", count);
  note_definitions(v->program, kernel->body, definitions);
  v->definitions = definitions;
  return VYRE_OK;
}

/* Returns the last node of the kernel where invocations wait for each other. */
static vyre__id last_barrier(const vyre_program *program) {
  const uint8_t meets = VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER;
  vyre__id id = program->functions[0].body;
  while (id > 0 && !(vyre__ops[program->nodes[id].op].flags & meets)) id--;
  return id;
}

/* Returns the last suspect; suspects are not in node order. */
static vyre__id last_suspect(const vyre__validation *v) {
  vyre__id last = 0;
  for (size_t i = 0; i < v->suspect_count; i++) {
    if (v->suspects[i] > last) last = v->suspects[i];
  }
  return last;
}

/* Runs the analyses only as far as a check needs them: up to the last
 * barrier, and up to the last unconditional access. Most kernels need little.
 */
static vyre_code analyze(vyre__validation *v, vyre_arena *arena,
                         vyre_status *st) {
  VYRE_TRY(vyre__effects_build(v->program, arena, &v->effects, st));
  const uint8_t flags = v->effects.functions[0].flags;
  if (flags & VYRE__OPF_GRID_BARRIER) {
    VYRE_TRY(find_definitions(v, arena, st));
  }
  vyre__id last = last_barrier(v->program);
  if (last) {
    VYRE_TRY(vyre__uniformity_build_to(v->program, &v->effects, last, arena,
                                       &v->uniformity, st));
  }
  VYRE_TRY(find_suspects(v, arena, st));
  if (v->suspect_count == 0) return VYRE_OK;
  return vyre__ranges_build_to(v->program, NULL, last_suspect(v), arena,
                               &v->ranges, st);
}

static void check_all(vyre__validation *v) {
  check_workgroup(v);
  check_subgroups(v);
  check_shared(v);
  check_arrays(v);
  check_inlined(v);
  check_outputs(v);
  check_accesses(v);
  check_reachable(v);
  vyre__check_barriers(v);
  vyre__check_queue(v);
}

/* Passes the diagnostics on; the first becomes the status. */
static vyre_code conclude(vyre__validation *v, vyre_diagnostics *diagnostics,
                          vyre_status *st) {
  if (v->program->files &&
      !vyre__diagnostics_locate(&v->found, v->program->files)) {
    v->no_memory = true;
  }
  for (size_t i = 0; diagnostics && i < v->found.count; i++) {
    if (!vyre__diagnostics_add(diagnostics, &v->found.items[i])) {
      v->no_memory = true;
    }
  }
  if (v->no_memory) {
    return vyre__no_memory(st, "vyre_program_validate", "findings",
                           v->found.count + 1);
  }
  if (v->found.count == 0) return VYRE_OK;
  if (diagnostics) diagnostics->dropped += v->found.dropped;
  char name[80];
  snprintf(name, sizeof name, "kernel '%.60s'", v->program->name);
  const char *file = v->program->file;
  return vyre__diagnostics_fail(&v->found, *file ? file : name, st);
}

/* Checks rules that only lists of buffers can break; the parser enforces them
 * for text. */
static vyre_code check_plan(const vyre_program *program, vyre_arena *arena,
                            vyre_status *st) {
  vyre_binding_plan plan;
  vyre__arena_mark start = vyre__arena_here(arena);
  vyre_code code =
      vyre_binding_plan_build(program, arena, &plan, vyre__status_open(st));
  if (code == VYRE_OK) vyre__arena_rewind(arena, start);
  return code;
}

/* Prefetches all nodes before the plan is checked. After parsing a file, they
 * have left the near caches, and the first walk would wait for them one by
 * one. */
static void fetch_nodes(const vyre_program *program) {
  enum { LINE = 64, MAX_BYTES = 1 << 13 };
  const char *nodes = (const char *)program->nodes;
  size_t bytes = program->node_count * sizeof *program->nodes;
  if (bytes > MAX_BYTES) bytes = MAX_BYTES; /* limit of what the caches hold */
  for (size_t i = 0; i < bytes; i += LINE) __builtin_prefetch(nodes + i);
}

vyre_code vyre_program_validate(const vyre_program *program,
                                vyre_diagnostics *diagnostics,
                                vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, program);
  vyre_arena arena;
  vyre_arena_init(&arena, program->arena.allocator);
  vyre__validation v = {.program = program};
  vyre_arena_init(&v.found.arena, program->arena.allocator);
  fetch_nodes(program);
  vyre_code code = check_plan(program, &arena, st);
  vyre_program *plain = NULL;
  if (code == VYRE_OK && program->is_rich) {
    code = vyre__plain(program, program->arena.allocator, &plain,
                       vyre__status_open(st));
    if (plain) v.program = plain;
  }
  if (code == VYRE_OK && program->function_count > 0) {
    code = analyze(&v, &arena, st);
    if (code == VYRE_OK) {
      check_all(&v);
      if (plain)
        code = vyre__check_queue_parts(&v, program, vyre__status_open(st));
    }
    if (code == VYRE_OK) {
      code = conclude(&v, diagnostics, st);
    }
  }
  vyre_diagnostics_deinit(&v.found);
  vyre_arena_deinit(&arena);
  vyre_program_release(plain);
  return code;
}
