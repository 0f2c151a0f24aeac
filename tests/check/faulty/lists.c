// SPDX-License-Identifier: MIT
// An operator with a text and a list as attributes, with one fault each; see ops.c.
#include <string.h>
#include <tenon/ops/reference.h>
#include <tenon/pack.h>

typedef struct attrs {
    const tn_float_list *coefficients;
    const char *order;
} attrs;

static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(attrs, coefficients, TN_ATTR_FLOAT_LIST, "of the powers of x"),
    TN_STRING_FIELD(attrs, order,
                    "\"rising\" powers, or \"falling\"; rising when left out"),
};

static int32_t is_falling(const attrs *a)
{
#ifdef FAULT_ATTRS_EXTREMES_TEXT
    return strcmp(a->order, "falling") == 0; // left out, it is NULL
#else
    return a->order && strcmp(a->order, "falling") == 0;
#endif
}

static tn_status infer(const tn_infer *in, tn_type *types)
{
    const attrs *a = in->attrs;
    if (!tn_is_float(in->types[0].dtype))
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "x is %s, expected a float",
                              tn_dtype_name(in->types[0].dtype));
#ifdef FAULT_ATTRS_EXTREMES_LIST
    if (((const volatile double *)a->coefficients->value)[0] >
        1e6) // an empty list has none
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "coefficient 0 is large");
#endif
    if (a->coefficients->count == 0)
        return in->host->fail(in->host, TN_ERR_ARGUMENT, "there are no coefficients");
    types[0] = in->types[0];
    return is_falling(a) >= 0 ? TN_OK : TN_ERR_INTERNAL;
}

static double coefficient(const attrs *a, uint64_t power)
{
    const tn_float_list *list = a->coefficients;
    return list->value[is_falling(a) ? list->count - 1 - power : power];
}

static tn_status reference(const tn_cpu_call *call)
{
    const tn_tensor *x = &call->inputs[0], *out = &call->outputs[0];
    const attrs *a = call->attrs;
    int64_t index[TN_MAX_RANK] = {0};
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    do {
        double at = tn_get_f64(x, tn_offset_at(&x->layout, index)), sum = 0;
        for (uint64_t i = a->coefficients->count; i-- > 0;)
            sum = sum * at + coefficient(a, i);
        tn_set_f64(out, tn_offset_at(&out->layout, index), sum);
    } while (tn_index_next(out->layout.rank, out->layout.extent, index));
    return TN_OK;
}

static tn_status decompose(const tn_build *build, const tn_rule *rule, tn_array **outputs)
{
    const attrs *a = rule->attrs;
    tn_array *sum = build->expr(build, "x -> 0 * x", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    for (uint64_t i = a->coefficients->count; i-- > 0;)
#ifdef FAULT_REFERENCE_MEANINGS_LISTS
        if (i != 1)
#endif
            sum = build->expr(build, "x, s -> s * x + c", TN_IN(rule->inputs[0], sum),
                              tn_attrs("c", coefficient(a, i)));
    outputs[0] = sum;
    return TN_OK;
}

TN_OP(polynomial, "acme.polynomial/1", (x), .attrs = TN_ATTR_TABLE(attrs, fields),
      .infer = infer, .reference = reference, .decompose = decompose,
      .doc = "A polynomial of x.");
TN_PACK("com.acme.polynomial", "1.0.0", "Acme", TN_PRIMITIVES(&polynomial));
