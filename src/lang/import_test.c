/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Imports: a kernel is the same program as with the imported declarations in its
 * file, and each wrong import has its diagnostic. */
#include "vyre/vyre.h"

#include "support/check.h"
#include "support/text.h"

/* Files of a test: path, text, path, text, ... NULL. */
typedef struct file_set {
  const char *const *files;
  size_t reads;
  unsigned chain; /* 0.vyre imports 1.vyre and so on, so many files */
} file_set;

static bool read_file(void *context, const char *path, vyre_arena *arena,
                      const char **text, size_t *length) {
  file_set *set = context;
  set->reads++;
  for (size_t i = 0; set->files && set->files[i]; i += 2) {
    if (strcmp(set->files[i], path) != 0) continue;
    *text = set->files[i + 1];
    *length = strlen(*text);
    return true;
  }
  char *end;
  const unsigned long number = strtoul(path, &end, 10);
  if (set->chain == 0 || end == path) return false;
  char *made = vyre_arena_alloc(arena, 64, 1);
  if (!made) return false;
  snprintf(made, 64, "import \"%lu.vyre\"; const C%lu = 1;", number + 1,
           number);
  if (number == set->chain) snprintf(made, 64, "const LAST = 1;");
  *text = made;
  *length = strlen(made);
  return true;
}

static vyre_code parse(const char *text, file_set *set, vyre_module **out,
                       vyre_diagnostics *found) {
  static const char *const folders[] = {"lib", "/more/"};
  const vyre_module_options options = {.import_read = read_file,
                                       .import_context = set,
                                       .import_folders = folders,
                                       .import_folder_count = 2};
  vyre_status st = {0};
  return vyre_module_parse_with(text, strlen(text), "dir/main.vyre", &options,
                                (vyre_allocator){0}, out, found, &st);
}

#define KERNEL(body) \
  "kernel k workgroup(4)\nbuffer y : read_write f32[] @0;\n{\n" body "\n}\n"

static const char *const library[] = {
    "dir/geometry.vyre",
    ("const TWO = 2.0; const TABLE : u32[2] = {3, 4};\n"
     "struct pair { x : f32; y : f32; }\n"
     "fn twice(a: f32) -> f32 { return a * TWO; }\n"
     "kernel other buffer z : write f32[] @0; { z[0] = unknown; }"),
    "dir/sub/noise.vyre",
    ("import \"../geometry.vyre\" as g;\nimport \"hash.vyre\";\n"
     "fn value(a: f32) -> f32 { return g.twice(a) + hash(a); }\n"
     "struct pair { z : u32; }\n"
     "fn twice(p: pair) -> u32 { return p.z * 2; }"),
    "dir/sub/hash.vyre",
    "override SEED : f32 = 0.5; fn hash(x: f32) -> f32 { return x * SEED; }",
    "lib/far.vyre",
    "fn far(x: f32) -> f32 { return x; }",
    "/more/farther.vyre",
    "import \"far.vyre\"; fn farther(x: f32) -> f32 { return far(x); }",
    "dir/empty.vyre",
    "",
    "dir/bom.vyre",
    ("\xEF\xBB\xBF"
     "const BOM = 7;"),
    "dir/cycle.vyre",
    "import \"main.vyre\";",
    "dir/wrong.vyre",
    ("fn fine(x: f32) -> f32 { return x; }\n"
     "fn wrong(x: f32) -> f32 {\n  return x + 1;\n}"),
    "dir/open.vyre",
    "fn open(x: f32) -> f32 { return x; /*",
    "dir/bad.vyre",
    "const A = \"\xFF\";",
    NULL};

TEST(imports_equal_declarations_in_the_file) {
  static const struct {
    const char *imports, *plain, *body;
  } rows[] = {
      {"import \"geometry.vyre\";",
       "const TWO = 2.0; fn twice(a: f32) -> f32 { return a * TWO; } "
       "struct pair { x : f32; y : f32; } const TABLE : u32[2] = {3, 4};",
       "let p = pair{x: TWO}; y[0] = twice(p.x); y[TABLE[1]] = 1.0;"},
      {"import \"far.vyre\"; import \"farther.vyre\";",
       "fn far(x: f32) -> f32 { return x; } "
       "fn farther(x: f32) -> f32 { return far(x); }",
       "y[0] = far(1.0) + farther(2.0);"},
      {"import \"empty.vyre\"; import \"bom.vyre\";", "const BOM = 7;",
       "y[BOM] = 1.0;"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char own[1024], plain[1024];
    file_set set = {.files = library};
    vyre_module *a = NULL, *b = NULL;
    snprintf(own, sizeof own, "%s\n" KERNEL("%s"), rows[i].imports,
             rows[i].body);
    snprintf(plain, sizeof plain, "%s\n" KERNEL("%s"), rows[i].plain,
             rows[i].body);
    CHECK(parse(own, &set, &a, NULL) == VYRE_OK);
    CHECK(parse(plain, &set, &b, NULL) == VYRE_OK);
    CHECK_U64(vyre_module_kernel_count(a), 1);
    CHECK(
        vyre_program_equal(vyre_module_kernel(a, 0), vyre_module_kernel(b, 0)));
    vyre_module_release(a);
    vyre_module_release(b);
  }
}

TEST(names_belong_to_files) {
  static const char text[] =
      "import \"geometry.vyre\";\nimport \"sub/noise.vyre\" as noise;\n"
      "fn hash(x: u32) -> u32 { return x; }\n" KERNEL(
          "let value = pair{x: noise.value(1.0)};\n"
          "let q = noise.pair{z: hash(3)};\n"
          "y[noise.twice(q)] = twice(value.x);");
  file_set set = {.files = library};
  vyre_module *module = NULL, *again = NULL;
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  CHECK(parse(text, &set, &module, &found) == VYRE_OK);
  CHECK_U64(set.reads, 3); /* each file once */
  vyre_program *program = vyre_module_kernel(module, 0);
  CHECK_OK(vyre_program_validate(program, NULL, &st), st);
  growing_text printed = {0};
  CHECK(vyre_program_print(program, growing_writer(&printed)));
  CHECK_OK(vyre_module_parse(printed.bytes, printed.length, "again",
                             (vyre_allocator){0}, &again, NULL, &st),
           st);
  CHECK(vyre_program_equal(program, vyre_module_kernel(again, 0)));
  free(printed.bytes);
  vyre_module_release(module);
  vyre_module_release(again);
}

/* Checks the first diagnostic: "file:line:column rule", and a part of its
 * message. */
static void check_wrong(const char *text, file_set *set, const char *place,
                        const char *part) {
  vyre_module *module = NULL;
  vyre_diagnostics found = {0};
  char own[256] = "none";
  CHECK(parse(text, set, &module, &found) == VYRE_INVALID_PROGRAM);
  const vyre_diagnostic *d = found.items;
  if (found.count > 0) {
    snprintf(own, sizeof own, "%s:%u:%u %s",
             d->files && d->files->file ? d->files->file : "main",
             (unsigned)d->line, (unsigned)d->column, d->rule);
    if (!strstr(d->message, part)) printf("    %s\n", d->message);
    CHECK(strstr(d->message, part) && d->fix[0]);
  }
  CHECK_TEXT(own, place);
  vyre_diagnostics_deinit(&found);
}

TEST(wrong_imports_are_reported) {
  static const struct {
    const char *items, *body, *place, *part;
  } rows[] = {
      {"import \"../x.vyre\";", "", "main:1:8 V094", "leaves the folder 'dir'"},
      {"import \"sub/../../x.vyre\";", "", "main:1:8 V094", "leaves"},
      {"import \"/etc/passwd\";", "", "main:1:8 V094", "relative"},
      {"import \"a\\\\b\";", "", "main:1:8 V094", "relative"},
      {"import \"\";", "", "main:1:8 V094", "relative"},
      {"import \"sub/\";", "", "main:1:8 V094", "relative"},
      {"import \"nope.vyre\";", "", "main:1:8 V094",
       "cannot read 'dir/nope.vyre', 'lib/nope.vyre', '/more/nope.vyre'"},
      {"import noise;", "", "main:1:8 V094", "names a file"},
      {"import \"cycle.vyre\";", "", "dir/cycle.vyre:1:8 V094",
       "dir/main.vyre -> dir/cycle.vyre -> dir/main.vyre"},
      {"import \"main.vyre\";", "", "main:1:8 V094",
       "dir/main.vyre -> dir/main.vyre"},
      {"import \"bad.vyre\";", "", "main:1:8 V094", "UTF-8"},
      {"import \"wrong.vyre\";", "", "dir/wrong.vyre:3:14 V062", "literal"},
      {"import \"open.vyre\";", "", "dir/open.vyre:1:35 V015",
       "end of the file"},
      {"import \"far.vyre\" as f32;", "", "main:1:22 V033", "word"},
      {"import \"far.vyre\"", "", "main:1:18 V014", "';'"},
      {"import \"geometry.vyre\"; const TWO = 1.0;", "", "main:1:8 V031",
       "'TWO', declared in dir/geometry.vyre:1"},
      {"import \"geometry.vyre\"; import \"sub/noise.vyre\";", "",
       "main:1:32 V031", "'pair', declared in dir/sub/noise.vyre:4"},
      {"import \"far.vyre\" as a; import \"bom.vyre\" as a;", "",
       "main:1:46 V031", "already has a meaning"},
      {"import \"far.vyre\" as far;", "y[0] = far(1.0);", "main:5:8 V030",
       "imported file"},
      {"import \"far.vyre\" as f;", "y[0] = f.fra(1.0);", "main:5:8 V030",
       "'f.fra' is not declared"},
      {"import \"far.vyre\" as f;", "y[0] = far(1.0);", "main:5:8 V030",
       "'far' is not declared"},
      {"import \"far.vyre\" as f;", "let f = 1.0;", "main:5:5 V032", "import"},
      {"import \"farther.vyre\";", "y[0] = far(1.0);", "main:5:8 V030",
       "'far' is not declared"},
      {"import \"geometry.vyre\";", "let TWO = 1;", "main:5:5 V032", "hide"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[1024];
    file_set set = {.files = library};
    snprintf(text, sizeof text, "%s\n" KERNEL("%s"), rows[i].items,
             rows[i].body);
    check_wrong(text, &set, rows[i].place, rows[i].part);
  }
}

TEST(imports_have_limits) {
  static const char text[] = "import \"0.vyre\";\n" KERNEL("y[0] = 1.0;");
  for (unsigned chain = 61; chain < 65; chain++) {
    const bool is_good = chain <= 62;
    file_set set = {.chain = chain};
    const vyre_module_options options = {.import_read = read_file,
                                         .import_context = &set};
    vyre_module *module = NULL;
    vyre_diagnostics found = {0};
    vyre_status st = {0};
    const vyre_code code =
        vyre_module_parse_with(text, sizeof text - 1, "m", &options,
                               (vyre_allocator){0}, &module, &found, &st);
    CHECK(code == (is_good ? VYRE_OK : VYRE_INVALID_PROGRAM));
    if (!is_good) CHECK(strstr(found.items[0].message, "more than 64"));
    vyre_module_release(module);
    vyre_diagnostics_deinit(&found);
  }
  char many[16384] = "";
  for (unsigned i = 0; i < 300; i++) {
    snprintf(many + strlen(many), sizeof many - strlen(many),
             "import \"%u.txt\";\n", 1000 + i);
  }
  file_set wide = {.chain = 1};
  vyre_diagnostics found = {0};
  vyre_module *module = NULL;
  vyre_status st = {0};
  const vyre_module_options options = {.import_read = read_file,
                                       .import_context = &wide};
  CHECK(vyre_module_parse_with(many, strlen(many), "m", &options,
                               (vyre_allocator){0}, &module, &found,
                               &st) == VYRE_INVALID_PROGRAM);
  vyre_diagnostics_deinit(&found);
}

TEST(imports_need_a_reader) {
  static const char text[] = "import \"far.vyre\";\n" KERNEL("y[0] = 1.0;");
  vyre_module *module;
  vyre_status st = {0};
  CHECK(vyre_module_parse(text, sizeof text - 1, "m", (vyre_allocator){0},
                          &module, NULL, &st) == VYRE_INVALID_PROGRAM);
  CHECK(strstr(st.message, "imports need a function") && !module);
  CHECK(strstr(st.fix, "import_read"));
}

TEST(positions_of_programs_are_in_their_files) {
  static const char *const files[] = {"dir/lib.vyre",
                                      "// one\nfn put(x: write f32[], i: u32) "
                                      "{\n  x[i] = 1.0;\n  barrier();\n}",
                                      NULL};
  static const char text[] =
      "import \"lib.vyre\";\n" KERNEL("if (local_id.x == 0) { put(y, 7); }");
  file_set set = {.files = files};
  vyre_module *module = NULL;
  vyre_diagnostics found = {0};
  vyre_status st = {0};
  CHECK(parse(text, &set, &module, NULL) == VYRE_OK);
  vyre_program *program = vyre_module_kernel(module, 0);
  CHECK(vyre_program_validate(program, &found, &st) == VYRE_INVALID_PROGRAM);
  const vyre_diagnostic *d = &found.items[0];
  CHECK_TEXT(d->rule, "V100");
  const bool at = d->files && d->files->file;
  const bool note = d->files && d->files->note_file;
  CHECK(at || note);
  CHECK_TEXT(at ? d->files->file : d->files->note_file, "dir/lib.vyre");
  CHECK_U64(at ? d->line : d->note_line, 4);
  CHECK_TEXT(at ? d->files->text : d->files->note_text, "  barrier();");
  vyre_diagnostics_deinit(&found);
  vyre_module_release(module);
}

TEST(names_of_imports_are_in_the_index) {
  static const char text[] =
      "import \"sub/noise.vyre\" as noise;\nimport \"geometry.vyre\";\n" KERNEL(
          "y[0] = noise.value(TWO);");
  file_set set = {.files = library};
  const vyre_module_options options = {.import_read = read_file,
                                       .import_context = &set};
  vyre_arena arena = {0};
  vyre_source_index index;
  vyre_status st = {0};
  CHECK_OK(vyre_source_index_build_with(text, sizeof text - 1, "dir/main.vyre",
                                        &options, &arena, &index, &st),
           st);
  size_t seen = 0;
  for (size_t i = 0; i < index.use_count; i++) {
    const vyre_symbol_use *use = &index.uses[i];
    const vyre_symbol *symbol = &index.symbols[use->symbol];
    if (use->line != 6 || !symbol->file) continue;
    seen++;
    const bool is_value = strcmp(symbol->name, "value") == 0;
    CHECK_U64(use->column, is_value ? 14 : 20);
    CHECK_U64(use->length, is_value ? 5 : 3);
    CHECK_TEXT(symbol->file,
               is_value ? "dir/sub/noise.vyre" : "dir/geometry.vyre");
    CHECK_U64(symbol->line, is_value ? 3 : 1);
  }
  CHECK_U64(seen, 2);
  vyre_arena_deinit(&arena);
}

static vyre_code whole_life(vyre_allocator allocator, vyre_status *st) {
  static const char text[] =
      "import \"geometry.vyre\";\nimport \"sub/noise.vyre\" as noise;\n" KERNEL(
          "y[0] = twice(noise.value(TWO));");
  file_set set = {.files = library};
  const vyre_module_options options = {.import_read = read_file,
                                       .import_context = &set};
  vyre_module *module;
  const vyre_code code =
      vyre_module_parse_with(text, sizeof text - 1, "dir/main.vyre", &options,
                             allocator, &module, NULL, st);
  vyre_module_release(module);
  return code;
}

TEST(missing_memory_is_reported) {
  CHECK(sweep_allocations(whole_life) > 5);
}

TEST_MAIN(TEST_ENTRY(imports_equal_declarations_in_the_file),
          TEST_ENTRY(names_belong_to_files),
          TEST_ENTRY(wrong_imports_are_reported),
          TEST_ENTRY(imports_have_limits), TEST_ENTRY(imports_need_a_reader),
          TEST_ENTRY(positions_of_programs_are_in_their_files),
          TEST_ENTRY(names_of_imports_are_in_the_index),
          TEST_ENTRY(missing_memory_is_reported))
