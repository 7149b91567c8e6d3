/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Device work queues. vyre.Queue makes items of arrays, and shows plans. */
#include <string.h>

#include "internal.h"

typedef struct vyp_queue {
  PyObject_HEAD vyre_queue *handle;
  vyp_kernel *kernel;
  vyp_device *device;
  uint64_t generation;
} vyp_queue;

static bool ready(const vyp_queue *q) {
  if (q->handle && q->device->epoch == atomic_load(&vyp.epoch) &&
      q->generation == q->device->generation) {
    return true;
  }
  vyp_fail(PyExc_ValueError, "make the queue again in this process",
           "the queue belongs to a device that was closed, or to the parent of "
           "this process");
  return false;
}

static PyObject *answer(vyre_code code, const vyre_status *st) {
  if (code != VYRE_OK) return vyp_raise(st);
  Py_RETURN_NONE;
}

static int find_mode(const char *name) {
  for (int i = 0; i <= VYRE_QUEUE_MODE_NEWEST; i++) {
    if (strcmp(name, vyre_queue_mode_name((vyre_queue_mode)i)) == 0) return i;
  }
  vyp_fail(PyExc_ValueError, "use auto, windows or newest",
           "unknown queue mode '%s'", name);
  return -1;
}

/* Queue(kernel, device, mode, capacity, budget, per_chunk, max_depth,
 * max_windows, timeout_ns, has_order_hash) */
static PyObject *queue_make(PyTypeObject *type, PyObject *args,
                            PyObject *keywords) {
  (void)type;
  (void)keywords;
  PyObject *kernel, *name;
  const char *mode_name;
  int hash;
  unsigned long long capacity, budget, chunk, depth, windows, timeout;
  if (!PyArg_ParseTuple(args, "O!OsKKKKKKp:Queue", vyp.kernel_type, &kernel,
                        &name, &mode_name, &capacity, &budget, &chunk, &depth,
                        &windows, &timeout, &hash)) {
    return NULL;
  }
  int mode = find_mode(mode_name);
  vyp_device *device = mode < 0 ? NULL : vyp_device_or_default(name);
  if (!device) return NULL;
  vyre_queue_options options = {.mode = (vyre_queue_mode)mode,
                                .capacity = capacity,
                                .budget_bytes = budget,
                                .items_per_chunk = chunk,
                                .max_depth = depth,
                                .max_windows = windows,
                                .timeout_ns = timeout,
                                .has_order_hash = hash};
  vyre_queue *handle = NULL;
  vyre_diagnostics diagnostics = {0};
  vyre_status st;
  vyre_code code;
  vyp_kernel *k = (vyp_kernel *)kernel;
  Py_BEGIN_ALLOW_THREADS code = vyre_queue_create(
      device->handle, k->program, &options, &handle, &diagnostics, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK)
      vyp_raise_diagnostics(&st, &diagnostics, k->text, k->file);
  vyre_diagnostics_deinit(&diagnostics);
  vyp_queue *q =
      code == VYRE_OK ? PyObject_New(vyp_queue, vyp.queue_type) : NULL;
  if (!q) {
    vyre_queue_release(handle);
    Py_DECREF(device);
    return NULL;
  }
  q->handle = handle;
  q->kernel = k;
  Py_INCREF(kernel);
  q->device = device;
  q->generation = device->generation;
  return (PyObject *)q;
}

static void queue_dealloc(PyObject *self) {
  vyp_queue *q = (vyp_queue *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (q->device->epoch == atomic_load(&vyp.epoch)) {
    Py_BEGIN_ALLOW_THREADS vyre_queue_release(q->handle);
    Py_END_ALLOW_THREADS
  }
  Py_DECREF(q->kernel);
  Py_DECREF(q->device);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* fields(kernel) -> list of (name, type), or None for other kernels */
PyObject *vyp_queue_fields(PyObject *self, PyObject *kernel) {
  (void)self;
  vyre_queue_clauses clauses;
  vyre_queue_field fields[32];
  if (!PyObject_TypeCheck(kernel, vyp.kernel_type)) {
    return vyp_fail(PyExc_TypeError, "pass a Kernel", "a queue takes a kernel");
  }
  if (!vyre_program_queue(((vyp_kernel *)kernel)->program, &clauses, fields))
    Py_RETURN_NONE;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < clauses.field_count; i++) {
    const char *name = fields[i].name ? fields[i].name : "";
    PyObject *row = Py_BuildValue("ss", name, vyre_type_name(fields[i].type));
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/* fill(items, count) */
static PyObject *queue_fill(PyObject *self, PyObject *args) {
  vyp_queue *q = (vyp_queue *)self;
  Py_buffer items;
  unsigned long long count;
  if (!PyArg_ParseTuple(args, "y*K:fill", &items, &count)) return NULL;
  vyre_status st;
  vyre_code code = VYRE_OK;
  bool is_ready = ready(q);
  if (is_ready) {
    Py_BEGIN_ALLOW_THREADS code =
        vyre_queue_fill(q->handle, items.buf, count, &st);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&items);
  return is_ready ? answer(code, &st) : NULL;
}

static PyObject *queue_fill_from(PyObject *self, PyObject *args) {
  vyp_queue *q = (vyp_queue *)self;
  PyObject *object;
  unsigned long long count;
  if (!PyArg_ParseTuple(args, "O!K:fill", vyp.buffer_type, &object, &count) ||
      !ready(q)) {
    return NULL;
  }
  vyp_buffer *b = (vyp_buffer *)object;
  if (!vyp_buffer_check(b, q->device)) return NULL;
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_queue_fill_from_buffer(q->handle, b->handle, b->offset, count, &st);
  Py_END_ALLOW_THREADS return answer(code, &st);
}

static PyObject *stats_dict(const vyre_queue_stats *s) {
  return Py_BuildValue(
      "{sKsKsKsKsKsKsKsKsKsKsKsKsKsssssKsK}", "items",
      (unsigned long long)s->items, "pushed", (unsigned long long)s->pushed,
      "dropped_keys", (unsigned long long)s->dropped_keys, "windows",
      (unsigned long long)s->windows, "chunks", (unsigned long long)s->chunks,
      "pull_windows", (unsigned long long)s->pull_windows, "priority_fell",
      (unsigned long long)s->priority_fell, "high_water",
      (unsigned long long)s->high_water, "remaining",
      (unsigned long long)s->remaining, "plan_bytes",
      (unsigned long long)s->plan_bytes, "submissions",
      (unsigned long long)s->submissions, "waits", (unsigned long long)s->waits,
      "flag_reads", (unsigned long long)s->flag_reads, "mode",
      vyre_queue_mode_name(s->mode), "stop", vyre_queue_stop_name(s->stop),
      "order_hash", (unsigned long long)s->order_hash, "wall_ns",
      (unsigned long long)s->wall_ns);
}

static vyre_code run_queue(void *self, const vyre_dispatch_desc *desc,
                           void *figures, vyre_fence **fence, vyre_status *st) {
  return vyre_queue_run(self, desc, figures, fence, st);
}

static void cancel_queue(void *self) {
  vyre_queue_cancel(self);
}

/* run(stats, *args, **buffers): `stats` is a dict to fill, also after a
 * failure */
static PyObject *queue_run(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *names) {
  vyp_queue *q = (vyp_queue *)self;
  if (!ready(q)) return NULL;
  vyre_queue_stats stats = {0};
  vyp_custom_run run = {run_queue, cancel_queue, q->handle, sizeof stats,
                        &stats};
  PyObject *result = vyp_run_custom(q->kernel, q->device, self, args + 1,
                                    (size_t)nargs - 1, names, &run);
  PyObject *kind, *value, *trace;
  PyErr_Fetch(&kind, &value, &trace);
  PyObject *figures = stats_dict(&stats);
  if (figures) PyDict_Update(args[0], figures);
  Py_XDECREF(figures);
  PyErr_Restore(kind, value, trace);
  return result;
}

static PyObject *queue_cancel(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_queue *q = (vyp_queue *)self;
  if (!ready(q)) return NULL;
  vyre_queue_cancel(q->handle);
  Py_RETURN_NONE;
}

static PyObject *queue_state(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_queue *q = (vyp_queue *)self;
  vyre_queue_state s;
  vyre_status st;
  vyre_code code;
  if (!ready(q)) return NULL;
  Py_BEGIN_ALLOW_THREADS code = vyre_queue_get_state(q->handle, &s, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) return vyp_raise(&st);
  return Py_BuildValue("{sKsKsKsKsO}", "window", (unsigned long long)s.window,
                       "position", (unsigned long long)s.position, "current",
                       (unsigned long long)s.current, "next",
                       (unsigned long long)s.next, "is_lost",
                       s.is_lost ? Py_True : Py_False);
}

/* take(item_bytes) -> bytes */
static PyObject *queue_take(PyObject *self, PyObject *size) {
  vyp_queue *q = (vyp_queue *)self;
  size_t item = PyLong_AsSize_t(size);
  if (PyErr_Occurred() || !ready(q)) return NULL;
  vyre_status st;
  uint64_t count = 0;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_queue_take(q->handle, NULL, 0, &count, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) return vyp_raise(&st);
  PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * item));
  if (!bytes || count == 0) return bytes;
  void *to = PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS code =
      vyre_queue_take(q->handle, to, count, &count, &st);
  Py_END_ALLOW_THREADS if (code == VYRE_OK) return bytes;
  Py_DECREF(bytes);
  return vyp_raise(&st);
}

static PyObject *queue_resize(PyObject *self, PyObject *capacity) {
  vyp_queue *q = (vyp_queue *)self;
  unsigned long long places = PyLong_AsUnsignedLongLong(capacity);
  vyre_status st;
  vyre_code code;
  if (PyErr_Occurred() || !ready(q)) return NULL;
  Py_BEGIN_ALLOW_THREADS code = vyre_queue_resize(q->handle, places, &st);
  Py_END_ALLOW_THREADS return answer(code, &st);
}

static PyObject *queue_plan(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_queue *q = (vyp_queue *)self;
  if (!ready(q)) return NULL;
  const vyre_queue_run_plan *p = vyre_queue_get_plan(q->handle);
  return Py_BuildValue(
      "{sssssKsIsIsKsKsKsKsK}", "mode", vyre_queue_mode_name(p->mode), "kind",
      vyre_queue_kind_name(p->kind), "capacity",
      (unsigned long long)p->capacity, "item_bytes", p->item_bytes, "pushes",
      p->pushes, "items_per_chunk",
      (unsigned long long)p->drain.items_per_chunk, "max_depth",
      (unsigned long long)p->max_depth, "queue_bytes",
      (unsigned long long)p->drain.queue.queue_bytes, "control_bytes",
      (unsigned long long)p->drain.queue.control_bytes, "memory_bytes",
      (unsigned long long)p->memory_bytes);
}

static PyObject *queue_text(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_queue *q = (vyp_queue *)self;
  if (!ready(q)) return NULL;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_queue_run_plan_print(vyre_queue_get_plan(q->handle), writer);
  return vyp_text_take(&text);
}

static PyMethodDef queue_methods[] = {
    {"fill", queue_fill, METH_VARARGS, NULL},
    {"fill_from", queue_fill_from, METH_VARARGS, NULL},
    {"run", (PyCFunction)(void (*)(void))queue_run,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"cancel", queue_cancel, METH_NOARGS, NULL},
    {"state", queue_state, METH_NOARGS, NULL},
    {"take", queue_take, METH_O, NULL},
    {"resize", queue_resize, METH_O, NULL},
    {"plan", queue_plan, METH_NOARGS, NULL},
    {"text", queue_text, METH_NOARGS, NULL},
    {0}};

static PyType_Slot queue_slots[] = {{Py_tp_new, queue_make},
                                    {Py_tp_dealloc, queue_dealloc},
                                    {Py_tp_methods, queue_methods},
                                    {0, NULL}};

PyType_Spec vyp_queue_spec = {"vyre._vyre.WorkQueue", sizeof(vyp_queue), 0,
                              Py_TPFLAGS_DEFAULT, queue_slots};
