// SPDX-License-Identifier: MIT
// safetensors: what is read is written, and read again as the same.
#include "fuzz.h"
#include "../tools/formats.h"

static void same(const struct safetensors *a, const struct safetensors *b)
{
    FUZZ_CHECK(a->count == b->count, "%zu arrays, then %zu", a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct host_array *x = &a->items[i].array;
        const struct host_array *y = safetensors_find(b, a->items[i].name);
        FUZZ_CHECK(y && x->dtype == y->dtype && x->bytes == y->bytes &&
                       x->shape.rank == y->shape.rank,
                   "'%s'", a->items[i].name);
        for (int32_t k = 0; k < x->shape.rank; k++)
            FUZZ_CHECK(x->shape.extent[k] == y->shape.extent[k], "extent %d", k);
        FUZZ_CHECK(memcmp(x->data, y->data, x->bytes) == 0, "elements");
    }
}

static void write_and_read(const struct safetensors *file)
{
    char path[96];
    struct safetensors again = {0};
    snprintf(path, sizeof(path), "%s/out.safetensors", fuzz_folder());
    FUZZ_CHECK(safetensors_write(path, file) == 0, "%s", oops_text());
    FUZZ_CHECK(safetensors_read(path, &again) == 0, "%s", oops_text());
    same(file, &again);
    safetensors_finish(&again);
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct safetensors file = {0};
    forget_oops();
    if (safetensors_read(fuzz_path(data, size), &file)) {
        FUZZ_CHECK(oops_text()[0] && !file.items, "a failure has a text and no arrays");
        return;
    }
    write_and_read(&file);
    safetensors_finish(&file);
}
