/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The public functions that explain, list and prune the cache. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/context.h"

/* --- explain -------------------------------------------------------------- */

static vyre_code explain(const vyre_pipeline *wanted, vyre_arena *arena,
                         vyre_cache_explanation *out, vyre_status *st) {
  static const char function[] = "vyre_cache_explain";
  vyre__cache_key key;
  vyre__cache_note note;
  vyre__cache_file file;
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
  bool may_store;
  if (!vyre__cache_key_build(wanted, arena, &key) ||
      !vyre__cache_key_read(key.bytes, key.size, parts, &out->field_count) ||
      !vyre__cache_fields(parts, out->field_count, arena, &out->fields)) {
    return vyre__no_memory(st, function, "bytes of the key", 1);
  }
  vyre__cache_find(wanted, &key, false, arena, &note, &file, &may_store);
  vyre__cache_file_deinit(&file);
  const vyre__cache *cache = &wanted->device->context->cache;
  vyre__cache_refusal refusal;
  int directory = may_store ? vyre__cache_open(cache, false, &refusal) : -1;
  if (directory >= 0) {
    close(directory);
  } else if (may_store && refusal.is_absent &&
             !vyre__cache_can_make(cache, &refusal)) {
    note.info.result = VYRE_CACHE_OFF;
    note.info.reason = vyre__arena_text(arena, refusal.reason);
    note.info.entry = "";
    if (!note.info.reason)
      return vyre__no_memory(st, function, "bytes of texts", 1);
  }
  vyre__cache_explain(wanted, &key, arena, &note);
  out->info = note.info; /* is_stored stays false */
  out->info.origin = note.info.result;
  return VYRE_OK;
}

vyre_code vyre_cache_explain(vyre_device *device, vyre_program *program,
                             const vyre_compile_options *options,
                             vyre_arena *arena, vyre_cache_explanation *out,
                             vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, device, program);
  VYRE_REQUIRE(st, arena);
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  vyre_pipeline wanted = vyre__pipeline_request(device, program, options);
  vyre__arena_mark before = vyre__arena_here(arena);
  vyre_code code = explain(&wanted, arena, out, st);
  if (code != VYRE_OK) {
    *out = (vyre_cache_explanation){0};
    vyre__arena_rewind(arena, before);
  }
  return code;
}

/* --- list ----------------------------------------------------------------- */

/* Describes one entry. The name is NULL if another process has just removed the
 * file. Returns false without memory. */
static bool describe(int directory, const vyre__cache_item *item,
                     vyre_arena *arena, vyre_cache_entry *out) {
  vyre__cache_file file;
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
  char name[VYRE__CACHE_NAME];
  const char *why = "";
  *out = (vyre_cache_entry){.name = vyre__arena_text(arena, item->name),
                            .bytes = item->bytes,
                            .last_used = item->used_ns / 1000000000};
  vyre__cache_read_result result = vyre__cache_file_read(
      directory, item->name, arena->allocator, &file, &why);
  bool has_memory = out->name && result != VYRE__CACHE_NO_MEMORY;
  if (result == VYRE__CACHE_ABSENT) out->name = NULL;
  if (result == VYRE__CACHE_READ &&
      (!vyre__cache_key_name(file.entry.key, file.entry.key_size, name) ||
       strcmp(name, item->name) != 0)) {
    result = VYRE__CACHE_REJECTED;
    why = "its name does not match its key";
  }
  out->is_valid = result == VYRE__CACHE_READ;
  out->problem = out->is_valid ? "" : why; /* static */
  if (has_memory && out->is_valid) {
    out->artifact_bytes = file.entry.artifact_size;
    (void)vyre__cache_key_read(file.entry.key, file.entry.key_size, parts,
                               &out->field_count);
    has_memory =
        vyre__cache_fields(parts, out->field_count, arena, &out->fields);
  }
  vyre__cache_file_deinit(&file);
  return has_memory;
}

static bool list_all(int directory, vyre_arena *arena,
                     vyre_cache_listing *out) {
  vyre__cache_items all;
  if (!vyre__cache_scan(directory, arena->allocator, &all)) return false;
  vyre_cache_entry *entries =
      vyre__arena_array(arena, all.count, sizeof *entries);
  bool is_ok = entries != NULL;
  for (size_t i = 0; is_ok && i < all.count; i++) {
    if (all.items[i].is_leftover) {
      out->leftover_count++;
      continue;
    }
    if (all.items[i].is_probe) {
      out->probe_count++;
      out->bytes += all.items[i].bytes;
      continue;
    }
    vyre_cache_entry *entry = &entries[out->entry_count];
    is_ok = describe(directory, &all.items[i], arena, entry);
    if (!is_ok || !entry->name) continue;
    out->entry_count++;
    out->bytes += entry->bytes;
    out->corrupt_count += !entry->is_valid;
  }
  out->entries = entries;
  vyre__cache_items_deinit(&all);
  return is_ok;
}

/* Opens the directory; *directory is -1 if that fails. Returns false without
 * memory. */
static bool open_location(const vyre__cache *cache, vyre_arena *arena,
                          vyre_cache_location *out, int *directory) {
  vyre__cache_refusal refusal;
  *directory = vyre__cache_open(cache, false, &refusal);
  bool is_off = *directory < 0 &&
                (!refusal.is_absent || !vyre__cache_can_make(cache, &refusal));
  bool is_read_only =
      *directory >= 0 && faccessat(*directory, ".", W_OK | X_OK, AT_EACCESS);
  *out = (vyre_cache_location){
      .is_enabled = !is_off,
      .exists = *directory >= 0,
      .is_read_only = is_read_only,
      .directory = vyre__arena_text(arena, cache->path ? cache->path : ""),
      .reason =
          vyre__arena_text(arena, is_off         ? refusal.reason
                                  : is_read_only ? "it is read-only: existing "
                                                   "entries are used, and none "
                                                   "is added"
                                                 : ""),
      .fix = vyre__arena_text(
          arena, is_off         ? refusal.fix
                 : is_read_only ? "make the directory writable, or set "
                                  "VYRE_CACHE_DIR to another one"
                                : ""),
      .max_bytes = cache->max_bytes};
  return out->directory && out->reason && out->fix;
}

static bool list(const vyre__cache *cache, vyre_arena *arena,
                 vyre_cache_listing *out) {
  vyre_cache_location location;
  int directory;
  bool is_ok = open_location(cache, arena, &location, &directory);
  *out =
      (vyre_cache_listing){.is_enabled = location.is_enabled,
                           .directory = location.directory,
                           .reason = location.is_enabled ? "" : location.reason,
                           .fix = location.is_enabled ? "" : location.fix,
                           .max_bytes = location.max_bytes};
  if (directory < 0) return is_ok;
  is_ok = is_ok && list_all(directory, arena, out);
  close(directory);
  return is_ok;
}

vyre_code vyre_cache_get_location(vyre_context *context, vyre_arena *arena,
                                  vyre_cache_location *out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, arena);
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre__arena_mark before = vyre__arena_here(arena);
  int directory;
  bool is_ok = open_location(&context->cache, arena, out, &directory);
  if (directory >= 0) close(directory);
  vyre_context_release(context);
  if (is_ok) return VYRE_OK;
  vyre__arena_rewind(arena, before);
  *out = (vyre_cache_location){0};
  return vyre__no_memory(st, __func__, "bytes of texts", 1);
}

vyre_code vyre_cache_list(vyre_context *context, vyre_arena *arena,
                          vyre_cache_listing *out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, arena);
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre__arena_mark before = vyre__arena_here(arena);
  bool is_ok = list(&context->cache, arena, out);
  vyre_context_release(context);
  if (is_ok) return VYRE_OK;
  *out = (vyre_cache_listing){0};
  vyre__arena_rewind(arena, before);
  return vyre__no_memory(st, __func__, "entries", 1);
}

/* --- prune ---------------------------------------------------------------- */

/* Removes a file or an empty directory. A directory with files may belong to
 * another program, and stays. */
static bool remove_entry(int directory, const char *name) {
  return unlinkat(directory, name, 0) == 0 ||
         unlinkat(directory, name, AT_REMOVEDIR) == 0;
}

static bool remove_corrupt(int directory, vyre_arena *arena,
                           vyre_cache_pruned *out) {
  vyre_cache_listing all = {0};
  if (!list_all(directory, arena, &all)) return false;
  for (size_t i = 0; i < all.entry_count; i++) {
    const vyre_cache_entry *entry = &all.entries[i];
    if (entry->is_valid || !remove_entry(directory, entry->name)) continue;
    out->removed_count++;
    out->removed_bytes += entry->bytes;
  }
  return true;
}

static bool prune(const vyre__cache *cache, vyre_allocator allocator,
                  const vyre_cache_prune_options *options,
                  vyre_cache_pruned *out) {
  vyre__cache_refusal refusal;
  int directory = vyre__cache_open(cache, false, &refusal);
  if (directory < 0) return true;
  vyre_cache_pruned corrupt = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  uint64_t max_bytes =
      options->max_bytes ? options->max_bytes : cache->max_bytes;
  bool is_ok = remove_corrupt(directory, &arena, &corrupt) &&
               vyre__cache_evict(directory, allocator,
                                 options->remove_all ? 0 : max_bytes, out);
  out->removed_count += corrupt.removed_count;
  out->removed_bytes += corrupt.removed_bytes;
  vyre_arena_deinit(&arena);
  close(directory);
  return is_ok;
}

vyre_code vyre_cache_prune(vyre_context *context,
                           const vyre_cache_prune_options *options,
                           vyre_cache_pruned *out, vyre_status *st) {
  vyre__status_begin(st);
  static const vyre_cache_prune_options defaults = {false, 0};
  VYRE_REQUIRE(st, out);
  *out = (vyre_cache_pruned){0};
  if (!options) options = &defaults;
  VYRE_CHECK_RESERVED(st, __func__, options);
  VYRE_TRY(vyre__context_acquire(&context, st));
  bool is_ok = prune(&context->cache, context->allocator, options, out);
  vyre_context_release(context);
  return is_ok ? VYRE_OK : vyre__no_memory(st, __func__, "entries", 1);
}
