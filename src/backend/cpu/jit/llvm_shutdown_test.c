/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes that end while a detached thread is inside LLVM. */
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_c.h"
#include "backend/cpu/jit/llvm_compile.h"
#include "backend/cpu/jit/llvm_compile_testing.h"
#include "support/check.h"

/* Pipes of the child: `to_main` is written when the thread is inside,
 * `to_thread` when exit() has begun, `to_parent` by the thread when it has
 * finished. */
static int to_main[2], to_thread[2], to_parent[2];

static void tell_main(void) {
  (void)!write(to_main[1], "x", 1);
}

static void tell_thread(void) {
  (void)!write(to_thread[1], "x", 1);
}

static bool await_exit(void) {
  char byte;
  return read(to_thread[0], &byte, 1) == 1;
}

static void say(const char *text) {
  (void)!write(to_parent[1], text, strlen(text));
}

/* Runs @p work on a thread of a child process while that calls exit(). @p said
 * gets the text that the thread wrote. */
static void exit_during(void *(*work)(void *), char *said, size_t room) {
  int status = -1;
  CHECK(pipe(to_main) == 0 && pipe(to_thread) == 0 && pipe(to_parent) == 0);
  (void)fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    pthread_t thread;
    char byte;
    (void)close(to_parent[0]);
    /* Freed memory is overwritten. */
    (void)mallopt(M_PERTURB, 0x5a);
    if (vyre__jit_load(NULL) != VYRE_OK) _exit(2);
    if (pthread_create(&thread, NULL, work, NULL) != 0) _exit(3);
    (void)pthread_detach(thread);
    if (read(to_main[0], &byte, 1) != 1) _exit(4);
    (void)nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    if (atexit(tell_thread) != 0) _exit(5); /* runs before all older handlers */
    exit(0);
  }
  (void)close(to_parent[1]);
  size_t size = 0;
  for (ssize_t more; size + 1 < room; size += (size_t)more) {
    more = read(to_parent[0], said + size, room - 1 - size);
    if (more <= 0) break;
  }
  said[size] = '\0';
  CHECK(waitpid(child, &status, 0) == child);
  (void)close(to_parent[0]);
  for (int i = 0; i < 2; i++) {
    (void)close(to_main[i]);
    (void)close(to_thread[i]);
  }
  CHECK(WIFEXITED(status));
  CHECK_U64(WEXITSTATUS(status), 0);
}

static vyre_code compile_once(code_bytes *out) {
  return vyre__jit(code_kernel, strlen(code_kernel), CODE_CPU, CODE_FEATURES,
                   VYRE__JIT_FULL, VYRE__JIT_OBJECT, code_writer(out), NULL);
}

/* Compiles like vyre__jit, on a thread that is inside LLVM already. */
static bool compile_by_hand(size_t *size) {
  static const char triple[] = "x86_64-unknown-linux-gnu";
  const llvm_functions *llvm = &vyre__llvm;
  llvm_context *context = llvm->LLVMContextCreate();
  llvm_module *module;
  llvm_target *target;
  llvm_buffer *object;
  char *message = NULL;
  if (llvm->LLVMParseIRInContext(
          context,
          llvm->LLVMCreateMemoryBufferWithMemoryRange(
              code_kernel, strlen(code_kernel), "kernel", 1),
          &module, &message) ||
      llvm->LLVMGetTargetFromTriple(triple, &target, &message)) {
    return false;
  }
  llvm_machine *machine = llvm->LLVMCreateTargetMachine(
      target, triple, CODE_CPU, CODE_FEATURES, LLVM_LEVEL_DEFAULT,
      LLVM_RELOCATIONS_PIC, LLVM_CODE_MODEL_SMALL);
  llvm_layout *layout = llvm->LLVMCreateTargetDataLayout(machine);
  llvm->LLVMSetTarget(module, triple);
  llvm->LLVMSetModuleDataLayout(module, layout);
  llvm->LLVMDisposeTargetData(layout);
  if (llvm->LLVMTargetMachineEmitToMemoryBuffer(
          machine, module, LLVM_FORM_OBJECT, &message, &object)) {
    return false;
  }
  *size = llvm->LLVMGetBufferSize(object);
  llvm->LLVMDisposeMemoryBuffer(object);
  llvm->LLVMDisposeTargetMachine(machine);
  llvm->LLVMDisposeModule(module);
  llvm->LLVMContextDispose(context);
  return true;
}

/* Compiles once, so that LLVM has created its late objects, and again after
 * exit() has begun. */
static void *compile_at_end(void *self) {
  const struct timespec pause = {.tv_nsec = 100000000};
  code_bytes out = {0};
  size_t before = 0, size = 0;
  (void)self;
  if (compile_once(&out) != VYRE_OK) _exit(10);
  free(out.data);
  if (vyre__jit_enter(NULL) != VYRE_OK) _exit(11);
  if (!compile_by_hand(&before)) _exit(12);
  tell_main();
  if (!await_exit()) _exit(13);
  (void)nanosleep(&pause, NULL);
  for (int i = 0; i < 20; i++) {
    if (!compile_by_hand(&size) || size != before) _exit(14);
  }
  say("done");
  vyre__jit_leave();
  return NULL;
}

TEST(llvm_objects_live_until_the_last_compile_ends) {
  char said[16];
  exit_during(compile_at_end, said, sizeof said);
  CHECK_TEXT(said, "done");
}

/* A compile that takes longer than the process should take to end. */
static void *compile_long(void *self) {
  enum { COPIES = 2000 };
  size_t size = 0;
  char *text = malloc(COPIES * (strlen(code_kernel) + 32));
  code_bytes out = {0};
  vyre_status st = {0};
  (void)self;
  if (!text || vyre__jit_enter(NULL) != VYRE_OK) _exit(10);
  const char *body = strstr(code_kernel, "(ptr %launch");
  size = (size_t)(strstr(code_kernel, "define") - code_kernel);
  memcpy(text, code_kernel, size);
  for (int i = 0; i < COPIES; i++) {
    size += (size_t)sprintf(text + size, "define i32 @phase%d%s", i, body);
  }
  tell_main();
  vyre_code code =
      vyre__jit(text, size, CODE_CPU, CODE_FEATURES, VYRE__JIT_FULL,
                VYRE__JIT_OBJECT, code_writer(&out), &st);
  free(text);
  free(out.data);
  say(code == VYRE_OK ? "it was compiled" : st.message);
  vyre__jit_leave();
  return NULL;
}

TEST(a_compile_stops_when_the_process_exits) {
  char said[400];
  exit_during(compile_long, said, sizeof said);
  CHECK_HAS(said, "the process is ending");
}

TEST_MAIN(TEST_ENTRY(llvm_objects_live_until_the_last_compile_ends),
          TEST_ENTRY(a_compile_stops_when_the_process_exits))
