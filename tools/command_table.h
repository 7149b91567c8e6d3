/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every command and every flag, once: --help, the reader of flags, the man page
 * and the shell completions are all made from this table. */
#ifndef VYRE_TOOLS_COMMAND_TABLE_H
#define VYRE_TOOLS_COMMAND_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "sink.h"

typedef enum flag_type {
  FLAG_SWITCH, /* out: bool */
  FLAG_U64,    /* out: uint64_t */
  FLAG_TEXT,   /* out: const char * */
  FLAG_DEVICE, /* the same: a name for vyre_device_open */
  FLAG_CHOICE, /* out: size_t, position in choices */
  FLAG_LIST,   /* out: word_list; may be given several times */
} flag_type;

typedef struct flag_doc {
  const char *name;  /* "--initial" */
  const char *value; /* "N", "FILE"; NULL for a switch */
  const char *help;  /* lines, without a newline at the end */
  flag_type type;
  const char *letter;         /* "-k"; NULL: none */
  const char *const *choices; /* ends with NULL */
  bool required;
} flag_doc;

/* What an operand is, for completion. */
typedef enum operand_type {
  OPERAND_NONE,
  OPERAND_FILE,
  OPERAND_FILES, /* one or more */
  OPERAND_RULE,  /* none or one */
} operand_type;

typedef struct command_doc {
  const char *name;    /* "plan queue": the words after `vyre` */
  const char *summary; /* one line */
  operand_type operand_kind;
  const char *operand;   /* as usage shows it; NULL: none */
  const flag_doc *flags; /* all take --json, and it stands here too */
  size_t flag_count;
  const char *body;    /* lines below the flags; "": none */
  const char *example; /* lines, the first may be a title; ends with newline */
} command_doc;

/* In the order in which help lists them; subcommands of plan come last. */
extern const command_doc command_table[];
extern const size_t command_count;

/* The command with that name ("plan queue"); NULL if there is none. */
const command_doc *find_command(const char *name);

/* The --help of one command, of `vyre plan`, and of all. */
void put_command_help(const command_doc *command, sink *out);
void put_plan_help(sink *out);
void put_main_help(sink *out);

/* "vyre run FILE|- [--set NAME=SPEC]... [--json]", in lines of 79 columns, those
 * after the first indented by @p indent. */
void put_usage(const command_doc *command, size_t indent, sink *out);

/* "-k, --kernel NAME" */
void put_flag_name(const flag_doc *flag, sink *out);

#endif
