/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lookup and store of a pipeline during a compile, and the report on both. */
#include "vyre/cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/enum_name.h"
#include "base/memory.h"
#include "hal/backend.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/context.h"
#include "runtime/core/device.h"

/* Entries of the same program that are read to explain a miss. */
enum { MAX_NEAR = 16 };

static const char no_memory[] = "out of memory";

static const char *copy_text(vyre_arena *arena, const char *text) {
  const char *copy = vyre__arena_text(arena, text);
  return copy ? copy : no_memory;
}

VYRE__PRINTF(2, 3)
static const char *print_text(vyre_arena *arena, const char *format, ...) {
  char text[2 * VYRE__CACHE_REASON];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return copy_text(arena, text);
}

/* --- the nearest entry ---------------------------------------------------- */

typedef struct nearest {
  const vyre__cache_key_field *parts; /* fields of the wanted key */
  size_t count;
  size_t difference; /* differing fields of the nearest so far; 0: none */
  vyre_arena *arena;
  vyre__cache_note *note;
} nearest;

/* Records @p entry if it differs in fewer fields than all before it. */
static void consider(nearest *n, const vyre__cache_entry *entry) {
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS], ours, theirs;
  size_t count;
  if (!vyre__cache_key_read(entry->key, entry->key_size, parts, &count)) return;
  size_t difference =
      vyre__cache_key_compare(n->parts, n->count, parts, count, &ours, &theirs);
  if (difference == 0 || (n->difference && difference >= n->difference)) return;
  const char *field = vyre__cache_field_name(n->arena, &ours);
  const char *wanted = vyre__cache_field_text(n->arena, &ours);
  const char *found = vyre__cache_field_text(n->arena, &theirs);
  if (!field || !wanted || !found) return;
  n->difference = difference;
  n->note->info.field = field;
  n->note->info.wanted = wanted;
  n->note->info.found = found;
}

/* Makes the nearest entry the reason of the miss. A corrupt file remains the
 * reason. */
static void set_reason(const nearest *n) {
  vyre__cache_note *note = n->note;
  if (!note->info.field || note->info.is_rejected) return;
  note->info.reason = print_text(n->arena, "the nearest entry differs in '%s'",
                                 note->info.field);
}

/* Opens entries of the same program only: their names have the same prefix. */
static void find_nearest(int directory, const vyre__cache_key *key,
                         vyre_allocator allocator, nearest *n) {
  vyre__cache_items all;
  if (!vyre__cache_scan(directory, allocator, &all)) return;
  size_t prefix = strcspn(key->name, "-") + 1, read_count = 0;
  for (size_t i = 0; i < all.count && read_count < MAX_NEAR; i++) {
    const char *name = all.items[i].name;
    if (strncmp(name, key->name, prefix) != 0) continue;
    vyre__cache_file file;
    const char *why;
    read_count++;
    if (vyre__cache_file_read(directory, name, allocator, &file, &why) ==
        VYRE__CACHE_READ) {
      consider(n, &file.entry);
    }
    vyre__cache_file_deinit(&file);
  }
  vyre__cache_items_deinit(&all);
}

/* --- lookup --------------------------------------------------------------- */

static bool same_key(const vyre__cache_key *key,
                     const vyre__cache_entry *entry) {
  return key->size == entry->key_size &&
         memcmp(key->bytes, entry->key, key->size) == 0;
}

/* Reads the file with the name of the key. Returns true on a hit. */
static bool read_entry(int directory, const vyre__cache_key *key,
                       vyre_arena *arena, vyre__cache_note *note,
                       vyre__cache_file *file) {
  const char *why = "";
  vyre__cache_read_result result =
      vyre__cache_file_read(directory, key->name, arena->allocator, file, &why);
  switch (result) {
    case VYRE__CACHE_READ:
      if (same_key(key, &file->entry)) return true;
      note->info.reason = "the entry with this name has another key";
      break;
    case VYRE__CACHE_ABSENT:
      note->info.reason = "no entry for this program";
      break;
    case VYRE__CACHE_REJECTED:
      note->info.is_rejected = true;
      note->info.reason = print_text(arena, "the entry is invalid: %s", why);
      break;
    case VYRE__CACHE_NO_MEMORY:
      note->info.reason = no_memory;
      break;
  }
  return false;
}

/* Returns the reason why the cache is not used, or NULL. */
static const char *off_reason(const vyre_pipeline *wanted,
                              const vyre__cache_key *key) {
  const vyre_device *device = wanted->device;
  if (!device->backend->generate) return "this backend has no disk cache";
  if (device->context->cache.off) return device->context->cache.off;
  return key->bytes ? NULL : no_memory;
}

void vyre__cache_find(const vyre_pipeline *wanted, const vyre__cache_key *key,
                      bool is_used, vyre_arena *arena, vyre__cache_note *note,
                      vyre__cache_file *file, bool *may_store) {
  vyre_allocator allocator = arena->allocator;
  vyre__cache_refusal refusal;
  *note = (vyre__cache_note){
      .info = {.result = VYRE_CACHE_OFF, .entry = "", .not_stored = ""}};
  *file = (vyre__cache_file){.allocator = allocator};
  *may_store = false;
  note->info.reason = off_reason(wanted, key);
  if (note->info.reason) return;
  int directory =
      vyre__cache_open(&wanted->device->context->cache, false, &refusal);
  if (directory < 0 && !refusal.is_absent) {
    note->info.reason = copy_text(arena, refusal.reason);
    return;
  }
  *may_store = true;
  note->info.result = VYRE_CACHE_MISS;
  note->info.entry = copy_text(arena, key->name);
  note->info.reason = "the cache is empty";
  if (directory < 0) return;
  if (read_entry(directory, key, arena, note, file)) {
    note->info.result = VYRE_CACHE_DISK_HIT;
    note->info.reason = "the entry has the same key";
    if (is_used && !vyre__cache_is_recent(file->used_ns)) {
      vyre__cache_touch(directory, key->name);
    }
  } else {
    /* Two keys with one name: the file will be replaced, so compare it now. */
    vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
    nearest n = {.parts = parts, .arena = arena, .note = note};
    if (file->entry.key && !note->info.is_rejected &&
        vyre__cache_key_read(key->bytes, key->size, parts, &n.count)) {
      consider(&n, &file->entry);
      set_reason(&n);
    }
    vyre__cache_file_deinit(file);
    note->is_open = !note->info.field;
  }
  close(directory);
}

void vyre__cache_explain(const vyre_pipeline *wanted,
                         const vyre__cache_key *key, vyre_arena *arena,
                         vyre__cache_note *note) {
  if (!note->is_open) return;
  note->is_open = false;
  vyre__cache_refusal refusal;
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
  nearest n = {.parts = parts, .arena = arena, .note = note};
  int directory =
      vyre__cache_open(&wanted->device->context->cache, false, &refusal);
  if (directory < 0) return;
  if (vyre__cache_key_read(key->bytes, key->size, parts, &n.count)) {
    find_nearest(directory, key, arena->allocator, &n);
  }
  close(directory);
  set_reason(&n);
}

/* --- compile -------------------------------------------------------------- */

bool vyre__cache_begin(vyre_pipeline *pipeline, vyre__cache_lookup *out) {
  static const char skipped[] = "this compile does not use the cache";
  const vyre_device *device = pipeline->device;
  vyre__cache_note *note = &pipeline->state->note;
  *out = (vyre__cache_lookup){.may_store = false};
  vyre_arena_init(&out->arena, device->allocator);
  if (pipeline->state->is_fresh) {
    *note = (vyre__cache_note){.info = {.result = VYRE_CACHE_OFF,
                                        .reason = skipped,
                                        .entry = "",
                                        .not_stored = skipped}};
    return false;
  }
  if (device->backend->generate && !device->context->cache.off &&
      !vyre__cache_key_build(pipeline, &out->arena, &out->key)) {
    out->key.bytes = NULL;
  }
  vyre__cache_find(pipeline, &out->key, true, &pipeline->arena, note,
                   &out->file, &out->may_store);
  if (note->info.result == VYRE_CACHE_DISK_HIT) return true;
  if (note->info.result == VYRE_CACHE_OFF)
    note->info.not_stored = note->info.reason;
  if (pipeline->state->is_replacement) return false; /* counted before */
  if (note->info.is_rejected) VYRE__COUNT(device, cache_rejected, 1);
  VYRE__COUNT(device, cache_misses, 1);
  return false;
}

void vyre__cache_loaded(vyre_pipeline *pipeline, const char *problem) {
  vyre__cache_note *note = &pipeline->state->note;
  bool is_counted = !pipeline->state->is_replacement;
  if (!problem) {
    if (is_counted) VYRE__COUNT(pipeline->device, cache_disk_hits, 1);
    return;
  }
  if (is_counted) VYRE__COUNT(pipeline->device, cache_misses, 1);
  note->info.result = VYRE_CACHE_MISS;
  note->info.reason = print_text(
      &pipeline->arena, "the backend rejected the entry: %.160s", problem);
}

void vyre__cache_end(vyre__cache_lookup *lookup) {
  vyre__cache_file_deinit(&lookup->file);
  vyre_arena_deinit(&lookup->arena);
}

/* Writes the file, and evicts others to stay below the size limit. On failure,
 * sets `why`. */
static void put_file(const vyre__cache *cache, vyre_allocator allocator,
                     const char *name, const vyre__bytes *bytes,
                     char why[VYRE__CACHE_REASON]) {
  vyre__cache_refusal refusal;
  vyre_cache_pruned pruned;
  int directory = vyre__cache_open(cache, true, &refusal);
  if (directory < 0) {
    memcpy(why, refusal.reason, sizeof refusal.reason);
    return;
  }
  bool is_ok =
      vyre__cache_file_write(directory, name, bytes->data, bytes->size, why);
  /* If memory is short, the next write evicts. */
  if (is_ok) {
    (void)vyre__cache_evict(directory, allocator, cache->max_bytes, &pruned);
  }
  close(directory);
}

void vyre__cache_store(vyre_pipeline *pipeline,
                       const vyre__cache_lookup *lookup,
                       const vyre__bytes *artifact, const vyre__bytes *extra) {
  vyre_allocator allocator = pipeline->device->allocator;
  const vyre__cache *cache = &pipeline->device->context->cache;
  const vyre__cache_key *key = &lookup->key;
  vyre__cache_note *note = &pipeline->state->note;
  char why[VYRE__CACHE_REASON] = "";
  if (!lookup->may_store) return;
  vyre__bytes entry = {.allocator = allocator};
  vyre__cache_entry_write(key, artifact, extra, &entry);
  if (entry.failed) {
    (void)snprintf(why, sizeof why, "%s", no_memory);
  } else if (artifact->size == 0) {
    (void)snprintf(why, sizeof why, "the backend has nothing to keep");
  } else if (entry.size > cache->max_bytes) {
    (void)snprintf(
        why, sizeof why, "it has %llu bytes, and the cache is limited to %llu",
        (unsigned long long)entry.size, (unsigned long long)cache->max_bytes);
  } else {
    put_file(cache, allocator, key->name, &entry, why);
  }
  vyre__bytes_deinit(&entry);
  note->info.is_stored = !why[0];
  note->info.not_stored = why[0] ? copy_text(&pipeline->arena, why) : "";
}

/* --- reports -------------------------------------------------------------- */

VYRE__ENUM_NAME(vyre_cache_result_name, vyre_cache_result,
                VYRE_CACHE_RESULT_MAP)

/* Guards notes whose nearest entry was not searched yet. */
static pthread_mutex_t explaining = PTHREAD_MUTEX_INITIALIZER;

/* Searches the nearest entry on request only, because it reads many files; the
 * lock is held. */
static void explain(const vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre_arena scratch;
  vyre__cache_key key;
  vyre_arena_init(&scratch, pipeline->device->allocator);
  if (vyre__cache_key_build(pipeline, &scratch, &key)) {
    vyre__cache_explain(pipeline, &key, &state->texts, &state->note);
  }
  vyre_arena_deinit(&scratch);
}

void vyre__cache_replaced(vyre_pipeline *pipeline, const vyre_pipeline *full) {
  struct vyre__pipeline_state *state = pipeline->state;
  const vyre_cache_info *from = &full->state->note.info;
  pthread_mutex_lock(&explaining);
  /* After a hit, another process has stored the code. */
  state->note.info.is_stored = from->is_stored;
  state->note.info.not_stored = copy_text(&state->texts, from->not_stored);
  pthread_mutex_unlock(&explaining);
}

bool vyre_pipeline_get_cache_info(const vyre_pipeline *pipeline,
                                  vyre_cache_info *out) {
  if (!out) return false;
  *out = (vyre_cache_info){0};
  if (!pipeline) return false;
  pthread_mutex_lock(&explaining);
  if (pipeline->state->note.is_open) explain(pipeline);
  *out = pipeline->state->note.info;
  pthread_mutex_unlock(&explaining);
  uint64_t hits = atomic_load(&pipeline->state->memory_hits);
  out->origin = out->result;
  out->memory_hits = hits;
  if (hits > 0) out->result = VYRE_CACHE_MEMORY_HIT;
  return true;
}
