/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/vyre.h
 *  All of vyre. Each header also stands alone.
 *
 *  Threads, in every header: *safe* means any threads at once; *compatible*
 *  means one thread at a time per object; docs/ownership.md has the rest. */
#ifndef VYRE_VYRE_H
#define VYRE_VYRE_H

#include "vyre/barrier.h"
#include "vyre/binding.h"
#include "vyre/capture.h"
#include "vyre/export.h"
#include "vyre/frontier.h"
#include "vyre/memory.h"
#include "vyre/placement.h"
#include "vyre/program.h"
#include "vyre/queue.h"
#include "vyre/status.h"
#include "vyre/text.h"
#include "vyre/version.h"

#endif
