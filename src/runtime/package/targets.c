/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The targets of all backends, and lists of their names. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "runtime/core/registry.h"
#include "runtime/package/package.h"

bool vyre__package_target_at(size_t index, vyre__package_target *out) {
  vyre__backends all = vyre__built_in_backends();
  for (size_t b = 0; b < all.count; b++) {
    const vyre__backend *backend = all.list[b];
    if (!backend->portable) continue;
    for (uint32_t i = 0; backend->portable->targets[i]; i++) {
      if (index-- > 0) continue;
      *out = (vyre__package_target){backend, i};
      return true;
    }
  }
  return false;
}

const char *vyre_package_target_at(size_t index, const char **backend) {
  vyre__package_target target;
  if (backend) *backend = NULL;
  if (!vyre__package_target_at(index, &target)) return NULL;
  if (backend) *backend = target.backend->name;
  return target.backend->portable->targets[target.index];
}

/* Returns true if the name is in a list of names separated by commas. */
static bool is_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  for (const char *at = list;; at++) {
    size_t part = strcspn(at, ",");
    if (part == length && memcmp(at, name, part) == 0) return true;
    at += part;
    if (*at == '\0') return false;
  }
}

vyre__package_choice vyre__package_selects(const char *list,
                                           const vyre__package_target *target) {
  const vyre__backend *backend = target->backend;
  if (!list) return VYRE__TARGET_OPTIONAL;
  if (is_listed(list, backend->portable->targets[target->index])) {
    return VYRE__TARGET_NAMED;
  }
  return is_listed(list, backend->name) ? VYRE__TARGET_OPTIONAL
                                        : VYRE__TARGET_UNUSED;
}

/* Writes the names of all targets to @p text. */
static void list_names(char *text, size_t size) {
  size_t length = 0;
  const char *name;
  text[0] = '\0';
  for (size_t i = 0; (name = vyre_package_target_at(i, NULL)) != NULL; i++) {
    int written =
        snprintf(text + length, size - length, "%s%s", i > 0 ? ", " : "", name);
    if (written < 0 || (size_t)written >= size - length) return;
    length += (size_t)written;
  }
}

static vyre_code unknown_target(const char *name, size_t length,
                                vyre_status *st) {
  char names[200];
  list_names(names, sizeof names);
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "targets", NULL,
      "use these names, or a backend for all of its targets, separated by "
      "commas",
      "unknown target '%.*s'; this build has %s",
      (int)(length < 60 ? length : 60), name, names);
}

static bool is_name(const char *known, const char *name, size_t length) {
  return strlen(known) == length && memcmp(known, name, length) == 0;
}

static bool is_target(const char *name, size_t length) {
  const char *known, *backend;
  for (size_t i = 0; (known = vyre_package_target_at(i, &backend)) != NULL;
       i++) {
    if (is_name(known, name, length) || is_name(backend, name, length)) {
      return true;
    }
  }
  return false;
}

vyre_code vyre__package_check_targets(const char *list, vyre_status *st) {
  if (!list) return VYRE_OK;
  for (const char *at = list;; at++) {
    size_t length = strcspn(at, ",");
    if (!is_target(at, length)) return unknown_target(at, length, st);
    at += length;
    if (*at == '\0') return VYRE_OK;
  }
}
