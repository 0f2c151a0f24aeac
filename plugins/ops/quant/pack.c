// SPDX-License-Identifier: MIT
// quant.pack: blocks in the order in which kernels read them, and back.
#include "pack.h"

static const tn_input_info inputs[] = {
    {"w", "n rows of blocks along the last axis", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_U8)},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_quant_pack_attrs, format, TN_ATTR_STRING,
                      "name of the format of w"),
    TN_REQUIRED_FIELD(tn_quant_pack_attrs, to, TN_ATTR_STRING,
                      "name of the packed format, or of the plain one"),
};

static tn_status pack_infer(const tn_infer *infer, tn_type *types)
{
    const tn_quant_pack_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    struct format from, to;
    int64_t k;
    tn_status status = find_format(host, attrs->format, &from);
    if (status == TN_OK)
        status = find_format(host, attrs->to, &to);
    if (status)
        return status;
    if (from.plain != to.plain)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "to is \"%s\", expected \"%s\" or a packed format of it",
                          attrs->to, from.plain->name);
    status = check_weights(host, attrs->format, from.is_packed ? &from : &to,
                           &infer->types[0], &k);
    if (status == TN_OK)
        types[0] = infer->types[0];
    return status;
}

static tn_status pack_reference(const tn_cpu_call *call)
{
    const tn_quant_pack_attrs *attrs = call->attrs;
    const tn_tensor *w = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0};
    uint8_t block[TN_QUANT_MAX_BYTES];
    struct format format, other;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status == TN_OK)
        status = find_format(call->host, attrs->to, &other);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    do {
        struct rows from = rows_at(&format, w, index), to = rows_at(&other, out, index);
        for (int64_t row = 0; row < from.n; row++)
            for (int64_t i = 0; i < from.blocks; i++) {
                rows_read(&from, row, i, block);
                rows_write(&to, row, i, block);
            }
    } while (next_matrix(w->layout.rank, w->layout.extent, index));
    return TN_OK;
}

TN_VMAP(pack_vmap)
{
    const tn_quant_pack_attrs *attrs = rule->attrs;
    outputs[0] = build->op(build, "quant.pack/1",
                           TN_IN(tn_move_axis(build, rule->inputs[0], axes[0], 0)),
                           tn_attrs("format", attrs->format, "to", attrs->to));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_pack = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.pack/1",
    .doc = "The same blocks in the order of a packed format, or in the plain one again.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_quant_pack_attrs, fields),
    .infer = pack_infer,
    .reference = pack_reference,
    .vmap = pack_vmap,
};
