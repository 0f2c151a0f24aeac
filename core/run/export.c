// SPDX-License-Identifier: MIT
// tn_array_export: the elements of an array as a DLPack tensor, which keeps the array's
// value alive until its deleter is called. tn_array_export_fd: memory for others.
#include <stdlib.h>
#include <string.h>
#include <tenon/retain.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "run.h"

// One exported tensor. The union is what the receiver gets; its manager_ctx points here.
struct exported {
    union {
        DLManagedTensor plain;
        DLManagedTensorVersioned versioned;
    } managed;
    struct value *value; // with a reference
    tn_runtime *runtime;
    int64_t extent[TN_MAX_RANK], stride[TN_MAX_RANK];
};

static void export_end(struct exported *exported)
{
    struct life *life = &exported->runtime->life;
    value_release(exported->value);
    mem_free(exported);
    life_remove(life, LIFE_EXPORTS);
}

static void delete_plain(DLManagedTensor *self)
{
    if (self)
        export_end(self->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned *self)
{
    if (self)
        export_end(self->manager_ctx);
}

// Evaluates, and gives the array whose elements are at *out_data on the host: the array
// itself, or its contiguous copy. NULL with the scope's failure set.
static tn_array *on_host(tn_scope *scope, const char *function, tn_array *array,
                         const void **out_data)
{
    // An evaluated array needs no stand-in in the scope.
    if (scope_begin(scope, function, NO_LISTS) == TN_OK && !scope->tracing &&
        life_check(&scope->runtime->life) == TN_OK &&
        (*out_data = tn_array_elements(array)))
        return array;
    array = read_evaluated(scope, function, array);
    if (!array)
        return NULL;
    *out_data = read_in_place(array->value);
    if (*out_data)
        return array;
    array = read_contiguous(scope, array);
    if (array)
        *out_data = read_copy(scope, array->value);
    return array && *out_data ? array : NULL;
}

// Along an axis that is never stepped over, consumers expect the stride of a row-major
// array.
static void fill_strides(const tn_array *array, int64_t *stride)
{
    const tn_layout *layout = &array->value->layout;
    const tn_layout plain = layout_contiguous(&array->type);
    bool is_empty = type_elements(&array->type) == 0;
    for (int32_t i = 0; i < layout->rank; i++)
        stride[i] =
            is_empty || layout->extent[i] == 1 ? plain.stride[i] : layout->stride[i];
}

static DLTensor run_export_describe(const tn_array *array, const void *data,
                                    struct exported *exported)
{
    DLTensor tensor = {
        .data = (void *)(uintptr_t)data,
        .device = {.device_type = kDLCPU},
        .ndim = array->type.rank,
        .shape = exported->extent,
        .strides = exported->stride,
    };
    memcpy(exported->extent, array->type.extent, sizeof(exported->extent));
    fill_strides(array, exported->stride);
    dlpack_type(array->type.dtype, &tensor.dtype);
    return tensor;
}

static struct exported *export_array(tn_scope *scope, const char *function, tn_array *array,
                                     DLTensor *out_tensor)
{
    const void *data;
    DLDataType type;
    array = on_host(scope, function, array, &data);
    if (!array)
        return NULL;
    if (!dlpack_type(array->type.dtype, &type)) {
        tn_scope_fail(scope, TN_ERR_UNSUPPORTED, "%s: DLPack has no type for %s", function,
                      dtype_name(array->type.dtype));
        return NULL;
    }
    struct exported *exported = mem_zalloc(sizeof(*exported));
    if (!exported) {
        scope_take_failure(scope, TN_ERR_MEMORY);
        return NULL;
    }
    exported->value = array->value;
    exported->runtime = scope->runtime;
    value_retain(array->value);
    life_add(&scope->runtime->life, LIFE_EXPORTS);
    *out_tensor = run_export_describe(array, data, exported);
    return exported;
}

struct DLManagedTensor *tn_array_export(tn_scope *scope, tn_array *array)
{
    DLTensor tensor;
    struct exported *exported = export_array(scope, "array_export", array, &tensor);
    if (!exported)
        return NULL;
    exported->managed.plain = (DLManagedTensor){
        .dl_tensor = tensor, .manager_ctx = exported, .deleter = delete_plain};
    return &exported->managed.plain;
}

struct DLManagedTensorVersioned *tn_array_export_versioned(tn_scope *scope, tn_array *array)
{
    DLTensor tensor;
    struct exported *exported =
        export_array(scope, "array_export_versioned", array, &tensor);
    if (!exported)
        return NULL;
    exported->managed.versioned = (DLManagedTensorVersioned){
        .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
        .manager_ctx = exported,
        .deleter = delete_versioned,
        .flags = DLPACK_FLAG_BITMASK_READ_ONLY,
        .dl_tensor = tensor,
    };
    return &exported->managed.versioned;
}

tn_status tn_array_export_fd(tn_scope *scope, tn_array *array, tn_shared_memory *out)
{
    tn_shared_memory mine = {0};
    array = read_evaluated(scope, "array_export_fd", array);
    if (!array)
        return scope ? scope->status : TN_ERR_ARGUMENT;
    if (!out)
        return tn_scope_fail(scope, TN_ERR_ARGUMENT, "array_export_fd: the record is NULL");
    uint32_t size = out->struct_size ? out->struct_size : TN_END_OF(out, context);
    if (size < TN_END_OF(out, device))
        return tn_scope_fail(scope, TN_ERR_ARGUMENT,
                             "array_export_fd: a record of %u bytes, expected %llu or more",
                             size, (unsigned long long)TN_END_OF(out, device));
    array = read_contiguous(scope, array);
    if (!array)
        return scope->status;
    tn_status status = value_export_fd(array->value, &mine);
    if (status != TN_OK) {
        fail_prefix("array_export_fd: ");
        return scope_take_failure(scope, status);
    }
    size = size < sizeof(mine) ? size : sizeof(mine);
    mine.struct_size = size;
    memcpy(out, &mine, size);
    return TN_OK;
}
