// SPDX-License-Identifier: MIT
// split: cuts an array along an axis into slices, which are views.
#include "../pack.h"

static const tn_output_info split_outputs[] = {{"part", "parts of x in order", 0, 0}};
static const tn_attr_field split_fields[] = {
    TN_I64_FIELD(tn_split_attrs, sections, 0, "number of parts; 0: parts end at indices"),
    TN_INT_LIST_FIELD(tn_split_attrs, indices, "where parts end; ascending"),
    TN_I64_FIELD(tn_split_attrs, axis, 0, "axis along which x is split"),
    TN_BOOL_FIELD(tn_split_attrs, uneven, 0, "extents of sections may differ by one"),
};

// The number of parts, known without x.
static int64_t base_split_count_parts(const tn_split_attrs *attrs)
{
    return attrs->indices ? (int64_t)attrs->indices->count + 1 : attrs->sections;
}

static tn_status split_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_split_attrs *attrs = infer->attrs;
    if ((attrs->sections != 0) == (attrs->indices != NULL))
        return infer->host->fail(
            infer->host, TN_ERR_ARGUMENT, "got %s, expected one of them",
            attrs->indices ? "both sections and indices" : "neither sections nor indices");
    if (base_split_count_parts(attrs) < 1 || base_split_count_parts(attrs) > TN_MAX_OUTPUTS)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "got %lld parts, expected 1 to %d",
                                 (long long)base_split_count_parts(attrs), TN_MAX_OUTPUTS);
    *out_count = (uint64_t)base_split_count_parts(attrs);
    return TN_OK;
}

// The index of x at which part i begins; x's extent n for the part behind the last.
static int64_t base_split_begin_of(const tn_split_attrs *attrs, int64_t n, int64_t i)
{
    if (i == 0 || i == base_split_count_parts(attrs))
        return i ? n : 0;
    if (!attrs->indices) // the first n % sections parts are longer by one
        return i * (n / attrs->sections) +
               (i < n % attrs->sections ? i : n % attrs->sections);
    int64_t at = attrs->indices->value[i - 1];
    at = at < 0 ? at + n : at; // at least INT64_MIN, as n is not negative
    return at < 0 ? 0 : at > n ? n : at;
}

static tn_status split_infer(const tn_infer *infer, tn_type *types)
{
    const tn_split_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0];
    int32_t axis;
    uint64_t count = 0;
    tn_status status = split_count(infer, &count);
    if (status == TN_OK)
        status = check_axis(host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    if (count != infer->num_outputs)
        return host->fail(host, TN_ERR_ARGUMENT, "got %u outputs, expected %d",
                          infer->num_outputs, (int)count);
    int64_t n = x->extent[axis];
    if (!attrs->indices && !attrs->uneven && n % attrs->sections)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "axis %d has extent %lld, which is no multiple of %lld sections: "
                          "uneven=true allows that",
                          axis, (long long)n, (long long)attrs->sections);
    for (uint32_t i = 0; i < infer->num_outputs; i++)
        if (base_split_begin_of(attrs, n, i + 1) < base_split_begin_of(attrs, n, i))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "indices descend: part %u would go from %lld to %lld", i,
                              (long long)base_split_begin_of(attrs, n, i),
                              (long long)base_split_begin_of(attrs, n, i + 1));
    for (uint32_t i = 0; i < infer->num_outputs; i++) {
        types[i] = *x;
        types[i].extent[axis] =
            base_split_begin_of(attrs, n, i + 1) - base_split_begin_of(attrs, n, i);
    }
    return TN_OK;
}

static tn_status split_decompose(const tn_build *build, const tn_rule *rule,
                                 tn_array **outputs)
{
    const tn_split_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    if (!type)
        return TN_ERR_ARGUMENT;
    int32_t axis = tn_axis(attrs->axis, type->rank);
    int64_t n = type->extent[axis];
    tn_ints start = {.count = (uint32_t)axis + 1, .given = 1}, stop = start;
    const tn_ints *from = &start, *to = &stop;
    for (int32_t i = 0; i < axis; i++)
        start.value[i] = stop.value[i] = TN_SLICE_END;
    for (uint32_t i = 0; i < rule->num_outputs; i++) {
        start.value[axis] = base_split_begin_of(attrs, n, i);
        stop.value[axis] = base_split_begin_of(attrs, n, i + 1);
        outputs[i] = build->op(build, "base.slice/1", TN_IN(rule->inputs[0]),
                               tn_attrs("start", from, "stop", to));
        if (!outputs[i])
            return TN_ERR_ARGUMENT;
    }
    return TN_OK;
}

// Splits along another axis with the same attributes.
static tn_status split_again(const tn_build *build, const tn_rule *rule, const tn_array *x,
                             int64_t axis, tn_array **outputs)
{
    const tn_split_attrs *attrs = rule->attrs;
    return build->op_n(build, "base.split/1", &x, 1,
                       tn_attrs("sections", attrs->sections, "indices", attrs->indices,
                                "axis", axis, "uneven", attrs->uneven),
                       outputs, rule->num_outputs);
}

// Joins the cotangents, zeros for absent ones.
static tn_status split_vjp(const tn_build *build, const tn_rule *rule,
                           tn_array *const *cotangents, const uint64_t *wanted,
                           tn_array **gradients)
{
    const tn_split_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(rule->inputs[0]);
    const tn_array *parts[TN_MAX_OUTPUTS];
    int32_t any = 0;
    if (!type || !wants(wanted, 0))
        return type ? TN_OK : TN_ERR_ARGUMENT;
    for (uint32_t i = 0; i < rule->num_outputs; i++) {
        any |= cotangents[i] != NULL;
        parts[i] = cotangents[i] ? cotangents[i]
                                 : zeros_like(build, rule->outputs[i], type->dtype);
    }
    if (any)
        gradients[0] = build->op(build, "base.concatenate/1", parts, rule->num_outputs,
                                 tn_attrs("axis", tn_axis(attrs->axis, type->rank)));
    return any ? built(gradients[0]) : TN_OK;
}

static tn_status split_jvp(const tn_build *build, const tn_rule *rule,
                           tn_array *const *tangents, tn_array **out_tangents)
{
    const tn_split_attrs *attrs = rule->attrs;
    if (!tangents[0])
        return TN_OK;
    return split_again(build, rule, tangents[0], attrs->axis, out_tangents);
}

tn_status split_vmap(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                     int64_t size, tn_array **outputs, int32_t *out_axes)
{
    const tn_split_attrs *attrs = rule->attrs;
    tn_array *x = tn_move_axis(build, rule->inputs[0], axes[0], 0);
    const tn_type *type = build->type(x);
    (void)size;
    if (!type)
        return TN_ERR_ARGUMENT;
    for (uint32_t i = 0; i < rule->num_outputs; i++)
        out_axes[i] = 0;
    return split_again(build, rule, x, 1 + tn_axis(attrs->axis, type->rank - 1), outputs);
}

const tn_primitive base_split = {
    .struct_size = sizeof(tn_primitive),
    .id = "base.split/1",
    .doc = "Parts of x along an axis, as numpy.split or numpy.array_split.",
    TN_INPUTS(base_any_x),
    TN_OUTPUTS(split_outputs),
    .attrs = TN_ATTR_TABLE(tn_split_attrs, split_fields),
    .infer = split_infer,
    .decompose = split_decompose,
    .vjp = split_vjp,
    .jvp = split_jvp,
    .vmap = split_vmap,
    .count_outputs = split_count,
};
