/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: compiles generated C with the system compiler and loads it.
 *
 *   CC=clang-19           compiler; VYRE_C_FLAGS="-O3 ..." its flags
 *   VYRE_TEST_KEEP=dir    writes the files to dir and does not delete them */
#ifndef VYRE_CODEGEN_C_C_TESTING_H
#define VYRE_CODEGEN_C_C_TESTING_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "codegen/c/c.h"
#include "lir/lir_testing.h"
#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"
#include "testing/random_programs.h"

static const char strict_flags[] =
    "-std=c11 -pedantic -Wall -Wextra -Wshadow -Werror -ffp-contract=off";

/* --- text ----------------------------------------------------------------- */

typedef growing_text text;

static inline text emit_text(const vyre__lir_kernel *k,
                             const vyre__emit_c_options *options) {
  text t = {0};
  vyre_status st = {0};
  CHECK_OK(vyre__emit_c(k, options, growing_writer(&t), &st), st);
  return t;
}

/* --- compiling ------------------------------------------------------------ */

typedef struct program {
  void *library;
  int (*run)(const void *launch);
  const uint64_t *scratch;
  void *phases[32]; /* functions from dlsym */
  uint32_t phase_count;
} program;

static inline const char *work_folder(void) {
  static char folder[64];
  const char *kept = test_setting("KEEP");
  if (kept) return kept;
  if (!folder[0]) {
    snprintf(folder, sizeof folder, "/tmp/vyre_c_test.XXXXXX");
    CHECK(mkdtemp(folder));
  }
  return folder;
}

static inline void *symbol_of(void *library, const char *name,
                              const char *end) {
  char symbol[128];
  snprintf(symbol, sizeof symbol, "%s%s", name, end);
  return dlsym(library, symbol);
}

/* Compiles with @p flags and loads the library. @p name is the function
 * name. */
static inline program build(const text *t, const char *name,
                            const char *flags) {
  static unsigned count;
  const char *cc = getenv("CC"), *folder = work_folder();
  char source[256], object[256], command[1024];
  snprintf(source, sizeof source, "%s/%s_%u.c", folder, name, count);
  snprintf(object, sizeof object, "%s/%s_%u.so", folder, name, count++);
  FILE *file = fopen(source, "wb");
  CHECK(file);
  CHECK(fwrite(t->bytes, 1, t->length, file) == t->length);
  CHECK(fclose(file) == 0);
  snprintf(command, sizeof command, "%s %s %s -shared -fPIC -o %s %s -lm",
           cc && cc[0] ? cc : "cc", strict_flags, flags, object, source);
  if (system(command) != 0) {
    printf("    %s\n", command);
    test_fail(__FILE__, __LINE__);
  }
  program p = {.library = dlopen(object, RTLD_NOW | RTLD_LOCAL)};
  if (!p.library) printf("    %s\n", dlerror());
  CHECK(p.library);
  void *run = symbol_of(p.library, name, "");
  CHECK(run);
  memcpy(&p.run, &run, sizeof run);
  p.scratch = symbol_of(p.library, name, "_scratch");
  for (; p.phase_count < 32; p.phase_count++) {
    char end[16];
    snprintf(end, sizeof end, "_phase%u", p.phase_count);
    p.phases[p.phase_count] = symbol_of(p.library, name, end);
    if (!p.phases[p.phase_count]) break;
  }
  if (!test_setting("KEEP")) {
    unlink(source);
    unlink(object);
  }
  return p;
}

static inline const char *flags_of(const char *otherwise) {
  const char *flags = getenv("VYRE_C_FLAGS");
  return flags ? flags : otherwise;
}

/* --- running -------------------------------------------------------------- */

typedef struct launch {
  uint64_t bytes[256]; /* NAME_launch */
} launch;

/* Fills data, len and grid of the generated launch struct. */
static inline launch make_launch(const vyre__lir_kernel *k,
                                 const vyre__lir_binding *buffers,
                                 const uint32_t grid[3], uint64_t fuel) {
  launch l = {{0}};
  char *to = (char *)l.bytes;
  size_t slots = 0, at = 0;
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    slots += k->buffers[i].kind != VYRE_MEMORY_SHARED;
  }
  size_t space = slots ? slots : 1;
  CHECK(space * 12 + 64 + 8 * (size_t)k->grid_loop_count < sizeof l);
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    if (k->buffers[i].kind == VYRE_MEMORY_SHARED) continue;
    memcpy(to + 8 * at, &buffers[i].data, 8);
    memcpy(to + 8 * space + 4 * at, &buffers[i].length, 4);
    at++;
  }
  memcpy(to + 12 * space, grid, 12);
  memcpy(to + (12 * space + 12 + 7) / 8 * 8, &fuel, 8);
  return l;
}

/* --- a kernel built by hand ----------------------------------------------- */

static kit t;

/* y[i] = 3 * x[i] + y[i], in floats. */
static inline void make_saxpy(const char *name) {
  kit_begin(&t, name, 256, 1, 1);
  uint32_t x = kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  vyre__val i = kit_global(&t, 0);
  vyre__val len = kit_op(&t, VYRE__LIR_LEN, VYRE_TYPE_U32, y, 0, 0, 0);
  kit_if(&t, kit_b(&t, VYRE__LIR_LT_U, i, len), 0);
  vyre__val three = kit_const(&t, VYRE_TYPE_F32, 0x40400000);
  vyre__val a = kit_op(&t, VYRE__LIR_BITCAST, VYRE_TYPE_F32, 0,
                       kit_load(&t, x, i, 0), 0, 0);
  vyre__val b = kit_op(&t, VYRE__LIR_BITCAST, VYRE_TYPE_F32, 0,
                       kit_load(&t, y, i, 0), 0, 0);
  vyre__val ax = kit_op(&t, VYRE__LIR_FMUL, VYRE_TYPE_F32, 0, three, a, 0);
  vyre__val sum = kit_op(&t, VYRE__LIR_FADD, VYRE_TYPE_F32, 0, ax, b, 0);
  vyre__val bits = kit_op(&t, VYRE__LIR_BITCAST, VYRE_TYPE_U32, 0, sum, 0, 0);
  kit_store(&t, y, i, bits, 0);
  kit_mark(&t, VYRE__LIR_END);
  kit_end(&t);
}

/* For the last test: the folder must be empty. */
static inline void finish_folder(void) {
  if (!test_setting("KEEP")) CHECK(rmdir(work_folder()) == 0);
}

#endif
