/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a fuzz target over files instead of a fuzzer: the corpus, and what was
 * once found, in plain `make check`. Each file also runs cut to half. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  size_t size = 0, capacity = 1u << 20;
  uint8_t *data = malloc(capacity);
  if (data) size = fread(data, 1, capacity, file);
  int good = data && feof(file);
  if (good) {
    LLVMFuzzerTestOneInput(data, size);
    LLVMFuzzerTestOneInput(data, size / 2);
  }
  free(data);
  fclose(file);
  return good;
}

int main(int argc, char **argv) {
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; i++) {
    DIR *folder = opendir(argv[i]);
    if (!folder) {
      printf("    %s cannot be opened\n", argv[i]);
      failed++;
      continue;
    }
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
      if (entry->d_name[0] == '.') continue;
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
      printf("    %s\n", entry->d_name); /* the last one, if it crashes */
      fflush(stdout);
      if (replay_file(path)) {
        passed++;
      } else {
        failed++;
        printf("FAIL %s: not read, or above 1 MiB\n", entry->d_name);
      }
    }
    closedir(folder);
  }
  printf("cases: %d passed, %d failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
