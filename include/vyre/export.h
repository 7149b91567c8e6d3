/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/export.h
 *  Linkage and attribute macros, used by all public headers. */
#ifndef VYRE_EXPORT_H
#define VYRE_EXPORT_H

#if defined(__GNUC__) || defined(__clang__)
#define VYRE_API __attribute__((visibility("default")))
#else
#define VYRE_API
#endif

/* Makes the compiler warn when a result is ignored. The GNU attribute is
 * preferred, because clang rejects [[...]] after a GNU attribute. */
#if defined(__GNUC__) || defined(__clang__)
#define VYRE_NODISCARD __attribute__((warn_unused_result))
#elif defined(__cplusplus) && __cplusplus >= 201703L
#define VYRE_NODISCARD [[nodiscard]]
#else
#define VYRE_NODISCARD
#endif

#ifdef __cplusplus
#define VYRE_BEGIN extern "C" {
#define VYRE_END   }
#else
#define VYRE_BEGIN
#define VYRE_END
#endif

#endif
