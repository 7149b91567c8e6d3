/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads compiled kernels: turns a relocatable ELF object, as LLVM writes it,
 * into callable code. LLVM is not needed for this.
 *
 * The input is untrusted. An object that deviates from the expected format is
 * rejected, and no byte outside it is read. Memory is never writable and
 * executable at the same time. */
#ifndef VYRE_BACKEND_CPU_JIT_ELF_LOADER_H
#define VYRE_BACKEND_CPU_JIT_ELF_LOADER_H

#include <stddef.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__elf_object {
  void *memory; /* mapping */
  size_t size;
  const void *
      *phases; /* addresses of phase0, phase1, ...; inside the mapping */
} vyre__elf_object;

/* Loads @p bytes, which must define phase0 to phase(@p phases - 1).
 * Errors: VYRE_KERNEL_COMPILE_FAILED with the defect of the object;
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__elf_object_load(const void *bytes, size_t size, uint32_t phases,
                                vyre__elf_object *out, vyre_status *st);
/* Unmaps the code. No thread may be running it. Accepts a zeroed object. */
void vyre__elf_object_free(vyre__elf_object *object);

#endif
