/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the parts of the pipeline cache know of each other.
 *
 *   key.c        every input that matters, as bytes
 *   entry.c      the bytes of a file: head, key, artifact
 *   directory.c  where files are, and whether that place is safe
 *   disk.c       reading, writing, evicting files
 *   pipeline_table.c     pipelines that a device still has
 *   cache.c            the two calls that a compile makes, and what came of them
 *   inspect.c       what people ask: list, explain, prune */
#ifndef VYRE_RUNTIME_CACHE_CACHE_H
#define VYRE_RUNTIME_CACHE_CACHE_H

#include <pthread.h>

#include "vyre/cache.h"
#include "vyre/writer.h"

/* A reason in words, made up on the spot. */
enum { VYRE__CACHE_WHY = 200 };

/* Bytes that grow. Zeroed but for the allocator is empty. */
typedef struct vyre__cache_bytes {
  vyre_allocator allocator;
  unsigned char *data;
  size_t size, capacity;
  bool failed;
} vyre__cache_bytes;

void vyre__cache_put(vyre__cache_bytes *to, const void *bytes, size_t count);
vyre_writer vyre__cache_writer(vyre__cache_bytes *to);
void vyre__cache_bytes_deinit(vyre__cache_bytes *bytes);

/* Numbers are little endian, wherever they are kept. */
static inline void vyre__cache_store_u64(unsigned char *to, uint64_t value) {
  for (int i = 0; i < 8; i++) to[i] = (unsigned char)(value >> (8 * i));
}

static inline uint64_t vyre__cache_load_u64(const unsigned char *from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << (8 * i);
  return value;
}

/* --- keys ------------------------------------------------------------------- */

/* u64 count of fields; each: u64 size of the name, the name, u64 size of the
 * value, the value. */

enum { VYRE__CACHE_FIELDS = 32, VYRE__CACHE_NAME = 80 };

typedef struct vyre__cache_key {
  const unsigned char *bytes;
  size_t size;
  char name[VYRE__CACHE_NAME]; /* of the file */
} vyre__cache_key;

/* What a key is of. */
typedef struct vyre__cache_subject {
  vyre_device *device;
  const vyre_program *program;
  const uint32_t *workgroup; /* three numbers, resolved */
  uint8_t ulp_budget;
  bool counts_rounds;
} vyre__cache_subject;

/* False without memory. */
bool vyre__cache_key_build(const vyre__cache_subject *subject,
                           vyre_arena *arena, vyre__cache_key *out);

/* A field of a key that was checked; points into it. */
typedef struct vyre__cache_part {
  const char *name;
  size_t name_size;
  const unsigned char *value;
  size_t size;
} vyre__cache_part;

/* Reads up to VYRE__CACHE_FIELDS fields. False if the bytes are no key. */
bool vyre__cache_key_read(const unsigned char *bytes, size_t size,
                          vyre__cache_part parts[VYRE__CACHE_FIELDS],
                          size_t *count);

/* How many fields of two keys differ, and the first of them; a field that one of
 * them lacks has size 0 and no value there. */
size_t vyre__cache_key_compare(const vyre__cache_part *a, size_t a_count,
                               const vyre__cache_part *b, size_t b_count,
                               vyre__cache_part *a_first,
                               vyre__cache_part *b_first);

/* The name that the file of a key has. */
bool vyre__cache_key_name(const unsigned char *bytes, size_t size,
                          char out[VYRE__CACHE_NAME]);
bool vyre__cache_is_entry(const char *name);

/* Texts in @p arena; NULL without memory. */
const char *vyre__cache_part_name(vyre_arena *arena,
                                  const vyre__cache_part *part);
const char *vyre__cache_part_text(vyre_arena *arena,
                                  const vyre__cache_part *part);
/* The same for all; false without memory. */
bool vyre__cache_fields(const vyre__cache_part *parts, size_t count,
                        vyre_arena *arena, const vyre_cache_field **out);

/* --- entries ---------------------------------------------------------------- */

/* Head: magic, u64 version, u64 size of the key, of the artifact, of all, 8
 * bytes of 0, 16 bytes checksum of all but itself. Then the key, zeros up to a
 * multiple of 16, the artifact. */
enum {
  VYRE__CACHE_HEAD = 64,
  VYRE__CACHE_CHECKSUM_AT = 48,
  VYRE__CACHE_VERSION = 1
};

typedef struct vyre__cache_entry {
  const unsigned char *key, *artifact;
  size_t key_size, artifact_size;
} vyre__cache_entry;

/* NULL if the bytes are an entry, all of them; else what is wrong. */
const char *vyre__cache_entry_read(const unsigned char *bytes, size_t size,
                                   vyre__cache_entry *out);
/* The part of it that the head alone can tell, for a file of @p size bytes. */
const char *vyre__cache_head_read(const unsigned char *head, uint64_t size);

/* Begin, then append the artifact, then end. */
void vyre__cache_entry_begin(vyre__cache_bytes *to, const vyre__cache_key *key);
void vyre__cache_entry_end(vyre__cache_bytes *to, size_t key_size);

/* --- the directory ---------------------------------------------------------- */

/* What the environment says; NULL: nothing. */
typedef struct vyre__cache_environment {
  const char *directory, *bytes, *xdg, *home;
} vyre__cache_environment;

/* A context's; set once, when it is made. */
typedef struct vyre__cache {
  char *path; /* NULL: none, and `off` says why */
  size_t path_size;
  uint64_t max_bytes;
  const char *off, *fix; /* static */
} vyre__cache;

/* Whether this process has rights that its caller has not: it then believes
 * nothing that the environment says. */
bool vyre__is_privileged(void);
bool vyre__cache_is_privileged(unsigned long secure, const unsigned ids[4]);

/* False without memory. */
bool vyre__cache_init(vyre__cache *cache, vyre_allocator allocator,
                      const vyre_context_options *options,
                      const vyre__cache_environment *environment);
void vyre__cache_deinit(vyre__cache *cache, vyre_allocator allocator);

/* Why a directory is not used. */
typedef struct vyre__cache_refusal {
  bool is_absent; /* nothing is wrong: there is none yet */
  char reason[VYRE__CACHE_WHY];
  const char *fix;
} vyre__cache_refusal;

/* Opens the directory, and makes it if @p create. It is looked at each time: no
 * descriptor is kept, and what was safe may be so no more. -1: not to be used. */
int vyre__cache_open(const vyre__cache *cache, bool create,
                     vyre__cache_refusal *why);
/* Whether the directory, which vyre__cache_open found absent, could be made. Leaves
 * nothing behind. */
bool vyre__cache_can_make(const vyre__cache *cache, vyre__cache_refusal *why);

/* --- files ------------------------------------------------------------------ */

typedef struct vyre__cache_file {
  vyre_allocator allocator;
  unsigned char *bytes;
  size_t size;
  int64_t used_ns; /* when it was used last */
  vyre__cache_entry entry;
} vyre__cache_file;

typedef enum vyre__cache_read_result {
  VYRE__CACHE_READ,
  VYRE__CACHE_ABSENT,
  VYRE__CACHE_REJECTED, /* `why` says why */
  VYRE__CACHE_NO_MEMORY
} vyre__cache_read_result;

/* Reads and checks a file. Freed by vyre__cache_file_deinit, which takes a zeroed
 * one too. */
vyre__cache_read_result vyre__cache_file_read(int directory, const char *name,
                                              vyre_allocator allocator,
                                              vyre__cache_file *out,
                                              const char **why);
void vyre__cache_file_deinit(vyre__cache_file *file);

/* Opens a plain file of this user that nobody else can write. -1: it is not to be
 * read, and *why says why, or is NULL if there is none. */
int vyre__cache_file_open(int directory, const char *name, uint64_t *size,
                          int64_t *used_ns, const char **why);
/* All of such a file, if it has at most @p room bytes. */
bool vyre__cache_file_bytes(int directory, const char *name, void *to,
                            size_t room, size_t *out);

/* Marks it as used just now. */
void vyre__cache_touch(int directory, const char *name);
/* Whether it was marked in the last minute: not worth doing so again, which takes
 * as long as reading it. */
bool vyre__cache_is_recent(int64_t used_ns);

/* Puts a file in place, whole or not at all. False with a reason. */
bool vyre__cache_file_write(int directory, const char *name,
                            const unsigned char *bytes, size_t size,
                            char why[VYRE__CACHE_WHY]);

/* Whether a write that ends at @p end of a file would end the process: it is beyond
 * its limit, and the process does not look after that signal itself. No file of the
 * library is worth that. */
bool vyre__kills_process(uint64_t end);

/* How the files of probes begin (probe.h). They are evicted as entries are. */
#define VYRE__CACHE_PROBE "probe-"

typedef struct vyre__cache_item {
  char name[VYRE__CACHE_NAME];
  uint64_t bytes;
  int64_t used_ns;
  bool is_leftover;  /* of a writer that did not end */
  bool is_probe;     /* what a probe found; else an entry */
  bool is_directory; /* in the place of an entry */
} vyre__cache_item;

typedef struct vyre__cache_items {
  vyre_allocator allocator;
  vyre__cache_item *items; /* by name */
  size_t count, capacity;
} vyre__cache_items;

/* All of the cache's files. False without memory. */
bool vyre__cache_scan(int directory, vyre_allocator allocator,
                      vyre__cache_items *out);
void vyre__cache_items_deinit(vyre__cache_items *items);

/* Removes old leftovers, and the least recently used entries until the rest has
 * at most @p max_bytes. False without memory: nothing was removed. */
bool vyre__cache_evict(int directory, vyre_allocator allocator,
                       uint64_t max_bytes, vyre_cache_pruned *out);

/* --- in memory -------------------------------------------------------------- */

enum { VYRE__CACHE_BUCKETS = 64 };

/* Pipelines of a device that any compile may share. Those in use are known only;
 * those that everybody let go of are parked: the device owns them, and they do
 * not hold the device, so that no two things keep each other. */
typedef struct vyre__pipeline_table {
  pthread_mutex_t lock;
  vyre_pipeline *buckets[VYRE__CACHE_BUCKETS];
  vyre_pipeline *newest, *oldest; /* parked */
  uint32_t parked;
} vyre__pipeline_table;

/* What came of the cache; part of every pipeline. */
typedef struct vyre__cache_note {
  vyre_cache_result made;
  const char *reason, *entry, *field, *wanted, *found, *not_stored;
  bool is_rejected, is_stored;
  bool is_open; /* a miss whose nearest entry was not looked for */
} vyre__cache_note;

/* What it says to people. */
vyre_cache_info vyre__cache_info(const vyre__cache_note *note);

/* A shared pipeline that was compiled of the same program for the same options,
 * retained; or NULL. */
vyre_pipeline *vyre__table_find(const vyre__cache_subject *subject);
/* Lets others share @p pipeline; gives back the one to use, if somebody else was
 * faster. Takes the reference, gives one. */
vyre_pipeline *vyre__table_share(vyre_pipeline *pipeline);
/* Drops a reference. True: the caller must free the pipeline. */
bool vyre__table_release(vyre_pipeline *pipeline);
/* Frees all that are parked. */
void vyre__table_deinit(vyre_device *device);

/* --- a compile -------------------------------------------------------------- */

/* From the look to the end of the compile. */
typedef struct vyre__cache_try {
  vyre_arena arena;
  vyre__cache_key key;
  bool may_store;
} vyre__cache_try;

/* Makes @p pipeline of what is on disk. False: compile it. vyre__cache_end must
 * follow, whatever came of it. */
bool vyre__cache_load(vyre_pipeline *pipeline, vyre__cache_try *tried);
/* The note of a pipeline that is compiled whatever there is. */
void vyre__cache_skip(vyre_pipeline *pipeline);
/* Keeps it, if it was compiled. */
void vyre__cache_end(vyre_pipeline *pipeline, vyre__cache_try *tried,
                     bool was_compiled);

/* What the disk has for a subject: opens one file. Fills @p note, texts in
 * @p arena; @p file has the entry of a hit, which counts as a use if @p is_used. A
 * key without bytes: there was no memory for it. */
void vyre__cache_find(const vyre__cache_subject *subject,
                      const vyre__cache_key *key, bool is_used,
                      vyre_arena *arena, vyre__cache_note *note,
                      vyre__cache_file *file, bool *may_store);
/* Adds to the note of a miss in which field the nearest entry differs, once. It
 * goes through the whole directory: only for who asks. */
void vyre__cache_explain(const vyre__cache_subject *subject,
                         const vyre__cache_key *key, vyre_arena *arena,
                         vyre__cache_note *note);

#endif
