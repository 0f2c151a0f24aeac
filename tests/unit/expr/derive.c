// SPDX-License-Identifier: MIT
// Derivatives of expressions against finite differences, and what they look like.
#include "expr_check.h"

// Central differences of the first output in f64. Error about h^2 times the third
// derivative plus rounding over h: with h = 1e-5 below 1e-8 for the functions here.
static double difference(const char *text, const double *at, uint32_t input, double h)
{
    double low[4], high[4];
    memcpy(low, at, sizeof(low));
    memcpy(high, at, sizeof(high));
    low[input] -= h;
    high[input] += h;
    return (run_double(text, TN_F64, high) - run_double(text, TN_F64, low)) / (2 * h);
}

static double evaluate(const struct expr *expr, const double *at)
{
    struct expr_input inputs[TN_EXPR_MAX_INPUTS] = {{0}};
    uint64_t bits[TN_EXPR_MAX_INPUTS], out;
    const tn_dtype f64 = TN_F64;
    for (uint32_t i = 0; i < expr->num_inputs; i++) {
        inputs[i].dtype = TN_F64;
        bits[i] = double_to_bits(at[i]);
    }
    program_run_scalar(compiled(expr, inputs, &f64), bits, NULL, 0, &out);
    return bits_to_double(out);
}

// All three ways to a derivative at a point.
static void check_at(const char *text, const double *at, uint32_t input)
{
    const struct expr *expr = parsed(text), *derived[3] = {NULL};
    double points[12] = {0}, expected = difference(text, at, input, 1e-5);
    memcpy(points, at, 4 * sizeof(double));
    points[expr->num_inputs] = 1; // the cotangent
    check_status(expr_derive(expr, 0, input, &derived[0]), TN_OK);
    check_status(expr_vjp(expr, input, 1, 0, &derived[1]), TN_OK);
    check_status(expr_jvp(expr, 0, UINT64_C(1) << input, 0, &derived[2]), TN_OK);
    for (int way = 0; way < 3; way++) {
        if (way == 2)
            for (uint32_t i = 0; i < expr->num_inputs; i++)
                points[expr->num_inputs + i] = i == input;
        double got = derived[way] ? evaluate(derived[way], points) : 0;
        if (!(fabs(got - expected) <= 1e-6 * (1 + fabs(expected))))
            cr_fatal("%s at %g, %g, %g by input %u, way %d (%s): got %.10g, expected %.10g",
                     text, at[0], at[1], at[2], input, way,
                     derived[way] ? derived[way]->text : "zero", got, expected);
    }
}

TestSuite(derive, .init = open_set, .fini = close_set);

Test(derive, derivatives_agree_with_finite_differences)
{
    static const struct {
        const char *text;
        double low, high; // of all inputs
    } cases[] = {
        {"x -> -x", -2, 2},
        {"x -> abs(x)", 0.1, 2},
        {"x -> abs(x)", -2, -0.1},
        {"x -> sqrt(x)", 0.1, 4},
        {"x -> rsqrt(x)", 0.2, 4},
        {"x -> exp(x)", -2, 2},
        {"x -> exp2(x)", -2, 2},
        {"x -> expm1(x)", -2, 2},
        {"x -> log(x)", 0.1, 4},
        {"x -> log2(x)", 0.1, 4},
        {"x -> log10(x)", 0.1, 4},
        {"x -> log1p(x)", -0.8, 4},
        {"x -> sin(x)", -4, 4},
        {"x -> cos(x)", -4, 4},
        {"x -> tan(x)", -1.2, 1.2},
        {"x -> asin(x)", -0.9, 0.9},
        {"x -> acos(x)", -0.9, 0.9},
        {"x -> atan(x)", -3, 3},
        {"x -> sinh(x)", -2, 2},
        {"x -> cosh(x)", -2, 2},
        {"x -> tanh(x)", -2, 2},
        {"x -> asinh(x)", -3, 3},
        {"x -> acosh(x)", 1.2, 4},
        {"x -> atanh(x)", -0.9, 0.9},
        {"x -> erf(x)", -2, 2},
        {"x -> erfinv(x)", -0.8, 0.8},
        {"x, y -> x + y", -2, 2},
        {"x, y -> x - y", -2, 2},
        {"x, y -> x * y", -2, 2},
        {"x, y -> x / y", 0.3, 2},
        {"x, y -> x ** y", 0.3, 2},
        {"x -> x ** 2", -2, 2},
        {"x -> x ** 3", -2, 2},
        {"x -> x ** -1.5", 0.3, 2},
        {"x -> 2 ** x", -2, 2},
        {"x, y -> atan2(x, y)", 0.3, 2},
        {"x, y -> atan2(x, y)", -2, -0.3},
        {"x, y -> max(x, y)", -2, 2},
        {"x, y -> min(x, y)", -2, 2},
        {"x, y -> f64(x) * f64(y + 1)", -2, 2},
        {"x, y -> x > y ? x * y : x - y", -2, 2},
        {"x, y -> a = exp(-x * x); b = a / (1 + a); b * log(1 + y * y) - b", -2, 2},
        {"x, y -> select(x > 0, x, 0.1 * x) * tanh(x * y) ** 2", -2, 2},
        {"x, y, z -> x * y * z + sin(x * y) / (2 + cos(z))", -2, 2},
        {"x -> 1 / (1 + exp(-x))", -3, 3},
        {"x, y, z -> a = x - y; b = y - z; c = z - x; a * a * b - c * exp(a * b * c)", -1,
         1},
    };
    uint64_t seed = random_seed();
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint32_t num_inputs = parsed(cases[i].text)->num_inputs;
        for (int trial = 0; trial < 20; trial++) {
            double at[4] = {0};
            for (int k = 0; k < 4; k++)
                at[k] = cases[i].low + (cases[i].high - cases[i].low) *
                                           (double)(random_next(&seed) >> 11) * 0x1p-53;
            for (uint32_t input = 0; input < num_inputs; input++)
                check_at(cases[i].text, at, input);
        }
    }
}

Test(derive, remainder_has_slopes_between_its_jumps)
{
    static const double points[][4] = {{5.3, 2}, {-5.3, 2}, {5.3, -2.1}, {0.4, 3}};
    for (size_t i = 0; i < 4; i++)
        for (uint32_t input = 0; input < 2; input++)
            check_at("x, y -> x % y", points[i], input);
}

Test(derive, second_derivatives_agree_too)
{
    const char *text = "x, y -> exp(x * y) / (1 + x * x)";
    const struct expr *expr = parsed(text), *first = NULL, *second = NULL;
    const double at[] = {0.7, -0.4}, h = 1e-4;
    check_status(expr_derive(expr, 0, 0, &first), TN_OK);
    for (uint32_t input = 0; input < 2; input++) {
        double low[] = {at[0], at[1]}, high[] = {at[0], at[1]};
        low[input] -= h;
        high[input] += h;
        double expected = (evaluate(first, high) - evaluate(first, low)) / (2 * h);
        check_status(expr_derive(first, 0, input, &second), TN_OK);
        cr_assert(fabs(evaluate(second, at) - expected) < 1e-6);
    }
    const struct expr *vjp = NULL, *again = NULL;
    check_status(expr_vjp(expr, 0, 1, 0, &vjp), TN_OK);
    check_status(expr_vjp(vjp, 0, 1, 0, &again), TN_OK);
    cr_assert(eq(str, vjp->input_names[2], "ct0"));
    cr_assert(eq(str, again->input_names[3], "cct0"));
}

static const char *derivative_text(const char *text, uint32_t input)
{
    const struct expr *derived = NULL;
    check_status(expr_derive(parsed(text), 0, input, &derived), TN_OK);
    return derived ? derived->text : "0";
}

Test(derive, derivatives_are_small)
{
    cr_assert(eq(str, derivative_text("x, y -> alpha * x + beta * y", 0), "alpha"));
    cr_assert(eq(str, derivative_text("x -> x ** 2", 0), "2 * x"));
    cr_assert(eq(str, derivative_text("x -> x + x", 0), "2"));
    cr_assert(eq(str, derivative_text("x -> exp(x)", 0), "exp(x)"));
    cr_assert(eq(str, derivative_text("x, y -> x * y", 1), "x"));
    cr_assert(eq(str, derivative_text("x -> 3 - x", 0), "-1"));
    const struct expr *vjp = NULL;
    check_status(expr_vjp(parsed("x, y -> x + y"), 0, 1, 0, &vjp), TN_OK);
    cr_assert(eq(str, vjp->text, "ct0"));
    check_status(expr_vjp(parsed("x, y -> x * y"), 0, 1, 0, &vjp), TN_OK);
    cr_assert(eq(str, vjp->text, "ct0 * y"));
    const struct expr *pruned = NULL;
    uint32_t kept[64];
    check_status(expr_prune(vjp, &pruned, kept), TN_OK);
    cr_assert(eq(uint, pruned->num_inputs, 2));
    cr_assert(eq(uint, kept[0], 1));
    cr_assert(eq(uint, kept[1], 2));
}

Test(derive, flat_functions_have_no_derivative)
{
    static const char *const flat[] = {"x -> floor(x)",    "x -> ceil(x)",
                                       "x -> trunc(x)",    "x -> round(x)",
                                       "x -> sign(x)",     "x -> f64(x < 1)",
                                       "x -> f32(i32(x))", "x -> x // 2",
                                       "x -> isnan(x)",    "x -> x && true",
                                       "x -> f64(index)",  "x -> alpha",
                                       "x -> bool(x)",     "x -> select(x > 0, 1, 2)"};
    for (size_t i = 0; i < sizeof(flat) / sizeof(*flat); i++)
        cr_assert(eq(str, derivative_text(flat[i], 0), "0"));
}

Test(derive, ties_are_shared_and_branches_not_taken_are_zero)
{
    const struct expr *derived = NULL;
    check_status(expr_derive(parsed("x, y -> max(x, y)"), 0, 0, &derived), TN_OK);
    cr_assert(evaluate(derived, (double[]){1, 1}) == 0.5);
    cr_assert(evaluate(derived, (double[]){2, 1}) == 1);
    cr_assert(evaluate(derived, (double[]){0, 1}) == 0);
    // The logarithm's slope at 0 is infinite, but it is not taken.
    check_status(expr_vjp(parsed("x -> select(x > 0, log(x), x)"), 0, 1, 0, &derived),
                 TN_OK);
    cr_assert(evaluate(derived, (double[]){0, 3}) == 3);
    check_status(expr_derive(parsed("x, y -> x ** y"), 0, 0, &derived), TN_OK);
    cr_assert(evaluate(derived, (double[]){0, 0}) == 0);
    check_status(expr_derive(parsed("x, y -> x ** y"), 0, 1, &derived), TN_OK);
    cr_assert(evaluate(derived, (double[]){0, 2}) == 0);
    check_status(expr_derive(parsed("x -> x ** 2"), 0, 0, &derived), TN_OK);
    cr_assert(evaluate(derived, (double[]){-3}) == -6);
}

Test(derive, several_outputs_share_cotangents)
{
    const struct expr *expr = parsed("x, y -> a = x * y; a + x, a * a"), *both = NULL,
                      *second = NULL;
    check_status(expr_vjp(expr, 0, 3, 0, &both), TN_OK);
    const double at[] = {2, 3, 5, 7}; // x, y, ct0, ct1
    // d(xy + x)/dx = y + 1; d(x^2 y^2)/dx = 2 x y^2
    cr_assert(evaluate(both, at) == 5 * 4 + 7 * 2 * 2 * 9);
    check_status(expr_vjp(expr, 0, 2, 0, &second), TN_OK);
    cr_assert(evaluate(second, at) == 7 * 2 * 2 * 9);
}
