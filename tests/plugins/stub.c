/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A backend that runs nothing, in variants that the library must refuse:
 *   STUB_NAME    its name
 *   STUB_ABI     version of the table
 *   STUB_SIZE    size of the table
 *   STUB_OPEN    code that device_open returns
 *   STUB_LOAD    code that kernel_load returns
 *   STUB_HIDDEN  without the symbol of a plugin
 *   STUB_NULL    returns no table
 *   STUB_CALLS   calls the function whose address is in $VYRE_STUB_CALL */
#include <stdlib.h>

#include "vyre/backend.h"

#ifndef STUB_NAME
#define STUB_NAME "stub"
#endif
#ifndef STUB_ABI
#define STUB_ABI VYRE_BACKEND_ABI
#endif
#ifndef STUB_SIZE
#define STUB_SIZE sizeof(vyre_backend)
#endif
#ifndef STUB_OPEN
#define STUB_OPEN VYRE_OK
#endif
#ifndef STUB_LOAD
#define STUB_LOAD VYRE_OK
#endif

static bool describe(const vyre_backend *table, uint32_t index,
                     vyre_device_info *out) {
  (void)table;
  out->description = "runs nothing";
  return index == 0;
}

static vyre_code device_open(const vyre_backend *table, uint32_t index,
                             const vyre_backend_option_value *options,
                             vyre_backend_device *out, vyre_status *st) {
  (void)table, (void)index, (void)options;
  if (STUB_OPEN != VYRE_OK) {
    return vyre_backend_fail(st, STUB_OPEN, VYRE_KIND_DEVICE_UNAVAILABLE,
                             "plug it in", "the device has no power");
  }
  out->caps = (vyre_device_caps){.max_workgroup = {64, 64, 64},
                                 .max_workgroup_invocations = 64,
                                 .max_buffer_bytes = 1 << 20,
                                 .borrows_host_memory = true,
                                 .has_f64 = true,
                                 .has_u64 = true,
                                 .has_atomics64 = true,
                                 .is_stub = true};
  return VYRE_OK;
}

static vyre_code kernel_load(void *device, const vyre_backend_kernel *kernel,
                             void **out, vyre_status *st) {
  (void)device, (void)out, (void)st;
  return kernel->code_bytes > 0 ? STUB_LOAD : VYRE_UNKNOWN;
}

static vyre_code launch(void *device, void *kernel, vyre_backend_launch *launch,
                        vyre_status *st) {
  (void)device, (void)kernel, (void)launch, (void)st;
  return VYRE_OK;
}

extern const vyre_backend stub_table;
const vyre_backend stub_table = {.abi = STUB_ABI,
                                 .struct_size = STUB_SIZE,
                                 .name = STUB_NAME,
                                 .form = VYRE_BACKEND_FORM_BINARY,
                                 .is_exact = true,
                                 .describe = describe,
                                 .device_open = device_open,
                                 .kernel_load = kernel_load,
                                 .launch = launch};

#ifdef STUB_NULL
__attribute__((visibility("default"))) const vyre_backend *vyre_backend_plugin(
    void);
const vyre_backend *vyre_backend_plugin(void) {
  return NULL;
}
#elif defined STUB_CALLS
__attribute__((visibility("default"))) const vyre_backend *vyre_backend_plugin(
    void);
/* The test has its own copy of the library, which this file cannot name. */
const vyre_backend *vyre_backend_plugin(void) {
  const char *address = getenv("VYRE_STUB_CALL");
  void (*call)(void) =
      address ? (void (*)(void))strtoull(address, NULL, 16) : NULL;
  if (call) call();
  return &stub_table;
}
__attribute__((constructor)) static void on_load(void) {
  (void)vyre_backend_plugin();
}
#elif !defined STUB_HIDDEN
VYRE_BACKEND_PLUGIN(stub_table)
#endif
