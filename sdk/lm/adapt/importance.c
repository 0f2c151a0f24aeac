// SPDX-License-Identifier: MIT
// The importance of columns: what the products of a model read, squared, over a text. Files
// are those of llama.cpp's imatrix.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include "../base/fail.h"
#include "../engine/step.h"
#include "train.h"

#define USUAL_WINDOW 512
#define SQUARES ".in_sum2"
#define COUNTS ".counts"

// Sums over all windows, for each product in the order of `gathered`.
struct importance {
    tn_lm *model;
    struct lm_gathered gathered; // of the current window; names and extents hold for all
    double **sums;               // by product, `columns` numbers each
    double *rows;
    uint64_t count; // products; 0: no window has been run
    int64_t windows, window;
};

static void importance_finish(struct importance *p)
{
    for (uint64_t i = 0; p->sums && i < p->count; i++)
        free(p->sums[i]);
    free(p->sums);
    free(p->rows);
    free(p->gathered.sums);
}

static tn_status make_sums(struct importance *p)
{
    p->count = p->gathered.count;
    for (uint64_t i = 0; i < p->count; i++) {
        p->sums[i] = lm_alloc((uint64_t)p->gathered.sums[i].columns, sizeof(**p->sums));
        if (!p->sums[i])
            return TN_ERR_MEMORY;
    }
    return TN_OK;
}

// Adds what the last window gave.
static tn_status add_sums(struct importance *p, tn_scope *scope)
{
    tn_status status = p->count ? TN_OK : make_sums(p);
    for (uint64_t i = 0; i < p->count && status == TN_OK; i++) {
        const struct lm_sum *sum = &p->gathered.sums[i];
        const float *squares = tn_data(scope, sum->squares);
        if (squares)
            status = lm_check_numbers(squares, (uint64_t)sum->columns,
                                      "window %" PRId64
                                      ": squares of what the products of %s read",
                                      p->windows + 1, sum->name);
        if (status != TN_OK)
            break;
        for (int64_t k = 0; squares && k < sum->columns; k++)
            p->sums[i][k] += (double)squares[k];
        p->rows[i] += (double)sum->rows;
        status = lm_fail_scope(scope);
    }
    p->windows++;
    return status;
}

static tn_status run_window(struct importance *p, const int32_t *ids, int32_t count)
{
    tn_scope *scope = tn_scope_open(p->model->runtime);
    uint64_t room = p->gathered.room;
    tn_array **squares = lm_alloc(room, sizeof(*squares));
    tn_status status = !squares ? TN_ERR_MEMORY : lm_fail_scope(scope);
    p->gathered.count = 0;
    if (status == TN_OK) {
        tn_array *tokens = tn_from_data(scope, TN_I32, TN_SHAPE(count), ids);
        lm_build_window(p->model, scope, tokens, count, NULL, &p->gathered);
        for (uint64_t i = 0; i < p->gathered.count; i++)
            squares[i] = p->gathered.sums[i].squares;
        tn_eval_n(scope, squares, p->gathered.count);
        status = lm_fail_scope(scope);
    }
    if (status == TN_OK)
        status = add_sums(p, scope);
    free(squares);
    tn_scope_close(scope);
    return status;
}

// --- the file --------------------------------------------------------------------------

struct importance_named {
    tn_array **arrays;
    char (*texts)[TN_MODEL_NAME + sizeof(SQUARES)];
    const char **names;
};

static void name_sums(const struct importance *p, tn_scope *scope,
                      const struct importance_named *out)
{
    for (uint64_t i = 0; i < p->count; i++) {
        const struct lm_sum *sum = &p->gathered.sums[i];
        float *values = lm_alloc((uint64_t)sum->columns, sizeof(*values));
        float rows = (float)p->rows[i];
        for (int64_t k = 0; values && k < sum->columns; k++)
            values[k] = (float)p->sums[i][k];
        if (!values)
            tn_scope_fail(scope, TN_ERR_MEMORY, "out of memory for sums");
        out->arrays[2 * i] =
            values ? tn_from_data(scope, TN_F32, TN_SHAPE(1, sum->columns), values) : NULL;
        out->arrays[2 * i + 1] = tn_from_data(scope, TN_F32, TN_SHAPE(1, 1), &rows);
        free(values);
        for (uint64_t k = 2 * i; k < 2 * i + 2; k++) {
            snprintf(out->texts[k], sizeof(out->texts[k]), "%s%s", sum->name,
                     k % 2 ? COUNTS : SQUARES);
            out->names[k] = out->texts[k];
        }
    }
}

static tn_status importance_save(const struct importance *p, const char *path)
{
    const tn_text type = {"imatrix", 7}, none = {"", 0};
    const tn_metadata pairs[] = {
        {"general.type", &type, 1, TN_METADATA_TEXT, 0},
        {"imatrix.datasets", &none, 1, TN_METADATA_TEXT, TN_METADATA_LIST},
        {"imatrix.chunk_count", &p->windows, 1, TN_METADATA_INTEGER, 0},
        {"imatrix.chunk_size", &p->window, 1, TN_METADATA_INTEGER, 0},
    };
    const tn_metadata_list list = {sizeof(list), sizeof(pairs[0]), pairs, COUNT(pairs),
                                   path};
    const tn_save_options options = {.struct_size = sizeof(options), .metadata = &list};
    uint64_t count = 2 * p->count;
    const struct importance_named named = {lm_alloc(count, sizeof(*named.arrays)),
                                           lm_alloc(count, sizeof(*named.texts)),
                                           lm_alloc(count, sizeof(*named.names))};
    tn_scope *scope = tn_scope_open(p->model->runtime);
    tn_status status = TN_ERR_MEMORY;
    if (named.arrays && named.texts && named.names) {
        if (scope) {
            name_sums(p, scope, &named);
            tn_save(scope, path, named.arrays, named.names, count, &options);
        }
        status = lm_fail_scope(scope);
    }
    tn_scope_close(scope);
    free(named.arrays);
    free(named.texts);
    free(named.names);
    return status;
}

tn_status tn_lm_importance_save(tn_lm *model, const int32_t *ids, uint64_t count,
                                int64_t window, const char *path)
{
    int64_t usual = model->context < USUAL_WINDOW ? model->context : USUAL_WINDOW;
    struct importance p = {.model = model, .window = window ? window : usual};
    tn_status status = TN_OK;
    if (p.window < 1 || p.window > model->context || count < 1)
        return lm_fail(TN_ERR_ARGUMENT,
                       "%" PRIu64 " tokens in windows of %" PRId64
                       ", expected one or more in windows of at most %" PRId64,
                       count, p.window, model->context);
    for (uint64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= model->facts->vocabulary)
            return lm_fail(TN_ERR_ARGUMENT,
                           "token %" PRIu64 " is %d, expected 0 to %" PRId64, i, ids[i],
                           model->facts->vocabulary - 1);
    status = lm_check_here(model);
    if (status == TN_OK)
        status = tn_lm_ensure_shard(model, 0, model->facts->layers - 1);
    if (status != TN_OK)
        return status;
    p.gathered.room = model->weights.count;
    p.gathered.sums = lm_alloc(p.gathered.room, sizeof(*p.gathered.sums));
    p.sums = lm_alloc(p.gathered.room, sizeof(*p.sums));
    p.rows = lm_alloc(p.gathered.room, sizeof(*p.rows));
    status = p.gathered.sums && p.sums && p.rows ? TN_OK : TN_ERR_MEMORY;
    for (uint64_t at = 0; at < count && status == TN_OK; at += (uint64_t)p.window) {
        uint64_t left = count - at;
        status = run_window(&p, ids + at,
                            left < (uint64_t)p.window ? (int32_t)left : (int32_t)p.window);
    }
    if (status == TN_OK)
        status = importance_save(&p, path);
    importance_finish(&p);
    return status;
}
