/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/module.h"

#include "support/check.h"

static const char *formatted(const char *text, vyre_arena *arena) {
  const char *out;
  size_t length;
  vyre_status st = {0};
  CHECK_OK(vyre_source_format(text, strlen(text), "f", arena, &out, &length,
                              NULL, &st),
           st);
  CHECK_U64(strlen(out), length);
  return out;
}

TEST(the_formatter_decides_the_layout) {
  static const struct {
    const char *text, *want;
  } cases[] = {
      {"", ""},
      {"\n\n", ""},
      {"// only a comment  ", "// only a comment\n"},
      {"const   A=1u;const B:u32=A+ 2 ;",
       "const A = 1u;\nconst B : u32 = A + 2;\n"},
      {"const a=- -1;const b=-2;const c=!true;const d=1- -2;",
       "const a = - -1;\nconst b = -2;\nconst c = !true;\nconst d = 1 - -2;\n"},
      {"fn f(a:f32,b:f32)->f32{return a+b;}",
       "fn f(a: f32, b: f32) -> f32 { return a + b; }\n"},
      {"fn f(a:f32)->f32{\nreturn a;}",
       "fn f(a: f32) -> f32 {\n    return a;\n}\n"},
      {"kernel k workgroup( 8,2 )over(x)buffer x:read f32[ ]@0;{}",
       "kernel k workgroup(8, 2) over(x)\nbuffer x : read f32[] @0;\n{}\n"},
      {"kernel k{let i=global_id . x;var s=0;s+=1;s++;}kernel l{}",
       "kernel k\n{\n    let i = global_id.x;\n    var s = 0;\n    s += 1;\n"
       "    s++;\n}\n\nkernel l\n{}\n"},
      {"kernel k{if(true)return;else{return;}}",
       "kernel k\n{\n    if (true) return; else { return; }\n}\n"},
      {"kernel k{if(true)\nreturn;\nelse\nreturn;}",
       "kernel k\n{\n    if (true)\n        return;\n    else\n        "
       "return;\n}\n"},
      {"kernel k{if(true){\nreturn;}\nelse if(false){\nreturn;}}",
       "kernel k\n{\n    if (true) {\n        return;\n    } else if (false) "
       "{\n        return;\n    }\n}\n"},
      {"kernel k{for(let i=0;i<4;i++){\n}while(true)break;}",
       "kernel k\n{\n    for (let i = 0; i < 4; i++) {}\n    while (true) "
       "break;\n}\n"},
      {"kernel k{let a=max(1,\n2);}",
       "kernel k\n{\n    let a = max(1,\n        2);\n}\n"},
      {"kernel k{print( \"a  b\",1 );barrier( );}",
       "kernel k\n{\n    print(\"a  b\", 1);\n    barrier();\n}\n"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_arena arena = {0};
    const char *once = formatted(cases[i].text, &arena);
    CHECK_TEXT(once, cases[i].want);
    CHECK_TEXT(formatted(once, &arena), once);
    vyre_arena_deinit(&arena);
  }
}

TEST(comments_stay_where_they_are) {
  static const char text[] =
      "/* a\n   b */\n"
      "const A = 1;// trailing\t\n"
      "\n\n\n"
      "// own\n"
      "kernel k // head\n"
      "buffer x:read f32[] @0; /* x */\n"
      "// before\n"
      "{ // open\n"
      "let a = 1; // one\n"
      "// two\n"
      "\n"
      "// three\n"
      "let b = a + /* mid */ 2 // four\n"
      "  + 3;\n"
      "if (true) { return; } // five\n"
      "// last\n"
      "}\n"
      "// end";
  static const char want[] =
      "/* a\n   b */\n"
      "const A = 1;  // trailing\n"
      "\n"
      "// own\n"
      "kernel k  // head\n"
      "buffer x : read f32[] @0; /* x */\n"
      "// before\n"
      "{  // open\n"
      "    let a = 1;  // one\n"
      "    // two\n"
      "\n"
      "    // three\n"
      "    let b = a + /* mid */ 2  // four\n"
      "        + 3;\n"
      "    if (true) { return; }  // five\n"
      "    // last\n"
      "}\n"
      "\n"
      "// end\n";
  vyre_arena arena = {0};
  const char *once = formatted(text, &arena);
  CHECK_TEXT(once, want);
  CHECK_TEXT(formatted(once, &arena), once);
  vyre_arena_deinit(&arena);
}

TEST(queue_kernels_are_laid_out) {
  static const char text[] =
      "kernel k queue(a:u32,b :f32)any pushes( 2 )\n{ push( a,b ) ; }\n"
      "kernel l queue(u32) set(9)by(item>4?item:0)\n{push(item);}\n"
      "kernel m queue(u32)once(9)\n{push(item);push(1);}pull{\n"
      "if(in_window(item)) push(item);push(item);}\n";
  static const char want[] =
      "kernel k queue(a: u32, b: f32) any pushes(2)\n"
      "{\n    push(a, b);\n}\n\n"
      "kernel l queue(u32) set(9) by(item > 4 ? item : 0)\n"
      "{\n    push(item);\n}\n\n"
      "kernel m queue(u32) once(9)\n"
      "{\n    push(item);\n    push(1);\n}\n"
      "pull {\n    if (in_window(item)) push(item);\n    push(item);\n}\n";
  vyre_arena arena = {0};
  const char *once = formatted(text, &arena);
  CHECK_TEXT(once, want);
  CHECK_TEXT(formatted(once, &arena), once);
  vyre_arena_deinit(&arena);
}

TEST(switches_and_do_loops_are_laid_out) {
  static const char text[] =
      "kernel k\nbuffer y:read_write u32[] @0;\n{\n"
      "switch(y[0]){case 1:case 2 :y[0]=1;break;\n"
      "case 3:\n// why\nif(y[1]==0){break;}\ny[1]=2;\nbreak;default:}\n"
      "do{y[0]--;}while(y[0]>9);\n"
      "do\ny[0]--;\nwhile(y[0]>2);\n"
      "for(let i=1u;i<9;i<<=1)y[i]=i>4?1:i>2?y[i]:0;\n}\n";
  static const char want[] =
      "kernel k\n"
      "buffer y : read_write u32[] @0;\n"
      "{\n"
      "    switch (y[0]) {\n"
      "        case 1: case 2: y[0] = 1; break;\n"
      "        case 3:\n"
      "            // why\n"
      "            if (y[1] == 0) { break; }\n"
      "            y[1] = 2;\n"
      "            break;\n"
      "        default:\n"
      "    }\n"
      "    do { y[0]--; } while (y[0] > 9);\n"
      "    do\n"
      "        y[0]--;\n"
      "    while (y[0] > 2);\n"
      "    for (let i = 1u; i < 9; i <<= 1) y[i] = i > 4 ? 1 : i > 2 ? y[i] : "
      "0;"
      "\n"
      "}\n";
  vyre_arena arena = {0};
  const char *once = formatted(text, &arena);
  CHECK_TEXT(once, want);
  CHECK_TEXT(formatted(once, &arena), once);
  vyre_arena_deinit(&arena);
}

TEST(invalid_text_is_refused) {
  vyre_arena arena = {0};
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  const char *out = "";
  size_t length = 1;
  CHECK_FAILS(
      vyre_source_format("kernel", 6, "f", &arena, &out, &length, &found, &st),
      st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK(!out && length == 0 && found.count == 1);
  vyre_diagnostics_deinit(&found);
  vyre_arena_deinit(&arena);
}

static vyre_code format_scenario(vyre_allocator allocator, vyre_status *st) {
  static const char text[] =
      "kernel k { let a = 1; if (a == 2) { return; } } // end\n";
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  const char *out;
  size_t length;
  vyre_code code = vyre_source_format(text, sizeof text - 1, "f", &arena, &out,
                                      &length, NULL, st);
  vyre_arena_deinit(&arena);
  return code;
}

TEST(missing_memory_is_reported) {
  CHECK(sweep_allocations(format_scenario) > 5);
}

TEST_MAIN(TEST_ENTRY(the_formatter_decides_the_layout),
          TEST_ENTRY(comments_stay_where_they_are),
          TEST_ENTRY(queue_kernels_are_laid_out),
          TEST_ENTRY(switches_and_do_loops_are_laid_out),
          TEST_ENTRY(invalid_text_is_refused),
          TEST_ENTRY(missing_memory_is_reported))
