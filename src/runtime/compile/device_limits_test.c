/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of device limits: the runtime refuses programs that exceed them, and
 * allocates memory with the alignment of the device. The backend does nothing,
 * and each case sets its limits. */
#include "vyre/vyre.h"

#include "hal/backend.h"
#include "ir/ir.h"
#include "runtime/core/device.h"
#include "support/check.h"

enum { PAGE = 4096 };

static vyre_device_caps caps; /* capabilities of the next device */
static int inits;             /* programs that reached the backend */
static int unaligned;         /* buffers of the last launch */

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  out->description = "does nothing";
  return index == 0;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  (void)st;
  device->caps = caps;
  return VYRE_OK;
}

static void device_deinit(vyre_device *device) {
  (void)device;
}

static vyre_code load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st) {
  (void)pipeline;
  (void)source;
  (void)st;
  inits++;
  return VYRE_OK;
}

static void pipeline_deinit(vyre_pipeline *pipeline) {
  (void)pipeline;
}

static vyre_code run(vyre_pipeline *pipeline, vyre__launch *launch,
                     vyre_status *st) {
  (void)st;
  unaligned = 0;
  for (size_t i = 0; i < pipeline->program->buffer_count; i++) {
    uint64_t alignment = pipeline->device->caps.host_alignment;
    unaligned += (uintptr_t)launch->views[i].data % alignment != 0;
  }
  return VYRE_OK;
}

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, run, done, st);
}

static const vyre__backend poor = {.abi = VYRE__BACKEND_ABI,
                                   .struct_size = sizeof(vyre__backend),
                                   .name = "poor",
                                   .is_exact = true,
                                   .device_size = sizeof(vyre_device),
                                   .pipeline_size = sizeof(vyre_pipeline),
                                   .describe = describe,
                                   .device_init = device_init,
                                   .device_deinit = device_deinit,
                                   .load = load,
                                   .pipeline_deinit = pipeline_deinit,
                                   .execute = execute};

typedef struct stand {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
} stand;

static vyre_device_caps rich(void) {
  return (vyre_device_caps){.max_workgroup = {1024, 1024, 1024},
                            .max_workgroup_invocations = 256,
                            .max_shared_bytes = 1 << 20,
                            .max_buffer_bytes = 1 << 20,
                            .host_alignment = 1,
                            .borrows_host_memory = true,
                            .has_print = true,
                            .has_f64 = true,
                            .has_u64 = true,
                            .has_atomics64 = true};
}

static vyre_code stand_open(stand *s, const char *text, vyre_status *st) {
  vyre_status own = {0};
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  *s = (stand){0};
  inits = 0;
  CHECK_OK(vyre_context_create(&options, &s->context, &own), own);
  CHECK_OK(
      vyre__device_open_given(s->context, &poor, 0, NULL, &s->device, &own),
      own);
  CHECK_OK(vyre_module_parse(text, strlen(text), "t.vyre", (vyre_allocator){0},
                             &s->module, NULL, &own),
           own);
  return vyre_pipeline_compile(s->device, vyre_module_kernel(s->module, 0),
                               NULL, &s->pipeline, NULL, st);
}

static void stand_close(stand *s) {
  vyre_pipeline_release(s->pipeline);
  vyre_module_release(s->module);
  vyre_device_release(s->device);
  vyre_context_release(s->context);
}

#define KERNEL(body)        \
  "kernel k workgroup(4)\n" \
  "buffer y : read_write u32[4] @0;\n" body

static void no_f64(void) {
  caps.has_f64 = false;
}
static void no_u64(void) {
  caps.has_u64 = false;
}
static void no_print(void) {
  caps.has_print = false;
}
static void little_shared(void) {
  caps.max_shared_bytes = 4095;
}
static void small_buffers(void) {
  caps.max_buffer_bytes = 4095;
}

static const struct {
  const char *name, *text;
  void (*spoil)(void);
  vyre_code code;
  const char *word;
} programs[] = {
    {"f64", KERNEL("{ let d = f64(y[0]) * 0.5; y[0] = u32(d); }\n"), no_f64,
     VYRE_UNSUPPORTED_FEATURE, "no f64"},
    {"f64 in a buffer",
     KERNEL("buffer d : read f64[4] @1;\n{ y[0] = u32(d[0]); }\n"), no_f64,
     VYRE_UNSUPPORTED_FEATURE, "no f64"},
    {"u64", KERNEL("{ let d = u64(y[0]) << 3; y[0] = u32(d); }\n"), no_u64,
     VYRE_UNSUPPORTED_FEATURE, "no u64"},
    {"i64", KERNEL("{ let d = i64(y[0]); y[0] = u32(d); }\n"), no_u64,
     VYRE_UNSUPPORTED_FEATURE, "no u64"},
    {"print", KERNEL("{ print(\"a\", 1); }\n"), no_print,
     VYRE_UNSUPPORTED_FEATURE, "no print"},
    {"shared memory of two buffers",
     KERNEL("shared s : u32[512];\nshared t : u32[512];\n"
            "{ s[local_id.x] = 1; t[local_id.x] = 2; y[0] = s[0] + t[0]; }\n"),
     little_shared, VYRE_UNSUPPORTED_FEATURE,
     "has 4096 bytes of shared buffers; 'poor' allows at most 4095"},
    {"a declared buffer",
     KERNEL("buffer x : read u32[1024] @1;\n{ y[0] = x[0]; }\n"), small_buffers,
     VYRE_INVALID_ARGUMENT, "'x' has 4096 bytes; 'poor' allows at most 4095"},
};

TEST(a_missing_feature_is_refused_before_the_backend) {
  for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
    vyre_status st = {0};
    stand s;
    caps = rich();
    CHECK_OK(stand_open(&s, programs[i].text, &st), st);
    CHECK_U64((unsigned)inits, 1);
    stand_close(&s);
    programs[i].spoil();
    vyre_code code = stand_open(&s, programs[i].text, &st);
    CHECK_U64((unsigned)inits, 0);
    CHECK_U64(code, programs[i].code);
    CHECK_HAS(st.message, programs[i].word);
    CHECK(st.fix[0] && !s.pipeline);
    /* A dispatch without a pipeline gives the same failure. */
    st = (vyre_status){0};
    vyre_dispatch_desc desc = {0};
    CHECK_U64(vyre_device_run_program(s.device, vyre_module_kernel(s.module, 0),
                                      &desc, &st),
              programs[i].code);
    CHECK_HAS(st.message, programs[i].word);
    stand_close(&s);
  }
}

static const char copy_text[] =
    "kernel k workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = x[global_id.x]; }\n";

TEST(buffers_without_a_fixed_size_have_the_same_limit) {
  static const struct {
    size_t in, out;
    const char *word; /* NULL: it is good */
  } cases[] = {{4092, 4092, NULL},
               {4096, 4, "'x' has 4096 bytes; 'poor' allows at most 4095"},
               {4, 4096, "'y' has 4096 bytes; 'poor' allows at most 4095"}};
  vyre_status st = {0};
  stand s;
  static uint32_t x[1024], y[1024];
  caps = rich();
  small_buffers();
  CHECK_OK(stand_open(&s, copy_text, &st), st);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_input in = vyre_input_bytes(x, cases[i].in);
    vyre_output out = vyre_output_bytes(y, cases[i].out);
    vyre_dispatch_desc desc = {
        .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
    st = (vyre_status){0};
    vyre_code code = vyre_dispatch(s.pipeline, &desc, &st);
    if (!cases[i].word) {
      CHECK_OK(code, st);
      continue;
    }
    CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
    CHECK_HAS(st.message, cases[i].word);
    CHECK_U64(status_number(&st, "max_bytes"), 4095);
  }
  stand_close(&s);
}

TEST(a_workgroup_that_is_too_large_is_refused_with_the_limits) {
  vyre_status st = {0};
  stand s;
  vyre_pipeline *pipeline;
  caps = rich();
  CHECK_OK(stand_open(&s, copy_text, &st), st);
  vyre_compile_options options = {.workgroup = {512}};
  CHECK_FAILS(vyre_pipeline_compile(s.device, vyre_module_kernel(s.module, 0),
                                    &options, &pipeline, NULL, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "512 x 1 x 1");
  CHECK_HAS(st.message, "'poor' allows at most 256");
  CHECK(!strstr(st.message, "1024") && !strstr(st.fix, "1024"));
  CHECK_U64(status_number(&st, "max_invocations"), 256);
  stand_close(&s);
}

/* --- alignment ------------------------------------------------------------ */

enum { BYTES = 64 };

static const uint64_t alignments[] = {1, 64, PAGE, 1 << 16};

TEST(host_buffers_are_bound_without_a_copy) {
  for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
    vyre_status st = {0};
    stand s;
    void *x;
    vyre_host_buffer slot = {0};
    vyre_copy_report copies = {0};
    caps = rich();
    caps.host_alignment = alignments[i];
    CHECK_OK(stand_open(&s, copy_text, &st), st);
    CHECK_OK(vyre_host_alloc(s.device, BYTES, &x, &st), st);
    /* Unaligned memory of the caller is replaced. */
    vyre_allocator heap = vyre_allocator_heap();
    slot.data = heap.resize(heap.self, NULL, 0, (size_t)2 * BYTES);
    slot.capacity = (size_t)2 * BYTES;
    for (size_t size = 16; size <= (size_t)8 * BYTES; size *= 2) {
      vyre_input in = vyre_input_bytes(x, BYTES);
      vyre_output out = vyre_output_host_buffer(&slot, size);
      vyre_dispatch_desc desc = {.inputs = &in,
                                 .input_count = 1,
                                 .outputs = &out,
                                 .output_count = 1,
                                 .require_zero_copy = true,
                                 .copies = &copies};
      for (int again = 0; again < 3; again++) {
        desc.has_fresh_outputs = again == 2;
        CHECK_OK(vyre_dispatch(s.pipeline, &desc, &st), st);
        CHECK_U64((unsigned)unaligned, 0);
        CHECK_U64(copies.copies, 0);
        CHECK_U64(copies.borrowed_bytes, BYTES + size);
        CHECK(slot.size == size && slot.capacity >= size);
        memset(slot.data, 0xab,
               slot.capacity); /* the full capacity is writable */
      }
    }
    vyre_host_buffer_deinit(&slot);
    CHECK(!slot.data && slot.lead == 0);
    vyre_host_free(s.device, x, BYTES);
    stand_close(&s);
  }
}

TEST(copies_of_owned_inputs_are_aligned_and_counted_once) {
  for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++) {
    vyre_status st = {0};
    stand s;
    void *y;
    vyre_fence *fence;
    vyre_copy_report copies = {0};
    static _Alignas(64) unsigned char x[BYTES + 4];
    caps = rich();
    caps.host_alignment = alignments[i];
    CHECK_OK(stand_open(&s, copy_text, &st), st);
    CHECK_OK(vyre_host_alloc(s.device, BYTES, &y, &st), st);
    vyre_input in = vyre_input_bytes(x + 4, BYTES);
    vyre_output out = vyre_output_bytes(y, BYTES);
    vyre_dispatch_desc desc = {.inputs = &in,
                               .input_count = 1,
                               .outputs = &out,
                               .output_count = 1,
                               .copies = &copies};
    CHECK_OK(vyre_submit(s.pipeline, &desc, 1, &fence, &st), st);
    CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
    CHECK_U64((unsigned)unaligned, 0);
    CHECK_U64(copies.copies, 1);
    CHECK_U64(copies.copied_bytes, BYTES);
    CHECK_U64(copies.borrowed_bytes, BYTES);
    vyre_fence_release(fence);
    vyre_host_free(s.device, y, BYTES);
    stand_close(&s);
  }
}

TEST_MAIN(TEST_ENTRY(a_missing_feature_is_refused_before_the_backend),
          TEST_ENTRY(buffers_without_a_fixed_size_have_the_same_limit),
          TEST_ENTRY(a_workgroup_that_is_too_large_is_refused_with_the_limits),
          TEST_ENTRY(host_buffers_are_bound_without_a_copy),
          TEST_ENTRY(copies_of_owned_inputs_are_aligned_and_counted_once))
