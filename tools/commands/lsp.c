/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre lsp`: a language server on standard input and output. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse_options.h"
#include "lsp/server.h"

enum { CHUNK = 64 << 10, MAX_AHEAD = 4 << 20 };

/* Reads what is available: at least one byte, which it waits for. Messages that
 * are there together are handled together, so that a cancelled request is not
 * answered. Returns false at the end of the input. */
static bool read_available(sink *bytes) {
  static char chunk[CHUNK];
  bytes->length = 0;
  for (;;) {
    ssize_t count = read(STDIN_FILENO, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes->length > 0;
    sink_bytes(bytes, chunk, (size_t)count);
    struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
    if (bytes->failed || bytes->length >= MAX_AHEAD || poll(&more, 1, 0) != 1 ||
        !(more.revents & POLLIN)) {
      return !bytes->failed;
    }
  }
}

static int serve(problem *wrong) {
  static lsp_server server;
  sink bytes = {0};
  bool is_written = true;
  server.imports.options = parse_options_of_imports();
  while (!server.has_exited && !server.no_memory && is_written &&
         read_available(&bytes)) {
    server_receive(&server, bytes.data, bytes.length);
    is_written = write_all(STDOUT_FILENO, server.out.data, server.out.length);
    server.out.length = 0;
  }
  const bool is_clean = server.has_exited && server.is_shut_down;
  if (server.no_memory || bytes.failed) {
    problem_no_memory(wrong, "the documents");
  }
  sink_deinit(&bytes);
  server_deinit(&server);
  if (wrong->kind) return problem_report(wrong, false);
  return is_clean ? EXIT_FINE : EXIT_WRONG;
}

int cmd_lsp(int count, char **words, bool json) {
  problem wrong = {0};
  bool is_stdio = false;
  flag flags[] = {FLAG("--stdio", &is_stdio)};
  arguments spec = {.command = "lsp", .flags = flags, .flag_count = 1};
  if (!args_read(&spec, count, words, &wrong)) {
    return problem_report(&wrong, json);
  }
  return serve(&wrong);
}
