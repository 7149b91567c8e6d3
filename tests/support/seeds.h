/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which random programs a test runs. For the name VYRE_CPU:
 *
 *   VYRE_CPU_SEED=42     only that one
 *   VYRE_CPU_FIRST=300   the first one; VYRE_CPU_SEEDS=250 how many */
#ifndef VYRE_TESTS_SEEDS_H
#define VYRE_TESTS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct seed_range {
  uint64_t first, count;
  bool is_one; /* somebody looks for what is wrong with it */
} seed_range;

/* What the variable NAME_WORD says. */
static inline const char *seed_text(const char *name, const char *word) {
  char variable[64];
  (void)snprintf(variable, sizeof variable, "%s_%s", name, word);
  return getenv(variable);
}

static inline uint64_t seed_number(const char *name, const char *word,
                                   uint64_t otherwise) {
  const char *given = seed_text(name, word);
  return given ? strtoull(given, NULL, 10) : otherwise;
}

static inline seed_range seeds_of(const char *name, uint64_t first,
                                  uint64_t count) {
  if (seed_text(name, "SEED")) {
    return (seed_range){seed_number(name, "SEED", first), 1, true};
  }
  return (seed_range){seed_number(name, "FIRST", first),
                      seed_number(name, "SEEDS", count), false};
}

#endif
