/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: invocation ids, and atomics on every type in buffers and shared
 * memory. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cts/harness/test_values.h"

enum { MAX_TEXT = 2048 };

/* --- Ids
 * ---------------------------------------------------------------------- */

static const char *const id_names[] = {
#define VYRE_X1(name) #name,
    VYRE_OP_ID_MAP(VYRE_X1)
#undef VYRE_X1
};
static const vyre_op id_ops[] = {
#define VYRE_X1(name) VYRE_OP_##name,
    VYRE_OP_ID_MAP(VYRE_X1)
#undef VYRE_X1
};

static const uint32_t group[3] = {4, 3, 2}, grid[3] = {3, 2, 5};

static size_t ids_count(void) {
  return 3 * sizeof id_ops / sizeof *id_ops;
}

static void ids_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s.%c", id_names[index / 3], "xyz"[index % 3]);
  for (; *out; out++) *out = (char)tolower((unsigned char)*out);
}

static uint32_t expect_id(vyre_op op, int axis, const uint32_t at[3]) {
  switch (op) {
    case VYRE_OP_GLOBAL_ID:
      return at[axis];
    case VYRE_OP_LOCAL_ID:
      return at[axis] % group[axis];
    case VYRE_OP_WORKGROUP_ID:
      return at[axis] / group[axis];
    case VYRE_OP_WORKGROUP_SIZE:
      return group[axis];
    default:
      return grid[axis];
  }
}

static void ids_run(cts *c, size_t index) {
  vyre_op op = id_ops[index / 3];
  int axis = (int)(index % 3);
  uint32_t size[3], count = 1;
  for (int i = 0; i < 3; i++) count *= size[i] = group[i] * grid[i];
  char text[MAX_TEXT];
  (void)snprintf(text, sizeof text,
                 "kernel ids workgroup(%u, %u, %u)\n"
                 "buffer r : write u32[] @0;\n"
                 "{\n"
                 "    let at = (global_id.z * %uu + global_id.y) * %uu + "
                 "global_id.x;\n"
                 "    r[at] = %s.%c;\n"
                 "}\n",
                 group[0], group[1], group[2], size[1], size[0],
                 vyre_op_text(op), "xyz"[axis]);
  size_t bytes = 4 * (size_t)count;
  uint32_t *got = cts_memory(c, bytes), *want = cts_memory(c, bytes);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at[3] = {i % size[0], i / size[0] % size[1],
                      i / size[0] / size[1]};
    want[i] = expect_id(op, axis, at);
    got[i] = ~want[i];
  }
  vyre_output out = vyre_output_bytes(got, bytes);
  vyre_dispatch_desc desc = {.outputs = &out, .output_count = 1};
  memcpy(desc.grid, grid, sizeof grid);
  CTS_OK(c, vyre_dispatch(cts_kernel(c, text), &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, vyre_op_text(op), got, want, bytes);
}

const cts_area area_ids = {"ids", "invocation ids", ids_count, ids_label,
                           ids_run};

/* --- Atomics
 * ------------------------------------------------------------------ */

/* First every invocation uses its own element and returns the old value; then
 * many use the same few elements, where the order must not matter. In a buffer
 * or in shared memory. */

static const char *const atomic_names[] = {
#define VYRE_X1(name) #name,
    VYRE_OP_ATOMIC_MAP(VYRE_X1)
#undef VYRE_X1
        "ATOMIC_CAS"};

static const vyre_op atomic_ops[] = {
#define VYRE_X1(name) VYRE_OP_##name,
    VYRE_OP_ATOMIC_MAP(VYRE_X1)
#undef VYRE_X1
};

enum {
  ATOMICS = sizeof atomic_ops / sizeof *atomic_ops,
  PLACES = 2,
  TYPES = 4,
  MANY = 256, /* invocations in four workgroups of 64 */
  GROUP = 64,
  FEW = 5
};

static const vyre_type atomic_types[TYPES] = {VYRE_TYPE_U32, VYRE_TYPE_I32,
                                              VYRE_TYPE_U64, VYRE_TYPE_I64};

/* The cases of sums (below) follow the cases of each operation. */
enum { OPERATIONS = (ATOMICS + 1) * TYPES * PLACES, SUMS = 2 * PLACES };

static vyre_type sum_type(size_t which) {
  return which / PLACES ? VYRE_TYPE_I64 : VYRE_TYPE_U64;
}

static size_t atomics_count(void) {
  return (size_t)OPERATIONS + SUMS;
}

static void atomics_label(size_t index, char *out, size_t size) {
  if (index >= OPERATIONS) {
    size_t which = index - OPERATIONS;
    (void)snprintf(out, size, "sum.%s.%s", vyre_type_name(sum_type(which)),
                   which % PLACES ? "shared" : "buffer");
    return;
  }
  (void)snprintf(out, size, "%s.%s.%s",
                 atomic_names[index / TYPES / PLACES] + 7,
                 vyre_type_name(atomic_types[index / PLACES % TYPES]),
                 index % PLACES ? "shared" : "buffer");
  for (; *out; out++) *out = (char)tolower((unsigned char)*out);
}

/* Returns the new value of an element after @p op. */
static uint64_t apply(vyre_op op, vyre_type type, uint64_t old,
                      uint64_t value) {
  vyre_op plain;
  switch (op) {
    case VYRE_OP_ATOMIC_ADD:
      plain = VYRE_OP_ADD;
      break;
    case VYRE_OP_ATOMIC_MIN:
      plain = VYRE_OP_MIN;
      break;
    case VYRE_OP_ATOMIC_MAX:
      plain = VYRE_OP_MAX;
      break;
    case VYRE_OP_ATOMIC_AND:
      plain = VYRE_OP_AND;
      break;
    case VYRE_OP_ATOMIC_OR:
      plain = VYRE_OP_OR;
      break;
    case VYRE_OP_ATOMIC_XOR:
      plain = VYRE_OP_XOR;
      break;
    default:
      return value;
  }
  uint64_t args[3] = {old, value, 0}, out = 0;
  return cts_expect_op(plain, type, args, &out) ? out : 0;
}

/* Separate: element i of `b`. Contended: elements of `f`; operations whose last
 * writer would be visible all use one value. */
static const char buffer_text[] =
    "kernel a workgroup(64)\n"
    "buffer v : read %1$s[] @0;\n"
    "buffer b : read_write %1$s[] @1;\n"
    "buffer f : read_write %1$s[] @2;\n"
    "buffer old : write %1$s[] @3;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    old[i] = %2$s(b[i]%3$s, v[i]);\n"
    "    %2$s(f[i %% 5]%4$s, v[%5$s]);\n"
    "}\n";

/* The same in shared memory, which starts as zeros. Each workgroup adds its
 * elements to the buffers. */
static const char shared_text[] =
    "kernel a workgroup(64)\n"
    "buffer v : read %1$s[] @0;\n"
    "buffer b : read_write %1$s[] @1;\n"
    "buffer f : read_write %1$s[] @2;\n"
    "buffer old : write %1$s[] @3;\n"
    "shared sb : %1$s[64];\n"
    "shared sf : %1$s[5];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    let l = local_id.x;\n"
    "    sb[l] = b[i];\n"
    "    if (l < 5) sf[l] = f[workgroup_id.x * 5 + l];\n"
    "    barrier();\n"
    "    old[i] = %2$s(sb[l]%3$s, v[i]);\n"
    "    %2$s(sf[i %% 5]%4$s, v[%5$s]);\n"
    "    barrier();\n"
    "    b[i] = sb[l];\n"
    "    if (l < 5) f[workgroup_id.x * 5 + l] = sf[l];\n"
    "}\n";

typedef struct atomic_data {
  vyre_type type;
  vyre_op op; /* VYRE_OP_COUNT: compare-exchange */
  bool is_shared;
  size_t few; /* contended elements */
  void *v, *b, *f, *want_b, *want_f, *want_old;
} atomic_data;

static void expect_atomics(atomic_data *d) {
  bool is_cas = d->op == VYRE_OP_COUNT;
  bool is_last = is_cas || d->op == VYRE_OP_ATOMIC_EXCHANGE;
  for (size_t i = 0; i < MANY; i++) {
    uint64_t value = cts_get(d->v, i, d->type);
    uint64_t old = cts_get(d->b, i, d->type);
    uint64_t made = apply(d->op, d->type, old, value);
    /* Every second comparison succeeds. */
    if (is_cas) made = i % 2 ? value : old;
    cts_put(d->want_old, i, d->type, old);
    cts_put(d->want_b, i, d->type, made);
    size_t at = i % FEW + (d->is_shared ? i / GROUP * FEW : 0);
    uint64_t sum = cts_get(d->want_f, at, d->type);
    uint64_t other = cts_get(d->v, is_last ? 0 : i, d->type);
    sum = is_last ? other : apply(d->op, d->type, sum, other);
    cts_put(d->want_f, at, d->type, sum);
  }
}

static void make_atomics(cts *c, atomic_data *d) {
  size_t size = cts_type_size(d->type);
  uint64_t state = c->seed;
  void **all[] = {&d->v, &d->b, &d->f, &d->want_b, &d->want_f, &d->want_old};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    *all[i] = cts_memory(c, MANY * size);
  }
  for (size_t i = 0; i < MANY; i++) {
    cts_put(d->v, i, d->type, cts_random_value(&state, d->type));
    uint64_t before = cts_random_value(&state, d->type);
    /* Compare-exchange expects odd elements to hold their index. */
    if (d->op == VYRE_OP_COUNT) before = i % 2 ? i : i + 1;
    cts_put(d->b, i, d->type, before);
  }
  for (size_t i = 0; i < d->few; i++) {
    uint64_t before =
        d->op == VYRE_OP_COUNT ? 9 : cts_random_value(&state, d->type);
    cts_put(d->f, i, d->type, before);
  }
  memcpy(d->want_f, d->f, MANY * size);
  expect_atomics(d);
}

/* 64-bit sums by atomic_add with unused results, which every device supports.
 * Nearly every addition carries out of the low half, and large values overflow.
 * Elements are loaded after a barrier, after a grid barrier and after the
 * dispatch. */
enum { ADDERS = 4096, SUM_GROUP = 64, SUM_TURNS = 5, SUM_FEW = 3 };

static const char sum_text[] =
    "kernel sums workgroup(64)\n"
    "buffer v : read %1$s[] @0;\n"
    "buffer f : read_write %1$s[] @1;\n"
    "buffer seen : write %1$s[] @2;\n"
    "shared s : %1$s[3];\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    let l = local_id.x;\n"
    "    for (let k = 0u; k < 5; k++) {\n"
    "        atomic_add(%2$s[(i + k) %% 3], v[i] + %1$s(k));\n"
    "        atomic_add(%2$s[i + 3], v[i]);\n" /* mostly out of bounds */
    "    }\n"
    "    barrier();\n"
    "    if (%3$u != 0 && l < 3) atomic_add(f[l], s[l]);\n"
    "    grid_barrier();\n"
    "    seen[i] = f[i %% 3];\n"
    "}\n";

static void sums_run(cts *c, vyre_type type, bool is_shared) {
  char text[MAX_TEXT];
  size_t bytes = (size_t)ADDERS * 8;
  uint64_t *v = cts_memory(c, bytes), *seen = cts_memory(c, bytes);
  uint64_t *want = cts_memory(c, bytes);
  uint64_t f[SUM_FEW] = {UINT64_C(0xFFFFFFFF), 7, 0}, sums[SUM_FEW];
  uint64_t state = c->seed;
  memcpy(sums, f, sizeof f);
  for (size_t i = 0; i < ADDERS; i++) {
    v[i] = cts_random(&state) >> (i % 2 ? 0 : 20);
    v[i] |= UINT64_C(0xF0000000); /* so that the low half carries */
    for (size_t k = 0; k < SUM_TURNS; k++) sums[(i + k) % SUM_FEW] += v[i] + k;
  }
  for (size_t i = 0; i < ADDERS; i++) want[i] = sums[i % SUM_FEW];
  (void)snprintf(text, sizeof text, sum_text, vyre_type_name(type),
                 is_shared ? "s" : "f", is_shared ? 1u : 0u);
  vyre_input in[] = {vyre_input_bytes(v, bytes), vyre_input_bytes(f, sizeof f)};
  vyre_output out[] = {vyre_output_bytes(f, sizeof f),
                       vyre_output_bytes(seen, bytes)};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 2,
                             .outputs = out,
                             .output_count = 2,
                             .grid = {ADDERS / SUM_GROUP}};
  vyre_pipeline *pipeline = cts_compile(c, cts_program(c, text), CTS_NEEDS_U64);
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "sums", f, sums, sizeof f);
  CTS_SAME(c, "sums behind a grid barrier", seen, want, bytes);
}

static void atomics_run(cts *c, size_t index) {
  if (index >= OPERATIONS) {
    size_t sum = index - OPERATIONS;
    sums_run(c, sum_type(sum), sum % PLACES != 0);
    return;
  }
  size_t which = index / TYPES / PLACES;
  atomic_data d = {.type = atomic_types[index / PLACES % TYPES],
                   .op = which < ATOMICS ? atomic_ops[which] : VYRE_OP_COUNT,
                   .is_shared = index % PLACES != 0};
  bool is_cas = d.op == VYRE_OP_COUNT;
  d.few = d.is_shared ? FEW * MANY / GROUP : FEW;
  make_atomics(c, &d);
  char text[MAX_TEXT], expected[40], nine[40];
  const char *type = vyre_type_name(d.type);
  (void)snprintf(expected, sizeof expected, ", %s(i)", type);
  (void)snprintf(nine, sizeof nine, ", %s(9)", type);
  (void)snprintf(text, sizeof text, d.is_shared ? shared_text : buffer_text,
                 type, is_cas ? "atomic_compare_exchange" : vyre_op_text(d.op),
                 is_cas ? expected : "", is_cas ? nine : "",
                 is_cas || d.op == VYRE_OP_ATOMIC_EXCHANGE ? "0" : "i");
  size_t size = cts_type_size(d.type);
  void *old = cts_memory(c, MANY * size);
  vyre_input in[] = {{.data = d.v, .size = MANY * size},
                     {.data = d.b, .size = MANY * size},
                     {.data = d.f, .size = d.few * size}};
  vyre_output out[] = {{.data = d.b, .size = MANY * size},
                       {.data = d.f, .size = d.few * size},
                       {.data = old, .size = MANY * size}};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = 3,
                             .outputs = out,
                             .output_count = 3,
                             .grid = {MANY / GROUP}};
  unsigned needs =
      cts_is_wide(d.type) ? CTS_NEEDS_U64 | CTS_NEEDS_ATOMICS64 : 0;
  vyre_pipeline *pipeline = cts_compile(c, cts_program(c, text), needs);
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "old values", old, d.want_old, MANY * size);
  CTS_SAME(c, "elements of one each", d.b, d.want_b, MANY * size);
  CTS_SAME(c, "elements of many", d.f, d.want_f, d.few * size);
}

const cts_area area_atomics = {"atomics", "atomics on every type",
                               atomics_count, atomics_label, atomics_run};
