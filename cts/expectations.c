/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What each backend cannot do, and why. An entry for a case that passes, or that
 * does not exist, is an error. */
#include <string.h>

#include "run.h"

static const struct {
  const char *backend, *list;
} lists[] = {
    {"null",
     "forms.*     fails  null runs nothing: no kernel is launched\n"
    },
};

const char *cts_expectations(const char *backend) {
  size_t length = strcspn(backend, ":");
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
    if (strlen(lists[i].backend) == length &&
        memcmp(lists[i].backend, backend, length) == 0) {
      return lists[i].list;
    }
  }
  return "";
}
