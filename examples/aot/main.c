/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An application that ships compiled kernels: `make` runs
 *     vyre embed kernels.vyre --aot --prefix waves -o kernels.h
 * The program then needs only the vyre library at run time, and no LLVM. */
#include <stdio.h>
#include <string.h>

#include "kernels.h"

enum { SAMPLES = 1024, COLUMNS = 64, ROWS = 16 };

static int fail(const vyre_status *st) {
  fprintf(stderr, "error: %s\nFix: %s\n", st->message, st->fix);
  return 1;
}

static void show(const float *y) {
  for (int row = 0; row < ROWS; row++) {
    const float *part = y + row * (SAMPLES / ROWS);
    int at = (int)((part[0] + 1) * (COLUMNS / 2 - 1));
    printf("%*s\n", at + 1, "*");
  }
}

int main(int argc, char **argv) {
  static float y[SAMPLES];
  uint32_t highest[1] = {0};
  float peak;
  vyre_status st = {0};
  vyre_device *device;
  /* By name: without LLVM, "auto" would choose the interpreter. */
  const char *name = argc > 1 ? argv[1] : "cpu";
  if (vyre_device_open(NULL, name, &device, &st) != VYRE_OK ||
      waves_add_run(device, y, SAMPLES, 6.0f, 0.75f, &st) != VYRE_OK ||
      waves_peak_run(device, y, SAMPLES, highest, &st) != VYRE_OK) {
    return fail(&st);
  }
  vyre_device_release(device);
  memcpy(&peak, highest, sizeof peak);
  show(y);
  printf("peak: %.9g\n", (double)(peak - 1));
  return 0;
}
