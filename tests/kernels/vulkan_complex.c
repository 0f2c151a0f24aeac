// SPDX-License-Identifier: MIT
// Functions of complex numbers on a Vulkan backend against the C library's of long double,
// in units in the last place of the magnitude; floats of 8 bits against
// <tenon/ops/float8.h>, bit by bit. TENON_TEST_PLUGIN names the backend.
#include "check.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <tenon/ops/float8.h>
#include <tenon/ops/program.h>
#include "vulkan_bench.h"

#define NUM_POINTS 4096
#define MAX_TOGETHER 8 // functions of one program

typedef _Complex long double number;

static struct vulkan_bench bench;
static uint64_t seed, state;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

static number of_parts(long double re, long double im)
{
    return __builtin_complex(re, im);
}

// --- arguments -------------------------------------------------------------------------

static double uniform(double low, double high)
{
    return low + (high - low) * (double)(draw() >> 11) * 0x1p-53;
}

// Where functions have zeros, poles, cuts and thresholds.
static double edge(void)
{
    static const double values[] = {0,    0.5,   1,    2,     3.5,  M_PI_2, M_PI, 1e-3,
                                    1e-5, 1e-10, 20.5, 39.99, 40.5, 88.5,   0.25, 1.5};
    double x = values[draw() % (sizeof(values) / sizeof(values[0]))];
    if (draw() % 4 == 0)
        x = (double)nextafterf((float)x, draw() % 2 ? INFINITY : 0);
    return draw() % 2 ? -x : x;
}

// A part of an argument whose magnitude has an exponent of at most `most`.
static double part(int most)
{
    switch (draw() % 5) {
    case 0:
        return edge();
    case 1:
        return uniform(-10, 10);
    case 2:
        return uniform(-1, 1);
    case 3:
        return copysign(exp2(uniform(-30, 6)), uniform(-1, 1));
    default:
        return copysign(exp2(uniform(-most, most)), uniform(-1, 1));
    }
}

static tn_complex128 argument(tn_dtype dtype)
{
    int most = dtype == TN_COMPLEX64 ? 120 : 1000;
    double angle = uniform(-M_PI, M_PI),
           radius = 1 + copysign(exp2(uniform(-20, -1)), angle);
    if (draw() % 8 == 0) // near the unit circle
        return (tn_complex128){radius * cos(angle), radius * sin(angle)};
    return (tn_complex128){part(most), part(most)};
}

// --- functions -------------------------------------------------------------------------

static number multiply(number a, number b)
{
    return of_parts(creall(a) * creall(b) - cimagl(a) * cimagl(b),
                    creall(a) * cimagl(b) + cimagl(a) * creall(b));
}

// By Smith's method, as C's division is slow and scales in another way.
static number divide(number a, number b)
{
    long double p = creall(b), q = cimagl(b);
    if (fabsl(p) >= fabsl(q)) {
        long double ratio = q / p, below = p + q * ratio;
        return of_parts((creall(a) + cimagl(a) * ratio) / below,
                        (cimagl(a) - creall(a) * ratio) / below);
    }
    long double ratio = p / q, below = p * ratio + q;
    return of_parts((creall(a) * ratio + cimagl(a)) / below,
                    (cimagl(a) * ratio - creall(a)) / below);
}

static number reciprocal_root(number a)
{
    return divide(1, csqrtl(a));
}
static number exp2_of(number a)
{
    return cexpl(of_parts(creall(a) * M_LN2l, cimagl(a) * M_LN2l));
}
static number expm1_of(number a)
{
    long double half = sinl(cimagl(a) / 2);
    return of_parts(expm1l(creall(a)) * cosl(cimagl(a)) - 2 * half * half,
                    expl(creall(a)) * sinl(cimagl(a)));
}
static number log2_of(number a)
{
    return clogl(a) * M_LOG2El;
}
static number log10_of(number a)
{
    return clogl(a) * M_LOG10El;
}
static number log1p_of(number a)
{
    long double x = creall(a), y = cimagl(a), excess = x * (2 + x) + y * y;
    return of_parts(fabsl(excess) < 0.5L ? log1pl(excess) / 2 : logl(hypotl(1 + x, y)),
                    atan2l(y, 1 + x));
}
static number modulus(number a)
{
    return cabsl(a);
}
static number power(number a, number b)
{
    return cexpl(multiply(b, clogl(a)));
}

// What complex.glsl promises: a bound grows with what is multiplied by a rounded number.
enum growth { CONSTANT, BY_IMAGINARY, BY_LOGARITHM };

static const struct function {
    uint16_t op;
    const char *name;
    enum growth growth;
    number (*unary)(number);
    number (*binary)(number, number);
} functions[] = {
    {TN_EXPR_EXP, "exp", CONSTANT, cexpl, NULL},
    {TN_EXPR_EXP2, "exp2", BY_IMAGINARY, exp2_of, NULL},
    {TN_EXPR_EXPM1, "expm1", CONSTANT, expm1_of, NULL},
    {TN_EXPR_SIN, "sin", CONSTANT, csinl, NULL},
    {TN_EXPR_COS, "cos", CONSTANT, ccosl, NULL},
    {TN_EXPR_TAN, "tan", CONSTANT, ctanl, NULL},
    {TN_EXPR_SINH, "sinh", CONSTANT, csinhl, NULL},
    {TN_EXPR_COSH, "cosh", CONSTANT, ccoshl, NULL},
    {TN_EXPR_TANH, "tanh", CONSTANT, ctanhl, NULL},
    {TN_EXPR_LOG, "log", CONSTANT, clogl, NULL},
    {TN_EXPR_LOG2, "log2", CONSTANT, log2_of, NULL},
    {TN_EXPR_LOG10, "log10", CONSTANT, log10_of, NULL},
    {TN_EXPR_LOG1P, "log1p", CONSTANT, log1p_of, NULL},
    {TN_EXPR_ASIN, "asin", CONSTANT, casinl, NULL},
    {TN_EXPR_ACOS, "acos", CONSTANT, cacosl, NULL},
    {TN_EXPR_ATAN, "atan", CONSTANT, catanl, NULL},
    {TN_EXPR_ASINH, "asinh", CONSTANT, casinhl, NULL},
    {TN_EXPR_ACOSH, "acosh", CONSTANT, cacoshl, NULL},
    {TN_EXPR_ATANH, "atanh", CONSTANT, catanhl, NULL},
    {TN_EXPR_SQRT, "sqrt", CONSTANT, csqrtl, NULL},
    {TN_EXPR_RSQRT, "rsqrt", CONSTANT, reciprocal_root, NULL},
    {TN_EXPR_MODULUS, "abs", CONSTANT, modulus, NULL},
    {TN_EXPR_MUL, "*", CONSTANT, NULL, multiply},
    {TN_EXPR_DIV, "/", CONSTANT, NULL, divide},
    {TN_EXPR_POW, "**", BY_LOGARITHM, NULL, power},
};
#define NUM_FUNCTIONS (sizeof(functions) / sizeof(functions[0]))
#define NUM_PROGRAMS ((NUM_FUNCTIONS + MAX_TOGETHER - 1) / MAX_TOGETHER)

// Two loads, and functions of them.
struct made {
    tn_expr_program program;
    tn_expr_insn insns[2 + MAX_TOGETHER];
    tn_dtype inputs[2], outputs[MAX_TOGETHER];
    uint32_t positions[MAX_TOGETHER];
};

static void make(struct made *m, tn_dtype dtype, size_t first)
{
    *m = (struct made){.inputs = {dtype, dtype}};
    uint32_t count = 0;
    m->insns[0] = (tn_expr_insn){TN_EXPR_LOAD, (uint16_t)dtype, 0, 0, 0};
    m->insns[1] = (tn_expr_insn){TN_EXPR_LOAD, (uint16_t)dtype, 1, 0, 0};
    for (; count < MAX_TOGETHER && first + count < NUM_FUNCTIONS; count++) {
        uint16_t op = functions[first + count].op;
        m->outputs[count] = tn_expr_result(op, dtype);
        m->insns[2 + count] = (tn_expr_insn){op, (uint16_t)m->outputs[count], 0, 1, 0};
        m->positions[count] = 2 + count;
    }
    m->program = (tn_expr_program){.struct_size = sizeof(m->program),
                                   .insns = m->insns,
                                   .num_insns = 2 + count,
                                   .input_dtypes = m->inputs,
                                   .output_dtypes = m->outputs,
                                   .outputs = m->positions,
                                   .num_inputs = 2,
                                   .num_outputs = count,
                                   .name = "complex functions"};
}

// --- comparison ------------------------------------------------------------------------

static tn_tensor operand(const tn_value *value)
{
    return (tn_tensor){bench.memory[value->slot], value->layout};
}

static number number_at(const tn_value *value, int64_t at)
{
    tn_tensor tensor = operand(value);
    tn_complex128 x = tn_get_complex(&tensor, at);
    return of_parts((long double)x.re, (long double)x.im);
}

// How far `got` is from `want`, in units in the last place of its magnitude. Results below
// the normal range may be 0, and what is beyond the dtype's range in one part is not
// compared.
static double distance(tn_dtype dtype, number got, number want)
{
    bool is_wide = dtype == TN_COMPLEX128 || dtype == TN_F64;
    long double most = is_wide ? (long double)DBL_MAX : (long double)FLT_MAX;
    long double least = is_wide ? (long double)DBL_MIN : (long double)FLT_MIN;
    long double size = cabsl(want), unit = is_wide ? 0x1p-52L : 0x1p-23L;
    if (!(size <= most / 4))
        return 0;
    return (double)(cabsl(got - want) /
                    (unit * (size > 4 * least / unit ? size : 4 * least / unit)));
}

static bool has_subnormal_part(number x)
{
    long double re = fabsl(creall(x)), im = fabsl(cimagl(x));
    return (re > 0 && re < (long double)FLT_MIN) || (im > 0 && im < (long double)FLT_MIN);
}

static double bound_of(const struct function *function, number x, number y)
{
    if (function->growth == BY_IMAGINARY)
        return 6 + (double)fabsl(cimagl(x));
    bool is_whole = cimagl(y) == 0 && creall(y) == rintl(creall(y));
    if (function->growth == BY_LOGARITHM)
        return 12 + 2 * (double)cabsl(y * clogl(x)) + (is_whole ? 4 * (double)cabsl(y) : 0);
    return 6;
}

static void compare(const struct function *function, const tn_step *step,
                    const tn_value *output)
{
    tn_dtype dtype = output->layout.dtype;
    // A GPU may take subnormal numbers of f32 for zeros.
    bool may_flush = dtype == TN_COMPLEX64 && !(bench.info.flags & TN_DEVICE_SOFTWARE);
    double worst = 0;
    for (int i = 0; i < NUM_POINTS; i++) {
        number x = number_at(tn_step_input(step, 0), i);
        number y = number_at(tn_step_input(step, 1), i), got = number_at(output, i);
        if (may_flush && (has_subnormal_part(x) || has_subnormal_part(y)))
            continue;
        if (function->op == TN_EXPR_POW && (y == 0 || x == 0))
            continue; // by cases: tests/tools/complex.py
        number want = function->binary ? function->binary(x, y) : function->unary(x);
        double apart = distance(dtype, got, want), bound = bound_of(function, x, y);
        if (!(apart <= bound))
            cr_fatal("%s of %s, (%La, %La) and (%La, %La), seed %llu: (%La, %La), expected "
                     "(%La, %La): %g units apart, at most %g",
                     function->name, tn_dtype_name(dtype), creall(x), cimagl(x), creall(y),
                     cimagl(y), (unsigned long long)seed, creall(got), cimagl(got),
                     creall(want), cimagl(want), apart, bound);
        worst = apart / bound > worst ? apart / bound : worst;
    }
    fprintf(stderr, "# %-6s %-10s within %.2f of its bound\n", function->name,
            tn_dtype_name(dtype), worst);
}

static void run_all(void)
{
    for (uint32_t i = 0; i < bench.num_steps; i++) {
        const char *reason = NULL;
        if (!bench.backend->step_check(bench.device, &bench.steps[i], &reason))
            cr_fatal("%s: refused: %s", bench.steps[i].program->name, reason);
    }
    if (vb_run(&bench) != TN_OK)
        cr_fatal("%s", vb_failure);
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

TestSuite(vulkan_complex, .init = begin, .fini = end);

static void check_functions(tn_dtype dtype)
{
    static struct made made[NUM_PROGRAMS];
    const tn_step *steps[NUM_PROGRAMS];
    for (size_t k = 0; k < NUM_PROGRAMS; k++) {
        make(&made[k], dtype, k * MAX_TOGETHER);
        uint32_t num_outputs = made[k].program.num_outputs;
        tn_step *step = vb_step(&bench, 2, num_outputs);
        tn_layout layout = {.rank = 1, .extent = {NUM_POINTS}, .stride = {1}};
        step->program = &made[k].program;
        for (uint32_t i = 0; i < 2 + num_outputs; i++) {
            layout.dtype = i < 2 ? dtype : made[k].outputs[i - 2];
            vb_set(step, i, vb_slot(&bench, NUM_POINTS * 16), &layout);
        }
        for (uint32_t i = 0; i < 2; i++) {
            tn_tensor tensor = operand(tn_step_input(step, i));
            for (int64_t at = 0; at < NUM_POINTS; at++) {
                bool is_whole = i == 1 && draw() % 8 == 0; // for powers
                tn_complex128 whole = {rint(uniform(-20, 20)), 0};
                tn_set_complex(&tensor, at, is_whole ? whole : argument(dtype));
            }
        }
        steps[k] = step;
    }
    run_all();
    for (size_t i = 0; i < NUM_FUNCTIONS; i++) {
        const tn_step *step = steps[i / MAX_TOGETHER];
        compare(&functions[i], step, tn_step_output(step, i % MAX_TOGETHER));
    }
}

Test(vulkan_complex, functions_of_complex64_keep_their_bounds)
{
    check_functions(TN_COMPLEX64);
}

Test(vulkan_complex, functions_of_complex128_keep_their_bounds)
{
    check_functions(TN_COMPLEX128);
}

// --- infinities and NaNs ----------------------------------------------------------------

// 0: finite; 1 and -1: infinite; 2: NaN.
static int kind_of(double x)
{
    return isnan(x) ? 2 : isinf(x) ? (x > 0 ? 1 : -1) : 0;
}

// exp, log, sqrt and abs of each pair of these parts, as C11 says.
Test(vulkan_complex, infinities_and_nans_are_those_of_c)
{
    static const double parts[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1, -2.5};
    static const size_t tested[] = {0, 9, 19, 21}; // of functions
    enum { COUNT = sizeof(parts) / sizeof(parts[0]), NUM = 4 };
    static struct made made;
    tn_layout layout = {.rank = 1, .extent = {COUNT * COUNT}, .stride = {1}};
    make(&made, TN_COMPLEX64, 0);
    made.program.num_outputs = NUM;
    made.program.num_insns = 2 + NUM;
    tn_step *step = vb_step(&bench, 2, NUM);
    step->program = &made.program;
    for (uint32_t i = 0; i < 2 + NUM; i++) {
        layout.dtype = TN_COMPLEX64;
        if (i >= 2) {
            uint16_t op = functions[tested[i - 2]].op;
            layout.dtype = made.outputs[i - 2] = tn_expr_result(op, TN_COMPLEX64);
            made.insns[i] = (tn_expr_insn){op, (uint16_t)layout.dtype, 0, 1, 0};
        }
        vb_set(step, i, vb_slot(&bench, COUNT * COUNT * 8), &layout);
    }
    tn_tensor x = operand(tn_step_input(step, 0));
    for (int64_t i = 0; i < COUNT * COUNT; i++)
        tn_set_complex(&x, i, (tn_complex128){parts[i / COUNT], parts[i % COUNT]});
    run_all();
    for (uint32_t k = 0; k < NUM; k++)
        for (int64_t i = 0; i < COUNT * COUNT; i++) {
            tn_tensor output = operand(tn_step_output(step, k));
            tn_complex128 got = tn_get_complex(&output, i), a = tn_get_complex(&x, i);
            number want = functions[tested[k]].unary(number_at(tn_step_input(step, 0), i));
            if (kind_of(got.re) != kind_of((double)creall(want)) ||
                kind_of(got.im) != kind_of((double)cimagl(want)))
                cr_fatal("%s(%g, %g): (%g, %g), expected (%Lg, %Lg)",
                         functions[tested[k]].name, a.re, a.im, got.re, got.im,
                         creall(want), cimagl(want));
        }
}

// --- floats of 8 bits ------------------------------------------------------------------

// Loads one dtype and stores another.
static void make_conversion(struct made *m, tn_dtype from, tn_dtype to)
{
    *m = (struct made){.inputs = {from}, .outputs = {to}};
    m->insns[0] = (tn_expr_insn){TN_EXPR_LOAD, TN_F32, 0, 0, 0};
    m->program = (tn_expr_program){.struct_size = sizeof(m->program),
                                   .insns = m->insns,
                                   .num_insns = 1,
                                   .input_dtypes = m->inputs,
                                   .output_dtypes = m->outputs,
                                   .outputs = m->positions,
                                   .num_inputs = 1,
                                   .num_outputs = 1,
                                   .name = "conversion"};
}

static tn_step *convert(struct made *m, tn_dtype from, tn_dtype to, int64_t count)
{
    make_conversion(m, from, to);
    tn_step *step = vb_step(&bench, 1, 1);
    tn_layout layout = {.rank = 1, .extent = {count}, .stride = {1}};
    step->program = &m->program;
    for (uint32_t i = 0; i < 2; i++) {
        layout.dtype = i ? to : from;
        vb_set(step, i, vb_slot(&bench, (uint64_t)count * 4), &layout);
    }
    return step;
}

static float bits_to_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// Each boundary of rounding, what is beside it, and numbers of any bits.
static float hostile_float(int64_t i, const float *values)
{
    float low = fabsf(values[i % 127]), high = fabsf(values[i % 127 + 1]), middle;
    middle = isfinite(high) ? (low + high) / 2 : 1.0625f * low;
    switch (i / 127 % 8) {
    case 0:
        return middle;
    case 1:
        return nextafterf(middle, 0);
    case 2:
        return -nextafterf(middle, INFINITY);
    case 3:
        return -middle;
    case 4:
        return 464 * (i % 2 ? 1 : -1); // the last one that is no NaN
    default:
        return bits_to_float((uint32_t)(draw() >> 16));
    }
}

Test(vulkan_complex, floats_of_8_bits_are_those_of_the_reference)
{
    static struct made made[4];
    static float values[2][256];
    tn_step *widened[2], *narrowed[2];
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        tn_dtype dtype = e5m2 ? TN_F8_E5M2 : TN_F8_E4M3;
        widened[e5m2] = convert(&made[2 * e5m2], dtype, TN_F32, 256);
        narrowed[e5m2] = convert(&made[2 * e5m2 + 1], TN_F32, dtype, NUM_POINTS);
        uint8_t *bits = bench.memory[tn_step_input(widened[e5m2], 0)->slot];
        for (int i = 0; i < 256; i++) {
            bits[i] = (uint8_t)i;
            values[e5m2][i] =
                e5m2 ? tn_f32_of_f8_e5m2(bits[i]) : tn_f32_of_f8_e4m3(bits[i]);
        }
        float *given = (float *)bench.memory[tn_step_input(narrowed[e5m2], 0)->slot];
        for (int64_t i = 0; i < NUM_POINTS; i++)
            given[i] = hostile_float(i, values[e5m2]);
    }
    run_all();
    for (int e5m2 = 0; e5m2 < 2; e5m2++) {
        const float *wide =
            (const float *)bench.memory[tn_step_output(widened[e5m2], 0)->slot];
        for (int i = 0; i < 256; i++)
            if (memcmp(&wide[i], &values[e5m2][i], 4) != 0 && !isnan(values[e5m2][i]))
                cr_fatal("format %d, bits %02x: %a, expected %a", e5m2, (unsigned)i,
                         (double)wide[i], (double)values[e5m2][i]);
            else if (isnan(values[e5m2][i]) != isnan(wide[i]))
                cr_fatal("format %d, bits %02x: %a", e5m2, (unsigned)i, (double)wide[i]);
        const float *given =
            (const float *)bench.memory[tn_step_input(narrowed[e5m2], 0)->slot];
        const uint8_t *bits = bench.memory[tn_step_output(narrowed[e5m2], 0)->slot];
        for (int64_t i = 0; i < NUM_POINTS; i++) {
            uint8_t want = e5m2 ? tn_f8_e5m2_of_f32(given[i]) : tn_f8_e4m3_of_f32(given[i]);
            if (bits[i] != want)
                cr_fatal("format %d: %a is %02x, expected %02x, seed %llu", e5m2,
                         (double)given[i], bits[i], want, (unsigned long long)seed);
        }
    }
}
