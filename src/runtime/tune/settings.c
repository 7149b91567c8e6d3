/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/tune/settings.h"

#include <stdio.h>

enum { FIELD_BITS = 12, FIELD_MASK = (1 << FIELD_BITS) - 1 };
_Static_assert((1 + VYRE__TUNABLES) * FIELD_BITS <= 64,
               "all settings fit in one number");

uint64_t vyre__settings_pack(const vyre__settings *settings) {
  uint64_t packed = settings->workgroup & FIELD_MASK;
  for (int i = 0; i < VYRE__TUNABLES; i++) {
    packed |= (uint64_t)(settings->tuned[i] & FIELD_MASK)
              << (FIELD_BITS * (i + 1));
  }
  return packed;
}

vyre__settings vyre__settings_unpack(uint64_t packed) {
  vyre__settings out = {.workgroup = (uint32_t)(packed & FIELD_MASK)};
  for (int i = 0; i < VYRE__TUNABLES; i++) {
    packed >>= FIELD_BITS;
    out.tuned[i] = (uint32_t)(packed & FIELD_MASK);
  }
  return out;
}

static bool tunable_at(const vyre_device *device, uint32_t index,
                       vyre__tunable *out) {
  return device->backend->tunable_at &&
         device->backend->tunable_at(device, index, out);
}

void vyre__settings_text(const vyre_device *device,
                         const vyre__settings *settings,
                         char out[VYRE__SETTINGS_TEXT]) {
  static const char *const tiers[] = {"auto", "baseline", "optimised"};
  size_t at = 0, room = VYRE__SETTINGS_TEXT;
  vyre__tunable t;
  (void)snprintf(out, room, "as compiled");
  if (settings->workgroup) {
    at = (size_t)snprintf(out, room, "workgroup %u",
                          (unsigned)settings->workgroup);
  }
  for (uint32_t i = 0; i < VYRE__TUNABLES && at < room; i++) {
    if (!settings->tuned[i] || !tunable_at(device, i, &t)) continue;
    const char *comma = at > 0 ? ", " : "";
    uint32_t value = settings->tuned[i] - 1;
    int put = t.is_tier && value < 3 ? snprintf(out + at, room - at, "%s%s %s",
                                                comma, t.name, tiers[value])
                                     : snprintf(out + at, room - at, "%s%s %u",
                                                comma, t.name, (unsigned)value);
    at += put > 0 ? (size_t)put : 0;
  }
}

static bool has_value(const vyre__tunable *t, uint32_t value) {
  for (uint32_t i = 0; i < t->count; i++) {
    if (t->values[i] == value) return true;
  }
  return false;
}

bool vyre__settings_fit(const vyre_device *device,
                        const vyre__settings *settings) {
  const vyre_device_caps *caps = &device->caps;
  vyre__tunable t;
  if (settings->workgroup > caps->max_workgroup[0] ||
      settings->workgroup > caps->max_workgroup_invocations) {
    return false;
  }
  for (uint32_t i = 0; i < VYRE__TUNABLES; i++) {
    if (!settings->tuned[i]) continue;
    if (!tunable_at(device, i, &t) || !has_value(&t, settings->tuned[i] - 1)) {
      return false;
    }
  }
  return true;
}
