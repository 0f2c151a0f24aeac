// SPDX-License-Identifier: MIT
// Differentiating graphs: which rule is taken, broadcasting, dtypes, errors, depth. Values
// are computed by the backend that is chosen automatically; without one, or without the
// base pack, the tests are skipped.
#include "check.h"
#include <math.h>
#include <tenon/tenon.h>
#include "base/fail.h"
#include "primitive/prim_set.h"

static tn_runtime *rt;
static tn_scope *s;

static tn_status same_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return TN_OK;
}

// x * x, by a decomposition into two others.
static tn_status square_decompose(const tn_build *build, const tn_rule *rule,
                                  tn_array **outputs)
{
    outputs[0] = build->op(
        build, "test.twice/1",
        TN_IN(build->expr(build, "x -> x * x / 2", TN_IN(rule->inputs[0]), TN_NO_ATTRS)),
        TN_NO_ATTRS);
    return TN_OK;
}

static tn_status twice_decompose(const tn_build *build, const tn_rule *rule,
                                 tn_array **outputs)
{
    outputs[0] = build->expr(build, "x -> x + x", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    return TN_OK;
}

// Says that its derivative is 10, so that one sees who was asked.
static tn_status marked_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    (void)rule;
    if (wanted[0] & 1)
        gradients[0] = build->expr(build, "g -> 10 * g", TN_IN(cotangents[0]), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status failing_vjp(const tn_build *build, const tn_rule *rule,
                             tn_array *const *cotangents, const uint64_t *wanted,
                             tn_array **gradients)
{
    (void)rule, (void)cotangents, (void)wanted, (void)gradients;
    (void)build;
    return TN_ERR_UNSUPPORTED;
}

static tn_status no_reference(const struct tn_cpu_call *call)
{
    (void)call;
    return TN_ERR_UNSUPPORTED;
}

static const tn_input_info x_only[] = {{.name = "x"}};
static const tn_input_info x_constant[] = {{.name = "x"},
                                           {.name = "c", .flags = TN_INPUT_CONSTANT}};

static const tn_primitive primitives[] = {
    {.id = "test.twice/1",
     TN_INPUTS(x_only),
     .infer = same_type,
     .decompose = twice_decompose},
    {.id = "test.square/1",
     TN_INPUTS(x_only),
     .infer = same_type,
     .decompose = square_decompose},
    {.id = "test.marked/1", TN_INPUTS(x_only), .expr = "x * 1", .vjp = marked_vjp},
    {.id = "test.failing/1", TN_INPUTS(x_only), .expr = "x * 1", .vjp = failing_vjp},
    {.id = "test.opaque/1",
     TN_INPUTS(x_only),
     .infer = same_type,
     .reference = no_reference},
    {.id = "test.constant/1", TN_INPUTS(x_constant), .expr = "x * c"},
};

static void open_all(void)
{
    check_status(tn_runtime_open(NULL, &rt), TN_OK);
    for (size_t i = 0; i < sizeof(primitives) / sizeof(*primitives); i++) {
        tn_primitive record = primitives[i];
        record.struct_size = sizeof(record);
        check_status(prim_register(rt, NULL, &record), TN_OK);
    }
    s = tn_scope_open(rt);
}

static void close_all(void)
{
    tn_scope_close(s);
    tn_runtime_close(rt);
}

static void must(tn_status status)
{
    if (status != TN_OK)
        cr_fatal("%s", tn_scope_error(s));
}

static void need_plugins(void)
{
    tn_array *one = tn_expr(s, "x -> x + 1", TN_IN(tn_f32(s, 0)), TN_NO_ATTRS);
    if (tn_eval(s, one) != TN_OK || !tn_primitive_find(rt, "base.sum_to"))
        cr_fatal("%s%s", tn_scope_error(s), tn_last_error());
}

static tn_array *apply(const char *op, tn_array *x)
{
    return tn_op(s, op, TN_IN(x), TN_NO_ATTRS);
}

// d(sum of y * cotangent)/dx at element 0.
static double gradient(tn_array *y, tn_array *x)
{
    tn_array *g = NULL;
    must(tn_vjp(s, &y, NULL, 1, &x, 1, &g));
    cr_assert(eq(mem, bytes_of(tn_array_type(g), sizeof(tn_type)),
                 bytes_of(tn_array_type(x), sizeof(tn_type))));
    double value = tn_item(s, g);
    must(tn_scope_status(s));
    return value;
}

static double forward(tn_array *y, tn_array *x)
{
    tn_array *tangent = tn_scalar(s, tn_array_type(x)->dtype, 1), *out = NULL;
    must(tn_jvp(s, &y, 1, &x, &tangent, 1, &out));
    double value = tn_item(s, out);
    must(tn_scope_status(s));
    return value;
}

TestSuite(vjp, .init = open_all, .fini = close_all);

Test(vjp, each_primitive_uses_the_rule_that_it_has)
{
    need_plugins();
    tn_array *x = tn_f32(s, 3);
    cr_assert(gradient(apply("test.square", x), x) == 6); // decomposed twice
    cr_assert(forward(apply("test.square", x), x) == 6);
    cr_assert(gradient(apply("test.marked", x), x) == 10);
    cr_assert(gradient(apply("test.marked", apply("test.square", x)), x) == 60);
    tn_array *y = tn_expr(s, "x -> exp(x) * x", TN_IN(x), TN_NO_ATTRS);
    cr_assert(fabs(gradient(y, x) - 4 * exp(3)) < 1e-4);
    cr_assert(fabs(forward(y, x) - 4 * exp(3)) < 1e-4);
}

Test(vjp, gradients_of_several_uses_add_up)
{
    need_plugins();
    tn_array *x = tn_f64(s, 2);
    tn_array *a = apply("test.square", x); // x^2
    tn_array *y = tn_expr(s, "a, x -> a * x + a", TN_IN(a, x), TN_NO_ATTRS);
    cr_assert(gradient(y, x) == 3 * 4 + 2 * 2); // x^3 + x^2
    cr_assert(gradient(y, a) == 3);             // an array in the middle
    cr_assert(gradient(y, y) == 1);
    tn_array *both[] = {x, a}, *g[2];
    must(tn_vjp(s, &y, NULL, 1, both, 2, g));
    cr_assert(tn_item(s, g[0]) == 16 && tn_item(s, g[1]) == 3);
}

Test(vjp, what_was_broadcast_is_summed_and_dtypes_are_kept)
{
    need_plugins();
    const float xs[] = {1, 2, 3}, cs[] = {1, 10, 100, 1000, 10000, 100000};
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(3), xs);
    tn_array *w = tn_f64(s, 0.5);
    tn_array *column = tn_from_data(s, TN_F32, TN_SHAPE(2, 1), xs);
    tn_array *y = tn_expr(s, "x, w, c -> f32(x * w) * c", TN_IN(x, w, column), TN_NO_ATTRS);
    tn_array *cotangent = tn_from_data(s, TN_F32, TN_SHAPE(2, 3), cs);
    tn_array *wrt[] = {x, w, column}, *g[3];
    must(tn_vjp(s, &y, &cotangent, 1, wrt, 3, g));
    float gx[3], gc[2];
    must(tn_read(s, g[0], gx, sizeof(gx)));
    must(tn_read(s, g[2], gc, sizeof(gc)));
    cr_assert(gx[0] == 0.5f * (1 + 2000) && gx[2] == 0.5f * (100 + 200000));
    cr_assert(gc[0] == 0.5f * (1 + 20 + 300) && gc[1] == 0.5f * (1000 + 20000 + 300000));
    cr_assert(eq(int, tn_array_type(g[1])->dtype, TN_F64));
    cr_assert(tn_item(s, g[1]) == 321 + 2 * 321000.0);
}

Test(vjp, unreached_arrays_get_zeros)
{
    need_plugins();
    const float xs[] = {1, 2, 3};
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(3), xs), *y = tn_f32(s, 1), *g;
    tn_array *z = tn_expr(s, "x -> floor(x)", TN_IN(y), TN_NO_ATTRS);
    must(tn_vjp(s, &z, NULL, 1, &x, 1, &g));
    float out[3] = {7, 7, 7};
    must(tn_read(s, g, out, sizeof(out)));
    cr_assert(out[0] == 0 && out[1] == 0 && out[2] == 0);
    cr_assert(gradient(z, y) == 0);
    cr_assert(forward(z, y) == 0);
    tn_array *c = tn_f32(s, 5);
    tn_array *q = tn_op(s, "test.constant", TN_IN(y, c), TN_NO_ATTRS);
    cr_assert(gradient(q, c) == 0);
    cr_assert(gradient(q, y) == 5);
}

Test(vjp, evaluated_graphs_still_differentiate)
{
    need_plugins();
    tn_array *x = tn_f32(s, 3), *a = apply("test.square", x);
    tn_array *y = tn_expr(s, "a -> a * a", TN_IN(a), TN_NO_ATTRS);
    must(tn_eval(s, a, y));
    cr_assert(gradient(y, x) == 4 * 27);
}

Test(vjp, second_derivatives)
{
    need_plugins();
    tn_array *x = tn_f64(s, 0.7), *g;
    tn_array *y = tn_expr(s, "x -> sin(x) * x", TN_IN(x), TN_NO_ATTRS);
    must(tn_vjp(s, &y, NULL, 1, &x, 1, &g));
    double expected = 2 * cos(0.7) - 0.7 * sin(0.7);
    cr_assert(fabs(gradient(g, x) - expected) < 1e-12);
    cr_assert(fabs(forward(g, x) - expected) < 1e-12);
}

// matmul has a vjp: its jvp is that, transposed.
Test(vjp, a_vjp_gives_a_jvp)
{
    need_plugins();
    const float as[] = {1, 2, 3, 4}, bs[] = {5, 6, 7, 8}, ts[] = {1, 0, 0, 2};
    tn_array *a = tn_from_data(s, TN_F32, TN_SHAPE(2, 2), as);
    tn_array *b = tn_from_data(s, TN_F32, TN_SHAPE(2, 2), bs);
    tn_array *t = tn_from_data(s, TN_F32, TN_SHAPE(2, 2), ts), *out;
    tn_array *y = tn_op(s, "base.matmul", TN_IN(a, b), TN_NO_ATTRS);
    must(tn_jvp(s, &y, 1, &a, &t, 1, &out));
    float got[4];
    must(tn_read(s, out, got, sizeof(got)));
    cr_assert(got[0] == 5 && got[1] == 6 && got[2] == 14 && got[3] == 16);
}

static void expect_error(tn_status status, const char *part)
{
    cr_assert(ne(int, status, TN_OK));
    check_says(tn_scope_error(s), part);
    tn_scope_clear_error(s);
}

Test(vjp, errors_say_what_was_got_and_expected)
{
    const tn_type vector = {.dtype = TN_F32, .rank = 1, .extent = {3}};
    const float xs[] = {1, 2, 3};
    tn_array *x = tn_f32(s, 1), *i = tn_i32(s, 1), *g;
    tn_array *v = tn_from_data(s, vector.dtype, TN_SHAPE(3), xs);
    if (!v)
        return; // no device to hold data: said by the other tests
    tn_array *y = apply("test.opaque", x);
    expect_error(tn_vjp(s, &y, NULL, 1, &x, 1, &g), "vjp: test.opaque/1 has no vjp");
    expect_error(tn_jvp(s, &y, 1, &x, &x, 1, &g), "jvp: test.opaque/1 has no jvp");
    y = apply("test.failing", x);
    expect_error(tn_vjp(s, &y, NULL, 1, &x, 1, &g), "test.failing/1: vjp: ");
    y = tn_expr(s, "x, i -> x * i", TN_IN(x, i), TN_NO_ATTRS);
    expect_error(tn_vjp(s, &y, NULL, 1, &i, 1, &g), "it is i32[], expected a float dtype");
    expect_error(tn_vjp(s, &i, NULL, 1, &x, 1, &g), "output 0 is i32[], expected a float");
    y = tn_expr(s, "v -> v * 2", TN_IN(v), TN_NO_ATTRS);
    expect_error(tn_vjp(s, &y, NULL, 1, &v, 1, &g), "expected one element");
    expect_error(tn_vjp(s, &y, &x, 1, &v, 1, &g), "cotangent 0 is f32[], expected f32[3]");
    expect_error(tn_jvp(s, &y, 1, &v, &x, 1, &g), "tangent 0 is f32[], expected f32[3]");
    y = NULL;
    expect_error(tn_vjp(s, &y, NULL, 1, &x, 1, &g), "output 0 is NULL");
}

Test(vjp, only_the_path_is_visited)
{
    need_plugins();
    // The opaque primitive has no rule, and needs none: nothing asked for lies below it.
    tn_array *x = tn_f32(s, 2), *z = apply("test.opaque", tn_f32(s, 3)), *g;
    tn_array *y = tn_expr(s, "x, z -> x * x + z", TN_IN(x, z), TN_NO_ATTRS);
    must(tn_vjp(s, &y, NULL, 1, &x, 1, &g));
    cr_assert(tn_item(s, g) == 4);
}

Test(vjp, a_chain_of_a_million_differentiates)
{
    tn_scope *own = tn_scope_open(rt);
    tn_array *x = tn_f32(own, 1), *y = x, *g = NULL;
    for (int i = 0; i < 1000000; i++)
        y = tn_op(own, "test.marked", TN_IN(y), TN_NO_ATTRS);
    check_status(tn_vjp(own, &y, NULL, 1, &x, 1, &g), TN_OK);
    cr_assert(ne(ptr, g, NULL));
    tn_scope_close(own);
}
