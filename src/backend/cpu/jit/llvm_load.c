/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Finds and loads LLVM. The file is looked up here before the loader opens it,
 * for three reasons: `auto` has to know whether LLVM is installed without
 * loading it, which takes long; a truncated file would kill the process in the
 * loader; and a lack of address space has to be reported as such, which the
 * loader does not.
 *
 * The lookup covers the folders that dlinfo() reports. A library that
 * only /etc/ld.so.cache lists is left to the loader: it works, without
 * these checks. */
/* dlinfo: folders that the loader searches */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_c.h"
#include "backend/cpu/jit/llvm_compile.h"
#include "base/status.h"

llvm_functions vyre__llvm;

/* Names in various distributions; the last is the private folder of Debian's
 * packages. */
static const char *const names[] = {"libLLVM.so.19.1", "libLLVM-19.so.1",
                                    "libLLVM-19.so",
                                    "/usr/lib/llvm-19/lib/libLLVM.so.19.1"};
enum { NAMES = sizeof names / sizeof names[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool
    is_loaded; /* set last; the strings below do not change afterwards */
static char version[32], loaded_from[256];

#define WHERE                                            \
  "libLLVM.so.19.1, libLLVM-19.so.1, libLLVM-19.so and " \
  "/usr/lib/llvm-19/lib/libLLVM.so.19.1"

static vyre_code not_found(const char *library, const char *why,
                           vyre_status *st) {
  if (library) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE, "llvm",
        NULL,
        "run `apt-get install libllvm19`, and unset VYRE_LLVM or set it to the "
        "library's file; cached kernels and device 'ref' need no LLVM",
        "compiling needs LLVM 19, which could not be loaded from "
        "'%.100s'%s%.120s",
        library, why ? ": " : "", why ? why : "");
  }
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE, "llvm", NULL,
      "run `apt-get install libllvm19`; cached kernels and device 'ref' need "
      "no LLVM",
      "compiling needs LLVM 19, which was not found: looked for " WHERE);
}

/* --- address space ---------------------------------------------------------*/

/* Address space for LLVM besides its file: its own libraries, and the heap of a
 * compile. (Measured with Debian's LLVM and a small kernel: 70 MB.) */
#define EXTRA_BYTES ((uint64_t)192 << 20)

/* Address space for a compile, by the size of its text: several times the
 * values measured with texts of 20 KB to 4 MB. */
enum { COMPILE_BYTES = 64 << 20, COMPILE_BYTES_PER_BYTE = 64 };

/* Returns the address space in use, in bytes; 0 if unknown. */
static uint64_t used_bytes(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  if (fscanf(file, "%llu", &pages) != 1) pages = 0;
  (void)fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns true if that much address space can be reserved now. */
static bool can_reserve(uint64_t bytes) {
  void *memory = mmap(NULL, (size_t)bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno != ENOMEM;
  munmap(memory, (size_t)bytes);
  return true;
}

static vyre_code does_not_fit(uint64_t bytes, vyre_status *st) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return VYRE_FAIL_WITH(
        st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "llvm",
        VYRE_NUMBERS({"bytes", bytes}),
        "free memory; cached kernels and device 'ref' need no LLVM",
        "compiling needs LLVM 19, which does not fit in memory: it takes "
        "about %llu bytes",
        (unsigned long long)bytes);
  }
  uint64_t used = used_bytes();
  return VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, "llvm",
      VYRE_NUMBERS({"bytes", bytes}, {"limit_bytes", limit.rlim_cur},
                   {"used_bytes", used}),
      "start the process with a higher limit on address space (`ulimit -v`), "
      "or with none; cached kernels and device 'ref' need no LLVM",
      "compiling needs LLVM 19, which does not fit in the address space: it "
      "takes about %llu bytes, the limit of the process is %llu, and %llu are "
      "in use",
      (unsigned long long)bytes, (unsigned long long)limit.rlim_cur,
      (unsigned long long)used);
}

/* Returns the bytes that loading @p path takes if the address space lacks them;
 * else 0. Checked before loading: the loader has no error code for this, and
 * its text may not name the cause. LLVM would end the process later, because it
 * does not catch C++ exceptions. */
static uint64_t lacking_bytes(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || info.st_size <= 0) return 0;
  uint64_t bytes = (uint64_t)info.st_size + EXTRA_BYTES;
  return can_reserve(bytes) ? 0 : bytes;
}

vyre_code vyre__jit_check_memory(size_t text_size, vyre_status *st) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return VYRE_OK;
  }
  uint64_t bytes = COMPILE_BYTES + COMPILE_BYTES_PER_BYTE * (uint64_t)text_size;
  return can_reserve(bytes) ? VYRE_OK : does_not_fit(bytes, st);
}

/* --- functions of LLVM -----------------------------------------------------*/

/* Copies the address of a symbol to a function pointer, as POSIX recommends. */
static bool find_symbol(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static const char *fill_table(void *library, llvm_functions *to) {
#define LLVM_C(result, name, arguments) \
  if (!find_symbol(library, #name, &to->name)) return #name;
#include "backend/cpu/jit/llvm_c.def"
#undef LLVM_C
  return NULL;
}

static vyre_code use_library(void *library, const char *name, vyre_status *st) {
  llvm_functions found;
  const char *missing = fill_table(library, &found);
  if (missing) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE, "llvm",
        NULL, "run `apt-get install libllvm19`, or use device 'ref'",
        "'%.150s' has no function %s: it is not LLVM 19 with x86-64", name,
        missing);
  }
  unsigned major, minor, patch;
  found.LLVMGetVersion(&major, &minor, &patch);
  if (major != 19) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE, "llvm",
        VYRE_NUMBERS({"major", major}),
        "run `apt-get install libllvm19`, or use device 'ref'",
        "'%.150s' is LLVM %u.%u.%u; expected 19", name, major, minor, patch);
  }
  vyre__llvm = found;
  vyre__llvm.LLVMInitializeX86TargetInfo();
  vyre__llvm.LLVMInitializeX86Target();
  vyre__llvm.LLVMInitializeX86TargetMC();
  vyre__llvm.LLVMInitializeX86AsmPrinter();
  void *function;
  memcpy(&function, &found.LLVMGetVersion, sizeof function);
  (void)snprintf(version, sizeof version, "%u.%u.%u", major, minor, patch);
  (void)snprintf(loaded_from, sizeof loaded_from, "%s", name);
  VYRE_TRY(vyre__jit_guard_end(function, st));
  atomic_store_explicit(&is_loaded, true, memory_order_release);
  return VYRE_OK;
}

/* --- finding the file ------------------------------------------------------*/

static bool is_path(const char *name) {
  return strchr(name, '/') != NULL;
}

/* The loader's search path, as dlinfo() reports it. */
typedef union search_path {
  Dl_serinfo info;
  _Alignas(16) unsigned char bytes[16384];
} search_path;

/* Opens the object that contains this code: the loader also searches the
 * folders of the object that asks. A program that links the library statically
 * has no such name; then the program itself is opened. */
static void *open_self(void) {
  Dl_info object;
  void *self = dladdr(names, &object) != 0 && object.dli_fname
                   ? dlopen(object.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                   : NULL;
  return self ? self : dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
}

static bool read_search_path(search_path *path) {
  void *self = open_self();
  bool is_done = self && dlinfo(self, RTLD_DI_SERINFOSIZE, &path->info) == 0 &&
                 path->info.dls_size <= sizeof *path &&
                 dlinfo(self, RTLD_DI_SERINFO, &path->info) == 0;
  if (self) dlclose(self);
  return is_done;
}

/* A library file found on disk. */
typedef struct location {
  bool exists;         /* the loader would open this file */
  const char *problem; /* reason not to load it; or NULL */
  char path[512];
} location;

/* Finds the first file of a name on the search path. Like the loader, skips
 * files of other architectures and files that cannot be read. */
static void find_file(const char *name, location *out) {
  search_path path;
  if (!read_search_path(&path)) return;
  for (unsigned i = 0; i < path.info.dls_cnt && !out->exists; i++) {
    int length = snprintf(out->path, sizeof out->path, "%s/%s",
                          path.info.dls_serpath[i].dls_name, name);
    if (length < 0 || (size_t)length >= sizeof out->path ||
        access(out->path, R_OK) != 0) {
      continue;
    }
    out->problem = vyre__jit_problem(out->path);
    out->exists = out->problem != vyre__jit_other_machine;
  }
}

static location locate(const char *name) {
  location found = {0};
  if (!is_path(name)) {
    find_file(name, &found);
    return found;
  }
  (void)snprintf(found.path, sizeof found.path, "%s", name);
  found.problem = vyre__jit_problem(name);
  found.exists = true;
  return found;
}

/* --- loading ---------------------------------------------------------------*/

/* Opens a library that the process has already, or one that locate() found, or
 * else whatever the loader finds under that name. Returns NULL with a reason in
 * *why, or with *lacking set if the address space is too small. */
static void *open_library(const char *name, const char **why, char *text,
                          size_t size, uint64_t *lacking) {
  void *opened =
      is_path(name) ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (opened) return opened;
  location found = locate(name);
  if (found.exists && found.problem) {
    *why = found.problem;
    if (!is_path(name)) {
      (void)snprintf(text, size, "%.*s: %s", (int)(size / 2), found.path,
                     found.problem);
      *why = text;
    }
    return NULL;
  }
  uint64_t bytes = found.exists ? lacking_bytes(found.path) : 0;
  if (bytes) {
    *lacking = bytes;
    return NULL;
  }
  const char *from = found.exists && !is_path(name) ? found.path : name;
  opened = dlopen(from, RTLD_NOW | RTLD_LOCAL);
  if (!opened) *why = dlerror();
  return opened;
}

/* Loads the library. It is never closed: registered targets cannot be
 * removed. */
static vyre_code load(const char *library, vyre_status *st) {
  const char *const *list = library ? &library : names;
  size_t count = library ? 1 : NAMES;
  const char *why = NULL;
  char text[256];
  uint64_t lacking = 0;
  for (size_t i = 0; i < count; i++) {
    void *opened = open_library(list[i], &why, text, sizeof text, &lacking);
    if (!opened) continue;
    vyre_code code = use_library(opened, list[i], st);
    if (code != VYRE_OK) dlclose(opened);
    return code;
  }
  return lacking ? does_not_fit(lacking, st) : not_found(library, why, st);
}

/* Results of loads that failed: the last file given by name (under the lock),
 * and whether the default locations have no usable library. */
static char refused[256];
static atomic_bool is_default_refused;

static void record_failure(const char *library) {
  if (library) {
    (void)snprintf(refused, sizeof refused, "%s", library);
  } else {
    atomic_store(&is_default_refused, true);
  }
}

vyre_code vyre__jit_load_from(const char *library, vyre_status *st) {
  if (library && strcmp(library, "none") == 0) {
    return not_found(library, NULL, st);
  }
  if (atomic_load_explicit(&is_loaded, memory_order_acquire)) return VYRE_OK;
  pthread_mutex_lock(&lock);
  bool is_done = atomic_load_explicit(&is_loaded, memory_order_relaxed);
  vyre_code code = is_done ? VYRE_OK : load(library, st);
  /* A lack of memory may be temporary. */
  if (code != VYRE_OK && code != VYRE_OUT_OF_MEMORY) record_failure(library);
  pthread_mutex_unlock(&lock);
  return code;
}

/* --- availability ----------------------------------------------------------*/

static bool is_refused(const char *library) {
  pthread_mutex_lock(&lock);
  bool is_same = strcmp(library, refused) == 0;
  pthread_mutex_unlock(&lock);
  return is_same;
}

/* Returns true if loading works, or would work with more address space. */
static bool can_load(const char *library) {
  vyre_code code = vyre__jit_load_from(library, NULL);
  return code == VYRE_OK || code == VYRE_OUT_OF_MEMORY;
}

static bool is_file_available(const char *library) {
  location found = locate(library);
  if (found.exists && (found.problem || is_refused(library))) return false;
  if (!vyre__jit_version()) return can_load(library);
  return found.exists || strcmp(library, loaded_from) == 0;
}

static bool is_default_available(void) {
  for (size_t i = 0; i < NAMES; i++) {
    location found = locate(names[i]);
    if (found.exists && !found.problem) return true;
  }
  return vyre__jit_version() ||
         can_load(NULL); /* only the loader may find it */
}

/* The first answer for the default locations is kept: installing or removing
 * LLVM later changes nothing for this process. Only a failed load does. */
bool vyre__jit_is_available(const char *library) {
  enum { UNKNOWN, AVAILABLE, MISSING };
  static atomic_int answer;
  if (library && strcmp(library, "none") == 0) return false;
  if (library) return is_file_available(library);
  int known = UNKNOWN;
  int found = atomic_load(&answer);
  if (found == UNKNOWN) {
    found = is_default_available() ? AVAILABLE : MISSING;
    if (!atomic_compare_exchange_strong(&answer, &known, found)) found = known;
  }
  return found == AVAILABLE && !atomic_load(&is_default_refused);
}

bool vyre__jit_fits(const char *library) {
  const char *const *list = library ? &library : names;
  if (vyre__jit_version()) return true;
  for (size_t i = 0; i < (library ? 1 : NAMES); i++) {
    location found = locate(list[i]);
    if (found.exists && !found.problem) return !lacking_bytes(found.path);
  }
  return true; /* only the loader knows the file */
}

vyre_code vyre__jit_load(vyre_status *st) {
  return vyre__jit_load_from(NULL, st);
}

const char *vyre__jit_version(void) {
  return atomic_load_explicit(&is_loaded, memory_order_acquire) ? version
                                                                : NULL;
}

const char *vyre__jit_library(void) {
  return atomic_load_explicit(&is_loaded, memory_order_acquire) ? loaded_from
                                                                : NULL;
}
