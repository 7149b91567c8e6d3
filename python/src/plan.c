/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Planners. Arrays come in as bytes of uint64 and go out as lists; vyre.plan
 * makes dataclasses of them. */
#include <string.h>

#include "internal.h"

typedef struct words {
  Py_buffer view;
  const uint64_t *at;
  size_t count; /* rows */
} words;

/* Reads a contiguous array of uint64 with @p columns per row. */
static bool read_words(PyObject *object, size_t columns, words *out) {
  if (PyObject_GetBuffer(object, &out->view, PyBUF_SIMPLE) < 0) return false;
  out->at = out->view.buf;
  out->count = (size_t)out->view.len / sizeof(uint64_t) / columns;
  return true;
}

PyObject *vyp_list_u64(const uint64_t *values, size_t count) {
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject *value = PyLong_FromUnsignedLongLong(values[i]);
    if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *list_u32(const uint32_t *values, size_t count) {
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject *value = PyLong_FromUnsignedLong(values[i]);
    if (!value || PyList_SetItem(list, (Py_ssize_t)i, value) < 0)
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *queue_dict(const vyre_queue_plan *p) {
  return Py_BuildValue(
      "{sKsKsKsIsO}", "queue_bytes", (unsigned long long)p->queue_bytes,
      "control_bytes", (unsigned long long)p->control_bytes, "resident_bytes",
      (unsigned long long)p->resident_bytes, "initial_occupancy_bps",
      p->initial_occupancy_bps, "final_only_host_sync",
      p->final_only_host_sync ? Py_True : Py_False);
}

/* plan_queue(initial, capacity, entry, control, budget, chunk) -> dict */
static PyObject *plan_queue(PyObject *self, PyObject *args) {
  (void)self;
  unsigned long long initial, capacity, entry, control, budget, chunk;
  if (!PyArg_ParseTuple(args, "KKKKKK", &initial, &capacity, &entry, &control,
                        &budget, &chunk)) {
    return NULL;
  }
  vyre_queue_profile profile = {.initial_items = initial,
                                .queue_capacity = capacity,
                                .entry_bytes = entry,
                                .control_bytes = control,
                                .budget_bytes = budget};
  vyre_status st;
  if (chunk == 0) {
    vyre_queue_plan plan;
    if (vyre_queue_plan_build(&profile, &plan, &st) != VYRE_OK)
      return vyp_raise(&st);
    return queue_dict(&plan);
  }
  vyre_queue_drain_plan plan;
  if (vyre_queue_drain_plan_build(&profile, chunk, &plan, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  return Py_BuildValue("{sNsssKsK}", "queue", queue_dict(&plan.queue),
                       "strategy", vyre_drain_strategy_name(plan.strategy),
                       "items_per_chunk",
                       (unsigned long long)plan.items_per_chunk, "chunks",
                       (unsigned long long)plan.chunks);
}

static PyObject *plan_expansion(PyObject *self, PyObject *args) {
  (void)self;
  unsigned long long initial, expansion, entry, control, budget;
  if (!PyArg_ParseTuple(args, "KKKKK", &initial, &expansion, &entry, &control,
                        &budget)) {
    return NULL;
  }
  vyre_queue_expansion_profile profile = {.initial_items = initial,
                                          .expansion_items = expansion,
                                          .entry_bytes = entry,
                                          .control_bytes = control,
                                          .budget_bytes = budget};
  vyre_queue_expansion_plan plan;
  vyre_status st;
  if (vyre_queue_expansion_plan_build(&profile, &plan, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  return Py_BuildValue(
      "{sNsKsK}", "queue", queue_dict(&plan.queue), "desired_capacity",
      (unsigned long long)plan.desired_capacity, "queue_capacity",
      (unsigned long long)plan.queue_capacity);
}

PyObject *vyp_barrier_dict(const vyre_barrier_plan *p) {
  return Py_BuildValue("{sNsNsK}", "group_offsets",
                       list_u32(p->group_offsets, p->group_count + 1), "waves",
                       list_u32(p->waves, p->wave_count), "global_barriers",
                       (unsigned long long)p->global_barriers);
}

/* plan_barriers(wave_count, dependencies) -> dict */
static PyObject *plan_barriers(PyObject *self, PyObject *args) {
  (void)self;
  unsigned long long waves;
  PyObject *object;
  words deps;
  if (!PyArg_ParseTuple(args, "KO", &waves, &object) ||
      !read_words(object, 2, &deps)) {
    return NULL;
  }
  vyre_barrier_scratch scratch = {0};
  vyre_arena arena = {0};
  vyre_barrier_plan plan;
  vyre_status st;
  PyObject *result = NULL;
  if (vyre_barrier_plan_build((size_t)waves,
                              (const vyre_wave_dependency *)deps.at, deps.count,
                              &scratch, &arena, &plan, &st) == VYRE_OK) {
    result = vyp_barrier_dict(&plan);
  } else {
    vyp_raise(&st);
  }
  vyre_barrier_scratch_deinit(&scratch);
  vyre_arena_deinit(&arena);
  PyBuffer_Release(&deps.view);
  return result;
}

/* plan_frontier(waves, dependencies, graph_bytes, budget, readback) -> dict */
static PyObject *plan_frontier(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *wave_object, *dep_object;
  unsigned long long graph, budget, readback;
  words waves, deps;
  if (!PyArg_ParseTuple(args, "OOKKK", &wave_object, &dep_object, &graph,
                        &budget, &readback) ||
      !read_words(wave_object, 3, &waves)) {
    return NULL;
  }
  if (!read_words(dep_object, 2, &deps)) {
    PyBuffer_Release(&waves.view);
    return NULL;
  }
  vyre_frontier_desc desc = {
      .waves = (const vyre_frontier_wave *)waves.at,
      .wave_count = waves.count,
      .dependencies = (const vyre_wave_dependency *)deps.at,
      .dependency_count = deps.count,
      .resident_graph_bytes = graph,
      .budget_bytes = budget,
      .readback_bytes = readback};
  vyre_barrier_scratch scratch = {0};
  vyre_arena arena = {0};
  vyre_frontier_plan p;
  vyre_status st;
  PyObject *result = NULL;
  if (vyre_frontier_plan_build(&desc, &scratch, &arena, &p, &st) == VYRE_OK) {
    result = Py_BuildValue(
        "{sNsKsKsKsKsKsKsK}", "barriers", vyp_barrier_dict(&p.barriers),
        "peak_frontier_bytes", (unsigned long long)p.peak_frontier_bytes,
        "peak_scratch_bytes", (unsigned long long)p.peak_scratch_bytes,
        "peak_output_bytes", (unsigned long long)p.peak_output_bytes,
        "peak_group_bytes", (unsigned long long)p.peak_group_bytes,
        "amortized_readback_bytes",
        (unsigned long long)p.amortized_readback_bytes, "max_group_width",
        (unsigned long long)p.max_group_width, "minimum_groups",
        (unsigned long long)p.minimum_groups);
  } else {
    vyp_raise(&st);
  }
  vyre_barrier_scratch_deinit(&scratch);
  vyre_arena_deinit(&arena);
  PyBuffer_Release(&waves.view);
  PyBuffer_Release(&deps.view);
  return result;
}

/* plan_place(intervals) -> dict; rows: size, alignment, first, last group */
static PyObject *plan_place(PyObject *self, PyObject *object) {
  (void)self;
  words intervals;
  if (!read_words(object, 4, &intervals)) return NULL;
  vyre_placement_scratch scratch = {0};
  vyre_arena arena = {0};
  vyre_placement_plan p;
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code = vyre_placement_plan_build(
      (const vyre_interval *)intervals.at, intervals.count, NULL, &scratch,
      &arena, &p, &st);
  Py_END_ALLOW_THREADS PyObject *result = NULL;
  if (code == VYRE_OK) {
    result = Py_BuildValue(
        "{sNsKsKsKsOss}", "offsets", vyp_list_u64(p.offsets, p.interval_count),
        "placed_bytes", (unsigned long long)p.placed_bytes, "lower_bound_bytes",
        (unsigned long long)p.lower_bound_bytes, "gap_bytes",
        (unsigned long long)p.gap_bytes, "is_optimal",
        p.is_optimal ? Py_True : Py_False, "method",
        vyre_placement_method_name(p.method));
  } else {
    vyp_raise(&st);
  }
  vyre_placement_scratch_deinit(&scratch);
  vyre_arena_deinit(&arena);
  PyBuffer_Release(&intervals.view);
  return result;
}

static PyObject *binding_dict(const vyre_binding *b) {
  return Py_BuildValue(
      "{sssIsssKsIsKsOsOss}", "name", b->name, "binding", b->binding, "role",
      vyre_role_name(b->role), "element_size",
      (unsigned long long)b->element_size, "element_count", b->element_count,
      "preferred_alignment", (unsigned long long)b->preferred_alignment,
      "is_input", b->input_index != VYRE_NO_INDEX ? Py_True : Py_False,
      "is_output", b->output_index != VYRE_NO_INDEX ? Py_True : Py_False,
      "locality", vyre_locality_name(b->cache_locality));
}

/* plan_bindings(kernel) -> list of dicts */
static PyObject *plan_bindings(PyObject *self, PyObject *kernel) {
  (void)self;
  if (!PyObject_TypeCheck(kernel, vyp.kernel_type)) {
    return vyp_fail(PyExc_TypeError, "pass a Kernel",
                    "bindings takes a kernel");
  }
  vyre_arena arena = {0};
  vyre_binding_plan plan;
  vyre_status st;
  PyObject *list = NULL;
  if (vyre_binding_plan_build(((vyp_kernel *)kernel)->program, &arena, &plan,
                              &st) == VYRE_OK) {
    list = PyList_New(0);
    for (size_t i = 0; list && i < plan.binding_count; i++) {
      PyObject *row = binding_dict(&plan.bindings[i]);
      if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
      Py_XDECREF(row);
    }
  } else {
    vyp_raise(&st);
  }
  vyre_arena_deinit(&arena);
  return list;
}

PyMethodDef vyp_plan_methods[] = {
    {"plan_queue", plan_queue, METH_VARARGS, NULL},
    {"plan_expansion", plan_expansion, METH_VARARGS, NULL},
    {"plan_barriers", plan_barriers, METH_VARARGS, NULL},
    {"plan_frontier", plan_frontier, METH_VARARGS, NULL},
    {"plan_place", plan_place, METH_O, NULL},
    {"plan_bindings", plan_bindings, METH_O, NULL},
    {0}};
