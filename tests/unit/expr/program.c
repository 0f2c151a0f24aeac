// SPDX-License-Identifier: MIT
// Compiled programs: what they compute, for every operation and dtype, against plain C; how
// they are made; what is refused.
#include "expr_check.h"
#include <tenon/ops/reference.h>
#include "primitive/prim_set.h"

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

// --- floats ----------------------------------------------------------------------------

static double sign_of(double x)
{
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static double rsqrt_of(double x)
{
    return 1 / sqrt(x);
}

static const struct {
    const char *name;
    double (*function)(double);
} unary[] = {
    {"abs", fabs},    {"sign", sign_of}, {"floor", floor}, {"ceil", ceil},
    {"trunc", trunc}, {"round", rint},   {"sqrt", sqrt},   {"rsqrt", rsqrt_of},
    {"exp", exp},     {"exp2", exp2},    {"expm1", expm1}, {"log", log},
    {"log2", log2},   {"log10", log10},  {"log1p", log1p}, {"sin", sin},
    {"cos", cos},     {"tan", tan},      {"asin", asin},   {"acos", acos},
    {"atan", atan},   {"sinh", sinh},    {"cosh", cosh},   {"tanh", tanh},
    {"asinh", asinh}, {"acosh", acosh},  {"atanh", atanh}, {"erf", erf},
};

static const double specials[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  0.5,
                                  -0.5,
                                  1.5,
                                  2.5,
                                  -2.5,
                                  3.25,
                                  -1e-30,
                                  1e30,
                                  1e300,
                                  -1e300,
                                  5e-324,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  (double)NAN,
                                  0.1,
                                  7.0,
                                  -3.0};
#define NUM_SPECIALS (sizeof(specials) / sizeof(*specials))

static double rounded_to(tn_dtype dtype, double x)
{
    // gcc 12 at -O2 drops the rounding when it makes vectors of two of these.
    volatile float single = (float)x;
    switch (dtype) {
    case TN_F16:
        return (double)tn_f32_of_f16(tn_f16_of_f32((float)x));
    case TN_BF16:
        return (double)tn_f32_of_bf16(tn_bf16_of_f32((float)x));
    case TN_F32:
        return (double)single;
    default:
        return x;
    }
}

TestSuite(program, .init = open_set, .fini = close_set);

Test(program, functions_of_floats_are_the_c_librarys)
{
    for (tn_dtype dtype = TN_F16; dtype <= TN_F64; dtype++)
        for (size_t f = 0; f < sizeof(unary) / sizeof(*unary); f++)
            for (size_t i = 0; i < NUM_SPECIALS; i++) {
                char text[40];
                snprintf(text, sizeof(text), "x -> %s(x)", unary[f].name);
                double x = rounded_to(dtype, specials[i]);
                // Half floats are computed in f32 and rounded once more when stored.
                double expected = unary[f].function(x);
                if (strcmp(unary[f].name, "rsqrt") == 0 && dtype != TN_F64)
                    expected = 1 / rounded_to(TN_F32, sqrt(x)); // each is rounded
                expected =
                    rounded_to(dtype, dtype == TN_F64 ? expected : (double)(float)expected);
                double got = run_double(text, dtype, &x);
                if (!same(got, expected))
                    cr_fatal("%s of %g as %s: got %g, expected %g", unary[f].name, x,
                             dtype_name(dtype), got, expected);
            }
}

// NumPy's remainder: of Python's sign, exact.
static double python_mod(double a, double b)
{
    double m = fmod(a, b);
    if (m == 0)
        return copysign(0, b);
    return (m < 0) != (b < 0) ? m + b : m;
}

// NumPy's floor_divide, from the exact remainder. The specials' quotients that are whole
// are exact.
static double python_quotient(tn_dtype dtype, double a, double b)
{
    double rest = fmod(a, b), quotient = rounded_to(dtype, rounded_to(dtype, a - rest) / b);
    if (b == 0)
        return a / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient = rounded_to(dtype, quotient - 1);
    return quotient == 0 ? copysign(0, a / b) : round(quotient);
}

static double expected_binary(const char *op, double a, double b)
{
    if (strcmp(op, "**") == 0)
        return pow(a, b);
    switch (op[0]) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    default:
        return python_mod(a, b);
    }
}

Test(program, operators_of_floats_follow_ieee_754)
{
    static const char *const ops[] = {"+", "-", "*", "/", "%", "**", "//"};
    for (tn_dtype dtype = TN_F32; dtype <= TN_F64; dtype++)
        for (size_t o = 0; o < 7; o++)
            for (size_t i = 0; i < NUM_SPECIALS * NUM_SPECIALS; i++) {
                char text[40];
                snprintf(text, sizeof(text), "x, y -> x %s y", ops[o]);
                double x[] = {rounded_to(dtype, specials[i / NUM_SPECIALS]),
                              rounded_to(dtype, specials[i % NUM_SPECIALS])};
                double expected = strcmp(ops[o], "//") == 0
                                      ? python_quotient(dtype, x[0], x[1])
                                      : expected_binary(ops[o], x[0], x[1]);
                double got = run_double(text, dtype, x);
                if (!same(got, rounded_to(dtype, expected)))
                    cr_fatal("%g %s %g as %s: got %g, expected %g", x[0], ops[o], x[1],
                             dtype_name(dtype), got, expected);
            }
}

Test(program, extrema_and_comparisons_know_nan)
{
    for (size_t i = 0; i < NUM_SPECIALS * NUM_SPECIALS; i++) {
        double a = specials[i / NUM_SPECIALS], b = specials[i % NUM_SPECIALS];
        const double x[] = {a, b};
        bool any_nan = isnan(a) || isnan(b);
        double low = run_double("x, y -> min(x, y)", TN_F64, x);
        double high = run_double("x, y -> max(x, y)", TN_F64, x);
        cr_assert(any_nan ? isnan(low) && isnan(high)
                          : low == fmin(a, b) && high == fmax(a, b));
        cr_assert(run_double("x, y -> x == y", TN_F64, x) == (a == b));
        cr_assert(run_double("x, y -> x != y", TN_F64, x) == (a != b));
        cr_assert(run_double("x, y -> x < y", TN_F64, x) == (a < b));
        cr_assert(run_double("x, y -> x <= y", TN_F64, x) == (a <= b));
        cr_assert(run_double("x, y -> x > y", TN_F64, x) == (a > b));
        cr_assert(run_double("x, y -> x >= y", TN_F64, x) == (a >= b));
        cr_assert(run_double("x, y -> isnan(x)", TN_F64, x) == isnan(a));
        cr_assert(run_double("x, y -> isinf(x)", TN_F64, x) == (isinf(a) != 0));
        cr_assert(run_double("x, y -> isfinite(x)", TN_F64, x) == isfinite(a));
        cr_assert(same(run_double("x, y -> atan2(x, y)", TN_F64, x), atan2(a, b)));
        cr_assert(run_double("x, y -> x && y", TN_F64, x) == (a != 0 && b != 0));
        cr_assert(run_double("x, y -> x || !y", TN_F64, x) == (a != 0 || b == 0));
    }
}

// --- integers --------------------------------------------------------------------------

// Python's integers, wrapped to 64 bits.
static __int128 floor_div(__int128 a, __int128 b)
{
    if (b == 0)
        return 0;
    __int128 q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

static __int128 expected_integer(const char *op, __int128 a, __int128 b, int width)
{
    switch (op[0]) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return (__int128)((unsigned __int128)a * (unsigned __int128)b);
    case '/':
        return floor_div(a, b);
    case '%':
        return b == 0 ? 0 : a - floor_div(a, b) * b;
    case '&':
        return a & b;
    case '|':
        return a | b;
    case '^':
        return a ^ b;
    case '<':
        return b < 0 || b >= width ? 0 : (__int128)((unsigned __int128)a << b);
    default:
        return b < 0 || b >= width ? (a < 0 ? -1 : 0) : a >> b;
    }
}

static uint64_t wrap_to(tn_dtype dtype, __int128 v)
{
    return scalar_cast(TN_I64, dtype, (uint64_t)v);
}

static void check_integer(tn_dtype dtype, const char *op, uint64_t a, uint64_t b)
{
    bool has_sign = tn_is_signed(dtype);
    char text[40];
    snprintf(text, sizeof(text), "x, y -> x %s y", op);
    __int128 wide_a = has_sign ? (__int128)(int64_t)a : (__int128)a;
    __int128 wide_b = has_sign ? (__int128)(int64_t)b : (__int128)b;
    uint64_t expected =
        wrap_to(dtype, expected_integer(op, wide_a, wide_b, 8 * (int)dtype_size(dtype)));
    const tn_dtype dtypes[] = {dtype, dtype};
    const uint64_t bits[] = {a, b};
    uint64_t got = run_bits(text, dtypes, bits, NULL);
    if (got != expected)
        cr_fatal("%s: %" PRId64 " %s %" PRId64 ": got %" PRId64 ", expected %" PRId64,
                 dtype_name(dtype), (int64_t)a, op, (int64_t)b, (int64_t)got,
                 (int64_t)expected);
}

Test(program, integers_wrap_and_divide_towards_minus_infinity)
{
    static const char *const ops[] = {"+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>"};
    static const int64_t values[] = {
        0,   1,     -1,     2,         -2,        3,         7,        -7,  8,
        15,  16,    31,     32,        63,        64,        100,      127, -128,
        255, 32767, -32768, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    size_t n = sizeof(values) / sizeof(*values);
    for (tn_dtype dtype = TN_BOOL; dtype < TN_NUM_DTYPES; dtype++)
        for (size_t o = 0; o < 10 && tn_dtype_in(dtype, TN_INTEGER_DTYPES); o++)
            for (size_t i = 0; i < n * n; i++)
                check_integer(dtype, ops[o], wrap_to(dtype, values[i / n]),
                              wrap_to(dtype, values[i % n]));
}

Test(program, powers_of_integers_wrap)
{
    static const int64_t cases[][3] = {
        {2, 10, 1024}, {-2, 3, -8},  {3, 0, 1},   {0, 0, 1},  {2, -1, 0},
        {1, -5, 1},    {-1, -5, -1}, {-1, -4, 1}, {0, -1, 0}, {10, 2, 100}};
    const tn_dtype dtypes[] = {TN_I32, TN_I32};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint64_t bits[] = {(uint64_t)cases[i][0], (uint64_t)cases[i][1]};
        cr_assert(
            eq(i64, (int64_t)run_bits("x, y -> x ** y", dtypes, bits, NULL), cases[i][2]));
    }
    const tn_dtype small[] = {TN_U8, TN_U8};
    cr_assert(eq(i64, run_bits("x, y -> x ** y", small, (const uint64_t[]){3, 6}, NULL),
                 729 & 255));
}

Test(program, unary_operators_of_integers)
{
    static const struct {
        const char *text;
        tn_dtype dtype;
        int64_t in, out;
    } cases[] = {
        {"x -> -x", TN_I8, -128, -128},     {"x -> -x", TN_U8, 1, 255},
        {"x -> abs(x)", TN_I8, -128, -128}, {"x -> abs(x)", TN_I32, -5, 5},
        {"x -> abs(x)", TN_U8, 200, 200},   {"x -> sign(x)", TN_I64, INT64_MIN, -1},
        {"x -> sign(x)", TN_U16, 9, 1},     {"x -> ~x", TN_I16, 0, -1},
        {"x -> ~x", TN_U8, 1, 254},         {"x -> ~x", TN_BOOL, 1, 0},
        {"x -> !x", TN_I8, 3, 0},           {"x -> floor(x)", TN_I8, -3, -3},
        {"x -> isnan(x)", TN_I8, 3, 0},     {"x -> isfinite(x)", TN_I8, 3, 1},
        {"x -> x + x", TN_BOOL, 1, 1},      {"x -> x * 2", TN_BOOL, 1, 2},
        {"x -> x ** 2", TN_I8, -12, -112},  {"x -> min(x, -1)", TN_I8, 4, -1},
        {"x -> max(x, 7)", TN_U8, 4, 7},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t bits = (uint64_t)cases[i].in;
        int64_t got = (int64_t)run_bits(cases[i].text, &cases[i].dtype, &bits, NULL);
        if (got != cases[i].out)
            cr_fatal("%s of %" PRId64 ": got %" PRId64, cases[i].text, cases[i].in, got);
    }
}

Test(program, conversions_truncate_round_and_wrap)
{
    static const struct {
        const char *text;
        double in, out;
    } cases[] = {
        {"x -> i32(x)", -2.9, -2},
        {"x -> u8(x)", 200.7, 200},
        {"x -> bool(x)", 0.1, 1},
        {"x -> bool(x)", -0.0, 0},
        {"x -> bool(x)", (double)NAN, 1},
        {"x -> f32(x)", 0.1, (double)0.1f},
        {"x -> i8(i32(x))", 300, 44},
        {"x -> u64(i64(x))", -1, 0x1p64},
        {"x -> f32(i64(x))", 16777217, 16777216},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        double got = run_double(cases[i].text, TN_F64, &cases[i].in);
        if (got != cases[i].out)
            cr_fatal("%s of %g: got %.17g", cases[i].text, cases[i].in, got);
    }
    double x = 65519.9;
    const tn_dtype half = TN_F16;
    const struct expr_input input = {.dtype = TN_F64};
    const tn_expr_program *program = compiled(parsed("x -> x"), &input, &half);
    uint64_t in = double_to_bits(x), out;
    program_run_scalar(program, &in, NULL, 0, &out);
    cr_assert(bits_to_double(out) == 65504); // the largest f16
}

// --- how programs are made -------------------------------------------------------------

Test(program, half_floats_are_computed_in_f32)
{
    const struct expr_input inputs[] = {{.dtype = TN_F16}, {.dtype = TN_F16}};
    const tn_expr_program *program = compiled(parsed("x, y -> x * y + 1"), inputs, NULL);
    for (uint32_t i = 0; i < program->num_insns; i++)
        cr_assert(eq(u16, program->insns[i].dtype, TN_F32));
    cr_assert(eq(int, program->output_dtypes[0], TN_F16));
    cr_assert(eq(uint, program->num_insns, 5));
}

static uint32_t count_ops(const tn_expr_program *program, int op)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->num_insns; i++)
        count += program->insns[i].op == op;
    return count;
}

Test(program, small_powers_are_products_and_roots)
{
    static const struct {
        const char *text;
        double exponent;
        uint32_t num_insns; // LOAD and CONST included
    } cases[] = {
        {"x -> x ** 1", 1, 1},     {"x -> x ** 2", 2, 2},
        {"x -> x ** 3.0", 3, 3},   {"x -> x ** 4", 4, 3},
        {"x -> x ** 0.5", 0.5, 2}, {"x -> x ** -0.5", -0.5, 2},
        {"x -> x ** -1", -1, 3},   {"x -> x ** -2", -2, 4},
        {"x -> x ** 5", 5, 3},     {"x -> pow(x, 1.5)", 1.5, 3},
    };
    static const double values[] = {0.0,   1.0,   0.3,  2.75,
                                    1e-12, 1e-25, 3e20, (double)INFINITY};
    for (tn_dtype dtype = TN_F16; dtype <= TN_F64; dtype++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
            const struct expr_input input = {.dtype = dtype};
            const tn_expr_program *program = compiled(parsed(cases[i].text), &input, NULL);
            bool is_power = cases[i].exponent == 5 || cases[i].exponent == 1.5;
            cr_assert(eq(uint, count_ops(program, TN_EXPR_POW), is_power));
            cr_assert(eq(uint, program->num_insns, cases[i].num_insns));
            for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++) {
                double x = rounded_to(dtype, values[k]);
                double expected = rounded_to(dtype, pow(x, cases[i].exponent));
                double got = run_double(cases[i].text, dtype, &x);
                double step = dtype == TN_F64   ? 0x1p-52
                              : dtype == TN_F32 ? 0x1p-23
                                                : 0x1p-7;
                if (got != expected &&
                    !(fabs(got - expected) <= 2 * step * expected + 1e-44))
                    cr_fatal("%s of %g as %s: got %.9g, expected %.9g", cases[i].text, x,
                             dtype_name(dtype), got, expected);
            }
        }
}

Test(program, small_powers_of_integers_are_products_that_wrap)
{
    static const char *const texts[] = {"x -> x ** 2", "x -> x ** 3", "x -> x ** 4"};
    const tn_dtype both[] = {TN_I8, TN_I8};
    for (uint64_t k = 0; k < 3; k++) {
        const struct expr_input input = {.dtype = TN_I8};
        cr_assert(
            eq(uint, count_ops(compiled(parsed(texts[k]), &input, NULL), TN_EXPR_POW), 0));
        for (int64_t x = -128; x < 128; x++) {
            const uint64_t bits[] = {(uint64_t)x, k + 2};
            cr_assert(run_bits(texts[k], both, bits, NULL) ==
                      run_bits("x, y -> x ** y", both, bits, NULL));
        }
    }
}

Test(program, derivatives_of_small_powers_need_no_power)
{
    static const char *const texts[] = {"x -> x ** 2",   "x -> x ** 3",  "x -> x ** 4",
                                        "x -> x ** 0.5", "x -> x ** -1", "x -> x ** 1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        const struct expr_input input = {.dtype = TN_F32};
        const struct expr *derived = NULL;
        check_status(expr_derive(parsed(texts[i]), 0, 0, &derived), TN_OK);
        cr_assert(eq(uint, count_ops(compiled(derived, &input, NULL), TN_EXPR_POW), 0));
    }
}

Test(program, common_and_dead_parts_are_compiled_once_and_never)
{
    const struct expr_input inputs[] = {{.dtype = TN_F32}, {.dtype = TN_F32}};
    const tn_expr_program *program = compiled(
        parsed("x, y -> a = exp(x) + y; b = exp(x) + y; c = log(y); a * b"), inputs, NULL);
    cr_assert(eq(uint, program->num_insns, 5)); // x, exp, y, +, *
    program = compiled(parsed("x, y -> x * 1 / 4 - 0 + 2 * 3"), inputs, NULL);
    cr_assert(eq(uint, program->num_insns, 5)); // x, 0.25, *, 6, +
}

Test(program, equal_structures_give_one_program)
{
    const struct expr_input inputs[] = {{.dtype = TN_F32}, {.dtype = TN_F32}};
    const tn_expr_program *one = compiled(parsed("x, y -> alpha * x + y"), inputs, NULL);
    const tn_expr_program *two = compiled(parsed("u, v -> gamma * u + v"), inputs, NULL);
    cr_assert(eq(ptr, one, two));
    cr_assert(eq(uint, one->num_params, 1));
    const struct expr_input doubles[] = {{.dtype = TN_F64}, {.dtype = TN_F32}};
    cr_assert(ne(ptr, one, compiled(parsed("x, y -> alpha * x + y"), doubles, NULL)));
    cr_assert(eq(ptr, one, compiled(parsed("x, y -> alpha * x + y"), inputs, NULL)));
}

Test(program, numbers_are_computed_in_the_dtype_they_meet)
{
    const struct expr_input input = {.dtype = TN_F32};
    const tn_expr_program *program =
        compiled(parsed("x -> (2 * alpha + exp(beta)) * x"), &input, NULL);
    for (uint32_t i = 0; i < program->num_insns; i++)
        cr_assert(eq(u16, program->insns[i].dtype, TN_F32));
    const tn_dtype dtypes[] = {TN_U8};
    const uint64_t bits[] = {250};
    cr_assert(eq(u64, run_bits("x -> x + 10", dtypes, bits, NULL), 4)); // wraps as u8
}

Test(program, params_come_from_the_attribute_struct)
{
    struct attrs {
        double alpha;
        int64_t count, flag;
    };
    static const tn_attr_field fields[] = {TN_F64_FIELD(struct attrs, alpha, 1, "factor"),
                                           TN_I64_FIELD(struct attrs, count, 1, "count"),
                                           TN_BOOL_FIELD(struct attrs, flag, 0, "flag")};
    static const tn_attr_table table = TN_ATTR_TABLE(struct attrs, fields);
    static const char *const names[] = {"x", "n"};
    const struct expr *expr = NULL;
    check_status(expr_parse(&runtime, "flag ? x * count + alpha : f64(n << count)", names,
                            2, &table, &expr),
                 TN_OK);
    const struct expr_input inputs[] = {{.dtype = TN_F64}, {.dtype = TN_I32}};
    const tn_expr_program *program = compiled(expr, inputs, NULL);
    uint64_t params[8], out;
    const uint64_t in[] = {double_to_bits(2.5), 3};
    cr_assert(eq(uint, program->num_params, 6)); // `count` as a float and as an integer
    struct attrs attrs = {.alpha = 0.25, .count = 4, .flag = 1};
    check_status(expr_params(program, expr, &table, &attrs, params), TN_OK);
    program_run_scalar(program, in, params, 0, &out);
    cr_assert(bits_to_double(out) == 10.25);
    attrs.flag = 0;
    check_status(expr_params(program, expr, &table, &attrs, params), TN_OK);
    program_run_scalar(program, in, params, 0, &out);
    cr_assert(bits_to_double(out) == 48);
}

Test(program, several_outputs_and_the_index)
{
    const struct expr_input input = {.dtype = TN_F32};
    const tn_expr_program *program =
        compiled(parsed("x -> y = x * 2; y, y + f32(index), index"), &input, NULL);
    uint64_t in = double_to_bits(1.5), out[3];
    program_run_scalar(program, &in, NULL, 7, out);
    cr_assert(bits_to_double(out[0]) == 3 && bits_to_double(out[1]) == 10);
    cr_assert(eq(u64, out[2], 7));
    cr_assert(eq(int, program->insns[0].op, TN_EXPR_LOAD));
    cr_assert(eq(int, program->input_dtypes[0], TN_F32));
    cr_assert(eq(int, program->output_dtypes[2], TN_I64));
}

Test(program, limits_are_errors_that_say_what_to_split)
{
    char text[8192];
    int used = snprintf(text, sizeof(text), "x -> a0 = sin(x);");
    for (int i = 1; i < 140; i++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "a%d = sin(a%d) + %d.5;",
                         i, i - 1, i);
    snprintf(text + used, sizeof(text) - (size_t)used, "a139");
    const tn_expr_program *program = NULL;
    const struct expr_input inputs[20] = {{.dtype = TN_F32}};
    check_status(expr_compile(parsed(text), inputs, NULL, &program), TN_ERR_UNSUPPORTED);
    check_says(fail_text(), "at most 256 fit a program: split it");
    check_status(expr_compile(parsed("a,b,c,d,f,g,h,i,j,k,l,m,n,o,p,q,r -> a + r"), inputs,
                              NULL, &program),
                 TN_ERR_UNSUPPORTED);
    check_says(fail_text(), "17 inputs");
}

Test(program, compiling_again_is_a_lookup)
{
    const struct expr *expr = parsed("x, y -> x * y + 3");
    const struct expr_input inputs[] = {{.dtype = TN_F32}, {.dtype = TN_F32}};
    const tn_expr_program *first = compiled(expr, inputs, NULL), *again = NULL;
    mem_fail_nth(1); // what is known needs no memory
    check_status(expr_compile(expr, inputs, NULL, &again), TN_OK);
    tn_dtype out;
    mem_fail_nth(0);
    cr_assert(eq(ptr, first, again));
    check_status(expr_infer(expr, inputs, &out), TN_OK);
    mem_fail_nth(1);
    check_status(expr_infer(expr, inputs, &out), TN_OK);
    mem_fail_nth(0);
}

Test(program, allocation_failures_are_reported)
{
    tn_runtime own = {0};
    tn_status status = TN_ERR_MEMORY;
    int64_t n = 1;
    for (; status == TN_ERR_MEMORY && n < 1000; n++) {
        const struct expr *expr, *gradient;
        const tn_expr_program *program;
        const struct expr_input inputs[] = {{.dtype = TN_F32}, {.dtype = TN_F16}};
        mem_fail_nth(n);
        status = expr_set_create(&own);
        if (status == TN_OK)
            status = expr_parse_arrow(&own, "x, y -> a = x * y; exp(a) + a", &expr);
        if (status == TN_OK)
            status = expr_vjp(expr, 1, 1, 0, &gradient);
        if (status == TN_OK)
            status = expr_compile(expr, inputs, NULL, &program);
        mem_fail_nth(0);
        expr_set_destroy(&own);
    }
    check_status(status, TN_OK);
    cr_assert(n > 10);
}
