/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/lex.h"

#include "lang/literal.h"
#include "support/check.h"

/* Returns the kinds of a text's tokens, as text: "let NAME = NUMBER ;" */
static const char *kinds_of(const char *text, char *out, size_t size) {
  vyre__symbols symbols;
  vyre__lexer lexer;
  size_t length = 0;
  CHECK(vyre__symbols_init(&symbols, (vyre_allocator){0}));
  vyre__lexer_init(&lexer, text, (uint32_t)strlen(text), &symbols);
  out[0] = '\0';
  for (;;) {
    vyre__token token = vyre__lex(&lexer);
    if (token.kind == VYRE__T_END) break;
    const char *word = vyre__token_text(token.kind);
    if (token.kind == VYRE__T_NAME) word = "NAME";
    if (token.kind == VYRE__T_NUMBER) word = "NUMBER";
    if (token.kind == VYRE__T_STRING) word = "STRING";
    if (token.kind == VYRE__T_BAD) word = "BAD";
    length += (size_t)snprintf(out + length, size - length, "%s%s",
                               length ? " " : "", word);
    CHECK(length < size);
  }
  vyre__symbols_deinit(&symbols);
  return out;
}

TEST(texts_become_tokens) {
  static const struct {
    const char *text, *kinds;
  } cases[] = {
      {"", ""},
      {" \t\r\n", ""},
      {"let x = 1;", "let NAME = NUMBER ;"},
      {"kernel fn const kernels", "kernel fn const NAME"},
      {"a<<=b>>=c<=d>=e==f!=g",
       "NAME <<= NAME >>= NAME <= NAME >= NAME == "
       "NAME != NAME"},
      {"a<<b>>c<d>e=f!g", "NAME << NAME >> NAME < NAME > NAME = NAME ! NAME"},
      {"++ -- -> - > && || & | ^ ~", "++ -- -> - > && || & | ^ ~"},
      {"+= -= *= /= %= &= |= ^=", "+= -= *= /= %= &= |= ^="},
      {"( ) [ ] { } ; , : . @ ? * / %", "( ) [ ] { } ; , : . @ ? * / %"},
      {"1 1.5 .5 1e3 1e-3 0x1p-3 0xE+1 1_0u",
       "NUMBER NUMBER NUMBER NUMBER NUMBER NUMBER NUMBER + NUMBER NUMBER"},
      {"global_id.x", "NAME . NAME"},
      {"a // b\nc /* d \n e */ f", "NAME NAME NAME"},
      {"\"text \\\" more\" x", "STRING NAME"},
      {"\"open\nx", "BAD NAME"},
      {"'a' x", "BAD NAME"},
      {"'", "BAD"},
      {"a /* open", "NAME BAD"},
      {"#define X\ny", "BAD NAME"},
      {"a $ \xC3\xA9 b", "NAME BAD BAD NAME"},
      {"\xEF\xBB\xBFlet", "let"},
  };
  char out[512];
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_TEXT(kinds_of(cases[i].text, out, sizeof out), cases[i].kinds);
  }
}

TEST(tokens_have_source_locations) {
  static const char text[] = "let\n  x /* a\nb */ = 1;";
  static const struct {
    uint32_t line, column, length;
  } want[] = {{1, 1, 3}, {2, 3, 1}, {3, 6, 1}, {3, 8, 1}, {3, 9, 1}};
  vyre__lexer lexer;
  vyre__lexer_init(&lexer, text, sizeof text - 1, NULL);
  for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
    vyre__token token = vyre__lex(&lexer);
    CHECK_U64(token.line, want[i].line);
    CHECK_U64(token.column, want[i].column);
    CHECK_U64(token.length, want[i].length);
  }
  CHECK_U64(vyre__lex(&lexer).kind, VYRE__T_END);
  CHECK_U64(vyre__lex(&lexer).kind, VYRE__T_END);
}

TEST(equal_names_have_one_symbol) {
  vyre__symbols symbols;
  vyre__lexer lexer;
  char text[64 * 1024];
  size_t length = 0;
  for (int iteration = 0; iteration < 2;
       iteration++) { /* enough to grow the table */
    for (int i = 0; i < 3000; i++) {
      length +=
          (size_t)snprintf(text + length, sizeof text - length, "name%d ", i);
    }
  }
  CHECK(vyre__symbols_init(&symbols, (vyre_allocator){0}));
  vyre__lexer_init(&lexer, text, (uint32_t)length, &symbols);
  uint32_t seen[3000];
  for (int i = 0; i < 3000; i++) seen[i] = vyre__lex(&lexer).symbol;
  for (int i = 0; i < 3000; i++) {
    CHECK_U64(vyre__lex(&lexer).symbol, seen[i]);
    CHECK(i == 0 || seen[i] != seen[i - 1]);
  }
  vyre__symbols_deinit(&symbols);
}

TEST(words_are_reserved) {
  CHECK(vyre__is_reserved("kernel", 6) && vyre__is_reserved("u32", 3));
  CHECK(vyre__is_reserved("fma", 3) && vyre__is_reserved("atomic_add", 10));
  CHECK(vyre__is_reserved("sin", 3) && vyre__is_reserved("bf16", 4));
  CHECK(vyre__is_reserved("as_f32", 6) && vyre__is_reserved("item", 4));
  CHECK(!vyre__is_reserved("output", 6) && !vyre__is_reserved("x", 1));
  CHECK(!vyre__is_reserved("load", 4) && !vyre__is_reserved("kerne", 5));
  CHECK(!vyre__is_reserved("over", 4) && !vyre__is_reserved("block", 5));
}

TEST(sources_are_checked) {
  static const struct {
    const char *text;
    size_t length;
    vyre__source_fault fault;
    size_t at;
  } cases[] = {
      {"", 0, VYRE__SOURCE_FINE, 0},
      {"a\tb\r\n", 5, VYRE__SOURCE_FINE, 0},
      {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, VYRE__SOURCE_FINE, 0},
      {"a\0b", 3, VYRE__SOURCE_NUL, 1},
      {"ab\xFF", 3, VYRE__SOURCE_UTF8, 2},
      {"\xC3", 1, VYRE__SOURCE_UTF8, 0},
      {"\xC0\x80", 2, VYRE__SOURCE_UTF8, 0},
      {"\xE0\x80\x80", 3, VYRE__SOURCE_UTF8, 0},
      {"\xED\xA0\x80", 3, VYRE__SOURCE_UTF8, 0},
      {"\xF4\x90\x80\x80", 4, VYRE__SOURCE_UTF8, 0},
      {"\xE2\x82\x41", 3, VYRE__SOURCE_UTF8, 0},
      {"x\x1B[0m", 5, VYRE__SOURCE_CONTROL, 1},
      {"x\x7F", 2, VYRE__SOURCE_CONTROL, 1},
      {"\xE2\x80\xAE", 3, VYRE__SOURCE_CONTROL, 0},
      {"\xEF\xBB\xBFx", 4, VYRE__SOURCE_FINE, 0},
      {"x\xEF\xBB\xBF", 4, VYRE__SOURCE_CONTROL, 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t at;
    CHECK_U64(vyre__source_check(cases[i].text, cases[i].length, &at),
              cases[i].fault);
    if (cases[i].fault) CHECK_U64(at, cases[i].at);
  }
}

/* A character whose bytes are in two blocks of the check. */
TEST(characters_may_cross_blocks) {
  static char text[8192];
  for (size_t at = 4090; at < 4100; at++) {
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < 4; i++) text[at + i] = "\xF0\x9F\x98\x80"[i];
    size_t fault;
    CHECK_U64(vyre__source_check(text, sizeof text, &fault), 0);
  }
}

static uint64_t bits_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static uint32_t bits_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static void check_float(const char *text) {
  vyre__number_token number;
  vyre__number_fault fault;
  CHECK(vyre__number_read(text, strlen(text), &number, &fault));
  CHECK(number.is_float);
  /* The C library rounds correctly in the C locale of the tests. */
  bool good = bits_f64(number.f64) == bits_f64(strtod(text, NULL)) &&
              bits_f32(number.f32) == bits_f32(strtof(text, NULL));
  if (!good) printf("    %s: %a %a\n", text, number.f64, (double)number.f32);
  CHECK(good);
}

TEST(floats_are_rounded_once) {
  static const char *const cases[] = {
      "0.0", "0e5", "1.0", "0.1", "1e22", "1e23", "123456789012345678.0",
      "3.4028234663852886e38", "3.4028235677973366e38", "3.4028235677973365e38",
      "1e39", "1.7976931348623157e308", "1.7976931348623159e308", "1e400",
      "1e99999", "1e-400", "1e-99999", "4.9e-324", "2.4703282292062327e-324",
      "2.4703282292062328e-324", "2.2250738585072011e-308", "1.4e-45",
      "7.006492321624085e-46", "7.0064923216240854e-46", "1.17549435e-38",
      "1.1754942807573643e-38",
      /* halfway between two floats, and slightly more: a double cannot tell */
      "1.00000005960464477539062500", "1.00000005960464477539062501",
      "1.0000001788139343261718750", "1.0000001788139343261718749999999999",
      "9007199254740993.0", "9007199254740992.999", "0x1p0", "0x1.8p3",
      "0x1.fffffep127", "0x1.ffffffp127", "0x1p-149", "0x1p-150",
      "0x1.fffffffffffffp1023", "0x1.fffffffffffff8p1023", "0x1p-1074",
      "0x1p-1075", "0x1.00000100000000000000000001p0", "0x.8p1",
      "0x123456789abcdef01p0", ".5", "5.", "1E+3", "1e-3"};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    check_float(cases[i]);
  }
}

/* Just above half of the smallest number: this C library returns 0. */
TEST(the_smallest_numbers_are_rounded_up) {
  vyre__number_token number;
  vyre__number_fault fault;
  CHECK(vyre__number_read("0x1.000001p-150", 15, &number, &fault));
  CHECK_U64(bits_f32(number.f32), 1);
  CHECK(vyre__number_read("0x1.0000000000001p-1075", 23, &number, &fault));
  CHECK_U64(bits_f64(number.f64), 1);
  CHECK(vyre__number_read("0x1p-1075", 9, &number, &fault));
  CHECK_U64(bits_f64(number.f64), 0);
}

TEST(random_floats_are_rounded_once) {
  uint64_t state = 12345;
  char text[80];
  for (int i = 0; i < 20000; i++) {
    uint64_t digits = random_next(&state) >> random_below(&state, 60);
    int exponent = (int)random_below(&state, 700) - 380;
    snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)digits,
             (unsigned long long)random_below(&state, 1000000), exponent);
    check_float(text);
    float narrow;
    uint32_t bits = (uint32_t)random_next(&state) & 0x7F7FFFFF;
    memcpy(&narrow, &bits, sizeof narrow);
    snprintf(text, sizeof text, "%.40e", (double)narrow * 1.00000003);
    check_float(text);
  }
}

TEST(numbers_have_types_and_limits) {
  static const struct {
    const char *text;
    int type; /* -1: not a number */
    uint64_t value;
  } cases[] = {
      {"0", VYRE_TYPE_VOID, 0},
      {"12", VYRE_TYPE_VOID, 12},
      {"1_000u", VYRE_TYPE_U32, 1000},
      {"7i", VYRE_TYPE_I32, 7},
      {"7ul", VYRE_TYPE_U64, 7},
      {"7l", VYRE_TYPE_I64, 7},
      {"0x1Fu", VYRE_TYPE_U32, 31},
      {"0b1010", VYRE_TYPE_VOID, 10},
      {"18446744073709551615", VYRE_TYPE_VOID, UINT64_MAX},
      {"18446744073709551616", -1, 0},
      {"0xFFFFFFFFFFFFFFFFul", VYRE_TYPE_U64, UINT64_MAX},
      {"0x1FFFFFFFFFFFFFFFF", -1, 0},
      {"017", -1, 0},
      {"1f", -1, 0},
      {"1U", -1, 0},
      {"1lu", -1, 0},
      {"1__0", -1, 0},
      {"1_", -1, 0},
      {"0x", -1, 0},
      {"0b2", -1, 0},
      {"", -1, 0},
      {"12abc", -1, 0},
      {"1.0x", -1, 0},
      {"1.2.3", -1, 0},
      {"1e", -1, 0},
      {"1e+", -1, 0},
      {"0x1.8", -1, 0},
      {"0x1p", -1, 0},
      {"1.0u", -1, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre__number_token number;
    vyre__number_fault fault = {NULL, NULL};
    bool good = vyre__number_read(cases[i].text, strlen(cases[i].text), &number,
                                  &fault);
    if (good != (cases[i].type >= 0)) printf("    %s\n", cases[i].text);
    CHECK(good == (cases[i].type >= 0));
    if (!good) CHECK(fault.message && fault.fix);
    if (!good) continue;
    CHECK(!number.is_float && (int)number.type == cases[i].type);
    CHECK_U64(number.integer, cases[i].value);
  }
}

TEST_MAIN(TEST_ENTRY(texts_become_tokens),
          TEST_ENTRY(tokens_have_source_locations),
          TEST_ENTRY(equal_names_have_one_symbol),
          TEST_ENTRY(words_are_reserved), TEST_ENTRY(sources_are_checked),
          TEST_ENTRY(characters_may_cross_blocks),
          TEST_ENTRY(floats_are_rounded_once),
          TEST_ENTRY(the_smallest_numbers_are_rounded_up),
          TEST_ENTRY(random_floats_are_rounded_once),
          TEST_ENTRY(numbers_have_types_and_limits))
