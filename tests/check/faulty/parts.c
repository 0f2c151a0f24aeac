// SPDX-License-Identifier: MIT
// An operator whose number of outputs is an attribute, with one fault each; see ops.c.
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

typedef struct attrs {
    int64_t count;
} attrs;

static const tn_attr_field fields[] = {
    TN_I64_FIELD(attrs, count, 2, "number of multiples"),
};

static tn_status count_outputs(const tn_infer *in, uint64_t *out_count)
{
    const attrs *a = in->attrs;
    if (a->count < 1 || a->count > TN_MAX_OUTPUTS)
        return in->host->fail(in->host, TN_ERR_ARGUMENT,
                              "got %d multiples, expected 1 to %d", (int)a->count,
                              TN_MAX_OUTPUTS);
    *out_count = (uint64_t)a->count;
    return TN_OK;
}

static tn_status infer(const tn_infer *in, tn_type *types)
{
    uint32_t count = in->num_outputs;
    if (!tn_is_float(in->types[0].dtype))
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "expected a float");
#ifdef FAULT_INFER_VALID_PARTS
    count = count > 2 ? 2 : count; // as if there were two, always
#endif
    for (uint32_t i = 0; i < count; i++)
        types[i] = in->types[0];
    return TN_OK;
}

static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0];
    uint32_t count = call->num_outputs;
#ifdef FAULT_REFERENCE_COMPLETE_PARTS
    count = count > 2 ? 2 : count;
#endif
    for (uint32_t o = 0; o < count && tn_layout_count(&x->layout); o++) {
        const tn_tensor *out = &call->outputs[o];
        int64_t index[TN_MAX_RANK] = {0};
        do
            tn_set_f64(out, tn_offset_at(&out->layout, index),
                       (o + 1) * tn_get_f64(x, tn_offset_at(&x->layout, index)));
        while (tn_index_next(out->layout.rank, out->layout.extent, index));
    }
    return TN_OK;
}

static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        outputs[i] = build->expr(build, "x -> k * x", TN_IN(rule->inputs[0]),
                                 tn_attrs("k", (double)(i + 1)));
    return TN_OK;
}

TN_OP(multiples, "acme.multiples/1", (x), .attrs = TN_ATTR_TABLE(attrs, fields),
      .infer = infer, .reference = reference, .decompose = decompose,
      .count_outputs = count_outputs, .doc = "x, 2x, 3x and so on.");
TN_PACK("com.acme.multiples", "1.0.0", "Acme", TN_PRIMITIVES(&multiples));
