/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/read_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void problem_at(problem *wrong, const input *in, size_t offset) {
  if (offset > in->length) offset = in->length;
  uint64_t line = 1;
  size_t start = 0;
  const char *newline;
  while ((newline = memchr(in->text + start, '\n', offset - start)) != NULL) {
    line++;
    start = (size_t)(newline - in->text) + 1;
  }
  wrong->file = in->label;
  wrong->line = line;
  wrong->column = offset - start + 1;
}

void *list_add(arena_list *list, size_t item_size, vyre_arena *arena) {
  if (list->count == list->capacity) {
    size_t capacity = list->capacity ? list->capacity * 2 : 16;
    if (capacity > SIZE_MAX / item_size) return NULL;
    void *grown = vyre_arena_alloc(arena, capacity * item_size, 0);
    if (!grown) return NULL;
    if (list->count) memcpy(grown, list->items, list->count * item_size);
    list->items = grown;
    list->capacity = capacity;
  }
  return (char *)list->items + item_size * list->count++;
}

static bool cannot_read(problem *wrong, int error) {
  return problem_set(
      wrong, KIND_INPUT,
      "name an existing file that you can read, or - for standard input",
      "cannot be read: %s", strerror(error));
}

static bool too_large(problem *wrong, size_t limit) {
  bool giga = limit >= (size_t)1 << 30;
  return problem_set(wrong, KIND_INPUT,
                     "split the input and process the parts separately",
                     "the input is larger than %zu %s",
                     limit >> (giga ? 30 : 20), giga ? "GiB" : "MiB");
}

enum { FIRST_PIECE = 65536 };

/* First allocation: the size of a regular file plus one byte, so that its
 * end is seen without another read. */
static size_t first_capacity(const struct stat *info) {
  if (!S_ISREG(info->st_mode) || info->st_size < 0) return FIRST_PIECE;
  return (size_t)info->st_size + 1;
}

static bool grow(input *in, size_t capacity, problem *wrong) {
  vyre_allocator heap = vyre_allocator_heap();
  char *grown =
      heap.resize(heap.self, (char *)in->text, in->capacity, capacity);
  if (!grown) return problem_no_memory(wrong, "the input");
  in->text = grown;
  in->capacity = capacity;
  return true;
}

void input_deinit(input *in) {
  vyre_allocator heap = vyre_allocator_heap();
  if (in->capacity) heap.resize(heap.self, (char *)in->text, in->capacity, 0);
  *in = (input){0};
}

/* Returns the limit: @p other if the text does not start as JSON. */
typedef struct input_limit {
  size_t json, other;
} input_limit;

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns the limit for the bytes read so far. JSON shows in the first
 * block. */
static size_t limit_of(const input *in, input_limit limit) {
  if (limit.json == limit.other) return limit.json;
  size_t at = 0, end = in->length < FIRST_PIECE ? in->length : FIRST_PIECE;
  while (at < end && is_blank(in->text[at])) at++;
  if (at == end) return end < FIRST_PIECE ? limit.json : limit.other;
  return in->text[at] == '{' || in->text[at] == '[' ? limit.json : limit.other;
}

static bool read_all(int descriptor, size_t capacity, input_limit either,
                     input *out, problem *wrong) {
  if (!grow(out, capacity, wrong)) return false;
  for (;;) {
    size_t space = out->capacity - out->length;
    /* Read only the beginning; it decides about the limit. */
    size_t limit = limit_of(out, either);
    size_t max = out->length == 0 ? FIRST_PIECE : limit + 1 - out->length;
    if (space > max) space = max;
    ssize_t got = read(descriptor, (char *)out->text + out->length, space);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(wrong, errno);
    if (got == 0) return true;
    out->length += (size_t)got;
    limit = limit_of(out, either);
    if (out->length > limit) return too_large(wrong, limit);
    if (out->length < out->capacity) continue;
    capacity = out->capacity <= limit / 2 ? out->capacity * 2 : limit + 1;
    if (!grow(out, capacity, wrong)) return false;
  }
}

/* A character device may never end. Only devices that give nothing are read,
 * and standard input by another name, such as /dev/stdin. */
static bool is_endless(const struct stat *info) {
  struct stat other;
  if (!S_ISCHR(info->st_mode) && !S_ISBLK(info->st_mode)) return false;
  bool is_known =
      (stat("/dev/null", &other) == 0 && other.st_rdev == info->st_rdev) ||
      (fstat(STDIN_FILENO, &other) == 0 && other.st_rdev == info->st_rdev);
  return !is_known;
}

static bool read_from(const char *path, input_limit limit, input *out,
                      problem *wrong) {
  bool standard = strcmp(path, "-") == 0;
  *out = (input){.label = standard ? "<stdin>" : path};
  wrong->file = out->label;
  int descriptor = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return cannot_read(wrong, errno);
  struct stat info;
  bool fine = fstat(descriptor, &info) == 0 || cannot_read(wrong, errno);
  if (fine && S_ISDIR(info.st_mode)) fine = cannot_read(wrong, EISDIR);
  if (fine && is_endless(&info)) {
    fine =
        problem_set(wrong, KIND_INPUT, "name a file, or - for standard input",
                    "cannot be read: it is a device, which may never end");
  }
  if (fine && S_ISREG(info.st_mode) && (uint64_t)info.st_size > limit.json) {
    fine = too_large(wrong, limit.json);
  }
  if (fine) {
    fine = read_all(descriptor, first_capacity(&info), limit, out, wrong);
  }
  if (!standard) close(descriptor);
  if (fine) wrong->file = NULL;
  return fine;
}

bool read_input(const char *path, input *out, problem *wrong) {
  return read_input_up_to(path, INPUT_LIMIT, out, wrong);
}

bool read_input_up_to(const char *path, size_t limit, input *out,
                      problem *wrong) {
  return read_from(path, (input_limit){limit, limit}, out, wrong);
}

bool read_json_or(const char *path, size_t limit, input *out, problem *wrong) {
  return read_from(path, (input_limit){INPUT_LIMIT, limit}, out, wrong);
}
