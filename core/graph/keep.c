// SPDX-License-Identifier: MIT
// Kept arrays: arrays that outlive the scope in which they were computed.
// Reference-counted; any scope of the runtime may use them.
#include "../base/fail.h"
#include "../device/device.h"
#include "graph.h"

// `array` comes first: tn_release() casts it to the whole.
struct kept {
    tn_array array;
    struct node node;
    char *name; // owned; the array's name, or NULL
    tn_runtime *runtime;
};

tn_array *kept_create(tn_scope *scope, const tn_array *array)
{
    struct kept *kept = mem_zalloc(sizeof(*kept));
    char *name = array->name ? mem_strdup(array->name) : NULL;
    if (!kept || (array->name && !name)) {
        mem_free(kept);
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    *kept = (struct kept){
        .node = {.kind = NODE_DATA, .num_outputs = 1, .outputs = &kept->array},
        .array = {.node = &kept->node,
                  .type = array->type,
                  .name = name,
                  .value = array->value},
        .name = name,
        .runtime = scope->runtime,
    };
    value_retain(array->value);
    atomic_init(&kept->array.refs, 1);
    life_add(&scope->runtime->life, LIFE_KEPT);
    return &kept->array;
}

void tn_release(tn_array *array)
{
    // Arrays that are not kept belong to their scope.
    if (!array || array->scope ||
        atomic_fetch_sub_explicit(&array->refs, 1, memory_order_acq_rel) != 1)
        return;
    struct life *life = &((struct kept *)array)->runtime->life;
    value_release(array->value);
    mem_free(((struct kept *)array)->name);
    mem_free((struct kept *)array);
    life_remove(life, LIFE_KEPT);
}
