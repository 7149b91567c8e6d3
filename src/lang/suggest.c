/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/suggest.h"

#include <string.h>

enum { LONGEST = 40 }; /* longer names get no suggestion */

static int fold(int c) {
  return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static unsigned min(unsigned a, unsigned b) {
  return a < b ? a : b;
}

/* Returns the number of edits (insert, delete, replace, swap of neighbours)
 * between two names, ignoring case. */
static unsigned distance(const char *a, size_t a_length, const char *b,
                         size_t b_length) {
  unsigned rows[3][LONGEST + 1];
  for (size_t j = 0; j <= b_length; j++) rows[0][j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3];
    const unsigned *two_above = rows[(i + 1) % 3];
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      int x = fold(a[i - 1]), y = fold(b[j - 1]);
      unsigned cost = min(above[j], row[j - 1]) + 1;
      cost = min(cost, above[j - 1] + (x != y));
      if (i > 1 && j > 1 && x == fold(b[j - 2]) && fold(a[i - 2]) == y) {
        cost = min(cost, two_above[j - 2] + 1);
      }
      row[j] = cost;
    }
  }
  return rows[a_length % 3][b_length];
}

vyre__guess vyre__guess_begin(const char *name, size_t length) {
  /* Longer names may contain more mistakes; short names are all similar to
   * each other. */
  unsigned limit = length < 3 ? 1 : length < 6 ? 2 : length < 9 ? 3 : 4;
  return (vyre__guess){.name = name, .length = length, .distance = limit};
}

void vyre__guess_try(vyre__guess *guess, const char *candidate, size_t length) {
  size_t more =
      length > guess->length ? length - guess->length : guess->length - length;
  if (length == 0 || length > LONGEST || guess->length > LONGEST ||
      more >= guess->distance) {
    return;
  }
  unsigned edits = distance(guess->name, guess->length, candidate, length);
  if (edits >= guess->distance) return;
  /* With several edits, of which one is the first letter, another word is
   * likely meant. */
  if (edits > 1 && fold(guess->name[0]) != fold(candidate[0])) return;
  guess->distance = edits;
  guess->best = candidate;
  guess->best_length = length;
}

void vyre__guess_try_all(vyre__guess *guess, const char *const *candidates,
                         size_t count) {
  for (size_t i = 0; i < count; i++) {
    vyre__guess_try(guess, candidates[i], strlen(candidates[i]));
  }
}

typedef struct foreign_row {
  const char *name, *text;
} foreign_row;

static const char *find_foreign(const foreign_row *rows, size_t count,
                                const char *name, size_t length) {
  for (size_t i = 0; i < count; i++) {
    if (strlen(rows[i].name) == length &&
        memcmp(rows[i].name, name, length) == 0) {
      return rows[i].text;
    }
  }
  return NULL;
}

const char *vyre__foreign_type(const char *name, size_t length) {
  static const foreign_row rows[] = {
      {"int", "i32"},       {"unsigned", "u32"},  {"uint", "u32"},
      {"signed", "i32"},    {"short", "i32"},     {"char", "i32"},
      {"long", "i64"},      {"ulong", "u64"},     {"ushort", "u32"},
      {"uchar", "u32"},     {"size_t", "u64"},    {"float", "f32"},
      {"double", "f64"},    {"half", "f32"},      {"int8_t", "i32"},
      {"int16_t", "i32"},   {"int32_t", "i32"},   {"int64_t", "i64"},
      {"uint8_t", "u32"},   {"uint16_t", "u32"},  {"uint32_t", "u32"},
      {"uint64_t", "u64"},  {"_Bool", "bool"},    {"float32_t", "f32"},
      {"float64_t", "f64"}, {"ptrdiff_t", "i64"}, {"auto", "u32"},
  };
  return find_foreign(rows, sizeof rows / sizeof rows[0], name, length);
}

const char *vyre__foreign_word(const char *name, size_t length) {
  static const foreign_row rows[] = {
      {"goto", "use break, continue or return"},
      {"struct", "use one buffer or local for each member"},
      {"union", "use as_u32(x), as_f32(x) and so on to reinterpret bits"},
      {"typedef", "use the types of the language, such as u32, i32 and f32"},
      {"enum", "write const NAME = value; for each"},
      {"static", "remove it"},
      {"inline", "remove it: all calls are inlined"},
      {"extern", "remove it: a program is one file"},
      {"void", "remove the result"},
      {"sizeof", "use len(buffer) for the number of elements"},
      {"NULL", "use an index; the language has no pointers"},
      {"printf", "use print(...) with strings and values"},
      {"function", "write fn name(a: f32) -> f32 { ... }"},
      {"def", "write fn name(a: f32) -> f32 { ... }"},
      {"func", "write fn name(a: f32) -> f32 { ... }"},
      {"mut", "write var x = value;"},
      {"elif", "write else if"},
      {"elseif", "write else if"},
      {"loop", "write while (true) { ... }"},
      {"and", "write &&"},
      {"or", "write ||"},
      {"not", "write !"},
      {"True", "write true"},
      {"False", "write false"},
      {"threadIdx", "use local_id.x"},
      {"blockIdx", "use workgroup_id.x"},
      {"blockDim", "use workgroup_size.x"},
      {"gridDim", "use grid_size.x"},
      {"get_global_id", "use global_id.x"},
      {"get_local_id", "use local_id.x"},
      {"get_group_id", "use workgroup_id.x"},
      {"get_local_size", "use workgroup_size.x"},
      {"get_num_groups", "use grid_size.x"},
      {"gl_GlobalInvocationID", "use global_id.x"},
      {"gl_LocalInvocationID", "use local_id.x"},
      {"gl_WorkGroupID", "use workgroup_id.x"},
      {"gl_NumWorkGroups", "use grid_size.x"},
      {"__syncthreads", "use barrier();"},
      {"syncthreads", "use barrier();"},
      {"workgroupBarrier", "use barrier();"},
      {"atomicAdd", "use atomic_add(buffer[i], value)"},
      {"atomicMin", "use atomic_min(buffer[i], value)"},
      {"atomicMax", "use atomic_max(buffer[i], value)"},
      {"atomicCAS",
       "use atomic_compare_exchange(buffer[i], expected, desired)"},
      {"atomicExch", "use atomic_exchange(buffer[i], value)"},
      {"__shared__",
       "declare it in the kernel's header: shared tile : f32[64];"},
      {"__local", "declare it in the kernel's header: shared tile : f32[64];"},
      {"__global",
       "declare it in the kernel's header: buffer x : read f32[] @0;"},
      {"__kernel", "write kernel name workgroup(64)"},
      {"__global__", "write kernel name workgroup(64)"},
      {"fabs", "use abs(x)"},
      {"fabsf", "use abs(x)"},
      {"sqrtf", "use sqrt(x)"},
      {"fmaf", "use fma(a, b, c)"},
      {"fmin", "use min(a, b)"},
      {"fmax", "use max(a, b)"},
      {"fminf", "use min(a, b)"},
      {"fmaxf", "use max(a, b)"},
      {"clamp", "write min(max(x, low), high)"},
      {"mad", "use fma(a, b, c)"},
      {"mix", "write fma(t, b - a, a)"},
      {"length", "use len(buffer)"},
      {"arrayLength", "use len(buffer)"},
      {"INFINITY", "use inf"},
      {"NAN", "use nan"},
      {"FLT_MAX", "write 0x1.fffffep127f"},
      {"UINT_MAX", "write 0xFFFFFFFFu"},
      {"INT_MAX", "write 0x7FFFFFFF"},
      {"popcnt", "use popcount(x)"},
      {"__popc", "use popcount(x)"},
  };
  return find_foreign(rows, sizeof rows / sizeof rows[0], name, length);
}
