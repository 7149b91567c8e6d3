/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Chooses the directory of the cache, and checks that it is safe. Write
 * access to it means control over the code that runs in this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/cache/cache.h"

static const uint64_t default_bytes = (uint64_t)256 << 20;

bool vyre__cache_is_privileged(unsigned long secure, const unsigned ids[4]) {
  return secure != 0 || ids[0] != ids[1] || ids[2] != ids[3];
}

bool vyre__is_privileged(void) {
  const unsigned ids[4] = {getuid(), geteuid(), getgid(), getegid()};
  return vyre__cache_is_privileged(getauxval(AT_SECURE), ids);
}

/* --- choice --------------------------------------------------------------- */

/* The XDG specification tells applications to ignore relative paths. */
static bool is_absolute(const char *path) {
  return path && path[0] == '/';
}

static void set_off(vyre__cache *cache, const char *why, const char *fix) {
  cache->off = why;
  cache->fix = fix;
}

static bool set_path(vyre__cache *cache, vyre_allocator allocator,
                     const char *folder, const char *below) {
  size_t length = strlen(folder), more = strlen(below);
  cache->path_size = length + more + 1;
  cache->path = vyre__resize(allocator, NULL, 0, cache->path_size);
  if (!cache->path) return false;
  memcpy(cache->path, folder, length);
  memcpy(cache->path + length, below, more + 1);
  /* With a trailing slash, open() would follow a link in the last component. */
  for (size_t i = length + more; i > 1 && cache->path[i - 1] == '/'; i--) {
    cache->path[i - 1] = '\0';
  }
  return true;
}

static bool choose_path(vyre__cache *cache, vyre_allocator allocator,
                        const char *option,
                        const vyre__cache_environment *environment) {
  const char *given = option ? option : environment->directory;
  if (given && given[0]) return set_path(cache, allocator, given, "");
  if (given) {
    set_off(cache,
            option ? "the context has no cache directory"
                   : "VYRE_CACHE_DIR is empty",
            option ? "set vyre_context_options.cache_directory"
                   : "name a directory in VYRE_CACHE_DIR, or unset it");
    return true;
  }
  if (is_absolute(environment->xdg)) {
    return set_path(cache, allocator, environment->xdg, "/vyre");
  }
  if (is_absolute(environment->home)) {
    return set_path(cache, allocator, environment->home, "/.cache/vyre");
  }
  set_off(cache, "neither XDG_CACHE_HOME nor HOME is an absolute path",
          "name a directory in VYRE_CACHE_DIR");
  return true;
}

/* Parses a number of decimal digits only. */
static bool parse_bytes(const char *text, uint64_t *out) {
  uint64_t value = 0;
  for (; *text; text++) {
    if (*text < '0' || *text > '9') return false;
    if (__builtin_mul_overflow(value, 10u, &value)) return false;
    if (__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) {
      return false;
    }
  }
  *out = value;
  return true;
}

static void choose_bytes(vyre__cache *cache, uint64_t option,
                         const char *environment) {
  cache->max_bytes = option ? option : default_bytes;
  if (option || !environment || !environment[0]) return;
  if (!parse_bytes(environment, &cache->max_bytes)) {
    cache->max_bytes = 0;
    set_off(cache, "VYRE_CACHE_BYTES is not a whole number",
            "use decimal digits only, for example VYRE_CACHE_BYTES=268435456");
  } else if (cache->max_bytes == 0) {
    set_off(cache, "VYRE_CACHE_BYTES is 0",
            "set it to a larger number, or unset it");
  }
}

bool vyre__cache_init(vyre__cache *cache, vyre_allocator allocator,
                      const vyre_context_options *options,
                      const vyre__cache_environment *environment) {
  *cache = (vyre__cache){.fix = ""};
  choose_bytes(cache, options->cache_bytes, environment->bytes);
  if (vyre__is_privileged()) {
    set_off(cache, "this process runs with the privileges of another user",
            "run it without set-uid, set-gid or file capabilities");
  }
  return cache->off ||
         choose_path(cache, allocator, options->cache_directory, environment);
}

void vyre__cache_deinit(vyre__cache *cache, vyre_allocator allocator) {
  if (cache->path) vyre__resize(allocator, cache->path, cache->path_size, 0);
  *cache = (vyre__cache){0};
}

/* --- checks --------------------------------------------------------------- */

VYRE__PRINTF(3, 4)
static int refuse(vyre__cache_refusal *why, const char *fix, const char *format,
                  ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(why->reason, sizeof why->reason, format, arguments);
  va_end(arguments);
  why->fix = fix;
  return -1;
}

const char *vyre__error_text(int error, char text[VYRE__ERROR_TEXT]) {
  text[0] = '\0';
  (void)!strerror_r(error, text, VYRE__ERROR_TEXT);
  return text;
}

static int open_last(const char *path) {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Longer paths are refused: they could be created in part. */
enum { MAX_PATH = 1024 };

/* Creates the directory and its parents with mode 0700, as the XDG
 * specification requires. Returns 0, or the error for the last component. */
static int create_path(const char *path) {
  char part[MAX_PATH];
  size_t length = strlen(path);
  int error = 0;
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    error = mkdir(part, 0700) == 0 || errno == EEXIST ? 0 : errno;
  }
  return error;
}

/* Finds the nearest existing parent of @p path. */
static void find_existing_parent(const char *path, char out[MAX_PATH]) {
  struct stat about;
  size_t length = strlen(path);
  memcpy(out, path, length + 1);
  do {
    while (length > 0 && out[length - 1] != '/') length--;
    while (length > 1 && out[length - 1] == '/') length--;
    if (length == 0) out[length++] = '.';
    out[length] = '\0';
  } while (stat(out, &about) != 0 && strcmp(out, ".") != 0 &&
           strcmp(out, "/") != 0);
}

/* Tests if a directory can be created in @p folder. Access bits are not enough,
 * because a file system may be read-only. So it creates one under a unique
 * name, and removes it. Returns 0 or the error. */
static int test_create(const char *folder) {
  char name[MAX_PATH + 64];
  (void)snprintf(name, sizeof name, "%s/.vyre-%lx-%llx", folder,
                 (unsigned long)getpid(), (unsigned long long)vyre__clock_ns());
  if (mkdir(name, 0700) != 0) return errno;
  (void)rmdir(name);
  return 0;
}

static int refuse_create(vyre__cache_refusal *why, int error) {
  char text[VYRE__ERROR_TEXT];
  why->is_absent = false;
  return refuse(why,
                "set VYRE_CACHE_DIR to a directory that exists or can be "
                "created",
                "it does not exist and cannot be created: %s",
                vyre__error_text(error, text));
}

static int refuse_error(vyre__cache_refusal *why, int error) {
  char text[VYRE__ERROR_TEXT];
  why->is_absent = error == ENOENT;
  if (error == ENOENT) {
    return refuse(why, "do nothing: the first stored entry creates it",
                  "the directory does not exist");
  }
  if (error == ELOOP || error == ENOTDIR) {
    return refuse(why, "name a directory that is not a symbolic link",
                  "it is a symbolic link or not a directory");
  }
  return refuse(why, "name a directory that this user can open",
                "it cannot be opened: %s", vyre__error_text(error, text));
}

/* Returns true if a shell takes @p path as one word without quotes. */
static bool is_plain_word(const char *path) {
  return path[0] != '-' &&
         path[strspn(path,
                     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                     "0123456789/._-")] == '\0';
}

/* Refuses a directory that other users can access. The fix suggests chmod only
 * for a directory that cannot be a shared one such as /tmp. */
static int refuse_mode(vyre__cache_refusal *why, const char *path,
                       mode_t mode) {
  const char *fix =
      "set VYRE_CACHE_DIR to a directory of your own, such as ~/.cache/vyre";
  enum { STICKY = 01000 }; /* S_ISVTX, which POSIX without XSI lacks */
  if (!(mode & STICKY)) {
    bool is_plain = is_plain_word(path);
    (void)snprintf(why->own_fix, sizeof why->own_fix,
                   "run `chmod 700 %s` if only vyre uses the directory; "
                   "otherwise set VYRE_CACHE_DIR to a directory of your own",
                   is_plain ? path : "DIRECTORY");
    fix = why->own_fix;
  }
  return refuse(why, fix, "other users can access it: its mode is %o, not 700",
                (unsigned)(mode & 07777));
}

int vyre__cache_open(const vyre__cache *cache, bool create,
                     vyre__cache_refusal *why) {
  *why = (vyre__cache_refusal){.fix = ""};
  if (cache->off) return refuse(why, cache->fix, "%s", cache->off);
  if (strlen(cache->path) >= MAX_PATH) {
    return refuse(why, "set VYRE_CACHE_DIR to a shorter path",
                  "its path has %zu bytes; at most %d are allowed",
                  strlen(cache->path), MAX_PATH - 1);
  }
  int directory = open_last(cache->path);
  if (directory < 0 && errno == ENOENT && create) {
    int error = create_path(cache->path);
    if (error) return refuse_create(why, error);
    directory = open_last(cache->path);
  }
  if (directory < 0) return refuse_error(why, errno);
  struct stat about;
  if (fstat(directory, &about) != 0) {
    int error = errno;
    close(directory);
    return refuse_error(why, error);
  }
  if (about.st_uid == geteuid() && (about.st_mode & 077) == 0) return directory;
  close(directory);
  if (about.st_uid != geteuid()) {
    return refuse(why, "set VYRE_CACHE_DIR to a directory that you own",
                  "it belongs to another user, with id %lu",
                  (unsigned long)about.st_uid);
  }
  return refuse_mode(why, cache->path, about.st_mode);
}

bool vyre__cache_can_make(const vyre__cache *cache, vyre__cache_refusal *why) {
  char folder[MAX_PATH];
  find_existing_parent(cache->path, folder);
  int error = test_create(folder);
  return error == 0 || refuse_create(why, error) == 0;
}
