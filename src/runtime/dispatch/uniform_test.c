/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the value of a uniform: the one it has when its launch runs. A device
 * buffer that is bound as a uniform gives what earlier work on the device
 * wrote, in every dispatch form. Reading it allocates nothing. */

#include "support/check.h"
#include "support/driver.h"

/* Each step writes the value of u plus 1. The host also counts iterations of
 * the grid loop by u. `less` ends a loop of a recording. */
static const char text[] =
    "kernel plain workgroup(4)\nuniform u : u32[4] @0;\n"
    "buffer to : write u32[4] @1;\n"
    "{ to[local_id.x] = u[0] + 1u; }\n"
    "kernel indexed workgroup(4)\nuniform u : u32[4] @0;\n"
    "buffer to : write u32[4] @1;\n"
    "{ to[local_id.x] = u[3u - local_id.x] + 1u; }\n"
    "kernel counted workgroup(4)\nuniform u : u32[4] @0;\n"
    "buffer to : read_write u32[4] @1;\n"
    "{ to[local_id.x] = 1u; for (let k = 0u; k < u[1]; k++) {\n"
    "    grid_barrier(); to[local_id.x] += 1u; } }\n"
    "kernel less workgroup(1)\nbuffer n : read_write u32[1] @0;\n"
    "{ n[0] = n[0] - 1u; }\n";
enum { PLAIN, INDEXED, COUNTED, LESS, KERNELS };

enum { ELEMENTS = 4, BYTES = 4 * ELEMENTS, STEPS = 6, FIRST = 3 };

typedef struct scene {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipelines[KERNELS];
  vyre_buffer memory[2], number; /* a step reads one and writes the other */
} scene;

static bool scene_open(scene *s, const char *device) {
  vyre_status st = {0};
  *s = (scene){0};
  const vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  CHECK_OK(vyre_context_create(&options, &s->context, &st), st);
  if (vyre_device_open(s->context, device, &s->device, &st) != VYRE_OK) {
    vyre_context_release(s->context);
    printf("    without %s: %s\n", device, st.message);
    return false;
  }
  CHECK_OK(vyre_module_parse(text, strlen(text), "u", (vyre_allocator){0},
                             &s->module, NULL, &st),
           st);
  for (size_t i = 0; i < KERNELS; i++) {
    CHECK_OK(vyre_pipeline_compile(s->device, vyre_module_kernel(s->module, i),
                                   NULL, &s->pipelines[i], NULL, &st),
             st);
  }
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_buffer_create(s->device, BYTES, &s->memory[i], &st), st);
  }
  CHECK_OK(vyre_buffer_create(s->device, 4, &s->number, &st), st);
  return true;
}

static void scene_close(scene *s) {
  for (int i = 0; i < KERNELS; i++) vyre_pipeline_release(s->pipelines[i]);
  vyre_device_release(s->device);
  vyre_context_release(s->context);
  vyre_module_release(s->module);
}

static void scene_reset(scene *s) {
  const uint32_t first[ELEMENTS] = {FIRST, FIRST, FIRST, FIRST};
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_upload(s->device, s->memory[0], 0, first, BYTES, &st),
           st);
}

static void check_count(scene *s, const char *form, int kernel, uint32_t want) {
  uint32_t got[ELEMENTS];
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_download(s->device, s->memory[0], 0, got, BYTES, &st),
           st);
  for (int i = 0; i < ELEMENTS; i++) {
    if (got[i] == want) continue;
    printf("    %s, kernel %d on '%s': %u, not %u\n", form, kernel,
           vyre_device_name(s->device), (unsigned)got[i], (unsigned)want);
    test_fail(__FILE__, __LINE__);
  }
}

/* Runs step @p n. `counted` also reads its output. */
typedef struct step {
  vyre_input in[2];
  vyre_output out;
  vyre_dispatch_desc desc;
} step;

static void make_step(const scene *s, int kernel, int n, step *to) {
  to->in[0] = vyre_input_buffer(s->memory[n % 2]);
  to->in[1] = vyre_input_buffer(s->memory[1 - n % 2]);
  to->out = vyre_output_buffer(s->memory[1 - n % 2]);
  to->desc = (vyre_dispatch_desc){.inputs = to->in,
                                  .input_count = kernel == COUNTED ? 2 : 1,
                                  .outputs = &to->out,
                                  .output_count = 1,
                                  .grid = {1, 1, 1}};
}

static void by_dispatches(scene *s, int kernel) {
  vyre_status st = {0};
  for (int n = 0; n < STEPS; n++) {
    step one;
    make_step(s, kernel, n, &one);
    CHECK_OK(vyre_dispatch(s->pipelines[kernel], &one.desc, &st), st);
  }
  check_count(s, "dispatches", kernel, FIRST + STEPS);
}

/* The last step is submitted before the first one runs. */
static void by_fences(scene *s, int kernel) {
  vyre_status st = {0};
  vyre_fence *fences[STEPS];
  for (int n = 0; n < STEPS; n++) {
    step one;
    make_step(s, kernel, n, &one);
    CHECK_OK(vyre_submit(s->pipelines[kernel], &one.desc, 1, &fences[n], &st),
             st);
  }
  for (int n = 0; n < STEPS; n++) {
    CHECK_OK(vyre_fence_wait(fences[n], VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(fences[n]);
  }
  check_count(s, "fences", kernel, FIRST + STEPS);
}

static void by_batch(scene *s, int kernel) {
  vyre_status st = {0};
  step steps[STEPS];
  vyre_dispatch_desc items[STEPS];
  for (int n = 0; n < STEPS; n++) {
    make_step(s, kernel, n, &steps[n]);
    items[n] = steps[n].desc;
  }
  for (uint32_t turn = 1; turn <= 3; turn++) {
    CHECK_OK(vyre_submit(s->pipelines[kernel], items, STEPS, NULL, &st), st);
    check_count(s, "a batch", kernel, FIRST + turn * STEPS);
  }
}

static vyre_slot_range fixed(vyre_recording *rec, vyre_buffer what) {
  uint32_t slot;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_add_fixed_slot(
               rec, &(vyre_slot_binding){.buffer = what}, &slot, &st),
           st);
  return vyre_slot_range_all(slot);
}

static void by_recording(scene *s, int kernel, bool loops) {
  enum { ROUNDS = 3 };
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(s->device, &rec, &st), st);
  vyre_slot_range memory[2] = {fixed(rec, s->memory[0]),
                               fixed(rec, s->memory[1])};
  vyre_slot_range n = fixed(rec, s->number);
  if (loops) CHECK_OK(vyre_recording_begin_while(rec, n, 99, 2, &st), st);
  for (int i = 0; i < STEPS; i++) {
    const vyre_slot_range in[] = {memory[i % 2], memory[1 - i % 2]};
    const vyre_recorded_dispatch one = {
        .inputs = in,
        .input_count = kernel == COUNTED ? 2 : 1,
        .outputs = &memory[1 - i % 2],
        .output_count = 1,
        .grid = {1, 1, 1}};
    CHECK_OK(vyre_recording_add_dispatch(rec, s->pipelines[kernel], &one, &st),
             st);
  }
  const vyre_recorded_dispatch less = {.inputs = &n,
                                       .input_count = 1,
                                       .outputs = &n,
                                       .output_count = 1,
                                       .grid = {1, 1, 1}};
  CHECK_OK(vyre_recording_add_dispatch(rec, s->pipelines[LESS], &less, &st),
           st);
  if (loops) CHECK_OK(vyre_recording_end_while(rec, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (uint32_t turn = 1; turn <= 3; turn++) {
    const uint32_t rounds = ROUNDS;
    CHECK_OK(vyre_buffer_upload(s->device, s->number, 0, &rounds, 4, &st), st);
    CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
    check_count(s, loops ? "a loop" : "a recording", kernel,
                FIRST + turn * STEPS * (loops ? ROUNDS : 1));
  }
  vyre_recording_release(rec);
}

TEST(device_uniforms_have_what_earlier_work_wrote) {
  static const char *const devices[] = {"ref", "cpu", "vulkan"};
  for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
    scene s;
    if (!scene_open(&s, devices[d])) continue;
    for (int kernel = PLAIN; kernel <= COUNTED; kernel++) {
      scene_reset(&s);
      by_dispatches(&s, kernel);
      scene_reset(&s);
      by_fences(&s, kernel);
      scene_reset(&s);
      by_batch(&s, kernel);
      scene_reset(&s);
      by_recording(&s, kernel, false);
      scene_reset(&s);
      by_recording(&s, kernel, true);
    }
    scene_close(&s);
  }
}

/* Small uniforms are on the stack of a launch, larger ones in its scratch
 * memory. */
TEST(a_warm_dispatch_with_uniforms_allocates_nothing) {
  static const char *const devices[] = {"ref", "cpu"};
  static const char *const kernels[] = {
      "kernel k workgroup(4)\nuniform u : u32 @0;\n"
      "buffer to : write u32[4] @1;\n{ to[local_id.x] = u; }\n",
      "kernel k workgroup(4)\nuniform u : u32[300] @0;\n"
      "buffer to : write u32[4] @1;\n{ to[local_id.x] = u[local_id.x * 99u]; "
      "}\n",
      "kernel k workgroup(4)\nuniform u : u32[300] @0;\n"
      "buffer to : read_write u32[4] @1;\n{ for (let k = 0u; k < u[299]; k++) "
      "{ to[local_id.x] = u[local_id.x * 99u]; grid_barrier(); } }\n"};
  static uint32_t u[300];
  uint32_t to[ELEMENTS] = {0};
  for (uint32_t i = 0; i < 300; i++) u[i] = i / 99 + 5;
  for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
    for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
      test_heap heap = {.left = -1};
      const vyre_context_options options = {
          .allocator = {test_heap_resize, &heap},
          .cache_directory = "",
          .trace_file = "",
          .faults = ""};
      rig r = rig_open_as(&options, devices[d], kernels[k]);
      vyre_status st = {0};
      vyre_input in[] = {vyre_input_bytes(u, k == 0 ? 4 : sizeof u),
                         vyre_input_bytes(to, sizeof to)};
      vyre_output out[] = {vyre_output_bytes(to, sizeof to)};
      vyre_dispatch_desc desc = {.inputs = in,
                                 .input_count = k == 2 ? 2 : 1,
                                 .outputs = out,
                                 .output_count = 1,
                                 .grid = {1, 1, 1}};
      for (int i = 0; i < 3; i++) {
        CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
      }
      size_t calls = heap.calls;
      for (int i = 0; i < 10; i++) {
        CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
      }
      CHECK_U64(heap.calls, calls);
      for (uint32_t i = 0; i < ELEMENTS; i++) {
        CHECK_U64(to[i], k == 0 ? 5 : 5 + i);
      }
      rig_close(&r);
    }
  }
}

TEST_MAIN(TEST_ENTRY(device_uniforms_have_what_earlier_work_wrote),
          TEST_ENTRY(a_warm_dispatch_with_uniforms_allocates_nothing))
