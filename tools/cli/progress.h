/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Progress of work that takes longer than a second, on standard error. A terminal
 * gets a bar, which is erased when the work is over:
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
  vyre_progress progress; /* for the dispatch, or progress_set */
  const char *unit;       /* "workgroups" */
  const char *lines;      /* what lines begin with; NULL: a bar or nothing */
  pthread_t thread;
  pthread_mutex_t lock; /* of all below, and of the line */
  pthread_cond_t over;
  bool is_there; /* a thread that looks */
  bool is_terminal;
  bool is_over;
} progress_bar;

/* Starts to look at bar->progress. At most one bar at a time. While it is there, a
 * signal that ends the process ends the line first. */
void progress_begin(progress_bar *bar, const char *unit, const char *lines);
/* Sets how much is done, if that is not left to a dispatch. */
void progress_set(progress_bar *bar, uint64_t done, uint64_t all);
/* Makes room for a line of others, until the next look. */
void progress_hide(progress_bar *bar);
/* Erases it. */
void progress_end(progress_bar *bar);

#endif
