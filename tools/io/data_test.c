/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Values as text, .npy files, specs of data, and pictures. */
#include <math.h>
#include <stdlib.h>

#include "io/data_spec.h"
#include "io/element_text.h"
#include "io/npy.h"
#include "io/png.h"
#include "support/check.h"

/* --- values ------------------------------------------------------------------*/

static const char *format(vyre_element element, const unsigned char *bytes) {
  static char text[64];
  sink out = {0};
  element_format(element, bytes, &out);
  CHECK(out.length < sizeof text);
  memcpy(text, out.data, out.length);
  text[out.length] = '\0';
  sink_deinit(&out);
  return text;
}

TEST(every_half_reads_back_as_itself) {
  static const struct {
    vyre_element element;
    unsigned infinity;
  } kinds[] = {{VYRE_ELEMENT_F16, 0x7C00}, {VYRE_ELEMENT_BF16, 0x7F80}};
  for (size_t k = 0; k < 2; k++) {
    for (unsigned bits = 0; bits < 65536; bits++) {
      unsigned char bytes[8] = {(unsigned char)bits,
                                (unsigned char)(bits >> 8)};
      unsigned char again[8] = {0};
      const char *text = format(kinds[k].element, bytes);
      CHECK(element_parse(kinds[k].element, text, strlen(text), again));
      if ((bits & 0x7FFF) > kinds[k].infinity) {
        CHECK_TEXT(text, "nan");
      } else {
        CHECK(memcmp(bytes, again, 2) == 0);
      }
    }
  }
}

/* f16 by what the format says, not by what the code does. */
static double half_value(unsigned bits) {
  int exponent = (int)(bits >> 10 & 31);
  double part = bits & 1023;
  double size = exponent ? pow(2, exponent - 15) * (1 + part / 1024)
                         : pow(2, -14) * (part / 1024);
  return bits & 0x8000 ? -size : size;
}

/* The nearest half of all, the even one of two. 65520 and above is infinity. */
static unsigned nearest_half(double value) {
  unsigned best = 0;
  double distance = HUGE_VAL;
  if (fabs(value) >= 65520) return value < 0 ? 0xFC00 : 0x7C00;
  unsigned sign = signbit(value) ? 0x8000 : 0;
  for (unsigned bits = 0; bits < 0x7C00; bits++) {
    double d = fabs(half_value(bits) - fabs(value));
    if (d < distance || (d == distance && !(bits & 1))) {
      best = bits;
      distance = d;
    }
  }
  return best | sign;
}

TEST(text_rounds_to_the_nearest_half) {
  uint64_t state = 7;
  for (int i = 0; i < 400; i++) {
    char text[64];
    double size = ldexp((double)random_below(&state, 1 << 20),
                        (int)random_below(&state, 36) - 40);
    if (size >= 65520) continue;
    snprintf(text, sizeof text, "%s%.17g", i & 1 ? "-" : "", size);
    unsigned char bytes[8];
    CHECK(element_parse(VYRE_ELEMENT_F16, text, strlen(text), bytes));
    CHECK_U64(bytes[0] | bytes[1] << 8, nearest_half(i & 1 ? -size : size));
  }
}

TEST(floats_read_back_as_themselves) {
  uint64_t state = 3;
  for (int i = 0; i < 20000; i++) {
    uint64_t bits = random_next(&state);
    unsigned char bytes[8], again[8];
    memcpy(bytes, &bits, 8);
    const char *text = format(VYRE_ELEMENT_F64, bytes);
    CHECK(element_parse(VYRE_ELEMENT_F64, text, strlen(text), again));
    CHECK(memcmp(bytes, again, 8) == 0 || strcmp(text, "nan") == 0);
    text = format(VYRE_ELEMENT_F32, bytes);
    CHECK(element_parse(VYRE_ELEMENT_F32, text, strlen(text), again));
    CHECK(memcmp(bytes, again, 4) == 0 || strcmp(text, "nan") == 0);
  }
}

TEST(values_that_fit_and_values_that_do_not) {
  static const struct {
    vyre_element element;
    const char *text, *shown; /* NULL: refused */
  } cases[] = {
      {VYRE_ELEMENT_U8, "255", "255"},
      {VYRE_ELEMENT_U8, "256", NULL},
      {VYRE_ELEMENT_U8, "-1", NULL},
      {VYRE_ELEMENT_U8, "-0", "0"},
      {VYRE_ELEMENT_U8, "0xff", "255"},
      {VYRE_ELEMENT_U8, "0b101", "5"},
      {VYRE_ELEMENT_U8, "0b102", NULL},
      {VYRE_ELEMENT_U8, "1.0", NULL},
      {VYRE_ELEMENT_U8, "", NULL},
      {VYRE_ELEMENT_U8, "0x", NULL},
      {VYRE_ELEMENT_U8, " 1", NULL},
      {VYRE_ELEMENT_I8, "-128", "-128"},
      {VYRE_ELEMENT_I8, "128", NULL},
      {VYRE_ELEMENT_I8, "-129", NULL},
      {VYRE_ELEMENT_I16, "-32768", "-32768"},
      {VYRE_ELEMENT_U16, "65536", NULL},
      {VYRE_ELEMENT_I32, "2147483647", "2147483647"},
      {VYRE_ELEMENT_I32, "2147483648", NULL},
      {VYRE_ELEMENT_U32, "4294967296", NULL},
      {VYRE_ELEMENT_I64, "-9223372036854775808", "-9223372036854775808"},
      {VYRE_ELEMENT_I64, "9223372036854775808", NULL},
      {VYRE_ELEMENT_U64, "18446744073709551615", "18446744073709551615"},
      {VYRE_ELEMENT_U64, "18446744073709551616", NULL},
      {VYRE_ELEMENT_BOOL, "true", "true"},
      {VYRE_ELEMENT_BOOL, "0", "false"},
      {VYRE_ELEMENT_BOOL, "2", NULL},
      {VYRE_ELEMENT_BYTES, "65", "65"},
      {VYRE_ELEMENT_F32, "0.1", "0.1"},
      {VYRE_ELEMENT_F32, "1e39", NULL},
      {VYRE_ELEMENT_F32, "16777217", "16777216"},
      {VYRE_ELEMENT_F32, "inf", "inf"},
      {VYRE_ELEMENT_F32, "-inf", "-inf"},
      {VYRE_ELEMENT_F32, "nan", "nan"},
      {VYRE_ELEMENT_F32, "infinity", NULL},
      {VYRE_ELEMENT_F32, "0x1.8p3", "12"},
      {VYRE_ELEMENT_F32, "1e-45", "1e-45"},
      {VYRE_ELEMENT_F32, "-0", "-0"},
      {VYRE_ELEMENT_F32, "1.5x", NULL},
      {VYRE_ELEMENT_F32, "e", NULL},
      {VYRE_ELEMENT_F64, "0.1", "0.1"},
      {VYRE_ELEMENT_F64, "1e400", NULL},
      {VYRE_ELEMENT_F16, "65504", "65504"},
      {VYRE_ELEMENT_F16, "65520", NULL},
      {VYRE_ELEMENT_F16, "6e-8", "6e-08"},
      {VYRE_ELEMENT_BF16, "3.4e38", NULL},
      {VYRE_ELEMENT_BF16, "1.5", "1.5"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    unsigned char bytes[8];
    bool fine = element_parse(cases[i].element, cases[i].text,
                              strlen(cases[i].text), bytes);
    if (fine != (cases[i].shown != NULL)) printf("    '%s'\n", cases[i].text);
    CHECK(fine == (cases[i].shown != NULL));
    if (fine) CHECK_TEXT(format(cases[i].element, bytes), cases[i].shown);
  }
}

TEST(long_text_is_refused_as_a_value) {
  char text[200];
  unsigned char bytes[8];
  memset(text, '0', sizeof text);
  CHECK(!element_parse(VYRE_ELEMENT_U32, text, sizeof text, bytes));
  CHECK(!element_parse(VYRE_ELEMENT_U32, "1\0002", 3, bytes));
}

TEST(random_is_splitmix64) {
  unsigned char bytes[8];
  uint64_t bits;
  element_random(VYRE_ELEMENT_U64, 0, 0, bytes);
  memcpy(&bits, bytes, 8);
  CHECK_U64(bits, 0xE220A8397B1DCDAFu); /* as published with the generator */
  element_random(VYRE_ELEMENT_U64, 0, 1, bytes);
  memcpy(&bits, bytes, 8);
  CHECK_U64(bits, 0x6E789E6AA1B965F4u);
  element_random(VYRE_ELEMENT_U8, 0, 0, bytes);
  CHECK_U64(bytes[0], 0xE2);
  for (uint64_t i = 0; i < 10000; i++) {
    float f;
    element_random(VYRE_ELEMENT_F32, 1, i, bytes);
    memcpy(&f, bytes, 4);
    CHECK(f >= 0 && f < 1);
  }
}

/* --- .npy --------------------------------------------------------------------*/

/* A file with that header and @p data zero bytes behind it. */
static input npy_file(const char *header, size_t data) {
  static char text[1024];
  size_t length = strlen(header);
  memcpy(text, "\x93NUMPY\1\0", 8);
  text[8] = (char)length;
  text[9] = 0;
  memcpy(text + 10, header, length);
  memset(text + 10 + length, 0, data);
  return (input){.label = "x.npy", .text = text, .length = 10 + length + data};
}

static bool read_npy(const input *in, vyre_element element, uint64_t *count,
                     problem *wrong) {
  const unsigned char *data;
  vyre_buffer_decl buffer = {.name = "x", .element = element};
  return npy_read(in, &buffer, &data, count, wrong);
}

TEST(npy_headers_that_are_fine) {
  static const struct {
    const char *header;
    vyre_element element;
    size_t bytes;
    uint64_t count;
  } cases[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n",
       VYRE_ELEMENT_F32, 12, 3},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
       VYRE_ELEMENT_F32, 24, 6},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n",
       VYRE_ELEMENT_F32, 4, 1},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (3,), }\n",
       VYRE_ELEMENT_F32, 12, 3},
      {"{'shape':(0,5),'fortran_order':False,\"descr\":\"|u1\"}",
       VYRE_ELEMENT_U8, 0, 0},
      {"{'descr': '|u1', 'fortran_order': False, 'shape': (4,)}",
       VYRE_ELEMENT_BYTES, 4, 4},
      {"{'descr': '<V2', 'fortran_order': False, 'shape': (4,)}",
       VYRE_ELEMENT_BF16, 8, 4},
      {"{'descr': '|b1', 'fortran_order': False, 'shape': (4L,)}",
       VYRE_ELEMENT_BOOL, 4, 4},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    problem wrong = {0};
    uint64_t count = 99;
    input in = npy_file(cases[i].header, cases[i].bytes);
    if (!read_npy(&in, cases[i].element, &count, &wrong)) {
      printf("    %s: %s\n", cases[i].header, wrong.message);
    }
    CHECK(!wrong.kind);
    CHECK_U64(count, cases[i].count);
  }
}

TEST(npy_headers_that_are_not) {
  static const struct {
    const char *header, *part;
    size_t bytes;
  } cases[] = {
      {"{'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
       "buffer 'x' is f32 ('<f4'); the file holds '<f8'", 24},
      {"{'descr': '>f4', 'fortran_order': False, 'shape': (3,)}", "big endian",
       12},
      {"{'descr': '=f4', 'fortran_order': False, 'shape': (3,)}",
       "the file holds '=f4'", 12},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}",
       "Fortran order", 24},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
       "declares 3 elements of 4 bytes, but 11 bytes follow", 11},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
       "but 13 bytes follow", 13},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "not a tuple",
       12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "not a tuple",
       12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
       "extent of the shape", 12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,", "shape", 12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 3)}",
       "shape is not terminated", 12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(4294967296,4294967296,4294967296)}",
       "too many elements", 12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(4611686018427387904,)}",
       "declares 4611686018427387904 elements", 12},
      {"{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}", "fortran_order",
       12},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
       "quoted word", 12},
      {"{'descr': '<f4', 'descr': '<f4', 'shape': (3,)}", "key twice", 12},
      {"{'descr': '<f4', 'shape': (3,)}", "lacks a key", 12},
      {"{'descr': '<f4', 'order': 'C'}", "unknown key", 12},
      {"{'descr' '<f4'}", "colon", 12},
      {"{'descr: <f4}", "is not terminated", 12},
      {"{'descr': '<f4' 'shape': (3,)}", "header is not terminated", 12},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
       "text follows the header", 12},
      {"", "not a dictionary", 12},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    problem wrong = {0};
    uint64_t count;
    input in = npy_file(cases[i].header, cases[i].bytes);
    CHECK(!read_npy(&in, VYRE_ELEMENT_F32, &count, &wrong));
    CHECK_HAS(wrong.message, cases[i].part);
    CHECK_HAS(wrong.message, "buffer 'x'");
    CHECK(wrong.fix[0] && wrong.file);
  }
}

TEST(npy_files_cut_short_anywhere) {
  input whole =
      npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 12);
  for (size_t length = 0; length < whole.length; length++) {
    problem wrong = {0};
    uint64_t count;
    input in = {.label = "x.npy", .text = whole.text, .length = length};
    CHECK(!read_npy(&in, VYRE_ELEMENT_F32, &count, &wrong));
    CHECK(wrong.message[0] && wrong.fix[0]);
  }
}

TEST(npy_versions_and_header_lengths) {
  static char text[70000];
  problem wrong = {0};
  uint64_t count;
  static const char begin[] = {'\x93', 'N', 'U', 'M', 'P', 'Y',
                               2,      0,   0,   0,   1,   0};
  static const char header[] =
      "{'descr':'<f4','fortran_order':False,'shape':(0,)}";
  memset(text, ' ', sizeof text);
  memcpy(text, begin, sizeof begin); /* says 65536, the most */
  memcpy(text + sizeof begin, header, sizeof header - 1);
  input in = {.label = "x.npy", .text = text, .length = 12 + 65536};
  CHECK(read_npy(&in, VYRE_ELEMENT_F32, &count, &wrong));
  text[8] = 1;
  CHECK(!read_npy(&in, VYRE_ELEMENT_F32, &count, &wrong));
  CHECK_HAS(wrong.message, "the maximum is 65536");
  wrong = (problem){0};
  memset(text + 8, 0xFF, 4);
  CHECK(!read_npy(&in, VYRE_ELEMENT_F32, &count, &wrong));
  CHECK_HAS(wrong.message, "the maximum is 65536");
  wrong = (problem){0};
  text[6] = 4;
  CHECK(!read_npy(&in, VYRE_ELEMENT_F32, &count, &wrong));
  CHECK_HAS(wrong.message, "version");
}

TEST(npy_headers_we_write_are_ones_we_read) {
  for (int e = 0; e < VYRE_ELEMENT_COUNT; e++) {
    sink out = {0};
    problem wrong = {0};
    uint64_t count = 99;
    vyre_element element = (vyre_element)e;
    npy_put_header(element, 3, &out);
    CHECK_U64(out.length % 64, 0);
    char zeros[3 * 576] = {0};
    sink_bytes(&out, zeros, 3 * element_bytes(element));
    input in = {.label = "x", .text = out.data, .length = out.length};
    CHECK(read_npy(&in, element, &count, &wrong));
    CHECK_U64(count, 3);
    sink_deinit(&out);
  }
  sink out = {0};
  npy_put_header(VYRE_ELEMENT_F64, UINT64_MAX, &out);
  CHECK_U64(out.length, 128);
  sink_deinit(&out);
}

/* --- specs -------------------------------------------------------------------*/

TEST(specs_survive_every_failed_allocation) {
  static const char *const specs[] = {"zeros:4000", "iota:4000", "fill:1:4000",
                                      "random:1:4000", "values:1,2,3,4,5"};
  vyre_buffer_decl buffer = {.name = "x", .element = VYRE_ELEMENT_U32};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    test_heap heap = {.left = 0};
    vyre_arena arena;
    problem wrong = {0};
    buffer_data data;
    vyre_arena_init(&arena, test_heap_allocator(&heap));
    CHECK(!data_read(specs[i], &buffer, &arena, &data, &wrong));
    CHECK_TEXT(wrong.kind, "storage_reserve_failed");
    heap.left = -1;
    wrong = (problem){0};
    CHECK(data_read(specs[i], &buffer, &arena, &data, &wrong));
    data_deinit(&data);
    vyre_arena_deinit(&arena);
    CHECK_U64(heap.live_bytes, 0);
  }
}

TEST(specs_that_are_too_large_are_refused_at_once) {
  static const char *const specs[] = {
      "zeros:4294967296", "iota:18446744073709551615", "fill:1:536870913",
      "random:1:4000000000"};
  vyre_buffer_decl buffer = {.name = "x", .element = VYRE_ELEMENT_U32};
  for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
    vyre_arena arena = {0};
    problem wrong = {0};
    buffer_data data;
    CHECK(!data_read(specs[i], &buffer, &arena, &data, &wrong));
    CHECK_HAS(wrong.message, "buffer 'x'");
    CHECK_HAS(wrong.message, "2 GiB");
    CHECK_U64(vyre_arena_footprint(&arena), 0);
    vyre_arena_deinit(&arena);
  }
}

/* --- pictures ----------------------------------------------------------------*/

/* A reader of the fixed code, from the standard's tables. */
typedef struct bits {
  const unsigned char *data;
  size_t at;
} bits;

static unsigned take(bits *b, unsigned count) {
  unsigned value = 0;
  for (unsigned i = 0; i < count; i++, b->at++) {
    value |= (unsigned)(b->data[b->at / 8] >> (b->at % 8) & 1) << i;
  }
  return value;
}

static unsigned take_symbol(bits *b) {
  unsigned code = 0;
  for (int i = 0; i < 7; i++) code = code << 1 | take(b, 1);
  if (code <= 23) return code + 256;
  code = code << 1 | take(b, 1);
  if (code >= 48 && code <= 191) return code - 48;
  if (code >= 192 && code <= 199) return code - 192 + 280;
  code = code << 1 | take(b, 1);
  CHECK(code >= 400 && code <= 511);
  return code - 400 + 144;
}

static size_t inflate(const unsigned char *data, unsigned char *out) {
  static const unsigned length_base[] = {
      3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
      31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const unsigned length_extra[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1,
                                          1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                          4, 4, 4, 4, 5, 5, 5, 5, 0};
  bits b = {data, 0};
  size_t size = 0;
  CHECK_U64(take(&b, 3), 3);
  for (;;) {
    unsigned symbol = take_symbol(&b);
    if (symbol == 256) return size;
    if (symbol < 256) {
      out[size++] = (unsigned char)symbol;
      continue;
    }
    unsigned length =
        length_base[symbol - 257] + take(&b, length_extra[symbol - 257]);
    unsigned code = 0;
    for (int i = 0; i < 5; i++) code = code << 1 | take(&b, 1);
    unsigned extra = code < 4 ? 0 : code / 2 - 1;
    unsigned base = code < 4 ? code + 1 : ((2 + code % 2) << extra) + 1;
    size_t distance = base + take(&b, extra);
    CHECK(distance <= size);
    for (unsigned i = 0; i < length; i++, size++)
      out[size] = out[size - distance];
  }
}

static void check_picture(uint32_t width, uint32_t height, uint32_t channels,
                          unsigned colours) {
  size_t stride = (size_t)width * channels;
  unsigned char *pixels = malloc(stride * height);
  unsigned char *rows = malloc((stride + 1) * height + 1);
  uint64_t state = width * 7 + colours;
  sink out = {0};
  for (size_t i = 0; i < stride * height; i++) {
    pixels[i] =
        (unsigned char)(colours > 1 ? random_below(&state, colours) : 9);
  }
  png_put(pixels, &(image_shape){width, height, channels}, 8, &out);
  CHECK(!out.failed && memcmp(out.data, "\x89PNG\r\n\x1a\n", 8) == 0);
  /* signature 8, IHDR 25, length and type of IDAT 8, zlib header 2 */
  CHECK_U64(inflate((const unsigned char *)out.data + 43, rows),
            (stride + 1) * height);
  for (uint32_t y = 0; y < height; y++) {
    CHECK_U64(rows[y * (stride + 1)], 0);
    CHECK(memcmp(rows + y * (stride + 1) + 1, pixels + y * stride, stride) ==
          0);
  }
  CHECK(memcmp(out.data + out.length - 8, "IEND\xae\x42\x60\x82", 8) == 0);
  sink_deinit(&out);
  free(pixels);
  free(rows);
}

TEST(pictures_hold_their_pixels) {
  check_picture(1, 1, 1, 1);
  check_picture(1, 1, 3, 256);
  check_picture(300, 20, 3, 1);
  check_picture(64, 64, 1, 2);
  check_picture(64, 64, 3, 256);
  check_picture(20000, 3, 3, 2);
  check_picture(33000, 2, 1, 3);
}

TEST_MAIN(TEST_ENTRY(every_half_reads_back_as_itself),
          TEST_ENTRY(text_rounds_to_the_nearest_half),
          TEST_ENTRY(floats_read_back_as_themselves),
          TEST_ENTRY(values_that_fit_and_values_that_do_not),
          TEST_ENTRY(long_text_is_refused_as_a_value),
          TEST_ENTRY(random_is_splitmix64),
          TEST_ENTRY(npy_headers_that_are_fine),
          TEST_ENTRY(npy_headers_that_are_not),
          TEST_ENTRY(npy_files_cut_short_anywhere),
          TEST_ENTRY(npy_versions_and_header_lengths),
          TEST_ENTRY(npy_headers_we_write_are_ones_we_read),
          TEST_ENTRY(specs_survive_every_failed_allocation),
          TEST_ENTRY(specs_that_are_too_large_are_refused_at_once),
          TEST_ENTRY(pictures_hold_their_pixels))
