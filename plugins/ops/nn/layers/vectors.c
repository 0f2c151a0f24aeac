// SPDX-License-Identifier: MIT
// Layers of vectors: bilinear, bags of embeddings, local_response_norm.
#include "../pack.h"
#include <tenon/ops/rules.h>

// --- bilinear ---------------------------------------------------------------------------

static const tn_input_info bilinear_inputs[] = {
    {"x1", "..., I: vectors", 0, TN_FLOAT_DTYPES},
    {"x2", "..., J: vectors, as many", 0, TN_FLOAT_DTYPES},
    {"w", "O, I, J: a matrix for each result", 0, TN_FLOAT_DTYPES},
    {"bias", "O: added to each result", TN_INPUT_OPTIONAL, TN_FLOAT_DTYPES},
};

static tn_status check_bilinear(const tn_build *build, const tn_rule *rule)
{
    static const char *const names[] = {"x1", "x2", "w", "bias"};
    const tn_host *host = build->host;
    const tn_type *x1 = build->type(rule->inputs[0]), *x2 = build->type(rule->inputs[1]);
    const tn_type *w = build->type(rule->inputs[2]);
    char got[2][SHAPE_TEXT];
    tn_status status = check_rank(host, "w", w, 3, "O, I, J");
    for (uint32_t i = 1; i < rule->num_inputs && status == TN_OK; i++)
        if (rule->inputs[i])
            status = check_dtype(host, names[i], build->type(rule->inputs[i]), x1->dtype);
    if (status)
        return status;
    int32_t last = x1->rank - 1;
    if (last < 0 || x2->rank != x1->rank || x1->extent[last] != w->extent[1] ||
        x2->extent[last] != w->extent[2] ||
        memcmp(x1->extent, x2->extent, sizeof(int64_t) * (size_t)last) != 0)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x1 has shape %s and x2 %s, expected as many vectors of %" PRId64
                          " and %" PRId64 " elements",
                          shape_text(x1, got[0]), shape_text(x2, got[1]), w->extent[1],
                          w->extent[2]);
    if (rule->num_inputs > 3 && rule->inputs[3])
        status = check_extents(host, "bias", build->type(rule->inputs[3]), 1, w->extent);
    return status;
}

// One product with x1 gives, for each result, a row of weights for x2.
DECOMPOSE(bilinear)
{
    tn_status status = check_bilinear(build, rule);
    if (status)
        return status;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[2]);
    tn_ints shape = tn_extents(build, rule->inputs[0]);
    int64_t count = 1, out = w->extent[0], i = w->extent[1], j = w->extent[2];
    for (int32_t k = 0; k < x->rank - 1; k++)
        count *= x->extent[k];
    tn_array *a =
        with_shape(build, "base.reshape/1", rule->inputs[0], 2, (int64_t[]){count, i});
    tn_array *b =
        with_shape(build, "base.reshape/1", rule->inputs[1], 3, (int64_t[]){count, j, 1});
    tn_array *turned =
        with_shape(build, "base.reshape/1", tn_move_axis(build, rule->inputs[2], 1, 0), 2,
                   (int64_t[]){i, out * j});
    a = build->op(build, "base.matmul/1", TN_IN(a, turned), TN_NO_ATTRS);
    a = with_shape(build, "base.reshape/1", a, 3, (int64_t[]){count, out, j});
    a = build->op(build, "base.matmul/1", TN_IN(a, b), TN_NO_ATTRS);
    shape.value[shape.count - 1] = out;
    outputs[0] = build->op(build, "base.reshape/1", TN_IN(a),
                           tn_attrs("shape", (const tn_ints *)&shape));
    if (rule->num_inputs > 3 && rule->inputs[3])
        outputs[0] = add(build, outputs[0], rule->inputs[3]);
    return built(outputs[0]);
}
COMPOSITE(bilinear, "bilinear/1", "x1 times each matrix of w times x2, and a bias.",
          TN_INPUTS(bilinear_inputs));

// --- embedding_bag ----------------------------------------------------------------------

enum { BAG_SUM, BAG_MEAN, BAG_MAX };
static const char *const bag_modes[] = {"sum", "mean", "max", NULL};
typedef struct {
    int64_t mode, padding_idx;
} bag_attrs;
static const tn_attr_field bag_fields[] = {
    TN_CHOICE_FIELD(bag_attrs, mode, BAG_MEAN, bag_modes, "of the rows of a bag"),
    TN_I64_FIELD(bag_attrs, padding_idx, TN_NO_AXIS, "an index that is in no bag"),
};
static const tn_input_info bag_inputs[] = {
    {"x", "N, L: integers, rows of weight, a bag a row; or L, all bags behind each other",
     TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
    {"weight", "V, D: vectors", 0, TN_FLOAT_DTYPES},
    {"offsets", "N: where each bag of L begins, 0 first",
     TN_INPUT_OPTIONAL | TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
    {"per_sample_weights", "of x's shape: factors, of mode sum", TN_INPUT_OPTIONAL,
     TN_FLOAT_DTYPES},
};

// Bags: the rows of their vectors (..., D), whether each counts (..., 1), and its bag where
// offsets are given.
struct bags {
    tn_array *rows, *counts, *bag;
    int64_t number, length, width;
};

static tn_array *bag_input(const tn_rule *rule, uint32_t i)
{
    return i < rule->num_inputs ? rule->inputs[i] : NULL;
}

static tn_status check_bags(const tn_build *build, const tn_rule *rule)
{
    const bag_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    tn_array *offsets = bag_input(rule, 2), *factors = bag_input(rule, 3);
    tn_status status = check_rank(host, "x", x, offsets ? 1 : 2, offsets ? "L" : "N, L");
    if (status == TN_OK)
        status = check_rank(host, "weight", w, 2, "V, D");
    if (status == TN_OK && offsets)
        status = check_rank(host, "offsets", build->type(offsets), 1, "N");
    if (status == TN_OK && factors && attrs->mode != BAG_SUM)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "per_sample_weights are given and mode is %s, expected sum",
                          bag_modes[attrs->mode]);
    if (status == TN_OK && factors)
        status = check_dtype(host, "per_sample_weights", build->type(factors), w->dtype);
    if (status == TN_OK && factors)
        status = check_extents(host, "per_sample_weights", build->type(factors), x->rank,
                               x->extent);
    return status;
}

// Sums `part` over each bag, N, ....
static tn_array *bag_sums(const tn_build *build, const struct bags *b, tn_array *part,
                          int64_t width)
{
    if (!b->bag)
        return build->op(build, "base.sum/1", TN_IN(part), tn_attrs("axis", TN_INTS(1)));
    const int64_t shape[2] = {b->number, width};
    return build->op(build, "base.scatter_add/1",
                     TN_IN(zeros(build, dtype_of(build, part), 2, shape), b->bag, part),
                     tn_attrs("axis", (int64_t)0));
}

// The greatest elements of each bag; 0 for an empty bag.
static tn_array *bag_maxima(const tn_build *build, const struct bags *b, tn_array *number)
{
    const int64_t shape[2] = {b->number, b->width};
    tn_dtype dtype = dtype_of(build, b->rows);
    if (!b->bag && b->length == 0)
        return zeros(build, dtype, 2, shape);
    tn_array *least = build->scalar(build, dtype, -INFINITY);
    tn_array *rows = build->expr(build, "r, c, l -> select(c > 0, r, l)",
                                 TN_IN(b->rows, b->counts, least), TN_NO_ATTRS);
    if (b->bag)
        rows = build->op(
            build, "base.scatter_max/1",
            TN_IN(with_shape(build, "base.broadcast_to/1", least, 2, shape), b->bag, rows),
            tn_attrs("axis", (int64_t)0));
    else
        rows = build->op(build, "base.max/1", TN_IN(rows), tn_attrs("axis", TN_INTS(1)));
    return build->expr(build, "r, n -> select(n > 0, r, 0)", TN_IN(rows, number),
                       TN_NO_ATTRS);
}

// Bags in which all rows count once: N, L of `ids`.
static tn_array *whole_bags(const tn_build *build, const struct bags *b, tn_array *weight,
                            tn_array *ids, int64_t mode)
{
    const int64_t shape[2] = {b->number, b->width};
    if (b->length == 0)
        return zeros(build, dtype_of(build, weight), 2, shape);
    if (mode == BAG_MAX)
        return build->op(build, "base.max/1", TN_IN(b->rows), tn_attrs("axis", TN_INTS(1)));
    tn_array *sum = build->op(build, "nn.bag_sum/1", TN_IN(weight, ids), TN_NO_ATTRS);
    return mode == BAG_SUM ? sum
                           : build->expr(build, "s -> s / n", TN_IN(sum),
                                         tn_attrs("n", (double)b->length));
}

// --- bag_sum ----------------------------------------------------------------------------

static const tn_input_info bag_sum_inputs[] = {
    {"weight", "V, D: vectors", 0, TN_FLOAT_DTYPES},
    {"ids", "N, L: rows of weight, as take's", TN_INPUT_CONSTANT, TN_INTEGER_DTYPES},
};

static tn_status bag_sum_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *w = &infer->types[0], *ids = &infer->types[1];
    tn_status status = check_rank(infer->host, "weight", w, 2, "V, D");
    if (status == TN_OK)
        status = check_rank(infer->host, "ids", ids, 2, "N, L");
    if (status == TN_OK && w->extent[0] == 0 && ids->extent[0] * ids->extent[1] > 0)
        status = infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                   "weight has no rows, expected at least 1");
    if (status == TN_OK)
        types[0] = (tn_type){w->dtype, 2, {ids->extent[0], w->extent[1]}};
    return status;
}

static tn_status bag_sum_decompose(const tn_build *build, const tn_rule *rule,
                                   tn_array **outputs)
{
    const tn_type *ids = build->type(rule->inputs[1]), *w = build->type(rule->inputs[0]);
    const int64_t shape[2] = {ids->extent[0], w->extent[1]};
    if (ids->extent[1] == 0) {
        outputs[0] = zeros(build, w->dtype, 2, shape);
        return built(outputs[0]);
    }
    tn_dtype dtype = w->dtype, wide = tn_dtype_computed(dtype);
    tn_array *rows =
        build->op(build, "base.take/1", TN_IN(rule->inputs[0], rule->inputs[1]),
                  tn_attrs("axis", (int64_t)0));
    rows = wide != dtype ? cast(build, rows, wide) : rows;
    rows = build->op(build, "base.sum/1", TN_IN(rows), tn_attrs("axis", TN_INTS(1)));
    outputs[0] = wide != dtype ? cast(build, rows, dtype) : rows;
    return built(outputs[0]);
}

const tn_primitive nn_bag_sum = {
    .struct_size = sizeof(tn_primitive),
    .id = "nn.bag_sum/1",
    .doc = "Sums of rows of weight: what embedding_bag is made of.",
    TN_INPUTS(bag_sum_inputs),
    .infer = bag_sum_infer,
    .decompose = bag_sum_decompose,
};

// --- embedding_bag, of bags -------------------------------------------------------------

// Makes bags by a mask of the rows that count, or by the positions where bags begin.
static tn_array *masked_bags(const tn_build *build, const tn_rule *rule, struct bags *b,
                             int64_t padding)
{
    const bag_attrs *attrs = rule->attrs;
    tn_array *offsets = bag_input(rule, 2), *factors = bag_input(rule, 3);
    tn_array *column = build->op(build, "base.expand_dims/1", TN_IN(rule->inputs[0]),
                                 tn_attrs("axis", TN_INTS(-1)));
    b->counts = cast(
        build,
        build->expr(build, "i -> i64(i) != none", TN_IN(column), tn_attrs("none", padding)),
        dtype_of(build, b->rows));
    if (offsets) {
        b->bag =
            build->op(build, "base.searchsorted/1",
                      TN_IN(cast(build, offsets, TN_I64), counted(build, b->length, 0)),
                      tn_attrs("side", "right"));
        b->bag = build->expr(build, "b -> b - 1", TN_IN(b->bag), TN_NO_ATTRS);
    }
    tn_array *number = bag_sums(build, b, b->counts, 1), *share = b->counts;
    if (attrs->mode == BAG_MAX)
        return bag_maxima(build, b, number);
    if (factors) {
        factors = build->op(build, "base.expand_dims/1", TN_IN(factors),
                            tn_attrs("axis", TN_INTS(-1)));
        share = build->expr(build, "c, f -> c * f", TN_IN(share, factors), TN_NO_ATTRS);
    }
    tn_array *out = bag_sums(build, b,
                             build->expr(build, "r, c, s -> select(c > 0, r * s, 0)",
                                         TN_IN(b->rows, b->counts, share), TN_NO_ATTRS),
                             b->width);
    return attrs->mode == BAG_MEAN ? build->expr(build, "s, n -> s / max(n, 1)",
                                                 TN_IN(out, number), TN_NO_ATTRS)
                                   : out;
}

DECOMPOSE(embedding_bag)
{
    const bag_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *offsets = bag_input(rule, 2);
    tn_array *factors = bag_input(rule, 3);
    tn_status status = check_bags(build, rule);
    if (status)
        return status;
    const tn_type *ids = build->type(x), *w = build->type(rule->inputs[1]);
    tn_dtype dtype = w->dtype, wide = tn_dtype_computed(dtype);
    int64_t padding = attrs->padding_idx;
    struct bags b = {.length = ids->extent[ids->rank - 1], .width = w->extent[1]};
    b.number = offsets ? build->type(offsets)->extent[0] : ids->extent[0];
    if (padding < 0 && padding != TN_NO_AXIS)
        padding += w->extent[0];
    b.rows = build->op(build, "base.take/1", TN_IN(rule->inputs[1], x),
                       tn_attrs("axis", (int64_t)0));
    if (wide != dtype)
        b.rows = cast(build, b.rows, wide);
    tn_array *out = offsets || factors || padding != TN_NO_AXIS
                        ? masked_bags(build, rule, &b, padding)
                        : whole_bags(build, &b,
                                     wide != dtype ? cast(build, rule->inputs[1], wide)
                                                   : rule->inputs[1],
                                     x, attrs->mode);
    outputs[0] = dtype_of(build, out) == dtype ? out : cast(build, out, dtype);
    return built(outputs[0]);
}
COMPOSITE(embedding_bag, "embedding_bag/1",
          "The sum, mean or maximum of the rows of weight that a bag names; of none 0.",
          TN_INPUTS(bag_inputs), .attrs = TN_ATTR_TABLE(bag_attrs, bag_fields));

// --- local_response_norm ----------------------------------------------------------------

typedef struct {
    int64_t size, axis;
    double alpha, beta, k;
} response_attrs;
static const tn_attr_field response_fields[] = {
    TN_REQUIRED_FIELD(response_attrs, size, TN_ATTR_I64, "channels of a window"),
    TN_F64_FIELD(response_attrs, alpha, 1e-4, "factor of the mean of squares"),
    TN_F64_FIELD(response_attrs, beta, 0.75, "power of what x is divided by"),
    TN_F64_FIELD(response_attrs, k, 1, "added to the mean of squares"),
    TN_I64_FIELD(response_attrs, axis, -1, "of channels; PyTorch's is 1"),
};
static const tn_input_info response_input[] = {
    {"x", "N, ..., C: the array", 0, TN_FLOAT_DTYPES},
};

// Windows are mean_pool2d's: channels are the rows of images of one channel.
DECOMPOSE(local_response_norm)
{
    const response_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0];
    const tn_type *type = build->type(x);
    tn_dtype dtype = type->dtype, wide = tn_dtype_computed(dtype);
    tn_ints shape = tn_extents(build, x);
    int64_t before = 1, behind = 1, size = attrs->size;
    int32_t axis;
    tn_status status = axis_within(build->host, attrs->axis, type->rank, &axis);
    if (status)
        return status;
    if (size < 1 || size > INT16_MAX)
        return build->host->fail(build->host, TN_ERR_ARGUMENT,
                                 "size is %" PRId64 ", expected 1 to %d", size, INT16_MAX);
    int64_t channels = type->extent[axis];
    for (int32_t i = 0; i < type->rank; i++)
        *(i < axis ? &before : &behind) *= i == axis ? 1 : type->extent[i];
    if (wide != dtype)
        x = cast(build, x, wide);
    tn_array *squares = build->expr(build, "x -> x * x", TN_IN(x), TN_NO_ATTRS);
    squares = with_shape(build, "base.reshape/1", squares, 4,
                         (int64_t[]){before, channels, behind, 1});
    squares =
        build->op(build, "nn.mean_pool2d/1", TN_IN(squares),
                  tn_attrs("window", TN_INTS(size, 1), "stride", TN_INTS(1, 1), "before",
                           TN_INTS(size / 2, 0), "after", TN_INTS((size - 1) / 2, 0),
                           "extent", TN_INTS(channels, behind), "divisor", size));
    squares = build->op(build, "base.reshape/1", TN_IN(squares),
                        tn_attrs("shape", (const tn_ints *)&shape));
    x = build->expr(build, "x, s -> x / pow(k + alpha * s, beta)", TN_IN(x, squares),
                    tn_attrs("k", attrs->k, "alpha", attrs->alpha, "beta", attrs->beta));
    outputs[0] = wide != dtype ? cast(build, x, dtype) : x;
    return built(outputs[0]);
}
COMPOSITE(local_response_norm, "local_response_norm/1",
          "x over a power of the mean of squares of near channels.",
          TN_INPUTS(response_input),
          .attrs = TN_ATTR_TABLE(response_attrs, response_fields));
