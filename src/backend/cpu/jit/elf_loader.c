/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads relocatable ELF objects. The mapping contains the code sections, stubs
 * for calls to the C library, then, from the next page on, read-only data, and
 * last the table of phase addresses. */
/* MAP_ANONYMOUS and MAP_POPULATE are not in POSIX */
#define _DEFAULT_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include "backend/cpu/jit/elf_loader.h"

#include <elf.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"
#include "spmd/passes/sum_strip.h"

enum {
  MAX_SECTIONS = 96,
  MAX_PHASES = 1 << 16,
  MAX_BYTES = 256 << 20, /* within reach of 32-bit displacements */
  JUMP = 16,
  LEAD = 64, /* bytes before the code; UBSan looks there for a signature */
};

/* Functions that kernels may call. LLVM inserts calls for loops that copy or
 * fill memory, and for operations without an instruction. Additions to exact
 * sums call functions of sums.c. All of them are exact. */
static const struct {
  const char *name;
  void (*address)(void);
} externals[] = {
    {"memcpy", (void (*)(void))memcpy},
    {"memmove", (void (*)(void))memmove},
    {"memset", (void (*)(void))memset},
    {"floor", (void (*)(void))(double (*)(double))floor},
    {"ceil", (void (*)(void))(double (*)(double))ceil},
    {"trunc", (void (*)(void))(double (*)(double))trunc},
    {"rint", (void (*)(void))(double (*)(double))rint},
    {"fma", (void (*)(void))(double (*)(double, double, double))fma},
    {"vyre__sum_strip_begin_f32", (void (*)(void))vyre__sum_strip_begin_f32},
    {"vyre__sum_strip_begin_f64", (void (*)(void))vyre__sum_strip_begin_f64},
    {"vyre__sum_strip_end_f32", (void (*)(void))vyre__sum_strip_end_f32},
    {"vyre__sum_strip_end_f64", (void (*)(void))vyre__sum_strip_end_f64},
    {"vyre__sum_strip_add_f32", (void (*)(void))vyre__sum_strip_add_f32},
    {"vyre__sum_strip_add_f64", (void (*)(void))vyre__sum_strip_add_f64},
};
enum { EXTERNALS = sizeof externals / sizeof externals[0] };

typedef struct loader {
  const unsigned char *bytes;
  size_t size;
  Elf64_Ehdr header;
  uint32_t section_count;
  Elf64_Shdr sections[MAX_SECTIONS];
  size_t at[MAX_SECTIONS]; /* offset in the mapping; SIZE_MAX: not loaded */
  const char *section_names;
  size_t section_names_size;
  uint32_t symbols; /* section of the symbol table */
  size_t symbol_count;
  const char *names; /* symbol names */
  size_t names_size;
  size_t jumps, code_size, phases, total;
  unsigned char *to; /* the mapping */
  vyre_status *st;
} loader;

static vyre_code reject(const loader *l, const char *what, uint64_t number) {
  return VYRE_FAIL_WITH(
      l->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"number", number}),
      "run `vyre cache prune --all`, then compile the kernel again",
      "an object of %zu bytes cannot be loaded: %s (%llu)", l->size, what,
      (unsigned long long)number);
}

static vyre_code reject_name(const loader *l, const char *what,
                             const char *name) {
  return VYRE_FAIL(
      l->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
      "run `vyre cache prune --all`, then compile the kernel again",
      "an object of %zu bytes cannot be loaded: %s '%.60s'", l->size, what,
      name);
}

/* Returns @p size bytes of the object, or NULL if they are not inside it. */
static const void *bytes_at(const loader *l, uint64_t offset, uint64_t size) {
  if (offset > l->size || size > l->size - offset) return NULL;
  return l->bytes + offset;
}

/* Returns a name in a string table, or NULL if it does not end inside the
 * table. */
static const char *name_at(const char *table, size_t size, uint32_t offset) {
  if (offset >= size || !memchr(table + offset, 0, size - offset)) return NULL;
  return table + offset;
}

/* --- reading the headers ---------------------------------------------------*/

static vyre_code read_header(loader *l) {
  const void *header = bytes_at(l, 0, sizeof l->header);
  if (!header) return reject(l, "truncated ELF header", l->size);
  memcpy(&l->header, header, sizeof l->header);
  const Elf64_Ehdr *h = &l->header;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
      h->e_ident[EI_CLASS] != ELFCLASS64 ||
      h->e_ident[EI_DATA] != ELFDATA2LSB ||
      h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT) {
    return reject(l, "it is not a 64-bit ELF file", h->e_ident[EI_CLASS]);
  }
  if (h->e_type != ET_REL) return reject(l, "it is not relocatable", h->e_type);
  if (h->e_machine != EM_X86_64) {
    return reject(l, "it is not for x86-64", h->e_machine);
  }
  if (h->e_shentsize != sizeof(Elf64_Shdr)) {
    return reject(l, "unexpected size of a section header", h->e_shentsize);
  }
  if (h->e_shnum == 0 || h->e_shnum > MAX_SECTIONS) {
    return reject(l, "no sections, or too many", h->e_shnum);
  }
  l->section_count = h->e_shnum;
  return VYRE_OK;
}

static vyre_code read_table(loader *l, uint32_t section, const char **out,
                            size_t *size) {
  if (section == 0 || section >= l->section_count ||
      l->sections[section].sh_type != SHT_STRTAB) {
    return reject(l, "invalid string table", section);
  }
  *out =
      bytes_at(l, l->sections[section].sh_offset, l->sections[section].sh_size);
  *size = (size_t)l->sections[section].sh_size;
  return *out ? VYRE_OK : reject(l, "string table out of bounds", section);
}

static vyre_code read_sections(loader *l) {
  uint64_t size = (uint64_t)l->section_count * sizeof(Elf64_Shdr);
  const void *table = bytes_at(l, l->header.e_shoff, size);
  if (!table)
    return reject(l, "section headers out of bounds", l->header.e_shoff);
  memcpy(l->sections, table, (size_t)size);
  VYRE_TRY(read_table(l, l->header.e_shstrndx, &l->section_names,
                      &l->section_names_size));
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (!name_at(l->section_names, l->section_names_size, s->sh_name)) {
      return reject(l, "a section without a name", i);
    }
    if (s->sh_type == SHT_REL) return reject(l, "unsupported REL section", i);
    if (s->sh_type != SHT_SYMTAB) continue;
    if (l->symbols) return reject(l, "more than one symbol table", i);
    l->symbols = i;
  }
  if (!l->symbols) return reject(l, "no symbol table", 0);
  const Elf64_Shdr *symbols = &l->sections[l->symbols];
  if (symbols->sh_entsize != sizeof(Elf64_Sym) ||
      symbols->sh_size % sizeof(Elf64_Sym) != 0 ||
      !bytes_at(l, symbols->sh_offset, symbols->sh_size)) {
    return reject(l, "invalid symbol table", symbols->sh_size);
  }
  l->symbol_count = (size_t)symbols->sh_size / sizeof(Elf64_Sym);
  return read_table(l, symbols->sh_link, &l->names, &l->names_size);
}

static Elf64_Sym symbol_at(const loader *l, size_t index) {
  Elf64_Sym symbol;
  memcpy(&symbol,
         l->bytes + l->sections[l->symbols].sh_offset + index * sizeof symbol,
         sizeof symbol);
  return symbol;
}

/* --- layout ----------------------------------------------------------------*/

static const char *section_name(const loader *l, uint32_t section) {
  return l->section_names + l->sections[section].sh_name;
}

/* .eh_frame is not loaded: a kernel throws nothing, so its stack is
 * never unwound. */
static bool is_frames(const loader *l, uint32_t section) {
  return strcmp(section_name(l, section), ".eh_frame") == 0;
}

static bool is_code(const Elf64_Shdr *section) {
  return section->sh_flags & SHF_EXECINSTR;
}

static vyre_code check_section(const loader *l, uint32_t i) {
  const Elf64_Shdr *s = &l->sections[i];
  const char *name = section_name(l, i);
  uint64_t known =
      SHF_ALLOC | SHF_EXECINSTR | SHF_WRITE | SHF_MERGE | SHF_STRINGS;
  if (s->sh_type != SHT_PROGBITS) {
    return reject_name(l, "unsupported section type:", name);
  }
  if (s->sh_flags & ~known)
    return reject_name(l, "unknown flags of section", name);
  bool is_constant = strncmp(name, ".data.rel.ro", 12) == 0;
  if ((s->sh_flags & SHF_WRITE) && (is_code(s) || !is_constant)) {
    return reject_name(l, "writable section:", name);
  }
  uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
  if (align > 4096 || (align & (align - 1)) != 0) {
    return reject_name(l, "invalid alignment of section", name);
  }
  if (!bytes_at(l, s->sh_offset, s->sh_size)) {
    return reject_name(l, "truncated section", name);
  }
  return VYRE_OK;
}

static size_t align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/* Assigns offsets to the code sections, or to all others. */
static vyre_code assign_offsets(loader *l, bool code) {
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (code) l->at[i] = SIZE_MAX;
    if (!(s->sh_flags & SHF_ALLOC) || is_frames(l, i)) continue;
    if (code) VYRE_TRY(check_section(l, i));
    if (is_code(s) != code) continue;
    l->at[i] = align_up(l->total, s->sh_addralign ? s->sh_addralign : 1);
    if (s->sh_size > MAX_BYTES - l->at[i]) {
      return reject(l, "it is too large", s->sh_size);
    }
    l->total = l->at[i] + (size_t)s->sh_size;
  }
  return VYRE_OK;
}

static vyre_code lay_out(loader *l, uint32_t phases) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  l->total = LEAD;
  VYRE_TRY(assign_offsets(l, true));
  l->jumps = align_up(l->total, JUMP);
  l->code_size = align_up(l->jumps + (size_t)EXTERNALS * JUMP, page);
  l->total = l->code_size;
  VYRE_TRY(assign_offsets(l, false));
  l->phases = align_up(l->total, sizeof(void *));
  l->total = align_up(l->phases + phases * sizeof(void *), page);
  if (l->total > MAX_BYTES) return reject(l, "it is too large", l->total);
  return VYRE_OK;
}

/* --- loading ---------------------------------------------------------------*/

/* Writes a stub for each external function: jmp *0(%rip), followed by its
 * address. */
static void write_jumps(const loader *l) {
  static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
  for (size_t i = 0; i < EXTERNALS; i++) {
    unsigned char *to = l->to + l->jumps + i * JUMP;
    memcpy(to, jump, sizeof jump);
    memcpy(to + sizeof jump, &externals[i].address, sizeof(void *));
  }
}

static void copy_sections(const loader *l) {
  memset(l->to, 0xcc, l->code_size); /* int3 in the gaps */
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (l->at[i] == SIZE_MAX || s->sh_size == 0) continue;
    memcpy(l->to + l->at[i], l->bytes + s->sh_offset, (size_t)s->sh_size);
  }
}

static vyre_code find_external(const loader *l, const Elf64_Sym *symbol,
                               size_t *at) {
  const char *name = name_at(l->names, l->names_size, symbol->st_name);
  if (!name) return reject(l, "a symbol without a name", symbol->st_name);
  for (size_t i = 0; i < EXTERNALS; i++) {
    if (strcmp(externals[i].name, name) != 0) continue;
    *at = l->jumps + i * JUMP;
    return VYRE_OK;
  }
  return reject_name(l, "call to unknown function", name);
}

/* Finds the offset of symbol @p index in the mapping. */
static vyre_code find_symbol(const loader *l, uint64_t index, bool is_call,
                             size_t *at) {
  if (index == 0 || index >= l->symbol_count) {
    return reject(l, "a relocation without a symbol", index);
  }
  Elf64_Sym symbol = symbol_at(l, (size_t)index);
  if (symbol.st_shndx == SHN_UNDEF && is_call) {
    return find_external(l, &symbol, at);
  }
  if (symbol.st_shndx >= l->section_count ||
      l->at[symbol.st_shndx] == SIZE_MAX) {
    return reject(l, "a symbol in a section that is not loaded", index);
  }
  if (symbol.st_value > l->sections[symbol.st_shndx].sh_size) {
    return reject(l, "a symbol outside its section", index);
  }
  *at = l->at[symbol.st_shndx] + (size_t)symbol.st_value;
  return VYRE_OK;
}

/* Returns true if a relocation's target lies inside the mapping or at its
 * end. */
static bool is_inside(const loader *l, int64_t target) {
  return target >= 0 && target <= (int64_t)l->total;
}

static vyre_code relocate(const loader *l, uint32_t section,
                          const Elf64_Rela *r) {
  uint64_t kind = ELF64_R_TYPE(r->r_info);
  size_t width = kind == R_X86_64_64 ? 8 : 4, at;
  uint64_t size = l->sections[section].sh_size;
  if (kind != R_X86_64_64 && kind != R_X86_64_PC32 && kind != R_X86_64_PLT32) {
    return reject(l, "unknown relocation type", kind);
  }
  if (size < width || r->r_offset > size - width) {
    return reject(l, "a relocation outside its section", r->r_offset);
  }
  VYRE_TRY(find_symbol(l, ELF64_R_SYM(r->r_info), kind == R_X86_64_PLT32, &at));
  int64_t addend = r->r_addend;
  if (addend < -MAX_BYTES || addend > MAX_BYTES) {
    return reject(l, "a relocation target out of bounds", (uint64_t)addend);
  }
  int64_t target = (int64_t)at + addend;
  unsigned char *field = l->to + l->at[section] + r->r_offset;
  if (kind == R_X86_64_64) {
    if (!is_inside(l, target)) {
      return reject(l, "a relocation target out of bounds", (uint64_t)addend);
    }
    const unsigned char *address = l->to + target;
    memcpy(field, &address, sizeof address);
    return VYRE_OK;
  }
  /* x86 displacements count from the end of the four bytes. */
  if (!is_inside(l, is_code(&l->sections[section]) ? target + 4 : target)) {
    return reject(l, "a relocation target out of bounds", (uint64_t)addend);
  }
  int32_t distance =
      (int32_t)(target - (int64_t)(l->at[section] + r->r_offset));
  memcpy(field, &distance, sizeof distance);
  return VYRE_OK;
}

static vyre_code relocate_all(const loader *l) {
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type != SHT_RELA) continue;
    if (s->sh_info == 0 || s->sh_info >= l->section_count) {
      return reject(l, "relocations for a missing section", s->sh_info);
    }
    if (l->at[s->sh_info] == SIZE_MAX) continue;
    const unsigned char *list = bytes_at(l, s->sh_offset, s->sh_size);
    if (!list || s->sh_entsize != sizeof(Elf64_Rela) ||
        s->sh_size % sizeof(Elf64_Rela) != 0 || s->sh_link != l->symbols) {
      return reject(l, "invalid relocation table", s->sh_size);
    }
    for (uint64_t k = 0; k < s->sh_size; k += sizeof(Elf64_Rela)) {
      Elf64_Rela entry;
      memcpy(&entry, list + k, sizeof entry);
      VYRE_TRY(relocate(l, s->sh_info, &entry));
    }
  }
  return VYRE_OK;
}

/* --- phases ----------------------------------------------------------------*/

/* Returns 12 for "phase12", and UINT32_MAX for other names. */
static uint32_t phase_number(const char *name) {
  uint32_t number = 0;
  if (strncmp(name, "phase", 5) != 0 || name[5] == '\0') return UINT32_MAX;
  if (name[5] == '0' && name[6] != '\0') return UINT32_MAX;
  for (const char *digit = name + 5; *digit; digit++) {
    if (*digit < '0' || *digit > '9' || number > MAX_PHASES) {
      return UINT32_MAX;
    }
    number = number * 10 + (uint32_t)(*digit - '0');
  }
  return number;
}

static vyre_code find_phases(const loader *l, uint32_t phases) {
  const void **table = (const void **)(void *)(l->to + l->phases);
  uint32_t found = 0;
  for (size_t i = 1; i < l->symbol_count; i++) {
    Elf64_Sym symbol = symbol_at(l, i);
    if (ELF64_ST_BIND(symbol.st_info) != STB_GLOBAL ||
        ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) {
      continue;
    }
    const char *name = name_at(l->names, l->names_size, symbol.st_name);
    if (!name) return reject(l, "a symbol without a name", i);
    uint32_t number = phase_number(name);
    size_t at;
    if (number >= phases) return reject_name(l, "unexpected function", name);
    if (table[number]) return reject_name(l, "duplicate function", name);
    VYRE_TRY(find_symbol(l, i, false, &at));
    if (!is_code(&l->sections[symbol.st_shndx]) ||
        symbol.st_value >= l->sections[symbol.st_shndx].sh_size) {
      return reject_name(l, "function without code", name);
    }
    table[number] = l->to + at;
    found++;
  }
  if (found != phases) return reject(l, "missing phases; found only", found);
  return VYRE_OK;
}

static vyre_code fill(const loader *l, uint32_t phases) {
  copy_sections(l);
  write_jumps(l);
  VYRE_TRY(relocate_all(l));
  VYRE_TRY(find_phases(l, phases));
  if (mprotect(l->to, l->code_size, PROT_READ | PROT_EXEC) == 0 &&
      mprotect(l->to + l->code_size, l->total - l->code_size, PROT_READ) == 0) {
    return VYRE_OK;
  }
  return VYRE_FAIL(
      l->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NOT_SUPPORTED,
      "allow the process to map executable memory, or use device 'ref'",
      "the system does not allow executable memory: %s", strerror(errno));
}

vyre_code vyre__elf_object_load(const void *bytes, size_t size, uint32_t phases,
                                vyre__elf_object *out, vyre_status *st) {
  loader l = {.bytes = bytes, .size = size, .st = st};
  *out = (vyre__elf_object){0};
  if (phases == 0 || phases > MAX_PHASES) {
    return reject(&l, "invalid number of phases", phases);
  }
  VYRE_TRY(read_header(&l));
  VYRE_TRY(read_sections(&l));
  VYRE_TRY(lay_out(&l, phases));
  /* All pages are written now; populating them at once is cheaper. */
  void *to = mmap(NULL, l.total, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (to == MAP_FAILED) {
    return vyre__no_memory(st, "cpu", "bytes of code", l.total);
  }
  l.to = to;
  vyre_code code = fill(&l, phases);
  if (code != VYRE_OK) {
    (void)munmap(to, l.total);
    return code;
  }
  *out = (vyre__elf_object){.memory = to,
                            .size = l.total,
                            .phases = (const void **)(void *)(l.to + l.phases)};
  return VYRE_OK;
}

void vyre__elf_object_free(vyre__elf_object *object) {
  if (object->memory) (void)munmap(object->memory, object->size);
  *object = (vyre__elf_object){0};
}
