/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The cache of compiled pipelines, in memory and on disk.
 *
 *   key.c             all inputs of a compile, as bytes
 *   entry.c           format of a file: head, key, artifact
 *   directory.c       choice of the directory, and checks that it is safe
 *   disk.c            reads, writes and evicts files
 *   pipeline_table.c  pipelines of a device that compiles share
 *   cache.c           lookup and store during a compile, and their results
 *   inspect.c         list, explain and prune, for users */
#ifndef VYRE_RUNTIME_CACHE_CACHE_H
#define VYRE_RUNTIME_CACHE_CACHE_H

#include <pthread.h>

#include "vyre/cache.h"

#include "base/bytes.h"

/* Bytes of a reason that is composed at run time. */
enum { VYRE__CACHE_REASON = 200, VYRE__CACHE_FIX = 1200 };

/* Stored numbers are little endian on every host. */
static inline void vyre__cache_store_u64(unsigned char *to, uint64_t value) {
  for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static inline uint64_t vyre__cache_load_u64(const unsigned char *from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << (8 * i);
  return value;
}

/* --- keys ----------------------------------------------------------------- */

/* Format: u64 count of fields; for each field: u64 size of the name, the name,
 * u64 size of the value, the value. */

enum { VYRE__CACHE_FIELDS = 32, VYRE__CACHE_NAME = 80 };

typedef struct vyre__cache_key {
  const unsigned char *bytes;
  size_t size;
  char name[VYRE__CACHE_NAME]; /* file name of the entry */
} vyre__cache_key;

/* Builds the key of a pipeline from the inputs of its compile: device, program,
 * workgroup, ulp_budget and counts_iterations. Returns false without memory. */
bool vyre__cache_key_build(const vyre_pipeline *wanted, vyre_arena *arena,
                           vyre__cache_key *out);

/* A field of a checked key; points into its bytes. */
typedef struct vyre__cache_key_field {
  const char *name;
  size_t name_size;
  const unsigned char *value;
  size_t size;
} vyre__cache_key_field;

/* Parses a key of up to VYRE__CACHE_FIELDS fields. Returns false if the bytes
 * are not a valid key. */
bool vyre__cache_key_read(const unsigned char *bytes, size_t size,
                          vyre__cache_key_field parts[VYRE__CACHE_FIELDS],
                          size_t *count);

/* Returns the number of fields in which two keys differ, and the first of them.
 * A field that one key lacks has size 0 and no value there. */
size_t vyre__cache_key_compare(const vyre__cache_key_field *a, size_t a_count,
                               const vyre__cache_key_field *b, size_t b_count,
                               vyre__cache_key_field *a_first,
                               vyre__cache_key_field *b_first);

/* Computes the file name of a key. Returns false if the key is invalid. */
bool vyre__cache_key_name(const unsigned char *bytes, size_t size,
                          char out[VYRE__CACHE_NAME]);
/* Returns true if @p name has the form of an entry's file name. */
bool vyre__cache_is_entry(const char *name);

/* Return the name and a readable value of a field, in @p arena; NULL without
 * memory. */
const char *vyre__cache_field_name(vyre_arena *arena,
                                   const vyre__cache_key_field *part);
const char *vyre__cache_field_text(vyre_arena *arena,
                                   const vyre__cache_key_field *part);
/* Converts all fields. Returns false without memory. */
bool vyre__cache_fields(const vyre__cache_key_field *parts, size_t count,
                        vyre_arena *arena, const vyre_cache_field **out);

/* --- entries -------------------------------------------------------------- */

/* Format: a head with magic, u64 version, u64 sizes of the key, the artifact
 * and the file, 8 zero bytes, and a checksum of 16 bytes over everything else.
 * Then the key, zeros up to a multiple of 16, and the artifact. */
enum {
  VYRE__CACHE_HEAD = 64,
  VYRE__CACHE_CHECKSUM_AT = 48,
  VYRE__CACHE_VERSION = 1
};

typedef struct vyre__cache_entry {
  const unsigned char *key, *artifact;
  size_t key_size, artifact_size;
} vyre__cache_entry;

/* Parses an entry. Returns NULL, or a text that says what is wrong. */
const char *vyre__cache_entry_read(const unsigned char *bytes, size_t size,
                                   vyre__cache_entry *out);
/* Checks the head alone, for a file of @p size bytes. Returns like
 * vyre__cache_entry_read. */
const char *vyre__cache_head_read(const unsigned char *head, uint64_t size);

/* Writes an entry to @p to, which is empty. The artifact has two parts. */
void vyre__cache_entry_write(const vyre__cache_key *key,
                             const vyre__bytes *artifact,
                             const vyre__bytes *extra, vyre__bytes *to);

/* --- the directory -------------------------------------------------------- */

/* Environment variables; NULL: not set. */
typedef struct vyre__cache_environment {
  const char *directory, *bytes, *xdg, *home;
} vyre__cache_environment;

/* Cache settings of a context; they never change. */
typedef struct vyre__cache {
  char *path; /* NULL: no cache; `off` says why */
  size_t path_size;
  uint64_t max_bytes;
  const char *off, *fix; /* static */
} vyre__cache;

/* Returns true if this process has privileges that its caller lacks (setuid).
 * It must then ignore the environment. */
bool vyre__is_privileged(void);
bool vyre__cache_is_privileged(unsigned long secure, const unsigned ids[4]);

/* Chooses the directory. Returns false without memory. */
bool vyre__cache_init(vyre__cache *cache, vyre_allocator allocator,
                      const vyre_context_options *options,
                      const vyre__cache_environment *environment);
void vyre__cache_deinit(vyre__cache *cache, vyre_allocator allocator);

/* Reason why a directory cannot be used. */
typedef struct vyre__cache_refusal {
  bool is_absent; /* not an error: it does not exist yet */
  char reason[VYRE__CACHE_REASON];
  const char *fix; /* static, or `own_fix` */
  char own_fix[VYRE__CACHE_FIX];
} vyre__cache_refusal;

/* Writes the text of an errno value to @p text, and returns it. */
enum { VYRE__ERROR_TEXT = 80 };
const char *vyre__error_text(int error, char text[VYRE__ERROR_TEXT]);

/* Opens the directory, and creates it if @p create. Checks it each time,
 * because a safe directory may become unsafe. Returns -1 if it cannot be
 * used. */
int vyre__cache_open(const vyre__cache *cache, bool create,
                     vyre__cache_refusal *why);
/* Returns true if the directory, which vyre__cache_open found absent, could be
 * created. Leaves nothing behind. */
bool vyre__cache_can_make(const vyre__cache *cache, vyre__cache_refusal *why);

/* --- files ---------------------------------------------------------------- */

typedef struct vyre__cache_file {
  vyre_allocator allocator;
  unsigned char *bytes;
  size_t size;
  int64_t used_ns; /* time of the last use */
  vyre__cache_entry entry;
} vyre__cache_file;

typedef enum vyre__cache_read_result {
  VYRE__CACHE_READ,
  VYRE__CACHE_ABSENT,
  VYRE__CACHE_REJECTED, /* with a reason */
  VYRE__CACHE_NO_MEMORY
} vyre__cache_read_result;

/* Reads and checks a file. vyre__cache_file_deinit frees it, and accepts a
 * zeroed struct. */
vyre__cache_read_result vyre__cache_file_read(int directory, const char *name,
                                              vyre_allocator allocator,
                                              vyre__cache_file *out,
                                              const char **why);
void vyre__cache_file_deinit(vyre__cache_file *file);

/* Reads a regular file of this user that no other user can write, if it has at
 * most @p capacity bytes. */
bool vyre__cache_file_bytes(int directory, const char *name, void *to,
                            size_t capacity, size_t *out);

/* Sets the time of the last use to now. */
void vyre__cache_touch(int directory, const char *name);
/* Returns true if the last use was in the last minute. Touching a file again
 * would take as long as reading it. */
bool vyre__cache_is_recent(int64_t used_ns);

/* Writes a file atomically. Returns false with a reason. */
bool vyre__cache_file_write(int directory, const char *name,
                            const unsigned char *bytes, size_t size,
                            char why[VYRE__CACHE_REASON]);

/* Returns true if a write up to offset @p end would kill the process: it
 * exceeds RLIMIT_FSIZE, and SIGXFSZ has its default action. The library then
 * does not write. */
bool vyre__kills_process(uint64_t end);

/* Prefix of the files with probe results (probe.h). They are evicted like
 * entries. */
#define VYRE__CACHE_PROBE "probe-"
/* Prefix of the file with times that routers measured (runtime/route). It is
 * evicted like entries. */
#define VYRE__CACHE_TIMES "times-"

typedef struct vyre__cache_item {
  char name[VYRE__CACHE_NAME];
  uint64_t bytes;
  int64_t used_ns;
  bool is_leftover;  /* temporary file of a writer that died */
  bool is_probe;     /* probe results or times; otherwise an entry */
  bool is_directory; /* a directory with the name of an entry */
} vyre__cache_item;

typedef struct vyre__cache_items {
  vyre_allocator allocator;
  vyre__cache_item *items; /* sorted by name */
  size_t count, capacity;
} vyre__cache_items;

/* Lists all files of the cache. Returns false without memory. */
bool vyre__cache_scan(int directory, vyre_allocator allocator,
                      vyre__cache_items *out);
void vyre__cache_items_deinit(vyre__cache_items *items);

/* Removes old leftovers, and the least recently used files until the rest has
 * at most @p max_bytes. Returns false without memory; nothing is removed
 * then. */
bool vyre__cache_evict(int directory, vyre_allocator allocator,
                       uint64_t max_bytes, vyre_cache_pruned *out);

/* --- in memory ------------------------------------------------------------ */

enum { VYRE__CACHE_BUCKETS = 64 };

/* Pipelines of a device that compiles share. The table finds pipelines in use,
 * and owns idle ones, which have no references. An idle pipeline does not
 * retain the device, to avoid a reference cycle. */
typedef struct vyre__pipeline_table {
  pthread_mutex_t lock;
  vyre_pipeline *buckets[VYRE__CACHE_BUCKETS];
  vyre_pipeline *newest, *oldest; /* list of idle pipelines */
  uint32_t idle_count;
} vyre__pipeline_table;

/* Cache result of a compile; part of every pipeline. */
typedef struct vyre__cache_note {
  vyre_cache_info info; /* without origin and memory_hits */
  bool is_open;         /* a miss; the nearest entry was not searched yet */
} vyre__cache_note;

/* Returns the shared pipeline of the same program and options, retained; or
 * NULL. */
vyre_pipeline *vyre__table_find(const vyre_pipeline *wanted);
/* Adds @p pipeline to the table. Returns the pipeline to use: the given one, or
 * one that another thread added first. Takes over the reference, and returns
 * one. */
vyre_pipeline *vyre__table_share(vyre_pipeline *pipeline);
/* Drops a reference. Returns true if the caller must free the pipeline. */
bool vyre__table_release(vyre_pipeline *pipeline);
/* Frees all idle pipelines. */
void vyre__table_deinit(vyre_device *device);

/* --- a compile ------------------------------------------------------------ */

/* A lookup on disk, until the end of the compile. */
typedef struct vyre__cache_lookup {
  vyre_arena arena; /* holds the key */
  vyre__cache_key key;
  vyre__cache_file file; /* the entry, if it was found */
  bool may_store;
} vyre__cache_lookup;

/* Looks up @p pipeline on disk. Returns true if an entry was found.
 * vyre__cache_end must follow in both cases. */
bool vyre__cache_begin(vyre_pipeline *pipeline, vyre__cache_lookup *out);
/* Records whether the pipeline was loaded from the entry. @p problem: NULL, or
 * the reason why the backend rejected it. */
void vyre__cache_loaded(vyre_pipeline *pipeline, const char *problem);
/* Stores an artifact and its extra bytes, if that is possible. */
void vyre__cache_store(vyre_pipeline *pipeline,
                       const vyre__cache_lookup *lookup,
                       const vyre__bytes *artifact, const vyre__bytes *extra);
void vyre__cache_end(vyre__cache_lookup *lookup);
/* Copies the result of the store from @p full to the pipeline whose code it
 * replaces. */
void vyre__cache_replaced(vyre_pipeline *pipeline, const vyre_pipeline *full);

/* Looks up a pipeline on disk; opens one file. Fills @p note with texts in @p
 * arena. On a hit, @p file has the entry, and @p is_used updates the time of
 * its last use. A key without bytes stands for a lack of memory. */
void vyre__cache_find(const vyre_pipeline *wanted, const vyre__cache_key *key,
                      bool is_used, vyre_arena *arena, vyre__cache_note *note,
                      vyre__cache_file *file, bool *may_store);
/* Adds the nearest entry, and the field in which it differs, to the note of a
 * miss. Does so once. It scans the directory, so only explicit requests call
 * it. */
void vyre__cache_explain(const vyre_pipeline *wanted,
                         const vyre__cache_key *key, vyre_arena *arena,
                         vyre__cache_note *note);

#endif
