/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The layouts of random structs equal those of the C compiler and, if Python has
 * it, of NumPy with align=True. */
#include <stdlib.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"

enum { STRUCTS = 500, MAX_FIELDS = 9, TEXT = 1 << 16 };

static uint64_t state = 88172645463325252u;

static unsigned pick(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

static const struct {
  const char *vyre, *c, *numpy;
} scalars[] = {{"u8", "uint8_t", "u1"},    {"i8", "int8_t", "i1"},
               {"bool", "uint8_t", "?"},   {"u16", "uint16_t", "u2"},
               {"i16", "int16_t", "i2"},   {"f16", "uint16_t", "f2"},
               {"bf16", "uint16_t", "u2"}, {"u32", "uint32_t", "u4"},
               {"i32", "int32_t", "i4"},   {"f32", "float", "f4"},
               {"u64", "uint64_t", "u8"},  {"i64", "int64_t", "i8"},
               {"f64", "double", "f8"}};

enum { SCALARS = sizeof scalars / sizeof scalars[0] };

typedef struct texts {
  char *vyre, *c, *python;
  size_t vyre_length, c_length, python_length;
} texts;

#define PUT(t, to, ...)                                             \
  ((t)->to##_length += (size_t)snprintf((t)->to + (t)->to##_length, \
                                        TEXT - (t)->to##_length, __VA_ARGS__))

/* Adds struct s<index>; later structs may contain earlier ones. */
static void add_struct(texts *t, unsigned index, unsigned first) {
  const unsigned count = 1 + pick(MAX_FIELDS);
  PUT(t, vyre, "struct s%u {\n", index);
  PUT(t, c, "typedef struct {\n");
  PUT(t, python, "s%u = np.dtype([", index);
  for (unsigned i = 0; i < count; i++) {
    const unsigned which = pick(SCALARS + 2);
    if (which >= SCALARS && index > first) {
      const unsigned inner = first + pick(index - first);
      PUT(t, vyre, "  f%u : s%u;\n", i, inner);
      PUT(t, c, "s%u f%u;\n", inner, i);
      PUT(t, python, "('f%u', s%u), ", i, inner);
      continue;
    }
    const unsigned scalar = which % SCALARS;
    const bool is_bool = strcmp(scalars[scalar].vyre, "bool") == 0;
    const unsigned length = is_bool || pick(2) ? 1 : 2 + pick(3);
    if (length == 1) {
      PUT(t, vyre, "  f%u : %s;\n", i, scalars[scalar].vyre);
      PUT(t, c, "%s f%u;\n", scalars[scalar].c, i);
      PUT(t, python, "('f%u', '%s'), ", i, scalars[scalar].numpy);
    } else {
      PUT(t, vyre, "  f%u : %sx%u;\n", i, scalars[scalar].vyre, length);
      PUT(t, c, "%s f%u[%u];\n", scalars[scalar].c, i, length);
      PUT(t, python, "('f%u', '%s', (%u,)), ", i, scalars[scalar].numpy,
          length);
    }
  }
  PUT(t, vyre, "}\n");
  PUT(t, c, "} s%u;\n", index);
  PUT(t, python, "], align=True)\n");
}

/* Runs a command and compares its numbers with @p want. */
static void compare(const char *command, const char *want) {
  static char got[TEXT];
  FILE *f = popen(command, "r");
  CHECK(f);
  const size_t length = fread(got, 1, sizeof got - 1, f);
  got[length] = '\0';
  CHECK(pclose(f) == 0);
  if (strcmp(got, want) != 0) {
    size_t at = 0;
    while (got[at] && got[at] == want[at]) at++;
    printf("    differs at %zu: %.60s, not %.60s\n", at, got + at, want + at);
  }
  CHECK(strcmp(got, want) == 0);
}

static void write_file(const char *folder, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  CHECK(f);
  fputs(text, f);
  CHECK(fclose(f) == 0);
}

/* Prints the size and the offsets that the program has. */
static size_t put_layout(char *to, size_t room, const vyre_struct *s) {
  size_t at = (size_t)snprintf(to, room, "%u", s->size);
  for (size_t i = 0; i < s->field_count; i++) {
    at += (size_t)snprintf(to + at, room - at, " %u", s->fields[i].offset);
  }
  return at + (size_t)snprintf(to + at, room - at, "\n");
}

enum { AT_ONCE = 50 }; /* structs in one file */

static void check_some(const char *folder, bool has_numpy) {
  static char vyre[TEXT], c[TEXT], python[TEXT], want[TEXT];
  char command[1024];
  texts t = {vyre, c, python, 0, 0, 0};
  size_t length = 0;
  PUT(&t, c, "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n");
  PUT(&t, python, "import numpy as np\n");
  for (unsigned i = 0; i < AT_ONCE; i++) add_struct(&t, i, i / 5 * 5);
  PUT(&t, vyre, "kernel k\n");
  for (unsigned i = 0; i < AT_ONCE; i++) {
    PUT(&t, vyre, "buffer b%u : read s%u[] @%u;\n", i, i, i);
  }
  PUT(&t, vyre, "{ }\n");
  vyre_module *module = parse_module(vyre);
  size_t count;
  const vyre_buffer_decl *buffers =
      vyre_program_buffers(vyre_module_kernel(module, 0), &count);
  CHECK(count == AT_ONCE);
  PUT(&t, c, "int main(void) {\n");
  for (unsigned i = 0; i < AT_ONCE; i++) {
    const vyre_struct *s = buffers[i].structure;
    CHECK(s && vyre_buffer_stride(&buffers[i]) == s->size);
    length += put_layout(want + length, TEXT - length, s);
    PUT(&t, c, "printf(\"%%zu\", sizeof(s%u));\n", i);
    for (size_t k = 0; k < s->field_count; k++) {
      PUT(&t, c, "printf(\" %%zu\", offsetof(s%u, f%zu));\n", i, k);
    }
    PUT(&t, c, "puts(\"\");\n");
    PUT(&t, python,
        "print(s%u.itemsize, *(s%u.fields[n][1] for n in s%u.names))\n", i, i,
        i);
  }
  PUT(&t, c, "return 0;\n}\n");
  CHECK(t.vyre_length < TEXT && t.c_length < TEXT && t.python_length < TEXT);
  write_file(folder, "s.c", c);
  snprintf(command, sizeof command, "${CC:-cc} -o %s/s %s/s.c && %s/s", folder,
           folder, folder);
  compare(command, want);
  if (has_numpy) {
    write_file(folder, "s.py", python);
    snprintf(command, sizeof command, "python3 %s/s.py", folder);
    compare(command, want);
  }
  vyre_module_release(module);
}

TEST(random_structs_have_the_layout_of_c_and_numpy) {
  char folder[] = "/tmp/vyre-layouts-XXXXXX", command[256];
  CHECK(mkdtemp(folder));
  const bool has_numpy = system("python3 -c 'import numpy' 2>/dev/null") == 0;
  if (!has_numpy) printf("    python3 has no numpy: compared with C only\n");
  for (unsigned i = 0; i < STRUCTS; i += AT_ONCE) check_some(folder, has_numpy);
  snprintf(command, sizeof command, "rm -r %s", folder);
  CHECK(system(command) == 0);
}

TEST(wrong_structs) {
  static const struct {
    const char *structs, *body, *rule;
  } rows[] = {
      {"struct s { }", "", "V116"},
      {"struct s { x : f32; x : u32; }", "", "V116"},
      {"struct s { x : s; }", "", "V044"},
      {"struct s { x : t; } struct t { x : s; }", "", "V044"},
      {"struct s { x : bytes; }", "", "V116"},
      {"struct s { x : sum_f32; }", "", "V116"},
      {"struct s { x : boolx2; }", "", "V034"},
      {"struct s { x : f32[3]; }", "", "V116"},
      {"struct s { x : missing; }", "", "V034"},
      {"struct s { x : f32 }", "", "V014"},
      {"struct s { x : f32; } struct s { y : f32; }", "", "V031"},
      {"struct s { x : f32; }", "let a = s{y: 1.0};", "V036"},
      {"struct s { x : f32; }", "let a = s{x: 1u};", "V065"},
      {"struct s { x : f32; }", "let a = s{x: 1.0, x: 2.0};", "V031"},
      {"struct s { x : f32; }", "let a = s{1.0};", "V013"},
      {"struct s { x : f32; }", "let a = s(1.0);", "V035"},
      {"struct s { x : f32; }", "let a = s{}.z;", "V036"},
      {"struct s { x : f32; }", "let a = s{}; a.x = 1.0;", "V066"},
      {"struct s { x : f32; }", "let a = s{} + s{};", "V061"},
      {"struct s { x : f32; }", "let a = s{} == s{};", "V061"},
      {"struct s { x : f32; }", "let a = select(true, s{}, s{});", "V061"},
      {"struct s { x : f32; }", "let a = f32(s{});", "V079"},
      {"struct s { x : f32; }", "let a = f32x2(s{}, 1.0);", "V065"},
      {"struct s { x : f32; }", "let a = -s{};", "V061"},
      {"struct s { x : f32; }", "b[0] = s{};", "V069"},
      {"struct s { x : f32; }", "if (s{}) { }", "V067"},
      {"struct s { x : f32; } fn f(a: read s[]) -> f32 { return 1.0; }", "",
       "V099"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_module *module;
    snprintf(text, sizeof text,
             "%s\nkernel k buffer b : read_write f32[] @0; { %s }",
             rows[i].structs, rows[i].body);
    CHECK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0},
                            &module, &found, &st) != VYRE_OK);
    CHECK(found.count >= 1);
    if (strcmp(found.items[0].rule, rows[i].rule) != 0) {
      printf("    %s %s: %s %s\n", rows[i].structs, rows[i].body,
             found.items[0].rule, found.items[0].message);
      CHECK(false);
    }
    CHECK(found.items[0].fix[0]);
    vyre_diagnostics_deinit(&found);
  }
}

TEST(an_array_in_a_struct_names_vectors_of_the_same_layout) {
  const char *text =
      "struct node { keys : u32[9]; } kernel k "
      "buffer b : read_write node[] @0; { b[0] = b[1]; }";
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_module *module;
  CHECK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0}, &module,
                          &found, &st) != VYRE_OK);
  CHECK_TEXT(found.items[0].rule, "V116");
  CHECK_TEXT(found.items[0].fix,
             "write keys_0 : u32x4; keys_1 : u32x4; keys_2 : u32;");
  vyre_diagnostics_deinit(&found);
  vyre_module_release(
      parse_module("struct node { keys_0 : u32x4; keys_1 : u32x4; keys_2 : "
                   "u32; } kernel k buffer b : read_write node[] @0; "
                   "{ b[0] = b[1]; b[2].keys_1[3] = 1; }"));
}

TEST(a_struct_with_too_many_scalars_is_refused) {
  char text[8192];
  int at = snprintf(text, sizeof text, "struct a {");
  for (int i = 0; i < 64; i++) {
    at += snprintf(text + at, sizeof text - (size_t)at, " g%d : f32x4;", i);
  }
  at += snprintf(text + at, sizeof text - (size_t)at,
                 " } kernel k buffer b : read_write a[] @0; { b[0] = b[1]; }");
  vyre_module_release(parse_module(text));
  char *type = strstr(text, "f32x4");
  type[1] = '6', type[2] = '4';
  char *more = strstr(text, " } kernel");
  memmove(more + 9, more, strlen(more) + 1);
  memcpy(more, " h : u8; ", 9);
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  vyre_module *module;
  CHECK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0}, &module,
                          &found, &st) != VYRE_OK);
  CHECK_TEXT(found.items[0].rule, "V116");
  vyre_diagnostics_deinit(&found);
}

TEST_MAIN(TEST_ENTRY(random_structs_have_the_layout_of_c_and_numpy),
          TEST_ENTRY(wrong_structs),
          TEST_ENTRY(an_array_in_a_struct_names_vectors_of_the_same_layout),
          TEST_ENTRY(a_struct_with_too_many_scalars_is_refused))
