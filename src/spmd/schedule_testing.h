/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernel texts for the tests of schedule passes. Each is the smallest kernel that
 * its pass changes. */
#ifndef VYRE_SPMD_SCHEDULE_TESTING_H
#define VYRE_SPMD_SCHEDULE_TESTING_H

static const char saxpy[] =
    "kernel saxpy workgroup(64) over(y)\n"
    "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
    "uniform a : f32 @2;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = fma(a, x[i], y[i]); }\n";

static const char divergent[] =
    "kernel divergent workgroup(64)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{ let v = x[local_id.x]; var a = v;\n"
    "  if (v > 3) { a = a + 1; }\n"
    "  if (n > 3) { a = a * n; }\n"
    "  while (a < 100) { a = a + v + 1; }\n"
    "  if (v < 50) { y[local_id.x] = a; } else { y[(local_id.x * 5 & 63) + 64] "
    "= a; } }\n";

static const char row_sum[] =
    "kernel row_sum workgroup(64)\n"
    "buffer a : read f32[] @0;\nbuffer y : write f32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{ let i = global_id.x; var s = 0.0f;\n"
    "  for (let k = 0; k < n; k += 1) { s = s + a[k * 64 + i]; }\n"
    "  if (i < len(y)) { y[i] = s; } }\n";

static const char product[] =
    "kernel product workgroup(16, 4)\n"
    "buffer a : read f32[4096] @0;\nbuffer b : read f32[4096] @1;\n"
    "buffer y : write f32[64] @2;\n"
    "{ var s = 0.0f;\n"
    "  for (let k = 0u; k < 64u; k += 1u) {\n"
    "    s = fma(a[local_id.y * 64 + k], b[k * 16 + local_id.x], s); }\n"
    "  y[local_id.y * 16 + local_id.x] = s; }\n";

static const char weighted[] =
    "kernel weighted workgroup(16, 4)\n"
    "buffer w : read f32[17] @0;\nbuffer x : read f32[] @1;\n"
    "buffer y : write f32[] @2;\n"
    "{ let at = global_id.y * 256 + global_id.x; var s = 0.0f;\n"
    "  for (let k = 0u; k < 17u; k++) { s = fma(w[16 - k], x[at + k], s); }\n"
    "  y[at] = s; }\n";

/* Has eight accumulators, each of two vector registers. They need 16 registers,
 * and 13 are free: accumulator-split runs the loop once per group of
 * accumulators that fits. */
static const char sums[] =
    "kernel sums workgroup(16)\n"
    "buffer a : read f32[4096] @0;\nbuffer y : write f32[128] @1;\n"
    "{ let i = local_id.x;\n"
    "  var s0 = 0.0f; var s1 = 0.0f; var s2 = 0.0f; var s3 = 0.0f;\n"
    "  var s4 = 0.0f; var s5 = 0.0f; var s6 = 0.0f; var s7 = 0.0f;\n"
    "  for (let k = 0u; k < 64u; k += 1u) { let v = a[k * 16 + i];\n"
    "    s0 = fma(v, 1.5f, s0); s1 = fma(v, 2.5f, s1);\n"
    "    s2 = fma(v, 3.5f, s2); s3 = fma(v, 4.5f, s3);\n"
    "    s4 = fma(v, 5.5f, s4); s5 = fma(v, 6.5f, s5);\n"
    "    s6 = fma(v, 7.5f, s6); s7 = fma(v, 8.5f, s7); }\n"
    "  y[i] = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7; }\n";

static const char histogram[] =
    "kernel histogram workgroup(64)\n"
    "buffer x : read u32[] @0;\nbuffer bins : read_write u32[16] @1;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(x)) { atomic_add(bins[x[i] & 15], 1u); } }\n";

/* Only the last iteration of the loop needs a mask: loop-peel runs the others
 * without one. */
static const char strided[] =
    "kernel strided workgroup(64)\n"
    "buffer x : read u32[4096] @0;\nbuffer y : write u32[64] @1;\n"
    "uniform n : u32 @2;\n"
    "{ var s = 0u; let last = min(n, 4096);\n"
    "  for (let k = local_id.x; k < last; k += 64u) { s = s + x[k]; }\n"
    "  y[local_id.x] = s; }\n";

/* The invocations of a workgroup add a piece of a buffer. */
static const char pieces[] =
    "kernel pieces workgroup(32)\n"
    "buffer x : read f32[] @0;\nbuffer start : read i32[] @1;\n"
    "buffer y : write f32[] @2;\n"
    "{ let r = workgroup_id.x; var s = 0.0;\n"
    "  for (let j = start[r] + i32(local_id.x); j < start[r + 1]; j += 32) {\n"
    "    s += x[j]; }\n"
    "  y[global_id.x] = s; }\n";

static const char over_grid[] =
    "kernel over_grid workgroup(64)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{ var s = 0u; var i = global_id.x;\n"
    "  while (i < len(x)) {\n"
    "    s = s * 3 + x[i];\n"
    "    if (i + 7 < n) s = s + x[i + 7];\n"
    "    i += grid_size.x * 64;\n"
    "  }\n"
    "  y[global_id.x] = s; }\n";

/* Loops over parts of buffers, from a number of the caller on. */
static const char edges[] =
    "kernel edges workgroup(16)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{ let i = global_id.x; var s = 0u;\n"
    "  let first = n + (x[i] & 15); let last = first + (x[i + 1] & 31);\n"
    "  for (let e = first; e < last; e++) s = s * 3 + x[e] + x[e + 2];\n"
    "  for (let e = i32(first); e < i32(last); e++) s = s * 5 + x[e];\n"
    "  for (let e = 0u; e < x[i] % 9; e += 2) {\n"
    "    let at = first - n + e * 3; if (x[at] == n) break;\n"
    "    s = s * 7 + x[at] + x[at + 1] * 2 + x[at + 2] * 3 + x[i]; }\n"
    "  y[i] = s; }\n";

/* A scan in shared memory: sums up a tree, and down again. */
static const char up_and_down[] =
    "kernel up_and_down workgroup(64)\n"
    "buffer y : read_write u32[] @0;\n"
    "shared s : u32[128];\n"
    "{ let t = local_id.x; let at = workgroup_id.x * 128 + t * 2;\n"
    "  s[t * 2] = y[at]; s[t * 2 + 1] = y[at + 1];\n"
    "  var by = 1u; var d = 64u;\n"
    "  while (d > 0) { barrier();\n"
    "    if (t < d) { let a = by * (2 * t + 1) - 1;\n"
    "      s[a + by] += s[a]; }\n"
    "    by *= 2; d /= 2; }\n"
    "  barrier(); if (t == 0) s[127] = 0; d = 1;\n"
    "  while (d <= 64) { by /= 2; barrier();\n"
    "    if (t < d) { let a = by * (2 * t + 1) - 1;\n"
    "      let old = s[a]; s[a] = s[a + by]; s[a + by] += old; }\n"
    "    d *= 2; }\n"
    "  barrier(); y[at] = s[t * 2]; y[at + 1] = s[t * 2 + 1]; }\n";

static const char relax[] =
    "kernel relax workgroup(64)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "{ let i = global_id.x; var v = x[i];\n"
    "  if (v > 2) { v = v + x[i + 1]; }\n"
    "  y[i] = v; }\n";

static const char walk[] =
    "kernel walk workgroup(64)\n"
    "buffer a : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "uniform n : u32 @2;\n"
    "{ let i = global_id.x; var s = 0u;\n"
    "  for (let k = 0u; k < n; k++) { s = s * 3 + a[i * n + k]; }\n"
    "  y[i] = s; }\n";

static const char fields[] =
    "kernel fields workgroup(64)\n"
    "buffer p : read u32[] @0;\nbuffer v : read_write u32[] @1;\n"
    "uniform t : u32 @2;\n"
    "{ let i = global_id.x;\n"
    "  v[i * 3] += t * p[i * 4];\n"
    "  v[i * 3 + 1] += t * p[i * 4 + 2];\n"
    "  v[i * 3 + 2] += t; }\n";

static const char least[] =
    "kernel least workgroup(64)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (x[i] < y[i]) { y[i] = x[i]; } }\n";

static const char chain[] =
    "kernel chain workgroup(64)\n"
    "buffer at : read u32[] @0;\nbuffer bins : read_write u32[] @1;\n"
    "buffer y : write u32[] @2;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(at)) { y[i] = atomic_add(bins[at[i]], 1u); } }\n";

static const char reduce[] =
    "kernel reduce workgroup(16)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "shared t : u32[16];\n"
    "{ let i = global_id.x; var v = 0u; if (i < len(x)) { v = x[i]; }\n"
    "  t[local_id.x] = v; barrier();\n"
    "  if (local_id.x < 8) { y[i] = t[local_id.x] + t[local_id.x + 8]; } }\n";

/* Invocations of two dimensions add as a tree. Most steps need one row: row-limit
 * runs no others. */
static const char tree[] =
    "kernel tree workgroup(8, 4)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "shared t : u32[32];\n"
    "{ let i = local_id.y * 8 + local_id.x;\n"
    "  t[i] = x[workgroup_id.x * 32 + i]; barrier();\n"
    "  var active = 16u;\n"
    "  while (active > 0) {\n"
    "    if (i < active) { t[i] += t[i + active]; } barrier();\n"
    "    active /= 2; }\n"
    "  if (i == 9) { y[workgroup_id.x] = t[0]; } }\n";

/* Adjacent lanes access a shared array nine elements apart. shared-layout
 * transposes the array, so that the accesses become contiguous. */
static const char columns[] =
    "kernel columns workgroup(16, 2)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "shared t : u32[16 * 9];\n"
    "{ let a = local_id.x * 9 + local_id.y;\n"
    "  for (let k = 0u; k < 4; k++) t[a + 2 * k] = x[global_id.x + 16 * k];\n"
    "  barrier(); var s = 0u;\n"
    "  for (let k = 0u; k < 7; k++) s = s * 3 + t[a + k];\n"
    "  y[global_id.y * 128 + global_id.x] = s; }\n";

/* Lanes access a shared array along diagonals. shared-layout stores each diagonal
 * contiguously. */
static const char wavefront[] =
    "kernel wavefront workgroup(16)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "shared t : u32[17 * 17];\n"
    "{ let i = local_id.x; t[(i + 1) * 17] = x[i]; t[i + 1] = x[i + 16];\n"
    "  barrier();\n"
    "  for (let m = 0u; m < 16; m++) {\n"
    "    if (i <= m) { let r = m - i + 1;\n"
    "      t[r * 17 + i + 1] = t[r * 17 - 17 + i] * 3 + t[r * 17 + i] +\n"
    "        t[(r - 1) * 17 + i + 1]; }\n"
    "    barrier(); }\n"
    "  for (let k = 1u; k < 16; k++) {\n"
    "    if (i < 16 - k) { let c = i + k + 1; let r = 16 - i;\n"
    "      t[r * 17 + c] = t[r * 17 - 18 + c] * 3 + t[r * 17 + c - 1] +\n"
    "        t[(r - 1) * 17 + c]; }\n"
    "    barrier(); }\n"
    "  y[global_id.x] = t[16 * 17 + i + 1] + t[i * 17 + 16]; }\n";

#endif
