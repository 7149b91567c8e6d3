/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SANITIZED: 1 in a build with a sanitizer, which takes five times as long or
 * more: tests that count random cases run fewer of them there. */
#ifndef VYRE_TESTS_SANITIZED_H
#define VYRE_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* THREAD_SANITIZED: 1 in a build with TSan, under which a forked child may have no
 * threads. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#ifndef THREAD_SANITIZED
#define THREAD_SANITIZED 0
#endif

#endif
