/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fixtures for tests of packages: contexts without cache, and packages in
 * memory. */
#ifndef VYRE_RUNTIME_PACKAGE_PACKAGE_TESTING_H
#define VYRE_RUNTIME_PACKAGE_PACKAGE_TESTING_H

#include <stdlib.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

/* Opens a device with backend options, in a context of its own without cache. */
static inline vyre_code open_with(const char *name, const char *options,
                                  vyre_context **context, vyre_device **device,
                                  vyre_status *st) {
  const vyre_context_options with = {.cache_directory = "",
                                     .trace_file = "",
                                     .faults = "",
                                     .backend_options = options};
  CHECK_OK(vyre_context_create(&with, context, st), *st);
  vyre_code code = vyre_device_open(*context, name, device, st);
  if (code == VYRE_OK) return code;
  vyre_context_release(*context);
  *context = NULL;
  return code;
}

/* Writes a package of @p count programs. The caller frees `bytes`. */
static inline growing_text write_package(vyre_program *const *programs,
                                         size_t count,
                                         const vyre_package_options *options) {
  growing_text text = {0};
  vyre_status st = {0};
  CHECK_OK(vyre_package_write(NULL, programs, count, options,
                              (vyre_writer){growing_append, &text}, &st),
           st);
  return text;
}

static inline vyre_package *open_bytes(const growing_text *text) {
  vyre_package *package;
  vyre_status st = {0};
  CHECK_OK(vyre_package_open(text->bytes, text->length, vyre_allocator_heap(),
                             &package, &st),
           st);
  return package;
}

#endif
