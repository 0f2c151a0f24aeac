// SPDX-License-Identifier: MIT
// Importance of the columns of a model's arrays: files of imatrix, as `tenon model imatrix`
// and llama.cpp write them. For array NAME they have NAME.in_sum2, [matrices, columns],
// sums of squares over rows, and NAME.counts, [matrices, 1], the numbers of rows.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/ops/quant.h>

#include "model.h"
#include "rewrite.h"

#define MAX_NAME 256

// The type of the array NAME + `end`, with one axis as [1, columns]; false: there is none.
static bool model_importance_find_array(const tn_file *file, const char *name,
                                        const char *end, char out_name[MAX_NAME],
                                        int64_t out[2])
{
    snprintf(out_name, MAX_NAME, "%s%s", name, end);
    for (uint64_t i = 0; tn_file_name(file, i); i++) {
        const tn_type *type = tn_file_type(file, i);
        if (strcmp(tn_file_name(file, i), out_name) != 0)
            continue;
        out[0] = 1;
        out[1] = type->rank > 0 ? type->extent[type->rank - 1] : 1;
        for (int32_t axis = 0; axis + 1 < type->rank; axis++)
            out[0] *= type->extent[axis];
        return type->dtype == TN_F32;
    }
    return false;
}

static int64_t model_importance_matrices_of(const struct rewrite_array *a)
{
    return a->type && a->type->rank > 2 ? a->type->extent[0] : 1;
}

// Sets the importance to means of squares. Where the file has one matrix for all matrices
// of the array, each gets that one.
static void model_importance_divide(struct rewrite_array *a, const float *sums,
                                    const float *counts, int64_t given)
{
    for (int64_t m = 0; m < a->matrices; m++)
        for (int64_t k = 0; k < a->columns; k++) {
            int64_t from = given == a->matrices ? m : 0;
            float count = counts[from];
            a->importance[m * a->columns + k] =
                count > 0 ? sums[from * a->columns + k] / count : 0;
        }
}

// Reads the importance of one array; *out_found: whether the file has it.
static int model_importance_read_array(struct rewrite *r, const tn_file *file,
                                       const char *path, struct rewrite_array *a,
                                       bool *out_found)
{
    char sums[MAX_NAME], counts[MAX_NAME];
    int64_t extent[2], others[2];
    *out_found = model_importance_find_array(file, a->name, ".in_sum2", sums, extent) &&
                 model_importance_find_array(file, a->name, ".counts", counts, others);
    if (!*out_found)
        return 0;
    a->matrices = model_importance_matrices_of(a);
    if (extent[1] != a->columns || (extent[0] != 1 && extent[0] != a->matrices) ||
        others[0] * others[1] != extent[0])
        return oops("%s: '%s' has %" PRId64 " sums of %" PRId64 " columns and %" PRId64
                    " counts, expected 1 or %" PRId64 " of %" PRId64,
                    path, sums, extent[0], extent[1], others[0] * others[1], a->matrices,
                    a->columns);
    a->importance = calloc((size_t)(a->matrices * a->columns) + 1, sizeof(float));
    if (!a->importance)
        return oops_memory();
    tn_scope *s = tn_scope_open(r->runtime);
    const float *data = tn_data(s, tn_file_array(s, file, sums));
    const float *rows = tn_data(s, tn_file_array(s, file, counts));
    int failed = data && rows ? 0 : oops_scope(s);
    if (!failed)
        model_importance_divide(a, data, rows, extent[0]);
    tn_scope_close(s);
    return failed;
}

static int model_importance_read_all(struct rewrite *r, const tn_file *file,
                                     const char *path)
{
    uint64_t found = 0, missing = 0;
    const char *one = NULL;
    for (uint64_t i = 0; i < r->count; i++) {
        struct rewrite_array *a = &r->arrays[i];
        bool is_found = false;
        if (!a->type || a->type->rank < 2 || !tn_quant_find(a->to))
            continue;
        int failed = model_importance_read_array(r, file, path, a, &is_found);
        if (failed)
            return failed;
        found += is_found;
        missing += !is_found;
        one = is_found ? one : a->name;
    }
    if (found == 0)
        return oops("%s: has no importance of an array of %s, expected arrays such as "
                    "'blk.0.attn_q.weight.in_sum2'",
                    path, r->in);
    if (missing)
        note("%" PRIu64 " arrays (%s, say) are not in %s: all their columns count alike",
             missing, one, path);
    return 0;
}

int rewrite_importance(struct rewrite *r, const char *path)
{
    tn_file *file = NULL;
    if (tn_file_open(r->runtime, path, NULL, &file))
        return oops_library();
    int failed = model_importance_read_all(r, file, path);
    tn_file_close(file);
    return failed;
}
