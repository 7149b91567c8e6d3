/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: every operation on every type that it accepts, and every cast, with
 * edge cases and random values. Compares with plain C where possible, and with
 * the reference device. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cts/harness/test_values.h"

enum { RANDOM_ROWS = 700, MAX_TEXT = 1024 };

static const char *const op_names[] = {
#define VYRE_X1(name) [VYRE_OP_##name] = #name,
    VYRE_OP_UNARY_MAP(VYRE_X1) VYRE_OP_BINARY_MAP(VYRE_X1)
        VYRE_OP_TERNARY_MAP(VYRE_X1)
#undef VYRE_X1
};

/* First operation of each arity; the enumeration is sorted by arity. */
enum { BINARY = VYRE_OP_ADD, TERNARY = VYRE_OP_FMA, OPS = VYRE_OP_ATOMIC_ADD };

static unsigned operands(vyre_op op) {
  unsigned number = (unsigned)op;
  if (op == CTS_INSERT) return 3;
  return number < BINARY ? 1 : number < TERNARY ? 2 : 3;
}

/* Subject of a case: an operation, or a conversion of `types[0]`. */
typedef struct subject {
  unsigned count; /* number of operands */
  vyre_type types[3], result;
  vyre_op op;
  bool is_cast, is_bits;
  char value[128]; /* source text of the expression */
} subject;

/* --- Cases of an area
 * --------------------------------------------------------- */

typedef struct op_case {
  vyre_op op;
  vyre_type type;
} op_case;

typedef struct cast_case {
  vyre_type from, to;
  bool is_bits;
} cast_case;

/* Lists every operation with each type that it accepts; built once. */
static size_t list_ops(const op_case **out) {
  static op_case list[(OPS + 1) * VYRE_TYPE_COUNT];
  static size_t count;
  *out = list;
  if (count > 0) return count;
  for (unsigned o = 0; o < OPS; o++) {
    for (unsigned t = VYRE_TYPE_BOOL; t < VYRE_TYPE_COUNT; t++) {
      if (!vyre_op_accepts((vyre_op)o, (vyre_type)t)) continue;
      list[count++] = (op_case){(vyre_op)o, (vyre_type)t};
    }
  }
  for (unsigned t = VYRE_TYPE_U32; t <= VYRE_TYPE_I64; t++) {
    list[count++] = (op_case){CTS_INSERT, (vyre_type)t};
  }
  return count;
}

static size_t ops_count(void) {
  const op_case *list;
  return list_ops(&list);
}

static void ops_label(size_t index, char *out, size_t size) {
  const op_case *list;
  (void)list_ops(&list);
  (void)snprintf(
      out, size, "%s.%s",
      list[index].op == CTS_INSERT ? "insert" : op_names[list[index].op],
      vyre_type_name(list[index].type));
  for (; *out; out++) *out = (char)tolower((unsigned char)*out);
}

/* Lists casts between all types, then as_T between types of one width. */
static size_t list_casts(const cast_case **out) {
  static cast_case list[2 * VYRE_TYPE_COUNT * VYRE_TYPE_COUNT];
  static size_t count;
  *out = list;
  if (count > 0) return count;
  for (int bits = 0; bits < 2; bits++) {
    for (unsigned f = VYRE_TYPE_BOOL; f < VYRE_TYPE_COUNT; f++) {
      for (unsigned t = VYRE_TYPE_BOOL; t < VYRE_TYPE_COUNT; t++) {
        vyre_type from = (vyre_type)f, to = (vyre_type)t;
        bool fits =
            cts_type_size(from) == cts_type_size(to) && from != VYRE_TYPE_BOOL;
        if (bits && !fits) continue;
        list[count++] = (cast_case){from, to, bits};
      }
    }
  }
  return count;
}

static size_t casts_count(void) {
  const cast_case *list;
  return list_casts(&list);
}

static void casts_label(size_t index, char *out, size_t size) {
  const cast_case *list;
  (void)list_casts(&list);
  (void)snprintf(out, size, "%s.%s%s", vyre_type_name(list[index].from),
                 list[index].is_bits ? "as_" : "",
                 vyre_type_name(list[index].to));
}

/* --- Subjects
 * ----------------------------------------------------------------- */

static bool is_comparison(vyre_op op) {
  return op >= VYRE_OP_EQ && op <= VYRE_OP_GE;
}

static bool is_shuffle(vyre_op op) {
  return op >= VYRE_OP_SHUFFLE && op <= VYRE_OP_SHUFFLE_DOWN;
}

/* Returns true for other operations of a subgroup. */
static bool is_collective(vyre_op op) {
  return op >= VYRE_OP_BALLOT && op <= VYRE_OP_SUBGROUP_SCAN_ADD_BEFORE;
}

static subject subject_of_op(vyre_op op, vyre_type type) {
  subject s = {.count = operands(op), .types = {type, type, type}, .op = op};
  const char *text = op == CTS_INSERT ? "insert" : vyre_op_text(op);
  bool is_word = isalpha((unsigned char)text[0]);
  s.result = is_comparison(op) ? VYRE_TYPE_BOOL : type;
  if (op == VYRE_OP_SHL || op == VYRE_OP_SHR || op == VYRE_OP_ROTATE ||
      op == VYRE_OP_EXTRACT || is_shuffle(op)) {
    s.types[1] = VYRE_TYPE_U32;
  }
  if (op == VYRE_OP_BALLOT) s.result = VYRE_TYPE_U32;
  if (op == VYRE_OP_EXTRACT || op == CTS_INSERT) s.types[2] = VYRE_TYPE_U32;
  if (op == VYRE_OP_DOT4_I8) s.result = VYRE_TYPE_I32;
  bool chooses = op == VYRE_OP_SELECT || op == VYRE_OP_COND;
  if (chooses) s.types[0] = VYRE_TYPE_BOOL;
  if (op == VYRE_OP_COND) {
    (void)snprintf(s.value, sizeof s.value, "a[i] ? b[i] : c[i]");
  } else if (op == VYRE_OP_EXTRACT) { /* ranges inside and outside the type */
    (void)snprintf(s.value, sizeof s.value,
                   "extract(a[i], b[i] %% 67, c[i] %% 67)");
  } else if (op == CTS_INSERT) {
    (void)snprintf(s.value, sizeof s.value,
                   "insert(a[i], b[i], c[i] %% 67, c[i] / 67 %% 67)");
  } else if (s.count == 3) {
    (void)snprintf(s.value, sizeof s.value, "%s(a[i], b[i], c[i])", text);
  } else if (s.count == 2) {
    (void)snprintf(s.value, sizeof s.value,
                   is_word ? "%s(a[i], b[i])" : "a[i] %s b[i]", text);
  } else {
    (void)snprintf(s.value, sizeof s.value, is_word ? "%s(a[i])" : "%s a[i]",
                   text);
  }
  return s;
}

static subject subject_of_cast(vyre_type from, vyre_type to, bool is_bits) {
  subject s = {.count = 1,
               .types = {from},
               .result = to,
               .is_cast = !is_bits,
               .is_bits = is_bits};
  (void)snprintf(s.value, sizeof s.value, "%s%s(a[i])", is_bits ? "as_" : "",
                 vyre_type_name(to));
  return s;
}

/* The kernel has no guard: stores outside the buffer are dropped, and all
 * invocations must reach uniform(). */
static void write_kernel(const subject *s, char text[MAX_TEXT]) {
  size_t at =
      (size_t)snprintf(text, MAX_TEXT, "kernel op workgroup(32) over(r)\n");
  for (unsigned i = 0; i < s->count; i++) {
    at += (size_t)snprintf(text + at, MAX_TEXT - at,
                           "buffer %c : read %s[] @%u;\n", 'a' + (int)i,
                           vyre_type_name(s->types[i]), i);
  }
  (void)snprintf(text + at, MAX_TEXT - at,
                 "buffer r : write %s[] @%u;\n"
                 "{\n    let i = global_id.x;\n    r[i] = %s;\n}\n",
                 vyre_type_name(s->result), s->count, s->value);
}

/* --- Data
 * --------------------------------------------------------------------- */

/* Fills rows with all combinations of edge cases, then with random values. */
static size_t make_rows(cts *c, const subject *s, void *columns[3]) {
  const uint64_t *edges[3] = {NULL};
  size_t counts[3] = {1, 1, 1}, step[3] = {1, 1, 1}, total;
  for (unsigned i = 0; i < s->count; i++) {
    edges[i] = cts_edges(s->types[i], &counts[i]);
  }
  /* Too many triples: every second value of two operands. */
  if (s->count == 3) {
    for (unsigned i = 1; i < 3; i++) {
      if (counts[i] > 20) step[i] = 2;
    }
  }
  for (unsigned i = 0; i < 3; i++) counts[i] = (counts[i] - 1) / step[i] + 1;
  total = counts[0] * counts[1] * counts[2] + RANDOM_ROWS;
  uint64_t state = c->seed;
  for (unsigned i = 0; i < s->count; i++) {
    columns[i] = cts_memory(c, total * cts_type_size(s->types[i]));
  }
  for (size_t row = 0; row < total; row++) {
    size_t rest = row;
    for (unsigned i = 0; i < s->count; i++) {
      uint64_t value = row < total - RANDOM_ROWS
                           ? edges[i][rest % counts[i] * step[i]]
                           : cts_random_value(&state, s->types[i]);
      rest /= counts[i];
      cts_put(columns[i], row, s->types[i], value);
    }
  }
  return total;
}

/* --- subgroups -------------------------------------------------------------*/

enum { SUBGROUP = 32 };

/* Returns the row that a shuffle in @p row reads. */
static size_t shuffled_row(vyre_op op, size_t row, uint64_t by) {
  const size_t first = row / SUBGROUP * SUBGROUP, lane = row - first;
  switch (op) {
    case VYRE_OP_SHUFFLE:
      return first + by % SUBGROUP;
    case VYRE_OP_SHUFFLE_XOR:
      return first + (lane ^ by % SUBGROUP);
    case VYRE_OP_SHUFFLE_UP:
      return by <= lane ? row - (size_t)by : row;
    default:
      return by < SUBGROUP - lane ? row + (size_t)by : row;
  }
}

/* Combines two values of an operation of a subgroup. Returns false if plain C
 * does not compute it here: sums of floats. */
static bool combine(const subject *s, uint64_t a, uint64_t b, uint64_t *out) {
  static const vyre_op with[] = {VYRE_OP_ADD, VYRE_OP_MIN, VYRE_OP_MAX,
                                 VYRE_OP_AND, VYRE_OP_OR,  VYRE_OP_XOR};
  const bool is_sum =
      s->op == VYRE_OP_SUBGROUP_ADD || s->op >= VYRE_OP_SUBGROUP_SCAN_ADD;
  const bool is_float =
      s->result == VYRE_TYPE_F32 || s->result == VYRE_TYPE_F64;
  if (is_sum && is_float) return false;
  const uint64_t args[3] = {a, b, 0};
  return cts_expect_op(
      is_sum ? VYRE_OP_ADD : with[s->op - VYRE_OP_SUBGROUP_ADD], s->result,
      args, out);
}

/* Returns the expected result of ballot, a reduction or a scan. Lanes beyond the
 * last row read 0. */
static bool expect_collective(const subject *s, void *const columns[3],
                              size_t rows, size_t row, uint64_t *out) {
  const size_t first = row / SUBGROUP * SUBGROUP, lane = row - first;
  uint64_t values[SUBGROUP], mask = 0;
  for (size_t i = 0; i < SUBGROUP; i++) {
    values[i] =
        first + i < rows
            ? cts_seen(s->types[0], cts_get(columns[0], first + i, s->types[0]))
            : 0;
    mask |= (values[i] & 1) << i;
  }
  if (s->op <= VYRE_OP_SUBGROUP_ALL) {
    *out = s->op == VYRE_OP_BALLOT         ? mask
           : s->op == VYRE_OP_SUBGROUP_ANY ? mask != 0
                                           : mask == UINT32_MAX;
    return true;
  }
  size_t end = SUBGROUP;
  if (s->op == VYRE_OP_SUBGROUP_SCAN_ADD) end = lane + 1;
  if (s->op == VYRE_OP_SUBGROUP_SCAN_ADD_BEFORE) end = lane;
  *out = end == 0 ? 0 : values[0];
  for (size_t i = 1; i < end; i++) {
    if (!combine(s, *out, values[i], out)) return false;
  }
  return end > 1 || combine(s, 0, 0, &mask);
}

/* Returns the expected result of a row. uniform() gives the value of the first
 * invocation of the workgroup. */
static bool expect(const subject *s, void *const columns[3], size_t rows,
                   size_t row, uint64_t *out) {
  uint64_t args[3] = {0};
  const bool is_op = !s->is_cast && !s->is_bits;
  if (is_op && is_collective(s->op)) {
    return expect_collective(s, columns, rows, row, out);
  }
  if (is_op && is_shuffle(s->op)) {
    row = shuffled_row(s->op, row, cts_get(columns[1], row, VYRE_TYPE_U32));
    *out = 0;
    if (row < rows) {
      *out = cts_seen(s->result,
                      cts_seen(s->result, cts_get(columns[0], row, s->result)));
    }
    return true;
  }
  if (!s->is_cast && !s->is_bits && s->op == VYRE_OP_UNIFORM) row -= row % 32;
  for (unsigned i = 0; i < s->count; i++) {
    args[i] = cts_get(columns[i], row, s->types[i]);
  }
  if (s->is_cast) {
    return cts_expect_cast(s->types[0], s->result, args[0], out);
  }
  /* A NaN is replaced by the canonical NaN when it is loaded and when it is
   * stored. */
  if (s->is_bits || s->op == VYRE_OP_UNIFORM) {
    *out = cts_seen(s->result, cts_seen(s->types[0], args[0]));
    return true;
  }
  bool chooses = s->op == VYRE_OP_SELECT || s->op == VYRE_OP_COND;
  vyre_type type = chooses ? s->types[1] : s->types[0];
  return cts_expect_op(s->op, type, args, out);
}

static void check_rows(cts *c, const subject *s, void *const columns[3],
                       const void *got, size_t rows) {
  for (size_t row = 0; row < rows; row++) {
    uint64_t want, is = cts_get(got, row, s->result);
    if (!expect(s, columns, rows, row, &want) || is == want) continue;
    cts_fail(
        c, __FILE__, __LINE__,
        "%s: element %zu of (0x%llx, 0x%llx, 0x%llx) is 0x%llx, must be "
        "0x%llx",
        s->value, row,
        (unsigned long long)cts_get(columns[0], row, s->types[0]),
        s->count > 1 ? (unsigned long long)cts_get(columns[1], row, s->types[1])
                     : 0,
        s->count > 2 ? (unsigned long long)cts_get(columns[2], row, s->types[2])
                     : 0,
        (unsigned long long)is, (unsigned long long)want);
  }
}

static void run_subject(cts *c, const subject *s) {
  char text[MAX_TEXT];
  void *columns[3] = {NULL};
  size_t rows = make_rows(c, s, columns);
  size_t bytes = rows * cts_type_size(s->result);
  unsigned needs = cts_needs_of(s->result);
  vyre_input in[3];
  for (unsigned i = 0; i < s->count; i++) {
    in[i] = vyre_input_bytes(columns[i], rows * cts_type_size(s->types[i]));
    needs |= cts_needs_of(s->types[i]);
  }
  if (!s->is_cast && s->op >= VYRE_OP_REDUCE_ADD &&
      s->op <= VYRE_OP_SCAN_ADD_BEFORE && (needs & CTS_NEEDS_U64))
    needs |= CTS_NEEDS_ATOMICS64;
  write_kernel(s, text);
  vyre_program *program = cts_program(c, text);
  void *got = cts_memory(c, bytes), *want = cts_memory(c, bytes);
  vyre_output out = vyre_output_bytes(got, bytes);
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = s->count,
                             .outputs = &out,
                             .output_count = 1};
  vyre_pipeline *pipeline = cts_compile(c, program, needs);
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  check_rows(c, s, columns, got, rows);
  out.data = want;
  cts_oracle(c, program, &desc);
  CTS_SAME(c, s->value, got, want, bytes);
}

static void ops_run(cts *c, size_t index) {
  const op_case *list;
  (void)list_ops(&list);
  subject s = subject_of_op(list[index].op, list[index].type);
  run_subject(c, &s);
}

static void casts_run(cts *c, size_t index) {
  const cast_case *list;
  (void)list_casts(&list);
  subject s =
      subject_of_cast(list[index].from, list[index].to, list[index].is_bits);
  run_subject(c, &s);
}

const cts_area area_ops = {"ops", "every operation on every type", ops_count,
                           ops_label, ops_run};
const cts_area area_casts = {"casts", "every conversion", casts_count,
                             casts_label, casts_run};
