// SPDX-License-Identifier: MIT
// A learning rate that changes from step to step, in a step of training that is traced
// once: the rate is an input of the function, and given to the optimiser as an array. As a
// number (options.lr) it would be a constant of the traced graph.
//
// Prints:
//   after 9 steps: 9.000, 18.000 of 10, 20
//   traced 1 time
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/ops/nn.h>
#include <tenon/tenon.h>

#define STEPS 9

// One step of gradient descent from p towards two elements of a table. Inputs: p, the
// momentum, the rate; outputs: the next p and momentum.
static tn_status descend(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                         tn_array **outputs, uint64_t num_outputs, void *user)
{
    const float table[] = {10, 0, 0, 20};
    const int64_t diagonal[] = {0, 1};
    int *times_traced = user;
    (void)num_inputs, (void)num_outputs;
    tn_array *values = tn_from_data(trace, TN_F32, TN_SHAPE(2, 2), table);
    tn_array *index = tn_from_data(trace, TN_I64, TN_SHAPE(2), diagonal);
    const tn_array *rows_and_columns[] = {index, index};
    tn_array *target = tn_gather(trace, values, rows_and_columns, 2, NULL);
    tn_sgd_options options = tn_sgd_defaults();
    options.lr_array = inputs[2];
    ++*times_traced;
    return tn_sgd(trace, inputs[0], tn_subtract(trace, inputs[0], target), inputs[1],
                  &options, &outputs[0], &outputs[1]);
}

static tn_status run(tn_function *function, tn_scope *s)
{
    const float zeros[2] = {0};
    float p[2];
    tn_array *state[2] = {tn_from_data(s, TN_F32, TN_SHAPE(2), zeros),
                          tn_from_data(s, TN_F32, TN_SHAPE(2), zeros)};
    for (int i = 0; i < STEPS; i++) { // what is left to go: 1/2, 1/3, ... 1/10
        tn_array *inputs[] = {state[0], state[1], tn_f32(s, 1.0 / (2 + i))};
        if (tn_function_call(function, s, inputs, 3, state, 2))
            return tn_scope_status(s);
    }
    if (tn_read(s, state[0], p, sizeof(p)) == TN_OK)
        printf("after %d steps: %.3f, %.3f of 10, 20\n", STEPS, (double)p[0], (double)p[1]);
    return tn_scope_status(s);
}

int main(void)
{
    tn_runtime *runtime;
    tn_function *function;
    int times_traced = 0;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_status status = tn_function_create(runtime, descend, &times_traced, NULL, &function);
    if (status == TN_OK) {
        tn_scope *s = tn_scope_open(runtime);
        status = run(function, s);
        if (status)
            fprintf(stderr, "%s\n", tn_scope_error(s));
        tn_scope_close(s);
        tn_function_destroy(function);
    } else {
        fprintf(stderr, "%s\n", tn_last_error());
    }
    printf("traced %d time%s\n", times_traced, times_traced == 1 ? "" : "s");
    tn_runtime_close(runtime);
    return status != TN_OK;
}
