// SPDX-License-Identifier: MIT
// Operations on one element in memory, as <tenon/ops/program.h> defines them: the oracle
// that tests compare the vector loops with.
#ifndef TESTS_CPU_OPS_REF_H
#define TESTS_CPU_OPS_REF_H

#include "cpu/cpu.h"

// out = op(in[0], in[1], ...). `dtype` is that of the operands (of in[1] for SELECT).
// False, and nothing written, where the operation is not defined for the dtype.
bool cpu_ref_op(int32_t op, int32_t dtype, void *out, const void *const *in);

// out = in, converted from dtype `from` to dtype `to`.
void cpu_ref_cast(int32_t from, int32_t to, void *out, const void *in);

// The dtype of the result of cpu_ref_op().
int32_t cpu_ref_result(int32_t op, int32_t dtype);

#endif // TESTS_CPU_OPS_REF_H
