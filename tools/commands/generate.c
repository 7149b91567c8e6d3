/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre generate` */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "vyre/binding.h"
#include "vyre/device.h"
#include "vyre/pipeline.h"
#include "vyre/random_program.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "commands/generate_flags.h"
#include "plan/plan_json.h"

enum { PATH_SIZE = 1024, MAX_SIZE = 1000 };

typedef struct generate_flags {
  vyre_random_program_options options;
  uint64_t seed, size, count;
  const char *folder;
  const char *backend;
  bool run, json;
} generate_flags;

/* One generated program with its results. */
typedef struct product {
  const generate_flags *flags;
  uint64_t seed;
  vyre_random_program *made;
  vyre_arena arena;
  vyre_binding_plan plan;
  sink text, command;
  out_file *files;
  size_t file_count;
  uint64_t hash; /* hash of the outputs, if the program was run */
} product;

/* --- flags ---------------------------------------------------------------------------*/

static bool read_flags(int count, char **words, generate_flags *f,
                       problem *wrong) {
  vyre_random_program_options *o = &f->options;
  flag flags[] = {FLAG("--seed", &f->seed),
                  FLAG("--size", &f->size),
                  FLAG("--count", &f->count),
                  FLAG("--output", &f->folder),
                  FLAG("--run", &f->run),
                  FLAG("--backend", &f->backend),
                  FLAG("--math", &o->has_math),
                  FLAG("--no-f64", &o->no_f64),
                  FLAG("--no-int64", &o->no_int64),
                  FLAG("--no-narrow", &o->no_narrow),
                  FLAG("--no-shared", &o->no_shared),
                  FLAG("--no-barriers", &o->no_barriers),
                  FLAG("--no-grid-barriers", &o->no_grid_barriers),
                  FLAG("--no-atomics", &o->no_atomics),
                  FLAG("--no-atomics64", &o->no_atomics64),
                  FLAG("--only-add64", &o->only_add64),
                  FLAG("--no-out-of-range", &o->no_out_of_range),
                  FLAG("--no-loops", &o->no_loops),
                  FLAG("--no-functions", &o->no_functions)};
  arguments spec = {.command = "generate",
                    .flags = flags,
                    .flag_count = sizeof flags / sizeof flags[0]};
  f->count = 1;
  f->backend = "auto";
  if (!args_read(&spec, count, words, wrong)) return false;
  if (f->count == 0) {
    return problem_set(wrong, KIND_USAGE, "use --count 1 or more",
                       "--count is 0, so nothing would be generated");
  }
  if (f->size > MAX_SIZE) {
    return problem_set(wrong, KIND_USAGE, "use --size 1000 or less",
                       "--size is %llu; the maximum is %d",
                       (unsigned long long)f->size, MAX_SIZE);
  }
  o->statements = (uint32_t)f->size;
  return true;
}

/* --- running -------------------------------------------------------------------------*/

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes,
                           size_t length) {
  for (size_t i = 0; i < length; i++) {
    hash = (hash ^ bytes[i]) * UINT64_C(0x100000001B3);
  }
  return hash;
}

static vyre_code dispatch(product *p, vyre_pipeline *pipeline,
                          vyre_status *st) {
  vyre_dispatch_desc desc = {0};
  desc.inputs = vyre_random_program_inputs(p->made, &desc.input_count);
  const vyre_output *sizes =
      vyre_random_program_outputs(p->made, &desc.output_count);
  vyre_output *outputs =
      vyre_arena_alloc(&p->arena, (desc.output_count + 1) * sizeof *outputs, 0);
  bool fine = outputs != NULL;
  for (size_t i = 0; fine && i < desc.output_count; i++) {
    void *data = vyre_arena_alloc(&p->arena, sizes[i].size + 1, 0);
    outputs[i] = vyre_output_bytes(data, sizes[i].size);
    fine = data != NULL;
  }
  if (!fine) return VYRE_OUT_OF_MEMORY;
  desc.outputs = outputs;
  memcpy(desc.grid, vyre_random_program_grid(p->made), sizeof desc.grid);
  vyre_code code = vyre_dispatch(pipeline, &desc, st);
  p->hash = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; code == VYRE_OK && i < desc.output_count; i++) {
    p->hash = hash_bytes(p->hash, outputs[i].data, outputs[i].size);
  }
  return code;
}

/* Names the flags for features that the device lacks. They are not applied
 * silently, because they change the program and its hash. */
static void fix_unsupported(const vyre_device *device, problem *wrong) {
  vyre_random_program_options lacks = {0};
  sink flags = {0};
  vyre_random_program_options_fit(&lacks, vyre_device_get_caps(device));
  put_generate_flags(&lacks, &flags);
  if (!flags.failed && flags.length > 0) {
    problem_fix(wrong,
                "add%.*s, or use a device with all features: --backend ref",
                (int)flags.length, flags.data);
  }
  sink_deinit(&flags);
}

static bool run(product *p, problem *wrong) {
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  vyre_code code = vyre_device_open(NULL, p->flags->backend, &device, &st);
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(device, vyre_random_program_program(p->made),
                                 &options, &pipeline, NULL, &st);
  }
  bool is_unsupported = device && code == VYRE_UNSUPPORTED_FEATURE;
  if (code == VYRE_OK) code = dispatch(p, pipeline, &st);
  if (code != VYRE_OK && st.code != VYRE_OK) problem_from_status(wrong, &st);
  if (code != VYRE_OK && st.code == VYRE_OK) {
    problem_no_memory(wrong, "the outputs");
  }
  if (is_unsupported) fix_unsupported(device, wrong);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  return code == VYRE_OK;
}

/* --- files ---------------------------------------------------------------------------*/

/* Writes FOLDER/seed-N.END. */
static const char *path_of(product *p, const char *name, const char *end) {
  char *path = vyre_arena_alloc(&p->arena, PATH_SIZE, 1);
  sink text = {0};
  sink_format(&text, "%.700s/seed-%llu%s%.100s.%s", p->flags->folder,
              (unsigned long long)p->seed, name[0] ? "." : "", name, end);
  bool fine = path && !text.failed && text.length < PATH_SIZE;
  if (fine) memcpy(path, text.data, text.length);
  if (fine) path[text.length] = '\0';
  sink_deinit(&text);
  return fine ? path : NULL;
}

/* Writes a word quoted for a shell. */
static void put_word(const char *word, sink *out) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-=:";
  if (word[0] && strspn(word, plain) == strlen(word)) {
    sink_text(out, word);
    return;
  }
  sink_text(out, "'");
  for (; *word; word++) {
    if (*word == '\'') {
      sink_text(out, "'\\''");
    } else {
      sink_bytes(out, word, 1);
    }
  }
  sink_text(out, "'");
}

static bool add_file(product *p, const vyre_binding *b, problem *wrong) {
  size_t count;
  if (b->input_index != VYRE_NO_INDEX) {
    const vyre_input *in =
        &vyre_random_program_inputs(p->made, &count)[b->input_index];
    const char *path = path_of(p, b->name, "bin");
    if (!path) return problem_no_memory(wrong, "the name of a file");
    p->files[p->file_count++] =
        (out_file){.path = path, .body = in->data, .body_length = in->size};
    sink_format(&p->command, " --set %s=", b->name);
    put_word(path, &p->command);
  } else if (b->output_index != VYRE_NO_INDEX) {
    size_t size =
        vyre_random_program_outputs(p->made, &count)[b->output_index].size;
    size_t element = b->element_size ? b->element_size : 1;
    sink_format(&p->command, " --set %s=zeros:%zu", b->name, size / element);
  }
  return true;
}

/* Writes the files and prints the command that runs them. */
static bool list_files(product *p, problem *wrong) {
  vyre_status st = {0};
  const uint32_t *grid = vyre_random_program_grid(p->made);
  if (vyre_binding_plan_build(vyre_random_program_program(p->made), &p->arena,
                              &p->plan, &st) != VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  p->files = vyre_arena_alloc(
      &p->arena, (p->plan.binding_count + 1) * sizeof *p->files, 0);
  const char *path = path_of(p, "", "vyre");
  if (!p->files || !path) return problem_no_memory(wrong, "the files");
  p->files[p->file_count++] = (out_file){.path = path};
  sink_text(&p->command, "vyre run ");
  put_word(path, &p->command);
  sink_format(&p->command, " --grid %u,%u,%u", grid[0], grid[1], grid[2]);
  for (size_t i = 0; i < p->plan.binding_count; i++) {
    if (!add_file(p, &p->plan.bindings[i], wrong)) return false;
  }
  return true;
}

/* --- one program ---------------------------------------------------------------------*/

static void put_head(product *p) {
  const generate_flags *f = p->flags;
  const uint32_t *grid = vyre_random_program_grid(p->made);
  sink_format(&p->text, "// seed %llu", (unsigned long long)p->seed);
  if (f->size) {
    sink_format(&p->text, ", size %llu", (unsigned long long)f->size);
  }
  sink_format(&p->text, ", grid %u,%u,%u\n", grid[0], grid[1], grid[2]);
  if (!f->folder) return;
  sink_text(&p->text, "// ");
  sink_bytes(&p->text, p->command.data, p->command.length);
  sink_text(&p->text, "\n");
}

static bool make(product *p, problem *wrong) {
  vyre_random_program_options options = p->flags->options;
  vyre_status st = {0};
  options.seed = p->seed;
  if (vyre_random_program_create(&options, vyre_allocator_heap(), &p->made,
                                 &st) != VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  if (p->flags->folder && !list_files(p, wrong)) return false;
  put_head(p);
  bool fine = vyre_program_print(vyre_random_program_program(p->made),
                                 sink_writer(&p->text)) &&
              !p->text.failed && !p->command.failed;
  if (!fine) return problem_no_memory(wrong, "the program");
  if (p->file_count > 0) {
    p->files[0].body = p->text.data;
    p->files[0].body_length = p->text.length;
  }
  return !p->flags->run || run(p, wrong);
}

static void put_text(const product *p, sink *out) {
  const generate_flags *f = p->flags;
  if (f->run) {
    sink_format(out, "seed %llu: %016llx\n", (unsigned long long)p->seed,
                (unsigned long long)p->hash);
  }
  if (f->folder) {
    sink_bytes(out, p->command.data, p->command.length);
    sink_text(out, "\n");
  } else if (!f->run) {
    sink_bytes(out, p->text.data, p->text.length);
  }
}

static void put_json(const product *p, json_out *json) {
  const generate_flags *f = p->flags;
  char hash[20];
  sink text = {0};
  json_open(json, NULL, '{');
  json_u64(json, "seed", p->seed);
  json_open(json, "grid", '[');
  for (int i = 0; i < 3; i++) {
    json_u64(json, NULL, vyre_random_program_grid(p->made)[i]);
  }
  json_close(json, ']');
  if (f->run) {
    sink_format(&text, "%016llx", (unsigned long long)p->hash);
    if (!text.failed) {
      memcpy(hash, text.data, text.length);
      hash[text.length] = '\0';
      json_text(json, "hash", hash);
    }
  }
  if (f->folder) {
    json_text(json, "file", p->files[0].path);
    json_string(json, "command", p->command.data, p->command.length);
  } else if (!f->run) {
    json_string(json, "text", p->text.data, p->text.length);
  }
  json_close(json, '}');
  sink_deinit(&text);
}

static void finish(product *p) {
  vyre_random_program_release(p->made);
  sink_deinit(&p->text);
  sink_deinit(&p->command);
  vyre_arena_deinit(&p->arena);
}

/* --- all of them ---------------------------------------------------------------------*/

/* Generates and publishes one program: text at once, JSON at the end. */
static int one(const generate_flags *f, uint64_t seed, json_out *json) {
  product p = {.flags = f, .seed = seed};
  problem wrong = {0};
  sink out = {0};
  int code;
  if (!make(&p, &wrong)) {
    code = problem_report(&wrong, f->json);
  } else {
    if (f->json) {
      put_json(&p, json);
    } else {
      put_text(&p, &out);
    }
    code = publish_files(&out, p.files, p.file_count, f->json);
  }
  finish(&p);
  return code;
}

static bool make_folder(const generate_flags *f, problem *wrong) {
  if (!f->folder || mkdir(f->folder, 0777) == 0 || errno == EEXIST) return true;
  wrong->file = f->folder;
  return problem_set(wrong, KIND_WRITE, "name a folder that can be created",
                     "%s", strerror(errno));
}

int cmd_generate(int count, char **words, bool json) {
  generate_flags f = {.json = json};
  problem wrong = {0};
  sink out = {0};
  int code = EXIT_FINE;
  if (!read_flags(count, words, &f, &wrong) || !make_folder(&f, &wrong)) {
    return problem_report(&wrong, json);
  }
  json_out answer = {.out = &out};
  if (json) {
    answer = json_begin(&out);
    json_open(&answer, "programs", '[');
  }
  for (uint64_t i = 0; i < f.count && code == EXIT_FINE; i++) {
    code = one(&f, f.seed + i, &answer);
  }
  if (json && code == EXIT_FINE) {
    json_close(&answer, ']');
    json_end(&answer);
    return publish(&out, NULL, NULL, true);
  }
  sink_deinit(&out);
  return code;
}
