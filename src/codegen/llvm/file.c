/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits the whole file: for each phase a function that unpacks the launch
 * block, and one that runs a range of workgroups. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/llvm/internal.h"
#include "spmd/cost/vector_width.h"

enum {
  STACK_BYTES =
      64 * 1024,      /* more shared memory and stored values go to scratch */
  MAX_LIVE = 1 << 28, /* bytes per workgroup */
  MAX_ROW =
      1 << 24, /* iterations of a row's invocations between polls of `stop` */
};

static_assert(offsetof(vyre__spmd_launch, fuel) == 12 &&
                  offsetof(vyre__spmd_launch, loop_values) == 16 &&
                  offsetof(vyre__spmd_launch, stop) == 24 &&
                  offsetof(vyre__spmd_launch, views) == 32 &&
                  sizeof(vyre__spmd_view) == 16 &&
                  offsetof(vyre__spmd_view, length) == 8,
              "offsets are part of the text");

/* --- memory of a workgroup ---------------------------------------------------------*/

ll_op ll_array(ll *e, unsigned type, uint64_t count, const char *name,
               uint32_t number) {
  uint64_t lanes = type & LL_VEC ? e->width : 1;
  uint64_t bytes = (count * lanes * ll_bytes(type) + 63) / 64 * 64;
  ll_text *was = e->to;
  ll_op op = {.kind = LL_TEMP, .id = e->temps};
  e->to = &e->entry;
  if (name) {
    op = ll_name(name, number);
  } else {
    e->temps++;
  }
  if (e->stack_used + bytes <= STACK_BYTES) {
    e->stack_used += bytes;
    ll_print(e, " %v = alloca [%l x %t], align 64\n", LL_PTR, op, count, type);
  } else {
    ll_print(e, " %v = getelementptr inbounds i8, ptr %%scratch, i64 %l\n",
             LL_PTR, op, e->scratch_used);
    e->scratch_used += bytes;
  }
  e->to = was;
  return op;
}

/* Padding before and after a shared array: a vector with inactive lanes may
 * start before it and end after it. */
static uint64_t padding(const ll *e, unsigned width) {
  return (2 * (uint64_t)e->width * width + 63) / 64 * 64;
}

static bool has_full_groups(const ll *e) {
  const vyre__sched_node *node = vyre__sched_groups(e->s)->body;
  return node && node->kind == VYRE__SCHED_FULL_GROUPS;
}

/* Makes @d and @dw the elements of a table, which ll_tables defines. */
static void take_table(ll *e, uint32_t buffer, uint64_t pad) {
  ll_text *was = e->to;
  e->to = &e->entry;
  for (unsigned k = 0; k <= has_full_groups(e); k++) {
    ll_print(e, " %%d%s%u = getelementptr inbounds i8, ptr @table%u, i64 %l\n",
             k ? "w" : "", buffer, buffer, pad);
  }
  e->to = was;
}

/* Defines the tables, with padding like that of shared memory. */
static void define_tables(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    if (!buffer->table) continue;
    const uint64_t bytes = (uint64_t)buffer->count * buffer->unit;
    const uint64_t pad = padding(e, buffer->width);
    ll_print(e, "@table%u = internal unnamed_addr constant [%l x i8] [", i,
             bytes + 2 * pad);
    for (uint64_t k = 0; k < bytes + 2 * pad; k++) {
      const bool is_pad = k < pad || k >= pad + bytes;
      ll_print(e, "%si8 %u", k ? ", " : "",
               is_pad ? 0u : (unsigned)buffer->table[k - pad]);
    }
    ll_print(e, "], align 64\n");
  }
}

/* Code for full workgroups has its own shared memory. */
static void make_shared(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_SHARED || !e->buffer_used[i]) continue;
    uint64_t bytes = (uint64_t)buffer->count * buffer->unit;
    uint64_t pad = padding(e, buffer->width);
    if (buffer->table) {
      take_table(e, i, pad);
      continue;
    }
    for (unsigned k = 0; k <= has_full_groups(e); k++) {
      ll_array(e, LL_I8, bytes + 2 * pad, k ? "pw" : "p", i);
      ll_text *was = e->to;
      e->to = &e->entry;
      ll_print(e, " %%d%s%u = getelementptr inbounds i8, ptr %%p%s%u, i64 %l\n",
               k ? "w" : "", i, k ? "w" : "", i, pad);
      e->to = was;
      if (!e->s->privatised[i].replica) continue;
      ll_array(e, LL_I32, ll_replica_elements(e, i), k ? "replicaw" : "replica",
               i);
    }
  }
}

void ll_clear_arrays(ll *e) {
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_SHARED || !e->buffer_used[i]) continue;
    if (e->s->privatised[i].replica) {
      ll_do(e,
            "call void @llvm.memset.p0.i64(ptr align 64 %v, i8 0, i64 %l, "
            "i1 false)",
            LL_PTR, ll_replica(e, i), 4 * ll_replica_elements(e, i));
    }
    if (!buffer->needs_zero || !buffer->count || buffer->table) continue;
    ll_do(e,
          "call void @llvm.memset.p0.i64(ptr align 64 %%d%s%u, i8 0, i64 %l, "
          "i1 false)",
          e->is_full_group ? "w" : "", i,
          (uint64_t)buffer->count * buffer->unit);
  }
  if (e->done.kind != LL_NONE) ll_clear_done(e);
}

/* --- a range of workgroups -------------------------------------------------------------*/

static void make_iota(ll *e) {
  ll_text *was = e->to;
  e->to = &e->entry;
  for (unsigned type = LL_I32; type <= LL_I64 && e->width > 1; type++) {
    ll_print(e, " %%%s = add %t <", type == LL_I32 ? "iota" : "iotaw",
             type | LL_VEC);
    for (unsigned i = 0; i < e->width; i++) {
      ll_print(e, "%s%t %u", i ? ", " : "", type, i);
    }
    ll_print(e, ">, zeroinitializer\n");
  }
  e->to = was;
}

/* Computes the position of workgroup `first` in the grid. */
static void find_first(ll *e, const ll_op at[3]) {
  ll_op rest = ll_name("first", UINT32_MAX);
  for (unsigned i = 0; i < 3; i++) {
    ll_op here = rest;
    if (i < 2) {
      ll_op size = ll_def(e, "zext i32 %%g%u to i64", i);
      here = ll_def(e, "urem i64 %v, %v", LL_I64, rest, LL_I64, size);
      rest = ll_def(e, "udiv i64 %v, %v", LL_I64, rest, LL_I64, size);
    }
    here = ll_def(e, "trunc i64 %v to i32", LL_I64, here);
    ll_do(e, "store i32 %v, ptr %v", LL_I32, here, LL_PTR, at[i]);
  }
}

/* Advances past @p done adjacent workgroups; x is fastest. */
static void find_next(ll *e, const ll_op at[3], ll_op done, uint32_t head) {
  if (done.kind != LL_CONST) {
    done = ll_def(e, "trunc i64 %v to i32", LL_I64, done);
  }
  for (unsigned i = 0; i < 3; i++) {
    ll_op next = ll_def(e, "add i32 %v, %v", LL_I32, e->group[i], LL_I32,
                        i == 0 ? done : ll_const(1));
    if (i == 2) {
      ll_do(e, "store i32 %v, ptr %v", LL_I32, next, LL_PTR, at[i]);
      ll_br(e, head);
      return;
    }
    uint32_t carry = ll_label(e), stay = ll_label(e);
    ll_cond(e, ll_def(e, "icmp eq i32 %v, %%g%u", LL_I32, next, i), carry,
            stay);
    ll_place(e, stay);
    ll_do(e, "store i32 %v, ptr %v", LL_I32, next, LL_PTR, at[i]);
    ll_br(e, head);
    ll_place(e, carry);
    ll_do(e, "store i32 0, ptr %v", LL_PTR, at[i]);
  }
}

/* Fused workgroups run as one row, which does not poll `stop`. */
static uint64_t max_fused_groups(const ll *e) {
  uint64_t most = MAX_ROW / e->s->r.invocations / e->s->unpolled;
  return most ? most : 1;
}

/* Emits all adjacent workgroups of the range at once, up to the longest row.
 * Returns their number. */
static ll_op run_side_by_side(ll *e, ll_op left) {
  const vyre__sched_node *uniform = vyre__sched_groups(e->s)->body;
  ll_op here = ll_def(e, "zext i32 %v to i64", LL_I32, e->group[0]);
  ll_op room = ll_def(e, "zext i32 %%g0 to i64");
  room = ll_def(e, "sub i64 %v, %v", LL_I64, room, LL_I64, here);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, left);
  ll_op count =
      ll_def(e, "call i64 @llvm.umin.i64(%o, %o)", LL_I64, room, LL_I64, now);
  count = ll_def(e, "call i64 @llvm.umin.i64(%o, %o)", LL_I64, count, LL_I64,
                 ll_const(max_fused_groups(e)));
  uint32_t size = e->kernel->workgroup[0];
  ll_op first = ll_def(e, "mul i32 %v, %u", LL_I32, e->group[0], size);
  ll_hoist(e, uniform);
  ll_run_rows(e, uniform->next, first,
              ll_def(e, "mul i64 %v, %u", LL_I64, count, size));
  return count;
}

static void run_range(ll *e) {
  ll_op at[3], left = ll_alloca(e, LL_I64, 1, 8), done = ll_const(1);
  uint32_t head = ll_label(e), more = ll_label(e), look = ll_label(e),
           end = ll_label(e);
  e->next_group = ll_label(e);
  for (unsigned i = 0; i < 3; i++) at[i] = ll_alloca(e, LL_I32, 1, 4);
  find_first(e, at);
  ll_open_private(e);
  ll_open_strips(e);
  ll_do(e, "store i64 %%count, ptr %v", LL_PTR, left);
  ll_place(e, head);
  uint32_t mark = ll_enter(e);
  for (unsigned i = 0; i < 3; i++) {
    e->group[i] = ll_def(e, "load i32, ptr %v", LL_PTR, at[i]);
  }
  if (e->s->is_fused) {
    ll_clear_arrays(e);
    done = run_side_by_side(e, left);
  } else {
    ll_run_group(e);
  }
  ll_place(e, e->next_group);
  ll_leave(e, mark);
  ll_op now = ll_def(e, "load i64, ptr %v", LL_PTR, left);
  now = ll_def(e, "sub i64 %v, %v", LL_I64, now, LL_I64, done);
  ll_do(e, "store i64 %v, ptr %v", LL_I64, now, LL_PTR, left);
  ll_cond(e, ll_def(e, "icmp eq i64 %v, 0", LL_I64, now), end, look);
  ll_place(e, look);
  ll_op stop = ll_def(e, "load atomic i32, ptr %%stop monotonic, align 4");
  e->uses_stop = true;
  ll_cond(e, ll_def(e, "icmp eq i32 %v, 0", LL_I32, stop), more, e->stop_label);
  ll_place(e, more);
  find_next(e, at, done, head);
  ll_place(e, end);
  ll_close_private(e);
  ll_close_strips(e);
  ll_do(e, "ret i32 %u", (unsigned)VYRE__SPMD_DONE);
  e->is_open = false;
  if (e->uses_stop) {
    ll_place(e, e->stop_label);
    ll_do(e, "ret i32 %u", (unsigned)VYRE__SPMD_STOPPED);
    e->is_open = false;
  }
  if (e->uses_fuel_exit) {
    ll_place(e, e->fuel_label);
    ll_do(e, "ret i32 %u", (unsigned)VYRE__SPMD_OUT_OF_FUEL);
    e->is_open = false;
  }
}

/* --- functions ----------------------------------------------------------------------------*/

static bool is_bound(const vyre__lir_buffer *buffer) {
  return buffer->kind != VYRE_MEMORY_SHARED;
}

/* Returns the bytes that a buffer has at least. */
static uint64_t sure_bytes(const vyre__lir_buffer *buffer) {
  return (uint64_t)buffer->count * buffer->unit;
}

static void print_body_head(ll *e) {
  ll_print(e,
           "define internal fastcc i32 @body%u(i64 %%first, i64 %%count, ptr "
           "noalias %%scratch, ptr %%stop, i32 %%g0, i32 %%g1, i32 %%g2, i32 "
           "%%fuel, ptr readonly %%lv",
           e->phase);
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &e->kernel->buffers[i];
    if (!is_bound(buffer)) continue;
    ll_print(e, ", ptr noalias%s", buffer->is_written ? "" : " readonly");
    if (sure_bytes(buffer)) {
      ll_print(e, " dereferenceable(%l)", sure_bytes(buffer));
    }
    ll_print(e, " %%d%u, i32 %%n%u", i, i);
  }
  ll_print(e, ") nounwind {\n");
}

static ll_op launch_field(ll *e, unsigned type, uint64_t offset) {
  ll_op at = ll_def(e, "getelementptr i8, ptr %%launch, i64 %l", offset);
  return ll_def(e, "load %t, ptr %v", type, LL_PTR, at);
}

static void print_phase(ll *e) {
  ll_print(e,
           "define i32 @phase%u(ptr readonly %%launch, i64 %%first, i64 "
           "%%count, ptr %%scratch) nounwind {\n",
           e->phase);
  ll_op grid[3], fuel, values, stop;
  for (unsigned i = 0; i < 3; i++)
    grid[i] = launch_field(e, LL_I32, 4 * (uint64_t)i);
  fuel = launch_field(e, LL_I32, 12);
  values = launch_field(e, LL_PTR, 16);
  stop = launch_field(e, LL_PTR, 24);
  uint32_t views = e->temps;
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    if (!is_bound(&e->kernel->buffers[i])) continue;
    launch_field(e, LL_PTR, 32 + 16 * (uint64_t)i);
    launch_field(e, LL_I32, 40 + 16 * (uint64_t)i);
  }
  uint32_t result = e->temps++;
  ll_print(e,
           " %%v%u = call fastcc i32 @body%u(i64 %%first, i64 %%count, ptr "
           "%%scratch, %o, %o, %o, %o, %o, %o",
           result, e->phase, LL_PTR, stop, LL_I32, grid[0], LL_I32, grid[1],
           LL_I32, grid[2], LL_I32, fuel, LL_PTR, values);
  for (uint32_t i = 0; i < e->kernel->buffer_count; i++) {
    if (!is_bound(&e->kernel->buffers[i])) continue;
    ll_print(e, ", ptr %%v%u, i32 %%v%u", views + 1, views + 3);
    views += 4;
  }
  ll_print(e, ")\n ret i32 %%v%u\n}\n", result);
}

static void find_used_buffers(ll *e) {
  memset(e->buffer_used, 0, e->kernel->buffer_count * sizeof *e->buffer_used);
  for (uint32_t at = e->s->r.begin; at < e->s->r.end; at++) {
    uint16_t flags = vyre__lir_ops[ll_inst(e, at)->op].flags;
    uint16_t memory = VYRE__LIRF_READS | VYRE__LIRF_WRITES | VYRE__LIRF_ATOMICS;
    if (!(flags & memory) || !ll_role(e, at)->is_needed) continue;
    if (ll_inst(e, at)->op == VYRE__LIR_OUT_OF_FUEL) continue;
    e->buffer_used[ll_inst(e, at)->aux] = true;
  }
}

static vyre_code take_arrays(ll *e) {
  size_t count = (size_t)(e->s->r.end - e->s->r.begin) + 1;
  size_t undo = 12 * count + 16; /* each jammed row has its own */
  e->reps = vyre__arena_array(e->arena, count, sizeof *e->reps);
  e->kept = vyre__arena_array(e->arena, count, sizeof *e->kept);
  e->spans = vyre__arena_array(e->arena, count, sizeof *e->spans);
  e->row_loads = vyre__arena_array(e->arena, count, sizeof *e->row_loads);
  e->undo = vyre__arena_array(e->arena, undo, sizeof *e->undo);
  e->vars = vyre__arena_array(e->arena, e->kernel->var_count, sizeof *e->vars);
  e->buffer_used = vyre__arena_array(e->arena, e->kernel->buffer_count,
                                     sizeof *e->buffer_used);
  if (!e->reps || !e->kept || !e->row_loads || !e->spans || !e->undo ||
      !e->vars || !e->buffer_used) {
    return vyre__no_memory(e->st, "emit/llvm", "instructions", count);
  }
  memset(e->reps, 0, count * sizeof *e->reps);
  memset(e->kept, 0, count * sizeof *e->kept);
  memset(e->row_loads, 0, count * sizeof *e->row_loads);
  memset(e->vars, 0, e->kernel->var_count * sizeof *e->vars);
  return VYRE_OK;
}

static vyre_code find_narrow(ll *e) {
  vyre__lir_phase phase = e->kernel->phases[e->phase];
  size_t count = (size_t)(phase.end - phase.begin) + 1;
  if (!vyre__pass_is_off(e->options->off, VYRE__OPTIONAL_NARROW)) {
    return vyre__narrow_find(e->kernel, phase, e->arena, &e->narrow, e->st);
  }
  e->narrow = vyre__arena_filled(e->arena, count, sizeof *e->narrow, 0);
  if (e->narrow) return VYRE_OK;
  return vyre__no_memory(e->st, "emit/llvm", "instructions", count);
}

static vyre_code emit_phase(ll *e, uint32_t phase) {
  vyre__arena_mark mark = vyre__arena_here(e->arena);
  const vyre__schedule_options with = {.width = e->width,
                                       .lanes = e->options->lanes,
                                       .is_compact = e->options->is_compact,
                                       .off = e->options->off};
  vyre__schedule schedule;
  e->phase = phase;
  e->s = &schedule;
  VYRE_TRY(vyre__schedule_make(e->kernel, phase, &with, VYRE__SCHEDULE_COUNT,
                               e->arena, &schedule, e->st));
  VYRE_TRY(take_arrays(e));
  VYRE_TRY(find_narrow(e));
  find_used_buffers(e);
  e->is_full_group = false;
  e->to = &e->body;
  e->entry.length = 0;
  e->temps = e->labels = e->stamps = e->undo_count = 0;
  e->stack_used = e->scratch_used = 0;
  e->uses_stop = e->uses_fuel_exit = false;
  e->done = (ll_op){0};
  e->rounds = (ll_op){0};
  e->stop_label = ll_label(e);
  e->fuel_label = ll_label(e);
  make_shared(e);
  make_iota(e);
  if (e->s->r.done_storage != VYRE__STORAGE_LOCAL) {
    e->done = ll_array(e, LL_I32 | LL_VEC, ll_vector_count(e), NULL, 0);
  }
  size_t start = e->body.length;
  uint32_t first = ll_label(e);
  e->is_open = false;
  ll_place(e, first);
  run_range(e);
  ll_print(e, "}\n");
  /* The header and the entry block precede the body, which was emitted
   * first. */
  ll_text rest = e->entry;
  e->entry = (ll_text){0};
  e->to = &e->entry;
  print_body_head(e);
  if (rest.length) ll_print(e, "%s", rest.bytes);
  ll_print(e, " br label %b\n", first);
  if (e->body.length > start) ll_print(e, "%s", e->body.bytes + start);
  print_phase(e);
  e->body.length = start;
  e->to = &e->body;
  if (e->entry.length) ll_print(e, "%s", e->entry.bytes);
  vyre__reserve_free(e->allocator, &e->entry.bytes, &e->entry.capacity, 1);
  e->entry = rest;
  if (e->scratch_used > e->scratch_bytes) e->scratch_bytes = e->scratch_used;
  vyre__arena_rewind(e->arena, mark);
  if (e->scratch_used <= MAX_LIVE) return VYRE_OK;
  return VYRE_FAIL(e->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NONE,
                   "use a smaller workgroup, or keep less across barriers",
                   "kernel '%.100s' keeps %llu bytes a workgroup across its "
                   "barriers; at most %llu are possible",
                   e->kernel->name, (unsigned long long)e->scratch_used,
                   (unsigned long long)MAX_LIVE);
}

/* --- all ------------------------------------------------------------------------------------*/

static vyre_code emit_all(ll *e, vyre_writer writer) {
  for (unsigned i = 0; i < LL_TYPES; i++) {
    static const char *const names[LL_TYPES] = {
        "i1", "i8", "i16", "i32", "i64", "float", "double", "ptr"};
    snprintf(e->vectors[i], sizeof e->vectors[i], "<%u x %s>",
             (unsigned)e->width, names[i]);
  }
  const vyre__schedule_options with = {.width = e->width,
                                       .off = e->options->off};
  const vyre__lir_kernel *before = e->kernel;
  VYRE_TRY(vyre__make_versions(e->kernel, &with, e->arena, &e->kernel, e->st));
  e->has_versions = e->kernel != before;
  for (uint32_t i = 0; i < e->kernel->phase_count; i++) {
    VYRE_TRY(emit_phase(e, i));
    if (e->no_memory) {
      return vyre__no_memory(e->st, "emit/llvm", "bytes", e->body.length);
    }
    if (e->refused != VYRE__LIR_NONE) {
      return VYRE_FAIL(
          e->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
          VYRE__LIR_DEFECT,
          "operation '%s' of kernel '%.100s' has no instruction in "
          "LLVM IR",
          vyre__lir_ops[e->refused].text, e->kernel->name);
    }
  }
  define_tables(e);
  ll_lane_functions(e);
  ll_row_function(e);
  ll_sum_functions(e);
  ll_print(e, "!0 = !{!\"branch_weights\", i32 2000, i32 1}\n");
  ll_print(e, "!1 = distinct !{!1, !2}\n");
  ll_print(e, "!2 = !{!\"llvm.loop.unroll.disable\"}\n");
  if (writer.write(writer.self, e->body.bytes ? e->body.bytes : "",
                   e->body.length)) {
    return VYRE_OK;
  }
  return VYRE_FAIL(e->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "give a writer that takes all of the text",
                   "the writer refused the LLVM IR of kernel '%.100s'",
                   e->kernel->name);
}

static vyre_code choose_width(const vyre__lir_kernel *kernel,
                              const vyre__emit_llvm_options *options,
                              vyre_arena *arena, uint32_t *out,
                              vyre_status *st) {
  const vyre__schedule_options with = {.lanes = options->lanes,
                                       .is_compact = options->is_compact,
                                       .off = options->off};
  vyre__width_choice choice;
  VYRE_TRY(vyre__choose_width(
      kernel, &with, vyre__cost_machine_of(options->cpu, options->lanes), false,
      arena, &choice, st));
  *out = choice.width;
  return VYRE_OK;
}

vyre_code vyre__emit_llvm(const vyre__lir_kernel *kernel,
                          const vyre__emit_llvm_options *options,
                          vyre_writer writer, vyre__spmd_info *info,
                          vyre_status *st) {
  static const vyre__emit_llvm_options none = {0};
  if (!options) options = &none;
  vyre_arena arena;
  vyre_arena_init(&arena, options->allocator);
  uint32_t width = options->width;
  const vyre__shared_layout *layouts;
  vyre_code code =
      vyre__prepare_kernel(kernel, options->off, &arena, &kernel, &layouts, st);
  if (code == VYRE_OK && !width) {
    code = choose_width(kernel, options, &arena, &width, st);
  }
  ll e = {.kernel = kernel,
          .options = options,
          .allocator = options->allocator,
          .arena = &arena,
          .st = st,
          .width = width};
  if (code == VYRE_OK) code = emit_all(&e, writer);
  vyre__reserve_free(e.allocator, &e.body.bytes, &e.body.capacity, 1);
  vyre__reserve_free(e.allocator, &e.entry.bytes, &e.entry.capacity, 1);
  vyre_arena_deinit(&arena);
  *info = (vyre__spmd_info){.width = width, .scratch_bytes = e.scratch_bytes};
  return code;
}
