/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Device buffers: memory on a device that outlives a call. On devices that use
 * host memory, the buffer protocol and DLPack give views; elsewhere they
 * refuse, so that no copy is silent. */
#include <string.h>

#include "vyre/dlpack.h"

#include "internal.h"

static void set_strides(vyp_buffer *b) {
  Py_ssize_t stride = (Py_ssize_t)b->unit;
  for (Py_ssize_t i = b->ndim - 1; i >= 0; i--) {
    b->strides[i] = stride;
    stride *= b->shape[i] ? b->shape[i] : 1;
  }
}

static const char *format_of(vyre_element element) {
  static const char *const formats[VYRE_ELEMENT_COUNT] = {
      [VYRE_ELEMENT_BOOL] = "?", [VYRE_ELEMENT_U8] = "B",
      [VYRE_ELEMENT_I8] = "b",   [VYRE_ELEMENT_U16] = "H",
      [VYRE_ELEMENT_I16] = "h",  [VYRE_ELEMENT_U32] = "I",
      [VYRE_ELEMENT_I32] = "i",  [VYRE_ELEMENT_U64] = "Q",
      [VYRE_ELEMENT_I64] = "q",  [VYRE_ELEMENT_F16] = "e",
      [VYRE_ELEMENT_BF16] = "H", [VYRE_ELEMENT_F32] = "f",
      [VYRE_ELEMENT_F64] = "d",  [VYRE_ELEMENT_BYTES] = "B"};
  return formats[element] ? formats[element] : "B";
}

/* Stores the size of an element and its format in the buffer protocol. */
static bool set_type(vyp_buffer *b, PyObject *dtype, vyre_element element) {
  Py_ssize_t record = vyp_record_size(dtype);
  if (record < 0) return false;
  uint32_t unit = vyre_element_size(element);
  b->dtype = dtype;
  Py_INCREF(dtype);
  b->element = element;
  b->is_record = record > 0;
  b->unit = record ? (uint32_t)record : unit ? unit : 1;
  b->format = record ? PyObject_CallMethod(vyp.support, "format_of", "O", dtype)
                     : PyUnicode_FromString(format_of(element));
  return b->format;
}

static vyp_buffer *allocate(vyp_device *device, vyre_element element,
                            PyObject *dtype, Py_ssize_t ndim,
                            const Py_ssize_t *shape) {
  PyObject *type = dtype;
  if (type) {
    Py_INCREF(type);
  } else {
    type = PyObject_CallMethod(vyp.support, "dtype_of", "s",
                               vyre_element_name(element));
  }
  vyp_buffer *b = type ? PyObject_New(vyp_buffer, vyp.buffer_type) : NULL;
  if (!b) {
    Py_XDECREF(type);
    return NULL;
  }
  memset((char *)b + sizeof(PyObject), 0, sizeof *b - sizeof(PyObject));
  b->device = device;
  Py_INCREF(device);
  b->generation = device->generation;
  b->ndim = ndim;
  bool fine = set_type(b, type, element);
  Py_DECREF(type);
  if (!fine) {
    Py_DECREF(b);
    return NULL;
  }
  b->size = b->unit;
  for (Py_ssize_t i = 0; i < ndim; i++) {
    b->shape[i] = shape[i];
    b->size *= (uint64_t)shape[i];
  }
  set_strides(b);
  return b;
}

static bool map(vyp_buffer *b) {
  vyre_status st;
  if (!b->device->has_host_view) return true;
  void *address = NULL;
  if (vyre_buffer_map(b->device->handle, b->handle, &address, &st) != VYRE_OK) {
    vyp_raise(&st);
    return false;
  }
  b->mapped = address;
  return true;
}

vyp_buffer *vyp_buffer_new(vyp_device *device, vyre_element element,
                           PyObject *dtype, Py_ssize_t ndim,
                           const Py_ssize_t *shape) {
  vyp_buffer *b = allocate(device, element, dtype, ndim, shape);
  if (!b) return NULL;
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_buffer_create(device->handle, b->size, &b->handle, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) vyp_raise(&st);
  if (code == VYRE_OK && map(b)) return b;
  Py_DECREF(b);
  return NULL;
}

bool vyp_buffer_check(vyp_buffer *b, vyp_device *device) {
  if (b->device->epoch != atomic_load(&vyp.epoch) ||
      b->generation != b->device->generation) {
    vyp_fail(PyExc_ValueError, "make the buffer again in this process",
             "the buffer belongs to a device that was closed, or to the parent "
             "of this process");
    return false;
  }
  if (device && device != b->device) {
    PyErr_Format(
        PyExc_ValueError,
        "the buffer is on device '%U', and the kernel runs on '%U'\n"
        "Fix: pass buffer.numpy(), or run the kernel with device=\"%U\"",
        b->device->name, device->name, b->device->name);
    return false;
  }
  return true;
}

static void buffer_dealloc(PyObject *self) {
  vyp_buffer *b = (vyp_buffer *)self;
  PyTypeObject *type = Py_TYPE(self);
  bool owns = !b->base && b->handle.id && b->device &&
              b->device->epoch == atomic_load(&vyp.epoch) &&
              b->generation == b->device->generation;
  if (owns) vyre_buffer_destroy(b->device->handle, b->handle, NULL);
  Py_XDECREF(b->dtype);
  Py_XDECREF(b->format);
  Py_XDECREF(b->base);
  Py_XDECREF(b->holder);
  Py_XDECREF(b->device);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* --- construction -------------------------------------------------------------------- */

static bool read_shape(PyObject *value, Py_ssize_t *ndim, Py_ssize_t shape[8]) {
  PyObject *tuple =
      PyLong_Check(value) ? PyTuple_Pack(1, value) : PySequence_Tuple(value);
  if (!tuple) return false;
  *ndim = PyTuple_Size(tuple);
  bool fine = *ndim <= 8;
  for (Py_ssize_t i = 0; fine && i < *ndim; i++) {
    shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
    fine = shape[i] >= 0;
  }
  Py_DECREF(tuple);
  if (!fine && !PyErr_Occurred()) {
    vyp_fail(PyExc_ValueError, "pass up to 8 extents of 0 or more",
             "invalid shape %R", value);
  }
  return fine;
}

int vyp_find_element(PyObject *dtype) {
  PyObject *name = PyObject_CallMethod(vyp.support, "element_of", "O", dtype);
  if (!name) return -1;
  int found = -1;
  for (int i = 0; i < VYRE_ELEMENT_COUNT && found < 0; i++) {
    if (PyUnicode_CompareWithASCIIString(
            name, vyre_element_name((vyre_element)i)) == 0) {
      found = i;
    }
  }
  Py_DECREF(name);
  return found;
}

vyp_device *vyp_device_or_default(PyObject *name) {
  if (name && name != Py_None) return vyp_device_find(name);
  vyp_device *device = vyp_device_default();
  Py_XINCREF(device);
  return device;
}

static bool has_overflow(Py_ssize_t ndim, const Py_ssize_t *shape,
                         Py_ssize_t record) {
  size_t total = record ? (size_t)record : 16;
  for (Py_ssize_t i = 0; i < ndim; i++) {
    if (shape[i] && total > (size_t)PY_SSIZE_T_MAX / (size_t)shape[i]) {
      vyp_fail(PyExc_ValueError, "use a smaller shape",
               "the shape has more bytes than memory can hold");
      return true;
    }
    total *= (size_t)shape[i];
  }
  return false;
}

/* Buffer(shape, dtype="f4", *, device=None) */
static PyObject *buffer_make(PyTypeObject *type, PyObject *args,
                             PyObject *keywords) {
  (void)type;
  static char *names[] = {"shape", "dtype", "device", NULL};
  PyObject *shape_value, *dtype = NULL, *name = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O$O:Buffer", names,
                                   &shape_value, &dtype, &name)) {
    return NULL;
  }
  Py_ssize_t ndim, shape[8];
  if (!read_shape(shape_value, &ndim, shape)) return NULL;
  PyObject *type_name = dtype ? dtype : PyUnicode_FromString("f4");
  if (!type_name) return NULL;
  PyObject *full = PyObject_CallMethod(vyp.support, "dtype", "O", type_name);
  if (!dtype) Py_DECREF(type_name);
  int element = full ? vyp_find_element(full) : -1;
  bool fits = element >= 0 && !has_overflow(ndim, shape, vyp_record_size(full));
  vyp_device *device = fits ? vyp_device_or_default(name) : NULL;
  vyp_buffer *b =
      device ? vyp_buffer_new(device, (vyre_element)element, full, ndim, shape)
             : NULL;
  Py_XDECREF(device);
  Py_XDECREF(full);
  return (PyObject *)b;
}

/* of(array, device=None): copies an array. */
static PyObject *buffer_of(PyObject *type, PyObject *args, PyObject *keywords) {
  (void)type;
  static char *names[] = {"array", "device", NULL};
  PyObject *array, *name = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:of", names, &array,
                                   &name)) {
    return NULL;
  }
  return PyObject_CallMethod(vyp.support, "buffer_of", "OO", array, name);
}

/* from_dlpack(tensor, device=None): uses the memory of the tensor. */
static PyObject *buffer_from_dlpack(PyObject *type, PyObject *args,
                                    PyObject *keywords) {
  (void)type;
  static char *names[] = {"tensor", "device", NULL};
  PyObject *tensor, *name = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:from_dlpack", names,
                                   &tensor, &name)) {
    return NULL;
  }
  if (!PyObject_HasAttrString(tensor, "__dlpack__")) {
    return vyp_fail(PyExc_TypeError, "pass a tensor, or use Buffer.of(array)",
                    "%R has no __dlpack__", (PyObject *)Py_TYPE(tensor));
  }
  PyObject *capsule = PyObject_CallMethod(tensor, "__dlpack__", NULL);
  DLManagedTensor *managed =
      capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
  vyp_device *device = managed ? vyp_device_or_default(name) : NULL;
  if (!device) {
    Py_XDECREF(capsule);
    return NULL;
  }
  vyre_dlpack_info info;
  vyre_buffer handle;
  vyre_status st;
  Py_ssize_t shape[8],
      ndim = managed->dl_tensor.ndim <= 8 ? managed->dl_tensor.ndim : 1;
  for (Py_ssize_t i = 0; i < ndim && managed->dl_tensor.ndim <= 8; i++) {
    shape[i] = (Py_ssize_t)managed->dl_tensor.shape[i];
  }
  vyp_buffer *b = NULL;
  if (vyre_dlpack_import_unversioned(device->handle, managed, &info, &handle,
                                     &st) != VYRE_OK) {
    vyp_raise(&st);
  } else {
    PyCapsule_SetName(capsule, "used_dltensor");
    if (managed->dl_tensor.ndim > 8) shape[0] = (Py_ssize_t)info.count;
    b = allocate(device, info.element, NULL, ndim, shape);
    if (b) {
      b->handle = handle;
      if (!map(b)) Py_CLEAR(b);
    } else {
      vyre_buffer_destroy(device->handle, handle, NULL);
    }
  }
  Py_DECREF(device);
  Py_DECREF(capsule);
  return (PyObject *)b;
}

/* --- transfers -------------------------------------------------------------------------- */

void vyp_param_of_element(vyp_param *out, PyObject *name, vyre_element element,
                          PyObject *dtype) {
  uint32_t unit = vyre_element_size(element);
  Py_ssize_t record = dtype ? vyp_record_size(dtype) : 0;
  memset(out, 0, sizeof *out);
  out->name = name;
  out->element = element;
  out->dtype = record > 0 ? dtype : NULL;
  out->unit = record > 0 ? (uint32_t)record : unit ? unit : 1;
  out->lanes = 1;
  out->element_size = out->unit;
}

/* Copies between the buffer and an array of the same size. */
static bool transfer(vyp_buffer *b, PyObject *array, bool is_upload) {
  if (!vyp_buffer_check(b, NULL)) return false;
  PyObject *name = PyUnicode_FromString("array");
  vyp_param param;
  vyp_memory memory;
  vyp_param_of_element(&param, name, b->element, b->dtype);
  bool fine =
      name && vyp_memory_get(array, &param, b->device, !is_upload, &memory);
  if (name && !fine) vyp_memory_release(&memory);
  Py_XDECREF(name);
  if (!fine) return false;
  if (memory.buffer.id || memory.size != b->size) {
    vyp_memory_release(&memory);
    vyp_fail(PyExc_ValueError, "pass a NumPy array of the size of the buffer",
             "the array has %zu bytes, and the buffer %llu", memory.size,
             (unsigned long long)b->size);
    return false;
  }
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      is_upload ? vyre_buffer_upload(b->device->handle, b->handle, b->offset,
                                     memory.data, memory.size, &st)
                : vyre_buffer_download(b->device->handle, b->handle, b->offset,
                                       memory.data, memory.size, &st);
  Py_END_ALLOW_THREADS vyp_memory_release(&memory);
  if (code != VYRE_OK) vyp_raise(&st);
  return code == VYRE_OK;
}

static PyObject *buffer_upload(PyObject *self, PyObject *array) {
  if (!transfer((vyp_buffer *)self, array, true)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *buffer_numpy(PyObject *self, PyObject *args,
                              PyObject *keywords) {
  static char *names[] = {"out", NULL};
  PyObject *out = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:numpy", names, &out))
    return NULL;
  vyp_buffer *b = (vyp_buffer *)self;
  if (out && out != Py_None) {
    Py_INCREF(out);
  } else {
    out = vyp_array_new(b->element, b->is_record ? b->dtype : NULL,
                        (int)b->ndim, b->shape);
  }
  if (out && transfer(b, out, false)) return out;
  Py_XDECREF(out);
  return NULL;
}

/* __array__(dtype=None, copy=None) */
static PyObject *buffer_array(PyObject *self, PyObject *args,
                              PyObject *keywords) {
  static char *names[] = {"dtype", "copy", NULL};
  PyObject *dtype = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:__array__", names,
                                   &dtype, &copy)) {
    return NULL;
  }
  vyp_buffer *b = (vyp_buffer *)self;
  bool must_not_copy = copy == Py_False;
  if (must_not_copy && !b->mapped) {
    return vyp_fail(PyExc_ValueError, "call buffer.numpy(), which copies",
                    "the buffer is not host memory, so it cannot be viewed");
  }
  PyObject *array = b->mapped && copy != Py_True
                        ? PyObject_CallMethod(vyp.support, "view_of", "O", self)
                        : buffer_numpy(self, PyTuple_New(0), NULL);
  if (!array || dtype == Py_None) return array;
  PyObject *result =
      PyObject_CallMethod(vyp.support, "as_dtype", "OOO", array, dtype, copy);
  Py_DECREF(array);
  return result;
}

/* --- views ----------------------------------------------------------------------------- */

static int buffer_get(PyObject *self, Py_buffer *view, int flags) {
  vyp_buffer *b = (vyp_buffer *)self;
  view->obj = NULL;
  if (!b->mapped || !vyp_buffer_check(b, NULL)) {
    if (!PyErr_Occurred()) {
      vyp_fail(PyExc_BufferError, "call buffer.numpy(), which copies",
               "the buffer is on '%U', whose memory the host cannot view",
               b->device->name);
    }
    return -1;
  }
  if (PyBuffer_FillInfo(view, self, b->mapped, (Py_ssize_t)b->size, 0,
                        flags & PyBUF_WRITABLE) < 0) {
    return -1;
  }
  view->itemsize = (Py_ssize_t)b->unit;
  view->format = flags & PyBUF_FORMAT
                     ? (char *)PyUnicode_AsUTF8AndSize(b->format, NULL)
                     : NULL;
  view->ndim = (int)b->ndim;
  view->shape = flags & PyBUF_ND ? b->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? b->strides : NULL;
  return 0;
}

static void delete_tensor(PyObject *capsule) {
  DLManagedTensor *t = PyCapsule_IsValid(capsule, "dltensor")
                           ? PyCapsule_GetPointer(capsule, "dltensor")
                           : NULL;
  if (t && t->deleter) t->deleter(t);
}

static void delete_versioned(PyObject *capsule) {
  DLManagedTensorVersioned *t =
      PyCapsule_IsValid(capsule, "dltensor_versioned")
          ? PyCapsule_GetPointer(capsule, "dltensor_versioned")
          : NULL;
  if (t && t->deleter) t->deleter(t);
}

/* Returns true if max_version is (1, x) or later. */
static bool wants_version(PyObject *max_version) {
  if (!max_version || !PyTuple_Check(max_version)) return false;
  long major = PyLong_AsLong(PyTuple_GetItem(max_version, 0));
  PyErr_Clear();
  return major >= 1;
}

static PyObject *buffer_dlpack(PyObject *self, PyObject *args,
                               PyObject *keywords) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = NULL, *version = NULL, *dl_device = NULL, *copy = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names,
                                   &stream, &version, &dl_device, &copy)) {
    return NULL;
  }
  vyp_buffer *b = (vyp_buffer *)self;
  if (!b->mapped || copy == Py_True) {
    return vyp_fail(PyExc_BufferError, "call buffer.numpy(), which copies",
                    "the buffer on '%U' cannot be exported without a copy",
                    b->device->name);
  }
  if (!vyp_buffer_check(b, NULL)) return NULL;
  if (b->is_record) {
    return vyp_fail(PyExc_BufferError, "use numpy.asarray(buffer)",
                    "tensors have no records such as %S", b->dtype);
  }
  if (b->offset) {
    return vyp_fail(PyExc_BufferError, "export numpy.asarray(buffer)",
                    "a slice is not exported as a tensor");
  }
  int64_t shape[8];
  for (Py_ssize_t i = 0; i < b->ndim; i++) shape[i] = b->shape[i];
  vyre_status st;
  if (wants_version(version)) {
    DLManagedTensorVersioned *t;
    if (vyre_dlpack_export(b->device->handle, b->handle, b->element, shape,
                           (int32_t)b->ndim, 0, &t, &st) != VYRE_OK) {
      return vyp_raise(&st);
    }
    return PyCapsule_New(t, "dltensor_versioned", delete_versioned);
  }
  DLManagedTensor *t;
  if (vyre_dlpack_export_unversioned(b->device->handle, b->handle, b->element,
                                     shape, (int32_t)b->ndim, &t,
                                     &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  return PyCapsule_New(t, "dltensor", delete_tensor);
}

static PyObject *buffer_dlpack_device(PyObject *self, PyObject *unused) {
  (void)unused;
  return Py_BuildValue("(ii)",
                       ((vyp_buffer *)self)->mapped ? kDLCPU : kDLVulkan, 0);
}

/* buffer[a:b]: a part of the buffer, without a copy */
static PyObject *buffer_slice(PyObject *self, PyObject *key) {
  vyp_buffer *b = (vyp_buffer *)self;
  Py_ssize_t start, stop, step;
  if (!PySlice_Check(key) || b->ndim == 0) {
    return vyp_fail(PyExc_TypeError, "use buffer[a:b], or buffer.numpy()[...]",
                    "a buffer is sliced along its first axis only");
  }
  if (PySlice_Unpack(key, &start, &stop, &step) < 0) return NULL;
  Py_ssize_t count = PySlice_AdjustIndices(b->shape[0], &start, &stop, step);
  if (step != 1) {
    return vyp_fail(PyExc_ValueError,
                    "use numpy.ascontiguousarray of its array",
                    "a slice with a step of %zd would need a copy", step);
  }
  Py_ssize_t shape[8];
  memcpy(shape, b->shape, sizeof shape);
  shape[0] = count;
  vyp_buffer *part = allocate(b->device, b->element, b->dtype, b->ndim, shape);
  if (!part) return NULL;
  part->generation = b->generation;
  part->handle = b->handle;
  part->base = self;
  Py_INCREF(self);
  uint64_t from = (uint64_t)(start * b->strides[0]);
  part->offset = b->offset + from;
  part->mapped = b->mapped ? (char *)b->mapped + from : NULL;
  return (PyObject *)part;
}

static Py_ssize_t buffer_length(PyObject *self) {
  vyp_buffer *b = (vyp_buffer *)self;
  return b->ndim ? b->shape[0] : 1;
}

static PyObject *buffer_repr(PyObject *self) {
  vyp_buffer *b = (vyp_buffer *)self;
  PyObject *shape = PyObject_GetAttrString(self, "shape");
  const char *element = vyre_element_name(b->element);
  bool is_struct = b->is_record && b->element == VYRE_ELEMENT_BYTES;
  PyObject *type =
      is_struct ? PyObject_Str(b->dtype) : PyUnicode_FromString(element);
  PyObject *repr = shape && type
                       ? PyUnicode_FromFormat("vyre.Buffer(%R, %U, device=%R)",
                                              shape, type, b->device->name)
                       : NULL;
  Py_XDECREF(type);
  Py_XDECREF(shape);
  return repr;
}

static PyObject *get_shape(PyObject *self, void *closure) {
  (void)closure;
  vyp_buffer *b = (vyp_buffer *)self;
  PyObject *tuple = PyTuple_New(b->ndim);
  for (Py_ssize_t i = 0; tuple && i < b->ndim; i++) {
    PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(b->shape[i]));
  }
  return tuple;
}

static PyObject *get_dtype(PyObject *self, void *closure) {
  (void)closure;
  PyObject *dtype = ((vyp_buffer *)self)->dtype;
  Py_INCREF(dtype);
  return dtype;
}

static PyObject *get_nbytes(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromUnsignedLongLong(((vyp_buffer *)self)->size);
}

static PyObject *get_device(PyObject *self, void *closure) {
  (void)closure;
  PyObject *device = (PyObject *)((vyp_buffer *)self)->device;
  Py_INCREF(device);
  return device;
}

static PyObject *buffer_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *loads = PyObject_GetAttrString(vyp.support, "load_buffer");
  PyObject *empty = PyTuple_New(0);
  PyObject *array = loads && empty ? buffer_numpy(self, empty, NULL) : NULL;
  Py_XDECREF(empty);
  if (!array) {
    Py_XDECREF(loads);
    return NULL;
  }
  return Py_BuildValue("N(NO)", loads, array,
                       ((vyp_buffer *)self)->device->name);
}

static PyGetSetDef buffer_getset[] = {
    {"shape", get_shape, NULL, "Shape.", NULL},
    {"dtype", get_dtype, NULL, "numpy.dtype of the elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Size in bytes.", NULL},
    {"device", get_device, NULL, "Device that holds the memory.", NULL},
    {0}};

static PyMethodDef buffer_methods[] = {
    {"numpy", (PyCFunction)(void (*)(void))buffer_numpy,
     METH_VARARGS | METH_KEYWORDS,
     "Copies the buffer to a new array, or to out."},
    {"upload", buffer_upload, METH_O, "Copies an array into the buffer."},
    {"of", (PyCFunction)(void (*)(void))buffer_of,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Makes a buffer with a copy of an array."},
    {"from_dlpack", (PyCFunction)(void (*)(void))buffer_from_dlpack,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "Makes a buffer that uses the memory of a CPU tensor."},
    {"__array__", (PyCFunction)(void (*)(void))buffer_array,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))buffer_dlpack,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"__dlpack_device__", buffer_dlpack_device, METH_NOARGS, NULL},
    {"__reduce__", buffer_reduce, METH_NOARGS, NULL},
    {0}};

static PyType_Slot buffer_slots[] = {
    {Py_tp_new, buffer_make},           {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_repr, buffer_repr},          {Py_tp_getset, buffer_getset},
    {Py_tp_methods, buffer_methods},    {Py_mp_subscript, buffer_slice},
    {Py_mp_length, buffer_length},      {Py_bf_getbuffer, buffer_get},
    {Py_tp_doc, "Memory on a device."}, {0, NULL}};

PyType_Spec vyp_buffer_spec = {"vyre.Buffer", sizeof(vyp_buffer), 0,
                               Py_TPFLAGS_DEFAULT, buffer_slots};
