// SPDX-License-Identifier: MIT
// Reading arrays on the host (tn_read, tn_data, tn_item): elements are row-major, without
// gaps. Also tn_keep.
#include <math.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../plan/plan.h"

// Evaluates the array. Gives it, or a contiguous copy when its layout is not contiguous.
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

// The value's elements in host memory that lives as long as the value. Threads may race to
// make the copy: the first one wins.
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
        mem_free(copy);
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
    return kept_create(scope, local);
}
