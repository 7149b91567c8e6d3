/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a test under a limit:  vyre_limit SECONDS COMMAND [ARGUMENT...]
 *
 * A limit of wall time fails tests on a machine that is busy with other things: at
 * a load of 10 on two cores a test takes five times as long. So a test is ended
 * when it, with all processes that it started, has used SECONDS of processor time
 * and as many of wall time (on many cores, processor time alone goes by fast); or
 * when it has used next to none for IDLE_S: then it waits for something that does
 * not come. SECONDS are of the machine that they were chosen on: a slower one gets
 * more, by the time that a fixed piece of work takes here. A build with sanitizers
 * gets VYRE_LIMIT_FACTOR times as much, which CMake sets.
 *
 * The last line then begins with "timeout: ", and the exit code is 124. Otherwise
 * this ends as the test did, also by a signal. In both cases the processes that the
 * test has left behind are killed. */
#define _GNU_SOURCE /* NOLINT(bugprone-reserved-identifier) */
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef VYRE_LIMIT_FACTOR
#define VYRE_LIMIT_FACTOR 1
#endif

enum { MAX_PROCESSES = 16384, EXIT_TIMEOUT = 124, EXIT_NO_COMMAND = 127 };

/* Without progress this long, a test hangs: below 1 % of a core. A busy machine
 * gives a test that wants to run far more. */
static double idle_s = 180;

static const double look_s = 0.5;

/* Seconds of processor time that work() takes on the machine that limits were
 * chosen on. */
static const double reference_s = 0.017;

static double wall_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static double own_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t work(void) {
  uint64_t x = 88172645463325252u;
  for (int i = 0; i < 10000000; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

/* Returns how many times slower than the reference this machine is; at least 1. */
static double slowness(void) {
  volatile uint64_t keep = 0;
  double best = 1e9;
  for (int i = 0; i < 2; i++) {
    double start = own_s();
    keep = keep + work();
    double took = own_s() - start;
    if (took < best) best = took;
  }
  return best > reference_s ? best / reference_s : 1;
}

/* --- the processes of a test ------------------------------------------------------ */

typedef struct process {
  pid_t pid, parent;
  double used_s; /* with children that it has waited for */
  bool is_ours;
} process;

static process list[MAX_PROCESSES];
static size_t count;

/* Reads the fields behind the name, which may contain spaces and brackets. */
static bool read_process(pid_t pid, process *out) {
  char path[64], text[1024];
  unsigned long long t[4];
  int parent;
  (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file) return false;
  size_t length = fread(text, 1, sizeof text - 1, file);
  (void)fclose(file);
  text[length] = '\0';
  const char *rest = strrchr(text, ')');
  if (!rest || sscanf(rest + 1,
                      " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu "
                      "%llu %llu",
                      &parent, &t[0], &t[1], &t[2], &t[3]) != 5) {
    return false;
  }
  *out = (process){.pid = pid,
                   .parent = parent,
                   .used_s = (double)(t[0] + t[1] + t[2] + t[3]) /
                             (double)sysconf(_SC_CLK_TCK)};
  return true;
}

/* Finds all processes of the test: @p root, unless it is 0, its descendants, and
 * orphans, which become children of this process. */
static void find_processes(pid_t root) {
  pid_t self = getpid();
  DIR *folder = opendir("/proc");
  struct dirent *entry;
  count = 0;
  while (folder && (entry = readdir(folder)) && count < MAX_PROCESSES) {
    if (!isdigit((unsigned char)entry->d_name[0])) continue;
    pid_t pid = (pid_t)atoi(entry->d_name);
    if (!read_process(pid, &list[count])) continue;
    list[count].is_ours = pid == root || list[count].parent == self;
    count++;
  }
  if (folder) closedir(folder);
  for (bool found = true; found;) {
    found = false;
    for (size_t i = 0; i < count; i++) {
      for (size_t k = 0; k < count && !list[i].is_ours; k++) {
        if (list[k].is_ours && list[i].parent == list[k].pid) {
          list[i].is_ours = found = true;
        }
      }
    }
  }
}

static double used_s(pid_t root) {
  double sum = 0;
  find_processes(root);
  for (size_t i = 0; i < count; i++) {
    if (list[i].is_ours) sum += list[i].used_s;
  }
  return sum;
}

/* --- the limit -------------------------------------------------------------------- */

typedef struct watch {
  pid_t root;
  double limit_s, start_s;
  double seen_s; /* processor time at the last look */
  double sum_s;  /* of what it grew by: what is not waited for is lost */
  double mark_s, mark_sum_s; /* when it last made progress */
} watch;

/* Kills all processes of the test. Once the root is reaped, its number may belong
 * to another process. */
static void end_all(watch *w) {
  for (int i = 0; i < 10; i++) {
    bool found = false;
    find_processes(w->root);
    for (size_t k = 0; k < count; k++) {
      if (list[k].is_ours && kill(list[k].pid, SIGKILL) == 0) found = true;
    }
    for (pid_t ended; (ended = waitpid(-1, NULL, WNOHANG)) > 0;) {
      if (ended == w->root) w->root = 0;
    }
    if (!found) return;
    (void)usleep(20000);
  }
}

static void time_out(watch *w, double now) {
  if (now - w->mark_s > idle_s) {
    printf(
        "\ntimeout: no progress for %.0f s; %.1f s of processor time used in "
        "%.0f s\n",
        now - w->mark_s, w->sum_s, now - w->start_s);
  } else {
    printf(
        "\ntimeout: %.1f s of processor time used in %.0f s, and the limit is "
        "%.1f s\n",
        w->sum_s, now - w->start_s, w->limit_s);
  }
  (void)fflush(stdout);
  end_all(w);
  exit(EXIT_TIMEOUT);
}

static void look(watch *w) {
  double seen = used_s(w->root), now = wall_s();
  if (seen > w->seen_s) w->sum_s += seen - w->seen_s;
  w->seen_s = seen;
  if (w->sum_s - w->mark_sum_s > 0.01 * (now - w->mark_s)) {
    w->mark_s = now;
    w->mark_sum_s = w->sum_s;
  }
  bool is_over = w->sum_s > w->limit_s && now - w->start_s > w->limit_s;
  if (is_over || now - w->mark_s > idle_s) time_out(w, now);
}

/* Ends this process by a signal, which must not be blocked then. */
static int end_by(int number, const sigset_t *before) {
  struct rlimit none = {0};
  (void)setrlimit(RLIMIT_CORE, &none); /* the test has left its own */
  (void)signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, before, NULL);
  (void)raise(number);
  return 128 + number;
}

static int wait_for(watch *w, const sigset_t *signals, const sigset_t *before) {
  const struct timespec pause = {.tv_nsec = (long)(look_s * 1e9)};
  double next = wall_s() + look_s;
  for (;;) {
    int status;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    if (ended == w->root) {
      w->root = 0;
      end_all(w);
      return WIFSIGNALED(status) ? end_by(WTERMSIG(status), before)
                                 : WEXITSTATUS(status);
    }
    /* By the clock: orphans that end cut each pause short. */
    if (wall_s() >= next) {
      look(w);
      next = wall_s() + look_s;
    }
    if (ended > 0) continue;
    int number = sigtimedwait(signals, NULL, &pause);
    if (number > 0 && number != SIGCHLD) {
      end_all(w);
      return end_by(number, before);
    }
  }
}

int main(int argc, char **argv) {
  double limit = argc > 2 ? atof(argv[1]) : 0;
  const char *idle = getenv("VYRE_LIMIT_IDLE_S");
  sigset_t signals, before;
  if (limit <= 0) {
    (void)fprintf(stderr, "usage: vyre_limit SECONDS COMMAND [ARGUMENT...]\n");
    return 2;
  }
  if (idle && atof(idle) > 0) idle_s = atof(idle);
  (void)signal(SIGCHLD, SIG_DFL); /* if ignored, no child could be waited for */
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, &before);
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  double now = wall_s();
  watch w = {.limit_s = limit * slowness() * VYRE_LIMIT_FACTOR,
             .start_s = now,
             .mark_s = now};
  w.root = fork();
  if (w.root == 0) {
    /* ctest may end this process alone. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    _exit(EXIT_NO_COMMAND);
  }
  if (w.root < 0) {
    perror("fork");
    return 2;
  }
  return wait_for(&w, &signals, &before);
}
