// SPDX-License-Identifier: MIT
// Every loop of every variant that this processor can run against its definition, on
// hostile values.
// Lengths go around each vector width, starts are not aligned, canaries stand on both sides
// of the output, and operands are given as arrays and as scalars. All variants must give
// the same bits, but see differs_without_fma(); how far they may be from the definition is
// in `bounds`.
#include "check.h"

#include <math.h>
#include <time.h>
#include <tenon/ops/reference.h>
#include "cpu/cpu.h"
#include "../sanitized.h"
#include "cpu/ref/map_bounds.h"
#include "cpu/ref/ops_ref.h"

static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

// --- values ----------------------------------------------------------------------------

static const double special[] = {
    0.0,           -0.0,      1.0,          -1.0, 0.5,        -0.5,      2.0,     -2.0,
    1e-40,         -1e-40,    1e-310,       1e30, -1e30,      3e38,      -3e38,   1e300,
    INFINITY,      -INFINITY, NAN,          88.7, -87.3,      -103.0,    709.7,   -745.0,
    1.1754944e-38, 3.1415927, 1.5707964,    1e-8, 0.99999994, 1.0000001, 65504.0, 65519.9,
    65520.0,       6e-8,      2.9802322e-8, 1e7,  0.7853982};

static double draw_float(void)
{
    uint64_t r = draw();
    switch (r % 6) {
    case 0:
        return special[(r >> 8) % (sizeof(special) / sizeof(special[0]))];
    case 1: { // any bits of an f32
        uint32_t bits = (uint32_t)(r >> 16);
        float f;
        memcpy(&f, &bits, sizeof(f));
        return (double)f;
    }
    case 2:
        return (double)(int64_t)(r >> 40) / (1 << 20) - 8;
    case 3:
        return ((double)(r >> 11) / 9007199254740992.0 - 0.5) * 200;
    default:
        return ((double)(r >> 11) / 9007199254740992.0 - 0.5) * 4;
    }
}

static void draw_element(int32_t dtype, void *out)
{
    double x = draw_float();
    int64_t i = (int64_t)draw();
    if (tn_is_complex(dtype)) {
        draw_element(tn_dtype_real(dtype), out);
        draw_element(tn_dtype_real(dtype), (char *)out + cpu_dtype_size(dtype) / 2);
        return;
    }
    if (tn_is_float(tn_dtype_computed(dtype))) {
        cpu_ref_cast(TN_F64, dtype, out, &x);
        return;
    }
    if (draw() % 4 == 0)
        i >>= draw() % 64;
    else if (draw() % 2)
        i = i % 10;
    if (draw() % 16 == 0)
        i = draw() % 2 ? INT64_MIN : INT64_MAX;
    cpu_ref_cast(TN_I64, dtype, out, &i);
}

// --- comparing -------------------------------------------------------------------------

static double value_of(int32_t dtype, const void *x)
{
    double d;
    cpu_ref_cast(dtype, TN_F64, &d, x);
    return d;
}

// Distance in units of the last place of the definition's result.
static double ulps(int32_t dtype, double got, double want)
{
    int bits = dtype == TN_F64 ? 53 : 24, least = dtype == TN_F64 ? -1074 : -149, exponent;
    if (got == 0 && want == 0)
        return signbit(got) == signbit(want) ? 0 : INFINITY;
    if (got == want || (isnan(got) && isnan(want)))
        return 0;
    if (!isfinite(got) || !isfinite(want))
        return INFINITY;
    frexp(want, &exponent);
    exponent -= bits;
    return fabs(got - want) / ldexp(1, exponent < least ? least : exponent);
}

// Whether `y` is the function of f64 that it should be; *out_known where it has a bound.
static bool is_wide_near(int32_t op, const void *const *in, double y, bool *out_known)
{
    for (size_t i = 0; i < sizeof(wide_bounds) / sizeof(wide_bounds[0]); i++) {
        if (wide_bounds[i].op != op)
            continue;
        double x = *(const double *)in[0];
        x = op == CPU_OP_SUB_THEN_EXP ? x - *(const double *)in[1] : x;
        long double want = wide_bounds[i].wide2
                               ? wide_bounds[i].wide2(x, *(const double *)in[1])
                               : wide_bounds[i].wide(x);
        double rounded = (double)want;
        *out_known = true;
        if (rounded == 0 || !isfinite(rounded) || !isfinite(y))
            return ulps(TN_F64, y, rounded) <= 1; // also the sign of a zero
        int exponent;
        frexp(rounded, &exponent);
        exponent = exponent - 53 < -1074 ? -1074 : exponent - 53;
        return fabsl(y - want) <= wide_bounds[i].f64 * ldexpl(1, exponent);
    }
    *out_known = false;
    return false;
}

static tn_complex128 complex_of(int32_t dtype, const void *x)
{
    const tn_tensor tensor = {(void *)(uintptr_t)x, {.dtype = dtype}};
    return tn_get_complex(&tensor, 0);
}

// Of complex numbers: within some units of the last place of the magnitude. complex128 is
// computed as defined. Of complex64 sums and products are not, so what overflows on the way
// may be infinite or NaN.
static bool is_near(int32_t dtype, const void *result, const void *want)
{
    tn_complex128 x = complex_of(dtype, result), y = complex_of(dtype, want);
    double limit = 6 * ldexp(hypot(y.re, y.im), -tn_dtype_precision(dtype));
    double parts[][2] = {{x.re, y.re}, {x.im, y.im}};
    bool is_wide = dtype == TN_COMPLEX128 || dtype == TN_F64, near = true;
    for (int i = 0; i < 2; i++) {
        double a = parts[i][0], b = parts[i][1];
        bool same = a == b || (isnan(a) && isnan(b));
        bool overflows = !isfinite(a) || !isfinite(b) || !isfinite(limit);
        near &= same || (!is_wide && (overflows || fabs(a - b) <= limit + 0x1p-120));
    }
    return near;
}

// 1 + erf(x), and x / 2 times that of x * sqrt(1 / 2), are as near as sums of 1 are: within
// an absolute bound, the latter for x = 1; from f32's 3.96 on erfc is 0.
static bool is_near_one(int32_t op, int32_t dtype, const void *in, double x, double want)
{
    double unit = dtype == TN_F64 ? 0x1p-51 : 0x1p-22;
    double scale = op == CPU_OP_ONE_PLUS_ERF ? 1
                   : op == CPU_OP_GELU       ? fabs(value_of(dtype, in)) / 2
                                             : 0;
    return fabs(x - want) <= unit * scale && signbit(x) == signbit(want);
}

static double bound_of(int32_t op, int32_t dtype)
{
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++)
        if (bounds[i].op == op && dtype == TN_F32)
            return bounds[i].f32;
    return 0;
}

// --- one loop --------------------------------------------------------------------------

#define MAX_N 300
#define GUARD 32

static const struct {
    const char *name;
    int32_t operands;
} ops[] = {
#define ROW(name, text, operands, ...) {#name, operands},
#define FUSED(name, operands) {#name, operands},
    TN_EXPR_OPS(ROW) CPU_FUSED_OPS(FUSED)
#undef ROW
#undef FUSED
};

static unsigned char inputs[CPU_MAX_OPERANDS][MAX_N * 16 + 64];
static unsigned char got[MAX_N * 16 + 2 * GUARD + 64], first_got[MAX_N * 16];

static void check_element(const struct cpu_kernels *k, int32_t op, int32_t dtype,
                          const void *const *in, const void *result, int64_t i)
{
    int32_t result_dtype = cpu_ref_result(op, dtype);
    tn_complex128 want = {0, 0};
    cpu_ref_op(op, dtype, &want, in);
    double x = value_of(result_dtype, result), y = value_of(result_dtype, &want);
    bool is_inexact = tn_is_float(result_dtype) || tn_is_complex(result_dtype);
    bool is_complex = tn_is_complex(dtype) || tn_is_complex(result_dtype);
    bool is_known = false, is_wide = dtype == TN_F64 && is_wide_near(op, in, x, &is_known);
    bool is_own = is_known && k->needs != 0; // `baseline` may call the C library
    bool good = is_own                     ? is_wide
                : is_complex && is_inexact ? is_near(result_dtype, result, &want)
                : tn_is_float(result_dtype)
                    ? is_wide || ulps(dtype, x, y) <= bound_of(op, dtype) ||
                          is_near_one(op, dtype, in[0], x, y)
                    : memcmp(result, &want, cpu_dtype_size(result_dtype)) == 0;
    if (!good)
        cr_fatal("%s %s dtype %d, seed %llu: [%lld] of (%.17g, %.17g) is %.17g, not %.17g",
                 k->name, ops[op].name, dtype, (unsigned long long)seed, (long long)i,
                 value_of(op == TN_EXPR_SELECT ? TN_BOOL : dtype, in[0]),
                 ops[op].operands > 1 ? value_of(dtype, in[1]) : 0, x, y);
}

// Functions that are made of fused multiply-adds where the processor has them, as all that
// run another variant than `baseline` do.
static bool differs_without_fma(const struct cpu_kernels *k, int32_t op, int32_t dtype)
{
    static const int32_t made_of_fma[] = {
        TN_EXPR_EXP,    TN_EXPR_EXP2,        TN_EXPR_LOG,         TN_EXPR_LOG2,
        TN_EXPR_LOG10,  TN_EXPR_LOG1P,       TN_EXPR_SIN,         TN_EXPR_COS,
        TN_EXPR_TANH,   TN_EXPR_ERF,         CPU_OP_SUB_THEN_EXP, CPU_OP_SIGMOID,
        TN_EXPR_ERFINV, CPU_OP_ONE_PLUS_ERF, CPU_OP_GELU};
    bool is_made = false;
    for (size_t i = 0; i < sizeof(made_of_fma) / sizeof(made_of_fma[0]); i++)
        is_made |= dtype == TN_F32 && op == made_of_fma[i];
    for (size_t i = 0; i < sizeof(wide_bounds) / sizeof(wide_bounds[0]); i++)
        is_made |= dtype == TN_F64 && op == wide_bounds[i].op;
    is_made |= dtype == TN_F64 && op >= CPU_OP_ONE_PLUS_ERF;
    return is_made && k->needs == 0;
}

static void check_loop(const struct cpu_kernels *k, int32_t op, int32_t dtype, int64_t n,
                       uint32_t scalars, int64_t start, bool first)
{
    const void *in[CPU_MAX_OPERANDS];
    int32_t result_dtype = cpu_ref_result(op, dtype);
    uint32_t size = cpu_dtype_size(dtype), result_size = cpu_dtype_size(result_dtype);
    unsigned char *out = got + GUARD + start * result_size;

    for (int32_t i = 0; i < ops[op].operands; i++)
        in[i] = inputs[i] + start * (op == TN_EXPR_SELECT && i == 0 ? 1 : size);
    memset(got, 0xa5, sizeof(got));
    k->map[dtype][op](out, in, n, scalars);
    for (uint32_t i = 0; i < GUARD; i++)
        if (out[-1 - (int32_t)i] != 0xa5 || out[n * result_size + i] != 0xa5)
            cr_fatal("%s %s dtype %d n %lld wrote outside its output", k->name,
                     ops[op].name, dtype, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const void *at[CPU_MAX_OPERANDS];
        for (int32_t j = 0; j < ops[op].operands; j++)
            at[j] =
                (const char *)in[j] +
                (scalars >> j & 1 ? 0 : i * (op == TN_EXPR_SELECT && j == 0 ? 1 : size));
        check_element(k, op, dtype, at, out + i * result_size, i);
    }
    if (first)
        memcpy(first_got, out, (size_t)(n * result_size));
    if (differs_without_fma(k, op, dtype))
        return;
    for (int64_t i = 0; i < n * result_size; i += result_size)
        if (memcmp(first_got + i, out + i, result_size) != 0 &&
            !isnan(value_of(result_dtype, out + i)) &&
            !isnan(complex_of(result_dtype, out + i).im))
            cr_fatal("%s %s dtype %d: not the bits of the other variants", k->name,
                     ops[op].name, dtype);
}

static const int64_t lengths[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,  15,
                                  16, 17, 31, 32, 33, 63, 64, 65, 255};

static bool runs_here(const struct cpu_kernels *k)
{
    return (k->needs & cpu_features()) == k->needs;
}

static void check_op(int32_t op, int32_t dtype)
{
    tn_complex128 probe[CPU_MAX_OPERANDS] = {{0, 0}}, result;
    const void *in[CPU_MAX_OPERANDS];
    for (int32_t i = 0; i < CPU_MAX_OPERANDS; i++)
        in[i] = &probe[i];
    bool defined = cpu_ref_op(op, dtype, &result, in);
    uint32_t masks = cpu_takes_scalars(op, dtype) ? 1u << ops[op].operands : 1;

    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        if (((*k)->map[dtype] && (*k)->map[dtype][op]) != defined)
            cr_fatal("%s %s dtype %d: a loop without definition, or the other way round",
                     (*k)->name, ops[op].name, dtype);
    for (size_t l = 0; defined && l < sizeof(lengths) / sizeof(lengths[0]); l++) {
        for (uint32_t mask = 0; mask < masks; mask++) {
            int64_t n = lengths[l];
            bool first = true;
            for (int32_t i = 0; i < ops[op].operands; i++)
                for (int64_t j = 0; j < n + 8; j++) {
                    bool condition = op == TN_EXPR_SELECT && i == 0;
                    draw_element(condition ? TN_BOOL : dtype,
                                 inputs[i] + j * (condition ? 1 : cpu_dtype_size(dtype)));
                }
            for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
                if (!runs_here(*k))
                    continue;
                check_loop(*k, op, dtype, n, mask, (int64_t)(l % 4), first);
                first = false;
            }
        }
    }
}

static void draw_seed(void)
{
    seed = check_seed((uint64_t)time(NULL) % 1000000 + 1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15);
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        fprintf(stderr, "# variant %s: %s\n", (*k)->name,
                runs_here(*k) ? "checked"
                              : "skipped, this processor has not what it needs");
}

TestSuite(cpu_maps, .init = draw_seed);

DTYPE_TEST(cpu_maps, loops_do_what_is_defined, dtype, TN_BOOL)
{
    if (tn_dtype_computed(dtype) != dtype)
        return; // computed as f32
    for (int32_t op = TN_EXPR_NEG; op < CPU_NUM_OPS; op++)
        check_op(op, dtype);
}

// --- functions on many points ----------------------------------------------------------

// f32 operands of all exponents, of a range about 0, and edges: each paired with others.
static void fill_points(float *x, int64_t n)
{
    static const uint32_t edges[] = {
        0,          0x80000000, 1,          0x807fffff, 0x00800000, 0x7f7fffff, 0xff7fffff,
        0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001,
        0x4b7fffff, 0x4b800000, 0xcb800001, 0x49742400, 0x49742401, 0xc9742401, 0x3f000000,
        0x3f000001, 0x40400000, 0xc0400000, 0x40000000, 0xc0000000, 0x42b17218, 0xc2ce8ed0};
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = draw();
        uint32_t bits = (uint32_t)(r >> 32);
        if (r % 8 == 0)
            bits = edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
        memcpy(&x[i], &bits, sizeof(bits));
        if (r % 8 > 3)
            x[i] = ((float)(r >> 40) / 8388608.0f - 1) * (r % 8 > 5 ? 1.5f : 100.0f);
        if (r % 32 == 4)
            x[i] = rintf(x[i]);
    }
}

static bool is_function(int32_t op)
{
    uint32_t class =
        cpu_is_fused(op) ? TN_EXPR_CLASS_ARITHMETIC : tn_expr_class((uint32_t)op);
    return class == TN_EXPR_CLASS_FUNCTION || class == TN_EXPR_CLASS_CIRCULAR ||
           class == TN_EXPR_CLASS_POWER;
}

// f64 operands likewise: all exponents, ranges about 0, multiples of pi / 2, edges.
static void fill_wide_points(double *x, int64_t n)
{
    static const double edges[] = {0x1.62e42fefa39efp+9,
                                   0x1.62e42fefa39f0p+9,
                                   -745.13,
                                   -745.14,
                                   710.4758600739439,
                                   5e-324,
                                   0x1p-1022,
                                   1e9,
                                   1.0000001e9,
                                   -1,
                                   1024,
                                   -1075};
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = draw(), bits = draw();
        double u = (double)(draw() >> 11) / 9007199254740992.0 - 0.5;
        memcpy(&x[i], &bits, sizeof(bits));
        if (r % 8 == 0)
            x[i] = edges[(r >> 8) % (sizeof(edges) / sizeof(edges[0]))];
        else if (r % 8 == 1)
            x[i] = rint(u * 1e9) * 1.5707963267948966;
        else if (r % 8 == 2)
            x[i] = 1 + u * 0.01;
        else if (r % 8 > 2)
            x[i] = u * (r % 8 == 7 ? 1500 : r % 8 == 6 ? 50 : 4);
    }
}

Test(cpu_maps, functions_of_f64_hold_their_bounds_on_many_points)
{
    static double x[1000], y[1000], out[1000], alone[1000];
    for (size_t f = 0; f < sizeof(wide_bounds) / sizeof(wide_bounds[0]); f++)
        for (int round = 0; round < ROUNDS(40); round++) {
            int32_t op = wide_bounds[f].op;
            fill_wide_points(x, 1000);
            for (int64_t i = 0; round == 0 && i < 1000; i++) // a block without rare cases
                x[i] = sin((double)i);
            if (wide_bounds[f].wide2)
                fill_wide_points(y, 1000);
            for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
                const void *in[] = {x, y};
                if (!runs_here(*k))
                    continue;
                (*k)->map[TN_F64][op](out, in, 1000, 0);
                for (int64_t i = 0; i < 1000; i++) {
                    const void *at[] = {&x[i], &y[i]};
                    check_element(*k, op, TN_F64, at, &out[i], i);
                    (*k)->map[TN_F64][op](&alone[i], at, 1, 0); // the same wherever it is
                    cr_assert(isnan(out[i]) || memcmp(&alone[i], &out[i], 8) == 0);
                }
            }
        }
}

Test(cpu_maps, functions_hold_their_bounds_on_many_points)
{
    static float x[1000], y[1000], out[1000], first[1000];
    for (int32_t op = 0; op < CPU_NUM_OPS; op++) {
        for (int round = 0; is_function(op) && round < ROUNDS(40); round++) {
            const struct cpu_kernels *before = NULL;
            fill_points(x, 1000);
            fill_points(y, 1000);
            if (round == 0) // a block without rare cases
                for (int64_t i = 0; i < 1000; i++)
                    x[i] = 0.5f + fabsf(sinf((float)i)), y[i] = cosf((float)i);
            for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
                const void *in[] = {x, y};
                if (!runs_here(*k))
                    continue;
                (*k)->map[TN_F32][op](out, in, 1000, 0);
                for (int64_t i = 0; i < 1000; i++) {
                    const void *at[] = {&x[i], &y[i]};
                    check_element(*k, op, TN_F32, at, &out[i], i);
                    if (before && !differs_without_fma(*k, op, TN_F32) &&
                        memcmp(&first[i], &out[i], 4) != 0 && !isnan(out[i]))
                        cr_fatal("%s %s: (%.9g, %.9g) gives not the bits of %s", (*k)->name,
                                 ops[op].name, (double)x[i], (double)y[i], before->name);
                }
                memcpy(first, out, sizeof(first));
                before = *k;
            }
        }
    }
}

// That `got` is what the definition makes of `in`.
static void is_cast(const struct cpu_kernels *k, int32_t from, int32_t to, const char *in,
                    int64_t n)
{
    uint32_t in_size = cpu_dtype_size(from), out_size = cpu_dtype_size(to);
    for (int64_t i = 0; i < n; i++) {
        tn_complex128 want = {0, 0};
        cpu_ref_cast(from, to, &want, in + i * in_size);
        if (tn_is_complex(to) && is_near(to, got + GUARD + i * out_size, &want))
            continue;
        if (memcmp(got + GUARD + i * out_size, &want, out_size) != 0 &&
            !(tn_is_float(tn_dtype_computed(to)) && isnan(value_of(to, &want)) &&
              isnan(value_of(to, got + GUARD + i * out_size))))
            cr_fatal("%s cast %d to %d, seed %llu: [%lld] of %lld, %.17g, is %.9g, "
                     "expected %.9g",
                     k->name, from, to, (unsigned long long)seed, (long long)i,
                     (long long)n, value_of(from, in + i * in_size),
                     value_of(to, got + GUARD + i * out_size), value_of(to, &want));
    }
}

// To memory of its own, and where the input begins.
static void compare_cast(const struct cpu_kernels *k, int32_t from, int32_t to,
                         const char *in, int64_t n)
{
    uint32_t in_size = cpu_dtype_size(from), out_size = cpu_dtype_size(to);
    const void *start = in, *here = got + GUARD;
    memset(got, 0xa5, sizeof(got));
    k->cast[from][to](got + GUARD, &start, n, 0);
    cr_assert(eq(u8, got[GUARD - 1], 0xa5));
    cr_assert(eq(u8, got[GUARD + n * out_size], 0xa5));
    is_cast(k, from, to, in, n);
    if (out_size > in_size)
        return;
    memcpy(got + GUARD, in, (size_t)n * in_size);
    k->cast[from][to](got + GUARD, &here, n, 0);
    is_cast(k, from, to, in, n);
}

static void check_cast(int32_t from, int32_t to, int64_t n)
{
    uint32_t size = cpu_dtype_size(from);
    for (int64_t i = 0; i < n + 1; i++)
        draw_element(from, inputs[0] + i * size);
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        if (runs_here(*k))
            compare_cast(*k, from, to, (const char *)inputs[0] + size, n);
}

// Blocks of which all are in range are converted in another way: one that is not stands at
// each position of what is otherwise small, at both ends of the range and behind them.
static void check_cast_positions(int32_t from, int32_t to, int64_t n)
{
    static const double ends[] = {NAN,
                                  INFINITY,
                                  -INFINITY,
                                  -1,
                                  -129,
                                  256,
                                  128,
                                  -2147483648.0,
                                  2147483648.0,
                                  4294967296.0,
                                  9223372036854775808.0,
                                  1e30};
    uint32_t size = cpu_dtype_size(from);
    for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
        for (int64_t at = -1; at < n; at++) {
            for (int64_t i = 0; i < n; i++) {
                double x = i == at ? ends[e] : (double)(i % 100) + 0.5;
                cpu_ref_cast(TN_F64, from, inputs[0] + i * size, &x);
            }
            for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
                if (runs_here(*k))
                    compare_cast(*k, from, to, (const char *)inputs[0], n);
        }
}

Test(cpu_maps, floats_out_of_range_saturate_wherever_they_stand)
{
    static const int64_t few[] = {1, 3, 4, 7, 8, 9, 15, 16, 17, 33};
    for (int32_t from = TN_F32; from <= TN_F64; from++)
        for (int32_t to = TN_BOOL; to < TN_NUM_DTYPES; to++)
            for (size_t l = 0; l < sizeof(few) / sizeof(few[0]); l++)
                if (tn_dtype_in(to, TN_INTEGER_DTYPES))
                    check_cast_positions(from, to, few[l]);
}

// The test of a range is made for so many elements at once: two such blocks and a few more.
Test(cpu_maps, each_block_of_a_cast_stands_alone)
{
    enum { N = 2 * 1024 + 5 };
    static float x[N];
    static int32_t out[N];
    const void *in = x;
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++)
        for (int64_t at = 0; runs_here(*k) && at < N;
             at += at < 1000 || at > 1030 ? 61 : 1) {
            for (int64_t i = 0; i < N; i++)
                x[i] = (float)i;
            x[at] = 3e9f;
            (*k)->cast[TN_F32][TN_I32](out, &in, N, 0);
            for (int64_t i = 0; i < N; i++)
                cr_assert(eq(i64, out[i], i == at ? INT32_MAX : i));
        }
}

DTYPE_TEST(cpu_maps, casts_do_what_is_defined, from, TN_BOOL)
{
    for (int32_t to = TN_BOOL; to < TN_NUM_DTYPES; to++)
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++)
            if (cpu_variants()[0]->cast[from][to])
                check_cast(from, to, lengths[l]);
}

Test(cpu_maps, every_half_survives_a_round_trip)
{
    for (const struct cpu_kernels *const *k = cpu_variants(); *k; k++) {
        if (!runs_here(*k))
            continue;
        for (int32_t dtype = TN_F16; dtype <= TN_BF16; dtype++) {
            for (uint32_t bits = 0; bits < 65536; bits += 16) {
                uint16_t half[16], back[16];
                float wide[16];
                const void *in = half, *middle = wide;
                for (uint32_t i = 0; i < 16; i++)
                    half[i] = (uint16_t)(bits + i);
                (*k)->cast[dtype][TN_F32](wide, &in, 16, 0);
                (*k)->cast[TN_F32][dtype](back, &middle, 16, 0);
                for (uint32_t i = 0; i < 16; i++)
                    if (!isnan(wide[i]))
                        cr_assert(eq(u16, half[i], back[i]));
            }
        }
    }
}
