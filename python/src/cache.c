/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The pipeline cache: location, contents, pruning, explanations. */
#include "internal.h"

static PyObject *cache_location(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  vyre_context *context = vyp_context();
  if (!context) return NULL;
  vyre_arena arena = {0};
  vyre_cache_location l;
  vyre_status st;
  PyObject *result = NULL;
  if (vyre_cache_get_location(context, &arena, &l, &st) == VYRE_OK) {
    result = Py_BuildValue("{sOsOsssssssKsO}", "is_enabled",
                           l.is_enabled ? Py_True : Py_False, "exists",
                           l.exists ? Py_True : Py_False, "directory",
                           l.directory, "reason", l.reason, "fix", l.fix,
                           "max_bytes", (unsigned long long)l.max_bytes,
                           "is_read_only", l.is_read_only ? Py_True : Py_False);
  } else {
    vyp_raise(&st);
  }
  vyre_arena_deinit(&arena);
  return result;
}

static PyObject *entry_dict(const vyre_cache_entry *e) {
  return Py_BuildValue("{sssKsLsOsssK}", "name", e->name, "bytes",
                       (unsigned long long)e->bytes, "last_used",
                       (long long)e->last_used, "is_valid",
                       e->is_valid ? Py_True : Py_False, "problem", e->problem,
                       "artifact_bytes", (unsigned long long)e->artifact_bytes);
}

static PyObject *cache_list(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  vyre_context *context = vyp_context();
  if (!context) return NULL;
  vyre_arena arena = {0};
  vyre_cache_listing l;
  vyre_status st;
  PyObject *list = NULL;
  if (vyre_cache_list(context, &arena, &l, &st) == VYRE_OK) {
    list = PyList_New(0);
    for (size_t i = 0; list && i < l.entry_count; i++) {
      PyObject *row = entry_dict(&l.entries[i]);
      if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
      Py_XDECREF(row);
    }
  } else {
    vyp_raise(&st);
  }
  vyre_arena_deinit(&arena);
  return list;
}

/* cache_prune(remove_all, max_bytes) -> dict */
static PyObject *cache_prune(PyObject *self, PyObject *args) {
  (void)self;
  int all;
  unsigned long long most;
  if (!PyArg_ParseTuple(args, "pK", &all, &most)) return NULL;
  vyre_cache_prune_options options = {.remove_all = all, .max_bytes = most};
  vyre_cache_pruned p;
  vyre_status st;
  vyre_context *context = vyp_context();
  if (!context) return NULL;
  if (vyre_cache_prune(context, &options, &p, &st) != VYRE_OK)
    return vyp_raise(&st);
  return Py_BuildValue("{sKsKsKsK}", "removed_count",
                       (unsigned long long)p.removed_count, "left_count",
                       (unsigned long long)p.left_count, "removed_bytes",
                       (unsigned long long)p.removed_bytes, "left_bytes",
                       (unsigned long long)p.left_bytes);
}

/* cache_explain(kernel, device) -> dict */
static PyObject *cache_explain(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *kernel, *name;
  if (!PyArg_ParseTuple(args, "O!O", vyp.kernel_type, &kernel, &name))
    return NULL;
  vyp_device *device = vyp_device_find(name);
  if (!device) return NULL;
  vyre_arena arena = {0};
  vyre_cache_explanation e;
  vyre_status st;
  PyObject *result = NULL;
  if (vyre_cache_explain(device->handle, ((vyp_kernel *)kernel)->program, NULL,
                         &arena, &e, &st) == VYRE_OK) {
    PyObject *key = PyDict_New();
    for (size_t i = 0; key && i < e.field_count; i++) {
      PyObject *text = PyUnicode_FromString(e.fields[i].text);
      if (!text || PyDict_SetItemString(key, e.fields[i].name, text) < 0)
        Py_CLEAR(key);
      Py_XDECREF(text);
    }
    if (key) {
      result = Py_BuildValue(
          "{ssssssszszszsN}", "result", vyre_cache_result_name(e.info.result),
          "reason", e.info.reason, "entry", e.info.entry, "field", e.info.field,
          "wanted", e.info.wanted, "found", e.info.found, "key", key);
    }
  } else {
    vyp_raise(&st);
  }
  vyre_arena_deinit(&arena);
  Py_DECREF(device);
  return result;
}

PyMethodDef vyp_cache_methods[] = {
    {"cache_location", cache_location, METH_NOARGS, NULL},
    {"cache_list", cache_list, METH_NOARGS, NULL},
    {"cache_prune", cache_prune, METH_VARARGS, NULL},
    {"cache_explain", cache_explain, METH_VARARGS, NULL},
    {0}};
