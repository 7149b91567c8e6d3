/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A LIR kernel with a host plan, for tests: nested loops around grid barriers,
 * bounds from uniforms and lengths, and values that live across barriers. */
#ifndef VYRE_HAL_HOST_PLAN_TESTING_H
#define VYRE_HAL_HOST_PLAN_TESTING_H

#include "vyre/module.h"

#include "lir/lir.h"
#include "support/check.h"

typedef struct planned_kernel {
  vyre_arena arena; /* tests may allocate from it */
  vyre_module *module;
  const vyre__lir_kernel *kernel;
} planned_kernel;

static inline void planned_kernel_open(planned_kernel *k) {
  static const char text[] =
      "kernel k workgroup(4)\n"
      "buffer r : read_write u32[] @0;\n"
      "uniform n : u32 @1;\n"
      "uniform more : i32[3] @2;\n"
      "{\n"
      "    let i = global_id.x;\n"
      "    var sum = 0u;\n"
      "    for (let a = 0u; a < n + 1; a++) {\n"
      "        for (let b = a * 2; b < len(r) - 3; b++) {\n"
      "            sum = sum + r[i];\n"
      "            grid_barrier();\n"
      "            r[(i + b) % len(r)] = sum;\n"
      "            grid_barrier();\n"
      "        }\n"
      "    }\n"
      "}\n";
  vyre_status st = {0};
  vyre__target target = {0};
  vyre_program *inlined;
  *k = (planned_kernel){0};
  vyre_arena_init(&k->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(text, strlen(text), "k", (vyre_allocator){0},
                             &k->module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(k->module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, &k->arena, &k->kernel,
                       &inlined, &st),
           st);
}

static inline void planned_kernel_close(planned_kernel *k) {
  vyre_arena_deinit(&k->arena);
  vyre_module_release(k->module);
}

#endif
