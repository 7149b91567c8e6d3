/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Public program builder: creation and release, scopes, statements. */
#include "vyre/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "ir/builder/builder_internal.h"

void vyre__builder_fail(vyre_builder *b, const char *fix, const char *format,
                        ...) {
  char message[256];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  vyre__fail(&b->failure,
             &(vyre__failure){.code = VYRE_INVALID_PROGRAM,
                              .kind = VYRE_KIND_INVALID_PROGRAM,
                              .fix = fix,
                              .file = __FILE__,
                              .line = __LINE__},
             "kernel '%.50s': %s", b->kernel.name, message);
}

/* Keeps the first error of the IR builder. */
static void record_report(void *self, const char *rule, vyre__source_loc place,
                          uint32_t length, const char *message, const char *fix,
                          vyre__source_loc other, const char *other_text) {
  (void)place;
  (void)length;
  (void)other;
  (void)other_text;
  if (rule[0]) {
    vyre__builder_fail(self, fix, "%.240s (%s)", message, rule);
  } else {
    vyre__builder_fail(self, fix, "%s", message);
  }
}

/* --- creation and release --------------------------------------------------*/

/* Returns a number that marks the handles of one builder, so that another
 * builder can reject them. */
static uint32_t next_number(void) {
  static atomic_uint last;
  uint32_t number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed);
  return number + 1 ? number + 1 : 1;
}

vyre_code vyre_builder_create(const char *name, vyre_allocator allocator,
                              vyre_builder **out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, name);
  vyre_builder *b = vyre__resize(allocator, NULL, 0, sizeof *b);
  if (!b) return vyre__no_memory(st, __func__, "builder", 1);
  *b = (vyre_builder){.allocator = allocator,
                      .number = next_number(),
                      .function = VYRE_NO_INDEX,
                      .kernel = {.name = "",
                                 .file = "",
                                 .workgroup = {1, 1, 1},
                                 .over = VYRE_NO_INDEX}};
  vyre__ir_builder_init(&b->ir, allocator, (vyre__reporter){record_report, b});
  b->kernel.name = vyre__arena_text(&b->ir.names, name);
  if (!b->kernel.name || b->ir.out_of_memory) {
    vyre_builder_release(b);
    return vyre__no_memory(st, __func__, "name", strlen(name) + 1);
  }
  *out = b;
  return VYRE_OK;
}

void vyre_builder_release(vyre_builder *b) {
  if (!b) return;
  vyre__reserve_free(b->allocator, &b->buffers, &b->buffer_capacity,
                     sizeof *b->buffers);
  vyre__reserve_free(b->allocator, &b->scopes, &b->scope_capacity,
                     sizeof *b->scopes);
  vyre__reserve_free(b->allocator, &b->used, &b->used_capacity,
                     sizeof *b->used);
  vyre__ir_builder_build(&b->ir);
  vyre__resize(b->allocator, b, sizeof *b, 0);
}

const vyre_status *vyre_builder_status(const vyre_builder *b) {
  static const vyre_status fine;
  return b ? &b->failure : &fine;
}

/* --- kernel and buffers ----------------------------------------------------*/

static bool is_usable(const vyre_builder *b) {
  return b && !b->finished && b->failure.code == VYRE_OK &&
         !b->ir.out_of_memory;
}

void vyre_builder_workgroup(vyre_builder *b, uint32_t x, uint32_t y,
                            uint32_t z) {
  if (!is_usable(b)) return;
  b->kernel.workgroup[0] = x;
  b->kernel.workgroup[1] = y;
  b->kernel.workgroup[2] = z;
}

void vyre_builder_over(vyre_builder *b, vyre_build_buffer_ref buffer) {
  if (is_usable(b)) b->kernel.over = vyre__builder_buffer(b, buffer);
}

void vyre_builder_queue(vyre_builder *b, vyre_type item) {
  if (!is_usable(b)) return;
  if (item <= VYRE_TYPE_VOID || item >= VYRE_TYPE_COUNT) {
    vyre__builder_fail(b, "use a vyre_type of vyre/ops.h",
                       "unknown item type %u", (unsigned)item);
    return;
  }
  const vyre_queue_field field = {.type = item};
  vyre_builder_queue_clauses(
      b, &(vyre_queue_clauses){.fields = &field, .field_count = 1});
}

void vyre_builder_queue_clauses(vyre_builder *b,
                                const vyre_queue_clauses *clauses) {
  if (!is_usable(b)) return;
  if (!clauses || !clauses->fields || clauses->field_count == 0 ||
      clauses->field_count > VYRE__MAX_QUEUE_FIELDS) {
    vyre__builder_fail(b, "pass clauses with 1 to 32 fields",
                       "the clauses are NULL, or have %zu fields",
                       clauses ? clauses->field_count : 0);
    return;
  }
  if ((unsigned)clauses->kind >= VYRE_QUEUE_KIND_COUNT ||
      (unsigned)clauses->key_bound >= VYRE_KEY_BOUND_COUNT) {
    vyre__builder_fail(b, "use the enumerators of vyre/program.h",
                       "unknown queue kind %u or bound %u",
                       (unsigned)clauses->kind, (unsigned)clauses->key_bound);
    return;
  }
  for (size_t i = 0; i < clauses->field_count; i++) {
    const vyre_queue_field *field = &clauses->fields[i];
    const char *name = field->name ? field->name : "";
    b->fields[i] = (vyre__queue_field){vyre__arena_text(&b->ir.names, name),
                                       (uint8_t)field->type};
    if ((unsigned)field->type >= VYRE_TYPE_COUNT) b->fields[i].type = 0;
    if (!b->fields[i].name) {
      b->fields[i].name = "";
      b->ir.out_of_memory = true;
    }
  }
  b->queue =
      (vyre__queue_clauses){.kind = (uint8_t)clauses->kind,
                            .bound_kind = (uint8_t)clauses->key_bound,
                            .bound = clauses->keys,
                            .pushes = clauses->pushes,
                            .field_count = (uint32_t)clauses->field_count,
                            .fields = b->fields};
  b->kernel.queue = &b->queue;
}

vyre_build_buffer_ref vyre_build_declare(vyre_builder *b,
                                         const vyre_buffer_decl *decl) {
  if (!is_usable(b)) return (vyre_build_buffer_ref){0};
  if (!decl || !decl->name) {
    vyre__builder_fail(b, "pass a declaration with a name",
                       "a buffer without a %s", decl ? "name" : "declaration");
    return (vyre_build_buffer_ref){0};
  }
  if (vyre__check_reserved(&b->failure, "vyre_build_declare", decl->reserved,
                           sizeof decl->reserved / sizeof decl->reserved[0]) !=
      VYRE_OK) {
    return (vyre_build_buffer_ref){0};
  }
  uint32_t index = b->kernel.buffer_count;
  const char *name = vyre__arena_text(&b->ir.names, decl->name);
  if (!name || !vyre__reserve(b->allocator, &b->buffers, &b->buffer_capacity,
                              index + (size_t)1, sizeof *b->buffers, false)) {
    b->ir.out_of_memory = true;
    return (vyre_build_buffer_ref){0};
  }
  b->buffers[index] = *decl;
  b->buffers[index].name = name;
  b->kernel.buffers = b->buffers;
  /* Checks the buffer now: values are checked against it from here on. */
  vyre__kernel only = b->kernel;
  only.buffers = &b->buffers[index];
  only.buffer_count = 1;
  only.over = VYRE_NO_INDEX;
  for (int i = 0; i < 3; i++) only.workgroup[i] = 1;
  if (vyre__kernel_check(&only, &b->failure) != VYRE_OK) {
    return (vyre_build_buffer_ref){0};
  }
  b->kernel.buffer_count++;
  return (vyre_build_buffer_ref){index + 1, b->number};
}

vyre_build_buffer_ref vyre_build_buffer(vyre_builder *b, const char *name,
                                        vyre_access access,
                                        vyre_element element, uint32_t count,
                                        uint32_t binding) {
  return vyre_build_declare(b, &(vyre_buffer_decl){.name = name,
                                                   .binding = binding,
                                                   .kind = VYRE_MEMORY_GLOBAL,
                                                   .access = access,
                                                   .element = element,
                                                   .count = count});
}

vyre_build_buffer_ref vyre_build_uniform(vyre_builder *b, const char *name,
                                         vyre_element element, uint32_t count,
                                         uint32_t binding) {
  return vyre_build_declare(b,
                            &(vyre_buffer_decl){.name = name,
                                                .binding = binding,
                                                .kind = VYRE_MEMORY_UNIFORM,
                                                .access = VYRE_ACCESS_UNIFORM,
                                                .element = element,
                                                .count = count});
}

vyre_build_buffer_ref vyre_build_shared(vyre_builder *b, const char *name,
                                        vyre_element element, uint32_t count) {
  return vyre_build_declare(b,
                            &(vyre_buffer_decl){.name = name,
                                                .kind = VYRE_MEMORY_SHARED,
                                                .access = VYRE_ACCESS_WORKGROUP,
                                                .element = element,
                                                .count = count});
}

uint32_t vyre__builder_buffer(vyre_builder *b, vyre_build_buffer_ref buffer) {
  if (buffer.builder == b->number && buffer.id > 0 &&
      buffer.id <= b->kernel.buffer_count) {
    return buffer.id - 1;
  }
  vyre__builder_fail(b, "use a buffer that this builder declared",
                     buffer.id ? "the buffer belongs to another builder"
                               : "the buffer handle is zero");
  return VYRE_NO_INDEX;
}

/* --- scopes ----------------------------------------------------------------*/

enum { MAX_SCOPES = VYRE__MAX_DEPTH };

static vyre__scope *open_scope(vyre_builder *b, vyre__scope_kind kind) {
  if (b->scope_count >= MAX_SCOPES) {
    vyre__builder_fail(b, "move the inner blocks to a function",
                       "blocks are nested more than %d deep", MAX_SCOPES);
    return NULL;
  }
  if (!vyre__reserve(b->allocator, &b->scopes, &b->scope_capacity,
                     b->scope_count + 1, sizeof *b->scopes, false)) {
    b->ir.out_of_memory = true;
    return NULL;
  }
  vyre__scope *scope = &b->scopes[b->scope_count++];
  *scope = (vyre__scope){.kind = kind};
  return scope;
}

bool vyre__builder_ready(vyre_builder *b) {
  if (!is_usable(b)) return false;
  if (b->scope_count > 0) return true;
  vyre__scope *scope = open_scope(b, VYRE__SCOPE_KERNEL);
  if (!scope) return false;
  b->function = vyre__kernel_begin(&b->ir, &b->kernel);
  scope->mark = vyre__block_begin(&b->ir);
  return is_usable(b);
}

static void begin_body(vyre_builder *b, vyre__scope_kind kind,
                       vyre__id condition) {
  vyre__scope *scope = open_scope(b, kind);
  if (!scope) return;
  scope->condition = condition;
  if (kind == VYRE__SCOPE_WHILE) vyre__while_begin(&b->ir);
  scope->mark = vyre__block_begin(&b->ir);
}

vyre_build_function_ref vyre_build_function(vyre_builder *b, const char *name,
                                            vyre_type result,
                                            const vyre_parameter *parameters,
                                            size_t count,
                                            vyre_variable *variables) {
  vyre_build_function_ref none = {0};
  for (size_t i = 0; variables && i < count; i++) {
    variables[i] = (vyre_variable){0};
  }
  if (!is_usable(b)) return none;
  if (b->scope_count > 0) {
    vyre__builder_fail(
        b, "define functions before the first statement of the kernel",
        "a function begins inside another body");
    return none;
  }
  bool good = result > VYRE_TYPE_VOID && result < VYRE_TYPE_COUNT &&
              (count == 0 || (parameters && variables));
  for (size_t i = 0; good && i < count; i++) {
    vyre_type type = parameters[i].type;
    good = type > VYRE_TYPE_VOID && type < VYRE_TYPE_COUNT;
  }
  if (!good) {
    vyre__builder_fail(
        b, "pass types of vyre/ops.h, and an array for the variables",
        "invalid types for function '%.60s'", name ? name : "");
    return none;
  }
  vyre__ir_builder *m = &b->ir;
  uint32_t f = vyre__function_declare(m, name, name ? strlen(name) : 0, result);
  for (size_t i = 0; i < count; i++) {
    const char *own = parameters[i].name ? parameters[i].name : "";
    vyre__function_parameter(m, f, own, strlen(own), parameters[i].type);
  }
  begin_body(b, VYRE__SCOPE_FUNCTION, 0);
  vyre__function_begin(m, f);
  if (!is_usable(b)) return none;
  b->scopes[0].mark = vyre__block_begin(m);
  uint32_t first = m->functions[f].first_local;
  for (size_t i = 0; i < count; i++) {
    variables[i] = (vyre_variable){first + (uint32_t)i + 1, b->number};
  }
  return (vyre_build_function_ref){f + 1, b->number};
}

static void end_then(vyre_builder *b, vyre__scope scope, vyre__id body) {
  vyre__id otherwise = 0;
  if (scope.kind == VYRE__SCOPE_ELSE) {
    otherwise = body;
    body = scope.then;
  }
  vyre__statement(&b->ir,
                  vyre__ir_build_if(&b->ir, scope.condition, body, otherwise));
}

/* Checks that no statement precedes the first label of a switch. */
static bool is_switch_clean(vyre_builder *b, const vyre__scope *scope) {
  if (scope->kind == VYRE__SCOPE_ARM ||
      b->ir.stack_count == scope->choice.first_label) {
    return true;
  }
  vyre__builder_fail(b, "call vyre_build_case or vyre_build_default first",
                     "a statement before the first label of a switch");
  return false;
}

void vyre_build_end(vyre_builder *b) {
  if (!is_usable(b)) return;
  if (b->scope_count == 0 ||
      b->scopes[b->scope_count - 1].kind == VYRE__SCOPE_KERNEL) {
    vyre__builder_fail(b, "call vyre_build_end once for each body",
                       "vyre_build_end without an open body");
    return;
  }
  vyre__ir_builder *m = &b->ir;
  vyre__scope scope = b->scopes[b->scope_count - 1];
  if (scope.kind == VYRE__SCOPE_DO) {
    vyre__builder_fail(b, "call vyre_build_do_while with the condition",
                       "vyre_build_end at the end of a do loop");
    return;
  }
  b->scope_count--;
  if (scope.kind == VYRE__SCOPE_ARM || scope.kind == VYRE__SCOPE_SWITCH) {
    if (!is_switch_clean(b, &scope)) return;
    if (scope.kind == VYRE__SCOPE_ARM) vyre__switch_arm_end(m, &scope.choice);
    vyre__statement(m, vyre__switch_end(m, &scope.choice));
    return;
  }
  vyre__id body = vyre__block_end(m, scope.mark);
  switch (scope.kind) {
    case VYRE__SCOPE_THEN:
    case VYRE__SCOPE_ELSE:
      end_then(b, scope, body);
      break;
    case VYRE__SCOPE_WHILE:
      vyre__statement(m, vyre__while_end(m, scope.condition, body));
      break;
    case VYRE__SCOPE_FOR:
      vyre__statement(m, vyre__for_end(m, &scope.loop, body));
      break;
    case VYRE__SCOPE_GEOMETRIC_FOR:
      vyre__statement(m, vyre__geometric_end(m, &scope.geometric, body));
      break;
    case VYRE__SCOPE_FUNCTION:
      vyre__function_end(m, body);
      break;
    default:
      vyre__statement(m, body);
  }
}

/* --- statements ------------------------------------------------------------*/

static vyre_variable declare(vyre_builder *b, const char *name,
                             vyre_value value, bool is_mutable) {
  if (!vyre__builder_ready(b)) return (vyre_variable){0};
  vyre__ir_builder *m = &b->ir;
  uint32_t local;
  vyre__id id = vyre__builder_take(b, value);
  if (!id) return (vyre_variable){0};
  id = vyre__ir_build_let(m, name, name ? strlen(name) : 0, VYRE_TYPE_VOID,
                          is_mutable, id, &local);
  vyre__statement(m, id);
  if (!id) return (vyre_variable){0};
  return (vyre_variable){(uint32_t)m->local_count, b->number};
}

vyre_variable vyre_build_let(vyre_builder *b, const char *name,
                             vyre_value value) {
  return declare(b, name, value, false);
}

vyre_variable vyre_build_var(vyre_builder *b, const char *name,
                             vyre_value value) {
  return declare(b, name, value, true);
}

void vyre_build_assign(vyre_builder *b, vyre_variable variable,
                       vyre_value value) {
  if (!vyre__builder_ready(b)) return;
  uint32_t local = vyre__builder_local(b, variable);
  vyre__id id = vyre__builder_take(b, value);
  if (local == VYRE_NO_INDEX || !id) return;
  vyre__statement(&b->ir, vyre__ir_build_assign(&b->ir, local, id));
}

void vyre_build_store(vyre_builder *b, vyre_build_buffer_ref buffer,
                      vyre_value index, vyre_value value) {
  if (!vyre__builder_ready(b)) return;
  uint32_t to = vyre__builder_buffer(b, buffer);
  vyre__id at = vyre__builder_take(b, index);
  vyre__id stored = vyre__builder_take(b, value);
  if (to == VYRE_NO_INDEX || !at || !stored) return;
  vyre__statement(&b->ir, vyre__ir_build_store(&b->ir, to, at, stored));
}

void vyre_build_eval(vyre_builder *b, vyre_value value) {
  if (!vyre__builder_ready(b)) return;
  vyre__id id = vyre__builder_take(b, value);
  vyre__statement(&b->ir, vyre__ir_build_eval(&b->ir, id));
}

void vyre_build_print(vyre_builder *b, const vyre_print_part *parts,
                      size_t count) {
  if (!vyre__builder_ready(b)) return;
  if (!parts && count > 0) {
    vyre__builder_fail(b, "pass an array of parts, or a count of 0",
                       "print of %zu parts, but the array is NULL", count);
    return;
  }
  vyre__ir_builder *m = &b->ir;
  uint32_t mark = vyre__stack_mark(m);
  for (size_t i = 0; i < count; i++) {
    const char *text = parts[i].text;
    vyre__push(m, text ? vyre__ir_build_text(m, text, strlen(text))
                       : vyre__builder_take(b, parts[i].value));
  }
  vyre__statement(m, vyre__ir_build_print(m, mark));
}

static void simple(vyre_builder *b, vyre__op op) {
  if (!vyre__builder_ready(b)) return;
  vyre__statement(&b->ir, vyre__ir_build_simple(&b->ir, op));
}

void vyre_build_barrier(vyre_builder *b) {
  simple(b, VYRE__OP_BARRIER);
}

void vyre_build_grid_barrier(vyre_builder *b) {
  simple(b, VYRE__OP_GRID_BARRIER);
}

void vyre_build_break(vyre_builder *b) {
  simple(b, VYRE__OP_BREAK);
}

void vyre_build_continue(vyre_builder *b) {
  simple(b, VYRE__OP_CONTINUE);
}

void vyre_build_return(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return;
  vyre__statement(&b->ir, vyre__ir_build_return(&b->ir, false, 0));
}

void vyre_build_return_value(vyre_builder *b, vyre_value value) {
  if (!vyre__builder_ready(b)) return;
  vyre__id id = vyre__builder_take(b, value);
  vyre__statement(&b->ir, vyre__ir_build_return(&b->ir, true, id));
}

/* --- statements with a body ------------------------------------------------*/

/* Checks that a condition is a bool. This must happen here, not at the end of
 * the body, so that the error belongs to the right call. */
static vyre__id take_condition(vyre_builder *b, vyre_value condition) {
  vyre__id id = vyre__builder_take(b, condition);
  return vyre__expect(&b->ir, id, VYRE_TYPE_BOOL, "V067", "a condition");
}

void vyre_build_if(vyre_builder *b, vyre_value condition) {
  if (!vyre__builder_ready(b)) return;
  vyre__id id = take_condition(b, condition);
  if (id) begin_body(b, VYRE__SCOPE_THEN, id);
}

void vyre_build_else(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return;
  vyre__scope *scope = &b->scopes[b->scope_count - 1];
  if (scope->kind != VYRE__SCOPE_THEN) {
    vyre__builder_fail(b, "call it between vyre_build_if and vyre_build_end",
                       "vyre_build_else without an open if");
    return;
  }
  scope->then = vyre__block_end(&b->ir, scope->mark);
  scope->kind = VYRE__SCOPE_ELSE;
  scope->mark = vyre__block_begin(&b->ir);
}

void vyre_build_while(vyre_builder *b, vyre_value condition) {
  if (!vyre__builder_ready(b)) return;
  vyre__id id = take_condition(b, condition);
  if (id) begin_body(b, VYRE__SCOPE_WHILE, id);
}

vyre_variable vyre_build_for(vyre_builder *b, const char *name,
                             vyre_value first, vyre_op op, vyre_value bound,
                             vyre_value step) {
  vyre_variable none = {0};
  if (!vyre__builder_ready(b)) return none;
  vyre__id from = vyre__builder_take(b, first);
  vyre__id to = vyre__builder_take(b, bound);
  vyre__id by = vyre__builder_take(b, step);
  if (!from || !to || !by) return none;
  if (op < VYRE_OP_LT || op > VYRE_OP_GE) {
    vyre__builder_fail(b, "use VYRE_OP_LT, _LE, _GT or _GE",
                       "invalid comparison %u in a for loop", (unsigned)op);
    return none;
  }
  vyre__scope *scope = open_scope(b, VYRE__SCOPE_FOR);
  if (!scope) return none;
  vyre__ir_builder *m = &b->ir;
  vyre__for_begin(m, &scope->loop, name, name ? strlen(name) : 0,
                  VYRE_TYPE_VOID, (vyre__loop)(op - VYRE_OP_LT), from, to, by);
  scope->mark = vyre__block_begin(m);
  if (!is_usable(b)) return none;
  return (vyre_variable){(uint32_t)m->local_count, b->number};
}

vyre_variable vyre_build_geometric_for(vyre_builder *b, const char *name,
                                       vyre_value first, vyre_op compare,
                                       vyre_value bound, vyre_op op,
                                       vyre_value step) {
  static const vyre__op ops[] = {VYRE__OP_MUL, VYRE__OP_DIV, VYRE__OP_SHL,
                                 VYRE__OP_SHR};
  static const vyre_op public_ops[] = {VYRE_OP_MUL, VYRE_OP_DIV, VYRE_OP_SHL,
                                       VYRE_OP_SHR};
  vyre_variable none = {0};
  if (!vyre__builder_ready(b)) return none;
  vyre__id from = vyre__builder_take(b, first);
  vyre__id to = vyre__builder_take(b, bound);
  vyre__id by = vyre__builder_take(b, step);
  if (!from || !to || !by) return none;
  unsigned which = 0;
  while (which < 4 && public_ops[which] != op) which++;
  if (compare < VYRE_OP_LT || compare > VYRE_OP_GE || which == 4) {
    vyre__builder_fail(b,
                       "use VYRE_OP_LT, _LE, _GT or _GE, and VYRE_OP_MUL, "
                       "_DIV, _SHL or _SHR",
                       "invalid operations %u and %u in a geometric for loop",
                       (unsigned)compare, (unsigned)op);
    return none;
  }
  vyre__scope *scope = open_scope(b, VYRE__SCOPE_GEOMETRIC_FOR);
  if (!scope) return none;
  vyre__ir_builder *m = &b->ir;
  vyre__geometric_begin(m, &scope->geometric, name, name ? strlen(name) : 0,
                        VYRE_TYPE_VOID, (vyre__loop)(compare - VYRE_OP_LT),
                        ops[which], from, to, by);
  uint32_t first_local = m->functions[m->function].first_local;
  scope->mark = vyre__block_begin(m);
  if (!is_usable(b)) return none;
  return (vyre_variable){first_local + scope->geometric.local + 1, b->number};
}

void vyre_build_do(vyre_builder *b) {
  if (!vyre__builder_ready(b)) return;
  vyre__scope *scope = open_scope(b, VYRE__SCOPE_DO);
  if (!scope) return;
  vyre__do_begin(&b->ir, &scope->do_loop);
  scope->mark = vyre__block_begin(&b->ir);
}

void vyre_build_do_while(vyre_builder *b, vyre_value condition) {
  if (!vyre__builder_ready(b)) return;
  vyre__ir_builder *m = &b->ir;
  vyre__scope scope = b->scopes[b->scope_count - 1];
  if (scope.kind != VYRE__SCOPE_DO) {
    vyre__builder_fail(b, "call it at the end of a body of vyre_build_do",
                       "vyre_build_do_while without an open do loop");
    return;
  }
  b->scope_count--;
  vyre__id body = vyre__block_end(m, scope.mark);
  vyre__id id = take_condition(b, condition);
  vyre__statement(m, vyre__do_end(m, &scope.do_loop, body, id));
}

void vyre_build_switch(vyre_builder *b, vyre_value value) {
  if (!vyre__builder_ready(b)) return;
  vyre__id id = vyre__builder_take(b, value);
  if (!id) return;
  vyre__scope *scope = open_scope(b, VYRE__SCOPE_SWITCH);
  if (scope) vyre__switch_begin(&b->ir, &scope->choice, id);
}

/* Ends the open arm of a switch and returns its scope, or NULL after a report.
 */
static vyre__scope *next_arm(vyre_builder *b, const char *function) {
  if (!vyre__builder_ready(b)) return NULL;
  vyre__scope *scope = &b->scopes[b->scope_count - 1];
  if (scope->kind != VYRE__SCOPE_SWITCH && scope->kind != VYRE__SCOPE_ARM) {
    vyre__builder_fail(b, "call it between vyre_build_switch and its end",
                       "%s without an open switch", function);
    return NULL;
  }
  if (!is_switch_clean(b, scope)) return NULL;
  if (scope->kind == VYRE__SCOPE_ARM) {
    vyre__switch_arm_end(&b->ir, &scope->choice);
  }
  scope->kind = VYRE__SCOPE_ARM;
  return scope;
}

void vyre_build_case(vyre_builder *b, const vyre_value *labels, size_t count) {
  vyre__scope *scope = next_arm(b, "vyre_build_case");
  if (!scope) return;
  if (!labels || count == 0) {
    vyre__builder_fail(b, "pass at least one label, or call vyre_build_default",
                       "vyre_build_case without labels");
    return;
  }
  for (size_t i = 0; i < count; i++) {
    vyre__switch_label(&b->ir, &scope->choice,
                       vyre__builder_take(b, labels[i]));
  }
  vyre__switch_arm_begin(&b->ir, &scope->choice);
}

void vyre_build_default(vyre_builder *b) {
  vyre__scope *scope = next_arm(b, "vyre_build_default");
  if (!scope) return;
  vyre__switch_default(&b->ir, &scope->choice);
  vyre__switch_arm_begin(&b->ir, &scope->choice);
}

void vyre_build_block(vyre_builder *b) {
  if (vyre__builder_ready(b)) begin_body(b, VYRE__SCOPE_BLOCK, 0);
}

/* --- building the program --------------------------------------------------*/

/* Reports an atomic or push whose result was never used: it would be dropped
 * without a trace. */
static void check_effects(vyre_builder *b) {
  const vyre__ir_builder *m = &b->ir;
  for (size_t i = 1; i < m->node_count; i++) {
    const vyre__op_info *info = &vyre__ops[m->nodes[i].op];
    if (!(info->flags & (VYRE__OPF_ATOMICS | VYRE__OPF_PUSHES))) continue;
    if (i < b->used_count && b->used[i]) continue;
    vyre__builder_fail(b, "pass it to vyre_build_let or vyre_build_eval",
                       "the result of '%s' is never used", info->text);
  }
}

vyre_code vyre_builder_build(vyre_builder *b, vyre_program **out,
                             vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  if (!b) return vyre__null_argument(st, __func__, "builder");
  if (b->finished) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "create another builder",
                     "the builder of '%.100s' was already built",
                     b->kernel.name);
  }
  if (vyre__builder_ready(b) && b->scope_count > 1) {
    vyre__builder_fail(b, "call vyre_build_end once for each body",
                       "%zu bodies are still open", b->scope_count - 1);
  } else if (is_usable(b) && b->scopes[0].kind == VYRE__SCOPE_FUNCTION) {
    vyre__builder_fail(b, "call vyre_build_end at the end of the function",
                       "a function is still open");
  }
  if (is_usable(b)) check_effects(b);
  if (is_usable(b)) {
    vyre__id body = vyre__block_end(&b->ir, b->scopes[0].mark);
    vyre__function_end(&b->ir, body);
  }
  b->finished = true;
  if (b->failure.code == VYRE_OK) {
    vyre_code code = vyre__canonicalize(&b->ir, b->function, &b->kernel,
                                        b->allocator, out, &b->failure);
    if (code == VYRE_OK) return VYRE_OK;
  }
  if (st) *st = b->failure;
  return b->failure.code;
}
