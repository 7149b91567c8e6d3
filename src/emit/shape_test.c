/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is claimed of small kernels, exactly: not too much and not too little.
 * Whether claims hold is seen by shape_run_test.c. */
#include "emit/shape.h"

#include <inttypes.h>

#include "vyre/module.h"

#include "emit/shape_testing.h"
#include "lower/low_testing.h"
#include "support/check.h"

/* A text in the kernel language, down to its shapes. */
typedef struct found {
  vyre_module *module;
  vyre_arena arena;
  const vyre__low_kernel *kernel;
  vyre__regions regions;
  vyre__shapes shapes;
} found;

static void find(const char *text, uint32_t width, found *f) {
  vyre_status st = {0};
  *f = (found){0};
  vyre_arena_init(&f->arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(text, strlen(text), "k.vyre", (vyre_allocator){0},
                             &f->module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(f->module, 0), NULL,
                       VYRE__PASS_CONTROL, &f->arena, &f->kernel, NULL, &st),
           st);
  CHECK_OK(vyre__regions_build(f->kernel, f->kernel->phases[0], false,
                               &f->arena, &f->regions, &st),
           st);
  CHECK_OK(vyre__shapes_find(&f->regions, width, &f->arena, &f->shapes, &st),
           st);
}

static void found_finish(found *f) {
  vyre_arena_finish(&f->arena);
  vyre_module_release(f->module);
}

/* "group", "linear 4 @2" (stride 4, aligned to 2^2), "constant 7". */
static const char *text_of(vyre__shape s, char out[64]) {
  static const char *const words[] = {"constant", "group", "vector", "linear",
                                      "varying"};
  const char *word = s.kind < 5 ? words[s.kind] : "?";
  char number[32] = "", aligned[8] = "";
  if (s.kind == VYRE__SHAPE_CONSTANT || s.kind == VYRE__SHAPE_LINEAR) {
    snprintf(number, sizeof number, " %" PRId64,
             s.stride > UINT32_MAX ? (int64_t)s.stride : (int32_t)s.stride);
  }
  if (s.aligned && s.kind != VYRE__SHAPE_CONSTANT) {
    snprintf(aligned, sizeof aligned, " @%u", s.aligned);
  }
  snprintf(out, 64, "%s%s%s", word, number, aligned);
  return out;
}

static uint32_t last_of(const found *f, vyre__low_op op) {
  uint32_t last = 0;
  for (uint32_t at = f->regions.begin; at < f->regions.end; at++) {
    if (f->kernel->code[at].op == op) last = at;
  }
  CHECK(last);
  return last;
}

TEST(values_have_their_shapes) {
  unsigned failed = 0;
  for (size_t i = 0; i < VALUE_CASES; i++) {
    const value_case *c = &value_cases[i];
    char body[512], text[SHAPE_TEXT], got[64];
    found f;
    snprintf(body, sizeof body, "if (n > 100000) { z[0] = 1; } y[i] = %s;",
             c->value);
    shape_kernel(text, c->size, body);
    find(text, c->width, &f);
    uint32_t at = last_of(&f, VYRE__LOW_STORE);
    text_of(vyre__shape_of(&f.shapes, f.kernel->code[at].b), got);
    if (strcmp(got, c->want) != 0) {
      printf("    (%s) by %u: %s is %s, not %s\n", c->size, c->width, c->value,
             got, c->want);
      failed++;
    }
    found_finish(&f);
  }
  CHECK_U64(failed, 0);
}

/* --- control flow -----------------------------------------------------------*/

static void add(char out[1024], const char *text) {
  size_t length = strlen(out);
  snprintf(out + length, 1024 - length, "%s%s", length ? " " : "", text);
}

static void tell_flow(const found *f, char out[1024]) {
  out[0] = '\0';
  for (uint32_t at = f->regions.begin; at < f->regions.end; at++) {
    const vyre__low_inst *inst = &f->kernel->code[at];
    bool parts = f->shapes.parts_lanes[at - f->shapes.begin];
    char shape[64], word[80];
    if (inst->op == VYRE__LOW_IF) add(out, parts ? "IF" : "if");
    if (inst->op == VYRE__LOW_LOOP) add(out, parts ? "LOOP" : "loop");
    if (inst->op != VYRE__LOW_STORE || inst->aux != 1) continue;
    snprintf(word, sizeof word, "<%s>",
             text_of(vyre__shape_of(&f->shapes, inst->b), shape));
    add(out, word);
  }
}

TEST(control_flow_parts_lanes) {
  unsigned failed = 0;
  for (size_t i = 0; i < FLOW_CASES; i++) {
    const flow_case *c = &flow_cases[i];
    char text[SHAPE_TEXT], got[1024];
    found f;
    shape_kernel(text, c->size, c->body);
    find(text, c->width, &f);
    tell_flow(&f, got);
    if (strcmp(got, c->want) != 0) {
      printf("    %s:\n      %s\n      not %s\n", c->name, got, c->want);
      failed++;
    }
    found_finish(&f);
  }
  CHECK_U64(failed, 0);
}

TEST_MAIN(TEST_ENTRY(values_have_their_shapes),
          TEST_ENTRY(control_flow_parts_lanes))
