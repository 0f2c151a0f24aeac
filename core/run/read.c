// SPDX-License-Identifier: MIT
// Reading arrays on the host (tn_read, tn_data, tn_item): elements are row-major, without
// gaps. Also tn_keep.
#include <math.h>
#include <string.h>
#include <tenon/ops/reference.h>
#include <tenon/retain.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../device/outcome.h"
#include "run.h"

tn_array *read_evaluated(tn_scope *scope, const char *function, tn_array *array)
{
    if (scope_begin(scope, function, NO_LISTS) != TN_OK)
        return NULL;
    array = scope_local(scope, array);
    if (!array) {
        if (scope->status == TN_OK)
            tn_scope_fail(scope, TN_ERR_ARGUMENT, "%s: the array is NULL", function);
        return NULL;
    }
    // Fails in a child of fork(), too.
    return tn_eval_n(scope, &array, 1) == TN_OK ? array : NULL;
}

// --- contiguous copies -----------------------------------------------------------------

static tn_array *copy_on_device(tn_scope *scope, const tn_array *array)
{
    tn_array *copy = NULL;
    tn_status status =
        graph_apply(scope, prim_copy(scope->runtime), &array, 1, NULL, &copy, 1);
    return status == TN_OK && tn_eval_n(scope, &copy, 1) == TN_OK ? copy : NULL;
}

// Reads the range of bytes that a strided value lies in, and writes its elements to `plain`
// without gaps.
static tn_status gather_elements(const struct value *value, const tn_type *type,
                                 void *plain)
{
    struct span range;
    tn_tensor from = {.layout = value->layout};
    const tn_tensor to = {.layout = layout_contiguous(type), .data = plain};
    if (!layout_span(&value->layout, &range))
        return fail(TN_ERR_INTERNAL, "read: a view beyond the start of its memory");
    uint64_t size = (uint64_t)(range.high - range.low);
    from.layout.offset -= range.low / (int64_t)dtype_size(type->dtype);
    from.data = mem_alloc(size);
    if (!from.data)
        return TN_ERR_MEMORY;
    tn_status status =
        storage_read(value->storage, value->offset + (uint64_t)range.low, from.data, size);
    if (status == TN_OK)
        tn_copy_region(&to, &from);
    mem_free(from.data);
    return status;
}

static tn_array *copy_on_host(tn_scope *scope, const tn_array *array)
{
    tn_shape shape = {.rank = array->type.rank};
    memcpy(shape.extent, array->type.extent, sizeof(shape.extent));
    void *plain = mem_alloc(type_bytes(&array->type));
    tn_status status =
        plain ? gather_elements(array->value, &array->type, plain) : TN_ERR_MEMORY;
    tn_array *copy = scope_take_failure(scope, status) == TN_OK
                         ? tn_from_data(scope, array->type.dtype, &shape, plain)
                         : NULL;
    mem_free(plain);
    return copy;
}

tn_array *read_copied(tn_scope *scope, const tn_array *array)
{
    uint32_t before = scope->device;
    scope->device = array->value->storage->device->number + 1;
    tn_array *copy = copy_on_device(scope, array);
    if (scope->status == TN_ERR_UNSUPPORTED) { // no device of the runtime copies
        tn_scope_clear_error(scope);
        copy = copy_on_host(scope, array);
    }
    scope->device = before;
    return copy;
}

// --- reading ---------------------------------------------------------------------------

tn_array *read_contiguous(tn_scope *scope, tn_array *array)
{
    return layout_is_contiguous(&array->value->layout) ? array : read_copied(scope, array);
}

// Evaluates the array. Gives it, or a contiguous copy when its layout is not contiguous.
static tn_array *run_read_ready(tn_scope *scope, tn_array *array)
{
    array = read_evaluated(scope, "read", array);
    return array ? read_contiguous(scope, array) : NULL;
}

// The same, but what was evaluated before may still be computed.
static tn_array *ready_soon(tn_scope *scope, tn_array *array)
{
    if (!array || scope_begin(scope, "read", NO_LISTS) != TN_OK || scope->tracing ||
        life_check(&scope->runtime->life) != TN_OK)
        return run_read_ready(scope, array);
    tn_array *local = scope_local(scope, array);
    return local && local->value && layout_is_contiguous(&local->value->layout)
               ? local
               : run_read_ready(scope, array);
}

static uint64_t run_read_first_byte(const struct value *value)
{
    return value->offset + (uint64_t)value->layout.offset * dtype_size(value->layout.dtype);
}

const void *tn_array_elements(const tn_array *array)
{
    const struct value *value = array && !array->scope ? array_value(array) : NULL;
    if (!value || !storage_is_idle(value->storage) ||
        !outcome_succeeded(value->storage->outcome) ||
        !layout_is_contiguous(&value->layout))
        return NULL;
    const struct device *device = value->storage->device;
    return atomic_load(&device->lost) || life_is_inherited(&device->runtime->life)
               ? NULL
               : read_in_place(value);
}

tn_status tn_read(tn_scope *scope, tn_array *array, void *data, uint64_t size)
{
    char text[TYPE_TEXT];
    array = ready_soon(scope, array);
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
        scope,
        storage_read(array->value->storage, run_read_first_byte(array->value), data, size));
}

const void *read_in_place(const struct value *value)
{
    const struct device *device = value->storage->device;
    if (!TN_HAS(device->ops, buffer_map))
        return NULL;
    const char *bytes = device->ops->buffer_map(device->handle, value->storage->buffer);
    return bytes ? bytes + run_read_first_byte(value) : NULL;
}

const void *read_copy(tn_scope *scope, struct value *value)
{
    void *made = NULL;
    uint64_t bytes =
        (uint64_t)layout_elements(&value->layout) * dtype_size(value->layout.dtype);
    if ((made = atomic_load_explicit(&value->host_copy, memory_order_acquire)))
        return made;
    void *copy = mem_alloc(bytes ? bytes : 1);
    tn_status status =
        copy ? storage_read(value->storage, run_read_first_byte(value), copy, bytes)
             : TN_ERR_MEMORY;
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
    array = run_read_ready(scope, array);
    if (!array)
        return NULL;
    const void *bytes = read_in_place(array->value);
    return bytes ? bytes : read_copy(scope, array->value);
}

double tn_item(tn_scope *scope, tn_array *array)
{
    unsigned char element[DTYPE_MAX_SIZE];
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
