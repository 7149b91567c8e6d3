/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of registered backends: tables that are refused, devices, options,
 * failures, and registration while other threads list and open devices. */
#include <pthread.h>
#include <stdio.h>

#include "vyre/vyre.h"

#include "plugins/proxy.h"
#include "support/check.h"
#include "support/driver.h"

static const vyre_backend proxy = PROXY_TABLE("proxy", 10);

static const vyre_context_options quiet = {.cache_directory = "",
                                           .trace_file = "",
                                           .faults = "",
                                           .backend_options = "",
                                           .backend_path = ""};

static vyre_context *make_context(void) {
  vyre_context *context;
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(&quiet, &context, &st), st);
  return context;
}

static const char text[] =
    "kernel k workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform a : u32 @2;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) y[i] += a * x[i];\n"
    "}\n";

static vyre_code compile(vyre_device *device, vyre_pipeline **out,
                         vyre_status *st) {
  vyre_module *module;
  CHECK_OK(vyre_module_parse(text, strlen(text), "k", (vyre_allocator){0},
                             &module, NULL, st),
           *st);
  vyre_code code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0),
                                         NULL, out, NULL, st);
  vyre_module_release(module);
  return code;
}

static vyre_code run(vyre_pipeline *pipeline, uint32_t *y, vyre_status *st) {
  static const uint32_t x[4] = {1, 2, 3, 4}, a = 10;
  const vyre_input inputs[] = {vyre_input_bytes(x, sizeof x),
                               vyre_input_bytes(y, sizeof x),
                               vyre_input_bytes(&a, sizeof a)};
  const vyre_output out = vyre_output_bytes(y, sizeof x);
  const vyre_dispatch_desc desc = {
      .inputs = inputs, .input_count = 3, .outputs = &out, .output_count = 1};
  return vyre_dispatch(pipeline, &desc, st);
}

TEST(a_registered_backend_runs_kernels) {
  vyre_context *context = make_context();
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  uint32_t y[4] = {1, 1, 1, 1};
  CHECK_OK(vyre_backend_register(context, &proxy, &st), st);
  CHECK_OK(vyre_device_open(context, "proxy:1", &device, &st), st);
  CHECK_TEXT(vyre_device_name(device), "proxy:1");
  CHECK_OK(compile(device, &pipeline, &st), st);
  CHECK_OK(run(pipeline, y, &st), st);
  CHECK(y[0] == 11 && y[1] == 21 && y[2] == 31 && y[3] == 41);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
}

/* --- tables ----------------------------------------------------------------*/

static vyre_backend without(size_t offset) {
  vyre_backend table = proxy;
  memset((char *)&table + offset, 0, sizeof(void *));
  return table;
}

#define WITHOUT(function) without(offsetof(vyre_backend, function))

static vyre_backend named(const char *name) {
  vyre_backend table = proxy;
  table.name = name;
  return table;
}

static vyre_backend with_option(vyre_device_option option) {
  static vyre_device_option options[8];
  static unsigned count;
  vyre_backend table = proxy;
  options[count % 8] = option;
  table.options = &options[count++ % 8];
  table.option_count = 1;
  return table;
}

TEST(tables_that_do_not_fit_are_refused) {
  vyre_backend old = proxy, small = proxy, form = proxy, inexact = proxy,
               later = proxy;
  old.abi = 0;
  small.struct_size -= 8;
  form.form = (vyre_backend_form)7;
  inexact.is_exact = false;
  later.reserved[3] = 1;
  const vyre_device_option no_values = {
      .name = "x", .max = 1, .help = "", .type = VYRE_OPTION_ENUM};
  const vyre_device_option few_values = {.name = "x",
                                         .max = 2,
                                         .help = "",
                                         .type = VYRE_OPTION_ENUM,
                                         .values = "a b"};
  const vyre_device_option no_range = {.name = "x", .min = 2, .help = ""};
  const vyre_device_option no_help = {.name = "x", .max = 2};
  const struct {
    vyre_backend table;
    vyre_code code;
    const char *field;
  } cases[] = {{old, VYRE_UNSUPPORTED_FEATURE, "abi"},
               {small, VYRE_UNSUPPORTED_FEATURE, "abi"},
               {later, VYRE_INVALID_ARGUMENT, "reserved"},
               {form, VYRE_INVALID_ARGUMENT, "form"},
               {inexact, VYRE_INVALID_ARGUMENT, "is_exact"},
               {named(NULL), VYRE_INVALID_ARGUMENT, "name"},
               {named(""), VYRE_INVALID_ARGUMENT, "name"},
               {named("Proxy"), VYRE_INVALID_ARGUMENT, "name"},
               {named("1x"), VYRE_INVALID_ARGUMENT, "name"},
               {named("a.b"), VYRE_INVALID_ARGUMENT, "name"},
               {named("auto"), VYRE_INVALID_ARGUMENT, "name"},
               {named("all"), VYRE_INVALID_ARGUMENT, "name"},
               {named("a123456789012345678901234567890x"),
                VYRE_INVALID_ARGUMENT, "name"},
               {named("ref"), VYRE_INVALID_ARGUMENT, "name"},
               {WITHOUT(describe), VYRE_INVALID_ARGUMENT, "describe"},
               {WITHOUT(device_open), VYRE_INVALID_ARGUMENT, "device_open"},
               {WITHOUT(kernel_load), VYRE_INVALID_ARGUMENT, "kernel_load"},
               {WITHOUT(launch), VYRE_INVALID_ARGUMENT, "launch"},
               {WITHOUT(buffer_read), VYRE_INVALID_ARGUMENT, "buffer_read"},
               {WITHOUT(options), VYRE_INVALID_ARGUMENT, "options"},
               {with_option(no_values), VYRE_INVALID_ARGUMENT, "options"},
               {with_option(few_values), VYRE_INVALID_ARGUMENT, "options"},
               {with_option(no_range), VYRE_INVALID_ARGUMENT, "options"},
               {with_option(no_help), VYRE_INVALID_ARGUMENT, "options"}};
  vyre_context *context = make_context();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    CHECK_U64(vyre_backend_register(context, &cases[i].table, &st),
              cases[i].code);
    CHECK_TEXT(st.field, cases[i].field);
    CHECK(st.fix[0]);
  }
  vyre_status st = {0};
  CHECK_FAILS(vyre_backend_register(NULL, &proxy, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_backend_register(context, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_OK(vyre_backend_register(context, &proxy, &st), st); /* no traces */
  vyre_context_release(context);
}

TEST(an_option_is_named_once) {
  vyre_status st = {0};
  vyre_context *context = make_context();
  const vyre_device_option options[] = {
      {.name = "speed", .max = 9, .help = ""},
      {.name = "size", .max = 9, .help = ""},
      {.name = "speed", .max = 3, .help = "again"}};
  vyre_backend table = proxy;
  table.options = options;
  table.option_count = 3;
  CHECK_FAILS(vyre_backend_register(context, &table, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK(strstr(st.message, "options 0 and 2 of backend 'proxy'"));
  table.option_count = 2;
  CHECK_OK(vyre_backend_register(context, &table, &st), st);
  vyre_context_release(context);
}

TEST(a_name_is_registered_once_in_a_context) {
  vyre_context *context = make_context(), *other = make_context();
  vyre_status st = {0};
  CHECK_OK(vyre_backend_register(context, &proxy, &st), st);
  CHECK_FAILS(vyre_backend_register(context, &proxy, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "already has a backend 'proxy'");
  CHECK_OK(vyre_backend_register(other, &proxy, &st), st);
  vyre_context_release(other);
  vyre_context_release(context);
}

TEST(a_context_has_at_most_64_backends) {
  static char names[VYRE_MAX_BACKENDS + 1][8];
  static vyre_backend tables[VYRE_MAX_BACKENDS + 1];
  vyre_context *context = make_context();
  vyre_backend_info info;
  vyre_status st = {0};
  size_t built_in = 0, added = 0;
  while (vyre_backend_info_at(context, built_in, &info)) built_in++;
  for (; added <= VYRE_MAX_BACKENDS; added++) {
    snprintf(names[added], sizeof names[added], "b%zu", added);
    tables[added] = named(names[added]);
    if (vyre_backend_register(context, &tables[added], &st) != VYRE_OK) break;
  }
  CHECK_U64(built_in + added, VYRE_MAX_BACKENDS);
  CHECK_U64(status_number(&st, "max_backends"), VYRE_MAX_BACKENDS);
  vyre_context_release(context);
}

/* --- lists and choice ------------------------------------------------------*/

TEST(backends_are_listed_with_their_origin) {
  vyre_context *context = make_context();
  vyre_backend_info info;
  vyre_status st = {0};
  size_t count = 0;
  bool has_ref = false;
  for (; vyre_backend_info_at(context, count, &info); count++) {
    CHECK(info.is_loaded);
    CHECK_TEXT(info.origin, "built in");
    has_ref = has_ref || strcmp(info.name, "ref") == 0;
  }
  CHECK(has_ref);
  CHECK_OK(vyre_backend_register(context, &proxy, &st), st);
  CHECK(vyre_backend_info_at(context, count, &info));
  CHECK_TEXT(info.name, "proxy");
  CHECK_TEXT(info.origin, "registered");
  CHECK(info.is_loaded && info.precedence == 10 && info.code == VYRE_OK);
  CHECK_TEXT(info.message, "");
  CHECK(!vyre_backend_info_at(context, count + 1, &info));
  CHECK(vyre_backend_info_at(NULL, count - 1, &info));
  CHECK(!vyre_backend_info_at(NULL, count, &info));
  CHECK(!vyre_backend_info_at(context, 0, NULL));
  vyre_context_release(context);
}

static bool lists(vyre_context *context, const char *name) {
  vyre_device_info info;
  for (size_t i = 0; vyre_context_device_info_at(context, i, &info); i++) {
    if (info.is_available && strcmp(info.name, name) == 0) return true;
  }
  return false;
}

TEST(devices_and_options_of_a_context_are_listed) {
  vyre_context *context = make_context();
  vyre_status st = {0};
  vyre_device_option option;
  CHECK(!lists(context, "proxy"));
  CHECK(!vyre_context_device_option_at(context, "proxy", 0, &option));
  CHECK_OK(vyre_backend_register(context, &proxy, &st), st);
  CHECK(lists(context, "proxy") && lists(context, "proxy:1"));
  CHECK(lists(context, "ref") && !lists(NULL, "proxy"));
  CHECK(vyre_context_device_option_at(context, "proxy", 2, &option));
  CHECK_TEXT(option.name, "file");
  CHECK(option.type == VYRE_OPTION_PATH);
  CHECK(!vyre_context_device_option_at(context, "proxy", 3, &option));
  CHECK(vyre_context_device_option_at(context, "ref", 0, &option));
  CHECK(!vyre_device_option_at("proxy", 0, &option));
  vyre_context_release(context);
}

TEST(auto_goes_by_the_precedence_of_the_table) {
  static const uint32_t ranks[] = {0, 99, 1000};
  for (size_t i = 0; i < 3; i++) {
    vyre_backend table = proxy;
    table.precedence = ranks[i];
    vyre_context *context = make_context();
    vyre_device *device;
    vyre_status st = {0};
    CHECK_OK(vyre_backend_register(context, &table, &st), st);
    CHECK_OK(vyre_device_open(context, "auto", &device, &st), st);
    CHECK((strcmp(vyre_device_name(device), "proxy") == 0) == (i == 2));
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

/* --- options ---------------------------------------------------------------*/

static vyre_backend_option_value seen[3];
static char seen_path[64];

static vyre_code open_with_options(const vyre_backend *table, uint32_t index,
                                   const vyre_backend_option_value *options,
                                   vyre_backend_device *out, vyre_status *st) {
  memcpy(seen, options, sizeof seen);
  snprintf(seen_path, sizeof seen_path, "%s",
           options[2].text ? options[2].text : "");
  return proxy_open(table, index, options, out, st);
}

TEST(options_reach_the_device) {
  vyre_backend table = proxy;
  table.device_open = open_with_options;
  const vyre_backend *const tables[] = {&table, NULL};
  vyre_context_options with = quiet;
  vyre_context *context;
  vyre_device *device;
  vyre_status st = {0};
  with.backends = tables;
  CHECK_OK(vyre_context_create(&with, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "proxy", &device, &st), st);
  for (int i = 0; i < 3; i++) CHECK(!seen[i].is_set);
  vyre_device_release(device);
  vyre_context_release(context);
  with.backend_options = "proxy.level=7,proxy.mood=wild,proxy.file=/a b";
  CHECK_OK(vyre_context_create(&with, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "proxy", &device, &st), st);
  for (int i = 0; i < 3; i++) CHECK(seen[i].is_set);
  CHECK(seen[0].number == 7 && seen[1].number == 1);
  CHECK_TEXT(seen_path, "/a b");
  vyre_device_release(device);
  vyre_context_release(context);
  with.backend_options = "proxy.level=10";
  CHECK_FAILS(vyre_context_create(&with, &context, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  table.abi = 7;
  with.backend_options = "";
  CHECK_FAILS(vyre_context_create(&with, &context, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK(!context);
}

/* --- failures --------------------------------------------------------------*/

static vyre_code failure; /* code that the next function returns */

static vyre_code fail(vyre_status *st) {
  st->native_code = 42;
  return vyre_backend_fail(st, failure, VYRE_KIND_RESOURCE_BUSY, "wait %d",
                           "it is busy with %d things", 3);
}

static vyre_code failing_open(const vyre_backend *table, uint32_t index,
                              const vyre_backend_option_value *options,
                              vyre_backend_device *out, vyre_status *st) {
  (void)table, (void)index, (void)options, (void)out;
  return fail(st);
}

static vyre_code failing_load(void *device, const vyre_backend_kernel *kernel,
                              void **out, vyre_status *st) {
  return failure == VYRE_OK ? proxy_load(device, kernel, out, st) : fail(st);
}

static vyre_code failing_launch(void *device, void *kernel,
                                vyre_backend_launch *launch, vyre_status *st) {
  return failure == VYRE_OK ? proxy_launch(device, kernel, launch, st)
                            : fail(st);
}

static vyre_code silent_load(void *device, const vyre_backend_kernel *kernel,
                             void **out, vyre_status *st) {
  (void)device, (void)kernel, (void)out, (void)st;
  return (vyre_code)12345;
}

static void check_report(const vyre_status *st) {
  CHECK_TEXT(st->message, "backend 'proxy': it is busy with 3 things");
  CHECK_TEXT(st->fix, "wait %d"); /* texts are not formats */
  CHECK(st->native_code == 42);
  CHECK(st->kind == VYRE_KIND_RESOURCE_BUSY);
}

TEST(a_device_that_does_not_open_leaves_the_others) {
  vyre_backend table = proxy;
  table.device_open = failing_open;
  vyre_context *context = make_context();
  vyre_device *device;
  vyre_status st = {0};
  CHECK_OK(vyre_backend_register(context, &table, &st), st);
  failure = VYRE_DEVICE_OUT_OF_MEMORY;
  CHECK_U64(vyre_device_open(context, "proxy", &device, &st), failure);
  CHECK(!device);
  check_report(&st);
  CHECK_OK(vyre_device_open(context, "ref", &device, &st), st);
  vyre_device_release(device);
  vyre_context_release(context);
}

/* A device whose fields the test sets. */
static vyre_backend_device opened;
static unsigned closed;

static vyre_code open_as_set(const vyre_backend *table, uint32_t index,
                             const vyre_backend_option_value *options,
                             vyre_backend_device *out, vyre_status *st) {
  (void)table, (void)index, (void)options, (void)st;
  *out = opened;
  return VYRE_OK;
}

static void count_close(void *device) {
  (void)device;
  closed++;
}

TEST(a_device_with_fields_that_are_not_valid_is_refused) {
  static const vyre_backend_device good = {
      .caps = {.max_workgroup = {8, 8, 8},
               .max_workgroup_invocations = 8,
               .max_buffer_bytes = 1 << 20}};
  static const char *const fields[] = {"caps.max_workgroup",
                                       "caps.max_workgroup_invocations",
                                       "caps.max_buffer_bytes",
                                       "caps.host_alignment",
                                       "offset_alignment",
                                       "reserved",
                                       "reserved"};
  enum { COUNT = sizeof fields / sizeof fields[0] };
  vyre_backend table = proxy;
  vyre_context *context = make_context();
  vyre_device *device;
  vyre_status st = {0};
  table.device_open = open_as_set;
  table.device_close = count_close;
  CHECK_OK(vyre_backend_register(context, &table, &st), st);
  closed = 0;
  for (size_t i = 0; i < COUNT; i++) {
    opened = good;
    if (i == 0) opened.caps.max_workgroup[1] = 0;
    if (i == 1) opened.caps.max_workgroup_invocations = 0;
    if (i == 2) opened.caps.max_buffer_bytes = 0;
    if (i == 3) opened.caps.host_alignment = 3;
    if (i == 4) opened.offset_alignment = 48;
    if (i == 5) opened.reserved[3] = 1;
    if (i == 6) opened.caps.reserved[0] = 1;
    CHECK_FAILS(vyre_device_open(context, "proxy", &device, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK_TEXT(st.field, fields[i]);
    CHECK_U64(closed, i + 1);
  }
  opened = good;
  CHECK_OK(vyre_device_open(context, "proxy", &device, &st), st);
  vyre_device_release(device);
  CHECK_U64(closed, COUNT + 1);
  vyre_context_release(context);
}

static unsigned destroyed;

static void count_destroy(void *device, void *buffer) {
  proxy.buffer_destroy(device, buffer);
  destroyed++;
}

/* C code runs in this process, so the memory of its launches needs an address
 * here. */
TEST(memory_for_c_must_have_a_host_address) {
  vyre_backend table = proxy;
  vyre_context *context = make_context();
  vyre_device *device;
  vyre_buffer buffer;
  vyre_status st = {0};
  table.form = VYRE_BACKEND_FORM_C;
  table.buffer_destroy = count_destroy;
  CHECK_OK(vyre_backend_register(context, &table, &st), st);
  CHECK_OK(vyre_device_open(context, "proxy", &device, &st), st);
  destroyed = 0;
  CHECK_FAILS(vyre_buffer_create(device, 64, &buffer, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "no host address");
  CHECK(buffer.owner == 0);
  CHECK_U64(destroyed, 1);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(failures_of_a_kernel_have_the_status_of_the_backend) {
  vyre_backend table = proxy;
  table.kernel_load = failing_load;
  table.launch = failing_launch;
  vyre_context *context = make_context();
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  uint32_t y[4] = {0};
  failure = VYRE_OK;
  CHECK_OK(vyre_backend_register(context, &table, &st), st);
  CHECK_OK(vyre_device_open(context, "proxy", &device, &st), st);
  failure = VYRE_KERNEL_COMPILE_FAILED;
  CHECK_U64(compile(device, &pipeline, &st), failure);
  check_report(&st);
  failure = VYRE_OK;
  st = (vyre_status){0};
  CHECK_OK(compile(device, &pipeline, &st), st);
  failure = VYRE_DISPATCH_FAILED;
  CHECK_U64(run(pipeline, y, &st), failure);
  check_report(&st);
  failure = VYRE_OK;
  CHECK_OK(run(pipeline, y, &st), st);
  CHECK(y[3] == 40);
  failure = VYRE_DEVICE_LOST;
  CHECK_U64(run(pipeline, y, &st), failure);
  CHECK(vyre_device_is_lost(device));
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(a_failure_without_a_message_has_one) {
  vyre_backend table = proxy;
  table.kernel_load = silent_load;
  vyre_context *context = make_context();
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  CHECK_OK(vyre_backend_register(context, &table, &st), st);
  CHECK_OK(vyre_device_open(context, "proxy", &device, &st), st);
  CHECK_U64(compile(device, &pipeline, &st), VYRE_KERNEL_COMPILE_FAILED);
  CHECK_HAS(st.message, "kernel_load failed with code");
  CHECK(st.fix[0]);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(memory_that_runs_out_is_reported_at_every_allocation) {
  for (int i = 1; i < 200; i++) {
    char fault[32];
    vyre_context *context = make_context();
    vyre_device *device = NULL;
    vyre_pipeline *pipeline = NULL;
    vyre_status st = {0};
    uint32_t y[4] = {0};
    CHECK_OK(vyre_backend_register(context, &proxy, &st), st);
    snprintf(fault, sizeof fault, "allocation:%d", i);
    CHECK_OK(vyre_context_inject_faults(context, fault, &st), st);
    vyre_code code = vyre_device_open(context, "proxy", &device, &st);
    if (code == VYRE_OK) code = compile(device, &pipeline, &st);
    if (code == VYRE_OK) code = run(pipeline, y, &st);
    CHECK(code == VYRE_OK || code == VYRE_OUT_OF_MEMORY ||
          code == VYRE_DEVICE_OUT_OF_MEMORY);
    vyre_pipeline_release(pipeline);
    vyre_device_release(device);
    vyre_context_release(context);
    if (code == VYRE_OK) return;
  }
  CHECK(!"the dispatch never succeeded");
}

/* --- threads ---------------------------------------------------------------*/

enum { THREADS = 4, TABLES = 12 };
static vyre_context *shared_context;

static void *register_some(void *self) {
  static char names[THREADS][TABLES][8];
  static vyre_backend tables[THREADS][TABLES];
  size_t thread = (size_t)(uintptr_t)self;
  for (size_t i = 0; i < TABLES; i++) {
    vyre_status st = {0};
    snprintf(names[thread][i], 8, "t%zu_%zu", thread, i);
    tables[thread][i] = named(names[thread][i]);
    if (vyre_backend_register(shared_context, &tables[thread][i], &st) !=
        VYRE_OK) {
      return NULL;
    }
  }
  return self;
}

static void *list_and_open(void *self) {
  vyre_device_info info;
  vyre_backend_info backend;
  for (int i = 0; i < 20; i++) {
    vyre_device *device;
    for (size_t k = 0; vyre_context_device_info_at(shared_context, k, &info);
         k++) {
      if (!info.name[0]) return NULL;
    }
    for (size_t k = 0; vyre_backend_info_at(shared_context, k, &backend); k++) {
      if (!backend.is_loaded) return NULL;
    }
    if (vyre_device_open(shared_context, "proxy", &device, NULL) != VYRE_OK) {
      return NULL;
    }
    vyre_device_release(device);
  }
  return self;
}

TEST(threads_register_list_and_open_at_the_same_time) {
  pthread_t threads[2 * THREADS];
  vyre_status st = {0};
  shared_context = make_context();
  CHECK_OK(vyre_backend_register(shared_context, &proxy, &st), st);
  for (size_t i = 0; i < (size_t)2 * THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL,
                         i % 2 ? register_some : list_and_open,
                         (void *)(uintptr_t)(i / 2 + (i % 2 ? 0 : 1))) == 0);
  }
  bool is_good = true;
  for (size_t i = 0; i < (size_t)2 * THREADS; i++) {
    void *result;
    CHECK(pthread_join(threads[i], &result) == 0);
    is_good = is_good && (result || i == 1);
  }
  CHECK(is_good);
  size_t count = 0;
  vyre_backend_info info;
  while (vyre_backend_info_at(shared_context, count, &info)) count++;
  size_t built_in = 0;
  while (vyre_backend_info_at(NULL, built_in, &info)) built_in++;
  CHECK_U64(count, built_in + 1 + (size_t)THREADS * TABLES);
  vyre_context_release(shared_context);
}

TEST_MAIN(TEST_ENTRY(a_registered_backend_runs_kernels),
          TEST_ENTRY(tables_that_do_not_fit_are_refused),
          TEST_ENTRY(an_option_is_named_once),
          TEST_ENTRY(a_name_is_registered_once_in_a_context),
          TEST_ENTRY(a_context_has_at_most_64_backends),
          TEST_ENTRY(backends_are_listed_with_their_origin),
          TEST_ENTRY(devices_and_options_of_a_context_are_listed),
          TEST_ENTRY(auto_goes_by_the_precedence_of_the_table),
          TEST_ENTRY(options_reach_the_device),
          TEST_ENTRY(a_device_that_does_not_open_leaves_the_others),
          TEST_ENTRY(a_device_with_fields_that_are_not_valid_is_refused),
          TEST_ENTRY(memory_for_c_must_have_a_host_address),
          TEST_ENTRY(failures_of_a_kernel_have_the_status_of_the_backend),
          TEST_ENTRY(a_failure_without_a_message_has_one),
          TEST_ENTRY(memory_that_runs_out_is_reported_at_every_allocation),
          TEST_ENTRY(threads_register_list_and_open_at_the_same_time))
