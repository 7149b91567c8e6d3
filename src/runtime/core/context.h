/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The context: allocator, options, faults, trace and cache directory that its
 * devices share. */
#ifndef VYRE_RUNTIME_CORE_CONTEXT_H
#define VYRE_RUNTIME_CORE_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>

#include "vyre/context.h"

#include "runtime/cache/cache.h"

enum { VYRE__PATH_BYTES = 256 }; /* of a path in an option, with its NUL */

/* Backends besides those of the build (backend_list.h). */
typedef struct vyre__registered_backends {
  pthread_mutex_t lock; /* guards adding */
  _Atomic(struct vyre__backend_entry *) first;
} vyre__registered_backends;

struct vyre_context {
  vyre_allocator base_allocator; /* the caller's */
  vyre_allocator allocator;      /* base_allocator with injected faults */
  atomic_uint references;
  bool is_default;
  _Atomic(struct vyre__trace *) trace; /* NULL: none; set once (trace.c) */

  /* One bit per armed fault (fault_injection.c). While it is 0, a check for
   * faults is one load. */
  atomic_uint armed;
  struct {
    _Atomic uint64_t left; /* operations until the fault hits; 0: not armed */
    atomic_bool repeats;   /* every later operation fails too */
  } faults[VYRE_FAULT_COUNT];
  vyre__registered_backends backends;
  vyre__cache cache;           /* directory of compiled pipelines */
  char options[512];           /* backend options (options.c) */
  char llvm[VYRE__PATH_BYTES]; /* library of "cpu"; "": search for it */
  bool is_llvm_option;         /* the option names it; else VYRE_LLVM */
  _Atomic(struct vyre__tunings *)
      tunings;                   /* NULL: not read yet (tune/apply.h) */
  atomic_uint tuning_generation; /* changes with them */
};

/* Retains *context, or replaces NULL by the default context, retained. */
vyre_code vyre__context_acquire(vyre_context **context, vyre_status *st);

#endif
