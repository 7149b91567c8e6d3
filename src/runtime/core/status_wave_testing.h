/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls of wave graphs that succeed. status_test.c includes this file after it
 * has defined OK and its world `w`. */
#ifndef VYRE_RUNTIME_CORE_STATUS_WAVE_TESTING_H
#define VYRE_RUNTIME_CORE_STATUS_WAVE_TESTING_H

/* Performs the steps of a graph of two waves up to number @p last, with the
 * status of the test in that step only. */
static vyre_code use_wave_graph(int last, vyre_status *st) {
  vyre_wave_graph *graph = NULL;
  uint32_t x, y, first, other;
  const vyre_wave_plan *plan;
  const vyre_wave_resource rx = {.name = "x", .size = 16, .is_input = true};
  const vyre_wave_resource ry = {.name = "y", .size = 16, .is_output = true};
  vyre_code code = VYRE_OK;
  for (int i = 0; i <= last && code == VYRE_OK; i++) {
    vyre_status *now = i == last ? st : NULL;
    const vyre_wave_binding bindings[] = {{.resource = 0}, {.resource = 1}};
    const vyre_wave_desc desc = {.bindings = bindings, .binding_count = 2};
    const vyre_wave_input in = {0, w.x, 16};
    const vyre_wave_output out = {1, w.y, 16};
    const vyre_wave_run run = {
        .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
    const vyre_recorded_wave_io io[] = {{0, vyre_slot_range_all(w.slots[0])},
                                        {1, vyre_slot_range_all(w.slots[1])}};
    const vyre_recorded_wave_graph recorded = {
        .inputs = io, .input_count = 1, .outputs = io + 1, .output_count = 1};
    switch (i) {
      case 0:
        code = vyre_wave_graph_create(w.r.device, NULL, &graph, now);
        break;
      case 1:
        code = vyre_wave_graph_add_resource(graph, &rx, &x, now);
        if (code == VYRE_OK)
          code = vyre_wave_graph_add_resource(graph, &ry, &y, now);
        break;
      case 2:
        code =
            vyre_wave_graph_add_wave(graph, w.r.pipeline, &desc, &first, now);
        if (code == VYRE_OK)
          code =
              vyre_wave_graph_add_wave(graph, w.r.pipeline, &desc, &other, now);
        break;
      case 3:
        code = vyre_wave_graph_add_dependency(graph, 0, 1, now);
        break;
      case 4:
        code = vyre_wave_graph_repeat(graph, 0, 0, 2, 0, now);
        break;
      case 5:
        code = vyre_wave_graph_plan(graph, &plan, now);
        break;
      case 6:
        code = vyre_wave_graph_seal(graph, now);
        break;
      case 7:
        code = vyre_wave_graph_run(graph, &run, NULL, now);
        break;
      default:
        code = vyre_recording_add_wave_graph(w.open, graph, &recorded, now);
    }
  }
  vyre_wave_graph_release(graph);
  return code;
}

OK(vyre_wave_graph_create) {
  return use_wave_graph(0, st);
}
OK(vyre_wave_graph_add_resource) {
  return use_wave_graph(1, st);
}
OK(vyre_wave_graph_add_wave) {
  return use_wave_graph(2, st);
}
OK(vyre_wave_graph_add_dependency) {
  return use_wave_graph(3, st);
}
OK(vyre_wave_graph_repeat) {
  return use_wave_graph(4, st);
}
OK(vyre_wave_graph_plan) {
  return use_wave_graph(5, st);
}
OK(vyre_wave_graph_seal) {
  return use_wave_graph(6, st);
}
OK(vyre_wave_graph_run) {
  return use_wave_graph(7, st);
}
OK(vyre_recording_add_wave_graph) {
  return use_wave_graph(8, st);
}

#endif
