/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a program as text. Parsing that text gives the same program. */
#include <string.h>

#include "base/memory.h"
#include "ir/builder/ir_builder.h"
#include "ir/queue.h"
#include "lang/print_internal.h"

typedef struct context {
  vyre__printer out;
  const vyre_program *program;
  const vyre__function *function; /* being printed */
  vyre__names names;
  bool *is_scalar; /* per buffer: a uniform that is read by its name alone */
  unsigned depth;  /* nesting depth of blocks */
  uint32_t local_count; /* locals of the function declared so far */
} context;

/* --- expressions -----------------------------------------------------------*/

/* Precedence of an operation. */
enum {
  LEVEL_COND = 1,
  LEVEL_LOR,
  LEVEL_LAND,
  LEVEL_OR,
  LEVEL_XOR,
  LEVEL_AND,
  LEVEL_EQUAL,
  LEVEL_COMPARE,
  LEVEL_SHIFT,
  LEVEL_SUM,
  LEVEL_PRODUCT,
  LEVEL_UNARY,
  LEVEL_ALONE
};

static int level_of(const vyre__node *node) {
  static const uint8_t levels[VYRE__OP_COUNT] = {
      [VYRE__OP_COND] = LEVEL_COND,   [VYRE__OP_LOR] = LEVEL_LOR,
      [VYRE__OP_LAND] = LEVEL_LAND,   [VYRE__OP_OR] = LEVEL_OR,
      [VYRE__OP_XOR] = LEVEL_XOR,     [VYRE__OP_AND] = LEVEL_AND,
      [VYRE__OP_EQ] = LEVEL_EQUAL,    [VYRE__OP_NE] = LEVEL_EQUAL,
      [VYRE__OP_LT] = LEVEL_COMPARE,  [VYRE__OP_LE] = LEVEL_COMPARE,
      [VYRE__OP_GT] = LEVEL_COMPARE,  [VYRE__OP_GE] = LEVEL_COMPARE,
      [VYRE__OP_SHL] = LEVEL_SHIFT,   [VYRE__OP_SHR] = LEVEL_SHIFT,
      [VYRE__OP_ADD] = LEVEL_SUM,     [VYRE__OP_SUB] = LEVEL_SUM,
      [VYRE__OP_MUL] = LEVEL_PRODUCT, [VYRE__OP_DIV] = LEVEL_PRODUCT,
      [VYRE__OP_REM] = LEVEL_PRODUCT, [VYRE__OP_NEG] = LEVEL_UNARY,
      [VYRE__OP_NOT] = LEVEL_UNARY,   [VYRE__OP_BIT_NOT] = LEVEL_UNARY,
  };
  return levels[node->op] ? levels[node->op] : LEVEL_ALONE;
}

static bool is_comparison(int level) {
  return level == LEVEL_EQUAL || level == LEVEL_COMPARE;
}

static bool is_bits(int level) {
  return level >= LEVEL_OR && level <= LEVEL_AND;
}

static void print_value(context *c, vyre__id id);

static void print_operand(context *c, vyre__id id, bool parentheses) {
  if (parentheses) vyre__print(&c->out, "(");
  print_value(c, id);
  if (parentheses) vyre__print(&c->out, ")");
}

/* a < b < c and a & b == c are errors in the text form, so they get
 * parentheses too. */
static bool needs_parentheses(int own, int child, bool is_right) {
  if (child < own || (is_right && child == own)) return true;
  if (is_comparison(child)) return is_comparison(own) || is_bits(own);
  return false;
}

static void print_infix(context *c, const vyre__node *node) {
  const vyre__node *nodes = c->program->nodes;
  int own = level_of(node);
  print_operand(c, node->a,
                needs_parentheses(own, level_of(&nodes[node->a]), false));
  vyre__print(&c->out, " %s ", vyre__ops[node->op].text);
  print_operand(c, node->b,
                needs_parentheses(own, level_of(&nodes[node->b]), true));
}

static void print_conditional(context *c, const vyre__node *node) {
  const vyre__node *nodes = c->program->nodes;
  print_operand(c, node->a, level_of(&nodes[node->a]) == LEVEL_COND);
  vyre__print(&c->out, " ? ");
  print_operand(c, node->b, level_of(&nodes[node->b]) == LEVEL_COND);
  vyre__print(&c->out, " : ");
  print_value(c, node->c);
}

/* Prints a prefix operator. Two minus signs must not touch. */
static void print_prefix(context *c, const vyre__node *node) {
  const vyre__node *operand = &c->program->nodes[node->a];
  vyre__print(&c->out, "%s", vyre__ops[node->op].text);
  print_operand(
      c, node->a,
      level_of(operand) < LEVEL_UNARY ||
          (node->op == VYRE__OP_NEG &&
           (operand->op == VYRE__OP_NEG || operand->op == VYRE__OP_LITERAL)));
}

static void print_values(context *c, const uint32_t *ids, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) vyre__print(&c->out, ", ");
    print_value(c, ids[i]);
  }
}

static void print_list(context *c, const uint32_t *ids, uint32_t count) {
  print_values(c, ids, count);
  vyre__print(&c->out, ")");
}

static void print_memory(context *c, uint32_t memory) {
  const uint32_t index = memory & VYRE__MEMORY_INDEX;
  if (memory & VYRE__MEMORY_TABLE) {
    vyre__print_name(&c->out, &c->names.tables[index]);
  } else if (memory & VYRE__MEMORY_LOCAL) {
    vyre__print_name(&c->out, &c->names.locals[index]);
  } else {
    vyre__print(&c->out, "%s", c->program->buffers[memory].name);
  }
}

static void print_element(context *c, uint32_t buffer, vyre__id index) {
  print_memory(c, buffer);
  if (buffer < VYRE__MEMORY_TABLE && c->is_scalar[buffer]) return;
  const vyre__node *node = &c->program->nodes[index];
  vyre__print(&c->out, "[");
  if (node->op == VYRE__OP_INDEX) {
    print_values(c, &c->program->lists[node->a], node->b);
  } else {
    print_value(c, index);
  }
  vyre__print(&c->out, "]");
}

static const char *type_name(const context *c, unsigned type) {
  const vyre__struct *s = vyre__program_struct(c->program, type);
  return s ? s->self.name : vyre__type_name(type);
}

static void print_field(context *c, const vyre__node *node) {
  const vyre__node *of = &c->program->nodes[node->a];
  const vyre__struct *s = vyre__program_struct(c->program, of->type);
  print_operand(c, node->a, level_of(of) != LEVEL_ALONE);
  vyre__print(&c->out, ".%s", s->self.fields[node->aux].name);
}

/* Prints name{field: value, ...}. */
static void print_struct_value(context *c, const vyre__node *node) {
  const vyre__struct *s = vyre__program_struct(c->program, node->type);
  vyre__print(&c->out, "%s{", s->self.name);
  for (uint32_t i = 0; i < node->b; i++) {
    vyre__print(&c->out, "%s%s: ", i ? ", " : "", s->self.fields[i].name);
    print_value(c, c->program->lists[node->a + i]);
  }
  vyre__print(&c->out, "}");
}

/* Prints v.zyx. */
static void print_part(context *c, const vyre__node *node) {
  print_operand(c, node->a,
                level_of(&c->program->nodes[node->a]) != LEVEL_ALONE);
  vyre__print(&c->out, ".");
  for (unsigned i = 0; i < vyre__vector_length(node->type); i++) {
    vyre__print(&c->out, "%c", "xyzw"[node->aux >> 2 * i & 3]);
  }
}

static void print_unary(context *c, const vyre__node *node) {
  if (level_of(node) == LEVEL_UNARY) {
    print_prefix(c, node);
    return;
  }
  const char *type = vyre__type_name(vyre__component_type(node->type));
  if (node->op == VYRE__OP_PART) {
    print_part(c, node);
    return;
  }
  if (node->op == VYRE__OP_FIELD) {
    print_field(c, node);
    return;
  }
  if (node->op == VYRE__OP_CAST) {
    vyre__print(&c->out, "%s(", type);
  } else if (node->op == VYRE__OP_BITCAST) {
    vyre__print(&c->out, "as_%s(", type);
  } else {
    vyre__print(&c->out, "%s(", vyre__ops[node->op].text);
  }
  print_list(c, &node->a, 1);
}

/* Returns true for atomic_load(b[i]), which is an atomic_or with 0. */
static bool is_atomic_load(const context *c, const vyre__node *node) {
  const vyre__node *value = &c->program->nodes[node->c];
  return node->op == VYRE__OP_ATOMIC_OR && value->op == VYRE__OP_LITERAL &&
         vyre__literal(value) == 0;
}

static void print_atomic(context *c, const vyre__node *node) {
  bool is_load = is_atomic_load(c, node);
  vyre__print(&c->out, "%s(",
              is_load ? "atomic_load" : vyre__ops[node->op].text);
  print_element(c, node->a, node->b);
  if (is_load) {
    vyre__print(&c->out, ")");
    return;
  }
  vyre__print(&c->out, ", ");
  if (node->op == VYRE__OP_ATOMIC_CAS) {
    print_list(c, &c->program->lists[node->c], 2);
  } else {
    print_list(c, &node->c, 1);
  }
}

static void print_operation(context *c, const vyre__node *node) {
  if (node->op == VYRE__OP_COND) {
    print_conditional(c, node);
    return;
  }
  if (level_of(node) < LEVEL_UNARY) {
    print_infix(c, node);
    return;
  }
  if (node->op == VYRE__OP_COMPONENT) {
    print_operand(c, node->a,
                  level_of(&c->program->nodes[node->a]) != LEVEL_ALONE);
    vyre__print(&c->out, "[");
    print_value(c, node->b);
    vyre__print(&c->out, "]");
    return;
  }
  uint32_t operands[4] = {node->a, node->b, node->c};
  vyre__print(&c->out, "%s(", vyre__ops[node->op].text);
  if (node->op == VYRE__OP_INSERT) {
    operands[2] = c->program->nodes[node->c].a;
    operands[3] = c->program->nodes[node->c].b;
    print_list(c, operands, 4);
    return;
  }
  print_list(c, operands,
             vyre__ops[node->op].form == VYRE__FORM_BINARY ? 2 : 3);
}

static void print_array_value(context *c, const vyre__node *node) {
  vyre__print(&c->out, "{");
  for (uint32_t i = 0; i < node->b; i++) {
    if (i > 0) vyre__print(&c->out, ", ");
    print_value(c, c->program->lists[node->a + i]);
  }
  vyre__print(&c->out, "}");
}

/* Prints a field of the item, or a word such as window. */
static void print_position(context *c, const vyre__node *node) {
  const char *text = vyre__ops[node->op].text;
  if (node->op == VYRE__OP_ITEM) {
    const char *name = c->program->queue->fields[node->aux].name;
    if (name[0]) text = name;
  }
  vyre__print(&c->out, "%s", text);
}

static void print_value(context *c, vyre__id id) {
  const vyre__node *node = &c->program->nodes[id];
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
      vyre__print_literal(&c->out, node);
      break;
    case VYRE__FORM_LOCAL:
      vyre__print_name(&c->out, &c->names.locals[node->a]);
      break;
    case VYRE__FORM_CALL:
      vyre__print_name(&c->out, &c->names.functions[node->a]);
      vyre__print(&c->out, "(");
      print_list(c, &c->program->lists[node->b], node->c);
      break;
    case VYRE__FORM_LOAD:
      print_element(c, node->a, node->b);
      break;
    case VYRE__FORM_BUFFER:
      if (node->op == VYRE__OP_LEN) vyre__print(&c->out, "len(");
      print_memory(c, node->a);
      if (node->op == VYRE__OP_LEN) vyre__print(&c->out, ")");
      break;
    case VYRE__FORM_AXIS:
      vyre__print(&c->out, "%s.%c", vyre__ops[node->op].text, 'x' + node->aux);
      break;
    case VYRE__FORM_UNARY:
      print_unary(c, node);
      break;
    case VYRE__FORM_BINARY:
    case VYRE__FORM_TERNARY:
      print_operation(c, node);
      break;
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_ATOMIC2:
      print_atomic(c, node);
      break;
    case VYRE__FORM_MAKE:
      if (node->op == VYRE__OP_ARRAY) {
        print_array_value(c, node);
        break;
      }
      if (vyre__is_struct(node->type)) {
        print_struct_value(c, node);
        break;
      }
      vyre__print(&c->out, "%s(",
                  node->op == VYRE__OP_AT ? "at" : vyre__type_name(node->type));
      print_list(c, &c->program->lists[node->a], node->b);
      break;
    case VYRE__FORM_TEXT:
      vyre__print_text(&c->out, c->program->texts + node->a, node->b);
      break;
    case VYRE__FORM_LIST: /* a push of several fields */
      vyre__print(&c->out, "%s(", vyre__ops[node->op].text);
      print_list(c, &c->program->lists[node->a], node->b);
      break;
    default:
      print_position(c, node);
  }
}

/* --- statements ------------------------------------------------------------*/

static void print_statement(context *c, const vyre__node *node);

static void indent(context *c) {
  vyre__print_repeat(&c->out, "    ", c->depth);
}

/* Prints a call with several results and the statements that store them. Returns
 * the number of these statements; 0 for any other statement. */
static uint32_t print_results(context *c, const uint32_t *ids) {
  const vyre__node *nodes = c->program->nodes;
  const vyre__node *eval = &nodes[ids[0]];
  if (eval->op != VYRE__OP_EVAL || nodes[eval->a].type != VYRE__TYPE_RESULTS) {
    return 0;
  }
  const vyre__function *callee = &c->program->functions[nodes[eval->a].a];
  const vyre__node *first = &nodes[ids[1]];
  if (first->op == VYRE__OP_RETURN_RESULTS) {
    vyre__print(&c->out, "return ");
    print_value(c, eval->a);
    vyre__print(&c->out, ";\n");
    return 1;
  }
  const uint32_t count = callee->result_count;
  /* The arguments come before the names, which hide others. */
  vyre__print(&c->out, "%s",
              first->op != VYRE__OP_LET                  ? "("
              : c->function->locals[first->a].is_mutable ? "var ("
                                                         : "let (");
  for (uint32_t i = 0; i < count; i++) {
    const vyre__node *node = &nodes[ids[1 + i]];
    if (i > 0) vyre__print(&c->out, ", ");
    if (node->op == VYRE__OP_LET) {
      vyre__names_open(&c->names, c->function, node->a);
      c->local_count = node->a + 1;
      vyre__print_name(&c->out, &c->names.locals[node->a]);
    } else if (node->op == VYRE__OP_ASSIGN) {
      vyre__print_name(&c->out, &c->names.locals[node->a]);
    } else if (node->op == VYRE__OP_STORE) {
      print_element(c, node->a, node->b);
    } else {
      print_value(c, node->a);
    }
  }
  vyre__print(&c->out, ") = ");
  print_value(c, eval->a);
  vyre__print(&c->out, ";\n");
  return count;
}

static void print_block(context *c, vyre__id id) {
  const vyre__node *block = &c->program->nodes[id];
  uint32_t first = c->local_count;
  vyre__print(&c->out, "{\n");
  c->depth++;
  for (uint32_t i = 0; i < block->b && c->out.ok; i++) {
    const uint32_t *ids = &c->program->lists[block->a + i];
    indent(c);
    const uint32_t used = print_results(c, ids);
    if (used > 0) {
      i += used;
      continue;
    }
    print_statement(c, &c->program->nodes[c->program->lists[block->a + i]]);
  }
  c->depth--;
  vyre__names_close(&c->names, first, c->local_count);
  indent(c);
  vyre__print(&c->out, "}");
}

/* Prints the lengths of an array: [3, 3]. */
static void print_lengths(context *c, uint32_t length, vyre__shape shape) {
  const unsigned count = vyre__shape_count(shape);
  vyre__print(&c->out, "[%u", count ? vyre__shape_length(shape, 0) : length);
  for (unsigned i = 1; i < count; i++) {
    vyre__print(&c->out, ", %u", vyre__shape_length(shape, i));
  }
  vyre__print(&c->out, "]");
}

static void print_let(context *c, const vyre__node *node) {
  vyre__names_open(&c->names, c->function, node->a);
  c->local_count = node->a + 1;
  const vyre__local *local = &c->function->locals[node->a];
  vyre__print(&c->out, local->is_mutable ? "var " : "let ");
  vyre__print_name(&c->out, &c->names.locals[node->a]);
  if (local->is_memory) {
    vyre__print(&c->out, " : %s", vyre__type_name(local->type));
    print_lengths(c, local->length, local->shape);
  }
  if (node->b) {
    vyre__print(&c->out, " = ");
    print_value(c, node->b);
  }
  vyre__print(&c->out, ";\n");
}

static void print_if(context *c, const vyre__node *node) {
  for (;;) {
    vyre__print(&c->out, "if (");
    print_value(c, node->a);
    vyre__print(&c->out, ") ");
    print_block(c, node->b);
    if (node->c == 0) break;
    vyre__print(&c->out, " else ");
    const vyre__node *otherwise = &c->program->nodes[node->c];
    const vyre__node *only =
        &c->program->nodes[c->program->lists[otherwise->a]];
    if (otherwise->b != 1 || only->op != VYRE__OP_IF) {
      print_block(c, node->c);
      break;
    }
    node = only;
  }
  vyre__print(&c->out, "\n");
}

static void print_for(context *c, const vyre__node *node) {
  static const char *const texts[] = {"<", "<=", ">", ">="};
  const uint32_t *parts = &c->program->lists[node->b];
  const vyre__node *step = &c->program->nodes[parts[2]];
  bool down = node->aux >= VYRE__LOOP_GT;
  vyre__names_open(&c->names, c->function, node->a);
  c->local_count = node->a + 1;
  const vyre__shown *name = &c->names.locals[node->a];
  vyre__print(&c->out, "for (let ");
  vyre__print_name(&c->out, name);
  vyre__print(&c->out, " = ");
  print_value(c, parts[0]);
  vyre__print(&c->out, "; ");
  vyre__print_name(&c->out, name);
  vyre__print(&c->out, " %s ", texts[node->aux]);
  const vyre__node *bound = &c->program->nodes[parts[1]];
  print_operand(c, parts[1], level_of(bound) <= LEVEL_COMPARE);
  vyre__print(&c->out, "; ");
  vyre__print_name(&c->out, name);
  if (vyre__literal(step) == 1) {
    vyre__print(&c->out, down ? "--" : "++");
  } else {
    vyre__print(&c->out, down ? " -= " : " += ");
    print_value(c, parts[2]);
  }
  vyre__print(&c->out, ") ");
  print_block(c, parts[3]);
  vyre__names_close(&c->names, node->a, node->a + 1);
  vyre__print(&c->out, "\n");
}

/* Prints an atomic_exchange whose result is unused. */
static void print_atomic_store(context *c, const vyre__node *node) {
  vyre__print(&c->out, "atomic_store(");
  print_element(c, node->a, node->b);
  vyre__print(&c->out, ", ");
  print_list(c, &node->c, 1);
}

static void print_simple(context *c, const vyre__node *node) {
  bool is_call =
      node->op == VYRE__OP_BARRIER || node->op == VYRE__OP_GRID_BARRIER;
  if (node->op != VYRE__OP_EVAL) {
    vyre__print(&c->out, "%s%s", vyre__ops[node->op].text, is_call ? "()" : "");
  }
  if (node->op == VYRE__OP_RETURN && node->a) vyre__print(&c->out, " ");
  if (node->op == VYRE__OP_EVAL &&
      c->program->nodes[node->a].op == VYRE__OP_ATOMIC_EXCHANGE) {
    print_atomic_store(c, &c->program->nodes[node->a]);
  } else if (node->a) {
    print_value(c, node->a);
  }
  vyre__print(&c->out, ";\n");
}

static void print_statement(context *c, const vyre__node *node) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      print_block(c, (vyre__id)(node - c->program->nodes));
      vyre__print(&c->out, "\n");
      break;
    case VYRE__OP_LET:
      print_let(c, node);
      break;
    case VYRE__OP_ASSIGN:
      vyre__print_name(&c->out, &c->names.locals[node->a]);
      vyre__print(&c->out, " = ");
      print_value(c, node->b);
      vyre__print(&c->out, ";\n");
      break;
    case VYRE__OP_STORE:
      print_element(c, node->a, node->b);
      vyre__print(&c->out, " = ");
      print_value(c, node->c);
      vyre__print(&c->out, ";\n");
      break;
    case VYRE__OP_SET_PLACE:
      print_value(c, node->a);
      vyre__print(&c->out, " = ");
      print_value(c, node->b);
      vyre__print(&c->out, ";\n");
      break;
    case VYRE__OP_RETURN_RESULTS:
      vyre__print(&c->out, "return (");
      print_list(c, &c->program->lists[node->a], node->b);
      vyre__print(&c->out, ";\n");
      break;
    case VYRE__OP_IF:
      print_if(c, node);
      break;
    case VYRE__OP_FOR:
      print_for(c, node);
      break;
    case VYRE__OP_WHILE:
      vyre__print(&c->out, "while (");
      print_value(c, node->a);
      vyre__print(&c->out, ") ");
      print_block(c, node->b);
      vyre__print(&c->out, "\n");
      break;
    case VYRE__OP_PRINT:
      vyre__print(&c->out, "print(");
      print_list(c, &c->program->lists[node->a], node->b);
      vyre__print(&c->out, ";\n");
      break;
    default:
      print_simple(c, node);
  }
}

/* --- declarations ----------------------------------------------------------*/

/* Finds uniforms of one element that are only read at literal index 0. */
static void find_scalars(context *c) {
  const vyre_program *p = c->program;
  for (size_t i = 0; i < p->buffer_count; i++) {
    c->is_scalar[i] =
        p->buffers[i].kind == VYRE_MEMORY_UNIFORM && p->buffers[i].count == 1;
  }
  for (uint32_t i = 1; i < p->node_count; i++) {
    const vyre__node *node = &p->nodes[i];
    const vyre__node *index =
        &p->nodes[node->op == VYRE__OP_LOAD ? node->b : 0];
    if (node->a >= VYRE__MEMORY_TABLE) continue;
    bool at_zero = index->op == VYRE__OP_LITERAL &&
                   index->type == VYRE_TYPE_U32 && vyre__literal(index) == 0;
    if (node->op == VYRE__OP_LEN || node->op == VYRE__OP_MEMORY ||
        (node->op == VYRE__OP_LOAD && !at_zero)) {
      c->is_scalar[node->a] = false;
    }
  }
}

static void print_hints(context *c, const vyre_buffer_decl *buffer) {
  const vyre_memory_hints *hints = &buffer->hints;
  if (buffer->is_output) vyre__print(&c->out, " output");
  if (buffer->pipeline_live_out) vyre__print(&c->out, " live_out");
  if (hints->preferred_alignment) {
    vyre__print(&c->out, " align(%u)", hints->preferred_alignment);
  }
  if (hints->has_coalesce_axis) {
    vyre__print(&c->out, " coalesce(%c)", 'x' + hints->coalesce_axis);
  }
  if (hints->cache_locality != VYRE_LOCALITY_TEMPORAL) {
    vyre__print(&c->out, " locality(%s)",
                vyre_locality_name(hints->cache_locality));
  }
}

static void print_dimensions(context *c, const vyre_buffer_decl *buffer) {
  for (unsigned i = 0; i < buffer->dimension_count; i++) {
    const uint32_t size = buffer->dimensions[i];
    if (i > 0) vyre__print(&c->out, ", ");
    if (buffer->dimension_uniforms >> i & 1) {
      vyre__print(&c->out, "%s", c->program->buffers[size].name);
    } else if (size) {
      vyre__print(&c->out, "%u", size);
    }
  }
}

static void print_buffer(context *c, size_t index) {
  const vyre_buffer_decl *buffer = &c->program->buffers[index];
  bool is_shared = buffer->kind == VYRE_MEMORY_SHARED;
  if (is_shared || buffer->kind == VYRE_MEMORY_UNIFORM) {
    vyre__print(&c->out, "%s %s : ", vyre_memory_name(buffer->kind),
                buffer->name);
  } else {
    vyre__print(&c->out, "buffer %s : %s%s ", buffer->name,
                buffer->kind == VYRE_MEMORY_PERSISTENT ? "persistent " : "",
                vyre_access_name(buffer->access));
  }
  const vyre_struct *s = buffer->structure;
  vyre__print(&c->out, "%s", s ? s->name : vyre_element_name(buffer->element));
  if (buffer->type && !s) {
    vyre__print(&c->out, "x%u", vyre__vector_length(buffer->type));
  }
  if (!c->is_scalar[index]) {
    vyre__print(&c->out, "[");
    if (buffer->dimension_count) {
      print_dimensions(c, buffer);
    } else if (buffer->count) {
      vyre__print(&c->out, "%u", buffer->count);
    }
    vyre__print(&c->out, "]");
  }
  if (!is_shared) vyre__print(&c->out, " @%u", buffer->binding);
  print_hints(c, buffer);
  vyre__print(&c->out, ";\n");
}

static bool print_body(context *c, const vyre__function *function) {
  c->function = function;
  c->local_count = function->parameter_count;
  print_block(c, function->body);
  vyre__names_close(&c->names, 0, function->parameter_count);
  vyre__print(&c->out, "\n");
  return c->out.ok;
}

static void print_parameter_type(context *c, const vyre__local *local) {
  if (!local->is_memory || local->length > 0) {
    vyre__print(&c->out, ": %s", type_name(c, local->type));
    if (local->is_memory) print_lengths(c, local->length, local->shape);
    return;
  }
  vyre__print(&c->out, ": %s %s", vyre_access_name((vyre_access)local->access),
              vyre_element_name((vyre_element)local->element));
  if (vyre__is_vector(local->type)) {
    vyre__print(&c->out, "x%u", vyre__vector_length(local->type));
  }
  vyre__print(&c->out, "[]");
}

static void print_table(context *c, uint32_t index) {
  const vyre__table *table = &c->program->tables[index];
  vyre__print(&c->out, "const ");
  vyre__print_name(&c->out, &c->names.tables[index]);
  vyre__print(&c->out, " : %s", vyre__type_name(table->type));
  print_lengths(c, table->length, table->shape);
  vyre__print(&c->out, " = {");
  for (uint32_t i = 0; i < table->length; i++) {
    const vyre__node node = {.op = VYRE__OP_LITERAL,
                             .type = table->type,
                             .a = (uint32_t)table->values[i],
                             .b = (uint32_t)(table->values[i] >> 32)};
    if (i > 0) vyre__print(&c->out, i % 8 ? ", " : ",\n    ");
    vyre__print_literal(&c->out, &node);
  }
  vyre__print(&c->out, "};\n\n");
}

static bool print_function(context *c, uint32_t index) {
  const vyre__function *f = &c->program->functions[index];
  if (!vyre__names_function(&c->names, f)) return false;
  vyre__print(&c->out, "fn ");
  vyre__print_name(&c->out, &c->names.functions[index]);
  vyre__print(&c->out, "(");
  for (uint32_t i = 0; i < f->parameter_count; i++) {
    vyre__names_open(&c->names, f, i);
    if (i > 0) vyre__print(&c->out, ", ");
    if (f->locals[i].is_mutable) vyre__print(&c->out, "var ");
    vyre__print_name(&c->out, &c->names.locals[i]);
    print_parameter_type(c, &f->locals[i]);
  }
  vyre__print(&c->out, ") ");
  if (f->result) vyre__print(&c->out, "-> %s ", type_name(c, f->result));
  for (uint32_t i = 0; i < f->result_count; i++) {
    vyre__print(&c->out, "%s%s%s", i ? ", " : "-> (",
                type_name(c, f->results[i]),
                i + 1 == f->result_count ? ") " : "");
  }
  if (!print_body(c, f)) return false;
  vyre__print(&c->out, "\n");
  return c->out.ok;
}

static void print_structs(context *c) {
  for (uint32_t i = 0; i < c->program->struct_count; i++) {
    const vyre_struct *s = &c->program->structs[i]->self;
    vyre__print(&c->out, "struct %s {\n", s->name);
    for (size_t k = 0; k < s->field_count; k++) {
      const vyre_struct_field *f = &s->fields[k];
      vyre__print(
          &c->out, "    %s : %s", f->name,
          f->structure ? f->structure->name : vyre_element_name(f->element));
      if (f->type && !f->structure) {
        vyre__print(&c->out, "x%u", vyre__vector_length(f->type));
      }
      vyre__print(&c->out, ";\n");
    }
    vyre__print(&c->out, "}\n\n");
  }
}

/* Prints the clauses of a queue. The priority is the value that the body of
 * `by` pushes. */
static void print_queue(context *c, const vyre__queue_clauses *queue) {
  const vyre_program *p = c->program;
  vyre__print(&c->out, " queue(");
  for (uint32_t i = 0; i < queue->field_count; i++) {
    const vyre__queue_field *field = &queue->fields[i];
    if (i > 0) vyre__print(&c->out, ", ");
    if (field->name[0]) vyre__print(&c->out, "%s: ", field->name);
    vyre__print(&c->out, "%s", vyre_type_name((vyre_type)field->type));
  }
  vyre__print(&c->out, ")");
  if (queue->kind != VYRE__QUEUE_ORDERED) {
    vyre__print(&c->out, " %s", vyre__queue_kind_name(queue->kind));
  }
  if (queue->bound_kind == VYRE__BOUND_CONSTANT) {
    vyre__print(&c->out, "(%u)", queue->bound);
  } else if (queue->bound_kind != VYRE__BOUND_NONE) {
    vyre__print(&c->out, "(%s)", p->buffers[queue->bound].name);
  }
  if (queue->pushes) vyre__print(&c->out, " pushes(%u)", queue->pushes);
  if (queue->by) {
    const vyre__node *body = &p->nodes[p->functions[queue->by].body];
    const vyre__node *eval = &p->nodes[p->lists[body->a]];
    vyre__print(&c->out, " by(");
    print_value(c, p->nodes[eval->a].a);
    vyre__print(&c->out, ")");
  }
}

static void print_head(context *c) {
  const vyre_program *p = c->program;
  const uint32_t *size = p->workgroup;
  vyre__print(&c->out, "kernel ");
  vyre__print_name(&c->out, &c->names.kernel);
  vyre__print(&c->out, " workgroup(%u", size[0]);
  if (size[1] != 1 || size[2] != 1) vyre__print(&c->out, ", %u", size[1]);
  if (size[2] != 1) vyre__print(&c->out, ", %u", size[2]);
  vyre__print(&c->out, ")");
  if (p->over != VYRE_NO_INDEX) {
    vyre__print(&c->out, " over(%s)", p->buffers[p->over].name);
  }
  if (p->queue) print_queue(c, p->queue);
  vyre__print(&c->out, "\n");
  for (size_t i = 0; i < p->buffer_count; i++) print_buffer(c, i);
}

static bool print_program(context *c) {
  const vyre_program *p = c->program;
  c->is_scalar =
      vyre__arena_array(&c->names.arena, p->buffer_count, sizeof *c->is_scalar);
  if (!c->is_scalar) return false;
  find_scalars(c);
  print_structs(c);
  for (uint32_t i = 0; i < p->table_count; i++) print_table(c, i);
  for (uint32_t i = 1; i < p->function_count; i++) {
    if (p->queue && (i == p->queue->by || i == p->queue->pull)) continue;
    if (!print_function(c, i)) return false;
  }
  if (!vyre__names_function(&c->names, &p->functions[0])) return false;
  vyre__names_buffers(&c->names, p, true);
  print_head(c);
  if (!print_body(c, &p->functions[0])) return false;
  if (!p->queue || !p->queue->pull) return true;
  vyre__print(&c->out, "pull ");
  if (!vyre__names_function(&c->names, &p->functions[p->queue->pull])) {
    return false;
  }
  return print_body(c, &p->functions[p->queue->pull]);
}

bool vyre_program_print(const vyre_program *program, vyre_writer writer) {
  if (!program || program->function_count == 0) return false;
  context c = {.out = vyre__printer_make(writer), .program = program};
  bool good = vyre__names_init(&c.names, program) && print_program(&c);
  vyre__names_deinit(&c.names);
  return good;
}
