/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/trip_count.h"

#include "analyze/inline/inline.h"
#include "analyze/walk.h"
#include "base/checked_math.h"
#include "base/memory.h"
#include "base/status.h"

enum { BREAKS = 1, CONTINUES = 2, RETURNS = 4 };

/* Loop iterations of a statement. */
typedef struct cost {
  uint64_t max;   /* upper bound; UINT64_MAX: unknown */
  uint64_t exact; /* exact number if the statement is reached, or
                   * VYRE__TRIP_COUNT_VARIES */
  unsigned jumps; /* possible jumps out of it */
} cost;

typedef struct finder {
  const vyre_program *program;
  const vyre__ranges *ranges;
  vyre__trip_count *loops;
} finder;

static cost cost_of(finder *f, vyre__id id);

/* Returns the cost of @p a followed by @p b. If @p a may jump, @p b may not be
 * reached. */
static cost sequence(cost a, cost b) {
  bool surely = a.jumps == 0 || b.exact == 0;
  return (cost){.max = vyre__add_saturated(a.max, b.max),
                .exact = surely ? vyre__add_saturated(a.exact, b.exact)
                                : VYRE__TRIP_COUNT_VARIES,
                .jumps = a.jumps | b.jumps};
}

/* Returns false for statements that neither loop nor jump. */
static bool may_loop_or_jump(unsigned op) {
  return op != VYRE__OP_LET && op != VYRE__OP_ASSIGN && op != VYRE__OP_STORE;
}

static cost cost_of_block(finder *f, const vyre__node *node) {
  cost all = {0};
  for (uint32_t i = 0; i < node->b; i++) {
    vyre__id id = f->program->lists[node->a + i];
    if (!may_loop_or_jump(f->program->nodes[id].op)) continue;
    all = sequence(all, cost_of(f, id));
  }
  return all;
}

static cost cost_of_if(finder *f, const vyre__node *node) {
  cost then = cost_of(f, node->b), other = {0};
  if (node->c) other = cost_of(f, node->c);
  return (cost){
      .max = then.max > other.max ? then.max : other.max,
      .exact = then.exact == other.exact ? then.exact : VYRE__TRIP_COUNT_VARIES,
      .jumps = then.jumps | other.jumps};
}

/* --- while (v > 0) { ..; v /= 2; } ---------------------------------------- */

static const vyre__node *node_of(const finder *f, vyre__id id) {
  return &f->program->nodes[id];
}

static bool is_local(const finder *f, vyre__id id, uint32_t local) {
  return node_of(f, id)->op == VYRE__OP_LOCAL && node_of(f, id)->a == local;
}

/* Returns true if @p id implies that an unsigned local is not 0, and returns
 * the local. *is_only: the reverse holds too. */
static bool tests_not_zero(const finder *f, vyre__id id, uint32_t *local,
                           bool *is_only) {
  const vyre__node *node = node_of(f, id);
  bool swaps = node->op == VYRE__OP_LT || node->op == VYRE__OP_LE;
  vyre__id left = swaps ? node->b : node->a, right = swaps ? node->a : node->b;
  bool equals = node->op == VYRE__OP_GE || node->op == VYRE__OP_LE;
  if (node->op != VYRE__OP_NE && node->op != VYRE__OP_GT && !equals && !swaps) {
    return false;
  }
  const vyre__node *v = node_of(f, left), *bound = node_of(f, right);
  if (v->op != VYRE__OP_LOCAL || bound->op != VYRE__OP_LITERAL) return false;
  if (v->type != VYRE_TYPE_U32 && v->type != VYRE_TYPE_U64) return false;
  uint64_t limit = vyre__literal(bound);
  if (equals && limit == 0) return false;
  if (node->op == VYRE__OP_NE && limit != 0) return false;
  *local = v->a;
  *is_only = limit == equals;
  return true;
}

static uint32_t count_assigns(const finder *f, vyre__id id, uint32_t local) {
  const vyre__node *node = node_of(f, id);
  if (node->op == VYRE__OP_ASSIGN) return node->a == local;
  if (vyre__ops[node->op].form < VYRE__FORM_LIST) return 0;
  uint32_t count = vyre__child_count(f->program, id), all = 0;
  for (uint32_t i = 0; i < count; i++) {
    all += count_assigns(f, vyre__child(f->program, id, i), local);
  }
  return all;
}

/* Returns the minimum number of bits by which v / c or v >> c shifts @p local;
 * 0 for another expression. *is_exact: the expression equals v >> that
 * number. */
static unsigned shift_of(const finder *f, vyre__id id, uint32_t local,
                         bool *is_exact) {
  const vyre__node *node = node_of(f, id);
  if (node->op != VYRE__OP_DIV && node->op != VYRE__OP_SHR) return 0;
  if (!is_local(f, node->a, local)) return 0;
  const vyre__node *by = node_of(f, node->b);
  if (by->op != VYRE__OP_LITERAL) return 0;
  uint64_t number = vyre__literal(by), bits = 0;
  if (node->op == VYRE__OP_SHR) {
    *is_exact = true;
    return number < 32 ? (unsigned)number : 0;
  }
  while (number >> bits > 1) bits++;
  *is_exact = number == UINT64_C(1) << bits;
  return (unsigned)bits;
}

/* Returns the maximum trip count of a `while` that halves the tested number in
 * every iteration. */
static uint64_t halvings(finder *f, vyre__id id, cost body) {
  const vyre__node *node = node_of(f, id), *block = node_of(f, node->b);
  vyre__trip_count *trip_count = &f->loops[id];
  uint32_t local;
  bool is_only, is_exact = false;
  if (node->aux == VYRE__WHILE_TESTS_INSIDE || body.jumps & CONTINUES ||
      block->op != VYRE__OP_BLOCK ||
      !tests_not_zero(f, node->a, &local, &is_only) ||
      count_assigns(f, node->b, local) != 1) {
    return UINT64_MAX;
  }
  for (uint32_t i = 0; i < block->b; i++) {
    const vyre__node *child = node_of(f, f->program->lists[block->a + i]);
    if (child->op != VYRE__OP_ASSIGN || child->a != local) continue;
    unsigned shift = shift_of(f, child->b, local, &is_exact);
    bool is_wide = f->program->functions[0].locals[local].type != VYRE_TYPE_U32;
    if (!shift) return UINT64_MAX;
    if (is_only && is_exact && !is_wide) {
      trip_count->shift = (uint8_t)shift;
      trip_count->halved = local;
    }
    return is_wide ? 64 : 32;
  }
  return UINT64_MAX;
}

static cost cost_of_loop(finder *f, vyre__id id) {
  const vyre__node *node = &f->program->nodes[id];
  bool is_for = node->op == VYRE__OP_FOR;
  cost body = cost_of(f, is_for ? vyre__for_of(f->program, id).body : node->b);
  unsigned jumps = body.jumps & RETURNS;
  if (is_for && node->c == VYRE__FOR_ONCE) { /* exists only as a target for
                                              * break */
    return (cost){body.max, body.exact, jumps};
  }
  bool is_left = (body.jumps & (BREAKS | RETURNS)) != 0;
  /* If the test of a while is code at the top of its body, loops in the test
   * run once more than loops in the rest, so the inner iterations vary. */
  bool tests_inside = !is_for && node->aux == VYRE__WHILE_TESTS_INSIDE;
  f->loops[id].inside = tests_inside ? VYRE__TRIP_COUNT_VARIES : body.exact;
  f->loops[id].exits_early = is_left;
  f->loops[id].shift = 0;
  if (!is_for) {
    uint64_t trips = halvings(f, id, body);
    f->loops[id].max = trips;
    return (cost){vyre__mul_saturated(trips, vyre__add_saturated(body.max, 1)),
                  VYRE__TRIP_COUNT_VARIES, jumps};
  }
  if (!(f->ranges->flags[id] & VYRE__RANGE_BOUNDED)) {
    return (cost){UINT64_MAX, VYRE__TRIP_COUNT_VARIES, jumps};
  }
  vyre__range trips = f->ranges->nodes[id];
  cost all = {
      .max = vyre__mul_saturated(trips.hi, vyre__add_saturated(body.max, 1)),
      .exact = VYRE__TRIP_COUNT_VARIES,
      .jumps = jumps};
  if (trips.hi == 0) {
    all.exact = 0;
  } else if (trips.lo == trips.hi && !is_left) {
    all.exact =
        vyre__mul_saturated(trips.hi, vyre__add_saturated(body.exact, 1));
  }
  return all;
}

static cost cost_of(finder *f, vyre__id id) {
  const vyre__node *node = &f->program->nodes[id];
  switch ((vyre__op)node->op) {
    case VYRE__OP_BLOCK:
      return cost_of_block(f, node);
    case VYRE__OP_IF:
      return cost_of_if(f, node);
    case VYRE__OP_FOR:
    case VYRE__OP_WHILE:
      return cost_of_loop(f, id);
    case VYRE__OP_BREAK:
      return (cost){.jumps = BREAKS};
    case VYRE__OP_CONTINUE:
      return (cost){.jumps = CONTINUES};
    case VYRE__OP_RETURN:
      return (cost){.jumps = RETURNS};
    default:
      return (cost){0};
  }
}

bool vyre__trip_count_find(const vyre_program *program,
                           const vyre__ranges *ranges, vyre_arena *arena,
                           vyre__trip_count **out, uint64_t *max) {
  finder f = {.program = program, .ranges = ranges};
  bool has_loop = false;
  *out = NULL;
  *max = 0;
  for (uint32_t i = 0; i < program->node_count && !has_loop; i++) {
    unsigned op = program->nodes[i].op;
    has_loop = op == VYRE__OP_FOR || op == VYRE__OP_WHILE;
  }
  if (!has_loop) return true;
  f.loops = vyre__arena_array(arena, program->node_count, sizeof *f.loops);
  if (!f.loops) return false;
  *out = f.loops;
  *max = cost_of(&f, program->functions[0].body).max;
  return true;
}

vyre_code vyre__trip_count_bound(const vyre_program *program,
                                 const uint32_t workgroup[3], uint64_t *max,
                                 vyre_status *st) {
  vyre_program *inlined;
  vyre__ranges ranges;
  vyre__trip_count *loops;
  vyre_arena scratch;
  *max = 0;
  VYRE_TRY(vyre__inline(program, program->arena.allocator, &inlined, st));
  vyre_arena_init(&scratch, program->arena.allocator);
  vyre_code code =
      vyre__ranges_build(inlined, workgroup, &scratch, &ranges, st);
  if (code == VYRE_OK &&
      !vyre__trip_count_find(inlined, &ranges, &scratch, &loops, max)) {
    code = vyre__no_memory(st, "vyre_dispatch", "loops", inlined->node_count);
  }
  vyre_arena_deinit(&scratch);
  vyre_program_release(inlined);
  return code;
}
