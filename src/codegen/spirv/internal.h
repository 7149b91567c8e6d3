/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the SPIR-V generator. */
#ifndef VYRE_CODEGEN_SPIRV_INTERNAL_H
#define VYRE_CODEGEN_SPIRV_INTERNAL_H

#include "codegen/spirv/spirv.h"
#include "spmd/passes/single_read.h"

enum {
#define SPV_OP(name, number, operands) SPV_Op##name = (number),
#define SPV_ENUM(kind, name, number)   SPV_##kind##_##name = (number),
#include "codegen/spirv/ops.def"
#undef SPV_OP
#undef SPV_ENUM
};

enum {
  SPV_MAGIC = 0x07230203,
  SPV_MODULE_VERSION = 0x00010300,
  SPV_HEADER = 5, /* words before the first instruction */
  SPV_SCOPE_DEVICE = 1,
  SPV_SCOPE_WORKGROUP = 2,
  SPV_SCOPE_QUEUE_FAMILY = 5,
  SPV_ACQUIRE_RELEASE = 0x8,
  SPV_UNIFORM_MEMORY = 0x40, /* includes storage buffers */
  SPV_WORKGROUP_MEMORY = 0x100,
  SPV_MAKE_AVAILABLE = 0x2000,
  SPV_MAKE_VISIBLE = 0x4000,
};

/* Sections of a module, in the required order. */
typedef enum spv_section {
  SPV_HEAD,    /* capabilities to execution modes */
  SPV_DEBUG,   /* names */
  SPV_NOTES,   /* decorations */
  SPV_GLOBALS, /* types, constants, module variables */
  SPV_CODE,
  SPV_SECTIONS
} spv_section;

typedef struct spv_words {
  uint32_t *words;
  size_t count, capacity;
} spv_words;

/* A type. Equal types share one id. */
typedef struct spv_type {
  uint32_t op, count, operands[3], id;
} spv_type;

typedef struct spv_constant {
  uint32_t type, low, high, id; /* id 0: empty */
} spv_constant;

/* An open construct. */
typedef struct spv_open {
  uint8_t op;             /* IF, ELSE, LOOP or STEP */
  bool is_merge_reached;  /* its merge block is reachable */
  bool is_other_reached;  /* LOOP: its step is reachable */
  uint32_t merge, header; /* labels */
  uint32_t other;         /* label of the ELSE or the STEP */
  uint32_t path;        /* checked loops, and IFs in them that lead to a BREAK:
                         * a value that equals `visit` on this path only; else
                         * 0 */
  uint32_t other_path;  /* IF: path of its ELSE */
  uint32_t visit, left; /* checked LOOP: number of this visit; variable set by
                         * BREAK */
  uint32_t holds[2];    /* IF: instructions known to be true in it, or 0 */
} spv_open;

enum spv_if_bits {
  SPV_IF_ELSE = 1, /* an ELSE exists */
  SPV_IF_BREAKS = 2,
  SPV_ELSE_BREAKS = 4, /* a BREAK in it belongs to an enclosing loop */
};

/* Location and use of a buffer in the module. */
typedef struct spv_buffer_info {
  bool is_used;       /* loaded or stored */
  bool is_read;       /* loaded */
  bool is_indexed;    /* accessed at an index that is not constant */
  bool is_measured;   /* its length is used */
  bool is_in_block;   /* uniform in the launch block */
  bool is_pushed;     /* there: in push constants */
  bool is_widened;    /* shared, narrow: one word per element */
  uint32_t binding;   /* binding of its descriptor */
  uint32_t word;      /* first word in the block */
  uint32_t length_at; /* word of its length in the block */
  bool is_length_pushed;
  uint32_t variable; /* id */
} spv_buffer_info;

/* First and last instruction of a range. */
typedef struct spv_span {
  uint32_t first, last;
} spv_span;

/* A load of a uniform that is executed once, at the begin of the function. */
typedef struct spv_known {
  uint32_t buffer, id;
  uint64_t index;
} spv_known;

enum { SPV_MAX_KNOWN = 32 };

typedef struct spv_emitter {
  const vyre__lir_kernel *k;
  const vyre__spirv_target *target;
  vyre_arena *arena;
  vyre_allocator allocator;
  vyre_status *st;
  vyre_code failed;
  bool no_memory;
  vyre__spirv_module *out;

  spv_words sections[SPV_SECTIONS];
  uint32_t next_id;
  spv_type *types;
  size_t type_count, type_capacity;
  spv_constant *constants; /* hash table */
  size_t constant_count, constant_capacity;
  uint32_t glsl; /* id of the imported functions */
  bool uses_int8, uses_int16, uses_int64, uses_float64, uses_storage8,
      uses_storage16, uses_atomics64;

  spv_buffer_info *infos; /* per buffer of the kernel */
  uint32_t *ids;          /* per instruction; IF: spv_if_bits */
  bool *decides;          /* per instruction: its value influences an index; see
                           * spmd/passes/single_read.h */
  uint32_t *uses;         /* per instruction: number of uses as an operand */
  bool *is_delayed;       /* loads, and bitcasts of them, that are emitted at
                           * their use */
  uint32_t *vars;         /* per variable of the kernel: its id */
  uint32_t workgroup_id, local_id, local_index; /* variables */
  uint32_t push, block, status, function_type;
  uint32_t counts_fuel; /* specialization constant; 0: always counted */
  bool uses_grid;

  /* state of the phase */
  uint32_t *lengths;     /* ids; 0: unused */
  uint32_t *loop_values; /* ids, two per grid loop: its value or lower half, and
                          * its upper half */
  spv_span *spans;       /* per written buffer: first and last access */
  uint32_t local[3], group[3], grid[3], fuel;
  spv_known known[SPV_MAX_KNOWN];
  size_t known_count;
  bool has_status;           /* the kernel writes the status word */
  bool *is_checked;          /* per phase: has loops that the device may end */
  uint32_t *left;            /* per loop: variable set by BREAK */
  uint32_t one, all, visits; /* for checked loops: the values 1 and all bits,
                              * and a variable */
  bool has_opaque;           /* some float constant must be hidden */
  bool has_private;          /* some array belongs to each invocation */
  uint32_t index_zero;       /* 0 for its indices: see pointer_to */
  bool leaves;               /* surplus lanes of a vector exit at once */
  bool *is_opaque;           /* constants that must be hidden */
  uint32_t none;             /* 0, as a value that no compiler knows */
  spv_open *open;
  size_t open_count, open_capacity;
  uint32_t skipped; /* constructs opened in unreachable code */
  bool is_dead;     /* the block has ended */
  uint32_t label;   /* label of the block */
  uint32_t file;    /* OpString */
  uint32_t line;
} spv_emitter;

#define SPV_COUNT(...) \
  (sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* --- words: word_stream.c ------------------------------------------------- */

void spv_put_all(spv_emitter *e, spv_section to, uint32_t op,
                 const uint32_t *operands, size_t count);
#define SPV_PUT(e, to, op, ...)                                 \
  spv_put_all((e), (to), (op), (const uint32_t[]){__VA_ARGS__}, \
              SPV_COUNT(__VA_ARGS__))
void spv_put_alone(spv_emitter *e, spv_section to, uint32_t op);

/* Emits operands, then a text, then more operands. */
void spv_put_text(spv_emitter *e, spv_section to, uint32_t op,
                  const uint32_t *before, size_t before_count, const char *text,
                  const uint32_t *after, size_t after_count);

static inline uint32_t spv_id(spv_emitter *e) {
  return e->next_id++;
}

uint32_t spv_do_all(spv_emitter *e, uint32_t op, uint32_t type,
                    const uint32_t *operands, size_t count);
/* Emits an instruction with a result and returns its id. */
#define SPV_DO(e, op, type, ...)                                 \
  spv_do_all((e), (op), (type), (const uint32_t[]){__VA_ARGS__}, \
             SPV_COUNT(__VA_ARGS__))

uint32_t spv_type_all(spv_emitter *e, uint32_t op, const uint32_t *operands,
                      size_t count);
#define SPV_TYPE(e, op, ...)                               \
  spv_type_all((e), (op), (const uint32_t[]){__VA_ARGS__}, \
               SPV_COUNT(__VA_ARGS__))

uint32_t spv_void(spv_emitter *e);
uint32_t spv_bool(spv_emitter *e);
uint32_t spv_uint(spv_emitter *e, unsigned bits);
uint32_t spv_type_of(spv_emitter *e, unsigned type); /* of a vyre_type */
uint32_t spv_pointer(spv_emitter *e, uint32_t storage, uint32_t type);
uint32_t spv_const(spv_emitter *e, unsigned type, uint64_t bits);
static inline uint32_t spv_u32(spv_emitter *e, uint32_t number) {
  return spv_const(e, VYRE_TYPE_U32, number);
}
void spv_name(spv_emitter *e, uint32_t id, const char *name);
void spv_decorate(spv_emitter *e, uint32_t id, uint32_t decoration);
uint32_t spv_glsl(spv_emitter *e, uint32_t type, uint32_t function,
                  const uint32_t *operands, size_t count);
#define SPV_GLSL(e, type, function, ...)                             \
  spv_glsl((e), (type), (function), (const uint32_t[]){__VA_ARGS__}, \
           SPV_COUNT(__VA_ARGS__))

/* Begin and end blocks of code. */
void spv_begin_block(spv_emitter *e, uint32_t label);
void spv_branch(spv_emitter *e, uint32_t label);

void spv_reject(spv_emitter *e, uint32_t at, const char *what);

/* --- layout of the interface: layout.c ------------------------------------ */

vyre_code spv_plan(spv_emitter *e);
void spv_declare(spv_emitter *e); /* module variables */
bool spv_is_bound(const vyre__lir_buffer *buffer);
uint64_t spv_elements(const vyre__lir_buffer *buffer); /* in accessed width */
/* Loads a word of the launch block. */
uint32_t spv_block_word(spv_emitter *e, bool is_pushed, uint32_t word);

/* --- operations: values.c, memory.c, control_flow.c ----------------------- */

uint32_t spv_pure(spv_emitter *e, uint32_t at);
uint32_t spv_fma64(spv_emitter *e, const uint32_t x[3]); /* fma64.c */
uint32_t spv_access(spv_emitter *e, uint32_t at);
void spv_set_status(spv_emitter *e, vyre__spirv_end end);
void spv_zero_shared(spv_emitter *e);
uint32_t spv_phase(spv_emitter *e, uint32_t phase);

/* --- order of accesses: memory_order.c ------------------------------------ */

void spv_find_order(spv_emitter *e, vyre__lir_phase range);
void spv_barrier(spv_emitter *e, uint32_t at);
void spv_put_barrier(spv_emitter *e, uint32_t memory); /* SPV_*_MEMORY */
/* Emits the delayed operands of @p user. */
void spv_emit_delayed(spv_emitter *e, uint32_t user);

/* --- opaque float constants: opaque_constants.c --------------------------- */

bool spv_find_opaque(spv_emitter *e);
void spv_make_constants_opaque(spv_emitter *e, vyre__lir_phase range);
/* Returns the value @p id of @p inst, hidden if a compiler could know it. */
uint32_t spv_make_opaque(spv_emitter *e, const vyre__lir_inst *inst,
                         uint32_t id);

/* --- loop limit of a device: loop_limit.c --------------------------------- */

/* Step and end of the loop at @p at, and the number of copies of its body. */
typedef struct spv_extent {
  uint32_t step, end, copies;
} spv_extent;

bool spv_may_be_cut(const spv_emitter *e, vyre__lir_phase range);
spv_extent spv_extent_of(const spv_emitter *e, uint32_t at);
void spv_declare_left(spv_emitter *e, vyre__lir_phase range);
void spv_enter_checked(spv_emitter *e, uint32_t at, spv_open *loop);
uint32_t spv_path(spv_emitter *e, uint32_t condition, bool holds,
                  uint32_t path);
void spv_check_left(spv_emitter *e, const spv_open *loop);
/* Ends a loop without exit. */
void spv_end_endless(spv_emitter *e, const spv_open *loop);

#endif
