/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/module.h"

#include "support/check.h"

static vyre_code parse(const char *text, size_t length, vyre_module **module,
                       vyre_diagnostics *found) {
  vyre_status st = {0};
  vyre_code code = vyre_module_parse(text, length, "t", (vyre_allocator){0},
                                     module, found, &st);
  CHECK(code == st.code);
  return code;
}

/* Returns the diagnostics of a text: "V030@3:13 V014@4:1", or "" if it is
 * valid. */
static const char *findings_of(const char *text, char *out, size_t size) {
  vyre_diagnostics found = {0};
  vyre_module *module;
  size_t length = 0;
  out[0] = '\0';
  vyre_code code = parse(text, strlen(text), &module, &found);
  if ((code == VYRE_OK) != (found.count == 0)) printf("    %s\n", text);
  CHECK((code == VYRE_OK) == (found.count == 0));
  for (size_t i = 0; i < found.count; i++) {
    const vyre_diagnostic *it = &found.items[i];
    CHECK(it->message[0] && it->fix[0] && vyre_rule_find(it->rule));
    length +=
        (size_t)snprintf(out + length, size - length, "%s%s@%u:%u",
                         length ? " " : "", it->rule, it->line, it->column);
    CHECK(length < size);
  }
  vyre_module_release(module);
  vyre_diagnostics_deinit(&found);
  return out;
}

typedef struct parse_case {
  const char *text, *findings;
} parse_case;

static void check_cases(const parse_case *cases, size_t count,
                        const char *before, const char *after) {
  char text[8192], out[2048];
  for (size_t i = 0; i < count; i++) {
    snprintf(text, sizeof text, "%s%s%s", before, cases[i].text, after);
    findings_of(text, out, sizeof out);
    if (strcmp(out, cases[i].findings) != 0) printf("    %s\n", cases[i].text);
    CHECK_TEXT(out, cases[i].findings);
  }
}

#define CHECK_CASES(cases, before, after) \
  check_cases(cases, sizeof(cases) / sizeof(cases)[0], before, after)

TEST(files) {
  static const parse_case cases[] = {
      {"", ""},
      {"// nothing\n", ""},
      {"const A = 1;", ""},
      {"const A : f64 = 1.0;", ""},
      {"const A = B * 2u; const B = C + 1; const C = 3u;", ""},
      {"fn f(a: u32) -> u32 { return g(a); } fn g(a: u32) -> u32 { return a; }",
       ""},
      {"kernel k {}", ""},
      {"kernel k workgroup(N, N * 2, 1) {} const N = 4;", ""},
      {"kernel k over(b) buffer b : read f32[] @0; {}", ""},
      {"kernel k queue(u32) { let ok = push(item); }", ""},
      {"kernel a {} kernel b {}", ""},
      {"kernel histogram buffer histogram : read u32[] @0; {}", ""},
      {"kernel k buffer output : write u32[] @0 output live_out align(64) "
       "coalesce(y) locality(temporal); {}",
       ""},
      {"kernel k buffer over : read u8[] @0; buffer queue : read bytes[] @1; "
       "{}",
       ""},
      {"garbage", "V016@1:1"},
      {"}", "V016@1:1"},
      {"kernel", "V013@1:7"},
      {"kernel 3 {}", "V013@1:8"},
      {"kernel u32 {}", "V033@1:8"},
      {"kernel k", "V013@1:9"},
      {"kernel k {", "V015@1:11"},
      {"kernel k { let a = 1; kernel l {}", "V015@1:23"},
      {"kernel k {} kernel k {}", "V031@1:20"},
      {"const k = 1; kernel k {}", "V031@1:21"},
      {"const a = 1; const a = 2;", "V031@1:20"},
      {"const a = a;", "V044@1:7"},
      {"const a", "V013@1:8"},
      {"const a = ;", "V013@1:11"},
      {"const a = 1\nconst b = 2;", "V014@1:12"},
      {"const int a = 1;", "V018@1:7"},
      {"const a : u32 = 1.0;", "V063@1:17"},
      {"const a = f(); fn f() -> u32 { return 1; }", "V090@1:11"},
      {"fn f() { }", ""},
      {"fn f(float a) -> f32 { return a; }", "V018@1:6"},
      {"fn f(a: float) -> f32 { return a; }", "V034@1:9"},
      {"fn f(a: u8) -> f32 { return a; }", "V034@1:9"},
      {"fn f(a: u32, a: u32) -> u32 { return a; }", "V031@1:14"},
      {"fn f() -> u32;", "V013@1:14"},
      {"fn f() -> u32 { return f(); }", "V045@1:24"},
      {"fn f() -> u32 { return g(); } fn g() -> u32 { return f(); }",
       "V045@1:54"},
      {"kernel k(x) {}", "V013@1:9"},
      {"kernel k; {}", "V013@1:9"},
      {"kernel k workgroup(1, 2, 3, 4) {}", "V042@1:29"},
      {"kernel k workgroup(1.0) {}", "V042@1:20"},
      {"kernel k workgroup(-1) {}", "V042@1:20"},
      {"kernel k workgroup(4294967296) {}", "V042@1:20"},
      {"kernel k worgroup(4) {}", "V013@1:10"},
      {"kernel k queue(int) {}", "V034@1:16"},
      {"kernel k buffer x : read f32 @0; {}", "V041@1:26"},
      {"kernel k buffer x : read flt[] @0; {}", "V034@1:26"},
      {"kernel k buffer x : reed f32[] @0; { let a = x[0]; }", "V040@1:21"},
      {"kernel k buffer x : read f32[] @0 ouput; {}", "V040@1:35"},
      {"kernel k buffer x : read f32[] @0 output output; {}", "V047@1:42"},
      {"kernel k buffer x : read f32[]; {}", "V039@1:31"},
      {"kernel k shared x : f32[4] @1; {}", "V039@1:28"},
      {"kernel k shared x : f32[]; {}", "V041@1:24"},
      {"kernel k shared x : f32; {}", "V041@1:21"},
      {"kernel k buffer x : read bytes[4] @0; {}", "V048@1:26"},
      {"kernel k uniform x : bytes @0; {}", "V048@1:22"},
      {"kernel k over(u) uniform u : f32 @0; {}", "V043@1:15"},
      {"#include <x>\nkernel k {}", "V009@1:1"},
      {"__kernel void k() {}", "V016@1:1"},
  };
  CHECK_CASES(cases, "", "");
}

#define HEAD                          \
  "const N = 4u;\n"                   \
  "kernel k\n"                        \
  "buffer x : read_write f32[] @0;\n" \
  "buffer c : read_write u32[] @1;\n" \
  "uniform a : f32 @2;\n"             \
  "{\n"

TEST(statements) {
  static const parse_case cases[] = {
      {"let i = 1; var j : u64 = 2; j += 3;", ""},
      {"{ let i = 1; } { let i = 2; }", ""},
      {"if (true) { let i = 1; } else { let i = 2; }", ""},
      {"if (true) return; else if (false) return; else return;", ""},
      {"for (let i = 0; i < 4; i++) { }", ""},
      {"for (let i : u64 = 4; i > 0; i -= 2) { continue; }", ""},
      {"for (let i = N; i >= 1; i--) break;", ""},
      {"while (a > 1.0) { break; }", ""},
      {"x[0] = a; x[global_id.x * 2] -= 1.0; c[1]++;", ""},
      {"atomic_add(c[0], 1); let o = atomic_compare_exchange(c[0], 1, 2);", ""},
      {"atomic_store(c[0], 1); let o = atomic_load(c[0]) + 1;", ""},
      {"barrier(); grid_barrier(); print(\"x\", 1, a, true);", ""},
      {"let p = a * -2.0 + -a; let q = !true || ~1 == 2;", ""},
      {"let p = -2147483648; let q = 4294967295u; let r = 1 << 31;", ""},
      {"let p = u32(a) + as_u32(a); let q = inf; let r = nan_f64;", ""},
      {"switch (global_id.x) { case 1: { if (a > 1.0) break; x[0] = a; break; "
       "} default: }",
       ""},
      {"switch (global_id.x) { case 1: { if (a > 1.0) break; return; } "
       "default: }",
       ""},
      {"switch (global_id.x) { case 1: { if (a > 1.0) break; x[0] = a; } "
       "default: }",
       "V091@7:66"},
      {"let s = 1\nlet t = 2;", "V014@7:10"},
      {"let s = 1 let t = 2;", "V014@7:10"},
      {"x[0] = 1.0\nbarrier();", "V014@7:11"},
      {"let s = 1 2;", "V014@7:11"},
      {"let s = ;", "V013@7:9"},
      {"let = 1;", "V013@7:5"},
      {"let s;", "V028@7:6"},
      {"var s : f32;", "V028@7:12"},
      {"var s[4];", "V098@7:6"},
      {"let a = 1;", "V031@7:5"},
      {"let s = 1; { let s = 2; }", "V031@7:18"},
      {"let N = 1;", "V032@7:5"},
      {"let if = 1;", "V033@7:5"},
      {"let u32 = 1;", "V033@7:5"},
      {"let s = s + 1;", "V030@7:9"},
      {"{ let s = 1; } let t = s;", "V030@7:24"},
      {";", "V013@7:1"},
      {"else return;", "V013@7:1"},
      {"if true { }", "V013@7:3"},
      {"if (true { }", "V015@7:10"},
      {"if (true", "V015@7:9"},
      {"return", "V014@7:7"},
      {"break;", "V088@7:1"},
      {"x[0];", "V027@7:1"},
      {"a + 1.0;", "V087@7:1"},
      {"x = 1.0;", "V035@7:1"},
      {"N = 1;", "V037@7:1"},
      {"fma = 1;", "V037@7:1"},
      {"i = 1; i = 2; i += i;", "V030@7:1"},
      {"a = 1.0;", "V071@7:1"},
      {"barrier;", "V013@7:8"},
      {"print(\"a\\q\");", "V012@7:9"},
      {"let t = \"a\";", "V055@7:9"},
      {" const M = 1; let t = M;", "V046@7:2"},
      {"buffer y : read f32[] @9;", "V046@7:1"},
  };
  CHECK_CASES(cases, HEAD, "\n}\n");
}

TEST(spellings_of_c_get_a_suggestion) {
  static const parse_case cases[] = {
      {"int i = 0; i++; x[i] = 1.0;", "V018@7:1"},
      {"float f = 1.0; x[0] = f;", "V018@7:1"},
      {"unsigned int i = 0; i++;", "V018@7:1"},
      {"u32 i = 0; i++;", "V018@7:1"},
      {"let int i = 0; x[i] = 1.0;", "V018@7:5"},
      {"float *p = x;", "V025@7:1"},
      {"*x = 1.0;", "V025@7:1"},
      {"let p = &x[0];", "V025@7:9"},
      {"atomic_add(&c[0], 1);", "V025@7:12"},
      {"for (int i = 0; i < 4; i++) { x[i] = a; }", "V018@7:6"},
      {"for (var i = 0; i < 4; i++) { x[i] = a; }", "V019@7:6"},
      {"for (let i = 0; i != 4; i++) { x[i] = a; }", "V019@7:19"},
      {"for (let i = 0; i < 4; i = i + 1) { x[i] = a; }", "V019@7:28"},
      {"for (let i = 0; i < 4; ++i) { x[i] = a; }", "V019@7:24"},
      {"for (let i = 0; i < 4; i--) { }", "V019@7:25"},
      {"for (let i = 0; i < 4 && true; i++) { }", "V019@7:23"},
      {"for (;;) { break; }", "V019@7:6"},
      {"for (let i = 0; i < 4; i += 0) { }", "V082@7:29"},
      {"let i = 1; i = i + 1;", "V066@7:12"},
      {"let b = 6 & 2 == 2;", "V023@7:11"},
      {"let b = 1 == 2 | true;", "V023@7:16"},
      {"let b = 1 < 2 < 3;", "V022@7:15"},
      {"let b = 1 == 2 == true;", "V022@7:16"},
      {"let b = (1 < 2) == true && (6 & 2) == 2;", ""},
      {"let t = a > 1.0 ? 1;", "V013@7:20"},
      {"let t = a > 1.0 ? 1 : 2.0;", "V062@7:19"},
      {"var i = 0; let j = i++;", "V021@7:21"},
      {"var i = 0; let j = ++i;", "V021@7:20"},
      {"var i = 0; ++i;", "V021@7:12"},
      {"var i = 0; if (i = 1) return;", "V020@7:18"},
      {"var i = 0; while (i = 1) { }", "V020@7:21"},
      {"var i = 0; var j = i = 1;", "V020@7:22"},
      {"let t = 'a';", "V008@7:9"},
      {"let t = (float)1;", "V024@7:9"},
      {"let t = (u32)a;", "V024@7:9"},
      {"let t = (unsigned int)a;", "V024@7:9"},
      {"#define M 4\nx[0] = a;", "V009@7:1"},
      {"return 1;", "V076@7:8"},
      {"let t = 1 && 2;", "V061@7:9"},
      {"let t = a * 2;", "V062@7:13"},
      {"x[0] = 1;", "V062@7:8"},
      {"x[0] = 1e-46;", "V064@7:8"},
      {"x[0] = -1e-400;", "V064@7:9"},
      {"x[0] = 1e-45 + 0e-999;", ""},
      {"count[0] = 1;", "V030@7:1"},
      {"count[0]++; count[1] += 2;", "V030@7:1"},
      {"goto end;", "V029@7:1"},
      {"let t = sin(1.0d);", "V061@7:13"},
      {"let t = fabs(1.0);", "V030@7:9"},
      {"let t = threadIdx.x;", "V030@7:9"},
      {"let t = global_id;", "V036@7:9"},
      {"let t = global_id.w;", "V036@7:19"},
      {"let t = global_id[0];", "V036@7:9"},
      {"let t = a.x;", "V036@7:10"},
      {"let t = x;", "V035@7:9"},
      {"let t = len(a, 1);", "V068@7:9"},
      {"let t = len(x[0]);", "V053@7:14"},
      {"let t = atomic_add(a, 1);", "V053@7:21"},
      {"let t = atomic_add(c[0]);", "V051@7:9"},
      {"let t = atomic_load(c[0], 1);", "V051@7:9"},
      {"atomic_store(c[0]);", "V051@7:1"},
      {"let t = atomic_store(c[0], 1);", "V057@7:9"},
      {"c[1] = 1 + atomic_store(c[0], 1);", "V057@7:12"},
      {"atomic_add(c[0], atomic_store(c[0], 1));", "V057@7:18"},
      {"atomic_store(c[0], 1) + 1;", "V057@7:1"},
      {"let t = max(1, 2, 3);", "V051@7:9"},
      {"let t = x[0, 1];", "V068@7:10"},
      {"let t = +1;", "V013@7:9"},
      {"let t = 1 + ;", "V013@7:13"},
      {"let t = k(1);", "V035@7:9"},
      {"let t = u8(1);", "V034@7:9"},
      {"let t = u32;", "V035@7:9"},
      {"let t = 08;", "V011@7:9"},
      {"let t = 1f;", "V011@7:9"},
      {"let t = global_id./*\n\n", "V006@7:19 V015@7:19 V036@11:1"},
  };
  CHECK_CASES(cases, HEAD, "\n}\n");
}

TEST(several_mistakes_are_reported_in_one_run) {
  static const parse_case cases[] = {
      {"let p = q;\nlet r = ;\nlet s = 1\nlet t = s + 1.0;\nlet u = p + t;",
       "V030@7:9 V013@8:9 V014@9:10 V063@10:13 V030@13:20 V013@14:11"},
      {"if (q) { let r = 1 }\nlet s = r2;",
       "V030@7:5 V014@7:19 V030@8:9 V030@10:20 V013@11:11"},
      {"let p = foo(1, bar);\nfoo(2);\nlet s = bar;",
       "V030@7:9 V030@7:16 V030@11:20 V013@12:11"},
      {"x[0] = 1.0 $ 2.0;\nx[1] = ();",
       "V005@7:12 V013@8:9 V030@10:20 V013@11:11"},
  };
  CHECK_CASES(cases, HEAD, "\n}\nkernel l { let v = w; }\nconst W = ;\n");
}

/* --- programs --------------------------------------------------------------*/

TEST(kernels_are_found_by_name_and_in_order) {
  static const char text[] =
      "kernel one workgroup(2, 3, 4) buffer b : read u8[7] @5; {}\n"
      "kernel two {}\n";
  vyre_module *module;
  CHECK(parse(text, sizeof text - 1, &module, NULL) == VYRE_OK);
  CHECK_U64(vyre_module_kernel_count(module), 2);
  CHECK(vyre_module_find(module, "two") == vyre_module_kernel(module, 1));
  CHECK(!vyre_module_find(module, "three") && !vyre_module_find(module, NULL));
  CHECK(!vyre_module_kernel(module, 2));
  vyre_program *one = vyre_program_retain(vyre_module_find(module, "one"));
  vyre_module_release(module);
  size_t count;
  const vyre_buffer_decl *b = vyre_program_buffers(one, &count);
  CHECK(count == 1 && b->binding == 5 && b->count == 7);
  CHECK(b->element == VYRE_ELEMENT_U8 && b->access == VYRE_ACCESS_READ);
  const uint32_t *size = vyre_program_workgroup(one);
  CHECK(size[0] == 2 && size[1] == 3 && size[2] == 4);
  vyre_program_release(one);
  vyre_module_release(NULL);
}

static bool same_program(const char *a, const char *b) {
  vyre_module *first, *second;
  CHECK(parse(a, strlen(a), &first, NULL) == VYRE_OK);
  CHECK(parse(b, strlen(b), &second, NULL) == VYRE_OK);
  bool same = vyre_program_equal(vyre_module_kernel(first, 0),
                                 vyre_module_kernel(second, 0));
  vyre_module_release(first);
  vyre_module_release(second);
  return same;
}

TEST(short_forms_are_the_long_ones) {
  static const struct {
    const char *a, *b;
  } cases[] = {
      {"var s = 1; s += 2; s++;", "var s = 1i; s = s + 2i; s = s + 1i;"},
      {"x[3] += 1.0;", "x[3u] = x[3u] + 1.0f;"},
      {"x[c[0]] *= 2.0;", "let i = c[0]; x[i] = x[i] * 2.0;"},
      {"if (true) x[0] = a;", "if (true) { x[0] = a[0]; }"},
      {"if (true) return; else { }", "if (true) { return; }"},
      {"x[N] = f(1.0);", "x[4u] = g(1.0);"},
      {"let v = 1 + 2 * 3 << 1 & 7;", "let w = ((1 + (2 * 3)) << 1u) & 7;"},
      {"let v = 1_0 + 0xA;", "let v = 10 + 0b1010;"},
      {"for (let i = 0; i < 3; i++) { }",
       "for (let j = 0i; j < 3i; j += 1) {}"},
  };
  char a[1024], b[1024];
  static const char more[] =
      "\n}\nfn f(v: f32) -> f32 { return v; }"
      "fn g(w: f32) -> f32 { return w; }";
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    snprintf(a, sizeof a, HEAD "%s%s", cases[i].a, more);
    snprintf(b, sizeof b, HEAD "%s%s", cases[i].b, more);
    if (!same_program(a, b)) printf("    %s\n", cases[i].a);
    CHECK(same_program(a, b));
  }
  CHECK(!same_program("kernel k { let a = 1; }", "kernel k { let a = 2; }"));
}

/* --- limits ----------------------------------------------------------------*/

static char *repeat(const char *before, const char *part, size_t count,
                    const char *after, size_t *length) {
  size_t first = strlen(before), size = strlen(part), last = strlen(after);
  *length = first + size * count + last;
  char *text = malloc(*length + 1);
  CHECK(text != NULL);
  memcpy(text, before, first + 1);
  for (size_t i = 0; i < count; i++) {
    memcpy(text + first + size * i, part, size + 1);
  }
  memcpy(text + first + size * count, after, last + 1);
  return text;
}

/* Checks the rule of the first diagnostic. */
static void check_first(char *text, size_t length, const char *rule) {
  vyre_diagnostics found = {0};
  vyre_module *module;
  CHECK(parse(text, length, &module, &found) == VYRE_INVALID_PROGRAM);
  CHECK_TEXT(found.items[0].rule, rule);
  vyre_diagnostics_deinit(&found);
  free(text);
}

TEST(untyped_consts_adapt_like_literals) {
  static const struct {
    const char *item, *use, *plain;
  } rows[] = {
      {"const C = 16;", "let t = global_id.x * C;",
       "let t = global_id.x * 16;"},
      {"const C = 4 * 4 - 1;", "let t : u64 = C;", "let t : u64 = 15;"},
      {"const C = 3; const D = C * C;", "let t = c[0] % D;",
       "let t = c[0] % 9;"},
      {"const C = -2;", "let t = 1l + C;", "let t = 1l + -2;"},
      {"const C = 5;", "let t = C;", "let t = 5;"},
      {"const C = 4294967295;", "let t = c[0] + C;",
       "let t = c[0] + 4294967295;"},
      {"const C = 65536 * 65536;", "let t = C;", "let t = 0i;"},
  };
  char own[1024], plain[1024];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(own, sizeof own, HEAD "%s\n}\n%s", rows[i].use, rows[i].item);
    snprintf(plain, sizeof plain, HEAD "%s\n}\n%s", rows[i].plain,
             rows[i].item);
    if (!same_program(own, plain)) printf("    %s\n", own);
    CHECK(same_program(own, plain));
  }
}

TEST(consts_in_float_expressions_get_a_cast) {
  static const parse_case cases[] = {
      {"let t = x[0] * W;", "V062@7:16"},
      {"let t = x[0] + f32(W);", ""},
  };
  CHECK_CASES(cases, HEAD, "\n}\nconst W = 3;\n");
}

TEST(too_much_of_everything_is_refused) {
  static const struct {
    const char *before, *part, *after, *rule;
    size_t count;
  } cases[] = {
      {"", " ", "", "V001", (16u << 20) + 1},
      {"kernel k { let a = ", "(", "1; }", "V026", 10000},
      {"kernel k { let a = ", "-", "1; }", "V021", 3},
      {"kernel k { let a = ", "- ", "a; }", "V026", 10000},
      {"kernel k { let a = ", "max(1,", "1; }", "V026", 10000},
      {"kernel k ", "{", "", "V026", 10000},
      {"kernel k { ", "if (true) ", "return; }", "V026", 10000},
      {"kernel k { if (true) return; ", "else if (true) return; ", "}", "V026",
       10000},
      {"kernel k { let a = 1", " + 1", "; }", "V089", 10000},
      {"kernel ", "k", " {}", "V010", 100000},
      {"const a = 1", "0", ";", "V010", 100000},
      {"kernel k { print(\"", "a", "); }", "V007", 100000},
      {"kernel k {} /*", "a", "", "V006", 100000},
      {"kernel k { let a = ", "a ? ", "a; }", "V030", 10000},
      {"", "{", "", "V016", 1u << 20},
      {"", "kernel k {", "", "V015", 1u << 20},
      {"", "fn ", "", "V033", 1u << 20},
      {"kernel k {", "let x = ; ", "}", "V013", 1u << 20},
      {"kernel k {", "x(", "}", "V030", 1u << 20},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    size_t length;
    char *text = repeat(cases[i].before, cases[i].part, cases[i].count,
                        cases[i].after, &length);
    check_first(text, length, cases[i].rule);
  }
}

TEST(long_chains_of_consts_are_refused) {
  char *text = malloc((size_t)64 * 10000);
  CHECK(text != NULL);
  size_t length = 0;
  for (int i = 0; i < 10000; i++) {
    length += (size_t)sprintf(text + length, "const c%d = c%d;\n", i, i + 1);
  }
  length += (size_t)sprintf(text + length, "const c10000 = 1;\n");
  check_first(text, length, "V026");
}

TEST(a_nul_byte_is_refused) {
  size_t length;
  char *text = repeat("kernel k", " ", 1, "{}", &length);
  text[8] = '\0';
  check_first(text, length, "V001");
}

TEST(many_names_are_parsed_in_linear_time) {
  size_t size = 8u << 20, length = 0;
  char *text = malloc(size + 64);
  CHECK(text != NULL);
  length += (size_t)sprintf(text, "kernel k {\n");
  for (int i = 0; length < size; i++) {
    length += (size_t)sprintf(text + length, "let n%d = m%d;\n", i, i);
  }
  length += (size_t)sprintf(text + length, "}\n");
  check_first(text, length, "V030");
}

/* More names than the symbol table holds at first, each seen first by
 * lookahead: pointers to symbols must not be kept across it. */
TEST(symbols_may_move_at_any_token) {
  size_t length = 0;
  char *text = malloc((size_t)64 * 5000);
  CHECK(text != NULL);
  length += (size_t)sprintf(text, "kernel k {\n");
  for (int i = 0; i < 5000; i++) {
    length += (size_t)sprintf(text + length, "u%d v%d; goto w%d;\n", i, i, i);
  }
  length += (size_t)sprintf(text + length, "}\n");
  check_first(text, length, "V030");
}

TEST(arguments_are_checked) {
  vyre_module *module;
  vyre_status st = {0};
  CHECK_FAILS(
      vyre_module_parse(NULL, 0, "t", (vyre_allocator){0}, &module, NULL, &st),
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK(module == NULL);
  /* The length is checked before the text is read. */
  CHECK(vyre_module_parse("kernel", SIZE_MAX, "t", (vyre_allocator){0}, &module,
                          NULL, &st) == VYRE_INVALID_PROGRAM);
  CHECK(module == NULL);
  st = (vyre_status){0};
  CHECK_FAILS(
      vyre_module_parse("", 0, "t", (vyre_allocator){0}, NULL, NULL, &st), st,
      VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
}

static const char sweep_text[] = HEAD
    "let i = global_id.x; var s = f(1.0);\n"
    "for (let j = 0; j < 4; j++) { s += a; x[i + 1] += s; }\n"
    "print(\"s = \", s); atomic_add(c[0], N);\n"
    "}\n"
    "fn f(v: f32) -> f32 { if (v > 1.0) return v; return g(v); }\n"
    "fn g(v: f32) -> f32 { return v * 2.0; }\n";

static vyre_code parse_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module;
  vyre_code code = vyre_module_parse(sweep_text, sizeof sweep_text - 1, "t",
                                     allocator, &module, NULL, st);
  vyre_module_release(module);
  return code;
}

TEST(missing_memory_is_reported) {
  CHECK(sweep_allocations(parse_scenario) > 10);
}

/* Diagnostics allocate too; the first failure is reported. */
TEST(missing_memory_is_reported_among_mistakes) {
  static const char text[] = HEAD "let p = q; let r = ; int i = 2; x = 3; }";
  for (long n = 0; n < 1000; n++) {
    test_heap heap = {.left = n};
    vyre_status st = {0};
    vyre_module *module;
    vyre_code code =
        vyre_module_parse(text, sizeof text - 1, "t",
                          test_heap_allocator(&heap), &module, NULL, &st);
    CHECK_U64(heap.live_bytes, 0);
    CHECK(!module && st.code == code && st.fix[0]);
    if (code == VYRE_INVALID_PROGRAM) return;
    CHECK(code == VYRE_OUT_OF_MEMORY);
  }
  CHECK(!"never enough memory");
}

TEST_MAIN(TEST_ENTRY(files), TEST_ENTRY(statements),
          TEST_ENTRY(spellings_of_c_get_a_suggestion),
          TEST_ENTRY(several_mistakes_are_reported_in_one_run),
          TEST_ENTRY(kernels_are_found_by_name_and_in_order),
          TEST_ENTRY(short_forms_are_the_long_ones),
          TEST_ENTRY(untyped_consts_adapt_like_literals),
          TEST_ENTRY(consts_in_float_expressions_get_a_cast),
          TEST_ENTRY(too_much_of_everything_is_refused),
          TEST_ENTRY(long_chains_of_consts_are_refused),
          TEST_ENTRY(a_nul_byte_is_refused),
          TEST_ENTRY(many_names_are_parsed_in_linear_time),
          TEST_ENTRY(symbols_may_move_at_any_token),
          TEST_ENTRY(arguments_are_checked),
          TEST_ENTRY(missing_memory_is_reported),
          TEST_ENTRY(missing_memory_is_reported_among_mistakes))
