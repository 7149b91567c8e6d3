/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzz target for flow files. Files that are accepted name resources and waves
 * that exist, and ranges inside them; errors have a fix and a line. */
#include "flow/flow_file.h"
#include "io/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_sound(const flow_file *file) {
  MUST(file->wave_count > 0);
  for (size_t i = 0; i < file->resource_count; i++) {
    const flow_resource *r = &file->resources[i];
    MUST(r->name[0] && strlen(r->name) <= FLOW_MAX_NAME && r->size > 0);
    MUST(!(r->is_input && r->is_kept));
  }
  for (size_t i = 0; i < file->wave_count; i++) {
    const flow_wave *wave = &file->waves[i];
    MUST(wave->label[0] && wave->kernel[0]);
    for (size_t k = 0; k < wave->argument_count; k++) {
      const flow_argument *a = &wave->arguments[k];
      if (a->constant) continue;
      MUST(a->resource < file->resource_count && a->count > 0);
      MUST(a->first + a->count <= file->resources[a->resource].count);
    }
  }
  for (size_t i = 0; i < file->order_count; i++) {
    MUST(file->orders[i].before < file->wave_count);
    MUST(file->orders[i].after < file->wave_count);
  }
  if (!file->repeats) return;
  MUST(file->flag < file->resource_count && file->max_iterations > 0);
  MUST(file->flag_offset + 4 <= file->resources[file->flag].size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {.label = "fuzz.flow", .text = (const char *)data, .length = size};
  vyre_arena arena = {0};
  problem wrong = {0};
  flow_file file;
  if (size > 0 && flow_file_read(&in, &arena, &file, &wrong)) {
    must_be_sound(&file);
  } else if (size > 0) {
    must_be_told(&wrong, &in, &arena);
  }
  vyre_arena_deinit(&arena);
  return 0;
}
