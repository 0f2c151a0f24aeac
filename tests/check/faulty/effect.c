// SPDX-License-Identifier: MIT
// An operator pack whose primitive has an effect: x, plus how often the primitive ran. No
// check may take that for a fault. FAULT_REFERENCE_LAYOUTS_EFFECT: one that repeats and is
// wrong. FAULT_ENTRY_ACCEPTED_EFFECTS: one that the core does not take.
#include <tenon/ops/reference.h>
#include <tenon/plugin.h>

static tn_status infer(const tn_infer *in, tn_type *types)
{
    if (in->types[0].dtype != TN_F32)
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "got %s, expected f32",
                              tn_dtype_name(in->types[0].dtype));
    types[0] = in->types[0];
    return TN_OK;
}

static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0};
#ifdef FAULT_REFERENCE_LAYOUTS_EFFECT
    const double added = 0;
    tn_layout wrong = x->layout;
    if (wrong.rank > 1)
        wrong.stride[0] = wrong.extent[1];
    const tn_tensor in = {.data = x->data, .layout = wrong};
#else
    static double runs;
    const double added = runs++;
    const tn_tensor in = *x;
#endif
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    do
        tn_set_f64(out, tn_offset_at(&out->layout, index),
                   tn_get_f64(&in, tn_offset_at(&in.layout, index)) + added);
    while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

static const tn_primitive count = {
    .struct_size = sizeof(count),
#ifndef FAULT_ENTRY_ACCEPTED_EFFECTS // a domain, and no flag
    .flags = TN_PRIM_EFFECT,
#endif
    .id = "acme.count/1",
    .doc = "x, plus how often this ran.",
    TN_INPUTS(((const tn_input_info[]){{.name = "x", .doc = "an array"}})),
    .num_outputs = 1,
    .reference = reference,
    .infer = infer,
    .effects = "acme.counts",
};
static const tn_ops ops = {
    .struct_size = sizeof(ops),
    .primitives = (const tn_primitive *const[]){&count},
    .num_primitives = 1,
};

static const void *query(const char *id)
{
    return __builtin_strcmp(id, TN_IFACE_OPS) == 0 ? &ops : NULL;
}

TN_PLUGIN("com.acme.count", "1.0.0", "Acme", .query = query);
