/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A minimal shared library for tests: it exports LLVM's function names,
 * without code. It needs a library that does not exist, so that only
 * loading it fails. */
#ifndef VYRE_BACKEND_CPU_JIT_LLVM_FILE_TESTING_H
#define VYRE_BACKEND_CPU_JIT_LLVM_FILE_TESTING_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct tiny_library {
  Elf64_Ehdr header;
  Elf64_Phdr load, dynamic;
  Elf64_Dyn entries[7];
  uint32_t hash_head[4];
  uint64_t bloom;
  uint32_t bucket, chain[2];
  uint32_t room;
  Elf64_Sym symbols[3];
  char strings[80];
} tiny_library;

static inline uint32_t tiny_hash(const char *name) {
  uint32_t hash = 5381;
  for (; *name; name++) hash = hash * 33 + (unsigned char)*name;
  return hash;
}

#define TINY_AT(field) offsetof(tiny_library, field)

/* Addresses equal offsets in the file. */
static inline tiny_library tiny_make(const char *needs, const char *first,
                                     const char *second) {
  tiny_library made = {
      .header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
                             ELFDATA2LSB, EV_CURRENT},
                 .e_type = ET_DYN,
                 .e_machine = EM_X86_64,
                 .e_version = EV_CURRENT,
                 .e_phoff = TINY_AT(load),
                 .e_ehsize = sizeof(Elf64_Ehdr),
                 .e_phentsize = sizeof(Elf64_Phdr),
                 .e_phnum = 2},
      .load = {.p_type = PT_LOAD,
               .p_flags = PF_R,
               .p_filesz = sizeof(tiny_library),
               .p_memsz = sizeof(tiny_library),
               .p_align = 4096},
      .dynamic = {.p_type = PT_DYNAMIC,
                  .p_flags = PF_R,
                  .p_offset = TINY_AT(entries),
                  .p_vaddr = TINY_AT(entries),
                  .p_filesz = sizeof made.entries,
                  .p_memsz = sizeof made.entries,
                  .p_align = 8},
      .entries = {{DT_NEEDED, {1}},
                  {DT_GNU_HASH, {TINY_AT(hash_head)}},
                  {DT_STRTAB, {TINY_AT(strings)}},
                  {DT_STRSZ, {sizeof made.strings}},
                  {DT_SYMTAB, {TINY_AT(symbols)}},
                  {DT_SYMENT, {sizeof(Elf64_Sym)}}},
      .hash_head = {1, 1, 1, 6},
      .bloom = UINT64_MAX,
      .bucket = 1,
      .chain = {tiny_hash(first) & ~1u, tiny_hash(second) | 1u}};
  size_t used = 1 + strlen(needs) + 1;
  memcpy(made.strings + 1, needs, strlen(needs));
  const char *const names[] = {first, second};
  for (int i = 0; i < 2; i++) {
    made.symbols[i + 1] =
        (Elf64_Sym){.st_name = (Elf64_Word)used,
                    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                    .st_shndx = 1};
    memcpy(made.strings + used, names[i], strlen(names[i]));
    used += strlen(names[i]) + 1;
  }
  return made;
}

static inline bool tiny_write(const char *path, const void *bytes,
                              size_t size) {
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  bool is_done = fwrite(bytes, 1, size, file) == size;
  return fclose(file) == 0 && is_done;
}

#endif
