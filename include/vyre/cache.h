/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/cache.h
 *  The cache of compiled pipelines: what it did, what is in it, and why not.
 *
 *  In memory, a device keeps the pipelines that are in use and the last
 *  VYRE_CACHE_IDLE that were let go of: compiling the same program with the
 *  same options again gives the same pipeline. On disk, a context's directory
 *  (vyre_context_options) keeps what a backend can make a pipeline of without
 *  compiling. An entry has the whole key, every input that matters, and is used
 *  only if the key is the same byte for byte. A cache that cannot be used, or an
 *  entry that is damaged, never lets a compile fail. docs/cache.md says more. */
#ifndef VYRE_CACHE_H
#define VYRE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/context.h"
#include "vyre/device.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/pipeline.h"
#include "vyre/program.h"
#include "vyre/status.h"

enum { VYRE_CACHE_IDLE = 64 };

/** How a compile ended: X(enumerator, name). */
#define VYRE_CACHE_RESULT_MAP(X)            \
  X(VYRE_CACHE_MEMORY_HIT, "memory_hit")    \
  X(VYRE_CACHE_DISK_HIT, "disk_hit")        \
  X(VYRE_CACHE_MISS, "miss") /* compiled */ \
  X(VYRE_CACHE_OFF, "off")   /* compiled; no file was looked for */

typedef enum vyre_cache_result {
#define VYRE_X2(name, text) name,
  VYRE_CACHE_RESULT_MAP(VYRE_X2) VYRE_CACHE_RESULT_COUNT
#undef VYRE_X2
} vyre_cache_result;

/** What the cache did. Texts are never NULL but where it says so. */
typedef struct vyre_cache_info {
  vyre_cache_result result; /* of the last compile that gave the pipeline */
  vyre_cache_result origin; /* how it was made: disk_hit, miss or off */
  uint64_t memory_hits;     /* compiles that got it without any work */
  const char *reason;       /* of `made`, in words */
  const char *entry;        /* the name of its file; "" if off */
  const char *field;        /* a miss: the first field of the key in which the
                               nearest entry of the same program differs, looked
                               for when this is asked first; NULL if there is no
                               such entry */
  const char *wanted;       /* the value here, and */
  const char *found;        /* that in the entry; both NULL without a field */
  bool is_rejected;         /* there was a file, but not one to trust; `reason`
                               says why */
  bool is_stored;           /* a file was written */
  const char *not_stored;   /* why none was; "" if one was, or was there */
} vyre_cache_info;

/** One field of a key. */
typedef struct vyre_cache_field {
  const char *name; /* "driver" */
  const char *text; /* the value; for bytes, how many and their hash */
  const void *value;
  size_t size;
} vyre_cache_field;

/** What a compile would find. */
typedef struct vyre_cache_explanation {
  vyre_cache_info info; /* nothing was stored, nothing is counted */
  const vyre_cache_field *fields;
  size_t field_count;
} vyre_cache_explanation;

/** A file of the cache. */
typedef struct vyre_cache_entry {
  const char *name;
  uint64_t bytes;
  int64_t last_used; /* last, in seconds since 1970 */
  bool is_valid;
  const char *problem; /* what is wrong with it; "" if sound */
  uint64_t artifact_bytes;
  const vyre_cache_field *fields; /* none if not sound */
  size_t field_count;
} vyre_cache_entry;

/** Where the files are. */
typedef struct vyre_cache_location {
  bool is_enabled;       /* files are used, or would be once there are some */
  bool exists;           /* the directory is */
  const char *directory; /* "" if there is none */
  const char *reason;    /* why it is off or read only; "" if neither */
  const char *fix;       /* and what to do about it */
  uint64_t max_bytes;
  bool is_read_only; /* what is there is used, and nothing is added */
} vyre_cache_location;

typedef struct vyre_cache_listing {
  bool is_enabled;
  const char *directory; /* "" if there is none */
  const char *reason;    /* why it is off; "" if on */
  const char *fix;       /* and what to do about it */
  uint64_t max_bytes;
  uint64_t bytes;                  /* of all entries and probes */
  const vyre_cache_entry *entries; /* by name */
  size_t entry_count;
  size_t corrupt_count;  /* of them */
  size_t leftover_count; /* files of writers that did not end */
  size_t probe_count;    /* files with what a probe of a device found */
} vyre_cache_listing;

/** What to remove, besides entries that are damaged and leftovers that are an
 *  hour old. Zeroed: what is above the cap, as every write does. */
typedef struct vyre_cache_prune_options {
  bool remove_all;
  uint64_t max_bytes; /* keep the last used up to here; 0: the context's cap */
} vyre_cache_prune_options;

typedef struct vyre_cache_pruned {
  size_t removed_count, left_count;
  uint64_t removed_bytes, left_bytes;
} vyre_cache_pruned;

VYRE_BEGIN

/** "memory_hit", "off", ...; "?" for a number that is none. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_cache_result_name(vyre_cache_result result);

/** What the cache did for @p pipeline. False, and *out zeroed, for a NULL.
 *  Ownership: fills *out; texts are the pipeline's.
 *  Threads: safe.  Blocks: of a miss, the first time: on files of the cache.
 *  Errors: none. */
VYRE_API bool vyre_pipeline_get_cache_info(const vyre_pipeline *pipeline,
                                           vyre_cache_info *out);

/** Says what vyre_pipeline_compile would find, and has the whole key. Compiles
 *  nothing, loads nothing, writes nothing. @p options may be NULL.
 *  Ownership: all of *out lives in @p arena.
 *  Threads:   safe; the arena is compatible.   Blocks: on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_cache_explain(vyre_device *device, vyre_program *program,
                   const vyre_compile_options *options, vyre_arena *arena,
                   vyre_cache_explanation *out, vyre_status *st);

/** Says where the files of @p context (NULL: the process's own) are, and whether
 *  that place is used: the answer that compiles and probes get. Reads no entry,
 *  and leaves nothing behind: of a directory that is not there it tries whether
 *  one could be made.
 *  Ownership: all of *out lives in @p arena.
 *  Threads:   safe; the arena is compatible.   Blocks: on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_cache_get_location(vyre_context *context, vyre_arena *arena,
                        vyre_cache_location *out, vyre_status *st);

/** Reads and checks every entry of @p context (NULL: the process's own). A cache
 *  that is off has none, and says why.
 *  Ownership: all of *out lives in @p arena.
 *  Threads:   safe; the arena is compatible.   Blocks: on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code vyre_cache_list(vyre_context *context,
                                                  vyre_arena *arena,
                                                  vyre_cache_listing *out,
                                                  vyre_status *st);

/** Removes entries, least recently used first. @p options may be NULL. Removes
 *  nothing from a cache that is off.
 *  Ownership: fills *out.  Threads: safe, and other processes may use the cache.
 *  Blocks:    on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_cache_prune(vyre_context *context, const vyre_cache_prune_options *options,
                 vyre_cache_pruned *out, vyre_status *st);

VYRE_END

#endif
