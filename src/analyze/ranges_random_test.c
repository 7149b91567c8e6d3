/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests that ranges are sound: operations on random numbers, and random
 * kernels that a simple interpreter runs. */
#include "analyze/ranges.h"
#include "analyze/walk.h"
#include "ir/scalar.h"
#include "support/author.h"
#include "support/check.h"
#include "support/sanitized.h"
#include "testing/random_programs.h"

/* --- intervals, operation by operation -------------------------------------*/

/* Returns a value of the type, mostly near its limits. */
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

/* Returns an interval of few or many values. */
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

/* --- random kernels --------------------------------------------------------*/

/* Simple interpreter for one invocation, and the facts that must hold. */
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

/* Returns the element, or NULL if out of bounds; checks the facts about the
 * access. */
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

/* @p is_small: most values in memory are below 13. */
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

typedef struct counts {
  uint64_t accesses, inside;
} counts;

/* Runs a generated kernel a few times. */
static void run_kernel(author *a, int times, bool is_small, counts *sum) {
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
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
}

TEST(ranges_hold_in_random_kernels) {
  static author a;
  counts sum = {0};
  seed_range seeds = test_seeds(1, SANITIZED ? 400 : 2000);
  for (uint64_t i = 0; i < seeds.count; i++) {
    write_kernel(&a, (seeds.first + i) * 0x9E3779B97F4A7C15u, 8, false);
    run_kernel(&a, 10, false, &sum);
  }
  /* Some accesses are proven. */
  CHECK(seeds.is_single || sum.inside * 20 > sum.accesses);
}

/* --- random guards ---------------------------------------------------------*/

/* Related guards and indices: P, Q, W are values, L is the length of a
 * buffer. Many kernels prove an access, more nearly do. */
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
    "P % 4 < 2",
    "(Q & 7) <= 3",
    "P < 8",
    "Q < 8 && Q <= P",
    "P < W && Q > 0 && Q < L / W",
    "P > 0 && P < W && Q + 1 < L / W",
    "s <= i32(P) && s >= -2",
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
    "P - P % 4 + 3",
    "P - (P & 3) + Q % 4",
    "2 * P - P % 8",
    "P / 4 * 4 + P % 4",
    "P % 4 * 4 + P / 4",
    "2 * P - (P & (v - 1)) + v",
    "2 * P - (P & Q)",
    "P - (P & (u - 1)) + u",
    "1u << (Q & 3)",
    "P + 2",
    "Q * W + P - 1",
    "Q * W + P - W",
    "Q * W + P + W",
    "Q * W - W + P - 1",
    "(P - Q) * 2 + Q",
    "P * 3 - Q * 2",
    "4 * Q - 1",
    "4 * Q + 7",
};
static const char *const index_forms[] = {
    "i32(P) - i32(P) % 4 + s",
    "i32(Q) * i32(W) + s - i32(W)",
    "min(s, i32(P))",
    "max(s, 0) - s % 4",
    "u64(P) - u64(P % 4) + u64(Q)",
    "u64(P * 2) - u64(P & Q)",
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

TEST(proofs_hold_in_guarded_kernels) {
  static author a;
  counts sum = {0};
  seed_range seeds = test_seeds(1, SANITIZED ? 500 : 4000);
  for (uint64_t i = 0; i < seeds.count; i++) {
    write_guarded(&a, (seeds.first + i) * 0x9E3779B97F4A7C15u);
    run_kernel(&a, 25, true, &sum);
  }
  CHECK(seeds.is_single || sum.inside * 4 > sum.accesses);
}

TEST_MAIN(TEST_ENTRY(intervals_hold_what_operations_give),
          TEST_ENTRY(ranges_hold_in_random_kernels),
          TEST_ENTRY(proofs_hold_in_guarded_kernels))
