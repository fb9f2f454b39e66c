/*
 * cpu.h - which kernels this CPU runs
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef FPCONV_SRC_CPU_H
#define FPCONV_SRC_CPU_H

#include <stdatomic.h>

#include "kernels/kernels.h"

/*
 * The kernel for a pair at the level in use, NULL if there is none.  The level
 * is chosen at the first call; calls from several threads at once choose the
 * same.
 */
fp_kernel *fp_cpu_kernel(fpconv_format dst, fpconv_format src, fpconv_policy policy);

/* The table of the level in use alone, without those below; NULL before that is chosen. */
extern _Atomic(const fp_kernel_table *) fp_cpu_table;

/* At the level in use, NULL if that has none for the pair. */
fp_while_normal_kernel *fp_cpu_while_normal(fpconv_format dst, fpconv_format src);

/* Records and convert_streamed of the level in use, or NULL. */
const struct fp_record_kernels *fp_cpu_records(void);
fp_convert_streamed *fp_cpu_convert_streamed(void);

/* Packing and blocks at the level in use. */
const struct fp_block_kernels *fp_cpu_blocks(void);

#endif /* FPCONV_SRC_CPU_H */
