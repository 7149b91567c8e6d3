/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The registry of backends: lists devices and selects one by its name. */
#include "runtime/core/registry.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "runtime/core/backend_list.h"
#include "runtime/core/options.h"

#define BACKEND(name) extern const vyre__backend vyre__backend_##name;
#include "runtime/backends.def"
#undef BACKEND

static const vyre__backend *const backends[] = {
#define BACKEND(name) &vyre__backend_##name,
#include "runtime/backends.def"
#undef BACKEND
};

enum {
  BACKEND_COUNT = sizeof backends / sizeof backends[0],
  MAX_DEVICES = 64 /* per backend */
};

vyre__backends vyre__built_in_backends(void) {
  return (vyre__backends){backends, BACKEND_COUNT};
}

vyre__backends vyre__context_backends(const vyre_context *context,
                                      vyre__backend_list *storage) {
  storage->count = BACKEND_COUNT;
  memcpy(storage->items, backends, sizeof backends);
  const vyre__backend_entry *entry = atomic_load(&context->backends.first);
  for (; entry; entry = atomic_load(&entry->next)) {
    if (entry->backend) storage->items[storage->count++] = entry->backend;
  }
  return (vyre__backends){storage->items, storage->count};
}

const vyre__backend *vyre__backend_find(vyre__backends of, const char *name,
                                        size_t size) {
  for (size_t i = 0; i < of.count; i++) {
    const char *text = of.list[i]->name;
    if (strlen(text) == size && memcmp(text, name, size) == 0) {
      return of.list[i];
    }
  }
  return NULL;
}

/* Sorts the backends by their precedence, the highest first; those with equal
 * precedence stay in the order of registration. */
static vyre__backend_list sorted(vyre__backends of) {
  vyre__backend_list out = {.count = 0};
  for (size_t i = 0; i < of.count && i < VYRE_MAX_BACKENDS; i++) {
    size_t at = out.count++;
    for (; at > 0 && out.items[at - 1]->precedence < of.list[i]->precedence;
         at--) {
      out.items[at] = out.items[at - 1];
    }
    out.items[at] = of.list[i];
  }
  return out;
}

/* --- the list of devices -------------------------------------------------- */

void vyre__device_put_name(const vyre__backend *backend, uint32_t index,
                           char out[VYRE_DEVICE_NAME]) {
  (void)snprintf(out, VYRE_DEVICE_NAME, index > 0 ? "%.36s:%u" : "%.36s",
                 backend->name, (unsigned)index);
}

/* Describes a device, and fills the fields that the backend leaves to the
 * runtime. */
static bool describe(const vyre__backend *backend, uint32_t index,
                     vyre_device_info *out) {
  *out = (vyre_device_info){
      .description = "", .driver = "", .note = "", .fix = ""};
  out->is_available =
      index < MAX_DEVICES && backend->describe(backend, index, out);
  out->backend = backend->name;
  out->index = index;
  vyre__device_put_name(backend, index, out->name);
  return out->is_available;
}

bool vyre__device_list_of(vyre__backends of, size_t index,
                          vyre_device_info *out) {
  size_t at = 0;
  const vyre__backend_list all = sorted(of);
  for (size_t i = 0; i < all.count; i++) {
    for (uint32_t k = 0; describe(all.items[i], k, out); k++) {
      if (at++ == index) return true;
    }
  }
  for (size_t i = 0; i < all.count; i++) {
    if (!describe(all.items[i], 0, out) && at++ == index) return true;
  }
  *out = (vyre_device_info){0};
  return false;
}

bool vyre_device_info_at(size_t index, vyre_device_info *out) {
  return out && vyre__device_list_of(vyre__built_in_backends(), index, out);
}

bool vyre_context_device_info_at(vyre_context *context, size_t index,
                                 vyre_device_info *out) {
  vyre__backend_list storage;
  if (!out || vyre__context_acquire(&context, NULL) != VYRE_OK) return false;
  bool exists = vyre__device_list_of(vyre__context_backends(context, &storage),
                                     index, out);
  vyre_context_release(context);
  return exists;
}

/* --- selection by name ---------------------------------------------------- */

/* Parses "name" or "name:index". */
static bool parse_name(const char *text, const char *backend, uint32_t *index) {
  size_t length = strlen(backend);
  if (strncmp(text, backend, length) != 0) return false;
  *index = 0;
  if (text[length] == '\0') return true;
  if (text[length] != ':' || text[length + 1] == '\0') return false;
  /* Each device has one name, so leading zeros are refused. */
  if (text[length + 1] == '0' && text[length + 2]) return false;
  for (const char *at = text + length + 1; *at; at++) {
    if (*at < '0' || *at > '9' || *index > MAX_DEVICES) return false;
    *index = *index * 10 + (uint32_t)(*at - '0');
  }
  return true;
}

/* Writes the reason why "auto" selected backend @p at: none with a higher
 * precedence is available. */
static void write_auto_reason(const vyre__backend_list *of, size_t at,
                              char *out) {
  size_t used = 0, missing = 0;
  for (size_t i = 0; i < at && used < VYRE__DEVICE_REASON; i++) {
    used += (size_t)snprintf(
        out + used, VYRE__DEVICE_REASON - used, "%s %.36s",
        missing++ ? "," : "auto: best available; not available:",
        of->items[i]->name);
  }
  if (missing == 0) {
    (void)snprintf(out, VYRE__DEVICE_REASON, "auto: best backend");
  }
}

/* Writes the reason for a name without an index, if the backend has several
 * devices. */
static void write_first_of_many(const vyre__backend *backend, char *out) {
  vyre_device_info info;
  uint32_t count = 1;
  while (describe(backend, count, &info)) count++;
  if (count == 1) return;
  (void)snprintf(out, VYRE__DEVICE_REASON,
                 "asked for by name: the first of %u; '%.36s:1' is the next",
                 (unsigned)count, backend->name);
}

static bool choose(vyre__backends of, const vyre_context *context,
                   const char *name, vyre__device_choice *out) {
  vyre_device_info info;
  bool is_auto = strcmp(name, "auto") == 0;
  *out = (vyre__device_choice){0};
  const vyre__backend_list all = sorted(of);
  for (size_t i = 0; i < all.count; i++) {
    const vyre__backend *backend = all.items[i];
    uint32_t index = 0;
    if (is_auto && backend->precedence == 0) break;
    if (!is_auto && !parse_name(name, backend->name, &index)) continue;
    /* is_ready comes first: describe may have to load a driver. */
    const char *why;
    if (is_auto && backend->is_ready && !backend->is_ready(context, &why)) {
      out->passed_over = why;
      continue;
    }
    if (is_auto &&
        !vyre__context_option(context, backend->name, "fallback", true)) {
      out->excluded = backend->name;
      continue;
    }
    bool exists = describe(backend, index, &info);
    if (!exists && is_auto) continue;
    out->backend = backend;
    out->index = index;
    out->missing = exists ? NULL : info.note;
    out->fix = exists ? NULL : info.fix;
    if (!is_auto) {
      (void)snprintf(out->reason, sizeof out->reason, "asked for by name");
    } else if (out->passed_over) {
      (void)snprintf(out->reason, sizeof out->reason, "%s", out->passed_over);
    } else {
      write_auto_reason(&all, i, out->reason);
    }
    if (exists && strcmp(name, backend->name) == 0) {
      write_first_of_many(backend, out->reason);
    }
    return exists;
  }
  return false;
}

#define BACKEND(name) " " #name
static const char unavailable_fix[] =
    "open \"auto\", or one of"
#include "runtime/backends.def"
    "; run `vyre devices` to list them";
#undef BACKEND

const char *vyre__reason_without_auto(const char *reason) {
  return strncmp(reason, "auto: ", 6) == 0 ? reason + 6 : reason;
}

/* Reports that an option excludes the only backend that "auto" could select. */
static vyre_code auto_excluded(const vyre__device_choice *chosen,
                               vyre_status *st) {
  const char *why =
      chosen->passed_over ? chosen->passed_over : "nothing better is available";
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
                   "install what is missing (`vyre doctor` names it), open the "
                   "device by its name, or remove the option",
                   "auto found no device: %.150s; '%s' is excluded by the "
                   "option %s.fallback=0",
                   vyre__reason_without_auto(why), chosen->excluded,
                   chosen->excluded);
}

static vyre_code unavailable(const char *name,
                             const vyre__device_choice *chosen,
                             vyre_status *st) {
  if (chosen->excluded) return auto_excluded(chosen, st);
  const vyre__failure failure = {
      .code = VYRE_UNSUPPORTED_FEATURE,
      .kind = VYRE_KIND_DEVICE_UNAVAILABLE,
      .fix = chosen->fix && chosen->fix[0] ? chosen->fix : unavailable_fix,
      .file = __FILE__,
      .line = __LINE__};
  bool has_reason = chosen->missing && chosen->missing[0];
  char shown[VYRE__NAME_TEXT];
  vyre__fail(st, &failure, "no device '%s'%s%.150s", vyre__name(name, shown),
             has_reason ? ": " : "", has_reason ? chosen->missing : "");
  return failure.code;
}

vyre_code vyre__device_choose(vyre__backends of, const vyre_context *context,
                              const char *name, vyre__device_choice *out,
                              vyre_status *st) {
  return choose(of, context, name, out) ? VYRE_OK : unavailable(name, out, st);
}

vyre_code vyre__backend_check_abi(const vyre__backend *backend,
                                  vyre_status *st) {
  if (backend->abi == VYRE__BACKEND_ABI &&
      backend->struct_size == sizeof(vyre__backend)) {
    return VYRE_OK;
  }
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"abi", backend->abi}, {"expected_abi", VYRE__BACKEND_ABI},
                   {"table_bytes", backend->struct_size},
                   {"expected_bytes", sizeof(vyre__backend)}),
      "build the backend against this version of the library",
      "backend '%s' has table version %u with %u bytes; expected version %d "
      "with %zu bytes",
      backend->name, backend->abi, backend->struct_size, VYRE__BACKEND_ABI,
      sizeof(vyre__backend));
}
