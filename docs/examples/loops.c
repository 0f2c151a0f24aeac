// SPDX-License-Identifier: MIT
// Loops: the square root of each number by Newton's method, for as long as it changes; and
// a moving average as a scan, with the derivative of what it gives.
//
// Prints:
//   roots 1.4142 3.0000 after 6 steps
//   averages 1.00 1.50 2.25, last by weight 2.00
#include <stdio.h>
#include <tenon/control.h>
#include <tenon/ops/base.h>

// Carries a guess, how far the last step went, and the number of steps; uses the numbers,
// `user`, which are an array of the scope.
static tn_status is_moving(tn_scope *s, tn_array *const *in, uint64_t num_in,
                           tn_array **out, uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out, (void)user;
    out[0] = tn_greater(s, in[1], tn_float(s, 1e-6));
    return TN_OK;
}

static tn_status newton(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                        uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = tn_expr(s, "g, x -> (g + x / g) / 2", TN_IN(in[0], user), TN_NO_ATTRS);
    out[1] = tn_max(s, tn_abs(s, tn_subtract(s, out[0], in[0])), NULL, 0);
    out[2] = tn_add(s, in[2], tn_int(s, 1));
    return TN_OK;
}

static void print_roots(tn_scope *s)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(2), (float[]){2, 9}), *last[3];
    tn_while_call(s, is_moving, newton, x, -1, TN_ARRAYS(x, tn_f32(s, 1), tn_i64(s, 0)),
                  last);
    const float *roots = tn_data(s, last[0]);
    if (roots)
        printf("roots %.4f %.4f after %g steps\n", (double)roots[0], (double)roots[1],
               tn_item(s, last[2]));
}

// The carried average goes `user` of the way to each number; gives it at each position.
static tn_status average(tn_scope *s, tn_array *const *in, uint64_t num_in, tn_array **out,
                         uint64_t num_out, void *user)
{
    (void)num_in, (void)num_out;
    out[0] = out[1] =
        tn_expr(s, "a, x, w -> a + w * (x - a)", TN_IN(in[0], in[1], user), TN_NO_ATTRS);
    return TN_OK;
}

static void print_averages(tn_scope *s)
{
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(3), (float[]){1, 2, 3});
    tn_array *start = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){1});
    tn_array *weight = tn_from_data(s, TN_F32, TN_SCALAR, (float[]){0.5f});
    tn_array *out[2], *gradient = NULL;
    const tn_scan_call_options options = {.struct_size = sizeof(options), .carries = 1};
    tn_scan_call(s, average, weight, &options, TN_ARRAYS(start, x), out, 2);
    tn_vjp(s, out, NULL, 1, &weight, 1, &gradient);
    const float *at = tn_data(s, out[1]);
    if (at)
        printf("averages %.2f %.2f %.2f, last by weight %.2f\n", (double)at[0],
               (double)at[1], (double)at[2], tn_item(s, gradient));
}

int main(void)
{
    tn_runtime *runtime;
    if (tn_runtime_open(NULL, &runtime)) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_scope *s = tn_scope_open(runtime);
    print_roots(s);
    print_averages(s);
    tn_status status = tn_scope_status(s);
    if (status)
        fprintf(stderr, "%s\n", tn_scope_error(s));
    tn_scope_close(s);
    tn_runtime_close(runtime);
    return status != TN_OK;
}
