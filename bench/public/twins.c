/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Table of the twins of the suite public. */
#include "table.h"
#include "twins_list.h"

static const public_twin twins[] = {
#define PUBLIC_X(name) {#name, twin_##name},
    PUBLIC_TWIN_MAP(PUBLIC_X)
#undef PUBLIC_X
};

PUBLIC_PEER_TABLE
