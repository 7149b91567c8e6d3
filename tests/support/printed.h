/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels as printed C: printed, compiled by the C compiler of the machine ($CC,
 * else cc), loaded and run. Problems are printed on standard error. */
#ifndef VYRE_TESTS_PRINTED_H
#define VYRE_TESTS_PRINTED_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/emit.h"
#include "vyre/module.h"

/* A file's bytes, terminated; free() them. NULL if it cannot be read. */
static inline char *printed_read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  size_t size = 0, capacity = 0;
  while (file && !feof(file) && !ferror(file)) {
    if (size + 4096 > capacity) {
      capacity = capacity * 2 + 65536;
      char *more = realloc(text, capacity);
      if (!more) break;
      text = more;
    }
    size += fread(text + size, 1, 4095, file);
    text[size] = 0;
  }
  bool good = file && text && !ferror(file);
  if (file) fclose(file);
  if (!good) {
    fprintf(stderr, "%s cannot be read\n", path);
    free(text);
    return NULL;
  }
  if (length) *length = size;
  return text;
}

/* The kernels of a file (vyre_module_release). */
static inline vyre_module *printed_module(const char *path) {
  size_t length = 0;
  char *text = printed_read_file(path, &length);
  if (!text) return NULL;
  vyre_module *module = NULL;
  vyre_status st = {0};
  if (vyre_module_parse(text, length, path, (vyre_allocator){0}, &module, NULL,
                        &st) != VYRE_OK) {
    fprintf(stderr, "%s: %s\n", path, st.message);
  }
  free(text);
  return module;
}

typedef struct printed_text {
  char *bytes;
  size_t length, capacity;
} printed_text;

static inline bool printed_append(void *self, const char *bytes,
                                  size_t length) {
  printed_text *t = self;
  if (t->length + length + 1 > t->capacity) {
    size_t capacity = (t->length + length + 1) * 2;
    char *more = realloc(t->bytes, capacity);
    if (!more) return false;
    t->bytes = more;
    t->capacity = capacity;
  }
  memcpy(t->bytes + t->length, bytes, length);
  t->length += length;
  t->bytes[t->length] = 0;
  return true;
}

/* Appends the program as C; free(text->bytes). */
static inline bool printed_print(const vyre_program *program, vyre_math math,
                                 vyre_float_mode numbers, printed_text *text) {
  vyre_status st = {0};
  vyre_emit_options options = {
      .form = VYRE_EMIT_C, .math = math, .float_mode = numbers};
  vyre_code code = vyre_program_emit(
      program, &options, (vyre_writer){printed_append, text}, NULL, &st);
  if (code != VYRE_OK) {
    fprintf(stderr, "%s: %s\n", vyre_program_name(program), st.message);
  }
  return code == VYRE_OK;
}

static inline bool printed_write(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  bool good = file && fputs(text, file) >= 0;
  if (file && fclose(file) != 0) good = false;
  if (!good) fprintf(stderr, "%s cannot be written\n", path);
  return good;
}

/* Compiles files of a folder (a pattern) into a shared object there, which is
 * there as a whole or not at all, also if two compile it at the same time. */
static inline bool printed_compile(const char *folder, const char *files,
                                   const char *object, const char *level) {
  static const char script[] =
      "cd '%s' || exit 1; cc=${CC:-cc}; extra=; "
      "case $($cc --version) in *clang*) ;; *) extra=-fno-tree-pre ;; esac; "
      "$cc -std=c11 %s -ffp-contract=off -fno-math-errno -fno-trapping-math "
      "$extra -w -fPIC -shared %s -o '%s'.$$ -lm && mv '%s'.$$ '%s'";
  char command[4096];
  int size = snprintf(command, sizeof command, script, folder, level, files,
                      object, object, object);
  bool good = size > 0 && (size_t)size < sizeof command && system(command) == 0;
  if (!good) fprintf(stderr, "%s/%s could not be compiled\n", folder, files);
  return good;
}

/* A loaded kernel. */
typedef struct printed {
  void *handle;
  int (*run)(const void *launch);
} printed;

static inline bool printed_load(const char *object_path, const char *kernel,
                                printed *out) {
  *out = (printed){.handle = dlopen(object_path, RTLD_NOW | RTLD_LOCAL)};
  void *symbol = out->handle ? dlsym(out->handle, kernel) : NULL;
  if (!symbol) fprintf(stderr, "%s: %s\n", object_path, dlerror());
  memcpy(&out->run, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* The launch block of a kernel with that many buffers (src/codegen/c/c.h). */
#define PRINTED_LAUNCH(n)   \
  struct {                  \
    void *data[n];          \
    uint32_t len[n];        \
    uint32_t grid[3];       \
    uint64_t fuel;          \
    uint64_t loop_value[1]; \
  }

/* One workgroup, on 2 to 4 buffers of @p length elements each. */
static inline bool printed_run(const printed *p, void *const *data,
                               unsigned count, uint32_t length) {
#define PRINTED_CASE(n)                                                 \
  case n: {                                                             \
    PRINTED_LAUNCH(n) launch = {.grid = {1, 1, 1}, .fuel = UINT32_MAX}; \
    for (unsigned i = 0; i < (n); i++) {                                \
      launch.data[i] = data[i];                                         \
      launch.len[i] = length;                                           \
    }                                                                   \
    return p->run(&launch) == 0;                                        \
  }
  switch (count) {
    PRINTED_CASE(2)
    PRINTED_CASE(3)
    PRINTED_CASE(4)
    default:
      return false;
  }
#undef PRINTED_CASE
}

#endif
