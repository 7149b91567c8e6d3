/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints a program as the text of a kernel. Every operation has parentheses, so
 * that precedence has no part in what is tested. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

typedef struct text {
  const cf_program *p;
  char *bytes;
  size_t length, space;
  unsigned depth;
} text;

static void put(text *t, const char *format, ...) {
  for (;;) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(t->bytes + t->length, t->space - t->length, format, list);
    va_end(list);
    if (n < 0) abort();
    if (t->length + (size_t)n < t->space) {
      t->length += (size_t)n;
      return;
    }
    t->space = t->space * 2 + (size_t)n;
    char *grown = realloc(t->bytes, t->space);
    if (!grown) abort();
    t->bytes = grown;
  }
}

static void indent(text *t) {
  put(t, "%*s", (int)(t->depth * 4), "");
}

static const char *type_name(cf_type type) {
  static const char *const names[] = {"u32", "i32", "u64", "f32", "bool"};
  return names[type];
}

static void put_name(text *t, uint32_t var) {
  put(t, "%c%u", t->p->vars[var].prefix, (unsigned)var);
}

static void put_expr(text *t, const cf_expr *e);

static void put_two(text *t, const cf_expr *e, const char *op) {
  put(t, "(");
  put_expr(t, e->a);
  put(t, " %s ", op);
  put_expr(t, e->b);
  put(t, ")");
}

static void put_uniform(text *t, uint32_t which) {
  put(t, t->p->has_array ? "q[%u]" : "q%u", (unsigned)which);
}

static void put_leaf(text *t, const cf_expr *e) {
  static const char axis[] = "xyz";
  static const char *const ids[] = {"local_id", "global_id", "workgroup_id",
                                    "grid_size"};
  switch (e->op) {
    case CF_CONST:
      put(t, "%uu", (unsigned)e->value);
      break;
    case CF_VAR:
      if (t->p->vars[e->value].type == CF_U32) {
        put_name(t, e->value);
      } else {
        put(t, "u32(");
        put_name(t, e->value);
        put(t, ")");
      }
      break;
    case CF_FLAG:
      put_name(t, e->value);
      break;
    case CF_UNIFORM:
      put_uniform(t, e->value);
      break;
    case CF_LEN:
      put(t, "len(data)");
      break;
    case CF_LANE:
      put(t, "lane");
      break;
    case CF_OWN:
      put(t, "own");
      break;
    default:
      put(t, "%s.%c", ids[e->op - CF_LOCAL_ID], axis[e->value]);
  }
}

static void put_expr(text *t, const cf_expr *e);

static void put_conditional(text *t, const cf_expr *e) {
  put(t, "(");
  put_expr(t, e->c);
  put(t, " ? ");
  put_expr(t, e->a);
  put(t, " : ");
  put_expr(t, e->b);
  put(t, ")");
}

static void put_expr(text *t, const cf_expr *e) {
  static const char *const binary[] = {
      [CF_ADD] = "+",  [CF_SUB] = "-",   [CF_MUL] = "*",  [CF_REM] = "%",
      [CF_XOR] = "^",  [CF_AND] = "&",   [CF_OR] = "|",   [CF_SHL] = "<<",
      [CF_SHR] = ">>", [CF_EQ] = "==",   [CF_NE] = "!=",  [CF_LT] = "<",
      [CF_LE] = "<=",  [CF_LAND] = "&&", [CF_LOR] = "||", [CF_NOT] = NULL};
  if (e->form) {
    put_expr(t, e->form == 1 ? e->a : e->b);
    return;
  }
  switch (e->op) {
    case CF_DATA:
      put(t, "data[");
      put_expr(t, e->a);
      put(t, "]");
      break;
    case CF_CALL:
      put(t, "fn%u(", (unsigned)e->value);
      put_expr(t, e->a);
      put(t, ", ");
      put_expr(t, e->b);
      put(t, ")");
      break;
    case CF_SELECT:
      if (e->value == 1) {
        put_conditional(t, e);
        break;
      }
      put(t, "select(");
      put_expr(t, e->c);
      put(t, ", ");
      put_expr(t, e->a);
      put(t, ", ");
      put_expr(t, e->b);
      put(t, ")");
      break;
    case CF_NOT:
      put(t, "!");
      put_expr(t, e->a);
      break;
    default:
      if (e->op >= CF_ADD && binary[e->op]) {
        put_two(t, e, binary[e->op]);
      } else {
        put_leaf(t, e);
      }
  }
}

/* The value of an expression in the type of a variable. */
static void put_as(text *t, cf_type type, const cf_expr *e) {
  if (type == CF_U32 || type == CF_BOOL) {
    put_expr(t, e);
    return;
  }
  put(t, "%s(", type_name(type));
  put_expr(t, e);
  put(t, ")");
}

static void put_block(text *t, const cf_stmt *s);

static bool is_jump(const cf_stmt *s) {
  return s->kind == CF_BREAK || s->kind == CF_CONTINUE || s->kind == CF_RETURN;
}

static void put_body(text *t, const cf_stmt *s) {
  put(t, "{\n");
  t->depth++;
  put_block(t, s);
  t->depth--;
  indent(t);
  put(t, "}");
}

static void put_jump(text *t, const cf_stmt *s) {
  if (s->kind == CF_RETURN && s->a) {
    put(t, "return ");
    put_expr(t, s->a);
    put(t, ";\n");
  } else {
    put(t, "%s;\n",
        s->kind == CF_BREAK      ? "break"
        : s->kind == CF_CONTINUE ? "continue"
                                 : "return");
  }
}

/* Returns true if a statement contains a `break` of a loop around it. */
static bool has_break(const cf_stmt *s) {
  for (; s; s = s->next) {
    if (s->is_gone) continue;
    if (s->kind == CF_BREAK) return true;
    bool is_loop = (s->kind == CF_FOR || s->kind == CF_WHILE) && !s->form;
    if (!is_loop && (has_break(s->body) || has_break(s->other))) return true;
  }
  return false;
}

static void put_arm(text *t, const char *label, const cf_stmt *s) {
  indent(t);
  put(t, "%s:\n", label);
  t->depth++;
  put_block(t, s);
  indent(t);
  put(t, "break;\n");
  t->depth--;
}

static void put_switch(text *t, const cf_stmt *s) {
  put(t, "switch (select(");
  put_expr(t, s->a);
  put(t, ", 4u, 7u)) {\n");
  t->depth++;
  put_arm(t, "case 3: case 4", s->body);
  if (s->has_else) put_arm(t, "default", s->other);
  t->depth--;
  indent(t);
  put(t, "}\n");
}

static void put_if(text *t, const cf_stmt *s) {
  if (s->is_switch && !has_break(s->body) && !has_break(s->other)) {
    put_switch(t, s);
    return;
  }
  put(t, "if (");
  put_expr(t, s->a);
  put(t, ") ");
  const cf_stmt *only = s->body;
  if (!s->has_else && only && !only->next && is_jump(only) && !only->is_gone) {
    put_jump(t, only);
    return;
  }
  put_body(t, s->body);
  if (s->has_else) {
    put(t, " else ");
    put_body(t, s->other);
  }
  put(t, "\n");
}

static void put_for(text *t, const cf_stmt *s) {
  static const char *const compares[] = {"<", "<=", ">", ">="};
  cf_type type = t->p->vars[s->var].type;
  put(t, "for (let ");
  put_name(t, s->var);
  put(t, " = ");
  put_as(t, type, s->a);
  put(t, "; ");
  put_name(t, s->var);
  put(t, " %s ", compares[s->compare]);
  put_as(t, type, s->b);
  put(t, "; ");
  put_name(t, s->var);
  bool is_up = s->compare <= CF_UP_TO;
  if (s->is_geometric && s->slot == 1 && s->step != 3) {
    put(t, " %s %u) ", is_up ? "<<=" : ">>=", (unsigned)s->step / 2);
  } else if (s->is_geometric) {
    put(t, " %c= %u) ", is_up ? '*' : '/', (unsigned)s->step);
  } else {
    put(t, " %c= %u) ", is_up ? '+' : '-', (unsigned)s->step);
  }
  put_body(t, s->body);
  put(t, "\n");
}

/* The element of the invocation that is @p distance after this one. */
static void put_exchange(text *t, const cf_stmt *s) {
  const char *wait = s->kind == CF_GRID_PASS ? "grid_barrier();" : "barrier();";
  static const char *const own[] = {"tile[lane]", "pass[own]", "wide[own]"};
  put(t, "%s = ", own[s->kind - CF_EXCHANGE]);
  put_expr(t, s->a);
  put(t, ";\n");
  indent(t);
  put(t, "%s\n", wait);
  indent(t);
  put_name(t, s->var);
  unsigned lanes = cf_lanes(t->p), distance = s->distance;
  if (s->kind == CF_EXCHANGE) {
    put(t, " = tile[(lane + %uu) %% %uu];\n", distance, lanes);
  } else if (s->kind == CF_PASS) {
    put(t, " = pass[own - lane + (lane + %uu) %% %uu];\n", distance, lanes);
  } else {
    put(t, " = wide[(own + %uu) %% total];\n", distance);
  }
  indent(t);
  put(t, "%s\n", wait);
}

static void put_simple(text *t, const cf_stmt *s) {
  const cf_var *var = &t->p->vars[s->var];
  switch (s->kind) {
    case CF_DECLARE:
      put(t, var->is_let ? "let " : "var ");
      put_name(t, s->var);
      put(t, " : %s", type_name(var->type));
      break;
    case CF_STORE:
      if (t->p->is_interleaved) {
        put(t, "out[own + %uu * total]", (unsigned)s->slot);
      } else {
        put(t, "out[own * %uu + %uu]", (unsigned)t->p->slot_count,
            (unsigned)s->slot);
      }
      put(t, " = ");
      put_expr(t, s->a);
      put(t, ";\n");
      return;
    case CF_COUNT:
      put(t, "atomic_add(count[%u], ", (unsigned)s->slot);
      put_expr(t, s->a);
      put(t, ");\n");
      return;
    case CF_BARRIER:
      put(t, "barrier();\n");
      return;
    default:
      put_name(t, s->var);
  }
  put(t, " = ");
  if (s->kind == CF_BROADCAST) {
    put(t, "uniform(");
    put_expr(t, s->a);
    put(t, ")");
  } else if (var->type == CF_F32 && s->kind == CF_ASSIGN) {
    put_name(t, s->var); /* halved first: no sum is ever rounded */
    put(t, " * 0.5 + f32(");
    put_expr(t, s->a);
    put(t, " & 255u)");
  } else {
    put_as(t, var->type, s->a);
  }
  put(t, ";\n");
}

static void put_statement(text *t, const cf_stmt *s) {
  indent(t);
  if (is_jump(s)) {
    put_jump(t, s);
  } else if (s->kind == CF_IF) {
    put_if(t, s);
  } else if (s->kind == CF_FOR) {
    put_for(t, s);
  } else if (s->kind == CF_WHILE && s->is_do) {
    put(t, "do ");
    put_body(t, s->body);
    put(t, " while (");
    put_expr(t, s->a);
    put(t, ");\n");
  } else if (s->kind == CF_WHILE) {
    put(t, "while (");
    put_expr(t, s->a);
    put(t, ") ");
    put_body(t, s->body);
    put(t, "\n");
  } else if (s->kind >= CF_EXCHANGE && s->kind <= CF_GRID_PASS) {
    put_exchange(t, s);
  } else {
    put_simple(t, s);
  }
}

static void put_block(text *t, const cf_stmt *s) {
  for (; s; s = s->next) {
    if (s->is_gone) continue;
    if (s->form) {
      put_block(t, s->form == 1 ? s->body : s->other);
    } else {
      put_statement(t, s);
    }
  }
}

static void put_declarations(text *t) {
  const cf_program *p = t->p;
  put(t, "kernel k workgroup(%u, %u, %u)\n", (unsigned)p->workgroup[0],
      (unsigned)p->workgroup[1], (unsigned)p->workgroup[2]);
  put(t, "buffer data : read u32[] @0;\n");
  unsigned binding = 1;
  if (p->has_array) {
    put(t, "uniform q : u32[%u] @%u;\n", (unsigned)CF_UNIFORMS, binding++);
  } else {
    for (unsigned i = 0; i < p->uniform_count; i++) {
      put(t, "uniform q%u : u32 @%u;\n", i, binding++);
    }
  }
  put(t, "buffer out : write u32[] @%u;\n", binding++);
  if (p->has_pass) {
    put(t, "buffer pass : read_write u32[] @%u output;\n", binding++);
  }
  if (p->has_wide) {
    put(t, "buffer wide : read_write u32[] @%u output;\n", binding++);
  }
  if (p->has_count) {
    put(t, "buffer count : read_write u32[%u] @%u output;\n",
        (unsigned)CF_COUNTERS, binding++);
  }
  if (p->has_tile) put(t, "shared tile : u32[%u];\n", cf_lanes(p));
}

static void put_ids(text *t) {
  const cf_program *p = t->p;
  const uint32_t *w = p->workgroup;
  bool is_flat = w[1] == 1 && w[2] == 1;
  if (is_flat) {
    put(t, "    let lane = local_id.x;\n");
  } else {
    put(t,
        "    let lane = local_id.x + %uu * (local_id.y + %uu * local_id.z);\n",
        (unsigned)w[0], (unsigned)w[1]);
  }
  if (is_flat && p->grid[1] == 1 && p->grid[2] == 1) {
    put(t, "    let own = global_id.x;\n");
  } else {
    put(t,
        "    let own = lane + %uu * (workgroup_id.x + grid_size.x * "
        "(workgroup_id.y + grid_size.y * workgroup_id.z));\n",
        cf_lanes(p));
  }
  if (p->is_interleaved || p->has_wide) {
    put(t, "    let total = %uu * grid_size.x * grid_size.y * grid_size.z;\n",
        cf_lanes(p));
  }
}

char *cf_print(const cf_program *p) {
  text t = {.p = p, .space = 8192};
  t.bytes = malloc(t.space);
  if (!t.bytes) abort();
  t.bytes[0] = 0;
  for (uint32_t i = 0; i < p->function_count; i++) {
    const cf_function *f = &p->functions[i];
    put(&t, "fn fn%u(", (unsigned)i);
    put_name(&t, f->params[0]);
    put(&t, ": u32, ");
    put_name(&t, f->params[1]);
    put(&t, ": u32) -> u32 ");
    put_body(&t, f->body);
    put(&t, "\n");
  }
  put_declarations(&t);
  put(&t, "{\n");
  put_ids(&t);
  t.depth = 1;
  put_block(&t, p->body);
  put(&t, "}\n");
  return t.bytes;
}
