/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads, writes and evicts the files of the cache. All are opened relative to
 * the directory, and never through a symbolic link. A file appears by a rename
 * and is never written again, so readers always see a complete file, and
 * processes need no lock. The worst that one process can do to another is to
 * remove an entry. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/sort.h"
#include "runtime/cache/cache.h"

/* --- reading -------------------------------------------------------------- */

static bool read_all(int file, unsigned char *to, size_t size) {
  while (size > 0) {
    ssize_t got = read(file, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= (size_t)got;
  }
  return true;
}

/* Converts a file time. Times before 1970 or out of range are clamped, so that
 * the difference of two times never overflows. */
static int64_t to_ns(struct timespec time) {
  if (time.tv_sec < 0) return 0;
  if (time.tv_sec >= INT64_MAX / 1000000000) return INT64_MAX;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Opens a regular file of this user that no other user can write. Returns -1 if
 * it must not be read; *why is the reason, or NULL if the file does not
 * exist. */
static int open_file(int directory, const char *name, uint64_t *size,
                     int64_t *used_ns, const char **why) {
  /* O_NONBLOCK: the name may belong to a pipe. */
  int file = openat(directory, name,
                    O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) {
    *why = errno == ENOENT  ? NULL
           : errno == ELOOP ? "it is a symbolic link"
                            : "it cannot be opened";
    return -1;
  }
  struct stat about = {0};
  if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode) ||
      about.st_uid != geteuid() || (about.st_mode & 022) != 0) {
    *why =
        S_ISDIR(about.st_mode)
            ? "it is a directory, which blocks the entry"
            : "it is not a regular file of this user, or others can write it";
    close(file);
    return -1;
  }
  *size = (uint64_t)about.st_size;
  *used_ns = to_ns(about.st_mtim);
  return file;
}

bool vyre__cache_file_bytes(int directory, const char *name, void *to,
                            size_t capacity, size_t *out) {
  uint64_t size;
  int64_t used_ns;
  const char *why;
  int file = open_file(directory, name, &size, &used_ns, &why);
  if (file < 0) return false;
  bool is_ok = size <= capacity && read_all(file, to, (size_t)size);
  close(file);
  *out = is_ok ? (size_t)size : 0;
  return is_ok;
}

/* Files up to this size are read at once. */
enum { SMALL = 1 << 18 };

/* Checks the head of a large file before it allocates memory for the rest. */
static vyre__cache_read_result read_open(int file, uint64_t file_size,
                                         vyre__cache_file *out,
                                         const char **why) {
  unsigned char head[VYRE__CACHE_HEAD];
  size_t size = (size_t)file_size, first = file_size > SMALL ? sizeof head : 0;
  *why = "it is shorter than its head";
  if (file_size < VYRE__CACHE_HEAD || !read_all(file, head, first)) {
    return VYRE__CACHE_REJECTED;
  }
  *why = first ? vyre__cache_head_read(head, file_size) : NULL;
  if (*why) return VYRE__CACHE_REJECTED;
  if (file_size > SIZE_MAX / 2) return VYRE__CACHE_NO_MEMORY;
  out->bytes = vyre__resize(out->allocator, NULL, 0, size);
  if (!out->bytes) return VYRE__CACHE_NO_MEMORY;
  out->size = size;
  memcpy(out->bytes, head, first);
  *why = "reading it failed";
  if (!read_all(file, out->bytes + first, size - first)) {
    return VYRE__CACHE_REJECTED;
  }
  *why = vyre__cache_entry_read(out->bytes, size, &out->entry);
  return *why ? VYRE__CACHE_REJECTED : VYRE__CACHE_READ;
}

vyre__cache_read_result vyre__cache_file_read(int directory, const char *name,
                                              vyre_allocator allocator,
                                              vyre__cache_file *out,
                                              const char **why) {
  *out = (vyre__cache_file){.allocator = allocator};
  uint64_t size;
  int file = open_file(directory, name, &size, &out->used_ns, why);
  if (file < 0) return *why ? VYRE__CACHE_REJECTED : VYRE__CACHE_ABSENT;
  vyre__cache_read_result result = read_open(file, size, out, why);
  close(file);
  if (result != VYRE__CACHE_READ) vyre__cache_file_deinit(out);
  return result;
}

void vyre__cache_file_deinit(vyre__cache_file *file) {
  if (file->bytes) vyre__resize(file->allocator, file->bytes, file->size, 0);
  *file = (vyre__cache_file){.allocator = file->allocator};
}

bool vyre__cache_is_recent(int64_t used_ns) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t age = to_ns(now) - used_ns;
  return age >= 0 && age < (int64_t)60 * 1000000000;
}

void vyre__cache_touch(int directory, const char *name) {
  /* Fails on a read-only file system; the order of eviction then stays. */
  (void)utimensat(directory, name, NULL, AT_SYMLINK_NOFOLLOW);
}

/* --- writing -------------------------------------------------------------- */

static const char leftover_prefix[] = ".tmp-";

static bool fail(char why[VYRE__CACHE_REASON], const char *failure, int error) {
  char text[VYRE__ERROR_TEXT];
  (void)snprintf(why, VYRE__CACHE_REASON, "%s: %s", failure,
                 vyre__error_text(error, text));
  return false;
}

static bool write_all(int file, const unsigned char *from, size_t size) {
  while (size > 0) {
    ssize_t put = write(file, from, size);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      if (put == 0) errno = ENOSPC;
      return false;
    }
    from += put;
    size -= (size_t)put;
  }
  return true;
}

bool vyre__kills_process(uint64_t end) {
  struct rlimit limit;
  struct sigaction action;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur &&
         sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

/* Creates a temporary file. Its name is unique even if containers with equal
 * process ids share the directory. */
static int open_new(int directory, char name[VYRE__CACHE_NAME]) {
  static atomic_uint count;
  for (int i = 0; i < 8; i++) {
    (void)snprintf(name, VYRE__CACHE_NAME, "%s%lx-%llx-%x", leftover_prefix,
                   (unsigned long)getpid(),
                   (unsigned long long)vyre__clock_ns(),
                   atomic_fetch_add(&count, 1));
    int file =
        openat(directory, name,
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

bool vyre__cache_file_write(int directory, const char *name,
                            const unsigned char *bytes, size_t size,
                            char why[VYRE__CACHE_REASON]) {
  char temporary[VYRE__CACHE_NAME];
  if (vyre__kills_process(size)) {
    return fail(why, "it exceeds the file size limit of this process", EFBIG);
  }
  int file = open_new(directory, temporary);
  if (file < 0)
    return fail(why, "cannot create a file in the directory", errno);
  bool is_ok = write_all(file, bytes, size) && fsync(file) == 0;
  int error = errno;
  if (close(file) != 0 && is_ok) {
    is_ok = false;
    error = errno;
  }
  if (!is_ok) {
    (void)unlinkat(directory, temporary, 0);
    return fail(why, "writing it failed", error);
  }
  if (renameat(directory, temporary, directory, name) != 0) {
    error = errno;
    (void)unlinkat(directory, temporary, 0);
    return fail(why, "renaming it failed", error);
  }
  /* Failure is harmless: after a power cut, the entry may be missing. */
  (void)fsync(directory);
  return true;
}

/* --- listing and eviction ------------------------------------------------- */

static const int64_t leftover_age_ns = (int64_t)3600 * 1000000000;

static bool starts_with(const char *name, const char *prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool add_item(int directory, const char *name, vyre__cache_items *to) {
  if (strlen(name) >= VYRE__CACHE_NAME) return true;
  bool is_leftover = starts_with(name, leftover_prefix) ||
                     starts_with(name, "." VYRE__CACHE_PROBE) ||
                     starts_with(name, "." VYRE__CACHE_TIMES);
  bool is_probe = starts_with(name, VYRE__CACHE_PROBE) ||
                  starts_with(name, VYRE__CACHE_TIMES);
  if (!is_leftover && !is_probe && !vyre__cache_is_entry(name)) return true;
  struct stat about;
  if (fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return true; /* removed by another process */
  }
  bool is_directory = S_ISDIR(about.st_mode);
  if (is_directory && (is_leftover || is_probe)) return true;
  if (!vyre__reserve(to->allocator, &to->items, &to->capacity, to->count + 1,
                     sizeof *to->items, false)) {
    return false;
  }
  vyre__cache_item *item = &to->items[to->count++];
  *item =
      (vyre__cache_item){.bytes = is_directory ? 0 : (uint64_t)about.st_size,
                         .is_directory = is_directory,
                         .used_ns = to_ns(about.st_mtim),
                         .is_leftover = is_leftover,
                         .is_probe = is_probe};
  memcpy(item->name, name, strlen(name) + 1);
  return true;
}

/* Heap sort by name: a directory may have many files, in any order. */
static void sift(vyre__cache_item *items, size_t at, size_t count) {
  for (size_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count &&
        strcmp(items[child].name, items[child + 1].name) < 0) {
      child++;
    }
    if (strcmp(items[at].name, items[child].name) >= 0) return;
    vyre__cache_item moved = items[at];
    items[at] = items[child];
    items[child] = moved;
  }
}

static void sort_names(vyre__cache_item *items, size_t count) {
  for (size_t i = count / 2; i-- > 0;) sift(items, i, count);
  for (size_t end = count; end-- > 1;) {
    vyre__cache_item last = items[end];
    items[end] = items[0];
    items[0] = last;
    sift(items, 0, end);
  }
}

bool vyre__cache_scan(int directory, vyre_allocator allocator,
                      vyre__cache_items *out) {
  *out = (vyre__cache_items){.allocator = allocator};
  /* A separate descriptor: closedir closes it, and readdir moves its offset. */
  int own = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *list = own < 0 ? NULL : fdopendir(own);
  if (!list) {
    if (own >= 0) close(own);
    return true; /* unreadable: an empty list */
  }
  bool is_ok = true;
  for (struct dirent *entry; is_ok && (entry = readdir(list)) != NULL;) {
    is_ok = add_item(directory, entry->d_name, out);
  }
  closedir(list);
  if (!is_ok) vyre__cache_items_deinit(out);
  sort_names(out->items, out->count);
  return is_ok;
}

void vyre__cache_items_deinit(vyre__cache_items *items) {
  vyre__reserve_free(items->allocator, &items->items, &items->capacity,
                     sizeof *items->items);
  items->count = 0;
}

/* Returns true if the file is gone, also if another process removed it. */
static bool remove_item(int directory, const vyre__cache_item *item,
                        vyre_cache_pruned *out) {
  if (unlinkat(directory, item->name, 0) != 0) return errno == ENOENT;
  out->removed_count++;
  out->removed_bytes += item->bytes;
  return true;
}

/* Sorts the files by the time of their last use, oldest first. */
static bool sort_by_use(const vyre__cache_items *all, vyre__sort_item **out,
                        size_t *capacity) {
  bool has_memory = vyre__reserve(all->allocator, out, capacity, all->count + 1,
                                  sizeof **out, true);
  vyre__sort_item *order = *out;
  if (!has_memory || !order) return false;
  for (size_t i = 0; i < all->count; i++) {
    int64_t used = all->items[i].used_ns; /* negative times come first */
    order[i] = (vyre__sort_item){(uint64_t)used ^ (uint64_t)1 << 63, i};
  }
  vyre__sort(order, all->count);
  return true;
}

bool vyre__cache_evict(int directory, vyre_allocator allocator,
                       uint64_t max_bytes, vyre_cache_pruned *out) {
  vyre__cache_items all;
  vyre__sort_item *order = NULL;
  size_t capacity = 0;
  *out = (vyre_cache_pruned){0};
  if (!vyre__cache_scan(directory, allocator, &all)) return false;
  bool is_ok = sort_by_use(&all, &order, &capacity);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  for (size_t i = 0; is_ok && i < all.count; i++) {
    const vyre__cache_item *item = &all.items[i];
    if (item->is_directory) continue; /* never evicted */
    if (!item->is_leftover) {
      out->left_bytes += item->bytes;
      out->left_count += !item->is_probe;
    } else if (to_ns(now) - item->used_ns > leftover_age_ns) {
      (void)remove_item(directory, item, out);
    }
  }
  for (size_t i = 0; is_ok && i < all.count && out->left_bytes > max_bytes;
       i++) {
    const vyre__cache_item *item = &all.items[order[i].tie];
    if (item->is_leftover || item->is_directory ||
        !remove_item(directory, item, out)) {
      continue;
    }
    out->left_bytes -= item->bytes;
    out->left_count -= !item->is_probe;
  }
  vyre__reserve_free(allocator, &order, &capacity, sizeof *order);
  vyre__cache_items_deinit(&all);
  return is_ok;
}
