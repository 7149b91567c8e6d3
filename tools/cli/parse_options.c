/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/parse_options.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kernel_file.h"
#include "cli/text.h"

enum { MAX_DEFINES = 64, MAX_FOLDERS = 64, SHOWN_VALUE = 80 };

static struct {
  vyre_define defines[MAX_DEFINES];
  char names[MAX_DEFINES][64];
  const char *folders[MAX_FOLDERS];
  vyre_module_options options;
} kept;

static bool add_define(const char *value, problem *wrong) {
  const size_t at = kept.options.define_count;
  if (at == MAX_DEFINES) {
    return problem_set(wrong, KIND_USAGE, "define fewer overrides",
                       "--define is given more than %d times",
                       (int)MAX_DEFINES);
  }
  const char *equals = strchr(value, '=');
  const size_t length = equals ? (size_t)(equals - value) : 0;
  if (length == 0 || length >= sizeof kept.names[at] || !equals[1]) {
    char shown[SHOWN_VALUE];
    show_into(shown, sizeof shown, value, strlen(value));
    return problem_set(wrong, KIND_USAGE, "write it as in --define TILE=32",
                       "--define '%s' is not NAME=VALUE", shown);
  }
  memcpy(kept.names[at], value, length);
  kept.names[at][length] = '\0';
  kept.defines[at] = (vyre_define){.name = kept.names[at], .value = equals + 1};
  kept.options.define_count++;
  return true;
}

static bool add_folder(const char *value, problem *wrong) {
  const size_t at = kept.options.import_folder_count;
  if (at == MAX_FOLDERS) {
    return problem_set(wrong, KIND_USAGE, "use fewer folders",
                       "-I is given more than %d times", (int)MAX_FOLDERS);
  }
  kept.folders[at] = strcmp(value, ".") == 0 ? "" : value;
  kept.options.import_folder_count++;
  return true;
}

bool parse_options_add(const char *flag, const char *value, bool *is_known,
                       problem *wrong) {
  *is_known = true;
  if (strcmp(flag, "--define") == 0) return add_define(value, wrong);
  if (strcmp(flag, "--import") == 0) return add_folder(value, wrong);
  *is_known = false;
  return true;
}

const vyre_module_options *parse_options(void) {
  kept.options.defines = kept.defines;
  kept.options.import_folders = kept.folders;
  kept.options.import_read = read_import;
  return &kept.options;
}

const vyre_module_options *parse_options_of_imports(void) {
  static vyre_module_options options;
  options = *parse_options();
  options.defines = NULL;
  options.define_count = 0;
  return &options;
}

/* Reads a file of a known size. */
static bool read_all(int file, char *to, size_t length) {
  for (size_t done = 0; done < length;) {
    const ssize_t got = read(file, to + done, length - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += (size_t)got;
  }
  return true;
}

bool read_import(void *context, const char *path, vyre_arena *arena,
                 const char **text, size_t *length) {
  (void)context;
  struct stat info;
  /* a FIFO would block */
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return false;
  char *bytes = NULL;
  const bool is_good = fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                       (uintmax_t)info.st_size <= KERNEL_LIMIT;
  if (is_good) bytes = vyre_arena_alloc(arena, (size_t)info.st_size + 1, 1);
  const bool is_read = bytes && read_all(file, bytes, (size_t)info.st_size);
  (void)close(file);
  *text = bytes;
  *length = is_read ? (size_t)info.st_size : 0;
  return is_read;
}
