/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dladdr1, dl_iterate_phdr: where LLVM is in memory */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_compile.h"
#include "backend/cpu/threads/atfork.h"
#include "base/memory.h"
#include "base/status.h"

/* The end of the process destroys LLVM's static objects, on the thread that
 * calls exit(), while other threads may be inside of it. What LLVM registered
 * for that while it was loaded is older than `end` below, which is called
 * before it, and waits. What it registers later, when a function first needs
 * its table, would be called before `end`: so that is not registered at all. It
 * is memory, and goes with the process. */

/* --- who is inside ---------------------------------------------------------*/

/* How many are inside; the lowest bit says that the process ends. */
static atomic_uint inside;
/* Of them on this thread: it may end the process itself. */
static _Thread_local unsigned own __attribute__((tls_model("initial-exec")));
static pid_t loaded_by;

enum { ENDING = 1, ONE = 2 };

static vyre_code refuse(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE,
                   "compile before the process ends",
                   "nothing is compiled any more: the process is ending");
}

vyre_code vyre__jit_enter(vyre_status *st) {
  if (!(atomic_fetch_add(&inside, ONE) & ENDING)) {
    own++;
    return VYRE_OK;
  }
  atomic_fetch_sub(&inside, ONE);
  return refuse(st);
}

void vyre__jit_leave(void) {
  own--;
  atomic_fetch_sub(&inside, ONE);
}

vyre_code vyre__jit_continue(vyre_status *st) {
  return atomic_load(&inside) & ENDING ? refuse(st) : VYRE_OK;
}

/* In the child of a fork, which has none of the other threads; those that it
 * starts are waited for at its end. */
static void begin_child(void *self) {
  (void)self;
  loaded_by = getpid();
  atomic_store(&inside, (atomic_load(&inside) & ENDING) | own * ONE);
}

static vyre__atfork_entry forks = {.child = begin_child};

/* However long it takes: a step of a compile ends by itself, and there is no
 * next (vyre__jit_continue). A child that nothing was told to (atfork.h) has
 * none of the threads. */
static void end(void) {
  const struct timespec pause = {.tv_nsec = 1000000};
  if (getpid() != loaded_by) return;
  atomic_fetch_or(&inside, ENDING);
  while (atomic_load(&inside) / ONE > own) (void)nanosleep(&pause, NULL);
}

/* --- what LLVM registers ---------------------------------------------------*/

/* In place of the C++ runtime's function: nothing is destroyed. */
static int keep_for_ever(void (*destroy)(void *), void *object, void *library) {
  (void)destroy;
  (void)object;
  (void)library;
  return 0;
}

static const char registers[] = "__cxa_atexit";

typedef struct loaded {
  const struct link_map *map;
  const Elf64_Sym *symbols;
  const char *strings;
  const Elf64_Rela *tables[2]; /* of data, of calls */
  size_t counts[2], relative;  /* the first of data name no symbol */
  uint32_t undefined; /* symbols before those that the library has itself */
  uintptr_t sealed, sealed_end; /* not to be written since it was loaded */
} loaded;

/* Loaders have put the base to addresses of the dynamic section, or have
 * not. */
static const void *address(const struct link_map *map, Elf64_Addr at) {
  return (const void *)(at < map->l_addr ? map->l_addr + at : at);
}

static void read_dynamic(loaded *in) {
  for (const Elf64_Dyn *d = in->map->l_ld; d->d_tag != DT_NULL; d++) {
    const void *at = address(in->map, d->d_un.d_ptr);
    switch (d->d_tag) {
      case DT_SYMTAB:
        in->symbols = at;
        break;
      case DT_STRTAB:
        in->strings = at;
        break;
      case DT_GNU_HASH:
        in->undefined = ((const uint32_t *)at)[1];
        break;
      case DT_RELA:
        in->tables[0] = at;
        break;
      case DT_RELASZ:
        in->counts[0] = d->d_un.d_val / sizeof(Elf64_Rela);
        break;
      case DT_RELACOUNT:
        in->relative = d->d_un.d_val;
        break;
      case DT_JMPREL:
        in->tables[1] = at;
        break;
      case DT_PLTRELSZ:
        in->counts[1] = d->d_un.d_val / sizeof(Elf64_Rela);
        break;
      default:
        break;
    }
  }
}

static int read_sealed(struct dl_phdr_info *info, size_t size, void *self) {
  loaded *in = self;
  (void)size;
  if (info->dlpi_addr != in->map->l_addr) return 0;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const Elf64_Phdr *h = &info->dlpi_phdr[i];
    if (h->p_type != PT_GNU_RELRO) continue;
    in->sealed = (info->dlpi_addr + h->p_vaddr) & ~(page - 1);
    in->sealed_end = (info->dlpi_addr + h->p_vaddr + h->p_memsz) & ~(page - 1);
  }
  return 1;
}

/* Its number among the symbols; 0: it is not needed. */
static uint32_t find_symbol(const loaded *in, const char *name) {
  for (uint32_t i = 1; in->symbols && in->strings && i < in->undefined; i++) {
    if (strcmp(in->strings + in->symbols[i].st_name, name) == 0) return i;
  }
  return 0;
}

/* Where the library has the address of a function of others; readers see the
 * old one or the new one. A system that lets no process do this leaves what
 * LLVM makes late to be destroyed early, as everywhere else in the process. */
static void set_slot(const loaded *in, uintptr_t at, uintptr_t value) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *start = (void *)(at & ~(page - 1));
  bool is_sealed = at >= in->sealed && at < in->sealed_end;
  if (is_sealed && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n((uintptr_t *)at, value, __ATOMIC_RELEASE);
  if (is_sealed) (void)mprotect(start, page, PROT_READ);
}

static void keep_all(const loaded *in) {
  uint32_t symbol = find_symbol(in, registers);
  for (int t = 0; t < 2 && symbol != 0; t++) {
    for (size_t i = t == 0 ? in->relative : 0; i < in->counts[t]; i++) {
      const Elf64_Rela *r = &in->tables[t][i];
      uint64_t type = ELF64_R_TYPE(r->r_info);
      if (ELF64_R_SYM(r->r_info) == symbol &&
          (type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT)) {
        set_slot(in, in->map->l_addr + r->r_offset, (uintptr_t)keep_for_ever);
      }
    }
  }
}

vyre_code vyre__jit_guard_end(const void *function, vyre_status *st) {
  loaded in = {0};
  Dl_info unused;
  void *map = NULL;
  if (dladdr1(function, &unused, &map, RTLD_DL_LINKMAP) != 0 && map) {
    in.map = map;
    read_dynamic(&in);
    (void)dl_iterate_phdr(read_sealed, &in);
    keep_all(&in);
  }
  loaded_by = getpid();
  if (atexit(end) != 0) {
    return vyre__no_memory(st, "cpu", "functions for the end", 1);
  }
  vyre__atfork_add(&forks);
  return VYRE_OK;
}
