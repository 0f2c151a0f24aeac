// SPDX-License-Identifier: MIT
// Positions in sorted arrays, and counts: searchsorted, digitize, isin, bincount, histogram
// and its forms.
#include "../pack.h"

// --- searchsorted -----------------------------------------------------------------------

typedef struct {
    int64_t right;
} search_attrs;

static const char *const sides[] = {"left", "right", NULL};
static const tn_input_info search_inputs[] = {
    {"a", "a vector in ascending order", TN_INPUT_CONSTANT, 0},
    {"v", "what to find an index for", TN_INPUT_CONSTANT, 0},
};
typedef struct {
    int64_t side;
} searchsorted_attrs;
static const tn_attr_field searchsorted_fields[] = {
    TN_CHOICE_FIELD(searchsorted_attrs, side, 0, sides,
                    "left: before equal elements; right: behind them"),
};

// The number of elements of the sorted vector that are less than v, or with `right` not
// greater: by bisection, one step for each bit of the answer. NaN is greater than all
// numbers, as in sort.
static tn_array *search_positions(const tn_build *build, tn_array *a, tn_array *v,
                                  int right)
{
    const tn_type *type = build->type(a), *of_v = build->type(v);
    if (!type || !of_v)
        return NULL;
    tn_dtype dtype = tn_dtype_promote(type->dtype, of_v->dtype);
    int64_t n = type->extent[0], step = 1;
    const tn_ints shape = tn_extents(build, v);
    // 32-bit counts, where they suffice, halve the arithmetic.
    const tn_dtype counts = n < INT32_MAX / 2 ? TN_I32 : TN_I64;
    tn_array *at = build->op(build, "base.full/1", NULL, 0,
                             tn_attrs("shape", &shape, "dtype", (int64_t)counts));
    while (step <= n / 2)
        step *= 2;
    a = as_dtype(build, a, dtype);
    v = as_dtype(build, v, dtype);
    int is_float = tn_is_float(dtype);
    const char *text = is_float && right ? "x, v, at -> (x <= v | isnan(v))"
                       : is_float        ? "x, v, at -> (x < v | isnan(v) & !isnan(x))"
                       : right           ? "x, v, at -> x <= v"
                                         : "x, v, at -> x < v";
    tn_array *most = build->scalar(build, counts, (double)n);
    for (; n > 0 && step > 0; step /= 2) {
        tn_array *next =
            build->expr(build, "at, step -> at + step",
                        TN_IN(at, build->scalar(build, counts, (double)step)), TN_NO_ATTRS);
        tn_array *last = build->expr(build, "i -> i - 1", TN_IN(next), TN_NO_ATTRS);
        tn_array *x = build->op(build, "base.take/1", TN_IN(a, last), TN_NO_ATTRS);
        tn_array *is_less = build->expr(build, text, TN_IN(x, v, at), TN_NO_ATTRS);
        at = build->expr(build, "is, next, at, n -> is & next <= n ? next : at",
                         TN_IN(is_less, next, at, most), TN_NO_ATTRS);
    }
    return as_dtype(build, at, TN_I64);
}

static tn_status search_check_vector(const tn_host *host, const char *name,
                                     const tn_type *type)
{
    if (type->rank == 1)
        return TN_OK;
    return host->fail(host, TN_ERR_ARGUMENT, "%s has rank %d, expected 1", name,
                      type->rank);
}

DECOMPOSE(searchsorted)
{
    const searchsorted_attrs *attrs = rule->attrs;
    tn_status status = search_check_vector(build->host, "a", build->type(rule->inputs[0]));
    if (status)
        return status;
    outputs[0] =
        search_positions(build, rule->inputs[0], rule->inputs[1], attrs->side == 1);
    return built(outputs[0]);
}

COMPOSITE(searchsorted, "Where elements would be put into a sorted vector: i64.",
          TN_INPUTS(search_inputs),
          .attrs = TN_ATTR_TABLE(searchsorted_attrs, searchsorted_fields));

static const tn_input_info digitize_inputs[] = {
    {"x", "the numbers", TN_INPUT_CONSTANT, 0},
    {"bins", "edges in ascending order: a vector", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field digitize_fields[] = {
    TN_BOOL_FIELD(search_attrs, right, 0, "the right edge belongs to a bin, not the left"),
};

DECOMPOSE(digitize)
{
    const search_attrs *attrs = rule->attrs;
    tn_status status =
        search_check_vector(build->host, "bins", build->type(rule->inputs[1]));
    if (status)
        return status;
    outputs[0] = search_positions(build, rule->inputs[1], rule->inputs[0], !attrs->right);
    return built(outputs[0]);
}

COMPOSITE(digitize, "The numbers of the bins that elements of x fall into: i64.",
          TN_INPUTS(digitize_inputs),
          .attrs = TN_ATTR_TABLE(search_attrs, digitize_fields));

typedef struct {
    int64_t invert;
} isin_attrs;
static const tn_input_info isin_inputs[] = {
    {"x", "the elements", TN_INPUT_CONSTANT, 0},
    {"values", "which to look for", TN_INPUT_CONSTANT, 0},
};
static const tn_attr_field isin_fields[] = {
    TN_BOOL_FIELD(isin_attrs, invert, 0, "whether they are not among the values"),
};

DECOMPOSE(isin)
{
    const isin_attrs *attrs = rule->attrs;
    tn_array *values = build->op(build, "base.sort/1",
                                 TN_IN(flattened(build, rule->inputs[1])), TN_NO_ATTRS);
    outputs[0] = build->expr(build, attrs->invert ? "a, b -> a == b" : "a, b -> a != b",
                             TN_IN(search_positions(build, values, rule->inputs[0], 0),
                                   search_positions(build, values, rule->inputs[0], 1)),
                             TN_NO_ATTRS);
    const tn_type *x = build->type(rule->inputs[0]);
    if (outputs[0] && tn_is_float(x->dtype)) // NaN equals no element
        outputs[0] = build->expr(
            build, attrs->invert ? "o, x -> o | isnan(x)" : "o, x -> o & !isnan(x)",
            TN_IN(outputs[0], rule->inputs[0]), TN_NO_ATTRS);
    return built(outputs[0]);
}

COMPOSITE(isin, "Whether elements of x are among the values.", TN_INPUTS(isin_inputs),
          .attrs = TN_ATTR_TABLE(isin_attrs, isin_fields));

// --- bincount and histogram -------------------------------------------------------------

typedef struct {
    int64_t length;
} bincount_attrs;

static const tn_input_info bincount_inputs[] = {
    {"x", "integers that are not negative: a vector", TN_INPUT_CONSTANT, 0},
    {"weights", "what each counts; not given: 1", TN_INPUT_OPTIONAL, 0},
};
static const tn_attr_field bincount_fields[] = {
    TN_REQUIRED_FIELD(bincount_attrs, length, TN_ATTR_I64,
                      "elements of the result: numbers from it on are left out"),
};

// `length` sums of `weights`, or counts, by the bin numbers `at`; numbers out of range are
// dropped.
static tn_array *search_counts(const tn_build *build, tn_array *at, tn_array *weights,
                               int64_t length)
{
    tn_dtype dtype = weights && build->type(weights) ? build->type(weights)->dtype : TN_I64;
    const tn_ints shape = {1, 1, {length}}, extents = tn_extents(build, at);
    tn_array *none = build->op(build, "base.full/1", NULL, 0,
                               tn_attrs("shape", &shape, "dtype", (int64_t)dtype));
    if (!weights)
        weights = with_shape(build, "base.broadcast_to/1", build->scalar(build, TN_I64, 1),
                             extents);
    return build->op(build, "base.scatter_add/1", TN_IN(none, at, weights), TN_NO_ATTRS);
}

static const tn_type *bincount_weights(const tn_type *types, uint64_t num_inputs)
{
    return num_inputs > 1 && types[1].dtype ? &types[1] : NULL;
}

static tn_status bincount_infer(const tn_infer *infer, tn_type *types)
{
    const bincount_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0],
                  *w = bincount_weights(infer->types, infer->num_inputs);
    tn_status status = search_check_vector(host, "x", x);
    if (status == TN_OK && attrs->length < 0)
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "length is %" PRId64 ", expected at least 0", attrs->length);
    if (status == TN_OK && w && (w->rank != 1 || w->extent[0] != x->extent[0]))
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "weights has %" PRId64 " elements and rank %d, expected x's "
                            "%" PRId64 " and rank 1",
                            type_count(w), w->rank, x->extent[0]);
    if (status == TN_OK && x->dtype != TN_BOOL)
        status = check_integers(host, "x", x->dtype);
    if (status)
        return status;
    types[0] = (tn_type){!w                      ? TN_I64
                         : tn_is_float(w->dtype) ? w->dtype
                                                 : TN_F64,
                         1,
                         {attrs->length}};
    return TN_OK;
}

// Counts are sums of ones, for which a device may have a kernel (base.bincount/1 without
// weights).
DECOMPOSE(bincount)
{
    const bincount_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    tn_array *weights = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    const tn_type *w = weights ? build->type(weights) : NULL;
    if (!x)
        return TN_ERR_ARGUMENT;
    if (w && !tn_is_float(w->dtype))
        weights = cast(build, weights, TN_F64);
    // Drops negative numbers, which would count from the end.
    tn_array *at = build->expr(build, "x -> x < 0 ? length : i64(x)",
                               TN_IN(rule->inputs[0]), tn_attrs("length", attrs->length));
    if (x->dtype == TN_U64)
        at = build->expr(build, "x -> x < u64(length) ? i64(x) : length",
                         TN_IN(rule->inputs[0]), tn_attrs("length", attrs->length));
    outputs[0] = search_counts(build, at, w ? weights : NULL, attrs->length);
    return built(outputs[0]);
}

DECOMPOSED(bincount, bincount_attrs, bincount_fields,
           "How often each number occurs, or the sums of their weights.",
           TN_INPUTS(bincount_inputs));

typedef struct {
    int64_t bins;
    double lo, hi;
    int64_t density;
} histogram_attrs;

static const tn_input_info histogram_inputs[] = {
    {"x", "the numbers", TN_INPUT_CONSTANT, 0},
    {"edges", "of the bins, in ascending order; instead of bins",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
    {"weights", "what each counts, of x's extents; not given: 1", TN_INPUT_OPTIONAL, 0},
};
static const tn_output_info histogram_outputs[] = {
    {"counts", "how many elements a bin has: i64, or as weights", 0, 0},
    {"edges", "the edges of the bins, one more than there are", 0, 0},
};
static const tn_attr_field histogram_fields[] = {
    TN_I64_FIELD(histogram_attrs, bins, 10, "how many, of equal width"),
    TN_F64_FIELD(histogram_attrs, lo, NAN, "the first edge; not given: the least element"),
    TN_F64_FIELD(histogram_attrs, hi, NAN,
                 "the last edge; not given: the greatest element"),
    TN_BOOL_FIELD(histogram_attrs, density, 0, "the share of a bin by its width"),
};

// The first and the last edge in f64, moved apart by 1 where they are equal, as in NumPy.
static void histogram_range(const tn_build *build, tn_array *x,
                            const histogram_attrs *attrs, tn_array *range[2])
{
    int is_given = !isnan(attrs->lo) && !isnan(attrs->hi),
        is_empty = type_count(build->type(x)) == 0;
    range[0] = build->scalar(build, TN_F64, is_given ? attrs->lo : 0);
    range[1] = build->scalar(build, TN_F64, is_given ? attrs->hi : is_empty ? 1 : 0);
    if (!is_given && !is_empty) {
        range[0] =
            cast(build, build->op(build, "base.min/1", TN_IN(x), TN_NO_ATTRS), TN_F64);
        range[1] =
            cast(build, build->op(build, "base.max/1", TN_IN(x), TN_NO_ATTRS), TN_F64);
    }
}

#define WITH_RANGE "l = lo == hi ? lo - 0.5 : lo; h = lo == hi ? hi + 0.5 : hi; "

// The edges lo, lo + step, ... hi.
static tn_array *histogram_edges(const tn_build *build, tn_array *const range[2],
                                 int64_t bins)
{
    return build->expr(
        build,
        "i, lo, hi -> " WITH_RANGE "i == bins ? h : l + f64(i) * ((h - l) / f64(bins))",
        TN_IN(counted(build, bins + 1, 0), range[0], range[1]), tn_attrs("bins", bins));
}

// `edges` is NULL where attributes give the edges.
static tn_status histogram_check(const tn_build *build, const histogram_attrs *attrs,
                                 const tn_array *edges)
{
    const tn_host *host = build->host;
    tn_status status =
        edges ? search_check_vector(host, "edges", build->type(edges)) : TN_OK;
    if (status)
        return status;
    if (edges && build->type(edges)->extent[0] < 2)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "got %" PRId64 " edges, expected at least 2",
                          build->type(edges)->extent[0]);
    if (!edges && (attrs->bins < 1 || attrs->bins > INT32_MAX))
        return host->fail(host, TN_ERR_ARGUMENT, "bins is %" PRId64 ", expected at least 1",
                          attrs->bins);
    if (!edges && (isnan(attrs->lo) != isnan(attrs->hi) || attrs->lo > attrs->hi))
        return host->fail(host, TN_ERR_ARGUMENT,
                          "lo is %g and hi %g, expected both or none, and lo <= hi",
                          attrs->lo, attrs->hi);
    return TN_OK;
}

// The bins of a vector's elements. The last edge belongs to the last bin; elements out of
// range, and NaN, get the number `bins`.
static tn_array *histogram_at(const tn_build *build, tn_array *x, tn_array *edges,
                              int64_t bins)
{
    tn_array *first = part_of_axis(build, edges, 0, 0, 1, 1);
    tn_array *last = part_of_axis(build, edges, 0, bins, 1, 1);
    return build->expr(build,
                       "p, x, a, b -> x >= a & x < b ? p - 1 : x == b ? bins - 1 : bins",
                       TN_IN(search_positions(build, edges, x, 1), x, first, last),
                       tn_attrs("bins", bins));
}

// As histogram_at(), for equally spaced edges, as NumPy does: the bin by the distance from
// the first edge, or the bin beside it where the computed edges say so. Values that all
// elements share are computed once; `g` scales differences of tiny numbers so that they are
// not lost.
static tn_array *histogram_at_distance(const tn_build *build, tn_array *x,
                                       tn_array *const range[2], int64_t bins)
{
    static const char *const shared[] = {
        "lo, hi -> lo == hi ? lo - 0.5 : lo", "lo, hi -> lo == hi ? hi + 0.5 : hi",
        "l, h -> h - l < 1e-200 ? 1e200 : 1.0", "l, h -> (h - l) / f64(bins)",
        "l, h, g -> f64(bins) / ((h - l) * g)"};
    tn_array *of_all[5]; // of all elements: l, h, g, w, s
    for (uint32_t i = 0; i < 5; i++) {
        const tn_array *in[] = {i < 2 ? range[0] : of_all[0], i < 2 ? range[1] : of_all[1],
                                i < 4 ? NULL : of_all[2]};
        of_all[i] = build->expr(build, shared[i], in, i < 4 ? 2 : 3,
                                i < 3 ? (tn_attr_list)TN_NO_ATTRS : tn_attrs("bins", bins));
    }
    return build->expr(
        build,
        "x, l, h, g, w, s -> t = f64(x); in = t >= l & t < h; "
        "p = min(in ? i64(floor((t - l) * g * s)) : 0, bins - 1); "
        "q = t < l + f64(p) * w ? p - 1 : p + 1 < bins & t >= l + f64(p + 1) * w ? p + 1 : "
        "p; "
        "in ? max(q, 0) : t == h ? bins - 1 : bins",
        TN_IN(x, of_all[0], of_all[1], of_all[2], of_all[3], of_all[4]),
        tn_attrs("bins", bins));
}

DECOMPOSE(histogram)
{
    const histogram_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    tn_array *x = rule->inputs[0], *edges = rule->num_inputs > 1 ? rule->inputs[1] : NULL;
    tn_array *weights = rule->num_inputs > 2 ? rule->inputs[2] : NULL;
    tn_status status = histogram_check(build, attrs, edges);
    if (status == TN_OK && weights &&
        type_count(build->type(weights)) != type_count(build->type(x)))
        status = host->fail(host, TN_ERR_ARGUMENT,
                            "weights has %" PRId64 " elements, x %" PRId64,
                            type_count(build->type(weights)), type_count(build->type(x)));
    if (status)
        return status;
    tn_array *range[2], *at;
    int64_t bins = edges ? build->type(edges)->extent[0] - 1 : attrs->bins;
    if (edges) {
        at = histogram_at(build, flattened(build, x), edges, bins);
    } else {
        histogram_range(build, x, attrs, range);
        edges = histogram_edges(build, range, bins);
        at = histogram_at_distance(build, flattened(build, x), range, bins);
    }
    outputs[0] =
        weights ? search_counts(build, at, flattened(build, weights), bins)
                : build->op(build, "base.bincount/1", TN_IN(at), tn_attrs("length", bins));
    outputs[1] = edges;
    if (attrs->density) {
        tn_array *sum = build->op(build, "base.sum/1", TN_IN(outputs[0]), TN_NO_ATTRS);
        outputs[0] =
            build->expr(build, "n, s, a, b -> n / (b - a) / s",
                        TN_IN(outputs[0], sum, part_of_axis(build, edges, 0, 0, 1, bins),
                              part_of_axis(build, edges, 0, 1, 1, bins)),
                        TN_NO_ATTRS);
    }
    return built(outputs[0]);
}

COMPOSITE(histogram, "How many elements fall into each of a row of bins.",
          TN_INPUTS(histogram_inputs), TN_OUTPUTS(histogram_outputs),
          .attrs = TN_ATTR_TABLE(histogram_attrs, histogram_fields));

// --- histograms of several axes ---------------------------------------------------------

typedef struct {
    tn_ints bins;
    int64_t density;
    const tn_float_list *lo, *hi;
} histograms_attrs;

static const tn_attr_field histograms_fields[] = {
    TN_INTS_FIELD(histograms_attrs, bins,
                  "how many of equal width: of all axes, or of each; not given: 10"),
    TN_BOOL_FIELD(histograms_attrs, density, 0, "the share of a bin by its volume"),
    TN_FLOAT_LIST_FIELD(histograms_attrs, lo,
                        "the first edges; not given: the least elements"),
    TN_FLOAT_LIST_FIELD(histograms_attrs, hi,
                        "the last edges; not given: the greatest ones"),
};
static const tn_input_info histogramdd_inputs[] = {
    {"sample", "a row a point", TN_INPUT_CONSTANT, 0},
    {"weights", "what each counts; not given: 1", TN_INPUT_OPTIONAL, 0},
};
static const tn_input_info histogram2d_inputs[] = {
    {"x", "the first coordinates: a vector", TN_INPUT_CONSTANT, 0},
    {"y", "the second ones", TN_INPUT_CONSTANT, 0},
    {"weights", "what each counts; not given: 1", TN_INPUT_OPTIONAL, 0},
    {"x_edges", "in ascending order; instead of bins",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
    {"y_edges", "likewise", TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, 0},
};
static const tn_output_info histogramdd_outputs[] = {
    {"counts", "the sum of weights in a bin, in a float dtype; then the edges of each axis",
     0, 0}};
static const tn_output_info histogram2d_outputs[] = {
    {"counts", "the sum of weights in a bin, in a float dtype", 0, 0},
    {"x_edges", "of the first axis", 0, 0},
    {"y_edges", "of the second axis", 0, 0},
};

// The edges of axis i: the given ones, or those of `bins` bins of equal width.
static tn_status histograms_edges(const tn_build *build, const histograms_attrs *attrs,
                                  uint32_t i, tn_array *x, tn_array *given, tn_array **out)
{
    const tn_ints *bins = &attrs->bins;
    int64_t own = !bins->count ? 10 : bins->value[bins->count == 1 ? 0 : i];
    const histogram_attrs one = {.bins = own,
                                 .lo = attrs->lo ? attrs->lo->value[i] : NAN,
                                 .hi = attrs->hi ? attrs->hi->value[i] : NAN};
    tn_status status = histogram_check(build, &one, given);
    if (status)
        return status;
    tn_array *range[2];
    histogram_range(build, x, &one, range);
    *out = given ? given : histogram_edges(build, range, one.bins);
    return built(*out);
}

// Counts n points by d coordinates each; outputs[1 + i] have the given edges, or are NULL.
static tn_status histograms_of(const tn_build *build, const histograms_attrs *attrs,
                               tn_array *const *x, uint32_t d, tn_array *weights,
                               tn_array **outputs)
{
    tn_ints shape = {d, 1, {0}};
    int64_t total = 1, n = type_count(build->type(x[0]));
    tn_array *at = NULL, *volume = NULL;
    if (attrs->bins.count > 1 && attrs->bins.count != d)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "bins has %u values, expected 1 or %u", attrs->bins.count,
                                 d);
    if ((attrs->lo && attrs->lo->count != d) || (attrs->hi && attrs->hi->count != d))
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "lo or hi has another number of values than %u", d);
    if (weights && type_count(build->type(weights)) != n)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "weights has %" PRId64 " elements for %" PRId64 " points",
                                 type_count(build->type(weights)), n);
    for (uint32_t i = 0; i < d; i++) {
        tn_status status =
            histograms_edges(build, attrs, i, x[i], outputs[1 + i], &outputs[1 + i]);
        if (status)
            return status;
        tn_array *edges = outputs[1 + i];
        int64_t bins = build->type(edges)->extent[0] - 1;
        tn_ints along = {d, 1, {1, 1, 1, 1, 1, 1, 1, 1}};
        along.value[i] = shape.value[i] = bins;
        if (!tn_checked_multiply_extents(total, bins, &total))
            return build->host->fail(build->host, TN_ERR_ARGUMENT, "too many bins");
        tn_array *own = histogram_at(build, x[i], edges, bins);
        at = build->expr(build, "a, i -> a < 0 | i == bins ? -1 : a * bins + i",
                         TN_IN(at ? at : build->scalar(build, TN_I64, 0), own),
                         tn_attrs("bins", bins));
        tn_array *width =
            with_shape(build, "base.reshape/1",
                       build->op(build, "base.diff/1", TN_IN(edges), TN_NO_ATTRS), along);
        volume =
            volume ? build->expr(build, "v, w -> v * w", TN_IN(volume, width), TN_NO_ATTRS)
                   : width;
    }
    at = build->expr(build, "a -> a < 0 ? n : a", TN_IN(at), tn_attrs("n", total));
    if (weights)
        weights = flattened(build, weights);
    tn_array *counts = search_counts(build, at, weights, total);
    if (build->type(counts) && !tn_is_float(build->type(counts)->dtype))
        counts = cast(build, counts, TN_F64);
    if (attrs->density)
        counts = build->expr(
            build, "c, s -> c / s",
            TN_IN(counts, build->op(build, "base.sum/1", TN_IN(counts), TN_NO_ATTRS)),
            TN_NO_ATTRS);
    counts = with_shape(build, "base.reshape/1", counts, shape);
    if (attrs->density)
        counts = build->expr(build, "c, v -> c / v", TN_IN(counts, volume), TN_NO_ATTRS);
    outputs[0] = counts;
    return built(counts);
}

static tn_status histogramdd_count(const tn_infer *infer, uint64_t *out_count)
{
    const tn_type *x = &infer->types[0];
    char text[SHAPE_TEXT];
    if (x->rank != 2 || x->extent[1] < 1 || x->extent[1] > TN_MAX_RANK)
        return infer->host->fail(
            infer->host, TN_ERR_ARGUMENT,
            "sample has shape %s, expected rows of 1 .. %d coordinates",
            shape_text(x->rank, x->extent, text), TN_MAX_RANK);
    *out_count = 1 + (uint64_t)x->extent[1];
    return TN_OK;
}

DECOMPOSE(histogramdd)
{
    uint32_t d = rule->num_outputs - 1;
    tn_array *x[TN_MAX_RANK];
    for (uint32_t i = 0; i < d; i++) {
        x[i] = flattened(build, part_of_axis(build, rule->inputs[0], 1, i, 1, 1));
        outputs[1 + i] = NULL;
        if (!x[i])
            return TN_ERR_ARGUMENT;
    }
    return histograms_of(build, rule->attrs, x, d,
                         rule->num_inputs > 1 ? rule->inputs[1] : NULL, outputs);
}

DECOMPOSE(histogram2d)
{
    const tn_type *x = build->type(rule->inputs[0]), *y = build->type(rule->inputs[1]);
    tn_status status = search_check_vector(build->host, "x", x);
    if (status == TN_OK)
        status = search_check_vector(build->host, "y", y);
    if (status == TN_OK && x->extent[0] != y->extent[0])
        status = build->host->fail(build->host, TN_ERR_ARGUMENT,
                                   "x has %" PRId64 " elements, y %" PRId64, x->extent[0],
                                   y->extent[0]);
    if (status)
        return status;
    for (uint32_t i = 0; i < 2; i++)
        outputs[1 + i] = rule->num_inputs > 3 + i ? rule->inputs[3 + i] : NULL;
    return histograms_of(build, rule->attrs, rule->inputs, 2,
                         rule->num_inputs > 2 ? rule->inputs[2] : NULL, outputs);
}

#define HISTOGRAMS .attrs = TN_ATTR_TABLE(histograms_attrs, histograms_fields)
COMPOSITE(histogramdd, "How many points fall into each cell of a grid.",
          TN_INPUTS(histogramdd_inputs), TN_OUTPUTS(histogramdd_outputs),
          .count_outputs = histogramdd_count, HISTOGRAMS);
COMPOSITE(histogram2d, "How many points of the plane fall into each cell of a grid.",
          TN_INPUTS(histogram2d_inputs), TN_OUTPUTS(histogram2d_outputs), HISTOGRAMS);
