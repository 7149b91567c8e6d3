/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels that check a value from memory and then use it, for tests that change
 * that memory in between. They share their buffers:
 *
 *   q     16 elements of some type, the memory that changes
 *   data  16 u32, read
 *   w     64 u32, read and written
 *   t     64 u32, shared
 *
 * While all elements of q are `good`, each index that comes from q is inside;
 * with `bad` it is outside every buffer. */
#ifndef VYRE_TESTING_CHANGING_MEMORY_TESTING_H
#define VYRE_TESTING_CHANGING_MEMORY_TESTING_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "support/check.h"

enum {
  CHANGING_ELEMENTS = 16, /* elements of q and data */
  CHANGING_OUT = 64,      /* elements of w */
  CHANGING_LANES = 32,    /* invocations; one workgroup */
  CHANGING_TEXT = 2048
};

/* Declaration of q. */
typedef enum changing_kind {
  CHANGING_UNIFORM,
  CHANGING_READ,       /* with a length */
  CHANGING_READ_ANY,   /* without a length */
  CHANGING_READ_WRITE, /* written by other dispatches, not by this one */
  CHANGING_KINDS
} changing_kind;

/* Requirements of a kernel on q. */
enum {
  CHANGING_GROUP = 1, /* the same value for a workgroup: not read_write */
  CHANGING_GRID = 2   /* the same value for the dispatch: a uniform */
};

typedef struct changing_kernel {
  const char *name;
  const char *element; /* element type of q */
  unsigned width;      /* bytes of an element */
  uint64_t good, bad;
  unsigned needs;
  const char *workgroup; /* CHANGING_LANES invocations */
  const char *body;
} changing_kernel;

#define CHANGING_U32 "u32", 4, 3, 0x3FFFFFFF

static const changing_kernel changing_kernels[] = {
    {"loaded twice", CHANGING_U32, 0, "32",
     "let z = global_id.x & 1u; if (q[z] < len(w)) w[q[z]] = 1u;"},
    {"loaded once", CHANGING_U32, 0, "32",
     "let x = q[global_id.x & 7u]; if (x < len(data)) w[global_id.x] = "
     "data[x];"},
    {"one element", CHANGING_U32, 0, "32",
     "if (q[0] < len(data)) w[global_id.x] += data[q[0]] + data[q[0]];"},
    {"contiguous", CHANGING_U32, 0, "32",
     "let i = global_id.x; if (i < 16u) { let x = q[i]; if (x < len(w)) w[x] = "
     "data[i] + x; }"},
    {"strided", CHANGING_U32, 0, "32",
     "let i = global_id.x; if (i < 8u) { let x = q[2u * i]; if (x < len(data)) "
     "w[i] = data[x]; }"},
    {"backwards", CHANGING_U32, 0, "32",
     "let i = local_id.x; if (i < 16u) { let x = q[15u - i]; if (x < "
     "len(data)) w[i] = data[x]; }"},
    {"unchecked", CHANGING_U32, 0, "32",
     "w[q[global_id.x & 15u]] = data[q[(global_id.x + 1u) & 15u]];"},
    {"least", CHANGING_U32, 0, "32",
     "if (len(data) > 0u) w[global_id.x] = data[min(q[global_id.x & 7u], "
     "len(data) - 1u)];"},
    {"chosen", CHANGING_U32, 0, "32",
     "let x = q[global_id.x & 7u]; let y = select(x < len(data), x, 0u); if (y "
     "< len(data)) w[global_id.x] = data[y];"},
    {"condition kept", CHANGING_U32, 0, "32",
     "let i = global_id.x; let x = q[i & 3u]; let ok = x < len(data); w[i] = "
     "1u; if (ok) w[i] += data[x]; if (ok && i > 3u) w[i] += data[x];"},
    {"two guards", CHANGING_U32, 0, "32",
     "let i = global_id.x; let n = q[i & 1u]; let p = q[2]; if (n <= len(data) "
     "&& p < n) w[i] = data[p];"},
    {"two guards of loads", CHANGING_U32, 0, "32",
     "let i = global_id.x; if (q[0] <= len(data) && q[1] < q[0]) w[i] = "
     "data[q[1]];"},
    {"a slice", CHANGING_U32, 0, "32",
     "let i = global_id.x; let p = q[0]; let n = q[1]; if (p <= len(data) && n "
     "<= len(data) - p) { for (let k = 0u; k < n; k++) w[i] += data[p + k]; }"},
    {"a slice of loads", CHANGING_U32, 0, "32",
     "let i = global_id.x; if (q[0] <= len(data) && q[1] <= len(data) - q[0]) "
     "{ for (let k = 0u; k < q[1]; k++) w[i] += data[q[0] + k]; }"},
    {"rows", CHANGING_U32, 0, "32",
     "let i = global_id.x; let wide = q[0]; if (wide > 0u) { let x = i & 3u; "
     "let y = i / 4u; if (x < wide && y < len(data) / wide) w[i] = data[y * "
     "wide + x]; }"},
    {"rows of loads", CHANGING_U32, 0, "32",
     "let i = global_id.x; if (q[0] > 0u) { let x = i & 3u; let y = i / 4u; if "
     "(x < q[0] && y < len(data) / q[0]) w[i] = data[y * q[0] + x]; }"},
    {"a bounded loop", CHANGING_U32, 0, "32",
     "let i = global_id.x; let n = min(q[0], len(data)); for (let k = 0u; k < "
     "n; k++) w[i] += data[k];"},
    {"a loop below a guard", CHANGING_U32, 0, "32",
     "let i = global_id.x; let n = q[i & 1u]; if (n <= len(data)) { for (let k "
     "= 0u; k < n; k++) w[i] += data[k]; }"},
    {"a walk", CHANGING_U32, 0, "32",
     "let i = global_id.x; var x = q[i & 3u]; var n = 0u; while (x < len(data) "
     "&& n < 5u) { w[i] += data[x]; x = q[x & 7u] + n; n += 1u; }"},
    {"nested", CHANGING_U32, 0, "32",
     "w[global_id.x] = data[q[q[q[global_id.x & 7u]]]];"},
    {"a copy", CHANGING_U32, 0, "32",
     "let i = global_id.x; t[local_id.x] = q[i & 15u]; barrier(); let x = "
     "t[31u - local_id.x]; if (x < len(data)) w[i] = data[x];"},
    {"atomic", CHANGING_U32, 0, "32",
     "let z = global_id.x & 1u; if (q[z] < len(w)) atomic_add(w[q[z]], 1u);"},
    {"atomic of a let", CHANGING_U32, 0, "32",
     "let x = q[global_id.x & 15u]; if (x < len(w)) { let old = "
     "atomic_max(w[x], global_id.x); if (old > 100u) w[x] = 0u; }"},
    {"atomics in rounds", CHANGING_U32, 0, "32",
     "let n = min(q[0], 4u); for (let k = 0u; k < n; k++) atomic_add(w[q[k] + "
     "k], 1u);"},
    {"divided", "u32", 4, 3, 0, 0, "32",
     "let i = global_id.x; let x = q[i & 7u]; if (x != 0u) w[i] = 1000u / x + "
     "data[15u % x];"},
    {"divided by loads", "u32", 4, 3, 0, 0, "32",
     "let i = global_id.x; if (q[i & 1u] != 0u) w[i] = 1000u / q[i & 1u] + "
     "data[15u % q[i & 1u]];"},
    {"divided with a sign", "i32", 4, 3, 0xFFFFFFFF, 0, "32",
     "let i = global_id.x; let x = q[i & 7u]; w[i] = u32((-2147483647 - 1) / "
     "x) + u32(-2147483647 % x);"},
    {"bytes", "u8", 1, 3, 0xFF, 0, "32",
     "let i = global_id.x; let x = q[i & 15u]; if (x < len(w)) w[x] = data[i & "
     "7u]; if (q[i & 3u] < len(data)) w[i] += data[q[i & 3u]];"},
    {"halves", "u16", 2, 3, 0xFFFF, 0, "32",
     "let i = global_id.x; let x = q[i & 15u]; if (x < len(w)) w[x] = data[i & "
     "7u]; if (q[i & 3u] < len(data)) w[i] += data[q[i & 3u]];"},
    {"wide", "u64", 8, 3, UINT64_C(0x3FFFFFFF), 0, "32",
     "let i = global_id.x; let x = q[i & 7u]; if (x < u64(len(data))) w[i] = "
     "data[x]; if (q[i & 3u] < u64(len(data))) w[i] += data[q[i & 3u]];"},
    {"signed", "i32", 4, 3, 0x80000003, 0, "32",
     "let i = global_id.x; let x = q[i & 7u]; if (x >= 0 && x < "
     "i32(len(data))) "
     "w[i] = data[x]; if (q[i & 1u] >= 0 && q[i & 1u] < 16) w[i] += data[q[i & "
     "1u]];"},
    {"floats", "f32", 4, 0x40400000, 0x4E6E6B28, 0, "32",
     "let i = global_id.x; let x = q[i & 7u]; if (x < 16.0) w[i] = "
     "data[u32(x)]; let y = u32(q[i & 3u]); if (y < len(data)) w[i] += "
     "data[y];"},
    {"narrowed floats", "f16", 2, 0x4200, 0x7800, 0, "32",
     "let i = global_id.x; let y = u32(q[i & 7u]); if (y < len(data)) w[i] = "
     "data[y];"},
    {"conditions", "bool", 1, 1, 0, 0, "32",
     "let i = global_id.x; let far = select(q[i & 7u], i & 15u, 0x3FFFFFFFu); "
     "if (q[i & 7u]) w[i] = data[far]; if (far < len(data)) w[i] += "
     "data[far];"},
    {"rows side by side", CHANGING_U32, 0, "8, 4",
     "let y = local_id.y; let x = local_id.x; var s = 0u; let n = min(q[0], "
     "16u); for (let k = 0u; k < n; k++) s += data[k] * q[x & 7u]; if (q[y] < "
     "len(data)) s += data[q[y]]; w[y * 8u + x] = s;"},
    {"a flat workgroup", CHANGING_U32, 0, "2, 4, 4",
     "let i = local_id.x + 2u * (local_id.y + 4u * local_id.z); let x = q[i & "
     "15u]; if (x < len(data)) w[i] = data[x]; if (q[i & 3u] < len(w)) w[q[i & "
     "3u]] = 1u;"},
    /* Barriers: the workgroup decides as one. */
    {"a barrier below a guard", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; let x = q[0]; if (x < len(data)) { t[local_id.x] = "
     "i; barrier(); w[i] = t[31u - local_id.x] + data[x]; }"},
    {"a barrier below a guard of loads", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; if (q[0] < len(data)) { t[local_id.x] = i; "
     "barrier(); w[i] = t[31u - local_id.x] + data[q[0]]; barrier(); w[i] ^= "
     "data[q[0]]; }"},
    {"a barrier and a variable", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; var x = 0u; if (q[1] > 2u) x = q[0]; if (x < "
     "len(data)) { t[local_id.x] = i; barrier(); w[i] = t[31u - local_id.x] + "
     "data[x]; }"},
    {"a barrier below two guards", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; var x = q[0]; var n = 0u; if (q[1] < 17u) n = "
     "q[1]; if (n <= len(data) && x < n) { t[local_id.x] = i; barrier(); w[i] "
     "= t[31u - local_id.x] + data[x]; }"},
    {"a return before a barrier", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; var x = 5u; if (q[2] != 0u) x = q[0]; if (x >= "
     "len(data)) return; t[local_id.x] = x; barrier(); w[i] = data[x] + t[31u "
     "- local_id.x];"},
    {"a loop with a barrier", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; let n = min(q[0], len(data)); for (let k = 0u; k < "
     "n; k++) { t[local_id.x] = data[k]; barrier(); w[i] += t[31u - "
     "local_id.x]; barrier(); }"},
    {"a loop with a barrier and a variable", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; var n = 2u; if (q[3] != 0u) n = q[0]; if (n > "
     "len(data)) n = len(data); for (let k = 0u; k < n; k++) { t[local_id.x] = "
     "data[k]; barrier(); w[i] += t[31u - local_id.x]; barrier(); }"},
    {"a while with a barrier", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; var x = q[0]; var n = 0u; while (x < len(data)) { "
     "t[local_id.x] = data[x]; barrier(); w[i] += t[31u - local_id.x] + "
     "data[x]; barrier(); n += 1u; x = select(n < 4u, q[n], 0xFFFFu); }"},
    {"a break before a barrier", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; for (let k = 0u; k < 5u; k++) { var x = k; if (q[7] "
     "!= 0u) x = q[k]; if (x >= len(data)) break; t[local_id.x] = x; "
     "barrier(); w[i] += data[x] + t[31u - local_id.x]; barrier(); }"},
    {"a continue before a barrier", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; for (let k = 0u; k < 5u; k++) { var x = k; if (q[7] "
     "!= 0u) x = q[k]; if (x >= len(data)) continue; t[local_id.x] = x; "
     "barrier(); w[i] += data[x] + t[31u - local_id.x]; barrier(); }"},
    {"a barrier for one value", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; let x = uniform(q[local_id.x & 15u]); if (x < "
     "len(data)) { t[local_id.x] = i; barrier(); w[i] = t[31u - local_id.x] + "
     "data[x]; }"},
    {"atomics in rounds of the workgroup", CHANGING_U32, CHANGING_GROUP, "32",
     "let i = global_id.x; for (let o = 0u; o < 3u; o++) { if (q[o] == 77u) "
     "continue; let n = min(q[o], 8u); for (let k = 0u; k < n; k++) "
     "atomic_add(w[k * 8u + (i & 7u)], 1u); if (q[o] < len(data)) w[i] += "
     "data[q[o]]; }"},
    /* Grid barriers: each begins another phase. */
    {"across a grid barrier", CHANGING_U32, 0, "32",
     "let i = global_id.x; let x = q[i & 1u]; let ok = x < len(data); w[i] += "
     "1u; grid_barrier(); if (ok) w[i] += data[x]; grid_barrier(); if (ok) "
     "w[i] += data[x];"},
    {"loads across a grid barrier", CHANGING_U32, 0, "32",
     "let i = global_id.x; let ok = q[0] < len(data); w[i] += 1u; "
     "grid_barrier(); if (ok) w[i] += data[q[0]]; grid_barrier(); if (ok) w[i] "
     "+= data[q[0]];"},
    {"a loop of the grid", CHANGING_U32, CHANGING_GRID, "32",
     "let i = global_id.x; if (q[0] <= len(data)) w[i] = 7u; for (let g = 0u; "
     "g < min(q[0], 5u); g++) { grid_barrier(); if (q[0] <= len(data)) w[i] += "
     "data[g]; }"},
};

enum {
  CHANGING_KERNELS = sizeof changing_kernels / sizeof changing_kernels[0]
};

static inline bool changing_has(const changing_kernel *k, changing_kind kind) {
  if (kind == CHANGING_READ_WRITE) return k->needs == 0;
  return kind == CHANGING_UNIFORM || !(k->needs & CHANGING_GRID);
}

static inline const char *changing_kind_name(changing_kind kind) {
  static const char *const names[] = {"uniform", "read", "read of any length",
                                      "read_write"};
  return names[kind];
}

static inline void changing_text(const changing_kernel *k, changing_kind kind,
                                 char out[CHANGING_TEXT]) {
  static const char *const heads[] = {"uniform q : ", "buffer q : read ",
                                      "buffer q : read ",
                                      "buffer q : read_write "};
  bool has_count = kind == CHANGING_UNIFORM || kind == CHANGING_READ;
  int length =
      snprintf(out, CHANGING_TEXT,
               "kernel k workgroup(%s)\n%s%s[%s] @0;\nbuffer data : read u32[] "
               "@1;\nbuffer w : read_write u32[] @2;\n%s{ %s }\n",
               k->workgroup, heads[kind], k->element, has_count ? "16" : "",
               strstr(k->body, "t[") ? "shared t : u32[64];\n" : "", k->body);
  CHECK(length > 0 && length < CHANGING_TEXT);
}

/* Writes @p value to each element of q. */
static inline void changing_fill(const changing_kernel *k, uint64_t value,
                                 unsigned char *q) {
  for (unsigned i = 0; i < CHANGING_ELEMENTS; i++) {
    for (unsigned b = 0; b < k->width; b++) {
      q[i * k->width + b] = (unsigned char)(value >> (8 * b));
    }
  }
}

#endif
