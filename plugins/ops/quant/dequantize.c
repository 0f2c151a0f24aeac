// SPDX-License-Identifier: MIT
// quant.dequantize: converts blocks to the elements that they encode.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"w", "rows of blocks along the last axis", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_U8)},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_quant_dequantize_attrs, format, TN_ATTR_STRING,
                      "name of the format of w"),
    TN_DTYPE_FIELD(tn_quant_dequantize_attrs, dtype, TN_F32, "dtype of the result"),
};

static tn_status dequantize_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_dequantize_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_dtype most = TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16) |
                          TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64);
    struct format format;
    tn_status status = find_format(host, attrs->format, &format);
    if (status)
        return status;
    if (!tn_dtype_in((tn_dtype)attrs->dtype, (uint32_t)most))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "dtype is %s, expected f16, bf16, f32 or f64",
                          tn_dtype_name((tn_dtype)attrs->dtype));
    tn_type type = infer->types[0];
    status = check_weights(host, attrs->format, &format, &infer->types[0],
                           &type.extent[type.rank > 0 ? type.rank - 1 : 0]);
    if (status)
        return status;
    type.dtype = (tn_dtype)attrs->dtype;
    types[0] = type;
    return TN_OK;
}

// Scratch for a row, copied from its first element on.
static uint64_t dequantize_scratch(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0];
    return tn_saturated_multiply((uint64_t)out->extent[out->rank - 1], sizeof(float));
}

static tn_status dequantize_reference(const tn_cpu_call *call)
{
    const tn_quant_dequantize_attrs *attrs = call->attrs;
    const tn_tensor *w = &call->inputs[0], *out = &call->outputs[0];
    int32_t last = out->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0}, k = out->layout.extent[last];
    float *values = call->scratch;
    struct format format;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    struct rows rows;
    status = rows_open(call->host, &format, w, k, &rows);
    if (status != TN_OK)
        return status;
    do {
        rows_move(&rows, index);
        int64_t to = tn_offset_at(&out->layout, index);
        for (int64_t row = 0; row < rows.n; row++) {
            rows_decode(&rows, row, values);
            int64_t at = to + (last > 0 ? row * out->layout.stride[last - 1] : 0);
            for (int64_t i = 0; i < k; i++)
                tn_set_f64(out, at + i * out->layout.stride[last], (double)values[i]);
        }
    } while (next_matrix(w->layout.rank, w->layout.extent, index));
    rows_close(&rows);
    return TN_OK;
}

TN_VMAP(dequantize_vmap)
{
    const tn_quant_dequantize_attrs *attrs = rule->attrs;
    outputs[0] =
        build->op(build, "quant.dequantize/1",
                  TN_IN(tn_move_axis(build, rule->inputs[0], axes[0], 0)),
                  tn_attrs("format", attrs->format, "dtype", (int64_t)attrs->dtype));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_dequantize = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.dequantize/1",
    .doc = "The elements that the blocks of a quantised format stand for.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_dequantize_attrs, fields),
    .infer = dequantize_infer,
    .reference = dequantize_reference,
    .reference_scratch = dequantize_scratch,
    .vmap = dequantize_vmap,
};
