/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every module is valid, as the validator of SPIR-V has it, and the same kernel
 * gives the same words. spirv_run_test.c runs them.
 *
 *   VYRE_SPIRV_SEED=42       only that random program
 *   VYRE_SPIRV_FIRST=7       the first one; VYRE_SPIRV_SEEDS=9 how many */
#include <locale.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#if __has_include(<spirv/unified1/spirv.h>)
#define HAS_HEADERS 1
#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.h>
#endif

#include "vyre/module.h"

#include "codegen/spirv/internal.h"
#include "codegen/spirv/spirv_targets_testing.h"
#include "lir/lir_testing.h"
#include "testing/reference_run_testing.h"

enum { SEEDS = 300 };

typedef struct text {
  char *bytes;
  size_t length, capacity;
} text;

static bool text_take(void *self, const char *bytes, size_t length) {
  text *to = self;
  if (to->length + length + 1 > to->capacity) {
    to->capacity = 2 * (to->length + length) + 4096;
    char *grown = realloc(to->bytes, to->capacity);
    if (!grown) return false;
    to->bytes = grown;
  }
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
  to->bytes[to->length] = '\0';
  return true;
}

/* --- the tools of SPIR-V -----------------------------------------------------------*/

extern char **environ;

/* Runs @p command, found in the path; whether it ends well. */
static bool runs(char *const *command) {
  pid_t child;
  int status = 0;
  int error = posix_spawnp(&child, command[0], NULL, NULL, command, environ);
  if (error) printf("    there is no %s: install spirv-tools\n", command[0]);
  CHECK(error == 0);
  CHECK(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *file_of(const char *name) {
  static char paths[8][96];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "/tmp/vyre_spirv_test.%ld.%s", (long)getpid(),
           name);
  return path;
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  CHECK(file);
  CHECK(fwrite(bytes, 1, size, file) == size);
  CHECK(fclose(file) == 0);
}

static bool is_valid(const vyre__spirv_module *m) {
  const char *path = file_of("spv");
  write_file(path, m->words, m->word_count * 4);
  char *const command[] = {"spirv-val", "--target-env", "vulkan1.1",
                           (char *)path, NULL};
  bool good = runs(command);
  unlink(path);
  return good;
}

/* --- modules ---------------------------------------------------------------------------*/

static bool same_words(const vyre__spirv_module *a,
                       const vyre__spirv_module *b) {
  return a->word_count == b->word_count &&
         memcmp(a->words, b->words, a->word_count * 4) == 0;
}

/* Emits twice, validates. */
static unsigned check_program(vyre_program *program, const char *name,
                              const spirv_target *target) {
  vyre_arena arena;
  vyre_status st = {0};
  const vyre__lir_kernel *k = NULL;
  vyre__spirv_module one, two;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre__lower(program, &target->low, VYRE__PASS_LEGALIZE_CONTROL,
                       &arena, &k, NULL, &st),
           st);
  CHECK_OK(vyre__emit_spirv(k, &target->spirv, &arena, &one, &st), st);
  CHECK_OK(vyre__emit_spirv(k, &target->spirv, &arena, &two, &st), st);
  bool good = same_words(&one, &two) && is_valid(&one);
  if (!good) printf("    %s for %s\n", name, target->name);
  vyre_arena_deinit(&arena);
  return !good;
}

static unsigned check_example(vyre_program *program, const char *name,
                              void *self) {
  unsigned failed = 0;
  (void)self;
  for (unsigned to = 0; to < SPIRV_TARGETS; to++) {
    failed += check_program(program, name, &spirv_targets[to]);
  }
  return failed;
}

TEST(examples_are_valid) {
  CHECK_U64(each_example(check_example, NULL), 0);
}

TEST(random_programs_are_valid) {
  const seed_range seeds = seeds_of("VYRE_SPIRV", 0, SEEDS);
  unsigned failed = 0;
  for (uint64_t i = 0; i < seeds.count && failed < 10; i++) {
    uint64_t seed = seeds.first + i;
    const spirv_target *target = &spirv_targets[seed % SPIRV_TARGETS];
    vyre_random_program *g = spirv_generate(seed, target);
    char name[64];
    snprintf(name, sizeof name, "VYRE_SPIRV_SEED=%llu",
             (unsigned long long)seed);
    failed += check_program(vyre_random_program_program(g), name, target);
    vyre_random_program_release(g);
  }
  CHECK_U64(failed, 0);
}

/* --- the table ---------------------------------------------------------------------------*/

#ifdef HAS_HEADERS
/* NOLINTNEXTLINE(readability-function-size): made by macros */
TEST(numbers_are_those_of_the_specification) {
#define SPV_OP(name, number, operands) CHECK_U64((number), SpvOp##name);
#define SPV_ENUM(kind, name, number)   CHECK_U64((number), IS_##kind(name));
#define IS_CAPABILITY(name)            SpvCapability##name
#define IS_ADDRESSING(name)            SpvAddressingModel##name
#define IS_MEMORY_MODEL(name)          SpvMemoryModel##name
#define IS_EXECUTION_MODEL(name)       SpvExecutionModel##name
#define IS_EXECUTION_MODE(name)        SpvExecutionMode##name
#define IS_STORAGE(name)               SpvStorageClass##name
#define IS_DECORATION(name)            SpvDecoration##name
#define IS_BUILTIN(name)               SpvBuiltIn##name
#define IS_MEMORY_ACCESS(name)         SpvMemoryAccess##name##Mask
#define IS_GLSL(name)                  GLSLstd450##name
#include "codegen/spirv/ops.def"
#undef SPV_OP
#undef SPV_ENUM
  CHECK_U64(SPV_ACQUIRE_RELEASE, SpvMemorySemanticsAcquireReleaseMask);
  CHECK_U64(SPV_UNIFORM_MEMORY, SpvMemorySemanticsUniformMemoryMask);
  CHECK_U64(SPV_WORKGROUP_MEMORY, SpvMemorySemanticsWorkgroupMemoryMask);
  CHECK_U64(SPV_MAKE_AVAILABLE, SpvMemorySemanticsMakeAvailableMask);
  CHECK_U64(SPV_MAKE_VISIBLE, SpvMemorySemanticsMakeVisibleMask);
  CHECK_U64(SPV_SCOPE_DEVICE, SpvScopeDevice);
  CHECK_U64(SPV_SCOPE_WORKGROUP, SpvScopeWorkgroup);
  CHECK_U64(SPV_SCOPE_QUEUE_FAMILY, SpvScopeQueueFamily);
  CHECK_U64(SPV_MAGIC, SpvMagicNumber);
}
#else
TEST(numbers_are_those_of_the_specification) {
  printf("    there is no <spirv/unified1/spirv.h>: install spirv-headers\n");
  CHECK(!"the numbers can be compared");
}
#endif

/* --- the text -----------------------------------------------------------------------------*/

static char *slurp(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  CHECK(file);
  char *bytes = malloc(8 << 20);
  CHECK(bytes);
  *length = fread(bytes, 1, 8 << 20, file);
  fclose(file);
  return bytes;
}

/* What our text says and what the disassembler of SPIR-V says of the same module
 * are one module. The assembler numbers ids as they come, so bytes can be
 * compared. */
static bool text_is_right(const vyre__spirv_module *m) {
  const char *module = file_of("spv"), *ours = file_of("ours.txt");
  const char *theirs = file_of("theirs.txt");
  const char *a = file_of("a.spv"), *b = file_of("b.spv");
  vyre_status st = {0};
  text out = {0};
  CHECK_OK(vyre__spirv_print(m->words, m->word_count, (vyre_allocator){0},
                             (vyre_writer){text_take, &out}, &st),
           st);
  write_file(module, m->words, m->word_count * 4);
  write_file(ours, out.bytes, out.length);
  char *const dis[] = {"spirv-dis",    "--raw-id",     "-o",
                       (char *)theirs, (char *)module, NULL};
  char *const one[] = {"spirv-as", "--target-env", "spv1.3", "-o",
                       (char *)a,  (char *)ours,   NULL};
  char *const two[] = {"spirv-as", "--target-env", "spv1.3", "-o",
                       (char *)b,  (char *)theirs, NULL};
  bool good = runs(dis) && runs(one) && runs(two);
  if (good) {
    size_t x, y;
    char *of_a = slurp(a, &x), *of_b = slurp(b, &y);
    good = x == y && x == m->word_count * 4 && memcmp(of_a, of_b, x) == 0;
    free(of_a);
    free(of_b);
  }
  unlink(module);
  unlink(ours);
  unlink(theirs);
  unlink(a);
  unlink(b);
  free(out.bytes);
  return good;
}

TEST(text_says_what_the_module_says) {
  for (uint64_t seed = 0; seed < 20; seed++) {
    spirv_target target = spirv_targets[seed % SPIRV_TARGETS];
    target.spirv.lines = false; /* they are comments in ours */
    vyre_random_program *g = spirv_generate(seed, &target);
    vyre_arena arena;
    vyre_status st = {0};
    const vyre__lir_kernel *k = NULL;
    vyre__spirv_module m;
    vyre_arena_init(&arena, (vyre_allocator){0});
    CHECK_OK(vyre__lower(vyre_random_program_program(g), &target.low,
                         VYRE__PASS_LEGALIZE_CONTROL, &arena, &k, NULL, &st),
             st);
    CHECK_OK(vyre__emit_spirv(k, &target.spirv, &arena, &m, &st), st);
    bool good = text_is_right(&m);
    if (!good) printf("    seed %llu\n", (unsigned long long)seed);
    vyre_arena_deinit(&arena);
    vyre_random_program_release(g);
    CHECK(good);
  }
}

static bool refuse(void *self, const char *bytes, size_t length) {
  (void)self;
  (void)bytes;
  (void)length;
  return false;
}

/* --- kernels by hand -----------------------------------------------------------------------*/

static kit t;

/* y[i] = x[i] + u, with a uniform, an access that is checked, and shared memory. */
static void make_small(void) {
  kit_begin(&t, "small", 64, 1, 1);
  uint32_t x = kit_buffer(&t, "x", VYRE_MEMORY_GLOBAL, 4, false, 0);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 0);
  uint32_t u = kit_buffer(&t, "u", VYRE_MEMORY_UNIFORM, 4, false, 1);
  uint32_t s = kit_buffer(&t, "s", VYRE_MEMORY_SHARED, 1, true, 64);
  vyre__val i = kit_global(&t, 0), l = kit_local(&t, 0);
  vyre__val zero = kit_u32(&t, 0);
  vyre__val len = kit_op(&t, VYRE__LIR_LEN, VYRE_TYPE_U32, y, 0, 0, 0);
  vyre__val inside = kit_b(&t, VYRE__LIR_LT_U, i, len);
  vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, x, i, inside),
                        kit_load(&t, u, zero, 0));
  kit_store(&t, s, l, sum, 0);
  kit_mark(&t, VYRE__LIR_BARRIER);
  kit_store(&t, y, i, kit_load(&t, s, l, 0), inside);
  kit_end(&t);
  t.k.has_barrier = true;
}

static vyre__spirv_module emit_kit(const vyre__spirv_target *target,
                                   vyre_arena *arena) {
  vyre__spirv_module m;
  vyre_status st = {0};
  CHECK_OK(vyre__emit_spirv(&t.k, target, arena, &m, &st), st);
  return m;
}

/* How often an instruction is in the module, with @p operand as its word @p at,
 * which 0 stands for any of. */
static unsigned count_ops(const vyre__spirv_module *m, uint32_t op, unsigned at,
                          uint32_t operand) {
  unsigned count = 0;
  for (size_t i = SPV_HEADER; i < m->word_count; i += m->words[i] >> 16) {
    if ((m->words[i] & 0xFFFF) != op) continue;
    count += at == 0 || m->words[i + at] == operand;
  }
  return count;
}

TEST(tells_where_things_are) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  make_small();
  vyre__spirv_module m = emit_kit(NULL, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(m.entry_points, 1);
  CHECK_U64(m.workgroup[0], 64);
  CHECK_U64(m.descriptor_count, 2); /* the uniform is in the block */
  CHECK_U64(m.descriptors[0].binding, 0);
  CHECK(!m.descriptors[0].is_written && m.descriptors[1].is_written);
  CHECK_U64(m.descriptors[1].binding, 1);
  CHECK_U64(m.slots, 6);
  CHECK_U64(m.push_bytes, 20); /* base, a length, the uniform */
  CHECK_U64(m.block_bytes, 0);
  CHECK_U64(m.field_count, 3);
  CHECK_U64(m.fields[2].value, VYRE__SPIRV_UNIFORM);
  CHECK_U64(m.fields[2].offset, 16);
  CHECK_U64(m.shared_bytes, 256); /* no 8-bit integers: a word each */
  m = emit_kit(&(vyre__spirv_target){.int8 = true, .push_bytes = 12}, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(m.shared_bytes, 64);
  CHECK_U64(m.push_bytes, 12);  /* base */
  CHECK_U64(m.block_bytes, 16); /* the length; the uniform is bound */
  CHECK_U64(m.descriptor_count, 4);
  CHECK(m.descriptors[3].what == VYRE__SPIRV_BLOCK &&
        m.descriptors[3].is_uniform);
  CHECK_U64(m.descriptors[3].binding, 5);
  m = emit_kit(&(vyre__spirv_target){.block_in_storage = true}, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(m.push_bytes, 0);
  CHECK_U64(m.block_bytes, 32); /* 20, in whole vectors */
  CHECK_U64(m.descriptor_count, 3);
  CHECK(m.descriptors[2].what == VYRE__SPIRV_BLOCK &&
        !m.descriptors[2].is_uniform && !m.descriptors[2].is_written);
  m = emit_kit(&(vyre__spirv_target){.binds_uniforms = true}, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(m.descriptor_count, 3);
  CHECK_U64(m.descriptors[2].buffer, 2);
  vyre_arena_deinit(&arena);
}

/* How often a field is there. */
static unsigned count_fields(const vyre__spirv_module *m, unsigned value) {
  unsigned count = 0;
  for (size_t i = 0; i < m->field_count; i++) {
    count += m->fields[i].value == value;
  }
  return count;
}

/* Who binds a longer one sees its length, and what is read at a computed index. */
TEST(uniforms_are_packed_where_they_are_read_at_known_places) {
  static const struct {
    unsigned count, at; /* elements; read at that, or by the local id */
    bool asks, is_packed;
  } cases[] = {{1, 0, false, true},   {1, 0, true, true},
               {26, 25, false, true}, {27, 0, false, false},
               {4, 4, false, false},  {4, UINT32_MAX, false, false},
               {0, 0, false, false},  {4, 3, true, true}};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    kit_begin(&t, "uniform", 8, 1, 1);
    uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 8);
    uint32_t u =
        kit_buffer(&t, "u", VYRE_MEMORY_UNIFORM, 4, false, cases[i].count);
    vyre__val l = kit_local(&t, 0), g = kit_global(&t, 1);
    vyre__val at = cases[i].at == UINT32_MAX ? l : kit_u32(&t, cases[i].at);
    vyre__val grid = kit_op(&t, VYRE__LIR_GRID_SIZE, VYRE_TYPE_U32, 2, 0, 0, 0);
    vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, u, at, 0), g);
    sum = kit_u(&t, VYRE__LIR_ADD, sum, grid);
    if (cases[i].asks) {
      vyre__val len = kit_op(&t, VYRE__LIR_LEN, VYRE_TYPE_U32, u, 0, 0, 0);
      sum = kit_u(&t, VYRE__LIR_ADD, sum, len);
    }
    kit_store(&t, y, l, sum, 0);
    kit_end(&t);
    vyre__spirv_module m = emit_kit(NULL, &arena);
    CHECK(is_valid(&m));
    CHECK_U64(count_fields(&m, VYRE__SPIRV_UNIFORM), cases[i].is_packed);
    CHECK_U64(count_fields(&m, VYRE__SPIRV_LENGTH), cases[i].asks);
    CHECK_U64(count_fields(&m, VYRE__SPIRV_GRID), 1);
    CHECK_U64(m.descriptor_count, cases[i].is_packed ? 1 : 2);
    CHECK(m.push_bytes <= 128);
  }
  vyre_arena_deinit(&arena);
}

/* --- what a module says about itself -----------------------------------------------*/

/* The bits of the constant @p id. */
static uint32_t constant_of(const vyre__spirv_module *m, uint32_t id) {
  for (size_t i = SPV_HEADER; i < m->word_count; i += m->words[i] >> 16) {
    uint32_t op = m->words[i] & 0xFFFF;
    bool is_one = op == SPV_OpConstant || op == SPV_OpSpecConstant;
    if (is_one && m->words[i + 2] == id) return m->words[i + 3];
  }
  printf("    no constant has the id %u\n", id);
  test_fail(__FILE__, __LINE__);
  return 0;
}

TEST(the_workgroup_is_made_of_specialization_constants) {
  static const uint32_t size[3] = {7, 5, 3};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  kit_begin(&t, "sized", size[0], size[1], size[2]);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 8);
  kit_store(&t, y, kit_local(&t, 0), kit_local(&t, 1), 0);
  kit_end(&t);
  vyre__spirv_module m = emit_kit(NULL, &arena);
  CHECK(is_valid(&m));
  unsigned found = 0;
  for (size_t i = SPV_HEADER; i < m.word_count; i += m.words[i] >> 16) {
    const uint32_t *w = &m.words[i];
    if ((w[0] & 0xFFFF) == SPV_OpDecorate && w[2] == SPV_DECORATION_SpecId) {
      CHECK(w[3] < 3);
      CHECK_U64(constant_of(&m, w[1]), size[w[3]]);
      found++;
    }
    if ((w[0] & 0xFFFF) == SPV_OpSpecConstantComposite) {
      for (int axis = 0; axis < 3; axis++) {
        CHECK_U64(constant_of(&m, w[3 + axis]), size[axis]);
      }
      CHECK_U64(count_ops(&m, SPV_OpDecorate, 1, w[2]), 1);
      CHECK_U64(count_ops(&m, SPV_OpDecorate, 3, SPV_BUILTIN_WorkgroupSize), 1);
    }
  }
  CHECK_U64(found, 3);
  vyre_arena_deinit(&arena);
}

/* A target that has everything gets what the kernel uses, and no more. */
TEST(capabilities_are_those_that_are_used) {
  enum { I8 = 1, I16 = 2, I64 = 4, S8 = 8, S16 = 16, A64 = 32, F64 = 64 };
  static const uint32_t numbers[] = {SPV_CAPABILITY_Int8,
                                     SPV_CAPABILITY_Int16,
                                     SPV_CAPABILITY_Int64,
                                     SPV_CAPABILITY_StorageBuffer8BitAccess,
                                     SPV_CAPABILITY_StorageBuffer16BitAccess,
                                     SPV_CAPABILITY_Int64Atomics,
                                     SPV_CAPABILITY_Float64};
  static const struct {
    unsigned width; /* of a storage buffer, and of shared memory */
    unsigned shared;
    bool is_atomic;
    unsigned wants;
  } cases[] = {{4, 4, false, 0},        {1, 4, false, S8},
               {2, 4, false, S16},      {8, 4, false, I64},
               {4, 1, false, I8},       {4, 2, false, I16},
               {1, 2, false, S8 | I16}, {8, 4, true, I64 | A64}};
  const vyre__spirv_target all = {SPIRV_EVERYTHING};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    vyre_type type = cases[i].width == 8 ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
    kit_begin(&t, "widths", 8, 1, 1);
    uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL,
                            (uint8_t)cases[i].width, true, 8);
    uint32_t s = kit_buffer(&t, "s", VYRE_MEMORY_SHARED,
                            (uint8_t)cases[i].shared, true, 8);
    vyre__val l = kit_local(&t, 0), five = kit_const(&t, type, 5);
    kit_store(&t, s, l, l, 0);
    if (cases[i].is_atomic) {
      kit_op(&t, VYRE__LIR_ATOMIC_ADD, type, y, l, five, 0);
    } else {
      kit_store(&t, y, l, five, 0);
    }
    kit_end(&t);
    t.buffers[s].needs_zero = false;
    vyre__spirv_module m = emit_kit(&all, &arena);
    CHECK(is_valid(&m));
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
      CHECK_U64(count_ops(&m, SPV_OpCapability, 1, numbers[n]),
                cases[i].wants >> n & 1);
    }
  }
  vyre_arena_deinit(&arena);
}

/* Acquire and release of storage and workgroup memory at barriers, nothing at
 * atomics; in the Vulkan memory model with availability and visibility, and accesses
 * that others may see say so. */
TEST(barriers_and_atomics_follow_the_memory_model) {
  static const struct {
    vyre__spirv_target target;
    uint32_t semantics, scope, coherent, open; /* open: loads and stores */
  } cases[] = {
      {{.int8 = true}, 0x148, SPV_SCOPE_DEVICE, 1, 0},
      {{.vulkan_memory_model = true, .device_scope = true},
       0x6148,
       SPV_SCOPE_DEVICE,
       0,
       4},
      {{.vulkan_memory_model = true}, 0x6148, SPV_SCOPE_QUEUE_FAMILY, 0, 4}};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    kit_begin(&t, "order", 8, 1, 1);
    uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 64);
    uint32_t s = kit_buffer(&t, "s", VYRE_MEMORY_SHARED, 4, true, 64);
    vyre__val l = kit_local(&t, 0), one = kit_u32(&t, 1);
    kit_store(&t, s, l, one, 0);
    kit_store(&t, y, l, one, 0);
    kit_op(&t, VYRE__LIR_ATOMIC_ADD, VYRE_TYPE_U32, s, one, one, 0);
    kit_op(&t, VYRE__LIR_ATOMIC_ADD, VYRE_TYPE_U32, y, one, one, 0);
    kit_mark(&t, VYRE__LIR_BARRIER);
    vyre__val sum = kit_u(&t, VYRE__LIR_ADD, kit_load(&t, s, one, 0),
                          kit_load(&t, y, one, 0));
    kit_op(&t, VYRE__LIR_ATOMIC_EXCHANGE, VYRE_TYPE_U32, y, l, sum, 0);
    kit_end(&t);
    t.k.has_barrier = true;
    t.buffers[s].needs_zero = false;
    vyre__spirv_module m = emit_kit(&cases[c].target, &arena);
    CHECK(is_valid(&m));
    unsigned shared = 0, global = 0, open = 0;
    for (size_t i = SPV_HEADER; i < m.word_count; i += m.words[i] >> 16) {
      const uint32_t *w = &m.words[i];
      uint32_t op = w[0] & 0xFFFF, length = w[0] >> 16;
      if (op == SPV_OpControlBarrier) {
        CHECK_U64(constant_of(&m, w[1]), SPV_SCOPE_WORKGROUP);
        CHECK_U64(constant_of(&m, w[2]), SPV_SCOPE_WORKGROUP);
        CHECK_U64(constant_of(&m, w[3]), cases[c].semantics);
      } else if (op == SPV_OpAtomicIAdd || op == SPV_OpAtomicExchange) {
        uint32_t scope = constant_of(&m, w[4]);
        CHECK_U64(constant_of(&m, w[5]), 0);
        shared += scope == SPV_SCOPE_WORKGROUP;
        global += scope == cases[c].scope;
      } else if (op == SPV_OpLoad) {
        open += length > 4 && w[4] == SPV_MEMORY_ACCESS_NonPrivatePointer;
      } else if (op == SPV_OpStore) {
        open += length > 3 && w[3] == SPV_MEMORY_ACCESS_NonPrivatePointer;
      }
    }
    CHECK_U64(count_ops(&m, SPV_OpControlBarrier, 0, 0), 1);
    CHECK_U64(shared, 1);
    CHECK_U64(global, 2);
    CHECK_U64(open, cases[c].open);
    CHECK_U64(count_ops(&m, SPV_OpDecorate, 2, SPV_DECORATION_Coherent),
              cases[c].coherent);
  }
  vyre_arena_deinit(&arena);
}

/* Of a kernel as text. */
static vyre__spirv_module emit_kernel(const char *kernel,
                                      const vyre__spirv_target *target,
                                      vyre_arena *arena) {
  vyre_module *source = NULL;
  vyre_status st = {0};
  const vyre__lir_kernel *k = NULL;
  vyre__spirv_module m;
  CHECK_OK(vyre_module_parse(kernel, strlen(kernel), "k", (vyre_allocator){0},
                             &source, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(source, 0), &(vyre__target){0},
                       VYRE__PASS_LEGALIZE_CONTROL, arena, &k, NULL, &st),
           st);
  CHECK_OK(vyre__emit_spirv(k, target, arena, &m, &st), st);
  vyre_module_release(source);
  CHECK(is_valid(&m));
  return m;
}

/* One of 8 invocations with buffers x, y, z and shared s. */
static vyre__spirv_module emit_body(const char *body, vyre_arena *arena) {
  static const vyre__spirv_target target = {.zeroes_workgroup = true};
  char kernel[512];
  (void)snprintf(
      kernel, sizeof kernel,
      "kernel k workgroup(8)\nbuffer x : read f32[8] @0;\n"
      "buffer y : read_write f32[8] @1;\nbuffer z : read_write f32[8] @2;\n"
      "shared s : f32[8];\n{ let l = local_id.x; let m = 7 - l; %s }\n",
      body);
  return emit_kernel(kernel, &target, arena);
}

TEST(barriers_name_memory_of_both_sides) {
  static const struct {
    const char *body;
    uint32_t semantics[2]; /* of barriers in their order */
  } cases[] = {
      {"s[l] = x[l]; barrier(); y[l] = s[m];", {0x108}},
      {"y[l] = x[l]; barrier(); z[l] = y[m];", {0x48}},
      {"y[l] = x[l]; s[l] = x[m]; barrier(); z[l] = y[m] + s[m];", {0x148}},
      {"y[l] = x[l]; barrier(); z[l] = x[m];", {0}},
      {"z[l] = y[m]; barrier(); y[l] = x[l];", {0x48}},
      {"s[l] = x[l]; barrier(); y[l] = s[m]; barrier(); z[l] = y[m];",
       {0x108, 0x48}},
      {"s[l] = x[l]; barrier(); y[l] = s[m]; barrier(); z[l] = s[m ^ 1];",
       {0x108, 0x108}},
      /* what comes again is on both sides */
      {"for (let i = 0; i < 3; i++) { y[l] = y[m] + 1.0; barrier(); }", {0x48}},
      {"for (let i = 0; i < 3; i++) { if (i > 0) { barrier(); y[l] = x[m]; } }",
       {0x48}},
      {"for (let i = 0; i < 3; i++) { s[l] = x[m]; } barrier(); y[l] = s[m];",
       {0x108}},
      {"for (let i = 0; i < 3; i++) { z[l] = x[m]; } barrier(); y[l] = x[l];",
       {0}},
      {"y[l] = x[l]; for (let i = 0; i < 3; i++) { barrier(); z[l] = s[m]; }",
       {0x40 | 8}}};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    vyre__spirv_module m = emit_body(cases[c].body, &arena);
    unsigned seen = 0;
    for (size_t i = SPV_HEADER; i < m.word_count; i += m.words[i] >> 16) {
      if ((m.words[i] & 0xFFFF) != SPV_OpControlBarrier) continue;
      uint32_t semantics = constant_of(&m, m.words[i + 3]);
      if (semantics != cases[c].semantics[seen])
        printf("    %s\n", cases[c].body);
      CHECK_U64(semantics, cases[c].semantics[seen]);
      seen++;
    }
    CHECK_U64(seen, cases[c].semantics[1] ? 2 : 1);
  }
  vyre_arena_deinit(&arena);
}

/* The load before a store is that of its own element, if only values stand between
 * the two. */
TEST(what_is_added_to_is_loaded_last) {
  static const struct {
    const char *body;
    bool is_own;
  } cases[] = {{"s[l] = x[l]; barrier(); s[l] += s[m];", true},
               {"y[l] += y[m];", true},
               {"y[l] += y[m] + z[m];", true},
               {"let a = y[l]; z[m] = 1.0; y[l] = a + y[m];", false},
               {"let a = y[l]; y[l] = (a + y[m]) * a;", false}};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    vyre__spirv_module m = emit_body(cases[c].body, &arena);
    uint32_t at = 0, loaded = 0, stored = 0; /* index of accesses */
    for (size_t i = SPV_HEADER; i < m.word_count; i += m.words[i] >> 16) {
      uint32_t op = m.words[i] & 0xFFFF, length = m.words[i] >> 16;
      if (op == SPV_OpAccessChain) at = m.words[i + length - 1];
      if (op == SPV_OpLoad) loaded = at;
      if (op == SPV_OpStore) stored = at;
    }
    if ((loaded == stored) != cases[c].is_own)
      printf("    %s\n", cases[c].body);
    CHECK(loaded && (loaded == stored) == cases[c].is_own);
  }
  vyre_arena_deinit(&arena);
}

/* What is not 0 was inside, so that nobody asks again whether it is. */
TEST(an_access_is_asked_about_once) {
  static const struct {
    const char *test;
    unsigned branches;
  } cases[] = {{"atomic_or(y[n], 0) == 7", 1}, {"atomic_or(y[n], 0) != 0", 1},
               {"atomic_or(y[n], 0) == 0", 2}, {"atomic_or(y[n], 0) != 7", 2},
               {"y[n + 1] == 7", 2},           {"n < len(y)", 1}};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char kernel[256];
    (void)snprintf(kernel, sizeof kernel,
                   "kernel k workgroup(8)\nbuffer x : read u32[8] @0;\n"
                   "buffer y : read_write u32[] @1;\n{ let n = x[local_id.x]; "
                   "if (%s) { atomic_compare_exchange(y[n], 7, 8); } }\n",
                   cases[i].test);
    vyre__spirv_module m = emit_kernel(kernel, NULL, &arena);
    if (count_ops(&m, SPV_OpSelectionMerge, 0, 0) != cases[i].branches) {
      printf("    if (%s)\n", cases[i].test);
    }
    CHECK_U64(count_ops(&m, SPV_OpSelectionMerge, 0, 0), cases[i].branches);
  }
  vyre_arena_deinit(&arena);
}

TEST(shared_memory_is_zeroed_as_the_target_can) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  make_small();
  vyre__spirv_module m = emit_kit(NULL, &arena);
  CHECK_U64(count_ops(&m, SPV_OpLoopMerge, 0, 0), 1);
  CHECK_U64(count_ops(&m, SPV_OpControlBarrier, 0, 0), 2);
  m = emit_kit(&(vyre__spirv_target){.zeroes_workgroup = true}, &arena);
  CHECK_U64(count_ops(&m, SPV_OpLoopMerge, 0, 0), 0);
  CHECK_U64(count_ops(&m, SPV_OpConstantNull, 0, 0), 1);
  CHECK_U64(count_ops(&m, SPV_OpControlBarrier, 0, 0), 1);
  t.buffers[3].needs_zero = false;
  m = emit_kit(NULL, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(count_ops(&m, SPV_OpControlBarrier, 0, 0), 1);
  vyre_arena_deinit(&arena);
}

/* y[0] = sqrt(2.5) * 2.5 in f32, and the modes of what is used. */
/* Rounds: (9 + 1) * (1 + (19 + 1)) of the loops, 0 for shared memory. */
TEST(loops_that_may_be_ended_are_looked_at) {
  static const char kernel[] =
      "kernel k workgroup(64) over(y)\nbuffer y : read_write u32[64] @0;\n"
      "{ let i = global_id.x; for (let a = 0u; a < 9u; a++) { for (let b = 0u; "
      "b < 19u; b++) { y[i] += a * b; } } }\n";
  const vyre__target low = {0};
  vyre_module *source = NULL;
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(kernel, sizeof kernel - 1, "k",
                             (vyre_allocator){0}, &source, NULL, &st),
           st);
  static const struct {
    uint32_t most;
    bool checks;
  } cases[] = {{0, false}, {209, true}, {210, false}, {1, true}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const vyre__spirv_target target = {.most_rounds = cases[i].most};
    const vyre__lir_kernel *k = NULL;
    vyre__spirv_module m;
    CHECK_OK(vyre__lower(vyre_module_kernel(source, 0), &low,
                         VYRE__PASS_LEGALIZE_CONTROL, &arena, &k, NULL, &st),
             st);
    CHECK_OK(vyre__emit_spirv(k, &target, &arena, &m, &st), st);
    CHECK(is_valid(&m));
    unsigned ones = 0, statuses = 0;
    for (size_t f = 0; f < m.field_count; f++) {
      ones += m.fields[f].value == VYRE__SPIRV_ONE;
    }
    for (size_t d = 0; d < m.descriptor_count; d++) {
      statuses += m.descriptors[d].what == VYRE__SPIRV_STATUS;
    }
    CHECK_U64(ones, cases[i].checks);
    CHECK_U64(statuses, cases[i].checks);
    CHECK_U64(count_ops(&m, SPV_OpAtomicStore, 0, 0), cases[i].checks ? 2 : 0);
  }
  vyre_module_release(source);
  vyre_arena_deinit(&arena);
}

/* A constant of the module decides about it, where the device has its own limit and
 * all rounds are of one launch. */
TEST(fuel_can_be_left_out_where_the_device_ends_loops) {
#define SPINS                                                                \
  "kernel k workgroup(64) over(y)\nbuffer y : read_write u32[64] @0;\n"      \
  "{ let i = global_id.x; var n = y[i]; while (n != 5u) { n = n * 3u + 1u; " \
  "} "
  static const char *const kernels[] = {
      SPINS "y[i] = n; }\n",
      SPINS "grid_barrier(); y[i] = n + y[(i + 1) % 64]; }\n"};
#undef SPINS
  static const struct {
    int kernel;
    uint32_t most_rounds;
    bool may_skip;
  } cases[] = {{0, 65535, true}, {0, 0, false}, {1, 65535, false}};
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *kernel = kernels[cases[i].kernel];
    const vyre__spirv_target target = {.most_rounds = cases[i].most_rounds};
    vyre__spirv_module m = emit_kernel(kernel, &target, &arena);
    CHECK_U64(m.may_skip_fuel, cases[i].may_skip);
    CHECK_U64(count_ops(&m, SPV_OpSpecConstantTrue, 0, 0), cases[i].may_skip);
    CHECK_U64(count_fields(&m, VYRE__SPIRV_FUEL), 1);
  }
  vyre_arena_deinit(&arena);
}

static void make_float(vyre_type type) {
  bool wide = type == VYRE_TYPE_F64;
  vyre_type bits = wide ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  kit_begin(&t, "floats", 1, 1, 1);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, wide ? 8 : 4, true, 1);
  vyre__val a =
      kit_const(&t, type, wide ? UINT64_C(0x4004000000000000) : 0x40200000);
  vyre__val b = kit_op(&t, VYRE__LIR_FSQRT, type, 0, a, 0, 0);
  b = kit_op(&t, VYRE__LIR_FMUL, type, 0, a, b, 0);
  b = kit_op(&t, VYRE__LIR_BITCAST, bits, 0, b, 0, 0);
  kit_store(&t, y, kit_u32(&t, 0), b, 0);
  kit_end(&t);
}

TEST(float_modes_are_those_that_hold) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  make_float(VYRE_TYPE_F32);
  vyre__spirv_module m = emit_kit(NULL, &arena);
  CHECK_U64(count_ops(&m, SPV_OpExecutionMode, 0, 0), 1);
  CHECK_U64(count_ops(&m, SPV_OpDecorate, 2, SPV_DECORATION_NoContraction), 2);
  const vyre__spirv_target all = {.int64 = true,
                                  .float64 = true,
                                  .keeps_signed_zeros = 32 | 64,
                                  .keeps_subnormals = 32,
                                  .rounds_to_even = 64};
  m = emit_kit(&all, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(count_ops(&m, SPV_OpExecutionMode, 0, 0), 3);
  make_float(VYRE_TYPE_F64);
  m = emit_kit(&all, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(count_ops(&m, SPV_OpExecutionMode, 0, 0), 3);
  CHECK_U64(
      count_ops(&m, SPV_OpExecutionMode, 2, SPV_EXECUTION_MODE_RoundingModeRTE),
      1);
  vyre_arena_deinit(&arena);
}

TEST(unreachable_code_is_left_out) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  kit_begin(&t, "dead", 1, 1, 1);
  uint32_t y = kit_buffer(&t, "y", VYRE_MEMORY_GLOBAL, 4, true, 4);
  vyre__val zero = kit_u32(&t, 0), one = kit_u32(&t, 1);
  vyre__val is = kit_b(&t, VYRE__LIR_EQ, kit_local(&t, 0), zero);
  kit_mark(&t, VYRE__LIR_LOOP);
  kit_if(&t, is, 0);
  kit_mark(&t, VYRE__LIR_BREAK);
  kit_if(&t, is, 0); /* behind a jump */
  kit_store(&t, y, one, one, 0);
  kit_mark(&t, VYRE__LIR_ELSE);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_ELSE);
  kit_store(&t, y, zero, one, 0);
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, y, one, one, 0); /* nobody comes here */
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  kit_mark(&t, VYRE__LIR_LOOP); /* that nobody leaves but by EXIT */
  kit_mark(&t, VYRE__LIR_EXIT);
  kit_mark(&t, VYRE__LIR_STEP);
  kit_mark(&t, VYRE__LIR_END);
  kit_store(&t, y, one, one, 0);
  kit_end(&t);
  vyre__spirv_module m = emit_kit(NULL, &arena);
  CHECK(is_valid(&m));
  CHECK_U64(count_ops(&m, SPV_OpStore, 0, 0), 1);
  vyre_arena_deinit(&arena);
}

/* --- refusals -------------------------------------------------------------------------------*/

TEST(refuses_what_the_target_has_not) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre__spirv_module m;
  for (int i = 0; i < 4; i++) {
    vyre_status st = {0};
    if (i < 2) {
      make_small();
      t.buffers[0].width = t.buffers[0].unit = i == 0 ? 1 : 2;
    } else {
      make_float(VYRE_TYPE_F64);
    }
    const vyre__spirv_target target = {.float64 = i == 2, .int64 = i == 3};
    static const char *const says[] = {"8-bit", "16-bit", "64-bit", "f64"};
    CHECK_FAILS(vyre__emit_spirv(&t.k, &target, &arena, &m, &st), st,
                VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    CHECK_HAS(st.fix, "take a device that has it"); /* who writes kernels can */
    CHECK_HAS(st.message, says[i]);
    CHECK(!m.words);
  }
  vyre_arena_deinit(&arena);
}

TEST(refuses_what_has_no_spelling) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre__spirv_module m;
  vyre_status st = {0};
  make_float(VYRE_TYPE_F32);
  t.code[2].op = VYRE__LIR_TOTAL_DIV_U;
  CHECK_FAILS(vyre__emit_spirv(&t.k, NULL, &arena, &m, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "total_div_u");
  vyre_arena_deinit(&arena);
}

/* Words that are not ours are told, whatever they are. */
TEST(printer_takes_no_wrong_words) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  make_small();
  vyre__spirv_module m = emit_kit(&(vyre__spirv_target){.names = true}, &arena);
  uint32_t *words = malloc(m.word_count * 4);
  CHECK(words);
  uint64_t seed = 99;
  for (size_t n = 0; n < 3000; n++) {
    vyre_status st = {0};
    text out = {0};
    memcpy(words, m.words, m.word_count * 4);
    size_t at = random_below(&seed, m.word_count);
    words[at] = n % 3 ? words[at] ^ 1u << random_below(&seed, 32)
                      : (uint32_t)random_next(&seed);
    size_t count = n % 5 ? m.word_count : random_below(&seed, m.word_count);
    vyre_code code = vyre__spirv_print(words, count, (vyre_allocator){0},
                                       (vyre_writer){text_take, &out}, &st);
    CHECK(code == VYRE_OK || (code == VYRE_INVALID_ARGUMENT && st.fix[0]));
    free(out.bytes);
  }
  vyre_status st = {0};
  CHECK_FAILS(vyre__spirv_print(m.words, m.word_count, (vyre_allocator){0},
                                (vyre_writer){refuse, NULL}, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED);
  free(words);
  vyre_arena_deinit(&arena);
}

static vyre_code sweep_emit(vyre_allocator allocator, vyre_status *st) {
  vyre_arena arena;
  vyre__spirv_module m;
  text out = {0};
  vyre_arena_init(&arena, allocator);
  vyre_code code = vyre__emit_spirv(&t.k, &(vyre__spirv_target){.names = true},
                                    &arena, &m, st);
  if (code == VYRE_OK) {
    code = vyre__spirv_print(m.words, m.word_count, allocator,
                             (vyre_writer){text_take, &out}, st);
  }
  free(out.bytes);
  vyre_arena_deinit(&arena);
  return code;
}

TEST(no_memory_is_told) {
  make_small();
  CHECK(sweep_allocations(sweep_emit) > 0);
}

/* The C library's idea of numbers is none of ours. */
TEST(locales_change_nothing) {
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  make_float(VYRE_TYPE_F32);
  vyre__spirv_module one = emit_kit(NULL, &arena);
  unsigned tried = 0;
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8",
                                      "tr_TR.UTF-8"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (!setlocale(LC_ALL, names[i])) continue;
    tried++;
    vyre__spirv_module two = emit_kit(NULL, &arena);
    text out = {0};
    vyre_status st = {0};
    CHECK_OK(vyre__spirv_print(two.words, two.word_count, (vyre_allocator){0},
                               (vyre_writer){text_take, &out}, &st),
             st);
    bool has = strstr(out.bytes, " 0x1.4p+1\n") != NULL;
    free(out.bytes);
    setlocale(LC_ALL, "C");
    CHECK(same_words(&one, &two) && has);
  }
  CHECK(tried > 0);
  vyre_arena_deinit(&arena);
}

TEST_MAIN(TEST_ENTRY(numbers_are_those_of_the_specification),
          TEST_ENTRY(tells_where_things_are),
          TEST_ENTRY(uniforms_are_packed_where_they_are_read_at_known_places),
          TEST_ENTRY(fuel_can_be_left_out_where_the_device_ends_loops),
          TEST_ENTRY(the_workgroup_is_made_of_specialization_constants),
          TEST_ENTRY(capabilities_are_those_that_are_used),
          TEST_ENTRY(barriers_and_atomics_follow_the_memory_model),
          TEST_ENTRY(barriers_name_memory_of_both_sides),
          TEST_ENTRY(what_is_added_to_is_loaded_last),
          TEST_ENTRY(an_access_is_asked_about_once),
          TEST_ENTRY(shared_memory_is_zeroed_as_the_target_can),
          TEST_ENTRY(loops_that_may_be_ended_are_looked_at),
          TEST_ENTRY(float_modes_are_those_that_hold),
          TEST_ENTRY(unreachable_code_is_left_out),
          TEST_ENTRY(refuses_what_the_target_has_not),
          TEST_ENTRY(refuses_what_has_no_spelling),
          TEST_ENTRY(printer_takes_no_wrong_words),
          TEST_ENTRY(no_memory_is_told), TEST_ENTRY(locales_change_nothing),
          TEST_ENTRY(text_says_what_the_module_says),
          TEST_ENTRY(examples_are_valid), TEST_ENTRY(random_programs_are_valid))
