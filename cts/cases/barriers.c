/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: workgroup barriers, grid barriers and shared memory. */
#include "cts/harness/small_kernels.h"

static void reverse(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = (i / 16 * 16 + 15 - i % 16) * 3;
  }
}

/* Computes inclusive sums of 1, 2, ... in each workgroup of 64. */
static void scan(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = (i % 64 ? want[i - 1] : 0) + i + 1;
  }
}

static void zeros(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = 0;
}

static void uniform_values(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i / 8 * 8 * 5;
}

static void uniform_branch(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i / 8 % 2 ? i / 8 * 8 + 7 - i % 8 : 1000;
  }
}

static void loop_rounds(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i / 32 * 32 + (i + 7) % 32;
  }
}

static void grid_twice(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i * 2 + (count - 1 - i) * 2;
  }
}

/* Keeps values alive across grid barriers in a loop. */
static void grid_loop(uint32_t *want, uint32_t count) {
  uint32_t now[256], next[256];
  for (uint32_t i = 0; i < count; i++) now[i] = i * i;
  for (uint32_t round = 0; round < 6; round++) {
    for (uint32_t i = 0; i < count; i++) {
      next[i] = now[(i + 1) % count] + round + i * 3;
    }
    memcpy(now, next, 4 * (size_t)count);
  }
  memcpy(want, now, 4 * (size_t)count);
}

static void wide_grid_loops(uint32_t *want, uint32_t count) {
  uint32_t before[128];
  for (uint32_t i = 0; i < count; i++) want[i] = i;
  for (uint64_t a = 4294967294u; a < UINT64_C(4294967298); a++) {
    memcpy(before, want, sizeof before);
    for (uint32_t i = 0; i < count; i++) {
      want[i] = before[(i + 1) % count] * 3 + (uint32_t)(a >> 31);
      for (int64_t b = 2; b > INT64_C(-6000000000); b -= 3000000000) {
        want[i] ^= (uint32_t)(b >> 5) + (uint32_t)a;
      }
    }
  }
}

static void grid_shared(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i + 1;
}

/* Passes values from one iteration to the next, and the last one out of the
 * loop. */
static void lives_on(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t other = i / 16 * 16 + 15 - i % 16;
    want[i] = (i + 1) + (3 + other) + (4 + other) + (5 + other) * 10;
  }
}

static void grid_sum(uint32_t *want, uint32_t count) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += i;
  for (uint32_t i = 0; i < count; i++) want[i] = sum - i;
}

static void grid_return(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i + 700;
}

static void grid_break(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = 3 * i + 700 * 2;
}

/* Each iteration of the outer loop, except the odd ones, has three of the inner
 * one. */
static void grid_nested(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i + 150 * 3 + 300;
}

static const small_case cases[] = {
    {"reverse_in_shared_memory",
     "kernel k workgroup(16) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[16];\n"
     "{\n    s[local_id.x] = global_id.x * 3;\n    barrier();\n"
     "    r[global_id.x] = s[15 - local_id.x];\n}\n",
     160,
     {0},
     reverse},
    {"scan_in_a_uniform_loop",
     "kernel k workgroup(64) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[64];\n"
     "{\n    let l = local_id.x;\n    s[l] = global_id.x + 1;\n"
     "    barrier();\n"
     "    for (let k = 0u; k < 6; k++) {\n"
     "        let step = 1u << k;\n        var v = s[l];\n"
     "        if (l >= step) v += s[l - step];\n"
     "        barrier();\n        s[l] = v;\n        barrier();\n    }\n"
     "    r[global_id.x] = s[l];\n}\n",
     192,
     {0},
     scan},
    {"shared_memory_begins_as_zeros",
     "kernel k workgroup(32) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[32];\n"
     "{\n    r[global_id.x] = s[31 - local_id.x];\n    barrier();\n"
     "    s[local_id.x] = 0xFFFFFFFF;\n}\n",
     320,
     {0},
     zeros},
    {"uniform_value",
     "kernel k workgroup(8) over(r)\nbuffer r : write u32[] @0;\n"
     "{\n    r[global_id.x] = uniform(global_id.x * 5);\n}\n",
     64,
     {0},
     uniform_values},
    {"barrier_in_a_uniform_branch",
     "kernel k workgroup(8) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[8];\n"
     "{\n    let i = global_id.x;\n    s[local_id.x] = i;\n"
     "    if (workgroup_id.x % 2 == 1) {\n        barrier();\n"
     "        r[i] = s[7 - local_id.x];\n    } else r[i] = 1000;\n}\n",
     64,
     {0},
     uniform_branch},
    {"barriers_in_a_loop",
     "kernel k workgroup(32) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[32];\n"
     "{\n    s[local_id.x] = global_id.x;\n"
     "    for (let k = 0u; k < 7; k++) {\n        barrier();\n"
     "        let next = s[(local_id.x + 1) % 32];\n        barrier();\n"
     "        s[local_id.x] = next;\n    }\n"
     "    r[global_id.x] = s[local_id.x];\n}\n",
     96,
     {0},
     loop_rounds},
    {"grid_barriers",
     "kernel k workgroup(16) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    r[i] = i * 2;\n    grid_barrier();\n"
     "    let other = r[len(r) - 1 - i];\n    grid_barrier();\n"
     "    if (i < len(r)) r[i] += other;\n}\n",
     144,
     {0},
     grid_twice},
    {"grid_barriers_in_a_loop",
     "kernel k workgroup(32) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    let add = i * 3;\n    r[i] = i * i;\n"
     "    for (let turn = 0u; turn < 6; turn++) {\n"
     "        grid_barrier();\n"
     "        let next = r[(i + 1) % len(r)] + turn + add;\n"
     "        grid_barrier();\n        r[i] = next;\n    }\n}\n",
     256,
     {0},
     grid_loop},
    {"grid_barriers_in_loops_of_64_bits",
     "kernel k workgroup(32) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    r[i] = i;\n"
     "    for (let a = 4294967294ul; a < 4294967298ul; a++) {\n"
     "        grid_barrier();\n"
     "        let next = r[(i + 1) % len(r)] * 3 + u32(a >> 31u);\n"
     "        grid_barrier();\n        r[i] = next;\n"
     "        for (let b = 2l; b > -6000000000l; b -= 3000000000l) {\n"
     "            grid_barrier();\n            r[i] ^= u32(b >> 5u) + u32(a);\n"
     "        }\n    }\n}\n",
     128,
     {0},
     wide_grid_loops,
     .needs_u64 = true},
    /* The loops end with their last invocation: to run all iterations would
     * take hours. */
    {"a_grid_loop_that_all_return_from",
     "kernel k workgroup(16) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    r[i] = i;\n"
     "    for (let turn = 0u; turn < 4000000000u; turn++) {\n"
     "        if (turn == 700) return;\n"
     "        r[i] += 1;\n        grid_barrier();\n    }\n    r[i] = 7;\n}\n",
     80,
     {0},
     grid_return},
    {"a_grid_loop_that_all_break",
     "kernel k workgroup(16) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    r[i] = i;\n"
     "    for (let turn = 4000000000u; turn > 0; turn--) {\n"
     "        if (turn == 4000000000u - 700) break;\n"
     "        grid_barrier();\n        r[i] += 2;\n    }\n"
     "    r[i] += i * 2;\n}\n",
     80,
     {0},
     grid_break},
    {"grid_loops_in_a_loop_that_all_leave",
     "kernel k workgroup(16) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    r[i] = i;\n"
     "    for (let a = 0u; a < 3000000000u; a++) {\n"
     "        if (a == 300) return;\n"
     "        r[i] += 1;\n"
     "        if (a % 2 == 1) continue;\n"
     "        for (let b = 0u; b < 3000000000u; b++) {\n"
     "            if (b == 3) break;\n"
     "            grid_barrier();\n            r[i] += 1;\n        }\n"
     "    }\n    r[i] = 7;\n}\n",
     80,
     {0},
     grid_nested},
    {"shared_memory_is_zero_after_a_grid_barrier",
     "kernel k workgroup(16) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[16];\n"
     "{\n    s[local_id.x] = 77;\n    grid_barrier();\n"
     "    r[global_id.x] = s[local_id.x] + global_id.x + 1;\n}\n",
     64,
     {0},
     grid_shared},
    {"shared_memory_lives_on_to_the_next_round",
     "kernel k workgroup(16) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "shared s : u32[16];\n"
     "{\n    let i = global_id.x;\n    let l = local_id.x;\n"
     "    s[15 - l] = i + 1;\n    barrier();\n"
     "    for (let k = 0u; k < 3; k++) {\n"
     "        r[i] += s[15 - l];\n        grid_barrier();\n"
     "        s[l] = s[l] + k + 3 + i;\n        barrier();\n    }\n"
     "    r[i] += s[15 - l] * 10;\n}\n",
     96,
     {0},
     lives_on},
    {"atomics_before_a_grid_barrier",
     "kernel k workgroup(16) over(r)\nbuffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n    atomic_add(r[0], i);\n"
     "    grid_barrier();\n    let sum = r[0];\n    grid_barrier();\n"
     "    r[i] = sum - i;\n}\n",
     80,
     {0},
     grid_sum},
};

SMALL_AREA(barriers, "barriers and shared memory");
