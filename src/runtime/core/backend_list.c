/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/core/backend_list.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "hal/plugin.h"
#include "runtime/core/registry.h"

void vyre__backend_list_init(vyre_context *context) {
  pthread_mutex_init(&context->backends.lock, NULL);
  atomic_init(&context->backends.first, NULL);
}

static void free_entry(const vyre_context *context,
                       vyre__backend_entry *entry) {
  if (entry->backend) {
    vyre__plugin_destroy(context->base_allocator, entry->backend);
  }
  vyre__resize(context->base_allocator, entry,
               sizeof *entry + entry->origin_size, 0);
}

void vyre__backend_list_deinit(vyre_context *context) {
  vyre__backend_entry *entry = atomic_load(&context->backends.first);
  while (entry) {
    vyre__backend_entry *next = atomic_load(&entry->next);
    free_entry(context, entry);
    entry = next;
  }
  pthread_mutex_destroy(&context->backends.lock);
}

static vyre__backend_entry *make_entry(const vyre_context *context,
                                       const char *origin) {
  size_t size = strlen(origin) + 1;
  vyre__backend_entry *entry =
      vyre__alloc_zeroed(context->base_allocator, sizeof *entry + size);
  if (!entry) return NULL;
  atomic_init(&entry->next, NULL);
  entry->origin_size = size;
  memcpy(entry->origin, origin, size);
  return entry;
}

/* Appends an entry. Readers take no lock: they see it with its contents. */
static void append(vyre_context *context, vyre__backend_entry *entry) {
  _Atomic(vyre__backend_entry *) *to = &context->backends.first;
  vyre__backend_entry *last;
  while ((last = atomic_load(to)) != NULL) to = &last->next;
  atomic_store(to, entry);
}

static vyre_code check_place(const vyre_context *context, const char *name,
                             vyre_status *st) {
  vyre__backend_list storage;
  const vyre__backends all = vyre__context_backends(context, &storage);
  if (vyre__backend_find(all, name, strlen(name))) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                          "name", NULL,
                          "give each backend of a context another name; "
                          "`vyre devices` lists the names in use",
                          "the context already has a backend '%.31s'", name);
  }
  if (all.count < VYRE_MAX_BACKENDS) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "backends",
      VYRE_NUMBERS({"backends", all.count},
                   {"max_backends", VYRE_MAX_BACKENDS}),
      "register fewer backends, or use another context",
      "the context already has %zu backends; at most %d are allowed", all.count,
      VYRE_MAX_BACKENDS);
}

vyre_code vyre__backend_list_add(vyre_context *context,
                                 const vyre_backend *table, const char *origin,
                                 vyre_status *st) {
  vyre__backend *backend;
  VYRE_TRY(vyre__plugin_create(context->base_allocator, table, &backend, st));
  vyre__backend_entry *entry =
      make_entry(context, origin ? origin : "registered");
  if (!entry) {
    vyre__plugin_destroy(context->base_allocator, backend);
    return vyre__no_memory(st, "vyre_backend_register", "backends", 1);
  }
  entry->backend = backend;
  (void)snprintf(entry->name, sizeof entry->name, "%s", table->name);
  pthread_mutex_lock(&context->backends.lock);
  vyre_code code = check_place(context, table->name, st);
  if (code == VYRE_OK) append(context, entry);
  pthread_mutex_unlock(&context->backends.lock);
  if (code != VYRE_OK) free_entry(context, entry);
  return code;
}

void vyre__backend_list_refuse(vyre_context *context, const char *origin,
                               const vyre_status *why) {
  vyre__backend_entry *entry = make_entry(context, origin);
  if (!entry) return;
  entry->status = *why;
  pthread_mutex_lock(&context->backends.lock);
  append(context, entry);
  pthread_mutex_unlock(&context->backends.lock);
}

vyre_code vyre_backend_register(vyre_context *context,
                                const vyre_backend *table, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, context);
  VYRE_REQUIRE(st, table);
  return vyre__backend_list_add(context, table, NULL, st);
}

/* --- listing ---------------------------------------------------------------*/

static void describe_entry(const vyre__backend_entry *entry,
                           vyre_backend_info *out) {
  bool is_loaded = entry->backend != NULL;
  *out = (vyre_backend_info){
      .name = entry->name,
      .origin = entry->origin,
      .is_loaded = is_loaded,
      .precedence = is_loaded ? entry->backend->precedence : 0,
      .code = entry->status.code,
      .kind = entry->status.kind,
      .message = entry->status.message,
      .fix = entry->status.fix};
}

bool vyre_backend_info_at(vyre_context *context, size_t index,
                          vyre_backend_info *out) {
  if (!out) return false;
  *out =
      (vyre_backend_info){.name = "", .origin = "", .message = "", .fix = ""};
  const vyre__backends built_in = vyre__built_in_backends();
  if (index < built_in.count) {
    out->name = built_in.list[index]->name;
    out->origin = "built in";
    out->is_loaded = true;
    out->precedence = built_in.list[index]->precedence;
    return true;
  }
  if (!context) return false;
  const vyre__backend_entry *entry = atomic_load(&context->backends.first);
  for (size_t at = built_in.count; entry && at < index; at++) {
    entry = atomic_load(&entry->next);
  }
  if (entry) describe_entry(entry, out);
  return entry != NULL;
}
