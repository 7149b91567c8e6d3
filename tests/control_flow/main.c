/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests control flow: runs small shapes or random programs on a device and
 * compares every output with the oracle and with `ref`.
 * docs/how-to/build-and-test.md says how to run it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "../support/sanitized.h"
#include "program.h"

enum { WIDTHS = 5, IN_TURN = 1000, SKIPPED = 77 };
#define ANY_PASSES UINT64_MAX
static const unsigned widths[WIDTHS] = {1, 4, 8, 16, 32};

typedef struct options {
  const char *backend, *resume, *keep;
  bool shapes, races, has_print, has_total;
  uint64_t first, count, seed, sample, print;
  unsigned width;           /* 0: all; or IN_TURN */
  uint64_t all_widths;      /* of --width turn: the first so many at all */
  unsigned optimised_every; /* 1: always, 0: never */
  unsigned ref_every, races_every;
  uint64_t passes_off; /* of cpu; ANY_PASSES: some programs, random ones */
  unsigned threads, failures, reduced, max;
} options;

typedef struct session {
  options o;
  vyre_context *contexts[WIDTHS];
  vyre_device *devices[WIDTHS]; /* of each width; of another backend: [0] */
  uint64_t off;                 /* passes that the devices do not run */
  vyre_device *ref;
  uint32_t max_invocations;
  cf_counts counts;
  unsigned failures;
} session;

static const char usage_text[] =
    "usage: control_flow [--check shapes|programs]\n"
    "                    [--shapes [--sample N]] [--first N] [--count N]\n"
    "                    [--seed N] [--backend NAME] [--width W|all|turn]\n"
    "                    [--all-widths N] [--tier TIER] [--threads N]\n"
    "                    [--passes-off N]\n"
    "                    [--ref-every N] [--races] [--most N] [--failures N]\n"
    "                    [--reduce N]\n"
    "                    [--resume FILE] [--keep DIRECTORY] [--print N]\n"
    "                    [--total]\n"
    "  --check WHAT     the set of `make check`: shapes or programs\n"
    "  --shapes         all small shapes instead of random programs\n"
    "  --sample N       N of the shapes, most of them with jumps in loops\n"
    "  --first, --count which programs; default: from 0, all shapes or 1000\n"
    "  --seed N         another set of random programs\n"
    "  --backend NAME   cpu (default), vulkan, ...\n"
    "  --width W        of cpu: 1, 4, 8, 16, 32, all of them, or in turn\n"
    "                   (default: another width for each program)\n"
    "  --all-widths N   in turn, but programs below number N at all widths\n"
    "  --tier TIER      of cpu: baseline, optimised, or mixed (default:\n"
    "                   optimised for every tenth program)\n"
    "  --threads N      of cpu (default 1)\n"
    "  --passes-off N   the option cpu.passes_off (default: random passes for\n"
    "                   every fourth program, none for the others)\n"
    "  --ref-every N    run every Nth program on ref too (default 1)\n"
    "  --races          look for races on ref, instead of comparing\n"
    "  --most N         invocations of a workgroup, at most\n"
    "  --failures N     stop after so many programs that differ (default 20)\n"
    "  --reduce N       make the first N of them smaller (default 5)\n"
    "  --resume FILE    go on where the run that wrote FILE stopped\n"
    "  --keep DIRECTORY write reduced programs there\n"
    "  --print N        print program N, and run nothing\n"
    "  --total          print the number of small shapes, and run nothing\n";

/* --- which program it was ---------------------------------------------------------*/

static char now[160] = "no program";

static void on_signal(int number) {
  static const char before[] = "stopped by a signal in ";
  (void)!write(STDOUT_FILENO, before, sizeof before - 1);
  (void)!write(STDOUT_FILENO, now, strlen(now));
  (void)!write(STDOUT_FILENO, "\n", 1);
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

static void listen_to_signals(void) {
  static const int numbers[] = {SIGSEGV, SIGBUS,  SIGILL,
                                SIGFPE,  SIGABRT, SIGALRM};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    (void)sigaction(numbers[i], &action, NULL);
  }
}

/* --- devices ----------------------------------------------------------------------*/

static bool open_one(session *s, const char *name, const char *with,
                     vyre_context **context, vyre_device **device) {
  vyre_status st = {0};
  vyre_context_options made = {.cache_directory = "", .backend_options = with};
  if (vyre_context_create(&made, context, &st) == VYRE_OK &&
      vyre_device_open(*context, name, device, &st) == VYRE_OK) {
    const vyre_device_caps *caps = vyre_device_get_caps(*device);
    if (caps->max_workgroup_invocations < s->max_invocations) {
      s->max_invocations = caps->max_workgroup_invocations;
    }
    return true;
  }
  printf("%s: %s\nFix: %s\n", name, st.message, st.fix);
  return false;
}

static bool is_cpu(const session *s) {
  return strcmp(s->o.backend, "cpu") == 0;
}

/* Opens the devices of all widths that are used, without the passes s->off. */
static bool open_widths(session *s) {
  for (int i = 0; i < WIDTHS; i++) {
    if (s->o.width != 0 && s->o.width != IN_TURN && s->o.width != widths[i]) {
      continue;
    }
    char with[96];
    (void)snprintf(with, sizeof with,
                   "cpu.width=%u,cpu.threads=%u,cpu.passes_off=%llu", widths[i],
                   s->o.threads, (unsigned long long)s->off);
    if (!open_one(s, "cpu", with, &s->contexts[i], &s->devices[i])) {
      return false;
    }
  }
  return true;
}

static bool open_devices(session *s) {
  vyre_status st = {0};
  s->max_invocations = s->o.max;
  if (vyre_device_open(NULL, "ref", &s->ref, &st) != VYRE_OK) return false;
  if (is_cpu(s)) return open_widths(s);
  return open_one(s, s->o.backend, NULL, &s->contexts[0], &s->devices[0]);
}

static void close_widths(session *s) {
  for (int i = 0; i < WIDTHS; i++) {
    vyre_device_release(s->devices[i]);
    vyre_context_release(s->contexts[i]);
    s->devices[i] = NULL;
    s->contexts[i] = NULL;
  }
}

static void close_devices(session *s) {
  close_widths(s);
  vyre_device_release(s->ref);
}

/* Returns the largest value of cpu.passes_off. */
static uint64_t all_passes(void) {
  vyre_device_option o;
  for (size_t i = 0; vyre_device_option_at("cpu", i, &o); i++) {
    if (strcmp(o.name, "passes_off") == 0) return o.max;
  }
  return 0;
}

/* Opens devices without some passes, if program @p index runs on such. */
static void choose_passes(session *s, uint64_t index) {
  uint64_t off = s->o.passes_off;
  if (off == ANY_PASSES) {
    off = index % 4 == 3 ? cf_hash(index + 1) & all_passes() : 0;
  }
  if (!is_cpu(s) || off == s->off) return;
  s->off = off;
  close_widths(s);
  if (!open_widths(s)) abort();
}

/* --- programs ---------------------------------------------------------------------*/

static void build(const session *s, uint64_t index, cf_program *p) {
  p->number = index;
  if (!s->o.shapes) {
    cf_build_random(p, index + s->o.seed * 1000000007u, s->max_invocations);
    return;
  }
  if (s->o.sample) p->number = cf_shape_sample(index, s->o.sample);
  cf_build_shape(p, p->number, s->max_invocations);
}

static size_t choose_targets(const session *s, uint64_t index,
                             cf_target targets[WIDTHS + 1]) {
  const options *o = &s->o;
  size_t count = 0;
  bool is_quick = o->optimised_every == 0 || index % o->optimised_every != 0;
  bool at_all = o->width == 0 || (o->width == IN_TURN && index < o->all_widths);
  uint64_t turn = cf_hash(index) % WIDTHS;
  for (int i = 0; i < WIDTHS; i++) {
    if (!s->devices[i] || o->races) continue;
    if (!at_all && o->width == IN_TURN && turn != (uint64_t)i && is_cpu(s)) {
      continue;
    }
    /* The optimised tier takes long: at one of all widths. */
    bool is_turn = o->width != IN_TURN || turn == (uint64_t)i;
    cf_target *t = &targets[count++];
    *t = (cf_target){.context = s->contexts[i],
                     .device = s->devices[i],
                     .is_quick = is_cpu(s) && (is_quick || !is_turn)};
    (void)snprintf(t->name, sizeof t->name, "%s", o->backend);
    if (is_cpu(s)) {
      t->width = widths[i];
      (void)snprintf(t->name, sizeof t->name, "cpu, width %u, %s", widths[i],
                     t->is_quick ? "baseline" : "optimised");
    }
  }
  bool has_races = o->races || (o->races_every && index % o->races_every == 0);
  if (has_races || (o->ref_every && index % o->ref_every == 0)) {
    targets[count++] =
        (cf_target){.device = s->ref, .name = "ref", .has_races = has_races};
  }
  return count;
}

/* The command that runs one program on one target again. */
static void tell_command(const session *s, const cf_program *p,
                         const cf_target *t) {
  printf("to run it again: control_flow %s--first %llu --count 1",
         s->o.shapes ? "--shapes " : "", (unsigned long long)p->number);
  if (s->o.seed) printf(" --seed %llu", (unsigned long long)s->o.seed);
  if (t->device == s->ref) {
    printf(" --backend ref");
  } else if (!is_cpu(s)) {
    printf(" --backend %s", s->o.backend);
  } else {
    printf(" --width %u --tier %s --passes-off %llu", t->width,
           t->is_quick ? "baseline" : "optimised", (unsigned long long)s->off);
  }
  if (s->max_invocations < 1024) printf(" --most %u", s->max_invocations);
  printf("\n");
}

static void keep(const session *s, const cf_program *p, const char *text,
                 const cf_difference *d) {
  char path[512], name[40];
  (void)snprintf(name, sizeof name, "%s", p->name);
  for (char *at = name; *at; at++) {
    if (*at == ' ') *at = '_';
  }
  (void)mkdir(s->o.keep, 0777);
  (void)snprintf(path, sizeof path, "%s/%s.vyre", s->o.keep, name);
  FILE *file = fopen(path, "w");
  if (!file) {
    printf("%s: %s\n", path, strerror(errno));
    return;
  }
  const char *line = d->message;
  while (*line) {
    size_t length = strcspn(line, "\n");
    (void)fprintf(file, "// %.*s\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  (void)fprintf(file, "%s", text);
  (void)fclose(file);
}

static void tell(session *s, cf_program *p, uint64_t index,
                 const cf_target *targets, size_t target_count,
                 cf_verdict verdict, cf_difference *d) {
  printf("%s (program %llu of this set): %s\n", p->name,
         (unsigned long long)index, d->message);
  s->failures++;
  if (verdict == CF_DIFFERS && s->failures <= s->o.reduced) {
    for (size_t i = 0; i < target_count; i++) { /* the one that differs */
      cf_counts counts = {0};
      cf_difference one = *d;
      if (cf_compare_all(p, &targets[i], 1, (int)d->run, &counts, &one) !=
          CF_DIFFERS) {
        continue;
      }
      *d = one;
      tell_command(s, p, &targets[i]);
      cf_reduce(p, &targets[i], d);
      printf("reduced: %s\n", d->message);
      break;
    }
  }
  if (s->failures <= s->o.reduced) {
    char *text = cf_print(p);
    printf("%s\n", text);
    if (s->o.keep && verdict == CF_DIFFERS) keep(s, p, text, d);
    free(text);
  }
  (void)fflush(stdout);
}

static void run_program(session *s, uint64_t index) {
  cf_program *p = calloc(1, sizeof *p);
  if (!p) abort();
  cf_target targets[WIDTHS + 1];
  cf_difference d = {0};
  build(s, index, p);
  choose_passes(s, index);
  size_t count = choose_targets(s, index, targets);
  (void)snprintf(now, sizeof now, "%s (number %llu), %s", p->name,
                 (unsigned long long)index,
                 count == 1 ? targets[0].name : "several widths");
  (void)alarm(300);
  cf_verdict verdict = cf_compare_all(p, targets, count, -1, &s->counts, &d);
  (void)alarm(0);
  if (verdict != CF_SAME) tell(s, p, index, targets, count, verdict, &d);
  cf_deinit(p);
  free(p);
}

/* --- the run ----------------------------------------------------------------------*/

/* Prints the number to continue from: the one after the last correct
 * program. */
static uint64_t resumed(const options *o) {
  unsigned long long at = o->first;
  FILE *file = o->resume ? fopen(o->resume, "r") : NULL;
  if (!file) return o->first;
  if (fscanf(file, "next %llu", &at) != 1) at = o->first;
  (void)fclose(file);
  return at < o->first || at > o->first + o->count ? o->first : at;
}

static void note(const options *o, uint64_t next) {
  FILE *file = o->resume ? fopen(o->resume, "w") : NULL;
  if (!file) return;
  (void)fprintf(file, "next %llu\n", (unsigned long long)next);
  (void)fclose(file);
}

static int print_one(session *s) {
  cf_program *p = calloc(1, sizeof *p);
  if (!p) abort();
  s->max_invocations = s->o.max;
  build(s, s->o.print, p);
  char *text = cf_print(p);
  printf("// %s, grid %u,%u,%u\n", p->name, (unsigned)p->grid[0],
         (unsigned)p->grid[1], (unsigned)p->grid[2]);
  for (uint32_t i = 0; i < p->run_count; i++) {
    const cf_run *run = &p->runs[i];
    printf("// run %u: uniforms", (unsigned)i);
    for (int q = 0; q < CF_UNIFORMS; q++) {
      printf(" %u", (unsigned)run->uniforms[q]);
    }
    printf(", data pattern %u, seed %llu\n", (unsigned)run->pattern,
           (unsigned long long)run->seed);
  }
  printf("%s", text);
  free(text);
  cf_deinit(p);
  free(p);
  return 0;
}

static void tell_case(const char *name, bool is_good, unsigned *passed,
                      unsigned *failed) {
  printf("%s %s\n", is_good ? "ok" : "FAIL", name);
  *passed += is_good;
  *failed += !is_good;
}

static int run_all(session *s) {
  options *o = &s->o;
  printf("small shapes: %llu", (unsigned long long)cf_shape_total());
  for (unsigned size = 1; size <= CF_SHAPE_MAX; size++) {
    printf("%s%llu of %u", size == 1 ? " (" : ", ",
           (unsigned long long)cf_shape_count(size), size);
  }
  printf(" control statements)\nprograms: %llu %s\n",
         (unsigned long long)o->count, o->shapes ? "shapes" : "at random");
  (void)fflush(stdout);
  if (!open_devices(s)) {
    close_devices(s);
    return SKIPPED;
  }
  uint64_t end = o->first + o->count;
  for (uint64_t i = resumed(o); i < end && s->failures < o->failures; i++) {
    run_program(s, i);
    if (s->failures == 0 && i % 64 == 63) note(o, i + 1);
  }
  if (s->failures == 0) note(o, end);
  close_devices(s);
  printf(
      "%llu programs run, %llu kernels compiled, %llu dispatches compared, "
      "%llu kernels unsupported, %llu runs too long, %u programs differ\n",
      (unsigned long long)s->counts.programs,
      (unsigned long long)s->counts.compiles,
      (unsigned long long)s->counts.dispatches,
      (unsigned long long)s->counts.unsupported,
      (unsigned long long)s->counts.skipped, s->failures);
  if (s->counts.unsupported) printf("unsupported: %s\n", s->counts.why);
  unsigned passed = 0, failed = 0;
  tell_case(o->shapes ? "small_shapes_run_the_same"
                      : "random_control_flow_runs_the_same",
            s->failures == 0, &passed, &failed);
  if (o->shapes) {
    tell_case("small_shapes_are_distinct", cf_shapes_are_distinct(), &passed,
              &failed);
  }
  printf("cases: %u passed, %u failed\n", passed, failed);
  return failed ? 1 : 0;
}

/* --- options ----------------------------------------------------------------------*/

static _Noreturn void usage(void) {
  (void)fputs(usage_text, stderr);
  exit(2);
}

static uint64_t number(const char *text) {
  char *end;
  errno = 0;
  unsigned long long value = text ? strtoull(text, &end, 10) : 0;
  if (!text || !*text || *end || *text == '-' || errno) usage();
  return value;
}

static unsigned width_of(const char *text) {
  if (text && strcmp(text, "all") == 0) return 0;
  if (text && strcmp(text, "turn") == 0) return IN_TURN;
  uint64_t value = number(text);
  for (int i = 0; i < WIDTHS; i++) {
    if (widths[i] == value) return widths[i];
  }
  usage();
}

static unsigned tier_of(const char *text) {
  if (text && strcmp(text, "baseline") == 0) return 0;
  if (text && strcmp(text, "optimised") == 0) return 1;
  if (text && strcmp(text, "mixed") == 0) return 10;
  usage();
}

/* An option with a number. */
static bool set_number(options *o, const char *name, const char *value) {
  struct {
    const char *name;
    uint64_t *wide;
    unsigned *narrow;
  } all[] = {{"--first", &o->first, NULL},
             {"--count", &o->count, NULL},
             {"--seed", &o->seed, NULL},
             {"--sample", &o->sample, NULL},
             {"--print", &o->print, NULL},
             {"--all-widths", &o->all_widths, NULL},
             {"--passes-off", &o->passes_off, NULL},
             {"--ref-every", NULL, &o->ref_every},
             {"--threads", NULL, &o->threads},
             {"--failures", NULL, &o->failures},
             {"--reduce", NULL, &o->reduced},
             {"--most", NULL, &o->max}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (strcmp(name, all[i].name) != 0) continue;
    if (all[i].wide) *all[i].wide = number(value);
    if (all[i].narrow) *all[i].narrow = (unsigned)number(value);
    return true;
  }
  return false;
}

/* The sets of `make check`, together 2,500 programs, 250 of them at all widths;
 * 160 under a sanitizer, on two threads each. */
static void set_check(options *o, const char *what) {
  o->shapes = strcmp(what, "shapes") == 0;
  if (!o->shapes && strcmp(what, "programs") != 0) usage();
  if (SANITIZED) {
    o->count = 80;
    o->threads = 2;
  } else {
    o->count = o->shapes ? 1500 : 1000;
    o->all_widths = o->count / 10;
  }
  o->races_every = 10;
  if (o->shapes) o->sample = o->count;
}

static void parse(options *o, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *name = argv[i], *value = argv[i + 1];
    if (strcmp(name, "--shapes") == 0) {
      o->shapes = true;
    } else if (strcmp(name, "--races") == 0) {
      o->races = true;
    } else if (strcmp(name, "--help") == 0) {
      (void)fputs(usage_text, stdout);
      exit(0);
    } else if (strcmp(name, "--total") == 0) {
      o->has_total = true;
    } else if (!value) {
      usage();
    } else {
      i++;
      if (strcmp(name, "--backend") == 0) {
        o->backend = value;
      } else if (strcmp(name, "--check") == 0) {
        set_check(o, value);
      } else if (strcmp(name, "--resume") == 0) {
        o->resume = value;
      } else if (strcmp(name, "--keep") == 0) {
        o->keep = value;
      } else if (strcmp(name, "--width") == 0) {
        o->width = width_of(value);
      } else if (strcmp(name, "--tier") == 0) {
        o->optimised_every = tier_of(value);
      } else if (!set_number(o, name, value)) {
        usage();
      }
      o->has_print |= strcmp(name, "--print") == 0;
    }
  }
  if (o->max < 1) usage();
  uint64_t shapes = o->sample ? o->sample : cf_shape_total();
  uint64_t all = o->shapes ? shapes : UINT64_MAX / 2;
  if (o->first >= all) usage();
  if (o->count == 0) o->count = o->shapes ? shapes : 1000;
  if (o->count > all - o->first) o->count = all - o->first;
}

int main(int argc, char **argv) {
  static session s;
  s.o = (options){.backend = "cpu",
                  .width = IN_TURN,
                  .passes_off = ANY_PASSES,
                  .optimised_every = 10,
                  .ref_every = 1,
                  .threads = 1,
                  .failures = 20,
                  .reduced = 5,
                  .max = 1024};
  setvbuf(stdout, NULL, _IOLBF, 0);
  parse(&s.o, argc, argv);
  if (s.o.has_total) {
    printf("%llu\n", (unsigned long long)cf_shape_total());
    return 0;
  }
  if (s.o.has_print) return print_one(&s);
  listen_to_signals();
  return run_all(&s);
}
