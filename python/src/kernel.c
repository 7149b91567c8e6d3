/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels: parses modules, describes parameters, compiles for devices. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

/* --- parameters ----------------------------------------------------------------- */

static PyObject *struct_dtype(const vyre_struct *s);

/* Returns the dtype of a field, with a length if it is a vector. */
static PyObject *field_dtype(const vyre_struct_field *f) {
  if (f->structure) return struct_dtype(f->structure);
  const vyre_buffer_decl one = {.element = f->element, .type = f->type};
  uint32_t lanes = vyre_buffer_stride(&one) / vyre_element_size(f->element);
  return PyObject_CallMethod(vyp.support, "field_dtype", "sI",
                             vyre_element_name(f->element), lanes);
}

/* Returns the dtype of the records of a struct. */
static PyObject *struct_dtype(const vyre_struct *s) {
  PyObject *fields = PyList_New(0);
  for (size_t i = 0; fields && i < s->field_count; i++) {
    PyObject *dtype = field_dtype(&s->fields[i]);
    PyObject *row = dtype ? Py_BuildValue("(sNI)", s->fields[i].name, dtype,
                                          s->fields[i].offset)
                          : NULL;
    if (!row || PyList_Append(fields, row) < 0) Py_CLEAR(fields);
    Py_XDECREF(row);
  }
  PyObject *dtype = fields ? PyObject_CallMethod(vyp.support, "struct_dtype",
                                                 "OI", fields, s->size)
                           : NULL;
  Py_XDECREF(fields);
  return dtype;
}

/* Stores the type of the elements. */
static bool set_type(vyp_param *p, const vyre_buffer_decl *decl,
                     uint32_t element_size) {
  p->element_size = element_size ? element_size : 1;
  if (decl->structure) {
    p->element = VYRE_ELEMENT_BYTES;
    p->record = decl->structure->name;
    p->unit = p->element_size;
    p->lanes = 1;
    p->dtype = struct_dtype(decl->structure);
    return p->dtype;
  }
  uint32_t unit = vyre_element_size(decl->element);
  p->element = decl->element;
  p->unit = unit ? unit : 1;
  p->lanes = p->element_size / p->unit;
  if (vyp_type_number(p->element) != vyp_type_number(VYRE_ELEMENT_SUM_F32))
    return true;
  p->dtype = PyObject_CallMethod(vyp.support, "dtype_of", "s",
                                 vyre_element_name(p->element));
  return p->dtype;
}

static bool add_param(vyp_kernel *k, const vyre_buffer_decl *decl,
                      const vyre_binding *binding) {
  vyp_param *p = &k->params[k->param_count];
  p->role = binding->role;
  p->count = decl->count;
  p->input_index = binding->input_index;
  p->output_index = binding->output_index;
  p->access = decl->access;
  p->declared = binding->buffer_index;
  p->dimension_count = decl->dimension_count;
  p->dimension_uniforms = decl->dimension_uniforms;
  memcpy(p->dimensions, decl->dimensions, sizeof p->dimensions);
  if (p->dimension_count > 1) k->has_dimensions = true;
  if (p->role == VYRE_ROLE_PERSISTENT) k->has_persistent = true;
  if (p->input_index != VYRE_NO_INDEX || p->role == VYRE_ROLE_PERSISTENT) {
    k->positional[k->positional_count++] = k->param_count;
  }
  if (p->output_index != VYRE_NO_INDEX)
    k->outputs[p->output_index] = k->param_count;
  k->param_count++;
  p->name = PyUnicode_InternFromString(decl->name);
  return p->name && set_type(p, decl, binding->element_size);
}

static bool describe(vyp_kernel *k, const vyre_binding_plan *plan) {
  size_t count = 0;
  const vyre_buffer_decl *decls = vyre_program_buffers(k->program, &count);
  if (plan->binding_count - plan->shared_count > VYP_MAX_PARAMS) {
    vyp_fail(PyExc_ValueError, "split the kernel",
             "a kernel has %zu buffers; the most is %d", plan->binding_count,
             VYP_MAX_PARAMS);
    return false;
  }
  k->params = PyMem_Calloc(count + 1, sizeof *k->params);
  if (!k->params) return PyErr_NoMemory(), false;
  k->input_count = (uint32_t)plan->input_count;
  k->output_count = (uint32_t)plan->output_count;
  for (size_t i = 0; i < count; i++) {
    for (size_t j = 0; j < plan->binding_count; j++) {
      if (plan->bindings[j].buffer_index != i ||
          plan->bindings[j].role == VYRE_ROLE_SHARED) {
        continue;
      }
      if (!add_param(k, &decls[i], &plan->bindings[j])) return false;
    }
  }
  /* Position among all bindings in order of their numbers. */
  for (size_t j = 0; j < plan->binding_count; j++) {
    const vyre_binding *b = &plan->bindings[j];
    for (uint32_t i = 0; i < k->param_count && b->role != VYRE_ROLE_SHARED;
         i++) {
      if (PyUnicode_CompareWithASCIIString(k->params[i].name, b->name) == 0) {
        k->params[i].resource_index = k->resource_count++;
      }
    }
  }
  return true;
}

PyObject *vyp_kernel_wrap(vyre_program *program, PyObject *text,
                          PyObject *file) {
  vyp_kernel *k = PyObject_New(vyp_kernel, vyp.kernel_type);
  if (!k) return NULL;
  memset((char *)k + sizeof(PyObject), 0, sizeof *k - sizeof(PyObject));
  k->vectorcall = (vectorcallfunc)vyp_kernel_call;
  k->program = vyre_program_retain(program);
  k->text = text;
  k->file = file;
  Py_INCREF(text);
  Py_INCREF(file);
  vyre_arena arena;
  vyre_arena_init(&arena, vyre_allocator_heap());
  vyre_binding_plan plan;
  vyre_status st;
  bool fine = false;
  if (vyre_binding_plan_build(program, &arena, &plan, &st) == VYRE_OK) {
    fine = describe(k, &plan);
  } else {
    vyp_raise(&st);
  }
  vyre_arena_deinit(&arena);
  if (fine) return (PyObject *)k;
  Py_DECREF(k);
  return NULL;
}

static void free_compiled(vyp_compiled *c) {
  while (c) {
    vyp_compiled *next = c->next;
    if (c->device->epoch == atomic_load(&vyp.epoch) &&
        c->device->generation == c->generation) {
      Py_BEGIN_ALLOW_THREADS vyre_pipeline_release(c->pipeline);
      Py_END_ALLOW_THREADS
    }
    Py_DECREF(c->device);
    free(c);
    c = next;
  }
}

static void kernel_dealloc(PyObject *self) {
  vyp_kernel *k = (vyp_kernel *)self;
  PyTypeObject *type = Py_TYPE(self);
  free_compiled(atomic_load(&k->compiled));
  for (uint32_t i = 0; k->params && i < k->param_count; i++) {
    Py_XDECREF(k->params[i].name);
    Py_XDECREF(k->params[i].dtype);
  }
  PyMem_Free(k->params);
  vyre_program_release(k->program);
  Py_XDECREF(k->text);
  Py_XDECREF(k->file);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* --- compiling ------------------------------------------------------------------- */

/* Prints the diagnostics of a failed parse or compile, with source carets. */
PyObject *vyp_raise_diagnostics(const vyre_status *st,
                                const vyre_diagnostics *diagnostics,
                                PyObject *text, PyObject *file) {
  if (diagnostics->count == 0) return vyp_raise(st);
  Py_ssize_t length = 0;
  const char *source =
      text != Py_None ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
  const char *name = PyUnicode_AsUTF8AndSize(file, NULL);
  PyErr_Clear();
  vyp_text out;
  vyre_writer writer = vyp_text_writer(&out);
  vyre_diagnostics_print(diagnostics, name ? name : "<vyre>", source,
                         (size_t)length, writer);
  PyObject *printed = vyp_text_take(&out);
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list && i < diagnostics->count; i++) {
    const vyre_diagnostic *d = &diagnostics->items[i];
    PyObject *item = Py_BuildValue(
        "{sssIsIsIssss}", "rule", d->rule, "line", d->line, "column", d->column,
        "length", d->length, "message", d->message, "fix", d->fix);
    if (!item || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  if (printed && list) vyp_raise_with(st, printed, list);
  Py_XDECREF(printed);
  Py_XDECREF(list);
  return NULL;
}

bool vyp_same_options(const vyre_compile_options *a,
                      const vyre_compile_options *b) {
  return memcmp(a->workgroup, b->workgroup, sizeof a->workgroup) == 0 &&
         a->ulp_budget == b->ulp_budget &&
         a->counts_iterations == b->counts_iterations &&
         a->ignores_tuning == b->ignores_tuning && a->tier == b->tier;
}

vyp_compiled *vyp_kernel_compile(vyp_kernel *k, vyp_device *device,
                                 const vyre_compile_options *options) {
  for (vyp_compiled *c = atomic_load(&k->compiled); c; c = c->next) {
    if (c->device == device && c->generation == device->generation &&
        vyp_same_options(&c->options, options)) {
      return c;
    }
  }
  vyre_status st;
  vyre_diagnostics diagnostics = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code = vyre_pipeline_compile(
      device->handle, k->program, options, &pipeline, &diagnostics, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK)
      vyp_raise_diagnostics(&st, &diagnostics, k->text, k->file);
  vyre_diagnostics_deinit(&diagnostics);
  if (code != VYRE_OK) return NULL;
  vyp_compiled *c = calloc(1, sizeof *c);
  if (!c) {
    vyre_pipeline_release(pipeline);
    PyErr_NoMemory();
    return NULL;
  }
  c->device = device;
  Py_INCREF(device);
  c->generation = device->generation;
  c->pipeline = pipeline;
  c->options = *options;
  atomic_init(&c->is_slow, true); /* until a run was fast */
  c->next = atomic_load(&k->compiled);
  while (!atomic_compare_exchange_weak(&k->compiled, &c->next, c)) continue;
  return c;
}

/* --- module functions --------------------------------------------------------------- */

enum { MAX_FOLDERS = 64 };

/* Reads an imported file: at most 16 MiB. */
static bool read_import(void *context, const char *path, vyre_arena *arena,
                        const char **text, size_t *length) {
  enum { MAX_BYTES = 16 << 20 };
  (void)context;
  /* Opening a FIFO must not block. */
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (fd < 0) return false;
  const bool is_file = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  FILE *file = is_file ? fdopen(fd, "rb") : NULL;
  if (!file) {
    (void)close(fd);
    return false;
  }
  char *bytes = NULL;
  long size = -1;
  if (fseek(file, 0, SEEK_END) == 0) size = ftell(file);
  if (size >= 0 && size <= MAX_BYTES && fseek(file, 0, SEEK_SET) == 0) {
    bytes = vyre_arena_alloc(arena, (size_t)size + 1, 1);
  }
  const bool good =
      bytes && fread(bytes, 1, (size_t)size, file) == (size_t)size;
  (void)fclose(file);
  *text = bytes;
  *length = good ? (size_t)size : 0;
  return good;
}

/* Sets the folders of imports, whose names @p folders keeps. Returns false with
 * an exception. */
static bool read_folders(PyObject *folders, const char *names[MAX_FOLDERS],
                         vyre_module_options *options) {
  if (!folders || folders == Py_None) return true;
  if (!PyList_Check(folders) || PyList_GET_SIZE(folders) > MAX_FOLDERS) {
    (void)vyp_fail(PyExc_ValueError, "pass fewer paths",
                   "folders is a list of at most 64 paths");
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(folders); i++) {
    names[i] = PyUnicode_AsUTF8AndSize(PyList_GET_ITEM(folders, i), NULL);
    if (!names[i]) return false;
  }
  options->import_read = read_import;
  options->import_folders = names;
  options->import_folder_count = (size_t)PyList_GET_SIZE(folders);
  return true;
}

/* parse(text, file, folders) -> list of kernels; None: without imports */
PyObject *vyp_parse(PyObject *self, PyObject *args) {
  (void)self;
  PyObject *text, *file, *folders = NULL;
  const char *names[MAX_FOLDERS];
  vyre_module_options options = {0};
  if (!PyArg_ParseTuple(args, "OO|O", &text, &file, &folders)) return NULL;
  if (!PyUnicode_Check(text) || !PyUnicode_Check(file)) {
    return vyp_fail(PyExc_TypeError, "pass a str; decode bytes first",
                    "kernel text and the name of its file are str");
  }
  if (!read_folders(folders, names, &options)) return NULL;
  Py_ssize_t length;
  const char *source = PyUnicode_AsUTF8AndSize(text, &length);
  const char *name = PyUnicode_AsUTF8AndSize(file, NULL);
  if (!source || !name) return NULL;
  vyre_module *module = NULL;
  vyre_diagnostics diagnostics = {0};
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_module_parse_with(source, (size_t)length, name, &options,
                             vyre_allocator_heap(), &module, &diagnostics, &st);
  Py_END_ALLOW_THREADS PyObject *list = NULL;
  if (code != VYRE_OK) {
    vyp_raise_diagnostics(&st, &diagnostics, text, file);
  } else {
    list = PyList_New(0);
  }
  for (size_t i = 0; list && i < vyre_module_kernel_count(module); i++) {
    vyre_program *program = vyre_module_kernel(module, i);
    code = vyre_program_validate(program, &diagnostics, &st);
    PyObject *kernel =
        code == VYRE_OK ? vyp_kernel_wrap(program, text, file)
                        : vyp_raise_diagnostics(&st, &diagnostics, text, file);
    if (!kernel || PyList_Append(list, kernel) < 0) Py_CLEAR(list);
    Py_XDECREF(kernel);
  }
  vyre_diagnostics_deinit(&diagnostics);
  vyre_module_release(module);
  return list;
}

/* from_bytes(bytes) -> kernel, with the source text if the bytes have it */
PyObject *vyp_from_bytes(PyObject *self, PyObject *object) {
  (void)self;
  char *bytes;
  Py_ssize_t length;
  if (PyBytes_AsStringAndSize(object, &bytes, &length) < 0) return NULL;
  vyre_program *program;
  vyre_status st;
  if (vyre_program_read_binary((const uint8_t *)bytes, (size_t)length,
                               vyre_allocator_heap(), &program,
                               &st) != VYRE_OK) {
    return vyp_raise(&st);
  }
  size_t size;
  const char *source =
      vyre_program_binary_source((const uint8_t *)bytes, (size_t)length, &size);
  PyObject *text = source
                       ? PyUnicode_FromStringAndSize(source, (Py_ssize_t)size)
                       : Py_NewRef(Py_None);
  PyObject *file = PyUnicode_FromString(vyre_program_file(program));
  PyObject *kernel = text && file ? vyp_kernel_wrap(program, text, file) : NULL;
  Py_XDECREF(text);
  Py_XDECREF(file);
  vyre_program_release(program);
  return kernel;
}

/* --- methods ------------------------------------------------------------------------- */

static PyObject *kernel_to_bytes(PyObject *self, PyObject *unused) {
  (void)unused;
  vyre_arena arena;
  vyre_arena_init(&arena, vyre_allocator_heap());
  const uint8_t *bytes;
  size_t length;
  vyre_status st;
  PyObject *result = NULL;
  const vyp_kernel *k = (vyp_kernel *)self;
  Py_ssize_t size = 0;
  const char *source =
      k->text != Py_None ? PyUnicode_AsUTF8AndSize(k->text, &size) : NULL;
  vyre_code code =
      source
          ? vyre_program_write_binary_with_source(
                k->program, source, (size_t)size, &arena, &bytes, &length, &st)
          : vyre_program_write_binary(k->program, &arena, &bytes, &length, &st);
  if (code == VYRE_OK) {
    result = PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)length);
  } else {
    vyp_raise(&st);
  }
  vyre_arena_deinit(&arena);
  return result;
}

static int find_name(const char *const *names, int count, const char *name,
                     const char *what) {
  for (int i = 0; i < count; i++) {
    if (strcmp(names[i], name) == 0) return i;
  }
  char fix[256] = "pass ";
  for (int i = 0; i < count; i++) {
    size_t at = strlen(fix);
    PyOS_snprintf(fix + at, sizeof fix - at, "%s\"%s\"",
                  i == 0           ? ""
                  : i == count - 1 ? " or "
                                   : ", ",
                  names[i]);
  }
  vyp_fail(PyExc_ValueError, fix, "unknown %s '%s'", what, name);
  return -1;
}

/* Prints the code of a compiled pipeline: "asm", "llvm-optimised", "why". */
static PyObject *emit_pipeline(vyp_kernel *k, const char *form) {
  PyObject *name = PyUnicode_FromString("cpu");
  vyp_device *cpu = name ? vyp_device_find(name) : NULL;
  Py_XDECREF(name);
  if (!cpu) return NULL;
  vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  vyp_compiled *c = vyp_kernel_compile(k, cpu, &options);
  Py_DECREF(cpu);
  if (!c) return NULL;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code =
      vyre_pipeline_print(c->pipeline, form, writer, &st);
  Py_END_ALLOW_THREADS if (code == VYRE_OK) return vyp_text_take(&text);
  free(text.data);
  return vyp_raise(&st);
}

static PyObject *kernel_emit(PyObject *self, PyObject *args,
                             PyObject *keywords) {
  static const char *const forms[] = {
#define VYRE_X2(name, text) text,
      VYRE_EMIT_MAP(VYRE_X2)
#undef VYRE_X2
          "asm",
      "llvm-optimised", "why"};
  static const char *const modes[] = {"native", "corrected", "soft"};
  static char *names[] = {"form", "after", "width", "float_mode", NULL};
  const char *form = "c", *mode = "native";
  vyre_emit_options options = {0};
  unsigned int width = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|zIs:emit", names, &form,
                                   &options.after, &width, &mode)) {
    return NULL;
  }
  int f = find_name(forms, VYRE_EMIT_COUNT + 3, form, "form");
  if (f >= VYRE_EMIT_COUNT) return emit_pipeline((vyp_kernel *)self, form);
  int m = f < 0 ? -1 : find_name(modes, 3, mode, "float mode");
  if (m < 0) return NULL;
  options.form = (vyre_emit_form)f;
  options.float_mode = (vyre_float_mode)m;
  options.width = width;
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_status st;
  vyre_code code;
  Py_BEGIN_ALLOW_THREADS code = vyre_program_emit(((vyp_kernel *)self)->program,
                                                  &options, writer, NULL, &st);
  Py_END_ALLOW_THREADS if (code != VYRE_OK) {
    free(text.data);
    return vyp_raise(&st);
  }
  if (options.form != VYRE_EMIT_SPIRV) return vyp_text_take(&text);
  PyObject *bytes =
      PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.length);
  free(text.data);
  return bytes;
}

static bool read_grid(PyObject *value, uint32_t grid[3]) {
  if (!value || value == Py_None) return true;
  if (PyLong_Check(value)) {
    unsigned long x = PyLong_AsUnsignedLong(value);
    grid[0] = (uint32_t)x;
    return !PyErr_Occurred() && x <= UINT32_MAX;
  }
  PyObject *tuple = PySequence_Tuple(value);
  Py_ssize_t count = tuple ? PyTuple_Size(tuple) : 0;
  bool fine = tuple && count >= 1 && count <= 3;
  for (Py_ssize_t i = 0; fine && i < count; i++) {
    unsigned long x = PyLong_AsUnsignedLong(PyTuple_GetItem(tuple, i));
    fine = !PyErr_Occurred() && x <= UINT32_MAX;
    grid[i] = (uint32_t)x;
  }
  Py_XDECREF(tuple);
  return fine;
}

/* on(device=None, *, workgroup=None, ulp_budget=0, tier="auto") */
static PyObject *kernel_on(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"device",   "workgroup", "ulp_budget",
                          "baseline", "optimised", NULL};
  PyObject *device = Py_None, *workgroup = Py_None;
  unsigned char budget = 0;
  int baseline = 0, optimised = 0;
  vyre_compile_options options = {0};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O$Obpp:on", names, &device,
                                   &workgroup, &budget, &baseline,
                                   &optimised)) {
    return NULL;
  }
  if (!read_grid(workgroup, options.workgroup)) {
    return vyp_fail(PyExc_ValueError, "pass an int or up to three ints",
                    "a workgroup is 1 to 3 sizes");
  }
  options.ulp_budget = budget;
  options.tier = optimised  ? VYRE_TIER_OPTIMISED
                 : baseline ? VYRE_TIER_BASELINE
                            : VYRE_TIER_AUTO;
  vyp_device *d = vyp_device_or_default(device);
  if (!d) return NULL;
  vyp_compiled *c = vyp_kernel_compile((vyp_kernel *)self, d, &options);
  vyp_launch *launch = c ? PyObject_New(vyp_launch, vyp.launch_type) : NULL;
  if (launch) {
    launch->vectorcall = (vectorcallfunc)vyp_launch_call;
    launch->kernel = (vyp_kernel *)self;
    Py_INCREF(self);
    launch->device = (PyObject *)d;
    launch->options = options;
  } else {
    Py_DECREF(d);
  }
  return (PyObject *)launch;
}

static PyObject *param_dict(const vyp_param *p) {
  return Py_BuildValue(
      "{sOsssssssIsNsNsI}", "name", p->name, "role", vyre_role_name(p->role),
      "dtype", p->record ? p->record : vyre_element_name(p->element), "access",
      vyre_access_name(p->access), "length", p->count, "is_input",
      PyBool_FromLong(p->input_index != VYRE_NO_INDEX), "is_output",
      PyBool_FromLong(p->output_index != VYRE_NO_INDEX), "lanes", p->lanes);
}

static PyObject *get_params(PyObject *self, void *closure) {
  (void)closure;
  vyp_kernel *k = (vyp_kernel *)self;
  PyObject *tuple = PyTuple_New((Py_ssize_t)k->param_count);
  for (uint32_t i = 0; tuple && i < k->param_count; i++) {
    PyObject *param = param_dict(&k->params[i]);
    PyObject *wrapped =
        param ? PyObject_CallMethod(vyp.support, "param", "N", param) : NULL;
    if (!wrapped || PyTuple_SetItem(tuple, (Py_ssize_t)i, wrapped) < 0) {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

/* dtype(name) -> numpy.dtype of the arrays for a buffer or uniform */
static PyObject *kernel_dtype(PyObject *self, PyObject *name) {
  vyp_kernel *k = (vyp_kernel *)self;
  for (uint32_t i = 0; PyUnicode_Check(name) && i < k->param_count; i++) {
    const vyp_param *p = &k->params[i];
    if (PyUnicode_Compare(p->name, name) != 0) continue;
    if (p->dtype) return Py_NewRef(p->dtype);
    return PyObject_CallMethod(vyp.support, "dtype_of", "s",
                               vyre_element_name(p->element));
  }
  return vyp_fail(PyExc_KeyError, "use one of the names in kernel.params",
                  "kernel '%s' has no buffer %R", vyre_program_name(k->program),
                  name);
}

static PyObject *get_kernel_name(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(vyre_program_name(((vyp_kernel *)self)->program));
}

/* Signature for help() and editors, made when it is asked for. */
static PyObject *get_signature(PyObject *self, void *closure) {
  (void)closure;
  return PyObject_CallMethod(vyp.support, "signature", "O", self);
}

static PyObject *get_fingerprint(PyObject *self, void *closure) {
  (void)closure;
  vyre_hash128 hash = vyre_program_fingerprint(((vyp_kernel *)self)->program);
  char text[VYRE_HASH128_TEXT];
  vyre_hash128_text(hash, text);
  return PyUnicode_FromString(text);
}

static PyObject *get_text(PyObject *self, void *closure) {
  (void)closure;
  vyp_kernel *k = (vyp_kernel *)self;
  if (k->text != Py_None) {
    Py_INCREF(k->text);
    return k->text;
  }
  vyp_text text;
  vyre_writer writer = vyp_text_writer(&text);
  vyre_program_print(k->program, writer);
  return vyp_text_take(&text);
}

static PyObject *get_source(PyObject *self, void *closure) {
  (void)closure;
  PyObject *text = ((vyp_kernel *)self)->text;
  Py_INCREF(text);
  return text;
}

static PyObject *get_file(PyObject *self, void *closure) {
  (void)closure;
  PyObject *file = ((vyp_kernel *)self)->file;
  Py_INCREF(file);
  return file;
}

static PyObject *get_workgroup(PyObject *self, void *closure) {
  (void)closure;
  const uint32_t *w = vyre_program_workgroup(((vyp_kernel *)self)->program);
  return Py_BuildValue("(III)", w[0], w[1], w[2]);
}

static PyObject *kernel_repr(PyObject *self) {
  PyObject *fingerprint = get_fingerprint(self, NULL);
  PyObject *short_one =
      fingerprint ? PySequence_GetSlice(fingerprint, 0, 12) : NULL;
  PyObject *repr =
      short_one
          ? PyUnicode_FromFormat(
                "<vyre.Kernel %s %U>",
                vyre_program_name(((vyp_kernel *)self)->program), short_one)
          : NULL;
  Py_XDECREF(fingerprint);
  Py_XDECREF(short_one);
  return repr;
}

static PyObject *kernel_reduce(PyObject *self, PyObject *unused) {
  PyObject *loads = PyObject_GetAttrString(vyp.support, "load_kernel");
  PyObject *bytes = loads ? kernel_to_bytes(self, unused) : NULL;
  PyObject *fingerprint = bytes ? get_fingerprint(self, NULL) : NULL;
  if (!fingerprint) {
    Py_XDECREF(loads);
    Py_XDECREF(bytes);
    return NULL;
  }
  return Py_BuildValue("N(NN)", loads, fingerprint, bytes);
}

static PyObject *kernel_compare(PyObject *a, PyObject *b, int op) {
  if ((op != Py_EQ && op != Py_NE) || !PyObject_TypeCheck(b, vyp.kernel_type)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  bool equal = vyre_program_equal(((vyp_kernel *)a)->program,
                                  ((vyp_kernel *)b)->program);
  return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t kernel_hash(PyObject *self) {
  vyre_hash128 hash = vyre_program_fingerprint(((vyp_kernel *)self)->program);
  Py_hash_t result = (Py_hash_t)hash.low;
  return result == -1 ? -2 : result;
}

static PyGetSetDef kernel_getset[] = {
    {"name", get_kernel_name, NULL, "Name of the kernel.", NULL},
    {"__name__", get_kernel_name, NULL, NULL, NULL},
    {"__signature__", get_signature, NULL, NULL, NULL},
    {"fingerprint", get_fingerprint, NULL, "Content hash of the program.",
     NULL},
    {"params", get_params, NULL,
     "Buffers and uniforms, in the order of the text.", NULL},
    {"text", get_text, NULL, "Source text.", NULL},
    {"_source", get_source, NULL, NULL, NULL},
    {"file", get_file, NULL, "Name of the source file.", NULL},
    {"workgroup", get_workgroup, NULL, "Declared workgroup size.", NULL},
    {0}};

static PyObject *kernel_token(PyObject *self, PyObject *unused) {
  (void)unused;
  return get_fingerprint(self, NULL);
}

static PyMethodDef kernel_methods[] = {
    {"submit", (PyCFunction)(void (*)(void))vyp_kernel_submit,
     METH_FASTCALL | METH_KEYWORDS,
     "Submits the kernel without waiting. Returns a Future."},
    {"_check", (PyCFunction)(void (*)(void))vyp_kernel_check,
     METH_FASTCALL | METH_KEYWORDS, NULL},
    {"on", (PyCFunction)(void (*)(void))kernel_on, METH_VARARGS | METH_KEYWORDS,
     "Compiles the kernel for a device and returns a Launch, which is called "
     "like the kernel."},
    {"emit", (PyCFunction)(void (*)(void))kernel_emit,
     METH_VARARGS | METH_KEYWORDS,
     "Returns compiler output: lowered, c, llvm, asm, spirv-text, schedule."},
    {"dtype", kernel_dtype, METH_O,
     "Returns the numpy.dtype of the arrays for a buffer or uniform."},
    {"to_bytes", kernel_to_bytes, METH_NOARGS, "Returns the binary form."},
    {"from_bytes", vyp_from_bytes, METH_O | METH_STATIC,
     "Returns the kernel in the bytes of to_bytes()."},
    {"__reduce__", kernel_reduce, METH_NOARGS, NULL},
    {"__dask_tokenize__", kernel_token, METH_NOARGS, NULL},
    {0}};

static PyMemberDef kernel_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(vyp_kernel, vectorcall),
     Py_READONLY, NULL},
    {0}};

static PyType_Slot kernel_slots[] = {
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_repr, kernel_repr},
    {Py_tp_getset, kernel_getset},
    {Py_tp_methods, kernel_methods},
    {Py_tp_members, kernel_members},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_richcompare, kernel_compare},
    {Py_tp_hash, kernel_hash},
    {Py_tp_doc, "Compute kernel. Call it with arrays."},
    {0, NULL}};

PyType_Spec vyp_kernel_spec = {"vyre.Kernel", sizeof(vyp_kernel), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               kernel_slots};

/* --- launches -------------------------------------------------------------------------- */

static void launch_dealloc(PyObject *self) {
  vyp_launch *l = (vyp_launch *)self;
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(l->kernel);
  Py_XDECREF(l->device);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject *launch_repr(PyObject *self) {
  const vyp_launch *l = (const vyp_launch *)self;
  return PyUnicode_FromFormat("<vyre.Launch %s on %U>",
                              vyre_program_name(l->kernel->program),
                              ((vyp_device *)l->device)->name);
}

static PyObject *launch_kernel(PyObject *self, void *closure) {
  (void)closure;
  PyObject *kernel = (PyObject *)((vyp_launch *)self)->kernel;
  Py_INCREF(kernel);
  return kernel;
}

static PyObject *launch_device(PyObject *self, void *closure) {
  (void)closure;
  PyObject *device = ((vyp_launch *)self)->device;
  Py_INCREF(device);
  return device;
}

static PyGetSetDef launch_getset[] = {
    {"kernel", launch_kernel, NULL, "Kernel that was compiled.", NULL},
    {"device", launch_device, NULL, "Device that it runs on.", NULL},
    {0}};

static PyMethodDef launch_methods[] = {
    {"submit", (PyCFunction)(void (*)(void))vyp_launch_submit,
     METH_FASTCALL | METH_KEYWORDS,
     "Submits the kernel without waiting. Returns a Future."},
    {0}};

static PyMemberDef launch_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(vyp_launch, vectorcall),
     Py_READONLY, NULL},
    {0}};

static PyType_Slot launch_slots[] = {
    {Py_tp_dealloc, launch_dealloc},
    {Py_tp_repr, launch_repr},
    {Py_tp_getset, launch_getset},
    {Py_tp_methods, launch_methods},
    {Py_tp_members, launch_members},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_doc, "Kernel compiled for a device."},
    {0, NULL}};

PyType_Spec vyp_launch_spec = {"vyre.Launch", sizeof(vyp_launch), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               launch_slots};
