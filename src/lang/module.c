/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lang/module.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "lang/parse/parse.h"

struct vyre_module {
  vyre_allocator allocator;
  vyre_program **kernels;
  size_t count, capacity;
};

/* --- source text -----------------------------------------------------------*/

vyre_code vyre__source_accept(const char *text, size_t length,
                              vyre_diagnostics *diagnostics) {
  static const struct {
    const char *message, *fix;
  } rows[] = {
      [VYRE__SOURCE_LONG] = {"the file is larger than 16 MiB",
                             "split it into several files"},
      [VYRE__SOURCE_NUL] = {"the file contains a NUL byte",
                            "remove it, and check that this is a text file"},
      [VYRE__SOURCE_UTF8] = {"the file is not UTF-8", "save the file as UTF-8"},
      [VYRE__SOURCE_CONTROL] =
          {"the file contains an invisible control character",
           "remove it; only tabs and line ends are allowed"},
  };
  size_t at;
  vyre__source_fault fault = vyre__source_check(text, length, &at);
  if (fault == VYRE__SOURCE_FINE) return VYRE_OK;
  vyre_diagnostic finding = {.rule = "V001",
                             .length = 1,
                             .message = rows[fault].message,
                             .fix = rows[fault].fix};
  vyre__source_loc_find(text, length, at, &finding.line, &finding.column);
  if (!vyre__diagnostics_add(diagnostics, &finding)) return VYRE_OUT_OF_MEMORY;
  return VYRE_INVALID_PROGRAM;
}

/* --- parsing ---------------------------------------------------------------*/

/* Finds the edit for the diagnostics of the IR builder that replace a literal:
 * "write 2.0 instead of 2" and "write true". */
static bool edit_of_fix(vyre__parser *p, const vyre_diagnostic *finding,
                        vyre_edit *edit) {
  static const char start[] = "write ", middle[] = " instead of ";
  const char *text = finding->fix + strlen(start);
  if (strncmp(finding->fix, start, strlen(start)) != 0) return false;
  const char *end = strstr(text, middle);
  const bool is_bool = strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
  if (is_bool) end = text + strlen(text);
  if (!end || (size_t)(end - text) >= sizeof p->edit) return false;
  if (!is_bool && strlen(end + strlen(middle)) != finding->length) return false;
  memcpy(p->edit, text, (size_t)(end - text));
  p->edit[end - text] = '\0';
  *edit = (vyre_edit){.line = finding->line,
                      .column = finding->column,
                      .length = finding->length};
  return true;
}

static void collect(void *self, const char *rule, vyre__source_loc place,
                    uint32_t length, const char *message, const char *fix,
                    vyre__source_loc other, const char *other_text) {
  vyre__parser *p = self;
  if (p->lost) return; /* suppressed: follows from an earlier error */
  vyre_diagnostic finding = {.rule = rule,
                             .line = place.line,
                             .column = place.column,
                             .length = length,
                             .message = message,
                             .fix = fix,
                             .note = other_text,
                             .note_line = other.line,
                             .note_column = other.column};
  vyre_edit edit = {.line = p->edit_span.place.line,
                    .column = p->edit_span.place.column,
                    .length = p->edit_span.length,
                    .text = p->edit};
  if (p->has_edit) {
    finding.edit = &edit;
  } else if (edit_of_fix(p, &finding, &edit)) {
    edit.text = p->edit;
    finding.edit = &edit;
  }
  p->has_edit = false;
  if (!vyre__diagnostics_add(p->diagnostics, &finding)) p->out_of_memory = true;
}

static void report_recursion(vyre__parser *p) {
  vyre__id call = 0;
  vyre__ir_builder *m = &p->ir;
  uint32_t function = vyre__find_recursion(m, &call);
  if (function == VYRE_NO_INDEX || m->out_of_memory) return;
  vyre__p_error(p, m->spans[call], "V045",
                "use a loop, with a var for the values that change",
                "fn '%.100s' calls itself here, directly or through others",
                m->functions[function].name);
}

static vyre_code no_memory(vyre_status *st) {
  return vyre__no_memory(st, "vyre_module_parse", "the text's tokens and nodes",
                         1);
}

static bool is_full(const vyre__parser *p) {
  return p->out_of_memory || p->ir.out_of_memory || p->symbols.failed;
}

static void read_text(vyre__parser *p) {
  vyre__p_index(p);
  if (p->scopes && !is_full(p)) vyre__p_bind_imports(p);
  if (!is_full(p)) vyre__p_file(p);
  if (!is_full(p) && p->ir.error_count == 0) report_recursion(p);
}

/* Makes the lines of all diagnostics those of their files. */
static bool locate(vyre__parser *p) {
  return !p->files || vyre__diagnostics_locate(p->diagnostics, p->files);
}

vyre_code vyre__p_read(vyre__parser *p, vyre_status *st) {
  if (!vyre__symbols_init(&p->symbols, p->allocator)) return no_memory(st);
  vyre__ir_builder_init(&p->ir, p->allocator, (vyre__reporter){collect, p});
  if (is_full(p)) return no_memory(st);
  /* allocates the stack, so that empty blocks need no check */
  vyre__push(&p->ir, 0);
  vyre__stack_drop(&p->ir, 0);
  vyre__p_link(p);
  if (p->scopes && !is_full(p)) vyre__p_list_files(p);
  const bool is_linked = p->ir.error_count == 0;
  vyre__lexer_init(&p->now.lexer, p->text, p->length, &p->symbols);
  p->now.lexer.scopes = p->scopes;
  /* Without its imports, a file has too many unknown names to be read. */
  if (!is_full(p) && (is_linked || p->index)) read_text(p);
  if (is_full(p) || !locate(p)) return no_memory(st);
  if (p->ir.error_count == 0) return VYRE_OK;
  return vyre__diagnostics_fail(p->diagnostics, p->file, st);
}

static vyre_code canonicalize_kernels(vyre__parser *p, vyre_module *module,
                                      vyre_status *st) {
  void *kernels = NULL;
  if (!vyre__reserve(p->allocator, &kernels, &module->capacity, p->kernel_count,
                     sizeof *module->kernels, true)) {
    return no_memory(st);
  }
  module->kernels = (vyre_program **)kernels;
  for (size_t i = 0; i < p->kernel_count; i++) {
    vyre__read_kernel *it = &p->kernels[i];
    vyre_status failure = {.code = VYRE_OK};
    vyre_code code = VYRE_OK;
    if (it->parsed) {
      code = vyre__canonicalize(&p->ir, it->parsed->function, &it->parsed->head,
                                p->allocator, &it->program, &failure);
    }
    if (code == VYRE_OUT_OF_MEMORY) return no_memory(st);
    if (code != VYRE_OK) { /* limits of the full kernel */
      p->lost = false;     /* kernels are in the parsed file */
      vyre__p_error(p, p->ir.functions[it->parsed->function].span, "V048",
                    failure.fix, "%s", failure.message);
      if (is_full(p)) return no_memory(st);
      return vyre__diagnostics_fail(p->diagnostics, p->file, st);
    }
    module->kernels[module->count++] = it->program;
    it->program = NULL;
  }
  return VYRE_OK;
}

void vyre__p_deinit(vyre__parser *p) {
  for (size_t i = 0; i < p->kernel_count; i++) {
    vyre_program_release(p->kernels[i].program); /* the file has errors */
  }
#define FREE_ARRAY(array, capacity) \
  vyre__reserve_free(p->allocator, &p->array, &p->capacity, sizeof *p->array)
  FREE_ARRAY(items, item_capacity);
  FREE_ARRAY(bindings, binding_capacity);
  FREE_ARRAY(parameters, parameter_capacity);
  FREE_ARRAY(buffers, buffer_capacity);
  FREE_ARRAY(dimensions, dimension_capacity);
  FREE_ARRAY(kernels, kernel_capacity);
#undef FREE_ARRAY
  vyre__ir_builder_build(&p->ir);
  vyre__scopes_deinit(p);
  vyre__symbols_deinit(&p->symbols);
  vyre_arena_deinit(&p->arena);
}

/* Reports a value for an override that the file does not have. */
static vyre_code check_defines(const vyre__parser *p, vyre_status *st) {
  for (size_t i = 0; i < p->options.define_count; i++) {
    if (p->used_defines[i]) continue;
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "declare it in the file: override NAME = value; or remove "
                     "the definition",
                     "%.100s has no override called '%.60s'",
                     *p->file ? p->file : "the module",
                     p->options.defines[i].name);
  }
  return VYRE_OK;
}

static vyre_code check_options(const vyre_module_options *options,
                               vyre_status *st) {
  VYRE_REQUIRE_ARRAY(st, options->defines, options->define_count);
  VYRE_REQUIRE_ARRAY(st, options->import_folders, options->import_folder_count);
  for (size_t i = 0; i < options->import_folder_count; i++) {
    VYRE_REQUIRE(st, options->import_folders[i]);
  }
  for (size_t i = 0; i < options->define_count; i++) {
    const vyre_define *each = &options->defines[i];
    VYRE_CHECK_RESERVED(st, "vyre_module_parse_with", each);
    VYRE_REQUIRE(st, each->name);
    VYRE_REQUIRE(st, each->value);
    for (size_t k = 0; k < i; k++) {
      if (strcmp(each->name, options->defines[k].name) != 0) continue;
      return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                       "define each name once", "'%.60s' is defined twice",
                       each->name);
    }
  }
  return VYRE_OK;
}

static vyre_code parse(const char *text, size_t length, const char *file,
                       const vyre_module_options *options, vyre_module *module,
                       vyre_diagnostics *diagnostics, vyre_status *st) {
  vyre_code code = vyre__source_accept(text, length, diagnostics);
  if (code == VYRE_OUT_OF_MEMORY) return no_memory(st);
  if (code != VYRE_OK) return vyre__diagnostics_fail(diagnostics, file, st);
  vyre__parser p = {.text = text,
                    .length = (uint32_t)length,
                    .file = file,
                    .diagnostics = diagnostics,
                    .allocator = module->allocator};
  vyre_arena_init(&p.arena, module->allocator);
  if (options) p.options = *options;
  p.used_defines = vyre__arena_filled(&p.arena, p.options.define_count + 1,
                                      sizeof *p.used_defines, 0);
  code = p.used_defines ? vyre__p_read(&p, st) : no_memory(st);
  if (code == VYRE_OK) code = check_defines(&p, st);
  if (code == VYRE_OK) code = canonicalize_kernels(&p, module, st);
  vyre__p_deinit(&p);
  return code;
}

static vyre_code parse_module(const char *text, size_t length, const char *file,
                              const vyre_module_options *options,
                              vyre_allocator allocator, vyre_module **out,
                              vyre_diagnostics *diagnostics, vyre_status *st) {
  vyre_diagnostics own = {.arena.allocator = allocator};
  vyre_module *module = vyre__resize(allocator, NULL, 0, sizeof *module);
  if (!module) return no_memory(st);
  *module = (vyre_module){.allocator = allocator};
  vyre_code code = parse(text, length, file ? file : "", options, module,
                         diagnostics ? diagnostics : &own, st);
  vyre_diagnostics_deinit(&own);
  if (code != VYRE_OK) {
    vyre_module_release(module);
    return code;
  }
  *out = module;
  return VYRE_OK;
}

vyre_code vyre_module_parse(const char *text, size_t length, const char *file,
                            vyre_allocator allocator, vyre_module **out,
                            vyre_diagnostics *diagnostics, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, text);
  return parse_module(text, length, file, NULL, allocator, out, diagnostics,
                      st);
}

vyre_code vyre_module_parse_with(const char *text, size_t length,
                                 const char *file,
                                 const vyre_module_options *options,
                                 vyre_allocator allocator, vyre_module **out,
                                 vyre_diagnostics *diagnostics,
                                 vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, text);
  if (options) {
    VYRE_CHECK_RESERVED(st, __func__, options);
    VYRE_TRY(check_options(options, st));
  }
  return parse_module(text, length, file, options, allocator, out, diagnostics,
                      st);
}

void vyre_module_release(vyre_module *module) {
  if (!module) return;
  vyre_allocator allocator = module->allocator;
  for (size_t i = 0; i < module->count; i++) {
    vyre_program_release(module->kernels[i]);
  }
  void *kernels = (void *)module->kernels;
  vyre__reserve_free(allocator, &kernels, &module->capacity,
                     sizeof *module->kernels);
  vyre__resize(allocator, module, sizeof *module, 0);
}

size_t vyre_module_kernel_count(const vyre_module *module) {
  return module ? module->count : 0;
}

vyre_program *vyre_module_kernel(const vyre_module *module, size_t index) {
  return module && index < module->count ? module->kernels[index] : NULL;
}

vyre_program *vyre_module_find(const vyre_module *module, const char *name) {
  if (!module || !name) return NULL;
  for (size_t i = 0; i < module->count; i++) {
    if (strcmp(vyre_program_name(module->kernels[i]), name) == 0) {
      return module->kernels[i];
    }
  }
  return NULL;
}
