/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "commands/package_text.h"

#include <string.h>

#include "cli/text.h"

static void put_code(sink *out, const vyre_package_code *code) {
  sink_format(out, "  %-8.40s %-18.40s %8llu bytes", code->backend,
              code->target, (unsigned long long)code->bytes);
  sink_format(out, ", workgroup %u x %u x %u", (unsigned)code->workgroup[0],
              (unsigned)code->workgroup[1], (unsigned)code->workgroup[2]);
  if (code->ulp_budget > 0) {
    sink_format(out, ", %u ulp", (unsigned)code->ulp_budget);
  }
  if (code->counts_iterations) sink_text(out, ", counts iterations");
  sink_text(out, "\n");
}

void put_package(sink *out, const vyre_package *package) {
  vyre_package_kernel kernel;
  vyre_package_code code;
  for (size_t i = 0; vyre_package_get_kernel(package, i, &kernel); i++) {
    sink_text(out, "kernel ");
    show_bytes(out, kernel.name, strlen(kernel.name));
    sink_format(out, ", program of %llu bytes\n",
                (unsigned long long)kernel.program_bytes);
    for (size_t k = 0; vyre_package_get_code(package, i, k, &code); k++) {
      put_code(out, &code);
    }
  }
}

static void json_code(json_out *json, const vyre_package_code *code) {
  json_open(json, NULL, '{');
  json_text(json, "backend", code->backend);
  json_text(json, "target", code->target);
  json_u64(json, "bytes", code->bytes);
  json_open(json, "workgroup", '[');
  for (int axis = 0; axis < 3; axis++) {
    json_u64(json, NULL, code->workgroup[axis]);
  }
  json_close(json, ']');
  json_u64(json, "ulp_budget", code->ulp_budget);
  json_bool(json, "counts_iterations", code->counts_iterations);
  json_u64(json, "version", code->version);
  json_close(json, '}');
}

void json_package(json_out *json, const vyre_package *package) {
  vyre_package_kernel kernel;
  vyre_package_code code;
  char hash[VYRE_HASH128_TEXT];
  json_open(json, "kernels", '[');
  for (size_t i = 0; vyre_package_get_kernel(package, i, &kernel); i++) {
    json_open(json, NULL, '{');
    json_text(json, "kernel", kernel.name);
    vyre_hash128_text(kernel.fingerprint, hash);
    json_text(json, "fingerprint", hash);
    json_u64(json, "program_bytes", kernel.program_bytes);
    json_open(json, "codes", '[');
    for (size_t k = 0; vyre_package_get_code(package, i, k, &code); k++) {
      json_code(json, &code);
    }
    json_close(json, ']');
    json_close(json, '}');
  }
  json_close(json, ']');
}
