/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `vyre emit --to asm` uses vectors of the requested width. The
 * test counts the instructions that do a kernel's main work, with their lanes,
 * so that code that runs invocations one by one fails. */
#include <ctype.h>

#include "vyre/vyre.h"

#include "backend/cpu/jit/host_cpu.h"
#include "support/check.h"
#include "support/text.h"

typedef enum job_kind {
  PRODUCTS, /* of floats, with or without an addition */
  COMPARES, /* equality of integers */
} job_kind;

static const struct {
  const char *file;
  job_kind work;
  unsigned min_count; /* such operations per invocation in the innermost loop */
} kernels[] = {
    {"mandelbrot", PRODUCTS, 3},
    {"matmul_tiled", PRODUCTS, 1},
    {"match", COMPARES, 1},
};

typedef struct counts {
  unsigned packed, scalar;       /* number of instructions */
  unsigned lanes;                /* sum over the packed ones */
  unsigned max_bytes, max_lanes; /* of the widest one */
} counts;

static bool begins(const char **at, const char *word) {
  size_t length = strlen(word);
  if (strncmp(*at, word, length) != 0) return false;
  *at += length;
  return true;
}

/* Returns the bytes of an element and sets *is_packed; 0: another
 * instruction. */
static unsigned element_of(const char *mnemonic, job_kind work,
                           bool *is_packed) {
  const char *at = mnemonic;
  (void)begins(&at, "v");
  *is_packed = true;
  if (work == COMPARES) {
    if (!begins(&at, "pcmpeq")) return 0;
    return *at == 'b' ? 1 : *at == 'w' ? 2 : *at == 'd' ? 4 : 8;
  }
  if (!begins(&at, "mul") && !begins(&at, "fmadd") && !begins(&at, "fnmadd")) {
    return 0;
  }
  while (isdigit((unsigned char)*at)) at++;
  *is_packed = *at++ == 'p';
  return *at == 's' ? 4 : *at == 'd' ? 8 : 0;
}

static unsigned register_of(const char *line) {
  return strstr(line, "%zmm")   ? 64
         : strstr(line, "%ymm") ? 32
         : strstr(line, "%xmm") ? 16
                                : 0;
}

static void count_line(const char *line, job_kind work, counts *to) {
  char mnemonic[32] = {0};
  bool is_packed;
  while (*line == '\t' || *line == ' ') line++;
  for (size_t i = 0; i + 1 < sizeof mnemonic && isalnum((unsigned char)line[i]);
       i++) {
    mnemonic[i] = line[i];
  }
  unsigned element = element_of(mnemonic, work, &is_packed);
  unsigned bytes = register_of(line);
  if (element == 0 || bytes == 0) return;
  to->packed += is_packed;
  to->scalar += !is_packed;
  if (!is_packed) return;
  to->lanes += bytes / element;
  if (bytes > to->max_bytes) to->max_bytes = bytes;
  if (bytes / element > to->max_lanes) to->max_lanes = bytes / element;
}

static counts count_all(char *text, job_kind work) {
  counts made = {0};
  for (char *line = text, *end; *line; line = end) {
    end = line + strcspn(line, "\n");
    if (*end) *end++ = '\0';
    count_line(line, work, &made);
  }
  return made;
}

/* --- code ------------------------------------------------------------------*/

static counts assembly_of(const char *file, job_kind work, uint32_t width) {
  char path[512], text[8192];
  snprintf(path, sizeof path, "%s/../bench/cpu/%s.vyre", VYRE_EXAMPLES_DIR,
           file);
  FILE *from = fopen(path, "rb");
  CHECK(from);
  size_t length = fread(text, 1, sizeof text, from);
  fclose(from);
  CHECK(length < sizeof text);
  char own[32];
  snprintf(own, sizeof own, "cpu.width=%u", (unsigned)width);
  const vyre_context_options options = {.cache_directory = "",
                                        .backend_options = own};
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  vyre_module *module = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  growing_text code = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "cpu", &device, &st), st);
  CHECK_OK(vyre_module_parse(text, length, file, (vyre_allocator){0}, &module,
                             NULL, &st),
           st);
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  CHECK_OK(vyre_pipeline_print(pipeline, "asm", growing_writer(&code), &st),
           st);
  counts made = count_all(code.bytes, work);
  free(code.bytes);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  vyre_device_release(device);
  vyre_context_release(context);
  return made;
}

TEST(code_is_as_wide_as_it_says) {
  static const uint32_t widths[] = {4, 8, 16};
  const vyre__host_cpu *machine = vyre__host_cpu_detect();
  for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
      uint32_t width = widths[w];
      uint32_t side = width < machine->lanes ? width : machine->lanes;
      counts c = assembly_of(kernels[k].file, kernels[k].work, width);
      /* Full registers, or as many lanes of smaller elements. */
      bool is_wide = c.max_bytes >= 4 * side || c.max_lanes >= side;
      bool good = c.lanes >= width * kernels[k].min_count &&
                  c.scalar <= c.packed / 4 && is_wide;
      printf(
          "    %s, width %2u: %u vector instructions of %u lanes together, "
          "up to %u bytes; %u scalar\n",
          kernels[k].file, (unsigned)width, c.packed, c.lanes, c.max_bytes,
          c.scalar);
      CHECK(good);
    }
  }
}

/* Makes sure that the count sees a difference. */
TEST(code_of_width_1_has_no_vectors) {
  for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
    counts c = assembly_of(kernels[k].file, kernels[k].work, 1);
    CHECK_U64(c.packed, 0);
    CHECK((c.scalar > 0) == (kernels[k].work == PRODUCTS));
  }
}

static const test_case all_cases[] = {
    TEST_ENTRY(code_is_as_wide_as_it_says),
    TEST_ENTRY(code_of_width_1_has_no_vectors)};

int main(int argc, char **argv) {
  if (!vyre__host_cpu_detect()->is_usable) {
    puts("skipped: device 'cpu' does not support this processor");
    return 77;
  }
  return run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                   argc > 1 ? argv[1] : NULL);
}
