/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the flags and operands of one command, as its row in the table of
 * commands has them. */
#ifndef VYRE_TOOLS_CLI_ARGS_H
#define VYRE_TOOLS_CLI_ARGS_H

#include "cli/command_table.h"
#include "cli/error.h"
#include "io/read_file.h"

/* Words that may be given several times. */
typedef struct word_list {
  vyre_arena *arena;
  arena_list list; /* of const char * */
} word_list;

const char *word_at(const word_list *words, size_t index);

/* Where the value of a flag goes. */
typedef struct flag {
  const char *name; /* "--initial", as in the table */
  void *out;        /* see flag_type */
  bool given;       /* set by args_read */
} flag;

#define FLAG(text, where) {.name = (text), .out = (void *)(where)}

typedef struct arguments {
  const char *command; /* "plan queue" */
  flag *flags;         /* of the table's; those left out are only checked */
  size_t flag_count;
  const char **operand; /* OPERAND_FILE, which is required, or OPERAND_RULE */
  word_list *operands;  /* OPERAND_FILES */
} arguments;

/* Reads `--flag value`, `--flag=value` and the operands. False with a usage
 * problem at the first word that is wrong. */
bool args_read(const arguments *spec, int count, char **words, problem *out);

/* The value of flag @p name: X[,Y[,Z]], whole numbers above 0; what is left out
 * is 1. */
bool args_extent(const char *name, const char *text, uint32_t out[3],
                 problem *wrong);

/* Whether --width can be; 0: not given. */
bool args_width(uint64_t width, problem *wrong);

/* --threads and --width, 0 where they are not given, as options of device cpu;
 * NULL if neither is. */
enum { OPTIONS_TEXT = 80 };
const char *args_cpu_options(uint64_t threads, uint64_t width,
                             char out[OPTIONS_TEXT]);

/* Of --option: as long as a context takes it, with widths that there are. */
enum { MOST_OPTIONS = 511 };
bool args_options(const char *text, problem *wrong);

/* Whether flag @p name, which has a @p value unless that is 0, is not in the
 * options @p text as well, as @p key there. */
bool args_own_option(const char *text, const char *key, const char *name,
                     uint64_t value, problem *wrong);

/* The value of flag @p name: seconds above 0, as in 2 or 0.25, with at most
 * nine digits on each side of the point. */
bool args_seconds(const char *name, const char *text, uint64_t *out_ns,
                  problem *wrong);

/* Whether @p name stands among the words before "--". */
bool args_has(int count, char **words, const char *name);

/* A word that is no command, with the command it may have been meant to be. */
bool args_unknown(problem *out, const char *command, const char *what,
                  const char *word, const char *const *names, size_t count);

/* Prints a help text, or {"ok":true,"help":...}, and frees it. Returns the exit
 * code. */
int print_help(sink *text, bool json);

#endif
