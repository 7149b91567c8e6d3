/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every form of work under every fault: it ends in a status, and the device works
 * afterwards or says that it is lost. The end of the case sees that nothing
 * leaks. */
#include <stdio.h>

#include "saxpy.h"

enum { ITEMS = 3, DENSE = 64, MOST = 1000000 };

typedef struct attempt {
  cts *c;
  vyre_program *program;
  vyre_pipeline *pipeline;
  saxpy_data d[ITEMS];
  saxpy_result got[ITEMS];
  vyre_code results[ITEMS]; /* of what was launched */
  vyre_status st;
  vyre_code waited; /* of the first wait, if there was one */
} attempt;

/* --- forms ------------------------------------------------------------------------*/

static vyre_code dispatch(attempt *a) {
  return vyre_dispatch(a->pipeline, &a->d[0].desc, &a->st);
}

static vyre_code yardstick(attempt *a) {
  return vyre_device_dispatch(a->c->device, a->program, &a->d[0].desc, &a->st);
}

static vyre_code batch(attempt *a) {
  vyre_dispatch_desc items[ITEMS];
  for (int i = 0; i < ITEMS; i++) items[i] = a->d[i].desc;
  return vyre_submit(a->pipeline, items, ITEMS, NULL, &a->st);
}

/* A wait that fails leaves the work alone: it is waited for again, in peace. */
static vyre_code wait_for(attempt *a, vyre_fence *fence) {
  vyre_code code = vyre_fence_wait(fence, VYRE_FOREVER, &a->st);
  if (code != VYRE_OK) {
    vyre_status unused = {0};
    CTS_CHECK(a->c, vyre_context_inject(a->c->context, "", &unused) == VYRE_OK);
    (void)!vyre_fence_wait(fence, VYRE_FOREVER, NULL);
  }
  return code;
}

static vyre_code fence(attempt *a) {
  vyre_fence *done;
  vyre_dispatch_desc items[ITEMS];
  for (int i = 0; i < ITEMS; i++) items[i] = a->d[i].desc;
  vyre_code code = vyre_submit(a->pipeline, items, ITEMS, &done, &a->st);
  if (code != VYRE_OK) return code;
  code = wait_for(a, done);
  vyre_fence_release(done);
  return code;
}

static vyre_code slots(attempt *a) {
  vyre_slot y = {0}, z = {0};
  a->d[0].out[0] = vyre_output_slot(&y, 0);
  a->d[0].out[1] = vyre_output_slot(&z, 0);
  vyre_code code = vyre_dispatch(a->pipeline, &a->d[0].desc, &a->st);
  if (code == VYRE_OK) {
    memcpy(a->got[0].y, y.data, SAXPY_BYTES);
    memcpy(a->got[0].z, z.data, SAXPY_SUMS);
  }
  vyre_slot_finish(&y);
  vyre_slot_finish(&z);
  return code;
}

/* Uploads, runs on what is resident, keeps an output and downloads it. */
static vyre_code residents(attempt *a) {
  vyre_device *device = a->c->device;
  vyre_resident x = {0}, z = {0};
  vyre_code code = vyre_resident_create(device, SAXPY_BYTES, &x, &a->st);
  a->d[0].in[0] = vyre_input_resident(x);
  a->d[0].out[1] = vyre_output_kept(&z, 0);
  if (code == VYRE_OK) {
    code = vyre_resident_upload(device, x, 0, a->d[0].x, SAXPY_BYTES, &a->st);
  }
  if (code == VYRE_OK) {
    code = vyre_dispatch(a->pipeline, &a->d[0].desc, &a->st);
  }
  if (code == VYRE_OK) {
    code =
        vyre_resident_download(device, z, 0, a->got[0].z, SAXPY_SUMS, &a->st);
  }
  a->d[0].out[1] = (vyre_output){.data = NULL};
  if (x.owner) (void)!vyre_resident_free(device, x, NULL);
  if (z.owner) (void)!vyre_resident_free(device, z, NULL);
  return code;
}

static vyre_code prepare(attempt *a) {
  vyre_compile_options options = {.workgroup = {16}};
  vyre_pipeline *pipeline;
  vyre_code code = vyre_pipeline_compile(a->c->device, a->program, NULL,
                                         &pipeline, NULL, &a->st);
  if (code != VYRE_OK) return code;
  code = vyre_pipeline_prepare(pipeline, &options, &a->st);
  a->d[0].desc.variant = &options;
  if (code == VYRE_OK) code = vyre_dispatch(pipeline, &a->d[0].desc, &a->st);
  a->d[0].desc.variant = NULL;
  vyre_pipeline_release(pipeline);
  return code;
}

static vyre_code compile_async(attempt *a) {
  /* Not as the pipeline that is there: the cache would give that one. */
  static const vyre_compile_options other = {.workgroup = {32, 1, 1}};
  vyre_fence *done;
  vyre_code code = vyre_pipeline_compile_async(a->c->device, a->program, &other,
                                               &done, &a->st);
  if (code != VYRE_OK) return code;
  code = wait_for(a, done);
  vyre_pipeline *made = vyre_fence_pipeline(done);
  vyre_fence_release(done);
  if (code == VYRE_OK) code = vyre_dispatch(made, &a->d[0].desc, &a->st);
  vyre_pipeline_release(made);
  return code;
}

#define ON(fault) (1u << VYRE_FAULT_##fault)

static const struct {
  const char *name;
  vyre_code (*run)(attempt *a);
  unsigned items; /* that are launched, if all goes well */
  unsigned hits;  /* faults that it must meet */
} forms[] = {
    {"dispatch", dispatch, 1, ON(SUBMIT) | ON(DEVICE_LOST)},
    {"device_dispatch", yardstick, 1,
     ON(ALLOCATION) | ON(COMPILE) | ON(SUBMIT) | ON(DEVICE_LOST)},
    {"batch", batch, ITEMS, ON(SUBMIT) | ON(DEVICE_LOST)},
    {"fence", fence, ITEMS,
     ON(ALLOCATION) | ON(SUBMIT) | ON(WAIT) | ON(DEVICE_LOST)},
    {"slots", slots, 1, ON(SUBMIT) | ON(DEVICE_LOST)},
    {"residents", residents, 1,
     ON(ALLOCATION) | ON(SUBMIT) | ON(UPLOAD) | ON(DOWNLOAD) | ON(DEVICE_LOST)},
    {"prepare", prepare, 1,
     ON(ALLOCATION) | ON(COMPILE) | ON(SUBMIT) | ON(DEVICE_LOST)},
    {"compile_async", compile_async, 1,
     ON(ALLOCATION) | ON(COMPILE) | ON(SUBMIT) | ON(WAIT) | ON(DEVICE_LOST)},
};

enum { FORMS = sizeof forms / sizeof *forms };

/* --- one try ----------------------------------------------------------------------*/

static void reset(attempt *a) {
  a->st = (vyre_status){0};
  for (int i = 0; i < ITEMS; i++) {
    saxpy_make(&a->d[i], a->c->seed + (uint64_t)i, &a->got[i]);
    a->results[i] = VYRE_UNKNOWN;
    a->d[i].desc.result = &a->results[i];
  }
}

static void check_results(cts *c, const attempt *a, unsigned items) {
  for (unsigned i = 0; i < items; i++) {
    saxpy_result want = saxpy_expect(&a->d[i], 1);
    CTS_CHECK(c, a->results[i] == VYRE_OK);
    CTS_SAME(c, "a result", &a->got[i], &want, sizeof want);
  }
}

static void check_status(cts *c, const attempt *a, vyre_code code,
                         vyre_fault fault) {
  static const vyre_code codes[VYRE_FAULT_COUNT] = {
      [VYRE_FAULT_COMPILE] = VYRE_KERNEL_COMPILE_FAILED,
      [VYRE_FAULT_SUBMIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_UPLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_DOWNLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_WAIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_DEVICE_LOST] = VYRE_DEVICE_LOST};
  CTS_CHECK(c, code == a->st.code && a->st.message[0] && a->st.fix[0]);
  if (fault == VYRE_FAULT_ALLOCATION) {
    CTS_CHECK(c,
              code == VYRE_OUT_OF_MEMORY || code == VYRE_DEVICE_OUT_OF_MEMORY);
    return;
  }
  if (code != codes[fault] || a->st.kind != VYRE_KIND_INJECTED_FAULT) {
    cts_fail(c, __FILE__, __LINE__, "fault '%s' gives %s (%s): %s",
             vyre_fault_name(fault), vyre_code_name(code),
             vyre_kind_name(a->st.kind), a->st.message);
  }
}

/* What a lost device says, and another one in its place. */
static void check_lost(cts *c, attempt *a, size_t form, uint64_t *launches) {
  vyre_resident unused;
  vyre_counters counters;
  CTS_CHECK(c, vyre_device_is_lost(c->device));
  reset(a);
  CTS_CHECK(c, forms[form].run(a) == VYRE_DEVICE_LOST);
  CTS_CHECK(c, a->st.code == VYRE_DEVICE_LOST && a->st.fix[0]);
  CTS_FAILS(c, vyre_resident_create(c->device, 4, &unused, &c->st),
            VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST);
  vyre_counters_read(c->device, &counters);
  CTS_U64(c, counters.launches, *launches);
  *launches = 0;
  vyre_pipeline_release(c->pipelines[--c->pipeline_count]);
  vyre_device_release(c->device);
  CTS_OK(c, vyre_device_open(c->context, c->backend, &c->device, &c->st));
  c->caps = vyre_device_capabilities(c->device);
  a->pipeline = cts_compile(c, a->program, false, false);
}

/* Lets the nth fail, for every n that is small, then for some. Returns how often
 * it was hit. */
static unsigned sweep(cts *c, attempt *a, size_t form, vyre_fault fault,
                      uint64_t *launches) {
  unsigned hits = 0;
  for (unsigned n = 1; n < MOST; n += n < DENSE ? 1 : n / 8, hits++) {
    char text[64];
    (void)snprintf(text, sizeof text, "%s:%u", vyre_fault_name(fault), n);
    reset(a);
    CTS_OK(c, vyre_context_inject(c->context, text, &c->st));
    vyre_code code = forms[form].run(a);
    CTS_OK(c, vyre_context_inject(c->context, "", &c->st));
    for (unsigned i = 0; i < forms[form].items; i++) {
      *launches += a->results[i] == VYRE_OK;
    }
    if (code == VYRE_OK) {
      check_results(c, a, forms[form].items);
      CTS_LAUNCHED(c, *launches);
      return hits;
    }
    check_status(c, a, code, fault);
    if (fault == VYRE_FAULT_DEVICE_LOST) {
      check_lost(c, a, form, launches);
    } else { /* the device works as before */
      reset(a);
      CTS_CHECK(c, forms[form].run(a) == VYRE_OK);
      check_results(c, a, forms[form].items);
      *launches += forms[form].items;
    }
  }
  cts_fail(c, __FILE__, __LINE__, "fault '%s' has no end: it was met at %d",
           vyre_fault_name(fault), MOST);
}

/* --- the area ---------------------------------------------------------------------*/

static size_t faults_count(void) {
  return (size_t)FORMS * VYRE_FAULT_COUNT;
}

static void faults_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s.%s", forms[index / VYRE_FAULT_COUNT].name,
                 vyre_fault_name((vyre_fault)(index % VYRE_FAULT_COUNT)));
}

static void faults_run(cts *c, size_t index) {
  size_t form = index / VYRE_FAULT_COUNT;
  vyre_fault fault = (vyre_fault)(index % VYRE_FAULT_COUNT);
  attempt *a = cts_memory(c, sizeof *a);
  uint64_t launches = 0;
  a->c = c;
  a->program = cts_program(c, saxpy_text);
  a->pipeline = cts_compile(c, a->program, false, false);
  unsigned hits = sweep(c, a, form, fault, &launches);
  if (hits == 0 && forms[form].hits & 1u << fault) {
    cts_fail(c, __FILE__, __LINE__, "'%s' never met the fault '%s'",
             forms[form].name, vyre_fault_name(fault));
  }
}

const cts_area area_faults = {"faults", "every form under every fault",
                              faults_count, faults_label, faults_run};
