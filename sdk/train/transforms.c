// SPDX-License-Identifier: MIT
// Derivatives of functions: gradients, Jacobian, Hessian.
#include <string.h>
#include <stdlib.h>
#include "common.h"

// A derivative of a function by one of its inputs.
struct derivative {
    const char *name; // name of the function of <tenon/train.h>, for messages
    tn_function_body body;
    void *user;
    tn_array **inputs; // inputs with a derivative are nodes of their own
    uint64_t num_inputs, wrt;
    tn_array *value; // result of the body
};

// Builds the value of the body. NULL with the scope's failure set.
static tn_array *train_transforms_value_of(tn_scope *scope, const struct derivative *d)
{
    tn_array *value = NULL;
    tn_status status = d->body(scope, d->inputs, d->num_inputs, &value, 1, d->user);
    if (status && tn_scope_status(scope) == TN_OK)
        tn_scope_fail(scope, status, "%s: the body failed without a message", d->name);
    if (!value && tn_scope_status(scope) == TN_OK)
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "%s: the body left its output NULL", d->name);
    return tn_scope_status(scope) ? NULL : value;
}

// Copies the list of inputs, with nodes of their own for inputs first .. end - 1: an array
// that is given twice, or that the body reads beside its inputs, counts for that input
// alone. False with the scope's failure set; free `inputs` in either case.
static bool train_transforms_begin(tn_scope *scope, struct derivative *d,
                                   tn_array *const *inputs, uint64_t first, uint64_t end)
{
    d->inputs = NULL;
    if (tn_scope_status(scope))
        return false;
    if (!d->body || !inputs) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "%s: the %s NULL", d->name,
                      d->body ? "inputs are" : "body is");
        return false;
    }
    if (end > d->num_inputs || end <= first) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT,
                      "%s: a derivative by input %llu, of %llu that there are", d->name,
                      (unsigned long long)(end <= first ? first : end - 1),
                      (unsigned long long)d->num_inputs);
        return false;
    }
    d->inputs = malloc((d->num_inputs + 1) * sizeof(*d->inputs));
    if (!d->inputs) {
        tn_scope_fail(scope, TN_ERR_MEMORY, "%s: out of memory", d->name);
        return false;
    }
    memcpy(d->inputs, inputs, d->num_inputs * sizeof(*inputs));
    for (uint64_t i = first; i < end && tn_scope_status(scope) == TN_OK; i++) {
        tn_dtype dtype = inputs[i] ? tn_array_type(inputs[i])->dtype : TN_DTYPE_NONE;
        if (!tn_is_float(dtype) && !tn_is_complex(dtype))
            tn_scope_fail(scope, TN_ERR_ARGUMENT,
                          "%s: input %llu is %s, expected floats or complex numbers",
                          d->name, (unsigned long long)i,
                          dtype ? tn_dtype_name(dtype) : "NULL");
        else
            d->inputs[i] = tn_op(scope, "base.copy", TN_IN(inputs[i]), TN_NO_ATTRS);
    }
    return tn_scope_status(scope) == TN_OK;
}

tn_status tn_value_and_grad(tn_scope *scope, tn_function_body body, void *user,
                            tn_array *const *inputs, uint64_t num_inputs, uint64_t num_wrt,
                            tn_array **out_value, tn_array **gradients)
{
    struct derivative d = {
        .name = "value_and_grad", .body = body, .user = user, .num_inputs = num_inputs};
    if (train_transforms_begin(scope, &d, inputs, 0, num_wrt)) {
        tn_array *value = train_transforms_value_of(scope, &d);
        if (value &&
            tn_vjp(scope, &value, NULL, 1, d.inputs, num_wrt, gradients) == TN_OK &&
            out_value)
            *out_value = value;
    }
    free(d.inputs);
    return tn_scope_status(scope);
}

tn_array *tn_grad(tn_scope *scope, tn_function_body body, void *user,
                  tn_array *const *inputs, uint64_t num_inputs, uint64_t wrt)
{
    struct derivative d = {
        .name = "grad", .body = body, .user = user, .num_inputs = num_inputs};
    tn_array *gradient = NULL, *value = NULL;
    if (train_transforms_begin(scope, &d, inputs, wrt, wrt + 1) &&
        (value = train_transforms_value_of(scope, &d)))
        tn_vjp(scope, &value, NULL, 1, &d.inputs[wrt], 1, &gradient);
    free(d.inputs);
    return tn_scope_status(scope) ? NULL : gradient;
}

// --- all rows at once -------------------------------------------------------------------

static tn_status row_back(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                          tn_array **out, uint64_t num_out, void *user)
{
    struct derivative *d = user;
    (void)num_in, (void)num_out;
    return tn_vjp(scope, &d->value, in, 1, &d->inputs[d->wrt], 1, out);
}

static tn_status row_forward(tn_scope *scope, tn_array *const *in, uint64_t num_in,
                             tn_array **out, uint64_t num_out, void *user)
{
    struct derivative *d = user;
    tn_array *gradient = NULL, *x = d->inputs[d->wrt];
    (void)num_in, (void)num_out;
    tn_status status = tn_vjp(scope, &d->value, NULL, 1, &x, 1, &gradient);
    return status ? status : tn_jvp(scope, &gradient, 1, &x, in, 1, out);
}

// Refuses complex arrays, which have no single derivative, and ranks without room for the
// new axes.
static bool takes_rows(tn_scope *scope, const struct derivative *d, const char *what,
                       const tn_array *x, int32_t others)
{
    const tn_type *type = tn_array_type(x);
    char text[SHAPE_TEXT];
    bool is_complex = tn_is_complex(type->dtype);
    if (!is_complex && tn_is_float(type->dtype) && type->rank < TN_MAX_RANK &&
        type->rank + others <= TN_MAX_RANK)
        return true;
    tn_scope_fail(scope, TN_ERR_ARGUMENT, "%s: %s is %s%s, expected %s", d->name, what,
                  tn_dtype_name(type->dtype), train_shape_text(type, text),
                  is_complex ? "floats: take real() and imag() of what is complex"
                  : !tn_is_float(type->dtype)
                      ? "floats"
                      : "at most 8 axes of the derivative, which has those of the output "
                        "and of the input");
    return false;
}

// The basis of the arrays of x's type, along a new first axis.
static tn_array *basis_of(tn_scope *scope, const tn_array *x)
{
    const tn_type *type = tn_array_type(x);
    int64_t n = (int64_t)train_elements(type);
    tn_ints shape = {.count = (uint32_t)type->rank + 1, .given = 1, .value = {n}};
    memcpy(shape.value + 1, type->extent, sizeof(int64_t) * (size_t)type->rank);
    const tn_ints *extents = &shape;
    tn_array *eye = tn_op(scope, "base.eye/1", NULL, 0,
                          tn_attrs("n", n, "dtype", (int64_t)type->dtype));
    return tn_op(scope, "base.reshape/1", TN_IN(eye), tn_attrs("shape", extents));
}

// Applies `body` to each element of the basis of `of`; the axes of `of` replace the first
// axis of the result.
static tn_array *all_rows(tn_scope *scope, tn_function_body body, struct derivative *d,
                          const tn_array *of)
{
    const tn_type *outer = tn_array_type(of), *row = tn_array_type(d->inputs[d->wrt]);
    tn_array *directions, *rows = NULL;
    if (!takes_rows(scope, d, "the input", d->inputs[d->wrt], outer->rank) ||
        !takes_rows(scope, d, "the output", d->value, 0))
        return NULL;
    directions = basis_of(scope, of);
    if (!directions || tn_vmap_call(scope, body, d, &directions, NULL, 1, &rows, NULL, 1))
        return NULL;
    tn_ints shape = {.count = (uint32_t)(outer->rank + row->rank), .given = 1};
    memcpy(shape.value, outer->extent, sizeof(int64_t) * (size_t)outer->rank);
    memcpy(shape.value + outer->rank, row->extent, sizeof(int64_t) * (size_t)row->rank);
    const tn_ints *extents = &shape;
    return tn_op(scope, "base.reshape/1", TN_IN(rows), tn_attrs("shape", extents));
}

tn_array *tn_jacobian(tn_scope *scope, tn_function_body body, void *user,
                      tn_array *const *inputs, uint64_t num_inputs, uint64_t wrt)
{
    struct derivative d = {"jacobian", body, user, NULL, num_inputs, wrt, NULL};
    tn_array *out = NULL;
    if (train_transforms_begin(scope, &d, inputs, wrt, wrt + 1) &&
        (d.value = train_transforms_value_of(scope, &d)))
        out = all_rows(scope, row_back, &d, d.value);
    free(d.inputs);
    return out;
}

tn_array *tn_hessian(tn_scope *scope, tn_function_body body, void *user,
                     tn_array *const *inputs, uint64_t num_inputs, uint64_t wrt)
{
    struct derivative d = {"hessian", body, user, NULL, num_inputs, wrt, NULL};
    tn_array *out = NULL;
    if (train_transforms_begin(scope, &d, inputs, wrt, wrt + 1) &&
        (d.value = train_transforms_value_of(scope, &d))) {
        char text[SHAPE_TEXT];
        if (train_elements(tn_array_type(d.value)) != 1)
            tn_scope_fail(scope, TN_ERR_ARGUMENT,
                          "hessian: the body gave %s, expected one number",
                          train_shape_text(tn_array_type(d.value), text));
        else
            out = all_rows(scope, row_forward, &d, d.inputs[wrt]);
    }
    free(d.inputs);
    return out;
}
