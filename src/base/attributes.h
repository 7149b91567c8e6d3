/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_ATTRIBUTES_H
#define VYRE_BASE_ATTRIBUTES_H

/* Lets the compiler check a format against its arguments: which argument is the
 * text, and which is the first that it formats. */
#define VYRE__PRINTF(text, first) __attribute__((format(printf, text, first)))

#endif
