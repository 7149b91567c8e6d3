/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cli/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/output.h"

#define SECOND_NS ((uint64_t)1000000000)

enum {
  LOOK_NS = 100000000,
  LINES_S = 15,
  CELLS = 24,
  LINE = 160,
  WAIT_MS = 200 /* signals that arrive while a bar is drawn */
};

/* State shared with the signal handler: a bar is on the line; the thread is
 * drawing; a signal ends the process, so that nothing more is drawn. */
static atomic_bool is_drawn, is_drawing, is_ending;

/* --- signals --------------------------------------------------------------------*/

static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDS = sizeof ends / sizeof ends[0] };
static struct sigaction before[ENDS];

/* SA_RESETHAND and SA_NODEFER make the signal take its default effect when
 * it is raised again, so that the parent sees which signal ended the
 * process. */
static void end_line(int number) {
  const struct timespec ms = {.tv_nsec = 1000000};
  atomic_store(&is_ending, true);
  for (int i = 0; i < WAIT_MS && atomic_load(&is_drawing); i++) {
    (void)nanosleep(&ms, NULL);
  }
  if (atomic_load(&is_drawn)) (void)!write(STDERR_FILENO, "\n", 1);
  (void)raise(number);
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = end_line,
                             .sa_flags = SA_RESETHAND | SA_NODEFER};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < ENDS; i++) {
    (void)sigaction(ends[i], NULL, &before[i]);
    /* A signal that is ignored, as under nohup, stays ignored. */
    if (before[i].sa_handler == SIG_DFL) {
      (void)sigaction(ends[i], &action, NULL);
    }
  }
}

static void release_signals(void) {
  for (size_t i = 0; i < ENDS; i++) {
    if (before[i].sa_handler == SIG_DFL) {
      (void)sigaction(ends[i], &before[i], NULL);
    }
  }
}

/* --- the line -------------------------------------------------------------------*/

/* A terminal wraps longer lines, and a wrapped line cannot be erased. */
static int width_of_terminal(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

/* Writes the bar into @p line. Returns its length; 0 while the total is
 * unknown. */
static int format_bar(const progress_bar *bar, unsigned long long seconds,
                      char line[LINE]) {
  uint64_t done, all;
  char cells[CELLS + 1];
  vyre_progress_read(&bar->progress, &done, &all);
  if (all == 0) return 0;
  double part = (double)done / (double)all;
  int full = (int)(part * CELLS);
  for (int i = 0; i < CELLS; i++) cells[i] = i < full ? '#' : '.';
  cells[CELLS] = '\0';
  int length = snprintf(line, LINE, "[%s] %3d %%  %llu of %llu %s, %llu s",
                        cells, (int)(part * 100), (unsigned long long)done,
                        (unsigned long long)all, bar->unit, seconds);
  int space = width_of_terminal() - 1;
  if (length >= LINE) length = LINE - 1;
  return length < space ? length : space < 0 ? 0 : space;
}

static void erase(void) {
  if (atomic_load(&is_drawn)) write_all(STDERR_FILENO, "\r\033[K", 4);
  atomic_store(&is_drawn, false);
}

static void draw(const progress_bar *bar, unsigned long long seconds) {
  char line[LINE];
  int length = format_bar(bar, seconds, line);
  if (length == 0) return;
  atomic_store(&is_drawing, true);
  if (!atomic_load(&is_ending)) {
    erase();
    atomic_store(&is_drawn, true);
    write_all(STDERR_FILENO, line, (size_t)length);
  }
  atomic_store(&is_drawing, false);
}

static void print_line(const progress_bar *bar, unsigned long long seconds) {
  char line[LINE];
  uint64_t done, all;
  vyre_progress_read(&bar->progress, &done, &all);
  if (all == 0) return;
  int length = snprintf(line, LINE, "%s: %llu of %llu %s, %llu s\n", bar->lines,
                        (unsigned long long)done, (unsigned long long)all,
                        bar->unit, seconds);
  if (length > 0 && length < LINE) {
    write_all(STDERR_FILENO, line, (size_t)length);
  }
}

/* --- the thread -----------------------------------------------------------------*/

static struct timespec later(struct timespec from, uint64_t ns) {
  ns += (uint64_t)from.tv_nsec;
  from.tv_sec += (time_t)(ns / SECOND_NS);
  from.tv_nsec = (long)(ns % SECOND_NS);
  return from;
}

static void *watch(void *self) {
  progress_bar *bar = self;
  struct timespec start, next;
  clock_gettime(CLOCK_MONOTONIC, &start);
  uint64_t pause = bar->is_terminal ? LOOK_NS : LINES_S * SECOND_NS;
  next = later(start, bar->is_terminal ? SECOND_NS : pause);
  pthread_mutex_lock(&bar->lock);
  while (!bar->is_over) {
    if (pthread_cond_timedwait(&bar->over, &bar->lock, &next) != ETIMEDOUT) {
      continue;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long long seconds =
        (unsigned long long)(now.tv_sec - start.tv_sec);
    if (bar->is_terminal) {
      draw(bar, seconds);
    } else {
      print_line(bar, seconds);
    }
    next = later(now, pause);
  }
  erase();
  pthread_mutex_unlock(&bar->lock);
  return NULL;
}

/* Without a thread there is just no bar. */
void progress_begin(progress_bar *bar, const char *unit, const char *lines) {
  pthread_condattr_t attributes;
  sigset_t all, blocked;
  *bar = (progress_bar){
      .unit = unit, .lines = lines, .is_terminal = isatty(STDERR_FILENO)};
  if (!bar->is_terminal && !lines) return;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&bar->over, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&bar->lock, NULL);
  catch_signals();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &blocked);
  bar->is_there = pthread_create(&bar->thread, NULL, watch, bar) == 0;
  pthread_sigmask(SIG_SETMASK, &blocked, NULL);
  if (bar->is_there) return;
  release_signals();
  pthread_cond_destroy(&bar->over);
  pthread_mutex_destroy(&bar->lock);
}

void progress_set(progress_bar *bar, uint64_t done, uint64_t all) {
  __atomic_store_n(&bar->progress.completed, done, __ATOMIC_RELEASE);
  __atomic_store_n(&bar->progress.total, all, __ATOMIC_RELEASE);
}

void progress_hide(progress_bar *bar) {
  if (!bar->is_there) return;
  pthread_mutex_lock(&bar->lock);
  erase();
  pthread_mutex_unlock(&bar->lock);
}

void progress_end(progress_bar *bar) {
  if (!bar->is_there) return;
  pthread_mutex_lock(&bar->lock);
  bar->is_over = true;
  pthread_cond_signal(&bar->over);
  pthread_mutex_unlock(&bar->lock);
  pthread_join(bar->thread, NULL);
  pthread_cond_destroy(&bar->over);
  pthread_mutex_destroy(&bar->lock);
  release_signals();
  bar->is_there = false;
}
