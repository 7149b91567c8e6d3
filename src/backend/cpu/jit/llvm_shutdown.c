/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ends a process safely while other threads use LLVM. exit() destroys LLVM's
 * static objects on the thread that calls it. Objects that LLVM created while
 * it was loaded are older than the handler `at_exit` below, so the handler runs
 * before their destructors and waits until all threads have left LLVM.
 *
 * Objects that LLVM creates later, when a function first needs a table, would
 * be destroyed before the handler runs. So their destructors are not registered
 * at all: the library's import of __cxa_atexit is redirected to a function that
 * does nothing. The memory is freed with the process.
 *
 * Patching an import is unusual, but no simpler way is reliable. Handlers run
 * in reverse order of registration, so no handler can be registered after
 * objects that a running compile has yet to create. A compile at start-up that
 * creates them all would be slow and would depend on LLVM's internals. Compile
 * threads belong to the application as well, so joining them at exit is not
 * possible. */
/* dladdr1, dl_iterate_phdr: location of LLVM in memory */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_compile.h"
#include "backend/cpu/threads/atfork.h"
#include "base/exit_guard.h"
#include "base/status.h"

/* --- threads inside LLVM ---------------------------------------------------*/

static vyre__exit_guard guard;
/* Nesting depth of this thread, which may call exit() itself. */
static _Thread_local unsigned own_depth
    __attribute__((tls_model("initial-exec")));

vyre_code vyre__jit_enter(vyre_status *st) {
  if (!vyre__exit_guard_enter(&guard)) return vyre__exit_guard_refuse(st);
  own_depth++;
  return VYRE_OK;
}

void vyre__jit_leave(void) {
  own_depth--;
  vyre__exit_guard_leave(&guard);
}

vyre_code vyre__jit_continue(vyre_status *st) {
  return vyre__exit_guard_is_ending(&guard) ? vyre__exit_guard_refuse(st)
                                            : VYRE_OK;
}

static void reset_in_child(void *self) {
  (void)self;
  vyre__exit_guard_begin(&guard, own_depth);
}

static vyre__atfork_entry atfork = {.child = reset_in_child};

/* The wait is short: a thread leaves after the current step of its compile
 * (vyre__jit_continue). */
static void at_exit(void) {
  vyre__exit_guard_wait(&guard, own_depth, 0);
}

/* --- import of __cxa_atexit ------------------------------------------------*/

/* Replaces __cxa_atexit for LLVM: registers nothing. */
static int register_nothing(void (*destroy)(void *), void *object,
                            void *library) {
  (void)destroy;
  (void)object;
  (void)library;
  return 0;
}

static const char registration[] = "__cxa_atexit";

typedef struct loaded {
  const struct link_map *map;
  const Elf64_Sym *symbols;
  const char *strings;
  const Elf64_Rela *tables[2]; /* relocations of data, and of calls */
  size_t counts[2], relative;  /* `relative` ones come first in tables[0] */
  uint32_t undefined;          /* number of symbols before the defined ones */
  uintptr_t relro, relro_end;  /* made read-only by the loader */
} loaded;

/* Returns an address of the dynamic section. Some loaders have added the base
 * to it already. */
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

static int read_relro(struct dl_phdr_info *info, size_t size, void *self) {
  loaded *in = self;
  (void)size;
  if (info->dlpi_addr != in->map->l_addr) return 0;
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (size_t i = 0; i < info->dlpi_phnum; i++) {
    const Elf64_Phdr *h = &info->dlpi_phdr[i];
    if (h->p_type != PT_GNU_RELRO) continue;
    in->relro = (info->dlpi_addr + h->p_vaddr) & ~(page - 1);
    in->relro_end = (info->dlpi_addr + h->p_vaddr + h->p_memsz) & ~(page - 1);
  }
  return 1;
}

/* Returns the index of an imported symbol, or 0. */
static uint32_t find_symbol(const loaded *in, const char *name) {
  for (uint32_t i = 1; in->symbols && in->strings && i < in->undefined; i++) {
    if (strcmp(in->strings + in->symbols[i].st_name, name) == 0) return i;
  }
  return 0;
}

/* Stores the address of a function in an entry of the library's import table.
 * Other threads see the old or the new value. If the system forbids this,
 * LLVM's late objects are destroyed early, as without this file. */
static void set_import(const loaded *in, uintptr_t at, uintptr_t value) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  void *start = (void *)(at & ~(page - 1));
  bool is_relro = at >= in->relro && at < in->relro_end;
  if (is_relro && mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n((uintptr_t *)at, value, __ATOMIC_RELEASE);
  if (is_relro) (void)mprotect(start, page, PROT_READ);
}

static void redirect_atexit(const loaded *in) {
  uint32_t symbol = find_symbol(in, registration);
  for (int t = 0; t < 2 && symbol != 0; t++) {
    for (size_t i = t == 0 ? in->relative : 0; i < in->counts[t]; i++) {
      const Elf64_Rela *r = &in->tables[t][i];
      uint64_t type = ELF64_R_TYPE(r->r_info);
      if (ELF64_R_SYM(r->r_info) == symbol &&
          (type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT)) {
        set_import(in, in->map->l_addr + r->r_offset,
                   (uintptr_t)register_nothing);
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
    (void)dl_iterate_phdr(read_relro, &in);
    redirect_atexit(&in);
  }
  vyre__exit_guard_begin(&guard, own_depth);
  if (atexit(at_exit) != 0) {
    return vyre__no_memory(st, "cpu", "exit handlers", 1);
  }
  vyre__atfork_add(&atfork);
  return VYRE_OK;
}
