/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dladdr: the file of LLVM */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "backend/cpu/jit/llvm_compile.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vyre/device.h"

#include "backend/cpu/jit/llvm_c.h"
#include "backend/cpu/jit/llvm_compile_testing.h"
#include "backend/cpu/jit/llvm_file_testing.h"
#include "support/check.h"
#include "support/text.h"

static vyre_code compile_text(const char *text, const char *features,
                              vyre__jit_tier tier, vyre__jit_form form,
                              code_bytes *out, vyre_status *st) {
  return vyre__jit(text, strlen(text), CODE_CPU, features, tier, form,
                   code_writer(out), st);
}

/* Must be the first case: LLVM is not loaded yet. */
TEST(without_llvm_the_status_names_the_package) {
  vyre_status st = {0};
  CHECK(vyre__jit_version() == NULL);
  CHECK_FAILS(vyre__jit_load_from("none", &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, "'none'");
  CHECK_HAS(st.fix, "apt-get install libllvm19");
  st = (vyre_status){0};
  CHECK_FAILS(vyre__jit_load_from("/nowhere/libLLVM.so", &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, "/nowhere/libLLVM.so': it cannot be read");
  CHECK_HAS(st.fix, "device 'ref'");
  st = (vyre_status){0};
  CHECK_FAILS(vyre__jit_load_from("libc.so.6", &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, "no function LLVM"); /* loaded in every process */
  st = (vyre_status){0};
  CHECK_FAILS(vyre__jit_load_from("libresolv.so.2", &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, "'libresolv.so.2' has no function LLVM");
  CHECK(!vyre__jit_is_available("none"));
  CHECK(!vyre__jit_is_available("/nowhere/libLLVM.so"));
  CHECK(vyre__jit_is_available(NULL)); /* without loading it */
  CHECK(vyre__jit_version() == NULL);
}

/* A temporary folder, made on first use and removed at the end. */
static char folder[64], in_file[80];
static pid_t owner; /* process that made it; children leave it alone */

static const char *const parts[] = {"cut", "whole", "other"};
static const char *const part_files[] = {"libvyre_case.so", "libLLVM.so.19.1",
                                         "libLLVM-19.so.1", "libLLVM-19.so"};
enum {
  PARTS = sizeof parts / sizeof *parts,
  PART_FILES = sizeof part_files / sizeof *part_files
};

static void part_path(char to[160], int part, int file) {
  (void)snprintf(to, 160, "%s/%s/%s", folder, parts[part], part_files[file]);
}

static void remove_folder(void) {
  if (getpid() != owner) return;
  char path[160];
  for (int i = 0; i < PARTS; i++) {
    for (int k = 0; k < PART_FILES; k++) {
      part_path(path, i, k);
      (void)remove(path);
    }
    (void)snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
    (void)remove(path);
  }
  (void)remove(in_file);
  (void)remove(folder);
}

static const char *file_name(void) {
  if (folder[0]) return in_file;
  const char *base = getenv("TMPDIR");
  (void)snprintf(folder, sizeof folder, "%.32s/vyre-codegen-XXXXXX",
                 base && strlen(base) <= 32 ? base : "/tmp");
  owner = getpid();
  CHECK(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
  (void)snprintf(in_file, sizeof in_file, "%s/library", folder);
  return in_file;
}

static const char *problem_of(const void *bytes, size_t size) {
  CHECK(tiny_write(file_name(), bytes, size));
  const char *found = vyre__jit_problem(in_file);
  return found ? found : "";
}

static tiny_library like_llvm(void) {
  return tiny_make("libnowhere.so.1", "LLVMGetVersion",
                   "LLVMInitializeX86Target");
}

TEST(a_file_that_is_not_llvm_is_rejected_unloaded) {
  static char text[200] = "LLVMGetVersion";
  tiny_library good = like_llvm();
  tiny_library arm = good, program = good;
  arm.header.e_machine = EM_AARCH64;
  program.header.e_type = ET_EXEC;
  const struct {
    const char *what;
    const void *bytes;
    size_t size;
    const char *problem;
  } cases[] = {
      {"complete", &good, sizeof good, ""},
      {"cut", &good, sizeof good - 1, "it is truncated or damaged"},
      {"cut in its head", &good, 40, "it is not a shared library"},
      {"for ARM", &arm, sizeof arm, "it is built for another architecture"},
      {"a program", &program, sizeof program, "it is not a shared library"},
      {"text", text, sizeof text, "it is not a shared library"},
      {"empty", text, 0, "it is not a shared library"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *problem = problem_of(cases[i].bytes, cases[i].size);
    CHECK_TEXT(problem, cases[i].problem);
    if (strcmp(problem, cases[i].problem) != 0)
      printf("    %s\n", cases[i].what);
    CHECK(
        !vyre__jit_is_available(in_file)); /* the complete one needs another */
  }
  CHECK_TEXT(vyre__jit_problem("/"), "it is not a shared library");
  CHECK(vyre__jit_version() == NULL);
  (void)remove(in_file);
}

/* The number of program headers is not limited. */
TEST(a_library_with_many_headers_is_left_to_the_loader) {
  struct {
    tiny_library first;
    Elf64_Phdr headers[100];
  } file = {.first = like_llvm()};
  for (size_t i = 0; i < 100; i++) file.headers[i].p_type = PT_NOTE;
  file.headers[98] = file.first.load;
  file.headers[99] = file.first.dynamic;
  file.first.header.e_phoff = (size_t)((char *)file.headers - (char *)&file);
  file.first.header.e_phnum = 100;
  CHECK_TEXT(problem_of(&file, sizeof file), "");
  file.headers[98].p_filesz = sizeof file + 1;
  CHECK_TEXT(problem_of(&file, sizeof file), "it is truncated or damaged");
}

/* Whatever the bytes are, nothing outside the file is read, and the check
 * ends. */
TEST(a_corrupt_library_is_read_safely) {
  const tiny_library good = like_llvm();
  unsigned char bytes[sizeof good];
  size_t rejected = 0;
  for (size_t at = 0; at < sizeof good; at++) {
    memcpy(bytes, &good, sizeof good);
    bytes[at] ^= 0xFF;
    rejected += problem_of(bytes, sizeof bytes)[0] != '\0';
  }
  CHECK(rejected > 30 && rejected < sizeof good);
  for (size_t size = 0; size < sizeof good; size += 7) {
    CHECK(problem_of(&good, size)[0] != '\0');
  }
  (void)remove(in_file);
}

/* The failure shows when the library is loaded, and is remembered. */
TEST(a_library_that_does_not_load_is_not_found_again) {
  const tiny_library good = like_llvm();
  vyre_status st = {0};
  CHECK(tiny_write(file_name(), &good, sizeof good));
  CHECK_FAILS(vyre__jit_load_from(in_file, &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK_HAS(st.message, in_file);
  CHECK_HAS(st.message, "libnowhere.so.1");
  CHECK_HAS(st.fix, "device 'ref'");
  CHECK(!vyre__jit_is_available(in_file));
  CHECK(vyre__jit_is_available(NULL));
  CHECK(vyre__jit_version() == NULL);
  (void)remove(in_file);
}

static size_t thread_count(void) {
  DIR *tasks = opendir("/proc/self/task");
  size_t count = 0;
  CHECK(tasks != NULL);
  while (tasks && readdir(tasks)) count++;
  if (tasks) closedir(tasks);
  return count;
}

/* A process may preload LLVM and then fork. */
TEST(a_preload_loads_it_and_starts_no_thread) {
  vyre_status st = {0};
  vyre_context *context;
  vyre_context_options options = {.cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = "cpu.llvm=none"};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_FAILS(vyre_device_preload(context, "cpu", &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CHECK(vyre__jit_version() == NULL);
  vyre_context_release(context);
  st = (vyre_status){0};
  size_t before = thread_count();
  CHECK_OK(vyre_device_preload(NULL, "cpu", &st), st);
  CHECK(vyre__jit_version() != NULL);
  CHECK_U64(thread_count(), before);
}

/* Stays inside LLVM for a while, on a detached thread. */
static void *stay(void *self) {
  const int *ends = self;
  const struct timespec pause = {.tv_nsec = 200000000};
  vyre_status st = {0};
  if (vyre__jit_enter(&st) != VYRE_OK) return NULL;
  (void)!write(ends[1], "in", 2);
  (void)nanosleep(&pause, NULL);
  (void)!write(ends[3], "out", 3);
  vyre__jit_leave();
  return NULL;
}

TEST(a_forked_child_exits_after_its_threads) {
  int ends[4];
  char said[8] = "";
  int status = -1;
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  CHECK(pipe(ends) == 0 && pipe(ends + 2) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, stay, ends) != 0) _exit(1);
    (void)pthread_detach(thread);
    if (read(ends[0], said, sizeof said) != 2) _exit(2);
    exit(0);
  }
  CHECK(waitpid(pid, &status, 0) == pid);
  for (int i = 1; i < 4; i += 2) close(ends[i]);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(read(ends[2], said, sizeof said) == 3);
  CHECK_TEXT(said, "out");
  for (int i = 0; i < 4; i += 2) close(ends[i]);
}

TEST(it_is_loaded_once_and_is_19) {
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  const char *version = vyre__jit_version();
  CHECK_HAS(version, "19.");
  CHECK_OK(vyre__jit_load_from("/nowhere/libLLVM.so", &st), st);
  CHECK(vyre__jit_version() == version);
  CHECK_HAS(vyre__jit_library(), "libLLVM");
  CHECK_FAILS(vyre__jit_load_from("none", &st), st, VYRE_UNSUPPORTED_FEATURE,
              VYRE_KIND_DEVICE_UNAVAILABLE);
}

/* Makes folders with libraries: a truncated LLVM, a complete one, and one for
 * another architecture. */
static void make_parts(void) {
  static unsigned char start[1 << 20];
  char path[160];
  Dl_info llvm;
  void *function;
  memcpy(&function, &vyre__llvm.LLVMGetVersion, sizeof function);
  CHECK(dladdr(function, &llvm) != 0 && file_name());
  FILE *file = fopen(llvm.dli_fname, "rb");
  CHECK(file && fread(start, 1, sizeof start, file) == sizeof start);
  (void)fclose(file);
  for (int i = 0; i < PARTS; i++) {
    (void)snprintf(path, sizeof path, "%s/%s", folder, parts[i]);
    CHECK(mkdir(path, 0700) == 0);
  }
  for (int k = 0; k < PART_FILES; k++) {
    part_path(path, 0, k);
    CHECK(tiny_write(path, start, sizeof start));
  }
  part_path(path, 1, 0);
  CHECK(symlink(llvm.dli_fname, path) == 0);
  tiny_library other = like_llvm();
  other.header.e_machine = EM_AARCH64;
  part_path(path, 2, 0);
  CHECK(tiny_write(path, &other, sizeof other));
}

/* Runs in a process without LLVM. Environment variables give the name to load
 * and the expected message. */
static void load_in_child(const char *says) {
  const char *name = getenv("CODEGEN_TEST_NAME");
  vyre_status st = {0};
  bool is_there = vyre__jit_is_available(name);
  vyre_code code = vyre__jit_load_from(name, &st);
  CHECK(is_there == (code == VYRE_OK));
  if (!name) return; /* one of the other default names may work */
  CHECK((code == VYRE_OK) == (says[0] == '\0'));
  if (says[0]) CHECK_HAS(st.message, says);
}

static int run_child(const char *path, const char *name, const char *says,
                     const char *test) {
  int status;
  (void)fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    (void)setenv("LD_LIBRARY_PATH", path, 1);
    if (name) (void)setenv("CODEGEN_TEST_NAME", name, 1);
    (void)setenv("CODEGEN_TEST_SAYS", says, 1);
    (void)execl("/proc/self/exe", "llvm_compile_test", test, (char *)NULL);
    _exit(127);
  }
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

TEST(the_file_that_the_loader_would_take_is_looked_at_first) {
  static const struct {
    const char *first, *second, *name, *says;
  } cases[] = {
      {"cut", "whole", "libvyre_case.so",
       "/cut/libvyre_case.so: it is truncated or damaged"},
      {"whole", "cut", "libvyre_case.so", ""},
      {"other", "whole", "libvyre_case.so", ""},
      {"other", "cut", "libvyre_case.so", "/cut/libvyre_case.so: it is trunc"},
      {"cut", "whole", NULL, ""},
      {"whole", "cut", NULL, ""},
  };
  const char *says = getenv("CODEGEN_TEST_SAYS");
  if (says) {
    load_in_child(says);
    _exit(0); /* the parent prints the summary */
  }
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  make_parts();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char path[320];
    (void)snprintf(path, sizeof path, "%s/%s:%s/%s", folder, cases[i].first,
                   folder, cases[i].second);
    int status = run_child(path, cases[i].name, cases[i].says, __func__);
    if (status != 0) printf("    case %zu\n", i);
    CHECK_U64((unsigned)status, 0);
  }
}

TEST(a_kernel_becomes_an_object_assembly_or_optimised_text) {
  vyre_status st = {0};
  for (int tier = 0; tier < 2; tier++) {
    code_bytes object = {0}, assembly = {0}, text = {0};
    CHECK_OK(compile_text(code_kernel, CODE_FEATURES, tier, VYRE__JIT_OBJECT,
                          &object, &st),
             st);
    CHECK(object.size > 64 && memcmp(object.data, "\177ELF", 4) == 0);
    CHECK_OK(compile_text(code_kernel, CODE_FEATURES, tier, VYRE__JIT_ASSEMBLY,
                          &assembly, &st),
             st);
    CHECK_HAS(assembly.data, "phase0:");
    CHECK_HAS(assembly.data, "xmm");
    CHECK_OK(compile_text(code_kernel, CODE_FEATURES, tier, VYRE__JIT_OPTIMISED,
                          &text, &st),
             st);
    CHECK_HAS(text.data, "@phase0(");
    CHECK_HAS(text.data, "x86_64-unknown-linux-gnu");
    free(object.data);
    free(assembly.data);
    free(text.data);
  }
}

TEST(features_decide_the_instructions) {
  static const char wide[] =
      "define <8 x float> @phase0(<8 x float> %a, <8 x float> %b) {\n"
      "  %s = fadd <8 x float> %a, %b\n  ret <8 x float> %s\n}\n";
  static const struct {
    const char *features, *has;
  } cases[] = {{"", "\taddps\t%xmm"},
               {"+avx", "\tvaddps\t%ymm"},
               {"+avx512f,+avx512vl", "\tvaddps\t%ymm"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_status st = {0};
    code_bytes out = {0};
    CHECK_OK(compile_text(wide, cases[i].features, VYRE__JIT_FULL,
                          VYRE__JIT_ASSEMBLY, &out, &st),
             st);
    CHECK_HAS(out.data, cases[i].has);
    free(out.data);
  }
}

/* A fatal error leaks LLVM's objects, which a leak checker must ignore. */
/* NOLINTBEGIN(bugprone-reserved-identifier): their names */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier) */

/* Each is rejected with LLVM's message, and nothing is printed. Without a
 * handler, the last two would end the process. */
TEST(an_llvm_error_is_a_status_and_not_permanent) {
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"define i32 @phase0( {", "read the kernel"},
      {"", NULL},
      {"define i32 @phase0() {\n  %a = add i32 %b, 1\n  ret i32 %a\n}\n",
       "undefined value '%b'"},
      {"define i32 @phase0(i1 %c) {\n  br i1 %c, label %x, label %y\nx:\n"
       "  %a = add i32 1, 2\n  br label %y\ny:\n  ret i32 %a\n}\n",
       "does not dominate"},
      {"declare i64 @llvm.aarch64.get.fpcr()\ndefine i64 @phase0() {\n"
       "  %a = call i64 @llvm.aarch64.get.fpcr()\n  ret i64 %a\n}\n",
       "Cannot select"},
      {"define i64 @phase0(i64 %x) {\n"
       "  %a = call i64 asm \"nosuch $0\", \"=r\"()\n  ret i64 %a\n}\n",
       "make code"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_status st = {0};
    code_bytes out = {0};
    if (__lsan_disable) __lsan_disable();
    quiet q = quiet_begin();
    vyre_code code = compile_text(cases[i].text, "", VYRE__JIT_FULL,
                                  VYRE__JIT_OBJECT, &out, &st);
    CHECK_U64(quiet_end(&q), 0);
    if (__lsan_enable) __lsan_enable();
    if (cases[i].says) {
      CHECK_FAILS(code, st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
      CHECK_HAS(st.message, cases[i].says);
      CHECK(out.size == 0);
    } else {
      CHECK_OK(code, st);
    }
    free(out.data);
    out = (code_bytes){0};
    st = (vyre_status){0};
    CHECK_OK(compile_text(code_kernel, CODE_FEATURES, VYRE__JIT_FULL,
                          VYRE__JIT_OBJECT, &out, &st),
             st);
    free(out.data);
  }
}

TEST(a_writer_may_refuse) {
  vyre_status st = {0};
  CHECK_FAILS(
      vyre__jit(code_kernel, strlen(code_kernel), CODE_CPU, "",
                VYRE__JIT_BASELINE, VYRE__JIT_OBJECT, refusing_writer(), &st),
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED);
}

enum { THREADS = 4, ROUNDS = 3 };

static void *compile_often(void *self) {
  code_bytes *all = self;
  for (int i = 0; i < ROUNDS; i++) {
    vyre_status st = {0};
    const char *text = i == 1 ? "define i32 @x( {" : code_kernel;
    vyre_code code = compile_text(text, CODE_FEATURES, VYRE__JIT_FULL,
                                  VYRE__JIT_OBJECT, &all[i], &st);
    if ((code == VYRE_OK) != (i != 1)) return "wrong";
  }
  return NULL;
}

TEST(many_threads_compile_at_once_and_get_the_same_bytes) {
  pthread_t threads[THREADS];
  code_bytes all[THREADS][ROUNDS] = {0};
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, compile_often, all[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *said;
    pthread_join(threads[i], &said);
    CHECK(said == NULL);
  }
  for (int i = 0; i < THREADS * ROUNDS; i++) {
    const code_bytes *one = &all[i / ROUNDS][i % ROUNDS];
    if (i % ROUNDS == 1) continue;
    CHECK_U64(one->size, all[0][0].size);
    CHECK(memcmp(one->data, all[0][0].data, one->size) == 0);
  }
  for (int i = 0; i < THREADS * ROUNDS; i++)
    free(all[i / ROUNDS][i % ROUNDS].data);
}

TEST_MAIN(TEST_ENTRY(without_llvm_the_status_names_the_package),
          TEST_ENTRY(a_file_that_is_not_llvm_is_rejected_unloaded),
          TEST_ENTRY(a_library_with_many_headers_is_left_to_the_loader),
          TEST_ENTRY(a_corrupt_library_is_read_safely),
          TEST_ENTRY(a_library_that_does_not_load_is_not_found_again),
          TEST_ENTRY(a_preload_loads_it_and_starts_no_thread),
          TEST_ENTRY(it_is_loaded_once_and_is_19),
          TEST_ENTRY(a_forked_child_exits_after_its_threads),
          TEST_ENTRY(the_file_that_the_loader_would_take_is_looked_at_first),
          TEST_ENTRY(a_kernel_becomes_an_object_assembly_or_optimised_text),
          TEST_ENTRY(features_decide_the_instructions),
          TEST_ENTRY(an_llvm_error_is_a_status_and_not_permanent),
          TEST_ENTRY(a_writer_may_refuse),
          TEST_ENTRY(many_threads_compile_at_once_and_get_the_same_bytes))
