/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A launch sees one value of each uniform, even if the bytes change before any
 * Vulkan call of the launch. Covers host memory and device buffers, launch
 * blocks, push constants and bound buffers, in dispatches, batches, recordings
 * and loops. Later launches must not reuse stale values either. */
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/vulkan_testing.h"
#include "runtime/memory/device_buffer.h"

/* Each phase writes the values of q that it reads. `scalar` uses constant
 * indices and `indexed` dynamic ones; q is the trip count of the grid loop in
 * `iterate`. */
static const char kernels[] =
    "kernel scalar workgroup(8)\nuniform q : u32[4] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; y[i] = q[0]; grid_barrier(); y[i + 64u] = q[3];\n"
    "  grid_barrier(); y[i + 128u] = q[1]; }\n"
    "kernel indexed workgroup(8)\nuniform q : u32[4] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; y[i] = q[i & 3u]; grid_barrier();\n"
    "  y[i + 64u] = q[(i + 1u) & 3u]; grid_barrier();\n"
    "  y[i + 128u] = q[i >> 5u]; }\n"
    "kernel iterate workgroup(8)\nuniform q : u32[4] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; y[i] = q[i & 3u]; y[i + 64u] = 0u;\n"
    "  y[i + 128u] = q[0];\n"
    "  for (let k = 0u; k < q[1]; k++) { grid_barrier(); y[i + 64u] += 1u; } "
    "}\n"
    "kernel decrement workgroup(1)\nbuffer n : read_write u32[1] @0;\n"
    "{ n[0] = n[0] - 1u; }\n";
enum { SCALAR, INDEXED, ITERATE, DECREMENT, KERNELS = ITERATE + 1 };

enum { N = 192, GROUPS = 8, BEFORE = 3, AFTER = 5, ELEMENTS = 4 };

static const char *const configs[] = {
    "vulkan.push_constants=0", "vulkan.push_constants=1",
    "vulkan.push_constants=0,vulkan.staging=1",
    "vulkan.push_constants=1,vulkan.staging=1"};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

/* --- changing bytes ------------------------------------------------------- */

static struct {
  volatile uint32_t *q; /* address of the uniform; NULL: nothing changes */
  unsigned left;        /* calls before the change */
  unsigned calls;
} change;

static void set_all(uint32_t value) {
  for (int i = 0; change.q && i < ELEMENTS; i++) change.q[i] = value;
}

static void on_call(void) {
  change.calls++;
  if (change.left > 0 && --change.left == 0) set_all(AFTER);
}

/* --- the test scene ------------------------------------------------------- */

typedef struct scene {
  vk_rig r;
  uint32_t host[ELEMENTS], y[N];
  vyre_buffer device_buffer, number;
  bool in_device;
  vyre_input in[2];
  vyre_output out;
  vyre_dispatch_desc desc;
} scene;

static void scene_open(scene *s, int way) {
  vyre_status st = {0};
  memset(s, 0, sizeof *s);
  vk_rig_open(&s->r, configs[way]);
  vk_rig_compile(&s->r, kernels);
  CHECK_OK(
      vyre_buffer_create(s->r.device, sizeof s->host, &s->device_buffer, &st),
      st);
  CHECK_OK(vyre_buffer_create(s->r.device, 4, &s->number, &st), st);
  vk_calls.called = on_call;
}

static void scene_close(scene *s) {
  vk_calls.called = NULL;
  change.q = NULL;
  vk_rig_close(&s->r);
}

/* Binds q in host memory or in a device buffer. Returns false if the host
 * cannot change it there. */
static bool scene_bind(scene *s, bool in_device) {
  vyre_status st = {0};
  s->in_device = in_device;
  change.q = s->host;
  s->in[0] = vyre_input_bytes(s->host, sizeof s->host);
  if (in_device) {
    s->in[0] = vyre_input_buffer(s->device_buffer);
    vyre__device_buffer *slot;
    CHECK_OK(
        vyre__device_buffer_acquire(s->r.device, s->device_buffer, &slot, &st),
        st);
    change.q = (volatile uint32_t *)(void *)((const vk_buffer *)slot->buffer)
                   ->range.host;
    vyre__device_buffer_release(s->r.device, slot);
  }
  s->in[1] = vyre_input_bytes(s->y, sizeof s->y);
  s->out = vyre_output_bytes(s->y, sizeof s->y);
  s->desc = (vyre_dispatch_desc){.inputs = s->in,
                                 .input_count = 2,
                                 .outputs = &s->out,
                                 .output_count = 1,
                                 .grid = {GROUPS, 1, 1}};
  return change.q != NULL;
}

typedef void run_form(scene *s, int kernel);

static void by_dispatch(scene *s, int kernel) {
  vyre_status st = {0};
  CHECK_OK(vyre_dispatch(s->r.pipelines[kernel], &s->desc, &st), st);
}

/* A deadline makes it run in windows. */
static void in_windows(scene *s, int kernel) {
  vyre_status st = {0};
  vyre_dispatch_desc desc = s->desc;
  desc.timeout_ns = UINT64_C(60000000000);
  ((vk_pipeline *)s->r.pipelines[kernel])->group_ps = UINT64_C(3000000000);
  CHECK_OK(vyre_dispatch(s->r.pipelines[kernel], &desc, &st), st);
}

/* Returns true if all elements have the value from before the change, or all
 * from after it. */
static bool is_one_value(const uint32_t y[N], uint32_t *value) {
  *value = y[0];
  if (*value != BEFORE && *value != AFTER) return false;
  for (int i = 0; i < N; i++) {
    if (y[i] != *value) return false;
  }
  return true;
}

/* Each item has its own memory for y. */
static void by_batch(scene *s, int kernel) {
  enum { ITEMS = 3 };
  static uint32_t more[ITEMS][N];
  vyre_status st = {0};
  vyre_dispatch_desc items[ITEMS];
  vyre_input in[ITEMS][2];
  vyre_output out[ITEMS];
  for (int i = 0; i < ITEMS; i++) {
    in[i][0] = s->in[0];
    in[i][1] = vyre_input_bytes(more[i], sizeof more[i]);
    out[i] = vyre_output_bytes(more[i], sizeof more[i]);
    items[i] = s->desc;
    items[i].inputs = in[i];
    items[i].outputs = &out[i];
  }
  CHECK_OK(vyre_submit(s->r.pipelines[kernel], items, ITEMS, NULL, &st), st);
  for (int i = 0; i < ITEMS; i++) {
    uint32_t value;
    CHECK(is_one_value(more[i], &value));
  }
  memcpy(s->y, more[0], sizeof s->y);
}

static vyre_slot_range fixed(vyre_recording *rec,
                             const vyre_slot_binding *binding) {
  uint32_t slot;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_add_fixed_slot(rec, binding, &slot, &st), st);
  return vyre_slot_range_all(slot);
}

/* Records two launches, or a loop of one iteration, and replays it twice. */
static void by_recording(scene *s, int kernel, bool loops) {
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(s->r.device, &rec, &st), st);
  vyre_slot_range q = fixed(
      rec, s->in_device
               ? &(vyre_slot_binding){.buffer = s->device_buffer}
               : &(vyre_slot_binding){.data = s->host, .size = sizeof s->host});
  vyre_slot_range y =
      fixed(rec, &(vyre_slot_binding){.data = s->y, .size = sizeof s->y});
  vyre_slot_range n = fixed(rec, &(vyre_slot_binding){.buffer = s->number});
  const vyre_slot_range in[] = {q, y};
  const vyre_recorded_dispatch work = {.inputs = in,
                                       .input_count = 2,
                                       .outputs = &y,
                                       .output_count = 1,
                                       .grid = {GROUPS, 1, 1}},
                               decrement = {.inputs = &n,
                                            .input_count = 1,
                                            .outputs = &n,
                                            .output_count = 1,
                                            .grid = {1, 1, 1}};
  if (loops) CHECK_OK(vyre_recording_begin_while(rec, n, 9, 3, &st), st);
  CHECK_OK(vyre_recording_add_dispatch(rec, s->r.pipelines[kernel], &work, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(rec, s->r.pipelines[DECREMENT],
                                       &decrement, &st),
           st);
  if (loops) CHECK_OK(vyre_recording_end_while(rec, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (int i = 0; i < 2; i++) {
    uint32_t is_one = 1;
    CHECK_OK(vyre_buffer_upload(s->r.device, s->number, 0, &is_one, 4, &st),
             st);
    CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  }
  vyre_recording_release(rec);
}

static void replayed(scene *s, int kernel) {
  by_recording(s, kernel, false);
}
static void in_a_loop(scene *s, int kernel) {
  by_recording(s, kernel, true);
}

static void run_form_once(scene *s, run_form *form, int kernel, unsigned call) {
  uint32_t value;
  set_all(BEFORE);
  change.left = call;
  change.calls = 0;
  memset(s->y, 0, sizeof s->y);
  form(s, kernel);
  bool is_changed = call > 0 && change.left == 0;
  change.left = 0;
  bool is_one = is_one_value(s->y, &value);
  if (!is_one || (!is_changed && value != BEFORE)) {
    printf("    kernel %d, %s memory, changed before call %u: %u, %u and %u\n",
           kernel, s->in_device ? "device" : "host", call, (unsigned)s->y[0],
           (unsigned)s->y[64], (unsigned)s->y[128]);
    test_fail(__FILE__, __LINE__);
  }
}

/* Changes the uniform before each Vulkan call of a launch. The next launch must
 * see the new value. */
static void check_form(run_form *form) {
  static scene s;
  for (int w = 0; w < CONFIGS; w++) {
    scene_open(&s, w);
    for (int in_device_buffer = 0; in_device_buffer < 2; in_device_buffer++) {
      if (!scene_bind(&s, in_device_buffer == 1)) continue;
      for (int kernel = 0; kernel < KERNELS; kernel++) {
        run_form_once(&s, form, kernel, 0); /* nothing is cached yet */
        run_form_once(&s, form, kernel, 0);
        unsigned calls = change.calls;
        for (unsigned call = 1; call <= calls + 8; call++) {
          uint32_t value;
          run_form_once(&s, form, kernel, call);
          set_all(AFTER);
          form(&s, kernel);
          CHECK(is_one_value(s.y, &value) && value == AFTER);
        }
      }
    }
    scene_close(&s);
  }
}

TEST(a_dispatch_sees_one_value) {
  check_form(by_dispatch);
}
TEST(windows_of_a_dispatch_see_one_value) {
  check_form(in_windows);
}
TEST(launches_of_a_batch_see_one_value) {
  check_form(by_batch);
}
TEST(a_replay_sees_one_value) {
  check_form(replayed);
}
TEST(a_loop_iteration_sees_one_value) {
  check_form(in_a_loop);
}

VK_TEST_MAIN(TEST_ENTRY(a_dispatch_sees_one_value),
             TEST_ENTRY(windows_of_a_dispatch_see_one_value),
             TEST_ENTRY(launches_of_a_batch_see_one_value),
             TEST_ENTRY(a_replay_sees_one_value),
             TEST_ENTRY(a_loop_iteration_sees_one_value))
