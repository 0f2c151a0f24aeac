// SPDX-License-Identifier: MIT
// Runtime attributes through the whole core, on the backend TENON_TEST_BACKEND: a schedule
// plans nothing anew, and every step gets the value that it was given.
#include <stdlib.h>
#include "base/fail.h"
#include "primitive/prim_set.h"
#include <tenon/ops/reference.h>
#include <tenon/pack.h>
#include "../support/common.h"

#define STEPS 1000
#define COUNT 5

// --- operators ---------------------------------------------------------------------------

typedef struct blend_attrs {
    double t;
    int64_t shift;
    double factor; // not a runtime attribute
} blend_attrs;
static const tn_attr_field blend_fields[] = {
    TN_RUNTIME_F64_FIELD(blend_attrs, t, 0.25, "share of y"),
    TN_RUNTIME_I64_FIELD(blend_attrs, shift, 3, "added"),
    TN_F64_FIELD(blend_attrs, factor, 1, "of the whole"),
};
#define BLEND "factor * ((1 - t) * x + t * y) + shift"

static tn_status first_type(const tn_infer *infer, tn_type *types)
{
    types[0] = infer->types[0];
    return infer->num_inputs <= 3 ? TN_OK : TN_ERR_INTERNAL;
}

// The scalars stand behind the optional input, given or not.
static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *y = &call->inputs[1], *out = &call->outputs[0];
    double t = tn_runtime_f64(call, 3), extra = call->inputs[2].data ? 100 : 0;
    int64_t shift = tn_runtime_i64(call, 4);
    double factor = ((const blend_attrs *)call->attrs)->factor;
    int64_t index[TN_MAX_RANK] = {0};
    do {
        double a = tn_get_f64(x, tn_offset_at(&x->layout, index));
        double b = tn_get_f64(y, tn_offset_at(&y->layout, index));
        tn_set_f64(out, tn_offset_at(&out->layout, index),
                   factor * ((1 - t) * a + t * b) + (double)shift + extra);
    } while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    double factor = ((const blend_attrs *)rule->attrs)->factor;
    if (rule->num_inputs != 5)
        return fail(TN_ERR_INTERNAL, "%u inputs, expected 5", rule->num_inputs);
    outputs[0] = build->op(
        build, "test.blend/1", TN_IN(rule->inputs[0], rule->inputs[1]),
        tn_attrs("t", rule->inputs[3], "shift", rule->inputs[4], "factor", factor));
    return TN_OK;
}

static const tn_input_info optional_inputs[] = {
    {"x", "an array", 0, 0},
    {"y", "an array", 0, 0},
    {"z", "adds 100", TN_INPUT_OPTIONAL, 0},
};
TN_OP(blend, "test.blend/1", (x, y), .attrs = TN_ATTR_TABLE(blend_attrs, blend_fields),
      .expr = BLEND);
static const tn_primitive by_reference = {
    .struct_size = sizeof(tn_primitive),
    .id = "test.by_reference/1",
    TN_INPUTS(optional_inputs),
    .attrs = TN_ATTR_TABLE(blend_attrs, blend_fields),
    .infer = first_type,
    .reference = reference,
};
static const tn_primitive by_parts = {
    .struct_size = sizeof(tn_primitive),
    .id = "test.by_parts/1",
    TN_INPUTS(optional_inputs),
    .attrs = TN_ATTR_TABLE(blend_attrs, blend_fields),
    .infer = first_type,
    .decompose = decompose,
};

static void open_runtime(const char *more)
{
    static const tn_primitive *const all[] = {&blend, &by_reference, &by_parts};
    char variable[96];
    const char *backend = getenv("TENON_TEST_BACKEND");
    snprintf(variable, sizeof(variable), "TENON_BACKEND=%s,cpu-blas",
             backend ? backend : "cpu-blas");
    if (!backend || strcmp(backend, "cpu-blas") == 0)
        strcpy(variable, "TENON_BACKEND=cpu-blas");
    else
        need_device(backend);
    runtime =
        open_with((const char *const[]){variable, "TENON_FALLBACK=allow", more, NULL});
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        must(NULL, prim_register(runtime, NULL, all[i]));
}

static void open_plainly(void)
{
    open_runtime(NULL);
}

static void close_runtime(void)
{
    must(NULL, tn_runtime_close(runtime));
}

TestSuite(rates, .init = open_plainly, .fini = close_runtime);

static const double xs[COUNT] = {-1, 0, 0.5, 2, 8}, ys[COUNT] = {4, 1, -3, 0.25, 1};

static tn_array *array_of(tn_scope *s, tn_dtype dtype, const double *values)
{
    tn_array *wide = tn_from_data(s, TN_F64, TN_SHAPE(COUNT), values);
    return tn_op(s, "base.astype", TN_IN(wide), tn_attrs("dtype", tn_dtype_name(dtype)));
}

static void expect(tn_scope *s, tn_array *array, const double *want, double tolerance)
{
    double got[COUNT];
    tn_array *wide = tn_op(s, "base.astype", TN_IN(array), tn_attrs("dtype", "f64"));
    must(s, tn_read(s, wide, got, sizeof(got)));
    for (int i = 0; i < COUNT; i++)
        cr_assert(fabs(got[i] - want[i]) <= tolerance * (1 + fabs(want[i])),
                  "element %d: got %.17g, expected %.17g", i, got[i], want[i]);
}

static void blended(double t, double shift, double factor, double *want)
{
    for (int i = 0; i < COUNT; i++)
        want[i] = factor * ((1 - t) * xs[i] + t * ys[i]) + shift;
}

// --- schedules ---------------------------------------------------------------------------

static double rate_of(int step)
{
    return 1e-2 * (1 + cos(step * 3.14159265358979 / STEPS)) + 1e-5;
}

// One step of Adam on the host, in f64.
static void adam(double rate, int step, double *p, double *m, double *v, const double *g)
{
    for (int i = 0; i < COUNT; i++) {
        m[i] = 0.9 * m[i] + 0.1 * g[i];
        v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
        double mean = m[i] / (1 - pow(0.9, step)), square = v[i] / (1 - pow(0.999, step));
        p[i] -= rate * mean / (sqrt(square) + 1e-8);
    }
}

Test(rates, a_schedule_of_adam_is_one_plan_and_each_step_is_right)
{
    double p[COUNT], m[COUNT] = {0}, v[COUNT] = {0}, g[COUNT];
    tn_array *kept[3];
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < COUNT; i++)
        p[i] = xs[i];
    kept[0] = tn_keep(s, array_of(s, TN_F32, p));
    kept[1] = tn_keep(s, array_of(s, TN_F32, m));
    kept[2] = tn_keep(s, array_of(s, TN_F32, v));
    tn_scope_close(s);
    uint64_t before = 0;
    for (int step = 1; step <= STEPS; step++) {
        s = tn_scope_open(runtime);
        const double rate = rate_of(step);
        for (int i = 0; i < COUNT; i++)
            g[i] = sin(step + i);
        float narrow[COUNT];
        for (int i = 0; i < COUNT; i++)
            narrow[i] = (float)g[i];
        tn_array *gradient = tn_from_data(s, TN_F32, TN_SHAPE(COUNT), narrow), *out[3];
        const float number = (float)step;
        tn_array *count = tn_from_data(s, TN_F32, TN_SCALAR, &number);
        must(s, tn_op_n(s, "nn.adam", TN_IN(kept[0], gradient, kept[1], kept[2], count),
                        tn_attrs("lr", rate), out, 3));
        must(s, tn_eval_n(s, out, 3));
        adam(rate, step, p, m, v, g);
        expect(s, out[0], p, 1e-4);
        for (int i = 0; i < 3; i++) {
            tn_array *next = tn_keep(s, out[i]);
            tn_release(kept[i]);
            kept[i] = next;
        }
        tn_scope_close(s);
        if (step == 2) // the first step's inputs lie elsewhere
            before = stats_of(runtime).plans_made;
    }
    cr_assert(eq(u64, stats_of(runtime).plans_made, before));
    for (int i = 0; i < 3; i++)
        tn_release(kept[i]);
}

Test(rates, every_meaning_gets_the_value)
{
    static const char *const names[] = {"test.blend", "test.by_reference", "test.by_parts"};
    static const tn_dtype dtypes[] = {TN_F32, TN_F64, TN_F16};
    for (size_t n = 0; n < 3; n++)
        for (size_t d = 0; d < 3; d++) {
            uint64_t before = 0;
            for (int round = 0; round < 20; round++) {
                tn_scope *s = tn_scope_open(runtime);
                double want[COUNT], t = round * 0.3 - 1, factor = 2;
                const int64_t shift = 7 - round;
                tn_array *x = tn_keep(s, array_of(s, dtypes[d], xs));
                tn_array *y = tn_keep(s, array_of(s, dtypes[d], ys));
                tn_array *out = tn_op(s, names[n], TN_IN(x, y),
                                      tn_attrs("t", t, "shift", shift, "factor", factor));
                must(s, tn_eval(s, out));
                blended(t, (double)shift, factor, want);
                if (tn_array_type(out)->dtype != dtypes[d])
                    cr_fatal("%s gives %s", names[n],
                             tn_dtype_name(tn_array_type(out)->dtype));
                expect(s, out, want, d == 2 ? 4e-3 : d == 0 ? 1e-6 : 1e-14);
                if (round == 0)
                    before = stats_of(runtime).plans_made;
                tn_release(x);
                tn_release(y);
                tn_scope_close(s);
            }
            cr_assert(eq(u64, stats_of(runtime).plans_made, before), "%s", names[n]);
        }
}

Test(rates, defaults_and_optional_inputs)
{
    tn_scope *s = tn_scope_open(runtime);
    double want[COUNT];
    tn_array *x = array_of(s, TN_F32, xs), *y = array_of(s, TN_F32, ys);
    blended(0.25, 3, 1, want);
    expect(s, tn_op(s, "test.by_reference", TN_IN(x, y), TN_NO_ATTRS), want, 1e-6);
    expect(s, tn_op(s, "test.by_reference", TN_IN(x, y, NULL), TN_NO_ATTRS), want, 1e-6);
    blended(0.25, 103, 1, want);
    expect(s, tn_op(s, "test.by_reference", TN_IN(x, y, x), TN_NO_ATTRS), want, 1e-6);
    tn_scope_close(s);
}

// Two nodes that differ in nothing but such a value are two nodes.
Test(rates, values_that_differ_are_no_common_subexpression)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = array_of(s, TN_F32, xs), *y = array_of(s, TN_F32, ys), *out[3];
    double want[COUNT];
    for (int i = 0; i < 3; i++)
        out[i] = tn_op(s, "test.blend", TN_IN(x, y), tn_attrs("t", i == 2 ? 0.5 : 0.125));
    must(s, tn_eval_n(s, out, 3));
    for (int i = 0; i < 3; i++) {
        blended(i == 2 ? 0.5 : 0.125, 3, 1, want);
        expect(s, out[i], want, 1e-6);
    }
    tn_scope_close(s);
}

// --- functions ---------------------------------------------------------------------------

struct traces {
    int count;
    double rate; // NaN: the last input is the rate
};

static tn_status step_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                           tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct traces *traces = user;
    (void)num_outputs;
    traces->count++;
    if (isnan(traces->rate))
        return tn_op_n(s, "nn.sgd", TN_IN(inputs[0], inputs[1], inputs[2]),
                       tn_attrs("lr", inputs[num_inputs - 1], "momentum", 0.5), outputs, 2);
    return tn_op_n(s, "nn.sgd", TN_IN(inputs[0], inputs[1], inputs[2]),
                   tn_attrs("lr", traces->rate, "momentum", 0.5), outputs, 2);
}

static void run_function(struct traces *traces, double given, double effective)
{
    static tn_function *function;
    if (traces->count == 0)
        must(NULL, tn_function_create(runtime, step_body, traces, NULL, &function));
    tn_scope *s = tn_scope_open(runtime);
    double want[COUNT];
    tn_array *in[4], *out[2];
    in[0] = array_of(s, TN_F32, xs);
    in[1] = array_of(s, TN_F32, ys);
    in[2] = array_of(s, TN_F32, ys);
    in[3] = tn_from_data(s, TN_F64, TN_SCALAR, &given);
    must(s, tn_function_call(function, s, in, isnan(traces->rate) ? 4 : 3, out, 2));
    for (int i = 0; i < COUNT; i++)
        want[i] = xs[i] - effective * (1.5 * ys[i]);
    expect(s, out[0], want, 1e-6);
    tn_scope_close(s);
    if (given < 0) // the last call
        tn_function_destroy(function);
}

Test(rates, a_functions_input_is_the_rate)
{
    struct traces traces = {.rate = (double)NAN};
    for (int i = 0; i < 100; i++)
        run_function(&traces, rate_of(i), rate_of(i));
    run_function(&traces, -1, -1);
    cr_assert(eq(int, traces.count, 1));
}

Test(rates, a_number_in_a_trace_is_a_constant)
{
    struct traces traces = {.rate = 0.5};
    run_function(&traces, 0, 0.5);
    traces.rate = 0.75; // nobody asks the body again
    run_function(&traces, -1, 0.5);
    cr_assert(eq(int, traces.count, 1));
}

// --- transforms and checks ---------------------------------------------------------------

Test(rates, derivatives_use_the_value)
{
    static const char *const names[] = {"test.blend", "test.by_parts"};
    for (int n = 0; n < 2; n++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = array_of(s, TN_F32, xs), *y = array_of(s, TN_F32, ys), *gradients[2];
        const double rate = 0.125;
        tn_array *t = tn_from_data(s, TN_F64, TN_SCALAR, &rate);
        tn_array *out = tn_op(s, names[n], TN_IN(x, y), tn_attrs("t", t, "factor", 3.0));
        tn_array *one = tn_expr(s, "x -> 1 + 0 * x", TN_IN(x), TN_NO_ATTRS), *tangent;
        double want[COUNT] = {2.625, 2.625, 2.625, 2.625, 2.625};
        must(s, tn_vjp(s, &out, &one, 1, (tn_array *[]){x, y}, 2, gradients));
        expect(s, gradients[0], want, 1e-6);
        must(s, tn_jvp(s, &out, 1, &x, &one, 1, &tangent));
        expect(s, tangent, want, 1e-6);
        for (int i = 0; i < COUNT; i++)
            want[i] = 0.375;
        expect(s, gradients[1], want, 1e-6);
        must(s, tn_vjp(s, &out, &one, 1, &t, 1, gradients)); // an attribute has none
        cr_assert(eq(dbl, tn_item(s, gradients[0]), 0));
        tn_scope_close(s);
    }
}

static tn_status mapped(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                        tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs;
    outputs[0] = tn_op(s, user, TN_IN(inputs[0], inputs[1]), tn_attrs("t", inputs[2]));
    return tn_scope_status(s);
}

// Slices of x and y with one rate, and one x and y with many rates.
Test(rates, batches_of_arrays_and_of_rates)
{
    static char *names[] = {"test.blend", "test.by_parts", "test.by_reference"};
    for (int n = 0; n < 3; n++) {
        tn_scope *s = tn_scope_open(runtime);
        const double one = 2, ts[COUNT] = {0, 0.25, 0.5, 1, -1};
        tn_array *in[] = {tn_from_data(s, TN_F64, TN_SCALAR, &xs[3]),
                          tn_from_data(s, TN_F64, TN_SCALAR, &ys[3]),
                          tn_from_data(s, TN_F64, TN_SHAPE(COUNT), ts)},
                 *out = NULL;
        double want[COUNT];
        for (int i = 0; i < COUNT; i++)
            want[i] = (1 - ts[i]) * xs[3] + ts[i] * ys[3] + 3;
        tn_status status = tn_vmap_call(s, mapped, names[n], in,
                                        (const int32_t[]){-1, -1, 0}, 3, &out, NULL, 1);
        if (n < 2) {
            must(s, status);
            expect(s, out, want, 1e-6);
        } else {
            cr_assert(eq(int, status, TN_ERR_UNSUPPORTED));
            check_says(tn_scope_error(s), "attribute 't' differs between slices");
        }
        tn_scope_close(s);
        if (n == 2)
            break; // its reference has no rule for batches at all
        s = tn_scope_open(runtime);
        in[0] = tn_from_data(s, TN_F64, TN_SHAPE(COUNT), xs);
        in[1] = tn_from_data(s, TN_F64, TN_SHAPE(COUNT), ys);
        in[2] = tn_from_data(s, TN_F64, TN_SCALAR, &one);
        must(s, tn_vmap_call(s, mapped, names[n], in, (const int32_t[]){0, 0, -1}, 3, &out,
                             NULL, 1));
        blended(2, 3, 1, want);
        expect(s, out, want, 1e-6);
        tn_scope_close(s);
    }
}

Test(rates, checked_runs_see_the_value)
{
    close_runtime();
    open_runtime("TENON_CHECK=1");
    static const char *const names[] = {"test.blend", "test.by_reference", "test.by_parts"};
    for (int n = 0; n < 3; n++)
        for (int d = 0; d < 2; d++) {
            tn_scope *s = tn_scope_open(runtime);
            double want[COUNT];
            tn_dtype dtype = d ? TN_F16 : TN_F32;
            tn_array *x = array_of(s, dtype, xs), *y = array_of(s, dtype, ys);
            tn_array *out =
                tn_op(s, names[n], TN_IN(x, y), tn_attrs("t", 0.75, "shift", -2));
            blended(0.75, -2, 1, want);
            expect(s, out, want, d ? 4e-3 : 1e-6);
            tn_scope_close(s);
        }
}

// --- bad input ---------------------------------------------------------------------------

Test(rates, what_is_no_rate_is_refused)
{
    tn_scope *s = tn_scope_open(runtime), *other = tn_scope_open(runtime);
    tn_array *x = array_of(s, TN_F32, xs), *y = array_of(s, TN_F32, ys);
    tn_array *half = tn_f64(s, 0.5), *yes = tn_bool(s, 1), *foreign = tn_f64(other, 1);
    tn_array *null = NULL;
    const struct {
        tn_attr_list given;
        const char *says;
    } cases[] = {
        {tn_attrs("t", x),
         "test.blend/1: attribute 't': got f32[5], expected a number or a "
         "scalar of one"},
        {tn_attrs("t", yes), "'t': got bool[], expected a number"},
        {tn_attrs("shift", half), "'shift': got f64[], expected an integer"},
        {tn_attrs("factor", half), "'factor': got an array, expected a number: it is no "
                                   "runtime attribute"},
        {tn_attrs("t", null), "'t': the array is NULL"},
        {tn_attrs("t", foreign), "belongs to another scope"},
        {tn_attrs("t", half, "t", 0.5), "'t' is given twice"},
        {tn_attrs("t", "fast"), "'t': got 'fast', expected a number"},
        {tn_attrs("shift", 0.5), "'shift': got 0.5, expected an integer"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        cr_assert(eq(ptr, tn_op(s, "test.blend", TN_IN(x, y), cases[i].given), NULL));
        check_says(tn_scope_error(s), cases[i].says);
        tn_scope_clear_error(s);
    }
    tn_scope_close(other);
    tn_scope_close(s);
}
