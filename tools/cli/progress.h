/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Progress of work that takes longer than a second, on standard error. A terminal
 * gets a bar, which is erased when the work ends:
 *
 *     [########............]  41 %  8396 of 20480 workgroups, 3 s
 *
 * Anything else gets, if it was asked for, a line from time to time, without
 * control characters:
 *
 *     conform: 412 of 1058 cases, 30 s
 */
#ifndef VYRE_TOOLS_CLI_PROGRESS_H
#define VYRE_TOOLS_CLI_PROGRESS_H

#include <pthread.h>

#include "vyre/dispatch.h"

typedef struct progress_bar {
  vyre_progress progress; /* written by the dispatch or by progress_set */
  const char *unit;       /* "workgroups" */
  const char *lines;      /* prefix of plain lines; NULL: bar only */
  pthread_t thread;
  pthread_mutex_t lock; /* guards the fields below and the line */
  pthread_cond_t over;
  bool is_there; /* thread that draws */
  bool is_terminal;
  bool is_over;
} progress_bar;

/* Starts to show bar->progress. Only one bar may be active. While it is, a
 * signal that ends the process terminates the line first. */
void progress_begin(progress_bar *bar, const char *unit, const char *lines);
/* Sets the progress, if no dispatch does. */
void progress_set(progress_bar *bar, uint64_t done, uint64_t all);
/* Erases the bar until the next update, so that a line can be printed. */
void progress_hide(progress_bar *bar);
/* Stops the thread and erases the bar. */
void progress_end(progress_bar *bar);

#endif
