// SPDX-License-Identifier: MIT
// Low-rank additions to products, in a graph.
#include <stdlib.h>
#include <string.h>
#include "low_rank.h"

static uint64_t low_rank_item_of(const struct lm_adapter *adapter, const char *name)
{
    uint64_t i = 0;
    while (i < adapter->count && strcmp(adapter->items[i].name, name) != 0)
        i++;
    return i;
}

static tn_array *times_transpose(tn_scope *scope, tn_array *x, tn_array *matrix)
{
    tn_array *turned = tn_op(scope, "base.transpose/1", TN_IN(matrix), TN_NO_ATTRS);
    return tn_op(scope, "base.matmul/1", TN_IN(x, turned), TN_NO_ATTRS);
}

tn_array *lm_adapted(const struct lm_adapter *adapter, tn_scope *scope,
                     tn_array *const *trained, const char *name, tn_array *x,
                     tn_array *product)
{
    uint64_t i = low_rank_item_of(adapter, name);
    if (i == adapter->count)
        return product;
    const struct lm_low_rank *item = &adapter->items[i];
    double rank = (double)tn_array_type(item->down)->extent[0];
    tn_array *low = times_transpose(scope, x, trained ? trained[2 * i] : item->down);
    tn_array *more = times_transpose(scope, low, trained ? trained[2 * i + 1] : item->up);
    return tn_expr(scope, "y, z -> y + scale * z", TN_IN(product, more),
                   tn_attrs("scale", adapter->alpha / rank * adapter->scale));
}

void lm_adapter_free(struct lm_adapter *adapter)
{
    for (uint64_t i = 0; i < adapter->count; i++) {
        tn_release(adapter->items[i].down);
        tn_release(adapter->items[i].up);
    }
    free(adapter->items);
    *adapter = (struct lm_adapter){0};
}
