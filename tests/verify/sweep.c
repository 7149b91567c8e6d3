/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Verifies the numbers of printed C; `make verify-math` and `make verify-ops` run it
 * (scripts/verify.sh).
 *
 *   sweep measure                      is the host's libm a reference?
 *   sweep special                      tests/verify/special.txt
 *   sweep math|ops list
 *   sweep math|ops work [NAME|-] [FIRST:END|-] [STRIDE]    what is left to do,
 *                                      as arguments of `sweep math|ops run`
 *   sweep math|ops run NAME KIND FIRST:END STRIDE          does it, and logs it
 *   sweep math|ops summary
 *
 * From the environment: VERIFY_TESTS (tests/verify), VERIFY_BUILD (for what is
 * compiled), VERIFY_LOG, VERIFY_COMMIT and VERIFY_COMPILER (for the log), CC. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/pipeline.h"

#include "support/printed.h"
#include "verify/items.h"
#include "verify/key.h"
#include "verify/log.h"
#include "verify/reference.h"

enum { REF_BLOCKS = 10000000 / BLOCK + 1, LISTED = 40, PATH_SIZE = 1024 };

typedef struct family {
  bool is_math;
  const item *items;
  size_t count;
  const char *const *variants;
  vyre_module *module;
} family;

/* One item, ready to run. */
typedef struct subject {
  const family *family;
  const item *item;
  const reference *reference;
  vyre_program *program;
  char *text[VARIANTS]; /* printed C */
  uint64_t hash;        /* what the log goes by: verify/key.h */
  uint64_t whole;       /* of all of the text, for names of what is compiled */
  printed printed[VARIANTS];
  vyre_pipeline *ref;
  log_line line;
  printed_text failures;
  unsigned listed;
} subject;

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && value[0] ? value : otherwise;
}

static const char *log_path(void) {
  return setting("VERIFY_LOG", "tests/verify/log.txt");
}

static double cpu_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool open_family(const char *name, family *f) {
  char path[PATH_SIZE];
  *f = (family){.is_math = strcmp(name, "math") == 0};
  if (!f->is_math && strcmp(name, "ops") != 0) return false;
  f->items = f->is_math ? math_items : ops_items;
  f->count = f->is_math ? MATH_ITEMS : OPS_ITEMS;
  f->variants = f->is_math ? math_names : form_names;
  snprintf(path, sizeof path, "%s/%s.vyre",
           setting("VERIFY_TESTS", "tests/verify"), name);
  f->module = printed_module(path);
  return f->module != NULL;
}

static const item *find_item(const family *f, const char *name) {
  for (size_t i = 0; i < f->count; i++) {
    if (strcmp(f->items[i].name, name) == 0) return &f->items[i];
  }
  fprintf(stderr, "there is no '%s': see --list\n", name);
  return NULL;
}

static void close_subject(subject *s) {
  vyre_pipeline_release(s->ref);
  for (int v = 0; v < VARIANTS; v++) free(s->text[v]);
  free(s->failures.bytes);
}

/* Prints all variants, and hashes them. */
static bool open_subject(const family *f, const item *it, subject *s) {
  char kernel[64];
  snprintf(kernel, sizeof kernel, "%s_all", it->name);
  *s = (subject){.family = f,
                 .item = it,
                 .program = vyre_module_find(f->module, kernel),
                 .reference = f->is_math ? reference_find(it->name) : NULL,
                 .hash = UINT64_C(0xCBF29CE484222325),
                 .whole = UINT64_C(0xCBF29CE484222325)};
  if (!s->program) {
    fprintf(stderr, "unknown kernel %s\n", kernel);
    return false;
  }
  for (int v = 0; v < VARIANTS; v++) {
    printed_text text = {0};
    vyre_math math = f->is_math ? (vyre_math)v : VYRE_MATH_F64;
    vyre_float_mode numbers =
        f->is_math ? VYRE_FLOAT_MODE_NATIVE : (vyre_float_mode)v;
    bool good = printed_print(s->program, math, numbers, &text);
    s->text[v] = text.bytes;
    if (!good) return false;
    s->hash = key_hash(s->hash, text.bytes, kernel);
    s->whole = key_add(s->whole, text.bytes, text.length);
    if (s->hash == 0) return false;
  }
  return true;
}

/* Compiles what was printed, if that was not done before, and loads it. */
static bool load_subject(subject *s) {
  const char *name = vyre_program_name(s->program);
  for (int v = 0; v < VARIANTS; v++) {
    const char *folder = setting("VERIFY_BUILD", "./build/verify");
    char file[128], object[128], path[PATH_SIZE];
    int length = snprintf(file, sizeof file, "%s-%s-%016" PRIx64 ".c",
                          s->item->name, s->family->variants[v], s->whole);
    snprintf(object, sizeof object, "%.*s.so", length - 2, file);
    snprintf(path, sizeof path, "%s/%s", folder, object);
    FILE *there = fopen(path, "rb");
    if (there) {
      fclose(there);
    } else {
      snprintf(path, sizeof path, "%s/%s", folder, file);
      if (!printed_write(path, s->text[v]) ||
          !printed_compile(folder, file, object, "-O3 -march=native")) {
        return false;
      }
      snprintf(path, sizeof path, "%s/%s", folder, object);
    }
    if (!printed_load(path, name, &s->printed[v])) return false;
  }
  return true;
}

/* --- one block --------------------------------------------------------------- */

static bool run_printed(subject *s, block *k) {
  const item *it = s->item;
  for (int v = 0; v < VARIANTS; v++) {
    void *data[4];
    for (unsigned a = 0; a < it->arguments; a++) data[a] = k->in[a];
    data[it->arguments] = k->got[v];
    if (!printed_run(&s->printed[v], data, it->arguments + 1u, BLOCK)) {
      return false;
    }
  }
  return true;
}

/* Counts, and lists while there are few. */
static void wrong(subject *s, int v, const block *k, unsigned i,
                  uint64_t want) {
  s->line.wrong[v]++;
  if (s->listed++ >= LISTED) return;
  const item *it = s->item;
  char text[256];
  int size =
      snprintf(text, sizeof text, "! %s %s", it->name, s->family->variants[v]);
  for (unsigned a = 0; a < it->arguments; a++) {
    size += snprintf(text + size, sizeof text - (size_t)size, " %0*" PRIx64,
                     2 * it->in_bytes, element(k->in[a], it->in_bytes, i));
  }
  snprintf(text + size, sizeof text - (size_t)size,
           " is %0*" PRIx64 ", not %0*" PRIx64 "\n", 2 * it->out_bytes,
           element(k->got[v], it->out_bytes, i), 2 * it->out_bytes, want);
  printed_append(&s->failures, text, strlen(text));
}

/* Compares the first @p count elements of all variants with k->want. */
static void compare_block(subject *s, const block *k, unsigned count) {
  uint8_t bytes = s->item->out_bytes;
  for (int v = 0; v < VARIANTS; v++) {
    if (memcmp(k->got[v], k->want, (size_t)count * bytes) == 0) continue;
    for (unsigned i = 0; i < count; i++) {
      uint64_t want = element(k->want, bytes, i);
      if (element(k->got[v], bytes, i) != want) wrong(s, v, k, i, want);
    }
  }
}

/* Functions of one argument: fills k->want. MPFR where the host is too close to
 * the middle of two f32. */
static void want_one(subject *s, block *k, double *host) {
  const uint32_t *x = (const uint32_t *)k->in[0];
  uint32_t *want = (uint32_t *)k->want;
  reference_one function = reference_host_one(s->reference);
  for (unsigned i = 0; i < BLOCK; i++) {
    host[i] = function((double)float_vectors_f32(x[i]));
  }
  uint32_t doubtful = 0;
  for (unsigned i = 0; i < BLOCK; i++) {
    float low = (float)(host[i] * (1.0 - REFERENCE_MARGIN));
    float high = (float)(host[i] * (1.0 + REFERENCE_MARGIN));
    uint32_t bits = float_vectors_bits(low);
    uint32_t is_nan = 0u - (uint32_t)(host[i] != host[i]);
    doubtful |= (bits ^ float_vectors_bits(high)) & ~is_nan;
    want[i] = (bits & ~is_nan) | (0x7FC00000u & is_nan);
  }
  if (doubtful == 0) return;
  for (unsigned i = 0; i < BLOCK; i++) {
    float low = (float)(host[i] * (1.0 - REFERENCE_MARGIN));
    float high = (float)(host[i] * (1.0 + REFERENCE_MARGIN));
    if (low == high || host[i] != host[i]) continue;
    want[i] = float_vectors_bits(
        reference_exact(s->reference, float_vectors_f32(x[i])));
    s->line.exact++;
  }
}

/* Returns true if @p bits is within 1 ulp of f(x, y); @p host is the host's
 * result. */
static bool is_near(subject *s, uint32_t x, uint32_t y, double host,
                    uint32_t bits) {
  float got = float_vectors_f32(bits);
  if (host != host) return bits == 0x7FC00000;
  if (got != got || (got == 0.0f && signbit(got) != signbit(host))) {
    return false;
  }
  double value = isinf(got) ? copysign(0x1p128, got) : (double)got;
  double error = isinf(host) && isinf(got)
                     ? fabs(copysign(1.0, host) - copysign(1.0, value))
                     : fabs(value - host) / reference_ulp(host);
  if (!(error < 0.99)) {
    error = reference_error(s->reference, float_vectors_f32(x),
                            float_vectors_f32(y), got);
    s->line.exact++;
  }
  if (error > s->line.worst) s->line.worst = error;
  return error <= 1.0;
}

/* Functions of two arguments: within 1 ulp, and all variants alike. */
static void check_two(subject *s, block *k, unsigned count) {
  const uint32_t *x = (const uint32_t *)k->in[0];
  const uint32_t *y = (const uint32_t *)k->in[1];
  const uint32_t *got = (const uint32_t *)k->got[0];
  reference_two function = reference_host_two(s->reference);
  for (unsigned i = 0; i < count; i++) {
    double host = function((double)float_vectors_f32(x[i]),
                           (double)float_vectors_f32(y[i]));
    uint32_t want = host_bits((float)host);
    if (got[i] != want && !is_near(s, x[i], y[i], host, got[i])) {
      wrong(s, 0, k, i, want);
    }
  }
  memcpy(k->want, k->got[0], sizeof k->want);
  compare_block(s, k, count);
}

/* --- one piece of work --------------------------------------------------------*/

static bool sweep_range(subject *s, block *k, uint64_t stride) {
  static double host[BLOCK];
  const item *it = s->item;
  for (uint64_t at = s->line.first; at < s->line.end; at += BLOCK * stride) {
    uint64_t left = s->line.end - at;
    if (it->inputs == INPUT_ALL) left = (left + stride - 1) / stride;
    unsigned count = left < BLOCK ? (unsigned)left : BLOCK;
    fill_block(it, at, stride, k);
    if (!run_printed(s, k)) return false;
    s->line.inputs += count;
    if (s->reference && it->arguments == 2) {
      check_two(s, k, count);
      continue;
    }
    if (s->reference) {
      want_one(s, k, host);
    } else {
      it->want(k);
    }
    compare_block(s, k, count);
  }
  return true;
}

static bool open_ref(subject *s) {
  vyre_device *device = NULL;
  vyre_status st = {0};
  vyre_code code = vyre_device_open(NULL, "ref", &device, &st);
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, s->program, NULL, &s->ref, NULL, &st);
  }
  vyre_device_release(device);
  if (code != VYRE_OK) fprintf(stderr, "ref: %s\n", st.message);
  return code == VYRE_OK;
}

static bool run_ref(subject *s, block *k) {
  const item *it = s->item;
  vyre_input in[3];
  for (unsigned a = 0; a < it->arguments; a++) {
    in[a] = (vyre_input){k->in[a], (size_t)BLOCK * it->in_bytes};
  }
  vyre_output out = {k->want, (size_t)BLOCK * it->out_bytes};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = it->arguments,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {1, 1, 1}};
  vyre_status st = {0};
  vyre_code code = vyre_dispatch(s->ref, &desc, &st);
  if (code != VYRE_OK) fprintf(stderr, "ref: %s\n", st.message);
  return code == VYRE_OK;
}

/* Block @p n for ref: arguments that are hard to round come first; then, in turn,
 * some at equal distances and random ones. */
static void fill_for_ref(const subject *s, uint64_t n, FILE *hard, block *k) {
  const item *it = s->item;
  fill_block(it, n * BLOCK, 1, k);
  if (it->inputs != INPUT_ALL || it->in_bytes != 4) return;
  uint32_t *x = (uint32_t *)k->in[0];
  float_vectors v = float_vectors_make(n);
  unsigned bits = 0, result = 0;
  for (unsigned i = 0; i < BLOCK; i++) {
    if (hard && fscanf(hard, "%x %x", &bits, &result) == 2) {
      x[i] = bits;
    } else if (n % 2 == 0) {
      x[i] = (uint32_t)((n / 2 * BLOCK + i) * 857);
    } else {
      x[i] = (uint32_t)float_vectors_next(&v);
    }
  }
}

static bool sweep_ref(subject *s, block *k) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/hard/%s.txt",
           setting("VERIFY_TESTS", "tests/verify"), s->item->name);
  FILE *hard = fopen(path, "r");
  bool good = open_ref(s);
  for (uint64_t n = 0; good && n * BLOCK < s->line.end; n++) {
    fill_for_ref(s, n, hard, k);
    good = run_printed(s, k) && run_ref(s, k);
    if (good) compare_block(s, k, BLOCK);
    s->line.inputs += BLOCK;
  }
  if (hard) fclose(hard);
  return good;
}

static void name_line(const subject *s, const char *kind, uint64_t first,
                      uint64_t end, log_line *line) {
  *line = (log_line){.first = first, .end = end, .printed = s->hash};
  snprintf(line->name, sizeof line->name, "%.23s", s->item->name);
  snprintf(line->kind, sizeof line->kind, "%.23s", kind);
}

/* run NAME KIND FIRST:END STRIDE; 0, 1 if something was wrong, 2 if it failed */
static int run(const family *f, char **arguments) {
  uint64_t first = 0, end = 0, stride = strtoull(arguments[3], NULL, 10);
  subject s = {0};
  const item *it = find_item(f, arguments[0]);
  if (!it || stride == 0 ||
      sscanf(arguments[2], "%" SCNx64 ":%" SCNx64, &first, &end) != 2) {
    return 2;
  }
  block *k = aligned_alloc(64, sizeof *k);
  bool good = open_subject(f, it, &s) && k && load_subject(&s);
  if (good) {
    name_line(&s, arguments[1], first, end, &s.line);
    double begin = cpu_seconds();
    bool is_ref = strcmp(arguments[1], "ref") == 0;
    good = is_ref ? sweep_ref(&s, k) : sweep_range(&s, k, stride);
    s.line.seconds = cpu_seconds() - begin;
  }
  good = good && log_append(log_path(), &s.line,
                            setting("VERIFY_COMMIT", "uncommitted"),
                            setting("VERIFY_COMPILER", "cc"), s.failures.bytes);
  bool all_right = s.listed == 0;
  close_subject(&s);
  free(k);
  return !good ? 2 : !all_right;
}

/* --- what there is to do ------------------------------------------------------ */

static uint64_t chunk_size(const item *it) {
  uint64_t all = item_inputs(it);
  return all < 65536 ? all : all / 16;
}

static uint64_t ref_end(const item *it) {
  uint64_t all = item_inputs(it), max = (uint64_t)REF_BLOCKS * BLOCK;
  return all < max ? all : max;
}

static void offer(const subject *s, const char *kind, uint64_t first,
                  uint64_t end, uint64_t stride) {
  log_line line;
  name_line(s, kind, first, end, &line);
  if (log_has(log_path(), &line)) return;
  printf("%s %s %08" PRIx64 ":%08" PRIx64 " %" PRIu64 "\n", s->item->name, kind,
         first, end, stride);
}

/* Pieces end where chunks do; only whole chunks count as such. */
static void offer_range(const subject *s, uint64_t first, uint64_t end,
                        uint64_t stride) {
  uint64_t all = item_inputs(s->item), chunk = chunk_size(s->item);
  char sample[32];
  snprintf(sample, sizeof sample, "sample/%" PRIu64, stride);
  if (end > all) end = all;
  while (first < end) {
    uint64_t next = (first / chunk + 1) * chunk;
    if (next > end) next = end;
    const char *kind = next - first == chunk ? "all" : "part";
    offer(s, stride > 1 ? sample : kind, first, next, stride);
    first = next;
  }
}

static int work(const family *f, int count, char **arguments) {
  const char *name = count > 0 ? arguments[0] : "-";
  const char *range = count > 1 ? arguments[1] : "-";
  uint64_t stride = count > 2 ? strtoull(arguments[2], NULL, 10) : 1;
  uint64_t first = 0, end = UINT64_MAX;
  bool is_whole = strcmp(range, "-") == 0;
  if (!is_whole && sscanf(range, "%" SCNi64 ":%" SCNi64, (int64_t *)&first,
                          (int64_t *)&end) != 2) {
    fprintf(stderr, "a range is FIRST:END, not '%s'\n", range);
    return 2;
  }
  if (strcmp(name, "-") != 0 && !find_item(f, name)) return 2;
  for (size_t i = 0; i < f->count; i++) {
    const item *it = &f->items[i];
    if (strcmp(name, "-") != 0 && strcmp(name, it->name) != 0) continue;
    subject s = {0};
    bool good = stride > 0 && open_subject(f, it, &s);
    if (good) {
      if (it->inputs != INPUT_ALL) first -= first % BLOCK;
      if (is_whole && stride == 1) offer(&s, "ref", 0, ref_end(it), 1);
      offer_range(&s, first, end, stride);
    }
    close_subject(&s);
    if (!good) return 2;
  }
  return 0;
}

/* --- what was done ------------------------------------------------------------ */

typedef struct totals {
  const subject *subject;
  uint64_t chunks, inputs, wrong[VARIANTS], exact, ref_inputs, ref_wrong;
  uint64_t older; /* lines of other printed C, which do not count */
  double seconds, worst;
} totals;

static void add(void *self, const log_line *line) {
  totals *t = self;
  if (strcmp(line->name, t->subject->item->name) != 0) return;
  if (line->printed != t->subject->hash) {
    t->older++;
    return;
  }
  if (strcmp(line->kind, "ref") == 0) {
    t->ref_inputs += line->inputs;
    for (int v = 0; v < VARIANTS; v++) t->ref_wrong += line->wrong[v];
  }
  if (strcmp(line->kind, "all") != 0) return;
  t->chunks++;
  t->inputs += line->inputs;
  t->exact += line->exact;
  t->seconds += line->seconds;
  if (line->worst > t->worst) t->worst = line->worst;
  for (int v = 0; v < VARIANTS; v++) t->wrong[v] += line->wrong[v];
}

/* 0 if nothing is wrong in what was done, 1 if something is. */
static int summary(const family *f) {
  int status = 0;
  uint64_t older = 0;
  size_t complete = 0;
  printf("%-12s %-10s %12s  %-24s %6s %8s  %s\n",
         f->is_math ? "function" : "operation", "chunks", "inputs",
         f->is_math ? "wrong: f64 nofma u32" : "wrong: native corrected soft",
         "MPFR", "M/s/core", "same as ref");
  for (size_t i = 0; i < f->count; i++) {
    const item *it = &f->items[i];
    subject s = {0};
    if (!open_subject(f, it, &s)) return 2;
    totals t = {.subject = &s};
    log_each(log_path(), add, &t);
    uint64_t chunks = item_inputs(it) / chunk_size(it);
    char state[32], bad[64], ref[48] = "not yet";
    snprintf(state, sizeof state, "%" PRIu64 "/%" PRIu64, t.chunks, chunks);
    snprintf(bad, sizeof bad, "%" PRIu64 " %" PRIu64 " %" PRIu64, t.wrong[0],
             t.wrong[1], t.wrong[2]);
    if (t.ref_inputs > 0) {
      snprintf(ref, sizeof ref, "%" PRIu64 ", %" PRIu64 " differ", t.ref_inputs,
               t.ref_wrong);
    }
    printf("%-12s %-10s %12" PRIu64 "  %-24s %6" PRIu64 " %8.1f  %s", it->name,
           t.chunks == chunks ? "complete" : state, t.inputs, bad, t.exact,
           t.seconds > 0 ? (double)t.inputs / t.seconds * 1e-6 : 0.0, ref);
    if (t.worst > 0) printf("; worst error %.6f ulp", t.worst);
    printf("\n");
    older += t.older;
    complete += t.chunks == chunks && t.ref_inputs > 0;
    if (t.ref_wrong + t.wrong[0] + t.wrong[1] + t.wrong[2] > 0) status = 1;
    close_subject(&s);
  }
  printf("%zu of %zu complete in %s", complete, f->count, log_path());
  if (older > 0) {
    printf("; %" PRIu64 " older line%s there, of other printed C, %s not count",
           older, older > 1 ? "s" : "", older > 1 ? "do" : "does");
  }
  printf("%s\n", status ? "; something is wrong" : "");
  return status;
}

static int measure(void) {
  int status = 0;
  for (size_t i = 0; i < MATH_ITEMS; i++) {
    const char *name = math_items[i].name;
    char hard[PATH_SIZE];
    snprintf(hard, sizeof hard, "%s/hard/%s.txt",
             setting("VERIFY_TESTS", "tests/verify"), name);
    double worst = reference_measure(reference_find(name), 12000, hard);
    printf("%-6s %5.2f%s\n", name, worst,
           worst > REFERENCE_LIMIT ? "  too much" : "");
    if (worst > REFERENCE_LIMIT) status = 1;
  }
  return status;
}

/* Every function of special values, and of all pairs of the most special ones. */
static void special(void) {
  static const uint32_t max[] = {
      0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x3F000000,
      0xBF000000, 0x3F800000, 0xBF800000, 0x40000000, 0xC0000000,
      0x40400000, 0xC0400000, 0x4B7FFFFF, 0xCB7FFFFF, 0x7F7FFFFF,
      0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001};
  enum { MAX_COUNT = sizeof max / sizeof max[0] };
  for (size_t n = 0; n < MATH_ITEMS; n++) {
    const char *name = math_items[n].name;
    const reference *r = reference_find(name);
    reference_one one = reference_host_one(r);
    for (unsigned i = 0; one && i < 64; i++) {
      float x = float_vectors_f32(special_bits[i]);
      double host = one((double)x);
      bool is_plain = fabs(host) > 0.0 && fabs(host) < INFINITY;
      float want = is_plain ? reference_exact(r, x) : (float)host;
      printf("%s %08x - %08x\n", name, special_bits[i], host_bits(want));
    }
    for (unsigned i = 0; !one && i < MAX_COUNT * MAX_COUNT; i++) {
      uint32_t x = max[i / MAX_COUNT], y = max[i % MAX_COUNT];
      double host = reference_host_two(r)((double)float_vectors_f32(x),
                                          (double)float_vectors_f32(y));
      printf("%s %08x %08x %08x\n", name, x, y, host_bits((float)host));
    }
  }
}

int main(int count, char **arguments) {
  family f;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (count == 2 && strcmp(arguments[1], "measure") == 0) return measure();
  if (count == 2 && strcmp(arguments[1], "special") == 0) {
    special();
    return 0;
  }
  if (count < 3 || !open_family(arguments[1], &f)) {
    fputs("usage: sweep measure|special | math|ops list|work|run|summary ...\n",
          stderr);
    return 2;
  }
  const char *command = arguments[2];
  if (strcmp(command, "work") == 0) return work(&f, count - 3, arguments + 3);
  if (strcmp(command, "summary") == 0) return summary(&f);
  if (strcmp(command, "run") == 0 && count == 7) return run(&f, arguments + 3);
  for (size_t i = 0; i < f.count; i++) puts(f.items[i].name);
  return strcmp(command, "list") == 0 ? 0 : 2;
}
