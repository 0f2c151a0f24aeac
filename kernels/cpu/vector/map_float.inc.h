// SPDX-License-Identifier: MIT
// The operations of one float type: included by map_f32.c and map_f64.c, with T, N (its
// name in tables), M(f) (the mathematical function f of that type), the inline functions
// v_exp and so on, and the loops of sin, cos, tan, mod and pow.
#define F(op) GLUE(op, N)

// As comparisons only, so that a loop over it becomes vector instructions: a NaN in x or y
// comes out.
static inline T F(smaller)(T x, T y)
{
    T least = x < y ? x : y;
    return x != x ? x : least;
}
static inline T F(greater)(T x, T y)
{
    T most = x > y ? x : y;
    return x != x ? x : most;
}

MAP1(F(neg), T, T, -x)
MAP1(F(abs), T, T, M(fabs)(x))
MAP1(F(sign), T, T, x != x ? x : (T)((x > 0) - (x < 0)))
MAP1(F(floor), T, T, M(floor)(x))
MAP1(F(ceil), T, T, M(ceil)(x))
MAP1(F(trunc), T, T, M(trunc)(x))
MAP1(F(round), T, T, M(rint)(x))
MAP1(F(sqrt), T, T, M(sqrt)(x))
MAP1(F(rsqrt), T, T, 1 / M(sqrt)(x))
MAP1(F(exp), T, T, v_exp(x))
MAP1(F(exp2), T, T, v_exp2(x))
MAP1(F(expm1), T, T, v_expm1(x))
MAP1(F(log), T, T, v_log(x))
MAP1(F(log2), T, T, v_log2(x))
MAP1(F(log10), T, T, v_log10(x))
MAP1(F(log1p), T, T, v_log1p(x))
MAP1(F(asin), T, T, v_asin(x))
MAP1(F(acos), T, T, v_acos(x))
MAP1(F(atan), T, T, v_atan(x))
MAP1(F(sinh), T, T, v_sinh(x))
MAP1(F(cosh), T, T, v_cosh(x))
MAP1(F(tanh), T, T, v_tanh(x))
MAP1(F(asinh), T, T, v_asinh(x))
MAP1(F(acosh), T, T, v_acosh(x))
MAP1(F(atanh), T, T, v_atanh(x))
MAP1(F(erf), T, T, v_erf(x))
MAP1(F(isnan), T, uint8_t, x != x)
MAP1(F(isinf), T, uint8_t, M(fabs)(x) == (T)INFINITY)
MAP1(F(isfinite), T, uint8_t, M(fabs)(x) < (T)INFINITY)
MAP2S(F(add), T, T, x + y)
MAP2S(F(sub), T, T, x - y)
MAP2S(F(mul), T, T, x *y)
MAP2S(F(div), T, T, x / y)
MAP2S(F(atan2), T, T, v_atan2(x, y))
MAP2S(F(min), T, T, F(smaller)(x, y))
MAP2S(F(max), T, T, F(greater)(x, y))
MAP2S(F(eq), T, uint8_t, x == y)
MAP2S(F(ne), T, uint8_t, x != y)
MAP2S(F(lt), T, uint8_t, x < y)
MAP2S(F(le), T, uint8_t, x <= y)
MAP2S(F(gt), T, uint8_t, x > y)
MAP2S(F(ge), T, uint8_t, x >= y)
SELECT(F(select), T)

// Fused operations: a loop for each combination of scalars that matters; the others read
// a scalar through a zero step.
#define STEP(k) ((scalars >> (k)&1) ^ 1)
#define FUSED3(name, expression)                                                           \
    static void name(void *out_, const void *const *in, int64_t n, uint32_t scalars)       \
    {                                                                                      \
        T *out = out_;                                                                     \
        const T *a = in[0], *b = in[1], *c = in[2];                                        \
        if (scalars == 0) {                                                                \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i], y = b[i], z = c[i];                                            \
                out[i] = expression;                                                       \
            }                                                                              \
        } else if (scalars == 2) {                                                         \
            T y = *b;                                                                      \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i], z = c[i];                                                      \
                out[i] = expression;                                                       \
            }                                                                              \
        } else if (scalars == 4) {                                                         \
            T z = *c;                                                                      \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i], y = b[i];                                                      \
                out[i] = expression;                                                       \
            }                                                                              \
        } else if (scalars == 6) {                                                         \
            T y = *b, z = *c;                                                              \
            VECTORIZE for (int64_t i = 0; i < n; i++)                                      \
            {                                                                              \
                T x = a[i];                                                                \
                out[i] = expression;                                                       \
            }                                                                              \
        } else {                                                                           \
            int64_t da = STEP(0), db = STEP(1), dc = STEP(2);                              \
            for (int64_t i = 0; i < n; i++) {                                              \
                T x = a[i * da], y = b[i * db], z = c[i * dc];                             \
                out[i] = expression;                                                       \
            }                                                                              \
        }                                                                                  \
    }
FUSED3(F(mul_add), x *y + z)
FUSED3(F(mul_sub), x *y - z)
FUSED3(F(sub_mul), z - x * y)
FUSED3(F(add_mul), (x + y) * z)
FUSED3(F(sub_then_mul), (x - y) * z)

static void F(mul_add_mul)(void *out_, const void *const *in, int64_t n, uint32_t scalars)
{
    T *out = out_;
    const T *a = in[0], *b = in[1], *c = in[2], *d = in[3];
    if (scalars == 10) {
        T s = *b, t = *d;
        VECTORIZE for (int64_t i = 0; i < n; i++)
        {
            out[i] = a[i] * s + c[i] * t;
        }
    } else if (scalars == 0) {
        VECTORIZE for (int64_t i = 0; i < n; i++)
        {
            out[i] = a[i] * b[i] + c[i] * d[i];
        }
    } else {
        int64_t da = STEP(0), db = STEP(1), dc = STEP(2), dd = STEP(3);
        for (int64_t i = 0; i < n; i++)
            out[i] = a[i * da] * b[i * db] + c[i * dc] * d[i * dd];
    }
}

cpu_map_fn *const V(GLUE(cpu_map, N))[CPU_NUM_OPS] = {
    [CPU_OP_NEG] = F(neg),         [CPU_OP_ABS] = F(abs),
    [CPU_OP_SIGN] = F(sign),       [CPU_OP_FLOOR] = F(floor),
    [CPU_OP_CEIL] = F(ceil),       [CPU_OP_TRUNC] = F(trunc),
    [CPU_OP_ROUND] = F(round),     [CPU_OP_SQRT] = F(sqrt),
    [CPU_OP_RSQRT] = F(rsqrt),     [CPU_OP_EXP] = F(exp),
    [CPU_OP_EXP2] = F(exp2),       [CPU_OP_EXPM1] = F(expm1),
    [CPU_OP_LOG] = F(log),         [CPU_OP_LOG2] = F(log2),
    [CPU_OP_LOG10] = F(log10),     [CPU_OP_LOG1P] = F(log1p),
    [CPU_OP_SIN] = F(sin),         [CPU_OP_COS] = F(cos),
    [CPU_OP_TAN] = F(tan),         [CPU_OP_ASIN] = F(asin),
    [CPU_OP_ACOS] = F(acos),       [CPU_OP_ATAN] = F(atan),
    [CPU_OP_SINH] = F(sinh),       [CPU_OP_COSH] = F(cosh),
    [CPU_OP_TANH] = F(tanh),       [CPU_OP_ASINH] = F(asinh),
    [CPU_OP_ACOSH] = F(acosh),     [CPU_OP_ATANH] = F(atanh),
    [CPU_OP_ERF] = F(erf),         [CPU_OP_ISNAN] = F(isnan),
    [CPU_OP_ISINF] = F(isinf),     [CPU_OP_ISFINITE] = F(isfinite),
    [CPU_OP_ADD] = F(add),         [CPU_OP_SUB] = F(sub),
    [CPU_OP_MUL] = F(mul),         [CPU_OP_DIV] = F(div),
    [CPU_OP_MOD] = F(mod),         [CPU_OP_POW] = F(pow),
    [CPU_OP_ATAN2] = F(atan2),     [CPU_OP_MIN] = F(min),
    [CPU_OP_MAX] = F(max),         [CPU_OP_EQ] = F(eq),
    [CPU_OP_NE] = F(ne),           [CPU_OP_LT] = F(lt),
    [CPU_OP_LE] = F(le),           [CPU_OP_GT] = F(gt),
    [CPU_OP_GE] = F(ge),           [CPU_OP_SELECT] = F(select),
    [CPU_OP_MUL_ADD] = F(mul_add), [CPU_OP_MUL_SUB] = F(mul_sub),
    [CPU_OP_SUB_MUL] = F(sub_mul), [CPU_OP_MUL_ADD_MUL] = F(mul_add_mul),
    [CPU_OP_ADD_MUL] = F(add_mul), [CPU_OP_SUB_THEN_MUL] = F(sub_then_mul),
};
