/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks routers: choice, failover, shadow runs, buffers and stored times. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier): mkdtemp */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vyre/module.h"

#include "runtime/cache/cache_testing.h"
#include "runtime/route/router_internal.h"
#include "support/check.h"

enum { COUNT = 64 };

static const char text[] =
    "kernel step workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 3 + x[i]; }\n"
    /* Long enough that no noise makes the interpreter the fastest device. */
    "kernel heavy workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) { var s = y[i];\n"
    "  for (let k = 0u; k < 2000; k++) s = s * 5 + (s >> 3) + x[i];\n"
    "  y[i] = s; } }\n"
    "kernel contract workgroup(64) over(z)\n"
    "buffer a : read f32[] @0;\n"
    "buffer z : write f32[] @1;\n"
    "{ let i = global_id.x; if (i < len(z)) z[i] = a[i] * a[i] + 0.1; }\n";

typedef struct rig {
  char folder[64];
  vyre_context *context;
  vyre_module *module;
  vyre_router *router;
  vyre_route *route;
  uint32_t x[COUNT], y[COUNT];
  vyre_input inputs[2];
  vyre_output output;
  vyre_dispatch_desc desc;
} rig;

static void open_context(rig *r) {
  vyre_status st = {0};
  vyre_context_options options = {
      .cache_directory = r->folder, .trace_file = "", .faults = ""};
  CHECK_OK(vyre_context_create(&options, &r->context, &st), st);
}

static void open_route(rig *r, const vyre_router_options *options,
                       const char *kernel,
                       const vyre_compile_options *compile) {
  vyre_status st = {0};
  CHECK_OK(vyre_router_open(r->context, options, &r->router, &st), st);
  CHECK_OK(vyre_router_compile(r->router, vyre_module_find(r->module, kernel),
                               compile, &r->route, NULL, &st),
           st);
}

static void close_route(rig *r) {
  vyre_route_release(r->route);
  vyre_router_release(r->router);
}

static void reset(rig *r) {
  for (uint32_t i = 0; i < COUNT; i++) {
    r->x[i] = i * 7 + 1;
    r->y[i] = i;
  }
  r->inputs[0] = vyre_input_bytes(r->x, sizeof r->x);
  r->inputs[1] = vyre_input_bytes(r->y, sizeof r->y);
  r->output = vyre_output_bytes(r->y, sizeof r->y);
  r->desc = (vyre_dispatch_desc){.inputs = r->inputs,
                                 .input_count = 2,
                                 .outputs = &r->output,
                                 .output_count = 1};
}

static void rig_begin(rig *r) {
  vyre_status st = {0};
  memset(r, 0, sizeof *r);
  folder_make(r->folder);
  open_context(r);
  CHECK_OK(vyre_module_parse(text, sizeof text - 1, "t.vyre",
                             (vyre_allocator){0}, &r->module, NULL, &st),
           st);
  reset(r);
}

static void rig_open(rig *r, const vyre_router_options *options) {
  rig_begin(r);
  open_route(r, options, "step", NULL);
}

static void rig_close(rig *r) {
  close_route(r);
  vyre_module_release(r->module);
  vyre_context_release(r->context);
  folder_remove(r->folder);
}

/* Checks the state after @p steps dispatches, by plain arithmetic. */
static void check_steps(const uint32_t *y, uint32_t steps) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t expected = i;
    for (uint32_t k = 0; k < steps; k++) expected = expected * 3 + i * 7 + 1;
    CHECK_U64(y[i], expected);
  }
}

static void arm(rig *r, const char *faults) {
  vyre_status st = {0};
  CHECK_OK(vyre_context_inject_faults(r->context, faults, &st), st);
}

/* --- counts ----------------------------------------------------------------*/

TEST(lists_of_a_wrong_length_are_not_read) {
  rig r;
  vyre_status st = {0};
  vyre_route_candidate c;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pages != MAP_FAILED);
  CHECK(mprotect(pages + page, page, PROT_NONE) == 0);
  rig_open(&r, &(vyre_router_options){.devices = "cpu,ref",
                                      .policy = VYRE_ROUTE_FASTEST,
                                      .fails_over = true,
                                      .snapshots_in_place = true,
                                      .shadow_permille = 1000});
  /* The list ends at the end of its page: a read past it is a signal. */
  vyre_input *inputs = (vyre_input *)(void *)(pages + page - sizeof r.inputs);
  memcpy(inputs, r.inputs, sizeof r.inputs);
  r.desc.inputs = inputs;
  for (size_t count = 0; count < 40; count++) {
    r.desc.input_count = count;
    CHECK(vyre_route_candidate_at(r.route, &r.desc, 0, &c));
    if (count == 2) continue;
    CHECK(vyre_route_dispatch(r.route, &r.desc, NULL, &st) != VYRE_OK);
    CHECK_HAS(st.message, "takes 2, got");
    st = (vyre_status){0};
  }
  r.desc.input_count = 2;
  r.desc.output_count = 0;
  CHECK_FAILS(vyre_route_dispatch(r.route, &r.desc, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  r.desc.output_count = 1;
  st = (vyre_status){0};
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, NULL, &st), st);
  check_steps(r.y, 1);
  CHECK(munmap(pages, 2 * page) == 0);
  rig_close(&r);
}

/* --- choice ----------------------------------------------------------------*/

TEST(the_first_device_of_the_list_runs_a_fixed_route) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  rig_open(&r, &(vyre_router_options){.devices = "ref,cpu"});
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "ref");
  CHECK(report.reason == VYRE_ROUTE_BY_ORDER);
  check_steps(r.y, 1);
  rig_close(&r);
}

TEST(a_capable_route_skips_devices_that_cannot_run_the_program) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  vyre_route_candidate c;
  rig_begin(&r);
  arm(&r, "compile:1");
  open_route(&r,
             &(vyre_router_options){.devices = "cpu,ref",
                                    .policy = VYRE_ROUTE_CAPABLE},
             "step", NULL);
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "ref");
  CHECK(report.reason == VYRE_ROUTE_ONLY_ONE);
  check_steps(r.y, 1);
  CHECK(vyre_route_candidate_at(r.route, &r.desc, 0, &c));
  CHECK(!c.can_run && c.why[0] != '\0');
  CHECK(!vyre_route_candidate_at(r.route, &r.desc, 2, &c));
  rig_close(&r);
}

TEST(bad_options_are_refused) {
  static const struct {
    vyre_router_options options;
    const char *says;
  } cases[] = {
      {{.devices = "cpu,cpu"}, "listed twice"},
      {{.devices = "cpu,,ref"}, "empty name"},
      {{.devices = "nosuch"}, "nosuch"},
      {{.devices = "cpu,null"}, "is a stub"},
      {{.devices = "ref", .policy = (vyre_route_policy)9}, "not a policy"},
      {{.devices = "ref", .shadow_permille = 1001}, "maximum is 1000"},
      {{.devices = "ref", .reserved = {1}}, "reserved"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_router *router;
    CHECK(vyre_router_open(NULL, &cases[i].options, &router, &st) != VYRE_OK);
    CHECK(router == NULL && st.fix[0]);
    CHECK_HAS(st.message, cases[i].says);
  }
}

/* Runs dispatches and returns how many of the last half ran on @p device. */
static int run_many(rig *r, int count, const char *device) {
  int hits = 0;
  vyre_status st = {0};
  vyre_route_report report;
  for (int i = 0; i < count; i++) {
    CHECK_OK(vyre_route_dispatch(r->route, &r->desc, &report, &st), st);
    hits += i >= count / 2 && strcmp(report.device, device) == 0;
  }
  return hits;
}

/* Opens a route that chooses "cpu" by its times. A machine under load may
 * interrupt every trial of a device, so the search may start again. */
static void open_fastest(rig *r, const vyre_router_options *options) {
  char path[128];
  (void)snprintf(path, sizeof path, "%s/times-2", r->folder);
  for (int attempt = 0; attempt < 5; attempt++) {
    open_route(r, options, "heavy", NULL);
    if (run_many(r, 60, "cpu") >= 20) return;
    close_route(r);
    (void)remove(path);
  }
  CHECK(false);
}

TEST(the_fastest_device_is_found_and_remembered) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  const vyre_router_options options = {.devices = "ref,cpu",
                                       .policy = VYRE_ROUTE_FASTEST};
  rig_begin(&r);
  open_fastest(&r, &options);
  vyre_route_candidate c;
  CHECK(vyre_route_candidate_at(r.route, &r.desc, 1, &c));
  CHECK(c.is_choice && c.samples > 0 && c.time_ns > 0);
  close_route(&r);
  /* A new router in a new context knows at once. */
  vyre_context_release(r.context);
  open_context(&r);
  open_route(&r, &options, "heavy", NULL);
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "cpu");
  CHECK(report.reason == VYRE_ROUTE_BY_TIME);
  rig_close(&r);
}

static size_t stored_times(const rig *r) {
  vyre__times times = {.context = r->context, .file = VYRE__TIMES_OF_ROUTERS};
  vyre__times_load(&times, NULL, 0);
  size_t count = times.count;
  vyre__times_deinit(&times);
  return count;
}

TEST(a_corrupt_file_of_times_is_ignored) {
  rig r;
  char path[128];
  const vyre_router_options options = {.devices = "ref,cpu",
                                       .policy = VYRE_ROUTE_FASTEST};
  rig_begin(&r);
  open_fastest(&r, &options);
  close_route(&r);
  CHECK(stored_times(&r) > 2);
  (void)snprintf(path, sizeof path, "%s/times-2", r.folder);
  FILE *file = fopen(path, "r+b");
  CHECK(file != NULL);
  fseek(file, 40, SEEK_SET);
  int byte = fgetc(file);
  fseek(file, 40, SEEK_SET);
  fputc(byte ^ 1, file);
  fclose(file);
  CHECK_U64(stored_times(&r), 0);
  open_fastest(&r, &options);
  rig_close(&r);
}

TEST(times_of_another_driver_are_forgotten) {
  rig r;
  rig_open(&r, &(vyre_router_options){.devices = "ref",
                                      .policy = VYRE_ROUTE_FASTEST});
  size_t before = r.router->times.count;
  CHECK(before > 0);
  CHECK_OK(vyre_router_save(r.router, &(vyre_status){0}), (vyre_status){0});
  r.router->devices[0].identity.driver ^= 1;
  r.router->times.count = 0;
  vyre__route_times_load(r.router);
  CHECK_U64(r.router->times.count, 0);
  r.router->devices[0].identity.driver ^= 1;
  vyre__route_times_load(r.router);
  CHECK_U64(r.router->times.count, before);
  rig_close(&r);
}

/* --- failover --------------------------------------------------------------*/

TEST(a_lost_device_at_every_dispatch_changes_no_result) {
  enum { RUNS = 1000 };
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  uint32_t z[COUNT];
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  r.output = vyre_output_bytes(z, sizeof z);
  for (int i = 0; i < RUNS; i++) {
    arm(&r, "device_lost:1");
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    CHECK_TEXT(report.failed_device, "cpu");
    CHECK(report.failed_code == VYRE_DEVICE_LOST);
    CHECK_TEXT(report.device, "ref");
    CHECK(report.reason == VYRE_ROUTE_FAILED_OVER);
    memcpy(r.y, z, sizeof z);
  }
  check_steps(r.y, RUNS);
  /* Pipelines of lost devices do not pile up. */
  CHECK(r.route->replaced_count <= 1);
  arm(&r, "");
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "cpu"); /* opened again */
  rig_close(&r);
}

TEST(without_failover_the_failure_is_reported) {
  rig r;
  vyre_status st = {0};
  rig_open(&r, &(vyre_router_options){.devices = "cpu,ref"});
  arm(&r, "device_lost:1");
  CHECK(vyre_route_dispatch(r.route, &r.desc, NULL, &st) == VYRE_DEVICE_LOST);
  CHECK(st.fix[0]);
  reset(&r);
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, NULL, &st), st);
  check_steps(r.y, 1);
  rig_close(&r);
}

TEST(an_update_in_place_runs_again_only_from_a_snapshot) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  arm(&r, "device_lost:1");
  CHECK(vyre_route_dispatch(r.route, &r.desc, &report, &st) ==
        VYRE_DEVICE_LOST);
  CHECK_HAS(st.message, "'y'");
  CHECK_HAS(st.fix, "snapshots_in_place");
  close_route(&r);
  open_route(
      &r,
      &(vyre_router_options){
          .devices = "cpu,ref", .fails_over = true, .snapshots_in_place = true},
      "step", NULL);
  reset(&r);
  for (int i = 0; i < 5; i++) {
    arm(&r, "device_lost:1");
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    CHECK_TEXT(report.device, "ref");
  }
  check_steps(r.y, 5);
  rig_close(&r);
}

TEST(a_buffer_of_the_lost_device_prevents_failover) {
  rig r;
  vyre_status st = {0};
  vyre_buffer x;
  vyre_route_report report;
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  vyre_device *cpu = vyre_router_device_at(r.router, 0);
  CHECK_OK(vyre_buffer_create(cpu, sizeof r.x, &x, &st), st);
  CHECK_OK(vyre_buffer_upload(cpu, x, 0, r.x, sizeof r.x, &st), st);
  r.inputs[0] = vyre_input_buffer(x);
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK(report.reason == VYRE_ROUTE_BY_BUFFER);
  arm(&r, "device_lost:1");
  CHECK(vyre_route_dispatch(r.route, &r.desc, &report, &st) ==
        VYRE_DEVICE_LOST);
  CHECK_HAS(st.message, "'x' is a buffer of that device");
  rig_close(&r);
}

/* --- buffers ---------------------------------------------------------------*/

TEST(router_buffers_follow_the_dispatch) {
  rig r;
  vyre_status st = {0};
  vyre_buffer x, y;
  vyre_route_report report;
  uint32_t got[COUNT];
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.x, &x, &st), st);
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.y, &y, &st), st);
  CHECK_OK(vyre_router_buffer_upload(r.router, x, 0, r.x, sizeof r.x, &st), st);
  r.inputs[0] = vyre_input_buffer(x);
  r.output = vyre_output_buffer(y);
  for (uint32_t i = 1; i <= 6; i++) {
    /* Every second dispatch loses its device, which has a copy of x only. */
    arm(&r, i % 2 ? "" : "device_lost:1");
    reset(&r);
    r.inputs[0] = vyre_input_buffer(x);
    r.output = vyre_output_buffer(y);
    CHECK_OK(vyre_router_buffer_upload(r.router, x, 0, r.x, sizeof r.x, &st),
             st);
    CHECK_OK(vyre_router_buffer_download(r.router, x, 0, got, sizeof got, &st),
             st);
    vyre_code code = vyre_route_dispatch(r.route, &r.desc, &report, &st);
    if (i % 2) {
      CHECK_OK(code, st);
      CHECK_OK(
          vyre_router_buffer_download(r.router, y, 0, got, sizeof got, &st),
          st);
      check_steps(got, 1);
    } else {
      /* The newest contents of x were on the lost device alone. */
      CHECK(code == VYRE_DEVICE_LOST);
      CHECK_HAS(st.message, "newest contents");
    }
  }
  vyre_router_buffer_destroy(r.router, x, &st);
  CHECK(vyre_router_buffer_download(r.router, x, 0, got, 4, &st) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(st.kind == VYRE_KIND_STALE_HANDLE);
  rig_close(&r);
}

TEST(a_copy_on_another_device_survives_a_loss) {
  rig r, other;
  vyre_status st = {0};
  vyre_buffer x;
  vyre_route_report report;
  uint32_t z[COUNT];
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  other = r;
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.x, &x, &st), st);
  CHECK_OK(vyre_router_buffer_upload(r.router, x, 0, r.x, sizeof r.x, &st), st);
  r.inputs[0] = vyre_input_buffer(x);
  r.inputs[1] = vyre_input_bytes(r.y, sizeof r.y);
  r.output = vyre_output_bytes(z, sizeof z);
  r.desc.inputs = r.inputs;
  r.desc.outputs = &r.output;
  /* An upload of a part goes to the device with the newest contents; both
   * devices have one after a dispatch on each. */
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  route_bound bound;
  const vyre_binding_plan *plan =
      vyre_pipeline_bindings(atomic_load(&r.route->candidates[0].pipeline));
  CHECK_OK(vyre__route_bind(r.router, plan, &r.desc, 1, &bound, &st), st);
  arm(&r, "device_lost:1");
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "ref");
  check_steps(z, 1);
  (void)other;
  rig_close(&r);
}

/* A router buffer that is updated in place is the newest copy, also if its
 * output goes to the host. */
TEST(a_router_buffer_is_updated_in_place) {
  rig r;
  vyre_status st = {0};
  vyre_buffer y, buffers[1];
  uint32_t z[COUNT], copy[COUNT];
  route_bound bound;
  rig_open(&r, &(vyre_router_options){.devices = "cpu,ref"});
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.y, &y, &st), st);
  CHECK_OK(vyre_router_buffer_upload(r.router, y, 0, r.y, sizeof r.y, &st), st);
  r.inputs[1] = vyre_input_buffer(y);
  r.output = vyre_output_bytes(z, sizeof z);
  const vyre_binding_plan *plan =
      vyre_pipeline_bindings(atomic_load(&r.route->candidates[0].pipeline));
  /* Both devices have a copy before the first dispatch. */
  CHECK_OK(vyre__route_bind(r.router, plan, &r.desc, 1, &bound, &st), st);
  for (uint32_t i = 1; i <= 3; i++) {
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, NULL, &st), st);
    check_steps(z, i);
  }
  CHECK_OK(vyre__route_bind(r.router, plan, &r.desc, 1, &bound, &st), st);
  CHECK_OK(
      vyre_buffer_download(atomic_load(&r.router->devices[1].device),
                           bound.inputs[1].buffer, 0, copy, sizeof copy, &st),
      st);
  check_steps(copy, 3);
  r.desc.output_buffers = buffers;
  r.desc.output_buffer_count = 1;
  CHECK_FAILS(vyre_route_dispatch(r.route, &r.desc, NULL, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  rig_close(&r);
}

/* State in a router buffer, updated in place by every dispatch, each of which
 * loses its device. */
TEST(a_state_survives_the_loss_of_its_device_at_every_dispatch) {
  enum { RUNS = 1000 };
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  vyre_buffer x, y;
  uint32_t got[COUNT];
  rig_open(&r, &(vyre_router_options){.devices = "cpu,ref",
                                      .fails_over = true,
                                      .snapshots_in_place = true});
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.x, &x, &st), st);
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.y, &y, &st), st);
  CHECK_OK(vyre_router_buffer_upload(r.router, y, 0, r.y, sizeof r.y, &st), st);
  r.inputs[1] = vyre_input_buffer(y);
  r.output = vyre_output_buffer(y);
  for (int i = 0; i < RUNS; i++) {
    arm(&r, "device_lost:1");
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    CHECK(report.reason == VYRE_ROUTE_FAILED_OVER);
  }
  arm(&r, "");
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "cpu"); /* with the newest contents, from ref */
  CHECK_OK(vyre_router_buffer_download(r.router, y, 0, got, sizeof got, &st),
           st);
  check_steps(got, RUNS + 1);
  rig_close(&r);
}

/* The kernel may have run when the device fails. */
TEST(an_update_of_a_router_buffer_runs_again_only_from_a_snapshot) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  vyre_buffer y;
  uint32_t z[COUNT];
  for (int has_snapshot = 0; has_snapshot < 2; has_snapshot++) {
    rig_open(&r, &(vyre_router_options){.devices = "cpu,ref",
                                        .fails_over = true,
                                        .snapshots_in_place = has_snapshot});
    CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.y, &y, &st), st);
    CHECK_OK(vyre_router_buffer_upload(r.router, y, 0, r.y, sizeof r.y, &st),
             st);
    r.inputs[1] = vyre_input_buffer(y);
    r.output = vyre_output_bytes(z, sizeof z);
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    check_steps(z, 1);
    arm(&r, "device_lost:1");
    vyre_code code = vyre_route_dispatch(r.route, &r.desc, &report, &st);
    if (has_snapshot) {
      CHECK_OK(code, st);
      CHECK_TEXT(report.failed_device, "cpu");
      check_steps(z, 2);
    } else {
      CHECK(code == VYRE_DEVICE_LOST);
      CHECK_HAS(st.message, "'y' in place");
      CHECK_HAS(st.fix, "snapshots_in_place");
    }
    rig_close(&r);
  }
}

/* A device that is open again but cannot compile is passed over. */
TEST(a_device_that_cannot_be_used_again_is_passed_over) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  uint32_t z[COUNT];
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  r.output = vyre_output_bytes(z, sizeof z);
  arm(&r, "device_lost:1");
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  arm(&r, "compile:1");
  CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
  CHECK_TEXT(report.device, "ref");
  CHECK_TEXT(report.failed_device, "cpu");
  CHECK(report.failed_code == VYRE_KERNEL_COMPILE_FAILED);
  check_steps(z, 1);
  rig_close(&r);
}

static route_class *only_class(const rig *r) {
  route_class *of = NULL;
  for (int i = 0; i < ROUTE_CLASSES && !of; i++) {
    of = atomic_load(&r->route->classes[i]);
  }
  CHECK(of != NULL);
  return of;
}

/* Exploring stops when its share of the time is used up, and goes on later. */
TEST(exploring_is_bounded) {
  rig r;
  rig_begin(&r);
  open_route(&r,
             &(vyre_router_options){.devices = "cpu,ref",
                                    .policy = VYRE_ROUTE_FASTEST,
                                    .ignores_stored_times = true},
             "heavy", NULL);
  r.router->devices[1].latency_ns = 0; /* never hopeless without a trial */
  (void)run_many(&r, 200, "cpu");
  route_class *of = only_class(&r);
  route_estimate *ref = &of->estimates[1];
  ref->state = ROUTE_UNTRIED;
  ref->failed_trials = 0;
  atomic_store(&ref->samples, 0);
  atomic_store(&ref->time_ns, 0);
  of->spent_ns = UINT64_MAX / 2;
  (void)run_many(&r, 500, "cpu");
  CHECK(ref->state == ROUTE_UNTRIED);
  CHECK_U64(atomic_load(&ref->samples), 0);
  CHECK_U64(of->spent_ns, UINT64_MAX / 2);
  of->spent_ns = 0;
  (void)run_many(&r, 300, "cpu");
  CHECK(of->spent_ns > 0);
  /* 5 % of the dispatches, in whole thousands */
  of->seen = 999;
  of->spent_ns = 30000;
  CHECK(vyre__route_may_spend(of, 1000, 20000));
  CHECK(!vyre__route_may_spend(of, 1000, 20001));
  of->seen = 1000;
  CHECK(vyre__route_may_spend(of, 1000, 70000));
  rig_close(&r);
}

/* Also if outputs are new buffers, which a trial replaces. */
TEST(new_buffers_are_routed_by_time) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  vyre_buffer made;
  rig_begin(&r);
  open_route(&r,
             &(vyre_router_options){.devices = "ref,cpu",
                                    .policy = VYRE_ROUTE_FASTEST,
                                    .ignores_stored_times = true},
             "heavy", NULL);
  r.output = (vyre_output){.size = sizeof r.y, .new_buffer = &made};
  int hits = 0;
  /* A busy machine may spoil the first trials; the next ones come later. */
  for (int i = 0; i < 3000 && hits < 50; i++) {
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    bool is_cpu = strcmp(report.device, "cpu") == 0;
    vyre_device *device = vyre_router_device_at(r.router, is_cpu);
    CHECK_OK(vyre_buffer_destroy(device, made, &st), st);
    hits += is_cpu && report.reason == VYRE_ROUTE_BY_TIME;
  }
  CHECK(hits == 50);
  rig_close(&r);
}

/* --- shadow runs -----------------------------------------------------------*/

TEST(a_shadow_run_agrees) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  int shadowed = 0;
  rig_open(
      &r, &(vyre_router_options){.devices = "cpu,ref", .shadow_permille = 250});
  for (int i = 0; i < 100; i++) {
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    shadowed += report.is_shadowed;
    CHECK(!report.is_different);
  }
  CHECK_U64(shadowed, 25);
  check_steps(r.y, 100); /* in place: the shadow used a snapshot */
  rig_close(&r);
}

/* Every dispatch has a shadow run, and loses the device of one of the two, or
 * none. The bits are those of a run without faults. */
TEST(shadow_runs_that_lose_devices_change_no_result) {
  enum { RUNS = 1000 };
  static const char *const faults[] = {"device_lost:1", "device_lost:2",
                                       "device_lost:3", ""};
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  unsigned failed_over = 0, lost = 0, compared = 0;
  rig_open(&r, &(vyre_router_options){.devices = "cpu,ref",
                                      .fails_over = true,
                                      .snapshots_in_place = true,
                                      .shadow_permille = 1000});
  for (int i = 0; i < RUNS; i++) {
    arm(&r, faults[i % 4]);
    CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
    CHECK(!report.is_different);
    failed_over += report.reason == VYRE_ROUTE_FAILED_OVER;
    lost += !report.is_shadowed && report.reason != VYRE_ROUTE_FAILED_OVER;
    compared += report.is_shadowed;
  }
  /* The first submission is that of the dispatch, the second its shadow. */
  CHECK_U64(failed_over, RUNS / 4);
  CHECK_U64(lost, RUNS / 4);
  CHECK_U64(compared, RUNS / 2);
  check_steps(r.y, RUNS);
  rig_close(&r);
}

/* Buffers are copied for the shadow run, and the results fetched. */
TEST(a_shadow_run_agrees_on_buffers) {
  for (int kind = 0; kind < 3; kind++) {
    rig r;
    vyre_status st = {0};
    vyre_route_report report;
    vyre_buffer y;
    uint32_t got[COUNT], z[COUNT];
    rig_open(&r, &(vyre_router_options){.devices = "cpu,ref",
                                        .shadow_permille = 1000});
    vyre_device *cpu = vyre_router_device_at(r.router, 0);
    if (kind == 0) {
      CHECK_OK(vyre_buffer_create(cpu, sizeof r.y, &y, &st), st);
      CHECK_OK(vyre_buffer_upload(cpu, y, 0, r.y, sizeof r.y, &st), st);
    } else {
      CHECK_OK(vyre_router_buffer_create(r.router, sizeof r.y, &y, &st), st);
      CHECK_OK(vyre_router_buffer_upload(r.router, y, 0, r.y, sizeof r.y, &st),
               st);
    }
    r.inputs[1] = vyre_input_buffer(y);
    r.output =
        kind == 2 ? vyre_output_bytes(z, sizeof z) : vyre_output_buffer(y);
    for (uint32_t i = 1; i <= 3; i++) {
      CHECK_OK(vyre_route_dispatch(r.route, &r.desc, &report, &st), st);
      CHECK(report.is_shadowed && !report.is_different);
    }
    if (kind == 0) {
      CHECK_OK(vyre_buffer_download(cpu, y, 0, got, sizeof got, &st), st);
    } else {
      CHECK_OK(
          vyre_router_buffer_download(r.router, y, 0, got, sizeof got, &st),
          st);
    }
    check_steps(got, 3);
    rig_close(&r);
  }
}

static bool count_lines(void *self, const char *line, size_t length) {
  (void)length;
  *(int *)self += strchr(line, '\n') != NULL;
  return true;
}

TEST(a_difference_is_kept_and_runs_again) {
  rig r;
  vyre_status st = {0};
  vyre_route_report report;
  float a[COUNT], z[COUNT];
  char path[160];
  unsigned char bytes[8192];
  rig_begin(&r);
  /* Contraction is allowed, and only cpu does it: the results differ. */
  open_route(&r,
             &(vyre_router_options){.devices = "cpu,ref",
                                    .shadow_permille = 1000,
                                    .shadow_folder = r.folder},
             "contract", &(vyre_compile_options){.ulp_budget = 4});
  for (int i = 0; i < COUNT; i++) a[i] = 0.37f * (float)(i + 1);
  vyre_input input = vyre_input_bytes(a, sizeof a);
  vyre_output output = vyre_output_bytes(z, sizeof z);
  vyre_dispatch_desc desc = {.inputs = &input,
                             .input_count = 1,
                             .outputs = &output,
                             .output_count = 1};
  CHECK_OK(vyre_route_dispatch(r.route, &desc, &report, &st), st);
  CHECK(report.is_shadowed && report.is_different && report.has_file);
  CHECK_TEXT(report.output, "z");
  CHECK_TEXT(report.shadow_device, "ref");
  /* The same element with the result in a buffer of the router. */
  vyre_buffer buffer;
  vyre_route_report again;
  CHECK_OK(vyre_router_buffer_create(r.router, sizeof z, &buffer, &st), st);
  output = vyre_output_buffer(buffer);
  CHECK_OK(vyre_route_dispatch(r.route, &desc, &again, &st), st);
  CHECK(again.is_different && again.element == report.element);
  (void)snprintf(path, sizeof path, "%s/%s", r.folder, again.file);
  (void)remove(path);
  (void)snprintf(path, sizeof path, "%s/%s", r.folder, report.file);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  int lines = 0;
  bool is_same = true;
  CHECK_OK(
      vyre_shadow_replay(r.router, bytes, size,
                         (vyre_writer){count_lines, &lines}, &is_same, &st),
      st);
  CHECK(!is_same);
  CHECK_U64(lines, 2);
  for (size_t cut = 0; cut < size; cut += 7) {
    CHECK(vyre_shadow_replay(r.router, bytes, cut, (vyre_writer){0}, &is_same,
                             &st) == VYRE_INVALID_ARGUMENT);
  }
  for (size_t at = 0; at < size; at += 5) {
    bytes[at] ^= 0x40;
    CHECK(vyre_shadow_replay(r.router, bytes, size, (vyre_writer){0}, &is_same,
                             &st) == VYRE_INVALID_ARGUMENT);
    bytes[at] ^= 0x40;
  }
  (void)remove(path);
  rig_close(&r);
}

/* --- threads ---------------------------------------------------------------*/

static void *run_thread(void *self) {
  const rig *shared = self;
  rig own = *shared;
  vyre_status st = {0};
  vyre_route_candidate c;
  reset(&own);
  for (int i = 0; i < 200; i++) {
    CHECK_OK(vyre_route_dispatch(own.route, &own.desc, NULL, &st), st);
    CHECK(vyre_route_candidate_at(own.route, &own.desc, i % 2, &c));
  }
  check_steps(own.y, 200);
  return NULL;
}

TEST(threads_share_a_route) {
  rig r;
  pthread_t threads[4];
  rig_open(&r, &(vyre_router_options){.devices = "ref,cpu",
                                      .policy = VYRE_ROUTE_FASTEST});
  for (int i = 0; i < 4; i++) {
    CHECK(pthread_create(&threads[i], NULL, run_thread, &r) == 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  rig_close(&r);
}

static void *run_and_lose(void *self) {
  rig own = *(const rig *)self;
  vyre_status st = {0};
  uint32_t z[COUNT];
  reset(&own);
  own.output = vyre_output_bytes(z, sizeof z);
  for (int i = 0; i < 100; i++) {
    if (i % 3 == 0) arm(&own, "device_lost:1");
    vyre_code code;
    do { /* the fault of another thread may hit the second device, too */
      code = vyre_route_dispatch(own.route, &own.desc, NULL, &st);
    } while (code == VYRE_DEVICE_LOST);
    CHECK_OK(code, st);
    memcpy(own.y, z, sizeof z);
  }
  check_steps(own.y, 100);
  return NULL;
}

TEST(threads_lose_devices_of_each_other) {
  rig r;
  pthread_t threads[4];
  rig_open(&r,
           &(vyre_router_options){.devices = "cpu,ref", .fails_over = true});
  for (int i = 0; i < 4; i++) {
    CHECK(pthread_create(&threads[i], NULL, run_and_lose, &r) == 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  arm(&r, "");
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(lists_of_a_wrong_length_are_not_read),
    TEST_ENTRY(the_first_device_of_the_list_runs_a_fixed_route),
    TEST_ENTRY(a_capable_route_skips_devices_that_cannot_run_the_program),
    TEST_ENTRY(bad_options_are_refused),
    TEST_ENTRY(the_fastest_device_is_found_and_remembered),
    TEST_ENTRY(a_corrupt_file_of_times_is_ignored),
    TEST_ENTRY(times_of_another_driver_are_forgotten),
    TEST_ENTRY(a_lost_device_at_every_dispatch_changes_no_result),
    TEST_ENTRY(without_failover_the_failure_is_reported),
    TEST_ENTRY(an_update_in_place_runs_again_only_from_a_snapshot),
    TEST_ENTRY(a_buffer_of_the_lost_device_prevents_failover),
    TEST_ENTRY(router_buffers_follow_the_dispatch),
    TEST_ENTRY(a_copy_on_another_device_survives_a_loss),
    TEST_ENTRY(a_router_buffer_is_updated_in_place),
    TEST_ENTRY(a_state_survives_the_loss_of_its_device_at_every_dispatch),
    TEST_ENTRY(an_update_of_a_router_buffer_runs_again_only_from_a_snapshot),
    TEST_ENTRY(a_device_that_cannot_be_used_again_is_passed_over),
    TEST_ENTRY(exploring_is_bounded),
    TEST_ENTRY(new_buffers_are_routed_by_time), TEST_ENTRY(a_shadow_run_agrees),
    TEST_ENTRY(shadow_runs_that_lose_devices_change_no_result),
    TEST_ENTRY(a_shadow_run_agrees_on_buffers),
    TEST_ENTRY(a_difference_is_kept_and_runs_again),
    TEST_ENTRY(threads_share_a_route),
    TEST_ENTRY(threads_lose_devices_of_each_other))
