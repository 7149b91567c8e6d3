/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests operand types, types of literals, and the canonical order. */
#include "ir/builder/ir_builder.h"

#include "vyre/module.h"

#include "support/check.h"
#include "support/parse.h"

/* --- an IR builder inside a kernel -----------------------------------------*/

typedef struct fixture {
  vyre__ir_builder m;
  char rule[8], message[512], fix[256];
  int reports;
} fixture;

static void keep(void *self, const char *rule, vyre__source_loc place,
                 uint32_t length, const char *message, const char *fix,
                 vyre__source_loc other, const char *other_text) {
  fixture *f = self;
  (void)place;
  (void)other;
  (void)other_text;
  CHECK(length > 0 && message[0] && fix[0]);
  f->reports++;
  snprintf(f->rule, sizeof f->rule, "%s", rule);
  snprintf(f->message, sizeof f->message, "%s", message);
  snprintf(f->fix, sizeof f->fix, "%s", fix);
}

static const vyre_buffer_decl buffers[] = {{.name = "y",
                                            .access = VYRE_ACCESS_READ_WRITE,
                                            .element = VYRE_ELEMENT_U32}};
static const vyre__queue_field field = {"", VYRE_TYPE_I64};
static const vyre__queue_clauses queue = {.field_count = 1, .fields = &field};
static const vyre__kernel kernel = {.name = "k",
                                    .file = "",
                                    .buffers = buffers,
                                    .buffer_count = 1,
                                    .workgroup = {1, 1, 1},
                                    .over = VYRE_NO_INDEX,
                                    .queue = &queue};

static void begin(fixture *f) {
  *f = (fixture){.reports = 0};
  vyre__ir_builder_init(&f->m, (vyre_allocator){0}, (vyre__reporter){keep, f});
  (void)vyre__kernel_begin(&f->m, &kernel);
}

static vyre__id untyped(fixture *f, int64_t value) {
  return vyre__ir_build_integer(&f->m, (uint64_t)(value < 0 ? -value : value),
                                value < 0, VYRE_TYPE_VOID);
}

/* --- types -----------------------------------------------------------------*/

/* Types that each operation accepts: b u U i I f F for bool u32 u64 i32 i64
 * f32 f64. */
static const struct {
  vyre__op op;
  const char *takes;
} matrix[] = {
    {VYRE__OP_NEG, "iIfF"},        {VYRE__OP_NOT, "b"},
    {VYRE__OP_BIT_NOT, "uUiI"},    {VYRE__OP_ABS, "iIfF"},
    {VYRE__OP_SIGN, "iIfF"},       {VYRE__OP_FLOOR, "fF"},
    {VYRE__OP_CEIL, "fF"},         {VYRE__OP_TRUNC, "fF"},
    {VYRE__OP_ROUND, "fF"},        {VYRE__OP_RINT, "fF"},
    {VYRE__OP_SQRT, "fF"},         {VYRE__OP_CLZ, "uUiI"},
    {VYRE__OP_CTZ, "uUiI"},        {VYRE__OP_POPCOUNT, "uUiI"},
    {VYRE__OP_UNIFORM, "buUiIfF"}, {VYRE__OP_ADD, "uUiIfF"},
    {VYRE__OP_SUB, "uUiIfF"},      {VYRE__OP_MUL, "uUiIfF"},
    {VYRE__OP_DIV, "uUiIfF"},      {VYRE__OP_REM, "uUiI"},
    {VYRE__OP_AND, "buUiI"},       {VYRE__OP_OR, "buUiI"},
    {VYRE__OP_XOR, "buUiI"},       {VYRE__OP_EQ, "buUiIfF"},
    {VYRE__OP_NE, "buUiIfF"},      {VYRE__OP_LT, "uUiIfF"},
    {VYRE__OP_LE, "uUiIfF"},       {VYRE__OP_GT, "uUiIfF"},
    {VYRE__OP_GE, "uUiIfF"},       {VYRE__OP_LAND, "b"},
    {VYRE__OP_LOR, "b"},           {VYRE__OP_MIN, "uUiIfF"},
    {VYRE__OP_MAX, "uUiIfF"},      {VYRE__OP_FMA, "fF"},
    {VYRE__OP_CLAMP, "uUiIfF"},    {VYRE__OP_SATURATE, "fF"},
    {VYRE__OP_STEP, "fF"},         {VYRE__OP_REVERSE, "uUiI"},
    {VYRE__OP_MUL_HIGH, "uUiI"},   {VYRE__OP_ADD_SAT, "uUiI"},
    {VYRE__OP_SUB_SAT, "uUiI"},    {VYRE__OP_DOT4_U8, "u"},
    {VYRE__OP_MIX, "fF"},          {VYRE__OP_SMOOTHSTEP, "fF"},
    {VYRE__OP_FRACT, "fF"},
};

static char letter(vyre_type type) {
  return "?buiUIfF"[type];
}

static vyre__id apply(vyre__ir_builder *m, vyre__op op, vyre_type a,
                      vyre_type b) {
  vyre__id x = vyre__ir_build_literal(m, a, 1),
           y = vyre__ir_build_literal(m, b, 1);
  switch (vyre__ops[op].form) {
    case VYRE__FORM_UNARY:
      return vyre__ir_build_unary(m, op, x);
    case VYRE__FORM_BINARY:
      return vyre__ir_build_binary(m, op, x, y);
    default:
      return vyre__ir_build_ternary(m, op, x, y,
                                    vyre__ir_build_literal(m, a, 1));
  }
}

TEST(every_operation_takes_its_types_and_no_others) {
  fixture f;
  begin(&f);
  for (size_t i = 0; i < sizeof matrix / sizeof matrix[0]; i++) {
    vyre__op op = matrix[i].op;
    for (int a = VYRE_TYPE_BOOL; a < VYRE_TYPE_COUNT; a++) {
      for (int b = VYRE_TYPE_BOOL; b < VYRE_TYPE_COUNT; b++) {
        bool single = vyre__ops[op].form == VYRE__FORM_UNARY;
        bool good =
            strchr(matrix[i].takes, letter((vyre_type)a)) && (single || a == b);
        int before = f.reports;
        vyre__id id = apply(&f.m, op, (vyre_type)a, (vyre_type)b);
        if ((id != 0) != good || f.reports != before + !good) {
          printf("    %s of %c and %c\n", vyre__ops[op].name,
                 letter((vyre_type)a), letter((vyre_type)b));
        }
        CHECK((id != 0) == good && f.reports == before + !good);
        bool compares = op >= VYRE__OP_EQ && op <= VYRE__OP_GE;
        unsigned result = compares ? VYRE_TYPE_BOOL : (unsigned)a;
        CHECK(!good || vyre__type_of(&f.m, id) == result);
      }
    }
  }
  vyre__ir_builder_build(&f.m);
}

TEST(shifts_selects_casts_and_bit_casts_have_their_own_rules) {
  fixture f;
  begin(&f);
  vyre__ir_builder *m = &f.m;
  static const uint8_t widths[] = {0, 0, 32, 32, 64, 64, 32, 64};
  for (int a = VYRE_TYPE_BOOL; a < VYRE_TYPE_COUNT; a++) {
    for (int b = VYRE_TYPE_BOOL; b < VYRE_TYPE_COUNT; b++) {
      vyre_type ta = (vyre_type)a, tb = (vyre_type)b;
      vyre__id x = vyre__ir_build_literal(m, ta, 1);
      vyre__id y = vyre__ir_build_literal(m, tb, 1);
      bool shifts =
          a >= VYRE_TYPE_U32 && a <= VYRE_TYPE_I64 && b == VYRE_TYPE_U32;
      CHECK((vyre__ir_build_binary(m, VYRE__OP_SHL, x, y) != 0) == shifts);
      vyre__id condition = vyre__ir_build_literal(m, VYRE_TYPE_BOOL, 1);
      vyre__id chosen =
          vyre__ir_build_ternary(m, VYRE__OP_SELECT, condition, x, y);
      CHECK((chosen != 0) == (a == b));
      CHECK(vyre__type_of(m, vyre__ir_build_cast(m, tb, x)) == (unsigned)b);
      bool same = widths[a] != 0 && widths[a] == widths[b];
      CHECK((vyre__ir_build_bitcast(m, tb, x) != 0) == same);
    }
  }
  vyre__ir_builder_build(m);
}

/* --- literals --------------------------------------------------------------*/

TEST(literals_without_a_type_take_one_if_they_fit) {
  static const struct {
    int64_t value;
    vyre_type type;
    bool fits;
  } cases[] = {
      {0, VYRE_TYPE_U32, true},           {4294967295, VYRE_TYPE_U32, true},
      {4294967296, VYRE_TYPE_U32, false}, {-1, VYRE_TYPE_U32, false},
      {2147483647, VYRE_TYPE_I32, true},  {2147483648, VYRE_TYPE_I32, false},
      {-2147483648, VYRE_TYPE_I32, true}, {-2147483649, VYRE_TYPE_I32, false},
      {INT64_MAX, VYRE_TYPE_I64, true},   {INT64_MAX, VYRE_TYPE_U64, true},
      {-1, VYRE_TYPE_U64, false},         {1, VYRE_TYPE_F32, false}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    fixture f;
    begin(&f);
    vyre__id id =
        vyre__resolve_type(&f.m, untyped(&f, cases[i].value), cases[i].type);
    CHECK((id != 0) == cases[i].fits && f.reports == !cases[i].fits);
    if (id) {
      uint64_t bits = vyre__literal(&f.m.nodes[id]);
      bool narrow = vyre__type_bits(cases[i].type) == 32;
      CHECK(bits ==
            (narrow ? (uint32_t)cases[i].value : (uint64_t)cases[i].value));
    } else {
      CHECK_TEXT(f.rule, cases[i].type == VYRE_TYPE_F32 ? "V062" : "V064");
    }
    vyre__ir_builder_build(&f.m);
  }
}

TEST(a_tree_of_literals_settles_as_one) {
  fixture f;
  begin(&f);
  vyre__ir_builder *m = &f.m;
  vyre__id sum = vyre__ir_build_binary(
      m, VYRE__OP_ADD,
      vyre__ir_build_binary(m, VYRE__OP_SHL, untyped(&f, 1), untyped(&f, 40)),
      untyped(&f, 2));
  CHECK(vyre__type_of(m, sum) == VYRE__TYPE_INT);
  vyre__id all = vyre__ir_build_binary(
      m, VYRE__OP_MUL, sum, vyre__ir_build_literal(m, VYRE_TYPE_U64, 3));
  CHECK(vyre__type_of(m, sum) == VYRE_TYPE_U64);
  uint64_t bits;
  CHECK(vyre__const_eval(m, all, &bits));
  CHECK_U64(bits, 3 * ((UINT64_C(1) << 40) + 2));
  /* Negation of an expression that becomes unsigned. */
  vyre__id negative = vyre__ir_build_unary(
      m, VYRE__OP_NEG,
      vyre__ir_build_binary(m, VYRE__OP_ADD, untyped(&f, 1), untyped(&f, 2)));
  CHECK(vyre__resolve_type(m, negative, VYRE_TYPE_U32) == 0);
  CHECK_TEXT(f.rule, "V061");
  CHECK(!vyre__const_eval(m, vyre__ir_build_axis(m, VYRE__OP_GLOBAL_ID, 0),
                          &bits));
  CHECK_TEXT(f.rule, "V090");
  CHECK(!vyre__const_eval(m, 0, &bits) && f.reports == 2);
  vyre__ir_builder_build(m);
}

TEST(a_float_is_rounded_once_for_each_type) {
  fixture f;
  begin(&f);
  vyre__ir_builder *m = &f.m;
  /* Two unrelated values, to see which one is used. */
  vyre__id id = vyre__ir_build_float(m, 1.0, 2.0f, VYRE_TYPE_VOID);
  CHECK(vyre__resolve_type(m, id, VYRE_TYPE_VOID) == id);
  CHECK_U64(vyre__literal(&m->nodes[id]), 0x40000000);
  id = vyre__ir_build_float(m, 1.0, 2.0f, VYRE_TYPE_F64);
  CHECK_U64(vyre__literal(&m->nodes[id]), 0x3FF0000000000000);
  id = vyre__ir_build_unary(m, VYRE__OP_NEG,
                            vyre__ir_build_float(m, 0.0, 0.0f, VYRE_TYPE_F32));
  CHECK_U64(vyre__literal(&m->nodes[id]), 0x80000000);
  id = vyre__ir_build_literal(m, VYRE_TYPE_F32, 0xFFFFFFFF);
  CHECK_U64(vyre__literal(&m->nodes[id]), 0x7FC00000);
  CHECK(!vyre__ir_build_float(m, 1e39, 1.0f / 0.0f, VYRE_TYPE_F32));
  CHECK_TEXT(f.rule, "V064");
  vyre__ir_builder_build(m);
}

TEST(errors_do_not_cascade) {
  fixture f;
  begin(&f);
  vyre__ir_builder *m = &f.m;
  uint32_t local;
  vyre__id wrong = vyre__ir_build_unary(
      m, VYRE__OP_SQRT, vyre__ir_build_literal(m, VYRE_TYPE_U32, 1));
  CHECK(wrong == 0 && f.reports == 1);
  CHECK(!vyre__ir_build_let(m, "a", 1, VYRE_TYPE_VOID, true, wrong, &local));
  vyre__id use = vyre__ir_build_local(m, local);
  CHECK(use == 0);
  CHECK(!vyre__ir_build_binary(m, VYRE__OP_ADD, use, wrong));
  CHECK(!vyre__ir_build_assign(m, local, untyped(&f, 1)));
  CHECK(!vyre__ir_build_store(m, 0, use, use));
  CHECK(!vyre__ir_build_if(m, use, use, use));
  vyre__for loop;
  vyre__for_begin(m, &loop, "i", 1, VYRE_TYPE_VOID, VYRE__LOOP_LT, use, use,
                  use);
  CHECK(!vyre__ir_build_local(m, loop.local));
  CHECK(!vyre__for_end(m, &loop, use));
  CHECK(f.reports == 1);
  vyre__ir_builder_build(m);
}

/* --- canonical order -------------------------------------------------------*/

static vyre_program *parse(const char *text, vyre_module **module) {
  *module = parse_module(text);
  return vyre_module_kernel(*module, 0);
}

TEST(children_come_before_parents_and_functions_in_order_of_calls) {
  static const char text[] =
      "fn c(n: u32) -> u32 { return n; }\n"
      "fn b(n: u32) -> u32 { return c(n); }\n"
      "fn a(n: u32) -> u32 { return n; }\n"
      "kernel k\nbuffer y : read_write u32[] @0;\n"
      "{ let s = b(1) + a(2); { let t = s; y[t] = c(s); } }\n";
  vyre_module *module;
  const vyre_program *p = parse(text, &module);
  CHECK_U64(p->function_count, 4);
  CHECK_TEXT(p->functions[0].name, "k");
  CHECK_TEXT(p->functions[1].name, "b");
  CHECK_TEXT(p->functions[2].name, "a");
  CHECK_TEXT(p->functions[3].name, "c");
  CHECK_U64(p->functions[0].local_count, 2);
  for (uint32_t i = 1; i < p->node_count; i++) {
    const vyre__node *node = &p->nodes[i];
    CHECK(node->reserved == 0);
    if (node->op == VYRE__OP_ADD) CHECK(node->a < i && node->b == i - 1);
  }
  CHECK_U64(p->functions[3].body, p->node_count - 1);
  vyre_module_release(module);
}

TEST(recursion_is_found) {
  fixture f;
  begin(&f);
  vyre__ir_builder *m = &f.m;
  vyre__function_end(m, vyre__block_end(m, vyre__block_begin(m)));
  uint32_t a = vyre__function_declare(m, "a", 1, VYRE_TYPE_U32);
  uint32_t b = vyre__function_declare(m, "b", 1, VYRE_TYPE_U32);
  CHECK(vyre__find_recursion(m, NULL) == VYRE_NO_INDEX);
  vyre__id call = 0, found = 0;
  for (int i = 0; i < 2; i++) {
    vyre__function_begin(m, i == 0 ? a : b);
    vyre__mark mark = vyre__block_begin(m);
    call = vyre__ir_build_call(m, i == 0 ? b : a, vyre__stack_mark(m));
    vyre__statement(m, vyre__ir_build_return(m, true, call));
    vyre__function_end(m, vyre__block_end(m, mark));
    CHECK((vyre__find_recursion(m, &found) == VYRE_NO_INDEX) == (i == 0));
  }
  CHECK(found == call && f.reports == 0);
  vyre__ir_builder_build(m);
}

TEST(chains_of_calls_have_a_limit) {
  for (int length = 150; length <= 250; length += 100) {
    fixture f;
    begin(&f);
    vyre__ir_builder *m = &f.m;
    uint32_t first = (uint32_t)m->function_count;
    vyre__function_end(m, vyre__block_end(m, vyre__block_begin(m)));
    for (int i = 0; i < length; i++) {
      (void)vyre__function_declare(m, "f", 1, VYRE_TYPE_U32);
    }
    for (int i = 0; i < length; i++) {
      vyre__function_begin(m, first + (uint32_t)i);
      vyre__mark mark = vyre__block_begin(m);
      vyre__id value = i == 0 ? vyre__ir_build_literal(m, VYRE_TYPE_U32, 0)
                              : vyre__ir_build_call(m, first + (uint32_t)i - 1,
                                                    vyre__stack_mark(m));
      vyre__statement(m, vyre__ir_build_return(m, true, value));
      vyre__function_end(m, vyre__block_end(m, mark));
    }
    uint32_t k = vyre__kernel_begin(m, &kernel);
    vyre__mark mark = vyre__block_begin(m);
    vyre__statement(m, vyre__ir_build_store(
                           m, 0, untyped(&f, 0),
                           vyre__ir_build_call(m, first + (uint32_t)length - 1,
                                               vyre__stack_mark(m))));
    vyre__function_end(m, vyre__block_end(m, mark));
    vyre_program *program;
    vyre_status st = {0};
    vyre_code code =
        vyre__canonicalize(m, k, &kernel, (vyre_allocator){0}, &program, &st);
    CHECK((code == VYRE_OK) == (length == 150));
    CHECK(code == VYRE_OK || (st.code == VYRE_INVALID_PROGRAM && st.fix[0]));
    vyre_program_release(program);
    vyre__ir_builder_build(m);
  }
}

TEST_MAIN(
    TEST_ENTRY(every_operation_takes_its_types_and_no_others),
    TEST_ENTRY(shifts_selects_casts_and_bit_casts_have_their_own_rules),
    TEST_ENTRY(literals_without_a_type_take_one_if_they_fit),
    TEST_ENTRY(a_tree_of_literals_settles_as_one),
    TEST_ENTRY(a_float_is_rounded_once_for_each_type),
    TEST_ENTRY(errors_do_not_cascade),
    TEST_ENTRY(children_come_before_parents_and_functions_in_order_of_calls),
    TEST_ENTRY(recursion_is_found), TEST_ENTRY(chains_of_calls_have_a_limit))
