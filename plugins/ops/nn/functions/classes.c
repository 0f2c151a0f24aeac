// SPDX-License-Identifier: MIT
// Losses of classes: nll_loss and cross_entropy with weights, label smoothing and ignored
// labels.
#include "losses.h"

typedef struct {
    int64_t axis, ignore_index, reduction;
    double label_smoothing;
} class_attrs;

#define CLASS_FIELDS(absent)                                                               \
    TN_I64_FIELD(class_attrs, axis, -1, "of classes; PyTorch's is 1"),                     \
        TN_I64_FIELD(class_attrs, ignore_index, -100, "a label whose samples cost 0"),     \
        TN_CHOICE_FIELD(class_attrs, reduction, absent, loss_reductions,                   \
                        "of each sample; their mean by weights; their sum")
static const tn_attr_field nll_fields[] = {CLASS_FIELDS(REDUCE_MEAN)};
static const tn_attr_field cross_entropy_fields[] = {
    CLASS_FIELDS(REDUCE_NONE),
    TN_F64_FIELD(class_attrs, label_smoothing, 0, "share that all classes have alike"),
};
#define CLASS_WEIGHT                                                                       \
    {                                                                                      \
        "weight", "one factor a class", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES                 \
    }
static const tn_input_info nll_inputs[] = {
    {"x", "..., classes: logarithms of probabilities", 0, TN_FLOAT_DTYPES},
    {"labels", "...: integers; those that are no class are ignored", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
    CLASS_WEIGHT,
};
static const tn_input_info cross_entropy_inputs[] = {
    {"logits", "..., classes: unnormalised log-probabilities", 0, TN_FLOAT_DTYPES},
    {"labels", "...: integers, others are ignored; or probabilities of logits' shape", 0,
     TN_INTEGER_DTYPES | TN_FLOAT_DTYPES},
    CLASS_WEIGHT,
};

// Logits with classes along the last axis; a weight for each class, NULL: 1.
struct samples {
    tn_array *logits, *labels, *weight;
    int64_t classes;
    int is_shares; // labels are probabilities
};

static tn_status read_samples(const tn_build *build, const tn_rule *rule,
                              struct samples *out)
{
    const class_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]), *y = build->type(rule->inputs[1]);
    int32_t axis, last = x->rank - 1;
    tn_status status = axis_within(host, attrs->axis, x->rank, &axis);
    if (status)
        return status;
    tn_type of_labels = {.rank = last};
    for (int32_t i = 0; i < last; i++)
        of_labels.extent[i] = x->extent[i + (i >= axis)];
    *out = (struct samples){rule->inputs[0], rule->inputs[1],
                            rule->num_inputs > 2 ? rule->inputs[2] : NULL, x->extent[axis],
                            !tn_dtype_in(y->dtype, TN_INTEGER_DTYPES)};
    if (out->classes == 0)
        return host->fail(host, TN_ERR_ARGUMENT, "there are no classes along axis %d",
                          axis);
    if (out->is_shares) {
        status = check_dtype(host, "labels", y, x->dtype);
        if (status == TN_OK)
            status = check_extents(host, "labels", y, x->rank, x->extent);
        if (status)
            return status;
        out->labels = tn_move_axis(build, out->labels, axis, last);
    } else {
        status = check_extents(host, "labels", y, last, of_labels.extent);
    }
    if (status == TN_OK && out->weight)
        status = check_dtype(host, "weight", build->type(out->weight), x->dtype);
    if (status == TN_OK && out->weight)
        status = check_extents(host, "weight", build->type(out->weight), 1, &out->classes);
    if (status == TN_OK)
        out->logits = tn_move_axis(build, out->logits, axis, last);
    return status;
}

// Whether each sample's label is a class that is not ignored.
static tn_array *counted_samples(const tn_build *build, const tn_rule *rule,
                                 const struct samples *s)
{
    const class_attrs *attrs = rule->attrs;
    return build->expr(build, "l -> k = i64(l); k >= 0 & k < n & k != ignored",
                       TN_IN(s->labels),
                       tn_attrs("n", s->classes, "ignored", attrs->ignore_index));
}

// The weight of each sample's label; 0 for a label that does not count.
static tn_array *weights_of(const tn_build *build, const struct samples *s,
                            tn_array *counts)
{
    if (!s->weight)
        return cast(build, counts, dtype_of(build, s->logits));
    tn_array *own = build->op(build, "base.take/1", TN_IN(s->weight, s->labels),
                              tn_attrs("axis", (int64_t)0));
    return build->expr(build, "c, w -> select(c, w, 0)", TN_IN(counts, own), TN_NO_ATTRS);
}

// Minus the log-probability of each label, from `logs`; that of any class for a label that
// is no class.
static tn_array *own_of(const tn_build *build, const struct samples *s, tn_array *logs)
{
    tn_array *column = build->op(build, "base.expand_dims/1", TN_IN(s->labels),
                                 tn_attrs("axis", TN_INTS(-1)));
    tn_array *own = build->op(build, "base.take_along_axis/1", TN_IN(logs, column),
                              tn_attrs("axis", (int64_t)-1));
    own = build->op(build, "base.squeeze/1", TN_IN(own), tn_attrs("axis", TN_INTS(-1)));
    return build->expr(build, "x -> -x", TN_IN(own), TN_NO_ATTRS);
}

// Replaces the losses of samples that do not count by 0, even infinite ones.
static tn_array *where_counted(const tn_build *build, tn_array *counts, tn_array *loss,
                               tn_array *weights)
{
    return build->expr(build, "c, l, w -> select(c, l * w, 0)",
                       TN_IN(counts, loss, weights), TN_NO_ATTRS);
}

DECOMPOSE(nll_loss)
{
    const class_attrs *attrs = rule->attrs;
    struct samples s;
    tn_status status = read_samples(build, rule, &s);
    if (status)
        return status;
    tn_array *counts = counted_samples(build, rule, &s);
    tn_array *weights = weights_of(build, &s, counts);
    tn_array *loss = where_counted(build, counts, own_of(build, &s, s.logits), weights);
    outputs[0] = reduced_by_weights(build, loss, weights, attrs->reduction);
    return built(outputs[0]);
}

// Minus the weighted sum over classes of their log-probabilities.
static tn_array *all_classes(const tn_build *build, tn_array *logs, const struct samples *s)
{
    tn_array *terms = s->weight ? build->expr(build, "x, w -> -x * w",
                                              TN_IN(logs, s->weight), TN_NO_ATTRS)
                                : build->expr(build, "x -> -x", TN_IN(logs), TN_NO_ATTRS);
    return summed_over(build, terms, -1, 0);
}

static tn_array *log_softmax_of(const tn_build *build, const struct samples *s)
{
    return build->op(build, "nn.log_softmax/1", TN_IN(s->logits), TN_NO_ATTRS);
}

// The loss of labels that are probabilities; their mean divides by the number of samples.
static tn_status entropy_of_shares(const tn_build *build, const struct samples *s,
                                   const class_attrs *attrs, tn_array **out)
{
    tn_array *weight =
        s->weight ? s->weight : build->scalar(build, dtype_of(build, s->logits), 1);
    tn_array *terms =
        build->expr(build, "x, y, w -> -x * (y * (1 - even) + even / n) * w",
                    TN_IN(log_softmax_of(build, s), s->labels, weight),
                    tn_attrs("even", attrs->label_smoothing, "n", (double)s->classes));
    *out = reduced_loss(build, summed_over(build, terms, -1, 0), attrs->reduction);
    return built(*out);
}

DECOMPOSE(cross_entropy_2)
{
    const class_attrs *attrs = rule->attrs;
    double e = attrs->label_smoothing;
    struct samples s;
    tn_status status = read_samples(build, rule, &s);
    if (status)
        return status;
    if (!(e >= 0 && e <= 1))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "label_smoothing is %g, expected 0 to 1", e);
    if (s.is_shares)
        return entropy_of_shares(build, &s, attrs, outputs);
    int is_known = attrs->ignore_index >= 0 && attrs->ignore_index < s.classes;
    tn_array *loss =
        build->op(build, "nn.cross_entropy/1", TN_IN(s.logits, s.labels), TN_NO_ATTRS);
    if (!s.weight && e == 0 && !is_known && attrs->reduction != REDUCE_MEAN) {
        outputs[0] = reduced_loss(build, loss, attrs->reduction);
        return built(outputs[0]);
    }
    tn_array *counts = counted_samples(build, rule, &s);
    tn_array *weights = weights_of(build, &s, counts);
    loss = where_counted(build, counts, loss, weights);
    if (e > 0)
        loss = build->expr(
            build, "c, l, a -> select(c, (1 - even) * l + a * (even / n), 0)",
            TN_IN(counts, loss, all_classes(build, log_softmax_of(build, &s), &s)),
            tn_attrs("even", e, "n", (double)s.classes));
    outputs[0] = reduced_by_weights(build, loss, weights, attrs->reduction);
    return built(outputs[0]);
}

COMPOSITE(nll_loss, "nll_loss/1", "Minus x at each label, by the label's weight.",
          TN_INPUTS(nll_inputs), .attrs = TN_ATTR_TABLE(class_attrs, nll_fields));
COMPOSITE(cross_entropy_2, "cross_entropy/2",
          "Minus the log-probability of each label. A label that is no class costs 0.",
          TN_INPUTS(cross_entropy_inputs),
          .attrs = TN_ATTR_TABLE(class_attrs, cross_entropy_fields));
