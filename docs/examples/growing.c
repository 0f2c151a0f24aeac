// SPDX-License-Identifier: MIT
// A cache that grows: each call writes a row where an array says, and reads the rows that
// are there. The cache is donated to the call, so only the row is written; position and
// length are arrays, so one plan serves every length.
//
// Prints:
//   3 rows: mean 2
//   6 rows: mean 3.5
//   9 rows: mean 5
//   traced 1 time
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>

enum { CAPACITY = 1000, WIDTH = 16, ROWS = 9 };

// Inputs: the cache, a row, the number of rows with this one. Outputs: the cache, the mean.
static tn_status append(tn_scope *trace, tn_array *const *inputs, uint64_t num_inputs,
                        tn_array **outputs, uint64_t num_outputs, void *user)
{
    int *times_traced = user;
    tn_array *length = inputs[2];
    (void)num_inputs, (void)num_outputs;
    tn_array *last = tn_subtract(trace, length, tn_int(trace, 1));
    tn_array *cache = tn_dynamic_slice_update(trace, inputs[0], inputs[1], last);
    // Rows behind the length are masked: shapes do not depend on the length.
    tn_array *row =
        tn_expr(trace, "x, n -> select(index < n, x, 0)",
                TN_IN(tn_mean(trace, cache, TN_INTS(1), 0), length), TN_NO_ATTRS);
    outputs[0] = cache;
    outputs[1] = tn_divide(trace, tn_sum(trace, row, NULL, 0), length);
    ++*times_traced;
    return tn_scope_status(trace);
}

static tn_status run(tn_function *function, tn_scope *s)
{
    static const float zeros[CAPACITY * WIDTH];
    tn_array *cache = tn_from_data(s, TN_F32, TN_SHAPE(CAPACITY, WIDTH), zeros);
    for (int length = 1; length <= ROWS; length++) {
        float row[WIDTH];
        tn_array *outputs[2];
        for (int i = 0; i < WIDTH; i++)
            row[i] = (float)length;
        tn_array *inputs[] = {cache, tn_from_data(s, TN_F32, TN_SHAPE(1, WIDTH), row),
                              tn_i64(s, length)};
        if (tn_function_call(function, s, inputs, 3, outputs, 2))
            return tn_scope_status(s);
        cache = outputs[0]; // the old array is empty: its memory is this one's
        if (length % 3 == 0)
            printf("%d rows: mean %g\n", length, tn_item(s, outputs[1]));
    }
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
        tn_function_create(runtime, append, &times_traced, &options, &function);
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
