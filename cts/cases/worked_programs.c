/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Programs for all dispatch forms, with hand-computed results. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cts/harness/dispatch_forms.h"

static const struct {
  const char *name, *text;
  size_t inputs, outputs, resources;
  uint32_t in[4], out[4]; /* sizes in words */
} kernels[CTS_JOBS] = {
    /* Input, input_output, output of declared size, uniform. */
    {"mixed",
     "kernel mixed workgroup(8) over(y)\n"
     "buffer x : read u32[] @0;\n"
     "buffer y : read_write u32[] @1;\n"
     "buffer z : read_write u32[4] @2 output;\n"
     "uniform a : u32 @3;\n"
     "{\n"
     "    let i = global_id.x;\n"
     "    if (i >= len(y)) return;\n"
     "    y[i] = a * x[i] + y[i];\n"
     "    atomic_add(z[i % 4], y[i]);\n"
     "}\n",
     3,
     2,
     4,
     {37, 37, 1},
     {37, 4}},
    /* Output that is sized at run time. */
    {"sized",
     "kernel sized workgroup(4) over(y)\n"
     "buffer x : read f32[] @0;\n"
     "buffer y : write f32[] @1 output;\n"
     "{ if (global_id.x < len(y)) y[global_id.x] = sqrt(x[global_id.x]); }\n",
     1,
     1,
     2,
     {19},
     {19}},
    /* Buffers of a megakernel. */
    {"row",
     "kernel row workgroup(1)\n"
     "buffer control : read_write u32[4] @0;\n"
     "buffer ring : read_write u32[] @1;\n"
     "buffer notes : read_write u32[] @2;\n"
     "buffer io : read_write u32[] @3;\n"
     "{\n"
     "    if (global_id.x > 0) return;\n"
     "    for (let k = 0u; k < len(ring); k++) {\n"
     "        notes[k % len(notes)] = notes[k % len(notes)] ^ ring[k];\n"
     "        io[k % len(io)] = io[k % len(io)] + ring[k] * 7;\n"
     "        ring[k] = 0;\n"
     "    }\n"
     "    control[0] = control[0] + len(ring);\n"
     "}\n",
     4,
     4,
     4,
     {4, 20, 7, 5},
     {4, 20, 7, 5}},
};

static void expect_mixed(cts_job *j) {
  const uint32_t *x = j->data[0], *y = j->data[1], a = j->data[2][0];
  memset(j->want[1], 0, sizeof j->want[1]);
  for (uint32_t i = 0; i < 37; i++) {
    j->want[0][i] = a * x[i] + y[i];
    j->want[1][i % 4] += j->want[0][i];
  }
}

static void expect_sized(cts_job *j) {
  for (int i = 0; i < 19; i++) {
    float x = (float)i * 1.37f, y = sqrtf(x);
    memcpy(&j->data[0][i], &x, 4);
    memcpy(&j->want[0][i], &y, 4);
  }
}

static void expect_row(cts_job *j) {
  memcpy(j->want, j->data, sizeof j->want);
  for (uint32_t k = 0; k < 20; k++) {
    j->want[2][k % 7] ^= j->data[1][k];
    j->want[3][k % 5] += j->data[1][k] * 7;
    j->want[1][k] = 0;
  }
  j->want[0][0] += 20;
}

void cts_job_make(cts *c, size_t which, bool compiles, cts_job *out) {
  static void (*const expect[CTS_JOBS])(cts_job *) = {expect_mixed,
                                                      expect_sized, expect_row};
  uint64_t state = c->seed + which;
  memset(out, 0, sizeof *out);
  for (int i = 0; i < 4; i++) {
    for (int k = 0; k < CTS_JOB_WORDS; k++) {
      out->data[i][k] = (uint32_t)cts_random(&state);
    }
  }
  expect[which](out);
  out->run.c = c;
  out->run.program = cts_program(c, kernels[which].text);
  if (compiles) {
    out->run.pipeline = cts_compile(c, out->run.program, 0);
  }
  for (size_t i = 0; i < kernels[which].inputs; i++) {
    out->in[i] =
        vyre_input_bytes(out->data[i], 4 * (size_t)kernels[which].in[i]);
  }
  for (size_t i = 0; i < kernels[which].outputs; i++) {
    out->out[i] =
        vyre_output_bytes(out->got[i], 4 * (size_t)kernels[which].out[i]);
  }
  out->run.desc.inputs = out->in;
  out->run.desc.input_count = kernels[which].inputs;
  out->run.desc.outputs = out->out;
  out->run.desc.output_count = kernels[which].outputs;
  cts_job_reset(out);
}

void cts_job_reset(cts_job *job) {
  /* So that zeroed outputs are noticed. */
  memset(job->got, 0xa5, sizeof job->got);
}

void cts_job_check(cts *c, const cts_job *job, const char *what) {
  for (size_t i = 0; i < job->run.desc.output_count; i++) {
    CTS_SAME(c, what, job->got[i], job->want[i], job->out[i].size);
  }
}

const char *cts_job_name(size_t which) {
  return kernels[which].name;
}

bool cts_job_fits(size_t which, const cts_form *form) {
  return cts_form_accepts(form, kernels[which].resources, true);
}

size_t cts_job_for(const cts_form *form) {
  size_t which = 0;
  while (which < CTS_JOBS - 1 && !cts_job_fits(which, form)) which++;
  return which;
}
