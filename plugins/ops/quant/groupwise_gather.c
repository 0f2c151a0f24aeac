// SPDX-License-Identifier: MIT
// quant.groupwise_gather_matmul: products of matrices of x and w chosen by indices.
#include "groupwise_product.h"

static const tn_input_info inputs[] = {
    GROUPWISE_PRODUCT_INPUTS,
    {"lhs_indices", "integers: which matrices of x; not given: all in order",
     TN_INPUT_CONSTANT | TN_INPUT_OPTIONAL, TN_INTEGER_DTYPES},
    {"rhs_indices", "integers: which matrices of w; not given: all in order",
     TN_INPUT_CONSTANT | TN_INPUT_OPTIONAL, TN_INTEGER_DTYPES},
};
enum { LHS = 4, RHS = 5, NUM_INPUTS = 6 };
static const tn_attr_field fields[] = {
    GROUPWISE_PRODUCT_FIELDS(tn_groupwise_gather_attrs),
    TN_BOOL_FIELD(tn_groupwise_gather_attrs, sorted, 0, "whether the given indices rise"),
};

// --- types ------------------------------------------------------------------------------

// The extents of indices: those of the given array, or else the batch axes of `array`.
static tn_type indices_type(const tn_type *given, const tn_type *array)
{
    tn_type type = given ? *given : *array;
    type.rank -= given ? 0 : 2;
    return type;
}

static tn_status gather_infer(const tn_infer *infer, tn_type *types)
{
    const tn_groupwise_gather_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *in = infer->types;
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    struct groupwise format;
    tn_type out = {.rank = 0};
    int64_t columns = 0;
    tn_status status = GROUPWISE_FORMAT(host, attrs, &format);
    if (status == TN_OK)
        status = groupwise_product_check(infer, &format, attrs->transpose, 2, &out.dtype,
                                         &columns);
    if (status)
        return status;
    const tn_type lhs = indices_type(groupwise_given(infer, LHS) ? &in[LHS] : NULL, &in[0]);
    const tn_type rhs = indices_type(groupwise_given(infer, RHS) ? &in[RHS] : NULL, &in[1]);
    int64_t count = 1;
    for (int32_t i = (lhs.rank > rhs.rank ? lhs.rank : rhs.rank) - 1; i >= 0; i--) {
        out.extent[out.rank] = tn_broadcast_extent(&lhs, &rhs, 0, i);
        if (out.extent[out.rank] < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "indices have shapes %s and %s, expected such that broadcast",
                              shape_text(&lhs, text), shape_text(&rhs, other));
        count = count && out.extent[out.rank];
        out.rank++;
    }
    for (uint32_t i = 0; i < 2 && count; i++)
        for (int32_t axis = 0; axis < in[i].rank - 2; axis++)
            if (in[i].extent[axis] == 0)
                return host->fail(host, TN_ERR_ARGUMENT,
                                  "%s has shape %s, expected matrices that indices choose",
                                  inputs[i].name, shape_text(&in[i], text));
    if (out.rank + 2 > TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "indices have rank %d, expected up to %d: the product has two "
                          "axes more",
                          out.rank, TN_MAX_RANK - 2);
    out.extent[out.rank++] = in[0].extent[in[0].rank - 2];
    out.extent[out.rank++] = columns;
    types[0] = out;
    return TN_OK;
}

// --- the definition ---------------------------------------------------------------------

static int64_t groupwise_gather_matrices_of(const int64_t *extent, int32_t rank)
{
    int64_t count = 1;
    for (int32_t i = 0; i < rank - 2; i++)
        count *= extent[i]; // at most the number of rows
    return count;
}

// Sets the batch axes of `out` to matrix number `number` of an array.
static void matrix_index(const tn_layout *layout, int64_t number, int64_t *out)
{
    for (int32_t i = layout->rank - 3; i >= 0; i--) {
        out[i] = number % layout->extent[i];
        number /= layout->extent[i];
    }
    out[layout->rank - 2] = out[layout->rank - 1] = 0;
}

// Sets the batch axes of `out` to the matrix of operand `operand` chosen at `index` of the
// result, which has `batches` batch axes.
static void groupwise_gather_choose(const tn_cpu_call *call, uint32_t operand,
                                    const int64_t *index, int32_t batches, int64_t *out)
{
    const tn_layout *layout = &call->inputs[operand].layout;
    const tn_tensor *ids = &call->inputs[LHS + operand];
    const bool is_given =
        LHS + operand < call->num_inputs && ids->data && ids->layout.dtype != TN_DTYPE_NONE;
    const int32_t own = is_given ? ids->layout.rank : layout->rank - 2;
    const int64_t *extent = is_given ? ids->layout.extent : layout->extent;
    int64_t at[TN_MAX_RANK] = {0};
    for (int32_t i = 0; i < own; i++)
        at[i] = extent[i] == 1 ? 0 : index[batches - own + i];
    if (!is_given) {
        memcpy(out, at, sizeof(at));
        return;
    }
    matrix_index(layout,
                 row_of(ids, tn_offset_at(&ids->layout, at),
                        groupwise_gather_matrices_of(layout->extent, layout->rank)),
                 out);
}

static tn_status gather_reference(const tn_cpu_call *call)
{
    const tn_groupwise_gather_attrs *attrs = call->attrs;
    const tn_layout *out = &call->outputs[0].layout;
    const int32_t batches = out->rank - 2;
    int64_t index[TN_MAX_RANK] = {0};
    struct groupwise format;
    struct groupwise_product product;
    tn_status status = GROUPWISE_FORMAT(call->host, attrs, &format);
    if (status || tn_layout_count(out) == 0)
        return status;
    groupwise_product_of(call, attrs->transpose, &format, &product);
    do {
        int64_t left[TN_MAX_RANK] = {0}, right[TN_MAX_RANK] = {0};
        groupwise_gather_choose(call, 0, index, batches, left);
        groupwise_gather_choose(call, 1, index, batches, right);
        groupwise_multiply(&product, right, tn_offset_at(&call->inputs[0].layout, left),
                           tn_offset_at(out, index));
    } while (tn_index_next(batches, out->extent, index));
    return TN_OK;
}

// --- rules ------------------------------------------------------------------------------

static tn_array *groupwise_gather_product(const tn_build *build, const tn_rule *rule,
                                          tn_array *const in[NUM_INPUTS], int64_t transpose)
{
    const tn_groupwise_gather_attrs *attrs = rule->attrs;
    return build->op(build, "quant.groupwise_gather_matmul/1",
                     TN_IN(in[0], in[1], in[2], in[3], in[LHS], in[RHS]),
                     tn_attrs("mode", attrs->mode, "bits", attrs->bits, "group",
                              attrs->group, "transpose", transpose, "exact", attrs->exact,
                              "sorted", attrs->sorted));
}

static tn_array *groupwise_gather_shaped(const tn_build *build, tn_array *x,
                                         const tn_ints *shape)
{
    return build->op(build, "base.reshape/1", TN_IN(x), tn_attrs("shape", shape));
}

tn_array *groupwise_flat(const tn_build *build, tn_array *x)
{
    const tn_type *type = x ? build->type(x) : NULL;
    if (!type || type->rank < 2)
        return NULL;
    const tn_ints shape = {.count = 3,
                           .given = 1,
                           .value = {groupwise_gather_matrices_of(type->extent, type->rank),
                                     type->extent[type->rank - 2],
                                     type->extent[type->rank - 1]}};
    return type->rank == 3 ? x : groupwise_gather_shaped(build, x, &shape);
}

// Converts ids to numbers of `count` matrices; with `each` ids in a slice, slice i's
// numbers are `step` * i greater.
static tn_array *groupwise_gather_numbers(const tn_build *build, tn_array *ids,
                                          int64_t count, int64_t each, int64_t step)
{
    const tn_type *type = ids ? build->type(ids) : NULL;
    if (!type)
        return NULL;
    const char *text = type->dtype == TN_U64
                           ? "i -> i64(min(i, u64(n - 1))) + index // each * i64(step)"
                           : "i -> j = min(max(i64(i), -i64(n)), i64(n) - 1); "
                             "select(j < 0, j + i64(n), j) + index // each * i64(step)";
    return build->expr(build, text, TN_IN(ids),
                       tn_attrs("n", count, "each", each > 0 ? each : 1, "step", step));
}

// The ids of operand `operand`; consecutive ones where none are given.
static tn_array *ids_of(const tn_build *build, const tn_rule *rule, uint32_t operand,
                        const tn_type *type)
{
    tn_array *given = LHS + operand < rule->num_inputs ? rule->inputs[LHS + operand] : NULL;
    if (given || !type)
        return given;
    tn_ints shape = {.count = (uint32_t)type->rank - 2, .given = 1};
    memcpy(shape.value, type->extent, shape.count * sizeof(shape.value[0]));
    tn_array *all =
        build->op(build, "base.arange/1", NULL, 0,
                  tn_attrs("stop", groupwise_gather_matrices_of(type->extent, type->rank),
                           "dtype", (int64_t)TN_I64));
    return groupwise_gather_shaped(build, all, &shape);
}

// Zeros of the type of `like`, with `updates` added to the matrices that `ids` name.
static tn_array *groupwise_gather_scattered(const tn_build *build, const tn_type *like,
                                            tn_array *ids, tn_array *updates)
{
    const tn_type *type = build->type(updates);
    if (!type || !ids)
        return NULL;
    const int64_t count = groupwise_gather_matrices_of(like->extent, like->rank);
    const tn_ints shape = {
        .count = 3,
        .given = 1,
        .value = {count, type->extent[type->rank - 2], type->extent[type->rank - 1]}};
    tn_array *zeros =
        build->op(build, "base.broadcast_to/1", TN_IN(build->scalar(build, type->dtype, 0)),
                  tn_attrs("shape", &shape));
    tn_array *sum =
        build->op(build, "base.scatter_add/1",
                  TN_IN(zeros, groupwise_gather_numbers(build, ids, count, 1, 0), updates),
                  TN_NO_ATTRS);
    tn_ints all = {.count = (uint32_t)like->rank, .given = 1};
    memcpy(all.value, like->extent, all.count * sizeof(all.value[0]));
    all.value[all.count - 2] = shape.value[1];
    all.value[all.count - 1] = shape.value[2];
    return groupwise_gather_shaped(build, sum, &all);
}

// Ids as an array with the result's batch axes, given or not.
static tn_array *all_ids(const tn_build *build, const tn_rule *rule, uint32_t operand,
                         const tn_type *out)
{
    tn_ints shape = {.count = (uint32_t)out->rank - 2, .given = 1};
    memcpy(shape.value, out->extent, shape.count * sizeof(shape.value[0]));
    return build->op(
        build, "base.broadcast_to/1",
        TN_IN(ids_of(build, rule, operand, build->type(rule->inputs[operand]))),
        tn_attrs("shape", (const tn_ints *)&shape));
}

static bool has_biases(const tn_rule *rule)
{
    return rule->num_inputs > 3 && rule->inputs[3];
}

TN_VJP(gather_vjp)
{
    const tn_groupwise_gather_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]), *w = build->type(rule->inputs[1]);
    const tn_type *out = build->type(rule->outputs[0]);
    struct groupwise format;
    tn_status status = GROUPWISE_FORMAT(build->host, attrs, &format);
    if (status || !cotangents[0] || !x || !w || !out)
        return status;
    tn_array *lhs = all_ids(build, rule, 0, out), *rhs = all_ids(build, rule, 1, out);
    if (groupwise_is_wanted(wanted, 0)) {
        tn_array *in[NUM_INPUTS] = {cotangents[0],
                                    rule->inputs[1],
                                    rule->inputs[2],
                                    has_biases(rule) ? rule->inputs[3] : NULL,
                                    NULL,
                                    rhs};
        gradients[0] = groupwise_gather_scattered(
            build, x, lhs, groupwise_gather_product(build, rule, in, !attrs->transpose));
    }
    if ((wanted[0] & 0xc) == 0 || format.mode != TN_GROUPWISE_affine)
        return TN_OK;
    tn_array *rows = build->op(
        build, "base.take/1",
        TN_IN(cast(build, groupwise_flat(build, rule->inputs[0]), out->dtype), lhs),
        TN_NO_ATTRS);
    tn_array *left = attrs->transpose ? cotangents[0] : rows;
    tn_array *matrix = build->op(
        build, "base.matmul/1",
        TN_IN(groupwise_swapped(build, left), attrs->transpose ? rows : cotangents[0]),
        TN_NO_ATTRS);
    return groupwise_gradients(build, rule, &format, 1,
                               groupwise_gather_scattered(build, w, rhs, matrix), wanted,
                               gradients);
}

// Linear in x, and in scales and biases together.
TN_JVP(gather_jvp)
{
    const tn_groupwise_gather_attrs *attrs = rule->attrs;
    tn_array *in[NUM_INPUTS] = {NULL}, *of_x = NULL, *of_w = NULL;
    for (uint32_t i = 0; i < rule->num_inputs; i++)
        in[i] = rule->inputs[i];
    if (tangents[0]) {
        in[0] = tangents[0];
        of_x = groupwise_gather_product(build, rule, in, attrs->transpose);
        in[0] = rule->inputs[0];
    }
    if (in[3] && (tangents[2] || tangents[3])) {
        in[2] = tangents[2] ? tangents[2] : groupwise_filled(build, in[2], 0);
        in[3] = tangents[3] ? tangents[3] : groupwise_filled(build, in[3], 0);
        of_w = groupwise_gather_product(build, rule, in, attrs->transpose);
    }
    out_tangents[0] = tn_add_terms(build, of_x, of_w);
    return TN_OK;
}

// The type of a slice of input `i`.
static tn_type groupwise_gather_slice_type(const tn_build *build, const tn_rule *rule,
                                           uint32_t i, int32_t axis)
{
    const tn_type *type = build->type(rule->inputs[i]);
    tn_type slice = *type;
    for (int32_t at = axis; axis >= 0 && at + 1 < type->rank; at++)
        slice.extent[at] = type->extent[at + 1];
    slice.rank -= axis >= 0;
    return slice;
}

// The ids of operand `operand` for all slices: numbers among all slices' matrices where
// slices have their own.
static tn_array *batched_ids(const tn_build *build, const tn_rule *rule, uint32_t operand,
                             const int32_t *axes, int64_t size, bool has_own)
{
    const tn_type slice = groupwise_gather_slice_type(build, rule, operand, axes[operand]);
    const tn_type *out = build->type(rule->outputs[0]);
    const uint32_t i = LHS + operand;
    const bool is_batched = i < rule->num_inputs && rule->inputs[i] && axes[i] >= 0;
    const int64_t count = groupwise_gather_matrices_of(slice.extent, slice.rank);
    tn_array *ids = ids_of(build, rule, operand, &slice);
    if (!ids || !out)
        return NULL;
    if (is_batched)
        ids = tn_batch_first(build, ids, axes[i], out->rank - 1);
    tn_ints shape = {.count = (uint32_t)out->rank - 2, .given = 1};
    memcpy(shape.value, out->extent, shape.count * sizeof(shape.value[0]));
    int64_t each = 1;
    for (uint32_t axis = 0; axis < shape.count; axis++)
        each *= shape.value[axis]; // at most the number of the result's rows
    const tn_ints all = tn_ints_after(size, &shape);
    ids = build->op(build, "base.broadcast_to/1", TN_IN(ids), tn_attrs("shape", &all));
    return groupwise_gather_numbers(build, ids, count, each, has_own ? count : 0);
}

TN_VMAP(gather_vmap)
{
    const tn_groupwise_gather_attrs *attrs = rule->attrs;
    tn_array *in[NUM_INPUTS] = {NULL};
    bool is_own = false;
    for (uint32_t i = 1; i < 4 && i < rule->num_inputs; i++)
        is_own = is_own || (rule->inputs[i] && axes[i] >= 0);
    in[0] = groupwise_flat(build, axes[0] >= 0
                                      ? tn_move_axis(build, rule->inputs[0], axes[0], 0)
                                      : rule->inputs[0]);
    for (uint32_t i = 1; i < 4 && i < rule->num_inputs; i++)
        if (rule->inputs[i])
            in[i] = groupwise_flat(
                build, is_own ? tn_batch_whole(build, rule->inputs[i], axes[i], size)
                              : rule->inputs[i]);
    in[LHS] = batched_ids(build, rule, 0, axes, size, axes[0] >= 0);
    in[RHS] = batched_ids(build, rule, 1, axes, size, is_own);
    outputs[0] = groupwise_gather_product(build, rule, in, attrs->transpose);
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_groupwise_gather_matmul = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.groupwise_gather_matmul/1",
    .doc = "Products of matrices of x and of words of codes, both chosen by indices.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_groupwise_gather_attrs, fields),
    .infer = gather_infer,
    .decompose = groupwise_gather_decompose,
    .reference = gather_reference,
    .reference_scratch = groupwise_product_scratch,
    .vjp = gather_vjp,
    .jvp = gather_jvp,
    .vmap = gather_vmap,
};
