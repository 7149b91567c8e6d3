/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_ATTRIBUTES_H
#define VYRE_BASE_ATTRIBUTES_H

/* Lets the compiler check a format against its arguments: which argument is the
 * text, and which is the first that it formats. */
#define VYRE__PRINTF(text, first) __attribute__((format(printf, text, first)))

/* A function that few inputs need: it stays out of the way of those that all
 * do. */
#define VYRE__RARE __attribute__((noinline, cold))

/* One that stays a call of its own, so that its caller needs no room for it. */
#define VYRE__NOINLINE __attribute__((noinline))

#endif
