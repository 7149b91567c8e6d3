/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares random programs with the reference device. */
#include "cts/cases/random_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cts/harness/dispatch_forms.h"

static const struct {
  const char *word;
  size_t offset;
} switches[] = {
#define SWITCH(word, field) {word, offsetof(vyre_random_program_options, field)}
    SWITCH("no-f64", no_f64),
    SWITCH("no-int64", no_int64),
    SWITCH("no-narrow", no_narrow),
    SWITCH("no-shared", no_shared),
    SWITCH("no-barriers", no_barriers),
    SWITCH("no-grid-barriers", no_grid_barriers),
    SWITCH("no-atomics", no_atomics),
    SWITCH("no-atomics64", no_atomics64),
    SWITCH("only-add64", only_add64),
    SWITCH("no-out-of-range", no_out_of_range),
    SWITCH("no-loops", no_loops),
    SWITCH("no-functions", no_functions),
    SWITCH("math", has_math),
#undef SWITCH
};

static bool read_word(const char *word, size_t length,
                      vyre_random_program_options *out) {
  if (length > 5 && strncmp(word, "size=", 5) == 0) {
    out->statements = (uint32_t)strtoul(word + 5, NULL, 10);
    return out->statements > 0;
  }
  for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
    if (strlen(switches[i].word) != length ||
        memcmp(switches[i].word, word, length) != 0) {
      continue;
    }
    *(bool *)(void *)((char *)out + switches[i].offset) = true;
    return true;
  }
  return false;
}

static vyre_random_program_options read_words(cts *c, const char *words) {
  vyre_random_program_options options = {0};
  char *end;
  options.seed = strtoull(words, &end, 10);
  bool fine = end != words;
  while (fine && *end == ':') {
    size_t length = strcspn(end + 1, ":");
    fine = read_word(end + 1, length, &options);
    end += 1 + length;
  }
  if (!fine || *end) {
    cts_fail(c, __FILE__, __LINE__, "invalid program options '%s'", words);
  }
  vyre_random_program_options_fit(&options, c->caps);
  return options;
}

static vyre_output *make_outputs(cts *c, const vyre_random_program *g) {
  size_t count;
  const vyre_output *sizes = vyre_random_program_outputs(g, &count);
  vyre_output *made = cts_memory(c, count * sizeof *made);
  for (size_t i = 0; i < count; i++) {
    made[i].size = sizes[i].size;
    made[i].data = cts_memory(c, sizes[i].size);
  }
  return made;
}

static void check_outputs(cts *c, const vyre_pipeline *pipeline,
                          const vyre_output *got, const vyre_output *want) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index == VYRE_NO_INDEX) continue;
    CTS_SAME(c, b->name, got[b->output_index].data, want[b->output_index].data,
             want[b->output_index].size);
  }
}

/* Picks a dispatch form that can run the program; each seed picks another one.
 */
static const cts_form *choose_way(uint64_t seed, size_t resource_count) {
  for (size_t i = (size_t)(seed % cts_form_count);;
       i = (i + 1) % cts_form_count) {
    if (cts_form_accepts(&cts_forms[i], resource_count, false))
      return &cts_forms[i];
  }
}

void cts_run_program(cts *c, const char *words) {
  vyre_random_program_options options = read_words(c, words);
  vyre_random_program *g;
  vyre_dispatch_desc desc = {0};
  CTS_OK(c,
         vyre_random_program_create(&options, (vyre_allocator){0}, &g, &c->st));
  vyre_program *program = vyre_random_program_program(g);
  desc.inputs = vyre_random_program_inputs(g, &desc.input_count);
  vyre_output *want = make_outputs(c, g), *got = make_outputs(c, g);
  (void)vyre_random_program_outputs(g, &desc.output_count);
  memcpy(desc.grid, vyre_random_program_grid(g), sizeof desc.grid);
  desc.outputs = want;
  cts_oracle(c, program, &desc);
  desc.outputs = got;
  vyre_pipeline *pipeline = cts_compile(c, program, 0);
  CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
  check_outputs(c, pipeline, got, want);
  CTS_LAUNCHED(c, 1);
  const cts_form *form = choose_way(options.seed, cts_resource_count(program));
  cts_run run = {.c = c, .program = program, .pipeline = pipeline};
  run.desc = desc;
  for (size_t i = 0; i < desc.output_count; i++) {
    memset(got[i].data, 0xa5, got[i].size);
  }
  vyre_code code = form->run(&run, &c->st);
  if (code != VYRE_OK) (void)printf("by the form '%s':\n", form->name);
  CTS_OK(c, code);
  check_outputs(c, pipeline, got, want);
  CTS_LAUNCHED(c, UINT64_C(1) + form->launches);
  vyre_random_program_release(g);
}
