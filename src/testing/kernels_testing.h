/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels that are typical of code written for speed, for tests of the CPU
 * code generator. Uniforms hold small numbers. */
#ifndef VYRE_TESTING_KERNELS_TESTING_H
#define VYRE_TESTING_KERNELS_TESTING_H

typedef struct kernel_text {
  const char *name;
  const char *text;
} kernel_text;

static const kernel_text kernel_texts[] = {
    {"saxpy",
     "kernel k workgroup(256) over(y)\n"
     "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
     "uniform a : f32 @2;\n"
     "{ let i = global_id.x; if (i < min(len(x), len(y))) {\n"
     "  y[i] = a * x[i] + y[i]; } }\n"},
    {"exp",
     "kernel k workgroup(256) over(y)\n"
     "buffer x : read f32[] @0;\nbuffer y : write f32[] @1;\n"
     "{ let i = global_id.x;\n"
     "  if (i < len(x) && i < len(y)) { y[i] = exp(x[i]); } }\n"},
    {"mandelbrot",
     "kernel k workgroup(64, 2)\nbuffer out : write u32[] @0;\n"
     "uniform width : u32 @1;\n"
     "{ let px = global_id.x; let py = global_id.y;\n"
     "  if (px >= width) return;\n"
     "  let cx = f32(px) * 0.03 - 2.0; let cy = f32(py) * 0.06 - 1.0;\n"
     "  var x = 0.0; var y = 0.0; var n = 0u;\n"
     "  while (n < 50 && x * x + y * y <= 4.0) {\n"
     "    let t = x * x - y * y + cx; y = 2.0 * x * y + cy; x = t; n++; }\n"
     "  let at = py * width + px; if (at < len(out)) { out[at] = n; } }\n"},
    {"reduce",
     "kernel k workgroup(256) over(x)\n"
     "buffer x : read f32[] @0;\nbuffer sums : write f32[] @1;\n"
     "shared part : f32[256];\n"
     "{ let l = local_id.x; part[l] = 0.0;\n"
     "  if (global_id.x < len(x)) { part[l] = x[global_id.x]; }\n"
     "  barrier();\n"
     "  var s = 128u;\n"
     "  while (s > 0) { if (l < s) { part[l] += part[l + s]; }\n"
     "    barrier(); s /= 2; }\n"
     "  if (l == 0 && workgroup_id.x < len(sums)) {\n"
     "    sums[workgroup_id.x] = part[0]; } }\n"},
    {"softmax",
     "kernel k workgroup(64)\n"
     "buffer x : read f32[] @0;\nbuffer y : write f32[] @1;\n"
     "uniform width : u32 @2;\nshared part : f32[64];\n"
     "{ let l = local_id.x; let row = workgroup_id.x * width;\n"
     "  var most = -1000.0;\n"
     "  for (let k = l; k < width; k += 64) {\n"
     "    if (row + k < len(x)) { most = max(most, x[row + k]); } }\n"
     "  part[l] = most; barrier(); var h = 32u;\n"
     "  while (h > 0) { if (l < h) { part[l] = max(part[l], part[l + h]); }\n"
     "    barrier(); h /= 2; }\n"
     "  most = part[0]; barrier(); var sum = 0.0;\n"
     "  for (let k = l; k < width; k += 64) {\n"
     "    if (row + k < len(x)) { sum += exp(x[row + k] - most); } }\n"
     "  part[l] = sum; barrier(); h = 32;\n"
     "  while (h > 0) { if (l < h) { part[l] += part[l + h]; }\n"
     "    barrier(); h /= 2; }\n"
     "  for (let k = l; k < width; k += 64) {\n"
     "    if (row + k < len(y)) { y[row + k] = exp(x[row + k] - most) / "
     "part[0];\n"
     "  } } }\n"},
    {"matmul",
     "kernel k workgroup(16, 16)\n"
     "buffer a : read f32[] @0;\nbuffer b : read f32[] @1;\n"
     "buffer c : write f32[] @2;\nuniform n : u32 @3;\n"
     "{ let x = global_id.x; let y = global_id.y; if (x >= n || y >= n) "
     "return;\n"
     "  var sum = 0.0;\n"
     "  for (let k = 0u; k < n; k++) {\n"
     "    sum = fma(a[y * n + k], b[k * n + x], sum); }\n"
     "  c[y * n + x] = sum; }\n"},
    {"matmul_tiled",
     "kernel k workgroup(16, 16)\n"
     "buffer a : read f32[] @0;\nbuffer b : read f32[] @1;\n"
     "buffer c : write f32[] @2;\nuniform n : u32 @3;\n"
     "shared ta : f32[256];\nshared tb : f32[256];\n"
     "{ let lx = local_id.x; let ly = local_id.y;\n"
     "  let row = global_id.y; let col = global_id.x; var sum = 0.0;\n"
     "  for (let t = 0u; t < (n + 15) / 16; t++) {\n"
     "    ta[ly * 16 + lx] = a[row * n + t * 16 + lx];\n"
     "    tb[ly * 16 + lx] = b[(t * 16 + ly) * n + col];\n"
     "    barrier();\n"
     "    for (let k = 0u; k < 16; k++) {\n"
     "      sum = fma(ta[ly * 16 + k], tb[k * 16 + lx], sum); }\n"
     "    barrier(); }\n"
     "  if (row < n && col < n) { c[row * n + col] = sum; } }\n"},
    {"matmul_blocked",
     "kernel k workgroup(16, 2)\n"
     "buffer a : read f32[] @0;\nbuffer b : read f32[] @1;\n"
     "buffer c : write f32[] @2;\nuniform n : u32 @3;\n"
     "shared ta : f32[256];\nshared tb : f32[256];\n"
     "{ let lx = local_id.x; let ly = local_id.y; let col = global_id.x;\n"
     "  let row = workgroup_id.y * 16 + ly * 8;\n"
     "  var s0 = 0.0; var s1 = 0.0; var s2 = 0.0; var s3 = 0.0;\n"
     "  var s4 = 0.0; var s5 = 0.0; var s6 = 0.0; var s7 = 0.0;\n"
     "  for (let t = 0u; t < n; t += 16) {\n"
     "    for (let r = 0u; r < 8; r++) {\n"
     "      ta[(ly * 8 + r) * 16 + lx] = a[(row + r) * n + t + lx];\n"
     "      tb[(ly * 8 + r) * 16 + lx] = b[(t + ly * 8 + r) * n + col]; }\n"
     "    barrier();\n"
     "    for (let k = 0u; k < 16; k++) {\n"
     "      let v = tb[k * 16 + lx]; let at = ly * 128 + k;\n"
     "      s0 = fma(ta[at], v, s0); s1 = fma(ta[at + 16], v, s1);\n"
     "      s2 = fma(ta[at + 32], v, s2); s3 = fma(ta[at + 48], v, s3);\n"
     "      s4 = fma(ta[at + 64], v, s4); s5 = fma(ta[at + 80], v, s5);\n"
     "      s6 = fma(ta[at + 96], v, s6); s7 = fma(ta[at + 112], v, s7); }\n"
     "    barrier(); }\n"
     "  if (col < n && row + 7 < n) { let at = row * n + col;\n"
     "    c[at] = s0; c[at + n] = s1; c[at + 2 * n] = s2; c[at + 3 * n] = s3;\n"
     "    c[at + 4 * n] = s4; c[at + 5 * n] = s5; c[at + 6 * n] = s6;\n"
     "    c[at + 7 * n] = s7; } }\n"},
    {"stencil",
     "kernel k workgroup(64, 4)\n"
     "buffer x : read f32[] @0;\nbuffer y : write f32[] @1;\n"
     "uniform w : u32 @2;\n"
     "{ let i = global_id.x; let j = global_id.y; let h = len(y) / w;\n"
     "  if (i > 0 && i + 1 < w && j > 0 && j + 1 < h) { let at = j * w + i;\n"
     "    y[at] = 0.2 * (x[at] + x[at - 1] + x[at + 1] + x[at - w] + x[at + "
     "w]);\n"
     "  } }\n"},
    {"histogram",
     "kernel k workgroup(64)\n"
     "buffer data : read u8[] @0;\nbuffer bins : read_write u32[256] @1;\n"
     "shared mine : u32[256];\n"
     "{ let l = local_id.x; let first = workgroup_id.x * 4096 + l;\n"
     "  for (let k = 0u; k < 64; k++) { let at = first + k * 64;\n"
     "    if (at < len(data)) { atomic_add(mine[data[at]], 1); } }\n"
     "  barrier();\n"
     "  for (let k = l; k < 256; k += 64) { atomic_add(bins[k], mine[k]); } "
     "}\n"},
    {"bfs",
     "kernel k workgroup(64)\n"
     "buffer starts : read u32[] @0;\nbuffer targets : read u32[] @1;\n"
     "buffer found : read u8[] @2;\nbuffer distance : read_write u32[] @3;\n"
     "buffer next : write u8[] @4;\nuniform depth : u32 @5;\n"
     "{ let v = global_id.x;\n"
     "  if (v >= len(found) || v + 1 >= len(starts)) return;\n"
     "  if (found[v] == 0) return;\n"
     "  let stop = min(starts[v + 1], len(targets));\n"
     "  for (let e = starts[v]; e < stop; e++) { let t = targets[e];\n"
     "    if (t >= len(distance) || t >= len(next)) continue;\n"
     "    if (atomic_compare_exchange(distance[t], 99, depth + 1) == 99) {\n"
     "      next[t] = 1; } } }\n"},
    {"match",
     "kernel k workgroup(64) over(text)\n"
     "buffer text : read bytes[] @0;\nbuffer pattern : read bytes[] @1;\n"
     "buffer hits : write u32[] @2;\n"
     "{ let i = global_id.x; var j = 0u;\n"
     "  if (i < len(text)) {\n"
     "    while (j < len(pattern) && text[i + j] == pattern[j]) { j++; }\n"
     "    if (i < len(hits)) { hits[i] = j; } } }\n"},
};
enum { KERNEL_TEXTS = sizeof kernel_texts / sizeof kernel_texts[0] };

#endif
