/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every module is valid, as the validator of SPIR-V has it, and the same kernel
 * gives the same words. spirv_run_test.c runs them.
 *
 *   VYRE_SPIRV_SEED=42       only that random program
 *   VYRE_SPIRV_FIRST=7       the first one; VYRE_SPIRV_SEEDS=9 how many */
#include <glob.h>
#include <locale.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<spirv/unified1/spirv.h>)
#define HAS_HEADERS 1
#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.h>
#endif

#include "vyre/module.h"

#include "emit/spirv_internal.h"
#include "emit/spirv_targets_testing.h"
#include "lower/job_testing.h"
#include "lower/low_testing.h"
#include "support/text.h"

enum { SEEDS = 300 };


/* --- the tools of SPIR-V -----------------------------------------------------------*/

extern char **environ;

/* Runs @p command, found in the path; whether it ends well. */
static bool runs(char *const *command) {
  pid_t child;
  int status = 0;
  int error = posix_spawnp(&child, command[0], NULL, NULL, command, environ);
  if (error) printf("    there is no %s: install spirv-tools\n", command[0]);
  CHECK(error == 0);
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *file_of(const char *name) {
  static char paths[8][96];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "/tmp/vyre_spirv_test.%ld.%s",
           (long)getpid(), name);
  return path;
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  CHECK(file);
  CHECK(fwrite(bytes, 1, size, file) == size);
  CHECK(fclose(file) == 0);
}

static bool is_valid(const vyre__spirv_module *m) {
  const char *path = file_of("spv");
  write_file(path, m->words, m->word_count * 4);
  char *const command[] = {"spirv-val", "--target-env", "vulkan1.1",
                           (char *)path, NULL};
  bool good = runs(command);
  unlink(path);
  return good;
}

/* --- modules ---------------------------------------------------------------------------*/

static bool same_words(const vyre__spirv_module *a,
                       const vyre__spirv_module *b) {
  return a->word_count == b->word_count &&
         memcmp(a->words, b->words, a->word_count * 4) == 0;
}

/* Emits twice, validates. */
static unsigned check_program(vyre_program *program, const char *name,
                              const spirv_target *target) {
  vyre_arena arena;
  vyre_status st = {0};
  const vyre__low_kernel *k = NULL;
  vyre__spirv_module one, two;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__lower(program, &target->low, VYRE__PASS_CONTROL, &arena, &k,
                       NULL, &st),
           st);
  CHECK_OK(vyre__emit_spirv(k, &target->spirv, &arena, &one, &st), st);
  CHECK_OK(vyre__emit_spirv(k, &target->spirv, &arena, &two, &st), st);
  bool good = same_words(&one, &two) && is_valid(&one);
  if (!good) printf("    %s for %s\n", name, target->name);
  vyre_arena_finish(&arena);
  return !good;
}

TEST(examples_are_valid) {
  unsigned failed = 0;
  glob_t found;
  CHECK(glob(VYRE_EXAMPLES_DIR "/*.vyre", 0, NULL, &found) == 0);
  CHECK(found.gl_pathc >= 5);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    size_t length;
    char *bytes = read_file(found.gl_pathv[i], &length);
    vyre_module *module = NULL;
    vyre_status st = {0};
    CHECK_OK(vyre_module_parse(bytes, length, found.gl_pathv[i],
                               (vyre_allocator){0}, &module, NULL, &st),
             st);
    for (size_t k = 0; k < vyre_module_kernel_count(module); k++) {
      for (unsigned to = 0; to < SPIRV_TARGETS; to++) {
        failed += check_program(vyre_module_kernel(module, k),
                                found.gl_pathv[i], &spirv_targets[to]);
      }
    }
    vyre_module_release(module);
    free(bytes);
  }
  globfree(&found);
  CHECK_U64(failed, 0);
}

TEST(random_programs_are_valid) {
  uint64_t first = spirv_number("VYRE_SPIRV_FIRST", 0);
  uint64_t count = spirv_number("VYRE_SPIRV_SEEDS", SEEDS);
  unsigned failed = 0;
  if (getenv("VYRE_SPIRV_SEED")) {
    first = spirv_number("VYRE_SPIRV_SEED", 0);
    count = 1;
  }
  for (uint64_t seed = first; seed < first + count && failed < 10; seed++) {
    const spirv_target *target = &spirv_targets[seed % SPIRV_TARGETS];
    vyre_generated *g = spirv_generate(seed, target);
    char name[64];
    snprintf(name, sizeof name, "VYRE_SPIRV_SEED=%llu",
             (unsigned long long)seed);
    failed += check_program(vyre_generated_program(g), name, target);
    vyre_generated_release(g);
  }
  CHECK_U64(failed, 0);
}

TEST_MAIN(TEST_ENTRY(examples_are_valid), TEST_ENTRY(random_programs_are_valid))
