// SPDX-License-Identifier: MIT
// The functions of f64 on a Vulkan backend against the C library's of long double, in units
// in the last place, over everything a double can be. TENON_TEST_PLUGIN names the
// backend.
#include "check.h"

#include <float.h>
#include <math.h>
#include <tenon/ops/program.h>
#include "vulkan_bench.h"
#include "cpu/ref/erfinvl.h"

#define NUM_POINTS 16384

static struct vulkan_bench bench;
static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

// --- arguments -------------------------------------------------------------------------

static double uniform(double low, double high)
{
    return low + (high - low) * (double)(draw() >> 11) * 0x1p-53;
}

// Any number at all: NaNs, infinities and subnormal numbers among them.
static double any(void)
{
    uint64_t bits = draw();
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static double subnormal(void)
{
    uint64_t bits = draw() & UINT64_C(0x800fffffffffffff);
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// What functions do something special at, or nearly so.
static double edge(void)
{
    static const double values[] = {
        0, 0.5, 1, 2, 3, 10, 0x1p-1074, 0x1p-1022, DBL_MAX, NAN, M_PI_4, M_PI_2, M_PI, M_SQRT2, M_SQRT1_2, M_LN2, 709.78, 745.13, 1024, 1074, INFINITY, 0x1p53, 0x1p52, 0x1p20, 6, 22, 40, 5.319372648326541e255 /* of all doubles, the one nearest to a multiple of pi / 2 */};
    double x = values[draw() % (sizeof(values) / sizeof(values[0]))];
    if (draw() % 2)
        x = nextafter(x, draw() % 2 ? INFINITY : 0);
    return draw() % 2 ? -x : x;
}

static double near_quarter_turn(void)
{
    double x = round(exp2(uniform(0, 40))) * M_PI_2;
    return draw() % 2 ? -x : x;
}

static double near_one(void)
{
    double x = 1 + exp2(uniform(-53, 0)) * (draw() % 2 ? 1 : -1);
    return draw() % 2 ? -x : x;
}

static double argument(void)
{
    switch (draw() % 8) {
    case 0:
        return any();
    case 1:
        return draw() % 8 ? uniform(-750, 750) : subnormal();
    case 2:
        return edge();
    case 3:
        return near_quarter_turn();
    case 4:
        return near_one();
    case 5:
        return uniform(-1, 1);
    case 6:
        return ldexp(uniform(-1, 1), -(int)(draw() % 64));
    default:
        return uniform(-10, 10);
    }
}

// --- functions -------------------------------------------------------------------------

static const struct function {
    uint16_t op;
    const char *name;
    double bound; // units in the last place: what functions_f64.glsl promises
    long double (*unary)(long double);
    long double (*binary)(long double, long double);
} functions[] = {
    {TN_EXPR_EXP, "exp", 2, expl, NULL},          {TN_EXPR_EXP2, "exp2", 2, exp2l, NULL},
    {TN_EXPR_EXPM1, "expm1", 2, expm1l, NULL},    {TN_EXPR_LOG, "log", 2, logl, NULL},
    {TN_EXPR_LOG2, "log2", 2, log2l, NULL},       {TN_EXPR_LOG10, "log10", 2, log10l, NULL},
    {TN_EXPR_LOG1P, "log1p", 2, log1pl, NULL},    {TN_EXPR_SIN, "sin", 2, sinl, NULL},
    {TN_EXPR_COS, "cos", 2, cosl, NULL},          {TN_EXPR_TAN, "tan", 3, tanl, NULL},
    {TN_EXPR_ASIN, "asin", 3, asinl, NULL},       {TN_EXPR_ACOS, "acos", 3, acosl, NULL},
    {TN_EXPR_ATAN, "atan", 2, atanl, NULL},       {TN_EXPR_SINH, "sinh", 3, sinhl, NULL},
    {TN_EXPR_COSH, "cosh", 3, coshl, NULL},       {TN_EXPR_TANH, "tanh", 3, tanhl, NULL},
    {TN_EXPR_ASINH, "asinh", 3, asinhl, NULL},    {TN_EXPR_ACOSH, "acosh", 3, acoshl, NULL},
    {TN_EXPR_ATANH, "atanh", 3, atanhl, NULL},    {TN_EXPR_ERF, "erf", 2, erfl, NULL},
    {TN_EXPR_ERFINV, "erfinv", 4, erfinvl, NULL}, {TN_EXPR_POW, "pow", 2, NULL, powl},
    {TN_EXPR_ATAN2, "atan2", 2, NULL, atan2l},
};
#define NUM_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))

// Loads, the instruction, nothing else.
struct made {
    tn_expr_program program;
    tn_expr_insn insns[3];
    tn_dtype dtypes[2];
    uint32_t position;
};

static void make(struct made *m, const struct function *function)
{
    uint32_t num = function->binary ? 2 : 1;
    *m = (struct made){.dtypes = {TN_F64, TN_F64}, .position = num};
    for (uint32_t i = 0; i < num; i++)
        m->insns[i] = (tn_expr_insn){TN_EXPR_LOAD, TN_F64, i, 0, 0};
    m->insns[num] = (tn_expr_insn){function->op, TN_F64, 0, num - 1, 0};
    m->program = (tn_expr_program){.struct_size = sizeof(m->program),
                                   .insns = m->insns,
                                   .num_insns = num + 1,
                                   .input_dtypes = m->dtypes,
                                   .output_dtypes = m->dtypes,
                                   .outputs = &m->position,
                                   .num_inputs = num,
                                   .num_outputs = 1,
                                   .name = function->name};
}

// --- comparison ------------------------------------------------------------------------

// How far `got` is from `want`, in units in the last place of the double nearest to it; an
// infinity is 2^1024. INFINITY for what is wrong altogether.
static double distance(double got, long double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    double nearest = (double)want;
    if (signbit(got) != signbit(nearest))
        return INFINITY;
    if (got == nearest || (isinf(want) && isinf(got)))
        return 0;
    if (isinf(want))
        return INFINITY;
    int exponent = ilogbl(want);
    exponent = want == 0 || exponent < -1022 ? -1022 : exponent > 1023 ? 1023 : exponent;
    long double value = isinf(got) ? copysignl(0x1p1024L, got) : (long double)got;
    return (double)fabsl((value - want) / ldexpl(1, exponent - 52));
}

static double *operand(const tn_value *value)
{
    return (double *)bench.memory[value->slot];
}

static void compare(const struct function *function, const tn_step *step)
{
    const double *x = operand(tn_step_input(step, 0)),
                 *got = operand(tn_step_output(step, 0));
    const double *y = function->binary ? operand(tn_step_input(step, 1)) : x;
    double worst = 0;
    for (int i = 0; i < NUM_POINTS; i++) {
        long double want =
            function->binary ? function->binary(x[i], y[i]) : function->unary(x[i]);
        double apart = distance(got[i], want);
        if (!(apart <= function->bound))
            cr_fatal("%s(%a, %a), seed %llu: %a, expected %a: %g units apart",
                     function->name, x[i], y[i], (unsigned long long)seed, got[i],
                     (double)want, apart);
        worst = apart > worst ? apart : worst;
    }
    fprintf(stderr, "# %-6s within %.2f units\n", function->name, worst);
}

static void begin(void)
{
    seed = check_seed(1);
    state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    if (!vb_begin(&bench, check_getenv("TENON_TEST_PLUGIN")))
        cr_skip("no device is here");
}

static void end(void)
{
    cr_assert(vb_end(&bench));
}

TestSuite(vulkan_f64, .init = begin, .fini = end);

Test(vulkan_f64, functions_of_f64_keep_their_bounds)
{
    static struct made made[NUM_FUNCTIONS];
    static tn_step *steps[NUM_FUNCTIONS];
    tn_layout layout = {.dtype = TN_F64, .rank = 1, .extent = {NUM_POINTS}, .stride = {1}};
    for (size_t k = 0; k < NUM_FUNCTIONS; k++) {
        make(&made[k], &functions[k]);
        uint32_t num = made[k].program.num_inputs;
        steps[k] = vb_step(&bench, num, 1);
        steps[k]->program = &made[k].program;
        for (uint32_t i = 0; i <= num; i++)
            vb_set(steps[k], i, vb_slot(&bench, NUM_POINTS * sizeof(double)), &layout);
        for (uint32_t i = 0; i < num; i++)
            for (int at = 0; at < NUM_POINTS; at++)
                operand(&steps[k]->inputs[i])[at] = argument();
        const char *reason = NULL;
        if (!bench.backend->step_check(bench.device, steps[k], &reason))
            cr_fatal("%s: refused: %s", functions[k].name, reason);
    }
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
    for (size_t k = 0; k < NUM_FUNCTIONS; k++)
        compare(&functions[k], steps[k]);
}
