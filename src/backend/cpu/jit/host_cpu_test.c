/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "backend/cpu/jit/host_cpu.h"

#include <dlfcn.h>

#include "backend/cpu/jit/llvm_compile.h"
#include "support/check.h"

/* Returns true if the list has the feature with that sign. */
static bool has_entry(const char *list, char sign, const char *name) {
  char wanted[64];
  size_t length = (size_t)snprintf(wanted, sizeof wanted, "%c%s", sign, name);
  for (const char *at = strstr(list, wanted); at; at = strstr(at + 1, wanted)) {
    if (at[length] == '\0' || at[length] == ',') return true;
  }
  return false;
}

/* Calls a function of LLVM that detects the host. */
static char *ask_llvm(const char *function) {
  void *library = dlopen(vyre__jit_library(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library != NULL);
  char *(*ask)(void);
  void *symbol = dlsym(library, function);
  CHECK(symbol != NULL);
  memcpy(&ask, &symbol, sizeof ask);
  return ask();
}

TEST(every_feature_agrees_with_llvm) {
  const vyre__host_cpu *m = vyre__host_cpu_detect();
  vyre_status st = {0};
  CHECK_OK(vyre__jit_load(&st), st);
  char *llvm = ask_llvm("LLVMGetHostCPUFeatures");
  char list[1024], *rest = list;
  (void)snprintf(list, sizeof list, "%s", m->features);
  size_t count = 0;
  for (char *one = strtok_r(rest, ",", &rest); one;
       one = strtok_r(NULL, ",", &rest)) {
    if (!has_entry(llvm, one[0], one + 1)) printf("    %s\n", one);
    CHECK(has_entry(llvm, one[0], one + 1));
    count++;
  }
  CHECK(count > 30);
  free(llvm);
}

TEST(the_name_is_the_one_that_llvm_gives) {
  const vyre__host_cpu *m = vyre__host_cpu_detect();
  char *llvm = ask_llvm("LLVMGetHostCPUName");
  if (strncmp(m->cpu, "x86-64", 6) != 0) CHECK_TEXT(m->cpu, llvm);
  free(llvm);
}

TEST(lanes_fill_the_widest_registers) {
  const vyre__host_cpu *m = vyre__host_cpu_detect();
  CHECK(m->is_usable);
  uint32_t lanes = has_entry(m->features, '+', "avx512bw") ? 16
                   : has_entry(m->features, '+', "avx2")   ? 8
                                                           : 4;
  CHECK_U64(m->lanes, lanes);
  CHECK(m->has_fma == has_entry(m->features, '+', "fma"));
  CHECK(strncmp(m->text, m->cpu, strlen(m->cpu)) == 0);
  CHECK_HAS(m->text, m->features);
  CHECK(vyre__host_cpu_detect() == m);
}

TEST(isa_levels_exclude_higher_features) {
  static const struct {
    const char *feature;
    uint32_t from;
  } cases[] = {{"sse4.1", VYRE__LEVEL_SSE42}, {"popcnt", VYRE__LEVEL_SSE42},
               {"avx", VYRE__LEVEL_AVX},      {"avx2", VYRE__LEVEL_AVX2},
               {"fma", VYRE__LEVEL_AVX2},     {"avx512f", VYRE__LEVELS}};
  const vyre__host_cpu *all = vyre__host_cpu_detect();
  for (uint32_t level = VYRE__LEVEL_SSE2; level < VYRE__LEVELS; level++) {
    const vyre__host_cpu *m = vyre__host_cpu_at(level);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
      bool has = has_entry(all->features, '+', cases[i].feature) &&
                 level >= cases[i].from;
      CHECK(has_entry(m->features, has ? '+' : '-', cases[i].feature));
    }
    CHECK(m->has_fma == has_entry(m->features, '+', "fma"));
    CHECK(m->has_rounding == has_entry(m->features, '+', "sse4.1"));
    CHECK(m->lanes <= all->lanes);
    CHECK(strcmp(m->text, all->text) != 0); /* another cache key */
  }
}

TEST(families_and_models_have_their_names) {
  static const struct {
    bool is_amd;
    uint32_t family, model;
    const char *name;
  } cases[] = {{true, 0x17, 0x01, "znver1"},
               {true, 0x17, 0x71, "znver2"},
               {true, 0x19, 0x01, "znver3"},
               {true, 0x19, 0x11, "znver4"},
               {true, 0x19, 0x61, "znver4"},
               {true, 0x1a, 0x44, "znver5"},
               {false, 6, 0x3f, "haswell"},
               {false, 6, 0x9e, "skylake"},
               {false, 6, 0x55, "skylake-avx512"},
               {false, 6, 0x6a, "icelake-server"},
               {false, 6, 0x8f, "sapphirerapids"},
               {false, 6, 0x01, NULL},
               {true, 6, 0x3f, NULL},
               {false, 0x19, 0x01, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *name =
        vyre__host_cpu_name(cases[i].is_amd, cases[i].family, cases[i].model);
    if (!cases[i].name) CHECK(name == NULL);
    if (cases[i].name) CHECK_TEXT(name, cases[i].name);
  }
}

/* Every level has the features of the one below, and vector registers that its
 * features provide. LLVM knows each of the names. */
TEST(portable_levels_grow) {
  static const uint32_t lanes[VYRE__PORTABLES] = {16, 8, 4};
  for (uint32_t level = 0; level < VYRE__PORTABLES; level++) {
    const vyre__host_cpu *m = vyre__host_cpu_portable(level);
    size_t length;
    CHECK_U64(m->lanes, lanes[level]);
    CHECK(m->has_fma == has_entry(m->features, '+', "fma"));
    CHECK(m->has_rounding == has_entry(m->features, '+', "sse4.1"));
    CHECK(!strchr(m->features, '-'));
    for (uint32_t other = 0; other < VYRE__PORTABLES; other++) {
      const char *lacks = vyre__host_cpu_lacks(m, other, &length);
      CHECK((lacks == NULL) == (other >= level));
    }
  }
  size_t length;
  const char *lacks = vyre__host_cpu_lacks(vyre__host_cpu_at(VYRE__LEVEL_AVX),
                                           VYRE__PORTABLE_V3, &length);
  if (vyre__host_cpu_at(VYRE__LEVEL_AVX)->is_usable) {
    CHECK(lacks && length == 4 && memcmp(lacks, "avx2", 4) == 0);
  }
}

TEST_MAIN(TEST_ENTRY(every_feature_agrees_with_llvm),
          TEST_ENTRY(the_name_is_the_one_that_llvm_gives),
          TEST_ENTRY(lanes_fill_the_widest_registers),
          TEST_ENTRY(isa_levels_exclude_higher_features),
          TEST_ENTRY(families_and_models_have_their_names),
          TEST_ENTRY(portable_levels_grow))
