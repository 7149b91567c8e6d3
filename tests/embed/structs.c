/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls the functions of structs.vyre with host memory, with device buffers and
 * a fence, and in a recording. Valid C and C++. */
#include <stdio.h>
#include <string.h>
#include <structs.h>

enum { COUNT = 3 };

static void fill(particle *p, float *d) {
  memset(p, 0, COUNT * sizeof *p);
  for (int i = 0; i < COUNT; i++) {
    p[i].mass = (float)i + 0.5f;
    p[i].part.a = 9;
    for (int k = 0; k < 3; k++) {
      p[i].position[k] = (float)k;
      d[3 * i + k] = (float)(i * k);
    }
  }
}

/* Checks the particles after @p steps steps of 2 times d + 0.25. */
static int is_moved(const particle *p, int steps) {
  for (int i = 0; i < COUNT; i++) {
    for (int k = 0; k < 3; k++) {
      const float want =
          (float)k + (float)steps * (2.0f * (float)(i * k) + 0.25f);
      if (p[i].position[k] != want) return 0;
    }
    if (p[i].part.b != (double)p[i].mass || p[i].part.a != 9) return 0;
    if (p[i].int_ != 7) return 0;
  }
  return 1;
}

static int with_host_memory(vyre_device *device, shift s, vyre_status *st) {
  particle p[COUNT];
  float d[3 * COUNT];
  fill(p, d);
  return move_run(device, 2.0f, d, COUNT, s, p, COUNT, st) == VYRE_OK &&
         is_moved(p, 1);
}

static int with_buffers(vyre_device *device, shift s, vyre_status *st) {
  particle p[COUNT];
  float d[3 * COUNT];
  vyre_pipeline *pipeline;
  vyre_recording *recording;
  vyre_fence *fence;
  vyre_buffer buffers[2];
  vyre_slot_binding binding;
  uint32_t slots[4];
  float times = 2.0f;
  int good;
  fill(p, d);
  if (move_pipeline(device, &pipeline, st) != VYRE_OK ||
      vyre_buffer_create(device, sizeof p, &buffers[0], st) != VYRE_OK ||
      vyre_buffer_create(device, sizeof d, &buffers[1], st) != VYRE_OK ||
      vyre_buffer_upload(device, buffers[0], 0, p, sizeof p, st) != VYRE_OK ||
      vyre_buffer_upload(device, buffers[1], 0, d, sizeof d, st) != VYRE_OK) {
    return 0;
  }
  good = move_dispatch_buffers(pipeline, NULL, times, buffers[1], s, buffers[0],
                               &fence, st) == VYRE_OK &&
         vyre_fence_wait(fence, UINT64_MAX, st) == VYRE_OK;
  vyre_fence_release(fence);
  good = good && vyre_recording_create(device, &recording, st) == VYRE_OK;
  for (int i = 0; good && i < 4; i++) {
    static const char *const names[] = {"times", "d", "s", "p"};
    good = vyre_recording_add_slot(recording, names[i], 0, &slots[i], st) ==
           VYRE_OK;
    memset(&binding, 0, sizeof binding);
    if (i == 0) binding.data = &times;
    if (i == 0) binding.size = sizeof times;
    if (i == 2) binding.data = &s;
    if (i == 2) binding.size = sizeof s;
    if (i == 1) binding.buffer = buffers[1];
    if (i == 3) binding.buffer = buffers[0];
    good = good && vyre_recording_bind_slot(recording, slots[i], &binding,
                                            st) == VYRE_OK;
  }
  good =
      good &&
      move_record(recording, pipeline, NULL, slots[0], slots[1], slots[2],
                  slots[3], st) == VYRE_OK &&
      vyre_recording_seal(recording, st) == VYRE_OK &&
      vyre_recording_replay(recording, NULL, NULL, st) == VYRE_OK &&
      vyre_buffer_download(device, buffers[0], 0, p, sizeof p, st) == VYRE_OK &&
      is_moved(p, 2);
  vyre_recording_release(recording);
  vyre_pipeline_release(pipeline);
  return good;
}

int main(void) {
  vyre_device *device;
  vyre_status st;
  shift s;
  int good;
  memset(&st, 0, sizeof st);
  memset(&s, 0, sizeof s);
  s.by = 0.25f;
  s.kind = 7;
  if (vyre_device_open(NULL, "cpu", &device, &st) != VYRE_OK) return 1;
  good = with_host_memory(device, s, &st) && with_buffers(device, s, &st);
  if (!good) printf("%s\n", st.message);
  vyre_device_release(device);
  return !good;
}
