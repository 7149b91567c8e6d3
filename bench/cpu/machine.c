/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the processor, the device and the peers at the head of a suite. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "rival.h"

const char cpu_peer_missing[] =
    "its shared object is missing (`make bench` compiles it)";

static void processor(char *name, size_t room) {
  char line[512];
  (void)snprintf(name, room, "a processor without a name");
  FILE *file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    (void)snprintf(name, room, "%.*s", (int)strcspn(colon + 2, "\n"),
                   colon + 2);
    break;
  }
  if (file) (void)fclose(file);
}

/* Returns the number of runnable processes, averaged over the last minute. */
static double load_average(void) {
  double load = 0;
  FILE *file = fopen("/proc/loadavg", "r");
  if (file) {
    char line[64] = "";
    if (fgets(line, sizeof line, file)) load = strtod(line, NULL);
    (void)fclose(file);
  }
  return load;
}

static void print_device(const char *device) {
  vyre_device_info info;
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    if (strcmp(info.name, device) != 0) continue;
    printf("device %s: %.80s\n", device,
           info.is_available ? info.description : info.note);
    return;
  }
  printf("device %s\n", device);
}

void cpu_machine_print(const char *suite, const char *device) {
  char name[64];
  struct utsname system;
  processor(name, sizeof name);
  if (uname(&system) != 0)
    (void)snprintf(system.release, sizeof system.release, "?");
  printf("\n%s: %s, %ld processors, Linux %.20s, vyre %s\n", suite, name,
         sysconf(_SC_NPROCESSORS_ONLN), system.release, vyre_version_string());
  double load = load_average();
  if (load >= 0.5) {
    printf(
        "other processes use this machine (load %.1f): see the best figures as "
        "well\n",
        load);
  }
  print_device(device);
}

/* Returns the length of "clang 19.1.7 (3~deb12u1)" up to the second space. */
static int short_length(const char *text) {
  const char *space = strchr(text, ' ');
  return (int)(space ? (size_t)(space - text) + 1 + strcspn(space + 1, " +")
                     : strlen(text));
}

void cpu_peers_print(void) {
  const char *why;
  const cpu_peer *gcc = cpu_peer_load("gcc"), *clang = cpu_peer_load("clang");
  cpu_opencl *cl = cpu_opencl_open("pthread", &why);
  const char *names[] = {gcc ? gcc->compiler : "no gcc",
                         clang ? clang->compiler : "no clang",
                         cl ? cpu_opencl_version(cl) : "no PoCL"};
  printf("peers: %.*s and %.*s with -O3 -march=native -fopenmp, %.*s\n",
         short_length(names[0]), names[0], short_length(names[1]), names[1],
         short_length(names[2]), names[2]);
}

void cpu_missing(const char *suite, const char *rival, const char *why) {
  printf("%s: %s: %s\n", suite, rival, why);
  bench_row_add(&(bench_result){
      .suite = suite, .name = rival, .unit = "", .peer = "", .note = why});
}
