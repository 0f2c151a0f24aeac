// SPDX-License-Identifier: MIT
// Operators whose number of outputs follows from the application: base.split, and records
// that break the rules for the number.
#include "base/fail.h"
#include "plan/plan.h"
#include "primitive/prim_set.h"
#include <tenon/pack.h>
#include "../support/common.h"

#define N 7

// --- records -----------------------------------------------------------------------------

typedef struct copies_attrs {
    int64_t count;
    int64_t said; // what count_outputs gives
} copies_attrs;
static const tn_attr_field copies_fields[] = {
    TN_I64_FIELD(copies_attrs, count, 2, "number of outputs"),
    TN_I64_FIELD(copies_attrs, said, -1, "number that is told; -1: count"),
};

static tn_status count(const tn_infer *infer, uint64_t *out_count)
{
    const copies_attrs *a = infer->attrs;
    if (infer->num_outputs)
        return fail(TN_ERR_INTERNAL, "num_outputs is %u before it is known",
                    infer->num_outputs);
    if (a->count < 0)
        return fail(TN_ERR_ARGUMENT, "got %d copies", (int)a->count);
    *out_count = (uint64_t)(a->said >= 0 ? a->said : a->count);
    return TN_OK;
}

static tn_status infer_copies(const tn_infer *infer, tn_type *types)
{
    for (uint32_t i = 0; i < infer->num_outputs; i++)
        types[i] = infer->types[0];
    return TN_OK;
}

// Output i is i times x.
static tn_status copies_reference(const tn_cpu_call *call)
{
    const float *x = (const float *)call->inputs[0].data + call->inputs[0].layout.offset;
    for (uint32_t o = 0; o < call->num_outputs; o++) {
        float *out = (float *)call->outputs[o].data + call->outputs[o].layout.offset;
        for (int i = 0; i < N; i++)
            out[i] = (float)o * x[i];
    }
    return TN_OK;
}

TN_OP(copies, "test.copies/1", (x), .attrs = TN_ATTR_TABLE(copies_attrs, copies_fields),
      .infer = infer_copies, .reference = copies_reference, .count_outputs = count);

static void open_runtime(const char *more)
{
    runtime = open_with((const char *const[]){"TENON_BACKEND=cpu-blas", more, NULL});
    must(NULL, prim_register(runtime, NULL, &copies));
}

static void open_plainly(void)
{
    open_runtime(NULL);
}

static void close_runtime(void)
{
    must(NULL, tn_runtime_close(runtime));
}

TestSuite(outputs, .init = open_plainly, .fini = close_runtime);

static tn_array *seven(tn_scope *s)
{
    static const float values[N] = {1, 2, 3, 4, 5, 6, 7};
    return tn_from_data(s, TN_F32, TN_SHAPE(N), values);
}

Test(outputs, a_reference_gives_as_many_as_were_counted)
{
    for (uint64_t n = 1; n <= TN_MAX_OUTPUTS; n += 21) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = seven(s), *out[TN_MAX_OUTPUTS];
        const int64_t wanted = (int64_t)n;
        cr_assert(eq(
            u64, tn_op_outputs(s, "test.copies", TN_IN(x), tn_attrs("count", wanted)), n));
        must(s, tn_op_n(s, "test.copies", TN_IN(x), tn_attrs("count", wanted), out, n));
        must(s, tn_eval_n(s, out, n));
        for (uint64_t i = 0; i < n; i++)
            cr_assert(eq(dbl, tn_item(s, tn_op(s, "sum", TN_IN(out[i]), TN_NO_ATTRS)),
                         28.0 * (double)i));
        tn_scope_close(s);
    }
}

Test(outputs, of_other_operators_it_is_that_of_the_record)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = seven(s);
    cr_assert(eq(u64, tn_op_outputs(s, "exp", TN_IN(x), TN_NO_ATTRS), 1));
    cr_assert(eq(u64, tn_op_outputs(s, "nn.sgd", TN_IN(x, x, x), TN_NO_ATTRS), 2));
    cr_assert(eq(u64, tn_op_outputs(s, "no.such", TN_IN(x), TN_NO_ATTRS), 0));
    check_says(tn_scope_error(s), "no.such");
    tn_scope_close(s);
}

Test(outputs, a_wrong_number_is_refused)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = seven(s), *out[TN_MAX_OUTPUTS + 1] = {NULL};
    const struct {
        const char *name;
        tn_attr_list given;
        uint64_t asked;
        const char *says;
    } cases[] = {
        {"test.copies", tn_attrs("count", 3), 2,
         "test.copies/1: has 3 outputs, the call asks for 2"},
        {"test.copies", tn_attrs("count", 3), 0, "has 3 outputs, the call asks for 0"},
        {"test.copies", tn_attrs("count", 65), 65,
         "rule count_outputs of the application gives 65, expected 1 .. 64"},
        {"test.copies", tn_attrs("count", 0), 1, "gives 0, expected 1 .. 64"},
        {"test.copies", tn_attrs("count", -4), 1, "test.copies/1: got -4 copies"},
        {"split", tn_attrs("sections", 7), 6,
         "base.split/1: has 7 outputs, the call asks for 6"},
        {"split", TN_NO_ATTRS, 1, "got neither sections nor indices, expected one of them"},
        {"split", tn_attrs("sections", 2, "indices", TN_INT_LIST(1)), 2,
         "got both sections and indices"},
        {"split", tn_attrs("sections", 65), 65, "got 65 parts, expected 1 to 64"},
        {"split", tn_attrs("sections", -1), 1, "got -1 parts, expected 1 to 64"},
        {"split", tn_attrs("sections", 2), 2,
         "extent 7, which is no multiple of 2 sections: uneven=true allows that"},
        {"split", tn_attrs("indices", TN_INT_LIST(4, 2)), 3,
         "indices descend: part 1 would go from 4 to 2"},
        {"split", tn_attrs("sections", 7, "axis", 1), 7, "axis"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tn_status status =
            tn_op_n(s, cases[i].name, TN_IN(x), cases[i].given, out, cases[i].asked);
        cr_assert(ne(int, status, TN_OK), "case %zu", i);
        check_says(tn_scope_error(s), cases[i].says);
        tn_scope_clear_error(s);
    }
    tn_scope_close(s);
}

// --- split -------------------------------------------------------------------------------

// Parts of a 3 x 7 matrix along axis 1 that begin at begin[0 .. parts).
static void check_parts(tn_attr_list given, int parts, const int *begin)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = ramp(s, 3, N, 0, 1), *out[8];
    cr_assert(eq(u64, tn_op_outputs(s, "split", TN_IN(x), given), (uint64_t)parts));
    must(s, tn_op_n(s, "split", TN_IN(x), given, out, (uint64_t)parts));
    for (int i = 0; i < parts; i++) {
        int64_t width = begin[i + 1] - begin[i];
        const tn_type *type = tn_array_type(out[i]);
        cr_assert(eq(i64, type->extent[1], width));
        float got[3 * N];
        must(s, tn_read(s, out[i], got, (uint64_t)(3 * width) * sizeof(float)));
        for (int64_t k = 0; k < 3 * width; k++)
            cr_assert(got[k] == (float)(k / width * N + begin[i] + k % width));
    }
    tn_scope_close(s);
}

Test(outputs, split_is_numpys)
{
    check_parts(tn_attrs("sections", 1, "axis", 1), 1, (int[]){0, 7});
    check_parts(tn_attrs("sections", 7, "axis", -1), 7, (int[]){0, 1, 2, 3, 4, 5, 6, 7});
    check_parts(tn_attrs("sections", 3, "axis", 1, "uneven", 1), 3, (int[]){0, 3, 5, 7});
    check_parts(tn_attrs("sections", 5, "axis", 1, "uneven", 1), 5,
                (int[]){0, 2, 4, 5, 6, 7});
    check_parts(tn_attrs("indices", TN_INT_LIST(2, 3), "axis", 1), 3, (int[]){0, 2, 3, 7});
    check_parts(tn_attrs("indices", TN_INT_LIST(0, 2, 2, -1, 9), "axis", 1), 6,
                (int[]){0, 0, 2, 2, 6, 7, 7});
    check_parts(tn_attrs("indices", &(const tn_int_list){0}, "axis", 1), 1, (int[]){0, 7});
}

// No step copies: each part is the memory of x.
Test(outputs, parts_are_views)
{
    const tn_type type = {.dtype = TN_F32, .rank = 2, .extent = {4, 6}};
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = leaf_create(s, NODE_INPUT, &type), *out[3];
    struct task task = {0};
    struct plan *plan = NULL;
    must(s, tn_op_n(s, "split", TN_IN(x), tn_attrs("sections", 3, "axis", 1), out, 3));
    must(s, task_create(s, out, 3, &x, 1, &task));
    must(s, plan_create(runtime, &task, NULL, &plan));
    cr_assert(eq(uint, plan->num_steps, 0));
    for (int i = 0; i < 3; i++)
        cr_assert(eq(i64, plan->outputs[i].layout.offset, 2 * i));
    plan_release(plan);
    task_finish(&task);
    tn_scope_close(s);
}

static tn_status split_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                            tn_array **outputs, uint64_t num_outputs, void *user)
{
    tn_array *parts[3];
    (void)num_inputs, (void)num_outputs, (void)user;
    tn_op_n(s, "split", TN_IN(inputs[0]), tn_attrs("indices", TN_INT_LIST(1, 4)), parts, 3);
    tn_array *ends = tn_op(s, "concatenate", TN_IN(parts[2], parts[0]), TN_NO_ATTRS);
    outputs[0] = tn_op(s, "multiply", TN_IN(ends, ends), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// d/dx of the squares of all but x[1 .. 4]: 2x there, 0 elsewhere.
Test(outputs, derivatives_join_the_parts)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = seven(s), *y, *gradient, *tangent, *one;
    float got[N];
    must(s, split_body(s, &x, 1, &y, 1, NULL));
    one = tn_expr(s, "x -> 1 + 0 * x", TN_IN(y), TN_NO_ATTRS);
    must(s, tn_vjp(s, &y, &one, 1, &x, 1, &gradient));
    must(s, tn_read(s, gradient, got, sizeof(got)));
    for (int i = 0; i < N; i++)
        cr_assert(got[i] == (i >= 1 && i < 4 ? 0 : 2 * (float)(i + 1)));
    must(s, tn_jvp(s, &y, 1, &x, &x, 1, &tangent));
    must(s, tn_read(s, tangent, got, 4 * sizeof(float)));
    cr_assert(got[0] == 50 && got[1] == 72 && got[2] == 98 && got[3] == 2);
    tn_scope_close(s);
}

Test(outputs, batches_split_each_slice)
{
    for (int axis = 0; axis < 2; axis++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = axis ? ramp(s, N, 2, 0, 1) : ramp(s, 2, N, 0, 1), *y = NULL;
        const int32_t axes[] = {axis};
        float got[2 * 4];
        must(s, tn_vmap_call(s, split_body, NULL, &x, axes, 1, &y, NULL, 1));
        must(s, tn_read(s, y, got, sizeof(got)));
        for (int b = 0; b < 2; b++)
            for (int i = 0; i < 4; i++) {
                int k = i < 3 ? i + 4 : 0;
                float at = (float)(axis ? k * 2 + b : b * N + k);
                cr_assert(got[b * 4 + i] == at * at);
            }
        tn_scope_close(s);
    }
}

Test(outputs, checked_runs_and_functions)
{
    close_runtime();
    open_runtime("TENON_CHECK=1");
    tn_function *function;
    must(NULL, tn_function_create(runtime, split_body, NULL, NULL, &function));
    for (int i = 0; i < 3; i++) {
        tn_scope *s = tn_scope_open(runtime);
        tn_array *x = seven(s), *y = NULL;
        float got[4];
        must(s, tn_function_call(function, s, &x, 1, &y, 1));
        must(s, tn_read(s, y, got, sizeof(got)));
        cr_assert(got[0] == 25 && got[3] == 1);
        tn_scope_close(s);
    }
    tn_function_destroy(function);
}
