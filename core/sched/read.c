// SPDX-License-Identifier: MIT
// Reading: elements of an array for the host, row-major without gaps.
#include <math.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "plan.h"

// The array evaluated, and contiguous: a copy of it when it is a view with gaps.
static tn_array *ready(tn_scope *scope, tn_array *array)
{
    if (scope_begin(scope, "read", NO_LISTS) != TN_OK)
        return NULL;
    array = scope_local(scope, array);
    if (!array) {
        if (scope->status == TN_OK)
            tn_scope_fail(scope, TN_ERR_ARGUMENT, "read: the array is NULL");
        return NULL;
    }
    if (tn_eval_n(scope, &array, 1) != TN_OK) // fails in a child of fork(), too
        return NULL;
    if (layout_is_contiguous(&array->value->layout))
        return array;
    const tn_array *input = array;
    tn_array *copy = NULL;
    if (graph_apply(scope, prim_copy(scope->runtime), &input, 1, NULL, &copy) != TN_OK)
        return NULL;
    return tn_eval_n(scope, &copy, 1) == TN_OK ? copy : NULL;
}

static uint64_t first_byte(const struct value *value)
{
    return value->offset + (uint64_t)value->layout.offset * dtype_size(value->layout.dtype);
}

tn_status tn_read(tn_scope *scope, tn_array *array, void *data, uint64_t size)
{
    char text[TYPE_TEXT];
    array = ready(scope, array);
    if (!array)
        return scope ? scope->status : TN_ERR_ARGUMENT;
    uint64_t bytes = type_bytes(&array->type);
    if (size != bytes)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "read: %s has %llu bytes, the call gives room for %llu",
                             type_print(&array->type, text), (unsigned long long)bytes,
                             (unsigned long long)size);
    if (!data && size > 0)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT, "read: data is NULL");
    return scope_take_failure(
        scope, storage_read(array->value->storage, first_byte(array->value), data, size));
}

static const void *host_copy(tn_scope *scope, struct value *value, uint64_t bytes)
{
    void *made = NULL;
    if ((made = atomic_load_explicit(&value->host_copy, memory_order_acquire)))
        return made;
    void *copy = mem_alloc(bytes ? bytes : 1);
    tn_status status =
        copy ? storage_read(value->storage, first_byte(value), copy, bytes) : TN_ERR_MEMORY;
    if (status != TN_OK) {
        mem_free(copy);
        scope_take_failure(scope, status);
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&value->host_copy, &made, copy)) {
        mem_free(copy); // another thread was first
        return made;
    }
    return copy;
}

const void *tn_data(tn_scope *scope, tn_array *array)
{
    array = ready(scope, array);
    if (!array)
        return NULL;
    struct value *value = array->value;
    struct device *device = value->storage->device;
    if (TN_HAS(device->ops, buffer_map)) {
        const char *bytes = device->ops->buffer_map(device->handle, value->storage->buffer);
        if (bytes)
            return bytes + first_byte(value);
    }
    return host_copy(scope, value, type_bytes(&array->type));
}

double tn_item(tn_scope *scope, tn_array *array)
{
    unsigned char element[8];
    char text[TYPE_TEXT];
    if (scope_begin(scope, "item", NO_LISTS) != TN_OK)
        return NAN;
    if (!array) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "item: the array is NULL");
        return NAN;
    }
    if (type_elements(&array->type) != 1) {
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "item: got %s, expected one element",
                      type_print(&array->type, text));
        return NAN;
    }
    if (tn_read(scope, array, element, dtype_size(array->type.dtype)) != TN_OK)
        return NAN;
    return dtype_load(array->type.dtype, element);
}

// --- arrays that outlive their scope ---------------------------------------------------

struct kept {
    tn_array array;
    struct node node;
    char *name; // of the array; NULL: none
    tn_runtime *runtime;
};

tn_array *tn_keep(tn_scope *scope, tn_array *array)
{
    if (scope_begin(scope, "keep", NO_LISTS) != TN_OK)
        return NULL;
    tn_array *local = scope_local(scope, array);
    if (!local) {
        if (scope->status == TN_OK)
            tn_scope_fail(scope, TN_ERR_ARGUMENT, "keep: the array is NULL");
        return NULL;
    }
    if (!local->value && tn_eval_async_n(scope, &local, 1) != TN_OK)
        return NULL;
    struct kept *kept = mem_zalloc(sizeof(*kept));
    if (!kept) {
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    kept->name = local->name ? mem_strdup(local->name) : NULL;
    if (local->name && !kept->name) {
        mem_free(kept);
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    kept->node =
        (struct node){.kind = NODE_DATA, .num_outputs = 1, .outputs = &kept->array};
    kept->runtime = scope->runtime;
    kept->array.node = &kept->node;
    kept->array.type = local->type;
    kept->array.name = kept->name;
    kept->array.value = local->value;
    value_retain(local->value);
    atomic_init(&kept->array.refs, 1);
    life_add(&scope->runtime->life.kept);
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
    life_remove(&life->kept);
}
