/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls functions from headers of `vyre embed` and checks their results. */
#include <errno.h>
#include <math.h>
#include <names.h>
#include <saxpy.h>
#include <saxpy.h> /* a second inclusion has no effect */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int other_file(vyre_device *device, vyre_status *st); /* other.c */

/* names.vyre, kernel int: every kind of parameter. */
static int check_names(vyre_device *device, vyre_status *st) {
  const uint8_t class_[5] = {1, 9, 9, 2, 200};
  const int8_t class_count[5] = {1, 1, -1, 1, 100};
  bool flags[5] = {true, false, true, true, false};
  static const bool want[5] = {false, true, false, false, true};
  int16_t numbers[3] = {9, 9, 9};
  const uint16_t halves[2] = {0, 0xC200}; /* -3.0 as f16 */
  int good;
  if (int_run(device, class_, 5, class_count, 5, flags, 5, numbers,
              UINT64_C(0x100000064), halves, true, st) != VYRE_OK) {
    return 0;
  }
  good = numbers[0] == 97 && numbers[1] == 97 && numbers[2] == 97;
  for (int i = 0; i < 5; i++) good = good && flags[i] == want[i];
  return good;
}

static int check_saxpy(vyre_device *device, vyre_status *st) {
  float x[1000], y[1000], want[1000];
  vyre_pipeline *pipeline;
  int good = 1;
  for (int i = 0; i < 1000; i++) {
    x[i] = (float)i;
    y[i] = want[i] = 0.5f * (float)i;
  }
  if (saxpy_pipeline(device, &pipeline, st) != VYRE_OK) return 0;
  for (int round = 0; round < 3; round++) {
    if (saxpy_dispatch(pipeline, NULL, x, 1000, y, 1000, 2.0f, st) != VYRE_OK) {
      good = 0;
    }
    for (int i = 0; i < 1000; i++) want[i] += 2.0f * x[i];
  }
  vyre_pipeline_release(pipeline);
  for (int i = 0; i < 1000; i++) good = good && y[i] == want[i];
  return good;
}

/* The status of an invalid call reaches the caller. */
static int check_failure(vyre_device *device) {
  vyre_status st;
  float y[2] = {1, 2};
  for (size_t i = 0; i < sizeof st; i++) ((char *)&st)[i] = 0;
  return saxpy_run(device, y, 2, y, 2, 1.0f, &st) == VYRE_INVALID_ARGUMENT &&
         st.kind == VYRE_KIND_BINDING_MISMATCH && y[1] == 2;
}

/* names.vyre, kernel x: a two-dimensional workgroup needs a grid. */
static int check_grid(vyre_device *device) {
  static const vyre_status none;
  static const uint32_t one[3] = {1, 1, 1};
  const uint16_t in[1] = {1};
  uint16_t out[2] = {0, 7};
  vyre_status st = none;
  return x_run(device, NULL, out, 2, in, 1, &st) == VYRE_INVALID_ARGUMENT &&
         st.kind == VYRE_KIND_GRID_REQUIRED && st.fix[0] && out[1] == 7 &&
         x_run(device, one, out, 2, in, 1, &st) == VYRE_OK && out[1] != 7;
}

/* A count whose size in bytes overflows is rejected. */
static int check_overflow(vyre_device *device) {
  static const vyre_status none;
  const float x[2] = {3, 4};
  float y[2] = {1, 2};
  for (size_t over = 0; over < 3; over++) {
    vyre_status st = none;
    if (saxpy_run(device, x, 2, y, SIZE_MAX / sizeof *y + 1 + over, 1.0f,
                  &st) != VYRE_INVALID_ARGUMENT ||
        st.kind != VYRE_KIND_BINDING_MISMATCH || y[0] != 1) {
      return 0;
    }
  }
  return 1;
}

int main(void) {
  static vyre_status st;
  vyre_device *device;
  int64_t five = 0, five_more = 5;
  uint8_t bytes[3] = {0, 0, 0};
  if (vyre_device_open(NULL, "ref", &device, &st) != VYRE_OK) return 1;
  if (!check_names(device, &st)) return 2;
  if (!check_saxpy(device, &st)) return 3;
  if (!check_failure(device)) return 4;
  if (!check_overflow(device)) return 11;
  if (!check_grid(device)) return 12;
  if (nothing_run(device, &st) != VYRE_OK) return 5;
  if (k__hidden_run(device, &five, 1, &st) != VYRE_OK || five != 5) return 6;
  if (int_dispatch__run(device, bytes, 3, &st) != VYRE_OK || bytes[2] != 7)
    return 7;
  if (malloc_run(device, &five, 1, &five_more, 1, 7, &st) != VYRE_OK ||
      five != 12) {
    return 9;
  }
  if (k_vyre_submit_run(device, &five, 1, &five_more, &st) != VYRE_OK ||
      five != 6) {
    return 10;
  }
  if (!other_file(device, &st)) return 8;
  vyre_device_release(device);
  return 0;
}
