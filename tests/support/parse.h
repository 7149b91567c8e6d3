/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Modules from text, for tests. */
#ifndef VYRE_TESTS_PARSE_H
#define VYRE_TESTS_PARSE_H

#include "vyre/module.h"

#include "support/check.h"

/* Parses a text. Prints it and fails the case if it is not valid. */
static inline vyre_module *parse_module(const char *source) {
  vyre_module *module = NULL;
  vyre_status st = {0};
  vyre_code code = vyre_module_parse(source, strlen(source), "test.vyre",
                                     (vyre_allocator){0}, &module, NULL, &st);
  if (code != VYRE_OK) {
    printf("    %s\n    Fix: %s\n%s\n", st.message, st.fix, source);
    test_fail(__FILE__, __LINE__);
  }
  return module;
}

#endif
