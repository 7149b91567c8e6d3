/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames of the base protocol: headers, an empty line, and a JSON text of
 * Content-Length bytes. */
#ifndef VYRE_TOOLS_LSP_RPC_H
#define VYRE_TOOLS_LSP_RPC_H

#include "cli/sink.h"

enum {
  RPC_MAX_HEADER = 4096,     /* bytes of the headers of a frame */
  RPC_MAX_CONTENT = 64 << 20 /* bytes of a message */
};

typedef enum rpc_event {
  RPC_NOTHING,   /* more bytes are needed */
  RPC_MESSAGE,   /* a message is complete */
  RPC_TOO_LARGE, /* a message was larger than RPC_MAX_CONTENT; it is skipped */
  RPC_BAD_HEAD,  /* headers without a valid Content-Length; they are skipped */
} rpc_event;

/* Reader of frames. Zeroed: at the start of the first frame. */
typedef struct rpc_reader {
  sink bytes;      /* received and not consumed yet */
  size_t consumed; /* of these, bytes of frames that were returned */
  uint64_t skip;   /* bytes of a message that is skipped */
  bool in_header;  /* the rest of a header that is too long is skipped */
} rpc_reader;

/* Appends bytes from the client. */
void rpc_feed(rpc_reader *reader, const char *bytes, size_t length);

/* Takes the next frame. *text is valid until the next call of rpc_feed. */
rpc_event rpc_next(rpc_reader *reader, const char **text, size_t *length);

void rpc_deinit(rpc_reader *reader);

/* Appends a frame. */
void rpc_write(sink *out, const sink *message);

#endif
