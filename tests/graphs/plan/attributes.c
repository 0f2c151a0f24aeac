// SPDX-License-Identifier: MIT
// Attributes that are texts and lists through the whole core: plans, common subexpressions,
// functions, derivatives, decompositions, checked runs; and who keeps them alive.
#include "base/fail.h"
#include "plan/plan.h"
#include "primitive/prim_set.h"
#include <tenon/ops/reference.h>
#include <tenon/pack.h>
#include "../support/common.h"

// --- a polynomial with a list and a text ------------------------------------------------

typedef struct poly_attrs {
    const tn_float_list *coefficients;
    const tn_int_list *powers; // of the coefficients; 0, 1, 2, ... when left out
    const char *order;         // "falling": the list is read from its end
} poly_attrs;

static const tn_attr_field poly_fields[] = {
    TN_REQUIRED_FIELD(poly_attrs, coefficients, TN_ATTR_FLOAT_LIST, "coefficients"),
    TN_INT_LIST_FIELD(poly_attrs, powers, "their powers"),
    TN_STRING_FIELD(poly_attrs, order, "\"rising\" or \"falling\""),
};

static double poly_at(const poly_attrs *a, double x, uint64_t i)
{
    uint64_t n = a->coefficients->count;
    double power = a->powers ? (double)a->powers->value[i] : (double)i;
    bool falls = a->order && strcmp(a->order, "falling") == 0;
    return a->coefficients->value[falls ? n - 1 - i : i] * pow(x, power);
}

static tn_status poly_infer(const tn_infer *infer, tn_type *types)
{
    const poly_attrs *a = infer->attrs;
    if (a->powers && a->powers->count != a->coefficients->count)
        return fail(TN_ERR_ARGUMENT, "%d powers, %d coefficients", (int)a->powers->count,
                    (int)a->coefficients->count);
    types[0] = infer->types[0];
    return TN_OK;
}

static tn_status poly_reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    const poly_attrs *a = call->attrs;
    int64_t index[TN_MAX_RANK] = {0};
    do {
        double sum = 0, at = tn_get_f64(x, tn_offset_at(&x->layout, index));
        for (uint64_t i = 0; i < a->coefficients->count; i++)
            sum += poly_at(a, at, i);
        tn_set_f64(out, tn_offset_at(&out->layout, index), sum);
    } while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

// By an application of the same primitive, whose texts and lists come from this one.
static tn_status wrapped_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs)
{
    const poly_attrs *a = rule->attrs;
    outputs[0] = build->op(
        build, "test.poly/1", TN_IN(rule->inputs[0]),
        tn_attrs("coefficients", a->coefficients, "powers", a->powers, "order", a->order));
    return TN_OK;
}

static tn_status by_terms(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const poly_attrs *a = rule->attrs;
    const tn_array *x = rule->inputs[0];
    tn_array *sum = build->expr(build, "x -> 0 * x", TN_IN(x), TN_NO_ATTRS);
    for (uint64_t i = 0; i < a->coefficients->count; i++)
        sum = build->expr(build, "x, s -> s + c * x ** p", TN_IN(x, sum),
                          tn_attrs("c", a->coefficients->value[i], "p", (double)i));
    outputs[0] = sum;
    return TN_OK;
}

TN_OP(poly, "test.poly/1", (x), .attrs = TN_ATTR_TABLE(poly_attrs, poly_fields),
      .infer = poly_infer, .reference = poly_reference);
TN_OP(wrapped, "test.wrapped/1", (x), .attrs = TN_ATTR_TABLE(poly_attrs, poly_fields),
      .infer = poly_infer, .decompose = wrapped_decompose);
TN_OP(terms, "test.terms/1", (x), .attrs = TN_ATTR_TABLE(poly_attrs, poly_fields),
      .infer = poly_infer, .decompose = by_terms);

static void open_runtime(const char *const *variables)
{
    static const tn_primitive *const all[] = {&poly, &wrapped, &terms};
    runtime = open_with(variables);
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        must(NULL, prim_register(runtime, NULL, all[i]));
}

static void open_plainly(void)
{
    open_runtime((const char *const[]){"TENON_BACKEND=cpu-blas", NULL});
}

static void close_runtime(void)
{
    must(NULL, tn_runtime_close(runtime));
}

static const float points[] = {-1, 0, 0.5F, 2};

static tn_array *xs(tn_scope *s)
{
    return tn_from_data(s, TN_F32, TN_SHAPE(4), points);
}

static void expect(tn_scope *s, tn_array *got, double (*want)(double x))
{
    float values[4];
    must(s, tn_read(s, got, values, sizeof(values)));
    for (int i = 0; i < 4; i++)
        cr_assert(fabs((double)values[i] - want((double)points[i])) < 1e-5,
                  "at %g: got %g, expected %g", (double)points[i], (double)values[i],
                  want((double)points[i]));
}

static double rising(double x)
{
    return 1 + 2 * x + 3 * x * x;
}

static double falling(double x)
{
    return 3 + 2 * x + x * x;
}

static double odd_powers(double x)
{
    return x + 2 * x * x * x + 3 * pow(x, 5);
}

static double slope(double x)
{
    return 2 + 6 * x;
}

TestSuite(attributes, .init = open_plainly, .fini = close_runtime);

#define COEFFICIENTS "coefficients", TN_FLOATS(1, 2, 3)

Test(attributes, texts_and_lists_reach_references_and_decompositions)
{
    static const char *const names[] = {"test.poly", "test.wrapped"};
    for (int i = 0; i < 2; i++) {
        tn_scope *s = tn_scope_open(runtime);
        const char *name = names[i];
        expect(s, tn_op(s, name, TN_IN(xs(s)), tn_attrs(COEFFICIENTS)), rising);
        expect(s, tn_op(s, name, TN_IN(xs(s)), tn_attrs("coefficients", "[1, 2, 3]")),
               rising);
        expect(s, tn_op(s, name, TN_IN(xs(s)), tn_attrs(COEFFICIENTS, "order", "falling")),
               falling);
        expect(s,
               tn_op(s, name, TN_IN(xs(s)),
                     tn_attrs(COEFFICIENTS, "powers", TN_INT_LIST(1, 3, 5))),
               odd_powers);
        tn_scope_close(s);
    }
}

// The values that are equal are one plan, however they were given; others are another.
Test(attributes, plans_follow_from_the_content)
{
    char order[] = "falling";
    const double values[] = {1, 2, 3};
    const tn_float_list list = {3, values};
    for (int round = 0; round < 3; round++) {
        uint64_t before = stats_of(runtime).plans_made;
        tn_scope *s = tn_scope_open(runtime);
        expect(s, tn_op(s, "test.poly", TN_IN(xs(s)), tn_attrs(COEFFICIENTS)), rising);
        expect(s, tn_op(s, "test.poly", TN_IN(xs(s)), tn_attrs("coefficients", &list)),
               rising);
        cr_assert(eq(u64, stats_of(runtime).plans_made - before, round == 0));
        expect(s,
               tn_op(s, "test.poly", TN_IN(xs(s)),
                     tn_attrs("coefficients", &list, "order", order)),
               falling);
        cr_assert(eq(u64, stats_of(runtime).plans_made - before, round ? 0 : 2));
        tn_scope_close(s);
    }
}

static uint32_t steps_of(tn_scope *s, tn_array *a, tn_array *b)
{
    struct task task = {0};
    struct plan *plan = NULL;
    must(s, task_create(s, (tn_array *[]){a, b}, 2, NULL, 0, &task));
    must(s, plan_create(runtime, &task, NULL, &plan));
    uint32_t steps = plan->num_steps;
    plan_release(plan);
    task_finish(&task);
    return steps;
}

Test(attributes, equal_applications_are_one_step)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = xs(s);
    tn_array *a =
        tn_op(s, "test.poly", TN_IN(x), tn_attrs(COEFFICIENTS, "order", "rising"));
    tn_array *b =
        tn_op(s, "test.poly", TN_IN(x), tn_attrs(COEFFICIENTS, "order", "rising"));
    tn_array *c =
        tn_op(s, "test.poly", TN_IN(x), tn_attrs(COEFFICIENTS, "order", "risinG"));
    cr_assert(eq(uint, steps_of(s, a, b), 1));
    cr_assert(eq(uint, steps_of(s, a, c), 2));
    tn_scope_close(s);
}

// --- who keeps them alive ---------------------------------------------------------------

static tn_status traced(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                        tn_array **outputs, uint64_t num_outputs, void *user)
{
    char order[] = "falling"; // gone when the body returns
    const double values[] = {1, 2, 3};
    const tn_float_list list = {3, values};
    (void)num_inputs, (void)num_outputs;
    ++*(int *)user;
    outputs[0] = tn_op(s, "test.wrapped", TN_IN(inputs[0]),
                       tn_attrs("coefficients", &list, "order", order));
    return tn_scope_status(s);
}

Test(attributes, a_function_keeps_its_texts_and_lists)
{
    tn_function *function;
    int calls = 0;
    must(NULL, tn_function_create(runtime, traced, &calls, NULL, &function));
    for (int i = 0; i < 100; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = xs(s), *y = NULL;
        must(s, tn_function_call(function, s, &x, 1, &y, 1));
        expect(s, y, falling);
        tn_scope_close(s);
    }
    cr_assert(eq(int, calls, 1));
    cr_assert(eq(uint, intern_set_count(runtime->interned), 2));
    tn_function_destroy(function);
    cr_assert(eq(uint, intern_set_count(runtime->interned), 0));
}

// Many lists, each used once: memory is bounded by the cache of plans.
Test(attributes, lists_go_with_the_plans_that_use_them)
{
    for (int i = 0; i < 3 * MAX_PLANS; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = xs(s);
        must(s, tn_eval(s, tn_op(s, "test.poly", TN_IN(x),
                                 tn_attrs("coefficients", TN_FLOATS(i, 1)))));
        tn_scope_close(s);
        cr_assert(le(uint, intern_set_count(runtime->interned), MAX_PLANS + 1));
    }
}

// --- transforms and checks --------------------------------------------------------------

Test(attributes, derivatives_and_batching_pass_them_on)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = xs(s), *y = tn_op(s, "test.terms", TN_IN(x), tn_attrs(COEFFICIENTS));
    tn_array *one = tn_expr(s, "x -> 1 + 0 * x", TN_IN(x), TN_NO_ATTRS), *gradient = NULL,
             *slice, *batch = NULL;
    must(s, tn_vjp(s, &y, &one, 1, &x, 1, &gradient));
    expect(s, gradient, slope);
    slice = tn_from_data(s, TN_F32, TN_SCALAR, points);
    y = tn_op(s, "test.terms", TN_IN(slice), tn_attrs(COEFFICIENTS));
    must(s, tn_vmap(s, &y, (const int32_t[]){0}, 1, &slice, &x, (const int32_t[]){0}, 1,
                    &batch));
    expect(s, batch, rising);
    tn_scope_close(s);
}

Test(attributes, checked_runs_see_them)
{
    close_runtime();
    open_runtime((const char *const[]){"TENON_BACKEND=cpu-blas", "TENON_CHECK=1", NULL});
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = xs(s);
    expect(s,
           tn_op(s, "test.wrapped", TN_IN(x), tn_attrs(COEFFICIENTS, "order", "falling")),
           falling);
    expect(s, tn_op(s, "test.terms", TN_IN(x), tn_attrs(COEFFICIENTS)), rising);
    tn_scope_close(s);
}

Test(attributes, what_is_wrong_is_said_once_and_nothing_stays)
{
    tn_scope *s = tn_scope_open(runtime);
    const struct {
        tn_attr_list given;
        const char *says;
    } cases[] = {
        {TN_NO_ATTRS, "test.poly/1: attribute 'coefficients' is missing"},
        {tn_attrs("coefficients", "[1, two]"),
         "got '[1, two]', expected a list of numbers"},
        {tn_attrs(COEFFICIENTS, "order", "\xff"), "byte 0 of the text is 0xff"},
        {tn_attrs(COEFFICIENTS, "powers", TN_INT_LIST(1)), "1 powers, 3 coefficients"},
        {tn_attrs(COEFFICIENTS, "order", 3), "'order': got 3, expected a text"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cr_assert(eq(ptr, tn_op(s, "test.poly", TN_IN(xs(s)), cases[i].given), NULL));
        check_says(tn_scope_error(s), cases[i].says);
        tn_scope_clear_error(s);
    }
    tn_array *y = tn_expr(s, "x -> k * x", TN_IN(xs(s)), tn_attrs("k", TN_FLOATS(1)));
    cr_assert(eq(ptr, y, NULL));
    check_says(tn_scope_error(s), "attribute k: got a list, expected a number");
    tn_scope_close(s);
    cr_assert(eq(uint, intern_set_count(runtime->interned), 0));
}
