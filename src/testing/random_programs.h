/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares an implementation with `ref`, byte for byte, on random programs, on
 * the examples and on kernels from text.
 *
 *   VYRE_TEST_SEED=42     only this random program
 *   VYRE_TEST_FIRST=300   the first seed; VYRE_TEST_COUNT=250 their number
 *   VYRE_TEST_KEEP=dir    writes each program, and code generated for it, to
 *                         this directory
 *
 * A failed CHECK ends only the program that it is about. A failure names its
 * program; so does a crash, and a program that takes more than 300 seconds. */
#ifndef VYRE_TESTING_RANDOM_PROGRAMS_H
#define VYRE_TESTING_RANDOM_PROGRAMS_H

#include "vyre/vyre.h"

#include "support/parse.h"
#include "testing/lir_interp.h"

enum { MAX_BUFFERS = 64 };

/* --- settings ------------------------------------------------------------- */

/* Returns the value of the variable VYRE_TEST_<name>, or NULL. */
const char *test_setting(const char *name);
uint64_t test_number(const char *name, uint64_t otherwise);

typedef struct seed_range {
  uint64_t first, count;
  bool is_single; /* one program was selected, for debugging */
} seed_range;

/* Returns the selected seeds. The arguments are the default. */
seed_range test_seeds(uint64_t first, uint64_t count);

/* Creates a file for generated code in VYRE_TEST_KEEP, named after the current
 * program. Returns NULL if that is not set. */
FILE *test_keep(const char *suffix);

/* A vyre_writer function that writes to a FILE. */
bool test_write(void *file, const char *text, size_t length);

/* --- one program ---------------------------------------------------------- */

/* A program, its data, and the results of `ref`. */
typedef struct job {
  const char *name;
  vyre_program *program;
  vyre_input inputs[MAX_BUFFERS];
  vyre_output outputs[MAX_BUFFERS]; /* sizes; after run_ref also the results */
  size_t input_count, output_count;
  uint32_t grid[3];
  uint32_t workgroup[3]; /* 0 on x: as in the program */
  uint64_t seed;         /* of a random program, or of the data */
  uint8_t poison;        /* initial value of memory */
  vyre_pipeline *pipeline;
} job;

/* Creates data for j->program in the arena. Buffers without a length get
 * @p length elements. Returns the binding plan. */
vyre_binding_plan job_of_kernel(job *j, size_t length, uint64_t seed,
                                vyre_arena *arena);

/* Compiles and runs the program on ref. The outputs live until job_deinit. */
void run_ref(job *j);
void job_deinit(job *j);

/* Fills memory with small numbers, which are useful as indices and loop
 * bounds. */
void fill(void *data, size_t size, vyre_element element, uint64_t *seed);

/* Allocates the buffers of the program with their initial contents; with a
 * kernel, also its spill buffer. */
void bind_all(const job *j, const vyre__lir_kernel *kernel,
              vyre__lir_binding out[MAX_BUFFERS]);
void unbind_all(vyre__lir_binding bound[MAX_BUFFERS]);

/* Sets the text that failures and crashes print after the program's name. */
void set_variant(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Check that the outputs are those of ref. Print the first difference. */
bool same_outputs(const job *j, const vyre_output *got);
bool same_buffers(const job *j, const vyre__lir_binding *got);

/* Prints the program and the variant, unless @p good. Returns 1 or 0. */
unsigned count_failure(bool good);

/* --- many programs -------------------------------------------------------- */

typedef struct program_test {
  /* Runs the program in all variants. Returns the number that failed. */
  unsigned (*check)(job *j, void *self);
  void *self;
  bool skips_ref; /* the check needs no results */
  /* Random programs: */
  vyre_random_program_options (*options)(uint64_t seed, void *self);
  uint64_t first, count; /* unless the environment selects others */
  /* Kernels from text: */
  size_t length; /* of buffers without a length */
  const uint32_t *workgroup;
} program_test;

/* These return the number of failures. */
unsigned check_random_program(const program_test *test,
                              vyre_random_program_options options);
unsigned check_random_programs(const program_test *test);
unsigned check_kernel(const program_test *test, vyre_program *program,
                      const char *name);
unsigned check_text(const program_test *test, const char *text,
                    const char *name); /* all of its kernels */
unsigned check_examples(const program_test *test);

/* Calls a function for each kernel of a text, or of examples/, and adds its
 * results up. */
typedef unsigned kernel_function(vyre_program *kernel, const char *name,
                                 void *self);
unsigned each_kernel(const char *text, size_t length, const char *name,
                     kernel_function *function, void *self);
unsigned each_example(kernel_function *function, void *self);

#endif
