/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_compile.h"

enum { MOST_HEADERS = 32 };

/* Files are read, not mapped: one that gets shorter meanwhile is then an end of
 * the file, and no signal. */
typedef struct image {
  int fd;
  uint64_t size;
  Elf64_Phdr headers[MOST_HEADERS];
  size_t header_count; /* that it has */
  /* Of the dynamic section; addresses as it says them, 0: not there. */
  uint64_t hash, symbols, strings, string_size;
  char *needs; /* the library of LLVM that it stands for; "": none */
} image;

static const char not_elf[] = "it is not a shared library";
const char vyre__jit_other_machine[] = "it is built for another architecture";
static const char cut_short[] = "it is truncated or damaged";
static const char unnamed[] = "libLLVM";
static const char not_llvm[] = "it is not LLVM with x86-64";

static bool read_at(const image *in, uint64_t at, void *to, size_t size) {
  return at <= in->size && size <= in->size - at &&
         pread(in->fd, to, size, (off_t)at) == (ssize_t)size;
}

/* What will be at an address, from where it is in the file. */
static bool read_address(const image *in, uint64_t address, void *to,
                         size_t size) {
  for (size_t i = 0; i < in->header_count; i++) {
    const Elf64_Phdr *h = &in->headers[i];
    uint64_t past = address - h->p_vaddr;
    if (h->p_type != PT_LOAD || address < h->p_vaddr || past >= h->p_filesz) {
      continue;
    }
    return size <= h->p_filesz - past &&
           read_at(in, h->p_offset + past, to, size);
  }
  return false;
}

/* Whether the text at @p at of the strings begins with @p start; all of it if
 * that ends with its NUL. */
static bool has_string(const image *in, uint64_t at, const char *start,
                       size_t size) {
  char found[32];
  return at <= in->string_size && size <= in->string_size - at &&
         size <= sizeof found &&
         read_address(in, in->strings + at, found, size) &&
         memcmp(found, start, size) == 0;
}

/* One that is too long is not looked for. */
static void read_name(image *in, uint64_t at) {
  for (size_t i = 0; i < VYRE__JIT_NAME; i++) {
    if (at + i >= in->string_size ||
        !read_address(in, in->strings + at + i, in->needs + i, 1)) {
      break;
    }
    if (in->needs[i] == '\0') return;
  }
  (void)memcpy(in->needs, unnamed, sizeof unnamed);
}

static const char *read_headers(image *in) {
  Elf64_Ehdr header;
  if (!read_at(in, 0, &header, sizeof header) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
    return not_elf;
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64) {
    return vyre__jit_other_machine;
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return cut_short;
  for (size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr h;
    if (!read_at(in, header.e_phoff + i * sizeof h, &h, sizeof h) ||
        (h.p_type == PT_LOAD &&
         (h.p_offset > in->size || h.p_filesz > in->size - h.p_offset))) {
      return cut_short;
    }
    if (i < MOST_HEADERS) in->headers[i] = h;
  }
  in->header_count = header.e_phnum;
  return NULL;
}

enum { MOST_ENTRIES = 256, MOST_NEEDED = 32, MOST_CHAIN = 4096 };

static const char *read_dynamic(image *in) {
  const Elf64_Phdr *at = NULL;
  for (size_t i = 0; i < in->header_count; i++) {
    if (in->headers[i].p_type == PT_DYNAMIC) at = &in->headers[i];
  }
  if (!at) return not_elf;
  Elf64_Dyn entries[MOST_ENTRIES];
  uint64_t needed[MOST_NEEDED];
  size_t needed_count = 0, count = at->p_filesz / sizeof(Elf64_Dyn);
  if (count > MOST_ENTRIES) count = MOST_ENTRIES;
  if (!read_at(in, at->p_offset, entries, count * sizeof *entries)) {
    return cut_short;
  }
  for (size_t i = 0; i < count; i++) {
    const Elf64_Dyn entry = entries[i];
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_GNU_HASH) in->hash = entry.d_un.d_ptr;
    if (entry.d_tag == DT_SYMTAB) in->symbols = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRTAB) in->strings = entry.d_un.d_ptr;
    if (entry.d_tag == DT_STRSZ) in->string_size = entry.d_un.d_val;
    if (entry.d_tag == DT_NEEDED && needed_count < MOST_NEEDED) {
      needed[needed_count++] = entry.d_un.d_val;
    }
  }
  for (size_t i = 0; i < needed_count && !in->needs[0]; i++) {
    if (has_string(in, needed[i], "libLLVM", 7)) read_name(in, needed[i]);
  }
  return NULL;
}

static bool is_symbol(const image *in, uint32_t index, const char *name,
                      size_t size) {
  Elf64_Sym symbol;
  uint64_t at = in->symbols + (uint64_t)index * sizeof symbol;
  return read_address(in, at, &symbol, sizeof symbol) &&
         symbol.st_shndx != SHN_UNDEF &&
         has_string(in, symbol.st_name, name, size);
}

/* In the table that loaders look names up in. */
static bool has_function(const image *in, const char *name) {
  uint32_t head[4], hash = 5381, index, found;
  for (const char *c = name; *c; c++) hash = hash * 33 + (unsigned char)*c;
  if (!read_address(in, in->hash, head, sizeof head) || head[0] == 0) {
    return false;
  }
  uint64_t buckets = in->hash + sizeof head + (uint64_t)head[2] * 8;
  uint64_t chains = buckets + (uint64_t)head[0] * 4;
  if (!read_address(in, buckets + (uint64_t)(hash % head[0]) * 4, &index, 4) ||
      index < head[1]) {
    return false;
  }
  for (int i = 0; i < MOST_CHAIN; i++, index++) {
    uint64_t at = chains + (uint64_t)(index - head[1]) * 4;
    if (!read_address(in, at, &found, 4)) return false;
    if ((found | 1) == (hash | 1) &&
        is_symbol(in, index, name, strlen(name) + 1)) {
      return true;
    }
    if (found & 1) return false;
  }
  return false;
}

static const char *doubt(image *in) {
  const char *wrong = read_headers(in);
  /* So many, or without that table: it is for the loader to say. */
  if (!wrong && in->header_count > MOST_HEADERS) return NULL;
  if (!wrong) wrong = read_dynamic(in);
  if (wrong || in->needs[0]) return wrong;
  if (in->hash == 0) return NULL;
  return has_function(in, "LLVMGetVersion") &&
                 has_function(in, "LLVMInitializeX86Target")
             ? NULL
             : not_llvm;
}

const char *vyre__jit_problem(const char *path, char needs[VYRE__JIT_NAME]) {
  struct stat found;
  image in = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
              .needs = needs};
  needs[0] = '\0';
  if (in.fd < 0) return "it cannot be read";
  const char *wrong = not_elf;
  if (fstat(in.fd, &found) == 0 && S_ISREG(found.st_mode)) {
    in.size = (uint64_t)found.st_size;
    wrong = doubt(&in);
  }
  (void)close(in.fd);
  return wrong;
}
