/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of traces, with a reader that knows JSON but not the writer. */
#include "runtime/core/trace.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/driver.h"

/* --- a JSON reader -------------------------------------------------------- */

typedef struct event {
  char name[64], kind[24], phase[4], device[24], kernel[24], profile[24];
  char result[24], label[64], thread[64];
  double start, length;
  unsigned track;
  unsigned long long bytes, item, grid, iterations, commands;
} event;

enum { MAX_EVENTS = 40000 };
static event events[MAX_EVENTS];
static size_t event_count;

typedef struct reader {
  const char *at;
  event *event; /* the current event */
} reader;

static void skip(reader *r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

/* Reads a string. Copies \u escapes unchanged. */
static void read_string(reader *r, char *out, size_t space) {
  size_t length = 0;
  CHECK(*r->at == '"');
  for (r->at++; *r->at != '"'; r->at++) {
    CHECK((unsigned char)*r->at >= 0x20);
    if (*r->at == '\\') {
      r->at++;
      CHECK(strchr("\"\\/bfnrtu", *r->at) && *r->at);
      if (*r->at == 'u') {
        for (int i = 1; i <= 4; i++) CHECK(isxdigit((unsigned char)r->at[i]));
        if (length + 2 < space) out[length++] = '\\';
      }
    }
    if (length + 1 < space) out[length++] = *r->at;
  }
  out[length] = '\0';
  r->at++;
}

static void read_value(reader *r, const char *key);

static void read_object(reader *r) {
  char key[64];
  r->at++;
  skip(r);
  if (*r->at == '}') {
    r->at++;
    return;
  }
  for (;; r->at++) {
    skip(r);
    read_string(r, key, sizeof key);
    skip(r);
    CHECK(*r->at == ':');
    r->at++;
    read_value(r, key);
    skip(r);
    if (*r->at != ',') break;
  }
  CHECK(*r->at == '}');
  r->at++;
}

static void keep_text(event *e, const char *key, const char *text) {
  struct {
    const char *key;
    char *place;
    size_t space;
  } places[] = {{"name", e->phase[0] == 'M' ? e->thread : e->name, 64},
                {"cat", e->kind, sizeof e->kind},
                {"ph", e->phase, sizeof e->phase},
                {"device", e->device, sizeof e->device},
                {"kernel", e->kernel, sizeof e->kernel},
                {"label", e->label, sizeof e->label},
                {"profile", e->profile, sizeof e->profile},
                {"result", e->result, sizeof e->result}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    if (strcmp(key, places[i].key) != 0) continue;
    size_t length = strlen(text), max = places[i].space - 1;
    if (length > max) length = max;
    memcpy(places[i].place, text, length);
    places[i].place[length] = '\0';
  }
}

static void keep_number(event *e, const char *key, double value) {
  if (strcmp(key, "ts") == 0) e->start = value;
  if (strcmp(key, "dur") == 0) e->length = value;
  if (strcmp(key, "tid") == 0) e->track = (unsigned)value;
  if (strcmp(key, "bytes") == 0) e->bytes = (unsigned long long)value;
  if (strcmp(key, "item") == 0) e->item = (unsigned long long)value;
  if (strcmp(key, "iterations") == 0) e->iterations = (unsigned long long)value;
  if (strcmp(key, "commands") == 0) e->commands = (unsigned long long)value;
  if (strcmp(key, "grid") == 0 && e->grid == 0) {
    e->grid = (unsigned long long)value;
  }
}

static void read_value(reader *r, const char *key) {
  char text[512], *end;
  skip(r);
  if (*r->at == '{') {
    bool is_event = !r->event;
    if (is_event) {
      CHECK(event_count < MAX_EVENTS);
      r->event = &events[event_count++];
      *r->event = (event){0};
    }
    read_object(r);
    if (is_event) r->event = NULL;
  } else if (*r->at == '[') {
    do {
      r->at++;
      read_value(r, key);
      skip(r);
    } while (*r->at == ',');
    CHECK(*r->at == ']');
    r->at++;
  } else if (*r->at == '"') {
    read_string(r, text, sizeof text);
    if (r->event) keep_text(r->event, key, text);
  } else {
    double value = strtod(r->at, &end);
    CHECK(end > r->at);
    r->at = end;
    if (r->event) keep_number(r->event, key, value);
  }
}

static char page[16 << 20];

/* Reads a full trace into events[]. */
static void read_trace(const char *path) {
  FILE *file = fopen(path, "r");
  CHECK(file);
  size_t length = fread(page, 1, sizeof page - 1, file);
  fclose(file);
  page[length] = '\0';
  event_count = 0;
  reader r = {page, NULL};
  read_value(&r, "");
  skip(&r);
  CHECK(*r.at == '\0');
}

static int by_place(const void *a, const void *b) {
  const event *x = a, *y = b;
  if (x->track != y->track) return x->track < y->track ? -1 : 1;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->length < y->length) - (x->length > y->length);
}

/* Checks that the events of each track are properly nested and that every track
 * has a name. Sorts the events. */
static void check_nesting(void) {
  enum { DEEPEST = 16 };
  double ends[DEEPEST];
  unsigned track = 0, depth = 0;
  qsort(events, event_count, sizeof *events, by_place);
  for (size_t i = 0; i < event_count; i++) {
    const event *e = &events[i];
    if (e->phase[0] != 'X') continue;
    if (e->track != track) depth = 0;
    track = e->track;
    double end = e->start + e->length;
    /* Times have a resolution of one nanosecond. */
    while (depth > 0 && ends[depth - 1] <= e->start + 0.0002) depth--;
    CHECK(depth == 0 || end <= ends[depth - 1] + 0.0002);
    CHECK(depth < DEEPEST);
    ends[depth++] = end;
    bool has_name = false;
    for (size_t k = 0; k < event_count; k++) {
      has_name = has_name || (events[k].thread[0] && events[k].track == track);
    }
    CHECK(has_name);
  }
}

static const event *find(const char *kind, size_t index) {
  for (size_t i = 0; i < event_count; i++) {
    if (strcmp(events[i].kind, kind) == 0 && index-- == 0) return &events[i];
  }
  printf("    no event of kind %s\n", kind);
  test_fail(__FILE__, __LINE__);
  return NULL;
}

static size_t count(const char *kind) {
  size_t found = 0;
  for (size_t i = 0; i < event_count; i++) {
    found += strcmp(events[i].kind, kind) == 0;
  }
  return found;
}

/* --- a traced device ------------------------------------------------------ */

static const char text[] =
    "kernel twice workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1;\n"
    "{\n"
    "    if (global_id.x < len(y)) y[global_id.x] = 2 * x[global_id.x];\n"
    "}\n"
    "kernel down workgroup(1)\n"
    "buffer n : read_write u32[1] @0;\n"
    "{ n[0] -= 1; }\n";

enum { ELEMENTS = 64, BYTES = 4 * ELEMENTS };

static char folder[64], path[128];

static void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/vyre-trace-XXXXXX");
  CHECK(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/t.json", folder);
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK(system(command) == 0);
}

/* Opens a rig whose context writes a trace to @p file. */
static rig open_traced(const char *file, test_heap *heap) {
  vyre_context_options options = {
      .cache_directory = "", .trace_file = file, .faults = ""};
  if (heap) options.allocator = test_heap_allocator(heap);
  return rig_open_as(&options, "ref", text);
}

static vyre_code dispatch_on(vyre_pipeline *pipeline, const char *label,
                             const uint32_t *x, uint32_t *y, vyre_status *st) {
  vyre_input in = vyre_input_bytes(x, BYTES);
  vyre_output out = vyre_output_bytes(y, BYTES);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .label = label,
                             .profile = "stress"};
  return vyre_dispatch(pipeline, &desc, st);
}

static vyre_code dispatch(vyre_pipeline *pipeline, const char *label,
                          vyre_status *st) {
  uint32_t x[ELEMENTS] = {1, 2, 3}, y[ELEMENTS];
  return dispatch_on(pipeline, label, x, y, st);
}

/* Submits @p items and waits. The names are overwritten after the
 * submission. */
static void submit_and_wait(vyre_pipeline *pipeline, size_t items) {
  enum { MAX_COUNT = 4 };
  uint32_t x[ELEMENTS] = {1}, y[MAX_COUNT][ELEMENTS];
  vyre_status st = {0};
  vyre_input in = vyre_input_bytes(x, BYTES);
  vyre_output out[MAX_COUNT];
  vyre_dispatch_desc desc[MAX_COUNT];
  vyre_fence *fence;
  char label[] = "short lived";
  for (size_t i = 0; i < items; i++) {
    out[i] = vyre_output_bytes(y[i], BYTES);
    desc[i] = (vyre_dispatch_desc){.inputs = &in,
                                   .input_count = 1,
                                   .outputs = &out[i],
                                   .output_count = 1,
                                   .label = label};
  }
  CHECK_OK(vyre_submit(pipeline, desc, items, &fence, &st), st);
  memset(label, '!', sizeof label - 1);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
}

TEST(every_kind_of_work_has_its_event) {
  vyre_status st = {0};
  make_folder();
  rig r = open_traced(path, NULL);
  vyre_buffer x;
  uint32_t data[ELEMENTS] = {1};
  CHECK_OK(vyre_buffer_create(r.device, BYTES, &x, &st), st);
  CHECK_OK(vyre_buffer_upload(r.device, x, 0, data, BYTES, &st), st);
  CHECK_OK(dispatch(r.pipeline, NULL, &st), st);
  CHECK_OK(vyre_buffer_download(r.device, x, 0, data, 8, &st), st);
  submit_and_wait(r.pipeline, 3);
  rig_close(&r);
  read_trace(path);
  check_nesting();
  const event *e = find("compile", 0);
  CHECK_TEXT(e->name, "twice");
  CHECK_TEXT(e->device, "ref");
  CHECK_TEXT(e->result, "ok");
  CHECK_U64(find("upload", 0)->bytes, BYTES);
  CHECK_U64(find("download", 0)->bytes, 8);
  CHECK_U64(count("dispatch"), 4);
  CHECK_U64(count("submit"), 2);
  for (size_t i = 0; i < 4; i++) {
    e = find("dispatch", i);
    CHECK_TEXT(e->kernel, "twice");
    CHECK_U64(e->grid, ELEMENTS / 8);
    bool is_first = e->label[0] == '\0';
    CHECK_TEXT(e->name, is_first ? "twice" : "short lived");
    CHECK(!is_first || strcmp(e->profile, "stress") == 0);
  }
  remove_folder();
}

TEST(queued_work_has_its_own_track) {
  make_folder();
  rig r = open_traced(path, NULL);
  submit_and_wait(r.pipeline, 3);
  rig_close(&r);
  read_trace(path);
  check_nesting();
  unsigned host = find("submit", 0)->track;
  bool seen[3] = {false};
  const char *name = NULL;
  for (size_t i = 0; i < 3; i++) {
    const event *e = find("dispatch", i);
    CHECK(e->track != host);
    CHECK(e->item < 3 && !seen[e->item]);
    seen[e->item] = true;
    for (size_t k = 0; k < event_count; k++) {
      if (events[k].thread[0] && events[k].track == e->track) {
        name = events[k].thread;
      }
    }
  }
  CHECK_HAS(name, "ref #");
  CHECK_HAS(name, "queue");
  remove_folder();
}

/* --- recordings ----------------------------------------------------------- */

/* 0: y = 2 x. 1: z = y. 2: while (n) { 3: n--. 4: } */
static vyre_recording *record(const rig *r, vyre_pipeline **down,
                              uint32_t slots[4]) {
  static const char *const names[] = {"x", "y", "z", "n"};
  vyre_status st = {0};
  vyre_recording *rec;
  vyre_slot_range at[4];
  CHECK_OK(vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, 1),
                                 NULL, down, NULL, &st),
           st);
  CHECK_OK(vyre_recording_create(r->device, &rec, &st), st);
  for (int i = 0; i < 4; i++) {
    CHECK_OK(vyre_recording_add_slot(rec, names[i], 0, &slots[i], &st), st);
    at[i] = vyre_slot_range_all(slots[i]);
  }
  vyre_recorded_dispatch twice = {.inputs = &at[0],
                                  .input_count = 1,
                                  .outputs = &at[1],
                                  .output_count = 1,
                                  .label = "doubling"};
  vyre_recorded_dispatch less = {
      .inputs = &at[3], .input_count = 1, .outputs = &at[3], .output_count = 1};
  CHECK_OK(vyre_recording_add_dispatch(rec, r->pipeline, &twice, &st), st);
  CHECK_OK(vyre_recording_add_copy(rec, at[1], at[2], &st), st);
  CHECK_OK(vyre_recording_begin_while(rec, at[3], 10, 1, &st), st);
  CHECK_OK(vyre_recording_add_dispatch(rec, *down, &less, &st), st);
  CHECK_OK(vyre_recording_end_while(rec, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  return rec;
}

typedef struct replayed {
  rig r;
  vyre_pipeline *down;
  vyre_recording *rec;
  uint32_t x[ELEMENTS], y[ELEMENTS], z[ELEMENTS], n;
} replayed;

static void open_replayed(replayed *p) {
  vyre_status st = {0};
  uint32_t slots[4];
  memset(p, 0, sizeof *p);
  make_folder();
  p->r = open_traced(path, NULL);
  p->rec = record(&p->r, &p->down, slots);
  void *const memory[] = {p->x, p->y, p->z, &p->n};
  for (int i = 0; i < 4; i++) {
    vyre_slot_binding bytes = {.data = memory[i], .size = i < 3 ? BYTES : 4};
    CHECK_OK(vyre_recording_bind_slot(p->rec, slots[i], &bytes, &st), st);
  }
  p->n = 3;
}

static void close_replayed(replayed *p) {
  vyre_recording_release(p->rec);
  vyre_pipeline_release(p->down);
  rig_close(&p->r);
  read_trace(path);
  check_nesting();
  remove_folder();
}

/* Returns the only event of that kind and name. */
static const event *only(const char *kind, const char *name) {
  const event *found = NULL;
  for (size_t i = 0; i < event_count; i++) {
    if (strcmp(events[i].kind, kind) != 0) continue;
    if (strcmp(events[i].name, name) != 0) continue;
    CHECK(!found);
    found = &events[i];
  }
  if (!found) printf("    no %s '%s'\n", kind, name);
  CHECK(found);
  return found;
}

static bool lies_in(const event *inner, const event *outer) {
  return inner->track == outer->track && inner->start >= outer->start - 0.001 &&
         inner->start + inner->length <= outer->start + outer->length + 0.001;
}

TEST(a_replay_and_its_items_have_events) {
  replayed p;
  vyre_status st = {0};
  open_replayed(&p);
  CHECK_OK(vyre_recording_replay(p.rec, NULL, NULL, &st), st);
  close_replayed(&p);
  const event *whole = only("replay", "replay"), *loop;
  CHECK_U64(whole->commands, 5);
  CHECK_TEXT(whole->device, "ref");
  CHECK_TEXT(whole->result, "ok");
  loop = only("replay", "while");
  CHECK(loop->item == 2 && loop->iterations == 3 && lies_in(loop, whole));
  const event *copy = only("replay", "copy");
  CHECK(copy->item == 1 && copy->bytes == BYTES && lies_in(copy, whole));
  const event *first = only("dispatch", "doubling");
  CHECK(first->item == 0 && lies_in(first, whole) && !lies_in(first, loop));
  CHECK_U64(count("dispatch"), 4);
  for (size_t i = 0; i < 4; i++) {
    const event *e = find("dispatch", i);
    if (e == first) continue;
    CHECK_TEXT(e->name, "down");
    CHECK(e->item == 3 && lies_in(e, loop));
  }
}

TEST(a_replay_with_a_fence_is_on_the_track_of_its_queue) {
  replayed p;
  vyre_status st = {0};
  vyre_fence *fence;
  open_replayed(&p);
  CHECK_OK(vyre_recording_replay(p.rec, NULL, &fence, &st), st);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  close_replayed(&p);
  const event *submit = only("submit", "submit replay");
  const event *whole = only("replay", "replay");
  CHECK_U64(submit->commands, 5);
  CHECK(submit->track != whole->track);
  CHECK(lies_in(only("dispatch", "doubling"), whole));
}

TEST(a_replay_that_fails_ends_its_loops_in_the_trace) {
  replayed p;
  vyre_status st = {0};
  open_replayed(&p);
  CHECK_OK(vyre_context_inject_faults(p.r.context, "submit:3", &st), st);
  CHECK(vyre_recording_replay(p.rec, NULL, NULL, &st) == VYRE_DISPATCH_FAILED);
  close_replayed(&p);
  CHECK_TEXT(only("replay", "replay")->result, "dispatch_failed");
  const event *loop = only("replay", "while");
  CHECK_TEXT(loop->result, "dispatch_failed");
  CHECK_U64(loop->iterations, 1);
  CHECK_TEXT(only("replay", "copy")->result, "ok");
}

TEST(a_failed_event_has_its_result) {
  vyre_status st = {0};
  make_folder();
  rig r = open_traced(path, NULL);
  CHECK_OK(vyre_context_inject_faults(r.context, "submit:1", &st), st);
  CHECK(dispatch(r.pipeline, NULL, &st) == VYRE_DISPATCH_FAILED);
  rig_close(&r);
  read_trace(path);
  CHECK_TEXT(find("dispatch", 0)->result, "dispatch_failed");
  CHECK_TEXT(find("submit", 0)->result, "dispatch_failed");
  remove_folder();
}

TEST(any_bytes_may_be_a_label) {
  vyre_status st = {0};
  char very_long[4000];
  make_folder();
  rig r = open_traced(path, NULL);
  CHECK_OK(dispatch(r.pipeline, "a \"quote\"\\ and\n\x01\x7f", &st), st);
  CHECK_OK(dispatch(r.pipeline, "\xff\xc3 \xc3\xa9", &st), st);
  memset(very_long, '"', sizeof very_long - 1);
  very_long[sizeof very_long - 1] = '\0';
  CHECK_OK(dispatch(r.pipeline, very_long, &st), st);
  rig_close(&r);
  read_trace(path);
  CHECK_U64(count("dispatch"), 3);
  CHECK_TEXT(find("dispatch", 0)->label,
             "a \"quote\"\\ and\\u000a\\u0001\\u007f");
  CHECK_TEXT(find("dispatch", 1)->label, "\\ufffd\\ufffd \xc3\xa9");
  remove_folder();
}

/* --- the file ------------------------------------------------------------- */

TEST(a_killed_process_leaves_a_valid_file) {
  make_folder();
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    vyre_status st = {0};
    rig r = open_traced(path, NULL);
    for (int i = 0; i < 2000; i++) (void)!dispatch(r.pipeline, NULL, &st);
    raise(SIGKILL);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
  read_trace(path);
  CHECK(count("dispatch") > 1000);
  check_nesting();
  remove_folder();
}

TEST(a_file_that_is_not_a_trace_is_kept) {
  static const char source[] = "kernel k {}\n";
  char got[sizeof source] = "";
  make_folder();
  FILE *file = fopen(path, "w");
  CHECK(file && fwrite(source, 1, sizeof source - 1, file) == 12);
  CHECK(fclose(file) == 0);
  vyre_context *context;
  vyre_status st = {0};
  CHECK_FAILS(vyre_context_create(&(vyre_context_options){.trace_file = path},
                                  &context, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "it exists and is not a trace");
  file = fopen(path, "r");
  CHECK(file && fread(got, 1, sizeof got, file) == 12);
  CHECK(fclose(file) == 0);
  CHECK_TEXT(got, source);
  remove_folder();
}

TEST(a_context_continues_a_file_of_this_process) {
  vyre_status st = {0};
  make_folder();
  for (int i = 0; i < 3; i++) {
    rig r = open_traced(path, NULL);
    CHECK_OK(dispatch(r.pipeline, i ? "later" : "first", &st), st);
    rig_close(&r);
  }
  read_trace(path);
  CHECK_U64(count("dispatch"), 3);
  CHECK_TEXT(find("dispatch", 0)->label, "first");
  CHECK_TEXT(find("dispatch", 2)->label, "later");
  CHECK(truncate(path, 7) ==
        0); /* changed since: the trace starts a new file */
  rig r = open_traced(path, NULL);
  CHECK_OK(dispatch(r.pipeline, "new", &st), st);
  rig_close(&r);
  read_trace(path);
  CHECK_U64(count("dispatch"), 1);
  remove_folder();
}

TEST(two_contexts_never_share_a_file) {
  char second[160];
  vyre_status st = {0};
  vyre_trace_info info;
  make_folder();
  rig a = open_traced(path, NULL), b = open_traced(path, NULL);
  CHECK(vyre_context_get_trace_info(b.context, &info));
  snprintf(second, sizeof second, "%s.2", path);
  CHECK_TEXT(info.file, second);
  CHECK_U64(info.event_count, 1);
  CHECK_OK(dispatch(a.pipeline, "first", &st), st);
  CHECK_OK(dispatch(b.pipeline, "second", &st), st);
  rig_close(&a);
  rig_close(&b);
  read_trace(path);
  CHECK_TEXT(find("dispatch", 0)->label, "first");
  CHECK_U64(count("dispatch"), 1);
  read_trace(second);
  CHECK_TEXT(find("dispatch", 0)->label, "second");
  rig c = open_traced(path, NULL); /* no other trace uses the file any more */
  CHECK(vyre_context_get_trace_info(c.context, &info));
  CHECK_TEXT(info.file, path);
  rig_close(&c);
  remove_folder();
}

TEST(the_file_name_may_have_the_process_id) {
  char named[128], want[128];
  make_folder();
  snprintf(named, sizeof named, "%s/a%%p.json", folder);
  snprintf(want, sizeof want, "%s/a%ld.json", folder, (long)getpid());
  rig r = open_traced(named, NULL);
  rig_close(&r);
  read_trace(want);
  CHECK_U64(count("compile"), 1);
  remove_folder();
}

TEST(an_unwritable_file_is_refused_at_once) {
  static const char *const files[] = {"/nonexistent/folder/t.json", "/tmp",
                                      "/dev/null"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    test_heap heap = {.left = -1};
    vyre_status st = {0};
    vyre_context *context;
    vyre_context_options options = {.allocator = test_heap_allocator(&heap),
                                    .trace_file = files[i],
                                    .faults = ""};
    CHECK_FAILS(vyre_context_create(&options, &context, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CHECK_HAS(st.message, files[i]);
    CHECK(!context);
    CHECK_U64(heap.live_bytes, 0);
  }
}

/* A trace to a pipe is refused at once, with or without a reader. */
TEST(a_pipe_is_refused_at_once) {
  for (int has_reader = 0; has_reader < 2; has_reader++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_context_options options = {.trace_file = path, .faults = ""};
    make_folder();
    CHECK(mkfifo(path, 0600) == 0);
    int end = has_reader ? open(path, O_RDONLY | O_NONBLOCK) : -1;
    alarm(10);
    CHECK_FAILS(vyre_context_create(&options, &context, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    alarm(0);
    CHECK_HAS(st.message, "not a regular file");
    if (end >= 0) close(end);
    unlink(path);
    remove_folder();
  }
}

/* The file reaches its size limit in the middle of the test. */
TEST(events_that_cannot_be_written_are_counted) {
  vyre_status st = {0};
  vyre_trace_info info;
  struct rlimit before, none;
  make_folder();
  rig r = open_traced(path, NULL);
  CHECK(vyre_context_get_trace_info(r.context, &info));
  CHECK_U64(info.dropped_count, 0);
  signal(SIGXFSZ, SIG_IGN);
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  none = before;
  none.rlim_cur = 0;
  CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
  for (int i = 0; i < 5; i++) CHECK_OK(dispatch(r.pipeline, NULL, &st), st);
  CHECK(vyre_context_get_trace_info(r.context, &info));
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
  CHECK_U64(info.dropped_count, 10); /* submit and dispatch of each */
  CHECK_U64(info.event_count, 11);
  rig_close(&r);
  remove_folder();
}

/* By default, SIGXFSZ kills the process. */
TEST(a_file_size_limit_does_not_kill_the_process) {
  enum { SMALL = 4, LARGE = 20000 };
  make_folder();
  for (int is_small = 0; is_small < 2; is_small++) {
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      vyre_status st = {0};
      vyre_context *context;
      vyre_trace_info info;
      rlim_t max = is_small ? SMALL : LARGE;
      (void)signal(SIGXFSZ, SIG_DFL);
      (void)setrlimit(RLIMIT_FSIZE, &(struct rlimit){max, max});
      vyre_context_options options = {
          .cache_directory = "", .trace_file = path, .faults = ""};
      if (is_small) {
        vyre_code code = vyre_context_create(&options, &context, &st);
        bool is_told = strstr(st.message, "4 bytes (RLIMIT_FSIZE)") &&
                       strstr(st.fix, "`ulimit -f`");
        _exit(code == VYRE_INVALID_ARGUMENT && is_told ? 0 : 1);
      }
      rig r = open_traced(path, NULL);
      for (int i = 0; i < 2000; i++) (void)!dispatch(r.pipeline, NULL, &st);
      _exit(vyre_context_get_trace_info(r.context, &info) &&
                    info.dropped_count > 0
                ? 0
                : 2);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_U64(WEXITSTATUS(status), 0);
    if (!is_small) read_trace(path); /* valid up to the dropped events */
  }
  remove_folder();
}

TEST(a_forked_child_does_not_write_the_trace_of_its_parent) {
  vyre_status st = {0};
  make_folder();
  rig r = open_traced(path, NULL);
  CHECK_OK(dispatch(r.pipeline, "parent", &st), st);
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    (void)!dispatch(r.pipeline, "child", &st);
    vyre_pipeline_release(r.pipeline);
    vyre_device_release(r.device);
    vyre_context_release(r.context);
    _exit(0);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  rig_close(&r);
  read_trace(path);
  CHECK_U64(count("dispatch"), 1);
  CHECK_TEXT(find("dispatch", 0)->label, "parent");
  remove_folder();
}

/* --- costs ---------------------------------------------------------------- */

TEST(without_a_trace_no_memory_and_no_file_is_used) {
  vyre_context *context;
  vyre_status st = {0};
  vyre_trace_info info = {.event_count = 7};
  test_heap off = {.left = -1};
  make_folder();
  setenv("VYRE_TRACE", path, 1); /* the option "" overrides it */
  vyre_context_options options = {.allocator = test_heap_allocator(&off),
                                  .trace_file = "",
                                  .cache_directory = "",
                                  .faults = ""};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_U64(off.calls, 1);
  CHECK(!vyre_context_get_trace_info(context, &info));
  CHECK(!info.file && info.event_count == 0);
  CHECK_U64(vyre__trace_begin(context), 0);
  vyre_context_release(context);
  CHECK(access(path, F_OK) != 0);
  options.trace_file = NULL;
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK(vyre_context_get_trace_info(context, &info));
  vyre_context_release(context);
  unsetenv("VYRE_TRACE");
  CHECK(access(path, F_OK) == 0);
  CHECK_U64(off.live_bytes, 0);
  remove_folder();
}

TEST(a_traced_dispatch_allocates_nothing) {
  vyre_status st = {0};
  test_heap heap = {.left = -1};
  make_folder();
  uint32_t x[ELEMENTS] = {1, 2, 3}, y[ELEMENTS]; /* bound to every dispatch */
  rig r = open_traced(path, &heap);
  CHECK_OK(dispatch_on(r.pipeline, "warm", x, y, &st), st);
  size_t calls = heap.calls;
  for (int i = 0; i < 1000; i++) {
    CHECK_OK(dispatch_on(r.pipeline, "warm", x, y, &st), st);
  }
  CHECK_U64(heap.calls, calls);
  rig_close(&r);
  CHECK_U64(heap.live_bytes, 0);
  remove_folder();
}

/* --- threads -------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 200 };

static void *work(void *self) {
  vyre_pipeline *pipeline = self;
  vyre_status st = {0};
  intptr_t good = 0;
  for (int i = 0; i < ROUNDS; i++) {
    good += dispatch(pipeline, "threads", &st) == VYRE_OK;
  }
  return (void *)good;
}

TEST(many_threads_trace_at_once) {
  pthread_t threads[THREADS];
  make_folder();
  rig r = open_traced(path, NULL);
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, work, r.pipeline) == 0);
  }
  submit_and_wait(r.pipeline, 2);
  for (int i = 0; i < THREADS; i++) {
    void *good;
    CHECK(pthread_join(threads[i], &good) == 0);
    CHECK_U64((uintptr_t)good, ROUNDS);
  }
  rig_close(&r);
  read_trace(path);
  CHECK_U64(count("dispatch"), THREADS * ROUNDS + 2);
  CHECK_U64(count("submit"), THREADS * ROUNDS + 1);
  check_nesting();
  remove_folder();
}

TEST_MAIN(TEST_ENTRY(every_kind_of_work_has_its_event),
          TEST_ENTRY(queued_work_has_its_own_track),
          TEST_ENTRY(a_replay_and_its_items_have_events),
          TEST_ENTRY(a_replay_with_a_fence_is_on_the_track_of_its_queue),
          TEST_ENTRY(a_replay_that_fails_ends_its_loops_in_the_trace),
          TEST_ENTRY(a_failed_event_has_its_result),
          TEST_ENTRY(any_bytes_may_be_a_label),
          TEST_ENTRY(a_killed_process_leaves_a_valid_file),
          TEST_ENTRY(a_file_that_is_not_a_trace_is_kept),
          TEST_ENTRY(a_context_continues_a_file_of_this_process),
          TEST_ENTRY(two_contexts_never_share_a_file),
          TEST_ENTRY(the_file_name_may_have_the_process_id),
          TEST_ENTRY(an_unwritable_file_is_refused_at_once),
          TEST_ENTRY(a_pipe_is_refused_at_once),
          TEST_ENTRY(events_that_cannot_be_written_are_counted),
          TEST_ENTRY(a_file_size_limit_does_not_kill_the_process),
          TEST_ENTRY(a_forked_child_does_not_write_the_trace_of_its_parent),
          TEST_ENTRY(without_a_trace_no_memory_and_no_file_is_used),
          TEST_ENTRY(a_traced_dispatch_allocates_nothing),
          TEST_ENTRY(many_threads_trace_at_once))
