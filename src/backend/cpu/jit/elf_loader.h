/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads compiled kernels: a relocatable ELF object, as LLVM writes it, becomes
 * code that can be called. Nothing of LLVM is needed for it.
 *
 * Bytes may be anything: what is not exactly as expected is refused, nothing is
 * read outside. Memory is never writable and executable at once. */
#ifndef VYRE_BACKEND_CPU_JIT_ELF_LOADER_H
#define VYRE_BACKEND_CPU_JIT_ELF_LOADER_H

#include <stddef.h>

#include "vyre/memory.h"
#include "vyre/status.h"

typedef struct vyre__elf_object {
  void *memory; /* mapped */
  size_t size;
  const void **phases; /* addresses of phase0, phase1, ...; in the mapping */
} vyre__elf_object;

/* Loads @p bytes, which must define phase0 to phase(@p phases - 1).
 * Errors: VYRE_KERNEL_COMPILE_FAILED saying what is wrong with the object;
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__elf_object_load(const void *bytes, size_t size, uint32_t phases,
                                vyre__elf_object *out, vyre_status *st);
/* When nobody runs it. A zeroed one is fine. */
void vyre__elf_object_free(vyre__elf_object *object);

#endif
