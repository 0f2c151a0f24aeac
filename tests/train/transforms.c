// SPDX-License-Identifier: MIT
// Derivatives of functions by their inputs, and chains that keep less.
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(transforms, .init = train_begin, .fini = train_finish);

#define BODY(name)                                                                         \
    static tn_status name(tn_scope *s, tn_array *const *in, uint64_t num_in,               \
                          tn_array **out, uint64_t num_out, void *user)
#define UNUSED (void)num_in, (void)num_out, (void)user

// --- derivatives ------------------------------------------------------------------------

// a x^3, and its sum without `user`.
BODY(cubes)
{
    (void)num_out;
    tn_array *y =
        tn_expr(s, "x, a -> a * x ** 3", TN_IN(in[0], in[num_in - 1]), TN_NO_ATTRS);
    out[0] = user ? y : tn_op(s, "base.sum", TN_IN(y), TN_NO_ATTRS);
    return tn_scope_status(s);
}

Test(transforms, derivatives_of_functions)
{
    const double x[2] = {2, 3};
    int each = 1;
    tn_scope *s = tn_scope_open(rt);
    tn_array *in[2] = {tn_from_data(s, TN_F64, TN_SHAPE(2), x), tn_f64(s, 0.5)};
    tn_array *value, *slopes[2];
    double got[4];
    tn_value_and_grad(s, cubes, NULL, in, 2, 2, &value, slopes);
    cr_assert(eq(dbl, tn_item(s, value), 17.5));
    cr_assert(eq(dbl, tn_item(s, slopes[1]), 35));
    tn_read(s, tn_grad(s, cubes, NULL, in, 2, 0), got, 16);
    cr_assert(got[0] == 6 && got[1] == 13.5, "%g %g", got[0], got[1]);
    cr_assert(eq(dbl, tn_item(s, tn_grad(s, cubes, NULL, in, 2, 1)), 35));
    tn_read(s, tn_jacobian(s, cubes, &each, in, 2, 0), got, 32);
    cr_assert(got[0] == 6 && got[1] == 0 && got[2] == 0 && got[3] == 13.5);
    tn_read(s, tn_jacobian(s, cubes, &each, in, 2, 1), got, 16);
    cr_assert(got[0] == 8 && got[1] == 27);
    tn_read(s, tn_hessian(s, cubes, NULL, in, 2, 0), got, 32);
    cr_assert(got[0] == 6 && got[1] == 0 && got[2] == 0 && got[3] == 9);
    cr_assert(eq(dbl, tn_item(s, tn_hessian(s, cubes, NULL, in, 2, 1)), 0));
    must_scope(s);
    tn_scope_close(s);
}

// The sum of x times y times what `user` points to.
BODY(triples)
{
    (void)num_in, (void)num_out;
    tn_array *y = tn_expr(s, "x, y, z -> x * y * z",
                          TN_IN(in[0], in[1], *(tn_array **)user), TN_NO_ATTRS);
    out[0] = tn_op(s, "base.sum", TN_IN(y), TN_NO_ATTRS);
    return tn_scope_status(s);
}

Test(transforms, derivatives_are_by_one_input_alone)
{
    tn_scope *s = tn_scope_open(rt);
    tn_array *x = tn_f64(s, 3), *in[2] = {x, x}, *slopes[2];
    cr_assert(eq(dbl, tn_item(s, tn_grad(s, triples, &x, in, 2, 1)), 9));
    tn_value_and_grad(s, triples, &x, in, 2, 2, NULL, slopes);
    cr_assert(eq(dbl, tn_item(s, slopes[0]), 9));
    cr_assert(eq(dbl, tn_item(s, tn_hessian(s, triples, &x, in, 2, 0)), 0));
    must_scope(s);
    tn_scope_close(s);
}

// |z|^2 is a real number of a complex one: its gradient is PyTorch's, 2 z.
BODY(norm_of)
{
    UNUSED;
    tn_array *y = tn_expr(s, "z -> real(z * conj(z))", TN_IN(in[0]), TN_NO_ATTRS);
    out[0] = tn_op(s, "base.sum", TN_IN(y), TN_NO_ATTRS);
    return tn_scope_status(s);
}

Test(transforms, gradients_of_complex_inputs_and_empty_ones)
{
    const double z[4] = {1, -2, 0.5, 3};
    int each = 1;
    tn_scope *s = tn_scope_open(rt);
    tn_array *in[2] = {tn_from_data(s, TN_COMPLEX128, TN_SHAPE(2), z), NULL};
    double got[4];
    tn_read(s, tn_grad(s, norm_of, NULL, in, 1, 0), got, 32);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(got[i], 2 * z[i]);
    in[0] = tn_from_data(s, TN_F64, TN_SHAPE(0), z);
    in[1] = tn_f64(s, 2);
    const tn_array *rows[2] = {tn_jacobian(s, cubes, &each, in, 2, 0),
                               tn_jacobian(s, cubes, &each, in, 2, 1)};
    const tn_array *second = tn_hessian(s, cubes, NULL, in, 2, 0);
    must_scope(s);
    const tn_type *type = tn_array_type(rows[0]);
    cr_assert(type->rank == 2 && !type->extent[0] && !type->extent[1]);
    cr_assert(tn_array_type(rows[1])->rank == 1 && !tn_array_type(rows[1])->extent[0]);
    cr_assert(tn_array_type(second)->rank == 2);
    cr_assert(eq(dbl, tn_item(s, tn_grad(s, cubes, NULL, in, 2, 1)), 0));
    must_scope(s);
    tn_scope_close(s);
}

BODY(nothing)
{
    UNUSED;
    out[0] = NULL;
    return in[0] && s ? TN_OK : TN_ERR_ARGUMENT;
}

BODY(same)
{
    UNUSED;
    out[0] = in[0];
    return tn_scope_status(s);
}

BODY(largest)
{
    UNUSED;
    out[0] = tn_op(s, "base.argmax", TN_IN(in[0]), TN_NO_ATTRS);
    return tn_scope_status(s);
}

enum kind { GRAD, VALUE_AND_GRAD, JACOBIAN, HESSIAN };

Test(transforms, what_has_no_derivative_is_refused)
{
    const double x[4] = {1, 2, 3, 4};
    static const struct {
        enum kind kind;
        tn_function_body body;
        const char *says;
        tn_dtype dtype; // of the input
        int rank;
        uint64_t count, wrt;
    } rows[] = {
        {GRAD, NULL, "grad: the body is NULL", TN_F64, 1, 1, 0},
        {GRAD, same, "grad: a derivative by input 0, of 0 that there are", TN_F64, 1, 0, 0},
        {GRAD, same, "grad: a derivative by input 3, of 1 that there are", TN_F64, 1, 1, 3},
        {GRAD, same, "output 0 is f64[2]: without cotangents, expected one element", TN_F64,
         1, 1, 0},
        {GRAD, same, "take real(), imag() or abs()", TN_COMPLEX128, 0, 1, 0},
        {GRAD, same, "grad: input 0 is i64, expected floats or complex numbers", TN_I64, 0,
         1, 0},
        {GRAD, nothing, "grad: the body left its output NULL", TN_F64, 0, 1, 0},
        {GRAD, largest, "output 0 is i64[], expected a float dtype", TN_F64, 1, 1, 0},
        {VALUE_AND_GRAD, same,
         "value_and_grad: a derivative by input 1, of 1 that there are", TN_F64, 0, 1, 2},
        {JACOBIAN, same, "jacobian: input 0 is bool, expected floats", TN_BOOL, 0, 1, 0},
        {JACOBIAN, same,
         "jacobian: the input is complex128[2], expected floats: take real()",
         TN_COMPLEX128, 1, 1, 0},
        {JACOBIAN, norm_of, "jacobian: the input is complex128[2], expected floats",
         TN_COMPLEX128, 1, 1, 0},
        {JACOBIAN, largest, "jacobian: the output is i64[], expected floats", TN_F64, 1, 1,
         0},
        {JACOBIAN, nothing, "jacobian: the body left its output NULL", TN_F64, 1, 1, 0},
        {JACOBIAN, same,
         "jacobian: the input is f64[1, 1, 1, 1, 2], expected at most 8 axes", TN_F64, 5, 1,
         0},
        {HESSIAN, same, "hessian: the body gave [2], expected one number", TN_F64, 1, 1, 0},
        {HESSIAN, norm_of, "hessian: the input is complex128[], expected floats",
         TN_COMPLEX128, 0, 1, 0},
        {HESSIAN, same, "hessian: a derivative by input 0, of 0 that there are", TN_F64, 0,
         0, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(rt);
        tn_shape shape = {.rank = rows[i].rank, .extent = {1, 1, 1, 1, 1}};
        if (rows[i].rank)
            shape.extent[rows[i].rank - 1] = 2;
        tn_array *in = tn_from_data(s, rows[i].dtype, &shape, x), *out = NULL;
        uint64_t count = rows[i].count, wrt = rows[i].wrt;
        if (rows[i].kind == VALUE_AND_GRAD)
            cr_assert_neq(
                tn_value_and_grad(s, rows[i].body, NULL, &in, count, wrt, NULL, &out),
                TN_OK);
        else
            out = (rows[i].kind == GRAD ? tn_grad
                   : rows[i].kind == JACOBIAN
                       ? tn_jacobian
                       : tn_hessian)(s, rows[i].body, NULL, &in, count, wrt);
        cr_assert_null(out, "row %zu", i);
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_close(s);
    }
}

// --- chains -----------------------------------------------------------------------------

enum { LINKS = 16, TALL = 2304, WIDE = 16 };

// sin(x) W, twice; W is `user`.
BODY(link_of)
{
    (void)num_in, (void)num_out;
    tn_array *x = in[0];
    for (int i = 0; i < 2; i++)
        x = tn_op(s, "base.matmul",
                  TN_IN(tn_expr(s, "x -> sin(x)", TN_IN(x), TN_NO_ATTRS), (tn_array *)user),
                  TN_NO_ATTRS);
    out[0] = x;
    return tn_scope_status(s);
}

static uint64_t arena_bytes(tn_scope *s, tn_array *const *arrays, uint64_t count)
{
    char *text = NULL;
    must(tn_explain(s, arrays, count, &text));
    uint64_t most = 0;
    for (const char *at = text; (at = strstr(at, "\"arena_bytes\": "));) {
        at += strlen("\"arena_bytes\": ");
        uint64_t bytes = strtoull(at, NULL, 10);
        most = bytes > most ? bytes : most;
    }
    tn_text_free(text);
    return most;
}

// Gradients of a chain by its weights and by x; segments 0: without a checkpoint. Gives the
// bytes that they take.
static uint64_t chain_gradients(uint64_t segments, float *out)
{
    static float data[TALL * WIDE], weights[LINKS][WIDE * WIDE];
    tn_function_body bodies[LINKS];
    tn_array *wrt[LINKS + 1], *gradients[LINKS + 1];
    tn_scope *s = tn_scope_open(rt);
    for (int i = 0; i < TALL * WIDE; i++)
        data[i] = sinf((float)i);
    for (int k = 0; k < LINKS; k++) {
        for (int i = 0; i < WIDE * WIDE; i++)
            weights[k][i] = 0.3F * cosf((float)(i * (k + 1)));
        bodies[k] = link_of;
        wrt[k] = tn_from_data(s, TN_F32, TN_SHAPE(WIDE, WIDE), weights[k]);
    }
    tn_array *x = tn_from_data(s, TN_F32, TN_SHAPE(TALL, WIDE), data), *y = x;
    wrt[LINKS] = x;
    for (int k = 0; k < LINKS && !segments; k++)
        must(link_of(s, (tn_array *[]){y}, 1, &y, 1, wrt[k]));
    if (segments)
        must(tn_checkpoint_sequential(s, bodies, (void *const *)wrt, LINKS, segments,
                                      TN_ARRAYS(x), &y));
    tn_array *loss = tn_op(s, "base.sum", TN_IN(y), TN_NO_ATTRS);
    must(tn_vjp(s, &loss, NULL, 1, wrt, LINKS + 1, gradients));
    uint64_t bytes = arena_bytes(s, gradients, LINKS + 1);
    must(tn_eval_n(s, gradients, LINKS + 1));
    for (int k = 0; k < LINKS; k++, out += WIDE * WIDE)
        must(tn_read(s, gradients[k], out, sizeof(float) * WIDE * WIDE));
    must(tn_read(s, gradients[LINKS], out, sizeof(float) * TALL * WIDE));
    tn_scope_close(s);
    return bytes;
}

Test(transforms, segments_of_a_chain_keep_less)
{
    static float want[LINKS * WIDE * WIDE + TALL * WIDE],
        got[LINKS * WIDE * WIDE + TALL * WIDE];
    uint64_t whole = chain_gradients(0, want);
    static const struct {
        uint64_t segments, percent; // of the memory without
    } rows[] = {{1, 100}, {2, 56}, {4, 36}, {5, 36}, {16, 36}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint64_t bytes = chain_gradients(rows[i].segments, got);
        cr_assert_eq(memcmp(got, want, sizeof(want)), 0, "%llu segments: other gradients",
                     (unsigned long long)rows[i].segments);
        cr_assert_leq(bytes * 100, whole * rows[i].percent,
                      "%llu segments: %llu bytes, %llu without",
                      (unsigned long long)rows[i].segments, (unsigned long long)bytes,
                      (unsigned long long)whole);
    }
}

BODY(fails)
{
    UNUSED;
    (void)in, (void)out;
    return tn_scope_fail(s, TN_ERR_ARGUMENT, "this link breaks");
}

Test(transforms, chains_that_do_not_hold)
{
    static const struct {
        tn_function_body second;
        uint64_t count, segments;
        const char *says;
    } rows[] = {
        {same, 0, 1, "checkpoint_sequential: 1 segments of 0 functions, expected 1"},
        {same, 2, 0, "checkpoint_sequential: 0 segments of 2 functions, expected 1"},
        {same, 2, 3, "checkpoint_sequential: 3 segments of 2 functions, expected 1"},
        {nothing, 2, 1, "checkpoint_sequential: function 1 left output 0 NULL"},
        {nothing, 2, 2, "function 1 left output 0 NULL"},
        {fails, 2, 2, "this link breaks"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *x = tn_f32(s, 1), *y = NULL;
        const tn_function_body bodies[2] = {same, rows[i].second};
        cr_assert_neq(tn_checkpoint_sequential(s, bodies, NULL, rows[i].count,
                                               rows[i].segments, &x, 1, &y),
                      TN_OK);
        check_says(tn_scope_error(s), rows[i].says);
        tn_scope_close(s);
    }
}

// --- layers -----------------------------------------------------------------------------

static tn_array *block(tn_net *n, tn_array *x, uint64_t number, void *user)
{
    (void)user;
    tn_net_enter(n, "block%", (int64_t)number);
    tn_array *h = tn_net_batch_norm(n, "norm", tn_net_linear(n, "in", x, 4));
    h = tn_net_dropout(n, tn_op(n->scope, "base.tanh", TN_IN(h), TN_NO_ATTRS), 0.25);
    tn_net_leave(n);
    return tn_expr(n->scope, "x, h -> x + h", TN_IN(x, h), TN_NO_ATTRS);
}

static tn_array *blocks_loss(tn_net *n, tn_array *const *batch, void *user)
{
    uint64_t segments = *(uint64_t *)user;
    tn_array *x = batch[0];
    if (segments)
        x = tn_net_segments(n, block, NULL, 6, segments, x);
    for (uint64_t i = 0; i < 6 && !segments; i++)
        x = block(n, x, i, NULL);
    return tn_net_loss(n, tn_net_linear(n, "out", x, 3), batch[1]);
}

static void train_blocks(uint64_t segments, double *losses, float *out)
{
    static const float x[4][4] = {{1, 2, 3, 4}, {0, -1, 2, 1}, {3, 1, -2, 0}, {1, 0, 1, 5}};
    static const unsigned char y[4] = {0, 2, 1, 2};
    tn_params *params;
    tn_trainer *trainer;
    must(tn_params_create(rt, 7, &params));
    must(tn_trainer_create(params, blocks_loss, &segments, NULL, &trainer));
    for (int i = 0; i < 5; i++) {
        tn_scope *s = tn_scope_open(rt);
        tn_array *loss, *batch[2] = {tn_from_data(s, TN_F32, TN_SHAPE(4, 4), x),
                                     tn_from_data(s, TN_U8, TN_SHAPE(4), y)};
        must(tn_trainer_step(trainer, s, batch, 2, &loss));
        losses[i] = tn_item(s, loss);
        tn_scope_close(s);
    }
    tn_scope *s = tn_scope_open(rt);
    for (uint64_t i = 0; i < tn_params_count(params); i++) {
        tn_array *array = tn_params_array(params, tn_params_name(params, i));
        uint64_t count = 1;
        for (int32_t k = 0; k < tn_array_type(array)->rank; k++)
            count *= (uint64_t)tn_array_type(array)->extent[k];
        must(tn_read(s, array, out, count * sizeof(float)));
        out += count;
    }
    tn_scope_close(s);
    tn_trainer_destroy(trainer);
    tn_params_destroy(params);
}

// Random numbers and running statistics, too, are those of the layers alone.
Test(transforms, segments_of_layers_train_alike)
{
    static float want[512], got[512];
    double losses[2][5];
    train_blocks(0, losses[0], want);
    for (uint64_t segments = 1; segments <= 6; segments += segments == 1 ? 2 : 3) {
        memset(got, 0, sizeof(got));
        train_blocks(segments, losses[1], got);
        for (int i = 0; i < 5; i++)
            cr_assert_eq(losses[0][i], losses[1][i], "%llu segments, step %d: %.9g, %.9g",
                         (unsigned long long)segments, i, losses[1][i], losses[0][i]);
        cr_assert_eq(memcmp(got, want, sizeof(want)), 0, "%llu segments: other parameters",
                     (unsigned long long)segments);
    }
}
