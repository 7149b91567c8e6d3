/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "vyre/binding.h"

#include "base/print.h"

/* Formats a number, or a dash if it is absent. */
static const char *or_dash(bool there, uint64_t value,
                           char buffer[VYRE__FIGURE_TEXT]) {
  return there ? vyre__figure(value, buffer) : "-";
}

/* Returns columns on a terminal: bytes that do not continue a character. Wide
 * characters count as one, which only misaligns their rows. */
static int columns_of(const char *text) {
  int columns = 0;
  for (; *text; text++) columns += ((unsigned char)*text & 0xC0) != 0x80;
  return columns;
}

static void print_row(vyre__printer *out, const vyre_binding *binding,
                      int name_width) {
  char elements[VYRE__FIGURE_TEXT], bytes[VYRE__FIGURE_TEXT];
  char input[VYRE__FIGURE_TEXT], output[VYRE__FIGURE_TEXT];
  char alignment[VYRE__FIGURE_TEXT], number[16];
  snprintf(number, sizeof number, "%u", (unsigned)binding->binding);
  /* Shared memory has no binding. */
  vyre__print(out, "  %7s  %s%*s  %-12s",
              binding->role == VYRE_ROLE_SHARED ? "-" : number, binding->name,
              name_width - columns_of(binding->name), "",
              vyre_role_name(binding->role));
  vyre__print(
      out, " %5u %13s %14s %9s %5s %6s\n", binding->element_size,
      or_dash(binding->element_count > 0, binding->element_count, elements),
      or_dash(binding->has_static_byte_len, binding->static_byte_len, bytes),
      vyre__figure(binding->preferred_alignment, alignment),
      or_dash(binding->input_index != VYRE_NO_INDEX, binding->input_index,
              input),
      or_dash(binding->output_index != VYRE_NO_INDEX, binding->output_index,
              output));
}

bool vyre_binding_plan_print(const vyre_binding_plan *plan,
                             vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  int name_width = 4;
  for (size_t i = 0; i < plan->binding_count; i++) {
    int columns = columns_of(plan->bindings[i].name);
    if (columns > name_width) name_width = columns;
  }
  vyre__print(&out, "bindings\n  %7s  %-*s  %-12s %5s %13s %14s %9s %5s %6s\n",
              "binding", name_width, "name", "role", "size", "elements",
              "static bytes", "alignment", "input", "output");
  /* Shared buffers come last, because their number has no meaning. */
  for (int shared = 0; shared < 2; shared++) {
    for (size_t i = 0; i < plan->binding_count; i++) {
      bool is_shared = plan->bindings[i].role == VYRE_ROLE_SHARED;
      if (is_shared == (shared == 1)) {
        print_row(&out, &plan->bindings[i], name_width);
      }
    }
  }
  return out.ok;
}
