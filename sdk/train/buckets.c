// SPDX-License-Identifier: MIT
// Means over the members of a group of many arrays, such as gradients, in buckets: each
// bucket is one message, which moves while the arrays of later buckets are computed.
// Buckets are filled from the last array on, as gradients of the last layers are computed
// first.
#include <string.h>
#include "common.h"

// The most arrays of a bucket, and buckets; the least bytes that a full bucket has.
enum { MOST_ARRAYS = 256, LEAST_BYTES = 4 << 20 };

static uint64_t buckets_bytes_of(const tn_array *array)
{
    const tn_type *type = tn_array_type(array);
    return train_elements(type) * (uint64_t)tn_dtype_bytes(type->dtype);
}

// The bytes of a full bucket: more if the arrays have many bytes, so that buckets stay few.
static uint64_t bucket_bytes(tn_array *const *arrays, uint64_t count)
{
    uint64_t all = 0;
    for (uint64_t i = 0; i < count; i++)
        all += buckets_bytes_of(arrays[i]);
    return all / 100 > LEAST_BYTES ? all / 100 : LEAST_BYTES;
}

// First array of the bucket whose last array is `end` - 1: arrays of one dtype, of at most
// `most` bytes unless one array has more.
static uint64_t bucket_first(tn_array *const *arrays, uint64_t end, uint64_t most)
{
    tn_dtype dtype = tn_array_type(arrays[end - 1])->dtype;
    uint64_t first = end, bytes = 0;
    for (; first > 0 && end - first < MOST_ARRAYS; first--) {
        bytes += buckets_bytes_of(arrays[first - 1]);
        if (first < end &&
            (bytes > most || tn_array_type(arrays[first - 1])->dtype != dtype))
            break;
    }
    return first;
}

// Starts the reduction of a bucket, behind that with ticket `after`; gives its ticket.
static tn_array *bucket_start(const struct train_group *group, tn_scope *s, tn_array *after,
                              tn_array *const *arrays, uint64_t count)
{
    const tn_array *inputs[1 + MOST_ARRAYS] = {after};
    for (uint64_t i = 0; i < count; i++)
        inputs[1 + i] = arrays[i];
    return tn_op(s, "dist.all_reduce_start/1", inputs, 1 + count,
                 tn_attrs("reduction", "mean", "group", group->name));
}

// Replaces the arrays of a bucket by the parts of its ticket's result.
static void bucket_finish(tn_scope *s, tn_array *ticket, tn_array **arrays, uint64_t count)
{
    int64_t all = 0, at = 0;
    for (uint64_t i = 0; i < count; i++)
        all += (int64_t)train_elements(tn_array_type(arrays[i]));
    tn_array *flat =
        tn_op(s, "dist.all_reduce_finish/1", TN_IN(ticket),
              tn_attrs("count", all, "dtype", tn_array_type(arrays[0])->dtype));
    for (uint64_t i = 0; i < count; i++) {
        const tn_type *type = tn_array_type(arrays[i]);
        int64_t size = (int64_t)train_elements(type);
        tn_ints extents = {.count = (uint32_t)type->rank, .given = 1};
        const tn_ints *shape = &extents;
        memcpy(extents.value, type->extent, sizeof(extents.value));
        tn_array *part = tn_op(s, "base.slice/1", TN_IN(flat),
                               tn_attrs("start", TN_INTS(at), "stop", TN_INTS(at + size)));
        arrays[i] = tn_op(s, "base.reshape/1", TN_IN(part), tn_attrs("shape", shape));
        at += size;
    }
}

tn_status group_average(const struct train_group *group, tn_scope *scope, tn_array **arrays,
                        uint64_t count)
{
    const int64_t none = 0;
    uint64_t most = bucket_bytes(arrays, count), end = count, num_tickets = 0;
    tn_array *tickets[MOST_ARRAYS], *after = tn_from_data(scope, TN_I64, TN_SCALAR, &none);
    while (end > 0 && num_tickets < MOST_ARRAYS) {
        uint64_t first = bucket_first(arrays, end, most);
        after = tickets[num_tickets++] =
            bucket_start(group, scope, after, arrays + first, end - first);
        end = first;
    }
    if (end > 0)
        return tn_scope_fail(scope, TN_ERR_UNSUPPORTED,
                             "%llu arrays are more than %d buckets hold",
                             (unsigned long long)count, MOST_ARRAYS);
    end = count;
    for (uint64_t k = 0; k < num_tickets; k++) {
        uint64_t first = bucket_first(arrays, end, most);
        bucket_finish(scope, tickets[k], arrays + first, end - first);
        end = first;
    }
    return tn_scope_status(scope);
}
