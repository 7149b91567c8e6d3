/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices: the registry of backends, selection by name, opening and closing. */
#include "vyre/device.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"
#include "hal/backend.h"
#include "runtime/core/context.h"
#include "runtime/core/counters.h"
#include "runtime/core/device.h"
#include "runtime/core/options.h"
#include "runtime/core/work_queue.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/memory/scratch_pool.h"
#include "runtime/probe/probe.h"

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

static const vyre__backends all = {backends, BACKEND_COUNT};

const vyre__backend *vyre__backend_at(size_t index) {
  return index < BACKEND_COUNT ? backends[index] : NULL;
}

/* --- the list of devices -------------------------------------------------- */

static void put_name(const vyre__backend *backend, uint32_t index,
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
  out->is_available = index < MAX_DEVICES && backend->describe(index, out);
  out->backend = backend->name;
  out->index = index;
  put_name(backend, index, out->name);
  return out->is_available;
}

bool vyre__device_list_of(vyre__backends of, size_t index,
                          vyre_device_info *out) {
  size_t at = 0;
  for (size_t i = 0; i < of.count; i++) {
    for (uint32_t k = 0; describe(of.list[i], k, out); k++) {
      if (at++ == index) return true;
    }
  }
  for (size_t i = 0; i < of.count; i++) {
    if (!describe(of.list[i], 0, out) && at++ == index) return true;
  }
  *out = (vyre_device_info){0};
  return false;
}

bool vyre_device_info_at(size_t index, vyre_device_info *out) {
  return out && vyre__device_list_of(all, index, out);
}

/* --- selection by name ---------------------------------------------------- */

typedef struct choice {
  const vyre__backend *backend;
  uint32_t index;
  const void *given; /* external handles for device_init; or NULL */
  char reason[VYRE__DEVICE_REASON];
  const char *missing;     /* reason why the named device does not exist */
  const char *fix;         /* fix for `missing`; "": the general one */
  const char *passed_over; /* auto: reason why a better backend is not ready, or
                              NULL */
  const char *excluded;    /* auto: backend that an option excludes, or NULL */
} choice;

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

/* Writes the reason why "auto" selected backend @p at: no better one is
 * available. */
static void write_auto_reason(vyre__backends of, size_t at, char *out) {
  size_t used = 0, missing = 0;
  for (size_t i = 0; i < at && used < VYRE__DEVICE_REASON; i++) {
    if (of.list[i]->is_explicit_only) continue;
    used += (size_t)snprintf(
        out + used, VYRE__DEVICE_REASON - used, "%s %.36s",
        missing++ ? "," : "auto: best available; not available:",
        of.list[i]->name);
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
                   const char *name, choice *out) {
  vyre_device_info info;
  bool is_auto = strcmp(name, "auto") == 0;
  *out = (choice){0};
  for (size_t i = 0; i < of.count; i++) {
    const vyre__backend *backend = of.list[i];
    uint32_t index = 0;
    if (is_auto && backend->is_explicit_only) continue;
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
      write_auto_reason(of, i, out->reason);
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

/* Strips the prefix "auto: " from a reason. */
static const char *without_auto(const char *reason) {
  return strncmp(reason, "auto: ", 6) == 0 ? reason + 6 : reason;
}

/* Reports that an option excludes the only backend that "auto" could select. */
static vyre_code auto_excluded(const choice *chosen, vyre_status *st) {
  const char *why =
      chosen->passed_over ? chosen->passed_over : "nothing better is available";
  return VYRE_FAIL(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
      "install what is missing (`vyre doctor` names it), open the device by "
      "its name, or remove the option",
      "auto found no device: %.150s; '%s' is excluded by the option "
      "%s.fallback=0",
      without_auto(why), chosen->excluded, chosen->excluded);
}

static vyre_code unavailable(const char *name, const choice *chosen,
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

/* --- open and close ------------------------------------------------------- */

static atomic_ullong last_id;

static vyre_code create_state(vyre_device *device, const choice *chosen,
                              vyre_status *st) {
  struct vyre__device_state *state =
      vyre__resize(device->allocator, NULL, 0, sizeof *state);
  if (!state) return vyre__no_memory(st, "vyre_device_open", "devices", 1);
  memset(state, 0, sizeof *state);
  atomic_init(&state->references, 1);
  state->id = atomic_fetch_add(&last_id, 1) + 1;
  memcpy(state->reason, chosen->reason, sizeof state->reason);
  put_name(device->backend, chosen->index, state->name);
  pthread_mutex_init(&state->lock, NULL);
  pthread_mutex_init(&state->buffers.lock, NULL);
  pthread_mutex_init(&state->pipelines.lock, NULL);
  pthread_mutex_init(&state->prepared_lock, NULL);
  pthread_mutex_init(&state->replay_lock, NULL);
  pthread_cond_init(&state->replay_ended, NULL);
  device->state = state;
  return VYRE_OK;
}

static void free_state(vyre_device *device) {
  pthread_mutex_destroy(&device->state->lock);
  pthread_mutex_destroy(&device->state->buffers.lock);
  pthread_mutex_destroy(&device->state->pipelines.lock);
  pthread_mutex_destroy(&device->state->prepared_lock);
  pthread_mutex_destroy(&device->state->replay_lock);
  pthread_cond_destroy(&device->state->replay_ended);
  if (device->state->float_ops) {
    vyre__resize(device->allocator, device->state->float_ops,
                 VYRE__FLOAT_OP_COUNT * sizeof *device->state->float_ops, 0);
  }
  vyre__resize(device->allocator, device->state, sizeof *device->state, 0);
}

static void free_device(vyre_device *device) {
  vyre_context *context = device->context;
  vyre__resize(context->allocator, device, device->backend->device_size, 0);
  vyre_context_release(context);
}

/* Probes the float operations. The device is not published yet, so its
 * capabilities may still change, and the dispatches of the probe are removed
 * from its counters. */
static vyre_code find_float_modes(vyre_device *device, vyre_status *st) {
  struct vyre__device_state *state = device->state;
  vyre__probe_result found;
  VYRE_TRY(vyre__probe_find(device, &found, st));
  size_t size = sizeof found.float_ops;
  state->float_ops = vyre__resize(device->allocator, NULL, 0, size);
  if (!state->float_ops) {
    return vyre__no_memory(st, "vyre_device_open", "float operations",
                           VYRE__FLOAT_OP_COUNT);
  }
  memcpy(state->float_ops, found.float_ops, size);
  vyre_float_mode min_mode =
      (vyre_float_mode)vyre__device_option(device, "float_mode", 0);
  for (size_t i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    if (state->float_ops[i].mode < min_mode) {
      state->float_ops[i].mode = min_mode;
    }
  }
  device->caps.float_ops = state->float_ops;
  vyre__counters_clear(device);
  return VYRE_OK;
}

static bool has_our_abi(const vyre__backend *backend) {
  return backend->abi == VYRE__BACKEND_ABI &&
         backend->struct_size == sizeof(vyre__backend);
}

/* Reports a table with another layout. */
static vyre_code wrong_abi(const vyre__backend *backend, vyre_status *st) {
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

/* Opens a device. Takes over the reference to @p context. */
static vyre_code create(vyre_context *context, const choice *chosen,
                        vyre_device **out, vyre_status *st) {
  size_t size = chosen->backend->device_size;
  if (!has_our_abi(chosen->backend)) {
    vyre_context_release(context);
    return wrong_abi(chosen->backend, st);
  }
  vyre_device *device = vyre__resize(context->allocator, NULL, 0, size);
  if (!device) {
    vyre_context_release(context);
    return vyre__no_memory(st, "vyre_device_open", "devices", 1);
  }
  memset(device, 0, size);
  device->backend = chosen->backend;
  device->context = context;
  device->allocator = context->allocator;
  device->index = chosen->index;
  device->external = chosen->given;
  vyre_code code = vyre__options_check(device, st);
  if (code == VYRE_OK) code = create_state(device, chosen, st);
  if (code == VYRE_OK) {
    code = chosen->backend->device_init(device, st);
    device->external = NULL; /* borrowed for device_init only */
    if (code != VYRE_OK) free_state(device);
  }
  if (code != VYRE_OK) {
    free_device(device);
    return code;
  }
  device->caps.float_ops = vyre__float_op_is_exact;
  device->caps.float_op_count = VYRE__FLOAT_OP_COUNT;
  device->caps.has_disk_cache =
      device->backend->pipeline_load && device->backend->pipeline_save;
  vyre__counters_enter(device);
  if (!device->backend->is_exact) {
    code = find_float_modes(device, st);
    if (code != VYRE_OK) {
      vyre_device_release(device);
      return code;
    }
  }
  *out = device;
  return VYRE_OK;
}

/* Retains *context, or replaces NULL by the default context. */
static vyre_code retain_context(vyre_context **context, vyre_status *st) {
  if (!*context) return vyre__context_default(context, st);
  vyre_context_retain(*context);
  return VYRE_OK;
}

vyre_code vyre__device_open_of(vyre__backends of, vyre_context *context,
                               const char *name, vyre_device **out,
                               vyre_status *st) {
  choice chosen;
  VYRE_TRY(retain_context(&context, st));
  if (!choose(of, context, name, &chosen)) {
    vyre_context_release(context);
    return unavailable(name, &chosen, st);
  }
  VYRE_TRY(create(context, &chosen, out, st));
  if (st && strcmp(name, "auto") == 0) {
    (void)snprintf(st->message, sizeof st->message, "auto chose '%s': %s",
                   vyre_device_name(*out), without_auto(chosen.reason));
  }
  return VYRE_OK;
}

vyre_code vyre_device_open(vyre_context *context, const char *name,
                           vyre_device **out, vyre_status *st) {
  vyre__status_begin(st);
  if (!out) return vyre__null_argument(st, "vyre_device_open", "out");
  *out = NULL;
  if (!name) return vyre__null_argument(st, "vyre_device_open", "name");
  return vyre__device_open_of(all, context, name, out, st);
}

vyre_code vyre__device_open_backend(vyre_context *context,
                                    const vyre__backend *backend,
                                    uint32_t index, vyre_device **out,
                                    vyre_status *st) {
  return vyre__device_open_given(context, backend, index, NULL, out, st);
}

vyre_code vyre__device_open_given(vyre_context *context,
                                  const vyre__backend *backend, uint32_t index,
                                  const void *given, vyre_device **out,
                                  vyre_status *st) {
  choice chosen = {.backend = backend,
                   .index = index,
                   .given = given,
                   .reason = "opened by its backend table"};
  *out = NULL;
  VYRE_TRY(retain_context(&context, st));
  return create(context, &chosen, out, st);
}

vyre_code vyre__device_preload_of(vyre__backends of, vyre_context *context,
                                  const char *name, vyre_status *st) {
  choice chosen;
  vyre_code code = VYRE_OK;
  VYRE_TRY(retain_context(&context, st));
  if (!choose(of, context, name, &chosen)) {
    code = unavailable(name, &chosen, st);
  } else if (!has_our_abi(chosen.backend)) {
    code = wrong_abi(chosen.backend, st);
  } else if (chosen.backend->preload) {
    code = chosen.backend->preload(context, st);
  }
  vyre_context_release(context);
  return code;
}

vyre_code vyre_device_preload(vyre_context *context, const char *name,
                              vyre_status *st) {
  vyre__status_begin(st);
  if (!name) return vyre__null_argument(st, "vyre_device_preload", "name");
  return vyre__device_preload_of(all, context, name, st);
}

vyre_device *vyre_device_retain(vyre_device *device) {
  if (device) atomic_fetch_add(&device->state->references, 1);
  return device;
}

void vyre_device_release(vyre_device *device) {
  if (!device || atomic_fetch_sub(&device->state->references, 1) > 1) return;
  for (int i = 0; i < VYRE__COMPILERS; i++) {
    vyre__queue_deinit(device->state->compile_queues[i]);
  }
  vyre__queue_deinit(device->state->queue);
  vyre__table_deinit(device);
  vyre__device_buffers_deinit(device);
  vyre__scratch_pool_deinit(device);
  vyre__counters_leave(device);
  device->backend->device_deinit(device);
  free_state(device);
  free_device(device);
}

const char *vyre_device_name(const vyre_device *device) {
  return device ? device->state->name : "";
}

const char *vyre_device_selection_reason(const vyre_device *device) {
  return device ? device->state->reason : "";
}

const vyre_device_caps *vyre_device_get_caps(const vyre_device *device) {
  return device ? &device->caps : NULL;
}

uint64_t vyre_device_id(const vyre_device *device) {
  return device ? device->state->id : 0;
}

bool vyre_device_is_lost(const vyre_device *device) {
  return device && atomic_load(&device->state->is_lost);
}

void vyre__device_lose(vyre_device *device) {
  atomic_store(&device->state->is_lost, true);
}

void vyre__device_leave(vyre_device *device) {
  atomic_store(&device->state->is_forked, true);
  vyre__device_lose(device);
}

vyre_code vyre__device_lost(const vyre_device *device, vyre_status *st) {
  if (atomic_load(&device->state->is_forked)) {
    return VYRE_FAIL_WITH(st, VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST, NULL,
                          VYRE_NUMBERS({"device", device->state->id}),
                          "open the device again in the child process",
                          "device '%s' belongs to the parent process; a forked "
                          "child cannot use it",
                          vyre_device_name(device));
  }
  return VYRE_FAIL_WITH(
      st, VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST, NULL,
      VYRE_NUMBERS({"device", device->state->id}),
      "release the device and all its objects, and open it again",
      "device '%s' was lost", vyre_device_name(device));
}
