/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Wave graphs. vyre.WaveGraph has the names and shapes; this type has the
 * numbers and the memory. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct vyp_graph {
  PyObject_HEAD vyre_wave_graph *handle;
  vyp_device *device;
  uint64_t generation;
  vyp_param *resources; /* what arrays for each resource must look like */
  uint32_t resource_count, resource_capacity;
  PyObject *kernels;    /* of the waves */
  _Atomic bool is_slow; /* the last run was: the next can be interrupted */
} vyp_graph;

/* Memory of one run. A capsule owns it. */
typedef struct graph_run {
  vyre_wave_run desc;
  vyre_wave_result result;
  vyre_wave_input *inputs;
  vyre_wave_output *outputs;
  vyre_wave_external *externals;
  vyp_memory *memory;
  size_t memory_count;
  PyObject *kept;
} graph_run;

static bool ready(vyp_graph *g) {
  if (g->handle && g->device->epoch == atomic_load(&vyp.epoch) &&
      g->generation == g->device->generation) {
    return true;
  }
  vyp_fail(PyExc_ValueError, "make the graph again in this process",
           "the graph belongs to a device that was closed, or to the parent of "
           "this process");
  return false;
}

static PyObject *answer(vyre_code code, const vyre_status *st) {
  if (code != VYRE_OK) return vyp_raise(st);
  Py_RETURN_NONE;
}

/* Graph(device, budget_bytes, declared_only, is_separate) */
static PyObject *graph_make(PyTypeObject *type, PyObject *args,
                            PyObject *keywords) {
  (void)type;
  PyObject *name;
  unsigned long long budget;
  int declared, separate;
  if (keywords && PyDict_Size(keywords)) {
    PyErr_SetString(PyExc_TypeError, "Graph takes no keywords");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "OKpp:Graph", &name, &budget, &declared,
                        &separate)) {
    return NULL;
  }
  vyp_device *device = vyp_device_or_default(name);
  if (!device) return NULL;
  vyp_graph *g = PyObject_New(vyp_graph, vyp.graph_type);
  if (!g) {
    Py_DECREF(device);
    return NULL;
  }
  memset((char *)g + sizeof(PyObject), 0, sizeof *g - sizeof(PyObject));
  g->device = device;
  g->generation = device->generation;
  atomic_init(&g->is_slow, true);
  g->kernels = PyList_New(0);
  vyre_wave_graph_options options = {.budget_bytes = budget,
                                     .declared_only = declared,
                                     .is_separate = separate};
  vyre_status st;
  if (g->kernels && vyre_wave_graph_create(device->handle, &options, &g->handle,
                                           &st) == VYRE_OK) {
    return (PyObject *)g;
  }
  if (g->kernels) vyp_raise(&st);
  Py_DECREF(g);
  return NULL;
}

static void graph_dealloc(PyObject *self) {
  vyp_graph *g = (vyp_graph *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (g->handle && g->device->epoch == atomic_load(&vyp.epoch)) {
    Py_BEGIN_ALLOW_THREADS vyre_wave_graph_release(g->handle);
    Py_END_ALLOW_THREADS
  }
  for (uint32_t i = 0; i < g->resource_count; i++) {
    Py_XDECREF(g->resources[i].name);
    Py_XDECREF(g->resources[i].dtype);
  }
  PyMem_Free(g->resources);
  Py_XDECREF(g->kernels);
  Py_XDECREF(g->device);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* --- building --------------------------------------------------------------- */

/* resource(name, dtype, bytes, input, output, external, kept) -> number */
static PyObject *graph_resource(PyObject *self, PyObject *args) {
  vyp_graph *g = (vyp_graph *)self;
  PyObject *name, *dtype;
  unsigned long long bytes;
  int input, output, external, kept;
  if (!PyArg_ParseTuple(args, "UOKpppp:resource", &name, &dtype, &bytes, &input,
                        &output, &external, &kept) ||
      !ready(g)) {
    return NULL;
  }
  int element = vyp_find_element(dtype);
  const char *text = element < 0 ? NULL : PyUnicode_AsUTF8AndSize(name, NULL);
  if (!text) return NULL;
  if (g->resource_count == g->resource_capacity) {
    uint32_t capacity = g->resource_capacity * 2 + 8;
    vyp_param *grown = PyMem_Realloc(g->resources, capacity * sizeof *grown);
    if (!grown) return PyErr_NoMemory();
    g->resources = grown;
    g->resource_capacity = capacity;
  }
  vyre_wave_resource desc = {.name = text,
                             .size = bytes,
                             .is_input = input,
                             .is_output = output,
                             .is_external = external,
                             .is_kept = kept};
  uint32_t number;
  vyre_status st;
  if (vyre_wave_graph_add_resource(g->handle, &desc, &number, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  vyp_param *p = &g->resources[g->resource_count++];
  vyp_param_of_element(p, name, (vyre_element)element, dtype);
  Py_INCREF(name);
  Py_XINCREF(p->dtype);
  return PyLong_FromUnsignedLong(number);
}

/* Returns true if a kernel can use a resource as the elements of @p p. */
static bool is_same_type(const vyp_param *r, const vyp_param *p) {
  if (r->dtype || p->dtype) {
    return r->dtype && p->dtype && vyp_same_dtype(r->dtype, p->dtype);
  }
  return r->element == p->element ||
         (p->element == VYRE_ELEMENT_BYTES && r->element == VYRE_ELEMENT_U8);
}

static bool refuse_type(const vyp_param *r, const vyp_param *p) {
  PyObject *wanted = vyp_type_text(p), *found = vyp_type_text(r);
  if (wanted && found) {
    vyp_fail(PyExc_TypeError, "declare both with one type",
             "'%U' takes %U, and '%U' has %U", p->name, wanted, r->name, found);
  }
  Py_XDECREF(wanted);
  Py_XDECREF(found);
  return false;
}

/* Reads a range (resource, offset, size), whose elements must be those of @p p.
 */
static bool read_range(vyp_graph *g, PyObject *range, const vyp_param *p,
                       vyre_wave_binding *out) {
  unsigned int number;
  unsigned long long offset, size;
  if (!PyArg_ParseTuple(range, "IKK", &number, &offset, &size)) return false;
  if (number < g->resource_count) {
    const vyp_param *r = &g->resources[number];
    if (!is_same_type(r, p)) return refuse_type(r, p);
  }
  *out = (vyre_wave_binding){number, offset, size, NULL};
  return true;
}

/* Reads constant bytes: a number for a uniform, or an array. */
static bool read_constant(vyp_graph *g, PyObject *value, const vyp_param *p,
                          vyp_memory *memory, uint8_t *scalar,
                          vyre_wave_binding *out) {
  if (p->role == VYRE_ROLE_UNIFORM && p->count <= 1 && !p->dtype &&
      vyp_is_number(value)) {
    if (!vyp_uniform_pack(value, p, scalar)) return false;
    *out = (vyre_wave_binding){.data = scalar, .size = p->element_size};
    return true;
  }
  if (!vyp_memory_get(value, p, g->device, false, memory)) return false;
  if (memory->buffer.id) {
    vyp_fail(PyExc_TypeError,
             "declare memory(..., external=True), and pass the buffer to run()",
             "'%U' is constant, and is given a Buffer", p->name);
    return false;
  }
  *out = (vyre_wave_binding){.data = memory->data, .size = memory->size};
  return true;
}

/* wave(kernel, bindings, grid, label) -> number. The bindings are in the order
 * of the text; each is (range, None) or (None, constant). */
static PyObject *graph_wave(PyObject *self, PyObject *args) {
  vyp_graph *g = (vyp_graph *)self;
  PyObject *kernel, *list;
  vyre_wave_desc desc = {0};
  if (!PyArg_ParseTuple(args, "O!O!(III)z:wave", vyp.kernel_type, &kernel,
                        &PyTuple_Type, &list, &desc.grid[0], &desc.grid[1],
                        &desc.grid[2], &desc.label) ||
      !ready(g)) {
    return NULL;
  }
  vyp_kernel *k = (vyp_kernel *)kernel;
  static const vyre_compile_options defaults;
  vyp_compiled *c = vyp_kernel_compile(k, g->device, &defaults);
  if (!c) return NULL;
  vyre_wave_binding bindings[VYP_MAX_PARAMS];
  vyp_memory memory[VYP_MAX_PARAMS];
  uint8_t scalars[VYP_MAX_PARAMS][VYP_UNIFORM_BYTES];
  uint32_t count = 0;
  bool fine = PyTuple_Size(list) == (Py_ssize_t)k->param_count;
  if (!fine) PyErr_SetString(PyExc_TypeError, "wrong number of bindings");
  for (uint32_t i = 0; fine && i < k->param_count; i++) {
    PyObject *range, *value;
    const vyp_param *p = &k->params[i];
    vyre_wave_binding *out = &bindings[p->resource_index];
    memset(&memory[count], 0, sizeof memory[count]);
    fine = PyArg_ParseTuple(PyTuple_GetItem(list, (Py_ssize_t)i), "OO", &range,
                            &value);
    if (fine && range != Py_None) {
      fine = read_range(g, range, p, out);
    } else if (fine) {
      fine = read_constant(g, value, p, &memory[count++], scalars[i], out);
    }
  }
  uint32_t number;
  if (fine) {
    desc.bindings = bindings;
    desc.binding_count = k->param_count;
    vyre_status st;
    fine = vyre_wave_graph_add_wave(g->handle, c->pipeline, &desc, &number,
                                    &st) == VYRE_OK;
    if (!fine) vyp_raise(&st);
  }
  for (uint32_t i = 0; i < count; i++) vyp_memory_release(&memory[i]);
  if (!fine || PyList_Append(g->kernels, kernel) < 0) return NULL;
  return PyLong_FromUnsignedLong(number);
}

static PyObject *graph_order(PyObject *self, PyObject *args) {
  vyp_graph *g = (vyp_graph *)self;
  unsigned int before, after;
  vyre_status st;
  if (!PyArg_ParseTuple(args, "II:order", &before, &after) || !ready(g))
    return NULL;
  return answer(vyre_wave_graph_add_dependency(g->handle, before, after, &st),
                &st);
}

/* repeat(resource, offset, max_iterations, check_interval) */
static PyObject *graph_repeat(PyObject *self, PyObject *args) {
  vyp_graph *g = (vyp_graph *)self;
  unsigned int flag, interval;
  unsigned long long offset, most;
  vyre_status st;
  if (!PyArg_ParseTuple(args, "IKKI:repeat", &flag, &offset, &most,
                        &interval) ||
      !ready(g)) {
    return NULL;
  }
  return answer(
      vyre_wave_graph_repeat(g->handle, flag, offset, most, interval, &st),
      &st);
}

static PyObject *graph_seal(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_graph *g = (vyp_graph *)self;
  vyre_status st;
  vyre_code code;
  if (!ready(g)) return NULL;
  Py_BEGIN_ALLOW_THREADS code = vyre_wave_graph_seal(g->handle, &st);
  Py_END_ALLOW_THREADS return answer(code, &st);
}

static PyObject *graph_plan(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_graph *g = (vyp_graph *)self;
  const vyre_wave_plan *p;
  vyre_status st;
  vyre_code code;
  if (!ready(g)) return NULL;
  Py_BEGIN_ALLOW_THREADS code = vyre_wave_graph_plan(g->handle, &p, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) return vyp_raise(&st);
  PyObject *intervals =
      vyp_list_u64((const uint64_t *)p->intervals, 4 * p->resource_count);
  return Py_BuildValue(
      "{sNsNsNsKsKsKsKsKsKsKsI}", "barriers",
      vyp_barrier_dict(&p->frontier.barriers), "intervals", intervals,
      "offsets", vyp_list_u64(p->offsets, p->resource_count), "placed_bytes",
      (unsigned long long)p->placement.placed_bytes, "lower_bound_bytes",
      (unsigned long long)p->placement.lower_bound_bytes, "separate_bytes",
      (unsigned long long)p->separate_bytes, "resident_bytes",
      (unsigned long long)p->resident_bytes, "upload_bytes",
      (unsigned long long)p->upload_bytes, "readback_bytes",
      (unsigned long long)p->readback_bytes, "submissions",
      (unsigned long long)p->submissions, "threads", p->threads);
}

static PyObject *graph_print(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_graph *g = (vyp_graph *)self;
  if (!ready(g)) return NULL;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_wave_graph_print(g->handle, writer);
  return vyp_text_take(&text);
}

/* --- running ---------------------------------------------------------------- */

static void run_free(PyObject *capsule) {
  graph_run *r = PyCapsule_GetPointer(capsule, "vyre.graph_run");
  if (!r) return;
  for (size_t i = 0; i < r->memory_count; i++) {
    vyp_memory_release(&r->memory[i]);
  }
  Py_XDECREF(r->kept);
  free(r->inputs);
  free(r->outputs);
  free(r->externals);
  free(r->memory);
  free(r);
}

static graph_run *run_new(PyObject **capsule, size_t inputs, size_t outputs,
                          size_t externals) {
  graph_run *r = calloc(1, sizeof *r);
  if (!r) return (void)PyErr_NoMemory(), NULL;
  r->inputs = calloc(inputs + 1, sizeof *r->inputs);
  r->outputs = calloc(outputs + 1, sizeof *r->outputs);
  r->externals = calloc(externals + 1, sizeof *r->externals);
  r->memory = calloc(inputs + outputs + externals + 1, sizeof *r->memory);
  r->kept = PyList_New(0);
  *capsule = PyCapsule_New(r, "vyre.graph_run", run_free);
  if (!*capsule) {
    Py_XDECREF(r->kept);
    free(r->inputs);
    free(r->outputs);
    free(r->externals);
    free(r->memory);
    free(r);
    return NULL;
  }
  if (!r->inputs || !r->outputs || !r->externals || !r->memory || !r->kept) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_CLEAR(*capsule);
    return NULL;
  }
  return r;
}

/* Reads the memory for a resource from a pair (number, object). */
static vyp_memory *read_memory(vyp_graph *g, graph_run *r, PyObject *pair,
                               bool for_output, uint32_t *number) {
  PyObject *object;
  unsigned int at;
  if (!PyArg_ParseTuple(pair, "IO", &at, &object)) return NULL;
  if (at >= g->resource_count) {
    PyErr_SetString(PyExc_IndexError, "no such resource");
    return NULL;
  }
  vyp_memory *m = &r->memory[r->memory_count++];
  if (!vyp_memory_get(object, &g->resources[at], g->device, for_output, m) ||
      PyList_Append(r->kept, object) < 0) {
    return NULL;
  }
  *number = at;
  return m;
}

static bool needs_host(const vyp_graph *g, const vyp_memory *m, uint32_t at) {
  if (!m->buffer.id) return true;
  vyp_fail(PyExc_TypeError,
           "pass a NumPy array, or declare the memory with external=True",
           "'%U' is given a Buffer", g->resources[at].name);
  return false;
}

static bool fill_run(vyp_graph *g, graph_run *r, PyObject *inputs,
                     PyObject *outputs, PyObject *externals) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(inputs); i++) {
    uint32_t at;
    vyp_memory *m = read_memory(g, r, PyTuple_GetItem(inputs, i), false, &at);
    if (!m || !needs_host(g, m, at)) return false;
    r->inputs[i] = (vyre_wave_input){at, m->data, m->size};
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(outputs); i++) {
    uint32_t at;
    vyp_memory *m = read_memory(g, r, PyTuple_GetItem(outputs, i), true, &at);
    if (!m || !needs_host(g, m, at)) return false;
    r->outputs[i] = (vyre_wave_output){at, m->data, m->size};
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(externals); i++) {
    uint32_t at;
    vyp_memory *m = read_memory(g, r, PyTuple_GetItem(externals, i), true, &at);
    if (!m) return false;
    if (!m->buffer.id) {
      vyp_fail(PyExc_TypeError, "pass vyre.Buffer.of(array)",
               "external memory '%U' takes a Buffer", g->resources[at].name);
      return false;
    }
    r->externals[i] = (vyre_wave_external){at, m->buffer, m->offset};
  }
  r->desc.inputs = r->inputs;
  r->desc.input_count = (size_t)PyTuple_Size(inputs);
  r->desc.outputs = r->outputs;
  r->desc.output_count = (size_t)PyTuple_Size(outputs);
  r->desc.externals = r->externals;
  r->desc.external_count = (size_t)PyTuple_Size(externals);
  r->desc.result = &r->result;
  return true;
}

static PyObject *result_dict(const vyre_wave_result *x) {
  return Py_BuildValue("{sKsKsKsKsKsKsKsKsKsKsOsK}", "submissions",
                       (unsigned long long)x->submissions, "barriers",
                       (unsigned long long)x->barriers, "allocated_bytes",
                       (unsigned long long)x->allocated_bytes, "readback_bytes",
                       (unsigned long long)x->readback_bytes, "readbacks",
                       (unsigned long long)x->readbacks, "waits",
                       (unsigned long long)x->waits, "waves",
                       (unsigned long long)x->waves, "groups",
                       (unsigned long long)x->groups, "iterations",
                       (unsigned long long)x->iterations, "flag_reads",
                       (unsigned long long)x->flag_reads, "reached_max",
                       x->reached_max ? Py_True : Py_False, "wall_ns",
                       (unsigned long long)x->wall_ns);
}

/* Reads the arguments of run and submit. The capsule owns the result. */
static graph_run *read_run(vyp_graph *g, PyObject *args, PyObject **capsule,
                           PyObject **result) {
  PyObject *inputs, *outputs, *externals;
  unsigned long long timeout;
  if (!PyArg_ParseTuple(args, "O!O!O!KO:run", &PyTuple_Type, &inputs,
                        &PyTuple_Type, &outputs, &PyTuple_Type, &externals,
                        &timeout, result) ||
      !ready(g)) {
    return NULL;
  }
  graph_run *r =
      run_new(capsule, (size_t)PyTuple_Size(inputs),
              (size_t)PyTuple_Size(outputs), (size_t)PyTuple_Size(externals));
  if (!r) return NULL;
  r->desc.timeout_ns = timeout;
  if (!fill_run(g, r, inputs, outputs, externals) ||
      PyList_Append(r->kept, (PyObject *)g) < 0) {
    Py_CLEAR(*capsule);
    return NULL;
  }
  return r;
}

/* run(inputs, outputs, externals, timeout_ns, result) -> dict of figures */
static PyObject *graph_run_now(PyObject *self, PyObject *args) {
  vyp_graph *g = (vyp_graph *)self;
  PyObject *capsule = NULL, *unused, *figures = NULL;
  graph_run *r = read_run(g, args, &capsule, &unused);
  if (!r) return NULL;
  vyre_fence *fence = NULL;
  vyre_fence **wanted =
      atomic_load(&g->is_slow) && vyp_is_main_thread() ? &fence : NULL;
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_wave_graph_run(g->handle, &r->desc, wanted, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) {
    vyp_raise(&st);
  }
  else if (!fence || vyp_wait_interruptible(fence, capsule, g->device)) {
    atomic_store(&g->is_slow, r->result.wall_ns > VYP_SLOW_NS);
    figures = result_dict(&r->result);
  }
  if (fence) vyre_fence_release(fence);
  Py_DECREF(capsule);
  return figures;
}

/* submit(inputs, outputs, externals, timeout_ns, result) -> Future of result */
static PyObject *graph_submit(PyObject *self, PyObject *args) {
  vyp_graph *g = (vyp_graph *)self;
  PyObject *capsule = NULL, *result, *future = NULL;
  graph_run *r = read_run(g, args, &capsule, &result);
  if (!r) return NULL;
  vyre_fence *fence = NULL;
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_wave_graph_run(g->handle, &r->desc, &fence, &st);
  Py_END_ALLOW_THREADS if (code == VYRE_OK) future =
      vyp_pending_new(fence, capsule, result, g->device);
  else vyp_raise(&st);
  Py_DECREF(capsule);
  return future;
}

static PyMethodDef graph_methods[] = {
    {"resource", graph_resource, METH_VARARGS, NULL},
    {"wave", graph_wave, METH_VARARGS, NULL},
    {"order", graph_order, METH_VARARGS, NULL},
    {"repeat", graph_repeat, METH_VARARGS, NULL},
    {"seal", graph_seal, METH_NOARGS, NULL},
    {"plan", graph_plan, METH_NOARGS, NULL},
    {"text", graph_print, METH_NOARGS, NULL},
    {"run", graph_run_now, METH_VARARGS, NULL},
    {"submit", graph_submit, METH_VARARGS, NULL},
    {0}};

static PyType_Slot graph_slots[] = {{Py_tp_new, graph_make},
                                    {Py_tp_dealloc, graph_dealloc},
                                    {Py_tp_methods, graph_methods},
                                    {0, NULL}};

PyType_Spec vyp_graph_spec = {"vyre._vyre.Graph", sizeof(vyp_graph), 0,
                              Py_TPFLAGS_DEFAULT, graph_slots};
