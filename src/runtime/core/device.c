/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices: opening, closing, names and states. */
#include "vyre/device.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/context.h"
#include "runtime/core/counters.h"
#include "runtime/core/device.h"
#include "runtime/core/options.h"
#include "runtime/core/registry.h"
#include "runtime/core/work_queue.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/memory/scratch_pool.h"
#include "runtime/probe/probe.h"

/* --- open and close ------------------------------------------------------- */

static atomic_ullong last_id;

static vyre_code create_state(vyre_device *device,
                              const vyre__device_choice *chosen,
                              vyre_status *st) {
  struct vyre__device_state *state =
      vyre__alloc_zeroed(device->allocator, sizeof *state);
  if (!state) return vyre__no_memory(st, "vyre_device_open", "devices", 1);
  atomic_init(&state->references, 1);
  state->id = atomic_fetch_add(&last_id, 1) + 1;
  memcpy(state->reason, chosen->reason, sizeof state->reason);
  vyre__device_put_name(device->backend, chosen->index, state->name);
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

/* Opens a device. Takes over the reference to @p context. */
static vyre_code create(vyre_context *context,
                        const vyre__device_choice *chosen, vyre_device **out,
                        vyre_status *st) {
  size_t size = chosen->backend->device_size;
  vyre_code code = vyre__backend_check_abi(chosen->backend, st);
  if (code != VYRE_OK) {
    vyre_context_release(context);
    return code;
  }
  vyre_device *device = vyre__alloc_zeroed(context->allocator, size);
  if (!device) {
    vyre_context_release(context);
    return vyre__no_memory(st, "vyre_device_open", "devices", 1);
  }
  device->backend = chosen->backend;
  device->context = context;
  device->allocator = context->allocator;
  device->index = chosen->index;
  device->external = chosen->given;
  code = vyre__options_check(device, st);
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
  device->caps.has_disk_cache = device->backend->generate != NULL;
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

vyre_code vyre__device_open_of(vyre__backends of, vyre_context *context,
                               const char *name, vyre_device **out,
                               vyre_status *st) {
  vyre__device_choice chosen;
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre_code code = vyre__device_choose(of, context, name, &chosen, st);
  if (code != VYRE_OK) {
    vyre_context_release(context);
    return code;
  }
  VYRE_TRY(create(context, &chosen, out, st));
  if (st && strcmp(name, "auto") == 0) {
    (void)snprintf(st->message, sizeof st->message, "auto chose '%s': %s",
                   vyre_device_name(*out),
                   vyre__reason_without_auto(chosen.reason));
  }
  return VYRE_OK;
}

vyre_code vyre_device_open(vyre_context *context, const char *name,
                           vyre_device **out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, name);
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre__backend_list storage;
  vyre_code code = vyre__device_open_of(
      vyre__context_backends(context, &storage), context, name, out, st);
  vyre_context_release(context);
  return code;
}

vyre_code vyre__device_open_given(vyre_context *context,
                                  const vyre__backend *backend, uint32_t index,
                                  const void *given, vyre_device **out,
                                  vyre_status *st) {
  vyre__device_choice chosen = {.backend = backend,
                                .index = index,
                                .given = given,
                                .reason = "opened by its backend table"};
  *out = NULL;
  VYRE_TRY(vyre__context_acquire(&context, st));
  return create(context, &chosen, out, st);
}

vyre_code vyre__device_preload_of(vyre__backends of, vyre_context *context,
                                  const char *name, vyre_status *st) {
  vyre__device_choice chosen;
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre_code code = vyre__device_choose(of, context, name, &chosen, st);
  if (code == VYRE_OK) code = vyre__backend_check_abi(chosen.backend, st);
  if (code == VYRE_OK && chosen.backend->preload) {
    code = chosen.backend->preload(context, st);
  }
  vyre_context_release(context);
  return code;
}

vyre_code vyre_device_preload(vyre_context *context, const char *name,
                              vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, name);
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre__backend_list storage;
  vyre_code code = vyre__device_preload_of(
      vyre__context_backends(context, &storage), context, name, st);
  vyre_context_release(context);
  return code;
}

vyre_code vyre_device_choose(vyre_context *context, const char *name,
                             char out[VYRE_DEVICE_NAME], vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  out[0] = '\0';
  VYRE_REQUIRE(st, name);
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre__backend_list storage;
  vyre__device_choice chosen;
  vyre_code code = vyre__device_choose(
      vyre__context_backends(context, &storage), context, name, &chosen, st);
  if (code == VYRE_OK) {
    vyre__device_put_name(chosen.backend, chosen.index, out);
  }
  vyre_context_release(context);
  return code;
}

vyre_device *vyre_device_retain(vyre_device *device) {
  if (device) atomic_fetch_add(&device->state->references, 1);
  return device;
}

void vyre_device_release(vyre_device *device) {
  if (!device || atomic_fetch_sub(&device->state->references, 1) > 1) return;
  atomic_store(&device->state->is_closing, true);
  for (int i = 0; i < VYRE__COMPILERS; i++) {
    vyre__queue_deinit(device->state->compile_queues[i]);
    vyre__queue_deinit(device->state->optimise_queues[i]);
  }
  vyre__queue_deinit(device->state->queue);
  vyre__table_deinit(device);
  vyre__device_buffers_deinit(device);
  vyre__scratch_pool_deinit(device);
  vyre__counters_leave(device);
  if (device->backend->device_deinit) device->backend->device_deinit(device);
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
