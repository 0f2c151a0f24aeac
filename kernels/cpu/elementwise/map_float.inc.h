// SPDX-License-Identifier: MIT
// The operations of one float type. Included by map_f32.c and map_f64.c, which define T, N
// (its name in tables), M(f) (the C library's function f for that type), CALL1 and CALL2
// (the function of an instruction), JOIN (the loop of COMPLEX), and the loops of SIN, COS,
// TAN, MOD, FLOOR_DIV and POW.
#define F(op) GLUE(op, N)

// MIN and MAX by comparisons alone, so that the compiler vectorises loops over them. A NaN
// in x or y gives a NaN.
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

MAP1(F(NEG), T, T, -x)
MAP1(F(ABS), T, T, M(fabs)(x))
MAP1(F(SIGN), T, T, x != x ? x : (T)((x > 0) - (x < 0)))
MAP1(F(FLOOR), T, T, M(floor)(x))
MAP1(F(CEIL), T, T, M(ceil)(x))
MAP1(F(TRUNC), T, T, M(trunc)(x))
MAP1(F(ROUND), T, T, M(rint)(x))
MAP1(F(SQRT), T, T, M(sqrt)(x))
MAP1(F(RSQRT), T, T, 1 / M(sqrt)(x))
MAP1(F(ISNAN), T, uint8_t, x != x)
MAP1(F(ISINF), T, uint8_t, M(fabs)(x) == (T)INFINITY)
MAP1(F(ISFINITE), T, uint8_t, M(fabs)(x) < (T)INFINITY)
MAP2S(F(ADD), T, T, x + y)
MAP2S(F(SUB), T, T, x - y)
MAP2S(F(MUL), T, T, x *y)
MAP2S(F(DIV), T, T, x / y)
MAP2S(F(MIN), T, T, F(smaller)(x, y))
MAP2S(F(MAX), T, T, F(greater)(x, y))
MAP2S(F(EQ), T, uint8_t, x == y)
MAP2S(F(NE), T, uint8_t, x != y)
// GT and GE call these functions, since their loops are long.
__attribute__((noinline)) static cpu_map_fn F(LT), F(LE);
MAP2S(F(LT), T, uint8_t, x < y)
MAP2S(F(LE), T, uint8_t, x <= y)
MAP2_SWAPPED(F(GT), F(LT))
MAP2_SWAPPED(F(GE), F(LE))
SELECT(F(SELECT), T)

// Loops of class FUNCTION, made from the SDK's table of instructions: a new function needs
// only its CALL1 or CALL2, unless the file that includes this has its loop and defines
// LOOP_OF_NAME as OWN_LOOP.
#define OTHER(...) SECOND(__VA_ARGS__)
#define SECOND(a, b, ...) b
#define OWN_LOOP , NO_LOOP
#define NO_LOOP(...)
#define LOOP(name, text, operands, class, dtypes) LOOP_##dtypes(name, operands, class)
#define LOOP_FLOAT(name, operands, class) LOOP_##class(name, operands)
#define LOOP_FUNCTION(name, operands) LOOP_FUNCTION_##operands(name)
#define LOOP_FUNCTION_1(name) OTHER(LOOP_OF_##name, MAP1, )(F(name), T, T, CALL1(name, x))
#define LOOP_FUNCTION_2(name) MAP2S(F(name), T, T, CALL2(name, x, y))
// Loops of the other classes are written out, in this file or in the file that includes it.
#define LOOP_NONE(...)
#define LOOP_ANY(...)
#define LOOP_NUMBER(...)
#define LOOP_INTEGER(...)
#define LOOP_BITS(...)
#define LOOP_BOOL(...)
#define LOOP_ROW_NUMBER(...)
#define LOOP_ROW_ANY(...)
#define LOOP_FLOAT_COMPLEX LOOP_FLOAT
#define LOOP_ANY_COMPLEX(...)
#define LOOP_NUMBER_COMPLEX(...)
#define LOOP_COMPLEX(...)
#define LOOP_PARTS(...)
#define LOOP_ROUND(...)
#define LOOP_ROOT(...)
#define LOOP_CIRCULAR(...)
#define LOOP_TEST(...)
#define LOOP_POWER(...)
TN_EXPR_OPS(LOOP)

// Fused operations. The combinations of scalars that programs often have get a loop each,
// with the scalars in registers; the others share a loop that reads a scalar with a step of
// 0.
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
FUSED3(F(MUL_ADD), x *y + z)
FUSED3(F(MUL_SUB), x *y - z)
FUSED3(F(SUB_MUL), z - x * y)
FUSED3(F(ADD_MUL), (x + y) * z)
FUSED3(F(SUB_THEN_MUL), (x - y) * z)
FUSED3(F(MUL_MUL), x *y *z)
FUSED3(F(CLIP), F(smaller)(F(greater)(x, y), z))
MAP2S(F(SUB_THEN_EXP), T, T, CALL1(EXP, x - y))
MAP2S(F(REPLACE_NAN), T, T, x != x ? y : x)
MAP1(F(FOURTH), T, T, (x * x) * (x * x))
MAP1(F(SIGMOID), T, T, v_SIGMOID(x))
MAP1(F(ONE_PLUS_ERF), T, T, v_ONE_PLUS_ERF(x))
MAP1(F(GELU), T, T, (T)0.5 * x * F(one_plus_erf)(x * (T)CPU_SQRT_HALF))

static void F(MUL_ADD_MUL)(void *out_, const void *const *in, int64_t n, uint32_t scalars)
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

// Fused operations of four and five operands, with loops for one or two sets of scalars:
// `loop` is inlined, with `scalars` a constant but in the last call.
#define OPERAND(k)                                                                         \
    const T *p##k = in[k];                                                                 \
    const T s##k = scalars >> (k)&1 ? *p##k : 0;
#define AT(k) (scalars >> (k)&1 ? s##k : p##k[i])
#define FUSED_MANY(name, loop, operands, first, second, expression)                        \
    static inline __attribute__((always_inline)) void loop(T *out, const void *const *in,  \
                                                           int64_t n, uint32_t scalars)    \
    {                                                                                      \
        operands VECTORIZE for (int64_t i = 0; i < n; i++)                                 \
        {                                                                                  \
            out[i] = expression;                                                           \
        }                                                                                  \
    }                                                                                      \
    static void name(void *out, const void *const *in, int64_t n, uint32_t scalars)        \
    {                                                                                      \
        if (scalars == (first))                                                            \
            loop(out, in, n, first);                                                       \
        else if (scalars == (second))                                                      \
            loop(out, in, n, second);                                                      \
        else if (scalars == 0)                                                             \
            loop(out, in, n, 0);                                                           \
        else                                                                               \
            loop(out, in, n, scalars);                                                     \
    }
#define OPERANDS4 OPERAND(0) OPERAND(1) OPERAND(2) OPERAND(3)
FUSED_MANY(F(MUL_MUL_ADD), F(MUL_MUL_ADD_loop), OPERANDS4, 0, 2,
           AT(0) * AT(1) * AT(2) + AT(3))
FUSED_MANY(F(SUB_MUL_MUL), F(SUB_MUL_MUL_loop), OPERANDS4, 2, 6,
           (AT(0) - AT(1)) * AT(2) * AT(3))
FUSED_MANY(F(SUB_MUL_MUL_ADD), F(SUB_MUL_MUL_ADD_loop), OPERANDS4 OPERAND(4), 2, 6,
           (AT(0) - AT(1)) * AT(2) * AT(3) + AT(4))
// SELECT by a comparison, with loops for the sets of scalars that activations have.
#define SELECT_BY(name, loop, order)                                                       \
    static inline __attribute__((always_inline)) void loop(T *out, const void *const *in,  \
                                                           int64_t n, uint32_t scalars)    \
    {                                                                                      \
        OPERANDS4 VECTORIZE for (int64_t i = 0; i < n; i++)                                \
        {                                                                                  \
            T yes = AT(2), no = AT(3);                                                     \
            out[i] = AT(0) order AT(1) ? yes : no;                                         \
        }                                                                                  \
    }                                                                                      \
    static void name(void *out, const void *const *in, int64_t n, uint32_t scalars)        \
    {                                                                                      \
        switch (scalars) {                                                                 \
        case 1:                                                                            \
            loop(out, in, n, 1);                                                           \
            break;                                                                         \
        case 2:                                                                            \
            loop(out, in, n, 2);                                                           \
            break;                                                                         \
        case 5:                                                                            \
            loop(out, in, n, 5);                                                           \
            break;                                                                         \
        case 6:                                                                            \
            loop(out, in, n, 6);                                                           \
            break;                                                                         \
        default:                                                                           \
            loop(out, in, n, scalars);                                                     \
        }                                                                                  \
    }
SELECT_BY(F(SELECT_LT), F(SELECT_LT_loop), <)
SELECT_BY(F(SELECT_LE), F(SELECT_LE_loop), <=)

// Table entries of all instructions that take floats.
#define ENTRY_NONE(name)
#define ENTRY_ANY(name) [TN_EXPR_##name] = F(name),
#define ENTRY_NUMBER ENTRY_ANY
#define ENTRY_FLOAT ENTRY_ANY
#define ENTRY_FLOAT_COMPLEX ENTRY_ANY
#define ENTRY_NUMBER_COMPLEX ENTRY_ANY
#define ENTRY_ANY_COMPLEX ENTRY_ANY
#define ENTRY_COMPLEX ENTRY_NONE
#define ENTRY_PARTS(name) [TN_EXPR_##name] = JOIN,
#define ENTRY_INTEGER ENTRY_NONE
#define ENTRY_BITS ENTRY_NONE
#define ENTRY_BOOL ENTRY_NONE
#define ENTRY_ROW_NUMBER ENTRY_NONE
#define ENTRY_ROW_ANY ENTRY_NONE
#define ENTRY(name, text, operands, class, dtypes) ENTRY_##dtypes(name)
#define FUSED(name, operands) [CPU_OP_##name] = F(name),

cpu_map_fn *const V(GLUE(cpu_map, N))[CPU_NUM_OPS] = {TN_EXPR_OPS(ENTRY)
                                                          CPU_FUSED_OPS(FUSED)};
