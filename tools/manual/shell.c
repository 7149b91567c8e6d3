/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Completions for bash, zsh and fish. */
#include <string.h>

#include "vyre/device.h"
#include "vyre/diagnostic.h"
#include "vyre/emit.h"

#include "manual/manual.h"

/* Returns the word to type after `vyre`, or after the name of the group. */
static const char *last_word(const command_doc *command) {
  const command_group *group = group_of(command);
  return command->name + (group ? strlen(group->name) + 1 : 0);
}

/* Writes the commands of a group; with NULL, single commands and groups. */
static void put_commands(const command_group *group, sink *out) {
  for (size_t i = 0; i < command_count; i++) {
    if (group_of(&command_table[i]) != group) continue;
    sink_format(out, "%s ", last_word(&command_table[i]));
  }
  for (size_t i = 0; !group && i < command_group_count; i++) {
    sink_format(out, "%s ", command_groups[i].name);
  }
}

static void put_group_names(const char *between, sink *out) {
  for (size_t i = 0; i < command_group_count; i++) {
    sink_format(out, "%s%s", i ? between : "", command_groups[i].name);
  }
}

static void put_flags(const command_doc *command, sink *out) {
  for (size_t i = 0; i < command->flag_count; i++) {
    if (command->flags[i].letter) {
      sink_format(out, "%s ", command->flags[i].letter);
    }
    sink_format(out, "%s ", command->flags[i].name);
  }
  sink_text(out, "--help");
}

static bool has_choices(const flag_doc *flag) {
  return flag->choices || flag->type == FLAG_DEVICE;
}

/* Writes the built-in backends. Their devices differ between machines. */
static void put_devices(sink *out) {
  vyre_device_info info;
  sink_text(out, "auto");
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    if (info.index == 0) sink_format(out, " %.40s", info.backend);
  }
}

static void put_choices(const flag_doc *flag, sink *out) {
  if (!flag->choices) {
    put_devices(out);
    return;
  }
  for (size_t i = 0; flag->choices[i]; i++) {
    sink_format(out, "%s%s", i ? " " : "", flag->choices[i]);
  }
}

static void put_rules(sink *out) {
  size_t count;
  const vyre_rule *rules = vyre_rules(&count);
  for (size_t i = 0; i < count; i++) {
    sink_format(out, "%s%s", i ? " " : "", rules[i].id);
  }
}

static void put_passes(sink *out) {
  for (uint32_t i = 0; vyre_pass_at(i); i++) {
    sink_format(out, "%s%s", i ? " " : "", vyre_pass_at(i));
  }
}

/* Calls @p use with every option of the built-in backends. */
static void each_option(sink *out, void (*use)(const char *backend,
                                               const vyre_device_option *option,
                                               sink *out)) {
  vyre_device_info info;
  vyre_device_option option;
  for (size_t i = 0; vyre_device_info_at(i, &info); i++) {
    if (info.index != 0) continue;
    for (size_t k = 0; vyre_device_option_at(info.backend, k, &option); k++) {
      use(info.backend, &option, out);
    }
  }
}

static void put_option_name(const char *backend,
                            const vyre_device_option *option, sink *out) {
  sink_format(out, "%.40s.%s= ", backend, option->name);
}

/* Writes a pattern of `case` with the values of the option. */
static void put_option_values(const char *backend,
                              const vyre_device_option *option, sink *out) {
  if (!option->values) return;
  sink_format(out, "    %.40s.%s) words='auto %s' ;;\n", backend, option->name,
              option->values);
}

static bool is_file(const flag_doc *flag) {
  return flag->value && strstr(flag->value, "FILE") != NULL;
}

/* Writes 'text' quoted for a shell. */
static void put_quoted(const char *text, sink *out) {
  sink_text(out, "'");
  for (; *text; text++) {
    if (*text == '\'') {
      sink_text(out, "'\\''");
    } else if (*text == '\n') {
      sink_text(out, " ");
    } else {
      sink_bytes(out, text, 1);
    }
  }
  sink_text(out, "'");
}

/* --- bash --------------------------------------------------------------------*/

static void put_bash_command(const command_doc *command, sink *out) {
  sink_format(out, "    '%s')\n", command->name);
  for (size_t i = 0; i < command->flag_count; i++) {
    const flag_doc *flag = &command->flags[i];
    if (!flag->value || is_file(flag)) continue;
    sink_format(out, "      if [[ $last == %s ]]; then words='", flag->name);
    if (has_choices(flag)) put_choices(flag, out);
    if (strcmp(flag->name, "--dump-after") == 0) put_passes(out);
    if (strcmp(flag->name, "--option") == 0) each_option(out, put_option_name);
    sink_text(out, "' files=''; return; fi\n");
  }
  sink_text(out, "      words='");
  if (command->operand_kind == OPERAND_RULE) {
    put_rules(out);
    sink_text(out, " ");
  }
  put_flags(command, out);
  sink_format(out, "' files='%s' ;;\n",
              command->operand_kind == OPERAND_NONE ||
                      command->operand_kind == OPERAND_RULE
                  ? ""
                  : "yes");
}

void put_bash(sink *out) {
  sink_text(out,
            "# bash completion for vyre. Generated from "
            "tools/cli/command_table.c.\n"
            "# Prints the names that the kernel file on the command line "
            "declares.\n"
            "_vyre_names() { # patterns: start of a declaration, and what "
            "follows the name\n"
            "  local word\n"
            "  for word in \"${COMP_WORDS[@]:2}\"; do\n"
            "    if [ -f \"$word\" ]; then\n"
            "      sed -nE \"s/^[[:space:]]*($1)[[:space:]]+"
            "([A-Za-z_][A-Za-z_0-9]*)${2-}.*/\\\\2/p\" \"$word\"\n"
            "      return\n"
            "    fi\n"
            "  done\n"
            "}\n"
            "\n"
            "# Prints the values of the backend option $1.\n"
            "_vyre_option_values() {\n"
            "  local words=''\n"
            "  case $1 in\n");
  each_option(out, put_option_values);
  sink_text(out,
            "  esac\n"
            "  echo \"$words\"\n"
            "}\n"
            "\n"
            "_vyre_words() { # command, last word\n"
            "  local last=$2\n"
            "  files=''\n"
            "  case $1 in\n"
            "    '') words='");
  put_commands(NULL, out);
  sink_text(out, "help --help --version' ;;\n    'help') words='");
  put_commands(NULL, out);
  sink_text(out, "' ;;\n");
  for (size_t i = 0; i < command_group_count; i++) {
    sink_format(out, "    '%s') words='", command_groups[i].name);
    put_commands(&command_groups[i], out);
    sink_text(out, "--help' ;;\n");
  }
  for (size_t i = 0; i < command_count; i++) {
    put_bash_command(&command_table[i], out);
  }
  sink_text(
      out,
      "  esac\n"
      "}\n"
      "\n"
      "_vyre() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} command='' words='' files=''\n"
      "  if [ \"$COMP_CWORD\" -gt 1 ]; then command=${COMP_WORDS[1]}; fi\n"
      "  case $command in ");
  put_group_names("|", out);
  sink_text(
      out,
      ")\n"
      "    if [ \"$COMP_CWORD\" -gt 2 ]; then "
      "command=\"$command ${COMP_WORDS[2]}\"; fi ;;\n"
      "  esac\n"
      "  _vyre_words \"$command\" \"${COMP_WORDS[COMP_CWORD - 1]}\"\n"
      "  case ${COMP_WORDS[COMP_CWORD - 1]} in\n"
      "    -k | --kernel) words=$(_vyre_names kernel) files='' ;;\n"
      "    --set)\n"
      "      words=$(_vyre_names 'buffer|uniform' | sed 's/$/=/') files=''\n"
      "      compopt -o nospace 2>/dev/null ;;\n"
      "    --out)\n"
      "      words=$(_vyre_names buffer "
      "'[[:space:]]*:[[:space:]]*(read_)?write' | sed 's/$/=/') "
      "files=''\n"
      "      compopt -o nospace 2>/dev/null ;;\n"
      "    --option) compopt -o nospace 2>/dev/null ;;\n"
      "  esac\n"
      "  # bash splits at =, so that NAME=VALUE is three words.\n"
      "  local at=$COMP_CWORD\n"
      "  if [ \"$current\" = = ]; then current=''; else at=$((at - 1)); fi\n"
      "  if [ \"$at\" -gt 2 ] && [ \"${COMP_WORDS[at]}\" = = ]; then\n"
      "    case ${COMP_WORDS[at - 2]} in\n"
      "      --set) words='zeros: iota: fill: random: values: text: raw:' "
      "files=yes\n"
      "        compopt -o nospace 2>/dev/null ;;\n"
      "      --out) words='raw:' files=yes ;;\n"
      "      --option) words=$(_vyre_option_values \"${COMP_WORDS[at - 1]}\") "
      "files='' ;;\n"
      "    esac\n"
      "  fi\n"
      "  if [ -n \"$files\" ]; then\n"
      "    compopt -o filenames 2>/dev/null\n"
      "    mapfile -t COMPREPLY < <(compgen -f -W \"$words\" -- \"$current\")\n"
      "  else\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n"
      "  fi\n"
      "}\n"
      "complete -F _vyre vyre\n");
}

/* --- zsh ---------------------------------------------------------------------*/

static void put_zsh_flag(const flag_doc *flag, const char *name, sink *out) {
  sink spec = {0};
  sink_format(&spec, "%s%s[", flag->type == FLAG_LIST ? "*" : "", name);
  for (const char *c = flag->help; *c; c++) {
    if (strchr("[]:\\", *c)) sink_text(&spec, "\\");
    sink_bytes(&spec, c, 1);
  }
  sink_text(&spec, "]");
  if (flag->value) {
    sink_format(&spec, ":%s:", flag->value);
    if (has_choices(flag)) {
      sink_text(&spec, "(");
      put_choices(flag, &spec);
      sink_text(&spec, ")");
    } else if (is_file(flag)) {
      sink_text(&spec, "_files");
    }
  }
  sink_bytes(&spec, "", 1);
  sink_text(out, " \\\n        ");
  put_quoted(spec.data ? spec.data : "", out);
  if (spec.failed) out->failed = true;
  sink_deinit(&spec);
}

static void put_zsh_command(const command_doc *command, sink *out) {
  sink_format(out, "    '%s')\n      _arguments", command->name);
  for (size_t i = 0; i < command->flag_count; i++) {
    const flag_doc *flag = &command->flags[i];
    if (flag->letter) put_zsh_flag(flag, flag->letter, out);
    put_zsh_flag(flag, flag->name, out);
  }
  sink_text(out, " \\\n        '--help[explain the command]'");
  if (command->operand_kind == OPERAND_RULE) {
    sink_text(out, " \\\n        ':rule:(");
    put_rules(out);
    sink_text(out, ")'");
  } else if (command->operand_kind != OPERAND_NONE) {
    sink_format(out, " \\\n        '%s:file:_files'",
                command->operand_kind == OPERAND_FILES ? "*" : "");
  }
  sink_text(out, " ;;\n");
}

static void put_zsh_item(const char *name, const char *summary, sink *out) {
  sink item = {0};
  sink_format(&item, "%s:%s", name, summary);
  sink_bytes(&item, "", 1);
  sink_text(out, "        ");
  put_quoted(item.data ? item.data : "", out);
  sink_text(out, "\n");
  if (item.failed) out->failed = true;
  sink_deinit(&item);
}

static void put_zsh_list(const command_group *group, sink *out) {
  for (size_t i = 0; i < command_count; i++) {
    const command_doc *command = &command_table[i];
    if (group_of(command) != group) continue;
    put_zsh_item(last_word(command), command->summary, out);
  }
}

void put_zsh(sink *out) {
  sink_text(out,
            "#compdef vyre\n"
            "# zsh completion for vyre. Generated from "
            "tools/cli/command_table.c.\n"
            "local command=$words[2]\n"
            "if (( CURRENT == 2 )); then command=''; fi\n"
            "local group=''\n"
            "case $command in ");
  put_group_names("|", out);
  sink_text(out,
            ") group=$command ;; esac\n"
            "if [[ -n $group ]] && (( CURRENT > 3 )); then\n"
            "  command=\"$group $words[3]\"; group=''\n"
            "  shift words; (( CURRENT-- ))\n"
            "fi\n"
            "if [[ -n $command && -z $group ]]; then\n"
            "  shift words; (( CURRENT-- ))\n"
            "fi\n"
            "case $command in\n"
            "    '')\n      local -a commands=(\n");
  put_zsh_list(NULL, out);
  for (size_t i = 0; i < command_group_count; i++) {
    put_zsh_item(command_groups[i].name, command_groups[i].title, out);
  }
  sink_text(out,
            "        'help:explain a command'\n"
            "      )\n      _describe command commands ;;\n");
  for (size_t i = 0; i < command_group_count; i++) {
    const command_group *group = &command_groups[i];
    sink_format(out, "    %s)\n      local -a %ss=(\n", group->name,
                group->noun);
    put_zsh_list(group, out);
    sink_format(out, "      )\n      _describe %s %ss ;;\n", group->noun,
                group->noun);
  }
  for (size_t i = 0; i < command_count; i++) {
    put_zsh_command(&command_table[i], out);
  }
  sink_text(out, "esac\n");
}

/* --- fish --------------------------------------------------------------------*/

static void put_fish_condition(const command_doc *command, sink *out) {
  sink_text(out, "complete -c vyre -n '");
  const command_group *group = group_of(command);
  if (group) {
    sink_format(out,
                "__fish_seen_subcommand_from %s; and "
                "__fish_seen_subcommand_from %s",
                group->name, last_word(command));
  } else { /* `vyre explain` differs from `vyre cache explain`. */
    sink_format(out,
                "__fish_seen_subcommand_from %s; and not "
                "__fish_seen_subcommand_from ",
                command->name);
    put_group_names(" ", out);
  }
  sink_text(out, "'");
}

static void put_fish_flag(const command_doc *command, const flag_doc *flag,
                          sink *out) {
  put_fish_condition(command, out);
  sink_format(out, " -l %s", flag->name + 2);
  if (flag->letter) sink_format(out, " -s %s", flag->letter + 1);
  if (has_choices(flag)) {
    sink_text(out, " -x -a '");
    put_choices(flag, out);
    sink_text(out, "'");
  } else if (is_file(flag)) {
    sink_text(out, " -r -F");
  } else if (flag->value) {
    sink_text(out, " -x");
  }
  sink_text(out, " -d ");
  put_quoted(flag->help, out);
  sink_text(out, "\n");
}

static void put_fish_command(const command_doc *command, sink *out) {
  const command_group *group = group_of(command);
  sink_format(out, "complete -c vyre -f -n '%s%s' -a %s -d ",
              group ? "__fish_seen_subcommand_from " : "__fish_use_subcommand",
              group ? group->name : "", last_word(command));
  put_quoted(command->summary, out);
  sink_text(out, "\n");
  for (size_t i = 0; i < command->flag_count; i++) {
    put_fish_flag(command, &command->flags[i], out);
  }
  if (command->operand_kind == OPERAND_RULE) {
    put_fish_condition(command, out);
    sink_text(out, " -f -a '");
    put_rules(out);
    sink_text(out, "'\n");
  }
}

void put_fish(sink *out) {
  sink_text(out,
            "# fish completion for vyre. Generated from "
            "tools/cli/command_table.c.\n"
            "complete -c vyre -f -n __fish_use_subcommand -a help -d 'explain "
            "a command'\n");
  for (size_t i = 0; i < command_group_count; i++) {
    sink_format(out, "complete -c vyre -f -n __fish_use_subcommand -a %s -d ",
                command_groups[i].name);
    put_quoted(command_groups[i].title, out);
    sink_text(out, "\n");
  }
  for (size_t i = 0; i < command_count; i++) {
    put_fish_command(&command_table[i], out);
  }
}
