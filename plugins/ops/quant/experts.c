// SPDX-License-Identifier: MIT
// quant.experts_matmul: products in which each row of x chooses matrices.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"x", "rows: n, 1 or m, k", 0, TN_FLOAT_DTYPES},
    {"w", "matrices of r rows of k elements: of blocks, or of floats", TN_INPUT_CONSTANT,
     TN_DTYPE_BIT(TN_U8) | TN_FLOAT_DTYPES},
    {"experts", "integers n, m: which matrices", TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
};
static const tn_attr_field fields[] = {
    TN_STRING_FIELD(tn_quant_experts_attrs, format,
                    "name of the format of w; not given: floats"),
    TN_BOOL_FIELD(tn_quant_experts_attrs, exact, 0, "whether x is never rounded to 8 bits"),
};

// Checks w. Gives the number of elements of a row.
static tn_status quant_experts_check_matrices(const tn_infer *infer, int64_t *out_k)
{
    const tn_quant_experts_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *w = &infer->types[1];
    char text[SHAPE_TEXT];
    struct format format;
    if (w->rank != 3 || w->extent[0] < 1)
        return host->fail(
            host, TN_ERR_ARGUMENT,
            "w has shape %s, expected [experts, r, %s] with an expert at least",
            shape_text(w, text), is_blocks(attrs->format) ? "row bytes" : "k");
    if (is_blocks(attrs->format) != (w->dtype == TN_U8))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w is %s with the format '%s', expected u8 with one, or floats "
                          "without",
                          tn_dtype_name(w->dtype), attrs->format ? attrs->format : "");
    *out_k = w->extent[2];
    if (!is_blocks(attrs->format))
        return TN_OK;
    tn_status status = find_format(host, attrs->format, &format);
    return status == TN_OK ? check_weights(host, attrs->format, &format, w, out_k) : status;
}

static tn_status experts_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0], *ids = &infer->types[2];
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    int64_t k = 0;
    tn_status status = quant_experts_check_matrices(infer, &k);
    if (status)
        return status;
    if (ids->rank != 2 || x->rank != 3 || x->extent[0] != ids->extent[0] ||
        (x->extent[1] != 1 && x->extent[1] != ids->extent[1]) || x->extent[2] != k)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s and experts %s, expected [n, 1 or m, %" PRId64
                          "] and [n, m]",
                          shape_text(x, text), shape_text(ids, other), k);
    types[0] = *x;
    types[0].extent[1] = ids->extent[1];
    types[0].extent[2] = infer->types[1].extent[1];
    return TN_OK;
}

// --- the definition ---------------------------------------------------------------------

// Scratch for a row of w, and for its floats.
static uint64_t experts_scratch(const tn_kernel_query *query)
{
    return tn_saturated_multiply((uint64_t)query->inputs[0].extent[2],
                                 sizeof(double) + sizeof(float));
}

static tn_status experts_reference(const tn_cpu_call *call)
{
    const tn_quant_experts_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *w = &call->inputs[1], *ids = &call->inputs[2];
    const tn_tensor *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, k = x->layout.extent[2];
    double *values = call->scratch;
    struct format format;
    tn_status status =
        is_blocks(attrs->format) ? find_format(call->host, attrs->format, &format) : TN_OK;
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    struct rows rows;
    status = is_blocks(attrs->format) ? rows_open(call->host, &format, w, k, &rows) : TN_OK;
    if (status != TN_OK)
        return status;
    do {
        int64_t at[TN_MAX_RANK] = {index[0], x->layout.extent[1] == 1 ? 0 : index[1]};
        int64_t from = tn_offset_at(&x->layout, at);
        int64_t expert =
            row_of(ids, tn_offset_at(&ids->layout, index), w->layout.extent[0]);
        double sum = 0;
        row_values(w, is_blocks(attrs->format) ? &rows : NULL,
                   (const int64_t[TN_MAX_RANK]){expert}, index[2], k, values);
        for (int64_t i = 0; i < k; i++)
            sum += tn_get_f64(x, from + i * x->layout.stride[2]) * values[i];
        tn_set_f64(out, tn_offset_at(&out->layout, index), sum);
    } while (tn_index_next(3, out->layout.extent, index));
    if (is_blocks(attrs->format))
        rows_close(&rows);
    return TN_OK;
}

// --- rules ------------------------------------------------------------------------------

static tn_array *quant_experts_product(const tn_build *build, const tn_rule *rule,
                                       tn_array *x, tn_array *w, tn_array *ids)
{
    const tn_quant_experts_attrs *attrs = rule->attrs;
    return build->op(build, "quant.experts_matmul/1", TN_IN(x, w, ids),
                     tn_attrs("format", attrs->format, "exact", attrs->exact));
}

// The product with the matrices themselves, not transposed; a row of x that several results
// share gets their sum.
TN_VJP(experts_vjp)
{
    const tn_quant_experts_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    if (!cotangents[0] || !x || !w)
        return TN_OK;
    int64_t to = x->dtype, is_shared = x->extent[1] == 1;
    tn_array *values = rule->inputs[1];
    if (is_blocks(attrs->format))
        values = build->op(build, "quant.dequantize/1", TN_IN(values),
                           tn_attrs("format", attrs->format));
    values = build->op(build, "base.transpose/1", TN_IN(cast(build, values, (tn_dtype)to)),
                       tn_attrs("axes", TN_INTS(0, 2, 1)));
    tn_array *out = build->op(build, "quant.experts_matmul/1",
                              TN_IN(cotangents[0], values, rule->inputs[2]), TN_NO_ATTRS);
    if (is_shared)
        out = build->op(build, "base.sum/1", TN_IN(out),
                        tn_attrs("axis", TN_INTS(1), "keepdims", (int64_t)1));
    gradients[0] = out;
    return built(out);
}

TN_JVP(experts_jvp)
{
    if (tangents[0])
        out_tangents[0] = quant_experts_product(build, rule, tangents[0], rule->inputs[1],
                                                rule->inputs[2]);
    return TN_OK;
}

// Merges the first two axes of the batch.
static tn_array *quant_experts_merged(const tn_build *build, tn_array *x)
{
    tn_ints shape = tn_extents(build, x);
    if (shape.count < 2)
        return x; // NULL: the error is recorded
    shape.value[0] *= shape.value[1];
    for (uint32_t i = 1; i + 1 < shape.count; i++)
        shape.value[i] = shape.value[i + 1];
    shape.count--;
    return build->op(build, "base.reshape/1", TN_IN(x),
                     tn_attrs("shape", (const tn_ints *)&shape));
}

TN_VMAP(experts_vmap)
{
    tn_array *x = tn_batch_whole(build, rule->inputs[0], axes[0], size);
    tn_array *w = rule->inputs[1];
    tn_array *ids = tn_batch_whole(build, rule->inputs[2], axes[2], size);
    const tn_type *type = build->type(rule->outputs[0]), *all = build->type(w),
                  *at = build->type(ids);
    if (!type || !all || !at)
        return TN_ERR_ARGUMENT;
    int64_t count = all->extent[axes[1] == 0], each = at->extent[1] * at->extent[2];
    if (axes[1] >= 0) { // the matrices of all slices, joined
        const char *text = at->dtype == TN_U64
                               ? "i -> i64(min(i, u64(n - 1))) + index // each * i64(n)"
                               : "i -> j = min(max(i64(i), -i64(n)), i64(n) - 1); "
                                 "select(j < 0, j + i64(n), j) + index // each * i64(n)";
        w = quant_experts_merged(build, tn_move_axis(build, w, axes[1], 0));
        ids = build->expr(build, text, TN_IN(ids), tn_attrs("n", count, "each", each));
    }
    tn_array *out = quant_experts_product(build, rule, quant_experts_merged(build, x), w,
                                          quant_experts_merged(build, ids));
    outputs[0] = build->op(build, "base.reshape/1", TN_IN(out),
                           tn_attrs("shape", TN_INTS(size, type->extent[0], type->extent[1],
                                                     type->extent[2])));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_experts = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.experts_matmul/1",
    .doc = "Products of rows of x and the transposed matrices that are chosen for each.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_experts_attrs, fields),
    .infer = experts_infer,
    .reference = experts_reference,
    .reference_scratch = experts_scratch,
    .vjp = experts_vjp,
    .jvp = experts_jvp,
    .vmap = experts_vmap,
};
