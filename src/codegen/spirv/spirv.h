/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits a LIR kernel as a SPIR-V 1.3 module for Vulkan 1.1 and later, with a
 * description of its interface.
 *
 * A module has one entry point per phase, "phase0", "phase1" and so on, all
 * with the same workgroup size. Its interface is in descriptor set 0:
 *
 *   buffers    One storage buffer each. The binding is the index among the
 *              bindings of the plan, without shared ones. A range consists of
 *              full words: a descriptor whose bytes are not a multiple of four
 *              extends to the next multiple. Eight bytes always exist, even in
 *              an empty buffer, because an out-of-bounds load reads the first
 *              element and ignores it. A buffer has at most 2^31-1 elements,
 *              since SPIR-V treats an index as signed.
 *   uniforms   In the launch block if they are read at constant indices only
 *              and fit; else a storage buffer like the others.
 *   internal   After the bindings of the plan: the status word, the spill
 *              buffer, and the part of the launch block that is a buffer.
 *
 * The launch block consists of words at the offsets in `fields`. Words that
 * change from launch to launch come first, in push constants while they fit;
 * the rest is in a uniform buffer. Uniforms are packed after them if they fit
 * in push constants, or in a storage buffer that holds the full block. Ids,
 * lengths and the grid come from this block and not from the device, so that a
 * grid can be launched in pieces: the id of a workgroup is the device's id plus
 * `base`.
 *
 * Specialization constants 0, 1 and 2 are the workgroup size. Their defaults
 * are the size that the kernel was lowered for, and no other size is valid:
 * another size needs another lowering. Constant 3 exists if `may_skip_fuel` and
 * selects if loop iterations are counted. A dispatch with a limit of 2^32-1 or
 * more gives the same result without counting. */
#ifndef VYRE_CODEGEN_SPIRV_SPIRV_H
#define VYRE_CODEGEN_SPIRV_SPIRV_H

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"

enum {
  VYRE__SPIRV_PUSH_BYTES = 128, /* minimum of every device */
  VYRE__SPIRV_COUNTS_FUEL = 3,  /* id of a bool specialization constant */
};

/* Capabilities of a device. Zeroed: the minimum of Vulkan 1.1. Widths of floats
 * are the bits 32 and 64. A float mode is requested only for widths that the
 * kernel uses, and the device must support it. */
typedef struct vyre__spirv_target {
  bool storage8, storage16; /* 8- and 16-bit elements in storage buffers */
  bool int8, int16;         /* 8- and 16-bit elements packed in workgroup
                             * memory; without, each takes a word */
  bool int64, float64;
  bool fma64;   /* fma of f64 rounds once; without, it is emulated with
                 * integers */
  bool whole64; /* rint and trunc of f64 are exact; without, they are computed
                 * by sums */
  bool buffer_atomics64, shared_atomics64;
  bool vulkan_memory_model;   /* else GLSL450 */
  bool device_scope;          /* in the Vulkan memory model */
  bool zeroes_workgroup;      /* initial values of workgroup memory */
  uint8_t keeps_signed_zeros; /* widths of SignedZeroInfNanPreserve */
  uint8_t keeps_subnormals;   /* widths of DenormPreserve */
  uint8_t rounds_to_even;     /* widths of RoundingModeRTE */
  uint32_t push_bytes;        /* maximum push constants; 0: 128 */
  bool block_in_storage; /* The full launch block is a storage buffer. For Mesa
                          * 22.3's software device: its compile time doubles
                          * with each operation on uniform memory that a branch
                          * depends on. */
  uint32_t max_iterations; /* Loop iterations after which the device ends all
                          * loops of its invocations without an error; vectors
                          * share the count. Loops that may reach the limit are
                          * unrolled and report it. 0: no limit */
  bool drops_outside;  /* The device skips accesses outside the descriptor of
                          * a storage buffer: Mesa's llvmpipe */
  uint32_t vector;     /* Invocations along x that the device runs as one
                          * vector. If a workgroup does not fill the last
                          * vector, the surplus lanes still execute, load zeros,
                          * and loops wait for them, even those with barriers;
                          * so they exit at once. 0: no such device */
  bool hides_floats;   /* Hides float constants from the device compiler, which
                        * skips operations on a constant 0.0: Mesa's llvmpipe */
  bool binds_uniforms; /* no uniforms in the launch block */
  bool names;          /* names of buffers and variables, for debugging */
  bool lines;          /* source lines, for debugging */
} vyre__spirv_target;

typedef enum vyre__spirv_what {
  VYRE__SPIRV_BUFFER, /* buffer of the program */
  VYRE__SPIRV_STATUS, /* one word, zero before the launch; a vyre__spirv_end
                       * after it */
  VYRE__SPIRV_KEPT,   /* spill buffer, spill_words per invocation */
  VYRE__SPIRV_BLOCK,  /* launch block, except push constants */
} vyre__spirv_what;

typedef enum vyre__spirv_end {
  VYRE__SPIRV_ENDED, /* finished normally */
  VYRE__SPIRV_OUT_OF_FUEL,
  VYRE__SPIRV_CUT, /* the device ended a loop early (most_rounds): the results
                    * are invalid */
} vyre__spirv_end;

typedef struct vyre__spirv_descriptor {
  uint8_t what;     /* vyre__spirv_what */
  bool is_uniform;  /* uniform buffer; else storage buffer */
  bool is_written;  /* written by the kernel */
  uint8_t reserved; /* zero: artifacts have no padding */
  uint32_t binding; /* in set 0 */
  uint32_t buffer;  /* BUFFER, KEPT: index in the kernel */
} vyre__spirv_descriptor;

/* Value of a field of the launch block, in words of 32 bits. */
typedef enum vyre__spirv_value {
  VYRE__SPIRV_BASE,       /* x y z: first workgroup of this launch in the
                           * grid */
  VYRE__SPIRV_GRID,       /* x y z: grid of the dispatch */
  VYRE__SPIRV_FUEL,       /* loop iterations per invocation */
  VYRE__SPIRV_ONE,        /* 1, as a value that no compiler knows */
  VYRE__SPIRV_LOOP_VALUE, /* variable of grid loop `index`, low half first */
  VYRE__SPIRV_LENGTH,     /* elements of buffer `index` of the kernel */
  VYRE__SPIRV_UNIFORM,    /* declared bytes of buffer `index`, zero-padded to a
                           * word */
} vyre__spirv_value;

typedef struct vyre__spirv_field {
  uint8_t value;     /* vyre__spirv_value */
  bool is_pushed;    /* in push constants; else in the buffer BLOCK */
  uint16_t reserved; /* zero: artifacts have no padding */
  uint32_t index;    /* index of a loop or buffer */
  uint32_t offset;   /* byte offset in push constants or BLOCK */
  uint32_t size;     /* bytes */
} vyre__spirv_field;

typedef struct vyre__spirv_module {
  const uint32_t *words;
  size_t word_count;
  uint32_t entry_points; /* one per phase */
  uint32_t workgroup[3];
  uint32_t shared_bytes; /* bytes of workgroup memory */
  uint32_t push_bytes;   /* push constants from offset 0; 0: none */
  uint32_t block_bytes;  /* bytes of the buffer BLOCK; 0: none */
  bool may_skip_fuel;    /* specialization constant COUNTS_FUEL exists */
  uint32_t slots;        /* upper bound of all bindings */
  const vyre__spirv_descriptor
      *descriptors; /* sorted by binding, without unused ones */
  size_t descriptor_count;
  const vyre__spirv_field *fields;
  size_t field_count;
} vyre__spirv_module;

/* Emits @p kernel, which must be fully lowered, for @p target (NULL: zeroed).
 * *out lives in @p arena. Equal kernels and targets give equal words.
 * A load from memory that may change is executed once if its value influences
 * an index, so that even a racing kernel stays within its buffers. Buffers
 * bound for uniforms must belong to the launch: nothing else may write them.
 * Errors: VYRE_UNSUPPORTED_FEATURE for features that the target lacks;
 * VYRE_INVALID_ARGUMENT if an operation is not fully lowered;
 * VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__emit_spirv(const vyre__lir_kernel *kernel,
                                          const vyre__spirv_target *target,
                                          vyre_arena *arena,
                                          vyre__spirv_module *out,
                                          vyre_status *st);

/* Sets the features of *uses that the capabilities of a module name, and clears
 * all other fields. The words may be corrupt. */
void vyre__spirv_capabilities(const uint32_t *words, size_t count,
                              vyre__spirv_target *uses);
/* Removes the float modes of a module that @p target does not support, of those
 * that were emitted for a target with all of them: the result is the module
 * emitted for @p target. Returns the new number of words. The words may be
 * corrupt; there are at least five. */
size_t vyre__spirv_limit_float_modes(uint32_t *words, size_t count,
                                     const vyre__spirv_target *target);

/* Prints the words of a module as assembler text. Names (OpName) become part of
 * ids, source lines (OpLine) become comments.
 * Errors: VYRE_INVALID_ARGUMENT for words that vyre__emit_spirv never emits,
 * and VYRE_KIND_WRITER_REFUSED if the writer failed; VYRE_OUT_OF_MEMORY. */
VYRE_NODISCARD vyre_code vyre__spirv_print(const uint32_t *words, size_t count,
                                           vyre_allocator allocator,
                                           vyre_writer writer, vyre_status *st);

/* Writes a module as assembler text, or as little-endian words.
 * Errors: those of vyre__spirv_print. */
VYRE_NODISCARD vyre_code vyre__spirv_write(const vyre__spirv_module *module,
                                           bool is_text,
                                           vyre_allocator allocator,
                                           vyre_writer writer, vyre_status *st);

#endif
