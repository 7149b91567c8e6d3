/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shapes: of new outputs, and of arrays whose dimensions a kernel declares. */
#include <string.h>

#include "job.h"

/* Stores the shape of the elements of an argument: without the last axis, if
 * it has the components of a vector. */
static int element_shape(PyObject *value, const vyp_param *p, uint64_t bytes,
                         Py_ssize_t shape[8]) {
  int ndim = vyp_shape_of(value, p, bytes, shape);
  if (p->lanes == 1) return ndim;
  if (ndim > 0 && shape[ndim - 1] == (Py_ssize_t)p->lanes) return ndim - 1;
  shape[0] = (Py_ssize_t)(bytes / p->element_size);
  return 1;
}

/* Finds the length of an output that neither the kernel nor the caller gives:
 * that of all inputs whose length the call determines, if they are equal. */
static bool find_length(vyp_job *job, const vyp_param *output, int *ndim,
                        Py_ssize_t shape[8]) {
  vyp_kernel *k = job->kernel;
  uint64_t count = 0;
  PyObject *first = NULL;
  bool differ = false;
  for (uint32_t i = 0; i < k->positional_count; i++) {
    const vyp_param *p = &k->params[k->positional[i]];
    if (p->role == VYRE_ROLE_UNIFORM || p->role == VYRE_ROLE_PERSISTENT ||
        p->count != 0) {
      continue;
    }
    uint64_t n = job->inputs[p->input_index].size / p->element_size;
    if (first && n != count) differ = true;
    if (!first) {
      *ndim = element_shape(job->values[k->positional[i]], p,
                            job->inputs[p->input_index].size, shape);
      first = job->values[k->positional[i]];
    }
    count = n;
  }
  if (first && !differ) return true;
  PyErr_Format(
      PyExc_ValueError,
      "the length of output '%U' is not known: %s\nFix: pass out=array, "
      "or a length as %U=1000",
      output->name,
      first ? "the inputs have different lengths"
            : "no input has a length that the call determines",
      output->name);
  return false;
}

/* Returns the number in a uniform of type u32, or 0 if it is not known here. */
static uint32_t number_in(const vyp_job *job, uint32_t declared) {
  const vyp_kernel *k = job->kernel;
  uint32_t number = 0;
  for (uint32_t i = 0; i < k->param_count; i++) {
    const vyp_param *p = &k->params[i];
    if (p->declared != declared || p->input_index == VYRE_NO_INDEX) continue;
    const vyre_input *in = &job->inputs[p->input_index];
    if (in->data && in->size == sizeof number)
      memcpy(&number, in->data, sizeof number);
  }
  return number;
}

/* Stores the shape of an argument if it has the dimensions of @p p, without the
 * components of vectors. */
static bool given_shape(PyObject *value, const vyp_param *p, uint64_t bytes,
                        Py_ssize_t shape[8]) {
  if (!value || p->dimension_count == 0 || !vyp_is_array(value)) return false;
  int ndim = vyp_shape_of(value, p, bytes, shape);
  int components = p->lanes > 1;
  if (components && (ndim < 1 || shape[ndim - 1] != (Py_ssize_t)p->lanes)) {
    return false;
  }
  return ndim - components == p->dimension_count;
}

bool vyp_infer_uniform(const vyp_job *job, uint32_t at, uint32_t *value) {
  const vyp_kernel *k = job->kernel;
  const vyp_param *uniform = &k->params[at];
  for (uint32_t i = 0; i < k->param_count; i++) {
    const vyp_param *p = &k->params[i];
    for (uint8_t d = 0; d < p->dimension_count; d++) {
      Py_ssize_t shape[8];
      if ((p->dimension_uniforms >> d & 1) &&
          p->dimensions[d] == uniform->declared &&
          given_shape(job->values[i], p, UINT64_MAX, shape) &&
          shape[d] <= UINT32_MAX) {
        *value = (uint32_t)shape[d];
        return true;
      }
    }
  }
  return false;
}

/* Returns a dimension that a kernel declares, or 0 if it is not known here. */
static uint32_t declared_extent(const vyp_job *job, const vyp_param *p,
                                uint8_t axis) {
  bool is_uniform = p->dimension_uniforms >> axis & 1;
  return is_uniform ? number_in(job, p->dimensions[axis]) : p->dimensions[axis];
}

/* Stores the dimensions that a kernel declares, if all are known. */
static bool declared_shape(const vyp_job *job, const vyp_param *p, int *ndim,
                           Py_ssize_t shape[8]) {
  for (uint8_t i = 0; i < p->dimension_count; i++) {
    shape[i] = (Py_ssize_t)declared_extent(job, p, i);
    if (shape[i] == 0) return false;
  }
  *ndim = p->dimension_count;
  return p->dimension_count > 0;
}

/* Stores the shape of a new output that has no input, without components. */
static bool new_shape(vyp_job *job, uint32_t at, int *ndim,
                      Py_ssize_t shape[8]) {
  const vyp_param *p = &job->kernel->params[at];
  PyObject *value = job->values[at];
  if (value && !PyLong_Check(value)) {
    vyp_fail(PyExc_TypeError, "pass the array as out=, or an int as the length",
             "'%U' is an output", p->name);
    return false;
  }
  *ndim = 1;
  if (value) {
    shape[0] = PyLong_AsSsize_t(value);
    if (shape[0] >= 0) return true;
    PyErr_Clear();
    vyp_fail(PyExc_ValueError, "pass a length of 0 or more",
             "the length of '%U' is invalid", p->name);
    return false;
  }
  if (declared_shape(job, p, ndim, shape)) return true;
  *ndim = 1;
  if (p->count) {
    shape[0] = (Py_ssize_t)p->count;
    return true;
  }
  return find_length(job, p, ndim, shape);
}

bool vyp_output_shape(vyp_job *job, uint32_t at, int *ndim,
                      Py_ssize_t shape[8]) {
  const vyp_param *p = &job->kernel->params[at];
  if (p->input_index != VYRE_NO_INDEX) {
    *ndim = vyp_shape_of(job->values[at], p, job->inputs[p->input_index].size,
                         shape);
    return true;
  }
  if (!new_shape(job, at, ndim, shape)) return false;
  if (p->lanes == 1) return true;
  if (*ndim == 8) { /* no axis is left for the components */
    for (int i = 1; i < 8; i++) shape[0] *= shape[i];
    *ndim = 1;
  }
  shape[(*ndim)++] = (Py_ssize_t)p->lanes;
  return true;
}

static PyObject *shape_tuple(const Py_ssize_t *shape, int ndim) {
  PyObject *tuple = PyTuple_New(ndim);
  for (int i = 0; tuple && i < ndim; i++) {
    PyTuple_SetItem(tuple, i, PyLong_FromSsize_t(shape[i]));
  }
  return tuple;
}

/* The first axis of an array may be longer than the kernel declares, because
 * the elements that it uses come first in memory. */
bool vyp_check_shape(const vyp_job *job, const vyp_param *p, PyObject *value,
                     uint64_t bytes) {
  Py_ssize_t given[8], wanted[8];
  int ndim = p->dimension_count;
  bool fits = true;
  if (!given_shape(value, p, bytes, given)) return true;
  for (uint8_t i = 0; i < p->dimension_count; i++) {
    uint32_t extent = declared_extent(job, p, i);
    wanted[i] = extent ? (Py_ssize_t)extent : given[i];
    fits = fits && (i ? given[i] == wanted[i] : given[i] >= wanted[i]);
  }
  if (fits) return true;
  PyObject *a = shape_tuple(given, ndim), *b = shape_tuple(wanted, ndim);
  if (a && b) {
    PyErr_Format(PyExc_ValueError,
                 "'%U' has the shape %R, and kernel '%s' reads it as %R\n"
                 "Fix: pass an array of the shape %R, or other extents",
                 p->name, a, vyre_program_name(job->kernel->program), b, b);
  }
  Py_XDECREF(a);
  Py_XDECREF(b);
  return false;
}
