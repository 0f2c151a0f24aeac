// SPDX-License-Identifier: MIT
// quant.quantized_matmul: x times the transposed matrix w, of blocks or of floats.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"x", "rows along the last axis, of k elements", 0, TN_FLOAT_DTYPES},
    {"w", "n rows of k elements: of blocks, or of floats", TN_INPUT_CONSTANT,
     TN_DTYPE_BIT(TN_U8) | TN_FLOAT_DTYPES},
};
static const tn_attr_field fields[] = {
    TN_STRING_FIELD(tn_quant_matmul_attrs, format,
                    "name of the format of w; not given: floats"),
    TN_BOOL_FIELD(tn_quant_matmul_attrs, exact, 0, "whether x is never rounded to 8 bits"),
};

tn_status product_type(const tn_host *host, const char *format_name, const tn_type *x,
                       const tn_type *w, tn_type *out)
{
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    bool is_floats = w->dtype != TN_U8;
    struct format format;
    int64_t k = w->rank == 2 ? w->extent[1] : 0;
    if (is_floats && is_blocks(format_name))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w is %s with the format '%s', expected u8 with one, or floats "
                          "without",
                          tn_dtype_name(w->dtype), format_name);
    tn_status status =
        is_floats ? TN_OK : find_format(host, format_name ? format_name : "", &format);
    if (status == TN_OK && w->rank != 2)
        return host->fail(host, TN_ERR_ARGUMENT, "w has shape %s, expected [n, %s]",
                          shape_text(w, text), is_floats ? "k" : "row bytes");
    if (status == TN_OK && !is_floats)
        status = check_weights(host, format_name, &format, w, &k);
    if (status)
        return status;
    if (x->rank < 1 || x->extent[x->rank - 1] != k)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s and w %s of %s, expected %" PRId64
                          " elements along the last axis of x",
                          shape_text(x, text), shape_text(w, other),
                          is_floats ? tn_dtype_name(w->dtype) : format_name, k);
    *out = *x;
    out->extent[x->rank - 1] = w->extent[0];
    return TN_OK;
}

static tn_status matmul_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_matmul_attrs *attrs = infer->attrs;
    return product_type(infer->host, attrs->format, &infer->types[0], &infer->types[1],
                        &types[0]);
}

// Scratch for a row of w, and for its floats.
static uint64_t matmul_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0];
    return tn_saturated_multiply((uint64_t)x->extent[x->rank - 1],
                                 sizeof(double) + sizeof(float));
}

static tn_status matmul_reference(const tn_cpu_call *call)
{
    const tn_quant_matmul_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int32_t last = out->layout.rank - 1;
    const tn_tensor *w = &call->inputs[1];
    int64_t start[TN_MAX_RANK] = {0}, extent[TN_MAX_RANK], k = x->layout.extent[last];
    bool has_blocks = is_blocks(attrs->format);
    double *values = call->scratch;
    struct format format;
    tn_status status = has_blocks ? find_format(call->host, attrs->format, &format) : TN_OK;
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    struct rows rows;
    status = has_blocks ? rows_open(call->host, &format, w, k, &rows) : TN_OK;
    if (status != TN_OK)
        return status;
    memcpy(extent, out->layout.extent, sizeof(extent));
    extent[last] = 1;
    for (int64_t row = 0; row < w->layout.extent[0]; row++) {
        int64_t index[TN_MAX_RANK] = {0};
        row_values(w, has_blocks ? &rows : NULL, start, row, k, values);
        do {
            int64_t from = tn_offset_at(&x->layout, index);
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += tn_get_f64(x, from + i * x->layout.stride[last]) * values[i];
            tn_set_f64(out,
                       tn_offset_at(&out->layout, index) + row * out->layout.stride[last],
                       sum);
        } while (tn_index_next(out->layout.rank, extent, index));
    }
    if (has_blocks)
        rows_close(&rows);
    return TN_OK;
}

// --- rules ------------------------------------------------------------------------------

static tn_array *quant_matmul_product(const tn_build *build, const tn_rule *rule,
                                      const tn_array *x)
{
    const tn_quant_matmul_attrs *attrs = rule->attrs;
    return build->op(build, "quant.quantized_matmul/1", TN_IN(x, rule->inputs[1]),
                     tn_attrs("format", attrs->format, "exact", attrs->exact));
}

static tn_array *quant_matmul_weights(const tn_build *build, const tn_rule *rule,
                                      tn_array *w, tn_dtype dtype)
{
    const tn_quant_matmul_attrs *attrs = rule->attrs;
    const uint32_t floats = TN_DTYPE_BIT(TN_F16) | TN_DTYPE_BIT(TN_BF16) |
                            TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64);
    int64_t to = tn_dtype_in(dtype, floats) ? dtype : TN_F32;
    if (is_blocks(attrs->format))
        w = build->op(build, "quant.dequantize/1", TN_IN(w),
                      tn_attrs("format", attrs->format, "dtype", to));
    return cast(build, w, dtype);
}

TN_VJP(matmul_vjp)
{
    const tn_type *x = build->type(rule->inputs[0]);
    if (cotangents[0] && x)
        gradients[0] =
            build->op(build, "base.matmul/1",
                      TN_IN(cotangents[0],
                            quant_matmul_weights(build, rule, rule->inputs[1], x->dtype)),
                      TN_NO_ATTRS);
    return TN_OK;
}

TN_JVP(matmul_jvp)
{
    if (tangents[0])
        out_tangents[0] = quant_matmul_product(build, rule, tangents[0]);
    return TN_OK;
}

// Products where each slice has its own w: in floats.
static tn_array *several_weights(const tn_build *build, const tn_rule *rule,
                                 const int32_t *axes, int64_t size)
{
    tn_array *x = tn_batch_whole(build, rule->inputs[0], axes[0], size);
    tn_array *w = tn_move_axis(build, rule->inputs[1], axes[1], 0);
    const tn_type *type = build->type(x), *bytes = build->type(w);
    if (!type || !bytes)
        return NULL;
    int64_t k = type->extent[type->rank - 1], n = bytes->extent[1];
    tn_ints rows = tn_extents(build, x), matrix = {.count = 3, .given = 1};
    matrix.value[0] = size;
    matrix.value[1] = 1;
    matrix.value[2] = k;
    for (uint32_t i = 1; i + 1 < rows.count; i++)
        matrix.value[1] *= rows.value[i];
    x = build->op(build, "base.reshape/1", TN_IN(x),
                  tn_attrs("shape", (const tn_ints *)&matrix));
    w = build->op(build, "base.transpose/1",
                  TN_IN(quant_matmul_weights(build, rule, w, type->dtype)),
                  tn_attrs("axes", TN_INTS(0, 2, 1)));
    rows.value[rows.count - 1] = n;
    return build->op(build, "base.reshape/1",
                     TN_IN(build->op(build, "base.matmul/1", TN_IN(x, w), TN_NO_ATTRS)),
                     tn_attrs("shape", (const tn_ints *)&rows));
}

TN_VMAP(matmul_vmap)
{
    outputs[0] =
        axes[1] < 0 ? quant_matmul_product(build, rule,
                                           tn_move_axis(build, rule->inputs[0], axes[0], 0))
                    : several_weights(build, rule, axes, size);
    out_axes[0] = 0;
    return built(outputs[0]);
}

static const tn_pair_rule pair_rules[] = {
    {.primitive = "nn.rms_norm/1", .input = 0, .rewrite = rewrite_norm},
};
const tn_primitive quant_matmul = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.quantized_matmul/1",
    .doc = "The product of x and the transposed matrix w, of blocks or of floats.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_matmul_attrs, fields),
    .infer = matmul_infer,
    .reference = matmul_reference,
    .reference_scratch = matmul_scratch,
    .vjp = matmul_vjp,
    .jvp = matmul_jvp,
    .vmap = matmul_vmap,
    TN_PAIR_RULES(pair_rules),
};
