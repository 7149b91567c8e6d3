/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels from text, for tests of what looks at programs. */
#ifndef VYRE_TESTS_ANALYSIS_H
#define VYRE_TESTS_ANALYSIS_H

#include "vyre/diagnostic.h"

#include "support/parse.h"

/* Lines 1 to 8 of most test kernels; the body begins at line 9. */
#define HEAD                          \
  "kernel k workgroup(64) over(y)\n"  \
  "buffer x : read u32[] @0;\n"       \
  "buffer y : read_write u32[] @1;\n" \
  "uniform n : u32 @2;\n"             \
  "shared tile : u32[64];\n"          \
  "{\n"                               \
  "    let i = global_id.x;\n"        \
  "    let l = local_id.x;\n"

/* HEAD, the body and the closing brace, in a static buffer. */
static inline const char *kernel_text(const char *body) {
  static char text[16384];
  snprintf(text, sizeof text, "%s%s\n}\n", HEAD, body);
  return text;
}

#endif
