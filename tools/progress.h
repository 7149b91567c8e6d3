/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A bar on standard error for what takes longer than a second, if people look at it:
 *
 *     [########............]  41 %  8396 of 20480 workgroups, 3 s
 *
 * Gone when the work is over. */
#ifndef VYRE_TOOLS_PROGRESS_H
#define VYRE_TOOLS_PROGRESS_H

#include <pthread.h>

#include "vyre/dispatch.h"

typedef struct progress_bar {
  vyre_progress progress; /* for the dispatch */
  pthread_t thread;
  pthread_mutex_t lock; /* of all below, and of the line */
  pthread_cond_t over;
  bool is_there; /* a terminal, and a thread that looks */
  bool is_over, is_drawn;
} progress_bar;

void progress_begin(progress_bar *bar);
/* Makes room for a line of others, until the next look. */
void progress_hide(progress_bar *bar);
/* Erases it. */
void progress_end(progress_bar *bar);

#endif
