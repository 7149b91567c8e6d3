/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: a kernel with its schedule, printed. */
#ifndef VYRE_SPMD_SCHEDULE_DUMP_TESTING_H
#define VYRE_SPMD_SCHEDULE_DUMP_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "vyre/module.h"

#include "spmd/schedule.h"
#include "support/check.h"

enum { TEXT = 1 << 16 };

typedef struct text {
  char bytes[TEXT];
  size_t length;
} text;

static inline bool put(void *self, const char *bytes, size_t length) {
  text *to = self;
  if (to->length + length >= TEXT) return false;
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
  to->bytes[to->length] = '\0';
  return true;
}

/* A kernel with its schedule. */
typedef struct fixture {
  vyre_module *module;
  vyre_arena arena;
  vyre__schedule s;
  text dump;
} fixture;

/* Builds the schedule of the only kernel of @p source up to @p last. */
static inline fixture *make_for(const char *source, uint32_t width,
                                uint32_t lanes, vyre__schedule_pass last,
                                bool changes_lir) {
  fixture *f = calloc(1, sizeof *f);
  vyre_status st = {0};
  const vyre__target target = {.math = VYRE__MATH_F64};
  const vyre__lir_kernel *kernel = NULL;
  vyre_program *inlined = NULL;
  CHECK(f != NULL);
  vyre_arena_init(&f->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(source, strlen(source), "t.vyre",
                             (vyre_allocator){0}, &f->module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(f->module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, &f->arena, &kernel,
                       &inlined, &st),
           st);
  if (changes_lir) {
    CHECK_OK(vyre__unwrap_neighbours(kernel, &f->arena, &kernel, &st), st);
    CHECK_OK(vyre__interchange_stride_loops(kernel, &f->arena, &kernel, &st),
             st);
    CHECK_OK(vyre__version_uniforms(kernel, width, &f->arena, &kernel, &st),
             st);
    CHECK_OK(vyre__simplify_checks(kernel, width, &f->arena, &kernel, &st), st);
    CHECK_OK(
        vyre__lir_verify(kernel, VYRE__STAGE_CONTROL, (vyre_allocator){0}, &st),
        st);
  }
  CHECK_OK(vyre__interchange_loops(kernel, &f->arena, &kernel, &st), st);
  const vyre__schedule_options with = {.width = width, .lanes = lanes};
  CHECK_OK(vyre__schedule_make(kernel, 0, &with, last, &f->arena, &f->s, &st),
           st);
  CHECK_OK(vyre__schedule_verify(&f->s), st);
  CHECK(vyre__schedule_print(&f->s,
                             (vyre_writer){.write = put, .self = &f->dump}));
  return f;
}

static inline void drop(fixture *f) {
  vyre_arena_deinit(&f->arena);
  vyre_module_release(f->module);
  free(f);
}

#endif
