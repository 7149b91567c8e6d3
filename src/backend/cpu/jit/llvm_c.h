/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LLVM's C API as a table of functions, filled when LLVM is loaded. */
#ifndef VYRE_BACKEND_CPU_JIT_LLVM_C_H
#define VYRE_BACKEND_CPU_JIT_LLVM_C_H

#include <stddef.h>

#include "vyre/status.h"

typedef struct llvm_context llvm_context;
typedef struct llvm_diagnostic llvm_diagnostic;
typedef struct llvm_buffer llvm_buffer;
typedef struct llvm_module llvm_module;
typedef struct llvm_value llvm_value;
typedef struct llvm_layout llvm_layout;
typedef struct llvm_target llvm_target;
typedef struct llvm_machine llvm_machine;
typedef struct llvm_pass_options llvm_pass_options;
typedef struct llvm_error llvm_error;

/* Values of enumerations of the C API. */
enum {
  LLVM_SEVERITY_ERROR = 0,
  LLVM_SEVERITY_WARNING = 1,
  LLVM_VERIFY_RETURNS = 2,
  LLVM_LEVEL_NONE = 0,
  LLVM_LEVEL_DEFAULT = 2,
  LLVM_RELOCATIONS_PIC = 2,
  LLVM_CODE_MODEL_SMALL = 3,
  LLVM_FORM_ASSEMBLY = 0,
  LLVM_FORM_OBJECT = 1,
};

typedef struct llvm_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define LLVM_C(result, name, arguments) result(*name) arguments;
#include "backend/cpu/jit/llvm_c.def"
#undef LLVM_C
} llvm_functions;

/* Functions of the loaded library. Valid after vyre__jit_load succeeded. */
extern llvm_functions vyre__llvm;

#endif
