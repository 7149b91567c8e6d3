/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a dispatch a second time with outputs of its own: to measure another
 * device, or to compare the results of two devices. A difference can be kept as
 * a file that runs again.
 *
 * Format of a shadow file, all numbers little endian u64: magic, size of the
 * program, workgroup (3), ulp budget, grid (3), iteration limit, number of
 * inputs, their sizes, number of outputs, their sizes; then the binary form of
 * the program and the inputs; then the hash of everything before it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vyre/binary.h"

#include "base/hash.h"
#include "runtime/cache/cache.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/route/router_internal.h"

/* --- outputs ---------------------------------------------------------------*/

/* Returns the bytes of an output after its dispatch. */
static size_t output_size(const vyre_output *output) {
  return output->host_buffer ? output->host_buffer->size : output->size;
}

static const unsigned char *output_data(const vyre_output *output) {
  return output->host_buffer ? output->host_buffer->data : output->data;
}

/* Makes @p out a copy of @p desc in which outputs have the size of the buffers
 * that they name. */
static void set_sizes(const vyre_route *route, const vyre_dispatch_desc *desc,
                      vyre_output sizes[VYRE__OWN_OUTPUTS],
                      vyre_dispatch_desc *out) {
  const vyre_binding_plan *plan = vyre__route_plan(route);
  *out = *desc;
  if (desc->output_count > VYRE__OWN_OUTPUTS) return; /* refused later */
  out->outputs = sizes;
  for (size_t i = 0; i < desc->output_count; i++) sizes[i] = desc->outputs[i];
  for (size_t b = 0; b < plan->binding_count; b++) {
    uint32_t i = plan->bindings[b].output_index;
    uint32_t k = plan->bindings[b].input_index;
    if (i >= desc->output_count || sizes[i].size > 0) continue;
    vyre_buffer buffer = sizes[i].buffer;
    if (buffer.owner == 0 && k < desc->input_count) {
      sizes[i].size = (size_t)desc->inputs[k].size;
      buffer = desc->inputs[k].buffer;
    }
    if (buffer.owner == 0 || sizes[i].size > 0) continue;
    uint64_t size = vyre__route_buffer_size(route->router, buffer);
    sizes[i].size =
        size > sizes[i].offset ? (size_t)(size - sizes[i].offset) : 0;
  }
}

/* Runs a copy of the dispatch, whose router buffers get copies on the device.
 * Updates of these are not kept. */
static vyre_code run_with_buffers(vyre_route *route, uint32_t index,
                                  vyre_pipeline *pipeline,
                                  const vyre_dispatch_desc *desc, uint64_t *ns,
                                  vyre_status *st) {
  route_bound bound;
  vyre_router *router = route->router;
  VYRE_TRY(vyre__route_bind(router, vyre_pipeline_bindings(pipeline), desc,
                            index, &bound, st));
  VYRE_TRY(vyre__route_bound_keep(router, &bound, index, st));
  uint64_t start = vyre__clock_ns();
  vyre_code code = vyre_dispatch(pipeline, &bound.desc, vyre__status_open(st));
  *ns = vyre__clock_ns() - start;
  vyre__prepared_forget(pipeline, &bound.desc);
  (void)vyre__route_bound_failed(router, &bound, index);
  return code;
}

static bool has_router_buffers(const vyre_dispatch_desc *desc) {
  for (size_t i = 0; i < desc->input_count; i++) {
    if (route_owns(desc->inputs[i].buffer)) return true;
  }
  return false;
}

vyre_code vyre__route_try(vyre_route *route, uint32_t index,
                          const vyre_dispatch_desc *desc, uint64_t timeout_ns,
                          vyre__bytes *out, uint64_t *ns, vyre_status *st) {
  vyre_output outputs[VYRE__OWN_OUTPUTS];
  vyre_pipeline *pipeline;
  VYRE_TRY(vyre__route_pipeline(route, index, &pipeline, st));
  vyre_dispatch_desc sized = *desc;
  vyre_output sizes[VYRE__OWN_OUTPUTS];
  set_sizes(route, desc, sizes, &sized);
  VYRE_TRY(vyre__own_outputs("vyre_route_dispatch", vyre__route_plan(route),
                             &sized, outputs, out, st));
  vyre_dispatch_desc copy = {
      .inputs = desc->inputs,
      .input_count = desc->input_count,
      .outputs = outputs,
      .output_count = desc->output_count,
      .grid = {desc->grid[0], desc->grid[1], desc->grid[2]},
      .variant = desc->variant,
      .max_loop_iterations = desc->max_loop_iterations,
      .timeout_ns = timeout_ns};
  if (has_router_buffers(desc)) {
    return run_with_buffers(route, index, pipeline, &copy, ns, st);
  }
  uint64_t start = vyre__clock_ns();
  vyre_code code = vyre_dispatch(pipeline, &copy, vyre__status_open(st));
  *ns = vyre__clock_ns() - start;
  vyre__prepared_forget(pipeline, &copy);
  return code;
}

/* --- snapshots -------------------------------------------------------------*/

static bool is_in_place(const vyre_input *in, const vyre_output *out) {
  const char *a = in->data;
  const char *b = out->host_buffer ? out->host_buffer->data : out->data;
  size_t size = out->host_buffer ? out->host_buffer->capacity : out->size;
  return a && b && a < b + size && b < a + in->size;
}

static bool is_overwritten(const vyre_dispatch_desc *desc, size_t input) {
  for (size_t k = 0; k < desc->output_count; k++) {
    if (is_in_place(&desc->inputs[input], &desc->outputs[k])) return true;
  }
  return false;
}

const char *vyre__route_in_place(const vyre_route *route,
                                 const vyre_dispatch_desc *desc) {
  const vyre_binding_plan *plan = vyre__route_plan(route);
  for (size_t i = 0; i < desc->input_count; i++) {
    if (!is_overwritten(desc, i)) continue;
    for (size_t b = 0; b < plan->binding_count; b++) {
      if (plan->bindings[b].input_index == i) return plan->bindings[b].name;
    }
    return "?";
  }
  return NULL;
}

/* Copies one input if that is needed. Its `data` is set later: the memory of
 * the copies may still move. Sets *at to the offset of the copy, or SIZE_MAX. */
static vyre_code copy_input(vyre_route *route, const vyre_dispatch_desc *desc,
                            size_t index, bool has_buffers, route_snapshot *out,
                            size_t *at, vyre_status *st) {
  vyre_input *in = &out->inputs[index];
  *at = SIZE_MAX;
  if (in->buffer.owner) {
    uint64_t size;
    if (!has_buffers) return VYRE_OK;
    *at = out->bytes.size;
    VYRE_TRY(vyre__route_fetch(route->router, in->buffer, in->offset, in->size,
                               &out->bytes, &size, st));
    *in = (vyre_input){.size = size};
  } else if (is_overwritten(desc, index)) {
    *at = out->bytes.size;
    vyre__bytes_put(&out->bytes, in->data, (size_t)in->size);
  }
  static const unsigned char zeros[16];
  vyre__bytes_put(&out->bytes, zeros, (16 - out->bytes.size % 16) % 16);
  if (!out->bytes.failed) return VYRE_OK;
  return vyre__no_memory(st, "vyre_route_dispatch", "bytes of a snapshot",
                         out->bytes.size);
}

static vyre_code copy_inputs(vyre_route *route, const vyre_dispatch_desc *desc,
                             bool has_buffers, route_snapshot *out,
                             vyre_status *st) {
  size_t count = desc->input_count;
  size_t *offsets =
      vyre__resize(out->allocator, NULL, 0, count * sizeof *offsets);
  vyre_code code = VYRE_OK;
  if (!offsets) {
    return vyre__no_memory(st, "vyre_route_dispatch", "inputs", count);
  }
  for (size_t i = 0; i < count && code == VYRE_OK; i++) {
    code = copy_input(route, desc, i, has_buffers, out, &offsets[i], st);
  }
  for (size_t i = 0; i < count && code == VYRE_OK; i++) {
    if (offsets[i] != SIZE_MAX) {
      out->inputs[i].data = out->bytes.data + offsets[i];
    }
  }
  vyre__resize(out->allocator, offsets, count * sizeof *offsets, 0);
  return code;
}

vyre_code vyre__route_snapshot(vyre_route *route,
                               const vyre_dispatch_desc *desc, bool has_buffers,
                               route_snapshot *out, vyre_status *st) {
  vyre_allocator allocator = route->router->allocator;
  size_t count = desc->input_count;
  *out = (route_snapshot){.allocator = allocator,
                          .bytes = {.allocator = allocator}};
  if (count == 0) return VYRE_OK;
  out->inputs = vyre__resize(allocator, NULL, 0, count * sizeof *out->inputs);
  if (!out->inputs) {
    return vyre__no_memory(st, "vyre_route_dispatch", "inputs", count);
  }
  out->input_count = count;
  memcpy(out->inputs, desc->inputs, count * sizeof *out->inputs);
  vyre_code code = copy_inputs(route, desc, has_buffers, out, st);
  if (code != VYRE_OK) vyre__route_snapshot_deinit(out);
  return code;
}

void vyre__route_snapshot_deinit(route_snapshot *snapshot) {
  if (snapshot->inputs) {
    vyre__resize(snapshot->allocator, snapshot->inputs,
                 snapshot->input_count * sizeof *snapshot->inputs, 0);
    vyre__bytes_deinit(&snapshot->bytes);
  }
  *snapshot = (route_snapshot){0};
}

/* --- files -----------------------------------------------------------------*/

static const char magic[9] = "vyreshd1";

static void put_number(vyre__bytes *to, uint64_t value) {
  unsigned char bytes[8];
  vyre__cache_store_u64(bytes, value);
  vyre__bytes_put(to, bytes, sizeof bytes);
}

static void put_hash(vyre__bytes *to) {
  if (to->failed) return;
  vyre_hash128 hash = vyre__hash_of("vyre shadow", to->data, to->size);
  put_number(to, hash.low);
  put_number(to, hash.high);
}

bool vyre__shadow_write(const vyre_route *route, const vyre_dispatch_desc *desc,
                        vyre__bytes *to) {
  vyre_output sizes[VYRE__OWN_OUTPUTS];
  vyre_dispatch_desc sized;
  set_sizes(route, desc, sizes, &sized);
  vyre_arena arena;
  const uint8_t *program;
  size_t size;
  vyre_arena_init(&arena, route->router->allocator);
  bool is_ok = vyre_program_write_binary(route->program, &arena, &program,
                                         &size, NULL) == VYRE_OK;
  if (is_ok) {
    vyre__bytes_put(to, magic, 8);
    put_number(to, size);
    for (int i = 0; i < 3; i++) put_number(to, route->options.workgroup[i]);
    put_number(to, route->options.ulp_budget);
    for (int i = 0; i < 3; i++) put_number(to, desc->grid[i]);
    put_number(to, desc->max_loop_iterations);
    put_number(to, desc->input_count);
    for (size_t i = 0; i < desc->input_count; i++) {
      put_number(to, desc->inputs[i].size);
    }
    put_number(to, desc->output_count);
    for (size_t i = 0; i < desc->output_count; i++) {
      put_number(to, vyre__output_size(vyre__route_plan(route), &sized, i));
    }
    vyre__bytes_put(to, program, size);
    for (size_t i = 0; i < desc->input_count; i++) {
      vyre__bytes_put(to, desc->inputs[i].data, desc->inputs[i].size);
    }
    put_hash(to);
  }
  vyre_arena_deinit(&arena);
  return is_ok && !to->failed;
}

/* Writes a file of a new name below the folder. Returns false if it cannot. */
static bool write_file(vyre_router *router, const vyre__bytes *bytes,
                       char name[64]) {
  int folder = open(router->shadow_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  int file = -1;
  for (int tries = 0; file < 0 && tries < 1000; tries++) {
    unsigned number = atomic_fetch_add(&router->shadow_files, 1);
    (void)snprintf(name, 64, "difference-%ld-%u.vyreshadow", (long)getpid(),
                   number);
    file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  }
  size_t at = 0;
  while (file >= 0 && at < bytes->size) {
    ssize_t put = write(file, bytes->data + at, bytes->size - at);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) break;
    at += (size_t)put;
  }
  bool is_whole = file >= 0 && close(file) == 0 && at == bytes->size;
  if (file >= 0 && !is_whole) (void)unlinkat(folder, name, 0);
  close(folder);
  return is_whole;
}

static void keep_difference(vyre_route *route, const vyre_dispatch_desc *desc,
                            vyre_route_report *report) {
  vyre_router *router = route->router;
  if (!router->shadow_folder) return;
  vyre__bytes bytes = {.allocator = router->allocator};
  report->has_file = vyre__shadow_write(route, desc, &bytes) &&
                     write_file(router, &bytes, report->file);
  if (!report->has_file) report->file[0] = '\0';
  vyre__bytes_deinit(&bytes);
}

/* --- comparing -------------------------------------------------------------*/

/* Returns the bytes of an output after its dispatch, fetched to @p to if they
 * are in a buffer. */
static vyre_code result_of(vyre_route *route, const vyre_dispatch_desc *desc,
                           const vyre_binding *binding, uint64_t max,
                           vyre__bytes *to, const unsigned char **data,
                           size_t *size, vyre_status *st) {
  const vyre_output *o = &desc->outputs[binding->output_index];
  vyre_buffer buffer = o->new_buffer ? *o->new_buffer : o->buffer;
  uint64_t offset = o->new_buffer ? 0 : o->offset, fetched;
  *data = output_data(o);
  *size = output_size(o);
  if (*data) return VYRE_OK;
  if (buffer.owner == 0 && binding->input_index < desc->input_count) {
    buffer = desc->inputs[binding->input_index].buffer;
    offset = desc->inputs[binding->input_index].offset;
  }
  *size = 0;
  if (buffer.owner == 0) return VYRE_OK;
  to->size = 0;
  VYRE_TRY(vyre__route_fetch(route->router, buffer, offset,
                             o->size ? o->size : max, to, &fetched, st));
  *data = to->data;
  *size = (size_t)fetched;
  return VYRE_OK;
}

/* Returns the first byte that differs, or @p count. */
static size_t first_difference(const unsigned char *a, const unsigned char *b,
                               size_t count) {
  size_t k = 0;
  if (count == 0 || memcmp(a, b, count) == 0) return count;
  while (a[k] == b[k]) k++;
  return k;
}

/* Compares one output with that of the shadow run. Returns true if it
 * differs. */
static bool compare_output(vyre_route *route, const vyre_dispatch_desc *desc,
                           const vyre_binding *binding,
                           const vyre_output *other, vyre__bytes *scratch,
                           vyre_route_report *report) {
  const unsigned char *mine;
  size_t have;
  if (result_of(route, desc, binding, other->size, scratch, &mine, &have,
                NULL) != VYRE_OK) {
    return false;
  }
  size_t common = have < other->size ? have : other->size;
  size_t k = first_difference(mine, other->data, common);
  if (k == common) return false;
  report->output = binding->name;
  report->element = k / (binding->element_size ? binding->element_size : 1);
  return true;
}

/* Finds the first element that differs. Returns false if all are equal. */
static bool compare(vyre_route *route, const vyre_dispatch_desc *desc,
                    vyre__bytes *other, vyre_route_report *report) {
  const vyre_binding_plan *plan = vyre__route_plan(route);
  vyre_dispatch_desc sized;
  vyre_output sizes[VYRE__OWN_OUTPUTS], outputs[VYRE__OWN_OUTPUTS];
  vyre__bytes scratch = {.allocator = route->router->allocator};
  bool is_different = false;
  set_sizes(route, desc, sizes, &sized);
  /* The memory has that size already: this finds the outputs in it. */
  if (vyre__own_outputs("vyre_route_dispatch", plan, &sized, outputs, other,
                        NULL) != VYRE_OK) {
    return false;
  }
  for (size_t i = 0; i < desc->output_count && !is_different; i++) {
    for (size_t b = 0; b < plan->binding_count; b++) {
      if (plan->bindings[b].output_index != i) continue;
      is_different = compare_output(route, desc, &plan->bindings[b],
                                    &outputs[i], &scratch, report);
    }
  }
  vyre__bytes_deinit(&scratch);
  return is_different;
}

static uint32_t other_candidate(const vyre_route *route, uint32_t ran) {
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    if (i != ran && atomic_load(&route->candidates[i].pipeline)) return i;
  }
  return ROUTE_NONE;
}

vyre_code vyre__route_shadow(vyre_route *route, uint32_t ran,
                             const vyre_dispatch_desc *desc,
                             const route_snapshot *inputs,
                             vyre_route_report *report, vyre_status *st) {
  uint32_t index = other_candidate(route, ran);
  if (index == ROUTE_NONE) return VYRE_OK;
  vyre_dispatch_desc again = *desc;
  if (inputs->inputs) again.inputs = inputs->inputs;
  vyre__bytes outputs = {.allocator = route->router->allocator};
  uint64_t ns;
  vyre_status ignored = {0};
  (void)st;
  /* The dispatch itself has succeeded: a failure of its shadow only means that
   * nothing was compared. */
  vyre_code code =
      vyre__route_try(route, index, &again, 0, &outputs, &ns, &ignored);
  report->shadow_device = route->router->devices[index].name;
  report->is_shadowed = code == VYRE_OK;
  if (code == VYRE_OK && compare(route, desc, &outputs, report)) {
    report->is_different = true;
    keep_difference(route, &again, report);
  }
  vyre__bytes_deinit(&outputs);
  return VYRE_OK;
}

/* --- running a file again --------------------------------------------------*/

typedef struct shadow_file {
  const unsigned char *at;
  size_t left;
  bool is_bad;
} shadow_file;

static uint64_t take_number(shadow_file *in) {
  if (in->left < 8) {
    in->is_bad = true;
    return 0;
  }
  uint64_t value = vyre__cache_load_u64(in->at);
  in->at += 8;
  in->left -= 8;
  return value;
}

static const unsigned char *take_bytes(shadow_file *in, uint64_t size) {
  if (size > in->left) {
    in->is_bad = true;
    return NULL;
  }
  const unsigned char *bytes = in->at;
  in->at += size;
  in->left -= (size_t)size;
  return bytes;
}

static bool check_hash(const unsigned char *bytes, size_t size) {
  if (size < 24 || memcmp(bytes, magic, 8) != 0) return false;
  vyre_hash128 hash = vyre__hash_of("vyre shadow", bytes, size - 16);
  return vyre__cache_load_u64(bytes + size - 16) == hash.low &&
         vyre__cache_load_u64(bytes + size - 8) == hash.high;
}

/* A shadow file, read. */
typedef struct shadow {
  vyre_compile_options options;
  vyre_dispatch_desc desc;
  vyre_input inputs[ROUTE_BINDINGS];
  vyre_output outputs[ROUTE_BINDINGS];
  const unsigned char *program;
  uint64_t program_size;
} shadow;

static bool parse(const void *bytes, size_t size, shadow *out) {
  shadow_file in = {bytes, size, false};
  if (!check_hash(bytes, size)) return false;
  in.at += 8;
  in.left -= 8 + 16;
  *out = (shadow){.program_size = take_number(&in)};
  for (int i = 0; i < 3; i++) {
    out->options.workgroup[i] = (uint32_t)take_number(&in);
  }
  out->options.ulp_budget = (uint8_t)take_number(&in);
  for (int i = 0; i < 3; i++) out->desc.grid[i] = (uint32_t)take_number(&in);
  out->desc.max_loop_iterations = take_number(&in);
  out->desc.input_count = (size_t)take_number(&in);
  if (out->desc.input_count > ROUTE_BINDINGS) return false;
  for (size_t i = 0; i < out->desc.input_count; i++) {
    out->inputs[i].size = (size_t)take_number(&in);
  }
  out->desc.output_count = (size_t)take_number(&in);
  if (out->desc.output_count > ROUTE_BINDINGS) return false;
  for (size_t i = 0; i < out->desc.output_count; i++) {
    out->outputs[i].size = (size_t)take_number(&in);
  }
  out->program = take_bytes(&in, out->program_size);
  for (size_t i = 0; i < out->desc.input_count; i++) {
    out->inputs[i].data = take_bytes(&in, out->inputs[i].size);
  }
  out->desc.inputs = out->inputs;
  out->desc.outputs = out->outputs;
  return !in.is_bad && in.left == 0;
}

static bool write_line(vyre_writer writer, const char *device,
                       vyre_hash128 hash) {
  char line[128], text[VYRE_HASH128_TEXT];
  vyre_hash128_text(hash, text);
  int length = snprintf(line, sizeof line, "%-16s %s\n", device, text);
  return !writer.write || writer.write(writer.self, line, (size_t)length);
}

static vyre_code replay_all(vyre_route *route, const shadow *s,
                            vyre_writer writer, bool *is_same,
                            vyre_status *st) {
  vyre_hash128 first = {0};
  bool is_first = true;
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    if (!atomic_load(&route->candidates[i].pipeline)) continue;
    vyre__bytes outputs = {.allocator = route->router->allocator};
    vyre__hasher hasher;
    uint64_t ns;
    vyre_code code = vyre__route_try(route, i, &s->desc, 0, &outputs, &ns, st);
    vyre__hash_begin(&hasher, "vyre outputs");
    if (code == VYRE_OK) vyre__hash_bytes(&hasher, outputs.data, outputs.size);
    vyre__bytes_deinit(&outputs);
    VYRE_TRY(code);
    vyre_hash128 hash = vyre__hash_end(&hasher);
    if (is_first) first = hash;
    is_first = false;
    *is_same &= vyre__hash_equal(hash, first);
    if (!write_line(writer, route->router->devices[i].name, hash)) {
      return VYRE_FAIL(st, VYRE_DISPATCH_FAILED, VYRE_KIND_WRITER_REFUSED,
                       "use a writer that accepts all text",
                       "vyre_shadow_replay: the writer failed");
    }
  }
  return VYRE_OK;
}

vyre_code vyre_shadow_replay(vyre_router *router, const void *bytes,
                             size_t size, vyre_writer text, bool *is_same,
                             vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, router, bytes);
  VYRE_REQUIRE(st, is_same);
  shadow s;
  *is_same = true;
  if (!parse(bytes, size, &s)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "bytes",
        VYRE_NUMBERS({"bytes", size}), "use a file that a router wrote",
        "vyre_shadow_replay: %zu bytes are not a whole shadow file", size);
  }
  vyre_program *program;
  vyre_route *route;
  VYRE_TRY(vyre_program_read_binary(s.program, (size_t)s.program_size,
                                    router->allocator, &program,
                                    vyre__status_open(st)));
  vyre_code code = vyre_router_compile(router, program, &s.options, &route,
                                       NULL, vyre__status_open(st));
  vyre_program_release(program);
  if (code != VYRE_OK) return code;
  code = replay_all(route, &s, text, is_same, st);
  vyre_route_release(route);
  return code;
}
