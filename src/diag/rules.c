/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>

#include "vyre/diagnostic.h"

static const vyre_rule rules[] = {
#define RULE(id, title, explanation, bad, good) \
  {#id, title, explanation, bad, good},
#include "diag/rules.def"
#undef RULE
};

const vyre_rule *vyre_rules(size_t *count) {
  if (count) *count = sizeof rules / sizeof rules[0];
  return rules;
}

static int lower(char c) {
  return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

const vyre_rule *vyre_rule_find(const char *id) {
  if (!id || !id[0]) return NULL;
  for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
    if (lower(rules[i].id[0]) == lower(id[0]) &&
        strcmp(rules[i].id + 1, id + 1) == 0) {
      return &rules[i];
    }
  }
  return NULL;
}
