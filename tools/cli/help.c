/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes help from the command table. */
#include <string.h>

#include "cli/command_table.h"

enum { WIDTH = 79 };

static void put_spaces(sink *out, size_t count) {
  while (count-- > 0) sink_bytes(out, " ", 1);
}

/* Writes "final|participates" for a choice, otherwise the name of the value. */
static void put_value(const flag_doc *flag, sink *out) {
  if (!flag->choices) {
    sink_text(out, flag->value);
    return;
  }
  for (size_t i = 0; flag->choices[i]; i++) {
    if (i) sink_text(out, "|");
    sink_text(out, flag->choices[i]);
  }
}

static void put_usage_part(const flag_doc *flag, sink *out) {
  if (!flag->required) sink_text(out, "[");
  sink_text(out, flag->letter ? flag->letter : flag->name);
  if (flag->value) {
    sink_text(out, " ");
    put_value(flag, out);
  }
  if (!flag->required) sink_text(out, "]");
  if (flag->type == FLAG_LIST) sink_text(out, "...");
}

void put_usage(const command_doc *command, size_t indent, sink *out) {
  size_t begin = out->length;
  sink_format(out, "vyre %s", command->name);
  size_t hang = indent + (out->length - begin) + 1;
  size_t column = hang - 1;
  for (size_t i = 0; i <= command->flag_count; i++) {
    sink part = {0};
    if (i > 0) {
      put_usage_part(&command->flags[i - 1], &part);
    } else if (command->operand) {
      sink_text(&part, command->operand);
    } else {
      continue;
    }
    if (column + 1 + part.length > WIDTH) {
      sink_text(out, "\n");
      put_spaces(out, hang);
      column = hang;
    } else {
      sink_text(out, " ");
      column++;
    }
    sink_bytes(out, part.data, part.length);
    column += part.length;
    if (part.failed) out->failed = true;
    sink_deinit(&part);
  }
  sink_text(out, "\n");
}

void put_flag_name(const flag_doc *flag, sink *out) {
  if (flag->letter) sink_format(out, "%s, ", flag->letter);
  sink_text(out, flag->name);
  if (flag->value) sink_format(out, " %s", flag->value);
}

static size_t name_width(const flag_doc *flag) {
  return (flag->letter ? strlen(flag->letter) + 2 : 0) + strlen(flag->name) +
         (flag->value ? strlen(flag->value) + 1 : 0);
}

/* Writes the words of @p text in lines of at most LINE columns. The first line starts
 * at column @p column; the following ones are indented to it. */
static void put_wrapped(const char *text, size_t column, sink *out) {
  enum { LINE = 79 };
  size_t at = column;
  for (const char *word = text; *word;) {
    size_t length = strcspn(word, " \n");
    if (at > column && at + 1 + length > LINE) {
      sink_text(out, "\n");
      put_spaces(out, column);
      at = column;
    }
    if (at > column) {
      sink_text(out, " ");
      at++;
    }
    sink_bytes(out, word, length);
    at += length;
    word += length;
    word += strspn(word, " \n");
  }
  sink_text(out, "\n");
}

static void put_flag(const flag_doc *flag, size_t width, sink *out) {
  sink_text(out, "  ");
  put_flag_name(flag, out);
  put_spaces(out, width - name_width(flag) + 2);
  put_wrapped(flag->help, width + 4, out);
}

void put_command_help(const command_doc *command, sink *out) {
  size_t width = 0;
  sink_format(out, "vyre %s: %s\n\nusage: ", command->name, command->summary);
  put_usage(command, strlen("usage: "), out);
  sink_text(out, "\n");
  for (size_t i = 0; i < command->flag_count; i++) {
    size_t own = name_width(&command->flags[i]);
    if (own > width) width = own;
  }
  for (size_t i = 0; i < command->flag_count; i++) {
    put_flag(&command->flags[i], width, out);
  }
  sink_text(out, "\n");
  sink_text(out, command->body);
  sink_text(out, "\n");
  sink_text(out, command->example);
}

/* Width of the second words of a group, with a space behind the longest. */
static int member_width(const command_group *group) {
  int width = 10;
  for (size_t i = 0; i < command_count; i++) {
    const command_doc *command = &command_table[i];
    int length = (int)(strlen(command->name) - strlen(group->name));
    if (group_of(command) == group && length > width) width = length;
  }
  return width;
}

void put_group_help(const command_group *group, sink *out) {
  int width = member_width(group);
  sink_format(out, "vyre %s: %s\n\nusage: vyre %s %s ...\n\n%ss:\n",
              group->name, group->title, group->name, group->upper,
              group->noun);
  for (size_t i = 0; i < command_count; i++) {
    const command_doc *command = &command_table[i];
    if (group_of(command) != group) continue;
    sink_format(out, "  %-*s %s\n", width,
                command->name + strlen(group->name) + 1, command->summary);
  }
  sink_format(out,
              "\nRun 'vyre %s %s --help' for flags and an example.\n%s\n%s",
              group->name, group->upper, group->body, group->example);
}

void put_main_help(sink *out) {
  sink_text(out,
            "vyre: compile, check, run and plan compute kernels\n\nusage: vyre "
            "COMMAND ...\n\ncommands:\n");
  for (size_t i = 0; i < command_count; i++) {
    const command_doc *command = &command_table[i];
    if (group_of(command)) continue;
    sink_format(out, "  %-10s %s\n", command->name, command->summary);
  }
  for (size_t i = 0; i < command_group_count; i++) {
    sink_format(out, "  %-10s %s\n", command_groups[i].name,
                command_groups[i].summary);
  }
  sink_text(
      out,
      "  help       explain a command: vyre help run\n\nRun 'vyre COMMAND "
      "--help' for flags and an example, 'vyre --version' for the\nversion. "
      "Every command accepts --json and then writes one JSON object "
      "to\nstandard output, for errors too.\n\nExit codes: 0 success, 1 error "
      "in the kernel or its input, 2 error in the\ncommand line, 3 device "
      "failure.\n\nexample:\n  vyre run examples/saxpy.vyre --set a=2 --set "
      "x=iota:8 --set y=fill:0.5:8\n");
}
