/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where the files are, and whether that place is safe: whoever can write there
 * decides what code runs in this process. */
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

/* --- which -------------------------------------------------------------------*/

/* The folders of the environment count only from the root on, as the XDG
 * specification has it. */
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
  /* A slash at the end would let the last part be a link. */
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
            option ? "the context was made without a directory for it"
                   : "VYRE_CACHE_DIR is empty",
            option ? "give vyre_context_options.cache_directory"
                   : "name a directory in VYRE_CACHE_DIR, or unset it");
    return true;
  }
  if (is_absolute(environment->xdg)) {
    return set_path(cache, allocator, environment->xdg, "/vyre");
  }
  if (is_absolute(environment->home)) {
    return set_path(cache, allocator, environment->home, "/.cache/vyre");
  }
  set_off(cache, "neither XDG_CACHE_HOME nor HOME names a folder",
          "name a directory in VYRE_CACHE_DIR");
  return true;
}

/* Digits and nothing else. */
static bool read_bytes(const char *text, uint64_t *out) {
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
  if (!read_bytes(environment, &cache->max_bytes)) {
    cache->max_bytes = 0;
    set_off(cache, "VYRE_CACHE_BYTES is no whole number",
            "write it in digits, as in VYRE_CACHE_BYTES=268435456");
  } else if (cache->max_bytes == 0) {
    set_off(cache, "VYRE_CACHE_BYTES is 0", "raise it, or unset it");
  }
}

bool vyre__cache_init(vyre__cache *cache, vyre_allocator allocator,
                      const vyre_context_options *options,
                      const vyre__cache_environment *environment) {
  *cache = (vyre__cache){.fix = ""};
  choose_bytes(cache, options->cache_bytes, environment->bytes);
  if (vyre__is_privileged()) {
    set_off(cache, "this process runs with the rights of another user",
            "run it without set-uid, set-gid or capabilities of the file");
  }
  return cache->off ||
         choose_path(cache, allocator, options->cache_directory, environment);
}

void vyre__cache_deinit(vyre__cache *cache, vyre_allocator allocator) {
  if (cache->path) vyre__resize(allocator, cache->path, cache->path_size, 0);
  *cache = (vyre__cache){0};
}

/* --- whether -----------------------------------------------------------------*/

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

static int open_last(const char *path) {
  return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Longer ones are not made: a part of one would be. */
enum { MOST_PATH = 1024 };

/* Makes the directory and what is above it, as the XDG specification has it. The
 * error of the last part; 0: it is there. */
static int make_all(const char *path) {
  char part[MOST_PATH];
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

/* Of @p path, which is not there, the folder that is and that all else would be
 * made in. */
static void nearest_folder(const char *path, char out[MOST_PATH]) {
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

/* Whether a directory could be made in @p folder. Rights do not tell, as there are
 * file systems that take none from anybody: one is made, by another name than that
 * which others may be about to use, and removed. 0, or the error. */
static int try_folder(const char *folder) {
  char name[MOST_PATH + 64];
  (void)snprintf(name, sizeof name, "%s/.vyre-%lx-%llx", folder,
                 (unsigned long)getpid(), (unsigned long long)vyre__clock_ns());
  if (mkdir(name, 0700) != 0) return errno;
  (void)rmdir(name);
  return 0;
}

static int refuse_making(vyre__cache_refusal *why, int error) {
  why->is_absent = false;
  return refuse(why,
                "name a directory that can be made or is there in "
                "VYRE_CACHE_DIR",
                "it is not there and cannot be made: error %d", error);
}

static int refuse_error(vyre__cache_refusal *why, int error) {
  why->is_absent = error == ENOENT;
  if (error == ENOENT) {
    return refuse(why, "nothing: it is made when something is kept",
                  "there is no such directory");
  }
  if (error == ELOOP || error == ENOTDIR) {
    return refuse(why, "name a directory itself, and no link to one",
                  "it is a link, or no directory");
  }
  return refuse(why, "name a directory that this user can open",
                "it cannot be opened: error %d", error);
}

int vyre__cache_open(const vyre__cache *cache, bool create,
                     vyre__cache_refusal *why) {
  *why = (vyre__cache_refusal){.fix = ""};
  if (cache->off) return refuse(why, cache->fix, "%s", cache->off);
  if (strlen(cache->path) >= MOST_PATH) {
    return refuse(why, "name a directory with a shorter path in VYRE_CACHE_DIR",
                  "its path has %zu bytes; at most %d are used",
                  strlen(cache->path), MOST_PATH - 1);
  }
  int directory = open_last(cache->path);
  if (directory < 0 && errno == ENOENT && create) {
    int error = make_all(cache->path);
    if (error) return refuse_making(why, error);
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
    return refuse(why, "name a directory of your own in VYRE_CACHE_DIR",
                  "it belongs to another user, %lu",
                  (unsigned long)about.st_uid);
  }
  return refuse(why, "chmod 700 the directory",
                "it is open to others: its mode is %o, not 700",
                (unsigned)(about.st_mode & 07777));
}

bool vyre__cache_can_make(const vyre__cache *cache, vyre__cache_refusal *why) {
  char folder[MOST_PATH];
  nearest_folder(cache->path, folder);
  int error = try_folder(folder);
  return error == 0 || refuse_making(why, error) == 0;
}
