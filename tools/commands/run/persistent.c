/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Persistent buffers of `vyre run` and `vyre bench`: a dispatch gets a device
 * buffer for each, with the data of --set, and its contents are read back. */
#include <string.h>

#include "vyre/buffer.h"

#include "commands/run/run.h"

static bool is_persistent(const run_buffer *b) {
  return b->binding->role == VYRE_ROLE_PERSISTENT;
}

/* Reads the initial contents; without --set these are zeros. */
static bool read_data(run_state *s, run_buffer *b, problem *wrong) {
  const char *name = b->decl->name;
  buffer_data copy;
  if (b->spec) {
    if (!data_read(b->spec, b->decl, &s->arena, &b->in, wrong)) return false;
  } else if (b->decl->count > 0) {
    if (!data_zeros(b->decl, b->decl->count, &s->arena, &b->in, wrong))
      return false;
  } else {
    problem_set(wrong, KIND_USAGE, "", "persistent buffer '%s' has no data",
                name);
    return problem_fix(wrong, "add --set %s=FILE, or --set %s=zeros:1024", name,
                       name),
           false;
  }
  b->count = b->in.count;
  if (!data_zeros(b->decl, b->count, &s->arena, &copy, wrong)) return false;
  b->out = (unsigned char *)copy.bytes;
  b->out_length = copy.length;
  return true;
}

bool run_read_persistent(run_state *s, problem *wrong) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (!is_persistent(b)) continue;
    if (!read_data(s, b, wrong)) return false;
    s->has_persistent = true;
  }
  return true;
}

/* Returns what the dispatch binds: data of an input, the device buffer of a
 * persistent buffer, and nothing for an output. */
static vyre_input resource_of(const run_state *s, const run_buffer *b) {
  if (is_persistent(b)) return vyre_input_buffer(b->persistent);
  return b->binding->input_index == VYRE_NO_INDEX
             ? (vyre_input){0}
             : s->inputs[b->binding->input_index];
}

bool run_make_persistent(run_state *s, problem *wrong) {
  vyre_status st = {0};
  vyre_code code = VYRE_OK;
  if (!s->has_persistent) return true;
  s->resources = vyre_arena_alloc(
      &s->arena, (s->buffer_count + 1) * sizeof *s->resources, 0);
  if (!s->resources) return problem_no_memory(wrong, "the list of buffers");
  for (size_t i = 0; i < s->buffer_count && code == VYRE_OK; i++) {
    run_buffer *b = &s->buffers[i];
    if (is_persistent(b)) {
      code = vyre_buffer_create(s->device, b->in.length, &b->persistent, &st);
      if (code == VYRE_OK)
        code = vyre_buffer_upload(s->device, b->persistent, 0, b->in.bytes,
                                  b->in.length, &st);
    }
    s->resources[i] = resource_of(s, b);
  }
  return code == VYRE_OK || problem_from_status(wrong, &st);
}

bool run_fetch_persistent(run_state *s, problem *wrong) {
  vyre_status st = {0};
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (is_persistent(b) &&
        vyre_buffer_download(s->device, b->persistent, 0, b->out, b->out_length,
                             &st) != VYRE_OK) {
      return problem_from_status(wrong, &st);
    }
  }
  return true;
}

void run_free_persistent(run_state *s) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (b->persistent.owner)
      (void)vyre_buffer_destroy(s->device, b->persistent, NULL);
  }
}

bool run_refuse_persistent(const run_state *s, const char *what,
                           problem *wrong) {
  if (!s->has_persistent) return true;
  problem_set(wrong, KIND_USAGE, "use a kernel without persistent buffers",
              "%s: kernel '%s' has a persistent buffer, whose contents would "
              "change from run to run",
              what, vyre_program_name(s->program));
  return false;
}

void run_describe(const run_state *s, vyre_dispatch_desc *desc) {
  desc->outputs = s->outputs;
  desc->output_count = s->output_count;
  if (s->has_persistent) {
    desc->resources = s->resources;
    desc->resource_count = s->buffer_count;
  } else {
    desc->inputs = s->inputs;
    desc->input_count = s->input_count;
  }
}
