/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flags of all commands that read kernel files: --define and -I. */
#ifndef VYRE_TOOLS_CLI_PARSE_OPTIONS_H
#define VYRE_TOOLS_CLI_PARSE_OPTIONS_H

#include "vyre/module.h"

#include "cli/error.h"

/* Stores the value of --define or --import for the files that are parsed next.
 * The value must live until then. Returns false with a problem. Sets *is_known
 * to false for any other flag. */
bool parse_options_add(const char *flag, const char *value, bool *is_known,
                       problem *wrong);

/* Returns the options for vyre_module_parse_with. */
const vyre_module_options *parse_options(void);
/* Returns the same without values of overrides. */
const vyre_module_options *parse_options_of_imports(void);

/* Reads an imported file: a regular file of at most 16 MiB. */
bool read_import(void *context, const char *path, vyre_arena *arena,
                 const char **text, size_t *length);

#endif
