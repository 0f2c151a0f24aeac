// SPDX-License-Identifier: MIT
// scaled_dot_product_attention, and attention_grad, its derivative.
#include "attention.h"
#include <tenon/ops/rules.h>

static const tn_input_info attention_inputs[] = {
    {"q", "queries: ..., heads, L, E", 0, TN_FLOAT_DTYPES},
    {"k", "keys: ..., key-value heads, S, E", 0, TN_FLOAT_DTYPES},
    {"v", "values: ..., key-value heads, S, F", 0, TN_FLOAT_DTYPES},
    {"mask", "bool: which keys are seen; or q's dtype: added to the scores",
     TN_INPUT_OPTIONAL, 0},
    {"lengths", "integers: keys there are, one or one for each index of axis 0",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};
static const tn_input_info attention_grad_inputs[] = {
    {"q", "queries: ..., heads, L, E", 0, TN_FLOAT_DTYPES},
    {"k", "keys: ..., key-value heads, S, E", 0, TN_FLOAT_DTYPES},
    {"v", "values: ..., key-value heads, S, F", 0, TN_FLOAT_DTYPES},
    {"out", "what attention gives: ..., heads, L, F", 0, TN_FLOAT_DTYPES},
    {"gradient", "of out", 0, TN_FLOAT_DTYPES},
    {"mask", "as that of attention", TN_INPUT_OPTIONAL, 0},
    {"lengths", "as those of attention", TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};
static const tn_output_info attention_grad_outputs[] = {
    {"dq", "gradient of q", TN_OUTPUT_OPTIONAL, 0},
    {"dk", "gradient of k", TN_OUTPUT_OPTIONAL, 0},
    {"dv", "gradient of v", TN_OUTPUT_OPTIONAL, 0},
};
static const tn_attr_field attention_fields[] = {
    TN_F64_FIELD(tn_attention_attrs, scale, 0, "of the scores; 0: 1 / sqrt(E)"),
    TN_BOOL_FIELD(tn_attention_attrs, is_causal, 0, "keys up to a query's own position"),
    TN_I64_FIELD(tn_attention_attrs, window, 0, "keys up to a query's position; 0: all"),
    TN_F64_FIELD(tn_attention_attrs, soft_cap, 0, "bound of the scores; 0: none"),
};

// --- types ------------------------------------------------------------------------------

static tn_status check_kv(const tn_host *host, const tn_type *q, const tn_type *k,
                          const tn_type *v)
{
    char a[SHAPE_TEXT], b[SHAPE_TEXT], c[SHAPE_TEXT];
    const tn_type *all[] = {k, v};
    static const char *const names[] = {"k", "v"};
    for (int i = 0; i < 2; i++) {
        tn_status status = check_dtype(host, names[i], all[i], q->dtype);
        if (status)
            return status;
        if (all[i]->rank != q->rank)
            return host->fail(host, TN_ERR_ARGUMENT, "%s has rank %d, expected %d as q",
                              names[i], all[i]->rank, q->rank);
    }
    int fits = attention_extent(q, 1) == attention_extent(k, 1) &&
               attention_extent(k, 2) == attention_extent(v, 2) &&
               attention_extent(k, 3) == attention_extent(v, 3);
    for (int32_t i = 4; i <= q->rank; i++)
        fits &= attention_extent(q, i) == attention_extent(k, i) &&
                attention_extent(q, i) == attention_extent(v, i);
    int64_t heads = attention_extent(q, 3), groups = attention_extent(k, 3);
    if (fits && (groups == heads || (groups > 0 && heads % groups == 0)))
        return TN_OK;
    return host->fail(
        host, TN_ERR_ARGUMENT,
        "q has shape %s, k %s and v %s, expected [..., H, L, E], [..., G, S, E] "
        "and [..., G, S, F] with H a multiple of G",
        shape_text(q, a), shape_text(k, b), shape_text(v, c));
}

// Whether `mask` broadcasts to the extents of the scores.
static int fits_scores(const tn_type *mask, const tn_type *scores)
{
    for (int32_t i = 1; i <= mask->rank; i++)
        if (i > scores->rank || (attention_extent(mask, i) != 1 &&
                                 attention_extent(mask, i) != attention_extent(scores, i)))
            return 0;
    return 1;
}

// Checks input `at`, the mask, and the next one, the lengths.
static tn_status check_masks(const tn_infer *infer, uint32_t at, const tn_type *scores)
{
    const tn_host *host = infer->host;
    char got[SHAPE_TEXT], expected[SHAPE_TEXT];
    const tn_type *mask = infer->num_inputs > at ? &infer->types[at] : NULL;
    const tn_type *lengths = infer->num_inputs > at + 1 ? &infer->types[at + 1] : NULL;
    if (mask && mask->dtype) {
        if (mask->dtype != TN_BOOL && mask->dtype != scores->dtype)
            return host->fail(host, TN_ERR_ARGUMENT, "mask is %s, expected bool or q's %s",
                              tn_dtype_name(mask->dtype), tn_dtype_name(scores->dtype));
        if (!fits_scores(mask, scores))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "mask has shape %s, which does not broadcast to %s",
                              shape_text(mask, got), shape_text(scores, expected));
    }
    if (lengths && lengths->dtype) {
        if (!tn_dtype_in(lengths->dtype, TN_INTEGER_DTYPES))
            return host->fail(host, TN_ERR_ARGUMENT,
                              "lengths is %s, expected an integer dtype",
                              tn_dtype_name(lengths->dtype));
        if (lengths->rank > 1 ||
            (lengths->rank == 1 &&
             (scores->rank < 4 || lengths->extent[0] != scores->extent[0])))
            return host->fail(
                host, TN_ERR_ARGUMENT,
                "lengths has shape %s, expected [], or [N] for the first of 4 "
                "or more axes, in %s",
                shape_text(lengths, got), shape_text(scores, expected));
    }
    return TN_OK;
}

// The type of attention's output; the mask is input `mask`.
static tn_status check_all(const tn_infer *infer, uint32_t mask, tn_type *out)
{
    const tn_host *host = infer->host;
    const tn_attention_attrs *attrs = infer->attrs;
    const tn_type *q = &infer->types[0], *k = &infer->types[1], *v = &infer->types[2];
    if (q->rank < 2)
        return host->fail(host, TN_ERR_ARGUMENT, "q has rank %d, expected 2 or more",
                          q->rank);
    tn_status status = check_kv(host, q, k, v);
    if (status)
        return status;
    if (!isfinite(attrs->scale) || !(attrs->soft_cap >= 0) || attrs->window < 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "scale is %g, soft_cap %g and window %" PRId64
                          ", expected a finite scale, and the others at least 0",
                          attrs->scale, attrs->soft_cap, attrs->window);
    tn_type scores = *q;
    scores.extent[q->rank - 1] = attention_extent(k, 2);
    status = check_masks(infer, mask, &scores);
    if (status)
        return status;
    *out = *q;
    out->extent[q->rank - 1] = attention_extent(v, 1);
    return TN_OK;
}

static tn_status attention_infer(const tn_infer *infer, tn_type *types)
{
    return check_all(infer, ATTENTION_MASK - 2, types);
}

// Checks input `at`, which is `out`, and the next one, its gradient.
static tn_status check_out(const tn_infer *infer, uint32_t at, const tn_type *out)
{
    static const char *const names[] = {"out", "gradient"};
    tn_status status = TN_OK;
    for (uint32_t i = 0; i < 2 && status == TN_OK; i++) {
        const tn_type *given = &infer->types[at + i];
        status = check_dtype(infer->host, names[i], given, out->dtype);
        if (status == TN_OK)
            status = check_extents(infer->host, names[i], given, out->rank, out->extent);
    }
    return status;
}

static tn_status attention_grad_infer(const tn_infer *infer, tn_type *types)
{
    tn_type out;
    tn_status status = check_all(infer, ATTENTION_MASK, &out);
    if (status == TN_OK)
        status = check_out(infer, ATTENTION_OUT, &out);
    for (uint32_t i = 0; i < 3 && status == TN_OK; i++)
        types[i] = infer->types[i];
    return status;
}

// --- rules ------------------------------------------------------------------------------

static tn_status attention_vjp(const tn_build *build, const tn_rule *rule,
                               tn_array *const *cotangents, const uint64_t *wanted,
                               tn_array **gradients)
{
    const uint32_t mask = ATTENTION_MASK - 2;
    tn_array *all[3], *in[7] = {rule->inputs[0], rule->inputs[1], rule->inputs[2],
                                rule->outputs[0], cotangents[0]};
    tn_status status = TN_OK;
    for (uint32_t i = mask; i < rule->num_inputs; i++)
        in[i + 2] = rule->inputs[i];
    if (wants(wanted, 0) || wants(wanted, 1) || wants(wanted, 2))
        status =
            build->op_n(build, "nn.attention_grad/1", (const tn_array *const *)in, 7,
                        ATTENTION_ATTRS((const tn_attention_attrs *)rule->attrs), all, 3);
    for (uint32_t i = 0; i < 3 && status == TN_OK; i++)
        gradients[i] = wants(wanted, i) ? all[i] : NULL;
    if (status == TN_OK && wants(wanted, mask))
        gradients[mask] = attention_mask_gradient(build, rule->attrs, in);
    return status == TN_OK ? built_wanted(wanted, gradients, mask + 1) : status;
}

// Slices of rank 2 get an axis of one head. The batch becomes a further axis in front of
// all others, by views, also for slices that are repeated. Lengths that slices share, and
// that differ along axis 0, need the batch as the next axis; where each slice has such
// lengths, the batch is merged into axis 0, which copies repeated slices.
struct nn_attention_batch {
    const tn_build *build;
    int64_t size;
    int32_t rank, added, at; // of slices; added axes of one head; the batch's axis
    int is_merged;
    int64_t first; // extent of the slices' first axis
};

static tn_array *nn_attention_merge(const struct nn_attention_batch *b, tn_array *x)
{
    tn_ints shape = tn_extents(b->build, x);
    for (uint32_t i = 1; i + 1 < shape.count; i++)
        shape.value[i] = shape.value[i + 1];
    shape.value[0] = b->size * b->first;
    return with_shape(b->build, "base.reshape/1", x, (int32_t)shape.count - 1, shape.value);
}

static tn_array *batch_whole(const struct nn_attention_batch *b, tn_array *x, int32_t axis)
{
    x = tn_batch_whole(b->build, x, axis, b->size);
    if (b->added)
        x = b->build->op(b->build, "base.expand_dims/1", TN_IN(x),
                         tn_attrs("axis", TN_INTS(1)));
    return b->is_merged ? nn_attention_merge(b, x) : tn_move_axis(b->build, x, 0, b->at);
}

// Maps an operand that broadcasts to the scores, so that it still broadcasts.
static tn_array *batch_mask(const struct nn_attention_batch *b, tn_array *x, int32_t axis)
{
    const tn_build *build = b->build;
    const tn_type *type = build->type(x);
    if (!type || (axis < 0 && (type->rank < b->rank || (b->at == 0 && !b->is_merged))))
        return x;
    x = axis < 0
            ? build->op(build, "base.expand_dims/1", TN_IN(x), tn_attrs("axis", TN_INTS(0)))
            : tn_batch_first(build, x, axis, b->rank + 1 + b->added);
    if (!b->is_merged)
        return tn_move_axis(build, x, 0, b->at);
    tn_ints shape = tn_extents(build, x);
    shape.value[0] = b->size;
    shape.value[1] = b->first;
    x = with_shape(build, "base.broadcast_to/1", x, (int32_t)shape.count, shape.value);
    return nn_attention_merge(b, x);
}

static tn_array *batch_lengths(const struct nn_attention_batch *b, tn_array *x,
                               int32_t axis)
{
    return b->is_merged ? nn_attention_merge(b, tn_batch_whole(b->build, x, axis, b->size))
                        : x;
}

// Converts an output to slices of type `slice`.
static tn_array *nn_attention_unbatched(const struct nn_attention_batch *b, tn_array *x,
                                        const tn_type *slice)
{
    int64_t extent[TN_MAX_RANK + 1];
    if (!b->added && !b->is_merged)
        return x;
    extent[0] = b->size;
    memcpy(extent + 1, slice->extent, (size_t)slice->rank * sizeof(*extent));
    return with_shape(b->build, "base.reshape/1", x, slice->rank + 1, extent);
}

// Applies the same primitive to the batch; its first `count` inputs have q's rank.
static tn_status batch_all(const tn_build *build, const tn_rule *rule, const int32_t *axes,
                           int64_t size, const char *primitive, uint32_t count,
                           tn_array **outputs, int32_t *out_axes)
{
    const tn_type *q = build->type(rule->outputs[0]);
    tn_array *in[7] = {NULL}, *out[3];
    tn_array *lengths = rule->num_inputs > count + 1 ? rule->inputs[count + 1] : NULL;
    struct nn_attention_batch b = {
        .build = build, .size = size, .rank = q->rank, .added = q->rank == 2};
    if (lengths) {
        int32_t axis = axes[count + 1], rank = build->type(lengths)->rank - (axis >= 0);
        b.first = q->extent[0];
        b.at = rank == 1 && axis < 0;
        b.is_merged = rank == 1 && axis >= 0;
    }
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        if (rule->inputs[i])
            in[i] = i < count    ? batch_whole(&b, rule->inputs[i], axes[i])
                    : i == count ? batch_mask(&b, rule->inputs[i], axes[i])
                                 : batch_lengths(&b, rule->inputs[i], axes[i]);
    tn_status status = build->op_n(
        build, primitive, (const tn_array *const *)in, rule->num_inputs,
        ATTENTION_ATTRS((const tn_attention_attrs *)rule->attrs), out, rule->num_outputs);
    for (uint32_t i = 0; i < rule->num_outputs && status == TN_OK; i++) {
        outputs[i] = nn_attention_unbatched(&b, out[i], build->type(rule->outputs[i]));
        out_axes[i] = b.at;
        status = built(outputs[i]);
    }
    return status;
}

static tn_status attention_vmap(const tn_build *build, const tn_rule *rule,
                                const int32_t *axes, int64_t size, tn_array **outputs,
                                int32_t *out_axes)
{
    return batch_all(build, rule, axes, size, "nn.scaled_dot_product_attention/1",
                     ATTENTION_MASK - 2, outputs, out_axes);
}

static tn_status attention_grad_vmap(const tn_build *build, const tn_rule *rule,
                                     const int32_t *axes, int64_t size, tn_array **outputs,
                                     int32_t *out_axes)
{
    return batch_all(build, rule, axes, size, "nn.attention_grad/1", ATTENTION_MASK,
                     outputs, out_axes);
}

const tn_primitive nn_scaled_dot_product_attention = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.scaled_dot_product_attention/1",
    .doc = "Means of values, weighed by the softmax of queries times keys.",
    TN_INPUTS(attention_inputs),
    .attrs = TN_ATTR_TABLE(tn_attention_attrs, attention_fields),
    .infer = attention_infer,
    .decompose = attention_decompose,
    .vjp = attention_vjp,
    .vmap = attention_vmap,
};

static const tn_input_info sinks_inputs[] = {
    {"q", "queries: ..., heads, L, E", 0, TN_FLOAT_DTYPES},
    {"k", "keys: ..., key-value heads, S, E", 0, TN_FLOAT_DTYPES},
    {"v", "values: ..., key-value heads, S, F", 0, TN_FLOAT_DTYPES},
    {"sinks", "heads: a score more for each, of no key", 0, TN_FLOAT_DTYPES},
    {"mask", "as that of attention", TN_INPUT_OPTIONAL, 0},
    {"lengths", "as those of attention", TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};

static tn_status check_sinks(const tn_infer *infer)
{
    const tn_type *q = &infer->types[0], *sinks = &infer->types[SINKS_SINKS];
    int64_t heads = attention_extent(q, 3);
    tn_status status = check_dtype(infer->host, "sinks", sinks, q->dtype);
    return status ? status : check_extents(infer->host, "sinks", sinks, 1, &heads);
}

static tn_status attention_with_sinks_infer(const tn_infer *infer, tn_type *types)
{
    tn_type out;
    tn_status status = check_all(infer, 4, &out);
    if (status == TN_OK)
        status = check_sinks(infer);
    if (status == TN_OK)
        types[0] = out;
    return status;
}

const tn_primitive nn_attention_with_sinks = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.attention_with_sinks/1",
    .doc = "scaled_dot_product_attention whose softmax has a term more, exp(sink).",
    TN_INPUTS(sinks_inputs),
    .attrs = TN_ATTR_TABLE(tn_attention_attrs, attention_fields),
    .infer = attention_with_sinks_infer,
    .decompose = attention_with_sinks_decompose,
    .vjp = attention_with_sinks_vjp,
};

static const tn_input_info sinks_grad_inputs[] = {
    {"q", "queries: ..., heads, L, E", 0, TN_FLOAT_DTYPES},
    {"k", "keys: ..., key-value heads, S, E", 0, TN_FLOAT_DTYPES},
    {"v", "values: ..., key-value heads, S, F", 0, TN_FLOAT_DTYPES},
    {"sinks", "heads: a score more for each, of no key", 0, TN_FLOAT_DTYPES},
    {"out", "what attention_with_sinks gives: ..., heads, L, F", 0, TN_FLOAT_DTYPES},
    {"gradient", "of out", 0, TN_FLOAT_DTYPES},
    {"mask", "as that of attention", TN_INPUT_OPTIONAL, 0},
    {"lengths", "as those of attention", TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};
static const tn_output_info sinks_grad_outputs[] = {
    {"dq", "gradient of q", TN_OUTPUT_OPTIONAL, 0},
    {"dk", "gradient of k", TN_OUTPUT_OPTIONAL, 0},
    {"dv", "gradient of v", TN_OUTPUT_OPTIONAL, 0},
    {"slopes", "..., heads, L: what each query gives its sink", TN_OUTPUT_OPTIONAL, 0},
};

static tn_status attention_with_sinks_grad_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *q = &infer->types[0];
    tn_type out;
    tn_status status = check_all(infer, SINKS_MASK, &out);
    if (status == TN_OK)
        status = check_sinks(infer);
    if (status == TN_OK)
        status = check_out(infer, SINKS_OUT, &out);
    if (status)
        return status;
    for (uint32_t i = 0; i < 3; i++)
        types[i] = infer->types[i];
    types[3] = *q;
    types[3].rank--;
    types[3].extent[types[3].rank] = 0;
    types[3].dtype = tn_dtype_computed(q->dtype);
    return TN_OK;
}

const tn_primitive nn_attention_with_sinks_grad = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.attention_with_sinks_grad/1",
    .doc =
        "Derivatives of attention_with_sinks in q, k and v, and what queries give sinks.",
    TN_INPUTS(sinks_grad_inputs),
    TN_OUTPUTS(sinks_grad_outputs),
    .attrs = TN_ATTR_TABLE(tn_attention_attrs, attention_fields),
    .infer = attention_with_sinks_grad_infer,
    .decompose = attention_with_sinks_grad_decompose,
};

const tn_primitive nn_attention_grad = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.attention_grad/1",
    .doc = "Derivatives of scaled_dot_product_attention in q, k and v.",
    TN_INPUTS(attention_grad_inputs),
    TN_OUTPUTS(attention_grad_outputs),
    .attrs = TN_ATTR_TABLE(tn_attention_attrs, attention_fields),
    .infer = attention_grad_infer,
    .decompose = attention_grad_decompose,
    .vmap = attention_grad_vmap,
};
