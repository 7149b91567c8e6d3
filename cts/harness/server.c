/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Server: forks a process for each case. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cts/harness/runner.h"

/* Moves the socket away from standard input. Cases then read an empty input,
 * and neither they nor their children can reach the runner. */
static int take_line(void) {
  int type = 0;
  socklen_t size = sizeof type;
  if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
      type != SOCK_SEQPACKET) {
    return -1;
  }
  int line = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  int nothing = open("/dev/null", O_RDONLY);
  if (line < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) return -1;
  close(nothing);
  return line;
}

/* Errors are ignored here: every case meets the same error and reports it. */
static void preload(const char *backend) {
  vyre_context *context;
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  if (vyre_context_create(&options, &context, NULL) != VYRE_OK) return;
  (void)!vyre_device_preload(context, backend, NULL);
  vyre_context_release(context);
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits for a process until its timeout, then kills its process group, so that
 * no child of a case survives it. */
static cts_ending wait_for(pid_t pid, unsigned timeout_s,
                           const sigset_t *child_ends) {
  cts_ending ending = {.status = 0};
  uint64_t deadline = now_ns() + timeout_s * UINT64_C(1000000000);
  for (;;) {
    siginfo_t info = {.si_pid = 0};
    int error = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
    if (error == 0 && info.si_pid == pid) break;
    uint64_t now = now_ns();
    ending.is_hung = now >= deadline;
    if (ending.is_hung) break;
    struct timespec rest = {(time_t)((deadline - now) / 1000000000u),
                            (long)((deadline - now) % 1000000000u)};
    (void)sigtimedwait(child_ends, NULL, &rest);
  }
  kill(-pid, SIGKILL);
  kill(pid, SIGKILL);
  while (waitpid(pid, &ending.status, 0) < 0 && errno == EINTR) {
  }
  return ending;
}

/* The process must exit with its parent. */
static bool end_with(pid_t parent) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

int cts_serve(const cts_suite *suite, const char *backend, uint64_t seed) {
  cts_order order;
  sigset_t child_ends, before;
  int line = take_line();
  if (line < 0 || !end_with(getppid())) {
    printf("case '" CTS_SERVE "' is for vyre conform itself; name a case\n");
    return CTS_EXIT_FAILED;
  }
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ends, &before);
  preload(backend);
  while (recv(line, &order, sizeof order, 0) == (ssize_t)sizeof order) {
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
      close(line);
      sigprocmask(SIG_SETMASK, &before, NULL);
      if (setpgid(0, 0) != 0 || !end_with(self)) _exit(CTS_EXIT_FAILED);
      /* Exits like main(), so that leak checkers run. */
      exit(cts_run_case(suite, backend, order.name, seed));
    }
    cts_ending ending = {.is_no_fork = true};
    if (pid > 0) ending = wait_for(pid, order.timeout_s, &child_ends);
    if (send(line, &ending, sizeof ending, MSG_NOSIGNAL) < 0) break;
  }
  close(line);
  return 0;
}
