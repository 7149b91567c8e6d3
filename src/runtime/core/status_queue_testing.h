/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls of work queues that succeed. status_test.c includes this file after it
 * has defined OK and its world `w`. */
#ifndef VYRE_RUNTIME_CORE_STATUS_QUEUE_TESTING_H
#define VYRE_RUNTIME_CORE_STATUS_QUEUE_TESTING_H

/* Performs the steps of a queue of one item up to number @p last, with the
 * status of the test in that step only. */
static vyre_code use_queue(int last, vyre_status *st) {
  static const char kernel[] =
      "kernel k queue(u32)\n"
      "buffer x : read_write u32[] @0;\n"
      "{ atomic_add(x[0], 1); if (item < 3) push(item + 1); }\n";
  static const uint32_t item = 1;
  const vyre_queue_options options = {.capacity = 4};
  const vyre_input in = vyre_input_bytes(w.x, 16);
  const vyre_output out = vyre_output_bytes(w.x, 16);
  const vyre_slot_range range = vyre_slot_range_all(w.slots[0]);
  const vyre_recorded_queue recorded = {.resources = &range,
                                        .resource_count = 1};
  const vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  vyre_module *module;
  vyre_queue *queue = NULL;
  vyre_queue_state state;
  uint64_t count;
  vyre_code code = VYRE_OK;
  CHECK(vyre_module_parse(kernel, strlen(kernel), "k.vyre", (vyre_allocator){0},
                          &module, NULL, NULL) == VYRE_OK);
  for (int i = 0; i <= last && code == VYRE_OK; i++) {
    vyre_status *now = i == last ? st : NULL;
    switch (i) {
      case 0:
        code = vyre_queue_create(w.r.device, vyre_module_kernel(module, 0),
                                 &options, &queue, NULL, now);
        break;
      case 1:
        code = vyre_queue_fill(queue, &item, 1, now);
        break;
      case 2:
        code = vyre_queue_fill_from_buffer(queue, w.resident, 0, 1, now);
        break;
      case 3:
        code = vyre_queue_get_state(queue, &state, now);
        break;
      case 4:
        code = vyre_queue_resize(queue, 8, now);
        break;
      case 5:
        code = vyre_queue_run(queue, &desc, NULL, NULL, now);
        break;
      case 6:
        code = vyre_queue_take(queue, NULL, 0, &count, now);
        break;
      default:
        code = vyre_recording_add_queue(w.open, queue, &recorded, now);
    }
  }
  vyre_queue_release(queue);
  vyre_module_release(module);
  return code;
}

OK(vyre_queue_create) {
  return use_queue(0, st);
}
OK(vyre_queue_fill) {
  return use_queue(1, st);
}
OK(vyre_queue_fill_from_buffer) {
  return use_queue(2, st);
}
OK(vyre_queue_get_state) {
  return use_queue(3, st);
}
OK(vyre_queue_resize) {
  return use_queue(4, st);
}
OK(vyre_queue_run) {
  return use_queue(5, st);
}
OK(vyre_queue_take) {
  return use_queue(6, st);
}
OK(vyre_recording_add_queue) {
  return use_queue(7, st);
}

#endif
