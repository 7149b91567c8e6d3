/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests the LIR verifier: each case has one error, which must be found. Valid
 * kernels must pass. */

#include "lir/lir.h"
#include "lir/print.h"
#include "support/check.h"
#include "support/text.h"

#define I(name, t, ...) \
  {.op = VYRE__LIR_##name, .type = VYRE_TYPE_##t, __VA_ARGS__}
#define DO(name)   I(name, VOID, .aux = 0)
#define K(t, bits) I(CONST, t, .c = (bits))

/* Tables shared by all cases. */
static vyre__lir_buffer buffers[] = {
    {"x", 0, VYRE_MEMORY_GLOBAL, 4, true, true, false, 4, 0},
    {"bytes", 1, VYRE_MEMORY_GLOBAL, 1, false, false, false, 1, 0},
    {"wide", 2, VYRE_MEMORY_GLOBAL, 8, true, true, false, 8, 0},
    {"tile", 3, VYRE_MEMORY_SHARED, 4, true, false, true, 4, 16},
    {"n", 4, VYRE_MEMORY_UNIFORM, 4, false, false, false, 4, 1},
    {"small", 5, VYRE_MEMORY_GLOBAL, 1, true, true, false, 1, 0},
    {"kept", VYRE_NO_INDEX, VYRE_MEMORY_GLOBAL, 4, true, false, false, 4, 0},
};
static vyre__lir_var vars[] = {
    {"i", VYRE_TYPE_U32}, {"more", VYRE_TYPE_BOOL}, {"f", VYRE_TYPE_F32}};
static vyre__lir_loop loops[] = {
    {.max_trips = UINT64_MAX},
    {.is_counted = true, .first = 1, .bound = 2, .step = 1, .max_trips = 9},
    {.is_counted = true, .first = 1, .bound = 9, .step = 1},
    {.is_counted = true, .first = 1, .bound = 2, .step = 0},
    {.is_counted = true, .var = 7, .first = 1, .bound = 2, .step = 1},
    {.is_counted = true, .var = 2, .first = 1, .bound = 2, .step = 1},
    {.is_counted = true, .bound = 2, .step = 1},
};

enum { MAX = 24 };

static vyre__lir_kernel kernel_of(const vyre__lir_inst *insts,
                                  vyre__lir_inst code[MAX + 1]) {
  uint32_t count = 1;
  code[0] = (vyre__lir_inst){.op = VYRE__LIR_NONE};
  while (count < MAX && insts[count - 1].op != VYRE__LIR_NONE) {
    code[count] = insts[count - 1];
    count++;
  }
  return (vyre__lir_kernel){.name = "case",
                            .workgroup = {8, 1, 1},
                            .code = code,
                            .count = count,
                            .vars = vars,
                            .var_count = 3,
                            .buffers = buffers,
                            .buffer_count = 7,
                            .loops = loops,
                            .loop_count = 7,
                            .spill_buffer = VYRE_NO_INDEX};
}

typedef struct mistake {
  const char *what; /* part of the message; NULL: valid */
  vyre__lir_inst code[MAX];
} mistake;

static void check_all(const mistake *cases, size_t count,
                      vyre__lir_stage stage) {
  for (size_t i = 0; i < count; i++) {
    vyre__lir_inst code[MAX + 1];
    vyre__lir_kernel k = kernel_of(cases[i].code, code);
    vyre__lir_phase all = {1, k.count};
    vyre__lir_step step = {.kind = VYRE__STEP_RUN};
    k.phases = &all, k.phase_count = 1;
    k.steps = &step, k.step_count = 1;
    k.has_barrier = k.has_fuel = true;
    vyre_status st = {0};
    vyre_code got = vyre__lir_verify(&k, stage, (vyre_allocator){0}, &st);
    bool good = cases[i].what ? got == VYRE_KERNEL_COMPILE_FAILED &&
                                    strstr(st.message, cases[i].what) &&
                                    strstr(st.fix, "--dump-after")
                              : got == VYRE_OK;
    if (!good) {
      printf("    case %zu wants '%s', got '%s'\n", i,
             cases[i].what ? cases[i].what : "no open block to end",
             st.message);
    }
    CHECK(good);
  }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

TEST(structure) {
  static const mistake cases[] = {
      {NULL, {K(U32, 1)}},
      {NULL, {K(BOOL, 1), I(IF, VOID, .a = 1), DO(ELSE), DO(END)}},
      {NULL, {DO(LOOP), DO(BREAK), DO(STEP), DO(END)}},
      {NULL, {DO(LOOP), DO(CONTINUE), DO(STEP), DO(END), DO(EXIT)}},
      {NULL,
       {K(BOOL, 1), DO(LOOP), I(IF, VOID, .a = 1), DO(BREAK), DO(END), DO(STEP),
        I(IF, VOID, .a = 1), DO(END), DO(END)}},
      {"it has no END", {K(BOOL, 1), I(IF, VOID, .a = 1)}},
      {"it has no END", {DO(LOOP), DO(STEP)}},
      {"no open block to end", {DO(END)}},
      {"an ELSE without IF", {DO(ELSE)}},
      {"an ELSE without IF",
       {K(BOOL, 1), I(IF, VOID, .a = 1), DO(ELSE), DO(ELSE), DO(END)}},
      {"an ELSE without IF", {DO(LOOP), DO(ELSE), DO(STEP), DO(END)}},
      {"the LOOP has no STEP", {DO(LOOP), DO(END)}},
      {"a STEP outside the body of a LOOP", {DO(STEP)}},
      {"a STEP outside the body of a LOOP",
       {DO(LOOP), DO(STEP), DO(STEP), DO(END)}},
      {"a STEP outside the body of a LOOP",
       {K(BOOL, 1), DO(LOOP), I(IF, VOID, .a = 1), DO(STEP), DO(END), DO(END)}},
      {"no enclosing loop", {DO(BREAK)}},
      {"no enclosing loop",
       {K(BOOL, 1), I(IF, VOID, .a = 1), DO(CONTINUE), DO(END)}},
      {"no enclosing loop",
       {DO(LOOP), DO(BREAK), DO(STEP), DO(END), DO(BREAK)}},
      {"out of a STEP", {DO(LOOP), DO(STEP), DO(BREAK), DO(END)}},
      {"out of a STEP", {DO(LOOP), DO(STEP), DO(CONTINUE), DO(END)}},
      {"out of a STEP",
       {K(BOOL, 1), DO(LOOP), DO(STEP), I(IF, VOID, .a = 1), DO(EXIT), DO(END),
        DO(END)}},
      {"unknown operation", {{.op = VYRE__LIR_COUNT}}},
      {"unknown operation", {{.op = 255, .type = 255}}},
  };
  check_all(cases, COUNT(cases), VYRE__STAGE_BUILD);
}

TEST(operands_are_visible) {
  static const mistake cases[] = {
      {NULL, {K(U32, 1), I(ADD, U32, .a = 1, .b = 1)}},
      {"it uses a value that is not defined before it",
       {K(U32, 1), I(ADD, U32, .a = 1, .b = 2)}},
      {"it uses a value that is not defined before it",
       {K(U32, 1), I(ADD, U32, .a = 1, .b = 400)}},
      {"an operand is missing", {K(U32, 1), I(ADD, U32, .a = 1)}},
      {"an operand is missing", {I(NOT, U32, .a = 0)}},
      {"it uses an instruction without a result",
       {DO(BARRIER), I(NOT, U32, .a = 1)}},
      /* a value of an arm */
      {NULL,
       {K(BOOL, 1), I(IF, VOID, .a = 1), K(U32, 2), I(NOT, U32, .a = 3),
        DO(END), I(NOT, BOOL, .a = 1)}},
      {"whose block has ended",
       {K(BOOL, 1), I(IF, VOID, .a = 1), K(U32, 2), DO(END),
        I(NOT, U32, .a = 3)}},
      {"whose block has ended",
       {K(BOOL, 1), I(IF, VOID, .a = 1), K(U32, 2), DO(ELSE),
        I(NOT, U32, .a = 3), DO(END)}},
      /* of a loop: visible in its STEP, not after it */
      {NULL,
       {DO(LOOP), K(U32, 2), DO(BREAK), DO(STEP), I(NOT, U32, .a = 2),
        DO(END)}},
      {"whose block has ended",
       {DO(LOOP), K(U32, 2), DO(BREAK), DO(STEP), DO(END),
        I(NOT, U32, .a = 2)}},
      {"whose block has ended",
       {DO(LOOP), DO(BREAK), DO(STEP), K(U32, 2), DO(END),
        I(NOT, U32, .a = 4)}},
      {"whose block has ended",
       {K(BOOL, 1), DO(LOOP), I(IF, VOID, .a = 1), K(U32, 2), DO(BREAK),
        DO(END), DO(STEP), I(NOT, U32, .a = 4), DO(END)}},
      /* CONTINUE jumps to STEP and skips the code after it */
      {NULL,
       {K(BOOL, 1), DO(LOOP), K(U32, 2), I(IF, VOID, .a = 1), DO(CONTINUE),
        DO(END), DO(STEP), I(NOT, U32, .a = 3), DO(END)}},
      {"a STEP uses a value that CONTINUE skips",
       {K(BOOL, 1), DO(LOOP), I(IF, VOID, .a = 1), DO(CONTINUE), DO(END),
        K(U32, 2), DO(STEP), I(NOT, U32, .a = 6), DO(END)}},
      {NULL, /* CONTINUE of an inner loop has no effect */
       {DO(LOOP), DO(LOOP), DO(CONTINUE), DO(STEP), DO(END), K(U32, 2),
        DO(STEP), I(NOT, U32, .a = 6), DO(END)}},
      /* bounds of a loop */
      {NULL,
       {K(U32, 0), K(U32, 9), I(LOOP, VOID, .aux = 1), DO(BREAK), DO(STEP),
        DO(END)}},
      {"it uses a value that is not defined before it",
       {K(U32, 0), K(U32, 9), I(LOOP, VOID, .aux = 2), DO(BREAK), DO(STEP),
        DO(END)}},
      {"lacks first",
       {K(U32, 0), K(U32, 9), I(LOOP, VOID, .aux = 6), DO(BREAK), DO(STEP),
        DO(END)}},
  };
  check_all(cases, COUNT(cases), VYRE__STAGE_BUILD);
}

/* 1 bool, 2 u32, 3 u64, 4 f32, 5 f64; then the instruction under test. */
#define TYPED(what, ...)                                                  \
  {                                                                       \
    what, {                                                               \
      K(BOOL, 1), K(U32, 1), K(U64, 1), K(F32, 0), K(F64, 0), __VA_ARGS__ \
    }                                                                     \
  }

TEST(types) {
  static const mistake cases[] = {
      TYPED(NULL, I(ADD, U64, .a = 3, .b = 3)),
      TYPED("different types", I(ADD, U64, .a = 3, .b = 2)),
      TYPED("not the operand's", I(ADD, U32, .a = 3, .b = 3)),
      TYPED("first operand", I(ADD, U32, .a = 1, .b = 1)),
      TYPED("first operand", I(ADD, U32, .a = 4, .b = 2)),
      TYPED("second operand", I(ADD, U32, .a = 2, .b = 4)),
      TYPED("invalid result type of the operation",
            I(ADD, VOID, .a = 2, .b = 2)),
      TYPED("invalid type of a value", I(ADD, I32, .a = 2, .b = 2)),
      TYPED("invalid type of a value", {.op = VYRE__LIR_ADD, .type = 77}),
      TYPED(NULL, I(AND, BOOL, .a = 1, .b = 1)),
      TYPED("first operand", I(AND, U32, .a = 4, .b = 4)),
      TYPED(NULL, I(SHL, U64, .a = 3, .b = 2)),
      TYPED("second operand", I(SHL, U64, .a = 3, .b = 3)),
      TYPED(NULL, I(CLZ, U64, .a = 3)),
      TYPED("not the operand's", I(CLZ, U32, .a = 3)),
      TYPED(NULL, I(EQ, BOOL, .a = 1, .b = 1)),
      TYPED("first operand", I(LT_U, BOOL, .a = 1, .b = 1)),
      TYPED("invalid result type of the operation",
            I(LT_U, U32, .a = 2, .b = 2)),
      TYPED("first operand", I(EQ, BOOL, .a = 4, .b = 4)),
      TYPED(NULL, I(SELECT, F32, .a = 1, .b = 4, .c = 4)),
      TYPED(NULL, I(SELECT, BOOL, .a = 1, .b = 1, .c = 1)),
      TYPED("first operand", I(SELECT, F32, .a = 2, .b = 4, .c = 4)),
      TYPED("the values have different types",
            I(SELECT, F32, .a = 1, .b = 4, .c = 5)),
      TYPED("not the operand's", I(SELECT, F64, .a = 1, .b = 4, .c = 4)),
      TYPED("missing", I(SELECT, F64, .a = 1, .b = 4)),
      TYPED(NULL, I(FMA, F64, .a = 5, .b = 5, .c = 5)),
      TYPED("different types", I(FMA, F64, .a = 5, .b = 5, .c = 4)),
      TYPED("first operand", I(FADD, F32, .a = 2, .b = 2)),
      TYPED("invalid result type of the operation",
            I(FLT, U32, .a = 4, .b = 4)),
      TYPED(NULL, I(ZEXT, U32, .a = 1)),
      TYPED(NULL, I(ZEXT, U64, .a = 1)),
      TYPED(NULL, I(ZEXT, U64, .a = 2)),
      TYPED("not wider", I(ZEXT, U32, .a = 2)),
      TYPED("first operand", I(SEXT, U64, .a = 1)),
      TYPED("first operand", I(TRUNC, U32, .a = 2)),
      TYPED("invalid result type of the operation", I(TRUNC, BOOL, .a = 3)),
      TYPED(NULL, I(BITCAST, F32, .a = 2)),
      TYPED(NULL, I(BITCAST, U64, .a = 5)),
      TYPED("its width", I(BITCAST, U64, .a = 4)),
      TYPED("first operand", I(BITCAST, U32, .a = 1)),
      TYPED(NULL, I(U_TO_F, F32, .a = 3)),
      TYPED("first operand", I(U_TO_F, F32, .a = 1)),
      TYPED(NULL, I(F_TO_S, U64, .a = 4)),
      TYPED("invalid result type of the operation", I(F_TO_S, BOOL, .a = 4)),
      TYPED("first operand", I(F_EXTEND, F64, .a = 5)),
      TYPED("first operand", I(F_ROUND, F32, .a = 4)),
      TYPED(NULL, I(FBITS, U64, .a = 5)),
      TYPED("its width", I(FBITS, U32, .a = 5)),
      TYPED(NULL, I(FROM_F16, F32, .a = 2)),
      TYPED("first operand", I(TO_F16, U32, .a = 5)),
      TYPED(NULL, I(MATH, F32, .aux = VYRE__OP_EXP, .a = 4)),
      TYPED(NULL, I(MATH, F32, .aux = VYRE__OP_POW, .a = 4, .b = 4)),
      TYPED("wrong number of operands",
            I(MATH, F32, .aux = VYRE__OP_POW, .a = 4)),
      TYPED("wrong number of operands",
            I(MATH, F32, .aux = VYRE__OP_EXP, .a = 4, .b = 4)),
      TYPED("aux is not a math function",
            I(MATH, F32, .aux = VYRE__OP_ADD, .a = 4)),
      TYPED("first operand", I(MATH, F32, .aux = VYRE__OP_EXP, .a = 5)),
      TYPED("first operand", I(IF, VOID, .a = 2), DO(END)),
      TYPED("invalid result type of the operation", I(BARRIER, U32, .aux = 0)),
      TYPED("more bits", K(BOOL, 2)),
      TYPED("more bits", I(CONST, F32, .d = 1)),
      TYPED("invalid result type of the operation", I(CONST, VOID, .d = 1)),
      TYPED("operation without a type rule", DO(ADD), K(U32, 1)),
  };
  /* the last case: a NONE in the middle is built below, ADD is a placeholder */
  check_all(cases, COUNT(cases) - 1, VYRE__STAGE_BUILD);
  vyre__lir_inst code[MAX + 1];
  vyre__lir_kernel k = kernel_of(cases[COUNT(cases) - 1].code, code);
  code[6].op = VYRE__LIR_NONE;
  vyre_status st = {0};
  CHECK_FAILS(vyre__lir_verify(&k, VYRE__STAGE_BUILD, (vyre_allocator){0}, &st),
              st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
  CHECK_HAS(st.message, "operation without a type rule");
}

TEST(memory_and_variables) {
  static const mistake cases[] = {
      TYPED(NULL, I(LOAD, U32, .aux = 0, .a = 2)),
      TYPED(NULL, I(LOAD, U32, .aux = 1, .a = 2, .b = 1)),
      TYPED(NULL, I(LOAD, U64, .aux = 2, .a = 2, .b = 1)),
      TYPED("buffer's elements", I(LOAD, U32, .aux = 2, .a = 2)),
      TYPED("buffer's elements", I(LOAD, U64, .aux = 1, .a = 2)),
      TYPED("invalid result type of the operation",
            I(LOAD, F32, .aux = 0, .a = 2)),
      TYPED("missing", I(LOAD, U32, .aux = 0, .b = 1)),
      TYPED("first operand", I(LOAD, U32, .aux = 0, .a = 3)),
      TYPED("second operand", I(LOAD, U32, .aux = 0, .a = 2, .b = 2)),
      TYPED("unknown buffer", I(LOAD, U32, .aux = 7, .a = 2)),
      TYPED(NULL, I(STORE, VOID, .aux = 0, .a = 2, .b = 2, .c = 1)),
      TYPED(NULL, I(STORE, VOID, .aux = 2, .a = 2, .b = 3)),
      TYPED("third operand", I(STORE, VOID, .aux = 0, .a = 2, .b = 2, .c = 2)),
      TYPED("buffer's elements", I(STORE, VOID, .aux = 0, .a = 2, .b = 3)),
      TYPED("missing", I(STORE, VOID, .aux = 0, .a = 2, .c = 1)),
      TYPED("it writes to a buffer, but is_written is false",
            I(STORE, VOID, .aux = 1, .a = 2, .b = 2)),
      TYPED("a uniform buffer", I(STORE, VOID, .aux = 4, .a = 2, .b = 2)),
      TYPED("invalid result type of the operation",
            I(STORE, U32, .aux = 0, .a = 2, .b = 2)),
      TYPED(NULL, I(ATOMIC_ADD, U32, .aux = 0, .a = 2, .b = 2)),
      TYPED(NULL, I(ATOMIC_MIN_S, U64, .aux = 2, .a = 2, .b = 3, .c = 1)),
      TYPED("not the operand's", I(ATOMIC_ADD, U64, .aux = 0, .a = 2, .b = 2)),
      TYPED("it is atomic, but is_atomic of the buffer is false",
            I(ATOMIC_ADD, U32, .aux = 3, .a = 2, .b = 2)),
      TYPED("less than 4", I(ATOMIC_ADD, U32, .aux = 5, .a = 2, .b = 2)),
      TYPED(NULL, I(ATOMIC_CAS, U32, .aux = 0, .a = 2, .b = 2, .c = 2, .d = 1)),
      TYPED("its condition is not a bool",
            I(ATOMIC_CAS, U32, .aux = 0, .a = 2, .b = 2, .c = 2, .d = 2)),
      TYPED("the values have different types",
            I(ATOMIC_CAS, U32, .aux = 0, .a = 2, .b = 2, .c = 3)),
      TYPED("missing", I(ATOMIC_CAS, U32, .aux = 0, .a = 2, .b = 2)),
      TYPED(NULL, I(GET, BOOL, .aux = 1)),
      TYPED("type of the variable", I(GET, U32, .aux = 1)),
      TYPED("unknown variable", I(GET, U32, .aux = 3)),
      TYPED(NULL, I(SET, VOID, .aux = 2, .a = 4)),
      TYPED("type of the variable", I(SET, VOID, .aux = 2, .a = 5)),
      TYPED("unknown variable", I(SET, VOID, .aux = 3, .a = 5)),
      TYPED(NULL, I(LEN, U32, .aux = 6)),
      TYPED("unknown buffer", I(LEN, U32, .aux = 7)),
      TYPED(NULL, I(GROUP_ID, U32, .aux = 2)),
      TYPED("unknown axis", I(LOCAL_ID, U32, .aux = 3)),
      TYPED("unknown loop", I(LOOP, VOID, .aux = 7), DO(STEP), DO(END)),
      TYPED("variable's type", I(LOOP, VOID, .aux = 1), DO(STEP), DO(END)),
      {"its step is 0",
       {K(U32, 0), K(U32, 9), I(LOOP, VOID, .aux = 3), DO(STEP), DO(END)}},
      {"unknown variable",
       {K(U32, 0), K(U32, 9), I(LOOP, VOID, .aux = 4), DO(STEP), DO(END)}},
      {"its variable is not an integer",
       {K(U32, 0), K(U32, 9), I(LOOP, VOID, .aux = 5), DO(STEP), DO(END)}},
  };
  check_all(cases, COUNT(cases), VYRE__STAGE_BUILD);
}

TEST(stages) {
  static const mistake early[] = {
      TYPED(NULL, I(TOTAL_DIV_U, U32, .a = 2, .b = 2)),
      TYPED(NULL, I(PAIR, U64, .a = 2, .b = 2)),
      TYPED("invalid result type of the operation",
            I(PAIR, U32, .a = 2, .b = 2)),
      {NULL, {DO(GRID_BARRIER)}},
      {NULL, {DO(TICK)}},
      {"unknown loop", {I(TICK, VOID, .aux = 7)}},
      TYPED(NULL, I(TICK, VOID, .a = 2)),
      TYPED(NULL, I(TICK, VOID, .a = 2, .b = 1)),
      TYPED("first operand", I(TICK, VOID, .a = 1)),
      TYPED("first operand", I(TICK, VOID, .a = 3)),
      TYPED("second operand", I(TICK, VOID, .a = 2, .b = 2)),
      {"grid loops exist only after the pass legalize-control",
       {I(LOOP_VALUE, U32, .aux = 0)}},
  };
  static const mistake numbers[] = {
      TYPED("not allowed after the pass legalize-floats",
            I(TOTAL_DIV_U, U32, .a = 2, .b = 2)),
      TYPED("not allowed after the pass legalize-floats",
            I(FBITS, U32, .a = 4)),
      {NULL, {DO(GRID_BARRIER)}},
  };
  static const mistake control[] = {
      {"not allowed after the pass legalize-control", {DO(GRID_BARRIER)}},
      {"not allowed after the pass legalize-control", {DO(TICK)}},
      {"unknown grid loop", {I(LOOP_VALUE, U32, .aux = 0)}},
      {NULL, {I(FUEL, U32, .aux = 0), DO(OUT_OF_FUEL), DO(BARRIER)}},
  };
  check_all(early, COUNT(early), VYRE__STAGE_BUILD);
  check_all(numbers, COUNT(numbers), VYRE__STAGE_FLOATS);
  check_all(control, COUNT(control), VYRE__STAGE_CONTROL);
}

/* --- phases and steps ----------------------------------------------------- */

/* A valid kernel of two phases in a grid loop. */
typedef struct sample {
  vyre__lir_inst code[MAX + 1];
  vyre__lir_phase phases[2];
  vyre__lir_step steps[5];
  vyre__lir_kernel k;
} sample;

static void sample_make(sample *s) {
  static const vyre__lir_inst code[] = {
      K(U32, 0),                                /* 1: host */
      I(LOAD, U32, .aux = 4, .a = 1),           /* 2 */
      I(LOOP_VALUE, U32, .aux = 0),             /* 3: phase 0 */
      K(U32, 5),                                /* 4 */
      I(STORE, VOID, .aux = 6, .a = 3, .b = 4), /* 5 */
      K(U32, 0),                                /* 6: phase 1 */
      I(LOAD, U32, .aux = 6, .a = 6),           /* 7 */
      DO(NONE),
  };
  s->k = kernel_of(code, s->code);
  s->phases[0] = (vyre__lir_phase){3, 6};
  s->phases[1] = (vyre__lir_phase){6, 8};
  s->steps[0] = (vyre__lir_step){.kind = VYRE__STEP_FOR,
                                 .type = VYRE_TYPE_I32,
                                 .first = 1,
                                 .bound = 2,
                                 .step = 1};
  s->steps[1] = (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = 0};
  s->steps[2] = (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = 1};
  s->steps[3] = (vyre__lir_step){.kind = VYRE__STEP_END_FOR};
  s->steps[4] = (vyre__lir_step){.kind = VYRE__STEP_RUN, .phase = 0};
  s->k.host = (vyre__lir_phase){1, 3};
  s->k.phases = s->phases, s->k.phase_count = 2;
  s->k.steps = s->steps, s->k.step_count = 4;
  s->k.grid_loop_count = 1;
  s->k.spill_buffer = 6, s->k.spill_words = 1;
}

static void expect(const sample *s, const char *what) {
  vyre_status st = {0};
  vyre_code code =
      vyre__lir_verify(&s->k, VYRE__STAGE_CONTROL, (vyre_allocator){0}, &st);
  if (what) {
    CHECK_U64(code, VYRE_KERNEL_COMPILE_FAILED);
    CHECK_HAS(st.message, what);
    CHECK_HAS(st.fix, "--dump-after");
  } else {
    CHECK_OK(code, st);
  }
}

/* Checks that the sample is rejected after @p change. */
#define WRONG(message, change) \
  do {                         \
    sample s;                  \
    sample_make(&s);           \
    change;                    \
    expect(&s, message);       \
  } while (0)

TEST(phases_and_steps) {
  WRONG(NULL, (void)0);
  WRONG("of another phase", s.code[7].a = 4);
  WRONG("of another phase", s.code[5].a = 1);
  WRONG("it belongs to two phases", s.phases[1].begin = 5);
  WRONG("it belongs to two phases", s.phases[0].begin = 2);
  WRONG("outside the instruction array", s.phases[1].end = 9);
  WRONG("outside the instruction array", s.phases[1].end = 5);
  WRONG("outside the instruction array", s.phases[0].begin = 0);
  WRONG("outside the instruction array", s.k.host.end = 99);
  WRONG("not uniform", s.code[2].aux = 0);
  WRONG("the host range cannot read it",
        s.code[1] = (vyre__lir_inst)I(LOCAL_ID, U32, .aux = 0));
  WRONG("not allowed in the host range",
        s.code[1] = (vyre__lir_inst)I(GET, U32, .aux = 0));
  WRONG("the phase is launched outside that grid loop", s.k.step_count = 5);
  WRONG("neither the type of the grid loop nor half of it",
        s.code[3].type = VYRE_TYPE_U64);
  WRONG("an upper half of a value with one half", s.code[3].c = 1);
  WRONG("an upper half of a value with one half", s.code[3].c = 2);
  WRONG("unknown grid loop", s.code[3].aux = 1);
  WRONG("a bound has the wrong type", s.steps[0].type = VYRE_TYPE_U64);
  WRONG("its variable is not an integer", s.steps[0].type = VYRE_TYPE_F32);
  WRONG("a bound is not defined in the host range", s.steps[0].bound = 4);
  WRONG("a bound is not defined in the host range", s.steps[0].first = 0);
  WRONG("step is 0", s.steps[0].step = 0);
  WRONG("unknown kind", s.steps[0].loop_kind = 4);
  WRONG("unknown kind", s.steps[1].kind = 9);
  WRONG("unknown phase", s.steps[1].phase = 2);
  WRONG("never run", s.steps[2].phase = 0);
  WRONG("no END_FOR", s.k.step_count = 3);
  WRONG("it does not end the innermost open grid loop", s.steps[3].loop = 1);
  WRONG("no open FOR to end", s.steps[0].kind = VYRE__STEP_RUN);
  WRONG("unknown grid loop", s.steps[0].loop = 1);
  WRONG("no FOR", s.k.grid_loop_count = 2);
  WRONG("its grid loop already has a FOR", s.steps[1] = s.steps[0]);
  WRONG("no phase", s.k.phase_count = 0);
  WRONG("cannot be the spill buffer", s.k.spill_words = 0);
  WRONG("cannot be the spill buffer", s.k.spill_buffer = 0);
  WRONG("cannot be the spill buffer", s.k.spill_buffer = 77);
  WRONG("a barrier, but has_barrier is false",
        s.code[5] = (vyre__lir_inst)DO(BARRIER));
  WRONG("fuel, but has_fuel is false",
        s.code[5] = (vyre__lir_inst)DO(OUT_OF_FUEL));
}

/* Constants are values too: each phase defines its own. */
TEST(constants_are_values_too) {
  static const mistake cases[] = {
      {NULL, {K(U32, 1), I(ADD, U32, .a = 1, .b = 1)}},
      {"it uses a value that is not defined before it",
       {I(ADD, U32, .a = 2, .b = 2), K(U32, 1)}},
      {"it uses a value that is not defined before it",
       {I(ADD, U32, .a = 1, .b = 1), K(U32, 1)}},
      {"whose block has ended",
       {K(BOOL, 1), I(IF, VOID, .a = 1), K(U32, 1), DO(END),
        I(ADD, U32, .a = 3, .b = 3)}},
      {"more bits than its type has", {I(CONST, U32, .d = 1)}},
  };
  check_all(cases, COUNT(cases), VYRE__STAGE_BUILD);
  WRONG("of another phase", s.code[7].a = 1);       /* of the host range */
  WRONG("of another phase", s.phases[1].begin = 7); /* of no phase */
  WRONG("it uses a value that is not defined before it", s.code[5].b = 6);
  WRONG("a bound is not defined in the host range", s.steps[0].first = 6);
}

TEST(tables) {
  vyre__lir_buffer own[7];
  vyre__lir_var types[3] = {{"i", VYRE_TYPE_I32}};
  memcpy(own, buffers, sizeof own);
  own[1].width = 3;
  WRONG("its width is not", s.k.buffers = own);
  own[1].width = 1;
  own[1].unit = 0;
  WRONG("its unit is neither", s.k.buffers = own);
  own[1].unit = 1;
  own[1].needs_zero = true;
  WRONG("not shared", s.k.buffers = own);
  own[1].needs_zero = false;
  own[1].is_atomic = true;
  WRONG("not is_written", s.k.buffers = own);
  own[1].is_atomic = false;
  own[3].count = 0;
  WRONG("without a size", s.k.buffers = own);
  own[3].count = 1;
  own[3].kind = 9;
  own[3].needs_zero = false;
  WRONG("unknown kind", s.k.buffers = own);
  WRONG("invalid type of a value", s.k.vars = types);
  WRONG("of 0", s.k.workgroup[1] = 0);
  WRONG("not NONE", s.code[0].op = VYRE__LIR_END);
  WRONG("not NONE", s.k.count = 0);
}

/* Every operation has a type rule: an instruction without operands may be
 * rejected, but never as unknown. */
TEST(every_operation_is_known) {
  for (unsigned op = VYRE__LIR_NONE + 1; op < VYRE__LIR_COUNT; op++) {
    vyre__lir_inst code[MAX + 1];
    vyre__lir_inst given[] = {
        K(U32, 1), {.op = (uint8_t)op, .v = {1, 1, 1, 1}}, DO(NONE)};
    vyre__lir_kernel k = kernel_of(given, code);
    vyre_status st = {0};
    if (vyre__lir_verify(&k, VYRE__STAGE_BUILD, (vyre_allocator){0}, &st)) {
      CHECK(!strstr(st.message, "operation without a type rule"));
    }
  }
}

static vyre_code verify_sample(vyre_allocator allocator, vyre_status *st) {
  sample s;
  sample_make(&s);
  return vyre__lir_verify(&s.k, VYRE__STAGE_CONTROL, allocator, st);
}

TEST(no_memory) {
  CHECK(sweep_allocations(verify_sample) == 4);
}

/* --- the text ------------------------------------------------------------- */

TEST(prints) {
  sample s;
  sample_make(&s);
  vyre__source_loc places[8] = {{0, 0}, {7, 1}, {7, 2}, {8, 1},
                                {8, 3}, {8, 1}, {9, 1}, {9, 1}};
  s.k.source_locs = places;
  static text_buffer t;
  CHECK(vyre__lir_print(&s.k, text_writer(&t)));
  CHECK_HAS(t.bytes, "kernel case, workgroup 8 1 1\n");
  CHECK_HAS(t.bytes,
            "buffer 3 tile: shared, width 4, count 16, written, needs "
            "zero\n");
  CHECK_HAS(t.bytes, "buffer 6 kept: global, width 4, spill, written\n");
  CHECK_HAS(t.bytes, "var i.0: u32\n");
  CHECK_HAS(t.bytes,
            "steps {\n  for 0: i32 from 0u while < %2 by 1 {\n"
            "    run phase 0\n    run phase 1\n  } // for 0\n}\n");
  CHECK_HAS(t.bytes, "host {\n  // line 7\n  %2 = load u32 n[0u]\n}\n");
  CHECK_HAS(t.bytes,
            "phase 0 {\n  // line 8\n  %3 = loop_value u32 0\n"
            "  5: store kept[%3] = 5u\n}\nphase 1 {\n  // line 9\n");
}

static const char *line_of(const vyre__lir_inst *insts, uint32_t number) {
  static char line[VYRE__LIR_TEXT];
  vyre__lir_inst code[MAX + 1];
  vyre__lir_kernel k = kernel_of(insts, code);
  return vyre__lir_text(&k, number, line);
}

TEST(prints_lines) {
  static const vyre__lir_inst c[] = {
      K(BOOL, 1),
      K(U32, 70000),
      I(CONST, U64, .c = 1, .d = 1),
      K(F32, 0x3FC00000),
      I(CONST, F64, .d = 0xC0280000),
      I(FADD, F32, .a = 4, .b = 4),
      I(LT_U, BOOL, .a = 2, .b = 2),
      I(SELECT, U32, .a = 7, .b = 2, .c = 2),
      I(LOAD, U32, .hints = VYRE__HINT_PROVEN, .aux = 1, .a = 8),
      I(ATOMIC_CAS, U32, .aux = 0, .a = 8, .b = 2, .c = 9, .d = 7),
      I(IF, VOID, .hints = VYRE__HINT_RARE, .a = 7),
      I(LOOP, VOID, .aux = 1),
      I(SET, VOID, .aux = 0, .a = 9),
      I(MATH, F32, .aux = VYRE__OP_POW, .a = 6, .b = 4),
      I(LOAD, U32, .aux = 99, .a = 400, .b = 401),
      K(F32, 1),
      I(FMIN, F32, .a = 16, .b = 16),
      DO(NONE),
  };
  CHECK_TEXT(line_of(c, 3), "%3 = const u64 0x100000001ul");
  CHECK_TEXT(line_of(c, 5), "%5 = const f64 -0x1.8p+3d");
  CHECK_TEXT(line_of(c, 6), "%6 = fadd f32 0x1.8p+0, 0x1.8p+0");
  CHECK_TEXT(line_of(c, 7), "%7 = lt_u u32->bool 0x11170u, 0x11170u");
  CHECK_TEXT(line_of(c, 8), "%8 = select u32 %7, 0x11170u, 0x11170u");
  CHECK_TEXT(line_of(c, 9), "%9 = load u32 bytes[%8] (proven)");
  CHECK_TEXT(line_of(c, 10), "%10 = atomic_cas u32 x[%8], 0x11170u, %9 if %7");
  CHECK_TEXT(line_of(c, 11), "11: if %7 (rare) {");
  CHECK_TEXT(line_of(c, 12),
             "12: loop 1 i.0 from true while < 0x11170u by 1, at most "
             "9 iterations {");
  CHECK_TEXT(line_of(c, 13), "13: set i.0 = %9");
  CHECK_TEXT(line_of(c, 14), "%14 = pow f32 %6, 0x1.8p+0");
  CHECK_TEXT(line_of(c, 15), "%15 = load u32 buffer(99)[%400] if %401");
  CHECK_TEXT(line_of(c, 17), "%17 = fmin f32 0x0.000002p-126, 0x0.000002p-126");
  CHECK_TEXT(line_of(c, 99), "");
}

TEST_MAIN(TEST_ENTRY(structure), TEST_ENTRY(operands_are_visible),
          TEST_ENTRY(types), TEST_ENTRY(memory_and_variables),
          TEST_ENTRY(stages), TEST_ENTRY(phases_and_steps),
          TEST_ENTRY(constants_are_values_too), TEST_ENTRY(tables),
          TEST_ENTRY(every_operation_is_known), TEST_ENTRY(no_memory),
          TEST_ENTRY(prints), TEST_ENTRY(prints_lines))
