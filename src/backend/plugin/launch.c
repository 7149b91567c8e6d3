/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs launches: gives memory to the backend in a form that it can use, runs
 * the host schedule, and cuts phases into pieces. */
#include <fenv.h>
#include <string.h>

#include "backend/plugin/plugin.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

typedef struct plugin_launch {
  plugin_pipeline *pipeline;
  plugin_device *device;
  const vyre_backend *table;
  vyre__launch *launch;
  vyre_backend_memory *memory; /* one per binding */
  plugin_block **blocks;       /* one per binding; NULL: not a block */
  bool *goes_back;   /* one per binding: is copied back after the launch */
  vyre__view *views; /* those of the launch, with uniforms as copies */
  unsigned char *arguments, *block; /* launch parameters */
  size_t argument_bytes;
  uint64_t groups, *loops;
  uint32_t phase;
  vyre_status *st;
} plugin_launch;

static vyre_code no_memory(const plugin_launch *l, const char *what,
                           uint64_t count) {
  return vyre__no_memory(l->st, l->table->name, what, count);
}

/* --- memory ----------------------------------------------------------------*/

/* Returns memory for a copy. SPIR-V accesses full words, and a descriptor
 * covers at least eight bytes. */
static void *copy_of(const plugin_launch *l, size_t size) {
  if (size > SIZE_MAX - 16) return NULL;
  return vyre_arena_alloc(l->launch->scratch, (size + 15) / 16 * 16, 64);
}

/* Puts bytes where the backend can use them: in an aligned copy, or in a block
 * of its memory. */
static vyre_code place(plugin_launch *l, uint32_t at, const void *from,
                       size_t size) {
  vyre_backend_memory *to = &l->memory[at];
  if (l->device->base.caps.borrows_host_memory) {
    void *copy = copy_of(l, size);
    if (!copy) return no_memory(l, "bytes", size);
    memcpy(copy, from, size);
    to->host = copy;
    return VYRE_OK;
  }
  VYRE_TRY(plugin_block_acquire(l->device, size, &l->blocks[at], l->st));
  to->buffer = l->blocks[at]->buffer;
  to->host = l->blocks[at]->host;
  return plugin_block_write(l->device, l->blocks[at], from, size, l->st);
}

/* Returns the buffer of a view if it is memory of the backend. */
static vyre__buffer *own_buffer(const vyre__view *view) {
  return view->buffer && !view->buffer->is_imported ? view->buffer : NULL;
}

/* Returns true if the backend can use the bytes of a view where they are. */
static bool is_usable(const plugin_launch *l, const plugin_binding *b,
                      const vyre__view *view) {
  const vyre_backend_device *d = &l->device->opened;
  const vyre__buffer *buffer = own_buffer(view);
  uint64_t alignment = d->caps.host_alignment;
  if (buffer && l->table->buffer_create) {
    return view->offset % d->offset_alignment == 0 &&
           (!buffer->host ||
            ((uintptr_t)buffer->host + view->offset) % b->width == 0);
  }
  if (alignment < b->width) alignment = b->width;
  uint64_t size = (uint64_t)view->length * b->unit;
  if (l->table->form == VYRE_BACKEND_FORM_SPIRV && (size < 8 || size % 4 > 0)) {
    return false; /* a descriptor would cover bytes behind the view */
  }
  return d->caps.borrows_host_memory && (uintptr_t)view->data % alignment == 0;
}

/* Returns the bytes of a view in host memory, which may be a copy. */
static vyre_code fetch(plugin_launch *l, const vyre__view *view, size_t size,
                       const void **out) {
  *out = view->data;
  if (view->data) return VYRE_OK;
  void *copy = copy_of(l, size);
  if (!copy) return no_memory(l, "bytes", size);
  *out = copy;
  return plugin_buffer_read(&l->device->base, view->buffer, view->offset, copy,
                            size, l->st);
}

static void use(const plugin_launch *l, const vyre__view *view,
                vyre_backend_memory *to) {
  if (!own_buffer(view) || !l->table->buffer_create) {
    to->host = view->data;
    return;
  }
  to->buffer = ((plugin_buffer *)view->buffer)->handle;
  to->offset = view->offset;
  if (view->buffer->host) to->host = view->buffer->host + view->offset;
}

/* Uniforms are copied for each launch: all loads return the same value, even if
 * the host changes its memory. */
static vyre_code bind_uniform(plugin_launch *l, uint32_t at,
                              const plugin_binding *b, size_t size) {
  vyre__view *view = &l->views[b->buffer];
  const void *from;
  void *copy = copy_of(l, size);
  if (!copy) return no_memory(l, "bytes of uniforms", size);
  VYRE_TRY(fetch(l, view, size, &from));
  memcpy(copy, from, size);
  view->data = copy;
  view->buffer = NULL;
  return place(l, at, copy, size);
}

static vyre_code bind_buffer(plugin_launch *l, uint32_t at,
                             const plugin_binding *b) {
  const vyre__view *view = &l->launch->views[b->buffer];
  size_t size = (size_t)view->length * b->unit;
  l->memory[at].length = view->length;
  l->memory[at].bytes = size;
  if (b->is_shared) {
    l->memory[at].length = 0;
    l->memory[at].bytes = 0;
    return VYRE_OK;
  }
  if (size == 0) { /* a descriptor needs memory, even if nothing accesses it */
    static const uint64_t zero[2];
    bool is_spirv = l->table->form == VYRE_BACKEND_FORM_SPIRV;
    return is_spirv ? place(l, at, zero, sizeof zero) : VYRE_OK;
  }
  if (b->is_uniform) return bind_uniform(l, at, b, size);
  if (is_usable(l, b, view)) {
    use(l, view, &l->memory[at]);
    return VYRE_OK;
  }
  const void *from;
  VYRE_TRY(fetch(l, view, size, &from));
  l->goes_back[at] = b->is_written;
  return place(l, at, from, size);
}

/* Allocates the spill buffer: values that live across grid barriers. */
static vyre_code bind_spill(plugin_launch *l, uint32_t at) {
  const vyre__host_plan *plan = &l->pipeline->plan;
  /* OpAccessChain reads an index as a signed number. */
  uint64_t max =
      l->table->form == VYRE_BACKEND_FORM_SPIRV ? INT32_MAX : UINT32_MAX;
  uint64_t bytes = l->device->base.caps.max_buffer_bytes;
  if (max > bytes / 4) max = bytes / 4;
  uint32_t words;
  VYRE_TRY(vyre__spill_size(l->launch, plan->workgroup, l->groups,
                            (uint32_t)max, &words, l->st));
  vyre_backend_memory *to = &l->memory[at];
  to->length = words;
  to->bytes = (uint64_t)words * 4;
  if (l->device->base.caps.borrows_host_memory) {
    to->host = copy_of(l, (size_t)to->bytes);
    return to->host ? VYRE_OK : no_memory(l, "words", words);
  }
  VYRE_TRY(plugin_block_acquire(l->device, to->bytes, &l->blocks[at], l->st));
  to->buffer = l->blocks[at]->buffer;
  to->host = l->blocks[at]->host;
  return VYRE_OK;
}

static vyre_code bind_all(plugin_launch *l) {
  static const uint32_t zero;
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    const plugin_binding *b = &l->pipeline->bindings[i];
    switch (b->role) {
      case PLUGIN_BUFFER:
        VYRE_TRY(bind_buffer(l, i, b));
        break;
      case PLUGIN_SPILL:
        VYRE_TRY(bind_spill(l, i));
        break;
      case PLUGIN_STATUS:
        l->memory[i].bytes = 4;
        l->memory[i].length = 1;
        VYRE_TRY(place(l, i, &zero, sizeof zero));
        break;
      case PLUGIN_BLOCK:
        l->memory[i].bytes = l->pipeline->module.block_bytes;
        l->memory[i].length = l->pipeline->module.block_bytes / 4;
        VYRE_TRY(place(l, i, l->block, (size_t)l->memory[i].bytes));
        break;
    }
  }
  return VYRE_OK;
}

/* Copies memory that the kernel wrote to where the launch has it. */
static vyre_code copy_back(plugin_launch *l) {
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    if (!l->goes_back[i]) continue;
    const vyre__view *view = &l->launch->views[l->pipeline->bindings[i].buffer];
    size_t size = (size_t)l->memory[i].bytes;
    void *bytes = l->memory[i].host;
    if (l->blocks[i] && !bytes) {
      bytes = view->data ? view->data : copy_of(l, size);
      if (!bytes) return no_memory(l, "bytes", size);
      VYRE_TRY(plugin_block_read(l->device, l->blocks[i], bytes, size, l->st));
    }
    if (view->data) {
      if (bytes != view->data) memcpy(view->data, bytes, size);
    } else {
      VYRE_TRY(plugin_buffer_write(&l->device->base, view->buffer, view->offset,
                                   bytes, size, l->st));
    }
  }
  return VYRE_OK;
}

static vyre_code read_back(plugin_launch *l) {
  for (uint32_t i = 0; i < l->launch->readback_count; i++) {
    const vyre__readback *r = &l->launch->readbacks[i];
    const vyre__view *view = &l->launch->views[r->buffer];
    if (view->data) {
      memcpy(r->to, view->data, (size_t)r->size);
    } else {
      VYRE_TRY(plugin_buffer_read(&l->device->base, view->buffer, view->offset,
                                  r->to, (size_t)r->size, l->st));
    }
  }
  return VYRE_OK;
}

static void release_blocks(const plugin_launch *l) {
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    if (l->blocks[i]) plugin_block_release(l->device, l->blocks[i]);
  }
}

/* --- arguments -------------------------------------------------------------*/

static uint32_t fuel_of(const plugin_launch *l) {
  uint64_t fuel = l->launch->max_loop_iterations;
  return fuel < UINT32_MAX ? (uint32_t)fuel : UINT32_MAX;
}

/* Offsets of the launch block of C, as codegen/c/c.h declares it. */
typedef struct c_block {
  size_t lengths, grid, fuel, loops, size;
} c_block;

static c_block c_block_of(const plugin_pipeline *p) {
  size_t count = p->binding_count ? p->binding_count : 1;
  size_t loops = p->plan.loop_count ? p->plan.loop_count : 1;
  c_block out = {.lengths = count * sizeof(void *)};
  out.grid = out.lengths + count * sizeof(uint32_t);
  out.fuel = (out.grid + 3 * sizeof(uint32_t) + 7) / 8 * 8;
  out.loops = out.fuel + sizeof(uint64_t);
  out.size = out.loops + loops * sizeof(uint64_t);
  return out;
}

static void fill_c_block(const plugin_launch *l) {
  const c_block at = c_block_of(l->pipeline);
  uint64_t fuel = fuel_of(l);
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    void *data = l->memory[i].host;
    memcpy(l->arguments + i * sizeof data, &data, sizeof data);
    memcpy(l->arguments + at.lengths + i * sizeof(uint32_t),
           &l->memory[i].length, sizeof(uint32_t));
  }
  memcpy(l->arguments + at.grid, l->launch->grid, sizeof l->launch->grid);
  memcpy(l->arguments + at.fuel, &fuel, sizeof fuel);
  memcpy(l->arguments + at.loops, l->loops,
         l->pipeline->plan.loop_count * sizeof *l->loops);
}

static size_t at_most(size_t size, size_t max) {
  return size < max ? size : max;
}

static void fill_spirv_block(const plugin_launch *l, const uint32_t base[3]) {
  const vyre__spirv_module *module = &l->pipeline->module;
  uint32_t fuel = fuel_of(l), one = 1;
  for (size_t i = 0; i < module->field_count; i++) {
    const vyre__spirv_field *f = &module->fields[i];
    unsigned char *to = (f->is_pushed ? l->arguments : l->block) + f->offset;
    switch ((vyre__spirv_value)f->value) {
      case VYRE__SPIRV_BASE:
        memcpy(to, base, at_most(f->size, 12));
        break;
      case VYRE__SPIRV_GRID:
        memcpy(to, l->launch->grid, at_most(f->size, 12));
        break;
      case VYRE__SPIRV_FUEL:
        memcpy(to, &fuel, sizeof fuel);
        break;
      case VYRE__SPIRV_ONE:
        memcpy(to, &one, sizeof one);
        break;
      case VYRE__SPIRV_LOOP_VALUE:
        memcpy(to, &l->loops[f->index], at_most(f->size, 8));
        break;
      case VYRE__SPIRV_LENGTH:
        memcpy(to, &l->launch->views[f->index].length, sizeof(uint32_t));
        break;
      case VYRE__SPIRV_UNIFORM: /* never: the target has binds_uniforms */
        break;
    }
  }
}

/* Writes the launch block where the backend reads it. */
static vyre_code update_spirv_block(plugin_launch *l, const uint32_t base[3]) {
  fill_spirv_block(l, base);
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    if (l->pipeline->bindings[i].role != PLUGIN_BLOCK) continue;
    size_t size = l->pipeline->module.block_bytes;
    if (l->blocks[i]) {
      return plugin_block_write(l->device, l->blocks[i], l->block, size, l->st);
    }
    memcpy(l->memory[i].host, l->block, size);
  }
  return VYRE_OK;
}

/* --- pieces ----------------------------------------------------------------*/

static bool is_late(const plugin_launch *l) {
  return l->launch->deadline_ns && vyre__clock_ns() >= l->launch->deadline_ns;
}

/* Calls the backend for one piece. */
static vyre_code call(plugin_launch *l, vyre_backend_launch *piece) {
  vyre__launch *launch = l->launch;
  if (is_late(l)) return vyre__timed_out(launch->pipeline, launch, l->st);
  piece->phase = l->phase;
  memcpy(piece->grid, launch->grid, sizeof piece->grid);
  piece->memory = l->memory;
  piece->arguments = l->arguments;
  piece->argument_bytes = l->argument_bytes;
  piece->max_loop_iterations = launch->max_loop_iterations;
  piece->deadline_ns = launch->deadline_ns;
  vyre_status inner = {0};
  VYRE_TRY(plugin_report(l->table, &l->device->base, "launch",
                         l->table->launch(l->device->opened.device,
                                          l->pipeline->kernel, piece, &inner),
                         &inner, VYRE_DISPATCH_FAILED, l->st));
  if (piece->is_out_of_fuel) {
    return vyre__out_of_fuel(launch->pipeline, launch, l->st);
  }
  if (piece->is_timed_out) {
    return vyre__timed_out(launch->pipeline, launch, l->st);
  }
  if (l->device->base.caps.has_device_time)
    launch->device_ns += piece->device_ns;
  return VYRE_OK;
}

/* Runs a phase of C. With a deadline, a piece is sized to take about a
 * millisecond. */
static vyre_code run_c(plugin_launch *l) {
  enum { PIECE_NS = 1000000, PIECES = 1024 };
  bool is_cut = l->launch->deadline_ns != 0;
  uint64_t max = l->launch->progress ? l->groups / PIECES + 1 : l->groups;
  uint64_t size = is_cut ? 1 : max;
  fill_c_block(l);
  for (uint64_t first = 0; first < l->groups;) {
    uint64_t count = size < max ? size : max;
    if (count > l->groups - first) count = l->groups - first;
    vyre_backend_launch piece = {.first_group = first, .group_count = count};
    uint64_t start = is_cut ? vyre__clock_ns() : 0;
    VYRE_TRY(call(l, &piece));
    vyre__progress_add(l->launch, count);
    first += count;
    if (!is_cut) continue;
    uint64_t time = vyre__clock_ns() - start;
    if (time < PIECE_NS && size < max) size *= 2;
    if (time > UINT64_C(2) * PIECE_NS && size > 1) size /= 2;
  }
  return VYRE_OK;
}

/* Fails if the kernel has set its status word. */
static vyre_code check_fuel(plugin_launch *l) {
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    if (l->pipeline->bindings[i].role != PLUGIN_STATUS) continue;
    uint32_t word = 0;
    if (l->blocks[i]) {
      VYRE_TRY(plugin_block_read(l->device, l->blocks[i], &word, sizeof word,
                                 l->st));
    } else {
      memcpy(&word, l->memory[i].host, sizeof word);
    }
    if (word) return vyre__out_of_fuel(l->launch->pipeline, l->launch, l->st);
  }
  return VYRE_OK;
}

/* Runs a phase of SPIR-V in boxes that the device can launch. */
static vyre_code run_spirv(plugin_launch *l) {
  static const uint32_t cut[3] = {1024, 16, 1}; /* with a deadline */
  const uint32_t *grid = l->launch->grid;
  uint32_t max[3], base[3];
  for (int axis = 0; axis < 3; axis++) {
    max[axis] = l->device->opened.max_groups[axis];
    if (l->launch->deadline_ns && max[axis] > cut[axis]) max[axis] = cut[axis];
  }
  for (base[2] = 0; base[2] < grid[2]; base[2] += max[2]) {
    for (base[1] = 0; base[1] < grid[1]; base[1] += max[1]) {
      for (base[0] = 0; base[0] < grid[0]; base[0] += max[0]) {
        vyre_backend_launch piece = {0};
        uint64_t count = 1;
        for (int axis = 0; axis < 3; axis++) {
          uint32_t left = grid[axis] - base[axis];
          piece.groups[axis] = left < max[axis] ? left : max[axis];
          count *= piece.groups[axis];
        }
        VYRE_TRY(update_spirv_block(l, base));
        VYRE_TRY(call(l, &piece));
        vyre__progress_add(l->launch, count);
        if (max[0] >= grid[0] - base[0]) break;
      }
      if (max[1] >= grid[1] - base[1]) break;
    }
    if (max[2] >= grid[2] - base[2]) break;
  }
  return check_fuel(l);
}

static vyre_code run_phase(plugin_launch *l, uint32_t phase) {
  l->phase = phase;
  return l->table->form == VYRE_BACKEND_FORM_C ? run_c(l) : run_spirv(l);
}

/* Makes the schedule end loops that no invocation is in. Memory that the host
 * cannot read is left out: such loops run to their bounds. */
static void watch_spill(const plugin_launch *l, vyre__host_schedule *schedule) {
  const uint32_t *size = l->pipeline->plan.workgroup;
  for (uint32_t i = 0; i < l->pipeline->binding_count; i++) {
    if (l->pipeline->bindings[i].role != PLUGIN_SPILL || l->blocks[i]) continue;
    schedule->spill = (const uint32_t *)l->memory[i].host;
    schedule->invocations = l->groups * size[0] * size[1] * size[2];
  }
}

/* Runs the phases of a kernel and the loops around them. */
static vyre_code run_phases(plugin_launch *l) {
  const vyre__host_plan *plan = &l->pipeline->plan;
  vyre__launch with_copies = *l->launch;
  with_copies.views = l->views;
  vyre__host_schedule schedule =
      vyre__host_schedule_begin(plan, &with_copies, l->loops);
  watch_spill(l, &schedule);
  bool is_single = plan->step_count == 1;
  vyre__progress_begin(l->launch, is_single ? l->groups : 0);
  for (;;) {
    uint32_t phase;
    vyre__host_step step = vyre__host_schedule_step(&schedule, &phase);
    if (step == VYRE__HOST_STEP_END) return VYRE_OK;
    if (step == VYRE__HOST_STEP_LAUNCH) {
      VYRE_TRY(run_phase(l, phase));
    } else if (is_late(l)) {
      return vyre__timed_out(l->launch->pipeline, l->launch, l->st);
    }
  }
}

static vyre_code run_binary(plugin_launch *l) {
  vyre_backend_launch piece = {.group_count = l->groups};
  memcpy(piece.groups, l->launch->grid, sizeof piece.groups);
  if (l->launch->deadline_ns && !l->table->has_deadlines) {
    return VYRE_FAIL_WITH(
        l->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "timeout_ns",
        VYRE_NUMBERS({"timeout_ns", l->launch->timeout_ns}),
        "dispatch without a timeout, or on another device",
        "backend '%s' cannot stop a kernel, so a dispatch has no timeout there",
        l->table->name);
  }
  vyre__progress_begin(l->launch, l->groups);
  VYRE_TRY(call(l, &piece));
  vyre__progress_add(l->launch, l->groups);
  return VYRE_OK;
}

/* Kernels round to nearest and keep subnormals, whatever the thread has set. */
static vyre_code run_with_default_floats(plugin_launch *l) {
  fenv_t saved;
  (void)fegetenv(&saved);
  (void)fesetenv(FE_DFL_ENV);
  vyre_code code = run_phases(l);
  (void)fesetenv(&saved);
  return code;
}

/* --- a launch --------------------------------------------------------------*/

/* Allocates the parts of @p l. */
static vyre_code begin(plugin_launch *l) {
  const plugin_pipeline *p = l->pipeline;
  vyre_arena *scratch = l->launch->scratch;
  size_t count = p->binding_count + 1;
  size_t views = p->base.program->buffer_count;
  bool is_c = l->table->form == VYRE_BACKEND_FORM_C;
  l->argument_bytes = is_c ? c_block_of(p).size : p->module.push_bytes;
  l->memory = vyre__arena_filled(scratch, count, sizeof *l->memory, 0);
  l->blocks =
      (plugin_block **)vyre__arena_filled(scratch, count, sizeof *l->blocks, 0);
  l->goes_back = vyre__arena_filled(scratch, count, sizeof *l->goes_back, 0);
  l->views = vyre__arena_copy(scratch, l->launch->views, views,
                              sizeof *l->launch->views);
  l->arguments = vyre_arena_alloc(scratch, l->argument_bytes + 8, 16);
  l->block = vyre_arena_alloc(scratch, p->module.block_bytes + 8, 16);
  l->loops = vyre__arena_filled(scratch, vyre__host_schedule_size(&p->plan) + 1,
                                sizeof *l->loops, 0);
  if (!l->memory || !l->blocks || !l->goes_back || !l->views || !l->arguments ||
      !l->block || !l->loops) {
    return no_memory(l, "bindings", count);
  }
  memset(l->arguments, 0, l->argument_bytes);
  memset(l->block, 0, p->module.block_bytes);
  return VYRE_OK;
}

static vyre_code run_bound(plugin_launch *l) {
  VYRE_TRY(bind_all(l));
  switch (l->table->form) {
    case VYRE_BACKEND_FORM_BINARY:
      VYRE_TRY(run_binary(l));
      break;
    case VYRE_BACKEND_FORM_C:
      VYRE_TRY(run_with_default_floats(l));
      break;
    default:
      VYRE_TRY(run_phases(l));
  }
  VYRE_TRY(copy_back(l));
  return read_back(l);
}

static vyre_code run(vyre_pipeline *pipeline, vyre__launch *launch,
                     vyre_status *st) {
  plugin_launch l = {
      .pipeline = (plugin_pipeline *)pipeline,
      .device = (plugin_device *)pipeline->device,
      .table = plugin_table(pipeline->device),
      .launch = launch,
      .groups = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
      .st = st};
  launch->device_ns = 0;
  VYRE_TRY(begin(&l));
  vyre_code code = run_bound(&l);
  release_blocks(&l);
  return code;
}

vyre_code plugin_execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, run, done, st);
}
