/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every operation on every type, and every element in memory. */
#include "backend/ref/ref_testing.h"
#include "ir/scalar.h"

/* --- every operation on every type -----------------------------------------*/

typedef struct type_row {
  vyre_type type;
  const char *name;
  vyre_element element;
} type_row;

static const type_row types[] = {{VYRE_TYPE_BOOL, "bool", VYRE_ELEMENT_BOOL},
                                 {VYRE_TYPE_U32, "u32", VYRE_ELEMENT_U32},
                                 {VYRE_TYPE_I32, "i32", VYRE_ELEMENT_I32},
                                 {VYRE_TYPE_U64, "u64", VYRE_ELEMENT_U64},
                                 {VYRE_TYPE_I64, "i64", VYRE_ELEMENT_I64},
                                 {VYRE_TYPE_F32, "f32", VYRE_ELEMENT_F32},
                                 {VYRE_TYPE_F64, "f64", VYRE_ELEMENT_F64}};

enum { VECTORS = 256 };

static uint64_t random_value(vyre_type type, uint64_t *seed) {
  uint64_t value = random_next(seed) >> random_below(seed, 64);
  static const uint32_t floats[] = {0,          0x80000000, 0x3F800000,
                                    0xBFC00000, 0x7F800000, 0x7FC00000,
                                    0x00000001, 0x4F000000, 0x40490FDB};
  switch (type) {
    case VYRE_TYPE_BOOL:
      return value & 1;
    case VYRE_TYPE_F32:
      return random_below(seed, 2) ? (uint32_t)value
                                   : floats[random_below(seed, 9)];
    case VYRE_TYPE_F64:
      return random_below(seed, 2)
                 ? value
                 : vyre__of_f64(vyre__f32(floats[random_below(seed, 9)]));
    case VYRE_TYPE_U64:
    case VYRE_TYPE_I64:
      return random_below(seed, 2) ? value : 0 - value;
    default:
      return (uint32_t)(random_below(seed, 2) ? value : 0 - value);
  }
}

/* Prints the operation on a, b and c in the text form. */
static void spell(char *out, size_t size, vyre__op op, const type_row *to) {
  const char *text = vyre__ops[op].text;
  bool word = text[0] >= 'a' && text[0] <= 'z';
  switch (vyre__ops[op].form) {
    case VYRE__FORM_UNARY:
      if (op == VYRE__OP_CAST) {
        snprintf(out, size, "%s(a[i])", to->name);
      } else if (op == VYRE__OP_BITCAST) {
        snprintf(out, size, "as_%s(a[i])", to->name);
      } else {
        snprintf(out, size, "%s(a[i])", text);
      }
      return;
    case VYRE__FORM_BINARY:
      if (!word) snprintf(out, size, "a[i] %s b[i]", text);
      if (word) snprintf(out, size, "%s(a[i], b[i])", text);
      return;
    default:
      snprintf(out, size, "%s(a[i], b[i], c[i])", text);
      return;
  }
}

static void check_operation(vyre__op op, const type_row *from,
                            const type_row *second, const type_row *third,
                            const type_row *to) {
  static unsigned char memory[4][VECTORS * 8];
  const type_row *rows[4] = {from, second, third, to};
  uint64_t values[3][VECTORS], seed = 77 + (uint64_t)op;
  uint32_t sizes[4];
  for (int k = 0; k < 4; k++) sizes[k] = vyre_element_size(rows[k]->element);
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < VECTORS; i++) {
      values[k][i] = random_value(rows[k]->type, &seed);
      vyre__element_store(rows[k]->element, memory[k] + (size_t)i * sizes[k],
                          values[k][i]);
      values[k][i] = vyre__element_load(rows[k]->element,
                                        memory[k] + (size_t)i * sizes[k]);
    }
  }
  char expression[80], text[512];
  spell(expression, sizeof expression, op, to);
  snprintf(text, sizeof text,
           "kernel k workgroup(64)\nbuffer a : read %s[] @0;\n"
           "buffer b : read %s[] @1;\nbuffer c : read %s[] @2;\n"
           "buffer y : write %s[] @3;\n"
           "{ let i = global_id.x; y[i] = %s; }\n",
           from->name, second->name, third->name, to->name, expression);
  vyre_input inputs[] = {{memory[0], (size_t)VECTORS * sizes[0]},
                         {memory[1], (size_t)VECTORS * sizes[1]},
                         {memory[2], (size_t)VECTORS * sizes[2]}};
  vyre_output outputs[] = {{memory[3], (size_t)VECTORS * sizes[3]}};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 3,
                             .outputs = outputs,
                             .output_count = 1};
  run(text, &desc);
  for (int i = 0; i < VECTORS; i++) {
    const uint64_t args[3] = {values[0][i], values[1][i], values[2][i]};
    uint64_t want = 0;
    CHECK(vyre__scalar_eval(op, from->type, to->type, args, &want));
    uint64_t got =
        vyre__element_load(to->element, memory[3] + (size_t)i * sizes[3]);
    if (op == VYRE__OP_UNIFORM) want = got; /* tested elsewhere */
    if (got == want) continue;
    printf("    %s of %llx, %llx, %llx is %llx, not %llx\n", expression,
           (unsigned long long)args[0], (unsigned long long)args[1],
           (unsigned long long)args[2], (unsigned long long)got,
           (unsigned long long)want);
    CHECK(false);
  }
}

/* Compares the loops of lanes.c with scalar.c, which scalar_test.c compares
 * with oracles. */
TEST(every_operation_on_every_type) {
  int count = 0;
  for (vyre__op op = VYRE__OP_NEG; op <= VYRE__OP_SELECT; op++) {
    for (int i = 0; i < 7; i++) {
      for (int j = 0; j < 7; j++) {
        const uint64_t zero[3] = {0, 0, 0};
        uint64_t out;
        bool compare = op >= VYRE__OP_EQ && op <= VYRE__OP_GE;
        bool free = op == VYRE__OP_CAST || op == VYRE__OP_BITCAST ||
                    op == VYRE__OP_SELECT;
        if (compare ? j != 0 : !free && i != j) continue;
        if (op == VYRE__OP_SELECT && i != 0) continue;
        if (!vyre__scalar_eval(op, types[i].type, types[j].type, zero, &out)) {
          continue;
        }
        const type_row *second = &types[i], *third = &types[i];
        if (op == VYRE__OP_SHL || op == VYRE__OP_SHR) second = &types[1];
        if (op == VYRE__OP_SELECT) second = third = &types[j];
        check_operation(op, &types[i], second, third, &types[j]);
        count++;
      }
    }
  }
  CHECK_U64(count, 227);
}

/* --- elements --------------------------------------------------------------*/

/* Copies through registers: narrow types, halves, NaNs. */
static void check_copy(const char *element, const void *in, const void *want,
                       size_t size) {
  char text[256];
  unsigned char out[64];
  snprintf(text, sizeof text,
           "kernel k workgroup(2)\nbuffer x : read %s[] @0;\n"
           "buffer y : write %s[] @1;\n"
           "{ let i = global_id.x; y[i] = x[i]; }\n",
           element, element);
  memset(out, 0xEE, sizeof out);
  vyre_input inputs[] = {{in, size}};
  vyre_output outputs[] = {{out + 1, size}}; /* not aligned */
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = 1,
                             .outputs = outputs,
                             .output_count = 1};
  run(text, &desc);
  CHECK(memcmp(out + 1, want, size) == 0);
  CHECK(out[0] == 0xEE && out[size + 1] == 0xEE);
}

TEST(elements_in_memory) {
  static const uint8_t bools[] = {0, 1, 7, 255}, true_bools[] = {0, 1, 1, 1};
  check_copy("bool", bools, true_bools, 4);
  check_copy("u8", bools, bools, 4);
  check_copy("i8", bools, bools, 3);
  check_copy("bytes", bools, bools, 4);
  static const uint16_t halves[] = {0x3C00, 0x8001, 0x7C01, 0xFFFF};
  static const uint16_t f16s[] = {0x3C00, 0x8001, 0x7E00, 0x7E00};
  static const uint16_t bf16s[] = {0x3C00, 0x8001, 0x7C01, 0x7FC0};
  check_copy("f16", halves, f16s, 8);
  check_copy("bf16", halves, bf16s, 8);
  check_copy("u16", halves, halves, 8);
  check_copy("i16", halves, halves, 6);
  static const uint32_t words[] = {0xFF800001, 0x7F800000, 1, 0x80000000};
  static const uint32_t f32s[] = {0x7FC00000, 0x7F800000, 1, 0x80000000};
  check_copy("f32", words, f32s, 16);
  check_copy("u32", words, words, 16);
  check_copy("i32", words, words, 16);
  static const uint64_t longs[] = {0xFFF0000000000001, 5};
  static const uint64_t f64s[] = {0x7FF8000000000000, 5};
  check_copy("f64", longs, f64s, 16);
  check_copy("u64", longs, longs, 16);
  check_copy("i64", longs, longs, 16);
}

TEST(bitcasts_make_nans_one) {
  static const uint32_t x[LENGTH] = {0xFFC00001, 0x7F800001, 0x3F800000};
  uint32_t y[LENGTH] = {0};
  run_words("y[i] = as_u32(as_f32(x[i]));", 0, x, y);
  CHECK_U64(y[0], 0x7FC00000);
  CHECK_U64(y[1], 0x7FC00000);
  CHECK_U64(y[2], 0x3F800000);
}

TEST_MAIN(TEST_ENTRY(every_operation_on_every_type),
          TEST_ENTRY(elements_in_memory), TEST_ENTRY(bitcasts_make_nans_one))
