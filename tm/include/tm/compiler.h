/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Hints to the compiler, for every header and source of the library. */
#ifndef TM_COMPILER_H
#define TM_COMPILER_H

#define TM_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TM_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define TM_ALIGNED_TO_LINE __attribute__((aligned(TM_CACHE_LINE_SIZE)))
/* C and C++ have different names for it. */
#ifdef __cplusplus
#define TM_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define TM_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

/*
 * A function that does not return. The Linux port defines it as nothing: the kernel's objtool has a list of the functions
 * that do not return, and takes calls of others for calls that do.
 */
#ifndef TM_NORETURN
#define TM_NORETURN __attribute__((noreturn))
#endif

/*
 * Around the declarations of each header: C++ uses their names of C, and a shared object shows them. Everything else in
 * that is hidden (-fvisibility=hidden).
 */
#ifdef __cplusplus
#define TM_LINKAGE_BEGIN extern "C" {
#define TM_LINKAGE_END }
#else
#define TM_LINKAGE_BEGIN
#define TM_LINKAGE_END
#endif
#define TM_DECLARATIONS_BEGIN TM_LINKAGE_BEGIN _Pragma("GCC visibility push(default)")
#define TM_DECLARATIONS_END _Pragma("GCC visibility pop") TM_LINKAGE_END

#define TM_INLINE static inline __attribute__((always_inline))

#endif
