/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the file: its header, the launch block, the phases, and the function
 * that runs the full dispatch. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "codegen/c/internal.h"

enum {
  STACK_BYTES = 64 * 1024, /* beyond this, shared memory and value arrays go to
                            * scratch */
  PASSES = 3,              /* over a phase; uses are final after two */
};

static const char axes[] = "xyz";

static const char *word_type(uint8_t width) {
  switch (width) {
    case 1:
      return "uint8_t";
    case 2:
      return "uint16_t";
    case 8:
      return "uint64_t";
    default:
      return "uint32_t";
  }
}

static uint32_t type_bytes(vyre_type type) {
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64 ? 8 : 4;
}

/* --- arrays of a phase ---------------------------------------------------- */

/* Returns the element type of a value array. Compilers vectorise conditions
 * stored as words more often than bytes. */
static const char *array_type(vyre_type type) {
  return c_type(type == VYRE_TYPE_BOOL ? VYRE_TYPE_U32 : type);
}

/* Location of a workgroup array, which determines its declaration. */
typedef enum array_location {
  LOCATION_COUNT, /* only adds up the bytes */
  LOCATION_STACK,
  LOCATION_STRUCT, /* member of a struct */
  LOCATION_SCRATCH /* pointer to that member */
} array_location;

static void declare_array(c_emitter *e, array_location location,
                          const char *type, const char *prefix,
                          const char *name, uint64_t count, uint32_t bytes) {
  switch (location) {
    case LOCATION_COUNT:
      e->memory += count * bytes;
      break;
    case LOCATION_SCRATCH:
      C_LINE(e, "%s *const %s%s = memory->%s%s;\n", type, prefix, name, prefix,
             name);
      break;
    default:
      C_LINE(e, "%s %s%s[%llu];\n", type, prefix, name,
             (unsigned long long)count);
  }
}

static uint64_t array_count(const c_emitter *e, uint8_t storage) {
  uint32_t row = e->kernel->workgroup[0];
  if (storage == VYRE__STORAGE_GROUP) return e->r->invocations;
  return row < VYRE__STRIP ? row : VYRE__STRIP;
}

static uint64_t shared_count(const vyre__lir_buffer *buffer) {
  uint64_t bytes = (uint64_t)buffer->count * buffer->unit;
  uint64_t words = (bytes + buffer->width - 1) / buffer->width;
  return words ? words : 1;
}

/* Declares a table with its elements. */
static void declare_table(c_emitter *e, uint32_t index) {
  const vyre__lir_buffer *buffer = &e->kernel->buffers[index];
  const uint64_t count = shared_count(buffer);
  C_LINE(e, "static const %s %s[%llu] = {\n", word_type(buffer->width),
         e->buffer_names[index], (unsigned long long)count);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t bits = 0;
    memcpy(&bits, buffer->table + (size_t)i * buffer->width, buffer->width);
    C_LINE(e, "  0x%llxu%s,\n", (unsigned long long)bits,
           buffer->width == 8 ? "ll" : "");
  }
  C_LINE(e, "};\n");
}

static void declare_arrays(c_emitter *e, array_location location) {
  const vyre__lir_kernel *kernel = e->kernel;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_SHARED || !e->data_used[i]) continue;
    if (buffer->table) {
      if (location == LOCATION_STACK || location == LOCATION_SCRATCH) {
        declare_table(e, i);
      }
      continue;
    }
    declare_array(e, location, word_type(buffer->width), "", e->buffer_names[i],
                  shared_count(buffer), buffer->width);
  }
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    uint8_t storage = e->r->var_storage[i];
    if (!e->r->var_needed[i] || storage < VYRE__STORAGE_ARRAY) continue;
    vyre_type type = (vyre_type)kernel->vars[i].type;
    declare_array(e, location, array_type(type), "", e->var_names[i],
                  array_count(e, storage), type_bytes(type));
  }
  for (uint32_t at = e->r->begin; at < e->r->end; at++) {
    const vyre__inst_info *info = c_info(e, at);
    if (!info->is_needed || info->storage < VYRE__STORAGE_ARRAY) continue;
    vyre_type type = (vyre_type)c_inst(e, at)->type;
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)at);
    declare_array(e, location, array_type(type), "v", name,
                  array_count(e, info->storage), type_bytes(type));
  }
  if (e->r->done_storage != VYRE__STORAGE_LOCAL) {
    declare_array(e, location, "uint8_t", "", "done",
                  array_count(e, e->r->done_storage), 1);
  }
}

/* --- start of a phase ----------------------------------------------------- */

/* Declares local names for the launch block. Returns true if there are any. */
static bool declare_launch(c_emitter *e, const char *launch) {
  const vyre__lir_kernel *kernel = e->kernel;
  bool any = false;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &kernel->buffers[i];
    if (e->data_index[i] == VYRE_NO_INDEX || !e->data_used[i]) continue;
    any = true;
    C_LINE(e, "%s%s *const %s = %s->data[%u];\n",
           buffer->is_written ? "" : "const ", word_type(buffer->width),
           e->buffer_names[i], launch, (unsigned)e->data_index[i]);
  }
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    if (!e->len_used[i]) continue;
    any = true;
    C_LINE(e, "const uint32_t len_%s = %s->len[%u];\n", e->buffer_names[i],
           launch, (unsigned)e->data_index[i]);
  }
  for (unsigned i = 0; i < 3; i++) {
    if (!e->used.grid[i]) continue;
    any = true;
    C_LINE(e, "const uint32_t grid_%c = %s->grid[%u];\n", axes[i], launch, i);
  }
  for (uint32_t i = 0; i < kernel->grid_loop_count; i++) {
    if (!e->loop_used[i]) continue;
    any = true;
    C_LINE(e, "const uint64_t loop_%u = %s->loop_value[%u];\n", (unsigned)i,
           launch, (unsigned)i);
  }
  if (e->used.fuel) {
    any = true;
    /* Larger values are clamped: no invocation uses that much fuel. */
    C_LINE(e,
           "const uint32_t fuel = %s->fuel < UINT32_MAX ? "
           "(uint32_t)%s->fuel : UINT32_MAX;\n",
           launch, launch);
  }
  return any;
}

/* Declares group_x and so on; x is fastest. */
static void declare_group(c_emitter *e) {
  static const char *const texts[] = {"(uint32_t)(group % grid_x)",
                                      "(uint32_t)(group / grid_x % grid_y)",
                                      "(uint32_t)(group / grid_x / grid_y)"};
  for (unsigned i = 0; i < 3; i++) {
    if (!e->used.group[i] && !e->used.first[i]) continue;
    C_LINE(e, "const uint32_t group_%c = %s;\n", axes[i], texts[i]);
  }
  for (unsigned i = 0; i < 3; i++) {
    if (!e->used.first[i]) continue;
    C_LINE(e, "const uint64_t first_%c = (uint64_t)group_%c * %uu;\n", axes[i],
           axes[i], (unsigned)e->kernel->workgroup[i]);
  }
}

/* Marks the grid sizes that group ids need. */
static void need_grid(c_emitter *e) {
  bool x = e->used.group[0] || e->used.first[0];
  bool y = e->used.group[1] || e->used.first[1];
  bool z = e->used.group[2] || e->used.first[2];
  e->used.grid[0] |= x || y || z;
  e->used.grid[1] |= y || z;
}

static void declare_uniform(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  for (uint32_t i = 0; i < kernel->var_count; i++) {
    if (!e->r->var_needed[i] || e->r->var_storage[i] != VYRE__STORAGE_UNIFORM)
      continue;
    vyre_type type = (vyre_type)kernel->vars[i].type;
    C_LINE(e, "%s %s = %s;\n", c_type(type), e->var_names[i], c_zero(type));
  }
  for (uint32_t at = e->r->begin; at < e->r->end; at++) {
    const vyre__inst_info *info = c_info(e, at);
    if (!info->is_needed || info->storage != VYRE__STORAGE_BROADCAST) continue;
    vyre_type type = (vyre_type)c_inst(e, at)->type;
    C_LINE(e, "%s v%u = %s;\n", c_type(type), (unsigned)at, c_zero(type));
  }
}

static void clear_arrays(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_SHARED || !e->data_used[i]) continue;
    if (!buffer->needs_zero) continue;
    C_LINE(e, "memset(%s, 0, %llu * sizeof *%s);\n", e->buffer_names[i],
           (unsigned long long)shared_count(buffer), e->buffer_names[i]);
  }
  if (e->r->done_storage == VYRE__STORAGE_GROUP) {
    C_LINE(e, "memset(done, 0, %u);\n", (unsigned)e->r->invocations);
  }
}

/* --- phases --------------------------------------------------------------- */

static void print_steps(c_emitter *e, bool has_scratch);

/* Builds the regions of a range and runs silent passes, until it is known which
 * names are used. */
static vyre_code begin_range(c_emitter *e, vyre__lir_phase range) {
  const vyre__lir_kernel *kernel = e->kernel;
  bool was_silent = e->is_silent;
  VYRE_TRY(vyre__regions_build(kernel, range,
                               !e->options->no_strips && !e->is_host, e->arena,
                               e->r, e->st));
  VYRE_TRY(c_make_notes(e));
  e->is_silent = true;
  for (unsigned pass = 1; pass <= PASSES; pass++) {
    for (uint32_t i = 0; i < e->r->end - e->r->begin; i++) {
      c_note *note = &e->notes[i];
      note->used_before = pass == 1 || note->used_now;
      note->used_now = false;
    }
    memset(&e->used, 0, sizeof e->used);
    memset(e->len_used, 0, kernel->buffer_count * sizeof *e->len_used);
    memset(e->data_used, 0, kernel->buffer_count * sizeof *e->data_used);
    memset(e->loop_used, 0, kernel->grid_loop_count * sizeof *e->loop_used);
    e->is_last = pass == PASSES;
    e->line = 0;
    c_regions(e, e->r->first);
    if (e->is_host) print_steps(e, false);
  }
  e->is_last = false;
  e->is_silent = was_silent;
  e->line = 0;
  e->memory = 0;
  declare_arrays(e, LOCATION_COUNT);
  return VYRE_OK;
}

static void phase_head(c_emitter *e) {
  C_PRINT(e, "int %s_phase%u(const %s_launch *launch, uint64_t first_group,\n",
          e->name, (unsigned)e->phase, e->name);
  C_PRINT(e, "    uint64_t group_count, void *scratch)");
}

static vyre_code print_phase(c_emitter *e, uint32_t phase) {
  e->phase = phase;
  e->is_host = false;
  VYRE_TRY(begin_range(e, e->kernel->phases[phase]));
  need_grid(e);
  bool on_stack = e->memory <= STACK_BYTES;
  if (!on_stack) {
    C_PRINT(e, "typedef struct {\n");
    e->indent = 1;
    declare_arrays(e, LOCATION_STRUCT);
    C_PRINT(e, "} %s_memory%u;\n\n", e->name, (unsigned)phase);
  }
  phase_head(e);
  C_PRINT(e, " {\n");
  e->indent = 1;
  if (!declare_launch(e, "launch")) C_PRINT(e, "  (void)launch;\n");
  if (on_stack) {
    C_PRINT(e, "  (void)scratch;\n");
    declare_arrays(e, LOCATION_STACK);
  } else {
    C_PRINT(e, "  %s_memory%u *const memory = scratch;\n", e->name,
            (unsigned)phase);
    declare_arrays(e, LOCATION_SCRATCH);
  }
  C_PRINT(e,
          "  for (uint64_t group = first_group; group - first_group < "
          "group_count; group++) {\n");
  e->indent = 2;
  declare_group(e);
  clear_arrays(e);
  declare_uniform(e);
  c_regions(e, e->r->first);
  if (e->used.next_group) C_PRINT(e, "next_group:;\n");
  C_PRINT(e, "  }\n  return 0;\n}\n\n");
  return VYRE_OK;
}

/* --- the full dispatch ---------------------------------------------------- */

typedef struct loop_operator {
  const char *test; /* between variable and bound */
  const char *stop; /* between distance and step: ends the loop */
  const char *next;
} loop_operator;

static const loop_operator loop_operators[] = {
    [VYRE__LOOP_LT] = {"<", "<=", "+="},
    [VYRE__LOOP_LE] = {"<=", "<", "+="},
    [VYRE__LOOP_GT] = {">", "<=", "-="},
    [VYRE__LOOP_GE] = {">=", "<", "-="},
};

/* Opens a grid loop. The variable never wraps: the loop ends before a step past
 * the bound. */
static void open_grid_loop(c_emitter *e, const vyre__lir_step *step) {
  const char *type = c_type((vyre_type)step->type);
  unsigned loop = step->loop;
  bool is_signed = step->type == VYRE_TYPE_I32 || step->type == VYRE_TYPE_I64;
  const char *cast = "";
  if (is_signed) cast = step->type == VYRE_TYPE_I64 ? "(int64_t)" : "(int32_t)";
  C_LINE(e, "const %s loop_bound_%u = ", type, loop);
  c_value(e, step->bound, C_TOP);
  C_PRINT(e, ";\n");
  C_LINE(e, "%s loop_at_%u = ", type, loop);
  c_value(e, step->first, C_TOP);
  C_PRINT(e, ";\n");
  C_LINE(e, "while (%sloop_at_%u %s %sloop_bound_%u) {\n", cast, loop,
         loop_operators[step->loop_kind].test, cast, loop);
  e->indent++;
  C_LINE(e, "here.loop_value[%u] = loop_at_%u;\n", loop, loop);
}

static void close_grid_loop(c_emitter *e, const vyre__lir_step *step) {
  const loop_operator *words = &loop_operators[step->loop_kind];
  bool wide = step->type == VYRE_TYPE_U64 || step->type == VYRE_TYPE_I64;
  const char *end = wide ? "ull" : "u";
  unsigned loop = step->loop;
  bool up = words->next[0] == '+';
  C_LINE(e, "if (loop_%s_%u - loop_%s_%u %s %llu%s) break;\n",
         up ? "bound" : "at", loop, up ? "at" : "bound", loop, words->stop,
         (unsigned long long)step->step, end);
  C_LINE(e, "loop_at_%u %s %llu%s;\n", loop, words->next,
         (unsigned long long)step->step, end);
  e->indent--;
  C_LINE(e, "}\n");
}

static const vyre__lir_step *step_of_loop(const c_emitter *e, uint32_t loop) {
  for (uint32_t i = 0; i < e->kernel->step_count; i++) {
    const vyre__lir_step *step = &e->kernel->steps[i];
    if (step->kind == VYRE__STEP_FOR && step->loop == loop) return step;
  }
  return NULL;
}

/* Finds the grid loop that each host value depends on; the value is computed in
 * each of its iterations. Inner loops have higher indices. */
static bool find_host_levels(c_emitter *e) {
  const vyre__lir_phase host = e->kernel->host;
  e->host_level = 0;
  e->host_levels = vyre__arena_array(e->arena, host.end - host.begin,
                                     sizeof *e->host_levels);
  if (!e->host_levels) return false;
  for (uint32_t at = host.begin; at < host.end; at++) {
    const vyre__lir_inst *inst = c_inst(e, at);
    uint32_t level = inst->op == VYRE__LIR_LOOP_VALUE ? inst->aux + 1 : 0;
    for (unsigned k = 0; k < vyre__lir_ops[inst->op].operands; k++) {
      if (inst->v[k] < host.begin) continue; /* absent */
      uint32_t of = e->host_levels[inst->v[k] - host.begin];
      if (of > level) level = of;
    }
    e->host_levels[at - host.begin] = level;
  }
  return true;
}

static void print_steps(c_emitter *e, bool has_scratch) {
  for (uint32_t i = 0; i < e->kernel->step_count; i++) {
    const vyre__lir_step *step = &e->kernel->steps[i];
    if (step->kind == VYRE__STEP_FOR) {
      C_LINE(e, "{\n");
      e->indent++;
      open_grid_loop(e, step);
      e->host_level = step->loop + 1;
      c_regions(e, e->r->first);
      e->host_level = 0;
    } else if (step->kind == VYRE__STEP_END_FOR) {
      const vyre__lir_step *begin = step_of_loop(e, step->loop);
      if (begin) close_grid_loop(e, begin);
      e->indent--;
      C_LINE(e, "}\n");
    } else {
      C_LINE(e, "if (%s_phase%u(&here, 0, groups, %s)) return 1;\n", e->name,
             (unsigned)step->phase, has_scratch ? "&memory" : "NULL");
    }
  }
}

/* Prints the limits of a launch. Ids, indices of halves and indices of the
 * spill buffer have 32 bits, and bounds proofs rely on declared lengths. A
 * launch that exceeds them would leave its buffers. */
static void print_launch_checks(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  C_PRINT(e,
          "  if (here.grid[2] > 1 &&\n"
          "      (uint64_t)here.grid[0] * here.grid[1] > UINT64_MAX / "
          "here.grid[2])\n"
          "    return 2; /* groups of 64 bits */\n");
  for (unsigned i = 0; i < 3; i++) {
    uint32_t max = vyre__lir_max_groups(kernel, i);
    if (max == UINT32_MAX) continue;
    C_PRINT(e, "  if (here.grid[%u] > %uu) return 2; /* ids of 32 bits */\n", i,
            (unsigned)max);
  }
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &kernel->buffers[i];
    uint32_t max = vyre__lir_max_elements(buffer);
    if (buffer->kind == VYRE_MEMORY_SHARED) continue;
    if (buffer->count) {
      C_PRINT(e,
              "  if (here.len[%u] < %uu) return 2; /* %s is of that many */\n",
              (unsigned)e->data_index[i], (unsigned)buffer->count,
              e->buffer_names[i]);
    }
    if (max == UINT32_MAX) continue;
    C_PRINT(e,
            "  if (here.len[%u] > %uu) return 2; /* it is used by halves */\n",
            (unsigned)e->data_index[i], (unsigned)max);
  }
  if (kernel->spill_buffer == VYRE_NO_INDEX) return;
  unsigned index = e->data_index[kernel->spill_buffer];
  unsigned long long words =
      (unsigned long long)kernel->spill_words * vyre__lir_group_size(kernel);
  C_PRINT(e,
          "  if ((uint64_t)here.grid[0] * here.grid[1] > here.len[%u] / "
          "%lluull ||\n"
          "      groups > here.len[%u] / %lluull)\n"
          "    return 2; /* %s keeps %u words of an invocation */\n",
          index, words, index, words, e->buffer_names[kernel->spill_buffer],
          (unsigned)kernel->spill_words);
}

static bool is_loaded(const vyre__lir_kernel *kernel, uint32_t buffer) {
  for (uint32_t at = 1; at < kernel->count; at++) {
    const vyre__lir_inst *inst = &kernel->code[at];
    if (inst->op == VYRE__LIR_LOAD && inst->aux == buffer) return true;
  }
  return false;
}

/* Prints copies of uniforms, which are passed to the phases. All loads then
 * agree, even if another thread changes the caller's memory. */
static void print_uniforms(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &kernel->buffers[i];
    if (buffer->kind != VYRE_MEMORY_UNIFORM || !is_loaded(kernel, i)) continue;
    unsigned index = e->data_index[i];
    bytes += shared_count(buffer) * buffer->width;
    C_PRINT(e,
            "  %s%s uniform_%u[%llu];\n"
            "  memcpy(uniform_%u, here.data[%u], sizeof uniform_%u);\n"
            "  here.data[%u] = uniform_%u;\n",
            bytes > STACK_BYTES ? "static _Thread_local " : "",
            word_type(buffer->width), index,
            (unsigned long long)shared_count(buffer), index, index, index,
            index, index);
  }
}

static vyre_code print_dispatch(c_emitter *e, const bool *needs_scratch) {
  const vyre__lir_kernel *kernel = e->kernel;
  bool has_host = kernel->host.begin < kernel->host.end;
  bool has_scratch = false;
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    has_scratch |= needs_scratch[i];
  }
  e->is_host = true;
  if (!find_host_levels(e)) {
    return vyre__no_memory(e->st, "codegen/c", "values of the host",
                           kernel->host.end - kernel->host.begin);
  }
  VYRE_TRY(begin_range(e, kernel->host));
  C_PRINT(e, "const uint64_t %s_scratch[%u] = {", e->name,
          (unsigned)kernel->phase_count);
  for (uint32_t i = 0; i < kernel->phase_count; i++) {
    if (i) C_PRINT(e, ", ");
    if (needs_scratch[i]) {
      C_PRINT(e, "sizeof(%s_memory%u)", e->name, (unsigned)i);
    } else {
      C_PRINT(e, "0");
    }
  }
  C_PRINT(e, "};\n\nint %s(const %s_launch *launch) {\n", e->name, e->name);
  e->indent = 1;
  if (has_scratch) {
    C_PRINT(e,
            "  static _Thread_local union {\n    _Alignas(64) char first;\n");
    for (uint32_t i = 0; i < kernel->phase_count; i++) {
      if (!needs_scratch[i]) continue;
      C_PRINT(e, "    %s_memory%u phase%u;\n", e->name, (unsigned)i,
              (unsigned)i);
    }
    C_PRINT(e, "  } memory;\n");
  }
  C_PRINT(e, "  %s_launch here = *launch;\n", e->name);
  C_PRINT(e,
          "  const uint64_t groups =\n"
          "      (uint64_t)here.grid[0] * here.grid[1] * here.grid[2];\n");
  print_launch_checks(e);
  print_uniforms(e);
  if (has_host) {
    declare_launch(e, "(&here)");
    declare_uniform(e);
    c_regions(e, e->r->first);
  }
  print_steps(e, has_scratch);
  C_PRINT(e, "  return 0;\n}\n");
  e->is_host = false;
  return VYRE_OK;
}

/* --- the file ------------------------------------------------------------- */

static void print_head(c_emitter *e) {
  C_PRINT(e, "/* Kernel %s, written by vyre. Plain C11; compile it with\n",
          e->name);
  C_PRINT(
      e,
      " *\n"
      " *   cc -std=c11 -O3 -march=native -ffp-contract=off "
      "-fno-math-errno\n"
      " *      -fno-trapping-math -c FILE    (and link with -lm)\n"
      " *\n"
      " * Results have the same bits for every compiler, level and machine, "
      "as long\n"
      " * as nothing is contracted: -ffp-contract=off, and never "
      "-ffast-math. The other\n"
      " * two switches only help loops to become vectors. Each buffer is "
      "accessed as\n"
      " * integers of one width, so -fno-strict-aliasing is not needed. Two "
      "buffers may\n"
      " * share memory only if both are only read. */\n");
  C_PRINT(e,
          "#include <float.h>\n%s#include <stdbool.h>\n#include <stddef.h>\n"
          "#include <stdint.h>\n#include <string.h>\n\n",
          e->uses_math ? "#include <math.h>\n" : "");
  C_PRINT(e,
          "#if defined(__FAST_MATH__)\n"
          "#error \"compile without -ffast-math: results must have the same "
          "bits\"\n"
          "#endif\n"
          "#if FLT_EVAL_METHOD != 0\n"
          "#error \"floats must be computed in their own precision, e.g. "
          "-msse2 -mfpmath=sse\"\n"
          "#endif\n"
          "#if defined(__clang__) || !defined(__GNUC__)\n"
          "#pragma STDC FP_CONTRACT OFF\n"
          "#endif\n");
  C_PRINT(
      e,
      "#if defined(__GNUC__) /* a comparison may be always true, and negated "
      "*/\n"
      "#pragma GCC diagnostic ignored \"-Wtype-limits\"\n"
      "#pragma GCC diagnostic ignored \"-Wbool-operation\"\n"
      "#pragma GCC diagnostic ignored \"-Wlogical-not-parentheses\"\n"
      "#pragma GCC diagnostic ignored \"-Wparentheses\"\n"
      "#pragma GCC diagnostic ignored \"-Wunused-variable\"\n"
      "#pragma GCC diagnostic ignored \"-Wunused-but-set-variable\"\n"
      "#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
      "#endif\n");
  C_PRINT(
      e,
      "#if defined(__GNUC__) && !defined(__clang__)\n"
      "/* One loop over the invocations writes values that another reads. */\n"
      "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n"
      "#pragma GCC diagnostic ignored \"-Wbool-compare\"\n"
      "#pragma GCC diagnostic ignored \"-Wsign-compare\"\n"
      "/* GCC treats (int32_t)(u << n) like (int32_t)u << n. */\n"
      "#pragma GCC diagnostic ignored \"-Wshift-negative-value\"\n"
      "#pragma GCC diagnostic ignored \"-Wshift-overflow\"\n"
      "#endif\n");
  if (e->uses_rows) {
    C_PRINT(e,
            "#if defined(__clang__) /* two vectors at a time hide latency */\n"
            "#pragma clang diagnostic ignored \"-Wpass-failed\"\n"
            "#define VYRE_ROW \\\n"
            "  _Pragma(\"clang loop vectorize_width(8) interleave_count(2)\")\n"
            "#else\n"
            "#define VYRE_ROW\n"
            "#endif\n");
  }
  C_PRINT(e, "\n");
}

/* Documents loop_value for programs that call the phase functions
 * themselves. */
static void print_loop_values(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  if (kernel->grid_loop_count == 0) {
    C_PRINT(e, " loop_value is not used.");
    return;
  }
  C_PRINT(
      e,
      "\n *\n * %s() sets loop_value. A program that calls the phases itself "
      "keeps the order\n * of that function, finishes each phase for all "
      "workgroups before the next, and sets\n * loop_value[k] before each "
      "iteration of grid loop k to the bits of its variable,\n * "
      "zero-extended:",
      e->name);
  for (uint32_t i = 0; i < kernel->step_count; i++) {
    const vyre__lir_step *step = &kernel->steps[i];
    if (step->kind != VYRE__STEP_FOR) continue;
    uint32_t first = VYRE_NO_INDEX, last = 0;
    for (uint32_t k = i; k < kernel->step_count; k++) {
      const vyre__lir_step *inside = &kernel->steps[k];
      if (inside->kind == VYRE__STEP_RUN) last = inside->phase;
      if (inside->kind == VYRE__STEP_RUN && first > last) first = last;
      if (inside->kind == VYRE__STEP_END_FOR && inside->loop == step->loop) {
        break;
      }
    }
    C_PRINT(e, "\n *   loop_value[%u] %s, in phases %u to %u",
            (unsigned)step->loop, vyre_type_name((vyre_type)step->type),
            (unsigned)first, (unsigned)last);
  }
}

static void print_launch(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  unsigned data_index = e->data_count ? e->data_count : 1;
  unsigned loops = kernel->grid_loop_count ? kernel->grid_loop_count : 1;
  C_PRINT(e, "/* Arguments of a dispatch. Buffers, in this order:");
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    if (e->data_index[i] == VYRE_NO_INDEX) continue;
    const char *name = kernel->buffers[i].name;
    C_PRINT(e, "\n *   %u %s", (unsigned)e->data_index[i], e->buffer_names[i]);
    if (i != kernel->spill_buffer && strcmp(name, e->buffer_names[i]) != 0) {
      C_PRINT(e, " (%s in the kernel)", name);
    }
    uint32_t count = kernel->buffers[i].count;
    if (count) {
      C_PRINT(e, ", of %u element%s", (unsigned)count, count > 1 ? "s" : "");
    }
    if (i != kernel->spill_buffer) continue;
    C_PRINT(e, ", of %u words for each invocation",
            (unsigned)kernel->spill_words);
  }
  C_PRINT(e, "\n * each aligned to its elements.");
  print_loop_values(e);
  C_PRINT(e, " */\n");
  C_PRINT(e, "typedef struct {\n  void *data[%u];\n", data_index);
  C_PRINT(e, "  uint32_t len[%u]; /* in elements */\n", data_index);
  C_PRINT(e, "  uint32_t grid[3]; /* workgroups in x, y, z */\n");
  C_PRINT(e,
          "  uint64_t fuel;    /* loop iterations that an invocation may run "
          "*/\n");
  C_PRINT(e, "  uint64_t loop_value[%u];\n} %s_launch;\n\n", loops, e->name);
}

static void print_prototypes(c_emitter *e) {
  C_PRINT(e,
          "/* Runs workgroups [first_group, first_group + group_count), x "
          "fastest. Returns 0, or\n * 1 when out of fuel. scratch is memory "
          "for the call: %s_scratch[phase] bytes,\n * aligned to 64; NULL if "
          "that is 0. The arguments must be valid for %s(), and\n * uniforms "
          "must not change until all phases have ended: pass a copy. */\n",
          e->name, e->name);
  for (uint32_t i = 0; i < e->kernel->phase_count; i++) {
    e->phase = i;
    phase_head(e);
    C_PRINT(e, ";\n");
  }
  C_PRINT(e, "extern const uint64_t %s_scratch[%u];\n", e->name,
          (unsigned)e->kernel->phase_count);
  C_PRINT(
      e,
      "\n/* Runs the dispatch on the calling thread. Returns 0, 1 when out of "
      "fuel, or 2\n * without running anything: if ids do not fit in 32 bits "
      "or workgroups in 64, if a\n * buffer has fewer elements than declared "
      "or more than can be indexed, or if\n * values that live across grid "
      "barriers do not fit in memory. */\n");
  C_PRINT(e, "int %s(const %s_launch *launch);\n\n", e->name, e->name);
}

static vyre_code print_file(c_emitter *e, bool *needs_scratch) {
  vyre__arena_mark mark = vyre__arena_here(e->arena);
  print_head(e);
  c_print_helpers(e);
  print_launch(e);
  print_prototypes(e);
  for (uint32_t i = 0; i < e->kernel->phase_count; i++) {
    VYRE_TRY(print_phase(e, i));
    needs_scratch[i] = e->memory > STACK_BYTES;
    vyre__arena_rewind(e->arena, mark);
  }
  return print_dispatch(e, needs_scratch);
}

/* Rejects operations that a lowering pass should have replaced. */
static vyre_code check_operations(const vyre__lir_kernel *kernel,
                                  vyre_status *st) {
  for (uint32_t i = 1; i < kernel->count; i++) {
    const vyre__lir_info *info = &vyre__lir_ops[kernel->code[i].op];
    bool is_late = kernel->code[i].op != VYRE__LIR_TICK &&
                   !(info->flags & (VYRE__LIRF_HIGH | VYRE__LIRF_GRID_BARRIER));
    if (is_late) continue;
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        "run all lowering passes before printing C",
        "instruction %u of kernel '%.100s' is '%s', which has no C "
        "equivalent",
        (unsigned)i, kernel->name, info->text);
  }
  return VYRE_OK;
}

/* Rejects narrow elements that are accessed as words, as on devices without
 * narrow accesses. In C the last word may extend past the end of the
 * allocation. */
static vyre_code check_buffers(const vyre__lir_kernel *kernel,
                               vyre_status *st) {
  for (uint32_t i = 0; i < kernel->buffer_count; i++) {
    const vyre__lir_buffer *buffer = &kernel->buffers[i];
    if (buffer->kind == VYRE_MEMORY_SHARED) continue;
    if (buffer->unit >= buffer->width) continue;
    return VYRE_FAIL(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "remove no_narrow (--no-narrow): C has 8- and 16-bit accesses",
        "buffer '%.100s' of kernel '%.100s' has elements of %u byte%s, but "
        "accesses of %u bytes: they would leave a buffer whose size is not a "
        "multiple of that",
        buffer->name, kernel->name, buffer->unit, buffer->unit > 1 ? "s" : "",
        buffer->width);
  }
  return VYRE_OK;
}

static vyre_code emit(c_emitter *e) {
  const vyre__lir_kernel *kernel = e->kernel;
  size_t buffers = kernel->buffer_count, loops = kernel->grid_loop_count;
  VYRE_TRY(c_make_names(e));
  VYRE_TRY(
      vyre__find_deciding_loads(kernel, false, e->arena, &e->decides, e->st));
  e->len_used = vyre__arena_array(e->arena, buffers, sizeof *e->len_used);
  e->data_used = vyre__arena_array(e->arena, buffers, sizeof *e->data_used);
  e->loop_used = vyre__arena_array(e->arena, loops, sizeof *e->loop_used);
  bool *needs_scratch = vyre__arena_filled(e->arena, kernel->phase_count,
                                           sizeof *needs_scratch, 0);
  if (!e->len_used || !e->data_used || !e->loop_used || !needs_scratch) {
    return vyre__no_memory(e->st, "codegen/c", "buffers", buffers);
  }
  /* A silent pass finds the helpers in use. */
  vyre__arena_mark mark = vyre__arena_here(e->arena);
  e->is_silent = true;
  VYRE_TRY(print_file(e, needs_scratch));
  vyre__arena_rewind(e->arena, mark);
  e->is_silent = false;
  VYRE_TRY(print_file(e, needs_scratch));
  if (e->out.ok) return VYRE_OK;
  return VYRE_FAIL(e->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "return true from the writer for the full text",
                   "the writer failed while kernel '%.100s' was written",
                   kernel->name);
}

vyre_code vyre__emit_c(const vyre__lir_kernel *kernel,
                       const vyre__emit_c_options *options, vyre_writer writer,
                       vyre_status *st) {
  static const vyre__emit_c_options none;
  if (!options) options = &none;
  VYRE_TRY(check_operations(kernel, st));
  VYRE_TRY(check_buffers(kernel, st));
  vyre_arena arena;
  vyre_arena_init(&arena, options->allocator);
  vyre__regions regions = {0};
  c_emitter e = {.kernel = kernel,
                 .options = options,
                 .out = vyre__printer_make(writer),
                 .arena = &arena,
                 .st = st,
                 .r = &regions};
  vyre_code code = emit(&e);
  vyre_arena_deinit(&arena);
  return code;
}
