/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls of routers and of tuning that succeed. status_test.c includes this
 * file after it has defined OK and its world `w`. */
#ifndef VYRE_RUNTIME_CORE_STATUS_ROUTER_TESTING_H
#define VYRE_RUNTIME_CORE_STATUS_ROUTER_TESTING_H

/* Opens a router of "ref" for the call of a test. */
static vyre_router *router_open(void) {
  vyre_router *router = NULL;
  vyre_router_options options = {.devices = "ref"};
  CHECK(vyre_router_open(w.r.context, &options, &router, NULL) == VYRE_OK);
  return router;
}
static vyre_route *route_open(vyre_router *router) {
  vyre_route *route = NULL;
  CHECK(vyre_router_compile(router, w.r.program, NULL, &route, NULL, NULL) ==
        VYRE_OK);
  return route;
}
OK(vyre_router_open) {
  vyre_router *router;
  vyre_router_options options = {.devices = "ref"};
  vyre_code code = vyre_router_open(w.r.context, &options, &router, st);
  vyre_router_release(router);
  return code;
}
OK(vyre_router_save) {
  vyre_router *router = router_open();
  vyre_code code = vyre_router_save(router, st);
  vyre_router_release(router);
  return code;
}
OK(vyre_router_compile) {
  vyre_router *router = router_open();
  vyre_route *route;
  vyre_code code =
      vyre_router_compile(router, w.r.program, NULL, &route, NULL, st);
  vyre_route_release(route);
  vyre_router_release(router);
  return code;
}
OK(vyre_route_dispatch) {
  vyre_router *router = router_open();
  vyre_route *route = route_open(router);
  vyre_code code = vyre_route_dispatch(route, &w.desc, NULL, st);
  vyre_route_release(route);
  vyre_router_release(router);
  return code;
}
OK(vyre_shadow_replay) {
  vyre_router *router = router_open();
  vyre_route *route = route_open(router);
  vyre__bytes bytes = {0};
  bool is_same;
  CHECK(vyre__shadow_write(route, &w.desc, &bytes));
  vyre_code code = vyre_shadow_replay(router, bytes.data, bytes.size,
                                      (vyre_writer){0}, &is_same, st);
  vyre__bytes_deinit(&bytes);
  vyre_route_release(route);
  vyre_router_release(router);
  return code;
}
/* Runs one of the functions of router buffers. */
static vyre_code use_router_buffer(int which, vyre_status *st) {
  vyre_router *router = router_open();
  vyre_buffer buffer;
  vyre_code code =
      vyre_router_buffer_create(router, 16, &buffer, which == 0 ? st : NULL);
  if (which == 1) code = vyre_router_buffer_destroy(router, buffer, st);
  if (which == 2) {
    code = vyre_router_buffer_upload(router, buffer, 0, w.x, 16, st);
  }
  if (which == 3) {
    code = vyre_router_buffer_download(router, buffer, 0, w.x, 16, st);
  }
  vyre_router_release(router);
  return code;
}
OK(vyre_router_buffer_create) {
  return use_router_buffer(0, st);
}
OK(vyre_router_buffer_destroy) {
  return use_router_buffer(1, st);
}
OK(vyre_router_buffer_upload) {
  return use_router_buffer(2, st);
}
OK(vyre_router_buffer_download) {
  return use_router_buffer(3, st);
}
OK(vyre_tune) {
  vyre_tuning *tuning;
  const vyre_tune_options trial = {.max_ns = 1, .is_trial = true};
  vyre_code code =
      vyre_tune(w.r.device, w.r.program, &w.desc, &trial, &tuning, st);
  vyre_tuning_release(tuning);
  return code;
}
OK(vyre_tune_forget) {
  return vyre_tune_forget(w.r.device, w.r.program, NULL, st);
}

#endif
