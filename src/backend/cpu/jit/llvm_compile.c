/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles LLVM IR with LLVM's C API. LLVM reports some errors by ending the
 * process; a fatal-error handler that jumps out turns them into a status. */
#include "backend/cpu/jit/llvm_compile.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/jit/llvm_c.h"
#include "base/status.h"

static const char triple[] = "x86_64-unknown-linux-gnu";

/* Pass pipelines. The text already consists of vectors and loops, so LLVM's
 * standard levels would do too much: what is left is promoting variables to
 * registers, folding and loop-invariant code motion. */
static const char full_passes[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-simplify,lcssa,loop-mssa(licm),loop(indvars,loop-unroll-full),sroa,"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-unroll<O2>,early-cse,adce)";
static const char baseline_passes[] =
    "function(sroa,early-cse,simplifycfg,loop-mssa(licm),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";
/* Moving invariant code out of loops gains nothing here: without a register
 * allocator, the values are stored and loaded again. */
static const char first_passes[] = "function(sroa,early-cse,simplifycfg)";
/* Without sroa: promoting variables takes time proportional to their number
 * times the number of branches. */
static const char plain_passes[] = "function(early-cse,simplifycfg)";

static const char *const passes[VYRE__JIT_TIERS] = {
    [VYRE__JIT_FULL] = full_passes,
    [VYRE__JIT_BASELINE] = baseline_passes,
    [VYRE__JIT_FIRST] = first_passes,
    [VYRE__JIT_PLAIN] = plain_passes};

#define REPORT_BUG                                                         \
  "report this as a bug in vyre, with the output of `vyre emit FILE --to " \
  "llvm`; device 'ref' runs the kernel"

/* --- errors from LLVM ------------------------------------------------------*/

/* State of one compile. After a fatal error, the handler jumps to `escape`, and
 * the LLVM objects of the compile leak: their state is unknown. */
typedef struct compile {
  llvm_context *context;
  llvm_module *module;
  llvm_machine *machine;
  llvm_buffer *result; /* object or assembly; or NULL, and `printed` is set */
  char *printed;
  char message[224];        /* first error reported by LLVM */
  uint32_t max_stack_bytes; /* 0: stack frames are not checked */
  uint64_t stack_bytes;     /* largest frame above that limit */
  jmp_buf escape;
} compile;

/* The compile running on this thread, or NULL. */
static _Thread_local compile *current
    __attribute__((tls_model("initial-exec")));

static void record_error(compile *c, const char *text) {
  if (c->message[0] || !text) return;
  (void)snprintf(c->message, sizeof c->message, "%s", text);
  size_t length = strlen(c->message);
  while (length > 0 && c->message[length - 1] == '\n')
    c->message[--length] = '\0';
  for (size_t i = 0; i < length; i++) {
    if (c->message[i] == '\n') c->message[i] = ' ';
  }
}

/* Reads the size in "stack frame size (N) exceeds limit (M) in function 'F'",
 * the warning that limit_stack asks for. */
static void record_stack(compile *c, const char *text) {
  static const char start[] = "stack frame size (";
  const char *at = strstr(text, start);
  uint64_t bytes = at ? strtoull(at + sizeof start - 1, NULL, 10) : 0;
  if (bytes > c->stack_bytes) c->stack_bytes = bytes;
}

static void on_diagnostic(llvm_diagnostic *diagnostic, void *self) {
  int severity = vyre__llvm.LLVMGetDiagInfoSeverity(diagnostic);
  if (severity != LLVM_SEVERITY_ERROR && severity != LLVM_SEVERITY_WARNING) {
    return;
  }
  char *text = vyre__llvm.LLVMGetDiagInfoDescription(diagnostic);
  if (severity == LLVM_SEVERITY_ERROR) {
    record_error(self, text);
  } else {
    record_stack(self, text);
  }
  vyre__llvm.LLVMDisposeMessage(text);
}

/* Handles a fatal error. If it returns, LLVM ends the process; it returns for
 * errors of other users of LLVM in the process. */
static void on_fatal(const char *reason) {
  compile *c = current;
  if (!c) return;
  record_error(c, reason);
  longjmp(c->escape, 1);
}

static vyre_code failed(const compile *c, const char *what, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, REPORT_BUG,
                   "LLVM could not %s: %s", what,
                   c->message[0] ? c->message : "no reason given");
}

/* Records a message of LLVM and frees it. */
static void record_message(compile *c, char *message) {
  record_error(c, message);
  if (message) vyre__llvm.LLVMDisposeMessage(message);
}

/* --- steps -----------------------------------------------------------------*/

static vyre_code read_text(compile *c, const char *text, size_t size,
                           vyre_status *st) {
  char *message = NULL;
  llvm_buffer *buffer =
      vyre__llvm.LLVMCreateMemoryBufferWithMemoryRange(text, size, "kernel", 1);
  if (vyre__llvm.LLVMParseIRInContext(c->context, buffer, &c->module,
                                      &message)) {
    c->module = NULL;
    record_message(c, message);
    return failed(c, "read the kernel", st);
  }
  if (vyre__llvm.LLVMVerifyModule(c->module, LLVM_VERIFY_RETURNS, &message)) {
    record_message(c, message);
    return failed(c, "accept the kernel", st);
  }
  vyre__llvm.LLVMDisposeMessage(message);
  return VYRE_OK;
}

static vyre_code make_machine(compile *c, const char *cpu, const char *features,
                              vyre__jit_tier tier, vyre_status *st) {
  char *message = NULL;
  llvm_target *target;
  if (vyre__llvm.LLVMGetTargetFromTriple(triple, &target, &message)) {
    record_message(c, message);
    return failed(c, "compile for this machine", st);
  }
  c->machine = vyre__llvm.LLVMCreateTargetMachine(
      target, triple, cpu, features,
      tier == VYRE__JIT_FULL ? LLVM_LEVEL_DEFAULT : LLVM_LEVEL_NONE,
      LLVM_RELOCATIONS_PIC, LLVM_CODE_MODEL_SMALL);
  if (!c->machine) return failed(c, "compile for this machine", st);
  /* The fast instruction selector supports few vector operations. It would give
   * up on nearly every block, after which the full selector runs anyway. */
  if (tier == VYRE__JIT_BASELINE || tier == VYRE__JIT_FIRST) {
    vyre__llvm.LLVMSetTargetMachineFastISel(c->machine, 0);
  }
  llvm_layout *layout = vyre__llvm.LLVMCreateTargetDataLayout(c->machine);
  vyre__llvm.LLVMSetTarget(c->module, triple);
  vyre__llvm.LLVMSetModuleDataLayout(c->module, layout);
  vyre__llvm.LLVMDisposeTargetData(layout);
  return VYRE_OK;
}

/* Makes LLVM warn about every function whose stack frame is above the limit.
 * The attribute does not change the code. */
static void limit_stack(const compile *c) {
  char limit[16];
  if (c->max_stack_bytes == 0) return;
  (void)snprintf(limit, sizeof limit, "%u", (unsigned)c->max_stack_bytes);
  for (llvm_value *f = vyre__llvm.LLVMGetFirstFunction(c->module); f;
       f = vyre__llvm.LLVMGetNextFunction(f)) {
    vyre__llvm.LLVMAddTargetDependentFunctionAttr(f, "warn-stack-size", limit);
  }
}

static vyre_code optimise(compile *c, vyre__jit_tier tier, vyre_status *st) {
  llvm_pass_options *options = vyre__llvm.LLVMCreatePassBuilderOptions();
  llvm_error *error =
      vyre__llvm.LLVMRunPasses(c->module, passes[tier], c->machine, options);
  vyre__llvm.LLVMDisposePassBuilderOptions(options);
  if (!error) return VYRE_OK;
  char *message = vyre__llvm.LLVMGetErrorMessage(error);
  record_error(c, message);
  vyre__llvm.LLVMDisposeErrorMessage(message);
  return failed(c, "optimise the kernel", st);
}

static vyre_code write_code(compile *c, vyre__jit_form form, vyre_status *st) {
  if (form == VYRE__JIT_OPTIMISED) {
    c->printed = vyre__llvm.LLVMPrintModuleToString(c->module);
    return VYRE_OK;
  }
  char *message = NULL;
  if (vyre__llvm.LLVMTargetMachineEmitToMemoryBuffer(
          c->machine, c->module,
          form == VYRE__JIT_OBJECT ? LLVM_FORM_OBJECT : LLVM_FORM_ASSEMBLY,
          &message, &c->result)) {
    c->result = NULL;
    record_message(c, message);
    return failed(c, "make code of the kernel", st);
  }
  /* LLVM may report an error and still return success. */
  return c->message[0] ? failed(c, "make code of the kernel", st) : VYRE_OK;
}

/* Frees everything except the result, which is plain bytes. */
static void free_compile(compile *c) {
  if (c->machine) vyre__llvm.LLVMDisposeTargetMachine(c->machine);
  if (c->module) vyre__llvm.LLVMDisposeModule(c->module);
  if (c->context) vyre__llvm.LLVMContextDispose(c->context);
}

/* Runs all steps that may end in on_fatal. No local of the caller changes in
 * here, except *c: values of other locals are lost by the jump. */
static vyre_code run_steps(compile *c, const char *text, size_t size,
                           const char *cpu, const char *features,
                           vyre__jit_tier tier, vyre__jit_form form,
                           vyre_status *st) {
  c->context = vyre__llvm.LLVMContextCreate();
  vyre__llvm.LLVMContextSetDiagnosticHandler(c->context, on_diagnostic, c);
  VYRE_TRY(read_text(c, text, size, st));
  VYRE_TRY(vyre__jit_continue(st));
  VYRE_TRY(make_machine(c, cpu, features, tier, st));
  limit_stack(c);
  VYRE_TRY(optimise(c, tier, st));
  VYRE_TRY(vyre__jit_continue(st));
  return write_code(c, form, st);
}

static vyre_code run_guarded(compile *c, const char *text, size_t size,
                             const char *cpu, const char *features,
                             vyre__jit_tier tier, vyre__jit_form form,
                             vyre_status *st) {
  /* Installed for every compile: only the last handler is called, and another
   * user of the same library may have installed one. */
  vyre__llvm.LLVMInstallFatalErrorHandler(on_fatal);
  if (setjmp(c->escape)) {
    current = NULL;
    c->context = NULL; /* these leak, see struct compile */
    c->module = NULL;
    c->machine = NULL;
    c->result = NULL;
    c->printed = NULL;
    return failed(c, "make code of the kernel", st);
  }
  current = c;
  vyre_code code = run_steps(c, text, size, cpu, features, tier, form, st);
  current = NULL;
  return code;
}

vyre_code vyre__jit_write(vyre_writer writer, const char *bytes, size_t size,
                          vyre_status *st) {
  if (writer.write(writer.self, bytes, size)) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "free space at the destination of the code",
                   "the writer refused the code of a kernel, %zu bytes", size);
}

static vyre_code write_result(const compile *c, vyre_writer writer,
                              vyre_status *st) {
  const char *bytes =
      c->printed ? c->printed : vyre__llvm.LLVMGetBufferStart(c->result);
  size_t size =
      c->printed ? strlen(c->printed) : vyre__llvm.LLVMGetBufferSize(c->result);
  return vyre__jit_write(writer, bytes, size, st);
}

static vyre_code compile_text(compile *c, const char *text, size_t size,
                              const char *cpu, const char *features,
                              vyre__jit_tier tier, vyre__jit_form form,
                              vyre_writer writer, vyre_status *st) {
  VYRE_TRY(vyre__jit_load(st));
  VYRE_TRY(vyre__jit_check_memory(size, st));
  VYRE_TRY(vyre__jit_enter(st));
  vyre_code code = run_guarded(c, text, size, cpu, features, tier, form, st);
  free_compile(c);
  vyre__jit_leave();
  /* The writer runs after leaving, so that the end of the process never waits
   * for it. */
  if (code == VYRE_OK) code = write_result(c, writer, st);
  if (c->result) vyre__llvm.LLVMDisposeMemoryBuffer(c->result);
  if (c->printed) vyre__llvm.LLVMDisposeMessage(c->printed);
  return code;
}

vyre_code vyre__jit(const char *text, size_t size, const char *cpu,
                    const char *features, vyre__jit_tier tier,
                    vyre__jit_form form, vyre_writer writer, vyre_status *st) {
  compile c = {0};
  return compile_text(&c, text, size, cpu, features, tier, form, writer, st);
}

vyre_code vyre__jit_object(const char *text, size_t size, const char *cpu,
                           const char *features, vyre__jit_tier tier,
                           uint32_t max_stack_bytes, uint64_t *stack_bytes,
                           vyre_writer writer, vyre_status *st) {
  compile c = {.max_stack_bytes = max_stack_bytes};
  vyre_code code = compile_text(&c, text, size, cpu, features, tier,
                                VYRE__JIT_OBJECT, writer, st);
  *stack_bytes = c.stack_bytes;
  return code;
}
