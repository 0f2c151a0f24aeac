// SPDX-License-Identifier: MIT
// A graph: arrays from data, operators, one evaluation, and one check for all of it.
//
// Prints:
//   row sums: 7.0 14.0
//   mean of squares: 17.5
//   error: base.add/1: shapes [2, 3] and [2] do not broadcast: 3 against 2 at axis 1 ...
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>

static const float data[] = {1, 2, 4, 2, 4, 8};

static tn_status compute(tn_scope *s)
{
    float sums[2];
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2, 3), data);
    tn_array *rows = tn_sum(s, x, TN_INTS(1), 0);
    tn_array *mean = tn_mean(s, tn_square(s, x), NULL, 0);
    // Nothing has run so far. Both results come from one evaluation.
    if (tn_eval(s, rows, mean) || tn_read(s, rows, sums, sizeof(sums)))
        return tn_scope_status(s);
    printf("row sums: %.1f %.1f\n", (double)sums[0], (double)sums[1]);
    printf("mean of squares: %.1f\n", tn_item(s, mean));
    return TN_OK;
}

// What goes wrong while a graph is built stays in the scope: the first failure counts.
static void fail(tn_scope *s)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2, 3), data);
    tn_array *y = tn_from_data(s, TN_F32, TN_SHAPE(2), data);
    tn_array *sum = tn_square(s, tn_add(s, x, y));
    if (tn_eval(s, sum))
        printf("error: %s\n", tn_scope_error(s));
}

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_scope *s = tn_scope_open(runtime);
    tn_status status = compute(s);
    if (status)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    else
        fail(s);
    tn_scope_close(s); // frees every array that was made in it
    tn_runtime_close(runtime);
    return status != TN_OK;
}
