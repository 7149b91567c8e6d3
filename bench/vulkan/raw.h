/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Vulkan by hand, as who knows it writes it: functions of the device without the
 * loader between, memory that the host sees and keeps mapped, descriptor sets made
 * once, one submission and one fence a piece of work.
 *
 * Nothing of Vulkan is named here, so that the suites build where its headers are
 * not there; raw_open then says so. All else ends the program if it fails. */
#ifndef VYRE_BENCH_VULKAN_RAW_H
#define VYRE_BENCH_VULKAN_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RAW_BUFFERS = 6, RAW_WORDS = 8 };

typedef struct raw raw;
typedef struct raw_kernel raw_kernel;
typedef struct raw_buffer raw_buffer;
typedef struct raw_set raw_set;
typedef struct raw_list raw_list;

/* Loader, instance, the device that vyre takes (`index` among those with a queue
 * that computes), queue. NULL if there is none; *why then says what is missing. */
raw *raw_open(uint32_t index, const char **why);
void raw_close(raw *r); /* NULL is fine */
const char *raw_name(const raw *r);
const char *raw_driver(const raw *r);
bool raw_is_software(const raw *r); /* a processor, not a card */

/* build/peers/vulkan/NAME.spv: a pipeline for so many storage buffers, bound from 0
 * on, and words of push constants. NULL if the file is not there. */
raw_kernel *raw_kernel_make(raw *r, const char *name, uint32_t buffers,
                            uint32_t words);
void raw_kernel_free(raw_kernel *k); /* NULL is fine */

raw_buffer *raw_buffer_make(raw *r, size_t size);
void raw_buffer_free(raw_buffer *b);         /* NULL is fine */
void *raw_buffer_bytes(const raw_buffer *b); /* what the device sees */

/* A part of a buffer; size 0: up to its end. */
typedef struct raw_range {
  raw_buffer *buffer;
  size_t offset, size;
} raw_range;

raw_set *raw_set_make(raw_kernel *k, const raw_range *ranges);
void raw_set_free(raw_set *s); /* NULL is fine */

typedef struct raw_dispatch {
  const raw_kernel *kernel;
  const raw_set *set;
  uint32_t words[RAW_WORDS];
  uint32_t grid[3];
  bool waits; /* for what those before it wrote */
} raw_dispatch;

/* A command buffer. What is recorded can be run again and again; the host sees what
 * it wrote when raw_run returns. */
raw_list *raw_list_make(raw *r);
void raw_list_free(raw_list *l); /* NULL is fine */
void raw_record(raw_list *l, const raw_dispatch *items, size_t count);
void raw_run(raw_list *l);

#endif
