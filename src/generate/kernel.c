/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Builds a kernel: its size, functions, prologue and epilogue. */
#include <stdio.h>

#include "generate/internal.h"

/* --- size ------------------------------------------------------------------*/

static const uint16_t workgroups[][3] = {
    {1, 1, 1},  {2, 1, 1},  {3, 1, 1},  {13, 1, 1}, {16, 1, 1}, {32, 1, 1},
    {37, 1, 1}, {64, 1, 1}, {96, 1, 1}, {7, 3, 1},  {8, 8, 1},  {1, 5, 1},
    {4, 1, 3},  {5, 3, 2},  {2, 2, 2},  {1, 1, 7},  {3, 1, 5},  {128, 1, 1}};

static uint32_t size_of(const uint16_t extent[3]) {
  return (uint32_t)extent[0] * extent[1] * extent[2];
}

uint32_t gen_largest_workgroup(void) {
  uint32_t largest = 1;
  for (size_t i = 0; i < sizeof workgroups / sizeof workgroups[0]; i++) {
    if (size_of(workgroups[i]) > largest) largest = size_of(workgroups[i]);
  }
  return largest;
}

uint32_t gen_largest_axis(int axis) {
  uint32_t largest = 1;
  for (size_t i = 0; i < sizeof workgroups / sizeof workgroups[0]; i++) {
    if (workgroups[i][axis] > largest) largest = workgroups[i][axis];
  }
  return largest;
}

static void pick_shape(gen *g) {
  uint32_t count = sizeof workgroups / sizeof workgroups[0];
  const uint16_t *size = workgroups[gen_below(g, count)];
  if (size_of(size) > g->options.max_invocations) size = workgroups[0];
  g->group_size = size_of(size);
  uint32_t groups = g->options.max_invocations / g->group_size;
  if (groups > 9 && gen_chance(g, 80)) groups = 9;
  bool is_flat = gen_chance(g, 50);
  for (int axis = 0; axis < 3; axis++) {
    uint32_t max = axis == 0 ? groups : groups < 4 ? groups : 4;
    g->workgroup[axis] = size[axis];
    g->grid[axis] = is_flat && axis ? 1 : 1 + gen_below(g, max);
    groups /= g->grid[axis];
  }
  g->invocations = g->group_size * g->grid[0] * g->grid[1] * g->grid[2];
  g->has_subgroups =
      g->group_size % 32 == 0 && !g->options.no_barriers && gen_chance(g, 50);
  vyre_builder_workgroup(g->b, g->workgroup[0], g->workgroup[1],
                         g->workgroup[2]);
}

static void pick_types(gen *g) {
  for (vyre_type t = VYRE_TYPE_BOOL; t < VYRE_TYPE_COUNT; t++) {
    bool is_integer64 = t == VYRE_TYPE_U64 || t == VYRE_TYPE_I64;
    if (is_integer64 && g->options.no_int64) continue;
    if (t == VYRE_TYPE_F64 && g->options.no_f64) continue;
    g->types[g->type_count++] = t;
  }
}

/* --- functions -------------------------------------------------------------*/

/* Returns the computed values, with the sink in the low bits. */
static vyre_value result_of(gen *g, vyre_type type) {
  vyre_value value = vyre_build_get(g->b, g->result);
  vyre_value sink = vyre_build_get(g->b, g->sink);
  if (type == VYRE_TYPE_BOOL) {
    sink = vyre_build_binary(g->b, VYRE_OP_SHR, sink, vyre_build_u32(g->b, 31));
    sink = vyre_build_cast(g->b, VYRE_TYPE_BOOL, sink);
  } else if (type == VYRE_TYPE_F32) {
    sink = vyre_build_binary(g->b, VYRE_OP_SHR, sink, vyre_build_u32(g->b, 12));
    value = vyre_build_bitcast(g->b, VYRE_TYPE_U32, value);
    value = vyre_build_binary(g->b, VYRE_OP_XOR, value, sink);
    return vyre_build_bitcast(g->b, VYRE_TYPE_F32, value);
  } else if (type == VYRE_TYPE_F64) {
    return vyre_build_binary(g->b, VYRE_OP_ADD, value,
                             vyre_build_cast(g->b, VYRE_TYPE_F64, sink));
  } else if (type != VYRE_TYPE_U32) {
    sink = vyre_build_cast(g->b, type, sink);
  }
  return vyre_build_binary(g->b, VYRE_OP_XOR, value, sink);
}

static void make_function(gen *g, gen_function *f) {
  vyre_variable parameters[GEN_PARAMETERS];
  vyre_parameter heads[GEN_PARAMETERS];
  char name[16];
  f->result = gen_type(g);
  f->count = gen_below(g, GEN_PARAMETERS + 1);
  f->cost = GEN_MAX_ITERATIONS;
  for (size_t i = 0; i < f->count; i++) {
    f->types[i] = gen_type(g);
    heads[i] = (vyre_parameter){NULL, (vyre_type)f->types[i]};
  }
  snprintf(name, sizeof name, "f%u", (unsigned)g->function_count);
  f->handle =
      vyre_build_function(g->b, name, f->result, heads, f->count, parameters);
  g->function = f;
  g->local_count = 0;
  g->cost = GEN_COST / GEN_MAX_ITERATIONS; /* no nested loops */
  g->budget = 4;
  for (size_t i = 0; i < f->count; i++) {
    gen_register(g, parameters[i], f->types[i], GEN_VARYING, false);
  }
  g->sink = vyre_build_var(g->b, "sink", vyre_build_u32(g->b, 0));
  g->result =
      vyre_build_var(g->b, "result", gen_value(g, f->result, 2, GEN_VARYING));
  gen_register(g, g->result, f->result, GEN_VARYING, true);
  uint32_t first = g->local_count;
  gen_statements(g, 1 + gen_below(g, 4));
  gen_mix_locals(g, first);
  vyre_build_return_value(g->b, result_of(g, f->result));
  vyre_build_end(g->b);
  g->function = NULL;
  g->local_count = 0;
  g->function_count++;
}

/* --- prologue --------------------------------------------------------------*/

/* Builds (z * size.y + y) * size.x + x of two ids. */
static vyre_value flatten(gen *g, vyre_op id, vyre_op size) {
  vyre_value at = vyre_build_id(g->b, id, 2);
  for (unsigned axis = 2; axis-- > 0;) {
    at = vyre_build_binary(g->b, VYRE_OP_MUL, at,
                           vyre_build_id(g->b, size, axis));
    at =
        vyre_build_binary(g->b, VYRE_OP_ADD, at, vyre_build_id(g->b, id, axis));
  }
  return at;
}

static bool is_line(const uint32_t extent[3]) {
  return extent[1] == 1 && extent[2] == 1;
}

/* Builds the ids of the invocation: its workgroup, its index there, and its
 * index in the dispatch. Elements of a workgroup are adjacent. */
static void prologue(gen *g) {
  bool line = is_line(g->workgroup) && is_line(g->grid) && gen_chance(g, 70);
  vyre_value id;
  id = line ? vyre_build_id(g->b, VYRE_OP_WORKGROUP_ID, 0)
            : flatten(g, VYRE_OP_WORKGROUP_ID, VYRE_OP_GRID_SIZE);
  g->group = vyre_build_let(g->b, "group", id);
  id = line ? vyre_build_id(g->b, VYRE_OP_LOCAL_ID, 0)
            : flatten(g, VYRE_OP_LOCAL_ID, VYRE_OP_WORKGROUP_SIZE);
  g->lane = vyre_build_let(g->b, "lane", id);
  if (line) {
    id = vyre_build_id(g->b, VYRE_OP_GLOBAL_ID, 0);
  } else {
    id = vyre_build_binary(g->b, VYRE_OP_MUL, vyre_build_get(g->b, g->group),
                           vyre_build_u32(g->b, g->group_size));
    id =
        vyre_build_binary(g->b, VYRE_OP_ADD, id, vyre_build_get(g->b, g->lane));
  }
  g->own = vyre_build_let(g->b, "own", id);
  g->sink = vyre_build_var(g->b, "sink", vyre_build_get(g->b, g->own));
  gen_register(g, g->group, VYRE_TYPE_U32, GEN_GROUP, false);
  gen_register(g, g->lane, VYRE_TYPE_U32, GEN_VARYING, false);
  gen_register(g, g->own, VYRE_TYPE_U32, GEN_VARYING, false);
  for (uint32_t i = 0; i < g->local_count; i++) g->locals[i].is_counter = true;
}

/* Declares initial variables. */
static void variables(gen *g) {
  char name[16];
  uint32_t count = 2 + gen_below(g, 4);
  for (uint32_t i = 0; i < count; i++) {
    vyre_type type = gen_type(g);
    vyre_variable variable = vyre_build_var(g->b, gen_name(g, 'v', name),
                                            gen_value(g, type, 2, GEN_VARYING));
    gen_register(g, variable, type, GEN_VARYING, true);
  }
}

/* --- epilogue --------------------------------------------------------------*/

static const gen_buffer *sink_buffer(const gen *g) {
  uint32_t i = 0;
  while (g->buffers[i].kind != GEN_OUT) i++; /* one exists */
  return &g->buffers[i];
}

static void store_sink(gen *g) {
  const gen_buffer *out = sink_buffer(g);
  vyre_build_store(g->b, out->handle, gen_own_index(g, out, 0),
                   vyre_build_get(g->b, g->sink));
}

void gen_return(gen *g) {
  if (g->function) {
    vyre_build_return_value(g->b, result_of(g, g->function->result));
    return;
  }
  store_sink(g);
  vyre_build_return(g->b);
}

/* Copies shared buffers to an output; otherwise their contents would be lost.
 */
static void show_shared(gen *g) {
  char name[16];
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    gen_buffer *b = &g->buffers[i];
    if (b->kind != GEN_SHARED || !gen_can_load(b, GEN_VARYING)) continue;
    vyre_variable variable = vyre_build_let(g->b, gen_name(g, 'a', name),
                                            gen_load(g, b, 1, GEN_VARYING));
    gen_register(g, variable, b->type, GEN_VARYING, false);
  }
}

static void last_barrier(gen *g) {
  bool is_needed = false;
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    is_needed |= g->buffers[i].kind == GEN_SHARED;
  }
  if (g->options.no_barriers || !is_needed) return;
  gen_barrier(g, false);
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    gen_buffer *b = &g->buffers[i];
    if (b->kind == GEN_SHARED && b->mode == GEN_ATOMIC) b->mode = GEN_READ;
  }
}

/* Writes every output, so that no computed value is lost. */
static void epilogue(gen *g) {
  gen_mix_locals(g, 0);
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    const gen_buffer *b = &g->buffers[i];
    if (b->kind != GEN_OUT || b == sink_buffer(g)) continue;
    vyre_value at = gen_own_index(g, b, gen_below(g, b->per));
    vyre_build_store(g->b, b->handle, at,
                     gen_value(g, b->type, 1, GEN_VARYING));
  }
  store_sink(g);
}

/* --- kernel ----------------------------------------------------------------*/

static void segments(gen *g) {
  bool waits = !g->options.no_barriers || !g->options.no_grid_barriers;
  uint32_t count = waits ? 1 + gen_below(g, 4) : 1;
  g->budget = (int32_t)g->options.statements;
  uint32_t share = g->options.statements / (count + 1) + 1;
  for (uint32_t i = 0; i < count; i++) {
    int32_t left = g->budget - (int32_t)share;
    while (g->budget > left) gen_statements(g, 1);
    if (i + 1 == count) break;
    bool is_grid = !g->options.no_grid_barriers &&
                   (g->options.no_barriers || gen_chance(g, 40));
    gen_barrier(g, is_grid);
  }
  last_barrier(g);
  show_shared(g);
  g->may_wait = false;
  g->may_return = gen_chance(g, 50);
  while (g->budget > 0) gen_statements(g, 1);
}

void gen_kernel(gen *g) {
  pick_types(g);
  pick_shape(g);
  gen_list_choices(g);
  gen_declare_buffers(g);
  uint32_t functions =
      g->options.no_functions ? 0 : gen_below(g, GEN_FUNCTIONS + 1);
  g->control = GEN_VARYING;
  for (uint32_t i = 0; i < functions; i++) {
    make_function(g, &g->functions[i]);
  }
  g->control = GEN_HOST;
  g->is_certain = true;
  g->may_wait = true;
  g->cost = 1;
  gen_change_modes(g, true);
  prologue(g);
  variables(g);
  segments(g);
  epilogue(g);
}
