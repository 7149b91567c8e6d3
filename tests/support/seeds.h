/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Selects the random programs of a test by environment variables. For the
 * name VYRE_CPU:
 *
 *   VYRE_CPU_SEED=42     only this program
 *   VYRE_CPU_FIRST=300   the first program; VYRE_CPU_SEEDS=250 the number of
 * programs */
#ifndef VYRE_TESTS_SEEDS_H
#define VYRE_TESTS_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct seed_range {
  uint64_t first, count;
  bool is_one; /* a single program was selected, for debugging */
} seed_range;

/* Returns the value of the variable NAME_WORD. */
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
