/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Submitted work, and waits that Ctrl-C can end. */
#include <string.h>

#include "internal.h"

/* Time between two looks at signals. */
enum { SLICE_NS = 50000000 };

typedef struct vyp_pending {
  PyObject_HEAD vyre_fence *fence;
  uint64_t epoch;
  PyObject *kept;   /* arguments; NULL once the work has finished */
  PyObject *result; /* what the call returns */
} vyp_pending;

/* Work whose caller is gone. Its memory is kept until it has finished. */
typedef struct abandoned {
  struct abandoned *next;
  vyre_fence *fence;
  PyObject *kept, *result;
} abandoned;

static abandoned *abandoned_work;

static void sweep(void) {
  abandoned **at = &abandoned_work;
  while (*at) {
    abandoned *a = *at;
    if (!vyre_fence_is_done(a->fence)) {
      at = &a->next;
      continue;
    }
    *at = a->next;
    vyre_fence_release(a->fence);
    Py_XDECREF(a->kept);
    Py_XDECREF(a->result);
    PyMem_Free(a);
  }
}

/* Keeps objects until @p fence is done. Without memory for that they leak,
 * which is better than freeing memory in use. */
static void abandon(vyre_fence *fence, PyObject *kept, PyObject *result) {
  sweep();
  Py_XINCREF(kept);
  Py_XINCREF(result);
  abandoned *a = PyMem_Malloc(sizeof *a);
  if (!a) return;
  *a = (abandoned){abandoned_work, vyre_fence_retain(fence), kept, result};
  abandoned_work = a;
}

static bool is_timeout(const vyre_status *st, vyre_fence *fence) {
  return st->kind == VYRE_KIND_TIMED_OUT && !vyre_fence_is_done(fence);
}

/* Waits for at most @p limit_ns. Returns 1 when done, 0 after the limit, and
 * -1 with an exception. */
static int wait_for(vyre_fence *fence, uint64_t limit_ns) {
  vyre_status st;
  uint64_t left = limit_ns;
  for (;;) {
    uint64_t slice = left < SLICE_NS ? left : SLICE_NS;
    vyre_code code;
    Py_BEGIN_ALLOW_THREADS code = vyre_fence_wait(fence, slice, &st);
    Py_END_ALLOW_THREADS if (code == VYRE_OK) return 1;
    if (!is_timeout(&st, fence)) {
      vyp_raise(&st);
      return -1;
    }
    if (PyErr_CheckSignals() < 0) return -1;
    if (left != VYRE_WAIT_FOREVER) left -= slice;
    if (left == 0) return 0;
  }
}

bool vyp_wait_interruptible(vyre_fence *fence, PyObject *kept,
                            vyp_device *device) {
  (void)device;
  if (wait_for(fence, VYRE_WAIT_FOREVER) > 0) return true;
  if (!vyre_fence_is_done(fence)) abandon(fence, kept, NULL);
  return false;
}

PyObject *vyp_pending_new(vyre_fence *fence, PyObject *kept, PyObject *result,
                          vyp_device *device) {
  (void)device;
  sweep();
  vyp_pending *p = PyObject_New(vyp_pending, vyp.pending_type);
  if (!p) {
    abandon(fence, kept, result);
    return NULL;
  }
  p->fence = fence;
  p->epoch = atomic_load(&vyp.epoch);
  p->kept = kept;
  p->result = result;
  Py_XINCREF(kept);
  Py_XINCREF(result);
  PyObject *future = PyObject_CallMethod(vyp.support, "future", "N", p);
  return future;
}

static void pending_dealloc(PyObject *self) {
  vyp_pending *p = (vyp_pending *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (p->kept && !vyre_fence_is_done(p->fence)) {
    abandon(p->fence, p->kept, p->result);
  }
  vyre_fence_release(p->fence);
  Py_XDECREF(p->kept);
  Py_XDECREF(p->result);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *pending_done(PyObject *self, PyObject *unused) {
  (void)unused;
  return PyBool_FromLong(vyre_fence_is_done(((vyp_pending *)self)->fence));
}

/* wait(seconds or None) -> bool; raises the failure of the work */
static PyObject *pending_wait(PyObject *self, PyObject *limit) {
  vyp_pending *p = (vyp_pending *)self;
  uint64_t ns = VYRE_WAIT_FOREVER;
  if (limit != Py_None) {
    double seconds = PyFloat_AsDouble(limit);
    if (PyErr_Occurred()) return NULL;
    ns = seconds <= 0    ? 0
         : seconds > 1e9 ? VYRE_WAIT_FOREVER
                         : (uint64_t)(seconds * 1e9);
  }
  int done = wait_for(p->fence, ns);
  if (vyre_fence_is_done(p->fence)) Py_CLEAR(p->kept);
  return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *pending_fd(PyObject *self, PyObject *unused) {
  (void)unused;
  int fd;
  vyre_status st;
  if (vyre_fence_fd(((vyp_pending *)self)->fence, &fd, &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  return PyLong_FromLong(fd);
}

static PyObject *get_result(PyObject *self, void *closure) {
  (void)closure;
  PyObject *result = ((vyp_pending *)self)->result;
  Py_INCREF(result);
  return result;
}

static PyGetSetDef pending_getset[] = {{"value", get_result, NULL, NULL, NULL},
                                       {0}};

static PyMethodDef pending_methods[] = {
    {"done", pending_done, METH_NOARGS, NULL},
    {"wait", pending_wait, METH_O, NULL},
    {"fileno", pending_fd, METH_NOARGS, NULL},
    {0}};

static PyType_Slot pending_slots[] = {{Py_tp_dealloc, pending_dealloc},
                                      {Py_tp_getset, pending_getset},
                                      {Py_tp_methods, pending_methods},
                                      {0, NULL}};

PyType_Spec vyp_pending_spec = {
    "vyre._vyre.Pending", sizeof(vyp_pending), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, pending_slots};
