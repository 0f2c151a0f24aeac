// SPDX-License-Identifier: MIT
// The permutation of rows that row exchanges make.
#include "memory/batch.h"

static tn_status lu_permutation_infer(const tn_infer *infer, tn_type *types)
{
    const tn_type *pivots = &infer->types[0];
    int64_t rows = ((const tn_lu_permutation_attrs *)infer->attrs)->rows;
    char text[SHAPE_TEXT];
    if (pivots->rank < 1 || rows < pivots->extent[pivots->rank - 1] || rows >= INT32_MAX)
        return infer->host->fail(infer->host, TN_ERR_ARGUMENT,
                                 "pivots have shape %s and rows is %" PRId64
                                 ", expected at least one row for each pivot",
                                 shape_text(pivots, text), rows);
    types[0] = *pivots;
    types[0].extent[pivots->rank - 1] = rows;
    return TN_OK;
}

static int exchange_rows(const struct batch_job *job, int64_t index, char *room)
{
    struct matrix_view pivots = job_matrix(job, &job->call->inputs[0], 1, index);
    struct matrix_view order = job_matrix(job, &job->call->outputs[0], 1, index);
    (void)room;
    for (int64_t i = 0; i < order.rows; i++)
        *(int32_t *)matrix_at(&order, i, 0) = (int32_t)i;
    for (int64_t i = 0; i < pivots.rows; i++) {
        int32_t other = *(const int32_t *)matrix_at(&pivots, i, 0);
        other = other < 0 ? 0 : other >= order.rows ? (int32_t)order.rows - 1 : other;
        int32_t *a = matrix_at(&order, i, 0), *b = matrix_at(&order, other, 0), kept = *a;
        *a = *b;
        *b = kept;
    }
    return 0;
}

static uint64_t lu_permutation_scratch(const tn_kernel_query *query)
{
    (void)query;
    return 0;
}

static tn_status lu_permutation_launch(const tn_cpu_call *call)
{
    const tn_layout *out = &call->outputs[0].layout;
    int64_t index = 0;
    struct batch_job job = job_start(call, "linalg.lu_permutation", exchange_rows, out, 1,
                                     (double)out->extent[out->rank - 1]);
    job_run_all(&job, &index);
    return TN_OK;
}

// Integers have no derivative.
TN_VJP(lu_permutation_vjp)
{
    (void)build, (void)cotangents, (void)gradients;
    return TN_OK;
}

TN_JVP(lu_permutation_jvp)
{
    (void)build, (void)tangents, (void)out_tangents;
    return TN_OK;
}

TN_VMAP(lu_permutation_vmap)
{
    const tn_lu_permutation_attrs *attrs = rule->attrs;
    return batched_matrices(build, rule, axes, "linalg.lu_permutation/1",
                            tn_attrs("rows", attrs->rows), outputs, out_axes);
}

static const tn_input_info inputs[] = {
    {"pivots", "of lu_factor", TN_INPUT_CONSTANT, TN_DTYPE_BIT(TN_I32)},
};
static const tn_attr_field fields[] = {
    TN_REQUIRED_FIELD(tn_lu_permutation_attrs, rows, TN_ATTR_I64, "rows of the matrices"),
};
FACTORISATION(lu_permutation, lu_permutation_launch, lu_permutation_scratch,
              "The order of rows that exchanges make: row i of l u is row out[i] of a.",
              TN_INPUTS(inputs), .attrs = TN_ATTR_TABLE(tn_lu_permutation_attrs, fields));
