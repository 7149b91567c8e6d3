/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The list of libraries that the loader has of its own (ldconfig makes it):
 * which file a name stands for. Read as bytes of anyone. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "backend/cpu/jit/llvm_compile.h"

typedef struct list_head {
  char magic[20];
  uint32_t count, string_size;
  uint32_t unused[5];
} list_head;

typedef struct list_entry {
  int32_t flags;
  uint32_t name, path; /* from the head on */
  uint32_t system;
  uint64_t hardware;
} list_entry;

static const char magic[] = "glibc-ld.so.cache1.1"; /* without its NUL */
static const char old_magic[] = "ld.so-1.7.0";

enum {
  OLD_HEAD = 16, /* a list of an older form may be before it */
  OLD_ENTRY = 12,
  X86_64 = 0x0303, /* a library of this machine, with the C library's sixth */
  MOST_ENTRIES = 1 << 20
};

/* A part of the file: lists have thousands of entries, one after the other, and
 * their texts in the same order. */
typedef struct window {
  int fd;
  uint64_t at;
  size_t size;
  char bytes[8192];
} window;

/* At most @p size bytes of the file at @p at; *got: how many there are. */
static const char *see(window *w, uint64_t at, size_t size, size_t *got) {
  if (at < w->at || at - w->at > w->size || size > w->size - (at - w->at)) {
    ssize_t read = pread(w->fd, w->bytes, sizeof w->bytes, (off_t)at);
    w->at = at;
    w->size = read > 0 ? (size_t)read : 0;
  }
  size_t there = w->size - (size_t)(at - w->at);
  *got = there < size ? there : size;
  return w->bytes + (at - w->at);
}

static bool read_at(window *w, uint64_t at, void *to, size_t size) {
  size_t got;
  const char *bytes = see(w, at, size, &got);
  if (got == size) memcpy(to, bytes, size);
  return got == size;
}

/* Where the head is. */
static bool find_head(window *w, uint64_t *at, list_head *out) {
  char old[OLD_HEAD];
  uint32_t count;
  *at = 0;
  if (!read_at(w, 0, old, sizeof old)) return false;
  if (memcmp(old, old_magic, sizeof old_magic - 1) == 0) {
    memcpy(&count, old + 12, sizeof count);
    *at = (OLD_HEAD + (uint64_t)count * OLD_ENTRY + 7) & ~(uint64_t)7;
  }
  return read_at(w, *at, out, sizeof *out) &&
         memcmp(out->magic, magic, sizeof out->magic) == 0 &&
         out->count <= MOST_ENTRIES;
}

/* Whether the text at @p at is @p name. */
static bool is_name(window *w, uint64_t at, const char *name) {
  size_t size = strlen(name) + 1, got;
  const char *found = see(w, at, size, &got);
  return got == size && memcmp(found, name, size) == 0;
}

/* A path that has room; one that is longer is none. */
static bool read_path(window *w, uint64_t at, char *out, size_t room) {
  size_t got;
  const char *found = see(w, at, room, &got);
  if (got == 0 || found[0] != '/' || !memchr(found, '\0', got)) return false;
  memcpy(out, found, strlen(found) + 1);
  return true;
}

bool vyre__jit_listed(const char *list, const char *name, char *out,
                      size_t room) {
  list_head head;
  uint64_t at;
  bool is_found = false;
  window entries = {.fd = open(list, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  window texts = {.fd = entries.fd};
  if (entries.fd < 0) return false;
  bool is_list = find_head(&entries, &at, &head) &&
                 strlen(name) < sizeof texts.bytes &&
                 room <= sizeof texts.bytes;
  for (uint32_t i = 0; is_list && !is_found && i < head.count; i++) {
    list_entry entry;
    is_list = read_at(&entries, at + sizeof head + i * (uint64_t)sizeof entry,
                      &entry, sizeof entry);
    /* Those for some machines only stand for the same library. */
    is_found = is_list && entry.flags == X86_64 && entry.hardware == 0 &&
               is_name(&texts, at + entry.name, name) &&
               read_path(&texts, at + entry.path, out, room);
  }
  (void)close(entries.fd);
  return is_found;
}
