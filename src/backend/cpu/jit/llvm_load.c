/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* dlinfo: where the system looks for libraries */
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

/* What distributions call it; the last is where Debian's own packages put
 * it. */
static const char *const names[] = {"libLLVM.so.19.1", "libLLVM-19.so.1",
                                    "libLLVM-19.so",
                                    "/usr/lib/llvm-19/lib/libLLVM.so.19.1"};
enum { NAMES = sizeof names / sizeof names[0] };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_loaded; /* set last: the rest then never changes */
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

/* --- without memory --------------------------------------------------------*/

/* Address space that LLVM needs in addition to its own file: its
 * libraries, and the heap of a compile. (Measured: 70 MB with Debian's,
 * for a small kernel.) */
#define BESIDE_BYTES ((uint64_t)192 << 20)

/* What a compile may take of it, by the size of its text: several times what
 * was measured with texts of 20 KB to 4 MB. */
enum { COMPILE_BYTES = 64 << 20, COMPILE_BYTES_PER_BYTE = 64 };

/* Bytes of address space that the process uses; 0 if that is not known. */
static uint64_t used_bytes(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) return 0;
  if (fscanf(file, "%llu", &pages) != 1) pages = 0;
  (void)fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns true if that much address space can be reserved now. */
static bool has_room(uint64_t bytes) {
  void *room = mmap(NULL, (size_t)bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return errno != ENOMEM;
  munmap(room, (size_t)bytes);
  return true;
}

static vyre_code no_room(uint64_t bytes, vyre_status *st) {
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

/* Bytes that loading @p path takes if there is no room for them; else 0. Looked
 * at before it is loaded: the loader has no code for a failure of this kind,
 * and its text may not name the cause; and what LLVM cannot allocate later ends
 * the process, as it does not catch C++ exceptions. */
static uint64_t lacking_bytes(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || info.st_size <= 0) return 0;
  uint64_t bytes = (uint64_t)info.st_size + BESIDE_BYTES;
  return has_room(bytes) ? 0 : bytes;
}

vyre_code vyre__jit_check_memory(size_t text_size, vyre_status *st) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return VYRE_OK;
  }
  uint64_t bytes = COMPILE_BYTES + COMPILE_BYTES_PER_BYTE * (uint64_t)text_size;
  return has_room(bytes) ? VYRE_OK : no_room(bytes, st);
}

/* --- its functions ---------------------------------------------------------*/

/* A pointer to a function out of one to an object, as POSIX has it. */
static bool find(void *library, const char *name, void *out) {
  void *symbol = dlsym(library, name);
  memcpy(out, &symbol, sizeof symbol);
  return symbol != NULL;
}

static const char *fill_table(void *library, llvm_functions *to) {
#define LLVM_C(result, name, arguments) \
  if (!find(library, #name, &to->name)) return #name;
#include "backend/cpu/jit/llvm_c.def"
#undef LLVM_C
  return NULL;
}

static vyre_code take(void *library, const char *name, vyre_status *st) {
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

/* --- where it is -----------------------------------------------------------*/

static bool is_path(const char *name) {
  return strchr(name, '/') != NULL;
}

/* Where the system looks for libraries, as it says itself. */
typedef union search_path {
  Dl_serinfo info;
  _Alignas(16) unsigned char room[16384];
} search_path;

/* Its own object, as the loader takes the folders of who asks; a program that
 * has the library in it is not found by its name. */
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

typedef struct place {
  bool is_there;     /* a file of that name, which the loader would take */
  const char *doubt; /* why it is not to be loaded; NULL: none */
  char path[512];    /* of the file, or of that which it stands for */
} place;

/* Sets out->is_there if the loader would take the file at out->path. It skips
 * files of other machines and files that cannot be read. */
static void look_at(char *needs, place *out) {
  if (access(out->path, R_OK) != 0) return;
  out->doubt = vyre__jit_problem(out->path, needs);
  out->is_there = out->doubt != vyre__jit_other_machine;
}

static void find_in(const search_path *path, bool in_defaults, const char *name,
                    char *needs, place *out) {
  for (unsigned i = 0; i < path->info.dls_cnt && !out->is_there; i++) {
    const Dl_serpath *folder = &path->info.dls_serpath[i];
    if (((folder->dls_flags & LA_SER_DEFAULT) != 0) != in_defaults) continue;
    int length =
        snprintf(out->path, sizeof out->path, "%s/%s", folder->dls_name, name);
    if (length < 0 || (size_t)length >= sizeof out->path) continue;
    look_at(needs, out);
  }
}

/* The first file of a name, in the loader's order: folders that the environment
 * or a program names, its own list, folders of the system. */
static void find_file(const char *name, char *needs, place *out) {
  search_path path;
  *out = (place){0};
  bool is_known = read_search_path(&path);
  if (is_known) find_in(&path, false, name, needs, out);
  if (!out->is_there &&
      vyre__jit_listed("/etc/ld.so.cache", name, out->path, sizeof out->path)) {
    look_at(needs, out);
  }
  if (is_known && !out->is_there) find_in(&path, true, name, needs, out);
}

/* A library that stands for another is as good as that. */
static place locate(const char *name) {
  place found = {.is_there = true}, other;
  char needs[VYRE__JIT_NAME] = "", more[VYRE__JIT_NAME];
  if (is_path(name)) {
    (void)snprintf(found.path, sizeof found.path, "%s", name);
    found.doubt = vyre__jit_problem(name, needs);
  } else {
    find_file(name, needs, &found);
  }
  if (!found.is_there || found.doubt || !needs[0]) return found;
  find_file(needs, more, &other);
  return other.is_there && other.doubt ? other : found;
}

/* A file that is cut short is not given to the loader, which would end the
 * process by a signal: so a name is looked up here, and the loader gets the
 * path of what was looked at. There are places that only the loader knows, and
 * what the process has already. */
static void *open_library(const char *name, const char **why, char *text,
                          size_t size, uint64_t *lacking) {
  void *opened =
      is_path(name) ? NULL : dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (opened) return opened;
  place found = locate(name);
  *why = found.doubt;
  if (found.doubt && strcmp(found.path, name) != 0) {
    (void)snprintf(text, size, "%.*s: %s", (int)(size / 2), found.path,
                   found.doubt);
    *why = text;
  }
  if (found.doubt) return NULL;
  const char *from = found.is_there && !is_path(name) ? found.path : name;
  uint64_t bytes = found.is_there ? lacking_bytes(found.path) : 0;
  if (bytes) {
    *lacking = bytes;
    return NULL;
  }
  opened = dlopen(from, RTLD_NOW | RTLD_LOCAL);
  if (!opened) *why = dlerror();
  return opened;
}

/* LLVM stays: it keeps what cannot be taken back (registered targets). */
static vyre_code load(const char *library, vyre_status *st) {
  const char *const *list = library ? &library : names;
  size_t count = library ? 1 : NAMES;
  const char *why = NULL;
  char text[256];
  uint64_t lacking = 0;
  for (size_t i = 0; i < count; i++) {
    void *opened = open_library(list[i], &why, text, sizeof text, &lacking);
    if (!opened) continue;
    vyre_code code = take(opened, list[i], st);
    if (code != VYRE_OK) dlclose(opened);
    return code;
  }
  return lacking ? no_room(lacking, st) : not_found(library, why, st);
}

/* What a load has shown not to work, so that it is not found again: under the
 * lock, the last file of a name; and whether there is none without a name. */
static char refused[256];
static atomic_bool is_none;

static void remember(const char *library) {
  if (library) {
    (void)snprintf(refused, sizeof refused, "%s", library);
  } else {
    atomic_store(&is_none, true);
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
  /* Memory may be there the next time. */
  if (code != VYRE_OK && code != VYRE_OUT_OF_MEMORY) remember(library);
  pthread_mutex_unlock(&lock);
  return code;
}

/* --- without loading it ----------------------------------------------------*/

static bool is_refused(const char *library) {
  pthread_mutex_lock(&lock);
  bool is_same = strcmp(library, refused) == 0;
  pthread_mutex_unlock(&lock);
  return is_same;
}

static bool look(const char *library) {
  const char *const *list = library ? &library : names;
  for (size_t i = 0; i < (library ? 1 : NAMES); i++) {
    place found = locate(list[i]);
    if (found.is_there && !found.doubt) return !library || !is_refused(library);
    if (found.is_there && library) return false;
  }
  /* There are places that only the loader knows. */
  if (!vyre__jit_version()) {
    return vyre__jit_load_from(library, NULL) == VYRE_OK;
  }
  return !library || strcmp(library, loaded_from) == 0;
}

/* The first answer stays: what is installed or removed later changes nothing
 * for this process, nor does what another context has loaded. Only a load that
 * fails does: what looked good then is not. */
bool vyre__jit_is_available(const char *library) {
  enum { UNKNOWN, THERE, MISSING };
  static atomic_int answer; /* for no library in particular */
  if (library && strcmp(library, "none") == 0) return false;
  if (library) return look(library);
  int known = UNKNOWN;
  int found = atomic_load(&answer);
  if (found == UNKNOWN) {
    found = look(NULL) ? THERE : MISSING;
    if (!atomic_compare_exchange_strong(&answer, &known, found)) found = known;
  }
  return found == THERE && !atomic_load(&is_none);
}

bool vyre__jit_fits(const char *library) {
  const char *const *list = library ? &library : names;
  if (vyre__jit_version()) return true;
  for (size_t i = 0; i < (library ? 1 : NAMES); i++) {
    place found = locate(list[i]);
    if (found.is_there && !found.doubt) return !lacking_bytes(found.path);
  }
  return true; /* only the loader knows its size */
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
