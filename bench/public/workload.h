/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A workload: kernels of a public GPU suite with their data. All rivals get the
 * same one, and their results are compared with those of its twin in C. */
#ifndef VYRE_BENCH_PUBLIC_WORKLOAD_H
#define VYRE_BENCH_PUBLIC_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "peer.h"

enum { PUBLIC_UNIFORMS = 10 };

/* Comparison of a buffer with the result of the twin. */
typedef enum public_check {
  PUBLIC_INPUT,  /* not compared */
  PUBLIC_BITS,   /* the same bytes */
  PUBLIC_FLOATS, /* f32: within the tolerance of the workload */
  PUBLIC_PIXELS, /* u8: 1 % of the elements may differ by more than 1 */
  PUBLIC_SET,    /* u32: the same elements in any order */
} public_check;

typedef struct public_buffer {
  void *data;
  size_t size; /* bytes */
  public_check check;
  bool is_reset; /* restored before every run: it is changed in place */
  void *first;   /* initial contents of a buffer that is reset */
  void *want;    /* result of the twin */
} public_buffer;

typedef union public_word {
  uint32_t u;
  float f;
} public_word;

/* One launch of a kernel. */
typedef struct public_launch {
  const char *kernel; /* NULL: the first of the file */
  uint32_t grid[3];
  int buffers[PUBLIC_BUFFERS]; /* of the workload, by binding number */
  int buffer_count;            /* of the kernel */
  public_word uniforms[PUBLIC_UNIFORMS];
  int uniform_count;
  /* Argument of OpenCL, where vyre has len(); 0: none. */
  uint32_t length;
} public_launch;

typedef struct public_workload {
  const char *name; /* of the row */
  const char *file; /* NAME.vyre and NAME.cl, relative to bench/cpu */
  const char *twin; /* name of the twin in C */
  double tolerance;
  int repeat; /* launches per run of a short workload; 0 counts as 1 */
  public_buffer buffers[PUBLIC_BUFFERS];
  int buffer_count;
  int numbers[PUBLIC_NUMBERS]; /* arguments of the twin */
  public_launch *launches;
  int launch_count, launch_capacity;
} public_workload;

/* Kinds of workloads. */
typedef enum public_kind {
  PUBLIC_PORT,    /* kernel as ported from a GPU; counts in the summary */
  PUBLIC_REWRITE, /* second version, rewritten for processors */
  PUBLIC_HELD,    /* port of the held-out set */
} public_kind;

/* An entry of the list of workloads. */
typedef struct public_entry {
  const char *name, *file, *twin;
  bool has_same; /* a second twin has the algorithm of the kernel */
  public_kind kind;
  double tolerance;
  void (*make)(public_workload *w);
} public_entry;

extern const public_entry public_entries[];
extern const int public_entry_count;
extern const public_entry public_held_entries[];
extern const int public_held_count;
extern const public_entry public_held2_entries[];
extern const int public_held2_count;

void public_workload_make(public_workload *w, const public_entry *entry);
/* Keeps the initial contents of buffers that are changed in place. */
void public_workload_keep(public_workload *w);
void public_workload_free(public_workload *w);

/* Restores buffers that are changed in place, or all that are written. */
void public_workload_reset(public_workload *w);
void public_workload_clear(public_workload *w);

/* Keeps the contents of the compared buffers as the expected result. */
void public_workload_expect(public_workload *w);

/* Compares the buffers with the expected result. Returns NULL, or the first
 * difference. is_exact: every buffer must have the same bits. */
const char *public_workload_check(const public_workload *w, bool is_exact);

/* --- for the functions that make workloads ---------------------------------*/

/* Each adds a buffer and returns its memory: zeroed, or of random elements. */
void *public_add(public_workload *w, size_t size, public_check check);
void *public_add_in_place(public_workload *w, size_t size, public_check check);
float *public_add_floats(public_workload *w, size_t count, float low,
                         float high);
uint32_t *public_add_words(public_workload *w, size_t count, uint32_t below);

void public_fill_floats(float *to, size_t count, float low, float high,
                        uint64_t seed);
void public_fill_words(uint32_t *to, size_t count, uint32_t below,
                       uint64_t seed);

/* Adds a launch of @p kernel that binds @p buffers buffers: 0, 1, 2, ... of the
 * workload, unless the caller changes them. */
public_launch *public_add_launch(public_workload *w, const char *kernel,
                                 int buffers, uint32_t x, uint32_t y,
                                 uint32_t z);

/* Each appends a uniform to a launch. */
void public_add_uint(public_launch *l, uint32_t value);
void public_add_float(public_launch *l, float value);
void public_numbers(public_workload *w, int a, int b, int c);

/* Returns the workgroups of @p size that cover @p items. */
uint32_t public_groups(size_t items, uint32_t size);

#endif
