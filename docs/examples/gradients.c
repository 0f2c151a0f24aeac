// SPDX-License-Identifier: MIT
// Gradients: a line is fitted to points by gradient descent. What outlives a step is kept.
//
// Prints:
//   slope 2.00, intercept -1.00, loss 0.0000
#include <stdio.h>
#include <tenon/ops/base.h>
#include <tenon/tenon.h>

#define STEPS 200
#define RATE 0.1

static const float xs[] = {-1, 0, 1, 2}, ys[] = {-3, -1, 1, 3}; // y = 2 x - 1

static tn_array *loss_of(tn_scope *s, tn_array *slope, tn_array *intercept)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(4), xs);
    tn_array *y = tn_from_data(s, TN_F32, TN_SHAPE(4), ys);
    tn_array *line = tn_add(s, tn_multiply(s, slope, x), intercept);
    return tn_mean(s, tn_square(s, tn_subtract(s, line, y)), NULL, 0);
}

// One step down: weights[i] -= RATE * d loss / d weights[i]. The scope is the step's alone.
static tn_status step(tn_runtime *runtime, tn_array *weights[2], double *out_loss)
{
    tn_scope *s = tn_scope_open(runtime);
    tn_array *gradients[2], *next[2] = {NULL, NULL};
    tn_array *loss = loss_of(s, weights[0], weights[1]);
    tn_vjp(s, &loss, NULL, 1, weights, 2, gradients);
    for (int i = 0; i < 2 && !tn_scope_status(s); i++)
        next[i] =
            tn_subtract(s, weights[i], tn_multiply(s, tn_float(s, RATE), gradients[i]));
    tn_status status = tn_eval(s, loss, next[0], next[1]);
    if (status == TN_OK)
        *out_loss = tn_item(s, loss);
    for (int i = 0; i < 2 && status == TN_OK; i++) {
        tn_array *kept = tn_keep(s, next[i]);
        status = tn_scope_status(s);
        if (kept) {
            tn_release(weights[i]);
            weights[i] = kept;
        }
    }
    if (status)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    tn_scope_close(s);
    return status;
}

static tn_status start(tn_runtime *runtime, tn_array *weights[2])
{
    tn_scope *s = tn_scope_open(runtime);
    for (int i = 0; i < 2; i++)
        weights[i] = tn_keep(s, tn_f32(s, 0));
    tn_status status = tn_scope_status(s);
    if (status)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    tn_scope_close(s);
    return status;
}

static void print(tn_runtime *runtime, tn_array *weights[2], double loss)
{
    tn_scope *s = tn_scope_open(runtime);
    printf("slope %.2f, intercept %.2f, loss %.4f\n", tn_item(s, weights[0]),
           tn_item(s, weights[1]), loss);
    tn_scope_close(s);
}

int main(void)
{
    tn_runtime *runtime;
    tn_array *weights[2] = {NULL, NULL};
    double loss = 0;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_status status = start(runtime, weights);
    for (int i = 0; i < STEPS && status == TN_OK; i++)
        status = step(runtime, weights, &loss);
    if (status == TN_OK)
        print(runtime, weights, loss);
    tn_release(weights[0]);
    tn_release(weights[1]);
    tn_runtime_close(runtime);
    return status != TN_OK;
}
