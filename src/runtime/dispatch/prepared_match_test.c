/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the reuse of prepared dispatches, which cache their bindings and hold
 * device buffers. Only the speed may differ: changed bindings are checked
 * again, freed buffers are freed, and results are right. */
#include <pthread.h>

#include "vyre/vyre.h"

#include "runtime/compile/pipeline.h"
#include "runtime/dispatch/prepared.h"
#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel k workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : read_write u32[4] @2 output;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) y[i] += 2 * x[i];\n"
    "    atomic_add(z[i % 4], 1);\n"
    "}\n";

static const char printing[] =
    "kernel k workgroup(1)\n"
    "buffer y : read_write u32[] @0;\n"
    "{ y[0] += 1; print(y[0]); }\n";

enum { ELEMENTS = 8, BYTES = 4 * ELEMENTS };

/* Bindings that a test case changes. */
typedef struct scene {
  rig r;
  uint32_t x[ELEMENTS], y[ELEMENTS + 1], z[4];
  vyre_buffer buffer; /* contents of x */
  vyre_host_buffer host_buffer;
  vyre_input in[2];
  vyre_output out[2];
  vyre_dispatch_desc desc;
} scene;

static void open_scene(scene *s, bool uses_device_buffer,
                       bool uses_host_buffer) {
  vyre_status st = {0};
  memset(s, 0, sizeof *s);
  s->r = rig_open(text, NULL);
  for (uint32_t i = 0; i < ELEMENTS; i++) s->x[i] = i + 1;
  CHECK_OK(vyre_buffer_create(s->r.device, BYTES, &s->buffer, &st), st);
  CHECK_OK(vyre_buffer_upload(s->r.device, s->buffer, 0, s->x, BYTES, &st), st);
  s->in[0] = uses_device_buffer ? vyre_input_buffer(s->buffer)
                                : vyre_input_bytes(s->x, BYTES);
  s->in[1] = vyre_input_bytes(s->y, BYTES);
  s->out[0] = vyre_output_bytes(s->y, BYTES);
  s->out[1] = uses_host_buffer ? vyre_output_host_buffer(&s->host_buffer, 0)
                               : vyre_output_bytes(s->z, sizeof s->z);
  s->desc = (vyre_dispatch_desc){
      .inputs = s->in, .input_count = 2, .outputs = s->out, .output_count = 2};
}

static void close_scene(scene *s) {
  vyre_host_buffer_deinit(&s->host_buffer);
  rig_close(&s->r);
}

/* Dispatches and checks every byte; @p dispatch_count dispatches came
 * before. */
static void dispatch(scene *s, uint32_t dispatch_count) {
  vyre_status st = {0};
  const uint32_t *z = s->out[1].host_buffer ? NULL : s->z;
  CHECK_OK(vyre_dispatch(s->r.pipeline, &s->desc, &st), st);
  if (!z) z = s->host_buffer.data;
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    CHECK_U64(s->y[i], (uint64_t)2 * (i + 1) * (dispatch_count + 1));
  }
  /* zeroed before each dispatch */
  for (int i = 0; i < 4; i++) CHECK_U64(z[i], 2);
}

static uint64_t live(const scene *s) {
  vyre_counters counters;
  vyre_counters_read(s->r.device, &counters);
  return counters.live_device_buffers;
}

TEST(a_repeated_dispatch_gives_the_right_bytes) {
  for (int form = 0; form < 4; form++) {
    scene s;
    vyre_copy_report copies, first = {0};
    open_scene(&s, form & 1, form & 2);
    for (uint32_t i = 0; i < 6; i++) {
      s.desc.copies = &copies;
      dispatch(&s, i);
      if (i == 0) first = copies;
      if (i > 0 && !(form & 2)) {
        CHECK_U64(copies.borrowed_bytes, first.borrowed_bytes);
      }
      CHECK_U64(copies.device_buffer_bytes, form & 1 ? BYTES : 0);
      CHECK_U64(copies.copied_bytes, 0);
    }
    vyre_counters counters;
    vyre_counters_read(s.r.device, &counters);
    CHECK_U64(counters.launches, 6);
    CHECK_U64(counters.input_bytes, UINT64_C(6) * (form & 1 ? 1 : 2) * BYTES);
    CHECK_U64(counters.output_bytes, UINT64_C(6) * (BYTES + 16));
    CHECK_U64(counters.host_buffers_filled, form & 2 ? 6 : 0);
    close_scene(&s);
  }
}

/* --- changed bindings --------------------------------------------------- */

static void null_input(scene *s) {
  s->in[0].data = NULL;
}
static void shorter_output(scene *s) {
  s->out[0].size -= 4;
}
static void odd_input(scene *s) {
  s->in[0].size -= 1;
}
static void overlapping_input(scene *s) {
  s->in[0].data = s->y + 1;
}
static void one_input_less(scene *s) {
  s->desc.input_count = 1;
}
static void one_output_less(scene *s) {
  s->desc.output_count = 1;
}
static void no_inputs(scene *s) {
  s->desc.inputs = NULL;
}
static void huge_grid(scene *s) {
  s->desc.grid[0] = UINT32_MAX;
}
static void low_limit(scene *s) {
  s->desc.max_output_bytes = BYTES + 15;
}
static void zero_repeat_count(scene *s) {
  s->desc.has_repeat_count = true;
}
static void check_without_report(scene *s) {
  s->desc.check.races = true;
}
static void two_destinations(scene *s) {
  s->out[1].host_buffer = &s->host_buffer;
}
static void freed_buffer(scene *s) {
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_destroy(s->r.device, s->buffer, &st), st);
}
static void old_generation(scene *s) {
  s->in[0].buffer.id -= UINT64_C(1) << 32;
}
static void other_owner(scene *s) {
  s->in[0].buffer.owner++;
}
static void range_outside(scene *s) {
  s->in[0].offset = BYTES + 4;
}
static void host_buffer_over_input(scene *s) {
  /* memory that the host buffer does not own; restored below */
  s->host_buffer.data = s->x;
}

typedef struct spoiled {
  const char *name;
  void (*spoil)(scene *s);
  bool uses_device_buffer, uses_host_buffer;
  vyre_code code;
  vyre_kind kind;
} spoiled;

#define ARGUMENT VYRE_INVALID_ARGUMENT
#define MISMATCH VYRE_KIND_BINDING_MISMATCH

static const spoiled cases[] = {
    {"NULL input", null_input, false, false, ARGUMENT,
     VYRE_KIND_INVALID_ARGUMENT},
    {"shorter output", shorter_output, false, false, ARGUMENT, MISMATCH},
    {"odd input", odd_input, false, false, VYRE_INVALID_PROGRAM,
     VYRE_KIND_INVALID_PROGRAM},
    {"overlap", overlapping_input, false, false, ARGUMENT, MISMATCH},
    {"inputs", one_input_less, false, false, VYRE_INVALID_PROGRAM,
     VYRE_KIND_INVALID_PROGRAM},
    {"outputs", one_output_less, false, false, ARGUMENT, MISMATCH},
    {"NULL inputs", no_inputs, false, false, ARGUMENT,
     VYRE_KIND_INVALID_ARGUMENT},
    {"grid", huge_grid, false, false, ARGUMENT, VYRE_KIND_GRID_TOO_LARGE},
    {"limit", low_limit, false, false, ARGUMENT, VYRE_KIND_OUTPUT_TOO_LARGE},
    {"iterations", zero_repeat_count, false, false, ARGUMENT,
     VYRE_KIND_ZERO_REPEAT_COUNT},
    {"report", check_without_report, false, false, ARGUMENT,
     VYRE_KIND_INVALID_ARGUMENT},
    {"two places", two_destinations, false, false, ARGUMENT, MISMATCH},
    {"freed", freed_buffer, true, false, ARGUMENT, VYRE_KIND_STALE_HANDLE},
    {"generation", old_generation, true, false, ARGUMENT,
     VYRE_KIND_STALE_HANDLE},
    {"owner", other_owner, true, false, ARGUMENT, VYRE_KIND_FOREIGN_HANDLE},
    {"range", range_outside, true, false, ARGUMENT, MISMATCH},
    {"slot", host_buffer_over_input, false, true, ARGUMENT, MISMATCH},
};

TEST(changed_bindings_are_checked_again) {
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const spoiled *c = &cases[i];
    scene s;
    vyre_status st = {0};
    open_scene(&s, c->uses_device_buffer, c->uses_host_buffer);
    for (uint32_t k = 0; k < 3; k++) dispatch(&s, k);
    scene good = s;
    printf("    %s\n", c->name);
    c->spoil(&s);
    CHECK_FAILS(vyre_dispatch(s.r.pipeline, &s.desc, &st), st, c->code,
                c->kind);
    CHECK(memcmp(s.y, good.y, BYTES) == 0); /* nothing ran */
    memcpy(s.in, good.in, sizeof s.in);
    memcpy(s.out, good.out, sizeof s.out);
    s.host_buffer = good.host_buffer;
    s.desc = good.desc;
    if (c->spoil == freed_buffer) s.in[0] = vyre_input_bytes(s.x, BYTES);
    for (uint32_t k = 3; k < 6; k++) dispatch(&s, k);
    close_scene(&s);
  }
}

TEST(a_copy_that_was_allowed_may_be_refused_later) {
  scene s;
  vyre_status st = {0};
  uint32_t apart[ELEMENTS];
  open_scene(&s, false, false);
  s.out[0] = vyre_output_bytes(apart, BYTES);
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_dispatch(s.r.pipeline, &s.desc, &st), st);
    CHECK(apart[1] == 4); /* copied from the input each time */
  }
  s.desc.require_zero_copy = true;
  CHECK_FAILS(vyre_dispatch(s.r.pipeline, &s.desc, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED);
  close_scene(&s);
}

/* --- freed buffers ------------------------------------------------------ */

TEST(a_buffer_of_an_idle_prepared_dispatch_is_freed_at_once) {
  scene s;
  vyre_status st = {0};
  open_scene(&s, true, false);
  for (uint32_t i = 0; i < 3; i++) dispatch(&s, i);
  CHECK_U64(live(&s), 1);
  CHECK_OK(vyre_buffer_destroy(s.r.device, s.buffer, &st), st);
  CHECK_U64(live(&s), 0);
  CHECK_FAILS(vyre_buffer_destroy(s.r.device, s.buffer, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  close_scene(&s);
}

/* Freeing one of two held buffers does not affect the other. */
TEST(buffers_of_one_prepared_dispatch_are_freed_one_by_one) {
  scene s;
  vyre_status st = {0};
  vyre_buffer y;
  open_scene(&s, true, false);
  CHECK_OK(vyre_buffer_create(s.r.device, BYTES, &y, &st), st);
  s.in[1] = vyre_input_buffer(y);
  s.out[0] = (vyre_output){0};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_dispatch(s.r.pipeline, &s.desc, &st), st);
  }
  CHECK_OK(vyre_buffer_destroy(s.r.device, s.buffer, &st), st);
  CHECK_U64(live(&s), 1);
  uint32_t got;
  CHECK_OK(vyre_buffer_download(s.r.device, y, 4, &got, 4, &st), st);
  CHECK_U64(got, 12);
  CHECK_OK(vyre_buffer_destroy(s.r.device, y, &st), st);
  CHECK_U64(live(&s), 0);
  close_scene(&s);
}

typedef struct freeing {
  vyre_device *device;
  vyre_buffer buffer;
  uint64_t live; /* after it was freed during the kernel */
  vyre_code code;
} freeing;

static bool free_it(void *self, const char *words, size_t length) {
  freeing *f = self;
  vyre_counters counters;
  (void)words;
  (void)length;
  if (f->buffer.owner == 0) return true;
  f->code = vyre_buffer_destroy(f->device, f->buffer, NULL);
  f->buffer = (vyre_buffer){0};
  vyre_counters_read(f->device, &counters);
  f->live = counters.live_device_buffers;
  return true;
}

TEST(a_buffer_freed_during_a_dispatch_is_freed_at_its_end) {
  for (int warm = 0; warm < 3; warm++) {
    vyre_status st = {0};
    rig r = rig_open(printing, NULL);
    freeing f = {.device = r.device, .code = VYRE_UNKNOWN};
    vyre_buffer y;
    CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
    vyre_input in = vyre_input_buffer(y);
    vyre_output out = {0};
    vyre_dispatch_desc desc = {.inputs = &in,
                               .input_count = 1,
                               .outputs = &out,
                               .output_count = 1,
                               .print = {free_it, &f}};
    for (int i = 0; i < warm; i++) {
      CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    }
    f.buffer = y;
    CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st);
    CHECK(f.code == VYRE_OK);
    CHECK_U64(f.live, 1); /* not during the dispatch */
    vyre_counters counters;
    vyre_counters_read(r.device, &counters);
    CHECK_U64(counters.live_device_buffers, 0);
    CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
    rig_close(&r);
  }
}

TEST(a_freed_pipeline_releases_its_buffers) {
  scene s;
  vyre_status st = {0};
  open_scene(&s, true, false);
  for (uint32_t i = 0; i < 3; i++) dispatch(&s, i);
  vyre_pipeline_release(s.r.pipeline);
  s.r.pipeline = NULL;
  CHECK_U64(live(&s), 1);
  CHECK_OK(vyre_buffer_destroy(s.r.device, s.buffer, &st), st);
  CHECK_U64(live(&s), 0);
  close_scene(&s);
}

/* --- threads ------------------------------------------------------------ */

enum { THREADS = 4, TURNS = 300, SHARED = 3 };

typedef struct crowd {
  rig r;
  pthread_mutex_t lock; /* index of a shared buffer */
  vyre_buffer shared[SHARED];
  atomic_uint bad, ran, stale;
} crowd;

/* Dispatches with buffers that other threads free. */
static void *use(void *self) {
  crowd *c = self;
  for (int i = 0; i < TURNS; i++) {
    vyre_status st = {0};
    uint32_t y[ELEMENTS] = {0}, z[4];
    pthread_mutex_lock(&c->lock);
    vyre_buffer x = c->shared[i / 8 % SHARED];
    pthread_mutex_unlock(&c->lock);
    vyre_input in[] = {vyre_input_buffer(x), vyre_input_bytes(y, BYTES)};
    vyre_output out[] = {vyre_output_bytes(y, BYTES),
                         vyre_output_bytes(z, sizeof z)};
    vyre_dispatch_desc desc = {in, 2, out, 2};
    for (int k = 0; k < 4; k++) {
      vyre_code code = vyre_dispatch(c->r.pipeline, &desc, &st);
      if (code == VYRE_OK) {
        atomic_fetch_add(&c->ran, 1);
        if (y[3] != 8 * (uint32_t)(k + 1)) atomic_fetch_add(&c->bad, 1);
        continue;
      }
      atomic_fetch_add(st.kind == VYRE_KIND_STALE_HANDLE ? &c->stale : &c->bad,
                       1);
      break;
    }
  }
  return NULL;
}

static void *replace(void *self) {
  crowd *c = self;
  static const uint32_t x[ELEMENTS] = {1, 2, 3, 4, 5, 6, 7, 8};
  for (int i = 0; i < TURNS; i++) {
    vyre_status st = {0};
    vyre_buffer made;
    if (vyre_buffer_create(c->r.device, BYTES, &made, &st) != VYRE_OK ||
        vyre_buffer_upload(c->r.device, made, 0, x, BYTES, &st) != VYRE_OK) {
      atomic_fetch_add(&c->bad, 1);
      continue;
    }
    pthread_mutex_lock(&c->lock);
    vyre_buffer old = c->shared[i % SHARED];
    c->shared[i % SHARED] = made;
    pthread_mutex_unlock(&c->lock);
    if (vyre_buffer_destroy(c->r.device, old, &st) != VYRE_OK) {
      atomic_fetch_add(&c->bad, 1);
    }
  }
  return NULL;
}

TEST(buffers_are_freed_while_many_threads_use_them) {
  static crowd c;
  vyre_status st = {0};
  pthread_t threads[THREADS + 1];
  static const uint32_t x[ELEMENTS] = {1, 2, 3, 4, 5, 6, 7, 8};
  c.r = rig_open(text, NULL);
  pthread_mutex_init(&c.lock, NULL);
  for (int i = 0; i < SHARED; i++) {
    CHECK_OK(vyre_buffer_create(c.r.device, BYTES, &c.shared[i], &st), st);
    CHECK_OK(vyre_buffer_upload(c.r.device, c.shared[i], 0, x, BYTES, &st), st);
  }
  for (int i = 0; i <= THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, i ? use : replace, &c) == 0);
  }
  for (int i = 0; i <= THREADS; i++) pthread_join(threads[i], NULL);
  CHECK_U64(atomic_load(&c.bad), 0);
  CHECK(atomic_load(&c.ran) > 0);
  for (int i = 0; i < SHARED; i++) {
    CHECK_OK(vyre_buffer_destroy(c.r.device, c.shared[i], &st), st);
  }
  vyre_counters counters;
  vyre_counters_read(c.r.device, &counters);
  CHECK_U64(counters.live_device_buffers, 0); /* all are freed by now */
  rig_close(&c.r);
  pthread_mutex_destroy(&c.lock);
}

/* --- alternating buffers ------------------------------------------------ */

enum { SETS = 6 };

/* Fills buffer k with k + 1 times the contents of x. */
static void open_alternating(scene *s, vyre_buffer buffers[SETS]) {
  open_scene(s, true, false);
  for (uint32_t k = 0; k < SETS; k++) {
    vyre_status st = {0};
    uint32_t data[ELEMENTS];
    for (uint32_t i = 0; i < ELEMENTS; i++) data[i] = (k + 1) * s->x[i];
    CHECK_OK(vyre_buffer_create(s->r.device, BYTES, &buffers[k], &st), st);
    CHECK_OK(vyre_buffer_upload(s->r.device, buffers[k], 0, data, BYTES, &st),
             st);
  }
}

/* Buffers are bound in any order; each dispatch reads the bound one. */
TEST(alternating_buffers_are_not_confused) {
  static const char *const orders[] = {
      "01010101010101010101", "012012012012012012", "000011110000111101",
      "012345012345012345012345012345012345012345012345010101010101",
      "001122334455543210012345"};
  for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
    vyre_buffer buffers[SETS];
    scene s;
    uint32_t sum = 0;
    open_alternating(&s, buffers);
    for (const char *at = orders[o]; *at; at++) {
      s.in[0] = vyre_input_buffer(buffers[*at - '0']);
      sum += (uint32_t)(*at - '0') + 1;
      dispatch(&s, sum - 1);
    }
    close_scene(&s);
  }
}

static bool is_known(const scene *s, int place) {
  const vyre__prepared *run = s->r.pipeline->state->runs[place].run;
  return run && run->is_cached;
}

/* Both buffers are held for the next dispatch, until they are freed. */
TEST(either_of_two_alternating_buffers_may_be_freed) {
  for (uint32_t freed = 0; freed < 2; freed++) {
    vyre_status st = {0};
    vyre_buffer buffers[SETS];
    scene s;
    uint32_t sum = 0, other = 1 - freed;
    open_alternating(&s, buffers);
    for (uint32_t i = 0; i < 8; i++) {
      s.in[0] = vyre_input_buffer(buffers[i % 2]);
      dispatch(&s, sum += i % 2);
      sum++;
    }
    CHECK(is_known(&s, 0) && is_known(&s, 1));
    CHECK_U64(live(&s), SETS + 1);
    CHECK_OK(vyre_buffer_destroy(s.r.device, buffers[freed], &st), st);
    CHECK_U64(live(&s), SETS);
    CHECK(is_known(&s, 0) != is_known(&s, 1));
    s.in[0] = vyre_input_buffer(buffers[freed]);
    CHECK_FAILS(vyre_dispatch(s.r.pipeline, &s.desc, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
    s.in[0] = vyre_input_buffer(buffers[other]);
    dispatch(&s, sum + other);
    CHECK_OK(vyre_buffer_destroy(s.r.device, buffers[other], &st), st);
    CHECK_U64(live(&s), SETS - 1);
    close_scene(&s);
  }
}

/* After many different bindings, two alternating ones are cached again. */
TEST(alternating_buffers_are_cached_again_after_many_others) {
  enum { MANY = 100, SOON = 80 };
  scene s;
  vyre_buffer buffers[SETS];
  static uint32_t more[MANY][ELEMENTS];
  uint32_t sum = 0;
  open_alternating(&s, buffers);
  for (int i = 0; i < MANY; i++) {
    memcpy(more[i], s.x, BYTES);
    s.in[0] = vyre_input_bytes(more[i], BYTES);
    dispatch(&s, sum++);
  }
  for (uint32_t i = 0; i < SOON; i++) {
    s.in[0] = vyre_input_buffer(buffers[i % 2]);
    dispatch(&s, sum += i % 2);
    sum++;
  }
  CHECK(is_known(&s, 0) && is_known(&s, 1));
  CHECK_U64(s.r.pipeline->state->runs[0].run->miss_count, 0);
  close_scene(&s);
}

TEST_MAIN(TEST_ENTRY(a_repeated_dispatch_gives_the_right_bytes),
          TEST_ENTRY(changed_bindings_are_checked_again),
          TEST_ENTRY(a_copy_that_was_allowed_may_be_refused_later),
          TEST_ENTRY(a_buffer_of_an_idle_prepared_dispatch_is_freed_at_once),
          TEST_ENTRY(buffers_of_one_prepared_dispatch_are_freed_one_by_one),
          TEST_ENTRY(a_buffer_freed_during_a_dispatch_is_freed_at_its_end),
          TEST_ENTRY(a_freed_pipeline_releases_its_buffers),
          TEST_ENTRY(buffers_are_freed_while_many_threads_use_them),
          TEST_ENTRY(alternating_buffers_are_not_confused),
          TEST_ENTRY(either_of_two_alternating_buffers_may_be_freed),
          TEST_ENTRY(alternating_buffers_are_cached_again_after_many_others))
