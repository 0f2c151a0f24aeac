// SPDX-License-Identifier: MIT
// Derivatives of functions: gradients, Jacobian, Hessian.
#include <string.h>
#include <stdlib.h>
#include "internal.h"

tn_status tn_value_and_grad(tn_scope *scope, tn_function_body body, void *user,
                            tn_array *const *inputs, uint64_t num_inputs, uint64_t num_wrt,
                            tn_array **out_value, tn_array **gradients)
{
    tn_array *value = NULL;
    if (num_wrt > num_inputs)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "derivatives by %llu inputs, of %llu that there are",
                             (unsigned long long)num_wrt, (unsigned long long)num_inputs);
    tn_status status = tn_scope_status(scope);
    if (status == TN_OK)
        status = body(scope, inputs, num_inputs, &value, 1, user);
    if (status == TN_OK)
        status = tn_vjp(scope, &value, NULL, 1, inputs, num_wrt, gradients);
    if (status == TN_OK && out_value)
        *out_value = value;
    return status ? status : tn_scope_status(scope);
}

tn_array *tn_grad(tn_scope *scope, tn_function_body body, void *user,
                  tn_array *const *inputs, uint64_t num_inputs)
{
    tn_array *gradient = NULL;
    return tn_value_and_grad(scope, body, user, inputs, num_inputs, 1, NULL, &gradient)
               ? NULL
               : gradient;
}

// --- all rows at once -------------------------------------------------------------------

// A derivative along one direction, for each of which a row of the result is made.
struct derivative_rows {
    tn_function_body body;
    void *user;
    tn_array *const *inputs;
    uint64_t num_inputs;
    tn_array *value; // of the body; NULL: its gradient's tangents are the rows
};

static tn_status row_back(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                          tn_array **out, uint64_t num_out, void *user)
{
    struct derivative_rows *r = user;
    (void)num_in, (void)num_out;
    tn_array *value = r->value;
    return tn_vjp(scope, &value, in, 1, r->inputs, 1, out);
}

static tn_status row_forward(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    struct derivative_rows *r = user;
    (void)num_in, (void)num_out;
    tn_array *gradient = tn_grad(scope, r->body, r->user, r->inputs, r->num_inputs);
    return gradient ? tn_jvp(scope, &gradient, 1, r->inputs, in, 1, out)
                    : tn_scope_status(scope);
}

// The basis of arrays like x, along a first axis.
static tn_array *basis_of(tn_scope *scope, const tn_array *x)
{
    const tn_type *type = tn_array_type(x);
    if (type->rank >= TN_MAX_RANK) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "rank %d, expected at most %d", type->rank,
                      TN_MAX_RANK - 1);
        return NULL;
    }
    int64_t n = (int64_t)train_elements(type);
    tn_ints shape = {.count = (uint32_t)type->rank + 1, .given = 1, .value = {n}};
    memcpy(shape.value + 1, type->extent, sizeof(int64_t) * (size_t)type->rank);
    const tn_ints *extents = &shape;
    tn_array *eye = tn_op(scope, "base.eye/1", NULL, 0,
                          tn_attrs("n", n, "dtype", (int64_t)type->dtype));
    return tn_op(scope, "base.reshape/1", TN_IN(eye), tn_attrs("shape", extents));
}

// Rows of `body` for each of the basis of `of`, with the axes of `of` in place of the
// first.
static tn_array *all_rows(tn_scope *scope, tn_function_body body, struct derivative_rows *r,
                          const tn_array *of)
{
    tn_array *directions = basis_of(scope, of), *rows = NULL;
    if (!directions || tn_vmap_call(scope, body, r, &directions, NULL, 1, &rows, NULL, 1))
        return NULL;
    const tn_type *outer = tn_array_type(of), *row = tn_array_type(r->inputs[0]);
    tn_ints shape = {.count = (uint32_t)(outer->rank + row->rank), .given = 1};
    if (shape.count > TN_MAX_RANK) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT,
                      "the derivative has rank %u, expected at most %d", shape.count,
                      TN_MAX_RANK);
        return NULL;
    }
    memcpy(shape.value, outer->extent, sizeof(int64_t) * (size_t)outer->rank);
    memcpy(shape.value + outer->rank, row->extent, sizeof(int64_t) * (size_t)row->rank);
    const tn_ints *extents = &shape;
    return tn_op(scope, "base.reshape/1", TN_IN(rows), tn_attrs("shape", extents));
}

tn_array *tn_jacobian(tn_scope *scope, tn_function_body body, void *user,
                      tn_array *const *inputs, uint64_t num_inputs)
{
    struct derivative_rows r = {
        .body = body, .user = user, .inputs = inputs, .num_inputs = num_inputs};
    if (tn_scope_status(scope) || num_inputs < 1 ||
        body(scope, inputs, num_inputs, &r.value, 1, user) || !r.value)
        return NULL;
    return all_rows(scope, row_back, &r, r.value);
}

tn_array *tn_hessian(tn_scope *scope, tn_function_body body, void *user,
                     tn_array *const *inputs, uint64_t num_inputs)
{
    struct derivative_rows r = {
        .body = body, .user = user, .inputs = inputs, .num_inputs = num_inputs};
    if (tn_scope_status(scope) || num_inputs < 1)
        return NULL;
    return all_rows(scope, row_forward, &r, inputs[0]);
}
