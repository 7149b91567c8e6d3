/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A grid is inferred along x only: a workgroup of more axes without a grid is
 * refused in every form of dispatch, before anything runs. */

#include "support/check.h"
#include "support/driver.h"

/* One pixel per invocation of a picture of 4 x 4, or 4 x 2 x 2. */
#define PIXELS(workgroup, over)                                    \
  "kernel k workgroup(" workgroup ")" over                         \
  "\nbuffer y : write u32[16] @0;\n"                               \
  "{ let i = global_id.x + 4 * (global_id.y + 2 * global_id.z);\n" \
  "  if (i < len(y)) y[i] = i + 1; }\n"

static const struct {
  const char *text;
  vyre_compile_options options;
  uint32_t grid[3]; /* grid that covers the picture */
  bool is_inferred; /* a grid along x is enough */
} cases[] = {
    {PIXELS("2, 2", ""), {{0}}, {2, 2, 1}, false},
    {PIXELS("2, 2", " over(y)"), {{0}}, {2, 2, 1}, false},
    {PIXELS("2, 1, 2", ""), {{0}}, {2, 2, 1}, false},
    /* one uniform for all forms */
    {PIXELS("4, 4", ""), {{0}}, {1, 1, 1}, false},
    {PIXELS("1, 1, 2", ""), {{0}}, {4, 4, 1}, false},
    {PIXELS("16", ""), {{4, 4, 1}}, {1, 1, 1}, false},
    {PIXELS("2, 2", ""), {{16, 1, 1}}, {1, 1, 1}, true},
    {PIXELS("16", ""), {{0}}, {1, 1, 1}, true},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct picture {
  uint32_t y[16];
  vyre_output output;
  vyre_dispatch_desc desc;
} picture;

static void picture_make(picture *p, const uint32_t grid[3]) {
  *p = (picture){.desc = {.output_count = 1}};
  p->output = vyre_output_bytes(p->y, sizeof p->y);
  p->desc.outputs = &p->output;
  if (grid) memcpy(p->desc.grid, grid, sizeof p->desc.grid);
}

static bool is_whole(const picture *p) {
  for (uint32_t i = 0; i < 16; i++) {
    if (p->y[i] != i + 1) return false;
  }
  return true;
}

static vyre_code record(vyre_device *device, vyre_pipeline *pipeline,
                        picture *p, vyre_status *st) {
  vyre_recording *rec;
  vyre_status own;
  uint32_t slot;
  vyre_slot_binding out = {.data = p->y, .size = sizeof p->y};
  CHECK_OK(vyre_recording_create(device, &rec, &own), own);
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &out, &slot, &own), own);
  vyre_slot_range to = vyre_slot_range_all(slot);
  vyre_recorded_dispatch d = {.outputs = &to, .output_count = 1};
  memcpy(d.grid, p->desc.grid, sizeof d.grid);
  vyre_code code = vyre_recording_add_dispatch(rec, pipeline, &d, st);
  if (code == VYRE_OK) code = vyre_recording_seal(rec, st);
  if (code == VYRE_OK) code = vyre_recording_replay(rec, NULL, NULL, st);
  vyre_recording_release(rec);
  return code;
}

enum { FORMS = 6 };

/* Dispatches one picture with each form. */
static vyre_code draw(int form, const rig *r, vyre_pipeline *pipeline,
                      const vyre_compile_options *options, picture *p,
                      vyre_status *st) {
  picture other;
  vyre_fence *fence;
  vyre_code code;
  const uint32_t some[3] = {1, 1, 1};
  picture_make(&other, some);
  vyre_dispatch_desc both[] = {other.desc, p->desc};
  switch (form) {
    case 0:
      return vyre_dispatch(pipeline, &p->desc, st);
    case 1:
      return vyre_submit(pipeline, both, 2, NULL, st);
    case 2:
      code = vyre_submit(pipeline, &p->desc, 1, &fence, st);
      if (code == VYRE_OK) code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
      vyre_fence_release(fence);
      return code;
    case 3:
      p->desc.variant = options;
      return vyre_device_run_program(r->device, r->program, &p->desc, st);
    case 4:
      return record(r->device, pipeline, p, st);
    default:
      return vyre_dispatch_borrowed_into(pipeline, NULL, 0, &p->output, 1,
                                         &p->desc, st);
  }
}

TEST(more_axes_than_x_need_a_grid_in_every_form) {
  for (size_t i = 0; i < CASES; i++) {
    rig r = rig_open(cases[i].text, NULL);
    vyre_pipeline *pipeline;
    vyre_status st;
    CHECK_OK(vyre_pipeline_compile(r.device, r.program, &cases[i].options,
                                   &pipeline, NULL, &st),
             st);
    for (int form = 0; form < FORMS; form++) {
      picture p;
      picture_make(&p, NULL);
      vyre_code code = draw(form, &r, pipeline, &cases[i].options, &p, &st);
      if (cases[i].is_inferred) {
        CHECK_OK(code, st);
        CHECK(is_whole(&p));
      } else {
        CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_REQUIRED);
        CHECK_HAS(st.message, "'k'");
        CHECK_HAS(st.fix, "set the grid");
        CHECK_U64(status_number(&st, "workgroup_y"),
                  vyre_pipeline_workgroup(pipeline)[1]);
        CHECK_U64(p.y[0], 0);
      }
      /* The fix of the message works. */
      picture_make(&p, cases[i].grid);
      CHECK_OK(draw(form, &r, pipeline, &cases[i].options, &p, &st), st);
      CHECK(is_whole(&p));
    }
    vyre_pipeline_release(pipeline);
    rig_close(&r);
  }
}

TEST(the_grid_that_would_run_is_refused_the_same_way) {
  for (size_t i = 0; i < CASES; i++) {
    rig r = rig_open(cases[i].text, NULL);
    vyre_status st;
    picture p;
    uint32_t grid[3];
    const uint32_t *size = vyre_pipeline_workgroup(r.pipeline);
    picture_make(&p, NULL);
    vyre_code code = vyre_dispatch_grid(r.pipeline, &p.desc, grid, &st);
    if (size[1] == 1 && size[2] == 1) {
      CHECK_OK(code, st);
    } else {
      CHECK_FAILS(code, st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_REQUIRED);
    }
    /* An axis of 0 together with others counts as 1. */
    p.desc.grid[1] = 3;
    CHECK_OK(vyre_dispatch_grid(r.pipeline, &p.desc, grid, &st), st);
    CHECK(grid[0] == 1 && grid[1] == 3 && grid[2] == 1);
    rig_close(&r);
  }
}

TEST_MAIN(TEST_ENTRY(more_axes_than_x_need_a_grid_in_every_form),
          TEST_ENTRY(the_grid_that_would_run_is_refused_the_same_way))
