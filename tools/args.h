/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads the flags and operands of one command. */
#ifndef VYRE_TOOLS_ARGS_H
#define VYRE_TOOLS_ARGS_H

#include "problem.h"

typedef enum flag_type {
  FLAG_SWITCH, /* out: bool */
  FLAG_U64,    /* out: uint64_t */
  FLAG_TEXT,   /* out: const char * */
  FLAG_CHOICE, /* out: size_t, position in choices */
} flag_type;

typedef struct flag {
  const char *name; /* "--initial" */
  void *out;
  const char *const *choices; /* ends with NULL */
  flag_type type;
  bool required;
  bool given; /* set by args_read */
} flag;

typedef struct arguments {
  const char *command; /* "vyre plan queue" */
  flag *flags;
  size_t flag_count;
  const char *operand_name; /* "FILE"; NULL: takes none */
  const char **operand;
} arguments;

/* Reads `--flag value`, `--flag=value` and the operand, which is required if
 * there is one. False with a usage problem at the first word that is wrong. */
bool args_read(const arguments *spec, int count, char **words, problem *out);

/* Whether @p name stands among the words before "--". */
bool args_has(int count, char **words, const char *name);

/* A word that is no command, with the command it may have been meant to be. */
bool args_unknown(problem *out, const char *command, const char *what,
                  const char *word, const char *const *names, size_t count);

/* Prints a help text, or {"ok":true,"help":...}. Returns the exit code. */
int print_help(const char *text, bool json);

#endif
