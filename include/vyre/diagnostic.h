/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/diagnostic.h
 *  Diagnostics: errors in kernels with their position and a fix, and the rules
 *  of the language behind them. */
#ifndef VYRE_DIAGNOSTIC_H
#define VYRE_DIAGNOSTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/writer.h"

/** Change of the source text: bytes of one line that another text replaces. */
typedef struct vyre_edit {
  uint32_t line, column; /* start of the replaced bytes, from 1 */
  uint32_t length;       /* replaced bytes; 0: the text is inserted */
  const char *text;      /* replacement; "" deletes the bytes */
  uint64_t reserved[2];  /* zero; for future fields */
} vyre_edit;

/** Files of a diagnostic that is not, or not only, in the parsed file. */
typedef struct vyre_diagnostic_files {
  const char *file;      /* file of `line`; NULL: the parsed file */
  const char *text;      /* that line of it; NULL with `file` */
  const char *note_file; /* file of `note_line`; NULL: the parsed file */
  const char *note_text; /* that line of it; NULL with `note_file` */
  uint64_t reserved[2];  /* zero; for future fields */
} vyre_diagnostic_files;

/** One error in a kernel. Lines and columns start at 1; 0 means that the
 *  program has no source text. Columns count bytes. */
typedef struct vyre_diagnostic {
  const char *rule; /* "V012"; vyre_rule_find explains it; static storage */
  uint32_t line, column; /* start of the marked source text */
  uint32_t length;       /* bytes of the marked source text; at least 1 */
  const char *message;   /* description of the error */
  const char *fix;       /* instruction that resolves it */
  /* Description of a second position ("declared here"), or NULL. */
  const char *note;
  uint32_t note_line, note_column; /* second position */
  /* Change that follows `fix`, or NULL if the fix needs a decision. */
  const vyre_edit *edit;
  /* Imported files; NULL if both positions are in the parsed file. An edit is
   * in the file of `line`. */
  const vyre_diagnostic_files *files;
} vyre_diagnostic;

/** Diagnostics of one file, sorted by position. After 20 diagnostics the rest
 *  is only counted. A zeroed struct is empty, ready for use and allocates from
 *  the C heap.
 *  Threads:   compatible. */
typedef struct vyre_diagnostics {
  vyre_arena arena;       /* memory of the items and their strings */
  vyre_diagnostic *items; /* diagnostics */
  size_t count, capacity; /* used and allocated entries of `items` */
  size_t dropped;         /* diagnostics that were only counted */
  uint64_t reserved[4];   /* zero; for future fields */
} vyre_diagnostics;

/** Rule of the language, or kind of finding of a checked run. Static storage.
 */
typedef struct vyre_rule {
  const char *id;           /* "V012", or "race" as in vyre_finding_name */
  const char *title;        /* one line */
  const char *explanation;  /* one paragraph */
  const char *bad_example;  /* source that breaks this rule and no other */
  const char *good_example; /* similar source that does not */
  uint64_t reserved[2];     /* zero; for future fields */
} vyre_rule;

VYRE_BEGIN

/** Frees all diagnostics. The struct can be used again. Accepts NULL and a
 *  zeroed struct.
 *  Threads: compatible.  Blocks: never.  Errors: none. */
VYRE_API void vyre_diagnostics_deinit(vyre_diagnostics *diagnostics);

/** Prints the diagnostics with file:line:column, the source line and a caret,
 *  the fix and the rule. @p source may be NULL. Returns false if @p writer
 *  fails.
 *  Threads:   safe.
 *  Blocks:    on the writer.
 *  Errors:    none. */
VYRE_API bool vyre_diagnostics_print(const vyre_diagnostics *diagnostics,
                                     const char *file, const char *source,
                                     size_t source_length, vyre_writer writer);

/** Returns the rule with this id ("V012", "race"), or NULL. The first letter
 *  can be in either case.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_rule *vyre_rule_find(const char *id);

/** Returns all rules, sorted by id, followed by the kinds of findings. Stores
 *  their number in *count.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_rule *vyre_rules(size_t *count);

VYRE_END

#endif
