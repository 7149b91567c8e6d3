/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "progress.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "output.h"

enum { PATIENCE_NS = 1000000000, LOOK_NS = 100000000, CELLS = 24, LINE = 160 };

/* Longer lines would be broken by the terminal, and could not be erased. */
static int width_of_terminal(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

/* Bytes of the line; none as long as it is not known how much there is. */
static int spell(const progress_bar *bar, long seconds, char line[LINE]) {
  uint64_t done, all;
  char cells[CELLS + 1];
  vyre_progress_read(&bar->progress, &done, &all);
  if (all == 0) return 0;
  double part = (double)done / (double)all;
  int full = (int)(part * CELLS);
  for (int i = 0; i < CELLS; i++) cells[i] = i < full ? '#' : '.';
  cells[CELLS] = '\0';
  int length =
      snprintf(line, LINE, "[%s] %3d %%  %llu of %llu workgroups, %ld s", cells,
               (int)(part * 100), (unsigned long long)done,
               (unsigned long long)all, seconds);
  int room = width_of_terminal() - 1;
  if (length >= LINE) length = LINE - 1;
  return length < room ? length : room < 0 ? 0 : room;
}

static void erase(progress_bar *bar) {
  if (bar->is_drawn) write_all(STDERR_FILENO, "\r\033[K", 4);
  bar->is_drawn = false;
}

static void draw(progress_bar *bar, long seconds) {
  char line[LINE];
  int length = spell(bar, seconds, line);
  if (length == 0) return;
  erase(bar);
  bar->is_drawn = write_all(STDERR_FILENO, line, (size_t)length);
}

static struct timespec later(struct timespec from, long ns) {
  from.tv_nsec += ns % 1000000000;
  from.tv_sec += ns / 1000000000 + from.tv_nsec / 1000000000;
  from.tv_nsec %= 1000000000;
  return from;
}

static void *watch(void *self) {
  progress_bar *bar = self;
  struct timespec start, next;
  clock_gettime(CLOCK_MONOTONIC, &start);
  next = later(start, PATIENCE_NS);
  pthread_mutex_lock(&bar->lock);
  while (!bar->is_over) {
    if (pthread_cond_timedwait(&bar->over, &bar->lock, &next) != ETIMEDOUT) {
      continue;
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    draw(bar, (long)(now.tv_sec - start.tv_sec));
    next = later(now, LOOK_NS);
  }
  erase(bar);
  pthread_mutex_unlock(&bar->lock);
  return NULL;
}

/* Without a thread there is no bar, which is no failure. */
void progress_begin(progress_bar *bar) {
  pthread_condattr_t attributes;
  sigset_t all, before;
  *bar = (progress_bar){0};
  if (!isatty(STDERR_FILENO)) return;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&bar->over, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&bar->lock, NULL);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bar->is_there = pthread_create(&bar->thread, NULL, watch, bar) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_hide(progress_bar *bar) {
  if (!bar->is_there) return;
  pthread_mutex_lock(&bar->lock);
  erase(bar);
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
}
