// SPDX-License-Identifier: MIT
// Functions of f32 held against f64 on points of all exponents, in units in the last place:
// what docs/expressions.md promises. On a GPU the driver's own division and square root may
// be off by 2.5; its bounds are those of kernels/vulkan/program/scalar.glsl, but for Mesa's
// CPU driver.
#include <tenon/ops/erfinv.h>
#include "suite.h"

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}

static double sigmoid_of(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double cube_of(double x)
{
    return x * x * x;
}

static double fourth_of(double x)
{
    return x * x * (x * x);
}

// clang-format off
static const struct function {
    const char *name;
    double (*f)(double);
    double cpu, software, other; // bounds: of our CPU backend, of Mesa's CPU driver, of others
    double exponent;             // the second operand, if not 0
} functions[] = {
    {"sqrt",    sqrt,       0.51, 0.51, 4}, {"rsqrt",   rsqrt_of,   1.5,  1.5,  4},
    {"exp",     exp,        1,    1.9,  4}, {"exp2",    exp2,       1,    1.9,  4},
    {"expm1",   expm1,      0.51, 1.9,  4}, {"log",     log,        0.9,  1.1,  4},
    {"log2",    log2,       1,    1.9,  4}, {"log10",   log10,      1,    1.9,  4},
    {"log1p",   log1p,      1,    1.3,  4}, {"sin",     sin,        1.3,  2,    4},
    {"cos",     cos,        1.3,  2,    4}, {"tan",     tan,        1.1,  3.3,  8},
    {"arcsin",  asin,       0.51, 2.4,  8}, {"arccos",  acos,       0.51, 1.3,  8},
    {"arctan",  atan,       0.51, 1.3,  4}, {"sinh",    sinh,       0.51, 2.5,  8},
    {"cosh",    cosh,       0.51, 2.5,  8}, {"tanh",    tanh,       1.5,  1.5,  8},
    {"arcsinh", asinh,      0.51, 2,    8}, {"arccosh", acosh,      0.51, 1.9,  8},
    {"arctanh", atanh,      0.51, 2.3,  8}, {"erf",     erf,        1.4,  1.5,  8},
    {"erfinv",  tn_erfinv,  1.5,  3.5,  8}, {"sigmoid", sigmoid_of, 1.5,  3,    8},
    {"power",   cube_of,    1.5,  2,    8, 3}, {"power",   fourth_of,  2,    2,    8, 4},
};
// clang-format on

static double bound_of(const struct suite *s, const struct function *f)
{
    if (strcmp(s->backend, "cpu-blas") == 0)
        return f->cpu;
    bool is_mesa = s->is_software && strncmp(s->backend, "vulkan", 6) == 0;
    return is_mesa ? f->software : f->other;
}

// The distance in units of the last place of an f32; of what is infinite, a NaN or 0, which
// must be so, 0 or infinity.
static double distance(double got, double want)
{
    int exponent;
    bool is_plain = isfinite(got) && isfinite((float)want) && got != 0 && want != 0;
    if (!is_plain && (got == (double)(float)want || (isnan(got) && isnan(want))))
        return 0;
    if (isnan(got) || isnan(want) || isinf(want))
        return INFINITY;
    frexp(want, &exponent);
    double unit = ldexp(1, exponent - 24 < -149 ? -149 : exponent - 24);
    return isinf(got) ? (fabs(want) >= 3.4028234e38 ? 1 : INFINITY)
                      : fabs(got - want) / unit;
}

enum { POINTS = 1 << 16 };

// All exponents and signs, and numbers about 1.
static void fill_points(struct suite *s, struct host_array *x)
{
    float *to = x->tensor.data;
    for (int64_t i = 0; i < POINTS; i++) {
        uint32_t bits = (uint32_t)random_bits(s);
        memcpy(&to[i], &bits, sizeof(bits));
        if (i % 4 == 0)
            to[i] = (float)random_in(s, -2, 2);
        if (i % 4 == 1)
            to[i] = (float)random_in(s, -100, 100);
    }
}

// Not where the device does not tell subnormal numbers from 0.
static bool counts(const struct suite *s, float x, double want)
{
    bool is_subnormal = fabsf(x) < 0x1p-126f || fabs(want) < 0x1p-126;
    return !s->flushes || !is_subnormal;
}

static void check_function(struct suite *s, const struct function *f)
{
    static char text[200];
    struct host_array x = host_array_new(TN_F32, 1, (int64_t[]){POINTS}), got;
    double bound = bound_of(s, f), worst = 0;
    char id[64];
    const char *failure = NULL;
    tn_scope *scope = tn_scope_open(s->runtime);
    fill_points(s, &x);
    snprintf(id, sizeof(id), "base.%s", f->name);
    tn_array *in = host_array_upload(scope, &x, PLAIN);
    tn_array *result =
        f->exponent != 0
            ? tn_op(scope, id, TN_IN(in, tn_float(scope, f->exponent)), TN_NO_ATTRS)
            : tn_op(scope, id, TN_IN(in), TN_NO_ATTRS);
    if (!host_array_read(scope, result, &got)) {
        failure = tn_scope_error(scope);
    } else {
        for (int64_t i = 0; i < POINTS; i++) {
            float at = ((float *)x.tensor.data)[i];
            double want = f->f((double)at), is = host_array_get(&got, i);
            double off = counts(s, at, want) ? distance(is, want) : 0;
            if (off <= worst)
                continue;
            worst = off;
            snprintf(text, sizeof(text),
                     "%.9g gives %.9g, expected %.9g: off by %.3g units", (double)at, is,
                     want, off);
        }
        failure = worst <= bound ? NULL : text;
        host_array_free(&got);
    }
    if (s->verbose)
        printf("# %s: at most %.3f units\n", f->name, worst);
    check(s, failure, "%s to within %g units", f->name, bound);
    host_array_free(&x);
    tn_scope_close(scope);
}

void accuracy_tests(struct suite *s)
{
    if (!test_begin(s, "accuracy of functions of f32"))
        return;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        check_function(s, &functions[i]);
    test_end(s);
}
