/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A small kernel on a device, as `vyre doctor` tries it. */
#ifndef VYRE_TOOLS_COMMANDS_DEVICE_SMOKE_H
#define VYRE_TOOLS_COMMANDS_DEVICE_SMOKE_H

#include "vyre/device.h"

#include "io/json_out.h"

typedef struct device_trial {
  bool is_done;      /* it was tried */
  uint64_t first_ns; /* to compile, with all that is loaded for it */
  uint64_t next_ns;  /* to compile the next */
  uint64_t run_ns;   /* to run it */
  vyre_status st;    /* why it could not be */
  bool is_wrong;     /* it ran, and gave something else */
} device_trial;

/* Compiles, runs and looks at what came out. Nothing is taken from the cache or
 * put there. */
void device_try(const char *name, device_trial *out);

/* Whether it was good, or not tried. */
bool device_trial_is_good(const device_trial *trial);

/* "    compiles in 31 ms, ..." and nothing if it was not tried. */
void put_trial(const device_trial *trial, sink *out);

/* "trial":{...} */
void json_trial(json_out *json, const char *key, const device_trial *trial);

#endif
