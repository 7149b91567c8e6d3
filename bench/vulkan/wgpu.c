/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Starts peer_wgpu.py and exchanges lines of text with it through pipes. */
#include "wgpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

struct wgpu_peer {
  pid_t child;
  FILE *to, *from;
  char version[160];
};

static bool start(wgpu_peer *p, const char *python, const char *script) {
  int in[2], out[2];
  if (pipe(in) != 0) return false;
  if (pipe(out) != 0) return false;
  (void)fflush(stdout);
  p->child = fork();
  if (p->child == 0) {
    (void)dup2(in[0], 0);
    (void)dup2(out[1], 1);
    for (int i = 0; i < 2; i++) (void)close(in[i]), (void)close(out[i]);
    /* Hides warnings about a missing display. */
    int null_device = open("/dev/null", O_WRONLY);
    if (null_device >= 0) (void)dup2(null_device, 2);
    (void)execl(python, python, script, (char *)NULL);
    _exit(127);
  }
  (void)close(in[0]);
  (void)close(out[1]);
  p->to = fdopen(in[1], "w");
  p->from = fdopen(out[0], "r");
  return p->child > 0 && p->to && p->from;
}

/* Reads a line of the answer. Returns false at the end of the stream. */
static bool read_line(wgpu_peer *p, char *line, size_t size) {
  if (!p->from || !fgets(line, (int)size, p->from)) return false;
  line[strcspn(line, "\n")] = 0;
  return true;
}

wgpu_peer *wgpu_start(const char **reason) {
  char python[1024], line[160];
  static char text[160];
  *reason = "its Python package is missing (make bench tries to install it)";
  (void)snprintf(python, sizeof python, "%s/vulkan/wgpu/bin/python",
                 VYRE_BENCH_PEERS);
  if (access(python, X_OK) != 0) return NULL;
  wgpu_peer *p = calloc(1, sizeof *p);
  if (!p) bench_fail("wgpu", "out of memory");
  *reason = "the process does not start";
  if (start(p, python, VYRE_BENCH "/vulkan/peer_wgpu.py") &&
      read_line(p, line, sizeof line)) {
    if (strncmp(line, "ready ", 6) == 0) {
      (void)snprintf(p->version, sizeof p->version, "%s", line + 6);
      return p;
    }
    (void)snprintf(text, sizeof text, "%s", line);
    *reason = text;
  }
  wgpu_stop(p);
  return NULL;
}

void wgpu_stop(wgpu_peer *p) {
  if (!p) return;
  if (p->to) (void)fclose(p->to);
  if (p->from) (void)fclose(p->from);
  if (p->child > 0) (void)waitpid(p->child, NULL, 0);
  free(p);
}

const char *wgpu_version(const wgpu_peer *p) {
  return p->version;
}

static double request(wgpu_peer *p, const char *command, int count) {
  char line[160];
  if (fprintf(p->to, "%s %d\n", command, count) < 0 || fflush(p->to) != 0 ||
      !read_line(p, line, sizeof line))
    bench_fail("wgpu", "does not answer");
  return strtod(line, NULL);
}

double wgpu_each(wgpu_peer *p, int count) {
  return request(p, "each", count);
}

double wgpu_batch(wgpu_peer *p, int count) {
  return request(p, "batch", count);
}
