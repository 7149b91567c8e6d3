/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "diag/diagnostics.h"

#include "vyre/module.h"

#include "lang/suggest.h"
#include "support/check.h"
#include "support/text.h"

static void parse_wrong(const char *text, vyre_diagnostics *found) {
  vyre_module *module;
  vyre_status st = {0};
  CHECK_FAILS(vyre_module_parse(text, strlen(text), "k.vyre",
                                (vyre_allocator){0}, &module, found, &st),
              st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK(!module && found->count > 0);
  CHECK_HAS(st.message, found->items[0].message);
}

static void check_shown(const char *text, const char *want) {
  vyre_diagnostics found = {0};
  text_buffer out = {.length = 0};
  parse_wrong(text, &found);
  CHECK(vyre_diagnostics_print(&found, "k.vyre", text, strlen(text),
                               text_writer(&out)));
  CHECK_TEXT(out.bytes, want);
  CHECK(!vyre_diagnostics_print(&found, "k.vyre", text, strlen(text),
                                refusing_writer()));
  vyre_diagnostics_deinit(&found);
}

TEST(a_finding_shows_its_line) {
  check_shown("kernel k\n{\n    let i = globl_id.x;\n}\n",
              "k.vyre:3:13: error: 'globl_id' is not declared [V030]\n"
              "     3 |     let i = globl_id.x;\n"
              "       |             ^~~~~~~~\n"
              "  Fix: did you mean 'global_id'?\n");
}

TEST(a_second_source_location_is_shown) {
  check_shown("kernel k\n{\n\tlet a = 1;\n\ta = 2;\n}\n",
              "k.vyre:4:2: error: 'a' is declared by let and cannot be "
              "assigned [V066]\n     4 |  a = 2;\n       |  ^~~~~\n  Fix: "
              "declare it with var instead of let\nk.vyre:3:6: note: declared "
              "here\n     3 |  let a = 1;\n       |      ^\n");
}

TEST(a_missing_semicolon_is_shown_where_it_belongs) {
  check_shown("kernel k {\n    let a = 1\n    let b = a;\n}\n",
              "k.vyre:2:14: error: expected ';' after a declaration [V014]\n"
              "     2 |     let a = 1\n"
              "       |              ^\n"
              "  Fix: write ';' here\n");
}

TEST(letters_outside_ascii_do_not_move_the_caret) {
  check_shown("kernel k { /* \xC3\xA9\xE2\x82\xAC */ let a = b; }\r\n",
              "k.vyre:1:32: error: 'b' is not declared [V030]\n"
              "     1 | kernel k { /* \xC3\xA9\xE2\x82\xAC */ let a = b; }\n"
              "       |                             ^\n"
              "  Fix: declare it first: let name = value;\n");
}

TEST(long_lines_are_cut) {
  char text[4096];
  text_buffer out = {.length = 0};
  vyre_diagnostics found = {0};
  snprintf(text, sizeof text, "kernel k {%1990slet a = b;%1990s}", "", "");
  parse_wrong(text, &found);
  CHECK(vyre_diagnostics_print(&found, NULL, text, strlen(text),
                               text_writer(&out)));
  CHECK(out.length < 600);
  CHECK_HAS(out.bytes, "kernel:1:2009: error");
  CHECK_HAS(out.bytes, "| ...");
  vyre_diagnostics_deinit(&found);
}

TEST(terminal_escapes_are_not_shown) {
  static const char text[] = "kernel k { \x1B[31m }";
  vyre_diagnostics found = {0};
  text_buffer out = {.length = 0};
  parse_wrong(text, &found);
  CHECK(vyre_diagnostics_print(&found, "k", text, sizeof text - 1,
                               text_writer(&out)));
  CHECK(!strchr(out.bytes, '\x1B'));
  vyre_diagnostics_deinit(&found);
}

TEST(findings_without_a_source_have_no_line) {
  vyre_diagnostics found = {0};
  vyre_diagnostic one = {
      .rule = "V060", .message = "wrong", .fix = "correct it", .length = 0};
  text_buffer out = {.length = 0};
  CHECK(vyre__diagnostics_add(&found, &one));
  CHECK_U64(found.items[0].length, 1);
  CHECK(vyre_diagnostics_print(&found, "", NULL, 0, text_writer(&out)));
  CHECK_TEXT(out.bytes, "kernel: error: wrong [V060]\n  Fix: correct it\n");
  vyre_diagnostics_deinit(&found);
  vyre_diagnostics_deinit(&found);
  vyre_diagnostics_deinit(NULL);
}

TEST(the_first_twenty_places_are_kept_in_order) {
  vyre_diagnostics found = {0};
  uint64_t state = 7;
  for (uint32_t i = 0; i < 200; i++) {
    vyre_diagnostic it = {.rule = "V013",
                          .line = 1 + (i * 73) % 200, /* each line once */
                          .column = 1 + (uint32_t)random_below(&state, 9),
                          .length = 1,
                          .message = "m",
                          .fix = "f",
                          .note = i % 2 ? "there" : NULL};
    CHECK(vyre__diagnostics_add(&found, &it));
    /* a duplicate is ignored, or dropped */
    CHECK(vyre__diagnostics_add(&found, &it));
  }
  CHECK_U64(found.count, 20);
  CHECK(found.dropped >= 180);
  for (uint32_t i = 0; i < 20; i++) CHECK_U64(found.items[i].line, i + 1);
  CHECK(!vyre__diagnostics_wants(&found, 21, 1));
  CHECK(vyre__diagnostics_wants(&found, 3, 1));
  vyre_diagnostics_deinit(&found);
  CHECK(found.count == 0 && found.dropped == 0);
}

TEST(missing_memory_for_a_finding_is_reported) {
  for (long left = 0; left < 1; left++) {
    test_heap heap = {.left = left};
    vyre_diagnostics found = {.arena.allocator = test_heap_allocator(&heap)};
    vyre_diagnostic it = {.rule = "V013", .message = "m", .fix = "f"};
    CHECK(!vyre__diagnostics_add(&found, &it));
    vyre_diagnostics_deinit(&found);
    CHECK_U64(heap.live_bytes, 0);
  }
}

static const char *guess(const char *name) {
  static const char *const words[] = {"global_id", "grid_size", "len",
                                      "sqrt",      "width",     "x"};
  static char text[32];
  vyre__guess it = vyre__guess_begin(name, strlen(name));
  vyre__guess_try_all(&it, words, sizeof words / sizeof words[0]);
  snprintf(text, sizeof text, "%.*s", (int)it.best_length,
           it.best ? it.best : "");
  return text;
}

TEST(near_names_are_suggested_and_far_ones_not) {
  CHECK_TEXT(guess("globl_id"), "global_id");
  CHECK_TEXT(guess("gloabl_id"), "global_id");
  CHECK_TEXT(guess("GLOBAL_ID"), "global_id");
  CHECK_TEXT(guess("sqr"), "sqrt");
  CHECK_TEXT(guess("widht"), "width");
  CHECK_TEXT(guess("lne"), "len");
  CHECK_TEXT(guess("X"), "x");
  CHECK_TEXT(guess("y"), "");
  CHECK_TEXT(guess("height"), "");
  CHECK_TEXT(guess(""), "");
}

/* Neither file name nor text may move the cursor or change the text
 * direction. */
TEST(terminal_escapes_in_names_are_not_shown) {
  static const char source[] = "ab\x1b[31m\xC2\x9B\xE2\x80\xAE\xFF\xC3\xA9\n";
  vyre_diagnostic item = {.rule = "V001",
                          .line = 1,
                          .column = 2,
                          .length = 1,
                          .message = "m",
                          .fix = "f"};
  vyre_diagnostics found = {.items = &item, .count = 1};
  text_buffer text = {0};
  CHECK(vyre_diagnostics_print(&found, "r\x1b[31m.vyre", source,
                               sizeof source - 1, text_writer(&text)));
  CHECK_HAS(text.bytes, "r?[31m.vyre:1:2: error: m [V001]\n");
  CHECK_HAS(text.bytes, " | ab?[31m???\xC3\xA9\n");
  CHECK(!strchr(text.bytes, 0x1b));
}

TEST_MAIN(TEST_ENTRY(terminal_escapes_in_names_are_not_shown),
          TEST_ENTRY(a_finding_shows_its_line),
          TEST_ENTRY(a_second_source_location_is_shown),
          TEST_ENTRY(a_missing_semicolon_is_shown_where_it_belongs),
          TEST_ENTRY(letters_outside_ascii_do_not_move_the_caret),
          TEST_ENTRY(long_lines_are_cut),
          TEST_ENTRY(terminal_escapes_are_not_shown),
          TEST_ENTRY(findings_without_a_source_have_no_line),
          TEST_ENTRY(the_first_twenty_places_are_kept_in_order),
          TEST_ENTRY(missing_memory_for_a_finding_is_reported),
          TEST_ENTRY(near_names_are_suggested_and_far_ones_not))
