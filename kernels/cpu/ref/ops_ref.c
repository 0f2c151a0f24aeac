// SPDX-License-Identifier: MIT
// Loads elements to values and stores values to elements. The operations on values are
// those of <tenon/ops/program.h>.
#include "ops_ref.h"

#include <tenon/ops/program.h>

static tn_scalar_value get(int32_t dtype, const void *in)
{
    const tn_tensor tensor = {(void *)(uintptr_t)in, {.dtype = dtype}};
    return tn_value_load(&tensor, 0);
}

static void put(int32_t dtype, void *out, tn_scalar_value value)
{
    const tn_tensor tensor = {out, {.dtype = dtype}};
    tn_value_store(&tensor, 0, tn_dtype_computed(dtype), value);
}

void cpu_ref_cast(int32_t from, int32_t to, void *out, const void *in)
{
    put(to, out, tn_value_cast(from, to, get(from, in)));
}

int32_t cpu_ref_result(int32_t op, int32_t dtype)
{
    return cpu_is_fused(op) ? dtype : tn_expr_result((uint32_t)op, dtype);
}

// A fused operation as its parts, each of which rounds to memory: `first` of operands 0 and
// 1, then `second` of that result (SUB_THEN_EXP) and of operand 2, of the product of
// operands 2 and 3 (MUL_ADD_MUL), or with the two exchanged (SUB_MUL).
static bool fused_op(int32_t op, int32_t dtype, void *out, const void *const *in)
{
    static const struct {
        int32_t op, first, second;
    } parts[] = {
        {CPU_OP_MUL_ADD, TN_EXPR_MUL, TN_EXPR_ADD},
        {CPU_OP_MUL_SUB, TN_EXPR_MUL, TN_EXPR_SUB},
        {CPU_OP_SUB_MUL, TN_EXPR_MUL, TN_EXPR_SUB},
        {CPU_OP_ADD_MUL, TN_EXPR_ADD, TN_EXPR_MUL},
        {CPU_OP_SUB_THEN_MUL, TN_EXPR_SUB, TN_EXPR_MUL},
        {CPU_OP_MUL_ADD_MUL, TN_EXPR_MUL, TN_EXPR_ADD},
        {CPU_OP_SUB_THEN_EXP, TN_EXPR_SUB, TN_EXPR_EXP},
    };
    uint64_t left = 0, right = 0;
    if (dtype != TN_F32 && dtype != TN_F64)
        return false;
    for (uint32_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].op != op)
            continue;
        cpu_ref_op(parts[i].first, dtype, &left, in);
        const void *pair[2] = {&left, op == CPU_OP_SUB_THEN_EXP ? &right : in[2]};
        if (op == CPU_OP_MUL_ADD_MUL) {
            cpu_ref_op(TN_EXPR_MUL, dtype, &right, in + 2);
            pair[1] = &right;
        } else if (op == CPU_OP_SUB_MUL) {
            pair[0] = in[2];
            pair[1] = &left;
        }
        return cpu_ref_op(parts[i].second, dtype, out, pair);
    }
    return false;
}

bool cpu_ref_op(int32_t op, int32_t dtype, void *out, const void *const *in)
{
    tn_scalar_value values[3] = {{0}};
    if (cpu_is_fused(op))
        return fused_op(op, dtype, out, in);
    uint32_t operands = tn_expr_operands((uint32_t)op);
    bool is_select = op == TN_EXPR_SELECT;
    if (!tn_dtype_in(dtype, tn_expr_dtypes((uint32_t)op)) ||
        tn_expr_class((uint32_t)op) == TN_EXPR_CLASS_REDUCE) // of rows, not of elements
        return false;
    for (uint32_t k = 0; k < operands; k++)
        values[k] = get(is_select && k == 0 ? TN_BOOL : dtype, in[k]);
    int32_t result = cpu_ref_result(op, dtype);
    put(result, out,
        tn_operation((uint32_t)op, result, dtype, values[0], values[1], values[2]));
    return true;
}
