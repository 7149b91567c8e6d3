/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lookup and store of a pipeline during a compile, and the report on both. */
#include "vyre/cache.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/memory.h"
#include "hal/backend.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/context.h"
#include "runtime/core/device.h"

/* Entries of the same program that are read to explain a miss. */
enum { MAX_NEAR = 16 };

static const char no_memory[] = "out of memory";

static const char *copy_text(vyre_arena *arena, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = vyre_arena_alloc(arena, size, 1);
  if (!copy) return no_memory;
  memcpy(copy, text, size);
  return copy;
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
  n->note->field = field;
  n->note->wanted = wanted;
  n->note->found = found;
}

/* Makes the nearest entry the reason of the miss. A corrupt file remains the
 * reason. */
static void set_reason(const nearest *n) {
  vyre__cache_note *note = n->note;
  if (!note->field || note->is_rejected) return;
  note->reason =
      print_text(n->arena, "the nearest entry differs in '%s'", note->field);
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
      note->reason = "the entry with this name has another key";
      break;
    case VYRE__CACHE_ABSENT:
      note->reason = "no entry for this program";
      break;
    case VYRE__CACHE_REJECTED:
      note->is_rejected = true;
      note->reason = print_text(arena, "the entry is invalid: %s", why);
      break;
    case VYRE__CACHE_NO_MEMORY:
      note->reason = no_memory;
      break;
  }
  return false;
}

static bool has_no_disk_cache(const vyre__backend *backend) {
  return !backend->pipeline_load || !backend->pipeline_save;
}

/* Returns the reason why the cache is not used, or NULL. */
static const char *off_reason(const vyre__cache_subject *subject,
                              const vyre__cache_key *key) {
  const vyre_device *device = subject->device;
  if (has_no_disk_cache(device->backend)) {
    return "this backend has no disk cache";
  }
  if (device->context->cache.off) return device->context->cache.off;
  return key->bytes ? NULL : no_memory;
}

void vyre__cache_find(const vyre__cache_subject *subject,
                      const vyre__cache_key *key, bool is_used,
                      vyre_arena *arena, vyre__cache_note *note,
                      vyre__cache_file *file, bool *may_store) {
  vyre_allocator allocator = arena->allocator;
  vyre__cache_refusal refusal;
  *note = (vyre__cache_note){
      .result = VYRE_CACHE_OFF, .entry = "", .not_stored = ""};
  *file = (vyre__cache_file){.allocator = allocator};
  *may_store = false;
  note->reason = off_reason(subject, key);
  if (note->reason) return;
  int directory =
      vyre__cache_open(&subject->device->context->cache, false, &refusal);
  if (directory < 0 && !refusal.is_absent) {
    note->reason = copy_text(arena, refusal.reason);
    return;
  }
  *may_store = true;
  note->result = VYRE_CACHE_MISS;
  note->entry = copy_text(arena, key->name);
  note->reason = "the cache is empty";
  if (directory < 0) return;
  if (read_entry(directory, key, arena, note, file)) {
    note->result = VYRE_CACHE_DISK_HIT;
    note->reason = "the entry has the same key";
    if (is_used && !vyre__cache_is_recent(file->used_ns)) {
      vyre__cache_touch(directory, key->name);
    }
  } else {
    /* Two keys with one name: the file will be replaced, so compare it now. */
    vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
    nearest n = {.parts = parts, .arena = arena, .note = note};
    if (file->entry.key && !note->is_rejected &&
        vyre__cache_key_read(key->bytes, key->size, parts, &n.count)) {
      consider(&n, &file->entry);
      set_reason(&n);
    }
    vyre__cache_file_deinit(file);
    note->is_open = !note->field;
  }
  close(directory);
}

void vyre__cache_explain(const vyre__cache_subject *subject,
                         const vyre__cache_key *key, vyre_arena *arena,
                         vyre__cache_note *note) {
  if (!note->is_open) return;
  note->is_open = false;
  vyre__cache_refusal refusal;
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
  nearest n = {.parts = parts, .arena = arena, .note = note};
  int directory =
      vyre__cache_open(&subject->device->context->cache, false, &refusal);
  if (directory < 0) return;
  if (vyre__cache_key_read(key->bytes, key->size, parts, &n.count)) {
    find_nearest(directory, key, arena->allocator, &n);
  }
  close(directory);
  set_reason(&n);
}

/* --- compile -------------------------------------------------------------- */

static vyre__cache_subject subject_of(const vyre_pipeline *pipeline) {
  return (vyre__cache_subject){pipeline->device, pipeline->program,
                               pipeline->workgroup, pipeline->ulp_budget,
                               pipeline->counts_iterations};
}

/* Passes the artifact to the backend. If it fails, restores the pipeline. */
static bool load(vyre_pipeline *pipeline, const vyre__cache_file *file) {
  const vyre__backend *backend = pipeline->device->backend;
  vyre__cache_note *note = &pipeline->state->note;
  vyre__arena_mark before = vyre__arena_here(&pipeline->arena);
  vyre_status st = {0};
  if (backend->pipeline_load(pipeline, file->entry.artifact,
                             file->entry.artifact_size, &st) == VYRE_OK) {
    return true;
  }
  vyre__arena_rewind(&pipeline->arena, before);
  memset((unsigned char *)pipeline + sizeof *pipeline, 0,
         backend->pipeline_size - sizeof *pipeline);
  note->result = VYRE_CACHE_MISS;
  note->reason = print_text(
      &pipeline->arena, "the backend rejected the entry: %.160s", st.message);
  return false;
}

bool vyre__cache_load(vyre_pipeline *pipeline, vyre__cache_lookup *tried) {
  vyre_device *device = pipeline->device;
  vyre__cache_note *note = &pipeline->state->note;
  vyre__cache_subject subject = subject_of(pipeline);
  vyre__cache_file file;
  *tried = (vyre__cache_lookup){.may_store = false};
  vyre_arena_init(&tried->arena, device->allocator);
  if (!has_no_disk_cache(device->backend) && !device->context->cache.off &&
      !vyre__cache_key_build(&subject, &tried->arena, &tried->key)) {
    tried->key.bytes = NULL;
  }
  vyre__cache_find(&subject, &tried->key, true, &pipeline->arena, note, &file,
                   &tried->may_store);
  bool is_loaded = note->result == VYRE_CACHE_DISK_HIT && load(pipeline, &file);
  vyre__cache_file_deinit(&file);
  if (is_loaded) {
    VYRE__COUNT(device, cache_disk_hits, 1);
    return true;
  }
  note->not_stored = note->result == VYRE_CACHE_OFF ? note->reason : "";
  if (note->is_rejected) VYRE__COUNT(device, cache_rejected, 1);
  VYRE__COUNT(device, cache_misses, 1);
  return false;
}

void vyre__cache_skip(vyre_pipeline *pipeline) {
  static const char why[] = "this compile does not use the cache";
  pipeline->state->note = (vyre__cache_note){
      .result = VYRE_CACHE_OFF, .reason = why, .entry = "", .not_stored = why};
}

/* Writes the file, and evicts others to stay below the size limit. On failure,
 * sets `why`. */
static void put_file(const vyre__cache *cache, vyre_allocator allocator,
                     const char *name, const vyre__cache_bytes *bytes,
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

/* Stores the artifact of a pipeline. Returns NULL, or the reason of the
 * failure. */
static const char *store(vyre_pipeline *pipeline, const vyre__cache_key *key) {
  vyre_device *device = pipeline->device;
  const vyre__cache *cache = &device->context->cache;
  vyre__cache_bytes bytes = {.allocator = device->allocator};
  char why[VYRE__CACHE_REASON] = "";
  vyre_status st = {0};
  vyre__cache_entry_begin(&bytes, key);
  vyre_code code =
      device->backend->pipeline_save(pipeline, vyre__cache_writer(&bytes), &st);
  vyre__cache_entry_end(&bytes, key->size);
  if (bytes.failed) {
    (void)snprintf(why, sizeof why, "%s", no_memory);
  } else if (code != VYRE_OK) {
    (void)snprintf(why, sizeof why, "the backend failed to save it: %.160s",
                   st.message);
  } else if (bytes.size > cache->max_bytes) {
    (void)snprintf(
        why, sizeof why, "it has %llu bytes, and the cache is limited to %llu",
        (unsigned long long)bytes.size, (unsigned long long)cache->max_bytes);
  } else {
    put_file(cache, device->allocator, key->name, &bytes, why);
  }
  vyre__cache_bytes_deinit(&bytes);
  return why[0] ? copy_text(&pipeline->arena, why) : NULL;
}

void vyre__cache_end(vyre_pipeline *pipeline, vyre__cache_lookup *tried,
                     bool was_compiled) {
  vyre__cache_note *note = &pipeline->state->note;
  if (was_compiled && tried->may_store) {
    const char *why = store(pipeline, &tried->key);
    note->is_stored = !why;
    note->not_stored = why ? why : "";
  }
  vyre_arena_deinit(&tried->arena);
}

/* --- reports -------------------------------------------------------------- */

const char *vyre_cache_result_name(vyre_cache_result result) {
#define VYRE_X2(name, text) [name] = (text),
  static const char *const names[] = {VYRE_CACHE_RESULT_MAP(VYRE_X2)};
#undef VYRE_X2
  return (unsigned)result < VYRE_CACHE_RESULT_COUNT ? names[result] : "?";
}

vyre_cache_info vyre__cache_info(const vyre__cache_note *note) {
  return (vyre_cache_info){.result = note->result,
                           .origin = note->result,
                           .reason = note->reason,
                           .entry = note->entry,
                           .field = note->field,
                           .wanted = note->wanted,
                           .found = note->found,
                           .is_rejected = note->is_rejected,
                           .is_stored = note->is_stored,
                           .not_stored = note->not_stored};
}

/* Guards notes whose nearest entry was not searched yet. */
static pthread_mutex_t explaining = PTHREAD_MUTEX_INITIALIZER;

/* Searches the nearest entry on request only, because it reads many files; the
 * lock is held. */
static void explain(const vyre_pipeline *pipeline) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre__cache_subject subject = subject_of(pipeline);
  vyre_arena scratch;
  vyre__cache_key key;
  vyre_arena_init(&scratch, pipeline->device->allocator);
  if (vyre__cache_key_build(&subject, &scratch, &key)) {
    vyre__cache_explain(&subject, &key, &state->texts, &state->note);
  }
  vyre_arena_deinit(&scratch);
}

bool vyre_pipeline_get_cache_info(const vyre_pipeline *pipeline,
                                  vyre_cache_info *out) {
  if (!out) return false;
  *out = (vyre_cache_info){0};
  if (!pipeline) return false;
  pthread_mutex_lock(&explaining);
  if (pipeline->state->note.is_open) explain(pipeline);
  const vyre__cache_note note = pipeline->state->note;
  pthread_mutex_unlock(&explaining);
  uint64_t hits = atomic_load(&pipeline->state->memory_hits);
  *out = vyre__cache_info(&note);
  out->memory_hits = hits;
  if (hits > 0) out->result = VYRE_CACHE_MEMORY_HIT;
  return true;
}
