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
                      "id of a packing of the format, or the name of the plain one"),
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
    tn_type type = infer->types[0];
    if (type.rank < 2 && to.packing)
        return check_weights(host, attrs->to, &to, &type, &k);
    status = check_weights(host, attrs->format, &from, &type, &k);
    if (status == TN_OK && type.rank > 1)
        status = rows_size(host, &to, type.extent[type.rank - 2], k,
                           &type.extent[type.rank - 1]);
    if (status == TN_OK)
        types[0] = type;
    return status;
}

// Packs or unpacks a matrix.
static void pack_matrix(struct rows *from, struct rows *to)
{
    size_t bytes = (size_t)from->bytes;
    for (int64_t first = 0; first < from->n; first += to->group) {
        for (int64_t i = 0; i < to->group && first + i < from->n; i++)
            memcpy(to->plain + (size_t)i * bytes, rows_read(from, first + i), bytes);
        rows_write(to, first);
    }
}

static tn_status pack_reference(const tn_cpu_call *call)
{
    const tn_quant_pack_attrs *attrs = call->attrs;
    const tn_tensor *w = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0};
    struct format format, other;
    struct rows from, to;
    int64_t k = 0;
    tn_status status = find_format(call->host, attrs->format, &format);
    if (status == TN_OK)
        status = find_format(call->host, attrs->to, &other);
    if (status || tn_layout_count(&out->layout) == 0)
        return status;
    tn_type type = {.dtype = TN_U8, .rank = w->layout.rank};
    memcpy(type.extent, w->layout.extent, sizeof(type.extent));
    status = check_weights(call->host, attrs->format, &format, &type, &k);
    if (status == TN_OK)
        status = rows_open(call->host, &format, w, k, &from);
    if (status != TN_OK)
        return status;
    status = rows_open(call->host, &other, out, k, &to);
    if (status == TN_OK) {
        do {
            rows_move(&from, index);
            rows_move(&to, index);
            pack_matrix(&from, &to);
        } while (next_matrix(w->layout.rank, w->layout.extent, index));
        rows_close(&to);
    }
    rows_close(&from);
    return status;
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
