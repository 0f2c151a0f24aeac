// SPDX-License-Identifier: MIT
// Batching graphs: which rule is taken, broadcasting, the element's number, axes, nesting,
// derivatives of batches and batches of derivatives, errors, depth.
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

static tn_status vector_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return infer->types[0].rank == 1 ? TN_OK : TN_ERR_ARGUMENT;
}

static tn_status no_reference(const struct tn_cpu_call *call)
{
    (void)call;
    return TN_ERR_UNSUPPORTED;
}

static tn_array *ones_like(const tn_build *build, const tn_array *x)
{
    return build->expr(build, "x -> x * 0 + 1", TN_IN(x), TN_NO_ATTRS);
}

// x + 1, by a decomposition into what has none.
static tn_status next_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    outputs[0] =
        build->expr(build, "x, y -> x + y",
                    TN_IN(rule->inputs[0], ones_like(build, rule->inputs[0])), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status twice_next_decompose(const tn_build *build, const tn_rule *rule,
                                      tn_array **outputs)
{
    tn_array *next = build->op(build, "test.next/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    outputs[0] = build->op(build, "test.next/1", TN_IN(next), TN_NO_ATTRS);
    outputs[1] = rule->inputs[0];
    outputs[2] = build->scalar(build, TN_F32, 7); // no slice changes it
    return TN_OK;
}

static tn_status twice_next_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = types[1] = infer->types[0];
    types[2] = (tn_type){.dtype = TN_F32};
    return TN_OK;
}

// Adds 100, so that one sees who was asked, and puts the batch last.
static tn_status marked_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    const tn_type *type = build->type(rule->inputs[0]);
    const tn_type *slice = build->type(rule->outputs[0]);
    tn_ints back = {.count = (uint32_t)type->rank, .given = 1};
    if (axes[0] != 0 || type->extent[0] != size || slice->rank != type->rank - 1)
        return tn_scope_fail(build->scope, TN_ERR_INTERNAL, "not what was agreed");
    for (int32_t i = 0; i < type->rank; i++)
        back.value[i] = (i + 1) % type->rank;
    outputs[0] = build->op(
        build, "base.transpose/1",
        TN_IN(build->expr(build, "x -> x + 100", TN_IN(rule->inputs[0]), TN_NO_ATTRS)),
        tn_attrs("axes", &back));
    out_axes[0] = type->rank - 1;
    return TN_OK;
}

static tn_status unbatched_vmap(const tn_build *build, const tn_rule *rule,
                                const int32_t *axes, int64_t size, tn_array **outputs,
                                int32_t *out_axes)
{
    (void)axes, (void)size;
    outputs[0] = build->op(
        build, "base.full/1", NULL, 0,
        tn_attrs("shape", TN_INTS(build->type(rule->outputs[0])->extent[0]), "value", 5.0));
    out_axes[0] = -1;
    return TN_OK;
}

static tn_status wrong_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                            int64_t size, tn_array **outputs, int32_t *out_axes)
{
    (void)build, (void)axes, (void)size, (void)out_axes;
    outputs[0] = rule->outputs[0];
    return TN_OK;
}

static tn_status failing_vmap(const tn_build *build, const tn_rule *rule,
                              const int32_t *axes, int64_t size, tn_array **outputs,
                              int32_t *out_axes)
{
    (void)rule, (void)axes, (void)size, (void)outputs, (void)out_axes;
    return tn_scope_fail(build->scope, TN_ERR_UNSUPPORTED, "not on a Sunday");
}

// Says that its derivative is 10, so that one sees who was asked.
static tn_status marked_vjp(const tn_build *build, const tn_rule *rule,
                            tn_array *const *cotangents, const uint64_t *wanted,
                            tn_array **gradients)
{
    (void)rule, (void)wanted;
    gradients[0] = build->expr(build, "g -> 10 * g", TN_IN(cotangents[0]), TN_NO_ATTRS);
    return TN_OK;
}

static tn_status silent_vmap(const tn_build *build, const tn_rule *rule,
                             const int32_t *axes, int64_t size, tn_array **outputs,
                             int32_t *out_axes)
{
    (void)build, (void)rule, (void)axes, (void)size, (void)outputs, (void)out_axes;
    return TN_ERR_UNSUPPORTED;
}

static const tn_input_info x_only[] = {{.name = "x"}};
#define ONE_INPUT TN_INPUTS(x_only)
static const tn_primitive primitives[] = {
    {.id = "test.next/1", ONE_INPUT, .infer = same_type, .decompose = next_decompose},
    {.id = "test.twice_next/1",
     ONE_INPUT,
     TN_OUTPUTS(((const tn_output_info[]){{.name = "a"}, {.name = "b"}, {.name = "c"}})),
     .infer = twice_next_infer,
     .decompose = twice_next_decompose},
    {.id = "test.marked/1", ONE_INPUT, .expr = "x * 1", .vmap = marked_vmap},
    {.id = "test.unbatched/1", ONE_INPUT, .expr = "x * 1", .vmap = unbatched_vmap},
    {.id = "test.wrong/1", ONE_INPUT, .expr = "x * 1", .vmap = wrong_vmap},
    {.id = "test.failing/1", ONE_INPUT, .expr = "x * 1", .vmap = failing_vmap},
    {.id = "test.silent/1", ONE_INPUT, .expr = "x * 1", .vmap = silent_vmap},
    {.id = "test.steep/1", ONE_INPUT, .expr = "x * 1", .vjp = marked_vjp},
    {.id = "test.vector/1", ONE_INPUT, .expr = "x * x", .infer = vector_type},
    {.id = "test.opaque/1", ONE_INPUT, .infer = same_type, .reference = no_reference},
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
    cr_assert(ne(ptr, s, NULL));
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

// 0, 1, 2, ... in f32.
static tn_array *counting(const tn_shape *shape)
{
    float data[256];
    for (int i = 0; i < 256; i++)
        data[i] = (float)i;
    return tn_from_data(s, TN_F32, shape, data);
}

static void expect_values(tn_array *array, const tn_shape *shape, const double *expected)
{
    must(tn_scope_status(s));
    const tn_type *type = tn_array_type(array);
    int64_t count = 1;
    cr_assert(eq(int, type->rank, shape->rank));
    for (int32_t i = 0; i < shape->rank; i++) {
        cr_assert(eq(i64, type->extent[i], shape->extent[i]));
        count *= shape->extent[i];
    }
    tn_array *wide = tn_expr(s, "x -> f64(x)", TN_IN(array), TN_NO_ATTRS);
    const double *got = tn_data(s, wide);
    must(tn_scope_status(s));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[i] - expected[i]) < 1e-5))
            cr_fatal("element %d is %g, expected %g", (int)i, got[i], expected[i]);
}

static void expect_error(tn_status status, const char *part)
{
    cr_assert(ne(int, status, TN_OK));
    if (!strstr(tn_scope_error(s), part))
        cr_fatal("got \"%s\", expected \"%s\"", tn_scope_error(s), part);
    tn_scope_clear_error(s);
}

// A body that applies `user`, an expression or the name of a primitive.
static tn_status apply_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    const tn_array *const *in = (const tn_array *const *)inputs;
    (void)num_outputs;
    outputs[0] = strstr(user, "->") ? tn_expr(scope, user, in, num_inputs, TN_NO_ATTRS)
                                    : tn_op(scope, user, in, num_inputs, TN_NO_ATTRS);
    return TN_OK;
}

static tn_array *map_one(const char *text, tn_array *x, int32_t in_axis, int32_t out_axis)
{
    tn_array *out = NULL;
    tn_vmap_call(s, apply_body, (void *)text, &x, &in_axis, 1, &out, &out_axis, 1);
    return out;
}

static tn_array *map_two(const char *text, tn_array *x, int32_t x_axis, tn_array *y,
                         int32_t y_axis)
{
    tn_array *in[] = {x, y}, *out = NULL;
    tn_vmap_call(s, apply_body, (void *)text, in, (int32_t[]){x_axis, y_axis}, 2, &out,
                 NULL, 1);
    return out;
}

// --- what is derived -------------------------------------------------------------------

TestSuite(vmap, .init = open_all, .fini = close_all);

Test(vmap, expressions_broadcast_slices_and_not_batches)
{
    tn_array *x = counting(TN_SHAPE(2, 2)), *y = counting(TN_SHAPE(2));
    // A slice of x meets the whole y; a slice of y is a number that meets all of x.
    expect_values(map_two("x, y -> 10 * x + y", x, 0, y, -1), TN_SHAPE(2, 2),
                  (double[]){0, 11, 20, 31});
    expect_values(map_two("x, y -> 10 * x + y", x, 1, y, -1), TN_SHAPE(2, 2),
                  (double[]){0, 21, 10, 31});
    expect_values(map_two("x, y -> 10 * x + y", x, -1, y, 0), TN_SHAPE(2, 2, 2),
                  (double[]){0, 10, 20, 30, 1, 11, 21, 31});
    // Both mapped: slices are a vector and a number.
    expect_values(map_two("x, y -> 10 * x + y", x, 0, y, 0), TN_SHAPE(2, 2),
                  (double[]){0, 10, 21, 31});
    expect_values(map_two("x, y -> 10 * x + y", x, 1, y, 0), TN_SHAPE(2, 2),
                  (double[]){0, 20, 11, 31});
}

Test(vmap, the_axis_of_the_result_is_where_it_is_asked_for)
{
    tn_array *x = counting(TN_SHAPE(2, 3));
    expect_values(map_one("x -> x", x, 0, 0), TN_SHAPE(2, 3), (double[]){0, 1, 2, 3, 4, 5});
    expect_values(map_one("x -> -x", x, 0, 1), TN_SHAPE(3, 2),
                  (double[]){0, -3, -1, -4, -2, -5});
    expect_values(map_one("x -> -x", x, 1, 1), TN_SHAPE(2, 3),
                  (double[]){0, -1, -2, -3, -4, -5});
    tn_array *cube = counting(TN_SHAPE(2, 2, 2));
    expect_values(map_one("x -> x + 0", cube, 1, 2), TN_SHAPE(2, 2, 2),
                  (double[]){0, 2, 1, 3, 4, 6, 5, 7});
}

Test(vmap, batches_of_one_and_of_none)
{
    tn_array *one = counting(TN_SHAPE(1, 3)), *none = counting(TN_SHAPE(0, 3));
    expect_values(map_one("test.next", one, 0, 0), TN_SHAPE(1, 3), (double[]){1, 2, 3});
    expect_values(map_one("test.next", none, 0, 1), TN_SHAPE(3, 0), NULL);
    expect_values(map_two("x, y -> x + y", none, 0, counting(TN_SHAPE(4, 1)), -1),
                  TN_SHAPE(0, 4, 3), NULL);
}

Test(vmap, the_number_of_an_element_is_that_within_its_slice)
{
    tn_array *x = counting(TN_SHAPE(2, 3));
    expect_values(map_one("x -> x + 10 * index", x, 0, 0), TN_SHAPE(2, 3),
                  (double[]){0, 11, 22, 3, 14, 25});
    expect_values(map_one("x -> x + 10 * index", x, 1, 0), TN_SHAPE(3, 2),
                  (double[]){0, 13, 1, 14, 2, 15});
}

Test(vmap, each_primitive_uses_the_rule_that_it_has)
{
    tn_array *x = counting(TN_SHAPE(2, 3));
    expect_values(map_one("test.next", x, 1, 0), TN_SHAPE(3, 2),
                  (double[]){1, 4, 2, 5, 3, 6});
    expect_values(map_one("test.marked", x, 0, 0), TN_SHAPE(2, 3),
                  (double[]){100, 101, 102, 103, 104, 105});
    expect_values(map_one("test.unbatched", x, 1, 0), TN_SHAPE(3, 2),
                  (double[]){5, 5, 5, 5, 5, 5});
    // Its infer wants vectors: the expression is mapped instead.
    tn_array *squares = map_one("test.vector", x, 0, 0);
    expect_values(squares, TN_SHAPE(2, 3), (double[]){0, 1, 4, 9, 16, 25});
    // This one takes a batch as it is, so that its own derivative stays in use.
    tn_array *y = map_one("test.steep", x, 0, 0), *g = NULL;
    cr_assert(eq(str, tn_array_op(y), "test.steep/1"));
    tn_array *loss = tn_op(s, "base.sum", TN_IN(y), TN_NO_ATTRS);
    must(tn_vjp(s, &loss, NULL, 1, &x, 1, &g));
    expect_values(g, TN_SHAPE(2, 3), (double[]){10, 10, 10, 10, 10, 10});
}

static tn_status three_outputs(tn_scope *scope, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user)
{
    (void)user;
    return tn_op_n(scope, "test.twice_next", (const tn_array *const *)inputs, num_inputs,
                   TN_NO_ATTRS, outputs, num_outputs);
}

Test(vmap, decompositions_with_several_outputs)
{
    tn_array *x = counting(TN_SHAPE(2, 2)), *out[3];
    const int32_t out_axes[] = {0, 1, 0};
    must(tn_vmap_call(s, three_outputs, NULL, &x, NULL, 1, out, out_axes, 3));
    expect_values(out[0], TN_SHAPE(2, 2), (double[]){2, 3, 4, 5});
    expect_values(out[1], TN_SHAPE(2, 2), (double[]){0, 2, 1, 3});
    expect_values(out[2], TN_SHAPE(2), (double[]){7, 7});
}

Test(vmap, numbers_without_a_dtype_take_that_of_what_they_meet)
{
    tn_array *x = counting(TN_SHAPE(3)), *two = tn_float(s, 2);
    tn_array *y = tn_expr(s, "x, k -> x * k", TN_IN(x, two), TN_NO_ATTRS), *out = NULL;
    tn_array *ks = tn_from_data(s, TN_F64, TN_SHAPE(2), (double[]){1, 10});
    must(tn_vmap(s, &y, NULL, 1, &two, &ks, NULL, 1, &out));
    cr_assert(eq(int, tn_array_type(out)->dtype, TN_F32));
    expect_values(out, TN_SHAPE(2, 3), (double[]){0, 1, 2, 0, 10, 20});
}

// --- graphs ----------------------------------------------------------------------------

Test(vmap, graphs_that_are_there_already)
{
    tn_array *x = tn_f32(s, 3), *y = counting(TN_SHAPE(2));
    tn_array *a = tn_expr(s, "x -> x * x", TN_IN(x), TN_NO_ATTRS);
    tn_array *b = tn_expr(s, "a, y -> a + y", TN_IN(a, y), TN_NO_ATTRS);
    tn_array *c = tn_expr(s, "y -> y + 7", TN_IN(y), TN_NO_ATTRS);
    must(tn_eval(s, a, b));
    tn_array *outputs[] = {b, c, c, x}, *slices[] = {x, y}, *out[4];
    tn_array *inputs[] = {counting(TN_SHAPE(3)), NULL};
    const int32_t in_axes[] = {0, -1}, out_axes[] = {1, -1, 0, 0};
    must(tn_vmap(s, outputs, out_axes, 4, slices, inputs, in_axes, 2, out));
    expect_values(out[0], TN_SHAPE(2, 3), (double[]){0, 1, 4, 1, 2, 5});
    cr_assert(eq(ptr, out[1], c)); // the same for each slice
    expect_values(out[2], TN_SHAPE(3, 2), (double[]){7, 8, 7, 8, 7, 8});
    cr_assert(eq(ptr, out[3], inputs[0]));
    // An array in the middle may be mapped, and what is below it then does not matter.
    tn_array *both[] = {x, a}, *two[] = {inputs[0], counting(TN_SHAPE(3))};
    must(tn_vmap(s, &b, NULL, 1, both, two, NULL, 2, out));
    expect_values(out[0], TN_SHAPE(3, 2), (double[]){0, 1, 1, 2, 2, 3});
}

// --- nesting ---------------------------------------------------------------------------

// The outer product, one element at a time: the second input is captured.
static tn_status row_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                          tn_array **outputs, uint64_t num_outputs, void *user)
{
    tn_array *in[] = {inputs[0], user};
    (void)num_inputs, (void)num_outputs;
    return tn_vmap_call(scope, apply_body, (void *)"x, y -> 10 * x + y + 100 * index", in,
                        (int32_t[]){-1, 0}, 2, outputs, NULL, 1);
}

Test(vmap, batches_within_batches)
{
    tn_array *x = counting(TN_SHAPE(2)), *y = counting(TN_SHAPE(3)), *out = NULL;
    must(tn_vmap_call(s, row_body, y, &x, NULL, 1, &out, NULL, 1));
    expect_values(out, TN_SHAPE(2, 3), (double[]){0, 1, 2, 10, 11, 12});
    must(tn_vmap_call(s, row_body, y, &x, NULL, 1, &out, (int32_t[]){1}, 1));
    expect_values(out, TN_SHAPE(3, 2), (double[]){0, 10, 1, 11, 2, 12});
    // Vectors: an element's number counts within the innermost slice.
    tn_array *rows = counting(TN_SHAPE(2, 2));
    must(tn_vmap_call(s, row_body, counting(TN_SHAPE(1)), &rows, NULL, 1, &out, NULL, 1));
    expect_values(out, TN_SHAPE(2, 1, 2), (double[]){0, 110, 20, 130});
}

// d(x sin x)/dx of one number.
static tn_status gradient_body(tn_scope *scope, tn_array *const *inputs,
                               uint64_t num_inputs, tn_array **outputs,
                               uint64_t num_outputs, void *user)
{
    tn_array *y = tn_expr(scope, "x -> x * sin(x)", TN_IN(inputs[0]), TN_NO_ATTRS);
    tn_array *t = tn_f32(scope, 1);
    (void)num_inputs, (void)num_outputs;
    return user ? tn_jvp(scope, &y, 1, inputs, &t, 1, outputs)
                : tn_vjp(scope, &y, NULL, 1, inputs, 1, outputs);
}

Test(vmap, batches_of_derivatives)
{
    tn_array *x = counting(TN_SHAPE(3)), *out = NULL;
    double expected[3];
    for (int i = 0; i < 3; i++)
        expected[i] = sin(i) + i * cos(i);
    must(tn_vmap_call(s, gradient_body, NULL, &x, NULL, 1, &out, NULL, 1));
    expect_values(out, TN_SHAPE(3), expected);
    must(tn_vmap_call(s, gradient_body, (void *)"forward", &x, NULL, 1, &out, NULL, 1));
    expect_values(out, TN_SHAPE(3), expected);
}

Test(vmap, derivatives_of_batches)
{
    tn_array *x = counting(TN_SHAPE(2, 2)), *y = counting(TN_SHAPE(2)), *g[2];
    tn_array *out = map_two("x, y -> x * x * y", x, 1, y, -1);
    tn_array *loss = tn_op(s, "base.sum", TN_IN(out), TN_NO_ATTRS);
    must(tn_vjp(s, &loss, NULL, 1, (tn_array *[]){x, y}, 2, g));
    expect_values(g[0], TN_SHAPE(2, 2), (double[]){0, 0, 4, 6});
    expect_values(g[1], TN_SHAPE(2), (double[]){0 + 1, 4 + 9});
    tn_array *t = counting(TN_SHAPE(2)), *moved = NULL;
    must(tn_jvp(s, &out, 1, &y, &t, 1, &moved));
    expect_values(moved, TN_SHAPE(2, 2), (double[]){0, 4, 0, 9});
}

// --- errors ----------------------------------------------------------------------------

static tn_status eager_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs;
    outputs[0] = inputs[0];
    if (!user)
        outputs[0] = tn_expr(scope, "x -> x + 1", TN_IN(inputs[0]), TN_NO_ATTRS);
    return tn_eval(scope, outputs[0]);
}

static tn_status lazy_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                           tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)scope, (void)inputs, (void)num_inputs, (void)num_outputs, (void)outputs;
    return user ? TN_ERR_IO : TN_OK;
}

Test(vmap, rules_that_are_missing_or_wrong_are_named)
{
    tn_array *x = counting(TN_SHAPE(2, 3));
    cr_assert(eq(ptr, map_one("test.opaque", x, 0, 0), NULL));
    expect_error(tn_scope_status(s), "vmap: test.opaque/1 has no vmap, and no expression");
    cr_assert(eq(ptr, map_one("test.failing", x, 0, 0), NULL));
    expect_error(tn_scope_status(s), "not on a Sunday");
    cr_assert(eq(ptr, map_one("test.silent", x, 0, 0), NULL));
    expect_error(
        tn_scope_status(s),
        "test.silent/1: vmap: rule vmap of the application failed (unsupported) and "
        "gave no reason");
    cr_assert(eq(ptr, map_one("test.wrong", x, 0, 0), NULL));
    expect_error(tn_scope_status(s),
                 "test.wrong/1: vmap gives f32[3] for output 0 with the "
                 "batch on axis 0, expected f32[2, 3]");
}

Test(vmap, calls_that_do_not_fit_say_what_was_expected)
{
    tn_array *x = counting(TN_SHAPE(2, 3)), *y = counting(TN_SHAPE(3, 3)), *out = NULL;
    map_two("x, y -> x + y", x, 0, y, 0);
    expect_error(tn_scope_status(s),
                 "vmap: input 1 has extent 3 on axis 0, expected 2 as input 0");
    map_two("x, y -> x + y", x, -1, y, -1);
    expect_error(tn_scope_status(s), "no input is mapped");
    map_two("x, y -> x + y", x, 2, y, -1);
    expect_error(tn_scope_status(s), "input 0 is f32[2, 3], which has no axis 2");
    map_one("x -> x + 1", x, 0, 2);
    expect_error(tn_scope_status(s), "output 0: axis 2 is out of range");
    map_one("x -> x + 1", x, 0, -1);
    expect_error(tn_scope_status(s), "output 0 depends on a mapped input");
    map_two("x, y -> x + y", x, 0, NULL, -1);
    expect_error(tn_scope_status(s), "input 1 is NULL");
    tn_array *z = tn_expr(s, "x -> x + 1", TN_IN(x), TN_NO_ATTRS);
    expect_error(tn_vmap(s, &z, NULL, 1, &x, &y, NULL, 1, &out),
                 "input 0 is f32[3, 3], expected f32[3, 2, 3]: slices on axis 0");
    tn_array *full = counting(TN_SHAPE(1, 1, 1, 1, 1, 1, 1, 2));
    map_two("x, y -> x + y", full, -1, counting(TN_SHAPE(3, 2)), 0);
    expect_error(tn_scope_status(s), "a batch would have rank 9, at most 8");
}

Test(vmap, bodies_that_fail_leave_their_error)
{
    tn_array *x = counting(TN_SHAPE(2, 3)), *out = NULL;
    expect_error(tn_vmap_call(s, eager_body, NULL, &x, NULL, 1, &out, NULL, 1),
                 "stands for a slice in vmap, which has no data");
    expect_error(tn_vmap_call(s, eager_body, (void *)"itself", &x, NULL, 1, &out, NULL, 1),
                 "stands for a slice in vmap, which has no data");
    expect_error(tn_vmap_call(s, NULL, NULL, &x, NULL, 1, &out, NULL, 1),
                 "vmap: the body is NULL");
    expect_error(tn_vmap_call(s, lazy_body, NULL, &x, NULL, 1, &out, NULL, 1),
                 "the body left output 0 NULL");
    expect_error(tn_vmap_call(s, lazy_body, (void *)"fail", &x, NULL, 1, &out, NULL, 1),
                 "");
    // The first failure stays.
    tn_scope_fail(s, TN_ERR_IO, "the first");
    check_status(tn_vmap_call(s, lazy_body, NULL, &x, NULL, 1, &out, NULL, 1), TN_ERR_IO);
    check_status(tn_vmap(s, &x, NULL, 1, &x, &x, NULL, 1, &out), TN_ERR_IO);
    expect_error(tn_scope_status(s), "the first");
}

Test(vmap, only_what_is_mapped_is_visited)
{
    tn_array *z = tn_op(s, "test.opaque", TN_IN(counting(TN_SHAPE(3))), TN_NO_ATTRS);
    cr_assert(ne(ptr, map_two("x, z -> x + z", counting(TN_SHAPE(2, 3)), 0, z, -1), NULL));
}

static tn_status deep_body(tn_scope *scope, tn_array *const *inputs, uint64_t num_inputs,
                           tn_array **outputs, uint64_t num_outputs, void *user)
{
    tn_array *x = inputs[0];
    (void)num_inputs, (void)num_outputs;
    for (int i = 0; i < 100000; i++)
        x = tn_op(scope, user, TN_IN(x), TN_NO_ATTRS);
    outputs[0] = x;
    return TN_OK;
}

Test(vmap, a_deep_chain_is_mapped)
{
    tn_array *x = counting(TN_SHAPE(2, 3)), *t = counting(TN_SHAPE(2, 3)), *out = NULL;
    must(tn_vmap_call(s, deep_body, (void *)"base.negative", &x, NULL, 1, &out, NULL, 1));
    tn_array *moved = NULL;
    must(tn_jvp(s, &out, 1, &x, &t, 1, &moved));
    cr_assert(ne(ptr, moved, NULL));
    must(tn_vmap_call(s, deep_body, (void *)"test.next", &x, NULL, 1, &out, NULL, 1));
}
