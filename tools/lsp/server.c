/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lsp/server.h"

#include <string.h>

#include "vyre/version.h"

#include "lsp/answers.h"

/* Error codes of the protocol. */
#define PARSE_ERROR     "-32700"
#define INVALID_REQUEST "-32600"
#define NO_METHOD       "-32601"
#define INVALID_PARAMS  "-32602"
#define NOT_INITIALISED "-32002"
#define CANCELLED       "-32800"
#define REQUEST_FAILED  "-32803"

/* --- answers ---------------------------------------------------------------*/

static void open_message(json_out *json, const json_node *id) {
  json_open(json, NULL, '{');
  json_text(json, "jsonrpc", "2.0");
  if (!id || id->type == TOKEN_NULL) {
    json_null(json, "id");
  } else if (id->type == TOKEN_NUMBER) {
    json_raw(json, "id", id->text, id->length);
  } else {
    json_string(json, "id", id->text, id->length);
  }
}

/* Sends a message, or nothing if memory ran out. */
static void send_message(lsp_server *server, sink *message) {
  if (message->failed) {
    server->no_memory = true;
  } else {
    rpc_write(&server->out, message);
  }
  sink_deinit(message);
}

static void send_error(lsp_server *server, const json_node *id,
                       const char *code, const char *text) {
  sink message = {0};
  json_out json = {.out = &message};
  open_message(&json, id);
  json_open(&json, "error", '{');
  json_raw(&json, "code", code, strlen(code));
  json_text(&json, "message", text);
  json_close(&json, '}');
  json_close(&json, '}');
  send_message(server, &message);
}

static void put_capabilities(json_out *json) {
  json_open(json, "result", '{');
  json_open(json, "capabilities", '{');
  json_text(json, "positionEncoding", "utf-16");
  json_open(json, "textDocumentSync", '{');
  json_bool(json, "openClose", true);
  json_u64(json, "change", 2); /* incremental */
  json_close(json, '}');
  json_bool(json, "hoverProvider", true);
  json_bool(json, "definitionProvider", true);
  json_bool(json, "referencesProvider", true);
  json_bool(json, "documentHighlightProvider", true);
  json_bool(json, "documentSymbolProvider", true);
  json_bool(json, "documentFormattingProvider", true);
  json_open(json, "renameProvider", '{');
  json_bool(json, "prepareProvider", true);
  json_close(json, '}');
  json_open(json, "codeActionProvider", '{');
  json_open(json, "codeActionKinds", '[');
  json_text(json, NULL, "quickfix");
  json_close(json, ']');
  json_close(json, '}');
  json_open(json, "completionProvider", '{');
  json_open(json, "triggerCharacters", '[');
  json_text(json, NULL, ".");
  json_close(json, ']');
  json_close(json, '}');
  json_close(json, '}');
  json_open(json, "serverInfo", '{');
  json_text(json, "name", "vyre");
  json_text(json, "version", vyre_version_string());
  json_close(json, '}');
  json_close(json, '}');
}

/* --- documents -------------------------------------------------------------*/

/* Returns the document of params.textDocument.uri, or NULL. */
static document *find_document(lsp_server *server, const json_node *params) {
  const char *uri;
  size_t length;
  if (!json_member_text(json_member(params, "textDocument"), "uri", &uri,
                        &length)) {
    return NULL;
  }
  for (size_t i = 0; i < server->document_count; i++) {
    if (strcmp(server->documents[i]->uri, uri) == 0) {
      return server->documents[i];
    }
  }
  return NULL;
}

static void publish(lsp_server *server, document *doc, bool is_closed) {
  sink message = {0};
  json_out json = {.out = &message};
  doc->is_dirty = false;
  json_open(&json, NULL, '{');
  json_text(&json, "jsonrpc", "2.0");
  json_text(&json, "method", "textDocument/publishDiagnostics");
  json_open(&json, "params", '{');
  json_text(&json, "uri", doc->uri);
  if (is_closed) {
    json_open(&json, "diagnostics", '[');
    json_close(&json, ']');
  } else {
    if (doc->version >= 0) json_u64(&json, "version", (uint64_t)doc->version);
    answer_diagnostics(&json, doc);
  }
  json_close(&json, '}');
  json_close(&json, '}');
  send_message(server, &message);
}

static document *add_document(lsp_server *server, const char *uri) {
  vyre_allocator heap = vyre_allocator_heap();
  const size_t size = strlen(uri) + 1;
  if (server->document_count == SERVER_MAX_DOCUMENTS) return NULL;
  document *doc = heap.resize(heap.self, NULL, 0, sizeof *doc);
  char *copy = heap.resize(heap.self, NULL, 0, size);
  if (!doc || !copy) {
    if (doc) heap.resize(heap.self, doc, sizeof *doc, 0);
    if (copy) heap.resize(heap.self, copy, size, 0);
    server->no_memory = true;
    return NULL;
  }
  memcpy(copy, uri, size);
  server->imports.documents = server->documents;
  server->imports.document_count = &server->document_count;
  *doc = (document){.uri = copy, .imports = &server->imports};
  vyre_arena_init(&doc->arena, (vyre_allocator){0});
  server->documents[server->document_count++] = doc;
  return doc;
}

static void remove_document(lsp_server *server, document *doc) {
  vyre_allocator heap = vyre_allocator_heap();
  for (size_t i = 0; i < server->document_count; i++) {
    if (server->documents[i] != doc) continue;
    server->documents[i] = server->documents[--server->document_count];
    break;
  }
  document_deinit(doc);
  heap.resize(heap.self, doc, sizeof *doc, 0);
}

/* Analyses the other documents with imports again: a file that they import may
 * have changed. */
static void refresh_others(lsp_server *server, const document *changed) {
  for (size_t i = 0; i < server->document_count; i++) {
    document *doc = server->documents[i];
    if (doc != changed && document_has_imports(doc)) document_refresh(doc);
  }
}

static int64_t version_of(const json_node *item) {
  const uint32_t version = json_member_number(item, "version", UINT32_MAX);
  return version == UINT32_MAX ? -1 : (int64_t)version;
}

static void did_open(lsp_server *server, const json_node *params) {
  const json_node *item = json_member(params, "textDocument");
  const char *uri, *text;
  size_t uri_length, length;
  if (!json_member_text(item, "uri", &uri, &uri_length) ||
      !json_member_text(item, "text", &text, &length)) {
    return;
  }
  document *doc = find_document(server, params);
  if (!doc) doc = add_document(server, uri);
  if (!doc) return;
  document_set(doc, text, length);
  doc->version = version_of(item);
  refresh_others(server, doc);
}

static bool read_position(const json_node *node, lsp_position *out) {
  if (!node || node->type != TOKEN_OBJECT) return false;
  out->line = json_member_number(node, "line", UINT32_MAX);
  out->character = json_member_number(node, "character", UINT32_MAX);
  return out->line != UINT32_MAX && out->character != UINT32_MAX;
}

static bool read_range(const json_node *node, lsp_range *out) {
  return read_position(json_member(node, "start"), &out->from) &&
         read_position(json_member(node, "end"), &out->to);
}

static void did_change(lsp_server *server, const json_node *params) {
  document *doc = find_document(server, params);
  const json_node *changes = json_member(params, "contentChanges");
  if (!doc || !changes || changes->type != TOKEN_ARRAY) return;
  for (const json_node *it = changes->first; it; it = it->next) {
    const char *text;
    size_t length;
    lsp_range range;
    if (!json_member_text(it, "text", &text, &length)) continue;
    const json_node *place = json_member(it, "range");
    if (!place || place->type == TOKEN_NULL) {
      document_set(doc, text, length);
    } else if (read_range(place, &range)) {
      document_change(doc, range.from, range.to, text, length);
    }
  }
  doc->version = version_of(json_member(params, "textDocument"));
  refresh_others(server, doc);
}

static void did_close(lsp_server *server, const json_node *params) {
  document *doc = find_document(server, params);
  if (!doc) return;
  publish(server, doc, true);
  remove_document(server, doc);
}

/* --- requests --------------------------------------------------------------*/

static const char *on_hover(json_out *json, document *doc,
                            const json_node *params, lsp_position at) {
  (void)params;
  answer_hover(json, doc, at);
  return NULL;
}

static const char *on_definition(json_out *json, document *doc,
                                 const json_node *params, lsp_position at) {
  (void)params;
  answer_definition(json, doc, at);
  return NULL;
}

static const char *on_references(json_out *json, document *doc,
                                 const json_node *params, lsp_position at) {
  const json_node *with =
      json_member(json_member(params, "context"), "includeDeclaration");
  answer_references(json, doc, at, !with || with->truth);
  return NULL;
}

static const char *on_highlight(json_out *json, document *doc,
                                const json_node *params, lsp_position at) {
  (void)params;
  answer_highlights(json, doc, at);
  return NULL;
}

static const char *on_symbols(json_out *json, document *doc,
                              const json_node *params, lsp_position at) {
  (void)params;
  (void)at;
  answer_symbols(json, doc);
  return NULL;
}

static const char *on_formatting(json_out *json, document *doc,
                                 const json_node *params, lsp_position at) {
  (void)params;
  (void)at;
  answer_formatting(json, doc);
  return NULL;
}

static const char *on_actions(json_out *json, document *doc,
                              const json_node *params, lsp_position at) {
  lsp_range range;
  (void)at;
  if (!read_range(json_member(params, "range"), &range)) {
    return "range is missing";
  }
  answer_code_actions(json, doc, range);
  return NULL;
}

static const char *on_completion(json_out *json, document *doc,
                                 const json_node *params, lsp_position at) {
  (void)params;
  answer_completion(json, doc, at);
  return NULL;
}

static const char *on_prepare_rename(json_out *json, document *doc,
                                     const json_node *params, lsp_position at) {
  (void)params;
  return answer_prepare_rename(json, doc, at);
}

static const char *on_rename(json_out *json, document *doc,
                             const json_node *params, lsp_position at) {
  const char *name;
  size_t length;
  if (!json_member_text(params, "newName", &name, &length)) {
    return "newName is missing";
  }
  return answer_rename(json, doc, at, name, length);
}

/* Requests about a document. Each returns NULL, or the reason for an error. */
static const struct {
  const char *method;
  bool has_position;
  const char *(*answer)(json_out *json, document *doc, const json_node *params,
                        lsp_position at);
} requests[] = {
    {"textDocument/hover", true, on_hover},
    {"textDocument/definition", true, on_definition},
    {"textDocument/references", true, on_references},
    {"textDocument/documentHighlight", true, on_highlight},
    {"textDocument/documentSymbol", false, on_symbols},
    {"textDocument/formatting", false, on_formatting},
    {"textDocument/codeAction", false, on_actions},
    {"textDocument/completion", true, on_completion},
    {"textDocument/prepareRename", true, on_prepare_rename},
    {"textDocument/rename", true, on_rename},
};

/* Answers a request about a document. Returns false for other methods. */
static bool answer_request(lsp_server *server, const char *method,
                           const json_node *id, const json_node *params) {
  size_t which = 0;
  while (which < sizeof requests / sizeof requests[0] &&
         strcmp(requests[which].method, method) != 0) {
    which++;
  }
  if (which == sizeof requests / sizeof requests[0]) return false;
  document *doc = find_document(server, params);
  lsp_position at = {0, 0};
  if (!doc) {
    send_error(server, id, INVALID_PARAMS, "the document is not open");
    return true;
  }
  if (requests[which].has_position &&
      !read_position(json_member(params, "position"), &at)) {
    send_error(server, id, INVALID_PARAMS, "position is missing");
    return true;
  }
  sink message = {0};
  json_out json = {.out = &message};
  open_message(&json, id);
  const char *reason = requests[which].answer(&json, doc, params, at);
  if (reason) {
    sink_deinit(&message);
    send_error(server, id, REQUEST_FAILED, reason);
    return true;
  }
  json_close(&json, '}');
  send_message(server, &message);
  return true;
}

static void answer_null(lsp_server *server, const json_node *id) {
  sink message = {0};
  json_out json = {.out = &message};
  open_message(&json, id);
  json_null(&json, "result");
  json_close(&json, '}');
  send_message(server, &message);
}

static void handle_request(lsp_server *server, const char *method,
                           const json_node *id, const json_node *params) {
  if (strcmp(method, "initialize") == 0) {
    if (server->is_initialised) {
      send_error(server, id, INVALID_REQUEST, "initialize was sent before");
      return;
    }
    server->is_initialised = true;
    sink message = {0};
    json_out json = {.out = &message};
    open_message(&json, id);
    put_capabilities(&json);
    json_close(&json, '}');
    send_message(server, &message);
  } else if (!server->is_initialised) {
    send_error(server, id, NOT_INITIALISED, "send initialize first");
  } else if (server->is_shut_down) {
    send_error(server, id, INVALID_REQUEST, "the server is shut down");
  } else if (strcmp(method, "shutdown") == 0) {
    server->is_shut_down = true;
    answer_null(server, id);
  } else if (!answer_request(server, method, id, params)) {
    send_error(server, id, NO_METHOD, "the server has no such method");
  }
}

static void handle_notification(lsp_server *server, const char *method,
                                const json_node *params) {
  if (strcmp(method, "exit") == 0) server->has_exited = true;
  if (!server->is_initialised || server->is_shut_down) return;
  if (strcmp(method, "textDocument/didOpen") == 0) did_open(server, params);
  if (strcmp(method, "textDocument/didChange") == 0) did_change(server, params);
  if (strcmp(method, "textDocument/didClose") == 0) did_close(server, params);
}

/* --- messages --------------------------------------------------------------*/

static bool is_id(const json_node *id) {
  return id && (id->type == TOKEN_NUMBER || id->type == TOKEN_STRING);
}

static bool is_same_id(const json_node *a, const json_node *b) {
  return is_id(a) && is_id(b) && a->type == b->type && a->length == b->length &&
         memcmp(a->text, b->text, a->length) == 0;
}

/* Returns true if a later message in the queue cancels the request @p id. */
static bool is_cancelled(const lsp_server *server, size_t from,
                         const json_node *id) {
  for (size_t i = from; i < server->queue_count; i++) {
    const json_node *root = server->queue[i].root;
    const json_node *method = json_member(root, "method");
    if (!method || method->type != TOKEN_STRING ||
        strcmp(method->text, "$/cancelRequest") != 0) {
      continue;
    }
    if (is_same_id(id, json_member(json_member(root, "params"), "id"))) {
      return true;
    }
  }
  return false;
}

static void handle_message(lsp_server *server, size_t index) {
  const json_node *root = server->queue[index].root;
  const json_node *id = json_member(root, "id");
  const json_node *method = json_member(root, "method");
  const json_node *params = json_member(root, "params");
  if (root->type != TOKEN_OBJECT || (method && method->type != TOKEN_STRING) ||
      (id && !is_id(id))) {
    send_error(server, is_id(id) ? id : NULL, INVALID_REQUEST,
               "a message is an object with a method");
    return;
  }
  if (!method) return; /* the answer to a request, which the server has none */
  if (!id) {
    handle_notification(server, method->text, params);
  } else if (is_cancelled(server, index + 1, id)) {
    send_error(server, id, CANCELLED, "the request was cancelled");
  } else {
    handle_request(server, method->text, id, params);
  }
}

/* Handles the queue, then publishes the diagnostics of changed documents: a
 * document that changes several times is analysed once. */
static void handle_queue(lsp_server *server) {
  for (size_t i = 0; i < server->queue_count && !server->has_exited; i++) {
    handle_message(server, i);
  }
  for (size_t i = 0; i < server->queue_count; i++) {
    vyre_arena_deinit(&server->queue[i].arena);
  }
  server->queue_count = 0;
}

static void publish_changed(lsp_server *server) {
  for (size_t i = 0; i < server->document_count; i++) {
    if (server->documents[i]->is_dirty) {
      publish(server, server->documents[i], false);
    }
  }
}

/* Adds a message to the queue, or answers that it is not JSON. */
static void enqueue(lsp_server *server, const char *text, size_t length) {
  queued_message *message = &server->queue[server->queue_count];
  problem wrong = {0};
  vyre_arena_init(&message->arena, (vyre_allocator){0});
  message->root = json_tree_read(text, length, &message->arena, &wrong);
  if (message->root) {
    server->queue_count++;
  } else {
    vyre_arena_deinit(&message->arena);
    send_error(server, NULL, PARSE_ERROR, wrong.message);
  }
}

void server_receive(lsp_server *server, const char *bytes, size_t length) {
  rpc_event event;
  rpc_feed(&server->reader, bytes, length);
  do {
    const char *text;
    size_t size;
    event = rpc_next(&server->reader, &text, &size);
    if (event == RPC_MESSAGE) {
      enqueue(server, text, size);
    } else if (event == RPC_TOO_LARGE) {
      send_error(server, NULL, INVALID_REQUEST,
                 "the message is larger than 64 MiB");
    } else if (event == RPC_BAD_HEAD) {
      send_error(server, NULL, PARSE_ERROR,
                 "a frame has no valid Content-Length");
    }
    if (server->queue_count == SERVER_MAX_QUEUE) handle_queue(server);
  } while (event != RPC_NOTHING && !server->has_exited);
  handle_queue(server);
  if (!server->has_exited) publish_changed(server);
  server->no_memory |= server->out.failed || server->reader.bytes.failed;
}

void server_deinit(lsp_server *server) {
  while (server->document_count > 0) {
    remove_document(server, server->documents[server->document_count - 1]);
  }
  rpc_deinit(&server->reader);
  sink_deinit(&server->out);
}
