/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/binding.h"

#include "base/checked_math.h"
#include "base/enum_name.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"
#include "base/utf8.h"
#include "ir/ir.h"

/* The first match decides. */
static vyre_role role_of(const vyre_buffer_decl *buffer) {
  if (buffer->kind == VYRE_MEMORY_SHARED) return VYRE_ROLE_SHARED;
  if (buffer->access == VYRE_ACCESS_WORKGROUP) return VYRE_ROLE_SHARED;
  if (buffer->kind == VYRE_MEMORY_PERSISTENT) return VYRE_ROLE_PERSISTENT;
  if (buffer->is_output) return VYRE_ROLE_OUTPUT;
  static const vyre_role by_access[] = {
      [VYRE_ACCESS_READ] = VYRE_ROLE_INPUT,
      [VYRE_ACCESS_WRITE] = VYRE_ROLE_OUTPUT,
      [VYRE_ACCESS_READ_WRITE] = VYRE_ROLE_INPUT_OUTPUT,
      [VYRE_ACCESS_UNIFORM] = VYRE_ROLE_UNIFORM,
      [VYRE_ACCESS_WORKGROUP] = VYRE_ROLE_SHARED,
  };
  return by_access[buffer->access]; /* a program has no other access */
}

static bool takes_input(vyre_role role) {
  return role == VYRE_ROLE_INPUT || role == VYRE_ROLE_INPUT_OUTPUT ||
         role == VYRE_ROLE_UNIFORM;
}

static bool gives_output(vyre_role role) {
  return role == VYRE_ROLE_OUTPUT || role == VYRE_ROLE_INPUT_OUTPUT;
}

static vyre_code check_hint(const vyre_buffer_decl *buffer, vyre_status *st) {
  uint32_t hint = buffer->hints.preferred_alignment;
  if (hint == 0 || vyre__is_power_of_two(hint)) return VYRE_OK;
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                   "use 0 for the default, or a power of two",
                   "binding '%s': preferred_alignment=%u is not a power of two",
                   vyre__name(buffer->name, shown), hint);
}

static vyre_code check_count(const vyre_buffer_decl *buffer, vyre_status *st) {
  if (buffer->count == 0 || vyre_element_size(buffer->element) > 0) {
    return VYRE_OK;
  }
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                   "declare u8 elements, or leave the count 0",
                   "binding '%s': %u elements of '%s', which has no fixed size",
                   vyre__name(buffer->name, shown), buffer->count,
                   vyre_element_name(buffer->element));
}

/* Returns the alignment of a buffer whose elements have @p size bytes, or 0. */
static uint32_t alignment_of(const vyre_buffer_decl *buffer, uint32_t size) {
  uint32_t alignment = vyre__is_sum(buffer->element) ? sizeof(uint64_t) : size;
  if (alignment == 0) alignment = 1;
  uint32_t hint = buffer->hints.preferred_alignment;
  return hint > alignment ? hint : alignment;
}

/* Plan under construction; the arrays have space for every buffer. */
typedef struct draft {
  vyre_binding *bindings;
  uint32_t *inputs, *outputs, *shared;
  vyre__sort_item *order;
  vyre_binding_plan plan;
} draft;

static bool draft_alloc(draft *d, size_t count, vyre_arena *arena,
                        vyre__arena_mark *results_end) {
  d->bindings = vyre__arena_array(arena, count, sizeof *d->bindings);
  d->inputs = vyre__arena_array(arena, count, sizeof *d->inputs);
  d->outputs = vyre__arena_array(arena, count, sizeof *d->outputs);
  d->shared = vyre__arena_array(arena, count, sizeof *d->shared);
  *results_end = vyre__arena_here(arena);
  d->order = vyre__arena_array(arena, count, sizeof *d->order);
  return d->bindings && d->inputs && d->outputs && d->shared && d->order;
}

/* Computes all values before it writes the binding: a copy of a binding that was
 * just written would wait for these writes. */
static void draft_add(draft *d, const vyre_buffer_decl *buffer,
                      uint32_t index) {
  vyre_binding_plan *plan = &d->plan;
  const vyre_role role = role_of(buffer);
  const vyre_memory_hints hints = buffer->hints;
  const uint32_t count = buffer->count,
                 scalar = vyre_element_size(buffer->element),
                 size = scalar ? vyre_buffer_stride(buffer) : 0,
                 alignment = alignment_of(buffer, scalar);
  size_t input = VYRE_NO_INDEX, output = VYRE_NO_INDEX;
  if (takes_input(role)) {
    input = plan->input_count;
    d->inputs[plan->input_count++] = index;
  }
  if (gives_output(role) || buffer->pipeline_live_out) {
    output = plan->output_count;
    d->outputs[plan->output_count++] = index;
  }
  if (role == VYRE_ROLE_SHARED) d->shared[plan->shared_count++] = index;
  const char *name = buffer->name;
  const uint32_t number = buffer->binding;
  const vyre_access access = buffer->access;
  d->bindings[plan->binding_count++] = (vyre_binding){
      .name = name,
      .binding = number,
      .buffer_index = index,
      .role = role,
      .element_size = size,
      .preferred_alignment = alignment,
      .element_count = count,
      .has_static_byte_len = count > 0,
      .static_byte_len = (uint64_t)count * size,
      .read_only = access == VYRE_ACCESS_READ || access == VYRE_ACCESS_UNIFORM,
      .input_index = (uint32_t)input,
      .output_index = (uint32_t)output,
      .has_coalesce_axis = hints.has_coalesce_axis,
      .coalesce_axis = hints.coalesce_axis,
      .cache_locality = hints.cache_locality};
}

/* Rejects two bound buffers with one number: for the device they would be one
 * buffer. Shared buffers are not bound and may have any number. */
static vyre_code check_unique(const vyre_binding_plan *plan, vyre_status *st) {
  const vyre_binding *last = NULL;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *binding = &plan->bindings[i];
    if (binding->role == VYRE_ROLE_SHARED) continue;
    if (last && last->binding == binding->binding) {
      char first[VYRE__NAME_TEXT], second[VYRE__NAME_TEXT];
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, NULL,
          VYRE_NUMBERS({"binding", binding->binding}),
          "use a different binding number for each buffer that is not shared",
          "buffers '%s' and '%s' both have binding %u",
          vyre__name(last->name, first), vyre__name(binding->name, second),
          binding->binding);
    }
    last = binding;
  }
  return VYRE_OK;
}

static vyre_code fill(draft *d, const vyre_buffer_decl *buffers, size_t count,
                      vyre_status *st) {
  for (size_t i = 0; i < count; i++) {
    d->order[i] = (vyre__sort_item){buffers[i].binding, i};
  }
  vyre__sort(d->order, count);
  for (size_t i = 0; i < count; i++) {
    uint32_t index = (uint32_t)d->order[i].tie;
    VYRE_TRY(check_count(&buffers[index], st));
    VYRE_TRY(check_hint(&buffers[index], st));
    draft_add(d, &buffers[index], index);
  }
  d->plan.bindings = d->bindings;
  d->plan.input_indices = d->inputs;
  d->plan.output_indices = d->outputs;
  d->plan.shared_indices = d->shared;
  return check_unique(&d->plan, st);
}

/* Returns the number of elements of an input of this length. */
static uint64_t elements_of(const vyre_binding *binding, uint64_t byte_len) {
  /* `bytes` is indexed as u8. */
  return binding->element_size > 1 ? byte_len / binding->element_size
                                   : byte_len;
}

static vyre_code bad_length(const vyre_binding *binding,
                            const vyre_input_extent *input, vyre_status *st) {
  uint64_t expected = binding->static_byte_len;
  const char *rule = input->is_device_buffer ? "at least " : "";
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, NULL,
      VYRE_NUMBERS({"input_index", binding->input_index},
                   {"expected_bytes", expected},
                   {"received_bytes", input->byte_len}),
      "bind the declared size, or declare the buffer without a count",
      "%sinput '%s' must have %s%llu bytes (%u elements of %u), got %llu",
      input->is_device_buffer ? "the device buffer of " : "",
      vyre__name(binding->name, shown), rule, (unsigned long long)expected,
      binding->element_count, binding->element_size,
      (unsigned long long)input->byte_len);
}

static vyre_code ragged_length(const vyre_binding *binding, uint64_t byte_len,
                               vyre_status *st) {
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL_WITH(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                        NULL,
                        VYRE_NUMBERS({"input_index", binding->input_index},
                                     {"element_bytes", binding->element_size},
                                     {"received_bytes", byte_len}),
                        "pass a length that is a multiple of the element size",
                        "input '%s' has %llu bytes, which is not a multiple of "
                        "its %u-byte element",
                        vyre__name(binding->name, shown),
                        (unsigned long long)byte_len, binding->element_size);
}

static vyre_code check_input(const vyre_binding *binding,
                             const vyre_input_extent *input, vyre_status *st) {
  uint64_t length = input->byte_len;
  bool fixed = binding->has_static_byte_len;
  /* A device buffer may be longer than declared. */
  bool is_exact = !(fixed && input->is_device_buffer);
  if (is_exact && binding->element_size > 1 && length % binding->element_size) {
    return ragged_length(binding, length, st);
  }
  if (fixed) {
    bool fits = input->is_device_buffer ? length >= binding->static_byte_len
                                        : length == binding->static_byte_len;
    return fits ? VYRE_OK : bad_length(binding, input, st);
  }
  uint64_t elements = elements_of(binding, length);
  if (elements <= UINT32_MAX) return VYRE_OK;
  char shown[VYRE__NAME_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM, NULL,
      VYRE_NUMBERS({"input_index", binding->input_index},
                   {"elements", elements}, {"max_elements", UINT32_MAX}),
      "split the input: a kernel counts elements in 32 bits",
      "input '%s' has %llu elements; the maximum is 4294967295",
      vyre__name(binding->name, shown), (unsigned long long)elements);
}

vyre_code vyre_binding_plan_validate(const vyre_binding_plan *plan,
                                     const vyre_input_extent *inputs,
                                     size_t input_count, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, plan);
  VYRE_REQUIRE_ARRAY(st, inputs, input_count);
  if (input_count != plan->input_count) {
    return VYRE_FAIL_WITH(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                          NULL,
                          VYRE_NUMBERS({"expected_inputs", plan->input_count},
                                       {"received_inputs", input_count}),
                          "pass one input for each input, input_output and "
                          "uniform buffer, in order of their binding numbers",
                          "inputs: the program takes %zu, got %zu",
                          plan->input_count, input_count);
  }
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *binding = &plan->bindings[i];
    if (binding->input_index == VYRE_NO_INDEX) continue;
    /* only in a plan that the caller filled in */
    if (binding->input_index >= input_count) {
      char shown[VYRE__NAME_TEXT];
      return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                       "use a plan of vyre_binding_plan_build",
                       "binding '%s' is input %u of a plan with %zu inputs",
                       vyre__name(binding->name, shown), binding->input_index,
                       input_count);
    }
    VYRE_TRY(check_input(binding, &inputs[binding->input_index], st));
  }
  return VYRE_OK;
}

/* Computes element counts from lengths, where no count is declared. */
static void derive_counts(draft *d, const vyre_input_extent *inputs) {
  for (size_t i = 0; i < d->plan.binding_count; i++) {
    vyre_binding *binding = &d->bindings[i];
    if (binding->input_index == VYRE_NO_INDEX) continue;
    if (binding->has_static_byte_len) continue;
    binding->element_count =
        (uint32_t)elements_of(binding, inputs[binding->input_index].byte_len);
  }
}

static vyre_code build(const vyre_program *program, bool with_inputs,
                       const vyre_input_extent *inputs, size_t input_count,
                       vyre_arena *arena, vyre_binding_plan *out,
                       vyre_status *st) {
  size_t count;
  const vyre_buffer_decl *buffers = vyre_program_buffers(program, &count);
  vyre__arena_mark start = vyre__arena_here(arena);
  vyre__arena_mark results_end;
  draft d = {0};
  vyre_code code;
  if (!draft_alloc(&d, count, arena, &results_end)) {
    vyre__arena_rewind(arena, start);
    return vyre__no_memory(st, "binding plan", "bindings", count);
  }
  code = fill(&d, buffers, count, st);
  if (code == VYRE_OK && with_inputs) {
    code = vyre_binding_plan_validate(&d.plan, inputs, input_count,
                                      vyre__status_open(st));
    if (code == VYRE_OK) derive_counts(&d, inputs);
  }
  vyre__arena_rewind(arena, code == VYRE_OK ? results_end : start);
  if (code == VYRE_OK) *out = d.plan;
  return code;
}

static vyre_code check_arguments(const char *function,
                                 const vyre_program *program,
                                 const vyre_arena *arena,
                                 vyre_binding_plan *out, vyre_status *st) {
  if (!out) return vyre__null_argument(st, function, "out");
  *out = (vyre_binding_plan){0};
  if (!program) return vyre__null_argument(st, function, "program");
  if (!arena) return vyre__null_argument(st, function, "arena");
  return VYRE_OK;
}

vyre_code vyre_binding_plan_build(const vyre_program *program,
                                  vyre_arena *arena, vyre_binding_plan *out,
                                  vyre_status *st) {
  vyre__status_begin(st);
  VYRE_TRY(check_arguments("vyre_binding_plan_build", program, arena, out, st));
  return build(program, false, NULL, 0, arena, out, st);
}

vyre_code vyre_binding_plan_build_for(const vyre_program *program,
                                      const vyre_input_extent *inputs,
                                      size_t input_count, vyre_arena *arena,
                                      vyre_binding_plan *out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_TRY(check_arguments(__func__, program, arena, out, st));
  return build(program, true, inputs, input_count, arena, out, st);
}

VYRE__ENUM_NAME(vyre_role_name, vyre_role, VYRE_ROLE_MAP)
