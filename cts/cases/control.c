/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: control flow. Each kernel gives one number per invocation, which C
 * code computes too. */
#include "cts/harness/small_kernels.h"

#define KERNEL(body)                \
  "kernel k workgroup(8) over(r)\n" \
  "buffer r : write u32[] @0;\n"    \
  "{\n    let i = global_id.x;\n" body "}\n"

static void if_else(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i % 3 == 0 ? i * 2 : i % 3 == 1 ? i + 100 : 7;
  }
}

static void nested_ifs(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = 0;
    if (i & 1) {
      if (i & 2) {
        want[i] = i & 4 ? 3 : 2;
      } else {
        want[i] = 1;
      }
    }
  }
}

static void for_up(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = 0;
    for (uint32_t k = i; k <= 40; k += 3) want[i] += k;
  }
}

static void for_down(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = 0;
    for (int32_t k = 20; k > (int32_t)i - 10; k -= 2) {
      want[i] = want[i] * 3 + (uint32_t)k;
    }
  }
}

/* The loop variable never wraps: the loop ends before a value that does not
 * fit. */
static void for_to_the_end(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = 5 + i % 3;
}

static void for_downs_end(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i % 4 + 1;
}

static void while_loop(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t n = i + 1;
    want[i] = 0;
    while (n != 1) {
      n = n % 2 ? 3 * n + 1 : n / 2;
      want[i]++;
    }
  }
}

static void jumps(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = 0;
    for (uint32_t a = 0; a < 10; a++) {
      if (a == i % 4) continue;
      for (uint32_t b = 0; b < 10; b++) {
        if (b > a) break;
        if ((a + b) % 3 == 0) continue;
        want[i] += a * 16 + b;
      }
      if (want[i] > 400 + i) break;
    }
  }
}

static void early_return(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i < 10 ? 1 : i < 20 && i % 2 ? 2 : i == 25 ? 9 : 3;
  }
}

static void short_circuit(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    /* The right-hand side counts how often it is evaluated. */
    want[i] = (i % 2 ? 0 : 1) + (i % 3 ? 0 : 10);
  }
}

static void conditional(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    /* Each side counts how often it is evaluated. */
    want[i] = i % 2 ? 1 : i % 3 ? 100 : 10;
  }
}

static void conditional_calls(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i < 3 ? 5 : i < 9 ? i * i : i % 2 ? 1 : 2;
  }
}

static void switch_arms(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    switch (i % 9) {
      case 0:
      case 4:
        want[i] = 1;
        break;
      case 2:
        want[i] = i > 20 ? 0 : 2;
        break;
      case 7:
        want[i] = i % 2 ? 31 : 30;
        break;
      default:
        want[i] = 9;
    }
  }
}

static void switch_breaks(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = 0;
    for (uint32_t k = 0; k < 12; k++) {
      switch (k + i) {
        case 3:
          if (i % 2) break;
          want[i] += 10;
          if (i % 4) {
            if (i % 3) break;
            want[i] += 100;
          }
          want[i] += 1000;
          break;
        case 5:
          continue;
        case 8:
          for (uint32_t m = 0; m < 5; m++) {
            if (m == i % 4) break;
            want[i] += 3;
          }
          break;
        case 11:
          if (i % 5 == 0) break;
          switch (k) {
            case 4:
              want[i] += 7;
              break;
            default:
              if (i % 2) break;
              want[i] += 70;
          }
          want[i] += 5;
          break;
        default:
          break;
      }
      want[i]++;
    }
  }
}

static void switch_of_many(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i < 30 ? (i * i) % 17 : 99;
}

static void do_loops(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t n = i, sum = 0;
    do {
      n++;
      if (n % 3 == 0) continue;
      sum += n;
      if (sum > 500) break;
    } while (n % 13 != 0);
    do {
      sum += 2;
    } while (sum % 8 > 1);
    want[i] = sum;
  }
}

static void geometric(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t sum = 0;
    for (uint32_t k = 1; k < i * 9; k *= 3) sum += k;
    for (uint32_t k = i; k > 0; k /= 2) sum = sum * 5 + k;
    for (int32_t k = 1; k <= 100; k <<= 2) {
      if (k == 16) continue;
      if ((uint32_t)k > i * 8) break;
      sum += (uint32_t)k;
    }
    want[i] = sum;
  }
}

static void functions(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t fib[2] = {0, 1};
    for (uint32_t k = 0; k < i % 20; k++) {
      uint32_t next = fib[0] + fib[1];
      fib[0] = fib[1];
      fib[1] = next;
    }
    want[i] = fib[0] + (i > 12 ? 12 : i);
  }
}

static void scopes(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i * 8 + 3;
}

static void outside_a_window(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i >= count / 10 && i < count / 10 + 5 ? 0 : i + 1;
  }
}

static void outside_a_signed_window(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i < 16 || i >= 24 ? i + 1 : 0;
}

/* 19 * 7 = 133 invocations leave 5 in the last workgroup of 64. */
static void one_for_all(uint32_t *want, uint32_t count) {
  static const uint32_t kept[] = {0, 20, 57, 361};
  for (uint32_t i = 0; i < count; i++) want[i] = kept[i % 4];
}

/* Rows of 64: the first and last row, and three columns, are not stored. */
static void border_of_zeros(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t x = i % 64, y = i / 64;
    want[i] = x < 2 || x == 63 || y < 1 || y >= 9 ? 0 : i + 1;
  }
}

static void nothing_written(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i == 3 ? 1 : 0;
}

/* All lanes of a workgroup return from loops in which single lanes continue. */
static void uniform_return(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i / 8 % 3 == 1 ? 0 : 7;
}

static void uniform_return_after_continue(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t group = i / 8 % 3;
    want[i] = group == 1 ? 0 : group == 2 || i % 8 == 5 ? 70 : 72;
  }
}

static void uniform_return_nested(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i / 8 % 3 == 1 ? 1 : i % 8 == 5 ? 72 : 272;
  }
}

static void uniform_return_in_divergent_if(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    want[i] = i / 8 % 3 == 1 && i % 8 < 4 ? 0 : 223;
  }
}

/* Every element has the sum of its workgroup: 7 iterations of 7 invocations, 3
 * times each. */
static void atomics_after_continue(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i % 8 == 0 ? 147 : 0;
}

/* Lanes leave the inner loop at different times. Each keeps its value until the
 * next iteration of the outer loop. */
static void value_kept_for_the_next_iteration(uint32_t *want, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) want[i] = i % 4 == 0 ? 507 : 9;
}

static const small_case cases[] = {
    {"value_kept_for_the_next_iteration",
     KERNEL("    var j = 1u;\n    var a = 0u;\n"
            "    for (let k = 0u; k < 2; k++) {\n"
            "        a = j;\n        j = 507;\n"
            "        for (let m = 0u; m < i % 4; m++) j = 9;\n    }\n"
            "    r[i] = a;\n"),
     100,
     {0},
     value_kept_for_the_next_iteration},
    {"value_kept_for_the_next_iteration_of_a_loop_further_out",
     KERNEL("    var j = 1u;\n    var a = 0u;\n"
            "    for (let k = 0u; k < 2; k++) {\n"
            "        a = j;\n"
            "        for (let n = 0u; n < 2; n++) {\n"
            "            j = 507;\n"
            "            for (let m = 0u; m < i % 4; m++) j = 9;\n        }\n"
            "    }\n"
            "    r[i] = a;\n"),
     100,
     {0},
     value_kept_for_the_next_iteration},
    {"atomics_in_a_loop_after_a_divergent_continue",
     "kernel k workgroup(8) over(r)\n"
     "buffer r : read_write u32[] @0 output;\n"
     "{\n    for (let a = 0u; a < 7; a++) {\n        barrier();\n"
     "        if (local_id.x == 7) continue;\n"
     "        for (let b = 0u; b < 3; b++) {\n"
     "            atomic_add(r[workgroup_id.x * 8], 1);\n        }\n"
     "    }\n}\n",
     80,
     {0},
     atomics_after_continue},
    {"uniform_return_before_continue",
     KERNEL("    for (let k = 0u; k < 2; k++) {\n"
            "        if (workgroup_id.x % 3 == 1) return;\n"
            "        if (local_id.x == 3) continue;\n    }\n"
            "    r[i] = 7;\n"),
     100,
     {0},
     uniform_return},
    {"uniform_return_after_continue",
     KERNEL("    var sum = 0u;\n"
            "    for (let k = 0u; k < 2; k++) {\n"
            "        if (workgroup_id.x % 3 == 2) continue;\n"
            "        if (workgroup_id.x % 3 == 1) return;\n"
            "        if (local_id.x == 5) continue;\n"
            "        sum++;\n    }\n"
            "    r[i] = sum + 70;\n"),
     100,
     {0},
     uniform_return_after_continue},
    {"uniform_return_from_an_inner_loop",
     KERNEL("    var sum = 0u;\n"
            "    for (let m = 0u; m < 2; m++) {\n"
            "        sum++;\n        if (m == 0) r[i] = sum;\n"
            "        for (let k = 0u; k < 2; k++) {\n"
            "            if (workgroup_id.x % 3 == 1) return;\n        }\n"
            "        if (local_id.x == 5) continue;\n"
            "        sum += 100;\n    }\n"
            "    r[i] = sum + 70;\n"),
     100,
     {0},
     uniform_return_nested},
    {"uniform_return_in_a_divergent_if",
     KERNEL("    var n = 0u;\n    var sum = 0u;\n"
            "    while (n < 3) {\n        n++;\n"
            "        if (local_id.x < 4) {\n"
            "            for (let k = 0u; k < 2; k++) {\n"
            "                if (workgroup_id.x % 3 == 1) return;\n"
            "                if (local_id.x == 1) continue;\n            }\n"
            "        }\n"
            "        sum += 50;\n    }\n"
            "    r[i] = sum + 70 + n;\n"),
     100,
     {0},
     uniform_return_in_divergent_if},
    {"if_else",
     KERNEL("    if (i % 3 == 0) r[i] = i * 2;\n"
            "    else if (i % 3 == 1) r[i] = i + 100;\n"
            "    else r[i] = 7;\n"),
     50,
     {0},
     if_else},
    {"nested_ifs",
     KERNEL("    var v = 0u;\n"
            "    if ((i & 1) != 0) { if ((i & 2) != 0) { if ((i & 4) != 0) v = "
            "3; else v = 2; } else v = 1; }\n"
            "    r[i] = v;\n"),
     33,
     {0},
     nested_ifs},
    {"for_up",
     KERNEL("    var sum = 0u;\n"
            "    for (let k = i; k <= 40; k += 3) sum += k;\n"
            "    r[i] = sum;\n"),
     50,
     {0},
     for_up},
    {"for_down",
     KERNEL("    var sum = 0u;\n"
            "    for (let k = 20i; k > i32(i) - 10; k -= 2) sum = sum * 3 + "
            "u32(k);\n"
            "    r[i] = sum;\n"),
     40,
     {0},
     for_down},
    {"for_ends_at_the_last_value",
     KERNEL("    var n = 0u;\n"
            "    for (let k = 0xFFFFFFFBu - i % 3; k <= 0xFFFFFFFFu; k++) "
            "n++;\n"
            "    r[i] = n;\n"),
     20,
     {0},
     for_to_the_end},
    {"for_down_ends_at_zero",
     KERNEL("    var n = 0u;\n"
            "    for (let k = i % 4; k >= 0; k--) n++;\n"
            "    r[i] = n;\n"),
     20,
     {0},
     for_downs_end},
    {"while",
     KERNEL("    var n = i + 1;\n    var steps = 0u;\n"
            "    while (n != 1) {\n"
            "        if (n % 2 == 1) n = 3 * n + 1; else n /= 2;\n"
            "        steps++;\n    }\n"
            "    r[i] = steps;\n"),
     60,
     {0},
     while_loop},
    {"break_and_continue",
     KERNEL("    var sum = 0u;\n"
            "    for (let a = 0u; a < 10; a++) {\n"
            "        if (a == i % 4) continue;\n"
            "        for (let b = 0u; b < 10; b++) {\n"
            "            if (b > a) break;\n"
            "            if ((a + b) % 3 == 0) continue;\n"
            "            sum += a * 16 + b;\n        }\n"
            "        if (sum > 400 + i) break;\n    }\n"
            "    r[i] = sum;\n"),
     50,
     {0},
     jumps},
    {"return",
     KERNEL("    r[i] = 1;\n    if (i < 10) return;\n"
            "    r[i] = 2;\n    if (i < 20 && i % 2 == 1) return;\n"
            "    r[i] = 3;\n"
            "    while (i == 25) { r[i] = 9; return; }\n"),
     40,
     {0},
     early_return},
    {"short_circuit",
     "kernel k workgroup(8) over(r)\n"
     "buffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n"
     "    if (i % 2 == 1 || atomic_add(r[i], 1) == 99) { }\n"
     "    if (i % 3 == 0 && atomic_add(r[i], 10) == 99) { }\n}\n",
     30,
     {0},
     short_circuit},
    {"conditional",
     "kernel k workgroup(8) over(r)\n"
     "buffer r : read_write u32[] @0 output;\n"
     "{\n    let i = global_id.x;\n"
     "    let v = i % 2 == 1 ? atomic_add(r[i], 1) : i % 3 == 0\n"
     "        ? atomic_add(r[i], 10) : atomic_add(r[i], 100);\n"
     "    if (v == 99) return;\n}\n",
     30,
     {0},
     conditional},
    {"conditional_with_calls",
     "fn square(a: u32) -> u32 {\n    return a == 0 ? 0 : a * a;\n}\n"
     "fn odd(a: u32) -> bool {\n    if (a % 2 == 0) return false;\n"
     "    return true;\n}\n" KERNEL(
         "    r[i] = i < 3 ? 5 : i < 9 ? square(i) : odd(i) ? 1 : 2;\n"),
     30,
     {0},
     conditional_calls},
    {"switch",
     KERNEL("    var v = 0u;\n"
            "    switch (i % 9) {\n"
            "        case 0: case 4: v = 1; break;\n"
            "        case 2: if (i > 20) return;\n            v = 2; break;\n"
            "        case 7:\n"
            "            if (i % 2 == 1) { v = 31; break; }\n"
            "            else { v = 30; break; }\n"
            "        default: v = 9;\n    }\n    r[i] = v;\n"),
     60,
     {0},
     switch_arms},
    {"switch_with_breaks_inside",
     KERNEL("    var v = 0u;\n"
            "    for (let k = 0u; k < 12; k++) {\n"
            "        switch (k + i) {\n"
            "            case 3:\n"
            "                if (i % 2 == 1) break;\n"
            "                v += 10;\n"
            "                if (i % 4 != 0) {\n"
            "                    if (i % 3 != 0) break;\n"
            "                    v += 100;\n                }\n"
            "                v += 1000;\n                break;\n"
            "            case 5: continue;\n"
            "            case 8:\n"
            "                for (let m = 0u; m < 5; m++) {\n"
            "                    if (m == i % 4) break;\n"
            "                    v += 3;\n                }\n"
            "                break;\n"
            "            case 11:\n"
            "                if (i % 5 == 0) break;\n"
            "                switch (k) {\n"
            "                    case 4: v += 7; break;\n"
            "                    default: if (i % 2 == 1) break;\n"
            "                        v += 70;\n                }\n"
            "                v += 5;\n                break;\n"
            "            default: break;\n        }\n"
            "        v++;\n    }\n    r[i] = v;\n"),
     60,
     {0},
     switch_breaks},
    {"switch_with_many_labels",
     KERNEL("    var v = 0u;\n    switch (i) {\n"
            "        case 0: v = 0; break; case 1: v = 1; break;\n"
            "        case 2: v = 4; break; case 3: v = 9; break;\n"
            "        case 4: v = 16; break; case 5: v = 8; break;\n"
            "        case 6: v = 2; break; case 7: v = 15; break;\n"
            "        case 8: v = 13; break; case 9: v = 13; break;\n"
            "        case 10: v = 15; break; case 11: v = 2; break;\n"
            "        case 12: v = 8; break; case 13: v = 16; break;\n"
            "        case 14: v = 9; break; case 15: v = 4; break;\n"
            "        case 16: v = 1; break; case 17: v = 0; break;\n"
            "        case 18: v = 1; break; case 19: v = 4; break;\n"
            "        case 20: v = 9; break; case 21: v = 16; break;\n"
            "        case 22: v = 8; break; case 23: v = 2; break;\n"
            "        case 24: v = 15; break; case 25: v = 13; break;\n"
            "        case 26: v = 13; break; case 27: v = 15; break;\n"
            "        case 28: v = 2; break; case 29: v = 8; break;\n"
            "        case 1000: default: v = 99;\n    }\n    r[i] = v;\n"),
     50,
     {0},
     switch_of_many},
    {"do",
     KERNEL("    var n = i;\n    var sum = 0u;\n"
            "    do {\n        n++;\n        if (n % 3 == 0) continue;\n"
            "        sum += n;\n        if (sum > 500) break;\n"
            "    } while (n % 13 != 0);\n"
            "    do sum += 2; while (sum % 8 > 1);\n"
            "    r[i] = sum;\n"),
     60,
     {0},
     do_loops},
    {"geometric_for",
     KERNEL("    var sum = 0u;\n"
            "    for (let k = 1u; k < i * 9; k *= 3) sum += k;\n"
            "    for (let k = i; k > 0; k /= 2) sum = sum * 5 + k;\n"
            "    for (let k = 1i; k <= 100; k <<= 2) {\n"
            "        if (k == 16) continue;\n"
            "        if (u32(k) > i * 8) break;\n"
            "        sum += u32(k);\n    }\n    r[i] = sum;\n"),
     60,
     {0},
     geometric},
    {"functions",
     "fn least(a: u32, b: u32) -> u32 {\n"
     "    if (a < b) return a;\n    return b;\n}\n"
     "fn fib(n: u32) -> u32 {\n"
     "    var a = 0u;\n    var b = 1u;\n"
     "    for (let k = 0u; k < n; k++) {\n"
     "        let next = a + b;\n        a = b;\n        b = next;\n    }\n"
     "    return a;\n}\n" KERNEL("    r[i] = fib(i % 20) + least(i, 12);\n"),
     40,
     {0},
     functions},
    {"scopes",
     KERNEL("    var v = i;\n"
            "    { let a = v * 2; v = a; }\n"
            "    { let a = v * 2; v = a + 1; }\n"
            "    { let a = v * 2; v = a + 1; }\n"
            "    r[i] = v;\n"),
     20,
     {0},
     scopes},
    {"outputs_begin_as_zeros",
     KERNEL("    if (i == 3) r[i] = 1;\n"),
     20,
     {0},
     nothing_written},
    {"elements_around_a_border_begin_as_zeros",
     "kernel k workgroup(16) over(r)\nbuffer r : write u32[] @0;\n"
     "{\n    let x = local_id.x;\n"
     "    let y = workgroup_id.x;\n"
     "    if (x != 0 || y < 1 || y >= 9) return;\n"
     "    for (let k = 2u; k < 63; k++) r[y * 64 + k] = y * 64 + k + 1;\n}\n",
     640,
     {0},
     border_of_zeros},
    /* The compared value wraps: the condition is true on both sides. */
    {"a_guard_that_holds_on_both_sides",
     KERNEL("    if (i - len(r) / 10 >= 5) r[i] = i + 1;\n"),
     100,
     {0},
     outside_a_window},
    {"a_signed_guard_that_holds_on_both_sides",
     KERNEL("    if (i32(i) + 2147483632 > -2147483641) r[i] = i + 1;\n"),
     100,
     {0},
     outside_a_signed_window},
    /* One invocation, not the first, stores to an element that all of them use.
     */
    {"one_invocation_stores_for_all",
     "kernel k workgroup(64) over(r)\nbuffer r : write u32[] @0;\n"
     "shared s : u32[4];\n"
     "{\n    let l = local_id.x;\n"
     "    if (l * 7 % 64 == 5) {\n"
     "        s[1] = l + 1;\n        s[2] = 3 * l;\n        s[3] = l * l;\n"
     "    }\n    barrier();\n    r[global_id.x] = s[l % 4];\n}\n",
     200,
     {0},
     one_for_all},
};

SMALL_AREA(control, "control flow");
