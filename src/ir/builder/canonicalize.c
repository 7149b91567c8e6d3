/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Turns the contents of an IR builder into an immutable program in canonical
 * order. Nodes of the kernel's body come first, in post-order. Functions
 * follow in the order of their first call. Lists and texts follow the order
 * of their nodes, locals that of their declarations. So equal programs have
 * equal arrays. */
#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"
#include "ir/program.h"
#include "ir/queue.h"

/* --- checks of the kernel's header -----------------------------------------*/

enum { MAX_BUFFERS = 1024 };

#define REFUSE(st, fix, ...)                                          \
  VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, fix, \
            __VA_ARGS__)

static vyre_code check_kind(const vyre_buffer_decl *buffer, vyre_status *st) {
  bool fits;
  switch (buffer->kind) {
    case VYRE_MEMORY_UNIFORM:
      fits = buffer->access == VYRE_ACCESS_UNIFORM;
      break;
    case VYRE_MEMORY_SHARED:
      fits = buffer->access == VYRE_ACCESS_WORKGROUP;
      break;
    default:
      fits = buffer->access <= VYRE_ACCESS_READ_WRITE;
  }
  if (!fits) {
    return REFUSE(st,
                  "use access uniform with uniform, workgroup with shared, "
                  "else read, write or read_write",
                  "buffer '%.100s' is %s with access %s", buffer->name,
                  vyre_memory_name(buffer->kind),
                  vyre_access_name(buffer->access));
  }
  if (buffer->kind == VYRE_MEMORY_SHARED &&
      (buffer->binding != 0 || buffer->count == 0)) {
    return REFUSE(st, "set its binding to 0 and its count to 1 or more",
                  "shared buffer '%.100s' has binding %u and %u elements",
                  buffer->name, buffer->binding, buffer->count);
  }
  if (buffer->kind == VYRE_MEMORY_UNIFORM && buffer->count == 0) {
    return REFUSE(st, "set its count to 1 or more",
                  "uniform '%.100s' has no elements", buffer->name);
  }
  if (buffer->element == VYRE_ELEMENT_BYTES && buffer->count != 0) {
    return REFUSE(st, "use u8 elements, or omit the count",
                  "buffer '%.100s' has %u elements of type bytes, which must "
                  "not have a count",
                  buffer->name, buffer->count);
  }
  return VYRE_OK;
}

static vyre_code check_buffer(const vyre_buffer_decl *buffer, bool name_is_good,
                              vyre_status *st) {
  if (!name_is_good &&
      !vyre__name_is_identifier(buffer->name, strlen(buffer->name))) {
    return REFUSE(
        st, "use letters, digits and _; do not use a word of the language",
        "'%.100s' cannot be the name of a buffer", buffer->name);
  }
  VYRE_TRY(check_kind(buffer, st));
  uint32_t alignment = buffer->hints.preferred_alignment;
  if (alignment != 0 && !vyre__is_power_of_two(alignment)) {
    return REFUSE(
        st, "use 0 for the default, or a power of two",
        "buffer '%.100s' has alignment %u, which is not a power of two",
        buffer->name, alignment);
  }
  return VYRE_OK;
}

static vyre_code check_pair(const vyre_buffer_decl *a,
                            const vyre_buffer_decl *b, vyre_status *st) {
  if (strcmp(a->name, b->name) == 0) {
    return REFUSE(st, "use a different name for each buffer",
                  "two buffers have the name '%.100s'", a->name);
  }
  if (a->binding != b->binding || a->kind == VYRE_MEMORY_SHARED ||
      b->kind == VYRE_MEMORY_SHARED) {
    return VYRE_OK;
  }
  return REFUSE(
      st, "use a different binding number for each buffer that is not shared",
      "buffers '%.100s' and '%.100s' both have binding %u", a->name, b->name,
      a->binding);
}

static vyre_program_desc head_desc(const vyre__kernel *kernel) {
  return (vyre_program_desc){
      .buffers = kernel->buffers,
      .buffer_count = kernel->buffer_count,
      .workgroup = {kernel->workgroup[0], kernel->workgroup[1],
                    kernel->workgroup[2]}};
}

vyre_code vyre__kernel_check(const vyre__kernel *kernel, vyre_status *st) {
  if (!kernel->has_good_names &&
      !vyre__name_is_identifier(kernel->name, strlen(kernel->name))) {
    return REFUSE(
        st, "use letters, digits and _; do not use a word of the language",
        "'%.100s' cannot be the name of a kernel", kernel->name);
  }
  if (kernel->buffer_count > MAX_BUFFERS) {
    return REFUSE(st, "combine several arrays into one buffer",
                  "kernel '%.100s' has %u buffers; the maximum is %d",
                  kernel->name, kernel->buffer_count, MAX_BUFFERS);
  }
  vyre_program_desc desc = head_desc(kernel);
  VYRE_TRY(vyre__program_check(&desc, st));
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    VYRE_TRY(check_buffer(&kernel->buffers[i], kernel->has_good_names, st));
    if (i >= kernel->buffer_count - kernel->hidden_count) continue;
    for (uint32_t j = 0; j < i; j++) {
      VYRE_TRY(check_pair(&kernel->buffers[j], &kernel->buffers[i], st));
    }
  }
  if (kernel->over != VYRE_NO_INDEX && kernel->over >= kernel->buffer_count) {
    return REFUSE(
        st, "pass the index of a buffer of the kernel",
        "the grid of kernel '%.100s' covers buffer %u, but it has %u buffers",
        kernel->name, kernel->over, kernel->buffer_count);
  }
  return kernel->queue ? vyre__queue_check(kernel, st) : VYRE_OK;
}

/* --- canonical order -------------------------------------------------------*/

typedef struct placed_function {
  uint32_t made; /* index in the IR builder */
  uint32_t first_node, end_node;
  uint32_t first_local, local_count;
  vyre__id body;
} placed_function;

/* Arrays of the canonicaliser. The IR builder owns them, so that all programs
 * of a file share the memory. */
typedef struct vyre__canonicalizer {
  vyre__ir_builder *m;
  uint32_t epoch;
  bool out_of_memory;
  bool lost_local; /* a local is used without a declaration */
  vyre__node *nodes;
  vyre__source_loc *places;
  size_t node_count, node_capacity, place_capacity;
  uint32_t *lists;
  size_t list_count, list_capacity;
  uint32_t *stack;
  size_t stack_count, stack_capacity;
  char *texts;
  size_t text_count, text_capacity;
  vyre__local *locals; /* of all functions, one after the other */
  size_t local_count, local_capacity;
  placed_function *functions;
  size_t function_count, function_capacity;
  uint32_t writing;        /* function whose nodes are being written */
  vyre__ir_table **tables; /* in the order of their first use */
  size_t table_count, table_capacity;
  bool is_rich, has_structs;
  bool calls_nested; /* a function other than the kernel contains a call */
} canonicalizer;

static bool grow(canonicalizer *s, void *array, size_t *capacity, size_t need,
                 size_t element_size) {
  if (vyre__reserve(s->m->allocator, array, capacity, need, element_size,
                    false)) {
    return true;
  }
  s->out_of_memory = true;
  return false;
}

#define ROOM(s, array, capacity, count, more)                  \
  ((size_t)(more) <= (s)->capacity - (s)->count ||             \
   grow((s), &(s)->array, &(s)->capacity, (s)->count + (more), \
        sizeof *(s)->array))

#define FREE_ARRAY(s, array, capacity)                               \
  vyre__reserve_free((s)->m->allocator, &(s)->array, &(s)->capacity, \
                     sizeof *(s)->array)

static canonicalizer *canonicalizer_of(vyre__ir_builder *m) {
  if (!m->canonicalizer) {
    m->canonicalizer =
        vyre__resize(m->allocator, NULL, 0, sizeof *m->canonicalizer);
    if (!m->canonicalizer) return NULL;
    *m->canonicalizer = (canonicalizer){.m = m};
  }
  canonicalizer *s = m->canonicalizer;
  s->m = m; /* an IR builder may have moved */
  s->epoch = ++m->program_count;
  s->out_of_memory = s->lost_local = s->calls_nested = s->is_rich = false;
  s->has_structs = false;
  s->node_count = s->list_count = s->stack_count = s->text_count = 0;
  s->local_count = s->function_count = s->table_count = 0;
  return s;
}

void vyre__canonicalizer_free(vyre__ir_builder *m) {
  canonicalizer *s = m->canonicalizer;
  if (!s) return;
  s->m = m;
  FREE_ARRAY(s, nodes, node_capacity);
  FREE_ARRAY(s, places, place_capacity);
  FREE_ARRAY(s, lists, list_capacity);
  FREE_ARRAY(s, stack, stack_capacity);
  FREE_ARRAY(s, texts, text_capacity);
  FREE_ARRAY(s, locals, local_capacity);
  FREE_ARRAY(s, functions, function_capacity);
  FREE_ARRAY(s, tables, table_capacity);
  vyre__resize(m->allocator, s, sizeof *s, 0);
  m->canonicalizer = NULL;
}

static vyre__id put_node(canonicalizer *s, vyre__node node,
                         vyre__source_loc place) {
  if (!ROOM(s, nodes, node_capacity, node_count, 1) ||
      !ROOM(s, places, place_capacity, node_count, 1)) {
    return 0;
  }
  s->is_rich |= vyre__is_aggregate(node.type) || node.op >= VYRE__OP_MAKE;
  s->has_structs |= vyre__is_struct(node.type);
  node.reserved = 0;
  vyre__put_node(&s->nodes[s->node_count], node);
  s->places[s->node_count] = place;
  return (vyre__id)s->node_count++;
}

static vyre__ir_local *made_local(canonicalizer *s, uint32_t local) {
  const vyre__ir_function *made =
      &s->m->functions[s->functions[s->writing].made];
  return &s->m->locals[made->first_local + local];
}

static uint32_t declare_local(canonicalizer *s, uint32_t local) {
  vyre__ir_local *made = made_local(s, local);
  if (!ROOM(s, locals, local_capacity, local_count, 1)) return 0;
  s->is_rich |= made->is_memory;
  s->locals[s->local_count++] = (vyre__local){.name = made->name,
                                              .type = made->type,
                                              .is_mutable = made->is_mutable,
                                              .is_memory = made->is_memory,
                                              .access = made->access,
                                              .element = made->element,
                                              .length = made->length,
                                              .shape = made->shape};
  s->has_structs |= vyre__is_struct(made->type);
  s->is_rich |= vyre__is_aggregate(made->type);
  made->program_number = s->epoch;
  made->program_index = s->functions[s->writing].local_count++;
  return made->program_index;
}

static uint32_t use_local(canonicalizer *s, uint32_t local) {
  const vyre__ir_local *made = made_local(s, local);
  if (made->program_number != s->epoch) s->lost_local = true;
  return made->program_index;
}

static uint32_t use_table(canonicalizer *s, uint32_t number) {
  vyre__ir_table *made = &s->m->tables[number];
  if (made->program_number == s->epoch) return made->program_index;
  void *tables = (void *)s->tables;
  if (!grow(s, &tables, &s->table_capacity, s->table_count + 1,
            sizeof *s->tables)) {
    return 0;
  }
  s->tables = (vyre__ir_table **)tables;
  made->program_number = s->epoch;
  made->program_index = (uint32_t)s->table_count;
  s->tables[s->table_count++] = made;
  return made->program_index;
}

/* Returns the number of memory in the program. */
static uint32_t use_memory(canonicalizer *s, uint32_t memory) {
  const uint32_t index = memory & VYRE__MEMORY_INDEX;
  if (memory < VYRE__MEMORY_TABLE) return memory;
  s->is_rich = true;
  if (memory & VYRE__MEMORY_TABLE) {
    return VYRE__MEMORY_TABLE | use_table(s, index);
  }
  return VYRE__MEMORY_LOCAL | use_local(s, index);
}

static uint32_t use_function(canonicalizer *s, uint32_t function) {
  vyre__ir_function *made = &s->m->functions[function];
  if (s->writing > 0) s->calls_nested = true;
  if (made->program_number == s->epoch) return made->program_index;
  if (!ROOM(s, functions, function_capacity, function_count, 1)) return 0;
  s->functions[s->function_count] = (placed_function){.made = function};
  made->program_number = s->epoch;
  made->program_index = (uint32_t)s->function_count++;
  return made->program_index;
}

static inline vyre__id emit(canonicalizer *s, vyre__id id);

/* Writes the nodes of a list, then the list of their new ids. */
static uint32_t emit_list(canonicalizer *s, uint32_t list, uint32_t count) {
  size_t mark = s->stack_count;
  for (uint32_t i = 0; i < count; i++) {
    vyre__id id = emit(s, s->m->lists[list + i]);
    if (!ROOM(s, stack, stack_capacity, stack_count, 1)) return 0;
    s->stack[s->stack_count++] = id;
  }
  if (!ROOM(s, lists, list_capacity, list_count, count)) return 0;
  uint32_t offset = (uint32_t)s->list_count;
  if (count > 0) {
    memcpy(s->lists + offset, s->stack + mark, count * sizeof *s->lists);
  }
  s->list_count += count;
  s->stack_count = mark;
  return count > 0 ? offset : 0;
}

/* The loop variable is declared after the bounds and before the body. */
static void emit_for(canonicalizer *s, vyre__node *node) {
  const uint32_t list = node->b;
  uint32_t parts[4];
  for (int i = 0; i < 3; i++) parts[i] = emit(s, s->m->lists[list + i]);
  node->a = declare_local(s, node->a);
  parts[3] = emit(s, s->m->lists[list + 3]);
  if (!ROOM(s, lists, list_capacity, list_count, 4)) return;
  node->b = (uint32_t)s->list_count;
  memcpy(s->lists + s->list_count, parts, sizeof parts);
  s->list_count += 4;
}

static void emit_text(canonicalizer *s, vyre__node *node) {
  if (!ROOM(s, texts, text_capacity, text_count, node->b)) return;
  uint32_t offset = (uint32_t)s->text_count;
  if (node->b > 0) memcpy(s->texts + offset, s->m->texts + node->a, node->b);
  s->text_count += node->b;
  node->a = node->b > 0 ? offset : 0;
}

static void emit_set(canonicalizer *s, vyre__node *node) {
  node->b = emit(s, node->b);
  node->a = node->op == VYRE__OP_LET ? declare_local(s, node->a)
                                     : use_local(s, node->a);
}

/* Writes the children of a node in evaluation order. */
static void emit_children(canonicalizer *s, vyre__node *node) {
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LOCAL:
      node->a = use_local(s, node->a);
      break;
    case VYRE__FORM_CALL:
      node->b = emit_list(s, node->b, node->c);
      node->a = use_function(s, node->a);
      break;
    case VYRE__FORM_BUFFER:
      node->a = use_memory(s, node->a);
      break;
    case VYRE__FORM_ATOMIC2:
      node->a = use_memory(s, node->a);
      node->b = emit(s, node->b);
      node->c = emit_list(s, node->c, 2);
      break;
    case VYRE__FORM_MAKE:
    case VYRE__FORM_LIST:
      node->a = emit_list(s, node->a, node->b);
      break;
    case VYRE__FORM_SET:
      emit_set(s, node);
      break;
    case VYRE__FORM_FOR:
      emit_for(s, node);
      break;
    case VYRE__FORM_TEXT:
      emit_text(s, node);
      break;
    case VYRE__FORM_LOAD:
      node->a = use_memory(s, node->a);
      node->b = emit(s, node->b);
      break;
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_STORE:
      node->a = use_memory(s, node->a);
      node->b = emit(s, node->b);
      node->c = emit(s, node->c);
      break;
    case VYRE__FORM_UNARY:
    case VYRE__FORM_BINARY:
    case VYRE__FORM_TERNARY:
    case VYRE__FORM_IF:
    case VYRE__FORM_WHILE: /* fields that a form does not have are 0 */
      node->a = emit(s, node->a);
      node->b = emit(s, node->b);
      node->c = emit(s, node->c);
      break;
    default:
      break;
  }
}

static vyre__id emit_inner(canonicalizer *s, vyre__id id) {
  if (s->out_of_memory) return 0;
  vyre__node node = s->m->nodes[id];
  emit_children(s, &node);
  return put_node(s, node, s->m->spans[id].place);
}

/* Inline path for leaves, which are half of all nodes. */
static inline vyre__id emit(canonicalizer *s, vyre__id id) {
  if (id == 0) return 0;
  const vyre__node *node = &s->m->nodes[id];
  if (node->op != VYRE__OP_LITERAL && node->op != VYRE__OP_LOCAL) {
    return emit_inner(s, id);
  }
  vyre__node own = *node;
  if (node->op == VYRE__OP_LOCAL) own.a = use_local(s, node->a);
  return put_node(s, own, s->m->spans[id].place);
}

static void emit_function(canonicalizer *s, uint32_t index) {
  s->writing = index;
  const vyre__ir_function *made = &s->m->functions[s->functions[index].made];
  if (made->body == 0) return; /* an error, or not read yet */
  /* A tree writes each node once, so the size is known in advance. */
  size_t nodes = made->end_node - made->first_node;
  if (!ROOM(s, nodes, node_capacity, node_count, nodes) ||
      !ROOM(s, places, place_capacity, node_count, nodes)) {
    return;
  }
  s->functions[index].first_local = (uint32_t)s->local_count;
  s->functions[index].first_node = (uint32_t)s->node_count;
  for (uint32_t i = 0; i < made->parameter_count; i++) {
    (void)declare_local(s, i);
  }
  vyre__id body = emit(s, made->body);
  s->functions[index].body = body;
  s->functions[index].end_node = (uint32_t)s->node_count;
}

/* --- the program -----------------------------------------------------------*/

static vyre_code check_calls(canonicalizer *s, vyre_status *st) {
  uint32_t count = (uint32_t)s->function_count;
  if (!s->calls_nested) return VYRE_OK; /* kernels are never called */
  if (!ROOM(s, stack, stack_capacity, stack_count, (size_t)count * 6)) {
    return vyre__no_memory(st, "vyre__canonicalize", "calls", count);
  }
  uint32_t *scratch = s->stack + s->stack_count;
  uint32_t *begin = scratch + 4 * (size_t)count, *end = begin + count;
  for (uint32_t i = 0; i < count; i++) {
    begin[i] = s->functions[i].first_node;
    end[i] = s->functions[i].end_node;
  }
  vyre__call_graph graph = {s->nodes, begin, end, count};
  uint32_t depth;
  uint32_t found = vyre__call_cycle(&graph, scratch, NULL, &depth);
  if (found != VYRE_NO_INDEX) {
    return REFUSE(st, "use a loop: functions cannot call themselves",
                  "fn '%.100s' calls itself, directly or through others",
                  s->m->functions[s->functions[found].made].name);
  }
  if (depth > VYRE__MAX_DEPTH) {
    return REFUSE(st, "merge some of the functions",
                  "calls are nested %u levels deep; the maximum is %d", depth,
                  VYRE__MAX_DEPTH);
  }
  return VYRE_OK;
}

/* --- memory of the program --------------------------------------------------
 * Each program is one block of exactly its size. Arrays of larger alignment
 * come first, so that no padding is needed. */

static void *copy_array(vyre_arena *arena, const void *from, size_t count,
                        size_t size, size_t alignment) {
  void *to = vyre_arena_alloc(arena, count * size, alignment);
  if (to && count > 0) memcpy(to, from, count * size);
  return to;
}

#define COPY(arena, from, count) \
  copy_array((arena), (from), (count), sizeof *(from), _Alignof(vyre__id))

/* Copies a name to *at and advances *at. */
static const char *put_name(char **at, const char *name) {
  const size_t size = strlen(name) + 1;
  char *copy = memcpy(*at, name, size);
  *at += size;
  return copy;
}

static size_t name_bytes(const canonicalizer *s, const vyre__kernel *kernel) {
  size_t bytes =
      strlen(kernel->name) + 1 + (kernel->file ? strlen(kernel->file) : 0) + 1;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    bytes += strlen(kernel->buffers[i].name) + 1;
  }
  for (uint32_t i = 0; kernel->queue && i < kernel->queue->field_count; i++) {
    bytes += strlen(kernel->queue->fields[i].name) + 1;
  }
  for (size_t i = 0; i < s->local_count; i++) {
    bytes += strlen(s->locals[i].name) + 1;
  }
  for (size_t i = 0; i < s->table_count; i++) {
    bytes += strlen(s->tables[i]->name) + 1;
  }
  for (size_t i = 0; i < s->function_count; i++) {
    bytes += strlen(s->m->functions[s->functions[i].made].name) + 1;
  }
  return bytes;
}

/* Returns true if all source locations fit into 4 bytes. */
static bool places_are_small(const canonicalizer *s) {
  vyre__source_loc all = {0, 0};
  for (size_t i = 0; i < s->node_count; i++) {
    all.line |= s->places[i].line;
    all.column |= s->places[i].column;
  }
  return vyre__place_is_small(all);
}

static bool copy_places(const canonicalizer *s, const vyre__kernel *kernel,
                        bool small, vyre_arena *arena, vyre_program *program) {
  if (kernel->buffer_places) {
    program->buffer_places =
        COPY(arena, kernel->buffer_places, kernel->buffer_count);
    if (!program->buffer_places) return false;
  }
  if (!small) {
    program->wide_places = COPY(arena, s->places, s->node_count);
    return program->wide_places != NULL;
  }
  uint32_t *places = vyre_arena_alloc(arena, s->node_count * sizeof *places,
                                      _Alignof(uint32_t));
  for (size_t i = 0; places && i < s->node_count; i++) {
    places[i] = vyre__place_pack(s->places[i]);
  }
  program->places = places;
  return places != NULL;
}

static size_t program_bytes(const canonicalizer *s, const vyre__kernel *kernel,
                            bool small_places) {
  const size_t place = small_places ? sizeof(uint32_t) : sizeof *s->places;
  const size_t queue =
      kernel->queue ? sizeof *kernel->queue + kernel->queue->field_count *
                                                  sizeof *kernel->queue->fields
                    : 0;
  return sizeof(vyre_program) + queue +
         kernel->buffer_count *
             (sizeof *kernel->buffers + sizeof *kernel->buffer_places) +
         s->node_count * (sizeof *s->nodes + place) +
         s->list_count * sizeof *s->lists + s->text_count +
         s->local_count * sizeof *s->locals +
         s->function_count * sizeof(vyre__function);
}

static_assert(sizeof(vyre_program) % _Alignof(vyre_buffer_decl) == 0 &&
                  _Alignof(vyre_buffer_decl) >= _Alignof(vyre__local) &&
                  _Alignof(vyre__local) >= _Alignof(vyre__function) &&
                  _Alignof(vyre__function) >= _Alignof(vyre__id) &&
                  _Alignof(vyre__node) == _Alignof(vyre__id) &&
                  _Alignof(vyre__source_loc) == _Alignof(vyre__id),
              "nothing between arrays");
static_assert(_Alignof(vyre_buffer_decl) >= _Alignof(vyre__queue_clauses) &&
                  sizeof(vyre__queue_clauses) % _Alignof(vyre__queue_field) ==
                      0 &&
                  sizeof(vyre__queue_field) % _Alignof(vyre__local) == 0,
              "nothing between the queue and arrays");

/* Arrays of a program that hold names. */
typedef struct named_arrays {
  vyre_buffer_decl *buffers;
  vyre__queue_field *fields;
  vyre__local *locals;
  vyre__function *functions;
  vyre__table *tables;
} named_arrays;

static void put_names(const canonicalizer *s, const vyre__kernel *kernel,
                      char *at, vyre_program *program, named_arrays to) {
  vyre__local *locals = to.locals;
  program->name = put_name(&at, kernel->name);
  program->file = put_name(&at, kernel->file ? kernel->file : "");
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    to.buffers[i].name = put_name(&at, kernel->buffers[i].name);
  }
  for (uint32_t i = 0; kernel->queue && i < kernel->queue->field_count; i++) {
    to.fields[i].name = put_name(&at, kernel->queue->fields[i].name);
  }
  for (size_t i = 0; i < s->local_count; i++) {
    locals[i].name = put_name(&at, s->locals[i].name);
  }
  for (size_t i = 0; i < s->function_count; i++) {
    const placed_function *from = &s->functions[i];
    const vyre__ir_function *made = &s->m->functions[from->made];
    to.functions[i] = (vyre__function){.name = put_name(&at, made->name),
                                       .result = made->result,
                                       .result_count = made->result_count,
                                       .parameter_count = made->parameter_count,
                                       .locals = locals + from->first_local,
                                       .local_count = from->local_count,
                                       .body = from->body};
    memcpy(to.functions[i].results, made->results, sizeof made->results);
  }
  for (size_t i = 0; i < s->table_count; i++) {
    to.tables[i].name = put_name(&at, s->tables[i]->name);
  }
}

/* Copies the clauses of a queue kernel. Function indices become those of the
 * program. */
static bool copy_queue(const canonicalizer *s, const vyre__kernel *kernel,
                       vyre_arena *arena, vyre_program *program,
                       vyre__queue_field **fields) {
  *fields = NULL;
  if (!kernel->queue) return true;
  const vyre__queue_clauses *from = kernel->queue;
  vyre__queue_clauses *queue =
      vyre_arena_alloc(arena, sizeof *queue, _Alignof(vyre__queue_clauses));
  *fields = copy_array(arena, from->fields, from->field_count, sizeof **fields,
                       _Alignof(vyre__queue_field));
  if (!queue || !*fields) return false;
  *queue = *from;
  queue->fields = *fields;
  if (from->by) queue->by = s->m->functions[from->by].program_index;
  if (from->pull) queue->pull = s->m->functions[from->pull].program_index;
  program->queue = queue;
  program->item_type = from->fields[0].type;
  return true;
}

/* Replaces the tables of hidden buffers by copies, so that an inlined program
 * does not need the one it was made from. */
static bool copy_hidden_tables(vyre_arena *arena, uint32_t count,
                               vyre__hidden *hidden) {
  for (uint32_t i = 0; i < count; i++) {
    const vyre__table *from = hidden[i].table;
    if (!from) continue;
    vyre__table *to = vyre_arena_alloc(arena, sizeof *to, 0);
    uint64_t *values = copy_array(arena, from->values, from->length,
                                  sizeof *values, _Alignof(uint64_t));
    if (!to || !values) return false;
    *to = *from;
    to->name = "";
    to->values = values;
    hidden[i].table = to;
  }
  return true;
}

/* Copies the structs if one is used. */
static bool copy_structs(const canonicalizer *s, vyre_arena *arena,
                         vyre_program *program, vyre_buffer_decl *buffers) {
  if (!s->has_structs) return true;
  program->structs = vyre__structs_copy(s->m, arena);
  program->struct_count = (uint32_t)s->m->struct_count;
  if (!program->structs) return false;
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre__struct *own = vyre__program_struct(program, buffers[i].type);
    if (own) buffers[i].structure = &own->self;
  }
  return true;
}

/* Copies the tables with their values, and what a kernel says about its hidden
 * buffers. */
static bool copy_tables(const canonicalizer *s, const vyre__kernel *kernel,
                        vyre_arena *arena, vyre_program *program,
                        vyre__table **tables) {
  *tables = NULL;
  program->table_count = (uint32_t)s->table_count;
  program->hidden_count = kernel->hidden_count;
  if (kernel->hidden_count > 0) {
    program->hidden =
        copy_array(arena, kernel->hidden, kernel->hidden_count,
                   sizeof *kernel->hidden, _Alignof(vyre__hidden));
    if (!program->hidden ||
        !copy_hidden_tables(arena, program->hidden_count,
                            (vyre__hidden *)program->hidden)) {
      return false;
    }
  }
  if (s->table_count == 0) return true;
  *tables = vyre__arena_array(arena, s->table_count, sizeof **tables);
  program->tables = *tables;
  for (size_t i = 0; *tables && i < s->table_count; i++) {
    const vyre__ir_table *from = s->tables[i];
    uint64_t *values =
        copy_array(arena, s->m->table_values + from->first, from->length,
                   sizeof *values, _Alignof(uint64_t));
    if (!values) return false;
    (*tables)[i] = (vyre__table){.type = from->type,
                                 .length = from->length,
                                 .shape = from->shape,
                                 .values = values};
  }
  return *tables != NULL;
}

static vyre_program *copy_program(canonicalizer *s, const vyre__kernel *kernel,
                                  vyre_arena *arena) {
  const bool small = places_are_small(s);
  const size_t names_size = name_bytes(s, kernel);
  if (!vyre__arena_reserve(arena,
                           program_bytes(s, kernel, small) + names_size)) {
    return NULL;
  }
  vyre_program_desc desc = head_desc(kernel);
  vyre_buffer_decl *buffers;
  vyre_program *program = vyre__program_new(arena, &desc, &buffers);
  if (!program) return NULL;
  vyre__queue_field *fields;
  if (!copy_queue(s, kernel, arena, program, &fields)) return NULL;
  vyre__local *locals = copy_array(arena, s->locals, s->local_count,
                                   sizeof *locals, _Alignof(vyre__local));
  vyre__function *functions = vyre_arena_alloc(
      arena, s->function_count * sizeof *functions, _Alignof(vyre__function));
  vyre__table *tables;
  if (!copy_tables(s, kernel, arena, program, &tables)) return NULL;
  program->over = kernel->over;
  if (kernel->files) {
    program->files = vyre__source_files_copy(kernel->files, arena);
    if (!program->files) return NULL;
  }
  program->is_rich = s->is_rich;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    program->is_rich |= vyre__is_sum(kernel->buffers[i].element);
    if (kernel->buffers[i].dimension_count) program->is_rich = true;
    if (vyre__is_struct(kernel->buffers[i].type)) {
      program->is_rich = s->has_structs = true;
    }
  }
  if (!copy_structs(s, arena, program, buffers)) return NULL;
  program->functions = functions;
  program->function_count = (uint32_t)s->function_count;
  program->nodes = COPY(arena, s->nodes, s->node_count);
  program->node_count = (uint32_t)s->node_count;
  program->lists = COPY(arena, s->lists, s->list_count);
  program->list_count = (uint32_t)s->list_count;
  if (!copy_places(s, kernel, small, arena, program)) return NULL;
  program->texts = copy_array(arena, s->texts, s->text_count, 1, 1);
  program->text_count = (uint32_t)s->text_count;
  char *names = vyre_arena_alloc(arena, names_size, 1);
  if (!locals || !functions || !program->nodes || !program->lists ||
      !program->texts || !names) {
    return NULL;
  }
  put_names(s, kernel, names, program,
            (named_arrays){buffers, fields, locals, functions, tables});
  return program;
}

static vyre_code write_nodes(canonicalizer *s, uint32_t function,
                             const vyre__queue_clauses *queue,
                             vyre_status *st) {
  (void)put_node(s, (vyre__node){0}, (vyre__source_loc){0});
  s->writing = 0;
  (void)use_function(s, function);
  if (queue && queue->by) (void)use_function(s, queue->by);
  if (queue && queue->pull) (void)use_function(s, queue->pull);
  for (uint32_t i = 0; i < s->function_count && !s->out_of_memory; i++) {
    emit_function(s, i);
    if (s->functions[i].body == 0 && !s->out_of_memory) {
      return REFUSE(st, "correct the errors that were reported",
                    "function '%.100s' has no valid body",
                    s->m->functions[s->functions[i].made].name);
    }
  }
  if (s->out_of_memory) {
    return vyre__no_memory(st, "vyre__canonicalize", "nodes", s->node_count);
  }
  if (s->lost_local) {
    return REFUSE(st, "put every declaration into a block",
                  "a local is used, but its declaration is not in the kernel");
  }
  return check_calls(s, st);
}

static vyre_code check_made(const vyre__ir_builder *m, uint32_t function,
                            const vyre__kernel *kernel, vyre_status *st) {
  if (m->out_of_memory) {
    return vyre__no_memory(st, "vyre__canonicalize", "nodes", m->node_count);
  }
  if (function >= m->function_count || !m->functions[function].is_kernel ||
      m->functions[function].body == 0) {
    return REFUSE(st, "correct the errors that were reported",
                  "kernel '%.100s' has no valid body", kernel->name);
  }
  VYRE_TRY(vyre__kernel_check(kernel, st));
  return vyre__dimension_uniforms_check(kernel->buffers, kernel->buffer_count,
                                        st);
}

vyre_code vyre__canonicalize(vyre__ir_builder *m, uint32_t function,
                             const vyre__kernel *kernel,
                             vyre_allocator allocator, vyre_program **out,
                             vyre_status *st) {
  *out = NULL;
  VYRE_TRY(check_made(m, function, kernel, st));
  canonicalizer *s = canonicalizer_of(m);
  if (!s) return vyre__no_memory(st, __func__, "nodes", m->node_count);
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  vyre_code code = write_nodes(s, function, kernel->queue, st);
  if (code == VYRE_OK) {
    *out = copy_program(s, kernel, &arena);
    if (!*out) {
      code = vyre__no_memory(st, __func__, "program", s->node_count);
    }
  }
  if (!*out) {
    vyre_arena_deinit(&arena);
    return code;
  }
  (*out)->arena = arena;
  vyre__program_hash(*out, &(*out)->fingerprint);
  return VYRE_OK;
}
