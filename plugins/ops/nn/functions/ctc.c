// SPDX-License-Identifier: MIT
// ctc_loss (Graves et al., "Connectionist temporal classification", 2006): the probability
// of all alignments of a label sequence, by a scan over positions, in logarithms.
#include "losses.h"

typedef struct {
    int64_t blank, reduction, zero_infinity;
} ctc_attrs;
static const tn_attr_field ctc_fields[] = {
    TN_I64_FIELD(ctc_attrs, blank, 0, "the class that is no label"),
    REDUCTION_FIELD(ctc_attrs),
    TN_BOOL_FIELD(ctc_attrs, zero_infinity, 0,
                  "labels that have no alignment cost 0, not infinity"),
};
static const tn_input_info ctc_inputs[] = {
    {"log_probs", "T, N, C: logarithms of probabilities, or T, C", 0, TN_FLOAT_DTYPES},
    {"targets", "N, S, or S: labels; or all of them in one row", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
    {"input_lengths", "N, or a number: how many of T count", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
    {"target_lengths", "N, or a number: how many of S count", TN_INPUT_CONSTANT,
     TN_INTEGER_DTYPES},
};

// The logarithm of 0: below any sum of logarithms, and finite, so that differences are not
// NaN.
#define NEVER -1e30

// N samples, T positions, S labels, and 2 S + 1 states: a blank before and behind each
// label.
struct alignments {
    int64_t samples, positions, labels, classes, states;
    tn_array *logs;       // T, N, C
    tn_array *lengths[2]; // N, 1: number of positions, of labels; i64
    tn_array *classes_of; // N, states: i64
    tn_array *may_skip;   // N, states: whether the blank before the state may be skipped
};

// Row s of the result is row s - by of `x` (N, states); NEVER where there is none.
static tn_array *ctc_shifted(const tn_build *build, tn_array *x, int64_t by, int64_t states)
{
    x = part_of_axis(build, x, 1, 0, 1, states - by);
    return build->op(
        build, "base.pad_constant/1", TN_IN(x),
        tn_attrs("before", TN_INTS(0, by), "after", TN_INTS(0, 0), "value", NEVER));
}

// Inputs: alpha, the logarithms of the probability of reaching each state; the logarithms
// of its class here; whether this position counts; may_skip.
static tn_status one_step(const tn_build *build, tn_array *const *inputs,
                          uint64_t num_inputs, tn_array **outputs, uint64_t num_outputs,
                          void *user)
{
    const struct alignments *a = user;
    (void)num_inputs;
    tn_array *alpha = inputs[0], *sum = alpha;
    if (a->states > 1) {
        tn_array *skip = a->states > 2 ? ctc_shifted(build, alpha, 2, a->states) : alpha;
        sum = build->expr(
            build,
            "a, b, c, k -> d = k ? c : -1e30; m = max(max(a, b), d); "
            "m + log(exp(a - m) + exp(b - m) + exp(d - m))",
            TN_IN(alpha, ctc_shifted(build, alpha, 1, a->states), skip, inputs[3]),
            TN_NO_ATTRS);
    }
    for (uint64_t i = 0; i < num_outputs; i++)
        outputs[i] = build->expr(build, "s, e, a, t -> t ? max(s + e, -1e30) : a",
                                 TN_IN(sum, inputs[1], alpha, inputs[2]), TN_NO_ATTRS);
    return built(outputs[0]);
}

// --- inputs -----------------------------------------------------------------------------

static tn_status read_alignments(const tn_build *build, const tn_rule *rule,
                                 struct alignments *a)
{
    const ctc_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]), *y = build->type(rule->inputs[1]);
    if (x->rank != 2)
        if (check_rank(host, "log_probs", x, 3, "T, N, C, or 2: T, C"))
            return TN_ERR_ARGUMENT;
    int is_batch = x->rank == 3;
    *a = (struct alignments){.samples = is_batch ? x->extent[1] : 1,
                             .positions = x->extent[0],
                             .classes = x->extent[x->rank - 1]};
    int64_t n = a->samples;
    if (attrs->blank < 0 || attrs->blank >= a->classes)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "blank is %" PRId64 ", expected one of %" PRId64 " classes",
                          attrs->blank, a->classes);
    if (y->rank != 1 && (!is_batch || y->rank != 2 || y->extent[0] != n))
        return check_extents(
            host, "targets", y, 1 + is_batch,
            (int64_t[]){is_batch ? n : y->extent[0], y->rank > 1 ? y->extent[1] : 0});
    a->labels = y->extent[y->rank - 1];
    if (a->labels > INT16_MAX)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "targets has %" PRId64 " labels, expected at most %d", a->labels,
                          INT16_MAX);
    a->states = 2 * a->labels + 1;
    for (int i = 0; i < 2; i++) {
        static const char *const names[] = {"input_lengths", "target_lengths"};
        const tn_type *type = build->type(rule->inputs[2 + i]);
        tn_status status = type->rank == 0 && !is_batch
                               ? TN_OK
                               : check_extents(host, names[i], type, 1, &n);
        if (status)
            return status;
        a->lengths[i] = cast(
            build,
            with_shape(build, "base.reshape/1", rule->inputs[2 + i], 2, (int64_t[]){n, 1}),
            TN_I64);
    }
    a->logs = is_batch ? rule->inputs[0]
                       : with_shape(build, "base.reshape/1", rule->inputs[0], 3,
                                    (int64_t[]){a->positions, 1, a->classes});
    return TN_OK;
}

// Labels N, S; where the samples' labels are one row, they follow each other in it.
static tn_array *ctc_labels_of(const tn_build *build, const tn_rule *rule,
                               const struct alignments *a)
{
    tn_array *y = rule->inputs[1];
    const tn_type *type = build->type(y);
    if (type->rank == 2 || a->samples == 1)
        return with_shape(build, "base.reshape/1", y, 2,
                          (int64_t[]){a->samples, a->labels});
    tn_array *ends = build->op(build, "base.cumsum/1", TN_IN(a->lengths[1]),
                               tn_attrs("axis", (int64_t)0));
    tn_array *indices =
        build->expr(build, "e, l, s -> e - l + s",
                    TN_IN(ends, a->lengths[1], counted(build, a->labels, 0)), TN_NO_ATTRS);
    return build->op(build, "base.take/1", TN_IN(y, indices), tn_attrs("axis", (int64_t)0));
}

// Makes the class of each state, and whether the blank before it may be skipped.
static void ctc_make_states(const tn_build *build, const tn_rule *rule,
                            struct alignments *a)
{
    const ctc_attrs *attrs = rule->attrs;
    const int64_t one[2] = {a->samples, 1};
    tn_array *blank =
        build->expr(build, "z -> z + blank", TN_IN(zeros(build, TN_I64, 2, one)),
                    tn_attrs("blank", attrs->blank));
    if (a->labels == 0) {
        a->classes_of = blank;
        a->may_skip = build->expr(build, "b -> b != b", TN_IN(blank), TN_NO_ATTRS);
        return;
    }
    tn_array *labels = cast(build, ctc_labels_of(build, rule, a), TN_I64);
    tn_array *all = build->expr(build, "l, s -> s == 0 ? blank : l",
                                TN_IN(build->op(build, "base.expand_dims/1", TN_IN(labels),
                                                tn_attrs("axis", TN_INTS(-1))),
                                      counted(build, 2, 0)),
                                tn_attrs("blank", attrs->blank));
    all =
        with_shape(build, "base.reshape/1", all, 2, (int64_t[]){a->samples, 2 * a->labels});
    a->classes_of = build->op(build, "base.concatenate/1", TN_IN(all, blank),
                              tn_attrs("axis", (int64_t)1));
    tn_array *before = part_of_axis(build, a->classes_of, 1, 0, 1, a->states - 2);
    before = build->op(build, "base.pad_constant/1", TN_IN(before),
                       tn_attrs("before", TN_INTS(0, 2), "after", TN_INTS(0, 0)));
    a->may_skip = build->expr(build, "c, b, s -> s >= 2 & c != blank & c != b",
                              TN_IN(a->classes_of, before, counted(build, a->states, 0)),
                              tn_attrs("blank", attrs->blank));
}

// alpha after the last position that counts: N, states.
static tn_array *last_alpha(const tn_build *build, struct alignments *a)
{
    const int64_t whole[3] = {a->positions, a->samples, a->states};
    tn_array *classes = with_shape(build, "base.broadcast_to/1", a->classes_of, 3, whole);
    tn_array *given = build->op(build, "base.take_along_axis/1", TN_IN(a->logs, classes),
                                tn_attrs("axis", (int64_t)2));
    given = build->expr(build, "l -> max(l, -1e30)", TN_IN(given), TN_NO_ATTRS);
    tn_array *counts =
        build->expr(build, "n, t -> t < n",
                    TN_IN(a->lengths[0], counted(build, a->positions, 2)), TN_NO_ATTRS);
    // Before the first position all probability is at the blank before the first label.
    tn_array *alpha =
        build->expr(build, "z, s -> s == 0 ? 0 : -1e30",
                    TN_IN(zeros(build, dtype_of(build, a->logs), 2, &whole[1]),
                          counted(build, a->states, 0)),
                    TN_NO_ATTRS);
    alpha = cast(build, alpha, dtype_of(build, a->logs));
    const tn_array *const in[4] = {alpha, given, counts, a->may_skip};
    tn_type types[4];
    for (int i = 0; i < 4; i++) {
        const tn_type *type = build->type(in[i]);
        if (!type)
            return NULL;
        types[i] = *type;
    }
    types[1] = (tn_type){types[1].dtype, 2, {a->samples, a->states}};
    types[2] = (tn_type){TN_BOOL, 2, {a->samples, 1}};
    const tn_graph *body = build->trace(build, one_step, a, types, 4, 1, NULL);
    tn_array *results[2]; // the last alpha; alphas for the derivatives
    if (build->op_n(build, "base.scan/1", in, 4,
                    tn_attrs("body", body, "carries", (int64_t)1, "slices", (int64_t)2,
                             "length", a->positions),
                    results, 2))
        return NULL;
    return results[0];
}

DECOMPOSE(ctc_loss)
{
    const ctc_attrs *attrs = rule->attrs;
    struct alignments a;
    tn_status status = read_alignments(build, rule, &a);
    if (status)
        return status;
    tn_dtype dtype = dtype_of(build, a.logs), wide = tn_dtype_computed(dtype);
    if (wide != dtype)
        a.logs = cast(build, a.logs, wide);
    ctc_make_states(build, rule, &a);
    tn_array *alpha = last_alpha(build, &a), *ends[2];
    // The last label and the blank behind it.
    for (int64_t i = 0; i < 2; i++)
        ends[i] =
            build->op(build, "base.take_along_axis/1",
                      TN_IN(alpha, build->expr(build, "n -> max(2 * n - i, 0)",
                                               TN_IN(a.lengths[1]), tn_attrs("i", i))),
                      tn_attrs("axis", (int64_t)1));
    tn_array *loss =
        build->expr(build,
                    "a, b, n -> c = n > 0 ? b : -1e30; m = max(a, c); "
                    "l = -(m + log(exp(a - m) + exp(c - m))); l > 1e29 ? over : l",
                    TN_IN(ends[0], ends[1], a.lengths[1]),
                    tn_attrs("over", attrs->zero_infinity ? 0.0 : INFINITY));
    loss = with_shape(build, "base.reshape/1", loss, 1, &a.samples);
    if (attrs->reduction == REDUCE_MEAN)
        loss = build->expr(build, "l, n -> l / max(n, 1)",
                           TN_IN(loss, cast(build,
                                            with_shape(build, "base.reshape/1",
                                                       a.lengths[1], 1, &a.samples),
                                            wide)),
                           TN_NO_ATTRS);
    if (attrs->reduction == REDUCE_NONE && build->type(rule->inputs[0])->rank == 2)
        loss = with_shape(build, "base.reshape/1", loss, 0, &a.samples);
    loss = reduced_loss(build, loss, attrs->reduction);
    outputs[0] = wide != dtype ? cast(build, loss, dtype) : loss;
    return built(outputs[0]);
}
COMPOSITE(ctc_loss, "ctc_loss/1",
          "Minus the log-probability of labels over all alignments with positions.",
          TN_INPUTS(ctc_inputs), .attrs = TN_ATTR_TABLE(ctc_attrs, ctc_fields));
