// SPDX-License-Identifier: MIT
// An operator pack with a view: every second row of x, the last first.
// FAULT_INFER_VIEW_...: one that answers wrongly.
#include <string.h>
#include <tenon/ops/reference.h>
#include <tenon/plugin.h>

static tn_status infer(const tn_infer *in, tn_type *types)
{
    if (in->types[0].rank == 0)
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "got rank 0, expected rows");
    types[0] = in->types[0];
    types[0].extent[0] = (types[0].extent[0] + 1) / 2;
    return TN_OK;
}

static tn_status view(const tn_view *view, tn_layout *out)
{
    tn_layout x = *view->input;
    int64_t rows = view->output->extent[0];
#ifdef FAULT_INFER_VIEW_CONTIGUOUS
    if (x.rank == 1 && x.stride[0] == 1)
        return TN_ERR_UNSUPPORTED;
#endif
#ifdef FAULT_INFER_VIEW_STATUS
    if (x.stride[0] < 0)
        return TN_ERR_INTERNAL;
#endif
    if (rows > 0)
        x.offset += 2 * (rows - 1) * x.stride[0];
    x.extent[0] = rows;
    x.stride[0] *= -2;
#ifdef FAULT_INFER_VIEW_TYPE
    x.dtype = x.dtype == TN_F32 ? TN_I32 : x.dtype;
#endif
#ifdef FAULT_INFER_VIEW_EXTENT
    x.extent[0] += x.rank > 2;
#endif
#ifdef FAULT_INFER_VIEW_OUTSIDE
    x.offset -= x.stride[0];
#endif
#ifdef FAULT_INFER_VIEW_FAR
    x.stride[0] = INT64_MAX;
#endif
    *out = x;
    return TN_OK;
}

static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, from[TN_MAX_RANK];
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    do {
        memcpy(from, index, sizeof(from));
        from[0] = 2 * (out->layout.extent[0] - 1 - index[0]);
        tn_set_f64(out, tn_offset_at(&out->layout, index),
                   tn_get_f64(x, tn_offset_at(&x->layout, from)));
    } while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

static const tn_primitive rows = {
    .struct_size = sizeof(rows),
    .flags = TN_PRIM_VIEW,
    .id = "acme.rows/1",
    .doc = "Every second row, the last first.",
    TN_INPUTS(((const tn_input_info[]){{.name = "x", .doc = "an array of rows"}})),
    .num_outputs = 1,
    .reference = reference,
    .infer = infer,
    .view = view,
};
static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = (const tn_primitive *const[]){&rows},
    .num_primitives = 1,
};

static const void *query(const char *id)
{
    return strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.acme.rows", "1.0.0", "Acme", .query = query);
