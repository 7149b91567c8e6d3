/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of device names and of "auto", with backends that have zero, one or
 * several devices. */
#include "runtime/core/device.h"

#include <stdio.h>

#include "hal/backend.h"
#include "support/check.h"

static bool has_none(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  (void)index;
  out->note = "libfast.so was looked for";
  return false;
}

static bool has_three(const vyre__backend *self, uint32_t index,
                      vyre_device_info *out) {
  (void)self;
  out->description = "one of three";
  return index < 3;
}

static bool has_one(const vyre__backend *self, uint32_t index,
                    vyre_device_info *out) {
  (void)self;
  out->description = "alone";
  return index < 1;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  (void)st;
  device->caps = (vyre_device_caps){.host_alignment = 1};
  return VYRE_OK;
}

static void device_deinit(vyre_device *device) {
  (void)device;
}

#define BACKEND(title, has, rank)        \
  {.abi = VYRE__BACKEND_ABI,             \
   .struct_size = sizeof(vyre__backend), \
   .name = (title),                      \
   .is_exact = true,                     \
   .precedence = (rank),                 \
   .device_size = sizeof(vyre_device),   \
   .describe = (has),                    \
   .device_init = device_init,           \
   .device_deinit = device_deinit}

static const vyre__backend fast = BACKEND("fast", has_none, 4);
static const vyre__backend quick = BACKEND("quick", has_none, 3);
static const vyre__backend multi = BACKEND("multi", has_three, 2);
static const vyre__backend lone = BACKEND("lone", has_one, 1);
static const vyre__backend shy = BACKEND("shy", has_one, 0);

static const vyre__backend *const list[] = {&shy,   &fast, &quick,
                                            &multi, &lone, &shy};

static const vyre__backends registry = {list + 1, 5};

TEST(every_device_is_listed_by_the_name_that_opens_it) {
  static const char *const names[] = {"multi", "multi:1", "multi:2", "lone",
                                      "shy",   "fast",    "quick"};
  enum { COUNT = sizeof names / sizeof names[0], AVAILABLE = 5 };
  vyre_device_info info;
  for (size_t i = 0; i < COUNT; i++) {
    vyre_status st = {0};
    vyre_device *device = NULL;
    CHECK(vyre__device_list_of(registry, i, &info));
    CHECK_TEXT(info.name, names[i]);
    CHECK(info.is_available == (i < AVAILABLE));
    if (!info.is_available) {
      CHECK_FAILS(vyre__device_open_of(registry, NULL, info.name, &device, &st),
                  st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
      CHECK_HAS(st.message, "libfast.so was looked for");
      continue;
    }
    CHECK_OK(vyre__device_open_of(registry, NULL, info.name, &device, &st), st);
    CHECK_TEXT(vyre_device_name(device), names[i]);
    CHECK_TEXT(vyre_device_selection_reason(device),
               i == 0 ? "asked for by name: the first of 3; 'multi:1' is the "
                        "next"
                      : "asked for by name");
    CHECK_U64(device->index, info.index);
    vyre_device_release(device);
  }
  CHECK(!vyre__device_list_of(registry, COUNT, &info));
}

TEST(unknown_names_are_refused) {
  static const char *const names[] = {
      "",         "mult",     "multi:",   "multi:3",           "multi:x",
      "multi:1x", "multi:-1", "multi 1",  "multi:99999999999", "Multi",
      "lone:1",   "auto:0",   "multi:1:1"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    vyre_status st = {0};
    vyre_device *device = NULL;
    CHECK_FAILS(vyre__device_open_of(registry, NULL, names[i], &device, &st),
                st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
    CHECK(!device);
  }
}

TEST(the_first_of_several_devices_has_two_names) {
  vyre_status st = {0};
  vyre_device *device;
  CHECK_OK(vyre__device_open_of(registry, NULL, "multi:0", &device, &st), st);
  CHECK_TEXT(vyre_device_name(device), "multi");
  CHECK_TEXT(vyre_device_selection_reason(device), "asked for by name");
  vyre_device_release(device);
}

TEST(auto_gives_its_choice_and_the_reason) {
  static const struct {
    size_t from, count;
    const char *name, *reason; /* NULL: none */
  } cases[] = {
      {3, 2, "multi", "auto: best backend"},
      {2, 2, "multi", "auto: best available; not available: quick"},
      {1, 3, "multi", "auto: best available; not available: fast, quick"},
      {0, 4, "multi", "auto: best available; not available: fast, quick"},
      {0, 1, NULL, NULL}, /* by name only */
      {1, 2, NULL, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre__backends of = {list + cases[i].from, cases[i].count};
    vyre_status st = {0};
    vyre_device *device = NULL;
    if (!cases[i].name) {
      CHECK_FAILS(vyre__device_open_of(of, NULL, "auto", &device, &st), st,
                  VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
      continue;
    }
    CHECK_OK(vyre__device_open_of(of, NULL, "auto", &device, &st), st);
    CHECK_TEXT(vyre_device_name(device), cases[i].name);
    CHECK_TEXT(vyre_device_selection_reason(device), cases[i].reason);
    CHECK_HAS(st.message, "auto chose 'multi': best ");
    vyre_device_release(device);
  }
}

TEST(precedence_decides_and_not_the_order_of_registration) {
  static const vyre__backend equal = BACKEND("equal", has_one, 2);
  static const struct {
    const vyre__backend *list[4];
    size_t count;
    const char *first;
  } cases[] = {{{&lone, &shy, &multi}, 3, "multi"},
               {{&multi, &lone, &shy}, 3, "multi"},
               {{&shy, &lone}, 2, "lone"},
               {{&lone, &equal, &multi}, 3, "equal"},
               {{&multi, &lone, &equal}, 3, "multi"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const vyre__backends of = {cases[i].list, cases[i].count};
    vyre_status st = {0};
    vyre_device *device;
    vyre_device_info info;
    CHECK(vyre__device_list_of(of, 0, &info));
    CHECK_TEXT(info.name, cases[i].first);
    CHECK_OK(vyre__device_open_of(of, NULL, "auto", &device, &st), st);
    CHECK_TEXT(vyre_device_name(device), cases[i].first);
    vyre_device_release(device);
  }
}

TEST(a_table_of_another_version_is_refused) {
  vyre__backend old = lone, small = lone;
  old.abi = VYRE__BACKEND_ABI - 1;
  small.struct_size = sizeof(vyre__backend) - 8;
  const vyre__backend *const tables[] = {&old, &small};
  for (int i = 0; i < 2; i++) {
    vyre_status st = {0};
    vyre_device *device = NULL;
    vyre_context *context;
    vyre_context_options options = {
        .cache_directory = "", .trace_file = "", .faults = ""};
    CHECK_OK(vyre_context_create(&options, &context, &st), st);
    CHECK_FAILS(
        vyre__device_open_given(context, tables[i], 0, NULL, &device, &st), st,
        VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_INVALID_ARGUMENT);
    CHECK(!device);
    CHECK_HAS(st.message, "backend 'lone' has table version ");
    vyre_context_release(context);
  }
}

static const vyre_context *preloaded; /* context of the last preload */
static unsigned preloads;

static vyre_code preload(const vyre_context *context, vyre_status *st) {
  (void)st;
  preloaded = context;
  preloads++;
  return VYRE_OK;
}

TEST(preload_loads_the_libraries_of_a_named_device) {
  vyre__backend needs = lone, none = multi, missing = fast, old = lone;
  needs.preload = missing.preload = old.preload = preload;
  needs.precedence = 3; /* "auto" takes it, as fast has no device */
  old.name = "old";
  old.abi = VYRE__BACKEND_ABI - 1;
  const vyre__backend *const tables[] = {&missing, &needs, &none, &old};
  const vyre__backends of = {tables, 4};
  static const struct {
    const char *name;
    unsigned count; /* of preload calls */
    vyre_kind kind; /* VYRE_KIND_NONE: success */
  } cases[] = {{"lone", 1, VYRE_KIND_NONE},
               {"auto", 1, VYRE_KIND_NONE},
               {"multi:1", 0, VYRE_KIND_NONE},
               {"fast", 0, VYRE_KIND_DEVICE_UNAVAILABLE},
               {"unknown", 0, VYRE_KIND_DEVICE_UNAVAILABLE},
               {"old", 0, VYRE_KIND_INVALID_ARGUMENT}};
  vyre_context *context;
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    preloads = 0;
    preloaded = NULL;
    st = (vyre_status){0};
    vyre_code code = vyre__device_preload_of(of, context, cases[i].name, &st);
    if (cases[i].kind == VYRE_KIND_NONE) {
      CHECK_OK(code, st);
    } else {
      CHECK_FAILS(code, st, VYRE_UNSUPPORTED_FEATURE, cases[i].kind);
    }
    CHECK_U64(preloads, cases[i].count);
    CHECK(preloaded == (cases[i].count > 0 ? context : NULL));
  }
  vyre_context_release(context);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_device_preload(NULL, NULL, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
}

TEST_MAIN(TEST_ENTRY(preload_loads_the_libraries_of_a_named_device),
          TEST_ENTRY(a_table_of_another_version_is_refused),
          TEST_ENTRY(every_device_is_listed_by_the_name_that_opens_it),
          TEST_ENTRY(unknown_names_are_refused),
          TEST_ENTRY(the_first_of_several_devices_has_two_names),
          TEST_ENTRY(auto_gives_its_choice_and_the_reason),
          TEST_ENTRY(precedence_decides_and_not_the_order_of_registration))
