/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests parts of the command that golden tests do not reach: failed
 * allocations while reading, and functions on words. */
#include "cli/text.h"
#include "io/json_out.h"
#include "plan/read_plan.h"
#include "plan/svg.h"
#include "support/check.h"

/* Reads @p in with the allocator failing at its nth call, for every n. */
static long sweep_reader(bool (*read)(const input *, vyre_arena *, problem *),
                         const char *text) {
  input in = {.label = "sweep", .text = text, .length = strlen(text)};
  for (long n = 0; n < 1000; n++) {
    test_heap heap = {.left = n};
    vyre_arena arena;
    problem wrong = {0};
    vyre_arena_init(&arena, test_heap_allocator(&heap));
    bool fine = read(&in, &arena, &wrong);
    vyre_arena_deinit(&arena);
    CHECK_U64(heap.live_bytes, 0);
    if (fine) return n;
    CHECK_TEXT(wrong.kind, "storage_reserve_failed");
    CHECK(wrong.message[0] && wrong.fix[0]);
  }
  CHECK(!"the sweep ended without a success");
  return 0;
}

static bool read_frontier(const input *in, vyre_arena *arena, problem *wrong) {
  vyre_frontier_desc desc;
  return read_frontier_json(in, arena, &desc, wrong);
}

static bool read_bindings(const input *in, vyre_arena *arena, problem *wrong) {
  bindings_input bindings;
  return read_bindings_json(in, arena, &bindings, wrong);
}

static bool read_intervals(const input *in, vyre_arena *arena, problem *wrong) {
  place_input place;
  return read_place(in, arena, &place, wrong);
}

enum { MANY = 2000 };

/* Builds @p head, @p item repeated with commas, @p tail. */
static const char *repeat(const char *head, const char *item,
                          const char *between, const char *tail) {
  static char text[MANY * 128];
  char *to = text;
  to += sprintf(to, "%s", head);
  for (int i = 0; i < MANY; i++) {
    to += sprintf(to, "%s%s", i ? between : "", item);
  }
  sprintf(to, "%s", tail);
  return text;
}

TEST(frontier_reader_survives_every_failed_allocation) {
  const char *text = repeat(
      "{\"resident_graph_bytes\":0,\"budget_bytes\":9,\"readback_bytes\":0,"
      "\"dependencies\":[],\"waves\":[",
      "[1,2,3]", ",", "]}");
  CHECK(sweep_reader(read_frontier, text) > 3);
}

TEST(bindings_reader_survives_every_failed_allocation) {
  const char *text = repeat("{\"buffers\":[",
                            "{\"name\":\"\\u0061b\",\"binding\":1,\"access\":"
                            "\"read\",\"element\":\"u8\"}",
                            ",", "],\"input_lengths\":[1,2,{\"bytes\":3}]}");
  CHECK(sweep_reader(read_bindings, text) > 3);
}

TEST(place_readers_survive_every_failed_allocation) {
  const char *text = repeat(
      "{\"intervals\":[",
      "{\"id\":\"a\\u0062\",\"size\":1,\"first_group\":0,\"last_group\":1}",
      ",", "]}");
  CHECK(sweep_reader(read_intervals, text) > 3);
  text = repeat("id,lower,upper,size\n", "\"a\"\"b\",0,1,2", "\n", "\n");
  CHECK(sweep_reader(read_intervals, text) > 3);
}

/* An escape in a string makes YAJL grow a buffer. */
TEST(the_parser_reports_missing_memory) {
  const char *text =
      repeat("{\"buffers\":[{\"name\":\"", "0123456789\\n", "",
             "\",\"binding\":1,\"access\":\"read\",\"element\":\"u8\"}]}");
  input in = {.label = "long", .text = text, .length = strlen(text)};
  bool grew = false;
  for (long n = 0; n < 40; n++) {
    test_heap heap = {.left = n};
    vyre_arena arena;
    problem wrong = {0};
    vyre_arena_init(&arena, test_heap_allocator(&heap));
    CHECK(!read_bindings(&in, &arena, &wrong)); /* newlines in a name */
    grew = grew || strcmp(wrong.kind, "invalid_input") == 0;
    vyre_arena_deinit(&arena);
    CHECK_U64(heap.live_bytes, 0);
  }
  CHECK(grew);
}

TEST(numbers_are_whole_and_exact) {
  static const struct {
    const char *text;
    bool good;
    uint64_t value;
  } cases[] = {
      {"0", true, 0},
      {"18446744073709551615", true, UINT64_MAX},
      {"18446744073709551616", false, 0},
      {"184467440737095516150", false, 0},
      {"007", true, 7},
      {"", false, 0},
      {"-1", false, 0},
      {"+1", false, 0},
      {" 1", false, 0},
      {"1.0", false, 0},
      {"1e3", false, 0},
      {"0x1", false, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t value = 0;
    CHECK(parse_u64(cases[i].text, strlen(cases[i].text), &value) ==
          cases[i].good);
    CHECK_U64(value, cases[i].value);
  }
}

TEST(misspelled_words_get_a_suggestion) {
  static const char *const names[] = {"--initial", "--capacity", "--budget"};
  CHECK_TEXT(nearest_word("--inital", 8, names, 3), "--initial");
  CHECK_TEXT(nearest_word("--budgte", 8, names, 3), "--budget");
  CHECK(!nearest_word("--x", 3, names, 3));
  CHECK(!nearest_word("", 0, names, 3));
  char word[200];
  memset(word, 'x', sizeof word);
  CHECK(!nearest_word(word, sizeof word, names, 3));
}

TEST(utf8_is_strict) {
  static const struct {
    const char *text;
    size_t size;
    uint32_t code_point;
  } cases[] = {
      {"a", 1, 'a'},
      {"\xC3\xA4", 2, 0xE4},
      {"\xE2\x82\xAC", 3, 0x20AC},
      {"\xF0\x9F\x98\x80", 4, 0x1F600},
      {"\xF4\x8F\xBF\xBF", 4, 0x10FFFF},
      {"\x80", 0, 0},             /* continuation first */
      {"\xC0\x80", 0, 0},         /* overlong */
      {"\xE0\x80\x80", 0, 0},     /* overlong */
      {"\xED\xA0\x80", 0, 0},     /* surrogate */
      {"\xF4\x90\x80\x80", 0, 0}, /* above U+10FFFF */
      {"\xE2\x82", 0, 0},         /* cut */
      {"\xFF", 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t code_point = 0;
    CHECK_U64(utf8_next(cases[i].text, strlen(cases[i].text), &code_point),
              cases[i].size);
    CHECK_U64(code_point, cases[i].code_point);
  }
}

TEST(shown_text_is_safe_and_fits) {
  char buffer[8];
  show_into(buffer, sizeof buffer, "a\033b", 3);
  CHECK_TEXT(buffer, "a\\x1bb");
  show_into(buffer, sizeof buffer, "1234567", 7);
  CHECK_TEXT(buffer, "1234567");
  show_into(buffer, sizeof buffer, "12345678", 8);
  CHECK_TEXT(buffer, "1234...");
  show_into(buffer, sizeof buffer, "123\xE2\x82\xAC\xE2\x82\xAC", 9);
  CHECK_TEXT(buffer, "123...");
  show_into(buffer, sizeof buffer, "", 0);
  CHECK_TEXT(buffer, "");
}

TEST(json_strings_are_escaped) {
  sink out = {0};
  json_out json = {.out = &out};
  const char text[] = "a\"\\\n\t\x01\x7F\xC2\x85\xFFz";
  json_string(&json, NULL, text, sizeof text - 1);
  sink_bytes(&out, "", 1);
  CHECK_TEXT(out.data, "\"a\\\"\\\\\\n\\t\\u0001\\u007f\\u0085\\ufffdz\"");
  sink_deinit(&out);
}

TEST(sizes_read_well) {
  static const struct {
    uint64_t bytes;
    const char *text;
  } cases[] = {
      {0, "0 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {1536, "1.5 KiB"},
      {1000000, "977 KiB"},
      {UINT64_C(12) << 20, "12 MiB"},
      {UINT64_MAX, "16 EiB"},
  };
  char buffer[SVG_SIZE_TEXT];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_TEXT(svg_size(cases[i].bytes, buffer), cases[i].text);
  }
}

TEST_MAIN(TEST_ENTRY(frontier_reader_survives_every_failed_allocation),
          TEST_ENTRY(bindings_reader_survives_every_failed_allocation),
          TEST_ENTRY(place_readers_survive_every_failed_allocation),
          TEST_ENTRY(the_parser_reports_missing_memory),
          TEST_ENTRY(numbers_are_whole_and_exact),
          TEST_ENTRY(misspelled_words_get_a_suggestion),
          TEST_ENTRY(utf8_is_strict), TEST_ENTRY(shown_text_is_safe_and_fits),
          TEST_ENTRY(json_strings_are_escaped), TEST_ENTRY(sizes_read_well))
