/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/jit/llvm_compile.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/jit/llvm_c.h"
#include "base/status.h"

static const char triple[] = "x86_64-unknown-linux-gnu";

/* Ours, not one of LLVM's levels: the text is vectors and loops already, so that
 * what is left is to take variables to registers, fold, and move what is the same
 * in every round out of loops. */
static const char full_passes[] =
    "function(sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-simplify,lcssa,loop-mssa(licm),loop(indvars,loop-unroll-full),sroa,"
    "early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-unroll<O2>,early-cse,adce)";
static const char quick_passes[] =
    "function(sroa,early-cse,simplifycfg,loop-mssa(licm),"
    "instcombine<no-verify-fixpoint>,simplifycfg)";
/* To take variables to registers takes as long as there are variables times
 * branches. */
static const char plain_passes[] = "function(early-cse,simplifycfg)";

static const char *const passes[VYRE__JIT_TIERS] = {
    [VYRE__JIT_FULL] = full_passes,
    [VYRE__JIT_BASELINE] = quick_passes,
    [VYRE__JIT_PLAIN] = plain_passes};

#define CODEGEN_DEFECT                                                   \
  "report it as a defect of vyre, with what `vyre emit FILE --to llvm` " \
  "prints; device 'ref' runs the kernel"

/* --- what LLVM says -------------------------------------------------------------*/

/* One compile. On a fatal error LLVM would end the process: it is left by a jump
 * out of the handler, and what the compile had is not freed. */
typedef struct compile {
  llvm_context *context;
  llvm_module *module;
  llvm_machine *machine;
  llvm_buffer *result; /* or `printed` */
  char *printed;
  char said[224]; /* the first error */
  jmp_buf escape;
} compile;

/* Of the thread, while LLVM works for us on it. */
static _Thread_local compile *current
    __attribute__((tls_model("initial-exec")));

static void say(compile *c, const char *text) {
  if (c->said[0] || !text) return;
  (void)snprintf(c->said, sizeof c->said, "%s", text);
  size_t length = strlen(c->said);
  while (length > 0 && c->said[length - 1] == '\n') c->said[--length] = '\0';
  for (size_t i = 0; i < length; i++) {
    if (c->said[i] == '\n') c->said[i] = ' ';
  }
}

static void on_diagnostic(llvm_diagnostic *diagnostic, void *self) {
  if (vyre__llvm.LLVMGetDiagInfoSeverity(diagnostic) != LLVM_SEVERITY_ERROR) {
    return;
  }
  char *text = vyre__llvm.LLVMGetDiagInfoDescription(diagnostic);
  say(self, text);
  vyre__llvm.LLVMDisposeMessage(text);
}

/* Called before the end of the process, which comes if it returns: it does where
 * the work is not ours. */
static void on_fatal(const char *reason) {
  compile *c = current;
  if (!c) return;
  say(c, reason);
  longjmp(c->escape, 1);
}

static vyre_code failed(const compile *c, const char *what, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                   CODEGEN_DEFECT, "LLVM could not %s: %s", what,
                   c->said[0] ? c->said : "it did not say why");
}

/* Keeps what LLVM said, and gives its text back. */
static void take_message(compile *c, char *message) {
  say(c, message);
  if (message) vyre__llvm.LLVMDisposeMessage(message);
}

/* --- the steps ------------------------------------------------------------------*/

static vyre_code read_text(compile *c, const char *text, size_t size,
                           vyre_status *st) {
  char *message = NULL;
  llvm_buffer *buffer =
      vyre__llvm.LLVMCreateMemoryBufferWithMemoryRange(text, size, "kernel", 1);
  if (vyre__llvm.LLVMParseIRInContext(c->context, buffer, &c->module,
                                      &message)) {
    c->module = NULL;
    take_message(c, message);
    return failed(c, "read the kernel", st);
  }
  if (vyre__llvm.LLVMVerifyModule(c->module, LLVM_VERIFY_RETURNS, &message)) {
    take_message(c, message);
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
    take_message(c, message);
    return failed(c, "compile for this machine", st);
  }
  c->machine = vyre__llvm.LLVMCreateTargetMachine(
      target, triple, cpu, features,
      tier == VYRE__JIT_FULL ? LLVM_LEVEL_DEFAULT : LLVM_LEVEL_NONE,
      LLVM_RELOCATIONS_PIC, LLVM_CODE_MODEL_SMALL);
  if (!c->machine) return failed(c, "compile for this machine", st);
  /* The fast selector knows few operations of vectors: it gives up on nearly every
   * block, and the other then begins. */
  if (tier == VYRE__JIT_BASELINE) {
    vyre__llvm.LLVMSetTargetMachineFastISel(c->machine, 0);
  }
  llvm_layout *layout = vyre__llvm.LLVMCreateTargetDataLayout(c->machine);
  vyre__llvm.LLVMSetTarget(c->module, triple);
  vyre__llvm.LLVMSetModuleDataLayout(c->module, layout);
  vyre__llvm.LLVMDisposeTargetData(layout);
  return VYRE_OK;
}

static vyre_code optimise(compile *c, vyre__jit_tier tier, vyre_status *st) {
  llvm_pass_options *options = vyre__llvm.LLVMCreatePassBuilderOptions();
  llvm_error *error =
      vyre__llvm.LLVMRunPasses(c->module, passes[tier], c->machine, options);
  vyre__llvm.LLVMDisposePassBuilderOptions(options);
  if (!error) return VYRE_OK;
  char *message = vyre__llvm.LLVMGetErrorMessage(error);
  say(c, message);
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
    take_message(c, message);
    return failed(c, "make code of the kernel", st);
  }
  /* What is said to be an error does not always end it. */
  return c->said[0] ? failed(c, "make code of the kernel", st) : VYRE_OK;
}

/* All but the result, which is bytes. */
static void finish(compile *c) {
  if (c->machine) vyre__llvm.LLVMDisposeTargetMachine(c->machine);
  if (c->module) vyre__llvm.LLVMDisposeModule(c->module);
  if (c->context) vyre__llvm.LLVMContextDispose(c->context);
}

/* Everything that may end in on_fatal, and nothing else: what is on this side of
 * the jump is looked at in *c only. */
static vyre_code run_steps(compile *c, const char *text, size_t size,
                           const char *cpu, const char *features,
                           vyre__jit_tier tier, vyre__jit_form form,
                           vyre_status *st) {
  c->context = vyre__llvm.LLVMContextCreate();
  vyre__llvm.LLVMContextSetDiagnosticHandler(c->context, on_diagnostic, c);
  VYRE_TRY(read_text(c, text, size, st));
  VYRE_TRY(vyre__jit_continue(st));
  VYRE_TRY(make_machine(c, cpu, features, tier, st));
  VYRE_TRY(optimise(c, tier, st));
  VYRE_TRY(vyre__jit_continue(st));
  return write_code(c, form, st);
}

static vyre_code guarded(compile *c, const char *text, size_t size,
                         const char *cpu, const char *features,
                         vyre__jit_tier tier, vyre__jit_form form,
                         vyre_status *st) {
  /* The last to install is the one that is called: a process that uses the same
   * library may have put its own there since. */
  vyre__llvm.LLVMInstallFatalErrorHandler(on_fatal);
  if (setjmp(c->escape)) {
    current = NULL;
    c->context = NULL; /* in what state it is, nobody knows: it is left */
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

static vyre_code hand_over(const compile *c, vyre_writer writer,
                           vyre_status *st) {
  const char *bytes =
      c->printed ? c->printed : vyre__llvm.LLVMGetBufferStart(c->result);
  size_t size =
      c->printed ? strlen(c->printed) : vyre__llvm.LLVMGetBufferSize(c->result);
  if (writer.write(writer.self, bytes, size)) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "make room where the code is written to",
                   "the writer refused the code of a kernel, %zu bytes", size);
}

vyre_code vyre__jit(const char *text, size_t size, const char *cpu,
                    const char *features, vyre__jit_tier tier,
                    vyre__jit_form form, vyre_writer writer, vyre_status *st) {
  VYRE_TRY(vyre__jit_load(st));
  VYRE_TRY(vyre__jit_stack_size(size, st));
  VYRE_TRY(vyre__jit_enter(st));
  compile c = {0};
  vyre_code code = guarded(&c, text, size, cpu, features, tier, form, st);
  finish(&c);
  vyre__jit_leave();
  /* The end of the process waits for who is inside, and not for a writer. */
  if (code == VYRE_OK) code = hand_over(&c, writer, st);
  if (c.result) vyre__llvm.LLVMDisposeMemoryBuffer(c.result);
  if (c.printed) vyre__llvm.LLVMDisposeMessage(c.printed);
  return code;
}
