/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/binary.h"

#include "vyre/module.h"

#include "ir/binary.h"
#include "ir/ir.h"
#include "support/check.h"
#include "support/parse.h"
#include "support/random_program.h"

typedef struct written {
  vyre_arena arena;
  const uint8_t *bytes;
  size_t length;
} written;

static written write_program(const vyre_program *program) {
  written out = {.bytes = NULL};
  vyre_status st = {0};
  CHECK_OK(vyre_program_write_binary(program, &out.arena, &out.bytes,
                                     &out.length, &st),
           st);
  return out;
}

static vyre_program *read_program(const uint8_t *bytes, size_t length) {
  vyre_status st = {0};
  vyre_program *program;
  CHECK_OK(vyre_program_read_binary(bytes, length, (vyre_allocator){0},
                                    &program, &st),
           st);
  return program;
}

static vyre_program *random_one(uint64_t seed) {
  vyre_status st = {0};
  vyre_program *program;
  CHECK_OK(random_program_make(seed, (vyre_allocator){0}, &program, &st), st);
  return program;
}

/* Checks that a program survives writing and reading, and that writing it
 * again gives the same bytes, including names and locations. */
static void round_trip(const vyre_program *program) {
  written once = write_program(program);
  vyre_program *again = read_program(once.bytes, once.length);
  CHECK(vyre_program_equal(program, again));
  CHECK_TEXT(vyre_program_name(again), vyre_program_name(program));
  vyre_hash128 a = vyre_program_fingerprint(program);
  vyre_hash128 b = vyre_program_fingerprint(again);
  CHECK(a.high == b.high && a.low == b.low);
  written twice = write_program(again);
  CHECK_U64(twice.length, once.length);
  CHECK(memcmp(twice.bytes, once.bytes, once.length) == 0);
  vyre_program_release(again);
  vyre_arena_deinit(&once.arena);
  vyre_arena_deinit(&twice.arena);
}

TEST(random_programs_survive) {
  for (uint64_t seed = 1; seed <= 2000; seed++) {
    vyre_program *program = random_one(seed);
    round_trip(program);
    vyre_program_release(program);
  }
}

TEST(choices_survive) {
  vyre_module *module = parse_module(
      "kernel k workgroup(1)\n"
      "buffer y : read_write i32[] @0;\n"
      "{ if (len(y) > 1) y[0] = y[1] > 2 ? y[1] : select(y[0] == 0, 1, 2); }");
  round_trip(vyre_module_kernel(module, 0));
  vyre_module_release(module);
}

TEST(a_list_of_buffers_survives) {
  vyre_buffer_decl buffers[] = {
      {.name = "a b", .binding = 3, .access = VYRE_ACCESS_WORKGROUP},
      {.name = "c", .hints = {.preferred_alignment = 7, .coalesce_axis = 2}}};
  vyre_program_desc desc = {
      .buffers = buffers, .buffer_count = 2, .workgroup = {4, 5, 6}};
  vyre_program *program;
  vyre_status st = {0};
  CHECK_OK(vyre_program_create(&desc, (vyre_allocator){0}, &program, &st), st);
  round_trip(program);
  vyre_program_release(program);
}

TEST(names_and_places_survive) {
  static const char text[] =
      "kernel k workgroup(4)\nbuffer y : read_write u32[] @0;\n{\n"
      "    let index = global_id.x;\n    y[index] = 1;\n}\n";
  vyre_status st = {0};
  vyre_module *module;
  CHECK_OK(vyre_module_parse(text, strlen(text), "k.vyre", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  written bytes = write_program(vyre_module_kernel(module, 0));
  vyre_program *again = read_program(bytes.bytes, bytes.length);
  CHECK_TEXT(again->file, "k.vyre");
  CHECK_TEXT(again->functions[0].name, "k");
  CHECK_TEXT(again->functions[0].locals[0].name, "index");
  bool found = false;
  for (uint32_t i = 1; i < again->node_count; i++) {
    if (again->nodes[i].op != VYRE__OP_LET) continue;
    vyre__source_loc place = vyre__source_loc_of(again, i);
    found = place.line == 4 && place.column > 0;
  }
  CHECK(found);
  vyre_program_release(again);
  vyre_module_release(module);
  vyre_arena_deinit(&bytes.arena);
}

/* Locations that do not fit into 4 bytes. */
TEST(large_source_locations_survive) {
  enum { BLANKS = 5000, LINES = 1100000 };
  static char text[LINES + BLANKS + 200];
  static const char head[] =
      "kernel k workgroup(4)\n"
      "buffer y : read_write u32[] @0;\n{\n";
  for (int in_a_line = 0; in_a_line < 2; in_a_line++) {
    size_t blanks = in_a_line ? BLANKS : LINES, at = sizeof head - 1;
    memcpy(text, head, at);
    memset(text + at, in_a_line ? ' ' : '\n', blanks);
    static const char end[] = "y[0] = 1;\n}\n";
    memcpy(text + at + blanks, end, sizeof end);
    vyre_module *module = parse_module(text);
    vyre_program *program = vyre_module_kernel(module, 0);
    vyre__source_loc place = {0, 0};
    for (uint32_t i = 1; i < program->node_count; i++) {
      if (program->nodes[i].op != VYRE__OP_STORE) continue;
      place = vyre__source_loc_of(program, i);
    }
    CHECK_U64(place.line, in_a_line ? 4 : 4 + LINES);
    CHECK_U64(place.column, in_a_line ? BLANKS + 1 : 1);
    round_trip(program);
    vyre_module_release(module);
  }
}

static void refused(const uint8_t *bytes, size_t length) {
  vyre_status st = {0};
  vyre_program *program = (vyre_program *)&st;
  CHECK_FAILS(vyre_program_read_binary(bytes, length, (vyre_allocator){0},
                                       &program, &st),
              st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK(program == NULL);
}

TEST(every_changed_byte_is_noticed) {
  static const uint8_t changes[] = {0x01, 0x80, 0xFF};
  vyre_program *program = random_one(17);
  written bytes = write_program(program);
  uint8_t *copy = malloc(bytes.length);
  for (size_t i = 0; i < bytes.length; i++) {
    for (int j = 0; j < 3; j++) {
      memcpy(copy, bytes.bytes, bytes.length);
      copy[i] ^= changes[j];
      refused(copy, bytes.length);
    }
  }
  free(copy);
  vyre_arena_deinit(&bytes.arena);
  vyre_program_release(program);
}

TEST(every_cut_is_noticed) {
  vyre_program *program = random_one(17);
  written bytes = write_program(program);
  uint8_t *longer = calloc(1, bytes.length + 8);
  memcpy(longer, bytes.bytes, bytes.length);
  for (size_t i = 0; i < bytes.length; i++) refused(bytes.bytes, i);
  refused(longer, bytes.length + 8);
  free(longer);
  vyre_arena_deinit(&bytes.arena);
  vyre_program_release(program);
}

static void put_u64(uint8_t *to, uint64_t value) {
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> (8 * i));
}

/* Corrects length and checksum, as an attacker could. */
static void correct_header(uint8_t *bytes, size_t length) {
  put_u64(bytes + VYRE__BINARY_LENGTH_AT, length);
  vyre_hash128 sum = vyre__binary_checksum(bytes + VYRE__BINARY_HEAD,
                                           length - VYRE__BINARY_HEAD);
  put_u64(bytes + VYRE__BINARY_CHECKSUM_AT, sum.low);
  put_u64(bytes + VYRE__BINARY_CHECKSUM_AT + 8, sum.high);
}

/* Returns true if the bytes are rejected with a fix, or are a program that is
 * written as the same bytes. */
static bool survives(const uint8_t *bytes, size_t length) {
  vyre_status st = {0};
  vyre_program *program;
  vyre_code code = vyre_program_read_binary(bytes, length, (vyre_allocator){0},
                                            &program, &st);
  if (code != VYRE_OK) {
    CHECK(code == VYRE_INVALID_PROGRAM && st.code == code && st.fix[0]);
    return false;
  }
  written again = write_program(program);
  CHECK_U64(again.length, length);
  CHECK(memcmp(again.bytes, bytes, length) == 0);
  vyre_arena_deinit(&again.arena);
  vyre_program_release(program);
  return true;
}

/* Returns the offset of the n-th section of bytes of the writer, from 0. */
static size_t section_at(const uint8_t *bytes, unsigned n) {
  size_t at = VYRE__BINARY_HEAD;
  for (unsigned i = 0; i < n; i++) {
    uint64_t length = 0;
    memcpy(&length, bytes + at + 8, sizeof length);
    at += VYRE__BINARY_SECTION_HEAD + (size_t)length;
  }
  return at;
}

TEST(a_change_with_a_right_checksum_is_refused_or_a_program) {
  uint64_t state = 5;
  size_t accepted = 0, tries = 0;
  for (uint64_t seed = 100; seed < 120; seed++) {
    vyre_program *program = random_one(seed);
    written bytes = write_program(program);
    uint8_t *copy = malloc(bytes.length);
    for (size_t i = VYRE__BINARY_HEAD; i < bytes.length; i++) {
      memcpy(copy, bytes.bytes, bytes.length);
      copy[i] = (uint8_t)(random_below(&state, 2)
                              ? copy[i] ^ (1u << random_below(&state, 8))
                              : random_below(&state, 256));
      correct_header(copy, bytes.length);
      accepted += survives(copy, bytes.length);
      tries++;
    }
    /* Without its clauses a queue kernel may be another program. */
    const size_t clauses = section_at(bytes.bytes, VYRE__SECTION_TEXTS);
    for (size_t cut = VYRE__BINARY_HEAD; cut < bytes.length; cut++) {
      if (cut == clauses) continue;
      memcpy(copy, bytes.bytes, bytes.length);
      correct_header(copy, cut);
      refused(copy, cut);
    }
    free(copy);
    vyre_arena_deinit(&bytes.arena);
    vyre_program_release(program);
  }
  CHECK(accepted > 0 && accepted < tries);
}

TEST(a_false_count_allocates_nothing) {
  vyre_program *program = random_one(1);
  written bytes = write_program(program);
  uint8_t *copy = malloc(bytes.length);
  for (size_t at = VYRE__BINARY_HEAD; at + 4 <= bytes.length; at++) {
    memcpy(copy, bytes.bytes, bytes.length);
    memset(copy + at, 0xFF, 4);
    correct_header(copy, bytes.length);
    test_heap heap = {.left = -1};
    vyre_status st = {0};
    vyre_program *got;
    size_t calls = 0;
    if (vyre_program_read_binary(copy, bytes.length, test_heap_allocator(&heap),
                                 &got, &st) == VYRE_OK) {
      vyre_program_release(got);
    } else {
      CHECK(st.code == VYRE_INVALID_PROGRAM);
      calls = heap.calls;
    }
    CHECK(calls < 64);
    CHECK_U64(heap.live_bytes, 0);
  }
  free(copy);
  vyre_arena_deinit(&bytes.arena);
  vyre_program_release(program);
}

/* --- sections and versions -------------------------------------------------*/

/* Files that version 1 of the writer wrote, with the fingerprints that the
 * library gave them then. */
static const struct {
  const char *file;
  vyre_hash128 fingerprint;
} version_1[] = {
    {"bare", {0xd971ca99a797f571, 0xa92b9e1e5a57241b}},
    {"random_01", {0x7445304f525e72b3, 0x02aae44cff43f5b6}},
    {"random_02", {0xd3345bc7a3d4f282, 0xafd8dab69b9dc6cf}},
    {"random_03", {0x5809bf8cada49241, 0xf87808e487bb9846}},
    {"random_05", {0x089131ab3183d374, 0x0facf82ca35e9213}},
    {"random_08", {0x833f37f55f3e076a, 0xca09387ce2ffe462}},
    {"random_13", {0x4a98934d0212094f, 0x071c9d4d42cbe5dd}},
    {"random_17", {0x0663a2b9315e70a0, 0xb782d0580685aac3}},
    {"random_23", {0xc656c40b794ff5f9, 0x4b5d5770e3727daa}},
    {"random_31", {0xc46ed6b87a89a80e, 0x8616853014449559}},
    {"random_40", {0x254f1c4bd2226bdc, 0x11102801e47c0900}},
    {"version_1", {0x7fb62b78511f3a50, 0xdec5db15ff25a4db}},
};

TEST(files_of_version_1_keep_their_fingerprints) {
  static uint8_t bytes[1 << 16];
  for (size_t i = 0; i < sizeof version_1 / sizeof version_1[0]; i++) {
    char path[512];
    snprintf(path, sizeof path, VYRE_TESTS_DIR "/corpus/binary/%s.bin",
             version_1[i].file);
    FILE *file = fopen(path, "rb");
    CHECK(file);
    size_t length = fread(bytes, 1, sizeof bytes, file);
    CHECK(fclose(file) == 0);
    CHECK_U64(bytes[VYRE__BINARY_MAGIC], 1);
    vyre_program *program = read_program(bytes, length);
    vyre_hash128 found = vyre_program_fingerprint(program);
    CHECK_U64(found.high, version_1[i].fingerprint.high);
    CHECK_U64(found.low, version_1[i].fingerprint.low);
    round_trip(program);
    vyre_program_release(program);
  }
}

/* Reads a copy of @p from with @p count bytes at @p at replaced by
 * @p with_count bytes. */
static vyre_code read_spliced(const written *from, size_t at, size_t count,
                              const uint8_t *with, size_t with_count,
                              vyre_program **out, vyre_status *st) {
  const size_t length = from->length - count + with_count;
  uint8_t *copy = malloc(length);
  memcpy(copy, from->bytes, at);
  memcpy(copy + at, with, with_count);
  memcpy(copy + at + with_count, from->bytes + at + count,
         from->length - at - count);
  correct_header(copy, length);
  vyre_code code =
      vyre_program_read_binary(copy, length, (vyre_allocator){0}, out, st);
  free(copy);
  return code;
}

static void splice_fails(const written *from, size_t at, size_t count,
                         const uint8_t *with, size_t with_count,
                         const char *message) {
  vyre_status st = {0};
  vyre_program *program;
  CHECK_FAILS(read_spliced(from, at, count, with, with_count, &program, &st),
              st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK(strstr(st.message, message));
}

TEST(unknown_sections_are_skipped_only_if_they_are_optional) {
  vyre_program *program = random_one(3), *again;
  written bytes = write_program(program);
  vyre_status st = {0};
  uint8_t extra[VYRE__BINARY_SECTION_HEAD + 3] = {
      0xE8, 3, 0, 0, VYRE__SECTION_OPTIONAL, 0, 0, 0, 3};
  CHECK_OK(
      read_spliced(&bytes, bytes.length, 0, extra, sizeof extra, &again, &st),
      st);
  CHECK(vyre_program_equal(program, again));
  vyre_program_release(again);
  extra[4] = 0;
  splice_fails(&bytes, bytes.length, 0, extra, sizeof extra, "section 1000");
  extra[4] = 2;
  splice_fails(&bytes, bytes.length, 0, extra, sizeof extra, "section 1000");
  vyre_arena_deinit(&bytes.arena);
  vyre_program_release(program);
}

TEST(the_source_travels_with_the_program) {
  static const char source[] = "kernel k workgroup(1)\n{ }\n";
  vyre_program *program = random_one(3), *again;
  written plain = write_program(program);
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, vyre_allocator_heap());
  const uint8_t *bytes;
  size_t length, found;
  CHECK_OK(vyre_program_write_binary_with_source(
               program, source, strlen(source), &arena, &bytes, &length, &st),
           st);
  const char *text = vyre_program_binary_source(bytes, length, &found);
  CHECK(text && found == strlen(source) && memcmp(text, source, found) == 0);
  CHECK_OK(vyre_program_read_binary(bytes, length, vyre_allocator_heap(),
                                    &again, &st),
           st);
  CHECK(vyre_program_equal(program, again));
  CHECK(vyre_program_fingerprint(program).low ==
        vyre_program_fingerprint(again).low);
  CHECK(!vyre_program_binary_source(plain.bytes, plain.length, &found));
  CHECK(found == 0 && !vyre_program_binary_source(NULL, 0, &found));
  /* No prefix is read past its end. */
  for (size_t cut = 0; cut < length; cut++) {
    uint8_t *part = malloc(cut + 1);
    CHECK(part);
    memcpy(part, bytes, cut);
    CHECK(!vyre_program_binary_source(part, cut, &found));
    free(part);
  }
  vyre_program_release(again);
  vyre_program_release(program);
  vyre_arena_deinit(&plain.arena);
  vyre_arena_deinit(&arena);
}

TEST(wrong_sections_are_refused) {
  static const uint8_t one = 1;
  vyre_program *program = random_one(3);
  written bytes = write_program(program);
  for (unsigned i = 0; i < VYRE__SECTION_TEXTS; i++) {
    size_t at = section_at(bytes.bytes, i),
           end = section_at(bytes.bytes, i + 1);
    splice_fails(&bytes, at, end - at, &one, 0, "section");
    splice_fails(&bytes, end, 0, bytes.bytes + at, end - at, "follows section");
    splice_fails(&bytes, at + 4, 1, &one, 1, "has flags 1");
    splice_fails(&bytes, at + 15, 1, &one, 1, "past the end");
  }
  CHECK_U64(section_at(bytes.bytes, VYRE__SECTION_TEXTS), bytes.length);
  vyre_arena_deinit(&bytes.arena);
  vyre_program_release(program);
}

static written sweep_bytes;

static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_program *program;
  vyre_code code = vyre_program_read_binary(
      sweep_bytes.bytes, sweep_bytes.length, allocator, &program, st);
  if (code != VYRE_OK) return code;
  vyre_arena arena;
  vyre_arena_init(&arena, allocator);
  const uint8_t *bytes;
  size_t length;
  code = vyre_program_write_binary(program, &arena, &bytes, &length, st);
  vyre_arena_deinit(&arena);
  vyre_program_release(program);
  return code;
}

TEST(reading_and_writing_survive_every_allocation_failure) {
  vyre_program *program = random_one(23);
  sweep_bytes = write_program(program);
  CHECK(sweep_allocations(sweep_scenario) > 10);
  vyre_arena_deinit(&sweep_bytes.arena);
  vyre_program_release(program);
}

TEST(null_arguments_are_refused) {
  vyre_program *program = random_one(1), *out;
  vyre_arena arena = {0};
  const uint8_t *bytes;
  size_t length;
  uint8_t byte = 0;
  CHECK(vyre_program_write_binary(NULL, &arena, &bytes, &length, NULL) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(vyre_program_write_binary(program, NULL, &bytes, &length, NULL) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(vyre_program_write_binary(program, &arena, NULL, &length, NULL) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(vyre_program_write_binary(program, &arena, &bytes, NULL, NULL) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(vyre_program_read_binary(NULL, 0, (vyre_allocator){0}, &out, NULL) ==
        VYRE_INVALID_ARGUMENT);
  CHECK(vyre_program_read_binary(&byte, 1, (vyre_allocator){0}, NULL, NULL) ==
        VYRE_INVALID_ARGUMENT);
  refused(&byte, 0);
  refused(&byte, 1);
  vyre_program_release(program);
}

TEST(the_binary_form_shows_in_its_first_bytes) {
  static const char text[] =
      "kernel k over(y)\nbuffer x : read u32[] @0;\n"
      "buffer y : write u32[] @1;\n{ y[global_id.x] = x[0]; }\n";
  vyre_arena arena = {0};
  vyre_status st = {0};
  const uint8_t *bytes;
  size_t length;
  vyre_module *module = parse_module(text);
  vyre_program *program = vyre_module_kernel(module, 0), *again;
  CHECK_U64(vyre_program_grid_buffer(program), 1);
  CHECK_OK(vyre_program_write_binary(program, &arena, &bytes, &length, &st),
           st);
  CHECK(vyre_program_is_binary(bytes, length));
  CHECK(vyre_program_is_binary(bytes, 4) && !vyre_program_is_binary(bytes, 3));
  CHECK(!vyre_program_is_binary(text, strlen(text)));
  CHECK(!vyre_program_is_binary(NULL, 0));
  CHECK_OK(
      vyre_program_read_binary(bytes, length, (vyre_allocator){0}, &again, &st),
      st);
  CHECK_U64(vyre_program_grid_buffer(again), 1);
  vyre_program_release(again);
  vyre_module_release(module);
  vyre_arena_deinit(&arena);
}

TEST_MAIN(TEST_ENTRY(the_binary_form_shows_in_its_first_bytes),
          TEST_ENTRY(random_programs_survive), TEST_ENTRY(choices_survive),
          TEST_ENTRY(a_list_of_buffers_survives),
          TEST_ENTRY(names_and_places_survive),
          TEST_ENTRY(large_source_locations_survive),
          TEST_ENTRY(every_changed_byte_is_noticed),
          TEST_ENTRY(every_cut_is_noticed),
          TEST_ENTRY(a_change_with_a_right_checksum_is_refused_or_a_program),
          TEST_ENTRY(a_false_count_allocates_nothing),
          TEST_ENTRY(reading_and_writing_survive_every_allocation_failure),
          TEST_ENTRY(files_of_version_1_keep_their_fingerprints),
          TEST_ENTRY(unknown_sections_are_skipped_only_if_they_are_optional),
          TEST_ENTRY(the_source_travels_with_the_program),
          TEST_ENTRY(wrong_sections_are_refused),
          TEST_ENTRY(null_arguments_are_refused))
