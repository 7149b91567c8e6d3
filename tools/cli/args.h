/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parses the flags and operands of one command by its row in the command
 * table. */
#ifndef VYRE_TOOLS_CLI_ARGS_H
#define VYRE_TOOLS_CLI_ARGS_H

#include "cli/command_table.h"
#include "cli/error.h"
#include "io/read_file.h"

/* Values of a flag that may be given several times. */
typedef struct word_list {
  vyre_arena *arena;
  arena_list list; /* const char * */
} word_list;

const char *word_at(const word_list *words, size_t index);

/* A flag and the variable that receives its value. */
typedef struct flag {
  const char *name; /* "--initial", as in the table */
  void *out;        /* type by flag_type */
  bool given;       /* set by args_read */
} flag;

#define FLAG(text, where) {.name = (text), .out = (void *)(where)}

typedef struct arguments {
  const char *command; /* "plan queue" */
  flag *flags;         /* flags that are left out are only checked */
  size_t flag_count;
  const char **operand; /* OPERAND_FILE (required) or OPERAND_RULE */
  word_list *operands;  /* OPERAND_FILES */
} arguments;

/* Parses `--flag value`, `--flag=value` and the operands. Returns false and
 * fills @p out at the first wrong word. */
bool args_read(const arguments *spec, int count, char **words, problem *out);

/* Parses X[,Y[,Z]], the value of flag @p name. Each number is above 0;
 * missing ones are 1. */
bool args_extent(const char *name, const char *text, uint32_t out[3],
                 problem *wrong);

/* Checks the value of --width; 0 stands for a flag that was not given. */
bool args_width(uint64_t width, problem *wrong);

/* Writes --threads and --width as options of device cpu. Returns NULL if
 * both are 0, that is, not given. */
enum { OPTIONS_TEXT = 80 };
const char *args_cpu_options(uint64_t threads, uint64_t width,
                             char out[OPTIONS_TEXT]);

/* Checks the length of the value of --option. */
enum { MAX_OPTIONS = 511 };
bool args_options(const char *text, problem *wrong);

/* Checks that flag @p name and key @p key of the option list @p text are not
 * both given. A @p value of 0 means that the flag was not given. */
bool args_own_option(const char *text, const char *key, const char *name,
                     uint64_t value, problem *wrong);

/* Parses seconds, the value of flag @p name: a number above 0 such as 2 or
 * 0.25, with at most nine digits on each side of the point. */
bool args_seconds(const char *name, const char *text, uint64_t *out_ns,
                  problem *wrong);

/* Returns true if @p name is among the words before "--". */
bool args_has(int count, char **words, const char *name);

/* Fills @p out for an unknown @p word and suggests the most similar of @p
 * names. Returns false. */
bool args_unknown(problem *out, const char *command, const char *what,
                  const char *word, const char *const *names, size_t count);

/* Prints a help text, or {"ok":true,"help":...}, and frees it. Returns the exit
 * code. */
int print_help(sink *text, bool json);

#endif
