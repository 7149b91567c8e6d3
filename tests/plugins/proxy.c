/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "plugins/proxy.h"

static const vyre_backend table = PROXY_TABLE("proxy", 10);

VYRE_BACKEND_PLUGIN(table)
