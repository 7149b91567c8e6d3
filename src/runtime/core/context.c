/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Contexts: creation from options and environment variables, and the default
 * one. */
#include "vyre/context.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "hal/device.h"
#include "runtime/core/backend_list.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/options.h"
#include "runtime/core/trace.h"
#include "runtime/tune/apply.h"

/* Allocator of all objects of a context: a test can make the nth allocation
 * fail. */
static void *resize(void *self, void *ptr, size_t old_size, size_t new_size) {
  vyre_context *context = self;
  bool is_hit = new_size > 0 && vyre__fault(context, VYRE_FAULT_ALLOCATION);
  if (new_size > 0) vyre__memory_inject(is_hit);
  if (is_hit) return NULL;
  return vyre__resize(context->base_allocator, ptr, old_size, new_size);
}

/* A privileged (setuid) process ignores the environment: its caller must not
 * choose which files it reads and writes. */
static const char *environment(const char *variable) {
  return vyre__is_privileged() ? NULL : getenv(variable);
}

const char *vyre__environment(const char *variable) {
  return environment(variable);
}

/* Returns the option, or else the environment variable. Returns NULL for "". */
static const char *option_or_environment(const char *option,
                                         const char *variable) {
  const char *text = option ? option : environment(variable);
  return text && text[0] ? text : NULL;
}

static void destroy(vyre_context *context) {
  vyre__trace_close(context);
  vyre__tunings_free(context);
  vyre__cache_deinit(&context->cache, context->allocator);
  vyre__backend_list_deinit(context);
  vyre__resize(context->base_allocator, context, sizeof *context, 0);
}

vyre_code vyre_context_create(const vyre_context_options *options,
                              vyre_context **out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  vyre_context_options given = {0};
  if (options) given = *options;
  VYRE_CHECK_RESERVED(st, __func__, &given);
  vyre_context *context = vyre__alloc_zeroed(given.allocator, sizeof *context);
  if (!context) {
    return vyre__no_memory(st, __func__, "contexts", 1);
  }
  context->base_allocator = given.allocator;
  context->allocator = (vyre_allocator){resize, context};
  atomic_init(&context->references, 1);
  vyre__backend_list_init(context);
  const char *faults = option_or_environment(given.faults, "VYRE_FAULTS");
  vyre_code code = VYRE_OK;
  if (faults)
    code = vyre_context_inject_faults(context, faults, vyre__status_open(st));
  /* Options name backends, so these come first. */
  for (size_t i = 0; code == VYRE_OK && given.backends && given.backends[i];
       i++) {
    code = vyre__backend_list_add(context, given.backends[i], NULL, st);
  }
  if (code == VYRE_OK) {
    vyre__plugin_files_load(
        context,
        option_or_environment(given.backend_path, "VYRE_BACKEND_PATH"));
  }
  /* Options of the program come last, so they override the environment. */
  const char *wanted = given.backend_options;
  if (code == VYRE_OK && (!wanted || wanted[0])) {
    static const char from[] = "VYRE_OPTIONS";
    code = vyre__options_add(context, from, environment(from), st);
  }
  if (code == VYRE_OK) code = vyre__options_add(context, NULL, wanted, st);
  const vyre__cache_environment files = {
      environment("VYRE_CACHE_DIR"), environment("VYRE_CACHE_BYTES"),
      environment("XDG_CACHE_HOME"), environment("HOME")};
  if (code == VYRE_OK &&
      !vyre__cache_init(&context->cache, context->allocator, &given, &files)) {
    code = vyre__no_memory(st, __func__, "bytes of a path", 1);
  }
  if (code == VYRE_OK) {
    code = vyre__llvm_set(context, environment("VYRE_LLVM"), st);
  }
  const char *trace = option_or_environment(given.trace_file, "VYRE_TRACE");
  if (code == VYRE_OK && trace) {
    code = vyre__trace_open(context,
                            given.trace_file ? "" : "VYRE_TRACE: ", trace, st);
  }
  if (code != VYRE_OK) {
    destroy(context);
    return code;
  }
  *out = context;
  return VYRE_OK;
}

/* --- the default context -------------------------------------------------- */

/* Held to find the default context and to drop its last reference: a thread
 * must not find it while another frees it. */
static pthread_mutex_t default_lock = PTHREAD_MUTEX_INITIALIZER;
static vyre_context *default_context;

/* This thread creates the default context: it loads backend files, whose code
 * may call the library. */
static _Thread_local bool is_creating
    __attribute__((tls_model("initial-exec")));

static vyre_code create_default(vyre_status *st) {
  is_creating = true;
  vyre_code code =
      vyre_context_create(NULL, &default_context, vyre__status_open(st));
  is_creating = false;
  if (code == VYRE_OK) default_context->is_default = true;
  return code;
}

vyre_code vyre__context_acquire(vyre_context **context, vyre_status *st) {
  vyre_code code = VYRE_OK;
  if (vyre_context_retain(*context)) return VYRE_OK;
  if (is_creating) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "create a context of its own in the backend, in "
                     "device_open and not while it is loaded",
                     "the default context cannot be used by a backend file "
                     "that is being loaded into it");
  }
  pthread_mutex_lock(&default_lock);
  if (default_context) {
    atomic_fetch_add(&default_context->references, 1);
  } else {
    code = create_default(st);
  }
  *context = default_context;
  pthread_mutex_unlock(&default_lock);
  return code;
}

vyre_context *vyre_context_retain(vyre_context *context) {
  if (context) atomic_fetch_add(&context->references, 1);
  return context;
}

void vyre_context_release(vyre_context *context) {
  if (!context) return;
  bool is_default = context->is_default;
  if (is_default) pthread_mutex_lock(&default_lock);
  bool last = atomic_fetch_sub(&context->references, 1) == 1;
  if (last && is_default) default_context = NULL;
  if (is_default) pthread_mutex_unlock(&default_lock);
  if (last) destroy(context);
}
