/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The table of all commands and flags. The parser, --help, the manual page
 * and the shell completions are derived from it. */
#ifndef VYRE_TOOLS_CLI_COMMAND_TABLE_H
#define VYRE_TOOLS_CLI_COMMAND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/sink.h"

typedef enum flag_type {
  FLAG_SWITCH, /* out: bool */
  FLAG_U64,    /* out: uint64_t */
  FLAG_BYTES,  /* out: uint64_t; K, M or G may follow the number */
  FLAG_TEXT,   /* out: const char * */
  FLAG_DEVICE, /* const char *, a name for vyre_device_open */
  FLAG_CHOICE, /* out: size_t, position in choices */
  FLAG_LIST,   /* out: word_list; may be given several times */
} flag_type;

typedef struct flag_doc {
  const char *name;  /* "--initial" */
  const char *value; /* "N", "FILE"; NULL for a switch */
  const char *help;  /* one paragraph; the printer breaks its lines */
  flag_type type;
  const char *letter;         /* "-k"; NULL: no short form */
  const char *const *choices; /* ends with NULL */
  bool required;
  int min;      /* smallest value */
  uint64_t max; /* largest value; 0: UINT64_MAX */
} flag_doc;

/* Kinds of operands; completion depends on them. */
typedef enum operand_type {
  OPERAND_NONE,
  OPERAND_FILE,
  OPERAND_FILES, /* one or more */
  OPERAND_RULE,  /* at most one */
} operand_type;

typedef struct command_doc {
  const char *name;    /* "plan queue": the words after `vyre` */
  const char *summary; /* one line */
  operand_type operand_kind;
  const char *operand;   /* as shown by usage; NULL: no operand */
  const flag_doc *flags; /* includes --json, which every command has */
  size_t flag_count;
  const char *body;    /* text below the flags; may be empty */
  const char *example; /* may start with a title; ends with a newline */
} command_doc;

/* The first word of commands that have two, such as `plan queue`. */
typedef struct command_group {
  const char *name;    /* "plan" */
  const char *summary; /* in the list of all commands */
  const char *title;   /* title of the group's help */
  const char *noun;    /* word for the second word: "subject" */
  const char *upper;   /* the same in capitals */
  const char *body;    /* text below the list; ends with a newline */
  const char *example;
} command_group;

extern const command_group command_groups[];
extern const size_t command_group_count;

/* In the order of the help; commands of groups come last. */
extern const command_doc command_table[];
extern const size_t command_count;

/* Returns the command @p name ("plan queue"), or NULL. */
const command_doc *find_command(const char *name);

/* Returns the group @p name, or NULL. */
const command_group *find_group(const char *name);
/* Returns the group of a command, or NULL. */
const command_group *group_of(const command_doc *command);

/* Write the help of a command, of a group, and of all commands. */
void put_command_help(const command_doc *command, sink *out);
void put_group_help(const command_group *group, sink *out);
void put_main_help(sink *out);

/* Writes "vyre run FILE|- [--set NAME=SPEC]... [--json]" in lines of 79
 * columns. Continuation lines are indented by @p indent. */
void put_usage(const command_doc *command, size_t indent, sink *out);

/* Writes "-k, --kernel NAME". */
void put_flag_name(const flag_doc *flag, sink *out);

#endif
