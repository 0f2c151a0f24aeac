// SPDX-License-Identifier: MIT
// .npy: what is read is written, and read again as the same.
#include "fuzz.h"
#include "../tools/formats.h"

static void same(const struct host_array *a, const struct host_array *b)
{
    FUZZ_CHECK(a->dtype == b->dtype && a->shape.rank == b->shape.rank &&
                   a->bytes == b->bytes,
               "type and size");
    for (int32_t i = 0; i < a->shape.rank; i++)
        FUZZ_CHECK(a->shape.extent[i] == b->shape.extent[i], "extent %d", i);
    FUZZ_CHECK(memcmp(a->data, b->data, a->bytes) == 0, "elements");
}

static void write_and_read(const struct host_array *array)
{
    char path[96];
    struct host_array again = {0};
    snprintf(path, sizeof(path), "%s/out.npy", fuzz_folder());
    FUZZ_CHECK(npy_write(path, array) == 0, "%s", oops_text());
    FUZZ_CHECK(npy_read(path, &again) == 0, "%s", oops_text());
    same(array, &again);
    host_array_finish(&again);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct host_array array = {0};
    forget_oops();
    if (npy_read(fuzz_path(data, size), &array)) {
        FUZZ_CHECK(oops_text()[0] && !array.data, "a failure has a text and no array");
        return;
    }
    write_and_read(&array);
    host_array_finish(&array);
}
