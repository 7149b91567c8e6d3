/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/cache.h
 *  Pipeline cache: statistics, contents and maintenance.
 *
 *  In memory, a device keeps all pipelines in use and the last VYRE_CACHE_IDLE
 *  released ones. Compiling the same program with the same options again
 *  returns the same pipeline. On disk, the cache directory of a context
 *  (vyre_context_options) keeps compiled code, so that a later process need
 *  not compile.
 *
 *  Every entry stores its complete key and is used only if all bytes of the
 *  key match. An unusable cache or a corrupt entry never makes a compile fail.
 *  See docs/how-to/cache-in-production.md. */
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

/** Maximum number of idle pipelines that a device keeps in memory. */
enum { VYRE_CACHE_IDLE = 64 };

/** Results of a cache lookup: X(enumerator, name). */
#define VYRE_CACHE_RESULT_MAP(X)            \
  X(VYRE_CACHE_MEMORY_HIT, "memory_hit")    \
  X(VYRE_CACHE_DISK_HIT, "disk_hit")        \
  X(VYRE_CACHE_MISS, "miss") /* compiled */ \
  X(VYRE_CACHE_OFF, "off")   /* compiled; no file was looked for */

/** Result of a cache lookup. */
typedef enum vyre_cache_result {
#define VYRE_X2(name, text) name,
  VYRE_CACHE_RESULT_MAP(VYRE_X2) VYRE_CACHE_RESULT_COUNT
#undef VYRE_X2
} vyre_cache_result;

/** Cache statistics of one pipeline. Strings are not NULL unless noted. */
typedef struct vyre_cache_info {
  vyre_cache_result result; /* lookup result of the last compile */
  vyre_cache_result origin; /* source of the code: disk_hit, miss or off */
  uint64_t memory_hits;     /* compiles that found the pipeline in memory */
  const char *reason;       /* explanation of `origin` */
  const char *entry;        /* file name of the entry; "" if the cache is off */
  /* After a miss: first key field that differs from the nearest entry of the
   * same program; computed on the first query; NULL if the program has no
   * entry. */
  const char *field;
  const char *wanted; /* value of `field` in this key; NULL without a field */
  const char *found;  /* value of `field` in the entry; NULL without a field */
  bool is_rejected; /* a file existed but could not be trusted; see `reason` */
  bool is_stored;   /* this compile wrote a file */
  /* Reason why no file was written; "" if one was written or existed. */
  const char *not_stored;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_cache_info;

/** One field of a cache key. */
typedef struct vyre_cache_field {
  const char *name;     /* "driver" */
  const char *text;     /* value as text; for binary data, its size and hash */
  const void *value;    /* raw value */
  size_t size;          /* bytes of `value` */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_cache_field;

/** Prediction of a cache lookup. */
typedef struct vyre_cache_explanation {
  vyre_cache_info info; /* expected result; nothing is stored or counted */
  const vyre_cache_field *fields; /* complete key */
  size_t field_count;             /* entries of `fields` */
  uint64_t reserved[2];           /* zero; for future fields */
} vyre_cache_explanation;

/** One file of the cache. */
typedef struct vyre_cache_entry {
  const char *name;        /* file name */
  uint64_t bytes;          /* size of the file */
  int64_t last_used;       /* time of the last use, in seconds since 1970 */
  bool is_valid;           /* the file passed all checks */
  const char *problem;     /* reason why it is not valid; "" if valid */
  uint64_t artifact_bytes; /* size of the compiled code */
  const vyre_cache_field *fields; /* key; NULL if not valid */
  size_t field_count;             /* entries of `fields` */
  uint64_t reserved[4];           /* zero; for future fields */
} vyre_cache_entry;

/** Location and state of the cache directory. */
typedef struct vyre_cache_location {
  /* The directory is used, or will be created on the first store. */
  bool is_enabled;
  bool exists;           /* the directory exists */
  const char *directory; /* path; "" without a cache directory */
  /* Reason why the cache is off or read-only; "" otherwise. */
  const char *reason;
  /* Instruction that removes the cause; "" without a `reason`. */
  const char *fix;
  uint64_t max_bytes;   /* size limit of all files */
  bool is_read_only;    /* entries are read, but none are added */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_cache_location;

/** Contents of the cache directory. */
typedef struct vyre_cache_listing {
  bool is_enabled;       /* the directory is used */
  const char *directory; /* path; "" without a cache directory */
  const char *reason;    /* reason why the cache is off; "" if it is on */
  /* Instruction that removes the cause; "" without a `reason`. */
  const char *fix;
  uint64_t max_bytes;              /* size limit of all files */
  uint64_t bytes;                  /* size of all entries and probe results */
  const vyre_cache_entry *entries; /* sorted by name */
  size_t entry_count;              /* entries of `entries` */
  size_t corrupt_count;            /* entries that are not valid */
  size_t leftover_count; /* temporary files of writers that did not finish */
  size_t probe_count;    /* files with probe results of devices */
  uint64_t reserved[4];  /* zero; for future fields */
} vyre_cache_listing;

/** Options of vyre_cache_prune. Corrupt entries, and leftover files older than
 *  an hour, are always removed. Zeroed: entries above the size limit are
 *  removed too, which every store does anyway. */
typedef struct vyre_cache_prune_options {
  bool remove_all; /* remove every entry */
  /* Keep the most recently used entries up to this size; 0: the limit of the
   * context. */
  uint64_t max_bytes;
  uint64_t reserved[4]; /* must be zero */
} vyre_cache_prune_options;

/** Result of vyre_cache_prune. */
typedef struct vyre_cache_pruned {
  size_t removed_count, left_count;   /* files removed; files that remain */
  uint64_t removed_bytes, left_bytes; /* their sizes */
  uint64_t reserved[2];               /* zero; for future fields */
} vyre_cache_pruned;

VYRE_BEGIN

/** Returns the name of a result ("memory_hit"), or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_cache_result_name(vyre_cache_result result);

/** Fills *out with the cache statistics of @p pipeline. For a NULL argument,
 *  zeroes *out and returns false.
 *  Ownership: strings are owned by the pipeline.
 *  Threads:   safe.
 *  Blocks:    on cache files, in the first call after a miss.
 *  Errors:    none. */
VYRE_API bool vyre_pipeline_get_cache_info(const vyre_pipeline *pipeline,
                                           vyre_cache_info *out);

/** Predicts the cache lookup of vyre_pipeline_compile and returns the complete
 *  key. Does not compile, load or write anything. @p options may be NULL.
 *  Ownership: *out lives in @p arena.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_cache_explain(vyre_device *device, vyre_program *program,
                   const vyre_compile_options *options, vyre_arena *arena,
                   vyre_cache_explanation *out, vyre_status *st);

/** Finds the cache directory of @p context (NULL: the default context) and
 *  checks if compiles and probes use it. Reads no entry and leaves no file
 *  behind: if the directory does not exist, it only tests if it could be
 *  created.
 *  Ownership: *out lives in @p arena.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_cache_get_location(vyre_context *context, vyre_arena *arena,
                        vyre_cache_location *out, vyre_status *st);

/** Reads and checks all cache entries of @p context (NULL: the default
 *  context). If the cache is off, the listing is empty and states the reason.
 *  Ownership: *out lives in @p arena.
 *  Threads:   safe; the arena is compatible.
 *  Blocks:    on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code vyre_cache_list(vyre_context *context,
                                                  vyre_arena *arena,
                                                  vyre_cache_listing *out,
                                                  vyre_status *st);

/** Removes cache entries, least recently used first. @p options may be NULL.
 *  Does nothing if the cache is off.
 *  Ownership: fills *out.
 *  Threads:   safe; other processes may use the cache at the same time.
 *  Blocks:    on files.
 *  Errors:    VYRE_OUT_OF_MEMORY; VYRE_INVALID_ARGUMENT for a NULL argument. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_cache_prune(vyre_context *context, const vyre_cache_prune_options *options,
                 vyre_cache_pruned *out, vyre_status *st);

VYRE_END

#endif
