// SPDX-License-Identifier: MIT
// IDX: the first byte is the number of axes that are expected.
#include "fuzz.h"
#include "fail.h"
#include "images.h"

void fuzz_one(const uint8_t *data, size_t size)
{
    struct bytes array = {0};
    int32_t rank = size ? 1 + data[0] % 3 : 1;
    forget_failure();
    if (idx_read(fuzz_path(data + !!size, size - !!size), rank, &array)) {
        FUZZ_CHECK(failure_text()[0] && !array.data, "a failure has a text and no array");
        return;
    }
    uint64_t elements = 1;
    for (int32_t i = 0; i < array.shape.rank; i++)
        elements *= (uint64_t)array.shape.extent[i];
    FUZZ_CHECK(array.shape.rank == rank && array.count == elements,
               "the shape is the data's");
    bytes_finish(&array);
}
