/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks a library before it is given to the dynamic loader. The loader
 * does not notice that a file is truncated, for example by an interrupted
 * installation: it maps the file, and the first access beyond its end
 * kills the process. So the length of the file is compared with its
 * program headers here. */
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_compile.h"

static const char not_elf[] = "it is not a shared library";
const char vyre__jit_other_machine[] = "it is built for another architecture";
static const char truncated[] = "it is truncated or damaged";

typedef struct library_file {
  int fd;
  uint64_t size;
} library_file;

/* The file is read and not mapped: if it shrinks now, read fails without a
 * signal. */
static bool read_at(const library_file *in, uint64_t at, void *to,
                    size_t size) {
  return at <= in->size && size <= in->size - at &&
         pread(in->fd, to, size, (off_t)at) == (ssize_t)size;
}

static const char *check_headers(const library_file *in) {
  Elf64_Ehdr header;
  if (!read_at(in, 0, &header, sizeof header) ||
      memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN) {
    return not_elf;
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_machine != EM_X86_64) {
    return vyre__jit_other_machine;
  }
  if (header.e_phentsize != sizeof(Elf64_Phdr)) return truncated;
  for (size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr h;
    if (!read_at(in, header.e_phoff + i * sizeof h, &h, sizeof h) ||
        (h.p_type == PT_LOAD &&
         (h.p_offset > in->size || h.p_filesz > in->size - h.p_offset))) {
      return truncated;
    }
  }
  return NULL;
}

const char *vyre__jit_problem(const char *path) {
  struct stat found;
  library_file in = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (in.fd < 0) return "it cannot be read";
  const char *problem = not_elf;
  if (fstat(in.fd, &found) == 0 && S_ISREG(found.st_mode)) {
    in.size = (uint64_t)found.st_size;
    problem = check_headers(&in);
  }
  (void)close(in.fd);
  return problem;
}
