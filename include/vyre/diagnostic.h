/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/diagnostic.h
 *  What is wrong with a kernel, where, and what to do about it. */
#ifndef VYRE_DIAGNOSTIC_H
#define VYRE_DIAGNOSTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/writer.h"

/** One finding. Lines and columns count from 1; 0 means that there is no source
 *  (a program made by functions). Columns count bytes. */
typedef struct vyre_diagnostic {
  const char *rule; /* "V012": vyre_rule_find explains it; static storage */
  uint32_t line, column;
  uint32_t length; /* bytes from the column on; at least 1 */
  const char *message;
  const char *fix;
  const char *note; /* what a second place says ("declared here"), or NULL */
  uint32_t note_line, note_column;
} vyre_diagnostic;

/** Findings of one file in the order of their places. Zeroed, it is empty, ready
 *  for use and takes the C library's heap. After 20 findings the rest are only
 *  counted.
 *  Threads: compatible. */
typedef struct vyre_diagnostics {
  vyre_arena arena; /* holds the items and their texts */
  vyre_diagnostic *items;
  size_t count, capacity;
  size_t dropped; /* findings that were not kept */
} vyre_diagnostics;

/** A rule of the language, or what a check of a run may find. Static storage. */
typedef struct vyre_rule {
  const char *id;           /* "V012"; "race", as vyre_finding_name has it */
  const char *title;        /* one line */
  const char *explanation;  /* a paragraph */
  const char *bad_example;  /* a file that breaks it, and no other rule */
  const char *good_example; /* one that just does not */
} vyre_rule;

VYRE_BEGIN

/** Frees all findings. NULL or zeroed is fine; may be used again afterwards.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_diagnostics_deinit(vyre_diagnostics *diagnostics);

/** Prints the findings as people like them: file:line:column, the source line
 *  with a caret below, the fix, the rule. @p source may be NULL.
 *  Returns false if @p writer refused.
 *  Threads: safe.  Blocks: on the writer. */
VYRE_API bool vyre_diagnostics_print(const vyre_diagnostics *diagnostics,
                                     const char *file, const char *source,
                                     size_t source_length, vyre_writer writer);

/** The rule with that id ("V012", "race"; its first letter in either case), or
 *  NULL.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_rule *vyre_rule_find(const char *id);

/** All rules in the order of their ids, then the findings of checks.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_rule *vyre_rules(size_t *count);

VYRE_END

#endif
