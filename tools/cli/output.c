/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vyre/memory.h"

enum { MAX_PATH = 4096, MAX_LINKS = 40 };

bool write_all(int descriptor, const char *data, size_t length) {
  while (length > 0) {
    ssize_t written = write(descriptor, data, length);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    length -= (size_t)written;
  }
  return true;
}

/* Returns the file size limit of the process, or 0. */
static bool has_size_limit(unsigned long long *bytes) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return false;
  }
  *bytes = limit.rlim_cur;
  return true;
}

/* Fills @p out for EFBIG. @p length is the number of bytes to write, 0 if
 * unknown. */
static bool too_long(problem *out, uint64_t length) {
  unsigned long long limit;
  if (!has_size_limit(&limit)) {
    return problem_set(out, KIND_WRITE,
                       "write to a file system that allows larger files",
                       "cannot write %llu bytes: the file system does not "
                       "allow a file of that size",
                       (unsigned long long)length);
  }
  problem_set(out, KIND_WRITE, "",
              "cannot write %llu bytes: the file size limit is %llu bytes "
              "(RLIMIT_FSIZE)",
              (unsigned long long)length, limit);
  problem_fix(
      out,
      "start vyre from a shell whose `ulimit -f` is unlimited, or write "
      "less");
  return false;
}

static const char *write_fix(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "free space on the disk, or write to another one";
    case EISDIR:
      return "name a file in that folder";
    case EBADF:
      return "start vyre with standard output open, or redirect it to a file";
    case EPIPE:
      return "keep the program that reads the output running";
    default:
      return "choose a folder that you can write to";
  }
}

static bool cannot_write(problem *out, const char *path, int error,
                         uint64_t length) {
  out->file = path;
  if (error == EFBIG) return too_long(out, length);
  return problem_set(out, KIND_WRITE, write_fix(error), "cannot write: %s",
                     strerror(error));
}

/* Reads the attributes of the folder of @p path. Returns the name in it. */
static const char *stat_folder(const char *path, struct stat *folder,
                               bool *exists) {
  char text[MAX_PATH];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) + 1 : 0;
  *exists = length < sizeof text;
  if (*exists) {
    memcpy(text, length ? path : ".", length ? length : 1);
    text[length ? length : 1] = '\0';
    *exists = stat(text, folder) == 0;
  }
  return path + length;
}

bool is_same_file(const char *path, const char *other) {
  struct stat a, b;
  bool has_a = stat(path, &a) == 0, has_b = stat(other, &b) == 0;
  if (has_a && has_b) {
    return S_ISREG(a.st_mode) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
  }
  if (has_a || has_b) return false;
  const char *name = stat_folder(path, &a, &has_a);
  const char *other_name = stat_folder(other, &b, &has_b);
  return has_a && has_b && a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         strcmp(name, other_name) == 0;
}

bool is_other_file(const char *name, const char *path, const char *input,
                   problem *wrong) {
  if (!path || !input || strcmp(path, "-") == 0 || strcmp(input, "-") == 0 ||
      !is_same_file(path, input)) {
    return true;
  }
  return problem_set(wrong, KIND_USAGE, "name another file",
                     "%s would replace the input file '%.200s'", name, input);
}

/* Writes a file. It keeps the mode of @p old, the file that it replaces;
 * NULL: it replaces none. */
static bool write_file(const out_file *file, const char *path, int flags,
                       const struct stat *old, int *error) {
  mode_t mode = old ? old->st_mode & 0777 : 0666;
  int descriptor = open(path, flags, mode);
  if (descriptor < 0) {
    *error = errno;
    return false;
  }
  /* open() applied the umask; restore the mode. */
  bool fine = (!old || fchmod(descriptor, mode) == 0) &&
              write_all(descriptor, file->head, file->head_length) &&
              write_all(descriptor, file->body, file->body_length);
  if (!fine) *error = errno;
  if (close(descriptor) != 0 && fine) {
    *error = errno;
    fine = false;
  }
  return fine;
}

/* Follows symbolic links, so that publishing replaces the file and keeps the
 * link. The file need not exist. Returns NULL if memory runs out. */
static const char *behind_links(const char *path, vyre_arena *arena) {
  char target[MAX_PATH];
  for (int i = 0; i < MAX_LINKS; i++) {
    ssize_t got = readlink(path, target, sizeof target);
    if (got < 0 || got == MAX_PATH) return path;
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    char *next = vyre_arena_alloc(arena, folder + (size_t)got + 1, 1);
    if (!next) return NULL;
    memcpy(next, path, folder);
    memcpy(next + folder, target, (size_t)got);
    next[folder + (size_t)got] = '\0';
    path = next;
  }
  return path;
}

/* Returns true if an earlier entry writes the same text to the same file
 * under another name. */
static bool is_repeated(const out_file *files, size_t index) {
  const out_file *file = &files[index];
  struct stat own, other;
  if (stat(file->target, &own) != 0) return false;
  for (size_t i = 0; i < index; i++) {
    if (!files[i].temporary || stat(files[i].target, &other) != 0) continue;
    if (own.st_dev != other.st_dev || own.st_ino != other.st_ino) continue;
    return !files[i].body && !file->body &&
           files[i].head_length == file->head_length &&
           memcmp(files[i].head, file->head, file->head_length) == 0;
  }
  return false;
}

/* Returns the name of the temporary file, in the folder of @p target. */
static char *draft_name(const char *target, vyre_arena *arena) {
  size_t size = target ? strlen(target) + 32 : 0;
  char *name = size ? vyre_arena_alloc(arena, size, 1) : NULL;
  if (name) snprintf(name, size, "%s.%ld.tmp", target, (long)getpid());
  return name;
}

/* Reads the attributes of @p path. Returns false with a problem if a file
 * cannot be there. */
static bool look_at(const char *path, bool *exists, struct stat *info,
                    problem *out) {
  *exists = stat(path, info) == 0;
  if (!*exists && errno == ELOOP) return cannot_write(out, path, ELOOP, 0);
  if (*exists && S_ISDIR(info->st_mode))
    return cannot_write(out, path, EISDIR, 0);
  return true;
}

bool can_publish(const char *path, vyre_arena *arena, problem *wrong) {
  struct stat info;
  bool exists;
  if (!look_at(path, &exists, &info, wrong)) return false;
  if (exists && !S_ISREG(info.st_mode)) { /* opening a pipe would block */
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 ||
           cannot_write(wrong, path, errno, 0);
  }
  const char *draft = draft_name(behind_links(path, arena), arena);
  if (!draft) return problem_no_memory(wrong, "a file name");
  int descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(wrong, path, errno, 0);
  close(descriptor);
  return unlink(draft) == 0 || cannot_write(wrong, path, errno, 0);
}

/* Writes a file under a temporary name; draft_publish renames it. Pipes and
 * devices are written in place. */
static bool draft_write(out_file *files, size_t index, vyre_arena *arena,
                        problem *out) {
  out_file *file = &files[index];
  struct stat info;
  uint64_t length = (uint64_t)file->head_length + file->body_length;
  int error = 0;
  bool exists;
  if (!look_at(file->path, &exists, &info, out)) return false;
  if (exists && !S_ISREG(info.st_mode)) {
    return write_file(file, file->path, O_WRONLY, NULL, &error) ||
           cannot_write(out, file->path, error, length);
  }
  file->target = behind_links(file->path, arena);
  char *temporary = draft_name(file->target, arena);
  if (!temporary) return problem_no_memory(out, "a file name");
  if (access(temporary, F_OK) == 0 && is_repeated(files, index)) return true;
  file->temporary = temporary;
  if (write_file(file, temporary, O_WRONLY | O_CREAT | O_EXCL,
                 exists ? &info : NULL, &error)) {
    return true;
  }
  file->temporary = NULL;
  if (error != EEXIST) unlink(temporary);
  return cannot_write(out, file->path, error, length);
}

static bool draft_publish(out_file *file, problem *out) {
  if (!file->temporary) return true;
  if (rename(file->temporary, file->target) == 0) {
    file->temporary = NULL;
    return true;
  }
  return cannot_write(out, file->path, errno, 0);
}

static void drop_drafts(out_file *files, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (files[i].temporary) unlink(files[i].temporary);
    files[i].temporary = NULL;
  }
}

/* Files that a signal handler has to remove. */
static out_file *volatile unpublished;
static volatile size_t unpublished_count;

/* Removes temporary files, then ends the process by the same signal. unlink() and
 * raise() are async-signal-safe. */
static void remove_drafts_and_end(int number) {
  out_file *files = unpublished;
  for (size_t i = 0; i < unpublished_count; i++) {
    if (files[i].temporary) unlink(files[i].temporary);
  }
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof *ending_signals };

/* Makes Ctrl-C remove temporary files while @p count files are written. A signal that
 * is ignored stays ignored. */
static void guard_drafts(out_file *files, size_t count,
                         struct sigaction old[ENDING_SIGNALS]) {
  unpublished = files;
  unpublished_count = count;
  for (int i = 0; i < ENDING_SIGNALS; i++) {
    struct sigaction action = {.sa_handler = remove_drafts_and_end};
    sigaction(ending_signals[i], NULL, &old[i]);
    if (old[i].sa_handler == SIG_IGN) continue;
    sigaction(ending_signals[i], &action, NULL);
  }
}

static void unguard_drafts(const struct sigaction old[ENDING_SIGNALS]) {
  for (int i = 0; i < ENDING_SIGNALS; i++) {
    sigaction(ending_signals[i], &old[i], NULL);
  }
  unpublished_count = 0;
}

int publish_files(sink *answer, out_file *files, size_t count, bool json) {
  struct sigaction old[ENDING_SIGNALS];
  problem wrong = {0};
  vyre_arena arena = {0};
  bool told = false;
  bool fine = !answer->failed || problem_no_memory(&wrong, "the answer");
  /* A closed pipe must not end the process while temporary files exist. */
  if (count > 0) signal(SIGPIPE, SIG_IGN);
  guard_drafts(files, count, old);
  for (size_t i = 0; fine && i < count; i++) {
    fine = draft_write(files, i, &arena, &wrong);
  }
  if (fine) {
    /* Part of the answer may be on stdout now, so that JSON would be
     * invalid: report further errors as text. */
    told = true;
    fine = write_all(STDOUT_FILENO, answer->data, answer->length) ||
           cannot_write(&wrong, "<stdout>", errno, answer->length);
  }
  for (size_t i = 0; fine && i < count; i++) {
    fine = draft_publish(&files[i], &wrong);
  }
  drop_drafts(files, count);
  unguard_drafts(old);
  int code = fine ? EXIT_FINE : problem_report(&wrong, json && !told);
  vyre_arena_deinit(&arena);
  sink_deinit(answer);
  return code;
}

int publish(sink *answer, const char *path, sink *drawing, bool json) {
  out_file file = {.path = path};
  if (path) {
    file.head = drawing->data;
    file.head_length = drawing->length;
    if (drawing->failed) answer->failed = true;
  }
  int code = publish_files(answer, &file, path ? 1 : 0, json);
  if (drawing) sink_deinit(drawing);
  return code;
}
