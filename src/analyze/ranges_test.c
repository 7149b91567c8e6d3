/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/ranges.h"

#include "analyze/walk.h"
#include "ir/scalar.h"
#include "support/analysis.h"
#include "support/author.h"
#include "support/check.h"
#include "support/sanitized.h"

/* --- intervals, operation by operation --------------------------------------*/

/* A value of the type, near its edges more often than not. */
static uint64_t edge_value(uint64_t *seed, vyre_type type) {
  static const uint64_t edges[] = {
      0, 1, 2, 31, 32, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFE};
  uint64_t value = random_next(seed);
  uint64_t pick = random_below(seed, 16);
  if (pick < 11) value = edges[pick] + random_below(seed, 3) - 1;
  if (pick == 11) value = ((uint64_t)1 << 63) + random_below(seed, 3) - 1;
  if (pick == 12) value = random_below(seed, 100);
  bool is_narrow = type == VYRE_TYPE_U32 || type == VYRE_TYPE_I32;
  if (type == VYRE_TYPE_BOOL) return value & 1;
  return is_narrow ? (uint32_t)value : value;
}

/* An interval from a value up, of a few values or many; and values inside. */
static vyre__interval some_interval(uint64_t *seed, vyre_type type) {
  vyre__wide a = vyre__interval_value(type, edge_value(seed, type));
  vyre__wide b = vyre__interval_value(type, edge_value(seed, type));
  if (random_below(seed, 2)) b = a + (vyre__wide)random_below(seed, 6);
  if (b > vyre__interval_full(type).hi) b = a;
  return a < b ? (vyre__interval){a, b} : (vyre__interval){b, a};
}

static uint64_t value_in(uint64_t *seed, vyre_type type, vyre__interval in) {
  uint64_t pick = random_below(seed, 4);
  vyre__wide value = pick == 0 ? in.lo : in.hi;
  if (pick > 1) {
    unsigned __int128 width = (unsigned __int128)(in.hi - in.lo) + 1;
    value = in.lo + (vyre__wide)(random_next(seed) % width);
  }
  bool is_narrow = type == VYRE_TYPE_U32 || type == VYRE_TYPE_I32;
  return is_narrow ? (uint32_t)value : (uint64_t)value;
}

static bool holds(vyre__interval range, vyre_type type, uint64_t bits) {
  vyre__wide value = vyre__interval_value(type, bits);
  return value >= range.lo && value <= range.hi;
}

static void check_unary(uint64_t *seed, vyre__op op, vyre_type from,
                        vyre_type type) {
  vyre__interval a = some_interval(seed, from);
  vyre__interval result = vyre__interval_unary(op, from, type, a);
  for (int i = 0; i < 8; i++) {
    uint64_t args[3] = {value_in(seed, from, a)}, out = 0;
    if (!vyre__scalar_eval(op, from, type, args, &out)) return;
    if (!holds(result, type, out)) {
      printf("    op %s from %d to %d\n", vyre__ops[op].name, from, type);
    }
    CHECK(holds(result, type, out));
  }
}

static void check_binary(uint64_t *seed, vyre__op op, vyre_type from) {
  bool shifts = op == VYRE__OP_SHL || op == VYRE__OP_SHR;
  bool compares = op >= VYRE__OP_EQ && op <= VYRE__OP_LOR;
  vyre_type second = shifts ? VYRE_TYPE_U32 : from;
  vyre_type type = compares ? VYRE_TYPE_BOOL : from;
  vyre__interval a = some_interval(seed, from), b = some_interval(seed, second);
  vyre__interval result = vyre__interval_binary(op, from, type, a, b);
  for (int i = 0; i < 8; i++) {
    uint64_t args[3] = {value_in(seed, from, a), value_in(seed, second, b)};
    uint64_t out = 0;
    if (!vyre__scalar_eval(op, from, type, args, &out)) return;
    if (!holds(result, type, out)) {
      printf("    %llx %s %llx, type %d\n", (unsigned long long)args[0],
             vyre__ops[op].name, (unsigned long long)args[1], from);
    }
    CHECK(holds(result, type, out));
  }
}

TEST(intervals_hold_what_operations_give) {
  uint64_t seed = 1;
  for (int round = 0; round < (SANITIZED ? 4000 : 20000); round++) {
    vyre_type from = integer_types[random_below(&seed, 4)];
    vyre_type type = integer_types[random_below(&seed, 4)];
    for (int op = VYRE__OP_NEG; op <= VYRE__OP_UNIFORM; op++) {
      bool converts = op == VYRE__OP_CAST || op == VYRE__OP_BITCAST;
      check_unary(&seed, op, from, converts ? type : from);
    }
    check_unary(&seed, VYRE__OP_CAST, from, VYRE_TYPE_BOOL);
    check_unary(&seed, VYRE__OP_CAST, VYRE_TYPE_BOOL, type);
    check_unary(&seed, VYRE__OP_NOT, VYRE_TYPE_BOOL, VYRE_TYPE_BOOL);
    for (int op = VYRE__OP_ADD; op <= VYRE__OP_MAX; op++) {
      check_binary(&seed, op, from);
      check_binary(&seed, op, VYRE_TYPE_BOOL);
    }
  }
}

/* --- random kernels, run by hand --------------------------------------------*/

/* One invocation of a kernel, simply; and the facts that must hold. */
typedef struct runner {
  const vyre_program *program;
  const vyre__ranges *ranges;
  uint64_t *locals;
  uint32_t ids[3]; /* global, local, workgroup */
  uint32_t lengths[4];
  uint32_t memory[4][16];
  uint32_t n, fuel;
} runner;

typedef enum outcome { GOES_ON, BREAKS, CONTINUES, ENDS } outcome;

static uint64_t run_value(runner *r, vyre__id id);

/* The element, or NULL outside; the facts about the access must hold. */
static uint32_t *element_at(runner *r, vyre__id id, uint32_t buffer,
                            vyre__id index) {
  vyre__wide i =
      vyre__interval_value(r->program->nodes[index].type, run_value(r, index));
  bool is_inside = i >= 0 && i < r->lengths[buffer];
  uint8_t flags = r->ranges->flags[id];
  CHECK(is_inside || !(flags & VYRE__RANGE_INSIDE));
  CHECK(!is_inside || !(flags & VYRE__RANGE_OUTSIDE));
  return is_inside ? &r->memory[buffer][i % 16] : NULL;
}

static uint64_t run_operation(runner *r, vyre__id id) {
  const vyre__node *node = &r->program->nodes[id];
  uint64_t args[3] = {0, 0, 0}, out = 0;
  uint32_t count = vyre__child_count(r->program, id);
  vyre_type from = r->program->nodes[vyre__child(r->program, id, 0)].type;
  for (uint32_t i = 0; i < count; i++) {
    args[i] = run_value(r, vyre__child(r->program, id, i));
    if (node->op == VYRE__OP_LAND && !args[0]) return 0;
    if (node->op == VYRE__OP_LOR && args[0]) return 1;
  }
  CHECK(vyre__scalar_eval(node->op, from, node->type, args, &out));
  return out;
}

static uint64_t run_any(runner *r, vyre__id id) {
  const vyre__node *node = &r->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_LITERAL:
      return vyre__literal(node);
    case VYRE__OP_LOCAL:
      return r->locals[node->a];
    case VYRE__OP_LEN:
      return r->lengths[node->a];
    case VYRE__OP_GLOBAL_ID:
      return r->ids[0];
    case VYRE__OP_LOCAL_ID:
      return r->ids[1];
    case VYRE__OP_WORKGROUP_ID:
      return r->ids[2];
    case VYRE__OP_WORKGROUP_SIZE:
      return 8;
    case VYRE__OP_LOAD: {
      uint32_t *element = element_at(r, id, node->a, node->b);
      if (!element) return 0;
      return node->a == 0 ? *element & 255 : *element;
    }
    default:
      return run_operation(r, id);
  }
}

static uint64_t run_value(runner *r, vyre__id id) {
  uint64_t value = run_any(r, id);
  vyre_type type = r->program->nodes[id].type;
  CHECK(holds(vyre__range_of(r->ranges, id), type, value));
  return value;
}

static outcome run_statement(runner *r, vyre__id id);

static bool in_loop(uint8_t kind, vyre__wide i, vyre__wide bound) {
  switch ((vyre__loop)kind) {
    case VYRE__LOOP_LT:
      return i < bound;
    case VYRE__LOOP_LE:
      return i <= bound;
    case VYRE__LOOP_GT:
      return i > bound;
    default:
      return i >= bound;
  }
}

static outcome run_for(runner *r, vyre__id id) {
  const vyre__node *node = &r->program->nodes[id];
  vyre__for_parts parts = vyre__for_of(r->program, id);
  vyre_type type = r->program->nodes[parts.first].type;
  vyre__wide i = vyre__interval_value(type, run_value(r, parts.first));
  vyre__wide bound = vyre__interval_value(type, run_value(r, parts.bound));
  vyre__wide step = vyre__interval_value(type, run_value(r, parts.step));
  vyre__interval full = vyre__interval_full(type);
  uint64_t trips = 0;
  bool bounded = (r->ranges->flags[id] & VYRE__RANGE_BOUNDED) != 0;
  bool narrow = type == VYRE_TYPE_U32 || type == VYRE_TYPE_I32;
  if (node->aux >= VYRE__LOOP_GT) step = -step;
  for (; i >= full.lo && i <= full.hi && in_loop(node->aux, i, bound);
       i += step) {
    r->locals[node->a] = narrow ? (uint32_t)i : (uint64_t)i;
    CHECK(!bounded || trips < r->ranges->nodes[id].hi);
    trips++;
    outcome o = run_statement(r, parts.body);
    if (o == BREAKS) break;
    if (o == ENDS || r->fuel-- == 0) return ENDS;
  }
  CHECK(!bounded || trips >= r->ranges->nodes[id].lo);
  return GOES_ON;
}

static outcome run_block(runner *r, vyre__id id) {
  uint32_t count = vyre__child_count(r->program, id);
  for (uint32_t i = 0; i < count; i++) {
    outcome o = run_statement(r, vyre__child(r->program, id, i));
    if (o != GOES_ON) return o;
  }
  return GOES_ON;
}

static outcome run_statement(runner *r, vyre__id id) {
  const vyre__node *node = &r->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      return run_block(r, id);
    case VYRE__OP_LET:
    case VYRE__OP_ASSIGN:
      r->locals[node->a] = run_value(r, node->b);
      return GOES_ON;
    case VYRE__OP_STORE: {
      uint32_t *element = element_at(r, id, node->a, node->b);
      uint64_t value = run_value(r, node->c);
      if (element) *element = (uint32_t)value;
      return GOES_ON;
    }
    case VYRE__OP_IF:
      if (run_value(r, node->a)) return run_statement(r, node->b);
      return node->c ? run_statement(r, node->c) : GOES_ON;
    case VYRE__OP_FOR:
      return run_for(r, id);
    case VYRE__OP_WHILE:
      while (run_value(r, node->a)) {
        outcome o = run_statement(r, node->b);
        if (o == BREAKS) break;
        if (o == ENDS || r->fuel-- == 0) return ENDS;
      }
      return GOES_ON;
    case VYRE__OP_BREAK:
      return BREAKS;
    case VYRE__OP_CONTINUE:
      return CONTINUES;
    default:
      return ENDS;
  }
}

/* @p is_small: most of what is in memory is below 13. */
static void run_once(const vyre__ranges *ranges, uint64_t *seed,
                     bool is_small) {
  static const uint32_t lengths[] = {0, 1, 2, 7, 8, 16, 100, UINT32_MAX};
  uint64_t locals[1024] = {0};
  runner r = {.program = ranges->program,
              .ranges = ranges,
              .locals = locals,
              .lengths = {lengths[random_below(seed, 8)],
                          lengths[random_below(seed, 8)], 1, 16},
              .fuel = 200};
  CHECK(ranges->program->functions[0].local_count <= 1024);
  r.ids[1] = (uint32_t)random_below(seed, 8);
  r.ids[2] = random_below(seed, 2) ? (uint32_t)random_below(seed, 4)
                                   : (UINT32_MAX / 8) - 1;
  r.ids[0] = r.ids[2] * 8 + r.ids[1];
  for (int i = 0; i < 64; i++) {
    r.memory[i / 16][i % 16] = (uint32_t)edge_value(seed, VYRE_TYPE_U32);
    if (is_small && random_below(seed, 4)) {
      r.memory[i / 16][i % 16] = (uint32_t)random_below(seed, 13);
    }
  }
  run_statement(&r, r.program->functions[0].body);
}

typedef struct tally {
  uint64_t accesses, inside;
} tally;

/* Runs what the author wrote a few times. */
static void run_kernel(author *a, int times, bool is_small, tally *sum) {
  vyre_module *module = parse_module(a->text);
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  CHECK_OK(vyre__ranges_build(program, NULL, &arena, &ranges, &st), st);
  for (int i = 0; i < times; i++) run_once(&ranges, &a->seed, is_small);
  for (vyre__id id = 1; id < program->node_count; id++) {
    uint8_t op = program->nodes[id].op;
    sum->accesses += op == VYRE__OP_LOAD || op == VYRE__OP_STORE;
    sum->inside += (ranges.flags[id] & VYRE__RANGE_INSIDE) != 0;
  }
  vyre_arena_finish(&arena);
  vyre_module_release(module);
}

TEST(ranges_hold_in_random_kernels) {
  static author a;
  tally sum = {0};
  for (uint64_t seed = 1; seed <= (SANITIZED ? 400 : 2000); seed++) {
    write_kernel(&a, seed * 0x9E3779B97F4A7C15u, 8, false);
    run_kernel(&a, 10, false, &sum);
  }
  CHECK(sum.inside * 20 > sum.accesses); /* it does find some */
}

/* --- random guards, run by hand ---------------------------------------------*/

/* Guards and indices that have to do with each other: P, Q, W are some values, L
 * is the length of a buffer. Many kernels prove something, more nearly do. */
static const char *const guard_forms[] = {
    "P < L",
    "P <= L",
    "P < W",
    "Q < W",
    "Q < L / W",
    "Q < min(L, Q + W) / W",
    "Q <= L / W",
    "W <= L - P",
    "P < L && W <= L - P",
    "Q < W && P < L && W <= L - P",
    "P < W && Q < L / W",
    "P + Q < L",
    "P + 1 < L",
    "P >= Q",
    "P > Q && P <= L",
    "P - Q < L",
    "P * W + Q < L",
    "Q * W <= L && P < W && P < Q",
    "u64(Q) * u64(W) <= u64(L) && P < W && v < Q",
    "P < min(L, W)",
    "!(P >= L || Q >= L)",
    "L > 0",
    "W != 0",
    "W <= L / W && P < W && Q < W",
    "s >= 0 && s < 8",
    "s >= 0 && u32(s) < L",
    "s < 4",
    "u64(P) < u64(L)",
    "(P < L) & (Q < L)",
    "P == Q",
};
static const char *const value_forms[] = {
    "P",
    "Q",
    "P + Q",
    "P + 1",
    "P + Q + 1",
    "Q * W + P",
    "P + Q * W",
    "v * W + P",
    "Q * W",
    "Q * W + P + 1",
    "Q * W + (P + 1)",
    "(Q + 1) * W + P",
    "Q * W + P + u32(s)",
    "Q * W + (max(P, 1) - 1)",
    "Q * W + min(P + 1, W - 1)",
    "(max(Q, 1) - 1) * W + P",
    "min(Q + 1, L / W - 1) * W + P",
    "P - Q",
    "P - 1",
    "W - 1 - P",
    "L - 1",
    "L - 1 - P",
    "L - P",
    "min(P, L - 1)",
    "min(P, Q)",
    "max(P, Q)",
    "max(P, 1) - 1",
    "P % L",
    "P % W",
    "P / W",
    "P / 2 + Q / 2",
    "P & Q",
    "P >> 1u",
    "(P << 1u) + 1",
    "Q * 4 + 3",
    "select(P < L, P, Q)",
};
static const char *const index_forms[] = {
    "s",
    "s + 1",
    "s - 1",
    "s & 15",
    "i32(P)",
    "i32(Q) * i32(W) + i32(P)",
    "u64(Q) * u64(W) + u64(P)",
    "u64(Q * W) + u64(P)",
    "u64(Q) + u64(P)",
    "u64(Q + P)",
};

typedef struct names {
  const char *p, *q, *w, *length;
} names;

#define SOME(a, forms) (forms)[roll(a, sizeof(forms) / sizeof *(forms))]

static const char *some_name(author *a) {
  static const char *const fixed[] = {
      "a", "b", "c", "n", "v", "local_id.x", "global_id.x", "u", "2u", "3u"};
  if (a->count && roll(a, 2)) return a->variables[roll(a, a->count)].name;
  return SOME(a, fixed);
}

static void say_form(author *a, const char *form, const names *n) {
  for (; *form; form++) {
    const char *word = *form == 'P'   ? n->p
                       : *form == 'Q' ? n->q
                       : *form == 'W' ? n->w
                       : *form == 'L' ? n->length
                                      : NULL;
    if (word) say(a, "%s", word);
    if (!word) say(a, "%c", *form);
  }
}

static void say_guarded(author *a, int depth, names n);

static void say_guarded_block(author *a, int depth, const names *n) {
  unsigned count = a->count;
  say(a, "{\n");
  for (unsigned i = 1 + roll(a, 2); i > 0; i--) say_guarded(a, depth - 1, *n);
  say(a, "}\n");
  a->count = count;
}

static void say_guarded_while(author *a, int depth, const names *n) {
  static const char *const steps[] = {
      "v += 1;",   "v += P;", "v *= 2;", "v /= 2;",        "v -= 1;",
      "v >>= 1u;", "v = P;",  "v -= Q;", "v = v * 2 + 1;", "v = W - v;"};
  static const char *const conditions[] = {"v < W", "v > 0",  "v < 8",
                                           "v < L", "v != P", "v >= Q"};
  static const char *const firsts[] = {"1", "0", "8", "W", "P"};
  say(a, "v = ");
  say_form(a, SOME(a, firsts), n);
  say(a, ";\nwhile (");
  say_form(a, SOME(a, conditions), n);
  say(a, ") {\n");
  a->loops++;
  if (roll(a, 2)) say_guarded_block(a, depth, n);
  say(a, "tile[%s] += y[v];\n", roll(a, 2) ? "v" : "v + local_id.x");
  if (roll(a, 4) == 0) say(a, "if (v == 5) { v = 77; continue; }\n");
  if (roll(a, 4) == 0) say(a, "if (v == 6) { v = 77; break; }\n");
  say_form(a, SOME(a, steps), n);
  if (roll(a, 2)) say_guarded_block(a, depth, n);
  a->loops--;
  say(a, "\n}\ntile[v] = 1;\n");
}

static void say_guarded_for(author *a, int depth, names n) {
  if (a->count + 1 >= 64) return;
  const char *k = declare(a, VYRE_TYPE_U32, false)->name;
  bool up = roll(a, 2);
  say(a, "for (let %s = ", k);
  say_form(a, up ? "0u" : "min(W, 9)", &n);
  say(a, "; %s %s ", k, up ? "<" : ">");
  say_form(a, up ? (roll(a, 2) ? "W" : "min(P, 5)") : "Q", &n);
  say(a, "; %s %s 1) ", k, up ? "+=" : "-=");
  a->count++;
  a->loops++;
  if (roll(a, 2)) n.q = k;
  if (roll(a, 2)) n.p = k;
  say_guarded_block(a, depth, &n);
  a->loops--;
  a->count--;
}

static void say_guard(author *a, int depth, const names *n) {
  bool leaves = roll(a, 3) == 0;
  say(a, leaves ? "if (!(" : "if ((");
  say_form(a, SOME(a, guard_forms), n);
  say(a, ")");
  if (!leaves && roll(a, 2)) {
    say(a, " && (");
    say_form(a, SOME(a, guard_forms), n);
    say(a, ")");
  }
  say(a, ") ");
  if (leaves) {
    say(a, "{ %s; }\n", a->loops && roll(a, 2) ? "continue" : "return");
    return;
  }
  say_guarded_block(a, depth, n);
  if (roll(a, 3) == 0) {
    say(a, "else ");
    say_guarded_block(a, depth, n);
  }
}

static void say_use(author *a, const names *n) {
  static const char *const buffers[] = {"y", "x", "tile"};
  const char *buffer = n->length[0] == '1'   ? "tile"
                       : n->length[4] == 'x' ? "x"
                                             : "y";
  if (roll(a, 5) == 0) buffer = SOME(a, buffers);
  say(a, "sum += %s[", buffer);
  say_form(a, roll(a, 4) ? SOME(a, value_forms) : SOME(a, index_forms), n);
  say(a, "];\n");
}

static void say_guarded(author *a, int depth, names n) {
  static const char *const lengths[] = {"len(y)", "len(y)", "len(x)", "16u"};
  if (roll(a, 8) == 0) n.p = some_name(a);
  if (roll(a, 8) == 0) n.w = some_name(a);
  if (roll(a, 8) == 0) n.length = SOME(a, lengths);
  switch (depth > 0 ? roll(a, 10) : 9) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      say_guard(a, depth, &n);
      break;
    case 5:
      say_guarded_while(a, depth, &n);
      break;
    case 6:
      say_guarded_for(a, depth, n);
      break;
    case 7:
      say(a, "%s = ", roll(a, 2) ? "v" : "u");
      say_form(a, SOME(a, value_forms), &n);
      say(a, ";\n");
      break;
    case 8:
      if (a->count + 1 >= 64) break;
      say(a, "let %s = ", declare(a, VYRE_TYPE_U32, false)->name);
      say_form(a, SOME(a, value_forms), &n);
      say(a, ";\n");
      a->count++;
      break;
    default:
      for (unsigned i = 1 + roll(a, 3); i > 0; i--) say_use(a, &n);
      break;
  }
}

static void write_guarded(author *a, uint64_t seed) {
  *a = (author){.seed = seed};
  say(a,
      "kernel k workgroup(8)\nbuffer x : read u8[] @0;\n"
      "buffer y : read_write u32[] @1;\nuniform n : u32 @2;\n"
      "shared tile : u32[16];\n{\n"
      "let a = y[0];\nlet b = y[1];\nlet c = tile[2];\n"
      "let s = as_i32(tile[3]);\nvar v = a;\nvar u = b;\nvar sum = 0u;\n");
  for (unsigned i = 2 + roll(a, 4); i > 0; i--) {
    names n = {some_name(a), some_name(a), some_name(a), "len(y)"};
    say_guarded(a, 3, n);
  }
  say(a, "}\n");
}

/* VYRE_RANGES_SEEDS=100000 for more of them. */
TEST(proofs_hold_in_guarded_kernels) {
  static author a;
  tally sum = {0};
  const char *text = getenv("VYRE_RANGES_SEEDS");
  uint64_t seeds = text ? strtoull(text, NULL, 10) : SANITIZED ? 500 : 4000;
  for (uint64_t seed = 1; seed <= seeds; seed++) {
    write_guarded(&a, seed * 0x9E3779B97F4A7C15u);
    run_kernel(&a, 25, true, &sum);
  }
  CHECK(sum.inside * 4 > sum.accesses);
}

/* --- guards that people write -----------------------------------------------*/

/* How many accesses of a body are not proven. */
static unsigned unproven(const char *body) {
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  unsigned count = 0;
  CHECK_OK(vyre__ranges_build(program, NULL, &arena, &ranges, &st), st);
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    bool is_access = (vyre__ops[node->op].flags & 7) != 0;
    bool is_scalar = is_access && node->a == 2; /* the uniform */
    count +=
        is_access && !is_scalar && !(ranges.flags[id] & VYRE__RANGE_INSIDE);
  }
  vyre_arena_finish(&arena);
  vyre_module_release(module);
  return count;
}

TEST(guards_prove_accesses) {
  static const struct {
    const char *body;
    unsigned unproven;
  } guards[] = {
      {"y[i] = 1;", 1},
      {"if (i < len(y)) y[i] = 1;", 0},
      {"if (i <= len(y)) y[i] = 1;", 1},
      {"if (len(y) > i) y[i] = 1;", 0},
      {"if (i < len(x)) y[i] = x[i];", 1},
      {"if (i < len(x) && i < len(y)) y[i] = x[i];", 0},
      {"if (i < min(len(x), len(y))) y[i] = x[i];", 0},
      {"let m = min(len(x), len(y));\nif (i < m) y[i] = x[i];", 0},
      {"if (i >= len(y)) return;\ny[i] = 1;", 0},
      {"if (i >= len(y) || i >= len(x)) return;\ny[i] = x[i];", 0},
      {"let ok = i < len(y);\nif (ok) y[i] = 1;", 0},
      {"if (!(i >= len(y))) y[i] = 1;", 0},
      {"if (global_id.x < len(y)) y[global_id.x] = 1;", 0},
      {"if (i < len(y) && i > 0) y[i - 1] = y[i];", 0},
      {"if (i < len(y)) y[i / 2] = y[i >> 1u];", 0},
      {"let m = len(y);\nif (m > 0) y[m - 1] = 1;", 0},
      {"if (len(y) > 0) y[len(y) - 1] = y[min(i, len(y) - 1)];", 0},
      {"for (let k = 0u; k < len(y); k++) y[k] = 1;", 0},
      {"for (let k = i; k < len(y); k += 64) y[k] = 1;", 0},
      {"var k = i;\nwhile (k < len(y)) {\ny[k] = 1;\nk += 64;\n}", 0},
      {"var k = i;\nwhile (k < len(y)) {\nk += 64;\ny[k] = 1;\n}", 1},
      {"y[select(i < len(y), i, len(y))] = 1;", 1},
      {"if (0 < len(y)) y[select(i < len(y), i, 0u)] = 1;", 0},
      {"if (7 < len(y)) y[l & 7] = y[7];", 0},
      {"if (6 < len(y)) y[l & 7] = 1;", 1},
      {"tile[l] = 1;", 0},
      {"tile[63 - l] = 1;", 0},
      {"tile[l * 2 % 64] = tile[(l + 1) & 63];", 0},
      {"tile[min(i, 63)] = 1;", 0},
      {"tile[i] = 1;", 1},
      {"if (l < 32) tile[l + 32] = 1;", 0},
      {"if (l < 33) tile[l + 32] = 1;", 1},
      {"for (let s = 32u; s > 0; s -= 1) tile[s] = 1;", 0},
      {"var s = 32u;\nwhile (s > 0) {\nif (l < s) tile[l] += 1;\ns /= 2;\n}",
       0},
      {"if (u64(i) < u64(len(y))) y[i] = 1;", 0},
      {"let k = i32(i);\nif (k >= 0 && u32(k) < len(y)) y[k] = 1;", 0},
      {"let k = i32(i);\nif (u32(k) < len(y)) y[k] = 1;", 1},
  };
  for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
    unsigned got = unproven(guards[i].body);
    if (got != guards[i].unproven) printf("    %s\n", guards[i].body);
    CHECK_U64(got, guards[i].unproven);
  }
}

/* What intervals alone do not prove: what is just provable, and what is not by a
 * little. */
static const struct {
  const char *body;
  unsigned unproven;
} guards_of_values[] = {
    /* sums: place + k below a length, from k < m <= length - place */
    {"if (i < len(y) && n <= len(y) - i) for (let k = 0u; k < n; k++) "
     "y[i + k] = 1;",
     0},
    {"if (i < len(y) && n <= len(y) - i) for (let k = 0u; k <= n; k++) "
     "y[i + k] = 1;",
     1},
    {"if (i <= len(y) && n <= len(y) - i) for (let k = 0u; k < n; k++) "
     "y[k + i] = 1;",
     0},
    /* without i < len, the difference wraps */
    {"if (n <= len(y) - i) for (let k = 0u; k < n; k++) y[i + k] = 1;", 1},
    {"if (i + 1 < len(y)) y[i + 1] = 1;", 0},
    /* i + 1 may have wrapped */
    {"if (i + 1 < len(y)) y[i] = 1;", 1},
    {"if (i < len(x) && i + 1 < len(y)) y[i] = x[i];", 0},
    {"if (i + 3 < len(y) && i < 1000000) y[i + 2] = y[i + 3];", 0},
    {"if (i + 3 < len(y) && i < 1000000) y[i + 4] = 1;", 1},
    {"if (i < 8 && 70 < len(y)) y[i + l] = 1;", 0},
    {"if (i < 8 && 69 < len(y)) y[i + l] = 1;", 1},
    {"if (i + l < len(y)) y[l + i] = 1;", 0},
    {"if (l + i < 64) tile[i + l] = 1;", 0},
    {"if (l + i < 65) tile[i + l] = 1;", 1},
    /* rows */
    {"let h = len(y) / n;\nif (l < n && i < h) y[i * n + l] = 1;", 0},
    {"if (l < n && i < len(y) / n) y[l + n * i] = 1;", 0},
    {"if (l <= n && i < len(y) / n) y[i * n + l] = 1;", 1},
    {"if (l < n && i <= len(y) / n) y[i * n + l] = 1;", 1},
    {"if (l < n && i < len(y) / n) y[i * l + l] = 1;", 1},
    {"if (l < n && i < len(x) / n) y[i * n + l] = 1;", 1},
    {"if (l < n && i < min(len(x), len(y)) / n) y[i * n + l] = x[i * n + l];",
     0},
    {"if (l < n && i < max(len(x), len(y)) / n) y[i * n + l] = 1;", 1},
    {"if (len(y) / n < n || l >= n || i >= n) return;\ny[i * n + l] = 1;", 0},
    {"if (len(y) / n >= n || l >= n || i >= n) return;\ny[i * n + l] = 1;", 1},
    /* a product that wraps says nothing */
    {"if (n * n <= len(y) && l < n && i < n) y[i * n + l] = 1;", 1},
    {"if (u64(n) * u64(n) <= u64(len(y)) && l < n && i < n) "
     "y[i * n + l] = 1;",
     0},
    {"if (l < n && i < len(y) / n) { let a = max(l, 1) - 1;\n"
     "let b = min(l + 1, n - 1);\ny[i * n + a] = y[i * n + b]; }",
     0},
    {"if (l < n && i < len(y) / n) y[i * n + (l + 1)] = 1;", 1},
    {"let h = len(y) / n;\nif (l < n && i < h) { let a = max(i, 1) - 1;\n"
     "let b = min(i + 1, h - 1);\ny[a * n + l] = y[b * n + l]; }",
     0},
    {"let h = len(y) / n;\nif (l < n && i < h) y[min(i + 1, h) * n + l] = 1;",
     1},
    {"if (i + l < n && l < len(y) / n) y[l * n + i + l] = 1;", 0},
    {"if (i + l < n && l < len(y) / n) y[l * n + i + l + 1] = 1;", 1},
    {"if (i < len(y) / 4) y[i * 4] = y[i * 4 + 3];", 0},
    {"if (i < len(y) / 4) y[(i << 2u) + 3] = 1;", 0},
    {"if (i < len(y) / 4) y[i * 4 + 4] = 1;", 1},
    {"if (i <= len(y) / 4) y[i * 4] = 1;", 1},
    {"if (l < n && i < len(y) / 3 / n) y[(i * n + l) * 3 + 2] = 1;", 0},
    /* 32 bits of a product in 64 are not the product */
    {"if (l < n && i < len(y) / n) y[u64(i) * u64(n) + u64(l)] = 1;", 0},
    {"let k = i32(l);\nlet m = i32(n);\nif (k < m && u32(m) < len(y) / 9) "
     "y[k] = 1;",
     0},
    /* differences */
    {"if (i < len(y) && i >= n) y[i - n] = 1;", 0},
    {"if (i < len(y) && i + 1 >= n) y[i - n] = 1;", 1},
    {"if (i < len(y)) y[i - n] = 1;", 1},
    {"if (i < len(y)) y[len(y) - 1 - i] = 1;", 0},
    {"if (i < len(y)) y[len(y) - i] = 1;", 1},
    {"if (i <= len(y) && i > 0) y[len(y) - i] = 1;", 0},
    {"var d = n;\nif (l >= d) tile[l - d] = 1;", 0},
    {"var d = n;\nif (l >= d) { d += 1; tile[l - d] = 1; }", 1},
    /* rests and quotients */
    {"if (len(y) > 0) y[i % len(y)] = 1;", 0},
    {"y[i % len(y)] = 1;", 1},
    {"if (n > 0 && n <= len(y)) y[i % n] = 1;", 0},
    {"if (n <= len(y)) y[i % n] = 1;", 1},
    {"if (n < len(y)) y[n / max(i, 1)] = 1;", 0},
    {"if (n < len(y)) y[n / i] = 1;", 1}, /* by 0: all ones */
    {"if (n < len(y)) y[n & i] = 1;", 0},
    {"if (n < len(y)) y[n | i] = 1;", 1},
    /* variables */
    {"var k = i;\nif (k < len(y)) { k += 1; y[k] = 1; }", 1},
    {"var k = i;\nif (k + 1 < len(y)) { k += 1; y[k] = 1; }", 0},
    {"var k = i;\nif (k < len(y)) { let a = k; k = 0; y[a] = 1; }", 0},
    {"var k = n;\nwhile (k * 2 < len(y)) { y[k * 2] = 1; k += 1; }", 0},
    {"var k = n;\nwhile (k * 2 < len(y)) { k += 1; y[k * 2] = 1; }", 1},
    {"var k = n;\nwhile (k * 2 >= len(y)) { k += i; }\ny[k * 2] = 1;", 0},
    {"var k = n;\nwhile (k * 2 >= len(y)) { k += i; if (k == 7) break; }\n"
     "y[k * 2] = 1;",
     1},
    {"var k = n;\nif (k * 2 < len(y)) while (i > k) { y[k * 2] = 1; k++; }", 1},
    {"let ok = l < n && i < len(y) / n;\nif (ok) y[i * n + l] = 1;", 0},
    {"var ok = i * 2 < len(y);\nok = ok || n > 3;\nif (ok) y[i * 2] = 1;", 1},
    /* memory that is written may change between guard and use */
    {"if (tile[0] < 64) tile[tile[0]] = 1;", 1},
    {"let a = tile[0];\nif (a < 64) tile[a] = 1;", 0},
    {"if (n * 2 < len(y)) y[n * 2] = 1;", 0},
    {"if (x[1] < len(y)) y[x[1]] = 1;", 3}, /* x[1] twice, and y */
    {"let a = uniform(i * 2);\nif (i * 2 < len(y)) y[a] = 1;", 1},
    /* signs */
    {"let k = i32(i);\nif (k < i32(n) && n < len(y)) y[k] = 1;", 1},
    {"let k = i32(l) - 1;\nif (k >= 0) tile[k] = 1;", 0},
    {"let k = i32(l) - i32(n);\nif (k <= 0) tile[k] = 1;", 1},
    /* below the least i32 it goes on with the largest */
    {"let s = as_i32(i);\nlet t = as_i32(n);\n"
     "if (s < 0 && t < 0) tile[max(s + t, 0)] = 1;",
     1},
    {"let s = as_i32(i);\nlet t = as_i32(n);\n"
     "if (s < 0 && t > 0) tile[max(s - t, 0)] = 1;",
     1},
    {"let s = as_i32(i);\nlet t = as_i32(n);\n"
     "if (s >= 0 && s < 64 && t >= 0) tile[max(s - t, 0)] = 1;",
     0},
};

TEST(guards_of_values_prove_accesses) {
  for (size_t i = 0; i < sizeof guards_of_values / sizeof guards_of_values[0];
       i++) {
    unsigned got = unproven(guards_of_values[i].body);
    if (got != guards_of_values[i].unproven)
      printf("    %s\n", guards_of_values[i].body);
    CHECK_U64(got, guards_of_values[i].unproven);
  }
}

/* What a `while` assigns: bounds that hold when a round begins and when it
 * ends. */
TEST(rounds_of_a_while_prove_accesses) {
  static const struct {
    const char *body;
    unsigned unproven;
  } loops[] = {
      {"var s = 32u;\nwhile (s > 0) { if (l < s) tile[l + s] = 1; s /= 2; }",
       0},
      {"var s = 33u;\nwhile (s > 0) { if (l < s) tile[l + s] = 1; s /= 2; }",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (l < s) tile[l + s] = 1; s -= 1; }",
       0},
      /* s wraps once it is 0 */
      {"var s = 32u;\nwhile (s != 1) { if (l < s) tile[l + s] = 1; s -= 1; }",
       1},
      {"var s = 1u;\nwhile (s < 64) { tile[s] = 1; s *= 2; }", 0},
      {"var s = 1u;\nwhile (s < 64) { tile[s - 1] = 1; s *= 2; }", 0},
      {"var s = 1u;\nwhile (s < 64) { tile[s - 1] = 1; s *= n; }", 1},
      {"var s = 1u;\nwhile (s <= 64) { tile[s] = 1; s *= 2; }", 1},
      {"var s = 1u;\nwhile (s <= 64) { tile[s - 1] = 1; s += 3; }", 0},
      {"var s = 1u;\nwhile (s < 64) s *= 2;\ntile[s - 64] = 1;", 0},
      {"var s = 1u;\nwhile (s < 63) s += 2;\ntile[s - 64] = 1;", 1},
      {"var s = 1u;\nwhile (s < 64) { s *= 2; if (s == n) break; }\n"
       "tile[s - 64] = 1;",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (s == n) { s = 99; continue; } "
       "tile[s] = 1; s /= 2; }",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (s == n) s = 99; tile[s] = 1; "
       "s /= 2; }",
       1},
      {"var s = 32u;\nwhile (s > 0) { if (s == n) s = 60; tile[s] = 1; "
       "s /= 2; }",
       0},
      /* loops in loops */
      {"var a = 4u;\nwhile (a > 0) { var b = 8u;\nwhile (b > 0) { "
       "tile[a * b + a] = 1; b /= 2; }\na -= 1; }",
       0},
      {"var a = 4u;\nvar b = 8u;\nwhile (a > 0) { while (b > 0) { "
       "tile[a * b] = 1; b /= 2; }\na -= 1; b = 8; }",
       0},
      {"var a = 4u;\nvar b = 8u;\nwhile (a > 0) { while (b > 0) { "
       "tile[a * b] = 1; b /= 2; }\na -= 1; b = a * 7; }",
       1},
  };
  for (size_t i = 0; i < sizeof loops / sizeof loops[0]; i++) {
    unsigned got = unproven(loops[i].body);
    if (got != loops[i].unproven) printf("    %s\n", loops[i].body);
    CHECK_U64(got, loops[i].unproven);
  }
}

/* --- loops ------------------------------------------------------------------*/

/* Trips of the first loop of a body. */
static vyre__range trips_of(const char *body) {
  vyre_module *module = parse_module(kernel_text(body));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  vyre__range trips = {99, 99};
  CHECK_OK(vyre__ranges_build(program, NULL, &arena, &ranges, &st), st);
  for (vyre__id id = program->node_count - 1; id > 0; id--) {
    if (program->nodes[id].op != VYRE__OP_FOR) continue;
    CHECK(ranges.flags[id] & VYRE__RANGE_BOUNDED);
    trips = ranges.nodes[id];
    break; /* a loop comes behind those inside of it */
  }
  vyre_arena_finish(&arena);
  vyre_module_release(module);
  return trips;
}

TEST(loops_may_be_left_early) {
  static const struct {
    const char *body;
    uint64_t least, most;
  } rows[] = {
      {"for (let k = 0u; k < 8; k++) y[k] = 1;", 8, 8},
      {"for (let k = 0u; k < 8; k++) { if (k == i) break; y[k] = 1; }", 1, 8},
      {"for (let k = 0u; k < 8; k++) { if (k == i) return; y[k] = 1; }", 1, 8},
      {"for (let k = 0u; k < 8; k++) { if (k == i) continue; y[k] = 1; }", 8,
       8},
      {"for (let k = 0u; k < 8; k++) { while (true) { break; } }", 8, 8},
      {"for (let k = 0u; k < 8; k++) { while (true) { return; } }", 1, 8},
      {"for (let k = 0u; k < l; k++) { if (k == i) break; y[k] = 1; }", 0, 63},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    vyre__range trips = trips_of(rows[i].body);
    CHECK_U64(trips.lo, rows[i].least);
    CHECK_U64(trips.hi, rows[i].most);
  }
}

/* --- other workgroups -------------------------------------------------------*/

/* Accesses of `tile[local_id.x + 32]`, proven or not, for a workgroup. */
static uint8_t flags_for(const uint32_t workgroup[3], vyre__id last) {
  vyre_module *module =
      parse_module(kernel_text("tile[l + 32] = 1;\ny[0] = workgroup_size.x;"));
  const vyre_program *program = vyre_module_kernel(module, 0);
  vyre_arena arena = {0};
  vyre__ranges ranges;
  vyre_status st = {0};
  uint8_t flags = 0;
  CHECK_OK(
      vyre__ranges_build_to(program, workgroup, last, &arena, &ranges, &st),
      st);
  for (vyre__id id = 1; id < program->node_count; id++) {
    const vyre__node *node = &program->nodes[id];
    if (node->op == VYRE__OP_STORE && node->a == 3) flags = ranges.flags[id];
    if (node->op != VYRE__OP_WORKGROUP_SIZE || last != UINT32_MAX) continue;
    CHECK_U64(ranges.nodes[id].lo, workgroup ? workgroup[0] : 64);
    CHECK_U64(ranges.nodes[id].hi, workgroup ? workgroup[0] : 64);
  }
  vyre_arena_finish(&arena);
  vyre_module_release(module);
  return flags;
}

TEST(facts_hold_for_the_workgroup_that_is_asked_for) {
  CHECK_U64(flags_for(NULL, UINT32_MAX), 0);
  CHECK_U64(flags_for((uint32_t[]){32, 1, 1}, UINT32_MAX), VYRE__RANGE_INSIDE);
  CHECK_U64(flags_for((uint32_t[]){33, 1, 1}, UINT32_MAX), 0);
  /* The store is the third statement, of nodes 5 to 9. */
  CHECK_U64(flags_for((uint32_t[]){32, 1, 1}, 7), VYRE__RANGE_INSIDE);
}

/* --- memory -----------------------------------------------------------------*/

static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module = parse_module(kernel_text(
      "var a = 0u;\nif (i < len(y)) { a = 1; y[i] = 1; } else { a = l; }\n"
      "for (let k = 0u; k < 8; k++) { if (a > 3) a = k; tile[a] = k; }\n"
      "while (a < 64) { if (n <= len(y) - a) y[a + n] = 1; a *= 2; }"));
  vyre_arena arena;
  vyre__ranges ranges;
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre__ranges_build(vyre_module_kernel(module, 0), NULL,
                                      &arena, &ranges, st);
  vyre_arena_finish(&arena);
  vyre_module_release(module);
  return code;
}

TEST(survives_running_out_of_memory) {
  CHECK(sweep_allocations(sweep_scenario) > 1);
}

TEST_MAIN(TEST_ENTRY(intervals_hold_what_operations_give),
          TEST_ENTRY(ranges_hold_in_random_kernels),
          TEST_ENTRY(proofs_hold_in_guarded_kernels),
          TEST_ENTRY(guards_prove_accesses),
          TEST_ENTRY(guards_of_values_prove_accesses),
          TEST_ENTRY(rounds_of_a_while_prove_accesses),
          TEST_ENTRY(loops_may_be_left_early),
          TEST_ENTRY(facts_hold_for_the_workgroup_that_is_asked_for),
          TEST_ENTRY(survives_running_out_of_memory))
