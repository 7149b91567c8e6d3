/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared declarations of the extension module vyre._vyre. */
#ifndef VYRE_PYTHON_INTERNAL_H
#define VYRE_PYTHON_INTERNAL_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY   READONLY
#endif
#ifdef Py_LIMITED_API
/* The macros of the stable ABI take only PyObject *. */
#undef Py_INCREF
#undef Py_DECREF
#undef Py_XINCREF
#undef Py_XDECREF
#define Py_INCREF(object)  Py_IncRef((PyObject *)(object))
#define Py_DECREF(object)  Py_DecRef((PyObject *)(object))
#define Py_XINCREF(object) Py_IncRef((PyObject *)(object))
#define Py_XDECREF(object) Py_DecRef((PyObject *)(object))
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <vyre/vyre.h>

/* Maximum number of buffers of a kernel that a call can bind. */
enum { VYP_MAX_PARAMS = 64 };

/* Most bytes of a uniform that is given as numbers: four of 64 bits. */
enum { VYP_UNIFORM_BYTES = 32 };

/* A run that takes longer makes the next one interruptible by Ctrl-C, through
 * the queue of the device. */
enum { VYP_SLOW_NS = 10000000 };

/* A call with so many times the work of a fast one can be slow, unless it has
 * few bytes and small numbers. */
enum { VYP_GROWTH = 4, VYP_FEW_BYTES = 1 << 20, VYP_SMALL_NUMBER = 1 << 10 };

/* --- devices (device.c) ---------------------------------------------------- */

/* Device that was opened. There is one object per device and process. */
typedef struct vyp_device {
  PyObject_HEAD vyre_device *handle;
  uint64_t epoch;      /* of the process that opened it: counts forks */
  uint64_t generation; /* unique number of `handle` */
  PyObject *name;      /* "cpu" */
  bool has_host_view;  /* device buffers are host memory */
} vyp_device;

/* --- arrays (array.c) ------------------------------------------------------- */

/* Memory of an argument. */
typedef struct vyp_memory {
  void *data;         /* host memory; NULL for a device buffer */
  size_t size;        /* bytes */
  vyre_buffer buffer; /* device buffer, if not zeroed */
  uint64_t offset;    /* start in the device buffer */
  bool is_writable;
  bool has_view;   /* `view` must be released */
  PyObject *owner; /* keeps the memory alive; NULL: the argument does */
  Py_buffer view;
} vyp_memory;

/* --- kernels (kernel.c, call.c) ---------------------------------------------- */

/* Parameter of a kernel: a buffer or a uniform. */
typedef struct vyp_param {
  PyObject *name; /* interned */
  vyre_role role;
  vyre_element element;  /* of a struct: VYRE_ELEMENT_BYTES */
  PyObject *dtype;       /* of records: structs and sums; or NULL */
  const char *record;    /* name of the struct, or NULL */
  uint32_t unit;         /* bytes of a component; 1 for `bytes` */
  uint32_t lanes;        /* components of an element */
  uint32_t element_size; /* unit * lanes */
  uint32_t count;        /* declared elements; 0: any number */
  uint32_t input_index, output_index; /* VYRE_NO_INDEX: none */
  uint32_t resource_index;            /* in order of binding numbers */
  vyre_access access;
  uint32_t declared; /* index among the declarations of the program */
  /* as in vyre_buffer_decl */
  uint8_t dimension_count, dimension_uniforms;
  uint32_t dimensions[VYRE_MAX_DIMENSIONS];
} vyp_param;

/* Kernel compiled for a device. Entries are only added until the kernel is
 * freed, so that calls need no lock. */
typedef struct vyp_compiled {
  struct vyp_compiled *next;
  vyp_device *device;
  uint64_t generation;
  vyre_pipeline *pipeline;
  vyre_compile_options options;
  /* The last run took long enough to make the next one interruptible. */
  _Atomic bool is_slow;
  /* Work of the largest run that was fast, as far as arguments tell it: bytes
   * of its buffers, and the largest integer of its uniforms. */
  _Atomic uint64_t fast_bytes, fast_number;
} vyp_compiled;

typedef struct vyp_kernel {
  PyObject_HEAD vectorcallfunc vectorcall;
  vyre_program *program;
  PyObject *text, *file; /* source text, or None; name of its file */
  vyp_param *params;     /* in declaration order, without shared buffers */
  uint32_t param_count, input_count, output_count, resource_count;
  /* Parameters that take an input in declaration order, and outputs. */
  uint32_t positional[VYP_MAX_PARAMS], outputs[VYP_MAX_PARAMS];
  uint32_t positional_count;
  bool has_persistent, has_dimensions;
  _Atomic(vyp_compiled *) compiled; /* list */
  _Atomic(vyp_compiled *) current;  /* entry of the default device */
} vyp_kernel;

/* Kernel with a device and compile options. */
typedef struct vyp_launch {
  PyObject_HEAD vectorcallfunc vectorcall;
  vyp_kernel *kernel;
  PyObject *device; /* vyp_device */
  vyre_compile_options options;
} vyp_launch;

/* Options of one call. */
typedef struct vyp_call_options {
  PyObject *out;    /* borrowed; NULL: new outputs */
  PyObject *device; /* borrowed; NULL: the default device */
  uint32_t grid[3];
  uint64_t timeout_ns;
  PyObject *stats; /* borrowed; dict that receives figures, or NULL */
} vyp_call_options;

typedef struct vyp_buffer {
  PyObject_HEAD vyp_device *device;
  uint64_t generation;
  vyre_buffer handle;
  uint64_t offset;      /* bytes; of a slice */
  uint64_t size;        /* bytes */
  void *mapped;         /* host address of the first byte, or NULL */
  PyObject *dtype;      /* numpy.dtype */
  vyre_element element; /* of a record: VYRE_ELEMENT_BYTES, or a sum */
  bool is_record;
  uint32_t unit;    /* bytes of an element */
  PyObject *format; /* of the buffer protocol, a str */
  PyObject *base;   /* buffer that a slice belongs to, or NULL */
  PyObject *holder; /* object that owns imported memory, or NULL */
  Py_ssize_t ndim;
  Py_ssize_t shape[8], strides[8];
} vyp_buffer;

/* State of the module. */
typedef struct vyp_state {
  PyTypeObject *ndarray; /* numpy.ndarray */
  PyObject *memmap;      /* numpy.memmap */
  PyObject *(*empty)(int, const Py_ssize_t *, PyObject *, int);
  PyObject *(*descr)(int);
  bool has_headers; /* the header of arrays can be read directly */
  PyObject *make_error, *support; /* vyre.errors.make, vyre._support */
  PyTypeObject *kernel_type, *launch_type, *device_type, *buffer_type,
      *pending_type, *recording_type, *graph_type, *queue_type;
  vyre_context *context;        /* NULL until the first use */
  vyp_device *default_device;   /* NULL until the first use */
  PyObject *devices;            /* name -> device */
  PyObject *default_name;       /* requested default device */
  _Atomic uint64_t epoch;       /* increases in a forked child */
  _Atomic uint64_t generations; /* last number of a device handle */
  unsigned long main_thread;
  PyObject *str_out, *str_device, *str_grid, *str_timeout, *str_stats;
} vyp_state;

extern vyp_state vyp;

/* errors.c: raise an exception for a failure of the library, and return NULL.
 * `text` is the printed diagnostics or NULL; `findings` a list or NULL. */
PyObject *vyp_raise(const vyre_status *st);
PyObject *vyp_raise_with(const vyre_status *st, PyObject *text,
                         PyObject *findings);
/* Raises @p type with a message, and a second line with the fix. */
PyObject *vyp_fail(PyObject *type, const char *fix, const char *format, ...);
/* Collects text that the library writes. */
typedef struct vyp_text {
  char *data;
  size_t length, capacity;
  bool has_failed;
} vyp_text;
vyre_writer vyp_text_writer(vyp_text *text);
PyObject *vyp_text_take(vyp_text *text);

/* device.c */
vyre_context *vyp_context(void);                   /* NULL with an exception */
vyp_device *vyp_device_find(PyObject *name);       /* new reference */
vyp_device *vyp_device_or_default(PyObject *name); /* new reference */
vyp_device *vyp_device_default(void);              /* borrowed */
bool vyp_device_ready(vyp_device *device);         /* reopens it after a fork */

/* array.c */
bool vyp_array_setup(void);
bool vyp_memory_get(PyObject *arg, const vyp_param *param, vyp_device *device,
                    bool for_output, vyp_memory *out);
void vyp_memory_release(vyp_memory *memory);
/* Stores the bytes of a number, or of a sequence of numbers for a vector. */
bool vyp_uniform_pack(PyObject *arg, const vyp_param *param,
                      uint8_t out[VYP_UNIFORM_BYTES]);
bool vyp_is_array(PyObject *arg);
/* Stores the shape of an argument of @p bytes, UINT64_MAX: not known; returns
 * the number of its dimensions, or -1. */
int vyp_shape_of(PyObject *arg, const vyp_param *param, uint64_t bytes,
                 Py_ssize_t shape[8]);
/* Returns true if a uniform of one element takes @p value as a number, not as
 * memory. NumPy's scalars are numbers: their values are checked, as those of
 * Python are. */
bool vyp_is_number(PyObject *value);
/* Describes memory of one element type, for vyp_memory_get. Borrows both
 * objects; the dtype matters for records only, and can be NULL for others. */
void vyp_param_of_element(vyp_param *out, PyObject *name, vyre_element element,
                          PyObject *dtype);
int vyp_find_element(PyObject *dtype); /* -1 with an exception */
/* Returns the bytes of a record of a dtype, 0 if it is not one of records, and
 * -1 with an exception. */
Py_ssize_t vyp_record_size(PyObject *dtype);
bool vyp_same_dtype(PyObject *a, PyObject *b);
/* Makes an array of an element type, or of records. */
PyObject *vyp_array_new(vyre_element element, PyObject *record, int ndim,
                        const Py_ssize_t *shape);
/* Returns the name of the type that a parameter takes, for messages. */
PyObject *vyp_type_text(const vyp_param *param);
int vyp_type_number(vyre_element element); /* of NumPy; -1: bf16 */

/* kernel.c */
vyp_compiled *vyp_kernel_compile(vyp_kernel *kernel, vyp_device *device,
                                 const vyre_compile_options *options);
PyObject *vyp_kernel_wrap(vyre_program *program, PyObject *text,
                          PyObject *file);

/* Raises an exception with printed diagnostics. */
PyObject *vyp_raise_diagnostics(const vyre_status *st,
                                const vyre_diagnostics *diagnostics,
                                PyObject *text, PyObject *file);
PyObject *vyp_parse(PyObject *self, PyObject *args);
PyObject *vyp_from_bytes(PyObject *self, PyObject *args);

/* call.c */
PyObject *vyp_kernel_call(PyObject *self, PyObject *const *args, size_t nargs,
                          PyObject *names);
PyObject *vyp_launch_call(PyObject *self, PyObject *const *args, size_t nargs,
                          PyObject *names);
PyObject *vyp_kernel_submit(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *names);
PyObject *vyp_launch_submit(PyObject *self, PyObject *const *args,
                            Py_ssize_t nargs, PyObject *names);
/* Run of a kernel by something else than a pipeline. */
typedef struct vyp_custom_run {
  vyre_code (*run)(void *self, const vyre_dispatch_desc *desc, void *figures,
                   vyre_fence **fence, vyre_status *st);
  void (*cancel)(void *self); /* after Ctrl-C */
  void *self;
  size_t figure_bytes;
  void *figures; /* receives the figures */
} vyp_custom_run;
/* Binds the arguments of a call and runs it. Keeps @p owner during the run. */
PyObject *vyp_run_custom(vyp_kernel *kernel, vyp_device *device,
                         PyObject *owner, PyObject *const *args, size_t count,
                         PyObject *names, const vyp_custom_run *run);
PyObject *vyp_kernel_check(PyObject *self, PyObject *const *args,
                           Py_ssize_t nargs, PyObject *names);

/* buffer.c */
vyp_buffer *vyp_buffer_new(vyp_device *device, vyre_element element,
                           PyObject *dtype, Py_ssize_t ndim,
                           const Py_ssize_t *shape);
bool vyp_buffer_check(vyp_buffer *buffer, vyp_device *device);

/* fence.c */
PyObject *vyp_pending_new(vyre_fence *fence, PyObject *kept, PyObject *result,
                          vyp_device *device);
/* Waits on the main thread so that Ctrl-C works. Moves references that are in
 * use by unfinished work to a list if the wait is interrupted. */
bool vyp_wait_interruptible(vyre_fence *fence, PyObject *kept,
                            vyp_device *device);

bool vyp_is_main_thread(void);

/* Returns true if both options compile the same code. */
bool vyp_same_options(const vyre_compile_options *a,
                      const vyre_compile_options *b);

/* plan.c */
PyObject *vyp_list_u64(const uint64_t *values, size_t count);
PyObject *vyp_barrier_dict(const vyre_barrier_plan *plan);

PyObject *vyp_queue_fields(PyObject *self, PyObject *kernel);

/* graph.c, queue.c, recording.c, plan.c, cache.c */
extern PyType_Spec vyp_kernel_spec, vyp_launch_spec, vyp_device_spec,
    vyp_buffer_spec, vyp_pending_spec, vyp_recording_spec, vyp_graph_spec,
    vyp_queue_spec;
extern PyMethodDef vyp_plan_methods[], vyp_cache_methods[], vyp_sum_methods[];

#endif
