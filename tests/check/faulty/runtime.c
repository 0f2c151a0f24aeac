// SPDX-License-Identifier: MIT
// An operator with a runtime attribute, which is data, with one fault each; see ops.c.
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

typedef struct attrs {
    double t;
} attrs;

static const tn_attr_field fields[] = {
    TN_RUNTIME_F64_FIELD(attrs, t, 0.5, "share of y"),
};

static tn_status infer(const tn_infer *in, tn_type *types)
{
    const tn_type *x = &in->types[0], *y = &in->types[1];
    if (in->num_inputs != 2)
        return in->host->fail(in->host, TN_ERR_INTERNAL, "infer sees %u inputs",
                              in->num_inputs);
    for (int32_t i = 0; i < TN_MAX_RANK; i++)
        if (x->extent[i] != y->extent[i])
            return in->host->fail(in->host, TN_ERR_ARGUMENT, "expected equal extents");
    if (x->dtype != y->dtype || x->rank != y->rank || !tn_is_float(x->dtype))
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "expected the same float");
    types[0] = *x;
    return TN_OK;
}

static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *y = &call->inputs[1], *out = &call->outputs[0];
    double t = tn_runtime_f64(call, 2);
    int64_t index[TN_MAX_RANK] = {0};
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    do {
        double a = tn_get_f64(x, tn_offset_at(&x->layout, index));
        double b = tn_get_f64(y, tn_offset_at(&y->layout, index));
        tn_set_f64(out, tn_offset_at(&out->layout, index), (1 - t) * a + t * b);
    } while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
#ifdef FAULT_REFERENCE_MEANINGS_RUNTIME
    outputs[0] = build->expr(build, "x, y -> (1 - t) * x + t * y",
                             TN_IN(rule->inputs[0], rule->inputs[1]),
                             tn_attrs("t", ((const attrs *)rule->attrs)->t));
#else
    outputs[0] =
        build->expr(build, "x, y, t -> (1 - t) * x + t * y",
                    TN_IN(rule->inputs[0], rule->inputs[1], rule->inputs[2]), TN_NO_ATTRS);
#endif
    return TN_OK;
}

static tn_status launch(const tn_cpu_call *call)
{
    const float *x = (const float *)call->inputs[0].data + call->inputs[0].layout.offset;
    const float *y = (const float *)call->inputs[1].data + call->inputs[1].layout.offset;
    float *out = (float *)call->outputs[0].data + call->outputs[0].layout.offset;
    int64_t count = tn_layout_count(&call->outputs[0].layout);
#ifdef FAULT_KERNEL_VALUES_RUNTIME
    double t = ((const attrs *)call->attrs)->t; // the default, always
#else
    double t = tn_runtime_f64(call, call->num_inputs - 1);
#endif
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((1 - t) * (double)x[i] + t * (double)y[i]);
    return TN_OK;
}

TN_OP(blend, "acme.blend/1", (x, y), .attrs = TN_ATTR_TABLE(attrs, fields), .infer = infer,
      .reference = reference, .decompose = decompose, .doc = "Between x and y.");
TN_CPU_KERNEL(fast, "acme.blend/1", launch, TN_TAKES_CONTIGUOUS(TN_DTYPE_BIT(TN_F32)));
TN_PACK("com.acme.blend", "1.0.0", "Acme", TN_PRIMITIVES(&blend), TN_KERNELS(&fast));
