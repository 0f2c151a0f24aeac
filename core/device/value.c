// SPDX-License-Identifier: MIT
// Values: the evaluated elements of arrays, on a device; see struct value.
#include <string.h>
#include "../base/dtype.h"
#include "../base/fail.h"
#include "../base/memory.h"
#include "../base/shape.h"
#include "device.h"

tn_status value_create(struct storage *storage, uint64_t offset, const tn_layout *layout,
                       struct value **out)
{
    struct value *value = mem_alloc(sizeof(*value));
    if (!value)
        return TN_ERR_MEMORY;
    *value = (struct value){.storage = storage, .offset = offset, .layout = *layout};
    atomic_init(&value->refs, 1);
    *out = value;
    return TN_OK;
}

tn_status value_share(struct storage *storage, uint64_t offset, const tn_layout *layout,
                      struct value **out)
{
    storage_retain(storage);
    tn_status status = value_create(storage, offset, layout, out);
    if (status != TN_OK)
        storage_release(storage);
    return status;
}

void value_retain(struct value *value)
{
    atomic_fetch_add_explicit(&value->refs, 1, memory_order_relaxed);
}

void value_release(struct value *value)
{
    if (!value || atomic_fetch_sub_explicit(&value->refs, 1, memory_order_acq_rel) != 1)
        return;
    storage_release(value->storage);
    mem_free(value->host_copy);
    mem_free(value);
}

bool value_is_sole(const struct value *value)
{
    return atomic_load_explicit(&value->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&value->storage->refs, memory_order_acquire) == 1 &&
           value->offset == 0 && storage_is_reusable(value->storage);
}

tn_status value_from_host(tn_runtime *runtime, uint32_t device, const tn_type *type,
                          const void *data, struct value **out)
{
    struct device **devices;
    uint32_t count;
    struct storage *storage;
    uint64_t size = type_bytes(type);
    tn_layout layout = layout_contiguous(type);
    tn_status status = devices_open(runtime, &devices, &count);
    if (status == TN_OK)
        status = storage_create(devices[device], size, QUEUE_HOST, &storage);
    if (status != TN_OK)
        return status;
    status = storage_write(storage, 0, data, size);
    if (status == TN_OK)
        status = value_create(storage, 0, &layout, out);
    if (status != TN_OK)
        storage_release(storage);
    return status;
}
