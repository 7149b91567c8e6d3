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

static bool write_file(const out_file *file, const char *path, int flags,
                       int *error) {
  int descriptor = open(path, flags, 0666);
  if (descriptor < 0) {
    *error = errno;
    return false;
  }
  bool fine = write_all(descriptor, file->head, file->head_length) &&
              write_all(descriptor, file->body, file->body_length);
  if (!fine) *error = errno;
  if (close(descriptor) != 0 && fine) {
    *error = errno;
    fine = false;
  }
  return fine;
}

/* Writes it under a name of its own; it is renamed later. What is no regular file
 * (a pipe, /dev/null) is written in place. */
static bool draft_write(out_file *file, vyre_arena *arena, problem *out) {
  struct stat info;
  int error = 0;
  bool exists = stat(file->path, &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return cannot_write(out, file->path, EISDIR);
  }
  if (exists && !S_ISREG(info.st_mode)) {
    return write_file(file, file->path, O_WRONLY, &error) ||
           cannot_write(out, file->path, error);
  }
  size_t size = strlen(file->path) + 32;
  char *temporary = vyre_arena_alloc(arena, size, 1);
  if (!temporary) return problem_no_memory(out, "a file name");
  snprintf(temporary, size, "%s.%ld.tmp", file->path, (long)getpid());
  if (write_file(file, temporary, O_WRONLY | O_CREAT | O_EXCL, &error)) {
    file->temporary = temporary;
    return true;
  }
  if (error != EEXIST) unlink(temporary);
  return cannot_write(out, file->path, error);
}

static bool draft_publish(out_file *file, problem *out) {
  if (!file->temporary) return true;
  if (rename(file->temporary, file->path) == 0) {
    file->temporary = NULL;
    return true;
  }
  return cannot_write(out, file->path, errno);
}

static void drop_drafts(out_file *files, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (files[i].temporary) unlink(files[i].temporary);
    files[i].temporary = NULL;
  }
}

int publish_files(sink *answer, out_file *files, size_t count, bool json) {
  problem wrong = {0};
  vyre_arena arena = {0};
  bool told = false;
  bool fine = !answer->failed || problem_no_memory(&wrong, "the answer");
  /* A reader that goes away must not end us with a draft left behind. */
  if (count > 0) signal(SIGPIPE, SIG_IGN);
  for (size_t i = 0; fine && i < count; i++) {
    fine = draft_write(&files[i], &arena, &wrong);
  }
  if (fine) {
    /* From here on there is nowhere to put JSON any more: people are told. */
    told = true;
    fine = write_all(STDOUT_FILENO, answer->data, answer->length) ||
           cannot_write(&wrong, "<stdout>", errno);
  }
  for (size_t i = 0; fine && i < count; i++) {
    fine = draft_publish(&files[i], &wrong);
  }
  drop_drafts(files, count);
  int code = fine ? EXIT_FINE : problem_report(&wrong, json && !told);
  vyre_arena_finish(&arena);
  sink_finish(answer);
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
  if (drawing) sink_finish(drawing);
  return code;
}
