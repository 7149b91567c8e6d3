/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Language server: messages in, messages out. It does no input or output of its
 * own. */
#ifndef VYRE_TOOLS_LSP_SERVER_H
#define VYRE_TOOLS_LSP_SERVER_H

#include "lsp/document.h"
#include "lsp/imports.h"
#include "lsp/json_tree.h"
#include "lsp/rpc.h"

enum { SERVER_MAX_DOCUMENTS = 1000, SERVER_MAX_QUEUE = 256 };

/* A message that was received and not handled yet. */
typedef struct queued_message {
  vyre_arena arena;
  json_node *root;
} queued_message;

/* Zeroed: a server that was not initialised. */
typedef struct lsp_server {
  rpc_reader reader;
  sink out; /* frames for the client */
  document *documents[SERVER_MAX_DOCUMENTS];
  size_t document_count;
  struct document_imports imports; /* `options` may be set before use */
  queued_message queue[SERVER_MAX_QUEUE];
  size_t queue_count;
  bool is_initialised, is_shut_down, has_exited;
  bool no_memory;
} lsp_server;

/* Handles bytes from the client: all messages that they complete. Appends the
 * answers to server->out. */
void server_receive(lsp_server *server, const char *bytes, size_t length);

void server_deinit(lsp_server *server);

#endif
