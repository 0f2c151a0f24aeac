// SPDX-License-Identifier: MIT
// tenon embed: texts as vectors, in JSON.
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lm.h"

static int read_pooling(const char *name, uint32_t *out)
{
    static const char *const names[] = {
        [TN_LM_POOL_MEAN] = "mean", [TN_LM_POOL_LAST] = "last", [TN_LM_POOL_FIRST] = "cls"};
    *out = TN_LM_POOL_MEAN;
    for (size_t i = 0; name && i <= COUNT(names); i++) {
        if (i == COUNT(names))
            return stop("--pooling is '%s', expected mean, last or cls", name);
        *out = (uint32_t)i;
        if (strcmp(names[i], name) == 0)
            break;
    }
    return 0;
}

// Gives one row of the result; takes nothing.
static int lm_embed(const struct opened *opened, const struct lm_options *given,
                    const char *text, uint32_t pooling, float *row, int64_t width,
                    json_t *rows)
{
    int32_t *ids = NULL;
    uint64_t count = 0;
    if (tn_lm_tokenize(opened->lm, text, strlen(text), given->raw ? 0 : TN_LM_ADD_SPECIAL,
                       &ids, &count))
        return stop_lm();
    tn_status status = tn_lm_embed(opened->sequence, ids, (int64_t)count, pooling,
                                   given->plain ? 0 : TN_LM_UNIT, row);
    tn_lm_free(ids);
    if (status != TN_OK)
        return stop("'%.40s': %s", text, tn_lm_error());
    json_t *list = json_array();
    for (int64_t i = 0; i < width; i++)
        json_array_append_new(list, json_real((double)row[i]));
    json_t *item = json_pack("{s:s%, s:I, s:o}", "text", text, strlen(text), "tokens",
                             (json_int_t)count, "embedding", list);
    return item && json_array_append_new(rows, item) == 0
               ? 0
               : stop("'%.40s' is not valid UTF-8", text);
}

int run_embed(const struct lm_options *given)
{
    struct opened opened;
    uint32_t pooling;
    if (read_pooling(given->pooling, &pooling))
        return 2;
    if (open_model(given, &opened))
        return 1;
    tn_lm_info info = {.struct_size = sizeof(info)};
    tn_lm_describe(opened.lm, &info);
    json_t *rows = json_array();
    float *row = malloc(sizeof(*row) * (size_t)info.width);
    int failed = rows && row ? 0 : stop_memory();
    for (int i = 1; i < given->num_items && !failed; i++) {
        char *text = NULL;
        failed = read_argument(given->items[i], &text);
        if (!failed)
            failed = lm_embed(&opened, given, text, pooling, row, info.width, rows);
        free(text);
    }
    if (!failed) {
        json_dumpf(rows, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        printf("\n");
        tell_model(&opened);
    }
    json_decref(rows);
    free(row);
    close_model(&opened);
    return failed;
}
