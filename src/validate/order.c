/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reports whether the result of a queue kernel may depend on the order of its
 * items. */
#include <stdio.h>
#include <string.h>

#include "vyre/validate.h"

#include "analyze/queue/queue_order.h"
#include "base/status.h"
#include "diag/diagnostics.h"

typedef struct doubt_text {
  const char *message; /* with %s: the buffer */
  const char *fix;
  const char *note; /* of the second access; or NULL */
} doubt_text;

static const doubt_text texts[] = {
    [VYRE__ORDER_STORE] =
        {"two items of a window may store to the same element of '%.100s'",
         "store to an element at item_index, or at item in a set, or use an "
         "atomic such as atomic_min",
         "other items store here"},
    [VYRE__ORDER_READ] =
        {"other items of the same window may write what is read from '%.100s' "
         "here",
         "read data that earlier windows wrote, in a buffer that this kernel "
         "does not write, or an element at item",
         "written here"},
    [VYRE__ORDER_RESULT] =
        {"the result of this atomic on '%.100s' depends on the order of the "
         "items",
         "do not use the result of the atomic; if it tests whether a key was "
         "seen, declare once(N) instead",
         NULL},
    [VYRE__ORDER_EXCHANGE] =
        {"the last of several items decides what stays in '%.100s'",
         "use atomic_min, atomic_max, atomic_add or another operation with one "
         "result",
         "another value is written here"},
    [VYRE__ORDER_MIXED] =
        {"'%.100s' is changed by atomics of several kinds, whose order matters",
         "use one kind of atomic for a buffer", "the other kind is used here"},
    [VYRE__ORDER_STORE_ATOMIC] =
        {"'%.100s' is changed at the element of the item, and by atomics at "
         "others",
         "use the same atomic for both, or two buffers", "the atomic is here"},
};

static vyre_code report(const vyre_program *program,
                        const vyre__queue_order *order,
                        vyre_diagnostics *diagnostics, vyre_status *st) {
  const doubt_text *text = &texts[order->doubt];
  const char *name = program->buffers[order->buffer].name;
  char message[512];
  /* the format is one of the table above */
  snprintf(message, sizeof message, text->message, name);
  const bool is_store = order->doubt == VYRE__ORDER_STORE ||
                        order->doubt == VYRE__ORDER_READ ||
                        order->doubt == VYRE__ORDER_STORE_ATOMIC;
  uint32_t line = order->place.line, other = order->other.line;
  const vyre__source_file *at = vyre__source_file_of(program->files, &line);
  const vyre__source_file *note = vyre__source_file_of(program->files, &other);
  const vyre_diagnostic_files files = {.file = at ? at->name : NULL,
                                       .note_file = note ? note->name : NULL};
  const vyre_diagnostic found = {
      .rule = "order_unproven",
      .files = at || note ? &files : NULL,
      .line = line,
      .column = order->place.column,
      .length = is_store ? (uint32_t)strlen(name) : (uint32_t)strlen("atomic"),
      .message = message,
      .fix = text->fix,
      .note = order->other.line ? text->note : NULL,
      .note_line = other,
      .note_column = order->other.column};
  if (!diagnostics || vyre__diagnostics_add(diagnostics, &found)) {
    return VYRE_OK;
  }
  return vyre__no_memory(st, "vyre_program_prove_order", "findings", 1);
}

vyre_code vyre_program_prove_order(const vyre_program *program,
                                   vyre_order_proof *out,
                                   vyre_diagnostics *diagnostics,
                                   vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = (vyre_order_proof){0};
  VYRE_REQUIRE(st, program);
  if (!program->queue || program->function_count == 0) return VYRE_OK;
  vyre__queue_order order;
  out->is_queue = true;
  VYRE_TRY(
      vyre__queue_order_prove(program, program->arena.allocator, &order, st));
  out->is_proven = order.doubt == VYRE__ORDER_PROVEN;
  return out->is_proven ? VYRE_OK : report(program, &order, diagnostics, st);
}
