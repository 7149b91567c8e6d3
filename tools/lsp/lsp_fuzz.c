/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzz target for the language server. The first byte is the size of the parts
 * in which the rest arrives; 0 wraps the rest into one frame. Every answer is a
 * frame with a JSON text, however the input is cut. */
#include "io/fuzz_check.h"
#include "lsp/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char first[] =
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}";
static const char opened[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"textDocument/didOpen\",\"params\":{"
    "\"textDocument\":{\"uri\":\"u\",\"version\":1,\"text\":\"kernel k "
    "workgroup(64)\\nbuffer y : read_write f32[] @0;\\n{\\n  let i = "
    "global_id.x;\\n  y[i] = 1.0;\\n}\\n\"}}}";

static void send(lsp_server *server, const char *text, size_t length) {
  sink frame = {0};
  const sink message = {.data = (char *)text, .length = length};
  rpc_write(&frame, &message);
  server_receive(server, frame.data, frame.length);
  sink_deinit(&frame);
}

/* Checks the frames of the answers. */
static void check_answers(const sink *out) {
  rpc_reader reader = {.skip = 0};
  const char *text;
  size_t length, taken = 0;
  rpc_feed(&reader, out->data, out->length);
  while (rpc_next(&reader, &text, &length) == RPC_MESSAGE) {
    vyre_arena arena;
    problem wrong = {0};
    vyre_arena_init(&arena, (vyre_allocator){0});
    const json_node *root = json_tree_read(text, length, &arena, &wrong);
    MUST(root && json_member(root, "jsonrpc"));
    MUST(json_member(root, "id") || json_member(root, "method"));
    vyre_arena_deinit(&arena);
    taken++;
  }
  MUST(taken > 0 && reader.consumed == reader.bytes.length);
  rpc_deinit(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static lsp_server server;
  if (size == 0) return 0;
  server = (lsp_server){.is_initialised = false};
  send(&server, first, sizeof first - 1);
  send(&server, opened, sizeof opened - 1);
  const char *bytes = (const char *)data + 1;
  size_t left = size - 1;
  const size_t part = data[0];
  if (part == 0) {
    send(&server, bytes, left);
  }
  while (part > 0 && left > 0) {
    const size_t some = left < part ? left : part;
    server_receive(&server, bytes, some);
    bytes += some;
    left -= some;
  }
  MUST(!server.no_memory);
  check_answers(&server.out);
  server_deinit(&server);
  return 0;
}
