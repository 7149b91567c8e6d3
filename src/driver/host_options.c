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

vyre_code vyre__host_options(vyre_context *context,
                             const vyre_context_options *options,
                             const vyre__host_environment *environment,
                             vyre_status *st) {
  uint32_t threads = options->threads, width = options->width;
  if (threads == 0) threads = number_of(environment->threads);
  if (width == 0) width = number_of(environment->width);
  if (threads > MOST_THREADS) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "threads",
        VYRE_NUMBERS({"most_threads", MOST_THREADS}),
        "set threads, or VYRE_THREADS, to a number from 1 to 1024, or to 0",
        "%s threads cannot be: there are at most %d",
        options->threads ? "so many" : "VYRE_THREADS says how many, and those",
        MOST_THREADS);
  }
  if (!is_width(width)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "width", NULL,
        "set width, or VYRE_WIDTH, to 1, 4, 8, 16 or 32, or to 0",
        "there are no vectors of the width that %s",
        options->width ? "the options ask for" : "VYRE_WIDTH asks for");
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
