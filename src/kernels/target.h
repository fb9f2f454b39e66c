/*
 * target.h - code for an instruction set beyond the one the project is built for
 *
 * SPDX-License-Identifier: MIT
 *
 * Pragmas in the source, so that the build needs no flags for single files.
 */
#ifndef FPCONV_SRC_KERNELS_TARGET_H
#define FPCONV_SRC_KERNELS_TARGET_H

#define TARGET_PRAGMA_(text) _Pragma(#text)
#if defined(__clang__)
#define TARGET_ATTRIBUTE_(features) \
    TARGET_PRAGMA_(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TARGET_BEGIN(features) TARGET_ATTRIBUTE_(features)
#define TARGET_END _Pragma("clang attribute pop")
#else
#define TARGET_BEGIN(features) _Pragma("GCC push_options") TARGET_PRAGMA_(GCC target(features))
#define TARGET_END _Pragma("GCC pop_options")
#endif

#endif /* FPCONV_SRC_KERNELS_TARGET_H */
