/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Replaces the end of a truncated text by "...". */
static void mark_cut(char *text, size_t size, int wanted) {
  if (wanted < 0 || (size_t)wanted < size) return;
  memcpy(text + size - 4, "...", 4);
}

void vyre__fail(vyre_status *st, const vyre__failure *failure,
                const char *format, ...) {
  if (!st || st->code != VYRE_OK) return;
  *st = (vyre_status){.code = failure->code,
                      .kind = failure->kind,
                      .field = failure->field,
                      .file = failure->file,
                      .line = failure->line};
  const vyre_status_number *number = failure->numbers;
  while (number && number->name && st->number_count < VYRE_STATUS_MAX_NUMBERS) {
    st->numbers[st->number_count++] = *number++;
  }
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(st->message, sizeof st->message, format, arguments);
  va_end(arguments);
  mark_cut(st->message, sizeof st->message, wanted);
  mark_cut(st->fix, sizeof st->fix,
           snprintf(st->fix, sizeof st->fix, "%s", failure->fix));
}

void vyre__status_where(vyre_status *st, const char *name, uint64_t value,
                        const char *format, ...) {
  char message[sizeof st->message], where[sizeof st->message / 2];
  uint64_t known;
  if (!st || st->code == VYRE_OK) return;
  if (vyre_status_number_get(st, name, &known)) return;
  if (st->number_count < VYRE_STATUS_MAX_NUMBERS) {
    st->numbers[st->number_count++] = (vyre_status_number){name, value};
  }
  va_list arguments;
  va_start(arguments, format);
  int wanted = vsnprintf(where, sizeof where, format, arguments);
  va_end(arguments);
  mark_cut(where, sizeof where, wanted);
  memcpy(message, st->message, sizeof message);
  mark_cut(st->message, sizeof st->message,
           snprintf(st->message, sizeof st->message, "%s: %s", where, message));
}

void vyre__fail_null(vyre_status *st, const char *function,
                     const char *argument) {
  (void)VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                  "pass a valid pointer; the header says which may be NULL",
                  "%s: argument '%s' is NULL", function, argument);
}

void vyre__fail_reserved(vyre_status *st, const char *function, size_t index,
                         uint64_t value) {
  (void)VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "reserved",
      VYRE_NUMBERS({"index", index}, {"value", value}),
      "initialise the struct with {0}, or install a newer version of vyre",
      "%s: reserved word %zu is %llu; expected 0", function, index,
      (unsigned long long)value);
}

/* Thread-local in the initial-exec model: the loader allocates it at start-up,
 * so that the first access of a thread does not. */
static _Thread_local bool is_injected
    __attribute__((tls_model("initial-exec")));

void vyre__memory_inject(bool is_hit) {
  if (is_injected != is_hit) is_injected = is_hit;
}

bool vyre__memory_is_injected(void) {
  return is_injected;
}

void vyre__fail_memory(vyre_status *st, const char *function, const char *field,
                       uint64_t requested) {
  char amount[80];
  const char *of = strncmp(field, "bytes", 5) == 0 ? "" : "entries of ";
  if (requested == UINT64_MAX) { /* saturated: the sum or product overflowed */
    (void)snprintf(amount, sizeof amount, "2^64 %s%.40s or more", of, field);
  } else {
    (void)snprintf(amount, sizeof amount, "%llu %s%.40s",
                   (unsigned long long)requested, of, field);
  }
  if (is_injected) {
    (void)VYRE_FAIL_WITH(
        st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, field,
        VYRE_NUMBERS({"requested", requested}),
        "disarm it: vyre_context_inject_faults(context, \"\"), or unset "
        "VYRE_FAULTS",
        "%s: no memory for %s: the fault 'allocation' was injected here",
        function, amount);
    return;
  }
  (void)VYRE_FAIL_WITH(
      st, VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, field,
      VYRE_NUMBERS({"requested", requested}),
      "free memory, raise the allocator's limit, or split the work",
      "%s: no memory for %s", function, amount);
}

#define NAME_CASE(name, number, text) \
  case name:                          \
    return text;

const char *vyre_code_name(vyre_code code) {
  switch (code) { VYRE_CODE_MAP(NAME_CASE) }
  return "?";
}

const char *vyre_kind_name(vyre_kind kind) {
  switch (kind) { VYRE_KIND_MAP(NAME_CASE) }
  return "?";
}

bool vyre_status_number_get(const vyre_status *st, const char *name,
                            uint64_t *out) {
  if (!st || !name || !out) return false;
  for (uint32_t i = 0; i < st->number_count && i < VYRE_STATUS_MAX_NUMBERS;
       i++) {
    if (strcmp(st->numbers[i].name, name) != 0) continue;
    *out = st->numbers[i].value;
    return true;
  }
  return false;
}
