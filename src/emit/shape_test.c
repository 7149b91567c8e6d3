/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is claimed of small kernels, exactly: not too much and not too little.
 * Whether claims hold is seen by shape_run_test.c. */
#include "emit/shape.h"

#include <inttypes.h>

#include "vyre/module.h"

#include "lower/low_testing.h"
#include "support/check.h"

/* A text in the kernel language, down to its shapes. */
typedef struct found {
  vyre_module *module;
  vyre_arena arena;
  const vyre__low_kernel *kernel;
  vyre__regions regions;
  vyre__shapes shapes;
} found;

static void find(const char *text, uint32_t width, found *f) {
  vyre_status st = {0};
  *f = (found){0};
  vyre_arena_init(&f->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(text, strlen(text), "k.vyre", (vyre_allocator){0},
                             &f->module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(f->module, 0), NULL,
                       VYRE__PASS_CONTROL, &f->arena, &f->kernel, NULL, &st),
           st);
  CHECK_OK(vyre__regions_build(f->kernel, f->kernel->phases[0], false,
                               &f->arena, &f->regions, &st),
           st);
  CHECK_OK(vyre__shapes_find(&f->regions, width, &f->arena, &f->shapes, &st),
           st);
}

static void found_finish(found *f) {
  vyre_arena_finish(&f->arena);
  vyre_module_release(f->module);
}

/* "group", "linear 4 @2" (stride 4, aligned to 2^2), "constant 7". */
static const char *text_of(vyre__shape s, char out[64]) {
  static const char *const words[] = {"constant", "group", "vector", "linear",
                                      "varying"};
  const char *word = s.kind < 5 ? words[s.kind] : "?";
  char number[32] = "", aligned[8] = "";
  if (s.kind == VYRE__SHAPE_CONSTANT || s.kind == VYRE__SHAPE_LINEAR) {
    snprintf(number, sizeof number, " %" PRId64,
             s.stride > UINT32_MAX ? (int64_t)s.stride : (int32_t)s.stride);
  }
  if (s.aligned && s.kind != VYRE__SHAPE_CONSTANT) {
    snprintf(aligned, sizeof aligned, " @%u", s.aligned);
  }
  snprintf(out, 64, "%s%s%s", word, number, aligned);
  return out;
}

/* The value of the last STORE, index of the last LOAD and so on are looked at. */
static uint32_t last_of(const found *f, vyre__low_op op) {
  uint32_t last = 0;
  for (uint32_t at = f->regions.begin; at < f->regions.end; at++) {
    if (f->kernel->code[at].op == op) last = at;
  }
  CHECK(last);
  return last;
}

static void whole(char out[2048], const char *size, const char *body) {
  snprintf(out, 2048,
           "kernel k workgroup(%s)\n"
           "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
           "uniform n : u32 @2;\nuniform wide : u64 @3;\n"
           "shared tile : u32[64];\n"
           "{ let l = local_id.x; let i = global_id.x; let v = x[i];\n"
           "%s }\n",
           size, body);
}

/* --- one value --------------------------------------------------------------*/

typedef struct value_case {
  const char *size;
  uint32_t width;
  const char *value; /* u32 */
  const char *want;
} value_case;

static const value_case values[] = {
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
    {"64", 16, "y[n]", "vector"},
    {"64", 16, "atomic_add(y[n], 1)", "varying"},
    {"64", 1, "atomic_add(y[n], 1)", "vector"},
    {"1", 16, "atomic_add(y[n], 1)", "vector"},
    {"64", 16, "v", "varying"},
    {"64", 16, "x[l >> 4]", "vector"},
};

TEST(values_have_their_shapes) {
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    const value_case *c = &values[i];
    char body[512], text[2048], got[64];
    found f;
    snprintf(body, sizeof body, "y[v] = %s;", c->value);
    whole(text, c->size, body);
    find(text, c->width, &f);
    uint32_t at = last_of(&f, VYRE__LOW_STORE);
    text_of(vyre__shape_of(&f.shapes, f.kernel->code[at].b), got);
    if (strcmp(got, c->want) != 0) {
      printf("    (%s) by %u: %s is %s, not %s\n", c->size, c->width, c->value,
             got, c->want);
      failed++;
    }
    found_finish(&f);
  }
  CHECK_U64(failed, 0);
}

TEST_MAIN(TEST_ENTRY(values_have_their_shapes))
