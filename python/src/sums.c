/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exact sums on the host. vyre.sums passes contiguous memory. */
#include "internal.h"

/* Pairs of buffers of one call. */
typedef struct two_views {
  Py_buffer a, b;
  bool is_f64;
  size_t sum_bytes, number_bytes;
} two_views;

/* Reads (is_f64, a, b); `a` is written. */
static bool read_views(PyObject *args, two_views *v) {
  PyObject *a, *b;
  int is_f64;
  if (!PyArg_ParseTuple(args, "pOO", &is_f64, &a, &b)) return false;
  if (PyObject_GetBuffer(a, &v->a, PyBUF_WRITABLE) < 0) return false;
  if (PyObject_GetBuffer(b, &v->b, PyBUF_SIMPLE) < 0) {
    PyBuffer_Release(&v->a);
    return false;
  }
  v->is_f64 = is_f64;
  v->sum_bytes =
      vyre_element_size(is_f64 ? VYRE_ELEMENT_SUM_F64 : VYRE_ELEMENT_SUM_F32);
  v->number_bytes = is_f64 ? sizeof(double) : sizeof(float);
  return true;
}

static PyObject *finish(two_views *v, bool fits) {
  PyBuffer_Release(&v->a);
  PyBuffer_Release(&v->b);
  if (fits) Py_RETURN_NONE;
  return vyp_fail(PyExc_ValueError, "pass arrays of equal lengths",
                  "the sums and their operands have different lengths");
}

/* sum_merge(is_f64, to, from) */
static PyObject *sum_merge(PyObject *self, PyObject *args) {
  (void)self;
  two_views v;
  if (!read_views(args, &v)) return NULL;
  bool fits = v.a.len == v.b.len && (size_t)v.a.len % v.sum_bytes == 0;
  vyre_code code = VYRE_OK;
  vyre_status st;
  if (fits && v.a.len) {
    Py_BEGIN_ALLOW_THREADS code =
        vyre_sum_merge(v.is_f64 ? VYRE_ELEMENT_SUM_F64 : VYRE_ELEMENT_SUM_F32,
                       v.a.buf, v.b.buf, (size_t)v.a.len / v.sum_bytes, &st);
    Py_END_ALLOW_THREADS
  }
  PyObject *result = finish(&v, fits);
  if (code == VYRE_OK) return result;
  Py_XDECREF(result);
  return vyp_raise(&st);
}

/* sum_round(is_f64, numbers, sums) */
static PyObject *sum_round(PyObject *self, PyObject *args) {
  (void)self;
  two_views v;
  if (!read_views(args, &v)) return NULL;
  size_t count = (size_t)v.a.len / v.number_bytes;
  bool fits = (size_t)v.b.len == count * v.sum_bytes;
  const char *from = v.b.buf;
  for (size_t i = 0; fits && i < count; i++, from += v.sum_bytes) {
    if (v.is_f64) {
      ((double *)v.a.buf)[i] = vyre_sum_round_f64(from);
    } else {
      ((float *)v.a.buf)[i] = vyre_sum_round_f32(from);
    }
  }
  return finish(&v, fits);
}

/* sum_add(is_f64, sum, numbers): adds all numbers to one sum */
static PyObject *sum_add(PyObject *self, PyObject *args) {
  (void)self;
  two_views v;
  if (!read_views(args, &v)) return NULL;
  bool fits =
      (size_t)v.a.len == v.sum_bytes && (size_t)v.b.len % v.number_bytes == 0;
  if (fits) {
    size_t count = (size_t)v.b.len / v.number_bytes;
    Py_BEGIN_ALLOW_THREADS if (v.is_f64) {
      vyre_sum_add_f64(v.a.buf, v.b.buf, count);
    }
    else {
      vyre_sum_add_f32(v.a.buf, v.b.buf, count);
    }
    Py_END_ALLOW_THREADS
  }
  return finish(&v, fits);
}

PyMethodDef vyp_sum_methods[] = {{"sum_merge", sum_merge, METH_VARARGS, NULL},
                                 {"sum_round", sum_round, METH_VARARGS, NULL},
                                 {"sum_add", sum_add, METH_VARARGS, NULL},
                                 {0}};
