// SPDX-License-Identifier: MIT
// quant.quantize: blocks near to floats, by a format's plain rule or by search.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"x", "floats, rows along the last axis", TN_INPUT_CONSTANT, TN_FLOAT_DTYPES},
    {"importance",
     "how much the squared error of each element of a row counts, [k], or of the rows of "
     "each"
     " index of the first axes of x, [..., k]; 0 and less, and what is not finite, as "
     "nothing",
     TN_INPUT_CONSTANT | TN_INPUT_OPTIONAL, TN_DTYPE_BIT(TN_F32)},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_quant_quantize_attrs, format, TN_ATTR_STRING,
                      "name of a format that is not packed"),
};

static tn_status check_importance(const tn_host *host, const tn_type *x,
                                  const tn_type *importance)
{
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    int32_t last = importance->rank - 1;
    bool fits =
        last >= 0 && last < x->rank && importance->extent[last] == x->extent[x->rank - 1];
    for (int32_t i = 0; fits && i < last; i++)
        fits = importance->extent[i] == x->extent[i];
    return fits ? TN_OK
                : host->fail(host, TN_ERR_ARGUMENT,
                             "importance has shape %s, expected the last extent of x, %s, "
                             "behind some of its first ones",
                             shape_text(importance, text), shape_text(x, other));
}

static tn_status quantize_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_quantize_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    struct format format;
    tn_status status = find_format(host, attrs->format, &format);
    if (status)
        return status;
    if (format.packing || !format_encoder(format.plain))
        return host->fail(host, TN_ERR_ARGUMENT, "format is \"%s\", %s", attrs->format,
                          format.packing
                              ? "expected a plain one (quant.pack packs its blocks)"
                              : "whose plugin has no rule by which floats become blocks");
    if (x->rank < 1 || x->extent[x->rank - 1] % format.plain->block)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, expected rows of a multiple of %" PRId64
                          " elements, as %s has",
                          shape_text(x, text), format.plain->block, attrs->format);
    if (infer->num_inputs > 1 && infer->types[1].dtype != TN_DTYPE_NONE)
        status = check_importance(host, x, &infer->types[1]);
    if (status)
        return status;
    int64_t blocks = x->extent[x->rank - 1] / format.plain->block;
    tn_type type = *x;
    if (!tn_checked_multiply_extents(blocks, format.plain->bytes,
                                     &type.extent[x->rank - 1]))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, whose rows would need more than 2^63 - 1 bytes",
                          shape_text(x, text));
    type.dtype = TN_U8;
    types[0] = type;
    return TN_OK;
}

// --- importance -------------------------------------------------------------------------

// The least weight of an element, relative to the mean of its block: an element that no
// text has used so far still counts.
#define LEAST_SHARE 0.02f

// Positive weights of a block, of mean 1 + LEAST_SHARE.
static void take_weights(const float *importance, int64_t count, float *out)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        bool counts = importance[i] > 0 && importance[i] <= 3e38f;
        out[i] = counts ? importance[i] : 0;
        sum += (double)out[i];
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = sum > 0 ? (float)((double)out[i] * (double)count / sum) + LEAST_SHARE : 1;
}

// The encoder of a format; with weights where they are given and the format takes them.
struct encoder {
    const tn_quant_format *plain;
    encode_fn *encode;
    weigh_fn *weigh; // NULL: no weights
};

// Where no importance is given, `data` is NULL and the dtype NONE.
static bool quantize_is_given(const tn_tensor *importance)
{
    return importance->data && importance->layout.dtype == TN_F32;
}

static struct encoder encoder_of(const struct format *format, const tn_tensor *importance)
{
    return (struct encoder){
        .plain = format->plain,
        .encode = format_encoder(format->plain),
        .weigh = quantize_is_given(importance) ? format_weigher(format->plain) : NULL};
}

static void encode_block(const struct encoder *e, const float *values,
                         const float *importance, uint8_t *out)
{
    float weights[TN_QUANT_MAX_BLOCK];
    if (!e->weigh) {
        e->encode(values, out);
        return;
    }
    take_weights(importance, e->plain->block, weights);
    e->weigh(values, weights, out);
}

static tn_status quantize_reference(const tn_cpu_call *call)
{
    const tn_quant_quantize_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    const tn_tensor *importance = &call->inputs[1];
    int32_t last = out->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0}, step = out->layout.stride[last];
    float values[TN_QUANT_MAX_BLOCK], counts[TN_QUANT_MAX_BLOCK] = {0};
    uint8_t block[TN_QUANT_MAX_BYTES], *bytes = out->data;
    struct format format;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    const tn_quant_format *plain = format.plain;
    const struct encoder e = encoder_of(&format, importance);
    const int32_t behind = importance->layout.rank - 1; // the axis of a row
    int64_t blocks = out->layout.extent[last] / plain->bytes;
    int64_t rows[TN_MAX_RANK];
    memcpy(rows, out->layout.extent, sizeof(rows));
    rows[last] = 1;
    do {
        int64_t from = tn_offset_at(&x->layout, index),
                to = tn_offset_at(&out->layout, index);
        for (int64_t b = 0; b < blocks; b++) {
            for (int64_t i = 0; i < plain->block; i++)
                values[i] = (float)tn_get_f64(x, from + (b * plain->block + i) *
                                                            x->layout.stride[last]);
            for (int64_t i = 0; i < plain->block && e.weigh; i++) {
                int64_t at = importance->layout.offset +
                             (b * plain->block + i) * importance->layout.stride[behind];
                for (int32_t axis = 0; axis < behind; axis++)
                    at += index[axis] * importance->layout.stride[axis];
                counts[i] = (float)tn_get_f64(importance, at);
            }
            encode_block(&e, values, counts, block);
            for (int64_t i = 0; i < plain->bytes; i++)
                bytes[to + (b * plain->bytes + i) * step] = block[i];
        }
    } while (tn_index_next(out->layout.rank, rows, index));
    return TN_OK;
}

// --- f32 without gaps, on several threads -----------------------------------------------

#define PIECE_ELEMENTS 4096 // the least elements of a task

struct quantize_encoding {
    struct encoder encoder;
    const float *from, *importance;
    int64_t row, rows; // blocks of a row; rows that share an importance
    uint8_t *to;
};

static void encode_blocks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct quantize_encoding *e = context;
    (void)worker;
    const tn_quant_format *plain = e->encoder.plain;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / e->row / e->rows * e->row + i % e->row;
        encode_block(&e->encoder, e->from + i * plain->block,
                     e->importance ? e->importance + at * plain->block : NULL,
                     e->to + i * plain->bytes);
    }
}

static tn_status quantize_launch(const tn_cpu_call *call)
{
    const tn_quant_quantize_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    struct format format;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status)
        return status;
    const tn_tensor *importance = &call->inputs[1];
    const tn_quant_format *plain = format.plain;
    struct quantize_encoding e = {.encoder = encoder_of(&format, importance),
                                  .from = (const float *)x->data + x->layout.offset,
                                  .row =
                                      x->layout.extent[x->layout.rank - 1] / plain->block,
                                  .rows = 1,
                                  .to = (uint8_t *)out->data + out->layout.offset};
    for (int32_t axis = importance->layout.rank - 1; axis < x->layout.rank - 1; axis++)
        e.rows *= axis < 0 ? 1 : x->layout.extent[axis];
    if (quantize_is_given(importance))
        e.importance = (const float *)importance->data + importance->layout.offset;
    int64_t count = tn_layout_count(&out->layout) / plain->bytes;
    if (count > 0)
        call->parallel_for(call, count, 1 + PIECE_ELEMENTS / plain->block, encode_blocks,
                           &e);
    return TN_OK;
}

static const tn_operand_rule rules[] = {{TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
                                        {TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
                                        {TN_DTYPE_BIT(TN_U8), TN_NEEDS_CONTIGUOUS}};
static const tn_cpu_kernel launch = {.struct_size = sizeof(launch),
                                     .launch = quantize_launch};
const tn_kernel quant_quantize_kernel = {
    .struct_size = sizeof(tn_kernel),
    .primitive = "quant.quantize/1",
    .family = TN_FAMILY_CPU,
    .name = "blocks",
    .priority = 500,
    TN_OPERANDS(rules),
    .payload = &launch,
};

// An importance for each slice gets the batch axis in front, as x does; one importance for
// all slices that has axes of x is repeated for each.
static tn_array *slices_importance(const tn_build *build, const tn_rule *rule,
                                   const int32_t *axes, int64_t size)
{
    tn_array *importance = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    const tn_type *type = importance ? build->type(importance) : NULL;
    if (!type || (axes[1] < 0 && type->rank == 1))
        return importance;
    if (axes[1] >= 0)
        return tn_move_axis(build, importance, axes[1], 0);
    tn_ints shape = {.count = (uint32_t)type->rank + 1, .given = 1, .value = {size}};
    memcpy(shape.value + 1, type->extent, (uint64_t)type->rank * sizeof(shape.value[0]));
    return build->op(build, "base.broadcast_to/1", TN_IN(importance),
                     tn_attrs("shape", &shape));
}

TN_VMAP(quantize_vmap)
{
    const tn_quant_quantize_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    if (axes[0] >= 0) {
        x = tn_move_axis(build, x, axes[0], 0);
    } else if (x) {
        const tn_type *type = build->type(x);
        tn_ints shape = {.count = (uint32_t)type->rank + 1, .given = 1, .value = {size}};
        memcpy(shape.value + 1, type->extent,
               (uint64_t)type->rank * sizeof(shape.value[0]));
        x = build->op(build, "base.broadcast_to/1", TN_IN(x), tn_attrs("shape", &shape));
    }
    tn_array *importance = slices_importance(build, rule, axes, size);
    outputs[0] = importance ? build->op(build, "quant.quantize/1", TN_IN(x, importance),
                                        tn_attrs("format", attrs->format))
                            : build->op(build, "quant.quantize/1", TN_IN(x),
                                        tn_attrs("format", attrs->format));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_quantize = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.quantize/1",
    .doc = "Blocks of a quantised format that are near to x. Importance has no effect on "
           "q4_1, "
           "q5_1, q8_0, mxfp4 and formats of plugins.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_quantize_attrs, fields),
    .infer = quantize_infer,
    .reference = quantize_reference,
    .vmap = quantize_vmap,
};
