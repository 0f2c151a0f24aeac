// SPDX-License-Identifier: MIT
// Loads elements to values and stores values to elements. The operations on values are
// those of <tenon/ops/program.h>.
#include "ops_ref.h"

#include <math.h>
#include <string.h>

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

// Its parts, each of which rounds to memory.
static void ref_sigmoid(int32_t dtype, void *out, const void *const *in)
{
    uint64_t e = 0, most = 0, one = 0, sum = 0;
    double values[] = {CPU_SIGMOID_MOST, 1};
    cpu_ref_cast(TN_F64, dtype, &most, &values[0]);
    cpu_ref_cast(TN_F64, dtype, &one, &values[1]);
    cpu_ref_op(TN_EXPR_EXP, dtype, &e, in);
    cpu_ref_op(TN_EXPR_MIN, dtype, &e, (const void *[]){&e, &most});
    cpu_ref_op(TN_EXPR_ADD, dtype, &sum, (const void *[]){&one, &e});
    cpu_ref_op(TN_EXPR_DIV, dtype, out, (const void *[]){&e, &sum});
}

static void ref_fourth(int32_t dtype, void *out, const void *const *in)
{
    uint64_t square = 0;
    cpu_ref_op(TN_EXPR_MUL, dtype, &square, (const void *[]){in[0], in[0]});
    cpu_ref_op(TN_EXPR_MUL, dtype, out, (const void *[]){&square, &square});
}

// In f64, rounded once.
static void ref_one_plus_erf(int32_t dtype, void *out, const void *const *in)
{
    double x;
    cpu_ref_cast(dtype, TN_F64, &x, in[0]);
    x = x < 0 ? erfc(-x) : 1 + erf(x);
    cpu_ref_cast(TN_F64, dtype, out, &x);
}

static void ref_gelu(int32_t dtype, void *out, const void *const *in)
{
    double x;
    cpu_ref_cast(dtype, TN_F64, &x, in[0]);
    x = 0.5 * x * (x < 0 ? erfc(-x * CPU_SQRT_HALF) : 1 + erf(x * CPU_SQRT_HALF));
    cpu_ref_cast(TN_F64, dtype, out, &x);
}

// A fused operation as its parts, each of which rounds to memory. The first one takes
// operands 0 and 1, each later one the result so far and the next operand, or with the two
// exchanged (SUB_MUL), or the product of the next two (MUL_ADD_MUL).
static bool fused_op(int32_t op, int32_t dtype, void *out, const void *const *in)
{
    static const struct {
        int32_t op, parts[4]; // up to 0
    } fused[] = {
        {CPU_OP_MUL_ADD, {TN_EXPR_MUL, TN_EXPR_ADD}},
        {CPU_OP_MUL_SUB, {TN_EXPR_MUL, TN_EXPR_SUB}},
        {CPU_OP_SUB_MUL, {TN_EXPR_MUL, TN_EXPR_SUB}},
        {CPU_OP_ADD_MUL, {TN_EXPR_ADD, TN_EXPR_MUL}},
        {CPU_OP_SUB_THEN_MUL, {TN_EXPR_SUB, TN_EXPR_MUL}},
        {CPU_OP_MUL_ADD_MUL, {TN_EXPR_MUL, TN_EXPR_ADD}},
        {CPU_OP_SUB_THEN_EXP, {TN_EXPR_SUB, TN_EXPR_EXP}},
        {CPU_OP_MUL_MUL, {TN_EXPR_MUL, TN_EXPR_MUL}},
        {CPU_OP_CLIP, {TN_EXPR_MAX, TN_EXPR_MIN}},
        {CPU_OP_MUL_MUL_ADD, {TN_EXPR_MUL, TN_EXPR_MUL, TN_EXPR_ADD}},
        {CPU_OP_SUB_MUL_MUL, {TN_EXPR_SUB, TN_EXPR_MUL, TN_EXPR_MUL}},
        {CPU_OP_SUB_MUL_MUL_ADD, {TN_EXPR_SUB, TN_EXPR_MUL, TN_EXPR_MUL, TN_EXPR_ADD}},
    };
    if (dtype != TN_F32 && dtype != TN_F64)
        return false;
    if (op == CPU_OP_SELECT_LT || op == CPU_OP_SELECT_LE) {
        uint8_t is_chosen;
        cpu_ref_op(op == CPU_OP_SELECT_LT ? TN_EXPR_LT : TN_EXPR_LE, dtype, &is_chosen, in);
        memcpy(out, is_chosen ? in[2] : in[3], cpu_dtype_size(dtype));
        return true;
    }
    if (op == CPU_OP_REPLACE_NAN) {
        uint8_t is_nan;
        cpu_ref_op(TN_EXPR_ISNAN, dtype, &is_nan, in);
        memcpy(out, is_nan ? in[1] : in[0], cpu_dtype_size(dtype));
        return true;
    }
    if (op >= CPU_OP_FOURTH) {
        static void (*const whole[])(int32_t, void *, const void *const *) = {
            ref_fourth, ref_sigmoid, ref_one_plus_erf, ref_gelu};
        whole[op - CPU_OP_FOURTH](dtype, out, in);
        return true;
    }
    for (uint32_t i = 0; i < sizeof(fused) / sizeof(fused[0]); i++) {
        if (fused[i].op != op)
            continue;
        uint64_t so_far = 0, right = 0;
        cpu_ref_op(fused[i].parts[0], dtype, &so_far, in);
        for (uint32_t k = 1; k < 4 && fused[i].parts[k]; k++) {
            bool is_unary = tn_expr_operands((uint32_t)fused[i].parts[k]) == 1;
            const void *pair[2] = {&so_far, is_unary ? &right : in[k + 1]};
            if (op == CPU_OP_MUL_ADD_MUL) {
                cpu_ref_op(TN_EXPR_MUL, dtype, &right, in + 2);
                pair[1] = &right;
            } else if (op == CPU_OP_SUB_MUL) {
                pair[0] = in[2];
                pair[1] = &so_far;
            }
            cpu_ref_op(fused[i].parts[k], dtype, &so_far, pair);
        }
        memcpy(out, &so_far, cpu_dtype_size(dtype));
        return true;
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
