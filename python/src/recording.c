/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Recordings: commands over slots that are checked once and replayed. */
#include <string.h>

#include "internal.h"

/* Memory bound to a slot. The recording keeps it until the slot is bound
 * again. */
typedef struct bound_slot {
  PyObject *name, *object;
  vyp_memory memory;
  uint64_t bytes;
} bound_slot;

typedef struct vyp_recording {
  PyObject_HEAD vyre_recording *handle;
  vyp_device *device;
  uint64_t generation;
  bool is_sealed;
  uint32_t slot_count, slot_capacity;
  bound_slot *slots;
  PyObject *pipelines; /* kernels that are recorded */
} vyp_recording;

static bool ready(vyp_recording *r) {
  if (r->handle && r->device->epoch == atomic_load(&vyp.epoch) &&
      r->generation == r->device->generation) {
    return true;
  }
  vyp_fail(
      PyExc_ValueError, "record it again in this process",
      "the recording belongs to a device that was closed, or to the parent "
      "of this process");
  return false;
}

static PyObject *recording_make(PyTypeObject *type, PyObject *args,
                                PyObject *keywords) {
  (void)type;
  static char *names[] = {"device", NULL};
  PyObject *name = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:Recorder", names,
                                   &name)) {
    return NULL;
  }
  vyp_device *device = vyp_device_or_default(name);
  if (!device) return NULL;
  vyp_recording *r = PyObject_New(vyp_recording, vyp.recording_type);
  if (!r) {
    Py_DECREF(device);
    return NULL;
  }
  memset((char *)r + sizeof(PyObject), 0, sizeof *r - sizeof(PyObject));
  r->device = device;
  r->generation = device->generation;
  r->pipelines = PyList_New(0);
  vyre_status st;
  if (r->pipelines &&
      vyre_recording_create(device->handle, &r->handle, &st) == VYRE_OK) {
    return (PyObject *)r;
  }
  if (r->pipelines) vyp_raise(&st);
  Py_DECREF(r);
  return NULL;
}

static void recording_dealloc(PyObject *self) {
  vyp_recording *r = (vyp_recording *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (r->handle && r->device->epoch == atomic_load(&vyp.epoch)) {
    Py_BEGIN_ALLOW_THREADS vyre_recording_release(r->handle);
    Py_END_ALLOW_THREADS
  }
  for (uint32_t i = 0; i < r->slot_count; i++) {
    if (r->slots[i].object) vyp_memory_release(&r->slots[i].memory);
    Py_XDECREF(r->slots[i].object);
    Py_XDECREF(r->slots[i].name);
  }
  PyMem_Free(r->slots);
  Py_XDECREF(r->pipelines);
  Py_XDECREF(r->device);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* --- recording ------------------------------------------------------------------------ */

/* slot(name, nbytes) -> number */
static PyObject *recording_slot(PyObject *self, PyObject *args) {
  vyp_recording *r = (vyp_recording *)self;
  PyObject *name;
  unsigned long long bytes = 0;
  if (!PyArg_ParseTuple(args, "U|K:slot", &name, &bytes) || !ready(r))
    return NULL;
  if (r->slot_count == r->slot_capacity) {
    uint32_t capacity = r->slot_capacity * 2 + 8;
    bound_slot *grown = PyMem_Realloc(r->slots, capacity * sizeof *grown);
    if (!grown) return PyErr_NoMemory();
    r->slots = grown;
    r->slot_capacity = capacity;
  }
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  uint32_t number;
  vyre_status st;
  if (!text) return NULL;
  if (vyre_recording_add_slot(r->handle, text, bytes, &number, &st) !=
      VYRE_OK) {
    return vyp_raise(&st);
  }
  bound_slot *s = &r->slots[r->slot_count++];
  memset(s, 0, sizeof *s);
  s->name = name;
  s->bytes = bytes;
  Py_INCREF(name);
  return PyLong_FromUnsignedLong(number);
}

static bool read_ranges(PyObject *list, vyre_slot_range *out, size_t *count) {
  Py_ssize_t n = PyTuple_Size(list);
  if (n < 0 || n > VYP_MAX_PARAMS) return false;
  for (Py_ssize_t i = 0; i < n; i++) {
    unsigned long slot;
    unsigned long long offset, size;
    if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "kKK", &slot, &offset,
                          &size)) {
      return false;
    }
    out[i] = (vyre_slot_range){(uint32_t)slot, offset, size};
  }
  *count = (size_t)n;
  return true;
}

/* dispatch(kernel, inputs, outputs, grid): ranges are (slot, offset, size), in
 * the order of the text */
static PyObject *recording_dispatch(PyObject *self, PyObject *args) {
  vyp_recording *r = (vyp_recording *)self;
  PyObject *kernel, *inputs, *outputs;
  unsigned int grid[3];
  vyre_slot_range in[VYP_MAX_PARAMS], out[VYP_MAX_PARAMS],
      sorted[VYP_MAX_PARAMS];
  vyre_recorded_dispatch d = {0};
  if (!PyArg_ParseTuple(args, "O!O!O!(III):dispatch", vyp.kernel_type, &kernel,
                        &PyTuple_Type, &inputs, &PyTuple_Type, &outputs,
                        &grid[0], &grid[1], &grid[2]) ||
      !ready(r) || !read_ranges(inputs, in, &d.input_count) ||
      !read_ranges(outputs, out, &d.output_count)) {
    return NULL;
  }
  vyp_kernel *k = (vyp_kernel *)kernel;
  if (d.input_count != k->positional_count || k->has_persistent) {
    return vyp_fail(
        PyExc_TypeError, "pass one slot per buffer that takes an input",
        "kernel '%s' takes %u inputs, not %zu", vyre_program_name(k->program),
        k->positional_count, d.input_count);
  }
  for (uint32_t i = 0; i < k->positional_count; i++) {
    sorted[k->params[k->positional[i]].input_index] = in[i];
  }
  static const vyre_compile_options defaults;
  vyp_compiled *c = vyp_kernel_compile(k, r->device, &defaults);
  if (!c) return NULL;
  d.inputs = sorted;
  d.outputs = out;
  memcpy(d.grid, grid, sizeof d.grid);
  vyre_status st;
  if (vyre_recording_add_dispatch(r->handle, c->pipeline, &d, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  if (PyList_Append(r->pipelines, kernel) < 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *recording_copy(PyObject *self, PyObject *args) {
  vyp_recording *r = (vyp_recording *)self;
  unsigned long from_slot, to_slot;
  unsigned long long from[2], to[2];
  if (!PyArg_ParseTuple(args, "(kKK)(kKK):copy", &from_slot, &from[0], &from[1],
                        &to_slot, &to[0], &to[1]) ||
      !ready(r)) {
    return NULL;
  }
  vyre_status st;
  if (vyre_recording_add_copy(
          r->handle, (vyre_slot_range){(uint32_t)from_slot, from[0], from[1]},
          (vyre_slot_range){(uint32_t)to_slot, to[0], to[1]}, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  Py_RETURN_NONE;
}

static PyObject *recording_begin(PyObject *self, PyObject *args) {
  vyp_recording *r = (vyp_recording *)self;
  unsigned long slot;
  unsigned long long offset, size, most;
  unsigned int interval;
  if (!PyArg_ParseTuple(args, "(kKK)KI:begin_while", &slot, &offset, &size,
                        &most, &interval) ||
      !ready(r)) {
    return NULL;
  }
  vyre_status st;
  if (vyre_recording_begin_while(
          r->handle, (vyre_slot_range){(uint32_t)slot, offset, size}, most,
          interval, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  Py_RETURN_NONE;
}

static PyObject *recording_end(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_recording *r = (vyp_recording *)self;
  vyre_status st;
  if (!ready(r)) return NULL;
  if (vyre_recording_end_while(r->handle, &st) != VYRE_OK)
    return vyp_raise(&st);
  Py_RETURN_NONE;
}

static PyObject *recording_seal(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_recording *r = (vyp_recording *)self;
  vyre_status st;
  if (!ready(r)) return NULL;
  if (vyre_recording_seal(r->handle, &st) != VYRE_OK) return vyp_raise(&st);
  r->is_sealed = true;
  Py_RETURN_NONE;
}

/* --- binding and replay ------------------------------------------------------------------ */

/* Reads the memory of any array, whatever its element type. */
static bool any_memory(vyp_recording *r, PyObject *object, vyp_memory *out) {
  memset(out, 0, sizeof *out);
  if (PyObject_TypeCheck(object, vyp.buffer_type)) {
    vyp_buffer *b = (vyp_buffer *)object;
    if (!vyp_buffer_check(b, r->device)) return false;
    out->buffer = b->handle;
    out->offset = b->offset;
    out->size = b->size;
    out->is_writable = true;
    return true;
  }
  if (PyObject_GetBuffer(object, &out->view, PyBUF_STRIDES) < 0) return false;
  out->has_view = true;
  if (!PyBuffer_IsContiguous(&out->view, 'C')) {
    vyp_memory_release(out);
    vyp_fail(PyExc_TypeError, "bind numpy.ascontiguousarray(...) of it",
             "a slot takes memory without gaps");
    return false;
  }
  out->data = out->view.buf;
  out->size = (size_t)out->view.len;
  out->is_writable = !out->view.readonly;
  return true;
}

static bool bind_one(vyp_recording *r, uint32_t at, PyObject *object) {
  bound_slot *s = &r->slots[at];
  vyp_memory memory;
  if (!any_memory(r, object, &memory)) return false;
  vyre_slot_binding binding = {0};
  if (memory.buffer.id) {
    binding.buffer = memory.buffer;
    binding.offset = memory.offset;
    binding.size = memory.size;
  } else {
    binding.data = memory.data;
    binding.size = memory.size;
    binding.is_read_only = !memory.is_writable;
  }
  vyre_status st;
  if (vyre_recording_bind_slot(r->handle, at, &binding, &st) != VYRE_OK) {
    vyp_memory_release(&memory);
    vyp_raise(&st);
    return false;
  }
  PyObject *old = s->object;
  vyp_memory old_memory = s->memory;
  Py_INCREF(object);
  s->object = object;
  s->memory = memory;
  if (old) vyp_memory_release(&old_memory);
  Py_XDECREF(old);
  return true;
}

static bool bind_named(vyp_recording *r, PyObject *name, PyObject *object) {
  for (uint32_t i = 0; i < r->slot_count; i++) {
    if (r->slots[i].name == name ||
        PyUnicode_Compare(r->slots[i].name, name) == 0) {
      return bind_one(r, i, object);
    }
  }
  vyp_fail(PyExc_TypeError, "use the name of a slot of the recording",
           "the recording has no slot '%U'", name);
  return false;
}

/* bind(**slots) */
static PyObject *recording_bind(PyObject *self, PyObject *const *args,
                                Py_ssize_t nargs, PyObject *names) {
  vyp_recording *r = (vyp_recording *)self;
  if (!ready(r)) return NULL;
  if (nargs)
    return vyp_fail(PyExc_TypeError, "pass slots by name", "bind takes names");
  Py_ssize_t count = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!bind_named(r, PyTuple_GetItem(names, i), args[i])) return NULL;
  }
  Py_RETURN_NONE;
}

static PyObject *result_dict(const vyre_replay_result *x) {
  return Py_BuildValue("{sKsKsKsKsKsKsKsOsK}", "dispatches",
                       (unsigned long long)x->dispatches, "skipped",
                       (unsigned long long)x->skipped, "copies",
                       (unsigned long long)x->copies, "skipped_uploads",
                       (unsigned long long)x->skipped_uploads, "iterations",
                       (unsigned long long)x->iterations, "flag_reads",
                       (unsigned long long)x->flag_reads, "rebuilt",
                       (unsigned long long)x->rebuilt, "reached_max",
                       x->reached_max ? Py_True : Py_False, "wall_ns",
                       (unsigned long long)x->wall_ns);
}

/* Replays without waiting. Returns a Future. */
static PyObject *submit(vyp_recording *r) {
  PyObject *kept = PyList_New(0);
  for (uint32_t i = 0; kept && i < r->slot_count; i++) {
    if (r->slots[i].object && PyList_Append(kept, r->slots[i].object) < 0)
      Py_CLEAR(kept);
  }
  if (!kept || PyList_Append(kept, (PyObject *)r) < 0) {
    Py_XDECREF(kept);
    return NULL;
  }
  vyre_fence *fence = NULL;
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_recording_replay(r->handle, NULL, &fence, &st);
  Py_END_ALLOW_THREADS PyObject *future =
      code == VYRE_OK ? vyp_pending_new(fence, kept, Py_None, r->device)
                      : vyp_raise(&st);
  Py_DECREF(kept);
  return future;
}

/* replay(*, wait=True, **slots): binds slots, and runs the recording */
static PyObject *recording_replay(PyObject *self, PyObject *const *args,
                                  Py_ssize_t nargs, PyObject *names) {
  vyp_recording *r = (vyp_recording *)self;
  int wait = 1;
  if (!ready(r)) return NULL;
  if (nargs)
    return vyp_fail(PyExc_TypeError, "pass slots by name",
                    "replay takes names");
  Py_ssize_t count = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (PyUnicode_CompareWithASCIIString(name, "wait") == 0) {
      wait = PyObject_IsTrue(args[i]);
      if (wait < 0) return NULL;
    } else if (!bind_named(r, name, args[i])) {
      return NULL;
    }
  }
  if (!wait) return submit(r);
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_recording_replay(r->handle, NULL, NULL, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) return vyp_raise(&st);
  Py_RETURN_NONE;
}

/* replay_stats(skip_uploads, timeout_ns) -> dict */
static PyObject *recording_replay_stats(PyObject *self, PyObject *args) {
  vyp_recording *r = (vyp_recording *)self;
  int skip;
  unsigned long long timeout;
  if (!PyArg_ParseTuple(args, "pK", &skip, &timeout) || !ready(r)) return NULL;
  vyre_replay_result result;
  vyre_replay_options options = {
      .skip_uploads = skip, .timeout_ns = timeout, .result = &result};
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_recording_replay(r->handle, &options, NULL, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) return vyp_raise(&st);
  return result_dict(&result);
}

static PyObject *recording_print(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_recording *r = (vyp_recording *)self;
  if (!ready(r)) return NULL;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_recording_print(r->handle, writer);
  return vyp_text_take(&text);
}

static PyMethodDef recording_methods[] = {
    {"slot", recording_slot, METH_VARARGS, NULL},
    {"dispatch", recording_dispatch, METH_VARARGS, NULL},
    {"copy", recording_copy, METH_VARARGS, NULL},
    {"begin_while", recording_begin, METH_VARARGS, NULL},
    {"end_while", recording_end, METH_NOARGS, NULL},
    {"seal", recording_seal, METH_NOARGS, NULL},
    {"bind", (PyCFunction)(void (*)(void))recording_bind,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"replay", (PyCFunction)(void (*)(void))recording_replay,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"replay_stats", recording_replay_stats, METH_VARARGS, NULL},
    {"text", recording_print, METH_NOARGS, NULL},
    {0}};

static PyType_Slot recording_slots[] = {{Py_tp_new, recording_make},
                                        {Py_tp_dealloc, recording_dealloc},
                                        {Py_tp_methods, recording_methods},
                                        {0, NULL}};

PyType_Spec vyp_recording_spec = {"vyre._vyre.Recorder", sizeof(vyp_recording),
                                  0, Py_TPFLAGS_DEFAULT, recording_slots};
