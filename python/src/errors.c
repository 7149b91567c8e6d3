/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Exceptions for failures of the library. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static PyObject *numbers_of(const vyre_status *st) {
  PyObject *numbers = PyDict_New();
  for (uint32_t i = 0; numbers && i < st->number_count; i++) {
    PyObject *value = PyLong_FromUnsignedLongLong(st->numbers[i].value);
    if (!value ||
        PyDict_SetItemString(numbers, st->numbers[i].name, value) < 0) {
      Py_CLEAR(numbers);
    }
    Py_XDECREF(value);
  }
  return numbers;
}

PyObject *vyp_raise_with(const vyre_status *st, PyObject *text,
                         PyObject *findings) {
  PyObject *numbers = numbers_of(st);
  if (!numbers) return NULL;
  PyObject *error = PyObject_CallFunction(
      vyp.make_error, "sssszNiOO", vyre_code_name(st->code),
      vyre_kind_name(st->kind), st->message, st->fix, st->field, numbers,
      (int)st->native_code, text ? text : Py_None,
      findings ? findings : Py_None);
  if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
  return NULL;
}

PyObject *vyp_raise(const vyre_status *st) {
  return vyp_raise_with(st, NULL, NULL);
}

PyObject *vyp_fail(PyObject *type, const char *fix, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *message = PyUnicode_FromFormatV(format, values);
  va_end(values);
  if (!message) return NULL;
  PyObject *whole = PyUnicode_FromFormat("%U\nFix: %s", message, fix);
  Py_DECREF(message);
  if (!whole) return NULL;
  PyErr_SetObject(type, whole);
  Py_DECREF(whole);
  return NULL;
}

/* --- text ------------------------------------------------------------------- */

static bool append(void *self, const char *text, size_t length) {
  vyp_text *t = self;
  if (t->capacity - t->length < length) {
    size_t capacity = (t->length + length) * 2 + 256;
    char *grown = realloc(t->data, capacity);
    if (!grown) return !(t->has_failed = true);
    t->data = grown;
    t->capacity = capacity;
  }
  memcpy(t->data + t->length, text, length);
  t->length += length;
  return true;
}

vyre_writer vyp_text_writer(vyp_text *text) {
  memset(text, 0, sizeof *text);
  return (vyre_writer){append, text};
}

/* Returns the text as a str and frees it. */
PyObject *vyp_text_take(vyp_text *text) {
  PyObject *result =
      text->has_failed
          ? PyErr_NoMemory()
          : PyUnicode_DecodeUTF8(text->data ? text->data : "",
                                 (Py_ssize_t)text->length, "replace");
  free(text->data);
  memset(text, 0, sizeof *text);
  return result;
}
