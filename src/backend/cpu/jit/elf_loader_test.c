/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/jit/elf_loader.h"

#include <elf.h>
#include <inttypes.h>

#include "backend/cpu/jit/llvm_compile_testing.h"
#include "codegen/llvm/llvm.h"
#include "support/check.h"

/* Returns an object in memory of exactly its size, so that a sanitizer finds
 * reads beyond it. */
static code_bytes compile_both(void) {
  code_bytes text = {0}, out = {0};
  vyre_status st = {0};
  CHECK(code_write(&text, code_kernel, strlen(code_kernel)));
  CHECK(code_write(&text, code_second, strlen(code_second)));
  CHECK_OK(vyre__jit(text.data, text.size, CODE_CPU, CODE_FEATURES,
                     VYRE__JIT_FULL, VYRE__JIT_OBJECT, code_writer(&out), &st),
           st);
  free(text.data);
  char *exact = malloc(out.size);
  CHECK(exact != NULL);
  memcpy(exact, out.data, out.size);
  free(out.data);
  return (code_bytes){exact, out.size};
}

static vyre__spmd_phase *phase_of(const vyre__elf_object *object, int number) {
  vyre__spmd_phase *phase;
  memcpy(&phase, &object->phases[number], sizeof phase);
  return phase;
}

static void check_runs(const vyre__elf_object *object) {
  enum { GROUPS = 5 };
  uint32_t data[4 * GROUPS], table[] = {7, 11, 13, 17};
  _Alignas(8) unsigned char
      block[sizeof(vyre__spmd_launch) + sizeof(vyre__spmd_view)] = {0};
  vyre__spmd_launch *launch = (vyre__spmd_launch *)(void *)block;
  launch->views[0] =
      (vyre__spmd_view){.data = (unsigned char *)data, .length = 4 * GROUPS};
  CHECK_U64(phase_of(object, 0)(launch, 0, GROUPS, NULL), 0);
  for (uint32_t i = 0; i < 4 * GROUPS; i++) {
    CHECK_U64(data[i], 3 * i + table[i % 4]);
  }
  unsigned char scratch[40];
  memset(scratch, 1, sizeof scratch);
  CHECK_U64(phase_of(object, 1)(NULL, 0, 3, scratch), 21);
  CHECK(scratch[2] == 5 && scratch[3] == 1);
  CHECK_U64(phase_of(object, 1)(NULL, 1, 40, scratch), 42);
  CHECK(scratch[39] == 5);
}

TEST(an_object_of_two_phases_loads_and_runs) {
  code_bytes bytes = compile_both();
  vyre__elf_object object;
  vyre_status st = {0};
  CHECK_OK(vyre__elf_object_load(bytes.data, bytes.size, 2, &object, &st), st);
  free(bytes.data); /* not needed after loading */
  check_runs(&object);
  vyre__elf_object_free(&object);
  vyre__elf_object_free(&object); /* of a freed object */
}

/* Checks the permissions of every page of the object in /proc/self/maps. */
TEST(no_loaded_page_is_writable) {
  code_bytes bytes = compile_both();
  vyre__elf_object object;
  vyre_status st = {0};
  CHECK_OK(vyre__elf_object_load(bytes.data, bytes.size, 2, &object, &st), st);
  FILE *maps = fopen("/proc/self/maps", "r");
  CHECK(maps != NULL);
  uintptr_t begin = (uintptr_t)object.memory, end = begin + object.size;
  size_t code = 0, seen = 0;
  char line[512], rights[5];
  while (fgets(line, sizeof line, maps)) {
    uintptr_t from, to;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) !=
        3) {
      continue;
    }
    if (to <= begin || from >= end) continue;
    if (from < begin) from = begin;
    if (to > end) to = end;
    CHECK(rights[1] == '-');
    seen += to - from;
    if (rights[2] == 'x') code += to - from;
  }
  (void)fclose(maps);
  CHECK_U64(seen, object.size);
  CHECK(code > 0 && code < object.size);
  vyre__elf_object_free(&object);
  free(bytes.data);
}

/* --- invalid objects -------------------------------------------------------*/

typedef struct sections {
  Elf64_Ehdr *header;
  Elf64_Shdr *list;
  const char *names;
} sections;

static sections sections_of(code_bytes *bytes) {
  sections s = {.header = (Elf64_Ehdr *)(void *)bytes->data};
  s.list = (Elf64_Shdr *)(void *)(bytes->data + s.header->e_shoff);
  s.names = bytes->data + s.list[s.header->e_shstrndx].sh_offset;
  return s;
}

static Elf64_Shdr *section_named(code_bytes *bytes, const char *name) {
  sections s = sections_of(bytes);
  for (int i = 0; i < s.header->e_shnum; i++) {
    if (strcmp(s.names + s.list[i].sh_name, name) == 0) return &s.list[i];
  }
  return NULL;
}

static Elf64_Rela *relocation_of(code_bytes *bytes, const char *section) {
  return (Elf64_Rela *)(void *)(bytes->data +
                                section_named(bytes, section)->sh_offset);
}

static Elf64_Sym *symbol_named(code_bytes *bytes, const char *name) {
  Elf64_Shdr *table = section_named(bytes, ".symtab");
  const char *names =
      bytes->data + sections_of(bytes).list[table->sh_link].sh_offset;
  Elf64_Sym *list = (Elf64_Sym *)(void *)(bytes->data + table->sh_offset);
  for (size_t i = 0; i < table->sh_size / sizeof *list; i++) {
    if (strcmp(names + list[i].st_name, name) == 0) return &list[i];
  }
  return NULL;
}

static void rename_symbol(code_bytes *bytes, const char *from, const char *to) {
  Elf64_Shdr *table = section_named(bytes, ".symtab");
  char *names = bytes->data + sections_of(bytes).list[table->sh_link].sh_offset;
  /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the old one's end stays */
  memcpy(names + symbol_named(bytes, from)->st_name, to, strlen(to));
}

static void spoil(code_bytes *b, int how) {
  sections s = sections_of(b);
  switch (how) {
    case 0:
      b->data[1] = 'X';
      break;
    case 1:
      s.header->e_machine = EM_AARCH64;
      break;
    case 2:
      s.header->e_type = ET_DYN;
      break;
    case 3:
      s.header->e_shoff = b->size - 1;
      break;
    case 4:
      s.header->e_shnum = 60000;
      break;
    case 5:
      s.header->e_shstrndx = s.header->e_shnum;
      break;
    case 6:
      section_named(b, ".text")->sh_size = b->size;
      break;
    case 7:
      section_named(b, ".text")->sh_flags |= SHF_WRITE;
      break;
    case 8:
      section_named(b, ".rodata")->sh_flags |= SHF_WRITE;
      break;
    case 9:
      section_named(b, ".rodata")->sh_type = SHT_NOBITS;
      break;
    case 10:
      section_named(b, ".text")->sh_addralign = 3;
      break;
    case 11:
      section_named(b, ".rodata")->sh_flags |= SHF_TLS;
      break;
    case 12:
      rename_symbol(b, "memset", "system");
      break;
    case 13:
      rename_symbol(b, "phase1", "phase0");
      break;
    case 14:
      rename_symbol(b, "phase1", "phase2");
      break;
    case 15:
      rename_symbol(b, "phase1", "phases");
      break;
    case 16:
      symbol_named(b, "phase0")->st_shndx = 60;
      break;
    case 17:
      symbol_named(b, "phase0")->st_value = 1 << 20;
      break;
    case 18:
      relocation_of(b, ".rela.text")->r_info = ELF64_R_INFO(2, R_X86_64_32S);
      break;
    case 19:
      relocation_of(b, ".rela.text")->r_info = ELF64_R_INFO(99, R_X86_64_PC32);
      break;
    case 20:
      relocation_of(b, ".rela.text")->r_offset = 1 << 20;
      break;
    case 21:
      relocation_of(b, ".rela.text")->r_offset = UINT64_MAX;
      break;
    case 22:
      relocation_of(b, ".rela.text")->r_addend = 1 << 24;
      break;
    case 23:
      relocation_of(b, ".rela.data.rel.ro")->r_addend = -99999;
      break;
    case 24:
      relocation_of(b, ".rela.data.rel.ro")->r_addend = INT64_MIN;
      break;
    case 25:
      section_named(b, ".rela.text")->sh_type = SHT_REL;
      break;
    case 26:
      section_named(b, ".rela.text")->sh_info = 70;
      break;
    case 27:
      section_named(b, ".rela.text")->sh_size += 8;
      break;
    case 28:
      section_named(b, ".symtab")->sh_type = SHT_NULL;
      break;
    case 29:
      section_named(b, ".symtab")->sh_size += 4096;
      break;
    default:
      symbol_named(b, "phase0")->st_shndx =
          (uint16_t)(section_named(b, ".rodata") - s.list);
  }
}

static const char *const spoilt_says[] = {"not a 64-bit ELF",
                                          "not for x86-64",
                                          "not relocatable",
                                          "section headers out of bounds",
                                          "too many",
                                          "string table",
                                          "truncated section",
                                          "writable section: '.text'",
                                          "writable section: '.rodata'",
                                          "unsupported section type",
                                          "alignment",
                                          "flags",
                                          "unknown function 'system'",
                                          "duplicate function 'phase0'",
                                          "unexpected function 'phase2'",
                                          "unexpected function 'phases'",
                                          "section that is not loaded",
                                          "outside its section",
                                          "unknown relocation type (11)",
                                          "without a symbol (99)",
                                          "outside its section",
                                          "outside its section",
                                          "target out of bounds",
                                          "target out of bounds",
                                          "target out of bounds",
                                          "REL section",
                                          "missing section (70)",
                                          "invalid relocation table",
                                          "no symbol table",
                                          "invalid symbol table",
                                          "function without code 'phase0'"};

TEST(unexpected_objects_are_refused_by_name) {
  for (size_t i = 0; i < sizeof spoilt_says / sizeof spoilt_says[0]; i++) {
    code_bytes bytes = compile_both();
    vyre__elf_object object = {0};
    vyre_status st = {0};
    spoil(&bytes, (int)i);
    vyre_code code =
        vyre__elf_object_load(bytes.data, bytes.size, 2, &object, &st);
    if (code == VYRE_OK) printf("    case %zu\n", i);
    CHECK_FAILS(code, st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
    CHECK_HAS(st.message, spoilt_says[i]);
    CHECK(object.memory == NULL);
    free(bytes.data);
  }
}

TEST(phases_must_match_the_kernel) {
  code_bytes bytes = compile_both();
  static const uint32_t wrong[] = {0, 1, 3, UINT32_MAX};
  for (int i = 0; i < 4; i++) {
    vyre__elf_object object;
    vyre_status st = {0};
    CHECK_FAILS(
        vyre__elf_object_load(bytes.data, bytes.size, wrong[i], &object, &st),
        st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE);
  }
  free(bytes.data);
}

/* Tries every length and thousands of changed bytes and words. The object is
 * rejected, or the addresses are inside its code; it is never run. */
static void try_load(const char *bytes, size_t size) {
  char *exact = malloc(size ? size : 1);
  CHECK(exact != NULL);
  memcpy(exact, bytes, size);
  vyre__elf_object object;
  vyre_status st = {0};
  vyre_code code = vyre__elf_object_load(exact, size, 2, &object, &st);
  free(exact);
  if (code != VYRE_OK) {
    CHECK(st.message[0] && st.fix[0] && !object.memory);
    return;
  }
  uintptr_t begin = (uintptr_t)object.memory, end = begin + object.size;
  for (int i = 0; i < 2; i++) {
    uintptr_t at = (uintptr_t)object.phases[i];
    CHECK(at >= begin && at < end);
  }
  vyre__elf_object_free(&object);
}

TEST(any_length_of_an_object_is_refused_or_loads) {
  code_bytes bytes = compile_both();
  for (size_t size = 0; size <= bytes.size; size++) try_load(bytes.data, size);
  free(bytes.data);
}

TEST(flipped_bytes_and_words_of_an_object_are_refused_or_load) {
  static const uint64_t odd[] = {0,
                                 1,
                                 0x7f,
                                 0xff,
                                 0x7fffffff,
                                 0xffffffff,
                                 UINT64_C(1) << 63,
                                 UINT64_MAX - 7,
                                 UINT64_MAX};
  code_bytes bytes = compile_both();
  char *copy = malloc(bytes.size);
  CHECK(copy != NULL);
  uint64_t state = 7;
  for (int round = 0; round < 30000; round++) {
    memcpy(copy, bytes.data, bytes.size);
    for (int change = 0; change < 1 + round % 3; change++) {
      state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
      size_t at = (size_t)(state >> 33) % bytes.size;
      size_t width = (size_t)1 << (state >> 5) % 4;
      uint64_t value = odd[(state >> 9) % 9];
      if (round & 1) value = (unsigned char)copy[at] ^ 1u << (state >> 20) % 8;
      if (round & 1) width = 1;
      if (at + width > bytes.size) at = bytes.size - width;
      memcpy(copy + at, &value, width);
    }
    try_load(copy, bytes.size);
  }
  free(copy);
  free(bytes.data);
}

TEST_MAIN(TEST_ENTRY(an_object_of_two_phases_loads_and_runs),
          TEST_ENTRY(no_loaded_page_is_writable),
          TEST_ENTRY(unexpected_objects_are_refused_by_name),
          TEST_ENTRY(phases_must_match_the_kernel),
          TEST_ENTRY(any_length_of_an_object_is_refused_or_loads),
          TEST_ENTRY(flipped_bytes_and_words_of_an_object_are_refused_or_load))
