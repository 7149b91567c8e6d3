/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every command and every flag, once: --help, the reader of flags, the man page
 * and the shell completions are all made from this table. */
#ifndef VYRE_TOOLS_CLI_COMMAND_TABLE_H
#define VYRE_TOOLS_CLI_COMMAND_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/sink.h"

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
  const char *help;  /* one paragraph; the printer breaks its lines */
  flag_type type;
  const char *letter;         /* "-k"; NULL: none */
  const char *const *choices; /* ends with NULL */
  bool required;
  int min;      /* smallest value */
  uint64_t max; /* largest value; 0: UINT64_MAX */
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

/* Commands of two words, such as `plan queue`: the first. */
typedef struct command_group {
  const char *name;    /* "plan" */
  const char *summary; /* in the list of all commands */
  const char *title;   /* of its own help */
  const char *noun;    /* what the second word is: "subject" */
  const char *upper;   /* the same in capitals */
  const char *body;    /* lines below the list; ends with a newline */
  const char *example;
} command_group;

extern const command_group command_groups[];
extern const size_t command_group_count;

/* In the order in which help lists them; those of groups come last. */
extern const command_doc command_table[];
extern const size_t command_count;

/* The command with that name ("plan queue"); NULL if there is none. */
const command_doc *find_command(const char *name);

/* The group with that name; NULL if there is none. */
const command_group *find_group(const char *name);
/* The group that a command belongs to; NULL if it stands alone. */
const command_group *group_of(const command_doc *command);

/* The --help of one command, of a group, and of all. */
void put_command_help(const command_doc *command, sink *out);
void put_group_help(const command_group *group, sink *out);
void put_main_help(sink *out);

/* "vyre run FILE|- [--set NAME=SPEC]... [--json]", in lines of 79 columns, those
 * after the first indented by @p indent. */
void put_usage(const command_doc *command, size_t indent, sink *out);

/* "-k, --kernel NAME" */
void put_flag_name(const flag_doc *flag, sink *out);

#endif
