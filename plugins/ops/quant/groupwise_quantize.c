// SPDX-License-Identifier: MIT
// quant.groupwise_quantize: codes near to floats, with scales (and biases) of groups;
// quant.groupwise_dequantize: the floats that codes encode.
#include "groupwise.h"

static const tn_input_info quantize_inputs[] = {
    {"w", "floats, rows along the last axis", TN_INPUT_CONSTANT, GROUPWISE_DTYPES},
    {"global_scale",
     "the greatest magnitude of w, or of each index of its first axes, of nvfp4 alone",
     TN_INPUT_CONSTANT | TN_INPUT_OPTIONAL, TN_DTYPE_BIT(TN_F32)},
};
static const tn_output_info quantize_outputs[] = {
    {"out", "words of codes; scales; biases in mode affine", 0, 0}};
static const tn_attr_field quantize_fields[] = {
    GROUPWISE_FIELDS(tn_groupwise_quantize_attrs)};

static tn_status quantize_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_groupwise_quantize_attrs *attrs = infer->attrs;
    *out_count = attrs->mode == TN_GROUPWISE_affine ? 3 : 2;
    return TN_OK;
}

static tn_status quantize_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_type *w = &infer->types[0];
    struct groupwise format;
    char text[SHAPE_TEXT];
    int32_t last = w->rank - 1;
    tn_status status =
        GROUPWISE_FORMAT(host, (const tn_groupwise_quantize_attrs *)infer->attrs, &format);
    if (status == TN_OK)
        status = groupwise_check_factor(infer, &format, 1);
    if (status)
        return status;
    if (last < 0 || w->extent[last] % format.group)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "w has shape %s, expected rows of a multiple of %" PRId64
                          " elements, the group",
                          shape_text(w, text), format.group);
    const int64_t groups = w->extent[last] / format.group;
    types[0] = *w;
    types[0].dtype = TN_U32;
    types[0].extent[last] = groups * (format.group * format.bits / 32);
    types[1] = *w;
    types[1].extent[last] = groups;
    if (format.mode != TN_GROUPWISE_affine)
        types[1].dtype = TN_U8;
    else
        types[2] = types[1];
    return TN_OK;
}

// --- rules of quantisation --------------------------------------------------------------

// A group of codes, its scale and its bias; in modes without biases `scale` is the u8.
struct group_codes {
    uint32_t words[GROUPWISE_MAX_GROUP * 8 / 32];
    float scale, bias;
};

static uint32_t nearest_multiple(float x, float most)
{
    x = rintf(x);
    return !(x > 0) ? 0 : (uint32_t)(x < most ? x : most);
}

static void code_affine(const struct groupwise *format, const float *values,
                        struct group_codes *out)
{
    const int32_t bits = (int32_t)format->bits;
    const float most = (float)((1 << bits) - 1);
    float least = INFINITY, greatest = -INFINITY;
    for (int64_t i = 0; i < format->group; i++) {
        least = values[i] < least ? values[i] : least;
        greatest = values[i] > greatest ? values[i] : greatest;
    }
    const bool is_below = fabsf(least) > fabsf(greatest);
    float scale = (greatest - least) / most, edge = is_below ? least : greatest;
    scale = scale > 1e-7f ? scale : 1e-7f;
    scale = is_below ? scale : -scale;
    float steps = rintf(edge / scale);
    out->scale = steps != 0 ? edge / steps : scale;
    out->bias = steps != 0 ? edge : 0;
    for (int64_t i = 0; i < format->group; i++)
        tn_groupwise_put(out->words, i, bits,
                         nearest_multiple((values[i] - out->bias) / out->scale, most));
}

// The code of the least power of two that is not below x; 1 for 0.
static uint8_t least_e8m0(float x)
{
    union {
        float f;
        uint32_t u;
    } v = {.f = x};
    uint32_t number = (v.u + 0x7fffff) >> 23;
    return !(x > 0) ? 127 : (uint8_t)(number < 254 ? number : 254);
}

static uint8_t nearest_e4m3(float x)
{
    const float most = TN_GROUPWISE_E4M3_MAX;
    return tn_f8_e4m3_of_f32(!(x < most) ? most : x < -most ? -most : x);
}

// The code of the first of sixteen floats with the least distance; 0 for NaN.
static uint32_t nearest_e2m1(float x)
{
    uint32_t best = 0;
    float distance = INFINITY;
    for (uint32_t code = 0; code < 16; code++) {
        float d = fabsf(x - tn_groupwise_float(TN_GROUPWISE_nvfp4, code));
        best = d < distance ? code : best;
        distance = d < distance ? d : distance;
    }
    return best;
}

// `factor` is 2688 over the greatest magnitude of the matrix, or 1.
static void code_floats(const struct groupwise *format, const float *values, float factor,
                        struct group_codes *out)
{
    const int32_t bits = (int32_t)format->bits;
    const bool is_nv = format->mode == TN_GROUPWISE_nvfp4;
    float most = 0;
    for (int64_t i = 0; i < format->group; i++)
        most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
    most /= bits == 4 ? TN_GROUPWISE_E2M1_MAX : TN_GROUPWISE_E4M3_MAX;
    const uint8_t number = is_nv ? nearest_e4m3(most * factor) : least_e8m0(most);
    const float scale = tn_groupwise_scale(format->mode, number);
    out->scale = (float)number;
    for (int64_t i = 0; i < format->group; i++) {
        float x = values[i] / scale * factor;
        tn_groupwise_put(out->words, i, bits,
                         bits == 4 ? nearest_e2m1(x) : nearest_e4m3(x));
    }
}

// The factor by which the row at `index` is divided or, with `is_inverse`, multiplied; 1
// where `global_scale` is not given.
static float factor_of(const struct groupwise *format, const tn_tensor *global_scale,
                       const int64_t *index, bool is_inverse)
{
    if (format->mode != TN_GROUPWISE_nvfp4 || !global_scale->data ||
        global_scale->layout.dtype != TN_F32)
        return 1;
    int64_t at[TN_MAX_RANK] = {0};
    for (int32_t i = 0; i < global_scale->layout.rank; i++)
        at[i] = global_scale->layout.extent[i] == 1 ? 0 : index[i];
    float value = (float)tn_get_f64(global_scale, tn_offset_at(&global_scale->layout, at));
    return is_inverse ? value / TN_GROUPWISE_NVFP4_MAX : TN_GROUPWISE_NVFP4_MAX / value;
}

// The global scale for all slices, with the shape that types require; NULL: none.
static tn_array *slices_factor(const tn_build *build, const tn_rule *rule, uint32_t i,
                               const int32_t *axes)
{
    tn_array *global = i < rule->num_inputs ? rule->inputs[i] : NULL;
    const tn_type *type = global ? build->type(global) : NULL;
    if (!type || axes[i] >= 0)
        return tn_move_axis(build, global, type ? axes[i] : 0, 0);
    return type->rank == 0 ? global
                           : build->op(build, "base.expand_dims/1", TN_IN(global),
                                       tn_attrs("axis", TN_INTS(0)));
}

// Quantises the row of w at `index`, whose last entry is 0.
static void code_row(const tn_cpu_call *call, const struct groupwise *format,
                     const int64_t *index)
{
    const float factor = factor_of(format, &call->inputs[1], index, false);
    const tn_tensor *w = &call->inputs[0], *words = &call->outputs[0];
    const tn_tensor *scales = &call->outputs[1], *biases = &call->outputs[2];
    const bool is_affine = format->mode == TN_GROUPWISE_affine;
    const int32_t last = w->layout.rank - 1;
    int64_t from = tn_offset_at(&w->layout, index),
            to = tn_offset_at(&words->layout, index);
    int64_t at = tn_offset_at(&scales->layout, index);
    int64_t beside = is_affine ? tn_offset_at(&biases->layout, index) : 0;
    float values[GROUPWISE_MAX_GROUP];
    for (int64_t g = 0; g < scales->layout.extent[last]; g++) {
        struct group_codes coded = {.scale = 0};
        for (int64_t i = 0; i < format->group; i++, from += w->layout.stride[last])
            values[i] = (float)tn_get_f64(w, from);
        if (is_affine)
            code_affine(format, values, &coded);
        else
            code_floats(format, values, factor, &coded);
        for (int64_t i = 0; i < format->group * format->bits / 32; i++) {
            tn_set_i64(words, to, coded.words[i]);
            to += words->layout.stride[last];
        }
        if (is_affine) {
            tn_set_f64(scales, at, (double)coded.scale);
            tn_set_f64(biases, beside, (double)coded.bias);
            beside += biases->layout.stride[last];
        } else {
            tn_set_i64(scales, at, (int64_t)coded.scale);
        }
        at += scales->layout.stride[last];
    }
}

static tn_status quantize_reference(const tn_cpu_call *call)
{
    const tn_tensor *w = &call->inputs[0];
    const int32_t last = w->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0}, rows[TN_MAX_RANK];
    struct groupwise format;
    tn_status status = GROUPWISE_FORMAT(
        call->host, (const tn_groupwise_quantize_attrs *)call->attrs, &format);
    if (status || tn_layout_count(&w->layout) == 0)
        return status;
    memcpy(rows, w->layout.extent, sizeof(rows));
    rows[last] = 1;
    do {
        code_row(call, &format, index);
    } while (tn_index_next(w->layout.rank, rows, index));
    return TN_OK;
}

TN_VMAP(quantize_vmap)
{
    const tn_groupwise_quantize_attrs *attrs = rule->attrs;
    tn_array *w = tn_batch_whole(build, rule->inputs[0], axes[0], size);
    tn_array *global = slices_factor(build, rule, 1, axes);
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = 0;
    return build->op_n(
        build, "quant.groupwise_quantize/1", TN_IN(w, global),
        tn_attrs("mode", attrs->mode, "bits", attrs->bits, "group", attrs->group), outputs,
        rule->num_outputs);
}

const tn_primitive quant_groupwise_quantize = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.groupwise_quantize/1",
    .doc =
        "Codes of a few bits that are near to w, in words, with a scale (and a bias) for "
        "each group.",
    TN_INPUTS(quantize_inputs),
    .outputs = quantize_outputs,
    .output_size = sizeof(tn_output_info),
    .attrs = TN_ATTR_TABLE(tn_groupwise_quantize_attrs, quantize_fields),
    .infer = quantize_infer,
    .count_outputs = quantize_count,
    .reference = quantize_reference,
    .vmap = quantize_vmap,
};

// --- values -----------------------------------------------------------------------------

static const tn_input_info dequantize_inputs[] = {
    {"w", "rows of words along the last axis", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_U32)},
    {"scales", "of the groups of each row", 0, GROUPWISE_DTYPES | TN_DTYPE_BIT(TN_U8)},
    {"biases", "of the groups, in mode affine alone", TN_INPUT_OPTIONAL, GROUPWISE_DTYPES},
    {"global_scale", "as of quant.groupwise_quantize, of nvfp4 alone",
     TN_INPUT_CONSTANT | TN_INPUT_OPTIONAL, TN_DTYPE_BIT(TN_F32)},
};
static const tn_attr_field dequantize_fields[] = {
    GROUPWISE_FIELDS(tn_groupwise_dequantize_attrs),
    TN_DTYPE_FIELD(tn_groupwise_dequantize_attrs, dtype, TN_DTYPE_NONE,
                   "dtype of the result; none: that of scales, bf16 of u8 ones"),
};

static tn_status dequantize_infer(const tn_infer *infer, tn_type *types)
{
    const tn_groupwise_dequantize_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    struct groupwise format;
    int64_t k;
    tn_status status = GROUPWISE_FORMAT(host, attrs, &format);
    if (status == TN_OK)
        status = groupwise_check(infer, &format, 0, &k);
    if (status == TN_OK)
        status = groupwise_check_factor(infer, &format, 3);
    if (status)
        return status;
    tn_dtype dtype = (tn_dtype)attrs->dtype;
    if (dtype == TN_DTYPE_NONE && format.mode != TN_GROUPWISE_affine)
        dtype = TN_BF16;
    else if (dtype == TN_DTYPE_NONE)
        dtype = groupwise_dtype(infer->types[1].dtype, infer->types[1].dtype,
                                infer->types[2].dtype);
    if (!tn_dtype_in(dtype, GROUPWISE_DTYPES | TN_DTYPE_BIT(TN_F64)))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "dtype is %s, expected f16, bf16, f32 or f64",
                          tn_dtype_name(dtype));
    types[0] = infer->types[0];
    types[0].dtype = dtype;
    types[0].extent[types[0].rank - 1] = k;
    return TN_OK;
}

// Scratch for a row.
static uint64_t dequantize_scratch(const tn_kernel_query *query)
{
    const tn_layout *out = &query->outputs[0];
    return tn_saturated_multiply((uint64_t)out->extent[out->rank - 1], sizeof(float));
}

static tn_status dequantize_reference(const tn_cpu_call *call)
{
    const tn_tensor *out = &call->outputs[0];
    const int32_t last = out->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0}, rows[TN_MAX_RANK];
    float *values = call->scratch;
    struct groupwise format;
    tn_status status = GROUPWISE_FORMAT(
        call->host, (const tn_groupwise_dequantize_attrs *)call->attrs, &format);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    memcpy(rows, out->layout.extent, sizeof(rows));
    rows[last] = 1;
    do {
        groupwise_decode(&format, &call->inputs[0], &call->inputs[1], &call->inputs[2],
                         factor_of(&format, &call->inputs[3], index, true), index, values);
        int64_t at = tn_offset_at(&out->layout, index);
        for (int64_t i = 0; i < out->layout.extent[last]; i++)
            tn_set_f64(out, at + i * out->layout.stride[last], (double)values[i]);
    } while (tn_index_next(out->layout.rank, rows, index));
    return TN_OK;
}

// The floats of given words, scales, biases and global scale, by the rule's attributes.
static tn_array *groupwise_quantize_values_of(const tn_build *build, const tn_rule *rule,
                                              tn_array *w, tn_array *scales,
                                              tn_array *biases, tn_array *global,
                                              tn_dtype dtype)
{
    const tn_groupwise_dequantize_attrs *attrs = rule->attrs;
    return build->op(build, "quant.groupwise_dequantize/1",
                     TN_IN(w, scales, biases, global),
                     tn_attrs("mode", attrs->mode, "bits", attrs->bits, "group",
                              attrs->group, "dtype", (int64_t)dtype));
}

TN_VJP(dequantize_vjp)
{
    struct groupwise format;
    tn_status status = GROUPWISE_FORMAT(
        build->host, (const tn_groupwise_dequantize_attrs *)rule->attrs, &format);
    if (status || !cotangents[0])
        return status;
    return groupwise_gradients(build, rule, &format, 0, cotangents[0], wanted, gradients);
}

// Linear in scales and biases together.
TN_JVP(dequantize_jvp)
{
    const tn_type *out = build->type(rule->outputs[0]);
    if (!out || rule->num_inputs < 3 || (!tangents[1] && !tangents[2]))
        return TN_OK;
    out_tangents[0] = groupwise_quantize_values_of(
        build, rule, rule->inputs[0],
        tangents[1] ? tangents[1] : groupwise_filled(build, rule->inputs[1], 0),
        tangents[2] ? tangents[2] : groupwise_filled(build, rule->inputs[2], 0), NULL,
        out->dtype);
    return TN_OK;
}

TN_VMAP(dequantize_vmap)
{
    const tn_type *out = build->type(rule->outputs[0]);
    tn_array *in[3] = {NULL};
    for (uint32_t i = 0; i < 3 && i < rule->num_inputs; i++)
        in[i] =
            rule->inputs[i] ? tn_batch_whole(build, rule->inputs[i], axes[i], size) : NULL;
    outputs[0] =
        out ? groupwise_quantize_values_of(build, rule, in[0], in[1], in[2],
                                           slices_factor(build, rule, 3, axes), out->dtype)
            : NULL;
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_groupwise_dequantize = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.groupwise_dequantize/1",
    .doc = "The elements that words of codes stand for, with the scales (and biases) of "
           "their groups.",
    TN_INPUTS(dequantize_inputs),
    .attrs = TN_ATTR_TABLE(tn_groupwise_dequantize_attrs, dequantize_fields),
    .infer = dequantize_infer,
    .decompose = groupwise_dequantize_decompose,
    .reference = dequantize_reference,
    .reference_scratch = dequantize_scratch,
    .vjp = dequantize_vjp,
    .jvp = dequantize_jvp,
    .vmap = dequantize_vmap,
};
