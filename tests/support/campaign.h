/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For campaigns: a random program, what ref makes of it, and whether others make the
 * same of it. A crash, and a program that takes longer than CAMPAIGN_SECONDS, says
 * which one it was. */
#ifndef VYRE_TESTS_CAMPAIGN_H
#define VYRE_TESTS_CAMPAIGN_H

#include <signal.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/seeds.h"

enum { CAMPAIGN_SECONDS = 300, CAMPAIGN_BUFFERS = 64 };

/* --- the current program
 * ---------------------------------------------------------- */

/* The program that runs now, so that a crash can be reproduced. */
static struct {
  const char *name; /* of the variables: VYRE_CPU */
  volatile unsigned long long seed;
  char how[64];
} campaign_now;

static const int campaign_signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
                                       SIGABRT, SIGTRAP, SIGALRM};
enum { CAMPAIGN_SIGNALS = sizeof campaign_signals / sizeof *campaign_signals };
static struct sigaction campaign_before[CAMPAIGN_SIGNALS];

static inline size_t campaign_put_number(char *to, unsigned long long value) {
  char digits[24];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value);
  for (size_t i = 0; i < count; i++) to[i] = digits[count - 1 - i];
  return count;
}

static inline size_t campaign_put_text(char *to, const char *text) {
  size_t length = 0;
  for (; text[length]; length++) to[length] = text[length];
  return length;
}

/* Then runs the previous handler of this signal. */
static inline void campaign_tell(int number) {
  char line[160];
  size_t at = campaign_put_text(line, "    signal ");
  at += campaign_put_number(line + at, (unsigned)number);
  at += campaign_put_text(line + at, " at ");
  at += campaign_put_text(line + at, campaign_now.name);
  at += campaign_put_text(line + at, "_SEED=");
  at += campaign_put_number(line + at, campaign_now.seed);
  at += campaign_put_text(line + at, ", ");
  at += campaign_put_text(line + at, campaign_now.how);
  at += campaign_put_text(line + at, "\n");
  (void)!write(STDOUT_FILENO, line, at);
  for (int i = 0; i < CAMPAIGN_SIGNALS; i++) {
    if (campaign_signals[i] == number) {
      (void)sigaction(number, &campaign_before[i], NULL);
    }
  }
  if (number == SIGALRM) (void)raise(SIGALRM);
}

static inline void campaign_begin(const char *name) {
  setvbuf(stdout, NULL, _IOLBF, 0); /* a run is long; show its progress */
  campaign_now.name = name;
  struct sigaction action = {.sa_handler = campaign_tell,
                             .sa_flags = SA_ONSTACK};
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < CAMPAIGN_SIGNALS; i++) {
    CHECK(sigaction(campaign_signals[i], &action, &campaign_before[i]) == 0);
  }
}

/* Restores the previous handlers. */
static inline void campaign_end(void) {
  (void)alarm(0);
  for (int i = 0; i < CAMPAIGN_SIGNALS; i++) {
    CHECK(sigaction(campaign_signals[i], &campaign_before[i], NULL) == 0);
  }
}

/* --- one program ------------------------------------------------------------------*/

typedef struct trial {
  vyre_random_program *made;
  vyre_program *program;
  vyre_dispatch_desc desc;            /* the caller sets its outputs */
  vyre_output want[CAMPAIGN_BUFFERS]; /* what ref gave */
} trial;

static inline void trial_run_ref(trial *t, vyre_device *ref) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  vyre_dispatch_desc desc = t->desc;
  desc.outputs = t->want;
  CHECK_OK(vyre_pipeline_compile(ref, t->program, NULL, &pipeline, NULL, &st),
           st);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  vyre_pipeline_release(pipeline);
}

static inline void trial_begin(trial *t, vyre_random_program_options options,
                               vyre_device *ref) {
  vyre_status st = {0};
  *t = (trial){.made = NULL};
  campaign_now.seed = options.seed;
  (void)snprintf(campaign_now.how, sizeof campaign_now.how, "ref");
  (void)alarm(CAMPAIGN_SECONDS);
  CHECK_OK(
      vyre_random_program_create(&options, (vyre_allocator){0}, &t->made, &st),
      st);
  t->program = vyre_random_program_program(t->made);
  t->desc.inputs = vyre_random_program_inputs(t->made, &t->desc.input_count);
  const vyre_output *sizes =
      vyre_random_program_outputs(t->made, &t->desc.output_count);
  CHECK(t->desc.output_count <= CAMPAIGN_BUFFERS);
  for (size_t i = 0; i < t->desc.output_count; i++) {
    t->want[i] = vyre_output_bytes(calloc(1, sizes[i].size + 1), sizes[i].size);
    CHECK(t->want[i].data);
  }
  memcpy(t->desc.grid, vyre_random_program_grid(t->made), sizeof t->desc.grid);
  trial_run_ref(t, ref);
}

static inline void trial_end(trial *t) {
  for (size_t i = 0; i < t->desc.output_count; i++) free(t->want[i].data);
  vyre_random_program_release(t->made);
}

/* Checks that the pipeline gave the same bytes as ref. Prints the first
 * difference. */
static inline bool trial_is_same(const trial *t, const vyre_pipeline *pipeline,
                                 const vyre_output *got) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    const unsigned char *g = got[b->output_index].data;
    const unsigned char *w = t->want[b->output_index].data;
    size_t size = t->want[b->output_index].size, at = 0;
    size_t unit = b->element_size ? b->element_size : 1;
    if (size == 0 || memcmp(g, w, size) == 0) continue;
    while (g[at] == w[at]) at++;
    printf("    %s_SEED=%llu, %s: output '%s' differs at element %zu of %zu\n",
           campaign_now.name, campaign_now.seed, campaign_now.how, b->name,
           at / unit, size / unit);
    return false;
  }
  return true;
}

#endif
