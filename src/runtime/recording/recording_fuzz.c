/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzzes sequences of calls on a recording: slots, commands, loops, sealing,
 * bindings of valid, freed, foreign and moved memory, and replays with and
 * without a fence. A simple model of the recording runs the same commands. A
 * call that is refused gives a reason and runs nothing; a replay leaves the
 * same bytes as the model and uses no freed buffer; and all memory is freed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
  /* memory areas: three of the host, three device buffers, a host buffer */
  AREAS = 7,
  HOSTS = 3,
  SLOT_AREA = 6,
  BYTES = 32,
  MAX_SLOTS = 6,
  MAX_COMMANDS = 24,
  MAX_CALLS = 96
};

static const char text[] =
    "kernel scale workgroup(4) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "uniform a : u32 @2;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = a * x[global_id.x]; }\n"
    "kernel add workgroup(4) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] += x[global_id.x]; }\n"
    "kernel count workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { n[0] = n[0] - 1; n[1] = n[1] + 1; } }\n";

enum { SCALE, ADD, COUNT, KERNELS };

/* Slot ranges of the inputs, then of the outputs. */
static const unsigned ins[KERNELS] = {2, 2, 1}, outs[KERNELS] = {1, 1, 1};

typedef enum kind { COPY, DISPATCH, WHILE, END, BARRIER } kind;

typedef struct command {
  kind kind;
  int kernel;
  vyre_slot_range in[2], out, from, to;
  uint64_t max;
} command;

typedef struct bound {
  bool is_bound;
  int area;
  uint64_t offset, size;
  uint64_t id;      /* bytes of the device buffer */
  const void *data; /* host buffer */
} bound;

typedef struct world {
  const uint8_t *at, *end;
  vyre_recording *rec;
  bool is_finished;
  /* allocated with the exact size, for the sanitizer */
  unsigned char *host[HOSTS];
  vyre_buffer buffers[AREAS];
  bool is_live[AREAS];
  vyre_host_buffer slot;
  unsigned char plain[AREAS][BYTES]; /* expected contents */
  bound slots[MAX_SLOTS];
  uint32_t slot_count;
  command commands[MAX_COMMANDS];
  unsigned command_count, depth;
  vyre_status st;
} world;

static long long live_bytes;
static vyre_context *context;
static vyre_device *device, *stranger;
static vyre_buffer foreign;
static vyre_pipeline *pipelines[KERNELS];

#define must(holds)                                                     \
  do {                                                                  \
    if (!(holds)) {                                                     \
      (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
      abort();                                                          \
    }                                                                   \
  } while (0)

static void *count_resize(void *self, void *ptr, size_t old, size_t size) {
  (void)self;
  __atomic_add_fetch(&live_bytes, (long long)size - (long long)old,
                     __ATOMIC_RELAXED);
  if (size == 0) free(ptr);
  return size == 0 ? NULL : realloc(ptr, size);
}

static void open_devices(void) {
  static vyre_module *module;
  vyre_status st = {0};
  vyre_context_options options = {.allocator = {count_resize, NULL},
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  must(vyre_context_create(&options, &context, &st) == VYRE_OK);
  must(vyre_device_open(context, "ref", &device, &st) == VYRE_OK);
  must(vyre_device_open(NULL, "ref", &stranger, &st) == VYRE_OK);
  must(vyre_buffer_create(stranger, BYTES, &foreign, &st) == VYRE_OK);
  must(vyre_module_parse(text, sizeof text - 1, "fuzz.vyre",
                         (vyre_allocator){0}, &module, NULL, &st) == VYRE_OK);
  for (size_t i = 0; i < KERNELS; i++) {
    must(vyre_pipeline_compile(device, vyre_module_kernel(module, i), NULL,
                               &pipelines[i], NULL, &st) == VYRE_OK);
  }
}

static uint8_t next(world *w) {
  return w->at < w->end ? *w->at++ : 0;
}

/* Checks the reason of a refusal and clears the status. */
static bool fine(world *w, vyre_code code) {
  must(code == w->st.code);
  if (code == VYRE_OK) return true;
  must(w->st.message[0] && w->st.fix[0]);
  w->st = (vyre_status){0};
  return false;
}

static uint64_t launches(void) {
  vyre_counters counters;
  vyre_counters_read(device, &counters);
  return counters.launches;
}

/* --- the model ---------------------------------------------------------- */

/* Computes the size of a slot range; @p declared is the size in the kernel, or
 * 0. */
static unsigned char *resolve(world *w, const vyre_slot_range *p,
                              uint64_t declared, uint64_t *size) {
  must(p->slot < w->slot_count && w->slots[p->slot].is_bound);
  const bound *b = &w->slots[p->slot];
  must(p->offset <= b->size);
  *size = p->size ? p->size : declared ? declared : b->size - p->offset;
  must(*size <= b->size - p->offset);
  return w->plain[b->area] + b->offset + p->offset;
}

static uint32_t word_at(const unsigned char *at, uint64_t index,
                        uint64_t size) {
  uint32_t word = 0;
  if (4 * index + 4 <= size) memcpy(&word, at + 4 * index, 4);
  return word;
}

static void put_word(unsigned char *at, uint64_t index, uint32_t word) {
  memcpy(at + 4 * index, &word, 4);
}

/* A device buffer that is the input of a buffer that is read and written is
 * updated in place; an output in host memory gets a copy. */
static void update_input(const world *w, const vyre_slot_range *in,
                         const vyre_slot_range *out, unsigned char *from,
                         const unsigned char *result, uint64_t size) {
  if (w->slots[in->slot].id && !w->slots[out->slot].id) {
    memmove(from, result, size);
  }
}

static void plain_dispatch(world *w, const command *c) {
  uint64_t x_size, y_size, a_size, from_size;
  if (c->kernel == COUNT) {
    unsigned char *from = resolve(w, &c->in[0], 8, &from_size);
    unsigned char *n = resolve(w, &c->out, 8, &y_size);
    must(from_size == 8 && y_size == 8);
    memmove(n, from, 8);
    put_word(n, 0, word_at(n, 0, 8) - 1);
    put_word(n, 1, word_at(n, 1, 8) + 1);
    update_input(w, &c->in[0], &c->out, from, n, 8);
    return;
  }
  const unsigned char *x = resolve(w, &c->in[0], 0, &x_size);
  unsigned char *y = resolve(w, &c->out, 0, &y_size);
  must(x_size % 4 == 0 && y_size % 4 == 0);
  if (c->kernel == SCALE) {
    const unsigned char *a = resolve(w, &c->in[1], 4, &a_size);
    must(a_size == 4);
    for (uint64_t i = 0; i < y_size / 4; i++) {
      put_word(y, i, word_at(a, 0, 4) * word_at(x, i, x_size));
    }
    return;
  }
  unsigned char *from = resolve(w, &c->in[1], 0, &from_size);
  /* The kernel sees only the bytes that it needs of a longer device buffer. */
  if (w->slots[c->out.slot].id && y_size > from_size) y_size = from_size;
  must(from_size == y_size);
  memmove(y, from, y_size);
  for (uint64_t i = 0; i < y_size / 4; i++) {
    put_word(y, i, word_at(y, i, y_size) + word_at(x, i, x_size));
  }
  update_input(w, &c->in[1], &c->out, from, y, y_size);
}

static void plain_copy(world *w, const command *c, bool keeps) {
  const bound *from = &w->slots[c->from.slot], *to = &w->slots[c->to.slot];
  uint64_t from_size, to_size;
  const unsigned char *source = resolve(w, &c->from, c->to.size, &from_size);
  unsigned char *target = resolve(w, &c->to, c->from.size, &to_size);
  must(from_size == to_size);
  bool is_upload = !from->id && to->id;
  if (!keeps || !is_upload) memmove(target, source, to_size);
}

/* Runs the commands from @p first to the end of their loop. Returns the
 * command after it. */
static unsigned model_run(world *w, unsigned first, bool keeps) {
  unsigned i = first;
  while (i < w->command_count && w->commands[i].kind != END) {
    const command *c = &w->commands[i++];
    if (c->kind == COPY) plain_copy(w, c, keeps);
    if (c->kind == DISPATCH) plain_dispatch(w, c);
    if (c->kind != WHILE) continue;
    uint64_t size;
    const unsigned char *flag = resolve(w, &c->from, 4, &size);
    must(size >= 4);
    unsigned body = i, depth = 0;
    /* the command after the loop */
    while (w->commands[i].kind != END || depth > 0) {
      depth += w->commands[i].kind == WHILE;
      depth -= w->commands[i].kind == END;
      i++;
    }
    i++;
    for (uint64_t n = 0; n < c->max && word_at(flag, 0, 4) != 0; n++) {
      model_run(w, body, keeps);
    }
  }
  return i;
}

/* --- memory --------------------------------------------------------------- */

static unsigned char *memory_of(world *w, int area) {
  return area < HOSTS ? w->host[area] : w->slot.data;
}

/* Compares the real memory with the model; or copies it to the model, after a
 * replay that failed halfway. */
static void compare(world *w, bool takes_over) {
  for (int i = 0; i < AREAS; i++) {
    unsigned char bytes[BYTES];
    bool is_device = i >= HOSTS && i < SLOT_AREA;
    if (is_device && !w->is_live[i]) continue;
    if (is_device) {
      must(fine(w, vyre_buffer_download(device, w->buffers[i], 0, bytes, BYTES,
                                        &w->st)));
    } else {
      memcpy(bytes, memory_of(w, i), BYTES);
    }
    if (takes_over) memcpy(w->plain[i], bytes, BYTES);
    must(memcmp(bytes, w->plain[i], BYTES) == 0);
  }
}

static void create_buffer(world *w, int area) {
  must(fine(w, vyre_buffer_create(device, BYTES, &w->buffers[area], &w->st)));
  must(fine(w, vyre_buffer_upload(device, w->buffers[area], 0, w->plain[area],
                                  BYTES, &w->st)));
  w->is_live[area] = true;
}

static void begin(world *w) {
  for (int i = 0; i < AREAS; i++) {
    for (int k = 0; k < BYTES; k++) {
      w->plain[i][k] = k % 4 ? 0 : (unsigned char)(i + k / 4);
    }
    if (i >= HOSTS && i < SLOT_AREA) {
      create_buffer(w, i);
      continue;
    }
    unsigned char *memory = malloc(BYTES);
    must(memory != NULL);
    memcpy(memory, w->plain[i], BYTES);
    if (i < HOSTS) w->host[i] = memory;
    if (i == SLOT_AREA) {
      w->slot =
          (vyre_host_buffer){.data = memory, .size = BYTES, .capacity = BYTES};
    }
  }
  must(fine(w, vyre_recording_create(device, &w->rec, &w->st)));
}

static void finish(world *w) {
  vyre_recording_release(w->rec);
  for (int i = HOSTS; i < SLOT_AREA; i++) {
    if (w->is_live[i]) {
      must(fine(w, vyre_buffer_destroy(device, w->buffers[i], &w->st)));
    }
  }
  for (int i = 0; i < HOSTS; i++) free(w->host[i]);
  free(w->slot.data);
}

/* --- calls ---------------------------------------------------------------- */

static vyre_slot_range take_range(world *w) {
  static const uint64_t offsets[] = {0, 0, 4, 8, 16, 28, 32, 3};
  static const uint64_t sizes[] = {0, 0, 0, 4, 8, 16, 32, 6};
  uint8_t a = next(w), b = next(w);
  return (vyre_slot_range){a % (MAX_SLOTS + 1), offsets[b % 8],
                           sizes[b / 8 % 8]};
}

static void keep(world *w, bool was_recorded, const command *c) {
  if (!was_recorded) return;
  must(!w->is_finished && w->command_count < MAX_COMMANDS);
  w->commands[w->command_count++] = *c;
}

static void call_command(world *w, uint8_t choice) {
  command c = {.kind = BARRIER};
  if (w->command_count == MAX_COMMANDS) return;
  if (choice < 3) {
    c.kind = DISPATCH;
    c.kernel = choice;
    for (unsigned i = 0; i < ins[choice]; i++) c.in[i] = take_range(w);
    c.out = take_range(w);
    if (choice != SCALE && next(w) % 2) c.out = c.in[ins[choice] - 1];
    vyre_recorded_dispatch d = {.inputs = c.in,
                                .input_count = ins[choice],
                                .outputs = &c.out,
                                .output_count = outs[choice]};
    if (next(w) == 255) d.input_count = 3 - ins[choice]; /* invalid */
    vyre_code code =
        vyre_recording_add_dispatch(w->rec, pipelines[choice], &d, &w->st);
    must(code != VYRE_OK || d.input_count == ins[choice]);
    keep(w, fine(w, code), &c);
  } else if (choice == 3) {
    c.kind = COPY;
    c.from = take_range(w);
    c.to = take_range(w);
    keep(w, fine(w, vyre_recording_add_copy(w->rec, c.from, c.to, &w->st)), &c);
  } else if (choice == 4) {
    c.kind = WHILE;
    c.from = take_range(w);
    c.max = next(w) % 4; /* 0 is refused */
    if (w->depth == 3) return;
    bool is_retained = fine(w, vyre_recording_begin_while(w->rec, c.from, c.max,
                                                          next(w) % 3, &w->st));
    must(!is_retained || c.max > 0);
    keep(w, is_retained, &c);
    w->depth += is_retained;
  } else if (choice == 5) {
    c.kind = END;
    bool is_retained = fine(w, vyre_recording_end_while(w->rec, &w->st));
    must(!is_retained || w->depth > 0);
    keep(w, is_retained, &c);
    w->depth -= is_retained;
  } else {
    keep(w, fine(w, vyre_recording_add_barrier(w->rec, &w->st)), &c);
  }
}

static void call_slot(world *w) {
  static const char *const names[] = {"a", "b", "c", "d", "e", "f", "", "a"};
  uint8_t a = next(w);
  uint32_t slot;
  if (w->slot_count == MAX_SLOTS) return;
  bool exists =
      fine(w, vyre_recording_add_slot(w->rec, names[a % 8],
                                      a & 0x40 ? BYTES : 0, &slot, &w->st));
  must(exists ? slot == w->slot_count : slot == VYRE_NO_SLOT);
  must(!exists || !w->is_finished);
  w->slot_count += exists;
}

/* Creates a valid binding, or one with an invalid handle. */
static void call_bind(world *w) {
  static const uint64_t offsets[] = {0, 0, 0, 4, 8, 16, 32, 40};
  uint8_t a = next(w), b = next(w);
  uint32_t slot = a % (MAX_SLOTS + 1);
  int area = b % (AREAS + 2);
  uint64_t offset = offsets[a / 8 % 8], size = b & 0x40 ? 8 : 0;
  bool is_bad = slot >= w->slot_count, unbinds = area == AREAS + 1;
  vyre_slot_binding r = {.is_read_only = b >= 240};
  if (area < HOSTS) {
    offset %= BYTES;
    if (size > BYTES - offset || size == 0) size = BYTES - offset;
    r.data = w->host[area] + offset;
    r.size = size;
  } else if (area < SLOT_AREA) {
    r.buffer = w->buffers[area];
    r.offset = offset;
    r.size = size;
    is_bad = is_bad || !w->is_live[area] || offset + size > BYTES;
    if (size == 0) size = BYTES - offset;
  } else if (area == SLOT_AREA) {
    r.host_buffer = &w->slot;
    offset = 0;
    size = BYTES;
  } else {
    r.buffer = foreign;
    is_bad = is_bad || !unbinds;
  }
  bool is_done = fine(
      w, vyre_recording_bind_slot(w->rec, slot, unbinds ? NULL : &r, &w->st));
  must(!is_done || !is_bad);
  if (!is_done) return;
  w->slots[slot] = (bound){.is_bound = !unbinds,
                           .area = area,
                           .offset = offset,
                           .size = size,
                           .id = r.buffer.id,
                           .data = r.host_buffer ? w->slot.data : NULL};
}

static void call_free(world *w, bool recreates) {
  int area = HOSTS + next(w) % (SLOT_AREA - HOSTS);
  bool was_live = w->is_live[area];
  must(fine(w, vyre_buffer_destroy(device, w->buffers[area], &w->st)) ==
       was_live);
  w->is_live[area] = false;
  if (recreates) create_buffer(w, area);
}

/* Moves the host buffer to other memory with the same bytes. */
static void call_move(world *w) {
  unsigned char *other = malloc(BYTES);
  must(other != NULL);
  memcpy(other, w->slot.data, BYTES);
  free(w->slot.data);
  w->slot.data = other;
}

/* Checks that a replay that was accepted used no freed buffer. */
static void check_bound(const world *w) {
  for (unsigned i = 0; i < w->command_count; i++) {
    const command *c = &w->commands[i];
    const vyre_slot_range *places[] = {&c->from, &c->to};
    const vyre_slot_range *bindings[] = {&c->in[0], &c->in[1], &c->out};
    const vyre_slot_range *const *all = c->kind == DISPATCH ? bindings : places;
    unsigned count = c->kind == DISPATCH ? 3
                     : c->kind == COPY   ? 2
                     : c->kind == WHILE  ? 1
                                         : 0;
    for (unsigned k = 0; k < count; k++) {
      if (c->kind == DISPATCH && k == 1 && ins[c->kernel] < 2) continue;
      const bound *b = &w->slots[all[k]->slot];
      must(b->is_bound);
      if (b->id) must(w->is_live[b->area] && w->buffers[b->area].id == b->id);
      if (b->data) must(b->data == w->slot.data);
    }
  }
}

static void call_replay(world *w) {
  uint8_t a = next(w);
  vyre_replay_options options = {
      .skip_uploads = a & 1, .fail_at_max = a & 2, .timeout_ns = 5000000000u};
  vyre_fence *fence = NULL;
  uint64_t before = launches();
  vyre_code code =
      vyre_recording_replay(w->rec, &options, a & 4 ? &fence : NULL, &w->st);
  if (code == VYRE_OK) {
    must(w->is_finished);
    check_bound(w);
    model_run(w, 0, options.skip_uploads);
  }
  if (code == VYRE_OK && fence) {
    if (a & 8) call_bind(w); /* refused, unless the replay has ended */
    if (a & 16) call_free(w, false);
    code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &w->st);
    vyre_fence_release(fence);
  }
  must(code != VYRE_INVALID_ARGUMENT || launches() == before);
  bool was_over = code == VYRE_OK || code == VYRE_INVALID_ARGUMENT ||
                  code == VYRE_INVALID_PROGRAM;
  (void)fine(w, code);
  compare(w, !was_over);
}

static bool discard(void *self, const char *bytes, size_t length) {
  (void)self, (void)bytes, (void)length;
  return true;
}

static void call(world *w) {
  uint8_t choice = next(w) % 16;
  if (choice < 7) {
    call_command(w, choice);
  } else if (choice == 7) {
    call_slot(w);
  } else if (choice < 10) {
    call_bind(w);
  } else if (choice == 10) {
    call_free(w, next(w) % 2);
  } else if (choice == 11) {
    call_move(w);
  } else if (choice == 12) {
    bool is_done = fine(w, vyre_recording_seal(w->rec, &w->st));
    must(!is_done || (!w->is_finished && w->depth == 0));
    w->is_finished = w->is_finished || is_done;
  } else if (choice == 13) {
    must(vyre_recording_print(w->rec, (vyre_writer){discard, NULL}));
  } else {
    call_replay(w);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  world w = {.at = data, .end = data + size};
  if (!device) open_devices();
  begin(&w);
  /* The first byte gives the number of initial slots. */
  for (uint8_t n = next(&w) % 8; n > 0 && w.slot_count < MAX_SLOTS; n--) {
    char name[2] = {(char)('a' + w.slot_count), '\0'};
    uint32_t slot;
    must(fine(&w, vyre_recording_add_slot(w.rec, name, 0, &slot, &w.st)));
    w.slot_count++;
  }
  for (int i = 0; i < MAX_CALLS && w.at < w.end; i++) call(&w);
  finish(&w);
  vyre_counters counters;
  vyre_counters_read(device, &counters);
  must(counters.live_device_buffers == 0);
  /* The device keeps some memory for reuse. Its maximum must not grow with the
   * number of inputs. */
  static long long max;
  static unsigned inputs;
  long long live = __atomic_load_n(&live_bytes, __ATOMIC_RELAXED);
  if (inputs++ < 4096) {
    if (live > max) max = live;
  } else {
    must(live <= 2 * max + (1 << 20));
  }
  return 0;
}
