// SPDX-License-Identifier: MIT
// Arrays of one value, triangles and grids: zeros, ones, empty, full_like and its like,
// tri, meshgrid.
#include "../pack.h"

typedef struct {
    tn_ints shape;
    int64_t dtype;
} filled_attrs;

static const tn_attr_field filled_fields[] = {
    TN_REQUIRED_FIELD(filled_attrs, shape, TN_ATTR_INTS, "extents of the result"),
    TN_DTYPE_FIELD(filled_attrs, dtype, 0, "dtype; not given: f32"),
};

static tn_array *fill_shape(const tn_build *build, const tn_ints *shape, double value,
                            int64_t dtype)
{
    return build->op(build, "base.full/1", NULL, 0,
                     tn_attrs("shape", shape, "value", value, "dtype", dtype));
}

DECOMPOSE(zeros)
{
    const filled_attrs *attrs = rule->attrs;
    outputs[0] = fill_shape(build, &attrs->shape, 0, attrs->dtype);
    return built(outputs[0]);
}

DECOMPOSE(ones)
{
    const filled_attrs *attrs = rule->attrs;
    outputs[0] = fill_shape(build, &attrs->shape, 1, attrs->dtype);
    return built(outputs[0]);
}

#define empty_decompose zeros_decompose
#define FILLED .attrs = TN_ATTR_TABLE(filled_attrs, filled_fields)
COMPOSITE(zeros, "Zeros.", FILLED);
COMPOSITE(ones, "Ones.", FILLED);
COMPOSITE(empty, "Zeros: an array to be written over.", FILLED);

// --- with another array's extents -------------------------------------------------------

typedef struct {
    int64_t dtype;
    double value;
} like_attrs;

static const tn_attr_field like_fields[] = {
    TN_DTYPE_FIELD(like_attrs, dtype, 0, "dtype; not given: x's"),
};
static const tn_attr_field full_like_fields[] = {
    TN_REQUIRED_FIELD(like_attrs, value, TN_ATTR_F64, "what every element is"),
    TN_DTYPE_FIELD(like_attrs, dtype, 0, "dtype; not given: x's"),
};

static tn_status fill_like(const tn_build *build, const tn_rule *rule, double value,
                           tn_array **outputs)
{
    const like_attrs *attrs = rule->attrs;
    const tn_type *x = build->type(rule->inputs[0]);
    const tn_ints shape = tn_extents(build, rule->inputs[0]);
    outputs[0] = fill_shape(build, &shape, value, attrs->dtype ? attrs->dtype : x->dtype);
    return built(outputs[0]);
}

DECOMPOSE(zeros_like)
{
    return fill_like(build, rule, 0, outputs);
}

DECOMPOSE(ones_like)
{
    return fill_like(build, rule, 1, outputs);
}

DECOMPOSE(full_like)
{
    const like_attrs *attrs = rule->attrs;
    return fill_like(build, rule, attrs->value, outputs);
}

#define empty_like_decompose zeros_like_decompose
#define LIKE TN_INPUTS(base_any_x), .attrs = TN_ATTR_TABLE(like_attrs, like_fields)
COMPOSITE(zeros_like, "Zeros with x's extents.", LIKE);
COMPOSITE(ones_like, "Ones with x's extents.", LIKE);
COMPOSITE(empty_like, "Zeros with x's extents: an array to be written over.", LIKE);
COMPOSITE(full_like, "An array of one value with x's extents.", TN_INPUTS(base_any_x),
          .attrs = TN_ATTR_TABLE(like_attrs, full_like_fields));

// --- tri --------------------------------------------------------------------------------

static const tn_attr_field tri_fields[] = {
    TN_REQUIRED_FIELD(tn_eye_attrs, n, TN_ATTR_I64, "rows"),
    TN_I64_FIELD(tn_eye_attrs, m, -1, "columns; -1: as many as rows"),
    TN_I64_FIELD(tn_eye_attrs, k, 0, "the diagonal; above 0: above the main one"),
    TN_DTYPE_FIELD(tn_eye_attrs, dtype, 0, "dtype; not given: f32"),
};

DECOMPOSE(tri)
{
    const tn_eye_attrs *attrs = rule->attrs;
    const tn_ints shape = {2, 1, {attrs->n, attrs->m == -1 ? attrs->n : attrs->m}};
    tn_array *whole = fill_shape(build, &shape, 1, attrs->dtype);
    outputs[0] = build->op(build, "base.tril/1", TN_IN(whole), tn_attrs("k", attrs->k));
    return built(outputs[0]);
}

COMPOSITE(tri, "Ones at and below a diagonal of a matrix, else zeros.",
          .attrs = TN_ATTR_TABLE(tn_eye_attrs, tri_fields));

// --- meshgrid ---------------------------------------------------------------------------

typedef struct {
    int64_t indexing; // of indexing_names
    int64_t sparse;
} meshgrid_attrs;

static const char *const indexing_names[] = {"xy", "ij", NULL};
static const tn_input_info meshgrid_inputs[] = {
    {"arrays", "of rank 0 or 1, one for each axis of the grid", TN_INPUT_VARIADIC,
     TN_ALL_DTYPES},
};
static const tn_output_info meshgrid_outputs[] = {
    {"grid", "the coordinates along an axis, in order", 0, 0}};
static const tn_attr_field meshgrid_fields[] = {
    TN_CHOICE_FIELD(meshgrid_attrs, indexing, 0, indexing_names,
                    "ij: axis i of the grid is array i; xy: the first two are exchanged"),
    TN_BOOL_FIELD(meshgrid_attrs, sparse, 0, "results keep extent 1 on the other axes"),
};

DECOMPOSE(meshgrid)
{
    const meshgrid_attrs *attrs = rule->attrs;
    const tn_host *host = build->host;
    tn_ints grid = {rule->num_inputs, 1, {0}};
    if (rule->num_inputs > TN_MAX_RANK)
        return host->fail(host, TN_ERR_ARGUMENT, "got %u arrays, expected at most %d",
                          rule->num_inputs, TN_MAX_RANK);
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        const tn_type *x = build->type(rule->inputs[i]);
        uint32_t axis = attrs->indexing == 0 && rule->num_inputs > 1 && i < 2 ? 1 - i : i;
        if (x->rank > 1)
            return host->fail(host, TN_ERR_ARGUMENT,
                              "array %u has rank %d, expected 0 or 1", i, x->rank);
        grid.value[axis] = x->rank ? x->extent[0] : 1;
    }
    for (uint32_t i = 0; i < rule->num_inputs; i++) {
        uint32_t axis = attrs->indexing == 0 && rule->num_inputs > 1 && i < 2 ? 1 - i : i;
        tn_ints along = {rule->num_inputs, 1, {1, 1, 1, 1, 1, 1, 1, 1}};
        along.value[axis] = grid.value[axis];
        outputs[i] = with_shape(build, "base.reshape/1", rule->inputs[i], along);
        if (!attrs->sparse)
            outputs[i] = with_shape(build, "base.broadcast_to/1", outputs[i], grid);
    }
    return built(outputs[rule->num_inputs - 1]);
}

COMPOSITE(meshgrid, "The coordinates of a grid from those along each axis.",
          TN_INPUTS(meshgrid_inputs), TN_OUTPUTS(meshgrid_outputs),
          .attrs = TN_ATTR_TABLE(meshgrid_attrs, meshgrid_fields),
          .count_outputs = output_each_input);
