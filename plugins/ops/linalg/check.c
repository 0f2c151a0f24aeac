// SPDX-License-Identifier: MIT
// Checks of arguments that several primitives share.
#include "pack.h"

#include <stdio.h>

const tn_input_info linalg_a[1] = {{"a", "matrices", 0, LINALG_DTYPES}};
const tn_operand_rule linalg_operands[1] = {
    {LINALG_DTYPES | TN_DTYPE_BIT(TN_I32), TN_NEEDS_ANY, 0, 0}};

const char *shape_text(const tn_type *type, char buffer[SHAPE_TEXT])
{
    int at = snprintf(buffer, SHAPE_TEXT, "[");
    for (int32_t i = 0; i < type->rank; i++)
        at += snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "%s%" PRId64, i ? ", " : "",
                       type->extent[i]);
    snprintf(buffer + at, (size_t)(SHAPE_TEXT - at), "]");
    return buffer;
}

tn_status check_matrices(const tn_host *host, const char *name, const tn_type *type)
{
    char text[SHAPE_TEXT];
    if (type->rank < 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "%s has shape %s, expected a matrix: at least 2 axes", name,
                          shape_text(type, text));
    for (int32_t i = type->rank - 2; i < type->rank; i++)
        if (type->extent[i] >= INT32_MAX)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "%s has shape %s, expected fewer than %d rows and columns",
                              name, shape_text(type, text), INT32_MAX);
    return TN_OK;
}

tn_status check_square(const tn_host *host, const char *name, const tn_type *type)
{
    char text[SHAPE_TEXT];
    tn_status status = check_matrices(host, name, type);
    if (status == TN_OK && type->extent[type->rank - 2] != type->extent[type->rank - 1])
        status =
            host->fail(host, TN_ERR_ARGUMENT, "%s has shape %s, expected square matrices",
                       name, shape_text(type, text));
    return status;
}

tn_status check_batches(const tn_host *host, const tn_type *a, const tn_type *b,
                        int32_t core_b, tn_type *out)
{
    char first[SHAPE_TEXT], second[SHAPE_TEXT];
    int32_t of_a = a->rank - 2, of_b = b->rank - core_b, most = of_a > of_b ? of_a : of_b;
    tn_type type = {.dtype = a->dtype, .rank = most + core_b};
    for (int32_t i = 1; i <= most; i++) {
        int64_t x = i <= of_a ? a->extent[of_a - i] : 1;
        int64_t y = i <= of_b ? b->extent[of_b - i] : 1;
        if (x != y && x != 1 && y != 1)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "a has shape %s and b %s: the axes in front of their "
                              "matrices do not broadcast",
                              shape_text(a, first), shape_text(b, second));
        type.extent[most - i] = x == 1 ? y : x;
    }
    *out = type;
    return TN_OK;
}

tn_status check_system(const tn_host *host, const tn_type *a, const tn_type *b,
                       tn_type *out)
{
    char first[SHAPE_TEXT], second[SHAPE_TEXT];
    int32_t core = b->rank == 1 ? 1 : 2;
    int64_t m = a->extent[a->rank - 2];
    if (a->dtype != b->dtype)
        return host->fail(host, TN_ERR_ARGUMENT, "a is %s and b %s, expected one dtype",
                          tn_dtype_name(a->dtype), tn_dtype_name(b->dtype));
    if (b->rank == 0 || b->extent[b->rank - core] != m)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "a has shape %s and b %s, expected %" PRId64 " rows of b",
                          shape_text(a, first), shape_text(b, second), m);
    tn_status status = core == 2 ? check_matrices(host, "b", b) : TN_OK;
    if (status == TN_OK)
        status = check_batches(host, a, b, core, out);
    if (status == TN_OK) {
        out->extent[out->rank - core] = a->extent[a->rank - 1];
        if (core == 2)
            out->extent[out->rank - 1] = b->extent[b->rank - 1];
    }
    return status;
}
