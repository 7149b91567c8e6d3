/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes one kernel as C code that is valid C11 and C++11 and needs only
 * vyre/vyre.h. */
#include <stdio.h>
#include <string.h>

#include "vyre/binary.h"

#include "commands/embed/internal.h"

/* Longest string literal that every compiler accepts. */
enum { MAX_LITERAL = 4000 };

typedef struct writer {
  const embedded *kernel;
  vyre_binding_plan plan;
  const vyre_buffer_decl *buffers;
  const char **names; /* parameter names by binding; NULL: shared buffer */
  const struct_list *structs;
  bool
      needs_grid; /* multi-dimensional workgroup: the caller must give a grid */
  sink *out;
} writer;

static bool has_memory(const vyre_binding *b) {
  return b->input_index != VYRE_NO_INDEX || b->output_index != VYRE_NO_INDEX;
}

/* Returns true for a uniform of one element, which is passed by value. */
static bool is_value(const writer *w, const vyre_binding *b) {
  const vyre_buffer_decl *buffer = &w->buffers[b->buffer_index];
  return b->role == VYRE_ROLE_UNIFORM && b->element_count == 1 &&
         b->output_index == VYRE_NO_INDEX &&
         (!buffer->type || buffer->structure);
}

/* Returns the C type of an element; of a vector, of a component. */
static const char *type_of(const writer *w, const vyre_binding *b) {
  const vyre_buffer_decl *buffer = &w->buffers[b->buffer_index];
  return buffer->structure ? struct_name(w->structs, buffer->structure)
                           : c_element_type(buffer->element);
}

/* --- the program ------------------------------------------------------------------*/

static void put_literal(const char *text, size_t length, sink *out) {
  while (length > 0) {
    const char *end = memchr(text, '\n', length);
    size_t line = end ? (size_t)(end - text) + 1 : length;
    sink_text(out, "    \"");
    for (size_t i = 0; i < line; i++) {
      unsigned char c = (unsigned char)text[i];
      if (c == '"' || c == '\\') {
        sink_format(out, "\\%c", c);
      } else if (c == '\n') {
        sink_text(out, "\\n");
      } else if (c < ' ' || c > '~' || c == '?') { /* also avoids trigraphs */
        sink_format(out, "\\%03o", c);
      } else {
        sink_bytes(out, text + i, 1);
      }
    }
    text += line;
    length -= line;
    sink_text(out, length ? "\"\n" : "\";\n");
  }
}

void put_bytes(const uint8_t *bytes, size_t length, sink *out) {
  for (size_t i = 0; i < length; i++) {
    sink_format(out, "%s%u,%s", i % 16 == 0 ? "    " : "", bytes[i],
                i % 16 == 15 || i + 1 == length ? "\n" : " ");
  }
  sink_text(out, "};\n");
}

/* Writes the text if it fits into one literal, because it is readable;
 * otherwise the binary form. */
static bool put_program(embedded *kernel, vyre_arena *arena, sink *out,
                        problem *wrong) {
  sink text = {0};
  vyre_status st = {0};
  const uint8_t *bytes = NULL;
  size_t length = 0;
  bool fine =
      vyre_program_print(kernel->program, sink_writer(&text)) && !text.failed;
  if (!fine) {
    sink_deinit(&text);
    return problem_no_memory(wrong, "the kernel");
  }
  kernel->is_text = text.length <= MAX_LITERAL;
  kernel->bytes = text.length;
  if (kernel->is_text) {
    sink_format(out, "static const char %s_source[] =\n", kernel->function);
    put_literal(text.data, text.length, out);
  } else {
    fine = vyre_program_write_binary(kernel->program, arena, &bytes, &length,
                                     &st) == VYRE_OK;
    if (!fine) problem_from_status(wrong, &st);
    kernel->bytes = length;
    sink_format(out, "static const uint8_t %s_source[] = {\n",
                kernel->function);
    if (fine) put_bytes(bytes, length, out);
  }
  sink_deinit(&text);
  return fine;
}

static void put_loader(const embedded *kernel, sink *out) {
  const char *name = kernel->function;
  sink_format(out,
              "\n/* Creates the program. The caller releases it with\n"
              " * vyre_program_release. */\n"
              "static inline vyre_code %s_program(\n"
              "    vyre_program **out, vyre_status *st) {\n",
              name);
  if (kernel->is_text) {
    sink_format(out,
                "  vyre_module *module;\n"
                "  vyre_code code = vyre_module_parse(\n"
                "      %s_source, sizeof %s_source - 1, \"%s\", "
                "vyre_allocator_heap(),\n"
                "      &module, NULL, st);\n"
                "  *out = vyre_program_retain(vyre_module_kernel(module, 0));\n"
                "  vyre_module_release(module);\n"
                "  return code;\n}\n",
                name, name, name);
  } else {
    sink_format(out,
                "  return vyre_program_read_binary(%s_source, sizeof "
                "%s_source,\n"
                "                                  vyre_allocator_heap(), out, "
                "st);\n}\n",
                name, name);
  }
  sink_format(
      out,
      "\n/* Compiled for a device, to dispatch it often. The caller's:\n"
      " * vyre_pipeline_release. */\n"
      "static inline vyre_code %s_pipeline(\n"
      "    vyre_device *device, vyre_pipeline **out, vyre_status *st) "
      "{\n"
      "  vyre_program *program;\n"
      "  vyre_code code = %s_program(&program, st);\n"
      "  *out = NULL;\n"
      "  if (code == VYRE_OK) {\n"
      "    code = vyre_pipeline_compile(device, program, NULL, out, "
      "NULL, st);\n"
      "  }\n"
      "  vyre_program_release(program);\n"
      "  return code;\n}\n",
      name, name);
}

/* Writes the functions of a kernel whose code is in a package. */
static void put_package_loader(const embedded *kernel, sink *out) {
  const char *name = kernel->function, *package = kernel->package;
  const char *text = vyre_program_name(kernel->program);
  sink_format(
      out,
      "/* Decodes the program. The caller releases it with\n"
      " * vyre_program_release. */\n"
      "static inline vyre_code %s_program(\n"
      "    vyre_program **out, vyre_status *st) {\n"
      "  vyre_package *package;\n"
      "  vyre_code code = %s_package(&package, st);\n"
      "  *out = NULL;\n"
      "  if (code == VYRE_OK) {\n"
      "    code = vyre_package_read_program(package, \"%s\", out, st);\n"
      "  }\n"
      "  vyre_package_release(package);\n"
      "  return code;\n}\n",
      name, package, text);
  sink_format(out,
              "\n/* Loaded for a device, to dispatch it often. The caller's:\n"
              " * vyre_pipeline_release. */\n"
              "static inline vyre_code %s_pipeline(\n"
              "    vyre_device *device, vyre_pipeline **out, vyre_status *st) "
              "{\n"
              "  static vyre_load_options zeroed;\n"
              "  vyre_load_options options = zeroed;\n"
              "  vyre_package *package;\n"
              "  vyre_code code = %s_package(&package, st);\n"
              "  *out = NULL;\n"
              "  options.may_compile = %s;\n",
              name, package, kernel->may_compile ? "true" : "false");
  sink_format(
      out,
      "  if (code == VYRE_OK) {\n"
      "    code = vyre_pipeline_load(device, package, \"%s\", &options, "
      "out, st);\n"
      "  }\n"
      "  vyre_package_release(package);\n"
      "  return code;\n}\n",
      text);
}

/* Returns the words of an exact sum, or the components of a vector; 1 for all
 * other elements. */
static unsigned words_of(const writer *w, const vyre_binding *b) {
  const vyre_buffer_decl *buffer = &w->buffers[b->buffer_index];
  const vyre_element element = buffer->element;
  if (buffer->type && !buffer->structure) {
    return vector_length(element, buffer->type);
  }
  const bool is_sum =
      element == VYRE_ELEMENT_SUM_F32 || element == VYRE_ELEMENT_SUM_F64;
  return is_sum ? vyre_element_size(element) / (unsigned)sizeof(uint64_t) : 1;
}

/* --- parameters -------------------------------------------------------------------*/

static void put_parameters(const writer *w) {
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    if (!w->names[i]) continue;
    const char *type = type_of(w, b);
    const char *constant = b->output_index == VYRE_NO_INDEX ? "const " : "";
    sink_text(w->out, ",\n    ");
    if (is_value(w, b)) {
      sink_format(w->out, "%s %s", type, w->names[i]);
    } else if (b->has_static_byte_len) {
      sink_format(w->out, "%s%s %s[%u]", constant, type, w->names[i],
                  b->element_count * words_of(w, b));
    } else {
      sink_format(w->out, "%s%s *%s, size_t %s_count", constant, type,
                  w->names[i], w->names[i]);
    }
  }
}

/* Writes the arguments of the call to the other function. */
static void put_arguments(const writer *w) {
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    if (!w->names[i]) continue;
    sink_format(w->out, ",\n        %s", w->names[i]);
    if (!is_value(w, b) && !b->has_static_byte_len) {
      sink_format(w->out, ", %s_count", w->names[i]);
    }
  }
}

static void put_size(const writer *w, size_t index) {
  const vyre_binding *b = &w->plan.bindings[index];
  const char *name = w->names[index];
  if (is_value(w, b)) {
    sink_format(w->out, "sizeof %s", name);
  } else if (b->has_static_byte_len) {
    sink_format(w->out, "%llu", (unsigned long long)b->static_byte_len);
  } else if (words_of(w, b) > 1) {
    sink_format(w->out,
                "%s_count < SIZE_MAX / %u\n"
                "      ? %s_count * %u : SIZE_MAX",
                name, (unsigned)b->element_size, name,
                (unsigned)b->element_size);
  } else if (b->element_size >
             1) { /* byte counts that do not fit are refused */
    sink_format(w->out,
                "%s_count < SIZE_MAX / sizeof *%s\n"
                "      ? %s_count * sizeof *%s : SIZE_MAX",
                name, name, name, name);
  } else {
    sink_format(w->out, "%s_count", name);
  }
}

/* Writes a comment that describes each parameter. */
static void put_comment(const writer *w) {
  const uint32_t *size = vyre_program_workgroup(w->kernel->program);
  uint32_t over = vyre_program_grid_buffer(w->kernel->program);
  sink_format(w->out, "\n/* %s, in workgroups of %u x %u x %u:\n",
              vyre_program_name(w->kernel->program), size[0], size[1], size[2]);
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    const vyre_buffer_decl *buffer = &w->buffers[b->buffer_index];
    if (!w->names[i]) continue;
    sink_format(w->out, " *   %-12s %s, %s", w->names[i],
                vyre_role_name(b->role),
                buffer->structure ? buffer->structure->name
                                  : vyre_element_name(buffer->element));
    if (buffer->type && !buffer->structure) {
      sink_format(w->out, "x%u", words_of(w, b));
    }
    if (is_value(w, b)) {
      sink_text(w->out, ", a value");
    } else if (b->has_static_byte_len) {
      sink_format(w->out, ", %u elements", b->element_count);
    }
    if (b->role == VYRE_ROLE_INPUT_OUTPUT) sink_text(w->out, ", in place");
    if (b->buffer_index == over) sink_text(w->out, ", covered by the grid");
    sink_text(w->out, "\n");
  }
  if (w->needs_grid) {
    sink_text(w->out, " * grid: workgroups in x, y and z; must be given. */\n");
  } else {
    sink_text(w->out,
              " * grid: workgroups in x, y and z; NULL: as many on x as cover "
              "the data. */\n");
  }
}

/* --- functions --------------------------------------------------------------------*/

static void put_bindings(const writer *w) {
  const vyre_binding_plan *plan = &w->plan;
  sink *out = w->out;
  if (plan->input_count > 0) {
    sink_format(out, "  vyre_input inputs[%zu];\n", plan->input_count);
  }
  if (plan->output_count > 0) {
    sink_format(out, "  vyre_output outputs[%zu];\n", plan->output_count);
  }
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (!w->names[i]) continue;
    if (b->input_index != VYRE_NO_INDEX) {
      sink_format(out, "  inputs[%u] = vyre_input_bytes(%s%s, ", b->input_index,
                  is_value(w, b) ? "&" : "", w->names[i]);
      put_size(w, i);
      sink_text(out, ");\n");
    }
    if (b->output_index != VYRE_NO_INDEX) {
      sink_format(out, "  outputs[%u] = vyre_output_bytes(%s, ",
                  b->output_index, w->names[i]);
      put_size(w, i);
      sink_text(out, ");\n");
    }
  }
}

static void put_dispatch(const writer *w) {
  sink *out = w->out;
  sink_format(out,
              "static inline vyre_code %s_dispatch(\n"
              "    vyre_pipeline *pipeline, const uint32_t *grid",
              w->kernel->function);
  put_parameters(w);
  sink_text(out,
            ",\n    vyre_status *st) {\n"
            "  static vyre_dispatch_desc zeroed;\n"
            "  vyre_dispatch_desc desc = zeroed;\n");
  put_bindings(w);
  if (w->plan.input_count > 0) {
    sink_format(out, "  desc.inputs = inputs;\n  desc.input_count = %zu;\n",
                w->plan.input_count);
  }
  if (w->plan.output_count > 0) {
    sink_format(out, "  desc.outputs = outputs;\n  desc.output_count = %zu;\n",
                w->plan.output_count);
  }
  sink_text(out,
            "  for (int axis = 0; grid && axis < 3; axis++) desc.grid[axis] = "
            "grid[axis];\n"
            "  return vyre_dispatch(pipeline, &desc, st);\n}\n");
}

static void put_once(const writer *w) {
  const char *name = w->kernel->function;
  sink *out = w->out;
  sink_format(out,
              "\n/* %s it, runs it once and forgets it. */\n"
              "static inline vyre_code %s_run(\n    vyre_device *device%s",
              w->kernel->package ? "Loads" : "Compiles", name,
              w->needs_grid ? ", const uint32_t *grid" : "");
  put_parameters(w);
  sink_format(out,
              ",\n    vyre_status *st) {\n"
              "  vyre_pipeline *pipeline;\n"
              "  vyre_code code = %s_pipeline(device, &pipeline, st);\n"
              "  if (code == VYRE_OK) {\n"
              "    code = %s_dispatch(pipeline, %s",
              name, name, w->needs_grid ? "grid" : "NULL");
  put_arguments(w);
  sink_text(out,
            ",\n        st);\n  }\n"
            "  vyre_pipeline_release(pipeline);\n"
            "  return code;\n}\n");
}

/* --- device buffers and recordings -------------------------------------------------*/

/* Returns the position of a binding among the resources, which have the order
 * of the binding numbers. */
static size_t rank_of(const writer *w, size_t index) {
  size_t rank = 0;
  const uint32_t own = w->buffers[w->plan.bindings[index].buffer_index].binding;
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    rank += w->names[i] && w->buffers[b->buffer_index].binding < own;
  }
  return rank;
}

/* Returns the number of resources; 0 if a buffer has no parameter. */
static size_t resource_count(const writer *w) {
  size_t count = 0;
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    if (w->plan.bindings[i].role == VYRE_ROLE_PERSISTENT) return 0;
    count += w->names[i] != NULL;
  }
  return count;
}

static void put_grid(const writer *w) {
  sink_text(w->out,
            "  for (int axis = 0; grid && axis < 3; axis++) desc.grid[axis] = "
            "grid[axis];\n");
}

/* Writes the function for memory on a device. Uniforms stay host memory. */
static void put_dispatch_buffers(const writer *w, size_t count) {
  sink *out = w->out;
  sink_format(out,
              "\n/* The same on device buffers. With a fence, returns after "
              "submission; the\n"
              " * caller releases it with vyre_fence_release. NULL: waits. */\n"
              "static inline vyre_code %s_dispatch_buffers(\n"
              "    vyre_pipeline *pipeline, const uint32_t *grid",
              w->kernel->function);
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    if (!w->names[i]) continue;
    sink_text(out, ",\n    ");
    if (b->role != VYRE_ROLE_UNIFORM) {
      sink_format(out, "vyre_buffer %s", w->names[i]);
    } else if (is_value(w, b)) {
      sink_format(out, "%s %s", type_of(w, b), w->names[i]);
    } else {
      sink_format(out, "const %s %s[%u]", type_of(w, b), w->names[i],
                  b->element_count * words_of(w, b));
    }
  }
  sink_format(out,
              ",\n    vyre_fence **fence, vyre_status *st) {\n"
              "  static vyre_dispatch_desc zeroed;\n"
              "  vyre_dispatch_desc desc = zeroed;\n"
              "  vyre_input resources[%zu];\n",
              count);
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    if (!w->names[i]) continue;
    sink_format(out, "  resources[%zu] = ", rank_of(w, i));
    if (b->role != VYRE_ROLE_UNIFORM) {
      sink_format(out, "vyre_input_buffer(%s);\n", w->names[i]);
      continue;
    }
    sink_format(out, "vyre_input_bytes(%s%s, ", is_value(w, b) ? "&" : "",
                w->names[i]);
    put_size(w, i);
    sink_text(out, ");\n");
  }
  sink_format(out,
              "  desc.resources = resources;\n  desc.resource_count = %zu;\n",
              count);
  put_grid(w);
  sink_text(out, "  return vyre_submit(pipeline, &desc, 1, fence, st);\n}\n");
}

/* Writes the function that adds the kernel to a recording. */
static void put_record(const writer *w, size_t count) {
  sink *out = w->out;
  sink_format(out,
              "\n/* Adds the kernel to a recording. The parameters are slots, "
              "whose memory has\n"
              " * the elements listed above. */\n"
              "static inline vyre_code %s_record(\n"
              "    vyre_recording *recording, vyre_pipeline *pipeline,\n"
              "    const uint32_t *grid",
              w->kernel->function);
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    if (w->names[i]) sink_format(out, ",\n    uint32_t %s", w->names[i]);
  }
  sink_format(out,
              ",\n    vyre_status *st) {\n"
              "  static vyre_recorded_dispatch zeroed;\n"
              "  vyre_recorded_dispatch desc = zeroed;\n"
              "  vyre_slot_range resources[%zu];\n",
              count);
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    if (!w->names[i]) continue;
    sink_format(out, "  resources[%zu] = vyre_slot_range_all(%s);\n",
                rank_of(w, i), w->names[i]);
  }
  sink_format(out,
              "  desc.resources = resources;\n  desc.resource_count = %zu;\n",
              count);
  put_grid(w);
  sink_text(out,
            "  return vyre_recording_add_dispatch(recording, pipeline, &desc, "
            "st);\n}\n");
}

/* Chooses parameter names that differ from names at file scope and from
 * locals of the function. */
static bool name_parameters(writer *w, const name_set *taken,
                            vyre_arena *arena) {
  static const char *const ours[] = {
      "device", "pipeline",  "grid",      "st",   "code",
      "desc",   "inputs",    "outputs",   "axis", "zeroed",
      "fence",  "recording", "resources", NULL};
  static const char *const none[] = {NULL}, *const count[] = {"_count", NULL};
  name_set own = {.arena = arena};
  for (size_t i = 0; ours[i]; i++) {
    const char **space =
        (const char **)list_add(&own.list, sizeof(char *), arena);
    if (!space) return false;
    *space = ours[i];
  }
  for (size_t i = 0; i < w->plan.binding_count; i++) {
    const vyre_binding *b = &w->plan.bindings[i];
    w->names[i] = NULL;
    if (!has_memory(b)) continue;
    w->names[i] =
        unique_name(&own, taken, "", b->name, true,
                    is_value(w, b) || b->has_static_byte_len ? none : count);
    if (!w->names[i]) return false;
  }
  return true;
}

bool embed_kernel(embedded *kernel, const name_set *taken,
                  const struct_list *structs, vyre_arena *arena, sink *out,
                  problem *wrong) {
  vyre_status st = {0};
  size_t count;
  const uint32_t *size = vyre_program_workgroup(kernel->program);
  writer w = {.kernel = kernel,
              .buffers = vyre_program_buffers(kernel->program, &count),
              .needs_grid = size[1] > 1 || size[2] > 1,
              .structs = structs,
              .out = out};
  if (vyre_binding_plan_build(kernel->program, arena, &w.plan, &st) !=
      VYRE_OK) {
    return problem_from_status(wrong, &st);
  }
  w.names = (const char **)vyre_arena_alloc(
      arena, (w.plan.binding_count + 1) * sizeof *w.names, 0);
  if (!w.names || !name_parameters(&w, taken, arena)) {
    return problem_no_memory(wrong, "the names of parameters");
  }
  if (kernel->package) {
    put_package_loader(kernel, out);
  } else {
    if (!put_program(kernel, arena, out, wrong)) return false;
    put_loader(kernel, out);
  }
  put_comment(&w);
  put_dispatch(&w);
  put_once(&w);
  const size_t resources = resource_count(&w);
  if (resources > 0) {
    put_dispatch_buffers(&w, resources);
    put_record(&w, resources);
  }
  return true;
}
