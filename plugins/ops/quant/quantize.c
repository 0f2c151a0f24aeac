// SPDX-License-Identifier: MIT
// quant.quantize: blocks that are near to floats, by a format's plain rule or by search.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"x", "floats, rows along the last axis", TN_INPUT_CONSTANT, TN_FLOAT_DTYPES},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_quant_quantize_attrs, format, TN_ATTR_STRING,
                      "name of a format that is not packed"),
};

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
    if (format.is_packed || !format_encoder(format.plain))
        return host->fail(host, TN_ERR_ARGUMENT, "format is \"%s\", %s", attrs->format,
                          format.is_packed
                              ? "expected a plain one (quant.pack packs its blocks)"
                              : "whose plugin has no rule by which floats become blocks");
    if (x->rank < 1 || x->extent[x->rank - 1] % format.plain->block)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s, expected rows of a multiple of %" PRId64
                          " elements, as %s has",
                          shape_text(x, text), format.plain->block, attrs->format);
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

static tn_status quantize_reference(const tn_cpu_call *call)
{
    const tn_quant_quantize_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int32_t last = out->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0}, step = out->layout.stride[last];
    float values[TN_QUANT_MAX_BLOCK];
    uint8_t block[TN_QUANT_MAX_BYTES], *bytes = out->data;
    struct format format;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    const tn_quant_format *plain = format.plain;
    encode_fn *encode = format_encoder(plain);
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
            encode(values, block);
            for (int64_t i = 0; i < plain->bytes; i++)
                bytes[to + (b * plain->bytes + i) * step] = block[i];
        }
    } while (tn_index_next(out->layout.rank, rows, index));
    return TN_OK;
}

// --- f32 without gaps, on several threads -----------------------------------------------

#define PIECE_ELEMENTS 4096 // of a piece of a loop, at least

struct encoding {
    const tn_quant_format *plain;
    encode_fn *encode;
    const float *from;
    uint8_t *to;
};

static void encode_blocks(void *context, int64_t begin, int64_t end, uint32_t worker)
{
    const struct encoding *e = context;
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        e->encode(e->from + i * e->plain->block, e->to + i * e->plain->bytes);
}

static tn_status quantize_launch(const tn_cpu_call *call)
{
    const tn_quant_quantize_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    struct format format;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status)
        return status;
    struct encoding e = {.plain = format.plain,
                         .encode = format_encoder(format.plain),
                         .from = (const float *)x->data + x->layout.offset,
                         .to = (uint8_t *)out->data + out->layout.offset};
    call->parallel_for(call, tn_layout_count(&out->layout) / e.plain->bytes,
                       1 + PIECE_ELEMENTS / e.plain->block, encode_blocks, &e);
    return TN_OK;
}

static const tn_operand_rule rules[] = {{TN_DTYPE_BIT(TN_F32), TN_NEEDS_CONTIGUOUS},
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

TN_VMAP(quantize_vmap)
{
    const tn_quant_quantize_attrs *attrs = rule->attrs;
    outputs[0] = build->op(build, "quant.quantize/1",
                           TN_IN(tn_move_axis(build, rule->inputs[0], axes[0], 0)),
                           tn_attrs("format", attrs->format));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_quantize = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.quantize/1",
    .doc = "Blocks of a quantised format that are near to x.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_quantize_attrs, fields),
    .infer = quantize_infer,
    .reference = quantize_reference,
    .vmap = quantize_vmap,
};
