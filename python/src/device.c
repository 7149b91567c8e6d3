/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices. A process opens each device once: "auto" and the name that it
 * resolves to are the same object. */
#include <string.h>

#include "internal.h"

static void set_handle(vyp_device *device, vyre_device *handle) {
  device->handle = handle;
  device->epoch = atomic_load(&vyp.epoch);
  device->generation = atomic_fetch_add(&vyp.generations, 1) + 1;
}

vyre_context *vyp_context(void) {
  vyre_status st;
  if (vyp.context) return vyp.context;
  /* The package may have to name a folder with LLVM first. */
  PyObject *done = PyObject_CallMethod(vyp.support, "find_llvm", NULL);
  if (!done) return NULL;
  Py_DECREF(done);
  if (vyre_context_create(NULL, &vyp.context, &st) != VYRE_OK) vyp_raise(&st);
  return vyp.context;
}

static vyre_device *open_device(const char *name) {
  vyre_status st;
  vyre_device *handle = NULL;
  vyre_context *context = vyp_context();
  vyre_code code;
  if (!context) return NULL;
  Py_BEGIN_ALLOW_THREADS code = vyre_device_open(context, name, &handle, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) vyp_raise(&st);
  return handle;
}

bool vyp_device_ready(vyp_device *device) {
  if (device->epoch == atomic_load(&vyp.epoch)) return true;
  /* A forked child cannot use the device of its parent: it opens its own. The
   * object of the parent is not closed, because its threads do not exist. */
  const char *name = PyUnicode_AsUTF8AndSize(device->name, NULL);
  vyre_device *handle = name ? open_device(name) : NULL;
  if (!handle) return false;
  set_handle(device, handle);
  return true;
}

/* Returns the object of an open device, and takes the handle. */
static vyp_device *wrap(vyre_device *handle) {
  PyObject *name = PyUnicode_FromString(vyre_device_name(handle));
  vyp_device *d =
      name ? (vyp_device *)PyDict_GetItemWithError(vyp.devices, name) : NULL;
  if (d) {
    vyre_device_release(handle);
    Py_DECREF(name);
    Py_INCREF(d);
    return vyp_device_ready(d) ? d : (Py_DECREF(d), NULL);
  }
  if (name && !PyErr_Occurred()) d = PyObject_New(vyp_device, vyp.device_type);
  if (!d) {
    Py_XDECREF(name);
    vyre_device_release(handle);
    return NULL;
  }
  set_handle(d, handle);
  d->name = name;
  d->has_host_view = strcmp(vyre_device_name(handle), "cpu") == 0 ||
                     strcmp(vyre_device_name(handle), "ref") == 0;
  if (PyDict_SetItem(vyp.devices, name, (PyObject *)d) < 0) {
    Py_DECREF(d);
    return NULL;
  }
  return d;
}

vyp_device *vyp_device_find(PyObject *name) {
  if (PyObject_TypeCheck(name, vyp.device_type)) {
    Py_INCREF(name);
    return vyp_device_ready((vyp_device *)name) ? (vyp_device *)name
                                                : (Py_DECREF(name), NULL);
  }
  if (!PyUnicode_Check(name)) {
    vyp_fail(
        PyExc_TypeError, "pass a name such as \"cpu\", or vyre.device(...)",
        "a device is a name or a Device, not %R", (PyObject *)Py_TYPE(name));
    return NULL;
  }
  vyp_device *d = (vyp_device *)PyDict_GetItemWithError(vyp.devices, name);
  if (d) {
    Py_INCREF(d);
    return vyp_device_ready(d) ? d : (Py_DECREF(d), NULL);
  }
  if (PyErr_Occurred()) return NULL;
  const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
  vyre_device *handle = text ? open_device(text) : NULL;
  if (!handle) return NULL;
  d = wrap(handle);
  /* "auto" and "vulkan" are other names of the same device. */
  if (d && PyDict_SetItem(vyp.devices, name, (PyObject *)d) < 0) Py_CLEAR(d);
  return d;
}

vyp_device *vyp_device_default(void) {
  if (!vyp.default_device) {
    vyp.default_device = vyp_device_find(vyp.default_name);
    return vyp.default_device;
  }
  return vyp_device_ready(vyp.default_device) ? vyp.default_device : NULL;
}

/* --- type -------------------------------------------------------------------- */

static void device_dealloc(PyObject *self) {
  vyp_device *d = (vyp_device *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (d->epoch == atomic_load(&vyp.epoch)) {
    Py_BEGIN_ALLOW_THREADS vyre_device_release(d->handle);
    Py_END_ALLOW_THREADS
  }
  Py_XDECREF(d->name);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *device_repr(PyObject *self) {
  return PyUnicode_FromFormat("vyre.device(%R)", ((vyp_device *)self)->name);
}

static PyObject *get_name(PyObject *self, void *closure) {
  (void)closure;
  PyObject *name = ((vyp_device *)self)->name;
  Py_INCREF(name);
  return name;
}

static PyObject *get_reason(PyObject *self, void *closure) {
  (void)closure;
  vyp_device *d = (vyp_device *)self;
  if (!vyp_device_ready(d)) return NULL;
  return PyUnicode_FromString(vyre_device_selection_reason(d->handle));
}

static PyObject *get_lost(PyObject *self, void *closure) {
  (void)closure;
  vyp_device *d = (vyp_device *)self;
  if (!vyp_device_ready(d)) return NULL;
  return PyBool_FromLong(vyre_device_is_lost(d->handle));
}

static PyObject *get_caps(PyObject *self, void *closure) {
  (void)closure;
  vyp_device *d = (vyp_device *)self;
  if (!vyp_device_ready(d)) return NULL;
  const vyre_device_caps *c = vyre_device_get_caps(d->handle);
  return Py_BuildValue(
      "{s(III)sIsKsKsKsNsNsNsNsNsNsNsz}", "max_workgroup", c->max_workgroup[0],
      c->max_workgroup[1], c->max_workgroup[2], "max_workgroup_invocations",
      c->max_workgroup_invocations, "max_shared_bytes",
      (unsigned long long)c->max_shared_bytes, "max_buffer_bytes",
      (unsigned long long)c->max_buffer_bytes, "host_alignment",
      (unsigned long long)c->host_alignment, "borrows_host_memory",
      PyBool_FromLong(c->borrows_host_memory), "has_device_time",
      PyBool_FromLong(c->has_device_time), "has_checks",
      PyBool_FromLong(c->has_checks), "has_print",
      PyBool_FromLong(c->has_print), "has_f64", PyBool_FromLong(c->has_f64),
      "has_u64", PyBool_FromLong(c->has_u64), "has_atomics64",
      PyBool_FromLong(c->has_atomics64), "details", c->details);
}

static PyObject *device_reopen(PyObject *self, PyObject *unused) {
  (void)unused;
  vyp_device *d = (vyp_device *)self;
  const char *name = PyUnicode_AsUTF8AndSize(d->name, NULL);
  vyre_device *handle = name ? open_device(name) : NULL;
  if (!handle) return NULL;
  vyre_device *old = d->handle;
  bool release = d->epoch == atomic_load(&vyp.epoch);
  set_handle(d, handle);
  if (release) {
    Py_BEGIN_ALLOW_THREADS vyre_device_release(old);
    Py_END_ALLOW_THREADS
  }
  Py_RETURN_NONE;
}

static PyGetSetDef device_getset[] = {
    {"name", get_name, NULL, "Name that opens this device.", NULL},
    {"reason", get_reason, NULL, "Reason why this device was chosen.", NULL},
    {"is_lost", get_lost, NULL, "True when the device is lost.", NULL},
    {"caps", get_caps, NULL, "Capabilities and limits, as a dict.", NULL},
    {0}};

static PyMethodDef device_methods[] = {
    {"reopen", device_reopen, METH_NOARGS,
     "Opens the device again after it was lost."},
    {0}};

static PyType_Slot device_slots[] = {{Py_tp_dealloc, device_dealloc},
                                     {Py_tp_repr, device_repr},
                                     {Py_tp_getset, device_getset},
                                     {Py_tp_methods, device_methods},
                                     {Py_tp_doc, "Device that runs kernels."},
                                     {0, NULL}};

PyType_Spec vyp_device_spec = {
    "vyre.Device", sizeof(vyp_device), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, device_slots};
