/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arguments: reads the memory, element type and shape of NumPy arrays, device
 * buffers, objects with the buffer protocol and DLPack tensors. Nothing is
 * copied or converted: what does not fit raises an exception with a fix. */
#include <math.h>
#include <string.h>

#include "vyre/dlpack.h"

#include "internal.h"

/* Start of an ndarray and of a dtype. This layout is the same in all versions
 * of NumPy; vyp_array_setup checks it. */
typedef struct {
  PyObject_HEAD char *data;
  int nd;
  Py_ssize_t *dimensions, *strides;
  PyObject *base;
  PyObject *descr;
  int flags;
} nd_array;

typedef struct {
  PyObject_HEAD PyTypeObject *typeobj;
  char kind, type, byteorder, flags;
  int type_num;
} nd_descr;

enum { ND_CONTIGUOUS = 1, ND_WRITEABLE = 0x400, ND_HALF = 23 };

/* NumPy's type number of records, such as exact sums. */
enum { ND_VOID = 20 };

/* NumPy's type number, and the format characters of the buffer protocol. */
static const struct {
  int type;
  char formats[8];
  char name[20];
} elements[VYRE_ELEMENT_COUNT] = {
    [VYRE_ELEMENT_BOOL] = {0, "?", "bool"},
    [VYRE_ELEMENT_U8] = {2, "Bc", "uint8"},
    [VYRE_ELEMENT_I8] = {1, "b", "int8"},
    [VYRE_ELEMENT_U16] = {4, "H", "uint16"},
    [VYRE_ELEMENT_I16] = {3, "h", "int16"},
    [VYRE_ELEMENT_U32] = {6, "I", "uint32"},
    [VYRE_ELEMENT_I32] = {5, "i", "int32"},
    [VYRE_ELEMENT_U64] = {8, "LQ", "uint64"},
    [VYRE_ELEMENT_I64] = {7, "lq", "int64"},
    [VYRE_ELEMENT_F16] = {23, "e", "float16"},
    [VYRE_ELEMENT_BF16] = {4, "H", "bfloat16"},
    [VYRE_ELEMENT_F32] = {11, "f", "float32"},
    [VYRE_ELEMENT_F64] = {12, "d", "float64"},
    [VYRE_ELEMENT_BYTES] = {2, "Bcb", "uint8"},
    [VYRE_ELEMENT_SUM_F32] = {ND_VOID, "", "vyre.sums.sum_f32"},
    [VYRE_ELEMENT_SUM_F64] = {ND_VOID, "", "vyre.sums.sum_f64"},
};

int vyp_type_number(vyre_element element) {
  return elements[element].type;
}

bool vyp_same_dtype(PyObject *a, PyObject *b) {
  if (a == b) return true;
  int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  PyErr_Clear();
  return equal > 0;
}

Py_ssize_t vyp_record_size(PyObject *dtype) {
  PyObject *kind = PyObject_GetAttrString(dtype, "kind");
  PyObject *size = kind ? PyObject_GetAttrString(dtype, "itemsize") : NULL;
  Py_ssize_t result = size ? PyLong_AsSsize_t(size) : -1;
  if (result >= 0 && PyUnicode_CompareWithASCIIString(kind, "V") != 0) {
    result = 0;
  }
  Py_XDECREF(kind);
  Py_XDECREF(size);
  return result;
}

static bool is_same_type(int type, vyre_element element) {
  if (!elements[element].formats[0]) return false; /* no type of NumPy */
  if (type == elements[element].type) return true;
  if (element == VYRE_ELEMENT_U64) return type == 10; /* long long */
  if (element == VYRE_ELEMENT_I64) return type == 9;
  return element == VYRE_ELEMENT_BYTES && type == 1;
}

static bool is_bfloat16(const nd_descr *descr) {
  PyObject *name =
      PyObject_GetAttrString((PyObject *)descr->typeobj, "__name__");
  bool result = name && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
  if (!name) PyErr_Clear();
  Py_XDECREF(name);
  return result;
}

/* Returns true if the memory of @p array can be read from its header. */
static bool is_plain(PyObject *array) {
  return vyp.has_headers &&
         ((PyObject *)Py_TYPE(array) == (PyObject *)vyp.ndarray ||
          (PyObject *)Py_TYPE(array) == vyp.memmap);
}

bool vyp_is_array(PyObject *arg) {
  return !PyFloat_Check(arg) && !PyLong_Check(arg) &&
         (PyObject_TypeCheck(arg, vyp.ndarray) ||
          PyObject_TypeCheck(arg, vyp.buffer_type) ||
          PyObject_CheckBuffer(arg) ||
          PyObject_HasAttrString(arg, "__dlpack__"));
}

/* --- failures ------------------------------------------------------------------ */

static bool wrong_type(const vyp_param *p, PyObject *found) {
  char fix[160];
  if (p->record) {
    PyOS_snprintf(fix, sizeof fix,
                  "pass an array of the dtype that Kernel.dtype(\"%.100s\") "
                  "returns",
                  PyUnicode_AsUTF8AndSize(p->name, NULL));
  } else {
    PyOS_snprintf(fix, sizeof fix,
                  elements[p->element].type == ND_VOID
                      ? "pass numpy.zeros(n, %s)"
                      : "convert it with .astype(\"%s\")",
                  elements[p->element].name);
  }
  PyObject *wanted = vyp_type_text(p);
  if (wanted) {
    vyp_fail(PyExc_TypeError, fix, "'%U' takes %U, not %S", p->name, wanted,
             found);
  }
  Py_XDECREF(wanted);
  return false;
}

PyObject *vyp_type_text(const vyp_param *p) {
  if (p->record) return PyUnicode_FromFormat("struct %s", p->record);
  if (p->dtype && elements[p->element].type != ND_VOID) {
    return PyUnicode_FromFormat("records of %S", p->dtype);
  }
  return PyUnicode_FromString(elements[p->element].name);
}

static bool not_contiguous(const vyp_param *p) {
  vyp_fail(PyExc_TypeError,
           "pass numpy.ascontiguousarray(...) of it, which copies",
           "the elements of '%U' do not follow each other in memory", p->name);
  return false;
}

static bool not_writable(const vyp_param *p) {
  vyp_fail(PyExc_ValueError, "pass an array that can be written",
           "the array given as output '%U' is read-only", p->name);
  return false;
}

/* --- sources of memory --------------------------------------------------------- */

static bool from_header(PyObject *arg, const vyp_param *p, bool for_output,
                        vyp_memory *out) {
  const nd_array *a = (const nd_array *)arg;
  const nd_descr *d = (const nd_descr *)a->descr;
  bool fits = p->dtype
                  ? vyp_same_dtype(a->descr, p->dtype)
                  : is_same_type(d->type_num, p->element) ||
                        (p->element == VYRE_ELEMENT_BF16 && is_bfloat16(d));
  if (!fits) return wrong_type(p, a->descr);
  if (d->byteorder == '>') {
    vyp_fail(PyExc_TypeError,
             "convert it with .astype(x.dtype.newbyteorder(\"<\"))",
             "the elements of '%U' are big endian", p->name);
    return false;
  }
  if (!(a->flags & ND_CONTIGUOUS)) return not_contiguous(p);
  out->is_writable = a->flags & ND_WRITEABLE;
  if (for_output && !out->is_writable) return not_writable(p);
  size_t count = 1;
  for (int i = 0; i < a->nd; i++) count *= (size_t)a->dimensions[i];
  out->data = a->data;
  out->size = count * p->unit;
  return true;
}

static bool is_masked(PyObject *arg, const vyp_param *p) {
  if (!PyObject_HasAttrString(arg, "filled") ||
      !PyObject_HasAttrString(arg, "mask")) {
    return false;
  }
  vyp_fail(PyExc_TypeError, "pass x.filled(value)",
           "'%U' is a masked array, and kernels do not know its mask", p->name);
  return true;
}

/* Reads records: of anything that numpy.asarray() views, and for a uniform also
 * a tuple or a dict of its fields, which is copied. */
static bool from_records(PyObject *arg, const vyp_param *p, bool for_output,
                         vyp_memory *out) {
  if (is_masked(arg, p)) return false;
  PyObject *bytes =
      PyObject_CallMethod(vyp.support, "record_bytes", "OOOi", arg, p->dtype,
                          p->name, !for_output && p->role == VYRE_ROLE_UNIFORM);
  if (!bytes) return false;
  bool fine = false;
  if (bytes == Py_None) {
    not_contiguous(p);
  } else if (!PyObject_CheckBuffer(bytes)) {
    wrong_type(p, bytes); /* the type that was found */
  } else {
    fine = PyObject_GetBuffer(bytes, &out->view, PyBUF_SIMPLE) == 0;
  }
  Py_DECREF(bytes);
  if (!fine) return false;
  out->has_view = true;
  out->is_writable = !out->view.readonly;
  if (for_output && !out->is_writable) return not_writable(p);
  out->data = out->view.buf;
  out->size = (size_t)out->view.len;
  return true;
}

static bool from_view(PyObject *arg, const vyp_param *p, bool for_output,
                      vyp_memory *out) {
  if (is_masked(arg, p)) return false;
  if (PyObject_GetBuffer(arg, &out->view, PyBUF_FORMAT | PyBUF_STRIDES) < 0) {
    return false;
  }
  out->has_view = true;
  const char *format = out->view.format ? out->view.format : "B";
  if (*format == '@' || *format == '=' || *format == '<') format++;
  if (out->view.itemsize != (Py_ssize_t)p->unit ||
      !strchr(elements[p->element].formats, *format) || !*format || format[1]) {
    PyObject *found = PyUnicode_FromFormat(
        "elements of format '%s'", out->view.format ? out->view.format : "B");
    if (found) wrong_type(p, found);
    Py_XDECREF(found);
    return false;
  }
  if (!PyBuffer_IsContiguous(&out->view, 'C')) return not_contiguous(p);
  out->is_writable = !out->view.readonly;
  if (for_output && !out->is_writable) return not_writable(p);
  out->data = out->view.buf;
  out->size = (size_t)out->view.len;
  return true;
}

static bool tensor_fits(const DLTensor *t, const vyp_param *p) {
  static const struct {
    uint8_t code;
  } codes[VYRE_ELEMENT_COUNT] = {
      [VYRE_ELEMENT_BOOL] = {kDLBool},   [VYRE_ELEMENT_U8] = {kDLUInt},
      [VYRE_ELEMENT_I8] = {kDLInt},      [VYRE_ELEMENT_U16] = {kDLUInt},
      [VYRE_ELEMENT_I16] = {kDLInt},     [VYRE_ELEMENT_U32] = {kDLUInt},
      [VYRE_ELEMENT_I32] = {kDLInt},     [VYRE_ELEMENT_U64] = {kDLUInt},
      [VYRE_ELEMENT_I64] = {kDLInt},     [VYRE_ELEMENT_F16] = {kDLFloat},
      [VYRE_ELEMENT_BF16] = {kDLBfloat}, [VYRE_ELEMENT_F32] = {kDLFloat},
      [VYRE_ELEMENT_F64] = {kDLFloat},   [VYRE_ELEMENT_BYTES] = {kDLUInt}};
  if (t->device.device_type != kDLCPU) {
    vyp_fail(PyExc_TypeError, "copy the tensor to the CPU first",
             "'%U' is a tensor on another device (DLPack type %d)", p->name,
             (int)t->device.device_type);
    return false;
  }
  if (t->dtype.code != codes[p->element].code || t->dtype.lanes != 1 ||
      t->dtype.bits != p->unit * 8) {
    PyObject *found = PyUnicode_FromFormat(
        "a tensor of type code %d with %d bits", t->dtype.code, t->dtype.bits);
    if (found) wrong_type(p, found);
    Py_XDECREF(found);
    return false;
  }
  int64_t expected = 1;
  for (int32_t i = t->ndim - 1; t->strides && i >= 0; i--) {
    if (t->shape[i] != 1 && t->strides[i] != expected) return not_contiguous(p);
    expected *= t->shape[i];
  }
  return true;
}

/* Reads a tensor without consuming its capsule, which then owns the memory. */
static bool from_dlpack(PyObject *arg, const vyp_param *p, vyp_memory *out) {
  PyObject *capsule = PyObject_CallMethod(arg, "__dlpack__", NULL);
  if (!capsule) return false;
  out->owner = capsule;
  const DLManagedTensor *managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (!managed) return false;
  const DLTensor *t = &managed->dl_tensor;
  if (!tensor_fits(t, p)) return false;
  size_t count = 1;
  for (int32_t i = 0; i < t->ndim; i++) count *= (size_t)t->shape[i];
  out->data = (char *)t->data + t->byte_offset;
  out->size = count * p->unit;
  out->is_writable = true;
  return true;
}

static bool from_buffer(vyp_buffer *b, const vyp_param *p, vyp_device *device,
                        vyp_memory *out) {
  bool fits =
      p->dtype || b->is_record
          ? p->dtype && vyp_same_dtype(b->dtype, p->dtype)
          : b->element == p->element || (p->element == VYRE_ELEMENT_BYTES &&
                                         b->element == VYRE_ELEMENT_U8);
  if (!fits) return wrong_type(p, b->dtype);
  if (!vyp_buffer_check(b, device)) return false;
  out->buffer = b->handle;
  out->offset = b->offset;
  out->size = b->size;
  out->is_writable = true;
  return true;
}

bool vyp_memory_get(PyObject *arg, const vyp_param *param, vyp_device *device,
                    bool for_output, vyp_memory *out) {
  out->has_view = false;
  out->owner = NULL;
  out->data = NULL;
  out->buffer = (vyre_buffer){0, 0};
  out->offset = 0;
  if (is_plain(arg)) return from_header(arg, param, for_output, out);
  if (PyObject_TypeCheck(arg, vyp.buffer_type)) {
    return from_buffer((vyp_buffer *)arg, param, device, out);
  }
  if (param->dtype) return from_records(arg, param, for_output, out);
  if (PyObject_CheckBuffer(arg)) return from_view(arg, param, for_output, out);
  if (PyObject_HasAttrString(arg, "__dlpack__")) {
    return from_dlpack(arg, param, out);
  }
  vyp_fail(PyExc_TypeError, "pass a NumPy array, a vyre.Buffer or a CPU tensor",
           "'%U' takes an array, not %R", param->name,
           (PyObject *)Py_TYPE(arg));
  return false;
}

void vyp_memory_release(vyp_memory *memory) {
  if (memory->has_view) PyBuffer_Release(&memory->view);
  memory->has_view = false;
  Py_CLEAR(memory->owner);
}

/* --- numbers ------------------------------------------------------------------- */

static bool out_of_range(PyObject *arg, const vyp_param *p) {
  PyErr_Clear();
  PyObject *text = PyUnicode_FromFormat(
      "%S does not fit into '%U', which is %s\nFix: pass a number in the range "
      "of the type",
      arg, p->name, vyre_element_name(p->element));
  if (text) PyErr_SetObject(PyExc_OverflowError, text);
  Py_XDECREF(text);
  return false;
}

static bool pack_float(PyObject *arg, const vyp_param *p, uint8_t out[8]) {
  double value = PyFloat_AsDouble(arg);
  if (value == -1.0 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
      return out_of_range(arg, p);
    PyErr_Clear();
    vyp_fail(PyExc_TypeError, "pass a number",
             "uniform '%U' takes a number, not %R", p->name,
             (PyObject *)Py_TYPE(arg));
    return false;
  }
  if (p->element == VYRE_ELEMENT_F64) {
    memcpy(out, &value, 8);
    return true;
  }
  if (p->element == VYRE_ELEMENT_F32) {
    float single = (float)value;
    if (isinf(single) && !isinf(value)) return out_of_range(arg, p);
    memcpy(out, &single, 4);
    return true;
  }
  PyObject *bits = PyObject_CallMethod(vyp.support, "half_bits", "di", value,
                                       p->element == VYRE_ELEMENT_BF16);
  long word = bits ? PyLong_AsLong(bits) : -1;
  Py_XDECREF(bits);
  if (word < 0) return PyErr_Occurred() ? false : out_of_range(arg, p);
  out[0] = (uint8_t)word;
  out[1] = (uint8_t)(word >> 8);
  return true;
}

static bool pack_integer(PyObject *arg, const vyp_param *p, uint8_t out[8]) {
  PyObject *number = PyNumber_Index(arg);
  if (!number) {
    PyErr_Clear();
    vyp_fail(PyExc_TypeError, "pass an int",
             "uniform '%U' takes an integer, not %R", p->name,
             (PyObject *)Py_TYPE(arg));
    return false;
  }
  uint32_t bits = p->unit * 8;
  bool is_signed =
      p->element == VYRE_ELEMENT_I8 || p->element == VYRE_ELEMENT_I16 ||
      p->element == VYRE_ELEMENT_I32 || p->element == VYRE_ELEMENT_I64;
  uint64_t value;
  bool fits;
  if (is_signed) {
    int64_t v = PyLong_AsLongLong(number);
    fits = !PyErr_Occurred() &&
           (bits == 64 ||
            (v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1)));
    value = (uint64_t)v;
  } else {
    value = PyLong_AsUnsignedLongLong(number);
    fits = !PyErr_Occurred() && (bits == 64 || value >> bits == 0);
  }
  Py_DECREF(number);
  if (!fits) return out_of_range(arg, p);
  memcpy(out, &value, 8);
  return true;
}

static bool pack_number(PyObject *arg, const vyp_param *param, uint8_t out[8]) {
  switch (param->element) {
    case VYRE_ELEMENT_F16:
    case VYRE_ELEMENT_BF16:
    case VYRE_ELEMENT_F32:
    case VYRE_ELEMENT_F64:
      return pack_float(arg, param, out);
    case VYRE_ELEMENT_BOOL: {
      int truth = PyObject_IsTrue(arg);
      out[0] = truth > 0;
      return truth >= 0;
    }
    default:
      return pack_integer(arg, param, out);
  }
}

bool vyp_uniform_pack(PyObject *arg, const vyp_param *p,
                      uint8_t out[VYP_UNIFORM_BYTES]) {
  if (p->lanes == 1) return pack_number(arg, p, out);
  PyObject *list = PySequence_Check(arg) ? PySequence_Tuple(arg) : NULL;
  if (!list || PyTuple_Size(list) != (Py_ssize_t)p->lanes) {
    Py_XDECREF(list);
    PyErr_Clear();
    vyp_fail(PyExc_TypeError, "pass a tuple or an array of that many numbers",
             "uniform '%U' takes %u numbers", p->name, p->lanes);
    return false;
  }
  bool fine = true;
  for (uint32_t i = 0; fine && i < p->lanes; i++) {
    uint8_t one[8];
    fine = pack_number(PyTuple_GetItem(list, (Py_ssize_t)i), p, one);
    if (fine) memcpy(out + (size_t)i * p->unit, one, p->unit);
  }
  Py_DECREF(list);
  return fine;
}

/* --- shapes and new arrays ------------------------------------------------------ */

int vyp_shape_of(PyObject *arg, const vyp_param *param, uint64_t bytes,
                 Py_ssize_t shape[8]) {
  if (is_plain(arg) && ((const nd_array *)arg)->nd <= 8) {
    const nd_array *a = (const nd_array *)arg;
    if (a->nd > 0) memcpy(shape, a->dimensions, (size_t)a->nd * sizeof *shape);
    return a->nd;
  }
  if (PyObject_TypeCheck(arg, vyp.buffer_type)) {
    const vyp_buffer *b = (const vyp_buffer *)arg;
    memcpy(shape, b->shape, sizeof b->shape);
    return (int)b->ndim;
  }
  PyObject *list = PyObject_GetAttrString(arg, "shape");
  PyObject *tuple = list ? PySequence_Tuple(list) : NULL;
  Py_XDECREF(list);
  Py_ssize_t ndim = tuple ? PyTuple_Size(tuple) : -1;
  Py_ssize_t total = 1;
  for (Py_ssize_t i = 0; i < ndim && ndim <= 8; i++) {
    shape[i] = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
    total *= shape[i];
  }
  Py_XDECREF(tuple);
  PyErr_Clear();
  Py_ssize_t count = (Py_ssize_t)(bytes / param->unit);
  bool is_known = bytes != UINT64_MAX;
  if (ndim >= 0 && ndim <= 8 && (total == count || !is_known)) return (int)ndim;
  if (!is_known) return -1;
  shape[0] = count;
  return 1;
}

PyObject *vyp_array_new(vyre_element element, PyObject *record, int ndim,
                        const Py_ssize_t *shape) {
  if (element != VYRE_ELEMENT_BF16 && !record && vyp.empty) {
    PyObject *descr = vyp.descr(elements[element].type);
    return descr ? vyp.empty(ndim, shape, descr, 0) : NULL; /* takes descr */
  }
  PyObject *tuple = PyTuple_New(ndim);
  for (int i = 0; tuple && i < ndim; i++) {
    PyObject *extent = PyLong_FromSsize_t(shape[i]);
    if (!extent || PyTuple_SetItem(tuple, i, extent) < 0) Py_CLEAR(tuple);
  }
  PyObject *result =
      !tuple   ? NULL
      : record ? PyObject_CallMethod(vyp.support, "zeros", "OO", tuple, record)
               : PyObject_CallMethod(vyp.support, "empty", "Os", tuple,
                                     vyre_element_name(element));
  Py_XDECREF(tuple);
  return result;
}

/* --- set-up ---------------------------------------------------------------------- */

/* Compares the header of an array with its published interface. */
static bool matches(PyObject *array, int type, char byteorder, bool writable) {
  const nd_array *a = (const nd_array *)array;
  PyObject *data = PyObject_GetAttrString(array, "ctypes");
  PyObject *address = data ? PyObject_GetAttrString(data, "data") : NULL;
  const void *expected = address ? PyLong_AsVoidPtr(address) : NULL;
  PyObject *descr = PyObject_GetAttrString(array, "dtype");
  bool fine =
      expected == a->data && descr == a->descr && a->nd == 2 &&
      a->dimensions[0] == 3 && a->dimensions[1] == 5 && a->strides[1] == 2 &&
      a->strides[0] == 10 && ((const nd_descr *)descr)->type_num == type &&
      ((const nd_descr *)descr)->byteorder == byteorder &&
      (a->flags & ND_CONTIGUOUS) && !(a->flags & ND_WRITEABLE) == !writable;
  Py_XDECREF(data);
  Py_XDECREF(address);
  Py_XDECREF(descr);
  PyErr_Clear();
  return fine;
}

static bool check_headers(PyObject *numpy) {
  PyObject *zeros = PyObject_CallMethod(numpy, "zeros", "(ii)s", 3, 5, "f2");
  PyObject *big = PyObject_CallMethod(numpy, "zeros", "(ii)s", 3, 5, ">i2");
  PyObject *flags =
      big ? PyObject_CallMethod(big, "setflags", "O", Py_False) : NULL;
  bool fine = zeros && flags && matches(zeros, ND_HALF, '=', true) &&
              matches(big, 3, '>', false);
  Py_XDECREF(zeros);
  Py_XDECREF(big);
  Py_XDECREF(flags);
  PyErr_Clear();
  return fine;
}

bool vyp_array_setup(void) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (!numpy) return false;
  vyp.ndarray = (PyTypeObject *)PyObject_GetAttrString(numpy, "ndarray");
  vyp.memmap = PyObject_GetAttrString(numpy, "memmap");
  vyp.has_headers = vyp.ndarray && check_headers(numpy);
  PyObject *capsule = PyObject_CallMethod(vyp.support, "array_api", NULL);
  if (capsule && capsule != Py_None) {
    /* Entries 45 and 184 of NumPy's function table: their numbers are part of
     * its stable binary interface. */
    void **table = PyCapsule_GetPointer(capsule, NULL);
    if (table) {
      memcpy(&vyp.descr, &table[45], sizeof vyp.descr);
      memcpy(&vyp.empty, &table[184], sizeof vyp.empty);
    }
  }
  Py_XDECREF(capsule);
  Py_DECREF(numpy);
  if (PyErr_Occurred()) PyErr_Clear();
  return vyp.ndarray && vyp.memmap;
}
