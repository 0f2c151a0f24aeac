// SPDX-License-Identifier: MIT
// quant.quantized_take: rows of a matrix of blocks, as floats: the lookup of embeddings.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"w", "n rows of blocks", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_U8)},
    {"ids", "integers: which rows", TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_quant_take_attrs, format, TN_ATTR_STRING,
                      "name of the format of w"),
};

static tn_status take_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_take_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *w = &infer->types[0], *ids = &infer->types[1];
    char text[SHAPE_TEXT];
    struct format format;
    int64_t k = 0;
    tn_status status = find_format(host, attrs->format, &format);
    if (status == TN_OK && (w->rank != 2 || w->extent[0] < 1))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w has shape %s, expected [n, row bytes] with a row at least",
                          shape_text(w, text));
    if (status == TN_OK)
        status = check_weights(host, attrs->format, &format, w, &k);
    if (status)
        return status;
    if (ids->rank == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT, "ids has rank %d, expected at most %d",
                          ids->rank, TN_MAX_RANK - 1);
    tn_type type = *ids;
    type.dtype = TN_F32;
    type.extent[type.rank++] = k;
    types[0] = type;
    return TN_OK;
}

// Scratch for a row.
static uint64_t take_scratch(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0];
    return tn_saturated_multiply((uint64_t)out->extent[out->rank - 1], sizeof(float));
}

static tn_status take_reference(const tn_cpu_call *call)
{
    const tn_quant_take_attrs *attrs = call->attrs;
    const tn_tensor *ids = &call->inputs[1], *out = &call->outputs[0];
    int32_t last = out->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0};
    float *values = call->scratch;
    struct format format;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    struct rows rows;
    status =
        rows_open(call->host, &format, &call->inputs[0], out->layout.extent[last], &rows);
    if (status != TN_OK)
        return status;
    do {
        int64_t to = tn_offset_at(&out->layout, index);
        rows_decode(&rows, row_of(ids, tn_offset_at(&ids->layout, index), rows.n), values);
        for (int64_t i = 0; i < out->layout.extent[last]; i++)
            tn_set_f64(out, to + i * out->layout.stride[last], (double)values[i]);
    } while (tn_index_next(ids->layout.rank, ids->layout.extent, index));
    rows_close(&rows);
    return TN_OK;
}

// Takes rows from a batch of w: joins the matrices, as floats.
static tn_array *take_of_several(const tn_build *build, const tn_rule *rule,
                                 const int32_t *axes, int64_t size)
{
    const tn_quant_take_attrs *attrs = rule->attrs;
    tn_array *w = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    tn_array *ids = tn_batch_whole(build, rule->inputs[1], axes[1], size);
    tn_array *values =
        build->op(build, "quant.dequantize/1", TN_IN(w), tn_attrs("format", attrs->format));
    const tn_type *type = build->type(values), *at = build->type(ids);
    if (!type || !at)
        return NULL;
    int64_t n = type->extent[1], each = 1;
    for (int32_t i = 1; i < at->rank; i++)
        each *= at->extent[i];
    values = build->op(build, "base.reshape/1", TN_IN(values),
                       tn_attrs("shape", TN_INTS(size * n, type->extent[2])));
    const char *text = at->dtype == TN_U64
                           ? "i -> i64(min(i, u64(n - 1))) + index // each * i64(n)"
                           : "i -> j = min(max(i64(i), -i64(n)), i64(n) - 1); "
                             "select(j < 0, j + i64(n), j) + index // each * i64(n)";
    ids = build->expr(build, text, TN_IN(ids), tn_attrs("n", n, "each", each));
    return build->op(build, "base.take/1", TN_IN(values, ids),
                     tn_attrs("axis", (int64_t)0));
}

TN_VMAP(take_vmap)
{
    const tn_quant_take_attrs *attrs = rule->attrs;
    out_axes[0] = 0;
    if (axes[0] >= 0)
        outputs[0] = take_of_several(build, rule, axes, size);
    else
        outputs[0] = build->op(
            build, "quant.quantized_take/1",
            TN_IN(rule->inputs[0], tn_move_axis(build, rule->inputs[1], axes[1], 0)),
            tn_attrs("format", attrs->format));
    return built(outputs[0]);
}

const tn_primitive quant_take = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.quantized_take/1",
    .doc = "Rows of the matrix that w's blocks stand for, by number.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_take_attrs, fields),
    .infer = take_infer,
    .reference = take_reference,
    .reference_scratch = take_scratch,
    .vmap = take_vmap,
};
