/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Detects processor features with CPUID. The result is part of the cache key of
 * compiled code, so it must be available without loading LLVM. */
#include "backend/cpu/jit/host_cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Register state that the operating system must save for a feature. */
enum { ALWAYS, AVX, AVX512 };

/* Every feature that LLVM uses on its own: X(name, leaf, subleaf, register,
 * bit, needs). All of them are listed with + or -, so that the name of a
 * processor does not imply one that is missing; a virtual machine may hide
 * features. */
#define FEATURE_MAP(X)                        \
  X("sse3", 1, 0, C, 0, ALWAYS)               \
  X("ssse3", 1, 0, C, 9, ALWAYS)              \
  X("sse4.1", 1, 0, C, 19, ALWAYS)            \
  X("sse4.2", 1, 0, C, 20, ALWAYS)            \
  X("cx16", 1, 0, C, 13, ALWAYS)              \
  X("movbe", 1, 0, C, 22, ALWAYS)             \
  X("popcnt", 1, 0, C, 23, ALWAYS)            \
  X("avx", 1, 0, C, 28, AVX)                  \
  X("fma", 1, 0, C, 12, AVX)                  \
  X("f16c", 1, 0, C, 29, AVX)                 \
  X("bmi", 7, 0, B, 3, ALWAYS)                \
  X("avx2", 7, 0, B, 5, AVX)                  \
  X("bmi2", 7, 0, B, 8, ALWAYS)               \
  X("adx", 7, 0, B, 19, ALWAYS)               \
  X("lzcnt", 0x80000001, 0, C, 5, ALWAYS)     \
  X("sse4a", 0x80000001, 0, C, 6, ALWAYS)     \
  X("xop", 0x80000001, 0, C, 11, AVX)         \
  X("fma4", 0x80000001, 0, C, 16, AVX)        \
  X("tbm", 0x80000001, 0, C, 21, ALWAYS)      \
  X("gfni", 7, 0, C, 8, ALWAYS)               \
  X("vpclmulqdq", 7, 0, C, 10, AVX)           \
  X("avxvnni", 7, 1, A, 4, AVX)               \
  X("avxifma", 7, 1, A, 23, AVX)              \
  X("avx512f", 7, 0, B, 16, AVX512)           \
  X("avx512dq", 7, 0, B, 17, AVX512)          \
  X("avx512ifma", 7, 0, B, 21, AVX512)        \
  X("avx512cd", 7, 0, B, 28, AVX512)          \
  X("avx512bw", 7, 0, B, 30, AVX512)          \
  X("avx512vl", 7, 0, B, 31, AVX512)          \
  X("avx512vbmi", 7, 0, C, 1, AVX512)         \
  X("avx512vbmi2", 7, 0, C, 6, AVX512)        \
  X("avx512vnni", 7, 0, C, 11, AVX512)        \
  X("avx512bitalg", 7, 0, C, 12, AVX512)      \
  X("avx512vpopcntdq", 7, 0, C, 14, AVX512)   \
  X("avx512vp2intersect", 7, 0, D, 8, AVX512) \
  X("avx512fp16", 7, 0, D, 23, AVX512)        \
  X("avx512bf16", 7, 1, A, 5, AVX512)

/* --- processor names -------------------------------------------------------*/

/* A range of models of a family, both ends included. */
typedef struct model_range {
  uint8_t is_amd, family, from, to;
  const char *name;
} model_range;

static const model_range models[] = {
    {1, 0x17, 0x00, 0x2f, "znver1"},      {1, 0x17, 0x30, 0xff, "znver2"},
    {1, 0x19, 0x10, 0x1f, "znver4"},      {1, 0x19, 0x60, 0x7f, "znver4"},
    {1, 0x19, 0xa0, 0xaf, "znver4"},      {1, 0x19, 0x00, 0xff, "znver3"},
    {1, 0x1a, 0x00, 0xff, "znver5"},      {0, 6, 0x3c, 0x3c, "haswell"},
    {0, 6, 0x3f, 0x3f, "haswell"},        {0, 6, 0x45, 0x46, "haswell"},
    {0, 6, 0x3d, 0x3d, "broadwell"},      {0, 6, 0x47, 0x47, "broadwell"},
    {0, 6, 0x4f, 0x4f, "broadwell"},      {0, 6, 0x56, 0x56, "broadwell"},
    {0, 6, 0x4e, 0x4e, "skylake"},        {0, 6, 0x5e, 0x5e, "skylake"},
    {0, 6, 0x8e, 0x8e, "skylake"},        {0, 6, 0x9e, 0x9e, "skylake"},
    {0, 6, 0xa5, 0xa6, "skylake"},        {0, 6, 0x55, 0x55, "skylake-avx512"},
    {0, 6, 0x7d, 0x7e, "icelake-client"}, {0, 6, 0x6a, 0x6a, "icelake-server"},
    {0, 6, 0x6c, 0x6c, "icelake-server"}, {0, 6, 0x8c, 0x8d, "tigerlake"},
    {0, 6, 0xa7, 0xa7, "rocketlake"},     {0, 6, 0x97, 0x97, "alderlake"},
    {0, 6, 0x9a, 0x9a, "alderlake"},      {0, 6, 0xb7, 0xb7, "raptorlake"},
    {0, 6, 0xba, 0xba, "raptorlake"},     {0, 6, 0xbf, 0xbf, "raptorlake"},
    {0, 6, 0xaa, 0xaa, "meteorlake"},     {0, 6, 0xac, 0xac, "meteorlake"},
    {0, 6, 0x8f, 0x8f, "sapphirerapids"}, {0, 6, 0xcf, 0xcf, "sapphirerapids"},
    {0, 6, 0xad, 0xad, "graniterapids"},
};

const char *vyre__host_cpu_name(bool is_amd, uint32_t family, uint32_t model) {
  for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
    const model_range *m = &models[i];
    if (m->is_amd == is_amd && m->family == family && model >= m->from &&
        model <= m->to) {
      return m->name;
    }
  }
  return NULL;
}

/* --- detection -------------------------------------------------------------*/

static pthread_once_t once = PTHREAD_ONCE_INIT;
static vyre__host_cpu cpus[VYRE__LEVELS];
/* For each level: the feature list, and the name followed by the list. */
static char lists[VYRE__LEVELS][896], texts[VYRE__LEVELS][960];

#if defined(__x86_64__)

typedef struct registers {
  unsigned A, B, C, D;
} registers;

static registers read_cpuid(unsigned leaf, unsigned subleaf) {
  registers r = {0};
  if (!__get_cpuid_count(leaf, subleaf, &r.A, &r.B, &r.C, &r.D)) {
    return (registers){0};
  }
  return r;
}

/* Returns a register of a CPUID leaf. Each leaf is read once: CPUID is slow in
 * a virtual machine. */
static unsigned bits_of(unsigned leaf, unsigned subleaf, char which) {
  static registers known[4]; /* protected by the once */
  static bool is_known[4];
  unsigned at = leaf == 1 ? 0 : leaf == 7 ? 1 + subleaf : 3;
  if (!is_known[at]) known[at] = read_cpuid(leaf, subleaf);
  is_known[at] = true;
  const registers *r = &known[at];
  return which == 'A' ? r->A : which == 'B' ? r->B : which == 'C' ? r->C : r->D;
}

/* Returns which vector state the system saves: ALWAYS (SSE only), AVX or
 * AVX512. */
static int saved_state(void) {
  if (!(bits_of(1, 0, 'C') >> 27 & 1)) return ALWAYS;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if ((low & 0x6) != 0x6) return ALWAYS;
  return (low & 0xe0) == 0xe0 ? AVX512 : AVX;
}

/* Returns the lowest level that includes the feature. */
static uint32_t level_of(const char *name, int needs) {
  static const char *const early[] = {"sse3",   "ssse3", "sse4.1",
                                      "sse4.2", "cx16",  "popcnt"};
  for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
    if (strcmp(name, early[i]) == 0) return VYRE__LEVEL_SSE42;
  }
  if (strcmp(name, "avx") == 0) return VYRE__LEVEL_AVX;
  return needs == AVX512 ? VYRE__LEVELS : VYRE__LEVEL_AVX2;
}

static void add_feature(const char *name, int needs, bool is_present) {
  for (uint32_t level = 0; level < VYRE__LEVELS; level++) {
    char *list = lists[level];
    size_t length = strlen(list);
    bool is_allowed =
        level == VYRE__LEVEL_ALL || level_of(name, needs) <= level;
    (void)snprintf(list + length, sizeof lists[0] - length, "%s%c%s",
                   length ? "," : "", is_present && is_allowed ? '+' : '-',
                   name);
  }
}

static bool has_feature(const char *list, const char *name) {
  char wanted[32];
  size_t length = (size_t)snprintf(wanted, sizeof wanted, "+%s", name);
  const char *at = strstr(list, wanted);
  while (at && at[length] != ',' && at[length] != '\0') {
    at = strstr(at + 1, wanted);
  }
  return at != NULL;
}

static const char *cpu_name(void) {
  registers vendor = read_cpuid(0, 0);
  unsigned signature = bits_of(1, 0, 'A');
  char name[13] = "";
  memcpy(name, &vendor.B, 4);
  memcpy(name + 4, &vendor.D, 4);
  memcpy(name + 8, &vendor.C, 4);
  uint32_t family = signature >> 8 & 15, model = signature >> 4 & 15;
  if (family == 6 || family == 15) model += (signature >> 16 & 15) << 4;
  if (family == 15) family += signature >> 20 & 255;
  bool is_amd = strcmp(name, "AuthenticAMD") == 0;
  if (!is_amd && strcmp(name, "GenuineIntel") != 0) return NULL;
  return vyre__host_cpu_name(is_amd, family, model);
}

/* Returns a generic name, which only selects a scheduling model. */
static const char *generic_name(const char *list) {
  if (has_feature(list, "avx512f") && has_feature(list, "avx512vl")) {
    return "x86-64-v4";
  }
  if (has_feature(list, "avx2") && has_feature(list, "fma")) {
    return "x86-64-v3";
  }
  return has_feature(list, "sse4.2") ? "x86-64-v2" : "x86-64";
}

static void describe(uint32_t level, const char *cpu) {
  const char *list = lists[level];
  vyre__host_cpu *host = &cpus[level];
  bool is_wide = has_feature(list, "avx512f") &&
                 has_feature(list, "avx512vl") &&
                 has_feature(list, "avx512bw") && has_feature(list, "avx512dq");
  host->cpu = cpu ? cpu : generic_name(list);
  host->has_fma = has_feature(list, "fma");
  host->has_rounding = has_feature(list, "sse4.1");
  host->lanes = is_wide ? 16 : has_feature(list, "avx2") ? 8 : 4;
  host->is_usable = has_feature(list, "sse4.2") && has_feature(list, "popcnt");
  host->features = list;
  (void)snprintf(texts[level], sizeof texts[level], "%s %.895s", host->cpu,
                 list);
  host->text = texts[level];
}

static void detect(void) {
  int saved = saved_state();
  unsigned max_subleaf = bits_of(7, 0, 'A');
#define FEATURE(name, leaf, subleaf, reg, bit, needs)                     \
  add_feature(name, needs,                                                \
              (needs) <= saved && ((subleaf) == 0 || max_subleaf >= 1) && \
                  (bits_of(leaf, subleaf, #reg[0]) >> (bit) & 1));
  FEATURE_MAP(FEATURE)
#undef FEATURE
  for (uint32_t level = 0; level < VYRE__LEVELS; level++) {
    describe(level, level == VYRE__LEVEL_ALL ? cpu_name() : NULL);
  }
}

#else

static void detect(void) {
  for (uint32_t level = 0; level < VYRE__LEVELS; level++) {
    cpus[level] = (vyre__host_cpu){
        .lanes = 4, .cpu = "", .features = lists[level], .text = texts[level]};
  }
}

#endif

const vyre__host_cpu *vyre__host_cpu_at(uint32_t level) {
  (void)pthread_once(&once, detect);
  return &cpus[level < VYRE__LEVELS ? level : VYRE__LEVEL_ALL];
}

const vyre__host_cpu *vyre__host_cpu_detect(void) {
  return vyre__host_cpu_at(VYRE__LEVEL_ALL);
}
