// SPDX-License-Identifier: MIT
// The definition of each operation, one element at a time and in the plainest way: what the
// tests hold the vector loops against.
#ifndef KERNELS_CPU_OPS_REF_H
#define KERNELS_CPU_OPS_REF_H

#include "../cpu.h"

// out = op(in[0], in[1], ...), operands being of `dtype` (of in[1] for SELECT). False, and
// nothing written, where the operation has no meaning. Functions of f32 are computed in
// f64.
bool cpu_ref_op(int32_t op, int32_t dtype, void *out, const void *const *in);

// out = in as another type.
void cpu_ref_cast(int32_t from, int32_t to, void *out, const void *in);

// The dtype of the result.
int32_t cpu_ref_result(int32_t op, int32_t dtype);

#endif // KERNELS_CPU_OPS_REF_H
