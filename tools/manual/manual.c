/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* vyre-manual man|bash|zsh|fish: prints the manual page of the command or a shell's
 * completion. vyre-manual api FILE: prints the manual page of a public header.
 * vyre-manual functions FILE: lists its functions. Run by the build. */
#include "manual/manual.h"

#include <stdio.h>
#include <string.h>

#include "vyre/version.h"

/* Escapes backslashes and dashes, and periods and quotes at the start of a line, which
 * would make the line a request. */
void put_roff(const char *text, size_t length, sink *out) {
  for (size_t i = 0; i < length; i++) {
    bool first = i == 0 || text[i - 1] == '\n';
    if (first && (text[i] == '.' || text[i] == '\'')) sink_text(out, "\\&");
    if (text[i] == '\\') {
      sink_text(out, "\\e");
    } else if (text[i] == '-') {
      sink_text(out, "\\-");
    } else {
      sink_bytes(out, &text[i], 1);
    }
  }
}

static void put_roff_text(const char *text, sink *out) {
  put_roff(text, strlen(text), out);
}

/* Writes text with its line breaks. */
static void put_verbatim(const char *text, sink *out) {
  sink_text(out, ".nf\n");
  put_roff_text(text, out);
  sink_text(out, ".fi\n");
}

static void put_command(const command_doc *command, sink *out) {
  sink usage = {0}, name = {0};
  sink_text(out, ".SS ");
  sink_format(&name, "vyre %s", command->name);
  put_roff(name.data, name.length, out);
  sink_text(out, "\n");
  put_roff_text(command->summary, out);
  sink_text(out, ".\n.PP\n.nf\n");
  put_usage(command, 0, &usage);
  put_roff(usage.data, usage.length, out);
  sink_text(out, ".fi\n");
  for (size_t i = 0; i < command->flag_count; i++) {
    name.length = 0;
    put_flag_name(&command->flags[i], &name);
    sink_text(out, ".TP\n.B ");
    put_roff(name.data, name.length, out);
    sink_text(out, "\n");
    put_roff_text(command->flags[i].help, out);
    sink_text(out, "\n");
  }
  sink_text(out, ".PP\n");
  put_verbatim(command->body, out);
  sink_text(out, ".PP\n");
  put_verbatim(command->example, out);
  if (usage.failed || name.failed) out->failed = true;
  sink_deinit(&usage);
  sink_deinit(&name);
}

static void put_environment(sink *out) {
  static const char *const rows[][2] = {
      {"VYRE_OPTIONS", "Backend options, such as cpu.threads=2,cpu.width=8."},
      {"VYRE_BACKEND_PATH",
       "Shared objects with backends: files, or folders whose files *.so are "
       "loaded, separated by colons."},
      {"VYRE_LLVM", "File to load LLVM 19 from; none disables LLVM."},
      {"VYRE_VULKAN",
       "File of the Vulkan loader; none disables device vulkan."},
      {"VYRE_CACHE_DIR",
       "Directory of the disk cache; empty disables it. The default is "
       "$XDG_CACHE_HOME/vyre or ~/.cache/vyre."},
      {"VYRE_CACHE_BYTES", "Size limit of the disk cache."},
      {"VYRE_TRACE", "File to write a trace to."},
      {"VYRE_FAULTS", "Faults to inject, for tests of programs."},
  };
  sink_text(out, ".SH ENVIRONMENT\n");
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sink_format(out, ".TP\n.B %s\n", rows[i][0]);
    put_roff_text(rows[i][1], out);
    sink_text(out, "\n");
  }
  sink_text(out,
            ".SH SEE ALSO\n.BR vyre_dispatch (3),\n.BR vyre_device (3),\n"
            ".BR vyre_module (3)\n");
}

void put_man(sink *out) {
  sink_format(out,
              ".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n"
              ".\\\" Generated from tools/cli/command_table.c.\n"
              ".TH VYRE 1 \"\" \"vyre %s\" \"User Commands\"\n",
              vyre_version_string());
  sink_text(out,
            ".SH NAME\nvyre \\- compile, check, run and plan compute kernels\n"
            ".SH SYNOPSIS\n.B vyre\n.I COMMAND\n[\\fIARGUMENT\\fR...]\n"
            ".SH DESCRIPTION\n"
            "A kernel is a small program that runs once for every element of "
            "its data.\n"
            ".B vyre\n"
            "checks kernels, runs them on data in files, and plans what a run "
            "will take.\n"
            "Every command takes\n.BR \\-\\-help .\n"
            "With\n.B \\-\\-json\n"
            "it answers with one JSON object on standard output, also for "
            "errors.\n"
            ".SH COMMANDS\n");
  for (size_t i = 0; i < command_count; i++) {
    put_command(&command_table[i], out);
  }
  sink_text(out,
            ".SH EXIT STATUS\n"
            ".TP\n.B 0\nSuccess.\n"
            ".TP\n.B 1\nError in the kernel or its input; also a finding of "
            "\\fBvyre run \\-\\-check\\fR.\n"
            ".TP\n.B 2\nError in the command line.\n"
            ".TP\n.B 3\nDevice failure; also a device that cannot run the "
            "kernel.\n");
  put_environment(out);
}

/* Writes the page of a header, or the names of its functions. */
static void put_header_text(const char *what, const char *name,
                            const sink *text, sink *out) {
  if (strcmp(what, "api") == 0) put_api(name, text->data, text->length, out);
  if (strcmp(what, "functions") == 0) {
    put_functions(text->data, text->length, out);
    if (out->length == 0) sink_text(out, "\n");
  }
}

/* Reads a header and writes what was asked for. Writes nothing if it cannot be
 * read. */
static void put_header(const char *what, const char *path, sink *out) {
  sink text = {0};
  char block[4096];
  size_t got;
  FILE *file = fopen(path, "r");
  if (!file) return;
  do {
    got = fread(block, 1, sizeof block, file);
    sink_bytes(&text, block, got);
  } while (got == sizeof block);
  fclose(file);
  const char *slash = strrchr(path, '/');
  char name[64];
  snprintf(name, sizeof name, "%s", slash ? slash + 1 : path);
  name[strcspn(name, ".")] = '\0';
  if (!text.failed) put_header_text(what, name, &text, out);
  sink_deinit(&text);
}

int main(int argc, char **argv) {
  static const struct {
    const char *name;
    void (*put)(sink *out);
  } pages[] = {{"man", put_man},
               {"bash", put_bash},
               {"zsh", put_zsh},
               {"fish", put_fish}};
  sink out = {0};
  if (argc == 3) put_header(argv[1], argv[2], &out);
  for (size_t i = 0; argc == 2 && i < sizeof pages / sizeof pages[0]; i++) {
    if (strcmp(argv[1], pages[i].name) == 0) pages[i].put(&out);
  }
  if (out.length == 0) {
    fprintf(
        stderr,
        "usage: vyre-manual man|bash|zsh|fish, or vyre-manual api|functions "
        "FILE\n");
    return 2;
  }
  bool fine = !out.failed &&
              fwrite(out.data, 1, out.length, stdout) == out.length &&
              fflush(stdout) == 0;
  sink_deinit(&out);
  return fine ? 0 : 1;
}
