// SPDX-License-Identifier: MIT
// cross_entropy of logits and class numbers.
#include "pack.h"

static const tn_input_info cross_entropy_inputs[] = {
    {"logits", "..., classes: unnormalised log-probabilities", 0, 0},
    {"labels", "...: integers; those that are no class are ignored", TN_INPUT_CONSTANT, 0},
};

static tn_status cross_entropy_infer(const tn_infer *infer, tn_type *types)
{
    const tn_host *host = infer->host;
    const tn_type *logits = &infer->types[0], *labels = &infer->types[1];
    tn_status status = check_float(host, "logits", logits);
    if (status)
        return status;
    if (logits->rank == 0 || logits->extent[logits->rank - 1] == 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "logits has no classes, expected a last axis of at least 1");
    if (!tn_dtype_in(labels->dtype, TN_INTEGER_DTYPES))
        return host->fail(host, TN_ERR_ARGUMENT, "labels is %s, expected an integer dtype",
                          tn_dtype_name(labels->dtype));
    status = check_extents(host, "labels", labels, logits->rank - 1, logits->extent);
    if (status)
        return status;
    types[0] = *labels;
    types[0].dtype = logits->dtype;
    return TN_OK;
}

// Minus the log-probability of class `label`, from logits at offset `at` with stride
// `step`. 0 for a label that is no class.
static double loss_of(const tn_tensor *logits, int64_t at, int64_t step, int64_t classes,
                      int64_t label)
{
    double most = -INFINITY, sum = 0;
    if (label < 0 || label >= classes)
        return 0;
    for (int64_t i = 0; i < classes; i++) {
        double v = tn_get_f64(logits, at + i * step);
        most = isnan(v) || v > most ? v : most;
    }
    double shift = isfinite(most) ? most : 0; // as in base.logsumexp
    for (int64_t i = 0; i < classes; i++)
        sum += exp(tn_get_f64(logits, at + i * step) - shift);
    return log(sum) + shift - tn_get_f64(logits, at + label * step);
}

static tn_status cross_entropy_reference(const tn_cpu_call *call)
{
    const tn_tensor *logits = &call->inputs[0], *labels = &call->inputs[1];
    const tn_tensor *out = &call->outputs[0];
    int32_t last = logits->layout.rank - 1;
    int64_t index[TN_MAX_RANK] = {0};
    if (tn_layout_count(&out->layout) == 0)
        return TN_OK;
    do {
        int64_t label = tn_get_i64(labels, tn_offset_at(&labels->layout, index));
        double loss =
            loss_of(logits, tn_offset_at(&logits->layout, index),
                    logits->layout.stride[last], logits->layout.extent[last], label);
        tn_set_f64(out, tn_offset_at(&out->layout, index), loss);
    } while (tn_index_next(last, out->layout.extent, index));
    return TN_OK;
}

// The labels with a last axis of 1, and the class numbers 0, 1, ...: their comparison is
// the one-hot encoding.
struct classes {
    tn_array *labels, *numbers;
    int64_t count;
};

static struct classes classes_of(const tn_build *build, const tn_rule *rule)
{
    const tn_type *logits = build->type(rule->inputs[0]);
    tn_type column = *logits;
    struct classes classes = {.count = logits->extent[logits->rank - 1]};
    column.extent[logits->rank - 1] = 1;
    classes.labels =
        with_shape(build, "base.reshape/1", rule->inputs[1], column.rank, column.extent);
    classes.numbers = build->op(build, "base.arange/1", NULL, 0,
                                tn_attrs("stop", classes.count, "dtype", (int64_t)TN_I64));
    return classes;
}

// Gathers the logits of the labels: for a label that is no class it is any logit, and the
// loss is set to 0.
static tn_status cross_entropy_decompose(const tn_build *build, const tn_rule *rule,
                                         tn_array **outputs)
{
    tn_array *x = rule->inputs[0], *labels = rule->inputs[1];
    tn_dtype dtype = dtype_of(build, x);
    const tn_type *type = build->type(labels);
    if (!type)
        return TN_ERR_ARGUMENT;
    tn_type column = *type;
    column.extent[column.rank++] = 1;
    const tn_type *logits = build->type(x);
    int64_t classes = logits ? logits->extent[logits->rank - 1] : 0;
    tn_array *index =
        with_shape(build, "base.reshape/1", labels, column.rank, column.extent);
    tn_array *own = build->op(build, "base.take_along_axis/1", TN_IN(x, index),
                              tn_attrs("axis", (int64_t)-1));
    if (tn_dtype_computed(dtype) != dtype)
        x = cast(build, x, tn_dtype_computed(dtype));
    tn_array *all = build->op(build, "base.logsumexp/1", TN_IN(x),
                              tn_attrs("axis", TN_INTS(-1), "keepdims", (int64_t)1));
    tn_array *loss =
        build->expr(build, "a, x, l -> select(i64(l) >= 0 & i64(l) < i64(n), a - x, 0)",
                    TN_IN(all, own, index), tn_attrs("n", classes));
    if (dtype_of(build, loss) != dtype)
        loss = cast(build, loss, dtype);
    outputs[0] = with_shape(build, "base.reshape/1", loss, column.rank - 1, column.extent);
    return built(outputs[0]);
}

// (softmax - onehot) * g, in one expression after the softmax.
static tn_status cross_entropy_vjp(const tn_build *build, const tn_rule *rule,
                                   tn_array *const *cotangents, const uint64_t *wanted,
                                   tn_array **gradients)
{
    if (!wants(wanted, 0))
        return TN_OK;
    struct classes classes = classes_of(build, rule);
    const tn_type *column = build->type(classes.labels);
    if (!column)
        return TN_ERR_ARGUMENT;
    tn_array *g =
        with_shape(build, "base.reshape/1", cotangents[0], column->rank, column->extent);
    tn_array *p = build->op(build, "nn.softmax/1", TN_IN(rule->inputs[0]), TN_NO_ATTRS);
    gradients[0] = build->expr(build,
                               "p, l, k, g -> select(i64(l) >= 0 & i64(l) < i64(n), "
                               "select(i64(l) == k, p - 1, p) * g, 0)",
                               TN_IN(p, classes.labels, classes.numbers, g),
                               tn_attrs("n", classes.count));
    return built(gradients[0]);
}

const tn_primitive nn_cross_entropy = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.cross_entropy/1",
    .doc = "Minus the log-probability of each label. A label that is no class costs 0.",
    TN_INPUTS(cross_entropy_inputs),
    .infer = cross_entropy_infer,
    .reference = cross_entropy_reference,
    .decompose = cross_entropy_decompose,
    .vjp = cross_entropy_vjp,
    .vmap = cross_entropy_vmap,
};
