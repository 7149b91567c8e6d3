/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CODEGEN_C_INTERNAL_H
#define VYRE_CODEGEN_C_INTERNAL_H

#include <string.h>

#include "base/print.h"
#include "codegen/c/c.h"
#include "spmd/passes/single_read.h"
#include "spmd/regions.h"

/* Helper functions of the generated file. Only used ones are printed. */
typedef enum c_helper {
  C_F32, /* bits to float, and back; f64 */
  C_BITS32,
  C_F64,
  C_BITS64,
  C_CLZ32,
  C_CLZ64,
  C_CTZ32,
  C_CTZ64,
  C_POPCOUNT32,
  C_POPCOUNT64,
  C_SAR32,
  C_SAR64,
  C_MIN_U32, /* min and max: _U32, _U64, _S32, _S64 in this order */
  C_MIN_U64,
  C_MIN_S32,
  C_MIN_S64,
  C_MAX_U32,
  C_MAX_U64,
  C_MAX_S32,
  C_MAX_S64,
  C_MIN_F32,
  C_MIN_F64,
  C_MAX_F32,
  C_MAX_F64,
  C_LOAD8, /* loads that are executed once: 8, 16, 32 and 64 bits */
  C_LOAD16,
  C_LOAD32,
  C_LOAD64,
  C_PLAIN_HELPERS,
  /* then atomics: (op - ATOMIC_ADD) * 4 + wide * 2 + shared */
  C_ATOMICS = C_PLAIN_HELPERS,
  C_HELPERS = C_ATOMICS + 4 * (VYRE__LIR_ATOMIC_CAS - VYRE__LIR_ATOMIC_ADD + 1)
} c_helper;

/* Returns what an atomic computes, "add" for ATOMIC_ADD + 0. */
static inline const char *c_atomic_name(unsigned which) {
  return vyre__lir_ops[VYRE__LIR_ATOMIC_ADD + which].text + strlen("atomic_");
}

/* Printed form of a value at its use. */
typedef enum c_form {
  C_NAMED,  /* name of a C variable */
  C_FOLDED, /* its expression */
  C_ALIAS,  /* GET: the variable, which does not change before the use */
} c_form;

/* Value of a condition in code for full rows; see full_rows.c. */
typedef enum c_known { C_UNKNOWN, C_TRUE, C_FALSE } c_known;

/* Notes about an instruction of the phase; see expression_fold.c. */
typedef struct c_note {
  uint8_t form;         /* c_form */
  uint8_t global;       /* 1 + axis of a global id; 0: another value */
  uint8_t known;        /* c_known */
  bool has_call;        /* its expression contains a call */
  bool is_early;        /* declared at the top of its loop */
  uint16_t width;       /* estimated width of its expression */
  uint16_t inside_uses; /* uses in the subregion, or workgroup code, that
                         * defines it */
  uint16_t outside_uses;
  uint32_t user;    /* last instruction there that uses it */
  uint32_t at;      /* instruction at which its expression is evaluated */
  uint32_t last;    /* last instruction that reads a GET */
  uint32_t used_in; /* subregion + 1 that last printed its name */
  bool used_now,
      used_before; /* its name was printed in this pass, in the previous pass */
} c_note;

/* Names in use. A silent pass collects them before printing. */
typedef struct c_used {
  bool group[3], grid[3], first[3], global[3];
  bool fuel, next, next_group;
} c_used;

typedef struct c_emitter {
  const vyre__lir_kernel *kernel;
  const vyre__emit_c_options *options;
  vyre__printer out;
  bool is_silent; /* silent pass: collects uses only */
  bool is_last;   /* last pass over a phase: its uses are final */
  vyre_arena *arena;
  vyre_status *st;

  const char *name;
  const char **buffer_names;
  uint32_t *data_index; /* per buffer: index in data, or VYRE_NO_INDEX */
  uint32_t data_count;
  const char **var_names;
  bool helpers[C_HELPERS];
  bool uses_math;
  bool uses_rows; /* the row hint (VYRE_ROW) is used */
  bool *decides;  /* per instruction: see spmd/passes/single_read.h */

  /* state of the current phase */
  vyre__regions *r;
  c_note *notes;
  uint32_t *var_declared; /* per variable: the SET that declares it; 0: declared
                           * before */
  uint32_t *var_subregion; /* per variable: last subregion that declared it */
  c_used used;
  bool *len_used, *data_used, *loop_used, *step_used;
  uint32_t phase;
  bool is_host;
  uint32_t *host_levels; /* per value of the host range: 1 + the innermost grid
                          * loop that it depends on; 0: none */
  uint32_t host_level;   /* level being printed */
  uint64_t memory;       /* bytes of shared memory and value arrays */

  uint32_t subregion; /* current subregion; 0: workgroup code */
  bool is_full;       /* printing the copy for full rows */
  unsigned indent;
  uint32_t line; /* source line printed last */
} c_emitter;

static inline const vyre__lir_inst *c_inst(const c_emitter *e, vyre__val v) {
  return &e->kernel->code[v];
}

static inline c_note *c_note_of(const c_emitter *e, vyre__val v) {
  return &e->notes[v - e->r->begin];
}

static inline vyre__inst_info *c_info(const c_emitter *e, vyre__val v) {
  return vyre__inst_info_of(e->r, v);
}

/* Returns the subregion that computes a value; 0: the workgroup. */
static inline uint32_t c_home(const c_emitter *e, vyre__val v) {
  const vyre__inst_info *info = c_info(e, v);
  return info->storage == VYRE__STORAGE_UNIFORM ? 0 : info->subregion;
}

#define C_PRINT(e, ...)                                       \
  do {                                                        \
    if (!(e)->is_silent) vyre__print(&(e)->out, __VA_ARGS__); \
  } while (0)

/* Prints the indentation of a line, then its text. */
#define C_LINE(e, ...)       \
  do {                       \
    c_line(e);               \
    C_PRINT(e, __VA_ARGS__); \
  } while (0)

/* Return true if a name is reserved, for any use or only for functions. At most
 * C_NAME_SIZE - 1 characters are compared (reserved_words.c). */
enum { C_NAME_SIZE = 64 };
bool c_is_reserved(const char *name);
bool c_is_reserved_function(const char *name);

/* names.c */
vyre_code c_make_names(c_emitter *e);
const char *c_type(vyre_type type);
const char *c_zero(vyre_type type);

/* Returns true for a load that must be executed once, because memory may
 * change. */
static inline bool c_is_single_read(const c_emitter *e, vyre__val v) {
  return vyre__load_is_single_read(e->kernel, e->decides, v);
}

/* Decides which values are printed inside other expressions
 * (expression_fold.c). */
vyre_code c_make_notes(c_emitter *e);

/* values.c */
void c_value(c_emitter *e, vyre__val v, int min_level); /* prints an operand */
void c_expression(c_emitter *e, vyre__val v); /* prints a definition */
void c_variable(c_emitter *e, uint32_t var);
void c_array_index(c_emitter *e, uint8_t storage);
void c_atomic(c_emitter *e, vyre__val v); /* the call, without condition */
void c_index(c_emitter *e, vyre__val memory);
bool c_is_global_id(const c_emitter *e, vyre__val v, unsigned *axis);

/* Print statements of a subregion, or hoisted workgroup code (block.c). */
void c_line(c_emitter *e); /* indents a new line */
void c_subregion(c_emitter *e, uint32_t subregion);
void c_hoisted(c_emitter *e, const vyre__region *region);
void c_source_line(c_emitter *e, uint32_t at);

/* Prints the tree of regions (regions.c). */
void c_regions(c_emitter *e, uint32_t first);

/* full_rows.c */
void c_find_known(c_emitter *e);
/* Prints `if (..) {` with the condition for a full row. Returns false if the
 * region has no such condition. */
bool c_full_condition(c_emitter *e, const vyre__region *region);

/* Returns true if a subregion is a long straight chain of f64 operations. Such
 * code is faster with several vectors at a time. */
bool c_is_chain(const c_emitter *e, uint32_t subregion);

/* Returns the value of a condition in code for full rows. */
static inline c_known c_known_of(const c_emitter *e, vyre__val v) {
  return e->is_full && v ? (c_known)c_note_of(e, v)->known : C_UNKNOWN;
}

/* helpers.c */
void c_print_helpers(c_emitter *e);

/* Minimum precedence of an operand. */
enum { C_TOP = 0, C_CONDITION = 9, C_UNARY = 14, C_PRIMARY = 16 };

#endif
