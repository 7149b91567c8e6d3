/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/emit.h"
#include "vyre/module.h"
#include "vyre/source.h"

#include "support/check.h"

enum { TEXT = 4096 };

/* Writes "NAME@LINE:COLUMN->LINE:COLUMN" for each use of a name. */
static const char *uses_of(const char *text, const char *name, char out[TEXT]) {
  vyre_arena arena;
  vyre_source_index index;
  vyre_status st = {0};
  size_t length = 0;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_source_index_build(text, strlen(text), &arena, &index, &st),
           st);
  out[0] = '\0';
  for (size_t i = 0; i < index.use_count; i++) {
    const vyre_symbol_use *use = &index.uses[i];
    CHECK(use->symbol < index.symbol_count);
    const vyre_symbol *symbol = &index.symbols[use->symbol];
    if (strcmp(symbol->name, name) != 0) continue;
    CHECK(use->length == strlen(name));
    length += (size_t)snprintf(out + length, TEXT - length, "%s%u:%u>%u:%u",
                               length ? " " : "", use->line, use->column,
                               symbol->line, symbol->column);
    CHECK(length < TEXT);
  }
  vyre_arena_deinit(&arena);
  return out;
}

/* Writes "KIND NAME : TYPE" for each symbol. */
static const char *symbols_of(const char *text, char out[TEXT]) {
  vyre_arena arena;
  vyre_source_index index;
  vyre_status st = {0};
  size_t length = 0;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_source_index_build(text, strlen(text), &arena, &index, &st),
           st);
  out[0] = '\0';
  for (size_t i = 0; i < index.symbol_count; i++) {
    const vyre_symbol *it = &index.symbols[i];
    length += (size_t)snprintf(
        out + length, TEXT - length, "%s%s %s : %s", length ? "; " : "",
        vyre_symbol_kind_name(it->kind), it->name, it->type);
    CHECK(length < TEXT);
    CHECK(it->parent == VYRE_NO_INDEX || it->parent < i);
  }
  vyre_arena_deinit(&arena);
  return out;
}

TEST(names_refer_to_their_declarations) {
  char out[TEXT];
  static const char text[] =
      "const N = 4u;\n"
      "fn f(v: u32) -> u32 { return v * N; }\n"
      "kernel k workgroup(N) over(y)\n"
      "buffer y : read_write u32[N] @0;\n"
      "{\n"
      "  for (let v = 0u; v < N; v++) y[v] = f(v);\n"
      "  { let w = y[0]; y[1] = w; }\n"
      "  { let w = 2u; y[2] = w; }\n"
      "}\n";
  CHECK_TEXT(uses_of(text, "N", out),
             "1:7>1:7 2:34>1:7 3:20>1:7 4:27>1:7 "
             "6:24>1:7");
  CHECK_TEXT(uses_of(text, "v", out),
             "2:6>2:6 2:30>2:6 6:12>6:12 6:20>6:12 6:27>6:12 6:34>6:12 "
             "6:41>6:12");
  CHECK_TEXT(uses_of(text, "y", out),
             "3:28>4:8 4:8>4:8 6:32>4:8 7:13>4:8 7:19>4:8 8:17>4:8");
  CHECK_TEXT(uses_of(text, "w", out), "7:9>7:9 7:26>7:9 8:9>8:9 8:24>8:9");
  CHECK_TEXT(uses_of(text, "f", out), "2:4>2:4 6:39>2:4");
  CHECK_TEXT(symbols_of(text, out),
             "const N : u32; fn f : (v: u32) -> u32; parameter v : u32; kernel "
             "k : ; buffer y : read_write u32[N]; let v : u32; let w : u32; "
             "let w : u32");
}

TEST(words_of_a_context_are_no_uses_of_names_like_them) {
  char out[TEXT];
  static const char text[] =
      "kernel k workgroup(64) over(read)\n"
      "buffer read : read f32[] @0 coalesce(x);\n"
      "buffer x : read_write f32[] @1 locality(random);\n"
      "buffer random : read f32x2[] @2;\n"
      "{\n"
      "  let step = read[0];\n"
      "  x[0] = step(step, random[0].x);\n"
      "}\n";
  CHECK_TEXT(uses_of(text, "read", out), "1:29>2:8 2:8>2:8 6:14>2:8");
  CHECK_TEXT(uses_of(text, "x", out), "3:8>3:8 7:3>3:8");
  CHECK_TEXT(uses_of(text, "random", out), "4:8>4:8 7:21>4:8");
  CHECK_TEXT(uses_of(text, "step", out), "6:7>6:7 7:15>6:7");
}

TEST(files_with_errors_have_names) {
  char out[TEXT];
  CHECK_TEXT(uses_of("kernel k workgroup(64)\n"
                     "buffer y : read_write f32[] @0;\n"
                     "{\n"
                     "  let a = 1.0 +;\n"
                     "  let b = y[0];\n"
                     "  y[1] = b * nothing;\n"
                     "  y[2] = b\n",
                     "b", out),
             "5:7>5:7 6:10>5:7 7:10>5:7");
  CHECK_TEXT(symbols_of("override N : u32 = 4;", out), "override N : u32");
  CHECK_TEXT(symbols_of("", out), "");
  CHECK_TEXT(symbols_of("kernel", out), "");
  CHECK_TEXT(symbols_of("fn fn const const kernel", out), "");
  CHECK_TEXT(symbols_of("const A = A;", out), "const A : ");
  CHECK_TEXT(symbols_of("fn f(a: f32", out), "fn f : (a: f32");
}

TEST(a_text_that_is_not_utf8_is_refused) {
  vyre_arena arena;
  vyre_source_index index;
  vyre_status st = {0};
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK(vyre_source_index_build("\xFF", 1, &arena, &index, &st) ==
        VYRE_INVALID_PROGRAM);
  CHECK(index.symbols == NULL && index.use_count == 0);
  vyre_arena_deinit(&arena);
}

/* Returns the fact at a position of a text with one kernel. */
static vyre_value_info value_at(const char *text, uint32_t line,
                                uint32_t column, vyre_arena *arena) {
  vyre_module *module = NULL;
  vyre_status st = {0};
  const vyre_value_info *items;
  size_t count;
  vyre_value_info found = {.line = 0};
  CHECK_OK(vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  CHECK_OK(vyre_program_values(vyre_module_kernel(module, 0), arena, &items,
                               &count, &st),
           st);
  for (size_t i = 0; i < count; i++) {
    CHECK(i == 0 || items[i - 1].line < items[i].line ||
          items[i - 1].column < items[i].column);
    if (items[i].line == line && items[i].column == column) found = items[i];
  }
  vyre_module_release(module);
  return found;
}

TEST(values_have_ranges_and_levels) {
  vyre_arena arena;
  static const char text[] =
      "fn f(v: u32) -> u32 { return 1 + v; }\n"
      "kernel k workgroup(64)\n"
      "buffer y : read_write u32[] @0;\n"
      "uniform m : u32 @1;\n"
      "{\n"
      "  let i = local_id.x;\n"
      "  let g = workgroup_id.x & 7;\n"
      "  y[i] = f(2) + f(i) + g;\n"
      "  y[m] = g;\n"
      "}\n";
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre_value_info i = value_at(text, 8, 5, &arena);
  CHECK_TEXT(i.range, "[0, 63]");
  CHECK(i.level == VYRE_VALUE_VARYING);
  vyre_value_info g = value_at(text, 8, 24, &arena);
  CHECK_TEXT(g.range, "[0, 7]");
  CHECK(g.level == VYRE_VALUE_WORKGROUP);
  vyre_value_info m = value_at(text, 9, 5, &arena);
  CHECK(m.level == VYRE_VALUE_DISPATCH);
  vyre_value_info v = value_at(text, 1, 34, &arena); /* of both calls */
  CHECK_TEXT(v.range, "[0, 63]");
  CHECK(v.level == VYRE_VALUE_VARYING);
  vyre_arena_deinit(&arena);
}

TEST(every_word_has_a_kind_and_a_form) {
  vyre_arena arena;
  size_t count;
  vyre_arena_init(&arena, (vyre_allocator){0});
  const vyre_word *words = vyre_words(&arena, &count);
  CHECK(words && count > 150);
  for (size_t i = 0; i < count; i++) {
    CHECK(words[i].kind < VYRE_WORD_KIND_COUNT);
    CHECK(strncmp(words[i].form, words[i].name, strlen(words[i].name)) == 0);
    CHECK(i == 0 || words[i - 1].kind < words[i].kind ||
          strcmp(words[i - 1].name, words[i].name) < 0);
    CHECK((words[i].kind == VYRE_WORD_FUNCTION) ==
          (strchr(words[i].form, '(') != NULL));
  }
  vyre_arena_deinit(&arena);
}

TEST_MAIN(TEST_ENTRY(names_refer_to_their_declarations),
          TEST_ENTRY(words_of_a_context_are_no_uses_of_names_like_them),
          TEST_ENTRY(files_with_errors_have_names),
          TEST_ENTRY(a_text_that_is_not_utf8_is_refused),
          TEST_ENTRY(values_have_ranges_and_levels),
          TEST_ENTRY(every_word_has_a_kind_and_a_form))
