/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "driver/driver.h"

enum { MOST_THREADS = 1024 };

/* A plain number; UINT32_MAX for what is none. */
static uint32_t number_of(const char *text) {
  uint32_t number = 0;
  if (!text || !text[0]) return 0;
  for (; *text; text++) {
    if (*text < '0' || *text > '9' || number > 99999) return UINT32_MAX;
    number = number * 10 + (uint32_t)(*text - '0');
  }
  return number;
}

static bool is_width(uint32_t width) {
  return width <= 1 || width == 4 || width == 8 || width == 16 || width == 32;
}

/* @p text is the environment's, if the options have 0. */
static vyre_code wrong(const char *field, const char *variable, uint32_t given,
                       const char *text, vyre_status *st) {
  char shown[64];
  if (given) {
    (void)snprintf(shown, sizeof shown, "%s is %u", field, (unsigned)given);
  } else {
    (void)snprintf(shown, sizeof shown, "%s is '%.30s'", variable, text);
  }
  return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                        field, VYRE_NUMBERS({"most_threads", MOST_THREADS}),
                        "use up to 1024 threads, and a width of 1, 4, 8, 16 or "
                        "32; 0 leaves it to "
                        "the device",
                        "%s, which cannot be", shown);
}

vyre_code vyre__host_options(vyre_context *context,
                             const vyre_context_options *options,
                             const vyre__host_environment *environment,
                             vyre_status *st) {
  uint32_t threads = options->threads, width = options->width;
  if (threads == 0) threads = number_of(environment->threads);
  if (width == 0) width = number_of(environment->width);
  if (threads > MOST_THREADS) {
    return wrong("threads", "VYRE_THREADS", options->threads,
                 environment->threads, st);
  }
  if (!is_width(width)) {
    return wrong("width", "VYRE_WIDTH", options->width, environment->width, st);
  }
  const char *llvm = options->llvm ? options->llvm : environment->llvm;
  if (!llvm) llvm = "";
  if (strlen(llvm) >= sizeof context->llvm) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "llvm",
        VYRE_NUMBERS({"bytes", strlen(llvm)},
                     {"most_bytes", sizeof context->llvm - 1}),
        "use a shorter name of the library",
        "the name of a file of LLVM has %zu bytes, and may have %zu",
        strlen(llvm), sizeof context->llvm - 1);
  }
  (void)snprintf(context->llvm, sizeof context->llvm, "%s", llvm);
  context->threads = threads;
  context->width = width;
  return VYRE_OK;
}
