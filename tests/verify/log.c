/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "verify/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/printed.h"

static bool parse(const char *text, log_line *line) {
  *line = (log_line){.worst = 0.0};
  int used = 0;
  int fields = sscanf(
      text,
      "%23s %23s %" SCNx64 ":%" SCNx64 " %" SCNu64 " %" SCNu64 ",%" SCNu64
      ",%" SCNu64 " %" SCNu64 " %lf %*s %*s %" SCNx64 " %*s%n",
      line->name, line->kind, &line->first, &line->end, &line->inputs,
      &line->wrong[0], &line->wrong[1], &line->wrong[2], &line->exact,
      &line->seconds, &line->printed, &used);
  if (fields != 11 || used == 0) return false;
  const char *worst = strstr(text + used, "worst=");
  if (worst) sscanf(worst, "worst=%lf", &line->worst);
  return true;
}

void log_each(const char *path, void (*each)(void *self, const log_line *line),
              void *self) {
  FILE *file = fopen(path, "r");
  char text[512];
  log_line line;
  while (file && fgets(text, sizeof text, file)) {
    if (text[0] != '#' && text[0] != '!' && parse(text, &line)) {
      each(self, &line);
    }
  }
  if (file) fclose(file);
}

typedef struct search {
  const log_line *wanted;
  bool found;
} search;

static void compare(void *self, const log_line *line) {
  search *s = self;
  if (line->printed == s->wanted->printed && line->first == s->wanted->first &&
      line->end == s->wanted->end && strcmp(line->name, s->wanted->name) == 0 &&
      strcmp(line->kind, s->wanted->kind) == 0) {
    s->found = true;
  }
}

bool log_has(const char *path, const log_line *wanted) {
  search s = {.wanted = wanted};
  log_each(path, compare, &s);
  return s.found;
}

bool log_append(const char *path, const log_line *line, const char *commit,
                const char *compiler, const char *failures) {
  char text[512], date[16], note[64] = "";
  time_t now = time(NULL);
  struct tm utc;
  gmtime_r(&now, &utc);
  strftime(date, sizeof date, "%Y-%m-%d", &utc);
  if (line->worst > 0.0) {
    snprintf(note, sizeof note, " worst=%.6f", line->worst);
  }
  snprintf(text, sizeof text,
           "%s %s %08" PRIx64 ":%08" PRIx64 " %" PRIu64 " %" PRIu64 ",%" PRIu64
           ",%" PRIu64 " %" PRIu64 " %.1f %s %s %016" PRIx64 " %s%s\n",
           line->name, line->kind, line->first, line->end, line->inputs,
           line->wrong[0], line->wrong[1], line->wrong[2], line->exact,
           line->seconds, date, commit, line->printed, compiler, note);
  printed_text all = {0};
  bool good = printed_append(&all, text, strlen(text));
  if (failures) good = good && printed_append(&all, failures, strlen(failures));
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0666);
  good = good && file >= 0 &&
         write(file, all.bytes, all.length) == (ssize_t)all.length;
  if (good) fputs(all.bytes, stdout);
  if (file >= 0 && close(file) != 0) good = false;
  if (!good) fprintf(stderr, "%s cannot be written\n", path);
  free(all.bytes);
  return good;
}
