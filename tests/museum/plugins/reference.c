// SPDX-License-Identifier: MIT
// Primitives that mean what a reference kernel computes, or what other primitives do; with
// attributes of several kinds.
#include <tenon/kernel.h>
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

// --- how many elements are beyond a limit ----------------------------------------------

enum { ABOVE, BELOW };

typedef struct count_attrs {
    double limit;
    int64_t side;   // ABOVE, BELOW
    int64_t strict; // 0: what equals the limit counts too
} count_attrs;

static const char *const sides[] = {"above", "below", NULL};
static const tn_attr_field count_fields[] = {
    TN_F64_FIELD(count_attrs, limit, 0, "where counting begins"),
    TN_CHOICE_FIELD(count_attrs, side, ABOVE, sides, "on which side of it"),
    TN_BOOL_FIELD(count_attrs, strict, 1, "whether the limit itself is left out"),
};

static tn_status count_infer(const tn_infer *infer, tn_type *types)
{
    if (infer->types[0].dtype == TN_BOOL)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "x is bool, expected numbers");
    types[0] = (tn_type){.dtype = TN_I64};
    return TN_OK;
}

static tn_status count_reference(const tn_cpu_call *call)
{
    const count_attrs *attrs = call->attrs;
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    int64_t index[TN_MAX_RANK] = {0}, count = 0;
    if (tn_layout_count(&x->layout) > 0)
        do {
            double over = tn_get_f64(x, tn_offset_at(&x->layout, index)) - attrs->limit;
            over = attrs->side == BELOW ? -over : over;
            count += over > 0 || (over == 0 && !attrs->strict);
        } while (tn_index_next(x->layout.rank, x->layout.extent, index));
    tn_set_i64(out, out->layout.offset, count);
    return TN_OK;
}

TN_OP(count, "museum.count/1", (x), .doc = "How many elements are beyond a limit.",
      .attrs = TN_ATTR_TABLE(count_attrs, count_fields), .infer = count_infer,
      .reference = count_reference);

// --- two outputs -----------------------------------------------------------------------

static tn_status ends_infer(const tn_infer *infer, tn_type *types)
{
    types[0] = types[1] = (tn_type){.dtype = infer->types[0].dtype};
    return TN_OK;
}

static tn_status ends_decompose(const tn_build *build, const tn_rule *rule,
                                tn_array **outputs)
{
    outputs[0] = build->op(build, "base.min", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    outputs[1] = build->op(build, "base.max", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    return TN_OK;
}

static const tn_output_info ends_outputs[] = {{.name = "least", .doc = "the least element"},
                                              {.name = "most", .doc = "the greatest"}};

TN_OP(ends, "museum.ends/1", (x), .doc = "The least and the greatest element.",
      TN_OUTPUTS(ends_outputs), .infer = ends_infer, .decompose = ends_decompose);

TN_PACK("org.tenon.museum.reference", "1.0.0", "Tenon", TN_PRIMITIVES(&count, &ends));
