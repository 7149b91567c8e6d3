/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/share_subgroups.h"

#include <stdio.h>
#include <string.h>

#include "analyze/share_subgroups_internal.h"
#include "analyze/walk.h"
#include "base/memory.h"
#include "base/status.h"

/* --- building --------------------------------------------------------------*/

vyre__id share_literal(sharer *s, vyre_type type, uint64_t bits) {
  return vyre__ir_build_literal(&s->builder, type, bits);
}

static vyre__id u32(sharer *s, uint32_t value) {
  return share_literal(s, VYRE_TYPE_U32, value);
}

static vyre__id binary(sharer *s, vyre__op op, vyre__id a, vyre__id b) {
  return vyre__ir_build_binary(&s->builder, op, a, b);
}

uint32_t share_local(sharer *s, const char *name, bool is_mutable,
                     vyre__id value) {
  char text[80];
  uint32_t local = 0;
  const int length = snprintf(text, sizeof text, "%.60s_%u", *name ? name : "t",
                              (unsigned)++s->unique);
  vyre__statement(&s->builder, vyre__ir_build_let(
                                   &s->builder, text, (size_t)length,
                                   VYRE_TYPE_VOID, is_mutable, value, &local));
  return local;
}

vyre__id share_get(sharer *s, uint32_t local) {
  return vyre__ir_build_local(&s->builder, local);
}

void share_set(sharer *s, uint32_t local, vyre__id value) {
  vyre__statement(&s->builder,
                  vyre__ir_build_assign(&s->builder, local, value));
}

void share_barrier(sharer *s) {
  memset(s->is_clean, true, sizeof s->is_clean);
  vyre__statement(&s->builder,
                  vyre__ir_build_simple(&s->builder, VYRE__OP_BARRIER));
}

void share_if(sharer *s, vyre__id condition, vyre__mark mark) {
  vyre__id then = vyre__block_end(&s->builder, mark);
  vyre__statement(&s->builder,
                  vyre__ir_build_if(&s->builder, condition, then, 0));
}

static void store(sharer *s, uint32_t buffer, vyre__id index, vyre__id value) {
  vyre__statement(&s->builder,
                  vyre__ir_build_store(&s->builder, buffer, index, value));
}

static vyre__id lane(sharer *s) {
  return binary(s, VYRE__OP_AND, share_get(s, s->number),
                u32(s, VYRE__SUBGROUP - 1));
}

/* Returns the number of lane 0 of the subgroup. */
static vyre__id first_lane(sharer *s) {
  return binary(s, VYRE__OP_AND, share_get(s, s->number),
                u32(s, ~(uint32_t)(VYRE__SUBGROUP - 1)));
}

/* --- operations of subgroups -----------------------------------------------*/

/* Returns a value as u32 or u64. */
static vyre__id to_bits(sharer *s, vyre__id value) {
  vyre__ir_builder *m = &s->builder;
  const unsigned type = vyre__type_of(m, value);
  const vyre_type bits = vyre__is_wide(type) ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  if (type == (unsigned)bits) return value;
  return vyre__is_float(type) ? vyre__ir_build_bitcast(m, bits, value)
                              : vyre__ir_build_cast(m, bits, value);
}

static vyre__id from_bits(sharer *s, vyre_type type, vyre__id bits) {
  vyre__ir_builder *m = &s->builder;
  if (vyre__type_of(m, bits) == (unsigned)type) return bits;
  return vyre__is_float(type) ? vyre__ir_build_bitcast(m, type, bits)
                              : vyre__ir_build_cast(m, type, bits);
}

/* Returns the number of the invocation whose value is read. That of
 * shuffle_up and shuffle_down may be outside the subgroup. */
static vyre__id source(sharer *s, vyre__op op, uint32_t by) {
  if (op == VYRE__OP_SHUFFLE_UP || op == VYRE__OP_SHUFFLE_DOWN) {
    return binary(s, op == VYRE__OP_SHUFFLE_UP ? VYRE__OP_SUB : VYRE__OP_ADD,
                  share_get(s, s->number), share_get(s, by));
  }
  vyre__id lanes =
      binary(s, VYRE__OP_AND, share_get(s, by), u32(s, VYRE__SUBGROUP - 1));
  return op == VYRE__OP_SHUFFLE
             ? binary(s, VYRE__OP_OR, first_lane(s), lanes)
             : binary(s, VYRE__OP_XOR, share_get(s, s->number), lanes);
}

/* Returns @p other, or a lane's own value if shuffle_up or shuffle_down reads
 * outside the subgroup. */
static vyre__id inside(sharer *s, vyre__op op, uint32_t by, uint32_t own,
                       vyre__id other) {
  if (op == VYRE__OP_SHUFFLE || op == VYRE__OP_SHUFFLE_XOR) return other;
  vyre__id room =
      op == VYRE__OP_SHUFFLE_UP
          ? lane(s)
          : binary(s, VYRE__OP_SUB, u32(s, VYRE__SUBGROUP - 1), lane(s));
  vyre__id is_outside = binary(s, VYRE__OP_GT, share_get(s, by), room);
  return vyre__ir_build_ternary(&s->builder, VYRE__OP_SELECT, is_outside,
                                share_get(s, own), other);
}

/* Returns a copy of the shared memory that no invocation reads any more. Emits a
 * barrier first if every copy may still be read. */
static uint32_t clean_copy(sharer *s, bool is_wide) {
  for (uint32_t i = 0; i < SHARE_COPIES; i++) {
    if (s->is_clean[is_wide][i]) return i;
  }
  share_barrier(s);
  return 0;
}

void share_forget(sharer *s) {
  memset(s->is_clean, false, sizeof s->is_clean);
}

static vyre__id shuffle(sharer *s, const vyre__node *node,
                        const vyre__id operands[2]) {
  const bool is_wide = vyre__is_wide(node->type);
  const vyre__op op = (vyre__op)node->op;
  const uint32_t own = share_local(s, "own", false, operands[0]);
  const uint32_t by = share_local(s, "by", false, operands[1]);
  const uint32_t copy = clean_copy(s, is_wide);
  const uint32_t buffer = s->words[is_wide][copy];
  store(s, buffer, share_get(s, s->number), to_bits(s, share_get(s, own)));
  share_barrier(s);
  vyre__id bits = vyre__ir_build_load(&s->builder, buffer, source(s, op, by));
  vyre__id other = from_bits(s, (vyre_type)node->type, bits);
  const uint32_t result =
      share_local(s, "other", false, inside(s, op, by, own, other));
  s->is_clean[is_wide][copy] = false;
  return share_get(s, result);
}

/* Lane 0 sets an element to 0, and each lane adds its bit. */
static vyre__id ballot(sharer *s, vyre__id value) {
  vyre__ir_builder *m = &s->builder;
  const uint32_t copy = clean_copy(s, false);
  const uint32_t buffer = s->words[0][copy];
  vyre__id bit = binary(s, VYRE__OP_SHL,
                        vyre__ir_build_cast(m, VYRE_TYPE_U32, value), lane(s));
  const uint32_t own = share_local(s, "bit", false, bit);
  vyre__id is_first = binary(s, VYRE__OP_EQ, lane(s), u32(s, 0));
  vyre__mark mark = vyre__block_begin(m);
  store(s, buffer, share_get(s, s->number), u32(s, 0));
  share_if(s, is_first, mark);
  share_barrier(s);
  vyre__id add = vyre__ir_build_atomic(m, VYRE__OP_ATOMIC_OR, buffer,
                                       first_lane(s), share_get(s, own));
  vyre__statement(m, vyre__ir_build_eval(m, add));
  share_barrier(s);
  const uint32_t result = share_local(
      s, "ballot", false, vyre__ir_build_load(m, buffer, first_lane(s)));
  s->is_clean[0][copy] = false;
  return share_get(s, result);
}

vyre__id share_exchange(sharer *s, const vyre__node *node,
                        const vyre__id operands[2]) {
  if (node->op == VYRE__OP_BALLOT) return ballot(s, operands[0]);
  if (node->op != VYRE__OP_UNIFORM) return shuffle(s, node, operands);
  return vyre__ir_build_unary(&s->builder, VYRE__OP_UNIFORM, operands[0]);
}

vyre__id share_any(sharer *s, uint32_t local) {
  vyre__ir_builder *m = &s->builder;
  vyre__id is_first =
      binary(s, VYRE__OP_EQ, share_get(s, s->number), u32(s, 0));
  vyre__mark mark = vyre__block_begin(m);
  store(s, s->flag, u32(s, 0), u32(s, 0));
  share_if(s, is_first, mark);
  share_barrier(s);
  mark = vyre__block_begin(m);
  vyre__id set = vyre__ir_build_atomic(m, VYRE__OP_ATOMIC_OR, s->flag,
                                       u32(s, 0), u32(s, 1));
  vyre__statement(m, vyre__ir_build_eval(m, set));
  share_if(s, share_get(s, local), mark);
  share_barrier(s);
  vyre__id all = vyre__ir_build_unary(
      m, VYRE__OP_UNIFORM, vyre__ir_build_load(m, s->flag, u32(s, 0)));
  return binary(s, VYRE__OP_NE, all, u32(s, 0));
}

/* --- copying ---------------------------------------------------------------*/

static uint32_t buffer_of(const sharer *s, uint32_t buffer) {
  return buffer < s->first_hidden ? buffer : buffer + s->shift;
}

static void push_list(sharer *s, uint32_t list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    vyre__push(&s->builder, share_value(s, s->program->lists[list + i]));
  }
}

static void at(sharer *s, vyre__id id) {
  s->builder.place = vyre__source_loc_of(s->program, id);
  s->builder.length = 1;
}

/* Copies a node with new children. */
static vyre__id copy_node(sharer *s, vyre__id id) {
  vyre__node node = *share_node(s, id);
  vyre__ir_builder *m = &s->builder;
  const uint32_t mark = vyre__stack_mark(m);
  switch ((vyre__form)vyre__ops[node.op].form) {
    case VYRE__FORM_BUFFER:
      node.a = buffer_of(s, node.a);
      break;
    case VYRE__FORM_MAKE:
      push_list(s, node.a, node.b);
      break;
    case VYRE__FORM_ATOMIC2:
      node.a = buffer_of(s, node.a);
      node.b = share_value(s, node.b);
      push_list(s, node.c, 2);
      break;
    case VYRE__FORM_LOAD:
    case VYRE__FORM_STORE:
    case VYRE__FORM_ATOMIC:
      node.a = buffer_of(s, node.a);
      node.b = share_value(s, node.b);
      if (node.c) node.c = share_value(s, node.c);
      break;
    default:
      if (node.a) node.a = share_value(s, node.a);
      if (node.b) node.b = share_value(s, node.b);
      if (node.c) node.c = share_value(s, node.c);
  }
  at(s, id);
  return vyre__ir_copy_node(m, node, mark);
}

vyre__id share_value(sharer *s, vyre__id id) {
  vyre__ir_builder *m = &s->builder;
  const vyre__node *node = share_node(s, id);
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
      return share_literal(s, (vyre_type)node->type, vyre__literal(node));
    case VYRE__FORM_LOCAL:
      return share_get(s, s->locals[node->a]);
    case VYRE__FORM_AXIS:
      return vyre__ir_build_axis(m, (vyre__op)node->op, node->aux);
    case VYRE__FORM_TEXT:
      return vyre__ir_build_text(m, s->program->texts + node->a, node->b);
    case VYRE__FORM_NULLARY:
      return vyre__ir_build_position(m, (vyre__op)node->op);
    default:
      return copy_node(s, id);
  }
}

/* Returns true for the value of a `let` that waits for other invocations. */
static bool is_exchange(const vyre__node *node) {
  return vyre__op_is_exchange(node->op);
}

static void copy_let(sharer *s, const vyre__node *node) {
  const vyre__local *local = &s->program->functions[0].locals[node->a];
  const vyre__node *value = share_node(s, node->b);
  vyre__id made = 0;
  if (is_exchange(value)) {
    const vyre__id operands[2] = {share_value(s, value->a),
                                  value->b ? share_value(s, value->b) : 0};
    made = share_exchange(s, value, operands);
  } else {
    made = share_value(s, node->b);
  }
  s->locals[node->a] = share_local(s, local->name, local->is_mutable, made);
}

/* Copies a block, which may run several times, or not at all. */
static vyre__id copy_block(sharer *s, vyre__id id) {
  if (s->has[id] & SHARE_EXCHANGE) share_forget(s);
  vyre__mark mark = vyre__block_begin(&s->builder);
  const uint32_t count = vyre__child_count(s->program, id);
  for (uint32_t i = 0; i < count; i++) {
    share_statement(s, vyre__child(s->program, id, i));
  }
  if (s->has[id] & SHARE_EXCHANGE) share_forget(s);
  return vyre__block_end(&s->builder, mark);
}

/* Emits, after a loop that contains a return, a break out of the loop around it
 * for the invocations that returned. */
static void leave_again(sharer *s, vyre__id loop) {
  if (!s->scope || s->whole_loops == 0 || !(s->has[loop] & SHARE_RETURN))
    return;
  const share_scope *kernel = s->scope;
  while (kernel->outer) kernel = kernel->outer;
  vyre__mark mark = vyre__block_begin(&s->builder);
  vyre__statement(&s->builder,
                  vyre__ir_build_simple(&s->builder, VYRE__OP_BREAK));
  share_if(s,
           vyre__ir_build_unary(&s->builder, VYRE__OP_NOT,
                                share_get(s, kernel->guard)),
           mark);
}

static void copy_for(sharer *s, vyre__id id) {
  vyre__ir_builder *m = &s->builder;
  const vyre__node *node = share_node(s, id);
  const vyre__for_parts parts = vyre__for_of(s->program, id);
  const vyre__local *local = &s->program->functions[0].locals[node->a];
  char name[80];
  const int length = snprintf(name, sizeof name, "%.60s_%u", local->name,
                              (unsigned)++s->unique);
  vyre__for loop;
  vyre__for_begin(m, &loop, name, (size_t)length, (vyre_type)local->type,
                  (vyre__loop)node->aux, share_value(s, parts.first),
                  share_value(s, parts.bound), share_value(s, parts.step));
  s->locals[node->a] = loop.local;
  s->whole_loops++;
  vyre__id body = copy_block(s, parts.body);
  s->whole_loops--;
  vyre__id made = vyre__for_end(m, &loop, body);
  if (made) m->nodes[made].c = node->c;
  vyre__statement(m, made);
  leave_again(s, id);
}

static void copy_while(sharer *s, vyre__id id) {
  vyre__ir_builder *m = &s->builder;
  const vyre__node *node = share_node(s, id);
  vyre__id condition = share_value(s, node->a);
  vyre__while_begin(m);
  s->whole_loops++;
  vyre__id body = copy_block(s, node->b);
  s->whole_loops--;
  vyre__id made = vyre__while_end(m, condition, body);
  if (made) m->nodes[made].aux = node->aux;
  vyre__statement(m, made);
  leave_again(s, id);
}

static void copy_print(sharer *s, const vyre__node *node) {
  vyre__ir_builder *m = &s->builder;
  const uint32_t mark = vyre__stack_mark(m);
  for (uint32_t i = 0; i < node->b; i++) {
    vyre__push(m, share_value(s, s->program->lists[node->a + i]));
  }
  vyre__statement(m, vyre__ir_build_print(m, mark));
}

static void copy_if(sharer *s, const vyre__node *node) {
  vyre__id condition = share_value(s, node->a);
  vyre__id then = copy_block(s, node->b);
  vyre__id otherwise = node->c ? copy_block(s, node->c) : 0;
  vyre__statement(&s->builder,
                  vyre__ir_build_if(&s->builder, condition, then, otherwise));
}

void share_statement(sharer *s, vyre__id id) {
  vyre__ir_builder *m = &s->builder;
  const vyre__node *node = share_node(s, id);
  at(s, id);
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      vyre__statement(m, copy_block(s, id));
      break;
    case VYRE__OP_LET:
      copy_let(s, node);
      break;
    case VYRE__OP_ASSIGN:
      share_set(s, s->locals[node->a], share_value(s, node->b));
      break;
    case VYRE__OP_IF:
      copy_if(s, node);
      break;
    case VYRE__OP_FOR:
      copy_for(s, id);
      break;
    case VYRE__OP_WHILE:
      copy_while(s, id);
      break;
    case VYRE__OP_PRINT:
      copy_print(s, node);
      break;
    case VYRE__OP_RETURN:
      if (s->scope) {
        share_jump(s, VYRE__OP_RETURN);
      } else {
        vyre__statement(m, vyre__ir_build_return(m, false, 0));
      }
      break;
    case VYRE__OP_BARRIER:
      share_barrier(s);
      break;
    case VYRE__OP_BREAK:
    case VYRE__OP_CONTINUE:
    case VYRE__OP_GRID_BARRIER:
      vyre__statement(m, vyre__ir_build_simple(m, (vyre__op)node->op));
      break;
    default: /* STORE, EVAL */
      vyre__statement(m, copy_node(s, id));
  }
}

/* --- the program -----------------------------------------------------------*/

bool vyre__has_exchange(const vyre_program *program) {
  if (!program->is_rich) return false;
  for (vyre__id id = 1; id < program->node_count; id++) {
    if (vyre__op_is_exchange(program->nodes[id].op)) return true;
  }
  return false;
}

/* Returns true if an operation of a subgroup is not reached by the whole
 * workgroup. */
static bool needs_guards(const sharer *s) {
  for (vyre__id id = 1; id < s->program->node_count; id++) {
    if (vyre__op_is_exchange(s->program->nodes[id].op) &&
        s->facts.control[id] > VYRE__LEVEL_GROUP) {
      return true;
    }
  }
  return false;
}

static bool is_name(const sharer *s, const char *name) {
  for (uint32_t i = 0; i < s->kernel.buffer_count; i++) {
    if (strcmp(s->kernel.buffers[i].name, name) == 0) return true;
  }
  return false;
}

/* Adds shared memory at @p at. */
static uint32_t add_shared(sharer *s, vyre_buffer_decl *buffers, uint32_t at,
                           vyre_element element, uint32_t count) {
  enum { LENGTH = 24 };
  char *name = vyre_arena_alloc(&s->scratch, LENGTH, 1);
  if (!name) {
    s->no_memory = true;
    return 0;
  }
  do {
    snprintf(name, LENGTH, "subgroup_%u", (unsigned)++s->unique);
  } while (is_name(s, name));
  buffers[at] = (vyre_buffer_decl){.name = name,
                                   .kind = VYRE_MEMORY_SHARED,
                                   .access = VYRE_ACCESS_WORKGROUP,
                                   .element = element,
                                   .count = count,
                                   .reserved = {1}};
  return at;
}

/* Sets the header of the result, with its shared memory before the hidden
 * buffers. */
static void make_header(sharer *s) {
  enum { MORE = 2 * SHARE_COPIES + 1 };
  const vyre_program *p = s->program;
  const uint32_t count = (uint32_t)p->buffer_count;
  const uint32_t *size = p->workgroup;
  const uint32_t all = size[0] * size[1] * size[2];
  vyre_buffer_decl *buffers =
      vyre__arena_array(&s->scratch, (size_t)count + MORE, sizeof *buffers);
  s->first_hidden = count - p->hidden_count;
  s->shift = MORE;
  s->kernel = (vyre__kernel){.name = p->name,
                             .file = p->file,
                             .hidden = p->hidden,
                             .hidden_count = p->hidden_count,
                             .buffers = p->buffers,
                             .buffer_count = count,
                             .workgroup = {size[0], size[1], size[2]},
                             .over = p->over};
  if (!buffers) {
    s->no_memory = true;
    return;
  }
  memcpy(buffers, p->buffers, s->first_hidden * sizeof *buffers);
  memcpy(buffers + s->first_hidden + MORE, p->buffers + s->first_hidden,
         p->hidden_count * sizeof *buffers);
  bool is_wide = false;
  for (vyre__id id = 1; id < p->node_count; id++) {
    is_wide |= vyre__op_is_exchange(p->nodes[id].op) &&
               vyre__is_wide(p->nodes[id].type);
  }
  uint32_t at = s->first_hidden;
  for (uint32_t i = 0; i < SHARE_COPIES; i++) {
    s->words[0][i] = add_shared(s, buffers, at++, VYRE_ELEMENT_U32, all);
    s->words[1][i] =
        add_shared(s, buffers, at++, VYRE_ELEMENT_U64, is_wide ? all : 1);
  }
  s->flag = add_shared(s, buffers, at, VYRE_ELEMENT_U32, 1);
  s->kernel.buffers = buffers;
  s->kernel.buffer_count = count + MORE;
}

/* Fills s->has. Children come before their parents. */
static void mark_nodes(sharer *s) {
  const vyre_program *p = s->program;
  for (vyre__id id = 1; id < p->node_count; id++) {
    const vyre__node *node = &p->nodes[id];
    const uint8_t flags = vyre__ops[node->op].flags;
    uint8_t has = 0;
    const uint32_t count = vyre__child_count(p, id);
    for (uint32_t i = 0; i < count; i++) has |= s->has[vyre__child(p, id, i)];
    if (flags & (VYRE__OPF_BARRIER | VYRE__OPF_GRID_BARRIER)) {
      has |= SHARE_EXCHANGE;
    }
    if (flags & VYRE__OPF_ATOMICS) has |= SHARE_EFFECT;
    if (flags & VYRE__OPF_JUMPS) has |= SHARE_JUMP;
    if (node->op == VYRE__OP_RETURN) has |= SHARE_RETURN;
    const bool is_loop = node->op == VYRE__OP_FOR || node->op == VYRE__OP_WHILE;
    if (is_loop && !(has & SHARE_RETURN)) has &= (uint8_t)~SHARE_JUMP;
    s->has[id] = has;
  }
}

/* Adds the number of the invocation, x fastest. */
static void add_number(sharer *s) {
  vyre__ir_builder *m = &s->builder;
  vyre__id number = vyre__ir_build_axis(m, VYRE__OP_LOCAL_ID, 2);
  for (unsigned axis = 2; axis-- > 0;) {
    number =
        binary(s, VYRE__OP_MUL, number, u32(s, s->program->workgroup[axis]));
    number = binary(s, VYRE__OP_ADD, number,
                    vyre__ir_build_axis(m, VYRE__OP_LOCAL_ID, axis));
  }
  s->number = share_local(s, "number", false, number);
}

static void note_complaint(void *self, const char *rule, vyre__source_loc place,
                           uint32_t length, const char *message,
                           const char *fix, vyre__source_loc other,
                           const char *other_text) {
  sharer *s = self;
  (void)rule, (void)length, (void)fix, (void)other, (void)other_text;
  if (s->message[0]) return;
  snprintf(s->message, sizeof s->message, "line %u: %.160s",
           (unsigned)place.line, message);
}

static vyre_code seal(sharer *s, uint32_t function, vyre_allocator allocator,
                      vyre_program **out, vyre_status *st) {
  if (s->no_memory || s->builder.out_of_memory) {
    return vyre__no_memory(st, "vyre__share_subgroups", "program",
                           s->builder.node_count);
  }
  if (s->builder.error_count > 0) {
    return VYRE_FAIL(
        st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
        "nest fewer statements around operations of subgroups",
        "cannot compile the subgroup operations of '%.60s': %.200s",
        s->program->name, s->message);
  }
  return vyre__canonicalize(&s->builder, function, &s->kernel, allocator, out,
                            st);
}

static vyre_code share(sharer *s, vyre_allocator allocator, vyre_program **out,
                       vyre_status *st) {
  const vyre_program *p = s->program;
  vyre__effects effects;
  VYRE_TRY(vyre__effects_build(p, &s->scratch, &effects, st));
  VYRE_TRY(vyre__uniformity_build(p, &effects, &s->scratch, &s->facts, st));
  s->locals = vyre__arena_filled(&s->scratch, p->functions[0].local_count,
                                 sizeof *s->locals, 0);
  s->has = vyre__arena_filled(&s->scratch, p->node_count, 1, 0);
  s->no_memory = !s->locals || !s->has ||
                 !vyre__structs_adopt(&s->builder, p->structs, p->struct_count);
  if (!s->no_memory) make_header(s);
  uint32_t function = 0;
  if (!s->no_memory) {
    mark_nodes(s);
    memset(s->is_clean, true, sizeof s->is_clean); /* nothing was read yet */
    function = vyre__kernel_begin(&s->builder, &s->kernel);
    vyre__mark mark = vyre__block_begin(&s->builder);
    at(s, p->functions[0].body);
    add_number(s);
    if (needs_guards(s)) {
      share_masked(s);
    } else {
      vyre__statement(&s->builder, copy_block(s, p->functions[0].body));
    }
    vyre__function_end(&s->builder, vyre__block_end(&s->builder, mark));
  }
  return seal(s, function, allocator, out, st);
}

vyre_code vyre__share_subgroups(const vyre_program *program,
                                vyre_allocator allocator, vyre_program **out,
                                vyre_status *st) {
  if (!vyre__has_exchange(program)) {
    *out = vyre_program_retain((vyre_program *)program);
    return VYRE_OK;
  }
  sharer s = {.program = program};
  *out = NULL;
  vyre_arena_init(&s.scratch, allocator);
  vyre__ir_builder_init(&s.builder, allocator,
                        (vyre__reporter){note_complaint, &s});
  vyre_code code = share(&s, allocator, out, st);
  vyre__ir_builder_build(&s.builder);
  vyre_arena_deinit(&s.scratch);
  return code;
}
