// SPDX-License-Identifier: MIT
// Calls what no command reaches: the jvp and vmap rules that the pack com.acme.axpby wrote
// by hand. vmap is compared with a loop over the batch. Prints what is wrong; exits 0 or 1.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

#define ALPHA 4.0
#define BETA 2.0

// The table that rules get, over a scope: the little of it that these rules use.
static tn_array *build_op(const tn_build *build, const char *primitive,
                          const tn_array *const *inputs, uint64_t num_inputs,
                          tn_attr_list attrs)
{
    return tn_op(build->scope, primitive, inputs, num_inputs, attrs);
}

static tn_array *build_expr(const tn_build *build, const char *text,
                            const tn_array *const *inputs, uint64_t num_inputs,
                            tn_attr_list attrs)
{
    return tn_expr(build->scope, text, inputs, num_inputs, attrs);
}

static const tn_type *build_type(const tn_array *array)
{
    return array ? tn_array_type(array) : NULL;
}

static tn_build build_over(tn_scope *scope)
{
    return (tn_build){.struct_size = sizeof(tn_build),
                      .scope = scope,
                      .op = build_op,
                      .expr = build_expr,
                      .type = build_type};
}

// 0, 1, 2, ... of these extents.
static tn_array *counting(tn_scope *scope, const tn_shape *shape)
{
    float data[64];
    for (int i = 0; i < 64; i++)
        data[i] = (float)i;
    return tn_from_data(scope, TN_F32, shape, data);
}

static int compare(tn_scope *scope, const char *what, tn_array *array,
                   const float *expected, uint64_t count)
{
    float got[64];
    if (tn_read(scope, array, got, count * sizeof(float))) {
        printf("%s: %s\n", what, tn_scope_error(scope));
        return 1;
    }
    for (uint64_t i = 0; i < count; i++)
        if (fabsf(got[i] - expected[i]) > 1e-5f) {
            printf("%s: element %d is %g, expected %g\n", what, (int)i, (double)got[i],
                   (double)expected[i]);
            return 1;
        }
    return 0;
}

// x: 2 x 3 with a batch of 4 as its last axis; y: 3, with the same batch as its first axis,
// or without one (batched_y 0). The result has the batch in front.
static int check_vmap(tn_runtime *runtime, const tn_primitive *primitive, int batched_y)
{
    enum { BATCH = 4, ROWS = 2, COLUMNS = 3 };
    tn_scope *scope = tn_scope_open(runtime);
    tn_build build = build_over(scope);
    tn_array *inputs[2] = {
        counting(scope, TN_SHAPE(ROWS, COLUMNS, BATCH)),
        batched_y ? counting(scope, TN_SHAPE(BATCH, COLUMNS))
                  : counting(scope, TN_SHAPE(COLUMNS)),
    };
    const double attrs[2] = {ALPHA, BETA};
    tn_rule rule = {.struct_size = sizeof(rule),
                    .attrs = attrs,
                    .inputs = inputs,
                    .num_inputs = 2,
                    .num_outputs = 1};
    int32_t axes[2] = {2, batched_y ? 0 : -1}, out_axis = -1;
    tn_array *out = NULL;
    int wrong = primitive->vmap(&build, &rule, axes, BATCH, &out, &out_axis) != TN_OK;
    if (wrong || out_axis != 0)
        wrong = printf("vmap: batch on axis %d, expected 0\n", out_axis) > 0;

    float expected[BATCH * ROWS * COLUMNS];
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < ROWS * COLUMNS; i++) {
            double x = i * BATCH + b;
            double y = batched_y ? b * COLUMNS + i % COLUMNS : i % COLUMNS;
            expected[b * ROWS * COLUMNS + i] = (float)(ALPHA * x + BETA * y);
        }
    wrong = wrong || compare(scope, batched_y ? "vmap of both" : "vmap of x", out, expected,
                             BATCH * ROWS * COLUMNS);
    tn_scope_close(scope);
    return wrong;
}

// tn_jvp through the rule, with a tangent for x alone and for both.
static int check_jvp(tn_runtime *runtime, int both)
{
    tn_scope *scope = tn_scope_open(runtime);
    tn_array *x = counting(scope, TN_SHAPE(5)), *y = counting(scope, TN_SHAPE(5));
    tn_array *out = tn_op(scope, "acme.axpby_rules", TN_IN(x, y),
                          tn_attrs("alpha", ALPHA, "beta", BETA));
    tn_array *wrt[2] = {x, y}, *tangent = NULL;
    tn_array *tangents[2] = {counting(scope, TN_SHAPE(5)), counting(scope, TN_SHAPE(5))};
    tn_jvp(scope, &out, 1, wrt, tangents, both ? 2 : 1, &tangent);
    float expected[5];
    for (int i = 0; i < 5; i++)
        expected[i] = (float)(ALPHA * i + (both ? BETA * i : 0));
    int wrong = compare(scope, both ? "jvp of both" : "jvp of x", tangent, expected, 5);
    tn_scope_close(scope);
    return wrong;
}

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime)) {
        printf("%s\n", tn_last_error());
        return 1;
    }
    const tn_primitive *primitive = tn_primitive_find(runtime, "acme.axpby_rules");
    int wrong = !primitive;
    if (!primitive)
        printf("%s\n", tn_last_error());
    wrong = wrong || check_vmap(runtime, primitive, 1) ||
            check_vmap(runtime, primitive, 0) || check_jvp(runtime, 0) ||
            check_jvp(runtime, 1);
    tn_runtime_close(runtime);
    return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
