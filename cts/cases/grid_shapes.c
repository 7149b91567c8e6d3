/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: workgroups and grids of every shape. Each invocation runs once. */
#include "cts/harness/small_kernels.h"

static const struct {
  uint32_t workgroup[3], grid[3];
} shapes[] = {
    {{1, 1, 1}, {1, 1, 1}},     {{1, 1, 1}, {100, 1, 1}},
    {{1, 1, 1}, {3, 4, 5}},     {{2, 1, 1}, {7, 1, 1}},
    {{3, 1, 1}, {5, 1, 1}},     {{7, 1, 1}, {11, 2, 1}},
    {{13, 3, 1}, {2, 3, 1}},    {{5, 7, 3}, {2, 1, 2}},
    {{31, 1, 1}, {3, 1, 1}},    {{33, 1, 1}, {3, 1, 1}},
    {{64, 1, 1}, {2, 2, 2}},    {{1, 64, 1}, {1, 2, 1}},
    {{1, 1, 64}, {1, 1, 2}},    {{8, 8, 8}, {1, 2, 1}},
    {{127, 1, 1}, {2, 1, 1}},   {{16, 16, 1}, {3, 3, 1}},
    {{1, 1, 1}, {1, 1, 70000}}, {{1, 1, 1}, {70000, 1, 1}},
    {{1, 1, 1}, {1, 70000, 1}},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, MAXIMAL = 4 };

static const char *const maximal[MAXIMAL] = {"all_on_x", "all_on_y", "all_on_z",
                                             "square"};

static size_t shapes_count(void) {
  return SHAPES + MAXIMAL;
}

static void shapes_label(size_t index, char *out, size_t size) {
  if (index >= SHAPES) {
    (void)snprintf(out, size, "largest_%s", maximal[index - SHAPES]);
    return;
  }
  const uint32_t *w = shapes[index].workgroup, *g = shapes[index].grid;
  (void)snprintf(out, size, "%ux%ux%u_of_%ux%ux%u", g[0], g[1], g[2], w[0],
                 w[1], w[2]);
}

/* Counts each invocation in its own element and stores its workgroup number. */
static void run_shape(cts *c, const uint32_t w[3], const uint32_t g[3]) {
  char text[768];
  uint32_t size[3], count = 1;
  for (int i = 0; i < 3; i++) count *= size[i] = w[i] * g[i];
  (void)snprintf(
      text, sizeof text,
      "kernel k workgroup(%u, %u, %u)\n"
      "buffer r : read_write u32[] @0 output;\n"
      "shared s : u32[1];\n"
      "{\n"
      "    let at = (global_id.z * %uu + global_id.y) * %uu + global_id.x;\n"
      "    atomic_add(s[0], 1);\n"
      "    barrier();\n"
      "    atomic_add(r[at], s[0] + 10000 * (workgroup_id.x + workgroup_id.y "
      "+\n"
      "        workgroup_id.z + 1));\n"
      "}\n",
      w[0], w[1], w[2], size[1], size[0]);
  uint32_t *want = cts_memory(c, 4 * (size_t)count);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t x = i % size[0], y = i / size[0] % size[1],
             z = i / size[0] / size[1];
    want[i] = w[0] * w[1] * w[2] + 10000 * (x / w[0] + y / w[1] + z / w[2] + 1);
  }
  small_run(c, text, NULL, 0, want, count, g[0], g[1], g[2]);
}

/* Ends the case if a workgroup exceeds the limits of the device, which must
 * reject it. */
static void check_limits(cts *c, const uint32_t w[3]) {
  vyre_pipeline *none;
  const vyre_device_caps *caps = c->caps;
  uint32_t all = w[0] * w[1] * w[2];
  if (all <= caps->max_workgroup_invocations &&
      w[0] <= caps->max_workgroup[0] && w[1] <= caps->max_workgroup[1] &&
      w[2] <= caps->max_workgroup[2]) {
    return;
  }
  vyre_program *program = cts_program(
      c, "kernel k workgroup(1)\nbuffer r : write u32[] @0;\n{ r[0] = 1; }\n");
  vyre_compile_options options = {.workgroup = {w[0], w[1], w[2]}};
  CTS_FAILS(
      c,
      vyre_pipeline_compile(c->device, program, &options, &none, NULL, &c->st),
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  cts_lacks(c, "workgroups of %u x %u x %u", w[0], w[1], w[2]);
}

static void shapes_run(cts *c, size_t index) {
  if (index < SHAPES) {
    check_limits(c, shapes[index].workgroup);
    run_shape(c, shapes[index].workgroup, shapes[index].grid);
    return;
  }
  const uint32_t *max = c->caps->max_workgroup;
  uint32_t all = c->caps->max_workgroup_invocations, w[3] = {1, 1, 1};
  static const uint32_t g[3] = {2, 2, 1};
  size_t which = index - SHAPES;
  if (which < 3) {
    w[which] = max[which] < all ? max[which] : all;
  } else { /* the largest size that two axes can reach */
    while ((w[0] + 1) * (w[0] + 1) <= all && w[0] < max[0]) w[0]++;
    w[1] = all / w[0] < max[1] ? all / w[0] : max[1];
  }
  run_shape(c, w, g);
}

const cts_area area_shapes = {"shapes", "workgroups and grids", shapes_count,
                              shapes_label, shapes_run};
