// SPDX-License-Identifier: MIT
// The operations of one complex type. Included by map_complex.c, which defines T, N (its
// name in tables), PART (the type of a part) and PART_DTYPE.
#define F(op) GLUE(op, N)

static inline tn_complex128 F(wide)(T x)
{
    return (tn_complex128){(double)x.re, (double)x.im};
}
static inline T F(narrow)(tn_complex128 x)
{
    return (T){(PART)x.re, (PART)x.im};
}

COMPLEX1(F(NEG), T, ((T){-x.re, -x.im}))
COMPLEX1(F(CONJ), T, ((T){x.re, -x.im}))
COMPLEX1(F(REAL), PART, x.re)
COMPLEX1(F(IMAG), PART, x.im)
COMPLEX1(F(ISNAN), uint8_t, (uint8_t)(x.re != x.re || x.im != x.im))
COMPLEX1(F(ISINF), uint8_t,
         (uint8_t)(is_infinite((double)x.re) || is_infinite((double)x.im)))
COMPLEX1(F(ISFINITE), uint8_t, (uint8_t)(x.re - x.re == 0 && x.im - x.im == 0))
COMPLEX2(F(ADD), T, ((T){x.re + y.re, x.im + y.im}))
COMPLEX2(F(SUB), T, ((T){x.re - y.re, x.im - y.im}))
COMPLEX2(F(MUL), T, ((T){x.re * y.re - x.im * y.im, x.re *y.im + x.im *y.re}))
COMPLEX2(F(EQ), uint8_t, (uint8_t)(x.re == y.re && x.im == y.im))
COMPLEX2(F(NE), uint8_t, (uint8_t)(x.re != y.re || x.im != y.im))
SELECT(F(SELECT), T)

// Computed by <tenon/ops/program.h>, in double.
COMPLEX1(F(MODULUS), PART, MODULUS_OF(x.re, x.im))
COMPLEX2(F(DIV), T, F(narrow)(tn_complex_divide(F(wide)(x), F(wide)(y))))
COMPLEX2(F(POW), T, F(narrow)(map_complex_power(F(wide)(x), F(wide)(y))))
// The choice by `op` costs little beside the function, and one loop takes less room.
static NOINLINE void F(function)(uint32_t op, T *out, const void *const *in, int64_t n)
{
    const T *a = in[0];
    for (int64_t i = 0; i < n; i++)
        out[i] = F(narrow)(map_complex_function_of(op, F(wide)(a[i])));
}
#define LOOP(name, text, operands, class, dtypes) LOOP_##dtypes(name, class)
#define LOOP_FLOAT_COMPLEX(name, class) LOOP_##class(name)
#define LOOP_FUNCTION(name)                                                                \
    static void F(name)(void *out, const void *const *in, int64_t n, uint32_t scalars)     \
    {                                                                                      \
        (void)scalars;                                                                     \
        F(function)(TN_EXPR_##name, out, in, n);                                           \
    }
#define LOOP_ROOT LOOP_FUNCTION
#define LOOP_CIRCULAR LOOP_FUNCTION
#define LOOP_TEST(name)
TN_EXPR_OPS(LOOP)

void VC(GLUE(join, N))(void *out_, const void *const *in, int64_t n, uint32_t scalars)
{
    T *out = out_;
    const PART *a = in[0], *b = in[1];
    int64_t da = scalars & 1 ? 0 : 1, db = scalars & 2 ? 0 : 1;
    for (int64_t i = 0; i < n; i++)
        out[i] = (T){a[i * da], b[i * db]};
}

#define ENTRY(name, text, operands, class, dtypes) ENTRY_##dtypes(name)
cpu_map_fn *const VC(GLUE(cpu_map, N))[CPU_NUM_OPS] = {TN_EXPR_OPS(ENTRY)};

// --- conversions -----------------------------------------------------------------------

// Converts blocks of parts by the casts of the parts' dtype.
static NOINLINE void F(to)(void *out_, const void *const *in, int64_t n, int32_t to)
{
    PART parts[CAST_BLOCK];
    const T *a = in[0];
    char *out = out_;
    for (int64_t at = 0; at < n; at += CAST_BLOCK) {
        int64_t count = n - at < CAST_BLOCK ? n - at : CAST_BLOCK;
        const void *block = parts;
        for (int64_t i = 0; i < count; i++)
            parts[i] = a[at + i].re;
        V(cpu_casts)[PART_DTYPE][to](out + at * cpu_dtype_size(to), &block, count, 0);
    }
}
static NOINLINE void F(from)(void *out_, const void *const *in, int64_t n, int32_t from)
{
    PART parts[CAST_BLOCK];
    T *out = out_;
    const char *a = in[0];
    for (int64_t at = 0; at < n; at += CAST_BLOCK) {
        int64_t count = n - at < CAST_BLOCK ? n - at : CAST_BLOCK;
        const void *block = a + at * cpu_dtype_size(from);
        V(cpu_casts)[from][PART_DTYPE](parts, &block, count, 0);
        for (int64_t i = 0; i < count; i++)
            out[at + i] = (T){parts[i], 0};
    }
}

#define CASTS(name, dtype)                                                                 \
    void VC(GLUE(GLUE(N, to), name))(void *out, const void *const *in, int64_t n,          \
                                     uint32_t scalars)                                     \
    {                                                                                      \
        (void)scalars;                                                                     \
        F(to)(out, in, n, dtype);                                                          \
    }                                                                                      \
    CAST_FROM(name, dtype)
#define CAST_FROM(name, dtype)                                                             \
    void VC(GLUE(name##_to, N))(void *out, const void *const *in, int64_t n,               \
                                uint32_t scalars)                                          \
    {                                                                                      \
        (void)scalars;                                                                     \
        F(from)(out, in, n, dtype);                                                        \
    }
CPU_REAL_DTYPES(CASTS)
CAST_FROM(bool, TN_BOOL)

#undef F
#undef LOOP
#undef LOOP_FUNCTION
#undef CASTS
#undef CAST_FROM
#undef ENTRY
