// SPDX-License-Identifier: MIT
// quant.groupwise_matmul: x times a matrix of codes with scales (and biases) of groups.
#include "groupwise_product.h"

static const tn_input_info inputs[] = {GROUPWISE_PRODUCT_INPUTS};
static const tn_attr_field fields[] = {GROUPWISE_PRODUCT_FIELDS(tn_groupwise_matmul_attrs)};

// --- types ------------------------------------------------------------------------------

tn_status groupwise_product_check(const tn_infer *infer, const struct groupwise *format,
                                  int64_t transpose, int32_t least, tn_dtype *out_dtype,
                                  int64_t *out_columns)
{
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0], *w = &infer->types[1];
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    int64_t row;
    tn_status status = groupwise_check(infer, format, 1, &row);
    if (status)
        return status;
    if (w->rank < 2 || x->rank < least)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s and w %s, expected rank %d and 2, or more",
                          shape_text(x, text), shape_text(w, other), least);
    const int64_t rows = w->extent[w->rank - 2], k = transpose ? row : rows;
    if (x->extent[x->rank - 1] != k)
        return host->fail(host, TN_ERR_ARGUMENT,
                          "x has shape %s and w %s of %" PRId64 " bits%s, expected %" PRId64
                          " elements along the last axis of x",
                          shape_text(x, text), shape_text(w, other), format->bits,
                          transpose ? ", transposed" : "", k);
    *out_columns = transpose ? rows : row;
    *out_dtype =
        format->mode == TN_GROUPWISE_affine
            ? groupwise_dtype(x->dtype, infer->types[2].dtype, infer->types[3].dtype)
            : x->dtype;
    return TN_OK;
}

static tn_status matmul_infer(const tn_infer *infer, tn_type *types)
{
    const tn_groupwise_matmul_attrs *attrs = infer->attrs;
    const tn_host *host = infer->host;
    const tn_type *x = &infer->types[0], *w = &infer->types[1];
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    struct groupwise format;
    tn_type out = {.rank = 0};
    int64_t columns = 0;
    tn_status status = GROUPWISE_FORMAT(host, attrs, &format);
    if (status == TN_OK)
        status = groupwise_product_check(infer, &format, attrs->transpose, 1, &out.dtype,
                                         &columns);
    if (status)
        return status;
    for (int32_t i = (x->rank > w->rank ? x->rank : w->rank) - 3; i >= 0; i--) {
        out.extent[out.rank] = tn_broadcast_extent(x, w, 2, i);
        if (out.extent[out.rank++] < 0)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "x has shape %s and w %s, expected batch axes that broadcast",
                              shape_text(x, text), shape_text(w, other));
    }
    if (x->rank > 1)
        out.extent[out.rank++] = x->extent[x->rank - 2];
    out.extent[out.rank++] = columns;
    types[0] = out;
    return TN_OK;
}

// --- the definition ---------------------------------------------------------------------

// Scratch for a row of w as floats, and for the sums of a row of the result.
uint64_t groupwise_product_scratch(const tn_kernel_query *query)
{
    const tn_layout *x = &query->inputs[0], *out = &query->outputs[0];
    const uint64_t k = (uint64_t)x->extent[x->rank - 1];
    const uint64_t n = (uint64_t)out->extent[out->rank - 1];
    return tn_saturated_add(tn_saturated_multiply(n, sizeof(double)),
                            tn_saturated_multiply(k > n ? k : n, sizeof(float)));
}

// By the transposed matrix: a row of w gives an element of each row of the result.
static void groupwise_matmul_multiply_rows(const struct groupwise_product *p,
                                           int64_t *index, int64_t from, int64_t to)
{
    const tn_layout *x = &p->x->layout, *out = &p->out->layout;
    const int32_t last = p->w->layout.rank - 1;
    const int64_t step = x->stride[x->rank - 1];
    float *values = p->scratch;
    for (int64_t n = 0; n < p->columns; n++, to += out->stride[out->rank - 1]) {
        index[last - 1] = n;
        groupwise_decode(&p->format, p->w, p->scales, p->biases, 1, index, values);
        for (int64_t m = 0; m < p->rows; m++) {
            double sum = 0;
            for (int64_t i = 0; i < p->k; i++)
                sum += tn_get_f64(p->x, from + m * p->x_row + i * step) * (double)values[i];
            tn_set_f64(p->out, to + m * p->out_row, sum);
        }
    }
}

// By the matrix itself: adds its rows times elements of a row of x.
static void groupwise_matmul_multiply_columns(const struct groupwise_product *p,
                                              int64_t *index, int64_t from, int64_t to)
{
    const tn_layout *x = &p->x->layout, *out = &p->out->layout;
    const int32_t last = p->w->layout.rank - 1;
    double *sums = p->scratch;
    float *values = (float *)(void *)(sums + p->columns);
    for (int64_t m = 0; m < p->rows; m++, from += p->x_row, to += p->out_row) {
        for (int64_t n = 0; n < p->columns; n++)
            sums[n] = 0;
        for (int64_t i = 0; i < p->k; i++) {
            double factor = tn_get_f64(p->x, from + i * x->stride[x->rank - 1]);
            index[last - 1] = i;
            groupwise_decode(&p->format, p->w, p->scales, p->biases, 1, index, values);
            for (int64_t n = 0; n < p->columns; n++)
                sums[n] += factor * (double)values[n];
        }
        for (int64_t n = 0; n < p->columns; n++)
            tn_set_f64(p->out, to + n * out->stride[out->rank - 1], sums[n]);
    }
}

void groupwise_multiply(const struct groupwise_product *p, int64_t *index, int64_t from,
                        int64_t to)
{
    if (p->transpose)
        groupwise_matmul_multiply_rows(p, index, from, to);
    else
        groupwise_matmul_multiply_columns(p, index, from, to);
}

void groupwise_product_of(const tn_cpu_call *call, int64_t transpose,
                          const struct groupwise *format, struct groupwise_product *out)
{
    const tn_layout *x = &call->inputs[0].layout, *result = &call->outputs[0].layout;
    const bool has_rows = x->rank > 1;
    *out = (struct groupwise_product){
        .format = *format,
        .x = &call->inputs[0],
        .w = &call->inputs[1],
        .scales = &call->inputs[2],
        .biases = &call->inputs[3],
        .out = &call->outputs[0],
        .transpose = transpose != 0,
        .rows = has_rows ? x->extent[x->rank - 2] : 1,
        .k = x->extent[x->rank - 1],
        .columns = result->extent[result->rank - 1],
        .x_row = has_rows ? x->stride[x->rank - 2] : 0,
        .out_row = has_rows ? result->stride[result->rank - 2] : 0,
        .scratch = call->scratch,
    };
}

// Sets an operand's `own` batch axes to the position of `index` in the result.
static void batch_index(const tn_layout *layout, int32_t own, const int64_t *index,
                        int32_t batches, int64_t *out)
{
    for (int32_t i = 0; i < own; i++)
        out[i] = layout->extent[i] == 1 ? 0 : index[batches - own + i];
}

static tn_status matmul_reference(const tn_cpu_call *call)
{
    const tn_groupwise_matmul_attrs *attrs = call->attrs;
    const tn_layout *x = &call->inputs[0].layout, *w = &call->inputs[1].layout,
                    *out = &call->outputs[0].layout;
    const int32_t batches = out->rank - (x->rank > 1 ? 2 : 1);
    int64_t index[TN_MAX_RANK] = {0};
    struct groupwise format;
    struct groupwise_product product;
    tn_status status = GROUPWISE_FORMAT(call->host, attrs, &format);
    if (status || tn_layout_count(out) == 0)
        return status;
    groupwise_product_of(call, attrs->transpose, &format, &product);
    do {
        int64_t left[TN_MAX_RANK] = {0}, right[TN_MAX_RANK] = {0};
        batch_index(x, x->rank > 2 ? x->rank - 2 : 0, index, batches, left);
        batch_index(w, w->rank - 2, index, batches, right);
        groupwise_multiply(&product, right, tn_offset_at(x, left),
                           tn_offset_at(out, index));
    } while (tn_index_next(batches, out->extent, index));
    return TN_OK;
}

// --- rules ------------------------------------------------------------------------------

static tn_array *groupwise_matmul_product(const tn_build *build, const tn_rule *rule,
                                          const tn_array *x, const tn_array *w,
                                          const tn_array *scales, const tn_array *biases,
                                          int64_t transpose)
{
    const tn_groupwise_matmul_attrs *attrs = rule->attrs;
    return build->op(build, "quant.groupwise_matmul/1", TN_IN(x, w, scales, biases),
                     tn_attrs("mode", attrs->mode, "bits", attrs->bits, "group",
                              attrs->group, "transpose", transpose, "exact", attrs->exact));
}

tn_array *groupwise_swapped(const tn_build *build, const tn_array *x)
{
    const tn_type *type = x ? build->type(x) : NULL;
    if (!type || type->rank < 2)
        return NULL;
    tn_ints axes = {.count = (uint32_t)type->rank, .given = 1};
    for (int32_t i = 0; i < type->rank; i++)
        axes.value[i] = i;
    axes.value[type->rank - 2] = type->rank - 1;
    axes.value[type->rank - 1] = type->rank - 2;
    return build->op(build, "base.transpose/1", TN_IN(x),
                     tn_attrs("axes", (const tn_ints *)&axes));
}

// x as one matrix of all its rows; a vector becomes a row.
static tn_array *groupwise_matmul_as_matrix(const tn_build *build, tn_array *x)
{
    const tn_type *type = x ? build->type(x) : NULL;
    if (!type || type->rank < 1)
        return NULL;
    int64_t rows = 1;
    for (int32_t i = 0; i < type->rank - 1; i++)
        rows *= type->extent[i]; // at most the number of x's elements
    return build->op(build, "base.reshape/1", TN_IN(x),
                     tn_attrs("shape", TN_INTS(rows, type->extent[type->rank - 1])));
}

TN_VJP(matmul_vjp)
{
    const tn_groupwise_matmul_attrs *attrs = rule->attrs;
    tn_array *x = rule->inputs[0], *w = rule->inputs[1], *g = cotangents[0];
    tn_array *biases = rule->num_inputs > 3 ? rule->inputs[3] : NULL;
    const tn_type *of_x = build->type(x), *of_w = build->type(w), *of_g = build->type(g);
    struct groupwise format;
    tn_status status = GROUPWISE_FORMAT(build->host, attrs, &format);
    if (status || !g)
        return status;
    if (groupwise_is_wanted(wanted, 0))
        gradients[0] = groupwise_matmul_product(build, rule, g, w, rule->inputs[2], biases,
                                                !attrs->transpose);
    if (!of_x || !of_w || !of_g || (wanted[0] & 0xc) == 0)
        return TN_OK;
    // The matrix's gradient: where all rows of x share one matrix, it is one product.
    x = cast(build, x, of_g->dtype);
    if (of_w->rank == 2 || of_x->rank == 1) {
        x = groupwise_matmul_as_matrix(build, x);
        g = of_w->rank == 2 ? groupwise_matmul_as_matrix(build, g)
                            : build->op(build, "base.expand_dims/1", TN_IN(g),
                                        tn_attrs("axis", TN_INTS(-2)));
    }
    tn_array *left = groupwise_swapped(build, attrs->transpose ? g : x);
    tn_array *matrix = build->op(build, "base.matmul/1",
                                 TN_IN(left, attrs->transpose ? x : g), TN_NO_ATTRS);
    return groupwise_gradients(build, rule, &format, 1, matrix, wanted, gradients);
}

// Linear in x, and in scales and biases together.
TN_JVP(matmul_jvp)
{
    const tn_groupwise_matmul_attrs *attrs = rule->attrs;
    tn_array *const *in = rule->inputs, *of_x = NULL, *of_w = NULL;
    tn_array *biases = rule->num_inputs > 3 ? in[3] : NULL;
    if (tangents[0])
        of_x = groupwise_matmul_product(build, rule, tangents[0], in[1], in[2], biases,
                                        attrs->transpose);
    if (biases && (tangents[2] || tangents[3]))
        of_w = groupwise_matmul_product(
            build, rule, in[0], in[1],
            tangents[2] ? tangents[2] : groupwise_filled(build, in[2], 0),
            tangents[3] ? tangents[3] : groupwise_filled(build, biases, 0),
            attrs->transpose);
    out_tangents[0] = tn_add_terms(build, of_x, of_w);
    return TN_OK;
}

// Batch axes broadcast, so operands without a batch stay; a row becomes a matrix where w
// has a batch.
TN_VMAP(matmul_vmap)
{
    const tn_groupwise_matmul_attrs *attrs = rule->attrs;
    tn_array *in[4] = {NULL};
    bool is_own = false; // whether slices have a w of their own
    for (uint32_t i = 0; i < rule->num_inputs && i < 4; i++) {
        in[i] = rule->inputs[i];
        is_own = is_own || (i > 0 && in[i] && axes[i] >= 0);
    }
    const tn_type *w = build->type(in[1]), *x = build->type(in[0]);
    if (!w || !x)
        return TN_ERR_ARGUMENT;
    const int32_t rows = x->rank - (axes[0] >= 0), matrix = w->rank - (axes[1] >= 0);
    const bool is_row = rows == 1 && (is_own || matrix > 2);
    const int32_t own = is_row ? 2 : rows, rank = 1 + (own > matrix ? own : matrix);
    for (uint32_t i = 1; i < 4 && is_own; i++)
        if (in[i])
            in[i] =
                tn_batch_first(build, tn_batch_whole(build, in[i], axes[i], size), 0, rank);
    in[0] = axes[0] >= 0 ? tn_move_axis(build, in[0], axes[0], 0) : in[0];
    if (is_row)
        in[0] = build->op(build, "base.expand_dims/1", TN_IN(in[0]),
                          tn_attrs("axis", TN_INTS(-2)));
    if (axes[0] >= 0 && (is_own || matrix > 2))
        in[0] = tn_batch_first(build, in[0], 0, rank);
    outputs[0] =
        groupwise_matmul_product(build, rule, in[0], in[1], in[2], in[3], attrs->transpose);
    if (is_row)
        outputs[0] = build->op(build, "base.squeeze/1", TN_IN(outputs[0]),
                               tn_attrs("axis", TN_INTS(-2)));
    out_axes[0] = 0;
    return built(outputs[0]);
}

const tn_primitive quant_groupwise_matmul = {
    .struct_size = sizeof(tn_primitive),
    .id = "quant.groupwise_matmul/1",
    .doc = "The product of x and the transposed matrix, or the matrix, that words of codes "
           "stand for.",
    TN_INPUTS(inputs),
    .attrs = TN_ATTR_TABLE(tn_groupwise_matmul_attrs, fields),
    .infer = matmul_infer,
    .decompose = groupwise_matmul_decompose,
    .reference = matmul_reference,
    .reference_scratch = groupwise_product_scratch,
    .vjp = matmul_vjp,
    .jvp = matmul_jvp,
    .vmap = matmul_vmap,
};
