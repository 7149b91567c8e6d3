/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Hand-written Vulkan as an expert would write it, as a peer for the
 * benchmarks. It calls device functions without the loader, keeps host-visible
 * memory mapped, creates descriptor sets once, and uses one submission and one
 * fence per list.
 *
 * No Vulkan type appears here, so that the suites build without Vulkan headers;
 * raw_open then reports that they are missing. Every other failure ends the
 * program. */
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

/* Opens the loader, an instance, the device that vyre uses and its queue. @p
 * index counts the devices that have a compute queue. Returns NULL on failure
 * and sets *reason. */
raw *raw_open(uint32_t index, const char **reason);
void raw_close(raw *r); /* accepts NULL */
const char *raw_name(const raw *r);
const char *raw_driver(const raw *r);
bool raw_is_software(const raw *r); /* the device is a CPU */

/* Creates a pipeline from build/peers/vulkan/NAME.spv with @p buffers storage
 * buffers, bound from 0 on, and @p words words of push constants. Returns NULL
 * if the file does not exist. */
raw_kernel *raw_kernel_create(raw *r, const char *name, uint32_t buffers,
                              uint32_t words);
void raw_kernel_free(raw_kernel *k); /* accepts NULL */

raw_buffer *raw_buffer_create(raw *r, size_t size);
void raw_buffer_free(raw_buffer *b);         /* accepts NULL */
void *raw_buffer_bytes(const raw_buffer *b); /* mapped memory of the buffer */

/* A range of a buffer; size 0: to its end. */
typedef struct raw_range {
  raw_buffer *buffer;
  size_t offset, size;
} raw_range;

raw_set *raw_set_create(raw_kernel *k, const raw_range *ranges);
void raw_set_free(raw_set *s); /* accepts NULL */

typedef struct raw_dispatch {
  const raw_kernel *kernel;
  const raw_set *set;
  uint32_t words[RAW_WORDS];
  uint32_t grid[3];
  bool waits; /* a barrier precedes this dispatch */
} raw_dispatch;

/* A command buffer, which can be run many times. When raw_run returns, the host
 * sees all results. */
raw_list *raw_list_create(raw *r);
void raw_list_free(raw_list *l); /* accepts NULL */
void raw_record(raw_list *l, const raw_dispatch *items, size_t count);
void raw_run(raw_list *l);

#endif
