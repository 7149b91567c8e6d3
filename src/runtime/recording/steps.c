/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Steps of recordings: adds them, and gives them the memory of their slots. */
#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/device.h"
#include "runtime/recording/recording.h"
#include "runtime/recording/step.h"

void vyre__step_release(vyre__step *step) {
  if (atomic_fetch_sub(&step->references, 1) > 1) return;
  if (step->deinit) step->deinit(step);
  vyre__resize(step->device->allocator, step, step->size, 0);
}

vyre_code vyre__recording_add_step(vyre_recording *rec, const char *function,
                                   vyre__step *step, vyre_status *st) {
  vyre__recorded_command *c;
  VYRE_TRY(vyre__recording_next_command(rec, function, &c, st));
  if (step->device != rec->device) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE, NULL,
        VYRE_NUMBERS({"owner", step->device->state->id},
                     {"device", rec->device->state->id}),
        "create the queue or graph on the device of the recording",
        "%s: the queue or graph belongs to device %llu, the recording to "
        "device "
        "%llu",
        function, (unsigned long long)step->device->state->id,
        (unsigned long long)rec->device->state->id);
  }
  for (size_t i = 0; i < step->range_count; i++) {
    const vyre_slot_range *range = &step->ranges[i].range;
    if (range->slot == VYRE_NO_SLOT) continue;
    VYRE_TRY(vyre__slot_range_check(rec, range, st));
  }
  c->kind = VYRE__RECORDED_STEP;
  c->step = step;
  rec->command_count++;
  return VYRE_OK;
}

static vyre_code needs_host(const vyre_recording *rec,
                            const vyre__step_range *r, size_t command,
                            vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", r->range.slot}, {"command", command}),
      "bind host memory, or make the resource external",
      "slot '%s': a device buffer is bound, but command %zu copies '%.60s' "
      "from or to host memory",
      vyre__slot_name(rec, r->range.slot, text), command, r->name);
}

static vyre_code needs_device(const vyre_recording *rec,
                              const vyre__step_range *r, size_t command,
                              vyre_status *st) {
  char text[VYRE__SLOT_NAME];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"slot", r->range.slot}, {"command", command}),
      "bind a device buffer",
      "slot '%s': host memory is bound, but command %zu uses '%.60s' in place",
      vyre__slot_name(rec, r->range.slot, text), command, r->name);
}

/* Finds the memory of one range. */
static vyre_code resolve(const vyre_recording *rec, const vyre__step_range *r,
                         size_t command, vyre__step_memory *out,
                         vyre_status *st) {
  const vyre__slot *slot = &rec->slots[r->range.slot];
  VYRE_TRY(vyre__slot_range_measure(rec, &r->range, r->bytes, r->element,
                                    command, &out->size, st));
  if (r->place == VYRE__STEP_HOST && slot->buffer)
    return needs_host(rec, r, command, st);
  if (r->place == VYRE__STEP_DEVICE && !slot->buffer)
    return needs_device(rec, r, command, st);
  const vyre__memory memory = vyre__slot_range_memory(rec, &r->range);
  if (!slot->buffer) {
    out->data = memory.host;
    return VYRE_OK;
  }
  out->handle = slot->binding.buffer;
  out->buffer = memory.buffer;
  out->offset = memory.offset;
  return VYRE_OK;
}

vyre_code vyre__recording_prepare_step(const vyre_recording *rec,
                                       vyre__recorded_command *c,
                                       size_t command, vyre_status *st) {
  for (size_t i = 0; i < c->step->range_count; i++) {
    const vyre__step_range *r = &c->step->ranges[i];
    c->memory[i] = (vyre__step_memory){0};
    if (r->range.slot == VYRE_NO_SLOT) continue;
    VYRE_TRY(resolve(rec, r, command, &c->memory[i], st));
  }
  return c->step->check(c->step, c->memory, st);
}
