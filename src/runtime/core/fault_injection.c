/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fault injection. An armed fault counts down. The operation that takes the
 * count from one to zero fails, so that exactly one of many threads is hit. */
#include "runtime/core/fault_injection.h"

#include <string.h>

#include "base/enum_name.h"
#include "base/status.h"

static const char *const names[] = {VYRE_FAULT_MAP(VYRE__ENUM_TEXT)};

const char *vyre_fault_name(vyre_fault fault) {
  return (unsigned)fault < VYRE_FAULT_COUNT ? names[fault] : "?";
}

bool vyre__fault_hits(vyre_context *context, vyre_fault fault) {
  if (!(atomic_load(&context->armed) & 1u << fault)) return false;
  uint64_t left = atomic_load(&context->faults[fault].left);
  while (left > 0) {
    bool repeats = atomic_load(&context->faults[fault].repeats);
    if (left == 1 && repeats) return true;
    if (atomic_compare_exchange_weak(&context->faults[fault].left, &left,
                                     left - 1)) {
      return left == 1;
    }
  }
  return false;
}

vyre_code vyre__fault_status(vyre_fault fault, vyre_status *st) {
  static const vyre_code codes[VYRE_FAULT_COUNT] = {
      [VYRE_FAULT_ALLOCATION] = VYRE_OUT_OF_MEMORY,
      [VYRE_FAULT_COMPILE] = VYRE_KERNEL_COMPILE_FAILED,
      [VYRE_FAULT_SUBMIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_UPLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_DOWNLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_WAIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_DEVICE_LOST] = VYRE_DEVICE_LOST};
  return VYRE_FAIL(st, codes[fault], VYRE_KIND_INJECTED_FAULT,
                   "disarm it: vyre_context_inject_faults(context, \"\"), or "
                   "unset VYRE_FAULTS",
                   "the fault '%s' was injected here", names[fault]);
}

/* --- parsing -------------------------------------------------------------- */

/* An armed fault. */
typedef struct order {
  uint64_t left;
  bool repeats;
} order;

/* Parses "name:N" or "name:N+" of @p length bytes. Returns the fault, or
 * VYRE_FAULT_COUNT if the text is invalid. */
static size_t parse_fault(const char *text, size_t length, order *out) {
  for (size_t i = 0; i < VYRE_FAULT_COUNT; i++) {
    size_t name = strlen(names[i]), at = name + 1;
    if (length <= at || text[name] != ':' ||
        memcmp(text, names[i], name) != 0) {
      continue;
    }
    uint64_t value = 0;
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++) {
      if (value > UINT64_MAX / 10 - 1) return VYRE_FAULT_COUNT;
      value = value * 10 + (uint64_t)(text[at] - '0');
    }
    bool repeats = at + 1 == length && text[at] == '+';
    if (value == 0 || at + repeats != length) return VYRE_FAULT_COUNT;
    *out = (order){value, repeats};
    return i;
  }
  return VYRE_FAULT_COUNT;
}

vyre_code vyre_context_inject_faults(vyre_context *context, const char *faults,
                                     vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, context, faults);
  order orders[VYRE_FAULT_COUNT] = {{0}};
  for (const char *at = faults; *at;) {
    size_t length = strcspn(at, ",");
    order one = {0};
    size_t which = parse_fault(at, length, &one);
    if (which == VYRE_FAULT_COUNT) {
      return VYRE_FAIL(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
          "write NAME:N or NAME:N+, separated by commas; names are allocation, "
          "compile, submit, upload, download, wait, device_lost",
          "invalid fault '%.*s'", (int)(length < 60 ? length : 60), at);
    }
    if (orders[which].left > 0) {
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
          VYRE_NUMBERS({"first", orders[which].left}, {"second", one.left}),
          "remove one of them; N+ makes the Nth and all later ones fail",
          "the fault '%s' is armed twice: %s:%llu and %s:%llu", names[which],
          names[which], (unsigned long long)orders[which].left, names[which],
          (unsigned long long)one.left);
    }
    orders[which] = one;
    at += length;
    if (*at == ',') at++;
  }
  unsigned armed = 0;
  atomic_store(&context->armed, 0);
  for (unsigned i = 0; i < VYRE_FAULT_COUNT; i++) {
    atomic_store(&context->faults[i].repeats, orders[i].repeats);
    atomic_store(&context->faults[i].left, orders[i].left);
    if (orders[i].left > 0) armed |= 1u << i;
  }
  atomic_store(&context->armed, armed);
  return VYRE_OK;
}
