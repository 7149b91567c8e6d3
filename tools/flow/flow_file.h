/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads flow files: descriptions of wave graphs. docs/reference/flow-files.md
 * has the grammar. */
#ifndef VYRE_TOOLS_FLOW_FLOW_FILE_H
#define VYRE_TOOLS_FLOW_FLOW_FILE_H

#include "vyre/program.h"

#include "io/read_file.h"

enum { FLOW_MAX_NAME = 63, FLOW_MAX_ITEMS = 1 << 20 };

/* Largest flow file in bytes. */
#define FLOW_LIMIT ((size_t)16 << 20)

typedef struct flow_resource {
  const char *name;
  vyre_element element;
  uint64_t count, size; /* elements, bytes */
  bool is_input, is_output, is_kept;
  const char *spec; /* data of an input; NULL: given on the command line */
  size_t at;        /* of the name in the file */
} flow_resource;

/* Argument of a wave: a range of a resource, or a constant. */
typedef struct flow_argument {
  const char *constant;  /* text of a value; NULL: a resource */
  uint32_t resource;     /* index */
  uint64_t first, count; /* elements */
  size_t at;
} flow_argument;

typedef struct flow_wave {
  const char *label, *kernel;
  const flow_argument *arguments;
  size_t argument_count;
  uint32_t grid[3]; /* zeros: computed */
  size_t at;        /* of the label, or of the kernel */
} flow_wave;

typedef struct flow_order {
  uint32_t before, after;
} flow_order;

typedef struct flow_file {
  const char *const *kernels; /* paths, relative to the flow file */
  const size_t *kernel_at;
  size_t kernel_count;
  const flow_resource *resources;
  size_t resource_count;
  const flow_wave *waves;
  size_t wave_count;
  const flow_order *orders;
  size_t order_count;
  uint64_t budget; /* bytes; 0: none */
  bool repeats;
  uint32_t flag;        /* resource */
  uint64_t flag_offset; /* bytes */
  uint64_t max_iterations;
} flow_file;

/* Reads a flow file. Everything in *out lives in @p arena. Returns false with a
 * problem that has a position. */
bool flow_file_read(const input *in, vyre_arena *arena, flow_file *out,
                    problem *wrong);

#endif
