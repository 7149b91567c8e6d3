/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the results of replays, and which bindings and replays are refused. */

#include <stdatomic.h>
#include <time.h>

#include "runtime/recording/recording_testing.h"

static const vyre_allocator heap;

TEST(a_replay_runs_all_commands_in_order) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&c, &d);
  vyre_replay_result result;
  vyre_replay_options options = {.result = &result};
  for (uint32_t round = 1; round <= 3; round++) {
    CHECK_OK(vyre_recording_replay(c.rec, &options, NULL, &st), st);
    for (uint32_t i = 0; i < ELEMENTS; i++) {
      CHECK(d.back[i] == round * 3 * (i + 1));
    }
    CHECK_U64(result.dispatches, 2);
    CHECK_U64(result.copies, 2);
    CHECK_U64(result.skipped, 0);
    CHECK_U64(result.rebuilt, 0);
    CHECK(result.wall_ns > 0);
  }
  vyre_counters counters;
  vyre_counters_read(b.device, &counters);
  CHECK_U64(counters.launches, 6);
  CHECK_U64(counters.replays, 3);
  CHECK_U64(counters.rebuilds, 0);
  CHECK_U64(counters.uploads, 3);
  CHECK_U64(counters.downloads, 3);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

/* Only the dispatches that use the slot are prepared again. */
TEST(rebinding_prepares_only_its_users_again) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d, e;
  chain_data_make(&b, &d);
  chain_data_make(&b, &e);
  e.a = 7;
  chain_bind(&c, &d);
  vyre_replay_result result;
  vyre_replay_options options = {.result = &result};
  CHECK_OK(vyre_recording_replay(c.rec, &options, NULL, &st), st);
  struct {
    const char *name;
    uint32_t slot;
    vyre_slot_binding resource;
    uint64_t rebuilds;
  } cases[] = {
      {"the factor", c.a, {.data = &e.a, .size = 4}, 1},
      {"what both use", c.y, {.buffer = e.y}, 2},
      {"the end of a copy", c.back, {.data = e.back, .size = BYTES}, 0},
      {"the same again", c.back, {.data = e.back, .size = BYTES}, 0},
      {"the sum", c.sum, {.buffer = e.sum}, 1},
  };
  uint64_t all = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CHECK_OK(
        vyre_recording_bind_slot(c.rec, cases[i].slot, &cases[i].resource, &st),
        st);
    CHECK_OK(vyre_recording_replay(c.rec, &options, NULL, &st), st);
    CHECK_U64(result.rebuilt, cases[i].rebuilds);
    all += cases[i].rebuilds;
  }
  CHECK_U64(e.back[1], 14); /* the new sum started at zero */
  vyre_counters counters;
  vyre_counters_read(b.device, &counters);
  CHECK_U64(counters.rebuilds, all);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST(a_recording_gives_the_bytes_of_its_dispatches) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&c, &d);
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  uint32_t y[ELEMENTS], sum[ELEMENTS] = {0};
  vyre_input in[] = {vyre_input_bytes(d.host, BYTES),
                     vyre_input_bytes(&d.a, 4)};
  vyre_output out = vyre_output_bytes(y, BYTES);
  vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
  CHECK_OK(vyre_dispatch(b.pipelines[SCALE], &desc, &st), st);
  vyre_input add[] = {vyre_input_bytes(y, BYTES), vyre_input_bytes(sum, BYTES)};
  vyre_output to = vyre_output_bytes(sum, BYTES);
  desc.inputs = add;
  desc.outputs = &to;
  CHECK_OK(vyre_dispatch(b.pipelines[ADD], &desc, &st), st);
  CHECK(memcmp(sum, d.back, BYTES) == 0);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

/* --- freed and moved memory --------------------------------------------- */

static void expect_refusal(const bench *b, vyre_recording *rec,
                           const char *slot, vyre_kind kind) {
  vyre_status st = {0};
  vyre_counters before, after;
  vyre_counters_read(b->device, &before);
  CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, kind);
  CHECK_HAS(st.message, slot);
  vyre_fence *fence;
  st = (vyre_status){0};
  CHECK_FAILS(vyre_recording_replay(rec, NULL, &fence, &st), st,
              VYRE_INVALID_ARGUMENT, kind);
  CHECK(!fence);
  vyre_counters_read(b->device, &after);
  CHECK_U64(after.launches, before.launches);
  CHECK_U64(after.uploads, before.uploads);
}

TEST(an_unbound_slot_is_named) {
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  vyre_status st = {0};
  chain_data_make(&b, &d);
  expect_refusal(&b, c.rec, "'host'", VYRE_KIND_UNBOUND_SLOT);
  chain_bind(&c, &d);
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  CHECK_OK(vyre_recording_bind_slot(c.rec, c.sum, NULL, &st), st);
  expect_refusal(&b, c.rec, "'sum'", VYRE_KIND_UNBOUND_SLOT);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST(a_freed_buffer_is_refused_even_if_its_entry_is_reused) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&c, &d);
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  CHECK_OK(vyre_buffer_destroy(b.device, d.y, &st), st);
  expect_refusal(&b, c.rec, "'y'", VYRE_KIND_STALE_HANDLE);
  vyre_counters counters; /* a recording does not hold its buffers */
  vyre_counters_read(b.device, &counters);
  CHECK_U64(counters.live_device_buffers, 2);
  vyre_buffer next = create_buffer(b.device, BYTES);
  CHECK((uint32_t)next.id == (uint32_t)d.y.id);
  expect_refusal(&b, c.rec, "'y'", VYRE_KIND_STALE_HANDLE);
  bind_buffer(c.rec, c.y, next);
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  CHECK_U64(d.back[0], 6);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST(a_host_buffer_that_moved_or_changed_is_refused) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&c, &d);
  uint32_t first[ELEMENTS], second[ELEMENTS];
  vyre_host_buffer kept = {.data = first, .size = BYTES, .capacity = BYTES};
  vyre_slot_binding r = {.host_buffer = &kept};
  CHECK_OK(vyre_recording_bind_slot(c.rec, c.back, &r, &st), st);
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  CHECK_U64(first[0], 3);
  kept.data = second;
  expect_refusal(&b, c.rec, "'back'", VYRE_KIND_STALE_HANDLE);
  kept.data = first;
  kept.size = BYTES - 4;
  expect_refusal(&b, c.rec, "'back'", VYRE_KIND_STALE_HANDLE);
  kept.size = BYTES;
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  kept.data = second;
  CHECK_OK(vyre_recording_bind_slot(c.rec, c.back, &r, &st), st);
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  CHECK_U64(first[0], 6);
  CHECK_U64(second[0], 9);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST(sizes_that_do_not_fit_name_their_slot) {
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  struct {
    const char *name;
    uint32_t slot;
    vyre_slot_binding resource;
  } cases[] = {
      {"'host'", c.host, {.data = d.host, .size = BYTES - 4}},
      {"'a'", c.a, {.data = &d.a, .size = 2}},
      {"'y'", c.y, {.buffer = d.y, .size = BYTES - 2}},
      {"'back'", c.back, {.data = d.back, .size = 4}},
      /* memory of y, which would be bound twice */
      {"'x'", c.x, {.buffer = d.y}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    chain_bind(&c, &d);
    CHECK_OK(
        vyre_recording_bind_slot(c.rec, cases[i].slot, &cases[i].resource, &st),
        st);
    expect_refusal(&b, c.rec, cases[i].name, VYRE_KIND_BINDING_MISMATCH);
  }
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST(bad_bindings_are_refused_when_they_are_bound) {
  vyre_status st = {0};
  bench b = bench_open(heap), other = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t slot = add_slot(rec, "sixteen", 16);
  vyre_buffer good = create_buffer(b.device, 64),
              dead = create_buffer(b.device, 64),
              foreign = create_buffer(other.device, 64);
  CHECK_OK(vyre_buffer_destroy(b.device, dead, &st), st);
  uint32_t bytes[16];
  struct {
    vyre_slot_binding resource;
    vyre_kind kind;
  } cases[] = {
      {{.buffer = dead}, VYRE_KIND_STALE_HANDLE},
      {{.buffer = foreign, .size = 16}, VYRE_KIND_FOREIGN_HANDLE},
      {{.buffer = good}, VYRE_KIND_BINDING_MISMATCH},
      {{.buffer = good, .offset = 60, .size = 16}, VYRE_KIND_BINDING_MISMATCH},
      {{.buffer = good, .offset = UINT64_MAX, .size = 16},
       VYRE_KIND_BINDING_MISMATCH},
      {{.data = bytes, .size = 20}, VYRE_KIND_BINDING_MISMATCH},
      {{.data = bytes, .size = 16, .buffer = good}, VYRE_KIND_BINDING_MISMATCH},
      {{.size = 16}, VYRE_KIND_BINDING_MISMATCH},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    st = (vyre_status){0};
    CHECK_FAILS(vyre_recording_bind_slot(rec, slot, &cases[i].resource, &st),
                st, VYRE_INVALID_ARGUMENT, cases[i].kind);
    CHECK_HAS(st.message, "'sixteen'");
  }
  st = (vyre_status){0};
  CHECK_FAILS(vyre_recording_bind_slot(rec, 7, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  vyre_slot_binding fits = {.buffer = good, .offset = 48, .size = 16};
  CHECK_OK(vyre_recording_bind_slot(rec, slot, &fits, &st), st);
  vyre_recording_release(rec);
  bench_close(&b);
  bench_close(&other);
}

/* --- loops ---------------------------------------------------------------- */

typedef struct loop_case {
  uint32_t flag;
  uint64_t max;
  uint32_t check_interval;
  uint64_t iterations, dispatches, skipped, flag_reads;
  bool reached;
} loop_case;

/* Two dispatches per iteration; the first decrements the flag. */
static vyre_recording *loop_record(const bench *b, const loop_case *l,
                                   uint32_t *n, uint32_t *m) {
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b->device, &rec, &st), st);
  *n = add_slot(rec, "n", 8);
  *m = add_slot(rec, "m", 8);
  vyre_slot_range pn = vyre_slot_range_all(*n), pm = vyre_slot_range_all(*m);
  CHECK_OK(vyre_recording_begin_while(rec, pn, l->max, l->check_interval, &st),
           st);
  CHECK_OK(add_dispatch(rec, b->pipelines[COUNT], &pn, 1, &pn, 1, &st), st);
  CHECK_OK(add_dispatch(rec, b->pipelines[COUNT], &pm, 1, &pm, 1, &st), st);
  CHECK_OK(vyre_recording_end_while(rec, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  return rec;
}

TEST(a_loop_ends_when_its_flag_is_zero) {
  static const loop_case cases[] = {
      /* flag max interval | iterations dispatches skipped reads reached */
      {5, 100, 1, 5, 10, 0, 6, false},
      {5, 100, 0, 5, 10, 0, 6, false},
      /* three iterations of the second interval */
      {5, 100, 4, 5, 10, 6, 3, false},
      {8, 100, 4, 8, 16, 0, 3, false},
      {5, 5, 1, 5, 10, 0, 6, false}, /* just enough */
      {5, 4, 1, 4, 8, 0, 5, true},
      {5, 7, 4, 5, 10, 4, 3, false}, /* the last interval is shorter */
      {0, 100, 4, 0, 0, 0, 1, false},
      {100, 3, 8, 3, 6, 0, 2, true},
  };
  bench b = bench_open(heap);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const loop_case *l = &cases[i];
    vyre_status st = {0};
    uint32_t n, m, counted[2] = {l->flag, 0}, other[2] = {0, 0};
    vyre_recording *rec = loop_record(&b, l, &n, &m);
    bind_bytes(rec, n, counted, 8);
    bind_bytes(rec, m, other, 8);
    vyre_replay_result result;
    vyre_replay_options options = {.result = &result};
    CHECK_OK(vyre_recording_replay(rec, &options, NULL, &st), st);
    CHECK_U64(result.iterations, l->iterations);
    CHECK_U64(counted[1], l->iterations);
    CHECK_U64(other[1], l->iterations);
    CHECK_U64(result.dispatches, l->dispatches);
    CHECK_U64(result.skipped, l->skipped);
    CHECK_U64(result.flag_reads, l->flag_reads);
    CHECK(result.reached_max == l->reached);
    options.fail_at_max = true;
    counted[0] = l->flag;
    vyre_code code = vyre_recording_replay(rec, &options, NULL, &st);
    CHECK((code != VYRE_OK) == l->reached);
    if (l->reached) {
      CHECK(st.kind == VYRE_KIND_MAX_ITERATIONS_REACHED && st.fix[0]);
      CHECK_U64(status_number(&st, "max_iterations"), l->max);
      CHECK(result.reached_max && result.iterations == l->iterations);
    }
    vyre_recording_release(rec);
  }
  bench_close(&b);
}

/* while (m[0]) { n[0] = 3, m[0]--; while (n[0]) n[0]--; } */
TEST(loops_may_be_nested) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t n = add_slot(rec, "n", 0), m = add_slot(rec, "m", 0);
  vyre_slot_range both[] = {{n, 8, 0},
                            {m, 0, 0}}; /* n is the last element of its slot */
  CHECK_OK(vyre_recording_begin_while(rec, both[1], 10, 3, &st), st);
  CHECK_OK(add_dispatch(rec, b.pipelines[REFILL], both, 2, both, 2, &st), st);
  CHECK_OK(vyre_recording_begin_while(rec, both[0], 10, 2, &st), st);
  CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], both, 1, both, 1, &st), st);
  CHECK_OK(vyre_recording_end_while(rec, &st), st);
  CHECK_OK(vyre_recording_end_while(rec, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  uint32_t inner[4] = {77, 78, 0, 0}, outer[2] = {4, 0};
  bind_bytes(rec, n, inner, 16);
  bind_bytes(rec, m, outer, 8);
  vyre_replay_result r;
  vyre_replay_options options = {.result = &r};
  CHECK_OK(vyre_recording_replay(rec, &options, NULL, &st), st);
  CHECK_U64(outer[1], 4);
  CHECK_U64(inner[3], 12);
  CHECK(inner[0] == 77 && inner[1] == 78);
  CHECK_U64(r.iterations, 4 + 12);
  CHECK_U64(r.dispatches, 4 + 12);
  /* Inside one iteration each time; outside two iterations of two
   * dispatches. */
  CHECK_U64(r.skipped, 4 * 1 + 2 * 2);
  vyre_recording_release(rec);
  bench_close(&b);
}

TEST(a_replay_ends_at_its_timeout) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t n = add_slot(rec, "n", 8);
  vyre_slot_range p = vyre_slot_range_all(n);
  CHECK_OK(add_dispatch(rec, b.pipelines[HANG], &p, 1, &p, 1, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  uint32_t bytes[2] = {1, 0};
  bind_bytes(rec, n, bytes, 8);
  vyre_replay_options options = {.timeout_ns = 5000000};
  CHECK_FAILS(vyre_recording_replay(rec, &options, NULL, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  bytes[0] = 0; /* the timeout applied to that replay only */
  st = (vyre_status){0};
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  vyre_recording_release(rec);
  bench_close(&b);
}

/* --- skipping uploads --------------------------------------------------- */

TEST(uploads_are_skipped_only_where_the_plan_allows_it) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain safe = chain_make(&b, false), unsafe = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&safe, &d);
  chain_bind(&unsafe, &d);
  vyre_replay_result r;
  vyre_replay_options keep = {.skip_uploads = true, .result = &r};
  CHECK_FAILS(vyre_recording_replay(safe.rec, &keep, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
  CHECK_HAS(st.message, "was not uploaded"); /* the first replay */
  st = (vyre_status){0};
  CHECK_OK(vyre_recording_replay(safe.rec, NULL, NULL, &st), st);
  d.host[0] = 100;
  CHECK_OK(vyre_recording_replay(safe.rec, &keep, NULL, &st), st);
  CHECK_U64(r.skipped_uploads, 1);
  CHECK_U64(r.copies, 1);
  CHECK_U64(d.back[0], 3); /* the uploaded data, not the current data */
  CHECK_OK(vyre_recording_replay(safe.rec, NULL, NULL, &st), st);
  CHECK_U64(d.back[0], 300);
  uint32_t others[ELEMENTS] = {5};
  bind_bytes(safe.rec, safe.host, others, BYTES);
  CHECK_FAILS(vyre_recording_replay(safe.rec, &keep, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
  st = (vyre_status){0};
  CHECK_OK(vyre_recording_replay(unsafe.rec, NULL, NULL, &st), st);
  CHECK_FAILS(vyre_recording_replay(unsafe.rec, &keep, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
  CHECK_HAS(st.message, "'y' of command 2");
  vyre_recording_release(safe.rec);
  vyre_recording_release(unsafe.rec);
  bench_close(&b);
}

/* Each dispatch alone is safe, but one writes uploaded data. */
TEST(uploads_to_memory_that_a_command_writes_are_not_skipped) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t host = add_slot(rec, "host", 0), x = add_slot(rec, "x", 0),
           y = add_slot(rec, "y", 0), a = add_slot(rec, "a", 0);
  vyre_slot_range px = vyre_slot_range_all(x), py = vyre_slot_range_all(y),
                  pa = vyre_slot_range_all(a);
  vyre_slot_range there[] = {px, pa}, back[] = {py, pa};
  CHECK_OK(vyre_recording_add_copy(rec, vyre_slot_range_all(host), px, &st),
           st);
  CHECK_OK(add_dispatch(rec, b.pipelines[SCALE], there, 2, &py, 1, &st), st);
  CHECK_OK(add_dispatch(rec, b.pipelines[SCALE], back, 2, &px, 1, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  chain_data d;
  chain_data_make(&b, &d);
  bind_bytes(rec, host, d.host, BYTES);
  bind_bytes(rec, a, &d.a, 4);
  bind_buffer(rec, x, d.x);
  bind_buffer(rec, y, d.y);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  vyre_capture_plan sums;
  vyre_recording_capacities(rec, &sums);
  CHECK(sums.resident_input_replay_safe);
  vyre_replay_options keep = {.skip_uploads = true};
  CHECK_FAILS(vyre_recording_replay(rec, &keep, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
  CHECK_HAS(st.message,
            "'x' is uploaded to by command 0 and written by command 2");
  vyre_recording_release(rec);
  bench_close(&b);
}

/* A download writes the source of the upload of the next replay. */
TEST(uploads_from_memory_that_a_command_writes_are_not_skipped) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t host = add_slot(rec, "host", 0), x = add_slot(rec, "x", 0),
           y = add_slot(rec, "y", 0), a = add_slot(rec, "a", 0);
  vyre_slot_range px = vyre_slot_range_all(x), py = vyre_slot_range_all(y),
                  ph = vyre_slot_range_all(host);
  vyre_slot_range in[] = {px, vyre_slot_range_all(a)};
  CHECK_OK(vyre_recording_add_copy(rec, ph, px, &st), st);
  CHECK_OK(add_dispatch(rec, b.pipelines[SCALE], in, 2, &py, 1, &st), st);
  CHECK_OK(vyre_recording_add_copy(rec, py, ph, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  chain_data d;
  chain_data_make(&b, &d);
  bind_bytes(rec, host, d.host, BYTES);
  bind_bytes(rec, a, &d.a, 4);
  bind_buffer(rec, x, d.x);
  bind_buffer(rec, y, d.y);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  vyre_replay_options keep = {.skip_uploads = true};
  CHECK_FAILS(vyre_recording_replay(rec, &keep, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
  CHECK_HAS(st.message,
            "'host' is uploaded from by command 0 and written by command 2");
  vyre_recording_release(rec);
  bench_close(&b);
}

/* --- concurrent replays ------------------------------------------------- */

/* A replay that its print callback delays: an upload, then a dispatch that
 * prints. */
typedef struct stage {
  bench b;
  vyre_recording *rec;
  uint32_t from, n;
  uint32_t word;
  atomic_bool has_begun, may_end, was_let;
  vyre_code inner;
} stage;

static void nap(void) {
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Delays the replay until the test continues, at most ten seconds. */
static bool hold_up(void *self, const char *bytes, size_t length) {
  stage *s = self;
  (void)bytes, (void)length;
  atomic_store(&s->has_begun, true);
  for (int i = 0; i < 10000 && !atomic_load(&s->may_end); i++) nap();
  atomic_store(&s->was_let, atomic_load(&s->may_end));
  return true;
}

/* Replays the recording that calls this function. */
static bool replay_inside(void *self, const char *bytes, size_t length) {
  stage *s = self;
  vyre_status st = {0};
  (void)bytes, (void)length;
  if (!atomic_exchange(&s->has_begun, true)) {
    s->inner = vyre_recording_replay(s->rec, NULL, NULL, &st);
  }
  return true;
}

static stage *stage_make(bool (*write)(void *, const char *, size_t)) {
  static stage s;
  vyre_status st = {0};
  s = (stage){.b = bench_open(heap)};
  CHECK_OK(vyre_recording_create(s.b.device, &s.rec, &st), st);
  s.from = add_slot(s.rec, "from", 4);
  s.n = add_slot(s.rec, "n", 4);
  uint32_t m = add_slot(s.rec, "m", 4);
  vyre_slot_range to = vyre_slot_range_all(s.n),
                  printed = vyre_slot_range_all(m);
  vyre_recorded_dispatch d = {.inputs = &to,
                              .input_count = 1,
                              .outputs = &printed,
                              .output_count = 1,
                              .print = {write, &s}};
  CHECK_OK(vyre_recording_add_copy(s.rec, vyre_slot_range_all(s.from), to, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(s.rec, s.b.pipelines[TELL], &d, &st),
           st);
  CHECK_OK(vyre_recording_seal(s.rec, &st), st);
  bind_bytes(s.rec, s.from, &s.word, 4);
  bind_buffer(s.rec, s.n, create_buffer(s.b.device, 4));
  bind_buffer(s.rec, m, create_buffer(s.b.device, 4));
  return &s;
}

static void stage_end(stage *s) {
  vyre_recording_release(s->rec);
  bench_close(&s->b);
}

TEST(a_replay_with_a_fence_does_not_wait_for_an_active_replay) {
  vyre_status st = {0};
  vyre_fence *fences[2];
  stage *s = stage_make(hold_up);
  CHECK_OK(vyre_recording_replay(s->rec, NULL, &fences[0], &st), st);
  while (!atomic_load(&s->has_begun)) nap();
  CHECK_OK(vyre_recording_replay(s->rec, NULL, &fences[1], &st), st);
  CHECK_OK(vyre_recording_bind_slot(s->rec, s->n, NULL, &st), st);
  vyre_fence *none;
  CHECK_FAILS(vyre_recording_replay(s->rec, NULL, &none, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_UNBOUND_SLOT);
  st = (vyre_status){0};
  CHECK(!none && !vyre_fence_is_done(fences[0]));
  atomic_store(&s->may_end, true);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_fence_wait(fences[i], UINT64_MAX, &st), st);
    vyre_fence_release(fences[i]);
  }
  CHECK(atomic_load(&s->was_let));
  stage_end(s);
}

TEST(a_replay_cannot_wait_for_itself) {
  vyre_status st = {0};
  stage *s = stage_make(replay_inside);
  CHECK_OK(vyre_recording_replay(s->rec, NULL, NULL, &st), st);
  CHECK(s->inner == VYRE_INVALID_ARGUMENT);
  stage_end(s);
}

TEST_MAIN(TEST_ENTRY(a_replay_runs_all_commands_in_order),
          TEST_ENTRY(rebinding_prepares_only_its_users_again),
          TEST_ENTRY(a_recording_gives_the_bytes_of_its_dispatches),
          TEST_ENTRY(an_unbound_slot_is_named),
          TEST_ENTRY(a_freed_buffer_is_refused_even_if_its_entry_is_reused),
          TEST_ENTRY(a_host_buffer_that_moved_or_changed_is_refused),
          TEST_ENTRY(sizes_that_do_not_fit_name_their_slot),
          TEST_ENTRY(bad_bindings_are_refused_when_they_are_bound),
          TEST_ENTRY(a_loop_ends_when_its_flag_is_zero),
          TEST_ENTRY(loops_may_be_nested),
          TEST_ENTRY(a_replay_ends_at_its_timeout),
          TEST_ENTRY(uploads_are_skipped_only_where_the_plan_allows_it),
          TEST_ENTRY(uploads_to_memory_that_a_command_writes_are_not_skipped),
          TEST_ENTRY(uploads_from_memory_that_a_command_writes_are_not_skipped),
          TEST_ENTRY(a_replay_with_a_fence_does_not_wait_for_an_active_replay),
          TEST_ENTRY(a_replay_cannot_wait_for_itself))
