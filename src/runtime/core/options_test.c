/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of backend options: from a context or the environment to the device. */
#include <stdlib.h>

#include "hal/backend.h"
#include "support/check.h"

/* A backend with options, under the name of cpu. The context checks options
 * against the real cpu backend, so the ranges here lie within its ranges. */

static uint64_t seen_width, seen_threads, seen_level;

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  out->description = "for tests of options";
  return index == 0;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  (void)st;
  seen_width = vyre__device_option(device, "width", 4);
  seen_threads = vyre__device_option(device, "threads", 0);
  seen_level = vyre__device_option(device, "isa_level", 9);
  return VYRE_OK;
}

static void device_deinit(vyre_device *device) {
  (void)device;
}

static const vyre__option options[] = {
    {"width", 1, 16, "lanes"}, {"threads", 1, 1024, "of the pool"}, {0}};

static const vyre__backend backend = {.abi = VYRE__BACKEND_ABI,
                                      .struct_size = sizeof backend,
                                      .name = "cpu",
                                      .is_exact = true,
                                      .device_size = sizeof(vyre_device),
                                      .describe = describe,
                                      .device_init = device_init,
                                      .device_deinit = device_deinit,
                                      .options = options};

static vyre_code open_with(const char *text, vyre_status *st) {
  vyre_context *context;
  vyre_device *device;
  vyre_context_options o = {.cache_directory = "",
                            .trace_file = "",
                            .faults = "",
                            .backend_options = text};
  seen_width = seen_threads = 99;
  vyre_code code = vyre_context_create(&o, &context, st);
  if (code != VYRE_OK) {
    CHECK(!context);
    return code;
  }
  code = vyre__device_open_given(context, &backend, 0, NULL, &device, st);
  CHECK((device != NULL) == (code == VYRE_OK));
  vyre_device_release(device);
  vyre_context_release(context);
  return code;
}

TEST(a_device_gets_its_options_and_no_others) {
  static const struct {
    const char *text;
    uint64_t width, threads;
  } cases[] = {{"", 4, 0},
               {"cpu.width=8", 8, 0},
               {"cpu.threads=2,cpu.width=16", 16, 2},
               {"cpu.width=8,cpu.width=16", 16, 0}, /* the last one counts */
               {"cpu.width=auto", 4, 0},
               {"cpu.width=8,cpu.threads=2,cpu.width=auto", 4, 2},
               {"vulkan.staging=1", 4, 0}, /* of a backend that is not opened */
               {"vulkan.staging=1,cpu.width=1,", 1, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    CHECK_OK(open_with(cases[i].text, &st), st);
    CHECK_U64(seen_width, cases[i].width);
    CHECK_U64(seen_threads, cases[i].threads);
  }
}

TEST(invalid_options_are_refused_by_name) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"cpu.width", "invalid backend option 'cpu.width'"},
      {"width=8", "invalid backend option 'width=8'"},
      {".width=8", "invalid backend option"},
      {"cpu.=8", "invalid backend option"},
      {"cpu.width=", "is ''; expected a number from 0 to 32, or auto"},
      {"cpu.width=8x",
       "option 'width' of backend 'cpu' is '8x'; expected a number"},
      {"cpu.width=-8", "is '-8'; expected a number"},
      {"cpu.width=99999999999999999999",
       "is '99999999999999999999'; expected a number"},
      {"cpu.widt=x", "no option 'widt'"},
      {"other.width=x", "unknown backend 'other'"},
      {"cpu.width=8,,", "invalid backend option ','"},
      {"cpu.llvm=", "option 'llvm' of backend 'cpu' is a path of 0 bytes"},
      {"other.width=8", "unknown backend 'other'"},
      {"cp.width=8", "unknown backend 'cp'"},
      {"cpu.widt=8", "no option 'widt'; it has threads, width"},
      {"cpu.width=0", "is 0; expected 1 to 16"},
      {"cpu.width=32", "is 32; expected 1 to 16"},
      {"cpu.isa_level=1", "no option 'isa_level'; it has width, threads"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    CHECK_FAILS(open_with(cases[i].text, &st), st, VYRE_INVALID_ARGUMENT,
                VYRE_KIND_INVALID_ARGUMENT);
    CHECK_HAS(st.message, cases[i].says);
    CHECK(!strstr(st.message, "VYRE_OPTIONS"));
    CHECK_TEXT(st.field, "backend_options");
    CHECK_U64(seen_width, 99); /* device_init was not called */
  }
  char long_text[600];
  vyre_status st = {0};
  memset(long_text, 'x', sizeof long_text);
  long_text[sizeof long_text - 1] = '\0';
  CHECK_FAILS(open_with(long_text, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(status_number(&st, "bytes"), 599);
}

static uint64_t count_words(const char *text) {
  uint64_t words = 1;
  for (; *text; text++) words += *text == ' ';
  return words;
}

/* An enum is written as a name or as a number; both give the number. */
TEST(enum_options_take_names_and_numbers) {
  static const struct {
    const char *text;
    uint64_t value;
  } cases[] = {{"cpu.isa_level=all", 0},
               {"cpu.isa_level=sse4.2", 2},
               {"cpu.isa_level=avx2", 4},
               {"cpu.isa_level=3", 3},
               {"cpu.isa_level=avx,cpu.isa_level=auto", 9},
               {"vulkan.float_mode=soft", 9}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_context_options o = {.backend_options = cases[i].text};
    CHECK_OK(vyre_context_create(&o, &context, &st), st);
    CHECK_U64(vyre_context_option(context, "cpu", "isa_level", 9),
              cases[i].value);
    vyre_context_release(context);
  }
}

TEST(a_set_is_names_joined_by_plus_or_a_number) {
  static const struct {
    const char *text;
    uint64_t value;
  } cases[] = {{"cpu.passes_off=range-split", 1},
               {"cpu.passes_off=unroll-jam+range-split", 5},
               {"cpu.passes_off=loop-range+loop-range", 2},
               {"cpu.passes_off=6", 6},
               {"cpu.passes_off=0", 0},
               {"cpu.passes_off=all,cpu.passes_off=auto", 99},
               {"", 99}};
  static const char *const wrong[] = {"",       "build", "range-split+",
                                      "+range", "range", "99999999"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_context_options o = {.backend_options = cases[i].text};
    CHECK_OK(vyre_context_create(&o, &context, &st), st);
    CHECK_U64(vyre_context_option(context, "cpu", "passes_off", 99),
              cases[i].value);
    vyre_context_release(context);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[64];
    vyre_status st = {0};
    vyre_context *context;
    (void)snprintf(text, sizeof text, "cpu.passes_off=%s", wrong[i]);
    vyre_context_options o = {.backend_options = text};
    CHECK(vyre_context_create(&o, &context, &st) == VYRE_INVALID_ARGUMENT);
    CHECK(strstr(st.message, "expected names from: range-split loop-range"));
  }
}

/* The table of the opened backend counts, not the registered one. */
TEST(a_device_reads_enums_by_its_own_table) {
  static const vyre__option own[] = {
      {"isa_level", 0, 1, "level", VYRE_OPTION_ENUM, "avx2 all"}, {0}};
  static const struct {
    const char *text;
    uint64_t level;
  } cases[] = {{"cpu.isa_level=avx2", 0},
               {"cpu.isa_level=all", 1},
               {"cpu.isa_level=1", 1},
               {"cpu.isa_level=auto", 9},
               {"", 9}};
  vyre__backend other = backend;
  other.options = own;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_device *device;
    vyre_context_options o = {.backend_options = cases[i].text};
    CHECK_OK(vyre_context_create(&o, &context, &st), st);
    CHECK_OK(vyre__device_open_given(context, &other, 0, NULL, &device, &st),
             st);
    CHECK_U64(seen_level, cases[i].level);
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

TEST(the_llvm_option_overrides_the_variable) {
  static const struct {
    const char *text, *path; /* NULL: the backend searches for it */
  } cases[] = {{"", "from_environment"},
               {"cpu.llvm=from_option", "from_option"},
               {"cpu.llvm=auto", NULL},
               {"cpu.llvm=auto,cpu.llvm=from_option", "from_option"},
               {"cpu.llvm=from_option,cpu.llvm=auto", NULL},
               {"cpu.threads=2", "from_environment"}};
  CHECK(setenv("VYRE_LLVM", "from_environment", 1) == 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_context_options o = {.backend_options = cases[i].text};
    CHECK_OK(vyre_context_create(&o, &context, &st), st);
    const char *path = vyre__context_llvm(context);
    CHECK((path != NULL) == (cases[i].path != NULL));
    if (path) CHECK_TEXT(path, cases[i].path);
    vyre_context_release(context);
  }
  CHECK(unsetenv("VYRE_LLVM") == 0);
}

TEST(a_path_that_is_too_long_is_refused) {
  char text[400] = "cpu.llvm=";
  vyre_status st = {0};
  memset(text + 9, 'x', 256);
  CHECK_FAILS(open_with(text, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(status_number(&st, "bytes"), 256);
  CHECK(setenv("VYRE_LLVM", text + 9, 1) == 0);
  CHECK_FAILS(open_with(NULL, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  CHECK_TEXT(st.field, "VYRE_LLVM");
  CHECK(unsetenv("VYRE_LLVM") == 0);
}

TEST(options_are_listed_for_every_backend_that_has_any) {
  static const struct {
    const char *backend, *first; /* NULL: the backend has no options */
  } cases[] = {
      {"cpu", "threads"},  {"vulkan", "staging"}, /* also if it is not built */
      {"ref", "fallback"}, {"null", NULL},
      {"other", NULL},     {NULL, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_device_option o;
    size_t count = 0;
    while (vyre_device_option_at(cases[i].backend, count, &o)) {
      if (count == 0) CHECK_TEXT(o.name, cases[i].first);
      CHECK(o.min <= o.max && o.help[0]);
      if (o.type == VYRE_OPTION_NUMBER) {
        CHECK(!o.values || count_words(o.values) < o.max - o.min + 1);
      } else {
        CHECK((o.type != VYRE_OPTION_PATH) == (o.values != NULL));
        uint64_t words = o.values ? count_words(o.values) : 0;
        CHECK(o.type != VYRE_OPTION_ENUM || words == o.max - o.min + 1);
        CHECK(o.type != VYRE_OPTION_SET || o.max + 1 == UINT64_C(1) << words);
      }
      count++;
    }
    CHECK((count > 0) == (cases[i].first != NULL));
    CHECK(!vyre_device_option_at(cases[i].backend, count + 1, &o));
  }
  CHECK(!vyre_device_option_at("cpu", 0, NULL));
}

/* A context checks all options, also those of devices that are never opened. */
TEST(a_context_checks_the_options_of_all_backends) {
  static const struct {
    const char *text, *says;
  } cases[] = {{"ref.width=8", "backend 'ref' has no option 'width'"},
               {"cpu.width=8,null.width=8", "backend 'null' has no option"},
               {"cpu.colour=1", "backend 'cpu' has no option 'colour'; it has"},
               {"cpu.threads=2000", "is 2000; expected 0 to 1024"},
               {"cpu.isa_level=5", "is '5'; expected one of: all sse2"},
               {"cpu.isa_level=avx3", "is 'avx3'; expected one of: all sse2"},
               {"cpu.isa_level=avx2 ", "is 'avx2 '; expected one of"},
               {"vulkan.float_mode=sof", "is 'sof'; expected one of: native"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_context_options o = {.backend_options = cases[i].text};
    CHECK_FAILS(vyre_context_create(&o, &context, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK_HAS(st.message, cases[i].says);
    CHECK(!context);
  }
}

TEST(the_environment_can_set_options) {
  vyre_status st = {0};
  CHECK(setenv("VYRE_OPTIONS", "cpu.width=8", 1) == 0);
  CHECK_OK(open_with(NULL, &st), st);
  CHECK_U64(seen_width, 8);
  CHECK_OK(open_with("", &st), st);
  CHECK_U64(seen_width, 4);
  /* Options of the program override those of the environment. */
  CHECK_OK(open_with("cpu.threads=3", &st), st);
  CHECK(seen_width == 8 && seen_threads == 3);
  CHECK_OK(open_with("cpu.width=16", &st), st);
  CHECK_U64(seen_width, 16);
  CHECK(setenv("VYRE_OPTIONS", "cpu.width=8,", 1) == 0);
  CHECK_OK(open_with("cpu.threads=3", &st), st);
  CHECK(seen_width == 8 && seen_threads == 3);
  CHECK_FAILS(open_with("cpu.isa_level=1", &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT); /* the device checks it too */
  st = (vyre_status){0};
  CHECK(setenv("VYRE_OPTIONS", "cpu.width=8", 1) == 0);
  static const char one[] = "cpu.threads=1,";
  char text[600] = "";
  for (size_t at = 0; at < 500; at += sizeof one - 1) {
    snprintf(text + at, sizeof text - at, "%scpu.threads=1", one);
  }
  CHECK_FAILS(open_with(text, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT); /* both together are too long */
  CHECK_U64(status_number(&st, "bytes"), strlen(text) + 12);
  CHECK(unsetenv("VYRE_OPTIONS") == 0);
}

TEST(a_bad_environment_variable_is_named) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"cpu.width=3",
       "VYRE_OPTIONS: option 'width' of backend 'cpu' is '3'; expected one of: "
       "0 1 4 8 16 32"},
      {"vulkan.staging=9",
       "VYRE_OPTIONS: option 'staging' of backend 'vulkan'"},
      {"vulkan.push_constants=yes",
       "VYRE_OPTIONS: option 'push_constants' of backend 'vulkan' is "},
      {"cpu.colour=1", "VYRE_OPTIONS: backend 'cpu' has no option 'colour'"},
      {"other.width=8", "VYRE_OPTIONS: option 'other.width=8': unknown "},
      {"width", "VYRE_OPTIONS: invalid backend option 'width'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    CHECK(setenv("VYRE_OPTIONS", cases[i].text, 1) == 0);
    CHECK_FAILS(open_with(NULL, &st), st, VYRE_INVALID_ARGUMENT,
                VYRE_KIND_INVALID_ARGUMENT);
    CHECK_HAS(st.message, cases[i].says);
    CHECK_TEXT(st.field, "VYRE_OPTIONS");
    /* A later option does not correct it; an empty text ignores both. */
    CHECK_FAILS(open_with("vulkan.staging=1", &st), st, VYRE_INVALID_ARGUMENT,
                VYRE_KIND_INVALID_ARGUMENT);
    CHECK_TEXT(st.field, "VYRE_OPTIONS");
    CHECK_OK(open_with("", &st), st);
  }
  CHECK(unsetenv("VYRE_OPTIONS") == 0);
}

TEST_MAIN(TEST_ENTRY(a_device_gets_its_options_and_no_others),
          TEST_ENTRY(invalid_options_are_refused_by_name),
          TEST_ENTRY(enum_options_take_names_and_numbers),
          TEST_ENTRY(a_set_is_names_joined_by_plus_or_a_number),
          TEST_ENTRY(a_device_reads_enums_by_its_own_table),
          TEST_ENTRY(the_llvm_option_overrides_the_variable),
          TEST_ENTRY(a_path_that_is_too_long_is_refused),
          TEST_ENTRY(options_are_listed_for_every_backend_that_has_any),
          TEST_ENTRY(a_context_checks_the_options_of_all_backends),
          TEST_ENTRY(the_environment_can_set_options),
          TEST_ENTRY(a_bad_environment_variable_is_named))
