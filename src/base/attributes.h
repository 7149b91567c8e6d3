/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_ATTRIBUTES_H
#define VYRE_BASE_ATTRIBUTES_H

/* Lets the compiler check printf arguments. @p text is the number of the
 * format parameter, @p first the number of the first argument that it
 * formats. */
#define VYRE__PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Marks a function that few inputs need, so that its code stays away from hot
 * code. */
#define VYRE__RARE __attribute__((noinline, cold))

/* Keeps a function out of line, so that its locals do not enlarge the stack
 * frame of its caller. */
#define VYRE__NOINLINE __attribute__((noinline))

#endif
