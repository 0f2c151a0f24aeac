// SPDX-License-Identifier: MIT
// Samples of categories by their logits: the greatest of logits plus Gumbel noise.
#include "pack.h"

typedef struct {
    tn_ints shape;
    int64_t axis, num_samples, replace, layout;
} categorical_attrs;

static const tn_input_info categorical_inputs[] = {
    KEY_INPUT,
    {"logits", "logarithms of weights of categories, along an axis", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field categorical_fields[] = {
    TN_I64_FIELD(categorical_attrs, axis, -1, "the axis of categories"),
    TN_INTS_FIELD(categorical_attrs, shape,
                  "of the result, which ends in logits' without the axis; not given: that"),
    TN_I64_FIELD(categorical_attrs, num_samples, -1,
                 "in place of shape: so many along a new last axis; -1: not given"),
    TN_BOOL_FIELD(categorical_attrs, replace, 1,
                  "whether a category may come again along the axes that are new"),
    LAYOUT_FIELD(categorical_attrs),
};

// Extents of the result, and of the batch, which is logits without the axis.
struct extents {
    int32_t axis; // of logits
    tn_ints batch, result;
};

static tn_status find_extents(const tn_build *build, const categorical_attrs *attrs,
                              const tn_type *logits, struct extents *out)
{
    const tn_host *host = build->host;
    char of_batch[SHAPE_TEXT], of_shape[SHAPE_TEXT];
    tn_status status = random_check_axis(host, attrs->axis, logits->rank, &out->axis);
    if (!status)
        status = random_check_shape(host, &attrs->shape);
    if (status)
        return status;
    tn_ints *batch = &out->batch;
    *batch = (tn_ints){.given = 1};
    for (int32_t i = 0; i < logits->rank; i++)
        if (i != out->axis)
            batch->value[batch->count++] = logits->extent[i];
    out->result = attrs->shape.given ? attrs->shape : *batch;
    bool fits = out->result.count >= batch->count &&
                memcmp(out->result.value + (out->result.count - batch->count), batch->value,
                       batch->count * sizeof(int64_t)) == 0;
    if (!fits)
        return host->fail(
            host, TN_ERR_ARGUMENT, "shape is %s, expected one that ends in %s",
            random_shape_text((int32_t)out->result.count, out->result.value, of_shape),
            random_shape_text((int32_t)batch->count, batch->value, of_batch));
    if (out->result.count == TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT, "shape has %u axes, expected at most %d",
                          out->result.count, TN_MAX_RANK - 1);
    return TN_OK;
}

static tn_array *categorical_noise(const tn_build *build, const tn_rule *rule,
                                   const tn_ints *shape, tn_dtype dtype)
{
    const categorical_attrs *attrs = rule->attrs;
    return build->op(
        build, "random.gumbel/1", TN_IN(rule->inputs[0]),
        tn_attrs("shape", shape, "dtype", (int64_t)dtype, "layout", attrs->layout));
}

// The greatest of logits plus noise, which each sample draws anew: samples are new leading
// axes, or a new last axis.
static tn_array *with_replacement(const tn_build *build, const tn_rule *rule,
                                  tn_array *logits, const struct extents *e)
{
    const categorical_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(logits);
    uint32_t more = e->result.count - e->batch.count;
    bool at_end = attrs->num_samples != -1;
    int64_t from_end = (int64_t)e->axis - type->rank - (at_end ? 1 : 0);
    tn_ints whole = {more, 1, {0}};
    memcpy(whole.value, e->result.value, more * sizeof(int64_t));
    for (int32_t i = 0; i < type->rank; i++)
        whole.value[whole.count++] = type->extent[i];
    if (at_end) {
        whole.value[whole.count++] = attrs->num_samples;
        logits = build->op(build, "base.expand_dims/1", TN_IN(logits),
                           tn_attrs("axis", TN_INTS(-1)));
    }
    tn_array *score = build->expr(
        build, "g, x -> g + x",
        TN_IN(categorical_noise(build, rule, &whole, type->dtype), logits), TN_NO_ATTRS);
    return build->op(build, "base.argmax/1", TN_IN(score), tn_attrs("axis", from_end));
}

// The k greatest of logits plus noise, along leading axes or the last one.
static tn_array *without_replacement(const tn_build *build, const tn_rule *rule,
                                     tn_array *logits, const struct extents *e)
{
    const categorical_attrs *attrs = rule->attrs;
    const tn_type *type = build->type(logits);
    const tn_ints whole = tn_extents(build, logits);
    bool at_end = attrs->num_samples != -1;
    int64_t k = at_end ? attrs->num_samples : 1, n = type->extent[e->axis];
    for (uint32_t i = 0; i < e->result.count - e->batch.count; i++)
        if (!tn_checked_multiply_extents(k, e->result.value[i], &k))
            k = INT64_MAX;
    if (k > n) {
        build->host->fail(build->host, TN_ERR_ARGUMENT,
                          "%" PRId64 " of %" PRId64
                          " categories are to be chosen, expected at most as many without "
                          "replace",
                          k, n);
        return NULL;
    }
    tn_array *score = build->expr(
        build, "g, x -> g + x",
        TN_IN(categorical_noise(build, rule, &whole, type->dtype), logits), TN_NO_ATTRS);
    tn_array *best[2] = {NULL, NULL};
    if (build->op_n(build, "base.topk/1", TN_IN(score),
                    tn_attrs("k", k, "axis", (int64_t)e->axis), best, 2))
        return NULL;
    if (at_end)
        return tn_move_axis(build, best[1], e->axis, type->rank - 1);
    return random_with_shape(build, "base.reshape/1",
                             tn_move_axis(build, best[1], e->axis, 0), &e->result);
}

DECOMPOSE(categorical)
{
    const categorical_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    tn_array *logits = rule->inputs[1];
    struct extents e;
    tn_status status = random_check_key(host, build->type(rule->inputs[0]));
    if (status)
        return status;
    if (!tn_is_float(build->type(logits)->dtype))
        logits = random_cast(build, logits, TN_F32);
    if (!logits)
        return TN_ERR_ARGUMENT;
    if (attrs->num_samples == -1)
        status = find_extents(build, attrs, build->type(logits), &e);
    else if (attrs->num_samples < 0 || attrs->shape.given)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "num_samples is %" PRId64
                            ", expected at least 0, and no shape beside it",
                            attrs->num_samples);
    else
        status = find_extents(build, &(categorical_attrs){.axis = attrs->axis},
                              build->type(logits), &e);
    if (status)
        return status;
    if (build->type(logits)->extent[e.axis] == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "logits have 0 categories along axis %d, expected at least 1",
                          e.axis);
    outputs[0] = attrs->replace ? with_replacement(build, rule, logits, &e)
                                : without_replacement(build, rule, logits, &e);
    return built(outputs[0]);
}

COMPOSITE(categorical, "Numbers of categories, drawn by their logits.",
          TN_INPUTS(categorical_inputs),
          .attrs = TN_ATTR_TABLE(categorical_attrs, categorical_fields));
