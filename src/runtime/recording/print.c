/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the slots and commands of a recording. */
#include "base/print.h"

#include <stdio.h>

#include "runtime/recording/recording.h"

static void print_slot(vyre__printer *out, const vyre_recording *rec,
                       uint32_t i) {
  char text[VYRE__SLOT_NAME];
  const vyre__slot *slot = &rec->slots[i];
  const vyre_slot_binding *binding = &slot->binding;
  vyre__print(out, "  slot '%s'", vyre__slot_name(rec, i, text));
  if (slot->size != 0) {
    vyre__print(out, " of %llu bytes", (unsigned long long)slot->size);
  }
  if (!slot->is_bound) {
    vyre__print(out, ": unbound");
  } else {
    vyre__print(out, ": %llu bytes of %s", (unsigned long long)slot->bytes,
                slot->buffer           ? "device buffer"
                : binding->host_buffer ? "a host buffer"
                                       : "host memory");
  }
  if (slot->buffer && slot->is_bound) {
    vyre__print(out, " %llx", (unsigned long long)binding->buffer.id);
    if (binding->offset != 0) {
      vyre__print(out, " at offset %llu", (unsigned long long)binding->offset);
    }
  }
  if (rec->is_sealed) {
    vyre__print(out, ", %s",
                vyre__slot_is_written(slot) ? "written"
                : slot->is_used             ? "read"
                                            : "unused");
  }
  vyre__print(out, "\n");
}

static void print_range(vyre__printer *out, const vyre_recording *rec,
                        const vyre_slot_range *range, uint64_t size) {
  char text[VYRE__SLOT_NAME];
  vyre__print(out, "'%s'", vyre__slot_name(rec, range->slot, text));
  if (range->offset == 0 && size == 0) return;
  vyre__print(out, "[%llu", (unsigned long long)range->offset);
  if (size != 0) vyre__print(out, " + %llu", (unsigned long long)size);
  vyre__print(out, "]");
}

static void print_dispatch(vyre__printer *out, const vyre_recording *rec,
                           const vyre__recorded_command *c) {
  const struct vyre__pipeline_state *state = c->variant->state;
  vyre__print(out, "dispatch %s", c->label);
  const uint32_t *grid = c->is_ready ? c->prepared->launch.grid : c->desc.grid;
  if (grid[0] | grid[1] | grid[2]) {
    vyre__print(out, " grid %ux%ux%u", grid[0] ? grid[0] : 1,
                grid[1] ? grid[1] : 1, grid[2] ? grid[2] : 1);
  } else {
    vyre__print(out, " grid inferred");
  }
  if (c->desc.has_repeat_count) vyre__print(out, " x%u", c->desc.repeat_count);
  for (size_t i = 0; i < state->resource_count; i++) {
    const vyre__binding_info *info = state->resources[i];
    const vyre_slot_range *in = vyre__command_in(c, info);
    const vyre_slot_range *dest = vyre__command_out(c, info);
    uint64_t size = 0;
    if (c->is_ready) {
      const vyre__bound_buffer *bound = &c->prepared->bound[info->index];
      size = info->output != VYRE_NO_INDEX ? bound->out_size : bound->in_size;
    }
    bool is_in_place =
        in && dest && in->slot == dest->slot && in->offset == dest->offset;
    vyre__print(out, " %.100s=", info->binding->name);
    if (in) print_range(out, rec, in, in->size ? in->size : size);
    if (in && dest && !is_in_place) vyre__print(out, "->");
    if (dest && !is_in_place) {
      print_range(out, rec, dest, dest->size ? dest->size : size);
    }
  }
  vyre__print(out, "\n");
}

static void print_step(vyre__printer *out, const vyre_recording *rec,
                       const vyre__recorded_command *c) {
  const vyre__step *step = c->step;
  step->print(step, out);
  for (size_t i = 0; i < step->range_count; i++) {
    const vyre__step_range *r = &step->ranges[i];
    if (r->range.slot == VYRE_NO_SLOT) continue;
    vyre__print(out, r->is_written ? " ->%.100s=" : " %.100s=", r->name);
    print_range(out, rec, &r->range,
                r->range.size ? r->range.size
                : c->is_ready ? c->memory[i].size
                              : r->bytes);
  }
  vyre__print(out, "\n");
}

static void print_command(vyre__printer *out, const vyre_recording *rec,
                          size_t i, unsigned depth) {
  const vyre__recorded_command *c = &rec->commands[i];
  char text[VYRE__SLOT_NAME];
  if (c->needs_barrier) {
    vyre__print(out, "%5s  ", "");
    vyre__print_repeat(out, "  ", depth);
    vyre__print(out, "barrier, as '%s' is written\n",
                vyre__slot_name(rec, c->barrier_slot, text));
  }
  vyre__print(out, "%5zu  ", i);
  vyre__print_repeat(out, "  ", depth);
  switch (c->kind) {
    case VYRE__RECORDED_DISPATCH:
      print_dispatch(out, rec, c);
      return;
    case VYRE__RECORDED_COPY: {
      uint64_t size = c->is_ready ? c->size : c->from.size;
      vyre__print(out, !c->is_ready                            ? "copy "
                       : c->is_upload                          ? "upload "
                       : c->source.buffer && !c->target.buffer ? "download "
                                                               : "copy ");
      print_range(out, rec, &c->from, size);
      vyre__print(out, " -> ");
      print_range(out, rec, &c->to, size);
      vyre__print(out, "\n");
      return;
    }
    case VYRE__RECORDED_STEP:
      print_step(out, rec, c);
      return;
    case VYRE__RECORDED_BARRIER:
      vyre__print(out, "barrier\n");
      return;
    case VYRE__RECORDED_WHILE:
      vyre__print(out, "while ");
      print_range(out, rec, &c->from, 4);
      vyre__print(out, ", at most %llu iterations, flag read every %u\n",
                  (unsigned long long)c->max_iterations, c->check_interval);
      return;
    case VYRE__RECORDED_END:
      vyre__print(out, "end while\n");
      return;
  }
}

bool vyre_recording_print(vyre_recording *rec, vyre_writer writer) {
  if (!rec) return false;
  vyre__printer out = vyre__printer_make(writer);
  pthread_mutex_t *lock = &rec->lock;
  pthread_mutex_lock(lock);
  rec = rec->current;
  vyre__print(&out, "recording on %s: %zu slots, %zu commands%s\n",
              vyre_device_name(rec->device), rec->slot_count,
              rec->command_count, rec->is_sealed ? "" : ", not sealed");
  for (uint32_t i = 0; i < rec->slot_count; i++) print_slot(&out, rec, i);
  unsigned depth = 0;
  for (size_t i = 0; i < rec->command_count; i++) {
    vyre__recorded_kind kind = rec->commands[i].kind;
    if (kind == VYRE__RECORDED_END) depth--;
    print_command(&out, rec, i, depth);
    if (kind == VYRE__RECORDED_WHILE) depth++;
  }
  if (rec->is_sealed) {
    if (out.ok) out.ok = vyre_capture_plan_print(&rec->totals, writer);
  }
  pthread_mutex_unlock(lock);
  return out.ok;
}
