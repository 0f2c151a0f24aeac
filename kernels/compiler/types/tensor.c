// SPDX-License-Identifier: MIT
// Types of tensors' layouts and views, by their parameters' values.
#include "translator.h"

// The parameters that are not given have their defaults.
static const struct type *tensor_type_tensor_of(struct translator *t, enum base base,
                                                uint64_t *values, uint32_t count,
                                                const struct position *at)
{
    uint32_t dimensions = (uint32_t)values[0], ids[8];
    uint32_t wanted = base == TYPE_TENSOR_LAYOUT ? 2 : 2 + dimensions;
    if (count > 2 && count != wanted)
        fail_at(t, at, "a tensor of %u dimensions has %u parameters, expected 1, 2 or %u",
                dimensions, count, wanted);
    if (base == TYPE_TENSOR_LAYOUT && count == 2 && values[1] > 4)
        fail_at(t, at, "the clamp mode of a tensor is %lld, expected 0 to 4",
                (long long)values[1]);
    for (uint32_t i = 2; i < count; i++)
        for (uint32_t j = i; j < count; j++)
            if (values[i] >= dimensions || (j > i && values[i] == values[j]))
                fail_at(t, at,
                        "axis %lld of a tensor's view is out of range or named twice",
                        (long long)values[i]);
    for (uint32_t i = 0; i < wanted; i++) {
        if (i >= count)
            values[i] = base == TYPE_TENSOR_VIEW && i >= 2 ? i - 2 : 0;
        ids[i] = base == TYPE_TENSOR_VIEW && i == 1 ? ir_bool(t->ir, values[i] != 0)
                                                    : ir_u32(t->ir, (uint32_t)values[i]);
    }
    return type_tensor(t, base, dimensions, ids, wanted);
}

const struct type *type_tensor_of(struct translator *t, enum base base, uint64_t *values,
                                  uint32_t count, const struct position *at)
{
    if (count == 0 || count > 7 || values[0] < 1 || values[0] > 5)
        return NULL;
    return tensor_type_tensor_of(t, base, values, count, at);
}
