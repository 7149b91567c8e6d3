/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drivers that compile for a long time: compiles and dispatches end at their
 * limits, and what they left behind ends later, by itself. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/vulkan_testing.h"
#include "base/clock.h"
#include "runtime/core/device.h"
#include "support/sanitized.h"

enum { MS = 1000000 };

static const char kernels[] =
    "kernel spin workgroup(1)\n"
    "buffer y : write u32[1] @0;\nuniform n : u32 @1;\n"
    "{ var k = 0u; while (k < n) { k = k + 1; } y[0] = k; }\n"
    "kernel one workgroup(1)\n"
    "buffer y : write u32[1] @0;\n"
    "{ y[0] = 1; }\n";
enum { SPIN, ONE };

/* --- a driver that stops until the gate opens ----------------------------- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_is_closed;
static pthread_t passes; /* the thread that the gate does not stop */
static atomic_uint stopped;

static void stop_at_gate(void) {
  if (pthread_equal(pthread_self(), passes)) return;
  pthread_mutex_lock(&gate);
  if (gate_is_closed) atomic_fetch_add(&stopped, 1);
  while (gate_is_closed) pthread_cond_wait(&gate_changed, &gate);
  pthread_mutex_unlock(&gate);
}

static void set_gate(bool is_closed) {
  pthread_mutex_lock(&gate);
  gate_is_closed = is_closed;
  pthread_cond_broadcast(&gate_changed);
  pthread_mutex_unlock(&gate);
}

/* Waits for a condition that another thread makes true. */
#define AWAIT(condition)                               \
  do {                                                 \
    const struct timespec pause_ = {.tv_nsec = MS};    \
    for (int i_ = 0; i_ < 20000 && !(condition); i_++) \
      (void)nanosleep(&pause_, NULL);                  \
    CHECK(condition);                                  \
  } while (0)

static void begin(vk_rig *r) {
  passes = pthread_self();
  atomic_store(&stopped, 0);
  vk_rig_open(r, "");
  r->module = parse_module(kernels);
}

/* Returns true if nothing but the test uses the device. */
static bool is_idle(const vk_rig *r) {
  return atomic_load(&r->device->state->references) == 1;
}

static vyre_code compile(vk_rig *r, size_t kernel, uint64_t timeout_ns,
                         vyre_pipeline **out, vyre_status *st) {
  const vyre_compile_options options = {.timeout_ns = timeout_ns};
  return vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, kernel),
                               &options, out, NULL, st);
}

static vyre_code spin(vyre_pipeline *pipeline, uint32_t n, uint64_t max,
                      uint64_t timeout_ns, uint32_t *y, vyre_status *st) {
  const vyre_input in = vyre_input_bytes(&n, sizeof n);
  const vyre_output out = vyre_output_bytes(y, sizeof *y);
  const vyre_dispatch_desc desc = {.inputs = &in,
                                   .input_count = 1,
                                   .outputs = &out,
                                   .output_count = 1,
                                   .grid = {1, 1, 1},
                                   .max_loop_iterations = max,
                                   .timeout_ns = timeout_ns};
  return vyre_dispatch(pipeline, &desc, st);
}

/* --- compiles --------------------------------------------------------------*/

TEST(a_slow_compile_ends_at_its_limit_and_its_result_is_kept) {
  vk_rig r;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  uint32_t y = 0;
  begin(&r);
  vk_calls.compiles = stop_at_gate;
  set_gate(true);
  uint64_t begin_ns = vyre__clock_ns();
  CHECK_FAILS(compile(&r, SPIN, UINT64_C(20) * MS, &pipeline, &st), st,
              VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_TIMED_OUT);
  CHECK(!pipeline && vyre__clock_ns() - begin_ns >= UINT64_C(20) * MS);
  CHECK(strstr(st.message, "'spin' within 20 ms") && st.fix[0]);
  AWAIT(atomic_load(&stopped) == 1);
  /* A second attempt waits for the first compile. */
  CHECK_FAILS(compile(&r, SPIN, UINT64_C(20) * MS, &pipeline, &st), st,
              VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_TIMED_OUT);
  CHECK_U64(atomic_load(&stopped), 1);
  /* Other work of the device goes on. */
  CHECK_OK(compile(&r, ONE, 0, &pipeline, &st), st);
  vyre_pipeline_release(pipeline);
  unsigned created = atomic_load(&vk_calls.pipelines);
  set_gate(false);
  CHECK_OK(compile(&r, SPIN, UINT64_MAX, &pipeline, &st), st);
  CHECK_U64(atomic_load(&vk_calls.pipelines), created);
  CHECK_OK(spin(pipeline, 1000, 0, 0, &y, &st), st);
  CHECK_U64(y, 1000);
  vyre_pipeline_release(pipeline);
  AWAIT(is_idle(&r));
  vk_calls.compiles = NULL;
  vk_rig_close(&r);
}

TEST(an_abandoned_compile_may_outlive_the_device_of_the_caller) {
  vk_rig r;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  begin(&r);
  vk_calls.compiles = stop_at_gate;
  set_gate(true);
  CHECK(compile(&r, SPIN, MS, &pipeline, &st) == VYRE_KERNEL_COMPILE_FAILED);
  AWAIT(atomic_load(&stopped) == 1);
  /* Releasing does not wait: the gate is closed. */
  vyre_module_release(r.module);
  vyre_device_release(r.device);
  vyre_context_release(r.context);
  CHECK(r.heap.live_bytes > 0);
  set_gate(false);
  AWAIT(__atomic_load_n(&r.heap.live_bytes, __ATOMIC_ACQUIRE) == 0);
  CHECK_U64((uint64_t)atomic_load(&vk_calls.live), 0);
  vk_calls.compiles = NULL;
}

TEST(a_variant_has_a_limit_too) {
  vk_rig r;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  begin(&r);
  CHECK_OK(compile(&r, SPIN, 0, &pipeline, &st), st);
  vk_calls.compiles = stop_at_gate;
  set_gate(true);
  const vyre_compile_options options = {.workgroup = {4}, .timeout_ns = MS};
  CHECK_FAILS(vyre_pipeline_add_variant(pipeline, &options, &st), st,
              VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_TIMED_OUT);
  set_gate(false);
  const vyre_compile_options patient = {.workgroup = {4},
                                        .timeout_ns = UINT64_MAX};
  CHECK_OK(vyre_pipeline_add_variant(pipeline, &patient, &st), st);
  vyre_pipeline_release(pipeline);
  AWAIT(is_idle(&r));
  vk_calls.compiles = NULL;
  vk_rig_close(&r);
}

TEST(a_failed_compile_with_a_limit_reports_its_error) {
  vk_rig r;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  begin(&r);
  /* The caller waits for no fence of its own. */
  CHECK_OK(vyre_context_inject_faults(r.context, "compile:1,wait:1", &st), st);
  CHECK_FAILS(compile(&r, ONE, UINT64_MAX, &pipeline, &st), st,
              VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_INJECTED_FAULT);
  CHECK(!pipeline);
  AWAIT(is_idle(&r));
  vk_rig_close(&r);
}

static void *open_gate_later(void *self) {
  (void)self;
  const struct timespec pause = {.tv_nsec = 100L * MS};
  (void)nanosleep(&pause, NULL);
  set_gate(false);
  return NULL;
}

/* exit() would destroy objects that the compiler of the driver uses. */
TEST(exit_waits_for_an_abandoned_compile) {
  if (THREAD_SANITIZED) return; /* it cannot fork a process with threads */
  int status = -1;
  uint64_t begin_ns = vyre__clock_ns();
  (void)fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    vk_rig r;
    vyre_pipeline *pipeline;
    vyre_status st = {0};
    pthread_t opener;
    begin(&r);
    vk_calls.compiles = stop_at_gate;
    set_gate(true);
    if (compile(&r, SPIN, MS, &pipeline, &st) != VYRE_KERNEL_COMPILE_FAILED)
      _exit(2);
    AWAIT(atomic_load(&stopped) == 1);
    if (pthread_create(&opener, NULL, open_gate_later, NULL) != 0) _exit(3);
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(vyre__clock_ns() - begin_ns >= UINT64_C(100) * MS);
}

/* --- dispatches ----------------------------------------------------------- */

TEST(a_dispatch_abandons_the_compile_of_its_counting_code) {
  vk_rig r;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  uint32_t y = 0;
  begin(&r);
  CHECK_OK(compile(&r, SPIN, 0, &pipeline, &st), st);
  const vk_pipeline *p = (const vk_pipeline *)pipeline;
  if (p->plan.may_skip_fuel) {
    vk_calls.compiles = stop_at_gate;
    set_gate(true);
    for (int i = 0; i < 2; i++) { /* the second one waits for the first */
      CHECK_FAILS(spin(pipeline, 1000, 1000, UINT64_C(20) * MS, &y, &st), st,
                  VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
      AWAIT(atomic_load(&stopped) == 1);
    }
    /* A dispatch that needs no such code still runs. */
    CHECK_OK(spin(pipeline, 1000, 0, 0, &y, &st), st);
    set_gate(false);
  }
  CHECK_OK(spin(pipeline, 1000, 1000, 0, &y, &st), st);
  CHECK_U64(y, 1000);
  vk_calls.compiles = NULL;
  vyre_pipeline_release(pipeline);
  AWAIT(is_idle(&r));
  vk_rig_close(&r);
}

TEST(a_failed_compile_of_counting_code_is_reported) {
  vk_rig r;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  uint32_t y = 0;
  begin(&r);
  CHECK_OK(compile(&r, SPIN, 0, &pipeline, &st), st);
  bool may_skip = ((const vk_pipeline *)pipeline)->plan.may_skip_fuel;
  for (uint64_t timeout = 0; may_skip && timeout < 2; timeout++) {
    /* The memory of the dispatch exists already, so the next allocation is the
     * shader module. */
    CHECK_OK(spin(pipeline, 10, 0, timeout * 1000 * MS, &y, &st), st);
    atomic_store(&vk_calls.allocations_left, 0);
    vyre_code code = spin(pipeline, 10, 10, timeout * 1000 * MS, &y, &st);
    atomic_store(&vk_calls.allocations_left, -1);
    CHECK_U64(code, VYRE_DEVICE_OUT_OF_MEMORY);
  }
  CHECK_OK(spin(pipeline, 10, 10, 0, &y, &st), st);
  vyre_pipeline_release(pipeline);
  AWAIT(is_idle(&r));
  vk_rig_close(&r);
}

/* Mesa's software device compiles in its queue, and later submissions wait. */
TEST(a_dispatch_does_not_wait_for_a_compile_in_the_queue) {
  vk_rig r;
  vyre_pipeline *pipeline, *other;
  vyre_status st = {0};
  uint32_t y = 0;
  begin(&r);
  CHECK_OK(compile(&r, SPIN, 0, &pipeline, &st), st);
  if (r.own->physical->is_software) {
    set_gate(true);
    vk_calls.submitting = stop_at_gate;
    CHECK(compile(&r, ONE, MS, &other, &st) == VYRE_KERNEL_COMPILE_FAILED);
    AWAIT(atomic_load(&stopped) == 1);
    CHECK_FAILS(spin(pipeline, 1000, 0, UINT64_C(20) * MS, &y, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
    /* A device that is opened now has a queue of its own. */
    vyre_device *fresh;
    CHECK_OK(vyre_device_open(r.context, "vulkan", &fresh, &st), st);
    CHECK(((vk_device *)fresh)->logical != r.own->logical);
    vyre_device_release(fresh);
    set_gate(false);
    AWAIT(atomic_load(&r.device->state->references) == 2);
    vk_calls.submitting = NULL;
  }
  CHECK_OK(spin(pipeline, 1000, 0, UINT64_C(10000) * MS, &y, &st), st);
  CHECK_U64(y, 1000);
  vyre_pipeline_release(pipeline);
  AWAIT(is_idle(&r));
  vk_rig_close(&r);
}

VK_TEST_MAIN(
    TEST_ENTRY(a_slow_compile_ends_at_its_limit_and_its_result_is_kept),
    TEST_ENTRY(an_abandoned_compile_may_outlive_the_device_of_the_caller),
    TEST_ENTRY(a_variant_has_a_limit_too),
    TEST_ENTRY(a_failed_compile_with_a_limit_reports_its_error),
    TEST_ENTRY(exit_waits_for_an_abandoned_compile),
    TEST_ENTRY(a_dispatch_abandons_the_compile_of_its_counting_code),
    TEST_ENTRY(a_failed_compile_of_counting_code_is_reported),
    TEST_ENTRY(a_dispatch_does_not_wait_for_a_compile_in_the_queue))
