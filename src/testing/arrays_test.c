/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels with arrays, tables, memory parameters and several results give the
 * bytes of plain C: on ref, on cpu at all widths, and on vulkan. They also
 * survive printing, parsing and the binary form. */
#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

enum { COUNT = 192 };

/* The kernel has buffers a (read_write) and b (read) of COUNT u32. `want`
 * computes a. */
typedef struct array_case {
  const char *name, *items, *body;
  void (*want)(uint32_t *a, const uint32_t *b);
} array_case;

/* --- what the kernels compute, in C ----------------------------------------*/

static void want_zeros(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t sum = 0;
    for (uint32_t r = 0; r < 3; r++) {
      uint32_t t[4] = {0};
      t[b[i] % 4] += r + 1;
      sum += t[0] + 10 * t[1] + 100 * t[2] + 1000 * t[3];
    }
    a[i] = sum;
  }
}

static void want_bounds(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[5] = {0};
    if (b[i] % 9 < 5) t[b[i] % 9] = 7;
    const uint32_t at = (b[i] >> 4) % 9;
    a[i] = (at < 5 ? t[at] : 0) + 100 * (t[0] + t[4]);
  }
}

static void want_copies(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[24], u[24];
    for (uint32_t k = 0; k < 24; k++) t[k] = b[i] * k;
    memcpy(u, t, sizeof u);
    t[b[i] % 24] = 1;
    u[(b[i] + 1) % 24] = 2;
    if (i % 2) memcpy(t, u, sizeof t);
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 24; k++) sum = sum * 31 + t[k] + 3 * u[k];
    a[i] = sum;
  }
}

static void want_sorted(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[8];
    for (uint32_t k = 0; k < 8; k++) t[k] = b[(i + k * 7) % COUNT];
    for (uint32_t k = 1; k < 8; k++) {
      for (uint32_t j = k; j > 0 && t[j - 1] > t[j]; j--) {
        const uint32_t swap = t[j];
        t[j] = t[j - 1];
        t[j - 1] = swap;
      }
    }
    a[i] = t[0] + 3 * t[3] + 5 * t[7];
  }
}

static const uint32_t primes[70] = {
    2,   3,   5,   7,   11,  13,  17,  19,  23,  29,  31,  37,  41,  43,
    47,  53,  59,  61,  67,  71,  73,  79,  83,  89,  97,  101, 103, 107,
    109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181,
    191, 193, 197, 199, 211, 223, 227, 229, 233, 239, 241, 251, 257, 263,
    269, 271, 277, 281, 283, 293, 307, 311, 313, 317, 331, 337, 347, 349};

static void want_table(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 3; k++) {
      const uint32_t at = (b[i] >> 5 * k) % 80;
      sum = sum * 1000 + (at < 70 ? primes[at] : 0);
    }
    a[i] = sum + primes[i % 70] + 70;
  }
}

static void want_results(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t x = b[i] / 10, y = b[i] % 10;
    uint32_t t[2] = {x % 2, y};
    /* (t[t[0]], x) = parts(y * 77 + x) */
    const uint32_t value = y * 77 + x;
    t[t[0]] = value / 10;
    x = value % 10;
    a[i] = x + 10 * t[0] + 100 * t[1];
  }
}

static void want_memory(uint32_t *a, const uint32_t *b) {
  uint32_t before[COUNT];
  memcpy(before, a, sizeof before);
  for (uint32_t i = 0; i < COUNT; i++) {
    const uint32_t group = i / 8 * 8, l = i % 8;
    uint32_t t[3] = {1, 2, 3}, sum = 0;
    for (uint32_t k = 0; k < COUNT; k += 64) sum += b[k];
    sum += before[group + (l + 1) % 8] * 2; /* by shared memory */
    sum += t[0] + t[1] + t[2] + COUNT + 3;
    a[i] = sum;
  }
}

static void want_barrier(uint32_t *a, const uint32_t *b) {
  uint32_t before[COUNT];
  memcpy(before, a, sizeof before);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[6];
    for (uint32_t k = 0; k < 6; k++) t[k] = before[i] + b[i] * k;
    const uint32_t other = i / 8 * 8 + (i + 3) % 8;
    t[b[i] % 6] += before[other];
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 6; k++) sum = sum * 5 + t[k];
    a[i] = sum;
  }
}

static void want_grid(uint32_t *a, const uint32_t *b) {
  uint32_t before[COUNT], t[COUNT][5];
  memcpy(before, a, sizeof before);
  for (uint32_t i = 0; i < COUNT; i++) {
    for (uint32_t k = 0; k < 5; k++) t[i][k] = before[i] * (k + b[i] % 3);
    t[i][b[i] % 5] = 9;
  }
  for (uint32_t round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < COUNT; i++) {
      t[i][(b[i] + round) % 5] += before[COUNT - 1 - i] + round;
    }
  }
  for (uint32_t i = 0; i < COUNT; i++) {
    a[i] = 0;
    for (uint32_t k = 0; k < 5; k++) a[i] = a[i] * 3 + t[i][k];
  }
}

static void want_types(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    bool seen[4] = {false};
    uint64_t wide[3] = {1, 2, 3};
    int32_t small[3] = {-1, -2, -3};
    double exact[2] = {0.5, 0.25};
    seen[b[i] % 4] = true;
    wide[b[i] % 3] = (uint64_t)b[i] << 20;
    small[b[i] % 3] -= 5;
    exact[b[i] % 2] += 2.0;
    a[i] = (seen[1] ? 1u : 0u) + (seen[3] ? 2u : 0u) +
           (uint32_t)(wide[1] >> 13) + (uint32_t)small[2] +
           (uint32_t)(exact[0] * 8.0);
  }
}

static void want_loops(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[16];
    for (uint32_t k = 0; k < 16; k++) t[k] = b[(i + k) % COUNT];
    for (uint32_t k = 2; k <= 16; k *= 2) {
      for (uint32_t j = k / 2; j > 0; j /= 2) {
        for (uint32_t l = 0; l < 16; l++) {
          const uint32_t m = (l ^ j) % 16;
          if (m <= l) continue;
          const bool up = (l & k) == 0;
          if ((t[l] > t[m]) == up) {
            const uint32_t swap = t[l];
            t[l] = t[m];
            t[m] = swap;
          }
        }
      }
    }
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 16; k++) sum = sum * 7 + t[k];
    a[i] = sum;
  }
}

static void want_early(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[4] = {b[i], 1, 2, 3}, first = 0;
    while (first < 4 && t[first] % 2 == 1) first++;
    if (first < 4) t[first] = 50;
    a[i] = t[0] + t[1] * 3 + t[2] * 5 + t[3] * 7 + first;
  }
}

static void want_vectors(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[5][4] = {{0}}, swap[4];
    for (uint32_t k = 0; k < 5; k++) {
      for (uint32_t c = 0; c < 4; c++) t[k][c] = b[(i + k) % COUNT] + c * k;
    }
    if (b[i] % 7 < 5) t[b[i] % 7][1] += 3;
    if (b[i] % 6 < 5 && b[i] % 5 < 4) t[b[i] % 6][b[i] % 5] = 8;
    memcpy(swap, t[b[i] % 5], sizeof swap);
    memcpy(t[b[i] % 5], t[i % 5], sizeof swap);
    memcpy(t[i % 5], swap, sizeof swap);
    a[i] = 0;
    for (uint32_t k = 0; k < 5; k++) {
      for (uint32_t c = 0; c < 4; c++) a[i] = a[i] * 3 + t[k][c];
    }
    const uint32_t at = (b[i] >> 3) % 8;
    a[i] += at < 5 ? t[at][3] : 0;
  }
}

static void want_turned(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[3][2] = {{b[i], 1}, {2, a[i]}, {0, 0}}, u[3][2];
    memcpy(u, t, sizeof u);
    u[1][0] += 5;
    /* t[0] = t[0].yx, then t[2] = t[0] + u[1] */
    t[0][0] = 1;
    t[0][1] = b[i];
    t[2][0] = t[0][0] + u[1][0];
    t[2][1] = t[0][1] + u[1][1];
    const uint32_t v[3][2] = {
        {t[1][0], t[1][1]}, {t[0][0], t[0][1]}, {t[2][0], 7}};
    uint32_t sum = 3;
    for (uint32_t k = 0; k < 3; k++) sum = sum * 5 + v[k][0] * 3 + v[k][1];
    a[i] = sum;
  }
}

static void want_vector_grid(uint32_t *a, const uint32_t *b) {
  uint32_t before[COUNT], t[COUNT][3][2];
  memcpy(before, a, sizeof before);
  for (uint32_t i = 0; i < COUNT; i++) {
    for (uint32_t k = 0; k < 3; k++) {
      t[i][k][0] = before[i] + k;
      t[i][k][1] = b[i] * k;
    }
    for (uint32_t r = 0; r < 2; r++) {
      const uint32_t at = (b[i] + r) % 4;
      if (at < 3) t[i][at][0] = t[i][at][1] + before[COUNT - 1 - i];
      if (at < 3) t[i][at][b[i] % 2] += r;
    }
    uint32_t sum = 0;
    for (uint32_t k = 0; k < 3; k++) {
      sum = sum * 3 + t[i][k][0] + 7 * t[i][k][1];
    }
    a[i] = sum;
  }
}

static const uint32_t kernel3[3][3] = {{1, 2, 1}, {2, 4, 2}, {3, 5, 7}};

static void want_dimensions(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[3][4] = {{0}}, sum = 0;
    for (uint32_t r = 0; r < 3; r++) {
      for (uint32_t c = 0; c < 4; c++) t[r][c] = b[(i + r * 4 + c) % COUNT];
    }
    /* A column outside does not select the next row. */
    const uint32_t r = b[i] % 4, c = b[i] % 6;
    if (r < 3 && c < 4) t[r][c] += 100;
    const uint32_t at = b[i] % 5;
    const uint32_t weight = r < 3 && at < 3 ? kernel3[r][at] : 0;
    for (uint32_t k = 0; k < 3; k++) {
      for (uint32_t l = 0; l < 4; l++) sum = sum * 3 + t[k][l];
    }
    a[i] = sum + weight + (at < 4 ? t[1][at] : 0) + 12 + 4;
  }
}

static void want_product(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t product[3][3] = {{0}}, sum = 0;
    const uint32_t m[3][3] = {{b[i], 1, 2}, {3, a[i], 5}, {6, 7, 8}};
    for (uint32_t r = 0; r < 3; r++) {
      for (uint32_t c = 0; c < 3; c++) {
        for (uint32_t k = 0; k < 3; k++) {
          product[r][c] += m[r][k] * kernel3[k][c];
        }
      }
    }
    for (uint32_t r = 0; r < 3; r++) {
      for (uint32_t c = 0; c < 3; c++) sum = sum * 7 + product[r][c];
    }
    a[i] = sum;
  }
}

static void want_deep(uint32_t *a, const uint32_t *b) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[2][3][2][2] = {{{{0}}}}, sum = 0;
    for (uint32_t k = 0; k < 5; k++) {
      const uint32_t v = b[(i + k) % COUNT];
      const uint32_t w = v % 2, x = v / 2 % 4, y = v / 8 % 2, z = v / 16 % 2;
      if (x < 3) {
        t[w][x][y][z] += v;
        sum += t[w][x][y][z] - v;
      }
    }
    for (uint32_t k = 0; k < 24; k++) {
      sum = sum * 3 + t[k / 12][k / 4 % 3][k / 2 % 2][k % 2];
    }
    a[i] = sum;
  }
}

static void want_dimension_grid(uint32_t *a, const uint32_t *b) {
  uint32_t before[COUNT];
  memcpy(before, a, sizeof before);
  for (uint32_t i = 0; i < COUNT; i++) {
    uint32_t t[2][2][2] = {{{0}}}, sum = 0; /* rows, columns, components */
    for (uint32_t r = 0; r < 3; r++) {
      const uint32_t x = (b[i] + r) % 3, y = b[i] % 2;
      if (x < 2) t[x][y][0] = before[COUNT - 1 - i] + r;
      if (x < 2) t[x][y][1] = x + 1;
    }
    for (uint32_t k = 0; k < 8; k++) sum = sum * 3 + t[k / 4][k / 2 % 2][k % 2];
    a[i] = sum;
  }
}

/* --- the kernels -----------------------------------------------------------*/

static const array_case cases[] = {
    {"zeros each time", "",
     "var sum = 0u; for (let r = 0u; r < 3; r++) { var t : u32[4]; "
     "t[b[i] % 4] += r + 1; sum += t[0] + 10 * t[1] + 100 * t[2] + 1000 * "
     "t[3]; } a[i] = sum;",
     want_zeros},
    {"out of bounds", "",
     "var t : u32[5]; t[b[i] % 9] = 7; a[i] = t[(b[i] >> 4) % 9] + "
     "100 * (t[0] + t[4]);",
     want_bounds},
    {"whole copies", "",
     "var t : u32[24]; for (let k = 0u; k < 24; k++) t[k] = b[i] * k; "
     "var u = t; t[b[i] % 24] = 1; u[(b[i] + 1) % 24] = 2; "
     "if (i % 2 == 1) { t = u; } var sum = 0u; "
     "for (let k = 0u; k < 24; k++) sum = sum * 31 + t[k] + 3 * u[k]; "
     "a[i] = sum;",
     want_copies},
    {"insertion sort by a function",
     "fn sort(var t: u32[8]) { for (let k = 1u; k < 8; k++) { var j = k; "
     "while (j > 0 && t[j - 1] > t[j]) { let swap = t[j]; t[j] = t[j - 1]; "
     "t[j - 1] = swap; j -= 1; } } }\n",
     "var t : u32[8]; for (let k = 0u; k < 8; k++) t[k] = b[(i + k * 7) % "
     "192]; sort(t); a[i] = t[0] + 3 * t[3] + 5 * t[7];",
     want_sorted},
    {"tables",
     "const P : u32[70] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43,"
     "47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, "
     "127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, "
     "197, 199, 211, 223, 227, 229, 233, 239, 241, 251, 257, 263, 269, 271, "
     "277, 281, 283, 293, 307, 311, 313, 317, 331, 337, 347, 349};\n"
     "fn pick(t: read u32[], at: u32) -> u32 { return t[at]; }\n",
     "var sum = 0u; for (let k = 0u; k < 3; k++) sum = sum * 1000 + "
     "P[(b[i] >> 5 * k) % 80]; a[i] = sum + pick(P, i % 70) + len(P);",
     want_table},
    {"several results",
     "fn parts(x: u32) -> (u32, u32) { return (x / 10, x % 10); }\n"
     "fn same(x: u32) -> (u32, u32) { return parts(x); }\n",
     "var (x, y) = same(b[i]); var t : u32[2] = {x % 2, y}; "
     "(t[t[0]], x) = parts(y * 77 + x); a[i] = x + 10 * t[0] + 100 * t[1];",
     want_results},
    {"memory parameters",
     "fn total(x: read u32[], step: u32) -> u32 { var sum = 0u; var k = 0u; "
     "while (k < len(x)) { sum += x[k]; k += step; } return sum; }\n"
     "fn keep(x: read_write u32[], at: u32, value: u32) { x[at] = value; "
     "atomic_add(x[at], value); barrier(); }\n",
     "keep(s, local_id.x, a[i]); let t : u32[3] = {1, 2, 3}; "
     "let other = s[(local_id.x + 1) % 8]; "
     "var own : u32[1]; atomic_add(own[0], total(t, 1)); "
     "a[i] = total(b, 64) + other + own[0] + len(b) + len(t);",
     want_memory},
    {"across a barrier", "",
     "var t : u32[6]; for (let k = 0u; k < 6; k++) t[k] = a[i] + b[i] * k; "
     "s[local_id.x] = a[i]; barrier(); t[b[i] % 6] += s[(local_id.x + 3) % 8]; "
     "var sum = 0u; for (let k = 0u; k < 6; k++) sum = sum * 5 + t[k]; "
     "a[i] = sum;",
     want_barrier},
    {"across a grid barrier", "",
     "var t : u32[5]; for (let k = 0u; k < 5; k++) t[k] = a[i] * (k + b[i] % "
     "3); t[b[i] % 5] = 9; for (let r = 0u; r < 3; r++) { grid_barrier(); "
     "t[(b[i] + r) % 5] += a[191 - i] + r; } grid_barrier(); var sum = 0u; "
     "for (let k = 0u; k < 5; k++) sum = sum * 3 + t[k]; a[i] = sum;",
     want_grid},
    {"all types", "",
     "var seen : bool[4]; var wide : u64[3] = {1, 2, 3}; "
     "var small : i32[3] = {-1, -2, -3}; var exact : f64[2] = {0.5, 0.25}; "
     "seen[b[i] % 4] = true; wide[b[i] % 3] = u64(b[i]) << 20; "
     "small[b[i] % 3] -= 5; exact[b[i] % 2] += 2.0; "
     "a[i] = (seen[1] ? 1u : 0u) + (seen[3] ? 2u : 0u) + u32(wide[1] >> 13) + "
     "u32(small[2]) + u32(exact[0] * 8.0);",
     want_types},
    {"unrolled loops", "",
     "var t : u32[16]; for (let k = 0u; k < 16; k++) t[k] = b[(i + k) % 192]; "
     "for (let k = 2u; k <= 16; k *= 2) { for (let j = k / 2; j > 0; j /= 2) { "
     "for (let l = 0u; l < 16; l++) { let m = l ^ j; if (m > l) { "
     "let up = (l & k) == 0; if ((t[l] > t[m]) == up) { let swap = t[l]; "
     "t[l] = t[m]; t[m] = swap; } } } } } var sum = 0u; "
     "for (let k = 0u; k < 16; k++) sum = sum * 7 + t[k]; a[i] = sum;",
     want_loops},
    {"early returns",
     "fn odd(t: read u32[]) -> u32 { for (let k = 0u; k < len(t); k++) { "
     "if (t[k] % 2 == 0) return k; } return len(t); }\n"
     "fn mark(var t: u32[4], at: u32) { if (at >= 4) { return; } t[at] = 50; "
     "}\n",
     "var t : u32[4] = {b[i], 1, 2, 3}; let first = odd(t); mark(t, first); "
     "a[i] = t[0] + t[1] * 3 + t[2] * 5 + t[3] * 7 + first;",
     want_early},
    {"vectors", "",
     "var t : u32x4[5]; for (let k = 0u; k < len(t); k++) t[k] = "
     "u32x4(b[(i + k) % 192]) + u32x4(0, 1, 2, 3) * k; t[b[i] % 7].y += 3; "
     "t[b[i] % 6][b[i] % 5] = 8; let swap = t[b[i] % 5]; "
     "t[b[i] % 5] = t[i % 5]; t[i % 5] = swap; var sum = 0u; "
     "for (let k = 0u; k < 5; k++) for (let c = 0u; c < 4; c++) "
     "sum = sum * 3 + t[k][c]; a[i] = sum + t[(b[i] >> 3) % 8].w;",
     want_vectors},
    {"vectors in variables, and functions",
     "fn turn(var t: u32x2[3]) { t[0] = t[0].yx; }\n"
     "fn sum(t: read u32x2[]) -> u32 { var s = len(t); "
     "for (let k = 0u; k < len(t); k++) s = s * 5 + t[k].x * 3 + t[k].y; "
     "return s; }\n",
     "var t : u32x2[3] = {u32x2(b[i], 1), u32x2(2, a[i]), u32x2(0)}; "
     "var u = t; u[1].x += 5; turn(t); t[2] = t[0] + u[1]; "
     "t = {t[1], t[0], t[2]}; t[2].y = 7; a[i] = sum(t);",
     want_turned},
    {"vectors across a grid barrier", "",
     "var t : u32x2[3]; for (let k = 0u; k < 3; k++) "
     "t[k] = u32x2(a[i] + k, b[i] * k); for (let r = 0u; r < 2; r++) { "
     "let other = a[191 - i]; grid_barrier(); let at = (b[i] + r) % 4; "
     "t[at] = u32x2(t[at].y + other, t[at].y); t[at][b[i] % 2] += r; } "
     "grid_barrier(); var sum = 0u; for (let k = 0u; k < 3; k++) "
     "sum = sum * 3 + t[k].x + 7 * t[k].y; a[i] = sum;",
     want_vector_grid},
    {"two dimensions",
     "const K : u32[3, 3] = {{1, 2, 1}, {2, 4, 2}, {3, 5, 7}};\n",
     "var t : u32[3, 4]; for (let r = 0u; r < 3; r++) "
     "for (let c = 0u; c < 4; c++) t[r, c] = b[(i + r * 4 + c) % 192]; "
     "let r = b[i] % 4; t[r, b[i] % 6] += 100; var sum = 0u; "
     "for (let k = 0u; k < 3; k++) for (let l = 0u; l < 4; l++) "
     "sum = sum * 3 + t[k, l]; a[i] = sum + K[r, b[i] % 5] + t[1, b[i] % 5] + "
     "len(t) + len(t, 1);",
     want_dimensions},
    {"matrices in functions",
     "const K : u32[3, 3] = {1, 2, 1, 2, 4, 2, 3, 5, 7};\n"
     "fn product(m: u32[3, 3], var p: u32[3, 3]) { "
     "for (let r = 0u; r < 3; r++) for (let c = 0u; c < 3; c++) "
     "for (let k = 0u; k < 3; k++) p[r, c] += m[r, k] * K[k, c]; }\n",
     "let m : u32[3, 3] = {{b[i], 1, 2}, {3, a[i], 5}, {6, 7, 8}}; "
     "var p : u32[3, 3]; product(m, p); var q = m; q = p; var sum = 0u; "
     "for (let r = 0u; r < 3; r++) for (let c = 0u; c < 3; c++) "
     "sum = sum * 7 + q[r, c]; a[i] = sum;",
     want_product},
    {"four dimensions and atomics", "",
     "var t : u32[2, 3, 2, 2]; var sum = 0u; for (let k = 0u; k < 5; k++) { "
     "let v = b[(i + k) % 192]; "
     "sum += atomic_add(t[v % 2, v / 2 % 4, v / 8 % 2, v / 16 % 2], v); } "
     "for (let k = 0u; k < 24; k++) "
     "sum = sum * 3 + t[k / 12, k / 4 % 3, k / 2 % 2, k % 2]; a[i] = sum;",
     want_deep},
    {"dimensions of vectors across a grid barrier", "",
     "var t : u32x2[2, 2]; for (let r = 0u; r < 3; r++) { "
     "let other = a[191 - i]; grid_barrier(); let x = (b[i] + r) % 3; "
     "t[x, b[i] % 2] = u32x2(other + r, 0); t[x, b[i] % 2].y = x + 1; } "
     "grid_barrier(); var sum = 0u; for (let k = 0u; k < 8; k++) "
     "sum = sum * 3 + t[k / 4, k / 2 % 2][k % 2]; a[i] = sum;",
     want_dimension_grid},
};

enum { CASES = sizeof cases / sizeof cases[0], TEXT = 4096 };

static void write_kernel(char text[TEXT], const array_case *c) {
  const int length = snprintf(text, TEXT,
                              "%skernel k workgroup(8) over(a)\n"
                              "buffer a : read_write u32[192] @0;\n"
                              "buffer b : read u32[192] @1;\n"
                              "shared s : u32[8];\n"
                              "{ let i = global_id.x; %s }\n",
                              c->items, c->body);
  CHECK(length > 0 && length < TEXT);
}

static void fill(uint32_t *values, uint64_t seed) {
  for (size_t i = 0; i < COUNT; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    values[i] = (uint32_t)(seed >> 33) % 100000;
  }
}

static void run(vyre_device *device, const vyre_program *program, uint32_t *a,
                const uint32_t *b) {
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  const size_t size = COUNT * sizeof *a;
  CHECK_OK(vyre_pipeline_compile(device, (vyre_program *)program, NULL,
                                 &pipeline, NULL, &st),
           st);
  const vyre_input inputs[2] = {vyre_input_bytes(a, size),
                                vyre_input_bytes(b, size)};
  const vyre_output outputs[1] = {vyre_output_bytes(a, size)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 2,
                                   .outputs = outputs,
                                   .output_count = 1};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  vyre_pipeline_release(pipeline);
}

/* --- every device ----------------------------------------------------------*/

static const char *const devices[][2] = {{"ref", ""},
                                         {"cpu", "cpu.width=1"},
                                         {"cpu", "cpu.width=4"},
                                         {"cpu", "cpu.width=8"},
                                         {"cpu", "cpu.width=16"},
                                         {"cpu", "cpu.width=32"},
                                         {"vulkan", ""}};

static void compare(vyre_device *device, const char *const name[2]) {
  for (size_t i = 0; i < CASES; i++) {
    char text[TEXT];
    uint32_t a[COUNT], b[COUNT], want[COUNT];
    write_kernel(text, &cases[i]);
    vyre_module *module = parse_module(text);
    fill(a, 1);
    fill(b, 2);
    memcpy(want, a, sizeof want);
    cases[i].want(want, b);
    run(device, vyre_module_kernel(module, 0), a, b);
    if (memcmp(a, want, sizeof a) != 0) {
      printf("    '%s' differs on %s %s\n", cases[i].name, name[0], name[1]);
    }
    CHECK(memcmp(a, want, sizeof a) == 0);
    vyre_module_release(module);
  }
}

TEST(arrays_equal_those_of_c_on_every_device) {
  for (size_t d = 0; d < sizeof devices / sizeof devices[0]; d++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre_device *device = NULL;
    const vyre_context_options options = {
        .trace_file = "", .faults = "", .backend_options = devices[d][1]};
    CHECK_OK(vyre_context_create(&options, &context, &st), st);
    if (vyre_device_open(context, devices[d][0], &device, &st) == VYRE_OK) {
      compare(device, devices[d]);
      vyre_device_release(device);
    } else { /* this machine has none */
      CHECK(strcmp(devices[d][0], "ref") != 0);
    }
    vyre_context_release(context);
  }
}

TEST(arrays_survive_printing_and_the_binary_form) {
  for (size_t i = 0; i < CASES; i++) {
    char text[TEXT];
    vyre_status st = {0};
    write_kernel(text, &cases[i]);
    vyre_module *module = parse_module(text);
    const vyre_program *program = vyre_module_kernel(module, 0);
    growing_text printed = {0};
    CHECK(vyre_program_print(program, growing_writer(&printed)));
    vyre_module *again = parse_module(printed.bytes);
    if (!vyre_program_equal(program, vyre_module_kernel(again, 0))) {
      printf("    %s\n%s", cases[i].name, printed.bytes);
    }
    CHECK(vyre_program_equal(program, vyre_module_kernel(again, 0)));
    vyre_arena arena;
    vyre_arena_init(&arena, (vyre_allocator){0});
    const uint8_t *bytes;
    size_t length;
    vyre_program *read;
    CHECK_OK(vyre_program_write_binary(program, &arena, &bytes, &length, &st),
             st);
    CHECK_OK(vyre_program_read_binary(bytes, length, (vyre_allocator){0}, &read,
                                      &st),
             st);
    CHECK(vyre_program_equal(program, read));
    const vyre_hash128 one = vyre_program_fingerprint(program);
    const vyre_hash128 two = vyre_program_fingerprint(read);
    CHECK(one.low == two.low && one.high == two.high);
    vyre_program_release(read);
    vyre_arena_deinit(&arena);
    vyre_module_release(again);
    vyre_module_release(module);
    free(printed.bytes);
  }
}

/* --- diagnostics -----------------------------------------------------------*/

TEST(wrong_uses_of_arrays) {
  static const struct {
    const char *items, *body, *rule;
  } rows[] = {
      {"", "var t : u32[0];", "V098"},
      {"", "var t : u32[4000];", "V098"},
      {"", "var t : f32x2[1025];", "V098"},
      {"", "var t : u32[2, 3]; t[1] = 2;", "V068"},
      {"", "var t : u32[6]; t[1, 2] = 2;", "V068"},
      {"", "var t : u32[2, 3, 4, 5, 6];", "V098"},
      {"", "var t : u32[40000, 3];", "V098"},
      {"", "var t : u32[2][3];", "V098"},
      {"", "var t : u32[2, 3]; var u : u32[3, 2]; t = u;", "V098"},
      {"", "let t : u32[2, 2] = {{1}, {2, 3, 4}};", "V098"},
      {"", "let t : u32[2, 2] = {1, 2, 3};", "V098"},
      {"const T : u32[2, 2] = {1, 2, 3};\n", "y[0] = T[0, 0];", "V098"},
      {"fn f(t: u32[2, 3]) { }\n", "var t : u32[3, 2]; f(t);", "V099"},
      {"fn f(t: read u32[]) { }\n", "var t : u32[3, 2]; f(t);", "V099"},
      {"struct s { x : f32; }\n", "var t : s[4];", "V098"},
      {"struct s { x : f32; }\nfn f(t: s[4]) { }\n", "", "V098"},
      {"", "let t : f32x2[1] = {f32x2(0.0)}; t[0].x = 1.0;", "V066"},
      {"", "var t : f32x2[2] = {f32x2(0.0), 1.0};", "V063"},
      {"fn f(var t: f32x2[2]) { }\n", "var t : f32x4[2]; f(t);", "V099"},
      {"", "let t : u32[4];", "V028"},
      {"", "var t : u32[];", "V098"},
      {"", "let t : u32[2] = {1, 2.0};", "V063"},
      {"", "let t : u32[2] = {1, 2, 3};", "V098"},
      {"", "let t : u32[2] = {};", "V098"},
      {"", "let t : u32[2] = {1, 2}; t[0] = 1;", "V066"},
      {"", "let t : u32[2] = {1, 2}; let u = t + 1;", "V035"},
      {"", "let t : u32[2] = {1, 2}; let u = t == t;", "V035"},
      {"", "let t : u32[2] = {1, 2}; var u : u32[3]; u = t;", "V098"},
      {"", "let t : u32[2] = {1, 2}; var u : f32[2]; u = t;", "V098"},
      {"", "var t : u32[2]; t = 1;", "V098"},
      {"", "var t : u32[2]; t[1.0] = 1;", "V068"},
      {"", "var t : u32[2]; t = y;", "V035"},
      {"const T : u32[2] = {1};\n", "y[0] = T[0];", "V098"},
      {"const T : u32[2] = {1, 2};\n", "T[0] = 1;", "V066"},
      {"const T : u32[2] = {1, 2};\n", "y[0] = T;", "V035"},
      {"fn f(a: u32[2]) -> u32 { return a[0]; }\n", "y[0] = f(1);", "V099"},
      {"fn f(a: u32[2]) -> u32 { return a[0]; }\n", "y[0] = f(y);", "V099"},
      {"fn f(a: u32[2]) -> u32 { return a[0]; }\n",
       "var t : u32[3]; y[0] = f(t);", "V099"},
      {"fn f(a: u32[2]) { a[0] = 1; }\n", "", "V066"},
      {"fn f(var a: u32[2]) { a[0] = 1; }\n", "let t : u32[2] = {1, 2}; f(t);",
       "V099"},
      {"fn f(var a: u32[2], b: u32[2]) { a[0] = b[1]; }\n",
       "var t : u32[2]; f(t, t);", "V099"},
      {"fn f(a: write u32[], b: read u32[]) { a[0] = b[1]; }\n", "f(y, y);",
       "V099"},
      {"fn f(a: write u32[]) { a[0] = a[1]; }\n", "", "V070"},
      {"fn f(a: read f32[]) -> f32 { return a[0]; }\n", "y[0] = u32(f(y));",
       "V099"},
      {"fn f(a: write u32[]) { a[0] = 1; }\n", "f(x);", "V099"},
      {"fn f(var a: u32) { }\n", "", "V099"},
      {"fn f() { }\n", "y[0] = f();", "V099"},
      {"fn f() { return 1; }\n", "", "V076"},
      {"fn f() -> u32 { barrier(); return 1; }\n", "", "V086"},
      {"fn f() -> (u32, u32) { return (1, 2); }\n", "f();", "V099"},
      {"fn f() -> (u32, u32) { return (1, 2); }\n", "let a = f();", "V099"},
      {"fn f() -> (u32, u32) { return (1, 2); }\n", "let (a, b, c) = f();",
       "V099"},
      {"fn f() -> (u32, u32) { return (1, 2); }\n", "let (a, a) = f();", "V03"},
      {"fn f() -> (u32, u32) { return (1, 2); }\n", "let (a : u32, b) = f();",
       "V099"},
      {"fn f() -> (u32, u32) { return (1, 2); }\n", "y[0] = f() + 1;", "V099"},
      {"fn f() -> (u32, u32) { return 1; }\n", "", "V"},
      {"fn f() -> (u32, u32) { return (1, 2, 3); }\n", "", "V099"},
      {"fn f() -> (u32, u32) { return (1, 2.0); }\n", "", "V063"},
      {"fn f() -> (u32, u32) { }\n", "", "V077"},
      {"fn f() -> (u32) { return 1; }\n", "", "V099"},
      {"", "let (a, b) = y[0];", "V099"},
      {"", "let (a, b) = (1, 2);", "V"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[1024];
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    vyre_module *module;
    snprintf(text, sizeof text,
             "%skernel k buffer y : read_write u32[] @0; buffer x : read "
             "u32[] @1; { %s }",
             rows[i].items, rows[i].body);
    const vyre_code code = vyre_module_parse(
        text, strlen(text), "t", (vyre_allocator){0}, &module, &found, &st);
    if (code == VYRE_OK || found.count == 0 ||
        strncmp(found.items[0].rule, rows[i].rule, strlen(rows[i].rule)) != 0) {
      printf("    %s%s: %s %s\n", rows[i].items, rows[i].body,
             found.count ? found.items[0].rule : "(no finding)",
             found.count ? found.items[0].message : "");
    }
    CHECK(code != VYRE_OK && found.count >= 1);
    CHECK(strncmp(found.items[0].rule, rows[i].rule, strlen(rows[i].rule)) ==
          0);
    CHECK(found.items[0].fix[0]);
    vyre_diagnostics_deinit(&found);
  }
}

TEST_MAIN(TEST_ENTRY(arrays_equal_those_of_c_on_every_device),
          TEST_ENTRY(arrays_survive_printing_and_the_binary_form),
          TEST_ENTRY(wrong_uses_of_arrays))
