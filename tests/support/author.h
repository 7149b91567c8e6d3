/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes random kernels, for properties that hold of all. */
#ifndef VYRE_TESTS_AUTHOR_H
#define VYRE_TESTS_AUTHOR_H

#include <stdarg.h>

#include "vyre/export.h"
#include "vyre/ops.h"

#include "support/check.h"

static const vyre_type integer_types[] = {VYRE_TYPE_U32, VYRE_TYPE_I32,
                                          VYRE_TYPE_U64, VYRE_TYPE_I64};

typedef struct variable {
  char name[8];
  vyre_type type;
  bool is_mutable;
} variable;

/* A writer of random kernels. */
typedef struct author {
  uint64_t seed;
  char text[1 << 16];
  size_t length;
  variable variables[64];
  unsigned count, unique, loops;
  unsigned functions; /* f0, f1, ... of two u32 that can be called */
  bool in_function;
  bool is_short; /* its loops end soon */
} author;

static inline unsigned roll(author *a, unsigned sides) {
  return (unsigned)random_below(&a->seed, sides);
}

static inline void say(author *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline void say(author *a, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n =
      vsnprintf(a->text + a->length, sizeof a->text - a->length, format, args);
  va_end(args);
  a->length += (size_t)n;
  CHECK(a->length < sizeof a->text - 1);
}

static inline const char *type_text(vyre_type type) {
  static const char *const names[] = {"void", "bool", "u32",
                                      "i32",  "u64",  "i64"};
  return names[type];
}

static inline void say_literal(author *a, vyre_type type) {
  static const char *const suffix[] = {"", "", "u", "i", "ul", "l"};
  static const unsigned values[] = {0, 1, 2, 3, 7, 8, 15, 16, 31, 64, 255};
  if (type == VYRE_TYPE_BOOL) {
    say(a, "%s", roll(a, 2) ? "true" : "false");
  } else if (roll(a, 8) == 0) {
    say(a, "%u%s", 0x7FFFFFFFu - roll(a, 3), suffix[type]);
  } else {
    say(a, "%u%s", values[roll(a, 11)], suffix[type]);
  }
}

static inline bool say_variable(author *a, vyre_type type) {
  for (unsigned tries = 0; tries < 6 && a->count; tries++) {
    const variable *v = &a->variables[roll(a, a->count)];
    if (v->type != type) continue;
    say(a, "%s", v->name);
    return true;
  }
  return false;
}

static inline void say_leaf(author *a, vyre_type type) {
  static const char *const words[] = {
      "local_id.x", "global_id.x", "workgroup_id.x",  "len(y)",
      "len(x)",     "n",           "workgroup_size.x"};
  if (roll(a, 3) && say_variable(a, type)) return;
  if (type == VYRE_TYPE_U32 && roll(a, 3)) {
    say(a, "%s", a->in_function ? words[roll(a, 3)] : words[roll(a, 7)]);
  } else {
    say_literal(a, type);
  }
}

static inline void say_value(author *a, vyre_type type, int depth);

static inline vyre_type any_integer(author *a) {
  return roll(a, 2) ? VYRE_TYPE_U32 : integer_types[roll(a, 4)];
}

static inline void say_binary(author *a, const char *op, vyre_type first,
                              vyre_type second, int depth) {
  say(a, "(");
  say_value(a, first, depth - 1);
  say(a, " %s ", op);
  say_value(a, second, depth - 1);
  say(a, ")");
}

static inline void say_call(author *a, const char *name, vyre_type type,
                            int count, int depth) {
  say(a, "%s(", name);
  for (int i = 0; i < count; i++) {
    if (i) say(a, ", ");
    say_value(a, type, depth - 1);
  }
  say(a, ")");
}

static inline void say_condition(author *a, int depth) {
  static const char *const compares[] = {"<", "<=", ">", ">=", "==", "!="};
  vyre_type type = any_integer(a);
  switch (roll(a, 8)) {
    case 0:
      say_binary(a, "&&", VYRE_TYPE_BOOL, VYRE_TYPE_BOOL, depth);
      break;
    case 1:
      say_binary(a, "||", VYRE_TYPE_BOOL, VYRE_TYPE_BOOL, depth);
      break;
    case 2:
      say_call(a, "!", VYRE_TYPE_BOOL, 1, depth);
      break;
    case 3:
      say(a, "(");
      say_leaf(a, VYRE_TYPE_U32);
      say(a, " %s %s)", compares[roll(a, 6)],
          a->in_function ? "local_id.x" : "len(y)");
      break;
    default:
      say_binary(a, compares[roll(a, 6)], type, type, depth);
      break;
  }
}

static inline void say_value(author *a, vyre_type type, int depth) {
  static const char *const signs[] = {"+", "-", "*", "/", "%", "&", "|", "^"};
  bool is_signed = type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
  if (depth <= 0) {
    say_leaf(a, type);
    return;
  }
  if (type == VYRE_TYPE_BOOL) {
    say_condition(a, depth);
    return;
  }
  switch (roll(a, 12)) {
    case 0:
      say_leaf(a, type);
      break;
    case 1:
      say_call(a, "min", type, 2, depth);
      break;
    case 2:
      say_call(a, "max", type, 2, depth);
      break;
    case 3:
      say_binary(a, roll(a, 2) ? "<<" : ">>", type, VYRE_TYPE_U32, depth);
      break;
    case 4:
      say_call(a, is_signed ? "abs" : "popcount", type, 1, depth);
      break;
    case 5:
      say_call(a, is_signed ? "sign" : "clz", type, 1, depth);
      break;
    case 6:
      say_call(a, type_text(type), any_integer(a), 1, depth);
      break;
    case 7:
      say(a, "select(");
      say_condition(a, depth - 1);
      say(a, ", ");
      say_value(a, type, depth - 1);
      say(a, ", ");
      say_value(a, type, depth - 1);
      say(a, ")");
      break;
    case 8:
      if (type == VYRE_TYPE_U32 && !a->in_function) {
        say(a, "%s[", roll(a, 2) ? "x" : "tile");
        say_value(a, any_integer(a), depth - 1);
        say(a, "]");
        break;
      }
      /* fall through */
    default:
      say_binary(a, signs[roll(a, 8)], type, type, depth);
      break;
  }
}

static inline void say_statement(author *a, int depth);

static inline void say_block(author *a, int depth) {
  unsigned count = a->count;
  say(a, "{\n");
  for (unsigned i = 1 + roll(a, 3); i > 0; i--) say_statement(a, depth - 1);
  say(a, "}\n");
  a->count = count;
}

static inline variable *declare(author *a, vyre_type type, bool is_mutable) {
  variable *v = &a->variables[a->count];
  snprintf(v->name, sizeof v->name, "v%u", ++a->unique % 100000);
  v->type = type;
  v->is_mutable = is_mutable;
  return v;
}

static inline void say_declaration(author *a) {
  vyre_type type = roll(a, 5) ? any_integer(a) : VYRE_TYPE_BOOL;
  if (a->count + 1 >= 64) return;
  variable *v = declare(a, type, roll(a, 2));
  say(a, "%s %s : %s = ", v->is_mutable ? "var" : "let", v->name,
      type_text(type));
  say_value(a, type, 3);
  say(a, ";\n");
  a->count++;
}

static inline void say_assignment(author *a) {
  for (unsigned i = 0; i < a->count; i++) {
    const variable *v = &a->variables[roll(a, a->count)];
    if (!v->is_mutable) continue;
    say(a, "%s = ", v->name);
    say_value(a, v->type, 3);
    say(a, ";\n");
    return;
  }
}

static inline void say_loop(author *a, int depth) {
  vyre_type type = any_integer(a);
  bool goes_up = roll(a, 2);
  bool strict = roll(a, 2);
  if (a->count + 1 >= 64) return;
  variable *v = declare(a, type, false);
  say(a, "for (let %s : %s = ", v->name, type_text(type));
  if (a->is_short) say(a, "%u", roll(a, 6));
  if (!a->is_short) say_value(a, type, 1);
  say(a, "; %s %s ", v->name,
      goes_up  ? strict ? "<" : "<="
      : strict ? ">"
               : ">=");
  if (a->is_short) say(a, "%u", roll(a, 6));
  if (!a->is_short) say_value(a, type, 2);
  say(a, "; %s %s %u) ", v->name, goes_up ? "+=" : "-=", 1 + roll(a, 5));
  a->count++;
  a->loops++;
  say_block(a, depth);
  a->loops--;
  a->count--;
}

static inline void say_while(author *a, int depth) {
  if (a->count + 1 >= 64) return;
  unsigned counter = ++a->unique;
  if (a->is_short) say(a, "var w%u = 0u;\n", counter);
  say(a, "while (");
  say_condition(a, 2);
  if (a->is_short) say(a, " && w%u < 4", counter);
  say(a, ") {\n");
  if (a->is_short) say(a, "w%u += 1;\n", counter);
  a->loops++;
  say_block(a, depth);
  a->loops--;
  say(a, "}\n");
}

static inline void say_jump(author *a) {
  bool returns = a->loops == 0 || (a->in_function && roll(a, 2));
  if (returns && a->in_function) {
    say(a, "{ return ");
    say_value(a, VYRE_TYPE_U32, 2);
    say(a, "; }\n");
  } else {
    say(a, "{ %s; }\n", returns ? "return" : roll(a, 2) ? "break" : "continue");
  }
}

static inline void say_if(author *a, int depth) {
  say(a, "if (");
  say_condition(a, 2);
  say(a, ") ");
  if (roll(a, 4) == 0) {
    say_jump(a);
    return;
  }
  say_block(a, depth);
  if (roll(a, 2)) return;
  say(a, "else ");
  say_block(a, depth);
}

static inline void say_statement(author *a, int depth) {
  unsigned kind = roll(a, depth > 0 ? 12 : 6);
  if (kind < 2 || (kind < 6 && a->in_function)) {
    if (kind & 1) say_declaration(a);
    if (!(kind & 1)) say_assignment(a);
  } else if (kind < 4) {
    say_assignment(a);
  } else if (kind < 6) {
    say(a, "%s[", roll(a, 2) ? "y" : "tile");
    say_value(a, any_integer(a), 2);
    say(a, "] = ");
    say_value(a, VYRE_TYPE_U32, 2);
    say(a, ";\n");
  } else if (kind < 9) {
    say_if(a, depth);
  } else if (kind < 11) {
    say_loop(a, depth);
  } else {
    say_while(a, depth);
  }
}

/* h0, h1, ...: each may call those before it. */
static inline void write_function(author *a) {
  say(a, "fn h%u(a: u32, b: u32) -> u32 {\n", a->functions);
  a->variables[0] = (variable){"a", VYRE_TYPE_U32, false};
  a->variables[1] = (variable){"b", VYRE_TYPE_U32, false};
  a->count = 2;
  a->in_function = true;
  for (unsigned i = roll(a, 6); i > 0; i--) say_statement(a, 2);
  say(a, "return ");
  say_value(a, VYRE_TYPE_U32, 2);
  say(a, ";\n}\n");
  a->in_function = false;
  a->count = 0;
  a->functions++;
}

/* A kernel that may be wrong in no way but by running long. */
static inline void write_kernel(author *a, uint64_t seed, unsigned workgroup,
                                bool is_short) {
  *a = (author){.seed = seed, .is_short = is_short};
  for (unsigned i = is_short ? 4 : 0; i > 0; i--) write_function(a);
  say(a,
      "kernel k workgroup(%u)\nbuffer x : read u8[] @0;\n"
      "buffer y : read_write u32[] @1;\nuniform n : u32 @2;\n"
      "shared tile : u32[16];\n{\n",
      workgroup);
  for (unsigned i = 4 + roll(a, 10); i > 0; i--) say_statement(a, 3);
  say(a, "}\n");
}

#endif
