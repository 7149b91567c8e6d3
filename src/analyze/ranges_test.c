/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/ranges.h"

#include "support/analysis.h"
#include "support/check.h"

/* --- typical guards --------------------------------------------------------*/

/* Returns the number of accesses of a body that are not proven. */
static unsigned unproven(const char *body) {
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  unsigned count = 0;
  CHECK_OK(vyre__ranges_build(program, NULL, &arena, &ranges, &st), st);
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    bool is_access = (vyre__ops[node->op].flags & 7) != 0;
    bool is_scalar = is_access && node->a == 2; /* the uniform */
    count +=
        is_access && !is_scalar && !(ranges.flags[id] & VYRE__RANGE_INSIDE);
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return count;
}

TEST(guards_prove_accesses) {
  static const struct {
    const char *body;
    unsigned unproven;
  } guards[] = {
      {"y[i] = 1;", 1},
      {"if (i < len(y)) y[i] = 1;", 0},
      {"if (i <= len(y)) y[i] = 1;", 1},
      {"if (len(y) > i) y[i] = 1;", 0},
      {"if (i < len(x)) y[i] = x[i];", 1},
      {"if (i < len(x) && i < len(y)) y[i] = x[i];", 0},
      {"if (i < min(len(x), len(y))) y[i] = x[i];", 0},
      {"let m = min(len(x), len(y));\nif (i < m) y[i] = x[i];", 0},
      {"if (i >= len(y)) return;\ny[i] = 1;", 0},
      {"if (i >= len(y) || i >= len(x)) return;\ny[i] = x[i];", 0},
      {"let ok = i < len(y);\nif (ok) y[i] = 1;", 0},
      {"if (!(i >= len(y))) y[i] = 1;", 0},
      {"if (global_id.x < len(y)) y[global_id.x] = 1;", 0},
      {"if (i < len(y) && i > 0) y[i - 1] = y[i];", 0},
      {"if (i < len(y)) y[i / 2] = y[i >> 1u];", 0},
      {"let m = len(y);\nif (m > 0) y[m - 1] = 1;", 0},
      {"if (len(y) > 0) y[len(y) - 1] = y[min(i, len(y) - 1)];", 0},
      {"for (let k = 0u; k < len(y); k++) y[k] = 1;", 0},
      {"for (let k = i; k < len(y); k += 64) y[k] = 1;", 0},
      {"var k = i;\nwhile (k < len(y)) {\ny[k] = 1;\nk += 64;\n}", 0},
      {"var k = i;\nwhile (k < len(y)) {\nk += 64;\ny[k] = 1;\n}", 1},
      {"y[select(i < len(y), i, len(y))] = 1;", 1},
      {"if (0 < len(y)) y[select(i < len(y), i, 0u)] = 1;", 0},
      {"if (7 < len(y)) y[l & 7] = y[7];", 0},
      {"if (6 < len(y)) y[l & 7] = 1;", 1},
      {"tile[l] = 1;", 0},
      {"tile[63 - l] = 1;", 0},
      {"tile[l * 2 % 64] = tile[(l + 1) & 63];", 0},
      {"tile[min(i, 63)] = 1;", 0},
      {"tile[i] = 1;", 1},
      {"if (l < 32) tile[l + 32] = 1;", 0},
      {"if (l < 33) tile[l + 32] = 1;", 1},
      {"for (let s = 32u; s > 0; s -= 1) tile[s] = 1;", 0},
      {"var s = 32u;\nwhile (s > 0) {\nif (l < s) tile[l] += 1;\ns /= 2;\n}",
       0},
      {"if (u64(i) < u64(len(y))) y[i] = 1;", 0},
      {"let k = i32(i);\nif (k >= 0 && u32(k) < len(y)) y[k] = 1;", 0},
      {"let k = i32(i);\nif (u32(k) < len(y)) y[k] = 1;", 1},
  };
  for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
    unsigned got = unproven(guards[i].body);
    if (got != guards[i].unproven) printf("    %s\n", guards[i].body);
    CHECK_U64(got, guards[i].unproven);
  }
}

/* Accesses that need more than intervals: just provable ones, and near
 * misses. */
static const struct {
  const char *body;
  unsigned unproven;
} guards_of_values[] = {
    /* sums: place + k below a length, from k < m <= length - place */
    {"if (i < len(y) && n <= len(y) - i) for (let k = 0u; k < n; k++) "
     "y[i + k] = 1;",
     0},
    {"if (i < len(y) && n <= len(y) - i) for (let k = 0u; k <= n; k++) "
     "y[i + k] = 1;",
     1},
    {"if (i <= len(y) && n <= len(y) - i) for (let k = 0u; k < n; k++) "
     "y[k + i] = 1;",
     0},
    /* without i < len, the difference wraps */
    {"if (n <= len(y) - i) for (let k = 0u; k < n; k++) y[i + k] = 1;", 1},
    {"if (i + 1 < len(y)) y[i + 1] = 1;", 0},
    /* i + 1 may have wrapped */
    {"if (i + 1 < len(y)) y[i] = 1;", 1},
    {"if (i < len(x) && i + 1 < len(y)) y[i] = x[i];", 0},
    {"if (i + 3 < len(y) && i < 1000000) y[i + 2] = y[i + 3];", 0},
    {"if (i + 3 < len(y) && i < 1000000) y[i + 4] = 1;", 1},
    {"if (i < 8 && 70 < len(y)) y[i + l] = 1;", 0},
    {"if (i < 8 && 69 < len(y)) y[i + l] = 1;", 1},
    {"if (i + l < len(y)) y[l + i] = 1;", 0},
    {"if (l + i < 64) tile[i + l] = 1;", 0},
    {"if (l + i < 65) tile[i + l] = 1;", 1},
    /* rows */
    {"let h = len(y) / n;\nif (l < n && i < h) y[i * n + l] = 1;", 0},
    {"if (l < n && i < len(y) / n) y[l + n * i] = 1;", 0},
    {"if (l <= n && i < len(y) / n) y[i * n + l] = 1;", 1},
    {"if (l < n && i <= len(y) / n) y[i * n + l] = 1;", 1},
    {"if (l < n && i < len(y) / n) y[i * l + l] = 1;", 1},
    {"if (l < n && i < len(x) / n) y[i * n + l] = 1;", 1},
    {"if (l < n && i < min(len(x), len(y)) / n) y[i * n + l] = x[i * n + l];",
     0},
    {"if (l < n && i < max(len(x), len(y)) / n) y[i * n + l] = 1;", 1},
    {"if (len(y) / n < n || l >= n || i >= n) return;\ny[i * n + l] = 1;", 0},
    {"if (len(y) / n >= n || l >= n || i >= n) return;\ny[i * n + l] = 1;", 1},
    /* a product that wraps says nothing */
    {"if (n * n <= len(y) && l < n && i < n) y[i * n + l] = 1;", 1},
    {"if (u64(n) * u64(n) <= u64(len(y)) && l < n && i < n) "
     "y[i * n + l] = 1;",
     0},
    {"if (l < n && i < len(y) / n) { let a = max(l, 1) - 1;\n"
     "let b = min(l + 1, n - 1);\ny[i * n + a] = y[i * n + b]; }",
     0},
    {"if (l < n && i < len(y) / n) y[i * n + (l + 1)] = 1;", 1},
    {"let h = len(y) / n;\nif (l < n && i < h) { let a = max(i, 1) - 1;\n"
     "let b = min(i + 1, h - 1);\ny[a * n + l] = y[b * n + l]; }",
     0},
    {"let h = len(y) / n;\nif (l < n && i < h) y[min(i + 1, h) * n + l] = 1;",
     1},
    {"if (i + l < n && l < len(y) / n) y[l * n + i + l] = 1;", 0},
    {"if (i + l < n && l < len(y) / n) y[l * n + i + l + 1] = 1;", 1},
    {"if (i < len(y) / 4) y[i * 4] = y[i * 4 + 3];", 0},
    {"if (i < len(y) / 4) y[(i << 2u) + 3] = 1;", 0},
    {"if (i < len(y) / 4) y[i * 4 + 4] = 1;", 1},
    {"if (i <= len(y) / 4) y[i * 4] = 1;", 1},
    {"if (l < n && i < len(y) / 3 / n) y[(i * n + l) * 3 + 2] = 1;", 0},
    /* 32 bits of a product in 64 are not the product */
    {"if (l < n && i < len(y) / n) y[u64(i) * u64(n) + u64(l)] = 1;", 0},
    {"let k = i32(l);\nlet m = i32(n);\nif (k < m && u32(m) < len(y) / 9) "
     "y[k] = 1;",
     0},
    /* differences */
    {"if (i < len(y) && i >= n) y[i - n] = 1;", 0},
    {"if (i < len(y) && i + 1 >= n) y[i - n] = 1;", 1},
    {"if (i < len(y)) y[i - n] = 1;", 1},
    {"if (i < len(y)) y[len(y) - 1 - i] = 1;", 0},
    {"if (i < len(y)) y[len(y) - i] = 1;", 1},
    {"if (i <= len(y) && i > 0) y[len(y) - i] = 1;", 0},
    {"var d = n;\nif (l >= d) tile[l - d] = 1;", 0},
    {"var d = n;\nif (l >= d) { d += 1; tile[l - d] = 1; }", 1},
    /* remainders and quotients */
    {"if (len(y) > 0) y[i % len(y)] = 1;", 0},
    {"y[i % len(y)] = 1;", 1},
    {"if (n > 0 && n <= len(y)) y[i % n] = 1;", 0},
    {"if (n <= len(y)) y[i % n] = 1;", 1},
    {"if (n < len(y)) y[n / max(i, 1)] = 1;", 0},
    {"if (n < len(y)) y[n / i] = 1;", 1}, /* by 0: all ones */
    {"if (n < len(y)) y[n & i] = 1;", 0},
    {"if (n < len(y)) y[n | i] = 1;", 1},
    /* variables */
    {"var k = i;\nif (k < len(y)) { k += 1; y[k] = 1; }", 1},
    {"var k = i;\nif (k + 1 < len(y)) { k += 1; y[k] = 1; }", 0},
    {"var k = i;\nif (k < len(y)) { let a = k; k = 0; y[a] = 1; }", 0},
    {"var k = n;\nwhile (k * 2 < len(y)) { y[k * 2] = 1; k += 1; }", 0},
    {"var k = n;\nwhile (k * 2 < len(y)) { k += 1; y[k * 2] = 1; }", 1},
    {"var k = n;\nwhile (k * 2 >= len(y)) { k += i; }\ny[k * 2] = 1;", 0},
    {"var k = n;\nwhile (k * 2 >= len(y)) { k += i; if (k == 7) break; }\n"
     "y[k * 2] = 1;",
     1},
    {"var k = n;\nif (k * 2 < len(y)) while (i > k) { y[k * 2] = 1; k++; }", 1},
    {"let ok = l < n && i < len(y) / n;\nif (ok) y[i * n + l] = 1;", 0},
    {"var ok = i * 2 < len(y);\nok = ok || n > 3;\nif (ok) y[i * 2] = 1;", 1},
    /* written memory may change between guard and use */
    {"if (tile[0] < 64) tile[tile[0]] = 1;", 1},
    {"let a = tile[0];\nif (a < 64) tile[a] = 1;", 0},
    {"if (n * 2 < len(y)) y[n * 2] = 1;", 0},
    {"if (x[1] < len(y)) y[x[1]] = 1;", 3}, /* x[1] twice, and y */
    {"let a = uniform(i * 2);\nif (i * 2 < len(y)) y[a] = 1;", 1},
    /* signs */
    {"let k = i32(i);\nif (k < i32(n) && n < len(y)) y[k] = 1;", 1},
    {"let k = i32(l) - 1;\nif (k >= 0) tile[k] = 1;", 0},
    {"let k = i32(l) - i32(n);\nif (k <= 0) tile[k] = 1;", 1},
    /* below the smallest i32 it wraps to the largest */
    {"let s = as_i32(i);\nlet t = as_i32(n);\n"
     "if (s < 0 && t < 0) tile[max(s + t, 0)] = 1;",
     1},
    {"let s = as_i32(i);\nlet t = as_i32(n);\n"
     "if (s < 0 && t > 0) tile[max(s - t, 0)] = 1;",
     1},
    {"let s = as_i32(i);\nlet t = as_i32(n);\n"
     "if (s >= 0 && s < 64 && t >= 0) tile[max(s - t, 0)] = 1;",
     0},
};

/* Indices that are sums of dependent terms; tile has 64 elements, and l is
 * below 64. */
static const struct {
  const char *body;
  unsigned unproven;
} sums[] = {
    /* a quotient and its remainder */
    {"tile[l / 8 * 8 + l % 8] = 1;", 0},
    {"tile[l - l % 8 + 7] = 1;", 0},
    {"tile[l - l % 8 + 8] = 1;", 1},
    {"tile[l + 7 - l % 8] = 1;", 0},
    {"tile[7 - l % 8 + l] = 1;", 0},
    {"tile[l - (l & 7) + 7] = 1;", 0},
    {"tile[l - (l & 7) + 8] = 1;", 1},
    {"tile[l - l % 5 + 3] = 1;", 0}, /* at most 60 + 3 */
    {"tile[l - l % 5 + 4] = 1;", 1},
    {"tile[l - l / 8 * 8] = 1;", 0},
    {"tile[l - l / 8 * 9] = 1;", 1}, /* 56 - 63 is negative */
    {"tile[(l % 8) * 8 + l / 8] = 1;", 0},
    {"tile[(l % 8) * 8 + l / 7] = 1;", 1},
    {"tile[2 * l - l % 64] = 1;", 0},
    {"tile[2 * l - l % 32] = 1;", 1},
    {"let k = i32(l);\ntile[k - k % 8 + 7] = 1;", 0},
    {"let k = i32(i);\nif (k < 64) tile[k - k % 8] = 1;", 1},
    /* a power of two, and the bits below it */
    {"tile[l - (l & n)] = 1;", 0},
    {"tile[l - (l & n) + 1] = 1;", 1},
    {"if (l < 32) tile[2 * l - (l & n)] = 1;", 0},
    {"if (l < 33) tile[2 * l - (l & n)] = 1;", 1},
    {"if (l < 32) tile[3 * l - (l & n)] = 1;", 1},
    {"let s = 1u << (n & 3);\nif (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1;",
     0},
    {"let s = 1u << (n & 3);\nif (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s + 1] = 1;",
     1},
    {"let s = 1u << (n & 3);\nif (l < 33) "
     "tile[2 * l - (l & (s - 1)) + s] = 1;",
     1},
    {"let s = n & 7;\nif (l < 32) tile[2 * l - (l & (s - 1)) + s] = 1;", 1},
    {"let s = 3u << (n & 1);\nif (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1;",
     1},
    /* the mask of another value, or of another power */
    {"let s = 1u << (n & 3);\nif (l < 32 && i < 32) "
     "tile[2 * l - (i & (s - 1)) + s] = 1;",
     1},
    {"let s = 1u << (n & 3);\nlet q = 1u << (i & 3);\nif (l < 32) "
     "tile[2 * l - (l & (s - 1)) + q] = 1;",
     1},
    {"var s = 32u;\nwhile (s > 0) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s /= 2; }",
     0},
    {"var s = 32u;\nwhile (s > 0) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s -= 1; }",
     1},
    {"var s = 24u;\nwhile (s > 0) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s /= 2; }",
     1},
    {"var s = 1u;\nwhile (s <= 32) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s *= 2; }",
     0},
    {"var s = 1u;\nwhile (s <= 32) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s *= 3; }",
     1},
    {"var s = 1u;\nwhile (s <= 64) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s *= 2; }",
     1},
    {"var s = 32u;\nwhile (s > 0) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s /= 3; }",
     1},
    /* the first iteration keeps the range of s, but not the single bit */
    {"var s = min(1u << (n & 7), 32u);\nwhile (s < 32) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s = min(s + 2, 32); }",
     1},
    {"var s = min(1u << (n & 7), 32u);\nwhile (s < 32) { if (l < 32) "
     "tile[2 * l - (l & (s - 1)) + s] = 1; s = min(s * 2, 32); }",
     0},
    /* negative values */
    {"let k = min(max(as_i32(n), 0), 31);\ntile[k - k / 8 * 8] = 1;", 0},
    {"let k = min(max(as_i32(n), -32), 31);\ntile[k - k / 8 * 8] = 1;", 1},
    {"let k = min(max(as_i32(n), 0), 31);\ntile[k - (k & as_i32(i))] = 1;", 0},
    {"let k = min(max(as_i32(n), -32), 31);\n"
     "tile[k - (k & as_i32(i))] = 1;",
     1},
    /* a part that wraps on its own before it is widened */
    {"tile[u64(l - 1) + 1] = 1;", 1},
    {"tile[u64(l) - 1 + 1] = 1;", 0},
    {"tile[i32(l - 1) + 1] = 1;", 0},
    {"let k = i32(l) - 1;\ntile[u64(k) + 1] = 1;", 0},
    /* differences under a guard */
    {"for (let m = 0u; m < 8; m++) if (l <= m) tile[(m - l) * 8 + l] = 1;", 0},
    {"for (let m = 0u; m < 8; m++) if (l <= m + 1) tile[(m - l) * 8 + l] = 1;",
     1},
    {"for (let m = 0u; m < 8; m++) if (l <= m) tile[8 * m - 9 * l] = 1;", 1},
    {"for (let m = 0u; m < 8; m++) if (l < m) tile[8 * m - 7 * l - 7] = 1;", 0},
    {"for (let m = 0u; m < 8; m++) if (l <= m) tile[8 * m - 7 * l - 7] = 1;",
     1},
    {"let k = i32(n);\nlet e = min(i32(l) + 1, k);\n"
     "if (i32(l) <= k) tile[min(e, 63)] = 1;",
     0},
    {"let k = i32(n);\nlet e = min(i32(l) + 1, k);\n"
     "if (i32(l) <= k + 1) tile[min(e, 63)] = 1;",
     1},
    /* a bounded remainder bounds the dividend */
    {"if (l % 32 < 16) tile[l + 16] = 1;", 0},
    {"if (l % 32 < 17) tile[l + 16] = 1;", 1},
    {"if (l % 32 < 16) tile[l + 17] = 1;", 1},
    {"if ((l & 31) < 16) tile[l + 16] = 1;", 0},
    {"if ((l & 30) < 16) tile[l + 16] = 1;", 1},
    {"if (l % 33 < 16) tile[l + 16] = 1;", 1},
    {"if (l % 32 % 8 < 4) tile[l + 4] = 1;", 0}, /* l is at most 59 */
    {"if (l % 32 % 8 < 4) tile[l + 5] = 1;", 1},
    {"let lane = l % 32;\nvar h = 16u;\nwhile (h > 0) { if (lane < h) "
     "tile[l] += tile[l + h]; h /= 2; }",
     0},
    {"let lane = l % 32;\nvar h = 32u;\nwhile (h > 0) { if (lane < h) "
     "tile[l] += tile[l + h]; h /= 2; }",
     1},
    /* rows */
    {"if (l < n && i < len(y) / n) y[i * n + max(l, 1) - 1] = 1;", 0},
    {"if (l < n && i < len(y) / n) y[i * n + max(l, 1)] = 1;", 1},
    {"if (l < n && i < len(y) / n && l > 0) y[i * n + l - 1] = 1;", 0},
    {"if (l < n && i < len(y) / n) y[i * n + l - 1] = 1;", 1},
    {"if (l < n && i < len(y) / n && i > 0) y[i * n + l - n] = 1;", 0},
    {"if (l < n && i < len(y) / n) y[i * n + l - n] = 1;", 1},
    {"if (l < n && i + 1 < len(y) / n && i < 9999) y[i * n + l + n] = 1;", 0},
    {"if (l < n && i < len(y) / n) y[i * n + l + n] = 1;", 1},
    {"if (l < n && i < len(y) / n && i > 0 && l > 0) y[i * n - n + l - 1] = 1;",
     0},
    {"if (l < n && i < len(y) / n && i > 0) y[i * n - 2 * n + l] = 1;", 1},
    /* u32 rows of a u64 index wrap on their own */
    {"if (l < n && i < len(y) / n && i > 0) y[u64(i * n - n) + u64(l)] = 1;",
     1},
    {"if (l < n && i > 1 && i - 2 < len(y) / n) "
     "y[u64(i * n) - u64(n) - u64(n) + u64(l)] = 1;",
     1},
    /* an i32 sum below the length may be negative as an i32 */
    {"if (i < 65536 && n < 65536 && l < n && i < len(y) / n) "
     "y[i32(i) * i32(n) + i32(l)] = 1;",
     1},
    {"if (i < 65536 && n < 65536 && n > 0 && i < len(y) / n) "
     "y[i32(i) * i32(n)] = 1;",
     1},
    {"let k = i32(i);\nlet m = i32(n);\nif (l < n && k >= 0 && m >= 0 && "
     "i < len(y) / n) y[k * m + i32(l)] = 1;",
     1},
    {"if (i > 0 && i < len(y) / 4) y[i * 4 - 1] = y[4 * i + 1 - 2];", 0},
    {"if (i < len(y) / 4) y[i * 4 - 1] = 1;", 1},
    {"if (i + 1 < len(y) / 4 && i < 9999) y[i * 4 + 7] = 1;", 0},
    {"if (i + 1 < len(y) / 4 && i < 9999) y[i * 4 + 8] = 1;", 1},
};

TEST(sums_of_dependent_terms_prove_accesses) {
  for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
    unsigned got = unproven(sums[i].body);
    if (got != sums[i].unproven) printf("    %s\n", sums[i].body);
    CHECK_U64(got, sums[i].unproven);
  }
}

TEST(guards_of_values_prove_accesses) {
  for (size_t i = 0; i < sizeof guards_of_values / sizeof guards_of_values[0];
       i++) {
    unsigned got = unproven(guards_of_values[i].body);
    if (got != guards_of_values[i].unproven)
      printf("    %s\n", guards_of_values[i].body);
    CHECK_U64(got, guards_of_values[i].unproven);
  }
}

/* Variables that a `while` assigns: bounds that hold at the start and the end
 * of an iteration. */
TEST(iterations_of_a_while_prove_accesses) {
  static const struct {
    const char *body;
    unsigned unproven;
  } loops[] = {
      {"var s = 32u;\nwhile (s > 0) { if (l < s) tile[l + s] = 1; s /= 2; }",
       0},
      {"var s = 33u;\nwhile (s > 0) { if (l < s) tile[l + s] = 1; s /= 2; }",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (l < s) tile[l + s] = 1; s -= 1; }",
       0},
      /* s wraps once it is 0 */
      {"var s = 32u;\nwhile (s != 1) { if (l < s) tile[l + s] = 1; s -= 1; }",
       1},
      {"var s = 1u;\nwhile (s < 64) { tile[s] = 1; s *= 2; }", 0},
      {"var s = 1u;\nwhile (s < 64) { tile[s - 1] = 1; s *= 2; }", 0},
      {"var s = 1u;\nwhile (s < 64) { tile[s - 1] = 1; s *= n; }", 1},
      {"var s = 1u;\nwhile (s <= 64) { tile[s] = 1; s *= 2; }", 1},
      {"var s = 1u;\nwhile (s <= 64) { tile[s - 1] = 1; s += 3; }", 0},
      {"var s = 1u;\nwhile (s < 64) s *= 2;\ntile[s - 64] = 1;", 0},
      {"var s = 1u;\nwhile (s < 63) s += 2;\ntile[s - 64] = 1;", 1},
      {"var s = 1u;\nwhile (s < 64) { s *= 2; if (s == n) break; }\n"
       "tile[s - 64] = 1;",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (s == n) { s = 99; continue; } "
       "tile[s] = 1; s /= 2; }",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (s == n) s = 99; tile[s] = 1; "
       "s /= 2; }",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (s == n) s = 60; tile[s] = 1; "
       "s /= 2; }",
       0},
      /* loops in loops */
      {"var a = 4u;\nwhile (a > 0) { var b = 8u;\nwhile (b > 0) { "
       "tile[a * b + a] = 1; b /= 2; }\na -= 1; }",
       0},
      {"var a = 4u;\nvar b = 8u;\nwhile (a > 0) { while (b > 0) { "
       "tile[a * b] = 1; b /= 2; }\na -= 1; b = 8; }",
       0},
      {"var a = 4u;\nvar b = 8u;\nwhile (a > 0) { while (b > 0) { "
       "tile[a * b] = 1; b /= 2; }\na -= 1; b = a * 7; }",
       1},
  };
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
    unsigned got = unproven(loops[i].body);
    if (got != loops[i].unproven) printf("    %s\n", loops[i].body);
    CHECK_U64(got, loops[i].unproven);
  }
}

/* --- loops -----------------------------------------------------------------*/

/* Returns the trip count of the first loop of a body. */
static vyre__range trips_of(const char *body) {
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  vyre__range trips = {99, 99};
  CHECK_OK(vyre__ranges_build(program, NULL, &arena, &ranges, &st), st);
  for (vyre__id id = program->node_count - 1; id > 0; id--) {
    if (program->nodes[id].op != VYRE__OP_FOR) continue;
    CHECK(ranges.flags[id] & VYRE__RANGE_BOUNDED);
    trips = ranges.nodes[id];
    break; /* a loop comes after the loops inside it */
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return trips;
}

TEST(loops_may_be_left_early) {
  static const struct {
    const char *body;
    uint64_t min, max;
  } rows[] = {
      {"for (let k = 0u; k < 8; k++) y[k] = 1;", 8, 8},
      {"for (let k = 0u; k < 8; k++) { if (k == i) break; y[k] = 1; }", 1, 8},
      {"for (let k = 0u; k < 8; k++) { if (k == i) return; y[k] = 1; }", 1, 8},
      {"for (let k = 0u; k < 8; k++) { if (k == i) continue; y[k] = 1; }", 8,
       8},
      {"for (let k = 0u; k < 8; k++) { while (true) { break; } }", 8, 8},
      {"for (let k = 0u; k < 8; k++) { while (true) { return; } }", 1, 8},
      {"for (let k = 0u; k < l; k++) { if (k == i) break; y[k] = 1; }", 0, 63},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    vyre__range trips = trips_of(rows[i].body);
    CHECK_U64(trips.lo, rows[i].min);
    CHECK_U64(trips.hi, rows[i].max);
  }
}

/* --- other workgroups ------------------------------------------------------*/

/* Returns the flags of `tile[local_id.x + 32]` for a workgroup. */
static uint8_t flags_for(const uint32_t workgroup[3], vyre__id last) {
  vyre_module *module =
      parse_module(kernel_text("tile[l + 32] = 1;\ny[0] = workgroup_size.x;"));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  uint8_t flags = 0;
  CHECK_OK(
      vyre__ranges_build_to(program, workgroup, last, &arena, &ranges, &st),
      st);
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    if (node->op == VYRE__OP_STORE && node->a == 3) flags = ranges.flags[id];
    if (node->op != VYRE__OP_WORKGROUP_SIZE || last != UINT32_MAX) continue;
    CHECK_U64(ranges.nodes[id].lo, workgroup ? workgroup[0] : 64);
    CHECK_U64(ranges.nodes[id].hi, workgroup ? workgroup[0] : 64);
  }
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return flags;
}

TEST(facts_hold_for_the_workgroup_that_is_asked_for) {
  CHECK_U64(flags_for(NULL, UINT32_MAX), 0);
  CHECK_U64(flags_for((uint32_t[]){32, 1, 1}, UINT32_MAX), VYRE__RANGE_INSIDE);
  CHECK_U64(flags_for((uint32_t[]){33, 1, 1}, UINT32_MAX), 0);
  /* The store is the third statement, with nodes 5 to 9. */
  CHECK_U64(flags_for((uint32_t[]){32, 1, 1}, 7), VYRE__RANGE_INSIDE);
}

/* --- memory ----------------------------------------------------------------*/

static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module = parse_module(kernel_text(
      "var a = 0u;\nif (i < len(y)) { a = 1; y[i] = 1; } else { a = l; }\n"
      "for (let k = 0u; k < 8; k++) { if (a > 3) a = k; tile[a] = k; }\n"
      "while (a < 64) { if (n <= len(y) - a) y[a + n] = 1; a *= 2; }"));
  vyre_arena arena;
  vyre__ranges ranges;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre__ranges_build(vyre_module_kernel(module, 0), NULL,
                                      &arena, &ranges, st);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return code;
}

TEST(survives_running_out_of_memory) {
  CHECK(sweep_allocations(sweep_scenario) > 1);
}

TEST_MAIN(TEST_ENTRY(guards_prove_accesses),
          TEST_ENTRY(guards_of_values_prove_accesses),
          TEST_ENTRY(sums_of_dependent_terms_prove_accesses),
          TEST_ENTRY(iterations_of_a_while_prove_accesses),
          TEST_ENTRY(loops_may_be_left_early),
          TEST_ENTRY(facts_hold_for_the_workgroup_that_is_asked_for),
          TEST_ENTRY(survives_running_out_of_memory))
