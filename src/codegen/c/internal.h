/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CODEGEN_C_INTERNAL_H
#define VYRE_CODEGEN_C_INTERNAL_H

#include "base/print.h"
#include "codegen/c/c.h"
#include "spmd/regions.h"
#include "spmd/single_read.h"

/* Small functions of the file, printed only if they are used. */
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
  C_MIN_U32, /* min and max: _U32, _U64, _S32, _S64 follow each other */
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
  C_LOAD8, /* loads that happen once: of 8, 16, 32 and 64 bits */
  C_LOAD16,
  C_LOAD32,
  C_LOAD64,
  C_PLAIN_HELPERS,
  /* then atomics: (op - ATOMIC_ADD) * 4 + wide * 2 + shared */
  C_ATOMICS = C_PLAIN_HELPERS,
  C_HELPERS = C_ATOMICS + 4 * (VYRE__LIR_ATOMIC_CAS - VYRE__LIR_ATOMIC_ADD + 1)
} c_helper;

/* How a value is spelled where it is used. */
typedef enum c_form {
  C_NAMED,  /* by the name of a C variable that has it */
  C_FOLDED, /* its expression stands there */
  C_ALIAS,  /* GET: the variable itself, which does not change before */
} c_form;

/* What a condition is where all invocations of a row are inside; full_rows.c. */
typedef enum c_known { C_UNKNOWN, C_TRUE, C_FALSE } c_known;

/* What else is asked about an instruction of the phase; see expression_fold.c. */
typedef struct c_note {
  uint8_t form;         /* c_form */
  uint8_t global;       /* 1 + axis: it is the global id; 0: it is not */
  uint8_t known;        /* c_known */
  bool has_call;        /* its expression calls something */
  bool is_early;        /* declared at the top of its loop */
  uint16_t width;       /* characters of its expression, about */
  uint16_t inside_uses; /* where it is defined: the piece, or the workgroup */
  uint16_t outside_uses;
  uint32_t user;    /* the last instruction that uses it inside */
  uint32_t at;      /* where its expression is evaluated */
  uint32_t last;    /* instruction up to which a GET is read */
  uint32_t used_in; /* piece + 1 in which it was last spelled by name */
  bool used_now,
      used_before; /* spelled by name in this pass, in the last one */
} c_note;

/* Names that turned out to be used, by printing to nobody first. */
typedef struct c_used {
  bool group[3], grid[3], first[3], global[3];
  bool fuel, next, next_group;
} c_used;

typedef struct c_emitter {
  const vyre__lir_kernel *kernel;
  const vyre__emit_c_options *options;
  vyre__printer out;
  bool is_silent; /* only to see what is used */
  bool is_last;   /* the last pass over a phase: what it uses is used */
  vyre_arena *arena;
  vyre_status *st;

  const char *name;
  const char **buffer_names;
  uint32_t *slots; /* index in data, or VYRE_NO_INDEX */
  uint32_t slot_count;
  const char **var_names;
  bool helpers[C_HELPERS];
  bool uses_math;
  bool uses_rows; /* the hint that rows should become wide vectors */
  bool *decides;  /* per instruction of the kernel: spmd/single_read.h */

  /* the phase that is being printed */
  vyre__regions *r;
  c_note *notes;
  uint32_t
      *var_declared;   /* per variable: the SET that declares it; 0: before */
  uint32_t *var_piece; /* per variable: the last piece that declared it */
  c_used used;
  bool *len_used, *data_used, *loop_used, *step_used;
  uint32_t phase;
  bool is_host;
  uint32_t *host_levels; /* per value of the host range: 1 + the innermost grid
                            loop whose variable it depends on; 0: none */
  uint32_t host_level;   /* that is being printed */
  uint64_t memory;       /* bytes of shared and kept arrays */

  uint32_t piece; /* 0: the workgroup's code */
  bool is_full;   /* all invocations of the row are inside */
  unsigned indent;
  uint32_t line; /* of the source, last shown */
} c_emitter;

static inline const vyre__lir_inst *c_inst(const c_emitter *e, vyre__val v) {
  return &e->kernel->code[v];
}

static inline c_note *c_note_of(const c_emitter *e, vyre__val v) {
  return &e->notes[v - e->r->begin];
}

static inline vyre__inst_info *c_role(const c_emitter *e, vyre__val v) {
  return vyre__inst_info_of(e->r, v);
}

/* The piece that makes a value; 0: the workgroup does. */
static inline uint32_t c_home(const c_emitter *e, vyre__val v) {
  const vyre__inst_info *role = c_role(e, v);
  return role->storage == VYRE__STORAGE_UNIFORM ? 0 : role->subregion;
}

#define C_PRINT(e, ...)                                       \
  do {                                                        \
    if (!(e)->is_silent) vyre__print(&(e)->out, __VA_ARGS__); \
  } while (0)

/* reserved_words.c: whether a name is taken, by anything or as that of a function. At
 * most C_NAME_ROOM - 1 characters are looked at. */
enum { C_NAME_ROOM = 64 };
bool c_is_word(const char *name);
bool c_is_function(const char *name);

/* names.c */
vyre_code c_make_names(c_emitter *e);
const char *c_type(vyre_type type);
const char *c_zero(vyre_type type);

/* Returns true for a load that must happen once: memory may change. */
static inline bool c_reads_once(const c_emitter *e, vyre__val v) {
  return vyre__load_is_single_read(e->kernel, e->decides, v);
}

/* expression_fold.c: which values are spelled inside of others. */
vyre_code c_make_notes(c_emitter *e);

/* values.c */
void c_value(c_emitter *e, vyre__val v, int least); /* as an operand */
void c_expression(c_emitter *e, vyre__val v);       /* what defines it */
void c_variable(c_emitter *e, uint32_t var);
void c_kept_index(c_emitter *e, uint8_t keep);
void c_atomic(c_emitter *e, vyre__val v); /* the call, without condition */
void c_index(c_emitter *e, vyre__val memory);
bool c_is_global_id(const c_emitter *e, vyre__val v, unsigned *axis);

/* block.c: statements of a piece, or what the workgroup does of a run. */
void c_line(c_emitter *e); /* begins a line */
void c_piece(c_emitter *e, uint32_t piece);
void c_hoisted(c_emitter *e, const vyre__region *run);
void c_place(c_emitter *e, uint32_t at);

/* regions.c: the tree of parts. */
void c_parts(c_emitter *e, uint32_t first);

/* full_rows.c */
void c_find_known(c_emitter *e);
/* Prints `if (..) {`, whether a row is all inside, if the run asks that. */
bool c_full_condition(c_emitter *e, const vyre__region *run);

/* Whether one piece is a long straight chain of operations of f64, which is
 * faster if several vectors are computed at a time. */
bool c_is_chain(const c_emitter *e, uint32_t piece);

/* What a condition is, in the code for rows that are all inside. */
static inline c_known c_known_of(const c_emitter *e, vyre__val v) {
  return e->is_full && v ? (c_known)c_note_of(e, v)->known : C_UNKNOWN;
}

/* helpers.c */
void c_print_helpers(c_emitter *e);

/* What an operand must bind at least as tightly as. */
enum { C_TOP = 0, C_CONDITION = 9, C_UNARY = 14, C_PRIMARY = 16 };

#endif
