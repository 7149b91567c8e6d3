/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Loads backends from shared objects. What is checked is what is loaded: a file
 * is opened once, and the loader gets its descriptor. A path could name another
 * file between the two. */
#define _XOPEN_SOURCE 700 /* realpath; NOLINT(bugprone-reserved-identifier) */
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "runtime/cache/cache.h"
#include "runtime/core/backend_list.h"

static const char symbol[] = "vyre_backend_plugin";

/* --- permissions -----------------------------------------------------------*/

static vyre_code not_readable(const char *path, int error, vyre_status *st) {
  char text[VYRE__ERROR_TEXT];
  vyre_code code =
      VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
                "name a file or folder that exists and can be read",
                "the backend file '%.200s' cannot be read: %s", path,
                vyre__error_text(error, text));
  if (st) st->native_code = error;
  return code;
}

/* Checks that no other user can change a file or folder. */
static vyre_code check_owner(const struct stat *s, const char *what,
                             const char *path, vyre_status *st) {
  if (s->st_uid != geteuid() && s->st_uid != 0) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "owner",
        VYRE_NUMBERS({"owner", s->st_uid}, {"user", geteuid()}),
        "use a file and a folder that belong to this user or to root",
        "the %s '%.180s' belongs to user %u, but the process runs as user %u",
        what, path, (unsigned)s->st_uid, (unsigned)geteuid());
  }
  if (!(s->st_mode & (S_IWGRP | S_IWOTH))) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "mode",
      VYRE_NUMBERS({"mode", s->st_mode & 07777}),
      "run `chmod go-w` on the file and its folder, or move the file to a "
      "folder that only this user can write",
      "the %s '%.180s' is writable by other users (mode %o)", what, path,
      (unsigned)(s->st_mode & 07777));
}

/* --- the file --------------------------------------------------------------*/

static vyre_code not_an_object(const char *path, const char *why,
                               vyre_status *st) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "build the backend as a shared object for this machine, and "
                   "copy it again",
                   "'%.180s' is not a shared object that can be loaded: %s",
                   path, why);
}

/* Checks that all segments are inside the file: the loader would map more, and
 * the process would get a signal when it reads that. */
static vyre_code check_object(int fd, uint64_t size, const char *path,
                              vyre_status *st) {
  enum { MAX_SEGMENTS = 512 };
  Elf64_Ehdr head;
  if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head) {
    return not_an_object(path, "it is truncated", st);
  }
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_type != ET_DYN ||
      head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum == 0 ||
      head.e_phnum > MAX_SEGMENTS) {
    return not_an_object(path, "its header is another one", st);
  }
  for (unsigned i = 0; i < head.e_phnum; i++) {
    Elf64_Phdr segment;
    uint64_t at = head.e_phoff + (uint64_t)i * sizeof segment;
    if (head.e_phoff > size || at > size || size - at < sizeof segment ||
        pread(fd, &segment, sizeof segment, (off_t)at) !=
            (ssize_t)sizeof segment ||
        segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
      return not_an_object(path, "it is truncated", st);
    }
  }
  return VYRE_OK;
}

/* --- loading ---------------------------------------------------------------*/

/* Files that this process has loaded. They stay loaded: devices, texts and
 * threads of a backend may be in use until the process exits. */
enum { MAX_FILES = 256 };
static pthread_mutex_t loaded_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  dev_t device;
  ino_t file;
  off_t size;
  struct timespec changed;
  void *handle;
} loaded[MAX_FILES];
static unsigned loaded_count;

static vyre_code load_failed(const char *path, const char *why,
                             vyre_status *st) {
  /* The message starts with the name that the loader was given. */
  const char *text = why ? strstr(why, ": ") : NULL;
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
                   "install the libraries that it needs; `ldd -r FILE` lists "
                   "what is missing",
                   "'%.120s' cannot be loaded: %.160s", path,
                   text ? text + 2 : "unknown");
}

/* Loads the file of a descriptor, with loaded_lock held. The loader compares
 * names before it opens a file, and descriptors are reused: each file gets
 * another number of slashes, and so a name that no loaded file has. A file that
 * is loaded already keeps its old name too, and so uses up a number. */
static vyre_code load_new(int fd, const char *path, void **out,
                          vyre_status *st) {
  char name[MAX_FILES + 64];
  if (loaded_count == MAX_FILES) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
        VYRE_NUMBERS({"files", loaded_count}, {"max_files", MAX_FILES}),
        "load fewer backend files in one process",
        "'%.180s' is one more than the %d backend files of a process", path,
        MAX_FILES);
  }
  char slashes[MAX_FILES + 1];
  memset(slashes, '/', loaded_count + 1);
  slashes[loaded_count + 1] = '\0';
  (void)snprintf(name, sizeof name, "/proc/self/fd%s%d", slashes, fd);
  *out = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return *out ? VYRE_OK : load_failed(path, dlerror(), st);
}

/* This thread loads a file, whose code may call the library. */
static _Thread_local bool is_loading __attribute__((tls_model("initial-exec")));

static vyre_code load_fd(int fd, const struct stat *s, const char *path,
                         void **out, vyre_status *st) {
  if (is_loading) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "create contexts in a backend with an empty backend_path, "
                     "or in device_open",
                     "'%.180s' is not loaded: the code of another backend file "
                     "asked for it while that was being loaded",
                     path);
  }
  pthread_mutex_lock(&loaded_lock);
  *out = NULL;
  for (unsigned i = 0; i < loaded_count && !*out; i++) {
    if (loaded[i].device == s->st_dev && loaded[i].file == s->st_ino &&
        loaded[i].size == s->st_size &&
        loaded[i].changed.tv_sec == s->st_mtim.tv_sec &&
        loaded[i].changed.tv_nsec == s->st_mtim.tv_nsec) {
      *out = loaded[i].handle;
    }
  }
  bool is_known = *out != NULL;
  is_loading = true;
  vyre_code code = is_known ? VYRE_OK : load_new(fd, path, out, st);
  is_loading = false;
  if (code == VYRE_OK && !is_known) {
    loaded[loaded_count].device = s->st_dev;
    loaded[loaded_count].file = s->st_ino;
    loaded[loaded_count].size = s->st_size;
    loaded[loaded_count].changed = s->st_mtim;
    loaded[loaded_count++].handle = *out;
  }
  pthread_mutex_unlock(&loaded_lock);
  return code;
}

static vyre_code find_table(void *handle, const char *path,
                            const vyre_backend **out, vyre_status *st) {
  const vyre_backend *(*get)(void) = NULL;
  void *address = dlsym(handle, symbol);
  memcpy(&get, &address, sizeof get);
  *out = get ? get() : NULL;
  if (*out) return VYRE_OK;
  return VYRE_FAIL(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
      "export the table with VYRE_BACKEND_PLUGIN, and build with "
      "-fvisibility=default or none",
      "'%.180s' %s", path,
      get ? "returns no table" : "has no symbol vyre_backend_plugin");
}

/* Checks and loads the file that @p fd is open for. */
static vyre_code add_fd(vyre_context *context, int fd, const char *path,
                        vyre_status *st) {
  struct stat s;
  if (fstat(fd, &s) != 0) return not_readable(path, errno, st);
  if (!S_ISREG(s.st_mode)) return not_an_object(path, "it is not a file", st);
  VYRE_TRY(check_owner(&s, "file", path, st));
  VYRE_TRY(check_object(fd, (uint64_t)s.st_size, path, st));
  void *handle;
  const vyre_backend *table;
  VYRE_TRY(load_fd(fd, &s, path, &handle, st));
  VYRE_TRY(find_table(handle, path, &table, st));
  return vyre__backend_list_add(context, table, path, st);
}

/* Opens folder @p path, which no other user may write. */
static vyre_code open_folder(const char *path, int *out, vyre_status *st) {
  struct stat s;
  *out = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (*out < 0) return not_readable(path, errno, st);
  vyre_code code = fstat(*out, &s) == 0 ? check_owner(&s, "folder", path, st)
                                        : not_readable(path, errno, st);
  if (code != VYRE_OK) (void)close(*out);
  return code;
}

/* Loads file @p name of an open folder. */
static vyre_code add_file_of(vyre_context *context, int folder,
                             const char *name, const char *path,
                             vyre_status *st) {
  int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return not_readable(path, errno, st);
  vyre_code code = add_fd(context, fd, path, st);
  (void)close(fd);
  return code;
}

/* Loads a file whose path has no symbolic link at its end. */
static vyre_code add_file(vyre_context *context, const char *path,
                          vyre_status *st) {
  char folder[PATH_MAX];
  const char *slash = strrchr(path, '/'); /* the path is absolute */
  size_t length = slash == path ? 1 : (size_t)(slash - path);
  memcpy(folder, path, length);
  folder[length] = '\0';
  int fd;
  VYRE_TRY(open_folder(folder, &fd, st));
  vyre_code code = add_file_of(context, fd, slash + 1, path, st);
  (void)close(fd);
  return code;
}

static void refuse(vyre_context *context, const char *path, vyre_code code,
                   const vyre_status *st) {
  if (code != VYRE_OK) vyre__backend_list_refuse(context, path, st);
}

/* Loads the file at @p path, or at the end of the symbolic links there. With
 * @p is_named, it may also be a folder. */
static void add_path(vyre_context *context, const char *path, bool is_named);

/* --- folders ---------------------------------------------------------------*/

typedef struct file_name {
  char text[NAME_MAX + 1];
} file_name;

static bool is_before(const void *a, const void *b) {
  return strcmp(((const file_name *)a)->text, ((const file_name *)b)->text) < 0;
}

static bool is_object_name(const char *name) {
  size_t length = strlen(name);
  return name[0] != '.' && length > 3 && strcmp(name + length - 3, ".so") == 0;
}

/* Lists the shared objects of a folder in the order of their names. */
static vyre_code list_folder(vyre_arena *arena, int folder, const char *path,
                             file_name **out, size_t *count, vyre_status *st) {
  enum { MAX_NAMES = 256 };
  int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
  DIR *listing = copy < 0 ? NULL : fdopendir(copy);
  *count = 0;
  *out = vyre__arena_array(arena, MAX_NAMES, sizeof **out);
  if (!listing || !*out) {
    vyre_code code = *out ? not_readable(path, errno, st)
                          : vyre__no_memory(st, "a folder", "names", MAX_NAMES);
    if (listing) {
      (void)closedir(listing);
    } else if (copy >= 0) {
      (void)close(copy);
    }
    return code;
  }
  const struct dirent *entry;
  bool is_full = false;
  while (!is_full && (entry = readdir(listing)) != NULL) {
    if (!is_object_name(entry->d_name)) continue;
    is_full = *count == MAX_NAMES;
    if (is_full) break;
    (void)snprintf((*out)[(*count)++].text, sizeof(file_name), "%s",
                   entry->d_name);
  }
  (void)closedir(listing);
  if (!is_full) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "backend_path",
      VYRE_NUMBERS({"max_files", MAX_NAMES}),
      "name the files, or use a folder that has backends only",
      "the folder '%.180s' has more than %d shared objects", path, MAX_NAMES);
}

static void sort_names(file_name *names, size_t count) {
  for (size_t i = 1; i < count; i++) {
    for (size_t at = i; at > 0 && is_before(&names[at], &names[at - 1]); at--) {
      const file_name name = names[at];
      names[at] = names[at - 1];
      names[at - 1] = name;
    }
  }
}

/* Loads all shared objects of a folder. */
static vyre_code add_folder(vyre_context *context, const char *path,
                            vyre_status *st) {
  int folder;
  VYRE_TRY(open_folder(path, &folder, st));
  file_name *names;
  size_t count;
  vyre_arena arena;
  vyre_arena_init(&arena, context->base_allocator);
  vyre_code code = list_folder(&arena, folder, path, &names, &count, st);
  if (code == VYRE_OK) sort_names(names, count);
  for (size_t i = 0; code == VYRE_OK && i < count; i++) {
    char file[PATH_MAX + NAME_MAX + 2];
    struct stat s;
    vyre_status inner = {0};
    (void)snprintf(file, sizeof file, "%s/%s", path, names[i].text);
    if (fstatat(folder, names[i].text, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(s.st_mode)) {
      add_path(context, file, false); /* its folder may be another one */
      continue;
    }
    refuse(context, file,
           add_file_of(context, folder, names[i].text, file, &inner), &inner);
  }
  vyre_arena_deinit(&arena);
  (void)close(folder);
  return code;
}

/* --- paths -----------------------------------------------------------------*/

static void add_path(vyre_context *context, const char *path, bool is_named) {
  char real[PATH_MAX];
  struct stat s;
  vyre_status st = {0};
  vyre_code code;
  if (vyre__is_privileged()) {
    code = VYRE_FAIL(&st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "run the program without set-uid, or register the "
                     "backend's table with vyre_backend_register",
                     "'%.180s' is not loaded: the process runs with raised "
                     "privileges",
                     path);
  } else if (!realpath(path, real) || stat(real, &s) != 0) {
    code = not_readable(path, errno, &st);
  } else if (is_named && S_ISDIR(s.st_mode)) {
    code = add_folder(context, real, &st);
  } else {
    code = add_file(context, real, &st);
  }
  refuse(context, path, code, &st);
}

void vyre__plugin_files_load(vyre_context *context, const char *paths) {
  char path[PATH_MAX];
  while (paths && *paths) {
    size_t length = strcspn(paths, ":");
    if (length >= sizeof path) {
      vyre_status st = {0};
      (void)VYRE_FAIL_WITH(
          &st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
          "backend_path",
          VYRE_NUMBERS({"bytes", length}, {"max_bytes", PATH_MAX - 1}),
          "use a shorter path",
          "a backend path has %zu bytes; at most %d are "
          "allowed",
          length, PATH_MAX - 1);
      vyre__backend_list_refuse(context, "", &st);
    } else if (length > 0) {
      memcpy(path, paths, length);
      path[length] = '\0';
      add_path(context, path, true);
    }
    paths += length + (paths[length] == ':');
  }
}
