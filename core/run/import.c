// SPDX-License-Identifier: MIT
// Arrays of the application's memory: tn_array_import_host, and DLPack's tensors by
// tn_array_import. Whatever is taken is released exactly once, on failure too.
#include <stddef.h>
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/shape.h"
#include "../device/device.h"
#include "../primitive/registry.h"
#include "run.h"

// Memory that either kind of import hands over.
struct given_memory {
    const char *function; // for messages
    tn_layout layout;     // offset 0
    const void *data;
    struct host_memory memory;      // `data` and `size` are not set
    const tn_shared_memory *shared; // of tn_array_import_fd; NULL: `data` counts
    bool must_share;
};

static void run_import_release(const struct host_memory *memory)
{
    if (memory->release)
        memory->release(memory->context);
}

// Records the failure in the scope, if there is one and it has none, and releases.
static tn_array *run_import_give_back(tn_scope *scope, const struct given_memory *given,
                                      tn_status status)
{
    if (scope)
        scope_take_failure(scope, status);
    run_import_release(&given->memory);
    return NULL;
}

static tn_status check_pointer(const struct given_memory *given)
{
    size_t size = dtype_size(tn_dtype_real(given->layout.dtype));
    if (given->shared || layout_elements(&given->layout) == 0)
        return TN_OK;
    if (!given->data)
        return fail(TN_ERR_ARGUMENT, "%s: data is NULL", given->function);
    if ((uintptr_t)given->data % size)
        return fail(
            TN_ERR_ARGUMENT,
            "%s: data at %p, expected a multiple of %zu bytes, the size of %s: copy "
            "it, as tn_from_data does",
            given->function, given->data, size,
            dtype_name(tn_dtype_real(given->layout.dtype)));
    return TN_OK;
}

// Replaces the strides of a row-major layout, but for axes that are never stepped over.
// `strides` may be NULL.
static void take_strides(tn_layout *layout, const int64_t *strides)
{
    for (int32_t i = 0; strides && i < layout->rank; i++)
        if (layout->extent[i] > 1)
            layout->stride[i] = strides[i];
}

// Makes the array; takes the memory.
static tn_array *import_array(tn_scope *scope, const struct given_memory *given)
{
    struct value *value = NULL;
    tn_type type = {.dtype = given->layout.dtype, .rank = given->layout.rank};
    memcpy(type.extent, given->layout.extent, sizeof(type.extent));
    tn_status status = check_pointer(given);
    if (status != TN_OK)
        return run_import_give_back(scope, given, status);
    uint32_t device = scope_data_device(scope);
    status = given->shared
                 ? value_from_fd(scope->runtime, device, &given->layout, given->shared,
                                 &given->memory, &value)
                 : value_from_memory(scope->runtime, device, &given->layout, given->data,
                                     &given->memory, given->must_share, &value);
    if (status != TN_OK) {
        fail_prefix("%s: ", given->function);
        scope_take_failure(scope, status);
        return NULL;
    }
    return leaf_from_value(scope, &type, value);
}

// --- memory of the host ----------------------------------------------------------------

static tn_status check_flags(const char *record, uint32_t flags, uint32_t known)
{
    return flags & ~known
               ? fail(TN_ERR_ARGUMENT, "%s: flags 0x%x are unknown", record, flags & ~known)
               : TN_OK;
}

static tn_status read_memory(const tn_host_memory *given, tn_host_memory *out)
{
    uint32_t size = given->struct_size ? given->struct_size : TN_END_OF(out, context);
    tn_status status = abi_struct_read(out, sizeof(*out), given, size, TN_END_OF(out, data),
                                       "tn_host_memory");
    return status == TN_OK ? check_flags("tn_host_memory", out->flags,
                                         TN_MEMORY_WRITABLE | TN_MEMORY_NO_COPY)
                           : status;
}

static tn_status read_shared(const tn_shared_memory *given, tn_shared_memory *out)
{
    uint32_t size = given->struct_size ? given->struct_size : TN_END_OF(out, context);
    tn_status status = abi_struct_read(out, sizeof(*out), given, size,
                                       TN_END_OF(out, device), "tn_shared_memory");
    return status == TN_OK ? check_flags("tn_shared_memory", out->flags, TN_MEMORY_WRITABLE)
                           : status;
}

// Imports with a shape and strides; takes the memory. `status`: of reading the record.
static tn_array *import_shaped(tn_scope *scope, tn_status status, tn_dtype dtype,
                               const tn_shape *shape, const int64_t *strides,
                               struct given_memory *given)
{
    tn_type type;
    if (scope_begin(scope, given->function, NO_LISTS) != TN_OK)
        return run_import_give_back(scope, given, TN_OK);
    if (status == TN_OK)
        status = type_from_shape(dtype, shape, &type);
    if (status != TN_OK) {
        fail_prefix("%s: ", given->function);
        return run_import_give_back(scope, given, status);
    }
    given->layout = layout_contiguous(&type);
    take_strides(&given->layout, strides);
    return import_array(scope, given);
}

static tn_array *no_memory(tn_scope *scope, const char *function)
{
    if (scope_begin(scope, function, NO_LISTS) == TN_OK)
        tn_scope_fail(scope, TN_ERR_ARGUMENT, "%s: the memory is NULL", function);
    return NULL;
}

tn_array *tn_array_import_host(tn_scope *scope, tn_dtype dtype, const tn_shape *shape,
                               const tn_host_memory *memory)
{
    struct given_memory given = {.function = "array_import_host"};
    tn_host_memory mine = {0};
    if (!memory)
        return no_memory(scope, given.function);
    tn_status status = read_memory(memory, &mine);
    given.memory = (struct host_memory){.writable = mine.flags & TN_MEMORY_WRITABLE,
                                        .release = mine.release,
                                        .context = mine.context};
    given.data = mine.data;
    given.must_share = mine.flags & TN_MEMORY_NO_COPY;
    return import_shaped(scope, status, dtype, shape, mine.strides, &given);
}

tn_array *tn_array_import_fd(tn_scope *scope, tn_dtype dtype, const tn_shape *shape,
                             const tn_shared_memory *memory)
{
    tn_shared_memory mine = {0};
    struct given_memory given = {.function = "array_import_fd", .shared = &mine};
    if (!memory)
        return no_memory(scope, given.function);
    tn_status status = read_shared(memory, &mine);
    given.memory = (struct host_memory){.writable = mine.flags & TN_MEMORY_WRITABLE,
                                        .release = mine.release,
                                        .context = mine.context};
    return import_shaped(scope, status, dtype, shape, mine.strides, &given);
}

// --- DLPack ----------------------------------------------------------------------------

static const struct {
    uint8_t code, bits;
    tn_dtype dtype;
} dl_types[] = {
    {kDLBool, 8, TN_BOOL},
    {kDLInt, 8, TN_I8},
    {kDLInt, 16, TN_I16},
    {kDLInt, 32, TN_I32},
    {kDLInt, 64, TN_I64},
    {kDLUInt, 8, TN_U8},
    {kDLUInt, 16, TN_U16},
    {kDLUInt, 32, TN_U32},
    {kDLUInt, 64, TN_U64},
    {kDLFloat, 16, TN_F16},
    {kDLBfloat, 16, TN_BF16},
    {kDLFloat, 32, TN_F32},
    {kDLFloat, 64, TN_F64},
    {kDLComplex, 64, TN_COMPLEX64},
    {kDLComplex, 128, TN_COMPLEX128},
    {kDLFloat8_e4m3fn, 8, TN_F8_E4M3},
    {kDLFloat8_e5m2, 8, TN_F8_E5M2},
};

bool dlpack_type(tn_dtype dtype, DLDataType *out)
{
    for (size_t i = 0; i < sizeof(dl_types) / sizeof(dl_types[0]); i++)
        if (dl_types[i].dtype == dtype) {
            *out = (DLDataType){dl_types[i].code, dl_types[i].bits, 1};
            return true;
        }
    return false;
}

static tn_status read_dtype(const DLDataType *given, tn_dtype *out)
{
    for (size_t i = 0; i < sizeof(dl_types) / sizeof(dl_types[0]); i++)
        if (dl_types[i].code == given->code && dl_types[i].bits == given->bits &&
            given->lanes == 1) {
            *out = dl_types[i].dtype;
            return TN_OK;
        }
    return fail(TN_ERR_ARGUMENT,
                "DLPack type code %u of %u bits and %u lanes is no dtype here", given->code,
                given->bits, given->lanes);
}

static tn_status read_tensor(const DLTensor *tensor, struct given_memory *given)
{
    tn_type type = {.rank = tensor->ndim};
    tn_status status = read_dtype(&tensor->dtype, &type.dtype);
    if (status != TN_OK)
        return status;
    if (tensor->device.device_type != kDLCPU && tensor->device.device_type != kDLCUDAHost)
        return fail(TN_ERR_ARGUMENT,
                    "a tensor on device type %d (number %d), expected one of the host: "
                    "kDLCPU (1) or kDLCUDAHost (3)",
                    tensor->device.device_type, tensor->device.device_id);
    if (tensor->ndim > 0 && !tensor->shape)
        return fail(TN_ERR_ARGUMENT, "a tensor of %d axes without a shape", tensor->ndim);
    for (int32_t i = 0; tensor->ndim <= TN_MAX_RANK && i < tensor->ndim; i++)
        type.extent[i] = tensor->shape[i];
    status = type_check(&type);
    if (status != TN_OK)
        return status;
    given->layout = layout_contiguous(&type);
    take_strides(&given->layout, tensor->strides);
    if (tensor->byte_offset > UINTPTR_MAX - (uintptr_t)tensor->data)
        return fail(TN_ERR_ARGUMENT, "byte_offset %llu leaves the address space",
                    (unsigned long long)tensor->byte_offset);
    given->data = tensor->data ? (const char *)tensor->data + tensor->byte_offset : NULL;
    return TN_OK;
}

// Imports the tensor, NULL when it cannot be read; takes its memory.
static tn_array *import_tensor(tn_scope *scope, const DLTensor *tensor, tn_status status,
                               struct given_memory *given)
{
    if (scope_begin(scope, given->function, NO_LISTS) != TN_OK)
        return run_import_give_back(scope, given, TN_OK);
    if (status == TN_OK)
        status = tensor ? read_tensor(tensor, given)
                        : fail(TN_ERR_ARGUMENT, "the tensor is NULL");
    if (status == TN_OK)
        return import_array(scope, given);
    fail_prefix("%s: ", given->function);
    return run_import_give_back(scope, given, status);
}

static void delete_tensor(void *context)
{
    DLManagedTensor *tensor = context;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

tn_array *tn_array_import(tn_scope *scope, struct DLManagedTensor *tensor)
{
    struct given_memory given = {
        .function = "array_import",
        .memory = {.release = tensor ? delete_tensor : NULL, .context = tensor}};
    return import_tensor(scope, tensor ? &tensor->dl_tensor : NULL, TN_OK, &given);
}

static void run_import_delete_versioned(void *context)
{
    DLManagedTensorVersioned *tensor = context;
    if (tensor->deleter)
        tensor->deleter(tensor);
}

tn_array *tn_array_import_versioned(tn_scope *scope,
                                    struct DLManagedTensorVersioned *tensor)
{
    struct given_memory given = {
        .function = "array_import_versioned",
        .memory = {.release = tensor ? run_import_delete_versioned : NULL,
                   .context = tensor}};
    tn_status status = TN_OK;
    // Another major version shares only the members up to the deleter.
    if (tensor && tensor->version.major != DLPACK_MAJOR_VERSION)
        status = fail(TN_ERR_ARGUMENT, "a tensor of DLPack %u.%u, expected %d.x",
                      tensor->version.major, tensor->version.minor, DLPACK_MAJOR_VERSION);
    return import_tensor(scope, tensor ? &tensor->dl_tensor : NULL, status, &given);
}
