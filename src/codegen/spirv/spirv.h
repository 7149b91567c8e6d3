/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A lowered kernel as a SPIR-V 1.3 module for Vulkan 1.1 and later, and what the
 * module expects of who runs it, as data.
 *
 * A module has one entry point a phase, "phase0", "phase1" and so on, all of the
 * same workgroup. It sees, all in descriptor set 0:
 *
 *   buffers      a storage buffer each, at the slot that the binding plan gives
 *                it: its place among the bindings of the plan without the shared
 *                ones. A range is whole words: where the bytes are not a multiple
 *                of four, the descriptor reaches to the next one that is. Eight
 *                bytes are always there, of an empty buffer too: a load outside
 *                takes the first element, and does not use it. It has 2^31-1
 *                elements at most, since SPIR-V takes an index for signed.
 *   uniforms     in the launch block, if they are read at known places only, and
 *                there is room; else a storage buffer like the others
 *   hidden ones  behind the slots of the plan: status, what is kept across grid
 *                barriers, and the part of the launch block that is a buffer
 *
 * and the launch block: words whose places `fields` tells. Those that change from
 * launch to launch come first, in push constants as long as there is room; the
 * rest is in a uniform buffer. Uniforms are packed behind them, while there is room
 * in push constants, or in a storage buffer that holds all of the block. Ids, lengths
 * and the grid come from there and not from the device, so that a grid can be
 * launched in parts: the workgroup's id is the device's plus `base`.
 *
 * Specialization constants 0, 1 and 2 are the workgroup's size. Their defaults are
 * what the kernel was lowered for, and it holds for no other: a device that wants
 * another one lowers again. Constant 3 is there if `may_skip_fuel`: whether rounds
 * of loops are counted. Without, a dispatch that allows 2^32-1 of them or more ends
 * as it would with it. */
#ifndef VYRE_CODEGEN_SPIRV_SPIRV_H
#define VYRE_CODEGEN_SPIRV_SPIRV_H

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"

enum {
  VYRE__SPIRV_PUSH_BYTES = 128, /* that every device has */
  VYRE__SPIRV_COUNTS_FUEL = 3,  /* a specialization constant, a bool */
};

/* What a device has. Zeroed: what every device of Vulkan 1.1 has. Widths of floats
 * are 32, 64 or both, as bits; a mode is named only for widths that the kernel
 * has, and must be one that the device does have. */
typedef struct vyre__spirv_target {
  bool storage8, storage16; /* such elements in storage buffers */
  bool int8, int16;         /* and side by side in workgroup memory; without,
                               each has a word there */
  bool int64, float64;
  bool fma64;   /* fma of f64 rounds once; without it is made of integers */
  bool whole64; /* rint and trunc of f64 are right; without they are made of
                   sums */
  bool buffer_atomics64, shared_atomics64;
  bool vulkan_memory_model;   /* else GLSL450 */
  bool device_scope;          /* in the Vulkan memory model */
  bool zeroes_workgroup;      /* workgroup memory with an initial value */
  uint8_t keeps_signed_zeros; /* widths of SignedZeroInfNanPreserve */
  uint8_t keeps_subnormals;   /* of DenormPreserve */
  uint8_t rounds_to_even;     /* of RoundingModeRTE */
  uint32_t push_bytes;        /* of push constants; 0: 128 */
  bool block_in_storage; /* all of the launch block, in a storage buffer. For
                                 Mesa 22.3's software device: what is computed
                                 from uniform memory and decides about a branch
                                 takes it time that doubles with each operation */
  uint32_t most_rounds;  /* of all loops together, which a device lets its
                                 invocations have: then it ends them and goes on
                                 as if nothing were. Of those that run side by
                                 side, with the rounds of all. Loops that may
                                 come there tell it, and are rolled out. 0: no
                                 such device */
  bool drops_outside;    /* the device itself looks whether an access of a
                                 storage buffer is inside of its descriptor, and
                                 does none that is not: Mesa's llvmpipe */
  uint32_t vector;     /* invocations along x that the device runs as one. Where
                                 a workgroup does not fill the last, what is
                                 too many computes all the same, loads zeros, and
                                 loops wait for it, also those with barriers: so
                                 it leaves at once. 0: no such device */
  bool hides_floats;   /* from the compiler, which does not compute what is
                                 done with a constant 0.0: Mesa's llvmpipe */
  bool binds_uniforms; /* none in the launch block */
  bool names;          /* of buffers and variables, for people */
  bool lines;          /* of the source, likewise */
} vyre__spirv_target;

typedef enum vyre__spirv_what {
  VYRE__SPIRV_BUFFER, /* of the program */
  VYRE__SPIRV_STATUS, /* one word, zeros before: a vyre__spirv_end after */
  VYRE__SPIRV_KEPT,   /* vyre__lir_spill_words words */
  VYRE__SPIRV_BLOCK,  /* the launch block, as far as it is not pushed */
} vyre__spirv_what;

typedef enum vyre__spirv_end {
  VYRE__SPIRV_ENDED, /* as it should */
  VYRE__SPIRV_OUT_OF_FUEL,
  VYRE__SPIRV_CUT, /* the device has ended a loop (most_rounds): what was written
                      is worth nothing */
} vyre__spirv_end;

typedef struct vyre__spirv_descriptor {
  uint8_t what;     /* vyre__spirv_what */
  bool is_uniform;  /* a uniform buffer; else a storage buffer */
  bool is_written;  /* by the kernel */
  uint32_t binding; /* in set 0 */
  uint32_t buffer;  /* BUFFER, KEPT: index in the kernel */
} vyre__spirv_descriptor;

/* What a field of the launch block holds, in words of 32 bits. */
typedef enum vyre__spirv_value {
  VYRE__SPIRV_BASE,       /* x y z: where this launch begins in the grid */
  VYRE__SPIRV_GRID,       /* x y z: of the dispatch */
  VYRE__SPIRV_FUEL,       /* rounds of loops, of an invocation */
  VYRE__SPIRV_ONE,        /* 1, and no compiler knows it */
  VYRE__SPIRV_LOOP_VALUE, /* of grid loop `index`, low half first */
  VYRE__SPIRV_LENGTH,     /* of buffer `index` of the kernel, in elements */
  VYRE__SPIRV_UNIFORM, /* the bytes of buffer `index` that are declared; zeros
                             up to a word */
} vyre__spirv_value;

typedef struct vyre__spirv_field {
  uint8_t value;   /* vyre__spirv_value */
  bool is_pushed;  /* in push constants; else in the buffer BLOCK */
  uint32_t index;  /* of a loop or buffer */
  uint32_t offset; /* bytes from the begin of where it is */
  uint32_t size;   /* bytes */
} vyre__spirv_field;

typedef struct vyre__spirv_module {
  const uint32_t *words;
  size_t word_count;
  uint32_t entry_points; /* as many as phases */
  uint32_t workgroup[3];
  uint32_t shared_bytes; /* of workgroup memory */
  uint32_t push_bytes;   /* from 0 on; 0: no push constants */
  uint32_t block_bytes;  /* of the buffer BLOCK; 0: there is none */
  bool may_skip_fuel;    /* there is specialization constant COUNTS_FUEL */
  uint32_t slots;        /* bindings are below that */
  const vyre__spirv_descriptor
      *descriptors; /* by binding; unused ones left out */
  size_t descriptor_count;
  const vyre__spirv_field *fields;
  size_t field_count;
} vyre__spirv_module;

/* Spells @p kernel, which all passes have seen, for @p target (NULL: zeroed).
 * *out lives in @p arena. Same kernel and target, same words.
 * A load of memory that may change, whose value decides about an index, happens
 * once: a kernel that races stays inside of its buffers too. Buffers that are bound
 * for uniforms must be the launch's own: nothing else may write them.
 * Errors: VYRE_UNSUPPORTED_FEATURE for what the target has not;
 * VYRE_INVALID_ARGUMENT if an operation is left that has no spelling;
 * VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__emit_spirv(const vyre__lir_kernel *kernel,
                                          const vyre__spirv_target *target,
                                          vyre_arena *arena,
                                          vyre__spirv_module *out,
                                          vyre_status *st);

/* Prints the words of a module as assemblers take it. Names (OpName) are part of
 * what ids are called, lines of the source (OpLine) become comments.
 * Errors: VYRE_INVALID_ARGUMENT for words that vyre__emit_spirv does not make, and
 * VYRE_KIND_WRITER_REFUSED if the writer refused; VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__spirv_print(const uint32_t *words, size_t count,
                                           vyre_allocator allocator,
                                           vyre_writer writer, vyre_status *st);

#endif
