// SPDX-License-Identifier: MIT
// Evaluates a network over all rows of tables, without training: one function, traced for
// whole batches and for the rest behind the last one.
#include <stdlib.h>
#include <string.h>
#include "common.h"

struct evaluation {
    struct tn_params *params;
    tn_loss_body body;
    void *user;
    const tn_table *tables;
    uint64_t num_tables, num_out;
    tn_array **inputs, **traced; // inputs: tables, then parameters; traced: parameters
    double *sums;
};

static tn_status evaluation_body(tn_scope *s, tn_array *const *inputs, uint64_t num_inputs,
                                 tn_array **outputs, uint64_t num_outputs, void *user)
{
    struct evaluation *e = user;
    tn_net net = {.params = e->params, .scope = s};
    (void)num_inputs, (void)num_outputs;
    memcpy(e->traced, inputs + e->num_tables,
           (size_t)e->params->count * sizeof(*e->traced));
    e->params->traced = e->traced;
    e->params->is_whole = true;
    outputs[0] = e->body(&net, inputs, e->user);
    e->params->traced = NULL;
    e->params->is_whole = false;
    return tn_scope_status(s);
}

// The rows of a table from `first` on.
static tn_array *rows_of_table(tn_scope *s, const tn_table *table, int64_t first,
                               int64_t count)
{
    tn_type row = {.rank = table->shape.rank - 1};
    memcpy(row.extent, table->shape.extent + 1, sizeof(int64_t) * (TN_MAX_RANK - 1));
    uint64_t bytes = train_elements(&row) * (uint64_t)tn_dtype_bytes(table->dtype);
    tn_shape shape = table->shape;
    shape.extent[0] = count;
    return tn_from_data(s, table->dtype, &shape,
                        (const unsigned char *)table->data + (uint64_t)first * bytes);
}

// Adds the body's results for some rows, times the number of rows.
static tn_status train_evaluate_add_rows(struct evaluation *e, tn_function *function,
                                         int64_t first, int64_t count)
{
    tn_array *out = NULL;
    tn_scope *s = tn_scope_open(e->params->runtime);
    tn_status status = train_fail_scope(s);
    for (uint64_t i = 0; i < e->num_tables && status == TN_OK; i++)
        e->inputs[i] = rows_of_table(s, &e->tables[i], first, count);
    for (uint64_t i = 0; i < e->params->count; i++)
        e->inputs[e->num_tables + i] = e->params->items[i].value;
    if (status == TN_OK) {
        tn_function_call(function, s, e->inputs, e->num_tables + e->params->count, &out, 1);
        status = train_fail_scope(s);
    }
    if (status == TN_OK && (tn_array_type(out)->dtype != TN_F32 ||
                            train_elements(tn_array_type(out)) != e->num_out))
        status = train_fail(
            TN_ERR_ARGUMENT, "tn_evaluate: %llu numbers of %s, expected %llu of f32",
            (unsigned long long)train_elements(tn_array_type(out)),
            tn_dtype_name(tn_array_type(out)->dtype), (unsigned long long)e->num_out);
    const float *values = status == TN_OK ? tn_data(s, out) : NULL;
    if (status == TN_OK)
        status = train_fail_scope(s);
    for (uint64_t i = 0; status == TN_OK && i < e->num_out; i++)
        e->sums[i] += (double)values[i] * (double)count;
    tn_scope_close(s);
    return status;
}

static tn_status evaluate_tables(struct evaluation *e, int64_t batch)
{
    tn_function *function = NULL;
    int64_t rows = e->tables[0].shape.extent[0];
    tn_status status = train_fail_core(
        tn_function_create(e->params->runtime, evaluation_body, e, NULL, &function));
    for (int64_t first = 0; first < rows && status == TN_OK; first += batch)
        status = train_evaluate_add_rows(e, function, first,
                                         rows - first < batch ? rows - first : batch);
    tn_function_destroy(function);
    return status;
}

tn_status tn_evaluate(tn_params *params, tn_loss_body body, void *user,
                      const tn_table *tables, uint64_t num_tables, int64_t batch,
                      double *out_means, uint64_t num_means)
{
    tn_status status = train_check_tables(tables, num_tables);
    if (status != TN_OK)
        return status;
    if (!params || !body || batch < 1 || tables[0].shape.extent[0] < 1)
        return train_fail(TN_ERR_ARGUMENT,
                          "tn_evaluate: %lld rows in batches of %lld, expected at least 1 "
                          "of both, a set and a body",
                          (long long)tables[0].shape.extent[0], (long long)batch);
    struct evaluation e = {.params = params,
                           .body = body,
                           .user = user,
                           .tables = tables,
                           .num_tables = num_tables,
                           .num_out = num_means};
    e.inputs = calloc((size_t)(num_tables + 2 * params->count), sizeof(*e.inputs));
    e.sums = calloc((size_t)num_means + 1, sizeof(*e.sums));
    if (e.inputs && e.sums) {
        e.traced = e.inputs + num_tables + params->count;
        status = evaluate_tables(&e, batch);
    } else {
        status = train_fail_memory();
    }
    for (uint64_t i = 0; i < num_means && status == TN_OK; i++)
        out_means[i] = e.sums[i] / (double)tables[0].shape.extent[0];
    free(e.inputs);
    free(e.sums);
    return status;
}
