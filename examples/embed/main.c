/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An application that ships its kernels in a header: `make` runs
 *     vyre embed kernels.vyre --prefix heat -o kernels.h
 * The program then needs only the vyre library at run time. */
#include <stdio.h>

#include "kernels.h"

enum { WIDTH = 20, HEIGHT = 10, CELLS = WIDTH * HEIGHT, STEPS = 40 };

static int fail(const vyre_status *st) {
  fprintf(stderr, "error: %s\nFix: %s\n", st->message, st->fix);
  return 1;
}

static void show(const float *heat) {
  static const char shades[] = " .:-=+*#%@";
  for (int y = 0; y < HEIGHT; y++) {
    for (int x = 0; x < WIDTH; x++) {
      int shade = (int)(heat[y * WIDTH + x] * 30);
      putchar(shades[shade > 9 ? 9 : shade]);
    }
    putchar('\n');
  }
}

int main(void) {
  static float heat[2][CELLS];
  const uint32_t grid[3] = {(WIDTH + 7) / 8, (HEIGHT + 7) / 8, 1};
  double sums[(CELLS + 63) / 64], total = 0;
  vyre_status st = {0};
  vyre_device *device;
  vyre_pipeline *spread;
  heat[0][5 * WIDTH + 6] = heat[0][4 * WIDTH + 13] = 25;

  if (vyre_device_open(NULL, "auto", &device, &st) != VYRE_OK) return fail(&st);
  /* A kernel that runs often: compile it once, then dispatch. */
  if (heat_spread_pipeline(device, &spread, &st) != VYRE_OK) return fail(&st);
  for (int i = 0; i < STEPS; i++) {
    if (heat_spread_dispatch(spread, grid, heat[i % 2], CELLS,
                             heat[(i + 1) % 2], CELLS, WIDTH, 0.2f,
                             &st) != VYRE_OK) {
      return fail(&st);
    }
  }
  vyre_pipeline_release(spread);
  /* A kernel that runs once: compile and dispatch in one call. */
  if (heat_total_run(device, heat[STEPS % 2], CELLS, sums,
                     sizeof sums / sizeof *sums, &st) != VYRE_OK) {
    return fail(&st);
  }
  vyre_device_release(device);
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) total += sums[i];
  show(heat[STEPS % 2]);
  printf("heat that is left: %.6f\n", total);
  return 0;
}
