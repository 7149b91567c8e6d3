/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The extension module vyre._vyre. The package vyre is its interface. */
#include <string.h>

#include "internal.h"

vyp_state vyp;

/* --- devices -------------------------------------------------------------------------- */

static PyObject *get_device(PyObject *self, PyObject *name) {
  (void)self;
  return (PyObject *)vyp_device_find(name);
}

static PyObject *default_device(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  vyp_device *device = vyp_device_default();
  Py_XINCREF(device);
  return (PyObject *)device;
}

static PyObject *set_device(PyObject *self, PyObject *name) {
  (void)self;
  vyp_device *device = vyp_device_find(name);
  if (!device) return NULL;
  Py_XDECREF(vyp.default_device);
  vyp.default_device = device;
  Py_RETURN_NONE;
}

/* choose(name) -> name of the device that would be opened */
static PyObject *choose_device(PyObject *self, PyObject *args) {
  (void)self;
  const char *name;
  if (!PyArg_ParseTuple(args, "s", &name)) return NULL;
  vyre_context *context = vyp_context();
  char chosen[VYRE_DEVICE_NAME];
  vyre_status st;
  if (!context) return NULL;
  if (vyre_device_choose(context, name, chosen, &st) != VYRE_OK)
    return vyp_raise(&st);
  return PyUnicode_FromString(chosen);
}

static PyObject *list_devices(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  vyre_context *context = vyp_context();
  PyObject *list = context ? PyList_New(0) : NULL;
  vyre_device_info info;
  for (size_t i = 0; list && vyre_context_device_info_at(context, i, &info);
       i++) {
    PyObject *row = Py_BuildValue(
        "{sssssIsOszszszsz}", "name", info.name, "backend", info.backend,
        "index", info.index, "is_available",
        info.is_available ? Py_True : Py_False, "description", info.description,
        "driver", info.driver, "note", info.note, "fix", info.fix);
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

/* --- process --------------------------------------------------------------------------- */

static PyObject *after_fork(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  atomic_fetch_add(&vyp.epoch, 1);
  vyp.main_thread = PyThread_get_thread_ident();
  Py_RETURN_NONE;
}

static PyObject *inject_faults(PyObject *self, PyObject *args) {
  (void)self;
  const char *faults;
  vyre_status st;
  if (!PyArg_ParseTuple(args, "s", &faults)) return NULL;
  vyre_context *context = vyp_context();
  if (!context) return NULL;
  if (vyre_context_inject_faults(context, faults, &st) != VYRE_OK)
    return vyp_raise(&st);
  Py_RETURN_NONE;
}

static PyObject *counters(PyObject *self, PyObject *unused) {
  (void)self;
  (void)unused;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_counters_print(writer);
  return vyp_text_take(&text);
}

static PyMethodDef methods[] = {
    {"parse", vyp_parse, METH_VARARGS, NULL},
    {"from_bytes", vyp_from_bytes, METH_O, NULL},
    {"device", get_device, METH_O, NULL},
    {"default_device", default_device, METH_NOARGS, NULL},
    {"set_device", set_device, METH_O, NULL},
    {"choose", choose_device, METH_VARARGS, NULL},
    {"devices", list_devices, METH_NOARGS, NULL},
    {"after_fork", after_fork, METH_NOARGS, NULL},
    {"inject_faults", inject_faults, METH_VARARGS, NULL},
    {"queue_fields", vyp_queue_fields, METH_O, NULL},
    {"counters", counters, METH_NOARGS, NULL},
    {0}};

/* --- set-up ------------------------------------------------------------------------------ */

/* setup(support, make_error, default_name): called once by the package. */
static PyObject *setup(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *support, *make_error, *name;
  if (!PyArg_ParseTuple(args, "OOU", &support, &make_error, &name)) return NULL;
  Py_XDECREF(vyp.support); /* NULL, unless the package is reloaded */
  Py_XDECREF(vyp.make_error);
  Py_XDECREF(vyp.default_name);
  vyp.support = Py_NewRef(support);
  vyp.make_error = Py_NewRef(make_error);
  vyp.default_name = Py_NewRef(name);
  if (!vyp_array_setup()) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef setup_methods[] = {{"setup", setup, METH_VARARGS, NULL},
                                      {0}};

static bool add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **out) {
  *out = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
  return *out && PyModule_AddType(module, *out) == 0;
}

static int execute(PyObject *module) {
  if (vyp.devices) {
    PyErr_SetString(PyExc_ImportError,
                    "vyre is already loaded in this process");
    return -1;
  }
  vyp.devices = PyDict_New();
  vyp.str_out = PyUnicode_InternFromString("out");
  vyp.str_device = PyUnicode_InternFromString("device");
  vyp.str_grid = PyUnicode_InternFromString("grid");
  vyp.str_timeout = PyUnicode_InternFromString("timeout");
  vyp.str_stats = PyUnicode_InternFromString("stats");
  vyp.main_thread = PyThread_get_thread_ident();
  bool fine =
      vyp.devices && vyp.str_stats &&
      add_type(module, &vyp_kernel_spec, &vyp.kernel_type) &&
      add_type(module, &vyp_launch_spec, &vyp.launch_type) &&
      add_type(module, &vyp_device_spec, &vyp.device_type) &&
      add_type(module, &vyp_buffer_spec, &vyp.buffer_type) &&
      add_type(module, &vyp_pending_spec, &vyp.pending_type) &&
      add_type(module, &vyp_recording_spec, &vyp.recording_type) &&
      add_type(module, &vyp_graph_spec, &vyp.graph_type) &&
      add_type(module, &vyp_queue_spec, &vyp.queue_type) &&
      PyModule_AddFunctions(module, methods) == 0 &&
      PyModule_AddFunctions(module, setup_methods) == 0 &&
      PyModule_AddFunctions(module, vyp_plan_methods) == 0 &&
      PyModule_AddFunctions(module, vyp_cache_methods) == 0 &&
      PyModule_AddFunctions(module, vyp_sum_methods) == 0 &&
      PyModule_AddStringConstant(module, "version", VYRE_VERSION_STRING) == 0;
  return fine ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)execute},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "vyre._vyre",
                                        "Compute kernels with the same bits on "
                                        "every device.",
                                        0,
                                        NULL,
                                        slots,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__vyre(void) {
  return PyModuleDef_Init(&definition);
}
