// SPDX-License-Identifier: MIT
// Types of steps, and pieces of graph that composites share.
#include "pack.h"

const tn_in_place optim_in_place[4] = {{.input = 0, .output = 0},
                                       {.input = 2, .output = 1},
                                       {.input = 3, .output = 2},
                                       {.input = 4, .output = 3}};

tn_status optim_check_float(const tn_host *host, const char *input, const tn_type *type)
{
    if (tn_dtype_in(type->dtype, TN_FLOAT_DTYPES))
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s is %s, expected a floating-point dtype",
                      input, tn_dtype_name(type->dtype));
}

static tn_status optim_check_extents(const tn_host *host, const char *input,
                                     const tn_type *type, const tn_type *p)
{
    if (type->rank != p->rank)
        return host->fail(host, TN_ERR_ARGUMENT, "%s has rank %d, expected %d as p", input,
                          type->rank, p->rank);
    for (int32_t i = 0; i < p->rank; i++)
        if (type->extent[i] != p->extent[i])
            return host->fail(host, TN_ERR_ARGUMENT,
                              "axis %d of %s has extent %lld, expected %lld as p", i, input,
                              (long long)type->extent[i], (long long)p->extent[i]);
    return TN_OK;
}

tn_status optim_infer(const tn_infer *infer, const tn_input_info *inputs, bool counts,
                      tn_type *types)
{
    const tn_type *p = &infer->types[0];
    uint32_t num_arrays = infer->num_inputs - counts;
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < infer->num_inputs && status == TN_OK; i++)
        status = optim_check_float(infer->host, inputs[i].name, &infer->types[i]);
    for (uint32_t i = 1; i < num_arrays && status == TN_OK; i++)
        status = optim_check_extents(infer->host, inputs[i].name, &infer->types[i], p);
    if (status == TN_OK && counts && infer->types[num_arrays].rank)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "step has rank %d, expected a scalar",
                                 infer->types[num_arrays].rank);
    for (uint32_t i = 1; i < num_arrays && status == TN_OK; i++)
        types[i - 1] = i == 1 ? *p : infer->types[i];
    return status;
}

// --- graph building ---------------------------------------------------------------------

tn_array *optim_cast(const tn_build *build, tn_array *x, tn_dtype dtype)
{
    const tn_type *type = x ? build->type(x) : NULL;
    if (!type || type->dtype == dtype)
        return x;
    return build->op(build, "base.astype/1", TN_IN(x), tn_attrs("dtype", (int64_t)dtype));
}

tn_array *optim_constant(const tn_build *build, tn_array *x)
{
    return build->op(build, "base.stop_gradient/1", TN_IN(x), TN_NO_ATTRS);
}

tn_array *optim_reduce(const tn_build *build, const char *op, tn_array *x, int64_t axis)
{
    if (axis == TN_ALL_AXES)
        return build->op(build, op, TN_IN(x), TN_NO_ATTRS);
    return build->op(build, op, TN_IN(x),
                     tn_attrs("axis", TN_INTS(axis), "keepdims", (int64_t)1));
}

tn_array *optim_rms(const tn_build *build, tn_array *x)
{
    tn_array *squares = build->expr(build, "x -> x * x", TN_IN(x), TN_NO_ATTRS);
    return build->expr(build, "x -> sqrt(x)",
                       TN_IN(optim_reduce(build, "base.mean/1", squares, TN_ALL_AXES)),
                       TN_NO_ATTRS);
}
