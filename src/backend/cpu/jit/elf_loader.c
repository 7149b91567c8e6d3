/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In the mapping: code sections, jumps for calls to the outside, then from the
 * next page on what is only read, the addresses of the phases last. */
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

enum {
  MOST_SECTIONS = 96,
  MOST_PHASES = 1 << 16,
  MOST_BYTES = 256 << 20, /* 32-bit distances reach everywhere in it */
  JUMP = 16,
  LEAD = 64, /* before the first code: sanitizers look for a mark there */
};

/* What kernels may call. LLVM makes such calls of loops and large copies, and of
 * what a processor has no instruction for: these are exact, wherever they come
 * from. */
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
};
enum { EXTERNALS = sizeof externals / sizeof externals[0] };

typedef struct loader {
  const unsigned char *bytes;
  size_t size;
  Elf64_Ehdr header;
  uint32_t section_count;
  Elf64_Shdr sections[MOST_SECTIONS];
  size_t at[MOST_SECTIONS]; /* in the mapping; SIZE_MAX: not loaded */
  const char *section_names;
  size_t section_names_size;
  uint32_t symbols; /* its section */
  size_t symbol_count;
  const char *names; /* of symbols */
  size_t names_size;
  size_t jumps, code_size, phases, total;
  unsigned char *to; /* the mapping */
  vyre_status *st;
} loader;

static vyre_code bad(const loader *l, const char *what, uint64_t number) {
  return VYRE_FAIL_WITH(l->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
                        VYRE_NUMBERS({"number", number}),
                        "compile the kernel again; `vyre cache prune --all` "
                        "drops what is on disk",
                        "an object of %zu bytes cannot be loaded: %s (%llu)",
                        l->size, what, (unsigned long long)number);
}

static vyre_code bad_name(const loader *l, const char *what, const char *name) {
  return VYRE_FAIL(l->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                   "compile the kernel again; `vyre cache prune --all` drops "
                   "what is on disk",
                   "an object of %zu bytes cannot be loaded: %s '%.60s'",
                   l->size, what, name);
}

/* Bytes of the object; NULL if it has them not all. */
static const void *bytes_at(const loader *l, uint64_t offset, uint64_t size) {
  if (offset > l->size || size > l->size - offset) return NULL;
  return l->bytes + offset;
}

/* A name of a table; NULL if it does not end in there. */
static const char *name_at(const char *table, size_t size, uint32_t offset) {
  if (offset >= size || !memchr(table + offset, 0, size - offset)) return NULL;
  return table + offset;
}

/* --- what is in it ---------------------------------------------------------------*/

static vyre_code read_header(loader *l) {
  const void *header = bytes_at(l, 0, sizeof l->header);
  if (!header) return bad(l, "it ends in its header", l->size);
  memcpy(&l->header, header, sizeof l->header);
  const Elf64_Ehdr *h = &l->header;
  if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
      h->e_ident[EI_CLASS] != ELFCLASS64 ||
      h->e_ident[EI_DATA] != ELFDATA2LSB ||
      h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT) {
    return bad(l, "it is no 64-bit ELF", h->e_ident[EI_CLASS]);
  }
  if (h->e_type != ET_REL) return bad(l, "it is not relocatable", h->e_type);
  if (h->e_machine != EM_X86_64) {
    return bad(l, "it is for another machine than x86-64", h->e_machine);
  }
  if (h->e_shentsize != sizeof(Elf64_Shdr)) {
    return bad(l, "its sections have another size", h->e_shentsize);
  }
  if (h->e_shnum == 0 || h->e_shnum > MOST_SECTIONS) {
    return bad(l, "it has no sections, or too many", h->e_shnum);
  }
  l->section_count = h->e_shnum;
  return VYRE_OK;
}

static vyre_code read_table(loader *l, uint32_t section, const char **out,
                            size_t *size) {
  if (section == 0 || section >= l->section_count ||
      l->sections[section].sh_type != SHT_STRTAB) {
    return bad(l, "a table of names is none", section);
  }
  *out =
      bytes_at(l, l->sections[section].sh_offset, l->sections[section].sh_size);
  *size = (size_t)l->sections[section].sh_size;
  return *out ? VYRE_OK : bad(l, "a table of names is outside", section);
}

static vyre_code read_sections(loader *l) {
  uint64_t size = (uint64_t)l->section_count * sizeof(Elf64_Shdr);
  const void *table = bytes_at(l, l->header.e_shoff, size);
  if (!table) return bad(l, "its sections are outside", l->header.e_shoff);
  memcpy(l->sections, table, (size_t)size);
  VYRE_TRY(read_table(l, l->header.e_shstrndx, &l->section_names,
                      &l->section_names_size));
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (!name_at(l->section_names, l->section_names_size, s->sh_name)) {
      return bad(l, "a section has no name", i);
    }
    if (s->sh_type == SHT_REL) return bad(l, "a section is REL", i);
    if (s->sh_type != SHT_SYMTAB) continue;
    if (l->symbols) return bad(l, "it has two tables of symbols", i);
    l->symbols = i;
  }
  if (!l->symbols) return bad(l, "it has no symbols", 0);
  const Elf64_Shdr *symbols = &l->sections[l->symbols];
  if (symbols->sh_entsize != sizeof(Elf64_Sym) ||
      symbols->sh_size % sizeof(Elf64_Sym) != 0 ||
      !bytes_at(l, symbols->sh_offset, symbols->sh_size)) {
    return bad(l, "its symbols are outside", symbols->sh_size);
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

/* --- where it goes ---------------------------------------------------------------*/

static const char *section_name(const loader *l, uint32_t section) {
  return l->section_names + l->sections[section].sh_name;
}

/* Frames are for who unwinds, which nobody does through a kernel. */
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
    return bad_name(l, "bytes that are not in the file:", name);
  }
  if (s->sh_flags & ~known) return bad_name(l, "unknown flags of", name);
  bool is_constant = strncmp(name, ".data.rel.ro", 12) == 0;
  if ((s->sh_flags & SHF_WRITE) && (is_code(s) || !is_constant)) {
    return bad_name(l, "a section that is written:", name);
  }
  uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
  if (align > 4096 || (align & (align - 1)) != 0) {
    return bad_name(l, "the alignment of", name);
  }
  if (!bytes_at(l, s->sh_offset, s->sh_size)) {
    return bad_name(l, "its bytes end before those of", name);
  }
  return VYRE_OK;
}

static size_t align_up(size_t value, size_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/* Places the sections that are code, or those that are not. */
static vyre_code place(loader *l, bool code) {
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (code) l->at[i] = SIZE_MAX;
    if (!(s->sh_flags & SHF_ALLOC) || is_frames(l, i)) continue;
    if (code) VYRE_TRY(check_section(l, i));
    if (is_code(s) != code) continue;
    l->at[i] = align_up(l->total, s->sh_addralign ? s->sh_addralign : 1);
    if (s->sh_size > MOST_BYTES - l->at[i]) {
      return bad(l, "it is too large", s->sh_size);
    }
    l->total = l->at[i] + (size_t)s->sh_size;
  }
  return VYRE_OK;
}

static vyre_code lay_out(loader *l, uint32_t phases) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  l->total = LEAD;
  VYRE_TRY(place(l, true));
  l->jumps = align_up(l->total, JUMP);
  l->code_size = align_up(l->jumps + (size_t)EXTERNALS * JUMP, page);
  l->total = l->code_size;
  VYRE_TRY(place(l, false));
  l->phases = align_up(l->total, sizeof(void *));
  l->total = align_up(l->phases + phases * sizeof(void *), page);
  if (l->total > MOST_BYTES) return bad(l, "it is too large", l->total);
  return VYRE_OK;
}

/* --- putting it there ------------------------------------------------------------*/

/* jmp *0(%rip), and the address behind it. */
static void write_jumps(const loader *l) {
  static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
  for (size_t i = 0; i < EXTERNALS; i++) {
    unsigned char *to = l->to + l->jumps + i * JUMP;
    memcpy(to, jump, sizeof jump);
    memcpy(to + sizeof jump, &externals[i].address, sizeof(void *));
  }
}

static void copy_sections(const loader *l) {
  memset(l->to, 0xcc, l->code_size); /* traps where no code is */
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (l->at[i] == SIZE_MAX || s->sh_size == 0) continue;
    memcpy(l->to + l->at[i], l->bytes + s->sh_offset, (size_t)s->sh_size);
  }
}

static vyre_code find_external(const loader *l, const Elf64_Sym *symbol,
                               size_t *at) {
  const char *name = name_at(l->names, l->names_size, symbol->st_name);
  if (!name) return bad(l, "a symbol has no name", symbol->st_name);
  for (size_t i = 0; i < EXTERNALS; i++) {
    if (strcmp(externals[i].name, name) != 0) continue;
    *at = l->jumps + i * JUMP;
    return VYRE_OK;
  }
  return bad_name(l, "it calls", name);
}

/* Where symbol @p index is in the mapping. */
static vyre_code find_symbol(const loader *l, uint64_t index, bool is_call,
                             size_t *at) {
  if (index == 0 || index >= l->symbol_count) {
    return bad(l, "a relocation has no symbol", index);
  }
  Elf64_Sym symbol = symbol_at(l, (size_t)index);
  if (symbol.st_shndx == SHN_UNDEF && is_call) {
    return find_external(l, &symbol, at);
  }
  if (symbol.st_shndx >= l->section_count ||
      l->at[symbol.st_shndx] == SIZE_MAX) {
    return bad(l, "a symbol is in no section that is loaded", index);
  }
  if (symbol.st_value > l->sections[symbol.st_shndx].sh_size) {
    return bad(l, "a symbol is outside of its section", index);
  }
  *at = l->at[symbol.st_shndx] + (size_t)symbol.st_value;
  return VYRE_OK;
}

/* What a distance or an address points at must be in the mapping: between its
 * ends, 4 bytes before (which is where the code counts from) and its end. */
static bool is_inside(const loader *l, int64_t target) {
  return target >= 0 && target <= (int64_t)l->total;
}

static vyre_code relocate(const loader *l, uint32_t section,
                          const Elf64_Rela *r) {
  uint64_t kind = ELF64_R_TYPE(r->r_info);
  size_t width = kind == R_X86_64_64 ? 8 : 4, at;
  uint64_t size = l->sections[section].sh_size;
  if (kind != R_X86_64_64 && kind != R_X86_64_PC32 && kind != R_X86_64_PLT32) {
    return bad(l, "a kind of relocation that is not known", kind);
  }
  if (size < width || r->r_offset > size - width) {
    return bad(l, "a relocation is outside of its section", r->r_offset);
  }
  VYRE_TRY(find_symbol(l, ELF64_R_SYM(r->r_info), kind == R_X86_64_PLT32, &at));
  int64_t addend = r->r_addend;
  if (addend < -MOST_BYTES || addend > MOST_BYTES) {
    return bad(l, "a relocation leads outside", (uint64_t)addend);
  }
  int64_t target = (int64_t)at + addend;
  unsigned char *place = l->to + l->at[section] + r->r_offset;
  if (kind == R_X86_64_64) {
    if (!is_inside(l, target)) {
      return bad(l, "a relocation leads outside", (uint64_t)addend);
    }
    const unsigned char *address = l->to + target;
    memcpy(place, &address, sizeof address);
    return VYRE_OK;
  }
  /* Code counts from the end of the four bytes. */
  if (!is_inside(l, is_code(&l->sections[section]) ? target + 4 : target)) {
    return bad(l, "a relocation leads outside", (uint64_t)addend);
  }
  int32_t distance =
      (int32_t)(target - (int64_t)(l->at[section] + r->r_offset));
  memcpy(place, &distance, sizeof distance);
  return VYRE_OK;
}

static vyre_code relocate_all(const loader *l) {
  for (uint32_t i = 0; i < l->section_count; i++) {
    const Elf64_Shdr *s = &l->sections[i];
    if (s->sh_type != SHT_RELA) continue;
    if (s->sh_info == 0 || s->sh_info >= l->section_count) {
      return bad(l, "relocations are of no section", s->sh_info);
    }
    if (l->at[s->sh_info] == SIZE_MAX) continue;
    const unsigned char *list = bytes_at(l, s->sh_offset, s->sh_size);
    if (!list || s->sh_entsize != sizeof(Elf64_Rela) ||
        s->sh_size % sizeof(Elf64_Rela) != 0 || s->sh_link != l->symbols) {
      return bad(l, "relocations are outside", s->sh_size);
    }
    for (uint64_t k = 0; k < s->sh_size; k += sizeof(Elf64_Rela)) {
      Elf64_Rela entry;
      memcpy(&entry, list + k, sizeof entry);
      VYRE_TRY(relocate(l, s->sh_info, &entry));
    }
  }
  return VYRE_OK;
}

/* --- phases ----------------------------------------------------------------------*/

/* The number of "phase12"; UINT32_MAX for other names. */
static uint32_t phase_number(const char *name) {
  uint32_t number = 0;
  if (strncmp(name, "phase", 5) != 0 || name[5] == '\0') return UINT32_MAX;
  if (name[5] == '0' && name[6] != '\0') return UINT32_MAX;
  for (const char *digit = name + 5; *digit; digit++) {
    if (*digit < '0' || *digit > '9' || number > MOST_PHASES) {
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
    if (!name) return bad(l, "a symbol has no name", i);
    uint32_t number = phase_number(name);
    size_t at;
    if (number >= phases) return bad_name(l, "a function too many:", name);
    if (table[number]) return bad_name(l, "it has twice", name);
    VYRE_TRY(find_symbol(l, i, false, &at));
    if (!is_code(&l->sections[symbol.st_shndx]) ||
        symbol.st_value >= l->sections[symbol.st_shndx].sh_size) {
      return bad_name(l, "no code is", name);
    }
    table[number] = l->to + at;
    found++;
  }
  if (found != phases) return bad(l, "it lacks phases, and has", found);
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
  return VYRE_FAIL(l->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NOT_SUPPORTED,
                   "let the process have executable memory, or take device "
                   "'ref'",
                   "the system does not let memory be executed: %s",
                   strerror(errno));
}

vyre_code vyre__elf_object_load(const void *bytes, size_t size, uint32_t phases,
                                vyre__elf_object *out, vyre_status *st) {
  loader l = {.bytes = bytes, .size = size, .st = st};
  *out = (vyre__elf_object){0};
  if (phases == 0 || phases > MOST_PHASES) {
    return bad(&l, "a number of phases that it cannot have", phases);
  }
  VYRE_TRY(read_header(&l));
  VYRE_TRY(read_sections(&l));
  VYRE_TRY(lay_out(&l, phases));
  /* All of it is written now: pages at once are cheaper than one by one. */
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
