/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests which integers are computed in 8 or 16 bits. The results of narrow
 * code are compared with ref by the tests of random programs. */
#include "spmd/passes/narrow.h"

#include <stdio.h>
#include <string.h>

#include "vyre/module.h"

#include "support/check.h"
#include "support/parse.h"

enum { WIDE = 0, BYTE = 1, SHORT = 2 };

/* u, v: u8; s, t: i8; h: u16; d: u32. The value of the last statement is
 * stored to a buffer of `type`. */
static const struct {
  const char *type, *value;
  uint8_t bytes, op_bytes;
  bool is_signed;
} cases[] = {
    {"u32", "u & 15u", BYTE, BYTE, false},
    {"u32", "u + v", SHORT, SHORT, false},
    {"u32", "u - v", SHORT, SHORT, true},
    {"u32", "u * v", SHORT, SHORT, false},
    {"u32", "u * v * 2u", WIDE, WIDE, false}, /* 130050 */
    {"u32", "u * 257u", SHORT, SHORT, false},
    {"u32", "u * 258u", WIDE, WIDE, false}, /* 65790 */
    {"u32", "h & 4095u", SHORT, SHORT, false},
    {"u32", "h + 1u", WIDE, WIDE, false}, /* 65536 */
    {"u32", "min(u, v)", BYTE, BYTE, false},
    {"u32", "max(u, 255u)", BYTE, BYTE, false},
    {"u32", "max(u, 256u)", SHORT, SHORT, false},
    {"u32", "select(u < v, u, v)", BYTE, BYTE, false},
    {"u32", "select(u < v, u, d)", WIDE, WIDE, false},
    {"u32", "d + u", WIDE, WIDE, false},
    {"u32", "d & 255u", WIDE, WIDE, false}, /* starts from a wide value */
    {"i32", "s + t", SHORT, SHORT, true},
    {"i32", "min(s, t)", BYTE, BYTE, true},
    {"i32", "s * t", SHORT, SHORT, true},
    {"i32", "s * t * 3", WIDE, WIDE, true}, /* 49152 */
    {"i32", "min(s, i32(u))", SHORT, SHORT, true},
    /* only the lowest byte is stored */
    {"u8", "u * v", BYTE, BYTE, false},
    {"u8", "u + v + 77u", BYTE, BYTE, false},
    {"u16", "h + 1u", SHORT, SHORT, false},
    {"i8", "s - t", BYTE, BYTE, false},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static const char *kernel_of(size_t c, char *text, size_t size) {
  snprintf(text, size,
           "kernel k workgroup(64) over(o)\n"
           "buffer bu : read u8[] @0;\nbuffer bv : read u8[] @1;\n"
           "buffer bs : read i8[] @2;\nbuffer bt : read i8[] @3;\n"
           "buffer bh : read u16[] @4;\nbuffer bd : read u32[] @5;\n"
           "buffer o : write %s[] @6;\n{\n"
           "  let i = global_id.x;\n  let u = bu[i];\n  let v = bv[i];\n"
           "  let s = bs[i];\n  let t = bt[i];\n  let h = bh[i];\n"
           "  let d = bd[i];\n  if (i < len(o)) o[i] = %s;\n}\n",
           cases[c].type, cases[c].value);
  return text;
}

static vyre__val stored_value(const vyre__lir_kernel *k) {
  vyre__val found = 0;
  for (uint32_t at = 1; at < k->count; at++) {
    if (k->code[at].op == VYRE__LIR_STORE) found = k->code[at].b;
  }
  return found;
}

TEST(values_are_as_narrow_as_their_ranges_and_uses_allow) {
  for (size_t c = 0; c < CASES; c++) {
    char text[800];
    const vyre__target target = {.math = VYRE__MATH_F64};
    const vyre__lir_kernel *k;
    vyre__narrow *narrow;
    vyre_arena arena;
    vyre_status st = {0};
    vyre_module *module = parse_module(kernel_of(c, text, sizeof text));
    vyre_arena_init(&arena, (vyre_allocator){0});
    CHECK_OK(vyre__lower(vyre_module_kernel(module, 0), &target,
                         VYRE__PASS_LEGALIZE_CONTROL, &arena, &k, NULL, &st),
             st);
    CHECK_OK(vyre__narrow_find(k, k->phases[0], &arena, &narrow, &st), st);
    vyre__narrow n = narrow[stored_value(k) - k->phases[0].begin];
    if (n.bytes != cases[c].bytes) printf("    %s\n", cases[c].value);
    CHECK_U64(n.bytes, cases[c].bytes);
    CHECK_U64(n.op_bytes, cases[c].op_bytes);
    if (n.bytes) CHECK_U64(n.is_signed, cases[c].is_signed);
    vyre_arena_deinit(&arena);
    vyre_module_release(module);
  }
}

TEST_MAIN(TEST_ENTRY(values_are_as_narrow_as_their_ranges_and_uses_allow))
