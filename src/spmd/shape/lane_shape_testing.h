/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Small kernels and their exact lane shapes. */
#ifndef VYRE_SPMD_LANE_SHAPE_TESTING_H
#define VYRE_SPMD_LANE_SHAPE_TESTING_H

#include <stdint.h>
#include <stdio.h>

enum { SHAPE_TEXT = 2048 };

/* Prints a kernel around @p body. Buffers that it reads are not written; z may
 * be written, as far as the analysis can tell. */
static inline void shape_kernel(char out[SHAPE_TEXT], const char *size,
                                const char *body) {
  snprintf(out, SHAPE_TEXT,
           "kernel k workgroup(%s)\n"
           "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
           "buffer z : read_write u32[] @2;\nuniform n : u32 @3;\n"
           "uniform wide : u64 @4;\nshared tile : u32[64];\n"
           "{ let l = local_id.x; let i = global_id.x; let v = x[i];\n"
           "%s }\n",
           size, body);
}

/* --- one value ------------------------------------------------------------ */

typedef struct value_case {
  const char *size;
  uint32_t width;
  const char *value; /* a u32 expression */
  const char *want;
} value_case;

static const value_case value_cases[] = {
    /* ids */
    {"64", 16, "l", "linear 1 @4"},
    {"64", 1, "l", "vector"},
    {"100", 16, "l", "linear 1 @4"},
    {"16", 16, "l", "linear 1 @32"},
    {"7", 16, "l", "linear 1 @32"},
    {"1", 16, "i", "group"},
    {"1", 16, "l", "constant 0"},
    {"32,4", 16, "l", "linear 1 @4"},
    {"16,4", 16, "l", "linear 1 @32"},
    {"32,4", 16, "local_id.y", "vector"},
    {"4,4,4", 16, "local_id.z", "vector"},
    {"4,4,4", 16, "local_id.y", "varying"},
    {"4,4", 16, "l", "varying"},
    {"6,4", 4, "l", "varying"},
    {"6,4", 4, "local_id.y", "varying"},
    {"6,4,2", 8, "local_id.z", "vector"},
    {"6,4,2", 16, "local_id.z", "varying"},
    {"6,1,2", 16, "local_id.y", "constant 0"},
    {"64", 16, "workgroup_id.x", "group"},
    {"64", 16, "len(x)", "group"},
    {"64", 16, "n", "group"},
    /* + - * */
    {"64", 16, "i", "linear 1 @4"},
    {"48", 32, "i", "linear 1 @4"},
    {"63", 16, "i", "linear 1"},
    {"64", 16, "i + 1", "linear 1"},
    {"64", 16, "i + n * 16", "linear 1 @4"},
    {"64", 16, "i + i", "linear 2 @4"},
    {"64", 16, "i - l", "vector @4"},
    {"64", 16, "n - i", "linear -1"},
    {"64", 16, "i * 12", "linear 12 @6"},
    {"64", 16, "i * 12 + 4", "linear 12 @2"},
    {"64", 16, "i * n", "varying"},
    {"64", 16, "i * i", "varying"},
    {"64", 16, "i << 3", "linear 8 @7"},
    {"64", 16, "i << n", "varying"},
    {"64", 16, "i * 0x80000000u * 2", "vector @32"},
    {"64", 16, "~i", "linear -1"},
    {"64", 16, "n * 12", "group @2"},
    {"64", 16, "n * 12 + 8", "group @2"},
    {"64", 16, "n + 3", "group"},
    {"32,4", 16, "local_id.y * 32 + l", "linear 1 @4"},
    {"32,4", 16, "local_id.y * n", "vector"},
    /* flattened ids where rows do not fill vectors */
    {"4,4", 16, "local_id.y * 4 + l", "linear 1 @32"},
    {"4,4", 8, "local_id.y * 4 + l", "linear 1 @3"},
    {"4,4", 8, "(l + (local_id.y << 2)) * 3 + n", "linear 3"},
    {"4,4", 8, "(local_id.y * 4 + l) / 8", "vector"},
    {"4,4", 8, "local_id.y * 5 + l", "varying"},
    {"4,4", 8, "local_id.y * 4 - l", "varying"},
    {"6,4,3", 16, "(local_id.z * 4 + local_id.y) * 6 + l", "linear 1 @4"},
    {"6,4,3", 16, "local_id.y * 6 + l", "varying"},
    {"6,4,3", 8, "local_id.y * 6 + l", "linear 1 @3"},
    {"6,4,3", 8, "local_id.y * 6 + l + local_id.z * 4", "linear 1 @2"},
    {"6,1,3", 4, "local_id.z * 6 + l", "linear 1 @2"},
    {"4,4", 1, "local_id.y * 4 + l", "vector"},
    /* bits, division */
    {"64", 16, "l & 15", "linear 1 @32"},
    {"64", 16, "l & 31", "linear 1 @4"},
    {"64", 8, "l & 15", "linear 1 @3"},
    {"64", 32, "l & 15", "varying"},
    {"64", 16, "l >> 4", "vector"},
    {"64", 8, "l >> 4", "vector"},
    {"64", 32, "l >> 4", "varying"},
    {"64", 16, "l / 16", "vector"},
    {"64", 16, "l / 32", "vector"},
    {"64", 16, "l % 16", "linear 1 @32"},
    {"64", 16, "l % 12", "varying"},
    {"64", 16, "l / 12", "varying"},
    {"64", 16, "l / n", "varying"},
    {"64", 16, "n % l", "varying"},
    {"64", 16, "(l + 1) & 15", "varying"},
    {"64", 16, "(l + 1) >> 4", "varying"},
    {"64", 16, "(l * 8) >> 2", "linear 2 @5"},
    {"64", 16, "(l * 2) >> 2", "varying"},
    {"64", 16, "u32(i32(l) >> 4)", "vector"},
    {"64", 16, "l & 0xFFFFFFF0u", "vector @4"},
    {"64", 16, "l & 0xFFFFFFF8u", "varying"},
    {"64", 16, "(l & 0xFFFFFFF0u) >> 4", "vector"},
    {"64", 16, "l & (n << 4)", "vector @4"},
    {"64", 16, "l & n", "varying"},
    {"64", 16, "l | (n << 4)", "linear 1 @4"},
    {"64", 16, "l ^ (n << 4)", "linear 1 @4"},
    {"64", 16, "l | (n << 3)", "varying"},
    {"64", 16, "l | 15", "vector"},
    {"64", 16, "l ^ 1", "varying"},
    {"64", 16, "(l << 2) | 3", "linear 4"},
    {"64", 16, "l * 3 & 15", "varying"},
    {"64", 16, "(n << 6) >> 4", "group @2"},
    {"64", 16, "n / 4", "group"},
    /* conditions */
    {"64", 16, "u32(l < 32)", "vector"},
    {"64", 16, "u32(l < 40)", "varying"},
    {"64", 8, "u32(l < 40)", "vector"},
    {"64", 16, "u32(l <= 31)", "vector"},
    {"64", 16, "u32(l <= 32)", "varying"},
    {"64", 16, "u32(l > 47)", "vector"},
    {"64", 16, "u32(l >= 48)", "vector"},
    {"64", 16, "u32(l < n)", "varying"},
    {"64", 16, "u32(i < n * 64)", "vector"},
    {"64", 16, "u32(i32(l) < 32)", "vector"},
    {"64", 16, "u32(l == 0)", "varying"},
    {"64", 16, "u32(n < 5)", "group"},
    {"32,4", 16, "u32(local_id.y < n)", "vector"},
    {"64", 16, "select(n < 4, l, l + 4)", "linear 1 @2"},
    {"64", 16, "select(n < 4, l, n)", "varying"},
    {"64", 16, "select(n < 4, l, l * 2)", "varying"},
    {"64", 16, "select(n < 4, n, 7)", "group"},
    {"64", 16, "select(l < 32, n, 7)", "vector"},
    {"64", 16, "select(l < 31, n, 7)", "varying"},
    /* conversions */
    {"64", 16, "u32(u64(i) * 3)", "linear 3 @4"},
    {"64", 16, "u32(u64(i + 1) * 3)", "varying"},
    {"64", 16, "u32(wide + u64(i))", "linear 1"},
    {"64", 16, "u32(i64(i32(i)))", "linear 1 @4"},
    {"64", 16, "u32(f32(i))", "varying"},
    {"64", 16, "u32(f32(n))", "group"},
    {"64", 16, "as_u32(as_f32(n))", "group"},
    /* memory */
    {"64", 16, "x[n]", "group"},
    {"64", 16, "x[i]", "varying"},
    {"32,4", 16, "x[local_id.y]", "vector"},
    {"64", 16, "z[n]", "vector"},
    {"64", 16, "atomic_add(z[n], 1)", "varying"},
    {"64", 1, "atomic_add(z[n], 1)", "vector"},
    {"1", 16, "atomic_add(z[n], 1)", "vector"},
    {"64", 16, "v", "varying"},
    {"64", 16, "x[l >> 4]", "vector"},
};
enum { VALUE_CASES = sizeof value_cases / sizeof value_cases[0] };

/* --- control flow --------------------------------------------------------- */

typedef struct flow_case {
  const char *name;
  const char *size;
  uint32_t width;
  const char *body;
  /* IFs and LOOPs in order, in capitals if their lanes diverge, then the shapes
   * of stored values. Each loop begins with the IF that ends it. Before that
   * IF, a `for` tests for wrapping; after it, a `while` tests its fuel, unless
   * the trip count is known. */
  const char *want;
} flow_case;

static const flow_case flow_cases[] = {
    {"lanes that part leave what they set apart", "64", 16,
     "var a = 0u; if (v < 50) { a = 1; } y[i] = a;", "IF <varying>"},
    {"a condition of all leaves it together", "64", 16,
     "var a = 0u; if (n < 50) { a = 1; } y[i] = a;", "if <group>"},
    {"a condition of the vector makes it the vector's", "32,4", 16,
     "var a = 0u; if (local_id.y < 2) { a = n; } y[i] = a;", "if <vector>"},
    {"inactive lanes do not matter", "64", 16,
     "var a = n; if (v < 50) { return; } y[i] = a;", "IF <group>"},
    {"but what they set before does", "64", 16,
     "var a = n; if (v < 50) { a = 1; return; } y[i] = a;", "IF <varying>"},
    {"an arm that is set in the other one first", "64", 16,
     "var a = n; for (let k = 0u; k < n; k++) { a += k; }\n"
     "if (v < 50) { y[i] = a; a = 1; } else { y[i] = a; }",
     "if loop if IF <group> <varying>"},
    {"an arm that sets it again", "64", 16,
     "var a = 0u; if (v < 50) { a = 1; } else { a = n; y[i] = a; }",
     "IF <group>"},
    {"only the first arm goes on", "64", 16,
     "var a = n; if (v < 50) { a = n + 1; } else { return; } y[i] = a;",
     "IF <group>"},
    {"both arms set it", "64", 16,
     "var a = 0u; if (v < 50) { a = n; } else { a = n + 1; } y[i] = a;",
     "IF <varying>"},
    {"the arm that is left for good set it", "64", 16,
     "var a = n; for (let k = 0u; k < n; k++) { a += k; }\n"
     "if (v < 50) { y[i] = 1; } else { a = 7; return; } y[i] = a;",
     "if loop if IF <constant 1> <varying>"},
    {"a loop of some lanes", "64", 16,
     "if (v < 50) { var a = n; for (let k = 0u; k < 9; k++) {\n"
     "  a += k; y[i] = a; } y[i] = a; }",
     "IF loop if <group> <group>"},
    {"lanes in a loop are in step, behind it no more", "64", 16,
     "var a = 0u; while (a < v) { a++; y[i] = a; } y[i] = a;",
     "LOOP IF if <group> <varying>"},
    {"and so are linear ones", "64", 16,
     "var p = l; while (x[p] > 20) { p += 1; y[i] = p; } y[i] = p;",
     "LOOP IF if <linear 1> <varying>"},
    {"a grid stride keeps its alignment", "64", 16,
     "for (let k = l; k < n; k += 64) { y[i] = k; }",
     "IF LOOP if IF <linear 1 @4>"},
    {"lanes that continue miss what follows", "64", 16,
     "var a = 0u; for (let k = 0u; k < 9; k++) {\n"
     "  if (x[i + k] > 50) { continue; } a = k; y[i] = a; } y[i] = a;",
     "loop if IF <group> <varying>"},
    {"not what came before", "64", 16,
     "var a = 0u; for (let k = 0u; k < 9; k++) {\n"
     "  a = k; if (x[i + k] > 50) { continue; } y[i] = a; } y[i] = a;",
     "loop if IF <group> <group>"},
    {"nor a break that all others take", "64", 16,
     "for (let k = 0u; k < 9; k++) { if (x[i + k] > 50) { continue; }\n"
     "  if (k > 4) { break; } y[i] = k; }",
     "LOOP if IF if <group>"},
    {"nor leaving for good", "64", 16,
     "for (let k = 0u; k < 9; k++) { if (x[i + k] > 50) { continue; }\n"
     "  if (k > 4) { return; } y[i] = k; }",
     "LOOP if IF if <group>"},
    {"a break of some", "64", 16,
     "var a = 0u; for (let k = 0u; k < 9; k++) {\n"
     "  if (x[i + k] > 90) { break; } a += 3; y[i] = a; } y[i] = a;",
     "LOOP if IF <group> <varying>"},
    {"a break of all", "64", 16,
     "var a = 0u; for (let k = 0u; k < 9; k++) {\n"
     "  if (x[n + k] > 90) { break; } a += 3; y[i] = a; } y[i] = a;",
     "loop if if <group> <group>"},
    {"leaving for good parts the loop, not those that stay", "64", 16,
     "var a = 0u; for (let k = 0u; k < 9; k++) {\n"
     "  if (x[i + k] > 90) { return; } a += 3; } y[i] = a;",
     "LOOP if IF <group>"},
    {"from an inner loop that lanes leave", "64", 16,
     "for (let k = 0u; k < 9; k++) { var a = 0u; while (true) { a++;\n"
     "  if (a > v) { break; } if (a > n) { return; } } y[i] = k; }",
     "LOOP if IF LOOP IF IF if <group>"},
    {"a varying loop inside a uniform one", "64", 16,
     "var a = 0u; for (let k = 0u; k < n; k++) { var b = 0u;\n"
     "  while (b < v) { b++; } a += k; y[i] = a; y[i] = b; }",
     "if loop if LOOP IF IF <group> <varying>"},
    {"a uniform loop inside a varying one", "64", 16,
     "var a = 0u; for (let k = 0u; k < v; k++) {\n"
     "  for (let m = 0u; m < n; m++) { a += m; y[i] = a; } }",
     "IF LOOP IF IF loop if <group>"},
    {"iterations that vectors leave apart", "32,4", 16,
     "var a = 0u; while (a < local_id.y) { a++; y[i] = a; } y[i] = a;",
     "loop if if <group> <vector>"},
    {"vectors that continue", "32,4", 16,
     "var a = 0u; for (let k = 0u; k < 9; k++) {\n"
     "  if (k < local_id.y) { continue; } a += 1; y[i] = a; } y[i] = a;",
     "loop if if <vector> <vector>"},
    {"a scalar of all and one of lane 0 do not mix", "64", 16,
     "var a = n; for (let k = 0u; k < n; k++) { a += k; } y[i] = a;\n"
     "a = l; for (let k = 0u; k < n; k++) { a += k; } y[i] = a;",
     "if loop if <varying> if loop if <varying>"},
    {"workgroup conditions do not diverge", "64", 16,
     "var a = n; if (uniform(v) < 50) { barrier(); a = 2; } y[i] = a;",
     "if <group>"},
    {"a loop with a barrier is the workgroup's", "64", 16,
     "var h = 32u; while (h > 0) { if (l < h) { y[i] = h; } barrier();\n"
     "  h /= 2; } y[i] = h;",
     "loop if IF <group> <group>"},
    {"values live across a barrier", "64", 16,
     "let a = i * 4; let b = n * 8; y[i] = 1; barrier(); y[i] = a; y[i] = b;",
     "<constant 1> <linear 4 @6> <group @3>"},
    {"alignment shrinks with the iterations", "64", 16,
     "var a = 1048576u; var b = 64u; for (let k = 0u; k < n; k++) {\n"
     "  a /= 2; b += 24; y[i] = a; y[i] = b; }",
     "if loop if <group> <group @3>"},
    {"a variable that goes through others", "64", 16,
     "var a = 0u; var b = 0u; var c = 0u; for (let k = 0u; k < n; k++) {\n"
     "  y[i] = a; a = b; b = c; c = v; }",
     "if loop if <varying>"},
    {"a vector of one lane is uniform", "64", 1,
     "var a = 0u; while (a < v) { a++; } if (a > 3) { y[i] = a; }",
     "loop if if if <vector>"},
};
enum { FLOW_CASES = sizeof flow_cases / sizeof flow_cases[0] };

#endif
