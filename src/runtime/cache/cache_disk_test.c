/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of cache files: corrupt files, unsafe directories, size limits,
 * concurrent processes. */
#define _GNU_SOURCE /* RTLD_NEXT; NOLINT(bugprone-reserved-identifier) */
#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include "runtime/cache/cache_testing.h"

/* --- directory scans ------------------------------------------------------ */

/* Replaces a function of the C library that every scan calls. */
static atomic_int scans;

DIR *fdopendir(int descriptor) {
  DIR *(*next)(int);
  *(void **)&next = dlsym(RTLD_NEXT, "fdopendir");
  atomic_fetch_add(&scans, 1);
  return next(descriptor);
}

/* --- files ---------------------------------------------------------------- */

typedef struct contents {
  unsigned char *bytes;
  size_t size;
} contents;

static contents file_read(const char *path) {
  contents out = {malloc(1 << 20), 0};
  FILE *file = fopen(path, "rb");
  CHECK(file && out.bytes);
  out.size = fread(out.bytes, 1, 1 << 20, file);
  fclose(file);
  return out;
}

static void file_write(const char *path, const unsigned char *bytes,
                       size_t size) {
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, size, file) == size);
  CHECK(fclose(file) == 0);
}

static bool file_is(const char *path, const contents *want) {
  contents got = file_read(path);
  bool same =
      got.size == want->size && memcmp(got.bytes, want->bytes, want->size) == 0;
  free(got.bytes);
  return same;
}

/* Creates a directory with one entry, and returns its contents. */
static contents make_entry(char folder[FOLDER_TEXT], char path[PATH_TEXT]) {
  folder_make(folder);
  kept_reset();
  kept_compile(folder);
  CHECK_U64(folder_count(folder, path), 1);
  return file_read(path);
}

/* --- corrupt entries ------------------------------------------------------ */

/* Checks that the file at @p path is a counted miss, and is replaced. */
static void check_replaced(const char *folder, const char *path,
                           const contents *good) {
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS);
  CHECK(got.info.is_rejected && got.info.is_stored);
  CHECK_HAS(got.reason, "the entry is invalid: it");
  CHECK_U64(got.counters.cache_rejected, 1);
  CHECK_U64(got.counters.cache_misses, 1);
  CHECK_U64(got.counters.compiles, 1);
  CHECK(file_is(path, good));
}

/* Flips every byte for the reader, and some for a compile, which is slower. */
TEST(an_entry_with_any_byte_flipped_is_refused_and_replaced) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  contents good = make_entry(folder, path);
  vyre__cache_entry entry;
  CHECK(!vyre__cache_entry_read(good.bytes, good.size, &entry));
  for (size_t i = 0; i < good.size; i++) {
    for (unsigned mask = 1; mask < 256; mask = mask * 2 + 1) {
      good.bytes[i] ^= (unsigned char)mask;
      CHECK(vyre__cache_entry_read(good.bytes, good.size, &entry) != NULL);
      good.bytes[i] ^= (unsigned char)mask;
    }
    if (i >= VYRE__CACHE_HEAD && i % 37 != 0 && i + 1 != good.size) continue;
    good.bytes[i] ^= 0x10;
    file_write(path, good.bytes, good.size);
    good.bytes[i] ^= 0x10;
    check_replaced(folder, path, &good);
  }
  free(good.bytes);
  folder_remove(folder);
}

TEST(an_entry_cut_at_any_length_is_refused_and_replaced) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  contents good = make_entry(folder, path);
  vyre__cache_entry entry;
  for (size_t size = 0; size < good.size; size++) {
    /* A copy of exactly that size: a sanitizer finds reads beyond it. */
    unsigned char *cut = malloc(size + (size == 0));
    CHECK(cut != NULL);
    memcpy(cut, good.bytes, size);
    CHECK(vyre__cache_entry_read(cut, size, &entry) != NULL);
    free(cut);
    if (size > VYRE__CACHE_HEAD && size % 61 != 0) continue;
    file_write(path, good.bytes, size);
    check_replaced(folder, path, &good);
  }
  free(good.bytes);
  folder_remove(folder);
}

TEST(an_entry_with_extra_bytes_is_refused_and_replaced) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  contents good = make_entry(folder, path);
  good.bytes[good.size] = 0;
  file_write(path, good.bytes, good.size + 1);
  check_replaced(folder, path, &good);
  free(good.bytes);
  folder_remove(folder);
}

/* Simulates a hash collision: the name matches, and the key differs. */
TEST(keys_with_the_same_name_are_compared_by_their_bytes) {
  char folder[FOLDER_TEXT], path[PATH_TEXT], other[PATH_TEXT];
  contents good = make_entry(folder, path);
  CHECK(unlink(path) == 0);
  kept_driver = "driver 2";
  kept_compile(folder);
  CHECK_U64(folder_count(folder, other), 1);
  CHECK(rename(other, path) == 0);
  kept_driver = "driver 1";
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && !got.info.is_rejected);
  CHECK_TEXT(got.field, "driver");
  CHECK_TEXT(got.found, "driver 2");
  CHECK(got.info.is_stored && file_is(path, &good));
  CHECK(kept_compile(folder).info.result == VYRE_CACHE_DISK_HIT);
  free(good.bytes);
  folder_remove(folder);
}

/* --- other files with the name of an entry -------------------------------- */

static void put_link(const char *path) {
  char target[PATH_TEXT + 8];
  snprintf(target, sizeof target, "%s.real", path);
  CHECK(rename(path, target) == 0 && symlink(target, path) == 0);
}

static void put_pipe(const char *path) {
  CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
}

static void put_shared(const char *path) {
  CHECK(chmod(path, 0666) == 0);
}

static void put_foreign(const char *path) {
  if (geteuid() == 0) {
    CHECK(chown(path, 65534, 65534) == 0);
  } else {
    put_shared(path); /* only root can change the owner */
  }
}

TEST(only_regular_files_of_this_user_are_used) {
  static void (*const puts_there[])(const char *) = {put_link, put_pipe,
                                                     put_shared, put_foreign};
  for (size_t i = 0; i < sizeof puts_there / sizeof puts_there[0]; i++) {
    char folder[FOLDER_TEXT], path[PATH_TEXT];
    contents good = make_entry(folder, path);
    puts_there[i](path);
    check_replaced(folder, path, &good);
    struct stat about;
    CHECK(lstat(path, &about) == 0 && S_ISREG(about.st_mode));
    CHECK((about.st_mode & 0777) == 0600 && about.st_uid == geteuid());
    free(good.bytes);
    folder_remove(folder);
  }
}

TEST(a_directory_with_the_name_of_an_entry_does_no_harm) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  contents good = make_entry(folder, path);
  CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && got.info.is_rejected);
  CHECK(!got.info.is_stored);
  CHECK_HAS(got.not_stored, "renaming it failed");
  CHECK_U64(folder_count(folder, NULL), 1); /* and no leftover */
  free(good.bytes);
  folder_remove(folder);
}

/* --- the directory -------------------------------------------------------- */

static void check_off(const char *folder, const char *why) {
  kept_reset();
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_OFF && !got.info.is_stored);
  CHECK_HAS(got.reason, why);
  CHECK_TEXT(got.not_stored, got.reason);
  CHECK_U64(kept_saves, 0);
  kept_rig r = kept_open(folder);
  vyre_arena arena = {0};
  vyre_cache_listing listing;
  CHECK(vyre_cache_list(r.context, &arena, &listing, NULL) == VYRE_OK);
  CHECK(!listing.is_enabled && listing.entry_count == 0);
  CHECK_TEXT(listing.reason, got.reason);
  CHECK(listing.fix[0]);
  vyre_arena_deinit(&arena);
  kept_close(&r);
}

TEST(a_directory_that_others_can_enter_is_not_used) {
  static const mode_t modes[] = {0755, 0750, 0710, 0701, 0777, 01777};
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    char folder[FOLDER_TEXT], mode[40];
    folder_make(folder);
    CHECK(chmod(folder, modes[i]) == 0);
    snprintf(mode, sizeof mode, "its mode is %o", (unsigned)modes[i]);
    check_off(folder, mode);
    CHECK_U64(folder_count(folder, NULL), 0);
    folder_remove(folder);
  }
}

TEST(a_directory_of_another_user_is_not_used) {
  char folder[FOLDER_TEXT];
  if (geteuid() == 0) {
    folder_make(folder);
    CHECK(chown(folder, 65534, 65534) == 0);
    check_off(folder, "it belongs to another user, with id 65534");
    folder_remove(folder);
  } else {
    check_off("/usr", "it belongs to another user, with id 0");
  }
}

TEST(a_link_to_a_directory_is_not_used) {
  static const char *const ends[] = {"", "/", "//"};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    char folder[FOLDER_TEXT], real[PATH_TEXT], link[PATH_TEXT];
    folder_make(folder);
    snprintf(real, sizeof real, "%s/real", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    CHECK(mkdir(real, 0700) == 0 && symlink(real, link) == 0);
    snprintf(link, sizeof link, "%s/link%s", folder, ends[i]);
    check_off(link, "it is a symbolic link or not a directory");
    CHECK_U64(folder_count(real, NULL), 0);
    folder_remove(folder);
  }
}

TEST(a_file_is_not_a_directory) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  folder_make(folder);
  snprintf(path, sizeof path, "%s/file", folder);
  file_write(path, (const unsigned char *)"x", 1);
  check_off(path, "it is a symbolic link or not a directory");
  folder_remove(folder);
}

TEST(a_missing_directory_is_created_for_this_user_only) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  snprintf(path, sizeof path, "%s/a/b//c/", folder);
  kept_rig r = kept_open(path);
  CHECK_U64(folder_count(folder, NULL), 0); /* not before it is needed */
  kept_result got = kept_compile_with(&r, NULL);
  CHECK_TEXT(got.reason, "the cache is empty");
  CHECK(got.info.result == VYRE_CACHE_MISS && got.info.is_stored);
  struct stat about;
  CHECK(stat(path, &about) == 0 && (about.st_mode & 07777) == 0700);
  CHECK_U64(folder_count(path, NULL), 1);
  kept_close(&r);
  folder_remove(folder);
}

/* Returns the public description of the directory. */
static vyre_cache_location place_of(const char *folder, vyre_arena *arena) {
  vyre_context_options options = {.cache_directory = folder, .trace_file = ""};
  vyre_context *context;
  vyre_cache_location place;
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_cache_get_location(context, arena, &place, &st), st);
  vyre_context_release(context);
  return place;
}

static void compile_read_only(void) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  contents good = make_entry(folder, path);
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre_cache_location place = place_of(folder, &arena);
  CHECK(place.is_enabled && place.exists && !place.is_read_only);
  CHECK_TEXT(place.reason, "");
  CHECK(chmod(folder, 0500) == 0);
  place = place_of(folder, &arena);
  CHECK(place.is_enabled && place.exists && place.is_read_only);
  CHECK_HAS(place.reason, "it is read-only");
  CHECK_HAS(place.fix, "VYRE_CACHE_DIR");
  vyre_arena_deinit(&arena);
  CHECK(kept_compile(folder).info.result == VYRE_CACHE_DISK_HIT);
  kept_driver = "driver 2";
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && !got.info.is_stored);
  CHECK_HAS(got.not_stored,
            "cannot create a file in the directory: Permission denied");
  CHECK_U64(folder_count(folder, NULL), 1);
  free(good.bytes);
  folder_remove(folder);
}

TEST(a_read_only_directory_still_gives_hits) {
  CHECK_U64((unsigned)in_process(compile_read_only, true), 0);
}

/* --- privileges ----------------------------------------------------------- */

TEST(a_process_with_other_effective_ids_is_privileged) {
  static const struct {
    unsigned long secure;
    unsigned ids[4];
    bool want;
  } cases[] = {{0, {5, 5, 6, 6}, false},
               {1, {5, 5, 6, 6}, true},
               {0, {5, 0, 6, 6}, true},
               {0, {5, 5, 6, 0}, true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK(vyre__cache_is_privileged(cases[i].secure, cases[i].ids) ==
          cases[i].want);
  }
}

static void compile_privileged(void) {
  if (seteuid(65534) != 0) return; /* only root can try */
  char folder[FOLDER_TEXT];
  folder_make(folder);
  check_off(folder, "with the privileges of another user");
  folder_remove(folder);
}

TEST(a_set_uid_process_has_no_cache) {
  CHECK_U64((unsigned)in_process(compile_privileged, false), 0);
}

/* --- options and the environment ------------------------------------------ */

static const struct {
  const char *what;
  const char *option, *directory, *xdg, *home; /* NULL: not set */
  const char *path;                            /* or NULL */
  const char *off;                             /* the reason, if path is NULL */
} places[] = {
    {"the option wins", "/o", "/d", "/x", "/h", "/o", NULL},
    {"then VYRE_CACHE_DIR", NULL, "/d", "/x", "/h", "/d", NULL},
    {"then XDG_CACHE_HOME", NULL, NULL, "/x", "/h", "/x/vyre", NULL},
    {"then HOME", NULL, NULL, NULL, "/h", "/h/.cache/vyre", NULL},
    {"relative XDG does not count", NULL, NULL, "x", "/h", "/h/.cache/vyre",
     NULL},
    {"empty XDG does not count", NULL, NULL, "", "/h", "/h/.cache/vyre", NULL},
    {"slashes at the end are cut", "/o//", NULL, NULL, NULL, "/o", NULL},
    {"an empty option disables it", "", "/d", "/x", "/h", NULL,
     "no cache directory"},
    {"an empty variable disables it", NULL, "", "/x", "/h", NULL,
     "VYRE_CACHE_DIR is empty"},
    {"nothing is set", NULL, NULL, NULL, NULL, NULL, "neither"},
};

TEST(the_directory_has_a_fixed_order_of_sources) {
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    vyre__cache cache;
    vyre_context_options options = {.cache_directory = places[i].option};
    vyre__cache_environment environment = {.directory = places[i].directory,
                                           .xdg = places[i].xdg,
                                           .home = places[i].home};
    CHECK(
        vyre__cache_init(&cache, (vyre_allocator){0}, &options, &environment));
    if (places[i].path) {
      CHECK_TEXT(cache.path, places[i].path);
      CHECK(!cache.off);
    } else {
      CHECK(!cache.path);
      CHECK_HAS(cache.off, places[i].off);
      CHECK(cache.fix[0]);
    }
    CHECK_U64(cache.max_bytes, (uint64_t)256 << 20);
    vyre__cache_deinit(&cache, (vyre_allocator){0});
  }
}

TEST(a_path_that_is_too_long_is_refused) {
  char path[1300];
  vyre__cache_refusal why;
  memset(path, 'a', sizeof path);
  path[0] = '/';
  path[1200] = '\0';
  for (size_t i = 100; i < 1200; i += 100) path[i] = '/';
  vyre__cache cache = {.path = path};
  for (int create = 0; create < 2; create++) {
    CHECK(vyre__cache_open(&cache, create, &why) < 0);
    CHECK(!why.is_absent);
    CHECK_HAS(why.reason, "its path has 1200 bytes");
    CHECK_HAS(why.fix, "shorter");
  }
}

static const struct {
  uint64_t option;
  const char *variable;
  uint64_t want; /* 0: off */
} caps[] = {{0, NULL, (uint64_t)256 << 20},
            {0, "", (uint64_t)256 << 20},
            {7, "5", 7},
            {0, "5", 5},
            {0, "18446744073709551615", UINT64_MAX},
            {0, "18446744073709551616", 0},
            {0, "256M", 0},
            {0, "-1", 0},
            {0, "0", 0}};

TEST(the_size_limit_is_a_whole_number) {
  for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
    vyre__cache cache;
    vyre_context_options options = {.cache_directory = "/o",
                                    .cache_bytes = caps[i].option};
    vyre__cache_environment environment = {.bytes = caps[i].variable};
    CHECK(
        vyre__cache_init(&cache, (vyre_allocator){0}, &options, &environment));
    CHECK_U64(cache.max_bytes, caps[i].want);
    CHECK((cache.off == NULL) == (caps[i].want != 0));
    if (cache.off) CHECK_HAS(cache.off, "VYRE_CACHE_BYTES is");
    vyre__cache_deinit(&cache, (vyre_allocator){0});
  }
}

TEST(a_context_reads_the_environment) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  setenv("VYRE_CACHE_DIR", folder, 1);
  CHECK(kept_compile(NULL).info.is_stored);
  CHECK_U64(folder_count(folder, NULL), 1);
  setenv("VYRE_CACHE_BYTES", "100", 1);
  kept_driver = "driver 2";
  kept_result got = kept_compile(NULL);
  CHECK_HAS(got.not_stored, "bytes, and the cache is limited to 100");
  unsetenv("VYRE_CACHE_DIR");
  unsetenv("VYRE_CACHE_BYTES");
  folder_remove(folder);
}

/* --- explanations --------------------------------------------------------- */

/* *looks: number of scans by the compile alone. */
static vyre_pipeline *compile_wide(const kept_rig *r, uint32_t workgroup,
                                   int *looks) {
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  const vyre_compile_options options = {.workgroup = {workgroup}};
  int before = atomic_load(&scans);
  CHECK_OK(vyre_pipeline_compile(r->device, r->program, &options, &pipeline,
                                 NULL, &st),
           st);
  *looks = atomic_load(&scans) - before;
  return pipeline;
}

TEST(only_an_explanation_scans_the_directory) {
  char folder[FOLDER_TEXT];
  int looks;
  folder_make(folder);
  kept_reset();
  kept_compile(folder);
  kept_rig r = kept_open(folder);
  /* A miss: one scan, for the size limit. */
  vyre_pipeline *pipeline = compile_wide(&r, 32, &looks);
  CHECK_U64((unsigned)looks, 1);
  vyre_cache_info info;
  int before = atomic_load(&scans);
  for (int i = 0; i < 3; i++) { /* the first request scans once more */
    CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
    CHECK(info.result == VYRE_CACHE_MISS && info.is_stored);
    CHECK_TEXT(info.field, "workgroup");
    CHECK_TEXT(info.wanted, "32x1x1");
    CHECK_TEXT(info.found, "64x1x1");
    CHECK_HAS(info.reason, "differs in 'workgroup'");
    CHECK_U64((unsigned)atomic_load(&scans), (unsigned)before + 1);
  }
  vyre_pipeline_release(pipeline);
  kept_close(&r);
  /* A hit: no scan. */
  r = kept_open(folder);
  pipeline = compile_wide(&r, 32, &looks);
  before = atomic_load(&scans);
  CHECK(vyre_pipeline_get_cache_info(pipeline, &info));
  CHECK(info.result == VYRE_CACHE_DISK_HIT && !info.field);
  CHECK(looks == 0 && atomic_load(&scans) == before);
  vyre_pipeline_release(pipeline);
  /* An explanation scans. */
  vyre_arena arena;
  vyre_cache_explanation why;
  vyre_status st = {0};
  const vyre_compile_options options = {.workgroup = {16}};
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_cache_explain(r.device, r.program, &options, &arena, &why, &st),
           st);
  CHECK_U64((unsigned)(atomic_load(&scans) - before), 1);
  CHECK_TEXT(why.info.field, "workgroup");
  vyre_arena_deinit(&arena);
  kept_close(&r);
  folder_remove(folder);
}

/* --- the cap -------------------------------------------------------------- */

static void set_age(const char *path, long seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec -= seconds;
  const struct timespec times[2] = {now, now};
  CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
}

/* Compiles for driver @p number, and returns the path of its entry. */
static kept_result compile_driver(const char *folder, char number, uint64_t cap,
                                  char path[PATH_TEXT]) {
  static char driver[] = "driver ?";
  driver[7] = number;
  kept_driver = driver;
  kept_rig r = kept_open_sized(folder, kept_kernel, cap);
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  CHECK_OK(
      vyre_pipeline_compile(r.device, r.program, NULL, &pipeline, NULL, &st),
      st);
  kept_result out = {0};
  CHECK(vyre_pipeline_get_cache_info(pipeline, &out.info));
  snprintf(path, PATH_TEXT, "%s/%s", folder, out.info.entry);
  vyre_pipeline_release(pipeline);
  kept_close(&r);
  return out;
}

static bool exists(const char *path) {
  return access(path, F_OK) == 0;
}

/* Returns the age of the file in seconds. */
static long age_of(const char *path) {
  struct stat about;
  struct timespec now;
  CHECK(stat(path, &about) == 0);
  clock_gettime(CLOCK_REALTIME, &now);
  return (long)(now.tv_sec - about.st_mtim.tv_sec);
}

TEST(a_use_updates_the_time_once_a_minute) {
  static const struct {
    long age;
    bool is_marked;
  } cases[] = {{10, false},
               {50, false},
               {70, true},
               {3000, true},
               {-90, true},
               {-10000000000, true}, /* after 2262: more ns than 63 bits */
               {2500000000, true}};  /* before 1970 */
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  compile_driver(folder, 'a', 0, path);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    set_age(path, cases[i].age);
    CHECK(compile_driver(folder, 'a', 0, path).info.result ==
          VYRE_CACHE_DISK_HIT);
    long age = age_of(path);
    CHECK((age >= 0 && age < 9) == cases[i].is_marked);
  }
  folder_remove(folder);
}

TEST(above_the_limit_the_least_recently_used_entry_is_evicted) {
  char folder[FOLDER_TEXT], a[PATH_TEXT], b[PATH_TEXT], c[PATH_TEXT],
      d[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  kept_padding = 1000;
  compile_driver(folder, 'a', 0, a);
  struct stat about;
  CHECK(stat(a, &about) == 0);
  uint64_t cap = (uint64_t)about.st_size * 3; /* all have one size */
  compile_driver(folder, 'b', cap, b);
  compile_driver(folder, 'c', cap, c);
  set_age(a, 300);
  set_age(b, 200);
  set_age(c, 100);
  CHECK(compile_driver(folder, 'a', cap, a).info.result ==
        VYRE_CACHE_DISK_HIT); /* a use: b is the oldest now */
  compile_driver(folder, 'd', cap, d);
  CHECK(exists(a) && !exists(b) && exists(c) && exists(d));
  CHECK_U64(folder_count(folder, NULL), 3);
  folder_remove(folder);
}

TEST(an_entry_above_the_limit_is_not_written) {
  char folder[FOLDER_TEXT], path[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  kept_result got = compile_driver(folder, 'a', 200, path);
  CHECK(got.info.result == VYRE_CACHE_MISS && !got.info.is_stored);
  CHECK_U64(folder_count(folder, NULL), 0);
  folder_remove(folder);
}

TEST(old_leftovers_are_removed) {
  char folder[FOLDER_TEXT], old[PATH_TEXT], fresh[PATH_TEXT], mine[PATH_TEXT],
      path[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  snprintf(old, sizeof old, "%s/.tmp-1-2-3", folder);
  snprintf(fresh, sizeof fresh, "%s/.tmp-4-5-6", folder);
  snprintf(mine, sizeof mine, "%s/notes.txt", folder);
  file_write(old, (const unsigned char *)"x", 1);
  file_write(fresh, (const unsigned char *)"x", 1);
  file_write(mine, (const unsigned char *)"x", 1);
  set_age(old, 4000);
  set_age(mine, 400000);
  compile_driver(folder, 'a', 0, path);
  CHECK(!exists(old) && exists(fresh) && exists(mine) && exists(path));
  folder_remove(folder);
}

TEST(prune_removes_corrupt_entries_and_then_the_oldest) {
  char folder[FOLDER_TEXT], a[PATH_TEXT], b[PATH_TEXT], c[PATH_TEXT],
      mine[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  compile_driver(folder, 'a', 0, a);
  compile_driver(folder, 'b', 0, b);
  compile_driver(folder, 'c', 0, c);
  snprintf(mine, sizeof mine, "%s/notes.txt", folder);
  file_write(mine, (const unsigned char *)"x", 1);
  struct stat about;
  CHECK(stat(a, &about) == 0);
  uint64_t size = (uint64_t)about.st_size;
  set_age(b, 100);
  CHECK(truncate(a, 70) == 0);
  kept_rig r = kept_open(folder);
  vyre_cache_pruned got;
  vyre_status st = {0};
  vyre_cache_prune_options options = {.max_bytes = 2 * size};
  CHECK_OK(vyre_cache_prune(r.context, &options, &got, &st), st);
  CHECK(got.removed_count == 1 && got.removed_bytes == 70);
  CHECK(got.left_count == 2 && got.left_bytes == 2 * size && !exists(a));
  options.max_bytes = size;
  CHECK_OK(vyre_cache_prune(r.context, &options, &got, &st), st);
  CHECK(got.removed_count == 1 && !exists(b) && exists(c));
  options.remove_all = true;
  CHECK_OK(vyre_cache_prune(r.context, &options, &got, &st), st);
  CHECK(got.left_count == 0 && !exists(c) && exists(mine));
  kept_close(&r);
  folder_remove(folder);
}

TEST(a_listing_has_every_entry_and_its_problem) {
  char folder[FOLDER_TEXT], a[PATH_TEXT], b[PATH_TEXT], renamed[PATH_TEXT];
  folder_make(folder);
  kept_reset();
  compile_driver(folder, 'a', 0, a);
  compile_driver(folder, 'b', 0, b);
  memcpy(renamed, b, sizeof renamed);
  char *digit = strrchr(renamed, '-') + 1; /* of the hash of the key */
  *digit = *digit == '0' ? '1' : '0';
  CHECK(rename(b, renamed) == 0);
  kept_rig r = kept_open(folder);
  vyre_arena arena = {0};
  vyre_cache_listing got;
  vyre_status st = {0};
  CHECK_OK(vyre_cache_list(r.context, &arena, &got, &st), st);
  CHECK(got.is_enabled && got.entry_count == 2 && got.corrupt_count == 1);
  CHECK_TEXT(got.directory, folder);
  CHECK_U64(got.bytes, got.entries[0].bytes + got.entries[1].bytes);
  CHECK(strcmp(got.entries[0].name, got.entries[1].name) < 0);
  const vyre_cache_entry *bad = &got.entries[got.entries[0].is_valid];
  const vyre_cache_entry *good = &got.entries[!got.entries[0].is_valid];
  CHECK_TEXT(bad->problem, "its name does not match its key");
  CHECK(good->is_valid && good->field_count == 14 && !good->problem[0]);
  CHECK_TEXT(good->fields[3].name, "driver");
  CHECK_TEXT(good->fields[3].text, "driver a");
  CHECK(good->artifact_bytes > 30 && good->last_used > 1500000000);
  vyre_arena_deinit(&arena);
  kept_close(&r);
  folder_remove(folder);
}

/* --- a full disk ---------------------------------------------------------- */

static void compile_limited(void) {
  char folder[FOLDER_TEXT];
  folder_make(folder);
  kept_reset();
  kept_padding = 100000;
  CHECK(setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096}) == 0);
  kept_result got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && !got.info.is_stored);
  CHECK_HAS(got.not_stored, "exceeds the file size limit of this process");
  CHECK_U64(folder_count(folder, NULL), 0);
  /* If the signal is ignored, the write fails in the middle. */
  signal(SIGXFSZ, SIG_IGN);
  got = kept_compile(folder);
  CHECK(got.info.result == VYRE_CACHE_MISS && !got.info.is_stored);
  CHECK_HAS(got.not_stored, "writing it failed: File too large");
  CHECK_U64(folder_count(folder, NULL), 0);
  folder_remove(folder);
}

TEST(a_write_that_fails_leaves_no_file) {
  CHECK_U64((unsigned)in_process(compile_limited, false), 0);
}

/* --- concurrent processes ------------------------------------------------- */

static char shared_folder[FOLDER_TEXT];

enum { PROCESSES = 4, ROUNDS = 40 };

/* Compiles, evicts and lists in a loop; no partial file may appear. */
static void use_shared(void) {
  kept_reset();
  kept_padding = 5000;
  for (int i = 0; i < ROUNDS; i++) {
    char driver = (char)('a' + (i + getpid()) % 5), path[PATH_TEXT];
    kept_result got = compile_driver(shared_folder, driver, 20000, path);
    CHECK(!got.info.is_rejected);
    CHECK(got.info.result != VYRE_CACHE_OFF);
    kept_rig r = kept_open(shared_folder);
    vyre_arena arena = {0};
    vyre_cache_listing all;
    CHECK(vyre_cache_list(r.context, &arena, &all, NULL) == VYRE_OK);
    for (size_t k = 0; k < all.entry_count; k++) {
      CHECK(all.entries[k].is_valid);
    }
    vyre_arena_deinit(&arena);
    kept_close(&r);
  }
}

TEST(concurrent_processes_share_a_cache) {
  folder_make(shared_folder);
  pid_t children[PROCESSES];
  fflush(stdout);
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    CHECK(children[i] >= 0);
    if (children[i] > 0) continue;
    if (setjmp(test_escape) == 0) {
      use_shared();
      _exit(0);
    }
    fflush(stdout);
    _exit(1);
  }
  bool fine = true;
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    fine = waitpid(children[i], &status, 0) > 0 && status == 0 && fine;
  }
  CHECK(fine);
  CHECK(folder_count(shared_folder, NULL) <= 3); /* the cap; no leftovers */
  folder_remove(shared_folder);
}

TEST_MAIN(TEST_ENTRY(only_an_explanation_scans_the_directory),
          TEST_ENTRY(an_entry_with_any_byte_flipped_is_refused_and_replaced),
          TEST_ENTRY(an_entry_cut_at_any_length_is_refused_and_replaced),
          TEST_ENTRY(an_entry_with_extra_bytes_is_refused_and_replaced),
          TEST_ENTRY(keys_with_the_same_name_are_compared_by_their_bytes),
          TEST_ENTRY(only_regular_files_of_this_user_are_used),
          TEST_ENTRY(a_directory_with_the_name_of_an_entry_does_no_harm),
          TEST_ENTRY(a_directory_that_others_can_enter_is_not_used),
          TEST_ENTRY(a_directory_of_another_user_is_not_used),
          TEST_ENTRY(a_link_to_a_directory_is_not_used),
          TEST_ENTRY(a_file_is_not_a_directory),
          TEST_ENTRY(a_missing_directory_is_created_for_this_user_only),
          TEST_ENTRY(a_read_only_directory_still_gives_hits),
          TEST_ENTRY(a_process_with_other_effective_ids_is_privileged),
          TEST_ENTRY(a_set_uid_process_has_no_cache),
          TEST_ENTRY(the_directory_has_a_fixed_order_of_sources),
          TEST_ENTRY(a_path_that_is_too_long_is_refused),
          TEST_ENTRY(the_size_limit_is_a_whole_number),
          TEST_ENTRY(a_context_reads_the_environment),
          TEST_ENTRY(a_use_updates_the_time_once_a_minute),
          TEST_ENTRY(above_the_limit_the_least_recently_used_entry_is_evicted),
          TEST_ENTRY(an_entry_above_the_limit_is_not_written),
          TEST_ENTRY(old_leftovers_are_removed),
          TEST_ENTRY(prune_removes_corrupt_entries_and_then_the_oldest),
          TEST_ENTRY(a_listing_has_every_entry_and_its_problem),
          TEST_ENTRY(a_write_that_fails_leaves_no_file),
          TEST_ENTRY(concurrent_processes_share_a_cache))
