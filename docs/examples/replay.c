// SPDX-License-Identifier: MIT
// A function: its graph is built once, then replayed with no work a node. State goes in and
// comes out; what goes in is donated, so that its memory is used again.
//
// Prints:
//   after 1000 steps: 0.367695
//   traced 1 time
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>

#define STEPS 1000

// x' = x - dt * x, with dt = 1 / STEPS: after all steps close to exp(-1).
static tn_status decay(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                       tn_array **outputs, uint64_t num_outputs, void *user)
{
    int *times_traced = user;
    (void)num_inputs, (void)num_outputs;
    tn_array *change = tn_multiply(trace, tn_float(trace, 1.0 / STEPS), inputs[0]);
    outputs[0] = tn_subtract(trace, inputs[0], change);
    ++*times_traced;
    return tn_scope_status(trace);
}

static tn_status run(tn_function *function, tn_scope *s)
{
    tn_array *x = tn_f64(s, 1), *next;
    for (int i = 0; i < STEPS; i++) {
        if (tn_function_call(function, s, &x, 1, &next, 1))
            return tn_scope_status(s);
        x = next; // the old one is empty: it was donated
    }
    printf("after %d steps: %.6f\n", STEPS, tn_item(s, x));
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
    const tn_function_options options = {
        .struct_size = sizeof(options), .donated = (const uint32_t[]){0}, .num_donated = 1};
    tn_status status =
        tn_function_create(runtime, decay, &times_traced, &options, &function);
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
