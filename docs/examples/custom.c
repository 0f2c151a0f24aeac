// SPDX-License-Identifier: MIT
// A primitive of the application's own, with its derivative: rounds to eighths within -1 to
// 1, as a network with few bits does. Its true derivative is 0 everywhere, so nothing would
// be learned; the rule passes gradients straight through, where x is within the range.
//
// Prints:
//   rounded       -1 -0.25 0.375 1
//   derived       0 0 0 0
//   by the rule   0 1 1 0
//   in one call   0 1 1 0
#include <stdio.h>
#include <tenon/control.h>

enum { N = 4 };

static tn_status round_to_eighths(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                                  tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] =
        tn_expr(s, "x -> round(8 * max(-1, min(1, x))) / 8", TN_IN(inputs[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// The gradient of x, given that of the result: built as graph, so it runs on any device.
static tn_status straight_through(tn_scope *s, const tn_rule *rule,
                                  tn_array *const *cotangents, const uint64_t *wanted,
                                  tn_array **gradients, void *user)
{
    (void)wanted, (void)user; // one input, so it is wanted
    gradients[0] = tn_expr(s, "g, x -> select(abs(x) <= 1, g, 0)",
                           TN_IN(cotangents[0], rule->inputs[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

// Forward mode and batching follow from the function itself.
static const tn_custom_rules rules = {.struct_size = sizeof(rules),
                                      .vjp = straight_through};

static tn_array *rounded(tn_scope *s, tn_array *x)
{
    tn_array *y = NULL;
    tn_custom_call(s, round_to_eighths, NULL, &rules, &x, 1, &y, 1);
    return y;
}

// The gradient of the sum of y by x.
static tn_array *gradient(tn_scope *s, tn_array *y, tn_array *x)
{
    tn_array *g = NULL, *sum = tn_op(s, "sum", TN_IN(y), TN_NO_ATTRS);
    tn_vjp(s, &sum, NULL, 1, &x, 1, &g);
    return g;
}

// What a function that is traced once and replayed calls is no different.
static tn_status traced(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                        tn_array **outputs, uint64_t num_outputs, void *user)
{
    (void)num_inputs, (void)num_outputs, (void)user;
    outputs[0] = gradient(s, rounded(s, inputs[0]), inputs[0]);
    return tn_scope_status(s);
}

static void print(tn_scope *s, const char *what, tn_array *x)
{
    float got[N];
    if (tn_read(s, x, got, sizeof(got)))
        return;
    printf("%-13s %g %g %g %g\n", what, (double)got[0], (double)got[1], (double)got[2],
           (double)got[3]);
}

int main(void)
{
    static const float data[N] = {-1.5F, -0.3F, 0.4F, 2};
    tn_runtime *runtime;
    tn_function *function = NULL;
    if (tn_runtime_open(NULL, &runtime) ||
        tn_function_create(runtime, traced, NULL, NULL, &function))
        return fprintf(stderr, "%s\n", tn_last_error()), 1;
    tn_scope *s = tn_scope_open(runtime);
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(N), data), *plain = NULL, *g = NULL;
    round_to_eighths(s, &x, 1, &plain, 1, NULL);
    print(s, "rounded", rounded(s, x));
    print(s, "derived", gradient(s, plain, x));
    print(s, "by the rule", gradient(s, rounded(s, x), x));
    tn_function_call(function, s, &x, 1, &g, 1);
    print(s, "in one call", g);
    int failed = tn_scope_status(s) != TN_OK;
    if (failed)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    tn_scope_close(s);
    tn_function_destroy(function);
    tn_runtime_close(runtime);
    return failed;
}
