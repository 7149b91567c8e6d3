/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vyre/memory.h"

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

static bool cannot_write(problem *out, const char *path, int error) {
  out->file = path;
  return problem_set(out, KIND_WRITE,
                     error == ENOSPC || error == EDQUOT
                         ? "make room on the disk, or write elsewhere"
                         : "choose a place that can be written to",
                     "cannot write: %s", strerror(error));
}

/* A file on its way: written under a name of its own, then renamed. What is no
 * regular file (a pipe, /dev/null) is written in place. */
typedef struct draft {
  const char *path;
  char *temporary; /* NULL: in place */
} draft;

static bool write_file(const char *path, int flags, const sink *data,
                       int *error) {
  int descriptor = open(path, flags, 0666);
  if (descriptor < 0) {
    *error = errno;
    return false;
  }
  bool fine = write_all(descriptor, data->data, data->length);
  if (!fine) *error = errno;
  if (close(descriptor) != 0 && fine) {
    *error = errno;
    fine = false;
  }
  return fine;
}

static bool draft_write(draft *file, const sink *data, vyre_arena *arena,
                        problem *out) {
  struct stat info;
  int error = 0;
  bool exists = stat(file->path, &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return cannot_write(out, file->path, EISDIR);
  }
  if (exists && !S_ISREG(info.st_mode)) {
    return write_file(file->path, O_WRONLY, data, &error) ||
           cannot_write(out, file->path, error);
  }
  size_t size = strlen(file->path) + 32;
  file->temporary = vyre_arena_alloc(arena, size, 1);
  if (!file->temporary) return problem_no_memory(out, "a file name");
  snprintf(file->temporary, size, "%s.%ld.tmp", file->path, (long)getpid());
  if (write_file(file->temporary, O_WRONLY | O_CREAT | O_EXCL, data, &error)) {
    return true;
  }
  if (error != EEXIST) unlink(file->temporary);
  file->temporary = NULL;
  return cannot_write(out, file->path, error);
}

static bool draft_publish(draft *file, problem *out) {
  if (!file->temporary) return true;
  if (rename(file->temporary, file->path) == 0) return true;
  int error = errno;
  unlink(file->temporary);
  return cannot_write(out, file->path, error);
}

int publish(sink *answer, const char *path, sink *drawing, bool json) {
  problem wrong = {0};
  vyre_arena arena = {0};
  draft file = {.path = path};
  bool told = false;
  bool fine = true;
  if (answer->failed || (path && drawing->failed)) {
    fine = problem_no_memory(&wrong, "the answer");
  }
  if (fine && path) {
    /* A reader that goes away must not end us with a draft left behind. */
    signal(SIGPIPE, SIG_IGN);
    fine = draft_write(&file, drawing, &arena, &wrong);
  }
  if (fine && !write_all(STDOUT_FILENO, answer->data, answer->length)) {
    /* There is nowhere to put JSON any more, so people are told. */
    fine = cannot_write(&wrong, "<stdout>", errno);
    if (file.temporary) unlink(file.temporary);
    told = true;
  } else if (fine) {
    fine = draft_publish(&file, &wrong);
    told = true;
  }
  int code = fine ? EXIT_FINE : problem_report(&wrong, json && !told);
  vyre_arena_finish(&arena);
  sink_finish(answer);
  if (drawing) sink_finish(drawing);
  return code;
}
