/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls of kernels: binds arguments to parameters, makes outputs, runs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "job.h"

static void job_begin(vyp_job *job, vyp_kernel *kernel) {
  job->kernel = kernel;
  job->device = NULL;
  job->memory_count = 0;
  job->kept = NULL;
  job->bytes = job->number = 0;
  memset(job->values, 0, kernel->param_count * sizeof *job->values);
  memset(job->results, 0, kernel->output_count * sizeof *job->results);
  memset(job->temporaries, 0, kernel->output_count * sizeof *job->temporaries);
  memset(&job->options, 0, sizeof job->options);
  memset(&job->desc, 0, sizeof job->desc);
}

static void job_end(vyp_job *job) {
  for (uint32_t i = 0; i < job->memory_count; i++) {
    vyp_memory_release(&job->memory[i]);
  }
  for (uint32_t i = 0; i < job->kernel->output_count; i++) {
    if (job->device && job->temporaries[i].id) {
      vyre_buffer_destroy(job->device->handle, job->temporaries[i], NULL);
    }
    Py_CLEAR(job->results[i]);
  }
  Py_CLEAR(job->kept);
}

/* --- arguments ---------------------------------------------------------------------- */

static bool is_name(PyObject *a, PyObject *b) {
  return a == b || PyUnicode_Compare(a, b) == 0;
}

static bool read_options(vyp_call_options *o, PyObject *name, PyObject *value,
                         bool *found) {
  *found = true;
  if (is_name(name, vyp.str_out)) {
    o->out = value == Py_None ? NULL : value;
  } else if (is_name(name, vyp.str_device)) {
    o->device = value == Py_None ? NULL : value;
  } else if (is_name(name, vyp.str_stats)) {
    if (value != Py_None && !PyDict_Check(value)) {
      vyp_fail(PyExc_TypeError, "pass stats={}", "stats is a dict to fill");
      return false;
    }
    o->stats = value == Py_None ? NULL : value;
  } else if (is_name(name, vyp.str_timeout)) {
    double seconds = value == Py_None ? 0 : PyFloat_AsDouble(value);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      vyp_fail(PyExc_TypeError, "pass a number of seconds, 0 for no limit",
               "the timeout is %R", value);
      return false;
    }
    if (!(seconds >= 0 && seconds < 1e9)) {
      vyp_fail(PyExc_ValueError, "pass a number of seconds, 0 for no limit",
               "the timeout is negative or too large");
      return false;
    }
    o->timeout_ns = (uint64_t)(seconds * 1e9);
    if (seconds > 0 && o->timeout_ns == 0) o->timeout_ns = 1;
  } else if (is_name(name, vyp.str_grid)) {
    PyObject *list = PyLong_Check(value) ? PyTuple_Pack(1, value)
                     : value == Py_None  ? PyTuple_New(0)
                                         : PySequence_Tuple(value);
    Py_ssize_t count = list ? PyTuple_Size(list) : -1;
    for (Py_ssize_t i = 0; i < count && count <= 3; i++) {
      unsigned long long x =
          PyLong_AsUnsignedLongLong(PyTuple_GetItem(list, i));
      if (PyErr_Occurred() || x > UINT32_MAX) count = -1;
      if (count > 0) o->grid[i] = (uint32_t)x;
    }
    Py_XDECREF(list);
    if (count < 0 || count > 3) {
      PyErr_Clear();
      vyp_fail(PyExc_ValueError, "pass up to three numbers of workgroups",
               "the grid is not 1 to 3 numbers below 2^32");
      return false;
    }
  } else {
    *found = false;
  }
  return true;
}

static bool bind_keyword(vyp_job *job, PyObject *name, PyObject *value) {
  vyp_kernel *k = job->kernel;
  uint32_t at = k->param_count;
  for (uint32_t i = 0; i < k->param_count && at == k->param_count; i++) {
    if (k->params[i].name == name) at = i;
  }
  bool found = at < k->param_count;
  if (!found || at == k->param_count) {
    if (!read_options(&job->options, name, value, &found)) return false;
    if (found) return true;
    for (uint32_t i = 0; i < k->param_count; i++) {
      if (PyUnicode_Compare(k->params[i].name, name) == 0) at = i;
    }
  } else if (name == vyp.str_out) { /* a buffer called "out" */
    return read_options(&job->options, name, value, &found);
  }
  if (at == k->param_count) {
    PyObject *names = PyTuple_New((Py_ssize_t)k->param_count);
    for (uint32_t i = 0; names && i < k->param_count; i++) {
      Py_INCREF(k->params[i].name);
      PyTuple_SetItem(names, (Py_ssize_t)i, k->params[i].name);
    }
    PyErr_Format(PyExc_TypeError,
                 "kernel '%s' has no buffer called '%U'\nFix: use one of %R",
                 vyre_program_name(k->program), name, names);
    Py_XDECREF(names);
    return false;
  }
  if (job->values[at]) {
    vyp_fail(PyExc_TypeError, "pass it once", "'%U' is given twice", name);
    return false;
  }
  job->values[at] = value;
  return true;
}

static bool bind_arguments(vyp_job *job, PyObject *const *args, size_t count,
                           PyObject *names) {
  vyp_kernel *k = job->kernel;
  if (count > k->positional_count) {
    vyp_fail(PyExc_TypeError,
             "pass outputs as out=", "kernel '%s' takes %u inputs, not %zu",
             vyre_program_name(k->program), k->positional_count, count);
    return false;
  }
  for (size_t i = 0; i < count; i++) job->values[k->positional[i]] = args[i];
  Py_ssize_t keywords = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < keywords; i++) {
    if (!bind_keyword(job, PyTuple_GetItem(names, i),
                      args[count + (size_t)i])) {
      return false;
    }
  }
  for (uint32_t i = 0; i < k->positional_count; i++) {
    const vyp_param *p = &k->params[k->positional[i]];
    uint32_t extent;
    if (!job->values[k->positional[i]] &&
        !vyp_infer_uniform(job, k->positional[i], &extent)) {
      vyp_fail(PyExc_TypeError, "pass it by position or by name",
               "kernel '%s' misses '%U' (%s %s)", vyre_program_name(k->program),
               p->name, vyre_access_name(p->access),
               vyre_element_name(p->element));
      return false;
    }
  }
  return true;
}

/* --- inputs -------------------------------------------------------------------------- */

bool vyp_is_number(PyObject *value) {
  if (PyFloat_Check(value) || PyLong_Check(value)) return true;
  if (PyObject_TypeCheck(value, vyp.ndarray)) {
    if (PyObject_Size(value) >= 0) return false;
    PyErr_Clear(); /* an array of 0 dimensions has no length */
    return true;
  }
  return !PyObject_TypeCheck(value, vyp.buffer_type) &&
         (PyNumber_Check(value) || !vyp_is_array(value));
}

/* Notes the work that an input causes, for has_grown. */
static void note_work(vyp_job *job, const vyp_param *p, const vyre_input *in) {
  if (p->role != VYRE_ROLE_UNIFORM) {
    job->bytes += in->size;
    return;
  }
  bool is_unsigned =
      p->element == VYRE_ELEMENT_U32 || p->element == VYRE_ELEMENT_U64;
  bool is_signed =
      p->element == VYRE_ELEMENT_I32 || p->element == VYRE_ELEMENT_I64;
  if (!in->data || in->size != p->unit || !(is_unsigned || is_signed)) return;
  uint64_t number = 0;
  memcpy(&number, in->data, p->unit);
  bool is_negative = is_signed && number >> (p->unit * 8 - 1);
  if (number > job->number && !is_negative) job->number = number;
}

static bool add_input(vyp_job *job, uint32_t at) {
  const vyp_param *p = &job->kernel->params[at];
  PyObject *value = job->values[at];
  vyre_input *in =
      &job->inputs[p->role == VYRE_ROLE_PERSISTENT ? 0 : p->input_index];
  vyre_input local;
  if (p->role == VYRE_ROLE_PERSISTENT) in = &local;
  *in = (vyre_input){0};
  bool scalar = p->role == VYRE_ROLE_UNIFORM && p->count <= 1 && !p->dtype;
  if (!value) { /* an extent of an array */
    uint32_t extent = 0;
    vyp_infer_uniform(job, at, &extent);
    memcpy(job->scalars[at], &extent, sizeof extent);
    *in = (vyre_input){.data = job->scalars[at], .size = sizeof extent};
  } else if (scalar && vyp_is_number(value)) {
    if (!vyp_uniform_pack(value, p, job->scalars[at])) return false;
    in->data = job->scalars[at];
    in->size = p->element_size;
  } else {
    vyp_memory *m = &job->memory[job->memory_count];
    bool fine = vyp_memory_get(value, p, job->device, false, m);
    job->memory_count++;
    if (!fine) return false;
    *in = (vyre_input){m->data, m->size, m->buffer, m->offset};
  }
  if (p->role == VYRE_ROLE_PERSISTENT && !in->buffer.id) {
    vyp_fail(PyExc_TypeError, "pass vyre.Buffer.of(array)",
             "persistent buffer '%U' takes a vyre.Buffer", p->name);
    return false;
  }
  if (job->kernel->has_persistent) job->resources[p->resource_index] = *in;
  note_work(job, p, in);
  return true;
}

static bool add_inputs(vyp_job *job) {
  vyp_kernel *k = job->kernel;
  for (uint32_t i = 0; i < k->positional_count; i++) {
    if (!add_input(job, k->positional[i])) return false;
  }
  for (uint32_t i = 0; k->has_dimensions && i < k->positional_count; i++) {
    const vyp_param *p = &k->params[k->positional[i]];
    if (p->dimension_count > 1 && p->input_index != VYRE_NO_INDEX &&
        !vyp_check_shape(job, p, job->values[k->positional[i]],
                         job->inputs[p->input_index].size)) {
      return false;
    }
  }
  return true;
}

/* --- outputs ------------------------------------------------------------------------- */

/* Returns true if new outputs are device buffers, because the first array
 * argument is one. */
static bool makes_buffers(const vyp_job *job) {
  const vyp_kernel *k = job->kernel;
  for (uint32_t i = 0; i < k->positional_count; i++) {
    PyObject *value = job->values[k->positional[i]];
    if (k->params[k->positional[i]].role == VYRE_ROLE_UNIFORM) continue;
    return PyObject_TypeCheck(value, vyp.buffer_type);
  }
  return false;
}

static PyObject *make_output(vyp_job *job, uint32_t at) {
  const vyp_param *p = &job->kernel->params[at];
  Py_ssize_t shape[8];
  int ndim = 1;
  if (!vyp_output_shape(job, at, &ndim, shape)) return NULL;
  if (makes_buffers(job)) {
    return (PyObject *)vyp_buffer_new(job->device, p->element, p->dtype, ndim,
                                      shape);
  }
  return vyp_array_new(p->element, p->dtype, ndim, shape);
}

/* Binds output @p index to @p target, of which it takes a reference. */
static bool bind_output(vyp_job *job, uint32_t index, PyObject *target) {
  vyp_kernel *k = job->kernel;
  const vyp_param *p = &k->params[k->outputs[index]];
  job->results[index] = target;
  vyp_memory *m = &job->memory[job->memory_count];
  bool fine = vyp_memory_get(target, p, job->device, true, m);
  job->memory_count++;
  if (!fine) return false;
  job->bytes += m->size;
  vyre_output *out = &job->outputs[index];
  *out = (vyre_output){m->data, m->size, NULL, m->buffer, m->offset, NULL};
  if (m->buffer.id) out->size = 0;
  bool from_buffer =
      p->input_index != VYRE_NO_INDEX && job->inputs[p->input_index].buffer.id;
  if (from_buffer && !m->buffer.id) {
    /* A device buffer that is not named as an output must not change. */
    out->new_buffer = &job->temporaries[index];
  }
  if (k->has_persistent) {
    if (m->buffer.id) {
      job->resources[p->resource_index] =
          (vyre_input){NULL, m->size, m->buffer, m->offset};
      *out = (vyre_output){0};
    } else if (p->input_index == VYRE_NO_INDEX) {
      job->resources[p->resource_index] = (vyre_input){.size = m->size};
    }
  }
  return true;
}

static PyObject *given_output(vyp_job *job, uint32_t index) {
  PyObject *out = job->options.out;
  if (!out) return NULL;
  uint32_t count = job->kernel->output_count;
  PyObject *one = out;
  if (PyTuple_Check(out)) {
    if (PyTuple_Size(out) != (Py_ssize_t)count) {
      vyp_fail(PyExc_TypeError,
               "pass one array per output, in the order of the text",
               "kernel '%s' has %u outputs, and out has %zd",
               vyre_program_name(job->kernel->program), count,
               PyTuple_Size(out));
      return NULL;
    }
    one = PyTuple_GetItem(out, (Py_ssize_t)index);
  } else if (count != 1) {
    vyp_fail(PyExc_TypeError, "pass a tuple; None in it asks for a new array",
             "kernel '%s' has %u outputs, and out is one object",
             vyre_program_name(job->kernel->program), count);
    return NULL;
  }
  if (one == Py_None) return NULL;
  Py_INCREF(one);
  return one;
}

static bool add_outputs(vyp_job *job) {
  vyp_kernel *k = job->kernel;
  if (job->options.out && k->output_count == 0) {
    vyp_fail(PyExc_TypeError, "leave out= away", "kernel '%s' has no outputs",
             vyre_program_name(k->program));
    return false;
  }
  for (uint32_t i = 0; i < k->output_count; i++) {
    PyObject *target = given_output(job, i);
    if (!target && !PyErr_Occurred()) target = make_output(job, k->outputs[i]);
    if (!target || !bind_output(job, i, target)) return false;
    const vyp_param *p = &k->params[k->outputs[i]];
    if (p->dimension_count > 1 && job->options.out &&
        !vyp_check_shape(job, p, target, job->outputs[i].size)) {
      return false;
    }
  }
  return true;
}

static PyObject *take_result(vyp_job *job) {
  uint32_t count = job->kernel->output_count;
  if (count == 0) Py_RETURN_NONE;
  if (count == 1) {
    PyObject *result = job->results[0];
    job->results[0] = NULL;
    return result;
  }
  PyObject *tuple = PyTuple_New((Py_ssize_t)count);
  for (uint32_t i = 0; tuple && i < count; i++) {
    PyTuple_SetItem(tuple, (Py_ssize_t)i, job->results[i]);
    job->results[i] = NULL;
  }
  return tuple;
}

/* --- running -------------------------------------------------------------------------- */

static void fill_desc(vyp_job *job) {
  vyre_dispatch_desc *d = &job->desc;
  const vyp_kernel *k = job->kernel;
  if (k->has_persistent) {
    d->resources = job->resources;
    d->resource_count = k->resource_count;
  } else {
    d->inputs = job->inputs;
    d->input_count = k->input_count;
  }
  d->outputs = job->outputs;
  d->output_count = k->output_count;
  memcpy(d->grid, job->options.grid, sizeof d->grid);
  d->timeout_ns = job->options.timeout_ns;
  if (job->options.stats) {
    d->timing = &job->timing;
    d->copies = &job->copies;
  }
}

static bool put(PyObject *dict, const char *name, bool has, uint64_t value) {
  PyObject *number = NULL;
  if (has) {
    number = PyLong_FromUnsignedLongLong(value);
  } else {
    number = Py_None;
    Py_INCREF(number);
  }
  int code = number ? PyDict_SetItemString(dict, name, number) : -1;
  Py_XDECREF(number);
  return code == 0;
}

static bool fill_stats(const vyp_job *job) {
  PyObject *s = job->options.stats;
  const vyre_timing *t = &job->timing;
  const vyre_copy_report *c = &job->copies;
  if (!s) return true;
  return put(s, "wall_ns", true, t->wall_ns) &&
         put(s, "device_ns", t->has_device, t->device_ns) &&
         put(s, "enqueue_ns", t->has_enqueue, t->enqueue_ns) &&
         put(s, "wait_ns", t->has_wait, t->wait_ns) &&
         put(s, "borrowed_bytes", true, c->borrowed_bytes) &&
         put(s, "device_buffer_bytes", true, c->device_buffer_bytes) &&
         put(s, "copied_bytes", true, c->copied_bytes) &&
         put(s, "copies", true, c->copies);
}

static uint64_t coarse_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool bind_memory(vyp_job *job) {
  if (!add_inputs(job) || !add_outputs(job)) return false;
  fill_desc(job);
  return true;
}

/* Compiles, and binds all memory. */
static bool prepare(vyp_job *job, const vyre_compile_options *options) {
  vyp_kernel *k = job->kernel;
  if (job->options.device) {
    job->device = vyp_device_find(job->options.device);
    /* The table of devices keeps it alive. */
    Py_XDECREF(job->device);
  } else {
    job->device = vyp_device_default();
  }
  if (!job->device) return false;
  vyp_compiled *c = atomic_load_explicit(&k->current, memory_order_acquire);
  if (options || !c || c->device != job->device ||
      c->generation != job->device->generation) {
    static const vyre_compile_options defaults;
    c = vyp_kernel_compile(k, job->device, options ? options : &defaults);
    if (!c) return false;
    if (!options && !job->options.device) atomic_store(&k->current, c);
  }
  job->compiled = c;
  return bind_memory(job);
}

static void free_figures(PyObject *capsule) {
  free(PyCapsule_GetPointer(capsule, "vyre.figures"));
}

/* Returns true if a call may take long, although calls before were fast. */
static bool has_grown(const vyp_job *job) {
  vyp_compiled *c = job->compiled;
  uint64_t bytes = atomic_load_explicit(&c->fast_bytes, memory_order_relaxed);
  uint64_t number = atomic_load_explicit(&c->fast_number, memory_order_relaxed);
  return (job->bytes > VYP_FEW_BYTES && job->bytes / VYP_GROWTH > bytes) ||
         (job->number > VYP_SMALL_NUMBER && job->number / VYP_GROWTH > number);
}

/* Notes how long a call took. */
static void note_time(const vyp_job *job, uint64_t ns) {
  vyp_compiled *c = job->compiled;
  bool is_slow = ns > VYP_SLOW_NS;
  if (is_slow != atomic_load_explicit(&c->is_slow, memory_order_relaxed)) {
    atomic_store(&c->is_slow, is_slow);
  }
  if (is_slow) return;
  if (job->bytes > atomic_load_explicit(&c->fast_bytes, memory_order_relaxed))
    atomic_store(&c->fast_bytes, job->bytes);
  if (job->number > atomic_load_explicit(&c->fast_number, memory_order_relaxed))
    atomic_store(&c->fast_number, job->number);
}

static PyObject *run_now(vyp_job *job) {
  vyre_status st;
  vyre_code code;
  uint64_t start = coarse_now();
  Py_BEGIN_ALLOW_THREADS code =
      vyre_dispatch(job->compiled->pipeline, &job->desc, &st);
  Py_END_ALLOW_THREADS note_time(job, coarse_now() - start);
  if (code != VYRE_OK) return vyp_raise(&st);
  return fill_stats(job) ? take_result(job) : NULL;
}

/* --- submitted work --------------------------------------------------------------------- */

static void job_free(PyObject *capsule) {
  vyp_job *job = PyCapsule_GetPointer(capsule, "vyre.job");
  if (!job) return;
  Py_CLEAR(job->options.stats);
  job_end(job);
  Py_DECREF(job->kernel);
  free(job);
}

/* Makes a call that outlives its caller. The capsule owns it and keeps all
 * arguments. */
static vyp_job *job_new(vyp_kernel *kernel, PyObject **capsule) {
  vyp_job *job = malloc(sizeof *job);
  if (!job) return (void)PyErr_NoMemory(), NULL;
  job_begin(job, kernel);
  *capsule = PyCapsule_New(job, "vyre.job", job_free);
  if (!*capsule) {
    free(job);
    return NULL;
  }
  Py_INCREF(kernel);
  return job;
}

static bool keep_arguments(vyp_job *job) {
  Py_XINCREF(job->options.stats);
  job->kept = PyList_New(0);
  for (uint32_t i = 0; job->kept && i < job->kernel->param_count; i++) {
    if (job->values[i] && PyList_Append(job->kept, job->values[i]) < 0)
      return false;
  }
  return job->kept &&
         (!job->options.out || PyList_Append(job->kept, job->options.out) == 0);
}

/* Binds, submits with a fence, and returns the fence. */
static vyre_fence *submit_job(vyp_job *job,
                              const vyre_compile_options *options) {
  if (!keep_arguments(job) || !prepare(job, options)) return NULL;
  job->desc.is_borrowed = true;
  vyre_status st;
  vyre_fence *fence = NULL;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_submit(job->compiled->pipeline, &job->desc, 1, &fence, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) vyp_raise(&st);
  return fence;
}

bool vyp_is_main_thread(void) {
  return PyThread_get_thread_ident() == vyp.main_thread;
}

/* Runs through the queue of the device, so that Ctrl-C ends the wait. */
static PyObject *run_interruptible(vyp_kernel *kernel, PyObject *const *args,
                                   size_t count, PyObject *names,
                                   const vyre_compile_options *options,
                                   PyObject *device) {
  PyObject *capsule;
  vyp_job *job = job_new(kernel, &capsule);
  if (!job) return NULL;
  PyObject *result = NULL;
  vyre_fence *fence = NULL;
  uint64_t start = coarse_now();
  if (bind_arguments(job, args, count, names)) {
    if (device && !job->options.device) job->options.device = device;
    fence = submit_job(job, options);
  }
  if (fence && vyp_wait_interruptible(fence, capsule, job->device)) {
    note_time(job, coarse_now() - start);
    if (fill_stats(job)) result = take_result(job);
  }
  if (fence) vyre_fence_release(fence);
  Py_DECREF(capsule);
  return result;
}

PyObject *vyp_run_custom(vyp_kernel *kernel, vyp_device *device,
                         PyObject *owner, PyObject *const *args, size_t count,
                         PyObject *names, const vyp_custom_run *run) {
  PyObject *capsule, *result = NULL;
  vyp_job *job = job_new(kernel, &capsule);
  if (!job) return NULL;
  vyre_fence *fence = NULL;
  vyre_status st;
  /* Waiting may end before the run does, which then needs these figures. */
  void *figures = calloc(1, run->figure_bytes);
  PyObject *kept = figures
                       ? PyCapsule_New(figures, "vyre.figures", free_figures)
                       : PyErr_NoMemory();
  bool fine = kept && bind_arguments(job, args, count, names);
  if (fine && job->options.device) {
    vyp_fail(PyExc_TypeError, "choose the device of the queue",
             "a run of a queue takes no device");
    fine = false;
  }
  job->device = device;
  if (fine && keep_arguments(job) && bind_memory(job) &&
      PyList_Append(job->kept, kept) == 0 &&
      PyList_Append(job->kept, owner) == 0) {
    job->desc.is_borrowed = true;
    vyre_code code;
    bool is_main = vyp_is_main_thread();
    Py_BEGIN_ALLOW_THREADS code =
        run->run(run->self, &job->desc, figures, is_main ? &fence : NULL, &st);
    Py_END_ALLOW_THREADS bool done = code == VYRE_OK;
    if (!done) {
      vyp_raise(&st);
    } else if (fence) {
      done = vyp_wait_interruptible(fence, capsule, device);
      if (!done && !vyre_fence_is_done(fence)) run->cancel(run->self);
    }
    if (figures && (!fence || vyre_fence_is_done(fence))) {
      memcpy(run->figures, figures, run->figure_bytes);
    }
    if (done) result = take_result(job);
  }
  if (fence) vyre_fence_release(fence);
  Py_XDECREF(kept);
  Py_DECREF(capsule);
  return result;
}

static PyObject *call(vyp_kernel *kernel, PyObject *const *args, size_t count,
                      PyObject *names, const vyre_compile_options *options,
                      PyObject *device) {
  vyp_compiled *c =
      atomic_load_explicit(&kernel->current, memory_order_acquire);
  if ((!c || options ||
       atomic_load_explicit(&c->is_slow, memory_order_relaxed)) &&
      vyp_is_main_thread()) {
    bool slow = true;
    if (options || !c) {
      for (vyp_compiled *o = atomic_load(&kernel->compiled); o && options;
           o = o->next) {
        if ((PyObject *)o->device == device &&
            vyp_same_options(&o->options, options)) {
          slow = atomic_load(&o->is_slow);
        }
      }
    }
    if (slow)
      return run_interruptible(kernel, args, count, names, options, device);
  }
  vyp_job job;
  job_begin(&job, kernel);
  PyObject *result = NULL;
  bool is_long = false;
  if (bind_arguments(&job, args, count, names)) {
    if (device && !job.options.device) job.options.device = device;
    if (prepare(&job, options)) {
      is_long = has_grown(&job) && vyp_is_main_thread();
      if (!is_long) result = run_now(&job);
    }
  }
  job_end(&job);
  return is_long
             ? run_interruptible(kernel, args, count, names, options, device)
             : result;
}

PyObject *vyp_kernel_call(PyObject *self, PyObject *const *args, size_t nargs,
                          PyObject *names) {
  return call((vyp_kernel *)self, args, (size_t)PyVectorcall_NARGS(nargs),
              names, NULL, NULL);
}

PyObject *vyp_launch_call(PyObject *self, PyObject *const *args, size_t nargs,
                          PyObject *names) {
  vyp_launch *l = (vyp_launch *)self;
  return call(l->kernel, args, (size_t)PyVectorcall_NARGS(nargs), names,
              &l->options, l->device);
}

static PyObject *submit(vyp_kernel *kernel, PyObject *const *args, size_t count,
                        PyObject *names, const vyre_compile_options *options,
                        PyObject *device) {
  PyObject *capsule;
  vyp_job *job = job_new(kernel, &capsule);
  if (!job) return NULL;
  vyre_fence *fence = NULL;
  if (bind_arguments(job, args, count, names)) {
    if (device && !job->options.device) job->options.device = device;
    fence = submit_job(job, options);
  }
  PyObject *result = fence ? take_result(job) : NULL;
  PyObject *pending =
      result ? vyp_pending_new(fence, capsule, result, job->device) : NULL;
  if (fence && !pending) vyre_fence_release(fence);
  Py_XDECREF(result);
  Py_DECREF(capsule);
  return pending;
}

PyObject *vyp_kernel_submit(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *names) {
  return submit((vyp_kernel *)self, args, (size_t)nargs, names, NULL, NULL);
}

PyObject *vyp_launch_submit(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *names) {
  vyp_launch *l = (vyp_launch *)self;
  return submit(l->kernel, args, (size_t)nargs, names, &l->options, l->device);
}

/* --- checked runs -------------------------------------------------------------------------- */

static PyObject *findings_of(const vyre_check_report *report) {
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < report->count; i++) {
    const vyre_finding *f = &report->findings[i];
    PyObject *item = Py_BuildValue(
        "{sssIsIsIsIsssKsOsIs(III)s(III)sKssss}", "kind",
        vyre_finding_name(f->kind), "line", f->line, "column", f->column,
        "other_line", f->other_line, "other_column", f->other_column, "buffer",
        f->buffer, "index", (unsigned long long)f->index, "index_is_negative",
        f->index_is_negative ? Py_True : Py_False, "length", f->length,
        "invocation", f->invocation[0], f->invocation[1], f->invocation[2],
        "other_invocation", f->other_invocation[0], f->other_invocation[1],
        f->other_invocation[2], "count", (unsigned long long)f->count,
        "message", f->message, "fix", f->fix);
    if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyObject *raise_findings(vyp_kernel *k,
                                const vyre_check_report *report) {
  Py_ssize_t length = 0;
  const char *source =
      k->text != Py_None ? PyUnicode_AsUTF8AndSize(k->text, &length) : NULL;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_check_report_print(report, PyUnicode_AsUTF8AndSize(k->file, NULL),
                          source, (size_t)length, writer);
  PyObject *printed = vyp_text_take(&text);
  PyObject *list = printed ? findings_of(report) : NULL;
  if (list) {
    PyObject *error =
        PyObject_CallMethod(vyp.support, "check_failed", "OO", printed, list);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
  }
  Py_XDECREF(printed);
  Py_XDECREF(list);
  return NULL;
}

/* _check(schedules, seed, *args, **buffers): runs on ref with all checks. */
PyObject *vyp_kernel_check(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *names) {
  vyp_kernel *k = (vyp_kernel *)self;
  unsigned long schedules = PyLong_AsUnsignedLong(args[0]);
  unsigned long long seed = PyLong_AsUnsignedLongLong(args[1]);
  if (PyErr_Occurred() || schedules > UINT32_MAX) {
    PyErr_Clear();
    return vyp_fail(PyExc_ValueError, "pass numbers of 0 or more",
                    "schedules is %R and seed is %R", args[0], args[1]);
  }
  PyObject *ref = PyUnicode_FromString("ref");
  if (!ref) return NULL;
  vyre_check_report report = {0};
  PyObject *result = NULL;
  vyp_job job;
  job_begin(&job, k);
  if (bind_arguments(&job, args + 2, (size_t)nargs - 2, names)) {
    job.options.device = ref;
    if (prepare(&job, NULL)) {
      job.desc.check = (vyre_check_options){.out_of_bounds = true,
                                            .races = true,
                                            .schedules = (uint32_t)schedules,
                                            .seed = seed};
      job.desc.report = &report;
      result = run_now(&job);
    }
  }
  if (result && report.count > 0) {
    Py_CLEAR(result);
    raise_findings(k, &report);
  }
  job_end(&job);
  vyre_check_report_deinit(&report);
  Py_DECREF(ref);
  return result;
}
