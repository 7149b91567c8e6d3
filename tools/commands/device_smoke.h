/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a small kernel on a device, for `vyre doctor`. */
#ifndef VYRE_TOOLS_COMMANDS_DEVICE_SMOKE_H
#define VYRE_TOOLS_COMMANDS_DEVICE_SMOKE_H

#include "vyre/device.h"

#include "io/json_out.h"

typedef struct device_trial {
  bool is_done;      /* the kernel was compiled and run */
  uint64_t first_ns; /* first compilation, with loading of libraries */
  uint64_t next_ns;  /* second compilation */
  uint64_t run_ns;   /* run time */
  vyre_status st;    /* why it failed */
  bool is_wrong;     /* the result was wrong */
} device_trial;

/* Compiles and runs the kernel and compares its result, without using the
 * cache. */
void device_try(const char *name, device_trial *out);

/* Returns true if the test passed or was not made. */
bool device_trial_is_good(const device_trial *trial);

/* Writes "    compiles in 31 ms, ..."; nothing if the test was not made. */
void put_trial(const device_trial *trial, sink *out);

/* Writes "trial":{...}. */
void json_trial(json_out *json, const char *key, const device_trial *trial);

#endif
